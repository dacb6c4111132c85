#pragma once

/* These functions compute derivatives of a kernel along a direction, a vector with a number for each input column. */
#include "kernel.h"

/* Computes out (M x n) = sum_j direction_j d k(Z, X) / d x_j. */
void kernel_slopes(const struct kernel *k, const double *direction, struct rows Z,
                   struct rows X, double *out);

/* Computes prior[i], the prior variance of the derivative of f along the direction: d^2 k(x, x') / (dx dx') at x = x' =
 * x_i. Its rounding errors are proportional to size[i] = max(prior[i], s^2), where s sums sqrt(c d^2 g / (dx dx')) over
 * the factors g of all terms, and c is the product of the term's variance and its other factors. */
void kernel_slope_variance(const struct kernel *k, const double *direction, struct rows X,
                           double *prior, double *size);
