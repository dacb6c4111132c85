# Has tests that rOpenSci's standards for statistical software require and other files lack. tools/srr.R collects the
# tags.

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

# Draws a Gaussian process with known hyperparameters, and noise.
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
  # The search for hyperparameters stops at a relative tolerance of 1e-8, whose square root is the accuracy of the
  # optimum.
  expect_equal(fitted(learn(shaken)), fitted(fit), tolerance = 1e-4)
  # Another seed starts elsewhere, and ends where the log marginal likelihood is flat: a tenth of a nat is negligible.
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
  # The kernel is exp(-d^2 / 2 (1 / l1^2 + 4 / l2^2)). The likelihood depends on this sum only, and the weak prior on
  # its parts.
  kernel <- both$kernel
  share <- sqrt(2 / (1 / kernel$lengthscale[1]^2 + 4 / kernel$lengthscale[2]^2))
  kernel$lengthscale[1:2] <- c(share, 2 * share)
  shared <- pfdtc(y ~ a + twice + b, data, kernel = kernel, noise = both$noise, hyper = "fixed")
  expect_equal(as.numeric(logLik(both)), as.numeric(logLik(shared)), tolerance = 1e-6)
  expect_equal(as.numeric(logLik(both)), as.numeric(logLik(one)), tolerance = 0.1 / abs(logLik(one))) # nats
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

# Answers rOpenSci's standards for statistical software, General and Regression, by tags, here for the package as a
# whole or for many files. tools/srr.R collects the tags into tools/srr-report.md and complains if a standard has no
# answer.

#' General: documentation
#'
#' @srrstatsVerbose TRUE
#' @srrstats {G1.0} The literature is in DESCRIPTION, inst/CITATION, the sources of help pages and the theory vignette.
#' @srrstats {G1.1} `?pfdtc` and README.md say what is new: a first implementation in R of pF-DTC, and certificates that
#'   no other package has; `vignette("comparison")` says what else there is.
#' @srrstats {G1.2} NEWS.md and CONTRIBUTING.md: what has changed, what will not change (the public interface), how to
#'   add.
#' @srrstats {G1.3} Terms are defined where they are first used: `vignette("pfdtc")`, "How to read the result" in
#'   README.md, and the table of symbols in `vignette("theory")`.
#' @srrstats {G1.4} Help pages and NAMESPACE are made by roxygen2 (tools/document.R, checked in CI).
#' @srrstats {G1.4a} Internal functions have comments in front of them, which say shapes and units.
#' @srrstats {G1.5} The code of every claim is in the sources: `inst/experiments` (the paper), `bench/`.
#' @srrstats {G1.6} `bench/peers` and `bench/race.md` compare with other packages, by their code.
#' @noRd
NULL

