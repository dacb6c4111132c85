#pragma once

/* norms_run() bounds norms that certificates need, in time linear in N. Let A = L^{-1} k(Z, X), L L' = k(Z, Z), E = K -
 * A'A (the residual prior covariance of the rows X), |v|_E^2 = v'E v, and v = (y - A'beta) / s2. For a new row x, let
 * C_x = (s2 I + A A')^{-1} L^{-1} k(Z, x) and h_x = A'C_x. The N rows, in random order, are cut into groups b of n_b:
 *
 *     T1   |v|_E     <= sum_b sqrt(v_b'E_bb v_b)
 *     T2   |h_x|_E^2 <= C_x'Psi C_x,   Psi = sum_b (N / n_b) A_b E_bb A_b'
 *          |E|_2     <= sum_b |E_bb|_inf
 *
 * T1 and T2 have different groups. With one group of all rows, T1 and T2 are equalities, at a cost of N^2. A group is
 * read in pieces of `inner` rows. T1 is rounded up: sqrt(v_b'E_bb v_b) has a rounding error of at most kappa_b =
 * sqrt(slack sum_b w_n k(x_n,x_n) v_n^2), with the weight w_n of row n and the relative error certify_slack(). */
#include "pass.h"
#include "posterior.h"

struct row_groups {
    struct inducing z;
    struct source rows; /* data in random order */
    struct pass pass;   /* pass over blocks of `inner` rows */
    const double *beta;
    int t1, t2; /* rows in a group for T1 and for T2; 0 if the bound is not wanted */
    int inner;  /* rows in a piece */
    double *v;  /* (y - A'beta) / s2 [N], in the random order */
    double *Av; /* A v of each piece, M numbers */
    /* for each piece of a group: v'K v, sum w k(x, x) v^2, and the largest row sum of |E|, E = K - A'A */
    double *vKv, *vv, *largest;
    double *Psi;
    /* T1 >= sqrt(v'E v), infinite if t1 = 0; kappa, the part of T1 that allows for rounding; lam >= |E|_2, infinite if
     * t2 = 0; vv_sum = |v|^2; spread = N / n_b for the smallest group b, of n_b rows, in the sum Psi */
    double T1, kappa, lam, vv_sum, spread;
};

/* Computes the elements v, ..., spread of *g. The caller sets z, rows, pass.plan, beta, t1, t2 and the memory of Psi.
 * If t2 does not divide N, norms_run() reduces t2, so that groups have nearly equal sizes. */
void norms_run(struct row_groups *g);

/* Computes sums over the rows X of the data that narrow bounds on the exact GP at the rows x. Let A = L^{-1} k(Z, X), a
 * = L^{-1} k(Z, x), B = A'A + s2 I, h_x = A'(s2 I + A A')^{-1} a, and e_x = k(X, x) - A'a. The sums are cross =
 * h_x'e_x, gain = e_x'B^{-1}e_x and size = |e_x|^2, x->n numbers each. Costs 4 N M x->n flops, N x->n kernel values. */
void crossing_run(const struct posterior *p, const struct block *x, struct pass *pass,
                  double *cross, double *gain, double *size);
