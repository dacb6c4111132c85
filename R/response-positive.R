# Defines the families tweedie() (numbers of at least 0 whose variance is a power of their mean), truncated_poisson()
# (counts above 0) and multinomial(), and averages that families share.

log_of_mean <- function(sites, w) log(sum(w * sites$y * exp(-sites$offset)) / sum(w + 0 * sites$y))

# Counts with a mean m above 1e9 are approximated, because R's quantile functions are slow or fail: Poisson counts by m
# + sqrt(m) u with u ~ N(0, 1), negative binomial counts by m G / theta with G ~ Gamma(theta).
large_count <- 1e9

# Returns E h(u, i) for u ~ N(0, 1) and each row i, by the trapezoid rule. h() gets vectors of about `most` elements,
# at least one u for all rows. Steps are halved, down to 0.001, until no average changes by over 1e-7. Steps of 0.5
# suffice for smooth h, but for nb() with a small theta, h has a kink in u.
average_over_u <- function(rows, h, most = 1e5, step = 0.5) {
  add <- function(u, rows) {
    out <- 0
    for (u in split(u, ceiling(seq_along(u) * length(rows) / most))) {
      each <- h(rep(u, each = length(rows)), rep(rows, length(u)))
      for (k in seq_along(u)) out <- out + stats::dnorm(u[k]) * each[(k - 1) * length(rows) + seq_along(rows)]
    }
    out
  }
  u <- seq(-6.5, 6.5, by = step)
  total <- add(u, rows)
  out <- total / sum(stats::dnorm(u))
  open <- seq_along(rows)
  while (length(open) && step > 1e-3) {
    total[open] <- total[open] + add(u[-1L] - step / 2, rows[open])
    step <- step / 2
    u <- seq(-6.5, 6.5, by = step)
    average <- total[open] / sum(stats::dnorm(u))
    moved <- which(abs(average - out[open]) > 1e-7)
    out[open] <- average
    open <- open[moved]
  }
  out
}

# ---- counts above 0 -------------------------------------------------------------------------------------------------

# Returns the mean m / (1 - e^-m), m = e^f, of a Poisson count that is not 0. rate_of() returns m for a mean, by
# Newton's method in m: the log mean has the derivative 1 - m / (e^m - 1) in log m.
mean_above_0 <- function(f) {
  m <- exp(f)
  ifelse(m < 1e-12, 1 + m / 2, m / -expm1(-m))
}

rate_of <- function(mean) {
  m <- pmax(mean - 1, 1e-300) * ifelse(mean < 2, 2, 1)
  for (i in 1:8) {
    few <- pmin(m, 700)
    m <- m * pmax(1 - (1 - mean / mean_above_0(log(m))) / ifelse(m < 1e-6, m / 2, 1 - few / expm1(few)), 0.1)
  }
  m
}

cdf_above_0 <- function(y, m) ifelse(y < 1, 0, 1 - stats::ppois(y, m, lower.tail = FALSE) / -expm1(-m))

truncated_row <- list(
  name = "truncated_poisson", label = "zero-truncated Poisson", call = "truncated_poisson()", links = "log",
  mean_link = "above_0", reads = "counts", from = 1, discrete = TRUE, site = "positive",
  ratio = function(theta) c("ratio of Poisson rates" = 1), constant = function(y, size, theta) -lgamma(y + 1),
  start = function(sites, w) log(rate_of(max(sum(w * sites$y) / sum(w + 0 * sites$y), 1.05))) - mean(sites$offset),
  cdf = function(y, mean, size, theta) cdf_above_0(y, rate_of(mean)),
  limit = function(u, y, size, theta, link) {
    bisect(function(f) cdf_above_0(y, exp(f)) > stats::pnorm(-u), 0 * y - 700, 0 * y + 700)
  },
  quantile = function(p, mean, size, theta) {
    m <- pmin(rate_of(mean), large_count)
    ifelse(mean > m + 1, mean + sqrt(mean) * stats::qnorm(p),
           pmax(stats::qpois((1 - p) * -expm1(-m), m, lower.tail = FALSE), 1))
  },
  variance = function(mean, sd, size, theta) mean * (1 + rate_of(mean) - mean),
  deviance = function(y, mean, size, theta) {
    l <- function(m) y * log(m) - m - log(-expm1(-m))
    2 * (ifelse(y > 1, l(rate_of(y)), 0) - l(rate_of(mean)))
  })

