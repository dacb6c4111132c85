#pragma once

/*
 * Greedy choice of inducing points: pivoted Cholesky factorisation of k(X, X).  Each step takes the row with the
 * largest residual prior variance, E_ii = k(x_i, x_i) - |A_i|^2, and then updates A and E.
 */
#include "arena.h"
#include "block.h"
#include "kernel.h"

struct select_state {
    const struct kernel *kernel;
    struct rows X;
    int most, m; /* largest number of pivots; number taken so far */
    int *pivot;  /* rows taken [most], from 0; memory of the caller */
    /* select_start() allocates the elements below */
    double *A;     /* n x most, the factor of the rows: column m comes from pivot m */
    double *prior; /* k(x, x) [n] */
    double *E;     /* residual prior variances [n] */
    double *t;     /* sum of E after each pivot [most] */
    double *work;
};

/* Starts without pivots, with E = prior = k(x, x). */
void select_start(struct select_state *s, struct arena *arena);

/* Takes one more pivot.  Returns 0 if all E are at most tolerance * prior, so that only rounding is left of K.
 * Rows that the kernel does not distinguish from a pivot get E = 0 exactly. */
int select_step(struct select_state *s, double tolerance);

/*
 * Chooses rows greedily by how much each reduces tr(P E).  A row is a column of V (its coordinates in some basis), and
 * v is what remains of the column after projection on the columns taken.  Each step takes the largest v'P v / v'v, or
 * the largest v'v if only rounding is left of tr(P E).
 */
struct guided_state {
    int r, n, most; /* V is r x n; largest number of pivots */
    const double *V;
    const double *P; /* r x r, symmetric, positive semidefinite */
    int m;           /* pivots taken so far */
    int *pivot;      /* columns taken [most], from 0; memory of the caller */
    double first;    /* largest v'P v at the start */
    /* guided_start() allocates the elements below */
    double *left; /* v'v [n] */
    double *gain; /* v'P v [n] */
    double *B;    /* r x most: orthonormal basis of the columns taken */
    double *S;    /* n x most: V'B */
    double *work;
};

void guided_start(struct guided_state *g, struct arena *arena);

/* Takes one more pivot.  Returns 0 if v'v is at most `least` for every column. */
int guided_step(struct guided_state *g, double least);
