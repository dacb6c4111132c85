# Compares fits of classes and counts whose neighbours are all rows to the Laplace posterior of the exact GP,
# computed by dense matrices.

near_fit <- function(p, neighbours, m = 4, ...) with_seed(1, laplace_fit_of(p, m = m, neighbours = neighbours, ...))

test_that("with all rows as neighbours, mode and sd are the exact GP's, few points or many", {
  for (p in laplace_problems()) {
    fit <- near_fit(p, nrow(p$x))
    exact <- ref_laplace(p$x, p$sites, p$family, p$kernel, p$x, p$theta)
    at <- predict(fit, se.fit = TRUE, type = "link")
    label <- paste(p$family, p$kernel$profile)
    expect_equal(unname(at$fit) - p$sites$offset, exact$mean, tolerance = 1e-6, label = label)
    expect_equal(unname(at$se.fit), sqrt(exact$var), tolerance = 1e-6, label = label)
  }
})

test_that("f is a fixed point of Newton's method, and neighbours improve on points alone", {
  p <- laplace_problem_of("logit", profile = "matern32", n = 80)
  p$kernel <- ref_kernel("matern32", c(0.5, 0.5), 4)
  exact <- ref_laplace(p$x, p$sites, p$family, p$kernel, p$x)
  error <- function(fit) max(abs(predict(fit, type = "link") - exact$mean))
  far <- error(laplace_fit_of(p, m = 8))
  some <- near_fit(p, 10, m = 8)
  expect_lt(error(some), far / 2)
  expect_lt(error(near_fit(p, 30, m = 8)), error(some))
  f <- unname(predict(some, type = "link"))
  again <- working_rows(some$data$x, engine_sites(some$likelihood, p$sites, 0), f)
  expect_equal(again$weights, some$near$rows$weights, tolerance = 1e-5)
  expect_equal(again$y, some$near$rows$y, tolerance = 1e-5)
  expect_lt(some$near$steps, 20)
})

test_that("certificates contain the exact GP's posterior", {
  p <- laplace_problem_of("log", plain = FALSE, profile = "matern32")
  fit <- near_fit(p, 5)
  rows <- list(x = rbind(p$x, p$new), index = seq_len(nrow(p$x) + nrow(p$new)), offset = 0, names = NULL)
  exact <- ref_laplace(p$x, p$sites, p$family, p$kernel, rows$x)
  for (effort in c("fast", "reference")) {
    c <- certificate_of(fit, rows, effort, NULL)
    expect_true(all(exact$mean >= c$mean_lower - 1e-7 & exact$mean <= c$mean_upper + 1e-7))
    expect_true(all(abs(exact$mean - c$mean) <= c$mean_error + 1e-7))
    expect_true(all(sqrt(exact$var) >= c$sd_lower - 1e-7 & sqrt(exact$var) <= c$sd_upper + 1e-7))
  }
  made <- reference(fit)
  expect_null(made$near)
  fit$reference <- made
  expect_equal(certify(fit, p$new)$mean_upper, certify(fit, p$new, m2 = nrow(made$inducing))$mean_upper,
               tolerance = 1e-6)
})

test_that("leave-one-out, covariances and draws use the neighbours", {
  p <- laplace_problem_of("logit", plain = FALSE)
  whole <- laplace_fit_of(p)
  all <- near_fit(p, nrow(p$x))
  loo <- function(fit) predict(fit, type = "loo_latent", se.fit = TRUE)
  # With neighbours, predictions are about the mode of f, like certificates; with points alone, about its mean.
  whole$factors$shift <- NULL
  expect_equal(loo(all), loo(whole), tolerance = 1e-5)
  plain <- p
  plain$sites$offset <- 0 * p$sites$offset
  whole <- laplace_fit_of(plain)
  all <- near_fit(plain, nrow(p$x))
  cov <- function(fit) predict(fit, p$new, type = "link", full_cov = TRUE)$cov
  expect_equal(cov(all), cov(whole), tolerance = 1e-5)
  expect_true(all(unlist(simulate(all, 2, seed = 1)) >= 0))
  expect_output(print(all), "25")
  again <- unserialize(serialize(all, NULL))
  expect_identical(predict(again), predict(all))
})

test_that("rows with almost no information have finite results, and unsupported arguments are refused", {
  p <- laplace_problem_of("logit")
  p$sites$offset <- 500 * (2 * p$sites$y - 1)
  at <- predict(near_fit(p, nrow(p$x)), se.fit = TRUE)
  expect_equal(unname(at$se.fit), rep(sqrt(1.3), 25), tolerance = 1e-7)
  expect_equal(unname(at$fit), p$sites$offset, tolerance = 1e-7)
  p <- laplace_problem_of("log")
  expect_error(laplace_check(near_fit(p, 5)), class = "pfdtc_error_input")
  expect_error(laplace_fit_of(p, m = NULL, tol = 0.1, neighbours = 5), "neighbours", class = "pfdtc_error_input")
  expect_error(pfdtc(dist ~ speed, cars, family = student(), neighbours = 5), "log-concave",
               class = "pfdtc_error_input")
  expect_error(near_fit(p, 5, keep_data = FALSE), "keep_data", class = "pfdtc_error_input")
})
