# Fits of the same data are told from fits of others, with their rows and without.

same_model <- pfdtc:::same_model

fit_on <- function(x, y, ..., method = gp_dtc, block = NULL) {
  method(x, y, m = 15, kernel = kernel_se(0.3, 1), noise = 0.01, hyper = "fixed", ...,
         control = pfdtc_control(maxit = 2, progress = FALSE, block = block))
}

signature_rows <- function(n = 120) {
  with_seed(11, {
    x <- cbind(a = stats::runif(n), b = stats::runif(n))
    y <- sin(6 * x[, 1]) + cos(5 * x[, 2]) + 0.1 * stats::rnorm(n)
  })
  y[2] <- y[1]
  list(x = x, y = y)
}

# n, sum w, sum x, sum y, sum xy and sum y^2 are the same; the data are not
swapped_inputs <- function(d) {
  d$x[1:2, 2] <- d$x[2:1, 2]
  d
}
flipped_residuals <- function(d) {
  r <- stats::lm.fit(cbind(1, d$x), d$y)
  d$y <- r$fitted.values - r$residuals
  d
}

test_that("a reference of other data with the same linear and quadratic sums is refused", {
  d <- signature_rows()
  fit <- fit_on(d$x, d$y, method = pfdtc)
  exact_of <- function(o) gp_exact(o$x, o$y, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
  for (other in list(swapped_inputs(d), flipped_residuals(d))) {
    sums <- function(d) c(colSums(d$x), sum(d$y), crossprod(d$x, d$y), sum(d$y^2))
    expect_equal(sums(other), sums(d), tolerance = 1e-12) # else this tests nothing
    for (keep in c(TRUE, FALSE)) {
      given <- fit_on(other$x, other$y, keep_data = keep)
      if (keep) given <- reference(given)
      expect_input_error(certify(fit, d$x[1:3, ], reference = given), "reference")
      expect_input_error(refine(fit, d$x[1:3, ], 1e-6, reference = given), "reference")
      fit$reference <- given
      expect_input_error(evidence_bounds(fit), "reference")
      expect_input_error(predict(fit, d$x[1:3, ], interval = "credible", certified = TRUE), "reference")
      fit$reference <- NULL
    }
    expect_input_error(kl_divergence(fit, exact_of(other)), "exact")
  }
  expect_gte(kl_divergence(fit, exact_of(d)), 0)
})

test_that("the order of rows, merging, weights for repeats, scale and blocks make no difference", {
  d <- signature_rows()
  weights <- with_seed(1, sample(1:3, 120, replace = TRUE))
  repeats <- rep(1:120, weights)
  for (keep in c(TRUE, FALSE)) {
    fit <- fit_on(d$x[repeats, ], d$y[repeats], keep_data = keep)
    expect_equal(length(fit$data$group) > 0, keep)
    o <- with_seed(2, sample(repeats))
    apart <- fit_on(d$x[o, ], d$y[o], method = gp_fitc)
    expect_null(apart$data$group)
    expect_true(same_model(fit, apart))
    expect_true(same_model(fit, fit_on(d$x[o, ], d$y[o], scale = FALSE)))
    expect_true(same_model(fit, fit_on(d$x[o, ], d$y[o], block = 7)))
    expect_true(same_model(fit, fit_on(unname(d$x[o, ]), d$y[o]))) # names of inputs are no data
    other <- d$y
    other[5] <- other[5] * (1 + 1e-9)
    expect_false(same_model(fit, fit_on(d$x[repeats, ], other[repeats])))
  }
})

test_that("rounding in the inputs or the response is no other data", {
  d <- signature_rows()
  fit <- fit_on(d$x, d$y)
  eps <- .Machine$double.eps
  x <- d$x * (1 + with_seed(1, sample(c(-eps, 0, eps), 240, replace = TRUE)))
  expect_false(identical(x, d$x))
  expect_true(same_model(fit, fit_on(x, d$y * (1 + eps))))
})

test_that("rows at hand are compared one by one: what sums over 10^4 rows lose in rounding is found", {
  d <- with_seed(3, list(x = matrix(stats::runif(2e4), 1e4), y = 1e6 + stats::rnorm(1e4)))
  two <- d
  two$y[1:2] <- d$y[1:2] + c(-1, 1) * 4e-7
  fits <- lapply(list(d, two), function(d) pfdtc:::data_from_matrix(d$x, d$y))
  fits <- lapply(fits, function(data) list(data = data, signature = pfdtc:::data_signature(data)))
  expect_true(pfdtc:::same_sums(fits[[1]]$signature, fits[[2]]$signature))
  expect_false(pfdtc:::same_data(fits[[1]], fits[[2]]))
  expect_true(pfdtc:::same_data(fits[[1]], list(signature = fits[[2]]$signature)))
})

test_that("functions of a row are fixed, look random, and leave R's random numbers alone", {
  x <- with_seed(4, matrix(stats::rnorm(4e4), 2e4))
  before <- get0(".Random.seed", globalenv(), inherits = FALSE)
  phi <- pfdtc:::native_row_features(x, 3L)
  expect_identical(get0(".Random.seed", globalenv(), inherits = FALSE), before)
  expect_identical(pfdtc:::native_row_features(x[7:3, ], 3L), phi[7:3, ])
  expect_true(all(phi >= -1 & phi < 1))
  # means and products of 20,000 numbers of variance 1/3: within five standard errors
  expect_lt(max(abs(colMeans(phi))), 5 * sqrt(1 / 3 / 2e4))
  expect_lt(max(abs(crossprod(phi) / 2e4 - diag(3) / 3)), 5 / 3 / sqrt(2e4))
  edge <- cbind(c(0, -0, 1, 1 + 2^-52, 1 - 2^-53, -1, 2^-1074, 1e308))
  f <- pfdtc:::native_row_features(edge, 1L)
  expect_identical(f[1], f[2])
  expect_identical(f[c(4, 5)], f[c(3, 3)])
  expect_equal(length(unique(f)), 5L)
  swapped <- pfdtc:::native_row_features(rbind(c(1, 2), c(2, 1)), 1L)
  expect_false(swapped[1] == swapped[2])
})
