# Transforms a response before it is modelled: f, kernel and noise are those of T(y), and predictions are transformed
# back. A transform is NULL (none) or list(kind, lambda, centre, unit, ends, found, wider):
#
#   log:         T(y) = log y, for positive responses
#   yeojohnson:  T(y) = psi(u; lambda), u = (y - centre) / unit,
#     psi = ((1 + u)^lambda - 1) / lambda if u >= 0,  -((1 - u)^(2 - lambda) - 1) / (2 - lambda) if u < 0.
#
# `ends` has T of the smallest and the largest training response. `found` is TRUE if the fit chose the transform.
# `wider` multiplies variances under heavy-tailed noise. For lambda from 0 to 2, T maps all numbers onto all numbers.
transforms <- c("log", "yeojohnson")

transform_label <- function(transform) {
  if (is.null(transform)) "none" else c(log = "log", yeojohnson = "Yeo-Johnson")[[transform$kind]]
}

asks_for_transform <- function(transform) {
  !is.null(transform) && !(is.character(transform) && transform[1L] %in% c("auto", "none", "plain"))
}

# Returns v = log(1 + |u|), given its power transform z = (exp(lambda v) - 1) / lambda.
log_of_power <- function(z, lambda) if (abs(lambda) < 1e-8) z else log1p(lambda * z) / lambda

# Returns T(y). Under the log, T(y) of a response that is not positive is -Inf, because its density is 0.
transformed <- function(transform, y) {
  if (is.null(transform)) return(y)
  if (transform$kind == "log") return(log(pmax(y, 0)))
  u <- (y - transform$centre) / transform$unit
  v <- log1p(abs(u))
  lambda <- ifelse(u >= 0, transform$lambda, 2 - transform$lambda)
  size <- ifelse(abs(lambda) < 1e-8, v, expm1(lambda * v) / lambda)
  ifelse(u >= 0, size, -size)
}

# Returns log dT / dy at y.
log_slope <- function(transform, y) {
  if (transform$kind == "log") return(-log(pmax(y, 0)))
  u <- (y - transform$centre) / transform$unit
  (transform$lambda - 1) * sign(u) * log1p(abs(u)) - log(transform$unit)
}

# Returns `rows` with T(y) as the response, centred, scaled, and with equal rows merged, like clean_data(). `slopes` has
# the sums of log(T'(y) / scale) over the rows of each distinct input.
rows_transformed <- function(rows, transform) {
  y <- transformed(transform, rows$y)
  slope <- if (is.null(transform)) 0 * rows$y else log_slope(transform, rows$y)
  r <- if (is.null(rows$offset)) y else y - rows$offset
  unit <- response_unit(r, rows$w, max(abs(c(y, rows$offset))), TRUE, TRUE, "transform")
  out <- list(x = rows$x, y = (r - unit$center) / unit$scale, weights = rows$w, n = length(r), center = unit$center,
              scale = unit$scale, shift = list(constant = 0, rows = 0, ss = 0),
              offset = rows$offset, transform = transform, given_response = rows$y)
  if (anyDuplicated(rows$group)) out <- merge_all_equal_rows(out, rows$group)
  c(out, list(slopes = drop(rowsum(slope - log(unit$scale), rows$group, reorder = FALSE))))
}

one_row_hint <- paste("Give all parameters of the model, for example kernel = kernel_se(lengthscale = 1, variance",
                      "= 1), hyper = \"fixed\" and, for a Gaussian response, noise = 1 and scale = FALSE.")

