# Tests inducing points of classes and counts, moved by the pF divergence of the Gaussian responses at the mode.

moved_fits <- function(family, ...) {
  p <- laplace_problem_of(family, plain = FALSE, n = 60)
  list(p = p, start = laplace_fit_of(p, m = 12), moved = laplace_fit_of(p, m = 12, aux = aux_white(), ...))
}

test_that("optimised points have a smaller divergence, and posteriors closer to the exact GP's", {
  only_nightly()
  for (family in quick(c("logit", "probit", "log", "nb"))) {
    of <- moved_fits(family)
    p <- of$p
    exact <- ref_laplace(p$x, p$sites, family, p$kernel, p$x, p$theta)
    fits <- of[c("start", "moved")]
    errors <- vapply(fits, function(fit) {
      at <- predict(fit, se.fit = TRUE)
      c(mode = sqrt(mean((at$fit - p$sites$offset - exact$mean)^2)), variance = sqrt(mean((at$se.fit^2 - exact$var)^2)))
    }, c(mode = 0, variance = 0))
    expect_true(all(errors[, "moved"] < errors[, "start"]), label = family)
    expect_lt(sum(errors[, "moved"]), 0.75 * sum(errors[, "start"]))
    # Use the same Gaussian responses: those at the mode of the start.
    f <- unname(predict(of$start, type = "link")) - p$sites$offset
    rows <- working_rows(place_columns(p$x), engine_sites(of$start$likelihood, p$sites, 0), f)
    of_rows <- function(method, ...) {
      method(rows$x, rows$y, weights = rows$weights, kernel = of$start$kernel, noise = 1, hyper = "fixed",
             center = FALSE, scale = FALSE, ...)
    }
    divergence <- vapply(fits, function(fit) {
      pf_divergence(of_rows(gp_dtc, inducing = fit$inducing), of_rows(gp_exact))
    }, 0)
    expect_lt(divergence[["moved"]], divergence[["start"]])
    expect_gt(of$moved$evaluations[["objective"]], 5)
    rows <- list(x = rbind(p$x, p$new), index = 1:66, offset = 0, names = NULL)
    exact <- ref_laplace(p$x, p$sites, family, p$kernel, rows$x, p$theta)
    c <- certificate_of(of$moved, rows, "fast", NULL)
    expect_true(all(exact$mean >= c$mean_lower - 1e-7 & exact$mean <= c$mean_upper + 1e-7), label = family)
  }
})

test_that("points are optimised only if an auxiliary distribution is given; arguments that exclude this are named", {
  of <- moved_fits("logit", control = pfdtc_control(maxit = 3))
  expect_output(print(of$moved), "Auxiliary")
  expect_false(any(grepl("Auxiliary", utils::capture.output(print(of$start)))))
  expect_false(identical(of$start$inducing, of$moved$inducing))
  others <- list(list(tol = 0.1, m = NULL), list(neighbours = 5), list(approx = "vi"), list(aux = aux_reference()))
  for (args in others) {
    args <- utils::modifyList(list(p = of$p, aux = aux_white()), args)
    expect_error(do.call(laplace_fit_of, args), "`aux`.*log-concave", class = "pfdtc_error_input")
  }
  expect_error(laplace_fit_of(of$p, m = 12, inducing = "divergence"), "inducing", class = "pfdtc_error_input")
  d <- data.frame(x = 1:30 / 10, y = sin(1:30 / 10))
  expect_error(pfdtc(y ~ x, d, family = student(), aux = aux_white()), "`aux`", class = "pfdtc_error_input")
})

test_that("print() says that inducing points moved, if and only if they did", {
  fits <- moved_fits("log", control = pfdtc_control(maxit = 3))
  expect_false(identical(fits$moved$inducing, fits$start$inducing))
  expect_output(print(fits$moved), "12 inducing points, with optimised\\s+locations \\(start: rows chosen")
  expect_output(print(fits$start), "12 inducing points, rows chosen")
})

test_that("print() says that a search for hyperparameters of counts was stopped", {
  d <- data.frame(x = 1:40 / 40, y = rep(c(0, 2, 1, 5), 10))
  fit <- function(...) pfdtc(y ~ x, d, family = poisson(), kernel = kernel_se(), control = pfdtc_control(...))
  expect_output(print(fit(maxit = 1)), "prior density; `maxit` was\\s+reached")
  expect_output(print(suppressWarnings(fit(max_seconds = 0))), "`max_seconds`\\s+was\\s+reached")
  expect_no_match(utils::capture.output(print(fit())), "reached")
})
