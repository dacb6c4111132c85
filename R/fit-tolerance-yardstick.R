# The statistics of a certified accuracy, and sentences about them.

# Returns the smallest number that a share of at least q of the values does not exceed.
reached_by <- function(v, q) {
  k <- max(1, ceiling(q * length(v)))
  v[is.na(v)] <- Inf
  sort(v, partial = k)[k]
}

# Returns error(mean, sd), which gives the two statistics of a posterior at the training rows, in units of y without
# offset, from bounds of the exact GP there. `floor`: the statistics of a posterior in the middle of the bounds, which
# no posterior can fall below. `unit`: errors of the mean are divided by it, or by the posterior's sd if it is NULL.
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

# Rounds up to two digits, so that the text is never less than the number.
show_percent <- function(v) {
  if (!is.finite(v)) return("more than any number of %")
  v <- 100 * v
  unit <- if (v > 0) 10^(floor(log10(v)) - 1) else 1
  paste(format(ceiling(v / unit * (1 - 1e-12)) * unit, digits = 3, scientific = v < 1e-4), "%")
}

# For run_fit(), for any fit.
tolerance_so_far <- function(fit) if (is.null(fit$tol)) "" else paste0(", ", describe_tolerance(fit))

tolerance_unmet <- function(fit) if (isFALSE(fit$tol$met)) unreached_text(fit)

# Describes the larger of the two statistics, as in "certified 1.7 % at M = 184 (tight)"; NA for a fit without tol.
describe_tolerance <- function(fit) {
  tol <- fit$tol
  if (is.null(tol)) return(NA_character_)
  if (is.na(tol$mean)) return(sprintf("not certified (%s asked for)", show_percent(tol$asked)))
  sprintf("certified %s %s, %s %s asked for: %s", show_percent(max(tol$mean, tol$sd)), certified_at(fit),
          if (tol$met) "with" else "short of the", show_percent(tol$asked), describe_statistics(fit))
}

certified_at <- function(fit) {
  switch(fit$posterior, exact = "of the exact posterior as computed",
         far = sprintf("at M = %d (%s)", fit$m, fit$tol$effort),
         sprintf("at M = %d and %d near rows (%s)", fit$m, fit$neighbours, fit$tol$effort))
}

describe_statistics <- function(fit) {
  tol <- fit$tol
  inputs <- if (tol$rows < fit$nobs) sprintf("%d random training inputs", tol$rows) else "the training inputs"
  at <- if (tol$quantile < 1) {
    sprintf("each at %s %% of %s", format(100 * tol$quantile), inputs)
  } else if (tol$rows < fit$nobs) {
    paste("both at", inputs)
  } else {
    "both at every training input"
  }
  sprintf("exact %s within %s of %s, exact sd within %s of the fit's, %s, at these hyperparameters",
          if (!response_of(fit)$conjugate) "process's mode" else "mean", show_percent(tol$mean),
          if (!response_of(fit)$conjugate) "the sd of f there" else "sd(y)", show_percent(tol$sd), at)
}

unreached_text <- function(fit) {
  tol <- fit$tol
  sprintf("The accuracy tol = %s was not reached. Certified %s: %s. %s", format(tol$asked), certified_at(fit),
          describe_statistics(fit), tol$needs)
}

# ---- candidates -----------------------------------------------------------------------------------------------------

# Returns a candidate: its fit, errors and whether it meets tol.
candidate_of <- function(fit, yard, x, tol, started, center = 0) {
  at <- latent_at(fit, x)
  error <- yard$error(at$mean - center, sqrt(at$var))
  list(fit = fit, m = fit$m, neighbours = fit$neighbours, posterior = fit$posterior, error = error,
       met = max(error) <= tol, iterations = 0L, seconds = proc.time()[["elapsed"]] - started)
}

best_candidate <- function(candidates) {
  met <- Filter(function(one) one$met, candidates)
  by <- if (length(met)) vapply(met, function(one) one$m, 1) else
    vapply(candidates, function(one) max(one$error), 1)
  if (length(met)) candidates <- met
  if (length(candidates)) candidates[[which.min(by)]]
}

candidates_frame <- function(candidates) {
  do.call(rbind, lapply(candidates, function(one) {
    data.frame(m = as.integer(one$m), iterations = as.integer(one$iterations), mean = one$error[["mean"]],
               sd = one$error[["sd"]], met = one$met, seconds = one$seconds, posterior = one$posterior,
               neighbours = as.integer(one$neighbours))
  }))
}

# Returns a function that sends a message about each candidate, if the search takes more than `after` seconds.
tell_candidates <- function(goal, started, after = 5) {
  if (!goal$tell) return(function(one) invisible())
  function(one) {
    seconds <- proc.time()[["elapsed"]] - started
    if (seconds < after) return(invisible())
    number <- function(v) format(signif(v, 2))
    with <- if (isTRUE(one$neighbours > 0L)) sprintf(" and %d near rows", one$neighbours) else ""
    message(structure(class = c("pfdtc_message_progress", "message", "condition"), list(
      message = sprintf("tol = %s: %d points%s certify %s for the mean and %s for the sd, %.0f s\n", number(goal$tol),
                        one$m, with, number(one$error[["mean"]]), number(one$error[["sd"]]), seconds),
      call = NULL, m = one$m, error = one$error, seconds = seconds)))
  }
}

# Returns a plan with another posterior.
with_posterior <- function(plan, ...) {
  replace(plan, "posterior", list(utils::modifyList(plan$posterior, list(...))))
}
