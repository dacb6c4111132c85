# Compares fits of censored times and numbers with their definition and with survival::survreg().

times_data <- function(n = 60, seed = 2) {
  with_seed(seed, {
    d <- data.frame(a = stats::runif(n, 0, 3), b = stats::runif(n))
    t <- exp(1 + sin(2 * d$a) + 0.5 * log(stats::rexp(n)))
    end <- stats::runif(n, 1, 12)
    transform(d, time = pmin(t, end), seen = as.numeric(t <= end))
  })
}

noise_of <- function(name) {
  list(weibull = list(p = function(z) -expm1(-exp(z)), d = function(z) exp(z - exp(z))),
       loglogistic = list(p = stats::plogis, d = stats::dlogis), lognormal = list(p = stats::pnorm, d = stats::dnorm),
       tobit = list(p = stats::pnorm, d = stats::dnorm))[[name]]
}

test_that("the likelihood of right-, left- and interval-censored times is that of its definition", {
  skip_if_not_installed("survival")
  r <- with_seed(3, data.frame(x = stats::runif(30), t = stats::rexp(30) + 0.1, kind = rep(0:3, length.out = 30)))
  y <- survival::Surv(r$t, r$t + 0.7, event = r$kind, type = "interval")
  for (name in c("weibull", "loglogistic", "lognormal")) {
    s <- 0.6
    likelihood <- as_likelihood(list(weibull = weibull, loglogistic = loglogistic, lognormal = lognormal)[[name]](s))
    read <- read_response(likelihood, y, NULL, "y", 30)
    sites <- c(read[c("y", "size")], list(offset = numeric(30)))
    f <- seq(-2, 2, length.out = 30)
    engine <- engine_sites(likelihood, sites, 0)
    l <- native_likelihood(engine, f)[1L, ] + engine$constant
    noise <- noise_of(name)
    z <- function(t) (log(t) - f) / s
    direct <- ifelse(r$kind == 0, 1 - noise$p(z(r$t)), ifelse(r$kind == 1, noise$d(z(r$t)) / (s * r$t), ifelse(
      r$kind == 2, noise$p(z(r$t)), noise$p(z(r$t + 0.7)) - noise$p(z(r$t)))))
    known <- direct > 1e-12 # smaller differences of probabilities lose digits
    expect_equal(l[known], log(direct[known]), tolerance = 1e-9)
    expect_true(all(l[!known] < -25))
  }
})

test_that("survival, quantiles and medians are averages over f, and survival bands are those of f", {
  skip_if_not_installed("survival")
  d <- times_data()
  for (family in list(weibull(), loglogistic(0.3), lognormal())) {
    fit <- pfdtc(survival::Surv(time, seen) ~ a + b, d, family = family, kernel = kernel_se(c(1, 1), 1),
                 hyper = "fixed")
    cdf <- noise_of(family$family)$p
    s <- fit$theta
    new <- d[1:3, ]
    f <- predict(fit, new, se.fit = TRUE)
    above <- function(i, t) {
      stats::integrate(function(z) stats::dnorm(z) * (1 - cdf((log(t) - f$fit[i] - f$se.fit[i] * z) / s)), -9, 9,
                       rel.tol = 1e-9)$value
    }
    S <- predict(fit, new, type = "survival", times = c(0, 1, 5), interval = "credible", level = 0.9)
    expect_equal(unname(S[, , "fit"]), cbind(1, outer(1:3, c(1, 5), Vectorize(above))), tolerance = 1e-7)
    ends <- f$fit + f$se.fit %o% stats::qnorm(c(lwr = 0.05, upr = 0.95))
    expect_equal(unname(S[, 3, c("lwr", "upr")]), unname(1 - cdf((log(5) - ends) / s)), tolerance = 1e-9)
    q <- predict(fit, new, type = "quantile", probs = c(0.1, 0.5))
    expect_equal(mapply(above, 1:3, q[, 1]), rep(0.9, 3), tolerance = 1e-7)
    expect_equal(unname(predict(fit, new, type = "median")), unname(q[, 2]))
    # The mean is the integral of survival.
    mean <- vapply(1:3, function(i) {
      stats::integrate(Vectorize(function(t) above(i, t)), 0, Inf, rel.tol = 1e-7)$value
    }, 0)
    expect_equal(unname(predict(fit, new, type = "response")), mean, tolerance = 1e-5)
    expect_error(predict(fit, new, type = "survival"), "times", class = "pfdtc_error_input")
    expect_error(predict(fit, new, type = "quantile", probs = 1), "probs", class = "pfdtc_error_input")
    # A certified band contains the band.
    wide <- predict(fit, new, type = "survival", times = 5, interval = "credible", level = 0.9, certified = TRUE)
    expect_true(all(wide[, 1, "lwr"] <= S[, 3, "lwr"] & wide[, 1, "upr"] >= S[, 3, "upr"]))
  }
})

