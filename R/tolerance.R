# Fitting to an accuracy that the user names: as few inducing points as the certificate allows.
#
#   grow_reference()  a reference, doubled until what it leaves open at the training inputs is small beside tol
#   greedy_guide()    its first M points nest: the error of their posteriors, nothing optimised, over M
#   search_points()   points started greedily and optimised until certified, at an M that goes down (or up) by what
#                     the last ones predict; the smallest M that met tol is the fit
#
# Where the points would be too many and nothing was asked for that speaks of them, what tolerance_otherwise.R has does.
#
# The statistic: over the training inputs, the quantile `tol_quantile` (1: the maximum) of the certified error of the
# mean in sd(y), and that of |exact sd / sd - 1|. Both are to be at most tol.

# For run_fit(), of any fit.
tolerance_so_far <- function(fit) if (is.null(fit$tol)) "" else paste0(", ", describe_tolerance(fit))

tolerance_unmet <- function(fit) if (isFALSE(fit$tol$met)) unreached_text(fit)

fit_to_tolerance <- function(data, asked, state) {
  if (!is.null(asked$likelihood)) return(laplace_to_tolerance(data, asked, state))
  started <- proc.time()[["elapsed"]]
  s <- tolerance_plan(data, asked)
  way <- other_way(facts_of(data, asked), asked)
  given <- asked$neighbours
  s$goal$worth <- if (way == "none") Inf else points_worth_it(nrow(data$x))
  few <- s
  few$posterior$m <- min(200L, s$posterior$m)
  done <- learn_stage(data, s$learn, state)
  if (s$learn$hyper == "joint") {
    done <- optimise_stage(data, done, points_stage(data, done, few$posterior, state)$z, few$posterior, state)
  }
  look <- if (way != "none") first_look(data, done, few$posterior, state)
  by_points <- way == "none" || !isTRUE(given > 0L) && !points_fall_short(data, done, look, s, state)
  deadline <- started + s$posterior$steps$max_seconds
  found <- if (by_points && is.null(state$stopped)) search_points(data, done, s, state)
  other <- if (way != "none" && is.null(state$stopped) && !isTRUE(found$best$met)) {
    s$posterior$rho <- look$rho[length(look$rho)]
    near <- utils::modifyList(s, list(posterior = list(neighbours = given)))
    search_otherwise(way, data, done, look$z, near, state, deadline)
  }
  if (is.null(other) && is.null(found$best) && way != "none" && is.null(state$stopped)) {
    s$goal$worth <- Inf # the exact posterior cannot be had
    found <- search_points(data, done, s, state)
  }
  tried <- rbind(found$tried, other$tried)
  tol <- list(asked = s$goal$tol, quantile = s$goal$quantile, mean = NA_real_, sd = NA_real_, met = FALSE,
              effort = NA_character_, m2 = NA_integer_, rows = NA_integer_, needs = NULL, tried = tried)
  best <- found$best
  yard <- found$yard
  if (!is.null(other) && (is.null(best) || max(other$error) <= max(best$error))) {
    best <- other
    yard <- other$yard
    fit <- finish_elsewhere(other$fit, state)
  } else {
    if (!is.null(best)) {
      done <- best$done
    } else if (is.null(done$z)) {
      z <- if (is.null(look)) points_stage(data, done, few$posterior, state)$z else look$z
      done <- start_now(done, z, s$posterior$jitter)
    }
    s$posterior$m <- nrow(done$z)
    fit <- construct_fit(data, done, s, state)
  }
  if (!is.null(best)) {
    tol[c("mean", "sd")] <- as.list(best$error)
    tol[c("met", "effort", "m2", "rows")] <- list(max(best$error) <= s$goal$tol, yard$effort, yard$m2, yard$rows)
    if (!tol$met) tol$needs <- if (is.null(best$needs)) what_it_needs(found, s$goal$tol, s$posterior$m) else best$needs
  }
  if (!is.null(yard$reference)) fit$reference <- kept_reference(yard$reference, fit)
  fit$tol <- c(tol, seconds = proc.time()[["elapsed"]] - started)
  fit
}

# Returns the plan of the search: inducing points alone, as many as there are rows or `m`, which are moved.
tolerance_plan <- function(data, asked) {
  if (!isTRUE(data$sd_y > 0)) {
    abort_input("tol", asked$tol, "NULL for a response without spread", hint = "It is a fraction of the sd of y.")
  }
  if (!is.null(asked$inducing) && !is.character(asked$inducing)) {
    abort_input("inducing", describe(asked$inducing), "NULL or the name of a method where `tol` is given",
                hint = "Hyperparameters of a fit are passed on by kernel = fit$kernel, noise = fit$noise.")
  }
  facts <- facts_of(data, asked)
  m <- if (is.null(asked[["m"]])) facts$rows else asked[["m"]]
  decide(facts, replace(asked, c("m", "neighbours"), list(m, 0L)), list(exact = FALSE, rho = Inf))
}

# ---- what is said of it ----------------------------------------------------------------------------------------------

# Why tol was not met, and what would do.
what_it_needs <- function(found, tol, m) {
  yard <- found$yard
  best <- found$best
  if (!found$within_reach) {
    certifies <- max(yard$floor) <= tol / 4
    says <- if (certifies) "The reference itself, of %d points, is certified to be within %s: " else
      "With %d points, the reference itself leaves %s open: "
    return(paste0(sprintf(says, yard$reference$m, show_percent(if (certifies) yard$own() else max(yard$floor))),
                  limit_text(yard, paste("more would differ by rounding only: `noise` is too small beside the signal,",
                                         "or `tol` too small."),
                             "; refine() certifies the mean at single rows to any accuracy")))
  }
  if (found$late) return("The search was ended by `max_seconds`.")
  if (found$top >= m) {
    more <- min(found$guide$m, ceiling(1.05 * best$m * (max(best$error) / tol)^(1 / found$guide$slope)))
    if (more > m) return(sprintf("`m` = %d is too few: about %d points would do.", m, as.integer(more)))
  }
  "More iterations (`maxit`), points started greedily, or a smaller `jitter` if one was given, may do."
}

# "certified 1.7 % at M = 184 (tight)", the larger of the two statistics, and what that means; NA for a fit without tol.
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
