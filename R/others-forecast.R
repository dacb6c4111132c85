# Time series: pfdtc() of a ts, and the method for forecast().

#' Fit and forecast a time series
#'
#' `pfdtc()` of a [ts] fits the series along its time. If it has a frequency above 1, a trend with a season is compared
#' with the other kernels. [forecast()][generics::forecast] continues it.
#'
#' @param x a univariate [ts]; missing values are left out.
#' @param object a fit of one input, a time in regular steps: a ts, dates, times or numbers.
#' @param h number of steps ahead. Default: two periods, or 10 steps.
#' @param level probabilities of the prediction intervals, in percent.
#' @param ... for `pfdtc()` its other arguments; for `forecast()` not used.
#' @return `pfdtc()` returns a fit of `y ~ time`. `forecast()` returns an object of class `forecast` with `mean`,
#'   `lower`, `upper`, `x`, `fitted`, `residuals`, `method` and `model`, which the package forecast plots and scores.
#' @section Invariants: `forecast()` gives what [predict()][predict.gp_fit] gives at the times ahead,
#'   and of a transformed response the median.
#' @seealso [pfdtc()], [predict.gp_fit()], `vignette("places")`
#' @examples
#' fit <- pfdtc(USAccDeaths, kernel = kernel_periodic(period = 1) + kernel_matern(3/2))
#' if (requireNamespace("generics", quietly = TRUE)) {
#'   ahead <- generics::forecast(fit, h = 12, level = 95)
#'   ts.plot(USAccDeaths, ahead$mean, ahead$lower, ahead$upper, lty = c(1, 1, 3, 3),
#'           col = c("black", "blue", "blue", "blue"), ylab = "accidental deaths")
#' }
#' @export
pfdtc.ts <- function(x, ...) {
  if (is.matrix(x)) {
    abort_input("x", sprintf("%d series", ncol(x)), "one series", hint = "Fit each by itself, or use a data frame.")
  }
  data <- list2DF(list(time = series_time(x), y = as.numeric(x)))
  call <- match.call()
  call$x <- NULL
  call[c("formula", "data")] <- list(y ~ time, data)
  formula_fit("pfdtc", call, environment(), list(...))
}

#' @rdname pfdtc.ts
#' @exportS3Method generics::forecast
forecast.gp_fit <- function(object, h = NULL, level = c(80, 95), ...) {
  fit <- check_any_fit(object, "object")
  data <- training_data(fit)
  v <- fit$frame$variables
  if (length(v) != 1L || ncol(data$x) != 1L) {
    abort_input("object", sprintf("a fit of %d inputs", ncol(data$x)), "a fit of a formula with one input, a time")
  }
  v <- v[[1L]]
  time <- training_inputs(data)
  time <- time$x[time$index, 1L]
  start <- min(time)
  step <- min(diff(sort(unique(time))))
  at <- round((time - start) / step) + 1
  irregular <- max(abs(time - start - (at - 1) * step)) > 0.2 * step || anyDuplicated(at)
  if (irregular) abort_input("object", "a fit of irregular times", "one of times in regular steps")
  count <- max(at)
  step <- (max(time) - start) / (count - 1)
  frequency <- if (is.null(v$period) && !in_decimal_years(sort(time))) 1 else round(1 / step)
  if (frequency > 1) step <- 1 / frequency
  h <- if (is.null(h)) max(10, 2 * frequency) else check_count(h, "h")
  level <- check_positive(level, "level")
  if (any(level >= 100)) abort_input("level", max(level), "below 100, in percent")
  end <- start + step * (count - 1)
  ahead <- end + step * seq_len(h)
  new <- stats::setNames(data.frame(if (v$kind == "time") times_of(v, ahead) else ahead), v$name)
  past <- function(value) stats::ts(replace(rep(NA_real_, count), at, value), start = start, deltat = step)
  future <- function(value) stats::ts(value, start = end + step, deltat = step)
  bands <- lapply(level / 100, function(p) stats::predict(fit, new, interval = "prediction", level = p))
  ends <- function(side) {
    value <- vapply(bands, function(band) band[, side], numeric(h))
    future(matrix(value, h, dimnames = list(NULL, paste0(level, "%"))))
  }
  middle <- stats::predict(fit, new, type = if (is.null(fit$transform)) "response" else "median")
  structure(class = "forecast", list(
    method = "Gaussian process", model = fit, level = level, mean = future(unname(middle)), lower = ends("lwr"),
    upper = ends("upr"), x = past(data$given_response %||% data$response),
    fitted = past(stats::fitted(fit)), residuals = past(stats::residuals(fit)), series = response_name(fit)))
}
