# Chooses and moves inducing points. Compares them with neighbours and the exact posterior. `s` is plan$posterior.

# Returns list(z, t): the inducing points z and, if chosen greedily, the mean residual prior variance t of the rows.
points_stage <- function(data, learned, s, state) {
  if (is.matrix(s$inducing)) return(list(z = s$inducing))
  run_stage(state, "start", {
    chosen <- start_points(data, smooth_model(learned$model), s$m, s$inducing, s$run)
    list(z = chosen$z, t = if (s$inducing == "greedy") chosen$t[length(chosen$t)] / chosen$looked)
  }, otherwise = list(z = choose_points(data$x, min(s$m, nrow(data$x)), NULL, "random")$z))
}

# Returns mean weight * mean residual prior variance / noise variance; Inf if inducing points were not chosen greedily.
unexplained_share <- function(data, learned, start) {
  if (is.null(start$t)) Inf else mean(data$weights %||% 1) * start$t / learned$model$noise
}

start_points <- function(data, model, m, method, run) {
  choose_points(data$x, min(m, nrow(data$x)), model$kernel, method, greedy_memory / 2,
                c(data[c("y", "weights")], model["noise"]), run)
}

# Returns the results so far, before the inducing points z move. optimise_stage() updates this list.
start_now <- function(learned, z, jitter) {
  list(model = learned$model, z = z, pilot = learned$pilot, learned = learned$learned, kernels = learned$kernels,
       learned_all = learned$learned_all, value = NA_real_, trace = NULL, z_trace = NULL, convergence = 0L,
       message = "nothing to optimise", jitter = jitter %||% 1e-12)
}

optimise_stage <- function(data, learned, z, s, state) {
  now <- start_now(learned, z, s$jitter)
  if (!is.null(state$stopped) || s$objective == "none" || !s$move) return(now)
  rows <- optimise_rows(data, s$rows, s$m)
  if (!is.null(rows$rows)) state$rows["points"] <- rows$n
  if (s$objective == "vfe" && !is.null(s$joint)) { # optimise points and hyperparameters at once
    return(run_stage(state, "points", {
      parameters <- free_parameters(now$model, s$joint)
      problem <- first_that_works(function(jitter) {
        points <- points_problem(rows, now$z, now$model, NULL, jitter, s$run)
        vfe_hyper_problem(rows, now$z, parameters, jitter, s$run, points)
      }, max(now$jitter, 1e-8)) # changing lengthscales may make k(Z, Z) singular
      result <- run_minimise(problem, s$steps, "inducing points and hyperparameters", state, "objective")
      found <- problem$natural(result$par)
      take_result(replace(now, "model", list(model_with(now$model, found))),
                  c(result, list(z = found$z, natural = function(par) problem$natural(par)$z)))
    }, otherwise = now))
  }
  begun <- if (s$try_starts) better_start(data, rows, now, s, state) else list(now = now, steps = s$steps)
  now <- begun$now
  rounds <- if (is.null(s$joint)) 1L else 5L
  for (round in seq_len(rounds)) {
    before <- now
    now <- optimise_points(rows, now, s, state, begun$steps)
    if (!is.null(state$stopped) || round == rounds) break
    now <- run_stage(state, "joint", {
      step <- learn_hyper(rows, now$z, now$model, s$joint, state, "hyper", maxit = 20L)
      replace(now, "model", list(model_with(now$model, step)))
    }, otherwise = now)
    if (!is.null(state$stopped) || max(abs(model_theta(before$model) - model_theta(now$model))) < 1e-3) break
  }
  # Number the first iterations from the better start and the search that continues them as one round of the trace.
  if (s$try_starts && !is.null(now$trace)) now$trace$round <- pmax(now$trace$round - 1L, 1L)
  now
}

