# Tests the searches after the first one: for little noise, and for large lengthscales (the smooth limit).

# Returns Branin's function of two inputs in [0, 1] at the rows of a design.
branin <- function(x) {
  u <- 15 * x[, 1] - 5
  (15 * x[, 2] - 5.1 / (4 * pi^2) * u^2 + 5 / pi * u - 6)^2 + 10 * (1 - 1 / (8 * pi)) * cos(u) + 10
}

# Returns list(x, y): of 100 random Latin hypercubes the one with the largest smallest distance, and branin() there.
simulator_runs <- function(n, digits = NULL, noise = 0, seed = 1) {
  with_seed(seed, {
    designs <- lapply(1:100, function(k) cbind((sample(n) - 0.5) / n, (sample(n) - 0.5) / n))
    x <- designs[[which.max(vapply(designs, function(x) min(stats::dist(x)), 0))]]
    y <- branin(x) + noise * stats::rnorm(n)
    list(x = x, y = if (is.null(digits)) y else round(y, digits))
  })
}

# Returns the problem with the normal prior, the end of its search, and the problem with the other prior.
noise_problems <- function(data) {
  cleaned <- data_from_matrix(data$x, data$y)
  s <- learning_settings(place_kernel(kernel_se(), cleaned$x), NULL, colnames(cleaned$x),
                         c("lengthscale.x1", "lengthscale.x2", "variance", "noise"), pfdtc_control(progress = FALSE))
  pool <- with_seed(1, learning_rows(cleaned, s))
  problem <- learning_problem(pool, s, "se")
  start <- pmin(pmax(problem$unit + log(start_values_of(problem, 1, 0.05)), problem$lower), problem$upper)
  end <- learn_exactly(problem, climb(problem, start, "whole", 8L))
  list(s = s, model = list(problem = problem, theta = end$theta, value = end$value),
       slow = learning_problem(pool, s, "se", little_noise = TRUE))
}

test_that("the prior that allows little noise falls exponentially, with its slopes, and is normal above", {
  made <- noise_problems(simulator_runs(40))
  slow <- made$slow
  centre <- slow$unit + c(slow$table$middle, log(0.1))
  at <- function(noise) replace(centre + c(0.3, -0.2, 0.5, 0), 4, slow$unit[[4]] + log(noise))
  for (noise in c(1e-6, 1e-3, 0.03, 0.2, 3)) {
    prior <- slow$prior(at(noise))
    expect_gradient(function(theta) slow$prior(theta)$value, at(noise), prior$gradient)
    q <- log(noise / 0.1)
    of_noise <- if (q < -1) -(-q - 0.5) / 4 else -q^2 / 8
    expect_close(prior$value, of_noise - (0.3^2 / 0.7^2 + 0.2^2 / 0.7^2 + 0.5^2 / 3^2) / 2, 1e-12)
    expect_true(all(prior$information > 0))
  }
  expect_close(slow$prior(replace(centre, 4, slow$unit[[4]] + log(1e-6)))$value, -2.753, 1e-3)
  # The search without the rule for little noise keeps its normal prior.
  expect_close(made$model$problem$prior(replace(centre, 4, slow$unit[[4]] + log(1e-6)))$value, -log(1e-5)^2 / 8, 1e-12)
})

test_that("little noise is chosen if it has two nats more of dense log likelihood, and not for noisy responses", {
  cases <- list(simulator_runs(40), simulator_runs(40, noise = 3), simulator_runs(25, noise = 15))
  chosen <- vapply(cases, function(data) {
    made <- noise_problems(data)
    expect_true(may_lack_noise(made$model$problem, replace(made$model$theta, 4, made$model$problem$lower[[4]]), made$s))
    got <- compare_little_noise(made$model, made$s)
    pool <- made$slow$pool
    likelihood <- function(theta) dense_evidence(pool, "se", theta, list(center = 0))
    gain <- likelihood(got$theta) - likelihood(made$model$theta)
    if (got$problem$little_noise) expect_gt(gain, 2) else expect_identical(got$theta, made$model$theta)
    # No search from a nearby start reaches a higher value; otherwise the rule would have to choose its end.
    found <- stats::optim(replace(made$model$theta, 4, made$slow$unit[[4]] + log(1e-5)), function(theta) {
      tryCatch(-likelihood(theta) - made$slow$prior(theta)$value, error = function(e) 1e10)
    }, control = list(maxit = 1000))$par
    if (!got$problem$little_noise) expect_lt(likelihood(found) - likelihood(made$model$theta), 2)
    got$problem$little_noise
  }, NA)
  expect_identical(chosen, c(TRUE, FALSE, FALSE))
})

