# The stage that learns kernel and noise.

learn_stage <- function(data, s, state) {
  kernel <- if (is.null(s$kernel$profile)) place_kernel(kernel_of(kernel_candidates[1L]), data$x) else s$kernel
  start <- start_values(kernel, s$noise, data)
  if (!length(s$free)) return(c(start, list(pilot = NULL)))
  if (s$hyper == "evidence") {
    state$so_far <- c(start, list(pilot = NULL))
    return(run_stage(state, "learn", learn_evidence(data, s, state), otherwise = state$so_far))
  }
  run_stage(state, "pilot", {
    rows <- optimise_rows(data, s$control)
    pilot <- learn_hyper(rows, random_points(rows, min(200L, rows$n)), start$kernel, start$noise, s)
    count_evaluations(state, "pilot", pilot)
    pilot[c("kernel", "noise", "pilot")]
  }, otherwise = c(start, list(pilot = NULL)))
}

# Hyperparameters at fixed points, by VFE: list(kernel, noise, evaluations, stopped, pilot = list(trace, ...)).
learn_hyper <- function(data, z, kernel, noise, s, maxit = s$control$maxit, label = "hyperparameters") {
  parameters <- hyper_parameters(kernel, noise, s$columns, setdiff(parameter_names(kernel, s$columns), s$free))
  # while lengthscales move, some may make k(Z, Z) singular: a jitter above rounding from the start
  jitter <- max(s$control$jitter, 1e-8)
  problem <- vfe_hyper_problem(data, z, parameters, jitter, s$control)
  # a millionth of what the log evidence has gained is far below what tells hyperparameters apart
  result <- run_minimise(problem, s$control, label, maxit = maxit, reltol = max(s$control$reltol, 1e-6))
  c(problem$natural(result$par), list(evaluations = result$evaluations, stopped = result$stopped),
    list(pilot = result[c("trace", "convergence", "message", "evaluations")]))
}

# Hyperparameters by the exact evidence.
exact_stage <- function(data, done, s, state) {
  run_stage(state, "objective", {
    parameters <- hyper_parameters(done$kernel, done$noise, s$columns,
                                   setdiff(parameter_names(done$kernel, s$columns), s$free))
    problem <- list(start = parameters$start, evaluate = function(par) {
      too_far <- parameters$too_far(par)
      if (!is.null(too_far)) return(list(value = Inf, reason = too_far))
      now <- parameters$natural(par)
      result <- native_exact_evidence(data$x, data$y, data$weights, now$kernel, now$noise, s$control)
      if (!is.null(result$reason)) return(result)
      hyper_slope(result, parameters, data$shift, now$noise)
    })
    result <- run_minimise(problem, s$control, "hyperparameters")
    count_evaluations(state, "objective", result)
    c(parameters$natural(result$par), result[c("value", "trace", "convergence", "message")], done["pilot"])
  }, otherwise = done)
}
