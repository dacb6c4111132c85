#pragma once

/* Newton's method for a smooth function Psi of u.  Steps are halved until Psi decreases enough (Armijo). */
#include "arena.h"
#include "status.h"

struct newton {
    int n;
    double *u, *r, *C; /* u [n]; gradient r [n]; C C' = Hessian H; the caller's memory */
    double *step, *trial;  /* H^{-1} r [n], which is subtracted from u; the next u [n] */
    double psi, decrement; /* Psi at u; sqrt(r'H^{-1} r) */
    int steps;
    double (*value)(void *self); /* returns Psi at `trial` */
    /* sets u = trial, and computes the gradient r there, the Cholesky factor C of the Hessian, and the step */
    enum status (*prepare)(void *self);
};

/* Allocates t->step and t->trial. */
void newton_open(struct newton *t, int n, struct arena *arena);

/* Computes the step H^{-1} r and the decrement sqrt(r'H^{-1} r), from the gradient r and the Cholesky factor C of H. */
enum status newton_step(struct newton *t);

/* Minimises the function Psi by Newton steps from u. Stops if the decrement is below `enough`, after maxit steps, or if
 * steps no longer lower Psi in double precision. The fields of *t are then those at the last u. */
enum status newton_run(struct newton *t, void *self, double enough, int maxit);

/* Returns -Psi - log det H / 2 at u, Laplace's log integral of exp(-Psi) less n log(2 pi) / 2. H: Hessian of Psi */
double newton_evidence(const struct newton *t);
