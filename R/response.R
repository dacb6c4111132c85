# Converts predictions of f to the scale of the response: means, intervals, quantiles and log densities.

# Returns answer(f) for the rows whose f$mean is not NA, and NA for the other rows. The elements of the list `f` are
# single numbers, or vectors or matrices with a row for each data row.
where_known <- function(f, answer) {
  n <- NROW(f$mean)
  known <- which(!is.na(as.matrix(f$mean)[, 1L]))
  some <- function(v) if (is.matrix(v)) v[known, , drop = FALSE] else rep_len(v, n)[known]
  pad <- function(v) {
    if (is.list(v)) lapply(v, pad) else if (is.matrix(v)) unname(v)[match(seq_len(n), known), , drop = FALSE] else
      replace(f$mean, known, v)
  }
  pad(answer(lapply(Filter(Negate(is.null), f), some)))
}

# Returns E(y | f), such as a rate or, under a transform T, the mean of T^-1(f + e) with e ~ N(0, noise).
response_given <- function(response, f, noise) {
  if (!is.null(response$expected)) return(response$expected(f, response$theta))
  if (is.null(response$transform)) return(response$link$inv(f) * response$growth(response$theta))
  where_known(list(mean = f, noise = noise), function(f) moments_back(response$transform, f$mean, f$noise, 0)$mean)
}

# Returns mean and sd of E(y | f) for f ~ N(mean, var), NA where mean is NA. `noise` is the Gaussian noise variance.
response_moments <- function(response, mean, var, noise = 0) {
  where_known(list(mean = mean, var = var, noise = noise), function(f) {
    if (!is.null(response$transform)) return(moments_back(response$transform, f$mean, f$var, f$noise))
    if (is.null(response$expected) && !is.null(response$link$moments)) {
      return(lapply(response$link$moments(f$mean, f$var), `*`, response$growth(response$theta)))
    }
    s <- sqrt(pmax(f$var, 0))
    own <- response$reads == "own"
    average <- function(power) normal_average(function(f) response_given(response, f)^power, f$mean, s, own)
    first <- if (response$kind == "ordered") drop(class_shares(response, f$mean, s) %*% seq_along(response$levels)) else
      average(1)
    list(mean = first, sd = sqrt(pmax(average(2) - first^2, 0)))
  })
}

# Returns mean and sd of a new response with Gaussian noise; f$spread is the variance of the log noise variance.
new_moments <- function(response, f) {
  where_known(f[c("mean", "var", "noise", "spread")], function(f) {
    if (is.null(response$transform)) return(list(mean = f$mean, sd = sqrt(f$var + f$noise)))
    moments_of_response(response$transform, f$mean, f$var, f$noise, f$spread)
  })
}

# Returns the probability of each ordered class (columns), averaged over f ~ N(mu, s^2). Without `s`, f is mu.
class_shares <- function(response, mu, s = NULL) {
  upto <- shares_upto(response, mu, s)
  `dimnames<-`(upto - cbind(numeric(nrow(upto)), upto[, -ncol(upto), drop = FALSE]), list(names(mu), response$levels))
}

# Returns list(mean, sd): the probability of each class (columns), averaged over f, and if `se` its sd. Both are NA
# where f is unknown. For unordered classes `f` has log odds.
class_chances <- function(response, f, se = FALSE) {
  where_known(f[c("mean", "var")], function(f) {
    f <- lapply(f, unname)
    if (response$kind == "labels") return(class_moments(f))
    s <- sqrt(pmax(f$var, 0))
    out <- list(mean = class_shares(response, f$mean, s))
    if (se) {
      square <- normal_average(function(f) class_shares(response, f)^2, f$mean, s)
      out$sd <- sqrt(pmax(square - out$mean^2, 0))
    }
    out
  })
}

# Returns P(y <= k) for each ordered class k (columns), averaged over f ~ N(mu, s^2). If `s` is NULL, f is mu.
shares_upto <- function(response, mu, s) {
  upto <- vapply(seq_along(response$levels), function(k) {
    if (is.null(s)) response$cdf(rep(k, length(mu)), mu, 1, response$theta) else
      predictive_cdf(response, rep(k, length(mu)), 1 + 0 * mu, mu, s)
  }, mu)
  matrix(upto, length(mu), length(response$levels))
}

