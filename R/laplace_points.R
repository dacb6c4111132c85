# The inducing points of classes and counts.

laplace_points <- function(data, learned, s, state, few = FALSE) {
  if (is.matrix(s$inducing)) return(match_input_names(s$inducing, data$x, !isFALSE(data$frame$named)))
  n <- nrow(data$x)
  method <- if (is.null(s$inducing)) "greedy" else
    check_choice(s$inducing, setdiff(point_methods, "divergence"), "inducing")
  most <- if (n <= exact_rows && !few) n else min(laplace_sizes$most, n)
  m <- if (is.null(s$m)) most else check_points(s$m, n)
  run_stage(state, "start", choose_points(data$x, m, learned$kernel, method, s$run$memory, control = s$run)$z,
            otherwise = choose_points(data$x, m, NULL, "random")$z)
}

# From z by the pF divergence to the exact process, both with the Gaussian responses that the mode on z has.
moved_points <- function(data, learned, z, s, state) {
  likelihood <- replace(s$learning$likelihood, "theta", list(learned$theta))
  run_stage(state, "points", {
    f <- laplace_at(data, likelihood, learned$center, learned$kernel, z, rounding_jitter(nrow(z)), s$run)$f
    sites <- engine_sites(likelihood, data$sites, learned$center)
    rows <- c(surrogate_rows(data$x, sites, f - sites$offset), n = nrow(data$x))
    optimise_stage(rows, learned["model"], z, c(s$points, try_starts = FALSE), state)$z
  }, otherwise = z)
}

how_points_start <- function(inducing) {
  if (is.matrix(inducing)) "given" else if (is.null(inducing)) "greedy" else inducing
}
