test_that("tidy(), glance() and augment() have the columns of broom", {
  skip_if_not_installed("generics")
  fit <- fit_mixed()
  expect_identical(generics::tidy(fit),
                   data.frame(term = names(coef(fit)), estimate = unname(coef(fit)), std.error = NA_real_))
  expect_input_error(generics::tidy(fit, conf.int = 1), "conf.int")
  row <- generics::glance(fit)
  expect_identical(nrow(row), 1L)
  expect_identical(row$nobs, nobs(fit))
  expect_identical(row$AIC, AIC(fit))
  expect_identical(row$evidence, fit$evidence)
  expect_identical(row$m, fit$m)
  exact <- pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  expect_identical(generics::glance(exact)$m, NA_integer_)
  groups <- generics::glance(pfdtc(weight ~ (1 | Chick), ChickWeight[1:100, ], mean = ~ Time))
  expect_equal(groups$AIC, 2 * groups$df - 2 * groups$evidence) # all three are of the restricted likelihood

  a <- generics::augment(fit, interval = "prediction", conf.level = 0.9)
  band <- predict(fit, interval = "prediction", level = 0.9)
  expect_equal(as.matrix(a[c(".fitted", ".lower", ".upper")]), band, ignore_attr = TRUE)
  expect_equal(a$.resid, unname(residuals(fit)))
  expect_identical(a$y, small_data(20)$y)

  expect_identical(generics::augment(fit, interval = "confidence"), generics::augment(fit, interval = "credible"))
  sure <- generics::augment(fit, interval = "conformal", conf.level = 0.5)
  expect_equal(as.matrix(sure[c(".lower", ".upper")]), predict(fit, interval = "conformal", level = 0.5)[, -1],
               ignore_attr = TRUE)
  new <- generics::augment(fit, newdata = small_data(3, seed = 9), se_fit = FALSE)
  expect_identical(setdiff(names(new), names(small_data())), ".fitted")
  expect_input_error(generics::augment(fit, data = small_data(7)), "data")
})

test_that("intervals of tidy() are confint()'s in the units of the estimates, those of coefficients unchanged", {
  skip_if_not_installed("generics")
  fit <- with_seed(1, pfdtc(dist ~ speed, cars, mean = ~ speed, kernel = kernel_se(), noise = 200,
                            control = pfdtc_control(fix = "noise")))
  table <- generics::tidy(fit, conf.int = TRUE, conf.level = 0.9)
  ends <- confint(fit, level = 0.9)
  learned <- grep("^se", names(coef(fit)), value = TRUE)
  expect_identical(table$term, names(coef(fit)))
  expect_equal(as.matrix(table[match(learned, table$term), 4:5]), exp(ends[sprintf("log(%s)", learned), ]),
               ignore_attr = TRUE)
  expect_length(learned, 2L)
  expect_equal(unlist(table[table$term == "speed", 4:5]), ends["speed", ], ignore_attr = TRUE)
  held <- table$term == "noise"
  expect_true(all(is.na(table[held, 3:5])))
  # The sd of a coefficient is that of its interval.
  expect_equal(table$std.error[table$term == "speed"], diff(ends["speed", ])[[1]] / 2 / stats::qnorm(0.95))
  expect_identical(is.na(table$std.error), !table$term %in% c("(Intercept)", "speed"))
  expect_true(all(table$conf.low[!held] < table$estimate[!held] & table$estimate[!held] < table$conf.high[!held]))
})

test_that("augment() aligns rows if na.action omitted some", {
  skip_if_not_installed("generics")
  data <- small_data(20)
  data$a[3] <- NA
  omitted <- generics::augment(fit_mixed(data = data))
  expect_identical(nrow(omitted), 19L)
  padded <- fit_mixed(data = data, na.action = na.exclude)
  expect_equal(generics::augment(padded), omitted)
  excluded <- generics::augment(padded, data = data)
  expect_identical(is.na(excluded$.fitted), seq_len(20) == 3)
  expect_equal(excluded$.resid[-3], omitted$.resid)
})

test_that("augment() has a column for a class without a name", {
  skip_if_not_installed("generics")
  d <- transform(iris[c(1:8, 51:58, 101:108), ], Species = factor(Species, labels = c("", "b", "c")))
  fit <- suppressMessages(pfdtc(Species ~ Petal.Length, d, kernel = kernel_se()))
  for (new in list(NULL, d[3:9, ])) {
    rows <- generics::augment(fit, newdata = new)
    expect_equal(as.matrix(rows[c(".prob_", ".prob_b", ".prob_c")]), predict(fit, new, type = "response"),
                 ignore_attr = TRUE)
  }
})

