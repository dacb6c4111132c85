#ifndef PFDTC_OBJECTIVE_H
#define PFDTC_OBJECTIVE_H

/*
 * One table: an objective is a row of it, by which finished sums become a value and their
 * adjoints.  An evaluation is the sums of a first pass, the objective, and the adjoints meeting
 * the rows in a second.
 */
#include "gradient.h"
#include "pass.h"
#include "pf.h"
#include "stats.h"

/* what an objective reads */
struct summary {
    const struct inducing *z;
    struct stats stats;
    const struct lowrank *aux; /* NULL where the objective has none */
    const double *T;           /* M x q: L^{-1} [b(Z), mu(Z)] */
    const double *W0;          /* M x M: A K A', where aux has p = 1 */
    double share;              /* of white noise: its variance over s2 */
    /* what `factor` leaves to `value`: with residuals those of the posterior, and N of white noise */
    double *C, *beta, *N;
    struct pf_terms pf;
};

struct objective {
    const char *name;
    int with_aux;       /* sums of an auxiliary distribution's values? */
    int with_residuals; /* value wants |y - A'beta|^2 */
    int with_theta;     /* a gradient in the hyperparameters too */
    /* adjoints of the sums where `adjoint` is not NULL (all zero then), and what value reads */
    enum status (*factor)(struct summary *s, struct arena *arena,
                          struct adjoint *adjoint);
    /* rss is read with_residuals; slope: in log s2, where not NULL */
    double (*value)(const struct summary *s, double rss, struct arena *arena,
                    double *slope);
};

/* The objective of that name ("vfe", "white", "pf"), or NULL. */
const struct objective *objective_named(const char *name);

struct evaluation {
    const struct objective *objective;
    struct inducing z;
    struct source rows;
    struct pass pass;
    struct panel panel;
    struct summary summary;
    int with_gradient;
    struct adjoint adjoint;
    /* laid out by evaluation_begin() */
    struct summing summing;
    struct pairing pairing;
    struct pulling pulling;
    double *L, *T, *K_zu, *sums, *W0, *AK, *adjoint_memory, *gradient;
};

/* z (without L), rows, panel, objective, with_gradient, pass.plan and summary.share are there.
 * All that follows in its order, for rows that are all at hand: value, and slope in log s2 with a
 * gradient.  The value is finite where that works. */
enum status evaluation_run(struct evaluation *e, double *value, double *slope);

/* memory, L, and T of the auxiliary distribution: before all that follows */
enum status evaluation_begin(struct evaluation *e);
/* rows -> sums, as summary.stats reads them, and W0 */
enum status evaluation_sums(struct evaluation *e);
/* summary -> state, adjoint */
enum status evaluation_factor(struct evaluation *e);
/* adjoint, rows -> gradient (dZ, dtheta, rss: gradient_size()), the part of the rows, which adds up
 * over them; without a gradient rss alone */
void evaluation_gradient(struct evaluation *e);
/* the rest of it: that of the points, and of sum k(x, x) w over all rows */
void evaluation_points(struct evaluation *e, double k_sum);
/* slope: NULL, or in log s2 */
double evaluation_value(struct evaluation *e, double rss, double *slope);
/* rss of the second pass */
double evaluation_rss(const struct evaluation *e);
/* the same by the sums, with less digits near interpolation; 0 where the value does not read it */
double evaluation_rss_of_sums(const struct evaluation *e);

/* The adjoint as one vector, for gradients elsewhere, to what has begun: what adjoint_init() lays
 * out, beta (0 without one), k_bar. */
size_t evaluation_adjoint_size(const struct evaluation *e);
void evaluation_adjoint_to(const struct evaluation *e, double *vector);
void evaluation_adjoint_from(struct evaluation *e, const double *vector);

#endif
