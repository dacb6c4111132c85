# Compares fits with Student-t noise with dense matrices: the mode, its certificate and learning. W may be negative.

student_problem <- function(seed = 1, n = 40, outliers = 3, profile = "matern52") {
  with_seed(seed, {
    p <- laplace_problem_of("log", profile = profile, n = n)
    p$family <- "student"
    p$theta <- 0.4
    y <- sin(p$x[, 1L]) + p$x[, 2L] / 3 + 0.3 * stats::rnorm(n)
    y[seq_len(outliers)] <- y[seq_len(outliers)] + 4
    p$sites <- list(y = y, size = NULL, weight = stats::runif(n, 0.5, 1.5), offset = stats::rnorm(n) / 5)
    p$likelihood <- as_likelihood(student(ref_student_df, p$theta))
    p
  })
}

# Returns the mode by reweighted least squares from f = 0. W may have either sign.
dense_student <- function(p, new, k = function(a, b) ref_k(p$kernel, a, b)) {
  n <- nrow(p$x)
  K <- k(p$x, p$x)
  a <- ref_student_df * p$theta^2
  f <- numeric(n)
  for (i in 1:2000) {
    r <- p$sites$y - p$sites$offset - f
    w <- p$sites$weight * (ref_student_df + 1) / (a + r^2)
    alpha <- solve(K + diag(1 / w), p$sites$y - p$sites$offset)
    moved <- drop(K %*% alpha) - f
    f <- f + moved
    if (max(abs(moved)) < 1e-13) break
  }
  s <- ref_site("student", p$sites, f, p$theta)
  K_new <- k(p$x, new)
  inner <- diag(n) + K %*% diag(s$W)
  list(f = f, W = s$W, mean = drop(crossprod(K_new, alpha)),
       var = diag(k(new, new)) - colSums(K_new * (diag(s$W) %*% solve(inner, K_new))),
       evidence = sum(s$l) - sum(f * alpha) / 2 - as.numeric(determinant(inner)$modulus) / 2)
}

test_that("the likelihood, its derivatives and the majorant agree with their formulas and differences", {
  site <- list(name = "student", y = rep(0.3, 7), size = NULL, weight = NULL, offset = numeric(7), shape = c(4, 0.5))
  f <- seq(-4, 4, length.out = 7)
  at <- function(f) native_likelihood(site, f)
  plain <- ref_site("student", list(y = site$y, offset = 0), f, 0.5)
  for (what in 1:3) expect_equal(at(f)[what, ], plain[[what]], tolerance = 1e-12)
  slope <- (at(f + 1e-5) - at(f - 1e-5)) / 2e-5
  expect_equal(slope[1L, ], at(f)[2L, ], tolerance = 1e-7)
  expect_equal(-slope[2L, ], at(f)[3L, ], tolerance = 1e-7)
  expect_equal(-slope[3L, ], at(f)[4L, ], tolerance = 1e-6)
  expect_true(any(at(f)[3L, ] < 0))
  likelihood <- as_likelihood(student(4, 0.5))
  expect_equal(at(numeric(7))[1L, 1L] + log_constant(likelihood, list(y = 0.3)),
               stats::dt(0.6, 4, log = TRUE) - log(0.5), tolerance = 1e-12)
})

test_that("mode, sd and evidence are those of dense matrices, on points and with all rows", {
  for (seed in 1:3) {
    p <- student_problem(seed)
    L <- t(chol(ref_kmm(p$z, p$kernel, 1e-12)))
    low <- function(a, b) crossprod(forwardsolve(L, ref_k(p$kernel, p$z, a)), forwardsolve(L, ref_k(p$kernel, p$z, b)))
    plain <- dense_student(p, p$new, low)
    expect_lt(min(plain$W), 0)
    kernel <- pfdtc_kernel_of(p$kernel, p$x)
    r <- native_laplace(p$z, p$x, engine_sites(p$likelihood, p$sites, 0), kernel, 1e-12, want = 1L)
    at <- native_predict(r, p$z, new_model(kernel, 1), p$new)
    expect_equal(at$mean, plain$mean, tolerance = 1e-7)
    expect_equal(at$sor_variance, plain$var, tolerance = 1e-7)
    expect_equal(r$evidence, plain$evidence, tolerance = 1e-8)
    expect_lt(r$decrement, 1e-8)
    whole <- predict(laplace_fit_of(p), se.fit = TRUE)
    plain <- dense_student(p, p$x)
    expect_equal(unname(whole$fit), plain$mean + p$sites$offset, tolerance = 1e-7)
    expect_equal(unname(whole$se.fit), sqrt(plain$var), tolerance = 1e-6)
  }
})

