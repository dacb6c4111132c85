#pragma once

/* Computes n_features fixed pseudo-random functions of each row of X (N x d): F (N x n_features), in [-1, 1). Their
 * sums over rows identify a set of rows in any order. Inputs are rounded to 40 binary digits, so inputs that differ by
 * rounding errors usually have the same value. 0 and -0 have the same value. */
void row_features(int N, int d, const double *X, int n_features, double *F);
