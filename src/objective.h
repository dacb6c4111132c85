#pragma once

/*
 * The table of objectives.  An objective computes, from the sums of stats.h, a value and its derivatives in these sums.
 * An evaluation has three steps: a pass for the sums, the objective, and a pass for the gradient in Z and parameters.
 */
#include "pass.h"
#include "pf.h"
#include "stats.h"

/* The inputs of an objective, and results of its factor(). */
struct summary {
    const struct inducing *z;
    struct stats stats;
    const struct lowrank *aux; /* NULL if the objective has none */
    const double *T;           /* M x q: L^{-1} [b(Z), mu(Z)] */
    const double *W0;          /* M x M: A K A', if aux has p = 1 */
    double share;              /* variance of white noise divided by s2 */
    /* results of `factor`, read by `value`: C and beta of the posterior if with_residuals; N for white noise; with
     * adjoints, trace = tr (s2 I + G)^{-1} for the ELBO */
    double *C, *beta, *N, trace;
    double pf; /* the value of the pF objective */
};

struct objective {
    const char *name;
    int with_aux;       /* 1 if it reads sums of an auxiliary distribution's values */
    int with_residuals; /* 1 if its value reads rss = |y - A'beta|^2 */
    int with_theta;     /* 1 if it has a gradient in the hyperparameters */
    /* Prepares `value`.  Unless `adjoint` is NULL, also computes the adjoints of the sums, which start at 0. */
    enum status (*factor)(struct summary *s, struct arena *arena,
                          struct adjoint *adjoint);
    /* Returns the value, which reads rss if with_residuals.  Unless NULL, slope gets the derivative in log s2. */
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
    /* set by evaluation_begin(); AK has A K (M x block) for each kept block */
    double *L, *T, *K_zu, *sums, *W0, *AK, *adjoint_memory, *gradient;
};

/* Runs all steps below for rows in memory. Computes the value and, with a gradient, the derivative `slope` in log s2.
 * The caller sets z (without L), rows, panel, objective, with_gradient, pass.plan and summary.share. With STATUS_OK
 * the value is finite. */
enum status evaluation_run(struct evaluation *e, double *value, double *slope);

/* Allocates memory, and computes L and T.  Every step below needs this step. */
enum status evaluation_begin(struct evaluation *e);
/* Computes summary.stats and W0 from the rows. */
enum status evaluation_sums(struct evaluation *e);
enum status evaluation_factor(struct evaluation *e);
/* Computes the part of the gradient that is a sum over rows, from the adjoint: dZ, dtheta and rss. Without a gradient
 * it computes rss alone. */
void evaluation_gradient(struct evaluation *e);
/* Adds the parts of the gradient that come from k(Z, Z) and, if k(x, x) is constant, from k_sum = sum k(x, x) w. */
void evaluation_points(struct evaluation *e, double k_sum);
/* Returns rss, summed over the rows by evaluation_gradient(). */
double evaluation_rss(const struct evaluation *e);
/* Returns rss from the sums of evaluation_sums(), which loses digits near interpolation; 0 if the objective needs
 * no rss. */
double evaluation_rss_of_sums(const struct evaluation *e);

/* Computes the adjoint of K = k(Z, X_b), Kmx_bar (M x n) = (H A + F W_x' + f e' + E A K) diag(scale), e = y - A'beta,
 * with the fields of `adjoint` (stats.h). Wt = W_x' (q x n) is read if q > 0, and AK = A K (M x n) if adjoint->E is
 * not NULL. Returns |e|^2. work: n */
double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar);

/* Returns the number of doubles in adjoint_memory, which is all that other processes need to compute gradients. */
size_t evaluation_adjoint_size(const struct evaluation *e);
