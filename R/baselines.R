#' Gaussian process regression by other approximations, and exactly
#'
#' The methods that pF-DTC is compared with. They learn hyperparameters and choose the kernel as [pfdtc()] does, have no
#' neighbours, and return fits with the same methods.
#'
#' * `gp_exact()`: the exact posterior. It costs \eqn{O(n^3)}{O(n^3)} time and \eqn{8 n^2}{8 n^2} bytes, at most
#'   `getOption("pfdtc.max_memory", 2^32)`.
#' * `gp_subsample()`: the exact posterior of `m` random rows.
#' * `gp_vfe()`: the variational posterior of Titsias (2009). Inducing points minimise its Kullback-Leibler divergence.
#' * `gp_dtc()`, `gp_sor()`, `gp_fitc()`: deterministic training conditional, subset of regressors, fully independent
#'   training conditional (Quinonero-Candela and Rasmussen, 2005). Inducing points stay where they start.
#'
#' @usage
#' gp_exact(x, ...)
#' gp_vfe(x, ...)
#' gp_dtc(x, ...)
#' gp_sor(x, ...)
#' gp_fitc(x, ...)
#' gp_subsample(x, ...)
#' \method{gp_vfe}{default}(x, y, m = NULL, kernel = NULL, noise = NULL,
#'   hyper = c("evidence", "pilot", "joint", "fixed"), mean = ~1, transform = "none",
#'   like = NULL, inducing = NULL, weights = NULL, offset = NULL, center = TRUE,
#'   scale = TRUE, control = pfdtc_control(), keep_data = TRUE, ...)
#' \method{gp_vfe}{formula}(formula, data, ..., subset, weights, na.action, offset)
#' @param x,y,kernel,noise,mean,transform,like,inducing,weights,offset as in [pfdtc()].
#' @param center,scale,control,keep_data,formula,data,... as in [pfdtc()].
#' @param subset,na.action as in [lm()].
#' @param m maximum number of inducing points; for `gp_subsample()` the number of rows. Default: `min(200, n)`.
#' @param hyper as in [pfdtc()]. `"joint"` is for `gp_vfe()` and `gp_exact()`: it maximises the ELBO or the exact log
#'   marginal likelihood from the pilot on.
#' @return A fit, see [pfdtc_fit], of class `c("gp_vfe", "gp_fit")` and so on. `gp_exact()` and `gp_subsample()` have
#'   the rows `x` of their posterior in place of inducing points. `evidence` of `gp_fitc()` and `gp_sor()` is that of
#'   their own models, of `gp_subsample()` that of its rows.
#' @details The usage is that of all: `gp_dtc()`, `gp_sor()` and `gp_fitc()` have no `hyper = "joint"`,
#'   `gp_subsample()` has no `inducing` either, and `gp_exact()` has neither `inducing` nor `m`.
#' @section Errors and invariants: as [pfdtc()]. With all rows as inducing points (or drawn) every method gives the
#'   exact posterior, SoR at the rows only.
#' @seealso [compare_fits()], [kl_divergence()], `vignette("comparison")`
#' @name baselines
#' @aliases gp_vfe.default gp_vfe.formula gp_exact gp_vfe gp_dtc gp_sor gp_fitc gp_subsample
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' vfe <- gp_vfe(dist ~ speed, cars, m = 5, like = exact)
#' kl_divergence(vfe, exact)
#' @rawNamespace
#' export(gp_exact)
#' export(gp_vfe)
#' export(gp_dtc)
#' export(gp_sor)
#' export(gp_fitc)
#' export(gp_subsample)
#' S3method(gp_exact, default)
#' S3method(gp_exact, formula)
#' S3method(gp_vfe, default)
#' S3method(gp_vfe, formula)
#' S3method(gp_dtc, default)
#' S3method(gp_dtc, formula)
#' S3method(gp_sor, default)
#' S3method(gp_sor, formula)
#' S3method(gp_fitc, default)
#' S3method(gp_fitc, formula)
#' S3method(gp_subsample, default)
#' S3method(gp_subsample, formula)
NULL

gp_exact <- function(x, ...) UseMethod("gp_exact")
gp_vfe <- function(x, ...) UseMethod("gp_vfe")
gp_dtc <- function(x, ...) UseMethod("gp_dtc")
gp_sor <- function(x, ...) UseMethod("gp_sor")
gp_fitc <- function(x, ...) UseMethod("gp_fitc")
gp_subsample <- function(x, ...) UseMethod("gp_subsample")

gp_vfe.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL,
                           hyper = c("evidence", "pilot", "joint", "fixed"),
                           mean = ~1, transform = "none", like = NULL, inducing = NULL, weights = NULL,
                           offset = NULL, center = TRUE, scale = TRUE,
                           control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

gp_dtc.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "fixed"),
                           mean = ~1, transform = "none", like = NULL, inducing = NULL, weights = NULL,
                           offset = NULL, center = TRUE, scale = TRUE,
                           control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

gp_sor.default <- gp_dtc.default

gp_fitc.default <- gp_dtc.default

gp_subsample.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "fixed"),
                                 mean = ~1, transform = "none", like = NULL, weights = NULL, offset = NULL,
                                 center = TRUE, scale = TRUE,
                                 control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

gp_exact.default <- function(x, y, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "joint", "fixed"),
                             mean = ~1, transform = "none", like = NULL, weights = NULL, offset = NULL,
                             center = TRUE, scale = TRUE,
                             control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

gp_vfe.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit(.Generic, match.call(), parent.frame(), list(...))
}

gp_dtc.formula <- gp_vfe.formula

gp_sor.formula <- gp_vfe.formula

gp_fitc.formula <- gp_vfe.formula

gp_subsample.formula <- gp_vfe.formula

gp_exact.formula <- gp_vfe.formula
