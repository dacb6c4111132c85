#pragma once

/* These functions compute derivatives of a kernel in a direction, a vector with a number for each input column. */
#include "kernel.h"

/* Computes out (M x n) = sum_j direction_j d k(Z, X) / d x_j. */
void kernel_slopes(const struct kernel *k, const double *direction, struct rows Z,
                   struct rows X, double *out);

/* Computes prior[i], the prior variance of the derivative of f in the direction: the sum over j and j' of
 * direction_j direction_j' d^2 k(x, x') / (dx_j dx'_j') at x' = x = x_i.  size[i] >= prior[i] is the square of the sum
 * of the sds that the factors contribute.  Rounding errors of prior[i] are proportional to size[i]. */
void kernel_slope_variance(const struct kernel *k, const double *direction, struct rows X,
                           double *prior, double *size);
