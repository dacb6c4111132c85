# Tests the tables that figures of fits with classes, counts and outliers draw.

counted_data <- function() {
  with_seed(3, {
    d <- data.frame(x = stats::runif(50, 0, 6), g = factor(rep(c("a", "b"), 25)), e = stats::runif(50, 1, 4))
    d$class <- factor(ifelse(stats::runif(50) < stats::plogis(2 * sin(d$x)), "yes", "no"))
    d$trials <- rep(c(1, 3), 25)
    d$hits <- stats::rbinom(50, d$trials, stats::plogis(sin(d$x)))
    d$n <- stats::rpois(50, d$e * exp(sin(d$x)))
    d
  })
}

fixed_fit <- function(formula, family, d = counted_data(), ...) {
  pfdtc(formula, d, family = family, kernel = kernel_se(1, 1), hyper = "fixed", center = FALSE, ...)
}

test_that("curves are the results of predict() at the same inputs, on both scales", {
  fit <- fixed_fit(class ~ x, binomial(), m = 4)
  exact <- fixed_fit(class ~ x, binomial())
  for (type in c("response", "link")) {
    curve <- draw_nowhere(plot(fit, n = 15, level = 0.8, type = type))
    p <- predict(fit, data.frame(x = curve$value), type = type, se.fit = TRUE, interval = "credible", level = 0.8)
    expect_equal(as.matrix(curve[c("fit", "lwr", "upr")]), p$fit, ignore_attr = TRUE)
    expect_equal(curve$se.fit, unname(p$se.fit))
    sure <- draw_nowhere(plot(fit, n = 15, level = 0.8, type = type, certified = TRUE))
    p <- predict(fit, data.frame(x = curve$value), type = type, interval = "credible", level = 0.8, certified = TRUE)
    expect_equal(as.matrix(sure[c("fit", "lwr", "upr")]), p, ignore_attr = TRUE)
    truth <- predict(at_mode(exact), data.frame(x = curve$value), type = type, interval = "credible", level = 0.8)
    expect_true(all(sure$lwr <= truth[, "lwr"] + 1e-7 & sure$upr >= truth[, "upr"] - 1e-7))
    truth <- predict(exact, data.frame(x = curve$value), type = type, interval = "credible", level = 0.8)
    expect_gt(max(curve$lwr - truth[, "lwr"]), 1e-3) # the fit's own band is narrower
  }
  map <- pfdtc(n ~ x + e, counted_data(), family = poisson(), kernel = kernel_se(c(1, 2), 1), hyper = "fixed")
  for (type in c("response", "link")) {
    grid <- draw_nowhere(plot(map, which = "map", n = 5, type = type))
    p <- predict(map, grid, type = type, se.fit = TRUE)
    expect_equal(grid$fit, unname(p$fit))
    expect_equal(grid$se.fit, unname(p$se.fit))
  }
})

test_that("points are shares, rates over exposure, or numbers, and there are none on the link scale", {
  d <- counted_data()
  points <- function(fit, type = "response") slices(fit, NULL, NULL, 0.9, 60, type = type)$points
  shares <- points(pfdtc(cbind(hits, trials - hits) ~ x + g, d, family = binomial(), kernel = kernel_se(c(1, 1, 1), 1),
                         hyper = "fixed"))
  expect_equal(shares$y, rep(d$hits / d$trials, 2))
  rates <- fixed_fit(n ~ x + offset(log(e)), poisson())
  expect_equal(points(rates)$y, d$n / d$e)
  expect_null(points(rates, "link"))
  two <- pfdtc(n ~ x + g + offset(log(e)), d, family = poisson(), kernel = kernel_se(c(1, 1, 1), 1), hyper = "fixed")
  along <- points(two)
  along <- along[along$input == "x", ]
  held <- data.frame(x = d$x, g = names(which.max(table(d$g))), e = 1)
  slice <- predict(two, held, type = "response")
  # The slice is interpolated.
  expect_equal(along$y, unname(d$n * slice / predict(two, type = "response")), tolerance = 0.02)
  d$number <- sin(d$x)
  far <- fixed_fit(number ~ x, student(4, 0.2), d)
  expect_equal(points(far)$y, d$number)
  expect_equal(points(far, "link")$y, d$number)
})

