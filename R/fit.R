# Fits a model: learns the hyperparameters, follows the plan, and computes the posterior.

# Follows the plan: learns, makes the measurements that decide() asks for, and computes the posterior. `now` collects
# the results: data, learned, start (inducing points) and look (measurements).
fit_by_plan <- function(data, asked, state) {
  facts <- facts_of(data, asked)
  plan <- decide(facts, asked)
  steps <- if (is.null(asked$likelihood)) gaussian_steps else working_steps
  # Report the memory of an exact posterior that the user asked for.
  m <- plan$posterior$m
  if (plan$posterior$kind == "exact" && !identical(plan$next_look, "exact")) {
    announce_memory(8 * (1 + !is.null(plan$posterior$joint)) * as.double(m)^2, m)
  }
  free_memory(data)
  now <- list(data = data, learned = steps$learn(data, plan$learn, state))
  now$look <- list(learned = now$learned$exact)
  free_memory(data)
  while (!is.null(plan$next_look)) {
    now <- steps[[plan$next_look]](now, plan, state)
    plan <- decide(facts, asked, now$look)
  }
  steps$make(now, plan, state)
}

# The stages of a fit are `learn`, the measurements by the names that decide() gives them, and `make`.
gaussian_steps <- list(
  learn = function(...) learn_stage(...),
  exact = function(now, plan, state) { # the Cholesky factor is missing if the noise is too small
    now$fit <- exact_if_possible(now$data, now$learned, plan, state)
    now$look$exact <- !is.null(now$fit)
    now
  },
  points = function(now, plan, state) { # chooses inducing points and measures the residual prior variance
    now$start <- points_stage(now$data, now$learned, plan$posterior, state)
    now$look$rho <- unexplained_share(now$data, now$learned, now$start)
    if (!is.null(now$start$t)) {
      now$look$left <- now$start$t / mean(kernel_diagonal(now$learned$model$kernel, utils::head(now$data$x, 1000L)))
    }
    free_memory(now$data)
    now
  },
  trial = function(...) look_at_held_out(...),
  dense = function(...) look_at_rival(..., "dense", exact_trial),
  few = function(...) look_at_rival(..., "few", few_trial),
  make = function(now, plan, state) {
    if (!is.null(now$fit)) return(now$fit)
    if (plan$posterior$kind == "exact") return(construct_exact(now$data, now$learned, plan, state))
    near <- plan$posterior$neighbours > 0L
    # Merge equal rows. Otherwise each copy among neighbours counts as new information.
    data <- if (near) merge_all_equal_rows(now$data) else now$data
    if (!near && !is.null(now$alone)) now[c("learned", "start")] <- now$alone
    if (isTRUE(plan$posterior$more)) now$start <- points_stage(data, now$learned, plan$posterior, state)
    z <- utils::head(now$start$z, plan$posterior$m)
    done <- optimise_stage(data, now$learned, z, plan$posterior, state)
    free_memory(data)
    if (is.null(data$whole)) construct_fit(data, done, plan, state) else construct_from_source(data, done, plan, state)
  })

# These stages fit a non-Gaussian likelihood by Laplace's approximation on inducing points.
#
#   learn_laplace()      learns kernel, constant mean and theta by the penalised log marginal likelihood
#   working_points()     chooses greedy points, which are moved if an auxiliary distribution is given
#   construct_laplace()  finds the posterior mode from all rows; with approx = "vi" it continues to the normal
#                        distribution with the largest variational bound; then it makes the fit
#
# The result is a Gaussian DTC posterior with noise 1, row weights W and responses f + g / W, which predict() treats
# like any other posterior.

working_steps <- list(
  learn = function(...) learn_laplace_stage(...),
  points = function(now, plan, state) { # points move if the plan says so
    z <- working_points(now$data, now$learned, plan$posterior, plan$posterior$m, state)
    if (plan$posterior$move) { # by the pF divergence from the exact GP of the working rows at the mode
      learned <- now$learned
      x <- now$data$x
      likelihood <- replace(plan$learn$likelihood, "theta", list(learned$theta))
      z <- run_stage(state, "points", {
        sites <- engine_sites(likelihood, now$data$sites, learned$center)
        f <- laplace_at(x, sites, learned$kernel, z, rounding_jitter(nrow(z)), plan$run)$f
        rows <- c(working_rows(x, sites, f - sites$offset), n = nrow(x))
        optimise_stage(rows, learned["model"], z, replace(plan$posterior, "try_starts", FALSE), state)$z
      }, otherwise = z)
    }
    now$start <- list(z = z)
    now$look$rho <- NA_real_
    now
  },
  trial = function(...) look_at_held_out_working(...),
  make = function(now, plan, state) {
    construct_laplace(now$data, now$learned, now$start$z, plan, state, now$near, now$mode)
  })

