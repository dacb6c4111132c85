#ifndef PFDTC_FFI_BLOCKS_H
#define PFDTC_FFI_BLOCKS_H

/* Doors that have loops of their own over the blocks of a plan. */
#include "args.h"

struct rows {
    int N, columns;
    const double *X, *y, *scale; /* scale may be NULL, y too where nothing reads it */
};

struct block plan_block(const struct plan *plan, const struct rows *rows, int b);

#endif
