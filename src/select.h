#pragma once

/*
 * Greedy inducing points: pivoted Cholesky of k(X, X).  Each step takes the row with the most
 * prior variance left, E_ii = k(x_i, x_i) - |A_i|^2, and updates A and E (left-looking).
 */
#include "arena.h"
#include "block.h"
#include "kernel.h"

struct select_state {
    const struct kernel *kernel;
    struct block rows;
    int most, m; /* room for that many pivots; taken so far */
    int *pivot;  /* [most] rows taken, from 0: the caller's */
    /* select_start() lays out the elements below */
    double *A;     /* n x most: column m is what the m-th pivot explains of every row */
    double *prior; /* [n] k(x, x) */
    double *E;     /* [n] variance left */
    double *t;     /* [most] sum of E after each pivot */
    double *work;
};

/* E = prior = k(x, x), no pivots yet */
void select_start(struct select_state *s, struct arena *arena);

/* Takes one more pivot.  Returns 0 if every E is at most tolerance * the prior variance, so that only
 * rounding is left of K.  Rows equal to a pivot, for the kernel, get E = 0 exactly. */
int select_step(struct select_state *s, double tolerance);

/*
 * Chooses rows greedily by how much each reduces tr(P E).  A row is a column of V (coordinates in
 * some basis), v the rest of the column after projection on those taken.  Each step takes the largest
 * v'P v / v'v, or the largest v'v if only rounding is left of tr(P E).
 */
struct guided_state {
    int r, n, most;  /* V is r x n; room for that many pivots */
    const double *V; /* r x n */
    const double *P; /* r x r, symmetric, not negative */
    int m;           /* pivots taken so far */
    int *pivot;      /* [most] columns taken, from 0: the caller's */
    double first;    /* largest gain at the start */
    /* laid out */
    double *left; /* [n] v'v of what is left */
    double *gain; /* [n] v'P v of what is left */
    double *B;    /* r x most: orthonormal basis of the columns taken */
    double *S;    /* n x most: V'B */
    double *work;
};

void guided_start(struct guided_state *g, struct arena *arena);

/* Takes one more pivot.  Returns 0 if the rest of every column is at most `least`. */
int guided_step(struct guided_state *g, double least);
