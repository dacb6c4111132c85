# Defines the table of responses. A row has everything that is specific to one likelihood; no other file tests a
# likelihood's name. Another part of a row is in src/responses.c: log p and its derivatives in f.
#
#   name, label, call    the family's name, the words for it, and how users write it
#   links                the names of its links (table `links` below), the default first
#   reads                "numbers", "positive", "counts", "classes" (two of them), "labels" (several), "ordered",
#                        "times" or "censored" (known up to an interval): how responses are read (response-read.R)
#   conjugate            TRUE for Gaussian noise, so that the posterior of f is normal
#   concave              TRUE if log p is concave in f, so that there is one mode
#   discrete             TRUE if responses are whole numbers
#   site                 the row of src/responses.c, by default the link's name
#   shape                the name of the learned shape parameter, NULL if there is none, or a function of the likelihood
#                        that returns several names
#   shape_label          words for the shape parameter, if they are not its name
#   mean_link            the link of the mean, if it is not the family's
#   middle               the middle of the prior of the shape parameter, in units of f, or a function of the sites
#   start(sites, w)      the constant f where learning starts, if it is not that of the link or of center_start()
#   least(sites)         the smallest value of the shape parameter, by default 1e-6 of its unit
#   constant(y, size, theta)              the terms of log p without f
#   theta_slopes(theta, y, f)             list(l, g, W): derivatives in the log of the shape parameter of l = log p, g =
#                                         dl / df and W = -dg / df, by default by differences
#   engine(sites, theta)                  the sites in the form for C; by default `size` is the shape parameter
#   cdf, quantile(y or p, mean, size, theta)    the distribution of y given its mean
#   draw(mean, size, theta)               a draw of y, by default a quantile at a random probability
#   variance(mean, sd, size, theta)       the variance of y about its mean, averaged if the mean has this sd
#   deviance(y, mean, size, theta)        twice the difference from the largest log likelihood
#   best(sites, theta)                    instead of a deviance, the f that makes each response most likely
#   expected(f, theta)                    E(y | f) if it is not the inverse link
#   growth(theta)                         without `expected`, the ratio of E(y | f) to the inverse link, by default 1
#   limit(u, y, size, theta, link)        the f at which y has cdf pnorm(-u); the default searches for it
#   averaged                              list(cdf, quantile, crps, log_density) if averages over f have their own form
#   zeros, from          TRUE if positive numbers may be 0; the smallest count, if it is not 0
#   shown(theta), known(df)               the shape parameters as users see them; words for given ones
#   shown_slopes(theta)                   the derivatives of log shown(theta) in log theta, by default 1
#   rival                list(family, why, beyond, ...): a family that assumes less. summary() names it, with `why`, if
#                        leave-one-out predictions contradict this row's family (misfit_of() > `beyond`). If the user
#                        gave no family, rival_if_better() may replace it by the rival, never if the row lacks
#                        `errors` (gains in standard errors that this needs). `instead` says how to keep the family.
#   ratio(theta)         c(name = power): a difference d in f means a ratio (`name`) e^(power d); default by link
#   parts(sites)         a list of sites whose W = -(log p)'' sum to the W of `sites`, by default `sites` alone
#   turns(sites)         the f where the W of these parts have their only extremes
#
# theta is c(shape parameter, given parameter such as df). `mean` is for one trial, y has successes in `size` trials.
# Unordered classes ("labels") have K - 1 latent functions and none of the functions of a mean.

# ---- links ----------------------------------------------------------------------------------------------------------

# Each link has fun and its inverse inv, with values in `range`. moments(mean, var) returns mean and sd of inv(f) for f
# ~ N(mean, var), by default by quadrature, with the relative error `error` (absolute if inv is bounded). start(sites,
# w) is the f where learning starts, unit(sites) the unit of f (default 1). pair(p, 1 - p) is fun(p), accurate near 1.
identity_link <- list(fun = identity, inv = identity, range = c(-Inf, Inf), error = 0,
  moments = function(mean, var) list(mean = mean, sd = sqrt(var)))

