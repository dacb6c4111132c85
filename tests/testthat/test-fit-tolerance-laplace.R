# Tests fits with `tol` of classes, counts and outliers by the exact GP's Laplace posterior with dense matrices.

tol_laplace <- function(family, tol, seed = 1, n = 60, profile = "se", ...) {
  p <- laplace_problem_of(family, plain = FALSE, profile = profile, seed = seed, n = n)
  list(p = p, fit = with_seed(1, laplace_fit_of(p, m = NULL, tol = tol, ...)))
}

# Returns the two errors that `tol` limits, by dense matrices.
laplace_error <- function(p, fit, quantile = 1) {
  exact <- ref_laplace(p$x, p$sites, p$family, p$kernel, p$x, p$theta)
  at <- predict(at_mode(fit), se.fit = TRUE, type = "link")
  reached <- function(v) sort(v)[max(1, ceiling(quantile * length(v)))]
  c(mean = reached(abs(at$fit - p$sites$offset - exact$mean) / at$se.fit),
    sd = reached(abs(sqrt(exact$var) / at$se.fit - 1)))
}

test_that("mode and sd of a fit that met tol are as close to the exact GP's as the fit says", {
  for (family in quick(c("nb", "logit", "probit", "log"))) {
    for (tol in c(0.3, 0.03)) {
      one <- tol_laplace(family, tol)
      claimed <- c(one$fit$tol$mean, one$fit$tol$sd)
      expect_true(one$fit$tol$met, label = family)
      expect_true(all(claimed <= tol), label = family)
      expect_true(all(laplace_error(one$p, one$fit) <= claimed + 1e-7), label = family)
    }
  }
  rough <- tol_laplace("logit", 0.05, profile = "matern32") # needs nearly all rows as points
  expect_true(rough$fit$tol$met)
  expect_true(all(laplace_error(rough$p, rough$fit) <= c(rough$fit$tol$mean, rough$fit$tol$sd) + 1e-7))
})

test_that("a fit has no more points than it needs, and claims no more accuracy than it has", {
  one <- tol_laplace("logit", 0.05)
  tried <- one$fit$tol$tried
  expect_true(one$fit$m %in% tried$m[tried$met])
  expect_true(all(tried$m[tried$met] >= one$fit$m))
  fewer <- with_seed(1, laplace_fit_of(one$p, m = floor(0.9 * one$fit$m)))
  expect_gt(max(laplace_error(one$p, fewer)), 0.05)
  expect_gt(max(laplace_error(one$p, one$fit)), 0.9 * max(one$fit$tol$mean, one$fit$tol$sd))
  expect_lt(tol_laplace("logit", 0.3)$fit$m, one$fit$m)
  most <- tol_laplace("logit", 0.05, control = pfdtc_control(tol_quantile = 0.5))
  expect_lt(most$fit$m, one$fit$m)
  expect_true(all(laplace_error(most$p, most$fit, 0.5) <= c(most$fit$tol$mean, most$fit$tol$sd) + 1e-7))
})

test_that("a tolerance out of reach gives a classed warning, with settings that would reach it", {
  p <- laplace_problem_of("logit", profile = "se", n = 60)
  few <- unreached(laplace_fit_of(p, m = 5, tol = 0.01))
  expect_match(few$said, "`m`.*about \\d+ points")
  expect_identical(few$fit$m, 5L)
  expect_false(few$fit$tol$met)
  expect_true(all(laplace_error(p, few$fit) <= c(few$fit$tol$mean, few$fit$tol$sd) + 1e-7))
  needed <- as.integer(sub(".*about (\\d+) points.*", "\\1", few$said))
  expect_true(laplace_fit_of(p, m = needed, tol = 0.01)$tol$met)
  p$kernel <- ref_kernel("matern12", c(0.2, 0.2), 3)
  old <- options(pfdtc.max_memory = 4 * 8 * 20 * (60 + 8 * 20)) # allows a reference of 20 points
  on.exit(options(old))
  rough <- unreached(laplace_fit_of(p, m = NULL, tol = 0.01))
  expect_match(rough$said, "pfdtc.max_memory.*Matern")
  expect_lte(rough$fit$tol$m2, 20)
  p <- laplace_problem_of("log", n = 40)
  p$family <- "student"
  p$theta <- 0.02
  p$sites$y <- sin(p$x[, 1L]) + rep(c(0, 2), 20)
  open <- unreached(laplace_fit_of(p, m = NULL, tol = 0.01))
  expect_match(open$said, "mode")
})

test_that("a time limit returns the best fit so far, and bad arguments are refused by name", {
  p <- laplace_problem_of("logit", n = 40)
  large <- laplace_problem_of("logit", n = 140, profile = "matern32")
  early <- with_seed(1, unreached(laplace_fit_of(large, m = NULL, tol = 1e-3,
                                                 control = pfdtc_control(max_seconds = 0))))
  expect_match(early$said, "`max_seconds`")
  expect_identical(early$fit$tol$m2, 128L)
  expect_true(all(laplace_error(large, early$fit) <= c(early$fit$tol$mean, early$fit$tol$sd) + 1e-7))
  expect_error(laplace_fit_of(p, m = NULL, tol = 1), "tol", class = "pfdtc_error_input")
  expect_error(laplace_fit_of(p, m = NULL, tol = 0.1, inducing = "random"), "inducing", class = "pfdtc_error_input")
  expect_error(laplace_fit_of(p, m = NULL, tol = 0.1, inducing = p$z), "inducing", class = "pfdtc_error_input")
})

test_that("a fit with `tol` has its reference, prints its certified error, and is cross-validated", {
  p <- laplace_problem_of("log", profile = "se", n = 40)
  fit <- laplace_fit_of(p, m = NULL, tol = 0.05)
  expect_output(print(fit), "meets `tol` = 5 %")
  without <- fit
  without$data <- NULL
  expect_lt(max(abs(certify(without, p$x)$mean_error / certify(without, p$x)$sd)), 0.05)
  cv <- with_seed(1, cross_validate(fit, folds = 2))
  expect_true(all(is.finite(cv$nlpd)))
})
