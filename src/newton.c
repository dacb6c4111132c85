#include <math.h>
#include "newton.h"
#include "linalg.h"

void newton_open(struct newton *t, int n, struct arena *arena)
{
    t->n = n;
    t->step = arena_take(arena, (size_t)n);
    t->trial = arena_take(arena, (size_t)n);
    t->decrement = INFINITY;
}

enum status newton_step(struct newton *t)
{
    const size_t n = (size_t)t->n;
    copy(n, t->r, t->step);
    solve_chol(t->n, 1, t->C, t->step);
    const double squared = dot(n, t->r, t->step);
    t->decrement = sqrt(squared > 0.0 ? squared : 0.0);
    return isfinite(squared) ? STATUS_OK : STATUS_NOT_FINITE;
}

/* Returns the first of the step lengths 1, 1/2, ... that lowers Psi, the function to minimise, by 1e-4 times the
 * predicted decrease (Armijo's rule), up to rounding of Psi. Returns 0 if there is none. */
static double search(struct newton *t, void *self)
{
    const size_t n = (size_t)t->n;
    const double promised = t->decrement * t->decrement, rounding = 1e-14 * fabs(t->psi);
    for (double by = 1.0; by > 1e-12; by *= 0.5) {
        copy(n, t->u, t->trial);
        add_scaled(n, -by, t->step, t->trial);
        const double psi = t->value(self);
        if (isfinite(psi) && psi <= t->psi - 1e-4 * by * promised + rounding) {
            t->psi = psi;
            return by;
        }
    }
    copy(n, t->u, t->trial);
    t->psi = t->value(self);
    return 0.0;
}

enum status newton_run(struct newton *t, void *self, double enough, int maxit)
{
    copy((size_t)t->n, t->u, t->trial);
    t->psi = t->value(self);
    t->steps = 0;
    enum status status = isfinite(t->psi) ? t->prepare(self) : STATUS_NOT_FINITE;
    while (status == STATUS_OK && t->decrement >= enough && t->steps < maxit) {
        const double before = t->decrement, by = search(t, self);
        t->steps++;
        status = t->prepare(self);
        /* near the minimum of Psi, rounding errors can hide that a step lowers Psi */
        if (by == 0.0 || (before < 1e-6 && t->decrement >= 0.5 * before))
            break;
    }
    return status;
}

double newton_evidence(const struct newton *t)
{
    return -t->psi - 0.5 * chol_logdet(t->n, t->C);
}
