# Compares scores of predictive distributions with their definitions.

test_that("the CRPS is the integral of (F(t) - 1{y <= t})^2", {
  f <- list(mean = c(0.2, 1), var = c(0.3, 0.05))
  rows <- list(noise = c(0.4, 0.1), size = c(7, 7))
  by_definition <- function(cdf, y, from = -Inf) {
    square <- function(t) (cdf(t) - (y <= t))^2
    sum(stats::integrate(square, from, y, rel.tol = 1e-8, subdivisions = 1000L)$value,
        stats::integrate(square, y, Inf, rel.tol = 1e-8, subdivisions = 1000L)$value)
  }
  logged <- replace(as_response(NULL), "transform", list(new_transform("log", 1)))
  for (y in list(c(0.4, 3), c(2, 2.5))) {
    plain <- response_crps(as_response(NULL), y, c(f, rows))
    log <- response_crps(logged, y, c(f, rows))
    student <- as_response(as_likelihood(student(4, 0.5)))
    heavy <- response_crps(student, y, c(f, rows))
    for (n in 1:2) {
      sd <- sqrt(f$var[n] + rows$noise[n])
      expect_equal(plain[n], by_definition(function(t) stats::pnorm(t, f$mean[n], sd), y[n]), tolerance = 1e-6)
      expect_equal(log[n], by_definition(function(t) stats::plnorm(t, f$mean[n], sd), y[n], 0), tolerance = 1e-6)
      cdf <- function(t) {
        predictive_cdf(student, t, 1 + 0 * t, f$mean[n] + 0 * t, sqrt(f$var[n]) + 0 * t)
      }
      expect_equal(heavy[n], by_definition(cdf, y[n]), tolerance = 1e-5)
    }
  }
  # For noise with heavy tails the scale may be one number for all rows.
  one <- list(noise = 0.4, spread = 2)
  tails <- response_crps(as_response(NULL), c(0.4, 3), c(f, one))
  for (n in 1:2) {
    cdf <- function(t) noisy_cdf(t - f$mean[n], list(var = f$var[n], noise = 0.4, spread = 2))
    expect_equal(tails[n], by_definition(cdf, c(0.4, 3)[n]), tolerance = 1e-6)
  }
  expect_identical(tails, response_crps(as_response(NULL), c(0.4, 3), c(f, lapply(one, rep, 2))))
  for (family in list(poisson(), nb(2), binomial())) {
    response <- as_response(as_likelihood(family))
    y <- c(1, 5)
    found <- response_crps(response, y, c(f, rows))
    size <- if (response$reads == "classes") 7 else 1
    for (n in 1:2) {
      t <- if (size > 1) 0:6 else 0:3000
      same <- rep(1, length(t))
      cdf <- predictive_cdf(response, t, size * same, f$mean[n] * same, sqrt(f$var[n]) * same)
      expect_equal(found[n], sum((cdf - (y[n] <= t))^2) / size, tolerance = 1e-5)
    }
  }
})

test_that("the CRPS of large counts with a wide mean is that of the log-normal distribution", {
  response <- as_response(as_likelihood(poisson()))
  y <- 1e8
  for (s in c(0.5, 2, 4)) {
    z <- (log(y) - 18) / s
    exact <- y * (2 * stats::pnorm(z) - 1) -
      2 * exp(18 + s^2 / 2) * (stats::pnorm(z - s) + stats::pnorm(s / sqrt(2)) - 1)
    found <- response_crps(response, y, list(mean = 18, var = s^2, size = 1))
    # The sum has terms at numbers 12 % apart, and omits a millionth of the distribution.
    expect_equal(found, exact, tolerance = 5e-3)
  }
})

test_that("the CRPS of counts with a wide f is the sum over all counts", {
  law <- list(nb = function(t, f) stats::pnbinom(t, size = 2, mu = exp(f)),
              poisson = function(t, f) stats::ppois(t, exp(f)))
  z <- seq(-6.5, 6.5, by = 0.1)
  weight <- stats::dnorm(z) / sum(stats::dnorm(z))
  mean <- c(1, 3, 5)
  sd <- c(1.4, 0.9, 0.6)
  y <- c(40, 0, 500)
  t <- 0:8000
  for (family in list(nb(2), poisson())) {
    response <- as_response(as_likelihood(family))
    # This forces the method by the cdf. A sum of probabilities for all rows would have too many terms.
    found <- with_replaced(list(crps_by_masses = function(...) NA_real_),
                           response_crps(response, y, list(mean = mean, var = sd^2, size = rep(1, 3))))
    for (i in 1:3) {
      upto <- Reduce(`+`, Map(function(z, w) w * law[[response$name]](t, mean[i] + sd[i] * z), z, weight))
      expect_equal(found[i], sum((upto - (y[i] <= t))^2), tolerance = 1e-3) # linear between numbers 5 % apart
    }
  }
})

test_that("the CRPS of counts is the plain sum, with sums of probabilities and with the cdf", {
  mean <- c(-3, 0.5, 1.5, 3)
  sd <- c(0.1, 0.8, 0.05, 0.4)
  z <- seq(-8, 8, by = 0.1)
  weight <- stats::dnorm(z) / sum(stats::dnorm(z))
  laws <- list(list(poisson(), function(t, f) stats::ppois(t, exp(f))),
               list(nb(0.6), function(t, f) stats::pnbinom(t, size = 0.6, mu = exp(f))),
               list(binomial(), function(t, f) stats::pbinom(t, 30, stats::plogis(f))),
               list(truncated_poisson(), function(t, f) {
                 if (t < 1) 0 * f else (stats::ppois(t, exp(f)) - exp(-exp(f))) / -expm1(-exp(f))
               }))
  for (law in laws) {
    response <- as_response(as_likelihood(law[[1]]))
    y <- c(1, 4, 2, 25)
    size <- rep(30, 4)
    slow <- with_replaced(list(crps_by_masses = function(...) NA_real_), crps_of_counts(response, y, size, mean, sd))
    fast <- crps_of_counts(response, y, size, mean, sd)
    for (i in 1:4) {
      upto <- vapply(0:1500, function(t) sum(weight * law[[2]](t, mean[i] + sd[i] * z)), 0)
      plain <- sum((upto - (y[i] <= 0:1500))^2)
      expect_equal(fast[i], plain, tolerance = 2e-6, label = response$name) # the sum omits 1e-6 of the distribution
      expect_equal(slow[i], plain, tolerance = 1e-3, label = response$name) # linear between numbers 12 % apart
    }
  }
})
