# Has the tests that rOpenSci's standards for statistical software require and other files lack. The tags @srrstats say
# how each standard is met; tools/srr.R collects them.

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

# Returns the calls to `doors` in all functions of the package, as text.
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
  calls <- calls_to(c("abort_numerical", "warn_convergence", "warn_classed", "tell_classed"))
  expect_gt(length(calls), 10)
  expect_identical(calls[duplicated(calls)], character())
})

#' @srrstats {G2.7} Tibbles and data.tables give the same results as data frames, as new rows and as matrices too.
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

# Draws a Gaussian process with known hyperparameters and noise.
drawn <- function(seed, n) {
  with_seed(seed, {
    x <- cbind(x = runif(n, 0, 10))
    K <- kernel_matrix(kernel_se(1.5, 4), x) + diag(1e-8, n)
    list(x = x, y = drop(crossprod(chol(K), rnorm(n))) + 0.5 * rnorm(n))
  })
}

#' @srrstats {G5.6} Tests recover the hyperparameters that data were drawn with.
#' @srrstats {G5.6a} The 99 % intervals contain the hyperparameters that data were drawn with.
#' @srrstats {G5.6b} Hyperparameters are recovered for several seeds.
#' @srrstats {G5.5} The tests draw every random number after setting a seed.
test_that("hyperparameters are recovered", {
  truth <- log(c(1.5, 4, 0.25))
  for (seed in quick(1:4)) {
    p <- drawn(seed, 200)
    around <- confint(pfdtc(p$x, p$y, kernel = kernel_se()), level = 0.99)
    expect_true(all(around[, 1] < truth & truth < around[, 2]))
  }
})

