#include <math.h>
#include "laplace.h"
#include "linalg.h"

/* laplace_variational() maximises a lower bound on the log marginal likelihood over q(u) = N(u, H^{-1}), by steps along
 * the natural gradient. With averages under q of the derivatives g and -W of the log likelihood l in f, and A = L^{-1}
 * k(Z, X), a step of length t is
 *
 *     H <- (1 - t) H + t (I + A W A'),   u <- u - t H^{-1} r,   r = u - A g,   with the new H.
 *
 * At t = 1 this is Newton's step with averages. The derivative of the bound in t at 0 is
 *
 *     r'H^{-1}r + tr[(H^{-1} D)^2] / 2,   D = I + A W A' - H.
 *
 * This derivative is positive unless q is stationary, so short enough steps raise the bound. If every l is concave, the
 * bound is concave in u and the Cholesky factor of H^{-1}, and the only stationary q maximises it. */

/* Returns minus the variational bound for q = N(l->mode.trial, (C C')^{-1}). */
static double value(struct laplace *l)
{
    const size_t M = (size_t)l->z.M;
    const double sum = laplace_pass(l);
    lower_inverse_columns((int)M, l->mode.C, 0, (int)M, l->work);
    return 0.5 * (sum_squares(M * M, l->work) + sum_squares(M, l->mode.trial) -
                  (double)M + chol_logdet((int)M, l->mode.C)) -
           sum;
}

/* Prepares a step from q = N(u, (I + G)^{-1}): computes mode.r, the gradient of minus the bound in u; `toward`, the
 * direction A W A' - G in which G moves, where A are the features and -W averages of the second derivatives of l in f;
 * mode.decrement, the root of the bound's derivative in the step length t at t = 0. */
static enum status prepare(struct laplace *l)
{
    const size_t M = (size_t)l->z.M;
    double *B = l->work, square = 0.0; /* H^{-1} toward */
    copy(M, l->mode.trial, l->mode.u);
    for (size_t m = 0; m < M; m++)
        l->mode.r[m] = l->mode.u[m] - l->sums[M * M + m];
    mirror_lower((int)M, l->sums);
    copy(M * M, l->sums, l->toward);
    add_scaled(M * M, -1.0, l->G, l->toward);
    copy(M * M, l->toward, B);
    solve_chol((int)M, (int)M, l->mode.C, B);
    for (size_t j = 0; j < M; j++)
        for (size_t i = 0; i < M; i++)
            square += B[j * M + i] * B[i * M + j];
    copy(M, l->mode.r, l->mode.step);
    solve_lower((int)M, 1, l->mode.C, l->mode.step);
    const double squared = sum_squares(M, l->mode.step) + 0.5 * square;
    l->mode.decrement = sqrt(squared > 0.0 ? squared : 0.0);
    return isfinite(squared) ? STATUS_OK : STATUS_NOT_FINITE;
}

/* Tries a step of length t from q = N(u, (I + G)^{-1}): G becomes G + t toward, and u becomes u - t (I + G)^{-1} r with
 * the gradient r = mode.r and the new G. Makes the step and returns 1 if the bound rises by 1/4 nat, or by 1/4 of t
 * times its derivative (a step to the top of a parabola gains 1/2 of that). The bound has a maximum, so only finitely
 * many steps raise it by 1/4 nat. */
static int try_step(struct laplace *l, double t)
{
    const size_t M = (size_t)l->z.M;
    add_scaled(M * M, t, l->toward, l->G);
    if (!laplace_factor(l, l->G)) {
        copy(M, l->mode.r, l->mode.step);
        solve_chol((int)M, 1, l->mode.C, l->mode.step);
        copy(M, l->mode.u, l->mode.trial);
        add_scaled(M, -t, l->mode.step, l->mode.trial);
        const double psi = value(l), slope = l->mode.decrement * l->mode.decrement,
                     promised = t * slope < 1.0 ? t * slope : 1.0;
        if (isfinite(psi) &&
            psi <= l->mode.psi - 0.25 * promised + 1e-14 * fabs(l->mode.psi)) {
            l->mode.psi = psi;
            return 1;
        }
    }
    add_scaled(M * M, -t, l->toward, l->G);
    return 0;
}

/* Multiplies G by c in q = N(u, (I + G)^{-1}), and prepares a step from there. */
static enum status start_at(struct laplace *l, double c)
{
    const size_t M = (size_t)l->z.M;
    add_scaled(M * M, c - 1.0, l->G, l->G);
    if (laplace_factor(l, l->G))
        return STATUS_INNER_NOT_PD;
    l->mode.psi = value(l);
    return isfinite(l->mode.psi) ? prepare(l) : STATUS_NOT_FINITE;
}

/* Laplace's q = N(u, (I + G)^{-1}), at the mode u, may be so wide that averages of e^f overflow. Doubles G (narrows q)
 * until the bound is finite and the decrement small. Undoes the last doubling if it did not raise the bound. */
static enum status start(struct laplace *l, int most)
{
    enum status status = start_at(l, 1.0);
    for (int k = 0; k < most && status != STATUS_INNER_NOT_PD; k++) {
        const double before = status == STATUS_OK ? l->mode.psi : INFINITY;
        if (before < INFINITY &&
            l->mode.decrement * l->mode.decrement <= 4.0 * (1.0 + fabs(before)))
            break;
        status = start_at(l, 2.0);
        if (!(l->mode.psi < before) && before < INFINITY)
            return start_at(l, 0.5);
    }
    return status;
}

enum status laplace_variational(struct laplace *l, double enough, int maxit)
{
    double t = 1.0;
    copy((size_t)l->z.M, l->mode.u, l->mode.trial);
    l->mode.steps = 0;
    enum status status = start(l, maxit > 0 ? 60 : 0);
    while (status == STATUS_OK && l->mode.decrement >= enough && l->mode.steps < maxit) {
        const double before = l->mode.decrement;
        /* Tries longer steps t again, unless the change of the bound may be a rounding error. */
        if (before * before > 1e-10 * fabs(l->mode.psi))
            t = t < 0.5 ? 2.0 * t : 1.0;
        while (t > 1e-12 && !try_step(l, t))
            t *= 0.5;
        l->mode.steps++;
        if (t <= 1e-12) { /* no step raises the bound: restores the state at u */
            copy((size_t)l->z.M, l->mode.u, l->mode.trial);
            laplace_factor(l, l->G);
            value(l);
            break;
        }
        status = prepare(l);
        /* Near the maximum of the bound, a decrement that no longer falls is a rounding error. */
        if (before < 1e-6 && l->mode.decrement >= before)
            break;
    }
    return status;
}
