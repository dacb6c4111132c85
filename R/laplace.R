# Fits whose rows have another likelihood than the Gaussian: Laplace's approximation on inducing points, in stages.
#
#   learn_laplace()   kernel, constant mean and theta by the penalised evidence
#   laplace_points()  greedy points of all rows, and moved_points() those that minimise the pF divergence
#   construct_laplace()  the posterior's mode on all rows, or from there the best normal distribution, and the object
#
# What is found is a Gaussian DTC posterior of noise 1, row weights W and responses f + g / W: prediction reads it as
# any other.

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
  value <- kernel_values(kernel)
  value[is.na(value)] <- (units$unit * units$start)[is.na(value)]
  theta <- s$likelihood$theta
  list(kernel = name_lengthscales(set_values(kernel, value), data$x),
       center = if (isTRUE(s$center)) center_start(s$likelihood, data$sites) else as.double(s$center),
       theta = if (s$likelihood$learned) theta_middle(s$likelihood) else theta, trace = NULL, convergence = 0L,
       message = "nothing to optimise", value = NA_real_)
}

learn_laplace <- function(data, s, start, state) {
  if (!length(s$free) && !isTRUE(s$center) && !s$likelihood$learned) return(start)
  likelihood <- s$likelihood
  s$likelihood$approx <- "laplace"
  rows <- laplace_rows(data, s, laplace_sizes$rows, laplace_sizes$points)
  given <- !has_one_factor(s$kernel) || !is.null(s$kernel$lengthscale) || !is.null(s$kernel$variance)
  found <- choose_smooth(rows, s, start, state, given)
  # what the value was on fewer rows is left behind
  best <- tied <- search_laplace(rows, s, replace(found$best, "value", Inf), start, state, tied = !given)
  state$so_far <- best
  if (!given && length(s$free) && length(best$kernel$lengthscale) > 1L) {
    apart <- search_laplace(rows, s, best, start, state, tied = FALSE)
    if (apart$value < best$value) best <- apart
  }
  best$kernels <- found$table
  if (is.null(s$kernel$profile) && nrow(data$x) <= exact_rows && is.null(state$stopped)) {
    state$so_far <- best
    best <- choose_terms(rows, s, c(list(tied), if (!best$tied) list(best)), found$table, start, state)
  }
  if (is_variational(likelihood)) {
    state$so_far <- best
    s$likelihood <- likelihood
    best <- search_laplace(rows, s, best, start, state, tied = FALSE)
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
