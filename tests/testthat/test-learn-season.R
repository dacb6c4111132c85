months <- function(n, seed = 1) {
  with_seed(seed, {
    time <- 2000 + seq_len(n) / 12
    data.frame(time, y = time / 10 + cospi(2 * time) + 0.3 * sinpi(4 * time) + stats::rnorm(n) / 10)
  })
}

test_that("periods are those that the data span twice, with more than two values in each", {
  periods <- function(v) {
    d <- list2DF(list(v = v, y = sin(seq_along(v))))
    data <- data_from_formula(call("pfdtc", formula = y ~ v, data = d), environment())
    vapply(time_periods(data$x, placed_variables(data$frame)), `[[`, "", "name")
  }
  day <- as.Date("2020-01-01")
  expect_identical(periods(day + 0:13), character()) # 13 days are less than two weeks
  expect_identical(periods(day + 0:14), "week")
  expect_identical(periods(day + 0:800), c("week", "year"))
  expect_identical(periods(seq(day, by = "month", length.out = 30)), "year")
  expect_identical(periods(seq(day, by = "6 months", length.out = 30)), character())
  expect_identical(periods(as.POSIXct(day) + 3600 * 0:400), c("day", "week"))
  expect_identical(periods(stats::ts(1:40, frequency = 7)), character()) # a series, but not the time of a ts
  expect_identical(periods(structure(1 + 0:39 / 7, class = "pfdtc_series_time")), "cycle")
  expect_identical(periods(1990 + 0:40 / 12), "year")
  expect_identical(periods(round(1990 + 0:40 / 12, 2)), "year")
  expect_identical(periods(1990 + (0:40)[-c(5, 9)] / 4), "year")
  expect_identical(periods(0:40 / 12), character()) # not years
  expect_identical(periods(1990 + 0:40), character())
  expect_identical(periods(1990 + with_seed(1, cumsum(runif(40)))), character())
})

test_that("the kernel of a season is the documented sum", {
  x <- matrix(c(0, 0.3, 1.2, 2.5), dimnames = list(NULL, "t"))
  periods <- list(list(column = 1L, period = 1, name = "year"))
  k <- with_profile(structure(list(profile = NULL, periods = periods, inputs = 1L), class = "pfdtc_kernel"),
                    "season1:matern12+mean", x)
  expect_identical(k$season, c("trend", "cycle", "change", "rest", "mean"))
  k <- set_values(k, c(2, 0.5, 0.7, 1, 5, 0.3, 0.4, 0.2, 1.5))
  r <- abs(outer(x[, 1], x[, 1], "-"))
  a <- sqrt(5) * r / 5
  u <- (x[, 1] - mean(x[, 1])) / spreads_of(x)[1]
  want <- 0.5 * exp(-r^2 / 8) + 0.3 * exp(-2 * sin(pi * r)^2 / 0.7^2) * (1 + a + a^2 / 3) * exp(-a) +
    0.2 * exp(-r / 0.4) + 1.5 * (1 + outer(u, u))
  expect_equal(native_kernel_matrix(k, x, x), want, tolerance = 1e-12, ignore_attr = TRUE)
})

test_that("a season is chosen if there is one, its period is held, and forecasts follow it", {
  d <- months(90)
  fit <- pfdtc(y ~ time, d[1:66, ])
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "season of a year")
  expect_match(fit$because[["kernel"]], "a season .* above that of the best kernel without these terms")
  theta <- coef(fit)
  expect_identical(theta[["periodic(time).period"]], 1)
  expect_identical(fit$df, length(theta) - 1L)
  p <- predict(fit, d[67:90, ], interval = "prediction")
  expect_lt(sqrt(mean((p[, "fit"] - d$y[67:90])^2)), 0.2) # the noise has sd 0.1, the season 0.75
  expect_gt(mean(d$y[67:90] > p[, "lwr"] & d$y[67:90] < p[, "upr"]), 0.85)
  expect_identical(dim(vcov(fit))[1L], length(theta) - 1L)
})