test_that("rounded and repeated responses, a given noise and no priors keep their noise", {
  may <- function(data, change = identity) {
    made <- noise_problems(data)
    problem <- made$model$problem
    may_lack_noise(problem, replace(made$model$theta, 4, problem$lower[[4]]), change(made$s))
  }
  runs <- simulator_runs(40)
  expect_true(may(runs))
  expect_false(may(simulator_runs(40, digits = -1)))
  expect_false(may(list(x = rbind(runs$x, runs$x[1:2, ]), y = c(runs$y, runs$y[1:2] + c(1, -1)))))
  expect_false(may(runs, function(s) replace(s, "priors", FALSE)))
  expect_false(may(simulator_runs(12)))   # too few rows for four parameters
  expect_false(may(simulator_runs(200)))  # priors have faded: they cost next to nothing
})

test_that("columns of levels with one lengthscale count as one input, and exclude the search for little noise", {
  # With 228 columns the searches without noise took two thirds of the time of the fit (bench/factors.R).
  made <- noise_problems(simulator_runs(170))
  levels <- cbind(made$model$problem$pool$x, outer(rep_len(1:30, 170), 1:30, "==") + 0)
  may <- function(shared) {
    s <- made$s
    s$kernel$shared <- shared
    problem <- made$model$problem
    problem$pool$x <- levels
    may_lack_noise(problem, replace(made$model$theta, 4, problem$lower[[4]]), s)
  }
  expect_true(may(NULL))
  expect_false(may(shared_by(c("a", "b", rep("g", 30)))))
})

test_that("a fit of a simulator has little noise, prints it, and vcov() uses its prior", {
  data <- simulator_runs(40)
  fit <- learn(data, kernel = kernel_se()) # the open kernel ends as an additive one, at the floor of the noise
  expect_lt(fit$noise, 1e-5 * stats::var(data$y))
  expect_match(fit$because[["noise"]], "little noise")
  new <- with_seed(2, matrix(stats::runif(2000), 1000))
  # RMSE over sd is .0063 without the rule for little noise and .0056 with it, in the mean of ten designs
  # (bench/simulators.R).
  expect_lt(sqrt(mean((predict(fit, new) - branin(new))^2)) / stats::sd(branin(new)), 0.0075)
  # The normal prior of the log noise has the curvature 1/4, the prior for little noise has 0 in its tail.
  other <- fit
  attr(other$learned, "little_noise") <- NULL
  added <- learned_density(other)$information() - learned_density(fit)$information()
  expect_close(added, diag(c(0, 0, 0, 1 / 4)), 1e-4) # differences of large slopes
  expect_gt(max(abs(vcov(other) - vcov(fit))), 0.01)
  noisy <- learn(simulator_runs(40, noise = 3))
  expect_null(attr(noisy$learned, "little_noise"))
  expect_false("noise" %in% names(noisy$because))
})

test_that("twenty runs of a simulator have little noise, and runs with much noise have much", {
  new <- with_seed(2, matrix(stats::runif(2000), 1000))
  error <- function(fit) sqrt(mean((predict(fit, new, type = "response") - branin(new))^2)) / stats::sd(branin(new))
  fits <- lapply(quick(1:4), function(seed) learn(simulator_runs(20, seed = seed), transform = "auto"))
  for (fit in fits) {
    expect_null(fit$transform)
    expect_lt(fit$noise, 2e-3 * fit$scale^2)
    expect_identical(fit$kernels$kernel[fit$kernels$chosen], fit$kernel$label)
    expect_true(all(is.finite(vcov(fit))))
  }
  # The mean error is .16, and .28 without the rule for little noise; for ten maximin designs .09 and .20
  # (bench/simulators.R).
  expect_lt(mean(vapply(fits, error, 0)), 0.2)
  noisy <- learn(simulator_runs(20, noise = 15), transform = "auto")
  expect_null(attr(noisy$learned, "little_noise"))
})

