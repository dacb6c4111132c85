# A sparse fit in stages, each usable alone:
#
#   learn_evidence()  kernel and noise by the evidence (learn.R), or
#   learn_hyper()     by VFE at fixed points (the paper's pilot)
#   points_stage()    where the inducing points start
#   optimise_points() pF-DTC (any auxiliary distribution) or VFE in Z
#   construct_fit()   posterior on all rows, and the object
#
# Where nothing says what the posterior is to be, choose_posterior() does: of few rows the exact one.
#
# Interrupts are let in only inside the stages. One ends the stage it meets with the best so far; the stages after it
# then take their starting values, so that there is always a fit to return. R's own time limit is treated alike.
# state$stopped says which it was: NULL, or list(convergence, message).

# `settings`: list(method, objective = "pf", "vfe" or "none", kernel, noise, m, hyper, aux, inducing, control,
# keep_data)
fit_sparse <- function(data, settings) {
  run_fit(data, settings, function(data, settings, state) {
    if (!is.null(settings$tol)) return(fit_to_tolerance(data, settings, state))
    settings <- choose_posterior(data, clean_points(data, settings))
    learned <- learn_stage(data, settings, state)
    exact <- if (settings$exact) exact_if_possible(data, learned, settings, state)
    if (!is.null(exact)) return(exact)
    start <- points_stage(data, learned, settings, state)
    settings <- choose_neighbours(data, learned, start, settings)
    # equal rows beside one another would each be taken for news of what the points do not know
    if (settings$neighbours > 0L) data <- merge_the_few(data)
    z <- start$z[seq_len(min(nrow(start$z), settings$m)), , drop = FALSE]
    done <- optimise_stage(data, learned, z, settings, state)
    fit <- construct_fit(data, done, settings, state)
    if (settings$keep_reference) {
      fit$reference <- auxiliary_reference(fit, data, done, state)
      fit$seconds <- state$seconds
    }
    fit
  })
}

run_fit <- function(data, settings, stages) {
  suspendInterrupts({
    state <- new.env(parent = emptyenv())
    state$seconds <- state$evaluations <- numeric()
    fit <- stages(data, clean_settings(data, settings), state)
  })
  if (!is.null(state$stopped)) {
    fit[c("convergence", "message")] <- state$stopped
    warn_convergence(sprintf("The fit was ended early (%s) after %d evaluations: this is the best so far%s.",
                             state$stopped$message, as.integer(sum(state$evaluations)),
                             if (is.null(fit$tol)) "" else paste0(", ", describe_tolerance(fit))), fit = fit)
  } else if (!is.null(fit$tol) && !fit$tol$met) {
    warn_convergence(unreached_text(fit), fit = fit)
  }
  warn_small_n(fit$small_n, fit$nobs)
  fit
}

stopped_by_interrupt <- list(convergence = 52L, message = "interrupted")
stopped_by_time <- list(convergence = 2L, message = "R's time limit was reached")

# One stage: its value, or `otherwise` (evaluated only then) after an interrupt, in it or before it.
run_stage <- function(state, name, expr, otherwise) {
  started <- proc.time()[["elapsed"]]
  value <- if (!is.null(state$stopped)) {
    otherwise
  } else {
    tryCatch(allowInterrupts(expr), interrupt = function(i) {
      state$stopped <- stopped_by_interrupt
      otherwise
    }, error = function(e) {
      if (!is_time_limit(e)) stop(e)
      state$stopped <- stopped_by_time
      otherwise
    })
  }
  state$seconds[name] <- sum(state$seconds[name], proc.time()[["elapsed"]] - started, na.rm = TRUE)
  value
}

count_evaluations <- function(state, name, result) {
  state$evaluations[name] <- sum(state$evaluations[name], result$evaluations, na.rm = TRUE)
  if (is.null(state$stopped)) state$stopped <- result$stopped
}

# ---- hyperparameters ------------------------------------------------------------------------------------------------

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

