# Compares refine(), and the corrected mean of references, with dense solves.

refine_problem <- function(profile = "matern32", n = 60, m = 5, weighted = FALSE, ...) {
  p <- problem(profile, n = n, m = m, weighted = weighted)
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z,
                weights = p$weights, ...)
  exact <- gp_exact(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed",
                    weights = p$weights, ...)
  list(p = p, fit = fit, ref = with_seed(1, reference(fit, 2 * m)), exact = exact)
}

test_that("products with K and with B^-1 are the dense ones, for any blocks and threads", {
  all <- problems()
  for (i in seq_along(all)) {
    p <- all[[i]]
    kernel <- complete_kernel(package_kernel(p$kernel), p$x)
    root <- sqrt(ref_weights(p$weights, p$x))
    K <- root * t(root * ref_k(p$kernel, p$x))
    v <- with_seed(1, stats::rnorm(nrow(p$x)))
    posterior <- native_posterior(p$z, p, new_model(kernel, p$noise), 1e-10)
    A <- solve(t(chol(ref_kmm(p$z, p$kernel, 1e-10))), t(root * ref_k(p$kernel, p$x, p$z)))
    B <- crossprod(A) + diag(p$noise, nrow(p$x))
    for (block in in_turn(c(1, 4, 50), i, 2)) {
      with_options(list(pfdtc.block = block, pfdtc.threads = 2), {
        expect_close(native_kernel_matvecs(kernel, p$x, p$weights, v), drop(K %*% v), 1e-12, label_of(p))
        expect_close(native_kernel_matvecs(kernel, p$x, p$weights, cbind(v, 1, -v)), K %*% cbind(v, 1, -v), 1e-12,
                     label_of(p))
        expect_close(native_kernel_cross_matvec(kernel, p$x, v, p$new), drop(ref_k(p$kernel, p$new, p$x) %*% v), 1e-12,
                     label_of(p))
        for (whiten in c(TRUE, FALSE)) {
          made <- native_response(posterior, p$z, list(x = p$x, y = v, weights = p$weights), new_model(kernel, p$noise),
                                  whiten)
          expect_close(made$Ay, drop(A %*% (root * v)), 1e-7, label_of(p))
          expect_close(made$v, solve(B, root * v), 1e-7, label_of(p))
          expect_close(made$rss, sum((p$noise * solve(B, root * v))^2), 1e-7, label_of(p))
          expect_close(made$yy, sum((root * v)^2), 1e-12, label_of(p))
        }
      })
    }
  }
})

test_that("refine() meets tol, and the exact mean is within the error it reports", {
  for (profile in quick(profiles)) {
    for (weighted in c(FALSE, TRUE)) {
      made <- refine_problem(profile, weighted = weighted)
      exact <- predict(made$exact, made$p$new)
      before <- Inf
      for (tol in c(1e-2, 1e-5, 1e-8)) {
        out <- refine(made$fit, made$p$new, tol, reference = made$ref)
        info <- paste(profile, weighted, tol)
        expect_true(attr(out, "met"), info = info)
        expect_lte(max(out$mean_error), tol * made$fit$sd_y)
        # The tolerance is the error of the dense solve, whose condition number is below 1e4.
        expect_true(all(abs(out$mean - exact) <= out$mean_error + 1e-11), info = info)
      }
      expect_named(out, c("mean", "mean_error"))
    }
  }
})

test_that("a reference's corrected mean certifies little more than the true error, and only for its own rows", {
  made <- refine_problem("matern12", n = 100, m = 8)
  expect_false(is.null(made$ref$correction))
  exact <- predict(made$exact, made$p$new, se.fit = TRUE)
  truth <- list(mean = exact$fit, sd = exact$se.fit)
  certificate <- function(fit, reference, new = made$p$new) {
    with_options(list(pfdtc.kriging_rows = 0L), # kriging would be exact on so few rows
                 with_seed(2, certify(fit, new, reference = reference, test_points = 0)))
  }
  plain <- made$ref
  plain$correction <- NULL
  corrected <- certificate(made$fit, made$ref)
  error <- abs(corrected$mean - truth$mean)
  expect_false(any(violated(corrected, truth)))
  expect_lt(stats::median(corrected$mean_error), 1.2 * stats::median(error))
  expect_gt(stats::median(certificate(made$fit, plain)$mean_error), 2 * stats::median(error))
  # The correction cannot be used for the same rows in another order, or without rows.
  back <- rev(seq_along(made$p$y))
  turned <- gp_dtc(made$p$x[back, ], made$p$y[back], kernel = made$fit$kernel, noise = made$fit$noise, hyper = "fixed",
                   inducing = made$p$z)
  expect_equal(certificate(turned, made$ref)$mean_error, certificate(made$fit, plain)$mean_error, tolerance = 1e-6)
  bare <- made$fit
  bare$data <- NULL
  expect_false(any(violated(certificate(bare, made$ref), truth)))
})

