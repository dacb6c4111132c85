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

struct term {
    double variance;
    int n_factors;
    const int *factor; /* [n_factors] among the kernel's                             */
    int at;            /* place of the variance in theta                             */
};

struct kernel {
    int n_factors, n_terms;
    const struct factor *factor; /* [n_factors]                                      */
    const struct term *term;     /* [n_terms]                                        */
    int n_theta; /* log parameters: of a term's factors not met before, its variance */
};

/* places of the parameters in theta; the factors and terms are the caller's */
void kernel_places(int n_factors, struct factor *factor, int n_terms, struct term *term,
                   struct kernel *k);

/* one more than the last column that is read */
int kernel_columns(const struct kernel *k);

/* doubles of scratch wanted by pull and by pull_self for M points Z */
size_t kernel_size(const struct kernel *k, int M);
size_t kernel_self_size(const struct kernel *k, int M, int columns);

/* K = k(Z, X)     Z: M rows with leading dimension ldz,  X: n rows with ldx,  K: M x n */
void kernel_cross(const struct kernel *k, int M, const double *Z, int ldz, int n,
                  const double *X, int ldx, double *K);

/* diagonal[i] = k(x_i, x_i); as cross has it, to the bit */
void kernel_diagonal(const struct kernel *k, int n, const double *X, int ldx,
                     double *diagonal);

/* out (M x n) = a term without its factor `skip` (-1: all of it) */
void kernel_term(const struct kernel *k, const struct term *t, int skip, int M,
                 const double *Z, int ldz, int n, const double *X, int ldx, double *out);

/* a single factor, a stationary one with lengthscales */
int kernel_is_single(const struct kernel *k);
/* one term, with k(x, x) the same everywhere */
int kernel_is_constant(const struct kernel *k);

/* Adjoint of cross.  K as cross made it; dF = sum(K_bar * dK).  Adds to dZ (M x columns,
 * leading dimension M, NULL to skip) and to dtheta [n_theta] (NULL to skip). */
void kernel_pull(const struct kernel *k, int M, const double *Z, int ldz, int n,
                 const double *X, int ldx, const double *K, const double *K_bar,
                 double *work, double *dZ, double *dtheta);

/* Adjoint of k(Z, Z) + jitter diag k(z, z), K_bar symmetric: rows and columns both move,
 * the jitter's share included.  `columns` is the number of columns of Z. */
void kernel_pull_self(const struct kernel *k, int M, int columns, const double *Z,
                      int ldz, double jitter, const double *K_bar, double *work,
                      double *dZ, double *dtheta);

/* Adjoint of the diagonal: dF = times sum_i w_i d k(x_i, x_i), w_i `stride` apart.  Adds to dX
 * (n x columns, leading dimension n, NULL to skip) and to dtheta (NULL to skip). */
void kernel_pull_diagonal(const struct kernel *k, int n, const double *X, int ldx,
                          double times, const double *w, int stride, double *dX,
                          double *dtheta);

#endif
