#pragma once

/* Adjoints of kernel matrices: turn derivatives of F in k(Z, X), k(Z, Z) and the diagonal into derivatives in Z and
 * in the log parameters of the kernel.  "Pull" is explained in factor_pull.h. */
#include "arena.h"
#include "kernel.h"

/* Returns the doubles of scratch that kernel_pull() needs for M rows of Z. */
size_t kernel_size(const struct kernel *k, int M);

/* Adjoint of K = k(Z, X), where K comes from kernel_cross(): dF = sum(K_bar * dK).  Adds to dZ (M x columns,
 * leading dimension M) and to dtheta [n_theta]; either may be NULL. */
void kernel_pull(const struct kernel *k, struct rows Z, struct rows X, const double *K,
                 const double *K_bar, double *work, double *dZ, double *dtheta);

/* Adjoint of k(Z, Z) + jitter diag k(z, z), with symmetric K_bar.  It includes derivatives in both arguments of k
 * and of the jitter.  Z has `columns` columns. */
void kernel_pull_self(const struct kernel *k, int columns, struct rows Z, double jitter,
                      const double *K_bar, struct arena *arena, double *dZ,
                      double *dtheta);

/* Adjoint of the diagonal: dF = times sum_i w_i d k(x_i, x_i), where the w_i are `stride` apart.  Adds to dX (n x
 * columns, leading dimension n) and to dtheta; either may be NULL. */
void kernel_pull_diagonal(const struct kernel *k, struct rows X, double times,
                          const double *w, int stride, double *dX, double *dtheta);

/* Computes the derivatives of a term's own kernel matrix K at X (n x n), times a vector u: column j of out (n x
 * n_theta) += dK / dtheta_j u. values: K; work: term_slopes_size() */
size_t term_slopes_size(const struct kernel *k, int n);
void term_slopes(const struct kernel *k, const struct term *t, struct rows X,
                 const double *values, const double *u, double *work, double *out);
