# Tests the C code of exact posteriors: log marginal likelihood, gradient, Cholesky factor, prediction.

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

test_that("derivatives of the evidence agree with complex steps through the reference and with differences", {
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
  for (n in c(17L, 130L)) { # 130 rows are two blocks of columns of the inverse
    p <- problem("matern32", n = n, weighted = TRUE)
    model <- new_model(exact_kernel(p), p$noise)
    precision <- native(ffi_exact_precision, native_exact(p, model)$L, engine_control(n))
    expect_close(precision, diag(solve(ref_k(p$kernel, p$x) + diag(p$noise / p$weights))), 1e-11)
    expect_close(precision, native_exact_evidence(p, model)$precision, 1e-12)
  }
})

test_that("block size and threads change nothing beyond rounding, and inputs are not changed", {
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
    cov <- native(ffi_covariance, engine_posterior(post, p$x, kernel = k), NULL, new, 0L)
    expect_close(diag(cov), v, 1e-10)
    expect_identical(cov, t(cov))
    expect_true(all(v >= 0))
  }
  tiny <- utils::modifyList(problem("se", n = 9), list(noise = 1e-14))
  k <- exact_kernel(tiny)
  post <- native_exact(list(x = tiny$x, y = tiny$y), new_model(k, tiny$noise))
  expect_true(all(native_exact_predict(post, tiny$x, k, tiny$x)$variance >= 0))
})

test_that("one row and one column suffice, and a singular matrix is a numerical error", {
  k <- engine_ready(kernel_se(1, 2), cbind(0))
  one <- native_exact_evidence(list(x = cbind(0), y = 3), new_model(k, 0.5))
  expect_equal(one$value, -stats::dnorm(3, sd = sqrt(2.5), log = TRUE))
  expect_equal(one$theta[2], 2 * (1 / 2.5 - 9 / 2.5^2) / 2)
  expect_equal(one$noise, 0.5 * (1 / 2.5 - 9 / 2.5^2) / 2)
  same <- matrix(0, 4, 1)
  # A noise of 1e-15 leaves a pivot above 0 that is rounding error alone.
  for (noise in c(1e-18, 1e-15)) {
    expect_error(native_exact(list(x = same, y = 1:4 + 0), new_model(k, noise)), class = "pfdtc_error_numerical")
  }
  failed <- native_exact_evidence(list(x = same, y = 1:4 + 0), new_model(k, 1e-18))
  expect_identical(failed$value, Inf)
  expect_type(failed$reason, "character")
})

test_that("nasty problems have the reference's finite results", {
  for (name in names(nasty_problems())) {
    p <- nasty_problems()[[name]]
    fit <- fit_by("gp_exact", p)
    ref <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    # Package and reference solve with K + s2 / w, and keep as many digits as its condition number allows.
    w <- ref_weights(p$weights, p$x)
    lost <- 1e-15 * (nrow(p$x) * p$kernel$variance + max(p$noise / w)) / min(p$noise / w)
    got <- predict(fit, p$new, se.fit = TRUE)
    expect_close(unname(got$fit), ref$mean(p$new), max(1e-9, lost), name)
    expect_lt(max(abs(got$se.fit^2 - ref_variance(ref, p$new))), max(1e-10, lost) * p$kernel$variance)
    expect_close(fit$evidence, ref$evidence, max(1e-9, lost), name)
  }
})

test_that("the factor computed in steps is the Cholesky factor, for sizes on both sides of a step's width", {
  for (n in c(255, 256, 257, 520)) {
    x <- with_seed(n, matrix(stats::runif(2 * n), n))
    kernel <- complete_kernel(kernel_matern(3 / 2, c(0.3, 0.5), 2), x)
    w <- with_seed(1, stats::runif(n, 0.5, 2))
    made <- native_exact(list(x = x, y = x[, 1], weights = w), new_model(kernel, 0.01))
    Ky <- native_kernel_matrix(kernel, x, x) + diag(0.01 / w)
    expect_close(made$L, t(chol(Ky)), 1e-11, n)
    expect_close(made$alpha, solve(Ky, x[, 1]), 1e-9, n)
  }
  # The factorisation may also fail after the first step.
  twice <- x[c(1:400, 1:120), ]
  same <- list(x = twice, y = twice[, 1])
  expect_error(native_exact(same, new_model(kernel, 1e-30)), class = "pfdtc_error_numerical")
})

