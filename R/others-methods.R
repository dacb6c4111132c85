# Defines methods for packages butcher, vetiver, generics (forecasts) and marginaleffects, registered when these load.

#' @exportS3Method butcher::axe_data
axe_data.gp_fit <- function(x, verbose = FALSE, ...) {
  x <- check_any_fit(x, "x")
  if (is.null(x$data) || !is.null(x$near)) return(x)
  x$frame <- make_frame(c(list(frame = x$frame), x$data[c("x", "offset", "prior_weights")]), keep_data = FALSE)
  x["data"] <- x["asked"] <- list(NULL)
  if (!is.null(x$reference)) x$reference <- axe_data.gp_fit(kept_reference(x$reference, x))
  x
}

#' @exportS3Method butcher::axe_env
axe_env.gp_fit <- function(x, verbose = FALSE, ...) {
  x <- check_any_fit(x, "x")
  x["terms"] <- list(drop_environment(x$terms))
  x$frame["terms"] <- list(drop_environment(x$frame$terms))
  if (!is.null(x$data)) x$data[c("terms", "frame")] <- list(x$terms, x$frame)
  if (!is.null(x$call)) x$call <- slim_call(x$call)
  x
}

#' @exportS3Method butcher::axe_call
axe_call.gp_fit <- function(x, verbose = FALSE, ...) replace(x, "call", list(NULL))

#' @exportS3Method butcher::axe_fitted
axe_fitted.gp_fit <- function(x, verbose = FALSE, ...) replace(x, "z_trace", list(NULL))

#' @exportS3Method vetiver::vetiver_create_description
vetiver_create_description.gp_fit <- function(model) paste("A", fit_title(check_any_fit(model, "model")))

#' @exportS3Method vetiver::vetiver_create_meta
vetiver_create_meta.gp_fit <- function(model, metadata) vetiver::vetiver_meta(metadata, required_pkgs = "pfdtc")

#' @exportS3Method vetiver::vetiver_prepare_model
vetiver_prepare_model.gp_fit <- function(model) {
  axe_env.gp_fit(axe_data.gp_fit(axe_fitted.gp_fit(axe_call.gp_fit(model))))
}

#' @exportS3Method vetiver::vetiver_ptype
vetiver_ptype.gp_fit <- function(model, ...) {
  model <- check_any_fit(model, "model")
  given <- list(...)$prototype_data
  if (!is.null(given)) return(given[0L, , drop = FALSE])
  frame <- model$frame
  if (!by_formula(model))
    return(as.data.frame(matrix(0, 0L, length(frame$columns), dimnames = list(NULL, frame$columns))))
  of_kind <- function(v) {
    if (v$name %in% frame$required && v$kind != "matrix")
      return(switch(v$kind, factor = factor(levels = v$levels), logical = logical(), numeric()))
    abort_input("prototype_data", sprintf("is missing, but the formula has `%s`", v$name),
                hint = "Give some rows of the data.")
  }
  names <- vapply(frame$variables, `[[`, "", "name")
  as.data.frame(stats::setNames(lapply(frame$variables, of_kind), names), optional = TRUE)
}

#' @exportS3Method vetiver::handler_startup
handler_startup.gp_fit <- function(vetiver_model) vetiver::attach_pkgs(vetiver_model$metadata$required_pkgs)

#' @exportS3Method vetiver::handler_predict
handler_predict.gp_fit <- function(vetiver_model, ...) {
  function(req) {
    new <- vetiver::vetiver_type_convert(req$body, vetiver_model$prototype)
    p <- stats::predict(vetiver_model$model, as.data.frame(new), ...)
    if (!is.matrix(p)) return(list(.pred = unname(p)))
    list(.pred = unname(p[, "fit"]), .pred_lower = unname(p[, "lwr"]), .pred_upper = unname(p[, "upr"]))
  }
}

#' Fit and forecast a time series
#'
#' For a [ts], `pfdtc()` fits the series as a function of time. Without `kernel`, kernels with a trend and a season are
#' also tried if the series has a frequency above 1. [forecast()][generics::forecast] predicts future values.
#' @param x a univariate [ts]; missing values are left out.
#' @param object a fit with one input, a time in regular steps: a ts, dates, times or numbers.
#' @param h number of steps ahead. Default: two periods, at least 10.
#' @param level probabilities of the prediction intervals, in percent.
#' @param ... for `pfdtc()` its other arguments; for `forecast()` not used.
#' @return `pfdtc()` returns a fit of `y ~ time`. `forecast()` returns an object of class `forecast` with `mean`,
#'   `lower`, `upper`, `x`, `fitted`, `residuals`, `method` and `model`, which the package \pkg{forecast} can plot and
#'   score. Predictions are means as by [predict()][predict.gp_fit], or medians if there is a transform.
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
  refuse_if(is.matrix(x), "x", sprintf("has %d series", ncol(x)),
            hint = sprintf("Fit each by itself: pfdtc(%s[, %s]).", clip(deparse1(substitute(x))),
                           show_values(c(colnames(x), 1L)[1L])))
  time <- as.numeric(stats::time(x))
  if (stats::frequency(x) > 1) class(time) <- "pfdtc_series_time"
  data <- list2DF(list(time = time, y = as.numeric(x)))
  attributes(data)[c("series", "formula")] <- list(substitute(x), y ~ time) # print() shows the series instead of both
  call <- as.list(match.call())
  call <- as.call(c(call[1L], list(formula = y ~ time, data = data), call[!names(call) %in% c("", "x")]))
  formula_fit("pfdtc", call, environment(), ...names(), list(...))
}

