# The statistic that a tolerance speaks of.

# The smallest number that a share of at least q of the values does not exceed.
reached_by <- function(v, q) {
  k <- max(1, ceiling(q * length(v)))
  v[is.na(v)] <- Inf
  sort(v, partial = k)[k]
}

# Where the exact GP lies at the training rows: a function error(mean, sd) of a posterior there, in units of y without
# offset, that gives the two statistics; `floor`: those of a posterior in the middle, below which there are none.
# `unit`: what errors of the mean are shares of; NULL: the posterior's sd at the row.
yardstick <- function(interval, rows, unit, q) {
  lower <- interval$sd_lower
  upper <- interval$sd_upper
  share <- function(error, sd) reached_by(if (is.null(unit)) error / sd else error / unit, q)
  list(
    floor = c(mean = share((interval$mean_upper - interval$mean_lower) / 2, (upper + lower) / 2),
              sd = reached_by((upper - lower) / (upper + lower), q)),
    error = function(mean, sd) {
      i <- rows$index
      mean <- mean[i] + rows$offset
      rounding <- 1 + 8 * .Machine$double.eps
      c(mean = rounding * share(pmax(mean - interval$mean_lower, interval$mean_upper - mean), sd[i]),
        sd = reached_by(pmax(1 - lower / sd[i], upper / sd[i] - 1), q) + rounding - 1)
    })
}

# What a candidate came to; the first line after some seconds.
tell_candidates <- function(goal, started, after = 5) {
  if (!goal$tell) return(function(one) invisible())
  function(one) {
    seconds <- proc.time()[["elapsed"]] - started
    if (seconds < after) return(invisible())
    number <- function(v) format(signif(v, 2))
    message(structure(class = c("pfdtc_message_progress", "message", "condition"), list(
      message = sprintf("tol = %s: %d points%s certify %s for the mean and %s for the sd, %.0f s\n", number(goal$tol),
                        one$m, if (is.null(one$neighbours)) "" else sprintf(" and %d near rows", one$neighbours),
                        number(one$error[["mean"]]), number(one$error[["sd"]]), seconds),
      call = NULL, m = one$m, error = one$error, seconds = seconds)))
  }
}

# Rounded up to two digits, so that it is never less than what is certified.
show_percent <- function(v) {
  if (!is.finite(v)) return("more than any number of %")
  v <- 100 * v
  unit <- if (v > 0) 10^(floor(log10(v)) - 1) else 1
  paste(format(ceiling(v / unit * (1 - 1e-12)) * unit, digits = 3, scientific = v < 1e-4), "%")
}
