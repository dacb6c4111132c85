#ifndef PFDTC_FFI_H
#define PFDTC_FFI_H

/* The doors that R calls.  model: list(kernel, noise, jitter); points: a model with z; posterior: points
 * with L, C and beta, perhaps G; rows: list(x, y, scale), scale the roots of the weights or NULL, y
 * NULL where nothing reads it; control: see arg_plan().  If a
 * computation can fail, the result has an element `status`, an enum status.  Arguments are not
 * written to, except scratch. */
#include "args.h"
#include "likelihood.h"

/* k(x, z), nrow(x) x nrow(z) */
SEXP ffi_kernel_matrix(SEXP model, SEXP x, SEXP z, SEXP control);
/* k(x, x) at the rows of x */
SEXP ffi_kernel_diagonal(SEXP model, SEXP x);
/* d k(x, z) / d z_column, nrow(x) x nrow(z), column from 1 */
SEXP ffi_kernel_slopes(SEXP model, SEXP x, SEXP z, SEXP column);
/* list(prior, size): the variance of the slope at the rows of x; its rounding is relative to size */
SEXP ffi_slope_variance(SEXP model, SEXP x, SEXP column);

/* list(status, value, gradient, theta, noise, used): an objective and its gradient in z (M x d) and,
 * where it has one, in the kernel's log parameters and log s2; doubles of scratch that it used.
 * objective: list(name, aux, Wt, share), of
 *   vfe     -ELBO
 *   pf      s2^2 d_pF^2 - C(X) under aux; Wt: its values at the rows, or NULL
 *   white   the same with aux = white noise of variance share * s2 at the rows, whose constant is
 *           C = -s2^2 y'(K + s2 I)^{-1} y */
SEXP ffi_evaluate(SEXP objective, SEXP points, SEXP rows, SEXP want, SEXP control,
                  SEXP scratch);
/* The steps of ffi_evaluate(), for rows in parts.  Sums of some rows: list(status, G, Ay, AW, AKA, yy,
 * k_sum, t, n, log_weights).  They add up over parts, except AKA (aux with p = 1, else NULL), which
 * needs all pairs of rows */
SEXP ffi_sums(SEXP objective, SEXP points, SEXP rows, SEXP control);
/* list(status, value, adjoint, noise) of all rows' sums.  rss = |y - A'beta|^2 from
 * ffi_gradient(); NULL: from the sums, with fewer digits near interpolation */
SEXP ffi_objective(SEXP objective, SEXP points, SEXP sums, SEXP rss);
/* list(status, gradient, theta, rss) of some rows, which add up over parts.  One call has k_sum of all
 * rows, the others NULL: it adds the part of the gradient that comes from the points */
SEXP ffi_gradient(SEXP objective, SEXP points, SEXP rows, SEXP adjoint, SEXP k_sum,
                  SEXP control);
/* list(status, L, C, beta) */
SEXP ffi_posterior_of_sums(SEXP points, SEXP sums);

/* C(X) = tr((k^ + (mu^ - y)(mu^ - y)') K) */
SEXP ffi_pf_constant(SEXP model, SEXP rows, SEXP aux, SEXP control);
/* list(status, value): s2^2 d_pF^2 itself, by pairs of rows and without cancellation */
SEXP ffi_pf_divergence(SEXP points, SEXP rows, SEXP aux, SEXP control);
/* W_x of aux, transposed: q x N, columns scaled */
SEXP ffi_lowrank_rows(SEXP model, SEXP aux, SEXP rows, SEXP control);

/* list(status, value, score, information, residual, variance): sum over `targets` of times * log
 * p(y_i | its neighbours), its slope in the kernel's log parameters and log s2, and the expected
 * information; without slopes, y_i less its mean given them, and its variance.
 * neighbours: s x |targets|, row numbers from 1, 0 where there are fewer */
SEXP ffi_vecchia(SEXP model, SEXP rows, SEXP weights, SEXP noise_basis, SEXP targets,
                 SEXP neighbours, SEXP times, SEXP slopes, SEXP control);

/* list(status, jitter, L, G, Ay, yy, k_sum, t, C, beta, rss, log_weights); site: a name of noise.h,
 * or NULL; log_weights: sum of the logs of the weights in force */
SEXP ffi_posterior(SEXP points, SEXP rows, SEXP most_jitter, SEXP site, SEXP control);
/* list(mean, sor_variance, unexplained) at the rows of x */
SEXP ffi_predict(SEXP posterior, SEXP x, SEXP control);
/* the DTC covariance of f at the rows of x, or SoR's */
SEXP ffi_covariance(SEXP posterior, SEXP x, SEXP sor);

/* Grouped effects, see effects.h.  effects: a list of groupings list(column from 1, levels, design: columns
 * from 1, 0 for an intercept; root), the first is eliminated.  list(status, jitter, L, sums) */
SEXP ffi_effect_sums(SEXP points, SEXP effects, SEXP rows, SEXP most_jitter,
                     SEXP control);
