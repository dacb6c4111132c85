# Searches for the fewest inducing points whose certified error is at most `tol`:
#   grow_reference()  doubles the points of a reference, which certifies other posteriors, until its bounds are tight
#   search_first()    finds the smallest m for which the first m points of the reference meet tol, without moving them
#   search_points()   optimises the places of m points, for increasing m, until they meet tol

# Returns TRUE if `worth` inducing points alone are unlikely to meet tol. At a training row, the exact variance of f is
# at most the noise variance, and that by inducing points is at least the residual prior variance. So tol is missed if
# rho = residual prior variance / noise variance exceeds (1 - tol)^-2. A power law predicts rho for `worth` points from
# look$rho (1, 2, ... points). If rho is small enough, sds of f by greedy points are compared with sds by neighbours,
# which err by about 1 %. If the `tol_quantile` of relative differences exceeds 1.6 tol, moved points would fail too.
points_fall_short <- function(data, learned, look, plan, worth, state) {
  if (is.null(look) || plan$posterior$inducing != "greedy") return(FALSE)
  rho <- look$rho
  m <- length(rho)
  if (m >= 20L) {
    slope <- log(rho[m %/% 2L] / rho[m]) / log(m / (m %/% 2L))
    if (isTRUE(rho[m] * (max(worth, m) / m)^-slope > (1 - plan$goal$tol)^-2)) return(TRUE)
  }
  n <- nrow(data$x)
  if (n <= 400L) return(FALSE) # with so few rows, the search takes no longer than this check
  run_stage(state, "start", {
    model <- learned$model
    x <- data$x[sort(sample.int(n, min(n, 500L))), , drop = FALSE]
    sd <- sqrt(predict_near(look$z, model, data, data, x, default_neighbours, plan$run)$var)
    off <- function(z) {
      p <- native_predict(native_posterior(z, data, model, 1e-12, control = plan$run), z, model, x)
      reached_by(abs(1 - sd / sqrt(p$sor_variance + p$unexplained)), plan$goal$quantile)
    }
    most <- 1.6 * plan$goal$tol
    off(look$z) > most && off(choose_greedy(data$x, worth, model$kernel)$z) > most
  }, otherwise = TRUE)
}

# If the reference's own certified error is at most this share of the goal `tol`, it can certify fits with fewer points.
enough_of_tol <- 0.9

# Doubles the number m2 of points of a reference, from 128 on, until enough(yard) is TRUE. yard = make(m2) has bounds
# by this reference, see yardstick(). Returns `yard` with `limit`: "none", or what stopped the doubling (see `caps`).
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

# Returns the largest number m2 of points whose reference fits into a quarter of the memory allowed. The pivoted
# Cholesky factor on min(n, 20 m2) rows and the m2 x m2 matrices take 8 m2 (min(n, 20 m2) + 8 m2) bytes.
most_reference_points <- function(n) {
  numbers <- getOption("pfdtc.max_memory", 2^32) / 4 / 8
  as.integer(max(1, min(n, floor(max((sqrt(n^2 + 32 * numbers) - n) / 16, sqrt(numbers / 28))))))
}

# Returns a yardstick(), which has bounds on the exact GP by a reference. Doubles the reference's points until it can
# certify errors of tol / 4, and its own error is at most enough_of_tol * tol. If a size limit prevents tol / 4 and
# `worth` is Inf (neighbours are no alternative), tries effort "tight", unless there are over ten rows for each point.
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
    made <- reference(fit, m2) # draws random numbers before certificate_of() does
    by(made, "reference")
  }, function(yard) certifies(yard) && max(yard$error_of(yard$reference, data$x)) <= enough_of_tol * goal$tol)
  ended <- yard$limit %in% c("none", "time", "rounding")
  if (!ended && !certifies(yard) && nrow(data$x) <= 10 * yard$reference$m && worth == Inf) {
    tight <- c(by(yard$reference, "tight"), limit = yard$limit)
    if (max(tight$floor) < 0.95 * max(yard$floor)) yard <- tight
  }
  yard
}