# Returns centre, scale and sd of the response r. The sd is sqrt(sum w (r - mean)^2 / sum w * n/(n - 1)), which is
# unchanged if all weights are multiplied by a number. `size` is the largest absolute number from which r was computed:
# a range of r within its rounding error counts as 0. If rows come in blocks, `known` is list(n, mean, sd, range) of r.
response_unit <- function(r, w, size, center, scale, name, known = NULL) {
  if (is.null(known)) {
    n <- length(r)
    total <- if (is.null(w)) n else sum(w)
    mean_r <- if (is.null(w)) mean(r) else r[1L] + sum(w * (r - r[1L])) / total
    spread <- max(abs(r - mean_r))
    q <- if (isTRUE(spread > 0)) ((r - mean_r) / spread)^2 else 0 * r # avoids overflow
    sd_r <- spread * sqrt((if (is.null(w)) sum(q) else sum(w * q)) / total * n / (n - 1))
    known <- list(n = n, mean = mean_r, sd = sd_r, range = range(r))
  }
  n <- known$n
  mean_r <- known$mean
  sd_r <- if (n == 1L) NA_real_ else known$sd
  # Use `if`, which is faster than refuse_if(): the search calls this for each transform.
  if (!is.finite(mean_r) || (n > 1L && !is.finite(sd_r))) {
    abort_input(name, "too large", hint = "Rescale the response or `weights`.",
                message = sprintf("The weighted mean of `%s` is beyond the range of double precision.", name))
  }
  if (scale && n == 1L) abort_input(name, "has one row", hint = one_row_hint)
  if (scale && diff(known$range) <= 8 * .Machine$double.eps * size)
    abort_input(name, "is constant", hint = c("Learning needs two different values.", one_row_hint))
  square <- if (scale) sd_r^2 else size^2
  if (!is.finite(square) || (size > 0 && square < .Machine$double.xmin)) {
    size <- if (scale) sd_r else size
    abort_input(name, size, hint = "Rescale the response.",
                message = sprintf("The square of `%s` (size %.3g) is beyond double precision.", name, size))
  }
  middle <- if (center) mean_r else 0
  # Without scaling, the unit of r is 1. If the largest |r - centre| is above 2^33 or below 2^-32, the unit is a power
  # of 2 (exact in products), so that squares and higher powers of r are representable.
  size <- max(abs(known$range - middle))
  power <- if (size > 0) floor(log2(size)) else 0
  list(center = middle, scale = if (scale) sd_r else if (abs(power) <= 32) 1 else 2^power, sd = sd_r)
}

untransformed <- function(transform, z) {
  if (is.null(transform)) return(z)
  if (transform$kind == "log") return(exp(z))
  up <- log_of_power(pmax(z, 0), transform$lambda)
  down <- log_of_power(pmax(-z, 0), 2 - transform$lambda)
  transform$centre + transform$unit * ifelse(z >= 0, expm1(up), -expm1(down))
}

# Returns TRUE if T^-1 is convex, FALSE if it is concave. Values of y far beyond the data could dominate mean and sd. So
# if the fit chose T, min(y, cut) replaces y or, if T^-1 is concave, max(y, cut). If T^-1 is convex, T(cut) is the
# larger of T(largest training response) and mean - k sd, for mean and sd of T(y). k is 0 for the sd of y. For its mean,
# k is sure_sds, or more if sd exceeds the range of training T(y). Normal 95 % intervals with the sd of the cut y
# contain 94 % of new responses, 96 % without a cut (bench/response.R, bench/second-moments.R).
curves_up <- function(transform) transform$kind == "log" || transform$lambda <= 1

is_cut <- function(transform) isTRUE(transform$found) && !is.null(transform$ends)

sds_before_cut <- function(transform, sd, sure = sure_sds) sure * pmax(sd / diff(transform$ends), 1)^2

# Returns (T(cut) - mean) / sd for T(y) ~ N(mean, sd^2), infinite without a cut. The cut replaces values of y beyond it.
cut_at <- function(transform, mean, sd, sure = sure_sds) {
  up <- curves_up(transform)
  if (!is_cut(transform)) return(rep(if (up) Inf else -Inf, length(mean)))
  sds <- sds_before_cut(transform, sd, sure)
  if (up) pmax((transform$ends[2L] - mean) / sd, -sds) else pmin((transform$ends[1L] - mean) / sd, sds)
}

# Returns list(mean, sd) of E(y | f) for f ~ N(mean, var), where T(y) is f plus noise. A cut may replace y far beyond
# the data (curves_up()). Let rho = var / (var + noise) and h(t) = T^-1(mean + sqrt(var + noise) t). With Hermite
# polynomials He_k,
#   E(E(y | f)^2) = sum_k rho^k c_k^2,   c_k = E h(t) He_k(t) / sqrt(k!),   t ~ N(0, 1)   (Mehler).
#
# Mean and sd use different cuts: rho times the squared difference of the means with both cuts is added to the variance.
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
# the fit chose T, y far beyond the data counts as a cut (curves_up()). If noise has heavy tails too (`spread` > 0),
# the variance is the average over noise variances, times transform$wider (held-out mean of squared error / variance).
moments_of_response <- function(transform, mean, var, noise, spread) {
  out <- moments_back(transform, mean, var + noise)
  wide <- which(rep_len(spread, length(mean)) > 0)
  if (!is_cut(transform) || !length(wide)) return(out)
  f <- lapply(list(mean = mean, var = var, noise = noise, spread = spread), function(v) rep_len(v, length(mean))[wide])
  rule <- gauss_rule(7L, sqrt, 1) # Gauss-Hermite rule for N(0, 1)
  square <- 0
  for (i in seq_along(rule$node)) {
    at <- hermite_back(transform, f$mean, sd_at_step(f, rule$node[i])^2, 0L, 0)
    square <- square + rule$weight[i] * (at$sd^2 + ifelse(is.infinite(at$mean), Inf, at$mean - out$mean[wide])^2)
  }
  out$sd[wide] <- sqrt(square * max(transform$wider, 1))
  out
}

