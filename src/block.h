#ifndef PFDTC_BLOCK_H
#define PFDTC_BLOCK_H

#include <stddef.h>

/* Some rows, in place. */
struct block {
    int n;
    const double *X; /* n rows, leading dimension ldx */
    int ldx;
    const double *y;     /* [n] */
    const double *scale; /* [n] or NULL: square roots of the weights */
    int first;           /* which of its source the first row is */
};

/* ys (n doubles) = scale * y */
void block_response(const struct block *b, double *ys);

/* Where rows come from: a matrix, its rows as they are or in another order, not all of them
 * perhaps, which are then copied, block by block. */
struct source {
    int N, columns;              /* rows to walk over; columns of X */
    const double *X, *y, *scale; /* y and scale: as in a block, or NULL */
    int ldx;                     /* rows that there are */
    const int *order;            /* [N] their numbers, from 0; NULL: as they are */
};

/* doubles that n rows are copied to */
size_t source_size(const struct source *s, int n);
/* rows start, ..., start + n - 1 of those to walk over; room: source_size() */
struct block source_block(const struct source *s, int start, int n, double *room);
/* all of them, as they are */
struct block source_whole(const struct source *s);

#endif
