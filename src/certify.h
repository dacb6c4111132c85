#pragma once

/* Certificates: bounds on the distance between the exact GP and a posterior on inducing points Z. The theory vignette
 * has the proofs. With
 *
 *     K = k(X, X),   A = L^{-1} k(Z, X),   a = L^{-1} k(Z, x),   G = A A',   |u|_E^2 = u'E u,   E = K - A'A,
 *     B = A'A + s2 I,   w = (K + s2 I)^{-1} y,   C_x = (s2 I + G)^{-1} a,   h_x = A'C_x,
 *     and any eta >= |h_x|_E and lam >= |E|_2:
 *
 *     |mean_DTC(x) - mean_exact(x)| <= (sqrt(E(x,x)) + eta) |w|_E
 *     var_SoR + max(0, sqrt(E(x,x)) - eta)^2 / (1 + lam / s2) <= var_exact
 *                                                       <= var_SoR + (sqrt(E(x,x)) + eta)^2
 *
 * Let e_x = E(X, x), let R R' be the matrix of E at (x, X), R_X the rows of R for X, and p = R'(1, -h_x). The exact
 * variance is var_SoR + p'(I + R_X'B^{-1}R_X)^{-1} p. If h_x'e_x and e_x'B^{-1}e_x are known,
 *
 *     |p|^2 = E(x,x) - 2 h_x'e_x + |h_x|_E^2,
 *     q = |e_x - E h_x|^2 in the norm of B^{-1};  sqrt(q) is within sqrt(lam / s2) eta of |e_x| in that norm,
 *     |p|^4 / (|p|^2 + q) <= var_exact - var_SoR <= |p|^2 - q / (1 + lam / s2)
 *
 * Section 10 of the vignette has the allowances for rounding. Let k be the largest k(x, x). With slack = 4 (M + sqrt(N)
 * + 32) eps, the computed |u|_E has an error of at most kappa_u = sqrt(slack k) |u|, which is added to it in bounds. An
 * inner product u'E w has an error of at most |u|_E kappa_w + kappa_u (|w|_E + kappa_w). It is assumed, not proved,
 * that rounding errors have no common sign. A sum of n numbers then has an error of about sqrt(n) eps of its size, and
 * four times that is allowed. Let dK be the errors of computed kernel values, and let u satisfy
 *
 *     |dk(x, z)| <= u sqrt(k(x, x) k(z, z)),   so   |dK|_2 <= u tr K,   |dk(X, x)| <= u sqrt(k(x, x) tr K).
 *
 * A sum x'z has errors relative to sum_j |x_j z_j| <= sqrt(x'x z'z), whatever the signs of its terms. If all kernel
 * values have one sign, their relative errors are at most u = 4 eps. Then |dK|_2 <= u |K|_2, and |K|_2 replaces tr K
 * (K_norm). */
#include "posterior.h"

/* Bounds at all x are computed from these numbers, which are rounded up. A = L^{-1} k(Z, X), E = K - A'A, |u|_E^2 =
 * u'E u, B = A'A + s2 I, G = A A' and w = (K + s2 I)^{-1} y. */
struct norms {
    double weight; /* largest row weight */
    /* Largest k(x, x) of the rows and inducing points. Bounds on rounding at x use max(most, k(x, x)). */
    double most;
    double spread;     /* largest N / n_b of groups of n_b rows; Psi sums over groups */
    double slack;      /* |u|_E as computed errs by at most sqrt(slack most) |u| */
    double growth;     /* rounding errors of sums over rows, relative to their size */
    double c;          /* >= y'B^{-1}y */
    double t;          /* >= tr E */
    double lam;        /* >= |E|_2 */
    double w_E;        /* >= |w|_E */
    double w_norm;     /* >= |w| */
    double G_norm;     /* >= |G|_2 */
    double unit;       /* u, the largest relative error of a kernel value */
    double K_norm;     /* >= tr K, or >= |K|_2 if all kernel values have one sign */
    double beta_error; /* >= |(s2 I + G) beta - A y| as computed */
    double beta;       /* |beta| */
    double alpha;      /* |L^{-T} beta| */
    double Psi_norm;   /* >= |Psi|_2 */
    const double *G;   /* M x M */
    const double *Psi; /* M x M; c'A E A'c <= c'Psi c for every vector c */
};

/* crossing_run() computes these sums over all rows X. They narrow the bounds on the exact variance of f(x). E is the
 * residual prior covariance, e_x = E(X, x), A = L^{-1} k(Z, X), h_x = A'(s2 I + A A')^{-1} a and a = L^{-1} k(Z, x). */