test_that("a reference in another scale of the response certifies the same GP", {
  p <- problem("matern32", n = 60, m = 5)
  fit <- function(scale, y = 50 * p$y) {
    gp_dtc(p$x, y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z, scale = scale)
  }
  scaled <- fit(TRUE)
  plain <- fit(FALSE)
  exact <- predict(gp_exact(p$x, 50 * p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed"),
                   p$new, se.fit = TRUE)
  for (of in list(scaled, plain)) {
    reference <- with_seed(1, reference(of, 20))
    other <- with_seed(2, certify(plain, p$new, reference = reference, test_points = 0))
    expect_false(any(violated(other, list(mean = exact$fit, sd = exact$se.fit))))
    own <- with_seed(2, certify(scaled, p$new, reference = reference, test_points = 0))
    expect_equal(own$mean_upper, other$mean_upper, tolerance = 1e-6)
    expect_equal(own$sd_upper, other$sd_upper, tolerance = 1e-6)
    bare <- reference                          # a correction holds y; without one y is read from the fit
    bare$correction <- NULL
    for (asked in list(plain, scaled)) {
      for (by in list(reference, bare)) {
        refined <- refine(asked, p$new, 1e-6, reference = by)
        expect_lte(max(refined$mean_error), 1e-6 * plain$sd_y)
        # The tolerance is the error of the dense solve, whose condition number is below 1e4.
        expect_true(all(abs(refined$mean - exact$fit) <= refined$mean_error + 1e-12 * max(abs(50 * p$y))))
      }
    }
  }
})

test_that("refine() takes an offset, missing values, merged and training rows, and fits of every kind", {
  p <- problem("matern52", n = 30, m = 5)
  rows <- rep(1:30, 2)
  offset <- seq_along(rows) / 10
  y <- p$y[rows] + offset + rep(0:1, each = 30)
  args <- list(p$x[rows, ], y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", offset = offset)
  exact <- do.call(gp_exact, args)
  for (method in list(gp_sor, gp_fitc, gp_subsample)) {
    fit <- do.call(method, c(args, m = 6))
    fit$reference <- suppressMessages(reference(fit))
    out <- refine(fit, tol = 1e-6)
    expect_identical(nrow(out), 60L)
    expect_true(all(abs(out$mean - fitted(exact)) <= out$mean_error + 1e-10))
    with_gap <- refine(fit, rbind(p$new[1:2, ], NA), tol = 1e-6)
    expect_identical(is.na(with_gap$mean), c(FALSE, FALSE, TRUE))
    expect_equal(with_gap$mean[1:2], unname(predict(exact, p$new[1:2, ])), tolerance = 1e-6)
  }
  of_exact <- refine(exact, p$new, tol = 1e-6)
  expect_identical(attr(of_exact, "iterations"), 0L)
  expect_equal(of_exact$mean, unname(predict(exact, p$new)))
  expect_identical(nrow(refine(fit, p$new[0, ], tol = 1e-6)), 0L)
})

test_that("refine() warns if tol is out of reach, and returns what it reached", {
  made <- refine_problem("matern12")
  exact <- predict(made$exact, made$p$new)
  made$ref$correction <- NULL
  expect_warning(out <- refine(made$fit, made$p$new, 1e-6, maxit = 1, reference = made$ref), "maxit",
                 class = "pfdtc_warning_convergence")
  expect_false(attr(out, "met"))
  expect_identical(attr(out, "iterations"), 1L)
  expect_true(all(abs(out$mean - exact) <= out$mean_error))
  expect_warning(out <- refine(made$fit, made$p$new, 1e-30, reference = made$ref), "rounding",
                 class = "pfdtc_warning_convergence")
  expect_lt(max(out$mean_error), 1e-8)
  expect_true(all(abs(out$mean - exact) <= out$mean_error + 1e-11))
})

test_that("an interrupt, or R's time limit, returns what is certified by then", {
  made <- refine_problem("matern12", n = 100)
  made$ref$correction <- NULL
  exact <- predict(made$exact, made$p$new)
  time_limit <- simpleError("reached elapsed time limit")
  interrupted_at <- function(when, by = interrupt_signal, said = "interrupted") {
    with_interrupted("native_kernel_matvecs", when, by = by, {
      expect_warning(out <- refine(made$fit, made$p$new, 1e-6, reference = made$ref), said,
                     class = "pfdtc_warning_convergence")
    })
    expect_true(all(abs(out$mean - exact) <= out$mean_error + 1e-11))
    max(out$mean_error)
  }
  plain <- max(certify_posterior(made$ref, values_at(made$ref$kernel, made$p$new))$mean_error)
  expect_lt(interrupted_at(9), plain)      # keeps what seven steps achieved
  expect_equal(interrupted_at(1), plain)   # nothing was achieved yet
  expect_equal(interrupted_at(9:10), interrupted_at(9)) # certifying needs no further product
  expect_equal(interrupted_at(9, time_limit, "time limit"), interrupted_at(9))
  expect_equal(interrupted_at(1, time_limit, "time limit"), plain)
})

test_that("refine() refuses a bad tol, and fits for which it has no method", {
  made <- refine_problem()
  for (bad in list(0, -1, NA, "a", c(1, 2), Inf)) {
    expect_input_error(refine(made$fit, made$p$new, bad, reference = made$ref), "tol")
  }
  expect_input_error(refine(made$fit, made$p$new, reference = made$ref), "tol")
  expect_input_error(refine(made$fit, made$p$new, 0.1, maxit = -1, reference = made$ref), "maxit")
  expect_input_error(refine(made$fit, made$p$new, 0.1, refrence = made$ref), "refrence")
  one <- gp_dtc(matrix(1), 2, m = 1, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed", scale = FALSE)
  expect_input_error(refine(one, matrix(0), 0.1, reference = reference(one)), "tol")
  bare <- made$fit
  bare$data <- NULL
  expect_input_error(refine(bare, made$p$new, 0.1, reference = made$ref), "keep_data")
  expect_input_error(refine(1, made$p$new, 0.1), "fit")
})

test_that("the preconditioner by neighbours is its dense formula, and saves steps where much is unexplained", {
  p <- problem("matern12", n = 450, m = 10, noise = 0.01, weighted = TRUE, lengthscale = c(2, 3))
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z,
                weights = p$weights)
  ref <- with_seed(1, reference(fit, 30, max_seconds = 0))
  expect_true(precondition_by_near_rows(ref, list(x = cbind(1))))
  kernel <- model_of(ref)$kernel
  s2 <- ref$noise / ref$scale^2
  n <- nrow(p$x)
  root <- sqrt(p$weights)
  near <- with_seed(4, native_near(ref$inducing, list(x = p$x, y = fit$data$y, weights = p$weights),
                                   new_model(kernel, s2), 6L, sample.int(n), ref$jitter, keep = TRUE))
  F_dense <- diag(n)
  for (i in seq_len(n)) {
    S <- near$rows[near$rows[, i] > 0, i]
    F_dense[i, S] <- -near$u[seq_along(S), i]
  }
  F_dense <- F_dense / sqrt(near$d)
  r <- with_seed(2, stats::rnorm(n))
  expect_close(native_decorrelate(near, r), drop(F_dense %*% r), 1e-12)
  expect_close(native_decorrelate(near, r, transpose = TRUE), drop(crossprod(F_dense, r)), 1e-12)
  A <- forwardsolve(near$L, t(root * native_kernel_matrix(kernel, p$x, ref$inducing)))
  F_A <- F_dense %*% t(A)
  expect_close(near$C %*% t(near$C), diag(nrow(A)) + crossprod(F_A), 1e-9)
  made <- with_seed(4, near_preconditioner(ref, fit$data, c(points = 30L, rows = 6L)))
  inner <- diag(n) - F_A %*% solve(diag(nrow(A)) + crossprod(F_A), t(F_A))
  expect_close(made(r), drop(crossprod(F_dense, inner %*% F_dense %*% r)), 1e-8)
  steps <- function(precondition) {
    solve_exact(ref, fit$data, 50L, function(s) s$c / 1e-3, precondition = precondition)$steps
  }
  expect_lt(with_seed(1, steps(near_preconditioner(ref, fit$data))), steps(NULL) / 2)
})

test_that("an updated residual is the true one up to its bound, with and without a preconditioner", {
  made <- refine_problem("matern32", n = 90, m = 8, weighted = TRUE)
  kernel <- model_of(made$ref)$kernel
  s2 <- made$ref$noise / made$ref$scale^2
  root <- sqrt(made$p$weights)
  data <- made$fit$data
  for (precondition in list(NULL, with_seed(1, near_preconditioner(made$ref, data)))) {
    state <- solve_exact(made$ref, data, 12L, function(s) Inf, precondition = precondition)
    expect_true((state$passes - state$steps) %in% 1:2)
    K <- root * t(root * native_kernel_matrix(kernel, data$x, data$x))
    true <- root * data$y - drop(K %*% state$v) - s2 * state$v
    expect_lte(sqrt(sum((true - state$residual)^2)), state$error$residual)
    expect_lt(state$error$residual, 1e-9 * sqrt(sum(data$y^2)) / s2)
  }
})

test_that("refine() by neighbours and kriging meets tol in few passes", {
  p <- problem("matern12", n = 450, m = 10, noise = 0.01, lengthscale = c(2, 3))
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z)
  fit$reference <- with_seed(1, reference(fit, 30, max_seconds = 0))
  exact <- predict(gp_exact(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed"), p$new)
  with_options(list(pfdtc.kriging_rows = 60L), {
    found <- with_seed(1, refine(fit, p$new, 1e-4))
    expect_true(attr(found, "met"))
    expect_lt(attr(found, "iterations"), 8)
    expect_true(all(abs(found$mean - exact) <= found$mean_error + 1e-10))
  })
})

test_that("for nearly noise-free data certify() and refine() use exact solves where rounding stops iterations", {
  p <- problem("matern52", n = 60, m = 10, noise = 1e-12, seed = 2)
  fit <- gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", inducing = p$z)
  fit$reference <- with_seed(1, reference(fit, 30))
  exact <- gp_exact(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed")
  own <- certify(exact, p$new)
  out <- suppressWarnings(refine(fit, p$new, 1e-12))
  expect_lte(max(out$mean_error), 1.01 * max(own$mean_error))
  expect_true(all(abs(out$mean - own$mean) <= out$mean_error + own$mean_error))
  by <- certify(fit, p$new)
  expect_lte(max(by$mean_upper - by$mean_lower), 1.01 * max(own$mean_upper - own$mean_lower))
  expect_lte(max(by$sd_upper - by$sd_lower), 1.01 * max(own$sd_upper - own$sd_lower))
  # Without kriging the certificate is almost useless.
  expect_gt(max(with_options(list(pfdtc.kriging_rows = 0L), certify(fit, p$new))$mean_error), 1e3 * max(own$mean_error))
})

test_that("products with K err by no more than product_growth(), which is far below rounding_growth()", {
  p <- problem("se", n = 2000, m = 2, seed = 11)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  K <- kernel_matrix(kernel, p$x)
  for (block in c(16, 512)) {
    Kv <- with_options(list(pfdtc.block = block), native_kernel_matvecs(kernel, p$x, NULL, rep(1, 2000)))
    error <- sqrt(sum((Kv - rowSums(K))^2)) # |K|_2 is at most the largest row sum
    expect_lte(error, product_growth(2000, block) * max(rowSums(K)) * sqrt(2000))
  }
  expect_lt(product_growth(1e5, 512), rounding_growth(800, 1e5) / 10)
})

test_that("the effect of a residual's rounding on the mean is bounded by the exact sd, and a new residual has less", {
  made <- refine_problem("se", n = 60)
  made$fit$noise <- made$fit$noise / 100 # then |h_x| is far below sqrt(k) / (2 sqrt(s2))
  reference <- with_seed(1, reference(made$fit, 40))
  data <- data_in_scale(made$fit, reference)
  state <- solve_exact(reference, data, 3L, function(s) Inf)
  correction <- correct_residual(reference, data, state)
  fun <- values_at(reference$kernel, made$p$new)
  at <- certify_posterior(reference, fun)
  model <- model_of(reference)
  K <- native_kernel_matrix(model$kernel, data$x, data$x) + diag(model$noise, 60)
  h <- solve(K, native_kernel_matrix(model$kernel, data$x, made$p$new))
  carried <- carried_rounding(correction, model, data, fun, at$var_upper / reference$scale^2)
  expect_true(all(carried >= sqrt(colSums(h^2)) * correction$error$residual))
  expect_true(all(carried <= correction$rounding * (1 + 1e-12)))
  expect_lt(min(carried), correction$rounding / 2) # where the sd is far below sqrt(k)
  once <- residual_rounding(reference, data$y * root_weights(data), c(v = sqrt(sum(state$v^2)), r = 0))
  expect_lt(once$residual, state$error$residual)
})
