# Compares Tweedie's density and moments, and those of counts above 0, with their definitions.

amounts <- function(n = 40, seed = 1) {
  with_seed(seed, {
    x <- stats::runif(n, 0, 4)
    d <- data.frame(x = x, n = 1 + stats::rpois(n, exp(sin(2 * x))))
    transform(d, y = ifelse(stats::runif(n) < 0.7, stats::rgamma(n, 2, 2 / exp(sin(2 * x))), 0))
  })
}

# Returns Tweedie's density as a sum over the number of gamma variables.
direct_density <- function(y, mean, p, phi) {
  n <- 1:400
  rate <- mean^(2 - p) / (phi * (2 - p))
  vapply(y, function(y) {
    if (y == 0) return(exp(-rate))
    sum(stats::dpois(n, rate) * stats::dgamma(y, n * (2 - p) / (p - 1), scale = phi * (p - 1) * mean^(p - 1)))
  }, 0)
}

test_that("Tweedie's density is that of a Poisson sum of gamma variables, for few and many of them", {
  y <- c(0, 1e-3, 0.4, 2, 30)
  for (p in c(1.05, 1.5, 1.95)) for (phi in c(0.3, 2)) {
    likelihood <- as_likelihood(tweedie(p, phi))
    sites <- list(y = y, offset = numeric(5))
    s <- engine_sites(likelihood, sites, 0)
    log_p <- native_likelihood(s, rep(log(1.7), 5))[1L, ] + s$constant
    # The sum has 400 terms, and each is rounded.
    expect_equal(log_p, log(direct_density(y, 1.7, p, phi)), tolerance = 1e-8)
  }
  # With very many terms the function skips some, and the density is nearly normal.
  many <- engine_sites(as_likelihood(tweedie(1.5, 1e-4)), list(y = c(0.98, 1.03), offset = numeric(2)), 0)
  log_p <- native_likelihood(many, c(0, 0))[1L, ] + many$constant
  sum_to <- function(y) {
    n <- 1:80000
    log(sum(exp(stats::dpois(n, 2e4, log = TRUE) + stats::dgamma(y, n, scale = 5e-5, log = TRUE))))
  }
  expect_equal(log_p, c(sum_to(0.98), sum_to(1.03)), tolerance = 1e-8)
})

test_that("predictions of a Tweedie response are averages over f", {
  d <- amounts()
  fit <- pfdtc(y ~ x, d, family = tweedie(1.6, 0.8), kernel = kernel_se(0.8, 1), hyper = "fixed")
  zero <- predict(fit, rbind(transform(d[1, ], y = 0), d[1, ]), type = "density") # also if all new responses are 0
  expect_identical(predict(fit, transform(d[1, ], y = 0), type = "density"), zero[1])
  expect_identical(nobs(add_rows(fit, transform(d[1, ], y = 0))), nobs(fit) + 1L)
  new <- data.frame(x = c(0.5, 2, 9), y = c(0, 1, 3))
  f <- predict(fit, new, se.fit = TRUE)
  averaged <- function(h, i) {
    stats::integrate(Vectorize(function(z) stats::dnorm(z) * h(exp(f$fit[i] + f$se.fit[i] * z))), -8, 8,
                     rel.tol = 1e-9, subdivisions = 500L)$value
  }
  direct <- vapply(1:3, function(i) averaged(function(m) direct_density(new$y[i], m, 1.6, 0.8), i), 0)
  expect_equal(unname(predict(fit, new, type = "density")), log(direct), tolerance = 1e-6)
  expect_equal(unname(predict(fit, new, type = "response")), unname(exp(f$fit + f$se.fit^2 / 2)), tolerance = 1e-10)
  # At a quantile the cdf is p, or the share of zeros is above p.
  q <- predict(fit, new, type = "quantile", probs = c(0.05, 0.5, 0.9))
  a <- 0.4 / 0.6
  upto <- function(y, m) {
    rate <- m^0.4 / (0.8 * 0.4)
    exp(-rate) + sum(stats::dpois(1:200, rate) * stats::pgamma(y, 1:200 * a, scale = 0.8 * 0.6 * m^0.6))
  }
  reached <- vapply(1:3, function(k) vapply(1:3, function(i) averaged(function(m) upto(q[i, k], m), i), 0), numeric(3))
  want <- matrix(c(0.05, 0.5, 0.9), 3, 3, byrow = TRUE)
  # The trapezoid rule errs by 3e-9, and the two searches for the quantile err by as much.
  expect_equal(reached[q > 0], want[q > 0], tolerance = 1e-7)
  expect_true(all(reached[q == 0] >= want[q == 0]))
  expect_true(any(q == 0) && any(q > 0))
  draws <- stats::simulate(fit, 2, seed = 1)
  expect_true(all(draws >= 0) && any(draws == 0))
  # The probability below an observation of 0 is 0.
  each <- score_each(response_of(fit), fit$data$sites[c("y", "size")], list(mean = predict(fit), var = rep(0.1, 40)))
  expect_identical(each$below == 0, d$y == 0)
  for (type in c("pearson", "deviance", "pit")) expect_true(all(is.finite(stats::residuals(fit, type))), label = type)
})

