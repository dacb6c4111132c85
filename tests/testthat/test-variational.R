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