#' @rdname gp_hurdle
#' @export
truncated_poisson <- function() new_family("truncated_poisson", "log")

# ---- Tweedie ---------------------------------------------------------------------------------------------------------

# Returns list(phi, p, size, rate, scale) of Tweedie's response: the sum of N gamma variables with shape parameter
# `size` and `scale`, N ~ Poisson(rate). Its variance is phi mean^p, 1 < p < 2. theta is c(phi, (p - 1) / (2 - p)).
tweedie_parts <- function(theta, mean = 1) {
  p <- 1 + theta[2L] / (1 + theta[2L])
  list(phi = theta[1L], p = p, size = (2 - p) / (p - 1), rate = mean^(2 - p) / (theta[1L] * (2 - p)),
       scale = theta[1L] * (p - 1) * mean^(p - 1))
}

# Chooses the terms of infinite sums over n = 1, 2, ...: row i of the matrix n has the indices for sum i. As a function
# of n, the terms are like a normal density (`middle`, `sd`) times a factor that changes over a distance `width`. If
# `middle` and `width` are large, a row has only every by-th index (trapezoid rule).
terms_around <- function(middle, sd, width = sd) {
  far <- middle > 8 * sd + 5
  by <- ifelse(far, pmax(1, floor(width / 1.5)), 1)
  from <- ifelse(far, floor(middle - 8 * sd), 1)
  list(n = from + outer(by, 0:ceiling(max((middle + 8 * sd + 14 - from) / by))), by = by)
}

# Returns three columns: the terms of log p(y | f) without f, a series (Dunn and Smyth 2005), and their derivatives in
# log phi and log odds. theta is c(phi, odds), with odds = (p - 1) / (2 - p) for the power p.
tweedie_series <- function(theta, y) {
  of <- tweedie_parts(theta)
  a <- of$size
  p <- of$p
  out <- matrix(0, length(y), 3L)
  some <- which(y > 0)
  if (!length(some)) return(out)
  log_y <- log(y[some])
  middle <- exp((2 - p) * log_y) / (of$phi * (2 - p))
  sum <- terms_around(middle, sqrt(middle / (1 + a)))
  n <- sum$n
  each <- n * (a * (log_y - log(p - 1)) - (1 + a) * log(of$phi) - log(2 - p)) - lgamma(n + 1) - lgamma(n * a)
  value <- log_row_sums(each)
  share <- exp(each - value)
  # `slope` has the derivatives in p of the logs of the terms; a = (2 - p) / (p - 1) has the derivative -1 / (p - 1)^2.
  slope <- n * ((log(p - 1) - log_y + log(of$phi) + digamma(n * a)) / (p - 1)^2 - a / (p - 1) + 1 / (2 - p))
  out[some, ] <- c(value + log(sum$by) - log_y, -(1 + a) * rowSums(share * n),
                   rowSums(share * slope) * (p - 1) * (2 - p))
  out
}

# Returns P(Y <= y | f) of Tweedie's response Y or, if `area`, its integral from 0 to y, E max(y - Y, 0). If Y is the
# sum of Poisson(rate) gamma variables with a rate above 1e12, Y is nearly normal.
tweedie_given <- function(theta, y, f, area = FALSE) {
  at <- tweedie_parts(theta, exp(f))
  few <- pmin(at$rate, 1e12)
  out <- exp(-few) * if (area) y else 1
  # Rows that need similar numbers of terms (values of the Poisson variable) share a matrix.
  for (i in split(seq_along(few), ceiling(2 * log2(pmin(few, 100) + 1)))) {
    sum <- terms_around(few[i], sqrt(few[i]), sqrt(few[i] / (1 + at$size))) # pgamma() falls within this width of n
    shape <- sum$n * at$size
    scale <- pmax(at$scale[i], .Machine$double.xmin)
    upto <- stats::pgamma(y[i] / scale, shape)
    if (area) upto <- y[i] * upto - shape * scale * stats::pgamma(y[i] / scale, shape + 1)
    out[i] <- out[i] + sum$by * rowSums(stats::dpois(sum$n, few[i]) * upto)
  }
  sd <- sqrt(at$phi * exp((at$p - 2) * f)) # sd is relative to the mean
  z <- (y * exp(-f) - 1) / sd
  if (!area) return(ifelse(at$rate > few, stats::pnorm(z), pmin(out, 1)))
  ifelse(at$rate > few, exp(f) * sd * (z * stats::pnorm(z) + stats::dnorm(z)), out)
}

