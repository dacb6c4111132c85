#pragma once

/*
 * Adjoints of the arguments of a factor (profile.h), for derivatives in inputs and parameters.  "Pull" means the
 * pullback of reverse-mode differentiation: from derivatives in a result to derivatives in what it is computed from.
 */
#include "factor.h"

/* factor_pull() takes this number of rows at a time, and loads and stores dZ once for them. */
enum { FACTOR_ROWS = 4 };

/*
 * Adjoint of the arguments S (M x n) of the rows of Z and X: given S_bar with dF = sum(S_bar * dS), adds dF / dZ to
 * dZ (M x columns, leading dimension M) and dF / dtheta to dtheta; either may be NULL. S_bar has room for FACTOR_ROWS
 * - 1 more rows, and is overwritten.
 */
void factor_pull(const struct factor *f, struct rows Z, struct rows X, double *S_bar,
                 double *dZ, double *dtheta);
