#pragma once

/*
 * The nearest-neighbour likelihood of f + noise with the effects integrated out.  Row i has u_i and d_i
 * (vecchia.h) under the kernel of f; F has the rows u_i' / sqrt(d_i).  With y~ = F y, B~ = F Z Lam,
 *
 *     log p = -(sum log d_i + log det T + |y~|^2 - r'b + n log 2 pi) / 2,
 *     N = Z'F'F Z,  r = Z'F'y,  T = I + Lam'N Lam,  V = Lam T^{-1} Lam',  b = V r.
 *
 * Slopes follow from Fisher's identity, the mean over the effects of the slopes given them: with
 * y^ = y - Z b the score of vecchia.h has
 *
 *     r^2 -> (u'y^)^2 + u'Z V Z'u,     r w -> (u'y^) T_SS^{-1} y^_S + T_SS^{-1} Z_S V Z'u,
 *
 * which is the score for the responses g_S / e beside row i with residual e, where e^2 is the first and
 * g_S = (u'y^) y^_S + Z_S V Z'u.  The information is that for known effects.
 */
#include "effects.h"
#include "likelihood.h"

struct integrated {
    struct likelihood l;
    const struct effects *e; /* every row has its levels */
    double *u, *d, *given;   /* (s + 1) x count, [count], (s + 1) x count */
    double *N;               /* q x q: then the factor of T */
    double *V, *b;           /* q x q, where slopes are wanted; [q] */
    double value;
};

/* The caller sets l (without u, d, given), e and the arrays.  `whole` gets the score in the parameters of the
 * kernel and of the noise. */
enum status integrated_run(struct integrated *g, struct vecchia *whole);
