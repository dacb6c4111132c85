#pragma once

/* The doors that R calls.  Arguments of the same name are the same everywhere:
 *   model      list(kernel, noise, jitter)
 *   points     a model with inducing points z
 *   posterior  points with L, C and beta, and G where a door says so
 *   rows       list(x, y, scale): scale has the roots of the weights or is NULL; y is NULL where it is not read
 *   control    see arg_plan()
 * The result of a door whose computation can fail has the element `status`, an enum status.  A door writes to no
 * argument but `scratch`.  Numbers of rows and columns count from 1. */
#include "args.h"
#include "likelihood.h"

/* Returns the matrix k(x, z), nrow(x) x nrow(z). */
SEXP ffi_kernel_matrix(SEXP model, SEXP x, SEXP z, SEXP control);
/* Returns the diagonal of k(x, x). */
SEXP ffi_kernel_diagonal(SEXP model, SEXP x);
/* Returns the derivatives d k(x, z) / d z_column, nrow(x) x nrow(z). */
SEXP ffi_kernel_slopes(SEXP model, SEXP x, SEXP z, SEXP column);
/* Returns list(prior, size): the prior variance of the slope at the rows of x.  Its rounding is relative to size. */
SEXP ffi_slope_variance(SEXP model, SEXP x, SEXP column);

/* Returns list(status, value, gradient, theta, noise, used): an objective; its gradients in z (M x d) and, where they
 * exist, in the log kernel parameters and log s2; and the number of doubles of scratch used.
 * objective is list(name, aux, Wt, share) with one of these names:
 *   vfe     -ELBO
 *   pf      s2^2 d_pF^2 - C(X) under aux; Wt has the values of aux at the rows, or is NULL
 *   white   pf, where aux is white noise of variance share * s2 at the rows; C = -s2^2 y'(K + s2 I)^{-1} y */
SEXP ffi_evaluate(SEXP objective, SEXP points, SEXP rows, SEXP want, SEXP control,
                  SEXP scratch);
/* The next three doors are the steps of ffi_evaluate() for rows in parts.  This one returns sums over some rows:
 * list(status, G, Ay, AW, AKA, yy, k_sum, t, n, log_weights).  Sums of parts add up, except AKA, which needs all
 * pairs of rows.  AKA is NULL unless aux has p = 1. */
SEXP ffi_sums(SEXP objective, SEXP points, SEXP rows, SEXP control);
/* Returns list(status, value, adjoint, noise) from the sums of all rows.  rss is |y - A'beta|^2 from ffi_gradient(),
 * or NULL to compute it from the sums, which loses digits if the fit almost interpolates. */
SEXP ffi_objective(SEXP objective, SEXP points, SEXP sums, SEXP rss);
/* Returns list(status, gradient, theta, rss) for some rows; parts add up.  Exactly one call has the k_sum of all rows,
 * and adds the part of the gradient that comes from the points.  The others have NULL. */
SEXP ffi_gradient(SEXP objective, SEXP points, SEXP rows, SEXP adjoint, SEXP k_sum,
                  SEXP control);
/* Returns list(status, L, C, beta) from the sums of all rows. */
SEXP ffi_posterior_of_sums(SEXP points, SEXP sums);

/* Returns the constant C(X) = tr((k^ + (mu^ - y)(mu^ - y)') K). */
SEXP ffi_pf_constant(SEXP model, SEXP rows, SEXP aux, SEXP control);
/* Returns list(status, value): s2^2 d_pF^2, computed from pairs of rows, without cancellation. */
SEXP ffi_pf_divergence(SEXP points, SEXP rows, SEXP aux, SEXP control);
/* Returns the transpose of W_x of aux, q x N, with scaled columns. */
SEXP ffi_lowrank_rows(SEXP model, SEXP aux, SEXP rows, SEXP control);

/* Returns list(status, value, score, information, residual, variance): the sum of times * log p(y_i | neighbours) over
 * the rows `targets`; with slopes its gradient in the log kernel parameters and log s2 and the expected information;
 * without them y_i less its conditional mean, and its conditional variance.
 * neighbours is s x |targets|, with numbers of rows, or 0 if a target has fewer. */
