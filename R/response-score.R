# Scores predictive distributions.

# Returns a row of scores (see summarise_scores()) of responses list(y, size) under the distribution averaged over f ~
# N(f$mean, f$var), offset included. A Gaussian likelihood has the noise f$noise and f$spread.
response_score <- function(response, y, f) summarise_scores(response, score_each(response, y, f))

# Returns a row for each response: y (a share of `size` trials), mean and sd of the distribution, log density, CRPS, and
# the probabilities of less than the response (`below`) and of at most the response (`upto`). The CRPS of a non-Gaussian
# likelihood takes up to 5 ms a row, and is NA unless `crps` is TRUE. For classes without an order, `mean` is the
# probability of the row's class. For several classes, ordered or not, `error` is the squared distance of all
# probabilities from the class, and `right` is TRUE if the class is the most probable one.
score_each <- function(response, y, f, crps = response$conjugate) {
  if (has_labels(response)) {
    p <- class_moments(f)
    own <- cbind(seq_along(y$y), y$y)
    hit <- replace(0 * p$mean, own, 1)
    return(data.frame(y = y$y, size = 1, mean = p$mean[own], sd = p$sd[own], density = log(p$mean[own]),
                      crps = NA_real_, below = NA_real_, upto = NA_real_, error = rowSums((hit - p$mean)^2),
                      right = max.col(p$mean, "first") == y$y))
  }
  size <- if (is.null(y$size)) rep(1, length(y$y)) else y$size
  f <- list(mean = unname(f$mean), var = unname(f$var), noise = f$noise, spread = f$spread, size = size)
  m <- if (response$conjugate) new_moments(response, f) else response_moments(response, f$mean, f$var)
  ends <- pit_ends(response, y$y, f)
  # For censored responses the error of the mean is unknown.
  seen <- if (has_ends(response)) ifelse(y$y == size, y$y, NA) else y$y
  if (crps && !response$conjugate) crps <- !is.null(response$cdf) && !anyNA(seen)
  each <- data.frame(y = seen / if (response$reads == "classes") pmax(size, 1) else 1, size = size, mean = m$mean,
                     sd = m$sd, density = response_log_density(response, y, f),
                     crps = if (crps) response_crps(response, y$y, f) else NA_real_, ends)
  if (!is_ordered(response)) return(each)
  p <- class_shares(response, f$mean, sqrt(pmax(f$var, 0)))
  hit <- replace(0 * p, cbind(seq_along(y$y), y$y), 1)
  cbind(each, error = rowSums((hit - p)^2), right = max.col(p, "first") == y$y)
}

pit_ends <- function(response, y, f) {
  if (response$conjugate) {
    upto <- noisy_cdf(transformed(response$transform, y) - f$mean, f)
    return(data.frame(below = upto, upto = upto))
  }
  cdf <- function(y) predictive_cdf(response, y, f$size, f$mean, sqrt(pmax(f$var, 0)))
  if (is.null(response$cdf)) return(data.frame(below = NA_real_ * y, upto = NA_real_ * y))
  if (has_ends(response)) return(data.frame(below = cdf(y), upto = cdf(f$size)))
  upto <- cdf(y)
  below <- if (response$discrete) cdf(y - 1) else if (isTRUE(response$zeros)) ifelse(y > 0, upto, 0) else upto
  data.frame(below = below, upto = upto)
}

# Returns one row of scores from the rows of score_each(): n, rmse, nlpd, crps. For classes and trials it also has
# accuracy and brier, the mean squared distance of single trials from the probability. cover50 and cover95 are the
# shares of responses inside their central intervals, except for single classes.
summarise_scores <- function(response, each) {
  p <- each$mean
  labels <- has_labels(response)
  trials <- response$reads == "classes"
  several <- labels || is_ordered(response)
  brier <- if (several) mean(each$error) else
    sum(each$size * (each$y * (1 - p)^2 + (1 - each$y) * p^2)) / sum(each$size)
  right <- if (several) each$right else (p > 0.5) == (each$y > 0.5)
  inside <- function(level) {
    if (labels || has_classes(response)) return(NA_real_)
    mean(each$upto >= (1 - level) / 2 & each$below < (1 + level) / 2)
  }
  data.frame(n = nrow(each), rmse = if (labels) NA_real_ else sqrt(mean((each$y - p)^2, na.rm = TRUE)),
             nlpd = -mean(each$density), crps = mean(each$crps),
             brier = if (several || trials) brier else NA_real_,
             accuracy = if (several || trials) mean(right) else NA_real_, cover50 = inside(0.5), cover95 = inside(0.95))
}