# Returns list(number, date), or NULL unless all dates are the same day of a month (up to the 28th) or all are the last
# day of a month. `number` has the dates in years (2020.25 for April 2020). date() converts such numbers to dates.
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
  fit <- replace(check_any_fit(object, "object"), "na.action", list(NULL)) # fitted values without omitted rows
  data <- training_data(fit)
  v <- fit$frame$variables
  refuse_if(length(v) != 1L || ncol(data$x) != 1L, "object", sprintf("has %d inputs", ncol(data$x)),
            hint = "A forecast needs a formula with one input, a time.")
  v <- v[[1L]]
  time <- rows_of_data(data)$x[, 1L]
  months <- if (v$kind == "time" && v$date) months_of(times_of(v, time))
  counted <- months$number %||% time
  start <- min(counted)
  step <- min(diff(sort(unique(counted))), Inf)
  at <- round((counted - start) / step) + 1
  irregular <- is.infinite(step) || max(abs(counted - start - (at - 1) * step)) > 0.2 * step || anyDuplicated(at)
  refuse_if(irregular, "object", if (is.finite(step)) "has irregular times" else "has a single time",
            hint = "A forecast needs regular steps.")
  count <- max(at)
  step <- (max(counted) - start) / (count - 1)
  seasonal <- if (is.null(months)) !is.null(v$period) || in_decimal_years(sort(time)) else
    abs(1 / step - round(1 / step)) < 1e-6
  frequency <- if (seasonal) round(1 / step) else 1
  if (frequency > 1) step <- 1 / frequency
  h <- if (is.null(h)) max(10, 2 * frequency) else check_count(h, "h")
  level <- check_positive(level, "level")
  refuse_if(any(level >= 100), "level", max(level), "below 100, in percent")
  end <- start + step * (count - 1)
  ahead <- end + step * seq_len(h)
  new <- stats::setNames(data.frame(if (!is.null(months)) months$date(ahead) else
    if (v$kind == "time") times_of(v, ahead) else ahead), v$name)
  past <- function(value) stats::ts(replace(rep(NA_real_, count), at, value), start = start, deltat = step)
  future <- function(value) stats::ts(value, start = end + step, deltat = step)
  type <- if (is.null(fit$transform)) "response" else "median"
  bands <- lapply(level / 100, function(p) stats::predict(fit, new, interval = "prediction", level = p, type = type))
  ends <- function(side) {
    value <- vapply(bands, function(band) band[, side], numeric(h))
    future(matrix(value, h, dimnames = list(NULL, paste0(level, "%"))))
  }
  middle <- stats::predict(fit, new, type = type)
  structure(class = c("pfdtc_forecast", "forecast"), list(
    method = "Gaussian process", model = object, level = level, mean = future(unname(middle)), lower = ends("lwr"),
    upper = ends("upr"), times = if (v$kind == "time" && is.null(months)) new[[1L]],
    x = past(data$given_response %||% data$response),
    fitted = past(stats::fitted(fit)), residuals = past(stats::residuals(fit)), series = response_name(fit)))
}

# Prints a forecast like package forecast, or as a table if that package is not loaded.
#' @export
print.pfdtc_forecast <- function(x, ...) {
  if (isNamespaceLoaded("forecast")) return(NextMethod())
  table <- cbind(x$mean, x$lower, x$upper)
  colnames(table) <- c("Forecast", t(outer(c("Lower", "Upper"), x$level, paste)))
  if (is.null(x$times)) {
    print(table, ...)
  } else {
    times <- format(x$times, usetz = !inherits(x$times, "Date"))
    print(data.frame(Time = times, unclass(table), check.names = FALSE), row.names = FALSE, ...)
  }
  invisible(x)
}

# The attribute `draws` keeps draws of f for all predictions in a call of marginaleffects: equal rows have equal draws.
#' @exportS3Method marginaleffects::sanitize_model_specific
sanitize_model_specific.gp_fit <- function(model, ...) {
  model <- check_any_fit(model, "model")
  refuse_if(is.null(model$terms), "model", "is a fit from a matrix", hint = "Fit by formula and data frame.")
  structure(model, draws = new_draws())
}

