# Tests the predictive distribution of a response, its quantiles, and functions that use them.

predictive_cases <- function() {
  list(poisson = as_likelihood("poisson"), nb = as_likelihood(nb(0.7)), logit = as_likelihood("binomial"),
       probit = as_likelihood(stats::binomial("probit")))
}

given_f <- function(likelihood, y, size, f) {
  mean <- as_response(likelihood)$link$inv(f)
  switch(likelihood$name, poisson = stats::ppois(y, mean), nb = stats::pnbinom(y, size = likelihood$theta, mu = mean),
         stats::pbinom(y, size, mean))
}

# Integrates over intervals that are short relative to the widths of both factors.
integrated <- function(f, breaks) {
  breaks <- sort(unique(pmin(pmax(breaks, -38), 38)))
  piece <- function(a, b) stats::integrate(f, a, b, rel.tol = 1e-9, stop.on.error = FALSE)$value
  sum(mapply(piece, breaks[-length(breaks)], breaks[-1L]))
}

test_that("probabilities agree with a numerical integral, whichever factor is narrow", {
  for (likelihood in predictive_cases()) {
    for (y in c(0, 3, 1e6)) {
      size <- round(1.3 * y + 2)
      middle <- limit_of_f(as_response(likelihood), y, size, 0)
      width <- (limit_of_f(as_response(likelihood), y, size, 1) - limit_of_f(as_response(likelihood), y, size, -1)) / 2
      for (s in c(0.001, 0.3, 5)) {
        mu <- middle + 0.43 * max(s, width) # not at a node of the trapezoid rule, where a step would be averaged well
        breaks <- c(-38, (middle + width * seq(-8, 8, by = 0.5) - mu) / s, seq(-8, 8, by = 0.5), 38)
        by_parts <- integrated(function(z) stats::dnorm(z) * given_f(likelihood, y, size, mu + s * z), breaks)
        expect_equal(predictive_cdf(as_response(likelihood), y, size, mu, s), by_parts, tolerance = 1e-6)
      }
    }
  }
})

test_that("probabilities of very dispersed counts are exact to the error that bounds of exceedances allow for", {
  turn <- 0
  for (theta in c(0.01, 0.05, 0.1)) {
    response <- as_response(as_likelihood(nb(theta)))
    z <- seq(-8, 8, by = 1e-3)
    for (y in c(0, 50, 300, 3e6)) {
      for (mu in c(-1.6, 3.5)) {
        turn <- turn + 1
        for (s in in_turn(c(8, 16), turn, 2)) {
          given <- 1 - stats::pnorm((mu - response$limit(z, rep(y, length(z)), 1, theta, response$link)) / s)
          expect_lt(abs(predictive_cdf(response, y, 1, mu, s) - sum(stats::dnorm(z) * given) * 1e-3), 1e-8)
        }
      }
    }
  }
})

test_that("quantiles are the least numbers at which the summed density reaches the probability", {
  mu <- c(-3, 0.2, 2.5)
  s <- c(1.5, 0.4, 0.02)
  for (likelihood in predictive_cases()) {
    size <- c(1, 7, 200)
    for (i in 1:3) {
      y <- if (as_response(likelihood)$reads == "classes") 0:size[i] else 0:1500
      all <- rep(1, length(y))
      sums <- cumsum(exp(log_predictive(likelihood, list(y = y, size = size[i] * all), mu[i] * all, s[i]^2 * all)))
      for (p in c(0.001, 0.05, 0.5, 0.9)) {
        expect_identical(predictive_quantile(as_response(likelihood), p, size[i], mu[i], s[i]),
                         as.double(y[which(sums >= p)[1L]]))
      }
    }
  }
  expect_gt(predictive_quantile(as_response(as_likelihood("poisson")), 0.5, 1, 800, 1), 1e300) # the search ends
})

test_that("log densities of censored responses are right if the noise is far smaller than the sd of f", {
  at <- expand.grid(mu = c(-10, -3, 0, 3), s = c(0.5, 2, 5))
  for (scale in c(0.5, 0.1, 0.02)) {
    for (family in list(lognormal(scale), tobit(right = 0, scale = scale))) {
      y <- rep(if (family$family == "tobit") 0 else 1, nrow(at))
      found <- log_predictive(as_likelihood(family), list(y = y, size = Inf + y), at$mu, at$s^2)
      total <- stats::pnorm(0, at$mu, sqrt(at$s^2 + scale^2), lower.tail = FALSE, log.p = TRUE)
      expect_lt(max(abs(found - total)), 1e-3) # if f is far above the limit, the rule's step causes this error
    }
  }
  f <- seq(-60, 100, by = 1e-3)
  for (mu in c(-20, 0, 12)) { # 20 successes in 20 trials
    total <- log(sum(stats::pnorm(f)^20 * stats::dnorm(f, mu, 10)) * 1e-3)
    found <- log_predictive(as_likelihood(binomial("probit")), list(y = 20, size = 20), mu, 100)
    expect_equal(found, total, tolerance = 1e-6)
  }
})

