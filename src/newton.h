#pragma once

/*
 * Newton's method for a smooth function Psi of u, with steps that are shortened until Psi decreases
 * enough (Armijo).
 */
#include <stddef.h>
#include "status.h"

struct newton {
    size_t n;
    double *u, *step, *trial; /* [n]; the step is H^{-1} r, taken off u */
    double *psi, *decrement;  /* Psi at u, sqrt(r'H^{-1} r) */
    int *steps;
    void *self;
    double (*value)(void *self);        /* Psi at `trial`, with what prepare() reads */
    enum status (*prepare)(void *self); /* u = trial; the step and its decrement there */
};

/* Moves u to the minimum, until the decrement is below `enough`, after maxit steps, or when no step lowers
 * Psi in double precision.  All results belong to the last u. */
enum status newton_run(const struct newton *t, double enough, int maxit);
