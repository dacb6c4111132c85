#pragma once

/* A Vecchia likelihood is the sum over rows i of l_i, the log density of y_i given the responses of i's s neighbours S.
 *
 *     T = k(X, X) + diag(noise) on (S, i),   z = T_SS^{-1} T_Si,   u = (-z; 1),
 *     r = u'y = y_i - z'y_S,   D = u'T u,
 *     l_i = -(log 2 pi + log D + r^2 / D) / 2.
 *
 * A parameter theta_j enters derivatives only by q_j = (dT / dtheta_j) u. With w = (T_SS^{-1} y_S; 0),
 *
 *     dl_i / dtheta_j = (r^2 / D - 1) u'q_j / (2 D) + (r / D) w'q_j                    (score)
 *     E[dl_i dl_i']_jk = (u'q_j)(u'q_k) / (2 D^2) + (q_j)_S' T_SS^{-1} (q_k)_S / D     (information)
 *
 * The score has expectation 0 at the true parameters, for any S. The log noise may be linear in the q columns of a
 * matrix b. The coefficient of column b_j then has dT / dtheta_j = diag(noise b_j).
 *
 * Rows with equally many neighbours are processed at the same time, one in each lane. */
#include "lanes.h"
#include "pass.h"
#include "sparse.h"

struct vecchia {
    int p;         /* number of parameters: of the kernel, log noise, q coefficients */
    double value;  /* sum of the l_i */
    double *score; /* [p] */
    double *information; /* p x p, lower triangle, or NULL */
};

/* vecchia_init() places score and information of *sum in `memory` (vecchia_size() doubles), and sets *sum to 0. */
size_t vecchia_size(const struct kernel *k, int q);
void vecchia_init(const struct kernel *k, int q, double *memory, struct vecchia *sum);

/* Returns the number of doubles of scratch that vecchia_add() needs for rows with s neighbours. */
size_t vecchia_rows_size(const struct lanes *v, const struct kernel *k, int q, int s);

/* This struct has data of a row i and its s neighbours in each lane. X and b (q columns) have s + 1 rows, y and noise s
 * + 1 numbers: for the neighbours, then row i. Numbers of the lanes are side by side. u: NULL, or as in vecchia_add();
 * work: vecchia_rows_size() doubles */
struct gathered {
    const struct lanes *v;
    double *X, *y, *noise, *b, *times, *u, *work;
};
/* Adds times * l_i of the row i in each lane to sum->value, and with `slopes` also its score and information. l_i is
 * the log density of y_i given the responses of the s neighbours of row i. Unless of->u is NULL, it gets the s + 1
 * coefficients of the residual r = u'y = y_i - E[y_i | neighbours], then the variance D of r, then r. */
enum status vecchia_add(const struct gathered *of, const struct kernel *k, int s,
                        int slopes, struct vecchia *sum);

/* A Vecchia likelihood is the sum over rows i of times_i log p(y_i | responses of the neighbours of row i). */
struct likelihood {
    const struct model *model;
    const struct source *rows; /* data */
    const double *weights;     /* of the rows [N], or NULL */
    int q;                     /* number of columns of b */
    const double *b;           /* N x q: the log noise is linear in its columns */
    struct sparse basis;       /* entries of b, which likelihood_run() sets */
    int count, s;              /* number of terms; largest number of neighbours */
    int slopes;     /* 0: value; 1: also derivatives; 2: information from a sample */
    const int *row; /* rows of the terms [count], from 0 */
    const int *neighbours; /* s x count, from 0, -1 behind the last of a term */
    const double *times;   /* weights of the terms [count], or NULL for 1 */
    /* Unless NULL, `given` (s + 1 x count) has responses that replace those of the data: for each term those of its
     * neighbours and, at place s, of its own row. Unless NULL, u (s + 1 x count) gets the coefficients of each term's
     * residual r = y_i - E[y_i | neighbours], d [count] gets the variances of r, and r [count] gets r. */
    const double *given;
    double *u, *d, *r;
    struct pass pass;
};

/* Computes the sum of all terms of the likelihood. Sums of blocks are added in the order of the blocks, so that the
 * number of threads does not change the result. */
enum status likelihood_run(struct likelihood *l, struct vecchia *whole);
