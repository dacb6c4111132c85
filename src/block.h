#pragma once

#include <stddef.h>

#define PI      3.14159265358979323846
#define LOG_2PI 1.837877066409345483560659472811

static inline int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* This struct is a view of n rows of a matrix. Column j begins at X + j ldx. */
struct rows {
    int n;
    const double *X;
    int ldx;
};

static inline struct rows matrix_rows(int n, const double *X)
{
    return (struct rows){n, X, n};
}

static inline struct rows rows_from(struct rows r, int first, int n)
{
    return (struct rows){n, r.X + first, r.ldx};
}

/* Returns a view of the rows of r from row `first` on, at most `most` rows. */
static inline struct rows rows_tile(struct rows r, int first, int most)
{
    return rows_from(r, first, min_int(r.n - first, most));
}

static inline const double *rows_column(struct rows r, int j)
{
    return r.X + (size_t)j * (size_t)r.ldx;
}

/* This struct is a view of consecutive rows of the data. */
struct block {
    int n;
    const double *X; /* inputs, n rows with leading dimension ldx */
    int ldx;
    const double *y;     /* responses [n], or NULL */
    const double *scale; /* square roots of the weights [n]; NULL if all are 1 */
    int first;           /* number of the first row in the source */
};

static inline struct rows rows_of(const struct block *b)
{
    return (struct rows){b->n, b->X, b->ldx};
}

/* Returns x[i], or 1 if x is NULL, such as weights that are all 1. */
static inline double or_one(const double *x, int i)
{
    return x == NULL ? 1.0 : x[i];
}

static inline double weight_of(const double *scale, int i)
{
    return scale == NULL ? 1.0 : scale[i] * scale[i];
}

/* Computes the responses times the roots of the weights: ys [n] = scale * y. */
void block_response(const struct block *b, double *ys);

/* A source of rows is a matrix, or a selection of its rows in any order. A selection is copied block by block. */
struct source {
    int N, columns;              /* number of rows to visit; number of columns of X */
    const double *X, *y, *scale; /* responses and scales as in a block, or NULL */
    int ldx;                     /* number of rows of the matrix X */
    /* numbers of the selected rows [N], from 0; NULL selects the first N rows */
    const int *order;
};

/* Returns the number of doubles of scratch that source_block() needs for n rows. */
size_t source_size(const struct source *s, int n);
/* Returns rows start, ..., start + n - 1 of the source as a block. scratch: source_size() doubles */
struct block source_block(const struct source *s, int start, int n, double *scratch);
/* Returns all rows of a source as one block, without copies. `s->order` must be NULL. */
struct block source_whole(const struct source *s);
