#pragma once

/* Posteriors and objectives are computed from these sums over row blocks, with A = L^{-1} k(Z, X) diag(scale), scale =
 * square roots of the row weights w, and W_x = values of an auxiliary distribution's functions, times scale:
 *
 *     G = A A',  Ay = A y,  AW = A W_x,  yy = y'y,  k_sum = sum k(x,x) w,  t = k_sum - tr G,  y: scaled responses */
#include "block.h"
#include "inducing.h"
#include "lowrank.h"

/* Returns the number of doubles of the sums of struct stats, for M inducing points and q functions in a panel. */
size_t stats_size(int M, int q);

/* Adds a block's part to the sums over rows, such as G = A A' (lower triangle) for A = L^{-1} k(Z, X_b) diag(scale). Wt
 * (q x n) has an auxiliary distribution's q functions, times the roots of the row weights, or is NULL. work: 2 n */
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

/* Copies the lower triangle of G = A A' in `sums` to its upper one, and sets the pointers of s to the sums, or fails if
 * a sum is not finite. A is L^{-1} k(Z, X), columns times the roots of the rows' weights. */
enum status stats_finish(int M, int q, double *sums, struct stats *s);

/* From this struct, a second pass computes the gradient of an objective. With A = L^{-1} k(Z, X) diag(scale) for all
 * rows, its columns A_b of a block b, e = y_b - A_b'beta and the values W_x of an auxiliary distribution's functions at
 * the block, the derivative in k(Z, X_b) is
 *
 *     Kmx_bar = (H A_b + F W_x' + f e' + E A k(X, X_b)) diag(scale). */
struct adjoint {
    int M, q;
    double *H;       /* M x M */
    double *F;       /* M x q */
    double *f;       /* [M] */
    double *E;       /* M x M, or NULL if the objective does not contain A k(X, X) */
    double *Kmm_bar; /* derivative in k(Z, Z), M x M, symmetric */
    double *Wm_bar;  /* derivative in the values at Z of these functions, M x q */
    double *kzz_bar; /* derivatives in k(z, z) [M], in addition to Kmm_bar */
    double *beta;    /* [M], 0 if e is y */
    double *k_bar;   /* derivative in k_sum [1] */
};

/* adjoint_init() places the arrays of *adjoint in `memory` (adjoint_size() doubles) and sets them to 0. */
size_t adjoint_size(int M, int q, int with_E);
void adjoint_init(int M, int q, int with_E, double *memory, struct adjoint *adjoint);
