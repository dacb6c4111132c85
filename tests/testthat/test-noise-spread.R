# Tests noise whose size differs randomly between rows.

# Returns the average of g(noise variance) over the log-normal size of the noise.
over_sizes <- function(g, noise, spread) {
  stats::integrate(function(u) {
    vapply(u, function(u) g(noise * exp(sqrt(spread) * u - spread / 2)), 0) * stats::dnorm(u)
  }, -8, 8, rel.tol = 1e-9)$value
}

cases <- data.frame(mean = c(0, 1, -2), var = c(0.2, 1e-4, 3), noise = c(1, 0.5, 0.1), spread = c(0.3, 2, 4))

test_that("density, cdf and intervals are averages over the size of the noise", {
  y <- c(0.7, 6, -5)
  density <- noisy_log_density(y, cases)
  cdf <- noisy_cdf(y - cases$mean, cases)
  half <- noisy_half(0.9, cases)
  for (i in 1:3) {
    one <- cases[i, ]
    # The trapezoid rule has 21 points, or 141 for the density in case 2, which is beyond 6 sds.
    expect_equal(density[i], log(over_sizes(function(s2) stats::dnorm(y[i], one$mean, sqrt(one$var + s2)), one$noise,
                                            one$spread)), tolerance = 1e-4)
    upto <- function(d) over_sizes(function(s2) stats::pnorm(d, 0, sqrt(one$var + s2)), one$noise, one$spread)
    expect_equal(cdf[i], upto(y[i] - one$mean), tolerance = 1e-4)
    expect_equal(upto(half[i]), 0.95, tolerance = 1e-4)
  }
})

test_that("intervals of a level close to 1 leave out no more than they should", {
  wide <- expand.grid(var = c(1e-4, 3), noise = 1, spread = c(0.05, 1, 9))
  u <- seq(-40, 40, by = 0.01)
  for (rest in c(1e-5, 1e-7, 1e-10)) {
    half <- noisy_half(1 - rest, wide)
    outside <- vapply(seq_along(half), function(i) {
      sd <- sqrt(wide$var[i] + exp(sqrt(wide$spread[i]) * u - wide$spread[i] / 2))
      sum(0.02 * stats::dnorm(u) * stats::pnorm(half[i], 0, sd, lower.tail = FALSE))
    }, 0)
    expect_equal(outside, rep(rest, length(half)), tolerance = 1e-3) # rounding of 1 - rest/2, and steps of 1/4
  }
})

test_that("without spread the noise is normal to the bit, and up to rounding if other rows have spread", {
  none <- replace(cases, "spread", 0)
  expect_identical(noisy_log_density(1:3, none), stats::dnorm(1:3, none$mean, sqrt(none$var + none$noise), log = TRUE))
  expect_identical(noisy_half(0.9, none), stats::qnorm(0.95) * sqrt(none$var + none$noise))
  expect_identical(noisy_cdf(1:3, none), stats::pnorm(1:3 / sqrt(none$var + none$noise)))
  some <- replace(cases, "spread", c(0, 1, 0))
  expect_equal(noisy_half(0.9, some)[-2], noisy_half(0.9, none)[-2])
  expect_equal(noisy_log_density(1:3, some)[-2], noisy_log_density(1:3, none)[-2])
})

test_that("intervals grow with the variance of f, so that certified ends stay certified", {
  for (factor in c(1.001, 1.5, 10)) {
    expect_true(all(noisy_half(0.95, replace(cases, "var", factor * cases$var)) > noisy_half(0.95, cases)))
  }
})

test_that("draws of noise have its variance and its log-normal size", {
  e <- with_seed(1, draw_noise(4e5, 0.5, 0.6))
  expect_equal(mean(e^2), 0.5, tolerance = 0.02)                # 6 standard errors
  expect_equal(mean(e^4) / 0.25, 3 * exp(0.6), tolerance = 0.1) # the kurtosis of the mixture
  expect_identical(with_seed(1, draw_noise(4, 2, 0)), with_seed(1, sqrt(2) * stats::rnorm(4)))
})

