# Compares likelihoods that the user defines with those of the package.

own_data <- function(n = 50) {
  with_seed(3, {
    d <- data.frame(x = stats::runif(n, 0, 3))
    transform(d, n = stats::rpois(n, exp(1 + sin(2 * d$x))), g = stats::rgamma(n, 3, 3 / exp(sin(2 * d$x))),
              t = sin(2 * d$x) + 0.3 * stats::rt(n, 3))
  })
}

own_poisson <- function(...) {
  gp_family(~ y * f - exp(f) - lgamma(y + 1), mean = ~ exp(f), support = function(y) y >= 0, ...)
}

fixed <- function(formula, family, ...) {
  pfdtc(formula, own_data(), family = family, kernel = kernel_se(0.8, 1), hyper = "fixed", center = 0.5, ...)
}

test_that("Poisson counts by an expression are those of the package", {
  own <- fixed(n ~ x, own_poisson(kappa = 1))
  ours <- fixed(n ~ x, poisson())
  new <- data.frame(x = c(0.2, 1.4, 5))
  expect_equal(predict(own, new, se.fit = TRUE), predict(ours, new, se.fit = TRUE), tolerance = 1e-8)
  expect_equal(predict(own, new, type = "response"), predict(ours, new, type = "response"), tolerance = 1e-8)
  expect_equal(own$evidence, ours$evidence, tolerance = 1e-10)
  d <- own_data()[1:4, ]
  expect_equal(predict(own, d, type = "density"), predict(ours, d, type = "density"), tolerance = 1e-8)
  by_function <- fixed(n ~ x, gp_family(function(f, y) y * f - exp(f) - lgamma(y + 1)))
  expect_equal(predict(by_function, new), predict(own, new), tolerance = 1e-10)
  variational <- fixed(n ~ x, own_poisson(), approx = "vi")
  expect_equal(predict(variational, new), predict(fixed(n ~ x, poisson(), approx = "vi"), new), tolerance = 1e-6)
})

test_that("without a formula for the mean, f is predicted and the mean response is refused with what to give", {
  own <- fixed(n ~ x, gp_family(~ y * f - exp(f) - lgamma(y + 1)))
  expect_true(all(is.finite(predict(own, type = "link"))))
  ask_mean <- list(function() predict(own, own_data()[1:3, ], type = "mean"), function() predict(own, type = "loo"),
                   function() predict(own, type = "response"), function() fitted(own), function() residuals(own))
  for (ask in ask_mean) expect_input_error(ask(), "Fit with `mean`, such as mean = ~ exp(f).")
  expect_output(print(summary(own)), "Leave-one-out +mean negative log predictive density")
  expect_true(is.finite(cross_validate(own, folds = 3, hyper = "held")$nlpd[1]))
})

test_that("parameters are learned as those of the package", {
  family <- gp_family(~ k * log(k) - lgamma(k) + (k - 1) * log(y) - k * (y * exp(-f) + f), parameters = list(k = NA),
                      kappa = 1, support = function(y) y > 0)
  own <- fixed(g ~ x, family)
  expect_named(own$theta, NULL)
  expect_equal(own$theta, fixed(g ~ x, Gamma("log"))$theta, tolerance = 1e-3) # searches end within 1e-5 of the maximum
  expect_equal(stats::coef(own)[["k"]], own$theta)
  expect_output(print(own), sprintf("; k = %s", format(signif(own$theta, 4))), fixed = TRUE)
  given <- gp_family(~ k * log(k) - lgamma(k) + (k - 1) * log(y) - k * (y * exp(-f) + f), parameters = list(k = 2))
  expect_equal(fixed(g ~ x, given)$evidence, fixed(g ~ x, replace(Gamma("log"), "theta", 2))$evidence,
               tolerance = 1e-10)
})

test_that("parameters without names are refused, also if they are no numbers", {
  expect_input_error(gp_family(~ -(y - f)^2, function(y, f) 1), "has no names")
  for (odd in list(list(2, k = 3), list(y = 2), list(f = NA))) {
    expect_input_error(gp_family(~ y * f - k * exp(f), odd), "empty, `f` or `y`")
  }
})

test_that("support and curvature must be functions", {
  expect_input_error(gp_family(~ y * f - exp(f), support = 0), "`support` must be a function of `y`; it is 0")
  expect_input_error(gp_family(~ y * f - exp(f), curvature = "W"), "`curvature` must be a function; it is \"W\"")
})

