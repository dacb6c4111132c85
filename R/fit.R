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

# ---- settings -------------------------------------------------------------------------------------------------------

# Rows up to which the default posterior is the exact one: the factor of their kernel matrix takes 32 MB.
exact_rows <- 2000L

# What is left of the prior variance at the rows, on average, beside the noise, from which on a near field (or moving
# the points) changes predictions: below, held-out log densities differ by less than 0.001.
enough_unexplained <- 0.005

# Inducing points beside a near field where 200 leave more than five times the noise unexplained: on four data sets 50
# then predict as well as 200 or 400 do.
few_points <- 50L

# Rows near each prediction that a near field treats exactly, where the fit decides.
default_neighbours <- 40L

# `s$exact`: the posterior is that of all rows. Only where nothing was asked for that speaks of inducing points, and not
# under the paper's protocol.
choose_posterior <- function(data, s) {
  s$exact <- isTRUE(s$open) && s$keep_data && nrow(data$x) <= exact_rows && s$inducing_method == "greedy" &&
    8 * as.double(nrow(data$x))^2 <= getOption("pfdtc.max_memory", 2^32)
  s
}

# A near field where the points leave too much unexplained, unless the fit was told; points are moved where that is so
# and there is none.
choose_neighbours <- function(data, learned, start, s) {
  rho <- unexplained_share(data, learned, start)
  s$open <- isTRUE(s$open) && s$keep_data # a near field needs the rows
  if (is.null(s$neighbours)) s$neighbours <- if (isTRUE(s$open) && rho >= enough_unexplained) default_neighbours else 0L
  s$neighbours <- min(s$neighbours, nrow(data$x))
  # of lengthscales this short near rows tell nearly all there is
  if (isTRUE(s$open) && s$neighbours > 0L && rho > 5) s$m <- min(s$m, few_points)
  s$move <- isTRUE(s$move) || (rho >= enough_unexplained && s$neighbours == 0L)
  s$rho <- rho
  s
}

# mean of w E_nn / noise; without a greedy start not known, and taken to be large.
unexplained_share <- function(data, learned, start) {
  if (is.null(start$t)) return(Inf)
  w <- if (is.null(data$weights)) 1 else mean(data$weights)
  w * start$t / learned$noise
}

# Checks that need the data; kernel and noise come in units of y and leave in those of the cleaned y.
clean_settings <- function(data, s) {
  s$control <- check_control(s$control)
  # the paper's protocol has its inducing points moved, and nothing else
  s$move <- !is.null(s$control$maxit) || s$hyper[1L] %in% c("pilot", "joint") || isTRUE(s$aux_given) ||
    !identical(s$objective, "pf") || !is.null(s$tol)
  s$open <- identical(s$method, "pfdtc") && is.null(s$m) && is.null(s$tol) && is.null(s$inducing) &&
    !isTRUE(s$aux_given) && !s$hyper[1L] %in% c("pilot", "joint")
  if (!is.null(s$neighbours)) {
    s$neighbours <- check_count(s$neighbours, "neighbours", min = 0)
    if (s$neighbours > 0L && !isTRUE(s$keep_data)) {
      abort_input("keep_data", "FALSE", "TRUE where `neighbours` is asked for",
                  hint = "A near field reads the rows near each prediction: it needs them all.")
    }
  }
  # what more iterations bring hardly shows in predictions
  if (is.null(s$control$maxit)) s$control$maxit <- if (s$move) 200L else 50L
  s$hyper <- check_choice(s$hyper, c("evidence", "pilot", if (isTRUE(s$joint)) "joint", "fixed"), "hyper")
  if (inherits(s$inducing, "gp_fit")) {
    old <- check_fit(s$inducing, "inducing")
    if (is.null(old$inducing)) {
      abort_input("inducing", sprintf("a fit by %s()", old$method), "a fit that has inducing points")
    }
    if (ncol(old$inducing) != ncol(data$x)) {
      abort_input("inducing", sprintf("a fit with %d inputs", ncol(old$inducing)),
                  sprintf("a fit with the %d inputs of the data", ncol(data$x)))
    }
    if (is.null(s$kernel) || is.null(s$kernel$lengthscale) && is.null(s$kernel$variance)) s$kernel <- old$kernel
    if (is.null(s$noise)) s$noise <- old$noise
    s$inducing <- old$inducing
  }
  choose_kernel <- is.null(s$kernel) && s$hyper == "evidence"
  if (is.null(s$kernel) && s$hyper == "fixed") {
    abort_input("kernel", "none", "a kernel with lengthscales and variance",
                hint = "`hyper = \"fixed\"` learns nothing. Give it as in kernel_se(lengthscale = 1, variance = 1).")
  }
  s$kernel <- place_kernel(if (is.null(s$kernel)) kernel_se() else s$kernel, data$x)
  if (choose_kernel) s$kernel["profile"] <- list(NULL)
  if (!is.null(s$noise)) s$noise <- check_positive(s$noise, "noise", 1L)
  s$columns <- colnames(data$x)
  s$fixed <- check_fixed(s$control$fix, s$kernel, s$columns)
  s$free <- learned_names(s)
  if (length(s$free) && data$n == 1L) {
    abort_input("hyper", "one row to learn from", "\"fixed\", with kernel and noise given")
  }
  if (length(s$free) && diff(range(data$y)) == 0 && is.null(data$group)) {
    abort_input("y", "constant", "of at least two different values to learn from",
                hint = "With `hyper = \"fixed\"`, and kernel and noise given, it would do.")
  }
  unit <- data$scale^2
  if (!is.null(s$kernel$variance)) {
    s$kernel$variance <- check_beside_response(s$kernel$variance / unit, "kernel", "a variance")
  }
  if (!is.null(s$noise)) s$noise <- check_beside_response(s$noise / unit, "noise", "a variance")
  s
}

