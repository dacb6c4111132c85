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

ref_variational <- function(p, z) {
  A <- forwardsolve(t(chol(ref_kmm(z, p$kernel, 0))), ref_k(p$kernel, z, p$x))
  m <- nrow(z)
  low <- lower.tri(diag(m), diag = TRUE)
  R_of <- function(par) replace(matrix(0, m, m), low, par[-seq_len(m)])
  minus <- function(par) -ref_bound(p, A, par[seq_len(m)], R_of(par))$value
  slope <- function(par) {
    b <- ref_bound(p, A, par[seq_len(m)], R_of(par))
    -c(b$mean, b$R[low])
  }
  par <- c(numeric(m), diag(m)[low])
  to_the_end <- list(maxit = 500, reltol = 1e-15)
  for (again in 1:3) par <- stats::optim(par, minus, slope, method = "BFGS", control = to_the_end)$par
  L <- t(chol(ref_kmm(z, p$kernel, 0)))
  a <- forwardsolve(L, ref_k(p$kernel, z, p$new))
  list(bound = -minus(par), mean = drop(crossprod(a, par[seq_len(m)])),
       var = p$kernel$variance - colSums(a^2) + colSums(crossprod(R_of(par), a)^2))
}

variational_problems <- function() c(laplace_problems(), list(laplace_problem_of("student", seed = 9)))

test_that("the posterior is the one that a dense search finds, for all families, on few points and on all", {
  problems <- variational_problems()
  for (i in seq_along(problems)) {
    p <- problems[[i]]
    if (p$family == "student") p$likelihood$theta <- p$theta <- 0.7
    z <- if (i == 2L) p$x else p$z
    fit <- laplace_fit_of(p, inducing = `colnames<-`(z, c("x1", "x2")), approx = "vi")
    plain <- ref_variational(p, z)
    label <- paste(p$family, p$kernel$profile, nrow(z))
    bound <- plain$bound + sum(log_constant(fit$likelihood, p$sites))
    # the rule for averages is taken off: by every other of its terms, some 1e-7 a row
    expect_equal(fit$evidence, bound, tolerance = 1e-5, label = label)
    expect_lt(fit$evidence, bound + 1e-7)
    at <- posterior_at(fit, `colnames<-`(p$new, c("x1", "x2")))
    expect_equal(at$mean, plain$mean, tolerance = 1e-4, label = label) # optim() ends some 1e-5 of an sd away
    expect_equal(at$var, plain$var, tolerance = 1e-4, label = label)
  }
})
