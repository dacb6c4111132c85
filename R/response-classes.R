# Responses that are one of K classes a row: the family multinomial(), and what a distribution of log odds is on the
# scale of probabilities. A distribution at n rows is list(mean [n, K - 1], var [n, (K - 1)^2]): log odds of the second
# and later classes against the first, and their covariance matrix at each row, column by column.

#' Responses with several classes, ordered or not
#'
#' For `family` of [pfdtc()]. `multinomial()`: each row has one of K classes, with probabilities
#' \eqn{p_k = \exp(f_k) / \sum_j \exp(f_j)}{p_k = exp(f_k) / sum_j exp(f_j)} (softmax). `ordinal()`: an ordered factor,
#' whose classes are the intervals between cut points in which \eqn{f + e} lies; the noise \eqn{e} is logistic
#' (proportional odds), normal, or the log of an exponential (proportional hazards).
#'
#' The K functions of `multinomial()` have one kernel and a constant mean each. Only their K - 1 differences matter, and
#' `predict(type = "latent")` returns these: the log odds of each class against the first. A factor with three or more
#' levels gets this family by default. With two classes the model is that of [binomial()] with twice the kernel's
#' variance. Levels without rows are dropped. Probabilities are averaged over the posterior of f.
#'
#' The first cut point of `ordinal()` is 0, since \eqn{f} has a constant mean. The widths of the classes between the
#' first and the last are learned with the other hyperparameters: `coef()` has them, and `print()` shows the cut points
#' of a latent function without mean, as `MASS::polr()` does.
#'
#' @param link `"logit"`, `"probit"` or `"cloglog"`.
#' @return An object of class `pfdtc_family`. Errors have class `pfdtc_error_input`; [pfdtc()] refuses factors without
#'   an order for `ordinal()`.
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

# Returns TRUE if each row has one of several unordered classes, so that f is a vector.
has_labels <- function(response) response$reads == "labels"

# ---- responses ------------------------------------------------------------------------------------------------------

# Returns list(y, levels): the number of each row's class.
read_labels <- function(response, argument, n, ordered) {
  if (ordered && !is.ordered(response)) {
    abort_input(argument, if (is.factor(response)) "a factor without an order" else describe(response),
                "an ordered factor", hint = sprintf(
                  "Make it one with the classes in their order: ordered(%s, levels = c(\"low\", \"high\")).", argument))
  }
  if (is.numeric(response) || length(dim(response)) == 2L || !is.atomic(response)) {
    abort_input(argument, describe(response), "a factor, or text, with the class of each row",
                hint = if (is.numeric(response)) "factor() makes classes of numbers.")
  }
  if (!is.factor(response)) response <- factor(response)
  if (length(response) != n) abort_input(argument, sprintf("%d values", length(response)), sprintf("of %d rows", n))
  levels <- check_classes(base::levels(response), argument, TRUE)
  missing <- which(is.na(response))
  if (length(missing)) abort_input(argument, sprintf("NA (element %d)", missing[1L]), "without missing values")
  list(y = as.double(response), levels = levels)
}

# Returns the levels of a factor. Stops unless there are two of them, or with `several` at least two.
check_classes <- function(levels, argument, several) {
  K <- length(levels)
  if (K == 2L || several && K > 2L) return(levels)
  abort_input(argument, sprintf("a factor with %d level%s (%s)", K, plural_s(K), list_quoted(levels, "\"")),
              if (several) "a factor with at least two levels" else "a factor with two levels",
              hint = if (K > 2L) "Use family = multinomial() for more than two classes.")
}

# Returns orthonormal columns that are orthogonal to a constant, K x (K - 1).
class_contrasts <- function(K) {
  C <- unname(stats::contr.helmert(K))
  C / rep(sqrt(colSums(C^2)), each = K)
}

# ---- log odds -------------------------------------------------------------------------------------------------------

# Returns some rows of a distribution of f, whose parts are vectors or matrices with a row for each row.
take_rows_of <- function(f, rows) {
  lapply(f, function(v) if (is.matrix(v)) v[rows, , drop = FALSE] else v[rows])
}

