# Tests how classes and counts are read and refused, and data that break careless code.

small_data <- function(n = 40) {
  with_seed(2, {
    x <- stats::runif(n, -2, 2)
    data.frame(x = x, z = stats::rnorm(n), y = stats::rbinom(n, 1, stats::plogis(2 * x)), n = stats::rpois(n, exp(x)))
  })
}

quietly <- function(formula, data, ...) {
  suppressMessages(do.call(pfdtc, list(formula, data, ..., kernel = kernel_se(c(1, 1), 1), hyper = "fixed")))
}

test_that("classes are read as glm() reads them, as numbers, factors, logical values, text or counts", {
  d <- small_data()
  fit <- quietly(y ~ x + z, d, family = binomial())
  d$f <- factor(d$y, labels = c("no", "yes"))
  d$l <- d$y == 1
  d$c <- ifelse(d$y == 1, "yes", "no")
  d$size <- 1
  for (formula in list(f ~ x + z, l ~ x + z, c ~ x + z, cbind(y, 1 - y) ~ x + z)) {
    other <- quietly(formula, d, family = binomial())
    expect_equal(predict(other), predict(fit), tolerance = 1e-12)
  }
  other <- quietly(f ~ x + z, d, family = "binomial")
  expect_identical(levels(predict(other, type = "class")), c("no", "yes"))
  expect_equal(unname(predict(other, type = "class") == "yes"), unname(predict(fit, type = "response") > 0.5))
  expect_type(predict(quietly(l ~ x + z, d, family = binomial), type = "class"), "logical")
  expect_output(print(other), "\"yes\"")
})

test_that("a response that does not fit the family is refused by name", {
  d <- small_data()
  d$three <- factor(rep(c("a", "b", "c"), length.out = 40))
  refused <- function(expr, what) expect_error(expr, what, class = "pfdtc_error_input")
  refused(quietly(three ~ x + z, d, family = binomial()), "3 levels")
  refused(quietly(x ~ z + y, d, family = binomial()), "`x`|binomial")
  refused(quietly(x ~ z + y, d, family = poisson()), "counts")
  refused(quietly(-n ~ x + z, d, family = poisson()), "counts")
  refused(quietly(three ~ x + z, d, family = poisson()), "counts")
  refused(quietly((y + 1) / 4 ~ x + z, d, family = binomial()), "weights")
  refused(quietly(y ~ x + z, d, family = binomial("cauchit")), "cauchit.*Use binomial.*or binomial")
  refused(quietly(y ~ x + z, d, family = Gamma()), "Use Gamma\\(\"log\"\\)")
  refused(quietly(y ~ x + z, d, family = quasipoisson()), "quasi.*nb\\(\\)")
  refused(quietly(y ~ x + z, d, family = 3), "family")
  refused(quietly(y ~ x + z, d, family = binomial(), noise = 1), "noise")
  refused(nb(-1), "theta")
  refused(gp_exact(y ~ x + z, d, family = binomial()), "pfdtc\\(\\)")
})

test_that("a survival response is refused by families of other responses", {
  skip_if_not_installed("survival")
  d <- data.frame(x = 1:5, t = c(2, 1, 4, 3, 6))
  for (family in list(poisson(), Gamma("log"), student(), tweedie(), gaussian())) {
    expect_error(pfdtc(survival::Surv(t) ~ x, d, family = family), "Surv", class = "pfdtc_error_input")
  }
})

test_that("functions for Gaussian noise alone refuse a fit of classes", {
  d <- small_data()
  fit <- quietly(y ~ x + z, d, family = binomial())
  for (f in list(refine, error_bounds, pf_divergence)) {
    expect_error(f(fit), class = "pfdtc_error_input")
  }
  expect_error(predict(fit, type = "derivative", wrt = "x", interval = "credible", certified = TRUE),
               class = "pfdtc_error_input")
  expect_error(certify(fit, hyper_uncertainty = TRUE), class = "pfdtc_error_input")
  expect_error(predict(fit, interval = "prediction"), "credible", class = "pfdtc_error_input")
})

