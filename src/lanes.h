#pragma once

/*
 * Small positive definite systems that are solved side by side, one in each lane of the processor's vectors: number i
 * of system l is x[i * lanes + l].  A symmetric matrix is stored as its lower triangle by rows: entry (a, b) is number
 * a (a + 1) / 2 + b.  S is the set of all rows but the last.  The factor L of T has reciprocals on its diagonal,
 * except that its last entry is D, the Schur complement of T_SS:
 *
 *     (L_S 0; l' 1) (I 0; 0 D) (L_S' l; 0 1) = T,     u = (-L_S^{-T} l; 1),   u'T u = D.
 */
#include <stddef.h>
#include "strip.h"

struct lanes {
    int lanes;
    /* Adds a term k of a kernel to T, and copies the term to K.  S gets -2 d term / d r2 of each factor, one
     * triangle after the other.  Numbers of one column of X are n apart. */
    void (*values)(const struct strip_kernel *k, int n, const double *X, double *T,
                   double *K, double *S);
    /* slope: out_a += sum_b S_ab ((x_a - x_b) rate)^2 u_b,   multiply: out += K u */
    void (*slope)(int n, double rate, const double *x, const double *S, const double *u,
                  double *out);
    void (*multiply)(int n, const double *K, const double *u, double *out);
    /* Overwrites T by L.  If T is not positive definite, L is not finite or D is not positive. */
    void (*chol)(int n, double *T);
    /* Overwrites each of p columns q by (L_S^{-1} q_S; u'q). */
    void (*solve)(int n, const double *L, int p, double *Q);
    void (*kriging)(int n, const double *L, double *u); /* computes u */
    /* Adds to sums of the Vecchia likelihood (vecchia.h).  Q has columns that solve() made: p columns q_j, then (w;
     * r). Each lane has the weight `times`:
     *     score_j        += times ((r^2 / D - 1) u'q_j / (2 D) + (r / D) w'q_jS)
     *     information_jk += times ((u'q_j)(u'q_k) / (2 D^2) + q_jS'q_kS / D),   j <= k
     * Q is overwritten.  `information` may be NULL. */
    void (*moments)(int n, int p, const double *times, const double *D, double *Q,
                    double *score, double *information);
};

/* Returns the functions for the widest vectors with at most `most` doubles. */
const struct lanes *lanes_of(int most);

static inline size_t triangle_size(int n)
{
    return (size_t)n * ((size_t)n + 1) / 2;
}