# Converts orthonormal contrasts to log odds against the first class, D times a contrast. D V is computed for all rows
# at once, then (D V)' D'.
as_log_odds <- function(at, center) {
  n <- nrow(at$mean)
  q <- ncol(at$mean)
  C <- class_contrasts(q + 1L)
  D <- C[-1L, , drop = FALSE] - rep(C[1L, ], each = q)
  half <- aperm(array(matrix(at$var, n * q) %*% t(D), c(n, q, q)), c(1L, 3L, 2L))
  list(mean = at$mean %*% t(D) + rep(center[-1L] - center[1L], each = n),
       var = matrix(matrix(half, n * q) %*% t(D), n))
}

# Returns probabilities (n x K) from log odds (n x (K - 1)).
softmax_of <- function(odds) {
  odds <- cbind(0, odds)
  top <- odds[cbind(seq_len(nrow(odds)), max.col(odds, "first"))]
  p <- exp(odds - top)
  p / rowSums(p)
}

# Returns list(lwr, upr), the ends of intervals of log odds between odds[[1]] and odds[[2]], shown by show().
ends_of_odds <- function(odds, sd, level, show) {
  half <- stats::qnorm((1 + level) / 2) * sd
  list(lwr = show(odds[[1L]] - half), upr = show(odds[[2L]] + half))
}

# Returns list(z, weight): points and weights of an average over q standard normals. Up to two of them it is the
# trapezoid rule, whose error is below 1e-5 for sds of f up to 4. Beyond it is a lattice of 1,024 points (roots of
# primes) with their mirror images, whose error bench/classes-average.R measures.
normal_rule <- function(q, step = 0.3, unit = seq_len(class_draws)) {
  if (q <= 2L) {
    grid <- seq(-6.6, 6.6, by = step)
    z <- as.matrix(expand.grid(rep(list(grid), q)))
    weight <- exp(-rowSums(z^2) / 2)
    return(list(z = unname(z), weight = weight / sum(weight)))
  }
  primes <- seq(2, 20 * q)
  for (p in seq(2, sqrt(20 * q))) primes <- primes[primes == p | primes %% p > 0]
  u <- abs(2 * ((unit %o% sqrt(primes[seq_len(q)]) + 0.5) %% 1) - 1)
  z <- stats::qnorm(pmin(pmax(u, 1e-12), 1 - 1e-12))
  list(z = rbind(z, -z), weight = rep(0.5 / length(unit), 2L * length(unit)))
}

# Returns list(mean, sd), n x K each: the average of the probabilities over f, and their sd.
class_moments <- function(f, rule = normal_rule(q)) {
  q <- ncol(f$mean)
  n <- nrow(f$mean)
  L <- row_choleskys(f$var, q)
  mean <- square <- matrix(0, n, q + 1L)
  for (s in seq_along(rule$weight)) {
    odds <- f$mean
    for (j in seq_len(q)) odds <- odds + rule$z[s, j] * L[[j]]
    p <- softmax_of(odds)
    mean <- mean + rule$weight[s] * p
    square <- square + rule$weight[s] * p^2
  }
  list(mean = mean, sd = sqrt(pmax(square - mean^2, 0)))
}

# Returns the columns of the Cholesky factors of the covariance matrices in the rows of `var`: a list of n x q matrices.
# A pivot that is not positive, by rounding, counts as 0.
row_choleskys <- function(var, q) {
  n <- nrow(var)
  at <- function(i, j) var[, i + q * (j - 1L)]
  L <- rep(list(matrix(0, n, q)), q)
  for (j in seq_len(q)) {
    for (i in j:q) {
      left <- at(i, j)
      for (k in seq_len(j - 1L)) left <- left - L[[k]][, i] * L[[k]][, j]
      if (i == j) {
        pivot <- sqrt(pmax(left, 0))
        L[[j]][, j] <- pivot
      } else {
        L[[j]][, i] <- ifelse(pivot > 0, left / pivot, 0)
      }
    }
  }
  L
}
