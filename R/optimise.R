# Minimises objectives by L-BFGS with a strong Wolfe line search (Nocedal and Wright, 2006, algorithms 7.4, 3.5 and
# 3.6). A problem is list(start = numeric, evaluate = function(par)). evaluate() returns list(value, gradient), or
# list(value = Inf, reason) if it fails. After a failure the search goes back towards the last good point;
# optim("L-BFGS-B") would stop. After an interrupt, the best point so far is returned.
#
# minimise() returns list(par, value, convergence, message, evaluations, iterations, trace, kept, last_step, pairs,
# stopped). After an interrupt, R's time limit or a row source's error, `stopped` is list(convergence, message), else
# NULL. `convergence` is 0 (done), 1 (maxit), 2 (time), 3 (no value at the start), 51 (evaluations keep failing) or 52
# (interrupt or row source). `trace` has evaluation, objective (NA if it failed) and seconds. `kept` has
# list(evaluation, par) every `keep` iterations. `last_step`, the largest change of a coordinate in the last iteration,
# can be the `first_step` of another search. After each iteration enough(par, value) may end the search by returning
# list(convergence, message). `pairs` are the changes of par and gradient that two_loop() reads; a similar search may
# start with them. The search ends when the decrease of the objective that the pairs predict is below `least`.
minimise <- function(problem, maxit = 200, reltol = 1e-8, max_seconds = Inf, keep = 0L, first_step = 0.1,
                     progress = NULL, enough = NULL, pairs = list(), least = 0) {
  run <- list2env(list(value = numeric(), seconds = numeric(), best = list(par = problem$start, value = Inf),
                       kept = list(), iterations = 0L, last_step = first_step, pairs = pairs), parent = emptyenv())
  started <- proc.time()[["elapsed"]]

  evaluate <- function(par) {
    point <- problem$evaluate(par)
    good <- is.finite(point$value) && all(is.finite(point$gradient))
    if (!good) point <- list(value = Inf, reason = point$reason %||% "it is not a number")
    point$par <- par
    # After an interrupt between the next two lines, the longer vector is cut to the length of the shorter one.
    run$value <- c(run$value, if (good) point$value else NA)
    run$seconds <- c(run$seconds, proc.time()[["elapsed"]] - started)
    if (good && point$value < run$best$value) run$best <- point[c("par", "value")]
    if (!is.null(progress)) progress(length(run$value), run$iterations, run$best$value)
    point
  }
  ended_by <- function(condition) {
    stopped <- why_stopped(condition)
    c(stopped[c("convergence", "message")], list(stopped = stopped))
  }
  end <- tryCatch(lbfgs(evaluate, problem$start, maxit, reltol, first_step, pairs, least, started + max_seconds,
    on_iteration = function(iteration, point, step, pairs) {
      run$iterations <- iteration
      run$pairs <- pairs
      run$last_step <- max(abs(step))
      if (keep > 0L && iteration %% keep == 0L) {
        run$kept[[length(run$kept) + 1L]] <- list(evaluation = length(run$value), par = point$par)
      }
      if (!is.null(enough)) enough(point$par, point$value)
    }), interrupt = ended_by, error = ended_by)
  n <- min(length(run$value), length(run$seconds))
  if (!is.finite(run$best$value)) run$best$value <- NA_real_ # no value was found
  c(run$best, end, list(
    evaluations = n, iterations = run$iterations, kept = run$kept, last_step = run$last_step, pairs = run$pairs,
    trace = data.frame(evaluation = seq_len(n), objective = run$value[seq_len(n)], seconds = run$seconds[seq_len(n)])))
}

