# Fits whose rows have another likelihood than the Gaussian: Laplace's approximation on inducing points, in stages.
#
#   learn_laplace()   kernel, constant mean and theta by the penalised evidence
#   laplace_points()  greedy points of all rows, and moved_points() those that minimise the pF divergence
#   construct_laplace()  the posterior's mode on all rows, or from there the best normal distribution, and the object
#
# What is found is a Gaussian DTC posterior of noise 1, row weights W and responses f + g / W: prediction reads it as
# any other.

# Points and rows that hyperparameters are learned with, and that starts and kernels are judged by; rounds in which the
# points are chosen anew; nats that two steps are to gain; the most points of a posterior of many rows; the least pivot
# of H, which is above 1 but for Student's t: towards a saddle log det H falls without end, and Laplace's evidence rises
# for nothing.
laplace_sizes <- list(points = 120L, rows = 3000L, few_points = 60L, few_rows = 1000L, rounds = 3L, gain = 1e-3,
                      most = 400L, pivot = 0.1)

# Priors, which do not fade: without them a class alone, or classes that a line parts, have no largest evidence, and a
# class says so little of a lengthscale that some come out short by chance. Those of the kernel are as with Gaussian
# noise (parameter_units()), but that the d lengthscales of a factor have a level in common, of which is said once
#   mean of log(l / spread) ~ N(log(3 sqrt(d)), 0.7^2),  log l - that ~ N(0, 0.7^2),  log variance ~ N(log 2, 1.5^2),
#   mean ~ N(start, 3^2),  log theta ~ N(0, 2^2)
# With Student's t all of f is in units of the response's spread, and log sigma ~ N(log(spread / 2), 2^2).
laplace_priors <- list(variance = 2, center = 3, theta = 2)

# `stages`, `...`: as of run_fit().
fit_laplace <- function(data, settings, stages = laplace_stages, ...) {
  refuse_beside_likelihood(settings)
  settings$noise <- 1
  settings$likelihood[c("levels", "trials")] <- list(data$levels, !is.null(data$sites$size))
  if (settings$likelihood$name == "student") settings$likelihood$unit <- student_unit(data$sites)
  one_value(data, settings$likelihood)
  run_fit(data, settings, function(data, s, state) {
    stages(data, s, state)
  }, ...)
}

laplace_stages <- function(data, s, state) {
  learned <- learn_laplace_stage(data, s$learning, state)
  moved <- isTRUE(s$asked$aux_given)
  z <- laplace_points(data, learned, s$points, state, moved || isTRUE(s$posterior$neighbours > 0L))
  if (moved) z <- moved_points(data, learned, z, s, state)
  now <- try_near_rows(data, list(learned = learned, z = z, settings = s), state)
  construct_laplace(data, now$learned, now$z, now$settings, state, now$near, now$mode)
}

refuse_beside_likelihood <- function(s) {
  several <- !is_log_concave(s$likelihood) || !is.null(s$tol)
  vi <- is_variational(s$likelihood)
  held <- isTRUE(s$aux_given) && (several || vi || isTRUE(s$neighbours > 0) || aux_keeps_reference(s$aux))
  given <- c(noise = !is.null(s$noise), transform = !is.null(s$transform), aux = held,
             tol = vi && !is.null(s$tol), neighbours = (several || vi) && isTRUE(s$neighbours > 0),
             mean = !is.null(s$mean) && !identical(s$mean[[2L]], 1), hyper = s$hyper[1L] %in% c("pilot", "joint"))
  if (!any(given)) return(invisible())
  argument <- names(given)[given][1L]
  hint <- switch(argument, noise = , transform = "The likelihood says how responses scatter.",
                 hyper = "\"evidence\" and \"fixed\" are there.",
                 aux = paste("Points are moved for log-concave likelihoods, for approx = \"laplace\" and without `tol`",
                             "and `neighbours`, by what keeps no reference: aux_white(), aux_sor()."),
                 tol = "What is certified is the distance from Laplace's posterior: approx = \"laplace\" has it.",
                 neighbours = paste("Near rows are for log-concave likelihoods, for approx = \"laplace\" and without",
                                    "`tol`."),
                 mean = "Its mean is a constant, which is learned.")
  abort_input(argument, "given", sprintf("left out with family %s", s$likelihood$name), hint = hint)
}

