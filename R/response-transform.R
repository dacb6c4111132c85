# A response that is transformed before it is modelled: f, kernel and noise are about T(y), and what is said of y itself
# goes back through T. A transform: list(kind, lambda, centre, unit),
#
#   log:         T(y) = log y, of positive responses
#   yeojohnson:  T(y) = psi(u; lambda), u = (y - centre) / unit,
#     psi = ((1 + u)^lambda - 1) / lambda of u >= 0,  -((1 - u)^(2 - lambda) - 1) / (2 - lambda) of u < 0.
#
# For lambda between 0 and 2 psi maps all numbers onto all numbers, so that y has a mean.

transforms <- c("log", "yeojohnson")

asks_for_transform <- function(transform) {
  !is.null(transform) && !identical(transform, "auto") && !identical(transform, "none")
}

# (exp(lambda v) - 1) / lambda and its inverse, of v = log(1 + |u|)
power_of <- function(v, lambda) if (abs(lambda) < 1e-8) v else expm1(lambda * v) / lambda
log_of_power <- function(z, lambda) if (abs(lambda) < 1e-8) z else log1p(lambda * z) / lambda

transformed <- function(transform, y) {
  if (transform$kind == "log") return(log(y))
  u <- (y - transform$centre) / transform$unit
  v <- log1p(abs(u))
  ifelse(u >= 0, power_of(v, transform$lambda), -power_of(v, 2 - transform$lambda))
}

# log dT / dy
log_slope <- function(transform, y) {
  if (transform$kind == "log") return(-log(y))
  u <- (y - transform$centre) / transform$unit
  (transform$lambda - 1) * sign(u) * log1p(abs(u)) - log(transform$unit)
}

untransformed <- function(transform, z) {
  if (is.null(transform)) return(z)
  if (transform$kind == "log") return(exp(z))
  up <- log_of_power(pmax(z, 0), transform$lambda)
  down <- log_of_power(pmax(-z, 0), 2 - transform$lambda)
  transform$centre + transform$unit * ifelse(z >= 0, expm1(up), -expm1(down))
}

# list(mean, sd) of y where T(y) is N(mean, var): of log in closed form, else by Gauss-Legendre's rule on either side of
# where T changes its form.
moments_back <- function(transform, mean, var) {
  if (transform$kind == "log") {
    return(list(mean = exp(mean + var / 2), sd = exp(mean + var / 2) * sqrt(expm1(var))))
  }
  sd <- sqrt(var)
  far <- 10
  kink <- pmin(pmax(-mean / sd, -far), far)
  kink[sd == 0] <- 0
  rule <- gauss_legendre(32L)
  total <- square <- 0
  middle <- untransformed(transform, mean)
  for (side in 1:2) {
    from <- if (side == 1L) -far else kink
    half <- (if (side == 1L) kink + far else far - kink) / 2
    for (i in seq_along(rule$node)) {
      t <- from + half * (1 + rule$node[i])
      w <- rule$weight[i] * half * stats::dnorm(t)
      e <- untransformed(transform, mean + sd * t) - middle # not the moments about 0, which cancel
      total <- total + w * e
      square <- square + w * e^2
    }
  }
  list(mean = middle + total, sd = sqrt(pmax(square - total^2, 0)))
}

# Nodes and weights on (-1, 1), by the eigenvalues of the recursion's matrix (Golub and Welsch 1969).
gauss_legendre <- function(n) {
  k <- seq_len(n - 1L)
  b <- k / sqrt(4 * k^2 - 1)
  J <- matrix(0, n, n)
  J[cbind(k, k + 1L)] <- J[cbind(k + 1L, k)] <- b
  e <- eigen(J, symmetric = TRUE)
  list(node = e$values, weight = 2 * e$vectors[1L, ]^2)
}

# Returns the response as it was given.
given_response <- function(data) if (is.null(data$given_response)) data$response else data$given_response

describe_transform <- function(transform) {
  if (is.null(transform)) return(NA_character_)
  if (transform$kind == "log") return("its log is modelled")
  sprintf("transformed by Yeo and Johnson, lambda %s of (y - %s) / %s", format(signif(transform$lambda, 3)),
          format(signif(transform$centre, 4)), format(signif(transform$unit, 4)))
}

#' @export
print.pfdtc_transform <- function(x, ...) {
  cat("Response: ", describe_transform(x), "\n", sep = "")
  invisible(x)
}