# Finds, to within 5 %, the smallest m for which the first m points of the reference have an error of at most `goal`;
# all its points together must have at most this error. at(m) returns list(mean, sd) of f by the first m points. Returns
# list(m, tried, slope): this m, all candidates, and an estimate of -d log(error) / d log(m).
search_first <- function(yard, goal, tol, at) {
  top <- yard$reference$m
  tried <- list()
  m <- as.integer(ceiling(top / 4))
  while (!is.null(m) && m < top) {
    started <- proc.time()[["elapsed"]]
    tried <- c(tried, list(new_candidate(m, do.call(yard$error, at(m)), tol, started)))
    m <- next_m(tried, 4, top, goal, cheap = TRUE)
  }
  m <- vapply(tried, `[[`, 1L, "m")
  error <- vapply(tried, `[[`, 1, "expected")
  found <- min(m[error <= goal], top)
  above <- which(m < found & error > goal & is.finite(error))
  near <- above[which.min(abs(log(error[above] / (8 * goal))))]
  slope <- if (length(near)) log(error[near] / goal) / log(found / m[near]) else 4
  list(m = as.integer(found), tried = tried, slope = min(max(slope, 0.5), 8))
}

# Returns the next number of points to try, at most `top`, or NULL if the search ends. `slope` = -d log(error) / d
# log(m) predicts the m that meets `goal`; 8 % are added to this m, because a further fit would cost more. If fits are
# `cheap`, the smallest m is found to within 5 %, and `top` points are known to meet `goal`.
next_m <- function(tried, slope, top, goal, cheap = FALSE) {
  m <- vapply(tried, `[[`, 1L, "m")
  met <- vapply(tried, function(one) max(one$error), 1) <= goal
  ratio <- vapply(tried, `[[`, 1, "expected") / goal
  now <- length(m)
  if (now > 1L) {
    other <- order(abs(log(m[-now] / m[now])))[1L]
    seen <- -log(ratio[other] / ratio[now]) / log(m[other] / m[now])
    if (is.finite(seen)) slope <- min(max(seen, slope / 2), 2 * slope)
  }
  least <- min(m[met], if (cheap) top else Inf)
  failed <- max(m[!met & m < least], 0)
  enough <- if (cheap) max(failed + 1, 1.05 * failed) else 1.2 * failed
  wanted <- ceiling(m[now] * min(max(1.08 * ratio[now]^(1 / slope), 0.55), 2))
  wanted <- max(wanted, ceiling(1.05 * failed), failed + 1)
  if (is.infinite(least)) return(if (failed < top) as.integer(min(top, wanted)))
  if (cheap && least <= enough) return(NULL)
  if (wanted > least / 1.08) {
    # The smallest sufficient m is between the largest that failed and the smallest that met `goal`.
    if (!cheap && (met[now] || least <= enough)) return(NULL)
    wanted <- round(sqrt(max(failed, 1) * least))
  }
  if (wanted > failed && wanted < least) as.integer(wanted)
}

