# Tests that certificates of classes and counts contain the exact GP's Laplace posterior by dense matrices.
# bench/laplace-properties.R has 100,000 checks; here are the inequalities and the limits.

# The dense reference ends at a Newton step of 1e-12, which W amplifies to at most 1e-7, the tolerance.
expect_inside <- function(p, fit, effort, ...) {
  rows <- list(x = rbind(p$x, p$new), index = seq_len(nrow(p$x) + nrow(p$new)), offset = 0, names = NULL)
  c <- certificate_of(fit, rows, effort, NULL, ...)
  exact <- ref_laplace(p$x, p$sites, p$family, p$kernel, rows$x, p$theta)
  sd <- sqrt(pmax(exact$var, 0))
  label <- paste(p$family, p$kernel$profile, effort)
  expect_true(all(exact$mean >= c$mean_lower - 1e-7 & exact$mean <= c$mean_upper + 1e-7), label = label)
  expect_true(all(sd >= c$sd_lower - 1e-7 & sd <= c$sd_upper + 1e-7), label = label)
  expect_true(all(abs(exact$mean - c$mean) <= c$mean_error + 1e-7), label = label)
  rate <- response_moments(response_of(fit), exact$mean, pmax(exact$var, 0))$mean
  expect_true(all(rate >= c$response_lower * (1 - 1e-7) - 1e-9 & rate <= c$response_upper * (1 + 1e-7) + 1e-9),
              label = label)
  bracket <- evidence_bounds(fit)
  if (p$family != "nb") {
    constant <- sum(log_constant(fit$likelihood, p$sites))
    expect_gte(exact$evidence + constant, bracket[["lower"]] - 1e-6)
    expect_lte(exact$evidence + constant, bracket[["upper"]] + 1e-6)
  }
  invisible(c)
}

test_that("certificates contain the exact mode, sd, probability and evidence, on own points and by a reference", {
  for (p in laplace_problems()) {
    fit <- laplace_fit_of(p, m = 6)
    fast <- expect_inside(p, fit, "fast")
    by_reference <- expect_inside(p, fit, "reference")
    expect_true(all(by_reference$mean_error <= fast$mean_error * (1 + 1e-9)))
    expect_true(all(by_reference$sd_upper <= fast$sd_upper * (1 + 1e-9)))
    expect_inside(p, fit, "tight")
  }
})

test_that("a u that is no mode is certified as well", {
  for (p in laplace_problems()) {
    fit <- laplace_fit_of(p, m = 6)
    fit$factors$beta <- fit$factors$beta + 0.3 * cos(seq_along(fit$factors$beta))
    expect_inside(p, fit, "fast")
  }
})

test_that("with a point for every row the intervals close, with few points they are open", {
  p <- laplace_problem_of("logit", profile = "matern32")
  whole <- certify(laplace_fit_of(p))
  expect_lt(max(whole$mean_error), 1e-7)
  expect_lt(max(whole$sd_upper - whole$sd_lower), 1e-7)
  few <- certify(laplace_fit_of(p, m = 3), effort = "fast")
  expect_gt(min(few$mean_error), 1e-3)
})

test_that("far from the data the exact GP is the prior", {
  p <- laplace_problem_of("log")
  c <- certify(laplace_fit_of(p, m = 6), matrix(1e3, 1, 2))
  expect_lte(c$mean_lower, 0)
  expect_gte(c$mean_upper, 0)
  expect_equal(c$sd_upper, sqrt(1.3), tolerance = 1e-9)
})

test_that("rows that are saturated have certificates and brackets that close, W and g^2 being 0", {
  p <- laplace_problem_of("probit")
  for (offset in c(30, 500)) {
    p$sites$offset <- offset * (2 * p$sites$y - 1)
    fit <- laplace_fit_of(p, m = 6)
    expect_lt(max(abs(evidence_bounds(fit))), 1e-9)
    c <- expect_inside(p, fit, "fast")
    expect_lt(max(c$mean_error), 1e-9)
  }
})

