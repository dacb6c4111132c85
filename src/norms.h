#pragma once

/*
 * Norms in linear time.  The rows, in a random order, are cut into groups of n_b:
 *
 *     T1   |v|_E     <= sum_b sqrt(v_b'E_bb v_b)
 *     T2   |h_x|_E^2 <= C_x'Psi C_x,   Psi = sum_b (N / n_b) A_b E_bb A_b'
 *          |E|_2     <= sum_b |E_bb|_inf
 *
 * T1 and T2 have different groups.  With one group of all rows they are exact, which costs N^2.
 * A group is read in pieces of `inner` rows.  T1 is rounded up: sqrt(v_b'E_bb v_b) is
 * known up to kappa = sqrt(slack sum w_n k(x_n,x_n) v_n^2), see certify.h.
 */
#include "pass.h"
#include "posterior.h"

struct grouping {
    struct inducing z;
    struct source rows; /* in their random order */
    struct pass pass;   /* over blocks of `inner` rows */
    const double *beta;
    int t1, t2; /* rows in a group for T1 and for T2; 0: not computed */
    int inner;
    double *v;                  /* [N], in that order: (y - A'beta) / s2 */
    double *Av;                 /* M numbers for each piece */
    double *vKv, *vv, *largest; /* a number for each piece */
    double *Psi;
    /* further results, infinite without groups.  spread: N over the number of rows in the smallest
     * group for T2 */
    double T1, kappa, lam, vv_sum, spread;
};

/* The caller sets z, rows, pass.plan, beta, t1, t2 and room for Psi.  t2 is changed so that the
 * groups are as equal as possible. */
void norms_run(struct grouping *g);

/*
 * Computes sums over all rows for certificates at the rows x: with e_x = E(X, x), cross = h_x'e_x,
 * gain = e_x'B^{-1}e_x and size = |e_x|^2 (certify.h).  The pass is over the data.  Each result has x->n
 * numbers.  The sums take 4 N M x->n flops and N x->n kernel values, of which one block is kept.
 */
void crossing_run(const struct posterior *p, const struct block *x, struct pass *pass,
                  double *cross, double *gain, double *size);