# Returns the variance of the class number y (1, 2, ...) of an ordered response, for f ~ N(mean, sd^2).
variance_of_class <- function(response, mean, sd) {
  where_known(list(mean = mean, sd = sd), function(f) {
    P <- class_shares(response, f$mean, f$sd)
    k <- seq_len(ncol(P))
    drop(P %*% k^2) - drop(P %*% k)^2
  })
}

# Returns log E p(y | f) for each response y in `sites`, where f ~ N(mu, v) and mu includes the offset. The trapezoid
# rule integrates over t, where f = mode + s sinh(t) with the mode and sd s of Laplace's approximation. Nodes reach 12
# sqrt(v) from the mode, because p(y | f) of a censored response may fall steeply on one side only.
log_predictive <- function(likelihood, sites, mu, v) {
  response <- as_response(likelihood)
  if (!is.null(response$averaged$log_density)) return(response$averaged$log_density(response$theta, sites, mu, v))
  sites$offset <- numeric(length(mu))
  plain <- engine_sites(likelihood, sites, 0)
  at <- function(f) native_likelihood(plain, f + plain$offset)
  v <- pmax(v, (1e-6 * plain$unit)^2)
  # Bisect for the t at the mode of p(y | f) N(f; mu, v), f = mu + sqrt(v) sinh(t). A NaN slope (overflow) leads to mu.
  f <- mu + sqrt(v) * sinh(bisect(function(t) {
    slope <- at(mu + sqrt(v) * sinh(t))[2L, ] - sinh(t) / sqrt(v)
    ifelse(is.na(slope), t < 0, slope > 0)
  }, 0 * mu - 60, 0 * mu + 60))
  s <- 1 / sqrt(at(f)[3L, ] + 1 / v)
  end <- asinh(12 * sqrt(v) / s)
  logs <- vapply(seq(-1, 1, by = 1 / 120), function(share) {
    now <- f + s * sinh(share * end)
    at(now)[1L, ] + stats::dnorm(now, mu, sqrt(v), log = TRUE) + log(cosh(share * end))
  }, 0 * mu)
  logs <- matrix(logs, length(mu))
  top <- logs[cbind(seq_along(mu), max.col(logs, "first"))]
  top + log(rowSums(exp(logs - top)) * s * end / 120) + plain$constant
}

# Returns P(Y <= y), averaged over f ~ N(mu, s^2) (mu with offset). For u ~ N(0, 1) and P(Y <= y | f = U(u)) = Phi(-u),
#
#   P(Y <= y) = E P(Y <= y | mu + s u) = E Phi((U(u) - mu) / s).
#
# If s is at most about the sd of U(u), the first average is computed, else the second. The integrand is then smooth.
predictive_cdf <- function(response, y, size, mu, s) {
  if (!is.null(response$averaged)) return(response$averaged$cdf(response$theta, y, size, mu, s))
  if (response$discrete) y <- floor(y + 1e-7)
  limit <- function(u, rows) limit_of_f(response, y[rows], size[rows], u)
  out <- as.double(response$discrete & y >= 0)
  inner <- which(if (response$reads == "classes") y >= 0 & y < size else if (response$discrete) y >= 0 else
    y > response$link$range[1L])
  wide <- inner[which((limit(1, inner) - limit(-1, inner)) / 2 < s[inner])]
  narrow <- setdiff(inner, wide)
  out[narrow] <- average_over_u(narrow, function(u, i) {
    response$cdf(y[i], response$link$inv(mu[i] + s[i] * u), size[i], response$theta)
  })
  out[wide] <- average_over_u(wide, function(u, i) stats::pnorm((limit(u, i) - mu[i]) / s[i]))
  out
}

# Returns the smallest y with P(Y <= y) >= p, by bisection between `low` and `high`. For q = (1 + p) / 2, `high` is the
# q-quantile of y given the q-quantile of f, so P(y > high) <= (1 - q) + (1 - q) = 1 - p. `low` is found likewise.
predictive_quantile <- function(response, p, size, mu, s) {
  if (!is.null(response$averaged)) return(response$averaged$quantile(response$theta, p, size, mu, s))
  p <- rep_len(p, length(mu))
  low <- quantile_given(response, p / 2, size, mu, s)
  high <- quantile_given(response, (1 + p) / 2, size, mu, s)
  whole <- response$discrete
  if (whole) low <- floor(low) - 1 # quantiles of large counts are approximations
  if (whole) high <- ceiling(high)
  far <- function() pmax(abs(low), abs(high)) # quantiles up to double.xmin become 0
  while (length(open <- which(far() > .Machine$double.xmin & high - low > pmax(as.numeric(whole), 1e-12 * far())))) {
    middle <- low[open] + (high[open] - low[open]) / 2
    if (whole) middle <- floor(middle)
    above <- predictive_cdf(response, middle, size[open], mu[open], s[open]) >= p[open]
    high[open[above]] <- middle[above]
    low[open[!above]] <- middle[!above]
  }
  replace(high, which(far() <= .Machine$double.xmin), 0)
}