test_that("held noise is chosen by the dense leave-one-out density, if the likelihood is within a nat", {
  for (case in list(list(20, 0), list(20, 15), list(25, 3), list(40, 3))) {
    made <- noise_problems(simulator_runs(case[[1]], noise = case[[2]]))
    model <- made$model
    got <- explain_noise(model, made$s)
    held <- little_noise_model(model, made$s, "se", min(model$theta[[4]], model$problem$unit[[4]] + log(1e-3)))
    expect_lte(held$theta[[4]] - model$problem$unit[[4]], log(1e-3) + 1e-12) # it is held, not learned
    expect_gte(held$theta[[4]], min(model$theta[[4]], model$problem$unit[[4]] + log(1e-3)))
    scores <- function(theta) {
      pool <- made$slow$pool
      precision <- solve(dense_covariance(pool$x, "se", unname(theta), 1))
      p <- diag(precision)
      away <- drop(precision %*% pool$y) / p
      c(mean(stats::dnorm(away, 0, sqrt(1 / p), log = TRUE)), dense_evidence(pool, "se", theta, list(center = 0)))
    }
    gain <- scores(held$theta) - scores(model$theta)
    expect_identical(got$problem$little_noise, gain[1] > 0.5 && gain[2] > -1)
    expect_identical(got$theta, if (got$problem$little_noise) held$theta else model$theta)
  }
})

test_that("a smooth function of ten inputs is found at the smooth limit, unless values or starts are given", {
  only_nightly()
  # For Griewank's function with noise of 0.05 sd, the grid alone ends 11 nats lower, with RMSE 0.9 (bench/smooth.R).
  griewank <- function(seed) {
    with_seed(seed, {
      x <- matrix(stats::runif(11000, -600, 600), ncol = 10)
      f <- rowSums(x^2) / 4000 - apply(cos(t(t(x) / sqrt(1:10))), 1, prod) + 1
      list(x = x[1:100, ], y = (f + stats::rnorm(1100, sd = 0.05 * stats::sd(f)))[1:100], new = x[-(1:100), ],
           f = f[-(1:100)])
    })
  }
  for (seed in quick(1:3)) {
    data <- griewank(seed)
    fit <- learn(data, kernel = kernel_se())
    expect_lt(sqrt(mean((predict(fit, data$new) - data$f)^2)) / stats::sd(data$f), 0.17)
    one <- learn(data, kernel = kernel_se(), control = list(restarts = 11)) # the grid alone
    expect_gt(as.numeric(logLik(fit)), as.numeric(logLik(one)) + 3)
  }
  # A held lengthscale stays.
  held <- learn(data, kernel = kernel_se(c(500, rep(2000, 9))), control = list(fix = "lengthscale.x1"))
  expect_equal(coef(held)[["lengthscale.x1"]], 500, tolerance = 1e-12)
})

test_that("further starts keep held hyperparameters", {
  made <- noise_problems(simulator_runs(40))
  problem <- replace(made$model$problem, "free", list(c(FALSE, TRUE, TRUE, TRUE)))
  theta <- made$model$theta
  start <- further_starts(problem, list(c(2, 20, 1e-5)), theta)[[1L]]
  expect_identical(start[[1L]], theta[[1L]])
  expect_close(start[-1], problem$unit[-1] + log(c(2 * sqrt(2), 20, 1e-5)), 1e-12)
  expect_length(smooth_runs(problem, list(), theta), 2L)
  expect_null(smooth_runs(problem, list(restarts = 3), theta))
  expect_null(smooth_runs(replace(problem, "given", list(c(NA, 0, NA, NA))), list(), theta))
})

test_that("a search for little noise whose matrix has no factor is not taken", {
  # The weights differ by 60 orders of magnitude. So one of the kernels with little noise cannot be factored.
  d <- with_seed(8, data.frame(x = runif(60), z = rnorm(60), e = rnorm(60) / 10))
  d$y <- sin(6 * d$x) + d$e
  fit <- with_options(list(pfdtc.transform = "auto"), pfdtc(y ~ x, d, weights = 10^seq(-30, 30, length.out = 60)))
  expect_true(all(is.finite(predict(fit))))
})
