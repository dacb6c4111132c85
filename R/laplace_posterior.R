# The posterior of classes and counts on given points: by Laplace's approximation, from there the normal distribution
# with the largest lower bound of log p(y) (approx = "vi"), and points that are moved by it.

# The posterior on points z: list as the engine has it, of all rows. `start`: what it had before. Of Student's t there
# are saddles, between responses that are far apart, where steps may end: others begin beside the prior's mean.
laplace_at <- function(data, likelihood, center, kernel, z, jitter, control, start = list(), want = 0L, maxit = 200L) {
  mode <- function(start) {
    native_laplace(z, data$x, engine_sites(likelihood, data$sites, center), kernel, jitter, start, want = want,
                   maxit = maxit, control = control)
  }
  found <- mode(start)
  for (aside in if (maxit > 0L && !as_response(likelihood)$concave) c(0.01, 0.1, 1)) {
    if (found$status == 0L) break
    found <- mode(list(beta = aside * cos(seq_len(nrow(z)))))
  }
  stop_on_status(found, "The posterior's mode")
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
