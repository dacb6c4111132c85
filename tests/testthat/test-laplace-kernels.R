# Tests classes and counts with sums and products of kernels, and the priors of the learned parameters.

composite_kernels <- function() {
  list(kernel_se(c(1.5, 2), 1) + kernel_linear(0.5), kernel_periodic(1, 1, 2, "x1") * kernel_se(3, 1, "x2"),
       kernel_matern(3 / 2, c(1.5, 2), 0.7) + kernel_constant(2), kernel_rq(1, 2, 1, isotropic = TRUE),
       kernel_se(c(1.5, 2), 1) + new_kernel("mean", "linear mean", NULL, 0.4, 1:2, centre = c(0.2, -0.1),
                                            rate = c(1, 0.7)))
}

test_that("sums and products of kernels have the mode, certificates and evidence bounds of dense matrices", {
  for (i in 1:5) {
    p <- laplace_problem_of(c("logit", "log", "nb", "probit", "logit")[i], plain = i < 3)
    colnames(p$x) <- colnames(p$new) <- c("x1", "x2")
    kernel <- composite_kernels()[[i]]
    k <- function(a, b) kernel_matrix(kernel, `colnames<-`(a, c("x1", "x2")), `colnames<-`(b, c("x1", "x2")))
    new <- p$new[1:5, ]
    exact <- ref_laplace(p$x, p$sites, p$family, NULL, new, p$theta, k = k)
    p$kernel <- kernel
    fit <- laplace_fit_of(p)
    at <- predict(at_mode(fit), data.frame(new), se.fit = TRUE)
    if (is.null(p$sites$offset) || all(p$sites$offset == 0)) {
      expect_equal(unname(at$fit), unname(exact$mean), tolerance = 1e-6, label = kernel$label)
      expect_equal(unname(at$se.fit), unname(sqrt(exact$var)), tolerance = 1e-5, label = kernel$label)
    }
    few <- laplace_fit_of(p, m = 5)
    rows <- list(x = place_columns(new), index = 1:5, offset = 0, names = NULL)
    for (effort in c("fast", "reference")) {
      c <- certificate_of(few, rows, effort, NULL, m2 = if (effort == "reference") 12)
      sd <- sqrt(exact$var)
      expect_true(all(exact$mean >= c$mean_lower - 1e-7 & exact$mean <= c$mean_upper + 1e-7), label = kernel$label)
      expect_true(all(sd >= c$sd_lower - 1e-7 & sd <= c$sd_upper + 1e-7), label = kernel$label)
    }
    if (p$family == "nb") next # its constants depend on theta
    bracket <- evidence_bounds(few) - sum(log_constant(few$likelihood, p$sites))
    expect_true(exact$evidence >= bracket[["lower"]] - 1e-6 && exact$evidence <= bracket[["upper"]] + 1e-6)
  }
})

test_that("sums and products are learned by derivatives in every parameter, which agree with central differences", {
  for (kernel in composite_kernels()) {
    p <- laplace_problem_of("logit")
    x <- `colnames<-`(p$x, c("x1", "x2"))
    kernel <- place_kernel(kernel, x)
    names <- kernel_parameter_names(kernel, colnames(x))
    s <- learning_settings(kernel, 1, colnames(x), names, pfdtc_control(), likelihood = p$likelihood)
    now <- list(kernel = kernel, center = 0.2)
    problem <- laplace_problem(list(x = x, sites = p$sites), p$z, s, now, now, FALSE)
    par <- problem$start + 0.05 * seq_along(problem$start)
    slope <- problem$evaluate(par)$gradient
    differences <- vapply(seq_along(par), function(j) {
      e <- replace(numeric(length(par)), j, 1e-4)
      (problem$evaluate(par + e)$value - problem$evaluate(par - e)$value) / 2e-4
    }, 0)
    expect_equal(slope, differences, tolerance = 1e-5, label = kernel$label) # errors of jitter and differences
  }
  d <- with_seed(4, data.frame(x = seq(0, 6, length.out = 60)))
  d$n <- with_seed(4, stats::rpois(60, exp(0.4 * d$x - 1 + sin(2 * pi * d$x))))
  fit <- pfdtc(n ~ x, d, family = poisson(), kernel = kernel_linear() + kernel_periodic(period = 1) * kernel_constant())
  expect_gt(stats::cor(predict(fit), 0.4 * d$x + sin(2 * pi * d$x)), 0.9)
  expect_output(print(fit), "periodic")
})

