#ifndef PFDTC_SELF_SLOPES_H
#define PFDTC_SELF_SLOPES_H

/* What the log parameters of a kernel do to the matrix of a few rows, times a vector. */
#include "kernel.h"

/* doubles of scratch for n rows */
size_t self_slopes_size(const struct kernel *k, int n);

/* out (n x n_theta): dK / dtheta_j u, K = k(X, X) as cross made it, of which the lower triangle
 * is read */
void self_slopes(const struct kernel *k, int n, const double *X, int ldx, const double *K,
                 const double *u, double *work, double *out);

#endif
