# Compares Laplace's approximation (mode, evidence and gradient) with dense transcriptions and differences.

dense_low_rank <- function(p, jitter = 0) {
  L <- t(chol(ref_kmm(p$z, p$kernel, jitter)))
  function(a, b) crossprod(forwardsolve(L, ref_k(p$kernel, p$z, a)), forwardsolve(L, ref_k(p$kernel, p$z, b)))
}

engine_mode <- function(p, want = 1L, center = 0, ...) {
  native_laplace(p$z, p$x, engine_sites(p$likelihood, p$sites, center), pfdtc_kernel_of(p$kernel, p$x), 1e-12,
                 want = want, ...)
}

test_that("likelihoods and their derivatives are their formulas, and consistent with each other", {
  for (p in laplace_problems()) {
    f <- seq(-8, 8, length.out = length(p$sites$y))
    engine <- engine_sites(p$likelihood, p$sites, 0)
    at <- function(f) native_likelihood(engine, f + engine$offset)
    plain <- ref_site(p$family, p$sites, f, p$theta)
    expect_equal(at(f)[2L, ], plain$g, tolerance = 1e-10, label = p$family)
    expect_equal(at(f)[3L, ], plain$W, tolerance = 1e-8, label = p$family)
    if (p$family != "nb") expect_equal(at(f)[1L, ], plain$l, tolerance = 1e-12, label = p$family)
    h <- 1e-5 # central differences err by h^2 and by eps / h
    slope <- (at(f + h) - at(f - h)) / (2 * h)
    expect_equal(slope[1L, ], at(f)[2L, ], tolerance = 1e-7, label = p$family)
    expect_equal(-slope[2L, ], at(f)[3L, ], tolerance = 1e-7, label = p$family)
    expect_equal(-slope[3L, ], at(f)[4L, ], tolerance = 1e-6, label = p$family)
  }
})

test_that("the probit's tail keeps its digits", {
  # Compare with the continued fraction x + 1 / (x + 2 / (x + ...)) at x = 30, and with phi / Phi by logs in R.
  site <- list(name = "probit", y = rep(1, 4), size = NULL, weight = NULL, offset = numeric(4), shape = NULL)
  z <- c(-4.999, -5.001, -30, -1e6)
  r <- exp(stats::dnorm(z, log = TRUE) - stats::pnorm(z, log.p = TRUE))
  at <- native_likelihood(site, z)
  expect_equal(at[1L, 1:3], stats::pnorm(z[1:3], log.p = TRUE), tolerance = 1e-13)
  expect_equal(at[2L, ], r, tolerance = 1e-4) # R's logs of 1e12 have four digits beyond the point
  expect_equal(at[2L, 1:3], r[1:3], tolerance = 1e-12)
  expect_equal(at[3L, 3:4], 1 - 1 / z[3:4]^2 + 6 / z[3:4]^4, tolerance = 1e-7) # the next term is 50 / z^6
  expect_true(all(at[3L, ] > 0 & at[3L, ] < 1 + 1e-15))
})

test_that("the mode on inducing points is that of the low-rank prior", {
  for (p in laplace_problems()) {
    r <- engine_mode(p)
    plain <- ref_laplace(p$x, p$sites, p$family, p$kernel, p$new, p$theta, k = dense_low_rank(p))
    expect_equal(r$f - engine_sites(p$likelihood, p$sites, 0)$offset, plain$f, tolerance = 1e-7, label = p$family)
    expect_lt(r$decrement, 1e-9)
    at <- native_predict(r, p$z, new_model(pfdtc_kernel_of(p$kernel, p$x), 1), p$new)
    expect_equal(at$mean, plain$mean, tolerance = 1e-7, label = p$family)
    expect_equal(at$sor_variance, plain$var, tolerance = 1e-7, label = p$family)
    E <- diag(ref_k(p$kernel, p$x)) - diag(dense_low_rank(p)(p$x, p$x))
    expect_equal(r$left, E, tolerance = 1e-7)
    W <- ref_site(p$family, p$sites, plain$f, p$theta)$W
    expect_equal(r$penalty, sum(log(1 + W * E)) / 2, tolerance = 1e-7)
    if (p$family != "nb") expect_equal(r$evidence, plain$evidence, tolerance = 1e-9, label = p$family)
  }
})

test_that("inducing points may be whole numbers", {
  d <- data.frame(x = 1:20, y = rep(0:1, 10))
  fit <- function(z) pfdtc(y ~ x, d, inducing = z, family = binomial(), kernel = kernel_se(4, 1), hyper = "fixed")
  expect_identical(fit(matrix(c(2L, 9L)))[c("inducing", "factors")], fit(matrix(c(2, 9)))[c("inducing", "factors")])
})

