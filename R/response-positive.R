# Defines the families tweedie() (numbers of at least 0), truncated_poisson() (counts above 0) and multinomial().

log_of_mean <- function(sites, w) log(sum(w * sites$y * exp(-sites$offset)) / sum(w + 0 * sites$y))

# Larger counts are approximated, because R's quantile functions are slow or fail: a Poisson count of mean m by m +
# sqrt(m) u with u ~ N(0, 1), a negative binomial count by m G / theta with G ~ Gamma(theta).
large_count <- 1e9

# ---- Tweedie --------------------------------------------------------------------------------------------------------

# Returns list(phi, p, size, rate, scale) of Tweedie's response: the sum of N gamma variables with shape parameter
# `size` and this `scale`, N ~ Poisson(rate). The sum has mean e^f and variance phi mean^p, 1 < p < 2, and theta =
# c(phi, odds), odds = (p - 1) / (2 - p).
tweedie_parts <- function(theta, mean = 1) {
  p <- 1 + theta[2L] / (1 + theta[2L])
  list(phi = theta[1L], p = p, size = (2 - p) / (p - 1), rate = mean^(2 - p) / (theta[1L] * (2 - p)),
       scale = theta[1L] * (p - 1) * mean^(p - 1))
}

# Returns list(n, by): row i of n has the indices that sum i over 1, 2, ... uses. Its terms are like a normal density
# with this `middle` and `sd` times a factor that changes within `width`. If `middle` and `width` are large, a row has
# only every `by`-th index (trapezoid rule).
terms_around <- function(middle, sd, width = sd) {
  far <- middle > 8 * sd + 5
  by <- ifelse(far, pmax(1, floor(width / 1.5)), 1)
  from <- ifelse(far, floor(middle - 8 * sd), 1)
  list(n = from + outer(by, 0:ceiling(max((middle + 8 * sd + 14 - from) / by))), by = by)
}

# Returns columns: the terms of log p without f, their derivatives in log phi and in log odds (Dunn and Smyth 2005).
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
  # `slope` has the derivatives of `each` in p, where a = (2 - p) / (p - 1) has the derivative -1 / (p - 1)^2.
  slope <- n * ((log(p - 1) - log_y + log(of$phi) + digamma(n * a)) / (p - 1)^2 - a / (p - 1) + 1 / (2 - p))
  out[some, ] <- c(value + log(sum$by) - log_y, -(1 + a) * rowSums(share * n),
                   rowSums(share * slope) * (p - 1) * (2 - p))
  out
}

# Returns P(Y <= y | f). Above a rate of 1e12, Y is nearly normal.
tweedie_given <- function(theta, y, f) {
  at <- tweedie_parts(theta, exp(f))
  few <- pmin(at$rate, 1e12)
  out <- exp(-few)
  # Rows with similar numbers of terms share a matrix.
  for (i in split(seq_along(few), ceiling(2 * log2(pmin(few, 100) + 1)))) {
    sum <- terms_around(few[i], sqrt(few[i]), sqrt(few[i] / (1 + at$size))) # pgamma() falls within sqrt(n / size)
    terms <- stats::dpois(sum$n, few[i]) *
      stats::pgamma(y[i] / pmax(at$scale[i], .Machine$double.xmin), sum$n * at$size)
    out[i] <- out[i] + sum$by * rowSums(terms)
  }
  ifelse(at$rate > few, stats::pnorm((y * exp(-f) - 1) / sqrt(at$phi * exp((at$p - 2) * f))), pmin(out, 1))
}

# Returns P(Y <= y) averaged over f ~ N(mu, s^2), by the trapezoid rule. Its steps are below half the `width` (in sds of
# f) of the range in which P(Y <= y | f) falls. If s is large or the width small, averages over U as predictive_cdf().
tweedie_cdf <- function(theta, y, mu, s) {
  if (!length(mu)) return(mu)
  y <- rep_len(y, length(mu))
  s <- rep_len(s, length(mu))
  if (all(s == 0)) return(tweedie_given(theta, y, mu))
  average <- function(by, h) { # of h(u, i) over u ~ N(0, 1), with steps by[i] for the i-th average
    count <- floor(13 / by) + 1 # steps of 1 have an error of 3e-9
    parts <- lapply(split(seq_along(by), cumsum(count) %/% 1e5), function(k) {
      i <- rep(k, count[k])
      u <- by[i] * (sequence(count[k]) - 1) - 6.5
      rowsum(stats::dnorm(u) * h(u, i), i, reorder = FALSE) / rowsum(stats::dnorm(u), i, reorder = FALSE)
    })
    unlist(parts, use.names = FALSE)
  }
  # By Chernoff's bound, exp(-deviance / 2), P(Y <= y | f) is 1 or 0 up to rounding if y is far from the mean.
  given <- function(f, i) {
    near <- !tweedie_row$deviance(y[i], exp(f), 1, theta) > 80
    near <- near | is.na(near)
    out <- as.numeric(exp(f) < y[i])
    out[near] <- tweedie_given(theta, y[i][near], f[near])
    out
  }
  width <- sqrt(theta[1L] * pmax(pmin(y, exp(mu + 6 * s)), 1e-300)^(tweedie_parts(theta)$p - 2)) / s
  wide <- s > 16 | width < 0.0375 # there would be too many steps in f
  out <- mu
  k <- which(wide)
  if (length(k)) out[k] <- average(1 + 0 * k, function(u, i) {
    f <- bisect(function(f) given(f, k[i]) > stats::pnorm(-u), 0 * u - 700, 0 * u + 700)
    stats::pnorm((f - mu[k][i]) / s[k][i])
  })
  k <- which(!wide)
  if (length(k)) {
    out[k] <- average(pmin(1, 0.4 * width[k], 0.5 / s[k]), function(u, i) given(mu[k][i] + s[k][i] * u, k[i]))
  }
  out
}