# Completes the arguments: noise 1, and the likelihood with its unit and parameters from the responses.
complete_likelihood <- function(data, asked) {
  refuse_with_likelihood(asked)
  check_own_family(asked$likelihood, data$sites$y)
  response <- response_of(asked)
  refuse_if(has_labels(response) && !is.null(data$offset), "offset", "is not available for several classes",
            hint = "It would add to all classes alike.")
  asked$noise <- 1
  sites <- data$sites
  asked$likelihood[c("levels", "trials")] <- list(data$levels, response$reads == "classes" && !is.null(sites$size))
  known <- if (has_ends(response)) known_numbers(sites$y, sites$size) else sites$y
  # Set the unit of f, in which its priors are. For ordered classes the noise is the unit.
  asked$likelihood$unit <- if (is.null(response$link$unit) || is_ordered(response)) 1 else
    response$link$unit(replace(sites, "y", list(known)))
  if (is.function(response$middle)) {
    w <- if (is.null(sites$weight)) 1 else sites$weight
    shapes <- length(as_response(asked$likelihood)$shape)
    asked$likelihood$middle <- utils::head(response$middle(sites, w, data$levels), shapes)
    if (!length(asked$likelihood$middle)) asked$likelihood[c("learned", "theta")] <- list(FALSE, numeric())
  }
  if (!is.null(response$least)) asked$likelihood$least <- response$least(sites)
  y <- sites$y
  size <- if (is.null(sites$size)) 1 else sites$size
  classes <- response$reads == "classes"
  one <- if (is_ordered(response)) {
    if (all(y == y[1L])) sprintf("All responses are \"%s\"", data$levels[y[1L]])
  } else if (all(y == 0) && (classes || response$reads == "counts")) {
    if (classes) "All responses are failures" else "All counts are 0"
  } else if (classes && all(y == size)) {
    "All responses are successes"
  }
  if (!is.null(one)) tell_classed("one_value", paste0(one, ". The constant mean stays at its prior mean."))
  asked
}

refuse_with_likelihood <- function(s) {
  response <- response_of(s)
  labels <- has_labels(response)
  vi <- response$approx == "vi"
  tol <- !is.null(s$tol)
  several <- !response$concave || tol || labels
  near <- isTRUE(s$neighbours > 0)
  refuse <- function(argument, given, hint) {
    if (given) abort_input(argument, sprintf("is not available with family %s", response$label), hint = hint)
  }
  scatter <- "The likelihood describes how responses scatter."
  refuse("noise", !is.null(s$noise), scatter)
  refuse("transform", asks_for_transform(s$transform), scatter)
  refuse("aux", !is.null(s[["aux"]]) && (several || vi || near || aux_keeps_reference(s[["aux"]])), paste(
    "Points are moved for log-concave likelihoods with approx = \"laplace\", without `tol` and `neighbours`, under",
    "aux_white(), aux_sor() and others that keep no reference."))
  refuse("tol", tol && (vi || labels), if (labels) "With several classes, use `m` and then certify()." else
    "Certificates are about Laplace's posterior. Use approx = \"laplace\".")
  refuse("neighbours", near && (several || vi), paste(
    "Neighbours are for log-concave likelihoods of one latent function with approx = \"laplace\", without `tol`."))
  refuse("mean", !is.null(s$mean) && !identical(s$mean[[2L]], 1), "The mean is a constant, which is learned.")
  refuse("hyper", s$hyper %in% c("pilot", "joint"), "Use \"evidence\" or \"fixed\".")
  refuse("inducing", identical(s$inducing, "divergence"), "Use another method of inducing_points().")
}

# ---- the posterior --------------------------------------------------------------------------------------------------

working_points <- function(data, learned, s, m, state) {
  if (is.matrix(s$inducing)) return(s$inducing)
  if (nrow(data$x) > dense_rows) learned$kernel <- smooth_part(learned$kernel)
  run_stage(state, "start", choose_points(data$x, m, learned$kernel, s$inducing, min(s$run$memory, greedy_memory),
                                          control = s$run)$z,
            otherwise = choose_points(data$x, m, NULL, "random")$z)
}

# Builds the fit at the mode. `near`, the posterior with neighbours, and `start`, the mode on points, come from the
# comparison with neighbours, if it was made.
construct_laplace <- function(data, learned, z, plan, state, near = NULL, start = NULL) {
  likelihood <- plan$learn$likelihood
  likelihood$theta <- learned$theta
  sites <- engine_sites(likelihood, data$sites, learned$center)
  if (has_labels(response_of(plan$learn))) check_size_of_classes(functions_of_f(likelihood), nrow(z), nrow(data$x))
  parts <- laplace_parts(data, sites, learned, z, plan$run, state, start, function(f) {
    neighbours <- plan$posterior$neighbours
    if (!is.null(near) || neighbours == 0L) return(near)
    run_stage(state, "near", near_laplace(data, z, f, sites, learned$model, neighbours, plan$run), otherwise = NULL)
  })
  learned$model$center <- if (has_labels(response_of(plan$learn)))
    stats::setNames(learned$center, likelihood$levels) else learned$center
  new_fit(data, learned, plan, state, c(parts, list(
    m_asked = if (is.null(plan$again$m)) nrow(z) else plan$posterior$m,
    inducing_method = plan$posterior$inducing_method, aux = if (plan$posterior$move) plan$posterior$aux,
    trial = plan$posterior$trial, likelihood = likelihood, theta = learned$theta)))
}

# Refuses a posterior of q contrasts on m points that takes too much memory, and reports long times. There are about
# eight Newton steps, each with a Cholesky factor and products of all pairs of contrasts, at 1e10 operations a second.
check_size_of_classes <- function(q, m, n) {
  size <- as.double(q) * m
  check_memory(8 * (3 * size^2 + as.double(n) * q^2), sprintf("%d classes on %d inducing points", q + 1L, m))
  seconds <- 8 * (size^2 * n + size^3 / 3) / 1e10
  if (seconds > class_points[["seconds"]]) {
    tell_classed("classes", sprintf(
      "%d classes on %d inducing points take about %.0f minutes. A smaller `m` is faster.", q + 1L, m,
      ceiling(seconds / 60)))
  }
}
