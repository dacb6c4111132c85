#pragma once

/*
 * Small positive definite systems lie side by side, one in each lane of the processor's vectors:
 * number i of system l is x[i * lanes + l].  A symmetric matrix has its lower triangle by rows: entry (a, b) is
 * number a (a + 1) / 2 + b.  A factor L of n rows has reciprocals on its diagonal, but for the last entry, which is
 * D, the rest of the last diagonal element after the rows before it, so that
 *
 *     (L_S 0; l' 1) (I 0; 0 D) (L_S' l; 0 1) = T,     u = (-L_S^{-T} l; 1),   u'T u = D.
 */
#include <stddef.h>
#include "strip.h"

struct lanes {
    int lanes;
    /* T += a term, K = it, S = -2 d term / d r2 of each of its factors, behind each other
     * k: of one term,  X: numbers of a column n apart */
    void (*values)(const struct strip_kernel *k, int n, const double *X, double *T,
                   double *K, double *S);
    /* out_a += sum_b S_ab ((x_a - x_b) rate)^2 u_b,  and  out += K u */
    void (*slope)(int n, double rate, const double *x, const double *S, const double *u,
                  double *out);
    void (*multiply)(int n, const double *K, const double *u, double *out);
    /* T <- L: not finite, or D not positive, where T is not positive definite */
    void (*chol)(int n, double *T);
    /* q <- (L_S^{-1} q_S; u'q) of p columns */
    void (*solve)(int n, const double *L, int p, double *Q);
    void (*kriging)(int n, const double *L, double *u);
    /* Reads the columns that solve() made, p columns q_j and then (w; r).  Each lane has the weight `times`:
     *     score_j        += times ((r^2 / D - 1) u'q_j / (2 D) + (r / D) w'q_jS)
     *     information_jk += times ((u'q_j)(u'q_k) / (2 D^2) + q_jS'q_kS / D),   j <= k
     * Q is lost.  `information` may be NULL. */
    void (*moments)(int n, int p, const double *times, const double *D, double *Q,
                    double *score, double *information);
};

/* Returns the lanes of the widest vectors with at most so many doubles. */
const struct lanes *lanes_of(int most);

static inline size_t triangle_size(int n)
{
    return (size_t)n * ((size_t)n + 1) / 2;
}