test_that("steps lead to a mode from where minus the log posterior is not convex", {
  p <- student_problem(1)
  kernel <- pfdtc_kernel_of(p$kernel, p$x)
  for (start in list(rep(3, nrow(p$z)), rep(c(-5, 5), length.out = nrow(p$z)))) {
    engine <- engine_sites(p$likelihood, p$sites, 0)
    there <- native_laplace(p$z, p$x, engine, kernel, 1e-12, list(beta = start), maxit = 0L)
    expect_match(status_sentence(there$status), "positive definite") # no Laplace posterior exists there
    r <- native_laplace(p$z, p$x, engine, kernel, 1e-12, list(beta = start), maxit = 200L)
    expect_identical(r$status, 0L)
    expect_lt(r$decrement, 1e-8)
    expect_gt(r$steps, 3)
  }
})

test_that("a step by the majorant is one of reweighted least squares, weights included", {
  p <- student_problem(1)
  p$sites$weight <- 3 * p$sites$weight
  kernel <- pfdtc_kernel_of(p$kernel, p$x)
  engine <- engine_sites(p$likelihood, p$sites, 0)
  start <- rep(3, nrow(p$z))
  there <- native_laplace(p$z, p$x, engine, kernel, 1e-12, list(beta = start), maxit = 0L)
  expect_false(there$status == 0L) # minus the log posterior is not convex there
  A <- forwardsolve(t(chol(ref_kmm(p$z, p$kernel, 1e-12))), ref_k(p$kernel, p$z, p$x))
  r <- p$sites$y - p$sites$offset - drop(crossprod(A, start))
  w <- p$sites$weight * (ref_student_df + 1) / (ref_student_df * p$theta^2 + r^2)
  step <- solve(A %*% (w * t(A)) + diag(nrow(A)), A %*% (w * (p$sites$y - p$sites$offset)))
  one <- native_laplace(p$z, p$x, engine, kernel, 1e-12, list(beta = start), want = 1L, maxit = 1L)
  expect_equal(one$beta, drop(step), tolerance = 1e-8) # k(Z, Z) has a condition number up to 1e6
})

test_that("the mode and sd of the exact GP lie within the certificate, if that is finite", {
  said <- 0
  for (seed in 1:12) {
    p <- student_problem(seed, outliers = seed %% 4, profile = c("se", "matern52", "matern32")[1L + seed %% 3L])
    fit <- laplace_fit_of(p, m = c(12, 30)[1L + seed %% 2L])
    rows <- list(x = rbind(p$x, p$new), index = seq_len(nrow(p$x) + nrow(p$new)), offset = 0, names = NULL)
    exact <- dense_student(p, rows$x)
    for (effort in c("fast", "reference")) {
      c <- certificate_of(fit, rows, effort, NULL)
      if (all(is.finite(c$mean_error))) said <- said + 1
      expect_true(all(exact$mean >= c$mean_lower - 1e-7 & exact$mean <= c$mean_upper + 1e-7), label = paste(seed))
      expect_true(all(sqrt(exact$var) >= c$sd_lower - 1e-7 & sqrt(exact$var) <= c$sd_upper + 1e-7))
    }
  }
  expect_gt(said, 6)
  expect_error(evidence_bounds(fit), class = "pfdtc_error_input")
  y <- with_seed(1, rep(c(0, 50), 30) + stats::rnorm(60)) # f may have two modes
  open <- pfdtc(cbind(x = rep(1:10, each = 6)), y, family = student(1))
  expect_output(print(open), "Student-t, 1 degree of freedom")
  expect_output(print(certify(open, cbind(x = 1:10))), "the exact sd is 0 to Inf times `sd`", fixed = TRUE)
})

test_that("ranges of curvature agree with the extremes on a fine grid", {
  sites <- list(name = "student", y = numeric(8), size = NULL, weight = 1:8 / 4, offset = numeric(8), shape = c(4, 0.5))
  f <- c(0, 0.3, 0.9, 1.2, 1.7, 2, 4, -3)
  e <- c(0.1, 0.5, 0.2, 1, 0.4, 3, 1, 0)
  range <- curvature_range(as_likelihood(student(4, 0.5)), sites, f, e)
  grid <- vapply(seq(-1, 1, length.out = 2001), function(t) native_likelihood(sites, f + t * e)[3L, ], f)
  expect_true(all(apply(grid, 1L, min) >= range$lower - 1e-12) && all(apply(grid, 1L, max) <= range$upper + 1e-12))
  expect_equal(apply(grid, 1L, min), range$lower, tolerance = 1e-5)
})

