# Tests data that break careless code: everything is learned, and all results are finite.

skip_on_cran()

# Returns all hyperparameters except the level and slopes of a linear mean.
positive <- function(fit) coef(fit)[!names(coef(fit)) %in% rownames(linear_coefficients(fit))]

# Expects a fit with finite results that is no worse than the mean of y at the training rows.
expect_sane <- function(fit, new = NULL, info = NULL) {
  expect_s3_class(fit, "pfdtc")
  expect_true(all(is.finite(coef(fit))) && all(positive(fit) > 0), info = info)
  expect_true(is.finite(fit$evidence), info = info)
  if (isTRUE(fit$moved)) expect_true(is.finite(fit$objective), info = info)
  expect_true(all(is.finite(fit$inducing)), info = info)
  for (rows in list(NULL, new)) {
    p <- expect_warned(predict(fit, rows, interval = "prediction", se.fit = TRUE), "weights",
                       !is.null(rows) && is_weighted(fit))
    expect_true(all(is.finite(unlist(p))) && all(p$se.fit >= 0), info = info)
  }
  expect_lte(summary(fit)$rmse, 1.01 * fit$sd_y)
  expect_output(print(summary(fit)), "Log marginal likelihood +-?[0-9]")
}

# Learns everything with few inducing points and iterations, in about 0.1 s.
fit_all <- function(data, ..., m = 12, seed = 1, maxit = 30) {
  with_seed(seed, pfdtc(data$x, data$y, m = m, control = pfdtc_control(maxit = maxit, progress = FALSE), ...))
}

test_that("fits with M = 1, M = N, N = 2 and N = 3 have finite predictions", {
  data <- wavy(30)
  for (hyper in c("evidence", "pilot")) {
    for (m in c(1, 30)) expect_sane(fit_all(data, m = m, hyper = hyper), data$new)
    expect_sane(pfdtc(c(1, 2), c(1, 2), hyper = hyper), 1:3)
    three <- expect_warned(pfdtc(1:3, c(1, 3, 2), hyper = hyper), "convergence", hyper == "evidence")
    expect_sane(three, c(-1, 1.5, 100))
  }
  expect_true(fit_all(data)$moved)
})

test_that("fits to repeated rows, and to one repeated row, have finite predictions", {
  data <- wavy(20)
  rows <- rep(1:20, 3)
  expect_sane(fit_all(list(x = data$x[rows, ], y = data$y[rows] + rep(c(-0.1, 0, 0.1), each = 20))), data$new)
  # With one input row and many responses, only their mean and variance can be learned.
  y <- with_seed(2, rnorm(30, 5, 2))
  for (hyper in c("pilot", "evidence")) {
    one <- pfdtc(rep(3, 30), y, hyper = hyper)
    expect_sane(one, c(3, 4))
    expect_identical(one$m, 1L)
    expect_equal(predict(one, 3), mean(y), tolerance = 1e-6)
    # sigma() differs from the sd, because f takes a degree of freedom and the noise has a prior: by less than 5 %,
    # while its standard error is 13 %.
    expect_equal(sigma(one), sqrt(mean((y - mean(y))^2)), tolerance = if (hyper == "pilot") 1e-3 else 0.05)
  }
  expect_sane(pfdtc(c(1, 1), c(1, 2)), 1:2)
})

test_that("constant columns change nothing", {
  data <- wavy()
  more <- list(x = cbind(data$x, 7), y = data$y)
  expect_sane(fit_all(more), cbind(data$new, c(7, 8)))
  given <- function(data) {
    d <- ncol(data$x)
    fit_all(data, kernel = kernel_se(c(0.4, 2, 1)[seq_len(d)], 3), noise = 0.01, hyper = "fixed")
  }
  expect_equal(fitted(given(more)), fitted(given(data)), tolerance = 1e-9)
  expect_equal(given(more)$evidence, given(data)$evidence, tolerance = 1e-9)
  expect_true(all(given(more)$inducing[, 3] == 7))
  # With constant columns only, the prediction is the mean.
  flat <- fit_all(list(x = cbind(rep(1, 60), 2), y = data$y))
  expect_equal(unname(fitted(flat)), rep(mean(data$y), 60), tolerance = 1e-6)
  expect_sane(flat, cbind(1, 2:3))
})