# Searches for the fewest inducing points whose certified error is at most tol after optimising their places. With over
# `worth` points, a posterior with neighbours would be faster (Inf: never). Sets job$best and job$candidates.
search_points <- function(job, worth) {
  data <- job$data
  plan <- job$plan
  state <- job$state
  s <- plan$posterior
  tol <- job$goal$tol
  # References and certificates use hyperparameters, data and units of a fit, so make a fit with one inducing point.
  carrier <- construct_fit(data, start_now(job$learned, data$x[1L, , drop = FALSE], s$jitter),
                           replace(with_posterior(plan, m = 1L), "keep_data", TRUE), state)
  yard <- run_stage(state, "reference", points_yardstick(job, carrier, worth), otherwise = NULL)
  if (is.null(yard)) return(invisible())
  job$yard <- yard
  least <- max(yard$error_of(yard$reference, data$x))
  within_reach <- least <= enough_of_tol * tol
  # If tol cannot be certified, search_first() aims at 1.25 times the reference's error instead.
  goal <- if (within_reach) tol else 1.25 * least
  ref <- yard$reference
  guide <- run_stage(state, "start", if (goal < 1) search_first(yard, goal, tol, function(m) {
    z <- ref$inducing[seq_len(m), , drop = FALSE]
    model <- model_of(ref)
    p <- native_predict(first_points(ref$factors, m, model$noise), z, model, data$x)
    list(ref$center + in_units(ref, p$mean), in_units(ref, sqrt(pmax(p$sor_variance + p$unexplained, 0))))
  }) else list(m = min(200L, ref$m), slope = 4), otherwise = NULL)
  if (is.null(guide) || worth < Inf && (!within_reach || guide$m > worth)) return(invisible())
  rows <- optimise_rows(data, s$rows, 4L * guide$m)
  top <- as.integer(min(s$m, nrow(data$x), 4L * guide$m, worth))
  try_settings(job, min(guide$m, top), function(m) {
    one <- try_points(job, m, carrier, rows, last = m == top && worth == Inf || !within_reach)
    if (isTRUE(one$m < m)) top <<- one$m # more points would change nothing
    one
  }, function(tried) {
    if (within_reach && length(tried) < 10L) next_m(tried, guide$slope, top, tol)
  }, function(best, tried) {
    out <- if (!within_reach) if (max(yard$floor) <= tol / 4) least else max(yard$floor)
    more <- min(guide$m, ceiling(1.05 * best$m * (max(best$error) / tol)^(1 / guide$slope)))
    tolerance_advice(yard, out, job$late(), if (top >= best$m && more > best$m) too_few(best$m, more) else
      "Increase `maxit`, use `inducing = \"greedy\"`, or give a smaller `jitter` if you gave one.")
  })
}

too_few <- function(m, more) sprintf("Increase `m` from %d: about %d points would meet `tol`.", m, as.integer(more))

# Moves m inducing points to minimise the objective on `rows`, until tol is met. Returns a new_candidate() with the best
# points and `expected`, the predicted error after all iterations; NULL after an interrupt. At the start, at the end and
# every 5 n / nrow(rows$x) iterations, certifies the error at all rows with the points in `carrier`, a fit of the same
# model. Errors decrease like iterations^-0.5. If this is too slow, the search ends, unless m is the largest (`last`).
try_points <- function(job, m, carrier, rows, last) {
  started <- proc.time()[["elapsed"]]
  data <- job$data
  state <- job$state
  s <- job$plan$posterior
  tol <- job$goal$tol
  maxit <- s$steps$maxit
  reference <- job$yard$reference
  z <- if (s$inducing_method == "greedy" && m <= reference$m) reference$inducing[seq_len(m), , drop = FALSE] else
    run_stage(state, "start", start_points(data, job$learned$model, m, s$inducing, s$run)$z, otherwise = NULL)
  if (is.null(z)) return(NULL)
  now <- start_now(job$learned, z, s$jitter)
  every <- ceiling(5 * nrow(data$x) / nrow(rows$x))
  watch <- list2env(list(ended = FALSE), parent = emptyenv())
  k <- 0L
  best <- NULL
  look <- function(z, jitter, value) {
    carrier$inducing <- z
    carrier$factors <- native_posterior(z, data, model_of(carrier), jitter, control = carrier$control)
    error <- job$yard$error_of(carrier, data$x)
    if (is.null(best) || max(error) < max(best$error)) {
      best <<- list(z = z, jitter = jitter, value = value, error = error)
    }
    met <- max(error) <= tol
    watch$ended <- met || !last && k >= 20L && max(best$error) > 1.6 * sqrt(max(1, maxit / k)) * tol
    if (watch$ended) list(convergence = 1L - met, message = if (met) "reached the accuracy `tol`" else
      "stopped: `tol` needs more inducing points")
  }
  watch$after <- function(z, jitter, value) {
    k <<- k + 1L
    if (k %% every == 0) look(z, jitter, value)
  }
  look_now <- function() run_stage(state, "points", look(now$z, now$jitter, now$value), otherwise = NULL)
  end <- look_now()
  now[names(end)] <- end
  if (is.null(end) && is.null(state$stopped)) {
    now <- optimise_points(rows, now, s, state, s$steps, sprintf("inducing points, m = %d", nrow(z)), watch, reference)
    if (!watch$ended && is.null(state$stopped)) look_now()
  }
  if (is.null(best)) return(NULL)
  share <- maxit / max(if (watch$ended) k else maxit, 2)
  new_candidate(nrow(z), best$error, tol, started, iterations = k, expected = max(best$error) / sqrt(max(1, share)),
                done = replace(now, c("z", "value", "jitter"), best[c("z", "value", "jitter")]))
}