test_that("log densities are right where p(y | f) of the mean of f overflows or is far from its maximum", {
  cases <- list(list(stats::poisson(), y = 11, mu = 691, v = 271, range = c(-100, 200)),
                list(weibull(0.05), y = 15, mu = -23, v = 0.015, range = c(-30, 10)),
                list(truncated_poisson(), y = 3, mu = 543, v = 3.5, range = c(-50, 100)),
                list(stats::binomial(), y = 0, mu = 2498, v = 9109, range = c(-300, 600)))
  for (case in cases) {
    likelihood <- as_likelihood(case[[1L]])
    sites <- list(y = case$y, size = if (likelihood$name == "weibull") case$y, offset = 0)
    f <- seq(case$range[1L], case$range[2L], length.out = 1e5)
    each <- lapply(sites, function(v) if (!is.null(v)) rep(v, length(f)))
    at <- engine_sites(likelihood, each, 0)
    logs <- native_likelihood(at, f)[1L, ] + at$constant + stats::dnorm(f, case$mu, sqrt(case$v), log = TRUE)
    truth <- max(logs) + log(sum(exp(logs - max(logs))) * (f[2L] - f[1L]))
    # The trapezoid rule errs by 1e-13, and logs of 1e5 are rounded to 1e-11.
    expect_equal(log_predictive(likelihood, sites, case$mu, case$v), truth, tolerance = 1e-9, label = likelihood$name)
  }
})

test_that("the search for a quantile of a positive response ends if f is so wide that quantiles are 0 or infinite", {
  response <- as_response(as_likelihood(weibull(0.6)))
  expect_identical(predictive_quantile(response, 0.025, 1, 0, 2000), 0)
  expect_identical(predictive_quantile(response, 0.975, 1, 0, 2000), .Machine$double.xmax)
  tiny <- as_response(as_likelihood(structure(c(stats::Gamma("log"), theta = 0.001), class = "family")))
  p <- c(0.49, 0.491, 0.492, 0.4935, 0.6) # quantiles from 8.8e-308 to 8e-220
  found <- predictive_quantile(tiny, p, 1, 0 * p, 0 * p)
  expect_equal(log(found), log(stats::qgamma(p, 0.001, 0.001)), tolerance = 1e-12)
  expect_false(is.unsorted(predictive_quantile(tiny, seq(0.4, 0.6, by = 0.01), 1, numeric(21), rep(0.5, 21))))
  at <- data.frame(mean = c(1, 1e4), sd = 1, mean_lower = c(0.9, 9999), mean_upper = c(1.1, 10001), sd_lower = 0.9,
                   sd_upper = 1.1)
  bounds <- with_response(at, as_likelihood("poisson"))
  expect_true(all(bounds$response_lower <= bounds$response & bounds$response <= bounds$response_upper))
})

test_that("quantiles of counts with rates beyond large_count grow with the rate, and are quick", {
  for (likelihood in list(as_likelihood("poisson"), as_likelihood(nb(1.7)))) {
    for (p in c(0.025, 0.5, 0.975)) for (s in c(0, 0.3, 3)) {
      mu <- c(21, 24, 100, 340) # all log rates are beyond log(large_count), the last beyond R's quantiles
      q <- predictive_quantile(as_response(likelihood), p, rep(1, 4), mu, rep(s, 4))
      expect_lt(max(abs(diff(log(q) - mu))), 1e-4) # at 21 the sd of a Poisson count is 3e-5 of its mean
    }
  }
})

test_that("quantiles with Student-t noise are those of the convolution", {
  for (df in c(1, 4, 50)) {
    likelihood <- as_likelihood(student(df, 0.5))
    for (s in c(0.01, 0.5, 3)) {
      q <- predictive_quantile(as_response(likelihood), c(0.975), 1, 2, s)
      breaks <- c(-38, (q - 2 + 0.5 * seq(-20, 20)) / s, seq(-8, 8), 38)
      below <- integrated(function(z) stats::dnorm(z) * stats::pt((q - 2 - s * z) / 0.5, df), breaks)
      expect_equal(below, 0.975, tolerance = 1e-7)
      expect_equal(predictive_quantile(as_response(likelihood), 0.025, 1, 2, s), 4 - q)
    }
  }
})

