# The search for the fewest inducing points that meet a tolerance.

make_yardstick <- function(model, data, reference, effort, q) {
  rows <- used_rows(data)
  yard <- yardstick(certificate_of(model, rows, effort, reference, test_points = 0), rows, data$sd_y, q)
  yard$own <- function() { # the larger statistic of the reference, were it the fit
    at <- latent_at(reference, data$x)
    max(yard$error(at$mean, sqrt(at$var)))
  }
  c(yard, list(reference = reference, effort = effort, m2 = reference$m, rows = length(rows$index)))
}

# Points are doubled until what the reference leaves open is a quarter of tol and the reference, were it the fit, would
# do (kriging on near rows leaves little open long before), or there are no more: `limit` says why it ended. All pairs
# of rows ("tight") where nothing else is left and they cost no more than a few references.
grow_reference <- function(model, data, goal, m, deadline) {
  certifies <- function(yard) max(yard$floor) <= goal$tol / 4
  yard <- grow_until(nrow(data$x), m, goal$worth, deadline, function(m2) {
    made <- reference(model, m2) # by the session's random numbers: not as an argument, which waits
    make_yardstick(model, data, made, "reference", goal$quantile)
  }, function(yard) certifies(yard) && yard$own() <= enough_of_tol * goal$tol)
  ended <- yard$limit %in% c("none", "time", "rounding")
  if (!ended && !certifies(yard) && nrow(data$x) <= 10 * yard$reference$m && goal$worth == Inf) {
    tight <- c(make_yardstick(model, data, yard$reference, "tight", goal$quantile), limit = yard$limit)
    if (max(tight$floor) < 0.95 * max(yard$floor)) yard <- tight
  }
  yard
}

# make(m2), with a `reference` in it, of twice as many points until it is enough(), or there are no more to be had of n
# rows: with the `limit` that ended it.
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

# What would do where a reference leaves too much open; `besides`: what a Matern kernel leaves to be done.
limit_text <- function(yard, otherwise, besides = "") {
  paste0(switch(yard$limit, memory = "options(pfdtc.max_memory) would have to allow more points.",
                m = "`m` would have to be larger (it has 16 times as many).",
                time = "`max_seconds` would have to be larger.", otherwise),
         if (is_rough(yard$reference$kernel)) sprintf(" A Matern kernel takes many points%s.", besides))
}

# A fit this near to tol has fewer points to be found.
enough_of_tol <- 0.9

# So many that the pivoted Cholesky factor on min(n, 20 m2) rows and the reference's own m2 x m2 matrices take a
# quarter of the memory allowed:  8 m2 (min(n, 20 m2) + 8 m2) bytes.
most_reference_points <- function(n) {
  numbers <- getOption("pfdtc.max_memory", 2^32) / 4 / 8
  as.integer(max(1, min(n, floor(max((sqrt(n^2 + 32 * numbers) - n) / 16, sqrt(numbers / 28))))))
}

# The larger of the two statistics of the DTC posterior on the reference's first m points, over m:
# list(m, slope): the smallest m that meets the goal by bisection, and by how much log error falls with log m before it.
# The default number of points where what can be certified says nothing.
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

