#ifndef PFDTC_STATS_H
#define PFDTC_STATS_H

/*
 * The sums over row blocks that everything else reads.  With A = L^{-1} k(Z, X) diag(scale),
 * scale = square roots of the row weights:
 *
 *     G = A A',  Ay = A y,  AW = A W_x,  yy = y'y,  k_sum = sum k(x,x) w,  t = k_sum - |A|^2
 *
 * (y and W_x carry the same scale).
 */
#include "block.h"
#include "inducing.h"
#include "lowrank.h"

struct stats {
    int M, q;
    double *G;  /* M x M; lower triangle until stats_finish                            */
    double *Ay; /* [M]                                                                 */
    double *AW; /* M x q                                                               */
    double yy, k_sum, t;
};

/* doubles wanted by the arrays of a stats; stats_init lays them out there and clears them */
size_t stats_size(int M, int q);
void stats_init(int M, int q, double *memory, struct stats *s);

/* One block in, sums out.  A (M x n) whitened and scaled, Wt (q x n) scaled, NULL if q = 0.
 * scratch: 2 n */
void stats_add(const struct kernel *k, const struct block *b, const double *A,
               const double *Wt, double *work, struct stats *s);

/* s += other */
void stats_merge(const struct stats *other, struct stats *s);

/* G whole; says whether every sum is finite */
enum status stats_finish(struct stats *s);

/*
 * The adjoints of those sums, as every objective hands them to the second pass.  L^{-T} is
 * already applied, so that for a block (e = y - A'beta, or y where beta is NULL)
 *
 *     Kmx_bar = (H A + F W_x' + f e' + E A K) diag(scale)
 */
struct adjoint {
    int M, q;
    double *H;          /* M x M                                                       */
    double *F;          /* M x q                                                       */
    double *f;          /* [M]                                                         */
    double *E;          /* M x M, or NULL where nothing meets A K                      */
    double *Kmm_bar;    /* M x M, symmetric                                            */
    double *Wm_bar;     /* M x q                                                       */
    double k_bar;       /* of k_sum                                                    */
    double *kzz_bar;    /* [M] of k(z, z), beside what Kmm_bar says of it; 0 as a rule  */
    const double *beta; /* [M] or NULL                                                 */
};

size_t adjoint_size(int M, int q, int with_E);
void adjoint_init(int M, int q, int with_E, double *memory, struct adjoint *adjoint);

#endif
