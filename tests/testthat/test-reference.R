# Tests the dense reference functions of helper-reference.R by independent computations.

# Returns the low-rank form of the auxiliary distributions: k^(x, z) = p k(x, z) + sign b(x)' b(z).
factor_sor <- function(u, p) {
  w <- ref_weights(p$weights, p$x)
  l <- t(chol(ref_k(p$kernel, u)))
  a <- function(x) solve(l, ref_k(p$kernel, u, x))
  inner <- diag(nrow(u)) + a(p$x) %*% (w * t(a(p$x))) / p$noise
  list(p = 0, sign = 1, b = function(x) solve(t(chol(inner)), a(x)))
}

factor_subset <- function(rows, p) {
  u <- p$x[rows, , drop = FALSE]
  w <- ref_weights(p$weights, p$x)[rows]
  l <- t(chol(ref_k(p$kernel, u) + diag(p$noise / w, length(rows))))
  list(p = 1, sign = -1, b = function(x) solve(l, ref_k(p$kernel, u, x)))
}

# Returns s2^2 d_pF^2 - C(X) in the whitened form of the theory vignette.
whitened_pf <- function(p, nu, form, jitter) {
  root <- sqrt(ref_weights(p$weights, p$x))
  l <- t(chol(ref_kmm(p$z, p$kernel, jitter)))
  a <- solve(l, t(root * ref_k(p$kernel, p$x, p$z)))
  g <- a %*% t(a)
  d <- diag(nrow(g)) + g / p$noise
  w_x <- root * cbind(t(form$b(p$x)), nu$mean(p$x))
  r_x <- w_x
  r_x[, ncol(r_x)] <- r_x[, ncol(r_x)] - root * p$y
  t_ <- solve(l, cbind(t(form$b(p$z)), nu$mean(p$z)))
  signs <- c(rep(form$sign, ncol(w_x) - 1), 1)
  value <- sum(signs * (colSums(solve(d, a %*% w_x - g %*% t_)^2) - colSums((a %*% r_x)^2)))
  w0 <- a %*% (root * t(root * ref_k(p$kernel, p$x))) %*% t(a)
  j <- jitter * p$kernel$variance * solve(l) %*% solve(t(l))
  v <- w0 - g %*% g - g %*% j %*% g
  value + form$p * (trace_of(solve(d, t(solve(d, v)))) - trace_of(w0))
}

# Returns the gradient by the adjoints of the theory vignette, for low-rank nu with p = 0: dF = sum(bar * dK), with dK
# by a complex step through the reference's kernels.
adjoint_gradient <- function(p, nu, form, jitter) {
  s2 <- p$noise
  root <- sqrt(ref_weights(p$weights, p$x))
  kmx <- function(z) t(root * ref_k(p$kernel, p$x, z))
  w_m <- function(z) cbind(t(form$b(z)), nu$mean(z))
  l <- t(chol(ref_kmm(p$z, p$kernel, jitter)))
  a <- solve(l, kmx(p$z))
  g <- a %*% t(a)
  d <- diag(nrow(g)) + g / s2
  y <- root * p$y
  w_x <- root * cbind(t(form$b(p$x)), nu$mean(p$x))
  last <- ncol(w_x)
  t_ <- solve(l, w_m(p$z))
  p_x <- a %*% w_x
  py <- a %*% y
  p_r <- p_x
  p_r[, last] <- p_r[, last] - py
  x_ <- solve(d, p_x - g %*% t_)
  y_ <- solve(d, x_)
  h <- -2 * (y_ %*% t(t_) + y_ %*% t(x_) / s2)
  hs <- h + t(h)
  lt <- function(b) solve(t(l), b)
  kmx_bar <- lt(2 * (y_ - p_r)) %*% t(w_x) + lt(2 * p_r[, last]) %*% t(y) + lt(hs) %*% a
  t_bar <- -2 * g %*% y_
  a_bar_a <- 2 * (y_ - p_r) %*% t(p_x) + 2 * p_r[, last] %*% t(py) + hs %*% g
  lower <- function(b) b * lower.tri(b, diag = TRUE)
  l_bar <- -lower(lt(a_bar_a + t_bar %*% t(t_)))
  phi <- lower(t(l) %*% l_bar)
  diag(phi) <- diag(phi) / 2
  kmm_bar <- lt(t(lt((phi + t(phi)) / 2)))
  ref_derivative(function(z) {
    sum(kmm_bar * ref_kmm(z, p$kernel, jitter)) + sum(kmx_bar * kmx(z)) + sum(lt(t_bar) * w_m(z))
  }, p$z)
}

test_that("reference kernels agree with their formulas, those of Matérn kernels by Bessel functions", {
  x <- matrix(c(0, 3))
  k <- function(profile) ref_k(ref_kernel(profile, 2, 5), x)[1, 2]
  bessel <- function(nu, r) {
    2^(1 - nu) / gamma(nu) * (sqrt(2 * nu) * r)^nu * besselK(sqrt(2 * nu) * r, nu)
  }
  expect_close(k("se"), 5 * exp(-9 / 8), 1e-14)
  expect_close(k("matern12"), 5 * bessel(1 / 2, 1.5), 1e-14)
  expect_close(k("matern32"), 5 * bessel(3 / 2, 1.5), 1e-14)
  expect_close(k("matern52"), 5 * bessel(5 / 2, 1.5), 1e-14)
})

