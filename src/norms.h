#pragma once

/*
 * norms_run() computes bounds on norms (symbols: certify.h) in time linear in N. The N rows, in a random order, are cut
 * into groups b of n_b:
 *
 *     T1   |v|_E     <= sum_b sqrt(v_b'E_bb v_b)
 *     T2   |h_x|_E^2 <= C_x'Psi C_x,   Psi = sum_b (N / n_b) A_b E_bb A_b'
 *          |E|_2     <= sum_b |E_bb|_inf
 *
 * T1 and T2 have different groups.  With one group of all rows, the bounds on E-norms are equalities, at a cost of N^2.
 * A group is read in pieces of `inner` rows.  T1 is rounded up: sqrt(v_b'E_bb v_b) has an error of at most kappa_b =
 * sqrt(slack sum_b w_n k(x_n,x_n) v_n^2), where w_n is the weight of row n.
 */
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
    /* for each piece: v'K v, sum w k(x, x) v^2, and the largest row sum of |E| */
    double *vKv, *vv, *largest;
    double *Psi;
    /* Further results. Without groups T1 and lam are infinite. kappa: sum of the kappa_b; vv_sum: |v|^2; spread:
     * largest N / n_b of T2 */
    double T1, kappa, lam, vv_sum, spread;
};

/* Computes the bounds. The caller sets z, rows, pass.plan, beta, t1, t2 and the memory of Psi. t2 is changed to make
 * groups equal. */
void norms_run(struct row_groups *g);

/*
 * Computes sums over all rows for certificates at the rows x: with e_x = E(X, x), cross = h_x'e_x, gain =
 * e_x'B^{-1}e_x and size = |e_x|^2 (certify.h), x->n numbers each.  The pass is over the data.  It needs 4 N M x->n
 * flops and N x->n kernel values, of which one block is in memory at a time.
 */
void crossing_run(const struct posterior *p, const struct block *x, struct pass *pass,
                  double *cross, double *gain, double *size);