test_that("power and dispersion are learned near those of mgcv::tw()", {
  skip_on_cran()
  d <- with_seed(3, {
    x <- stats::runif(150, 0, 3)
    n <- stats::rpois(150, exp(0.4 * sin(2 * x)) / 0.4)
    data.frame(x = x, y = stats::rgamma(150, n * 2 / 3, 1) * exp(0.6 * sin(2 * x)))
  })
  fit <- pfdtc(y ~ x, d, family = tweedie(), kernel = kernel_se())
  given <- pfdtc(y ~ x, d, family = tweedie(coef(fit)[["p"]]), kernel = kernel_se())
  expect_identical(names(coef(given))[4], "phi")
  expect_match(utils::capture.output(print(given))[1], "Tweedie")
  # Both fits have the same optimum. A search ends a few thousandths from it, if two steps gain less than .001.
  expect_lt(abs(given$evidence - fit$evidence), 0.01)
  # vcov() has the shape parameters, and family() of a fit can be used again.
  expect_true(all(c("log(phi)", "log(p)") %in% rownames(stats::vcov(fit))))
  again <- pfdtc(y ~ x, d, family = stats::family(fit), kernel = fit$kernel, hyper = "fixed", center = fit$center)
  expect_equal(again$evidence, fit$evidence, tolerance = 1e-8)
  # Under the same model the bound on log p(y) is largest at the variational posterior, not at Laplace's.
  vi <- stats::update(again, approx = "vi")
  bound <- function(start) {
    sites <- sites_of_fit(vi, vi$data)
    laplace_at(vi$data$x, sites, vi$kernel, vi$inducing, vi$jitter, NULL, start, maxit = 0L)$evidence
  }
  expect_gt(bound(vi$factors), bound(again$factors))
  # The sd of "log(p)" is that of the log odds of p - 1, times the derivative of log p by them.
  p_of <- function(log_odds) log(1 + stats::plogis(log_odds))
  at <- stats::qlogis(coef(fit)[["p"]] - 1)
  learned <- learned_density(fit)
  of_odds <- sqrt(diag(curvature_inverse(learned)))[learned$names == "p"]
  expect_equal(sqrt(stats::vcov(fit)["log(p)", "log(p)"]), of_odds * (p_of(at + 1e-5) - p_of(at - 1e-5)) / 2e-5,
               tolerance = 1e-6) # the error of differences
  skip_if_not_installed("mgcv")
  attachNamespace("mgcv") # tw() calls functions of mgcv by their names
  on.exit(detach("package:mgcv"))
  # A spline has other degrees of freedom, so estimates differ by up to a third of a standard error.
  theirs <- mgcv::gam(y ~ s(x), data = d, family = mgcv::tw(), method = "REML")
  their_p <- theirs$family$getTheta(TRUE)
  se <- sqrt(diag(stats::vcov(fit))[c("log(p)", "log(phi)")])
  expect_lt(abs(log(coef(fit)[["p"]] / their_p)), se[[1L]] / 3)
  expect_lt(abs(log(coef(fit)[["phi"]] / theirs$sig2)), se[[2L]] / 3)
})