test_that("the divergence of Proposition 2 is that of its definition", {
  for (p in problems()) {
    for (nu in list(ref_nu_sor(p$x[p$rows, , drop = FALSE], p$x, p$y, p$kernel, p$noise, p$weights),
                    ref_nu_subset(p$rows, p$x, p$y, p$kernel, p$noise, p$weights))) {
      expect_close(
        ref_pf(p$z, p$x, p$y, p$kernel, p$noise, nu, p$weights, constant = TRUE),
        ref_pf_definition(p$z, p$x, p$y, p$kernel, p$noise, nu, p$weights),
        1e-10, label_of(p)
      )
    }
  }
})

test_that("the terms of Proposition 2 add up to the whitened form", {
  for (p in problems()) {
    u <- p$x[p$rows, , drop = FALSE]
    nu_sor <- ref_nu_sor(u, p$x, p$y, p$kernel, p$noise, p$weights)
    nu_subset <- ref_nu_subset(p$rows, p$x, p$y, p$kernel, p$noise, p$weights)
    for (jitter in c(0, 1e-6, 0.1)) {
      expect_close(
        ref_pf(p$z, p$x, p$y, p$kernel, p$noise, nu_sor, p$weights, jitter),
        whitened_pf(p, nu_sor, factor_sor(u, p), jitter), 1e-10, label_of(p)
      )
      expect_close(
        ref_pf(p$z, p$x, p$y, p$kernel, p$noise, nu_subset, p$weights, jitter),
        whitened_pf(p, nu_subset, factor_subset(p$rows, p), jitter), 1e-10, label_of(p)
      )
    }
  }
})

test_that("the reference is still accurate on the nasty problems", {
  for (name in names(nasty_problems())) {
    p <- nasty_problems()[[name]]
    u <- p$x[if (is.null(p$u_rows)) p$rows else p$u_rows, , drop = FALSE]
    nu_sor <- ref_nu_sor(u, p$x, p$y, p$kernel, p$noise, p$weights)
    nu_subset <- ref_nu_subset(p$rows, p$x, p$y, p$kernel, p$noise, p$weights)
    for (jitter in c(0, 1e-6)) {
      compare <- function(nu, form) {
        terms <- ref_pf_terms(p$z, p$x, p$y, p$kernel, p$noise, nu, p$weights, jitter)
        value <- terms$I + terms$IIa + terms$IIb + terms$III - terms$constant
        error <- abs(whitened_pf(p, nu, form, jitter) - value)
        expect_lt(error, 1e-13 * (terms$constant + abs(value)), label = name)
      }
      compare(nu_sor, factor_sor(u, p))
      compare(nu_subset, factor_subset(p$rows, p))
    }
  }
})

test_that("Z = X gives the exact posterior, the exact evidence and no divergence", {
  for (p in problems()) {
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    dtc <- ref_dtc(p$x, p$x, p$y, p$kernel, p$noise, p$weights)
    expect_close(dtc$mean(p$new), exact$mean(p$new), 1e-9)
    expect_close(dtc$cov(p$new, p$new), exact$cov(p$new, p$new), 1e-9)
    expect_close(
      ref_elbo(p$x, p$x, p$y, p$kernel, p$noise, p$weights), exact$evidence, 1e-9
    )
    terms <- ref_pf_terms(p$x, p$x, p$y, p$kernel, p$noise, exact, p$weights)
    divergence <- terms$I + terms$IIa + terms$IIb + terms$III
    expect_lt(abs(divergence), 1e-10 * terms$constant)
  }
})

test_that("DTC, SoR, subset and sparse forms agree with one another", {
  for (p in problems()) {
    sor <- ref_dtc(p$z, p$x, p$y, p$kernel, p$noise, p$weights, sor = TRUE)
    nu <- ref_nu_sor(p$z, p$x, p$y, p$kernel, p$noise, p$weights)
    expect_close(nu$mean(p$new), sor$mean(p$new), 1e-9)
    expect_close(nu$cov(p$new, p$new), sor$cov(p$new, p$new), 1e-9)
    all_rows <- ref_nu_subset(seq_along(p$y), p$x, p$y, p$kernel, p$noise, p$weights)
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    expect_equal(all_rows$mean(p$new), exact$mean(p$new))
    expect_lte(ref_elbo(p$z, p$x, p$y, p$kernel, p$noise, p$weights), exact$evidence)
  }
})

