fit_spec <- function(spec, data = small_data(20), formula = y ~ a + f) {
  parsnip::fit(parsnip::set_engine(spec, spec$engine, hyper = "fixed"), formula, data)
}

test_that("a fitted specification has the predictions of its engine", {
  skip_if_not_installed("parsnip")
  data <- small_data(20)
  new <- small_data(4, seed = 3)
  kernel <- kernel_se(1.3, 2)
  fitted <- fit_spec(gp_reg(kernel = kernel, noise = 0.4))
  own <- pfdtc(y ~ a + f, data, kernel = kernel, noise = 0.4, hyper = "fixed")
  expect_equal(predict(fitted, new)$.pred, unname(predict(own, new)))
  expect_equal(predict(fitted, new, type = "raw"), predict(own, new))
  for (type in c("conf_int", "pred_int")) {
    band <- predict(own, new, interval = if (type == "conf_int") "credible" else "prediction", level = 0.8)
    expect_equal(as.matrix(predict(fitted, new, type = type, level = 0.8)), band[, -1], ignore_attr = TRUE)
  }
})

test_that("probabilities, their intervals and classes of two classes are those of the engine", {
  skip_if_not_installed("parsnip")
  data <- transform(small_data(40), z = factor(ifelse(a + b > 0, "yes", "no")))
  new <- small_data(5, seed = 3)
  kernel <- kernel_se(1.3, 2)
  fitted <- fit_spec(gp_reg("classification", kernel = kernel), data, z ~ a + b)
  own <- pfdtc(z ~ a + b, data, family = binomial(), kernel = kernel, hyper = "fixed")
  p <- unname(predict(own, new, type = "response"))
  expect_equal(as.data.frame(predict(fitted, new, type = "prob")), data.frame(.pred_no = 1 - p, .pred_yes = p))
  expect_identical(predict(fitted, new)$.pred_class, unname(predict(own, new, type = "class")))
  band <- predict(own, new, interval = "credible", type = "response", level = 0.8)
  bands <- predict(fitted, new, type = "conf_int", level = 0.8)
  expect_equal(bands$.pred_upper_yes, unname(band[, "upr"]))
  expect_equal(bands$.pred_lower_no, 1 - bands$.pred_upper_yes)
  probit <- parsnip::set_engine(gp_reg("classification", kernel = kernel), "pfdtc", hyper = "fixed",
                                family = binomial("probit"))
  expect_identical(parsnip::fit(probit, z ~ a + b, data)$fit$likelihood$link, "probit")
  expect_error(fit_spec(gp_reg("classification"), data, f ~ a), class = "pfdtc_error_input")
  expect_error(fit_spec(gp_reg("classification", "pfdtc_exact"), data, z ~ a))
})

test_that("more than two classes have a column of probabilities each", {
  skip_if_not_installed("parsnip")
  kernel <- kernel_se(c(1, 0.5), 4)
  formula <- Species ~ Petal.Length + Petal.Width
  fitted <- fit_spec(gp_reg("classification", kernel = kernel), iris, formula)
  own <- pfdtc(formula, iris, family = multinomial(), kernel = kernel, hyper = "fixed")
  new <- iris[c(1, 71, 120), ]
  p <- unname(predict(own, new, type = "response"))
  got <- predict(fitted, new, type = "prob")
  expect_identical(names(got), paste0(".pred_", levels(iris$Species)))
  expect_equal(as.matrix(got), p, ignore_attr = TRUE)
  expect_identical(predict(fitted, new)$.pred_class, unname(predict(own, new, type = "class")))
  expect_identical(ncol(predict(fitted, new, type = "conf_int")), 6L)
})

test_that("censored regression predicts median times and survival at times", {
  skip_if_not_installed("parsnip")
  skip_if_not_installed("survival")
  skip_if_not_installed("prodlim") # parsnip asks for it
  formula <- survival::Surv(time, status) ~ karno + age
  d <- survival::veteran[1:60, ]
  kernel <- kernel_se(c(30, 20), 1)
  spec <- parsnip::set_engine(gp_reg("censored regression", kernel = kernel), "pfdtc", hyper = "fixed",
                              family = weibull())
  fitted <- parsnip::fit(spec, formula, d)
  own <- pfdtc(formula, d, family = weibull(), kernel = kernel, hyper = "fixed")
  new <- d[1:3, ]
  expect_equal(predict(fitted, new)$.pred_time, unname(predict(own, new, type = "median")))
  expect_equal(predict(fitted, new, type = "linear_pred")$.pred_linear_pred, unname(predict(own, new)))
  times <- c(30, 365.25 / 3)
  curves <- predict(fitted, new, type = "survival", eval_time = times)$.pred
  expect_equal(lapply(curves, function(one) one$.eval_time), rep(list(times), 3))
  S <- predict(own, new, type = "survival", times = times)
  expect_equal(t(vapply(curves, function(one) one$.pred_survival, times)), unname(S))
})

test_that("counts are predicted as such", {
  skip_if_not_installed("parsnip")
  data <- transform(small_data(40), k = with_seed(1, stats::rpois(40, exp(1 + a))))
  spec <- parsnip::set_engine(gp_reg(kernel = kernel_se(1.3, 2)), "pfdtc", hyper = "fixed", family = poisson())
  fitted <- parsnip::fit(spec, k ~ a, data)
  own <- pfdtc(k ~ a, data, family = poisson(), kernel = kernel_se(1.3, 2), hyper = "fixed")
  expect_equal(predict(fitted, data)$.pred, unname(predict(own, data, type = "response")))
  expect_equal(predict(fitted, data, type = "pred_int")$.pred_upper,
               unname(predict(own, data, interval = "prediction")[, "upr"]))
})

