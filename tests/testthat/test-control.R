# A small problem with everything given: what a setting does to the optimisation of the points.
given <- function(..., n = 40, m = 5, aux = aux_sor(rows = 1:8), hyper = "fixed", data = problem(n = n, seed = 7)) {
  pfdtc(data$x, data$y, m = m, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3, hyper = hyper, aux = aux,
        control = pfdtc_control(progress = FALSE, ...))
}

test_that("pfdtc_control() refuses bad values by name", {
  bad <- list(maxit = list(-1, 1.5, NA, "a", c(1, 2)), reltol = list(-1, NA, Inf, "a"),
              jitter = list(-1, NaN, Inf, "a"), block = list(0, 2.5, NA), threads = list(0, NA, "two"),
              memory = list(-1, NA, "a"), optimise_rows = list(0, 1.5, NA), fix = list(1, NA_character_, TRUE),
              trace = list(-1, 0.5, NA), progress = list(NA, 1, "yes"), max_seconds = list(-1, NA, "a"),
              tol_quantile = list(0, -1, 1.01, NA, "a", c(0.5, 1), TRUE), restarts = list(0, 1.5, NA, "a"),
              priors = list(NA, 1, "yes"))
  expect_setequal(names(bad), names(formals(pfdtc_control)))
  for (name in names(bad)) {
    for (value in bad[[name]]) {
      expect_input_error(do.call(pfdtc_control, stats::setNames(list(value), name)), sprintf("`%s`", name))
    }
  }
  expect_s3_class(pfdtc_control(), "pfdtc_control")
})

