#pragma once

/* Chooses inducing points greedily, by a pivoted Cholesky factorisation of k(X, X). Each step chooses the row with the
 * largest residual prior variance E_i = k(x_i, x_i) - |row i of A|^2, and adds a column to A. */
#include "arena.h"
#include "block.h"
#include "kernel.h"

struct select_state {
    const struct kernel *kernel;
    struct rows X;
    int most, m; /* largest number of pivots; number so far */
    int *pivot;  /* rows that are pivots [most], from 0; memory of the caller */
    /* select_start() allocates the elements below */
    double *A;     /* n x most, the factor of the rows: column m comes from pivot m */
    double *prior; /* k(x, x) [n] */
    double *E;     /* residual prior variances [n] */
    double *t;     /* sum of E after each pivot [most] */
    double *work;
};

/* Allocates memory, and starts without pivots: residual prior variances are prior variances. */
void select_start(struct select_state *s, struct arena *arena);

/* Adds the row with the largest residual prior variance E as a pivot. Returns 0 if there are `most` pivots, or if all E
 * are at most tolerance * prior (rounding errors). Rows that the kernel does not distinguish from a pivot get E = 0. */
int select_step(struct select_state *s, double tolerance);

/* Chooses columns of V (pivots) greedily, each to reduce tr((I - B B') P) most, where B is an orthonormal basis of the
 * pivots so far. Let v be the part of a column orthogonal to the pivots. Each step chooses the largest v'P v / v'v, or
 * the largest v'v if every v'P v is only rounding. R uses the rows that belong to these columns as inducing points. */
struct guided_state {
    int r, n, most; /* V is r x n; largest number of pivots */
    const double *V;
    const double *P; /* r x r, symmetric, positive semidefinite */
    int m;           /* number of pivots so far */
    int *pivot;      /* columns that are pivots [most], from 0; memory of the caller */
    double first;    /* largest v'P v at the start */
    /* guided_start() allocates these; v is the part of a column of V that is orthogonal to the pivots */
    double *left; /* v'v [n] */
    double *gain; /* v'P v [n] */
    double *B;    /* r x most */
    double *S;    /* n x most: V'B */
    double *work;
};

void guided_start(struct guided_state *g, struct arena *arena);

/* Adds a pivot. Returns 0 at `most` pivots, or if each column's part v orthogonal to all pivots has |v|^2 <= least. */
int guided_step(struct guided_state *g, double least);
