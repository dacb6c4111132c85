# The search for the fewest inducing points that meet a tolerance:
#
#   grow_reference()  doubles the points of a reference until its certified error is small beside tol
#   bisect_points()   finds the smallest m for which the first m points of the reference meet tol, without moving them
#   search_points()   moves greedy points until certified; earlier candidates predict how many points are needed

# ---- are inducing points alone worth a search? ----------------------------------------------------------------------

# Returns the first greedy points. Each comes with rho, the residual prior variance after its inclusion divided by the
# noise variance.
first_look <- function(data, learned, few, state) {
  run_stage(state, "start", {
    chosen <- start_points(data, learned$model, few$m, few$inducing, few$run)
    left <- if (few$inducing == "greedy") chosen$t / chosen$looked
    list(z = chosen$z, rho = unexplained_share(data, learned, list(t = left)))
  }, otherwise = NULL)
}

# Returns TRUE if no search among these points can meet tol. The exact variance of f at a row is at most its noise
# variance, and the variance by inducing points is at least their residual prior variance. So points with rho above (1 -
# tol)^-2 do not meet tol. A power law extrapolates rho.
beyond_points <- function(rho, most, tol) {
  m <- length(rho)
  if (m < 20L) return(FALSE)
  slope <- log(rho[m %/% 2L] / rho[m]) / log(m / (m %/% 2L))
  isTRUE(rho[m] * (max(most, m) / m)^-slope > (1 - tol)^-2)
}

# Returns TRUE if inducing points alone are unlikely to meet tol. It compares `worth` greedy points, not moved, with
# neighbours, whose sd is within about a percent of the exact sd. If an sd is off by more than 1.6 tol, moved points
# hardly correct it.
points_fall_short <- function(data, learned, look, plan, worth, state) {
  if (is.null(look) || plan$posterior$inducing != "greedy") return(FALSE)
  if (beyond_points(look$rho, worth, plan$goal$tol)) return(TRUE)
  n <- nrow(data$x)
  if (n <= 400L) return(FALSE) # a search is as quick
  run_stage(state, "start", {
    model <- learned$model
    x <- data$x[sort(sample.int(n, min(n, 500L))), , drop = FALSE]
    near <- near_posterior(data, look$z, model, default_neighbours, default_neighbours, control = plan$run)
    p <- posterior_values(near_view(near, data, look$z, model, plan$run), x)
    sd <- sqrt(p$var)
    off <- function(z) {
      p <- native_predict(native_posterior(z, data, model, 1e-12, control = plan$run), z, model, x)
      reached_by(abs(1 - sd / sqrt(p$sor_variance + p$unexplained)), plan$goal$quantile)
    }
    most <- 1.6 * plan$goal$tol
    off(look$z) > most && off(choose_greedy(data$x, worth, model$kernel, plan$run$memory)$z) > most
  }, otherwise = TRUE)
}

# ---- the reference --------------------------------------------------------------------------------------------------

# The certified error of the reference, as a share of tol, up to which fits with fewer points can meet tol.
enough_of_tol <- 0.9

# Returns the yardstick make(m2) with the smallest m2 for which enough() is TRUE, doubling m2 from 128, and the `limit`
# that ended the growth. A search among at most `worth` points needs no larger reference.
grow_reference <- function(n, m, worth, late, make, enough) {
  caps <- c(rows = n, memory = most_reference_points(n), m = 16 * m, worth = max(256, 2 * worth))
  most <- as.integer(min(caps))
  m2 <- min(128L, most)
  repeat {
    yard <- make(m2)
    limit <- if (enough(yard)) "none" else if (yard$reference$m < m2) "rounding" else
      if (m2 == most) names(which.min(caps)) else if (late()) "time"
    if (!is.null(limit)) return(c(yard, limit = limit))
    m2 <- min(2L * m2, most)
  }
}

# Returns the largest number of points m2 for a quarter of the memory allowed. The pivoted Cholesky factor on min(n, 20
# m2) rows and the m2 x m2 matrices take 8 m2 (min(n, 20 m2) + 8 m2) bytes.
most_reference_points <- function(n) {
  numbers <- getOption("pfdtc.max_memory", 2^32) / 4 / 8
  as.integer(max(1, min(n, floor(max((sqrt(n^2 + 32 * numbers) - n) / 16, sqrt(numbers / 28))))))
}