test_that("d_pF at the exact posterior bounds the errors of mean and sd, as the theorem says", {
  for (p in problems()) {
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    dtc <- ref_dtc(p$z, p$x, p$y, p$kernel, p$noise, p$weights)
    d2 <- ref_pf(p$z, p$x, p$y, p$kernel, p$noise, exact, p$weights, constant = TRUE) / p$noise^2
    error <- (dtc$mean(p$new) - exact$mean(p$new))^2 +
      (sqrt(ref_variance(dtc, p$new)) - sqrt(ref_variance(exact, p$new)))^2
    expect_true(all(error <= p$kernel$variance * d2))
    expect_gt(max(error), 0)
  }
})

test_that("a weight of 2 is a row written twice", {
  for (p in quick(lapply(profiles, problem))) {
    n <- nrow(p$x)
    xx <- rbind(p$x, p$x)
    yy <- c(p$y, p$y)
    two <- rep(2, n)
    u <- p$x[p$rows, ]
    nu_2 <- ref_nu_sor(u, p$x, p$y, p$kernel, p$noise, two)
    nu_d <- ref_nu_sor(u, xx, yy, p$kernel, p$noise)
    expect_close(nu_2$mean(p$new), nu_d$mean(p$new), 1e-10)
    expect_close(nu_2$cov(p$new, p$new), nu_d$cov(p$new, p$new), 1e-10)
    expect_close(ref_pf(p$z, p$x, p$y, p$kernel, p$noise, nu_2, two, constant = TRUE),
                 ref_pf(p$z, xx, yy, p$kernel, p$noise, nu_d, constant = TRUE), 1e-10)
    lower <- n / 2 * log(4 * pi * p$noise)
    expect_close(ref_elbo(p$z, xx, yy, p$kernel, p$noise),
                 ref_elbo(p$z, p$x, p$y, p$kernel, p$noise, two) - lower, 1e-10)
    expect_close(ref_exact(xx, yy, p$kernel, p$noise)$evidence,
                 ref_exact(p$x, p$y, p$kernel, p$noise, two)$evidence - lower, 1e-10)
  }
})

test_that("the complex step is the limit of central differences", {
  only_nightly()
  for (p in in_turn(problems(), 1, 3)) {
    nu <- ref_nu_subset(p$rows, p$x, p$y, p$kernel, p$noise, p$weights)
    pf <- function(z) ref_pf(z, p$x, p$y, p$kernel, p$noise, nu, p$weights, 1e-6)
    expect_gradient(pf, p$z, ref_derivative(pf, p$z), info = label_of(p))
    elbo <- function(z) -ref_elbo(z, p$x, p$y, p$kernel, p$noise, p$weights, 1e-6)
    expect_gradient(elbo, p$z, ref_derivative(elbo, p$z), info = label_of(p))
  }
})

test_that("the vignette's adjoints are the derivative of the divergence in Proposition 2", {
  for (p in problems()) {
    u <- p$x[p$rows, , drop = FALSE]
    nu <- ref_nu_sor(u, p$x, p$y, p$kernel, p$noise, p$weights)
    for (jitter in c(0, 1e-3)) {
      pf <- function(z) ref_pf(z, p$x, p$y, p$kernel, p$noise, nu, p$weights, jitter)
      expect_close(adjoint_gradient(p, nu, factor_sor(u, p), jitter), ref_derivative(pf, p$z),
                   1e-9, label_of(p))
    }
  }
})

test_that("duplicated inducing points with a jitter are one point with a smaller one", {
  for (p in quick(lapply(profiles, problem))) {
    nu <- ref_nu_subset(p$rows, p$x, p$y, p$kernel, p$noise)
    twice <- rbind(p$z, p$z[2, ])
    jitter <- 1e-3
    split <- c(jitter, jitter / 2, jitter, jitter)
    expect_close(ref_pf(twice, p$x, p$y, p$kernel, p$noise, nu, jitter = jitter),
                 ref_pf(p$z, p$x, p$y, p$kernel, p$noise, nu, jitter = split), 1e-10)
    expect_close(ref_elbo(twice, p$x, p$y, p$kernel, p$noise, jitter = jitter),
                 ref_elbo(p$z, p$x, p$y, p$kernel, p$noise, jitter = split), 1e-10)
  }
})

test_that("the trace after pivoting is that of K less its low-rank approximation", {
  p <- problem("matern32")
  greedy <- ref_pivots(p$x, 6, p$kernel)
  z <- p$x[greedy$pivots, ]
  left <- ref_k(p$kernel, p$x) - ref_q(p$x, p$x, z, p$kernel)
  expect_close(greedy$trace[6], trace_of(left), 1e-10)
  twice <- rbind(p$x, p$x)
  expect_length(ref_pivots(twice, 26, p$kernel)$pivots, 13)
})

test_that("expect_gradient() notices a wrong derivative", {
  f <- function(x) sum(exp(x) * c(1, 100))
  x <- c(0.3, -0.2)
  right <- exp(x) * c(1, 100)
  expect_success(expect_gradient(f, x, right))
  for (wrong in list(right * (1 + 1e-5), right + c(1e-4, 0), -right, right[2:1])) {
    expect_failure(expect_gradient(f, x, wrong))
  }
})
