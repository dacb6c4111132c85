# noise = 0: interpolation.

branin <- function(x) {
  u <- 15 * x[, 1] - 5
  v <- 15 * x[, 2]
  (v - 5.1 / (4 * pi^2) * u^2 + 5 / pi * u - 6)^2 + 10 * (1 - 1 / (8 * pi)) * cos(u) + 10
}

simulator <- function(n, f = branin, seed = 1) {
  x <- with_seed(seed, matrix(stats::runif(2 * n), n, dimnames = list(NULL, c("a", "b"))))
  data.frame(x, y = f(x))
}

test_that("noise = 0 interpolates: the fit goes through the data, and certificates hold the exact GP", {
  data <- simulator(30)
  fit <- with_seed(1, pfdtc(y ~ ., data, noise = 0, control = list(progress = FALSE)))
  expect_equal(fit$noise, 1e-10 * stats::var(data$y) * 29 / 30, tolerance = 1e-6)
  expect_lt(max(abs(predict(fit) - data$y)), 1e-3 * stats::sd(data$y))
  expect_identical(fit$df, length(coef(fit)) - 1L) # the noise is held
  expect_false("log(noise)" %in% rownames(vcov(fit)))
  expect_output(print(fit), "interpolation")
  new <- simulator(20, seed = 2)
  interval <- certify(fit, new)
  p <- predict(fit, new)
  expect_true(all(interval$mean_lower <= p & p <= interval$mean_upper))
  # the same posterior by dense algebra, whose condition number of 1e10 leaves six digits
  inputs <- as.matrix(data[1:2])
  cross <- kernel_matrix(fit$kernel, as.matrix(new[1:2]), inputs)
  K <- kernel_matrix(fit$kernel, inputs) + diag(fit$noise, 30)
  expect_equal(unname(p), drop(mean(data$y) + cross %*% solve(K, data$y - mean(data$y))), tolerance = 1e-4)
  # a kernel of large variance asks for more noise
  kernel <- kernel_matern(5 / 2, c(0.5, 0.5), 1e8 * stats::var(data$y))
  large <- pfdtc(y ~ ., data, noise = 0, hyper = "fixed", kernel = kernel)
  expect_equal(large$noise, 1e-5 * stats::var(data$y), tolerance = 1e-6)
  again <- with_seed(1, cross_validate(fit, folds = 3, hyper = "held"))
  expect_true(all(is.finite(again$rmse)))
})

test_that("noise = 0 is refused where equal inputs have different responses", {
  expect_error(pfdtc(dist ~ speed, cars, noise = 0), "equal inputs", class = "pfdtc_error_input")
})
