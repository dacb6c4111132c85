#pragma once

/*
 * The functions below compute s2^2 d_pF^2 as a sum of terms that are small if the pF divergence d_pF is small, so
 * that no digits cancel.  In the symbols of pf.h:
 *
 *   (I)          = sum_{n, m} (k^(x_n, x_m) + r_n r_m) E_nm,   r = mu^ - y,  E = K - A'A
 *   (II) + (III) = sum_j s_j |D^{-1} A (w_j - A't_j)|^2 + p tr(D^{-1} (A E A' - G J G) D^{-1})
 *
 * These terms and the constant C(X) = tr((k^ + r r') K) need a loop over all pairs of rows.  k^ and mu^ are the
 * covariance and mean of the auxiliary distribution.
 */
#include "pass.h"
#include "pf.h"

struct divergence {
    struct inducing z; /* not needed for the constant */
    struct source rows;
    struct pass pass;
    struct panel panel; /* the auxiliary distribution, without Wt */
    double *T, *R;      /* T of pf.h; R = W_x' - y' (divergence.c) for the kept blocks */
};

/* The caller sets z (without L), rows, panel and pass.plan. The constant C(X) needs no inducing points. */
enum status divergence_value(struct divergence *d, double *value);
double divergence_constant(struct divergence *d);
