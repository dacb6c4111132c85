# A named accuracy where inducing points alone would take too many: the exact posterior of up to 2,000 rows; of more,
# inducing points and a growing number of near rows, beside a reference whose mean passes over all pairs of rows correct
# until what they leave open is small beside tol.

# Points up to which a search among them is worth its time, where there is another way.
points_worth_it <- function(n) as.integer(min(n, max(50, min(1000, n %/% 4))))

# Near rows that are tried one after the other.
neighbours_tried <- c(40L, 80L, 160L)

# What else may meet tol: "exact", "near" or "none". An `m` that is given speaks of inducing points, as do a start or
# an auxiliary distribution that was asked for, and the paper's protocol; `neighbours` that are given, of near rows.
other_way <- function(facts, asked) {
  open <- facts$keep && leaves_points_open(asked)
  if (open && exact_is_affordable(facts)) return("exact")
  if (facts$n > 1L && (isTRUE(asked$neighbours > 0L) || open && is.null(asked$neighbours))) "near" else "none"
}

# Points to begin with, and what they leave of the prior variance beside the noise (rho).
first_look <- function(data, learned, few, state) {
  run_stage(state, "start", {
    chosen <- start_points(data, learned$model, few$m, few$inducing, few$run)
    left <- if (few$inducing == "greedy") chosen$t / chosen$looked
    list(z = chosen$z, t = left[length(left)], rho = vapply(left, function(t) {
      unexplained_share(data, learned, list(t = t))
    }, 0))
  }, otherwise = NULL)
}

# The exact variance of f at a row is no more than that of its noise, and that of inducing points no less than what they
# leave unexplained there: with rho above (1 - tol)^-2 they do not meet tol. `rho` of a few greedy points, over their
# number, tells as a power of it what more would leave.
beyond_points <- function(rho, most, tol) {
  m <- length(rho)
  if (m < 20L) return(FALSE)
  slope <- log(rho[m %/% 2L] / rho[m]) / log(m / (m %/% 2L))
  isTRUE(rho[m] * (max(most, m) / m)^-slope > (1 - tol)^-2)
}

# As many greedy points as are worth it, nothing optimised, beside far + near, whose sd is within a percent or so of the
# exact one: at some rows, is their sd off by more than 1.6 tol? Optimising gains hardly more than that.
points_fall_short <- function(data, learned, look, s, state) {
  if (is.null(look) || s$posterior$inducing != "greedy") return(FALSE)
  if (beyond_points(look$rho, s$goal$worth, s$goal$tol)) return(TRUE)
  n <- nrow(data$x)
  if (n <= 400L) return(FALSE) # a search is as quick
  run_stage(state, "start", {
    model <- learned$model
    x <- data$x[sort(sample.int(n, min(n, 500L))), , drop = FALSE]
    near <- near_posterior(data, look$z, model, default_neighbours, default_neighbours, control = s$run)
    p <- posterior_values(near_view(near, data, look$z, model, s$run), x)
    sd <- sqrt(p$var)
    off <- function(z) {
      p <- native_predict(native_posterior(z, data, model, 1e-12, control = s$run), z, model, x)
      reached_by(abs(1 - sd / sqrt(p$sor_variance + p$unexplained)), s$goal$quantile)
    }
    most <- 1.6 * s$goal$tol
    off(look$z) > most && off(choose_greedy(data$x, s$goal$worth, model$kernel, s$run$memory)$z) > most
  }, otherwise = TRUE)
}

# list(fit, error, met, yard, tried, needs): what the other way comes to, NULL where it ended before a certificate.
search_otherwise <- function(way, data, learned, z, s, state, deadline) {
  left <- function() deadline - proc.time()[["elapsed"]]
  run_stage(state, "certificate", if (way == "exact") {
    exactly(data, learned, s)
  } else {
    with_near_rows(data, learned, z, s, state, left)
  }, otherwise = state$otherwise)
}

# The fit, with the seconds and evaluations of all that was done for it.
finish_elsewhere <- function(fit, state) {
  fit[c("evaluations", "seconds")] <- list(state$evaluations, state$seconds)
  fit
}

# NULL where there is so little noise that the rows' matrix has no factor.
exactly <- function(data, learned, s) {
  started <- proc.time()[["elapsed"]]
  fit <- exact_if_possible(data, learned, s, no_state())
  if (is.null(fit)) return(NULL)
  rows <- used_rows(data)
  yard <- yardstick(certificate_of(fit, rows, "reference", NULL), rows, data$sd_y, s$goal$quantile)
  yard[c("effort", "m2", "rows")] <- list("exact", NA_integer_, length(rows$index))
  one <- otherwise_candidate(fit, yard, data$x, s$goal$tol, started)
  c(one, list(yard = yard, tried = otherwise_frame(list(one)),
              needs = "Rounding allows no more: `noise` is too small beside the signal, or `tol` too small."))
}

