# The stages that place inducing points and move them: `s` is what points_settings() makes.

# list(z, t): the points and, of greedy ones, what they leave unexplained of the prior variance of a row on average.
points_stage <- function(data, learned, s, state) {
  if (is.matrix(s$inducing)) return(list(z = s$inducing))
  run_stage(state, "start", {
    chosen <- start_points(data, learned$model, s$m, s$inducing, s$run)
    list(z = chosen$z, t = if (s$inducing == "greedy") chosen$t[length(chosen$t)] / chosen$looked)
  }, otherwise = list(z = choose_points(data$x, min(s$m, nrow(data$x)), NULL, "random")$z))
}

# What choose_points() has of cleaned data: at most one a row.
start_points <- function(data, model, m, method, run) {
  choose_points(data$x, min(m, nrow(data$x)), model$kernel, method, run$memory / 2, # the data are there as well
                c(data[c("y", "weights")], model["noise"]), run)
}

# list(model, z, value, trace, z_trace, convergence, message, jitter, pilot, learned, kernels)
start_now <- function(learned, z, jitter) {
  list(model = learned$model, z = z, pilot = learned$pilot, learned = learned$learned, kernels = learned$kernels,
       value = NA_real_, trace = NULL, z_trace = NULL, convergence = 0L, message = "nothing to optimise",
       jitter = if (is.null(jitter)) 1e-12 else jitter)
}

optimise_stage <- function(data, learned, z, s, state) {
  now <- start_now(learned, z, s$jitter)
  if (!is.null(state$stopped)) return(now)
  if (s$objective == "none") return(now)
  if (!s$move) return(utils::modifyList(now, list(message = s$unmoved)))
  rows <- optimise_rows(data, s$rows, s$m)
  if (!is.null(rows$rows)) state$rows["points"] <- rows$n
  if (s$objective == "vfe" && !is.null(s$joint)) return(vfe_jointly(rows, now, s, state))
  if (s$try_starts) {
    started <- proc.time()[["elapsed"]]
    trial <- better_start(data, rows, now, s, state)
    now <- trial$now
    s$steps$maxit <- s$steps$maxit - trial$iterations
    s$steps$max_seconds <- max(0, s$steps$max_seconds - (proc.time()[["elapsed"]] - started))
  }
  rounds <- if (is.null(s$joint)) 1L else 5L
  for (round in seq_len(rounds)) {
    before <- now
    now <- optimise_points(rows, now, s, state)
    if (!is.null(state$stopped) || round == rounds) break
    now <- joint_step(rows, now, s, state)
    if (!is.null(state$stopped) || settled(before, now)) break
  }
  if (s$try_starts && !is.null(now$trace)) now$trace$round <- pmax(now$trace$round - 1L, 1L) # the trial is no round
  now
}

# No start is best for few and for many points: a few iterations from each of two, greedy in the prior variance and
# greedy in the divergence, tell which to go on from. Where d^2 of both differs by less than 5 the points explain nearly
# everything, and the first ends at smaller errors. list(now, iterations): they count among `maxit`.
better_start <- function(data, rows, now, s, state) {
  s$steps$maxit <- min(5L, s$steps$maxit %/% 20L)
  s$label <- "starting points"
  started <- proc.time()[["elapsed"]]
  one <- optimise_points(rows, now, s, state)
  s$steps$max_seconds <- s$steps$max_seconds - (proc.time()[["elapsed"]] - started)
  two <- if (is.null(state$stopped) && s$steps$max_seconds > 0) second_start(data, rows, now, s, state)
  if (is.null(two)) return(list(now = one, iterations = s$steps$maxit))
  second <- isTRUE(two$value < one$value - 5 * now$model$noise^2)
  # `trace` is that of the better one
  lost <- max(0L, nrow(if (second) one$trace else two$trace))
  state$evaluations["objective"] <- state$evaluations[["objective"]] - lost
  state$evaluations["other start"] <- lost
  list(now = if (second) two else one, iterations = 2L * s$steps$maxit)
}

# NULL where it cannot be had: there is another.
second_start <- function(data, rows, now, s, state) {
  tryCatch({
    z <- run_stage(state, "start", start_points(data, now$model, s$m, "divergence", s$run)$z, otherwise = NULL)
    if (is.null(z) || nrow(z) < nrow(now$z)) return(NULL)
    now$z <- z
    now$start <- "divergence"
    optimise_points(rows, now, s, state)
  }, pfdtc_error_numerical = function(e) NULL)
}

