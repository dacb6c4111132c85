#pragma once

/*
 * Tests of the C code below the entry points of .Call, without R.  Every array is its own malloc of exactly the size
 * that the headers state, so AddressSanitizer and valgrind notice reads and writes outside.  Results are compared with
 * naive loops.  tools/ctest.sh compiles and runs all of tools/ctest*.c.
 *
 * A group of tests is a word in GROUPS and a function void group_<word>(void) in one of the files.
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
/* Checks that |got - want| <= tolerance * (1 + |want|). */
#define CHECK_NEAR(got, want, tolerance)                                                 \
    check_near(got, want, tolerance, __FILE__, __LINE__, #got)
/* Checks n numbers by the rule of CHECK_NEAR, with the largest |want| of all in place of |want|. */
#define CHECK_ARRAY(n, got, want, tolerance)                                             \
    check_array(n, got, want, tolerance, __FILE__, __LINE__, #got)

int check(int passed, const char *file, int line, const char *what);
void check_near(double got, double want, double tolerance, const char *file, int line,
                const char *what);
void check_array(size_t n, const double *got, const double *want, double tolerance,
                 const char *file, int line, const char *what);

/* ---- memory and numbers ------------------------------------------------------------ */

/* Each array is its own malloc of exactly n elements, filled with NaN.  It is freed when its group ends, or by
 * arrays_release() with the value of arrays_taken() from before it was made. */
double *array(size_t n);
double *array_random(size_t n, double low, double high);
double *array_copy(size_t n, const double *x);
double *array_zero(size_t n);
int *array_int(size_t n);
extern struct arena arrays; /* an arena that calls array() */
size_t arrays_taken(void);
void arrays_release(size_t taken);

/* Returns a pseudo-random number, the same on every machine.  The seed is set anew for each group. */
double uniform(double low, double high);

/* Returns 1, or if CTEST_SHARE is set 1 for the first of every CTEST_SHARE calls in a group and 0 for the others.
 * Loops of many cases skip a case for which it is 0. */
int in_turn(void);

/* Returns df / dx at *x by central differences of fourth order. */
double slope(double (*f)(const void *context), const void *context, double *x);

/* With PLANT_OVERRUN one array is one double too short, and AddressSanitizer or valgrind must report it. */
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
/* Returns A^{-1}.  Unless NULL, log_det gets log |det A|. */
struct matrix inverse(struct matrix A, double *log_det);
double trace_of(struct matrix A);
struct matrix random_spd(int n);

/* ---- problems ---------------------------------------------------------------------- */

extern const char *const kernel_names[];
extern const int n_kernels;

/* A kernel of one factor, which reads the last d columns in reverse order. */
struct covariance {
    const char *name;
    struct kernel kernel;
    double *lengthscale; /* [d]; the kernel reads this array and *variance */
    double *variance;
    int d;
};
struct covariance covariance_new(const char *name, int d, int columns);
/* Returns the correlation at the distance r. */
double naive_profile(const char *name, double r);
/* Computes the k(a_i, b_j) by definition. */
struct matrix naive_kernel(const struct covariance *c, int n_a, const double *a, int lda,
                           int n_b, const double *b, int ldb);

struct shape {
    int M, N, columns, d, n_u, q;
};

struct problem {
    struct covariance covariance;
    struct shape shape;
    int p;                    /* p of the auxiliary distribution (lowrank.h)     */
    double *X, *y, *scale;    /* N x columns, [N], [N] or NULL                  */
    double *Z, *U, *W, *sign; /* M x columns, n_u x columns, n_u x q, [q]       */
    double s2, jitter;
};
struct problem problem_new(const char *kernel, struct shape shape, int p, int weighted);
/* Calls `check` with a problem for each kernel and shape, with weights and without. */
typedef void problem_check(struct problem *p);
void for_problems(const struct shape *shapes, int n_shapes, int p, problem_check *check);
struct lowrank problem_aux(const struct problem *p);
/* Returns the inducing points with the problem's present kernel and noise, without L. */
struct inducing problem_points(const struct problem *p);

/* Copies rows first, ..., first + n - 1 to new arrays, with a gap after each column of X. */
struct block block_rows(const struct problem *p, int first, int n);

/* The blocks and sums of a first pass, `block` rows at a time; the last block is empty if N is a multiple of `block`.
 * If p = 1, there are A K of each block and W0 = A K A'. */
enum { MOST_PIECES = 40 };
struct piece {
    struct block block;
    double *K, *A, *AK;
    const double *Wt; /* NULL without aux; AK is NULL unless p = 1          */
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

/* The value of an objective and, if `gradient`, its derivatives, computed from struct pieces. */
struct answer {
    enum status status;
    double value, noise, *dZ, *dtheta;
};
typedef struct answer answer_of(const struct problem *p, int block, int gradient);
answer_of pf_answer, vfe_answer, white_answer;
extern const double white_share_of_noise;

/* Dense matrices of a problem.  Rows are multiplied by their scales; Kmm includes the jitter; B = Q + s2 I. */
struct dense {
    struct matrix Kzz, Kmm, Kmm_inverse, Kxm, K, Q, B, B_inverse, y, Wx, Wm;
    double log_det_B;
};
struct dense dense_of(const struct problem *p);

#define DECLARE(name) void group_##name(void);
GROUPS(DECLARE)
#undef DECLARE
