# Converts predictions of f to the scale of the response: means, intervals, quantiles and log densities.

# ---- the response's scale -------------------------------------------------------------------------------------------

# Returns answer(f) for the rows whose mean of f is known, and NA for the others. The elements of the list `f` are
# vectors or matrices with a row for each data row, or single numbers.
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

# Returns E(y | f): f, a probability, a rate, or for a transform T the mean of T^-1(f + e), with e of variance `noise`.
response_given <- function(response, f, noise) {
  if (!is.null(response$expected)) return(response$expected(f, response$theta))
  if (!is.null(response$growth)) return(response$link$inv(f) * response$growth(response$theta))
  if (is.null(response$transform)) return(response$link$inv(f))
  where_known(list(mean = f, noise = noise), function(f) moments_back(response$transform, f$mean, f$noise, 0)$mean)
}

# Returns mean and sd of E(y | f) for f ~ N(mean, var), NA where f is unknown. `noise` is the Gaussian noise variance.
response_moments <- function(response, mean, var, noise = 0) {
  found <- where_known(list(mean = mean, var = var, noise = noise), function(f) {
    if (!is.null(response$transform)) return(moments_back(response$transform, f$mean, f$var, f$noise))
    given <- if (!is.null(response$expected)) function(f) response$expected(f, response$theta) else response$link$inv
    if (is.null(response$expected) && !is.null(response$link$moments)) return(response$link$moments(f$mean, f$var))
    s <- sqrt(pmax(f$var, 0))
    average <- function(power) normal_average(function(f) given(f)^power, f$mean, s)
    first <- if (is_ordered(response)) drop(class_shares(response, f$mean, s) %*% seq_along(response$levels)) else
      average(1)
    list(mean = first, sd = sqrt(pmax(average(2) - first^2, 0)))
  })
  if (is.null(response$growth)) found else lapply(found, `*`, response$growth(response$theta))
}

# Returns mean and sd of a new response with Gaussian noise. `f` is list(mean, var, noise, spread) as in noisy_cdf().
new_moments <- function(response, f) {
  where_known(f[c("mean", "var", "noise", "spread")], function(f) {
    if (is.null(response$transform)) return(list(mean = f$mean, sd = sqrt(f$var + f$noise)))
    moments_of_response(response$transform, f$mean, f$var, f$noise, f$spread)
  })
}

# Returns the probability of each ordered class (columns), averaged over f ~ N(mu, s^2). Without `s`, f is mu.
class_shares <- function(response, mu, s = NULL) {
  upto <- shares_upto(response, mu, s)
  out <- upto - cbind(numeric(nrow(upto)), upto[, -ncol(upto), drop = FALSE])
  dimnames(out) <- list(names(mu), response$levels)
  out
}

# Returns P(y <= k) for each ordered class k (columns), averaged like class_shares().
shares_upto <- function(response, mu, s = NULL) {
  upto <- vapply(seq_along(response$levels), function(k) {
    if (is.null(s)) response$cdf(rep(k, length(mu)), mu, 1, response$theta) else
      predictive_cdf(response, rep(k, length(mu)), 1 + 0 * mu, mu, s)
  }, mu)
  matrix(upto, length(mu), length(response$levels))
}

# Returns the variance of the number of the ordered class, averaged over f ~ N(mean, sd^2).
variance_of_class <- function(response, mean, sd) {
  where_known(list(mean = mean, sd = sd), function(f) {
    P <- class_shares(response, f$mean, f$sd)
    k <- seq_len(ncol(P))
    drop(P %*% k^2) - drop(P %*% k)^2
  })
}

# Returns for each response in `sites` the log of p(y | f) averaged over f ~ N(mu, v), where mu includes the offset. The
# trapezoid rule is centred at the mode of p(y | f) N(f; mu, v).
log_predictive <- function(likelihood, sites, mu, v) {
  response <- as_response(likelihood)
  if (!is.null(response$averaged$log_density)) return(response$averaged$log_density(response$theta, sites, mu, v))
  sites$offset <- numeric(length(mu))
  plain <- engine_sites(likelihood, sites, 0)
  at <- function(f) native_likelihood(plain, f + plain$offset)
  v <- pmax(v, 1e-12)
  f <- mu
  for (i in 1:100) {
    d <- at(f)
    step <- (d[2L, ] - (f - mu) / v) / (d[3L, ] + 1 / v)
    step <- pmax(pmin(step, 2), -2) # longer steps overshoot, because the derivative grows like exp(f)
    f <- f + step
    if (all(abs(step) < 1e-8)) break
  }
  s <- 1 / sqrt(at(f)[3L, ] + 1 / v)
  grid <- seq(-12, 12, by = 0.1)
  logs <- vapply(grid, function(z) at(f + s * z)[1L, ] + stats::dnorm(f + s * z, mu, sqrt(v), log = TRUE), 0 * mu)
  logs <- matrix(logs, length(mu))
  top <- logs[cbind(seq_along(mu), max.col(logs, "first"))]
  top + log(rowSums(exp(logs - top)) * 0.1 * s) + plain$constant
}

