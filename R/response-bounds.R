# Bounds of a transformed response where mean and sd of T(y) are known within bounds, rounding included.
#
# h = T^-1 increases, so medians and quantiles are those of T(y) sent back. For lambda <= 1, and the log, h is convex.
# With X(mu, tau, c) = E (h(mu + tau Z) - h(c))+ the mean of y that is cut at h(c) is
#
#   M(mu, tau, c) = M(mu, tau, Inf) - X(mu, tau, c),
#
# which increases in mu, while M(mu, tau, Inf) and X increase in tau. For lambda > 1, h(z) is minus the convex
# function of 2 - lambda at -z.

# The number of cells in which the mean is enclosed, and the quantiles beyond which its tails are bounded.
mean_cells <- 250L
far_tail <- 9

# Relative rounding error of T^-1, and of sums over cells: a thousand times the largest error observed.
back_rounding <- 1e-12

# Returns list(lower, upper), the interval of y in which T(y) is between `lower` and `upper`.
back_bounds <- function(transform, lower, upper) {
  if (is.null(transform)) return(list(lower = lower, upper = upper))
  low <- untransformed(transform, lower)
  high <- untransformed(transform, upper)
  list(lower = low - rounding_back(transform, low), upper = high + rounding_back(transform, high))
}

rounding_back <- function(transform, y) {
  if (transform$kind == "log") return(back_rounding * y)
  back_rounding * abs(y - transform$centre) + 4 * .Machine$double.eps * (abs(transform$centre) + transform$unit)
}

# Returns list(lower, upper), the interval of the mean of y, as moments_back() defines it, where T(y) is normal with
# mean in [mu$lower, mu$upper] and sd in [tau$lower, tau$upper]; infinite where these are, NA where they are not known.
mean_bounds <- function(transform, mu, tau) {
  open <- ifelse(is.na(mu$lower), NA_real_, 0)
  known <- which(is.finite(mu$lower + mu$upper + tau$lower + tau$upper))
  mu <- lapply(mu, `[`, known)
  tau <- lapply(tau, `[`, known)
  up <- curves_up(transform)
  if (!up) mu <- list(lower = -mu$upper, upper = -mu$lower)
  h <- convex_back(transform)
  end <- if (!is_cut(transform)) Inf else if (up) transform$ends[2L] else -transform$ends[1L]
  last <- pmax(end, mu$upper - sure_sds * tau$lower) # M increases in the cut
  low <- mean_below(h, mu$lower, tau$lower, tau$upper, pmax(end, mu$lower - sure_sds * tau$upper))
  high <- mean_below(h, mu$upper, tau$upper, tau$lower, last)
  found <- list(lower = low$lower, upper = pmin(high$upper, h$value(last)))
  if (!up) found <- list(lower = -found$upper, upper = -found$lower)
  y <- lapply(found, function(v) if (transform$kind == "log") v else transform$centre + transform$unit * v)
  ends <- function(infinite, v) replace(open + infinite, known, ifelse(is.nan(v), infinite, v)) # overflow leaves NaN
  list(lower = ends(-Inf, y$lower - rounding_back(transform, y$lower)),
       upper = ends(Inf, y$upper + rounding_back(transform, y$upper)))
}

# Returns bounds of M(mu, tau, Inf) - X(mu, other, c).
mean_below <- function(h, mu, tau, other, c) {
  all <- h$enclose(mu, tau, rep(-Inf, length(mu)))
  if (all(c == Inf)) return(all)
  from <- (c - mu) / other
  beyond <- h$enclose(mu, other, pmin(from, far_tail - 1))
  top <- h$value(ifelse(from > far_tail - 1, mu + other * (far_tail - 1), c))
  mass <- stats::pnorm(pmin(from, far_tail - 1), lower.tail = FALSE)
  room <- back_rounding * abs(top) * mass
  X <- list(lower = ifelse(from > far_tail - 1, 0, pmax(beyond$lower - top * mass - room, 0)),
            upper = pmax(beyond$upper - top * mass + room, 0))
  list(lower = all$lower - X$upper, upper = all$upper - X$lower)
}

