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
    int slopes;     /* 0: value; 1: and derivatives; 2: information from a sample */
    const int *row; /* rows of the terms [count], from 0 */
    const int *neighbours; /* s x count, from 0, -1 behind the last of a term */
    const double *times;   /* weights of the terms [count], or NULL for 1 */
    /* `given` and u have (s + 1) x count numbers, with row i at place s behind its neighbours; or they are NULL.
     * `given` has responses that replace those of the rows.  u is a result (vecchia.h).  If u is not NULL, D and r
     * are stored in d and r [count]; r may be NULL. */
    const double *given;
    double *u, *d, *r;
    struct pass pass;
};

/* Adds all terms to `whole`. Each block has its own sum, and the sums are added in order, so that the number of
 * threads does not change the result. */
enum status likelihood_run(struct likelihood *l, struct vecchia *whole);