test_that("arguments reach the engine by its own names", {
  skip_if_not_installed("parsnip")
  data <- small_data(30)
  spec <- gp_reg(kernel = kernel_se(1.3, 2), noise = 0.4, inducing_points = 5, neighbors = 0)
  expect_identical(fit_spec(spec, data)$fit$m, 5L)
  expect_identical(fit_spec(update(spec, inducing_points = 4), data)$fit$m, 4L)
  # The value of m is found where the call was written.
  some <- lapply(c(3, 6), function(m) fit_spec(update(spec, inducing_points = m), data)$fit$m)
  expect_identical(some, list(3L, 6L))
  exact <- fit_spec(gp_reg(engine = "pfdtc_exact", kernel = kernel_se(1.3, 2), noise = 0.4), data)
  expect_s3_class(exact$fit, "gp_exact")
  expect_true(all(c("inducing_points", "neighbors") %in% generics::tunable(spec)$name))
})

test_that("case weights are precisions", {
  skip_if_not_installed("parsnip")
  data <- small_data(20)
  spec <- parsnip::set_engine(gp_reg(kernel = kernel_se(1.3, 2), noise = 0.4), "pfdtc", hyper = "fixed")
  w <- seq_len(20) / 10
  fitted <- parsnip::fit(spec, y ~ a, data, case_weights = from("hardhat", "importance_weights")(w))
  own <- pfdtc(y ~ a, data, weights = w, kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  expect_equal(predict(fitted, data)$.pred, unname(predict(own, data)))
})

test_that("a workflow fits and predicts", {
  skip_if_not_installed("workflows")
  spec <- parsnip::set_engine(gp_reg(kernel = kernel_se(1.3, 2), noise = 0.4), "pfdtc", hyper = "fixed")
  flow <- from("workflows", "workflow")(y ~ a + f, spec)
  data <- small_data(20)
  own <- pfdtc(y ~ a + f, data, kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  expect_equal(predict(parsnip::fit(flow, data), data)$.pred, unname(predict(own, data)))
})

test_that("the engine fits the rows that a recipe in a workflow prepares", {
  skip_if_not_installed("workflows")
  skip_if_not_installed("recipes")
  data <- small_data(20)
  spec <- parsnip::set_engine(gp_reg(kernel = kernel_se(1.3, 2), noise = 0.4), "pfdtc", hyper = "fixed")
  recipe <- from("recipes", "recipe")(y ~ a + b, data)
  steps <- from("recipes", "step_normalize")(recipe, from("recipes", "all_numeric_predictors")())
  flow <- from("workflows", "add_recipe")(from("workflows", "workflow")(), steps)
  flow <- parsnip::fit(from("workflows", "add_model")(flow, spec), data)
  z <- transform(data, a = (a - mean(a)) / sd(a), b = (b - mean(b)) / sd(b))
  own <- pfdtc(y ~ a + b, z, kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  expect_equal(predict(flow, data)$.pred, unname(predict(own, z)))
})

test_that("points, neighbours, kernel and noise are tuned by scores of fits to the folds' rows", {
  skip_if_not_installed("tune")
  skip_if_not_installed("rsample")
  data <- small_data(30)
  folds <- with_seed(1, from("rsample", "vfold_cv")(data, v = 2))
  metrics <- from("yardstick", "metric_set")(from("yardstick", "rmse"))
  scores <- function(spec, grid) {
    flow <- from("workflows", "workflow")(y ~ a, parsnip::set_engine(spec, "pfdtc", hyper = "fixed"))
    found <- from("tune", "tune_grid")(flow, folds, grid = grid, metrics = metrics)
    expect_identical(nrow(from("tune", "collect_notes")(found)), 0L)
    from("tune", "collect_metrics")(found)
  }
  rmse <- function(...) {
    mean(vapply(folds$splits, function(split) {
      fit <- pfdtc(y ~ a, from("rsample", "analysis")(split), hyper = "fixed", ...)
      left <- from("rsample", "assessment")(split)
      sqrt(mean((left$y - predict(fit, left))^2))
    }, 0))
  }
  grid <- data.frame(inducing_points = c(2, 10), neighbors = c(0, 5))
  kernel <- kernel_se(1.3, 2)
  tuned <- from("tune", "tune")()
  spec <- gp_reg(kernel = kernel, noise = 0.4, inducing_points = tuned, neighbors = tuned)
  got <- scores(spec, grid)
  expect_setequal(got$inducing_points, grid$inducing_points)
  for (i in 1:2) {
    expect_equal(got$mean[got$inducing_points == grid$inducing_points[i]],
                 rmse(kernel = kernel, noise = 0.4, m = grid$inducing_points[i], neighbours = grid$neighbors[i]))
  }
  # Parameters have default ranges.
  expect_identical(nrow(dials::grid_regular(from("tune", "extract_parameter_set_dials")(spec), levels = 2)), 4L)

  kernels <- from("tibble", "tibble")(kernel = list(kernel_se(1.3, 2), kernel_matern(1 / 2, 0.1, 2)),
                                      noise = c(0.4, 0.1))
  got <- scores(gp_reg(kernel = from("tune", "tune")(), noise = from("tune", "tune")()), kernels)
  expect_equal(sort(got$mean), sort(c(rmse(kernel = kernels$kernel[[1]], noise = 0.4),
                                      rmse(kernel = kernels$kernel[[2]], noise = 0.1))))
})
