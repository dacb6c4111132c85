#pragma once

/*
 * A Gaussian process of the form that every auxiliary distribution here has,
 *
 *     covariance  p k(x, x') + sum_j s_j b_j(x) b_j(x'),   mean  mu(x),
 *     [b(x), mu(x)] = W' k(U, x),
 *
 * p in {0, 1}, s_j = +-1.  The mean is the last column and has s = +1.
 */
#include "arena.h"
#include "inducing.h"
#include "sink.h"

struct lowrank {
    const struct kernel *kernel;
    int p;
    int n_u, columns; /* U is n_u x columns, leading dimension n_u */
    const double *U;
    int q;              /* functions in all: rank + 1 */
    const double *W;    /* n_u x q */
    const double *sign; /* [q] */
};

/* The values of an auxiliary distribution at all rows, given or computed block by block. */
struct panel {
    const struct lowrank *aux; /* NULL: no columns */
    const double *Wt;          /* q x N or NULL */
};
int panel_columns(const struct panel *p);
/* Returns the doubles of scratch for a block of n rows, 0 if nothing is computed. */
size_t panel_size(const struct panel *p, int n);
/* Wt (q x n) = W' k(U, X_b) diag(scale) */
const double *panel_rows(const struct panel *p, const struct block *b, double *work);

/* Returns a sink that keeps the values at all rows. */
struct panel_values {
    struct panel panel;
    double *Wt; /* q x N */
};
struct sink panel_sink(const struct panel_values *self);

/* T (M x q) = L^{-1} Wm, or Wm where there is no L,  Wm = k(Z, U) W.  Leaves K_zu (M x n_u) for the pull. */
void lowrank_points(const struct lowrank *aux, const struct inducing *z, double *K_zu,
                    double *T);

/* Adds the adjoint of Wm to dZ (M x columns), dF = sum(Wm_bar * dWm). */
void lowrank_pull(const struct lowrank *aux, const struct inducing *z, const double *K_zu,
                  const double *Wm_bar, struct arena *arena, double *dZ);