# Returns P(Y <= y), averaged over f ~ N(mu, s^2) with mu including the offset. With u standard normal and U(u) the f at
# which P(Y <= y | f) = pnorm(-u),
#
#   P(Y <= y) = E P(Y <= y | mu + s u) = E Phi((U(u) - mu) / s).
#
# The trapezoid rule sums over f or over U, whichever varies more, so that the integrand is smooth.
predictive_cdf <- function(response, y, size, mu, s) {
  if (!is.null(response$averaged)) return(response$averaged$cdf(response$theta, y, size, mu, s))
  if (response$discrete) y <- floor(y + 1e-7)
  limit <- function(u, rows) limit_of_f(response, y[rows], size[rows], u)
  out <- as.double(response$discrete & y >= 0)
  inner <- which(if (response$reads == "classes") y >= 0 & y < size else if (response$discrete) y >= 0 else
    y > response$link$range[1L])
  wide <- inner[which((limit(1, inner) - limit(-1, inner)) / 2 < s[inner])]
  narrow <- setdiff(inner, wide)
  grid <- seq(-6.5, 6.5, by = 0.25)
  average <- function(h) Reduce(`+`, lapply(grid, function(u) stats::dnorm(u) * h(u))) / sum(stats::dnorm(grid))
  out[narrow] <- average(function(u) {
    response$cdf(y[narrow], response$link$inv(mu[narrow] + s[narrow] * u), size[narrow], response$theta)
  })
  out[wide] <- average(function(u) stats::pnorm((limit(u, wide) - mu[wide]) / s[wide]))
  out
}

# Returns the f at which P(Y <= y | f) = pnorm(-u), by a formula of the likelihood if there is one, else by bisection.
limit_of_f <- function(response, y, size, u) {
  if (!is.null(response$limit)) return(response$limit(u, y, size, response$theta, response$link))
  bisect(function(f) response$cdf(y, response$link$inv(f), size, response$theta) > stats::pnorm(-u), 0 * y - 700,
         0 * y + 700)
}

# Returns the smallest y with P(Y <= y) >= p, by bisection between `low` and `high`. `high` is the q-quantile of y given
# the q-quantile of f, q = (1 + p) / 2, so P(y > high) <= (1 - q) + (1 - q) = 1 - p. `low` is found likewise.
predictive_quantile <- function(response, p, size, mu, s) {
  if (!is.null(response$averaged)) return(response$averaged$quantile(response$theta, p, size, mu, s))
  p <- rep_len(p, length(mu))
  given <- function(p) quantile_given(response, p, size, mu, s)
  whole <- response$discrete
  low <- given(p / 2) - if (whole) 1 else 0
  high <- given((1 + p) / 2)
  least <- if (whole) 1 else 0
  while (length(open <- which(high - low > pmax(least, 1e-12 * pmax(abs(low), abs(high)))))) {
    middle <- low[open] + (high[open] - low[open]) / 2
    if (whole) middle <- floor(middle)
    above <- predictive_cdf(response, middle, size[open], mu[open], s[open]) >= p[open]
    high[open[above]] <- middle[above]
    low[open[!above]] <- middle[!above]
  }
  high
}

quantile_given <- function(response, p, size, mu, s) {
  mean <- pmin(response$link$inv(mu + s * stats::qnorm(p)), .Machine$double.xmax)
  pmin(response$quantile(p, mean, size, response$theta), .Machine$double.xmax)
}

# ---- predictions ----------------------------------------------------------------------------------------------------

