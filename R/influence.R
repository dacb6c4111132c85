# Methods that rest on leave-one-out: rstandard(), hatvalues() and cooks.distance().

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
  model <- check_any_fit(model, "model")
  data <- training_data(model)
  if (!is.null(model$near)) {
    abort_input("model", "one with near rows", "a fit without near rows for Cook's distance", hint =
                  "Leave-one-out residuals and leverages are there: rstandard(), hatvalues().")
  }
  p <- posterior_of(model)
  part <- without_rounded(row_parts(p))
  distance <- (part$g / part$rest)^2 * squared_moves(p)[part$group] / sum(part$W * part$q)
  stats::naresid(model$na.action, all_rows(data, distance, 0))
}
