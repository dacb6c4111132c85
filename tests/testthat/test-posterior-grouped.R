# Draws a smooth function with 40 levels of 12 to 18 rows, and rows to predict at, of which three have new levels.
grouped_rows <- function(n = 600, levels = 40, seed = 1) {
  with_seed(seed, {
    d <- data.frame(x1 = stats::runif(n + 50), x2 = stats::runif(n + 50),
                    g = factor(sample(rep_len(seq_len(levels), n + 50)), levels = seq_len(levels + 2)))
    effect <- stats::rnorm(levels + 2)
    d$f <- sin(6 * d$x1) * cos(5 * d$x2) + effect[d$g]
    d$y <- d$f + stats::rnorm(n + 50, sd = 0.3)
    test <- d[n + 1:50, ]
    test$g[1:3] <- levels + c(1, 1, 2)
    list(train = droplevels(d[seq_len(n), ]), test = test)
  })
}

grouped_fit <- function(rows, ..., m = 80) {
  suppressMessages(pfdtc(y ~ x1 + x2 + (1 | g), rows$train, m = m, ...))
}

rows <- grouped_rows()
fit <- grouped_fit(rows)

test_that("with enough points the posterior is the exact one of the same hyperparameters", {
  exact <- suppressMessages(gp_exact(y ~ x1 + x2 + (1 | g), rows$train, like = fit))
  a <- suppressMessages(predict(fit, rows$test, se.fit = TRUE, full_cov = TRUE))
  b <- suppressMessages(predict(exact, rows$test, se.fit = TRUE, full_cov = TRUE))
  expect_s3_class(posterior_of(fit), "grouped")
  expect_lt(fit$unexplained, 1e-5) # bounds differences of means and variances, relative to the noise
  expect_close(a$fit, b$fit, 1e-4)
  expect_close(a$cov, b$cov, 1e-4)
  expect_equal(fit$evidence, exact$evidence, tolerance = 1e-4)
  expect_lte(fit$evidence, exact$evidence)
  terms <- suppressMessages(predict(fit, rows$test, type = "terms", se.fit = TRUE))
  of_exact <- suppressMessages(predict(exact, rows$test, type = "terms", se.fit = TRUE))
  expect_close(c(terms$fit), c(of_exact$fit), 1e-4)
  expect_close(terms$se.fit, of_exact$se.fit, 1e-4)
})

test_that("levels that are also inputs of the smooth part stay in the kernel, with its predictions", {
  x <- with_seed(1, cbind(a = stats::runif(60), g = rep(0:5, 10)))
  y <- with_seed(2, sin(6 * x[, "a"]) + 0.4 * x[, "g"] + 0.2 * stats::rnorm(60))
  kernel <- kernel_matern(3 / 2, c(0.4, 3), 1) + kernel_group("g", variance = 0.5)
  by <- function(f, ...) f(x, y, kernel = kernel, noise = 0.05, hyper = "fixed", ...)
  new <- with_seed(3, cbind(a = stats::runif(9), g = rep(0:2, 3)))
  exact <- predict(by(gp_exact), new)
  for (neighbours in c(0, 7, 60)) {
    one <- suppressMessages(by(pfdtc, m = if (neighbours == 0) 60 else 12, neighbours = neighbours))
    expect_false(inherits(posterior_of(one), c("grouped", "grouped_near")))
    terms <- predict(one, new, type = "terms")
    expect_equal(rowSums(terms) + attr(terms, "constant"), unname(predict(one, new)), tolerance = 1e-8,
                 ignore_attr = TRUE)
    # If all rows are points or neighbours, the prediction is exact up to the jitter, 1e-8 of prior variance over noise.
    if (neighbours != 7) expect_equal(unname(predict(one, new)), unname(exact), tolerance = 1e-5)
  }
})

test_that("certificates contain the exact posterior of random problems", {
  for (seed in quick(1:4)) {
    small <- grouped_rows(150, 5 * seed, seed)
    one <- grouped_fit(small, m = 6 + 4 * seed, plain = TRUE)
    exact <- suppressMessages(gp_exact(y ~ x1 + x2 + (1 | g), small$train, like = one))
    b <- suppressMessages(predict(exact, small$test, se.fit = TRUE))
    for (effort in c("fast", "reference")) {
      inside <- suppressMessages(certify(one, small$test, effort = effort))
      slack <- 1e-8 * max(abs(b$fit)) # the exact fit's own rounding
      expect_true(all(inside$mean_lower <= b$fit + slack & b$fit <= inside$mean_upper + slack), info = seed)
      expect_true(all(inside$sd_lower <= b$se.fit + slack & b$se.fit <= inside$sd_upper + slack), info = seed)
    }
    bounds <- suppressMessages(evidence_bounds(one))
    expect_true(bounds[["lower"]] <= exact$evidence && exact$evidence <= bounds[["upper"]], info = seed)
  }
})

test_that("effects have the coverage that their standard deviations imply, and variances are recovered", {
  only_nightly()
  large <- grouped_rows(6000, 400, 3)
  big <- grouped_fit(large, m = 100, plain = TRUE)
  expect_equal(coef(big)[["noise"]], 0.09, tolerance = 0.06) # three sds of an estimate from 6,000 rows
  expect_equal(coef(big)[["group(g).variance"]], 1, tolerance = 0.2)
  p <- suppressMessages(predict(big, large$test, se.fit = TRUE))
  # With 15 rows a level, the error is 0.3 / sqrt(15) = 0.08 of an effect, plus that of f.
  expect_lt(sqrt(mean((p$fit - large$test$f)[-(1:3)]^2)), 0.12)
  z <- ((p$fit - large$test$f) / p$se.fit)[-(1:3)]
  expect_gt(mean(abs(z) < 1.96), 0.85)
})