test_that("a Weibull fit with scale 1 is a Poisson fit of the events with the log time as offset", {
  skip_if_not_installed("survival")
  d <- times_data(40)
  kernel <- kernel_se(c(1, 1), 1)
  # With scale 1 the f of the hazard is minus the f of the time, and log t is the offset.
  fit <- pfdtc(survival::Surv(time, seen) ~ a + b, d, family = weibull(1), kernel = kernel, hyper = "fixed",
               center = 0.7)
  counts <- pfdtc(seen ~ a + b + offset(log(time)), d, family = poisson(), kernel = kernel, hyper = "fixed",
                  center = -0.7, inducing = fit$inducing)
  expect_equal(predict(fit, d[1:5, ]), -(predict(counts, d[1:5, ]) - log(d$time[1:5])), tolerance = 1e-7)
  expect_equal(fit$evidence, counts$evidence - sum(d$seen * log(d$time)), tolerance = 1e-7)
})

test_that("a normal response without censoring is a Gaussian fit, and each row's limits are those of its Surv object", {
  skip_if_not_installed("survival")
  d <- times_data(40)
  kernel <- kernel_se(c(1, 1), 2)
  tobit_fit <- pfdtc(time ~ a + b, d, family = tobit(-1, scale = 0.8), kernel = kernel, hyper = "fixed",
                     center = mean(d$time))
  plain <- pfdtc(time ~ a + b, d, kernel = kernel, noise = 0.64, hyper = "fixed")
  expect_equal(predict(tobit_fit, d[1:5, ]), predict(plain, d[1:5, ]), tolerance = 1e-6)
  expect_equal(tobit_fit$evidence, plain$evidence, tolerance = 1e-6)
  expect_equal(stats::sigma(tobit_fit), 0.8)
  limited <- transform(d, time = pmin(pmax(time, 1.5), 5))
  by_limit <- pfdtc(time ~ a + b, limited, family = tobit(1.5, 5), kernel = kernel, hyper = "fixed")
  ends <- survival::Surv(ifelse(limited$time == 1.5, NA, limited$time), ifelse(limited$time == 5, NA, limited$time),
                         type = "interval2")
  by_surv <- pfdtc(ends ~ a + b, limited, family = tobit(), kernel = kernel, hyper = "fixed")
  expect_equal(predict(by_limit, d[1:5, ]), predict(by_surv, d[1:5, ]))
  # Without limits, numbers would all count as uncensored.
  for (none in list(tobit(), tobit(scale = 0.8), "tobit")) {
    expect_input_error(pfdtc(time ~ a + b, limited, family = none), "no limit, so no response would be censored")
  }
})

test_that("a linear mean with a vague kernel is close to survreg()", {
  skip_if_not_installed("survival")
  d <- times_data(200)
  fit <- pfdtc(survival::Surv(time, seen) ~ b, d, family = weibull(), kernel = kernel_se())
  line <- survival::survreg(survival::Surv(time, seen) ~ b, d)
  # b has no effect, so both fits have a constant and the scale of a Weibull distribution.
  expect_equal(unname(fit$theta), line$scale, tolerance = 0.05)
  expect_equal(mean(predict(fit)), mean(stats::predict(line, type = "lp")), tolerance = 0.05)
})

test_that("a Weibull fit with a tiny scale has a mode, although Newton's first matrix has no factor", {
  skip_if_not_installed("survival")
  d <- times_data()
  for (s in c(0.02, 0.004)) { # W is up to e^(1 / s) / s^2 at the start
    d$t <- exp(sin(2 * d$a) + s * with_seed(5, log(stats::rexp(60))))
    fit <- pfdtc(survival::Surv(t, seen) ~ a, d, family = weibull(s), kernel = kernel_se(1, 1), hyper = "fixed",
                 center = 0)
    f <- unname(predict(fit, type = "latent"))
    z <- (log(d$t) - f) / s
    g <- ifelse(d$seen == 1, exp(z) - 1, exp(z)) / s # the slope of the log density in f
    # f = K g at the mode. Newton's steps end at a decrement of 1e-9, and K g has large terms that cancel.
    expect_equal(f, drop(kernel_matrix(fit$kernel, cbind(a = d$a)) %*% g), tolerance = 1e-5)
    expect_lt(max(abs(f - sin(2 * d$a))[d$seen == 1]), 10 * s)
  }
})

