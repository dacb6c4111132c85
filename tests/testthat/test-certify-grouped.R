# Compares certificates with all effects of groups eliminated with dense posteriors of the whole kernel.

grouped_problem <- function(seed, n = 90, levels = 12) {
  with_seed(seed, {
    d <- data.frame(x1 = stats::runif(n), x2 = stats::runif(n), g = factor(sample(rep_len(seq_len(levels), n))),
                    h = factor(sample(letters[1:3], n, TRUE)))
    d$f <- sin(5 * d$x1) + d$x2 + stats::rnorm(levels)[d$g]
    d$y <- d$f + stats::rnorm(n, sd = 0.3)
    new <- data.frame(x1 = stats::runif(12, -0.2, 1.2), x2 = stats::runif(12), h = sample(letters[1:4], 12, TRUE),
                      g = sample(c(seq_len(levels), "new"), 12, TRUE))
    new$g[1:2] <- "new"
    list(d = d, new = new)
  })
}

smooth_term <- kernel_matern(5 / 2, 0.5, 1, inputs = ~ x1 + x2)
grouped_kernels <- list(
  intercepts = smooth_term + kernel_group(~ g, variance = 0.8),
  slopes = smooth_term + kernel_group(~ g, ~ 1 + x1, correlated = FALSE, variance = 0.8, scale = 0.5),
  crossed = smooth_term + kernel_group(~ g, variance = 0.8) + kernel_group(~ h, variance = 0.3))

contains <- function(inside, fit, sd, slack = 1e-9) {
  all(inside$mean_lower <= fit + slack & fit <= inside$mean_upper + slack &
        inside$sd_lower <= sd + slack & sd <= inside$sd_upper + slack)
}

# Returns mode and sd of f by Newton's method with dense matrices. No step changes f by more than 2, because a full step
# from f = 0 may lead to exp(f) of 1e14, from which Newton's method does not return in double precision.
dense_mode <- function(fit, y, new, slopes) {
  kernel <- model_of(fit)$kernel
  K <- native_kernel_matrix(kernel, fit$data$x, fit$data$x)
  f <- a <- numeric(length(y))
  for (step in 1:50) {
    at <- slopes(f + fit$center)
    root <- sqrt(at$W)
    L <- t(chol(diag(length(y)) + root * t(root * K)))
    b <- at$W * f + at$g
    change <- drop(b - root * backsolve(t(L), forwardsolve(L, root * (K %*% b)))) - a
    a <- a + change * min(1, 2 / max(abs(K %*% change)))
    f <- drop(K %*% a)
  }
  x <- suppressMessages(new_rows(fit, new, stats::na.pass))$x
  cross <- native_kernel_matrix(kernel, fit$data$x, x)
  list(at_rows = f, half_square = sum(f * a) / 2, logdet = 2 * sum(log(diag(L))),
       fit = drop(crossprod(cross, a)) + fit$center,
       sd = sqrt(kernel_diagonal(kernel, x) - colSums(forwardsolve(L, root * cross)^2)))
}

slopes_of <- list(
  binomial = function(y) function(f) list(g = y - stats::plogis(f), W = stats::plogis(f) * stats::plogis(-f)),
  poisson = function(y) function(f) list(g = y - exp(f), W = exp(f)))

test_that("norms with effects are above those of dense matrices, and near them", {
  p <- effect_problem(40)
  model <- new_model(p$model$kernel, 1)
  W <- with_seed(2, stats::runif(40, 0.1, 3))
  # Write the groupings of effect_problem() as terms of a kernel.
  kernel <- place_kernel(kernel_matern(3 / 2, c(0.3, 0.5), 1.3, inputs = 1:2) +
                           kernel_group("g", ~ 1 + a, correlated = FALSE, variance = 0.64, scale = 0.7), p$x)
  b <- new_bounds(list(), list(x = p$x), p$z, kernel, FALSE, NULL, 1e-10, effects = TRUE)
  post <- with_seed(1, weighted_posterior(b, W, TRUE))
  x <- rbind(p$x[1:6, ] + 0.01 * rep(c(1, 1, 0, 0), each = 6), p$x[7:9, ])
  x[1, "g"] <- -3
  at <- features_with_effects(b, post$factors, x)
  rows <- features_with_effects(b, post$factors, p$x)
  same <- outer(rows$x[, "g"], at$x[, "g"], "==")
  of_all <- W * crossprod(rows$features, at$features)
  of_level <- W * same * crossprod(rows$own, at$own)
  K <- native_kernel_matrix(b$smooth$kernel, p$x, p$x)
  E <- K - crossprod(forwardsolve(post$factors$L, native_kernel_matrix(b$smooth$kernel, p$z, p$x)))
  forms <- lapply(c(200, 13), function(size) { # the last block has one row
    with_replaced(list(effect_block = size), with_seed(3, effect_forms(b, post$factors, W)))
  })
  norm_E <- function(h) sqrt(colSums(h * (E %*% h)))
  by_parts <- norm_E(of_all) + norm_E(of_level)
  expect_close(effect_root(b, post$factors, forms[[1]], at), by_parts, 1e-6) # all rows are one block
  without <- function(forms, part) replace(forms, part, list(0 * forms[[part]]))
  expect_true(all(effect_root(b, post$factors, without(forms[[2]], "own"), at) > norm_E(of_all) * (1 + 1e-3)))
  expect_true(all(effect_root(b, post$factors, without(forms[[2]], "all"), at) >= norm_E(of_level) * (1 - 1e-9)))
  expect_gt(forms[[2]]$lam, forms[[1]]$lam)
  expect_gte(post$norms$lam, max(eigen(E * outer(sqrt(W), sqrt(W)), TRUE)$values))
  # of_all + of_level is h = B^{-1} q(X, x), with B = Q + W^{-1}; q is the prior covariance that inducing points
  # and all effects explain.
  Q <- native_kernel_matrix(kernel, p$x, p$x) - E
  Kx <- native_kernel_matrix(b$smooth$kernel, p$x, x)
  cross <- native_kernel_matrix(kernel, p$x, x) - Kx +
    crossprod(forwardsolve(post$factors$L, native_kernel_matrix(b$smooth$kernel, p$z, p$x)),
              forwardsolve(post$factors$L, native_kernel_matrix(b$smooth$kernel, p$z, x)))
  expect_close(of_all + of_level, solve(Q + diag(1 / W), cross), 1e-8)
})