test_that("with all rows as inducing points the posterior is the exact GP's, also by pfdtc()", {
  for (p in laplace_problems()) {
    fit <- laplace_fit_of(p)
    plain <- ref_laplace(p$x, p$sites, p$family, p$kernel, p$x, p$theta)
    at <- predict(at_mode(fit), se.fit = TRUE)
    expect_equal(unname(at$fit), plain$mean + p$sites$offset, tolerance = 1e-7, label = p$family)
    expect_equal(unname(at$se.fit), sqrt(plain$var), tolerance = 1e-6, label = p$family)
    constant <- sum(log_constant(fit$likelihood, p$sites))
    if (p$family != "nb") expect_equal(fit$evidence, plain$evidence + constant, tolerance = 1e-7, label = p$family)
  }
})

test_that("the evidence of counts and classes has every constant", {
  # With almost no prior variance, the evidence is the likelihood at the offset.
  for (p in laplace_problems()) {
    p$kernel$variance <- 1e-10
    fit <- laplace_fit_of(p)
    w <- if (is.null(p$sites$weight)) 1 else p$sites$weight
    size <- if (is.null(p$sites$size)) 1 else p$sites$size
    o <- p$sites$offset
    l <- switch(p$family, logit = stats::dbinom(p$sites$y, size, stats::plogis(o), log = TRUE),
                probit = stats::dbinom(p$sites$y, size, stats::pnorm(o), log = TRUE),
                log = stats::dpois(p$sites$y, exp(o), log = TRUE),
                nb = stats::dnbinom(p$sites$y, size = p$theta, mu = exp(o), log = TRUE))
    expect_equal(fit$evidence, sum(w * l), tolerance = 1e-7, label = p$family)
  }
})

test_that("the gradient of the penalised evidence equals central differences, implicit terms included", {
  for (p in laplace_problems()) {
    p$likelihood$learned <- p$family == "nb"
    x <- `colnames<-`(p$x, c("x1", "x2"))
    kernel <- pfdtc_kernel_of(p$kernel, p$x)
    s <- learning_settings(kernel, 1, c("x1", "x2"), c("lengthscale.x1", "lengthscale.x2", "variance"),
                           pfdtc_control(), likelihood = p$likelihood)
    now <- list(kernel = kernel, center = 0.2, theta = p$theta)
    for (tied in c(FALSE, TRUE)) {
      problem <- laplace_problem(list(x = x, sites = p$sites), p$z, s, now, now, tied)
      par <- problem$start + 0.1 * seq_along(problem$start)
      slope <- problem$evaluate(par)$gradient
      error <- vapply(c(1e-2, 1e-3), function(h) {
        max(abs(vapply(seq_along(par), function(j) {
          e <- replace(numeric(length(par)), j, h)
          (problem$evaluate(par + e)$value - problem$evaluate(par - e)$value) / (2 * h)
        }, 0) - slope))
      }, 0)
      expect_lt(error[2L], 1e-4 * max(1, abs(slope)), label = paste(p$family, p$kernel$profile, tied))
      expect_lt(error[2L], 0.02 * error[1L] + 1e-7, label = paste(p$family, "falls like the square of the step"))
    }
  }
})

test_that("each of Newton's steps lowers minus the log posterior, from any start, and all end at the mode", {
  large <- laplace_problem_of("log")
  large$sites$y <- large$sites$y * 1e5 + 1e6 # after a full step from f = 0 the mean e^f would overflow
  student <- laplace_problem_of("student", seed = 9)
  student$likelihood <- as_likelihood(student(ref_student_df, 0.7))
  for (p in c(laplace_problems(), list(large, student))) {
    p$kernel$variance <- 4
    mode <- engine_mode(p)
    expect_lt(mode$decrement, 1e-5)
    sites <- engine_sites(p$likelihood, p$sites, 0)
    for (start in list(-30, 10 * cos(seq_along(p$z[, 1L])))) {
      start <- list(beta = rep_len(start, nrow(p$z)))
      way <- vapply(0:15, function(steps) {
        r <- engine_mode(p, start = start, maxit = steps)
        sum(native_likelihood(sites, r$f)[1L, ]) - sum(r$beta^2) / 2
      }, 0)
      expect_true(all(diff(way) > -1e-12 * abs(way[-1L])), label = p$family)
      expect_gt(way[2L], way[1L])
      end <- engine_mode(p, start = start)
      expect_lt(end$decrement, 1e-5, label = p$family)
      if (p$family != "student") expect_equal(end$f, mode$f, tolerance = 1e-7, label = p$family)
    }
  }
})

test_that("blocks, threads and kept memory change nothing beyond rounding", {
  p <- laplace_problem_of("logit", FALSE, n = 60)
  one <- engine_mode(p, want = 2L, control = pfdtc_control(threads = 1))
  for (control in list(pfdtc_control(threads = 2, block = 7), pfdtc_control(block = 1, memory = 0))) {
    two <- engine_mode(p, want = 2L, control = control)
    for (what in c("beta", "evidence", "penalty", "theta", "constant", "q", "left")) {
      expect_equal(two[[what]], one[[what]], tolerance = 1e-8, label = what)
    }
  }
})

