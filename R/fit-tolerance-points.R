# The search for the fewest inducing points that meet a tolerance:
#
#   grow_reference()  a reference, doubled until what it leaves open is small beside tol
#   greedy_guide()    the error of the posteriors on its first m points, nothing optimised, over m
#   search_points()   greedy points, optimised until certified, at an m that the last candidates predict

# ---- are inducing points alone worth a search? ----------------------------------------------------------------------

# Returns the first points and, after each, the residual prior variance over the noise variance (rho).
first_look <- function(data, learned, few, state) {
  run_stage(state, "start", {
    chosen <- start_points(data, learned$model, few$m, few$inducing, few$run)
    left <- if (few$inducing == "greedy") chosen$t / chosen$looked
    list(z = chosen$z, t = left[length(left)], rho = vapply(left, function(t) {
      unexplained_share(data, learned, list(t = t))
    }, 0))
  }, otherwise = NULL)
}

# The exact variance of f at a row is at most its noise variance, and that of inducing points at least their residual
# prior variance: with rho above (1 - tol)^-2 they do not meet tol. A power law extrapolates rho to `most` points.
beyond_points <- function(rho, most, tol) {
  m <- length(rho)
  if (m < 20L) return(FALSE)
  slope <- log(rho[m %/% 2L] / rho[m]) / log(m / (m %/% 2L))
  isTRUE(rho[m] * (max(most, m) / m)^-slope > (1 - tol)^-2)
}

# Compares as many greedy points as are worth it, nothing optimised, with neighbours, whose sd is within about a percent
# of the exact one. Returns TRUE if their sd is off by more than 1.6 tol: optimising gains hardly more than that.
points_fall_short <- function(data, learned, look, s, worth, state) {
  if (is.null(look) || s$posterior$inducing != "greedy") return(FALSE)
  if (beyond_points(look$rho, worth, s$goal$tol)) return(TRUE)
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
    off(look$z) > most && off(choose_greedy(data$x, worth, model$kernel, s$run$memory)$z) > most
  }, otherwise = TRUE)
}

# ---- the reference --------------------------------------------------------------------------------------------------

make_yardstick <- function(model, data, reference, effort, q) {
  rows <- used_rows(data)
  yard <- yardstick(certificate_of(model, rows, effort, reference, test_points = 0), rows, data$sd_y, q)
  yard$own <- function() { # the larger statistic of the reference, were it the fit
    at <- latent_at(reference, data$x)
    max(yard$error(at$mean, sqrt(at$var)))
  }
  c(yard, list(reference = reference, effort = effort, m2 = reference$m, rows = length(rows$index)))
}

# Doubles the points until the reference leaves a quarter of tol open and would itself meet tol (kriging on neighbours
# leaves little open long before), or no more are possible; `limit` says why. All pairs of rows ("tight") are used if
# nothing else is left and they cost no more than a few references.
grow_reference <- function(model, data, goal, m, worth, deadline) {
  certifies <- function(yard) max(yard$floor) <= goal$tol / 4
  yard <- grow_until(nrow(data$x), m, worth, deadline, function(m2) {
    made <- reference(model, m2) # by the session's random numbers: not as an argument, which waits
    make_yardstick(model, data, made, "reference", goal$quantile)
  }, function(yard) certifies(yard) && yard$own() <= enough_of_tol * goal$tol)
  ended <- yard$limit %in% c("none", "time", "rounding")
  if (!ended && !certifies(yard) && nrow(data$x) <= 10 * yard$reference$m && worth == Inf) {
    tight <- c(make_yardstick(model, data, yard$reference, "tight", goal$quantile), limit = yard$limit)
    if (max(tight$floor) < 0.95 * max(yard$floor)) yard <- tight
  }
  yard
}

