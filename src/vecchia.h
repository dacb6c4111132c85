#pragma once

/*
 * The conditional density of a response given some others.  Nearest-neighbour (Vecchia) likelihoods are sums of such
 * terms.  The term of row i with the s neighbours S is, with
 *
 *     T = k(X, X) + diag(noise) on (S, i),   z = T_SS^{-1} T_Si,   u = (-z; 1),
 *     r = u'y = y_i - z'y_S,   D = u'T u,
 *
 *     l_i = -(log 2 pi + log D + r^2 / D) / 2.
 *
 * T_j = dT / dtheta_j meets nothing but u: with q_j = T_j u and w = (T_SS^{-1} y_S; 0),
 *
 *     dl_i / dtheta_j = (r^2 / D - 1) u'q_j / (2 D) + (r / D) w'q_j                    (score)
 *     E[dl_i dl_i']   = (u'q_j)(u'q_k) / (2 D^2) + (q_j)_S' T_SS^{-1} (q_k)_S / D      (information)
 *
 * and the expectation of the score is 0 at the truth whatever S is.  The log of the noise of row n
 * may be linear in q numbers b_n of the row: T_j of their coefficients is diag(noise b_j).
 *
 * Several rows are worked on at a time, one in each lane (lanes.h), each with s neighbours.
 */
#include "kernel.h"
#include "lanes.h"
#include "status.h"

struct vecchia {
    int p;         /* parameters: those of the kernel, log noise, its q coefficients */
    double value;  /* sum of the l_i                                                */
    double *score; /* [p]                                                           */
    double
        *information; /* p x p, lower triangle, or NULL                                */
};

/* Returns the number of doubles in the arrays of a struct vecchia; vecchia_init() lays them out in
 * `memory` and sets them to 0. */
size_t vecchia_size(const struct kernel *k, int q);
void vecchia_init(const struct kernel *k, int q, double *memory, struct vecchia *sum);

/* Returns the doubles of scratch for s neighbours. */
size_t vecchia_rows_size(const struct lanes *v, const struct kernel *k, int q, int s);

/* sum += times l_i of each lane and, where `slopes`, its score and information.
 * X: s + 1 rows, the last is row i; y, noise: [s + 1]; b: (s + 1) x q; times: [1]; u: NULL, or it
 * gets u [s + 1], D [1] and r [1] */
enum status vecchia_add(const struct lanes *v, const struct kernel *k, int s,
                        const double *X, const double *y, const double *noise,
                        const double *b, const double *times, int slopes, double *u,
                        double *work, struct vecchia *sum);
