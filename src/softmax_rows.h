#pragma once

/* Laplace's approximation for a response y with K classes, on whitened inducing points. With orthonormal contrasts C (K
 * x q, q = K - 1, C'1 = 0), one kernel for all classes, A = L^{-1} k(Z, X), row weights w, and unit vectors e_y:
 *
 *     f = C phi + b,  phi_j = A'u_j,  u_j ~ N(0, I),  p = softmax(f),  l = w (f_y - log sum exp f),
 *     g = w C'(e_y - p) [q],  W = w C'(diag p - p p')C [q x q] at a row,
 *     Psi = -sum l + |u|^2 / 2,  r_j = u_j - A g_j,  H_jk = [j = k] I + A diag(W_jk) A',
 *     log Z = -Psi - log det H / 2,   F = log Z - sum log det(I + E_nn W_n) / 2.
 *
 * Psi is 1-strongly convex. A matrix with symmetric blocks jk is stored as the blocks j >= k; pair_of() returns their
 * places. Learning maximises F, in which E_nn is the residual prior variance of row n. */
#include "newton.h"
#include "pass.h"

/* These are predictions at N rows X. For A = L^{-1} k(Z, X) and coefficients u (M x n_u), mean = A'u (N x n_u). For
 * each column a of A, S has the covariances a'(H^{-1})_jk a (N x q x q), and `left` the residual prior variance [N].
 * `inverse` has the symmetric parts of the blocks j >= k of H^{-1}, M x M each, for the Hessian H at the mode. */
struct softmax_at {
    const struct inducing *z;
    int q, n_u, N;
    const double *u, *inverse;
    double *mean, *S, *left;
};

struct softmax {
    struct inducing z;
    struct pass *pass;
    int K, q;
    const double *y, *weight; /* classes of the rows [N], from 0; weights or NULL */
    const double *center, *contrasts; /* b [K]; C (K x q) */
    double *p;                        /* class probabilities, K x N */
    struct softmax_at at;             /* at the rows, without means */
    double *s;          /* q x N: derivatives of F in phi through W, at a fixed u */
    double *zeta;       /* H^{-1} A s (M x q) */
    struct newton mode; /* M x q unknowns */
    enum {
        FACTOR_NONE,
        FACTOR_EARLIER,
        FACTOR_HERE
    } factor; /* C has no factor, the factor of H at an earlier u, or the factor of H at u */
    double *inverse; /* at.inverse, as a result */
    double near;     /* decrement below which each step has its own H */
    double *sums;    /* allocated by softmax_open() */
    double *bar; /* -sum_jk (H^{-1})_jk A W_jk, M x block for each kept block (pass.h) */
};

static inline int pair_of(int j, int k)
{
    return j * (j + 1) / 2 + k;
}

/* For the n rows of a block: class probabilities p (K x n, a part of l->p), mean = C'p (q x n), derivatives g (q x n)
 * of the log likelihoods in phi, f = C phi + b (contrasts C, constant means b), and `rest`, scratch memory. */
struct class_rows {
    double *p, *mean, *g, *rest;
};
/* Returns the arrays of a block: p within l->p, and the others within `work`. */
struct class_rows class_rows_in(const struct softmax *l, const struct visit *v,
                                double *work);
/* Computes r->mean and r->g for row i of a block (number `row` of all rows) from its class probabilities r->p. */
void class_rows_complete(const struct softmax *l, int row, int i, struct class_rows *r);
/* Returns the arrays of a block. Computes mean = C'p and the derivatives g from its class probabilities in l->p. */
struct class_rows class_rows_again(const struct softmax *l, const struct visit *v,
                                   double *work);
/* Computes a row's class probabilities p [K] for f = C phi + b (contrasts C, means b). Returns its log likelihood. */
double class_row(const struct softmax *l, int row, const double *phi, double *p);
/* Computes y [q] = C'x for x [K] and the contrasts C (K x q). */
void class_contrasts(const struct softmax *l, const double *x, double *y);
/* Computes W [n] = -d2l / dphi_j dphi_k of a block's log likelihoods l, where f = C phi + b (b: constant means). */
void class_curvature(const struct softmax *l, const struct visit *v,
                     const struct class_rows *r, int j, int k, double *W);
