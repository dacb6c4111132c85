#ifndef PFDTC_FFI_NEAR_PASS_H
#define PFDTC_FFI_NEAR_PASS_H

/*
 * Targets, each beside its near rows: the training rows themselves with earlier rows (the sums
 * of the posterior) or new rows with any (predictions).
 *
 * They are taken in the order of a tree, in waves: find the neighbours of a wave; make A for
 * those of them that the store does not hold; then each target on its own.  While the store has
 * room for all rows A is made once; else it is emptied now and then, and since targets of a wave
 * lie together, so do their neighbours.
 */
#include "args.h"
#include "near.h"
#include "neighbours.h"

struct rows {
    int N, columns;
    const double *X, *y, *scale; /* scale may be NULL, y too where nothing reads it */
};

struct store {
    int capacity, used;
    int *place;    /* [N] of a row in the store, -1: not there */
    int *row;      /* [capacity] from 0                        */
    double *A, *X; /* M x capacity, columns x capacity         */
};

struct near_slot {
    struct near near;
    double *work, *u, *r2, *X, *a, *R, *scale, *y;
    double *sums; /* of stats.h                         */
    double log_d;
    enum status status;
};

struct near_pass {
    struct plan plan; /* of a wave */
    struct rows rows;
    struct inducing z;
    struct tree tree;
    struct store store;
    int s, first_new;
    double s2;
    const int *rank;   /* of the training rows; NULL: new rows */
    const int *target; /* NULL: targets as they come           */
    struct rows targets;
    int start; /* of the wave */
    int *near, *found;
    struct near_slot *slot;
    const double *beta, *C; /* of the posterior, where new rows are asked for */
    double *mean, *var_near, *var_far;
    double *kept_u, *kept_d; /* s x N, N: u and d of every training row, or NULL */
    int *kept_rows;          /* s x N, from 1; 0: there is none                   */
    double *keep_u, *keep_R; /* s x n, M x n of new rows as they come, where wanted */
    int *keep_near;          /* s x n, -1 where there are fewer                     */
};

/* scratch by R_alloc() */
double *doubles(size_t n);

/* The tree of some rows, for so many queries; rank as in tree_build(). */
void build_tree(const struct kernel *k, const struct rows *rows, const int *rank,
                int queries, struct tree *tree);

/* n targets, in waves: sums in the slots, or means and variances where p->mean is not NULL */
void run_targets(struct near_pass *p, int n);

/* the first failure that a slot met */
enum status slots_status(const struct near_pass *p);

#endif