test_that("heavy tails are learned, change only densities and intervals, and are kept by `like`", {
  d <- with_seed(1, data.frame(x = stats::runif(800)))
  d$y <- sin(6 * d$x) + with_seed(2, 0.3 * stats::rt(800, 3))
  new <- d[-(1:300), ]
  fit <- with_seed(1, pfdtc(y ~ x, d[1:300, ], transform = "auto"))
  expect_gt(fit$noise_tail, 0.2)
  expect_match(fit$because[["tails"]], "Heavy-tailed noise")
  expect_output(print(fit), "Noise tails")
  normal <- replace(fit, "noise_tail", list(NULL))
  expect_gt(mean(predict(fit, new, type = "density") - predict(normal, new, type = "density")), 0.03)
  expect_identical(predict(fit, new, se.fit = TRUE), predict(normal, new, se.fit = TRUE))
  band <- predict(fit, new, interval = "prediction", level = 0.5)
  expect_true(all(band[, "upr"] < predict(normal, new, interval = "prediction", level = 0.5)[, "upr"]))
  far <- predict(fit, new, interval = "prediction", level = 0.999)
  expect_true(all(far[, "upr"] > predict(normal, new, interval = "prediction", level = 0.999)[, "upr"]))
  sure <- predict(fit, new[1:5, ], interval = "prediction", certified = TRUE)
  expect_true(all(sure[, "lwr"] <= predict(fit, new[1:5, ], interval = "prediction")[, "lwr"]))
  same <- gp_exact(y ~ x, d[1:300, ], like = fit)
  expect_equal(predict(same, new, type = "density"), predict(fit, new, type = "density"), tolerance = 1e-6)
  pit <- residuals(fit, type = "pit")
  z <- stats::qnorm(pit)
  kurtosis <- function(v) mean((v - mean(v))^4) / stats::var(v)^2
  expect_lt(kurtosis(z), kurtosis(rstandard(fit)) - 1)
  expect_match(report(fit)$text, sprintf("95 %% intervals contain %.0f %%", 100 * mean(abs(pit - 0.5) <= 0.475)))
  drawn <- draw_nowhere(plot(fit, which = c("qq", "pit")))
  expect_equal(drawn$pit$pit, unname(pit))
  expect_equal(drawn$qq$rstandard, unname(z))
})

test_that("cross-validation by the learned model predicts with its heavy tails and smooth noise", {
  skip_on_cran()
  d <- with_seed(3, data.frame(x = stats::runif(120)))
  d$y <- sin(6 * d$x) + with_seed(4, stats::rt(120, 3) * exp(d$x) / 9)
  fit <- with_seed(1, pfdtc(y ~ x, d, kernel = kernel_se(0.3, 1), noise = ~ smooth(x), center = FALSE, scale = FALSE))
  fit$noise_tail <- 0.7
  cv <- attr(cross_validate(fit, folds = 1:120, hyper = "held"), "overall") # a fold for each row is leave-one-out
  pit <- residuals(fit, type = "pit")
  expect_equal(c(cv$cover50, cv$cover95), c(mean(abs(pit - 0.5) < 0.25), mean(abs(pit - 0.5) < 0.475)))
  expect_gt(trend_spread(fit$noise_trend, noise_basis(fit$noise_trend, as.matrix(d["x"])))[1L], 0)
})

test_that("normal noise has no tails, and repeated rows have no information about them", {
  only_nightly()
  tails <- vapply(1:6, function(seed) {
    d <- with_seed(seed, data.frame(x = stats::runif(120)))
    d$y <- sin(6 * d$x) + with_seed(seed + 10, 0.3 * stats::rnorm(120))
    has_learned_tails(with_seed(1, pfdtc(y ~ x, d, transform = "auto")))
  }, NA)
  expect_lte(sum(tails), 1)
  f <- list(mean = numeric(50), var = rep(0.1, 50), noise = rep(1, 50), spread = rep(0, 50))
  expect_gt(likeliest_tail(with_seed(3, stats::rt(50, 1)), f)[["gain"]], 10)
  expect_lt(likeliest_tail(with_seed(3, stats::rnorm(50)), f)[["gain"]], 1)
})

