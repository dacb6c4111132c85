#ifndef PFDTC_SINK_H
#define PFDTC_SINK_H

/*
 * What a pass over rows (pass.h) feeds: a sink is told of every block.  Sums are doubles, each
 * thread has its own: cleared before the pass, added up in the order of threads after it.
 * Everything else that a block leaves behind is its own, by its number or its rows.
 */
#include "block.h"

struct visit {
    int number; /* of the block */
    struct block block;
    const double *K, *A; /* M x n: k(Z, X_b) where it is kept, L^{-1} K diag(scale)     */
    double *sums, *work; /* the sink's own, of this thread                              */
};

struct sink {
    const void *self;
    size_t n_sums, n_work; /* doubles that a thread wants                 */
    double *sums;          /* [n_sums] the result, also the first thread's */
    void (*add)(const void *self, const struct visit *v);
};

#endif
