# Transforms a response before it is modelled: f, kernel and noise are those of T(y), and predictions are transformed
# back. A transform is NULL (none) or list(kind, lambda, centre, unit, ends, found, wider):
#
#   log:         T(y) = log y, for positive responses
#   yeojohnson:  T(y) = psi(u; lambda), u = (y - centre) / unit,
#     psi = ((1 + u)^lambda - 1) / lambda if u >= 0,  -((1 - u)^(2 - lambda) - 1) / (2 - lambda) if u < 0.
#
# `ends` has T of the smallest and the largest training response. `found` is TRUE if the fit chose the transform.
# `wider` corrects sds, see moments_of_response(). For lambda between 0 and 2, T maps all numbers onto all numbers.

transforms <- c("log", "yeojohnson")

transform_label <- function(transform) {
  if (is.null(transform)) "none" else c(log = "log", yeojohnson = "Yeo-Johnson")[[transform$kind]]
}

asks_for_transform <- function(transform) {
  !is.null(transform) && !(is.character(transform) && transform[1L] %in% c("auto", "none", "plain"))
}

# Returns v = log(1 + |u|), given its power transform z = (exp(lambda v) - 1) / lambda.
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

# Returns log dT / dy at y.
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

# Returns TRUE if T^-1 is convex, FALSE if it is concave. Means and sds of y may be dominated by values far beyond all
# responses. If the fit chose the transform, y is therefore cut on the convex side: at the outermost response, or a
# number of sds from the mean of T(y) if that is further. The number is sure_sds for the mean of y, and 0 for its sd; it
# is larger if the sd of T(y) exceeds the range of all T(y). The sd is the root mean squared distance of the cut y from
# the mean. With it, normal intervals of 95 % contain 94 % of new responses, and 96 % with the sd of the uncut y
# (bench/response.R, bench/second-moments.R, bench/point-predictions.R).
curves_up <- function(transform) transform$kind == "log" || transform$lambda <= 1

is_cut <- function(transform) isTRUE(transform$found) && !is.null(transform$ends)

sds_before_cut <- function(transform, sd, sure = sure_sds) sure * pmax(sd / diff(transform$ends), 1)^2

# Returns the standard normal quantiles of T(y) at which y is cut (see curves_up()); infinite without a cut.
cut_at <- function(transform, mean, sd, sure = sure_sds) {
  up <- curves_up(transform)
  if (!is_cut(transform)) return(rep(if (up) Inf else -Inf, length(mean)))
  sds <- sds_before_cut(transform, sd, sure)
  if (up) pmax((transform$ends[2L] - mean) / sd, -sds) else pmin((transform$ends[1L] - mean) / sd, sds)
}

# Returns the sd of y at a value u = sqrt(spread) * step of its log noise variance (see response.R).
sd_at_step <- function(f, step) sqrt(f$var + f$noise * exp(sqrt(f$spread) * step - f$spread / 2))

# Returns list(mean, sd) of E(y | f) for f ~ N(mean, var), where T(y) is f plus noise of variance `noise` and y is cut
# (see curves_up()). With rho = var / (var + noise), h(t) = T^-1(mean + sqrt(var + noise) t) and Hermite polynomials
# He_k,
#
#   E(E(y | f)^2) = sum_k rho^k c_k^2,   c_k = E h(t) He_k(t) / sqrt(k!),   t ~ N(0, 1)   (Mehler).
#
# Means and sds have different cuts; the distance between the two means is added to the sd, with the share rho.
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

# Returns list(mean, sd) of a new response, where T(y) is f ~ N(mean, var) plus noise. The mean assumes normal noise. If
# y is cut (see curves_up()), the sd averages over heavy tails of the noise, given by `spread`, and is multiplied by the
# root of transform$wider: the mean squared error of held-out rows relative to their variance.
moments_of_response <- function(transform, mean, var, noise, spread) {
  out <- moments_back(transform, mean, var + noise)
  wide <- which(rep_len(spread, length(mean)) > 0)
  if (!is_cut(transform) || !length(wide)) return(out)
  f <- lapply(list(mean = mean, var = var, noise = noise, spread = spread), function(v) rep_len(v, length(mean))[wide])
  rule <- gauss_hermite(7L)
  square <- 0
  for (i in seq_along(rule$node)) {
    at <- hermite_back(transform, f$mean, sd_at_step(f, rule$node[i])^2, 0L, 0)
    square <- square + rule$weight[i] * (at$sd^2 + ifelse(is.infinite(at$mean), Inf, at$mean - out$mean[wide])^2)
  }
  out$sd[wide] <- sqrt(square * max(transform$wider, 1))
  out
}