SEXP ffi_vecchia(SEXP model, SEXP rows, SEXP weights, SEXP noise_basis, SEXP targets,
                 SEXP neighbours, SEXP times, SEXP slopes, SEXP control);

/* Returns list(status, jitter, L, G, Ay, yy, k_sum, t, C, beta, rss, log_weights).  site is a name in noise.h or NULL.
 * log_weights is the sum of the logarithms of the weights that were used. */
SEXP ffi_posterior(SEXP points, SEXP rows, SEXP most_jitter, SEXP site, SEXP control);
/* Returns list(mean, sor_variance, unexplained) at the rows of x; unexplained = k(x, x) - q(x, x). */
SEXP ffi_predict(SEXP posterior, SEXP x, SEXP control);
/* Returns the covariance of f at the rows of x: of SoR if `sor`, else of DTC. */
SEXP ffi_covariance(SEXP posterior, SEXP x, SEXP sor);

/* Doors for grouped effects, see effects.h.  `effects` is a list of groupings list(column, levels, design, root);
 * design has numbers of columns, 0 for an intercept.  The first grouping is eliminated.
 * Returns list(status, jitter, L, sums). */
SEXP ffi_effect_sums(SEXP points, SEXP effects, SEXP rows, SEXP most_jitter,
                     SEXP control);
/* Returns list(eliminated, h, quad, logdet, U).  M is the number of inducing points, columns that of x. */
SEXP ffi_eliminate(SEXP M, SEXP columns, SEXP effects, SEXP sums, SEXP s2, SEXP control);
/* Returns list(b, covariance) of the first grouping.  posterior is list(sums, U, gamma, W). */
SEXP ffi_effect_solve(SEXP M, SEXP columns, SEXP effects, SEXP posterior, SEXP s2,
                      SEXP control);
/* Returns list(mean, sor_variance, unexplained) with features and own if `keep`.  posterior has also L and b. */
SEXP ffi_effect_predict(SEXP points, SEXP effects, SEXP posterior, SEXP x, SEXP keep,
                        SEXP control);
/* Returns list(status, value, score, information, V, b) as ffi_vecchia(), with effects integrated out: integrated.h. */
SEXP ffi_integrated(SEXP model, SEXP effects, SEXP rows, SEXP weights, SEXP noise_basis,
                    SEXP targets, SEXP neighbours, SEXP slopes, SEXP control);
/* Returns sum_l V_l'V_l, see level_products() in effects.h. */
SEXP ffi_level_products(SEXP V, SEXP start, SEXP column, SEXP size);
/* Returns list(P, v, yy, log_d), see near_effects.h.  near is list(u, d, rows, r) as ffi_near() returns them. */
SEXP ffi_near_effects(SEXP model, SEXP effects, SEXP rows, SEXP near, SEXP control);
/* Returns list(status, C, x, inverse): C C' = I + A, x = (I + A)^{-1} b, the inverse or NULL; reads lower A. */
SEXP ffi_factor(SEXP A, SEXP b, SEXP invert);
/* Returns the likelihood (likelihood.h) in which every term counts once. */
struct likelihood arg_likelihood(SEXP model, SEXP rows, SEXP weights, SEXP noise_basis,
                                 SEXP targets, SEXP neighbours, SEXP slopes,
                                 SEXP control);
/* Reads the numbers of neighbours, at most n: of a row near the data and of a row far from them, or one for both. */
void arg_neighbours(SEXP s, int n, int *few, int *most);
/* Sets the elements score and information of the result. */
void pack_vecchia(SEXP result, const struct vecchia *whole);

/* Returns list(T1, kappa, Psi, lam, vv, spread), which bound |v|_E, |h_x|_E and |E|_2, from groups of t1_rows and
 * t2_rows rows in the given order.  0 rows leave that bound infinite. */
SEXP ffi_norms(SEXP posterior, SEXP rows, SEXP order, SEXP t1_rows, SEXP t2_rows,
               SEXP control);