test_that("the prior of lengthscales counts their common level once", {
  x <- with_seed(1, matrix(stats::rnorm(300), 50, 6))
  kernel <- place_kernel(kernel_se(rep(1, 6), 2), `colnames<-`(x, letters[1:6]))
  prior <- laplace_prior(kernel, x, 1, TRUE)
  price <- function(by) {
    at <- prior$middle + c(by, 0)
    sum((at - prior$middle) * (prior$precision %*% (at - prior$middle))) / 2
  }
  expect_equal(price(rep(0.7, 6)), 0.5)                    # moves the shared level by one sd
  expect_equal(price(c(0.7, -0.7, 0, 0, 0, 0)), 1)         # moves two lengthscales by one sd each
  expect_equal(exp(prior$middle[1L]), 3 * sqrt(6) * spreads_of(x)[1L])
  expect_true(all(laplace_prior(kernel, x, 1, FALSE)$precision == 0))
})

# Draws two correlated inputs; the class is the sign of their small difference.
classes_by_a_line <- function(n) {
  x <- stats::rnorm(n)
  apart <- 0.1 * stats::rnorm(n)
  data.frame(a = x + apart, b = x - apart, y = apart > 0)
}

test_that("a linear mean with a smooth kernel is chosen if the evidence prefers it, and only then", {
  d <- with_seed(3, classes_by_a_line(40))
  new <- with_seed(4, classes_by_a_line(500))
  fit <- pfdtc(y ~ ., d, family = binomial())
  right <- function(fit) mean((predict(fit, new) > 0) == new$y)
  expect_equal(which(fit$kernels$chosen), 1L) # the best first
  expect_match(fit$kernels$kernel[1L], "[+] linear mean$")
  without <- pfdtc(y ~ ., d, family = binomial(), kernel = kernel_se())
  expect_gt(right(fit), 0.95)
  expect_gt(right(fit), right(without) + 0.05)
  expect_gt(fit$evidence, without$evidence + 3)
  expect_output(print(fit), "Mean +linear")
  expect_true(all(c("mean.variance", "mean") %in% names(coef(fit))))
  terms <- predict(fit, new, type = "terms")
  expect_equal(rowSums(terms) + attr(terms, "constant"), predict(fit, new), ignore_attr = TRUE, tolerance = 1e-8)
  expect_lt(max(abs(stats::residuals(stats::lm(terms[, "mean"] ~ a + b, new)))), 1e-6)

  circle <- with_seed(5, data.frame(a = stats::rnorm(60), b = stats::rnorm(60)))
  circle$y <- circle$a^2 + circle$b^2 < 1.4
  fit <- pfdtc(y ~ ., circle, family = binomial())
  expect_true(has_one_factor(fit$kernel))
  expect_match(fit$kernels$kernel[!fit$kernels$chosen], "[+] linear mean$", all = FALSE)
})

# Draws spectra: 20 bands of one unit, some with little variation; the class is 1 if all bands are far from their mean.
spectra <- function(n, unit = 1) {
  x <- matrix(stats::rnorm(20 * n), n) %*% diag(0.8^(1:20))
  data.frame(y = rowSums(x^2) > 1.5, x %*% diag(unit, 20))
}

