#pragma once

/* The posterior of f is computed from sums over rows X. With A = L^{-1} k(Z, X), G = A A', and a = L^{-1} k(Z, x) at x:
 *
 *     C C' = s2 I + G,  beta = (s2 I + G)^{-1} A y = A v,  v = (y - A'beta) / s2,
 *     mean = a'beta,  variance of SoR (subset of regressors) = s2 |C^{-1} a|^2,  E(x, x) = k(x, x) - |a|^2 */
#include "pass.h"
#include "stats.h"

/* An exact posterior has C = NULL, and Z are the rows: L L' = k(Z, Z) + noise, beta = (L L')^{-1} y, so the mean is
 * k(x, Z) beta and the variance k(x, x) - |L^{-1} k(Z, x)|^2. Without L it has only the mean. */
struct posterior {
    struct inducing z;
    const double *C;    /* M x M lower */
    const double *beta; /* [M] */
};

/* Computes C with C C' = s2 I + G, and beta = (s2 I + G)^{-1} Ay, from the sums G and Ay of s. */
enum status posterior_factor(const struct stats *s, double s2, double *C, double *beta);

/* Completes `adjoint`, whose H is known, for an objective with the derivative Abar = H A + factor beta (y - A'beta)' in
 * A = L^{-1} k(Z, X), where `factor` is a number. With G = A A', and derivatives Lbar in L and Kmx_bar in k(Z, X):
 *     Abar A' = H G + factor s2 beta beta',  Lbar = -tril(L^{-T} Abar A'),  Kmx_bar = L^{-T} Abar
 * work: M^2 */
void posterior_adjoint(const struct inducing *z, const struct stats *s,
                       const double *beta, double factor, double *work,
                       struct adjoint *adjoint);

/* This sink stores predictions: mean, variance of SoR (subset of regressors), and residual prior variance (NaN if z.L
 * is NULL). An exact posterior needs kernel values (a pass with wants_K), and sor_variance may be NULL. */
struct predicting {
    const struct posterior *posterior;
    double *mean, *sor_variance, *unexplained;
};
struct sink predicting_sink(const struct predicting *self);

/* This sink sums rss = |y - A'beta|^2, A = L^{-1} k(Z, X). If not NULL, v gets (y - A'beta) / s2 for each row, and Av
 * gets A v of each block. */
struct residuals {
    int M;
    const double *beta;
    double s2, *v, *Av;
};
struct sink residuals_sink(const struct residuals *self, double *rss);

/* This sink sums A y (M numbers) and then y'y, where A = L^{-1} k(Z, X). */
struct sink response_sink(const int *M, double *sums);

/* Computes the posterior covariance (n x n) of f at rows X: k(X, X) - a'a + s2 a'(C C')^{-1} a, a = L^{-1} k(Z, X). SoR
 * (subset of regressors) has only the last term, an exact posterior (C = NULL) only the first two. work: M n */
void posterior_covariance(const struct posterior *p, const struct block *b, int sor,
                          double *work, double *covariance);
