fixed_fit <- function(...) {
  pfdtc(dist ~ speed, cars, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", ...)
}

test_that("a worker that has not attached the package predicts, and so does a new session", {
  fit <- fixed_fit()
  new <- data.frame(speed = c(5, 15))
  job <- function(fit, new) list(stats::predict(fit, new), "package:pfdtc" %in% search())
  environment(job) <- baseenv()
  cluster <- parallel::makePSOCKcluster(1L)
  on.exit(parallel::stopCluster(cluster))
  expect_identical(parallel::clusterCall(cluster, job, fit, new)[[1]], list(predict(fit, new), FALSE))
  parallel::stopCluster(cluster)

  cluster <- parallel::makePSOCKcluster(1L)     # which has not even loaded it
  path <- tempfile(fileext = ".rds")
  saveRDS(reference(fit, m2 = 8), path)
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