#' General: input
#'
#' @srrstats {G2.0} Lengths of arguments are in their help; `check_count()`, `check_number()`, `check_flag()`,
#'   `check_choice()`, `check_level()` (checks.R) hold them to it.
#' @srrstats {G2.0a} Messages of these checks say what length is wanted and what was given.
#' @srrstats {G2.1} Types likewise.
#' @srrstats {G2.1a} Help pages say the type of each argument.
#' @srrstats {G2.2} More than one value where one is wanted is an error of class `pfdtc_error_input`.
#' @srrstats {G2.3} Character arguments go through `check_choice()`,
#' @srrstats {G2.3a} which permits the values in the usage alone and lists them,
#' @srrstats {G2.3b} and is case-sensitive, as `match.arg()` is; `?pfdtc` says so.
#' @srrstats {G2.4} Conversions are explicit (checks.R, rows-read.R):
#' @srrstats {G2.4a} counts by `as.integer()`,
#' @srrstats {G2.4b} inputs and responses by `as.double()`,
#' @srrstats {G2.4c} levels by `as.character()`,
#' @srrstats {G2.4d} character variables of a formula become factors, as of `lm()`,
#' @srrstats {G2.4e} and levels are matched by name, never by code.
#' @srrstats {G2.5} `?pfdtc`: factors may be ordered or not; the order is not used.
#' @srrstats {G2.6} One-dimensional inputs come as vectors, matrices of one column or columns of a class of their own
#'   over numbers.
#' @srrstats {G2.8} `clean_data()` (rows-clean.R) makes one plain list of matrices and vectors, the only thing that the
#'   rest of the package sees.
#' @srrstats {G2.9} What would lose information is refused by name (dates, interactions, `a:b`), not converted; columns
#'   without names are named `x1`, `x2`, ... in `print()`.
#' @srrstats {G2.13} Missing values are looked for before anything is computed (rows-clean.R, rows-new.R).
#' @srrstats {G2.14} `na.action` of formulas and of `predict()`:
#' @srrstats {G2.14a} `na.fail`, and always for matrices,
#' @srrstats {G2.14b} `na.omit` and `na.exclude`, whose number `print()` says,
#' @srrstats {G2.14c} or any function that imputes: it is given the model frame.
#' @srrstats {G2.15} Nothing behind `clean_data()` sees a missing value.
#' @srrstats {G2.16} `NaN` is missing; `Inf` is an error everywhere, which names the column.
#' @noRd
NULL

#' General: algorithms and output
#'
#' @srrstats {G3.0} No two computed numbers are compared for equality; rows of inputs are, as given, when equal rows are
#'   merged (merge.R).
#' @srrstatsNA {G3.1} No covariance matrix is estimated from columns of data: covariances are the kernel's.
#' @srrstatsNA {G3.1a} Likewise; which kernel is an argument.
#' @srrstats {G4.0} `run_experiment()` asks for the name of its file and says that it is a CSV; the trace is beside it,
#'   `<file>-trace.csv`.
#' @noRd
NULL

#' General: tests
#'
#' @srrstats {G5.0} Tests use `cars`, `quakes`, `mtcars`, `npk`, `airquality`, `volcano`, which come with R, and the
#'   paper's sets where they are at hand.
#' @srrstats {G5.1} Data that tests make are made in tests/testthat/helper-problems.R; `load_dataset("synthetic")` is
#'   the paper's.
#' @srrstats {G5.2} Errors and warnings have classes and are tested by class and argument (helper-expect.R),
#' @srrstats {G5.2b} each where it is raised.
#' @srrstats {G5.3} Predictions without missing values are part of `expect_equal()` with dense transcriptions.
#' @srrstats {G5.4} Every number is compared with a dense transcription of its formula (helper-reference.R),
#' @srrstats {G5.4a} in R beside the engine in C, and with limits and inequalities,
#' @srrstats {G5.4b} with seven other packages where methods are theirs, too (bench/peers),
#' @srrstats {G5.4c} and with the figures and tables of the paper (test-paper-examples.R, `vignette("paper")`).
#' @srrstats {G5.8} Edges are in test-pfdtc-nasty.R, test-nasty-defaults.R and test-rows-clean.R:
#' @srrstats {G5.8a} no rows,
#' @srrstats {G5.8b} types that are not for inputs,
#' @srrstats {G5.8c} columns of missing or of equal values,
#' @srrstats {G5.8d} more inputs than rows.
#' @srrstats {G5.10} `PFDTC_TEST_QUICK`, `PFDTC_TEST_MEMORY`, `PFDTC_DATA` turn parts of the suite on and off;
#'   `make mutants` plants faults.
#' @srrstats {G5.11} Large data sets are found by `PFDTC_DATA`; `load_dataset()` says how to get them,
#' @srrstats {G5.11a} and tests skip where they are not there.
#' @srrstats {G5.12} CONTRIBUTING.md and bench/README.md say what the longer ones take.
#' @noRd
NULL

