#pragma once

/* Posterior of grouped random effects (effects.h, design matrix Z) from decorrelated responses F y. Row t of F has 1 at
 * its own row and -u_t (near.h) at its neighbours, times the roots of the rows' weights, divided by sqrt(d_t). d_t is
 * the variance of the row's response given the neighbours. With features A = L^{-1} k(Z_m, X) of inducing points Z_m,
 *
 *     A+~ = (F A', F Z)',   P = A+~ A+~' (k x k, k = M + q),   v = A+~ F y,
 *
 * where row t of F A' is r_t / sqrt(d_t) of near.h. */
#include "effects.h"
#include "likelihood.h"

struct decorrelated {
    const struct effects *e; /* every row must have a level of each grouping */
    struct source rows;
    int s, step; /* largest number of neighbours; numbers in u for each row of F */
    double sign; /* 1 if the array u has u_t, -1 if it has -u_t */
    /* data row of each row t of F [n], NULL if it is t; neighbours (s x n), -1 behind the last */
    const int *row, *near;
    const double *u, *d, *R; /* columns u_t, step x n; d_t [n]; columns r_t, M x n */
    int whiten;              /* 1 if Z Lam replaces Z (Lam: root of effects.h) */
};

/* Returns the number of doubles of the sums over decorrelated rows: products of features (P, upper triangle), of
 * features and responses (v), of responses (|F y|^2), and sum log d. */
size_t decorrelated_size(const struct effects *e);
struct sink decorrelated_sink(const struct decorrelated *self, double *sums);

/* integrated_run() computes the Vecchia likelihood of f + noise (likelihood.h), with the whitened random effects b
 * integrated out. u, T, r, w and d (there D) are those of likelihood.h, for the kernel of f. F, P and v are those of
 * struct decorrelated without inducing points, with Z Lam in the place of Z. With y~ = F y, b has the posterior
 * N(V v, V), and
 *
 *     log p = -(sum log d_i + log det H + |y~|^2 - v'V v + n log 2 pi) / 2,   H = I + P,   V = H^{-1}.
 *
 * By Fisher's identity, derivatives are the posterior mean over the effects of the derivatives given the effects. With
 * y^ = y - Z Lam V v, they are the score of likelihood.h with these replacements, for row i and its neighbours S:
 *
 *     r^2 -> (u'y^)^2 + u'Z_ V Z_'u,     r w -> T_SS^{-1} g_S,     g_S = (u'y^) y^_S + Z_S V Z_'u,
 *
 * where Z_ = Z Lam, and Z_S are its rows S. This is the score for responses g_S / e of the neighbours and a residual e
 * of row i, where e^2 is what replaces r^2. The information is that for known effects. */
struct integrated {
    struct likelihood l;
    const struct effects *e; /* every row must have a level of each grouping */
    double *u, *d, *given;   /* (s + 1) x count, [count], (s + 1) x count */
    double *H;               /* Cholesky factor of I + P, q x q */
    double *V, *b;           /* posterior covariance (with derivatives) and mean of b */
    double value;
    struct decorrelated F; /* set by integrated_run() */
};

/* Computes g->value, the log density of y with the effects integrated out. If l.slopes is not 0, `whole` gets the score
 * in the parameters of the kernel and of the noise. The caller sets l (without u, d, given), e and the arrays. */
enum status integrated_run(struct integrated *g, struct vecchia *whole);
