#pragma once

/*
 * Local kriging: weights w on a few rows S, the same rows for a group of near points x,
 *
 *     w = (K_SS + s2 I)^{-1} k(S, x),   J = k(x,x) - 2 w'k(X, x) + w'(K + s2 I) w,
 *     h = k(X, x) - (K + s2 I) w
 *
 * with the rows' scales in K, k(X, x) and w.  J reads only S; h is computed on all rows, by block, and summed for
 * certificates.  Bounds from J and h hold for any w, so an inexact solve does no harm.  It takes N |near| kernel
 * values, near being the rows of all S, and 2 N (n_c + M) flops for each new row.
 */
#include "certify.h"
#include "pass.h"

struct kriging { /* the numbers of one x, as computed; w1: sum over S of scale |w| */
    double J, wh, ww, w1;
};

/* Functionals of f in the place of its values at the new rows, unless cross is NULL: covariances with the rows
 * (N x n_new) and with the whitened inducing points (M x n_new), prior variances, sizes, terms of an entry of cross. */
struct functionals {
    const double *cross, *features, *prior, *size;
    int terms;
};

struct local {
    const struct posterior *posterior;
    const struct norms *norms;
    struct source rows;    /* of the data */
    struct source near;    /* the rows of the data that are in some S, by their numbers */
    struct block rows_new; /* in the order of their groups */
    struct functionals of;
    int n_c, n_groups;
    const int *start;  /* [n_groups + 1] the group's new rows */
    const int *member; /* n_c x n_groups: S as places in near.order */
    int *S;            /* n_c x n_groups: S as rows of the data, from 0: room for it */
    struct kriging *point; /* [n_new] room */
    struct pass pass;
    struct block near_rows;
    double *W;    /* n_c x n_new weights, the caller's */
    double *sums; /* A h, A w (M x n_new each), |h|^2 */
};

/* The caller sets all elements down to `point`, W and pass.plan. */
/* Computes W and the bounds J, q, ww, var_lower, var_upper, [n_new] each. */
struct local_bounds {
    double *J, *q, *ww, *var_lower, *var_upper;
};
void local_run(struct local *l, const struct local_bounds *to);
