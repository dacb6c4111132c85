# Methods that rest on leave-one-out: rstandard(), rstudent(), hatvalues(), cooks.distance() and dfbetas().

#' @rdname leave_one_out
#' @importFrom stats rstandard
#' @export
rstandard.gp_fit <- function(model, ...) {
  check_dots_empty(list(...), "model")
  model <- check_any_fit(model, "model")
  r <- if (response_of(model)$conjugate) standardised(loo_rows(model)) else standardised_laplace(model)
  stats::naresid(model$na.action, r)
}

#' @rdname leave_one_out
#' @importFrom stats hatvalues
#' @export
hatvalues.gp_fit <- function(model, ...) {
  check_dots_empty(list(...), "model")
  model <- check_any_fit(model, "model")
  stats::naresid(model$na.action, loo_rows(model)$hat)
}

#' @rdname leave_one_out
#' @importFrom stats cooks.distance
#' @export
cooks.distance.gp_fit <- function(model, ...) {
  check_dots_empty(list(...), "model")
  model <- refuse_neighbours(model)
  data <- training_data(model)
  p <- posterior_of(model)
  part <- without_rounded(row_parts(p))
  distance <- (part$g / part$rest)^2 * squared_moves(p)[part$group] / sum(part$W * part$q)
  stats::naresid(model$na.action, all_rows(data, distance, 0))
}

#' @rdname leave_one_out
#' @importFrom stats rstudent
#' @export
rstudent.gp_fit <- function(model, ...) {
  check_dots_empty(list(...), "model")
  if (!response_of(model)$conjugate) return(stats::rstandard(model))
  model <- refuse_neighbours(model)
  r <- standardised(loo_rows(model))
  stats::naresid(model$na.action, r / scale_without(model, r))
}

#' @rdname leave_one_out
#' @importFrom stats dfbetas
#' @export
dfbetas.gp_fit <- function(model, ...) {
  check_dots_empty(list(...), "model")
  model <- refuse_neighbours(model)
  b <- mean_functionals(model)
  if (is.null(b)) {
    abort_input("model", "a fit without a linear mean", "a fit with `mean = ~ x`, which has coefficients")
  }
  loo <- loo_rows(model)
  p <- posterior_of(model)
  part <- without_rounded(row_parts(p))
  fun <- some_functionals(b$fun, seq_along(b$names))
  change <- covariance_with_rows(p, fun)[part$group, , drop = FALSE] * (part$g / part$rest)
  change <- in_units(model, change %*% t(b$to)) / rep(mean_coefficients(model)$sd, each = nrow(change))
  scale <- if (response_of(model)$conjugate) scale_without(model, standardised(loo)) else 1
  out <- apply(change, 2L, function(v) all_rows(training_data(model), v, 0)) / scale
  dimnames(out) <- list(names(training_data(model)$response), b$names)
  stats::naresid(model$na.action, out)
}

# Returns the estimate of the scale of kernel and noise from all other rows, in units of the fit's own. With
# y'K^{-1} y = sum(g y) and the squared standardised residual r^2 the estimate is (y'K^{-1} y - r^2) / (n - p - 1), for
# p coefficients of the mean, as for lm().
scale_without <- function(fit, r) {
  p <- posterior_of(fit)
  part <- row_parts(p)
  used <- part$q > 0 # the rows of a subsample
  coefficients <- max(length(mean_functionals(fit)$names), fit$center != 0)
  seen <- all_rows(training_data(fit), as.double(used), 0)
  sqrt(pmax(sum(part$g * responses_used(p)$y) - seen * r^2, 0) / (sum(used) - coefficients - seen))
}

refuse_neighbours <- function(fit) {
  fit <- check_any_fit(fit, "model")
  if (is.null(fit$near)) return(fit)
  abort_input("model", "a fit with nearest neighbours", "a fit with `neighbours = 0`",
              hint = "rstandard() and hatvalues() work for this fit.")
}
