# The stages that learn hyperparameters. `s` is the part `learn` of the plan.

# Returns list(model, pilot, learned, kernels, exact, smoother), where all but the first may be NULL. `exact` compares
# exact and Vecchia likelihood, see choose_exactly(). `smoother` has a smoother kernel that predicts as well beside
# neighbours.
learn_stage <- function(data, s, state) {
  kernel <- if (is_open(s$kernel)) with_profile(s$kernel, "matern32", data$x) else s$kernel
  start <- start_values(kernel, s$noise, data)
  found <- if (!length(s$free)) {
    start
  } else if (s$hyper == "evidence") {
    if (is.null(state$so_far)) state$so_far <- start
    learn <- if (is_groups_only(s$kernel) && is.null(s$likelihood)) learn_groups else learn_evidence
    run_stage(state, "learn", learn(data, s, state), otherwise = state$so_far)
  } else {
    run_stage(state, "pilot", {
      rows <- optimise_rows(data, s$rows, 200L)
      if (!is.null(rows$rows)) state$rows["learn"] <- rows$n
      pilot <- learn_hyper(rows, random_points(rows, min(200L, rows$n)), start, s)
      count_evaluations(state, "pilot", pilot)
      pilot
    }, otherwise = start)
  }
  if (isTRUE(state$open) && length(s$free) && is_bare(s$kernel)) found <- with_unbiased_scale(found, data, s, state)
  with_values <- function(found) model_with(new_model(NULL, NULL, data$center, data$scale), found)
  list(model = with_values(found), pilot = found$pilot, learned = found$learned, kernels = found$kernels,
       exact = found$exact, learned_all = found$learned_all,
       smoother = if (!is.null(found$smoother)) with_values(found$smoother))
}

# Returns the model with kernel variances and noise times n / (n - p), for p learned hyperparameters. Like that of a
# linear model, the likelihood of few rows is largest at variances that are too small (bench/few.R).
with_unbiased_scale <- function(found, data, s, state) {
  if (data$n > exact_learning_rows) return(found)
  p <- length(setdiff(parameter_names(found$kernel, s$columns), not_learned(s))) + noise_df(data$noise_trend)
  factor <- data$n / (data$n - min(p, data$n / 2))
  state$because["scale"] <- sprintf(
    "Scale: kernel variance and noise are %.2f times their estimates, for %d hyperparameters learned from %d rows.",
    factor, as.integer(p), as.integer(data$n))
  times <- ifelse(kernel_parameters(found$kernel)$what == "variance", factor, 1)
  found[c("kernel", "noise")] <- as_users_see(list(
    kernel = set_values(found$kernel, times * kernel_values(found$kernel)), noise = factor * found$noise))
  found
}

# Returns the hyperparameters that are learned, as the optimiser sees them.
free_parameters <- function(model, s) {
  hyper_parameters(model$kernel, model$noise, s$columns, not_learned(s))
}

# Learns hyperparameters by VFE at fixed inducing points.
# Returns list(kernel, noise, evaluations, stopped, pilot = list(trace, ...)).
learn_hyper <- function(data, z, model, s, maxit = s$steps$maxit, label = "hyperparameters") {
  parameters <- free_parameters(model, s)
  # while lengthscales move, some may make k(Z, Z) singular: a jitter above rounding from the start
  jitter <- max(s$jitter, 1e-8)
  problem <- vfe_hyper_problem(data, z, parameters, jitter, s$run)
  # a millionth of the gain in log marginal likelihood is far below any difference that matters
  result <- run_minimise(problem, s$steps, label, maxit = maxit, reltol = max(s$steps$reltol, 1e-6))
  c(problem$natural(result$par), list(evaluations = result$evaluations, stopped = result$stopped),
    list(pilot = result[c("trace", "convergence", "message", "evaluations")]))
}

# Learns hyperparameters by the exact log marginal likelihood.
exact_stage <- function(data, done, s, state) {
  run_stage(state, "objective", {
    parameters <- free_parameters(done$model, s)
    result <- run_minimise(exact_problem(data, parameters, s$run), s$steps, "hyperparameters")
    count_evaluations(state, "objective", result)
    done$model <- model_with(done$model, parameters$natural(result$par))
    done[c("value", "trace", "convergence", "message")] <- result[c("value", "trace", "convergence", "message")]
    done
  }, otherwise = done)
}

# Minus the exact log marginal likelihood, with its gradient in the free logs.
exact_problem <- function(data, parameters, control) {
  list(start = parameters$start, natural = parameters$natural, evaluate = function(par) {
    too_far <- parameters$too_far(par)
    if (!is.null(too_far)) return(list(value = Inf, reason = too_far))
    now <- parameters$at(par)
    result <- native_exact_evidence(data, now, control)
    if (!is.null(result$reason)) return(result)
    hyper_slope(result, parameters, data$shift, now$noise)
  })
}
