test_that("the reference grid has the results of predict(), and contrasts use its covariance", {
  skip_if_not_installed("emmeans")
  fit <- pfdtc(y ~ a + f + l, small_data(20), kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  grid <- emmeans::ref_grid(fit, at = list(l = c(FALSE, TRUE)))
  rows <- as.data.frame(grid)
  p <- predict(fit, rows, full_cov = TRUE)
  expect_equal(rows$prediction, unname(p$fit), tolerance = 1e-10)
  expect_equal(rows$SE, unname(sqrt(diag(p$cov))), tolerance = 1e-10)

  of_f <- as.data.frame(emmeans::contrast(emmeans::emmeans(grid, "f"), "pairwise"))
  mean_of <- function(level) (rows$f == level) / sum(rows$f == level)
  w <- mean_of(levels(rows$f)[1]) - mean_of(levels(rows$f)[2])
  expect_equal(of_f$estimate[1], sum(w * p$fit), tolerance = 1e-8)
  expect_equal(of_f$SE[1], sqrt(drop(w %*% p$cov %*% w)), tolerance = 1e-8)
})

test_that("trends are differences over one grid", {
  skip_if_not_installed("emmeans")
  fit <- fit_cars()
  trend <- as.data.frame(emmeans::emtrends(fit, ~ 1, var = "speed", delta.var = 0.1))
  p <- predict(fit, data.frame(speed = mean(cars$speed) + c(0, 0.1)), full_cov = TRUE)
  expect_equal(trend$speed.trend, unname(diff(p$fit)) / 0.1, tolerance = 1e-6)
  expect_equal(trend$SE, sqrt(sum(p$cov * c(1, -1, -1, 1))) / 0.1, tolerance = 1e-6)
})

test_that("data that cannot be found by the call are given", {
  skip_if_not_installed("emmeans")
  local_fit <- function(hidden) {
    pfdtc(dist ~ speed, hidden, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
  }
  fit <- local_fit(cars)
  expect_equal(as.data.frame(emmeans::ref_grid(fit))$speed, mean(cars$speed))     # the formula's environment has them
  attr(fit$terms, ".Environment") <- globalenv()
  expect_equal(as.data.frame(emmeans::ref_grid(fit, data = cars))$speed, mean(cars$speed))
})

test_that("for classes, means are log odds, and are transformed back by the link", {
  skip_if_not_installed("emmeans")
  d <- transform(mtcars, gear = factor(gear))
  fit <- pfdtc(am ~ wt + gear, d, family = binomial(), kernel = kernel_se(1, 4), hyper = "fixed", m = 8)
  at <- emmeans::emmeans(fit, ~ gear, at = list(wt = 3))
  f <- predict(fit, data.frame(wt = 3, gear = factor(3:5)), se.fit = TRUE)
  shown <- as.data.frame(summary(at))
  expect_equal(shown$emmean, unname(f$fit), tolerance = 1e-8)
  expect_equal(shown$SE, unname(f$se.fit), tolerance = 1e-8)
  expect_equal(as.data.frame(summary(at, type = "response"))$prob, stats::plogis(unname(f$fit)), tolerance = 1e-8)
})

test_that("several classes are refused by name", {
  skip_if_not_installed("emmeans")
  fit <- pfdtc(Species ~ Petal.Length, iris[seq(1, 150, 5), ], family = multinomial(), kernel = kernel_se(2, 5),
               hyper = "fixed")
  expect_error(emmeans::emmeans(fit, "Petal.Length"), class = "pfdtc_error_input")
})

test_that("reference grids have the variables of offsets, also with groups", {
  skip_if_not_installed("emmeans")
  d <- transform(small_data(20), o = seq_len(20) / 10, g = gl(4, 5))
  kernel <- kernel_se(1, 1, "a")
  grouped <- kernel + kernel_group(~ g, variance = 1)
  for (fit in list(pfdtc(y ~ a, d, offset = o, kernel = kernel, noise = 0.4, hyper = "fixed"),
                   pfdtc(y ~ a + offset(o), d, kernel = grouped, noise = 0.4, hyper = "fixed"))) {
    rows <- as.data.frame(emmeans::ref_grid(fit, at = list(a = c(0.2, 0.8))))
    expect_equal(rows$prediction, unname(predict(fit, data.frame(a = c(0.2, 0.8), o = mean(d$o)), re = FALSE)))
  }
})

test_that("emmeans gets the rows of the fit, without those that were left out", {
  skip_if_not_installed("emmeans")
  d <- data.frame(x = 1:12, y = c(NA, sin(2:12)))
  fit <- pfdtc(y ~ x, d, subset = x < 11, kernel = kernel_se(3, 1), noise = 0.1, hyper = "fixed")
  d$x <- 100
  expect_equal(as.data.frame(emmeans::ref_grid(fit))$x, mean(2:10))
})
