test_that("insight finds its way in a fit", {
  skip_if_not_installed("insight")
  data <- transform(small_data(20), b = exp(a))
  fit <- pfdtc(y ~ log(b) + f, data, kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  expect_identical(insight::find_predictors(fit, flatten = TRUE), c("b", "f"))
  expect_identical(insight::find_response(fit), "y")
  expect_identical(insight::find_formula(fit)$conditional, formula(fit), ignore_formula_env = TRUE)
  expect_true(all(c("y", "b", "f") %in% names(insight::get_data(fit, verbose = FALSE))))
  expect_equal(insight::get_parameters(fit)$Estimate, unname(coef(fit)))
  expect_identical(insight::n_obs(fit), 20L)
  expect_equal(as.numeric(insight::get_sigma(fit)), sigma(fit))
  expect_true(insight::model_info(fit)$is_linear)
  if (utils::packageVersion("insight") >= "1.0") expect_null(insight::find_statistic(fit))     # no generic before
  expect_null(insight::find_formula(fit_fixed()))
})

test_that("get_predicted() is predict() with its intervals", {
  skip_if_not_installed("insight")
  fit <- fit_cars()
  new <- data.frame(speed = c(5, 12))
  for (kind in c("expectation", "prediction")) {
    p <- insight::get_predicted(fit, new, predict = kind, ci = 0.9)
    band <- predict(fit, new, interval = if (kind == "expectation") "credible" else "prediction", level = 0.9)
    expect_equal(as.numeric(p), unname(band[, "fit"]))
    expect_equal(as.matrix(as.data.frame(p)[c("CI_low", "CI_high")]), band[, -1], ignore_attr = TRUE)
  }
  expect_length(insight::get_predicted(fit), nrow(cars))
})

test_that("model_performance() has errors at rows seen and unseen", {
  skip_if_not_installed("performance")
  fit <- fit_cars()
  p <- performance::model_performance(fit)
  expect_s3_class(p, "performance_model")
  expect_equal(p$RMSE, sqrt(mean((cars$dist - fitted(fit))^2)))
  expect_equal(p$R2_loo, 1 - mean(residuals(fit, type = "loo")^2) / mean((cars$dist - mean(cars$dist))^2))
  expect_lt(p$R2_loo, p$R2)
  expect_equal(p$AIC, AIC(fit))
  expect_output(print(p), "RMSE")
})