otherwise_candidate <- function(fit, yard, x, tol, started) {
  at <- latent_at(fit, x)
  error <- yard$error(at$mean, sqrt(at$var))
  list(fit = fit, m = fit$m, neighbours = fit$neighbours, posterior = fit$posterior, error = error,
       met = max(error) <= tol, iterations = 0L, seconds = proc.time()[["elapsed"]] - started)
}

# The number of near rows grows until tol is met; the best is kept as it comes, so that an interrupt leaves it.
with_near_rows <- function(data, learned, z, s, state, left) {
  data <- merge_all_equal_rows(data)
  rows <- some_rows(data)
  s$posterior$move <- FALSE
  s$posterior$m <- nrow(z)
  counts <- if (is.null(s$posterior$neighbours)) neighbours_tried else s$posterior$neighbours
  counts <- unique(pmin(counts, nrow(data$x)))
  tell <- tell_candidates(s$goal, proc.time()[["elapsed"]])
  candidates <- list()
  yard <- NULL
  for (count in counts) {
    started <- proc.time()[["elapsed"]]
    s$posterior$neighbours <- count
    fit <- construct_near(data, start_now(learned, z, s$posterior$jitter), s, no_state())
    if (is.null(yard)) yard <- near_yardstick(fit, data, rows, s$goal, left)
    one <- otherwise_candidate(fit, yard, rows$x, s$goal$tol, started)
    candidates <- c(candidates, list(one))
    tell(one)
    late <- left() <= 0
    errors <- vapply(candidates, function(one) max(one$error), 0)
    state$otherwise <- c(candidates[[which.min(errors)]], list(yard = yard, tried = otherwise_frame(candidates),
                                                               needs = near_needs(yard, s$goal$tol, count, late)))
    if (one$met || late || max(yard$floor) > s$goal$tol) break
  }
  state$otherwise
}

# Where the exact GP lies at some rows: by a reference, kriging on near rows, and as many passes over all pairs of rows
# as it takes for the mean to be known to a quarter of tol. What passes leave open is foreseen from a few rows; where
# that was not enough, there is a second time.
near_yardstick <- function(fit, data, rows, goal, left) {
  points <- reference_rows(data, model_of(fit)$kernel, min(4L * points_of_fit(fit), nrow(data$x)))
  reference <- dtc_on_points(fit, data, data$x[points, , drop = FALSE], NULL, fast = FALSE)
  least <- goal$tol * data$sd_y / 8
  for (again in c(FALSE, TRUE)) {
    correction <- exact_mean(reference, data, accuracy_at(reference, data, rows$x, least),
                             list(passes = 50L, left = left), solution_so_far(reference$correction))
    if (!is.null(correction)) reference$correction <- correction
    inside <- certificate_of(fit, rows, "reference", reference, test_points = 0, max_seconds = max(left(), 0))
    yard <- yardstick(inside, rows, data$sd_y, goal$quantile)
    open <- yard$floor[["mean"]]
    if (again || open <= goal$tol / 4 || left() <= 0) break
    least <- least * goal$tol / 8 / open
  }
  c(yard, list(reference = reference, effort = "reference", m2 = reference$m, rows = length(rows$index)))
}

# What would do where far + near did not.
near_needs <- function(yard, tol, neighbours, late) {
  open <- yard$floor
  if (max(open) > tol) {
    what <- if (open[["sd"]] > tol) "exact sd" else "exact mean"
    return(sprintf("The %s itself is known there only to %s%s; %s", what, show_percent(max(open)),
                   if (what == "exact mean") sprintf(" (after %d passes over all pairs of rows)",
                                                     passes_of(yard$reference$correction)) else "",
                   if (late) "`max_seconds` would have to be larger."
                   else "pfdtc_control(tol_quantile = 0.95) asks for it at 95 % of the rows."))
  }
  if (late) return("The search was ended by `max_seconds`.")
  sprintf("More near rows (`neighbours` above %d), or pfdtc_control(tol_quantile = 0.95), may do.", neighbours)
}

otherwise_frame <- function(candidates) {
  do.call(rbind, lapply(candidates, function(one) {
    data.frame(m = as.integer(one$m), iterations = 0L, mean = one$error[["mean"]], sd = one$error[["sd"]],
               met = one$met, seconds = one$seconds, posterior = one$posterior,
               neighbours = as.integer(one$neighbours))
  }))
}