quantile_given <- function(response, p, size, mu, s) {
  mean <- pmin(response$link$inv(mu + s * stats::qnorm(p)), .Machine$double.xmax)
  pmin(response$quantile(p, mean, size, response$theta), .Machine$double.xmax)
}

# Returns predictions list(fit, lwr, upr, sd, cov) of f or of a response. `f` has mean, var and cov of f, the noise
# variance `noise` (`noise_new` in prediction intervals), the variance `spread` of its log, and trials `size`. f$lower
# and f$upper bound the mean, f$top the variance (uncertified, they are mean and var). `ask` has arguments of predict().
response_say <- function(response, f, ask) {
  if (ask$type == "latent" && ask$interval == "prediction" && !response$conjugate) ask$type <- "response"
  scale <- response_scale(response, ask$type, f)
  of_y <- ask$interval == "prediction"
  noise <- if (of_y) list(noise = f$noise_new %||% f$noise, spread = f$spread) else list(noise = 0)
  transform <- if (ask$type != "latent") response$transform
  back <- function(z) untransformed(transform, z)
  ends <- if (ask$interval == "conformal") {
    lapply(f$conformal, back)
  } else if (of_y && !response$conjugate) {
    lapply(c(lwr = -1, upr = 1), function(side) response_quantile(response, (1 + side * ask$level) / 2, f))
  } else if (ask$interval != "none") {
    z <- normal_ends(f, noise, ask$level)
    if (!ask$certified || is.null(transform)) {
      lapply(z, if (of_y) back else scale$given)
    } else { # these ends contain those of the exact GP
      sd <- rep_len(sqrt(f$noise), length(f$mean))
      bounds <- function(z) {
        if (of_y || ask$type == "median") return(back_bounds(transform, z, z))
        mean_bounds(transform, list(lower = z, upper = z), list(lower = sd, upper = sd))
      }
      list(lwr = bounds(z$lwr)$lower, upr = bounds(z$upr)$upper)
    }
  }
  c(list(fit = scale$shown$mean, sd = scale$shown$sd, cov = scale$cov), lapply(ends, unname))
}

# Returns the union of the intervals for f (or f plus noise) with variance f$top and a mean from f$lower to f$upper.
normal_ends <- function(f, noise, level) {
  half <- noisy_half(level, list(var = f$top, noise = noise$noise, spread = noise$spread))
  list(lwr = f$lower - half, upr = f$upper + half)
}

# Returns list(shown, given, cov) for the quantity `type` of predict(): `shown` has its mean and sd (a median has no
# sd), `cov` its covariance. given(v) converts ends v of a credible interval of f to this quantity.
response_scale <- function(response, type, f) {
  given <- function(v) response_given(response, v, f$noise)
  scale <- function(shown, given, cov = f$cov) list(shown = shown, given = given, cov = cov)
  if (type == "latent" || response$kind == "normal" && type %in% c("mean", "median")) {
    return(scale(list(mean = f$mean, sd = sqrt(f$var)), identity))
  }
  if (type == "mean" || !response$conjugate && type == "response") {
    cov <- if (!is.null(f$cov)) covariance_back(response$transform, f$mean, f$cov, f$noise)
    return(scale(response_moments(response, f$mean, f$var, f$noise), given, cov))
  }
  if (!response$conjugate) {
    median <- function(v) {
      shares(response, where_known(list(mean = v, size = f$size), function(at) {
        response$quantile(0.5, response$link$inv(at$mean), at$size, response$theta)
      }), f)
    }
    return(scale(list(mean = response_quantile(response, 0.5, f)), median))
  }
  if (type != "median") return(scale(new_moments(response, f), given))
  back <- function(z) untransformed(response$transform, z)
  scale(list(mean = back(f$mean)), back)
}