test_that("certificates with Gaussian noise contain the exact posterior, with few points and with many", {
  for (kind in names(grouped_kernels)) {
    p <- grouped_problem(match(kind, names(grouped_kernels)))
    w <- rep_len(c(0.5, 1, 3), nrow(p$d))
    for (m in if (kind == "slopes") c(5, 40) else 20) {
      fit <- suppressMessages(pfdtc(y ~ x1 + x2, p$d, weights = w, kernel = grouped_kernels[[kind]], noise = 0.09,
                                    hyper = "fixed", m = m, neighbours = 0))
      exact <- suppressMessages(predict(gp_exact(y ~ x1 + x2, p$d, weights = w, like = fit), p$new, se.fit = TRUE))
      for (effort in c("fast", "reference")) {
        inside <- suppressMessages(certify(fit, p$new, effort = effort))
        expect_true(contains(inside, exact$fit, exact$se.fit), info = paste(kind, m, effort))
      }
      expect_lt(max((inside$mean_upper - inside$mean_lower) / inside$sd_upper), 0.05)
    }
  }
})

test_that("thousands of levels have narrow certificates without points for the levels", {
  only_nightly()
  p <- grouped_problem(4, 3000, 1200)
  kernel <- kernel_se(0.5, 1, inputs = ~ x1 + x2) + kernel_group(~ g, variance = 1)
  fit <- suppressMessages(pfdtc(y ~ x1 + x2, p$d, kernel = kernel, noise = 0.09, hyper = "fixed", m = 60,
                                neighbours = 0))
  exact <- suppressMessages(predict(gp_exact(y ~ x1 + x2, p$d, like = fit), p$new, se.fit = TRUE))
  said <- testthat::capture_messages(inside <- certify(fit, p$new))
  expect_false(any(grepl("reference posterior", said))) # no reference is made
  expect_true(contains(inside, exact$fit, exact$se.fit, 1e-7))
  expect_lt(max(inside$mean_upper - inside$mean_lower, inside$sd_upper - inside$sd_lower), 1e-3)
  expect_lt(attr(inside, "t"), 1e-3)
  # Integrals over boxes are sums over the points of a rule.
  box <- linear_functional(fit, lower = data.frame(x1 = 0.2, x2 = 0.3, g = "1"), upper = c(x1 = 0.4), certified = FALSE)
  grid <- predict(fit, data.frame(x1 = seq(0.201, 0.399, by = 0.002), x2 = 0.3, g = "1"), full_cov = TRUE)
  expect_close(c(box$mean, box$sd), c(mean(grid$fit), sqrt(mean(grid$cov))), 1e-4)
  expect_lt(box$quadrature, 1e-6)
})

test_that("so many levels that more points exceed the memory are certified with fewer points", {
  p <- grouped_problem(5, 1000, 400)
  kernel <- kernel_matern(3 / 2, 0.3, 1, inputs = ~ x1 + x2) + kernel_group(~ g, variance = 1)
  fit <- suppressMessages(pfdtc(y ~ x1 + x2, p$d, kernel = kernel, noise = 0.09, hyper = "fixed", m = 50,
                                neighbours = 0))
  exact <- suppressMessages(predict(gp_exact(y ~ x1 + x2, p$d, like = fit), p$new, se.fit = TRUE))
  # This memory limit does not allow 800 points and 400 effects, which take 2.6 MB.
  inside <- with_options(list(pfdtc.max_memory = 1.5e6), suppressMessages(certify(fit, p$new)))
  expect_true(contains(inside, exact$fit, exact$se.fit, 1e-7))
})