# Calls make(m2), whose value has a `reference`, with twice as many points until enough() returns TRUE or no more are
# possible with n rows. Returns the value with the `limit` that ended the growth.
grow_until <- function(n, m, worth, deadline, make, enough) {
  most <- most_reference_points(n)
  limit <- if (most < n) "memory" else "rows"
  if (16 * m < most) {
    most <- 16L * m
    limit <- "m"
  }
  if (max(256, 2 * worth) < most) {
    most <- as.integer(max(256, 2 * worth))
    limit <- "worth"
  }
  m2 <- min(128L, most)
  repeat {
    made <- make(m2)
    if (enough(made)) return(c(made, limit = "none"))
    if (made$reference$m < m2) return(c(made, limit = "rounding"))
    if (m2 == most) return(c(made, limit = limit))
    if (proc.time()[["elapsed"]] > deadline) return(c(made, limit = "time"))
    m2 <- min(2L * m2, most)
  }
}

# Returns a sentence for a reference that leaves too much open. `besides`: an addition for Matern kernels.
limit_text <- function(yard, otherwise, besides = "") {
  paste0(switch(yard$limit, memory = "options(pfdtc.max_memory) would have to allow more points.",
                m = "`m` would have to be larger (it has 16 times as many).",
                time = "`max_seconds` would have to be larger.", otherwise),
         if (is_rough(yard$reference$kernel)) sprintf(" A Matern kernel takes many points%s.", besides))
}

# If the reference is this near to tol, fits with fewer points can meet it.
enough_of_tol <- 0.9

# The pivoted Cholesky factor on min(n, 20 m2) rows and the m2 x m2 matrices take a quarter of the memory allowed:
# 8 m2 (min(n, 20 m2) + 8 m2) bytes.
most_reference_points <- function(n) {
  numbers <- getOption("pfdtc.max_memory", 2^32) / 4 / 8
  as.integer(max(1, min(n, floor(max((sqrt(n^2 + 32 * numbers) - n) / 16, sqrt(numbers / 28))))))
}

# Bisects the number of the reference's first points whose DTC posterior meets the goal.
# Returns list(m, slope): that number, and the slope of -log error in log m before it.
greedy_guide <- function(yard, data, goal) {
  ref <- yard$reference
  if (!(goal < 1)) return(list(m = min(200L, ref$m), slope = 4))
  model <- model_of(ref)
  error_at <- function(m) {
    z <- ref$inducing[seq_len(m), , drop = FALSE]
    p <- native_predict(first_points(ref$factors, m, model$noise), z, model, data$x)
    max(yard$error(ref$center + in_units(ref, p$mean), in_units(ref, sqrt(pmax(p$sor_variance + p$unexplained, 0)))))
  }
  low <- 0
  high <- ref$m
  m <- error <- numeric()
  while (high > max(low + 1, 1.05 * low)) {
    at <- max(low + 1, round(sqrt(max(low, 1) * high)))
    m <- c(m, at)
    error <- c(error, error_at(at))
    if (error[length(error)] <= goal) high <- at else low <- at
  }
  above <- which(m < high & error > goal & is.finite(error))
  near <- above[which.min(abs(log(error[above] / (8 * goal))))]
  slope <- if (length(near)) log(error[near] / goal) / log(high / m[near]) else 4
  list(m = as.integer(high), slope = min(max(slope, 0.5), 8))
}

# ---- the search -----------------------------------------------------------------------------------------------------

# Returns a fit on one point that has hyperparameters, data and units for references and certificates.
carrier_fit <- function(data, learned, plan, state) {
  plan <- replace(with_posterior(plan, m = 1L), "keep_data", TRUE)
  construct_fit(data, start_now(learned, data$x[1L, , drop = FALSE], plan$posterior$jitter), plan, state)
}