# Returns the covariance matrix of E(y | f) at rows, where f ~ N(mean, cov) and T(y) is f plus noise.
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

# Returns list(mean, sd, c, between) of T^-1. `mean` is that of y cut as for means, sd and c (Hermite coefficients) are
# those of y cut as for sds, and `between` is the difference of the two means. See curves_up() for the cuts.
parts_back <- function(transform, mean, var, order) {
  var <- rep_len(var, length(mean))
  part <- hermite_back(transform, mean, var, order, sure_sds)
  part$between <- numeric(length(mean))
  sd <- sqrt(var)
  deep <- which(var > 0 & cut_at(transform, mean, sd) != cut_at(transform, mean, sd, 0))
  if (!length(deep)) return(part)
  wide <- hermite_back(transform, mean[deep], var[deep], order, 0)
  part$between[deep] <- ifelse(is.infinite(part$mean[deep]), Inf, wide$mean - part$mean[deep])
  part$sd[deep] <- wide$sd
  part$c[deep, ] <- wide$c
  part
}

most_hermite <- 20L

# Returns list(mean, sd, c) of y cut by cut_at(), where c is the matrix of Hermite coefficients c_1, ..., c_order.
# Gauss-Legendre rules are used between the points where T^-1 or its second derivative jumps. Overflow gives Inf.
hermite_back <- function(transform, mean, var, order, sure) {
  sd <- sqrt(var)
  n <- length(mean)
  far <- 9
  up <- curves_up(transform)
  cut <- rep_len(replace(cut_at(transform, mean, sd, sure), sd == 0, if (up) Inf else -Inf), n)
  middle <- untransformed(transform, mean + sd * if (up) pmin(cut, 0) else pmax(cut, 0))
  away <- function(t) untransformed(transform, mean + sd * t) - middle # centred, because moments about 0 would cancel
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
    tail <- known * stats::dnorm(at) * if (up) 1 else -1 # uses that He_k phi has the integral -He_(k-1) phi
    add(ifelse(known, away(at), 0), at, known * stats::pnorm(at, lower.tail = !up), tail)
  }
  beyond <- is.infinite(middle)
  parts[beyond, ] <- 0
  list(mean = ifelse(beyond, middle, middle + total), sd = ifelse(beyond, Inf, sqrt(pmax(square - total^2, 0))),
       c = parts)
}

# Returns nodes and weights of Gauss's quadrature rules, for the uniform weight on (-1, 1) and for the normal density,
# from the eigenvalues of the matrix of their three-term recursion (Golub and Welsch 1969).
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
  refuse_if(!all(y > 0), argument,
            sprintf("= \"log\" needs positive responses, but the smallest is %s", format(min(y))),
            hint = "\"yeojohnson\" takes any response.")
}

# Returns the smallest difference between two distinct responses, or 0 if all are equal.
smallest_step <- function(y) {
  y <- sort(unique(unname(y)))
  if (length(y) > 1L) min(diff(y)) else 0
}

given_response <- function(data) if (is.null(data$given_response)) data$response else data$given_response

describe_transform <- function(transform) {
  if (is.null(transform)) return(NA_character_)
  if (transform$kind == "log") return("log-transformed")
  sprintf("Yeo-Johnson transform of (y - %s) / %s, lambda %s", format(signif(transform$centre, 4)),
          format(signif(transform$unit, 4)), format(signif(transform$lambda, 3)))
}

transform_scale <- function(transform) if (transform$kind == "log") "log" else "transformed"

#' @export
print.pfdtc_transform <- function(x, ...) {
  cat("Response: ", describe_transform(x), "\n", sep = "")
  invisible(x)
}