# Returns the continuous ranked probability score of each response, the integral of (F(t) - 1{y <= t})^2 over t, where F
# is the distribution averaged over f ~ N(f$mean, f$var), and f$size has the trials. Successes count as shares.
response_crps <- function(response, y, f) {
  if (response$conjugate && is.null(response$transform) && !is_spread(f)) {
    sd <- sqrt(f$var + f$noise)
    z <- (y - f$mean) / sd
    return(sd * (z * (2 * stats::pnorm(z) - 1) + 2 * stats::dnorm(z) - 1 / sqrt(pi)))
  }
  if (!length(y)) return(numeric())
  sd <- sqrt(if (response$conjugate) f$var + f$noise else pmax(f$var, 0))
  if (response$discrete) {
    return(crps_of_counts(response, y, f$size, f$mean, sd) / if (response$reads == "classes") f$size else 1)
  }
  # The noise may be a single number for all rows.
  noisy <- lapply(Filter(length, list(var = f$var, noise = f$noise, spread = f$spread)), rep_len, length(y))
  cdf <- function(n, t) { # `n` has the row of each t
    if (response$conjugate) {
      of_row <- lapply(noisy, `[`, n)
      return(noisy_cdf(transformed(response$transform, t) - f$mean[n], of_row))
    }
    predictive_cdf(response, t, f$size[n], f$mean[n], sd[n])
  }
  # Find ends beyond which the distribution has a millionth of its probability on each side.
  ends <- vapply(c(1e-6, 1 - 1e-6), function(p) {
    if (response$conjugate) return(untransformed(response$transform, f$mean + sd * stats::qnorm(p)))
    predictive_quantile(response, p, f$size, f$mean, sd)
  }, numeric(length(y)))
  ends <- matrix(ends, ncol = 2L)
  blocks <- split(seq_along(y), (seq_along(y) - 1L) %/% 256L)
  positive <- response$reads %in% c("positive", "times") || identical(response$transform$kind, "log")
  unlist(lapply(blocks, function(n) crps_by_halves(cdf, n, y[n], ends[n, , drop = FALSE], positive)), use.names = FALSE)
}

# Returns, for each count y, the sum over whole numbers t of (P(Y <= t) - 1{y <= t})^2. If t has too many values, the
# cdf is computed at values dense around y and the median, and the squares are interpolated linearly.
crps_of_counts <- function(response, y, size, mu, s) {
  least <- if (is.null(response$from)) 0 else response$from
  out <- if (is_ordered(response)) NA * y else vapply(seq_along(y), function(i) {
    crps_by_masses(response, y[i], size[i], mu[i], max(s[i], 1e-6), least)
  }, 0)
  rest <- which(is.na(out))
  ends <- matrix(vapply(c(1e-6, 0.5, 1 - 1e-6), function(p) {
    predictive_quantile(response, p, size[rest], mu[rest], s[rest])
  }, 0 * rest), ncol = 3L)
  away <- unique(round(c(0:20, 20 * 1.12^(1:700))))
  for (k in seq_along(rest)) {
    i <- rest[k]
    from <- max(min(ends[k, 1L], y[i]) - 1, 0)
    to <- max(ends[k, 3L], y[i])
    t <- c(from, to, outer(c(y[i] - 1, y[i], ends[k, 2L]), c(-away, away), `+`))
    t <- sort(unique(t[t >= from & t <= to]))
    same <- rep(1, length(t))
    square <- (predictive_cdf(response, t, size[i] * same, mu[i] * same, s[i] * same) - (y[i] <= t))^2
    rise <- diff(square)
    out[i] <- square[1L] + sum(diff(t) * (square[-1L] - rise / 2) + rise / 2)
  }
  out
}

# Returns the sum for one response from the probability of each number, averaged over f by the trapezoid rule. Its step
# is below the sd of f, and below the width 1 / sqrt(W) of each likelihood. Returns NA beyond 2e5 values.
crps_by_masses <- function(response, y, size, mu, s, least) {
  values <- function(y, f) {
    sites <- engine_sites(response$likelihood, list(y = y, size = rep(size, length(y)), offset = 0 * y), 0)
    at <- native_likelihood(sites, f + sites$offset)
    list(log = at[1L, ] + sites$constant, W = at[3L, ])
  }
  from <- max(min(quantile_given(response, 5e-7, size, mu, s), y), least)
  to <- max(quantile_given(response, 1 - 5e-7, size, mu, s), y)
  wide <- mu + s * seq(-5.5, 5.5, by = 0.5)
  at_mean <- round(response$link$inv(wide) * if (response$reads == "classes") size else 1)
  width <- 1 / sqrt(max(values(pmin(pmax(at_mean, from), to), wide)$W))
  steps <- 1 + ceiling(11 / 0.8 * max(1, s / width))
  if (!isTRUE((to - from + 1) * steps < 2e5)) return(NA_real_)
  z <- seq(-5.5, 5.5, length.out = steps)
  t <- from:to
  mass <- matrix(exp(values(rep(t, length(z)), rep(mu + s * z, each = length(t)))$log), length(t))
  weight <- stats::dnorm(z)
  sum((cumsum(drop(mass %*% weight) / sum(weight)) - (y <= t))^2)
}

# Returns the integrals on either side of y, with t = y -+ unit exp(pi / 2 sinh(z)), or below y towards a positive
# response's 0 with t = y / (1 + exp(pi sinh(z))). The trapezoid rule in z converges exponentially (Takahasi and Mori
# 1974). `n` has the numbers of the rows.
crps_by_halves <- function(cdf, n, y, ends, positive) {
  h <- 0.05
  z <- rep(seq(-4, 4, by = h), each = length(n))
  unit <- pmax(ends[, 2L] - ends[, 1L], abs(y - ends[, 1L]), abs(y - ends[, 2L])) / 8
  away <- unit * exp(pi / 2 * sinh(z)) # recycled over the rows
  slope <- pi / 2 * cosh(z) * away
  at <- function(t) cdf(rep_len(n, length(z)), t)
  above <- (1 - at(pmin(y + away, 1e300)))^2 * slope
  below <- if (positive) {
    share <- stats::plogis(-pi * sinh(z))
    at(pmax(y * share, 1e-300))^2 * y * share * (1 - share) * pi * cosh(z)
  } else {
    at(pmax(y - away, -1e300))^2 * slope
  }
  total <- ifelse(is.finite(slope), above, 0) + ifelse(positive | is.finite(slope), below, 0)
  h * rowSums(matrix(total, length(n)))
}
