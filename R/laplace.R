# Fits whose rows have another likelihood than the Gaussian: Laplace's approximation on inducing points, in stages.
#
#   learn_laplace()   kernel, constant mean and theta by the penalised evidence (learn_laplace.R)
#   laplace_points()  greedy points of all rows
#   construct_laplace()  the posterior's mode on all rows, or from there the best normal distribution, and the object
#
# What is found is a Gaussian DTC posterior of noise 1, row weights W and responses f + g / W: prediction reads it as
# any other.

# `stages`, `...`: as of run_fit().
fit_laplace <- function(data, settings, stages = laplace_stages, ...) {
  refuse_beside_likelihood(settings)
  settings$noise <- 1
  settings$likelihood$levels <- data$levels
  if (settings$likelihood$name == "student") settings$likelihood$unit <- student_unit(data$sites)
  one_value(data, settings$likelihood)
  run_fit(data, settings, function(data, s, state) {
    stages(data, s, state)
  }, ...)
}

laplace_stages <- function(data, s, state) {
  learned <- learn_laplace_stage(data, s$learning, state)
  z <- laplace_points(data, learned, s$points, state, isTRUE(s$posterior$neighbours > 0L))
  now <- try_near_rows(data, list(learned = learned, z = z, settings = s), state)
  construct_laplace(data, now$learned, now$z, now$settings, state, now$near)
}

refuse_beside_likelihood <- function(s) {
  several <- !is_log_concave(s$likelihood) || !is.null(s$tol)
  vi <- is_variational(s$likelihood)
  given <- c(noise = !is.null(s$noise), transform = !is.null(s$transform), aux = isTRUE(s$aux_given),
             tol = vi && !is.null(s$tol), neighbours = (several || vi) && isTRUE(s$neighbours > 0),
             mean = !is.null(s$mean) && !identical(s$mean[[2L]], 1), hyper = s$hyper[1L] %in% c("pilot", "joint"))
  if (!any(given)) return(invisible())
  argument <- names(given)[given][1L]
  hint <- switch(argument, noise = , transform = "The likelihood says how responses scatter.",
                 hyper = "\"evidence\" and \"fixed\" are there.",
                 aux = "Its inducing points are not moved.",
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

# ---- the posterior --------------------------------------------------------------------------------------------------

laplace_points <- function(data, learned, s, state, beside_near = FALSE) {
  if (is.matrix(s$inducing)) return(match_input_names(s$inducing, data$x, !isFALSE(data$frame$named)))
  n <- nrow(data$x)
  method <- if (is.null(s$inducing)) "greedy" else check_choice(s$inducing, point_methods, "inducing")
  most <- if (n <= exact_rows && !beside_near) n else min(laplace_sizes$most, n)
  m <- if (is.null(s$m)) most else check_points(s$m, n)
  run_stage(state, "start", choose_points(data$x, m, learned$kernel, method, s$run$memory, control = s$run)$z,
            otherwise = choose_points(data$x, m, NULL, "random")$z)
}

how_points_start <- function(inducing) {
  if (is.matrix(inducing)) "given" else if (is.null(inducing)) "greedy" else inducing
}

# The posterior on points z: list as the engine has it, of all rows. `start`: what it had before.
laplace_at <- function(data, likelihood, center, kernel, z, jitter, control, start = list(), want = 0L, maxit = 200L) {
  found <- native_laplace(z, data$x, engine_sites(likelihood, data$sites, center), kernel, jitter, start, want = want,
                          maxit = maxit, control = control)
  stop_on_status(found, "The posterior's mode")
}

# From the mode, `found`, by ten steps at a time: an interrupt ends them with what they have come to.
variational_at <- function(data, likelihood, center, kernel, z, found, state, control) {
  step <- function(maxit) {
    found <<- laplace_at(data, likelihood, center, kernel, z, found$jitter, control, found, want = 1L, maxit = maxit)
  }
  step(1L)
  begun <- FALSE
  climb <- function() {
    begun <<- TRUE
    for (i in seq_len(variational_steps / 10L)) if (step(10L)$steps < 10L) break
  }
  run_stage(state, "variational", climb(), otherwise = if (!begun) allowInterrupts(climb()))
  found
}

variational_steps <- 300L

# The lower bound of log p(y), less what rounding, of f at the rows too, and the sums for averages may add to it.
# `most`: of k(x, x) at rows and points.
variational_bound <- function(found, sites, constant, most) {
  m <- length(found$beta)
  n <- length(found$f)
  slack <- rounding_slack(m, n) * most
  off <- rounding_of_f(found, slack, sites$offset)
  size <- sum(abs(native_likelihood(sites, found$f)[1L, ]), abs(found$W) * (found$q + found$left), abs(constant),
              found$beta^2) + n + m + logdet(found$C)
  found$evidence + sum(constant) - rounding_growth(m, n) * size - sum(abs(found$g) * off, abs(found$W) * slack) -
    found$quadrature
}

# What rounding may do to f at the rows, with its offset.
rounding_of_f <- function(at, slack, offset) {
  slack * weights_norm(at) + 4 * .Machine$double.eps * (1 + abs(at$f) + abs(offset))
}

# |alpha|, f(x) = k(x, Z) alpha
weights_norm <- function(at) sqrt(sum(solve_t(at$L, at$beta)^2))

construct_laplace <- function(data, learned, z, s, state, near = NULL) {
  likelihood <- s$learning$likelihood
  likelihood$theta <- learned$theta
  parts <- laplace_parts(data, likelihood, learned, z, s$run, state, near = function(f, sites) {
    neighbours <- s$posterior$neighbours
    if (!isTRUE(neighbours > 0L)) return(near)
    run_stage(state, "near", near_laplace(data, z, f, sites, learned$model, min(neighbours, nrow(data$x)), s$run),
              otherwise = NULL)
  })
  learned$model$center <- learned$center
  new_fit(data, learned, s, state, c(parts, list(
    m_asked = if (is.null(s$points$m)) nrow(z) else s$points$m,
    inducing_method = how_points_start(s$points$inducing), trial = s$posterior$trial, likelihood = likelihood,
    theta = learned$theta)))
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

# The fit of other rows: on the points it has, from where it is; on as many as it takes, where they left nothing
# unexplained.
laplace_again <- function(fit, data, state) {
  z <- fit$inducing
  if (is_laplace_limit(fit) && nrow(data$x) <= exact_rows) {
    z <- choose_points(data$x, nrow(data$x), fit$kernel, "greedy", fit$control$memory, control = fit$control)$z
    fit$m_asked <- nrow(z)
  }
  learned <- list(kernel = fit$kernel, center = fit$center, model = model_of(fit))
  near <- function(f, sites) {
    if (is.null(fit$near)) return(NULL)
    near_laplace(data, z, f, sites, learned$model, min(fit$neighbours, nrow(data$x)), fit$control,
                 rank = fit$near$rank)
  }
  parts <- laplace_parts(data, fit$likelihood, learned, z, fit$control, state,
                         if (length(fit$factors$beta) == nrow(z)) fit$factors else list(), near)
  fit[names(parts)] <- parts
  fit
}

# What the points leave of the prior variances, beside what the rows' likelihoods resolve.
describe_left <- function(fit) {
  if (fit$unexplained < 1e-8) return(words_for(fit$likelihood)[["limit"]])
  sprintf("which leave %s of W E unexplained at a row on average", format(signif(fit$unexplained, 2)))
}