# Bounds the mean, median and quantiles of y from bounds on the mean and sd of T(y), rounding included. h = T^-1
# increases, so medians and quantiles are h of those of T(y). If h is convex (the log, lambda <= 1) and X(mu, tau, c) =
# E (h(mu + tau Z) - h(c))+ with Z ~ N(0, 1), the mean of y cut at h(c) is
#
#   M(mu, tau, c) = M(mu, tau, Inf) - X(mu, tau, c).
#
# It increases in mu, and both terms increase in tau. A concave h is -h(-z) for the convex h of 2 - lambda.

# The mean is bounded on this number of cells of Z, and by formulas beyond +- far_tail.
mean_cells <- 250L
far_tail <- 9

# This bounds the relative rounding error of T^-1 and of sums over cells: a thousand times the largest error observed.
back_rounding <- 1e-12

# Returns list(lower, upper), bounds on y for T(y) between `lower` and `upper`, with an allowance for rounding.
back_bounds <- function(transform, lower, upper) {
  if (is.null(transform)) return(list(lower = lower, upper = upper))
  most <- .Machine$double.xmax
  low <- pmin(untransformed(transform, lower), most) # an overflow to Inf is no lower bound
  high <- pmax(untransformed(transform, upper), -most)
  list(lower = low - rounding_back(transform, low), upper = high + rounding_back(transform, high))
}

rounding_back <- function(transform, y) {
  if (transform$kind == "log") return(back_rounding * y)
  back_rounding * abs(y - transform$centre) + 4 * .Machine$double.eps * (abs(transform$centre) + transform$unit)
}

# Returns list(lower, upper), bounds on the mean of y as moments_back() defines it, for normal T(y) with mean between
# mu$lower and mu$upper and sd between tau$lower and tau$upper. Infinite bounds give infinite bounds, and NA gives NA.
mean_bounds <- function(transform, mu, tau) {
  open <- ifelse(is.na(mu$lower), NA_real_, 0)
  known <- which(is.finite(mu$lower + mu$upper + tau$lower + tau$upper))
  mu <- lapply(mu, `[`, known)
  tau <- lapply(tau, `[`, known)
  up <- curves_up(transform)
  if (!up) mu <- list(lower = -mu$upper, upper = -mu$lower)
  h <- convex_back(transform)
  cut <- function(mu, tau) {
    if (!is_cut(transform)) return(rep(Inf, length(mu)))
    pmax(if (up) transform$ends[2L] else -transform$ends[1L], mu - sds_before_cut(transform, tau) * tau)
  }
  last <- cut(mu$upper, tau$lower) # the mean increases with the cut
  low <- mean_below(h, mu$lower, tau$lower, tau$upper, cut(mu$lower, tau$upper))
  high <- mean_below(h, mu$upper, tau$upper, tau$lower, last)
  found <- list(lower = low$lower, upper = pmin(high$upper, h$value(last)))
  if (!up) found <- list(lower = -found$upper, upper = -found$lower)
  y <- lapply(found, function(v) if (transform$kind == "log") v else transform$centre + transform$unit * v)
  ends <- function(infinite, v) replace(open + infinite, known, ifelse(is.nan(v), infinite, v)) # overflow leaves NaN
  list(lower = ends(-Inf, y$lower - rounding_back(transform, y$lower)),
       upper = ends(Inf, y$upper + rounding_back(transform, y$upper)))
}

# Returns bounds on M(mu, tau, Inf) - X(mu, other, c), see above: the mean of y cut at h(c) if tau equals `other`.
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

# Returns T^-1, if it is convex, as list(value, enclose). enclose(mu, tau, from) bounds E h(mu + tau Z) 1{Z > from}.
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
  # Compute the derivative of T^-1 of this order: (1 + lambda z)^(1 / lambda - order) up to a factor (or for z < 0).
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

# Bounds E h(mu + tau Z) over Z > from by cells. On a cell with mean c and variance V of Z, it is h(mu + tau c) + tau^2
# V h''(z) / 2 with z in the cell (Taylor), where h'' is monotone on either side of 0. The tails use h(z) < exp(z) and
# h(z) >= z.
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
