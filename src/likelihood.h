#pragma once

/*
 * A Vecchia likelihood is a sum of logs of conditional densities: of each response given those of s neighbours S.  The
 * term of row i is, with
 *
 *     T = k(X, X) + diag(noise) on (S, i),   z = T_SS^{-1} T_Si,   u = (-z; 1),
 *     r = u'y = y_i - z'y_S,   D = u'T u,
 *
 *     l_i = -(log 2 pi + log D + r^2 / D) / 2.
 *
 * T_j = dT / dtheta_j enters only as q_j = T_j u.  With w = (T_SS^{-1} y_S; 0),
 *
 *     dl_i / dtheta_j = (r^2 / D - 1) u'q_j / (2 D) + (r / D) w'q_j                    (score)
 *     E[dl_i dl_i']   = (u'q_j)(u'q_k) / (2 D^2) + (q_j)_S' T_SS^{-1} (q_k)_S / D      (information)
 *
 * The score has expectation 0 at the true parameters, whatever S is.  The log noise may be linear in the q columns of
 * b.  The coefficient of column b_j then has T_j = diag(noise b_j).
 *
 * Several rows are processed at a time, one in each lane (lanes.h), each with s neighbours.
 */
#include "lanes.h"
#include "pass.h"

struct vecchia {
    int p;         /* number of parameters: of the kernel, log noise, q coefficients */
    double value;  /* sum of the l_i */
    double *score; /* [p] */
    double *information; /* p x p, lower triangle, or NULL */
};

/* Returns the number of doubles of the arrays of a struct vecchia.  vecchia_init() places them in `memory` and sets
 * them to 0. */
size_t vecchia_size(const struct kernel *k, int q);
void vecchia_init(const struct kernel *k, int q, double *memory, struct vecchia *sum);

/* Returns the number of doubles of scratch for rows with s neighbours. */
size_t vecchia_rows_size(const struct lanes *v, const struct kernel *k, int q, int s);

/* Adds times * l_i of each lane to `sum`, and with `slopes` also the score and the information. X has s + 1 rows, row
 * i last; y, noise: [s + 1]; b: (s + 1) x q; times: [1]. The array u, unless NULL, gets u [s + 1], D [1] and r [1].
 * Numbers of the lanes are side by side. */
enum status vecchia_add(const struct lanes *v, const struct kernel *k, int s,
                        const double *X, const double *y, const double *noise,
                        const double *b, const double *times, int slopes, double *u,
                        double *work, struct vecchia *sum);

/* The Vecchia likelihood: a sum over rows of times * log p(y_i | responses of its neighbours). */
struct likelihood {
    const struct model *model;
    const struct source *rows; /* data */
    const double *weights;     /* of the rows [N], or NULL */
    int q;                     /* number of columns of b */
    const double *b;           /* N x q, in which the log noise is linear */
    int count, s;              /* number of terms; largest number of neighbours */
    int slopes;     /* 0: value; 1: and derivatives; 2: information from a sample */
    const int *row; /* rows of the terms [count], from 0 */
    const int *neighbours; /* s x count, from 0, -1 behind the last of a term */
    const double *times;   /* weights of the terms [count], or NULL for 1 */
    /* `given` and u have (s + 1) x count numbers, with row i at place s behind its neighbours; or they are NULL.
     * `given` has responses that replace those of the rows.  u is a result of vecchia_add().  If u is not NULL, D and r
     * are stored in d and r [count]; r may be NULL. */
    const double *given;
    double *u, *d, *r;
    struct pass pass;
};

/* Adds all terms to `whole`. Each block has its own sum, and the sums are added in order, so that the number of
 * threads does not change the result. */
enum status likelihood_run(struct likelihood *l, struct vecchia *whole);
