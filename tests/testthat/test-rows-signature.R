# Tests whether two fits have the same data, with and without their rows, and how copies of rows are found.

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

# Returns other data with the same n, sum w, sum x, sum y, sum xy and sum y^2.
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
    expect_equal(sums(other), sums(d), tolerance = 1e-12) # the precondition of this test
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
    expect_true(same_model(fit, fit_on(unname(d$x[o, ]), d$y[o]))) # names of inputs have no effect
    other <- d$y
    other[5] <- other[5] * (1 + 1e-9)
    expect_false(same_model(fit, fit_on(d$x[repeats, ], other[repeats])))
  }
})

test_that("rounding in the inputs or the response does not make other data", {
  d <- signature_rows()
  fit <- fit_on(d$x, d$y)
  eps <- .Machine$double.eps
  x <- d$x * (1 + with_seed(1, sample(c(-eps, 0, eps), 240, replace = TRUE)))
  expect_false(identical(x, d$x))
  expect_true(same_model(fit, fit_on(x, d$y * (1 + eps))))
})

test_that("stored rows are compared one by one, which finds differences that sums over 10^4 rows lose in rounding", {
  d <- with_seed(3, list(x = matrix(stats::runif(2e4), 1e4), y = 1e6 + stats::rnorm(1e4)))
  two <- d
  two$y[1:2] <- d$y[1:2] + c(-1, 1) * 4e-7
  fits <- lapply(list(d, two), function(d) pfdtc:::data_from_matrix(d$x, d$y))
  fits <- lapply(fits, function(data) list(data = data, signature = pfdtc:::data_signature(data)))
  expect_true(pfdtc:::same_sums(fits[[1]]$signature, fits[[2]]$signature))
  expect_false(pfdtc:::same_data(fits[[1]], fits[[2]]))
  expect_true(pfdtc:::same_data(fits[[1]], list(signature = fits[[2]]$signature)))
})

test_that("features of a row are fixed, look random, and do not change R's random numbers", {
  x <- with_seed(4, matrix(stats::rnorm(4e4), 2e4))
  before <- get0(".Random.seed", globalenv(), inherits = FALSE)
  phi <- native(ffi_row_features, x, 3L)
  expect_identical(get0(".Random.seed", globalenv(), inherits = FALSE), before)
  expect_identical(native(ffi_row_features, x[7:3, ], 3L), phi[7:3, ])
  expect_true(all(phi >= -1 & phi < 1))
  # Means and products of 20,000 numbers of variance 1/3 are within five standard errors.
  expect_lt(max(abs(colMeans(phi))), 5 * sqrt(1 / 3 / 2e4))
  expect_lt(max(abs(crossprod(phi) / 2e4 - diag(3) / 3)), 5 / 3 / sqrt(2e4))
  edge <- cbind(c(0, -0, 1, 1 + 2^-52, 1 - 2^-53, -1, 2^-1074, 1e308))
  f <- native(ffi_row_features, edge, 1L)
  expect_identical(f[1], f[2])
  expect_identical(f[c(4, 5)], f[c(3, 3)])
  expect_equal(length(unique(f)), 5L)
  swapped <- native(ffi_row_features, rbind(c(1, 2), c(2, 1)), 1L)
  expect_false(swapped[1] == swapped[2])
})

# ---- copies of rows: bootstrap samples and merged tables. Rows that repeat inputs with other responses are no copies

test_that("copies are recognised; true repeats, whole numbers and grades are no copies", {
  found <- function(x, y) {
    x <- as.matrix(x)
    copies_of(y, equal_rows(x))
  }
  boot <- with_seed(1, sample(150, 150, replace = TRUE))
  x <- with_seed(2, matrix(stats::rnorm(300), 150))
  y <- with_seed(3, stats::rnorm(150))
  expect_identical(found(x[boot, ], y[boot]), match(boot, unique(boot)))
  few <- c(1:150, 1:2)
  expect_identical(found(x[few, ], y[few]), few) # two copies among 150 rows are enough
  expect_null(found(x, y))
  expect_null(found(cars$speed, cars$dist))
  expect_null(found(as.integer(InsectSprays$spray), InsectSprays$count))
  cells <- with_seed(4, sample(4, 1000, TRUE))
  expect_null(found(cells, with_seed(5, sample(5, 1000, TRUE))))
  expect_null(found(cells, cells)) # the response has few values, given by the cell
  mostly <- with_seed(7, ifelse(stats::runif(1000) < 0.8, 0, sample(9, 1000, TRUE)))
  expect_null(found(cells, mostly)) # two rows agree by chance
  rounded <- with_seed(6, round(10 * rep(1:20, 10) / 20 + stats::rnorm(200)))
  expect_null(found(rep(1:20, 10), rounded))
})

