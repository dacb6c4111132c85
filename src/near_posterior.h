#pragma once

/* The functions below compute the posterior on inducing points from rows, each conditioned on earlier neighbours. They
 * predict at new rows, each conditioned on its nearest neighbours (near_field.h). */
#include "near_field.h"

/* The posterior: C C' = I + sum a~a~', beta = (C C')^{-1} sum a~y~ over the rows, with (near.h) a~ = r / sqrt(d),
 * y~ = (y - u'y_S) / sqrt(d), d = left + s2. */
struct near_posterior {
    struct near_field field; /* its targets are the rows; neighbours have a lower rank */
    double *L, *C, *beta;
    double *d; /* conditional variances of the rows and their noise, d [N]; or NULL */
    double minus_log; /* minus the log density of the scaled y */
    double *sums;
};
/* The jitter of the inducing points may be raised up to most_jitter. */
enum status near_posterior_run(struct near_posterior *p, double most_jitter);

/* Predicts at new rows: mean = u'y_S + r'beta, variance = var_near + var_far = left + |C^{-1} r|^2 (near.h). */
struct near_predicting {
    struct near_field field; /* its targets are the new rows, without ranks */
    const double *C, *beta;
    double *mean, *var_near, *var_far, failures;
};
enum status near_predicting_run(struct near_predicting *p);

/*
 * Predicts like near_predicting, and computes the joint covariance of f (n x n).  Given whitened inducing variables v,
 * f(x) - u'y_S - r'v has the covariance W'(K + noise)W - R'R, where r is a column of R.  Column x of W is 1 at x, -u at
 * neighbours, times the roots of their weights.  K is the kernel matrix of `points`: the x and their neighbours.
 */
struct near_joint {
    struct near_predicting at;
    double *covariance;
    /* Set by near_joint_run().  W and point have s + 1 numbers for each x: the entries of its column of W, and the
     * points of these entries, -1 behind the last. */
    struct rows points;
    double *X, *noise, *W; /* noise: s2 / weight of a neighbour, 0 for an x */
    int *point;
};
enum status near_joint_run(struct near_joint *j);