# Returns the covariance matrix of E(y | f), where f ~ N(mean, cov) and T(y) is f plus noise. Rows i and j have the
# covariance sum_k r_ij^k c_ik c_jk, where r_ij is the correlation of their T(y). c_ik is the mean of y He_k(t) /
# sqrt(k!) at row i, with Hermite polynomials He_k and the standardised T(y) as t.
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

# Returns list(mean, sd, c, between) of y for T(y) ~ N(mean, var), as hermite_back(). Values of y far beyond the data
# count as a cut (curves_up()), one for `mean`, another for sd and c. `between` is the difference of means with both.
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

# Returns list(mean, sd, c) of y for T(y) ~ N(mean, var). Values of y far from the data could dominate mean and sd, so
# the cut of cut_at(..., sure) replaces values beyond it. Column k <= order of c is the average of y He_k(t) / sqrt(k!)
# for Hermite polynomials He_k, t = (T(y) - mean) / sd. Gauss's rule is used between 0, the cut, and the kink of T^-1 at
# 0.
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
  rule <- gauss_rule(24L)
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

# Returns nodes and weights of Gauss's quadrature rule for the uniform weight on (-1, 1), or for a weight with another
# `total` and three-term `recursion`, by eigenvectors of the recursion's tridiagonal matrix (Golub and Welsch 1969).
gauss_rule <- function(n, recursion = function(k) k / sqrt(4 * k^2 - 1), total = 2) {
  k <- seq_len(n - 1L)
  J <- matrix(0, n, n)
  J[cbind(k, k + 1L)] <- J[cbind(k + 1L, k)] <- recursion(k)
  e <- eigen(J, symmetric = TRUE)
  list(node = e$values, weight = total * e$vectors[1L, ]^2)
}

# Returns log(rowSums(exp(logs))) without overflow.
log_row_sums <- function(logs) {
  top <- logs[cbind(seq_len(nrow(logs)), max.col(logs, "first"))]
  top + log(rowSums(exp(logs - top)))
}

check_positive_response <- function(y, argument = "transform") {
  refuse_if(!all(y > 0), argument,
            sprintf("needs positive responses for the log, but the smallest is %s", format(min(y))),
            hint = "transform = \"yeojohnson\" takes any response.")
}

describe_transform <- function(transform) {
  if (is.null(transform)) return(NA_character_)
  if (transform$kind == "log") return("log-transformed")
  sprintf("Yeo-Johnson transform of (y %s %s) / %s, lambda %s", if (transform$centre < 0) "+" else "-",
          format(signif(abs(transform$centre), 4)), format(signif(transform$unit, 4)),
          format(signif(transform$lambda, 3)))
}

#' @export
print.pfdtc_transform <- print_lines(function(x) paste("Response:", describe_transform(x)))

# Gaussian noise may have heavy tails: y = f + e, e ~ N(0, s2 exp(u - v / 2)), u ~ N(0, v). Then e has the variance s2,
# and v = 0 is normal noise. Means are computed as for normal noise, and so are sds unless the fit chose a transform.
# Densities and quantiles average over u by the trapezoid rule. `f` is list(mean, var, noise = s2, spread = v).

spread_steps <- seq(-5, 5, by = 0.5)
far_steps <- seq(-5, 30, by = 0.25) # for responses beyond 6 sds

is_spread <- function(f) any(f$spread > 0, na.rm = TRUE)

# Returns the sd of y if the log noise variance is `step` sds above its mean.
sd_at_step <- function(f, step) sqrt(f$var + f$noise * exp(sqrt(f$spread) * step - f$spread / 2))

