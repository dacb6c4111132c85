# Tests ratios of odds, means and hazards, and certificates of differences of f, for other likelihoods.

ratio_data <- function(n = 40) {
  with_seed(1, {
    x <- stats::runif(n, 0, 3)
    data.frame(x = x, n = stats::rpois(n, exp(sin(2 * x))), b = stats::rbinom(n, 1, stats::plogis(2 * sin(2 * x))),
               t = exp(sin(2 * x) + 0.5 * log(stats::rexp(n))), e = stats::runif(n, 1, 2))
  })
}

fixed_fit <- function(formula, family, ...) {
  pfdtc(formula, ratio_data(), family = family, kernel = kernel_se(0.7, 1), hyper = "fixed", center = 0.1, ...)
}

test_that("certificates of sums contain the sums of the exact GP's mode, and are no wider than those of the rows", {
  new <- data.frame(x = c(0.2, 1, 2, 2.05))
  W <- rbind(far = c(1, -1, 0, 0), near = c(0, 0, 1, -1), average = rep(0.25, 4))
  for (case in list(list(n ~ x, poisson()), list(b ~ x, binomial()), list(t ~ x, weibull(0.5)),
                    list(n ~ x, student(4, 1)))) {
    truth <- linear_functional(at_mode(fixed_fit(case[[1]], case[[2]])), W, new)
    few <- fixed_fit(case[[1]], case[[2]], m = 6)
    rows <- certify(few, new, effort = "fast")
    for (effort in c("fast", "reference")) {
      c <- linear_functional(few, W, new, certified = TRUE, effort = effort)
      room <- 1e-7 # of the exact mode
      expect_true(all(truth$mean >= c$mean_lower - room & truth$mean <= c$mean_upper + room))
      expect_true(all(truth$sd >= c$sd_lower - room & truth$sd <= c$sd_upper + room))
      expect_true(all((c$mean_upper - c$mean_lower) <=
                        drop(abs(W) %*% (rows$mean_upper - rows$mean_lower)) * (1 + 1e-6) + room))
    }
    one <- linear_functional(few, diag(4), new, certified = TRUE, effort = "fast")
    expect_equal(one$sd_upper, rows$sd_upper, tolerance = 1e-6)
  }
})

test_that("a ratio is that of the odds, the means or the hazards given the posterior mean of f", {
  new <- data.frame(x = c(0.5, 1), e = 1)
  than <- data.frame(x = 2, e = 1)
  ratio <- function(fit, ...) ratios(fit, new, than, ...)
  f <- function(fit) unname(predict(at_mode(fit), new) - predict(at_mode(fit), than))
  b <- fixed_fit(b ~ x, binomial())
  expect_equal(ratio(b)$ratio, exp(unname(predict(b, new) - predict(b, than))))
  expect_identical(attr(ratio(b), "of"), "odds ratio")
  n <- fixed_fit(n ~ x + offset(log(e)), poisson())
  expect_equal(ratio(n)$ratio, exp(f(n)))
  doubled <- ratios(n, transform(new, e = 2), than)
  expect_equal(doubled$ratio, 2 * ratio(n)$ratio)
  # The hazard is h(t) = (t e^-f)^(1 / s) / (s t). Odds are for an event before a time, and their ratio is the same for
  # all times.
  w <- fixed_fit(t ~ x, weibull(0.5))
  expect_equal(ratio(w)$ratio, exp(-f(w) / 0.5))
  expect_identical(attr(ratio(w), "of"), "hazard ratio")
  l <- fixed_fit(t ~ x, loglogistic(0.5))
  odds <- function(rows) stats::plogis((log(1.7) - predict(l, rows)) / 0.5)
  expect_equal(ratio(l)$ratio, unname(odds(new) / (1 - odds(new)) * (1 - odds(than)) / odds(than)))
  expect_identical(attr(ratio(fixed_fit(t ~ x, lognormal(0.5))), "of"), "time ratio")
  above <- pfdtc(n ~ x, subset(ratio_data(), n > 0), family = truncated_poisson(), kernel = kernel_se(1, 1),
                 hyper = "fixed")
  expect_equal(ratio(above)$ratio, exp(f(above)))
  expect_identical(attr(ratio(above), "of"), "ratio of Poisson rates")
  # The interval comes from the difference of f, and the certified interval contains it.
  d <- linear_functional(w, rbind(c(1, 0, -1), c(0, 1, -1)), rbind(new, than))
  z <- stats::qnorm(0.95)
  both <- ratio(w, level = 0.9, certified = TRUE, effort = "fast")
  expect_equal(both$lwr, exp(-(d$mean + z * d$sd) / 0.5))
  expect_true(all(both$lwr_certified <= both$lwr & both$upr <= both$upr_certified))
  # The ratio has a shorter interval if the two rows are close.
  expect_lt(with(ratios(w, data.frame(x = 1.99, e = 1), than), log(upr / lwr)), with(both, min(log(upr / lwr))))
})

test_that("families without ratios and rows that do not match are refused by name", {
  new <- data.frame(x = 1:3)
  refused <- function(code, name) expect_error(code, name, class = "pfdtc_error_input")
  refused(ratios(fixed_fit(b ~ x, binomial("probit")), new, new[1, , drop = FALSE]), "fit")
  refused(ratios(pfdtc(t ~ x, ratio_data(), kernel = kernel_se(1, 1), noise = 1, hyper = "fixed"), new, new), "fit")
  n <- fixed_fit(n ~ x, poisson())
  refused(ratios(n, new, new[1:2, , drop = FALSE]), "than")
  refused(ratios(n, new, 1), "than")
  refused(ratios(n, new, new, level = 2), "level")
  refused(ratios(n, new, data.frame(x = "a")), "`than`")
  expect_identical(nrow(ratios(n, new[0, , drop = FALSE], new[1, , drop = FALSE])), 0L)
  refused(ratios(n, cbind(new, z = 1), data.frame(z = 1)), "`than`")
})

test_that("new levels of groups are told once for each data frame, with its own row numbers", {
  d <- data.frame(x = 1:12, g = gl(3, 4), n = rep(1:4, 3))
  fit <- pfdtc(n ~ x + (1 | g), d, family = poisson(), kernel = kernel_se(5, 1) + kernel_group(~ g, variance = 1),
               hyper = "fixed")
  told <- function(code) {
    found <- character()
    withCallingHandlers(code, pfdtc_message_new_levels = function(m) {
      found <<- c(found, sub("[.] .*", "", trimws(conditionMessage(m))))
      invokeRestart("muffleMessage")
    })
    found
  }
  new <- data.frame(x = 2, g = "new")
  one <- "New level of `g` in row 1"
  expect_identical(told(ratios(fit, d[1, ], new)), one)
  expect_identical(told(ratios(fit, new, d[1, c("x", "g")])), one)
  expect_identical(told(exceedance(fit, new, 2)), one)
  expect_identical(told(exceedance(fit, new, 2, certified = FALSE)), one)
})