test_that("a log density that is not concave takes steps by its weight", {
  family <- gp_family(~ -2.5 * log(1 + (y - f)^2 / (4 * 0.09)) + lgamma(2.5) - lgamma(2) - log(4 * pi * 0.09) / 2,
                      concave = FALSE, expected = ~ 5 / (4 * 0.09 + (y - f)^2), mean = ~ f)
  own <- fixed(t ~ x, family)
  ours <- fixed(t ~ x, student(4, 0.3))
  expect_equal(predict(own), predict(ours), tolerance = 1e-6)
  expect_equal(own$evidence, ours$evidence, tolerance = 1e-6)
  expect_true(all(is.infinite(certify(own, data.frame(x = 1))$mean_upper))) # the family does not state its curvature
})

test_that("certificates by a family's statements contain the exact posterior, and name the family as their source", {
  d <- own_data(40)
  of <- function(family, m) {
    suppressWarnings(pfdtc(n ~ x, d, family = family, kernel = kernel_se(0.5, 1), hyper = "fixed", center = 0.5, m = m))
  }
  new <- data.frame(x = seq(0, 3.5, by = 0.5))
  exact <- predict(of(poisson(), 40), new, se.fit = TRUE)
  W <- function(lower, upper, y) list(lower = exp(lower), upper = exp(upper))
  for (family in list(own_poisson(kappa = 1), own_poisson(), own_poisson(curvature = W))) {
    c <- certify(of(family, 6), new, effort = "fast")
    expect_true(all(c$mean_lower <= exact$fit & exact$fit <= c$mean_upper))
    expect_true(all(c$sd_lower <= exact$se.fit & exact$se.fit <= c$sd_upper))
    expect_output(print(c), "stated by the family")
  }
  ours <- certify(of(poisson(), 6), new, effort = "fast")
  sharp <- certify(of(own_poisson(curvature = W), 6), new, effort = "fast")
  unnamed <- own_poisson(curvature = function(lower, upper, y) unname(W(lower, upper, y)))
  expect_equal(certify(of(unnamed, 6), new, effort = "fast")$sd_upper, sharp$sd_upper)
  upper_twice <- own_poisson(curvature = function(lower, upper, y) list(exp(upper), exp(upper)))
  expect_false(all(check_family(upper_twice, 0:3)$holds))
  expect_error(check_family(own_poisson(curvature = function(lower, upper, y) exp(upper)), 0:3), "curvature",
               class = "pfdtc_error_input")
  # Bounds by averages of Poisson's curvature are sharper than those by its range.
  expect_true(all(ours$mean_upper <= sharp$mean_upper + 1e-9))
  expect_true(all(ours$sd_upper <= sharp$sd_upper + 1e-9))
})

test_that("statements that do not hold are refused, and those of the package's families hold", {
  for (family in list(poisson(), Gamma("log"), nb(), student(4, 1), own_poisson(kappa = 1))) {
    found <- check_family(family, y = c(1, 2, 5))
    expect_true(all(found$holds), label = found$claim[!found$holds][1])
  }
  narrow <- gp_family(~ -log(1 + (y - f)^2 / 0.0025), concave = FALSE, expected = ~ 2 / (0.0025 + (y - f)^2))
  for (family in list(student(4, 0.03), student(4, 0.003), narrow)) { # derivatives change within 0.003 to 0.05
    found <- check_family(family, y = seq(-0.99, 1, by = 0.017))
    expect_true(all(found$holds), label = found$claim[!found$holds][1])
  }
  expect_false(all(check_family(own_poisson(kappa = 0.5), y = 0:3)$holds))
  expect_output(print(check_family(own_poisson(kappa = 0.5), y = 0:3)), "FAILS")
  inverse_gaussian <- gp_family(~ -y * exp(-2 * f) / 2 + exp(-f))
  expect_error(fixed(g ~ x, inverse_gaussian), "concave", class = "pfdtc_error_input")
  expect_error(fixed(n ~ x, own_poisson(kappa = 0.5)), "the check \"bounds on", class = "pfdtc_error_input")
  expect_error(fixed(I(n - 9) ~ x, own_poisson()), "support", class = "pfdtc_error_input")
  expect_error(check_family(binomial(), y = 1), class = "pfdtc_error_input")
})

