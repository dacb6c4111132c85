test_that("check_matrix() returns a double matrix, and a double matrix unchanged", {
  x <- matrix(rnorm(6), 3, dimnames = list(NULL, c("a", "b")))
  expect_identical(check_matrix(x, "x"), x)
  expect_identical(check_matrix(1:3, "x"), matrix(c(1, 2, 3)))
  expect_identical(check_matrix(x > 0, "x"), (x > 0) + 0)
  expect_identical(check_matrix(data.frame(a = 1:2, b = c(TRUE, FALSE)), "x"),
                   cbind(a = c(1, 2), b = c(1, 0)))
  series <- stats::ts(cbind(a = 1:3, b = 3:1))
  expect_identical(check_matrix(series, "x"), cbind(a = c(1, 2, 3), b = c(3, 2, 1)))
  expect_identical(dim(check_matrix(matrix(0, 0, 2), "x")), c(0L, 2L))
})

test_that("check_matrix() refuses what is not a number, and names the cell", {
  x <- matrix(rnorm(6), 3, dimnames = list(NULL, c("a", "b")))
  for (bad in c(NA, NaN, Inf, -Inf)) {
    y <- x
    y[2, 2] <- bad
    e <- tryCatch(check_matrix(y, "x"), error = identity)
    expect_s3_class(e, "pfdtc_error_input")
    expect_match(conditionMessage(e), paste0("`x` .*row 2, column 2 \\(`b`\\) is ", bad))
  }
  expect_identical(check_matrix(cbind(c(1, NA)), "x", allow_na = TRUE), cbind(c(1, NA)))
  expect_identical(check_matrix(cbind(c(NaN, NA)), "x", allow_na = TRUE), cbind(c(NaN, NA)))
  expect_input_error(check_matrix(cbind(c(NA, Inf)), "x", allow_na = TRUE), "row 2")
  expect_input_error(check_matrix("a", "x"), "`x`")
  expect_input_error(check_matrix(list(1), "x"), "`x`")
  expect_input_error(check_matrix(NULL, "x"), "NULL")
  expect_input_error(check_matrix(array(0, c(1, 1, 1)), "x"), "array")
  expect_input_error(check_matrix(data.frame(a = 1, b = "u"), "x"), "`b`")
  expect_input_error(check_matrix(data.frame(d = Sys.Date()), "x"), "Date")
  expect_input_error(check_matrix(matrix(1i), "x"), "complex")
})

test_that("check_vector() returns plain doubles of the required length", {
  expect_identical(check_vector(c(a = 1L, b = 2L), "y"), c(1, 2))
  expect_identical(check_vector(cbind(1:3), "y", 3), c(1, 2, 3))
  expect_input_error(check_vector(1:3, "y", 4), "`y`")
  expect_input_error(check_vector(c(1, NA), "y"), "NA")
  expect_input_error(check_vector(c(1, Inf), "y", labels = c("a", "b")), "row b")
  expect_input_error(check_vector(matrix(1:4, 2), "y"), "2 x 2")
  for (bad in list("a", TRUE, gl(2, 1), NULL, list(1), Sys.Date())) {
    expect_input_error(check_vector(bad, "y"), "`y`")
  }
})

test_that("check_positive() requires finite numbers above zero", {
  expect_identical(check_positive(2L, "noise", 1), 2)
  expect_identical(check_positive(c(1, 2), "lengthscale"), c(1, 2))
  expect_input_error(check_positive(0, "noise", 1), "`noise`")
  expect_input_error(check_positive(c(1, -2), "lengthscale"), "-2")
  for (bad in list(Inf, NA_real_, NaN, "a", TRUE, numeric(0), NULL, c(1, 2))) {
    expect_input_error(check_positive(bad, "noise", 1), "`noise`")
  }
})

