#pragma once

/* The second pass over the rows: computes the gradient from an objective's derivatives in the sums (struct adjoint). */
#include "pass.h"
#include "stats.h"

/* Computes the adjoint of K = k(Z, X_b), Kmx_bar (M x n) = (H A + F W_x' + f e' + E A K) diag(scale), e = y - A'beta,
 * with the fields of `adjoint` (stats.h). Wt = W_x' (q x n) is read if q > 0, and AK = A K (M x n) if adjoint->E is
 * not NULL. Returns |e|^2. work: n */
double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar);

/* Computes A K from pairs of blocks, and keeps it for the blocks that the pass keeps. */
struct pairing {
    const struct pass *pass;
    double *AK; /* M x block for each kept block */
};
/* A sink for W0 (M x M) = A K A', after a pass that has computed A. */
struct sink pairing_sink(const struct pairing *self, double *W0);

/* A sink whose sums are dZ (M x columns), dtheta [n_theta] and |e|^2. */
struct pulling {
    const struct inducing *z;
    const struct adjoint *adjoint;
    struct panel panel;
    /* if the auxiliary distribution has p = 1, else NULL */
    const struct pairing *pairing;
    int with_theta; /* if 0, dtheta stays 0 */
    struct arena *arena;
};
size_t gradient_size(const struct inducing *z);
struct sink gradient_sink(const struct pulling *self, double *sums);

/* Adds the parts of the gradient that come from k(Z, Z) and, if k(x, x) is constant, from k_sum = sum k(x, x) w. */
void gradient_finish(const struct pulling *self, double k_sum, double *sums);