# Returns the p-quantile of the response, averaged over f ~ N(mu, s^2). It is 0, or the root of tweedie_cdf() in log y
# by false position (Illinois algorithm), and at most the largest double.
tweedie_quantile <- function(theta, p, mu, s) {
  p <- rep_len(p, length(mu))
  open <- which(p > tweedie_cdf(theta, 0 * mu, mu, s))
  if (!length(open)) return(0 * mu)
  beyond <- function(t) tweedie_cdf(theta, exp(t), mu[open], s[open]) - p[open]
  within <- function(t) pmin(pmax(t, log(.Machine$double.xmin)), log(.Machine$double.xmax))
  end <- function(sign) {
    t <- within(mu[open] + sign)
    for (step in 2^(0:10)) {
      short <- sign * beyond(t) <= 0
      if (!any(short)) break
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
  for (i in 1:60) {
    t <- b - at_b * (b - a) / (at_b - at_a)
    now <- beyond(t)
    crossed <- now * at_b < 0
    at_a <- ifelse(crossed, at_b, at_a / 2)
    a <- ifelse(crossed, b, a)
    done <- abs(now) < 1e-12 | abs(t - b) < 1e-12
    b <- t
    at_b <- now
    if (all(done)) break
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
  variance = function(mean, sd, size, theta) { # averaged over a log-normal mean
    of <- tweedie_parts(theta)
    of$phi * mean^of$p * (1 + sd^2 / mean^2)^(of$p * (of$p - 1) / 2)
  },
  deviance = function(y, mean, size, theta) {
    of <- tweedie_parts(theta)
    part <- function(power) (y^power - mean^power) / power
    2 * (ifelse(y > 0, y * part(1 - of$p), 0) - part(2 - of$p)) / of$phi
  },
  averaged = list(cdf = function(theta, y, size, mu, s) tweedie_cdf(theta, y, mu, s),
                  quantile = function(theta, p, size, mu, s) tweedie_quantile(theta, p, mu, s)),
  turns = function(sites) list(log(sites$y) + 2 * log((sites$shape[2L] - 1) / (2 - sites$shape[2L]))))

#' @rdname student
#' @export
tweedie <- function(p = NULL, phi = NULL) {
  if (!is.null(p)) p <- check_number(p, "p", "a number between 1 and 2", function(v) v > 1 && v < 2)
  phi <- positive_or_null(phi, "phi")
  if (is.null(p) && !is.null(phi)) abort_input("phi", "is given without `p`", hint = "Give both or none.")
  new_family("tweedie", "log", theta = phi, df = if (!is.null(p)) (p - 1) / (2 - p))
}

# ---- counts above 0 -------------------------------------------------------------------------------------------------

# Returns the mean m / (1 - e^-m), m = e^f, of a Poisson count that is not 0. rate_of() returns m for a mean, by
# Newton's method in log m: the log mean has the derivative 1 - m / (e^m - 1) in log m.
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
  constant = function(y, size, theta) -lgamma(y + 1),
  start = function(sites, w) {
    log(rate_of(max(sum(w * sites$y) / sum(w + 0 * sites$y), 1.05))) - mean(sites$offset)
  },
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

# Defines multinomial(), for responses that are one of K unordered classes. A distribution of f at n rows is that of the
# log odds of classes 2 to K against class 1: list(mean [n, K - 1], var [n, (K - 1)^2]). Each row of var is a covariance
# matrix, column by column.

#' Model responses with several classes, ordered or not
#'
#' These functions make families for the argument `family` of [pfdtc()]. With `multinomial()` each row has one of K
#' classes with probabilities \eqn{p_k = \exp(f_k) / \sum_j \exp(f_j)}{p_k = exp(f_k) / sum_j exp(f_j)} (softmax). With
#' `ordinal()` the response is an ordered factor. Its class is the interval between cut points that contains \eqn{f +
#' e}, where \eqn{e} is noise.
#'
#' The K functions of `multinomial()` share one kernel, and each has its own constant mean. `predict(type = "latent")`
#' returns the differences from the first function, which are the log odds against the first class. A factor with three
#' or more levels gets this family by default. With two classes the model equals [binomial()] with twice the kernel
#' variance. Levels without rows are dropped. Probabilities are averaged over the posterior of f.
#'
#' The first cut point of `ordinal()` is 0, because \eqn{f} has a constant mean. The widths of the classes between the
#' first and the last are learned, and `coef()` returns the widths. `print()` shows the cut points minus the mean or
#' intercept, as `MASS::polr()` does.
#' @param link distribution of the noise \eqn{e}: `"logit"` for logistic (proportional odds), `"probit"` for normal,
#'   `"cloglog"` for the log of an exponential (proportional hazards).
#' @return An object of class `pfdtc_family`. With `ordinal()`, [pfdtc()] raises an error if the factor is not ordered.
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
multinomial <- function() new_family("multinomial", "softmax")

# Returns TRUE if responses are one of several unordered classes, so that f is a vector.
has_labels <- function(response) response$reads == "labels"

# ---- responses ------------------------------------------------------------------------------------------------------

# Returns list(y, levels): the number of each row's class, and the names of the classes.
read_labels <- function(response, argument, n, ordered) {
  refuse_if(ordered && !is.ordered(response), argument,
            if (is.factor(response)) "a factor without an order" else describe(response), "an ordered factor",
            hint = sprintf("Make it one with the classes in their order: ordered(%s, levels = c(\"low\", \"high\")).",
                           argument))
  refuse_if(is.numeric(response) || length(dim(response)) == 2L || !is.atomic(response), argument, describe(response),
            "a factor, or text, with the class of each row",
            hint = if (is.numeric(response)) "factor() makes classes of numbers.")
  if (!is.factor(response)) response <- factor(response)
  if (length(response) != n) abort_input(argument, sprintf("has length %d, but there are %d rows", length(response), n))
  levels <- check_classes(base::levels(response), argument, TRUE)
  missing <- which(is.na(response))
  if (length(missing)) abort_input(argument, sprintf("has a missing value at element %d", missing[1L]))
  list(y = as.double(response), levels = levels)
}

# Returns the levels of a factor. Stops unless there are two, or at least two if `several`.
check_classes <- function(levels, argument, several) {
  K <- length(levels)
  if (K == 2L || several && K > 2L) return(levels)
  abort_input(argument,
              sprintf("has %d level%s (%s), but %s are needed", K, plural_s(K), list_quoted(levels, "\""),
                      if (several) "at least two" else "two"),
              hint = if (K > 2L) "Use family = multinomial() for more than two classes.")
}

# Returns K - 1 orthonormal contrasts of K classes as columns.
class_contrasts <- function(K) {
  C <- unname(stats::contr.helmert(K))
  C / rep(sqrt(colSums(C^2)), each = K)
}

# ---- log odds -------------------------------------------------------------------------------------------------------

# Returns the `rows` of a vector, a matrix, a data frame, or of each element of a list.
take_rows_of <- function(v, rows) {
  if (length(dim(v)) == 2L) return(v[rows, , drop = FALSE])
  if (is.list(v)) lapply(v, take_rows_of, rows) else v[rows]
}

# Converts the distribution `at` of contrasts of classes (covariance V) to that of log odds against the first class. Log
# odds are D times the contrasts plus differences of the constant means `center`. They have the covariance D V D'.
as_log_odds <- function(at, center) {
  n <- nrow(at$mean)
  q <- ncol(at$mean)
  C <- class_contrasts(q + 1L)
  D <- C[-1L, , drop = FALSE] - rep(C[1L, ], each = q)
  half <- aperm(array(matrix(at$var, n * q) %*% t(D), c(n, q, q)), c(1L, 3L, 2L))
  list(mean = at$mean %*% t(D) + rep(center[-1L] - center[1L], each = n),
       var = matrix(matrix(half, n * q) %*% t(D), n))
}

# Returns class probabilities (n x K) from log odds against the first class (n x (K - 1)).
softmax_of <- function(odds) {
  odds <- cbind(numeric(nrow(odds)), odds)
  top <- odds[cbind(seq_len(nrow(odds)), max.col(odds, "first"))]
  p <- exp(odds - top)
  p / rowSums(p)
}

# Returns list(value, slope): log(p_k / (1 - p_k)) of class k, and its derivatives in f of all classes (columns): 1 for
# class k, and -p_j / (1 - p_k) for class j. The code avoids 1 - p_k, which rounds to 0 if class k is nearly certain.
log_odds_of_class <- function(odds, k) {
  f <- cbind(numeric(nrow(odds)), odds)
  others <- f[, -k, drop = FALSE]
  share <- softmax_of(others[, -1L, drop = FALSE] - others[, 1L])
  top <- cbind(seq_len(nrow(f)), max.col(others, "first"))
  slope <- matrix(1, nrow(f), ncol(f))
  slope[, -k] <- -share
  list(value = f[, k] - others[top] + log(share[top]), slope = slope)
}

# Returns list(lwr, upr), ends of credible intervals for log odds that are normal with this sd and a mean between
# odds[[1]] and odds[[2]]. show() converts the ends from log odds.
ends_of_odds <- function(odds, sd, level, show) {
  half <- stats::qnorm((1 + level) / 2) * sd
  list(lwr = show(odds[[1L]] - half), upr = show(odds[[2L]] + half))
}
