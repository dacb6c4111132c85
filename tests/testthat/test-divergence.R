# Tests kl_divergence() and pf_divergence() by brute force on finitely many points.

## Kullback-Leibler ------------------------------------------------------------------------------------

test_that("the KL divergence is that of the joint normals on rows, points and any others", {
  turn <- 0
  for (p in problems()) {
    turn <- turn + 1
    exact <- fit_by("gp_exact", p)
    pi <- ref_of(exact, p)
    for (method in in_turn(setdiff(all_methods, c("gp_sor", "gp_exact")), turn, 2)) {
      fit <- fit_by(method, p)
      approx <- ref_of(fit, p)
      kl <- kl_divergence(fit, exact)
      info <- paste(method, label_of(p))
      expect_close(kl, ref_kl(approx, pi, rbind(p$x, p$z)), 1e-7, info)
      expect_close(kl, ref_kl(approx, pi, rbind(p$x, p$z, p$new[1:2, , drop = FALSE])), 1e-6, info)
      # The divergence of the joint normals at any rows is at most that of the processes.
      expect_lte(ref_kl(approx, pi, p$new), kl * (1 + 1e-8))
    }
    expect_identical(kl_divergence(fit_by("gp_sor", p), exact), Inf)
    expect_identical(kl_divergence(exact, exact), 0)
  }
})

kl_marginal_each <- function(a, b) {
  log(b$se.fit / a$se.fit) + (a$se.fit^2 + (a$fit - b$fit)^2) / (2 * b$se.fit^2) - 1 / 2
}

test_that("the KL divergence bounds both errors at every point, in exact standard deviations", {
  turn <- 0
  for (p in problems()) {
    turn <- turn + 1
    exact <- fit_by("gp_exact", p)
    new <- rbind(p$new, p$x, p$z)
    e <- predict(exact, new, se.fit = TRUE)
    for (method in in_turn(setdiff(all_methods, "gp_sor"), turn, 2)) {
      fit <- fit_by(method, p)
      a <- predict(fit, new, se.fit = TRUE)
      kl <- kl_divergence(fit, exact)
      expect_gte(kl, 0)
      expect_true(all((a$fit - e$fit)^2 + (a$se.fit - e$se.fit)^2 <= 2 * e$se.fit^2 * kl * (1 + 1e-8) + 1e-16))
      expect_lte(max(kl_marginal_each(a, e)), kl * (1 + 1e-8) + 1e-12)
    }
  }
})

test_that("units, centre, offset and merged rows change no KL divergence", {
  p <- problem("matern32", n = 14, m = 4, weighted = TRUE, seed = 8)
  again <- c(1:14, 3, 3, 5, 11)
  q <- utils::modifyList(p, list(x = p$x[again, ], y = c(p$y, 1, 0, -1, 2), weights = p$weights[again]))
  far <- utils::modifyList(q, list(y = 100 * q$y + 1e4, noise = 1e4 * q$noise))
  far$kernel$variance <- 1e4 * q$kernel$variance
  for (method in setdiff(all_methods, c("gp_sor", "gp_exact"))) {
    divergence <- function(p, ...) {
      kl_divergence(fit_by(method, p, center = TRUE, ...), fit_by("gp_exact", p, center = TRUE, scale = TRUE))
    }
    here <- divergence(q)
    expect_close(divergence(far), here, 1e-6, method)
    expect_close(divergence(far, scale = TRUE), here, 1e-6, method)
    fit <- fit_by(method, q, center = TRUE)
    centred <- utils::modifyList(q, list(y = q$y - fit$center))
    exact <- fit_by("gp_exact", q, center = TRUE)
    # Use distinct points, because a joint normal on equal points is singular.
    points <- rbind(p$x, p$z)
    expect_close(here, ref_kl(ref_of(fit, centred), ref_of(exact, centred), points), 1e-7, method)
  }
})

