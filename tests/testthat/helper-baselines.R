# Computes the other approximations (FITC, SoR, ...) by dense matrices, as naively as helper-reference.R, and distances
# between processes by brute force on finitely many points.

# Returns the FITC posterior, in which row n has the additional noise E_nn = k(x_n, x_n) - Q_nn.
ref_fitc <- function(z, x, y, kernel, noise, weights = NULL, jitter = 0) {
  q <- function(a, b) ref_q(a, b, z, kernel, jitter)
  lambda <- noise / ref_weights(weights, x) + kernel$variance - diag(q(x, x))
  ky <- q(x, x) + diag(lambda, nrow(x))
  inverse <- solve(ky)
  list(
    mean = function(new) drop(q(new, x) %*% inverse %*% y),
    cov = function(new, other) ref_k(kernel, new, other) - q(new, x) %*% inverse %*% q(x, other),
    evidence = ref_log_normal(y, ky)
  )
}

# Returns the log marginal likelihood of the model of SoR, in which f has the covariance q.
ref_sor_evidence <- function(z, x, y, kernel, noise, weights = NULL, jitter = 0) {
  ref_log_normal(y, ref_q(x, x, z, kernel, jitter) + diag(noise / ref_weights(weights, x), nrow(x)))
}

# Returns KL(N(a) || N(b)) on the points, by determinants and solve(); `a` and `b` are lists mean(), cov().
ref_kl <- function(a, b, points) {
  Sa <- a$cov(points, points)
  Sb <- b$cov(points, points)
  d <- a$mean(points) - b$mean(points)
  (trace_of(solve(Sb, Sa)) + sum(d * solve(Sb, d)) - nrow(points) + ref_logdet(Sb) - ref_logdet(Sa)) / 2
}

# Returns the 2-Wasserstein distance of two processes on the points, in the RKHS norm of the kernel. In coordinates u =
# R'^{-1} f with K = R'R, A and B their covariances, it is the root of |m_a - m_b|^2 + tr(A + B - 2 (A^1/2 B
# A^1/2)^1/2).
ref_wasserstein <- function(a, b, points, kernel) {
  R <- chol(ref_k(kernel, points))
  white <- function(S) {
    S <- backsolve(R, t(backsolve(R, S, transpose = TRUE)), transpose = TRUE)
    (S + t(S)) / 2
  }
  root <- function(S) {
    e <- eigen(S, symmetric = TRUE)
    e$vectors %*% (sqrt(pmax(e$values, 0)) * t(e$vectors))
  }
  Sa <- white(a$cov(points, points))
  Sb <- white(b$cov(points, points))
  half <- root(Sa)
  d <- backsolve(R, a$mean(points) - b$mean(points), transpose = TRUE)
  sqrt(max(0, sum(d^2) + trace_of(Sa + Sb - 2 * root(half %*% Sb %*% half))))
}

## The package's fits on a problem of helper-problems.R ----------------------------------------------

sparse_methods <- c("pfdtc", "gp_vfe", "gp_dtc", "gp_sor", "gp_fitc")
all_methods <- c(sparse_methods, "gp_subsample", "gp_exact")

# Returns a fit by the function `by` for a problem p, at its points and hyperparameters, without optimisation.
fit_by <- function(by, p, ..., jitter = 1e-12) {
  args <- list(x = p$x, y = p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed",
               weights = p$weights, center = FALSE, scale = FALSE,
               control = pfdtc_control(maxit = 0, jitter = jitter, progress = FALSE))
  if (by %in% sparse_methods) args$inducing <- p$z
  if (by == "pfdtc") args$aux <- aux_sor(rows = p$rows)
  if (by == "gp_subsample") args$m <- length(p$rows)
  given <- list(...)
  args[names(given)] <- given
  with_seed(7, do.call(by, args))
}

# Returns the dense reference for a fit by fit_by(): mean(), cov() and evidence, for y as given in p.
ref_of <- function(fit, p) {
  args <- list(p$z, p$x, p$y, p$kernel, p$noise, p$weights, fit$jitter)
  exact_on <- function(rows) {
    ref_exact(p$x[rows, , drop = FALSE], p$y[rows], p$kernel, p$noise, ref_weights(p$weights, p$x)[rows])
  }
  evidence <- function(gp, value) c(gp[c("mean", "cov")], list(evidence = value))
  elbo <- function() evidence(do.call(ref_dtc, args), do.call(ref_elbo, args))
  switch(fit$method,
    gp_exact = exact_on(seq_along(p$y)),
    gp_subsample = exact_on(fit$chosen),
    gp_fitc = do.call(ref_fitc, args),
    gp_sor = evidence(do.call(ref_dtc, c(args, sor = TRUE)), do.call(ref_sor_evidence, args)),
    elbo()
  )
}

expect_posterior <- function(fit, ref, new, tolerance, info, shift = 0) {
  got <- predict(fit, new, se.fit = TRUE, full_cov = TRUE)
  expect_close(unname(got$fit) - shift, ref$mean(new), tolerance, info)
  expect_close(unname(got$cov), ref$cov(new, new), tolerance, info)
  expect_close(unname(got$se.fit)^2, diag(ref$cov(new, new)), tolerance, info)
}

# Evaluates code that draws, on a device without a file.
draw_nowhere <- function(code) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  force(code)
}

# Draws, and expects that par() and the random numbers stay unchanged.
expect_graphics_kept <- function(code) {
  draw_nowhere({
    graphics::plot.new()
    settings <- c("mfrow", "mar", "oma", "mgp", "cex", "fig", "xpd", "new", "las", "lty", "lwd", "lend")
    before <- graphics::par(settings)
    set.seed(1)
    seed <- .Random.seed
    force(code)
    testthat::expect_identical(graphics::par(settings), before)
    testthat::expect_identical(.Random.seed, seed)
  })
}