# `worth`: the number of points up to which a search is worth its time, Inf without an alternative.
search_points <- function(data, learned, plan, worth, state, deadline) {
  started <- proc.time()[["elapsed"]]
  late <- function() proc.time()[["elapsed"]] > deadline
  s <- plan$posterior
  tol <- plan$goal$tol
  model <- carrier_fit(data, learned, plan, state)
  yard <- run_stage(state, "reference", grow_reference(model, data, plan$goal, s$m, worth, deadline), otherwise = NULL)
  if (is.null(yard)) return(NULL)
  # if tol cannot be certified at all: as many points as come within a quarter of the reference, optimised once
  least <- yard$own()
  within_reach <- least <= enough_of_tol * tol
  guide <- run_stage(state, "start", greedy_guide(yard, data, if (within_reach) tol else 1.25 * least),
                     otherwise = NULL)
  if (is.null(guide) || worth < Inf && (!within_reach || guide$m > worth)) return(list(yard = yard))
  rows <- optimise_rows(data, s$rows, 4L * guide$m)
  top <- as.integer(min(s$m, nrow(data$x), 4L * guide$m, worth))
  candidates <- list()
  tell <- tell_candidates(plan$goal, started)
  m <- min(guide$m, top)
  while (!is.na(m) && length(candidates) < 10L) {
    one <- try_points(m, model, data, rows, learned, s, state, yard, tol, deadline,
                      last = m == top && worth == Inf || !within_reach)
    if (is.null(one)) break
    candidates <- c(candidates, list(one))
    tell(one)
    if (one$m < m) top <- one$m # more points would not differ
    if (!is.null(state$stopped) || late() || !within_reach) break
    m <- next_m(candidates, guide$slope, top, s$steps$maxit, tol)
  }
  best <- best_candidate(candidates)
  if (!is.null(best)) best$needs <- points_needed(best, yard, guide, within_reach, top, late(), tol)
  list(best = best, yard = yard, tried = candidates_frame(candidates))
}

# Returns a sentence about why tol was not met, and about settings that could meet it.
points_needed <- function(best, yard, guide, within_reach, top, late, tol) {
  if (!within_reach) {
    certifies <- max(yard$floor) <= tol / 4
    text <- if (certifies) "The reference itself, of %d points, is certified to be within %s: " else
      "With %d points, the reference itself leaves %s open: "
    return(paste0(sprintf(text, yard$reference$m, show_percent(if (certifies) yard$own() else max(yard$floor))),
                  limit_text(yard, paste("more would differ by rounding only: `noise` is too small beside the signal,",
                                         "or `tol` too small."),
                             "; refine() certifies the mean at single rows to any accuracy")))
  }
  if (late) return("The search was ended by `max_seconds`.")
  if (top >= best$m) {
    more <- min(guide$m, ceiling(1.05 * best$m * (max(best$error) / tol)^(1 / guide$slope)))
    if (more > best$m) return(sprintf("`m` = %d is too few: about %d points would do.", best$m, as.integer(more)))
  }
  "More iterations (`maxit`), points started greedily, or a smaller `jitter` if one was given, may do."
}

# Moves the points until tol is met. `last`: there is no larger m to try, so this one is not given up. Returns NULL if
# an interrupt came before the first certificate.
try_points <- function(m, model, data, rows, learned, s, state, yard, tol, deadline, last) {
  started <- proc.time()[["elapsed"]]
  z <- if (s$inducing_method == "greedy" && m <= yard$reference$m) yard$reference$inducing[seq_len(m), , drop = FALSE]
  if (is.null(z)) {
    z <- run_stage(state, "start", start_points(data, learned$model, m, s$inducing, s$run)$z, otherwise = NULL)
    if (is.null(z)) return(NULL)
  }
  now <- start_now(learned, z, s$jitter)
  watch <- new_watch(function(z, jitter) certified_error(model, data, z, jitter, yard), tol,
                     hopeful = if (last) Inf else s$steps$maxit, every = ceiling(5 * nrow(data$x) / nrow(rows$x)))
  look <- function() run_stage(state, "points", watch$look(now$z, now$jitter, now$value), otherwise = NULL)
  end <- look()
  if (is.null(end) && is.null(state$stopped)) {
    steps <- steps_left(s$steps, s$steps$maxit, max(0, deadline - proc.time()[["elapsed"]]))
    now <- optimise_points(rows, now, s, state, steps, sprintf("inducing points, m = %d", nrow(z)), watch,
                           yard$reference)
    if (!watch$ended && is.null(state$stopped)) look()
  } else {
    now[names(end)] <- end
  }
  best <- watch$best
  if (is.null(best)) return(NULL)
  now[c("z", "value", "jitter")] <- best[c("z", "value", "jitter")]
  list(m = nrow(z), neighbours = 0L, posterior = "far", done = now, error = best$error, met = max(best$error) <= tol,
       iterations = watch$iterations,
       done_with = if (watch$ended) watch$iterations else s$steps$maxit,
       seconds = proc.time()[["elapsed"]] - started)
}

