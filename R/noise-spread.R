# Noise whose size is uncertain row by row: y = f + e, e ~ N(0, s2 exp(u - v / 2)), u ~ N(0, v). The variance of e has
# the mean s2, and v > 0 gives heavy tails; v = 0 is normal noise. Means are those of normal noise, and sds too unless
# a transform was found (moments_of_response()). Densities and quantiles average over u by the trapezoid rule. `f` is
# list(mean, var, noise = s2, spread = v), rows of new responses; without `spread` the noise is normal.

spread_steps <- seq(-5, 5, by = 0.5)
spread_weights <- stats::dnorm(spread_steps) / sum(stats::dnorm(spread_steps))

is_spread <- function(f) any(f$spread > 0, na.rm = TRUE)

# Returns log p(y) for y on the scale of f.
noisy_log_density <- function(y, f) {
  if (!is_spread(f)) return(stats::dnorm(y, f$mean, sqrt(f$var + f$noise), log = TRUE))
  n <- length(y)
  sd <- sd_at_step(f, rep(spread_steps, each = n)) # recycled over the rows
  log_row_sums(matrix(stats::dnorm(y, f$mean, sd, log = TRUE) + rep(log(spread_weights), each = n), n))
}

# Returns P(y - mean <= distance), or with `normal` = dnorm its density.
noisy_cdf <- function(distance, f, normal = stats::pnorm) {
  if (!is_spread(f)) return(normal(distance, 0, sqrt(f$var + f$noise)))
  out <- 0
  for (i in seq_along(spread_steps)) {
    out <- out + spread_weights[i] * normal(distance, 0, sd_at_step(f, spread_steps[i]))
  }
  out
}

# Returns half the width of the central interval of y. It grows with the variance of f.
noisy_half <- function(level, f) {
  p <- (1 + level) / 2
  if (!is_spread(f)) return(stats::qnorm(p) * sqrt(f$var + f$noise))
  concave_quantile(p, stats::qnorm(p) * sd_at_step(f, spread_steps[1L]), function(x, normal) noisy_cdf(x, f, normal))
}

# Draws noise at `n` rows, one after the other.
draw_noise <- function(n, noise, spread) {
  sd <- sqrt(noise)
  if (any(spread > 0, na.rm = TRUE)) sd <- sd * exp((sqrt(spread) * stats::rnorm(n) - spread / 2) / 2)
  sd * stats::rnorm(n)
}

# ---- how heavy the tails are ----------------------------------------------------------------------------------------

# Returns c(tail, gain): the variance of the log noise, beside the known part, that makes the responses y of rows most
# likely, and the nats that it gains. `f` has their distributions given the other rows.
likeliest_tail <- function(y, f) {
  each <- function(tail) sum(noisy_log_density(y, replace(f, "spread", list(f$spread + tail))))
  normal <- each(0)
  if (each(0.1) < normal) return(c(tail = 0, gain = 0))
  best <- stats::optimize(each, c(0, most_spread), maximum = TRUE, tol = 0.05)
  c(tail = best$maximum, gain = best$objective - normal)
}
