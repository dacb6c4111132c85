# Families choose between points alone and near rows by rows held out.

classes_of <- function(lengthscale, seed = 1, n = 2100) {
  with_seed(seed, {
    x <- matrix(stats::runif(2 * n), n)
    data.frame(x1 = x[, 1], x2 = x[, 2], y = stats::runif(n) <
                 stats::plogis(4 * sin(x[, 1] / lengthscale) * cos(x[, 2] / lengthscale)))
  })
}

fit_classes <- function(data, ..., seed = 2) {
  with_seed(seed, pfdtc(y ~ ., data, family = binomial(), ..., control = list(progress = FALSE)))
}

test_that("near rows are taken where they predict rows held out better, which is told and the same by set.seed()", {
  data <- classes_of(0.03)
  kernel <- kernel_matern(1 / 2, 0.1, 8)
  fit <- fit_classes(data, kernel = kernel, hyper = "fixed")
  expect_identical(fit$neighbours, 40L)
  expect_identical(fit$trial[["rows"]], 420)
  expect_lt(fit$trial[["gain"]], -fit$trial[["se"]])
  expect_equal(fit$kernel$lengthscale, c(x1 = 0.1, x2 = 0.1)) # what is given is kept
  expect_equal(fit$kernel$variance, 8)
  expect_output(print(fit), "40 nearest rows .*log density at\\s+420\\s+rows\\s+held\\s+out")
  expect_identical(predict(fit_classes(data, kernel = kernel, hyper = "fixed")), predict(fit))
  # who says what is to be has it, untried
  for (fit in list(fit_classes(data, kernel = kernel, hyper = "fixed", neighbours = 0),
                   fit_classes(data, kernel = kernel, hyper = "fixed", m = 50))) {
    expect_null(fit$trial)
    expect_identical(fit$neighbours, 0L)
  }
})

test_that("what near rows show is learned where points carry too little", {
  data <- classes_of(0.03)
  fit <- fit_classes(data, kernel = kernel_matern(5 / 2))
  expect_identical(fit$neighbours, 40L)
  expect_lt(max(fit$kernel$lengthscale), 0.2) # waves of length 0.19: by 120 points it comes out above 1
  expect_lt(mean(-predict(fit, classes_of(0.03, seed = 3), type = "density")), 0.6) # 0.69 is a coin's
})

test_that("points alone stay where they predict as well, and where near rows come to no rest", {
  smooth <- classes_of(1)
  kernel <- kernel_se(1.5, 4)
  fit <- fit_classes(smooth, kernel = kernel, hyper = "fixed")
  expect_identical(fit$neighbours, 0L)
  expect_gt(fit$trial[["gain"]], -1e-3)
  expect_output(print(fit), "none; points\\s+alone\\s+have")
  rough <- classes_of(0.03)
  restless <- function(data, z, f, sites, model, ...) {
    expect_length(model$kernel$variance, 1)
    warn_convergence("f did not come to rest")
  }
  expect_no_warning(fit <- with_replaced(list(near_laplace = restless), {
    fit_classes(rough, kernel = kernel_matern(1 / 2, 0.1, 8), hyper = "fixed")
  }))
  expect_null(fit$near)
  expect_equal(predict(fit), predict(fit_classes(rough, kernel = kernel_matern(1 / 2, 0.1, 8), hyper = "fixed",
                                                 neighbours = 0)))
  # nor are variances raised of what came to no rest to begin with
  expect_no_warning(fit <- with_replaced(list(near_laplace = restless), fit_classes(rough, kernel = kernel_se())))
  expect_identical(fit$neighbours, 0L)
})

test_that("variances are multiplied, of every term", {
  kernel <- place_kernel(kernel_se(2, 3, inputs = 1) + kernel_matern(1 / 2, 1, 5, inputs = 2), matrix(0, 2, 2))
  wider <- with_variances(kernel, 3)
  expect_equal(kernel_values(wider) / kernel_values(kernel), c(1, 3, 1, 3))
})