test_that("power and dispersion have a slope each, for one row as for many", {
  likelihood <- as_likelihood(tweedie())
  likelihood[c("middle", "theta")] <- list(c(1, 1), c(0.8, 1.4))
  for (rows in list(3L, 1:4)) {
    sites <- list(y = c(0, 0.4, 1.7, 5)[rows], offset = numeric(length(rows)))
    x <- cbind(a = c(0, 0.5, 1.5, 2)[rows])
    learn <- response_to_learn(likelihood, sites)
    at <- log(c(0.8, 1.4))
    value <- function(logs) {
      engine <- learn$at(exp(logs), 0.2)
      e <- native_laplace(x, x, engine, kernel_se(1, 2), 1e-8, want = 2L)
      list(value = e$evidence - e$penalty + sum(engine$constant), slope = learn$slope(exp(logs), engine, e))
    }
    central <- vapply(1:2, function(j) {
      move <- replace(numeric(2), j, 1e-4)
      (value(at + move)$value - value(at - move)$value) / 2e-4
    }, 0)
    # The mode is accurate to 1e-9, so these differences are accurate to 1e-5.
    expect_equal(value(at)$slope, central, tolerance = 1e-4)
  }
})

test_that("the mean of a count above 0 and its rate are inverse, and its moments are averages over f", {
  f <- c(-20, -5, 0, 2, 30, 500)
  expect_equal(log(rate_of(mean_above_0(f))), f, tolerance = 1e-5) # at -20 the mean is 1 + 1e-9
  d <- amounts()
  fit <- pfdtc(n ~ x, d, family = truncated_poisson(), kernel = kernel_se(0.8, 1), hyper = "fixed")
  new <- data.frame(x = c(0.5, 9), n = 1:2)
  f <- predict(fit, new, se.fit = TRUE)
  averaged <- function(h) {
    vapply(1:2, function(i) {
      stats::integrate(function(z) stats::dnorm(z) * h(exp(f$fit[i] + f$se.fit[i] * z)), -8, 8, rel.tol = 1e-9)$value
    }, 0)
  }
  expect_equal(unname(predict(fit, new, type = "response")), averaged(function(m) m / (1 - exp(-m))), tolerance = 1e-7)
  q <- predict(fit, new, type = "quantile", probs = 0.8)[, 1]
  above <- function(k) averaged(function(m) stats::ppois(k, m, lower.tail = FALSE) / (1 - exp(-m)))
  expect_true(all(diag(matrix(above(q[1]), 2, 2)) * c(1, 0) <= 0.2))
  upto <- vapply(1:2, function(i) 1 - above(q[i])[i], 0)
  below <- vapply(1:2, function(i) 1 - above(q[i] - 1)[i], 0)
  expect_true(all(upto >= 0.8 & below < 0.8))
  expect_true(all(stats::simulate(fit, 1, seed = 1) >= 1))
  certified <- certify(fit, new, effort = "fast")
  expect_true(all(certified$response_lower <= certified$response & certified$response <= certified$response_upper))
})

test_that("a response that is no positive number or count is refused by name", {
  d <- amounts(12)
  refused <- function(formula, family, word) {
    expect_error(pfdtc(formula, d, family = family), word, class = "pfdtc_error_input")
  }
  refused(I(y - 1) ~ x, tweedie(), "at least 0")
  refused(I(0 * y) ~ x, tweedie(), "all rows")
  refused(I(n - min(n)) ~ x, truncated_poisson(), "from 1")
  refused(y ~ x, truncated_poisson(), "whole")
  refused(factor(n) ~ x, tweedie(), "factor")
  for (bad in list(1, 2, 3, NA, "a", c(1.2, 1.4))) expect_error(tweedie(bad), "p", class = "pfdtc_error_input")
  expect_error(tweedie(phi = 1), "phi", class = "pfdtc_error_input")
  expect_error(tweedie(1.5, 0), "phi", class = "pfdtc_error_input")
})

