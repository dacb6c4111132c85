#pragma once

/*
 * Grouped effects (effects.h) with decorrelated responses F y in the place of y.  Row t of F has 1 at its own
 * row and -u_t (near.h) at the neighbours, times the roots of the rows' weights, divided by sqrt(d_t), the sd given
 * the neighbours.  Decorrelated rows have the features A+~ and the sums P and v; row t of F A' is r_t / sqrt(d_t):
 *
 *     A+~ = (F A', F Z)',   P = A+~ A+~' (k x k, k = M + q),   v = A+~ F y.
 */
#include "effects.h"
#include "likelihood.h"

struct decorrelated {
    const struct effects *e; /* every row must have a level of each grouping */
    struct source rows;
    int s, step; /* largest number of neighbours; numbers in u for each t */
    double sign; /* 1 if the array u has u_t, -1 if it has -u_t */
    /* row of each t [n], NULL for t; neighbours (s x n), -1 behind the last */
    const int *row, *near;
    const double *u, *d, *R; /* step x n, [n], M x n */
    int whiten;              /* 1 if Z Lam (effects.h) replaces Z */
};

/* Returns the number of doubles of the sums: P (upper triangle), v, |F y|^2 and sum log d. */
size_t decorrelated_size(const struct effects *e);
struct sink decorrelated_sink(const struct decorrelated *self, double *sums);

/*
 * integrated_run() computes the Vecchia likelihood of f + noise, with the effects integrated out.  u, d, T, r and w are
 * those of likelihood.h (d: D), for the kernel of f.  P and v are as above, but with Z Lam as features.  With y~ = F y,
 *
 *     log p = -(sum log d_i + log det H + |y~|^2 - v'b + n log 2 pi) / 2,   H = I + P,   V = H^{-1},   b = V v.
 *
 * By Fisher's identity, derivatives are the posterior mean over the effects of the derivatives given the effects.
 * With y^ = y - Z Lam b, they are the score of likelihood.h with these replacements:
 *
 *     r^2 -> (u'y^)^2 + u'Z_ V Z_'u,     r w -> T_SS^{-1} g_S,     g_S = (u'y^) y^_S + Z_S V Z_'u,
 *
 * where Z_ = Z Lam, and Z_S are its rows S.  So it is the score for responses g_S / e of the neighbours and a residual
 * e of row i, where e^2 is what replaces r^2.  The information is that for known effects.
 */
struct integrated {
    struct likelihood l;
    const struct effects *e; /* every row must have a level of each grouping */
    double *u, *d, *given;   /* (s + 1) x count, [count], (s + 1) x count */
    double *H;               /* Cholesky factor of H, q x q */
    double *V, *b;           /* V (q x q) if derivatives are wanted; b [q] */
    double value;
    struct decorrelated F; /* set by integrated_run() */
};

/* Computes log p above and, if l.slopes is not 0, its score. The caller sets l (without u, d, given), e and the arrays.
 * `whole` gets the score in the parameters of the kernel and of the noise. */
enum status integrated_run(struct integrated *g, struct vecchia *whole);
