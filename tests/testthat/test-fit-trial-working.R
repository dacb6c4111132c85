# Tests the choice by held-out rows between points alone and neighbours, for non-Gaussian families.

classes_of <- function(lengthscale, seed = 1, n = 2100) {
  with_seed(seed, {
    x <- matrix(stats::runif(2 * n), n)
    data.frame(x1 = x[, 1], x2 = x[, 2], y = stats::runif(n) <
                 stats::plogis(4 * sin(x[, 1] / lengthscale) * cos(x[, 2] / lengthscale)))
  })
}

# The exact likelihood of 500 rows instead of 2,000 learns the kernel in half of the time.
fit_classes <- function(data, ..., seed = 2) {
  with_replaced(list(exact_learning_rows = 500L), {
    with_seed(seed, pfdtc(y ~ ., data, family = binomial(), ..., control = list(progress = FALSE)))
  })
}

test_that("neighbours are used if they predict held-out rows better, with a message, reproducibly by set.seed()", {
  only_nightly()
  data <- classes_of(0.03)
  kernel <- kernel_matern(1 / 2, 0.1, 8)
  fit <- fit_classes(data, kernel = kernel, hyper = "fixed")
  expect_identical(fit$neighbours, 40L)
  expect_identical(fit$trial[["rows"]], 420)
  expect_lt(fit$trial[["gain"]], -fit$trial[["se"]])
  expect_equal(fit$kernel$lengthscale, c(x1 = 0.1, x2 = 0.1)) # given values are kept
  expect_equal(fit$kernel$variance, 8)
  expect_output(print(fit), "40.*420")
  expect_identical(predict(fit_classes(data, kernel = kernel, hyper = "fixed")), predict(fit))
  # A given choice is taken without a comparison.
  for (fit in list(fit_classes(data, kernel = kernel, hyper = "fixed", neighbours = 0),
                   fit_classes(data, kernel = kernel, hyper = "fixed", m = 50))) {
    expect_null(fit$trial)
    expect_identical(fit$neighbours, 0L)
  }
})

test_that("short lengthscales are learned with neighbours if points alone cannot represent f", {
  data <- classes_of(0.03)
  fit <- fit_classes(data, kernel = kernel_matern(5 / 2))
  expect_identical(fit$neighbours, 40L)
  expect_lt(max(fit$kernel$lengthscale), 0.2) # the true wave has length 0.19
  expect_lt(mean(-predict(fit, classes_of(0.03, seed = 3), type = "density")), 0.6) # guessing would give log 2 = 0.69
})

test_that("points alone are kept if they predict as well, and if Newton's method with neighbours does not converge", {
  smooth <- classes_of(1)
  kernel <- kernel_se(1.5, 4)
  fit <- fit_classes(smooth, kernel = kernel, hyper = "fixed")
  expect_identical(fit$neighbours, 0L)
  expect_gt(fit$trial[["gain"]], -1e-3)
  expect_output(print(fit), "without neighbours")
  rough <- classes_of(0.03)
  restless <- function(...) warn_convergence("f did not come to rest")
  expect_no_warning(fit <- with_replaced(list(near_laplace = restless), {
    fit_classes(rough, kernel = kernel_matern(1 / 2, 0.1, 8), hyper = "fixed")
  }))
  expect_null(fit$near)
  expect_equal(predict(fit), predict(fit_classes(rough, kernel = kernel_matern(1 / 2, 0.1, 8), hyper = "fixed",
                                                 neighbours = 0)))
})

test_that("variances are raised until the posterior cannot be computed, or not at all if the first cannot", {
  skip_on_cran()
  rough <- classes_of(0.03)
  tried <- numeric()
  most <- 0
  own <- near_posterior
  failing <- function(data, z, model, ...) {
    tried <<- unique(c(tried, as_kernel(model$kernel)$variance))
    if (match(as_kernel(model$kernel)$variance, tried) > most) stop_on_status(list(status = 1L), "The near field")
    own(data, z, model, ...)
  }
  fit <- with_replaced(list(near_posterior = failing), fit_classes(rough, kernel = kernel_matern(1 / 2)))
  expect_identical(fit$neighbours, 0L)
  expect_length(tried, 1)
  tried <- numeric()
  most <- 1
  fit <- with_replaced(list(near_posterior = failing), fit_classes(rough, kernel = kernel_matern(1 / 2)))
  expect_identical(fit$neighbours, 40L)
  expect_length(tried, 2)
  expect_identical(fit$kernel$variance, tried[1])
})

test_that("the best of the variances tried is kept, not the last", {
  skip_on_cran()
  rough <- classes_of(0.03)
  tried <- numeric()
  own <- near_posterior
  noting <- function(data, z, model, ...) {
    tried <<- unique(c(tried, as_kernel(model$kernel)$variance))
    own(data, z, model, ...)
  }
  # With the standard error 1e3, no comparison ends the raising of variances before its limit.
  trial <- function(raised) {
    replaced <- list(near_posterior = noting, se_of_mean = function(x) 1e3,
                     near_trial = replace(near_trial, c("raised", "by"), list(raised, 100)))
    with_replaced(replaced, fit_classes(rough, kernel = kernel_matern(1 / 2)))
  }
  first <- trial(1L)
  expect_length(tried, 1)
  several <- trial(3L)
  expect_length(tried, 3)
  expect_identical(several$kernel$variance, first$kernel$variance)
  expect_identical(several$trial[["gain"]], first$trial[["gain"]])
})

