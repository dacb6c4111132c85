#pragma once

/*
 * The loop over rows: a source, points Z, and a sink.  K = k(Z, X_b) and A = L^{-1} K diag(scale)
 * of a block are computed once, and kept for the next pass while memory allows.  Only this file
 * decides about threads, interrupts and the order in which sums are added.
 *
 * Blocks are given to threads in a fixed pattern, so the order of sums depends only on the number of
 * threads.  Products are the engine's own (gemm.h), in the calling thread: a pass never calls a BLAS
 * that has threads.
 */
#include "arena.h"
#include "inducing.h"
#include "sink.h"

struct plan {
    int N, block, n_blocks, threads;
    size_t memory;           /* bytes of scratch that may grow with N */
    void (*interrupt)(void); /* called between some blocks; may not return */
    struct arena *arena;     /* scratch comes from there */
};

/* Returns the plan of another loop with the same threads, over n items in blocks of at most `block`. */
struct plan plan_for(const struct plan *like, int n, int block);

struct pass {
    struct plan plan;
    const struct source *rows; /* NULL: blocks of items, which the sinks read */
    const struct inducing *z;  /* NULL: neither K nor A.  z->L may be NULL: see whiten */
    int fitc; /* row n has the weight w s2 / (s2 + w E_nn) (Snelson and Ghahramani 2006) */
    int wants_K, again; /* keep K as well as A? is this another pass? */
    int goes_on;        /* add to the sums of earlier passes */
    int beside;         /* doubles that are kept elsewhere for each row */
    /* set by the pass: is it laid out; blocks whose K and A are kept; are these computed? */
    int opened, kept, made;
    double *memory, *thread,
        *work;          /* of the kept blocks; of each thread, also the sink's */
    double *block_sums; /* of sinks that add by block */
    size_t n_work;
    struct sink sink;
};

/* Lays out the kept blocks and the memory of the threads, once, and sets `kept`. */
void pass_open(struct pass *p);
/* Calls the sink with every block; plan.interrupt may not return. */
void pass_run(struct pass *p, struct sink sink);

/* Returns block b of the rows, for sinks that read two blocks.  room: source_size(rows, plan.block) */
struct block pass_block(const struct pass *p, int b, double *room);
/* Returns A of a block: the kept one, or computed in A (M x n). */
const double *pass_A(const struct pass *p, const struct block *block, double *A);