test_that("censored times are open circles, and the axis has the name of the time", {
  d <- with_seed(4, data.frame(x = seq(0, 2, length.out = 30), time = stats::rexp(30) + 0.1))
  d$seen <- rep(c(1, 0, 1), 10)
  fit <- pfdtc(survival::Surv(time, seen) ~ x, d, family = weibull(), kernel = kernel_se(1, 1), hyper = "fixed")
  s <- slices(fit, NULL, NULL, 0.95, 20)
  expect_identical(s$points$pch, ifelse(d$seen == 1, 16, 1))
  expect_equal(s$points$y, d$time)
  expect_identical(mark_keys(s)$text[1:2], c("data", "censored"))
  expect_identical(slice_label(fit, "response"), "mean of time")
  both <- replace(d, "z", d$x^2)
  skip_if_not_installed("ggplot2")
  drawn <- ggplot2::autoplot(update(fit, . ~ . + z, data = both, kernel = kernel_se(c(1, 1), 1)))
  expect_s3_class(ggplot2::ggplot_build(drawn), "ggplot_built")
})

test_that("checks use normal quantiles of the randomised PIT", {
  w <- rep(c(1, 0), c(45, 5))
  fit <- pfdtc(n ~ x + offset(log(e)), counted_data(), family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed",
               weights = w)
  tables <- with_seed(1, draw_nowhere(plot(fit, which = "checks")))
  expect_identical(names(tables), checks_drawn)
  pit <- with_seed(1, residuals(fit, type = "pit"))
  expect_equal(tables$pit$pit, unname(pit[!is.na(pit)]), tolerance = 1e-12)
  expect_equal(tables$residuals$mean, unname(predict(fit, type = "loo"))[1:45])
  expect_equal(tables$observed$observed, counted_data()$n[1:45])
})

test_that("terms and slopes of f are on the scale of the link", {
  d <- counted_data()
  kernel <- kernel_se(1, 1, inputs = ~ x) + kernel_se(1.5, 0.5, inputs = ~ e)
  fit <- pfdtc(n ~ x + e, d, family = poisson(), kernel = kernel, hyper = "fixed")
  terms <- predict(fit, type = "terms")
  expect_equal(rowSums(terms) + attr(terms, "constant"), predict(fit, type = "link"), tolerance = 1e-8)
  curve <- draw_nowhere(plot(fit, terms = TRUE, n = 5))
  expect_true(all(is.finite(curve$fit)))
  at <- function(x) predict(fit, data.frame(x = x, e = 2), type = "link")
  slope <- predict(fit, data.frame(x = 1:4, e = 2), type = "derivative", wrt = "x")
  expect_equal(slope, (at(1:4 + 1e-4) - at(1:4 - 1e-4)) / 2e-4, tolerance = 1e-5)
})

test_that("the axis names what is drawn, and ggplot2 has the same table", {
  fit <- fixed_fit(class ~ x, binomial())
  expect_identical(slice_label(fit, "response"), "P(class = yes)")
  expect_identical(slice_label(fit, "link"), "f (logit scale of class)")
  expect_identical(slice_label(fixed_fit(n ~ x, poisson()), "response"), "mean of n")
  exposed <- fixed_fit(n ~ x + offset(log(e)), poisson()) # figures have no offsets
  expect_identical(slice_label(exposed, "response"), "rate of n")
  skip_if_not_installed("ggplot2")
  g <- ggplot2::autoplot(fit, type = "link")
  expect_identical(g$labels$y, "f (logit scale of class)")
  draw_nowhere(print(g))
})

test_that("the prediction band of a fit with groups is that of a new level, and the legend says so", {
  d <- with_seed(3, data.frame(x = rep(seq(0, 1, length.out = 8), 5), g = gl(5, 8)))
  d$y <- with_seed(4, d$x + 2 * as.integer(d$g) + stats::rnorm(40, 0, 0.2))
  fit <- gp_exact(y ~ x, d, kernel = kernel_se(0.5, 1, "x") + kernel_group(~ g, ~ 1 + x, variance = 4, scale = 0.3,
                                                                             correlated = FALSE),
                  noise = 0.04, hyper = "fixed")
  s <- slices(fit, NULL, NULL, 0.9, 5)
  new <- suppressMessages(predict(fit, data.frame(x = s$curves$value, g = "new"), interval = "prediction", level = 0.9))
  expect_equal(unname(as.matrix(s$curves[c("fit", "lwr_y", "upr_y")])), unname(new), tolerance = 1e-10)
  expect_identical(s$of, c("f without group effects", "y of a new level"))
})