/* Returns list(cross = h_x'e_x, gain = e_x'B^{-1}e_x, size = |e_x|^2), e_x = E(x, x_new). */
SEXP ffi_cross(SEXP posterior, SEXP rows, SEXP x_new, SEXP control);
/* Returns list(mean, sor_variance, unexplained, mean_error, var_lower, var_upper) at the rows of x.  posterior has G;
 * crossing is the result of ffi_cross() at these rows, or NULL. */
SEXP ffi_certify(SEXP posterior, SEXP norms, SEXP x, SEXP crossing, SEXP control);
/* Certifies n linear functionals as ffi_certify(), see certify_features().  features is M x n. */
SEXP ffi_certify_features(SEXP posterior, SEXP norms, SEXP features, SEXP prior,
                          SEXP size);
/* Returns list(J, q, var_lower, var_upper), which certify one functional by kriging.  sums has the elements of struct
 * kriged, each a sum of n_terms terms. */
SEXP ffi_certify_kriged(SEXP posterior, SEXP norms, SEXP n_terms, SEXP sum_w, SEXP sums);

/* Computes Laplace's approximation on z, or the variational one, see laplace.h.
 *   sites  list(name, y, size, weight, offset, shape, variational); size and weight are NULL if all are 1
 *   start  list(beta = u, G), each of which may be NULL;  stop: list(enough, maxit, most_jitter)
 *   want   0: the mode; 1: also the penalised log evidence; 2: also its gradient
 * Returns list(status, jitter, L, C, G, beta = u, residual, evidence, penalty, decrement, steps, f, g, W, left, q, p,
 * theta, constant, quadrature, slopes = s, shift = zeta), the last two if want > 0.  f includes the offset.
 * `evidence` leaves out the penalty and the constants of l.  A variational posterior has its lower bound as
 * `evidence`, penalty 0, and the error of its averages as `quadrature`. */
SEXP ffi_laplace(SEXP points, SEXP x, SEXP sites, SEXP start, SEXP stop, SEXP want,
                 SEXP control);
/* Computes Laplace's approximation for K classes, see softmax.h.  sites is list(y, weight, center [K], contrasts
 * [K x q]), where y counts classes from 0.  Returns list(status, jitter, L, C, beta, residual, evidence, penalty,
 * decrement, steps, probability, left, S, inverse, slopes, shift, theta, constant [K]): the elements from left to shift
 * if want > 0, theta and constant if want > 1. */
SEXP ffi_softmax(SEXP points, SEXP x, SEXP sites, SEXP start, SEXP stop, SEXP want,
                 SEXP control);
/* Returns list(mean, S, left) at the N rows of x: mean has a column for each of beta, S is N x q^2, left has N. */
SEXP ffi_softmax_at(SEXP points, SEXP L, SEXP beta, SEXP inverse, SEXP x, SEXP control);
/* Returns the forms C_x'P C_x, C_x = (C C')^{-1} a, at each row of x for each M x M matrix P: length(P) x nrow(x). */
SEXP ffi_forms(SEXP posterior, SEXP P, SEXP x, SEXP control);
/* Returns for each row u of U the sum of l over the rows of x at f = a'u. */
SEXP ffi_paths(SEXP posterior, SEXP x, SEXP sites, SEXP U, SEXP control);
/* Returns l, g, W and l3 of the sites at f, 4 x length(f). */
SEXP ffi_sites(SEXP sites, SEXP f);

/* Local kriging at groups of rows of x_new.  Group i has the rows from start[i] to start[i + 1] - 1, which count from
 * 0, and uses the rows near[members[, i]] of the data.  Returns list(W, J, q, ww, var_lower, var_upper), see kriging.h
 * and certify.h.  W has the weights of these data rows, a column for each row of x_new. */
SEXP ffi_kriging(SEXP posterior, SEXP norms, SEXP rows, SEXP x_new, SEXP start, SEXP near,
                 SEXP members, SEXP control);

