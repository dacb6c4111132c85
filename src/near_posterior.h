#pragma once

/* The posterior is computed from the rows, each conditioned on the inducing points and on its nearest neighbours among
 * earlier rows. A prediction conditions f at a new row on the inducing points and on the row's nearest neighbours. */
#include "near_field.h"

/* Given the responses y_S of earlier neighbours S and whitened inducing variables v, a row's response y has the mean
 * u'y_S + r'v (coefficients u and r) and the variance d. The posterior of v is N(beta, (C C')^{-1}), with the sums over
 * rows C C' = I + sum r r' / d and C C' beta = sum r (y - u'y_S) / d. */
struct near_posterior {
    struct near_field field; /* its targets are the rows; neighbours have a lower rank */
    double *L, *C, *beta;
    double *d; /* conditional variances of the rows and their noise, d [N]; or NULL */
    double minus_log; /* minus the log density of y times the roots of weights */
    double *sums;
};
/* Computes L, C, beta, d and minus_log. The jitter of the inducing points may be raised up to most_jitter. */
enum status near_posterior_run(struct near_posterior *p, double most_jitter);

/* Predicts f at new rows. Given the neighbours' responses y_S and whitened inducing variables v ~ N(beta, (C C')^{-1}),
 * f has mean u'y_S + r'v and variance var_near. Without v given, the mean is u'y_S + r'beta, and the variance is
 * var_near + var_far with var_far = |C^{-1} r|^2. */
struct near_predicting {
    struct near_field field; /* its targets are the new rows */
    const double *C, *beta;
    double *mean, *var_near, *var_far, failures;
};
enum status near_predicting_run(struct near_predicting *p);

/* Predicts f at n new rows like near_predicting_run(), and computes its joint covariance (n x n). K is the kernel
 * matrix of `points`: the new rows and their neighbours. A column of W has 1 at a new row, and at its neighbours minus
 * their coefficients u in the mean, times their root weights. Column r of R (M x n) has the coefficients of whitened
 * inducing variables v. Given v, the errors of the means have the covariance W'(K + noise)W - R'R. */
struct near_joint {
    struct near_predicting at;
    double *covariance;
    /* near_joint_run() sets the elements below. For each new row, W has s + 1 coefficients: 1 for the row itself, then
     * those of its s neighbours in the error of its mean. `point` has the numbers of these rows in `points`. If there
     * are fewer than s neighbours, -1 follows. */
    struct rows points;
    double *X, *noise, *W; /* noise variance / weight of a neighbour, 0 for a new row */
    int *point;
};
enum status near_joint_run(struct near_joint *j);