lbfgs <- function(evaluate, start, maxit, reltol, first_step, pairs, least, until, on_iteration) {
  point <- evaluate(start)
  if (!is.finite(point$value)) return(list(convergence = 3L, message = point$reason))
  if (!length(start)) return(list(convergence = 0L, message = "nothing to optimise"))
  first <- point$value
  small_steps <- blocked_steps <- 0L
  no_lower_value <- function() {
    blocked <- search$blocked
    if (is.null(blocked)) list(convergence = 0L, message = "no lower value can be found in double precision") else
      list(convergence = 51L, message = sprintf("no lower value can be found: further on, %s", blocked))
  }
  for (iteration in seq_len(maxit)) {
    direction <- -two_loop(point$gradient, pairs)
    slope <- sum(direction * point$gradient)
    if (!(slope < 0)) { # not a descent direction: use the gradient
      pairs <- list()
      direction <- -point$gradient
      slope <- sum(direction * point$gradient)
    }
    if (!(slope < 0)) return(list(convergence = 0L, message = "the gradient is zero"))
    if (length(pairs) && -slope / 2 < least) return(list(convergence = 0L, message = "converged"))
    # At first the curvature is unknown, so no coordinate moves further than first_step.
    step <- if (length(pairs)) 1 else first_step / max(abs(direction))
    search <- line_search(evaluate, point, direction, slope, step)
    new <- search$point
    if (is.null(new)) {
      if (length(pairs)) { # try the gradient as direction before giving up
        pairs <- list()
        next
      }
      return(no_lower_value())
    }
    s <- new$par - point$par
    y <- new$gradient - point$gradient
    if (isTRUE(sum(s * y) > 1e-10 * sqrt(sum(s^2) * sum(y^2)))) { # if the curvature is positive
      pairs <- utils::tail(c(pairs, list(list(s = s, y = y, rho = 1 / sum(s * y)))), 10L)
    }
    gained <- point$value - new$value
    end <- on_iteration(iteration, new, s, pairs)
    if (!is.null(end)) return(end)
    point <- new
    # After a failed evaluation the step may be short, so a small decrease does not mean convergence.
    small <- gained <= max(reltol * (first - point$value), rounding(point$value))
    blocked_steps <- if (small && !is.null(search$blocked)) blocked_steps + 1L else 0L
    small_steps <- if (small && is.null(search$blocked)) small_steps + 1L else 0L
    if (small_steps >= 3L) return(list(convergence = 0L, message = "converged"))
    if (blocked_steps >= 5L) return(no_lower_value())
    if (proc.time()[["elapsed"]] > until) return(list(convergence = 2L, message = "`max_seconds` was reached"))
  }
  list(convergence = 1L, message = "`maxit` was reached")
}

# Returns H g, with the L-BFGS approximation H of the inverse Hessian. `pairs` has list(s, y, rho = 1 / s'y): steps s
# and changes y of the gradient, oldest first.
two_loop <- function(g, pairs) {
  n <- length(pairs)
  if (!n) return(g)
  alpha <- numeric(n)
  for (i in n:1) {
    alpha[i] <- pairs[[i]]$rho * sum(pairs[[i]]$s * g)
    g <- g - alpha[i] * pairs[[i]]$y
  }
  g <- g * (sum(pairs[[n]]$s * pairs[[n]]$y) / sum(pairs[[n]]$y^2))
  for (i in seq_len(n)) g <- g + (alpha[i] - pairs[[i]]$rho * sum(pairs[[i]]$y * g)) * pairs[[i]]$s
  g
}