test_that("copies of rows do not change learned parameters, have a message, and count as weights in predictions", {
  set.seed(1)
  boston <- MASS::Boston
  i <- sample(506, 150)
  s <- boston[sample(i, replace = TRUE), ]
  held <- boston[-i, ]
  expect_message(fit <- pfdtc(medv ~ ., s, control = list(progress = FALSE)), "copies", class = "pfdtc_message_copies")
  expect_no_message(once <- pfdtc(medv ~ ., unique(s), control = list(progress = FALSE)))
  # The noise share is the same as without copies. It was 1.2e-5 with each copy as new information.
  expect_gt(fit$noise / stats::var(s$medv), 0.01)
  expect_equal(fit$noise, once$noise, tolerance = 0.5) # the sds that scale the response differ a little
  coverage <- function(fit) {
    p <- predict(fit, held, interval = "prediction")
    mean(held$medv >= p[, "lwr"] & held$medv <= p[, "upr"])
  }
  # The tolerance is three standard errors of the difference of two coverages of .85 among 356 rows.
  expect_gt(coverage(fit), coverage(once) - 3 * sqrt(2 * 0.85 * 0.15 / 356))
  # With each copy as new information the median log density would be .25 lower. The median is compared because the
  # mean log density depends on one held-out outlier.
  density <- function(fit) stats::median(predict(fit, held, type = "density"))
  expect_equal(density(fit), density(once), tolerance = 0.05)
  expect_identical(fit$nobs, 150L)
  # A row's copy would predict it, so copies share a fold, and leave-one-out has a message.
  fold <- attr(suppressMessages(cross_validate(fit, folds = 5, hyper = "held")), "predictions")$fold
  copy <- copies_in(fit$data)
  expect_true(all(tapply(fold, copy, function(v) length(unique(v))) == 1L))
  expect_identical(max(copy), nrow(unique(s)))
  expect_message(residuals(fit, type = "loo"), class = "pfdtc_message_copies")
})

test_that("each (x, y) counts once in learning, with the mean weight of its copies", {
  x <- with_seed(1, matrix(stats::rnorm(20)))
  y <- with_seed(2, stats::rnorm(20))
  i <- c(1:20, 1:8, 1:3)
  w <- seq(0.5, 2, length.out = 31)
  data <- without_copies(data_from_matrix(x[i, , drop = FALSE], y[i], weights = w))
  expect_identical(c(data$copies, data$n), c(11L, 20L))
  expect_equal(data$y, (y - data$center) / data$scale)
  expect_equal(unname(data$x), x)
  expect_equal(data$weights, as.vector(tapply(w, i, mean)))
  # Rows that repeat a copy's inputs with another response are kept.
  twin <- without_copies(data_from_matrix(x[c(i, 20), , drop = FALSE], c(y[i], 9)))
  expect_identical(twin$n, 21L)
})

test_that("repeats are no copies for families and given working responses", {
  d <- data.frame(x = rep(1:20, 3), y = rep(with_seed(1, stats::rpois(20, 1:20)), 3))
  expect_no_message(pfdtc(y ~ x, d, family = poisson(), control = list(progress = FALSE)))
})

test_that("a table with all rows twice has copies, also if it has repeats", {
  twice <- cars[rep(1:50, 2), ]
  group <- equal_rows(as.matrix(twice["speed"]))
  expect_identical(max(copies_of(twice$dist, group)), nrow(unique(cars)))
  expect_null(copies_of(cars$dist, equal_rows(as.matrix(cars["speed"]))))
  expect_null(copies_of(c(0, 0, 1, 1), c(1L, 1L, 2L, 2L))) # two pairs agree by chance
  expect_null(copies_of(twice$dist[-1], group[-1]))        # one row occurs once
})