test_that("one lengthscale for all inputs is chosen if they have a unit in common, and only then", {
  skip_on_cran()
  d <- with_seed(18, spectra(120))
  new <- with_seed(19, spectra(500))
  fit <- pfdtc(y ~ ., d, family = binomial())
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "(isotropic)", fixed = TRUE)
  expect_length(grep("^lengthscale", names(coef(fit))), 1)
  many <- pfdtc(y ~ ., d, family = binomial(), kernel = kernel_of(fit$kernel$profile))
  nlpd <- function(fit) -mean(predict(fit, new, type = "density"))
  expect_lt(nlpd(fit), nlpd(many) - 0.01)
  other <- with_seed(18, spectra(120, unit = rep(c(1, 100, 0.01, 30), 5)))
  expect_no_match(pfdtc(y ~ ., other, family = binomial())$kernels$kernel[1L], "isotropic")
  beside <- cbind(d, flag = rep(0:1, 60)) # a column of 0 and 1 shares no unit with the bands
  expect_no_match(pfdtc(y ~ ., beside, family = binomial())$kernels$kernel, "isotropic")
})

test_that("a sum of functions of single inputs gets the additive kernel, unless there are few rows or plain = TRUE", {
  sums <- function(n) {
    d <- as.data.frame(matrix(stats::runif(4 * n), n))
    f <- 2 * sin(5 * d$V1) + 1.5 * cos(6 * d$V2) + 3 * (d$V3 - 0.5)^2 + sin(8 * d$V4)
    transform(d, y = stats::rbinom(n, 1, stats::plogis(2 * f)) == 1)
  }
  d <- with_seed(4, sums(300))
  new <- with_seed(5, sums(500))
  fit <- pfdtc(y ~ ., d, family = binomial())
  expect_true(is_additive(fit$kernel))
  plain <- pfdtc(y ~ ., d, family = binomial(), plain = TRUE)
  expect_false(any(grepl("of each input", plain$kernels$kernel)))
  nlpd <- function(fit) -mean(predict(fit, new, type = "density"))
  expect_lt(nlpd(fit), nlpd(plain))
  few <- pfdtc(y ~ ., d[1:60, ], family = binomial())
  expect_false(any(grepl("of each input", few$kernels$kernel)))
})

test_that("the Occam penalty is the integral over the parameters", {
  p <- laplace_problem_of("logit", n = 60)
  x <- `colnames<-`(p$x, c("x1", "x2"))
  rows <- list(x = x, sites = p$sites, points = nrow(x))
  for (tied in c(FALSE, TRUE)) { # two parameters: the lengthscale or the factor of all, and the variance
    kernel <- place_kernel(kernel_se(1, 1, isotropic = !tied), x)
    s <- learning_settings(kernel, 1, colnames(x), kernel_parameter_names(kernel, colnames(x)), pfdtc_control(),
                           likelihood = p$likelihood)
    s$center <- 0.2 # is no parameter
    found <- list(kernel = kernel, center = 0.2, tied = tied, value = 0)
    found$kernel <- with(laplace_problem(rows, x, s, found, found, tied), {
      natural(minimise(list(start = start, evaluate = evaluate))$par)$kernel
    })
    problem <- laplace_problem(rows, x, s, found, found, tied)
    apart <- seq(-4, 4, by = 0.5)
    value <- outer(apart, apart, Vectorize(function(a, b) problem$evaluate(problem$start + c(a, b))$value))
    # The priors are log factor ~ N(., 0.7^2), log variance ~ N(., 1.5^2).
    density <- exp(problem$evaluate(problem$start)$value - value) / (0.7 * 1.5 * 2 * pi)
    told <- occam_penalty(rows, s, found, found)
    expect_gt(told, 0.3)
    expect_lt(abs(told + log(sum(density) * 0.5^2)), 0.2) # the density is not quite normal
  }
})

test_that("later kernels are searched from each distinct optimum; tied lengthscales stay tied without a gain", {
  placed <- function(lengthscale, variance) place_kernel(kernel_se(lengthscale, variance), cbind(a = 1:3, b = 3:1))
  end <- function(lengthscale, value) list(kernel = placed(c(1, lengthscale), 1), value = value)
  found <- distinct_ends(list(end(1.05, 3), end(5, 4), end(1, 2), end(5.2, 5)))
  expect_identical(lapply(found, `[[`, "value"), list(2, 4))
  starts <- starts_of_scales(list(kernel = placed(c(1, 3), 2), center = 7), c(0.3, 1))
  expect_identical(lapply(starts, function(one) kernel_values(one$kernel)), list(c(0.3, 0.3 * 3, 2), c(1, 3, 2)))
  gains <- function(gain) apart_if_likelier(list(value = 5), function(model) list(value = model$value - gain))
  expect_identical(gains(0.04), list())
  expect_identical(gains(0.06), list(list(value = 4.94)))
  expect_identical(gains(NaN), list())
})

