#pragma once

/*
 * The posterior from the sums over rows:
 *
 *     C C' = s2 I + G,  beta = (s2 I + G)^{-1} A y = A v,  v = (y - A'beta) / s2
 *
 * At a point x, with a = L^{-1} k(Z, x):
 *
 *     mean = a'beta,  variance of SoR (subset of regressors) = s2 |C^{-1} a|^2,  E(x, x) = k(x, x) - |a|^2
 */
#include "pass.h"
#include "stats.h"

/* An exact posterior has C = NULL: its points are the rows, and L and beta are L and alpha of exact.h, so its mean is
 * k(x, Z) beta and its variance E(x, x).  Without L it has only the mean. */
struct posterior {
    struct inducing z;
    const double *C;    /* M x M lower */
    const double *beta; /* [M] */
};

/* Computes C and beta from finished sums. */
enum status posterior_factor(const struct stats *s, double s2, double *C, double *beta);

/* Completes `adjoint`, which has H, for an objective with the derivative Abar = H A + factor beta (y - A'beta)' in A:
 *     Abar A' = H G + factor s2 beta beta',  Lbar = -tril(L^{-T} Abar A'),  Kmx_bar = L^{-T} Abar
 * work: M^2 */
void posterior_adjoint(const struct inducing *z, const struct stats *s,
                       const double *beta, double factor, double *work,
                       struct adjoint *adjoint);

/* A sink that predicts at new rows.  Results are stored by row; unexplained = E(x, x), at least 0, or NaN without L.
 * For an exact posterior the pass needs wants_K, and sor_variance may be NULL. */
struct predicting {
    const struct posterior *posterior;
    double *mean, *sor_variance, *unexplained;
};
struct sink predicting_sink(const struct predicting *self);

/* A sink for rss = |y - A'beta|^2.  Unless NULL, v gets (y - A'beta) / s2 by row, and Av gets A v of each block. */
struct residuals {
    int M;
    const double *beta;
    double s2, *v, *Av;
};
struct sink residuals_sink(const struct residuals *self, double *rss);

/* A sink for A y (M numbers), followed by y'y. */
struct sink response_sink(const int *M, double *sums);

/* Computes the covariance (n x n) of f at the rows: k(X, X) - a'a + s2 a'(s2 I + G)^{-1} a. SoR has only the last
 * term, an exact posterior (C = NULL) only the others. work: M n */
void posterior_covariance(const struct posterior *p, const struct block *b, int sor,
                          double *work, double *covariance);