one_value <- function(data, likelihood) {
  if (likelihood$name == "student") return(invisible())
  y <- data$sites$y
  size <- if (is.null(data$sites$size)) 1 else data$sites$size
  if (all(y == 0)) {
    tell_classed("one_value", paste(if (likelihood$name == "binomial") "No row is a success" else "All counts are 0",
                                    "in the data: the constant mean is kept where its prior has it."))
  } else if (likelihood$name == "binomial" && all(y == size)) {
    tell_classed("one_value", "No row is a failure in the data: the constant mean is kept where its prior has it.")
  }
}

# ---- learning -------------------------------------------------------------------------------------------------------

# list(model, center, theta, learned, kernels, trace, ...)
learn_laplace_stage <- function(data, s, state) {
  kernel <- if (is.null(s$kernel$profile)) place_kernel(kernel_of("matern52"), data$x) else s$kernel
  start <- laplace_start(data, s, kernel)
  found <- run_stage(state, "learn", learn_laplace(data, s, start, state), otherwise = state$so_far)
  if (is.null(found)) found <- start
  found$model <- new_model(found$kernel, 1)
  found$more_df <- c(isTRUE(s$center), s$likelihood$learned)
  found
}

laplace_start <- function(data, s, kernel) {
  units <- parameter_units(kernel, data$x, laplace_priors$variance * s$likelihood$unit^2)
  value <- kernel_values(kernel, units)
  value[is.na(value)] <- (units$unit * units$start)[is.na(value)]
  theta <- s$likelihood$theta
  list(kernel = name_lengthscales(kernel_with(kernel, value, units), data$x),
       center = if (isTRUE(s$center)) center_start(s$likelihood, data$sites) else as.double(s$center),
       theta = if (s$likelihood$learned) theta_middle(s$likelihood) else theta, trace = NULL, convergence = 0L,
       message = "nothing to optimise", value = NA_real_)
}

theta_middle <- function(likelihood) if (likelihood$name == "nb") 1 else likelihood$unit / 2

learn_laplace <- function(data, s, start, state) {
  if (!length(s$free) && !isTRUE(s$center) && !s$likelihood$learned) return(start)
  likelihood <- s$likelihood
  s$likelihood$approx <- "laplace"
  rows <- laplace_rows(data, s, laplace_sizes$rows, laplace_sizes$points)
  given <- is_composite(s$kernel) || !is.null(s$kernel$lengthscale) || !is.null(s$kernel$variance)
  found <- smooth_kernels(rows, s, start, state, given)
  # what the value was on fewer rows is left behind
  best <- tied <- climb_laplace(rows, s, replace(found$best, "value", Inf), start, state, tied = !given)
  state$so_far <- best
  if (!given && length(s$free) && length(best$kernel$lengthscale) > 1L) {
    apart <- climb_laplace(rows, s, best, start, state, tied = FALSE)
    if (apart$value < best$value) best <- apart
  }
  best$kernels <- found$kernels
  if (is.null(s$kernel$profile) && nrow(data$x) <= exact_rows && is.null(state$stopped)) {
    state$so_far <- best
    best <- line_or_not(best, line_beside(rows, s, tied, start, state), nrow(rows$x))
  }
  if (is_variational(likelihood)) {
    state$so_far <- best
    s$likelihood <- likelihood
    best <- climb_laplace(rows, s, best, start, state, tied = FALSE)
  }
  if (length(state$left_out)) tell_left_out(state$left_out, is.finite(min(best$value, found$best$value)))
  best
}

# `reasons`: of searches that were left out, for the mode cannot be computed where they begin.
tell_left_out <- function(reasons, learned) {
  text <- sprintf("%d search%s for hyperparameters could not begin (%s).", length(reasons),
                  if (length(reasons) == 1L) "" else "es", paste(unique(reasons), collapse = "; "))
  if (learned) return(tell_classed("search", paste(text, "What is best of the others is kept.")))
  warn_convergence(paste(text, "Nothing was learned: hyperparameters are where their priors have them."))
}

