test_that("insight finds the parts of a fit", {
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

test_that("for classes and counts insight gets the family, and predictions are probabilities", {
  skip_if_not_installed("insight")
  classes <- pfdtc(am ~ wt + hp, mtcars, family = binomial(), kernel = kernel_se(c(1, 80), 4), hyper = "fixed", m = 8)
  counts <- pfdtc(carb ~ wt, mtcars, family = nb(3), kernel = kernel_se(1, 1), hyper = "fixed", m = 5)
  expect_true(insight::model_info(classes)$is_binomial)
  expect_true(insight::model_info(counts)$is_negbin)
  for (family in list(student(), tobit(10), weibull())) {
    fit <- pfdtc(mpg ~ wt, mtcars, family = family, kernel = kernel_se(1, 1), hyper = "fixed", m = 5)
    info <- insight::model_info(fit)
    expect_identical(info$is_censored, !identical(family, student()))
    expect_match(info$family, "student|tobit|Weibull")
  }
  p <- insight::get_predicted(classes, mtcars[1:3, ], ci = 0.9)
  band <- predict(classes, mtcars[1:3, ], interval = "credible", level = 0.9, type = "response")
  expect_equal(as.numeric(p), unname(band[, "fit"]))
  expect_equal(attr(p, "ci_data")$CI_low, unname(band[, "lwr"]))
  scores <- model_performance.gp_fit(classes)
  expect_equal(scores$NLPD, -mean(predict(classes, type = "density")))
  expect_equal(scores$Brier_loo, mean((mtcars$am - predict(classes, type = "loo"))^2))
})

test_that("model_parameters() has coef() and confint(), each in its own units", {
  fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se())
  p <- model_parameters.gp_fit(fit, ci = 0.8)
  expect_equal(stats::setNames(p$Coefficient, p$Parameter), coef(fit))
  expect_equal(cbind(p$CI_low, p$CI_high), unname(exp(confint(fit, level = 0.8))))
  expect_identical(names(p), c("Parameter", "Coefficient", "CI_low", "CI_high", "CI"))
  line <- pfdtc(dist ~ speed, cars, kernel = kernel_se(10, 100), noise = 200, hyper = "fixed", mean = ~ speed)
  p <- model_parameters.gp_fit(line)
  expect_equal(cbind(p$CI_low, p$CI_high)[1:2, ], unname(confint(line))) # no logs
  expect_true(all(is.na(p$CI_low[-(1:2)])))
  expect_equal(p$SE, unname(c(sqrt(diag(vcov(line)))[1:2], rep(NA, 3))))
  fixed <- model_parameters.gp_fit(pfdtc(dist ~ speed, cars, kernel = kernel_se(10, 100), noise = 200,
                                         hyper = "fixed"))
  expect_identical(names(fixed), c("Parameter", "Coefficient"))
  skip_if_not_installed("parameters")
  expect_output(print(parameters::model_parameters(fit, ci = 0.8)), "Hyperparameters.*80% CI")
  expect_null(insight::get_statistic(fit))
})

test_that("several classes have a row for each class and row, with the intervals of predict()", {
  skip_if_not_installed("insight")
  fit <- pfdtc(Species ~ Petal.Length, iris, family = multinomial(), kernel = kernel_se(0.8, 3), hyper = "fixed",
               m = 10)
  new <- iris[c(1, 120), ]
  p <- insight::get_predicted(fit, new, ci = 0.9)
  band <- predict(fit, new, type = "response", interval = "credible", level = 0.9)
  expect_equal(as.numeric(p), unname(c(band[, "fit", ])))
  about <- attr(p, "ci_data")
  expect_identical(about$Response, rep(levels(iris$Species), each = 2))
  expect_identical(about$Row, rep(1:2, 3))
  expect_equal(about$CI_low, unname(c(band[, "lwr", ])))
  expect_true(insight::model_info(fit)$is_multinomial)
})
