# Tests that plot_certificate() draws the results of certify() and of the exact GP.

wave <- with_seed(3, {
  x <- sort(stats::runif(60, 0, 6))
  data.frame(x = x, y = sin(2 * x) + 0.3 * stats::rnorm(60))
})
wave_given <- list(y ~ x, wave, kernel = kernel_se(0.7, 1), noise = 0.09, hyper = "fixed")
wave_exact <- do.call(gp_exact, wave_given)
wave_fit <- function(by = "gp_dtc", m = 5, ...) do.call(by, c(wave_given, m = m, list(...)))
referenced <- function(fit, ...) {
  fit$reference <- with_seed(1, reference(fit, ...))
  fit
}

# Certificates hold for any groups of rows; the figure's have the groups of seed 1.
certified <- function(fit, ...) with_seed(1, certify(fit, ...))

expect_inside <- function(shown) {
  expect_true(all(shown$mean_lower <= shown$exact & shown$exact <= shown$mean_upper))
  expect_true(all(shown$sd_lower <= shown$se.exact & shown$se.exact <= shown$sd_upper))
  expect_true(all(shown$lwr_certified <= shown$lwr_exact & shown$upr_exact <= shown$upr_certified))
}

test_that("curves are those of predict(), certify() and the exact GP", {
  fit <- referenced(wave_fit("pfdtc", control = fixed_control()))
  for (effort in c("reference", "fast", "tight")) {
    shown <- draw_nowhere(plot_certificate(fit, effort = effort, n = 31, level = 0.9))
    new <- data.frame(x = shown$value)
    expect_equal(range(shown$value), range(wave$x))
    expect_identical(nrow(shown), 31L)
    f <- predict(fit, new, se.fit = TRUE, interval = "credible", level = 0.9)
    expect_equal(as.matrix(shown[c("fit", "lwr", "upr")]), f$fit, ignore_attr = TRUE)
    expect_equal(shown$se.fit, unname(f$se.fit))
    ends <- c("mean_lower", "mean_upper", "sd_lower", "sd_upper")
    expect_equal(shown[ends], certified(fit, new, effort)[ends], ignore_attr = TRUE)
    e <- predict(wave_exact, new, se.fit = TRUE, interval = "credible", level = 0.9)
    expect_equal(as.matrix(shown[c("exact", "lwr_exact", "upr_exact")]), e$fit, ignore_attr = TRUE)
    expect_equal(shown$se.exact, unname(e$se.fit))
    expect_inside(shown)
  }
  by_default <- draw_nowhere(plot_certificate(fit, n = 31, level = 0.9))
  band <- with_seed(1, predict(fit, new, interval = "credible", level = 0.9, certified = TRUE))
  expect_equal(as.matrix(by_default[c("lwr_certified", "upr_certified")]), band[, -1], ignore_attr = TRUE)
  at <- draw_nowhere(plot_certificate(fit, data.frame(x = c(4, 1, 1, NA, 2))))
  expect_identical(at$value, c(1, 2, 4))
  expect_equal(at$fit, unname(predict(fit, data.frame(x = c(1, 2, 4)))))
})

test_that("the exact GP is computed for few rows, and not if `exact` excludes it", {
  fit <- referenced(wave_fit())
  found <- plot_certificate(fit, n = 11, plot = FALSE)
  expect_equal(plot_certificate(fit, n = 11, exact = wave_exact, plot = FALSE), found)
  expect_true(all(is.na(plot_certificate(fit, n = 11, exact = FALSE, plot = FALSE)[c("exact", "se.exact")])))
  expect_false("actual" %in% plot_certificate(list(fit), exact = FALSE, plot = FALSE)$effort)
  x <- seq(0, 30, length.out = 501)
  many <- referenced(gp_dtc(x, sin(x), m = 8, kernel = kernel_se(2, 1), noise = 0.1, hyper = "fixed"), m2 = 20)
  expect_true(all(is.na(plot_certificate(many, n = 5, plot = FALSE)$exact)))
  asked <- plot_certificate(many, n = 5, exact = TRUE, plot = FALSE)
  exact <- gp_exact(x, sin(x), kernel = many$kernel, noise = 0.1, hyper = "fixed")
  expect_equal(asked$exact, predict(exact, asked$value))
  expect_inside(asked)
})

