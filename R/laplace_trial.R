# Near rows or points alone for classes and counts, by rows held out.
#
# Few points carry no short lengthscales, so none are learned with them. But the mode on points is the posterior of
# Gaussian responses (laplace_near.R), and learn.R learns of those, row by row given the nearest, at any lengthscale.
# They were made at a mode that is too smooth, and are drawn towards it: the variance comes out too small (as in
# penalised quasi-likelihood: Breslow and Clayton 1993). Hence variances times 1, 2, 4, ... for as long as the log
# density of rows held out grows; and points alone, where near rows are not better by more than its standard error.

# Rows of which posteriors are made for that, inducing points beside near rows, how far f may be from rest, in the
# end and in the trial, and the most doublings of the variance.
near_trial <- list(rows = 20000L, points = 200L, rest = 0.02, doublings = 4L)

# `now`: list(learned, z, settings), and near, where that is chosen.
try_near_rows <- function(data, now, state) {
  s <- now$settings
  n <- nrow(data$x)
  undecided <- is.null(s$posterior$neighbours) && s$posterior$open && isTRUE(s$keep_data) && n > exact_rows &&
    n <= near_training_rows && is_log_concave(s$learning$likelihood)
  if (!undecided) return(now)
  run_stage(state, "trial", tryCatch(near_or_not(data, now, state), pfdtc_error_numerical = function(e) now,
                                     pfdtc_warning_convergence = function(w) now), otherwise = now)
}

near_or_not <- function(data, now, state) {
  s <- now$settings
  likelihood <- replace(s$learning$likelihood, "theta", list(now$learned$theta))
  parts <- trial_parts(data)
  sites_of <- function(rows) {
    engine_sites(likelihood, if (is.null(rows)) data$sites else take_sites(data$sites, rows), now$learned$center)
  }
  kernel <- now$learned$model$kernel
  alone <- stop_on_status(native_laplace(now$z, data$x[parts$some, , drop = FALSE], sites_of(parts$some), kernel,
                                         rounding_jitter(nrow(now$z)), control = s$run), "The posterior's mode")
  at_rows <- native_predict(alone, now$z, kernel, 1, data$x)
  score <- function(p, var) {
    held <- parts$held
    sites <- take_sites(data$sites[c("y", "size")], held)
    log_predictive(likelihood, sites, p$mean + (data$sites$offset + numeric(nrow(data$x)))[held] + now$learned$center,
                   pmax(var, 0))
  }
  of_held <- lapply(at_rows[c("mean", "sor_variance", "unexplained")], `[`, parts$held)
  of_alone <- score(of_held, of_held$sor_variance + of_held$unexplained)

  learned <- learn_near_laplace(data, at_rows$mean, sites_of(NULL), s$learning, now$learned, state)
  z <- choose_points(data$x, min(near_trial$points, nrow(data$x)), learned$model$kernel, "greedy", s$run$memory,
                     control = s$run)$z
  some <- list(x = data$x[parts$some, , drop = FALSE])
  beside <- function(kernel, f) {
    model <- new_model(kernel, 1)
    near <- near_laplace(some, z, f, sites_of(parts$some), model, default_neighbours, s$run, near_trial$rest)
    p <- predict_near(near, near$rows, z, model, data$x[parts$held, , drop = FALSE], s$run)
    list(score = score(p, p$var_near + p$var_far), model = model, near = near)
  }
  best <- beside(learned$model$kernel, at_rows$mean[parts$some])
  for (double in seq_len(if (has_free_variance(s$learning)) near_trial$doublings else 0L)) {
    next_one <- beside(with_variances(best$model$kernel, 2), best$near$f)
    if (!isTRUE(mean(next_one$score) > mean(best$score))) break
    best <- next_one
  }
  gain <- of_alone - best$score
  now$settings$posterior$trial <- c(gain = mean(gain), se = se_of_mean(gain), rows = length(gain))
  if (!isTRUE(-mean(gain) > se_of_mean(gain))) return(now)
  learned$model <- best$model
  f <- predict_near(best$near, best$near$rows, z, best$model, data$x, s$run)$mean
  near <- near_laplace(data, z, f, sites_of(NULL), best$model, default_neighbours, s$run)
  list(learned = learned, z = z, settings = now$settings, near = near)
}

# Rows held out, and some of the others.
trial_parts <- function(data) {
  n <- nrow(data$x)
  held <- sample.int(n, min(trial_rows[["held"]], n %/% 5L))
  list(held = held, some = sort(utils::head(sample(setdiff(seq_len(n), held)), near_trial$rows)))
}

# What was learned with another kernel, of the Gaussian responses at f.
learn_near_laplace <- function(data, f, sites, s, learned, state) {
  rows <- surrogate_rows(data$x, sites, f)
  rows <- c(rows, list(response = rows$y, scale = 1, n = nrow(data$x), shift = list(rows = 0, ss = 0, constant = 0)))
  s["likelihood"] <- list(NULL)
  s$noise <- 1
  found <- if (length(s$free)) learn_evidence(rows, s, state) else list(kernel = learned$model$kernel)
  learned$model <- new_model(found$kernel, 1)
  learned["kernels"] <- list(found$kernels)
  learned
}

has_free_variance <- function(s) any(startsWith(s$free, "variance"))

with_variances <- function(kernel, times) {
  table <- kernel_parameters(kernel)
  kernel_with(kernel, kernel_values(kernel, table) * ifelse(table$what == "variance", times, 1), table)
}