# list(best, kernels): of smooth kernels, where there is a choice, from short and from typical lengthscales.
smooth_kernels <- function(rows, s, start, state, given) {
  few <- laplace_rows(rows, s, laplace_sizes$few_rows, laplace_sizes$few_points)
  profiles <- if (is.null(s$kernel$profile)) c("matern52", "se", "matern32") else s$kernel$profile
  found <- lapply(profiles, function(profile) {
    one <- start
    if (is.null(s$kernel$profile)) one$kernel[c("profile", "label")] <- kernel_of(profile)[c("profile", "label")]
    best <- NULL
    for (scale in if (given || !length(s$free)) 1 else c(0.3, 1)) {
      try <- one
      if (scale != 1) try$kernel$lengthscale <- scale * one$kernel$lengthscale
      try <- climb_laplace(few, s, try, start, state, tied = !given)
      if (is.null(best) || try$value < best$value) best <- try
      if (is.null(state$so_far) || isTRUE(best$value < state$so_far$value)) state$so_far <- best
    }
    best
  })
  values <- vapply(found, `[[`, 0, "value")
  best <- which.min(values)
  kernels <- if (all(is.finite(values)) && length(profiles) > 1L) {
    data.frame(kernel = vapply(found, function(f) f$kernel$label, ""), score = values / nrow(few$x),
               chosen = seq_along(values) == best)[order(values), ]
  }
  list(best = found[[best]], kernels = kernels)
}

# The kernel with a linear mean (mean.R) beside it, whose variance is learned: inputs that go together and tell classes
# by small differences do so by a straight line, which smooth kernels have where lengthscales and variance are far from
# their priors. The search begins with large slopes beside a little of the rest.
line_beside <- function(rows, s, now, start, state) {
  kernel <- now$kernel
  kernel["of"] <- list(character())
  leaf <- replace(mean_leaf(rows$x, seq_len(ncol(rows$x)), NULL), "of", list(character()))
  kernel <- add_mean(kernel, leaf, rows$x)
  units <- parameter_units(kernel, rows$x, laplace_priors$variance * s$likelihood$unit^2)
  value <- kernel_values(kernel, units)
  variances <- which(units$what == "variance")
  value[variances] <- c(0.1 * value[variances[1L]], 30 * units$unit[variances[2L]])
  line <- replace(now, c("kernel", "value"), list(kernel_with(kernel, value, units), Inf))
  line <- climb_laplace(rows, s, line, start, state, tied = TRUE)
  if (isTRUE(line$value < now$value)) climb_laplace(rows, s, line, start, state, tied = FALSE) else line
}

# The better of two, and what was chosen among. Scores before were of fewer rows and points: differences are added.
line_or_not <- function(best, line, n) {
  if (!is.finite(line$value) || !is.finite(best$value)) return(best)
  better <- isTRUE(line$value < best$value)
  kernels <- best$kernels
  score <- kernels$score[kernels$chosen] + (line$value - best$value) / n
  kernels$chosen <- kernels$chosen & !better
  kernels <- rbind(kernels, data.frame(kernel = sum_label(line$kernel), score = score, chosen = better))
  if (better) best <- line
  best$kernels <- kernels[order(kernels$score), ]
  best
}

# At most so many of the rows, to be learned from with so many points.
laplace_rows <- function(data, s, most, points) {
  n <- nrow(data$x)
  most <- min(n, most, s$rows)
  rows <- if (most < n) sort(sample.int(n, most)) else seq_len(n)
  list(x = data$x[rows, , drop = FALSE], sites = take_sites(data$sites, rows), points = points)
}

# Minus the penalised evidence (or the variational bound) and the log prior, from `now`, at greedy points that are
# chosen anew in each round. `origin`: where the priors are; `tied`: all lengthscales by one factor. A value of Inf:
# ended before there was one. What cannot begin is as it was, and noted in state$left_out.
climb_laplace <- function(rows, s, now, origin, state, tied) {
  if (is.na(now$value)) now$value <- Inf
  if (!is.null(state$stopped)) return(now)
  m <- min(rows$points, nrow(rows$x), if (is.null(s$most)) Inf else s$most)
  step <- 0.1
  for (round in seq_len(if (m < nrow(rows$x)) laplace_sizes$rounds else 1L)) {
    z <- choose_greedy(rows$x, m, now$kernel, s$run$memory)$z
    problem <- laplace_problem(rows, z, s, now, origin, tied)
    result <- tryCatch(run_minimise(problem, s$steps, "hyperparameters", maxit = min(s$steps$maxit, 60L),
                                    reltol = 1e-5, first_step = step, enough = until_less_than(laplace_sizes$gain)),
                       pfdtc_error_start = function(e) e)
    if (inherits(result, "pfdtc_error_start")) {
      state$left_out <- c(state$left_out, result$reason)
      break
    }
    count_evaluations(state, "learn", result)
    if (is.na(result$value)) result$value <- now$value
    moved <- max(abs(result$par - problem$start), 0)
    step <- min(max(result$last_step, 1e-3), 0.1)
    now[c("kernel", "center", "theta")] <- problem$natural(result$par)
    now[c("value", "convergence", "message", "trace")] <- result[c("value", "convergence", "message", "trace")]
    if (!is.null(state$stopped) || moved < 0.05) break
  }
  now
}