test_that("check_count() requires a whole number within its limits", {
  expect_identical(check_count(3, "m", 10), 3L)
  expect_identical(check_count(1e10, "m"), 1e10)
  expect_identical(check_count(0, "maxit", min = 0), 0L)
  expect_input_error(check_count(0, "m", 100), "`m`")
  expect_input_error(check_count(200000, "m", 100000), "200000")
  for (bad in list(2.5, NA, Inf, "a", c(1, 2), NULL, TRUE, -1)) {
    expect_input_error(check_count(bad, "m"), "`m`")
  }
})

test_that("check_flag() and check_choice() require one of a few values", {
  expect_true(check_flag(TRUE, "scale"))
  for (bad in list(NA, 1, "a", c(TRUE, FALSE), NULL)) {
    expect_input_error(check_flag(bad, "scale"), "`scale`")
  }
  methods <- c("pilot", "joint", "fixed")
  expect_identical(check_choice(methods, methods, "hyper"), "pilot")
  expect_identical(check_choice("fix", methods, "hyper"), "fixed")
  for (bad in list("none", NA, 1, c("joint", "fixed"), NULL)) {
    expect_input_error(check_choice(bad, methods, "hyper"), "\"pilot\", \"joint\" or \"fixed\"")
  }
})

test_that("an unknown argument is an error that names it and the nearest known one", {
  known <- c("m", "tol", "kernel", "weights", "...")
  expect_null(check_dots_empty(NULL, known))
  expect_null(check_dots_empty(list(), known))
  e <- tryCatch(check_dots_empty("kernal", known), error = identity)
  expect_s3_class(e, "pfdtc_error_input")
  expect_identical(e$argument, "kernal")
  expect_match(conditionMessage(e), "`kernal`.*`kernel`")
  expect_input_error(check_dots_empty(c("tolerance", "x"), known), "`tol`")
  expect_input_error(check_dots_empty(list(Weights = 1), known), "`weights`")
  expect_input_error(check_dots_empty(list(1), known))
  expect_input_error(check_dots_empty("", known))
})

test_that("memory above the limit is refused with both numbers", {
  expect_silent(check_memory(100, "a matrix"))
  with_options(list(pfdtc.max_memory = 2^20), {
    expect_input_error(check_memory(2^30, "a matrix"),
                       "1 GB")
    expect_input_error(check_memory(Inf, "a matrix"), "a matrix")
  })
})

test_that("weights whose squares overflow or underflow are refused, also by functions that make no fit", {
  d <- smooth_data(12)
  kernel <- kernel_se(1, 1)
  for (w in c(1e300, 1e-300)) for (weights in list(rep(w, 12), c(w, rep(1, 11)))) {
    expect_input_error(pfdtc(d$x, d$y, weights = weights), "weights")
    expect_input_error(gp_exact(y ~ ., data.frame(d$x, y = d$y), weights = weights), "weights")
    expect_input_error(vfe_objective(d$z, d$x, d$y, kernel, 0.1, weights = weights), "weights")
    expect_input_error(auxiliary(d$x, d$y, kernel, 0.1, weights = weights), "weights")
  }
  for (w in c(1e-55, 1e55)) { # up to here fits agree, and certificates hold
    fit_at <- function(method, ...) {
      method(d$x, d$y, weights = rep(w, 12), kernel = kernel, noise = 0.1 * w, hyper = "fixed", ...)
    }
    fit <- fit_at(gp_dtc, inducing = d$z)
    plain <- gp_dtc(d$x, d$y, kernel = kernel, noise = 0.1, hyper = "fixed", inducing = d$z)
    expect_equal(predict(fit, d$new, se.fit = TRUE), predict(plain, d$new, se.fit = TRUE), tolerance = 1e-9)
    exact <- predict(fit_at(gp_exact), d$new, se.fit = TRUE)
    inside <- suppressMessages(certify(fit, d$new))
    expect_true(all(inside$mean_lower <= exact$fit & exact$fit <= inside$mean_upper))
    expect_true(all(inside$sd_lower <= exact$se.fit & exact$se.fit <= inside$sd_upper))
  }
})

# Fits a small problem with given hyperparameters, to show how a setting changes the optimisation of inducing points.
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
  expect_setequal(names(bad), names(control_checks))
  for (name in names(bad)) {
    for (value in bad[[name]]) {
      expect_input_error(do.call(pfdtc_control, stats::setNames(list(value), name)), sprintf("`%s`", name))
    }
  }
  expect_s3_class(pfdtc_control(), "pfdtc_control")
})

