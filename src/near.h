#pragma once

/*
 * Conditions f at a row x on its s nearest rows S, under the residual prior covariance given the
 * inducing points, E(x, z) = k(x, z) - a_x'a_z (each row scaled by the root of its weight):
 *
 *     N = E_SS + s2 I,   e = E(S, x),   u = N^{-1} e
 *     r = a - A_S u,     mean = u'y_S,  left = E(x, x) - e'u
 *
 * so that, given the inducing variables, f(x) has the mean r'. + u'y_S and the variance left.
 * Any linear functional of f takes the place of f(x): a are its features, and with `cross` its
 * covariances with f at S are given, e = cross - A_S'a, and E(x, x) = prior - |a|^2.
 * No BLAS is called here: rows may be worked on in several threads, whatever the BLAS does.
 */
#include "inducing.h"

struct near {
    const struct inducing *z;
    int s, columns;
    double *X;        /* (s + 1) x columns: the rows of S, then x itself           */
    double *scale;    /* [s + 1] roots of their weights                            */
    double *y;        /* [s] scaled responses of S                                 */
    const double **a; /* [s + 1] their columns L^{-1} k(Z, .), scaled: M numbers each */
    const double
        *cross;   /* [s] covariances with f at S, not scaled; NULL: those of f(x) */
    double prior; /* the prior variance where cross is given                      */
};

/* Return the doubles of scratch for s neighbours, and those of X, scale and y. */
size_t near_size(int s);
size_t near_rows_size(int s, int columns);

/* Computes u [s], r [M], mean and left.  If N is not positive definite in double precision, the
 * noise is increased.  scratch: near_size(s) */
enum status near_condition(const struct near *p, double *work, double *u, double *r,
                           double *mean, double *left);

/* out [N] = F v, row i of which is (v_i - u_i'v over its rows) / sqrt(d_i), or F'v.  u: s x N;
 * rows: the same from 0, -1 behind the last of each. */
void near_decorrelate(int s, int N, const double *u, const double *d, const int *rows,
                      const double *v, int transpose, double *out);
