#pragma once

/* The posterior on inducing points from rows that are each conditioned on earlier ones, and
 * predictions at new rows, each conditioned on its nearest rows (near_field.h). */
#include "joint.h"
#include "near_field.h"

/* C C' = I + sum a~a~', beta = (C C')^{-1} sum a~y~ over the rows */
struct near_posterior {
    struct near_field field; /* its targets are the rows, with ranks       */
    struct model *model;     /* the model of the points, whose jitter may be raised */
    double *L, *C, *beta;
    double *d;        /* of every row, or NULL                     */
    double minus_log; /* - log density of the scaled y             */
    double *sums;
};
enum status near_posterior_run(struct near_posterior *p, double most_jitter);

/* Predicts means and both parts of the variances at new rows. */
struct near_predicting {
    struct near_field field; /* targets are the new rows, no ranks */
    const double *C, *beta;
    double *mean, *var_near, *var_far, failures;
};
enum status near_predicting_run(struct near_predicting *p);

/* Predicts the same with the joint covariance of f (n x n). */
struct near_joint {
    struct near_predicting at;
    double *covariance;
    struct joint joint;
};
enum status near_joint_run(struct near_joint *j);
