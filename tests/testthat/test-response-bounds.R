# Tests point predictions and their bounds on the response's own scale, for fits with a transformed response.
power <- function(lambda, ends = NULL, centre = 2, unit = 3) {
  structure(list(kind = "yeojohnson", lambda = lambda, centre = centre, unit = unit, ends = ends, found = TRUE),
            class = "pfdtc_transform")
}
logged <- function(ends = NULL) {
  structure(list(kind = "log", lambda = 0, ends = ends, found = TRUE), class = "pfdtc_transform")
}

# Returns E g(y), where y = T^-1(mean + sd t) is truncated as described in ?predict.gp_fit.
mean_of_cut <- function(t, mean, sd, g = identity, sure = 1) {
  up <- t$kind == "log" || t$lambda <= 1
  end <- if (is.null(t$ends)) Inf else if (up) (t$ends[2L] - mean) / sd else (mean - t$ends[1L]) / sd
  if (!is.null(t$ends)) sure <- sure * max(sd / diff(t$ends), 1)^2
  cut <- max(end, -sure) * if (up) 1 else -1
  at <- function(z) g(untransformed(t, mean + sd * if (up) pmin(z, cut) else pmax(z, cut)))
  breaks <- sort(unique(pmin(pmax(c(-10, -mean / sd, cut, 0, 10), -10), 10)))
  sum(vapply(seq_along(breaks)[-1L], function(i) {
    stats::integrate(function(z) at(z) * stats::dnorm(z), breaks[i - 1L], breaks[i], rel.tol = 1e-11,
                     subdivisions = 2000L)$value
  }, 0))
}

some_transforms <- list(power(0), power(0.3, c(-2, 1)), power(0.3), power(1, c(-1, 2)), power(1.7, c(-0.5, 1)),
                        power(2, c(-3, 0.1)), logged(), logged(c(-1, 1)), power(0.3, c(-0.3, 0.5)),
                        logged(c(-0.4, 0.4)))

test_that("mean and sd of a truncated response are those by quadrature", {
  turn <- 0
  for (t in some_transforms) {
    for (mean in c(-2, 0.7, 2.5)) { # the last mean is above every upper end
      turn <- turn + 1
      for (sd in in_turn(c(0.05, 0.4, 1.5), turn, 2)) { # the last sd is wider than the last two ranges
        got <- moments_back(t, mean, sd^2)
        expect_equal(got$mean, mean_of_cut(t, mean, sd), tolerance = 1e-9) # Gauss-Legendre has 24 nodes a piece
        square <- mean_of_cut(t, mean, sd, function(y) (y - got$mean)^2, sure = 0)
        expect_equal(got$sd, sqrt(square), tolerance = 1e-7)
      }
    }
    several <- c(-2, 0.7, 9) # with one variance for all, as plot() passes for residuals
    expect_identical(moments_back(t, several, 0.1), moments_back(t, several, rep(0.1, 3)))
  }
})

test_that("sd and covariance of E(y | f) are those of a dense grid", {
  u <- seq(-8, 8, length.out = 321)
  w <- stats::dnorm(u) * (u[2L] - u[1L])
  for (t in some_transforms) {
    mean <- c(-0.4, 0.8)
    cov <- matrix(c(0.5, 0.3, 0.3, 0.4), 2)
    noise <- c(0.2, 0.1)
    sd <- sqrt(diag(cov) + noise)
    cut <- cut_at(t, mean, sd, 0)
    given <- function(i, f) { # E(y | f), truncated where the row's prediction is
      e <- (mean[i] + outer(f, sqrt(noise[i]) * u, `+`) - mean[i]) / sd[i]
      e[] <- if (curves_up(t)) pmin(e, cut[i]) else pmax(e, cut[i])
      drop(matrix(untransformed(t, mean[i] + sd[i] * e), length(f)) %*% w)
    }
    f1 <- sqrt(cov[1, 1]) * u
    g1 <- given(1, f1)
    got <- moments_back(t, mean, diag(cov), noise)
    about <- sum(w * g1)
    between <- (about - got$mean[1L])^2 * cov[1, 1] / sd[1L]^2
    expect_equal(got$sd[1L], sqrt(sum(w * (g1 - about)^2) + between), tolerance = 2e-4) # the error of 20 terms
    # For E(g2 | f1): f2 given f1 is normal, and noise adds to its variance.
    b <- cov[1, 2] / cov[1, 1]
    rest <- sqrt(sd[2L]^2 - b * cov[1, 2])
    g2 <- vapply(b * f1, function(m) {
      z <- (m + rest * u) / sd[2L]
      sum(w * untransformed(t, mean[2L] + sd[2L] * if (curves_up(t)) pmin(z, cut[2L]) else pmax(z, cut[2L])))
    }, 0)
    expect_equal(covariance_back(t, mean, cov, noise)[1, 2], sum(w * g1 * g2) - sum(w * g1) * sum(w * g2),
                 tolerance = 2e-4)
  }
})

