#pragma once

/*
 * Grouped effects beside rows that are decorrelated from neighbours, which bring their levels along.  Row t of F has
 * 1 at its own row and -u_t at the neighbours, times the roots of the rows' weights, over sqrt(d_t).  With features
 * (A, Z) of the rows, of which r_t / sqrt(d_t) are those of F A' (near.h),
 *
 *     A+~ = (F A'; F Z)',   P = A+~ A+~' (k x k, k = M + q),   v = A+~ F y.
 */
#include "effects.h"
#include "likelihood.h"

struct decorrelated {
    const struct effects *e; /* every row has its levels */
    struct source rows;
    int s, step;           /* neighbours at most; numbers in u for each t */
    double sign;           /* 1: u as above; -1: -u */
    const int *row, *near; /* [n] the row of each t, NULL: t; s x n, -1 behind the last */
    const double *u, *d, *R; /* step x n, [n], M x n */
    int whiten;              /* Z Lam in the place of Z */
};

/* Returns the doubles of the sums: P (upper triangle), v, |F y|^2 and sum log d. */
size_t decorrelated_size(const struct effects *e);
struct sink decorrelated_sink(const struct decorrelated *self, double *sums);

/*
 * The nearest-neighbour likelihood of f + noise with the effects integrated out.  u and d are those of vecchia.h under
 * the kernel of f, and P, v those of Z Lam without other features: with y~ = F y
 *
 *     log p = -(sum log d_i + log det T + |y~|^2 - v'b + n log 2 pi) / 2,   T = I + P,   V = T^{-1},   b = V v.
 *
 * Slopes follow from Fisher's identity, the mean over the effects of the slopes given them: with
 * y^ = y - Z Lam b the score of vecchia.h has
 *
 *     r^2 -> (u'y^)^2 + u'Z_ V Z_'u,     r w -> (u'y^) T_SS^{-1} y^_S + T_SS^{-1} Z_S V Z_'u,     Z_ = Z Lam,
 *
 * which is the score for the responses g_S / e beside row i with residual e, where e^2 is the first and
 * g_S = (u'y^) y^_S + Z_S V Z_'u.  The information is that for known effects.
 */
struct integrated {
    struct likelihood l;
    const struct effects *e; /* every row has its levels */
    double *u, *d, *given;   /* (s + 1) x count, [count], (s + 1) x count */
    double *T;               /* q x q: its factor */
    double *V, *b;           /* q x q, where slopes are wanted; [q] */
    double value;
    struct decorrelated F; /* set by integrated_run() */
};

/* The caller sets l (without u, d, given), e and the arrays.  `whole` gets the score in the parameters of the
 * kernel and of the noise. */
enum status integrated_run(struct integrated *g, struct vecchia *whole);
