#pragma once

/*
 * s2^2 d_pF^2 in terms that are small where the divergence is small, so that nothing cancels:
 *
 *   (I)          = sum_{n, m} (k^(x_n, x_m) + r_n r_m) E_nm,   r = mu^ - y,  E = K - A'A
 *   (II) + (III) = sum_j s_j |D^{-1} A (w_j - A't_j)|^2 + p tr(D^{-1} (A E A' - G J G) D^{-1})
 *
 * which costs a loop over all pairs of rows.  Also its constant, C(X) = tr((k^ + r r') K).
 */
#include "pass.h"
#include "pf.h"

struct divergence {
    struct inducing z; /* not read for the constant */
    struct source rows;
    struct pass pass;
    struct panel panel; /* with aux, without Wt */
    double *T, *R;      /* L^{-1} W_m; W_x' - y' for the kept blocks */
};

/* The caller sets z (without L), rows, panel and pass.plan; the constant needs no points. */
enum status divergence_value(struct divergence *d, double *value);
double divergence_constant(struct divergence *d);