# Returns the convex inverse as list(value, enclose): enclose(mu, tau, from) bounds E h(mu + tau Z) 1{Z > from}.
convex_back <- function(transform) {
  if (transform$kind == "log") {
    return(list(value = exp, enclose = function(mu, tau, from) {
      mean <- exp(mu + tau^2 / 2) * stats::pnorm(from - tau, lower.tail = FALSE)
      room <- back_rounding * (1 + abs(mu) + tau^2) * mean
      list(lower = mean - room, upper = mean + room)
    }))
  }
  lambda <- min(transform$lambda, 2 - transform$lambda)
  standard <- list(kind = "yeojohnson", lambda = lambda, centre = 0, unit = 1)
  value <- function(z) untransformed(standard, z)
  # (1 + lambda z)^(1 / lambda - order), or its form for z < 0
  power <- function(z, order) {
    v <- ifelse(z >= 0, log_of_power(pmax(z, 0), lambda), log_of_power(pmax(-z, 0), 2 - lambda))
    exp(v * (1 - order * ifelse(z >= 0, lambda, 2 - lambda)))
  }
  h <- list(value = value, slope = function(z) power(z, 1), curvature = function(z) (1 - lambda) * power(z, 2))
  list(value = value, enclose = function(mu, tau, from) {
    blocks <- split(seq_along(mu), (seq_along(mu) - 1L) %/% 500L)
    parts <- lapply(unname(blocks), function(i) enclose_cells(h, mu[i], tau[i], from[i]))
    lapply(list(lower = "lower", upper = "upper"), function(end) unlist(lapply(parts, `[[`, end)))
  })
}

# On a cell with mean c and variance V of Z, Taylor's formula gives E h = h(mu + tau c) + tau^2 V h''(z) / 2 with z in
# the cell, and h'' is monotone on either side of 0. In the right tail h(z) < exp(z), in the left one h(z) >= z.
enclose_cells <- function(h, mu, tau, from) {
  from <- pmax(from, -far_tail)
  edge <- from + outer(far_tail - from, (0:mean_cells) / mean_cells)
  a <- edge[, -ncol(edge), drop = FALSE]
  b <- edge[, -1L, drop = FALSE]
  right <- a >= 0
  P <- ifelse(right, stats::pnorm(a, lower.tail = FALSE) - stats::pnorm(b, lower.tail = FALSE),
              stats::pnorm(b) - stats::pnorm(a))
  c <- pmin(pmax((stats::dnorm(a) - stats::dnorm(b)) / P, a), b)
  V <- 1 + (a * stats::dnorm(a) - b * stats::dnorm(b)) / P - c^2
  at <- function(z) mu + tau * z
  ends <- list(h$curvature(at(a)), h$curvature(at(b)))
  middle <- ifelse(at(a) < 0 & at(b) > 0, h$curvature(0 * a), ends[[1L]])
  least <- do.call(pmin, c(ends, list(middle))) * (1 - back_rounding)
  most <- do.call(pmax, c(ends, list(middle))) * (1 + back_rounding)
  value <- h$value(at(c))
  room <- back_rounding * rowSums(P * (abs(value) + h$slope(at(c)) * (abs(mu) + tau)))
  V_room <- 1e-6 * V + 1e-10
  low <- rowSums(P * (value + tau^2 / 2 * least * pmax(V - V_room, 0)))
  high <- rowSums(P * (value + tau^2 / 2 * most * pmin(pmax(V + V_room, 0), (b - a)^2 / 4)))
  out <- stats::pnorm(far_tail, lower.tail = FALSE)
  whole <- from == -far_tail
  list(lower = low - room + h$value(at(far_tail)) * out - abs(h$value(at(far_tail))) * out * 1e-6 +
         whole * ((mu - 1e-6 * abs(mu)) * out - tau * stats::dnorm(far_tail) * (1 + 1e-6)),
       upper = high + room + exp(mu + tau^2 / 2) * stats::pnorm(far_tail - tau, lower.tail = FALSE) * (1 + 1e-6) +
         whole * (h$value(at(-far_tail)) + 1e-6 * abs(h$value(at(-far_tail)))) * out)
}
