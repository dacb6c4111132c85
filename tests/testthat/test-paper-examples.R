# Tests the small results of the paper (Huggins et al., 2019, sections 3 and 4), as the vignette "Comparing
# approximations" derives them.

kl_normal <- function(m1, s1, m2, s2) log(s2 / s1) + (s1^2 + (m1 - m2)^2) / (2 * s2^2) - 1 / 2

w2_normal <- function(m1, s1, m2, s2) sqrt((m1 - m2)^2 + (s1 - s2)^2)

## What a KL divergence says of the mean ---------------------------------------------------------------

test_that("KL = delta allows an error of sqrt(exp(2 delta) - 1) of the approximation's sds, and no more", {
  for (delta in c(1e-6, 0.1, 1, 5)) {
    error <- sqrt(expm1(2 * delta))
    exact_sd <- exp(delta)                                  # the approximation's is 1
    expect_equal(kl_normal(error, 1, 0, exact_sd), delta, tolerance = 1e-9)
    # A larger error has a larger divergence, whatever the exact sd is.
    sds <- exp(seq(-3, 3, length.out = 2001)) * exact_sd
    expect_gte(min(kl_normal(error, 1, 0, sds)), delta * (1 - 1e-9))
    expect_gt(min(kl_normal(1.001 * error, 1, 0, sds)), delta)
  }
  expect_gt(sqrt(expm1(10)), 148)
  expect_lt(sqrt(expm1(10)), 149)
})

test_that("KL = delta allows an error of sqrt(2 delta) exact sds, and errors of mean and sd together no more", {
  for (delta in c(0.01, 1, 5)) {
    expect_equal(kl_normal(sqrt(2 * delta), 1, 0, 1), delta)
    s <- exp(seq(-4, 2, length.out = 601))                  # the approximation's sd; the exact one is 1
    error2 <- 2 * delta - (s^2 - 1 - 2 * log(s))            # squared error of the mean at which KL is delta
    s <- s[error2 >= 0]
    error2 <- error2[error2 >= 0]
    expect_equal(kl_normal(sqrt(error2), s, 0, 1), rep(delta, length(s)))
    expect_lte(max(error2 + (s - 1)^2), 2 * delta * (1 + 1e-12))
  }
})

# Returns the exact GP with its value at x0 replaced by N(mean + shift, (ratio * sd)^2), and unchanged given this value.
# By the chain rule, the KL divergence is that of the two values.
tilt <- function(gp, x0, shift, ratio) {
  v <- drop(gp$cov(x0, x0))
  list(
    mean = function(x) gp$mean(x) + drop(gp$cov(x, x0)) * shift / v,
    cov = function(x, z) gp$cov(x, z) - gp$cov(x, x0) %*% gp$cov(x0, z) * (1 - ratio^2) / v
  )
}

test_that("a Gaussian process with KL divergence 5 can be 148 of its sds from the exact one", {
  p <- problem(n = 8, d = 1)
  exact <- ref_exact(p$x, p$y, p$kernel, p$noise)
  x0 <- cbind(0.3)
  for (delta in c(0.5, 5)) {
    sd <- sqrt(drop(exact$cov(x0, x0)))
    wrong <- tilt(exact, x0, shift = sd * sqrt(-expm1(-2 * delta)), ratio = exp(-delta))
    points <- rbind(x0, p$x[c(1, 4, 7), , drop = FALSE])
    expect_equal(ref_kl(wrong, exact, points), delta, tolerance = 1e-6)
    own_sd <- sqrt(drop(wrong$cov(x0, x0)))
    expect_equal((wrong$mean(x0) - exact$mean(x0)) / own_sd, sqrt(expm1(2 * delta)), tolerance = 1e-5)
  }
})

## Fisher, preconditioned Fisher and Wasserstein -------------------------------------------------------

# Returns divergences of two exact posteriors on the same rows whose responses differ by `delta`. Their relative log
# density has the gradient k(., X) delta / s2 for every f, so nu does not matter; S is their covariance.
fisher_example <- function(x, kernel, noise, delta, points = x) {
  K <- ref_k(kernel, x)
  P <- ref_k(kernel, points)                                 # |f|^2 = f'P^{-1} f on the points
  gradient <- ref_k(kernel, points, x) %*% delta / noise
  S <- ref_exact(x, delta, kernel, noise)$cov(points, points)
  moved <- S %*% solve(P, gradient)
  norm <- function(f) sqrt(drop(t(f) %*% solve(P, f)))
  c(fisher = norm(gradient), pf = norm(moved))
}

