#pragma once

/*
 * The table of objectives.  A row turns finished sums into a value and the adjoints of the sums.  An
 * evaluation has three steps: a pass for the sums, the objective, and a pass that multiplies the
 * adjoints with the rows.
 */
#include "gradient.h"
#include "pass.h"
#include "pf.h"
#include "stats.h"

/* The numbers that an objective reads. */
struct summary {
    const struct inducing *z;
    struct stats stats;
    const struct lowrank *aux; /* NULL if the objective has none */
    const double *T;           /* M x q: L^{-1} [b(Z), mu(Z)] */
    const double *W0;          /* M x M: A K A', if aux has p = 1 */
    double share;              /* variance of white noise over s2 */
    /* from `factor` to `value`: C and beta of the posterior with_residuals, N for white noise */
    double *C, *beta, *N;
    struct pf_terms pf;
};

struct objective {
    const char *name;
    int with_aux;       /* Does it read sums of an auxiliary distribution's values? */
    int with_residuals; /* Does its value read |y - A'beta|^2? */
    int with_theta;     /* Has it a gradient in the hyperparameters? */
    /* Prepares `value`, and computes the adjoints of the sums unless `adjoint` (zeros before) is NULL. */
    enum status (*factor)(struct summary *s, struct arena *arena,
                          struct adjoint *adjoint);
    /* Returns the value.  It reads rss if with_residuals.  slope: derivative in log s2, or NULL */
    double (*value)(const struct summary *s, double rss, struct arena *arena,
                    double *slope);
};

/* Returns the objective with a name ("vfe", "white", "pf"), or NULL. */
const struct objective *objective_named(const char *name);

struct evaluation {
    const struct objective *objective;
    struct inducing z;
    struct model
        *model; /* of z: its jitter may be raised to most_jitter; NULL: it is kept */
    double most_jitter;
    struct source rows;
    struct pass pass;
    struct panel panel;
    struct summary summary;
    int with_gradient;
    struct adjoint adjoint;
    /* evaluation_begin() lays out the elements below */
    struct summing summing;
    struct pairing pairing;
    struct pulling pulling;
    double *L, *T, *K_zu, *sums, *W0, *AK, *adjoint_memory, *gradient;
};

/* Runs all steps below for rows in memory: the value and, with a gradient, the slope in log s2.  The caller sets
 * z (without L), rows, panel, objective, with_gradient, pass.plan and summary.share.  The value is finite if the
 * status is STATUS_OK. */
enum status evaluation_run(struct evaluation *e, double *value, double *slope);

/* Lays out the memory and computes L and T.  Every step below needs this one. */
enum status evaluation_begin(struct evaluation *e);
/* Computes summary.stats and W0 from the rows. */
enum status evaluation_sums(struct evaluation *e);
/* Computes the state and the adjoint from the summary. */
enum status evaluation_factor(struct evaluation *e);
/* Computes the part of the gradient that is a sum over rows (dZ, dtheta, rss: gradient_size()) from the adjoint;
 * without a gradient only rss. */
void evaluation_gradient(struct evaluation *e);
/* Adds the parts of the gradient that come from the points and from k_sum of all rows. */
void evaluation_points(struct evaluation *e, double k_sum);
/* Returns the value.  slope: derivative in log s2, or NULL */
double evaluation_value(struct evaluation *e, double rss, double *slope);
/* Returns rss as summed over the rows by evaluation_gradient(). */
double evaluation_rss(const struct evaluation *e);
/* Returns rss from the sums of evaluation_sums(), with fewer digits near interpolation; 0 if the objective needs no
 * rss. */
double evaluation_rss_of_sums(const struct evaluation *e);

/* Returns the doubles of adjoint_memory, which have all that gradients in other processes read. */
size_t evaluation_adjoint_size(const struct evaluation *e);
