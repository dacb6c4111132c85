#ifndef PFDTC_KERNEL_H
#define PFDTC_KERNEL_H

/*
 * Covariance functions: sums of products of factors,
 *
 *     k(x, z) = sum_t variance_t prod_f g_f(x, z),
 *
 * a factor being a profile of some inputs (factor.h).  Several terms may share a factor, and so
 * its parameters.  Everything else in the package only calls cross, diagonal and pull: whether
 * the prior variance is the same everywhere is nobody's business but theirs.
 */
#include <stddef.h>
#include "factor.h"
#include "strip.h"

/* rows of Z and of X that are worked on at a time: their pairs stay in the nearest cache */
enum { KERNEL_TILE = 64, KERNEL_WIDE = 32 };

struct term {
    double variance;
    int n_factors;
    const int *factor; /* [n_factors] among the kernel's */
    int at;            /* place of the variance in theta */
};

struct kernel {
    int n_factors, n_terms;
    const struct factor *factor; /* [n_factors] */
    const struct term *term;     /* [n_terms] */
    int n_theta; /* log parameters: of a term's factors not met before, its variance */
};

/* places of the parameters in theta; the factors and terms are the caller's */
void kernel_places(int n_factors, struct factor *factor, int n_terms, struct term *term,
                   struct kernel *k);

/* one more than the last column that is read */
int kernel_columns(const struct kernel *k);

/* K = k(Z, X)     Z: M rows with leading dimension ldz,  X: n rows with ldx,  K: M x n */
void kernel_cross(const struct kernel *k, int M, const double *Z, int ldz, int n,
                  const double *X, int ldx, double *K);

/* diagonal[i] = k(x_i, x_i); as cross has it, to the bit */
void kernel_diagonal(const struct kernel *k, int n, const double *X, int ldx,
                     double *diagonal);

/* out (M x n) = a term without its factor `skip` (-1: all of it) */
void kernel_term(const struct kernel *k, const struct term *t, int skip, int M,
                 const double *Z, int ldz, int n, const double *X, int ldx, double *out);

/* the same at the diagonal, of at most KERNEL_TILE rows */
void kernel_term_diagonal(const struct kernel *k, const struct term *t, int skip, int n,
                          const double *X, int ldx, double *out);

const struct factor *kernel_factor(const struct kernel *k, const struct term *t, int i);
/* a single factor, a stationary one with lengthscales */
int kernel_is_single(const struct kernel *k);
/* terms as strip.h has them */
struct strips {
    struct strip_kernel kernel;
    struct strip_term term[STRIP_MOST_FACTORS];
    struct strip_factor factor[STRIP_MOST_FACTORS];
    int n_factors, column[STRIP_MOST_INPUTS];
    double rate[STRIP_MOST_INPUTS];
};

/* n_terms terms from t on; 0 where they have no strips, or there is no room */
int kernel_strips(const struct kernel *k, const struct term *t, int n_terms,
                  struct strips *s);
/* one term, with k(x, x) the same everywhere */
int kernel_is_constant(const struct kernel *k);

#endif
