# A response that is transformed before it is modelled: f, kernel and noise are those of T(y), and predictions go back.
# A transform is NULL for none, or list(kind, lambda, centre, unit, ends, found, wider),
#
#   log:         T(y) = log y, of positive responses
#   yeojohnson:  T(y) = psi(u; lambda), u = (y - centre) / unit,
#     psi = ((1 + u)^lambda - 1) / lambda of u >= 0,  -((1 - u)^(2 - lambda) - 1) / (2 - lambda) of u < 0.
#
# For lambda between 0 and 2 psi maps all numbers onto all numbers, so that y has a mean. `ends`: T of the smallest and
# the largest training response. `found`: TRUE if the fit chose the transform, rather than the user.

transforms <- c("log", "yeojohnson")

asks_for_transform <- function(transform) {
  !is.null(transform) && !(is.character(transform) && transform[1L] %in% c("auto", "none", "plain"))
}

# Returns v = log(1 + |u|) for the power z = (exp(lambda v) - 1) / lambda.
log_of_power <- function(z, lambda) if (abs(lambda) < 1e-8) z else log1p(lambda * z) / lambda

transformed <- function(transform, y) {
  if (is.null(transform)) return(y)
  if (transform$kind == "log") return(log(y))
  u <- (y - transform$centre) / transform$unit
  v <- log1p(abs(u))
  lambda <- ifelse(u >= 0, transform$lambda, 2 - transform$lambda)
  size <- ifelse(abs(lambda) < 1e-8, v, expm1(lambda * v) / lambda)
  ifelse(u >= 0, size, -size)
}

# Returns log dT / dy.
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

# Returns TRUE if T^-1 is convex (exp, or lambda <= 1), not concave. Moments of y may be far beyond all responses. With
# a transform that the fit found, y is cut on that side at the outermost response. If T(y) is beyond that response by
# more than `sure` sds, y is cut that many sds before its mean: sure_sds for the mean of y, and 0 for its sd. The sd is
# the root of the mean squared distance of the cut y from that mean. Where the cut matters, normal intervals of 95 %
# contain 94 % of new responses; with the sd before any cut they contain 96 % (bench/response.R,
# bench/second-moments.R).
curves_up <- function(transform) transform$kind == "log" || transform$lambda <= 1

is_cut <- function(transform) isTRUE(transform$found) && !is.null(transform$ends)

# Returns the standard normal quantiles at which y is cut, Inf or -Inf if it is not.
cut_at <- function(transform, mean, sd, sure = sure_sds) {
  up <- curves_up(transform)
  if (!is_cut(transform)) return(rep(if (up) Inf else -Inf, length(mean)))
  if (up) pmax((transform$ends[2L] - mean) / sd, -sure) else pmin((transform$ends[1L] - mean) / sd, sure)
}

# Returns the sd of y at a standardised log size u of its noise (noise-spread.R), one number or one for each row.
sd_at_step <- function(f, step) sqrt(f$var + f$noise * exp(sqrt(f$spread) * step - f$spread / 2))

# Returns list(mean, sd) of E(y | f), where T(y) is f plus noise of variance `noise` and f ~ N(mean, var), and y is cut.
# Without noise they are those of y. With rho = var / (var + noise) and h(t) = T^-1(mean + sqrt(var + noise) t),
#
#   E(E(y | f)^2) = sum_k rho^k c_k^2,   c_k = E h(t) He_k(t) / sqrt(k!),   t ~ N(0, 1)   (Mehler).
#
# The distance between the means of the two cuts is added with the share rho.
moments_back <- function(transform, mean, var, noise = 0) {
  total <- var + noise
  if (transform$kind == "log" && !is_cut(transform)) {
    return(list(mean = exp(mean + total / 2), sd = exp(mean + total / 2) * sqrt(expm1(var))))
  }
  noisy <- any(noise > 0)
  part <- parts_back(transform, mean, total, if (noisy) most_hermite else 0L)
  if (!noisy) return(list(mean = part$mean, sd = sqrt(part$sd^2 + part$between^2)))
  rho <- var / total
  weight <- outer(rho, seq_len(most_hermite), `^`)
  rest <- pmax(part$sd^2 - rowSums(part$c^2), 0) * rho^(most_hermite + 1L)
  list(mean = part$mean, sd = sqrt(rowSums(weight * part$c^2) + rest + rho * part$between^2))
}

# Returns list(mean, sd) of a new response: T(y) is f ~ N(mean, var) plus noise that may have heavy tails
# (noise-spread.R). The mean is that of normal noise. If y is cut, the sd averages over the size of the noise, and is
# multiplied by the root of transform$wider, the mean squared error of held-out rows over their variance.
moments_of_response <- function(transform, mean, var, noise, spread) {
  out <- moments_back(transform, mean, var + noise)
  wide <- which(rep_len(spread, length(mean)) > 0)
  if (!is_cut(transform) || !length(wide)) return(out)
  f <- lapply(list(mean = mean, var = var, noise = noise, spread = spread), function(v) rep_len(v, length(mean))[wide])
  rule <- gauss_hermite(7L)
  square <- 0
  for (i in seq_along(rule$node)) {
    at <- hermite_back(transform, f$mean, sd_at_step(f, rule$node[i])^2, 0L, 0)
    square <- square + rule$weight[i] * (at$sd^2 + (at$mean - out$mean[wide])^2)
  }
  out$sd[wide] <- sqrt(square * max(transform$wider, 1))
  out
}

