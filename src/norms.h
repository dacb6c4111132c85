#ifndef PFDTC_NORMS_H
#define PFDTC_NORMS_H

/*
 * Norms in linear time.  The rows, in a random order, are cut into groups of n_b:
 *
 *     T1   |v|_E     <= sum_b sqrt(v_b'E_bb v_b)
 *     T2   |h_x|_E^2 <= C_x'Psi C_x,   Psi = sum_b (N / n_b) A_b E_bb A_b'
 *          |E|_2     <= sum_b |E_bb|_inf
 *
 * with groups of their own for T1 and T2.  One group of all rows makes them exact, at a price of
 * N^2.  Groups are walked over in pieces of `inner` rows.  T1 is rounded up: sqrt(v_b'E_bb v_b) is
 * known up to kappa = sqrt(slack sum w_n k(x_n,x_n) v_n^2), see certify.h.
 */
#include "pass.h"

struct grouping {
    struct inducing z;
    struct source rows; /* in their random order */
    struct pass pass;   /* over blocks of `inner` rows */
    const double *beta;
    int t1, t2; /* rows of T1's and of T2's groups; 0: without that one */
    int inner;
    double *v;                  /* [N], in that order: (y - A'beta) / s2 */
    double *Av;                 /* M a block of `inner` rows */
    double *vKv, *vv, *largest; /* a number a piece */
    double *Psi;
    /* results beside Psi (M x M): infinite where there are no groups.  spread: N over the rows of
     * the smallest group of T2 */
    double T1, kappa, lam, vv_sum, spread;
};

/* z, rows, pass.plan, beta, t1, t2 and room for Psi are there.  t2 becomes what makes its groups as
 * equal as can be. */
void norms_run(struct grouping *g);

#endif