struct crossing {
    double cross; /* h_x'e_x */
    double gain;  /* e_x'(A'A + s2 I)^{-1}e_x */
    double size;  /* |e_x|^2 */
};

/* These arrays have, for each of n points x, the fields of a struct crossing, which narrow bounds on the variance. */
struct crossings {
    const double *cross, *gain, *size;
};

/* Local kriging (local.h) predicts f(x) by w'y, with variance J >= var_exact. With A = L^{-1} k(Z, X), a = L^{-1} k(Z,
 * x), E = K - A'A, lam >= |E|_2, B = A'A + s2 I, h_x = A'(s2 I + A A')^{-1} a and h = k(X, x) - (K + s2 I) w,
 *
 *     var_exact = J - |h|^2 in the norm of (K + s2 I)^{-1},   B <= K + s2 I,
 *     J - q <= var_exact <= J - q / (1 + lam / s2),     q = h'B^{-1}h
 *     var_SoR + max(0, p2 - y)^2 / (p2 + z) <= var_exact,
 *     p2 = J - J_Q,  J_Q = |a - A w|^2 + s2 |w|^2,  d2 = J_Q - var_SoR,
 *     y = (h_x - w)'h - d2,  z = q - d2 - 2 y  (numbers, not responses)
 *
 * Let k be the largest k(x, x), W_n the weight of row n, S the rows where w is not 0, n_c their number, tau = slack k
 * max W_n (`slack`: struct norms), and units = u + (2 sqrt(n_c) + n_c / 64) eps. The bounds allow for rounding:
 *
 *     (1 - tau / s2) B is below K + s2 I,
 *     var_exact has an error of at most slack k + tau |w_exact|^2,  s2 |w_exact|^2 <= J,
 *     h has an error of at most units (k sqrt(sum W_n) (1 + sum_S sqrt(W_n) |w_n|)) + 4 eps s2 |w|,
 *     J has an error of at most units k (1 + sum_S sqrt(W_n) |w_n|)^2. */
struct kriged {           /* sums at a point x, with rounding */
    double prior, sor;    /* k(x,x), var_SoR */
    double size;          /* >= prior: rounding errors of prior are proportional to it */
    double J, wh, ww, w1; /* J, w'h, |w|^2, sum_S sqrt(W_n) |w_n| */
    double hh, ch, xh;    /* |h|^2, |C^{-1}A h|^2, h_x'h */
    double JQ;            /* |a - A w|^2 + s2 |w|^2 */
};

struct kriging_bounds {
    double J, q;                 /* >= J, >= |h|^2 in the norm of (K + s2 I)^{-1} */
    double var_lower, var_upper; /* bounds on var_exact */
};

/* Returns bounds on the exact variance of f(x) or of another functional, from the sums *x. n_c is the number of kriging
 * weights plus, if it is not f(x), the functional's number of terms. sum_w is the sum of the weights of all rows. */
struct kriging_bounds certify_kriged(const struct norms *norms, double s2, int n_c,
                                     double sum_w, const struct kriged *x);

/* Returns `slack` for M inducing points and N rows. With the residual prior covariance E of the rows, the computed
 * sqrt(u'E u) of a vector u has an error of at most sqrt(slack k) |u|, where k is the largest k(x, x). */
double certify_slack(int M, int N);

/* Results at new rows: mean, SoR variance, residual prior variance, bounds on the mean's error |mean_DTC - mean_exact|
 * and on var_exact. */
struct certified {
    double *mean, *sor_variance, *unexplained, *mean_error, *var_lower, *var_upper;
};

struct certifying {
    const struct posterior *posterior;
    const struct norms *norms;
    const struct crossings
        *crossings; /* at all new rows, to narrow bounds on variances, or NULL */
    struct certified to;
};
/* Certifies n linear functionals l(f), with A (M x n) = L^{-1} l(k(Z, .)) and prior [n], the prior variances Var l(f).
 * Rounding errors are proportional to size >= prior: (sum |c_i| sqrt(k(x_i, x_i)))^2 for l(f) = sum c_i f(x_i). Results
 * are stored from place `first` on. work: 3 M n doubles */
void certify_features(const struct certifying *c, int n, int first, const double *A,
                      const double *prior, const double *size, double *work);

/* This sink certifies f at new rows. certify_size() returns the number of doubles of its scratch for n rows. */
size_t certify_size(int M, int n);
struct sink certifying_sink(const struct certifying *self);