test_that("gradients of learned parameters, also that of sigma, agree with differences", {
  p <- student_problem(2)
  p$likelihood$learned <- TRUE
  x <- place_columns(p$x)
  kernel <- pfdtc_kernel_of(p$kernel, p$x)
  s <- learning_settings(kernel, 1, c("x1", "x2"), c("lengthscale.x1", "lengthscale.x2", "variance"), pfdtc_control(),
                         likelihood = p$likelihood)
  now <- list(kernel = kernel, center = 0.2, theta = p$theta)
  problem <- laplace_problem(list(x = x, sites = p$sites), p$z, s, now, now, FALSE)
  par <- problem$start + 0.05 * seq_along(problem$start)
  differences <- vapply(seq_along(par), function(j) {
    e <- replace(numeric(length(par)), j, 1e-4)
    (problem$evaluate(par + e)$value - problem$evaluate(par - e)$value) / 2e-4
  }, 0)
  expect_equal(problem$evaluate(par)$gradient, differences, tolerance = 1e-5)
})

test_that("outliers hardly matter, the unit does not, and with many degrees of freedom the fit is Gaussian", {
  d <- with_seed(3, data.frame(x = stats::runif(150, 0, 6)))
  clean <- with_seed(4, 50 + 20 * sin(d$x) + 2 * stats::rnorm(150))
  d$y <- clean
  d$y[1:8] <- d$y[1:8] + 150
  fit <- pfdtc(y ~ x, d, family = student(4), kernel = kernel_se())
  truth <- 50 + 20 * sin(d$x)
  expect_lt(sqrt(mean((predict(fit) - truth)^2)), 1)
  expect_true(coef(fit)[["sigma"]] > 1 && coef(fit)[["sigma"]] < 3)
  big <- d
  big$y <- 1e4 * d$y
  again <- pfdtc(y ~ x, big, family = student(4), kernel = kernel_se())
  expect_equal(predict(again) / 1e4, predict(fit), tolerance = 1e-2) # the optimiser stops at slightly different values
  expect_equal(unname(predict(fit, d[9:12, ], type = "density")), tolerance = 1e-8,
               student_predictive(c(fit$theta, 4), d$y[9:12], predict(fit, d[9:12, ]), predict(fit, d[9:12, ],
                                                                                            se.fit = TRUE)$se.fit^2))
  k <- kernel_se(1, 400)
  gauss <- pfdtc(d$x, clean, kernel = k, noise = 4, hyper = "fixed", center = FALSE)
  near <- pfdtc(d$x, clean, kernel = k, hyper = "fixed", family = student(1e6, 2), center = FALSE)
  expect_equal(predict(near), predict(gauss), tolerance = 1e-4)
  expect_output(print(fit), "Student-t, 4 degrees of freedom")
  expect_output(print(student(3, 2)), "sigma: 2")
  expect_error(student(0.5), class = "pfdtc_error_input")
  expect_error(predict(fit, type = "class"), class = "pfdtc_error_input")
})

test_that("averaged densities are those of numerical integrals", {
  for (df in c(1, 4, 50)) {
    found <- student_predictive(c(0.5, df), c(0.2, 6), c(0, 0.5), c(0.3, 2))
    plain <- mapply(function(y, mu, v) {
      f <- function(z) stats::dt((y - mu - sqrt(v) * z) / 0.5, df) / 0.5 * stats::dnorm(z)
      stats::integrate(f, -12, 12, rel.tol = 1e-10, subdivisions = 2000L)$value
    }, c(0.2, 6), c(0, 0.5), c(0.3, 2))
    expect_equal(found, log(plain), tolerance = 1e-7, label = format(df))
  }
  # Far away, f counts as known: with f ~ N(0, v), the relative difference from the density at f = 0 is about
  # (df + 1) (df + 2) / 2 v / y^2.
  for (df in c(1, 1.7, 10, 30)) for (y in 10^c(1:4, 8, 13)) {
    expect_equal(student_predictive(c(0.5, df), y, 0, 1e-9 * y^2 / df^2),
                 stats::dt(y / 0.5, df, log = TRUE) - log(0.5), tolerance = 1e-7, label = paste(df, y))
  }
})

