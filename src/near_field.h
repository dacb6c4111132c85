#pragma once

/* Conditions f at many rows, the targets, each on its nearest neighbours (near.h). For the sums of the posterior, the
 * targets are the rows of the data, and their neighbours are earlier rows. For predictions, the targets are new rows.
 *
 * Targets are processed in waves, in the order of a tree, so that targets of a wave share neighbours. A wave has three
 * passes: find neighbours of its targets; compute A = L^{-1} k(Z, x) for neighbours x that are not in the store;
 * condition each target. A store with room for all rows is filled once, any other is emptied whenever it is full. */
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
    /* A target row has at most s neighbours if it is far from the data, else at most `few`. */
    int s, few;
    struct plan plan; /* plan for all targets */
    /* neighbours of each target row (s x n, from 0, then -1); if NULL, they are its nearest rows */
    const int *given;
    /* If linear functionals of f take the place of f at target rows: their covariances with f at the neighbours (s x n)
     * and with the whitened inducing variables (M x n), and their prior variances [n]; otherwise NULL */
    const double *cross, *features, *prior;
    /* Results for n target rows, or NULL. The mean of f at a row is u'y + R'v, with the responses y of its neighbours
     * and the whitened inducing variables v; u (s x n) and R (M x n) have a column for each row. near_rows (s x n) has
     * the numbers of the neighbours, which begin with 1. Places without a neighbour have 0. */
    double *u, *R;
    int *near_rows;
    /* field_run() sets the elements below. */
    struct tree tree, order;
    struct finding finding;
    struct store store;
    /* A wave is a set of at most `most` target rows processed together. The current one has n rows, from `start` on. */
    int most, start, n;
    int *near; /* numbers of the neighbours of the wave's rows, as in near_rows */
    struct source wave, stored;
    struct pass find, fill, each;
};

/* Calls the sink with every block of target rows, the rows at which f is conditioned on neighbours. */
void field_run(struct near_field *f, struct sink sink);

/* Returns the number, among all target rows, of row i of the current wave (the target rows processed together). */
int field_row(const struct near_field *f, int i);

struct field_scratch {
    double *R, *mean, *left, *y; /* of a block of targets */
    double *u, *work;            /* of one target */
    struct near near;
};
struct field_scratch field_scratch(const struct near_field *f, int n, double *work);
/* Conditions f at each target row of a block on its neighbours' responses. Given whitened inducing variables v too, f
 * has mean r'v + `mean` and variance `left`; column i of R (M x n) is r of row i. Returns the number of failures.
 * field_scratch() places the arrays of *r in a sink's scratch `work`. */
int field_condition(const struct near_field *f, const struct visit *v,
                    struct field_scratch *r);