test_that("control may be a list, and other values are refused", {
  fit <- function(control) {
    pfdtc(cars$speed, cars$dist, m = 3, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", control = control)
  }
  expect_identical(fit(list(maxit = 2))$control, pfdtc_control(maxit = 2))
  expect_identical(fit(list())$control, pfdtc_control())
  expect_identical(fit(list())$maxit, 50L) # the fit stores the value used
  again <- pfdtc(cars$speed, cars$dist, m = 40, control = pfdtc(cars$speed, cars$dist, m = 40)$control)
  expect_false(again$moved)
  expect_input_error(fit(list(maxiter = 2)), "`maxit`")
  expect_input_error(fit(list(maxit = -2)), "`maxit`")
  twice <- stats::setNames(list(2, 3), c("maxit", "maxit"))
  for (bad in list(5, NULL, "fast", list(5), list(maxit = 2, 3), twice, data.frame(maxit = 2))) {
    expect_input_error(fit(bad), "`control`")
  }
})

test_that("options replace the defaults of threads and memory", {
  with_options(list(pfdtc.threads = 3L, pfdtc.memory = 1234), {
    expect_identical(pfdtc_control()$threads, 3L)
    expect_identical(pfdtc_control()$memory, 1234)
  })
})

test_that("maxit and max_seconds end an optimisation, and the fit says which of them did", {
  none <- given(maxit = 0)
  expect_identical(none$convergence, 1L)
  expect_match(none$message, "maxit")
  expect_identical(nrow(none$trace), 1L)
  expect_identical(given(maxit = 4)$convergence, 1L)
  # Without iterations the points stay at their start.
  start <- inducing_points(none$data$x, 5, none$kernel, "greedy")
  expect_equal(none$inducing, start, ignore_attr = TRUE)
  timed <- expect_warned(given(max_seconds = 0, reltol = 0, maxit = 1e5), "convergence")
  expect_identical(timed$convergence, 2L)
  expect_match(timed$message, "max_seconds")
})

test_that("the smaller reltol, the longer the optimisation", {
  loose <- given(reltol = 1e-2)
  tight <- given(reltol = 1e-9, maxit = 1000)
  expect_identical(c(loose$convergence, tight$convergence), c(0L, 0L))
  expect_lt(nrow(loose$trace), nrow(tight$trace))
  expect_lte(tight$objective, loose$objective)
})

test_that("the jitter is the given one, by default the smallest that the factorisation allows", {
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

test_that("block, threads and memory change results by rounding only", {
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
    # Four iterations of the search enlarge the rounding.
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

test_that("with optimise_rows some rows are learned from, and the posterior is that of all rows", {
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
    expect_false(isTRUE(all.equal(coef(some), coef(fit(60))))) # other rows give other values
    expect_equal(coef(fit(60)), coef(fit(NULL)))
    expect_equal(coef(fit(1e6)), coef(fit(NULL)))
  }
  # Test equal rows, which are merged, too.
  twice <- with_seed(1, pfdtc(data$x[c(1:60, 1:60), ], c(data$y, data$y + 0.1), m = 4,
                              control = pfdtc_control(optimise_rows = 25, progress = FALSE)))
  expect_identical(nobs(twice), 120L)
  expect_true(all(is.finite(coef(twice))))
})

test_that("the mark between thousands differs from the decimal mark", {
  expect_identical(show_count(1234567), "1,234,567")
  expect_silent(with_options(list(OutDec = ","), expect_identical(show_count(1234567), "1 234 567")))
  expect_identical(show_count(1234.5, scientific = NA), "1,234.5")
})

test_that("an error about a sparse matrix has its conversion", {
  skip_if_not_installed("Matrix")
  expect_input_error(pfdtc(getExportedValue("Matrix", "Matrix")(diag(4), sparse = TRUE), 1:4), "as.matrix()")
})
