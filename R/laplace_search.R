# What families learn: kernels by the evidence that is averaged over their parameters, and these by the penalised one.

# Points and rows that hyperparameters are learned with, and that starts and kernels are judged by; rounds in which the
# points are chosen anew; nats that two steps are to gain; the most points of a posterior of many rows; the least pivot
# of H, which is above 1 but for Student's t: towards a saddle log det H falls without end, and Laplace's evidence rises
# for nothing.
laplace_sizes <- list(points = 120L, rows = 3000L, few_points = 60L, few_rows = 1000L, rounds = 3L, gain = 1e-3,
                      most = 400L, pivot = 0.1, inputs = 10L)

# Priors, which do not fade: without them a class alone, or classes that a line parts, have no largest evidence, and a
# class says so little of a lengthscale that some come out short by chance. Those of the kernel are as with Gaussian
# noise (parameter_units()), but that the d lengthscales of a factor have a level in common, of which is said once
#   mean of log(l / spread) ~ N(log(3 sqrt(d)), 0.7^2),  log l - that ~ N(0, 0.7^2),  log variance ~ N(log 2, 1.5^2),
#   mean ~ N(start, 3^2),  log theta ~ N(0, 2^2)
# With Student's t all of f is in units of the response's spread, and log sigma ~ N(log(spread / 2), 2^2).
laplace_priors <- list(variance = 2, center = 3, theta = 2)

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

# Smooth kernels as they are, with a line beside, and with one lengthscale; tied and not. What has more parameters has
# more evidence at its best, by chance too: the evidence is averaged over them.
choose_terms <- function(rows, s, smooth, kernels, start, state) {
  if (!is.finite(smooth[[1L]]$value)) return(replace(smooth[[1L]], "kernels", list(kernels)))
  few <- nrow(rows$x) <= laplace_sizes$few_rows
  found <- c(smooth, line_beside(rows, s, smooth[[1L]], start, state))
  if (few && ncol(rows$x) >= laplace_sizes$inputs) {
    one <- one_scale(rows, s, smooth[[1L]], start, state)
    found <- c(found, list(one), line_beside(rows, s, one, start, state))
  }
  score <- vapply(found, `[[`, 0, "value")
  best <- found[[which.min(score)]]
  if (few && s$priors && is.null(state$stopped)) {
    state$so_far <- best
    score <- score + vapply(found, function(f) nats_told(rows, s, f, start), 0)
    best <- found[[which.min(score)]]
  }
  best$kernels <- kernels_with(kernels, found, score / nrow(rows$x), best$kernel)
  best
}

# Scores before were of fewer rows and points: differences from the best smooth kernel's are added.
kernels_with <- function(kernels, found, score, chosen) {
  if (is.null(kernels)) return(NULL)
  labels <- vapply(found, function(f) sum_label(f$kernel), "")
  score <- vapply(split(score, factor(labels, unique(labels))), min, 0)
  score <- kernels$score[kernels$chosen] + score - score[1L]
  kernels <- rbind(kernels, data.frame(kernel = names(score), score, chosen = FALSE, row.names = NULL)[-1L, ])
  kernels$chosen <- kernels$kernel == sum_label(chosen)
  kernels <- kernels[is.finite(kernels$score), ]
  `rownames<-`(kernels[order(kernels$score), ], NULL)
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
  value <- kernel_values(kernel)
  variances <- which(units$what == "variance")
  value[variances] <- c(0.1 * value[variances[1L]], 30 * units$unit[variances[2L]])
  line <- replace(now, c("kernel", "value"), list(as_kernel(set_values(kernel, value)), Inf))
  line <- climb_laplace(rows, s, line, start, state, tied = TRUE)
  c(list(line), if (isTRUE(line$value < now$value)) list(climb_laplace(rows, s, line, start, state, tied = FALSE)))
}

# One lengthscale for all inputs in their own units: where these are one unit, as in spectra and images, an input that
# hardly varies says little, which many lengthscales have to learn.
one_scale <- function(rows, s, now, start, state) {
  label <- sprintf("%s (isotropic)", now$kernel$label)
  kernel <- place_kernel(new_kernel(now$kernel$profile, label, NULL, NULL, NULL, isotropic = TRUE), rows$x)
  units <- parameter_units(kernel, rows$x, laplace_priors$variance * s$likelihood$unit^2)
  searches <- lapply(c(0.3, 1), function(scale) {
    at <- units$unit * ifelse(units$what == "lengthscale", scale, 1) * units$start
    one <- replace(start, c("kernel", "value"), list(as_kernel(set_values(kernel, at)), Inf))
    climb_laplace(rows, s, one, start, state, tied = FALSE)
  })
  searches[[which.min(vapply(searches, `[[`, 0, "value"))]]
}

# What minus the log evidence loses where it is averaged over the parameters, by Laplace's approximation: each direction
# of which the data say more than the prior has log sqrt(curvature / the prior's).
nats_told <- function(rows, s, found, start) {
  if (!is.finite(found$value)) return(Inf)
  z <- choose_greedy(rows$x, points_of(rows, s), found$kernel, s$run$memory)$z
  problem <- laplace_problem(rows, z, s, found, start, found$tied)
  curvature <- function(slope, step) {
    here <- slope(problem$start)
    columns <- vapply(seq_along(here), function(i) {
      (slope(problem$start + step * (seq_along(here) == i)) - here) / step
    }, here)
    (columns + t(columns)) / 2
  }
  H <- curvature(function(par) {
    slope <- problem$evaluate(par)$gradient
    if (is.null(slope)) NaN * par else slope
  }, 0.01)
  if (!all(is.finite(H))) return(Inf)
  R <- chol(curvature(function(par) -problem$prior(par)$slope, 1)) # the prior's are constant
  told <- backsolve(R, t(backsolve(R, H, transpose = TRUE)), transpose = TRUE)
  sum(log(pmax(eigen(told, TRUE, TRUE)$values, 1))) / 2
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
  now$tied <- tied
  m <- points_of(rows, s)
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

points_of <- function(rows, s) min(rows$points, nrow(rows$x), s$most)

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
  at_par <- function(par) {
    par <- unname(par)
    rest <- par[-seq_len(n_kernel)]
    if (!n_kernel) rest <- par
    list(kernel = parameters$at(parameters$start + drop(basis %*% par[seq_len(n_kernel)]))$kernel,
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
    at <- at_par(par)
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
  list(start = c(numeric(n_kernel), if (with_center) now$center, if (with_theta) log(now$theta)), natural = function(par) as_users_see(at_par(par)),
       prior = function(par) log_prior(at_par(par)), evaluate = evaluate)
}

kernel_logs <- function(kernel) log(kernel_values(kernel))

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

theta_middle <- function(likelihood) if (likelihood$name == "nb") 1 else likelihood$unit / 2
