# The kernel of a season along a time: a smooth trend, for each period a periodic term whose shape changes slowly, and
# the kernel of all inputs for the rest. Its profile is "season<numbers of the periods>:<profile of the rest>", with
# "+mean" for a linear mean. `kernel$season` has the role of each factor: trend, cycle, change, rest or mean.

# Days of the periods that are tried along dates and times.
calendar <- c(day = 1, week = 7, year = 365.2425)

# Returns list(column, period, name) for each period that may be seen along an input: a time, the time of a ts, years in
# steps of a month or a quarter, or any number along which y repeats itself exactly. The data span two periods and have
# more than two values in each.
time_periods <- function(x, variables, y = NULL) {
  out <- list()
  for (v in variables) {
    if (length(v$columns) != 1L || identical(v$kind, "factor")) next
    value <- sort(unique(x[, v$columns]))
    known <- if (identical(v$kind, "time")) calendar else if (in_decimal_years(value)) c(year = 1) else
      v[["period"]] %||% exact_period(x[, v$columns], y)
    seen <- length(value) > 4L & diff(range(value)) >= 2 * known & stats::median(diff(value)) < known / 2.5
    for (name in names(known)[seen]) {
      out <- c(out, list(list(column = v$columns, period = known[[name]], name = name)))
    }
  }
  out
}

# Returns c(cycle = the period) if y at equal steps of x repeats itself to rounding, else NULL.
exact_period <- function(x, y) {
  step <- diff(sort(x))
  if (length(step) < 5L || length(y) != length(x) || max(abs(step - step[1L])) > 1e-6 * step[1L]) return(NULL)
  y <- y[order(x)]
  rounding <- 1e-8 * diff(range(y))
  lags <- which(abs(y - y[1L]) <= rounding)[-1L] - 1L
  for (lag in utils::head(lags[lags > 2L & 2L * lags <= length(y)], if (rounding > 0) 20L else 0L)) {
    if (all(abs(diff(y, lag)) <= rounding)) return(c(cycle = lag * mean(step)))
  }
}

# Returns TRUE for increasing years whose steps are months or quarters, up to rounding to two digits of a year.
in_decimal_years <- function(value) {
  if (length(value) < 9L || value[1L] < 1500 || value[length(value)] > 2500) return(FALSE)
  any(vapply(c(12, 4), function(times) {
    steps <- diff(value) * times
    stats::median(abs(steps - 1)) < 0.1 && all(steps > 0.5) && all(abs(steps - round(steps)) < 0.15)
  }, NA))
}

is_season <- function(profile) isTRUE(startsWith(profile, "season"))

# Returns list(periods, rest, mean) of a season's profile.
parts_of_season <- function(profile, periods) {
  parts <- regmatches(profile, regexec("^season([0-9,]+):([a-z0-9]+)([+]mean)?$", profile))[[1L]]
  list(periods = periods[as.integer(strsplit(parts[2L], ",")[[1L]])], rest = parts[3L], mean = nzchar(parts[4L]))
}

# Returns the kernel of the terms beside `rest`, which reads all inputs, and the roles of the factors.
season_kernel <- function(periods, rest, mean = NULL) {
  along <- periods[[1L]]$column
  terms <- c(list(kernel_se(inputs = along)), lapply(periods, function(p) {
    kernel_periodic(period = p$period, inputs = p$column) * kernel_matern(5 / 2, inputs = p$column)
  }), list(rest, mean))
  kernel <- Reduce(`+`, Filter(Negate(is.null), terms))
  kernel$season <- c("trend", rep(c("cycle", "change"), length(periods)), "rest", if (!is.null(mean)) "mean")
  kernel
}

# Returns the kernel with the season in place of the factor whose profile was open.
season_beside <- function(season, kernel, open, x) {
  beside <- Filter(function(t) !any(open[t$leaves]), kernel$terms)
  kernel <- with_columns(add_kernels(season, list(leaves = kernel$leaves, terms = beside)), x)
  kernel$season <- c(season$season, rep("beside", length(kernel$leaves) - length(season$season)))
  kernel
}

# Returns parameter_units() with the priors of a season, which do not fade (`keep`), because a series has few periods,
# however many rows. They were set on the series of bench/forecasts.R. With other inputs than the time, the rest has its
# usual priors.
season_priors <- function(table, kernel, x) {
  leaves <- kernel$leaves
  span <- diff(range(x[, leaves[[1L]]$inputs]))
  alone <- length(leaves[[match("rest", kernel$season)]]$inputs) == 1L
  shortest <- min(unlist(lapply(leaves, `[[`, "period")))
  for (i in seq_len(nrow(table))) {
    of <- if (table$leaf[i]) table$leaf[i] else kernel$terms[[table$term[i]]]$leaves[1L]
    role <- kernel$season[of]
    if (role == "beside" || role == "rest" && !alone) next
    value <- switch(table$what[i], lengthscale = switch(role, cycle = 1, trend = span, change = 3 * span,
                                                        rest = 0.3 * shortest) / table$unit[i],
                    variance = season_variances[[role]])
    if (is.null(value)) next
    sd <- if (table$what[i] == "variance") "variance" else if (role == "cycle") "cycle" else "length"
    table[i, c("middle", "sd", "keep")] <- list(log(value), season_sd[[sd]], TRUE)
  }
  table
}