# Returns the p-quantile of a new response, averaged over f, or NA if f$mean is NA or if there are no trials.
response_quantile <- function(response, p, f) {
  f$mean <- unname(f$mean)
  if (response$conjugate) {
    away <- if (p == 0.5) 0 else sign(p - 0.5) * noisy_half(abs(2 * p - 1), f[c("var", "noise", "spread")])
    return(untransformed(response$transform, f$mean + away))
  }
  if (!has_ends(response)) f$mean[!(f$size > 0)] <- NA
  q <- where_known(f[c("mean", "var", "size")], function(f) {
    predictive_quantile(response, p, f$size, f$mean, sqrt(pmax(f$var, 0)))
  })
  shares(response, q, f)
}

shares <- function(response, y, f) if (response$reads == "classes") y / f$size else y

# Converts simulated numbers to the form of the response: factors, successes and failures, or shares of `size` trials.
draws_as_given <- function(fit, draws, size) {
  response <- response_of(fit)
  levels <- response$levels
  first <- switch(response$kind, ordered = 1L, classes = 0L) # the number of the first class
  if (length(first) && length(levels) && !identical(levels, c("FALSE", "TRUE")))
    draws[] <- lapply(draws, function(k) factor(levels[k + 1L - first], levels, ordered = response$in_order))
  if (!response$trials) return(draws)
  if (!identical(attr(fit$terms, "dataClasses")[[1L]], "nmatrix.2")) return(draws / size)
  given <- as.list(stats::formula(fit)[[2L]])[-1L] # names the columns like the arguments of cbind()
  columns <- names(given) %||% vapply(given, function(v) if (is.name(v)) as.character(v) else "", "")
  if (length(columns) != 2L) columns <- c("successes", "failures")
  draws[] <- lapply(draws, function(k) structure(cbind(k, size - k), dimnames = list(row.names(draws), columns)))
  draws
}

# Returns log p(y) of responses given$y (with given$size trials), where p(y) is the average of p(y | f) over f.
response_log_density <- function(response, given, f) {
  if (response$kind == "labels") return(log(class_moments(f)$mean[cbind(seq_along(given$y), given$y)]))
  if (!response$conjugate) return(log_predictive(response$likelihood, given, f$mean, f$var))
  t <- response$transform
  z <- unname(transformed(t, given$y))
  out <- noisy_log_density(z, f)
  if (is.null(t)) out else ifelse(is.finite(z), out + log_slope(t, unname(given$y)), -Inf)
}

# Returns half the width of the central interval of f plus noise with probability `level`. Above 99.99 %, it averages
# over more noise variances, because the usual ones (spread_steps) leave up to 18 % too much outside at level 1 - 1e-7.
noisy_half <- function(level, f) {
  p <- (1 + level) / 2
  if (!is_spread(f)) return(stats::qnorm(p) * sqrt(f$var + f$noise))
  steps <- if (level > 0.9999) far_steps else spread_steps
  concave_quantile(p, stats::qnorm(p) * sd_at_step(f, steps[1L]), function(x, normal) noisy_cdf(x, f, normal, steps))
}

# Bounds quantiles and mean of y from bounds on mean mu and sd tau of T(y), rounding included. T is log or Yeo and
# Johnson's transform. Its inverse h increases, so quantiles of y are h of T(y)'s. If the fit chose T, the mean is that
# of y cut at h(c), because values of y far beyond the data could dominate it. This mean is
#
#   M(mu, tau, c) = E min(y, h(c)) = E h(mu + tau Z) - E max(h(mu + tau Z) - h(c), 0),   Z ~ N(0, 1).
#
# M increases in mu. If h is convex (else use -h(-z)), both terms increase in tau, so they get opposite bounds on tau.

# To bound the mean of y = T^-1(mu + tau Z), Z ~ N(0, 1), values of Z from -far_tail to far_tail form mean_cells cells.
mean_cells <- 250L
far_tail <- 9

# This bounds relative rounding errors of inverse transforms and their sums. It is 1,000 times the largest error seen.
back_rounding <- 1e-12

