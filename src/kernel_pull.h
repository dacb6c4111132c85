#pragma once

/* From derivatives of a function F in k(Z, X), k(Z, Z) and k(x, x), these functions compute its derivatives in Z and in
 * the kernel's log parameters. "Pull" means the pullback of reverse-mode differentiation. */
#include "arena.h"
#include "kernel.h"

/* Returns the number of doubles of scratch that kernel_pull() needs for M inducing points Z. */
size_t kernel_size(const struct kernel *k, int M);

/* For a function F of K = k(Z, X), K_bar has the derivatives dF / dK. Adds dF / dZ to dZ (M x columns, leading
 * dimension M), and the derivatives in log parameters to dtheta [n_theta]. Either of dZ and dtheta may be NULL. */
void kernel_pull(const struct kernel *k, struct rows Z, struct rows X, const double *K,
                 const double *K_bar, double *work, double *dZ, double *dtheta);

/* For a function F of K = k(Z, Z) + jitter diag k(z, z), K_bar has the derivatives dF / dK and is symmetric. Adds the
 * derivatives of F to dZ and dtheta. Both arguments of k depend on Z. Z has `columns` columns. */
void kernel_pull_self(const struct kernel *k, int columns, struct rows Z, double jitter,
                      const double *K_bar, struct arena *arena, double *dZ,
                      double *dtheta);

/* For a function F of k(x_i, x_i), times * w[i * stride] is the derivative dF / dk(x_i, x_i). Adds the derivatives of F
 * to dX (n x columns, leading dimension n) and to dtheta. Either of dX and dtheta may be NULL. */
void kernel_pull_diagonal(const struct kernel *k, struct rows X, double times,
                          const double *w, int stride, double *dX, double *dtheta);

/* For a term's kernel matrix K (`values`, n x n) at X, adds (dK / dtheta_j) u to column j of out (n x n_theta), for
 * each log parameter theta_j and the vector u. work: term_slopes_size() doubles */
size_t term_slopes_size(const struct kernel *k, int n);
void term_slopes(const struct kernel *k, const struct term *t, struct rows X,
                 const double *values, const double *u, double *work, double *out);