#' Regression: input
#'
#' @srrstats {RE1.0} All functions that fit have a formula method.
#' @srrstats {RE1.1} `?pfdtc` says how variables become columns: numeric, logical as 0/1, a 0/1 column a level.
#' @srrstats {RE1.2} `?pfdtc` says what is taken and what is refused.
#' @srrstats {RE1.3} Row names and column names go to what methods return; `terms`, `na.action` are kept.
#' @srrstats {RE1.3a} Other attributes of columns are dropped, as `?pfdtc` says.
#' @srrstats {RE1.4} Normal noise of one size, and a stationary function, unless a kernel or family says otherwise; what
#'   to do where they do not hold: `predict(interval = "conformal")`, `plot(which = "checks")`,
#'   `vignette("troubleshooting")`, and tests (test-conformal.R).
#' @srrstats {RE2.0} `center` and `scale` of the response are undone in all that is returned and turned off by `FALSE`;
#'   inputs are not transformed.
#' @srrstats {RE2.1} `na.action`, with `NA` and `NaN` apart from `Inf`.
#' @srrstats {RE2.2} Missing responses drop rows of the fit; `predict()` needs inputs alone.
#' @srrstats {RE2.3} `center`, `scale`, `offset`.
#' @srrstats {RE2.4} What collinearity would break in a linear model is no trouble here; tests show it.
#' @noRd
NULL

#' Regression: algorithms and results
#'
#' @srrstats {RE3.0} Warnings of class `pfdtc_warning_convergence`.
#' @srrstats {RE3.1} Suppressed by class; `fit$convergence`, `fit$message`, `fit$trace`, `fit$learned` stay.
#' @srrstats {RE3.2} `?pfdtc_control` gives the defaults and why.
#' @srrstats {RE3.3} `pfdtc_control(maxit = , reltol = )`.
#' @srrstats {RE4.0} A fit of class `c("pfdtc", "gp_fit")`.
#' @srrstats {RE4.1} `hyper = "fixed"` with `maxit = 0` optimises nothing; `gp_reg()` is a specification without data.
#' @srrstats {RE4.2} `coef()`.
#' @srrstats {RE4.3} `confint()`, of logs.
#' @srrstats {RE4.4} `formula()`, `terms()`.
#' @srrstats {RE4.5} `nobs()`.
#' @srrstats {RE4.6} `vcov()`, of logs.
#' @srrstats {RE4.7} `fit$convergence`, `fit$trace`, `plot_trace()`.
#' @srrstats {RE4.8} `model.frame()`, `augment()`.
#' @srrstats {RE4.9} `fitted()`.
#' @srrstats {RE4.10} `residuals()`: response, Pearson, leave-one-out and probability integral transform; `rstandard()`.
#' @srrstats {RE4.11} `logLik()`, `AIC()`, `anova()`, `cross_validate()`, `performance::model_performance()`.
#' @srrstats {RE4.12} `fit$center`, `fit$scale`.
#' @srrstats {RE4.13} `model.frame()`, `variable.names()`, `labels()`.
#' @srrstats {RE4.16} New levels of a factor are refused by default, which is said; `kernel_categorical()` learns the
#'   correlation of known ones.
#' @srrstats {RE4.17} `print()`.
#' @srrstats {RE4.18} `summary()`.
#' @srrstats {RE5.0} `?pfdtc`, README.md, `bench/README.md`: cost against rows, points and inputs.
#' @srrstats {RE6.0} `plot()`.
#' @srrstatsNA {RE6.1} The method is that of the generic.
#' @srrstats {RE6.2} The mean with credible and prediction bands.
#' @srrstats {RE6.3} Beyond the data the mean is dotted and the band paler (test-plot.R).
#' @srrstatsNA {RE7.0a} Noiseless inputs are the rule for a Gaussian process: nothing is to be rejected.
#' @srrstats {RE7.3} Accessors are tested in test-methods.R, test-regression.R and test-curvature.R.
#' @noRd
NULL
