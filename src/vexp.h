#pragma once

/*
 * The exponential of many numbers, without branches or tables so that compilers vectorise it
 * (exp_series.h): within 1.5 units in the last place for every x, 1 at 0 and -0, denormal results rounded once,
 * 0 at -Inf, Inf at Inf, NaN at NaN.
 */

/* x[i] <- exp(x[i]) */
void exp_all(int n, double *x);