# Searches along `direction` from the point `from`, where the objective has this `slope`. Returns list(point, blocked).
# `point` is NULL, or has a value of at most from$value + 1e-4 step slope and, if possible, an absolute slope of at most
# 0.9 |slope|. `blocked` is the reason if a failed evaluation ended the search. `lo` is the point with the lowest value
# so far, `hi` the other end of the interval that is searched.
line_search <- function(evaluate, from, direction, slope, step) {
  lo <- list(step = 0, value = from$value, slope = slope)
  hi <- NULL
  for (i in 1:20) {
    point <- evaluate(from$par + step * direction)
    trial <- list(step = step, value = point$value, point = point,
                  slope = if (is.finite(point$value)) sum(point$gradient * direction))
    if (!is.finite(trial$value) || trial$value > from$value + 1e-4 * step * slope ||
        (lo$step > 0 && trial$value >= lo$value)) {
      hi <- trial
    } else {
      if (abs(trial$slope) <= -0.9 * slope) return(list(point = point))
      turned <- if (is.null(hi)) trial$slope >= 0 else trial$slope * (hi$step - lo$step) >= 0
      if (turned) hi <- lo
      lo <- trial
    }
    if (!is.null(hi) && abs(hi$step - lo$step) < 1e-10 * max(hi$step, lo$step)) break
    if (!is.null(hi) && -slope * abs(hi$step - lo$step) < rounding(from$value)) break
    # If an evaluation failed after a lower value was found, accept the lower value and go on with a new direction.
    if (lo$step > 0 && !is.null(hi$point$reason)) break
    step <- if (is.null(hi)) 4 * lo$step else between(lo, hi)
  }
  list(point = lo$point, blocked = hi$point$reason)
}

# Returns the largest difference of objectives that counts as rounding, so that a search from its minimum ends at once.
rounding <- function(value) 4 * .Machine$double.eps * abs(value)

# Returns the next step of line_search() between those of two points list(step, value, slope), by cubic interpolation,
# at least a tenth of the width from both. If the evaluation at `hi` failed, the next step is nearer to `lo`.
between <- function(lo, hi) {
  width <- hi$step - lo$step
  if (!is.finite(hi$value)) return(lo$step + 0.2 * width)
  d1 <- lo$slope + hi$slope - 3 * (hi$value - lo$value) / width
  root <- suppressWarnings(sign(width) * sqrt(d1^2 - lo$slope * hi$slope))
  at <- 1 - (hi$slope + root - d1) / (hi$slope - lo$slope + 2 * root)
  if (!is.finite(at)) at <- 0.5
  lo$step + width * min(max(at, 0.1), 0.9)
}

stopped_by_interrupt <- list(convergence = 52L, message = "interrupted")

stopped_by_time <- list(convergence = 2L, message = "R's time limit was reached")

# If condition e is an interrupt, R's time limit or a row source's error, returns why a search ended; else raises e.
why_stopped <- function(e) {
  if (inherits(e, "interrupt")) return(stopped_by_interrupt)
  if (inherits(e, "pfdtc_error_source")) return(list(convergence = 52L, message = "the row source failed", error = e))
  if (!is_time_limit(e)) stop(e)
  stopped_by_time
}

# Calls minimise() with the settings `steps`, shows progress, and counts evaluations of the stage `stage` in `state`.
run_minimise <- function(problem, steps, label, state, stage, maxit = steps$maxit, reltol = steps$reltol, ...) {
  line <- stage_line(label, steps$progress, after = 2, every = 0.5)
  progress <- function(evaluation, iteration, best) line(sprintf("iteration %d, objective %.6g", iteration, best))
  result <- minimise(problem, maxit = maxit, reltol = reltol, max_seconds = steps$until - proc.time()[["elapsed"]],
                     keep = steps$trace, progress = progress, ...)
  if (result$convergence == 3L) {
    abort_numerical(sprintf("The %s cannot be optimised: at the start, %s.", label, result$message),
                    class = "pfdtc_error_start", reason = result$message)
  }
  count_evaluations(state, stage, result)
  result
}

# Returns the Hessian at par by central differences of the gradient, or by forward differences if `here`, the gradient
# at par, is given. For central differences, a step of 0.002 gives errors of about 1e-6.
differences <- function(gradient, par, step = 0.002, here = NULL) {
  width <- if (is.null(here)) 2 * step else step
  columns <- vapply(seq_along(par), function(i) {
    move <- replace(numeric(length(par)), i, step)
    sides <- list(gradient(par + move), here %||% gradient(par - move))
    if (any(lengths(sides) != length(par))) {
      abort_numerical("The curvature of the log marginal likelihood at its maximum cannot be computed.")
    }
    (sides[[1L]] - sides[[2L]]) / width
  }, numeric(length(par)))
  columns <- matrix(columns, length(par))
  (columns + t(columns)) / 2
}