# Checks the certificate every few iterations, less often if points are moved on some of the rows only. look() and
# after() return NULL to continue, or list(convergence, message).
#
# Errors fall about like iterations^(-1/2). A candidate far above what that reaches in `hopeful` iterations is given up.
new_watch <- function(error_of, tol, hopeful, every) {
  watch <- new.env(parent = emptyenv())
  watch$iterations <- 0L
  watch$ended <- FALSE
  watch$look <- function(z, jitter, value) {
    error <- error_of(z, jitter)
    if (is.null(watch$best) || max(error) < max(watch$best$error)) {
      watch$best <- list(z = z, jitter = jitter, value = value, error = error)
    }
    met <- max(error) <= tol
    k <- watch$iterations
    hopeless <- k >= 20L && max(watch$best$error) > 1.6 * sqrt(max(1, hopeful / k)) * tol
    watch$ended <- met || hopeless
    if (met) list(convergence = 0L, message = "certified to be as accurate as asked for")
    else if (hopeless) list(convergence = 1L, message = "given up: more points are needed")
  }
  watch$after <- function(z, jitter, value) {
    watch$iterations <- watch$iterations + 1L
    if (watch$iterations %% every == 0) watch$look(z, jitter, value)
  }
  watch
}

# Returns the two statistics of the fit on points z.
certified_error <- function(model, data, z, jitter, yard) {
  model$inducing <- z
  model$factors <- native_posterior(z, data, model_of(model), jitter, control = model$control)
  at <- latent_at(model, data$x)
  yard$error(at$mean, sqrt(at$var))
}

# Returns the next number of points to try, or NA. A candidate with error e after i iterations would reach about
# e sqrt(i / maxit), and log error falls by `slope` a unit of log m: this predicts the m that suffices. The next m is
# 8 % larger, because another fit would cost more.
next_m <- function(candidates, slope, top, maxit, tol) {
  m <- vapply(candidates, function(one) one$m, 1)
  met <- vapply(candidates, function(one) one$met, NA)
  ratio <- vapply(candidates, function(one) max(one$error) / tol / sqrt(max(1, maxit / max(one$done_with, 2))), 1)
  now <- length(m)
  if (now > 1L) {
    other <- order(abs(log(m[-now] / m[now])))[1L]
    seen <- -log(ratio[other] / ratio[now]) / log(m[other] / m[now])
    if (is.finite(seen)) slope <- min(max(seen, slope / 2), 2 * slope)
  }
  wanted <- ceiling(m[now] * min(max(1.08 * ratio[now]^(1 / slope), 0.55), 2))
  least <- min(m[met], Inf)
  failed <- max(m[!met & m < least], 0)
  if (!any(met)) {
    if (failed >= top) return(NA_integer_)
    return(as.integer(min(top, max(wanted, ceiling(1.05 * failed) + 1))))
  }
  wanted <- max(wanted, ceiling(1.05 * failed), 1)
  if (wanted > least / 1.08) {
    # a smaller m failed, so the smallest one that suffices lies between
    if (met[now] || least <= 1.2 * failed) return(NA_integer_)
    wanted <- round(sqrt(failed * least))
  }
  if (wanted > failed && wanted < least) as.integer(wanted) else NA_integer_
}