# Returns the q-quantile of v: the smallest of its values such that at least a share q of the values is not larger.
reached_by <- function(v, q) stats::quantile(replace(v, is.na(v), Inf), q, names = FALSE, type = 1)

# Returns a yardstick, a list to compute the two errors that `tol` limits: the q-quantiles over training rows of the
# errors of mean and sd. `interval` has bounds on mean and sd of the exact GP at these rows, in units of y. Errors of
# the mean are divided by `unit`, or by the posterior's sd if `unit` is NULL.
#   error(mean, sd)  the two quantiles for a posterior with this mean and sd of f
#   error_of(fit, x, center)  both quantiles for a fit; x are the distinct rows, `center` is subtracted from its mean
#   floor            both quantiles for the middle of the bounds; given `unit`, no posterior can have smaller errors
#   reference, effort, m2, rows  how the bounds were computed; `rows` is the number of training inputs
yardstick <- function(interval, rows, unit, q, reference = NULL, effort = "reference", n = length(rows$index)) {
  lower <- interval$sd_lower
  upper <- interval$sd_upper
  share <- function(error, sd) reached_by(if (is.null(unit)) error / sd else error / unit, q)
  error <- function(mean, sd) {
    i <- rows$index
    mean <- mean[i] + rows$offset
    rounding <- 1 + 8 * .Machine$double.eps
    c(mean = rounding * share(pmax(mean - interval$mean_lower, interval$mean_upper - mean), sd[i]),
      sd = reached_by(pmax(1 - lower / sd[i], upper / sd[i] - 1), q) + rounding - 1)
  }
  list(floor = c(mean = share((interval$mean_upper - interval$mean_lower) / 2, (upper + lower) / 2),
              sd = reached_by((upper - lower) / (upper + lower), q)),
    error = error, error_of = function(fit, x, center = 0) {
      at <- latent_at(at_mode(fit), x)
      error(at$mean - center, sqrt(at$var))
    }, reference = reference, effort = effort, m2 = reference$m %||% NA_integer_, rows = n)
}

# Returns a candidate of a search: a list of its settings, its certified `error` c(mean, sd), and the elements `...`.
new_candidate <- function(m, error, tol, started, neighbours = 0L, posterior = "far", iterations = 0L,
                          expected = max(error), ...) {
  list(m = as.integer(m), iterations = as.integer(iterations), mean = error[["mean"]], sd = error[["sd"]],
       met = max(error) <= tol, seconds = proc.time()[["elapsed"]] - started, posterior = posterior,
       neighbours = as.integer(neighbours), error = error, expected = expected, ...)
}

# Sends the progress message `text` unless the last message, at time `since`, is younger than `after` seconds or the
# control suppresses it (`quiet`, `progress`). Returns the time of the last message.
tell_progress <- function(control, since, text, after = 5) {
  now <- proc.time()[["elapsed"]]
  if (now - since < after || !isFALSE(control$quiet) || control$progress) return(invisible(since))
  tell_classed("progress", text)
  invisible(now)
}