# Returns log p(y) for responses y on the scale of f, averaged over noise variances. To avoid underflow, normal
# densities are divided by exp(-half * least), where `least` is the precision at the largest noise variance. Beyond 6
# sds of y, returns the larger of the values with more steps (far_steps) and by farther_log_density().
noisy_log_density <- function(y, f, steps = spread_steps) {
  if (!is_spread(f)) return(stats::dnorm(y, f$mean, sqrt(f$var + f$noise), log = TRUE))
  half <- pmin((y - f$mean)^2 / 2, .Machine$double.xmax)
  precision_at <- function(step) 1 / (f$var + f$noise * exp(sqrt(f$spread) * step - f$spread / 2))
  least <- precision_at(max(steps))
  weights <- stats::dnorm(steps) / sum(stats::dnorm(steps))
  density <- 0
  for (i in seq_along(steps)) {
    precision <- precision_at(steps[i])
    density <- density + weights[i] * sqrt(precision) * exp((least - precision) * half)
  }
  out <- log(density) - half * least - log(2 * pi) / 2
  far <- if (length(steps) < length(far_steps)) which(half > 18 * (f$var + f$noise))
  if (!length(far)) return(out)
  at <- lapply(f[c("mean", "var", "noise", "spread")], function(v) rep_len(v, length(half))[far])
  replace(out, far, pmax(noisy_log_density(y[far], at, far_steps), farther_log_density(half[far], at)))
}

# Returns log p(y) by a sum over log noise variances, for half = (y - mean)^2 / 2. The integrand is largest if the log
# noise variance is `top` sds above its mean. If `top` <= 20, returns -Inf: the caller's sum to 30 sds then suffices.
farther_log_density <- function(half, f) {
  out <- rep(-Inf, length(half))
  some <- which(f$spread > 0 & f$noise > 0)
  if (!length(some)) return(out)
  f <- lapply(f, `[`, some)
  half <- half[some]
  root <- sqrt(f$spread)
  noise <- function(step) f$noise * exp(root * step - f$spread / 2)
  rises <- function(step) root * (half / (f$var + noise(step)) - 0.5) / (1 + f$var / noise(step)) > step
  as_large <- function(v) pmax((log(v / f$noise) + f$spread / 2) / root, 0) # the step at which the noise is v
  equal <- as_large(f$var)
  beyond <- rises(equal)
  top <- bisect(rises, ifelse(beyond, equal, 0), ifelse(beyond, as_large(2 * half), equal))
  width <- 1 / sqrt(1 + root * top)
  log_part <- function(step) {
    v <- f$var + noise(step)
    -step^2 / 2 - log(v) / 2 - half / v - log(2 * pi)
  }
  highest <- log_part(top)
  sum <- 0
  for (step in seq(-12, 12, by = 0.5)) sum <- sum + 0.5 * width * exp(log_part(top + width * step) - highest)
  replace(out, some, ifelse(top > 20, highest + log(sum), -Inf))
}

# Returns P(y - mean <= distance), or its density if `normal` is dnorm. f$spread is the variance of log noise variances.
noisy_cdf <- function(distance, f, normal = stats::pnorm, steps = spread_steps) {
  if (!is_spread(f)) return(normal(distance, 0, sqrt(f$var + f$noise)))
  out <- 0
  weights <- stats::dnorm(steps) / sum(stats::dnorm(steps))
  for (i in seq_along(steps)) out <- out + weights[i] * normal(distance, 0, sd_at_step(f, steps[i]))
  out
}

# Draws n errors with mean 0 and variance `noise`. Their log variances are normal with the variance `spread`.
draw_noise <- function(n, noise, spread) {
  sd <- sqrt(noise)
  if (any(spread > 0, na.rm = TRUE)) sd <- sd * exp((sqrt(spread) * stats::rnorm(n) - spread / 2) / 2)
  sd * stats::rnorm(n)
}

# Returns c(tail, gain): the number to add to `spread` (the variance of the log noise variance) that maximises the
# likelihood of y, and the gain in log likelihood in nats. `f` has the leave-one-out predictive distributions of y.
likeliest_tail <- function(y, f) {
  each <- function(tail) sum(noisy_log_density(y, replace(f, "spread", list(f$spread + tail))))
  normal <- each(0)
  if (each(0.1) < normal) return(c(tail = 0, gain = 0))
  best <- stats::optimize(each, c(0, most_spread), maximum = TRUE, tol = 0.05)
  c(tail = best$maximum, gain = best$objective - normal)
}