limit_data <- function() {
  with_seed(3, {
    x <- stats::rnorm(80)
    y <- stats::rbinom(80, 1, stats::plogis(0.5 + x))
    d <- data.frame(x, y, n = stats::rpois(80, exp(1 + x / 2)), size = sample.int(5, 80, TRUE), w = stats::runif(80))
    d$hits <- stats::rbinom(80, d$size, stats::pnorm(x / 2))
    d$many <- stats::rnbinom(80, size = 2, mu = exp(1 + x))
    d$r <- x + stats::rt(80, 3) / 2
    d
  })
}

test_that("a prior variance near 0 leaves the intercept, for every family", {
  d <- limit_data()
  center <- function(formula, family) {
    pfdtc(formula, d, family = family, kernel = kernel_se(1, 1e-10), hyper = "fixed")$center
  }
  # The mean has a prior of sd 3.
  expect_equal(center(y ~ x, binomial()), stats::qlogis(mean(d$y)), tolerance = 5e-3)
  expect_equal(center(y ~ x, binomial("probit")), stats::qnorm(mean(d$y)), tolerance = 5e-3)
  expect_equal(center(n ~ x, poisson()), log(mean(d$n)), tolerance = 5e-3)
  expect_equal(center(many ~ x, nb(2)), log(mean(d$many)), tolerance = 5e-3)
  t <- stats::optimize(function(m) sum(stats::dt((d$r - m) / 0.5, 4, log = TRUE)), c(-3, 3), maximum = TRUE)$maximum
  expect_equal(center(r ~ x, student(4, 0.5)), t, tolerance = 5e-3)
})

test_that("a linear kernel with a vague prior gives the fit and standard errors of glm(), for every family", {
  d <- limit_data()
  vague <- kernel_linear(1e4) + kernel_constant(1e4)
  check <- function(formula, family, plain, weights = NULL, se = 1e-3) {
    fit <- suppressWarnings(do.call(pfdtc, list(formula, d, family = family, kernel = vague, hyper = "fixed",
                                                center = FALSE, weights = weights)))
    ours <- predict(at_mode(fit), type = "link", se.fit = TRUE)
    theirs <- stats::predict(plain, se.fit = TRUE)
    expect_equal(ours$fit, theirs$fit, tolerance = 1e-3) # the prior with sd 100 changes f by about 1e-4
    expect_equal(unname(ours$se.fit), unname(theirs$se.fit), tolerance = se)
  }
  check(y ~ x, binomial(), stats::glm(y ~ x, binomial(), d))
  check(n ~ x, poisson(), stats::glm(n ~ x, poisson(), d))
  weighted <- suppressWarnings(stats::glm(y ~ x, binomial(), d, weights = w)) # counts are not whole
  check(y ~ x, binomial(), weighted, weights = quote(w))
  # glm() uses the expected information if the link is not canonical.
  probit <- stats::glm(cbind(hits, size - hits) ~ x, binomial("probit"), d)
  check(cbind(hits, size - hits) ~ x, binomial("probit"), probit, se = 0.05)
  skip_if_not_installed("MASS")
  plain <- MASS::glm.nb(many ~ x, d)
  check(many ~ x, nb(plain$theta), plain, se = 0.05)
})

test_that("weights of 2 are doubled rows, and cbind() is shares with weights", {
  for (family in c("logit", "probit", "log", "nb", "student")) {
    p <- laplace_problem_of(family)
    if (family == "student") p$theta <- 0.7
    expect_doubled_alike(p, laplace_fit_of, 1e-7)
  }
  p <- laplace_problem_of("logit", FALSE)
  p$sites$weight <- NULL
  share <- pfdtc(p$x, p$sites$y / p$sites$size, kernel = pfdtc_kernel_of(p$kernel, p$x), hyper = "fixed",
                 center = FALSE, family = binomial(), weights = p$sites$size, offset = p$sites$offset)
  both <- laplace_fit_of(p)
  expect_equal(predict(share), predict(both), tolerance = 1e-9)
  expect_equal(share$evidence, both$evidence, tolerance = 1e-9)
})

test_that("shares that give broken numbers of successes have one warning, and the constant of these numbers", {
  d <- data.frame(x = 1:6, y = c(0.31, 0.55, 0.2, 0.7, 0.4, 0.3))
  warned <- character()
  fit <- withCallingHandlers(pfdtc(y ~ x, d, family = binomial(), weights = rep(10, 6)), warning = function(w) {
    warned <<- c(warned, class(w)[1L])
    invokeRestart("muffleWarning")
  })
  expect_identical(warned, "pfdtc_warning_small")
  of_row <- binomial_row$constant(c(3.1, 3), c(10, 10), NULL)
  expect_equal(of_row[2L], log(120))
  expect_equal(of_row[1L], lgamma(11) - lgamma(4.1) - lgamma(7.9))
})
