#pragma once

/*
 * Posteriors and objectives are computed from these sums over row blocks.  With A = L^{-1} k(Z, X) diag(scale),
 * scale = square roots of the row weights, and W_x = values of an auxiliary distribution (lowrank.h):
 *
 *     G = A A',  Ay = A y,  AW = A W_x,  yy = y'y,  k_sum = sum k(x,x) w,  t = k_sum - tr G
 *
 * y and W_x have the same scale as A.
 */
#include "block.h"
#include "inducing.h"
#include "lowrank.h"

/* Returns the number of doubles of the sums G, Ay, AW and the scalars. */
size_t stats_size(int M, int q);

/* Adds one block to the sums (G: lower triangle).  Wt (q x n) = W_x' diag(scale), or NULL if q = 0.  work: 2 n */
void stats_add(const struct kernel *k, int M, int q, const struct block *b,
               const double *A, const double *Wt, double *work, double *sums);

struct stats {
    int M, q;
    const double *G;  /* M x M */
    const double *Ay; /* [M] */
    const double *AW; /* M x q */
    double yy, k_sum, t;
    double n, log_weights; /* number of rows; sum of the logs of their weights */
};

/* Copies G's lower triangle to its upper one, and sets the fields of s.  Fails if a sum is not finite. */
enum status stats_finish(int M, int q, double *sums, struct stats *s);

/*
 * Derivatives of an objective in the sums above, times L^{-T}, from which the second pass computes the gradient.  With
 * e = y - A'beta, the derivative of the objective in k(Z, X_b) for a block is
 *
 *     Kmx_bar = (H A + F W_x' + f e' + E A K) diag(scale).
 */
struct adjoint {
    int M, q;
    double *H;       /* M x M */
    double *F;       /* M x q */
    double *f;       /* [M] */
    double *E;       /* M x M, or NULL if the objective does not contain A K */
    double *Kmm_bar; /* M x M, symmetric */
    double *Wm_bar;  /* M x q */
    double *kzz_bar; /* derivatives in k(z, z) [M], in addition to Kmm_bar */
    double *beta;    /* [M], 0 if e is y */
    double *k_bar;   /* derivative in k_sum [1] */
};

/* Returns the number of doubles in the arrays of an adjoint. adjoint_init() places them in `memory`, as zeros. */
size_t adjoint_size(int M, int q, int with_E);
void adjoint_init(int M, int q, int with_E, double *memory, struct adjoint *adjoint);