# Returns the covariance matrix of E(y | f) at rows, where f ~ N(mean, cov).
covariance_back <- function(transform, mean, cov, noise) {
  known <- which(!is.na(mean))
  var <- diag(cov)[known]
  total <- var + noise[known]
  part <- parts_back(transform, mean[known], total, most_hermite)
  r <- cov[known, known] / tcrossprod(sqrt(total))
  out <- 0 * r
  for (k in seq_len(most_hermite)) out <- out + tcrossprod(part$c[, k]) * r^k
  diag(out) <- moments_back(transform, mean[known], var, noise[known])$sd^2
  cov[known, known] <- out
  cov
}

# Returns list(mean, sd, c, between): the mean of y cut for its mean, sd and c of y cut for its sd (hermite_back()), and
# the difference of the means.
parts_back <- function(transform, mean, var, order) {
  part <- hermite_back(transform, mean, var, order, sure_sds)
  part$between <- numeric(length(mean))
  sd <- sqrt(var)
  deep <- which(var > 0 & cut_at(transform, mean, sd) != cut_at(transform, mean, sd, 0))
  if (!length(deep)) return(part)
  wide <- hermite_back(transform, mean[deep], var[deep], order, 0)
  part$between[deep] <- wide$mean - part$mean[deep]
  part$sd[deep] <- wide$sd
  part$c[deep, ] <- wide$c
  part
}

most_hermite <- 20L

# Returns list(mean, sd, c), c a matrix of c_1, ..., c_order, by Gauss-Legendre's rule between the points where h or its
# second derivative jumps. `sure`: see cut_at().
hermite_back <- function(transform, mean, var, order, sure) {
  sd <- sqrt(var)
  n <- length(mean)
  far <- 9
  up <- curves_up(transform)
  cut <- rep_len(replace(cut_at(transform, mean, sd, sure), sd == 0, if (up) Inf else -Inf), n)
  middle <- untransformed(transform, mean + sd * if (up) pmin(cut, 0) else pmax(cut, 0))
  away <- function(t) untransformed(transform, mean + sd * t) - middle # not the moments about 0, which cancel
  inside <- function(t) pmin(pmax(t, if (up) -far else pmax(cut, -far)), if (up) pmin(cut, far) else far)
  kink <- if (transform$kind == "log") numeric(n) else replace(-mean / sd, sd == 0, 0)
  points <- list(inside(-far), inside(pmin(kink, 0)), inside(pmax(kink, 0)), inside(far))
  total <- square <- numeric(n)
  parts <- matrix(0, n, order)
  add <- function(e, t, w, tail = NULL) {
    total <<- total + w * e
    square <<- square + w * e^2
    before <- 0
    now <- 1
    for (k in seq_len(order)) {
      after <- (t * now - sqrt(k - 1) * before) / sqrt(k)
      parts[, k] <<- parts[, k] + e * if (is.null(tail)) w * after else tail * now / sqrt(k)
      before <- now
      now <- after
    }
  }
  rule <- gauss_legendre(24L)
  for (piece in 1:3) {
    half <- (points[[piece + 1L]] - points[[piece]]) / 2
    if (all(half == 0)) next
    for (i in seq_along(rule$node)) {
      t <- points[[piece]] + half * (1 + rule$node[i])
      add(away(t), t, rule$weight[i] * half * stats::dnorm(t))
    }
  }
  known <- is.finite(cut)
  if (any(known)) {
    at <- replace(cut, !known, 0)
    tail <- known * stats::dnorm(at) * if (up) 1 else -1 # the integral of He_k is -He_(k-1) times the density
    add(ifelse(known, away(at), 0), at, known * stats::pnorm(at, lower.tail = !up), tail)
  }
  list(mean = middle + total, sd = sqrt(pmax(square - total^2, 0)), c = parts)
}

# Return nodes and weights of Gauss's rules for the uniform weight on (-1, 1) and for the standard normal density, by
# the eigenvalues of the recursion's matrix (Golub and Welsch 1969).
gauss_legendre <- function(n) gauss_rule(n, function(k) k / sqrt(4 * k^2 - 1), 2)
gauss_hermite <- function(n) gauss_rule(n, sqrt, 1)

gauss_rule <- function(n, recursion, total) {
  k <- seq_len(n - 1L)
  J <- matrix(0, n, n)
  J[cbind(k, k + 1L)] <- J[cbind(k + 1L, k)] <- recursion(k)
  e <- eigen(J, symmetric = TRUE)
  list(node = e$values, weight = total * e$vectors[1L, ]^2)
}

check_positive_response <- function(y, argument = "transform") {
  if (!all(y > 0)) {
    abort_input(argument, sprintf("\"log\" of a response that goes down to %s", format(min(y))),
                "\"log\" of positive responses", hint = "\"yeojohnson\" takes any response.")
  }
}

# Returns the smallest difference of two responses, 0 if all are equal.
smallest_step <- function(y) {
  y <- sort(unique(unname(y)))
  if (length(y) > 1L) min(diff(y)) else 0
}

# Returns the response as it was given.
given_response <- function(data) if (is.null(data$given_response)) data$response else data$given_response

describe_transform <- function(transform) {
  if (is.null(transform)) return(NA_character_)
  if (transform$kind == "log") return("its log is modelled")
  sprintf("Yeo-Johnson transform of (y - %s) / %s, lambda %s", format(signif(transform$centre, 4)),
          format(signif(transform$unit, 4)), format(signif(transform$lambda, 3)))
}

#' @export
print.pfdtc_transform <- function(x, ...) {
  cat("Response: ", describe_transform(x), "\n", sep = "")
  invisible(x)
}