test_that("learning keeps away from modes that are almost saddles, where Laplace's evidence is unbounded", {
  # Both rows have the same f. At the mode, minus the log posterior has curvature 1 if the kernel's variance is 1, and
  # almost 0 if it is 97.
  kernel <- place_kernel(kernel_se(1e4, 1), cbind(x = c(0, 1)))
  sites <- list(y = c(-1, 1) * sqrt(1.0103), size = NULL, weight = NULL, offset = numeric(2))
  rows <- list(x = cbind(x = c(0, 1)), sites = sites)
  s <- learning_settings(kernel, 1, "x", kernel_parameter_names(kernel, "x"), pfdtc_control(),
                         likelihood = replace(as_likelihood(student(1, 1)), "unit", 1))
  now <- list(kernel = kernel, center = 0, theta = 1)
  problem <- laplace_problem(rows, rows$x[1L, , drop = FALSE], s, now, now, FALSE)
  expect_true(is.finite(problem$evaluate(problem$start)$value))
  expect_match(problem$evaluate(problem$start + c(0, log(97), 0))$reason, "almost no curvature")
  expect_true(is.finite(problem$evaluate(problem$start + c(0, log(80), 0))$value))
})

test_that("steps leave a saddle between the responses for a mode", {
  data <- data.frame(x = c(1, 1), y = c(-10, 10))
  fit <- pfdtc(y ~ x, data, family = student(1, sigma = 1), kernel = kernel_se(1, 100), hyper = "fixed", center = FALSE,
               control = list(progress = FALSE))
  f <- unname(predict(fit, data)[1])
  expect_gt(abs(f), 5) # 0 is a saddle, where steps from 0 end
  # The prior of f has variance 100, so at the mode the derivative of the log likelihood is f / 100.
  expect_equal(sum(2 * (data$y - f) / (1 + (data$y - f)^2)), f / 100, tolerance = 1e-6)
})

test_that("steps stay long where the posterior is almost flat", {
  # Near f = 5.13 minus the log posterior almost has a minimum: its slope is 1e-5 there, and its curvature almost 0.
  sites <- list(y = c(0, 6), size = NULL, weight = c(2.5003, 1), offset = numeric(2))
  one <- matrix(0, 2)
  r <- native_laplace(one[1L, , drop = FALSE], one, engine_sites(as_likelihood(student(1, 1)), sites, 0),
                      place_kernel(kernel_se(1, 100), one), 1e-12, list(beta = 0.6), maxit = 200L)
  expect_identical(r$status, 0L)
  expect_lt(r$steps, 60) # the majorant alone takes more than 200
  f <- r$f[1L]
  expect_equal(sum(2 * sites$weight * (sites$y - f) / (1 + (sites$y - f)^2)), f / 100, tolerance = 1e-6)
  expect_lt(f, 1)
})

test_that("responses far from 0 lose no digits and need no more steps", {
  data <- data.frame(x = 1:30 / 5)
  data$y <- sin(data$x) + with_seed(1, 0.2 * stats::rt(30, 4))
  data$o <- rep(c(-1e8, 1e8), 15)
  far <- transform(data, y = y + 1e8)
  moved <- transform(data, y = y + o)
  fit <- function(formula, data, family = student(), ...) with_seed(1, pfdtc(formula, data, family = family, ...))
  learned <- fit(y ~ x, data)
  held <- function(formula, data) {
    fit(formula, data, student(4, learned$theta), kernel = learned$kernel, hyper = "fixed")
  }
  # Around 1e8, y has digits down to 1e-8. Derivatives of the evidence by y are at most 1 / theta = 5.
  near <- held(y ~ x, data)
  for (other in list(held(y ~ x, far), held(y ~ x + offset(o), moved))) {
    expect_lt(abs(other$evidence - near$evidence), 1e-6)
    expect_equal(predict(other, type = "loo") - (if (is.null(other$data$offset)) 1e8 else data$o),
                 predict(near, type = "loo"), tolerance = 1e-6)
    expect_lte(other$factors$steps, near$factors$steps)
    expect_lt(other$factors$decrement, 1e-8)
  }
  # A search ends if two steps gain fewer than laplace_sizes$gain nats; rounding may add or remove a step.
  for (other in list(fit(y ~ x, far), fit(y ~ x + offset(o), moved))) {
    expect_lt(abs(other$evidence - learned$evidence), laplace_sizes$gain)
    expect_equal(other$theta, learned$theta, tolerance = 1e-2)
  }
})

test_that("Student's scale is not below the rounding of the responses", {
  d <- with_seed(1, data.frame(x = stats::runif(60)))
  d$y <- rep(1:6, 10) # whole numbers in all rows
  d$x <- d$y + 0.01 * d$x
  fit <- suppressWarnings(with_seed(1, pfdtc(y ~ x, d, family = student(), kernel = kernel_se())))
  expect_gte(fit$theta, 1 / sqrt(12) - 1e-12)
})