test_that("family = gaussian() gives the fit without a family", {
  fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  same <- pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed", family = gaussian())
  expect_identical(predict(fit), predict(same))
  expect_identical(predict(fit, type = "link"), predict(fit))
  expect_error(predict(fit, type = "class"), class = "pfdtc_error_input")
})

test_that("linearly separated classes, a single class and counts that are all zero have a fit", {
  d <- small_data()
  d$parted <- as.numeric(d$x > 0)
  d$one <- 1
  d$none <- 0
  fit <- pfdtc(parted ~ x + z, d, family = binomial(), kernel = kernel_se())
  p <- predict(fit, type = "response")
  expect_true(all(is.finite(p)) && mean((p > 0.5) == d$parted) == 1)
  expect_lt(max(abs(log(coef(fit)[c("lengthscale.x", "variance")]))), 6)
  expect_message(fit <- pfdtc(one ~ x + z, d, family = binomial(), kernel = kernel_se()),
                 class = "pfdtc_message_one_value")
  expect_true(all(predict(fit, type = "response") > 0.9))
  expect_message(fit <- pfdtc(none ~ x + z, d, family = poisson(), kernel = kernel_se()),
                 class = "pfdtc_message_one_value")
  expect_true(all(predict(fit, type = "response") < 0.2))
  expect_true(all(is.finite(unlist(certify(fit)))))
})

