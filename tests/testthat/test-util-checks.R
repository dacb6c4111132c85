test_that("check_matrix() gives back a double matrix, and a double matrix as it is", {
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

test_that("check_matrix() refuses what is not a number, with the place", {
  x <- matrix(rnorm(6), 3, dimnames = list(NULL, c("a", "b")))
  for (bad in c(NA, NaN, Inf, -Inf)) {
    y <- x
    y[2, 2] <- bad
    e <- tryCatch(check_matrix(y, "x"), error = identity)
    expect_s3_class(e, "pfdtc_error_input")
    expect_match(conditionMessage(e), paste0("`x` .*", bad, " in row 2, column 2 \\(`b`\\)"))
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

test_that("check_vector() gives back plain doubles of the length wanted", {
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

test_that("check_positive() wants finite numbers above zero", {
  expect_identical(check_positive(2L, "noise", 1), 2)
  expect_identical(check_positive(c(1, 2), "lengthscale"), c(1, 2))
  expect_input_error(check_positive(0, "noise", 1), "`noise`")
  expect_input_error(check_positive(c(1, -2), "lengthscale"), "-2")
  for (bad in list(Inf, NA_real_, NaN, "a", TRUE, numeric(0), NULL, c(1, 2))) {
    expect_input_error(check_positive(bad, "noise", 1), "`noise`")
  }
})

test_that("check_count() wants a whole number within its limits", {
  expect_identical(check_count(3, "m", 10), 3L)
  expect_identical(check_count(1e10, "m"), 1e10)
  expect_identical(check_count(0, "maxit", min = 0), 0L)
  expect_input_error(check_count(0, "m", 100), "`m`")
  expect_input_error(check_count(200000, "m", 100000), "200000")
  for (bad in list(2.5, NA, Inf, "a", c(1, 2), NULL, TRUE, -1)) {
    expect_input_error(check_count(bad, "m"), "`m`")
  }
})

test_that("check_flag() and check_choice() want one of a few values", {
  expect_true(check_flag(TRUE, "scale"))
  for (bad in list(NA, 1, "a", c(TRUE, FALSE), NULL)) {
    expect_input_error(check_flag(bad, "scale"), "`scale`")
  }
  methods <- c("pilot", "joint", "fixed")
  expect_identical(check_choice(methods, methods, "hyper"), "pilot")
  expect_identical(check_choice("fix", methods, "hyper"), "fixed")
  for (bad in list("none", NA, 1, c("joint", "fixed"), NULL)) {
    expect_input_error(check_choice(bad, methods, "hyper"), "\"pilot\", \"joint\", \"fixed\"")
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
  expect_identical(check_memory(100, "a matrix"), 100)
  with_options(list(pfdtc.max_memory = 2^20), {
    expect_input_error(check_memory(2^30, "a matrix"),
                       "1 GB")
    expect_input_error(check_memory(Inf, "a matrix"), "a matrix")
  })
})

test_that("weights whose squares cannot be computed with are refused, also where fits are not made", {
  d <- smooth_data(12)
  kernel <- kernel_se(1, 1)
  for (w in c(1e300, 1e-300)) for (weights in list(rep(w, 12), c(w, rep(1, 11)))) {
    expect_input_error(pfdtc(d$x, d$y, weights = weights), "weights")
    expect_input_error(gp_exact(y ~ ., data.frame(d$x, y = d$y), weights = weights), "weights")
    expect_input_error(vfe_objective(d$z, d$x, d$y, kernel, 0.1, weights = weights), "weights")
    expect_input_error(auxiliary(d$x, d$y, kernel, 0.1, weights = weights), "weights")
  }
  for (w in c(1e-55, 1e55)) { # as far as that the same model has the same fit, and its certificates hold
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
