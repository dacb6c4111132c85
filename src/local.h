#pragma once

/*
 * Local kriging predicts f at all points x of a group from the responses of the same n_c rows S, with weights w:
 *
 *     w = (K_SS + s2 I)^{-1} k(S, x),   J = k(x,x) - 2 w'k(X, x) + w'(K + s2 I) w,
 *     h = k(X, x) - (K + s2 I) w,
 *
 * with the rows' scales in K, k(X, x) and w, and w = 0 outside S. J needs only the rows S; h uses all rows, by blocks;
 * certificates need sums of h. Bounds from J and h hold for any w, so an inexact solve does no harm. Computing h takes
 * kernel values of all N rows with all rows that are in some S, and 2 N (n_c + M) flops for each x.
 */
#include "certify.h"
#include "pass.h"

struct kriging { /* of one x: J, w'h, |w|^2, sum over S of scale |w|, as computed */
    double J, wh, ww, w1;
};

/* Functionals of f that replace f at the new rows, unless cross is NULL.  cross: covariances with f at the rows (N
 * x n_new); features: covariances with the whitened inducing variables (M x n_new); prior: variances; size: see
 * certify.h; terms: number of kernel values that are summed in an entry of cross. */
struct functionals {
    const double *cross, *features, *prior, *size;
    int terms;
};

struct local {
    const struct posterior *posterior;
    const struct norms *norms;
    struct source rows; /* data */
    /* the rows of the data that are in some S, selected by near.order */
    struct source near;
    struct block rows_new; /* new rows, in the order of their groups */
    struct functionals of;
    int n_c, n_groups;
    const int *start;      /* first new row of each group [n_groups + 1] */
    const int *member;     /* S as places in near.order, n_c x n_groups */
    int *S;                /* S as rows of the data, from 0; the caller's memory */
    struct kriging *point; /* [n_new] the caller's memory */
    struct pass pass;
    struct block near_rows;
    double *W;    /* weights, n_c x n_new; the caller's memory */
    double *sums; /* A h, A w (M x n_new each), |h|^2 [n_new] */
};

/* local_run() computes l->W, the bounds J, q, var_lower and var_upper, and ww = |w|^2, [n_new] each.  The caller sets
 * the elements of l down to `point`, W and pass.plan. */
struct local_bounds {
    double *J, *q, *ww, *var_lower, *var_upper;
};
void local_run(struct local *l, const struct local_bounds *to);