test_that("with one observation plain Fisher is 1 + 1/s2 times the Wasserstein distance, pF is equal to it", {
  k <- ref_kernel("se", 1)
  x <- cbind(0)
  for (s2 in c(1e-3, 0.1, 1, 10)) {
    y <- c(0.4, -1.3)
    d <- fisher_example(x, k, s2, y[1] - y[2])
    w2 <- w2_normal(y[1] / (1 + s2), sqrt(s2 / (1 + s2)), y[2] / (1 + s2), sqrt(s2 / (1 + s2)))
    expect_equal(d[["pf"]], w2)
    expect_equal(d[["fisher"]] / w2, 1 + 1 / s2)
  }
})

test_that("with any rows pF is the Wasserstein distance of posteriors that differ in the response alone", {
  for (profile in profiles) {
    p <- problem(profile, n = 6, d = 2)
    delta <- with_seed(1, stats::rnorm(6))
    points <- rbind(p$x, p$new[1:2, ])
    d <- fisher_example(p$x, p$kernel, p$noise, delta, points)
    a <- ref_exact(p$x, p$y, p$kernel, p$noise)
    b <- ref_exact(p$x, p$y + delta, p$kernel, p$noise)
    # The square root of a difference has the square root of its rounding error.
    expect_equal(d[["pf"]], ref_wasserstein(a, b, points, p$kernel), tolerance = 1e-6)
    # Along an eigenvector of K with eigenvalue l, plain Fisher is 1 + l / s2 times the preconditioned one.
    e <- eigen(ref_k(p$kernel, p$x), symmetric = TRUE)
    for (i in c(1, 6)) {
      d <- fisher_example(p$x, p$kernel, p$noise, e$vectors[, i])
      expect_equal(d[["fisher"]] / d[["pf"]], 1 + e$values[i] / p$noise, tolerance = 1e-8)
    }
  }
})

## What a Wasserstein distance says ----------------------------------------------------------------------

# Returns the Wasserstein distance of two samples of equal size, whose best coupling is sorted pairs.
w2_sample <- function(x, y) sqrt(mean((sort(x) - sort(y))^2))

test_that("2-Wasserstein bounds mean, sd and variance in one dimension, whatever the distributions", {
  sd_n <- function(x) sqrt(mean((x - mean(x))^2))
  draw <- list(stats::rnorm, stats::rexp, function(n) stats::rt(n, 3), function(n) stats::rbinom(n, 1, 0.3),
               function(n) stats::rlnorm(n))
  with_seed(1, for (i in 1:40) {
    x <- stats::runif(1, 0.1, 3) * draw[[1 + i %% 5]](200) + stats::rnorm(1)
    y <- stats::runif(1, 0.1, 3) * draw[[1 + i %/% 5 %% 5]](200)
    w <- w2_sample(x, y)
    expect_lte(abs(mean(x) - mean(y)), w * (1 + 1e-12))
    expect_lte((mean(x) - mean(y))^2 + (sd_n(x) - sd_n(y))^2, w^2 * (1 + 1e-12))
    expect_lte(abs(sd_n(x)^2 - sd_n(y)^2), w * (2 * sd_n(x) + w) * (1 + 1e-12))
    # Test the looser forms in the paper.
    expect_lte(abs(sd_n(x) - sd_n(y)), sqrt(6) * w)
    expect_lte(abs(sd_n(x)^2 - sd_n(y)^2), 3 * sd_n(x) * w + 6 * w^2)
  })
})

test_that("between normals 2-Wasserstein consists of the errors of mean and sd", {
  q <- stats::ppoints(1e5)
  x <- stats::qnorm(q, 1, 2)
  y <- stats::qnorm(q, -0.5, 0.7)
  expect_equal(w2_sample(x, y), w2_normal(1, 2, -0.5, 0.7), tolerance = 1e-4)
})

test_that("a small KL divergence implies a small Wasserstein distance, but not conversely", {
  for (p in quick(lapply(profiles, problem, d = 1))) {
    exact <- fit_by("gp_exact", p)
    pi <- ref_of(exact, p)
    points <- rbind(p$x, p$z)
    for (method in c("gp_dtc", "gp_fitc", "gp_subsample")) {
      fit <- fit_by(method, p)
      w <- ref_wasserstein(ref_of(fit, p), pi, points, p$kernel)
      expect_lte(w^2, 2 * kl_divergence(fit, exact) * (1 + 1e-6))
    }
    sor <- fit_by("gp_sor", p)
    expect_identical(kl_divergence(sor, exact), Inf)
    expect_lt(ref_wasserstein(ref_of(sor, p), pi, points, p$kernel), Inf)
  }
})
