#ifndef PFDTC_NEAR_POSTERIOR_H
#define PFDTC_NEAR_POSTERIOR_H

/* What near fields are for: the posterior on the points, of rows each beside earlier ones, and
 * predictions of new rows, each beside its nearest. */
#include "joint.h"
#include "near_field.h"

/* C C' = I + sum a~a~', beta = (C C')^{-1} sum a~y~ over the rows */
struct near_posterior {
    struct near_field field; /* targets are its rows, and ranks are there */
    struct model *model;     /* that of the points: its jitter may grow   */
    double *L, *C, *beta;
    double *d;        /* of every row, or NULL                     */
    double minus_log; /* - log density of the scaled y             */
    double *sums;
};
enum status near_posterior_run(struct near_posterior *p, double most_jitter);

/* means of new rows, and both parts of their variances */
struct near_predicting {
    struct near_field field; /* targets are the new rows, no ranks */
    const double *C, *beta;
    double *mean, *var_near, *var_far, failures;
};
enum status near_predicting_run(struct near_predicting *p);

/* and the covariance of f at all of them (n x n) */
struct near_joint {
    struct near_predicting at;
    double *covariance;
    struct joint joint;
};
enum status near_joint_run(struct near_joint *j);

#endif
