#ifndef PFDTC_SELECT_H
#define PFDTC_SELECT_H

/*
 * Greedy inducing points: pivoted Cholesky of k(X, X).  Each step takes the row with the most
 * prior variance left, E_ii = k(x_i, x_i) - |A_i|^2, and updates A and E (left-looking).
 */
#include "kernel.h"

struct select_state {
    const struct kernel *kernel;
    int n, ldx,
        most; /* rows, leading dimension of X, room for that many pivots         */
    const double *X;
    int m;      /* pivots taken so far                                                  */
    int *pivot; /* [most] rows taken, from 0                                           */
    double *A;  /* n x most: column m is what the m-th pivot explains of every row      */
    double *E;  /* [n] variance left                                                    */
    double *t;  /* [most] sum of E after each pivot                                     */
};

/* doubles of scratch for a step; A, E and t are the caller's */
size_t select_size(int n, int most);

/* E = k(x, x), no pivots yet */
void select_start(struct select_state *s);

/* One pivot more.  Returns 0 where the largest E is at most tolerance * the prior variance
 * there: what is left of K is rounding.  Rows of X equal to a pivot get E = 0 exactly. */
int select_step(struct select_state *s, double tolerance, double *work);

#endif
