# Scores of predictive distributions.

# Returns the continuous ranked probability score of each response, the integral of (F(t) - 1{y <= t})^2 over t, where F
# is the distribution averaged over f ~ N(f$mean, f$var). `rows`: list(noise, size). Successes count as shares.
response_crps <- function(response, y, f, rows) {
  if (response$conjugate && is.null(response$transform)) {
    sd <- sqrt(f$var + rows$noise)
    z <- (y - f$mean) / sd
    return(sd * (z * (2 * stats::pnorm(z) - 1) + 2 * stats::dnorm(z) - 1 / sqrt(pi)))
  }
  sd <- sqrt(if (response$conjugate) f$var + rows$noise else pmax(f$var, 0))
  each <- function(n) function(t) {
    if (response$conjugate) return(stats::pnorm((transformed(response$transform, t) - f$mean[n]) / sd[n]))
    same <- rep(n, length(t))
    predictive_cdf(response, t, rows$size[same], f$mean[same], sd[same])
  }
  vapply(seq_along(y), function(n) {
    ends <- crps_ends(response, n, f, sd, rows)
    if (response$discrete) crps_of_counts(each(n), y[n], ends) / if (response$reads == "classes") rows$size[n] else 1
    else crps_by_halves(each(n), y[n], ends, if (is_positive(response)) 0 else -Inf)
  }, 0)
}

is_positive <- function(response) response$reads == "positive" || identical(response$transform$kind, "log")

# Returns quantiles beyond which (at either side) a millionth of the distribution lies.
crps_ends <- function(response, n, f, sd, rows) {
  vapply(c(1e-6, 1 - 1e-6), function(p) {
    if (response$conjugate) return(untransformed(response$transform, f$mean[n] + sd[n] * stats::qnorm(p)))
    predictive_quantile(response, p, rows$size[n], f$mean[n], sd[n])
  }, 0)
}

# The sum over whole numbers; of more than 2,000 numbers it takes evenly spaced ones.
crps_of_counts <- function(cdf, y, ends) {
  from <- max(min(ends[1L], y) - 1, 0)
  step <- max(1, ceiling((max(ends[2L], y) - from) / 2000))
  t <- seq(from, max(ends[2L], y) + step, by = step)
  step * sum((cdf(t) - (y <= t))^2)
}

# The integral on either side of y, with t = y -+ unit exp(pi / 2 sinh(z)), or below y towards a positive response's 0
# with t = y / (1 + exp(pi sinh(z))): the trapezoid rule in z converges exponentially (Takahasi and Mori 1974).
crps_by_halves <- function(cdf, y, ends, from) {
  h <- 0.05
  z <- seq(-4, 4, by = h)
  unit <- max(ends[2L] - ends[1L], abs(y - ends)) / 8
  away <- unit * exp(pi / 2 * sinh(z))
  slope <- pi / 2 * cosh(z) * away
  above <- ifelse(is.finite(away), (1 - cdf(pmin(y + away, 1e300)))^2 * slope, 0)
  below <- if (from == 0) {
    share <- stats::plogis(-pi * sinh(z))
    cdf(pmax(y * share, 1e-300))^2 * y * share * (1 - share) * pi * cosh(z)
  } else {
    cdf(pmax(y - away, -1e300))^2 * slope
  }
  h * sum(above[is.finite(above)], below[is.finite(below)])
}