test_that("at Z = X the KL divergence is 0 up to rounding", {
  for (p in quick(lapply(profiles, problem))) {
    exact <- fit_by("gp_exact", p)
    for (method in c("gp_dtc", "gp_vfe", "gp_fitc")) {
      expect_lt(kl_divergence(fit_by(method, p, inducing = p$x), exact), 1e-7)
    }
    expect_lt(kl_divergence(fit_by("gp_subsample", p, m = nrow(p$x)), exact), 1e-10)
  }
})

test_that("the mean marginal KL divergence is that of the normals at each row", {
  p <- problem("matern52", weighted = TRUE)
  exact <- fit_by("gp_exact", p)
  pi <- ref_of(exact, p)
  for (method in all_methods) {
    fit <- fit_by(method, p)
    new <- p$new[1:5, ]
    one <- function(i) ref_kl(ref_of(fit, p), pi, new[i, , drop = FALSE])
    each <- vapply(seq_len(5), one, 0)
    expect_close(kl_divergence(fit, exact, new), mean(each), 1e-7, method)
    expect_close(kl_divergence(fit_by(method, p, keep_data = FALSE), exact, new), mean(each), 1e-7, method)
  }
  # Far from the rows the variance of SoR is 0, but the variance of the exact posterior is positive.
  expect_gt(kl_divergence(fit_by("gp_sor", p), exact, p$new), 10)
})

## The pF divergence -----------------------------------------------------------------------------------

aux_kinds <- function(p) {
  list(aux_sor(rows = p$rows), aux_subset(rows = p$rows), aux_reference(m2 = 6), aux_white(0.6))
}

test_that("the pF divergence is that of Proposition 2, for every kind of auxiliary distribution", {
  turn <- 0
  for (p in problems()) {
    turn <- turn + 1
    fit <- fit_by("gp_dtc", p)
    dense <- function(nu) {
      value <- ref_pf(p$z, p$x, p$y, p$kernel, p$noise, nu, p$weights, fit$jitter, constant = TRUE)
      sqrt(value) / p$noise
    }
    for (pair in nu_pairs(p)) {
      expect_close(pf_divergence(fit, pair$nu), dense(pair$reference), 1e-6, label_of(p))
    }
    # Any fit may be the auxiliary distribution nu.
    other <- utils::modifyList(p, list(z = p$x[c(2, 5, 7), , drop = FALSE]))
    for (method in in_turn(all_methods, turn, 2)) {
      nu <- fit_by(method, other)
      expect_close(pf_divergence(fit, nu), dense(ref_of(nu, other)), 1e-6, paste(method, label_of(p)))
    }
  }
})

test_that("under white noise the divergence vanishes at the exact posterior, and is never below zero", {
  for (p in problems()) {
    at <- function(...) pf_divergence(fit_by("gp_dtc", p, ...), aux_white())
    expect_lt(at(inducing = p$x), 1e-4 * at())
  }
  for (seed in 1:20) { # with such responses, c - y'(K + s2 I)^-1 y cancels (objective.c)
    p <- problem(n = 30, m = 6, seed = seed, noise = 1e-7)
    p$y <- 1e3 * p$y
    fit <- fit_by("gp_dtc", p, inducing = p$x[1:25, ])
    expect_gt(pf_divergence(fit, aux_white()), 0)
  }
})

test_that("a jitter that is not negligible gives the divergence of Proposition 2, too", {
  for (p in problems()) {
    kernel <- complete_kernel(package_kernel(p$kernel), p$x)
    for (aux in list(aux_sor(rows = p$rows), aux_subset(rows = p$rows))) {
      nu <- package_nu(p, aux)
      ref <- if (nu$p) ref_nu_subset(p$rows, p$x, p$y, p$kernel, p$noise, p$weights) else
        ref_nu_sor(p$x[p$rows, , drop = FALSE], p$x, p$y, p$kernel, p$noise, p$weights)
      for (jitter in c(1e-3, 0.1)) {
        value <- native(ffi_pf_divergence, engine_points(p$z, new_model(kernel, p$noise), jitter), engine_rows(p), nu,
                        engine_control(nrow(p$x)))$value
        expect_close(value, ref_pf(p$z, p$x, p$y, p$kernel, p$noise, ref, p$weights, jitter, constant = TRUE), 1e-9,
                     paste(label_of(p), format(aux), jitter))
      }
    }
  }
})