# Returns a yardstick with a reference that, if possible, leaves a quarter of tol open and would itself meet tol.
# Kriging on neighbours needs far fewer points for that. All pairs of rows ("tight") are used last, if they cost no more
# than a few references.
points_yardstick <- function(job, fit, worth) {
  data <- job$data
  rows <- used_rows(data)
  goal <- job$goal
  by <- function(reference, effort) {
    inside <- certificate_of(fit, rows, effort, reference, test_points = 0)
    yardstick(inside, rows, data$sd_y, goal$quantile, reference, effort)
  }
  certifies <- function(yard) max(yard$floor) <= goal$tol / 4
  yard <- grow_reference(nrow(data$x), job$plan$posterior$m, worth, job$late, function(m2) {
    made <- reference(fit, m2) # evaluated here and not as an argument, because it uses random numbers
    by(made, "reference")
  }, function(yard) certifies(yard) && own_error(yard, data) <= enough_of_tol * goal$tol)
  ended <- yard$limit %in% c("none", "time", "rounding")
  if (!ended && !certifies(yard) && nrow(data$x) <= 10 * yard$reference$m && worth == Inf) {
    tight <- c(by(yard$reference, "tight"), limit = yard$limit)
    if (max(tight$floor) < 0.95 * max(yard$floor)) yard <- tight
  }
  yard
}

# Returns the larger of the two statistics for the reference itself, as if it were the fit.
own_error <- function(yard, data) {
  at <- latent_at(yard$reference, data$x)
  max(yard$error(at$mean, sqrt(at$var)))
}

# Bisects m, the number of first points of the reference. Returns the smallest m with error_at(m) of at most `goal`, and
# all candidates that were tried.
bisect_points <- function(most, goal, tol, error_at) {
  low <- 0L
  high <- most
  tried <- list()
  while (high > max(low + 1, 1.05 * low)) {
    started <- proc.time()[["elapsed"]]
    m <- as.integer(max(low + 1, round(sqrt(max(low, 1) * high))))
    one <- new_candidate(m, error_at(m), tol, started)
    tried <- c(tried, list(one))
    if (max(one$error) <= goal) high <- m else low <- m
  }
  list(m = as.integer(high), tried = tried)
}

# Returns list(m, slope): the smallest m for which the DTC posterior on the first m points of the reference meets the
# goal, and the slope of -log error in log m below that m.
greedy_guide <- function(yard, data, goal) {
  ref <- yard$reference
  if (!(goal < 1)) return(list(m = min(200L, ref$m), slope = 4))
  model <- model_of(ref)
  found <- bisect_points(ref$m, goal, goal, function(m) {
    z <- ref$inducing[seq_len(m), , drop = FALSE]
    p <- native_predict(first_points(ref$factors, m, model$noise), z, model, data$x)
    yard$error(ref$center + in_units(ref, p$mean), in_units(ref, sqrt(pmax(p$sor_variance + p$unexplained, 0))))
  })
  m <- vapply(found$tried, function(one) one$m, 1L)
  error <- vapply(found$tried, function(one) max(one$error), 1)
  above <- which(m < found$m & error > goal & is.finite(error))
  near <- above[which.min(abs(log(error[above] / (8 * goal))))]
  slope <- if (length(near)) log(error[near] / goal) / log(found$m / m[near]) else 4
  list(m = found$m, slope = min(max(slope, 0.5), 8))
}

# ---- the search -----------------------------------------------------------------------------------------------------

# Searches for the fewest moved points that meet tol. `worth` is the largest number of points that is worth the time,
# Inf without an alternative.
search_points <- function(job, worth) {
  data <- job$data
  plan <- job$plan
  state <- job$state
  s <- plan$posterior
  tol <- job$goal$tol
  # references and certificates take hyperparameters, data and units from a fit: here from a fit on one point
  carrier <- construct_fit(data, start_now(job$learned, data$x[1L, , drop = FALSE], s$jitter),
                           replace(with_posterior(plan, m = 1L), "keep_data", TRUE), state)
  yard <- run_stage(state, "reference", points_yardstick(job, carrier, worth), otherwise = NULL)
  if (is.null(yard)) return(invisible())
  job$yard <- yard
  least <- own_error(yard, data)
  within_reach <- least <= enough_of_tol * tol
  # if tol is out of reach, one candidate is optimised whose error is within a quarter of the reference's
  guide <- run_stage(state, "start", greedy_guide(yard, data, if (within_reach) tol else 1.25 * least),
                     otherwise = NULL)
  if (is.null(guide) || worth < Inf && (!within_reach || guide$m > worth)) return(invisible())
  rows <- optimise_rows(data, s$rows, 4L * guide$m)
  top <- as.integer(min(s$m, nrow(data$x), 4L * guide$m, worth))
  try_settings(job, min(guide$m, top), function(m) {
    one <- try_points(job, m, carrier, rows, last = m == top && worth == Inf || !within_reach)
    if (isTRUE(one$m < m)) top <<- one$m # more points would give the same fit
    one
  }, function(tried) {
    if (within_reach && length(tried) < 10L) next_m(tried, guide$slope, top, s$steps$maxit, tol)
  }, function(best, tried) {
    out <- if (!within_reach) if (max(yard$floor) <= tol / 4) least else max(yard$floor)
    more <- min(guide$m, ceiling(1.05 * best$m * (max(best$error) / tol)^(1 / guide$slope)))
    tolerance_advice(yard, out, job$late(), if (top >= best$m && more > best$m) too_few(best$m, more) else
      "Increase `maxit`, use `inducing = \"greedy\"`, or give a smaller `jitter` if you gave one.")
  })
}

