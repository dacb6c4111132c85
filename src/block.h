#pragma once

#include <stddef.h>

/* Rows of a matrix, not copied: column j begins at X + j ldx. */
struct rows {
    int n;
    const double *X;
    int ldx;
};

/* Returns all rows of a matrix of n rows. */
static inline struct rows matrix_rows(int n, const double *X)
{
    return (struct rows){n, X, n};
}

/* Returns `n` rows, of which `first` is the first. */
static inline struct rows rows_from(struct rows r, int first, int n)
{
    return (struct rows){n, r.X + first, r.ldx};
}

/* Returns at most `most` rows from `first` on. */
static inline struct rows rows_tile(struct rows r, int first, int most)
{
    return rows_from(r, first, r.n - first < most ? r.n - first : most);
}

/* Returns column j. */
static inline const double *rows_column(struct rows r, int j)
{
    return r.X + (size_t)j * (size_t)r.ldx;
}

/* Consecutive rows of a matrix, not copied. */
struct block {
    int n;
    const double *X; /* n rows, leading dimension ldx */
    int ldx;
    const double *y;     /* [n] */
    const double *scale; /* [n] or NULL: square roots of the weights */
    int first;           /* number of the first row in its source */
};

/* Returns the rows of a block without responses and scales. */
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
