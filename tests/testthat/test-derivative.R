test_that("derivatives are the slopes of the mean, with the exact sd, whatever the kernel and the fit", {
  skip_on_cran()
  x <- kernel_rows(25)
  y <- with_seed(3, stats::rnorm(25)) + x[, 1]
  new <- kernel_rows(5, 9)
  h <- 1e-4
  up <- down <- new
  up[, "a"] <- new[, "a"] + h
  down[, "a"] <- new[, "a"] - h
  for (seed in 1:8) {
    k <- with_seed(seed, random_smooth_kernel(smooth = TRUE) + random_factor("se"))
    fit <- function(by, ...) {
      suppressMessages(by(x, y, kernel = k, noise = 0.2, hyper = "fixed", ...))
    }
    for (f in list(fit(gp_exact), fit(pfdtc, m = 5, neighbours = 0, control = pfdtc_control(maxit = 2)),
                   fit(gp_sor, m = 5), fit(pfdtc, m = 4, neighbours = 25))) {
      got <- predict(f, new, type = "derivative", wrt = "a", se.fit = TRUE)
      expect_equal(got$fit, (predict(f, up) - predict(f, down)) / (2 * h), tolerance = 1e-5, info = seed)
      expect_identical(predict(f, new, type = "derivative", wrt = 1L), got$fit)
    }
    placed <- complete_kernel(k, x)
    exact <- ref_functionals(ref_composite(placed, x) + diag(0.2, 25), ref_slopes(placed, x, new, 1L),
                             ref_slope_variance(placed, new, 1L), y - mean(y))
    got <- predict(fit(gp_exact), new, type = "derivative", wrt = "a", se.fit = TRUE)
    expect_equal(unname(got$fit), exact$mean, tolerance = 1e-8, info = seed)
    expect_equal(unname(got$se.fit), sqrt(pmax(exact$var, 0)), tolerance = 1e-4, info = seed) # of the differences
  }
})

test_that("bands of derivatives, certified too", {
  fit <- pfdtc(dist ~ speed, cars, m = 4, kernel = kernel_matern(3 / 2, 5, 400), noise = 200, hyper = "fixed")
  fit$reference <- reference(fit)
  exact <- gp_exact(dist ~ speed, cars, kernel = fit$kernel, noise = 200, hyper = "fixed")
  new <- data.frame(speed = c(3, 12, NA, 30))
  p <- predict(fit, new, type = "derivative", se.fit = TRUE, interval = "credible", level = 0.8)
  expect_equal(p$fit[, "upr"], p$fit[, "fit"] + stats::qnorm(0.9) * p$se.fit)
  band <- predict(fit, new, type = "derivative", interval = "credible", certified = TRUE, level = 0.8)
  truth <- predict(exact, new, type = "derivative", interval = "credible", level = 0.8)
  known <- c(1, 2, 4)
  expect_true(all(band[known, "lwr"] <= truth[known, "lwr"] & band[known, "upr"] >= truth[known, "upr"]))
  expect_true(all(is.na(band[3, ])))
})

test_that("what has no slope is refused with the reason", {
  cars$wet <- rep(c("no", "yes"), 25)
  fit <- gp_exact(dist ~ speed + wet, cars, kernel = kernel_matern(1 / 2, c(1, 1, 1), 400), noise = 200,
                  hyper = "fixed")
  derivative <- function(...) predict(fit, cars, type = "derivative", ...)
  expect_error(derivative(wrt = "speed"), "kink", class = "pfdtc_error_input")
  expect_error(derivative(), "wrt", class = "pfdtc_error_input")
  expect_error(derivative(wrt = "wet"), "wrt", class = "pfdtc_error_input")
  expect_error(derivative(wrt = "speed", interval = "prediction"), "derivative", class = "pfdtc_error_input")
  fit <- gp_exact(cars["speed"], cars$dist, kernel = kernel_se(3, 400) + kernel_white(2), noise = 200, hyper = "fixed")
  expect_error(predict(fit, type = "derivative"), "continuous", class = "pfdtc_error_input")
})