links <- list(
  identity = c(identity_link, list(
    start = function(sites, w) stats::median(sites$y - sites$offset),
    unit = function(sites) spread_of(sites$y - sites$offset))),
  log = list(fun = log, inv = exp, range = c(0, Inf), error = 1e-12,
    moments = function(mean, var) {
      rate <- exp(mean + var / 2)
      list(mean = rate, sd = rate * sqrt(expm1(var)))
    },
    start = function(sites, w) {
      top <- max(sites$offset)
      log(sum(w * sites$y) + 0.5) - log(sum(w * exp(sites$offset - top)) + 0.5) - top
    }),
  latent = c(identity_link, list(start = function(sites, w) 0)), # for gp_family()
  logit = list(fun = stats::qlogis, inv = stats::plogis, range = c(0, 1), error = 1e-9,
    moments = function(mu, var) {
      p <- logistic_moments(mu, sqrt(var), seq(-40, 40, by = 0.25), 4)
      list(mean = p$mean, sd = sqrt(pmax(p$square - p$mean^2, 0)))
    },
    pair = function(p, rest) log(p) - log(rest)),
  probit = list(fun = stats::qnorm, inv = stats::pnorm, range = c(0, 1), error = 1e-9,
    moments = function(mu, var) {
      mean <- stats::pnorm(mu / sqrt(1 + sqrt(var)^2))
      square <- average_of(function(f) stats::pnorm(f)^2, mu, sqrt(var), seq(-9, 9, by = 0.1), function(t, z, s) {
        0.1 * 2 * stats::dnorm(t) * stats::pnorm(t) * stats::pnorm(z) # by parts: (Phi^2)' times P(f > t)
      })
      list(mean = mean, sd = sqrt(pmax(square - mean^2, 0)))
    },
    pair = function(p, rest) ifelse(p < 0.5, stats::qnorm(p), -stats::qnorm(rest))),
  above_0 = list( # for Poisson counts that are not 0
    fun = function(mean) log(rate_of(mean)), inv = function(f) mean_above_0(f), range = c(1, Inf), error = 1e-9,
    moments = function(mean, var) { # m / (1 - e^-m) = m + h, where m is log-normal and h = m / (e^m - 1) is at most 1
      average <- function(of) {
        normal_average(function(f) {
          m <- pmin(exp(f), 700)
          of(m, ifelse(m < 1e-12, 1, m / expm1(m)))
        }, mean, sqrt(var))
      }
      rate <- exp(mean + var / 2)
      h <- average(function(m, h) h)
      rest <- ifelse(rate < 1e10, average(function(m, h) h * (h + 2 * m)) - h * (h + 2 * rate), 0)
      list(mean = rate + h, sd = sqrt(pmax((rate * sqrt(expm1(var)))^2 + rest, 0)))
    }),
  softmax = list(inv = function(f) softmax_of(f), range = c(0, 1), error = 1e-5))

# Returns the unit of f for priors: a robust sd of the response, or the sd if most responses are equal.
spread_of <- function(y) {
  spread <- stats::mad(y)
  if (!(spread > 0)) spread <- stats::sd(y)
  if (isTRUE(spread > 0)) spread else 1
}

# Returns E h(f) for f ~ N(mean, sd^2) by the trapezoid rule, accurately if h is smooth over steps of sd / 10. The nodes
# are within 9 sds. If h is `unbounded`, further terms are added on both sides until they are negligible.
normal_average <- function(h, mean, sd, unbounded = FALSE) {
  out <- 0 * mean
  term <- function(z) 0.1 * stats::dnorm(z) * h(mean + sd * z)
  for (z in seq(-9, 9, by = 0.1)) out <- out + term(z)
  for (side in if (unbounded) c(-1, 1)) {
    z <- 9.1
    while (length(more <- which(abs(now <- term(side * z)) > 1e-15 * abs(out)))) {
      out[more] <- out[more] + now[more]
      z <- z + 0.1
    }
  }
  out
}

# Returns E h(f) for f ~ N(mean, sd^2). If sd > 4, it is the sum of term(t, (mean - t) / sd, sd) over `grid`. A term is
# the step of the grid times h(t) times the density of f at t, or (integration by parts) times h'(t) P(f > t).
average_of <- function(h, mean, sd, grid, term) {
  wide <- which(sd > 4)
  narrow <- setdiff(seq_along(mean), wide)
  out <- 0 * mean
  out[narrow] <- normal_average(h, mean[narrow], sd[narrow])
  for (t in grid) out[wide] <- out[wide] + term(t, (mean[wide] - t) / sd[wide], sd[wide])
  out
}