# Returns list(lower, upper): bounds on y, rounding included, if T(y) is between `lower` and `upper`.
back_bounds <- function(transform, lower, upper) {
  if (is.null(transform)) return(list(lower = lower, upper = upper))
  most <- .Machine$double.xmax
  low <- pmin(untransformed(transform, lower), most) # an overflow to Inf is no lower bound
  least <- if (transform$kind == "log") .Machine$double.xmin else -most # an underflow to 0 is no upper bound
  if (transform$kind == "log") low <- replace(low, which(low < least), 0) # smaller numbers have fewer digits
  high <- pmax(untransformed(transform, upper), least)
  list(lower = low - rounding_back(transform, low), upper = high + rounding_back(transform, high))
}

rounding_back <- function(transform, y) {
  if (transform$kind == "log") return(back_rounding * y)
  back_rounding * abs(y - transform$centre) + 4 * .Machine$double.eps * (abs(transform$centre) + transform$unit)
}

# Returns list(lower, upper), bounds on the mean of y for normal T(y), whose mean and sd are in the intervals mu and
# tau. If the fit chose T, the mean is that of y cut at `cut`. Infinite bounds stay infinite.
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

# Bounds E h(mu + tau Z) - E max(h(mu + other Z) - h(c), 0), Z ~ N(0, 1), which is E min(h(mu + tau Z), h(c)) if other =
# tau. It increases with tau and decreases with `other`, so mean_bounds() gives them opposite ends of the sd's interval.
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

# Returns list(value, enclose): the convex h(z) = T^-1(z) or -T^-1(-z), and enclose(mu, tau, from), which bounds
# E h(mu + tau Z) 1{Z > from} for Z ~ N(0, 1).
convex_back <- function(transform) {
  if (transform$kind == "log") {
    return(list(value = exp, enclose = function(mu, tau, from) {
      mean <- exp(mu + tau^2 / 2) * stats::pnorm(from - tau, lower.tail = FALSE)
      room <- back_rounding * (1 + abs(mu) + tau^2) * mean
      list(lower = mean - room, upper = mean + room)
    }))
  }
  lambda <- min(transform$lambda, 2 - transform$lambda)
  value <- function(z) untransformed(list(kind = "yeojohnson", lambda = lambda, centre = 0, unit = 1), z)
  # Returns h's derivative of this order, up to a factor: (1 + l |z|)^(1 / l - order), l = lambda or 2 - lambda (z < 0).
  power <- function(z, order) {
    v <- ifelse(z >= 0, log_of_power(pmax(z, 0), lambda), log_of_power(pmax(-z, 0), 2 - lambda))
    exp(v * (1 - order * ifelse(z >= 0, lambda, 2 - lambda)))
  }
  h <- list(value = value, slope = function(z) power(z, 1), curvature = function(z) (1 - lambda) * power(z, 2))
  list(value = value, enclose = function(mu, tau, from) {
    parts <- lapply(unname(blocks_of(seq_along(mu), 500L)), function(i) enclose_cells(h, mu[i], tau[i], from[i]))
    lapply(list(lower = "lower", upper = "upper"), function(end) as.double(unlist(lapply(parts, `[[`, end))))
  })
}

# Bounds E h(mu + tau Z) 1{Z > from} for Z ~ N(0, 1) and a convex inverse h of Yeo and Johnson's transform. On a cell
# where Z has mean c and variance V, the mean of h is h(mu + tau c) + tau^2 V h''(z) / 2 for a z in the cell (Taylor).
# h'' is monotone on either side of 0. In the tails, z <= h(z) < exp(z).
enclose_cells <- function(h, mu, tau, from) {
  from <- pmax(from, -far_tail)
  edge <- from + outer(far_tail - from, (0:mean_cells) / mean_cells)
  a <- edge[, -ncol(edge), drop = FALSE]
  b <- edge[, -1L, drop = FALSE]
  P <- ifelse(a >= 0, stats::pnorm(a, lower.tail = FALSE) - stats::pnorm(b, lower.tail = FALSE),
              stats::pnorm(b) - stats::pnorm(a))
  c <- pmin(pmax((stats::dnorm(a) - stats::dnorm(b)) / P, a), b)
  V <- 1 + (a * stats::dnorm(a) - b * stats::dnorm(b)) / P - c^2
  at <- function(z) mu + tau * z
  left <- h$curvature(at(a))
  right <- h$curvature(at(b))
  middle <- ifelse(at(a) < 0 & at(b) > 0, h$curvature(0 * a), left)
  least <- pmin(left, right, middle) * (1 - back_rounding)
  most <- pmax(left, right, middle) * (1 + back_rounding)
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