test_that("kernels without a largest variance have allowances for rounding, and brackets that are numbers", {
  p <- laplace_problem_of("log")
  p$kernel <- kernel_se(1, 30) + kernel_linear(0.5)
  p$sites$y <- 10 * p$sites$y # at two points W overflows
  fit <- laplace_fit_of(p, m = 2)
  k <- diag(kernel_matrix(fit$kernel, place_columns(p$x)))
  expect_equal(laplace_bounds(fit, fit$data)$most, max(k))
  found <- laplace_bracket(laplace_bounds(fit, fit$data))
  expect_identical(found[["lower"]], -Inf)
  expect_true(is.finite(found[["upper"]]))
  expect_gt(found[["upper"]], evidence_bounds(laplace_fit_of(p))[["lower"]])
})

test_that("weights in W's range for which H has no Cholesky factor are not used", {
  fails <- function(b, weights, norms) {
    if (any(weights > b$at$W)) abort_numerical("no factor")
    plain(b, weights, norms)
  }
  plain <- weighted_posterior
  for (p in utils::head(laplace_problems(), 4)) {
    fit <- laplace_fit_of(p, m = 6)
    c <- with_replaced(list(weighted_posterior = fails), expect_inside(p, fit, "fast"))
    expect_true(all(is.finite(c$mean_error)))
  }
})

test_that("curvatures over a range are those of a fine grid", {
  for (p in laplace_problems()) {
    sites <- engine_sites(p$likelihood, p$sites, 0)
    f <- seq(-3, 3, length.out = 25) + sites$offset
    e <- rep(c(0.01, 0.5, 2, 5, 0), 5)
    range <- curvature_range(p$likelihood, sites, f, e)
    grid <- vapply(seq(-1, 1, length.out = 401), function(t) native_likelihood(sites, f + t * e)[3L, ], f)
    expect_true(all(apply(grid, 1L, min) >= range$lower) && all(apply(grid, 1L, max) <= range$upper))
    # The range is as narrow as possible, except for the probit, whose W is a sum of two parts (successes, failures).
    # The bound adds their extremes, which need not be at the same f.
    if (p$family != "probit") expect_equal(apply(grid, 1L, max), range$upper, tolerance = 1e-3)
    # Averages between f and any other value are in a narrower range.
    averages <- average_curvature_range(p$likelihood, sites, f, e, range)
    expect_true(all(averages$lower >= range$lower & averages$upper <= range$upper))
    g <- native_likelihood(sites, f)[2L, ]
    known <- e > 0
    between <- vapply(c(-1, -0.7, -0.3, 0.3, 0.7, 1), function(t) {
      ((g - native_likelihood(sites, f + t * e)[2L, ]) / (t * e))[known]
    }, f[known])
    room <- 1e-9 * (1 + abs(between)) # rounding in g, divided by t e
    expect_true(all(between >= averages$lower[known] - room & between <= averages$upper[known] + room))
    if (p$family == "log") { # (exp(e) - 1) / e times W
      o <- e[e == 2]
      expect_equal(averages$upper[e == 2] / native_likelihood(sites, f)[3L, e == 2], expm1(o) / o, tolerance = 1e-7)
    }
  }
})

test_that("predict(certified = TRUE) contains the exact GP's interval, on both scales", {
  p <- laplace_problem_of("logit", profile = "matern32")
  fit <- laplace_fit_of(p, m = 5)
  exact <- ref_laplace(p$x, p$sites, p$family, p$kernel, p$new)
  ends <- cbind(exact$mean, exact$mean) + 1.96 * sqrt(exact$var) %o% c(-1, 1)
  for (type in c("link", "response")) {
    band <- predict(fit, p$new, interval = "credible", type = type, certified = TRUE, level = 2 * pnorm(1.96) - 1)
    truth <- if (type == "link") ends else stats::plogis(ends)
    expect_true(all(band[, "lwr"] <= truth[, 1L] + 1e-7 & band[, "upr"] >= truth[, 2L] - 1e-7))
  }
})

