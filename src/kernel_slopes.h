#pragma once

/* These functions compute derivatives of a kernel in a direction, a vector with a number for each input column. */
#include "kernel.h"

/* Computes out (M x n) = sum_j direction_j d k(Z, X) / d x_j. */
void kernel_slopes(const struct kernel *k, const double *direction, struct rows Z,
                   struct rows X, double *out);

/* Computes prior[i], the prior variance of the derivative of f in the direction: d^2 k(x, x') / (dx dx') along the
 * direction, at x' = x = x_i.  size[i] = max(prior[i], s^2), where s is the sum over all factors g of all terms of the
 * root of (d^2 g / (dx dx') times the rest of the term).  Rounding errors of prior[i] are proportional to size[i]. */
void kernel_slope_variance(const struct kernel *k, const double *direction, struct rows X,
                           double *prior, double *size);
