#pragma once

/* Local kriging predicts f at each point x of a group by w'y, with weights w that are 0 outside n_c rows S:
 *
 *     w = (K_SS + s2 I)^{-1} k(S, x),   J = k(x,x) - 2 w'k(X, x) + w'(K + s2 I) w,
 *     h = k(X, x) - (K + s2 I) w.
 *
 * The roots of the rows' weights multiply K = k(X, X), k(X, x) and y. J is the error variance of w'y, and needs only
 * the rows S. The residual h uses all rows, by blocks; bounds on the exact posterior variance (certify.h) need sums of
 * h. They hold for any w, so rounding errors of w do no harm. For M inducing points, computing h takes kernel values of
 * all N rows with the rows S of all groups, and 2 N (n_c + M) operations for each x. */
#include "certify.h"
#include "pass.h"

/* If cross is not NULL, linear functionals of f take the place of f at the new rows. They have the covariances cross (N
 * x n_new) with f at the rows, the covariances features (M x n_new) with the whitened inducing variables, and the
 * variances prior. Rounding errors are relative to size >= prior. An entry of cross sums `terms` kernel values. */
struct functionals {
    const double *cross, *features, *prior, *size;
    int terms;
};

struct local {
    const struct posterior *posterior;
    const struct norms *norms;
    struct source rows; /* data */
    /* near.order has the numbers of all data rows that are neighbours of some group */
    struct source near;
    struct block rows_new; /* new rows, in the order of their groups */
    struct functionals of;
    int n_c, n_groups;
    const int *start;  /* first new row of each group [n_groups + 1] */
    const int *member; /* rows S of each group as places in near.order, n_c x n_groups */
    int *S;            /* the same as rows of the data, from 0; the caller's memory */
    struct kriged *point; /* sums at each new row [n_new]; the caller's memory */
    struct pass pass;
    struct block near_rows;
    double *W;    /* weights, n_c x n_new; the caller's memory */
    double *sums; /* A h, A w (M x n_new each; A = L^{-1} k(Z, X)), |h|^2 [n_new] */
};

/* local_run() computes the kriging weights w (l->W) of each new row, and for each new row: J >= error variance of w'y,
 * q >= J minus the exact GP's variance, bounds on that variance, and ww = |w|^2. The caller sets W, pass.plan and the
 * fields before `pass`. */
struct local_bounds {
    double *J, *q, *ww, *var_lower, *var_upper;
};
void local_run(struct local *l, const struct local_bounds *to);
