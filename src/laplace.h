#pragma once

/* Laplace's approximation for non-Gaussian likelihoods (responses.h). At the rows X, f = A'u with u ~ N(0, I) and
 * A = L^{-1} k(Z, X) for inducing points Z. l is the log density of a row, and g, -W and l3 are its derivatives in f.
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
    /* Arrays with a number for each row with features a: f without offset; g, -W and l3, the derivatives of its log
     * density in f; left, its residual prior variance; s, the derivative of the log marginal likelihood F in f through
     * W; and, with H = I + A W A', q = a'H^{-1}a and p = a'H^{-1}A s. */
    double *f, *g, *W, *l3, *left, *q, *s, *p;
    double *zeta; /* H^{-1} A s [M] */
    struct newton mode;
    double *G;     /* A W A', M x M */
    int no_factor; /* 1 if H is not positive definite; C is then of a larger matrix */
    int variational;
    /* Allocated by laplace_open(). If `variational`: work, and toward = I + A W A' - H for the precision H of q(u). */
    double *sums, *toward, *work;
};

/* Allocates sums, toward and work. The caller has set z (with L), sites, pass, `variational`, all arrays before `sums`,
 * and u, r and C of the mode. */
void laplace_open(struct laplace *l);

/* Moves mode.u to the mode by Newton's method, until mode.decrement < enough or after maxit steps. */
enum status laplace_mode(struct laplace *l, double enough, int maxit);

/* Moves q(u) from N(mode.u, (I + G)^{-1}) to the largest bound, until mode.decrement < enough or after maxit steps. */
enum status laplace_variational(struct laplace *l, double enough, int maxit);

/* At u = mode.trial, laplace_pass() computes f, g, W and l3 of the rows (g, -W, l3: derivatives of the log densities),
 * and l->sums: A W A' and A g with A = L^{-1} k(Z, X). It returns the log likelihood. laplace_factor() computes mode.C
 * with C C' = I + G. It returns 1 if I + G is not positive definite, else 0. */
double laplace_pass(struct laplace *l);
int laplace_factor(struct laplace *l, const double *G);

/* Returns the penalty sum_n log(1 + W_n E_nn) / 2, or 0 if `variational`. E_nn is the residual prior variance of row n,
 * and -W_n the second derivative of its log density. Computes left, q, s and zeta, see struct laplace. */
double laplace_penalty(struct laplace *l);

/* Computes l->p, and dtheta [n_theta]: the derivatives in the kernel's log parameters of the log marginal likelihood
 * minus the penalty, or of the variational bound. Returns the derivative in a constant added to f. */
double laplace_gradient(struct laplace *l, double *dtheta);

/* Runs the pass for dtheta, the derivatives of an objective F in the kernel's log parameters. For each block `add`
 * calls laplace_pull(), which adds to the sums bar A' (M x M), `extra` numbers, which are returned, and dtheta. bar (M
 * x n, overwritten) and dE [n] are derivatives of F in A = L^{-1} k(Z, X) and in residual prior variances. */
const double *laplace_slopes(struct pass *pass, const void *self, sink_add *add,
                             size_t per_row, size_t more, int extra, double *sums,
                             double *dtheta);
void laplace_pull(const struct inducing *z, const struct visit *v, double *bar,
                  const double *dE, int extra, double *work);

/* A sink for value [S], the log likelihood of all rows at f = A'u for each of the S rows u of U (S x M). */
struct paths {
    int M, S;
    const double *U;
    const struct sites *sites;
    double *value;
};
struct sink paths_sink(const struct paths *self);

/* A sink for value (n_forms x N), the quadratic forms c'P c of each row, c = (C C')^{-1} L^{-1} k(Z, x). P has n_forms
 * symmetric matrices P (M x M), one after the other. */
struct forms {
    int M, n_forms;
    const double *C, *P;
    double *value;
};
struct sink forms_sink(const struct forms *self);
