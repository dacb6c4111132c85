# Compares variational inference for classes and counts with dense searches, integrals and limits.

# Returns E h(f), f ~ N(mean, v), by 50 Gauss-Hermite nodes (Golub and Welsch). The engine uses another rule.
hermite <- local({
  J <- matrix(0, 50L, 50L)
  J[cbind(1:49, 2:50)] <- J[cbind(2:50, 1:49)] <- sqrt(1:49)
  e <- eigen(J, symmetric = TRUE)
  list(at = e$values, weight = e$vectors[1L, ]^2)
})
ref_average <- function(h, mean, v) {
  Reduce(`+`, Map(function(at, weight) weight * h(mean + sqrt(v) * at), hermite$at, hermite$weight))
}

# Returns the bound for q(u) = N(mean, R R'), f_X = A'u + e, with its derivatives with respect to mean and R.
ref_bound <- function(p, A, mean, R) {
  v <- p$kernel$variance - colSums(A^2) + colSums(crossprod(R, A)^2)
  of <- function(what) {
    ref_average(function(f) ref_site(p$family, p$sites, f, p$theta)[[what]], drop(crossprod(A, mean)), v)
  }
  m <- length(mean)
  list(value = sum(of("l")) - (sum(R^2) + sum(mean^2) - m) / 2 + sum(log(abs(diag(R)))),
       mean = drop(A %*% of("g")) - mean, R = diag(1 / diag(R), m) - R - A %*% (of("W") * crossprod(A, R)))
}

# Returns the whitened features A = L^{-1} k(z, x).
ref_A <- function(p, z, x) forwardsolve(t(chol(ref_kmm(z, p$kernel, 0))), ref_k(p$kernel, z, x))

variational_problems <- function() {
  c(laplace_problems(), list(replace(laplace_problem_of("student", seed = 9), "theta", 0.7)))
}

variational_of <- function(p, ...) {
  likelihood <- replace(p$likelihood, c("approx", "theta"), list("vi", p$theta))
  native_laplace(p$z, p$x, engine_sites(likelihood, p$sites, 0), pfdtc_kernel_of(p$kernel, p$x), 1e-12, want = 1L, ...)
}

# Returns row i repeated n times.
repeated <- function(sites, i, n) lapply(take_rows_of(sites, i), function(v) if (!is.null(v)) rep(v, n))

scored_classes <- function() {
  with_seed(7, {
    x <- stats::runif(80, -2, 2)
    data.frame(x = x, y = stats::rbinom(80, 1, stats::plogis(2 * x)))
  })
}

variational_fit <- function(p, z = p$x, ...) {
  laplace_fit_of(p, inducing = `colnames<-`(z, c("x1", "x2")), approx = "vi", ...)
}

test_that("at the posterior the dense bound has slope 0, for all families", {
  for (p in variational_problems()) {
    fit <- variational_fit(p, p$z)
    R <- t(chol(chol2inv(t(fit$factors$C))))
    plain <- ref_bound(p, ref_A(p, p$z, p$x), fit$factors$beta, R)
    label <- paste(p$family, p$kernel$profile)
    bound <- plain$value + sum(log_constant(fit$likelihood, p$sites))
    # The bound is reduced by the error of the rule for averages: some 1e-7 for each row, 1e-5 if sigma is small.
    expect_equal(fit$evidence, bound, tolerance = 1e-5, label = label)
    expect_lt(fit$evidence, bound + 1e-8)
    # The search ends at 1e-7. The reference's derivatives are for steps in units of the posterior's sd.
    expect_lt(max(abs(plain$mean)), 1e-5, label = label)
    expect_lt(max(abs(plain$R[lower.tri(R, diag = TRUE)])), 1e-5, label = label)
  }
})

test_that("with all rows as inducing points the posterior agrees with a search by optim()", {
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
  expect_equal(unname(f$fit), drop(crossprod(A, found$par[seq_len(m)])), tolerance = 1e-3) # the root of reltol
  S <- tcrossprod(replace(matrix(0, m, m), low, found$par[-seq_len(m)]))
  expect_equal(unname(f$se.fit), sqrt(colSums(A * (S %*% A))), tolerance = 1e-3)
})