# Returns predictions list(fit, lwr, upr, sd, cov) of f or of a response. `f` is list(mean, var, lower, upper, top, cov,
# noise, spread, size): a certificate bounds the mean by `lower` and `upper`, the variance by `top`. `ask` is
# predict()'s.
response_say <- function(response, f, ask) {
  if (ask$type == "latent" && ask$interval == "prediction" && !response$conjugate) ask$type <- "response"
  scale <- response_scale(response, ask$type, f)
  of_y <- ask$interval == "prediction"
  # For a certified mixture over hyperparameters, take the upper bound on its noise.
  noise <- if (of_y) list(noise = if (is.null(f$noise_top)) f$noise else f$noise_top, spread = f$spread) else
    list(noise = 0)
  transform <- if (ask$type != "latent") response$transform
  ends <- if (ask$interval == "conformal") {
    lapply(f$conformal, scale$back)
  } else if (of_y && !response$conjugate) {
    lapply(c(lwr = -1, upr = 1), function(side) response_quantile(response, (1 + side * ask$level) / 2, f))
  } else if (ask$interval != "none") {
    z <- normal_ends(f, noise, ask$level)
    if (!ask$certified || is.null(transform)) {
      lapply(z, if (of_y) scale$back else scale$given)
    } else { # ends that contain those of the exact GP
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

# Returns the ends of an interval for f plus noise, which contains those for every mean within its certified bounds.
normal_ends <- function(f, noise, level) {
  half <- noisy_half(level, list(var = f$top, noise = noise$noise, spread = noise$spread))
  list(lwr = f$lower - half, upr = f$upper + half)
}

# Returns list(shown, given, back, cov), how f is converted to the quantity that `type` names: `shown` has its mean and
# sd, `cov` its covariance. given(v) converts the ends of a credible interval, and back(z) undoes a transform.
response_scale <- function(response, type, f) {
  transform <- if (type != "latent") response$transform
  back <- function(z) untransformed(transform, z)
  given <- function(v) response_given(response, v, f$noise)
  scale <- function(shown, given, cov = f$cov) list(shown = shown, given = given, back = back, cov = cov)
  if (type == "latent" || response_kind(response) == "normal" && type %in% c("mean", "median")) {
    return(scale(list(mean = f$mean, sd = sqrt(f$var)), identity))
  }
  if (type == "mean" || !response$conjugate && type == "response") {
    cov <- if (!is.null(f$cov)) covariance_back(transform, f$mean, f$cov, f$noise)
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
  if (type == "median") scale(list(mean = back(f$mean)), back) else scale(new_moments(response, f), given)
}

# Returns the p-quantile of a new response, averaged over f. It is NA if f is unknown or there are no trials.
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

# Returns binomial responses as shares of their trials, and other responses unchanged.
shares <- function(response, y, f) if (response$reads == "classes") y / f$size else y

# Returns simulated responses, a data frame of numbers, in the form of the fit's response: factors, two columns of
# successes and failures, or shares of `size` trials.
draws_as_given <- function(fit, draws, size) {
  response <- response_of(fit)
  levels <- response$levels
  if (is_ordered(response)) draws[] <- lapply(draws, function(k) factor(levels[k], levels, ordered = TRUE))
  if (has_classes(response) && !identical(levels, c("FALSE", "TRUE")) && !is.null(levels)) {
    draws[] <- lapply(draws, function(k) factor(levels[k + 1], levels))
  }
  if (!response$trials) return(draws)
  if (!identical(attr(fit$terms, "dataClasses")[[1L]], "nmatrix.2")) return(draws / size)
  given <- as.list(stats::formula(fit)[[2L]])[-1L] # names the columns like the arguments of cbind()
  columns <- names(given) %||% vapply(given, function(v) if (is.name(v)) as.character(v) else "", "")
  if (length(columns) != 2L) columns <- c("successes", "failures")
  draws[] <- lapply(draws, function(k) structure(cbind(k, size - k), dimnames = list(row.names(draws), columns)))
  draws
}

# Returns log p(y) of responses given$y (with given$size trials), averaged over f.
response_log_density <- function(response, given, f) {
  if (has_labels(response)) return(log(class_moments(f)$mean[cbind(seq_along(given$y), given$y)]))
  if (!response$conjugate) return(log_predictive(response$likelihood, given, f$mean, f$var))
  t <- response$transform
  z <- unname(transformed(t, given$y))
  out <- noisy_log_density(z, f)
  if (is.null(t)) out else out + log_slope(t, unname(given$y))
}

# ---- the approximation of the posterior -----------------------------------------------------------------------------

# Each entry is a property of posteriors that some functions need. `approx` has the approximations with that property,
# where "none" means Gaussian responses; `hint` is for the error message.
posterior_needs <- list(
  normal = list(approx = "none", hint = paste(
    "certify() bounds errors, evidence_bounds() the log marginal likelihood, and cross_validate() compares",
    "predictions.")),
  certificate = list(approx = c("none", "laplace"), groups = TRUE, hint =
    paste("Certificates bound the distance from the Laplace posterior of the exact GP: update(fit, approx =",
          "\"laplace\") has one. evidence_bounds() works for this fit.")),
  families = list(approx = c("laplace", "vi"), hint = "Regression has no Laplace approximation."))

# Returns the fit, or stops if its posterior lacks the property `need`. `what` names the result that needs the property.
check_posterior <- function(fit, need, argument = "fit", what = user_function()) {
  response <- response_of(fit)
  need <- posterior_needs[[need]]
  refuse_if(response$approx != "none" && !is.null(fit$factors$groupings) && !isTRUE(need$groups), argument,
            sprintf("a fit with groups and a %s response", response$label),
            message = sprintf("%s is not available for groups with a %s response beyond %s rows.", what, response$label,
                              show_count(dense_rows)), hint = "Fit fewer rows.")
  if (response$approx %in% need$approx) return(fit)
  with <- if (response$approx == "none") "Gaussian noise" else
    sprintf("family %s (%s)", response$label, response$words[["by"]])
  abort_input(argument, paste("a fit with", with), message = sprintf(
    "%s is not available with %s, which `%s` has.", what, with, argument), hint = need$hint)
}

# Gaussian noise may have heavy tails: y = f + e, e ~ N(0, s2 exp(u - v / 2)), u ~ N(0, v). Then e has the variance s2,
# and v = 0 is normal noise. Means are those of normal noise, and so are sds, except under a transform that the fit
# chose. Densities and quantiles average over u by the trapezoid rule. `f` is list(mean, var, noise = s2, spread = v).

spread_steps <- seq(-5, 5, by = 0.5)
spread_weights <- stats::dnorm(spread_steps) / sum(stats::dnorm(spread_steps))

is_spread <- function(f) any(f$spread > 0, na.rm = TRUE)

# Returns log p(y) for responses y on the scale of f, with noise as described above.
noisy_log_density <- function(y, f) {
  if (!is_spread(f)) return(stats::dnorm(y, f$mean, sqrt(f$var + f$noise), log = TRUE))
  n <- length(y)
  sd <- sd_at_step(f, rep(spread_steps, each = n)) # one step of u for each block of n
  log_row_sums(matrix(stats::dnorm(y, f$mean, sd, log = TRUE) + rep(log(spread_weights), each = n), n))
}

# Returns P(y - mean <= distance), with noise as described above, or its density if `normal` is dnorm.
noisy_cdf <- function(distance, f, normal = stats::pnorm) {
  if (!is_spread(f)) return(normal(distance, 0, sqrt(f$var + f$noise)))
  out <- 0
  for (i in seq_along(spread_steps)) {
    out <- out + spread_weights[i] * normal(distance, 0, sd_at_step(f, spread_steps[i]))
  }
  out
}

# Returns half the width of the central interval with probability `level` of a new response.
noisy_half <- function(level, f) {
  p <- (1 + level) / 2
  if (!is_spread(f)) return(stats::qnorm(p) * sqrt(f$var + f$noise))
  concave_quantile(p, stats::qnorm(p) * sd_at_step(f, spread_steps[1L]), function(x, normal) noisy_cdf(x, f, normal))
}

# Draws the noise of `n` new responses of variance `noise`; a positive `spread` gives it heavy tails.
draw_noise <- function(n, noise, spread) {
  sd <- sqrt(noise)
  if (any(spread > 0, na.rm = TRUE)) sd <- sd * exp((sqrt(spread) * stats::rnorm(n) - spread / 2) / 2)
  sd * stats::rnorm(n)
}

# ---- the weight of the tails ----------------------------------------------------------------------------------------

# Returns c(tail, gain): the additional variance of the log noise (`spread`) that maximises the likelihood of y, and the
# gain in log likelihood. `f` has the leave-one-out predictive distributions of y.
likeliest_tail <- function(y, f) {
  each <- function(tail) sum(noisy_log_density(y, replace(f, "spread", list(f$spread + tail))))
  normal <- each(0)
  if (each(0.1) < normal) return(c(tail = 0, gain = 0))
  best <- stats::optimize(each, c(0, most_spread), maximum = TRUE, tol = 0.05)
  c(tail = best$maximum, gain = best$objective - normal)
}
