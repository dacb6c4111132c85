#ifndef PFDTC_EXACT_H
#define PFDTC_EXACT_H

/*
 * The exact Gaussian process on n rows:
 *
 *     L L' = K + s2 W^{-1},  alpha = (K + s2 W^{-1})^{-1} y
 *
 * and, at a point x:  mean = k(x, X) alpha,  variance = k(x, x) - |L^{-1} k(X, x)|^2
 */
#include "inducing.h"
#include "sink.h"

/* K (n x n, k(X, X), in) -> L (out, in place) and alpha.  weights may be NULL; interrupt: called
 * now and then, may not return, or NULL. */
enum status exact_factor(int n, double s2, const double *weights, const double *y,
                         void (*interrupt)(void), double *K, double *alpha);

/* -log N(y; 0, K + s2 W^{-1}) */
double exact_minus_evidence(int n, const double *L, const double *alpha, const double *y);

/* Its adjoint of the matrix:  K_bar = ((K + s2 W^{-1})^{-1} - alpha alpha') / 2 */
void exact_adjoint(int n, const double *L, const double *alpha, double *K_bar);

/* d / d log s2 = sum_i K_bar_ii s2 / w_i */
double exact_slope_noise(int n, double s2, const double *weights, const double *K_bar);

/* as a sink over the n rows themselves: dtheta [n_theta] of K_bar */
struct exact_pulling {
    const struct kernel *kernel;
    struct block rows; /* all n  */
    const double *K_bar;
};
struct sink exact_pulling_sink(const struct exact_pulling *self, int block,
                               double *dtheta);

/* New rows.  K (n x m) = k(X, X_new), A = L^{-1} K. */
void exact_rows(const struct kernel *k, int n, const double *alpha, const struct block *b,
                const double *K, const double *A, double *mean, double *variance);

/* The same as a sink of a pass with the rows X as its points, results by row. */
struct exact_predicting {
    const struct inducing *z;
    const double *alpha;
    double *mean, *variance;
};
struct sink exact_predicting_sink(const struct exact_predicting *self);

/* of f at new rows, with the rows X as points.  scratch: M n */
void exact_covariance(const struct inducing *z, const struct block *b, double *work,
                      double *covariance);

#endif
