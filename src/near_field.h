#pragma once

/*
 * Conditions each target on its nearest rows (near.h). For the sums of the posterior the targets are
 * the rows of the data, and the near rows are earlier ones. For predictions they are new rows.
 *
 * Targets are taken in the order of a tree, in waves of three passes: find the neighbours of a wave;
 * compute A for neighbours that the store lacks; condition each target.  If the store has room for
 * all rows, A is computed once; else the store is emptied when it is full.  Targets of a wave lie
 * together, and so do their neighbours.
 */
#include "near.h"
#include "neighbours.h"
#include "pass.h"

struct store {
    int capacity, used, first_new;
    int *place;    /* [N] place of each row in the store, or -1  */
    int *row;      /* [capacity] from 0                        */
    double *A, *X; /* M x capacity, columns x capacity         */
};

struct near_field {
    struct inducing z; /* field_run() needs its L                                      */
    struct source rows, targets; /* the data; the targets, perhaps the same rows      */
    const int *rank;             /* order of the rows if they are the targets, or NULL */
    int s, few;       /* neighbours of a target far from the data, of others; <= rows.N */
    struct plan plan; /* for all targets */
    /* neighbours of every target (s x n, from 0, -1 behind the last), or NULL: the nearest rows */
    const int *given;
    /* if the targets are functionals and not f(x): their covariances with f at the neighbours
     * (s x n), features (M x n) and prior variances [n], see near.h; else NULL */
    const double *cross, *features, *prior;
    /* results of every target, in their order, or NULL: u (s x n), r (M x n), and the rows that u
     * refers to (s x n, from 1, 0 behind the last) */
    double *u, *R;
    int *near_rows;
    /* the elements below are set by field_run() */
    struct tree tree, order;
    struct finding finding;
    struct store store;
    int most, start, n; /* most targets in a wave; its first target, their number    */
    int *near;          /* their neighbours, from 1, 0 behind the last              */
    struct source wave, stored;
    struct pass find, fill, each;
};

/* Calls the sink with every block of targets; the sink's scratch is field_room(). */
void field_run(struct near_field *f, struct sink sink);

/* Returns the row of the i-th target of the wave. */
int field_row(const struct near_field *f, int i);

struct field_room {
    double *R, *mean, *left, *y; /* for a block of targets */
    double *u, *work;            /* for one target */
    struct near near;
};
struct field_room field_room(const struct near_field *f, int n, double *work);
/* Computes r (M x n), mean and residual variance of every target; returns how many failed. */
int field_condition(const struct near_field *f, const struct visit *v,
                    struct field_room *r);
