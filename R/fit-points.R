# Chooses inducing points and moves them. `s` is the part `posterior` of the plan.

# Returns list(z, t): the points and, if they were chosen greedily, the mean residual prior variance of a row.
points_stage <- function(data, learned, s, state) {
  if (is.matrix(s$inducing)) return(list(z = s$inducing))
  run_stage(state, "start", {
    chosen <- start_points(data, smooth_model(learned$model), s$m, s$inducing, s$run)
    list(z = chosen$z, t = if (s$inducing == "greedy") chosen$t[length(chosen$t)] / chosen$looked)
  }, otherwise = list(z = choose_points(data$x, min(s$m, nrow(data$x)), NULL, "random")$z))
}

# Returns mean(w E_nn) / noise, with E the residual prior covariance, or Inf if the points were not chosen greedily.
unexplained_share <- function(data, learned, start) {
  if (is.null(start$t)) return(Inf)
  w <- if (is.null(data$weights)) 1 else mean(data$weights)
  w * start$t / learned$model$noise
}

# Calls choose_points() with the cleaned data, for at most one point per row.
start_points <- function(data, model, m, method, run) {
  choose_points(data$x, min(m, nrow(data$x)), model$kernel, method, run$memory / 2, # the data need memory as well
                c(data[c("y", "weights")], model["noise"]), run)
}

# Returns the state before points move: list(model, z, value, trace, z_trace, convergence, message, jitter, pilot, ...).
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
  if (s$objective == "vfe" && !is.null(s$joint)) { # points and hyperparameters move together
    return(run_stage(state, "points", {
      parameters <- free_parameters(now$model, s$joint)
      problem <- first_that_works(function(jitter) {
        points <- points_problem(rows, now$z, now$model, NULL, jitter, s$run)
        vfe_hyper_problem(rows, now$z, parameters, jitter, s$run, points)
      }, max(now$jitter, 1e-8)) # lengthscales move, see learn_hyper()
      result <- run_minimise(problem, s$steps, "inducing points and hyperparameters")
      count_evaluations(state, "objective", result)
      found <- problem$natural(result$par)
      take_result(replace(now, "model", list(model_with(now$model, found))),
                  c(result, list(z = found$z, natural = function(par) problem$natural(par)$z)))
    }, otherwise = now))
  }
  steps <- s$steps
  if (s$try_starts) {
    begun <- better_start(data, rows, now, s, state)
    now <- begun$now
    steps <- begun$steps
  }
  rounds <- if (is.null(s$joint)) 1L else 5L
  for (round in seq_len(rounds)) {
    before <- now
    now <- optimise_points(rows, now, s, state, steps)
    if (!is.null(state$stopped) || round == rounds) break
    now <- run_stage(state, "joint", {
      step <- learn_hyper(rows, now$z, now$model, s$joint, maxit = 20L)
      count_evaluations(state, "hyper", step)
      replace(now, "model", list(model_with(now$model, step)))
    }, otherwise = now)
    if (!is.null(state$stopped) || max(abs(model_theta(before$model) - model_theta(now$model))) < 1e-3) break
  }
  # Count iterations from the chosen start in the first round.
  if (s$try_starts && !is.null(now$trace)) now$trace$round <- pmax(now$trace$round - 1L, 1L)
  now
}

# Runs a few iterations from each of two starts, points greedy in the prior variance and points greedy in the
# divergence, and returns the better one. Neither is best for all numbers of points. If their d^2 differ by less than 5,
# the points explain nearly all of f, and the first start ends at smaller errors. Returns list(now, steps): the result
# and the remaining steps.
better_start <- function(data, rows, now, s, state) {
  left <- seconds_left(s$steps$max_seconds)
  few <- min(5L, s$steps$maxit %/% 20L)
  begin <- function(now) {
    optimise_points(rows, now, s, state, steps_left(s$steps, few, left()), label = "starting points")
  }
  first <- begin(now)
  second <- if (is.null(state$stopped) && left() > 0) second_start(data, now, s, state, begin)
  if (is.null(second)) return(list(now = first, steps = steps_left(s$steps, s$steps$maxit - few, max(0, left()))))
  take_second <- isTRUE(second$value < first$value - 5 * now$model$noise^2)
  # `trace` belongs to the better start.
  lost <- max(0L, nrow(if (take_second) first$trace else second$trace))
  state$evaluations["objective"] <- state$evaluations[["objective"]] - lost
  state$evaluations["other start"] <- lost
  list(now = if (take_second) second else first,
       steps = steps_left(s$steps, s$steps$maxit - 2L * few, max(0, left())))
}

