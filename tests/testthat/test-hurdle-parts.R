# Tests calls of the two fits of a hurdle, rows with missing values, and other packages' functions.

test_that("update() and drop1() of a part of a hurdle fit that part again", {
  d <- transform(hurdle_data(), w = rep(1:3, 20))
  fit <- fixed_hurdle(y ~ x + w, d)
  d$above <- as.numeric(d$y > 0)
  zero <- pfdtc(above ~ x + w, d, family = binomial(), kernel = kernel_se(0.9, 1), hyper = "fixed")
  positive <- pfdtc(y ~ x + w, d[d$y > 0, ], family = truncated_poisson(), kernel = kernel_se(0.9, 1), hyper = "fixed")
  expect_equal(drop1(fit$zero)$AIC, drop1(zero)$AIC)
  expect_equal(drop1(fit$positive)$AIC, drop1(positive)$AIC)
  again <- update(fit$positive, . ~ . - w)
  expect_s3_class(again, "gp_fit")
  expect_identical(stats::nobs(again), stats::nobs(fit$positive))
  some <- gp_hurdle(y ~ x, d, subset = x > 2, kernel = kernel_se(0.9, 1), hyper = "fixed")
  expect_equal(predict(update(some$positive, . ~ .)), predict(some$positive))
  expect_identical(stats::nobs(update(some$positive, data = d[60:1, ])), stats::nobs(some$positive))
  rows <- gp_hurdle(y ~ x, d, subset = -(1:5), kernel = kernel_se(0.9, 1), hyper = "fixed")
  expect_equal(predict(update(rows$positive, . ~ .)), predict(rows$positive))
  expect_identical(extractAIC(fit)[1], attr(logLik(fit), "df"))
})

test_that("fitted values, residuals and draws of a hurdle follow na.action", {
  d <- hurdle_data()
  d$x[c(2, 9)] <- NA
  d$y[4] <- NA
  omit <- fixed_hurdle(y ~ x, d)
  exclude <- fixed_hurdle(y ~ x, d, na.action = na.exclude)
  lost <- c(2, 4, 9)
  for (values in list(fitted, residuals, predict)) {
    expect_identical(unname(is.na(values(exclude))), seq_len(60) %in% lost)
    expect_identical(unname(values(omit)), unname(values(exclude)[-lost]))
  }
  expect_identical(nrow(simulate(omit, seed = 1)), 57L)
  expect_identical(which(is.na(simulate(exclude, seed = 1)[[1]])), as.integer(lost))
  expect_identical(nrow(suppressMessages(certify(omit))), 57L)
  skip_if_not_installed("generics")
  rows <- generics::augment(exclude)
  expect_identical(rows[c("x", "y")], d[-lost, c("x", "y")])
  expect_identical(rows$.resid, unname(residuals(omit)))
})

test_that("other packages' functions for one fit refuse hurdles by a clear error", {
  fit <- fixed_hurdle(y ~ x, hurdle_data())
  refused <- function(code) expect_error(code, "hurdle of two fits", class = "pfdtc_error_input")
  if (requireNamespace("insight", quietly = TRUE)) refused(insight::get_statistic(fit))
  if (requireNamespace("insight", quietly = TRUE)) refused(insight::get_modelmatrix(fit))
  skip_if_not_installed("parameters")
  refused(parameters::model_parameters(fit))
})

test_that("insight finds the rows of the positive part", {
  skip_if_not_installed("insight")
  d <- hurdle_data()
  fit <- fixed_hurdle(y ~ x, d)
  expect_identical(insight::get_data(fit$positive, verbose = FALSE)$y, d$y[d$y > 0])
})

test_that("a hurdle and emmeans take f of a found log-logistic response, not its mean", {
  d <- hurdle_data()
  found <- replace(loglogistic(), "from", "gaussian") # as in family() of a fit that found it
  each <- lapply(list(found, loglogistic()), function(f) fixed_hurdle(z ~ x, d, family = f))
  expect_identical(predict(each[[1]]), predict(each[[2]]))
  skip_if_not_installed("emmeans")
  fit <- each[[1]]$positive
  f <- as.data.frame(emmeans::emmeans(fit, ~x, at = list(x = 2)))
  expect_equal(f$emmean, predict(fit, data.frame(x = 2), type = "latent")[[1]])
  y <- as.data.frame(emmeans::emmeans(fit, ~x, at = list(x = 2), type = "response"))
  expect_equal(y$response, exp(f$emmean))
})