test_that("pf_divergence() is the square root of pf_objective(constant = TRUE), over the noise", {
  turn <- 0
  for (p in problems()) {
    turn <- turn + 1
    fit <- fit_by("gp_vfe", p)
    for (aux in in_turn(aux_kinds(p), turn, 2)) {
      nu <- package_nu(p, aux)
      value <- package_pf(p, nu, constant = TRUE, jitter = fit$jitter)$value
      expect_close(pf_divergence(fit, nu), sqrt(value) / p$noise, 1e-6, paste(format(aux), label_of(p)))
      expect_equal(pf_divergence(fit, aux), pf_divergence(fit, nu), tolerance = 1e-10)
    }
  }
})

test_that("NULL is the distribution that a fit was optimised under", {
  p <- problem("matern32", n = 30, d = 1, m = 4, n_aux = 8, weighted = TRUE, seed = 2)
  control <- pfdtc_control(maxit = 12, progress = FALSE)
  for (aux in aux_kinds(p)) {
    fit <- fit_by("pfdtc", p, aux = aux, control = control)
    expect_equal(pf_divergence(fit), pf_divergence(fit, aux), tolerance = 1e-7)
    # Add the constant part to the objective that the optimiser reached.
    nu <- package_nu(p, aux)
    constant <- package_pf(p, nu, constant = TRUE)$value - package_pf(p, nu)$value
    expect_close(pf_divergence(fit), sqrt(fit$objective + constant) / p$noise, 1e-5, format(aux))
  }
  drawn <- fit_by("pfdtc", p, aux = aux_subset(size = 6), control = control)
  expect_length(drawn$aux_rows, 6)
  expect_equal(pf_divergence(drawn), pf_divergence(drawn, aux_subset(rows = drawn$aux_rows)), tolerance = 1e-10)
  some <- fit_by("pfdtc", p, aux = aux_subset(size = 6),
                 control = pfdtc_control(maxit = 5, progress = FALSE, optimise_rows = 20))
  expect_equal(unname(some$aux_points), unname(p$x[some$aux_rows, , drop = FALSE]))
  # After renewals, nu is SoR on the points before the last renewal.
  start <- aux_refresh(every = 3, start = aux_subset(rows = p$rows))
  renewed <- fit_by("pfdtc", p, aux = start, control = control)
  if (!is.null(renewed$trace$round)) {
    expect_null(renewed$aux_rows)
    sor <- fit_by("gp_sor", utils::modifyList(p, list(z = unname(renewed$aux_points))))
    expect_close(pf_divergence(renewed), pf_divergence(renewed, sor), 1e-6)
  }
  # Two equal rows with different responses are too few to be merged.
  p$x[5, ] <- p$x[9, ]
  twice <- fit_by("pfdtc", p, aux = aux_subset(rows = c(1, 9, 20)), control = control)
  expect_equal(pf_divergence(twice), pf_divergence(twice, aux_subset(rows = c(1, 9, 20))), tolerance = 1e-8)
})

test_that("the divergence bounds the errors of mean and sd and the Wasserstein distance, and vanishes at Z = X", {
  turn <- 0
  for (p in problems()) {
    turn <- turn + 1
    exact <- fit_by("gp_exact", p)
    new <- rbind(p$new, p$x, p$z)
    e <- predict(exact, new, se.fit = TRUE)
    k <- p$kernel$variance
    for (method in in_turn(c("gp_dtc", "gp_vfe", "pfdtc"), turn, 2)) {
      fit <- fit_by(method, p)
      d <- pf_divergence(fit, exact)
      a <- predict(fit, new, se.fit = TRUE)
      expect_true(all(abs(a$fit - e$fit) <= sqrt(k) * d))
      expect_true(all((a$fit - e$fit)^2 + (a$se.fit - e$se.fit)^2 <= k * d^2 * (1 + 1e-9)))
      w <- ref_wasserstein(ref_of(fit, p), ref_of(exact, p), rbind(p$x, p$z), p$kernel)
      expect_lte(w, d * (1 + 1e-6))
      expect_gt(w, 0)
    }
    expect_lt(pf_divergence(fit_by("gp_dtc", p, inducing = p$x), exact), 1e-5 * d)
  }
})

