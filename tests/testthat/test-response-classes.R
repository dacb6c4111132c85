classes_case <- function(n = 60, K = 3, seed = 1) {
  set.seed(seed)
  x <- matrix(stats::runif(2 * n), n, dimnames = list(NULL, c("a", "b")))
  class <- sample(K, n, TRUE, seq_len(K))
  list(x = x, y = factor(letters[class], letters[seq_len(K)]), class = class, b = stats::rnorm(K) / 2,
       kernel = kernel_matern(5 / 2, lengthscale = c(0.4, 0.6), variance = 2))
}

fixed_classes <- function(case, ...) {
  pfdtc(case$x, case$y, family = multinomial(), kernel = case$kernel, hyper = "fixed", center = FALSE, ...)
}

classes_of <- function(levels) {
  utils::modifyList(as_likelihood(multinomial()), list(levels = levels, approx = "laplace"))
}

test_that("the engine's mode, evidence and penalty are those of dense matrices, with weights too", {
  case <- classes_case(40, 4)
  for (w in list(NULL, exp(stats::rnorm(40) / 2))) {
    sites <- engine_sites(classes_of(letters[1:4]), list(y = as.double(case$class), weight = w), case$b)
    kernel <- place_kernel(case$kernel, case$x)
    e <- native_laplace(case$x, case$x, sites, kernel, 1e-14, want = 2L)
    prior <- native_kernel_matrix(kernel, case$x, case$x)
    dense <- ref_classes(prior, case$class, case$b, if (is.null(w)) rep(1, 40) else w)
    expect_equal(e$evidence, dense$evidence, tolerance = 1e-9) # jitter 1e-14 over the smallest eigenvalue of K
    expect_equal(e$probability, dense$p, tolerance = 1e-8)
    expect_lt(abs(e$penalty), 1e-8)
    # With few points the penalty is a sum of log determinants of K x K matrices.
    few <- native_laplace(case$x[1:5, ], case$x, sites, kernel, 1e-12, want = 2L)
    terms <- vapply(1:40, function(n) {
      p <- few$probability[n, ]
      W <- (if (is.null(w)) 1 else w[n]) * (diag(p) - tcrossprod(p))
      as.numeric(determinant(diag(4) + few$left[n] * W)$modulus) / 2
    }, 0)
    expect_equal(few$penalty, sum(terms), tolerance = 1e-10)
  }
})

test_that("steps from the mode of other hyperparameters end in the same mode, with the factor at that mode", {
  case <- classes_case(40, 4)
  sites <- engine_sites(classes_of(letters[1:4]), list(y = as.double(case$class)), case$b)
  at <- function(scale, ...) {
    kernel <- place_kernel(kernel_se(scale * c(0.4, 0.6), 2 * scale), case$x)
    native_laplace(case$x[1:20, ], case$x, sites, kernel, 1e-8, ..., want = 2L)
  }
  cold <- at(1)
  kept <- c("evidence", "penalty", "theta", "C", "beta")
  for (scale in c(0.9, 3, 30)) { # the last is so far that its factor is computed anew
    expect_equal(at(1, start = at(scale))[kept], cold[kept], tolerance = 1e-8) # the last step is below 1e-9
  }
  start <- at(1.1)
  start$C <- 3 * start$C # so the steps are far too short
  for (most in c(1L, 2L, 40L)) {
    short <- at(1, start = start, maxit = most)
    there <- at(1, start = short["beta"], maxit = 0L)
    expect_equal(short[kept], there[kept], tolerance = 1e-12)
  }
})

test_that("blocks and kept memory change nothing beyond rounding", {
  case <- classes_case(40, 4)
  sites <- engine_sites(classes_of(letters[1:4]), list(y = as.double(case$class)), case$b)
  at <- function(control) {
    native_laplace(case$x[1:20, ], case$x, sites, place_kernel(case$kernel, case$x), 1e-8, want = 2L, control = control)
  }
  one <- at(pfdtc_control(threads = 1))
  # Keep all blocks with the products that the gradient reads, then two of six, then none.
  for (memory in c(1e9, 8 * 7 * 20 * 3 * 2.5, 0)) {
    two <- at(pfdtc_control(threads = 1, block = 7, memory = memory))
    for (what in c("evidence", "penalty", "theta", "constant", "S", "left", "shift")) {
      expect_equal(two[[what]], one[[what]], tolerance = 1e-9, label = what)
    }
  }
})

