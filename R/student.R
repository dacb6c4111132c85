# Student-t noise: responses with outliers, on the response's own scale. f is the location; `theta` of the likelihood is
# the scale s, learned unless given.

#' Student-t responses
#'
#' For `family` of [pfdtc()]: \eqn{y = f + s\,t}{y = f + s t}, \eqn{t} of Student's distribution with `df` degrees of
#' freedom. Rows far from \eqn{f} then hardly count, where with Gaussian noise they draw \eqn{f} to them.
#'
#' A row far out has a log density that is convex in \eqn{f}, and the posterior may have several modes. What Laplace's
#' approximation is around is the one that steps from \eqn{f = 0} lead to, each of which raises the posterior density.
#' [certify()] says how far the exact process's own mode is from it, for as much as can be proved: one mode of the exact
#' process lies within the bound of the fit's, and no other within the box that was looked at. Where that cannot be
#' proved (too many rows far out, too few inducing points) the intervals are infinite. There is no bracket of the
#' evidence.
#'
#' @param df degrees of freedom, at least 1; it is not learned. 4 is a common choice; 1 is Cauchy's distribution.
#' @param sigma the scale \eqn{s}, in units of the response; `NULL`: learned with the other hyperparameters.
#' @return An object of class `pfdtc_family`.
#' @section Errors: class `pfdtc_error_input` for a `df` below 1, or a `sigma` that is no positive number.
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, section 3.7; theory vignette.
#' @seealso [pfdtc()]
#' @examples
#' student()
#' d <- cars
#' d$dist[10] <- 400
#' fit <- pfdtc(dist ~ speed, d, family = student(4), kernel = kernel_se())
#' coef(fit)["sigma"]
#' @export
student <- function(df = 4, sigma = NULL) {
  df <- check_positive(df, "df", 1L)
  if (df < 1) abort_input("df", format(df), "at least 1")
  if (!is.null(sigma)) sigma <- check_positive(sigma, "sigma", 1L)
  structure(list(family = "student", link = "identity", df = df, theta = sigma), class = "pfdtc_family")
}

# The response's spread, in which priors are: outliers hardly count. Of rows most of which are equal, the sd.
student_unit <- function(sites) {
  r <- sites$y - sites$offset
  spread <- stats::mad(r)
  if (!(spread > 0)) spread <- stats::sd(r)
  if (isTRUE(spread > 0)) spread else 1
}

student_constant <- function(df, sigma) {
  lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2 - log(sigma)
}

# Derivatives of l (its constant included), g and W of each row in log s; a = df s^2.
student_slopes <- function(df, sigma, residual) {
  a <- df * sigma^2
  b <- a + residual^2
  list(l = (df + 1) * residual^2 / b - 1, g = -2 * a * (df + 1) * residual / b^2,
       W = 2 * a * (df + 1) * (3 * residual^2 - a) / b^3)
}

# Where f ~ N(mu, v): t is a normal of variance s^2 / q, q of Gamma(df/2, df/2). The trapezoid rule in log q, whose
# integrand falls on both sides faster than exponentially or like q^(df/2).
student_grid <- function(df) {
  step <- min(0.1, sqrt(2 / df) / 4)
  grid <- seq(-80 / df - 2, 6, by = step)
  list(q = exp(grid), log_weight = stats::dgamma(exp(grid), df / 2, df / 2, log = TRUE) + grid + log(step))
}

# log of the average of the density of y
student_predictive <- function(df, sigma, y, mu, v) {
  grid <- student_grid(df)
  logs <- vapply(seq_along(grid$q), function(i) {
    grid$log_weight[i] + stats::dnorm(y, mu, sqrt(v + sigma^2 / grid$q[i]), log = TRUE)
  }, numeric(length(y)))
  logs <- matrix(logs, length(y))
  top <- logs[cbind(seq_along(y), max.col(logs, "first"))]
  top + log(rowSums(exp(logs - top)))
}

# The average of `normal`, pnorm() or dnorm(), at distances from mu.
student_mixture <- function(likelihood, distance, v, normal) {
  grid <- student_grid(likelihood$df)
  out <- 0 * distance
  for (i in seq_along(grid$q)) {
    out <- out + exp(grid$log_weight[i]) * normal(distance, 0, sqrt(v + likelihood$theta^2 / grid$q[i]))
  }
  out
}
