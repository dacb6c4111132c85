#pragma once

/* The features are fixed pseudo-random functions of a row. Their sums over rows identify a set of rows in any order. */

/* Computes n_features functions of each row of X (N x d): F (N x n_features), in [-1, 1). Inputs are rounded to 40
 * binary digits, so inputs that differ by rounding errors usually have the same value. 0 and -0 have the same value. */
void row_features(int N, int d, const double *X, int n_features, double *F);
