#pragma once

/* An objective is a function of inducing points Z and hyperparameters that is minimised. It computes a value and its
 * derivatives in sums over rows (stats.h). An evaluation has three steps: a pass for the sums, the objective, and a
 * pass for the gradient in Z and hyperparameters. */
#include "pass.h"
#include "pf.h"
#include "stats.h"

/* A summary has the inputs of an objective, and results of its function `factor`. */
struct summary {
    const struct inducing *z;
    struct stats stats;
    const struct lowrank *aux; /* NULL if the objective has none */
    const double *T;           /* M x q: L^{-1} [b(Z), mu(Z)] */
    const double *W0;          /* M x M: A K A', if aux has p = 1 */
    double share;              /* variance of white noise divided by s2 */
    /* `factor` computes C and beta of the posterior if with_residuals, N = (s2 I + G)^{-1} G (G of stats) for "white",
     * and, with adjoints, trace = tr (s2 I + G)^{-1} for "vfe" */
    double *C, *beta, *N, trace;
    double pf; /* the value of the pF objective */
};

struct objective {
    const char *name;
    int with_aux;       /* 1 if it reads sums of an auxiliary distribution's values */
    int with_residuals; /* 1 if its value reads rss = |y - A'beta|^2 */
    int with_theta;     /* 1 if it has a gradient in the hyperparameters */
    /* Computes what value() reads. Unless `adjoint` is NULL, adds the value's derivatives in the sums to it. */
    enum status (*factor)(struct summary *s, struct arena *arena,
                          struct adjoint *adjoint);
    /* Returns the value. If with_residuals, it reads rss, the residual sum of squares. Unless slope is NULL, *slope
     * becomes the derivative in log s2. */
    double (*value)(const struct summary *s, double rss, double *slope);
};

/* Returns the objective with a name ("vfe", "white", "pf"), or NULL. */
const struct objective *objective_named(const char *name);

struct evaluation {
    const struct objective *objective;
    struct inducing z;
    double most_jitter; /* the jitter of z may be raised up to this value */
    struct source rows;
    struct pass pass;
    struct panel panel;
    struct summary summary;
    int with_gradient;
    struct adjoint adjoint;
    /* evaluation_begin() sets these. AK has A k(X, X_b) (M x block), A = L^{-1} k(Z, X), for blocks b kept in memory */
    double *L, *T, *K_zu, *sums, *W0, *AK, *adjoint_memory, *gradient;
};

/* Runs the steps below for rows in memory. Computes value (finite if STATUS_OK) and, with a gradient, slope = dvalue /
 * dlog s2. The caller sets z (without L), rows, panel, objective, with_gradient, pass.plan, summary.share. */
enum status evaluation_run(struct evaluation *e, double *value, double *slope);

/* Allocates memory, and computes L with L L' = k(Z, Z) + jitter, and aux at Z. It must be the first step. */
enum status evaluation_begin(struct evaluation *e);
/* Computes the sums over rows, summary.stats and summary.W0. */
enum status evaluation_sums(struct evaluation *e);
enum status evaluation_factor(struct evaluation *e);
/* Computes the sums over rows that are parts of the gradient in Z and hyperparameters, and the residual sum of squares.
 * Without a gradient it computes the latter alone. */
void evaluation_gradient(struct evaluation *e);
/* Adds parts of the gradient: from k(Z, Z), from aux at Z and, if k(x, x) is constant, from k_sum, its weighted sum. */
void evaluation_points(struct evaluation *e, double k_sum);
/* Returns the residual sum of squares that evaluation_gradient() has computed. */
double evaluation_rss(const struct evaluation *e);
/* Returns the residual sum of squares from evaluation_sums(), inexact if residuals are small, or 0 if not needed. */
double evaluation_rss_of_sums(const struct evaluation *e);

/* Computes the derivative of an objective in k(Z, X_b), Kmx_bar (M x n) = (H A + F Wt + f e' + E AK) diag(scale), with
 * e = y - A'beta and H, F, f, E, beta of `adjoint`. Wt (q x n), the functions of aux at the rows, is read if q > 0, and
 * AK = A k(X, X_b) (M x n) if E is not NULL. Returns |e|^2. work: n */
double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar);

/* Returns the number of doubles of evaluation.adjoint_memory, which is all that other processes need for gradients. */
size_t evaluation_adjoint_size(const struct evaluation *e);
