# Tests evidence_bounds() of exact posteriors, of responses with rounding, and of numbers that overflow. test-bounds.R
# tests brackets of approximations.

# Returns whole numbers, for which every kernel value (1 + x x')^2 is exact in double precision.
integer_problem <- function(seed, noise, n = 8) {
  with_seed(seed, list(x = matrix(sample(-9:9, n), n), y = sample(-50:50, n), noise = noise))
}

oracle_of <- function(p, center = 0) {
  K <- (1 + tcrossprod(p$x))^2
  tf_log_evidence(tf_add(tf(K), tf(diag(p$noise, nrow(K)))), tf_add(tf(as.double(p$y)), tf(rep(-center, length(p$y)))))
}

test_that("lower <= exact log evidence <= upper for exact posteriors, whatever the noise", {
  missed <- 0
  for (seed in 1:5) for (noise in 2^-c(0, 10, 20, 27, 34)) {
    p <- integer_problem(seed, noise)
    fit <- tryCatch(gp_exact(p$x, p$y, kernel = kernel_polynomial(2, 1, 1), noise = noise, hyper = "fixed",
                             center = FALSE, scale = FALSE), pfdtc_error_numerical = function(e) NULL)
    if (is.null(fit)) next
    exact <- oracle_of(p)
    missed <- missed + (fit$evidence != exact)
    for (it in list(fit, replace(fit, "data", list(NULL)))) {
      bracket <- evidence_bounds(it)
      expect_lte(bracket[["lower"]], exact)
      expect_gte(bracket[["upper"]], exact)
      expect_true(fit$evidence >= bracket[["lower"]] && fit$evidence <= bracket[["upper"]])
    }
    # If the noise is not tiny, the allowance is negligible.
    if (noise == 1) expect_lt(diff(bracket), 1e-6)
  }
  expect_gt(missed, 5) # without an allowance for rounding, bounds would fail
})

test_that("the rounding of the determinant alone is in the allowance", {
  # With y = 0 only the determinant contributes; K has rank 3, so that pivots are as small as the noise.
  largest <- 0
  for (seed in 1:5) for (noise in 2^-c(20, 27, 34)) {
    p <- replace(integer_problem(seed, noise), "y", list(numeric(8)))
    fit <- tryCatch(gp_exact(p$x, p$y, kernel = kernel_polynomial(2, 1, 1), noise = noise, hyper = "fixed",
                             center = FALSE, scale = FALSE), pfdtc_error_numerical = function(e) NULL)
    if (is.null(fit)) next
    exact <- oracle_of(p)
    largest <- max(largest, abs(fit$evidence - exact))
    bracket <- evidence_bounds(fit)
    expect_lte(bracket[["lower"]], exact)
    expect_gte(bracket[["upper"]], exact)
  }
  expect_gt(largest, 1e-6) # far above the rounding of a sum of 8 logarithms
})

test_that("equal inputs and weights are in the allowance", {
  x <- matrix(c(1, 1, 2, 3, 3, 3))
  y <- c(1, 4, -2, 7, 5, 6)
  w <- c(1, 2, 4, 1, 1, 0.5)
  fit <- gp_exact(x, y, weights = w, kernel = kernel_polynomial(2, 1, 1), noise = 2^-20, hyper = "fixed",
                  center = FALSE, scale = FALSE)
  K <- (1 + tcrossprod(x))^2
  exact <- tf_log_evidence(tf_add(tf(K), tf(diag(2^-20 / w))), tf(y))
  bracket <- evidence_bounds(fit)
  expect_true(bracket[["lower"]] <= exact && exact <= bracket[["upper"]])
})

