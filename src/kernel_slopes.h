#pragma once

/* Derivatives of a kernel in one input of x, for derivatives of f. */
#include "kernel.h"

/* Computes out (M x n) = d k(Z, X) / d x_column. */
void kernel_slopes(const struct kernel *k, int column, struct rows Z, struct rows X,
                   double *out);

/* Computes prior[i] = d^2 k(x, x') / (dx_column dx'_column) at x' = x = x_i, the prior variance of df/dx_column.
 * size[i] >= prior[i] is the square of the sum of the sds that the factors contribute.  Rounding errors of `prior`
 * are proportional to it. */
void kernel_slope_variance(const struct kernel *k, int column, struct rows X,
                           double *prior, double *size);