test_that("heavy tails of small noise are found by leave-one-out with the final kernel", {
  d <- with_seed(2, data.frame(x = stats::runif(650), z = stats::runif(650)))
  d$y <- 3 * d$x + d$z^2 + with_seed(3, 0.003 * stats::rt(650, 2))
  fit <- with_seed(1, pfdtc(y ~ ., d[1:100, ], transform = "auto"))
  expect_identical(fit$response$tail[fit$response$chosen], 0)
  expect_match(fit$because[["tails"]], "leave-one-out log density")
  # Compute the most likely variance of the log noise by a dense inverse and numerical averages over the noise variance.
  p <- posterior_of(fit)
  B <- solve(ref_composite(as_sum(p$model$kernel), p$x) + diag(p$model$noise, 100))
  data <- training_data(fit)
  off <- drop(B %*% data$y) / diag(B)
  var <- 1 / diag(B) - p$model$noise
  log_density <- function(tail) {
    sum(log(vapply(seq_along(off), function(i) {
      over_sizes(function(s2) stats::dnorm(off[i], 0, sqrt(var[i] + s2)), p$model$noise, tail)
    }, 0)))
  }
  best <- fit$noise_tail
  at <- vapply(c(1, 1e-8, 0.8, 1.2), function(share) log_density(share * best), 0)
  expect_gt(at[1L] - at[2L], 5)
  expect_gte(at[1L], max(at[3:4]) - 0.05) # the search ends within .05 of the best variance
  new <- d[-(1:100), ]
  normal <- replace(fit, "noise_tail", list(NULL))
  expect_gt(mean(predict(fit, new, type = "density") - predict(normal, new, type = "density")), 0.1)
  few <- with_seed(1, pfdtc(y ~ ., d[1:40, ], transform = "auto")) # no search: intervals are wide
  expect_identical(has_learned_tails(few), few$response$tail[few$response$chosen] > 0)
})

test_that("the largest noise does not depend on the mean of copies or on large weights", {
  at <- data.frame(x = c(0.1, 1)) # noise of sd 0.23 and 3.2 at weight 1
  d <- with_seed(1, data.frame(x = rep(seq(0, 1, length.out = 30), each = 40), e = stats::rnorm(1200)))
  d$y <- sin(3 * d$x) / 5 + (0.2 + 3 * d$x^2) * d$e
  copies <- with_seed(1, pfdtc(y ~ x, d, noise = ~ smooth(x), kernel = kernel_se(0.5, 1)))
  one <- data.frame(x = seq(0, 1, length.out = 300), e = d$e[1:300])
  one$y <- sin(3 * one$x) / 5 + (0.2 + 3 * one$x^2) * one$e / 10
  weighted <- with_seed(1, pfdtc(y ~ x, one, weights = x^0 * 100, noise = ~ smooth(x), kernel = kernel_se(0.5, 1)))
  linear <- with_seed(1, pfdtc(y ~ x, one, weights = x^0 * 100, noise = ~ x, kernel = kernel_se(0.5, 1)))
  # The limit is in units of y, also if copies of calm rows make the unit of distinct rows another one.
  calm <- with_seed(1, data.frame(x = runif(300), e = rnorm(300)))
  calm$y <- sin(5 * calm$x) / 5 + (0.05 + 3 * calm$x^4) * calm$e
  smooth <- function(rows, unit) {
    kernel <- kernel_se(0.5, unit^2)
    with_seed(1, pfdtc(unit * y ~ x, calm[rows, ], noise = ~ smooth(x), kernel = kernel, transform = "none"))
  }
  for (rows in list(1:300, c(1:300, rep(which(calm$x < 0.5), 99)))) {
    fit <- smooth(rows, 1)
    expect_equal(fit$noise_trend$largest, max((calm$y - mean(calm$y))^2))
    small <- smooth(rows, 1e-3)
    expect_equal(noise_at(small, as.matrix(at)), 1e-6 * noise_at(fit, as.matrix(at)), tolerance = 1e-6)
  }
  for (fit in list(copies, weighted, linear)) {
    expect_gt(sqrt(noise_at(fit, as.matrix(at))[2L]), 2)
  }
})

