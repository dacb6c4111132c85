#pragma once

/* Slopes of kernel matrices: in one input of x, for derivatives of f, and in parameters. */
#include "kernel.h"

/* out (M x n) = d k(Z, X) / d x_column */
void kernel_slopes(const struct kernel *k, int column, struct rows Z, struct rows X,
                   double *out);

/* prior[i] = d^2 k(x, x') / (dx_column dx'_column) at x' = x = x_i, the variance of the slope there;
 * size[i] >= prior[i]: (sum over factors of the sd that each gives the slope)^2.  Rounding errors of
 * the slopes are relative to it */
void kernel_slope_variance(const struct kernel *k, int column, struct rows X,
                           double *prior, double *size);

/* Slopes of the kernel matrix of a few rows in the log parameters of a term, times a vector:
 * out (n x n_theta) += dK / dtheta_j u,  values (n x n): K, the term's own at X and X; work: term_slopes_size() */
size_t term_slopes_size(int n);
void term_slopes(const struct kernel *k, const struct term *t, struct rows X,
                 const double *values, const double *u, double *work, double *out);
