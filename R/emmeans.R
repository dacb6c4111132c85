# Methods for package emmeans, registered when that is loaded.

#' Estimated marginal means by emmeans
#'
#' `emmeans()`, `emtrends()`, `contrast()` and their like of package emmeans take fits from a formula. The reference
#' grid is what the fit is asked about: its coefficients are the posterior means of f at the rows of the grid, with the
#' posterior covariance of these. Means over the grid and their contrasts are linear in f, so that their standard errors
#' are the posterior standard deviations, and with `df = Inf` their intervals are credible ones; hyperparameters are
#' held at their estimates. Trends are differences over the small step that `emtrends()` takes.
#'
#' Of classes and counts means and contrasts are of f, on the link's scale; `type = "response"` shows what the link
#' makes of them, as of [glm()] (and not the averages over f that [predict()][predict.gp_fit] has).
#'
#' A model without interactions has the same contrast at all values of the other inputs. A Gaussian process does not:
#' inputs that are not asked about are at their means, or what `at` says.
#'
#' @param object A fit from a formula.
#' @param data The data, where they cannot be found by the fit's call any more.
#' @param trms,xlev,grid What emmeans passes on: terms, levels and rows of the reference grid.
#' @param ... Passed on by emmeans.
#' @return What emmeans documents for these two generics.
#' @section Errors: class `pfdtc_error_input` for a fit from a matrix.
#' @section Invariants: the estimate and the standard error of a reference grid's row are `fit` and `se.fit` of
#'   `predict(fit, grid, se.fit = TRUE)`.
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, equation 2.24.
#' @seealso [predict.gp_fit()]
#' @examples
#' fit <- pfdtc(breaks ~ wool + tension, warpbreaks, kernel = kernel_se())
#' if (requireNamespace("emmeans", quietly = TRUE)) {
#'   emmeans::emmeans(fit, pairwise ~ wool | tension)
#' }
#' @name emmeans-methods
NULL

#' @rdname emmeans-methods
#' @exportS3Method emmeans::recover_data
recover_data.gp_fit <- function(object, data = NULL, ...) {
  object <- check_any_fit(object, "object")
  if (is.null(object$terms)) abort_input("object", "a fit from a matrix", "a fit from a formula")
  emmeans::recover_data(object$call, stats::delete.response(object$terms), object$na.action, data = data, ...)
}

#' @rdname emmeans-methods
#' @exportS3Method emmeans::emm_basis
emm_basis.gp_fit <- function(object, trms, xlev, grid, ...) {
  p <- stats::predict(object, grid, full_cov = TRUE)
  list(X = diag(nrow(grid)), bhat = unname(p$fit), nbasis = matrix(NA), V = unname(p$cov),
       dffun = function(k, dfargs) Inf, dfargs = list(), misc = link_labels(object))
}

# By which emmeans goes back from f with type = "response".
link_labels <- function(fit) {
  l <- fit$likelihood
  if (is.null(l) || l$link == "identity") return(list())
  list(tran = l$link, inv.lbl = if (l$name == "binomial") "prob" else "rate")
}