test_that("prediction intervals hold new responses as often as their level says", {
  only_nightly()
  k <- kernel_se(0.7, 1)
  x <- seq(-2, 2, length.out = 25)
  root <- chol(ref_k(k, cbind(x), cbind(x)) + diag(1e-8, 25))
  new <- c(3, 10, 17, 24)
  counted <- with_seed(3, lapply(list(poisson(), nb(3), student(4, 0.5), binomial()), function(family) {
    likelihood <- as_likelihood(family)
    found <- replicate(20, {
      f <- 1 + drop(crossprod(root, stats::rnorm(25)))
      y <- switch(family$family, poisson = stats::rpois(25, exp(f)), nb = stats::rnbinom(25, 3, mu = exp(f)),
                  student = f + 0.5 * stats::rt(25, 4), stats::rbinom(25, 8, stats::plogis(f)))
      d <- data.frame(x = x, y = y, left = 8 - y)
      formula <- if (as_response(likelihood)$reads == "classes") cbind(y, left) ~ x else y ~ x
      fit <- pfdtc(formula, d[-new, ], family = family, kernel = k, center = 1, hyper = "fixed")
      band <- predict(fit, d[new, ], interval = "prediction", level = 0.8)
      p <- predict(fit, d[new, ], se.fit = TRUE)
      size <- if (as_response(likelihood)$reads == "classes") rep(8, 4) else rep(1, 4)
      y <- if (!as_response(likelihood)$discrete) y[new] else y[new] / size
      upto <- function(y) predictive_cdf(response_of(fit), y * size, size, p$fit, p$se.fit)
      step <- if (!as_response(likelihood)$discrete) 0 else 1 / size
      c(sum(y >= band[, "lwr"] & y <= band[, "upr"]), sum(upto(band[, "upr"]) - upto(band[, "lwr"] - step)))
    })
    rowSums(found) / 80
  }))
  for (share in counted) {
    expect_gte(share[2], 0.8 - 1e-6)
    expect_lt(abs(share[1] - share[2]), 4 * sqrt(share[2] * (1 - share[2]) / 80) * 1.5) # responses are correlated
  }
})

test_that("intervals of a fit's rows use each row's number of trials", {
  d <- with_seed(1, data.frame(x = seq(0, 3, length.out = 30), n = rep(c(4, 25), 15)))
  d$s <- with_seed(2, stats::rbinom(30, d$n, stats::plogis(d$x - 1)))
  k <- kernel_se(1, 1)
  pairs <- pfdtc(cbind(s, n - s) ~ x, d, family = binomial(), kernel = k, hyper = "fixed")
  shares <- pfdtc(s / n ~ x, d, weights = n, family = binomial(), kernel = k, hyper = "fixed")
  band <- predict(pairs, interval = "prediction")
  expect_equal(band[, "fit"], fitted(pairs))
  expect_equal(band[, -1] * d$n, round(band[, -1] * d$n))
  p <- predict(pairs, type = "link", se.fit = TRUE)
  expect_equal(unname(band[, "upr"] * d$n),
               predictive_quantile(response_of(pairs), 0.975, d$n, unname(p$fit), unname(p$se.fit)))
  expect_gt(mean((band[, "upr"] - band[, "lwr"])[d$n == 4]), mean((band[, "upr"] - band[, "lwr"])[d$n == 25]))
  expect_equal(predict(shares, d, interval = "prediction"), band)
  expect_equal(predict(shares, d[3:4, c("x", "n")], interval = "prediction"), band[3:4, ])
  expect_equal(predict(pairs, transform(d, s = 0), interval = "prediction"), band)
  expect_equal(predict(shares, d[2, ], type = "density"), predict(pairs, d[2, ], type = "density"))
  for (fit in list(pairs, shares)) {
    expect_error(predict(fit, data.frame(x = 1), interval = "prediction"), class = "pfdtc_error_input")
    expect_error(predict(fit, d, interval = "prediction", certified = TRUE), class = "pfdtc_error_input")
  }
  classes <- pfdtc(s > 2 ~ x, d, family = binomial(), kernel = k, hyper = "fixed")
  expect_error(predict(classes, d, interval = "prediction"), class = "pfdtc_error_input")
})

