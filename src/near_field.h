#ifndef PFDTC_NEAR_FIELD_H
#define PFDTC_NEAR_FIELD_H

/*
 * Targets, each beside its near rows (near.h): the rows of the data themselves with earlier ones,
 * for the sums of the posterior, or new rows with any, for predictions.
 *
 * They are taken in the order of a tree, in waves of three passes: find the neighbours of a wave;
 * make A for those of them that the store does not hold; then each target on its own.  While the
 * store has room for all rows A is made once; else it is emptied now and then, and since targets
 * of a wave lie together, so do their neighbours.
 */
#include "near.h"
#include "neighbours.h"
#include "pass.h"

struct store {
    int capacity, used, first_new;
    int *place;    /* [N] of a row in the store, -1: not there */
    int *row;      /* [capacity] from 0                        */
    double *A, *X; /* M x capacity, columns x capacity         */
};

struct near_field {
    struct inducing z; /* with L when it is run                                       */
    struct source rows, targets; /* of the data; the same, or new ones                */
    const int *rank;             /* of the rows, where they are the targets, or NULL  */
    int s;                       /* neighbours, at most rows.N                        */
    struct plan plan;            /* for all targets                                   */
    /* neighbours of every target (s x n, from 0, -1 behind the last), or NULL: the nearest rows */
    const int *given;
    /* targets that are functionals and not f(x): their covariances with f at these neighbours
     * (s x n), features (M x n) and prior variances [n], see near.h; else NULL */
    const double *cross, *features, *prior;
    /* what is kept of every target, as they come, where not NULL: u (s x n), the rows it is on
     * (s x n, from 1, 0 behind the last), r (M x n) */
    double *u, *R;
    int *near_rows;
    /* from here on the field's own */
    struct tree tree, order;
    struct finding finding;
    struct store store;
    int most, start, n; /* targets in a wave, at most; its first, and how many       */
    int *near;          /* their neighbours, from 1, 0 behind the last              */
    struct source wave, stored;
    struct pass find, fill, each;
};

/* The sink is told of every block of targets; its scratch is field_room(). */
void field_run(struct near_field *f, struct sink sink);

/* which row the i-th target of the wave is */
int field_row(const struct near_field *f, int i);

struct field_room {
    double *R, *mean, *left, *y, *u, *work; /* of a block of targets; u, work: of one */
    struct near near;
};
struct field_room field_room(const struct near_field *f, int n, double *work);
/* R (M x n) = r of every target of the block, its mean and what is left; how many failed */
int field_condition(const struct near_field *f, const struct visit *v,
                    struct field_room *r);

#endif