test_that("axes without limits contain everything drawn except ticks and lines with a slope", {
  layers <- c(layer("dots", 1:3, c(2, 9, 4)), layer("segment", 0, -1, x1 = 5, y1 = 3), layer("rule", NULL, 12),
              layer("tick", 100), layer("rule", NULL, -50, slope = 1))
  f <- figure(list(list(args = list(), layers = layers)), NULL)
  expect_identical(f$panels[[1L]]$args, list(xlim = c(0, 5), ylim = c(-1, 12)))
  logarithmic <- figure(list(list(args = list(log = "y", xlim = 0:1), layers = layers)), NULL)$panels[[1L]]$args
  expect_identical(logarithmic$ylim, c(2, 12))
  expect_identical(logarithmic$xlim, 0:1)
})

test_that("a legend gets another row instead of smaller letters", {
  draw_nowhere({
    one <- legend_keys(rep("mean", 4), 1)
    expect_identical(rows_of_keys(one), 1)
    expect_gt(rows_of_keys(legend_keys(strrep("long ", 1:12), 1)), 1)
  })
})

test_that("a map has the same colours with ggplot2, and none where the mean is unknown", {
  skip_if_not_installed("ggplot2")
  fit <- fit_mixed(y ~ a + b, small_data(30))
  s <- map_table(fit, NULL, NULL, 8, TRUE, "response")
  s$unknown <- rep(c(TRUE, FALSE), c(5, 59))
  layer <- map_figure(s)$panels[[1L]]$layers[[1L]]
  cells <- ggplot_layer(list(list(data = data.frame(layer[c("x", "y", "z")]),
                                  look = layer[c("verb", "breaks", "colours")])))
  fill <- cells$aes_params$fill[order(s$map$fit[6:64])]
  expect_length(fill, 59)
  expect_gt(length(unique(fill)), 2)
  expect_identical(unique(fill), intersect(layer$colours, fill)) # higher values have later colours
  expect_silent(draw_nowhere(print(ggplot2::autoplot(fit, which = "map", n = 8))))
})

test_that("a map whose mean is unknown everywhere is blank, and its sd is drawn", {
  fit <- fit_mixed(y ~ a + b, small_data(30))
  s <- map_table(fit, NULL, NULL, 8, TRUE, "response")
  s$unknown[] <- TRUE
  panels <- map_figure(s)$panels
  expect_identical(vapply(panels, function(panel) all(is.na(panel$layers[[1L]]$z)), NA), c(TRUE, FALSE))
  expect_silent(draw_nowhere(draw_figure(map_figure(s), known = character())))
})

test_that("the axis contains means and points, and at most as much again of wide bands", {
  s <- list(curves = data.frame(fit = c(1, 2, 3), lwr = c(-100, 1, 2.5), upr = c(100, 3, 3.5), lwr_y = c(0.5, 0, 2),
                                upr_y = c(1.5, 4, 4.5)), points = data.frame(y = c(0, 3)))
  expect_identical(slice_range(s, "credible"), c(-3, 6)) # 0 to 3, and 3 on either side
  expect_identical(slice_range(s, "both"), c(0, 4.5))    # these bands are within this
  flat <- list(curves = data.frame(fit = 0, lwr = c(-9, -1, -1), upr = c(9, 1, 1)))
  expect_identical(slice_range(flat, "credible"), c(-2, 2)) # the median width
})

test_that("titles of axes fit beside their panel", {
  draw_nowhere({
    graphics::par(mfrow = c(1, 3), mar = c(3, 6, 1, 1))
    graphics::plot.new()
    room <- graphics::par("fin") - abs(diff(graphics::par("mai"), 2))[2:1]
    for (n in c(4, 260)) {
      title <- substr(strrep("a long title ", 20), 1, n)
      for (side in 1:2) {
        size <- title_size(replace(c("", ""), side, title))
        expect_lt(graphics::strwidth(title, "inches", cex = size), room[side])
        expect_identical(size == 1, n == 4)
      }
    }
  })
})

test_that("the legend of a band names the mean where that is not f", {
  of <- function(..., type = "response") {
    fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 1), hyper = "fixed", ...)
    slices(fit, NULL, NULL, 0.95, 5, type = type)$of[1L]
  }
  expect_identical(of(noise = 1, transform = "none"), "f")
  expect_identical(of(noise = 1, transform = "log"), "mean")
  expect_identical(of(noise = 1, transform = "log", type = "link"), "f")
  expect_identical(of(family = poisson()), "mean")
  d <- data.frame(x = 1:20, y = rep(0:3, 5))
  zero <- gp_hurdle(y ~ x, d, kernel = kernel_se(5, 1), hyper = "fixed")$zero
  expect_identical(slice_label(zero, "response"), "P(y > 0)")
  own <- pfdtc(as.integer(y > 0) ~ x, d, family = binomial(), kernel = kernel_se(5, 1), hyper = "fixed")
  expect_identical(slice_label(own, "response"), "P(success)")
})