test_that("the divergence does not change with the units, centre and scale of y", {
  p <- problem("matern52", n = 15, m = 4, weighted = TRUE, seed = 5)
  again <- c(1:15, 3, 3, 6)
  p <- utils::modifyList(p, list(x = p$x[again, ], y = c(p$y, 1, 0, -1), weights = p$weights[again]))
  far <- utils::modifyList(p, list(y = 1000 * p$y + 5e4, noise = 1e6 * p$noise))
  far$kernel$variance <- 1e6 * p$kernel$variance
  value <- function(p, scale, exact_scale = scale) {
    fit <- fit_by("gp_dtc", p, center = TRUE, scale = scale)
    nu <- lapply(all_methods, fit_by, p, center = TRUE, scale = exact_scale)
    vapply(nu, function(nu) pf_divergence(fit, nu), 0)
  }
  base <- value(p, FALSE)
  expect_equal(value(p, TRUE), base, tolerance = 1e-8)
  expect_equal(value(far, TRUE), base, tolerance = 1e-8)
  expect_equal(value(far, FALSE), base, tolerance = 1e-8)
  expect_equal(value(far, TRUE, FALSE), base, tolerance = 1e-8)
  expect_equal(value(far, FALSE, TRUE), base, tolerance = 1e-8)
})

test_that("block size, threads and memory change nothing beyond rounding", {
  p <- problem("matern32", n = 40, m = 6, weighted = TRUE)
  fit <- fit_by("gp_dtc", p)
  nus <- list(aux_sor(rows = p$rows), aux_subset(rows = p$rows), fit_by("gp_exact", p))
  all <- function() vapply(nus, function(nu) pf_divergence(fit, nu), 0)
  base <- all()
  for (now in list(list(pfdtc.block = 3), list(pfdtc.block = 7, pfdtc.memory = 3000),
                   list(pfdtc.memory = 0), list(pfdtc.block = 9, pfdtc.threads = 2L))) {
    expect_equal(with_options(now, all()), base, tolerance = 1e-9)
  }
})

# The pF divergence d for one row x, an inducing point z at distance h, and k(x, x) = 1. With rho = k(x, z) and
# E = 1 - rho^2 = -expm1(-h^2),
#   s2^2 d^2 = E (s2/(1+s2) + y^2 s2^2/(1+s2)^2 + S (s2 + rho^2)/(1+s2) + S y^2 E/(1+s2)^2),
#   S = rho^2/(1 + rho^2/s2)^2, nu the exact posterior. Pairs far from each other add up.
known_divergence <- function(h, s2, y) {
  E <- -expm1(-h^2)
  rho2 <- 1 - E
  S <- rho2 / (1 + rho2 / s2)^2
  sqrt(sum(E * (s2 / (1 + s2) + (y * s2 / (1 + s2))^2 + S * (s2 + rho2) / (1 + s2) +
                  S * y^2 * E / (1 + s2)^2))) / s2
}

test_that("a tiny divergence keeps its digits", {
  x <- cbind(seq(0, 2900, by = 100))
  y <- with_seed(1, stats::rnorm(30, sd = 3))
  for (s2 in c(1e-4, 0.1, 10)) {
    for (h in c(0.5, 1e-2, 1e-4, 1e-6)) {
      given <- list(x, y, kernel = kernel_se(1, 1), noise = s2, hyper = "fixed", center = FALSE, scale = FALSE)
      exact <- do.call(gp_exact, given)
      jitter <- pfdtc_control(jitter = 0)
      fit <- do.call(gp_dtc, c(given, list(inducing = x + h, control = jitter)))
      truth <- known_divergence(h, s2, y)
      # Rounding of k has a relative error of 1e-15 / h^2 in E = 1 - rho^2, and of 1e-15 / s2 in nu's variance.
      expect_close(pf_divergence(fit, exact), truth, 1e-12 + 1e-15 / h^2 + 1e-15 / s2,
                   sprintf("s2 = %g, h = %g", s2, h))
    }
  }
})