# Compares two starts by a few iterations: inducing points chosen greedily by residual prior variance or pF divergence.
# Returns list(now, steps): the better result, and the limits of the remaining search. The second start must lower the
# squared pF divergence by over 5, because the first start mostly wins in the end if both are close.
better_start <- function(data, rows, now, s, state) {
  few <- min(5L, s$steps$maxit %/% 20L)
  begin <- function(now) optimise_points(rows, now, s, state, steps_left(few), label = "starting points")
  steps_left <- function(maxit) replace(s$steps, "maxit", maxit)
  first <- begin(now)
  second <- if (is.null(state$stopped) && in_time(s$steps)) null_if_failed({
    z <- run_stage(state, "start", start_points(data, now$model, s$m, "divergence", s$run)$z, otherwise = NULL)
    if (!is.null(z) && nrow(z) >= nrow(now$z)) begin(replace(now, c("z", "start"), list(z, "divergence")))
  })
  if (is.null(second)) return(list(now = first, steps = steps_left(s$steps$maxit - few)))
  take_second <- isTRUE(second$value < first$value - 5 * now$model$noise^2) # `value` has the factor noise^2
  # Count evaluations from the worse start separately, because `trace` has only those from the better start.
  lost <- max(0L, nrow(if (take_second) first$trace else second$trace))
  state$evaluations["objective"] <- state$evaluations[["objective"]] - lost
  state$evaluations["other start"] <- lost
  list(now = if (take_second) second else first, steps = steps_left(s$steps$maxit - 2L * few))
}

# Moves the inducing points at fixed hyperparameters, until watch$after(z, jitter, value) is not NULL. For the auxiliary
# distribution, aux_reference() uses the inducing points of `reference`, and aux_refresh() the latest ones.
optimise_points <- function(rows, now, s, state, steps, label = "inducing points", watch = NULL, reference = NULL) {
  schedule <- if (s$objective == "pf" && !is.null(s$aux$every)) s$aux$every else Inf
  left <- steps$maxit
  how <- s$aux
  step <- 0.1
  repeat {
    result <- run_stage(state, "points", {
      aux <- NULL
      if (s$objective == "pf") {
        aux <- make_auxiliary(how, rows, now$model, nrow(now$z), s$run, reference)
        # `rows` may be a part of all rows. Convert row numbers in `rows` to row numbers among all rows.
        now[c("aux_points", "aux_rows")] <- list(aux$U, if (is.null(rows$rows)) aux$rows else rows$rows[aux$rows])
      }
      problem <- first_that_works(function(jitter) {
        points_problem(rows, now$z, now$model, aux, jitter, s$run, is.null(aux) || steps$maxit > 0)
      }, now$jitter)
      now$jitter <- problem$jitter
      result <- run_minimise(problem, steps, label, state, "objective", min(left, schedule), first_step = step,
                             enough = if (!is.null(watch)) function(par, value) {
                               watch$after(problem$natural(par), problem$jitter, value)
                             })
      c(result, list(z = problem$natural(result$par), natural = problem$natural))
    }, otherwise = NULL)
    if (is.null(result)) return(now)
    now <- take_result(now, result)
    left <- left - max(1L, result$iterations)
    step <- result$last_step # start from this step again: a new auxiliary distribution moves the optimum little
    if (!is.null(state$stopped) || is.infinite(schedule) || left <= 0L || result$iterations < 2L) return(now)
    if (!is.null(watch) && watch$ended) return(now)
    how <- new_aux("points", z = now$z)
  }
}

# Returns the problem make(jitter). Multiplies a jitter below 1e-5 by 10 until the objective has a value at the start.
first_that_works <- function(make, jitter) {
  repeat {
    problem <- make(jitter)
    reason <- problem$evaluate(problem$start)$reason
    problem$jitter <- jitter
    if (is.null(reason) || jitter >= 1e-5) return(problem)
    jitter <- max(10 * jitter, 1e-15)
  }
}

take_result <- function(now, result) {
  if (is.na(result$value)) result$value <- now$value %||% NA_real_
  last <- list(evaluation = 0L, seconds = 0, round = 0L)
  if (!is.null(now$trace) && nrow(now$trace)) last <- now$trace[nrow(now$trace), ]
  trace <- result$trace
  trace$evaluation <- trace$evaluation + last$evaluation
  trace$seconds <- trace$seconds + last$seconds
  trace$round <- rep(last$round + 1L, nrow(trace))
  now[c("z", "value", "convergence", "message")] <- result[c("z", "value", "convergence", "message")]
  now$trace <- rbind(now$trace, trace)
  now$z_trace <- c(now$z_trace, lapply(result$kept, function(k) {
    list(evaluation = k$evaluation + last$evaluation, z = result$natural(k$par))
  }))
  now
}