test_that("slopes of the penalised evidence are its central differences", {
  case <- classes_case(40, 3)
  for (w in list(NULL, exp(stats::rnorm(40)))) {
    value <- function(par) {
      kernel <- place_kernel(kernel_matern(5 / 2, lengthscale = exp(par[1:2]), variance = exp(par[3])), case$x)
      sites <- engine_sites(classes_of(letters[1:3]), list(y = as.double(case$class), weight = w), par[4:6])
      e <- native_laplace(case$x[1:9, ], case$x, sites, kernel, 1e-8, want = 2L)
      list(value = e$evidence - e$penalty, slope = c(e$theta, e$constant))
    }
    par <- c(log(c(0.4, 0.6, 2)), case$b)
    differences <- vapply(1:6, function(i) {
      step <- 1e-4 * (1:6 == i)
      (value(par + step)$value - value(par - step)$value) / 2e-4
    }, 0)
    expect_equal(value(par)$slope, differences, tolerance = 1e-6) # the step squared times third derivatives
  }
})

test_that("log odds and their covariances are those of dense matrices", {
  case <- classes_case()
  fit <- fixed_classes(case)
  new <- matrix(stats::runif(14), 7, dimnames = list(NULL, c("a", "b")))
  prior <- kernel_matrix(case$kernel, case$x)
  dense <- ref_classes(prior, case$class, numeric(3))
  at <- ref_classes_at(dense, kernel_matrix(case$kernel, case$x, new), rep(2, 7), numeric(3))
  said <- predict(at_mode(fit), new, type = "latent", se.fit = TRUE)
  expect_equal(unname(said$fit), at$mean[, -1] - at$mean[, 1], tolerance = 1e-6)
  sd <- t(apply(at$cov, 1L, function(V) sqrt(diag(V)[-1] + V[1, 1] - 2 * V[1, -1])))
  expect_equal(unname(said$se.fit), sd, tolerance = 1e-6)
  expect_equal(fit$evidence, dense$evidence, tolerance = 1e-8)
  expect_identical(colnames(said$fit), c("b", "c"))
})

test_that("averaged probabilities sum to one, and agree with many draws", {
  for (K in c(2, 3, 5)) {
    case <- classes_case(50, K, seed = K)
    fit <- fixed_classes(case)
    p <- predict(fit, type = "response", se.fit = TRUE)
    expect_equal(unname(rowSums(p$fit)), rep(1, 50), tolerance = 1e-12)
    expect_identical(colnames(p$fit), levels(case$y))
    f <- latent_at(fit, case$x[1:3, ])
    for (n in 1:3) {
      z <- matrix(stats::rnorm(2e5 * (K - 1)), 2e5)
      odds <- rep(f$mean[n, ], each = 2e5) + z %*% chol(matrix(f$var[n, ], K - 1))
      draws <- softmax_of(odds)
      expect_lt(max(abs(colMeans(draws) - p$fit[n, ])), 5 * 0.5 / sqrt(2e5) + 1e-3) # five standard errors
      expect_lt(max(abs(apply(draws, 2, stats::sd) - p$se.fit[n, ])), 5e-3)
    }
  }
})

test_that("the order of the classes changes nothing", {
  case <- classes_case(70)
  one <- fixed_classes(case)
  case$y <- factor(case$y, c("c", "a", "b"))
  two <- fixed_classes(case)
  p <- lapply(list(one, two), predict, type = "response")
  expect_equal(p[[1]], p[[2]][, colnames(p[[1]])], tolerance = 1e-5) # averages err by 1e-5, the mode by 1e-9
  odds <- predict(two, type = "latent")
  expect_equal(unname(predict(one, type = "latent")[, "b"]), unname(odds[, "b"] - odds[, "a"]), tolerance = 1e-7)
  expect_equal(one$evidence, two$evidence, tolerance = 1e-10)
})

test_that("two classes are a binary response with twice the variance", {
  case <- classes_case(60, 2)
  several <- fixed_classes(case)
  case$kernel <- kernel_matern(5 / 2, lengthscale = c(0.4, 0.6), variance = 4)
  two <- pfdtc(case$x, case$y, family = binomial(), kernel = case$kernel, hyper = "fixed", center = FALSE)
  expect_equal(several$evidence, two$evidence, tolerance = 1e-9)
  expect_equal(unname(predict(several, type = "latent")[, 1]), unname(predict(two, type = "latent")), tolerance = 1e-7)
  expect_equal(unname(predict(several, type = "response")[, 2]), unname(predict(two, type = "response")),
               tolerance = 1e-6)
  expect_equal(unname(predict(several, type = "loo")[, 2]), unname(predict(two, type = "loo")), tolerance = 1e-6)
  expect_equal(hatvalues(several), hatvalues(two), tolerance = 1e-6)
})

test_that("leave-one-out is the posterior without the row's site", {
  case <- classes_case(40)
  fit <- fixed_classes(case)
  prior <- kernel_matrix(case$kernel, case$x)
  dense <- ref_classes(prior, case$class, numeric(3))
  row <- 7
  own <- row + 40 * (0:2)
  # The row enters Laplace's posterior as a Gaussian term, so remove its curvature and its gradient at the mode.
  W <- dense$W
  W[own, own] <- 0
  to <- c(dense$W %*% c(dense$f)) + c(dense$g)
  to[own] <- 0
  f <- dense$prior %*% solve(diag(120) + W %*% dense$prior, to)
  expect_equal(unname(predict(at_mode(fit), type = "loo_latent")[row, ]), f[own][-1] - f[own][1], tolerance = 1e-6)
})

