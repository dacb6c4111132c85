# The statistics of a certified accuracy, the loop that tries candidates, and sentences about the result.

# Returns the smallest number that is at least as large as a share q of the values.
reached_by <- function(v, q) {
  k <- max(1, ceiling(q * length(v)))
  v[is.na(v)] <- Inf
  sort(v, partial = k)[k]
}

# Returns the two statistics, from bounds of the exact GP at the training rows in units of y without offset:
#
#   error(mean, sd)  the statistics of a posterior at these rows
#   floor            the statistics of the middle of the bounds. No posterior is certified to be better.
#   reference, effort, m2, rows  where the bounds come from; `rows` is the number of training inputs
#
# Errors of the mean are divided by `unit`, or by the posterior's sd if it is NULL.
yardstick <- function(interval, rows, unit, q, reference = NULL, effort = "reference", n = length(rows$index)) {
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
    },
    reference = reference, effort = effort, m2 = if (is.null(reference)) NA_integer_ else reference$m, rows = n)
}

# ---- candidates -----------------------------------------------------------------------------------------------------

# Returns a candidate of a search. `...` has the elements that its fit is made from.
new_candidate <- function(m, error, tol, started, neighbours = 0L, posterior = "far", iterations = 0L, ...) {
  list(m = m, neighbours = neighbours, posterior = posterior, error = error, met = max(error) <= tol,
       iterations = iterations, seconds = proc.time()[["elapsed"]] - started, ...)
}

candidate_of <- function(fit, yard, x, tol, started, center = 0) {
  at <- latent_at(at_mode(fit), x)
  new_candidate(fit$m, yard$error(at$mean - center, sqrt(at$var)), tol, started, fit$neighbours, fit$posterior,
                fit = fit)
}

# Returns the smallest candidate that meets tol, else the one with the smallest error.
best_candidate <- function(candidates) {
  met <- Filter(function(one) one$met, candidates)
  if (length(met)) return(met[[which.min(vapply(met, function(one) one$m, 1))]])
  if (length(candidates)) candidates[[which.min(vapply(candidates, function(one) max(one$error), 1))]]
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
  function(one) {
    seconds <- proc.time()[["elapsed"]] - started
    if (!goal$tell || seconds < after) return(invisible())
    number <- function(v) format(signif(v, 2))
    with <- if (isTRUE(one$neighbours > 0L)) sprintf(" and %d nearest neighbours", one$neighbours) else ""
    tell_classed("progress", sprintf("tol = %s: %d inducing points%s: certified error %s (mean), %s (sd), %.0f s",
                                     number(goal$tol), one$m, with, number(one$error[["mean"]]),
                                     number(one$error[["sd"]]), seconds))
  }
}

# Tries settings (a number of inducing points or of neighbours) until a candidate meets tol or none is left.
# try(setting) returns a candidate or NULL, and following(tried) the next setting or NULL. advice(best, tried) returns a
# sentence if tol is not met. The search ends early if it is late or was interrupted.
try_settings <- function(job, setting, try, following, advice) {
  tell <- tell_candidates(job$goal, job$started)
  tried <- list()
  while (!is.null(setting)) {
    one <- try(setting)
    if (is.null(one)) break
    tell(one)
    tried <- c(tried, list(one))
    setting <- if (is.null(job$state$stopped) && !job$late()) following(tried)
  }
  if (!length(tried)) return(invisible())
  about <- list(yard = job$yard, needs = advice(best_candidate(tried), tried))
  job$candidates <- c(job$candidates, lapply(tried, c, about))
  job$best <- best_candidate(job$candidates)
}

# ---- sentences ------------------------------------------------------------------------------------------------------

# Formats a share as a percentage, rounded up to two digits.
show_percent <- function(v) {
  if (!is.finite(v)) return("more than any number of %")
  v <- 100 * v
  unit <- if (v > 0) 10^(floor(log10(v)) - 1) else 1
  paste(format(ceiling(v / unit * (1 - 1e-12)) * unit, digits = 3, scientific = v < 1e-4), "%")
}

# Returns a sentence that explains why tol was not met and which settings could meet it. If the reason is the bounds,
# `least` is the smallest error that they can certify. `suggestion` is for reasons other than bounds and time.
tolerance_advice <- function(yard, least, late, suggestion, limit = yard$limit) {
  if (is.null(least)) return(if (late) "The search ended at `max_seconds`: increase it." else suggestion)
  if (!is.finite(least)) return("No certificate exists: the exact GP may have another mode near this one.")
  several <- !response_of(yard$reference)$concave
  paste0(sprintf("The reference posterior (%d inducing points) itself has a certified error of %s. ",
                 yard$reference$m, show_percent(least)),
         switch(limit, memory = "Increase options(pfdtc.max_memory), so that it can have more points.",
                m = "Increase `m`: the reference has at most 16 times as many points.",
                time = "Increase `max_seconds`.",
                quantile = "Use pfdtc_control(tol_quantile = 0.95), which ignores the worst 5 % of the rows.",
                if (several) "More points do not help: the mode may not be unique." else
                  "More points change only rounding: increase `noise` or `tol`."),
         if (is_rough(yard$reference$kernel)) " A rough kernel, such as Matern 1/2 or 3/2, needs many points.",
         if (response_of(yard$reference)$conjugate) " refine() certifies the mean at single rows to any accuracy.")
}

tolerance_unmet <- function(fit) {
  if (!isFALSE(fit$tol$met)) return(NULL)
  sprintf("`tol` = %s was not met. The fit, %s, is certified to %s: %s. %s", format(fit$tol$asked), certified_at(fit),
          show_percent(max(fit$tol$mean, fit$tol$sd)), describe_statistics(fit), fit$tol$needs)
}

# Describes the larger of the two statistics; NA for a fit without tol.
describe_tolerance <- function(fit) {
  tol <- fit$tol
  if (is.null(tol)) return(NA_character_)
  if (is.na(tol$mean)) return(sprintf("not certified (`tol` is %s)", show_percent(tol$asked)))
  sprintf("certified %s %s, which %s `tol` = %s: %s", show_percent(max(tol$mean, tol$sd)), certified_at(fit),
          if (tol$met) "meets" else "misses", show_percent(tol$asked), describe_statistics(fit))
}

# Returns a description of the posterior of the fit and of the bounds that certify it.
certified_at <- function(fit) {
  near <- if (fit$posterior == "far + near") sprintf(" and %d nearest neighbours", fit$neighbours) else ""
  if (fit$posterior == "exact") return("with the exact posterior, rounding included")
  sprintf("with %d inducing points%s (effort \"%s\")", fit$m, near, fit$tol$effort)
}

describe_statistics <- function(fit) {
  tol <- fit$tol
  at <- paste0(if (tol$quantile < 1) sprintf("%s %% of ", format(100 * tol$quantile)) else "all ",
               if (tol$rows < fit$nobs) sprintf("%d random ", tol$rows), "training rows")
  words <- if (response_of(fit)$conjugate) c("mean", "sd(y)") else c("mode", "the sd of f")
  sprintf("at %s the exact %s is within %s of %s and the exact sd within %s of the fit's", at, words[1L],
          show_percent(tol$mean), words[2L], show_percent(tol$sd))
}