test_that("certificates of several inputs are drawn on the slices of plot(), with levels and single values", {
  data <- small_data(20)
  fit <- referenced(fit_mixed(y ~ a + f + l, data))
  shown <- draw_nowhere(plot_certificate(fit, n = 7))
  slices <- draw_nowhere(plot(fit, n = 7))
  same <- c("input", "value", "label", "fit", "se.fit", "lwr", "upr")
  expect_equal(shown[same], slices[same], ignore_attr = TRUE)
  expect_inside(shown)
  one <- draw_nowhere(plot_certificate(fit, inputs = "f", at = data[4, ], main = "f", ylim = c(-3, 3)))
  expect_equal(one$fit, unname(predict(fit, data.frame(f = one$label, data[4, c("a", "l")], row.names = NULL))))
  data$constant <- 3
  constant <- referenced(fit_mixed(y ~ a + constant, data))
  expect_identical(nrow(draw_nowhere(plot_certificate(constant, inputs = "constant", points = FALSE))), 1L)
})

test_that("errors over m are the medians and maxima of certify() and of the actual ones", {
  fits <- lapply(c(3, 5, 8), function(m) referenced(wave_fit(m = m)))
  names(fits) <- c("few", "some", "")
  new <- data.frame(x = seq(-1, 7, length.out = 23))
  shown <- draw_nowhere(plot_certificate(fits, newdata = new))
  expect_named(shown, c("fit", "method", "m", "effort", "what", "median", "max"))
  expect_identical(unique(shown$fit), c("few", "some", "gp_dtc, m = 8"))
  expect_identical(unique(shown$m), c(3L, 5L, 8L))
  exact <- predict(wave_exact, new, se.fit = TRUE)
  for (i in seq_along(fits)) {
    one <- shown[shown$m == fits[[i]]$m, ]
    row <- function(effort, what) unname(unlist(one[one$effort == effort & one$what == what, c("median", "max")]))
    of <- function(e) c(stats::median(e), max(e))
    p <- predict(fits[[i]], new, se.fit = TRUE)
    expect_equal(row("actual", "mean"), of(abs(p$fit - exact$fit)), tolerance = 1e-10)
    expect_equal(row("actual", "sd"), of(abs(p$se.fit - exact$se.fit)), tolerance = 1e-10)
    for (effort in c("fast", "reference", "tight")) {
      c <- certified(fits[[i]], new, effort)
      expect_equal(row(effort, "mean"), of(c$mean_error))
      expect_equal(row(effort, "sd"), of(pmax(c$sd - c$sd_lower, c$sd_upper - c$sd)))
      for (what in c("mean", "sd")) expect_true(all(row("actual", what) <= row(effort, what)))
    }
  }
  some <- draw_nowhere(plot_certificate(fits[1:2], new, effort = c("tight", "fast"), exact = wave_exact, log = ""))
  expect_identical(unique(some$effort), c("actual", "tight", "fast"))
})

test_that("without newdata errors are over the training rows, each as often as it occurs", {
  fits <- lapply(2:3, function(m) {
    gp_vfe(dist ~ speed, cars, m = m, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed",
           control = fixed_control())
  })
  expect_false(is.null(fits[[1]]$data$group))
  shown <- plot_certificate(fits, effort = "reference", plot = FALSE)
  for (fit in fits) {
    c <- certified(fit, reference = with_seed(1, reference(fit)))
    one <- shown[shown$m == fit$m & shown$what == "mean" & shown$effort == "reference", ]
    expect_equal(c(one$median, one$max), c(stats::median(c$mean_error), max(c$mean_error)))
  }
})

test_that("certificates of SoR, FITC, a subsample and the exact posterior have figures", {
  for (by in c("gp_sor", "gp_fitc", "gp_subsample")) {
    shown <- draw_nowhere(plot_certificate(referenced(with_seed(2, wave_fit(by, m = 9))), n = 21))
    expect_inside(shown)
  }
  itself <- draw_nowhere(plot_certificate(wave_exact, n = 21))
  expect_equal(itself$fit, itself$exact)
  expect_inside(itself)
  all <- list(referenced(wave_fit("gp_sor")), referenced(wave_fit()), wave_exact)
  shown <- draw_nowhere(plot_certificate(all))
  expect_identical(unique(shown$method), c("gp_sor", "gp_dtc", "gp_exact"))
  none <- shown[shown$method == "gp_exact" & shown$effort == "actual", ]
  expect_identical(c(none$median, none$max), c(0, 0, 0, 0))           # drawn although the axis is logarithmic
  expect_identical(unique(shown$m[shown$method == "gp_exact"]), 60L)
  alone <- draw_nowhere(plot_certificate(list(wave_exact), effort = "fast"))
  expect_identical(nrow(alone), 4L)
})

