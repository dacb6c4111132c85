task_of <- function(data = small_data(30), ...) mlr3::as_task_regr(data, target = "y", ...)

test_that("a learner has the predictions of pfdtc(), also with factors", {
  skip_if_not_installed("mlr3")
  data <- small_data(30)[c("y", "a", "f")]
  names(data)[2] <- "a b"
  learner <- mlr3::lrn("regr.pfdtc", kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed", predict_type = "se")
  expect_identical(class(learner), class(mlr3_learner()))
  task <- task_of(data)
  learner$train(task, 1:20)
  own <- pfdtc(y ~ `a b` + f, data[1:20, ], kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  got <- learner$predict(task, 21:30)
  expected <- predict(own, data[21:30, ], se.fit = TRUE)
  expect_equal(got$response, unname(expected$fit))
  expect_equal(got$se, unname(expected$se.fit))
  expect_s3_class(learner$model, "gp_fit")
  # Predict at new data, with a clone, and with a saved learner.
  expect_equal(learner$clone(deep = TRUE)$predict_newdata(data[21:30, ])$response, unname(expected$fit))
  saved <- unserialize(serialize(learner, NULL))
  expect_equal(saved$predict_newdata(data[21:30, ])$response, unname(expected$fit))
})

test_that("weights are precisions, and parameters arguments of pfdtc()", {
  skip_if_not_installed("mlr3")
  data <- small_data(30)[c("y", "a")]
  data$w <- seq_len(30) / 10
  task <- task_of(data)
  task$set_col_roles("w", "weights_learner")
  learner <- mlr3_learner(kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed", m = 5, neighbours = 0)
  learner$train(task)
  own <- pfdtc(y ~ a, data, weights = w, kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed", m = 5,
               neighbours = 0)
  expect_equal(learner$predict(task)$response, unname(predict(own, data)))
  expect_identical(learner$model$m, 5L)
  expect_error(mlr3_learner(inducing_points = 5), "inducing_points")
  expect_error(mlr3_learner(m = 0), "m")
})

test_that("a learner is resampled", {
  skip_if_not_installed("mlr3")
  data <- small_data(30)[c("y", "a")]
  folds <- mlr3::rsmp("custom")
  folds$instantiate(task_of(data), list(1:15, 16:30), list(16:30, 1:15))
  learner <- mlr3_learner(kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  got <- mlr3::resample(task_of(data), learner, folds)$score(mlr3::msr("regr.mse"))$regr.mse
  mse <- function(train, test) {
    fit <- pfdtc(y ~ a, data[train, ], kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
    mean((data$y[test] - predict(fit, data[test, ]))^2)
  }
  expect_equal(got, c(mse(1:15, 16:30), mse(16:30, 1:15)))
})

test_that("a learner of classes predicts their probabilities and the likeliest", {
  skip_if_not_installed("mlr3")
  kernel <- kernel_se(c(1, 0.5), 4)
  two <- droplevels(iris[51:150, 3:5])
  for (data in list(iris[3:5], two)) {
    task <- mlr3::as_task_classif(data, target = "Species")
    learner <- mlr3::lrn("classif.pfdtc", kernel = kernel, hyper = "fixed", predict_type = "prob")
    rows <- seq(1, nrow(data), 7)
    learner$train(task)
    got <- learner$predict(task, rows)
    own <- pfdtc(Species ~ Petal.Length + Petal.Width, data, kernel = kernel, hyper = "fixed")
    p <- predict(own, data[rows, ], type = "response")
    last <- utils::tail(levels(data$Species), 1)
    expect_equal(unname(got$prob[, last]), unname(if (is.matrix(p)) p[, last] else p))
    expect_equal(rowSums(got$prob), rep(1, length(rows)))
    learner$predict_type <- "response"
    expect_equal(as.character(learner$predict(task, rows)$response),
                 as.character(unname(predict(own, data[rows, ], type = "class"))))
  }
  expect_error(mlr3_learner(type = "surv"), class = "pfdtc_error_input")
})