# Returns averages of p = plogis(f) and of p^2 = p - p (1 - p) over f ~ N(mean, sd^2). If sd > 4, they are sums over
# `grid` (error 1e-10 by default), in which the weight of t is dlogis(t) / total.
logistic_moments <- function(mean, sd, grid = seq(-25, 25, length.out = 76L), total = sum(stats::dlogis(grid))) {
  average <- function(h, by) {
    average_of(h, mean, rep_len(sd, length(mean)), grid, function(t, z, s) by(stats::dlogis(t) / total, z, s))
  }
  first <- pmin(average(stats::plogis, function(mass, z, s) mass * stats::pnorm(z)), 1)
  list(mean = first, square = first - average(stats::dlogis, function(mass, z, s) mass * stats::dnorm(z) / s))
}

# ---- rows of the table of responses ---------------------------------------------------------------------------------

gaussian_row <- list(
  name = "gaussian", label = "Gaussian", call = "gaussian()", links = "identity", reads = "numbers", conjugate = TRUE,
  # From `rows` rows on, a response `far` mads from the median is judged. Gains are limited to their quantiles `limits`,
  # because one outlier could dominate their mean and its standard error. `log` has the rival with the log transform.
  rival = list(family = "student", rows = 20, far = 20, beyond = 5, errors = 2, limits = c(0.025, 0.975), bias = 3,
    instead = "`noise = ~ 1` keeps normal noise.",
    log = list(family = "loglogistic", shape = function(r) list(), relative = TRUE),
    # Fits Student's t to residuals r by maximum likelihood, df from 1 to 30. If most are 0, there is no maximum.
    shape = function(r) {
      if (!all(is.finite(r)) || stats::mad(r) == 0) return(list(df = 30))
      best <- stats::optim(c(log(stats::mad(r)), log(3)), function(p) {
        -sum(stats::dt(r / exp(p[1L]), exp(p[2L]), log = TRUE) - p[1L])
      })$par
      list(df = signif(min(max(exp(best[2L]), 1), 30), 2))
    }))

binomial_row <- list(
  name = "binomial", label = "binomial", call = "binomial(), binomial(\"probit\")", links = c("logit", "probit"),
  reads = "classes", discrete = TRUE,
  constant = function(y, size, theta) if (is.null(size)) 0 else -lbeta(y + 1, size - y + 1) - log1p(size),
  cdf = function(y, mean, size, theta) stats::pbinom(y, size, mean),
  quantile = function(p, mean, size, theta) { # qbinom() of R 4.2 fails for many trials and means near 1
    less <- stats::qbinom(p, size, mean)
    less + (size - stats::qbinom(p, size, 1 - mean, lower.tail = FALSE) - less) * (mean > 0.5)
  },
  draw = function(mean, size, theta) stats::rbinom(length(mean), size, mean),
  variance = function(mean, sd, size, theta) (mean * (1 - mean) - sd^2) / size,
  deviance = function(y, mean, size, theta) stats::binomial()$dev.resids(y, mean, size),
  limit = function(u, y, size, theta, link) { # the link of a quantile of Beta(y + 1, size - y)
    q <- beta_quantiles(stats::pnorm(u), y, size - pmin(y, large_count))
    link$pair(q$p, q$rest)
  },
  turns = function(sites) list(0),
  # For the probit, W = -(log p)'' is monotone in f for successes alone and for failures alone: two separate parts.
  parts = function(sites) {
    if (sites$name != "probit") return(list(sites))
    size <- sites$size %||% rep(1, length(sites$y))
    list(utils::modifyList(sites, list(size = sites$y)),
         utils::modifyList(sites, list(y = 0 * size, size = size - sites$y)))
  })

