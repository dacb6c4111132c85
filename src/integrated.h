#pragma once

/* Computes the posterior of grouped random effects with design matrix Z from decorrelated responses F y. Row t of F has
 * 1 at row t and -u_t at its neighbours, times the roots of the rows' weights, divided by sqrt(d_t). Given the
 * neighbours, the response of row t has variance d_t, and u_t has their coefficients in its mean. With M inducing
 * points Z_m, q effects, L L' = k(Z_m, Z_m), and features A = L^{-1} k(Z_m, X),
 *
 *     A+~ = (F A', F Z)',   P = A+~ A+~' (k x k, k = M + q),   v = A+~ F y.
 *
 * Row t of F A' is r_t / sqrt(d_t), where r_t = a - A_S u_t. The features a of the row and A_S of its neighbours have
 * been multiplied by the roots of the rows' weights. */
#include "effects.h"
#include "likelihood.h"

struct decorrelated {
    const struct effects *e; /* every row must have a level of each grouping */
    struct source rows;
    int s, step; /* largest number of neighbours; numbers in u for each row of F */
    double sign; /* 1 if the array u has u_t, -1 if it has -u_t */
    /* row [n]: data row of each row t of F; NULL if row[t] = t. near: neighbours (s x n), then -1 */
    const int *row, *near;
    const double *u, *d, *R; /* columns u_t, step x n; d_t [n]; columns r_t, M x n */
    int whiten;              /* 1 if Z Lam replaces Z, for effects b ~ N(0, Lam Lam') */
};

/* decorrelated_sink() computes A+~ A+~' (k x k, upper triangle), A+~ F y [k], |F y|^2 and sum_t log d_t. A+~ = (F A', F
 * Z)' has decorrelated features of inducing points and effects. decorrelated_size() is how many numbers these are. */
size_t decorrelated_size(const struct effects *e);
struct sink decorrelated_sink(const struct decorrelated *self, double *sums);

/* integrated_run() computes the Vecchia likelihood of y = f + Z_ b + noise, with b ~ N(0, I) integrated out. Z_ = Z Lam
 * is the whitened design matrix of the random effects. T is the covariance of f + noise at the neighbours S of row i
 * and at row i, u = (-T_SS^{-1} T_Si; 1), and d_i = u'T u. Row i of F is u' / sqrt(d_i). With P = Z_'F'F Z_, v = Z_'F'F
 * y, H = I + P and V = H^{-1}, b has the posterior N(V v, V), and
 *
 *     log p = -(sum log d_i + log det H + |F y|^2 - v'V v + n log 2 pi) / 2.
 *
 * By Fisher's identity, derivatives are the posterior mean over the effects of the derivatives given the effects. Let
 * y^ = y - Z_ V v, r = u'y, w = (T_SS^{-1} y_S; 0) and q = (dT / dtheta) u for a parameter theta. Without effects, the
 * derivative of row i would be (r^2 / d_i - 1) u'q / (2 d_i) + (r / d_i) w'q. In this formula, the effects replace
 *
 *     r^2 -> (u'y^)^2 + u'Z_ V Z_'u,     r w_S -> T_SS^{-1} g_S,     g_S = (u'y^) y^_S + Z_S V Z_'u,
 *
 * where Z_S are rows S of Z_. Let e^2 be what replaces r^2. Responses g_S / e of the neighbours and a residual e of row
 * i give the same derivative. The information is computed as if the effects were known. */
struct integrated {
    struct likelihood l;
    const struct effects *e; /* every row must have a level of each grouping */
    double *u, *d, *given;   /* (s + 1) x count; [count]; used for y, (s + 1) x count */
    double *H;               /* Cholesky factor of I + P, q x q */
    double *V, *b;           /* posterior covariance (with derivatives) and mean of b */
    double value;
    struct decorrelated F; /* set by integrated_run() */
};

/* Computes g->value, the log density of y with the effects integrated out. If l.slopes is not 0, `whole` gets the score
 * (derivatives in the parameters of kernel and noise). The caller sets l (without u, d, given), e and the arrays. */
enum status integrated_run(struct integrated *g, struct vecchia *whole);