# Compares inducing points alone with inducing points and neighbours, by the log density of held-out rows. Neighbours
# use few noisy responses, inducing points all, so inducing points alone may predict a smooth f better. decide() drops
# neighbours if inducing points alone gain more than the standard error. A `smoother` kernel, if any, is tried too.
look_at_held_out <- function(now, plan, state) {
  now$data <- merge_all_equal_rows(now$data)
  now$look["trial"] <- list(NULL)
  tried <- list(now[c("learned", "start")])
  gains <- run_stage(state, "trial", {
    if (!is.null(now$learned$smoother)) { # the smoother kernel has its own inducing points
      learned <- replace(now$learned, "model", list(now$learned$smoother))
      learned$kernels$chosen <- learned$kernels$kernel == learned$model$kernel$label
      tried[[2L]] <- list(learned = learned, start = points_stage(now$data, learned, plan$posterior, state))
    }
    held_gains(now$data, tried, plan)
  }, otherwise = NULL)
  if (is.null(gains)) return(now)
  best <- which.max(colMeans(gains))
  now$alone <- tried[[best]]
  now$look$trial <- gain_summary(gains[, best])
  now$look$alone <- unexplained_share(now$data, now$alone$learned, now$alone$start)
  now
}

# Measures how much larger the log density of held-out rows is by the posterior rivals[[name]] than by the planned one.
look_at_rival <- function(now, plan, state, name, sizes) {
  gain <- run_stage(state, "trial", held_gains(merge_all_equal_rows(now$data), list(now[c("learned", "start")]), plan,
                                               rivals[[name]], sizes), otherwise = NULL)
  now$look[name] <- list(if (!is.null(gain)) gain_summary(gain))
  now
}

# Each rival of the planned posterior returns list(mean, var) of f at x. `one` has hyperparameters and inducing points.
rivals <- list(points = function(one, rows, x, run) { # inducing points alone
    posterior <- native_posterior(one$start$z, rows, one$learned$model, 1e-12, control = run)
    p <- native_predict(posterior, one$start$z, one$learned$model, x)
    list(mean = p$mean, var = p$sor_variance + p$unexplained)
  },
  few = function(one, rows, x, run) { # few inducing points with neighbours
    predict_near(utils::head(one$start$z, few_points), one$learned$model, rows, rows, x, default_neighbours, run)
  },
  dense = function(one, rows, x, run) { # the exact posterior
    model <- one$learned$model
    p <- native_exact_predict(native_exact(rows, model, run), rows$x, model$kernel, x)
    list(mean = p$mean, var = p$variance)
  })

predict_near <- function(z, model, rows, around, x, count, run) {
  near <- near_posterior(rows, z, model, count, count, control = run)
  posterior_values(new_posterior("near", model, NULL, around, z = z, near = near, control = run), x)
}

# Returns the gains in log density of held-out rows (NULL if a factorisation fails), in a column for each list(learned,
# start) in `tried`: the log density by `rival` with this list, minus that by neighbours with the first list.
held_gains <- function(data, tried, plan, rival = rivals$points, sizes = trial_rows) {
  n <- nrow(data$x)
  held <- sample.int(n, min(sizes[["held"]], n %/% 5L))
  others <- sample(setdiff(seq_len(n), held), min(sizes[["among"]], n - length(held)))
  around <- take_rows(data, others)
  some <- take_rows(data, utils::head(others, sizes[["posterior"]]))
  at <- take_rows(data, held)
  density <- function(model, p) {
    stats::dnorm(at$y, p$mean, sqrt(pmax(p$var, 0) + model$noise / (at$weights %||% 1)), log = TRUE)
  }
  null_if_failed({
    by_rival <- vapply(tried, function(one) density(one$learned$model, rival(one, some, at$x, plan$run)), at$y)
    model <- tried[[1L]]$learned$model
    near <- predict_near(tried[[1L]]$start$z, model, some, around, at$x, plan$posterior$neighbours, plan$run)
    by_rival - density(model, near)
  })
}