too_few <- function(m, more) sprintf("Increase `m` from %d: about %d points would do.", m, as.integer(more))

# Moves m points until tol is met. `last`: no larger m is left to try, so the search is not given up early. Returns NULL
# after an interrupt before the first certificate.
try_points <- function(job, m, carrier, rows, last) {
  started <- proc.time()[["elapsed"]]
  data <- job$data
  state <- job$state
  s <- job$plan$posterior
  reference <- job$yard$reference
  z <- if (s$inducing_method == "greedy" && m <= reference$m) reference$inducing[seq_len(m), , drop = FALSE] else
    run_stage(state, "start", start_points(data, job$learned$model, m, s$inducing, s$run)$z, otherwise = NULL)
  if (is.null(z)) return(NULL)
  now <- start_now(job$learned, z, s$jitter)
  error_of <- function(z, jitter) {
    carrier$inducing <- z
    carrier$factors <- native_posterior(z, data, model_of(carrier), jitter, control = carrier$control)
    at <- latent_at(carrier, data$x)
    job$yard$error(at$mean, sqrt(at$var))
  }
  watch <- new_watch(error_of, job$goal$tol, hopeful = if (last) Inf else s$steps$maxit,
                     every = ceiling(5 * nrow(data$x) / nrow(rows$x)))
  look <- function() run_stage(state, "points", watch$look(now$z, now$jitter, now$value), otherwise = NULL)
  end <- look()
  if (is.null(end) && is.null(state$stopped)) {
    now <- optimise_points(rows, now, s, state, steps_left(s$steps, s$steps$maxit, max(0, job$left())),
                           sprintf("inducing points, m = %d", nrow(z)), watch, reference)
    if (!watch$ended && is.null(state$stopped)) look()
  } else {
    now[names(end)] <- end
  }
  best <- watch$best
  if (is.null(best)) return(NULL)
  now[c("z", "value", "jitter")] <- best[c("z", "value", "jitter")]
  new_candidate(nrow(z), best$error, job$goal$tol, started, iterations = watch$iterations, done = now,
                done_with = if (watch$ended) watch$iterations else s$steps$maxit)
}

# Returns a watch, which computes the certificate every few iterations, less often if points are moved on a part of the
# rows. look() and after() return NULL to continue, or list(convergence, message).
#
# Errors fall about like iterations^(-1/2). A candidate is given up if its error is far above what that rate allows in
# `hopeful` iterations.
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
    if (met) list(convergence = 0L, message = "reached the accuracy `tol`")
    else if (hopeless) list(convergence = 1L, message = "given up: more points are needed")
  }
  watch$after <- function(z, jitter, value) {
    watch$iterations <- watch$iterations + 1L
    if (watch$iterations %% every == 0) watch$look(z, jitter, value)
  }
  watch
}

# Returns the next number of points to try, or NULL. A candidate with error e after i iterations would reach about e
# sqrt(i / maxit), and log error falls by `slope` per unit of log m. Both predict the m that suffices. The next m is 8 %
# larger, because another fit would cost more.
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
  if (!any(met)) return(if (failed < top) as.integer(min(top, max(wanted, ceiling(1.05 * failed) + 1))))
  wanted <- max(wanted, ceiling(1.05 * failed), 1)
  if (wanted > least / 1.08) {
    # a smaller m failed, so the smallest m that suffices lies between the two
    if (met[now] || least <= 1.2 * failed) return(NULL)
    wanted <- round(sqrt(failed * least))
  }
  if (wanted > failed && wanted < least) as.integer(wanted)
}
