#pragma once

/* The nearest-neighbour likelihood: a sum over rows of times * log p(y_i | its neighbours). */
#include "pass.h"
#include "vecchia.h"

struct likelihood {
    const struct model *model;
    const struct source *rows; /* of the data                                     */
    const double *weights;     /* of the rows, or NULL                            */
    int q;                     /* columns of b, in which the log noise is linear  */
    const double *b;           /* N x q                                          */
    int count, s;              /* terms; most neighbours of each                  */
    int slopes;                /* 0: none; 1: of all terms; 2: information of some */
    const int *row;            /* [count] from 0                                  */
    const int *neighbours;     /* s x count, -1 behind the last of each           */
    const double *times;       /* [count]                                         */
    /* Arrays of (s + 1) x count numbers, row i at place s behind its neighbours, or NULL. `given`
     * has responses that replace those of the rows. u is a result, see vecchia.h, and so
     * are D and r [count] if there is u; r may be NULL. */
    const double *given;
    double *u, *d, *r;
    struct pass pass;
};

/* Adds all terms to `whole`.  The number of threads does not change the result: each block has a sum
 * of its own, and these are added in order. */
enum status likelihood_run(struct likelihood *l, struct vecchia *whole);

/* Returns the number of neighbours of the row of term t. */
int likelihood_neighbours(const struct likelihood *l, int t);
