#pragma once

/*
 * An auxiliary distribution is a Gaussian process with
 *
 *     covariance  p k(x, x') + sum_j s_j b_j(x) b_j(x'),   mean  mu(x),
 *     [b(x), mu(x)] = W' k(U, x),
 *
 * where p is 0 or 1 and s_j = +-1.  The mean is the last of the q functions and has s = +1.
 */
#include "arena.h"
#include "inducing.h"
#include "sink.h"

struct lowrank {
    const struct kernel *kernel;
    int p;
    int n_u, columns; /* U is n_u x columns, leading dimension n_u */
    const double *U;
    int q;              /* number of functions: rank + 1 */
    const double *W;    /* n_u x q */
    const double *sign; /* s_j [q] */
};

/* The values of the q functions of an auxiliary distribution at the rows: given, or computed block by block. */
struct panel {
    const struct lowrank *aux; /* NULL if there is no auxiliary distribution */
    const double *Wt;          /* values at all rows (q x N), or NULL */
};
/* Returns q, or 0 without an auxiliary distribution. */
int panel_columns(const struct panel *p);
/* Returns the number of doubles of scratch for a block of n rows, or 0 if the values are given. */
size_t panel_size(const struct panel *p, int n);
/* Returns Wt (q x n) = W' k(U, X_b) diag(scale). */
const double *panel_rows(const struct panel *p, const struct block *b, double *work);

/* A sink that stores the values at all rows. */
struct panel_values {
    struct panel panel;
    double *Wt; /* q x N */
};
struct sink panel_sink(const struct panel_values *self);

/* Computes K_zu (M x n_u) = k(Z, U), and T (M x q) = L^{-1} K_zu W, or K_zu W without L. */
void lowrank_points(const struct lowrank *aux, const struct inducing *z, double *K_zu,
                    double *T);

/* For F with dF = sum(Wm_bar * dWm), Wm = K_zu W, adds dF / dZ to dZ (M x columns). */
void lowrank_pull(const struct lowrank *aux, const struct inducing *z, const double *K_zu,
                  const double *Wm_bar, struct arena *arena, double *dZ);