test_that("autoplot() draws the same curves", {
  skip_if_not_installed("ggplot2")
  fit <- fit_mixed(y ~ a + f)
  g <- ggplot2::autoplot(fit, n = 5)
  expect_s3_class(g, "ggplot")
  built <- ggplot2::ggplot_build(g)
  band <- built$data[[1]]
  expect_equal(band$ymax[band$PANEL == 1], slices(fit, "a", NULL, 0.95, 5)$curves$upr)
  expect_error(ggplot2::autoplot(fit, colour = 1), class = "pfdtc_error_input")
})

test_that("broom's functions find the methods", {
  skip_if_not_installed("broom")
  fit <- fit_mixed()
  expect_identical(from("broom", "tidy")(fit), generics::tidy(fit))
  expect_identical(from("broom", "glance")(fit), generics::glance(fit))
  expect_identical(from("broom", "augment")(fit, newdata = small_data(3)),
                   generics::augment(fit, newdata = small_data(3)))
  # Make a table of fits, as with methods of broom.
  fits <- list(se = fit_mixed(), matern = fit_mixed(kernel = kernel_matern(3 / 2, 1.3, 2)))
  table <- do.call(rbind, lapply(fits, from("broom", "glance")))
  expect_identical(table$AIC, unname(vapply(fits, AIC, 0)))
})

test_that("autoplot() draws the numbers of plot()'s checks and maps", {
  skip_if_not_installed("ggplot2")
  data <- small_data(40)
  fit <- fit_mixed(y ~ a + b, data = data)
  own <- draw_nowhere(plot(fit, which = "checks"))
  g <- ggplot2::autoplot(fit, which = "checks")
  built <- ggplot2::ggplot_build(g)
  expect_identical(nrow(built$layout$layout), 5L)
  points <- drawn_by(g, "GeomPoint")
  for (i in match(c("residuals", "qq", "observed", "semivariogram"), names(own))) {
    here <- points[points$PANEL == i, ]
    expect_equal(here$x, own[[i]][[1]], info = names(own)[i])
    expect_equal(here$y, own[[i]][[2]], info = names(own)[i])
  }
  bars <- Filter(function(d) "xmax" %in% names(d), built$data)[[2]]
  expect_equal(sum((bars$xmax - bars$xmin) * (bars$ymax - bars$ymin)), 1) # a density
  expect_silent(draw_nowhere(print(g)))
  expect_equal(drawn_by(ggplot2::autoplot(fit, which = "qq"), "GeomPoint")$y, own$qq$rstandard)

  map <- draw_nowhere(plot(fit, which = "map", n = 7))
  g <- ggplot2::autoplot(fit, which = "map", n = 7)
  cells <- lapply(Filter(function(l) inherits(l$geom, "GeomRaster"), g$layers), function(l) l$data)
  expect_true(all(cells[[1]]$z %in% map$fit))
  expect_equal(cells[[2]][c("x", "y", "z")], map[c(1:2, 4)], ignore_attr = TRUE)
  expect_silent(draw_nowhere(print(g)))
  expect_input_error(ggplot2::autoplot(fit, which = "nosuch"), "which")
  expect_input_error(ggplot2::autoplot(fit, which = "calibration"), "which")

  d <- data.frame(x = seq(-2, 2, length.out = 60))
  d$y <- with_seed(1, stats::rbinom(60, 1, stats::plogis(2 * d$x)))
  classes <- pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(1, 2), hyper = "fixed")
  g <- ggplot2::autoplot(classes, which = "calibration")
  expect_equal(drawn_by(g, "GeomPoint")$y, draw_nowhere(plot(classes, which = "calibration"))$observed)
  expect_silent(draw_nowhere(print(g)))
})

test_that("augment() takes the scale of predictions, and no rows of several classes", {
  skip_if_not_installed("generics")
  fit <- pfdtc(am ~ wt, mtcars, family = binomial(), kernel = kernel_se(1, 3), hyper = "fixed")
  link <- generics::augment(fit, type.predict = "link")
  at <- predict(fit, se.fit = TRUE)
  expect_equal(link$.fitted, unname(at$fit))
  expect_equal(link$.se.fit, unname(at$se.fit))
  expect_equal(generics::augment(fit, type.predict = "response"), generics::augment(fit))
  classes <- pfdtc(Species ~ Petal.Width, iris[c(1:5, 51:55, 101:105), ], family = multinomial(), hyper = "fixed",
                   kernel = kernel_se(1, 1))
  none <- generics::augment(classes, newdata = iris[0, ])
  expect_identical(dim(none), c(0L, 9L))
  expect_named(none, names(generics::augment(classes, newdata = iris[1, ])))
  expect_input_error(generics::augment(classes, type.predict = "link"), "type.predict")
})

test_that("tidy() refuses a wrong conf.level whether or not it uses it", {
  skip_if_not_installed("generics")
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  expect_error(generics::tidy(fit, conf.level = 2), "conf.level.*between 0 and 1.*it is 2", class = "pfdtc_error_input")
})