test_that("certificates of families contain the mode and the sd of the whole kernel", {
  with_replaced(list(dense_rows = 40L), {
    for (kind in names(grouped_kernels)) {
      family <- if (kind == "slopes") "binomial" else "poisson"
      p <- grouped_problem(match(kind, names(grouped_kernels)))
      p$d$y <- with_seed(1, if (family == "binomial") stats::rbinom(90, 1, stats::plogis(p$d$f)) else
        stats::rpois(90, exp(p$d$f)))
      fit <- suppressMessages(pfdtc(y ~ x1 + x2, p$d, family = family, kernel = grouped_kernels[[kind]],
                                    hyper = "fixed", m = 12))
      expect_s3_class(posterior_of(fit), "grouped")
      exact <- dense_mode(fit, p$d$y, p$new, slopes_of[[family]](p$d$y))
      for (effort in c("fast", "reference", "tight")) {
        inside <- suppressMessages(certify(fit, p$new, effort = effort))
        expect_true(contains(inside, exact$fit, exact$sd, 1e-8), info = paste(kind, family, effort))
      }
      expect_lt(max(inside$mean_upper - inside$mean_lower, inside$sd_upper - inside$sd_lower), 1e-3)
    }
    reference <- reference(fit)
    kept <- suppressMessages(certify(fit, p$new, reference = reference))
    expect_true(contains(kept, exact$fit, exact$sd, 1e-8))
    f <- exact$at_rows + fit$center
    whole <- sum(stats::dpois(p$d$y, exp(f), log = TRUE)) - exact$half_square - exact$logdet / 2
    bounds <- suppressMessages(evidence_bounds(fit))
    expect_true(bounds[["lower"]] <= whole + 1e-8 && whole <= bounds[["upper"]] + 1e-8)
    expect_lt(diff(bounds), 1e-2)
    contrast <- function(certified) linear_functional(fit, c(1, -1), p$new[3:4, ], certified = certified)
    expect_gt(contrast(FALSE)$sd, 0)
    expect_error(contrast(TRUE), "certified = FALSE", class = "pfdtc_error_input")
  })
})

test_that("families of few rows, with inducing points of the whole kernel, are certified with their groups", {
  p <- grouped_problem(5)
  p$d$y <- with_seed(1, stats::rpois(90, exp(p$d$f)))
  fit <- suppressMessages(pfdtc(y ~ x1 + x2, p$d, family = "poisson", kernel = grouped_kernels$intercepts,
                                hyper = "fixed", m = 8))
  expect_false(inherits(posterior_of(fit), "grouped"))
  b <- with_seed(1, bounds_at_mode(fit, fit$data, TRUE))
  x <- fit$data$x
  A <- forwardsolve(b$at$L, native_kernel_matrix(fit$kernel, b$z, x))
  E <- native_kernel_matrix(fit$kernel, x, x) - crossprod(A)
  expect_lt(nrow(b$z), 90)
  expect_equal(b$g_E, sqrt(sum(b$at$g * (E %*% b$at$g))), tolerance = 1e-6) # is exact with one group of rows
  exact <- dense_mode(fit, p$d$y, p$new, slopes_of$poisson(p$d$y))
  for (effort in c("fast", "reference")) {
    inside <- suppressMessages(certify(fit, p$new, effort = effort))
    expect_true(contains(inside, exact$fit, exact$sd, 1e-8), info = effort)
  }
})

test_that("the preconditioner with effects equals its dense formula, and refine() converges with it", {
  p <- grouped_problem(6)
  w <- rep_len(c(0.5, 1, 3), 90)
  kernel <- kernel_matern(1 / 2, 0.3, 1, inputs = ~ x1 + x2) + kernel_group(~ h, variance = 0.3) +
    kernel_group(~ g, ~ 1 + x1, correlated = FALSE, variance = 0.8, scale = 0.5)
  fit <- suppressMessages(pfdtc(y ~ x1 + x2, p$d, weights = w, kernel = kernel, noise = 0.09, hyper = "fixed", m = 8,
                                neighbours = 0))
  model <- model_of(fit)
  x <- fit$data$x
  smooth <- smooth_part(model$kernel)
  Q <- crossprod(forwardsolve(t(chol(native_kernel_matrix(smooth, fit$inducing, fit$inducing))),
                              native_kernel_matrix(smooth, fit$inducing, x)))
  K <- Q + native_kernel_matrix(model$kernel, x, x) - native_kernel_matrix(smooth, x, x)
  r <- with_seed(1, stats::rnorm(90))
  expect_close(effects_preconditioner(fit$inducing, fit$data, model, fit$control)(r),
               solve(K * outer(sqrt(w), sqrt(w)) + diag(model$noise, 90), r), 1e-6) # error of the jitter
  exact <- suppressMessages(predict(gp_exact(y ~ x1 + x2, p$d, weights = w, like = fit), p$new))
  with_replaced(list(has_many_levels = function(model, x) TRUE), {
    reference <- suppressMessages(reference(fit, m2 = 20, max_seconds = 0))
    refined <- suppressMessages(refine(fit, p$new, 1e-5, reference = reference))
    expect_lt(max(abs(refined$mean - exact) - refined$mean_error), 1e-9)
    expect_lt(max(refined$mean_error), 1e-5)
    expect_lt(attr(refined, "iterations"), 30)
  })
})