test_that("statements that are 10 % wrong fail in any unit of f, and those that hold pass", {
  for (s in c(0.1, 1, 1000)) for (y in c(0.3, 50.3, 1e6) * s) {
    l <- eval(bquote(~ -(y - f) / .(s) - 2 * log1p(exp(-(y - f) / .(s))))) # Logistic noise has |l'''| <= |l''| / s.
    W <- function(f, y) 2 * stats::dlogis((y - f) / s) / s^2
    bounds <- function(low, high, turn = TRUE) {
      function(lower, upper, y) {
        top <- pmax(W(lower, y), W(upper, y), if (turn) ifelse(lower < y & y < upper, W(y, y), 0) else 0)
        list(lower = low * pmin(W(lower, y), W(upper, y)), upper = high * top)
      }
    }
    holds <- function(...) all(check_family(gp_family(l, ...), y)$holds)
    label <- sprintf("s = %g, y = %g", s, y)
    expect_true(holds(kappa = 1 / s), label = label)
    expect_true(holds(curvature = bounds(1, 1)), label = label)
    expect_false(holds(kappa = 0.9 / s), label = label)
    expect_false(holds(curvature = bounds(1.1, 1)), label = label)
    expect_false(holds(curvature = bounds(1, 0.9)), label = label)
    expect_false(holds(curvature = bounds(1, 1, FALSE)), label = label)
  }
  none <- gp_family(~ y * f - exp(f), curvature = function(lower, upper, y) list(lower = 0, upper = NULL))
  expect_input_error(check_family(none, 0:1), "returns")
  wide <- gp_family(~ -log(1 + (y - f)^2 / 1e6)) # not concave where |f - y| > 1000
  expect_false(all(check_family(wide, 0:1)$holds))
  for (l in list(~ log(pnorm((2 * y - 1) * f)), ~ y * f - exp(f), ~ -sqrt(1 + (y - f)^2), ~ -1e6 * (y - f)^2)) {
    expect_true(all(check_family(gp_family(l), y = 0:1)$holds), label = deparse1(l))
  }
  expect_true(all(check_family(gp_family(~ -3 * f - 3 * y * exp(-f), kappa = 1), 10^(-5:8))$holds))
})

test_that("certificates by kappa contain the exact posterior where W is 0 or negative by rounding", {
  for (s in c(0.3, 1)) {
    family <- eval(bquote(gp_family(~ -(y - f) / .(s) - 2 * log1p(exp(-(y - f) / .(s))), kappa = .(1 / s), mean = ~ f)))
    d <- data.frame(x = 1:12, y = s * replace(sin(1:12), c(4, 9), c(-60, -47.3)))
    likelihood <- as_likelihood(family)
    sites <- engine_sites(likelihood, list(y = d$y, offset = numeric(12)), 0)
    expect_lte(min(native_likelihood(sites, numeric(12))[3L, ]), 0)
    for (e in s * c(5, 45, 800)) {
      true <- 2 * stats::dlogis((abs(d$y) - e) / s) / s^2 # W at the end of the range that is nearer to y, or beyond y
      expect_true(all(curvature_range(likelihood, sites, numeric(12), e)$upper >= true), label = sprintf("e = %g", e))
    }
    of <- function(m) {
      pfdtc(y ~ x, d, family = family, kernel = kernel_se(2, s^2), hyper = "fixed", center = 0, m = m)
    }
    at <- data.frame(x = c(1, 4, 6.5, 9))
    exact <- predict(of(12), at, se.fit = TRUE)
    for (m in c(4, 12)) {
      c <- certify(of(m), at, effort = "fast")
      expect_true(all(c$mean_lower <= exact$fit & exact$fit <= c$mean_upper))
      expect_true(all(c$sd_lower <= exact$se.fit & exact$se.fit <= c$sd_upper))
    }
  }
})

test_that("certify() checks statements at the learned parameters", {
  d <- with_seed(1, data.frame(x = 1:40 / 10, y = sin(1:40 / 10) + 0.05 * stats::rlogis(40)))
  of <- function(...) {
    family <- gp_family(~ -log(s) - (y - f) / s - 2 * log1p(exp(-(y - f) / s)), parameters = list(s = NA), mean = ~ f,
                        ...)
    pfdtc(y ~ x, d, family = family, kernel = kernel_se(1, 1), hyper = "fixed", center = FALSE)
  }
  expect_error(certify(of(kappa = 1), d[1:2, ]), "bounds", class = "pfdtc_error_input")
  expect_true(all(certify(of(), d[1:2, ])$sd_lower >= 0))
})