test_that("a list does as control; what is no control is refused", {
  fit <- function(control) {
    pfdtc(cars$speed, cars$dist, m = 3, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", control = control)
  }
  expect_identical(fit(list(maxit = 2))$control, pfdtc_control(maxit = 2))
  expect_identical(fit(list())$control, pfdtc_control())
  expect_identical(fit(list())$maxit, 50L) # what was used
  again <- pfdtc(cars$speed, cars$dist, m = 40, control = pfdtc(cars$speed, cars$dist, m = 40)$control)
  expect_false(again$moved)
  expect_input_error(fit(list(maxiter = 2)), "`maxit`")
  expect_input_error(fit(list(maxit = -2)), "`maxit`")
  twice <- stats::setNames(list(2, 3), c("maxit", "maxit"))
  for (bad in list(5, NULL, "fast", list(5), list(maxit = 2, 3), twice, data.frame(maxit = 2))) {
    expect_input_error(fit(bad), "`control`")
  }
})

test_that("options stand in for threads and memory", {
  with_options(list(pfdtc.threads = 3L, pfdtc.memory = 1234), {
    expect_identical(pfdtc_control()$threads, 3L)
    expect_identical(pfdtc_control()$memory, 1234)
  })
})

test_that("maxit and max_seconds end an optimisation, and the fit says which", {
  none <- given(maxit = 0)
  expect_identical(none$convergence, 1L)
  expect_match(none$message, "maxit")
  expect_identical(nrow(none$trace), 1L)
  expect_identical(given(maxit = 4)$convergence, 1L)
  # without a single iteration the points are where they started
  start <- inducing_points(none$data$x, 5, none$kernel, "greedy")
  expect_equal(none$inducing, start, ignore_attr = TRUE)
  timed <- given(max_seconds = 0, reltol = 0, maxit = 1e5)
  expect_identical(timed$convergence, 2L)
  expect_match(timed$message, "max_seconds")
})

test_that("reltol decides how long to go on", {
  loose <- given(reltol = 1e-2)
  tight <- given(reltol = 1e-9, maxit = 1000)
  expect_identical(c(loose$convergence, tight$convergence), c(0L, 0L))
  expect_lt(nrow(loose$trace), nrow(tight$trace))
  expect_lte(tight$objective, loose$objective)
})

test_that("the jitter is as given, by default as small as the factorisation allows", {
  expect_identical(given(jitter = 1e-3)$jitter, 1e-3)
  expect_identical(given()$jitter, 1e-12)
  x <- seq(0, 1, length.out = 30)
  stiff <- pfdtc(x, sin(5 * x), kernel = kernel_se(2, 1), noise = 0.01, hyper = "fixed",
                 inducing = cbind(x), control = pfdtc_control(jitter = 0, maxit = 2))
  expect_gt(stiff$jitter, 0)
  expect_lte(stiff$jitter, 1e-10)
  exact <- ref_exact(cbind(x), sin(5 * x) - stiff$center, ref_kernel("se", 2, 1), 0.01)
  expect_equal(predict(stiff), exact$mean(cbind(x)) + stiff$center, tolerance = 1e-6)
})

test_that("block, threads and memory change nothing beyond rounding", {
  data <- problem(n = 600, m = 5, seed = 8)
  z <- data$z
  fit <- function(...) {
    f <- pfdtc(data$x, data$y, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3, hyper = "fixed", inducing = z,
               aux = aux_sor(rows = 1:20), control = pfdtc_control(maxit = 4, progress = FALSE, ...))
    list(f$inducing, f$objective, f$evidence, predict(f, data$new, se.fit = TRUE))
  }
  plain <- fit(threads = 1)
  settings <- list(list(block = 37), list(threads = 2), list(threads = 2, block = 100), list(memory = 0),
                   list(memory = 1e5), list(threads = 2, memory = 0, block = 64))
  for (s in quick(settings)) {
    # rounding, through four iterations of the search
    expect_equal(do.call(fit, s), plain, tolerance = 1e-9, info = deparse(s))
  }
})

test_that("fix holds hyperparameters at their values; the others are learned", {
  data <- problem(n = 40, seed = 7)
  fit <- function(fix, hyper = "pilot") {
    with_seed(1, pfdtc(data$x, data$y, m = 5, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3, hyper = hyper,
                       control = pfdtc_control(maxit = 10, fix = fix, progress = FALSE)))
  }
  start <- c(lengthscale.x1 = 0.9, lengthscale.x2 = 1.6, variance = 1.7, noise = 0.3)
  free <- fit(character())
  expect_true(all(abs(coef(free) / start - 1) > 1e-3))
  expect_identical(free$df, 4L)
  for (fix in list("noise", c("lengthscale.x2", "variance"))) {
    for (hyper in c("pilot", "joint")) {
      held <- fit(fix, hyper)
      expect_equal(coef(held)[fix], start[fix], tolerance = 1e-14)
      expect_true(all(abs((coef(held) / start)[setdiff(names(start), fix)] - 1) > 1e-3))
      expect_identical(held$df, 4L - length(fix))
    }
  }
  all <- fit(names(start))
  expect_equal(coef(all), start, tolerance = 1e-14)
  expect_null(all$pilot)
  expect_input_error(fit("lengthscale"), "`fix`")
  expect_input_error(pfdtc(data$x, data$y, control = list(fix = "noise")), "`noise`")
  expect_input_error(pfdtc(data$x, data$y, control = list(fix = "variance")), "variance")
})

test_that("trace = k keeps the points every k iterations, with the values they had", {
  expect_length(given()$z_trace, 0)
  for (aux in list(aux_sor(rows = 1:8), aux_refresh(4, aux_sor(rows = 1:8)))) {
    fit <- given(trace = 2, maxit = 13, aux = aux)
    kept <- fit$z_trace
    expect_identical(length(kept), 6L)
    at <- vapply(kept, function(k) k$evaluation, 1L)
    expect_false(is.unsorted(at, strictly = TRUE))
    for (k in kept) expect_identical(dimnames(k$z), dimnames(fit$inducing))
  }
  fit <- given(trace = 1, maxit = 6)
  d <- fit$data
  unit <- fit$scale^2
  kernel <- kernel_se(c(0.9, 1.6), 1.7 / unit)
  nu <- auxiliary(d$x, d$y, kernel, 0.3 / unit, aux_sor(rows = 1:8))
  for (k in fit$z_trace) {
    value <- pf_objective(k$z, d$x, d$y, kernel, 0.3 / unit, nu, jitter = fit$jitter)$value
    expect_equal(fit$trace$objective[k$evaluation], value, tolerance = 1e-9)
  }
  expect_identical(fit$z_trace[[6]]$z, fit$inducing)
})

test_that("optimise_rows learns on some rows, and the posterior is that of all", {
  data <- problem(n = 60, m = 4, seed = 9)
  for (hyper in c("pilot", "evidence")) {
    fit <- function(rows, seed = 1, ...) {
      with_seed(seed, pfdtc(data$x, data$y, m = 4, hyper = hyper, kernel = kernel_se(),
                            control = pfdtc_control(optimise_rows = rows, progress = FALSE), ...))
    }
    some <- fit(25)
    expect_identical(nobs(some), 60L)
    kernel <- ref_kernel("se", unname(some$kernel$lengthscale), some$kernel$variance)
    dense <- ref_dtc(unname(some$inducing), data$x, data$y - some$center, kernel, some$noise, jitter = some$jitter)
    expect_equal(predict(some), dense$mean(data$x) + some$center, tolerance = 1e-8)
    expect_equal(some$evidence, ref_elbo(unname(some$inducing), data$x, data$y - some$center, kernel, some$noise,
                                     jitter = some$jitter), tolerance = 1e-8)
    expect_false(isTRUE(all.equal(coef(some), coef(fit(25, seed = 2)))))
    expect_equal(coef(fit(60)), coef(fit(NULL)))
    expect_equal(coef(fit(1e6)), coef(fit(NULL)))
  }
  # with equal rows merged, too
  twice <- with_seed(1, pfdtc(data$x[c(1:60, 1:60), ], c(data$y, data$y + 0.1), m = 4,
                              control = pfdtc_control(optimise_rows = 25, progress = FALSE)))
  expect_identical(nobs(twice), 120L)
  expect_true(all(is.finite(coef(twice))))
})