# Random rows as drawn before merging, each kept once.
random_points <- function(data, m) {
  rows <- sample.int(data$n, m)
  if (!is.null(data$group)) rows <- unique(data$group[rows])
  z <- data$x[rows, , drop = FALSE]
  z[!duplicated(z), , drop = FALSE]
}

# A random part of the rows, where control asks for one: what merging adds to the density is left out.
optimise_rows <- function(data, control) {
  n <- nrow(data$x)
  if (is.null(control$optimise_rows) || control$optimise_rows >= n) return(data)
  rows <- sort(sample.int(n, control$optimise_rows))
  list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = data$weights[rows], n = length(rows), rows = rows,
       group = NULL, shift = list(constant = 0, rows = 0, ss = 0))
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

run_minimise <- function(problem, control, label, maxit = control$maxit, reltol = control$reltol, first_step = 0.1,
                         enough = NULL) {
  progress <- if (control$progress) progress_line(label)
  if (!is.null(progress)) on.exit(progress(done = TRUE))
  result <- minimise(problem, maxit = maxit, reltol = reltol, max_seconds = control$max_seconds,
                     keep = control$trace, first_step = first_step, progress = progress, enough = enough)
  if (result$convergence == 3L) {
    abort_numerical(sprintf("The %s cannot be optimised: at the start, %s.", label, result$message))
  }
  result
}

# ---- inducing points ------------------------------------------------------------------------------------------------

# list(z, t): the points and, of greedy ones, what they leave unexplained of the prior variance of a row on average.
points_stage <- function(data, learned, s, state) {
  if (is.matrix(s$inducing)) return(list(z = s$inducing))
  run_stage(state, "start", {
    chosen <- choose_points(data$x, min(s$m, nrow(data$x)), learned$kernel, s$inducing, s$control$memory,
                            c(data[c("y", "weights")], learned["noise"]), s$control)
    list(z = chosen$z, t = if (s$inducing == "greedy") chosen$t[length(chosen$t)] / chosen$looked)
  }, otherwise = list(z = choose_points(data$x, min(s$m, nrow(data$x)), NULL, "random")$z))
}

# list(kernel, noise, z, objective, trace, z_trace, convergence, message, jitter)
start_now <- function(learned, z, s) {
  list(kernel = learned$kernel, noise = learned$noise, z = z, pilot = learned$pilot, learned = learned$learned,
       kernels = learned$kernels, value = NA_real_,
       trace = NULL, z_trace = NULL, jitter = if (is.null(s$control$jitter)) 1e-12 else s$control$jitter,
       convergence = 0L, message = "nothing to optimise")
}

