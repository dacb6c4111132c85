#pragma once

/*
 * The sums over row blocks, from which posteriors and objectives are computed.  With
 * A = L^{-1} k(Z, X) diag(scale), scale = square roots of the row weights:
 *
 *     G = A A',  Ay = A y,  AW = A W_x,  yy = y'y,  k_sum = sum k(x,x) w,  t = k_sum - |A|^2
 *
 * (y and W_x carry the same scale).
 */
#include "block.h"
#include "inducing.h"
#include "lowrank.h"
#include "sink.h"

/* Sums as they are added, stats_size() doubles: G (lower triangle), Ay, AW, yy, and more. */
size_t stats_size(int M, int q);

/* Adds one block to the sums.  A (M x n) whitened and scaled, Wt (q x n) scaled, NULL if q = 0.
 * scratch: 2 n */
void stats_add(const struct kernel *k, int M, int q, const struct block *b,
               const double *A, const double *Wt, double *work, double *sums);

/* The finished sums. */
struct stats {
    int M, q;
    const double *G;  /* M x M */
    const double *Ay; /* [M] */
    const double *AW; /* M x q */
    double yy, k_sum, t;
    double n, log_weights; /* rows; sum of the logs of their weights */
};

/* Fills both triangles of G. Fails if a sum is not finite. */
enum status stats_finish(int M, int q, double *sums, struct stats *s);

/* The sink that computes these sums. */
struct summing {
    const struct kernel *kernel;
    int M;
    struct panel panel; /* without aux: q = 0 */
};
struct sink stats_sink(const struct summing *self, double *sums);

/*
 * The adjoints of these sums, which an objective passes to the second pass.  L^{-T} is already
 * applied: for a block, with e = y - A'beta
 *
 *     Kmx_bar = (H A + F W_x' + f e' + E A K) diag(scale)
 */
struct adjoint {
    int M, q;
    double *H;       /* M x M */
    double *F;       /* M x q */
    double *f;       /* [M] */
    double *E;       /* M x M, or NULL if the objective has no A K */
    double *Kmm_bar; /* M x M, symmetric */
    double *Wm_bar;  /* M x q */
    double *kzz_bar; /* [M] of k(z, z), in addition to Kmm_bar; usually 0 */
    double *beta;    /* [M] 0 where e is y */
    double *k_bar;   /* [1] of k_sum */
};

/* Returns the doubles of the arrays, which adjoint_init() lays out in `memory` and sets to 0. */
size_t adjoint_size(int M, int q, int with_E);
void adjoint_init(int M, int q, int with_E, double *memory, struct adjoint *adjoint);