test_that("a search for hyperparameters stops early, if at most 0.01 nats are left to gain", {
  d <- with_seed(6, data.frame(a = sample(4, 40, TRUE), b = sample(4, 40, TRUE))) # rows that are equal: fewer points
  d$y <- with_seed(7, stats::rbinom(40, 1, stats::plogis(d$a - d$b)))
  fit <- pfdtc(y ~ ., d, family = binomial(), kernel = kernel_se())
  expect_lt(fit$evaluations[["learn"]], 100)
  found <- list(kernel = fit$kernel, center = fit$center)
  start <- list(kernel = as_kernel(set_values(fit$kernel, c(1, 1, 1))),
                center = center_start(fit$likelihood, fit$data$sites))
  s <- learning_settings(fit$kernel, 1, c("a", "b"), names(coef(fit))[1:3], pfdtc_control(),
                         likelihood = fit$likelihood)
  problem <- laplace_problem(fit$data, fit$inducing, s, found, start, FALSE)
  far <- minimise(problem)
  expect_lt(problem$evaluate(problem$start)$value - far$value, 0.01)
})

test_that("a search that cannot begin is skipped with a message; other errors are not hidden", {
  data <- with_seed(5, data.frame(a = stats::rnorm(80), b = stats::rnorm(80)))
  data$y <- with_seed(6, data$a + stats::rnorm(80) > 0)
  own <- laplace_problem
  fit_without <- function(fails, how = function(par) list(value = Inf, reason = "there is no mode")) {
    replaced <- list(laplace_problem = function(rows, z, s, now, ...) {
      problem <- own(rows, z, s, now, ...)
      if (fails(now$kernel, rows$points)) problem$evaluate <- how
      problem
    })
    with_replaced(replaced, pfdtc(y ~ ., data, family = binomial(), control = list(progress = FALSE)))
  }
  composite <- function(kernel, points) !has_one_factor(kernel)
  expect_no_message(whole <- fit_without(function(...) FALSE))
  expect_message(smooth <- fit_without(composite), class = "pfdtc_message_search")
  expect_match(whole$kernels$kernel[whole$kernels$chosen], "linear mean")
  expect_setequal(smooth$kernels$kernel, grep("linear mean", whole$kernels$kernel, value = TRUE, invert = TRUE))
  # Kernels fail with the few points of the first searches only, so a linear mean on more points has no competitor.
  many <- function(kernel, points) points > laplace_sizes$few_points && has_one_factor(kernel)
  expect_message(few <- fit_without(many), class = "pfdtc_message_search")
  expect_true(has_one_factor(few$kernel))
  expect_gt(stats::cor(predict(few), data$a), 0.9)
  expect_warning(none <- fit_without(function(...) TRUE), class = "pfdtc_warning_convergence")
  expect_equal(none$kernel$variance, laplace_priors$variance, tolerance = 0.5)
  expect_true(all(is.finite(predict(none, type = "response"))))
  expect_error(fit_without(composite, function(par) stop_on_status(list(status = 1L), "The mode")),
               class = "pfdtc_error_numerical")
})

test_that("lengthscales that were learned as one count as one parameter", {
  skip_if_not_installed("MASS")
  fit <- suppressMessages(pfdtc(Claims ~ District + Group + Age + offset(log(Holders)), MASS::Insurance,
                                family = poisson()))
  scales <- coef(fit)[startsWith(names(coef(fit)), "lengthscale.")]
  expect_equal(unname(scales), rep(scales[[1]], 12), tolerance = 1e-12)
  expect_equal(attr(logLik(fit), "df"), 3) # the lengthscale, the variance and the mean
  own <- pfdtc(count ~ spray, InsectSprays, family = poisson(), kernel = kernel_se())
  expect_equal(attr(logLik(own), "df"), length(coef(own)))
})