test_that("inputs around 1e8 keep their digits through pilot, selection, search and prediction", {
  data <- wavy()
  near <- fit_all(data)
  for (at in c(1e8, -1e8)) {
    # After adding 1e8, x is known to 1e-8.
    far <- list(x = data$x + at, y = data$y)
    fit <- fit_all(far)
    expect_sane(fit, data$new + at)
    back <- fit_all(list(x = far$x - at, y = data$y))
    expect_equal(log(positive(fit)), log(positive(back)), tolerance = 1e-5)
    expect_equal(coef(fit)[c("x1", "x2")], coef(back)[c("x1", "x2")], tolerance = 1e-5) # slopes of the linear mean
    expect_equal(fitted(fit), fitted(back), tolerance = 1e-4)
    expect_equal(predict(fit, data$new + at), predict(near, data$new), tolerance = 1e-3)
  }
})

# Returns coef() of a fit with a linear mean, for two inputs and a response in these units.
coef_in <- function(fit, x = c(1, 1), y = 1) coef(fit) * c(y, y / x, x, y^2, y^2)

test_that("units of y and of the inputs change results only by these units", {
  data <- wavy()
  plain <- fit_all(data)
  for (unit in 2^c(27, -27)) {                   # powers of two change no digit of the scaled response
    fit <- fit_all(list(x = data$x, y = unit * data$y))
    expect_identical(coef(fit), coef_in(plain, y = unit))
    expect_identical(fitted(fit), unit * fitted(plain))
    expect_equal(fit$evidence, plain$evidence - 60 * log(unit), tolerance = 1e-12)
  }
  # Other units have rounding errors, which the search propagates.
  for (unit in c(1e8, 1e-8)) {
    for (units in list(c(unit, unit), c(unit, 1))) {
      fit <- fit_all(list(x = data$x %*% diag(units), y = data$y))
      expect_equal(coef(fit) / coef_in(plain, units), coef(plain)^0, tolerance = 1e-5)
      expect_equal(fitted(fit), fitted(plain), tolerance = 1e-6)
    }
    fit <- fit_all(list(x = data$x, y = unit * data$y))
    expect_equal(coef(fit) / coef_in(plain, y = unit), coef(plain)^0, tolerance = 1e-5)
    expect_equal(fitted(fit) / unit, fitted(plain), tolerance = 1e-6)
    loose <- fit_all(list(x = data$x, y = unit * data$y), scale = FALSE)
    expect_equal(coef(loose) / coef_in(plain, y = unit), coef(plain)^0, tolerance = 1e-3)
  }
  expect_equal(fitted(fit_all(list(x = data$x, y = data$y + 1e8))), fitted(plain) + 1e8, tolerance = 1e-12)
})

test_that("for data without noise the noise falls to its lower bound, and the other hyperparameters are learned", {
  for (seed in some_of(1:3, 1)) {
    data <- wavy(40, seed, noise = 0)
    expect_lt(fit_all(data, m = 30, hyper = "pilot", maxit = 50)$noise, 1e-6 * var(data$y))
    fit <- fit_all(data, m = 30, maxit = 50)
    expect_sane(fit, data$new)
    expect_lt(fit$noise, 1.1e-6 * var(data$y)) # its floor is a millionth of the mean square
    # The function is so smooth that 40 points of the unit square determine it.
    expect_equal(predict(fit, data$new), sin(6 * data$new[, 1]) + data$new[, 2], tolerance = 0.01)
    # The order of the pilot's points does not change the optimum.
    pilot <- function(seed) fit_all(data, m = 30, hyper = "pilot", maxit = 50, seed = seed)
    expect_equal(log(coef(pilot(1))), log(coef(pilot(7))), tolerance = 0.01)
    # The order of rows in the Vecchia likelihood changes the log marginal likelihood by no more than the priors may.
    evidence <- function(seed) {
      control <- pfdtc_control(progress = FALSE, priors = FALSE)
      as.numeric(logLik(with_seed(seed, pfdtc(data$x, data$y, control = control))))
    }
    expect_lt(abs(evidence(7) - evidence(1)), 0.2)
  }
})

