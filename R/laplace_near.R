# Near rows for classes and counts. At its mode Laplace's posterior is that of Gaussian responses z = f + g / W of noise
# variances 1 / W. A near field (near.R) of such rows says where f is at the rows; there g and W are taken anew, until f
# stays where it is. What the rows say of f enters by W (z - f) = g alone, so where it stays f is, of the process in
# which rows beyond their neighbours know of one another by the inducing points, the mode; with all rows near these are
# Newton's steps on the exact process, and their end is its mode.
#
# No step moves f at a row by more than a few units of the link: beyond, W says nothing of what a whole step would do.
# It is halved at rows where f goes back by as much as it has come. There is no function that each step lowers: where f
# does not come to rest a warning says so.

near_laplace_steps <- list(most = 50L, moved = 1e-5, longest = 4)

# The near field with its rows, list(x, y, weights), of responses z; `f`: to begin with, without offset and mean;
# `taken`: the step that led there; `settled`: the root mean square of a step after which f is where it stays.
near_laplace <- function(data, z, f, sites, model, neighbours, run, taken = Inf, settled = 0,
                         rank = sample.int(nrow(data$x))) {
  force(rank)
  share <- 1
  for (step in seq_len(near_laplace_steps$most)) {
    rows <- surrogate_rows(data$x, sites, f)
    near <- near_posterior(rows, z, model, neighbours, neighbours, rank, control = run)
    rests <- is_settled(taken, settled)
    if (rests) break
    move <- predict_near(near, rows, z, model, data$x, run)$mean - f
    moved <- max(abs(move))
    rests <- moved < near_laplace_steps$moved * (1 + max(abs(f)))
    if (rests) break
    back <- is.finite(taken) & move * taken < 0 & abs(move) > 0.9 * abs(taken)
    share <- ifelse(back, share / 2, pmin(2 * share, 1))
    taken <- share * short_enough(move)
    f <- f + taken
  }
  if (!rests && !(moved < 1e-4 * (1 + max(abs(f))))) {
    warn_convergence(sprintf("The mode beside near rows was not reached: the last step moved f by %.2g.", moved))
  }
  near$rows <- rows
  near$steps <- step
  near
}

is_settled <- function(step, settled) sqrt(mean(step^2)) < settled

short_enough <- function(move) pmin(pmax(move, -near_laplace_steps$longest), near_laplace_steps$longest)

# Rows that say next to nothing have a W of next to 0, which they are given a little of: f comes out as without.
surrogate_rows <- function(x, sites, f) {
  l <- native_likelihood(sites, f + sites$offset)
  W <- pmax(l[3L, ], 1e-10 * max(l[3L, ]), 1e-30)
  list(x = x, y = f + l[2L, ] / W, weights = W)
}
