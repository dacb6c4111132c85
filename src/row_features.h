#pragma once

/*
 * Fixed pseudo-random functions of a row.  Sums of them over rows identify a set of rows, in whatever
 * order, merged or cut into blocks.
 */

/* F[i + N j] in [-1, 1): function j, of n_features, of row i of X (N x d).  Inputs are rounded
 * to 40 binary digits: inputs that differ by rounding errors usually have the same value, and so
 * have 0 and -0. */
void row_features(int N, int d, const double *X, int n_features, double *F);