test_that("adding and removing rows, saved fits and other hyperparameters give the results of new fits", {
  more <- rows$test[-(1:3), ]
  more$g[1:2] <- 41
  added <- suppressMessages(add_rows(fit, more))
  a <- suppressMessages(predict(added, rows$test, se.fit = TRUE))
  exact <- suppressMessages(gp_exact(y ~ x1 + x2 + (1 | g), rbind(rows$train, more), like = added))
  b <- suppressMessages(predict(exact, rows$test, se.fit = TRUE))
  expect_close(a$fit, b$fit, 1e-3) # the centre is that of other rows
  expect_close(a$se.fit, b$se.fit, 1e-4)
  dropped <- drop_rows(fit, 1:20)
  exact <- suppressMessages(gp_exact(y ~ x1 + x2 + (1 | g), rows$train[-(1:20), ], like = dropped))
  expect_close(unname(predict(dropped, rows$test[-(1:3), ])), unname(predict(exact, rows$test[-(1:3), ])), 1e-3)
  file <- tempfile(fileext = ".rds")
  saveRDS(fit, file)
  expect_identical(suppressMessages(predict(readRDS(file), rows$test)), suppressMessages(predict(fit, rows$test)))
})

test_that("held-out levels and rows are predicted as by a posterior without them", {
  p <- posterior_of(fit)
  part <- posterior_without(p)
  rest <- remade_fit(p, take_rows(fit$data, 2:600), p$model)
  at <- posterior_values(posterior_of(rest), fit$data$x[1, , drop = FALSE])
  expect_equal(part$mean[1], at$mean, tolerance = 1e-6)
  expect_equal(part$var[1], at$var, tolerance = 1e-6)
})

test_that("Cook's distances are those of the exact posterior, also with slopes and crossed groups", {
  d <- rows$train[1:300, ]
  d$h <- with_seed(5, sample(letters[1:4], 300, TRUE))
  kernel <- kernel_se(c(0.5, 0.5), 1, inputs = ~ x1 + x2) + kernel_group(~ h, variance = 0.3) +
    kernel_group(~ g, ~ 1 + x1, correlated = FALSE, variance = 1, scale = 0.4)
  one <- suppressMessages(pfdtc(y ~ x1 + x2, d, m = 80, neighbours = 0, hyper = "fixed", kernel = kernel, noise = 0.09))
  exact <- suppressMessages(gp_exact(y ~ x1 + x2, d, like = one))
  expect_s3_class(posterior_of(one), "grouped")
  expect_lt(one$unexplained, 1e-5)
  expect_close(unname(cooks.distance(one)), unname(cooks.distance(exact)), 1e-4)
})

test_that("methods that do not support groups are refused", {
  expect_error(pf_divergence(fit), class = "pfdtc_error_input")
})

test_that("Laplace's approximation with all effects and inducing points is that of the whole kernel on all rows", {
  d <- grouped_rows(300, 20)
  d$train$y <- with_seed(4, stats::rbinom(300, 1, stats::plogis(d$train$f)))
  k <- kernel_matern(5 / 2, c(0.4, 0.4), 1, inputs = ~ x1 + x2) +
    kernel_group(~ g, ~ 1 + x1, correlated = FALSE, variance = 1, scale = 0.7)
  one <- function() suppressMessages(pfdtc(y ~ x1 + x2, d$train, family = binomial(), kernel = k, hyper = "fixed"))
  whole <- one()
  with_replaced(list(dense_rows = 100L), {
    grouped <- one()
    expect_s3_class(posterior_of(grouped), "grouped")
    a <- suppressMessages(predict(grouped, d$test, se.fit = TRUE))
    residuals <- rstudent(grouped)
  })
  b <- suppressMessages(predict(whole, d$test, se.fit = TRUE))
  # The mode is found to 1e-5; points leave 1e-8 of the variance.
  expect_close(a$fit, b$fit, 1e-4)
  expect_close(a$se.fit, b$se.fit, 1e-4)
  expect_equal(grouped$evidence, whole$evidence, tolerance = 1e-6)
  expect_close(unname(residuals), unname(rstudent(whole)), 1e-3)
})

test_that("effects that cannot be eliminated, because weights differ by a factor of 1e24, are an error with a class", {
  d <- with_seed(2, {
    d <- data.frame(x = stats::runif(150), g = factor(sample(9, 150, TRUE)))
    d$y <- sin(5 * d$x) + stats::rnorm(9)[d$g] + 0.3 * stats::rnorm(150)
    d
  })
  K <- kernel_matern(5 / 2, 0.5, 1, inputs = ~ x) + kernel_group(~ g, variance = 0.8)
  # Whether the rounded matrix is positive definite depends on the BLAS.
  got <- tryCatch(pfdtc(y ~ x, d, weights = rep_len(c(1e-12, 1e12), 150), kernel = K, noise = 1e-6, hyper = "fixed",
                        m = 60, neighbours = 0), pfdtc_error_numerical = identity)
  expect_true(inherits(got, c("gp_fit", "pfdtc_error_numerical")))
})
