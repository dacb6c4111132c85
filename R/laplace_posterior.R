# The posterior of classes and counts on given points: by Laplace's approximation, from there the normal distribution
# with the largest lower bound of log p(y) (approx = "vi"), and points that are moved by it.

# From z by the pF divergence to the exact process, both with the Gaussian responses that the mode on z has.
moved_points <- function(data, learned, z, s, state) {
  likelihood <- replace(s$learn$likelihood, "theta", list(learned$theta))
  run_stage(state, "points", {
    f <- laplace_at(data, likelihood, learned$center, learned$kernel, z, rounding_jitter(nrow(z)), s$run)$f
    sites <- engine_sites(likelihood, data$sites, learned$center)
    rows <- c(working_rows(data$x, sites, f - sites$offset), n = nrow(data$x))
    optimise_stage(rows, learned["model"], z, replace(s$posterior, "try_starts", FALSE), state)$z
  }, otherwise = z)
}

