flowers <- function(...) {
  pfdtc(Species ~ Petal.Length + Petal.Width, iris, family = multinomial(), kernel = kernel_se(c(2, 1), 10),
        hyper = "fixed", ...)
}

test_that("slices are averaged probabilities at the middle of the other inputs", {
  fit <- flowers()
  curves <- draw_nowhere(plot(fit, n = 9))
  one <- curves[curves$input == "Petal.Width", ]
  new <- data.frame(Petal.Length = stats::median(iris$Petal.Length), Petal.Width = unique(one$value))
  p <- predict(fit, new, type = "response")
  expect_equal(one$probability[one$class == "setosa"], unname(p[, "setosa"]), tolerance = 1e-12)
  expect_setequal(unique(curves$class), levels(iris$Species))
})

test_that("confusion counts rows by class and most probable class, and calibration has shares of each class", {
  fit <- flowers()
  counts <- draw_nowhere(plot(fit, which = "confusion"))
  best <- levels(iris$Species)[max.col(predict(fit, type = "loo"))]
  expect_equal(unclass(counts), unclass(table(iris$Species, factor(best, levels(iris$Species)))), ignore_attr = TRUE)
  f <- confusion_figure(fit)$panels[[1L]]
  expect_identical(f$layers[[2L]]$labels, c(counts)) # the boxes have their counts, under the names of the classes
  expect_identical(f$yticks$labels[order(-f$yticks$at)], levels(iris$Species))
  expect_gte(f$left, 0.5 * nchar("versicolor") + 3) # lines of the margin, for horizontal names and the title
  d <- draw_nowhere(plot(fit, which = "calibration"))
  expect_equal(unname(tapply(d$observed * d$rows, d$class, sum)), rep(50, 3), ignore_attr = TRUE, tolerance = 1e-10)
  expect_error(plot(fit, which = "checks"), class = "pfdtc_error_input")
  expect_error(plot(pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed"),
                    which = "confusion"), class = "pfdtc_error_input")
})

test_that("augment() has the class and a probability for each class", {
  skip_if_not_installed("generics")
  fit <- flowers()
  out <- generics::augment(fit, newdata = iris[c(1, 60, 140), ])
  expect_identical(out$.fitted, factor(c("setosa", "versicolor", "virginica")))
  expect_equal(rowSums(out[paste0(".prob_", levels(iris$Species))]), rep(1, 3), ignore_attr = TRUE, tolerance = 1e-12)
  expect_identical(nrow(generics::augment(fit)), 150L)
  expect_identical(nrow(generics::tidy(fit)), 6L)
  expect_identical(nrow(generics::glance(fit)), 1L)
})

test_that("parsnip's predictions of several classes have a column for each class", {
  p <- predict(flowers(), iris[c(1, 60), ], type = "response")
  expect_identical(names(class_columns(p, levels(iris$Species))), levels(iris$Species))
  band <- predict(flowers(), iris[c(1, 60), ], type = "response", interval = "credible")
  out <- parsnip_posts$class_bands(band, list(lvl = levels(iris$Species)))
  expect_identical(out$.pred_upper_setosa, unname(band[, "upr", "setosa"]))
})

test_that("further rows update a fit of several classes", {
  fit <- flowers(m = 30)
  more <- add_rows(fit, iris[c(1, 60, 140), ])
  expect_identical(more$nobs, 153L)
  expect_lt(more$factors$decrement, 1e-6)
  expect_error(confint(fit), class = "pfdtc_error_input")
})

test_that("a linear mean is a kernel of the log odds, and prints", {
  d <- data.frame(x = seq(-3, 3, length.out = 90))
  d$y <- factor(findInterval(d$x + sin(40 * d$x), c(-1, 1)))
  fit <- pfdtc(y ~ x, d, family = multinomial())
  expect_output(print(fit), "3 classes")
})

test_that("ordered classes have the same figures of calibration and confusion", {
  d <- transform(cars, far = cut(dist, c(-Inf, 20, 50, Inf), c("near", "middle", "far"), ordered_result = TRUE))
  fit <- pfdtc(far ~ speed, d, family = ordinal(), kernel = kernel_se(5, 4), hyper = "fixed")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  loo <- predict(fit, type = "loo")
  counts <- plot(fit, which = "confusion")
  best <- factor(colnames(loo)[max.col(loo, "first")], levels(d$far))
  expect_identical(unname(c(counts)), unname(c(table(d$far, best))))
  shares <- plot(fit, which = "calibration")
  for (k in levels(d$far)) {
    own <- shares[shares$class == k, ]
    expect_equal(sum(own$rows * own$predicted), sum(loo[, k]), tolerance = 1e-10)
    expect_equal(sum(own$rows * own$observed), sum(d$far == k), tolerance = 1e-10)
  }
})
