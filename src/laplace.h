#ifndef PFDTC_LAPLACE_H
#define PFDTC_LAPLACE_H

/*
 * Laplace's approximation of a Gaussian process whose rows have other likelihoods (responses.h),
 * on inducing points, whitened: f_X = A'u, u ~ N(0, I).  With g, W, l3 at the rows,
 *
 *     Psi(u) = -sum l + |u|^2 / 2,   r = u - A g,   H = I + A W A',   u <- u - t H^{-1} r,
 *     log Z = -Psi - log det H / 2,   F = log Z - sum log(1 + W_n E_nn) / 2.
 *
 * Where no W is negative Psi is 1-strongly convex: |u - mode| <= |r|, and steps that are cut until
 * Psi falls by a share of what they promise lead to the mode from anywhere; elsewhere to one of the
 * modes. A negative W counts as 0 in F's last sum.
 *
 * `variational`: q(u) = N(u, H^{-1}) has the largest
 *
 *     sum_n E_q l_n - KL(q, p),   f_n ~ N(a'u, q_n + E_nn) under q,
 *
 * a lower bound of the exact process's log evidence: -psi.  l, g and W are then averages over f_n.
 */
#include "responses.h"
#include "pass.h"

struct laplace {
    struct inducing z;
    struct sites sites;
    struct pass *pass;
    /* of the rows, [N]: f without offset, g, W, l3; E_nn; q = a'H^{-1}a, s (F's slope in f by way of
     * W and E at a fixed u), p = a'zeta, zeta = H^{-1} A s */
    double *f, *g, *W, *l3, *left, *q, *s, *p;
    /* of the points: G = A W A' (M x M), C its H's factor, u and r [M] */
    double *G, *C, *u, *r;
    double psi, decrement, penalty;
    int steps, by_majorant; /* C is that of the majorant's weights */
    int variational;
    /* laid out by laplace_open(), the last two, I + A W A' - H and scratch, for laplace_variational() */
    double *sums, *step, *trial, *toward, *work;
};

/* z (with L), sites, pass and `variational` are there; the arrays of rows and of points are the caller's */
void laplace_open(struct laplace *l);

/* u from where it is to the mode: until sqrt(r'H^{-1}r) < enough, or maxit steps, or no step lowers
 * Psi in double precision.  Everything is at the last u then. */
enum status laplace_mode(struct laplace *l, double enough, int maxit);

/* q from N(u, (I + G)^{-1}) to the best one; `enough` of the distance that a whole step would go */
enum status laplace_variational(struct laplace *l, double enough, int maxit);

/* For it: G, A g and the rows at `trial` (and C), returns sum l; C = factor of I + G (lower triangle read), 1
 * where it has none */
double laplace_pass(struct laplace *l);
int laplace_factor(struct laplace *l, const double *G);

/* left, q, s and `penalty` = sum log(1 + W E) / 2; zeta [M] */
void laplace_penalty(struct laplace *l, double *zeta);

/* dF in the kernel's log parameters [n_theta] and in a constant added to every f; p */
double laplace_gradient(struct laplace *l, const double *zeta, double *dtheta);

/* What F's objective is */
double laplace_evidence(const struct laplace *l);

/* sums of l over the rows at S vectors u (S x M): value [S], as a sink */
struct paths {
    int M, S;
    const double *U;
    const struct sites *sites;
    double *value;
};
struct sink paths_sink(const struct paths *self);

/* forms (n_forms x N, by row): C_x'P C_x for symmetric P (M x M, one after the other), C_x =
 * (C C')^{-1} a; as a sink */
struct forms {
    int M, n_forms;
    const double *C, *P;
    double *value;
};
struct sink forms_sink(const struct forms *self);

#endif
