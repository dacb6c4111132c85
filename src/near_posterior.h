#pragma once

/* The posterior is computed from the rows, each conditioned on inducing points and on earlier neighbours. Predictions
 * at new rows condition each on inducing points and on its nearest rows (near_field.h). */
#include "near_field.h"

/* Given the responses y_S of earlier neighbours S and whitened inducing variables v, a row's response y has mean u'y_S
 * + r'v and variance d. v has the posterior N(beta, (C C')^{-1}). The sums over rows are C C' = I + sum r r' / d and C
 * C' beta = sum r (y - u'y_S) / d. */
struct near_posterior {
    struct near_field field; /* its targets are the rows; neighbours have a lower rank */
    double *L, *C, *beta;
    double *d; /* conditional variances of the rows and their noise, d [N]; or NULL */
    double minus_log; /* minus the log density of the scaled y */
    double *sums;
};
/* Computes the posterior. The jitter of the inducing points may be raised up to most_jitter. */
enum status near_posterior_run(struct near_posterior *p, double most_jitter);

/* Predicts f at new rows. Given neighbours' responses y_S and whitened inducing variables v ~ N(beta, (C C')^{-1}), f
 * has mean u'y_S + r'v and variance var_near. So mean = u'y_S + r'beta; var_far = |C^{-1} r|^2 adds to the variance. */
struct near_predicting {
    struct near_field field; /* its targets are the new rows */
    const double *C, *beta;
    double *mean, *var_near, *var_far, failures;
};
enum status near_predicting_run(struct near_predicting *p);

/* Predicts like near_predicting_run(), and computes the joint covariance of f at the new rows x (n x n). Given
 * neighbours' responses y_S and whitened inducing variables v, f(x) has the mean u'y_S + r'v. Given v, the errors of
 * these means have the covariance W'(K + noise)W - R'R. R has a column r for each x. K is the kernel matrix of
 * `points`, the x and their neighbours. W has a column for each x: 1 at x, and -u times root weights at neighbours. */
struct near_joint {
    struct near_predicting at;
    double *covariance;
    /* near_joint_run() sets the elements below. For each x, W has the s + 1 nonzero entries of its column of W, and
     * `point` has the points that they belong to, -1 behind the last. */
    struct rows points;
    double *X, *noise, *W; /* noise: s2 / weight of a neighbour, 0 for an x */
    int *point;
};
enum status near_joint_run(struct near_joint *j);
