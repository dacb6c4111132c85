# Methods for package marginaleffects, registered when that is loaded: its predictions, comparisons and slopes from
# joint draws of f.

#' Predictions, comparisons and slopes by marginaleffects
#'
#' `predictions()`, `comparisons()`, `slopes()`, their `avg_` forms and `plot_` forms of package marginaleffects take
#' fits from a formula. Uncertainty is that of the posterior of f, jointly over all rows that a call looks at: draws of
#' f, of which every draw is averaged, differenced or transformed as the call says. There is no delta method.
#'
#' * Estimates are posterior means where what is asked for is linear in f (predictions, differences, slopes, averages of
#'   these), since draws come in pairs around the mean; of ratios and other transformations they are medians of draws.
#' * Intervals are quantiles of the draws, as of any Bayesian model there; `get_draws()` has the draws, whose standard
#'   deviations are posterior ones. Hyperparameters are held at their estimates.
#' * They are about f, the mean of a response, whatever `type` says; of classes and counts about the probability or the
#'   rate, or with `type = "link"` about f.
#' * The rows of a call are drawn jointly, which is exact and takes time as the cube and memory as the square of their
#'   number: seconds for 2,000. A comparison looks at two rows for each row and input; `newdata` chooses fewer rows.
#' * Slopes are differences over a small step. The functions of a Matern kernel with `nu = 1/2` have none: their
#'   uncertainty grows without bound as `eps` shrinks.
#'
#' @param model A fit from a formula.
#' @param newdata Rows, a data frame.
#' @param type of fits of classes and counts, `"response"` or `"link"`.
#' @param ... Not used.
#' @param vcov Not used: nothing is asked of the covariance of coefficients.
#' @return For `get_predict()` a data frame with columns `rowid` and `estimate`, a row a row of `newdata`, and attribute
#'   `posterior_draws`, a matrix with a row a row of `newdata` and a column a draw, as many as
#'   `getOption("pfdtc.draws", 2000)`.
#' @section Errors: class `pfdtc_error_input` for a fit from a matrix, and for rows whose covariance would take more
#'   than `getOption("pfdtc.max_memory", 2^32)` bytes.
#' @section Invariants: the draws of an average are averages of draws; what calls for the same rows gets the same draws
#'   of them within one call.
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, equation 2.24.
#' @seealso [predict.gp_fit()], [simulate()][gp_fit-methods]
#' @examples
#' fit <- pfdtc(mpg ~ wt + hp, mtcars, kernel = kernel_se(), control = pfdtc_control(restarts = 1))
#' # version 1.0.0 uses what R has since 4.4
#' if (all(vapply(c("marginaleffects", "collapse"), requireNamespace, NA, quietly = TRUE)) &&
#'     getRversion() >= "4.4") {
#'   set.seed(1)
#'   marginaleffects::avg_slopes(fit)
#'   marginaleffects::comparisons(fit, variables = list(hp = c(100, 200)), newdata = mtcars[1:3, ])
#' }
#' @name marginaleffects-methods
NULL

# The class that marginaleffects is told of. One call of its functions asks for predictions more than once: the draws
# that it has been given so far are kept for the length of that call, in an environment that goes with the fit.
#' @exportS3Method marginaleffects::sanitize_model_specific
sanitize_model_specific.gp_fit <- function(model, ...) {
  model <- check_any_fit(model, "model")
  if (is.null(model$terms)) abort_input("model", "a fit from a matrix", "a fit from a formula")
  attr(model, "draws") <- new_draws()
  model
}

#' @rdname marginaleffects-methods
#' @exportS3Method marginaleffects::get_predict
get_predict.gp_fit <- function(model, newdata, type = "response", ...) {
  draws <- attr(model, "draws")
  fit <- check_any_fit(model, "model")
  rows <- new_rows(fit, as.data.frame(newdata), stats::na.pass)
  f <- joint_draws(fit, rows$x, if (is.null(draws)) new_draws() else draws)[rows$index, , drop = FALSE]
  p <- latent_at(fit, rows$x)
  estimate <- mean <- p$mean[rows$index] + rows$offset
  link <- identity
  if (!response_of(fit)$conjugate && type != "link") {
    link <- response_of(fit)$link$inv
    estimate <- response_moments(response_of(fit), mean, p$var[rows$index])$mean
  }
  rowid <- if (is.null(newdata$rowid)) seq_along(estimate) else newdata$rowid
  structure(data.frame(rowid, estimate), posterior_draws = link(f + mean))
}

#' @rdname marginaleffects-methods
#' @exportS3Method marginaleffects::get_vcov
get_vcov.gp_fit <- function(model, vcov = NULL, ...) NULL

# marginaleffects takes the classes that it knows and those that this option names.
tell_marginaleffects <- function(...) {
  options(marginaleffects_model_classes = union(getOption("marginaleffects_model_classes"), "gp_fit"))
}

# ---- joint draws, batch after batch ---------------------------------------------------------------------------------

new_draws <- function() {
  list2env(list(x = NULL, R = matrix(0, 0L, 0L), z = NULL), parent = emptyenv())
}

# Draws of f minus its mean at the rows of x, jointly with those at all rows that `draws` has seen. It keeps rows that
# determine the others to rounding, the factor C = R'R of their covariance, and z with f = R'z. With V = R^{-T} C(kept,
# x)
#   f(x) = V'z + S'z_2,   S'S = C(x, x) - V'V.
joint_draws <- function(fit, x, draws) {
  n <- nrow(x)
  kept <- NROW(draws$x)
  half <- ceiling(check_count(getOption("pfdtc.draws", 2000), "pfdtc.draws", min = 2) / 2)
  check_memory(8 * as.double(n + kept) * (3 * (n + kept) + 2 * half), sprintf("joint draws at %d rows", n + kept))
  if (!n) return(matrix(0, 0L, 2L * half))
  all <- rbind(draws$x, x)
  C <- covariance_at(fit, list(x = all, index = seq_len(n + kept), names = NULL))
  old <- seq_len(kept)
  new <- kept + seq_len(n)
  V <- if (kept) backsolve(draws$R, C[old, new, drop = FALSE], transpose = TRUE) else matrix(0, 0L, n)
  left <- C[new, new, drop = FALSE] - crossprod(V)
  rounding <- nrow(all) * .Machine$double.eps * max(diag(C))
  S <- suppressWarnings(chol(left, pivot = TRUE, tol = rounding)) # of a rank below n
  rank <- attr(S, "rank")
  pivot <- attr(S, "pivot")
  S <- S[seq_len(rank), order(pivot), drop = FALSE]
  z <- matrix(stats::rnorm(rank * half), rank, half)
  z <- cbind(z, -z)
  f <- crossprod(S, z)
  if (kept) f <- f + crossprod(V, draws$z)
  add <- pivot[seq_len(rank)]
  draws$R <- rbind(cbind(draws$R, V[, add, drop = FALSE]), cbind(matrix(0, rank, kept), S[, add, drop = FALSE]))
  draws$x <- rbind(draws$x, x[add, , drop = FALSE])
  draws$z <- rbind(draws$z, z)
  f
}
