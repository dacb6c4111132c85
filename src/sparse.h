#pragma once

/* This struct has the entries of a matrix that are not 0. Those of row i are numbers start[i] to start[i + 1] - 1 of
 * `value`, in increasing order of their columns. A row has one entry for each factor if columns code its levels. */
#include "arena.h"

struct sparse {
    int q; /* number of columns */
    const size_t *start;
    const int *column;
    const double *value;
};

struct sparse sparse_rows(int n, int q, const double *B, struct arena *arena);

/* Copies m rows, but only the columns with an entry in them: numbers at[0] < at[1] < ... Returns how many columns these
 * are. Columns of `to` are m numbers apart. `at` has room for 2 q integers, `to` for m q numbers. */
int sparse_gather(const struct sparse *b, int m, const int *row, int *at, double *to);

/* Returns b'V b for row i of the matrix. */
double sparse_form(const struct sparse *b, int i, const double *V);