test_that("predictions of held-out rows do not depend on their responses", {
  data <- classes_of(0.03)
  own <- list(take_rows_of = take_rows_of, working_rows = working_rows)
  held <- responses <- NULL
  trial <- function(data) {
    responses <<- NULL
    replaced <- list(
      near_trial = replace(near_trial, "raised", 1L),
      learn_laplace = function(data, s, start, state) start, # learning would use all rows
      take_rows_of = function(v, rows) {
        if (length(rows) == 420L) held <<- rows
        own$take_rows_of(v, rows)
      },
      working_rows = function(x, sites, f) {
        rows <- own$working_rows(x, sites, f)
        responses <<- c(responses, list(cbind(f, rows$y)))
        rows
      },
      near_laplace = function(...) warn_convergence("the trial is over"))
    with_replaced(replaced, fit_classes(data, kernel = kernel_matern(5 / 2), center = 0))
  }
  fit <- trial(data)
  first <- responses
  data$y[held] <- !data$y[held]
  expect_gt(max(abs(predict(trial(data)) - predict(fit))), 0.1)
  expect_gt(length(first), 2) # several steps follow learning
  expect_equal(responses, first, tolerance = 1e-5) # f at the end of the two searches differs by their tolerance
})

test_that("theta is learned again with neighbours", {
  skip_on_cran()
  data <- with_seed(3, {
    x <- matrix(stats::runif(4200), 2100)
    data.frame(x1 = x[, 1], x2 = x[, 2],
               y = stats::rnbinom(2100, mu = exp(2 + 1.5 * sin(x[, 1] / 0.03) * cos(x[, 2] / 0.03)), size = 4))
  })
  fit <- with_seed(2, pfdtc(y ~ ., data, family = nb(), kernel = kernel_se(), control = list(progress = FALSE)))
  points <- with_seed(2, pfdtc(y ~ ., data, family = nb(), kernel = kernel_se(), neighbours = 0,
                               control = list(progress = FALSE)))
  expect_identical(fit$neighbours, 40L)
  # Without neighbours, waves that points cannot represent count as noise.
  expect_lt(points$theta, 2)
  expect_lt(abs(log(fit$theta / 4)), log(1.5))
})

test_that("scale_kernel() multiplies the variance of every term", {
  kernel <- place_kernel(kernel_se(2, 3, inputs = 1) + kernel_matern(1 / 2, 1, 5, inputs = 2), matrix(0, 2, 2))
  wider <- scale_kernel(kernel, 3)
  expect_equal(kernel_values(wider) / kernel_values(kernel), c(1, 3, 1, 3))
})

test_that("the gain from residuals is that of the best correction by neighbours, which decides on the comparison", {
  skip_on_cran()
  data <- classes_of(0.05, n = 300)
  x <- as.matrix(data[1:2])
  likelihood <- as_likelihood(binomial())
  sites <- list(y = as.numeric(data$y), offset = numeric(300))
  held <- 1:60
  around <- 300:61
  trial <- held_out_trial(list(x = x, sites = sites), likelihood, 0.1, held, around, NULL)
  f <- 0.5 * sin(5 * x[, 1])
  found <- gain_from_residuals(trial, held, around, f, place_kernel(kernel_se(c(0.1, 0.2), 1), x), NULL)
  p <- stats::plogis(f + 0.1)
  g <- data$y - p
  W <- p * (1 - p)
  scaled <- t(x) / c(0.1, 0.2)
  gains <- vapply(c(5, 40), function(count) {
    h <- vapply(held, function(i) {
      near <- around[order(colSums((scaled[, around] - scaled[, i])^2))[seq_len(count)]]
      sum(g[near]) / (sum(W[near]) + mean(W[around]))
    }, 0)
    gain <- function(c) c * g[held] * h - c^2 * W[held] * h^2 / 2
    gain(stats::optimize(function(c) sum(gain(c)), c(0, 20), maximum = TRUE, tol = 1e-9)$maximum)
  }, numeric(60))
  expect_equal(found, gains[, which.max(colMeans(gains))], tolerance = 1e-6) # optimize() is less accurate
  expect_gt(mean(found), 0.01)
  never <- function(...) stop("compared")
  compared <- function(least) {
    with_replaced(list(raise_variances = never, near_trial = replace(near_trial, "residuals", least)), {
      fit_classes(classes_of(0.03), kernel = kernel_matern(1 / 2, 0.1, 8), hyper = "fixed")
    })
  }
  expect_lt(compared(1)$trial[["gain"]], 0)
  expect_error(compared(near_trial$residuals), "compared")
})

test_that("the mode of many rows starts from the mode of some of them, and is the same", {
  data <- classes_of(0.3, n = 160)
  x <- as.matrix(data[1:2])
  kernel <- place_kernel(kernel_se(0.4, 2), x)
  sites <- engine_sites(as_likelihood(binomial()), list(y = as.numeric(data$y), offset = numeric(160)), 0.1)
  mode <- function(least) {
    with_replaced(list(mode_rows = c(least = least, by = 1, steps = 50)), {
      laplace_at(x, sites, kernel, x[1:20, ], 1e-8, NULL)
    })
  }
  late <- mode(160)
  expect_equal(late$f, mode(161)$f, tolerance = 1e-8) # Newton's steps end at a decrement of 1e-9
  expect_lt(late$steps, mode(161)$steps)
})
