#pragma once

/* divergence_value() computes s2^2 d_pF^2 as a sum of terms that are small if the pF divergence d_pF is small, so that
 * no digits cancel. The auxiliary distribution has the mean mu^ and the covariance k^ = p k + sum_j s_j b_j b_j', where
 * p is 0 or 1 and s_j = +-1. b_j has the values w_j at the rows and L t_j at Z; the last b_j in (II) is mu^, s_j = 1.
 * With A = L^{-1} k(Z, X), G = A A', D = I + G / s2, J = L^{-1} diag(jitter k(z, z)) L^{-T}, s2^2 d_pF^2 is the sum of
 *
 *   (I)          = sum_{n, m} (k^(x_n, x_m) + r_n r_m) E_nm,   r = mu^ - y,  E = K - A'A
 *   (II) + (III) = sum_j s_j |D^{-1} A (w_j - A't_j)|^2 + p tr(D^{-1} (A E A' - G J G) D^{-1})
 *
 * These terms and the constant C(X) = tr((k^ + r r') K) need a loop over all pairs of rows. */
#include "pass.h"
#include "pf.h"

struct divergence {
    struct inducing z; /* not needed for the constant */
    struct source rows;
    struct pass pass;
    struct panel panel; /* the auxiliary distribution, without Wt */
    double *T, *R;      /* T of pf_evaluate(); R of residual_rows() for the kept blocks */
};

/* These functions compute s2^2 times the squared pF divergence, and its part C(X), which does not depend on inducing
 * points. The caller sets z (without L), rows, panel and pass.plan. */
enum status divergence_value(struct divergence *d, double *value);
double divergence_constant(struct divergence *d);