test_that("expressions that cannot be used are refused with a list of what can", {
  refused <- function(...) expect_error(gp_family(...), class = "pfdtc_error_input")
  refused(~ y * g)
  refused(~ y + 1)
  refused("y * f")
  refused(~ besselI(f, 1) + y)
  refused(~ f * lgamma(y))
  refused(~ -f^2, parameters = list(2))
  refused(~ -k * f^2, parameters = list(k = -1))
  refused(~ -log(1 + f^2), concave = FALSE)
  fit <- fixed(n ~ x, gp_family(~ y * f - exp(f)))
  expect_error(predict(fit, type = "median"), class = "pfdtc_error_input")
  expect_identical(dim(stats::simulate(fit, type = "latent")), c(50L, 1L))
  for (need in list(stats::simulate, function(fit) stats::residuals(fit, "pit"), stats::rstandard,
                    function(fit) plot(fit, which = "calibration"))) {
    expect_error(need(fit), "distribution", class = "pfdtc_error_input")
  }
  expect_true(is.finite(cross_validate(fit, folds = 2, hyper = "held")$nlpd[1]))
  expect_output(print(fit), "log density")
  expect_output(print(gp_family(~ y * f - exp(f))), "log density")
})

test_that("the engine refuses programs that read outside the array or the stack", {
  at <- function(shape) {
    native_likelihood(list(name = "own", y = 1, offset = 0, size = NULL, weight = NULL, shape = shape), 0.5)
  }
  good <- engine_programs(rep(list(quote(f * y)), 5), list())
  expect_equal(at(good)[1L, ], 0.5)
  for (bad in list(good[-length(good)], replace(good, 3, 99), replace(good, 9, 3), replace(good, 9, 77), c(1, 1),
                   replace(good, 8, 50), replace(good, 8, NaN), NULL)) {
    expect_error(at(bad), "internal")
  }
})

test_that("a family without a mean has no scores or figures of the mean, and errors and reports say so", {
  fit <- fixed(n ~ x, gp_family(~ y * f - exp(f) - lgamma(y + 1), kappa = 1))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_error(plot(fit), "`type` must be \"link\"", class = "pfdtc_error_input")
  expect_no_error(plot(fit, type = "link"))
  expect_no_match(report(fit)$text, "NaN")
  expect_false(is.nan(attr(cross_validate(fit, 3), "overall")$rmse))
})

test_that("the mean and sd of an unbounded mean response are right however wide f is", {
  wide <- pfdtc(n ~ x, own_data(), family = own_poisson(), kernel = kernel_se(0.8, 64), hyper = "fixed")
  new <- data.frame(x = c(0.2, 1.4, 50))
  f <- predict(wide, new, se.fit = TRUE)
  mean <- predict(wide, new, type = "response", se.fit = TRUE)
  expect_gt(max(f$se.fit), 7)
  expect_equal(mean$fit, exp(f$fit + f$se.fit^2 / 2), tolerance = 1e-9)
  expect_equal(mean$se.fit, mean$fit * sqrt(expm1(f$se.fit^2)), tolerance = 1e-9)
  falling <- normal_average(function(f) exp(-9 * f), 0, 1, unbounded = TRUE) # most of the integral is near f = -9
  expect_equal(falling, exp(9^2 / 2), tolerance = 1e-9)
})

test_that("prints and figures state what a user's family allows, and a search that failed learned nothing", {
  fit <- fixed(n ~ x, own_poisson())
  new <- own_data()[1:2, ]
  expect_output(print(certify(fit, new)), "Advice +Bounds are wide or infinite, because")
  expect_output(print(exceedance(fit, new, 2)), "Claims +stated by the family, not proved")
  expect_identical(slice_label(fit, "response"), "mean of n")
  expect_identical(slice_label(fit, "link"), "f for n")
  heavy <- gp_family(~ -log(1 + (y - f)^2 / 4), concave = FALSE, expected = ~ 1 / 4 + 0 * f)
  expect_warning(failed <- pfdtc(dist ~ speed, cars, family = heavy, kernel = kernel_se(5, 500), hyper = "fixed"),
                 "Nothing was learned: parameters keep the values", class = "pfdtc_warning_convergence")
  expect_match(utils::capture.output(print(failed)), "^Estimation +hyperparameters given, not estimated$", all = FALSE)
  fixed_poisson <- pfdtc(n ~ x, own_data(), family = poisson(), kernel = kernel_se(0.8, 1), hyper = "fixed")
  expect_output(print(fixed_poisson), "not estimated, except mean")
  out <- exceedance(failed, cars[1:2, ], 10, effort = "reference", max_seconds = 60)
  expect_output(print(out), "Advice +Bounds are wide or infinite")
})
