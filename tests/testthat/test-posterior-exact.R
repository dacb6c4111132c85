# The exact posterior's doors: evidence, its gradient, factor, prediction.

exact_kernel <- function(p) engine_ready(package_kernel(p$kernel), p$x)
engine_ready <- function(kernel, x) complete_kernel(kernel, check_matrix(x, "x"))

test_that("the evidence is the dense log density", {
  for (p in problems()) {
    k <- exact_kernel(p)
    ref <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)$evidence
    expect_close(native_exact_evidence(p, new_model(k, p$noise))$value, -ref, 1e-10, label_of(p))
    expect_close(native_exact(p, new_model(k, p$noise))$minus_evidence, -ref, 1e-10, label_of(p))
  }
})

test_that("its slopes are those of the value, by complex steps through the reference and by differences", {
  for (p in problems()) {
    d <- length(p$kernel$lengthscale)
    dense <- function(theta) {
      kernel <- p$kernel
      kernel$lengthscale <- exp(theta[seq_len(d)])
      kernel$variance <- exp(theta[d + 1])
      -ref_exact(p$x, p$y, kernel, exp(theta[d + 2]), p$weights)$evidence
    }
    evaluate <- function(theta) {
      kernel <- exact_kernel(p)
      kernel$lengthscale[] <- exp(theta[seq_len(d)])
      kernel$variance <- exp(theta[d + 1])
      native_exact_evidence(p, new_model(kernel, exp(theta[d + 2])))
    }
    theta <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
    at <- evaluate(theta)
    gradient <- c(at$theta, at$noise)
    expect_close(gradient, ref_derivative(dense, theta), 1e-8, label_of(p))
    expect_gradient(function(t) evaluate(t)$value, theta, gradient, info = label_of(p))
  }
})

test_that("the factor is that of K + s2 / w, and alpha solves it", {
  p <- problem("matern32", n = 17, weighted = TRUE)
  post <- native_exact(p, new_model(exact_kernel(p), p$noise))
  ky <- ref_k(p$kernel, p$x) + diag(p$noise / p$weights)
  lower <- post$L
  lower[upper.tri(lower)] <- 0
  expect_close(lower %*% t(lower), ky, 1e-13)
  expect_close(post$alpha, solve(ky, p$y), 1e-11)
})

test_that("block size and threads change nothing beyond rounding, inputs come back untouched", {
  p <- problem("matern52", n = 37, weighted = TRUE)
  k <- exact_kernel(p)
  copies <- list(p$x + 0, p$y + 0, p$weights + 0)
  all <- function(control) {
    post <- native_exact(p, new_model(k, p$noise), control)
    c(list(post), native_exact_evidence(p, new_model(k, p$noise), control),
      native_exact_predict(post, p$x, k, p$new))
  }
  base <- all(NULL)
  for (block in c(1L, 5L, 36L, 40L)) {
    for (threads in 1:2) {
      control <- pfdtc_control(block = block, threads = threads)
      now <- list(pfdtc.block = block, pfdtc.threads = threads)
      expect_equal(with_options(now, all(control)), base, tolerance = 1e-11)
    }
  }
  expect_identical(list(p$x, p$y, p$weights), copies)
})

test_that("prediction's variance is the diagonal of its covariance, and is never below zero", {
  for (p in problems()) {
    k <- exact_kernel(p)
    post <- native_exact(p, new_model(k, p$noise))
    new <- rbind(p$new, p$x)
    v <- native_exact_predict(post, p$x, k, new)$variance
    cov <- native_exact_covariance(post, p$x, k, new)
    expect_close(diag(cov), v, 1e-10)
    expect_identical(cov, t(cov))
    expect_true(all(v >= 0))
  }
  tiny <- utils::modifyList(problem("se", n = 9), list(noise = 1e-14))
  k <- exact_kernel(tiny)
  post <- native_exact(list(x = tiny$x, y = tiny$y), new_model(k, tiny$noise))
  expect_true(all(native_exact_predict(post, tiny$x, k, tiny$x)$variance >= 0))
})

test_that("one row and one column do, and a singular matrix is a numerical error", {
  k <- engine_ready(kernel_se(1, 2), cbind(0))
  one <- native_exact_evidence(list(x = cbind(0), y = 3), new_model(k, 0.5))
  expect_equal(one$value, -stats::dnorm(3, sd = sqrt(2.5), log = TRUE))
  expect_equal(one$theta[2], 2 * (1 / 2.5 - 9 / 2.5^2) / 2)
  expect_equal(one$noise, 0.5 * (1 / 2.5 - 9 / 2.5^2) / 2)
  same <- matrix(0, 4, 1)
  expect_error(native_exact(list(x = same, y = 1:4 + 0), new_model(k, 1e-18)), class = "pfdtc_error_numerical")
  failed <- native_exact_evidence(list(x = same, y = 1:4 + 0), new_model(k, 1e-18))
  expect_identical(failed$value, Inf)
  expect_type(failed$reason, "character")
})

test_that("nasty problems: finite, and the reference's", {
  for (name in names(nasty_problems())) {
    p <- nasty_problems()[[name]]
    fit <- fit_by("gp_exact", p)
    ref <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    # both solve with K + s2 / w: as many digits as its condition number leaves
    w <- ref_weights(p$weights, p$x)
    lost <- 1e-15 * (nrow(p$x) * p$kernel$variance + max(p$noise / w)) / min(p$noise / w)
    got <- predict(fit, p$new, se.fit = TRUE)
    expect_close(unname(got$fit), ref$mean(p$new), max(1e-9, lost), name)
    expect_lt(max(abs(got$se.fit^2 - ref_variance(ref, p$new))), max(1e-10, lost) * p$kernel$variance)
    expect_close(fit$evidence, ref$evidence, max(1e-9, lost), name)
  }
})

test_that("the factor made in steps is the Cholesky factor, on either side of a step's width", {
  for (n in c(255, 256, 257, 520)) {
    x <- with_seed(n, matrix(stats::runif(2 * n), n))
    kernel <- complete_kernel(kernel_matern(3 / 2, c(0.3, 0.5), 2), x)
    w <- with_seed(1, stats::runif(n, 0.5, 2))
    made <- native_exact(list(x = x, y = x[, 1], weights = w), new_model(kernel, 0.01))
    Ky <- native_kernel_matrix(kernel, x, x) + diag(0.01 / w)
    expect_close(made$L, t(chol(Ky)), 1e-11, n)
    expect_close(made$alpha, solve(Ky, x[, 1]), 1e-9, n)
  }
  # and where it fails in a later step than the first
  twice <- x[c(1:400, 1:120), ]
  same <- list(x = twice, y = twice[, 1])
  expect_error(native_exact(same, new_model(kernel, 1e-30)), class = "pfdtc_error_numerical")
})

test_that("an interrupt ends a fit that learns nothing, rather than making it again", {
  p <- problem(n = 20)
  # the first call alone: a second one would succeed
  got <- tryCatch(with_interrupted("native_exact", 1, {
    gp_exact(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed")
  }), interrupt = function(i) "interrupted")
  expect_identical(got, "interrupted")
})
