#ifndef PFDTC_KERNEL_H
#define PFDTC_KERNEL_H

/*
 * Covariance functions.  A stationary ARD kernel is a profile of the scaled squared distance,
 *
 *     k(x, z) = variance * g(r2),   r2 = sum_j ((x_j - z_j) / l_j)^2,
 *
 * and a profile is one row of the table in kernel.c: g(r2) and its derivative.  Everything
 * else in the package only calls cross, diagonal and pull, so that sums and products of
 * profiles can come without touching it.
 *
 * r2 is a sum of squared differences, taken before they are divided by the lengthscales, never
 * |x|^2 + |z|^2 - 2 x'z: equal rows have distance exactly 0, inputs around 1e8 keep their
 * digits, and nothing of size N x d is copied.
 */
#include <stddef.h>

struct profile; /* a row of the table */

struct kernel {
    const struct profile *profile;
    int d;                     /* inputs the kernel reads                          */
    const int *column;         /* [d] their columns in X, from 0                   */
    const double *lengthscale; /* [d] in the units of the inputs                   */
    double variance;
};

/* The profile of that name ("se", "matern12", ...), or NULL. */
const struct profile *kernel_profile(const char *name);

/* Number of hyperparameters: log lengthscales (d), then log variance. */
int kernel_n_theta(const struct kernel *k);

/* doubles of scratch wanted by pull and by pull_self for M points Z */
size_t kernel_size(const struct kernel *k, int M);
size_t kernel_self_size(const struct kernel *k, int M, int columns);

/* K = k(Z, X)     Z: M rows with leading dimension ldz,  X: n rows with ldx,  K: M x n */
void kernel_cross(const struct kernel *k, int M, const double *Z, int ldz, int n,
                  const double *X, int ldx, double *K);

/* diagonal[i] = k(x_i, x_i) */
void kernel_diagonal(const struct kernel *k, int n, const double *X, int ldx,
                     double *diagonal);

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

/* out (n x n_theta): dK / dtheta_j u, K = k(X, X) as cross made it, of which the lower triangle
 * is read.  scratch: 2 n */
void kernel_self_slopes(const struct kernel *k, int n, const double *X, int ldx,
                        const double *K, const double *u, double *work, double *out);

/* Adjoint of a weighted sum of the diagonal: dF = sum_bar * d sum_i w_i k(x_i, x_i), the sum
 * given.  Adds to dtheta. */
void kernel_pull_diagonal(const struct kernel *k, double sum, double sum_bar,
                          double *dtheta);

#endif
