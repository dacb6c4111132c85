#pragma once

/*
 * Laplace's approximation for one of K classes a row, on inducing points, whitened.  With orthonormal contrasts
 * C (K x q, q = K - 1, C'1 = 0) and one kernel for all classes,
 *
 *     f = C phi + b,  phi_j = A'u_j,  u_j ~ N(0, I),  p = softmax(f),  l = w (f_y - log sum exp f),
 *     g = w C'(e_y - p) [q],  W = w C'(diag p - p p')C [q x q] at a row,
 *     Psi = -sum l + |u|^2 / 2,  r_j = u_j - A g_j,  H_jk = [j = k] I + A diag(W_jk) A',
 *     log Z = -Psi - log det H / 2,   F = log Z - sum log det(I + E_nn W_n) / 2.
 *
 * Psi is 1-strongly convex.  Symmetric blocks jk of a matrix are kept for j >= k, see pair_of().
 */
#include "newton.h"
#include "pass.h"

struct softmax {
    struct inducing z;
    struct pass *pass;
    int K, q;
    const double *y, *weight; /* [N] the class of each row, from 0; weights or NULL */
    const double *center, *contrasts; /* b [K], C (K x q) */
    double *p;                        /* N x K */
    double *left, *S;   /* E_nn [N]; N x q x q: a'(H^{-1})_jk a at the rows */
    double *s;          /* q x N: slopes of F in phi through W at a fixed u */
    struct newton mode; /* of M x q unknowns */
    enum {
        FACTOR_NONE,
        FACTOR_EARLIER,
        FACTOR_HERE
    } factor;        /* C belongs to no H, to that of an earlier u, or to that of u */
    double *inverse; /* symmetric parts of the blocks of H^{-1} for j >= k, each M x M */
    double penalty;
    double near;  /* the decrement from which on each step has its own H */
    double *sums; /* set by softmax_open() */
    double *bar;  /* M x block, kept blocks: the part of Abar from H^{-1} */
};

static inline int pair_of(int j, int k)
{
    return j * (j + 1) / 2 + k;
}

/* Scratch of a block: p (K x n), C'p (q x n), g (q x n), and further scratch */
struct class_rows {
    double *p, *mean, *g, *rest;
};
/* Divides scratch among them; `rest` follows. */
struct class_rows class_rows_in(const struct softmax *l, int n, double *work);
/* Computes C'p and g of row i of a block, `row` of all, from its p. */
void class_rows_complete(const struct softmax *l, int row, int i, struct class_rows *r);
/* Returns the scratch of a block whose p is in l->p. */
struct class_rows class_rows_again(const struct softmax *l, const struct visit *v,
                                   double *work);
/* Computes p [K] of a row from phi [q], and returns its l. */
double class_row(const struct softmax *l, int row, const double *phi, double *p);
double class_weight(const struct softmax *l, int row);
/* Computes C'x for x [K]. */
void class_contrasts(const struct softmax *l, const double *x, double *y);
/* Computes W_jk at the rows of a block. */
void class_curvature(const struct softmax *l, const struct visit *v,
                     const struct class_rows *r, int j, int k, double *W);
