#pragma once

/* Adjoints of kernel matrices: turns the slopes of F in k(Z, X), k(Z, Z) and the diagonal into slopes
 * in Z and in the log parameters of the kernel. */
#include "arena.h"
#include "kernel.h"

/* Returns the doubles of scratch that pull needs for M points Z. */
size_t kernel_size(const struct kernel *k, int M);

/* Adjoint of K = k(Z, X), K as kernel_cross() made it: dF = sum(K_bar * dK).  Adds to dZ (M x columns,
 * leading dimension M, NULL to skip) and to dtheta [n_theta] (NULL to skip). */
void kernel_pull(const struct kernel *k, struct rows Z, struct rows X, const double *K,
                 const double *K_bar, double *work, double *dZ, double *dtheta);

/* Adjoint of k(Z, Z) + jitter diag k(z, z), K_bar symmetric.  It includes the slopes in both
 * arguments of k and those of the jitter.  `columns` is the number of columns of Z. */
void kernel_pull_self(const struct kernel *k, int columns, struct rows Z, double jitter,
                      const double *K_bar, struct arena *arena, double *dZ,
                      double *dtheta);

/* Adjoint of the diagonal: dF = times sum_i w_i d k(x_i, x_i), w_i `stride` apart.  Adds to dX
 * (n x columns, leading dimension n, NULL to skip) and to dtheta (NULL to skip). */
void kernel_pull_diagonal(const struct kernel *k, struct rows X, double times,
                          const double *w, int stride, double *dX, double *dtheta);

/* Slopes of the kernel matrix of a few rows in the log parameters of a term, times a vector:
 * out (n x n_theta) += dK / dtheta_j u,  values (n x n): K, the term's own at X and X; work: term_slopes_size() */
size_t term_slopes_size(const struct kernel *k, int n);
void term_slopes(const struct kernel *k, const struct term *t, struct rows X,
                 const double *values, const double *u, double *work, double *out);
