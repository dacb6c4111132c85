#ifndef PFDTC_PASS_H
#define PFDTC_PASS_H

/*
 * The one loop over rows: a source, points Z, and a sink.  K = k(Z, X_b) and
 * A = L^{-1} K diag(scale) of a block are made once and kept for the next pass while memory
 * allows.  Threads, interrupts and the order in which sums are added live here and nowhere else.
 *
 * Blocks are handed to threads in a fixed pattern, so that which sums are added where depends on
 * nothing but the number of threads.  Products are the engine's own (gemm.h), in the thread that
 * asks for them: a BLAS with threads of its own is never called here.
 */
#include "arena.h"
#include "inducing.h"
#include "noise.h"
#include "sink.h"

struct plan {
    int N, block, n_blocks, threads;
    size_t memory;           /* bytes of scratch that may grow with N */
    void (*interrupt)(void); /* called between some blocks; may not return */
    struct arena *arena;     /* scratch comes from there */
};

/* n items in blocks of at most that many: the plan of another loop with the same threads */
struct plan plan_for(const struct plan *like, int n, int block);

struct pass {
    struct plan plan;
    const struct source *rows; /* NULL: blocks of items that the sinks know */
    const struct inducing *z;  /* NULL: neither K nor A.  z->L may be NULL: see whiten */
    const struct site *site;   /* NULL: every row has the weight that it came with */
    int wants_K, again;        /* K beside A? another pass? */
    int goes_on;               /* sums are added to what is there */
    int beside;                /* doubles a row kept elsewhere */
    /* the pass's own: is it laid out; blocks whose K and A are kept, are they there yet? */
    int opened, kept, made;
    double *memory, *thread,
        *work; /* of the kept blocks; of each thread, also the sink's */
    size_t n_work;
    struct sink sink;
};

/* Lays the kept blocks and the room of the threads out, once: `kept` is there then. */
void pass_open(struct pass *p);
/* the sink is told of every block; plan.interrupt may leave */
void pass_run(struct pass *p, struct sink sink);

/* For sinks that look at two blocks: block b of the rows, n of them.
 * room: source_size(rows, plan.block) */
struct block pass_block(const struct pass *p, int b, double *room);
/* its A, kept or made in A (M x n) now */
const double *pass_A(const struct pass *p, const struct block *block, double *A);

#endif
