#include <math.h>
#include "newton.h"
#include "linalg.h"

/* Armijo: the first of t = 1, 1/2, ... that lowers Psi by a share of the predicted decrease, up to the
 * rounding of Psi; 0 where there is none */
static double search(const struct newton *t)
{
    const double promised = *t->decrement * *t->decrement,
                 rounding = 1e-14 * fabs(*t->psi);
    for (double by = 1.0; by > 1e-12; by *= 0.5) {
        copy(t->n, t->u, t->trial);
        add_scaled(t->n, -by, t->step, t->trial);
        const double psi = t->value(t->self);
        if (isfinite(psi) && psi <= *t->psi - 1e-4 * by * promised + rounding) {
            *t->psi = psi;
            return by;
        }
    }
    copy(t->n, t->u, t->trial);
    *t->psi = t->value(t->self);
    return 0.0;
}

enum status newton_run(const struct newton *t, double enough, int maxit)
{
    copy(t->n, t->u, t->trial);
    *t->psi = t->value(t->self);
    *t->steps = 0;
    enum status status = isfinite(*t->psi) ? t->prepare(t->self) : STATUS_NOT_FINITE;
    while (status == STATUS_OK && *t->decrement >= enough && *t->steps < maxit) {
        const double before = *t->decrement, by = search(t);
        ++*t->steps;
        status = t->prepare(t->self);
        /* Newton's method converges here, and no step is better: this is double precision's limit */
        if (by == 0.0 || (before < 1e-6 && *t->decrement >= 0.5 * before))
            break;
    }
    return status;
}