## Refused ---------------------------------------------------------------------------------------------

test_that("fits of another model are refused with the reason", {
  p <- problem(weighted = TRUE)
  exact <- fit_by("gp_exact", p)
  refused <- function(fit, why, exact. = exact) {
    expect_input_error(kl_divergence(fit, exact.), why)
    expect_input_error(compare_fits(fit, exact., p$new), why)
  }
  moved <- utils::modifyList(p, list(y = replace(p$y, 3, p$y[3] + 1e-3)))
  refused(fit_by("gp_dtc", moved), "")
  refused(fit_by("gp_dtc", utils::modifyList(p, list(x = p$x + 1e-3))), "")
  refused(fit_by("gp_dtc", utils::modifyList(p, list(weights = p$weights[13:1]))), "")
  refused(fit_by("gp_dtc", p, center = TRUE), "")
  same <- list(dist ~ speed, cars, kernel = kernel_se(5, 1), noise = 0.1, hyper = "fixed")
  logs <- do.call(gp_dtc, c(same, m = 5, transform = "log"))
  expect_input_error(kl_divergence(logs, do.call(gp_exact, same)), "data (as transformed)")
  refused(fit_by("gp_dtc", p, offset = rep(1, 13)), "")
  refused(fit_by("gp_dtc", utils::modifyList(p, list(noise = 0.3001))), "")
  refused(fit_by("gp_dtc", p, kernel = kernel_matern(5 / 2, p$kernel$lengthscale, p$kernel$variance)), "")
  other <- fit_by("gp_dtc", p, kernel = kernel_se(1, 1))
  refused(other, "Make `exact` with like = ")
  expect_input_error(compare_fits(list(fit_by("gp_dtc", p), other), exact, p$new), "than `fits[[2]]`")
  refused(fit_by("gp_dtc", p), "gp_exact()", fit_by("gp_dtc", p))
  refused(fit_by("gp_dtc", p), "exact", cars)
  expect_input_error(kl_divergence(cars, exact), "fit")
  other <- fit_by("gp_exact", moved)
  expect_input_error(pf_divergence(fit_by("gp_dtc", p), other))
  expect_input_error(pf_divergence(fit_by("gp_dtc", p), package_nu(moved, aux_sor(rows = 1:3))), "nu")
  for (method in c("gp_sor", "gp_fitc", "gp_subsample", "gp_exact")) {
    expect_input_error(pf_divergence(fit_by(method, p), exact), method)
  }
  expect_input_error(pf_divergence(fit_by("gp_dtc", p)), "nu")
  expect_input_error(pf_divergence(fit_by("gp_dtc", p), "sor"), "nu")
  slim <- fit_by("gp_dtc", p, keep_data = FALSE)
  expect_input_error(pf_divergence(slim, exact), "keep_data")
  expect_input_error(kl_divergence(fit_by("gp_fitc", p, keep_data = FALSE), exact), "keep_data")
  expect_gt(kl_divergence(slim, fit_by("gp_exact", p, keep_data = FALSE)), 0)
})

test_that("the order of rows, merging and rounding do not make another model", {
  p <- problem(n = 12, weighted = TRUE, seed = 9)
  x <- rbind(p$x, -p$x)                              # their sums are 0 up to rounding
  x <- rbind(x, x[c(1, 5, 9), ])
  y <- with_seed(1, stats::rnorm(27))
  weights <- rep(c(0.7, 1.1, 1.7), 9)
  given <- list(kernel = kernel_se(1, 2), noise = 0.3, hyper = "fixed")
  exact <- do.call(gp_exact, c(list(x, y, weights = weights), given))
  order <- with_seed(2, sample(27))
  for (method in c("gp_dtc", "gp_fitc", "gp_subsample")) {
    for (scale in c(TRUE, FALSE)) {
      fit <- with_seed(1, do.call(method, c(list(x[order, ], y[order], weights = weights[order], m = 6, scale = scale),
                                            given)))
      expect_gt(kl_divergence(fit, exact), 0)
    }
  }
})