test_that("a reference that is kept does the same without the rows, and is refused elsewhere", {
  for (family in c("logit", "nb")) {
    p <- laplace_problem_of(family, profile = "matern32")
    fit <- laplace_fit_of(p, m = 5)
    fit$reference <- reference(fit, m2 = 15)
    made <- certify(fit, p$new, reference = NULL, m2 = 15)
    kept <- certify(fit, p$new)
    expect_equal(kept$mean_error, made$mean_error, tolerance = 1e-3) # the fit's own points may give narrower bounds
    expect_identical(attr(kept, "m2"), attr(made, "m2"))
    expect_lte(diff(evidence_bounds(fit)), diff(fit$reference$bounds$bracket))
    without <- fit
    without$data <- NULL
    expect_equal(certify(without, p$new)$mean_error, kept$mean_error)
    band <- predict(without, p$new, interval = "credible", certified = TRUE)
    expect_equal(band[, "lwr"], kept$mean_lower - stats::qnorm(0.975) * kept$sd_upper, ignore_attr = TRUE)
    expect_equal(evidence_bounds(without), fit$reference$bounds$bracket)
    expect_output(print(fit$reference), "15")
    other <- p
    other$sites$y <- rev(other$sites$y)
    expect_error(certify(laplace_fit_of(other, m = 5), p$new, reference = fit$reference), "reference",
                 class = "pfdtc_error_input")
    expect_error(certify(fit, p$new, reference = laplace_fit_of(p)), "reference", class = "pfdtc_error_input")
  }
})

test_that("print() says what is certified", {
  p <- laplace_problem_of("logit")
  said <- utils::capture.output(print(certify(laplace_fit_of(p, m = 4))))
  expect_match(paste(said, collapse = " "), "not for +the true")
  fit <- laplace_fit_of(p, m = 4, keep_data = FALSE)
  expect_error(certify(fit, p$new), class = "pfdtc_error_input")
})

test_that("a certificate exists even if laplace_check() has no finite result", {
  x <- cbind(a = 1:6 / 3)
  # Where counts are 0, f is so uncertain that the variational average of exp(f) overflows.
  fit <- suppressMessages(pfdtc(x, c(1e9, 0, 0, 0, 0, 0), family = poisson(), kernel = kernel_se(0.2, 1e5),
                                hyper = "fixed"))
  expect_error(laplace_check(fit), class = "pfdtc_error_numerical")
  certified <- certify(fit, x)
  expect_null(attr(certified, "check"))
  expect_true(all(certified$mean_lower <= certified$mean & certified$mean <= certified$mean_upper))
})

test_that("the norm of the slopes is no less than the dense one where a single row is left unexplained", {
  # All rows but the last are inducing points. The last is far from them, so g'E g = g_n^2 E_nn.
  d <- data.frame(x = c(1:6, 20), y = c(0, 1, 0, 1, 1, 0, 1))
  fit <- pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(1, 3), hyper = "fixed", inducing = matrix(1:6 + 0),
               control = list(maxit = 0))
  b <- laplace_bounds(fit, fit$data)
  z <- b$z
  K <- native_kernel_matrix(fit$kernel, fit$data$x, fit$data$x)
  K_z <- native_kernel_matrix(fit$kernel, z, fit$data$x)
  E <- K - crossprod(K_z, solve(native_kernel_matrix(fit$kernel, z, z), K_z))
  dense <- sqrt(drop(crossprod(b$at$g, E %*% b$at$g)))
  expect_gt(dense, 0.1)
  expect_gte(b$g_E, dense * (1 - 1e-10))
})

# ---- likelihoods with negative W (Student's t) ----------------------------------------------------------------------

# Returns list(f, mean, sd) of the exact GP's mode nearest to f, by Newton's steps with dense matrices: the mode at the
# rows, and its mean and sd at the rows with prior covariances `cross` (rows of data, new) and variances `prior`.
dense_student <- function(f, y, df, sigma, K, cross, prior) {
  for (i in 1:50) {
    r <- y - f
    a <- df * sigma^2
    g <- (df + 1) * r / (a + r^2)
    W <- (df + 1) * (a - r^2) / (a + r^2)^2
    f <- drop(K %*% solve(diag(length(y)) + W * K, W * f + g))
  }
  list(f = f, mean = drop(crossprod(cross, (y - f) * (df + 1) / (a + (y - f)^2))),
       sd = sqrt(prior - colSums(cross * solve(diag(length(y)) + W * K, W * cross))))
}

# Every third response is so far off that W is negative there.
many_outliers <- function(n = 90) {
  with_seed(1, {
    x <- sort(stats::runif(n, 0, 10))
    y <- sin(x) + stats::rnorm(n, 0, 0.1)
    y <- y + (seq_len(n) %% 3 == 0) * sample(c(-1, 1), n, TRUE) * stats::runif(n, 0.5, 1.5)
    data.frame(x, y, g = letters[1 + seq_len(n) %% 6])
  })
}