# Fourth powers of sds are computed with.
check_beside_response <- function(variance, argument, what) {
  if (!(variance >= 1e-60 && variance <= 1e60)) {
    abort_input(argument, sprintf("%.3g times that", variance),
                sprintf("%s within a factor of 1e60 of the square of the response's size", what))
  }
  variance
}

# Names of the hyperparameters to learn. What is fixed must be given.
learned_names <- function(s) {
  given <- c(rep(!is.null(s$kernel$lengthscale), length(s$kernel$inputs)), !is.null(s$kernel$variance),
             !is.null(s$noise))
  names <- parameter_names(s$kernel, s$columns)
  held <- if (s$hyper == "fixed") names else s$fixed
  lacking <- setdiff(held, names[given])
  if (length(lacking)) {
    what <- sub("[.].*", "", lacking[1L])
    argument <- if (what == "noise") "noise" else "kernel"
    by <- if (s$hyper == "fixed") "`hyper = \"fixed\"`" else "`fix`"
    abort_input(argument, sprintf("without a value for %s", lacking[1L]), "complete",
                message = sprintf("`%s` must be complete: it has no value for %s, which %s needs.", argument,
                                  lacking[1L], by),
                hint = if (what == "noise") "Give noise = <variance>." else
                  sprintf("Give it as in kernel_se(%s = <value>).", what))
  }
  setdiff(names, held)
}

clean_points <- function(data, s) {
  n <- data$n
  s$try_starts <- is.null(s$inducing) && s$objective == "pf" && s$aux$kind == "white"
  if (is.null(s$inducing)) s$inducing <- "greedy"
  if (is.character(s$inducing)) {
    s$inducing <- check_choice(s$inducing, point_methods, "inducing")
    s$m <- if (is.null(s$m)) min(200L, n) else check_count(s$m, "m", max = n)
    s$inducing_method <- s$inducing
  } else {
    z <- check_same_columns(check_matrix(s$inducing, "inducing"), data$x, "inducing", "the data")
    if (!nrow(z)) abort_input("inducing", "without rows", "a matrix of at least one inducing point")
    if (!is.null(s$m) && check_count(s$m, "m") != nrow(z)) {
      abort_input("m", s$m, sprintf("the %d rows of `inducing`, or left out", nrow(z)))
    }
    z <- match_input_names(z, data$x, !isFALSE(data$frame$named))
    s$inducing <- z
    s$m <- nrow(z)
    s$inducing_method <- "given"
  }
  s
}

