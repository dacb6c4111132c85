#pragma once

/* Derivatives of a kernel in one input of x, for derivatives of f. */
#include "kernel.h"

/* out (M x n) = d k(Z, X) / d x_column */
void kernel_slopes(const struct kernel *k, int column, struct rows Z, struct rows X,
                   double *out);

/* prior[i] = d^2 k(x, x') / (dx_column dx'_column) at x' = x = x_i, the variance of the slope there;
 * size[i] >= prior[i]: (sum over factors of the sd that each gives the slope)^2.  Rounding errors of
 * the slopes are relative to it */
void kernel_slope_variance(const struct kernel *k, int column, struct rows X,
                           double *prior, double *size);