test_that("Tweedie's P(Y <= y) is right for any sd of f", {
  for (theta in list(c(1, 1), c(0.3, 0.4))) for (s in c(0.5, 4, 30)) for (y in in_turn(c(0, 2), s > 1, 2)) {
    h <- 0.01
    f <- seq(-9 * s, 9 * s, by = h * s)
    # Beyond these ends P(Y <= y | f) is 1 or 0 to 1e-12.
    dense <- sum(stats::dnorm(f / s) * h * tweedie_given(theta, rep(y, length(f)), pmin(pmax(f, -200), 60)))
    expect_equal(tweedie_cdf(theta, y, 0, s), dense, tolerance = 1e-3) # the dense sum has steps of h sds
  }
  steep <- c(0.05, 1 / 9) # P(Y <= y | f) falls from 1 to 0 within steps of f
  for (s in some_of(c(6, 2, 15), 1)) {
    f <- seq(-9 * s, 9 * s, by = 0.002)
    given <- tweedie_given(steep, rep(300, length(f)), pmin(pmax(f, -200), 20))
    expect_equal(tweedie_cdf(steep, 300, 0, s), sum(stats::dnorm(f / s) * 0.002 / s * given), tolerance = 1e-4)
  }
  # Each row has a grid of its own, so rows together have the numbers of each alone. The dense sum has steps of 0.003
  # sds.
  y <- c(0, 1e-3, 0.5, 3, 40, 2e4)
  s <- c(0.4, 1, 3, 2, 0.1, 2)
  for (theta in some_of(list(c(0.3, 4), c(30, 1 / 4), c(2.4, 1)), 1)) {
    z <- seq(-6.5, 6.5, by = 0.003)
    dense <- mapply(function(y, s) sum(stats::dnorm(z) * tweedie_given(theta, rep(y, length(z)), s * z)) * 0.003, y, s)
    together <- tweedie_cdf(theta, y, 0 * y, s)
    expect_equal(together, dense, tolerance = 2e-9)
    expect_equal(together, mapply(tweedie_cdf, y = y, s = s, MoreArgs = list(theta = theta, mu = 0)), tolerance = 1e-13)
  }
  # For p near 1, gamma terms fall faster than Poisson ones in n. exceedance() widens its bounds by 1e-6 for this error.
  near_one <- list(c(0.1, 0.02 / 0.98, 4, 2, 30), c(0.1, 0.05 / 0.95, 4, 2, 30), c(5, 0.02 / 0.98, 4, 0.5, 3.3))
  for (at in some_of(near_one, 1)) {
    z <- seq(-8, 8, by = 0.002)
    given <- tweedie_given(at[1:2], rep(at[5], length(z)), at[3] + at[4] * z)
    expect_lt(abs(tweedie_cdf(at[1:2], at[5], at[3], at[4]) - sum(stats::dnorm(z) * given) * 0.002), 1e-6)
  }
  # Rates with and without the normal approximation agree.
  theta <- c(1, 1)
  f <- 2 * log(5e11 * c(0.9999, 1.0001)) # the rate is below 1e12, then above
  z <- c(-2, 0, 1.5)
  for (each in f) {
    y <- exp(each) * (1 + z * sqrt(exp(-each / 2)))
    expect_equal(tweedie_given(theta, y, rep(each, 3)), stats::pnorm(z), tolerance = 1e-5)
  }
})

test_that("Tweedie's CRPS on shared grids is the integral at each row", {
  for (theta in some_of(list(c(0.6, 1), c(3, 4), c(0.5, 1 / 4)), 1)) {
    mu <- c(-1, 0.5, 2, 2.5, 3, 3)
    s <- c(0.01, 0.2, 0.3, 1.2, 0, 0.05)
    y <- c(0, 1.3, 30, 4, 12, 0)
    shared <- tweedie_crps(theta, y, mu, s)
    p <- tweedie_parts(theta)$p
    response <- as_response(as_likelihood(tweedie(p, theta[1])))
    f <- list(mean = mu, var = s^2, size = rep(1, 6))
    expect_equal(response_crps(response, y, f), shared, tolerance = 1e-12)
    response$averaged$crps <- NULL # then each row needs two integrals, with errors of 1e-8
    expect_equal(shared, response_crps(response, y, f), tolerance = 1e-7)
    # Rows alone have grids of their own, with relative errors below 1e-9.
    expect_equal(mapply(tweedie_crps, y = y, mu = mu, s = s, MoreArgs = list(theta = theta)), shared, tolerance = 1e-8)
    expect_equal(tweedie_crps(theta, c(y, 5), c(mu, 9), c(s, 30)), c(shared, NA), tolerance = 1e-8) # sd 30 is too wide
  }
})