test_that("no season is tried if the time is a plain number", {
  d <- months(60)
  plain <- pfdtc(y ~ t, data.frame(t = 1:60, y = d$y))
  expect_false(any(grepl("season", plain$kernels$kernel)))
  flat <- with_seed(3, pfdtc(y ~ day, data.frame(day = as.Date("2020-01-01") + 1:60, y = cumsum(stats::rnorm(60)))))
  expect_false(grepl("season", flat$kernels$kernel[flat$kernels$chosen]))
  expect_true(any(grepl("season of a week", flat$kernels$kernel)))
})

test_that("a season without noise is found along a time and along plain numbers, and forecasts follow it", {
  wave <- sinpi((1:144) / 6)
  past <- 1:120
  expect_identical(exact_period(rev(past), rev(wave[past])), c(cycle = 12))
  expect_null(exact_period(past, replace(wave[past], 50, 0.1))) # not exactly
  expect_null(exact_period(past, numeric(120)))
  expect_null(exact_period(past^2, wave[past]))
  expect_null(exact_period(past[1:23], wave[1:23])) # less than two periods
  fits <- list(pfdtc(y ~ t, data.frame(t = past, y = wave[past])),
               pfdtc(stats::ts(wave[past], start = 2000, frequency = 12)))
  ahead <- list(data.frame(t = 121:144), data.frame(time = 2010 + 0:23 / 12))
  for (i in 1:2) {
    expect_match(fits[[i]]$kernels$kernel[fits[[i]]$kernels$chosen], "season")
    expect_lt(max(abs(predict(fits[[i]], ahead[[i]]) - wave[121:144])), 0.01) # the smallest noise sd is 0.0007
  }
})

test_that("many rows choose a season by some of them", {
  only_nightly()
  d <- with_seed(2, {
    time <- as.POSIXct("2024-01-01", tz = "UTC") + 3600 * (0:699)
    data.frame(time, y = sinpi(2 * (0:699) / 24) + stats::rnorm(700) / 5)
  })
  fit <- pfdtc(y ~ time, d, kernel = NULL)
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "season of a day")
  expect_lt(abs(sqrt(fit$noise) - 0.2), 0.03) # the sd of an sd of 700 rows is 0.005
})

test_that("priors of a season do not fade with the rows", {
  strength <- function(n) {
    d <- months(n)
    data <- data_from_formula(call("pfdtc", formula = y ~ time, data = d), environment())
    asked <- check_settings("pfdtc", quote(pfdtc()), formula_arguments(list(), pfdtc.default))
    s <- first_plan(data, asked)$learn
    problem <- learning_problem(learning_rows(data, s), s, "season1:matern12")
    problem$prior(problem$middle)$information[problem$free]
  }
  expect_equal(strength(400), strength(100))
})

