#pragma once

/* Conditions f at a row x on its s nearest neighbours S, under the residual prior covariance given the inducing points,
 * E(x, z) = k(x, z) - a_x'a_z with a = a_x = L^{-1} k(Z, x), L L' = k(Z, Z). Columns of A_S are a_z for rows z of S; s2
 * is the noise variance. (Rows are scaled by root weights.)
 *
 *     N = E_SS + s2 I,   e = E(S, x),   u = N^{-1} e
 *     r = a - A_S u,     mean = u'y_S,  left = E(x, x) - e'u
 *
 * Given whitened inducing variables v ~ N(0, I), f(x) has the mean r'v + u'y_S and the variance `left`. If a linear
 * functional of f takes the place of f(x), a are its covariances with v, `cross` those with f at S, e = cross - A_S'a,
 * and E(x, x) = prior - |a|^2. No BLAS is called, so threads may condition rows. */
#include "inducing.h"

struct near {
    const struct inducing *z;
    int s, columns;
    double *X;           /* (s + 1) x columns: the rows of S, then x */
    double *scale;       /* roots of their weights [s + 1] */
    double *y;           /* scaled responses of S [s] */
    const double **a;    /* [s + 1] scaled features of the rows of X: M numbers each */
    const double *cross; /* [s] covariances of a functional with f at S; or NULL */
    double prior;        /* prior variance of the functional, if cross is given */
};

/* near_size() returns how many doubles of scratch near_condition() needs; near_rows_size(), those of X, scale and y. */
size_t near_size(int s);
size_t near_rows_size(int s, int columns);

/* Computes u [s], r [M], mean = u'y_S and `left`. Given the responses y_S of its neighbours and whitened inducing
 * variables v, f(x) has the mean u'y_S + r'v and the variance `left`. If rounding makes the neighbours' covariance
 * matrix indefinite, the noise is increased. work: near_size(s) */
enum status near_condition(const struct near *p, double *work, double *u, double *r,
                           double *mean, double *left);

/* Computes out [N] = F v, or F'v if `transpose`: (F v)_i = (v_i - u_i'v_S) / sqrt(d_i), where row i has the neighbours
 * S, with weights u_i, and the variance d_i given S. u and `rows` have columns u_i and S (from 0, then -1). */
void near_decorrelate(int s, int N, const double *u, const double *d, const int *rows,
                      const double *v, int transpose, double *out);
