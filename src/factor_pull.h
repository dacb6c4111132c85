#pragma once

/*
 * Derivatives in inputs and parameters from derivatives in the arguments of a factor (profile.h).  "Pull" means the
 * pullback of reverse-mode differentiation: from derivatives in a result to derivatives in its inputs.
 */
#include "factor.h"

/* factor_pull() processes this number of rows of X at a time, and so reads and writes dZ only once for them. */
enum { FACTOR_ROWS = 4 };

/*
 * Let F depend on the arguments S (M x n) of the rows of Z and X by dF = sum(S_bar * dS).  Adds dF / dZ to dZ (M x
 * columns, leading dimension M), and the derivatives in the logs of the metric's parameters to dtheta; either may be
 * NULL. S_bar has room for FACTOR_ROWS - 1 more rows of X, and is overwritten.
 */
void factor_pull(const struct factor *f, struct rows Z, struct rows X, double *S_bar,
                 double *dZ, double *dtheta);
