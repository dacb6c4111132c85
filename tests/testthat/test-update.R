fixed_fit <- function(...) {
  pfdtc(dist ~ speed, cars, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", ...)
}

test_that("update() changes what it is told to, and nothing else", {
  fit <- fixed_fit()
  expect_equal(predict(update(fit)), predict(fit))
  fewer <- update(fit, m = 5, neighbours = 0)
  expect_identical(fewer$m, 5L)
  expect_identical(fewer$call$m, 5)
  expect_null(update(fewer, m = NULL, evaluate = FALSE)$m)
  other <- update(fit, log(dist) ~ .)
  expect_identical(deparse(formula(other)), "log(dist) ~ speed")
  expect_identical(update(fit, noise = 3, evaluate = FALSE)$noise, 3)
  expect_equal(coef(update(fit, noise = 3))[["noise"]], 3)
  expect_input_error(update(fit, 3 + 4, 5), "...")
})

test_that("fits made inside functions are updated, with what was local there", {
  made <- (function() {
    rows <- cars[1:40, ]
    points <- 6
    kernel <- kernel_se(6, 900)
    w <- rep(c(1, 2), 20)
    pfdtc(dist ~ speed, rows, m = points, neighbours = 0, kernel = kernel, noise = 200, hyper = "fixed", weights = w,
          control = pfdtc_control(maxit = 0))
  })()
  again <- update(made, noise = 100)
  expect_identical(nobs(again), 40L)
  expect_identical(again$m, 6L)
  expect_equal(weights(again), weights(made))
  expect_identical(again$call$m, quote(points))
  rows <- cars[1:30, ]     # the caller's, which it says
  w <- rep(1, 30)
  expect_identical(nobs(update(made, data = rows, weights = w)), 30L)
  expect_identical(nobs(update(made)), 40L)

  by_kernel <- lapply(c(4, 8), function(l) fixed_fit())
  expect_equal(predict(update(by_kernel[[1]], m = 5)), predict(fixed_fit(m = 5)))
  matrix_fit <- (function() {
    inputs <- cbind(a = cars$speed)
    pfdtc(inputs, cars$dist, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", offset = rep(1, 50))
  })()
  expect_equal(predict(update(matrix_fit)), predict(matrix_fit))
  expect_equal(coef(update(matrix_fit, noise = 100))[["noise"]], 100)
})

test_that("what cannot be updated says so", {
  fit <- fit_fixed(keep_data = FALSE)
  expect_input_error(update(fit), "keep_data")
  expect_input_error(update(fit_fixed(), . ~ . + z), "x")
  without <- fixed_fit()
  without["call"] <- list(NULL)
  expect_input_error(update(without), "object")
})

test_that("a worker that has not attached the package predicts, and so does a new session", {
  fit <- fixed_fit()
  new <- data.frame(speed = c(5, 15))
  job <- function(fit, new) list(stats::predict(fit, new), "package:pfdtc" %in% search())
  environment(job) <- baseenv()
  cluster <- parallel::makePSOCKcluster(1L)
  on.exit(parallel::stopCluster(cluster))
  expect_identical(parallel::clusterCall(cluster, job, fit, new)[[1]], list(predict(fit, new), FALSE))

  path <- tempfile(fileext = ".rds")
  saveRDS(fit$reference <- reference(fit, m2 = 8), path)
  read <- function(path) nobs(readRDS(path))
  environment(read) <- asNamespace("stats")
  expect_identical(parallel::clusterCall(cluster, read, path)[[1]], 50L)
  unlink(path)
})

test_that("future sends fits as they are", {
  skip_if_not_installed("future")
  fit <- fixed_fit()
  plan <- future::plan(future::multisession, workers = 2)
  on.exit(future::plan(plan))
  p <- future::value(future::future(predict(fit, data.frame(speed = 5))))
  expect_equal(p, predict(fit, data.frame(speed = 5)))
})
