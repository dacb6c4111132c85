#ifndef PFDTC_EXACT_H
#define PFDTC_EXACT_H

/*
 * The exact Gaussian process on n rows:
 *
 *     L L' = K + s2 W^{-1},  alpha = (K + s2 W^{-1})^{-1} y
 *
 * and, at a point x:  mean = k(x, X) alpha,  variance = k(x, x) - |L^{-1} k(X, x)|^2
 */
#include "kernel.h"
#include "status.h"

/* K (n x n, k(X, X), in) -> L (out, in place) and alpha, in steps that may be stopped between:
 * exact_begin, then exact_columns of 0, then of what it returns (n: done; negative: K + s2 W^{-1}
 * is not positive definite), then exact_end.  weights may be NULL. */
void exact_begin(int n, double s2, const double *weights, double *K, double *alpha);
int exact_columns(int n, int start, double *K);
enum status exact_end(int n, const double *y, double *K, double *alpha);

/* -log N(y; 0, K + s2 W^{-1}) */
double exact_minus_evidence(int n, const double *L, const double *alpha, const double *y);

/* Its adjoint of the matrix:  K_bar = ((K + s2 W^{-1})^{-1} - alpha alpha') / 2 */
void exact_adjoint(int n, const double *L, const double *alpha, double *K_bar);

/* d / d log s2 = sum_i K_bar_ii s2 / w_i */
double exact_slope_noise(int n, double s2, const double *weights, const double *K_bar);

/* m new rows.  Ka (n x m): k(X, X_new), overwritten by L^{-1} of it */
void exact_rows(const struct kernel *k, int n, const double *L, const double *alpha,
                int m, const double *X_new, int ldx, double *Ka, double *mean,
                double *variance);

#endif