#' @exportS3Method marginaleffects::get_predict
get_predict.gp_fit <- function(model, newdata = NULL, type = "response", ...) {
  fit <- check_any_fit(model, "model")
  draws <- attr(model, "draws") %||% new_draws()
  rows <- if (is.null(newdata)) training_rows(fit) else new_rows(fit, as.data.frame(newdata))
  rowid <- newdata$rowid %||% seq_along(rows$index)
  response <- response_of(fit)
  labels <- response$kind == "labels"
  f <- if (labels) contrast_draws(fit, rows$x, draws)[rows$index, , , drop = FALSE] else
    joint_draws(fit, rows$x, draws)[rows$index, , drop = FALSE]
  p <- if (!labels) latent_at(fit, rows$x)
  if (labels || response$kind == "ordered" && type != "link") {
    # Return a row for each class and row of data: all rows for the first class, then all for the next.
    share <- if (!labels) function(f) class_shares(response, f[, 1L]) else
      function(f) softmax_of(as_log_odds(list(mean = f, var = matrix(0, nrow(f), ncol(f)^2)), fit$center)$mean)
    if (!labels) f <- array(f + p$mean[rows$index], c(nrow(f), 1L, ncol(f))) + rows$offset
    shown <- stats::predict(fit, if (!is.null(newdata)) as.data.frame(newdata), type = "response")
    each <- apply(f, 3L, function(v) share(matrix(v, nrow(f))))
    group <- factor(rep(response$levels, each = nrow(f)), response$levels)
    return(structure(data.frame(rowid = rep(rowid, ncol(shown)), group, estimate = c(shown)), posterior_draws = each))
  }
  mean <- p$mean[rows$index] + rows$offset
  noise <- noise_law(fit, rows)$noise
  f <- f + mean
  if (type != "link") {
    f <- if (is.null(response$transform)) response_given(response, f) else
      t(vapply(seq_len(nrow(f)), function(i) { # interpolates 200 quadratures
        ends <- range(f[i, ])
        if (!isTRUE(ends[1L] < ends[2L])) return(response_given(response, f[i, ], noise[i]))
        at <- seq(ends[1L], ends[2L], length.out = 200L)
        stats::spline(at, response_given(response, at, noise[i]), xout = f[i, ])$y
      }, f[1L, ]))
  }
  estimate <- on_scale(fit, list(mean = mean, var = p$var[rows$index]), type, noise)$mean
  structure(data.frame(rowid, estimate), posterior_draws = f)
}

# Returns joint draws of the K - 1 latent functions of K classes, an array [row of x, function, draw]. `draws` keeps
# draws at inducing points for later calls, and joint_draws() adds the residual of f given these points.
contrast_draws <- function(fit, x, draws) {
  p <- posterior_of(fit)
  q <- ncol(p$factors$beta)
  if (is.null(draws$u)) {
    z <- matrix(stats::rnorm(nrow(p$factors$C) * draws$half), nrow(p$factors$C))
    draws$u <- c(mean_weights(p$factors)) + solve_t(p$factors$C, cbind(z, -z))
    draws$rest <- replicate(q, new_draws(), simplify = FALSE)
  }
  rest <- function(x) residual_covariance(p$model$kernel, p$z, p$factors$L, x)
  m <- nrow(p$factors$beta)
  size <- prior_most(p$model, x)
  each <- lapply(seq_len(q), function(j) {
    times_features(p$model$kernel, p$z, p$factors$L, x, draws$u[(j - 1L) * m + seq_len(m), , drop = FALSE]) +
      joint_draws(fit, x, draws$rest[[j]], size, rest)
  })
  aperm(array(unlist(each), c(nrow(x), ncol(draws$u), q)), c(1L, 3L, 2L))
}

# Returns an environment in which joint_draws() keeps rows and draws. `half` is the number of pairs of normals z, -z.
new_draws <- function() {
  half <- ceiling(check_count(getOption("pfdtc.draws", 2000), "pfdtc.draws", min = 2) / 2)
  list2env(list(half = half, x = NULL, R = matrix(0, 0L, 0L), z = NULL), parent = emptyenv())
}

# Returns draws of f minus its mean at the rows of x, jointly with earlier draws. `draws` keeps those earlier rows at
# which f determines f at the other earlier rows up to rounding. It also keeps the Cholesky factor R of the covariance C
# = R'R of f at these rows, and z ~ N(0, I) with f = R'z. For new rows, with V = R^{-T} C(kept, x) and z_2 ~ N(0, I),
#   f(x) = V'z + S'z_2,   S'S = C(x, x) - V'V.
# covariance(x) may describe another process than f, and `size` is its largest variance.
joint_draws <- function(fit, x, draws, size = max(diag(C)), covariance = function(x) {
                          covariance_at(fit, list(x = x, index = seq_len(nrow(x)), names = NULL))
                        }) {
  n <- nrow(x)
  kept <- NROW(draws$x)
  half <- draws$half
  check_memory(8 * as.double(n + kept) * (3 * (n + kept) + 2 * half), sprintf("joint draws at %d rows", n + kept))
  if (!n) return(matrix(0, 0L, 2L * half))
  all <- rbind(draws$x, x)
  C <- covariance(all)
  new <- kept + seq_len(n)
  V <- if (kept) backsolve(draws$R, C[seq_len(kept), new, drop = FALSE], transpose = TRUE) else matrix(0, 0L, n)
  left <- C[new, new, drop = FALSE] - crossprod(V)
  rounding <- nrow(all) * .Machine$double.eps * size
  S <- suppressWarnings(chol(left, pivot = TRUE, tol = rounding)) # the rank may be below n
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