test_that("the rounding of y - offset is in the allowance, merged rows included, with the data and without", {
  # The rounding error of y - offset is 1e-6, and the noise sd 0.06. The rows are equal, so that the difference of their
  # responses counts in full.
  for (seed in 1:8) {
    p <- with_seed(seed, list(y = -1e10 * (1 + stats::rnorm(2) * 1e-8), offset = stats::rnorm(2)))
    for (by in list(gp_exact, function(...) gp_dtc(..., m = 1))) {
      fit <- by(matrix(c(1, 1)), p$y, offset = p$offset, kernel = kernel_se(1, 1), noise = 0.0037, hyper = "fixed")
      r <- tf_add(two_sum(p$y, -p$offset), tf(rep(-fit$center, 2)))
      exact <- tf_log_evidence(tf_add(tf(matrix(1, 2, 2)), tf(diag(0.0037, 2))), r)
      without <- gp_exact(matrix(c(1, 1)), p$y, offset = p$offset, kernel = kernel_se(1, 1), noise = 0.0037,
                          hyper = "fixed", keep_data = FALSE)
      for (it in list(fit, without)) {
        bracket <- evidence_bounds(it)
        expect_true(bracket[["lower"]] <= exact && exact <= bracket[["upper"]], info = seed)
      }
    }
  }
})

test_that("fits of row sources keep the size of their offset, and rows that are added count", {
  d <- data.frame(x = rep(1:4, 6) / 4, o = 1e6 * (1 + 1:24), w = 1:24 / 8)
  d$y <- d$o + sin(1:24)
  size <- function(rows) sqrt(sum((d$w * d$o^2)[rows]))
  of <- function(rows, ...) {
    pfdtc(y ~ x, in_blocks(d[rows, ]), weights = w, offset = o, m = 3, kernel = kernel_se(1, 1), noise = 0.01,
          hyper = "fixed", ...)
  }
  fit <- of(1:24)
  expect_equal(fit$frame$offset_size, size(1:24), tolerance = 1e-12) # sums in another order
  whole <- pfdtc(y ~ x, d, weights = w, offset = o, m = 3, kernel = kernel_se(1, 1), noise = 0.01, hyper = "fixed",
                 keep_data = FALSE)
  expect_equal(response_size(fit), response_size(whole), tolerance = 1e-12)
  kept <- pfdtc(y ~ x, d, weights = w, offset = o, m = 3, kernel = kernel_se(1, 1), noise = 0.01, hyper = "fixed")
  expect_identical(response_size(axe_data.gp_fit(kept)), response_size(kept))
  expect_equal(response_size(add_rows(of(1:16), d[17:24, ])), response_size(whole), tolerance = 1e-9)
  few <- of(1:16, neighbours = 0)
  expect_equal(response_size(add_rows(few, d[17:24, ])), response_size(whole), tolerance = 1e-9)
  # A fit without an offset has NULL.
  plain <- pfdtc(y ~ x, in_blocks(d), m = 3, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  expect_null(plain$frame$offset_size)
})

test_that("numbers that overflow give intervals that hold everything, and no NaN", {
  fit <- pfdtc(matrix(1:3), c(1, 2, 4), m = 2, kernel = kernel_polynomial(2, 1, 1e95), noise = 1, hyper = "fixed",
               scale = FALSE, control = pfdtc_control(maxit = 0))
  everything <- c(lower = -Inf, upper = Inf)
  expect_identical(evidence_bounds(fit), everything)
  expect_false(anyNA(certify(fit, effort = "fast")))
  for (effort in c("reference", "tight")) {
    certificate <- suppressMessages(certify(fit, effort = effort))
    expect_false(anyNA(certificate))
    expect_true(all(certificate$mean_lower == -Inf & certificate$mean_upper == Inf))
    expect_gt(min(certificate$sd_upper), 1) # the exact sd is about the noise sd, 1
    expect_lt(max(certificate$sd_lower), 1)
  }
  fit$reference <- reference(fit)
  expect_false(anyNA(unlist(fit$reference$norms)))
  expect_silent(predict(fit$reference, matrix(2)))
  expect_false(anyNA(certify(fit)))
  expect_identical(evidence_bounds(fit), everything)
  expect_true(all(error_bounds(fit)$mean_bound == Inf))
  expect_warning(found <- refine(fit, tol = 0.1), class = "pfdtc_warning_convergence")
  expect_true(all(found$mean_error == Inf))
})
