# Near rows or points alone for classes and counts, by rows held out.
#
# Few points carry no short lengthscales, so none are learned with them. But the mode on points is the posterior of
# Gaussian responses (laplace_near.R), and learn.R learns of those, row by row given the nearest, at any lengthscale.
# They were made at a mode that is too smooth, and are drawn towards it: the variance comes out too small (as in
# penalised quasi-likelihood: Breslow and Clayton 1993). Hence variances times 1, 3, 9, ... until the log density of
# rows held out is less than the best by more than the standard error of that; and points alone where near rows do not
# gain a thousandth.

# Rows of which near fields are made for that, and rows held out; inducing points beside near rows; the part of its size
# by which f may yet move at a row (predictions are those of a step beyond: of 50,000 flights' f it is off by .001 on
# average, while two steps more would take 5 of 30 seconds); the largest f at which responses are made to learn from:
# where it is large they say nothing but that; how often the variance is raised, and by what; what near rows are to
# gain.
near_trial <- list(rows = 8000L, held = 5000L, points = 200L, moved = 0.05, largest = 4, raised = 5L, by = 3,
                   gain = 0.001)

# `now`: list(learned, z, settings), and near, where that is chosen.
try_near_rows <- function(data, now, state) {
  s <- now$settings
  n <- nrow(data$x)
  likelihood <- s$learning$likelihood
  undecided <- is.null(s$posterior$neighbours) && s$posterior$open && isTRUE(s$keep_data) && n > exact_rows &&
    n <= near_training_rows && is_log_concave(likelihood) && !is_variational(likelihood)
  if (!undecided) return(now)
  run_stage(state, "trial", unless_restless(near_or_not(data, now, state), now), otherwise = now)
}

# `otherwise` where a near field cannot be computed, or its mode does not come to rest.
unless_restless <- function(expr, otherwise) {
  tryCatch(expr, pfdtc_error_numerical = function(e) otherwise, pfdtc_warning_convergence = function(w) otherwise)
}

near_or_not <- function(data, now, state) {
  s <- now$settings
  n <- nrow(data$x)
  held <- sample.int(n, min(near_trial$held, n %/% 5L))
  around <- sample(setdiff(seq_len(n), held))
  some <- utils::head(around, near_trial$rows)
  x <- function(rows) data$x[rows, , drop = FALSE]
  likelihood <- replace(s$learning$likelihood, "theta", list(now$learned$theta))
  sites_of <- function(rows) engine_sites(likelihood, take_sites(data$sites, rows), now$learned$center)
  at <- take_sites(data$sites, held)
  score <- function(mean, var) {
    log_predictive(likelihood, at[c("y", "size")], mean + now$learned$center + at$offset, pmax(var, 0))
  }
  alone <- stop_on_status(native_laplace(now$z, x(around), sites_of(around), now$learned$model$kernel,
                                         rounding_jitter(nrow(now$z)), control = s$run), "The posterior's mode")
  p <- native_predict(alone, now$z, now$learned$model, data$x)
  of_alone <- score(p$mean[held], (p$sor_variance + p$unexplained)[held])

  learned <- learn_near_laplace(data, p$mean, sites_of(seq_len(n)), s$learning, now$learned, state)
  z <- choose_points(data$x, min(near_trial$points, n), learned$model$kernel, "greedy", s$run$memory,
                     control = s$run)$z
  beside <- function(kernel, f) {
    unless_restless({
      model <- new_model(kernel, 1)
      near <- near_laplace(list(x = x(some)), z, f[some], sites_of(some), model, default_neighbours, s$run,
                           near_trial$moved)
      f <- predict_near(near, near$rows, z, model, data$x, s$run)$mean
      p <- predict_near(near, surrogate_rows(x(around), sites_of(around), f[around]), z, model, x(held), s$run)
      list(score = score(p$mean, p$var_near + p$var_far), model = model, f = f)
    }, list(score = rep(-Inf, length(held))))
  }
  best <- tried <- beside(learned$model$kernel, p$mean)
  if (is.null(best$model)) return(now)
  for (i in seq_len(if (any(startsWith(s$learning$free, "variance"))) near_trial$raised else 0L)) {
    tried <- beside(with_variances(tried$model$kernel, near_trial$by), tried$f)
    apart <- tried$score - best$score
    if (!isTRUE(mean(apart) > -se_of_mean(apart))) break
    if (mean(apart) > 0) best <- tried
  }
  gain <- of_alone - best$score
  if (!all(is.finite(gain))) return(now)
  now$settings$posterior$trial <- c(gain = mean(gain), se = se_of_mean(gain), rows = length(gain))
  if (!isTRUE(mean(gain) < -near_trial$gain)) return(now)
  learned$kernel <- best$model$kernel
  learned$model <- best$model
  near <- near_laplace(data, z, best$f, sites_of(seq_len(n)), best$model, default_neighbours, s$run,
                       near_trial$moved)
  list(learned = learned, z = z, settings = now$settings, near = near)
}

# What was learned with another kernel, of the Gaussian responses at f.
learn_near_laplace <- function(data, f, sites, s, learned, state) {
  rows <- surrogate_rows(data$x, sites, pmin(pmax(f, -near_trial$largest), near_trial$largest))
  rows <- c(rows, list(response = rows$y, scale = 1, n = nrow(data$x), shift = list(rows = 0, ss = 0, constant = 0)))
  s["likelihood"] <- list(NULL)
  s$noise <- 1
  found <- if (length(s$free)) learn_evidence(rows, s, state) else list(kernel = learned$model$kernel)
  learned$model <- new_model(found$kernel, 1)
  learned["kernels"] <- list(found$kernels)
  learned
}

with_variances <- function(kernel, times) {
  table <- kernel_parameters(kernel)
  kernel_with(kernel, kernel_values(kernel, table) * ifelse(table$what == "variance", times, 1), table)
}