# Ends a search in which two steps together gained so little.
until_less_than <- function(gain) {
  values <- c(Inf, Inf)
  function(par, value) {
    little <- values[1L] - value < gain
    values <<- c(values[2L], value)
    if (little) list(convergence = 0L, message = "converged")
  }
}

# Parameters: the free logs of the kernel (lengthscales as one where they are tied), the mean, log theta.
laplace_problem <- function(rows, z, s, now, origin, tied) {
  names <- parameter_names(now$kernel, s$columns)
  known <- if (is.null(s$kernel$profile)) "noise" else setdiff(names, s$free)
  parameters <- hyper_parameters(now$kernel, 1, s$columns, known)
  free <- parameters$free
  unit <- s$likelihood$unit
  prior <- laplace_prior(now$kernel, rows$x, unit, s$priors)
  center_sd <- laplace_priors$center * unit
  basis <- tie(c(kernel_parameters(now$kernel)$what, "noise")[free] == "lengthscale", tied)
  n_kernel <- ncol(basis)
  with_center <- isTRUE(s$center)
  with_theta <- s$likelihood$learned
  natural <- function(par) {
    par <- unname(par)
    rest <- par[-seq_len(n_kernel)]
    if (!n_kernel) rest <- par
    list(kernel = parameters$natural(parameters$start + drop(basis %*% par[seq_len(n_kernel)]))$kernel,
         center = if (with_center) rest[1L] else now$center,
         theta = if (with_theta) exp(rest[length(rest)]) else now$theta)
  }
  warm <- list2env(list(at = list()), parent = emptyenv())
  least <- NULL
  # a pass over so little is over before a second thread has begun, and there are a dozen in an evaluation
  run <- s$run
  if (nrow(rows$x) * nrow(z) < 2e5) run$threads <- 1L
  log_prior <- function(at) {
    beyond <- kernel_logs(at$kernel) - prior$middle
    pull <- drop(prior$precision %*% beyond)
    more <- c(if (with_center) (at$center - origin$center) / center_sd,
              if (with_theta) log(at$theta / theta_middle(s$likelihood)) / laplace_priors$theta)
    list(value = -(sum(beyond * pull) + sum(more^2)) / 2,
         slope = -c(crossprod(basis, pull[free]), more / c(if (with_center) center_sd,
                                                           if (with_theta) laplace_priors$theta)))
  }
  evaluate <- function(par) {
    at <- natural(par)
    logs <- parameters$start + drop(basis %*% par[seq_len(n_kernel)])
    too_far <- parameters$too_far(logs)
    if (!is.null(too_far)) return(list(value = Inf, reason = too_far))
    likelihood <- s$likelihood
    likelihood$theta <- at$theta
    if (with_theta && !(at$theta > 1e-6 * unit && at$theta < 1e8 * unit)) {
      return(list(value = Inf, reason = sprintf("%s is out of range", theta_name(likelihood))))
    }
    sites <- engine_sites(likelihood, rows$sites, at$center)
    e <- native_laplace(z, rows$x, sites, at$kernel, 1e-8, warm$at, want = 2L, control = run)
    if (e$status != 0L) return(list(value = Inf, reason = status_sentence(e$status)))
    warm$at <- e
    pivot <- min(diag(e$C))^2
    if (is.null(least)) least <<- min(laplace_sizes$pivot, 0.9 * pivot)
    if (pivot < least) return(list(value = Inf, reason = "the mode is all but a saddle"))
    prior <- log_prior(at)
    value <- e$evidence - e$penalty + sum(log_constant(likelihood, rows$sites)) + prior$value
    slope <- prior$slope + c(crossprod(basis, e$theta[free]), if (with_center) e$constant,
                             if (with_theta) theta_slope(likelihood, sites, e))
    list(value = -value, gradient = -slope)
  }
  list(start = c(numeric(n_kernel), if (with_center) now$center, if (with_theta) log(now$theta)), natural = natural,
       prior = function(par) log_prior(natural(par)), evaluate = evaluate)
}

kernel_logs <- function(kernel) log(kernel_values(kernel, kernel_parameters(kernel)))