test_that("counts of a million, and exposures and weights of very different sizes, have a fit", {
  d <- small_data()
  d$big <- round(1e6 * exp(d$x / 5))
  fit <- pfdtc(big ~ x + z, d, family = poisson(), kernel = kernel_se(c(2, 2), 1), hyper = "fixed")
  expect_equal(unname(fitted(fit)), d$big, tolerance = 1e-2)
  expect_lt(max(abs(certify(fit)$mean_error)), 1e-5)
  d$e <- exp(5 * stats::plogis(d$z))
  fit <- pfdtc(n ~ x + offset(log(e)), d, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed")
  new <- data.frame(x = 0.3, e = c(1, 10))
  expect_equal(diff(log(predict(fit, new, type = "response"))), log(10), tolerance = 1e-9, ignore_attr = TRUE)
  expect_error(predict(fit, new["x"]), class = "pfdtc_error_input")
  w <- 10^seq(-4, 2, length.out = 40)
  fit <- pfdtc(y ~ x, d, family = binomial(), weights = w, kernel = kernel_se(1, 1), hyper = "fixed")
  expect_true(all(is.finite(predict(fit))))
})

test_that("rows of weight 0 do not change the fit", {
  d <- small_data()
  w <- rep(c(1, 0), c(30, 10))
  for (formula in list(y ~ x + z, n ~ x + z, cbind(y, 1 - y) ~ x + z)) {
    family <- if (identical(formula, n ~ x + z)) poisson() else binomial()
    fit <- quietly(formula, d, weights = w, family = family)
    less <- quietly(formula, d[1:30, ], family = family)
    expect_equal(predict(fit, d), predict(less, d), tolerance = 1e-9)
    expect_identical(nobs(fit), 30L)
  }
})

test_that("saturated rows, with W of almost 0, do no harm", {
  d <- small_data()
  fit <- pfdtc(y ~ x + z, d, family = binomial(), offset = 500 * (2 * y - 1), kernel = kernel_se(c(1, 1), 1),
               hyper = "fixed", center = FALSE)
  at <- predict(fit, se.fit = TRUE)
  expect_equal(unname(at$se.fit), rep(1, 40), tolerance = 1e-9)
  expect_equal(unname(at$fit), 500 * (2 * d$y - 1), tolerance = 1e-9)
  expect_lt(max(certify(fit)$mean_error), 1e-6)
})

test_that("missing values and new levels are treated as in a Gaussian fit", {
  d <- small_data()
  d$g <- factor(rep(c("a", "b"), 20))
  d$y[3] <- NA
  fit <- pfdtc(y ~ x + g, d, family = binomial(), kernel = kernel_se(c(1, 1, 1), 1), hyper = "fixed")
  expect_identical(nobs(fit), 39L)
  new <- d[1:4, ]
  new$x[2] <- NA
  p <- predict(fit, new, type = "response", interval = "credible")
  expect_identical(is.na(p[, "fit"]), c(`1` = FALSE, `2` = TRUE, `3` = FALSE, `4` = FALSE))
  expect_true(is.na(predict(fit, new, type = "class")[2]))
  new$g <- "c"
  expect_error(predict(fit, new), "level", class = "pfdtc_error_input")
  expect_identical(sum(is.na(predict(fit, d, type = "density"))), 1L)
})

test_that("moments averaged over f are those of numerical integrals", {
  cases <- expand.grid(mu = c(-6, -0.3, 2), v = c(0, 1e-4, 1, 14, 20, 900))
  for (family in list(binomial(), binomial("probit"), poisson())) {
    likelihood <- as_likelihood(family)
    h <- as_response(likelihood)$link$inv
    use <- if (family$family == "poisson") cases$v <= 1 else TRUE
    at <- cases[use, ]
    found <- response_moments(as_response(likelihood), at$mu, at$v)
    # Split the integral where the integrand bends.
    moment <- function(power, mu, v) {
      if (v == 0) return(h(mu)^power)
      g <- function(z) h(mu + sqrt(v) * z)^power * stats::dnorm(z)
      ends <- sort(c(-12, 12, pmin(pmax(c(-6, -2, 0, 2, 6, 30) - mu, -12 * sqrt(v)), 12 * sqrt(v)) / sqrt(v)))
      sum(mapply(function(a, b) stats::integrate(g, a, b, rel.tol = 1e-10)$value, ends[-8L], ends[-1L]))
    }
    mean <- mapply(moment, 1, at$mu, at$v)
    square <- mapply(moment, 2, at$mu, at$v)
    expect_equal(found$mean, mean, tolerance = 1e-8)
    expect_equal(found$sd, sqrt(pmax(square - mean^2, 0)), tolerance = 1e-4) # the difference loses digits
  }
})

test_that("a probability or rate is the average over f, and its interval is that of f through the inverse link", {
  d <- small_data()
  for (case in list(list(y ~ x, binomial()), list(y ~ x, binomial("probit")), list(n ~ x, poisson()),
                    list(n ~ x, nb(2)))) {
    fit <- pfdtc(case[[1L]], d, family = case[[2L]], kernel = kernel_se(0.5, 4), hyper = "fixed")
    new <- data.frame(x = c(-1.5, 0, 5))
    h <- response_of(fit)$link$inv
    f <- predict(fit, new, type = "link", se.fit = TRUE)
    p <- predict(fit, new, type = "response", interval = "credible", level = 0.9)
    over_f <- mapply(function(mean, sd) {
      stats::integrate(function(z) h(mean + sd * z) * stats::dnorm(z), -12, 12, rel.tol = 1e-10)$value
    }, f$fit, f$se.fit)
    expect_equal(unname(p[, "fit"]), unname(over_f), tolerance = 1e-6)
    expect_gt(max(abs(p[, "fit"] - h(f$fit))), 0.03) # the average differs from h(mean)
    expect_equal(p[, "lwr"], h(f$fit + stats::qnorm(0.05) * f$se.fit))
    expect_equal(p[, "upr"], h(f$fit - stats::qnorm(0.05) * f$se.fit))
  }
})

test_that("log densities of responses are those of integrals over f, and densities add up to 1", {
  for (family in list(binomial(), binomial("probit"), poisson(), nb(1.5))) {
    likelihood <- as_likelihood(family)
    for (size in if (as_response(likelihood)$reads == "classes") c(1, 9) else 400) {
      y <- 0:size
      sites <- list(y = y, size = if (as_response(likelihood)$reads == "classes") rep(size, size + 1))
      p <- exp(log_predictive(likelihood, sites, rep(0.7, size + 1), rep(0.4, size + 1)))
      expect_equal(sum(p), 1, tolerance = 1e-5) # 1e-6 of the negative binomial distribution is above 400
    }
  }
  p <- log_predictive(as_likelihood(poisson()), list(y = 1e6), log(1e6), 1e-4) # almost a Poisson count with rate 1e6
  expect_equal(p, stats::dnorm(1e6, 1e6 * exp(5e-5), sqrt(1e6 + 1e12 * 1e-4), log = TRUE), tolerance = 1e-2)
})

test_that("theta is learned, and agrees with glm.nb() where f is constant", {
  skip_if_not_installed("MASS")
  d <- with_seed(5, data.frame(x = stats::runif(300), y = stats::rnbinom(300, size = 2, mu = 5)))
  fit <- pfdtc(y ~ x, d, family = nb(), kernel = kernel_se(1, 1e-8), hyper = "fixed",
               control = pfdtc_control(priors = FALSE))
  plain <- MASS::glm.nb(y ~ 1, d)
  expect_equal(fit$theta, plain$theta, tolerance = 0.02) # the prior of log theta has an sd of 2
  expect_equal(fit$center, unname(stats::coef(plain)), tolerance = 0.01)
  expect_identical(names(coef(fit)), c("lengthscale.x", "variance", "mean", "theta"))
})

test_that("methods return results of the same shapes for counts as for Gaussian fits", {
  d <- small_data()
  fit <- quietly(n ~ x + z, d, family = poisson())
  p <- predict(fit, d[1:3, ], se.fit = TRUE, type = "response")
  expect_identical(names(p), c("fit", "se.fit"))
  expect_equal(fitted(fit), predict(fit, type = "response"))
  expect_equal(unname(residuals(fit)), d$n - unname(fitted(fit)))
  expect_equal(residuals(fit, "pearson"), residuals(fit) / sqrt(fitted(fit)))
  expect_identical(dim(predict(fit, d[1:3, ], se.fit = TRUE, full_cov = TRUE)$cov), c(3L, 3L))
  draws <- simulate(fit, 3, seed = 1)
  expect_true(all(unlist(draws) >= 0) && all(unlist(draws) == round(unlist(draws))))
  expect_s3_class(logLik(fit), "logLik")
  expect_output(print(fit), "Poisson")
  expect_output(print(summary(fit)), "negative log predictive density")
  again <- unserialize(serialize(fit, NULL))
  expect_identical(predict(again), predict(fit))
  half <- quietly(n ~ x + z, d, family = poisson(), keep_data = FALSE)
  expect_equal(predict(half, d), predict(fit, d))
})

test_that("the same seed gives the same fit, and a search that ends early returns its best values so far", {
  d <- small_data()
  one <- with_seed(1, pfdtc(y ~ x + z, d, family = binomial(), kernel = kernel_se()))
  two <- with_seed(1, pfdtc(y ~ x + z, d, family = binomial(), kernel = kernel_se()))
  expect_identical(coef(one), coef(two))
  early <- suppressWarnings(pfdtc(y ~ x + z, d, family = binomial(), kernel = kernel_se(),
                                  control = pfdtc_control(max_seconds = 0)))
  expect_true(all(is.finite(predict(early))))
})

test_that("a constant response is refused where noise or a shape is learned, and named", {
  d <- data.frame(x = 1:8, flat = 2)
  for (family in list(tobit(0), student(), stats::Gamma("log"), tweedie(), lognormal())) {
    expect_error(pfdtc(flat ~ x, d, family = family, kernel = kernel_se()), "`flat` is constant",
                 class = "pfdtc_error_input")
  }
  expect_error(pfdtc(survival::Surv(flat, flat > 0) ~ x, d), "is constant", class = "pfdtc_error_input")
  few <- pfdtc_control(restarts = 1)
  expect_identical(nobs(pfdtc(flat ~ x, d, family = poisson(), kernel = kernel_se(), control = few)), 8L)
  expect_identical(nobs(pfdtc(flat ~ x, d, family = student(), kernel = kernel_se(), offset = d$x, control = few)), 8L)
  expect_message(pfdtc(flat ~ x, d, family = tobit(left = 2), kernel = kernel_se(), control = few), "censored")
  given <- pfdtc(flat ~ x, d, family = student(), kernel = kernel_se(lengthscale = 1, variance = 1), hyper = "fixed")
  expect_identical(nobs(given), 8L)
})
