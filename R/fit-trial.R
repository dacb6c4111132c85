# Compares, by held-out rows, inducing points alone with neighbours or with the exact posterior.

# Compares inducing points alone with neighbours on held-out rows. Neighbours use a few noisy responses, inducing points
# use all rows, which is better for many rows of a smooth function. Inducing points alone are kept if their log density
# is larger by more than its standard error. They are tried with the chosen kernel, and with a smoother kernel if one
# predicts as well with neighbours.
look_at_held_out <- function(now, plan, state) {
  now$data <- merge_all_equal_rows(now$data)
  now$look["trial"] <- list(NULL)
  run_stage(state, "trial", {
    tried <- list(now[c("learned", "start")])
    if (!is.null(now$learned$smoother)) { # the smoother kernel, with its own inducing points
      learned <- replace(now$learned, "model", list(now$learned$smoother))
      learned$kernels$chosen <- learned$kernels$kernel == learned$model$kernel$label
      tried[[2L]] <- list(learned = learned, start = points_stage(now$data, learned, plan$posterior, state))
    }
    gains <- held_gains(now$data, tried, plan)
    if (is.null(gains)) now else take_gains(now, tried, gains)
  }, otherwise = now)
}

take_gains <- function(now, tried, gains) {
  best <- which.max(colMeans(gains))
  gain <- gains[, best]
  now$alone <- tried[[best]]
  now$look$trial <- gain_summary(gain)
  now$look$alone <- unexplained_share(now$data, now$alone$learned, now$alone$start)
  now
}

# Measures the gain in held-out log density of `rivals[[name]]` over inducing points with neighbours of the same rows.
look_at_rival <- function(now, plan, state, name, sizes) {
  now$look[name] <- list(NULL)
  gain <- run_stage(state, "trial", held_gains(merge_all_equal_rows(now$data), list(now[c("learned", "start")]), plan,
                                               rivals[[name]], sizes), otherwise = NULL)
  if (!is.null(gain)) now$look[[name]] <- gain_summary(gain)
  now
}