test_that("a fit without its data needs a reference, and its figure lacks the parts that need data", {
  slim <- wave_fit(keep_data = FALSE)
  kept <- with_seed(1, reference(wave_fit()))
  shown <- draw_nowhere(plot_certificate(slim, reference = kept))
  expect_true(all(is.na(shown$exact)))
  expect_inside(draw_nowhere(plot_certificate(slim, exact = wave_exact, reference = kept)))
  new <- data.frame(x = 1:5)
  some <- draw_nowhere(plot_certificate(list(slim, wave_fit(m = 8)), new, reference = kept))
  expect_setequal(some$effort[some$m == 5], c("actual", "reference"))
  expect_setequal(some$effort[some$m == 8], c("actual", "fast", "reference", "tight"))
  only_actual <- plot_certificate(list(slim), exact = do.call(gp_exact, c(wave_given, keep_data = FALSE)), plot = FALSE)
  expect_identical(only_actual$effort, c("actual", "actual"))
  e <- abs(predict(slim, wave) - predict(wave_exact, wave))
  expect_equal(only_actual$max[1], max(e))
  expect_input_error(plot_certificate(slim), "reference")
  expect_input_error(plot_certificate(slim, effort = "fast", reference = kept), "fit")
  expect_input_error(plot_certificate(slim, exact = TRUE, reference = kept), "fits")
  expect_input_error(plot_certificate(list(slim), reference = kept), "newdata")
  expect_input_error(plot_certificate(list(slim), new), "fits")
})

test_that("certificates without an end are drawn", {
  fit <- referenced(wave_fit())
  data <- plot_certificate(fit, n = 9, plot = FALSE)
  data[3:4, c("mean_lower", "lwr_certified")] <- -Inf
  data[3:4, c("mean_upper", "upr_certified")] <- Inf
  expect_silent(draw_nowhere(draw_figure(figure_of_table(data))))
  range <- figure_of_table(data)$panels[[1L]]$args$ylim
  expect_true(all(is.finite(range)))
  errors <- plot_certificate(list(fit), plot = FALSE)
  errors$max[3:4] <- Inf
  errors$median[errors$what == "sd"] <- 0
  errors$max[errors$what == "sd"] <- Inf
  expect_silent(draw_nowhere(draw_figure(figure_of_table(errors))))
})

test_that("par() and the random numbers are as before", {
  fit <- wave_fit()
  several <- list(fit, wave_fit(m = 7))
  expect_graphics_kept({
    suppressMessages(plot_certificate(fit, n = 9))
    plot_certificate(several)
  })
})

test_that("autoplot() draws the same", {
  skip_on_cran()
  skip_if_not_installed("ggplot2")
  fit <- referenced(wave_fit())
  shown <- plot_certificate(fit, n = 9, plot = FALSE)
  built <- ggplot2::ggplot_build(ggplot2::autoplot(shown))
  expect_equal(lapply(built$data[1:2], function(d) d$ymax), list(shown$mean_upper, shown$upr))
  expect_silent(draw_nowhere(print(ggplot2::autoplot(shown))))
  mixed <- plot_certificate(referenced(fit_mixed(y ~ a + f)), n = 5, plot = FALSE)
  expect_silent(draw_nowhere(print(ggplot2::autoplot(mixed))))
  errors <- plot_certificate(list(fit, referenced(wave_fit(m = 8)), wave_exact), plot = FALSE)
  expect_silent(draw_nowhere(print(ggplot2::autoplot(errors))))
  built <- ggplot2::ggplot_build(ggplot2::autoplot(errors))
  points <- do.call(rbind, lapply(Filter(function(d) !is.null(d$shape), built$data), `[`, c("x", "y", "shape")))
  points <- points[!is.na(points$y), ]
  positive <- c(errors$median, errors$max)
  expect_equal(sort(points$y[points$shape != 6]), sort(log10(positive[positive > 0])))
  expect_identical(sum(points$shape == 6), 4L)                         # the zeroes of the exact fit
  expect_input_error(ggplot2::autoplot(shown, colour = 1), "colour")
  expect_input_error(ggplot2::autoplot(shown[1:3]), "object")
})

