#pragma once

/*
 * Everything in src/ below the doors, without R: every array a malloc of exactly the size that a header
 * names, so that AddressSanitizer and valgrind see whoever steps outside, and every
 * number against naive loops.  tools/ctest.sh compiles and runs all of tools/ctest*.c.
 *
 * A group is a word in GROUPS and a function void group_<word>(void) in one of the files.
 */
#include "pass.h"
#include "stats.h"

/* clang-format off */
#define GROUPS(X) \
    X(status) X(vexp) X(strip) X(linalg) X(chol) X(kernel) X(factors) X(pull) \
    X(inducing) X(lowrank) X(select) X(stats) X(pairs) \
    X(posterior) X(exact) X(likelihoods) X(gradient) X(pf) X(vfe) X(white) X(guided) \
    X(pass) X(fitc) X(divergence) \
    X(certify) X(columns) X(neighbours) X(near) X(near_field) X(vecchia)
/* clang-format on */

/* ---- checks ------------------------------------------------------------------------ */

#define CHECK(condition) check((condition) != 0, __FILE__, __LINE__, #condition)
/* |got - want| <= tolerance * (1 + |want|) */
#define CHECK_NEAR(got, want, tolerance)                                                 \
    check_near(got, want, tolerance, __FILE__, __LINE__, #got)
/* the same for n numbers, with their largest |want| */
#define CHECK_ARRAY(n, got, want, tolerance)                                             \
    check_array(n, got, want, tolerance, __FILE__, __LINE__, #got)

int check(int passed, const char *file, int line, const char *what);
void check_near(double got, double want, double tolerance, const char *file, int line,
                const char *what);
void check_array(size_t n, const double *got, const double *want, double tolerance,
                 const char *file, int line, const char *what);

/* ---- memory and numbers ------------------------------------------------------------ */

/* Each array is its own malloc of exactly n elements, NaN until written, and lives until
 * its group ends or arrays_release() goes back to an earlier arrays_taken(). */
double *array(size_t n);
double *array_random(size_t n, double low, double high);
double *array_copy(size_t n, const double *x);
double *array_zero(size_t n);
int *array_int(size_t n);
extern struct arena arrays; /* gives such arrays */
size_t arrays_taken(void);
void arrays_release(size_t taken);

/* a generator of our own, the same numbers everywhere; each group begins anew */
double uniform(double low, double high);

/* df / dx by differences of fourth order around *x */
double slope(double (*f)(const void *context), const void *context, double *x);

/* One double too few, where a group wants to see the tools find it. */
#ifdef PLANT_OVERRUN
enum { PLANTED = 1 };
#else
enum { PLANTED = 0 };
#endif

/* ---- naive dense algebra: triple loops, Gauss with pivots -------------------------- */

struct matrix {
    int rows, columns;
    double *x;
};

struct matrix matrix_new(int rows, int columns); /* zeros */
struct matrix matrix_of(int rows, int columns, const double *x);
double at(struct matrix A, int i, int j);
struct matrix identity(int n);
struct matrix transposed(struct matrix A);
struct matrix times(struct matrix A, struct matrix B);
struct matrix plus(struct matrix A, double beta, struct matrix B); /* A + beta B */
/* diag(s) A, and A diag(s); s == NULL is all ones */
struct matrix scaled_rows(const double *s, struct matrix A);
struct matrix scaled_columns(struct matrix A, const double *s);
/* A^{-1}; log |det A| where wanted */
struct matrix inverse(struct matrix A, double *log_det);
double trace_of(struct matrix A);
struct matrix random_spd(int n);

/* ---- problems ---------------------------------------------------------------------- */

extern const char *const kernel_names[];
extern const int n_kernels;

/* a kernel of that name on d of the columns, last ones first */
struct covariance {
    const char *name;
    struct kernel kernel;
    double *lengthscale; /* [d] kernel's own, as the variance is: free to change  */
    double *variance;
    int d;
};
struct covariance covariance_new(const char *name, int d, int columns);
/* g of a distance r */
double naive_profile(const char *name, double r);
/* k(a_i, b_j) straight from the definition */
struct matrix naive_kernel(const struct covariance *c, int n_a, const double *a, int lda,
                           int n_b, const double *b, int ldb);

struct shape {
    int M, N, columns, d, n_u, q;
};

struct problem {
    struct covariance covariance;
    struct shape shape;
    int p;                    /* of aux                                          */
    double *X, *y, *scale;    /* N x columns, [N], [N] or NULL                  */
    double *Z, *U, *W, *sign; /* M x columns, n_u x columns, n_u x q, [q]       */
    double s2, jitter;
};
struct problem problem_new(const char *kernel, struct shape shape, int p, int weighted);
/* every kernel and shape, with weights and without */
typedef void problem_check(struct problem *p);
void for_problems(const struct shape *shapes, int n_shapes, int p, problem_check *check);
struct lowrank problem_aux(const struct problem *p);
/* the points under the model as it is now, without L */
struct inducing problem_points(const struct problem *p);

/* rows first .. first + n - 1 in arrays of their own, a gap after each column of X */
struct block block_rows(const struct problem *p, int first, int n);

/* The first pass over blocks of that many rows (and an empty one where they come out
 * even): statistics of each merged in order, A K in pairs and W0 = A K A' where p = 1. */
enum { MOST_PIECES = 40 };
struct piece {
    struct block block;
    double *K, *A, *AK;
    const double *Wt; /* Wt only with aux, AK only with p = 1               */
};
struct pieces {
    struct inducing z;
    int n_pieces;
    struct piece piece[MOST_PIECES];
    struct stats stats;
    double *W0;
    enum status status;
};
void pieces_make(const struct problem *p, const struct lowrank *aux, int block,
                 struct pieces *pieces);

/* What an evaluation of an objective by such pieces gives; gradients only where asked for. */
struct answer {
    enum status status;
    double value, noise, *dZ, *dtheta;
};
typedef struct answer answer_of(const struct problem *p, int block, int gradient);
answer_of pf_answer, vfe_answer, white_answer;
extern const double white_share_of_noise;

/* Everything dense; rows carry their scale, Kmm its jitter. */
struct dense {
    struct matrix Kzz, Kmm, Kmm_inverse, Kxm, K, Q, B, B_inverse, y, Wx, Wm;
    double log_det_B;
};
struct dense dense_of(const struct problem *p);

#define DECLARE(name) void group_##name(void);
GROUPS(DECLARE)
#undef DECLARE