test_that("an input without effect gets a lengthscale beyond its range, and the other keeps its own", {
  data <- wavy()
  one <- function(data) fit_all(data, kernel = kernel_se()) # no linear mean, which would have a slope for it
  plain <- one(data)
  more <- one(list(x = cbind(data$x, with_seed(9, runif(60))), y = data$y))
  expect_sane(more, cbind(data$new, 0.5))
  expect_gt(coef(more)[["lengthscale.x3"]], 3)
  expect_equal(log(coef(more)[["lengthscale.x1"]]), log(coef(plain)[["lengthscale.x1"]]), tolerance = 0.5)
  # Nothing has an effect, so that all of y is noise.
  y <- with_seed(3, rnorm(60))
  noise <- fit_all(list(x = data$x, y = y))
  expect_sane(noise, data$new)
  expect_equal(noise$noise, var(y), tolerance = 0.2)
})

test_that("fits to straight lines, steps, outliers, two values and extreme weights have finite predictions", {
  data <- wavy()
  x <- data$x
  cases <- list(
    line = list(x = x, y = 3 * x[, 1] - x[, 2]), step = list(x = x, y = as.numeric(x[, 1] > 0.5)),
    "outlier in y" = list(x = x, y = replace(data$y, 1, 1e6)),
    "outlier in x" = list(x = replace(x, 1, 1e6), y = data$y),
    "two-valued input" = list(x = cbind(x, rep(0:1, 30)), y = data$y),
    "nearly constant y" = list(x = x, y = 1 + 1e-12 * data$y),
    "nearly equal rows" = list(x = x[rep(1:20, 3), ] + with_seed(1, rnorm(120, sd = 1e-12)), y = data$y),
    "large numbers" = list(x = 1e150 * x, y = 1e150 * data$y),
    "small numbers" = list(x = 1e-150 * x, y = 1e-150 * data$y))
  for (name in names(quick(cases))) {
    expect_sane(fit_all(cases[[name]], maxit = 5), cases[[name]]$x[1:2, ], info = name)
  }
  expect_sane(fit_all(data, weights = 10^seq(-5, 5, length.out = 60), maxit = 5), data$new)
})

test_that("a response whose square leaves the range of numbers is refused, not turned into NaN", {
  data <- wavy(30)
  for (unit in c(1e200, 1e-200)) {
    for (scale in c(TRUE, FALSE)) {
      expect_input_error(fit_all(list(x = data$x, y = unit * data$y), maxit = 2, scale = scale), "y")
    }
  }
})

test_that("given hyperparameters far from the data's give a fit, never NaN", {
  data <- wavy(30)
  kernels <- list(kernel_se(1e6, 1), kernel_se(1e-6, 1), kernel_matern(1 / 2, 1e6, 1e-6), kernel_se(c(1e-6, 1e6), 1e6))
  for (kernel in kernels) {
    for (noise in c(1e-12, 1, 1e6)) {
      fit <- fit_all(data, kernel = kernel, noise = noise, hyper = "fixed", maxit = 5)
      p <- predict(fit, rbind(data$new, 1e6), se.fit = TRUE)
      expect_true(all(is.finite(unlist(p))) && is.finite(fit$evidence) && is.finite(fit$objective))
    }
  }
})