# ---- non-Gaussian likelihoods with neighbours -----------------------------------------------------------------------
# Few inducing points cannot represent short lengthscales. So the Vecchia likelihood learns lengthscales from working
# responses f + g / W with noise 1 / W. Here f is the mode on inducing points, and g and -W are the first two
# derivatives of the log likelihood by f. This mode is too smooth, so the learned kernel variance is too small (as in
# penalised quasi-likelihood: Breslow and Clayton 1993). The variance is multiplied by 3 up to five times, until the log
# density of held-out rows is below the best one by more than the standard error of the difference.

fallback_if_not_converged <- function(expr, otherwise) {
  tryCatch(expr, pfdtc_error_numerical = function(e) otherwise, pfdtc_warning_convergence = function(w) otherwise)
}

compare_with_neighbours <- function(data, now, likelihood, plan, state) {
  n <- nrow(data$x)
  held <- sample.int(n, min(near_trial$held, n %/% 5L))
  around <- sample(setdiff(seq_len(n), held))
  trial <- held_out_trial(data, likelihood, now$learned$center, held, around, plan$run)
  sites <- trial$sites_of(around)
  # Two Newton steps suffice: the start, the mode given all rows, is almost the mode given rows that are not held out.
  alone <- native_laplace(now$start$z, trial$x(around), sites, now$learned$kernel, now$mode$jitter, now$mode,
                          maxit = 2L, control = plan$run)
  p <- native_predict(stop_on_status(alone, "The posterior's mode"), now$start$z, now$learned$model, trial$x(held))
  score_alone <- trial$score(p$mean, p$sor_variance + p$unexplained)

  # Use the mode given rows that are not held out. A mode that depends on held-out responses would favour neighbours.
  on_points <- numeric(n)
  on_points[around] <- alone$f - sites$offset
  on_points[held] <- p$mean
  learned <- learn_near_laplace(trial$x(around), on_points[around], sites, plan$learn, now$learned, state)
  if (!in_time(plan$learn$steps)) return(now)
  promised <- gain_from_residuals(trial, held, around, on_points, learned$model$kernel, plan$run)
  if (mean(promised) < near_trial$residuals) {
    now$look$trial <- gain_summary(-promised)
    return(now)
  }
  z <- choose_points(data$x, min(near_trial$points, n), learned$model$kernel, "greedy", greedy_memory / 4,
                     control = plan$run)$z
  best <- raise_variances(trial, learned$model$kernel, utils::head(z, few_points), on_points,
                          any(startsWith(plan$learn$free, "variance")), plan$learn$steps)
  gain <- score_alone - best$score
  if (!all(is.finite(gain))) return(now)
  now$look$trial <- gain_summary(gain)
  if (!isTRUE(mean(gain) < -near_trial$gain)) return(now)
  learned[c("kernel", "model")] <- list(best$kernel, new_model(best$kernel, 1))
  if (likelihood$learned) { # the shape parameter theta is too small if learned at a mode that is too smooth
    first <- likelihood$theta[1L]
    logs <- log(first) + c(-1, 1) * log(near_trial$theta)
    at <- function(log) likelihood$theta / first * exp(log)
    of_log <- function(log) sum(trial$score(best$mean, best$var, at(log)))
    likelihood$theta <- learned$theta <- at(stats::optimize(of_log, logs, maximum = TRUE)$maximum)
  }
  near <- near_laplace(data, z, best$f, trial$sites_of(seq_len(n)), learned$model, default_neighbours, plan$run,
                       best$step, near_trial$settled * likelihood$unit)
  replace(now, c("learned", "start", "near", "mode"), list(learned, list(z = z), near, NULL))
}

