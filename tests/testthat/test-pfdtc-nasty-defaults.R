# Tests data and arguments that break careless defaults: units, weights, far values, starts, ends.

skip_on_cran()

learn_all <- function(x, y, ..., seed = 1) with_seed(seed, pfdtc(x, y, ..., control = pfdtc_control(progress = FALSE)))

# Returns n rows of f(x) + noise of sd 0.1 in the unit square.
bumpy <- function(n = 120, seed = 1) {
  with_seed(seed, {
    x <- cbind(stats::runif(n), stats::runif(n))
    f <- sin(6 * x[, 1]) + x[, 2]^2
    list(x = x, f = f, y = f + 0.1 * stats::rnorm(n))
  })
}

test_that("weights and noise may be multiplied by a number", {
  data <- bumpy()
  w <- with_seed(2, 10^stats::runif(120, -1, 1))
  for (weights in list(rep(1, 120), w)) {
    fit <- learn_all(data$x, data$y, weights = weights)
    for (times in c(1e-30, 1e12)) {
      other <- learn_all(data$x, data$y, weights = weights * times)
      expect_equal(other$noise / times, fit$noise, tolerance = 1e-6)
      expect_equal(fitted(other), fitted(fit), tolerance = 1e-6)
      expect_equal(other$evidence, fit$evidence, tolerance = 1e-6)
      width <- certify(other, data$x)$mean_error / certify(fit, data$x)$mean_error
      expect_true(all(width > 0.5 & width < 2))
    }
  }
})

test_that("a row of huge weight does not hide the others", {
  data <- bumpy()
  y <- data$f + c(0, 0.1 * with_seed(3, stats::rnorm(119)))
  for (w in c(1e3, 1e9)) {
    fit <- learn_all(data$x, y, weights = c(w, rep(1, 119)))
    expect_lt(sqrt(mean((fitted(fit) - data$f)^2)), 0.1) # the sd of the noise of a row
  }
  # Rows of tiny weight have no effect.
  y[1:2] <- c(1e9, -1e9)
  out <- learn_all(data$x, y, weights = c(1e-24, 1e-24, rep(1, 118)))
  expect_lt(sqrt(mean((fitted(out) - data$f)[-(1:2)]^2)), 0.1)
})

test_that("steps as large as the response's range are not taken for rounding", {
  data <- bumpy()
  # If one response is unlike all others, its variance may count as noise.
  one <- c(1, rep(0, 119))
  fit <- learn_all(data$x, one)
  expect_lt(fit$noise, 2 * stats::var(one))
  # For a step function with values 0 and 1, the noise is at least a twelfth of the variance, and below a tenth.
  step <- as.numeric(data$x[, 1] > 0.5)
  fit <- learn_all(data$x, step)
  expect_lt(fit$noise, 0.1 * stats::var(step))
  expect_gte(fit$noise, (1 - 1e-12) * mean((step - mean(step))^2) / 12)
})

test_that("an input far from all others does not hide the others", {
  data <- bumpy()
  fit <- learn_all(rbind(data$x, 1e6), c(data$y, 1))
  expect_lt(sqrt(mean((fitted(fit)[1:120] - data$f)^2)), 0.1)
  # In columns where nearly all values are equal the interquartile range is 0, so the sd is used.
  sparse <- c(rep(0, 99), 5)
  expect_equal(spreads_of(matrix(sparse)), sqrt(mean((sparse - mean(sparse))^2)))
  expect_equal(spreads_of(matrix(c(1:99, 1e9))), 49.5 / 1.349)
})

