#pragma once

/*
 * Conditions targets on their nearest neighbours (near.h).  For the sums of the posterior the targets are the rows of
 * the data, and their neighbours are earlier rows.  For predictions the targets are new rows.
 *
 * Targets are processed in waves, in the order of a tree.  A wave has three passes: find neighbours of its targets;
 * compute A for neighbours that are not in the store; condition each target.  If the store has room for all rows, A is
 * computed once.  Otherwise the store is emptied when it is full.  Targets of a wave are close to each other, so they
 * share neighbours.
 */
#include "near.h"
#include "neighbours.h"
#include "pass.h"

struct store { /* first_new: place of the first row that this wave has added */
    int capacity, used, first_new;
    int *place; /* place of each row in the store [N], or -1 */
    int *row;   /* row at each place [capacity], from 0 */
    double *A, *X;
};

struct near_field {
    struct inducing z;           /* inducing points; field_run() needs their L */
    struct source rows, targets; /* data; targets, which may be the same rows */
    const int *rank;             /* order of the rows if they are the targets, or NULL */
    /* largest number of neighbours of a target: s if it is far from the data, else `few`; at most rows.N */
    int s, few;
    struct plan plan; /* plan for all targets */
    /* neighbours of every target (s x n, from 0, -1 behind the last), or NULL for its nearest rows */
    const int *given;
    /* If the targets are functionals in place of f(x): their covariances with f at the neighbours (s x n), features
     * (M x n) and prior variances [n], see near.h.  Otherwise NULL. */
    const double *cross, *features, *prior;
    /* Results of every target, in their order, or NULL: u (s x n), r (M x n), and the rows that u refers to (s x n,
     * from 1, 0 behind the last). */
    double *u, *R;
    int *near_rows;
    /* Set by field_run(): */
    struct tree tree, order;
    struct finding finding;
    struct store store;
    /* Targets come in waves.  most: largest number of targets in a wave; start: first target of this wave;
     * n: number of its targets */
    int most, start, n;
    int *near; /* neighbours of the wave, from 1, 0 behind the last */
    struct source wave, stored;
    struct pass find, fill, each;
};

/* Calls the sink with every block of targets. field_scratch() divides the sink's scratch. */
void field_run(struct near_field *f, struct sink sink);

/* Returns the number of target i of the wave among all targets. */
int field_row(const struct near_field *f, int i);

struct field_scratch {
    double *R, *mean, *left, *y; /* of a block of targets */
    double *u, *work;            /* of one target */
    struct near near;
};
struct field_scratch field_scratch(const struct near_field *f, int n, double *work);
/* Computes R (M x n, columns r), `mean` and `left` by near_condition() for each target of a block. Returns the number
 * of targets for which it failed. */
int field_condition(const struct near_field *f, const struct visit *v,
                    struct field_scratch *r);