# Computes P(Y <= y | f) or, if `area`, E max(y - Y, 0) faster than tweedie_given(). Far from the mean e^f, P(Y <= y |
# f) is 1 or 0 up to rounding (by Chernoff's bound).
tweedie_near <- function(theta, y, f, area = FALSE) {
  near <- !(tweedie_row$deviance(y, exp(f), 1, theta) > 80) %in% TRUE
  out <- if (area) pmax(y - exp(f), 0) else as.numeric(exp(f) < y)
  out[near] <- tweedie_given(theta, y[near], f[near], area)
  out
}

# Returns P(Y <= y) averaged over f ~ N(mu, s^2). As f grows, P(Y <= y | f) falls from 1 to 0 within about `width` times
# s. If s is large or `width` small, averages Phi((U(u) - mu) / s) over u ~ N(0, 1), where P(Y <= y | U(u)) = Phi(-u).
tweedie_cdf <- function(theta, y, mu, s) {
  if (!length(mu)) return(mu)
  y <- rep_len(y, length(mu))
  s <- rep_len(s, length(mu))
  if (all(s == 0)) return(tweedie_given(theta, y, mu))
  width <- sqrt(theta[1L] * pmax(pmin(y, exp(mu + 6 * s)), 1e-300)^(tweedie_parts(theta)$p - 2)) / s
  wide <- s > 16 | width < 0.004 # f would need too many steps
  out <- mu
  steps <- seq(-6.5, 6.5) # steps of 1 suffice, because pnorm() below changes slowly in u
  for (k in split(which(wide), ceiling(seq_len(sum(wide)) / 500))) {
    u <- rep(steps, each = length(k))
    f <- bisect(function(f) tweedie_near(theta, rep(y[k], 14), f) > stats::pnorm(-u), 0 * u - 700, 0 * u + 700)
    out[k] <- rowSums(matrix(stats::dnorm(u) * stats::pnorm((f - mu[k]) / s[k]), length(k))) / sum(stats::dnorm(steps))
  }
  k <- which(!wide)
  out[k] <- average_over_u(k, function(u, i) tweedie_near(theta, y[i], mu[i] + s[i] * u), step = 1)
  out
}

# Returns v(f) with the derivative slope(f) = sqrt(least^2 + e^(power f) / phi). Points evenly spaced in v are dense in
# f where the sd of log Y, sqrt(phi e^(-power f)), is small. at(share) returns the f at this share of the range of v.
even_map <- function(from, to, least, phi, power) {
  slope <- function(f) sqrt(least^2 + exp(power * f) / phi)
  v <- function(f) least * f + 2 / power * (slope(f) - least * log(slope(f) + least))
  range <- v(to) - v(from)
  list(v = v, slope = slope, range = range, at = function(share) {
    bisect(function(f) v(f) - v(from) < share * range, from + 0 * share, to + 0 * share)
  })
}

# Returns a row of weights for each N(mu, s^2). Weight j is proportional to the average over this density of the
# polynomial in map$v that is 1 at f[j] and 0 at the other f (barycentric formula for Chebyshev's points).
polynomial_weights <- function(map, f, mu, s) {
  sign <- rep_len(c(1, -1), length(f)) * c(0.5, rep(1, length(f) - 2L), 0.5)
  at <- map$v(f)
  u <- seq(-6.5, 6.5, by = min(1, 0.4 / (s * map$slope(mu + 5 * s))))
  Reduce(`+`, lapply(u, function(u) {
    gap <- outer(map$v(mu + s * u), at, `-`)
    each <- rep(sign, each = length(mu)) / ifelse(gap == 0, 1e-300, gap)
    stats::dnorm(u) * each / rowSums(each)
  }))
}

