# rstandard(), hatvalues() and cooks.distance(): what leave-one-out (loo.R) says, of any likelihood.

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
  stats::naresid(model$na.action, (if (!response_of(model)$conjugate) loo_laplace(model) else loo_rows(model))$hat)
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
  if (!response_of(model)$conjugate) return(stats::naresid(model$na.action, cooks_laplace(model, data)))
  rows <- rows_apart(data)
  part <- influence_parts(model, data, rows)
  # d mean_k / d y_n = H_kg w_n / W_g: moved by y_n - mean_(-n), which is (y_n - mean) / (1 - h)
  shift <- (rows$y - part$mean) / part$rest * part$share
  noise <- model_of(model)$noise
  distance <- shift^2 * column_squares(model, data, part)[rows$group] / (noise * sum(part$hat))
  stats::naresid(model$na.action, all_rows(data, distance, 0))
}