# Estimates the gain in log density of each held-out row if neighbours correct f. g and -W are the first two derivatives
# of the log likelihood by f. Where f lacks structure, g has equal signs at neighbours. With h = sum(g) / (sum(W) +
# mean(W)) over neighbours, f + c h gains c g h - c^2 W h^2 / 2. The best c and number of neighbours are used.
gain_from_residuals <- function(trial, held, around, f, kernel, run) {
  slopes <- function(rows) {
    sites <- trial$sites_of(rows)
    native_likelihood(sites, f[rows] + sites$offset)
  }
  l <- slopes(around)
  at <- slopes(held)
  near <- native_neighbours(kernel, trial$x(around), default_neighbours, query = trial$x(held), control = run)
  gains <- vapply(c(default_neighbours %/% 8L, default_neighbours), function(count) {
    of_neighbours <- function(v) colSums(matrix(v[near[seq_len(count), ]], count))
    h <- of_neighbours(l[2L, ]) / (of_neighbours(l[3L, ]) + mean(l[3L, ]))
    c <- max(sum(at[2L, ] * h) / sum(at[3L, ] * h^2), 0)
    c * at[2L, ] * h - c^2 * at[3L, ] * h^2 / 2
  }, numeric(length(held)))
  gains[, which.max(colMeans(gains))]
}

# Returns a list of functions: x(rows) returns inputs, sites_of(rows) the likelihoods (sites) of rows, score(mean, var)
# the log densities of the held-out responses if f ~ N(mean, var). with_near(kernel, z, f) finds the posterior with
# neighbours among the rows `around` (not held out), by Newton steps from the latent values f at all rows.
held_out_trial <- function(data, likelihood, center, held, around, run) {
  x <- function(rows) data$x[rows, , drop = FALSE]
  sites_of <- function(rows) engine_sites(likelihood, take_rows_of(data$sites, rows), center)
  some <- utils::head(around, near_trial$rows)
  at <- take_rows_of(data$sites, held)
  score <- function(mean, var, theta = likelihood$theta) {
    log_predictive(replace(likelihood, "theta", list(theta)), at[c("y", "size")], mean + center + at$offset,
                   pmax(var, 0))
  }
  rows_at <- function(rows, f) working_rows(x(rows), sites_of(rows), f[rows])
  with_near <- function(kernel, z, f) {
    model <- new_model(kernel, 1)
    predicted <- function(f, x) predict_near(z, model, rows_at(some, f), rows_at(around, f), x, default_neighbours, run)
    for (i in seq_len(near_trial$steps)) { # one step mostly suffices
      step <- clip_step(predicted(f, data$x)$mean - f, likelihood$unit)
      f <- f + step
      if (sqrt(mean(step^2)) < near_trial$settled * likelihood$unit) break
    }
    p <- predicted(f, x(held))
    list(score = score(p$mean, p$var), kernel = kernel, f = f, step = step, mean = p$mean, var = p$var)
  }
  list(x = x, sites_of = sites_of, score = score, with_near = with_near)
}

# Returns the posterior that predicts held-out rows best. If `free`, raises kernel variances by factors near_trial$by,
# until the time limit of `steps`.
raise_variances <- function(trial, kernel, z, f, free, steps) {
  raise <- function(kernel) if (free) scale_kernel(kernel, near_trial$by) else kernel
  best <- tried <- trial$with_near(raise(kernel), z, f)
  for (i in seq_len(if (free) near_trial$raised - 1L else 0L)) {
    tried <- fallback_if_not_converged(trial$with_near(raise(tried$kernel), z, tried$f), NULL)
    apart <- tried$score - best$score
    if (isTRUE(mean(apart) > 0)) best <- tried
    if (!isTRUE(mean(apart) > -se_of_mean(apart)) || !in_time(steps)) break
  }
  best
}

# Learns a kernel by the Vecchia likelihood of the working responses at the latent values f.
learn_near_laplace <- function(x, f, sites, s, learned, state) {
  largest <- near_trial$largest * sites$unit
  rows <- working_rows(x, sites, pmin(pmax(f, -largest), largest))
  rows <- c(rows, list(response = rows$y, scale = 1, n = nrow(x), shift = list(rows = 0, ss = 0, constant = 0)))
  # Start from the kernel learned with inducing points, because it may be better than the default starts of a search.
  kernel <- if (is_open(s$kernel)) replace(learned$kernel, "profile", list(NULL)) else learned$kernel
  s <- replace(s, c("kernel", "likelihood", "noise"), list(kernel, NULL, 1))
  found <- if (length(s$free)) learn_evidence(rows, s, state) else list(kernel = learned$model$kernel)
  learned$model <- new_model(name_lengthscales(found$kernel, x), 1)
  learned["kernels"] <- list(found$kernels)
  learned
}