test_that("an interrupt ends a fit that learns nothing, instead of starting it again", {
  p <- problem(n = 20)
  # Interrupt only the first call, because a second one would succeed.
  got <- tryCatch(with_interrupted("native_exact", 1, {
    gp_exact(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed")
  }), interrupt = function(i) "interrupted")
  expect_identical(got, "interrupted")
})

test_that("slopes and precisions of several blocks of columns are those of the dense formulas", {
  p <- problem("matern32", n = 250, weighted = TRUE) # blocks have 96 columns
  theta <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
  d <- length(p$kernel$lengthscale)
  evaluate <- function(theta) {
    kernel <- exact_kernel(p)
    kernel$lengthscale[] <- exp(theta[seq_len(d)])
    kernel$variance <- exp(theta[d + 1])
    native_exact_evidence(p, new_model(kernel, exp(theta[d + 2])))
  }
  at <- evaluate(theta)
  expect_gradient(function(t) evaluate(t)$value, theta, c(at$theta, at$noise))
  B <- solve(ref_k(p$kernel, p$x) + diag(p$noise / p$weights))
  expect_close(at$precision, diag(B), 1e-10)
  # Compute the first row given the others, by the conditional density of the joint distribution.
  K <- solve(B)
  gain <- K[1, -1] %*% solve(K[-1, -1])
  direct <- stats::dnorm(p$y[1], sum(gain * p$y[-1]), sqrt(K[1, 1] - sum(gain * K[-1, 1])), log = TRUE)
  pool <- c(p, list(n = length(p$y), share = 1, count = new.env()))
  problem <- exact_density(list(pool = pool, rows = identity, by_number = function(theta) {
    new_model(set_values(exact_kernel(p), exp(theta[seq_len(d + 1)])), exp(theta[d + 2]))
  }, posterior = function(result, ...) result))
  expect_equal(problem$evaluate(theta)$loo[1], direct, tolerance = 1e-8)
})

test_that("a fit without its Cholesky factor is small and predicts the same to the bit in another session", {
  data <- prior_draw(ref_kernel("matern32", 0.3, 4), 400)
  fit_of <- function(...) {
    pfdtc(data$x, data$y, kernel = kernel_matern(3 / 2, 0.3, 4), noise = 0.04, hyper = "fixed", ...)
  }
  new <- cbind(seq(0, 1, length.out = 7))
  fit <- fit_of()
  heavy <- fit_of(weights = rep(c(1, 4), 200))
  p <- predict(fit, new, se.fit = TRUE)
  heavier <- predict(heavy, new, se.fit = TRUE) # the same inputs, another Cholesky factor
  expect_false(identical(p$se.fit, heavier$se.fit))
  expect_identical(predict(fit, new), p$fit) # means need no Cholesky factor
  bytes <- serialize(fit, NULL)
  expect_lt(length(serialize(fit$factors, NULL)), 8 * 400 * 2)
  expect_lt(length(bytes), 8 * 400^2 / 2) # some of them are of the test's environment
  forget <- function() assign("list", list(), kept_factors)
  forget()
  expect_identical(predict(unserialize(bytes), new, se.fit = TRUE), p)
  expect_length(kept_factors$list, 1L)
  forget()
  predict(fit, new, type = "terms") # nor do means of terms
  expect_length(kept_factors$list, 0L)
  slim <- axe_data.gp_fit(heavy) # has no rows of the data
  expect_identical(predict(slim, new, se.fit = TRUE), heavier)
  forget()
  expect_memory_error <- function(code) expect_error(code, class = "pfdtc_error_input")
  with_options(list(pfdtc.max_memory = 1e5), expect_memory_error(predict(fit, new, se.fit = TRUE)))
  expect_identical(predict(fit, new, se.fit = TRUE), p)
})

test_that("the session keeps the last factors up to a number of bytes", {
  with_replaced(list(most_kept = 8 * 3 * 10^2), {
    assign("list", list(), kept_factors)
    for (i in 1:5) keep_factor(i, list(), matrix(0, 10, 10))
    expect_identical(vapply(kept_factors$list, function(one) one$of[[1L]], 1L), 5:3)
    keep_factor(6L, list(), matrix(0, 100, 100)) # always the last one
    expect_identical(kept_factors$list[[1L]]$of[[1L]], 6L)
    expect_length(kept_factors$list, 1L)
  })
})

test_that("a message offers neighbours if standard deviations of many rows take minutes", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  new <- data.frame(speed = 1:50 / 2) # distinct rows, because f is computed once for equal rows
  expect_silent(predict(fit, new, se.fit = TRUE))
  with_replaced(list(slow_operations = replace(slow_operations, "sds", 2 * 50 * nrow(fit$x)^2)), {
    expect_message(predict(fit, new, se.fit = TRUE), "50 predictions", class = "pfdtc_message_slow")
    expect_silent(predict(fit, new)) # means alone need no factor
    expect_silent(predict(fit, new[1:49, , drop = FALSE], se.fit = TRUE))
  })
})
