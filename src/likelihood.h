#pragma once

/* The Vecchia likelihood: a sum over rows of times * log p(y_i | responses of its neighbours). */
#include "pass.h"
#include "vecchia.h"

struct likelihood {
    const struct model *model;
    const struct source *rows; /* data */
    const double *weights;     /* of the rows [N], or NULL */
    int q;                     /* number of columns of b */
    const double *b;           /* N x q, in which the log noise is linear */
    int count, s;              /* number of terms; largest number of neighbours */
    int slopes;     /* 1: with derivatives; 2: information from some terms; else 0 */
    const int *row; /* rows of the terms [count], from 0 */
    const int *neighbours; /* s x count, from 0, -1 behind the last of a term */
    const double *times;   /* weights of the terms [count], or NULL for 1 */
    /* Arrays of (s + 1) x count numbers, with row i at place s behind its neighbours; or NULL.  `given` has
     * responses that replace those of the rows.  u is a result, see vecchia.h.  With u, D and r are stored in d and
     * r [count]; r may be NULL. */
    const double *given;
    double *u, *d, *r;
    struct pass pass;
};

/* Adds all terms to `whole`. Each block has its own sum, and the sums are added in order, so that the number of
 * threads does not change the result. */
enum status likelihood_run(struct likelihood *l, struct vecchia *whole);
