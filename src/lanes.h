#pragma once

/* These functions solve small positive definite systems T side by side, one in each lane of the processor's vectors:
 * number i of system l is x[i * lanes + l]. A symmetric matrix is stored as its lower triangle by rows: entry (a, b) is
 * number a (a + 1) / 2 + b. T has n rows, a row i behind its neighbours S, and D is the Schur complement of T_SS. The
 * factor L of T has reciprocals on its diagonal, except that its last entry is D:
 *
 *     (L_S 0; l' 1) (I 0; 0 D) (L_S' l; 0 1) = T,     u = (-L_S^{-T} l; 1),   u'T u = D. */
#include <stddef.h>
#include "strip.h"

struct lanes {
    int lanes;
    /* Adds a term of the kernel to the kernel matrices T, and copies the term to K. S gets a triangle for each factor:
     * -2 times the derivative of the term in the factor's squared distance r2. Columns of X are n numbers apart. */
    void (*values)(const struct strip_kernel *k, int n, const double *X, double *T,
                   double *K, double *S);
    /* slope() adds sum_b S_ab ((x_a - x_b) rate)^2 u_b to out_a, for a triangle S of values(). multiply() adds K u. */
    void (*slope)(int n, double rate, const double *x, const double *S, const double *u,
                  double *out);
    void (*multiply)(int n, const double *K, const double *u, double *out);
    /* Overwrites each matrix T by its factor L. Unless T is positive definite, L is not finite or ends with D <= 0. */
    void (*chol)(int n, double *T);
    /* Overwrites each of p columns q by (L_S^{-1} q_S; u'q). S are all rows but the last; kriging() computes u. */
    void (*solve)(int n, const double *L, int p, double *Q);
    /* Computes u = (-L_S^{-T} l; 1) from L = (L_S 0; l' D). */
    void (*kriging)(int n, const double *L, double *u);
    /* Adds each lane's score and information (likelihood.h), times its weight `times`. D is the last entry of L. Q has
     * p + 1 results of solve(): (h_j; e_j) for q_j = (dT / dtheta_j) u, then (w; r) for the responses y.
     *     score_j        += times ((r^2 / D - 1) e_j / (2 D) + (r / D) w'h_j)
     *     information_jk += times (e_j e_k / (2 D^2) + h_j'h_k / D),   j <= k
     * Q is overwritten. `information` may be NULL. */
    void (*moments)(int n, int p, const double *times, const double *D, double *Q,
                    double *score, double *information);
};

/* Returns the functions for this processor's widest vectors with at most `most` doubles. */
const struct lanes *lanes_of(int most);

static inline size_t triangle_size(int n)
{
    return (size_t)n * ((size_t)n + 1) / 2;
}