test_that("the sd of a new response averages over the size of its noise, about the mean that is reported", {
  u <- seq(-6, 6, by = 0.1)
  w <- stats::dnorm(u) * 0.1
  turn <- 0
  for (t in list(power(0.3, c(-2, 1)), power(1.7, c(-0.5, 1)), logged(c(-1, 1)))) {
    turn <- turn + 1
    for (mean in c(-0.3, 1.5)) { # the second mean is above an upper end
      turn <- turn + 1
      for (spread in in_turn(c(0.5, 3), turn, 2)) {
        got <- moments_of_response(t, mean, 0.04, 0.09, spread)
        expect_identical(got$mean, moments_back(t, mean, 0.13)$mean)
        square <- vapply(sqrt(0.04 + 0.09 * exp(sqrt(spread) * u - spread / 2)), function(sd) {
          mean_of_cut(t, mean, sd, function(y) (y - got$mean)^2, sure = 0)
        }, 0)
        expect_equal(got$sd, sqrt(sum(w * square)), tolerance = 5e-3) # a rule of seven nodes, for a kink
        t$wider <- 4
        expect_equal(moments_of_response(t, mean, 0.04, 0.09, spread)$sd, 2 * got$sd)
        expect_equal(moments_of_response(t, mean, 0.04, 0.09, 0), moments_back(t, mean, 0.13))
        t$wider <- NULL
      }
    }
  }
})

test_that("normal scores of a transformed response with outliers have squares of about their variances", {
  d <- with_seed(4, {
    x <- stats::runif(1200, 0, 3)
    data.frame(y = exp(sin(2 * x) + 0.3 * stats::rt(1200, 3)), x)
  })
  row <- response_rows$gaussian
  row$rival$beyond <- Inf # no outlier asks for another family
  fit <- with_replaced(list(response_rows = replace(response_rows, "gaussian", list(row))),
                       with_seed(1, pfdtc(y ~ x, d[1:300, ], transform = "auto")))
  expect_gte(fit$transform$wider, 1)
  p <- predict(fit, d[-(1:300), ], se.fit = TRUE, type = "response")
  f <- predict(fit, d[-(1:300), ], se.fit = TRUE, type = "latent")
  y <- d$y[-(1:300)]
  normal <- function(sd) mean(stats::dnorm(y, p$fit, sd, log = TRUE))
  before <- moments_back(fit$transform, f$fit, f$se.fit^2 + fit$noise)
  expect_equal(p$fit, before$mean)
  expect_gt(normal(p$se.fit), normal(before$sd))
})

test_that("bounds of the response's mean contain it wherever latent mean and sd are within their bounds", {
  cases <- with_seed(3, lapply(1:150, function(i) {
    ends <- if (i %% 2) c(-1, 1) * stats::rexp(1)
    t <- if (i %% 5 == 0) logged(ends) else power(stats::runif(1, 0, 2), ends, stats::rnorm(1), stats::rexp(1))
    if (i %% 7 == 0) t$lambda <- if (i %% 2) 2 else 0
    mean <- stats::rnorm(1, 0, 2) + c(0, 10^stats::runif(1, -9, -0.5))
    sd <- exp(stats::runif(1, -3, 0.7)) * c(1, 1 + 10^stats::runif(1, -9, -0.5))
    share <- sample(list(c(0, 0), c(1, 1), c(0, 1), c(1, 0), stats::runif(2)), 1L)[[1L]]
    list(t = t, mean = mean, sd = sd, at = c(mean[1L] + share[1L] * diff(mean), sd[1L] + share[2L] * diff(sd)))
  }))
  for (case in cases) {
    inside <- mean_bounds(case$t, list(lower = case$mean[1L], upper = case$mean[2L]),
                          list(lower = case$sd[1L], upper = case$sd[2L]))
    value <- mean_of_cut(case$t, case$at[1L], case$at[2L])
    rounding <- 1e-9 * (1 + abs(value)) # the error of integrate()
    expect_gt(value, inside$lower - rounding)
    expect_lt(value, inside$upper + rounding)
    same <- mean_bounds(case$t, list(lower = case$at[1L], upper = case$at[1L]),
                        list(lower = case$at[2L], upper = case$at[2L]))
    whole <- replace(case$t, "ends", list(NULL)) # the bounds subtract the truncated part from the whole mean
    expect_lt(same$upper - same$lower, 1e-3 * (1e-6 + moments_back(whole, case$at[1L], case$at[2L]^2)$sd))
  }
  sd <- list(lower = c(1, 1), upper = c(1, 1))
  for (lambda in c(0.3, 1.7)) { # no row is known
    open <- mean_bounds(power(lambda), list(lower = c(-Inf, NA), upper = c(0, NA)), sd)
    expect_identical(open, list(lower = c(-Inf, NA), upper = c(Inf, NA)))
  }
})