poisson_row <- list(
  name = "poisson", label = "Poisson", call = "poisson()", links = "log", reads = "counts", discrete = TRUE,
  # Leave-one-out predictions contradicted 150 samples of Poisson counts by at most 3.4 standard errors.
  rival = list(family = "nb", why = "responses vary more than this family allows", beyond = 4),
  constant = function(y, size, theta) -lgamma(y + 1), cdf = function(y, mean, size, theta) stats::ppois(y, mean),
  quantile = function(p, mean, size, theta) {
    few <- pmin(mean, large_count)
    ifelse(mean > few, mean + sqrt(mean) * stats::qnorm(p), stats::qpois(p, few))
  },
  draw = function(mean, size, theta) stats::rpois(length(mean), mean), variance = function(mean, sd, size, theta) mean,
  deviance = function(y, mean, size, theta) stats::poisson()$dev.resids(y, mean, 1 + 0 * y),
  limit = function(u, y, size, theta, link) { # the log of a quantile of Gamma(y + 1)
    ifelse(y > large_count, log(y) + u / sqrt(y), log(stats::qgamma(stats::pnorm(u), pmin(y, large_count) + 1)))
  })

# The C code's f is log(mean / theta), so log theta is subtracted from the offset.
nb_row <- list(
  name = "nb", label = "negative binomial", call = "nb()", links = "log", reads = "counts", discrete = TRUE,
  site = "nb", shape = "theta", middle = 1,
  # The log of Gamma(y + theta) / (Gamma(theta) y!) by lbeta(): each lgamma() may be far larger than the result.
  constant = function(y, size, theta) ifelse(y > 0, -lbeta(pmax(y, 1), theta) - log(pmax(y, 1)), 0),
  # These are total derivatives in log theta. engine() subtracts log theta from the offset, so df / d log theta = -1.
  theta_slopes = function(theta, y, f) {
    n <- y + theta
    p <- stats::plogis(f)
    q <- stats::plogis(-f)
    list(l = theta * (digamma(n) - digamma(theta) + stats::plogis(-f, log.p = TRUE)) - (y - n * p),
         g = -theta * p + n * p * q, W = theta * p * q - n * p * q * (q - p))
  },
  engine = function(sites, theta) {
    utils::modifyList(sites, list(size = rep(theta, length(sites$y)), offset = sites$offset - log(theta)))
  },
  cdf = function(y, mean, size, theta) stats::pnbinom(y, size = theta, mu = mean),
  quantile = function(p, mean, size, theta) {
    few <- pmin(mean, large_count)
    ifelse(mean > few, mean * (stats::qgamma(p, theta) / theta), stats::qnbinom(p, size = theta, mu = few))
  },
  draw = function(mean, size, theta) stats::rnbinom(length(mean), size = theta, mu = mean),
  variance = function(mean, sd, size, theta) mean + (mean^2 + sd^2) / theta,
  deviance = function(y, mean, size, theta) {
    2 * (ifelse(y > 0, y * log(y / mean), 0) - (y + theta) * log((y + theta) / (mean + theta)))
  },
  limit = function(u, y, size, theta, link) { # log(theta B / (1 - B)), where B is a quantile of Beta(y + 1, theta)
    p <- stats::pnorm(u)
    q <- beta_quantiles(p, y, theta)
    beyond <- log(y) + log(theta) - log(stats::qgamma(p, theta, lower.tail = FALSE))
    ifelse(y > large_count, beyond, log(q$p) - log(q$rest) + log(theta))
  },
  turns = function(sites) list(0))

# The gamma response has mean e^f, and its shape parameter k = 1 / dispersion is theta.
gamma_row <- list(
  name = "Gamma", label = "gamma", call = "Gamma(\"log\")", links = "log", reads = "positive", site = "gamma",
  shape = "shape",
  constant = function(y, size, k) k * log(k) - lgamma(k) + (k - 1) * log(y),
  theta_slopes = function(k, y, f) {
    u <- k * y * exp(-f)
    list(l = k * (1 + log(k) - digamma(k) + log(y) - f) - u, g = u - k, W = u)
  },
  start = log_of_mean,
  cdf = function(y, mean, size, k) stats::pgamma(y / mean, k, k),
  quantile = function(p, mean, size, k) mean * stats::qgamma(p, k, k),
  draw = function(mean, size, k) mean * stats::rgamma(length(mean), k, k),
  variance = function(mean, sd, size, k) (mean^2 + sd^2) / k,
  deviance = function(y, mean, size, k) k * stats::Gamma()$dev.resids(y, mean, 1 + 0 * y),
  limit = function(u, y, size, k, link) log(y * k) - log(stats::qgamma(stats::pnorm(-u), k)))

