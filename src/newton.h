#pragma once

/*
 * Newton's method for a smooth function Psi of u, with steps that are shortened until Psi decreases
 * enough (Armijo).
 */
#include "arena.h"
#include "status.h"

struct newton {
    int n;
    double *u, *r,
        *C; /* [n], [n], n x n: the gradient r of Psi at u, C C' = H.  The caller's */
    double *step, *trial;  /* [n] H^{-1} r, which is taken off u; newton_open() */
    double psi, decrement; /* Psi at u, sqrt(r'H^{-1} r) */
    int steps;
    double (*value)(void *self);        /* Psi at `trial`, with what prepare() reads */
    enum status (*prepare)(void *self); /* u = trial; r, C and the step there */
};

void newton_open(struct newton *t, int n, struct arena *arena);

/* Computes the step and its decrement from r and C. */
enum status newton_step(struct newton *t);

/* Moves u to the minimum, until the decrement is below `enough`, after maxit steps, or when no step lowers
 * Psi in double precision.  All results belong to the last u. */
enum status newton_run(struct newton *t, void *self, double enough, int maxit);

/* Returns -Psi - log det H / 2: log Z, if Psi has no constant. */
double newton_evidence(const struct newton *t);
