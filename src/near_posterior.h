#pragma once

/* The posterior on inducing points from rows that are each conditioned on earlier ones, and
 * predictions at new rows, each conditioned on its nearest rows (near_field.h). */
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

/*
 * Predicts the same with the joint covariance of f (n x n).  Given the inducing variables, the residual
 * f(x) - u'(y_S - A_S'.) has the covariance W'(K + noise)W - r'r~.  Column x of W is 1 at x and -u at its nearest
 * rows, times the roots of their weights.  K is over the points: the rows near any x, and the x.
 */
struct near_joint {
    struct near_predicting at;
    double *covariance;
    /* near_joint_run() sets the elements below.  W and point have s + 1 numbers for each x: the entries of its column,
     * and the point that each belongs to, -1 behind the last */
    struct rows points;
    double *X, *noise, *W; /* noise: s2 / weight of a row, 0 of an x */
    int *point;
};
enum status near_joint_run(struct near_joint *j);