optimise_stage <- function(data, learned, z, s, state) {
  now <- start_now(learned, z, s)
  if (!is.null(state$stopped)) return(now)
  if (s$objective == "none") return(now)
  if (!s$move) return(utils::modifyList(now, list(message = unmoved_message(s))))
  rows <- optimise_rows(data, s$control)
  if (s$objective == "vfe" && s$hyper == "joint" && length(s$free)) return(vfe_jointly(rows, now, s, state))
  if (s$try_starts) {
    started <- proc.time()[["elapsed"]]
    trial <- better_start(data, rows, now, s, state)
    now <- trial$now
    s$control$maxit <- s$control$maxit - trial$iterations
    s$control$max_seconds <- max(0, s$control$max_seconds - (proc.time()[["elapsed"]] - started))
  }
  rounds <- if (s$hyper == "joint" && length(s$free)) 5L else 1L
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

unmoved_message <- function(s) {
  if (isTRUE(s$neighbours > 0L)) return("points kept where they start: the rows near by do the rest")
  "points kept where they start: moving them would not change predictions"
}

# No start is best for few and for many points: a few iterations from each of two, greedy in the prior variance and
# greedy in the divergence, tell which to go on from. Where d^2 of both differs by less than 5 the points explain nearly
# everything, and the first ends at smaller errors. list(now, iterations): they count among `maxit`.
better_start <- function(data, rows, now, s, state) {
  s$control$maxit <- min(5L, s$control$maxit %/% 20L)
  s$label <- "starting points"
  started <- proc.time()[["elapsed"]]
  one <- optimise_points(rows, now, s, state)
  s$control$max_seconds <- s$control$max_seconds - (proc.time()[["elapsed"]] - started)
  two <- if (is.null(state$stopped) && s$control$max_seconds > 0) second_start(data, rows, now, s, state)
  if (is.null(two)) return(list(now = one, iterations = s$control$maxit))
  second <- isTRUE(two$value < one$value - 5 * now$noise^2)
  # `trace` is that of the better one
  lost <- max(0L, nrow(if (second) one$trace else two$trace))
  state$evaluations["objective"] <- state$evaluations[["objective"]] - lost
  state$evaluations["other start"] <- lost
  list(now = if (second) two else one, iterations = 2L * s$control$maxit)
}

# NULL where it cannot be had: there is another.
second_start <- function(data, rows, now, s, state) {
  tryCatch({
    toward <- c(data[c("y", "weights")], now["noise"])
    z <- run_stage(state, "start", choose_points(data$x, min(s$m, nrow(data$x)), now$kernel, "divergence",
                                                 s$control$memory, toward, s$control)$z, otherwise = NULL)
    if (is.null(z) || nrow(z) < nrow(now$z)) return(NULL)
    now$z <- z
    now$start <- "divergence"
    optimise_points(rows, now, s, state)
  }, pfdtc_error_numerical = function(e) NULL)
}

# Z at fixed hyperparameters. `watch` ends it when the certificate is good enough, see new_watch().
optimise_points <- function(rows, now, s, state, watch = NULL) {
  schedule <- if (s$objective == "pf" && s$aux$kind == "refresh") s$aux$every else Inf
  left <- s$control$maxit
  aux <- s$aux
  step <- 0.1
  repeat {
    result <- run_stage(state, "points", {
      make <- if (s$objective == "pf") {
        nu <- make_auxiliary(aux, rows, now$kernel, now$noise, nrow(now$z), s$control, s$reference)
        function(jitter) pf_problem(rows, now$z, now$kernel, now$noise, nu, jitter, s$control)
      } else {
        function(jitter) vfe_points_problem(rows, now$z, now$kernel, now$noise, jitter, s$control)
      }
      if (s$objective == "pf") now[c("aux_points", "aux_rows")] <- list(nu$U, nu_rows(nu, rows))
      problem <- first_that_works(make, now$jitter)
      now$jitter <- problem$jitter
      result <- run_minimise(problem, s$control, if (is.null(s$label)) "inducing points" else s$label,
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
    step <- result$last_step # a renewed nu moves the optimum a little: go on with steps of the same size
    if (!is.null(state$stopped) || is.infinite(schedule) || left <= 0L || result$iterations < 2L) return(now)
    if (!is.null(watch) && watch$ended) return(now)
    aux <- aux_on_points(now$z)
  }
}

# The rows of all the data that the exact posterior of some is made of; NULL for a SoR posterior.
nu_rows <- function(nu, data) if (is.null(data$rows)) nu$rows else data$rows[nu$rows]

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

# The SoR posterior on points that need not be rows.
aux_on_points <- function(z) structure(list(kind = "points", z = z), class = "pfdtc_aux")

joint_step <- function(rows, now, s, state) {
  run_stage(state, "joint", {
    step <- learn_hyper(rows, now$z, now$kernel, now$noise, s, maxit = 20L)
    count_evaluations(state, "hyper", step)
    now$kernel <- step$kernel
    now$noise <- step$noise
    now
  }, otherwise = now)
}

settled <- function(before, now) {
  theta <- function(v) log(c(v$kernel$lengthscale, v$kernel$variance, v$noise))
  max(abs(theta(before) - theta(now))) < 1e-3
}
