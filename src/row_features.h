#ifndef PFDTC_ROW_FEATURES_H
#define PFDTC_ROW_FEATURES_H

/*
 * Fixed pseudo-random functions of a row, by which sums over rows tell one set of rows from
 * another however they are ordered, merged or cut into blocks.
 */

/* F[i + N j] in [-1, 1): function j, of n_features, of row i of X (N x d).  Every input counts
 * to 40 binary digits: an input that is computed twice and differs by rounding has as a rule the
 * same value, and so have 0 and -0. */
void row_features(int N, int d, const double *X, int n_features, double *F);

#endif
