# Compares the diagnostic of Laplace's approximation with integrals and long sums.

test_that("evidence and its lower bound, if the integral over f can be computed", {
  # With a single input value, f is one number.
  for (family in c("logit", "log", "nb", "student")) {
    p <- laplace_problem_of("logit", n = 6)
    p$family <- family
    p$theta <- switch(family, nb = 1.7, student = 0.5)
    p$x <- p$x[rep(1, 6), ]
    p$sites$y <- c(1, 0, 1, 1, 0, 1)
    p$likelihood <- as_likelihood(switch(family, logit = binomial(), log = poisson(), nb = nb(1.7),
                                         student = student(ref_student_df, 0.5)))
    fit <- laplace_fit_of(p, m = 1)
    density <- function(f) {
      vapply(f, function(f) {
        exp(sum(native_likelihood(engine_sites(p$likelihood, p$sites, 0), rep(f, 6) + engine_sites(
          p$likelihood, p$sites, 0)$offset)[1L, ]))
      }, 0) * stats::dnorm(f, 0, sqrt(p$kernel$variance))
    }
    truth <- log(stats::integrate(density, -8, 8, rel.tol = 1e-10)$value) + sum(log_constant(p$likelihood, p$sites))
    found <- with_seed(1, laplace_check(fit, 4000))
    expect_lt(abs(found$log_evidence - truth), 5 * found$se + 1e-6)
    expect_lte(found$elbo, truth + 1e-8)
    expect_gt(found$elbo, truth - 0.3)
    expect_lt(found$khat, 0.7)
    mean <- stats::integrate(function(f) f * density(f), -8, 8, rel.tol = 1e-10)$value /
      stats::integrate(density, -8, 8, rel.tol = 1e-10)$value
    at <- predict(fit, p$x[1, , drop = FALSE], se.fit = TRUE)
    expect_equal(found$shift, abs(mean - at$fit) / at$se.fit, tolerance = 0.15, ignore_attr = TRUE)
  }
})

test_that("the ELBO is below the evidence by importance weights, and residual variance lowers it", {
  for (p in utils::head(laplace_problems(), 4)) {
    whole <- with_seed(1, laplace_check(laplace_fit_of(p), 1000))
    expect_lt(whole$elbo, whole$log_evidence + 5 * whole$se)
    few <- with_seed(1, laplace_check(laplace_fit_of(p, m = 4), 1000))
    expect_lt(few$elbo, whole$elbo)
    expect_true(whole$ess > 0.2 && whole$ess <= 1)
  }
  expect_output(print(whole), "all but the lower bound are estimates")
  expect_error(laplace_check(pfdtc(dist ~ speed, cars)), class = "pfdtc_error_input")
})

test_that("memory grows with the number of draws, not with its square, and has a limit", {
  fit <- laplace_fit_of(laplace_problem_of("log"), m = 6)
  before <- gc(reset = TRUE)["Vcells", "used"]
  laplace_check(fit, 6000) # a matrix of draws by draws would take 275 MB
  expect_lt((gc()["Vcells", "max used"] - before) * 8 / 2^20, 100)
  expect_error(laplace_check(fit, 3e9), "3000000000 draws", class = "pfdtc_error_input")
})

test_that("the Pareto shape is that of the distribution drawn from", {
  for (k in c(0.2, 0.6, 1)) {
    u <- (seq_len(20000) - 0.5) / 20000
    expect_equal(pareto_shape(log((u^-k - 1) / k + 1)), k, tolerance = 0.1)
  }
})