test_that("learned parameters do not depend on the unit of the response", {
  d <- with_seed(2, data.frame(x = stats::runif(60)))
  d$y <- sin(6 * d$x) + with_seed(3, 0.1 * stats::rt(60, 3))
  new <- data.frame(x = c(0.1, 0.5, 3))
  for (cut in c(FALSE, TRUE)) {
    results <- lapply(c(1, 2^-30, 2^30), function(unit) {
      d$y <- unit * if (cut) pmax(d$y, 0) else d$y
      fit <- with_seed(1, pfdtc(y ~ x, d, family = if (cut) tobit(0) else student()))
      p <- predict(fit, new, se.fit = TRUE)
      list(c(p$fit, p$se.fit, fit$center, fit$likelihood$theta[1L], stats::vcov(fit)["mean", "mean"] / unit) / unit,
           fit$kernel$lengthscale)
    })
    for (other in results[-1L]) expect_equal(other, results[[1L]], tolerance = 1e-6) # powers of 2 round alike
  }
})

test_that("log densities, certificates and modes with neighbours do not depend on the unit of the response", {
  d <- with_seed(2, data.frame(x = stats::runif(60)))
  y <- sin(6 * d$x) + with_seed(3, 0.1 * stats::rt(60, 3))
  new <- data.frame(x = c(0.1, 0.5, 3))
  given <- function(family, y, unit, ...) {
    with_seed(1, pfdtc(y ~ x, replace(d, "y", list(unit * y)), family = family, kernel = kernel_se(0.3, unit^2),
                       hyper = "fixed", center = unit / 10, ...))
  }
  results <- lapply(c(1, 2^-30, 2^30), function(unit) {
    censored <- function(...) given(tobit(0, scale = unit / 10), pmax(y, 0), unit, ...)
    fits <- list(given(student(4, unit / 10), y, unit), censored(), censored(m = 5))
    near <- censored(m = 3, neighbours = 8)
    far <- replace(new, "y", list(unit * c(0, 1, -8) * 3))
    certified <- lapply(fits, function(fit) {
      unlist(certify(fit, new, effort = "fast")[c("mean_lower", "mean_upper", "sd_lower", "sd_upper")]) / unit
    })
    far$y[3L] <- 30 * unit # far from f, and not censored
    c(list(density = predict(fits[[2L]], far, type = "density") + log(unit) * (far$y > 0),
           near = predict(near, new) / unit), certified)
  })
  for (other in results[-1L]) for (i in seq_along(other)) {
    expect_equal(other[[i]], results[[1L]][[i]], tolerance = 1e-5) # bounds include allowances for rounding
  }
})

test_that("a given kernel and scale are in the unit of responses of any size", {
  d <- data.frame(x = 1:20 / 4, y = sin(1:20))
  of <- function(unit) {
    family <- student(4, 0.3 * unit)
    kernel <- kernel_se(1, 4 * unit^2)
    unname(predict(pfdtc(unit * y ~ x, d, family = family, kernel = kernel, hyper = "fixed"))) / unit
  }
  for (unit in c(1e-11, 1e11)) expect_equal(of(unit), of(1), tolerance = 1e-6)
})

test_that("errors about fits by student() name calls that work", {
  fit <- pfdtc(dist ~ speed, cars, family = student(), kernel = kernel_se(5, 20), hyper = "fixed")
  expect_input_error(evidence_bounds(fit), "update(fit, family = family(fit), approx = \"vi\") has a lower bound")
  below <- update(fit, family = stats::family(fit), approx = "vi")
  expect_true(is.finite(evidence_bounds(below)[["lower"]]))
  expect_input_error(kl_divergence(fit, fit), "compare_fits() and cross_validate() are available")
  expect_s3_class(compare_fits(fit, newdata = cars, certify = FALSE), "pfdtc_comparison")
  expect_input_error(pfdtc(dist ~ speed, cars, approx = "vi"), "Give `family`")
})

test_that("slices of student() fits have the prediction intervals of predict()", {
  fit <- pfdtc(dist ~ speed, cars, family = student(3), kernel = kernel_se(5, 20), hyper = "fixed")
  drawn <- slices(fit, NULL, NULL, 0.9, 20)$curves
  band <- predict(fit, data.frame(speed = drawn$value), interval = "prediction", level = 0.9)
  expect_equal(as.matrix(drawn[c("lwr_y", "upr_y")]), band[, -1], ignore_attr = TRUE, tolerance = 1e-10)
  expect_true(all(is.na(slices(fit, NULL, NULL, 0.9, 20, certified = TRUE)$curves$lwr_y))) # certified bands are of f
})
