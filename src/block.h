#ifndef PFDTC_BLOCK_H
#define PFDTC_BLOCK_H

#include "rows.h"

/* Consecutive rows of a matrix, not copied. */
struct block {
    int n;
    const double *X; /* n rows, leading dimension ldx */
    int ldx;
    const double *y;     /* [n] */
    const double *scale; /* [n] or NULL: square roots of the weights */
    int first;           /* number of the first row in its source */
};

static inline struct rows rows_of(const struct block *b)
{
    return (struct rows){b->n, b->X, b->ldx};
}

/* Returns the scale of row i, 1 where rows have none. */
static inline double scale_of(const double *scale, int i)
{
    return scale == NULL ? 1.0 : scale[i];
}

/* Returns the weight of row i, the square of its scale. */
static inline double weight_of(const double *scale, int i)
{
    return scale == NULL ? 1.0 : scale[i] * scale[i];
}

/* Computes ys [n] = scale * y. */
void block_response(const struct block *b, double *ys);

/* Where rows come from: a matrix, or some of its rows in another order, which are copied block by
 * block. */
struct source {
    int N, columns;              /* rows to walk over; columns of X */
    const double *X, *y, *scale; /* y and scale: as in a block, or NULL */
    int ldx;                     /* rows of the matrix */
    const int *order;            /* [N] their numbers, from 0; NULL: as they are */
};

/* Returns the number of doubles for copies of n rows. */
size_t source_size(const struct source *s, int n);
/* Returns rows start, ..., start + n - 1 of the pass; room: source_size(). */
struct block source_block(const struct source *s, int start, int n, double *room);
/* Returns all rows as one block, without copies. */
struct block source_whole(const struct source *s);

#endif