test_that("absurd given values do not keep learning from the optimum", {
  data <- bumpy()
  plain <- learn_all(data$x, data$y, kernel = kernel_se())
  absurd <- learn_all(data$x, data$y, kernel = kernel_se(c(1e-30, 1e-30), 1e-10), noise = 1e10)
  expect_lt(abs(absurd$evidence - plain$evidence), 2)
  # Moderate given values are the only start. Fixed values stay, absurd or not.
  near <- learn_all(data$x, data$y, kernel = plain$kernel, noise = plain$noise)
  expect_identical(nrow(near$learned), 1L)
  fixed <- with_seed(1, pfdtc(data$x, data$y, noise = 1e-9, control = pfdtc_control(progress = FALSE, fix = "noise")))
  expect_equal(fixed$noise, 1e-9)
})

test_that("`max_seconds` ends learning with its best", {
  data <- bumpy(2500)
  whole <- learn_all(data$x, data$y)
  control <- pfdtc_control(progress = FALSE, max_seconds = 0)
  ended <- expect_warned(with_seed(1, pfdtc(data$x, data$y, control = control)), "convergence")
  expect_null(ended$kernels)
  expect_lt(ended$evaluations[["learn"]], whole$evaluations[["learn"]] / 3)
  expect_true(all(is.finite(coef(ended)) & coef(ended) > 0))
  expect_lt(summary(ended)$rmse, 0.5 * ended$sd_y)
  expect_output(print(ended), "Matern 3/2")
})

test_that("a mean that is not subtracted is not taken for noise", {
  data <- bumpy()
  for (mean in c(10, 300, 1e4)) {
    fit <- with_seed(1, pfdtc(data$x, data$y + mean, center = FALSE, control = pfdtc_control(progress = FALSE)))
    expect_lt(sqrt(mean((fitted(fit) - mean - data$f)^2)), 0.1)
    expect_lt(abs(log(fit$noise / 0.01)), 4 * sqrt(2 / 120))
  }
})

test_that("a few equal rows that contradict each other count as their mean with neighbours", {
  data <- bumpy()
  x <- rbind(data$x, data$x[1:5, ])
  y <- c(data$y, data$y[1:5] + 1)
  given <- function(...) pfdtc(x, y, kernel = kernel_matern(1 / 2, c(0.3, 0.5), 1), noise = 1e-8, hyper = "fixed", ...)
  exact <- given()
  fit <- given(neighbours = 1, m = 20)
  expect_equal(predict(fit, x[1:5, ]), data$y[1:5] + 0.5, tolerance = 1e-6)
  expect_equal(fitted(fit)[121:125], fitted(fit)[1:5], ignore_attr = TRUE)
  expect_identical(nobs(fit), 125L)
  expect_length(residuals(fit), 125L)
  all <- given(neighbours = 125, m = 20)
  # Noise of 1e-8 of the signal costs eight digits.
  expect_equal(all$evidence, exact$evidence, tolerance = 1e-7)
  expect_equal(predict(all, data$x + 0.01, se.fit = TRUE), predict(exact, data$x + 0.01, se.fit = TRUE),
               tolerance = 1e-6)
})

test_that("if K + noise has no Cholesky factor, the fit uses inducing points", {
  data <- bumpy()
  fit <- pfdtc(data$x, data$y, kernel = kernel_se(c(0.3, 0.5), 1), noise = 1e-20, hyper = "fixed")
  expect_match(fit$posterior, "far")
  expect_lt(summary(fit)$rmse, 0.2)
})

test_that("with `tol` the certified posterior has the requested neighbours", {
  data <- bumpy(30)
  fit <- suppressWarnings(pfdtc(data$x, data$y, m = 10, neighbours = 5, tol = 0.1),
                          classes = "pfdtc_warning_convergence")
  expect_identical(fit$posterior, "far + near")
  exact <- gp_exact(data$x, data$y, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
  p <- predict(fit, data$x, se.fit = TRUE)
  e <- predict(exact, data$x, se.fit = TRUE)
  expect_lte(max(abs(p$fit - e$fit)) / fit$sd_y, fit$tol$mean)
  expect_lte(max(abs(e$se.fit / p$se.fit - 1)), fit$tol$sd)
  expect_s3_class(pfdtc(data$x, data$y, neighbours = 0, tol = 0.1), "pfdtc")
})
