#pragma once

/* An auxiliary distribution is a Gaussian process with
 *
 *     covariance  p k(x, x') + sum_j s_j b_j(x) b_j(x'),   mean  mu(x),
 *     [b(x), mu(x)] = W' k(U, x),
 *
 * where p is 0 or 1, s_j = +-1, and U has n_u rows. The mean is the last of the q functions and has s = +1. */
#include "arena.h"
#include "inducing.h"
#include "sink.h"

struct lowrank {
    const struct kernel *kernel;
    int p;
    int n_u; /* number of rows of U, and its leading dimension */
    const double *U;
    int q;              /* number of functions: rank + 1 */
    const double *W;    /* n_u x q */
    const double *sign; /* s_j [q] */
};

/* A panel has the values, at all rows, of the q functions b_1, b_2, ..., mu of an auxiliary distribution with the
 * covariance p k + sum_j s_j b_j b_j' and mean mu. They are stored, or computed block by block. */
struct panel {
    const struct lowrank *aux; /* NULL if there is no auxiliary distribution */
    const double *Wt;          /* values at all rows (q x N), or NULL */
};
/* Returns q, the number of functions b_1, b_2, ..., mu in a panel. It is 0 if p->aux is NULL. */
int panel_columns(const struct panel *p);
/* Returns the number of doubles of scratch that panel_rows() needs for n rows: 0 if the values are stored. */
size_t panel_size(const struct panel *p, int n);
/* Returns the values of the q functions of a panel at the n rows of a block (q x n), times the roots of row weights. */
const double *panel_rows(const struct panel *p, const struct block *b, double *work);

/* This sink computes the values Wt of the q functions of a panel at all rows, times the roots of the row weights. */
struct panel_values {
    struct panel panel;
    double *Wt; /* q x N */
};
struct sink panel_sink(const struct panel_values *self);

/* Computes K_zu = k(Z, U) (M x n_u) for inducing points Z, and T = L^{-1} K_zu W (M x q), with U and W of *aux. K_zu W
 * has the values at Z of the q functions of the auxiliary distribution. If z->L is NULL, T = K_zu W. */
void lowrank_points(const struct lowrank *aux, const struct inducing *z, double *K_zu,
                    double *T);

/* Adds to dZ (M x columns) the derivative in Z of an objective that depends on Z by K_zu W, the values at Z of the q
 * functions of aux. K_zu is k(Z, aux->U), W is aux->W, and Wm_bar (M x q) is the objective's derivative in K_zu W. */
void lowrank_pull(const struct lowrank *aux, const struct inducing *z, const double *K_zu,
                  const double *Wm_bar, struct arena *arena, double *dZ);