# Student's t response is y = f + s t, with theta = c(s, degrees of freedom). The C code's f lacks offset and constant
# mean; both are subtracted from y, so that responses far from 0 lose no digits in y - f.
student_row <- list(
  name = "student", label = "Student-t", call = "student()", links = "identity", reads = "numbers", concave = FALSE,
  site = "student", shape = "sigma", middle = 0.5,
  known = function(df) sprintf("%s degree%s of freedom", format(df), plural_s(df)),
  least = function(sites) min(smallest_step(sites$y), spread_of(sites$y)) / sqrt(12), # the sd of rounding of y
  constant = function(y, size, theta) {
    df <- theta[2L]
    lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2 - log(theta[1L])
  },
  theta_slopes = function(theta, y, f) {
    df <- theta[2L]
    residual <- y - f
    a <- df * theta[1L]^2
    b <- a + residual^2
    list(l = (df + 1) * residual^2 / b - 1, g = -2 * a * (df + 1) * residual / b^2,
         W = 2 * a * (df + 1) * (3 * residual^2 - a) / b^3)
  },
  engine = function(sites, theta) {
    utils::modifyList(sites, list(shape = rev(theta), y = sites$y - sites$offset, offset = 0 * sites$offset))
  },
  cdf = function(y, mean, size, theta) stats::pt((y - mean) / theta[1L], theta[2L]),
  quantile = function(p, mean, size, theta) mean + theta[1L] * stats::qt(p, theta[2L]),
  draw = function(mean, size, theta) mean + theta[1L] * stats::rt(length(mean), theta[2L]),
  variance = function(mean, sd, size, theta) if (theta[2L] > 2) theta[1L]^2 * theta[2L] / (theta[2L] - 2) else NA,
  deviance = function(y, mean, size, theta) (theta[2L] + 1) * log1p((y - mean)^2 / (theta[2L] * theta[1L]^2)),
  averaged = list(
    cdf = function(theta, y, size, mu, s) student_mixture(theta, y - mu, s^2, stats::pnorm),
    quantile = function(theta, p, size, mu, s) {
      side <- sign(p - 0.5)
      p <- max(p, 1 - p)
      x <- pmax(s * stats::qnorm(p), theta[1L] * stats::qt(p, theta[2L])) # quantiles of f and of s t are lower bounds
      mu + side * concave_quantile(p, x, function(x, normal) student_mixture(theta, x, s^2, normal))
    }, log_density = function(theta, sites, mu, v) student_predictive(theta, sites$y, mu, v)),
  # W = -(log p)'' is largest at f = y and smallest at f = y +- sqrt(3 df) s.
  turns = function(sites) {
    away <- sqrt(3 * sites$shape[1L]) * sites$shape[2L]
    list(sites$y, sites$y - away, sites$y + away)
  })

multinomial_row <- list(
  name = "multinomial", label = "multinomial", call = "multinomial()", links = "softmax", reads = "labels",
  discrete = TRUE)

response_rows <- lapply(
  list(gaussian = gaussian_row, binomial = binomial_row, multinomial = multinomial_row, poisson = poisson_row,
       nb = nb_row, student = student_row, Gamma = gamma_row, tweedie = tweedie_row,
       truncated_poisson = truncated_row, ordinal = ordinal_row("logistic", "logit"),
       ordinal_probit = ordinal_row("normal", "probit"), ordinal_cloglog = ordinal_row("gumbel", "cloglog"),
       weibull = times_row("gumbel", "weibull", "Weibull"), loglogistic = times_row("logistic", "loglogistic",
       "log-logistic"), lognormal = times_row("normal", "lognormal", "log-normal"), tobit = tobit_row), with_defaults)

response_row <- function(likelihood) likelihood$row %||% response_rows[[likelihood$name %||% "gaussian"]]

