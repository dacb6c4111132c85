# Compares a fit with the formulas computed by dense matrices (helper-reference.R), in the units of the data.

dense_kernel <- function(fit) ref_kernel(fit$kernel$profile, unname(fit$kernel$lengthscale), fit$kernel$variance)

dense_exact <- function(fit, x, y, weights = NULL) ref_exact(x, y - fit$center, dense_kernel(fit), fit$noise, weights)

test_that("Z = X gives the exact posterior and evidence, before and after optimisation", {
  only_nightly()
  for (profile in quick(profiles)) {
    data <- problem(profile, n = 20, seed = 6)
    for (weights in list(NULL, rep(c(0.5, 2), 10))) {
      for (maxit in c(0, 20)) {
        fit <- fit_fixed(data, kernel = package_kernel(data$kernel), inducing = data$x, weights = weights,
                         maxit = maxit)
        exact <- dense_exact(fit, data$x, data$y, weights)
        p <- predict(fit, data$new, se.fit = TRUE)
        # The tolerance exceeds the jitter of 1e-12 times the condition number of K, which is at most 400.
        expect_equal(p$fit, exact$mean(data$new) + fit$center, tolerance = 1e-8, info = profile)
        expect_equal(p$se.fit, sqrt(ref_variance(exact, data$new)), tolerance = 1e-8, info = profile)
        expect_equal(fit$evidence, exact$evidence, tolerance = 1e-8, info = profile)
      }
    }
  }
})

test_that("the ELBO is below the exact evidence, and comes closer with more points", {
  data <- smooth_data()
  elbo <- vapply(c(2, 5, 10, 20, 50), function(m) fit_fixed(data, inducing = "greedy", m = m)$evidence, 0)
  evidence <- dense_exact(fit_fixed(data, maxit = 0), data$x, data$y)$evidence
  expect_true(all(elbo <= evidence + 1e-8 * abs(evidence)))
  expect_true(all(diff(elbo) > 0))
  expect_equal(elbo[5], evidence, tolerance = 1e-7)
  learned <- fit_learned(data)
  expect_lte(learned$evidence, dense_exact(learned, data$x, data$y)$evidence)
})

test_that("repeated rows are merged, and with all distinct rows as points the fit is exact", {
  data <- smooth_data(20)
  rows <- c(1:20, 4:9, 4, 4)
  x <- data$x[rows, ]
  y <- c(data$y, with_seed(3, rnorm(8, 0.5)))
  weights <- rep(c(1, 2.5, 0.4, 1), 7)
  fit <- fit_fixed(list(x = x, y = y, z = data$x), weights = weights, maxit = 5)
  expect_identical(nrow(fit$data$x), 20L)
  expect_identical(nobs(fit), 28L)
  exact <- dense_exact(fit, x, y, weights)
  p <- predict(fit, data$new, se.fit = TRUE)
  expect_equal(p$fit, exact$mean(data$new) + fit$center, tolerance = 1e-8)
  expect_equal(p$se.fit, sqrt(ref_variance(exact, data$new)), tolerance = 1e-8)
  expect_equal(fit$evidence, exact$evidence, tolerance = 1e-8)
})

test_that("merged rows are learned from as unmerged ones", {
  data <- smooth_data(20)
  x <- data$x[c(1:20, 1:20, 1:20), ]
  y <- rep(data$y, 3) + with_seed(3, rnorm(60, sd = 0.5))
  apart <- x + with_seed(4, matrix(runif(120, -1e-7, 1e-7), 60))    # almost equal, but not merged
  merged <- fit_learned(list(x = x, y = y), maxit = 100)
  plain <- fit_learned(list(x = apart, y = y), maxit = 100)
  expect_identical(nrow(merged$data$x), 20L)
  expect_identical(nrow(plain$data$x), 60L)
  # Each pilot stops at a millionth of its gain in log marginal likelihood.
  expect_equal(log(coef(merged)), log(coef(plain)), tolerance = 0.01)
  expect_equal(merged$evidence, plain$evidence, tolerance = 1e-3)
  expect_equal(predict(merged, data$new), predict(plain, data$new), tolerance = 0.02)
})

test_that("weights of 2 give the posterior of doubled rows, whose evidence is lower by (N/2) log(4 pi s2)", {
  data <- smooth_data(30)
  twice <- list(x = data$x[c(1:30, 1:30), ], y = rep(data$y, 2), z = data$z)
  heavy <- fit_fixed(data, weights = rep(2, 30), center = FALSE, scale = FALSE, maxit = 10)
  double <- fit_fixed(twice, center = FALSE, scale = FALSE, maxit = 10)
  expect_equal(double$objective, heavy$objective, tolerance = 1e-9)
  expect_equal(double$inducing, heavy$inducing, tolerance = 1e-7)
  expect_equal(predict(double, data$new, se.fit = TRUE), predict(heavy, data$new, se.fit = TRUE), tolerance = 1e-8)
  expect_equal(double$evidence, heavy$evidence - 15 * log(4 * pi * 0.3), tolerance = 1e-9)
  # A row of weight 0 is dropped.
  dropped <- fit_fixed(data, weights = rep(c(1, 0), c(25, 5)), maxit = 5)
  fewer <- fit_fixed(list(x = data$x[1:25, ], y = data$y[1:25], z = data$z), maxit = 5)
  expect_equal(predict(dropped, data$new), predict(fewer, data$new), tolerance = 1e-12)
  expect_identical(nobs(dropped), 25L)
})

test_that("an offset is subtracted first and added last", {
  data <- smooth_data()
  offset <- seq(-20, 30, length.out = 50)
  with <- fit_fixed(list(x = data$x, y = data$y + offset, z = data$z), offset = offset, maxit = 5)
  without <- fit_fixed(data, maxit = 5)
  expect_equal(predict(with), predict(without) + offset, tolerance = 1e-8)
  expect_equal(predict(with, data$new), predict(without, data$new), tolerance = 1e-8)
  expect_equal(with$evidence, without$evidence, tolerance = 1e-8)
})

test_that("centre and scale are undone; FALSE, FALSE is the GP of the response as given", {
  data <- smooth_data()
  plain <- fit_fixed(data, center = FALSE, scale = FALSE, inducing = data$x, maxit = 0)
  expect_identical(c(plain$center, plain$scale), c(0, 1))
  exact <- ref_exact(data$x, data$y, data$kernel, 0.3)
  expect_equal(predict(plain, data$new), exact$mean(data$new), tolerance = 1e-8)
  expect_equal(plain$evidence, exact$evidence, tolerance = 1e-8)
  # Given hyperparameters are in the units of y, so scaling changes only the units of the objective.
  for (center in c(TRUE, FALSE)) {
    one <- fit_fixed(data, center = center, scale = TRUE, maxit = 8)
    other <- fit_fixed(data, center = center, scale = FALSE, maxit = 8)
    expect_equal(one$inducing, other$inducing, tolerance = 1e-8)
    expect_equal(predict(one, data$new, se.fit = TRUE), predict(other, data$new, se.fit = TRUE), tolerance = 1e-9)
    expect_equal(one$evidence, other$evidence, tolerance = 1e-9)
    expect_equal(one$objective * one$scale^4, other$objective, tolerance = 1e-9)
  }
})