test_that("with few rows, predictions average over the uncertain noise variance", {
  d <- with_seed(4, data.frame(x = stats::runif(201)))
  d$y <- sin(6 * d$x) + with_seed(5, 0.3 * stats::rnorm(201))
  on <- function(n, ...) with_seed(1, pfdtc(y ~ x, d[seq_len(n), ], transform = "auto", ...))
  fit <- on(30)
  p <- fit$df # a lengthscale, perhaps a linear mean, and variances
  expect_equal(fit$noise_tail, c(few = 4 / (30 - p)))
  expect_output(print(fit), "Noise sd    uncertain; prediction intervals and densities average")
  new <- data.frame(x = c(0.2, 0.9), y = c(3, -3)) # responses far from f
  f <- predict(fit, new, type = "latent", se.fit = TRUE)
  mixed <- vapply(1:2, function(i) {
    over_sizes(function(s2) stats::dnorm(new$y[i], f$fit[i], sqrt(f$se.fit[i]^2 + s2)), fit$noise, 4 / (30 - p))
  }, 0)
  density <- predict(fit, new, type = "density") # an average of 21 steps up to 5 sds
  expect_equal(density, log(mixed), tolerance = 1e-3, ignore_attr = TRUE)
  normal <- replace(fit, "noise_tail", list(NULL))
  expect_identical(predict(fit, new, se.fit = TRUE), predict(normal, new, se.fit = TRUE))
  expect_identical(logLik(fit), logLik(normal))
  expect_true(all(density > predict(normal, new, type = "density")))
  expect_equal(on(30, like = fit)$noise_tail, fit$noise_tail)
  expect_false(is.null(on(200)$noise_tail))
  expect_null(on(201)$noise_tail)
  expect_null(on(30, noise = 0.09)$noise_tail)
  expect_null(with_seed(1, pfdtc(y ~ x, d[1:30, ], plain = TRUE))$noise_tail)
})

test_that("log densities of responses many sds away are those of a dense sum", {
  y <- c(-7, 12, 33, -100)
  for (spread in c(0.2, 1, 3)) {
    f <- list(mean = 0 * y, var = 0.1 + 0 * y, noise = 0.9 + 0 * y, spread = spread + 0 * y)
    u <- seq(-9, 40, by = 0.005)
    sd <- sqrt(0.1 + 0.9 * exp(sqrt(spread) * u - spread / 2))
    dense <- vapply(y, function(y) log(sum(0.005 * stats::dnorm(u) * stats::dnorm(y, 0, sd))), 0)
    expect_equal(noisy_log_density(y, f), dense, tolerance = 1e-4) # far_steps are 0.25 apart
    single <- replace(f, c("var", "spread"), list(0.1, spread)) # numbers for all rows
    expect_equal(noisy_log_density(y, single), dense, tolerance = 1e-4)
  }
})

