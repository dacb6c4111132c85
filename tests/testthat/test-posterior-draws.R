# Returns mean and covariance of draws by paths. Paths are linear in their normal numbers, so that unit vectors
# determine them exactly.
law_of_paths <- function(fit, x) {
  with_seed(1, {
    sizes <- integer()
    mean <- draw_paths(fit, x, 1L, function(n, nsim) {
      sizes <<- c(sizes, n)
      matrix(0, n, nsim)
    })
    at <- 0L
    images <- draw_paths(fit, x, sum(sizes), function(n, nsim) {
      unit <- matrix(0, n, nsim)
      unit[cbind(seq_len(n), at + seq_len(n))] <- 1
      at <<- at + n
      unit
    }) - drop(mean)
    list(mean = drop(mean), cov = tcrossprod(images))
  })
}

path_fits <- function(p) {
  fit_by <- function(by, ...) {
    by(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", weights = p$weights, ...)
  }
  still <- pfdtc_control(maxit = 0)
  list(exact = fit_by(gp_exact), far = fit_by(pfdtc, inducing = p$z, neighbours = 0, control = still),
       sor = fit_by(gp_sor, inducing = p$z), fitc = fit_by(gp_fitc, inducing = p$z),
       near = fit_by(pfdtc, inducing = p$z, neighbours = 5, control = still),
       some = with_seed(2, fit_by(gp_subsample, m = 9)))
}

test_that("with all earlier points as neighbours, paths have the distribution of predictions, for every posterior", {
  p <- problem("matern32", n = 14, d = 2, m = 4, seed = 3, weighted = TRUE)
  x <- rbind(p$new, p$x[3, ], p$x[3, ])              # a training row, twice
  fits <- path_fits(p)
  for (name in names(fits)) {
    got <- law_of_paths(fits[[name]], x)
    expected <- predict(fits[[name]], x, se.fit = TRUE, full_cov = TRUE)
    expect_close(got$mean, unname(expected$fit), 1e-8, name)
    # Each point has noise of a millionth of the prior variance.
    expect_lt(max(abs(got$cov - expected$cov)), 1e-5 * p$kernel$variance, label = name)
  }
})

test_that("with the 30 nearest points paths are close to this distribution", {
  p <- problem("matern32", n = 60, d = 2, m = 10, seed = 4)
  x <- with_seed(1, cbind(runif(60, -3, 3), runif(60, -3, 3)))
  for (name in c("exact", "far", "near")) {
    fit <- path_fits(p)[[name]]
    got <- law_of_paths(fit, x)
    expected <- predict(fit, x, se.fit = TRUE, full_cov = TRUE)
    expect_close(got$mean, unname(expected$fit), 1e-8, name)
    expect_lt(max(abs(got$cov - expected$cov)), 0.02 * p$kernel$variance, label = name)
  }
})

test_that("simulate() uses paths for more than 2,000 rows", {
  only_nightly()
  fit <- gp_exact(cars$speed, cars$dist, kernel = kernel_matern(3 / 2, 6, 900), noise = 200, hyper = "fixed")
  new <- seq(0, 30, length.out = 3000)
  drawn <- simulate(fit, nsim = 200, seed = 1, newdata = new, type = "latent")
  expect_identical(drawn, simulate(fit, nsim = 200, seed = 1, newdata = new, type = "latent"))
  few <- seq(1, 3000, 100)
  p <- predict(fit, new[few], se.fit = TRUE, full_cov = TRUE)
  z <- (rowMeans(drawn)[few] - p$fit) / (p$se.fit / sqrt(200))
  expect_lt(max(abs(z)), 4.5)                        # z has 30 values, nearly normal
  sampled <- stats::cov(t(as.matrix(drawn[few, ])))
  expect_lt(max(abs(stats::cov2cor(sampled) - stats::cov2cor(p$cov))), 0.35) # 4.5 / sqrt(200)
  # Neighbours of a path are close: increments are as small as the kernel implies.
  step <- drawn[2:3000, 1] - drawn[1:2999, 1]
  expect_lt(stats::sd(step), 0.2)                    # independent draws would have 20 or more
})

test_that("30,000 points with neighbours are drawn as paths, because a covariance matrix would not fit in memory", {
  only_nightly()
  p <- problem("matern12", n = 400, d = 2, m = 20, seed = 4)
  fit <- with_seed(1, pfdtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed",
                            inducing = p$z, neighbours = 20))
  x <- with_seed(1, cbind(runif(3e4, -3, 3), runif(3e4, -3, 3)))
  expect_error(predict(fit, x, full_cov = TRUE), "max_memory", class = "pfdtc_error_input")
  drawn <- simulate(fit, nsim = 2, seed = 1, newdata = x, type = "latent")
  p <- predict(fit, x, se.fit = TRUE)
  z <- (drawn[[1]] - p$fit) / p$se.fit
  expect_lt(abs(mean(z^2) - 1), 0.2)                 # neighbouring points are correlated
})