# Returns list(p, rest): the p-quantile of Beta(y + 1, b), and 1 minus this quantile without loss of digits. y
# is cut at large_count.
beta_quantiles <- function(p, y, b) {
  a <- pmin(y, large_count) + 1
  suppressWarnings(list(p = stats::qbeta(p, a, b), rest = stats::qbeta(p, b, a, lower.tail = FALSE)))
}

# Returns a grid of q and log weights. With scale s, Student's t is a mixture of normals with variance s^2 / q, q ~
# Gamma(df / 2, df / 2). Its density is an integral over log q of a function with one sharp peak, so the trapezoid rule
# is accurate. At a distance of e^far s (far > 0), the peak is near q = (df + 1) / e^(2 far).
student_grid <- function(df, far = 0) {
  step <- min(0.1, sqrt(2 / df) / 4)
  grid <- seq(-80 / df - 2 - 2 * max(0, far), 6, by = step)
  list(q = exp(grid), log_weight = stats::dgamma(exp(grid), df / 2, df / 2, log = TRUE) + grid + log(step))
}

# Returns log p(y) for y = f + s t, averaged over f ~ N(mu, v), where t has Student's distribution.
student_predictive <- function(theta, y, mu, v) {
  grid <- student_grid(theta[2L], log(max(abs(y - mu), 0, na.rm = TRUE)) - log(theta[1L]))
  logs <- vapply(seq_along(grid$q), function(i) {
    grid$log_weight[i] + stats::dnorm(y, mu, sqrt(v + theta[1L]^2 / grid$q[i]), log = TRUE)
  }, numeric(length(y)))
  log_row_sums(matrix(logs, length(y)))
}

# Returns P(y - mu <= distance) (normal = pnorm) or the density of y - mu at `distance` (normal = dnorm). Here y is f +
# s t, t has Student's distribution, f ~ N(mu, v), and theta is c(s, degrees of freedom).
student_mixture <- function(theta, distance, v, normal) {
  grid <- student_grid(theta[2L])
  out <- 0 * distance
  for (i in seq_along(grid$q)) {
    out <- out + exp(grid$log_weight[i]) * normal(distance, 0, sqrt(v + theta[1L]^2 / grid$q[i]))
  }
  out
}

# Returns the p-quantile (p >= 1/2) of a mixture of normals with mean 0, by Newton steps from a smaller x. The cdf is
# concave above 0, so no step passes the quantile. average(x, normal) averages pnorm() or dnorm() over the mixture.
concave_quantile <- function(p, x, average) {
  for (i in 1:100) {
    step <- (p - average(x, stats::pnorm)) / average(x, stats::dnorm)
    x <- x + step
    if (!any(step > 1e-9 * x, na.rm = TRUE)) break
  }
  x
}

# For unordered classes, the distribution of f at n rows is that of the log odds of classes 2 to K against class 1:
# list(mean [n, K - 1], var [n, (K - 1)^2]). Each row of var is a covariance matrix, column by column.

# Returns K - 1 orthonormal contrasts of K classes as columns.
class_contrasts <- function(K) {
  C <- unname(stats::contr.helmert(K))
  C / rep(sqrt(colSums(C^2)), each = K)
}

take_rows_of <- function(v, rows) {
  if (length(dim(v)) == 2L) return(v[rows, , drop = FALSE])
  if (is.list(v)) lapply(v, take_rows_of, rows) else v[rows]
}

# Converts the distribution `at` of contrasts of classes (covariance V) to that of log odds against the first class. Log
# odds are D times the contrasts plus differences of the constant means `center`, and have the covariance D V D'.
as_log_odds <- function(at, center) {
  n <- nrow(at$mean)
  q <- ncol(at$mean)
  C <- class_contrasts(q + 1L)
  D <- C[-1L, , drop = FALSE] - rep(C[1L, ], each = q)
  half <- aperm(array(matrix(at$var, n * q) %*% t(D), c(n, q, q)), c(1L, 3L, 2L))
  list(mean = at$mean %*% t(D) + rep(center[-1L] - center[1L], each = n), var = matrix(matrix(half, n * q) %*% t(D), n))
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
  slope <- matrix(1, nrow(f), ncol(f))
  slope[, -k] <- -share
  list(value = f[, k] - log_row_sums(others), slope = slope)
}