/* Returns F v, or F'v: element i of F v is (v_i - u_i'v[rows_i]) / sqrt(d_i), with u, d and rows of ffi_near(). */
SEXP ffi_decorrelate(SEXP u, SEXP d, SEXP rows, SEXP v, SEXP transpose);

/* Returns K V without scales, V is N x m, or the part number `share`, from 0 to shares - 1, of a sum that equals it. */
SEXP ffi_kernel_matvecs(SEXP model, SEXP rows, SEXP v, SEXP share, SEXP shares,
                        SEXP control);
/* Returns k(x_new, x) u. */
SEXP ffi_kernel_cross_matvec(SEXP model, SEXP x, SEXP u, SEXP x_new, SEXP control);
/* Returns list(Ay, beta, yy, rss, v) for another response y, v = B^{-1} y.  With whiten = 0 they come from sums of
 * kernel values in O(N M), which is accurate enough for a preconditioner. */
SEXP ffi_response(SEXP posterior, SEXP rows, SEXP whiten, SEXP control);

/* Returns list(status, L, alpha, minus_evidence) of the exact GP.  It reads weights in place of the scales. */
SEXP ffi_exact(SEXP model, SEXP rows, SEXP weights, SEXP control);
/* Returns list(status, value, theta, noise): -log evidence and its gradient in the log kernel parameters and log s2. */
SEXP ffi_exact_evidence(SEXP model, SEXP rows, SEXP weights, SEXP control);
/* Returns list(mean, variance) at the rows of x_new.  posterior has the rows x as points, L and alpha. */
SEXP ffi_exact_predict(SEXP posterior, SEXP x_new, SEXP control);
/* Returns the covariance of f at the rows of x_new. */
SEXP ffi_exact_covariance(SEXP posterior, SEXP x_new);

/* Returns pseudo-random functions of the rows of x, nrow(x) x n_features, see row_features.h. */
SEXP ffi_row_features(SEXP x, SEXP n_features);

/* Returns the numbers of the s rows of x nearest to each row of `query`, or to each row `query_rows` of x without
 * itself: s x queries, 0 if there are fewer.  With ranks, neighbours are rows of lower rank. */
SEXP ffi_neighbours(SEXP model, SEXP x, SEXP s, SEXP query, SEXP query_rows, SEXP rank,
                    SEXP control);

/* Returns the posterior with each row decorrelated from its s nearest earlier rows: list(status, jitter, L, C, beta,
 * minus_log), with u, d and rows if `keep`, and r if keep = 2.  C C' = I + sum a~a~'; minus_log is minus the log
 * density of the scaled y. */
SEXP ffi_near(SEXP points, SEXP rows, SEXP s, SEXP rank, SEXP most_jitter, SEXP keep,
              SEXP control);
/* Returns list(status, mean, var_near, var_far), and if `keep` u, rows, r, at the rows of x_new, each with its s
 * nearest rows of x.  `given` = list(rows) names the neighbours (s x n, 0 behind the last).  `given` = list(rows,
 * cross, features, prior) has functionals in place of f at the rows of x_new, see near.h. */
SEXP ffi_near_predict(SEXP near, SEXP rows, SEXP s, SEXP x_new, SEXP given, SEXP keep,
                      SEXP control);
/* Returns ffi_near_predict() with `covariance`, the joint covariance of f at the rows of x_new. */
SEXP ffi_near_covariance(SEXP near, SEXP rows, SEXP s, SEXP x_new, SEXP control);

/* Returns list(pivots, t): the rows that greedy selection takes, and the trace that is left after each. */
SEXP ffi_select(SEXP model, SEXP x, SEXP m, SEXP tolerance);
/* Returns the numbers of the columns of V that reduce tr(P E) most, see select.h. */
SEXP ffi_select_guided(SEXP V, SEXP P, SEXP m, SEXP least);

/* Sets the threads of the BLAS to n, unless n = 0.  Returns their number before, 0 if it is unknown. */
SEXP ffi_blas_threads(SEXP n);

/* Sets linalg_own() and returns its value before. */
SEXP ffi_linalg_own(SEXP lanes);

/* Returns the sentence that describes a status. */
SEXP ffi_status(SEXP status);
