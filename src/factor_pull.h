#ifndef PFDTC_FACTOR_PULL_H
#define PFDTC_FACTOR_PULL_H

/* Adjoints and slopes of the statistics of a factor (factor.h). */
#include "factor.h"

/* rows that factor_pull takes at a time: dZ is loaded and stored once for them */
enum { FACTOR_ROWS = 4 };

/*
 * Adjoint of the statistic of a stationary factor, of x'z or of u'S u: dF = sum(S_bar * dS), S_bar M x n
 * with room for FACTOR_ROWS - 1 more rows, overwritten.  Adds to dZ (M x columns, leading
 * dimension M, NULL to skip) and to dtheta (NULL to skip).
 */
void factor_pull(const struct factor *f, int M, const double *Z, int ldz, int n,
                 const double *X, int ldx, double *S_bar, double *dZ, double *dtheta);

/* D (n x n) = the slope of the statistic of X with itself in the log parameter p of the metric */
void factor_metric_slope(const struct factor *f, int p, int n, const double *X, int ldx,
                         double *D);

#endif