# A matrix whose columns carry the inputs' names in another order is put in order.
match_input_names <- function(z, x, named) {
  names <- colnames(z)
  if (!is.null(names) && named) {
    lacking <- setdiff(colnames(x), names)
    if (length(lacking)) {
      abort_input("inducing", sprintf("one without %s", list_quoted(lacking)),
                  sprintf("a matrix with columns %s", list_quoted(colnames(x))),
                  hint = "Without column names they are taken by position.")
    }
    z <- z[, colnames(x), drop = FALSE]
  }
  dimnames(z) <- list(NULL, colnames(x))
  z
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

# ---- the object -----------------------------------------------------------------------------------------------------

# The exact posterior of all rows, by the verbs of a fit on inducing points: the rows are its points.
construct_exact <- function(data, learned, s, state) {
  done <- c(learned, list(convergence = 0L, message = "nothing to optimise", value = NA_real_))
  announce_memory(8 * as.double(nrow(data$x))^2, nrow(data$x))
  posterior <- posterior_stage(state, function() {
    native_exact(data$x, data$y, data$weights, done$kernel, done$noise, s$control)
  })
  new_fit(data, done, s, state, posterior, exact_evidence(data, posterior, done$noise), list(
    rows = data$x, inducing = data$x, m = nrow(data$x), m_asked = nrow(data$x), inducing_method = "rows",
    neighbours = 0L, small_n = if (length(s$free)) small_n_check(data, posterior)))
}

# NULL where there is so little noise that the rows' matrix has no factor: points and a jitter do then.
exact_if_possible <- function(data, learned, s, state) {
  tryCatch(construct_exact(data, learned, s, state), pfdtc_error_numerical = function(e) NULL)
}

construct_fit <- function(data, done, s, state) {
  if (isTRUE(s$neighbours > 0L)) return(construct_near(data, done, s, state))
  make <- function() {
    native_posterior(done$z, data$x, data$y, data$weights, done$kernel, done$noise, done$jitter, control = s$control,
                     fitc = s$method == "gp_fitc")
  }
  posterior <- posterior_stage(state, make)
  evidence <- switch(s$method, gp_fitc = fitc_evidence, gp_sor = sor_evidence, elbo)
  value <- evidence(data, posterior, done$noise)
  new_fit(data, done, s, state, posterior, value, list(
    inducing = done$z, m = nrow(done$z), m_asked = s$m,
    inducing_method = if (is.null(done$start)) s$inducing_method else done$start,
    neighbours = 0L, unexplained = s$rho,
    aux = if (s$objective == "pf") s$aux, moved = s$move, aux_points = done$aux_points, aux_rows = done$aux_rows,
    jitter = posterior$jitter))
}

# Far and near: what the points alone have (`factors`) is made where it is asked for, see far_part().
construct_near <- function(data, done, s, state) {
  # training neighbours make each row as near as predictions are; the pass costs too much for very many rows
  train <- if (nrow(data$x) <= near_training_rows) min(s$neighbours, nrow(data$x) - 1L) else 0L
  near <- posterior_stage(state, function() {
    near_posterior(data, done$z, done$kernel, done$noise, s$neighbours, train, jitter = done$jitter,
                   control = s$control)
  })
  new_fit(data, done, s, state, NULL, near_evidence(data, near, done$noise), list(
    inducing = done$z, m = nrow(done$z), m_asked = s$m,
    inducing_method = if (is.null(done$start)) s$inducing_method else done$start,
    neighbours = s$neighbours, unexplained = s$rho, aux = s$aux, moved = s$move, aux_points = done$aux_points,
    aux_rows = done$aux_rows, jitter = near$jitter, near = near))
}

near_training_rows <- 1e5

# After one interrupt the fit is still made; a second one ends it. Where nothing was to be learned there is nothing that
# the first could have spared: it ends the call.
posterior_stage <- function(state, make) {
  if (!is.null(state$stopped) || sum(state$evaluations) > 0) {
    return(run_stage(state, "posterior", make(), otherwise = allowInterrupts(make())))
  }
  started <- proc.time()[["elapsed"]]
  value <- allowInterrupts(make())
  state$seconds["posterior"] <- proc.time()[["elapsed"]] - started
  value
}

# `value`: log evidence of y as given, or its bound; `parts`: what is particular to the method.
new_fit <- function(data, done, s, state, posterior, value, parts) {
  unit <- data$scale^2
  kernel <- done$kernel
  kernel$variance <- kernel$variance * unit
  trace <- if (is.null(done$trace)) empty_trace() else done$trace
  if (length(unique(trace$round)) < 2L) trace$round <- NULL
  structure(class = c(s$method, "gp_fit"), c(list(
    call = s$call, method = s$method, kernel = kernel, noise = done$noise * unit), parts, list(
    posterior = posterior_kind(parts), factors = posterior, center = data$center, scale = data$scale,
    frame = make_frame(data, s$keep_data), data = if (s$keep_data) data, signature = data_signature(data),
    nobs = data$n, hyper = s$hyper, objective = done$value, elbo = value, df = length(s$free), sd_y = data$sd_y,
    trace = trace,
    z_trace = done$z_trace, convergence = done$convergence, message = done$message,
    evaluations = state$evaluations, seconds = state$seconds, pilot = done$pilot, learned = done$learned,
    kernels = done$kernels, control = s$control,
    version = utils::packageVersion("pfdtc"),
    terms = if (s$keep_data) data$terms else drop_environment(data$terms), na.action = data$na_action)))
}

# What a fit's posterior is made of: the exact one of its rows, the inducing points alone (far), or with rows near by.
posterior_kind <- function(parts) {
  if (!is.null(parts$rows)) "exact" else if (is.null(parts$near)) "far" else "far + near"
}

# The exact posterior of all rows, by whatever function it was fitted.
is_exact <- function(fit) identical(fit$posterior, "exact") && is.null(fit$chosen)

# What a fit has of a DTC posterior, which the theorem, the divergences and their like speak of: of far and near, that
# of its points alone; of the exact one, that with all rows as inducing points, from which it differs by a jitter of
# rounding size.
far_part <- function(fit) {
  if (!is_exact(fit) && is.null(fit$near)) return(fit)
  data <- needs_data(fit, "fit")
  z <- if (is_exact(fit)) data$x else fit$inducing
  noise <- fit$noise / fit$scale^2
  fit$factors <- native_posterior(z, data$x, data$y, data$weights, scaled_kernel(fit), noise, jitter = 1e-12,
                                  control = fit$control)
  fit$jitter <- fit$factors$jitter
  fit$inducing <- z
  fit$elbo <- elbo(data, fit$factors, noise)
  fit["rows"] <- fit["near"] <- list(NULL)
  if (is.null(fit$aux)) fit$aux <- default_aux()
  fit$posterior <- "far"
  fit
}

empty_trace <- function() data.frame(evaluation = integer(), objective = numeric(), seconds = numeric())

# log N(y; 0, Q + s2 I) of the rows as cleaned and weighted, from the posterior's sums.
log_density_dtc <- function(p, n, noise) {
  logdet_D <- 2 * sum(log(diag(p$C))) - nrow(p$C) * log(noise)
  -(n / 2 * log(2 * pi * noise) + logdet_D / 2 + (p$rss / noise + sum(p$beta^2)) / 2)
}

# ELBO of y as given; noise in the units of the cleaned y.
elbo <- function(data, p, noise) sor_evidence(data, p, noise) - p$t / (2 * noise)

# SoR's own log evidence, log N(y; 0, Q + s2 I).
sor_evidence <- function(data, p, noise) {
  log_density_dtc(p, nrow(data$x), noise) + merged_log_density(data$shift, noise) + data$shift$constant
}

# FITC's own log evidence, log N(y; 0, Q + diag(s2 / w_n + E_nn)): no bound of anything.
fitc_evidence <- function(data, p, noise) {
  log_density_dtc(p, nrow(data$x), noise) + p$log_weights / 2 - data$n * log(data$scale)
}

# ---- what predict() reads, in the units of the cleaned y -------------------------------------------------------------

scaled_kernel <- function(fit) {
  kernel <- fit$kernel
  kernel$variance <- kernel$variance / fit$scale^2
  kernel
}

# list(mean, var_sor, resid): the mean, the SoR variance, and what the inducing points leave of the prior variance. The
# exact posterior, of all rows or some, has nothing to tell apart: all its variance is in var_sor.
predict_posterior <- function(fit, x) {
  if (!is.null(fit$rows)) {
    p <- native_exact_predict(fit$factors, fit$rows, scaled_kernel(fit), x)
    return(list(mean = p$mean, var_sor = p$variance, resid = numeric(nrow(x))))
  }
  if (!is.null(fit$near)) {
    p <- predict_near(fit$near, fit$data, fit$inducing, scaled_kernel(fit), fit$noise / fit$scale^2, x,
                      fit$control)
    return(list(mean = p$mean, var_sor = p$var_far, resid = p$var_near))
  }
  p <- native_predict(fit$factors, fit$inducing, scaled_kernel(fit), fit$noise / fit$scale^2, x)
  list(mean = p$mean, var_sor = p$sor_variance, resid = p$unexplained)
}

predict_covariance <- function(fit, x) {
  if (!is.null(fit$rows)) return(native_exact_covariance(fit$factors, fit$rows, scaled_kernel(fit), x))
  if (!is.null(fit$near)) {
    return(covariance_near(fit$near, fit$data, fit$inducing, scaled_kernel(fit), fit$noise / fit$scale^2, x,
                           fit$control))
  }
  native_covariance(fit$factors, fit$inducing, scaled_kernel(fit), fit$noise / fit$scale^2, x,
                    sor = fit$method == "gp_sor")
}

fit_variance <- function(fit, p) if (fit$method == "gp_sor") p$var_sor else p$var_sor + p$resid