# Returns the norm and the trace of N^{1/2} S N^{1/2}. S is the posterior covariance for prior covariance Q and row
# weights P = max(W, 0), and N = max(-W, 0).
dense_loss <- function(Q, W) {
  N <- sqrt(pmax(-W, 0))
  M <- N * t(N * solve(diag(length(W)) + Q * rep(pmax(W, 0), each = length(W)), Q))
  list(norm = max(eigen(M, TRUE, TRUE)$values), trace = sum(diag(M)))
}

test_that("with many outliers of Student's t certificates are finite, contain the exact mode and sd, and close", {
  d <- many_outliers()
  new <- rbind(d, data.frame(x = c(3.3, 12, 30), y = 0, g = "a"))
  rows <- seq_len(90)
  smooth <- kernel_matern(5 / 2, 0.5, 1, inputs = ~x)
  grouped <- smooth + kernel_group(~g, variance = 0.5)
  for (case in list(list(y ~ x, smooth, 90), list(y ~ x, smooth, 60), list(y ~ x + g, grouped, 90))) {
    fit <- suppressMessages(pfdtc(case[[1L]], d, family = student(4, 0.2), kernel = case[[2L]], hyper = "fixed",
                                  center = FALSE, m = case[[3L]]))
    K <- kernel_matrix(fit$kernel, new_rows(fit, new)$x)
    at <- dense_student(predict(at_mode(fit), d), d$y, 4, 0.2, K[rows, rows], K[rows, ], diag(K))
    b <- with_fixed_seed(laplace_bounds(fit, fit$data))
    W <- curvature_range(fit$likelihood, b$sites, b$at$f, b$e)$lower
    loss <- dense_loss(K[rows, rows], W)
    expect_gt(loss$trace, 1) # with the trace in place of the norm, nothing is known
    for (effort in c("fast", "reference")) {
      c <- certify(fit, new, effort = effort)
      # The dense reference has errors below 1e-9: Newton's steps end at rounding, and W is at most 31.
      expect_true(all(abs(at$mean - c$mean) <= c$mean_error + 1e-9))
      expect_true(all(at$sd >= c$sd_lower - 1e-9 & at$sd <= c$sd_upper + 1e-9))
    }
    # The reference has a point for every row, so W differs between the modes by rounding alone, and the sd follows W.
    # The largest ratio seen is 1.002, with groups.
    expect_lt(max(c$mean_upper - c$mean_lower) / min(c$sd_lower), 1e-3)
    expect_lt(max(c$sd_upper / c$sd_lower), 1.005)
    # rho is the norm and the residual variance at the rows (at most 0.04 for 60 points).
    rho <- 1 - 1 / b$stretch
    expect_gte(rho, loss$norm * (1 - 1e-9))
    expect_lt(rho, loss$norm + 0.05)
    # In the first box that is tried, rho is no less than the norm by the points and the trace of the rest.
    e <- 2 * b$gamma * sqrt(b$at$left + native_predict(b$at, b$z, b$model, fit$data$x)$sor_variance)
    W <- curvature_range(fit$likelihood, b$sites, b$at$f, e)$lower
    loss <- dense_loss(K[rows, rows], W)
    of_points <- dense_loss(crossprod(features_of(values_at(b$model$kernel, fit$data$x), b$z, b$lo$factors$L)), W)
    expect_gte(rho, of_points$norm + loss$trace - of_points$trace - 1e-9) # traces of about 1 have errors below 1e-9
  }
})

test_that("without a bound on W or on the mode every interval of a log density with several modes is infinite", {
  d <- many_outliers(30)
  open <- gp_family(~ -log(1 + (y - f)^2 / 0.04), concave = FALSE, expected = ~ 2 / (0.04 + (y - f)^2))
  of <- function(family, ...) {
    suppressMessages(pfdtc(y ~ x, d, family = family, kernel = kernel_se(0.5, 1), hyper = "fixed", ...))
  }
  for (fit in list(of(open), of(student(4, 0.2), m = 4))) {
    c <- certify(fit, d, effort = "fast")
    expect_true(all(c$mean_error == Inf & c$sd_upper == Inf & c$sd_lower >= 0))
  }
})