test_that("arguments that cannot be drawn are refused by name", {
  draw_nowhere({
    fit <- referenced(wave_fit())
    expect_input_error(plot_certificate(), "fits")
    expect_input_error(plot_certificate(wave), "fits")
    expect_input_error(plot_certificate(list()), "fits")
    expect_input_error(plot_certificate(fit, fit), "plot_certificate(list(<fit>")
    expect_input_error(plot_certificate(fit, exact = fit), "exact")
    expect_input_error(plot_certificate(fit, exact = 3), "exact")
    expect_input_error(plot_certificate(fit, exact = NA), "exact")
    other <- gp_exact(y ~ x, wave, kernel = kernel_se(0.7, 1), noise = 0.1, hyper = "fixed")
    expect_input_error(plot_certificate(fit, exact = other), "hyperparameters")
    expect_input_error(plot_certificate(list(fit, other)), "fits[[2]]")
    expect_input_error(plot_certificate(fit, reference = other), "reference")
    expect_input_error(plot_certificate(fit, effort = "slow"), "effort")
    expect_input_error(plot_certificate(fit, effort = c("fast", "tight")), "effort")
    expect_input_error(plot_certificate(list(fit), effort = c("fast", "slow")), "effort")
    expect_input_error(plot_certificate(list(fit), effort = character()), "effort")
    expect_input_error(plot_certificate(fit, level = 95), "level")
    expect_input_error(plot_certificate(fit, n = 1), "n")
    expect_input_error(plot_certificate(fit, points = NA), "points")
    expect_input_error(plot_certificate(fit, plot = "no"), "plot")
    expect_input_error(plot_certificate(fit, inputs = "z"), "inputs")
    expect_input_error(plot_certificate(fit, data.frame(x = NA_real_)), "newdata")
    expect_input_error(plot_certificate(list(fit), data.frame(x = NA_real_)), "newdata")
    expect_input_error(plot_certificate(fit_mixed(), small_data(3)), "newdata")
  })
})

# ---- classes and counts ---------------------------------------------------------------------------------------------

test_that("for classes and counts the certified interval contains the exact GP's Laplace posterior, on both scales", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  for (family in c("logit", "nb", "student")) {
    p <- laplace_problem_of(family, profile = "matern32", seed = 4)
    if (family == "student") p$theta <- 2
    fit <- laplace_fit_of(p, 6)
    for (type in c("response", "link")) {
      d <- plot_certificate(fit, n = 12, type = type)
      room <- 1e-8 * (1 + abs(d$exact))
      expect_true(all(d$mean_lower <= d$exact + room & d$exact <= d$mean_upper + room))
      expect_true(all(d$sd_lower <= d$se.exact * (1 + 1e-8) & d$se.exact <= d$sd_upper * (1 + 1e-8)))
      expect_true(all(d$lwr_certified <= d$lwr_exact + room & d$upr_exact <= d$upr_certified + room))
    }
    new <- plot_certificate(fit, n = 12, inputs = 1L, at = p$x[1, , drop = FALSE])
    at <- cbind(new$value, p$x[1, 2])
    truth <- ref_laplace(p$x, p$sites, family, p$kernel, at, theta = p$theta)
    expect_equal(new$se.exact, sqrt(truth$var), tolerance = 1e-5)
    expect_equal(new$fit, unname(predict(at_mode(fit), at, type = "response"))) # certificates are about the mode
  }
  several <- lapply(c(3, 6, 12), function(m) laplace_fit_of(p, m))
  d <- plot_certificate(several)
  worst <- function(what) d$max[d$effort == what & d$what == "mean"]
  expect_true(all(worst("actual") <= worst("reference") + 1e-9))
  expect_true(all(diff(worst("reference")) < 0))
  p$theta <- 3
  expect_input_error(plot_certificate(c(several, list(laplace_fit_of(p, 6)))), "likelihood")
})

test_that("the result of certify() has a figure of its rows", {
  fit <- referenced(wave_fit())
  x <- certified(fit)
  expect_identical(draw_nowhere(plot(x))$mean_lower, x$mean_lower)
  expect_silent(draw_nowhere(plot(x[2:9, ])))
  x$mean_lower[1] <- -Inf
  expect_silent(draw_nowhere(plot(x)))
  skip_if_not_installed("ggplot2")
  built <- ggplot2::ggplot_build(ggplot2::autoplot(certified(fit)))
  shown <- certified(fit)
  expect_equal(built$data[[2]]$y, shown$mean_lower[order(shown$mean)])
  expect_input_error(ggplot2::autoplot(x["mean"]), "object")
})
