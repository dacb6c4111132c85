#' Gaussian process regression by other approximations, and exactly
#'
#' The methods that pF-DTC is compared with, on the same engine and under the same verbs as [pfdtc()]: one class,
#' `gp_fit`, and one set of methods. They learn their hyperparameters and choose their kernel as [pfdtc()] does, and
#' have no near rows.
#'
#' * `gp_exact()`: the exact posterior by Cholesky factorisation, \eqn{O(n^3)} time and \eqn{8 n^2} bytes (twice that
#'   with `hyper = "joint"`). Above 100 MB a message says beforehand what it will take; above
#'   `getOption("pfdtc.max_memory", 2^32)` bytes it is refused. Up to 2,000 rows [pfdtc()] computes the same unasked.
#' * `gp_vfe()`: the variational posterior of Titsias (2009), whose inducing points minimise the Kullback-Leibler
#'   divergence. `hyper = "joint"` moves points and hyperparameters together.
#' * `gp_dtc()`, `gp_sor()`, `gp_fitc()`: deterministic training conditional, subset of regressors, and fully
#'   independent training conditional, with inducing points kept where they start. DTC and SoR have the same mean; SoR
#'   leaves out the prior variance that the inducing points do not explain. FITC gives row \eqn{n} the additional
#'   noise \eqn{k(x_n, x_n) - Q_{nn}}{k(x_n, x_n) - Q_nn}.
#' * `gp_subsample()`: the exact posterior of `m` random rows, with the centre of all of them.
#'
#' @inheritParams pfdtc
#' @param m for `gp_subsample()` the number of rows; for the others the most inducing points wanted. `NULL`:
#'   `min(200, n)`.
#' @param hyper `"evidence"`, `"pilot"` and `"fixed"` as in [pfdtc()]; `"joint"`, for `gp_vfe()` and `gp_exact()`,
#'   goes on from the pilot to maximise the ELBO or the exact evidence.
#' @return A fit, as [pfdtc()] returns: a list of class `c("gp_vfe", "gp_fit")` and so on; `posterior` is `"exact"` of
#'   `gp_exact()`, `"far"` of those with inducing points. `gp_exact()` and
#'   `gp_subsample()` have no `inducing` points but the `rows` of their posterior and its factor, also with
#'   `keep_data = FALSE`. `evidence` is the log evidence itself
#'   for `gp_exact()`, that of their own models for `gp_fitc()` and `gp_sor()`, and that of its rows for
#'   `gp_subsample()`.
#' @section Errors: as [pfdtc()]; `gp_exact()` of less than 50 rows warns as it does (`pfdtc_warning_small`).
#' @section Invariants: with all rows as inducing points (or drawn) every method gives the exact posterior, SoR at the
#'   rows only; the SoR variance is never above the DTC variance.
#' @source Titsias (2009), Variational learning of inducing variables in sparse Gaussian processes, AISTATS;
#'   Quinonero-Candela and Rasmussen (2005), A unifying view of sparse approximate Gaussian process regression,
#'   JMLR 6.
#' @seealso [compare_fits()], [kl_divergence()], [pf_divergence()]
#' @name baselines
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' vfe <- gp_vfe(dist ~ speed, cars, m = 5, kernel = exact$kernel, noise = exact$noise,
#'               hyper = "fixed")
#' kl_divergence(vfe, exact)
NULL

#' @rdname baselines
#' @export
gp_vfe <- function(x, ...) UseMethod("gp_vfe")

#' @rdname baselines
#' @export
gp_vfe.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL,
                           hyper = c("evidence", "pilot", "joint", "fixed"),
                           mean = ~1, inducing = NULL, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                           control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_vfe.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit(.Generic, match.call(), parent.frame(), list(...))
}

#' @rdname baselines
#' @export
gp_dtc <- function(x, ...) UseMethod("gp_dtc")

#' @rdname baselines
#' @export
gp_dtc.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "fixed"),
                           mean = ~1, inducing = NULL, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                           control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_dtc.formula <- gp_vfe.formula

#' @rdname baselines
#' @export
gp_sor <- function(x, ...) UseMethod("gp_sor")

#' @rdname baselines
#' @export
gp_sor.default <- gp_dtc.default

#' @rdname baselines
#' @export
gp_sor.formula <- gp_vfe.formula

#' @rdname baselines
#' @export
gp_fitc <- function(x, ...) UseMethod("gp_fitc")

#' @rdname baselines
#' @export
gp_fitc.default <- gp_dtc.default

#' @rdname baselines
#' @export
gp_fitc.formula <- gp_vfe.formula

#' @rdname baselines
#' @export
gp_subsample <- function(x, ...) UseMethod("gp_subsample")

#' @rdname baselines
#' @export
gp_subsample.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "fixed"),
                                 mean = ~1, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                                 control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_subsample.formula <- gp_vfe.formula

#' @rdname baselines
#' @export
gp_exact <- function(x, ...) UseMethod("gp_exact")

#' @rdname baselines
#' @export
gp_exact.default <- function(x, y, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "joint", "fixed"),
                             mean = ~1, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                             control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_exact.formula <- gp_vfe.formula
