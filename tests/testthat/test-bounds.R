# error_bounds() and evidence_bounds() against the exact GP on random problems.

bounds_problem <- function(seed) {
  set.seed(seed)
  n <- sample(5:60, 1)
  d <- sample(1:3, 1)
  x <- matrix(runif(n * d), n)
  y <- rnorm(n) * 10^runif(1, -3, 3) + sin(5 * x[, 1])
  l <- rep(runif(1, 0.1, 2), d)
  kernel <- list(kernel_se, function(...) kernel_matern(1 / 2, ...), function(...) kernel_matern(3 / 2, ...),
                 function(...) kernel_matern(5 / 2, ...))[[1 + seed %% 4]](l, var(y) * runif(1, 0.1, 3))
  list(x = x, y = y, weights = if (seed %% 2) runif(n, 0.2, 3), kernel = kernel,
       noise = var(y) * 10^runif(1, -4, 0), m = max(1, n %/% 3), new = matrix(runif(20 * d, -0.3, 1.3), 20))
}

bounds_fit <- function(method, p, ...) {
  args <- list(p$x, p$y, kernel = p$kernel, noise = p$noise, hyper = "fixed", weights = p$weights,
               control = pfdtc_control(maxit = 3), ...)
  if (!identical(method, gp_exact)) args$m <- p$m
  do.call(method, args)
}

test_that("lower <= exact log evidence <= upper, for fits of every kind, and a reference makes it no wider", {
  gaps <- NULL
  for (seed in quick(1:20)) {
    p <- bounds_problem(seed)
    exact <- bounds_fit(gp_exact, p)
    for (method in list(pfdtc, gp_dtc, gp_sor, gp_fitc, gp_subsample)) {
      fit <- bounds_fit(method, p)
      plain <- evidence_bounds(fit)
      fit$reference <- reference(fit)
      better <- evidence_bounds(fit)
      info <- paste(seed, fit$method)
      expect_gte(exact$elbo, plain[["lower"]])
      expect_lte(exact$elbo, plain[["upper"]])
      expect_gte(exact$elbo, better[["lower"]])
      expect_lte(exact$elbo, better[["upper"]])
      expect_true(better[["lower"]] >= plain[["lower"]] && better[["upper"]] <= plain[["upper"]], info = info)
      gaps <- c(gaps, (better[["upper"]] - better[["lower"]]) / (1 + abs(exact$elbo)))
    }
  }
  expect_lt(median(gaps), 1e-3) # brackets that are never narrow would say nothing
  expect_identical(evidence_bounds(exact)[["lower"]], evidence_bounds(exact)[["upper"]])
})

test_that("the bracket closes where the inducing points are all rows", {
  p <- bounds_problem(2)
  fit <- gp_dtc(p$x, p$y, inducing = p$x, kernel = p$kernel, noise = p$noise, hyper = "fixed", weights = p$weights)
  bracket <- evidence_bounds(fit)
  expect_equal(bracket[["upper"]], bracket[["lower"]], tolerance = 1e-8) # jitter 1e-12 and the rounding allowance
})

test_that("the theorem's bounds hold as printed and sharper, and eps is above d_pF of the exact posterior", {
  for (seed in quick(1:14)) {
    p <- bounds_problem(seed)
    exact <- predict(bounds_fit(gp_exact, p), p$new, se.fit = TRUE)
    for (method in list(pfdtc, gp_dtc)) {
      fit <- bounds_fit(method, p)
      fit$reference <- reference(fit)
      at <- predict(fit, p$new, se.fit = TRUE)
      # both predictions carry rounding of their own
      tiny <- 1e-10 * fit$sd_y
      for (effort in c("fast", "reference")) {
        b <- error_bounds(fit, p$new, effort)
        info <- paste(seed, effort)
        expect_true(all(abs(at$fit - exact$fit) <= b$mean_bound_sharp + tiny), info = info)
        expect_true(all(abs(at$se.fit - exact$se.fit) <= b$sd_bound_sharp + tiny), info = info)
        expect_true(all(abs(at$se.fit^2 - exact$se.fit^2) <= b$var_bound + tiny * fit$sd_y), info = info)
        expect_true(all(b$mean_bound_sharp <= b$mean_bound * (1 + 1e-12)), info = info)
        expect_true(all(b$sd_bound_sharp <= b$sd_bound), info = info)
        expect_equal(attr(b, "eps")^2, attr(b, "eps_mean")^2 + attr(b, "eps_cov")^2)
        expect_identical(attr(b, "w2"), attr(b, "eps"))
      }
      expect_lte(pf_divergence(fit, bounds_fit(gp_exact, p)), attr(b, "eps") * (1 + 1e-8))
    }
  }
})

test_that("the density ratio of a subset is bounded as the paper bounds it", {
  p <- bounds_problem(4)
  rows <- 1:8
  fit <- pfdtc(p$x, p$y, m = 3, kernel = p$kernel, noise = p$noise, hyper = "fixed", aux = aux_subset(rows = rows),
               weights = p$weights, control = pfdtc_control(maxit = 3), scale = FALSE, center = FALSE)
  w <- if (is.null(p$weights)) rep(1, length(p$y)) else p$weights
  evidence <- function(i) {
    K <- kernel_matrix(p$kernel, p$x[i, , drop = FALSE]) + diag(p$noise / w[i], length(i))
    -(sum(p$y[i] * solve(K, p$y[i])) + c(determinant(K)$modulus) + length(i) * log(2 * pi)) / 2
  }
  # log dpi/dnu = sum over the rest of log N(y_n; f_n, s2/w) - (log Z_D - log Z_nu), and N(y; f, s) <= (2 pi s)^(-1/2)
  expected <- evidence(rows) - sum(log(2 * pi * p$noise / w[-rows])) / 2 - fit$elbo
  expect_equal(attr(error_bounds(fit, p$new, "fast"), "log_density_ratio"), expected, tolerance = 1e-8)
})

test_that("what the theorem is not about is refused with the reason", {
  p <- bounds_problem(3)
  expect_error(error_bounds(bounds_fit(gp_sor, p), p$new), "DTC", class = "pfdtc_error_input")
  expect_error(error_bounds(bounds_fit(gp_dtc, p, keep_data = FALSE), p$new), "data", class = "pfdtc_error_input")
  expect_error(evidence_bounds("fit"), class = "pfdtc_error_input")
})
