#pragma once

/* The exact posterior of f, given n rows with weights W = diag(w) and noise variance s2, has the elements
 *
 *     L L' = K + s2 W^{-1},  alpha = (K + s2 W^{-1})^{-1} y
 *
 * and, at a point x:  mean = k(x, X) alpha,  variance = k(x, x) - |L^{-1} k(X, x)|^2 */
#include "gram.h"

/* The exact posterior of f given the rows of a pass, which are in memory. */
struct exact {
    const struct model *model;
    struct pass pass;
    const double *weights; /* [N] or NULL */
    /* results L (N x N) and alpha [N]; above the diagonal, L has zeros if precision is NULL, else any numbers */
    double *L, *alpha;
    double *precision; /* diagonal of (K + s2 W^{-1})^{-1} [N], if it is wanted */
};
/* Computes L with L L' = K + s2 W^{-1} (W: weights), alpha = (L L')^{-1} y and -log N(y; 0, L L'). */
enum status exact_run(struct exact *e, double *value);
/* Computes e->precision, and derivatives of -log N(y; 0, K + s2 W^{-1}) in the kernel's log parameters and log s2. */
void exact_gradient(struct exact *e, double *dtheta, double *noise);

/* Computes precision [N], the diagonal of (L L')^{-1} for the Cholesky factor L (N x N), N = plan->N. */
void exact_precision(const struct plan *plan, const double *L, double *precision);