test_that("medians that underflow to 0 are below their upper bound", {
  bounds <- back_bounds(logged(), c(-900, -800), c(-880, -799))
  expect_identical(bounds$lower, c(0, 0))
  expect_true(all(bounds$upper > 0))
  expect_gt(log(exp(-744.6)), -744.5) # exp() gives the least double, which is no lower bound
  expect_identical(back_bounds(logged(), c(-744.6, NA, -700), c(-744, NA, -699))$lower[1:2], c(0, NA))
})

test_that("bounds of the mean are infinite where they overflow", {
  # Latent sds of 40 and more, as of exp(40 sin(x)), once gave NaN bounds.
  for (t in list(logged(c(-10, 41)), power(0, c(-10, 41)))) {
    mu <- c(0, 16, 16)
    tau <- c(1, 47, 600)
    b <- mean_bounds(t, list(lower = mu, upper = mu), list(lower = tau, upper = tau))
    expect_false(anyNA(unlist(b)))
    expect_true(all(b$lower <= b$upper))
  }
})

test_that("a certificate of few inducing points contains median and mean of the exact fit, and so do intervals", {
  d <- with_seed(8, data.frame(a = stats::runif(60, 0, 6)))
  z <- with_seed(9, sin(d$a) + 0.3 * stats::rnorm(60))
  new <- data.frame(a = seq(-0.5, 7, length.out = 25))
  for (t in list(power(0.2), power(1.8), logged())) {
    d$y <- untransformed(t, z)
    args <- list(y ~ a, d, transform = t, kernel = kernel_se(0.8, 1), noise = 0.09, hyper = "fixed")
    fit <- do.call(pfdtc, c(args, m = 7))
    fit$reference <- reference(fit)
    exact <- do.call(pfdtc, args)
    expect_identical(exact$posterior, "exact")
    for (effort in c("fast", "reference")) {
      inside <- certify(fit, new, effort = effort)
      mean <- predict(exact, new)
      median <- predict(exact, new, type = "median")
      expect_true(all(inside$fit_lower <= mean & mean <= inside$fit_upper))
      expect_true(all(inside$median_lower <= median & median <= inside$median_upper))
      expect_equal(inside$fit, unname(predict(fit, new)))
    }
    for (interval in c("credible", "prediction")) {
      for (type in c("mean", "median")) {
        truth <- predict(exact, new, interval = interval, type = type)
        wide <- predict(fit, new, interval = interval, type = type, certified = TRUE)
        expect_true(all(wide[, "lwr"] <= truth[, "lwr"] & wide[, "upr"] >= truth[, "upr"]))
        expect_equal(wide[, "fit"], predict(fit, new, type = type))
      }
    }
  }
})

test_that("a mean whose response is beyond all doubles has infinite moments and bounds, never NaN", {
  for (t in list(power(0.002, c(-3, 2)), power(1.998, c(-2, 3)), logged(c(-1, 1)), power(0.002), logged())) {
    side <- if (curves_up(t)) 1 else -1
    mean <- side * c(1e7, 1e7, 0.5)
    var <- c(1e4, 1e14, 0.1)
    for (noise in c(0, 0.3)) {
      got <- moments_back(t, mean, var, noise)
      expect_false(anyNA(unlist(got)))
      expect_true(is.finite(got$mean[3L]) && is.finite(got$sd[3L]))
      expect_identical(got$mean[1L], side * Inf)
      expect_identical(got$sd[1:2], c(Inf, Inf))
      expect_false(anyNA(unlist(moments_of_response(t, mean, var, noise, 0.5))))
    }
    bounds <- back_bounds(t, mean - 0.1, mean + 0.1)
    expect_true(all(bounds$lower <= untransformed(t, mean) & untransformed(t, mean) <= bounds$upper))
    expect_identical(bounds[[if (side > 0) "upper" else "lower"]][1L], side * Inf)
  }
})