test_that("log densities far away are right for a small spread too, as that of 100 rows or more", {
  y <- c(25, -100, 1e3, 1e4)
  for (spread in c(0.01, 0.04)) for (var in c(0.05, 0.9)) {
    f <- list(mean = 0 * y, var = var, noise = 1 - var, spread = spread)
    u <- seq(-9, 250, by = 0.005)
    dense <- vapply(y, function(y) {
      part <- stats::dnorm(u, log = TRUE) - log(0.005^-2) / 2 +
        stats::dnorm(y, 0, sqrt(var + (1 - var) * exp(sqrt(spread) * u - spread / 2)), log = TRUE)
      max(part) + log(sum(exp(part - max(part))))
    }, 0)
    expect_equal(noisy_log_density(y, f), dense, tolerance = 1e-5)
  }
  some <- list(mean = 0 * y, var = 0.1, noise = c(1, 0, 1, 1), spread = c(0.01, 0.01, 0, 0.01))
  expect_equal(noisy_log_density(y, some)[2:3], stats::dnorm(y[2:3], 0, sqrt(c(0.1, 1.1)), log = TRUE))
})

test_that("print() says if the noise is at its lower limit, and gives no sd to given coefficients of the noise", {
  d <- data.frame(x = (0:59 / 60)^2)
  d$y <- sin(9 * d$x)
  fit <- function(...) with_seed(1, pfdtc(y ~ x, d, kernel = kernel_se(), plain = TRUE, ...))
  expect_output(print(fit()), "at its lower limit; intervals are too wide", fixed = TRUE)
  expect_output(print(fit(noise = 0.01, control = pfdtc_control(fix = "noise"))), "Noise       sd 0.1\n", fixed = TRUE)
  uneven <- pfdtc(dist ~ speed, cars, kernel = kernel_se(), noise = ~ speed, m = 5)
  expect_output(print(reference(uneven)), "noise.speed +-?[0-9.]+\n")
  expect_output(print(uneven), "noise.speed +-?[0-9.]+ +[0-9.]+\n")
})

test_that("smooth noise of a fit is at most the largest squared deviation of the response", {
  d <- with_seed(3, data.frame(x = stats::runif(60)))
  d$y <- with_seed(4, sin(6 * d$x) + (0.05 + d$x) * stats::rnorm(60))
  fit <- with_seed(1, pfdtc(y ~ x, d, kernel = kernel_se(0.3, 1), noise = ~ smooth(x), transform = "none"))
  expect_null(fit$noise_trend$top)
  # The same trend with a larger noise variance, as if it had been learned again after the trend:
  large <- fit
  large$noise <- 100 * fit$noise
  again <- pfdtc(y ~ x, d, like = large)
  most <- max((d$y - mean(d$y))^2)
  new <- data.frame(x = seq(0, 1, 0.1))
  expect_gt(max(again$noise * noise_factor(again$noise_trend, as.matrix(new))), 2 * most)
  expect_equal(max(noise_at(again, as.matrix(new))), most)
  f <- predict(again, new, se.fit = TRUE)$se.fit
  y <- predict(again, new, type = "response", se.fit = TRUE)$se.fit
  expect_equal(y^2 - f^2, noise_at(again, as.matrix(new)), ignore_attr = TRUE)
  expect_lt(max(y^2 - f^2), 1.0001 * most)
  expect_output(print(again), sprintf("and %s", format(sqrt(most), digits = 4)), fixed = TRUE)
})

test_that("the variance of log noise over levels of factors is that of all columns", {
  n <- 200
  levels <- with_seed(1, cbind(sample(40, n, TRUE), sample(30, n, TRUE)))
  dense <- with_seed(2, matrix(stats::rnorm(5 * n), n))
  B <- cbind(outer(levels[, 1], 1:40, `==`) + 0, outer(levels[, 2], 1:30, `==`) + 0, dense)
  V <- with_seed(3, crossprod(matrix(stats::rnorm(75^2), 75)))
  forms <- function(B, V) native(ffi_row_forms, B, V)
  expect_equal(forms(B, V), rowSums((B %*% V) * B), tolerance = 1e-13)
  few <- 71:75
  expect_equal(forms(B[, few], V[few, few]), rowSums((B[, few] %*% V[few, few]) * B[, few]), tolerance = 1e-13)
  expect_identical(forms(0 * B, V), numeric(n))
})
