# The bracket of the true log marginal likelihood, beside quadrature and limits.

families_of_two <- function() {
  list(binomial = binomial(), poisson = poisson(), Gamma = replace(Gamma("log"), "theta", 2), ordinal = ordinal(),
       tobit = tobit(left = 0, scale = 0.5), weibull = weibull(0.7))
}

test_that("the bracket contains the true log marginal likelihood, and little more", {
  families <- families_of_two()
  for (name in names(families)) for (seed in 1:3) {
    fit <- fit_of_two(two_rows(name, seed), families[[name]], if (seed == 3) "vi" else "laplace")
    ends <- evidence_bounds(fit, true = TRUE)
    truth <- true_log_evidence(fit)
    room <- 1e-6 * (1 + abs(truth)) # the grid's own error
    expect_gte(truth, ends[["lower"]] - room)
    expect_lte(truth, ends[["upper"]] + room)
    expect_lt(ends[["upper"]] - ends[["lower"]], 1) # two rows
  }
})

test_that("with Gaussian responses both ends are the value, and other fits are refused", {
  d <- with_seed(1, data.frame(x = stats::runif(15), y = stats::rnorm(15)))
  normal <- pfdtc(y ~ x, d, family = tobit(scale = 0.6), kernel = kernel_se(0.4, 1), hyper = "fixed", center = 0)
  ends <- evidence_bounds(normal, true = TRUE)
  expect_equal(ends[["upper"]], ends[["lower"]], tolerance = 1e-6)
  expect_equal(ends[["lower"]], normal$evidence, tolerance = 1e-6)
  expect_lt(attr(ends, "within"), 0.02)
  expect_output(print(ends), "posterior")
  refused <- function(fit) expect_error(evidence_bounds(fit, true = TRUE), class = "pfdtc_error_input")
  refused(pfdtc(y ~ x, d, family = student(4, 1), kernel = kernel_se(0.4, 1), hyper = "fixed"))
  refused(suppressWarnings(pfdtc(I(y > 0) ~ x, d, family = binomial(), kernel = kernel_se(0.01, 1), hyper = "fixed",
                                 m = 5)))
  expect_error(evidence_bounds(normal, true = 1), "true", class = "pfdtc_error_input")
})

test_that("the largest eigenvalue is bounded from above, closely for positive matrices", {
  for (seed in 1:5) {
    K <- with_seed(seed, crossprod(matrix(stats::runif(90) - 0.3 * (seed > 3), 9)))
    top <- eigen(K, TRUE, TRUE)$values[1L]
    expect_gte(largest_eigenvalue(K), top * (1 - 1e-12))
    if (seed <= 3) expect_equal(largest_eigenvalue(K), top, tolerance = 1e-3)
  }
})