test_that("scores and residuals of censored rows use their limits", {
  skip_if_not_installed("survival")
  d <- times_data()
  fit <- pfdtc(survival::Surv(time, seen) ~ a, d, family = lognormal(), kernel = kernel_se(1, 1), hyper = "fixed")
  each <- score_each(response_of(fit), fit$data$sites[c("y", "size")], list(mean = predict(fit), var = rep(0.1, 60)))
  expect_identical(is.na(each$y), d$seen == 0)
  expect_identical(each$upto == each$below, d$seen == 1)
  expect_equal(each$upto[d$seen == 0], rep(1, sum(d$seen == 0)), tolerance = 1e-12)
  scores <- cross_validate(fit, folds = 2, hyper = "held")
  expect_true(is.finite(scores$nlpd[1]))
  expect_output(print(scores), "RMSE: of uncensored rows")
  censored <- which(d$seen == 0)[1:2] # a fold without an event has no RMSE
  expect_identical(cross_validate(fit, seq_len(nobs(fit)) %in% censored, hyper = "held")$rmse[2], NA_real_)
  for (type in c("response", "pearson", "loo", "pit", "deviance")) {
    expect_true(all(is.finite(stats::residuals(fit, type))), label = type)
  }
  # A log-logistic time has no finite variance if its scale is at least 1/2, and no finite mean if it is at least 1.
  for (scale in c(0.7, 5)) {
    heavy <- update(fit, family = loglogistic(scale))
    expect_warning(r <- residuals(heavy, "pearson"), "no finite variance", class = "pfdtc_warning_undefined")
    expect_true(all(is.na(r)))
    expect_true(all(is.finite(residuals(heavy, "deviance"))))
  }
  expect_identical(dim(stats::simulate(fit, 2, seed = 1)), c(60L, 2L))
  expect_match(paste(utils::capture.output(print(fit)), collapse = " "), "right-censored")
})

test_that("bad times are refused by name, and times without information leave the prior", {
  skip_if_not_installed("survival")
  Surv <- survival::Surv
  d <- times_data(30)
  refused <- function(formula, family) expect_error(pfdtc(formula, d, family = family), class = "pfdtc_error_input")
  refused(Surv(0 * time, seen) ~ a, weibull())
  refused(Surv(time, time + 1, seen) ~ a, weibull())
  refused(I(time - 1.5) ~ a, lognormal())
  refused(Surv(replace(time, 2, Inf), seen) ~ a, weibull())
  # The survival package makes a reversed interval missing and warns. A formula drops the row, a vector is an error.
  turned <- suppressWarnings(Surv(c(5, d$time[-1]), c(4, d$time[-1] + 1), type = "interval2"))
  by_formula <- pfdtc(turned ~ a, d, family = weibull(0.5), kernel = kernel_se(1, 1), hyper = "fixed")
  expect_identical(stats::nobs(by_formula), 29L)
  expect_error(pfdtc(as.matrix(d["a"]), turned, family = weibull()), "interval", class = "pfdtc_error_input")
  expect_error(tobit(3, 2), "left", class = "pfdtc_error_input")
  expect_error(weibull(-1), "scale", class = "pfdtc_error_input")
  fixed <- function(data, formula = Surv(time, seen) ~ a) {
    suppressMessages(pfdtc(formula, data, family = weibull(0.5), kernel = kernel_se(1, 1), hyper = "fixed", center = 1))
  }
  # A row that is right-censored at 0 has no information.
  more <- rbind(d, transform(d[1:5, ], time = 0, seen = 0))
  expect_equal(predict(fixed(more), d[1:3, ]), predict(fixed(d), d[1:3, ]), tolerance = 1e-7)
  expect_message(pfdtc(Surv(time, 0 * seen) ~ a, d, family = weibull(), kernel = kernel_se(1, 1), hyper = "fixed"),
                 "censored")
  # Times between 0 and Inf have no information.
  open <- suppressMessages(pfdtc(Surv(0 * time, Inf + time, type = "interval2") ~ a, d, family = weibull(0.5),
                                 kernel = kernel_se(1, 1), hyper = "fixed"))
  expect_equal(unlist(predict(open, d[1L, ], se.fit = TRUE), use.names = FALSE)[2L], 1, tolerance = 1e-6)
  expect_identical(as.numeric(logLik(open)), 0)
})

test_that("a message says if all times are censored, from whichever side", {
  skip_if_not_installed("survival")
  fit <- function() {
    pfdtc(censored ~ x, d, family = lognormal(), kernel = kernel_se(2, 1), hyper = "fixed")
  }
  d <- data.frame(x = 1:6, time = c(2, 3, 1, 4, 2, 5))
  for (type in c("right", "left")) {
    d$censored <- survival::Surv(d$time, 0 * d$time, type = type)
    expect_message(found <- fit(), class = "pfdtc_message_one_value")
    expect_true(all(is.finite(predict(found, type = "median"))))
  }
  d$censored <- survival::Surv(d$time, d$x > 1)
  expect_no_message(fit())
})

test_that("times known up to an interval are named by both ends, and equal families have no order", {
  fit <- function(formula) {
    suppressMessages(pfdtc(formula, data.frame(x = 1:8, L = 1:8, R = 2:9, dead = 0), hyper = "fixed",
                           kernel = kernel_se(3, 1)))
  }
  Surv <- survival::Surv
  expect_identical(pfdtc:::response_name(fit(Surv(L, R, type = "interval2") ~ x)), 'Surv(L, R, type = "interval2")')
  censored <- fit(Surv(L, dead) ~ x)
  expect_identical(pfdtc:::response_name(censored), "L")
  expect_no_match(unlist(censored$because)["family"], "is 0[.]0 below")
})