# ---- progress and time ----------------------------------------------------------------------------------------------

# Returns a function that shows the name of a stage in a line on stderr, at first after `after` seconds, then at most
# every `every` seconds. The line is cleared at the end of the function that calls stage_line().
stage_line <- function(label, on, after = 0, every = 0) {
  started <- proc.time()[["elapsed"]]
  shown <- -Inf
  clear <- function() if (is.finite(shown)) cat("\r", strrep(" ", 78), "\r", sep = "", file = stderr())
  do.call(on.exit, list(as.call(list(clear)), add = TRUE), envir = parent.frame())
  function(stage) {
    now <- proc.time()[["elapsed"]]
    if (isTRUE(on) && now - started >= after && now - shown >= every) {
      shown <<- now
      text <- sprintf("%s: %s, %.0f s", label, stage, now - started)
      cat("\r", formatC(text, width = -78), sep = "", file = stderr())
    }
    invisible()
  }
}

seconds_left <- function(max_seconds) {
  started <- proc.time()[["elapsed"]]
  function() max_seconds - (proc.time()[["elapsed"]] - started)
}

# Interrupts are allowed only inside stages. An interrupt (or R's time limit) ends its stage with the best result so
# far. Later stages then return their start values, so that there is always a fit to return, and state$stopped says why.

free_memory <- function(data) if (nrow(data$x) > many_rows) gc(FALSE)

# Evaluates the stage `expr`. If this or an earlier stage was interrupted, returns `otherwise` instead. Without
# `otherwise`, an interrupt ends the call.
run_stage <- function(state, name, expr, otherwise) {
  started <- proc.time()[["elapsed"]]
  stop_stage <- function(condition) {
    state$stopped <- why_stopped(condition)
    otherwise
  }
  value <- if (missing(otherwise)) allowInterrupts(expr) else if (!is.null(state$stopped)) otherwise else
    tryCatch(allowInterrupts(expr), interrupt = stop_stage, error = stop_stage)
  state$seconds[name] <- sum(state$seconds[name], proc.time()[["elapsed"]] - started, na.rm = TRUE)
  value
}

# Computes the posterior by make(), even if an interrupt ended an earlier stage; a second interrupt ends the call. If
# nothing was learned before, the first interrupt ends the call.
posterior_stage <- function(state, make) {
  if (is.null(state$stopped) && sum(state$evaluations) == 0) return(run_stage(state, "posterior", make()))
  run_stage(state, "posterior", make(), otherwise = allowInterrupts(make()))
}

# Evaluates `expr`, a series of fits. If one of them is interrupted or runs out of time, no further fit is made.
ended_together <- function(expr) {
  withCallingHandlers(expr, pfdtc_warning_convergence = function(w) {
    if (identical(w$fit$message, stopped_by_time$message)) stop("reached elapsed time limit", call. = FALSE)
    if (!identical(w$fit$message, stopped_by_interrupt$message)) return()
    stop(structure(class = c("interrupt", "condition"), list(message = "interrupted", call = NULL)))
  })
}

count_evaluations <- function(state, name, result) {
  state$evaluations[name] <- sum(state$evaluations[name], result$evaluations, na.rm = TRUE)
  if (is.null(state$stopped)) state$stopped <- result$stopped
}

# Returns an environment that records seconds, evaluations and rows of a fit's stages, and why the fit was stopped.
no_state <- function() {
  list2env(list(seconds = numeric(), evaluations = numeric(), rows = numeric()), parent = emptyenv())
}
