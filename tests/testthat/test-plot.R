# Everything is drawn, to a device without a file.
draw <- function(code) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  force(code)
}

test_that("curves are what predict() gives at the same inputs", {
  fit <- fit_cars()
  curve <- draw(plot(fit, n = 21, level = 0.8))
  new <- data.frame(speed = curve$value)
  expect_equal(range(curve$value), range(cars$speed))
  f <- predict(fit, new, se.fit = TRUE, interval = "credible", level = 0.8)
  y <- predict(fit, new, interval = "prediction", level = 0.8)
  expect_equal(as.matrix(curve[c("fit", "lwr", "upr")]), f$fit, ignore_attr = TRUE)
  expect_equal(curve$se.fit, unname(f$se.fit))
  expect_equal(as.matrix(curve[c("lwr_y", "upr_y")]), y[, -1], ignore_attr = TRUE)
})

test_that("slices go through the medians and the most frequent levels, or through `at`", {
  data <- small_data(30)
  fit <- fit_mixed(y ~ a + b + f + l, data)
  slices <- draw(plot(fit, n = 11))
  expect_identical(unique(slices$input), c("a", "b", "f", "l"))
  middle <- data.frame(a = median(data$a), b = median(data$b),
                       f = names(which.max(table(data$f))), l = mean(data$l) > 0.5)
  a <- slices[slices$input == "a", ]
  expect_equal(a$fit, unname(predict(fit, cbind(a = a$value, middle[-1]))))
  f <- slices[slices$input == "f", ]
  expect_identical(f$label, c("u", "v", "w"))
  expect_equal(f$fit, unname(predict(fit, cbind(f = f$label, middle[-3]))))
  l <- slices[slices$input == "l", ]
  expect_equal(l$fit, unname(predict(fit, cbind(l = c(FALSE, TRUE), middle[-4]))))

  at <- data[5, ]
  through <- draw(plot(fit, inputs = "b", at = at, n = 5))
  expect_equal(through$fit, unname(predict(fit, data.frame(b = through$value, at[c("a", "f", "l")],
                                                           row.names = NULL))))
})

test_that("medians and partial residuals count merged rows as often as they came", {
  fit <- fit_cars()
  data <- cbind(cars, other = rep(c(1, 1, 1, 2), length.out = 50))
  two <- pfdtc(dist ~ speed + other, data[rep(1:10, c(41, rep(1, 9))), ], m = 5,
               kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", control = fixed_control())
  expect_false(is.null(two$data$group))
  shown <- draw(plot(two, inputs = "other", n = 2))
  at_first <- predict(two, data.frame(speed = cars$speed[1], other = c(1, 2)))
  expect_equal(shown$fit, unname(at_first))
  points <- slices(fit, NULL, NULL, 0.9, 5)$points
  expect_equal(points[c("value", "y")], cars, ignore_attr = TRUE)
})

test_that("par() and the random numbers are as before", {
  fit <- fit_mixed(y ~ a + b + f)
  draw({
    settings <- c("mfrow", "mar", "oma", "mgp", "cex", "fig", "xpd", "new", "las", "lty", "lwd")
    graphics::plot.new()
    before <- graphics::par(settings)
    set.seed(1)
    seed <- .Random.seed
    plot(fit)
    plot_trace(fit)
    expect_identical(graphics::par(settings), before)
    expect_identical(.Random.seed, seed)
  })
})

test_that("any fit can be plotted", {
  expect_silent(draw(plot(fit_mixed(y ~ a + f, keep_data = FALSE))))
  expect_silent(draw(plot(fit_mixed(y ~ f))))
  expect_silent(draw(plot(fit_mixed(y ~ l))))
  expect_silent(draw(plot(fit_cars(), main = "cars", ylim = c(0, 200), las = 1)))
  data <- small_data(20)
  data$constant <- 3
  constant <- fit_mixed(y ~ a + constant, data)
  expect_identical(unique(draw(plot(constant))$input), "a")
  expect_silent(draw(plot(constant, inputs = "constant")))
  data$z <- matrix(rnorm(20 * 11), 20)
  wide <- fit_mixed(y ~ z, data)
  expect_length(unique(draw(plot(wide, n = 5))$input), 9)
  expect_identical(unique(draw(plot(wide, inputs = 10:11, n = 5))$input), c("z10", "z11"))
})

test_that("what cannot be plotted is refused, by name", {
  fit <- fit_mixed(y ~ a + f)
  draw({
    expect_input_error(plot(fit, inputs = "q"), "inputs")
    expect_input_error(plot(fit, inputs = 3), "inputs")
    expect_input_error(plot(fit, at = small_data(2)), "at")
    expect_input_error(plot(fit, level = 95), "level")
    expect_input_error(plot(fit, n = 1), "n")
    expect_input_error(plot_trace(cars), "fits")
    expect_input_error(plot_trace(list()), "fits")
  })
})

test_that("plot_trace() draws what the optimiser saw, renewals apart", {
  fit <- fit_mixed(y ~ a)
  renewed <- fit_mixed(y ~ a, aux = aux_refresh(every = 2, start = aux_sor(rows = 1:4)))
  trace <- draw(plot_trace(list(one = fit, renewed), against = "seconds"))
  expect_identical(unique(trace$fit), c("one", "pfdtc"))
  one <- trace[trace$fit == "one", ]
  seen <- fit$trace[!is.na(fit$trace$objective), ]
  expect_equal(one[c("evaluation", "objective", "seconds")],
               seen[c("evaluation", "objective", "seconds")], ignore_attr = TRUE)
  expect_identical(unique(one$round), 1L)
  if (!is.null(renewed$trace$round)) {
    expect_setequal(trace$round[trace$fit == "pfdtc"], renewed$trace$round)
  }
})
