# A line in all inputs beside the kernel that is chosen, or in its place.

line_data <- function(n, d, f, sd, seed = 1) {
  with_seed(seed, {
    x <- matrix(stats::runif((n + 1000) * d), n + 1000, dimnames = list(NULL, paste0("x", seq_len(d))))
    data <- data.frame(x, y = f(x) + sd * stats::rnorm(n + 1000))
    list(train = data[seq_len(n), ], test = data[-seq_len(n), ], f = f(x)[-seq_len(n)])
  })
}

learn_rows <- function(data, ...) with_seed(1, pfdtc(y ~ ., data$train, ..., control = list(progress = FALSE)))

nlpd_of <- function(y, mean, sd) mean(-stats::dnorm(y, mean, sd, log = TRUE))

# As where no kernel is given.
open_settings <- function(data) {
  names <- c(paste0("lengthscale.", colnames(data$x)), "variance", "noise")
  s <- learning_settings(place_kernel(kernel_se(), data$x), NULL, colnames(data$x), names,
                         pfdtc_control(progress = FALSE))
  s$kernel["profile"] <- list(NULL)
  s
}

line_problem <- function(data, profile = "mean") {
  s <- open_settings(data)
  with_seed(1, learning_problem(learning_rows(data, s), s, profile))
}

three_slopes <- function(x) 2 * x[, 1] - x[, 2] + 0.5 * x[, 3]

test_that("the evidence of a line alone is that of its kernel, and the search ends at the largest", {
  x <- with_seed(1, matrix(stats::rnorm(120), 40))
  y <- with_seed(2, drop(x %*% c(1, -0.5, 0)) + stats::rnorm(40))
  again <- c(seq_len(40), 1:5) # equal rows are merged
  data <- data_from_matrix(x[again, ], y[again] + rep(0:1, c(40, 5)), weights = with_seed(3, stats::runif(45, 0.2, 3)))
  problem <- line_problem(data)
  line <- line_alone(problem)
  exact <- evaluate_exactly(problem, line$theta)
  expect_close(line$value, exact$value, 1e-10)
  expect_lt(max(abs(exact$gradient)), 0.05) # a step promises less than a thousandth of a nat
  # that of some rows, as of all
  expect_close(value_of_some(line), exact$value, 1e-10)
  many <- with_seed(4, data_from_matrix(matrix(stats::runif(1500)), stats::rnorm(1500)))
  line <- line_alone(line_problem(many))
  expect_equal(value_of_some(line), line$value, tolerance = 0.05)
})

test_that("of a linear truth the default is the line, as near to it as lm() and as sure", {
  for (n in c(150, 2200)) {
    data <- line_data(n, 3, three_slopes, 0.3)
    fit <- learn_rows(data)
    expect_identical(fit$kernel$profile, "mean")
    expect_identical(fit$kernels$kernel[fit$kernels$chosen], "linear mean")
    expect_output(print(fit), "linear mean")
    ols <- stats::lm(y ~ ., data$train)
    error <- function(model) sqrt(mean((predict(model, data$test) - data$f)^2))
    expect_lt(error(fit), 1.05 * error(ols)) # slopes are drawn in by a hundredth
    expect_equal(coef(fit)[1:4], coef(ols), tolerance = 0.05)
    expect_equal(sqrt(diag(vcov(fit)))[1:4], sqrt(diag(stats::vcov(ols))), tolerance = 0.02)
  }
  # of many rows d + 1 points are all there is, and the certificate says so
  expect_identical(c(fit$posterior, fit$m), c("far", "4"))
  certificate <- certify(fit, data$test[1:5, ])
  expect_lt(max(certificate$mean_error), 1e-6)
  expect_lt(max(abs(predict(fit, data$test, hyper_uncertainty = TRUE) - predict(fit, data$test))), 1e-3)
})

test_that("of pure noise the default predicts as the mean does", {
  for (n in c(500, 2200)) {
    data <- line_data(n, if (n == 500) 10 else 3, function(x) 0 * x[, 1], 1, seed = 2)
    fit <- learn_rows(data)
    p <- predict(fit, data$test, se.fit = TRUE, type = "response")
    own <- nlpd_of(data$test$y, p$fit, p$se.fit)
    expect_lt(own, nlpd_of(data$test$y, mean(data$train$y), stats::sd(data$train$y)) + 0.003)
  }
})

test_that("a line is taken beside a kernel, and the posterior is that of the sum", {
  data <- line_data(300, 2, function(x) 4 * x[, 1] - 2 * x[, 2] + 0.4 * sin(12 * x[, 1]), 0.1)
  fit <- learn_rows(data)
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "[+] linear mean$")
  expect_identical(fit$df, 5L)
  y <- data$train$y
  new <- data$test[1:20, ]
  inputs <- as.matrix(data$train[1:2])
  cross <- kernel_matrix(fit$kernel, as.matrix(new[1:2]), inputs)
  solved <- solve(kernel_matrix(fit$kernel, inputs) + diag(fit$noise, 300), cbind(y - mean(y), t(cross)))
  variance <- diag(kernel_matrix(fit$kernel, as.matrix(new[1:2]))) - rowSums(cross * t(solved[, -1]))
  p <- predict(fit, new, se.fit = TRUE)
  expect_equal(unname(p$fit), unname(drop(mean(y) + cross %*% solved[, 1])), tolerance = 1e-7)
  expect_equal(unname(p$se.fit), unname(sqrt(variance)), tolerance = 1e-5)
  terms <- predict(fit, new, type = "terms")
  expect_equal(unname(rowSums(terms) + attr(terms, "constant")), unname(p$fit), tolerance = 1e-8)
  # inducing points at these hyperparameters, certified against the same posterior
  sparse <- with_seed(1, pfdtc(y ~ ., data$train, kernel = fit$kernel, noise = fit$noise, hyper = "fixed", m = 15))
  certificate <- suppressMessages(certify(sparse, new))
  expect_true(all(abs(predict(sparse, new) - p$fit) <= certificate$mean_error + 1e-6))
  more <- add_rows(fit, data$test[21:40, ])
  expect_identical(more$kernel, fit$kernel)
  expect_identical(nobs(more), 320L)
  file <- tempfile()
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), new), predict(fit, new))
})

test_that("no line is taken where there is none, where few rows decide nothing, or beside what cannot be computed", {
  circle <- line_data(300, 2, function(x) 2 * ((x[, 1] - 0.5)^2 + (x[, 2] - 0.5)^2 < 0.16), 0.3)
  fit <- learn_rows(circle)
  expect_false(has_profile(fit$kernel, "mean"))
  expect_true("linear mean" %in% fit$kernels$kernel)
  expect_output(print(summary(fit)), "linear mean +[+]")
  few <- learn_rows(line_data(40, 3, three_slopes, 0.3))
  expect_false("linear mean" %in% few$kernels$kernel)
  # the merit of what was found is not known
  cleaned <- data_from_matrix(as.matrix(circle$train[1:2]), circle$train$y)
  now <- list(problem = line_problem(cleaned, "se"), value = -Inf, kernels = fit$kernels)
  now$theta <- now$problem$unit
  expect_identical(choose_line(now, open_settings(cleaned), list(value = -Inf))$problem$profile, "se")
})
