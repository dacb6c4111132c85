#ifndef PFDTC_ROWS_H
#define PFDTC_ROWS_H

/* Rows of a matrix, not copied: column j begins at X + j ldx. */
#include <stddef.h>

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

static inline const double *rows_column(struct rows r, int j)
{
    return r.X + (size_t)j * (size_t)r.ldx;
}

#endif
