# Tests that rOpenSci's standards for statistical software ask for and other files do not have. tools/srr.R
# collects the tags.

plane <- function(n = 40, noise = 0.1, seed = 1) {
  with_seed(seed, {
    d <- data.frame(a = runif(n), b = runif(n))
    d$y <- sin(6 * d$a) + d$b + noise * rnorm(n)
    d
  })
}

fit_plane <- function(data = plane(), formula = y ~ a + b, ...) {
  pfdtc(formula, data, kernel = kernel_se(c(0.4, 0.6), 1), noise = 0.01, hyper = "fixed", ...)
}

# The calls to `doors` in all functions of the package, as text.
calls_to <- function(doors) {
  found <- character()
  walk <- function(e) {
    if (is.call(e) && is.symbol(e[[1L]]) && as.character(e[[1L]]) %in% doors) {
      found[[length(found) + 1L]] <<- paste(deparse(e), collapse = " ")
    }
    if (is.call(e) || is.pairlist(e)) for (part in as.list(e)) if (!missing(part)) walk(part)
  }
  for (f in Filter(is.function, as.list(asNamespace("pfdtc"), all.names = TRUE))) walk(body(f))
  found
}

#' @srrstats {G5.2a} No two conditions have the same text.
test_that("messages are unique", {
  calls <- calls_to(c("abort_numerical", "warn_convergence", "warn_evidence", "warn_small", "tell_classed"))
  expect_gt(length(calls), 10)
  expect_identical(calls[duplicated(calls)], character())
})

#' @srrstats {G2.7} Tibbles and data.tables do what data frames do, new rows and matrices of inputs too.
#' @srrstats {G2.10} Columns are extracted without relying on the class of the table.
test_that("tibbles and data.tables are data frames", {
  data <- plane()
  own <- fit_plane(data)
  kinds <- list(tibble = "as_tibble", data.table = "as.data.table")
  for (package in names(kinds)) {
    skip_if_not_installed(package)
    as <- getExportedValue(package, kinds[[package]])
    fit <- fit_plane(as(data))
    expect_equal(unname(fitted(fit)), unname(fitted(own)))
    expect_equal(unname(predict(fit, as(data[3:5, ]))), unname(predict(own, data[3:5, ])))
    by_matrix <- pfdtc(as(data[c("a", "b")]), data$y, kernel = kernel_se(c(0.4, 0.6), 1), noise = 0.01, hyper = "fixed")
    expect_equal(unname(fitted(by_matrix)), unname(fitted(own)))
  }
})

#' @srrstats {G2.11} Columns with classes of their own over numbers, as those of package units, are these numbers.
#' @srrstats {G2.12} List columns are refused by name.
test_that("columns with units are numbers, list columns are refused", {
  data <- plane()
  metres <- data
  metres$a <- structure(metres$a, units = "m", class = "units")
  expect_equal(fitted(fit_plane(metres)), fitted(fit_plane(data)))
  listed <- data
  listed$a <- as.list(listed$a)
  expect_input_error(fit_plane(listed), "formula")
  expect_error(fit_plane(listed), "'a'")
  data$a <- as.complex(data$a)
  expect_error(fit_plane(data), "`a`")
})

# A draw of a Gaussian process of known hyperparameters, and noise.
drawn <- function(seed, n) {
  with_seed(seed, {
    x <- cbind(x = runif(n, 0, 10))
    K <- kernel_matrix(kernel_se(1.5, 4), x) + diag(1e-8, n)
    list(x = x, y = drop(crossprod(chol(K), rnorm(n))) + 0.5 * rnorm(n))
  })
}

#' @srrstats {G5.6} Hyperparameters that data were drawn with are recovered,
#' @srrstats {G5.6a} within 99 % intervals,
#' @srrstats {G5.6b} for several seeds.
#' @srrstats {G5.5} Every random number in the tests comes after a seed.
test_that("hyperparameters are recovered", {
  truth <- log(c(1.5, 4, 0.25))
  for (seed in quick(1:4)) {
    p <- drawn(seed, 200)
    around <- confint(pfdtc(p$x, p$y, kernel = kernel_se()), level = 0.99)
    expect_true(all(around[, 1] < truth & truth < around[, 2]))
  }
})

#' @srrstats {G5.7} The error falls, and the intervals narrow, as rows are added.
test_that("more rows tell more", {
  p <- drawn(5, 320)
  new <- cbind(x = seq(0.5, 9.5, length.out = 50))
  model <- list(kernel = kernel_se(1.5, 4), noise = 0.25, hyper = "fixed")
  best <- predict(do.call(pfdtc, c(list(p$x, p$y), model)), new)
  at <- lapply(c(20, 80, 240), function(n) {
    predict(do.call(pfdtc, c(list(p$x[1:n, , drop = FALSE], p$y[1:n]), model)), new, se.fit = TRUE)
  })
  error <- vapply(at, function(one) sqrt(mean((one$fit - best)^2)), 0)
  expect_true(all(diff(error) < 0))
  for (k in 1:2) expect_true(all(at[[k + 1]]$se.fit < at[[k]]$se.fit))
})

