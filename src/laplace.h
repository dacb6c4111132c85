#pragma once

/*
 * Laplace's approximation for non-Gaussian likelihoods (responses.h), on whitened inducing points: f_X = A'u, u ~ N(0,
 * I).  With the log density l of each row and its derivatives g, -W and l3 in f,
 *
 *     Psi(u) = -sum l + |u|^2 / 2,   r = u - A g,   H = I + A W A',   u <- u - t H^{-1} r,
 *     log Z = -Psi - log det H / 2,   F = log Z - sum log(1 + W_n E_nn) / 2.
 *
 * If no W is negative, Psi is 1-strongly convex: |u - mode| <= |r|, and steps that are shortened until Psi decreases
 * enough lead to the mode from anywhere.  Otherwise they lead to a mode or a saddle point.  A negative W counts as 0
 * in the last sum of F.
 *
 * If `variational`, q(u) = N(u, H^{-1}) maximises
 *
 *     sum_n E_q l_n - KL(q, p),   f_n ~ N(a'u, q_n + E_nn) under q,
 *
 * a lower bound on the log marginal likelihood of the exact GP.  mode.psi is minus this bound.  l, g and W are then
 * averages over f_n.
 */
#include "newton.h"
#include "pass.h"
#include "responses.h"

struct laplace {
    struct inducing z;
    struct sites sites;
    struct pass *pass;
    /* Arrays with a number for each row: f without offset, g, W, l3, left = E_nn, q = a'H^{-1}a and p = a'zeta
     * with zeta = H^{-1} A s.  s is the derivative of F in f through W at a fixed u. */
    double *f, *g, *W, *l3, *left, *q, *s, *p;
    double *zeta; /* [M] */
    struct newton mode;
    double *G;     /* A W A', M x M */
    int no_factor; /* 1 if H has no factor, and C is that of a larger matrix */
    int variational;
    /* Allocated by laplace_open().  `toward` = I + A W A' - H, and `work`, are for laplace_variational(). */
    double *sums, *toward, *work;
};

/* The caller sets z (with L), sites, pass, `variational`, all arrays above `sums`, and the arrays of the mode. */
void laplace_open(struct laplace *l);

/* Moves u to the mode, by newton_run(). */
enum status laplace_mode(struct laplace *l, double enough, int maxit);

/* Moves q from N(u, (I + G)^{-1}) to the optimum, until mode.decrement is below `enough` or after maxit steps. */
enum status laplace_variational(struct laplace *l, double enough, int maxit);

/* laplace_pass() computes l->sums (A W A', A g) and the arrays of the rows at `trial`, and returns the sum of l.
 * laplace_factor() computes C with C C' = I + G, and returns 1 if I + G is not positive definite. */
double laplace_pass(struct laplace *l);
int laplace_factor(struct laplace *l, const double *G);

/* Computes left, q, s and zeta, and returns sum log(1 + W E) / 2, for F above. */
double laplace_penalty(struct laplace *l);

/* Computes p and the derivatives of F in the kernel's log parameters [n_theta].  Returns the derivative in a
 * constant added to f. */
double laplace_gradient(struct laplace *l, double *dtheta);

/* Runs the pass for dtheta, the derivatives of F in the kernel's log parameters.  Its sums are Abar A' (M x M), `extra`
 * numbers, which are returned, and dtheta.  `add` calls laplace_pull() with the derivatives in a block's A (bar: M x n,
 * overwritten) and E_nn (dE: [n]); work: kernel_size() */
const double *laplace_slopes(struct pass *pass, const void *self, sink_add *add,
                             size_t per_row, size_t more, int extra, double *sums,
                             double *dtheta);
void laplace_pull(const struct inducing *z, const struct visit *v, double *bar,
                  const double *dE, int extra, double *work);

/* A sink for value [S], the sums of l over the rows at S vectors u (the rows of U, S x M). */
struct paths {
    int M, S;
    const double *U;
    const struct sites *sites;
    double *value;
};
struct sink paths_sink(const struct paths *self);

/* A sink for quadratic forms C_x'P C_x (n_forms x N), C_x = (C C')^{-1} a.  The matrices P (M x M) are symmetric,
 * one after the other. */
struct forms {
    int M, n_forms;
    const double *C, *P;
    double *value;
};
struct sink forms_sink(const struct forms *self);
