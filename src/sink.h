#pragma once

/* A sink is a function, with its data, that a pass over rows calls for every block of rows. Each thread adds to its own
 * sums, which start at 0 and are added in the order of threads after the pass. Results for a block or a row are stored
 * at its number. "This sink computes" in a header is short for: a pass with this sink computes. */
#include "block.h"

struct visit {
    int number; /* number of the block */
    struct block block;
    /* K = k(Z, X_b) if pass.wants_K; A = L^{-1} K diag(scale), L L' = k(Z, Z); M x n each. scale: roots of weights */
    const double *K, *A;
    double *sums, *work; /* sums and scratch of this thread */
};
typedef void sink_add(const void *self, const struct visit *v);

struct sink {
    const void *self;
    sink_add *add;
    size_t per_row,
        more; /* doubles of scratch: for each row of a block; for each block */
    size_t n_sums;
    double *sums; /* the result [n_sums], also the sums of the first thread */
    /* 1 if each block has its own sums, added in block order, so that results do not depend on the number of threads */
    int by_block;
};

/* Returns a sink that has no sums, but stores results for each row or block. */
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
