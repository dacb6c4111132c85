#pragma once

/* divergence_value() computes s2^2 d_pF^2 as a sum of terms that are small if the pF divergence d_pF is small, so that
 * no digits cancel. The auxiliary distribution has covariance k^ and mean mu^. Its function j has the sign s_j, values
 * w_j at the rows and whitened values t_j at Z; p is 1 if k^ contains k, else 0. With L L' = k(Z, Z), A = L^{-1} k(Z,
 * X), G = A A', D = I + G / s2 and J = L^{-1} diag(jitter k(z, z)) L^{-T},
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

/* Compute s2^2 times the squared pF divergence, and its part C(X), which does not depend on inducing points. The caller
 * sets z (without L), rows, panel and pass.plan. */
enum status divergence_value(struct divergence *d, double *value);
double divergence_constant(struct divergence *d);