# Returns the CRPS of y for f ~ N(mu, s^2), or NA where the grids would be large. With F the distribution function of Y,
# the CRPS is the integral of (1 - F(t))^2 over t > 0, plus 2 E max(y - Y, 0) - y. All rows share a matrix of
# P(Y <= t | f), on grids by even_map(): Chebyshev's points f, and t in equal steps (trapezoid rule).
tweedie_crps <- function(theta, y, mu, s) {
  of <- tweedie_parts(theta)
  low <- min(mu) - 2
  top <- max(mu + 5 * s)
  past <- top + 1 + log1p(12 * sqrt(of$phi * exp((of$p - 2) * top))) # Y hardly ever exceeds e^past
  map <- even_map(min(mu - 6.5 * s) - 0.1, max(mu + 6.5 * s) + 0.1, 2, of$phi, 2 - of$p)
  t_map <- even_map(low - 3.2, past, 1, of$phi * (of$p - 1), 2 - of$p)
  K <- 10 + ceiling(2.5 * map$range)
  steps <- ceiling(t_map$range / 0.5)
  if (!isTRUE(K * steps < 1e6 && length(mu) <= 2000)) { # each half of the rows needs smaller grids
    if (length(mu) < 2L) return(NA * mu)
    half <- rank(mu, ties.method = "first") <= length(mu) / 2
    return(unsplit(lapply(split(seq_along(mu), half), function(i) tweedie_crps(theta, y[i], mu[i], s[i])), half))
  }
  angle <- pi * (0:K) / K
  f <- map$at((1 - cos(angle)) / 2)
  v <- t_map$at((0:steps) / steps)
  t <- exp(v - exp(low - v))
  slope <- t_map$range / steps * t * (1 + exp(low - v)) / t_map$slope(v)
  P <- matrix(tweedie_near(theta, rep(t, K + 1), rep(f, each = length(t))), length(t))
  # Average P over the grid f: by the trapezoid rule in `angle` for wide N(mu, s^2), else by interpolating polynomials.
  weight <- stats::dnorm(outer(mu, f, `-`) / s) * rep(sin(angle) / map$slope(f), each = length(mu))
  narrow <- which(s * map$slope(mu - 6.5 * s) < 1)
  if (length(narrow)) weight[narrow, ] <- polynomial_weights(map, f, mu[narrow], s[narrow])
  above <- 1 - tcrossprod(weight / rowSums(weight), P)
  some <- which(y > 0)
  area <- average_over_u(some, function(u, i) tweedie_near(theta, y[i], mu[i] + s[i] * u, TRUE) / y[i], step = 1)
  drop(above^2 %*% slope) - replace(y, some, y[some] * (1 - 2 * area))
}

