# Tests that plot_fits() draws the results of predict().

cars_given <- list(kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
cars_exact <- do.call(gp_exact, c(list(dist ~ speed, cars), cars_given))
cars_fits <- function(...) {
  list(DTC = do.call(gp_dtc, c(list(dist ~ speed, cars, m = 3, ...), cars_given)),
       SoR = do.call(gp_sor, c(list(dist ~ speed, cars, m = 3, ...), cars_given)))
}

test_that("curves are those of predict(), with a panel for each fit", {
  fits <- cars_fits()
  shown <- draw_nowhere(plot_fits(fits, cars_exact, n = 31))
  expect_named(shown, c("panel", "input", "value", "label", "fit", "se.fit", "exact", "se.exact"))
  expect_identical(rle(shown$panel)$values, c("DTC", "SoR"))
  expect_equal(range(shown$value), range(cars$speed))
  for (panel in names(fits)) {
    one <- shown[shown$panel == panel, ]
    new <- data.frame(speed = one$value)
    expect_identical(nrow(one), 31L)
    p <- predict(fits[[panel]], new, se.fit = TRUE)
    e <- predict(cars_exact, new, se.fit = TRUE)
    expect_equal(one[c("fit", "se.fit")], as.data.frame(lapply(p, unname)), ignore_attr = TRUE)
    expect_equal(one[c("exact", "se.exact")], as.data.frame(lapply(e, unname)), ignore_attr = TRUE)
  }
  at <- draw_nowhere(plot_fits(fits, cars_exact, newdata = data.frame(speed = c(20, 3, 3, NA, 12))))
  expect_equal(at$value, rep(c(3, 12, 20), 2))
  expect_equal(at$fit[1:3], unname(predict(fits$DTC, data.frame(speed = c(3, 12, 20)))))
})

test_that("figures exist without an exact fit, without data, and for a single fit", {
  shown <- draw_nowhere(plot_fits(cars_fits()$SoR))
  expect_identical(unique(shown$panel), "inducing points (SoR)")
  expect_true(all(is.na(shown$exact)))
  expect_silent(draw_nowhere(plot_fits(cars_fits(keep_data = FALSE), cars_exact)))
  slim <- draw_nowhere(plot_fits(unname(cars_fits(keep_data = FALSE)), ylim = c(0, 100), las = 1, main = "a"))
  expect_identical(unique(slim$panel), c("inducing points (DTC)", "inducing points (SoR)"))
  expect_silent(draw_nowhere(plot_fits(rep(cars_fits(), 3), cars_exact, n = 5, points = FALSE)))
  expect_length(unique(draw_nowhere(plot_fits(rep(cars_fits(), 3), cars_exact, n = 5))$panel), 6)
  expect_silent(draw_nowhere(plot_fits(cars_fits(), cars_exact, newdata = data.frame(speed = 10))))
})

test_that("plot_fits() of several inputs draws a slice along one input, or errors row by row", {
  data <- small_data(20)
  given <- list(kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed")
  exact <- do.call(gp_exact, c(list(y ~ a + f + l, data), given))
  fits <- list(with_seed(1, do.call(gp_subsample, c(list(y ~ a + f + l, data, m = 9), given))),
               do.call(gp_fitc, c(list(y ~ a + f + l, data, m = 5), given)))
  slice <- draw_nowhere(plot_fits(fits, exact, n = 7))
  expect_identical(unique(slice$input), "a")
  centre <- data.frame(a = slice$value[1:7], f = names(which.max(table(data$f))), l = mean(data$l) > 0.5)
  expect_equal(slice$exact[1:7], unname(predict(exact, centre)))
  through <- draw_nowhere(plot_fits(fits, exact, input = "f", at = data[4, ]))
  expect_identical(through$label[1:3], c("u", "v", "w"))
  expect_equal(through$fit[1:3], unname(predict(fits[[1]], data.frame(f = c("u", "v", "w"), data[4, c("a", "l")],
                                                                      row.names = NULL))))
  rows <- draw_nowhere(plot_fits(fits, exact, newdata = data[3:9, ]))
  expect_equal(rows$fit, unname(c(predict(fits[[1]], data[3:9, ]), predict(fits[[2]], data[3:9, ]))))
  expect_equal(rows$exact[1:7], unname(predict(exact, data[3:9, ])))
  expect_true(all(is.na(rows$input)))
})

test_that("par() and the random numbers are as before", {
  fits <- cars_fits()
  expect_graphics_kept(plot_fits(fits, cars_exact))
})

test_that("arguments that cannot be drawn are refused by name", {
  draw_nowhere({
    fits <- cars_fits()
    expect_input_error(plot_fits(cars), "fits")
    expect_input_error(plot_fits(list()), "fits")
    expect_input_error(plot_fits(), "fits")
    expect_input_error(plot_fits(DTC = fits$DTC, SoR = fits$SoR), "list(DTC")
    expect_input_error(plot_fits(fits$DTC, fits$SoR), "list(")
    expect_input_error(plot_fits(fits, cars), "newdata")
    expect_input_error(plot_fits(fits, fits$DTC), "exact")
    other <- gp_exact(dist ~ speed, cars, kernel = kernel_se(6, 900), noise = 201, hyper = "fixed")
    expect_input_error(plot_fits(fits, other), "hyperparameters")
    expect_input_error(plot_fits(fits, cars_exact, n = 1), "n")
    expect_input_error(plot_fits(fits, cars_exact, input = "dist"), "input")
    expect_input_error(plot_fits(fits, cars_exact, newdata = data.frame(speed = NA_real_)), "newdata")
    two <- fit_by("gp_dtc", problem())
    expect_input_error(plot_fits(list(fits$DTC, two)), "fits")
    expect_input_error(plot_fits(two, newdata = problem()$new), "exact")
  })
})

test_that("fits of several classes have no panel of means", {
  fit <- pfdtc(Species ~ Petal.Width, iris[seq(1, 150, 5), ], family = multinomial(), kernel = kernel_se(1, 2),
               hyper = "fixed")
  expect_error(plot_fits(list(fit, fit)), "several unordered classes", class = "pfdtc_error_input")
  expect_error(plot(fit, which = "checks"), "\"slices\", \"calibration\", \"confusion\" or \"choices\"; it is",
               class = "pfdtc_error_input")
})
