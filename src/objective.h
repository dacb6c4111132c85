#pragma once

/* An objective of inducing points Z and hyperparameters is minimised. Its evaluation has three steps: a pass for sums
 * over rows (stats.h), its value and derivatives in the sums, and a pass for its gradient in Z and hyperparameters. */
#include "pass.h"
#include "pf.h"
#include "stats.h"

struct evaluation;
struct objective {
    const char *name;
    int with_aux;       /* 1 if it reads sums of an auxiliary distribution's values */
    int with_residuals; /* 1 if its value reads rss = |y - A'beta|^2 */
    int with_theta;     /* 1 if it has a gradient in the hyperparameters */
    /* Computes fields of *e that value() reads. If e->with_gradient, adds the value's derivatives to e->adjoint. */
    enum status (*factor)(struct evaluation *e);
    /* Returns the value, which depends on the residual sum of squares rss if with_residuals. Unless slope is NULL, sets
     * *slope to the derivative in log s2. */
    double (*value)(const struct evaluation *e, double rss, double *slope);
};

/* Returns the objective with a name ("vfe", "white", "pf"), or NULL. */
const struct objective *objective_named(const char *name);

/* A is L^{-1} k(Z, X). The panel's auxiliary distribution has the covariance p k(x, x') + sum_j +-b_j(x) b_j(x') and
 * the mean mu(x). */
struct evaluation {
    const struct objective *objective;
    struct inducing z;
    double most_jitter; /* the jitter of z may be raised up to this value */
    struct source rows;
    struct pass pass;
    struct panel panel;
    /* for "white": variance of white noise, the auxiliary distribution, divided by s2 */
    double share;
    int with_gradient;
    struct stats stats;
    struct adjoint adjoint;
    /* evaluation_begin() allocates these. T is L^{-1} [b(Z), mu(Z)] (M x q) and, if p = 1, W0 is A k(X, X) A' (M x M).
     * AK has A k(X, X_b) (M x block) for blocks b kept in memory. */
    double *L, *T, *K_zu, *sums, *W0, *AK, *adjoint_memory, *gradient;
    /* With G = A A', `factor` computes the posterior's C and beta if with_residuals, N = (s2 I + G)^{-1} G for "white",
     * trace = tr (s2 I + G)^{-1} for "vfe" with a gradient, and the value of "pf". */
    double *C, *beta, *N, trace, pf;
};

/* Evaluates the objective for rows in memory: its value (finite if STATUS_OK) and, with a gradient, the slope in log
 * s2. The caller sets z (without L), rows, panel, objective, with_gradient, pass.plan and share. */
enum status evaluation_run(struct evaluation *e, double *value, double *slope);

/* Allocates memory, and computes L with L L' = k(Z, Z) + jitter, and aux at Z. This step is the first. */
enum status evaluation_begin(struct evaluation *e);
/* Computes `stats`, sums over rows, and W0 = A k(X, X) A', A = L^{-1} k(Z, X), if the covariance of aux has k. */
enum status evaluation_sums(struct evaluation *e);
/* Computes evaluation_rss(), the residual sum of squares, and if with_gradient the gradient's sums over rows. */
void evaluation_gradient(struct evaluation *e);
/* Adds the gradient's parts that are no sums over rows: from k(Z, Z), from aux at Z and, if k(x, x) is constant, from
 * k_sum, the weighted sum of k(x, x) over rows. */
void evaluation_points(struct evaluation *e, double k_sum);
double evaluation_rss(const struct evaluation *e);
/* Returns the residual sum of squares (0 if not needed) as a difference of sums, inexact if residuals are small. */
double evaluation_rss_of_sums(const struct evaluation *e);

/* Computes Kmx_bar (M x n) = (H A + F Wt + f e' + E AK) diag(scale), an objective's derivative in k(Z, X_b) of block b.
 * `adjoint` has H, F, f, E (derivatives in sums over rows) and beta. A is L^{-1} k(Z, X_b) diag(scale), with roots of
 * weights as scale; e = y - A'beta. Wt (q x n) has the functions of aux at the rows (if q > 0), AK is A k(X, X_b) (if E
 * is not NULL). Returns |e|^2. work: n */
double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar);

/* Returns the number of doubles of evaluation.adjoint_memory, which a process needs to compute part of a gradient. */
size_t evaluation_adjoint_size(const struct evaluation *e);