# Returns the p-quantile of Y, averaged over f ~ N(mu, s^2): 0, or e^t with the root t of tweedie_cdf(e^t) = p. False
# position (Illinois) finds t. It is slow for steep cdfs, so some later steps bisect.
tweedie_quantile <- function(theta, p, mu, s) {
  p <- rep_len(p, length(mu))
  open <- which(p > tweedie_cdf(theta, 0 * mu, mu, s))
  if (!length(open)) return(0 * mu)
  beyond <- function(t, k = seq_along(t)) tweedie_cdf(theta, exp(t), mu[open[k]], s[open[k]]) - p[open[k]]
  within <- function(t) pmin(pmax(t, log(.Machine$double.xmin)), log(.Machine$double.xmax))
  end <- function(sign) {
    t <- within(mu[open] + sign)
    short <- seq_along(open)
    for (step in 2^(0:10)) {
      short <- short[sign * beyond(t[short], short) <= 0]
      t[short] <- within(t[short] + sign * step)
    }
    t
  }
  a <- end(-1)
  b <- end(1)
  at_a <- beyond(a)
  at_b <- beyond(b)
  b <- ifelse(at_a >= 0, a, b) # the root is below the smallest double
  a <- ifelse(at_b < 0, b, a) # the root is above the largest double
  at_a <- pmin(at_a, -1e-300)
  at_b <- pmax(at_b, 1e-300)
  k <- seq_along(open) # the rows whose roots are not yet found
  for (i in 1:100) if (length(k)) {
    t <- if (i > 12L && i %% 2L) (a[k] + b[k]) / 2 else b[k] - at_b[k] * (b[k] - a[k]) / (at_b[k] - at_a[k])
    now <- beyond(t, k)
    crossed <- now * at_b[k] < 0
    at_a[k] <- ifelse(crossed, at_b[k], at_a[k] / 2)
    a[k] <- ifelse(crossed, b[k], a[k])
    done <- abs(now) < 1e-12 | abs(t - b[k]) < 1e-12
    b[k] <- t
    at_b[k] <- now
    k <- k[!done]
  }
  replace(0 * mu, open, exp(b))
}

tweedie_row <- list(
  name = "tweedie", label = "Tweedie", call = "tweedie()", links = "log", reads = "positive", zeros = TRUE,
  site = "tweedie", shape = function(likelihood) c("phi", if (is.null(likelihood$df)) "p"),
  shown = function(theta) c(theta[1L], tweedie_parts(c(1, theta[2L]))$p)[seq_along(theta)],
  shown_slopes = function(theta) { # the derivative of p in log odds is (p - 1) (2 - p)
    p <- tweedie_parts(c(1, theta[2L]))$p
    c(1, (p - 1) * (2 - p) / p)
  },
  known = function(odds) paste("power", format(tweedie_parts(c(1, odds))$p)),
  middle = function(sites, w, levels) { # phi by the moments of y for p = 1.5, and odds 1
    mean <- sum(w * sites$y) / sum(w + 0 * sites$y)
    c(max(sum(w * (sites$y - mean)^2) / sum(w + 0 * sites$y), 1e-6 * mean^2) / mean^1.5, 1)
  },
  # For rounded responses and p near 1 the density has a spike at each step. The sum of k gamma variables of a step has
  # the sd sqrt(k odds) steps. With at least 1/2 no spike is left; k is for the lower quartile of the responses above 0.
  # The power is also at least 1.01, as in mgcv::tw().
  least = function(at) c(0, max(1 / 99, smallest_step(c(0, at$y)) / (4 * stats::quantile(at$y[at$y > 0], 0.25)))),
  constant = function(y, size, theta) tweedie_series(theta, y)[, 1L],
  theta_slopes = function(theta, y, f) {
    of <- tweedie_parts(theta)
    a <- 1 - of$p
    b <- 2 - of$p
    u <- ifelse(y > 0, y * exp(a * f), 0) / of$phi
    w <- exp(b * f) / of$phi
    g <- u - w
    W <- b * w - a * u
    in_p <- -a * b # the derivative of p in log odds
    series <- tweedie_series(theta, y)
    list(l = cbind(w / b - u / a + series[, 2L], (u * (1 / a^2 - f / a) - w * (1 / b^2 - f / b)) * in_p + series[, 3L]),
         g = cbind(-g, -f * g * in_p), W = cbind(-W, (g - f * W) * in_p))
  },
  start = log_of_mean,
  engine = function(sites, theta) {
    of <- tweedie_parts(theta)
    replace(sites, c("size", "shape"), list(NULL, c(of$phi, of$p)))
  },
  cdf = function(y, mean, size, theta) tweedie_cdf(theta, y, log(mean), 0 * mean),
  quantile = function(p, mean, size, theta) tweedie_quantile(theta, p, log(mean), 0 * mean),
  draw = function(mean, size, theta) {
    of <- tweedie_parts(theta, mean)
    of$scale * stats::rgamma(length(mean), stats::rpois(length(mean), of$rate) * of$size)
  },
  variance = function(mean, sd, size, theta) { # is averaged over a log-normal mean
    of <- tweedie_parts(theta)
    of$phi * mean^of$p * (1 + sd^2 / mean^2)^(of$p * (of$p - 1) / 2)
  },
  deviance = function(y, mean, size, theta) {
    of <- tweedie_parts(theta)
    part <- function(power) (y^power - mean^power) / power
    2 * (ifelse(y > 0, y * part(1 - of$p), 0) - part(2 - of$p)) / of$phi
  },
  averaged = list(cdf = function(theta, y, size, mu, s) tweedie_cdf(theta, y, mu, s),
                  quantile = function(theta, p, size, mu, s) tweedie_quantile(theta, p, mu, s), crps = tweedie_crps),
  turns = function(sites) list(log(sites$y) + 2 * log((sites$shape[2L] - 1) / (2 - sites$shape[2L]))))