#' @srrstats {G5.7} Tests show that the error falls, and intervals narrow, as rows are added.
test_that("the error and the sds fall as rows are added", {
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

#' @srrstats {G5.9} Tests change the data by rounding errors, and change the seed.
#' @srrstats {G5.9a} Noise of the size of rounding errors changes no result by more than the optimiser's tolerance.
#' @srrstats {G5.9b} Another seed changes no result by more than the optimiser's tolerance.
test_that("neither rounding nor the seed changes a fit by more than the optimiser's tolerance", {
  data <- plane(60)
  learn <- function(data, seed = 1) with_seed(seed, pfdtc(y ~ a + b, data, kernel = kernel_se()))
  fit <- learn(data)
  shaken <- with_seed(2, transform(data, y = y + .Machine$double.eps * rnorm(60), a = a * (1 + .Machine$double.eps)))
  # The search for hyperparameters stops at a relative tolerance of 1e-8, whose square root is the accuracy of the
  # optimum.
  expect_equal(fitted(learn(shaken)), fitted(fit), tolerance = 1e-4)
  # Another seed starts elsewhere, and ends where the log marginal likelihood is flat: a tenth of a nat is negligible.
  again <- learn(data, 99)
  expect_lt(abs(fit$evidence - again$evidence), 0.1)
  expect_lt(max(abs(fitted(again) - fitted(fit))), 0.05 * sigma(fit))
})

#' @srrstats {RE2.4a} Perfectly collinear inputs need no diagnosis: a Gaussian process does not invert their cross
#'   products. The inputs share the effect, and predictions are the same as without one of them.
#' @srrstats {RE7.0} A test fits perfectly collinear inputs.
test_that("collinear inputs share their effect, and predictions are those without one of them", {
  data <- transform(plane(60), twice = 2 * a)
  one <- pfdtc(y ~ a + b, data, kernel = kernel_se())
  both <- pfdtc(y ~ a + twice + b, data, kernel = kernel_se())
  # For the distance d in `a`, the factor of `a` and `twice` is exp(-(1 / l1^2 + 4 / l2^2) d^2 / 2). The likelihood
  # depends on l1 and l2 only by this sum; the weak prior depends on each.
  kernel <- both$kernel
  share <- sqrt(2 / (1 / kernel$lengthscale[1]^2 + 4 / kernel$lengthscale[2]^2))
  kernel$lengthscale[1:2] <- c(share, 2 * share)
  shared <- pfdtc(y ~ a + twice + b, data, kernel = kernel, noise = both$noise, hyper = "fixed")
  expect_equal(as.numeric(logLik(both)), as.numeric(logLik(shared)), tolerance = 1e-6)
  expect_equal(as.numeric(logLik(both)), as.numeric(logLik(one)), tolerance = 0.1 / abs(logLik(one))) # 0.1 nats
  expect_lt(sqrt(mean((fitted(one) - fitted(both))^2)), 0.3 * sigma(one))
})

#' @srrstats {RE2.4b} A Gaussian process interpolates a response without noise. The learned noise is then almost 0.
#' @srrstats {RE7.1} A test fits a response without noise.
#' @srrstats {RE7.1a} A fit without noise takes fewer than twice the evaluations of a fit with noise.
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

#' @srrstats {RE4.14} Predictions have standard deviations beyond the data too.
#' @srrstats {RE4.15} Standard deviations grow with the distance from the data.
#' @srrstats {RE7.4} Tests show that standard deviations grow beyond the data, up to that of the prior.
test_that("sds grow beyond the data, up to that of the prior", {
  for (kernel in quick(list(kernel_se(6, 900), kernel_matern(1 / 2, 6, 900), kernel_matern(5 / 2, 6, 900)))) {
    fit <- pfdtc(dist ~ speed, cars, kernel = kernel, noise = 200, hyper = "fixed")
    se <- predict(fit, data.frame(speed = c(25, 28, 31, 35, 40, 100)), se.fit = TRUE)$se.fit
    expect_true(all(diff(se) > 0))
    expect_equal(se[[6]], 30, tolerance = 1e-3)
  }
})

#' @srrstats {RE7.2} Fitted values, residuals and predictions have the names of the rows.
test_that("rows keep their names", {
  fit <- pfdtc(mpg ~ wt, mtcars, kernel = kernel_se(1, 20), noise = 6, hyper = "fixed")
  for (values in list(fitted(fit), residuals(fit), residuals(fit, "loo"), rstandard(fit), hatvalues(fit))) {
    expect_named(values, rownames(mtcars))
  }
  expect_named(predict(fit, mtcars[4:6, ]), rownames(mtcars)[4:6])
  expect_identical(case.names(fit), rownames(mtcars))
  expect_identical(variable.names(fit), "wt")
})

test_that("messages and warnings about steps that the user did not request have a class", {
  expect_message(announce_memory(1e8, 3000), class = "pfdtc_message_memory")
  fit <- gp_dtc(dist ~ speed, cars, m = 3, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
  expect_message(certify(fit, cars[1:2, ]), class = "pfdtc_message_reference")
  half <- update(fit, data = cars[1:25, ])
  expect_warning(AIC(fit, half), "50.*25", class = "pfdtc_warning_evidence")
})

# Answers rOpenSci's standards for statistical software, General and Regression, by tags, here for the package as a
# whole or for many files. tools/srr.R collects the tags into tools/srr-report.md and complains if a standard has no
# answer.

#' General: documentation
#'
#' @srrstatsVerbose TRUE
#' @srrstats {G1.0} The literature is in DESCRIPTION, inst/CITATION, the sources of help pages and the theory vignette.
#' @srrstats {G1.1} `?pfdtc` and README.md say what is new, which is the first implementation of pF-DTC in R, with
#'   certificates that no other package has. `vignette("comparison")` compares other packages.
#' @srrstats {G1.2} NEWS.md and CONTRIBUTING.md say what has changed, what will not change (the public interface), and
#'   how to contribute.
#' @srrstats {G1.3} Terms are defined where they are first used, in `vignette("pfdtc")`, in "How to read the result" of
#'   README.md, and in the table of symbols of `vignette("theory")`.
#' @srrstats {G1.4} Help pages and NAMESPACE are made by roxygen2 (tools/document.R, checked in CI).
#' @srrstats {G1.4a} Comments in front of internal functions say what they return, with shapes and units.
#' @srrstats {G1.5} The sources include the code for every claim, in `inst/experiments` (the paper) and `bench/`.
#' @srrstats {G1.6} `bench/peers` and `bench/race.md` compare the package with others by running their code.
#' @noRd
NULL

#' General: input
#'
#' @srrstats {G2.0} Help pages give the lengths of arguments, and `check_count()`, `check_number()`, `check_flag()`,
#'   `check_choice()` and `check_level()` (checks.R) check them.
#' @srrstats {G2.0a} Messages of these checks say what length is required and what was given.
#' @srrstats {G2.1} The same functions check the types of arguments.
#' @srrstats {G2.1a} Help pages give the type of each argument.
#' @srrstats {G2.2} More than one value for an argument that needs one is an error of class `pfdtc_error_input`.
#' @srrstats {G2.3} `check_choice()` checks character arguments.
#' @srrstats {G2.3a} `check_choice()` permits only the values of the usage, and its error lists them.
#' @srrstats {G2.3b} `check_choice()` is case-sensitive, as `match.arg()` is.
#' @srrstats {G2.4} Conversions are explicit (checks.R, rows-read.R).
#' @srrstats {G2.4a} Counts are converted by `as.integer()`.
#' @srrstats {G2.4b} Inputs and responses are converted by `as.double()`.
#' @srrstats {G2.4c} Levels are converted by `as.character()`.
#' @srrstats {G2.4d} Character variables of a formula become factors, as in `lm()`.
#' @srrstats {G2.4e} Levels are matched by name, never by their numbers.
#' @srrstats {G2.5} Inputs may be ordered or unordered factors. Only `kernel_categorical(correlation = "ordered")` uses
#'   the order of an input.
#' @srrstats {G2.6} One-dimensional inputs may be vectors, matrices of one column, or columns of a class of their own
#'   over numbers.
#' @srrstats {G2.8} `clean_data()` (rows-clean.R) makes one plain list of matrices and vectors. The rest of the package
#'   uses only this list.
#' @srrstats {G2.9} A formula that would lose information, such as one with `a:b`, is refused by name. Columns without
#'   names become `x1`, `x2`, ... in `print()`.
#' @srrstats {G2.13} Missing values are found before anything is computed (rows-clean.R, rows-new.R).
#' @srrstats {G2.14} Formulas and `predict()` have `na.action`.
#' @srrstats {G2.14a} `na.fail` gives an error, and matrices with missing values always do.
#' @srrstats {G2.14b} `na.omit` and `na.exclude` omit rows, and `print()` says how many.
#' @srrstats {G2.14c} `na.action` may be any function that imputes values in the model frame.
#' @srrstats {G2.15} No function after `clean_data()` gets a missing value.
#' @srrstats {G2.16} `NaN` counts as missing. `Inf` is an error that names the column.
#' @noRd
NULL

#' General: algorithms and output
#'
#' @srrstats {G3.0} Computed numbers are not compared for equality. Given inputs are, when equal rows are merged
#'   (rows-signature.R).
#' @srrstatsNA {G3.1} No covariance matrix is estimated from columns of data, as covariances come from the kernel.
#' @srrstatsNA {G3.1a} The kernel is an argument, and no covariance is estimated from columns.
#' @srrstats {G4.0} `run_experiment()` requires the name of its file, a CSV. The trace is in `<file>-trace.csv` in the
#'   same folder.
#' @noRd
NULL

#' General: tests
#'
#' @srrstats {G5.0} Tests use `cars`, `quakes`, `mtcars`, `npk`, `airquality` and `volcano`, which are part of R, and
#'   the paper's data sets if they are available.
#' @srrstats {G5.1} tests/testthat/helper-problems.R makes the data of tests, and `load_dataset("synthetic")` the
#'   paper's.
#' @srrstats {G5.2} Errors and warnings have classes. Tests check the class and the argument (helper-expect.R).
#' @srrstats {G5.2b} Each error and warning is tested with the function that raises it.
#' @srrstats {G5.3} `expect_equal()` with dense transcriptions of the formulas also shows that predictions have no
#'   missing values.
#' @srrstats {G5.4} Every number is compared with a dense transcription of its formula (helper-reference.R).
#' @srrstats {G5.4a} The transcriptions are written in R, the engine in C. Further tests use limits and inequalities.
#' @srrstats {G5.4b} bench/peers compares results with seven other packages, for the methods that they have.
#' @srrstats {G5.4c} Tests reproduce the figures and tables of the paper (test-paper-examples.R, `vignette("paper")`).
#' @srrstats {G5.8} Edge cases are tested in test-pfdtc-nasty.R, test-pfdtc-nasty-defaults.R and test-rows-clean.R.
#' @srrstats {G5.8a} Tests check that data without rows are refused.
#' @srrstats {G5.8b} Tests check that inputs of unsupported types are refused.
#' @srrstats {G5.8c} Tests use columns of missing values and columns of equal values.
#' @srrstats {G5.8d} Tests use more inputs than rows.
#' @srrstats {G5.10} `PFDTC_TEST_QUICK`, `PFDTC_TEST_ALL`, `PFDTC_TEST_MEMORY` and `PFDTC_DATA` turn parts of the tests
#'   on and off. `make mutants` tests planted faults.
#' @srrstats {G5.11} `PFDTC_DATA` is the folder of large data sets, and `load_dataset()` says how to get them.
#' @srrstats {G5.11a} Tests skip if large data sets are not available.
#' @srrstats {G5.12} CONTRIBUTING.md and bench/README.md say what the longer tests need.
#' @noRd
NULL

#' Regression: input
#'
#' @srrstats {RE1.0} All functions that make a fit have a formula method.
#' @srrstats {RE1.1} `vignette("pfdtc")` says how variables become columns: a number or logical value is one, a factor
#'   has a 0/1 column for each level.
#' @srrstats {RE1.2} `?pfdtc` says which inputs are accepted, and errors name inputs that are refused.
#' @srrstats {RE1.3} Results of methods have the names of rows and columns, and a fit has `terms` and `na.action`.
#' @srrstats {RE1.3a} Other attributes of columns are dropped.
#' @srrstats {RE1.4} By default the noise is normal and the function is stationary. For other data there are
#'   `predict(interval = "conformal")`, `plot(which = "checks")`, `vignette("troubleshooting")` and tests
#'   (test-conformal.R).
#' @srrstats {RE2.0} All results are in the original units of the response. `center`, `scale` and `transform` turn its
#'   transformations off, and `plain = TRUE` also those of inputs.
#' @srrstats {RE2.1} `na.action` treats `NA` and `NaN`. `Inf` is an error.
#' @srrstats {RE2.2} Rows with missing responses are not used in the fit. `predict()` needs inputs only.
#' @srrstats {RE2.3} The arguments are `center`, `scale` and `offset`.
#' @srrstats {RE2.4} Collinear inputs, which a linear model cannot use, are no problem for a Gaussian process, and tests
#'   show this.
#' @noRd
NULL

#' Regression: algorithms and results
#'
#' @srrstats {RE3.0} Warnings have class `pfdtc_warning_convergence`.
#' @srrstats {RE3.1} Warnings can be suppressed by class. A fit has `convergence`, `message`, `trace` and `learned`.
#' @srrstats {RE3.2} `?pfdtc_control` gives the defaults.
#' @srrstats {RE3.3} `pfdtc_control(maxit = , reltol = )`.
#' @srrstats {RE4.0} A fit has class `c("pfdtc", "gp_fit")`.
#' @srrstats {RE4.1} `hyper = "fixed"` with `maxit = 0` optimises nothing. `gp_reg()` makes a specification without
#'   data.
#' @srrstats {RE4.2} `coef()`.
#' @srrstats {RE4.3} `confint()` gives intervals of the logs of hyperparameters.
#' @srrstats {RE4.4} `formula()`, `terms()`.
#' @srrstats {RE4.5} `nobs()`.
#' @srrstats {RE4.6} `vcov()` gives covariances of the logs of hyperparameters.
#' @srrstats {RE4.7} `fit$convergence`, `fit$trace`, `plot_trace()`.
#' @srrstats {RE4.8} `model.frame()`, `augment()`.
#' @srrstats {RE4.9} `fitted()`.
#' @srrstats {RE4.10} `residuals()` has response, Pearson, leave-one-out and probability integral transform residuals,
#'   and `rstandard()` standardised ones.
#' @srrstats {RE4.11} `logLik()`, `AIC()`, `anova()`, `cross_validate()`, `performance::model_performance()`.
#' @srrstats {RE4.12} `fit$center`, `fit$scale`.
#' @srrstats {RE4.13} `model.frame()`, `variable.names()`, `labels()`.
#' @srrstats {RE4.16} New levels of a factor are an error by default. `kernel_categorical()` learns the
#'   correlation of known levels.
#' @srrstats {RE4.17} `print()`.
#' @srrstats {RE4.18} `summary()`.
#' @srrstats {RE5.0} `?pfdtc`, README.md and `bench/README.md` give the cost for numbers of rows, points and inputs.
#' @srrstats {RE6.0} `plot()`.
#' @srrstatsNA {RE6.1} `plot()` is a method of the generic function.
#' @srrstats {RE6.2} `plot()` draws the mean with credible and prediction bands.
#' @srrstats {RE6.3} Beyond the data `plot()` draws the mean dotted and the band paler (test-plot.R).
#' @srrstatsNA {RE7.0a} Inputs without noise are usual for a Gaussian process, so none are rejected.
#' @srrstats {RE7.3} Accessors are tested in test-methods.R, test-regression.R and test-learn-curvature.R.
#' @noRd
NULL