steps_left <- function(steps, maxit, max_seconds) replace(steps, c("maxit", "max_seconds"), list(maxit, max_seconds))

# Returns the result from the second start, or NULL if it cannot be computed.
second_start <- function(data, now, s, state, begin) {
  tryCatch({
    z <- run_stage(state, "start", start_points(data, now$model, s$m, "divergence", s$run)$z, otherwise = NULL)
    if (is.null(z) || nrow(z) < nrow(now$z)) return(NULL)
    now[c("z", "start")] <- list(z, "divergence")
    begin(now)
  }, pfdtc_error_numerical = function(e) NULL)
}

# Moves the points at fixed hyperparameters. `watch` ends the search when the certificate is good enough, see
# try_points(). `reference` is a reference posterior of the same model, for aux_reference().
optimise_points <- function(rows, now, s, state, steps = s$steps, label = "inducing points", watch = NULL,
                            reference = NULL) {
  schedule <- if (s$objective == "pf" && !is.null(s$aux$every)) s$aux$every else Inf # iterations between renewals
  left <- steps$maxit
  how <- s$aux
  step <- 0.1
  repeat {
    result <- run_stage(state, "points", {
      aux <- NULL
      if (s$objective == "pf") {
        aux <- make_auxiliary(how, rows, now$model, nrow(now$z), s$run, reference)
        # Give `aux_rows` as rows of all data, for the exact posterior of a subset; a SoR posterior has none.
        now[c("aux_points", "aux_rows")] <- list(aux$U, if (is.null(rows$rows)) aux$rows else rows$rows[aux$rows])
      }
      problem <- first_that_works(function(jitter) {
        points_problem(rows, now$z, now$model, aux, jitter, s$run, is.null(aux) || steps$maxit > 0)
      }, now$jitter)
      now$jitter <- problem$jitter
      result <- run_minimise(problem, steps, label, maxit = min(left, schedule), first_step = step,
                             enough = if (!is.null(watch)) function(par, value) {
                               watch$after(problem$natural(par), problem$jitter, value)
                             })
      c(result, list(z = problem$natural(result$par), natural = problem$natural))
    }, otherwise = NULL)
    if (is.null(result)) return(now)
    now <- take_result(now, result)
    count_evaluations(state, "objective", result)
    left <- left - max(1L, result$iterations)
    step <- result$last_step # a renewed distribution moves the optimum a little: continue with steps of the same size
    if (!is.null(state$stopped) || is.infinite(schedule) || left <= 0L || result$iterations < 2L) return(now)
    if (!is.null(watch) && watch$ended) return(now)
    how <- new_aux("points", z = now$z)
  }
}

# Multiplies the jitter by 10 until the objective exists at the start.
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
  # If the search ended before its first value, keep the previous value.
  if (is.na(result$value)) result$value <- now$value %||% NA_real_
  trace <- result$trace
  kept <- lapply(result$kept, function(k) list(evaluation = k$evaluation, z = result$natural(k$par)))
  last <- if (!is.null(now$trace) && nrow(now$trace)) now$trace[nrow(now$trace), ]
  if (!is.null(last)) {
    trace$evaluation <- trace$evaluation + last$evaluation
    trace$seconds <- trace$seconds + last$seconds
    kept <- lapply(kept, function(k) within.list(k, evaluation <- evaluation + last$evaluation))
  }
  trace$round <- rep(if (is.null(last)) 1L else last$round + 1L, nrow(trace))
  now[c("z", "value", "convergence", "message")] <- result[c("z", "value", "convergence", "message")]
  now$trace <- rbind(now$trace, trace)
  now$z_trace <- c(now$z_trace, kept)
  now
}