# Tries settings: numbers of inducing points or of neighbours. try(setting) returns a candidate, following(tried) the
# next setting; NULL from either ends the search. advice(best, tried) returns a sentence in case no candidate meets tol.
# job$best becomes the candidate with the fewest inducing points that meets tol or, if none does, with the least error.
try_settings <- function(job, setting, try, following, advice) {
  tried <- list()
  while (!is.null(setting)) {
    one <- try(setting)
    if (is.null(one)) break
    tell_progress(job$control, job$started, sprintf(
      "tol = %s: %d inducing points%s have certified errors of %s of sd(y) in the mean, %s in the sd (%.0f s)",
      show_asked(job$goal$tol), one$m, and_neighbours(one$neighbours), show_percent(one$mean), show_percent(one$sd),
      proc.time()[["elapsed"]] - job$started))
    tried <- c(tried, list(one))
    setting <- if (is.null(job$state$stopped) && !job$late()) following(tried)
  }
  if (!length(tried)) return(invisible())
  best <- function(candidates) {
    worth <- vapply(candidates, function(one) if (one$met) one$m else max(one$error), 1)
    candidates[[order(!vapply(candidates, `[[`, NA, "met"), worth)[1L]]]
  }
  job$candidates <- c(job$candidates, lapply(tried, c, list(yard = job$yard, needs = advice(best(tried), tried))))
  job$best <- best(job$candidates)
}

show_asked <- function(tol) paste(format(100 * tol), "%")

# Returns a share as a percentage with two digits, rounded up. The factor keeps rounding errors from raising a digit.
show_percent <- function(v) paste(show_bound(100 * (1 - 1e-12) * v, 2), "%")

# Returns a sentence on why tol was not met and what could help: time, better bounds, or `suggestion`. `least` is the
# smallest error that the bounds could certify, or NULL if that is at most tol. `limit` names what keeps bounds wide.
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
         if (has_profile(yard$reference$kernel, rough_profiles))
           " A rough kernel, such as Matern 1/2 or 3/2, needs many points.",
         if (response_of(yard$reference)$conjugate) " refine() certifies the mean at single rows to any accuracy.")
}

# Returns a text on the certified error of a fit with `tol`, the larger of the errors of mean and sd; NA without `tol`.
describe_tolerance <- function(fit) {
  tol <- fit$tol
  if (is.null(tol)) return(NA_character_)
  if (is.na(tol$mean)) return(sprintf("not certified (`tol` is %s)", show_asked(tol$asked)))
  words <- tolerance_words(fit)
  sprintf("error at most %s %s; this %s `tol` = %s: %s", words[1L], words[2L], if (tol$met) "meets" else "misses",
          show_asked(tol$asked), words[3L])
}

# Returns three texts about a fit with `tol`: the larger error, what certified it, and both errors.
tolerance_words <- function(fit) {
  tol <- fit$tol
  by <- if (fit$posterior == "exact") "with the exact posterior, rounding included" else
    sprintf("with %s%s (certificate of effort \"%s\")", count_of(fit$m, "inducing point"),
            and_neighbours(if (fit$posterior == "far + near") fit$neighbours else 0L), tol$effort)
  of <- if (response_of(fit)$conjugate) c("mean", "sd(y)") else c("mode", "the sd of f")
  some <- tol$rows < fit$nobs
  c(show_percent(max(tol$mean, tol$sd)), by, sprintf(
    "at %s%straining rows the exact %s differs from the fit's by at most %s of %s, and the exact sd by %s of the fit's",
    if (tol$quantile < 1) sprintf("%s %% of ", format(100 * tol$quantile)) else if (some) "" else "all ",
    if (some) sprintf("%d random ", tol$rows) else "", of[1L], show_percent(tol$mean), of[2L], show_percent(tol$sd)))
}

and_neighbours <- function(n) if (n > 0L) sprintf(" and %d nearest neighbours", n) else ""