# Returns list(bound, exact) for one row with f ~ N(0, v). `exact` is the log of the integral of exp(log_p(f)) by the
# trapezoid rule, over the interval where the integrand is above e^-60 of its maximum.
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

test_that("the bound is below the exact evidence to the last digit, also for counts and weights in the millions", {
  for (theta in c(1.7, 1e6)) for (v in c(1e-8, 0.01)) {
    log_p <- function(f) 1e6 * stats::dnbinom(1e6, theta, mu = exp(12 + f), log = TRUE)
    of <- one_row(v, 1e6, nb(theta), log_p, weights = 1e6, offset = 12)
    digits <- 1e-14 * abs(of$exact) # rounding of dnbinom()
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

test_that("the bound is near the evidence also where the normal distribution at the mode is far too wide", {
  for (v in c(1e3, 1e4)) { # at first averages of e^f are above 1e35, or overflow
    of <- one_row(v, 0, stats::poisson(), function(f) -exp(f))
    expect_lt(of$bound, of$exact)
    expect_gt(of$bound, of$exact - 2)
  }
  of <- one_row(100, 1000, stats::poisson(), function(f) 1e-9 * stats::dpois(1000, exp(3 + f), log = TRUE),
                weights = 1e-9, offset = 3)
  expect_lt(of$bound, of$exact)
  expect_gt(of$bound, of$exact - 1)
})

test_that("the bound is below the log evidence, an integral over a few rows, on all points and on one", {
  nodes <- seq(-6.4, 6.4, by = 0.4) # nodes for whitened f; the rule errs by 1e-7
  grid <- as.matrix(expand.grid(nodes, nodes, nodes))
  for (p in variational_problems()) {
    p$x <- p$x[1:3, ]
    p$sites <- take_rows_of(p$sites, 1:3)
    p$kernel$variance <- 4
    f <- grid %*% chol(ref_kmm(p$x, p$kernel, 0))
    l <- Reduce(`+`, lapply(1:3, function(i) ref_site(p$family, repeated(p$sites, i, nrow(f)), f[, i], p$theta)$l))
    evidence <- log(sum(exp(l - rowSums(grid^2) / 2)) * (0.4 / sqrt(2 * pi))^3)
    for (m in c(3, 1)) {
      fit <- variational_fit(p, p$x[seq_len(m), , drop = FALSE])
      gap <- evidence + sum(log_constant(fit$likelihood, p$sites)) - fit$evidence
      expect_gt(gap, 1e-6, label = paste(p$family, m))
      if (m == 3) expect_lt(gap, 0.3, label = p$family) # 0.3 is valid for these data only
      expect_identical(evidence_bounds(fit), c(lower = fit$evidence, upper = Inf))
      expect_identical(attr(logLik(fit), "lower"), fit$evidence)
    }
  }
})

test_that("where the likelihood is almost Gaussian so is the posterior, and the bound is almost the log evidence", {
  d <- with_seed(2, data.frame(x = 1:40 / 8))
  d$y <- sin(2 * d$x) + with_seed(3, stats::rnorm(40)) / 4
  k <- kernel_se(0.7, 1)
  gauss <- gp_exact(y ~ x, d, kernel = k, noise = 0.09, hyper = "fixed", center = FALSE, scale = FALSE)
  fit <- pfdtc(y ~ x, d, kernel = k, hyper = "fixed", center = FALSE, family = student(1e7, 0.3), approx = "vi")
  expect_equal(fit$evidence, gauss$evidence, tolerance = 1e-5)
  at <- predict(fit, type = "latent", se.fit = TRUE)
  expect_equal(at, predict(gauss, se.fit = TRUE)[c("fit", "se.fit")], tolerance = 1e-5)
  expect_equal(predict(fit, type = "loo_latent"), predict(gauss, type = "loo_latent"), tolerance = 1e-5)
})

test_that("each step raises the bound, also from a bad start, until no step can", {
  # With the responses of `far`, full steps overshoot the maximum repeatedly.
  far <- with_seed(1, {
    p <- list(x = matrix(stats::runif(50, -3, 3), 25), family = "logit", kernel = ref_kernel("se", c(1.5, 2), 100),
              likelihood = as_likelihood(stats::binomial()))
    p$sites <- list(y = as.double(stats::rbinom(25, 1, stats::plogis(3 * sin(p$x[, 1L])))), offset = numeric(25))
    c(p, list(z = p$x[1:12, ]))
  })
  for (p in c(variational_problems(), list(far))) {
    p$sites$y <- if (p$family %in% c("log", "nb")) 50 * p$sites$y else p$sites$y # forces shortened steps
    p$kernel$variance <- 100
    bad <- list(beta = rep(2, nrow(p$z)), G = diag(0, nrow(p$z)))
    bounds <- vapply(0:12, function(steps) variational_of(p, start = bad, maxit = steps)$evidence, 0)
    expect_true(all(diff(bounds) > -1e-11 * abs(bounds[-1L])), label = p$family)
    expect_gt(bounds[2L], bounds[1L])
    end <- variational_of(p, start = bad, maxit = 300L)
    expect_lt(end$decrement, 1e-6, label = p$family)
    expect_gte(end$evidence, max(bounds) - 1e-9)
    if (p$family != "student") expect_equal(end$f, variational_of(p, maxit = 300L)$f, tolerance = 1e-5)
  }
})

test_that("averages over wide and narrow f agree with those of another rule", {
  p <- laplace_problem_of("probit", FALSE)
  p$x <- p$x[1:5, ]
  p$sites <- take_rows_of(p$sites, 1:5)
  for (family in list(binomial(), binomial("probit"), student(ref_student_df, 0.2))) {
    likelihood <- replace(as_likelihood(family), "approx", "vi")
    name <- if (as_response(likelihood)$link_name == "identity") "student" else likelihood$link
    for (sd in c(0.01, 1, 30)) {
      p$kernel$variance <- sd^2
      # Without a step from N(0, I) the variance of f is the prior's.
      start <- list(beta = numeric(nrow(p$z)), G = diag(0, nrow(p$z)))
      at <- native_laplace(p$z, p$x, engine_sites(likelihood, p$sites, 0), pfdtc_kernel_of(p$kernel, p$x), 1e-12, start,
                           want = 1L, maxit = 0L)
      fine <- seq(-9, 9, length.out = 8001) # in units of the sd
      share <- stats::dnorm(fine) * (fine[2L] - fine[1L])
      of <- function(what) {
        vapply(1:5, function(i) {
          sum(share * ref_site(name, repeated(p$sites, i, 8001), sd * fine, 0.2)[[what]])
        }, 0)
      }
      expect_equal(at$g, of("g"), tolerance = 1e-9)
      expect_equal(at$W, of("W"), tolerance = 1e-9)
      expect_equal(at$evidence, sum(of("l")), tolerance = 1e-11)
      expect_lt(abs(at$evidence - sum(of("l"))), at$quadrature + 1e-10)
    }
  }
})

test_that("the bound's slopes in the hyperparameters agree with differences", {
  for (p in variational_problems()) {
    p$likelihood$approx <- "vi"
    p$likelihood$learned <- p$family %in% c("nb", "student")
    p$likelihood$theta <- p$theta
    x <- place_columns(p$x)
    kernel <- pfdtc_kernel_of(p$kernel, p$x)
    s <- learning_settings(kernel, 1, c("x1", "x2"), c("lengthscale.x1", "lengthscale.x2", "variance"),
                           pfdtc_control(), likelihood = p$likelihood)
    now <- list(kernel = kernel, center = 0.2, theta = p$theta)
    problem <- laplace_problem(list(x = x, sites = p$sites), p$z, s, now, now, FALSE)
    slope <- problem$evaluate(problem$start)$gradient
    plain <- vapply(seq_along(problem$start), function(j) {
      e <- replace(numeric(length(problem$start)), j, 1e-4)
      (problem$evaluate(problem$start + e)$value - problem$evaluate(problem$start - e)$value) / 2e-4
    }, 0)
    expect_lt(max(abs(plain - slope)), 1e-5 * max(1, abs(slope)), label = p$family)
  }
})

test_that("a weight of 2 is a row twice, and more points raise the bound", {
  p <- laplace_problem_of("logit")
  expect_doubled_alike(p, function(p, ...) laplace_fit_of(p, approx = "vi", ...), 1e-6)
  bounds <- vapply(c(1, 5, 12, 25), function(m) variational_fit(p, p$x[seq_len(m), , drop = FALSE])$evidence, 0)
  expect_true(all(diff(bounds) > 0))
})

test_that("linearly separated classes, one class, large counts and a tiny prior variance have a fit", {
  d <- data.frame(x = 1:60 / 10)
  k <- kernel_se(1, 100)
  fit_to <- function(y, family, kernel = k) {
    d$y <- y
    suppressMessages(pfdtc(y ~ x, d, family = family, kernel = kernel, hyper = "fixed", approx = "vi"))
  }
  parted <- fit_to(d$x > 3, binomial())
  p <- predict(parted, type = "response")
  expect_true(all(is.finite(p) & (p > 0.5) == (d$x > 3)))
  expect_lt(parted$evidence, 0)
  for (family in list(binomial(), poisson())) {
    one <- fit_to(rep(0, 60), family)
    expect_true(all(predict(one, type = "response") < 0.2) && one$evidence < 0)
  }
  many <- fit_to(1e6 + 1000 * (1:60 %% 7), poisson())
  expect_equal(unname(predict(many, type = "response")), 1e6 + 1000 * (1:60 %% 7), tolerance = 5e-3)
  # With almost no prior variance the bound is the likelihood at the mode.
  flat <- fit_to(d$x > 3, binomial(), kernel_se(1, 1e-8))
  expect_equal(flat$evidence, sum(stats::dbinom(d$x > 3, 1, stats::plogis(flat$center), log = TRUE)), tolerance = 1e-6)
})

test_that("a learned fit has a higher bound than Laplace's hyperparameters, and print() names its kind", {
  d <- scored_classes()
  fit <- pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(), approx = "vi",
               control = pfdtc_control(priors = FALSE))
  by_laplace <- update(fit, approx = "laplace")
  held <- pfdtc(y ~ x, d, family = binomial(), kernel = by_laplace$kernel, hyper = "fixed", approx = "vi")
  expect_gt(fit$evidence, held$evidence)
  expect_output(print(fit), "variational")
  expect_output(print(summary(fit)), "lower bound")
  expect_output(print(by_laplace), "Laplace")
  check <- with_seed(1, laplace_check(fit, 1000))
  expect_equal(check$elbo, fit$evidence, tolerance = 1e-9)
  expect_identical(check$laplace, NA_real_)
  expect_output(print(check), "variational bound of the log marginal likelihood")
  # The best normal distribution has a larger bound than that of Laplace's approximation.
  expect_gt(held$evidence, with_seed(1, laplace_check(by_laplace, 100))$elbo)
  new <- data.frame(x = c(-1, 0, 3))
  f <- predict(fit, new, type = "link", se.fit = TRUE)
  band <- predict(fit, new, type = "response", interval = "credible")
  expect_equal(band[, "upr"], stats::plogis(f$fit + stats::qnorm(0.975) * f$se.fit))
  expect_identical(dim(simulate(fit, 3, seed = 1, newdata = new)), c(3L, 3L))
  expect_lt(max(abs(predict(fit, type = "loo") - predict(by_laplace, type = "loo"))), 0.1)
  expect_s3_class(with_seed(1, cross_validate(fit, folds = 3)), "data.frame")
})

test_that("functions for Laplace's posterior, and Gaussian responses, are refused by name", {
  d <- scored_classes()
  k <- kernel_se(1, 2)
  fit <- pfdtc(y ~ x, d, family = binomial(), kernel = k, hyper = "fixed", approx = "vi")
  refused <- function(code, what) expect_error(code, what, class = "pfdtc_error_input")
  refused(certify(fit), "`fit`.*update\\(fit, approx")
  refused(reference(fit), "`fit`.*update\\(fit, approx")
  refused(predict(fit, interval = "credible", certified = TRUE), "update\\(fit, approx")
  expect_no_match(conditionMessage(refused(pf_divergence(fit), "variational")), "certify") # refuses this fit, too
  again <- function(...) pfdtc(y ~ x, d, kernel = k, hyper = "fixed", approx = "vi", ...)
  refused(again(family = binomial(), tol = 0.1), "`tol`.*laplace")
  refused(again(family = binomial(), neighbours = 5), "`neighbours`.*laplace")
  refused(again(), "`approx`.*Gaussian")
  refused(pfdtc(y ~ x, d, family = binomial(), approx = "ep"), "`approx`.*vi")
})
