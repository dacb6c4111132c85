#pragma once

/* Laplace's approximation for non-Gaussian likelihoods (responses.h). At the rows X, f = A'u with u ~ N(0, I) and
 * A = L^{-1} k(Z, X), columns a_n, for inducing points Z. g, -W and l3 are derivatives of a row's log density l in f.
 *
 *     Psi(u) = -sum l + |u|^2 / 2,   r = u - A g,   H = I + A W A',   u <- u - t H^{-1} r,
 *     log Z = -Psi - log det H / 2,   F = log Z - sum log(1 + W_n E_nn) / 2.
 *
 * r and H are the gradient and the Hessian of Psi, 0 < t <= 1, and E_nn is the residual prior variance of row n.
 * If no W is negative, Psi is 1-strongly convex: |u - mode| <= |r|. Steps that are shortened until Psi decreases
 * enough then lead to the mode from anywhere. If some W are negative, steps lead to a mode or a saddle point. A
 * negative W counts as 0 in the last sum of F.
 *
 * If `variational`, q(u) = N(u, H^{-1}) maximises a lower bound on the log marginal likelihood of the exact GP,
 *
 *     sum_n E_q l_n - KL(q, p),   f_n ~ N(a_n'u, a_n'H^{-1}a_n + E_nn) under q.
 *
 * mode.psi is minus this bound. l, g and W are then averages over f_n. */
#include "newton.h"
#include "pass.h"
#include "responses.h"

struct laplace {
    struct inducing z;
    struct sites sites;
    struct pass *pass;
    /* Each array has a number for each row x. f is without offset; g, -W and l3 are the derivatives of the log density
     * in f; left is the residual prior variance. s is the derivative of the log marginal likelihood F in f through W.
     * With A = L^{-1} k(Z, X), H = I + A W A' and a = L^{-1} k(Z, x), q = a'H^{-1}a and p = a'H^{-1}A s. */
    double *f, *g, *W, *l3, *left, *q, *s, *p;
    double *zeta; /* H^{-1} A s [M] */
    struct newton mode;
    double *G;     /* A W A', M x M */
    int no_factor; /* 1 if H is not positive definite and mode.C factors a larger matrix */
    int variational;
    /* sums over rows; if `variational`: I + A W A' minus the precision matrix of q(u); scratch */
    double *sums, *toward, *work;
};

/* Allocates sums, toward and work. The caller sets the other fields of *l but no_factor, and u, r and C of l->mode. */
void laplace_open(struct laplace *l);

/* Moves u = l->mode.u to its posterior mode by Newton's method, until mode.decrement < enough or after maxit steps. */
enum status laplace_mode(struct laplace *l, double enough, int maxit);

/* Maximises the variational bound over q(u) = N(u, (I + A W A')^{-1}), starting at u = l->mode.u. Ends when
 * mode.decrement, the root of the bound's derivative along the step, is below `enough`, or after maxit steps. */
enum status laplace_variational(struct laplace *l, double enough, int maxit);

/* At u = mode.trial, laplace_pass() computes f, g, W and l3 of the rows (g, -W, l3: derivatives of the log densities),
 * and l->sums: A W A' and A g with A = L^{-1} k(Z, X). It returns the log likelihood. laplace_factor() computes mode.C
 * with C C' = I + G. It returns 1 if I + G is not positive definite, else 0. */
double laplace_pass(struct laplace *l);
int laplace_factor(struct laplace *l, const double *G);

/* Returns the penalty sum_n log(1 + W_n E_nn) / 2, or 0 if `variational`. E_nn is the residual prior variance of row n,
 * and -W_n the second derivative of its log density. Also stores what laplace_gradient() needs: left, q, s and zeta. */
double laplace_penalty(struct laplace *l);

/* After laplace_penalty(), computes dtheta [n_theta], the derivatives in the kernel's log parameters of log marginal
 * likelihood minus this penalty, or of the variational bound. Returns the derivative in a constant added to f. */
double laplace_gradient(struct laplace *l, double *dtheta);

/* laplace_slopes() runs a pass that computes dtheta, the derivatives of an objective F in the kernel's log parameters.
 * For each block, `add` computes bar (M x n) and dE [n], the derivatives of F in A = L^{-1} k(Z, X) and in residual
 * prior variances, and calls laplace_pull(), which overwrites bar. The sums are bar A' (M x M), `extra` numbers that
 * `add` computes and laplace_slopes() returns, and dtheta. `add` has scratch of per_row doubles a row, plus `more`. */
const double *laplace_slopes(struct pass *pass, const void *self, sink_add *add,
                             size_t per_row, size_t more, int extra, double *sums,
                             double *dtheta);
void laplace_pull(const struct inducing *z, const struct visit *v, double *bar,
                  const double *dE, int extra, double *work);

/* This sink sums value [S]: the log likelihood of all rows at f = A'u, A = L^{-1} k(Z, X), for each row u of U. */
struct paths {
    int M, S;
    const double *U;
    const struct sites *sites;
    double *value;
};
struct sink paths_sink(const struct paths *self);

/* This sink computes value (n_forms x N): at each row x, c'P c for each of n_forms symmetric matrices P (M x M, one
 * after the other), where c = (C C')^{-1} L^{-1} k(Z, x) for a lower triangular C (M x M). */
struct forms {
    int M, n_forms;
    const double *C, *P;
    double *value;
};
struct sink forms_sink(const struct forms *self);
