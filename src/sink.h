#pragma once

/*
 * A sink receives every block of a pass over rows (pass.h).  Each thread has its own sums, doubles
 * that are cleared before the pass and added in the order of threads after it.  Other results
 * belong to a block or a row, and have their place by its number.
 */
#include "block.h"

struct visit {
    int number; /* number of the block */
    struct block block;
    const double *K, *A; /* M x n: k(Z, X_b) where it is kept, L^{-1} K diag(scale) */
    double *sums, *work; /* the sink's memory in this thread */
};
typedef void sink_add(const void *self, const struct visit *v);

struct sink {
    const void *self;
    sink_add *add;
    size_t per_row,
        more; /* doubles of scratch: for each row of a block, and for a block */
    size_t n_sums;
    double *sums; /* [n_sums] the result, also the first thread's */
    int by_block; /* each block has its own sums, added in the order of blocks whatever the number of threads */
};

/* Returns a sink with results for each row or block. */
static inline struct sink row_sink(const void *self, sink_add *add, size_t per_row,
                                   size_t more)
{
    return (struct sink){self, add, per_row, more, 0, NULL, 0};
}

static inline struct sink sum_sink(const void *self, sink_add *add, size_t per_row,
                                   size_t more, size_t n_sums, double *sums)
{
    return (struct sink){self, add, per_row, more, n_sums, sums, 0};
}