#' @srrstats {G5.9} Neither noise nor chance decides:
#' @srrstats {G5.9a} Noise of the size of rounding changes nothing that matters,
#' @srrstats {G5.9b} nor does the seed.
test_that("neither rounding nor the seed matters", {
  data <- plane(60)
  learn <- function(data, seed = 1) with_seed(seed, pfdtc(y ~ a + b, data, kernel = kernel_se()))
  fit <- learn(data)
  shaken <- with_seed(2, transform(data, y = y + .Machine$double.eps * rnorm(60), a = a * (1 + .Machine$double.eps)))
  # the search for hyperparameters stops by a relative tolerance of 1e-8, whose square root says where
  expect_equal(fitted(learn(shaken)), fitted(fit), tolerance = 1e-4)
  # another seed starts elsewhere, and ends where the evidence is flat: a tenth of a nat tells nothing apart
  again <- learn(data, 99)
  expect_lt(abs(fit$evidence - again$evidence), 0.1)
  expect_lt(max(abs(fitted(again) - fitted(fit))), 0.05 * sigma(fit))
})

#' @srrstats {RE2.4a} Perfectly collinear inputs need no diagnosis: a Gaussian process does not invert their cross
#'   products. They share the effect, and predictions are as without them.
#' @srrstats {RE7.0} So it is tested.
test_that("collinear inputs are borne", {
  data <- transform(plane(60), twice = 2 * a)
  one <- pfdtc(y ~ a + b, data, kernel = kernel_se())
  both <- pfdtc(y ~ a + twice + b, data, kernel = kernel_se())
  # The evidence is the same for the two inputs, so it is largest where they share the effect. Along their difference it
  # is nearly flat: the search ends within a hundredth of a nat of equal shares.
  kernel <- both$kernel
  share <- sqrt(kernel$lengthscale[1] * kernel$lengthscale[2] / 2)
  kernel$lengthscale[1:2] <- c(share, 2 * share)
  shared <- pfdtc(y ~ a + twice + b, data, kernel = kernel, noise = both$noise, hyper = "fixed")
  expect_equal(as.numeric(logLik(both)), as.numeric(logLik(shared)), tolerance = 0.01 / abs(logLik(shared)))
  expect_lt(sqrt(mean((fitted(one) - fitted(both))^2)), 0.3 * sigma(one))
})

#' @srrstats {RE2.4b} A response without noise is a function to be interpolated, which is what a Gaussian process is
#'   for: the noise learned is next to nothing, and says so.
#' @srrstats {RE7.1} So it is tested,
#' @srrstats {RE7.1a} at no more work than with noise, twice over.
test_that("noiseless responses are interpolated", {
  exact <- plane(noise = 0)
  fit <- pfdtc(y ~ a + b, exact, kernel = kernel_se())
  expect_lt(sigma(fit), 1e-2 * sd(exact$y))
  new <- plane(20, noise = 0, seed = 4)
  new <- new[new$a > 0.1 & new$a < 0.9 & new$b > 0.1 & new$b < 0.9, ]
  expect_lt(max(abs(predict(fit, new) - new$y)), 0.05 * sd(exact$y))
  noisy <- pfdtc(y ~ a + b, plane(noise = 0.1), kernel = kernel_se())
  expect_lt(sum(fit$evaluations), 2 * sum(noisy$evaluations))
})

#' @srrstats {RE4.14} Standard deviations are there beyond the data,
#' @srrstats {RE4.15} and grow with the distance from them,
#' @srrstats {RE7.4} up to that of the prior.
test_that("uncertainty grows beyond the data", {
  for (kernel in quick(list(kernel_se(6, 900), kernel_matern(1 / 2, 6, 900), kernel_matern(5 / 2, 6, 900)))) {
    fit <- pfdtc(dist ~ speed, cars, kernel = kernel, noise = 200, hyper = "fixed")
    se <- predict(fit, data.frame(speed = c(25, 28, 31, 35, 40, 100)), se.fit = TRUE)$se.fit
    expect_true(all(diff(se) > 0))
    expect_equal(se[[6]], 30, tolerance = 1e-3)
  }
})

#' @srrstats {RE7.2} Names of rows come back with fitted values, residuals and predictions.
test_that("rows keep their names", {
  fit <- pfdtc(mpg ~ wt, mtcars, kernel = kernel_se(1, 20), noise = 6, hyper = "fixed")
  for (values in list(fitted(fit), residuals(fit), residuals(fit, "loo"), rstandard(fit), hatvalues(fit))) {
    expect_named(values, rownames(mtcars))
  }
  expect_named(predict(fit, mtcars[4:6, ]), rownames(mtcars)[4:6])
  expect_identical(case.names(fit), rownames(mtcars))
  expect_identical(variable.names(fit), "wt")
})

test_that("what is done unasked has a class", {
  expect_message(announce_memory(1e8, 3000), class = "pfdtc_message_memory")
  fit <- gp_dtc(dist ~ speed, cars, m = 3, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
  expect_message(certify(fit, cars[1:2, ]), class = "pfdtc_message_reference")
  half <- update(fit, data = cars[1:25, ])
  expect_warning(AIC(fit, half), "50.*25", class = "pfdtc_warning_evidence")
})