test_that("missing values, offsets and leave-one-out are as in other intervals", {
  d <- with_seed(3, data.frame(x = seq(0, 3, length.out = 20), e = stats::runif(20, 1, 9)))
  d$y <- with_seed(4, stats::rpois(20, d$e))
  d$x[4] <- NA
  fit <- pfdtc(y ~ x + offset(log(e)), d, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed",
               na.action = stats::na.exclude)
  band <- predict(fit, d, interval = "prediction")
  expect_identical(which(is.na(band[, "lwr"])), c("4" = 4L))
  expect_equal(predict(fit, interval = "prediction"), band)
  expect_equal(predict(fit, d, interval = "prediction", na.action = stats::na.omit), band[-4, ])
  loo <- predict(fit, type = "loo_latent", se.fit = TRUE)
  held <- predict(fit, type = "loo", interval = "prediction")
  expect_equal(unname(held[-4, "lwr"]), predictive_quantile(response_of(fit), 0.025, rep(1, 19), unname(loo$fit[-4]),
                                                            unname(loo$se.fit[-4])))
  expect_true(is.na(held[4, "upr"]))
})

test_that("scores of counts report the share of responses inside their intervals", {
  d <- with_seed(5, data.frame(x = seq(0, 3, length.out = 40)))
  d$y <- with_seed(6, stats::rnbinom(40, size = 1, mu = 5))
  fits <- lapply(list(poisson(), nb(1)), function(family) {
    pfdtc(y ~ x, d, family = family, kernel = kernel_se(1, 0.1), hyper = "fixed")
  })
  new <- with_seed(7, data.frame(x = stats::runif(60, 0, 3), y = stats::rnbinom(60, size = 1, mu = 5)))
  new$x[3] <- NA
  inside <- vapply(fits, function(fit) {
    band <- predict(fit, new, interval = "prediction")
    mean(new$y >= band[, "lwr"] & new$y <= band[, "upr"], na.rm = TRUE)
  }, 0)
  expect_equal(compare_fits(fits, newdata = new)$coverage, inside)
  expect_lt(inside[1], inside[2])
  cv <- with_seed(8, cross_validate(fits[[2]], folds = 4, hyper = "held"))
  p <- attr(cv, "predictions")
  expect_equal(attr(cv, "overall")$cover50, mean(p$upto >= 0.25 & p$below < 0.75))
  expect_equal(p$upto - p$below, exp(p$density), tolerance = 1e-6)
  expect_true(is.na(compare_fits(pfdtc(y > 3 ~ x, d, family = binomial(), kernel = kernel_se(1, 1), hyper = "fixed"),
                                 newdata = new)$coverage))
})

test_that("PIT is uniform for counts of many digits", {
  d <- with_seed(9, data.frame(x = seq(0, 9, length.out = 60)))
  d$y <- with_seed(10, stats::rpois(60, exp(13 + 0.2 * stats::rnorm(60))))
  fit <- pfdtc(y ~ x, d, family = poisson(), kernel = kernel_se(0.01, 0.04), center = 13, hyper = "fixed")
  pit <- with_seed(11, residuals(fit, type = "pit"))
  expect_equal(unname(pit), stats::pnorm(log(d$y), 13, 0.2), tolerance = 0.005) # the counts' noise is 2e-3
})

test_that("log densities of training rows have NA where na.exclude omitted a row", {
  d <- data.frame(x = replace(1:20 / 10, c(3, 9), NA), n = rep(0:4, 4))
  for (na in list(stats::na.omit, stats::na.exclude)) {
    fit <- pfdtc(n ~ x, d, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed", na.action = na)
    density <- predict(fit, type = "density")
    if (identical(na, stats::na.omit)) omitted <- density
  }
  expect_identical(which(is.na(density)), c(`3` = 3L, `9` = 9L))
  expect_identical(density[-c(3, 9)], omitted)
})

test_that("simulate() draws with the rows' own trials, and nothing at weight 0", {
  d <- data.frame(x = c(seq(0, 3, length.out = 19), NA), n = rep(c(4, 2500), 10))
  d$s <- round(d$n / 3)
  fit <- pfdtc(cbind(s, n - s) ~ x, d, family = binomial(), weights = rep(c(0, 1, 1, 1), 5), kernel = kernel_se(1, 1),
               hyper = "fixed", na.action = stats::na.exclude)
  draws <- vapply(simulate(fit, 3, seed = 1), function(v) v[, "s"], numeric(20))
  expect_identical(which(is.na(unname(draws[, 1]))), c(1L, 5L, 9L, 13L, 17L, 20L))
  expect_lt(max(draws[seq(3, 19, by = 4), ]), 5)
  expect_gt(min(draws[seq(2, 18, by = 4), ]), 100)
  counts <- pfdtc(s ~ x, d[-20, ], family = poisson(), weights = rep(1:0, c(18, 1)), kernel = kernel_se(1, 1),
                  hyper = "fixed")
  expect_identical(is.na(simulate(counts, 1, seed = 1)$sim_1), rep(c(FALSE, TRUE), c(18, 1)))
})
