# Near rows or points alone for classes and counts, by rows held out.
#
# Few points carry no short lengthscales, so none are learned with them. But the mode on points is the posterior of
# Gaussian responses (laplace_near.R), and learn.R learns of those, row by row given the nearest, at any lengthscale.
# They were made at a mode that is too smooth, and are drawn towards it: the variance comes out too small (as in
# penalised quasi-likelihood: Breslow and Clayton 1993). Hence variances times 3, 9, ... until the log density of rows
# held out is less than the best by more than the standard error of that; and points alone where near rows do not gain
# a thousandth.

# Rows whose sums stand for those of all while variances are tried, and rows held out; inducing points beside near rows;
# the step (root mean square) after which f is where it stays, and how many a variance is given (of 50,000 flights the
# next, of a quarter of the first, is worth .0005 and takes 2 of 13 seconds); the largest f at which responses are made
# to learn from: where it is large they say nothing but that; how often the variance is raised, and by what; what near
# rows are to gain; the factor within which theta is learned anew.
near_trial <- list(rows = 8000L, held = 5000L, points = 200L, settled = 1, steps = 3L, largest = 4, raised = 5L,
                   by = 3, gain = 0.001, theta = 10)

# `now`: list(learned, z, settings), and mode, that on points, and near, where that is chosen.
try_near_rows <- function(data, now, state) {
  s <- now$settings
  n <- nrow(data$x)
  likelihood <- s$learning$likelihood
  undecided <- is.null(s$posterior$neighbours) && s$posterior$open && isTRUE(s$keep_data) && n > exact_rows &&
    n <= near_training_rows && is_log_concave(likelihood) && !is_variational(likelihood)
  if (!undecided) return(now)
  likelihood$theta <- now$learned$theta
  run_stage(state, "trial", {
    now$mode <- laplace_at(data, likelihood, now$learned$center, now$learned$kernel, now$z,
                           rounding_jitter(nrow(now$z)), s$run)
    unless_restless(near_or_not(data, now, likelihood, state), now)
  }, otherwise = now)
}

# `otherwise` where a near field cannot be computed, or its mode does not come to rest.
unless_restless <- function(expr, otherwise) {
  tryCatch(expr, pfdtc_error_numerical = function(e) otherwise, pfdtc_warning_convergence = function(w) otherwise)
}

near_or_not <- function(data, now, likelihood, state) {
  s <- now$settings
  n <- nrow(data$x)
  held <- sample.int(n, min(near_trial$held, n %/% 5L))
  around <- sample(setdiff(seq_len(n), held))
  some <- utils::head(around, near_trial$rows)
  x <- function(rows) data$x[rows, , drop = FALSE]
  sites_of <- function(rows) engine_sites(likelihood, take_sites(data$sites, rows), now$learned$center)
  at <- take_sites(data$sites, held)
  score <- function(mean, var, theta = likelihood$theta) {
    likelihood$theta <- theta
    log_predictive(likelihood, at[c("y", "size")], mean + now$learned$center + at$offset, pmax(var, 0))
  }
  sites <- sites_of(around)
  alone <- native_laplace(now$z, x(around), sites, now$learned$kernel, now$mode$jitter, now$mode, maxit = 2L,
                          control = s$run) # steps of Newton's, from where it all but is
  p <- native_predict(stop_on_status(alone, "The posterior's mode"), now$z, now$learned$model, x(held))
  of_alone <- score(p$mean, p$sor_variance + p$unexplained)

  # of the other rows alone: what knows the responses held out would favour near rows
  on_points <- numeric(n)
  on_points[around] <- alone$f - sites$offset
  on_points[held] <- p$mean
  learned <- learn_near_laplace(x(around), on_points[around], sites, s$learning, now$learned, state)
  z <- choose_points(data$x, min(near_trial$points, n), learned$model$kernel, "greedy", greedy_memory,
                     control = s$run)$z
  few <- utils::head(z, few_points)
  rows_at <- function(rows, f) surrogate_rows(x(rows), sites_of(rows), f[rows])
  beside <- function(kernel, f) { # some steps, mostly one, and what predicts from there
    model <- new_model(kernel, 1)
    predicted <- function(f, x) {
      near <- near_posterior(rows_at(some, f), few, model, default_neighbours, default_neighbours, control = s$run)
      predict_near(near, rows_at(around, f), few, model, x, s$run)
    }
    for (i in seq_len(near_trial$steps)) {
      step <- short_enough(predicted(f, data$x)$mean - f)
      f <- f + step
      if (is_settled(step, near_trial$settled)) break
    }
    p <- predicted(f, x(held))
    var <- p$var_near + p$var_far
    list(score = score(p$mean, var), kernel = kernel, f = f, step = step, mean = p$mean, var = var)
  }
  free <- any(startsWith(s$learning$free, "variance"))
  raise <- function(kernel) if (free) with_variances(kernel, near_trial$by) else kernel
  best <- tried <- beside(raise(learned$model$kernel), on_points)
  for (i in seq_len(if (free) near_trial$raised - 1L else 0L)) {
    tried <- unless_restless(beside(raise(tried$kernel), tried$f), NULL)
    apart <- tried$score - best$score
    if (!isTRUE(mean(apart) > -se_of_mean(apart))) break
    if (mean(apart) > 0) best <- tried
  }
  gain <- of_alone - best$score
  if (!all(is.finite(gain))) return(now)
  now$settings$posterior$trial <- c(gain = mean(gain), se = se_of_mean(gain), rows = length(gain))
  if (!isTRUE(mean(gain) < -near_trial$gain)) return(now)
  learned$kernel <- best$kernel
  learned$model <- new_model(best$kernel, 1)
  if (likelihood$learned) { # of a mode that is too smooth, theta is too small
    logs <- log(likelihood$theta) + c(-1, 1) * log(near_trial$theta)
    of_log <- function(log) sum(score(best$mean, best$var, exp(log)))
    likelihood$theta <- learned$theta <- exp(stats::optimize(of_log, logs, maximum = TRUE)$maximum)
  }
  near <- near_laplace(data, z, best$f, sites_of(seq_len(n)), learned$model, default_neighbours, s$run, best$step,
                       near_trial$settled)
  list(learned = learned, z = z, settings = now$settings, near = near)
}

# What was learned with another kernel, of the Gaussian responses at f.
learn_near_laplace <- function(x, f, sites, s, learned, state) {
  rows <- surrogate_rows(x, sites, pmin(pmax(f, -near_trial$largest), near_trial$largest))
  rows <- c(rows, list(response = rows$y, scale = 1, n = nrow(x), shift = list(rows = 0, ss = 0, constant = 0)))
  # from where points lead, which is at times a better start than any of a grid
  s$kernel <- if (is_open(s$kernel)) replace(learned$kernel, "profile", list(NULL)) else learned$kernel
  s["likelihood"] <- list(NULL)
  s$noise <- 1
  found <- if (length(s$free)) learn_evidence(rows, s, state) else list(kernel = learned$model$kernel)
  learned$model <- new_model(found$kernel, 1)
  learned["kernels"] <- list(found$kernels)
  learned
}

with_variances <- function(kernel, times) {
  scale_kernel(kernel, times)
}
