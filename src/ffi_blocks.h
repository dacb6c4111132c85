#ifndef PFDTC_FFI_BLOCKS_H
#define PFDTC_FFI_BLOCKS_H

/*
 * The block loop of the doors: interrupts, threads, and what each thread owns.
 *
 * Blocks are handed to `threads` slots in a fixed pattern, so that which sums are added where
 * depends on nothing but the number of threads.  Two shapes:
 *   parallel_blocks = 1   products by the engine itself, or by a BLAS of one thread: whole blocks
 *                         in parallel;
 *   parallel_blocks = 0   any other BLAS: steps that only evaluate kernels in parallel, steps
 *                         that call the BLAS one after the other, outside the parallel region.
 */
#include "args.h"

struct plan {
    int N, block, n_blocks, threads, parallel_blocks;
    size_t memory; /* bytes of scratch that may grow with N */
};

/* control: list(block, threads, parallel_blocks: integers; memory: a double) */
struct plan plan_blocks(SEXP control, int N);

struct rows {
    int N, columns;
    const double *X, *y, *scale; /* scale may be NULL, y too where nothing reads it */
};

struct block plan_block(const struct plan *plan, const struct rows *rows, int b);

struct step {
    void (*run)(void *context, int b, int slot);
    int calls_blas;
};

/* every step on every block; raises on an interrupt, between waves */
void run_blocks(const struct plan *plan, int n_steps, const struct step *steps,
                void *context);

#endif