/* list(eliminated, h, quad, logdet, U); M: inducing points, columns: of the rows' x */
SEXP ffi_eliminate(SEXP M, SEXP columns, SEXP effects, SEXP sums, SEXP s2, SEXP control);
/* list(b, covariance) of the first grouping; posterior: list(sums, U, gamma, W) */
SEXP ffi_effect_solve(SEXP M, SEXP columns, SEXP effects, SEXP posterior, SEXP s2,
                      SEXP control);
/* list(mean, sor_variance, unexplained, and if `keep` features, own) at the rows of x; posterior: also L and b */
SEXP ffi_effect_predict(SEXP points, SEXP effects, SEXP posterior, SEXP x, SEXP keep,
                        SEXP control);
/* list(status, value, score, information, V, b): ffi_vecchia() with the effects integrated out, see integrated.h */
SEXP ffi_integrated(SEXP model, SEXP effects, SEXP rows, SEXP weights, SEXP noise_basis,
                    SEXP targets, SEXP neighbours, SEXP slopes, SEXP control);
/* sum_l V_l'V_l, see level_products() in effects.h */
SEXP ffi_level_products(SEXP V, SEXP start, SEXP column, SEXP size);
/* list(P, v, yy, log_d) of near_effects.h; near: list(u, d, rows, r) as ffi_near() keeps them */
SEXP ffi_near_effects(SEXP model, SEXP effects, SEXP rows, SEXP near, SEXP control);
/* list(status, C, x, inverse): C C' = I + A (lower triangle read), x = (I + A)^{-1} b, and the inverse or NULL */
SEXP ffi_factor(SEXP A, SEXP b, SEXP invert);
/* Returns the likelihood (likelihood.h) in which every term counts once. */
struct likelihood arg_likelihood(SEXP model, SEXP rows, SEXP weights, SEXP noise_basis,
                                 SEXP targets, SEXP neighbours, SEXP slopes,
                                 SEXP control);
/* Sets the elements score and information of the result. */
void pack_vecchia(SEXP result, const struct vecchia *whole);

/* list(T1, kappa, Psi, lam, vv, spread), bounds of |v|_E, |h_x|_E and |E|_2: with groups of
 * t1_rows and t2_rows rows (0: without that one, infinite), in the order of rows given, from 1 */
SEXP ffi_norms(SEXP posterior, SEXP rows, SEXP order, SEXP t1_rows, SEXP t2_rows,
               SEXP control);
/* list(cross = h_x'e_x, gain = e_x'B^{-1}e_x, size = |e_x|^2), e_x = E(x, x_new), at the rows of
 * x_new: all at once */
SEXP ffi_cross(SEXP posterior, SEXP rows, SEXP x_new, SEXP control);
/* list(mean, sor_variance, unexplained, mean_error, var_lower, var_upper) at the rows of x;
 * posterior with G; crossing: what ffi_cross() gives there, or NULL */
SEXP ffi_certify(SEXP posterior, SEXP norms, SEXP x, SEXP crossing, SEXP control);
/* ffi_certify() for linear functionals, see certify_features(): features M x n, prior and size [n] */
SEXP ffi_certify_features(SEXP posterior, SEXP norms, SEXP features, SEXP prior,
                          SEXP size);
/* list(J, q, var_lower, var_upper) of one functional by kriging.  sums: list(prior, size, ...), see
 * struct kriged; n_terms: number of terms in its sums */
SEXP ffi_certify_kriged(SEXP posterior, SEXP norms, SEXP n_terms, SEXP sum_w, SEXP sums);

/* Laplace's approximation on z with a likelihood, see laplace.h.  sites: list(name, y, size, weight,
 * offset, shape, variational), size and weight NULL if all are 1, shape where the likelihood has some;
 * start: list(beta = u, G), each may be NULL; stop: list(enough, maxit, most_jitter); want: 0 the mode,
 * 1 also the penalised evidence, 2 also its gradient.  Result:
 * list(status, jitter, L, C, G, beta, residual, evidence, penalty, decrement, steps, f, g, W, left, q,
 * p, theta, constant, quadrature, slopes = s, shift = zeta, both where want > 0): beta = u, f with its offset,
 * `evidence` without the constants of l and without the penalty.  For the variational posterior `evidence` is the
 * bound, penalty is 0, and
 * `quadrature` is the error of its averages */
SEXP ffi_laplace(SEXP points, SEXP x, SEXP sites, SEXP start, SEXP stop, SEXP want,
                 SEXP control);
/* the same for one of K classes a row (softmax.h); sites: list(y, from 0; weight; center [K]; contrasts, K x q).
 * list(status, jitter, L, C, beta, residual, evidence, penalty, decrement, steps, probability, left, S, inverse,
 * slopes, shift, theta, constant [K]), from left to shift where want > 0, theta and constant where want > 1 */
SEXP ffi_softmax(SEXP points, SEXP x, SEXP sites, SEXP start, SEXP stop, SEXP want,
                 SEXP control);
