# Variational inference for classes and counts, against dense searches, integrals and limits.

# E h(f), f ~ N(mean, v), by 50 Gauss-Hermite nodes (Golub and Welsch), which is not the engine's rule
hermite <- local({
  J <- matrix(0, 50L, 50L)
  J[cbind(1:49, 2:50)] <- J[cbind(2:50, 1:49)] <- sqrt(1:49)
  e <- eigen(J, symmetric = TRUE)
  list(at = e$values, weight = e$vectors[1L, ]^2)
})
ref_average <- function(h, mean, v) {
  Reduce(`+`, Map(function(at, weight) weight * h(mean + sqrt(v) * at), hermite$at, hermite$weight))
}

# The bound of q(u) = N(mean, R R'), f_X = A'u + e, with its slopes in mean and in R
ref_bound <- function(p, A, mean, R) {
  v <- p$kernel$variance - colSums(A^2) + colSums(crossprod(R, A)^2)
  of <- function(what) {
    ref_average(function(f) ref_site(p$family, p$sites, f, p$theta)[[what]], drop(crossprod(A, mean)), v)
  }
  m <- length(mean)
  list(value = sum(of("l")) - (sum(R^2) + sum(mean^2) - m) / 2 + sum(log(abs(diag(R)))),
       mean = drop(A %*% of("g")) - mean, R = diag(1 / diag(R), m) - R - A %*% (of("W") * crossprod(A, R)))
}

# Of whitened u on points z
ref_A <- function(p, z, x) forwardsolve(t(chol(ref_kmm(z, p$kernel, 0))), ref_k(p$kernel, z, x))

variational_problems <- function() {
  c(laplace_problems(), list(replace(laplace_problem_of("student", seed = 9), "theta", 0.7)))
}

variational_fit <- function(p, z = p$x, ...) {
  laplace_fit_of(p, inducing = `colnames<-`(z, c("x1", "x2")), approx = "vi", ...)
}

test_that("the posterior is where the dense bound has no slope, for all families", {
  for (p in variational_problems()) {
    fit <- variational_fit(p, p$z)
    R <- t(chol(chol2inv(t(fit$factors$C))))
    plain <- ref_bound(p, ref_A(p, p$z, p$x), fit$factors$beta, R)
    label <- paste(p$family, p$kernel$profile)
    bound <- plain$value + sum(log_constant(fit$likelihood, p$sites))
    # the rule for averages is taken off: some 1e-7 a row, 1e-5 where sigma is small
    expect_equal(fit$evidence, bound, tolerance = 1e-5, label = label)
    expect_lt(fit$evidence, bound + 1e-8)
    # 1e-7 is what is enough; R's slopes are those of a step in units of its sd
    expect_lt(max(abs(plain$mean)), 1e-5, label = label)
    expect_lt(max(abs(plain$R[lower.tri(R, diag = TRUE)])), 1e-5, label = label)
  }
})

test_that("it is what a search by optim() ends at, all rows being inducing points", {
  p <- laplace_problem_of("logit", n = 30)
  p$kernel$variance <- 9
  A <- ref_A(p, p$x, p$x)
  m <- nrow(p$x)
  low <- lower.tri(diag(m), diag = TRUE)
  at <- function(par) ref_bound(p, A, par[seq_len(m)], replace(matrix(0, m, m), low, par[-seq_len(m)]))
  slope <- function(par) {
    b <- at(par)
    -c(b$mean, b$R[low])
  }
  found <- stats::optim(c(numeric(m), diag(m)[low]), function(par) -at(par)$value, slope, method = "BFGS",
                        control = list(maxit = 1000, reltol = 1e-13))
  fit <- variational_fit(p)
  expect_equal(fit$evidence, -found$value, tolerance = 1e-5)
  f <- predict(fit, se.fit = TRUE, type = "latent")
  expect_equal(unname(f$fit), drop(crossprod(A, found$par[seq_len(m)])), tolerance = 1e-3) # reltol's root, in sds
  S <- tcrossprod(replace(matrix(0, m, m), low, found$par[-seq_len(m)]))
  expect_equal(unname(f$se.fit), sqrt(colSums(A * (S %*% A))), tolerance = 1e-3)
})

# One row, f ~ N(0, v): list(bound, exact = log of the integral of exp(log_p(f)), by the trapezoid rule as far from the
# mode as it has fallen by e^-60)
one_row <- function(v, y, family, log_p, ...) {
  fit <- suppressWarnings(suppressMessages(
    pfdtc(cbind(x = 1), y, kernel = kernel_se(1, v), hyper = "fixed", center = FALSE, family = family,
          approx = "vi", ...)))
  joint <- function(f) log_p(f) - f^2 / (2 * v)
  mode <- stats::optimize(joint, c(-20, 20), maximum = TRUE, tol = 1e-10)$maximum
  end <- function(side) {
    by <- 1e-9
    while (joint(mode) - joint(mode + side * by) < 60) by <- 1.2 * by
    mode + side * by
  }
  f <- seq(end(-1), end(1), length.out = 1e4)
  list(bound = fit$evidence,
       exact = joint(mode) + log(sum(exp(joint(f) - joint(mode))) * (f[2] - f[1])) - log(2 * pi * v) / 2)
}

test_that("the bound is one to the last digit, with counts and weights in the millions", {
  for (theta in c(1.7, 1e6)) for (v in c(1e-8, 0.01)) {
    log_p <- function(f) 1e6 * stats::dnbinom(1e6, theta, mu = exp(12 + f), log = TRUE)
    of <- one_row(v, 1e6, nb(theta), log_p, weights = 1e6, offset = 12)
    digits <- 1e-14 * abs(of$exact) # of dnbinom()
    expect_lt(of$bound, of$exact + digits)
    expect_gt(of$bound, of$exact - 0.2)
  }
  sure <- list(name = "probit", y = 1e9, size = 1e9, weight = NULL, offset = 0, shape = NULL, variational = 0L)
  for (f in c(0.5, 3, 7)) {
    sure$y <- 1e9
    expect_equal(native_likelihood(sure, f)[1L, ], 1e9 * stats::pnorm(f, log.p = TRUE), tolerance = 1e-13)
    sure$y <- 0
    expect_equal(native_likelihood(sure, -f)[1L, ], 1e9 * stats::pnorm(f, log.p = TRUE), tolerance = 1e-13)
  }
})

test_that("where the mode's normal distribution is far too wide the bound is near the evidence all the same", {
  for (v in c(1e3, 1e4)) { # averages of e^f begin at 1e35 and at more than there are numbers
    of <- one_row(v, 0, stats::poisson(), function(f) -exp(f))
    expect_lt(of$bound, of$exact)
    expect_gt(of$bound, of$exact - 2)
  }
  of <- one_row(100, 1000, stats::poisson(), function(f) 1e-9 * stats::dpois(1000, exp(3 + f), log = TRUE),
                weights = 1e-9, offset = 3)
  expect_lt(of$bound, of$exact)
  expect_gt(of$bound, of$exact - 1)
})