test_that("predictions and draws are finite where f has a very large sd", {
  d <- with_seed(2, data.frame(x = 1:30 / 5, n = stats::rpois(30, 2), y = exp(stats::rnorm(30))))
  for (family in some_of(list(stats::poisson(), stats::Gamma("log"), tweedie()), 1)) { # tweedie() takes 10 s
    response <- if (family$family %in% c("poisson", "nb", "tweedie")) n ~ x else y ~ x
    fit <- suppressWarnings(pfdtc(response, d, family = family, kernel = kernel_se(1, 1e16), hyper = "fixed"))
    far <- data.frame(x = c(3, 1e3))
    band <- predict(fit, far, type = "median", interval = "prediction")
    expect_false(anyNA(band), info = family$family)
    expect_true(all(band[, "lwr"] <= band[, "upr"]), info = family$family)
    expect_no_warning(draws <- simulate(fit, 3, seed = 1, newdata = far))
    expect_false(anyNA(draws), info = family$family)
  }
})

test_that("the mean and sd of a count above 0 are right however wide f is", {
  response <- as_response(as_likelihood(truncated_poisson()))
  t <- seq(-10, 30, by = 0.001) # standard normals; e^(s t) dnorm(t) is largest at t = s
  for (mu in log(c(1e-8, 1, 1e8))) for (s in c(1e-3, 0.5, 5, 10)) {
    share <- stats::dnorm(t) * 0.001
    g <- mean_above_0(mu + s * t)
    first <- sum(share * g)
    found <- response_moments(response, mu, s^2)
    expect_equal(found$mean, first, tolerance = 1e-8)
    expect_equal(found$sd, sqrt(sum(share * (g - first)^2)), tolerance = if (s > 1) 1e-8 else 1e-6)
  }
  expect_identical(response_moments(response, 800, 1), list(mean = Inf, sd = Inf))
  expect_equal(response_moments(response, -800, 1), list(mean = 1, sd = 0), tolerance = 1e-7)
})

test_that("Tweedie's quantiles are right at probabilities near 0 and 1, although P(Y <= y) is almost a step", {
  for (phi in c(1e-4, 1)) for (mean in c(1, 1e8)) for (p in c(1e-9, 1e-6, 0.5, 1 - 1e-6)) {
    q <- tweedie_quantile(c(phi, 1), p, log(mean), 0)
    if (q > 0) expect_lt(abs(tweedie_cdf(c(phi, 1), q, log(mean), 0) - p), 1e-8)
  }
})

test_that("Tweedie's quantile of a row is found beside rows that need more steps", {
  theta <- c(1.26568413360364, 0.400784232792398) # the first row reaches its root exactly, long before the second
  mu <- c(-1.5345148356199338, -5.5481172094338360)
  s <- c(0.83429677818796955, 0.94476570083153077)
  both <- tweedie_quantile(theta, 0.975, mu, s)
  expect_equal(both, c(tweedie_quantile(theta, 0.975, mu[1], s[1]), tweedie_quantile(theta, 0.975, mu[2], s[2])))
  expect_equal(tweedie_cdf(theta, both, mu, s), c(0.975, 0.975), tolerance = 1e-9)
})

test_that("the power learned from counts ends where their density would have spikes, with other parameters converged", {
  d <- with_seed(3, {
    x <- stats::runif(200)
    data.frame(x = x, y = stats::rpois(200, exp(-1 + sin(6 * x))))
  })
  fit <- suppressMessages(pfdtc(y ~ x, d, family = tweedie(), kernel = kernel_se()))
  expect_equal(coef(fit)[["p"]], 1.2, tolerance = 1e-10) # most counts above 0 are 1: odds of p - 1 of at least 1 / 4
  given <- suppressMessages(pfdtc(y ~ x, d, family = tweedie(1.2), kernel = kernel_se()))
  expect_lt(abs(given$evidence - fit$evidence), 0.5) # the prior of p moves its optimum; a stuck search was 3.4 below
  expect_true(all(is.finite(stats::vcov(fit))))
  expect_equal(as_response(as_likelihood(tweedie()))$least(list(y = c(0, 40, 41, 50)))[2], 1 / 99) # as mgcv::tw()
})
