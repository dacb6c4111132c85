# Defines the families truncated_poisson() (counts above 0) and multinomial(), and averages that families share.

log_of_mean <- function(sites, w) log(sum(w * sites$y * exp(-sites$offset)) / sum(w + 0 * sites$y))

# Larger counts are approximated, because R's quantile functions are slow or fail: a Poisson count of mean m by m +
# sqrt(m) u with u ~ N(0, 1), a negative binomial count by m G / theta with G ~ Gamma(theta).
large_count <- 1e9

# Returns E h(u, i) for u ~ N(0, 1) and each row i, by the trapezoid rule. h() gets vectors of at most
# `most` elements, or one u for all rows. Steps are halved until no average changes by more than 1e-7. Steps of 0.5
# suffice for smooth h, but limit_of_f() for nb() with a small theta has a kink in u.
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
