# Time series: pfdtc() of a ts, and the method for forecast().

#' Fit and forecast a time series
#'
#' `pfdtc()` of a [ts] fits the series along its time. If it has a frequency above 1, a trend with a season is compared
#' with the other kernels. [forecast()][generics::forecast] continues it.
#'
#' @param x a univariate [ts]; missing values are left out.
#' @param object a fit of one input, a time in regular steps: a ts, dates, times or numbers.
#' @param h,level number of steps ahead, by default two periods or 10 steps; probabilities of the prediction intervals,
#'   in percent.
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
    abort_input("x", sprintf("%d series", ncol(x)), "one series",
                hint = sprintf("Fit each by itself: pfdtc(%s[, %s]).", clip(deparse1(substitute(x))),
                               show_values(c(colnames(x), 1L)[1L])))
  }
  data <- list2DF(list(time = series_time(x), y = as.numeric(x)))
  call <- match.call()
  call$x <- NULL
  call[c("formula", "data")] <- list(y ~ time, data)
  formula_fit("pfdtc", call, environment(), list(...))
}

# Returns list(number, date) for dates that are all of the same day of a month, or all last days: the months of the
# dates, in years, and a function that returns the dates of months. NULL for other dates.
months_of <- function(dates) {
  next_day <- as.POSIXlt(dates + 1)
  last <- all(next_day$mday == 1L)
  lt <- if (last) next_day else as.POSIXlt(dates)
  if (length(unique(lt$mday)) > 1L || lt$mday[1L] > 28L) return(NULL)
  list(number = lt$year + 1900 + lt$mon / 12 - last / 12, date = function(number) {
    month <- round(12 * number) + last
    as.Date(ISOdate(month %/% 12, month %% 12 + 1, lt$mday[1L])) - last
  })
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
  months <- if (v$kind == "time" && v$date) months_of(times_of(v, time))
  counted <- months$number %||% time
  start <- min(counted)
  step <- min(diff(sort(unique(counted))))
  at <- round((counted - start) / step) + 1
  irregular <- max(abs(counted - start - (at - 1) * step)) > 0.2 * step || anyDuplicated(at)
  if (irregular) abort_input("object", "a fit of irregular times", "a fit of one time in regular steps")
  count <- max(at)
  step <- (max(counted) - start) / (count - 1)
  seasonal <- if (is.null(months)) !is.null(v$period) || in_decimal_years(sort(time)) else
    abs(1 / step - round(1 / step)) < 1e-6
  frequency <- if (seasonal) round(1 / step) else 1
  if (frequency > 1) step <- 1 / frequency
  h <- if (is.null(h)) max(10, 2 * frequency) else check_count(h, "h")
  level <- check_positive(level, "level")
  if (any(level >= 100)) abort_input("level", max(level), "below 100, in percent")
  end <- start + step * (count - 1)
  ahead <- end + step * seq_len(h)
  new <- stats::setNames(data.frame(if (!is.null(months)) months$date(ahead) else
    if (v$kind == "time") times_of(v, ahead) else ahead), v$name)
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