# list(yard, guide, best, tried, ...): best is the smallest candidate that met tol, else the one nearest to it.
search_points <- function(data, learned, s, state) {
  started <- proc.time()[["elapsed"]]
  deadline <- started + s$posterior$steps$max_seconds
  # hyperparameters, data and units, for references and certificates
  one <- s
  one$posterior$m <- 1L
  one$keep_data <- TRUE
  one$posterior$neighbours <- 0L
  model <- construct_fit(data, start_now(learned, data$x[1L, , drop = FALSE], one$posterior$jitter), one, state)
  yard <- run_stage(state, "reference", grow_reference(model, data, s$goal, s$posterior$m, deadline),
                    otherwise = NULL)
  if (is.null(yard)) return(NULL)
  goal <- s$goal
  tol <- goal$tol
  worth <- goal$worth
  # where tol cannot be certified at all: as many points as come within a quarter of the reference, optimised once
  least <- yard$own()
  within_reach <- least <= enough_of_tol * tol
  guide <- run_stage(state, "start", greedy_guide(yard, data, if (within_reach) tol else 1.25 * least),
                     otherwise = NULL)
  if (is.null(guide)) return(list(yard = yard))
  if (worth < Inf && (!within_reach || guide$m > worth)) return(list(yard = yard))
  s <- s$posterior # the rest is theirs
  rows <- optimise_rows(data, s$rows, 4L * guide$m)
  top <- as.integer(min(s$m, nrow(data$x), 4L * guide$m, worth))
  candidates <- list()
  tell <- tell_candidates(goal, started)
  m <- min(guide$m, top)
  late <- function() proc.time()[["elapsed"]] > deadline
  while (!is.na(m) && length(candidates) < 10L) {
    one <- try_points(m, model, data, rows, learned, s, state, yard, tol,
                      deadline, last = m == top && worth == Inf || !within_reach)
    if (is.null(one)) break
    candidates <- c(candidates, list(one))
    tell(one)
    if (one$m < m) top <- one$m # there are no more that differ
    if (!is.null(state$stopped) || late() || !within_reach) break
    m <- next_m(candidates, guide$slope, top, s$steps$maxit, tol)
  }
  list(yard = yard, guide = guide, within_reach = within_reach, top = top, late = late(),
       best = best_candidate(candidates), tried = candidates_frame(candidates, tol))
}

best_candidate <- function(candidates) {
  met <- Filter(function(one) one$met, candidates)
  by <- if (length(met)) vapply(met, function(one) one$m, 1) else
    vapply(candidates, function(one) max(one$error), 1)
  if (length(met)) candidates <- met
  if (length(candidates)) candidates[[which.min(by)]]
}

candidates_frame <- function(candidates, tol) {
  if (!length(candidates)) return(NULL)
  column <- function(name) vapply(candidates, function(one) one[[name]], 1)
  error <- vapply(candidates, function(one) one$error, c(mean = 0, sd = 0))
  data.frame(m = as.integer(column("m")), iterations = as.integer(column("iterations")), mean = unname(error["mean", ]),
             sd = unname(error["sd", ]), met = unname(pmax(error["mean", ], error["sd", ]) <= tol),
             seconds = column("seconds"), posterior = "far", neighbours = 0L)
}

# Points started as the settings say and optimised until tol is met. `last`: there is no larger m to go to, so it is
# not given up. NULL where an interrupt came before the first certificate.
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
  list(m = nrow(z), done = now, error = best$error, met = max(best$error) <= tol, iterations = watch$iterations,
       done_with = if (watch$ended) watch$iterations else s$steps$maxit,
       seconds = proc.time()[["elapsed"]] - started)
}

# Looks at the certificate every few iterations, seldom where only some of the rows are optimised on and looking at all
# of them would take the time. look() and after() return NULL to go on, or list(convergence, message).
#
# Errors fall about like iterations^(-1/2): one far above what that leads to in `hopeful` iterations is given up.
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

# The two statistics of the fit on points z, which is made as the final one will be.
certified_error <- function(model, data, z, jitter, yard) {
  model$inducing <- z
  model$factors <- native_posterior(z, data, model_of(model), jitter, control = model$control)
  at <- latent_at(model, data$x)
  yard$error(at$mean, sqrt(at$var))
}

# The next number of points to try, NA where none is worth it. A candidate with error e after i iterations would reach
# about e sqrt(i / maxit); with log error falling by `slope` a unit of log m, that says which m would just do. 8 % more
# is taken: another fit costs more than they do.
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
    # what failed says that more points than did are needed: the truth lies between
    if (met[now] || least <= 1.2 * failed) return(NA_integer_)
    wanted <- round(sqrt(failed * least))
  }
  if (wanted > failed && wanted < least) as.integer(wanted) else NA_integer_
}
