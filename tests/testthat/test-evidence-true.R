# Compares the bracket of the true log marginal likelihood with quadrature and limits.

families_of_two <- function() {
  list(binomial = binomial(), poisson = poisson(), Gamma = replace(Gamma("log"), "theta", 2), ordinal = ordinal(),
       tobit = tobit(left = 0, scale = 0.5), weibull = weibull(0.7))
}

test_that("the bracket contains the true log marginal likelihood, and little more", {
  families <- families_of_two()
  for (name in names(families)) for (seed in in_turn(1:3, match(name, names(families)), 2)) {
    fit <- fit_of_two(two_rows(name, seed), families[[name]], if (seed == 3) "vi" else "laplace")
    ends <- evidence_bounds(fit, true = TRUE)
    truth <- true_log_evidence(fit)
    room <- 1e-6 * (1 + abs(truth)) # allows for the grid's error
    expect_gte(truth, ends[["lower"]] - room)
    expect_lte(truth, ends[["upper"]] + room)
    expect_lt(ends[["upper"]] - ends[["lower"]], 1) # narrow for two rows
  }
})

test_that("with one inducing point for two rows the bracket contains the true value, and is wider", {
  families <- families_of_two()
  finite <- tried <- 0
  for (name in names(families)) for (seed in in_turn(1:3, match(name, names(families)), 2)) {
    tried <- tried + 1
    problem <- two_rows(name, seed, apart = 0.3)
    fit <- fit_of_two(problem, families[[name]], if (seed == 3) "vi" else "laplace", m = 1)
    expect_identical(fit$m, 1L)
    ends <- evidence_bounds(fit, true = TRUE)
    truth <- true_log_evidence(fit)
    room <- 1e-6 * (1 + abs(truth)) # allows for the grid's error
    expect_gte(truth, ends[["lower"]] - room)
    expect_lte(truth, ends[["upper"]] + room)
    finite <- finite + is.finite(ends[["upper"]])
    exact <- evidence_bounds(fit_of_two(problem, families[[name]]), true = TRUE)
    expect_lte(ends[["lower"]], exact[["lower"]] + room)
    expect_gte(attr(ends, "within"), sqrt(max(truth - ends[["lower"]] - room, 0) / 2))
  }
  expect_gt(finite, tried / 2)
})

test_that("more points narrow the bracket to that of the exact GP", {
  d <- with_seed(3, data.frame(a = stats::runif(60), b = stats::runif(60), y = stats::runif(60) < 0.4))
  width <- vapply(c(10, 25, 60), function(m) {
    fit <- pfdtc(y ~ a + b, d, family = binomial(), kernel = kernel_se(0.6, 1), hyper = "fixed", m = m)
    ends <- evidence_bounds(fit, true = TRUE)
    c(ends[["upper"]] - ends[["lower"]], attr(ends, "within"))
  }, c(0, 0))
  expect_true(all(diff(width[1, ]) <= 1e-6) && all(is.finite(width)))
  expect_equal(width[1, 2], width[1, 3], tolerance = 0.05) # 25 points leave almost no residual variance
  expect_lt(width[2, 3], 0.1)
  few <- pfdtc(y ~ a + b, d, family = binomial(), kernel = kernel_se(0.6, 1), hyper = "fixed", m = 3)
  expect_identical(evidence_bounds(few, true = TRUE)[["upper"]], Inf)
  expect_output(print(evidence_bounds(few, true = TRUE)), "above")
})

test_that("with Gaussian responses both ends are the value, and other fits are refused", {
  d <- with_seed(1, data.frame(x = stats::runif(15), y = stats::rnorm(15)))
  normal <- pfdtc(y ~ x, d, family = tobit(-9, scale = 0.6), kernel = kernel_se(0.4, 1), hyper = "fixed", center = 0)
  ends <- evidence_bounds(normal, true = TRUE)
  expect_equal(ends[["upper"]], ends[["lower"]], tolerance = 1e-6)
  expect_equal(ends[["lower"]], normal$evidence, tolerance = 1e-6)
  expect_lt(attr(ends, "within"), 0.02)
  expect_output(print(ends), "posterior")
  refused <- function(fit) expect_error(evidence_bounds(fit, true = TRUE), class = "pfdtc_error_input")
  refused(pfdtc(y ~ x, d, family = student(4, 1), kernel = kernel_se(0.4, 1), hyper = "fixed"))
  refused(pfdtc(I(y > 0) ~ x, d, family = binomial(), kernel = kernel_se(0.1, 1), hyper = "fixed", m = 5,
                neighbours = 3))
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

test_that("the bracket of the true log marginal likelihood draws no random numbers and is the same each time", {
  d <- with_seed(3, data.frame(x = stats::runif(40), n = stats::rpois(40, 3)))
  fit <- pfdtc(n ~ x, d, m = 5, family = poisson(), kernel = kernel_se(0.1, 1), hyper = "fixed")
  set.seed(4)
  before <- .Random.seed
  one <- evidence_bounds(fit, true = TRUE)
  expect_identical(.Random.seed, before)
  set.seed(5)
  expect_identical(evidence_bounds(fit, true = TRUE), one)
})
