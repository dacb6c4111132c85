#pragma once

/*
 * These functions solve small positive definite systems side by side, one in each lane of the processor's vectors:
 * number i of system l is x[i * lanes + l].  A symmetric matrix is stored as its lower triangle by rows: entry (a, b)
 * is number a (a + 1) / 2 + b.  S is the set of all rows but the last.  The factor L of T has reciprocals on its
 * diagonal, except that its last entry is D, the Schur complement of T_SS:
 *
 *     (L_S 0; l' 1) (I 0; 0 D) (L_S' l; 0 1) = T,     u = (-L_S^{-T} l; 1),   u'T u = D.
 */
#include <stddef.h>
#include "strip.h"

struct lanes {
    int lanes;
    /* Adds a term of a kernel to T, and copies the term to K.  The array S gets a triangle for each factor: -2 times
     * the derivative of the term in the factor's r2.  Columns of X are n numbers apart. */
    void (*values)(const struct strip_kernel *k, int n, const double *X, double *T,
                   double *K, double *S);
    /* slope: out_a += sum_b S_ab ((x_a - x_b) rate)^2 u_b for one triangle of S.  multiply: out += K u */
    void (*slope)(int n, double rate, const double *x, const double *S, const double *u,
                  double *out);
    void (*multiply)(int n, const double *K, const double *u, double *out);
    /* Overwrites T by L.  If T is not positive definite, L is not finite or D is not positive. */
    void (*chol)(int n, double *T);
    /* Overwrites each of p columns q by (L_S^{-1} q_S; u'q). */
    void (*solve)(int n, const double *L, int p, double *Q);
    void (*kriging)(int n, const double *L, double *u); /* computes u */
    /* Adds each lane's score and information (likelihood.h), times its weight `times`.  Q has p + 1 columns that solve()
     * made: (h_j; e_j) from q_j of parameter j, then (w; r) from y.
     *     score_j        += times ((r^2 / D - 1) e_j / (2 D) + (r / D) w'h_j)
     *     information_jk += times (e_j e_k / (2 D^2) + h_j'h_k / D),   j <= k
     * Q is overwritten.  `information` may be NULL. */
    void (*moments)(int n, int p, const double *times, const double *D, double *Q,
                    double *score, double *information);
};

/* Returns the functions for this processor's widest vectors with at most `most` doubles. */
const struct lanes *lanes_of(int most);

static inline size_t triangle_size(int n)
{
    return (size_t)n * ((size_t)n + 1) / 2;
}