/* list(mean, S, left) at the rows of x: a column for each one of beta, N x q^2, N */
SEXP ffi_softmax_at(SEXP points, SEXP L, SEXP beta, SEXP inverse, SEXP x, SEXP control);
/* C_x'P C_x, C_x = (C C')^{-1} a, at the rows of x for each M x M matrix P of a list: length(P) x nrow(x) */
SEXP ffi_forms(SEXP posterior, SEXP P, SEXP x, SEXP control);
/* sums of l over the rows of x at f = a'u, each row u of U: [nrow(U)] */
SEXP ffi_paths(SEXP posterior, SEXP x, SEXP sites, SEXP U, SEXP control);
/* l, g, W, l3 of sites at f: 4 x length(f) */
SEXP ffi_sites(SEXP sites, SEXP f);

/* Local kriging at the rows of x_new, in groups: those from start[i] on (from 0, with the end)
 * share the rows near[members[, i]] of the data (from 1).  list(W, J, q, ww, var_lower, var_upper)
 * of kriging.h and certify.h: W has a column a row of x_new, with the weights of its group's rows */
SEXP ffi_kriging(SEXP posterior, SEXP norms, SEXP rows, SEXP x_new, SEXP start, SEXP near,
                 SEXP members, SEXP control);

/* F v, row i of which is (v_i - u_i'v over rows_i) / sqrt(d_i), as ffi_near() keeps them; or F'v */
SEXP ffi_decorrelate(SEXP u, SEXP d, SEXP rows, SEXP v, SEXP transpose);

/* K V over all pairs of rows, without scales, or one of the shares that add up to it (`share` from 0
 * to `shares` - 1);  V: N x m */
SEXP ffi_kernel_matvecs(SEXP model, SEXP rows, SEXP v, SEXP share, SEXP shares,
                        SEXP control);
/* k(x_new, x) u */
SEXP ffi_kernel_cross_matvec(SEXP model, SEXP x, SEXP u, SEXP x_new, SEXP control);
/* sums of another response y: list(Ay, beta, yy, rss, v), v = B^{-1} y.  whiten = 0: from sums of
 * kernel values, in O(N M), accurate enough for a preconditioner */
SEXP ffi_response(SEXP posterior, SEXP rows, SEXP whiten, SEXP control);

/* the exact GP on the rows: list(status, L, alpha, minus_evidence); the scales of the
 * rows are not read, weights take their place */
SEXP ffi_exact(SEXP model, SEXP rows, SEXP weights, SEXP control);
/* list(status, value, theta, noise): -log evidence and its gradient in the kernel's log
 * parameters and log s2 */
SEXP ffi_exact_evidence(SEXP model, SEXP rows, SEXP weights, SEXP control);
/* list(mean, variance) at the rows of x_new; posterior: points x with L and alpha */
SEXP ffi_exact_predict(SEXP posterior, SEXP x_new, SEXP control);
/* the covariance of f at the rows of x_new */
SEXP ffi_exact_covariance(SEXP posterior, SEXP x_new);

/* pseudo-random functions of the rows of x, nrow(x) x n_features: see row_features.h */
SEXP ffi_row_features(SEXP x, SEXP n_features);

/* the s rows of x nearest to the rows of `query`, or to the rows `rows` of x (from 1) themselves
 * left out, of a lower rank where ranks are given: s x queries, from 1, 0 where there are fewer */
SEXP ffi_neighbours(SEXP model, SEXP x, SEXP s, SEXP query, SEXP query_rows, SEXP rank,
                    SEXP control);

/* the posterior with rows decorrelated from their s nearest earlier ones: list(status, jitter,
 * L, C, beta, minus_log, and if `keep` u, d, rows, and r if it is 2), C C' = I + sum a~a~', minus_log = -log
 * density of the scaled y */
SEXP ffi_near(SEXP points, SEXP rows, SEXP s, SEXP rank, SEXP most_jitter, SEXP keep,
              SEXP control);
/* list(status, mean, var_near, var_far, and if `keep` u, rows, r) at the rows of x_new, each with
 * its s nearest of x; with `given` = list(rows), with those (s x n, 0 behind the last); with
 * list(rows, cross, features, prior), functionals in place of f at the rows of x_new, see near.h */
SEXP ffi_near_predict(SEXP near, SEXP rows, SEXP s, SEXP x_new, SEXP given, SEXP keep,
                      SEXP control);
/* ffi_near_predict() with `covariance`, the joint covariance of f at the rows of x_new */
SEXP ffi_near_covariance(SEXP near, SEXP rows, SEXP s, SEXP x_new, SEXP control);

/* list(pivots from 1, t after each) */
SEXP ffi_select(SEXP model, SEXP x, SEXP m, SEXP tolerance);
/* columns of V, from 1, that reduce tr(P E) most: see select.h */
SEXP ffi_select_guided(SEXP V, SEXP P, SEXP m, SEXP least);

/* sets the threads of the BLAS to n (0: no change), returns their number before; 0: not known */
SEXP ffi_blas_threads(SEXP n);

/* sets linalg_own(), returns its value before */
SEXP ffi_linalg_own(SEXP lanes);

/* the sentence of a status */
SEXP ffi_status(SEXP status);

#endif
