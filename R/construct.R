# The last stage: the posterior on all rows, and the object made of it, which says what every stage was asked for:
# `s` is the plan.

# The exact posterior of all rows, by the verbs of a fit on inducing points: the rows are its points.
construct_exact <- function(data, learned, s, state) {
  done <- c(learned, list(convergence = 0L, message = "nothing to optimise", value = NA_real_))
  announce_memory(8 * as.double(nrow(data$x))^2, nrow(data$x))
  posterior <- posterior_stage(state, function() {
    native_exact(data, done$model, s$run)
  })
  new_fit(data, done, s, state, list(
    x = data$x, inducing = data$x, m = nrow(data$x), m_asked = nrow(data$x), inducing_method = "rows",
    neighbours = 0L, factors = posterior, evidence = evidence_of("exact", done$model, data, posterior),
    small_n = if (length(s$learn$free)) small_n_check(exact_posterior(data, done$model, posterior))))
}

# NULL where there is so little noise that the rows' matrix has no factor: points and a jitter do then.
exact_if_possible <- function(data, learned, s, state) {
  tryCatch(construct_exact(data, learned, s, state), pfdtc_error_numerical = function(e) NULL)
}

construct_fit <- function(data, done, s, state) {
  if (s$posterior$neighbours > 0L) return(construct_near(data, done, s, state))
  make <- function() {
    native_posterior(done$z, data, done$model, done$jitter, control = s$run, fitc = gp_family(s)$fitc)
  }
  posterior <- posterior_stage(state, make)
  new_fit(data, done, s, state, c(points_and_start(done, s), list(
    neighbours = 0L, factors = posterior, evidence = evidence_of("points", done$model, data, posterior, gp_family(s)),
    jitter = posterior$jitter)))
}

points_and_start <- function(done, s) {
  list(inducing = done$z, m = nrow(done$z), m_asked = s$posterior$m,
       inducing_method = if (is.null(done$start)) s$posterior$inducing_method else done$start,
       unexplained = s$posterior$rho, trial = s$posterior$trial, aux = s$posterior$aux, moved = s$posterior$move,
       aux_points = done$aux_points, aux_rows = done$aux_rows)
}

# Far and near: what the points alone have (`factors`) is made where it is asked for, see far_part().
construct_near <- function(data, done, s, state) {
  # training neighbours make each row as near as predictions are; the pass costs too much for very many rows
  train <- if (nrow(data$x) <= near_training_rows) min(s$posterior$neighbours, nrow(data$x) - 1L) else 0L
  near <- posterior_stage(state, function() {
    near_posterior(data, done$z, done$model, s$posterior$neighbours, train, jitter = done$jitter, control = s$run)
  })
  new_fit(data, done, s, state, c(points_and_start(done, s), list(
    neighbours = s$posterior$neighbours, factors = NULL, evidence = evidence_of("near", done$model, data, near),
    jitter = near$jitter, near = near)))
}

near_training_rows <- 1e5

announce_memory <- function(bytes, n) {
  check_memory(bytes, sprintf("the exact posterior of %d rows", as.integer(n)))
  if (bytes < 1e8) return(invisible())
  tell_classed("memory", sprintf("The exact posterior of %d rows takes %s.", as.integer(n), show_bytes(bytes)))
}