laplace_prior <- function(kernel, x, unit, wanted) {
  units <- parameter_units(kernel, x, laplace_priors$variance * unit^2)
  precision <- diag(units$sd^-2, nrow(units))
  for (at in split(seq_len(nrow(units)), ifelse(units$what == "lengthscale", units$leaf, 0L))[-1L]) {
    d <- length(at)
    precision[at, at] <- precision[at, at] + (1 / d^2 - 1 / d) * units$sd[at[1L]]^-2
  }
  list(middle = log(units$unit) + units$middle, precision = if (wanted) precision else 0 * precision)
}

# A column a parameter: those that are tied share one.
tie <- function(lengthscale, tied) {
  basis <- diag(length(lengthscale))
  if (!tied || sum(lengthscale) < 2L) return(basis)
  cbind(as.double(lengthscale), basis[, !lengthscale, drop = FALSE])
}

# ---- the posterior --------------------------------------------------------------------------------------------------

laplace_points <- function(data, learned, s, state, few = FALSE) {
  if (is.matrix(s$inducing)) return(match_input_names(s$inducing, data$x, !isFALSE(data$frame$named)))
  n <- nrow(data$x)
  method <- if (is.null(s$inducing)) "greedy" else
    check_choice(s$inducing, setdiff(point_methods, "divergence"), "inducing")
  most <- if (n <= exact_rows && !few) n else min(laplace_sizes$most, n)
  m <- if (is.null(s$m)) most else check_points(s$m, n)
  run_stage(state, "start", choose_points(data$x, m, learned$kernel, method, min(s$run$memory, greedy_memory),
                                           control = s$run)$z,
            otherwise = choose_points(data$x, m, NULL, "random")$z)
}

how_points_start <- function(inducing) {
  if (is.matrix(inducing)) "given" else if (is.null(inducing)) "greedy" else inducing
}

# `near`, `start`: the near field and the mode on points, where the trial has made them.
construct_laplace <- function(data, learned, z, s, state, near = NULL, start = NULL) {
  likelihood <- s$learning$likelihood
  likelihood$theta <- learned$theta
  parts <- laplace_parts(data, likelihood, learned, z, s$run, state, start, function(f, sites) {
    neighbours <- s$posterior$neighbours
    if (!isTRUE(neighbours > 0L)) return(near)
    run_stage(state, "near", near_laplace(data, z, f, sites, learned$model, min(neighbours, nrow(data$x)), s$run),
              otherwise = NULL)
  })
  learned$model$center <- learned$center
  new_fit(data, learned, s, state, c(parts, list(
    m_asked = if (is.null(s$points$m)) nrow(z) else s$points$m,
    inducing_method = how_points_start(s$points$inducing), aux = if (isTRUE(s$asked$aux_given)) s$points$aux,
    trial = s$posterior$trial, likelihood = likelihood, theta = learned$theta)))
}

# What of a fit all its rows have a part in. `start`: factors that it had before; `near`: the near field, of the mode on
# points (offset and mean left out) and what the engine reads.
laplace_parts <- function(data, likelihood, learned, z, run, state, start = list(), near = function(f, sites) NULL) {
  variational <- is_variational(likelihood)
  found <- posterior_stage(state, function() {
    laplace_at(data, replace(likelihood, "approx", "laplace"), learned$center, learned$kernel, z,
               rounding_jitter(nrow(z)), run, start, want = 1L)
  })
  if (variational) {
    found <- variational_at(data, likelihood, learned$center, learned$kernel, z, found, state, run)
  }
  if (is.null(state$stopped) && !(found$decrement < 1e-6 * (1 + sqrt(abs(found$evidence))))) {
    warn_convergence(sprintf("The %s was not reached: the %s decrement is %.2g.", if (variational)
      "best normal distribution" else "posterior's mode", if (variational) "bound's" else "Newton", found$decrement))
  }
  sites <- engine_sites(likelihood, data$sites, learned$center)
  near <- near(found$f - sites$offset, sites)
  constant <- log_constant(likelihood, data$sites)
  value <- if (!variational) found$evidence - found$penalty + sum(constant) else
    variational_bound(found, sites, constant, prior_most(learned$model, data$x, z))
  list(evidence = value,
       factors = found[c("L", "C", "G", "beta", "residual", "jitter", "decrement", "steps")], inducing = z, m = nrow(z),
       near = near, neighbours = if (is.null(near)) 0L else near$neighbours, jitter = found$jitter,
       sum_of_sites = sites_sum(data$sites), unexplained = mean(pmax(found$W, 0) * found$left))
}
