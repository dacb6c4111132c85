#pragma once

/*
 * Adjoints and slopes of the statistics of a factor (factor.h).  A statistic is the number of a pair
 * of rows that the factor is a function of, such as a squared distance, x'z or u'S u.
 */
#include "factor.h"

/* factor_pull() takes this number of rows at a time, and loads and stores dZ once for them. */
enum { FACTOR_ROWS = 4 };

/*
 * Applies the adjoint S_bar of the statistics S (M x n) of the pairs of rows of Z and X, with
 * dF = sum(S_bar * dS).  Adds to dZ (M x columns, leading dimension M, NULL to skip) and to dtheta
 * (NULL to skip).  S_bar has room for FACTOR_ROWS - 1 more rows, and is overwritten.
 */
void factor_pull(const struct factor *f, struct rows Z, struct rows X, double *S_bar,
                 double *dZ, double *dtheta);
