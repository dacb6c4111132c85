#pragma once

/* The second pass, for every objective: multiplies the adjoints of the sums with the rows. */
#include "pass.h"
#include "stats.h"

/* Kmx_bar (M x n) = (H A + F W_x' + f e' + E A K) diag(scale), e = y - A'beta, with H, F, f, E and
 * beta of `adjoint` (stats.h).  Wt = W_x' (q x n) is read only if q > 0, and
 * AK = A K (M x n) only if adjoint->E is not NULL.  Returns |e|^2.  work: n doubles */
double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar);

/* A K by pairs of blocks.  It is kept for the blocks that the pass keeps. */
struct pairing {
    const struct pass *pass;
    double *AK; /* M x block, kept blocks */
};
/* W0 (M x M) = A K A', after a pass that keeps A */
struct sink pairing_sink(const struct pairing *self, double *W0);

/* sums: dZ (M x columns), dtheta [n_theta], |e|^2 */
struct pulling {
    const struct inducing *z;
    const struct adjoint *adjoint;
    struct panel panel;
    const struct pairing *pairing; /* of aux with p = 1, else NULL */
    int with_theta;                /* if 0, dtheta stays 0 */
    struct arena *arena;
};
size_t gradient_size(const struct inducing *z);
struct sink gradient_sink(const struct pulling *self, double *sums);

/* Adds the parts from k(Z, Z) and, if k(x, x) is constant, from k_sum */
void gradient_finish(const struct pulling *self, double k_sum, double *sums);
