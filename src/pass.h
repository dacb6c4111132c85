#pragma once

/* A pass is a loop over the rows of a source. It gives each block b to a sink, with K = k(Z, X_b) and A = L^{-1} K
 * diag(scale) for inducing points Z; scale has the roots of the rows' weights. K and A are computed once, and kept for
 * the next pass if memory allows. Only this file decides about threads, interrupts and the order of sums.
 *
 * Blocks are given to threads in a fixed pattern, so the order of sums depends only on the number of threads. Products
 * are computed by this package's gemm.h in the calling thread: a pass never calls a BLAS that has threads. */
#include "arena.h"
#include "inducing.h"
#include "sink.h"

struct plan {
    int N, block, n_blocks, threads;
    size_t memory;           /* bytes of scratch for kept blocks */
    void (*interrupt)(void); /* called between some blocks; may raise an R error */
    struct arena *arena;     /* source of scratch */
};

/* Returns a plan for a loop over n items in blocks of at most `block` items, with the threads and memory of `like`. */
struct plan plan_for(const struct plan *like, int n, int block);

struct pass {
    struct plan plan;
    const struct source *rows; /* NULL if the sinks read items without rows */
    /* inducing points Z; NULL if sinks need neither K = k(Z, X_b) nor A; if z->L is NULL, A = K diag(scale) */
    const struct inducing *z;
    /* 1 if w s2 / (s2 + w E) replaces row weights w, E = residual prior variance (FITC, Snelson and Ghahramani 2006) */
    int fitc;
    int wants_K, again; /* 1 if sinks read K = k(Z, X_b); 1 if there are several passes */
    int goes_on;        /* 1 if this pass adds to the sums of earlier passes */
    int beside;         /* doubles that the caller stores for each row of a kept block */
    /* The pass sets opened (1: memory is allocated), kept (number of blocks in memory), made (1: memory is filled). */
    int opened, kept, made;
    double *memory;        /* k(Z, X_b), A and FITC's scales of blocks b < kept */
    double *thread, *work; /* scratch of each thread: of the pass; of its sink */
    double *block_sums;    /* sums of each block, if the sink wants them */
    size_t n_work;
    struct sink sink;
};

/* Unless an earlier call did so, allocates memory for threads and for as many kept blocks as plan.memory allows. */
void pass_open(struct pass *p);
void pass_run(struct pass *p, struct sink sink);

/* Returns block b of the rows, for sinks that read two blocks.  scratch: source_size(rows, plan.block) doubles */
struct block pass_block(const struct pass *p, int b, double *scratch);
/* Returns A = L^{-1} k(Z, X_b) diag(scale) of a block, scale: roots of weights. If not kept, computes it into A. */
const double *pass_A(const struct pass *p, const struct block *block, double *A);