test_that("the mean is the mode plus the covariance times the slopes of the log determinant", {
  case <- classes_case(12)
  fit <- fixed_classes(case)
  prior <- kernel_matrix(case$kernel, case$x)
  dense <- ref_classes(prior, case$class, numeric(3))
  half <- function(f) {
    P <- ref_softmax(matrix(f, 12))
    W <- matrix(0, 36, 36)
    for (n in 1:12) W[n + 12 * (0:2), n + 12 * (0:2)] <- diag(P[n, ]) - tcrossprod(P[n, ])
    -as.numeric(determinant(diag(36) + W %*% dense$prior)$modulus) / 2
  }
  slopes <- vapply(1:36, function(i) {
    (half(c(dense$f) + 1e-4 * (1:36 == i)) - half(c(dense$f) - 1e-4 * (1:36 == i))) / 2e-4
  }, 0)
  mean <- dense$f + matrix(dense$V %*% slopes, 12)
  expect_equal(unname(predict(fit, type = "latent")), mean[, -1] - mean[, 1], tolerance = 1e-6)
})

test_that("the mean is nearer to the true posterior mean than the mode, and its probabilities are nearer", {
  # For one row, the posterior is a normal density times a logistic function.
  for (variance in c(1, 9)) {
    f <- seq(-40, 40, by = 0.001)
    density <- stats::dnorm(f, 0, sqrt(variance)) * stats::plogis(f)
    density <- density / sum(density)
    truth <- c(sum(density * f), sum(density * stats::plogis(f)))
    fit <- pfdtc(cbind(x = 1), 1, family = binomial(), kernel = kernel_se(1, variance), hyper = "fixed", center = FALSE)
    said <- function(fit) c(predict(fit), predict(fit, type = "response"))
    expect_true(all(abs(said(fit) - truth) < c(0.5, 0.9) * abs(said(at_mode(fit)) - truth)))
  }
})

test_that("average probabilities of many classes are sums over the points of the rule", {
  for (q in 3:5) {
    f <- with_seed(q, list(mean = matrix(stats::rnorm(2 * q), 2), var = rbind(
      c(crossprod(matrix(stats::rnorm(q^2), q))), c(crossprod(matrix(stats::rnorm(q^2), q))))))
    rule <- normal_rule(q)
    for (row in 1:2) {
      L <- t(chol(matrix(f$var[row, ], q)))
      p <- apply(rule$z, 1L, function(z) {
        odds <- c(0, f$mean[row, ] + drop(L %*% z))
        exp(odds) / sum(exp(odds))
      })
      expect_equal(class_moments(f)$mean[row, ], drop(p %*% rule$weight), tolerance = 1e-12) # rounding
      expect_equal(class_moments(f)$sd[row, ], sqrt(drop(p^2 %*% rule$weight) - drop(p %*% rule$weight)^2),
                   tolerance = 1e-10) # a difference of squares
    }
  }
})

test_that("averages over wide log odds are accurate also for classes that are nearly impossible", {
  for (sd in c(4.5, 8, 15)) for (mean in c(-30, -60, -200)) {
    f <- seq(mean - 10 * sd, mean + sd^2 + 10 * sd, by = 0.01)
    log_terms <- stats::plogis(f, log.p = TRUE) + stats::dnorm(f, mean, sd, log = TRUE)
    truth <- max(log_terms) + log(0.01 * sum(exp(log_terms - max(log_terms))))
    two <- class_moments(list(mean = matrix(mean), var = matrix(sd^2)))$mean
    expect_equal(log(two[2]), truth, tolerance = 1e-6)
    # A third class far below both changes nothing.
    three <- class_moments(list(mean = cbind(mean, -1e4), var = matrix(c(sd^2, 0, 0, 1), 1)))$mean
    expect_equal(log(three[2]), truth, tolerance = 1e-6)
  }
})

test_that("averages over wide log odds of three classes are probabilities with the sum 1", {
  for (variance in c(100, 1e3)) for (third in c(-50, 5, 80)) {
    f <- list(mean = matrix(c(-third, third), 1L), var = matrix(variance * c(1, 0.9, 0.9, 1), 1L))
    p <- class_moments(f)$mean
    expect_true(all(p >= 0 & p <= 1))
    expect_equal(sum(p), 1, tolerance = 1e-13) # rounding
  }
  at <- logistic_moments(c(-8, 0, 30), 5)
  f <- seq(-80, 110, by = 0.01)
  truth <- vapply(c(-8, 0, 30), function(m) sum(0.01 * stats::dnorm(f, m, 5) * stats::plogis(f)), 0)
  expect_lt(max(abs(at$mean - truth)), 1e-10) # both sums have errors below 2e-11
  expect_lte(max(at$mean), 1)
})