#' @rdname student
#' @export
tweedie <- function(p = NULL, phi = NULL) {
  if (!is.null(p)) p <- check_number(p, "p", "a number between 1 and 2", function(v) v > 1 && v < 2)
  phi <- positive_or_null(phi, "phi")
  if (is.null(p) && !is.null(phi)) abort_input("phi", "is given without `p`", hint = "Give `p`, or leave `phi` out.")
  new_family("tweedie", "log", theta = phi, df = if (!is.null(p)) (p - 1) / (2 - p))
}

# ---- several classes ------------------------------------------------------------------------------------------------

#' Model responses with several classes, ordered or not
#'
#' These functions make families for `family` of [pfdtc()]. With `multinomial()` each row has one of K classes with
#' probabilities \eqn{p_k = \exp(f_k) / \sum_j \exp(f_j)}{p_k = exp(f_k) / sum_j exp(f_j)} (softmax). With `ordinal()`
#' the response is an ordered factor. Classes are intervals between cut points. A row's class contains \eqn{f + e},
#' where \eqn{e} is noise.
#'
#' The K functions of `multinomial()` share one kernel, and each has its own constant mean. `predict(type = "latent")`
#' returns f_k - f_1, the log odds against the first class. By default three or more classes have `multinomial()`.
#' Ordered ones have `ordinal()`, or the better of both if leave-one-out predictions contradict `ordinal()`. With two
#' classes the model is, except for priors, [binomial()] with twice the kernel variance. Levels without rows are
#' dropped. Probabilities are averaged over the posterior of f.
#'
#' The first cut point of `ordinal()` is 0, because \eqn{f} has a constant mean. The widths of the classes between the
#' first and the last are learned, and `coef()` returns the widths. `print()` shows the cut points minus the mean
#' or intercept, as `MASS::polr()` does.
#' @param link distribution of \eqn{e}: `"logit"` is logistic (proportional odds), `"probit"` normal, `"cloglog"` the
#'   log of an exponential (proportional hazards). `multinomial()` has only `"softmax"`.
#' @return An object of class `pfdtc_family`. With `ordinal()`, [pfdtc()] refuses a response that is no ordered factor.
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, section 3.5; McCullagh (1980), JRSS
#'   B 42; Chu and Ghahramani (2005), JMLR 6.
#' @seealso [pfdtc()], [predict.gp_fit()], [certify()], `vignette("classes")`, `vignette("ordered")`
#' @examples
#' fit <- pfdtc(Species ~ Petal.Length + Petal.Width, iris, family = multinomial(),
#'              kernel = kernel_se())
#' predict(fit, iris[c(1, 71, 120), ], type = "response")
#' d <- transform(cars, far = cut(dist, c(-Inf, 20, 50, Inf), c("near", "middle", "far"),
#'                                ordered_result = TRUE))
#' fit <- pfdtc(far ~ speed, d, family = ordinal(), kernel = kernel_se())
#' predict(fit, data.frame(speed = c(5, 15)), type = "response")
#' predict(fit, data.frame(speed = c(5, 15)), type = "class")
#' @export
multinomial <- function(link = "softmax") new_family("multinomial", check_choice(link, "softmax", "link"))
