#pragma once

/* These functions compute derivatives of a kernel along a direction, a vector with a number for each input column. */
#include "kernel.h"

/* Computes out (M x n) = sum_j direction_j d k(Z, X) / d x_j. */
void kernel_slopes(const struct kernel *k, const double *direction, struct rows Z,
                   struct rows X, double *out);

/* Computes prior[i], the prior variance at x_i of the derivative of f along the direction: d^2 k(x, x') / (dx dx') at x
 * = x' = x_i. Its rounding errors are proportional to size[i] = max(prior[i], s^2). s sums, over all terms and their
 * factors g, sqrt(d^2 g / (dx dx') times the variance and the other factors). */
void kernel_slope_variance(const struct kernel *k, const double *direction, struct rows X,
                           double *prior, double *size);