test_that("a ts is fitted along its time, and forecast() is predict() at the times ahead", {
  kernel <- kernel_periodic(1, 1, period = 1) + kernel_matern(3 / 2, 2, 1)
  y <- stats::ts(months(48)$y, start = c(2001, 3), frequency = 12)
  fit <- pfdtc(y, kernel = kernel, noise = 0.01, hyper = "fixed")
  d <- data.frame(time = as.numeric(time(y)), y = as.numeric(y))
  plain <- pfdtc(y ~ time, d, kernel = kernel, noise = 0.01, hyper = "fixed")
  expect_identical(coef(fit), coef(plain))
  skip_if_not_installed("generics")
  ahead <- generics::forecast(fit, h = 5, level = 90)
  if (!isNamespaceLoaded("forecast")) {
    shown <- utils::capture.output(print(ahead))
    expect_match(shown, "Forecast +Lower 90 +Upper 90", all = FALSE)
    expect_match(shown, format(signif(ahead$upper[5], 4)), fixed = TRUE, all = FALSE)
    expect_lt(length(shown), 12L)
  }
  want <- predict(plain, data.frame(time = 2001 + (2 + 48:52) / 12), interval = "prediction", level = 0.9)
  expect_equal(cbind(ahead$mean, ahead$lower, ahead$upper), want, ignore_attr = TRUE, tolerance = 1e-9)
  expect_input_error(predict(fit, h = 6), "h") # h must not match `hyper_uncertainty`
  expect_match(tryCatch(predict(fit, h = 6), error = conditionMessage), "forecast")
  expect_equal(stats::tsp(ahead$mean), c(2001 + 50 / 12, 2001 + 54 / 12, 12))
  expect_equal(as.numeric(ahead$fitted + ahead$residuals), as.numeric(y))
  grown <- pfdtc(exp(y), kernel = kernel, noise = 0.01, hyper = "fixed", transform = "log")
  ahead <- generics::forecast(grown, h = 5)
  want <- predict(grown, data.frame(time = 2001 + (2 + 48:52) / 12), type = "median")
  expect_equal(as.numeric(ahead$mean), unname(want), tolerance = 1e-9)
  days <- data.frame(day = as.Date("2024-01-01") + c(0:3, 5:9), y = sin(1:9))
  daily <- pfdtc(y ~ day, days, kernel = kernel_se(3, 1), noise = 0.01, hyper = "fixed")
  ahead <- generics::forecast(daily, h = 2)
  expect_equal(as.numeric(ahead$mean), unname(predict(daily, data.frame(day = as.Date(c("2024-01-11", "2024-01-12"))))))
  expect_identical(which(is.na(ahead$x)), 5L)
  excluded <- update(daily, data = transform(days, y = replace(y, 3, NA)), na.action = na.exclude)
  ahead <- generics::forecast(excluded, h = 2)
  expect_identical(as.numeric(ahead$fitted), unname(append(fitted(excluded), NA, 4)))
  expect_identical(as.numeric(ahead$residuals), unname(append(residuals(excluded), NA, 4)))
  if (!isNamespaceLoaded("forecast")) expect_output(print(ahead), "2024-01-11 .*\n *2024-01-12 ")
  hours <- data.frame(at = as.POSIXct("2024-01-01 21:00", tz = "UTC") + 3600 * 0:30, y = sin(0:30))
  hourly <- pfdtc(y ~ at, hours, kernel = kernel_se(0.1, 1), noise = 0.01, hyper = "fixed")
  ahead <- generics::forecast(hourly, h = 3)
  if (!isNamespaceLoaded("forecast")) expect_output(print(ahead), "03 04:00:00 UTC .*03 05:00:00 UTC .*06:00:00")
  expect_error(generics::forecast(pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")),
               class = "pfdtc_error_input", "regular")
  d$time <- 1
  once <- suppressMessages(pfdtc(y ~ time, d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed"))
  expect_no_warning(expect_input_error(generics::forecast(once), "a single time"))
  expect_error(pfdtc(cbind(y, y)), class = "pfdtc_error_input", "2 series")
})

test_that("months, quarters and years of dates are regular, and forecasts continue them", {
  skip_if_not_installed("generics")
  first <- as.Date("2001-02-01")
  for (case in list(list("month", 0, 12), list("month", 1, 12), list("quarter", 0, 4), list("5 months", 0, 2.4),
                    list("year", 0, 1))) {
    date <- seq(first, by = case[[1L]], length.out = 22L) - case[[2L]] # or the last day of each month
    d <- data.frame(date = date, y = sin(1:22))
    unit <- stats::median(as.numeric(diff(date)))
    fit <- pfdtc(y ~ date, d[-c(7, 21, 22), ], kernel = kernel_se(3 * unit, 1), noise = 0.01, hyper = "fixed")
    ahead <- generics::forecast(fit, h = 2)
    expect_equal(as.numeric(ahead$mean), unname(predict(fit, d[21:22, ])), tolerance = 1e-12)
    expect_equal(stats::frequency(ahead$mean), case[[3L]])
    expect_identical(which(is.na(ahead$x)), 7L)
  }
  fit <- pfdtc(y ~ date, data.frame(date = first + c(0, 28, 61, 99), y = 1:4), kernel = kernel_se(40, 1), noise = 0.01,
               hyper = "fixed")
  expect_input_error(generics::forecast(fit), "regular")
})

test_that("a season is a candidate with groups and with a given mean", {
  d <- months(80)
  d <- with_seed(5, {
    d <- rbind(cbind(d, g = "a"), cbind(d, g = "b"), cbind(d, g = "c"))
    d$g <- factor(d$g)
    d$y <- d$y + c(a = -1, b = 0, c = 2)[as.character(d$g)] + stats::rnorm(nrow(d)) / 20
    d
  })
  old <- d$time <= 2000 + 60 / 12
  fit <- pfdtc(y ~ time + (1 | g), d[old & stats::runif(nrow(d)) < 0.8, ])
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "season of a year")
  smooth <- Filter(Negate(is_group), as_sum(fit$kernel)$leaves)
  expect_identical(unique(lapply(smooth, `[[`, "of")), list("time")) # none reads the group's column
  expect_lt(sqrt(mean((predict(fit, d[!old, ]) - d$y[!old])^2)), 0.3) # the noise has sd 0.11, the season 0.75
  fit <- pfdtc(y ~ time, d[old & d$g == "a", ], mean = ~ time)
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "season of a year")
  expect_true(has_profile(fit$kernel, "mean"))
  expect_identical(coef(fit)[["periodic(time).period"]], 1)
})

test_that("predictions that are cut below a growing trend have a message, and medians have none", {
  fit <- with_seed(1, pfdtc(datasets::AirPassengers, transform = "auto"))
  expect_true(is_cut(fit$transform))
  new <- data.frame(time = 1962 + 6:7 / 12)
  expect_message(predict(fit, new), "of 2 rows is cut", class = "pfdtc_message_cut")
  expect_no_message(predict(fit, new, type = "median"))
  expect_no_message(predict(fit, data.frame(time = 1950:1955)))
  skip_if_not_installed("generics")
  expect_no_message(generics::forecast(fit)) # its means are medians
})

test_that("a season is a candidate for counts, with its period held and its own priors", {
  d <- months(90)
  d$y <- with_seed(6, stats::rpois(90, exp(d$y - d$time / 10 + 1.5)))
  fit <- pfdtc(y ~ time, d, family = poisson())
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "season of a year")
  expect_match(fit$because[["kernel"]], "a season .* above that of the best kernel without these terms")
  expect_identical(coef(fit)[["periodic(time).period"]], 1)
  expect_identical(c(nrow(vcov(fit)), fit$df), rep(length(coef(fit)) - 1L, 2))
  truth <- 1.5 + cospi(2 * d$time) + 0.3 * sinpi(4 * d$time)
  expect_lt(sqrt(mean((predict(fit, type = "link") - truth)^2)), 0.2) # the plain kernel has 0.25
  prior <- laplace_prior(fit$kernel, matrix(d$time), 1, TRUE)
  table <- kernel_parameters(fit$kernel)
  variances <- exp(prior$middle[table$what == "variance"]) / laplace_priors$variance
  expect_equal(variances, unname(season_variances[c("trend", "cycle", "rest")]))
})

test_that("a fit of a series prints its name, and update() changes its arguments", {
  fit <- pfdtc(ldeaths, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed", transform = "none")
  expect_match(paste(capture.output(print(fit)), collapse = "\n"), "pfdtc(ldeaths, ", fixed = TRUE)
  expect_equal(update(fit, noise = 0.2)$noise, 0.2)
})
