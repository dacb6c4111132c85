#pragma once

/*
 * Local kriging: weights w on a few rows S, the same rows for a group of near points,
 *
 *     w = (K_SS + s2 I)^{-1} k(S, x),   J = k(x,x) - 2 w'k(X, x) + w'(K + s2 I) w,
 *     h = k(X, x) - (K + s2 I) w
 *
 * with the rows' scales in K, k(X, x) and w.  J reads only S; h is computed on all rows, by block.
 * Bounds from J and h hold for any w, so an inexact solve does no harm.
 */
#include <stddef.h>
#include "block.h"
#include "kernel.h"

struct kriging {       /* the numbers of one x, as computed */
    double J;          /* as above */
    double wh, ww, w1; /* w'h, |w|^2, sum over S of scale |w| */
};

/* Weights of g points: K (n_c x n_c) = K_SS and k_S (n_c x g) = k(S, x), scaled; k_most >= the
 * diagonal of K; prior: [g].  Where K + s2 I cannot be factored, weights of a larger s2.
 * scale: [n_c] or NULL.  W: n_c x g.  scratch: kriging_size(n_c, g) */
size_t kriging_size(int n_c, int g);
void kriging_weights(int n_c, int g, double s2, double k_most, const double *K,
                     const double *k_S, const double *scale, const double *prior,
                     double *work, double *W, struct kriging *point);

/* H (n x g) <- H - (K + s2 I) w on the n rows of a block, whose first row is row `first`.  H is
 * k(X_b, x) before.  K_b (n x n_c) = k(X_b, S), all scaled; S: numbers of the rows */
void kriging_rows(int n, int n_c, int g, double s2, const double *K_b, int first,
                  const int *S, const double *W, double *H);

/* Aw (M x g) += A_b w_b for the same block, A_b (M x n) */
void kriging_whiten(int M, int n, int n_c, int g, const double *A_b, int first,
                    const int *S, const double *W, double *Aw);