# Each function returns the predictions list(mean, var) of f at x by a candidate.
rivals <- list(
  points = function(one, rows, x, run) { # inducing points alone
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
  posterior_values(near_view(near, around, z, model, run), x)
}

# Returns the gain in log density at each held-out row, a column for each candidate: `rival` minus the first candidate's
# points with neighbours. Returns NULL if it cannot be computed.
held_gains <- function(data, tried, plan, rival = rivals$points, sizes = trial_rows) {
  n <- nrow(data$x)
  held <- sample.int(n, min(sizes[["held"]], n %/% 5L))
  others <- sample(setdiff(seq_len(n), held), min(sizes[["among"]], n - length(held)))
  around <- take_rows(data, others)
  some <- take_rows(data, utils::head(others, sizes[["posterior"]]))
  at <- take_rows(data, held)
  density <- function(model, p) {
    noise <- model$noise / (at$weights %||% 1)
    stats::dnorm(at$y, p$mean, sqrt(pmax(p$var, 0) + noise), log = TRUE)
  }
  alone <- function(one) density(one$learned$model, rival(one, some, at$x, plan$run))
  with_near <- function(one) {
    model <- one$learned$model
    density(model, predict_near(one$start$z, model, some, around, at$x, plan$posterior$neighbours, plan$run))
  }
  tryCatch(vapply(tried, alone, at$y) - with_near(tried[[1L]]), pfdtc_error_numerical = function(e) NULL)
}

# ---- other likelihoods ----------------------------------------------------------------------------------------------
#
# Few inducing points cannot represent short lengthscales. The Vecchia likelihood can learn them from the working
# responses f + g / W, with noise 1 / W, at the mode on points. That mode is too smooth, so the learned variance is too
# small (as in penalised quasi-likelihood: Breslow and Clayton 1993). Hence variances times 3, 9, ... are tried until
# the log density of held-out rows is below the best one by more than its standard error.

look_at_held_out_working <- function(now, plan, state) {
  now$look["trial"] <- list(NULL)
  likelihood <- replace(plan$learn$likelihood, "theta", list(now$learned$theta))
  run_stage(state, "trial", {
    now$mode <- laplace_at(now$data$x, engine_sites(likelihood, now$data$sites, now$learned$center),
                           now$learned$kernel, now$start$z, rounding_jitter(nrow(now$start$z)), plan$run, want = 1L)
    fallback_if_not_converged(compare_with_neighbours(now$data, now, likelihood, plan, state), now)
  }, otherwise = now)
}

# Returns `otherwise` if neighbours cannot be used, or their mode does not converge.
fallback_if_not_converged <- function(expr, otherwise) {
  tryCatch(expr, pfdtc_error_numerical = function(e) otherwise, pfdtc_warning_convergence = function(w) otherwise)
}

compare_with_neighbours <- function(data, now, likelihood, plan, state) {
  n <- nrow(data$x)
  held <- sample.int(n, min(near_trial$held, n %/% 5L))
  around <- sample(setdiff(seq_len(n), held))
  trial <- held_out_trial(data, likelihood, now$learned$center, held, around, plan$run)
  sites <- trial$sites_of(around)
  # The mode is almost reached, so a few Newton steps suffice.
  alone <- native_laplace(now$start$z, trial$x(around), sites, now$learned$kernel, now$mode$jitter, now$mode,
                          maxit = 2L, control = plan$run)
  p <- native_predict(stop_on_status(alone, "The posterior's mode"), now$start$z, now$learned$model, trial$x(held))
  score_alone <- trial$score(p$mean, p$sor_variance + p$unexplained)

  # Use the other rows only: a mode that has seen the held-out responses favours neighbours.
  on_points <- numeric(n)
  on_points[around] <- alone$f - sites$offset
  on_points[held] <- p$mean
  learned <- learn_near_laplace(trial$x(around), on_points[around], sites, plan$learn, now$learned, state)
  promised <- gain_from_residuals(trial, held, around, on_points, learned$model$kernel, plan$run)
  if (mean(promised) < near_trial$residuals) {
    now$look$trial <- gain_summary(-promised)
    return(now)
  }
  z <- choose_points(data$x, min(near_trial$points, n), learned$model$kernel, "greedy", greedy_memory,
                     control = plan$run)$z
  best <- raise_variances(trial, learned$model$kernel, utils::head(z, few_points), on_points,
                          any(startsWith(plan$learn$free, "variance")))
  gain <- score_alone - best$score
  if (!all(is.finite(gain))) return(now)
  now$look$trial <- gain_summary(gain)
  if (!isTRUE(mean(gain) < -near_trial$gain)) return(now)
  learned$kernel <- best$kernel
  learned$model <- new_model(best$kernel, 1)
  if (likelihood$learned) { # at a mode that is too smooth, theta comes out too small
    first <- likelihood$theta[1L]
    logs <- log(first) + c(-1, 1) * log(near_trial$theta)
    at <- function(log) likelihood$theta / first * exp(log)
    of_log <- function(log) sum(trial$score(best$mean, best$var, at(log)))
    likelihood$theta <- learned$theta <- at(stats::optimize(of_log, logs, maximum = TRUE)$maximum)
  }
  near <- near_laplace(data, z, best$f, trial$sites_of(seq_len(n)), learned$model, default_neighbours, plan$run,
                       best$step, near_trial$settled)
  replace(now, c("learned", "start", "near", "mode"), list(learned, list(z = z), near, NULL))
}

# Returns the gain in held-out log density if residuals of neighbours correct f. If f lacks structure, the derivatives g
# of the log likelihood agree among neighbours. Let h be the neighbours' sum of g, divided by their sum of W plus the
# mean of W. Then f + c h gains c g h - c^2 W h^2 / 2. The best c and number of neighbours are used.
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

# Returns functions to compare on held-out rows: inputs `x`, `sites_of`, the log density `score` at the held-out rows,
# and `with_near`. with_near() computes the posterior with neighbours for a kernel from latent values f.
held_out_trial <- function(data, likelihood, center, held, around, run) {
  x <- function(rows) data$x[rows, , drop = FALSE]
  sites_of <- function(rows) engine_sites(likelihood, take_sites(data$sites, rows), center)
  some <- utils::head(around, near_trial$rows)
  at <- take_sites(data$sites, held)
  score <- function(mean, var, theta = likelihood$theta) {
    log_predictive(replace(likelihood, "theta", list(theta)), at[c("y", "size")], mean + center + at$offset,
                   pmax(var, 0))
  }
  rows_at <- function(rows, f) working_rows(x(rows), sites_of(rows), f[rows])
  with_near <- function(kernel, z, f) {
    model <- new_model(kernel, 1)
    predicted <- function(f, x) {
      near <- near_posterior(rows_at(some, f), z, model, default_neighbours, default_neighbours, control = run)
      posterior_values(near_view(near, rows_at(around, f), z, model, run), x)
    }
    for (i in seq_len(near_trial$steps)) { # one step is mostly enough
      step <- clip_step(predicted(f, data$x)$mean - f)
      f <- f + step
      if (is_small_step(step, near_trial$settled)) break
    }
    p <- predicted(f, x(held))
    var <- p$var
    list(score = score(p$mean, var), kernel = kernel, f = f, step = step, mean = p$mean, var = var)
  }
  list(x = x, sites_of = sites_of, score = score, with_near = with_near)
}

# Multiplies the variances again and again if they are `free`, and returns the best posterior.
raise_variances <- function(trial, kernel, z, f, free) {
  raise <- function(kernel) if (free) scale_kernel(kernel, near_trial$by) else kernel
  best <- tried <- trial$with_near(raise(kernel), z, f)
  for (i in seq_len(if (free) near_trial$raised - 1L else 0L)) {
    tried <- fallback_if_not_converged(trial$with_near(raise(tried$kernel), z, tried$f), NULL)
    apart <- tried$score - best$score
    if (!isTRUE(mean(apart) > -se_of_mean(apart))) break
    if (mean(apart) > 0) best <- tried
  }
  best
}

# Learns another kernel from the working responses at f.
learn_near_laplace <- function(x, f, sites, s, learned, state) {
  rows <- working_rows(x, sites, pmin(pmax(f, -near_trial$largest), near_trial$largest))
  rows <- c(rows, list(response = rows$y, scale = 1, n = nrow(x), shift = list(rows = 0, ss = 0, constant = 0)))
  # The kernel learned with points may be a better start than the grid.
  kernel <- if (is_open(s$kernel)) replace(learned$kernel, "profile", list(NULL)) else learned$kernel
  s <- replace(s, c("kernel", "likelihood", "noise"), list(kernel, NULL, 1))
  found <- if (length(s$free)) learn_evidence(rows, s, state) else list(kernel = learned$model$kernel)
  learned$model <- new_model(name_lengthscales(found$kernel, x), 1)
  learned["kernels"] <- list(found$kernels)
  learned
}