# Z at fixed hyperparameters. `watch` ends it when the certificate is good enough, see new_watch().
optimise_points <- function(rows, now, s, state, watch = NULL) {
  schedule <- if (s$objective == "pf") aux_every(s$aux) else Inf
  left <- s$steps$maxit
  how <- s$aux
  step <- 0.1
  repeat {
    result <- run_stage(state, "points", {
      make <- if (s$objective == "pf") {
        aux <- make_auxiliary(how, rows, now$model, nrow(now$z), s$run, s$reference)
        function(jitter) pf_problem(rows, now$z, now$model, aux, jitter, s$run, s$steps$maxit > 0)
      } else {
        function(jitter) vfe_points_problem(rows, now$z, now$model, jitter, s$run)
      }
      if (s$objective == "pf") now[c("aux_points", "aux_rows")] <- list(aux$U, rows_of_aux(aux, rows))
      problem <- first_that_works(make, now$jitter)
      now$jitter <- problem$jitter
      result <- run_minimise(problem, s$steps, if (is.null(s$label)) "inducing points" else s$label,
                             maxit = min(left, schedule), first_step = step,
                             enough = if (!is.null(watch)) function(par, value) {
                               watch$after(problem$natural(par), problem$jitter, value)
                             })
      c(result, list(z = problem$natural(result$par), natural = problem$natural))
    }, otherwise = NULL)
    if (is.null(result)) return(now)
    now <- take_result(now, result)
    count_evaluations(state, "objective", result)
    left <- left - max(1L, result$iterations)
    step <- result$last_step # a renewed distribution moves the optimum a little: go on with steps of the same size
    if (!is.null(state$stopped) || is.infinite(schedule) || left <= 0L || result$iterations < 2L) return(now)
    if (!is.null(watch) && watch$ended) return(now)
    how <- aux_on_points(now$z)
  }
}

# The rows of all the data that the exact posterior of some is made of; NULL for a SoR posterior.
rows_of_aux <- function(aux, data) if (is.null(data$rows)) aux$rows else data$rows[aux$rows]

# The jitter, raised by tens until the objective exists at the start.
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
  if (is.na(result$value)) result$value <- if (is.null(now$value)) NA_real_ else now$value # ended before there was one
  now$z <- result$z
  now$value <- result$value
  now$convergence <- result$convergence
  now$message <- result$message
  trace <- result$trace
  kept <- lapply(result$kept, function(k) list(evaluation = k$evaluation, z = result$natural(k$par)))
  if (!is.null(now$trace) && nrow(now$trace)) {
    last <- now$trace[nrow(now$trace), ]
    trace$evaluation <- trace$evaluation + last$evaluation
    trace$seconds <- trace$seconds + last$seconds
    kept <- lapply(kept, function(k) within.list(k, evaluation <- evaluation + last$evaluation))
    trace$round <- rep(last$round + 1L, nrow(trace))
  } else {
    trace$round <- rep(1L, nrow(trace))
  }
  now$trace <- rbind(now$trace, trace)
  now$z_trace <- c(now$z_trace, kept)
  now
}

joint_step <- function(rows, now, s, state) {
  run_stage(state, "joint", {
    step <- learn_hyper(rows, now$z, now$model, s$joint, maxit = 20L)
    count_evaluations(state, "hyper", step)
    now$model <- model_with(now$model, step)
    now
  }, otherwise = now)
}

settled <- function(before, now) {
  max(abs(model_theta(before$model) - model_theta(now$model))) < 1e-3
}

vfe_jointly <- function(rows, now, s, state) {
  run_stage(state, "points", {
    problem <- first_that_works(function(jitter) {
      vfe_joint_problem(rows, now$z, now$model, jitter, s)
    }, max(now$jitter, 1e-8)) # lengthscales move: see learn_hyper()
    result <- run_minimise(problem, s$steps, "inducing points and hyperparameters")
    count_evaluations(state, "objective", result)
    found <- problem$natural(result$par)
    now$model <- model_with(now$model, found)
    take_result(now, c(result, list(z = found$z, natural = function(par) problem$natural(par)$z)))
  }, otherwise = now)
}

vfe_joint_problem <- function(data, z, model, jitter, s) {
  parameters <- free_parameters(model, s$joint)
  points <- vfe_points_problem(data, z, model, jitter, s$run)
  scratch <- new.env()
  in_points <- seq_along(points$start)
  natural <- function(par) c(parameters$natural(par[-in_points]), list(z = points$natural(par[in_points])))
  unit <- rep(points$unit, each = nrow(z))
  list(start = c(points$start, parameters$start), natural = natural, jitter = jitter, evaluate = function(par) {
    too_far <- parameters$too_far(par[-in_points])
    if (!is.null(too_far)) return(list(value = Inf, reason = too_far))
    now <- c(parameters$at(par[-in_points]), list(z = points$natural(par[in_points])))
    result <- objective_of(data, NULL, now$z, now, jitter, s$run, scratch)
    if (!is.null(result$reason)) return(result)
    result$gradient <- as.vector(result$gradient[, points$columns]) * unit
    hyper_slope(result, parameters, data$shift, now$noise)
  })
}
