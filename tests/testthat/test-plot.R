test_that("curves are the results of predict() at the same inputs", {
  fit <- fit_cars()
  curve <- draw_nowhere(plot(fit, n = 21, level = 0.8))
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
  slices <- draw_nowhere(plot(fit, n = 11))
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
  through <- draw_nowhere(plot(fit, inputs = "b", at = at, n = 5))
  expect_equal(through$fit, unname(predict(fit, data.frame(b = through$value, at[c("a", "f", "l")],
                                                           row.names = NULL))))
  # Inputs that `at` lacks stay at their middle values, for fits of formulas and of matrices.
  part <- draw_nowhere(plot(fit, inputs = "b", at = list(f = "w"), n = 5))
  expect_equal(part$fit, unname(predict(fit, cbind(middle[c("a", "l")], b = part$value, f = "w"))))
  by_matrix <- pfdtc(cbind(a = data$a, b = data$b), data$y, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  part <- draw_nowhere(plot(by_matrix, inputs = "b", at = list(a = 2), n = 5))
  expect_equal(part$fit, unname(predict(by_matrix, cbind(a = 2, b = part$value))))
  expect_input_error(draw_nowhere(plot(fit, at = list(q = 1))), "`at`")
})

test_that("numbers choose among the checks, and a model of groups alone has the figure of its groups", {
  fit <- fit_mixed(y ~ a + f)
  all <- draw_nowhere(plot(fit, which = "checks"))
  expect_identical(draw_nowhere(plot(fit, which = 1:5)), all)
  expect_named(draw_nowhere(plot(fit, which = 2:3)), c("qq", "pit"))
  expect_identical(draw_nowhere(plot(fit, which = 2)), all$qq)
  expect_input_error(draw_nowhere(plot(fit, which = 6)), "which")
  rail <- pfdtc(travel ~ (1 | Rail), as.data.frame(from("nlme", "Rail")))
  expect_identical(draw_nowhere(plot(rail)), draw_nowhere(plot(rail, which = "groups")))
})

test_that("medians and partial residuals count merged rows as often as they occur", {
  fit <- fit_cars()
  data <- cbind(cars, other = rep(c(1, 1, 1, 2), length.out = 50))
  two <- pfdtc(dist ~ speed + other, data[rep(1:10, c(41, rep(1, 9))), ], m = 5,
               kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", control = fixed_control())
  expect_false(is.null(two$data$group))
  shown <- draw_nowhere(plot(two, inputs = "other", n = 2))
  at_first <- predict(two, data.frame(speed = cars$speed[1], other = c(1, 2)))
  expect_equal(shown$fit, unname(at_first))
  points <- slices(fit, NULL, NULL, 0.9, 5)$points
  expect_equal(points[c("value", "y")], cars, ignore_attr = TRUE)
})

test_that("par() and the random numbers are as before", {
  fit <- fit_mixed(y ~ a + b + f)
  expect_graphics_kept({
    plot(fit)
    plot(fit, which = "map", n = 5)
    plot_trace(fit)
  })
})

test_that("any fit can be plotted", {
  expect_silent(draw_nowhere(plot(fit_mixed(y ~ a + f, keep_data = FALSE))))
  expect_silent(draw_nowhere(plot(fit_mixed(y ~ f))))
  expect_silent(draw_nowhere(plot(fit_mixed(y ~ l))))
  expect_silent(draw_nowhere(plot(fit_cars(), main = "cars", ylim = c(0, 200), las = 1)))
  data <- small_data(20)
  data$constant <- 3
  constant <- fit_mixed(y ~ a + constant, data)
  expect_identical(unique(draw_nowhere(plot(constant))$input), "a")
  expect_silent(draw_nowhere(plot(constant, inputs = "constant")))
  data$z <- matrix(rnorm(20 * 11), 20)
  wide <- fit_mixed(y ~ z, data)
  expect_length(unique(draw_nowhere(plot(wide, n = 5))$input), 9)
  expect_identical(unique(draw_nowhere(plot(wide, inputs = 10:11, n = 5))$input), c("z10", "z11"))
})

test_that("arguments that cannot be plotted are refused by name", {
  fit <- fit_mixed(y ~ a + f)
  draw_nowhere({
    expect_input_error(plot(fit, inputs = "q"), "inputs")
    expect_input_error(plot(fit, inputs = 3), "inputs")
    expect_input_error(plot(fit, at = small_data(2)), "at")
    expect_input_error(plot(fit, at = 3), "at")
    expect_input_error(plot(fit, level = 95), "level")
    expect_input_error(plot(fit, n = 1), "n")
    expect_input_error(plot_trace(cars), "fits")
    expect_input_error(plot_trace(list()), "fits")
  })
})

test_that("an unknown argument of a figure is an error that names it, and graphical parameters are not", {
  fit <- fit_cars()
  draw_nowhere({
    expect_error(plot(fit, wich = "map"), "`wich`.*`which`", class = "pfdtc_error_input")
    expect_input_error(plot(fit, which = "residuals", colour = 2), "colour")
    expect_input_error(plot(fit_mixed(y ~ a + b), which = "map", n = 4, level_of = 2), "level_of")
    expect_input_error(plot_trace(fit, agianst = "seconds"), "agianst")
    expect_input_error(plot_fits(list(fit), pionts = FALSE), "pionts")
    expect_input_error(plot(certify(fit, effort = "fast"), maim = ""), "maim")
    expect_input_error(plot(partial_dependence(fit, "speed", n = 3), maim = ""), "maim")
    expect_error(plot_trace(fit, "evaluation", 3), "name", class = "pfdtc_error_input")
    expect_silent(plot(fit, las = 1, cex.axis = 0.8, bty = "l", sub = "below", xaxs = "i", tck = 0.01))
    expect_silent(plot(fit_mixed(y ~ a + b), which = "map", n = 4, col.lab = 2, useRaster = FALSE))
  })
})

test_that("the error about `which` has every figure of the fit, and the nearest name", {
  fit <- fit_cars()
  for (name in c(setdiff(figures_drawn, c("calibration", "confusion", "groups")), checks_drawn)) {
    expect_error(plot(fit, which = "leverage"), sprintf("\"%s\"", name), class = "pfdtc_error_input")
  }
  expect_error(plot(fit, which = "choises"), "Did you mean \"choices\"", class = "pfdtc_error_input")
})

test_that("plot_trace() draws the optimiser's objective, by rounds if the auxiliary distribution is renewed", {
  fit <- fit_mixed(y ~ a)
  renewed <- fit_mixed(y ~ a, aux = aux_refresh(every = 2, start = aux_sor(rows = 1:4)))
  trace <- draw_nowhere(plot_trace(list(one = fit, renewed), against = "seconds"))
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

test_that("xlim extends the curve, and says where the data end", {
  fit <- fit_cars()
  curve <- draw_nowhere(plot(fit, xlim = c(0, 40), n = 11))
  expect_equal(range(curve$value), c(0, 40))
  expect_identical(curve$outside, curve$value < min(cars$speed) | curve$value > max(cars$speed))
  expect_equal(curve$fit, unname(predict(fit, data.frame(speed = curve$value))))
  expect_true(all(range(cars$speed) %in% curve$value))    # where line types change
  expect_false(any(draw_nowhere(plot(fit))$outside))
  # Pieces meet: each dotted piece begins or ends with the first or last value inside.
  pieces <- pieces_of(curve)
  expect_identical(vapply(pieces, function(p) p$outside[1L], NA), c(TRUE, FALSE, TRUE))
  expect_identical(pieces[[1]]$value[nrow(pieces[[1]])], pieces[[2]]$value[1])
  expect_identical(pieces[[3]]$value[1], pieces[[2]]$value[nrow(pieces[[2]])])
  mixed <- fit_mixed(y ~ a + b + f)
  one <- draw_nowhere(plot(mixed, xlim = list(b = c(-9, 9)), n = 5))
  expect_equal(range(one$value[one$input == "b"]), c(-9, 9))
  expect_false(any(one$outside[one$input != "b"]))
  draw_nowhere({
    expect_input_error(plot(fit, xlim = 1), "xlim")
    expect_input_error(plot(fit, xlim = c(2, 1)), "xlim")
    expect_input_error(plot(mixed, xlim = list(f = c(0, 1))), "xlim")
  })
  d <- data.frame(t = as.Date("2026-01-01") + 0:29, y = sin(0:29 / 5))
  fit <- gp_exact(y ~ t, d, kernel = kernel_se(5, 1), noise = 0.01, hyper = "fixed")
  ends <- as.Date(c("2025-12-01", "2026-03-01"))
  for (xlim in list(ends, list(t = ends), as.POSIXct(ends))) {
    curve <- draw_nowhere(plot(fit, xlim = xlim, n = 91))
    expect_equal(range(curve$value), c(-31, 59))
    expect_equal(curve$fit[1], predict(fit, data.frame(t = ends[1]))[[1]])
  }
})

test_that("certified bands are those of predict(certified = TRUE)", {
  fit <- gp_dtc(dist ~ speed, cars, m = 3, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
  fit$reference <- reference(fit, m2 = 8)
  curve <- draw_nowhere(plot(fit, n = 5, certified = TRUE))
  band <- predict(fit, data.frame(speed = curve$value), interval = "credible", certified = TRUE)
  expect_equal(as.matrix(curve[c("fit", "lwr", "upr")]), band, ignore_attr = TRUE)
  expect_true(any(abs(curve$upr - draw_nowhere(plot(fit, n = 5))$upr) > 0.1))
})

test_that("panels have scales of their own on request", {
  data <- small_data(30)
  data$y[3] <- 1000
  fit <- fit_mixed(y ~ a + f, data)
  expect_identical(draw_nowhere(plot(fit, n = 5, scales = "own")), draw_nowhere(plot(fit, n = 5)))
  heights <- function(...) {   # of the panels' axes, less the 4 % at each end
    seen <- list()
    draw_nowhere({
      setHook("before.plot.new", function(...) seen[[length(seen) + 1L]] <<- graphics::par("usr")[3:4], "replace")
      on.exit(setHook("before.plot.new", NULL, "replace"))
      plot(fit, n = 5, ...)
    })
    lapply(seen[-1L], function(usr) usr + c(1, -1) * 0.04 / 1.08 * diff(usr))
  }
  s <- slices(check_fit(fit, "x"), NULL, NULL, 0.95, 5)
  expect_equal(heights(), list(slice_range(s, "both"), slice_range(s, "both")))
  own <- lapply(s[c("curves", "points", "inducing")], rows_of, list(name = "f"))
  expect_equal(heights(scales = "own")[[2]], slice_range(own, "both"))
  expect_equal(heights(scales = "own", ylim = c(0, 1)), list(c(0, 1), c(0, 1)))
  expect_input_error(draw_nowhere(plot(fit, scales = "free")), "scales")
})

test_that("levels of a factor are all named, whatever their number and length", {
  draw_nowhere({
    graphics::par(mfrow = c(1, 1))
    few <- level_text(c("u", "v", "w"), graphics::par("mar"))
    expect_identical(few[c("labels", "upright", "size")], list(labels = c("u", "v", "w"), upright = FALSE, size = 1))
    long <- sprintf("level number %d of many", 1:40)
    expect_identical(level_text(c("u\tv", NA), graphics::par("mar"))$labels, c("u v", "NA")) # a level of addNA()
    many <- level_text(long, graphics::par("mar"))
    expect_true(many$upright)
    expect_length(unique(many$labels), 40)
    expect_lt(many$size, 1)
    expect_lt(many$margin, graphics::par("fin")[2] / graphics::par("csi") - graphics::par("mar")[3])
  })
  data <- small_data(40)
  data$long <- factor(sprintf("level number %d of many", rep(1:20, 2)))
  expect_silent(draw_nowhere(plot(fit_mixed(y ~ a + long, data))))
  expect_silent(draw_nowhere(plot(fit_mixed(y ~ long, data))))
})

test_that("checks draw leave-one-out residuals", {
  fit <- fit_cars()
  all <- draw_nowhere(plot(fit, which = "checks"))
  expect_named(all, c("residuals", "qq", "pit", "observed", "semivariogram"))
  expect_equal(all$residuals$rstandard, unname(rstandard(fit)))
  expect_equal(all$residuals$mean, unname(predict(fit, type = "loo")))
  expect_equal(sort(all$qq$normal), qnorm(ppoints(50)))
  expect_equal(all$pit$pit, unname(residuals(fit, type = "pit")))
  expect_equal(all$observed$observed, cars$dist)
  expect_identical(draw_nowhere(plot(fit, which = c("pit", "qq"))), all[c("pit", "qq")])
  expect_identical(draw_nowhere(plot(fit, which = "qq", main = "cars")), all$qq)

  # Rows of weight 0 have no score; a fit of factors alone has no distances.
  data <- small_data(30)
  weighted <- fit_mixed(y ~ f, data, weights = rep(c(0, 1, 1), 10))
  shown <- draw_nowhere(plot(weighted, which = "checks"))
  expect_named(shown, c("residuals", "qq", "pit", "observed"))
  expect_identical(nrow(shown$qq), 20L)
  draw_nowhere({
    expect_input_error(plot(weighted, which = "semivariogram"), "which")
    expect_input_error(plot(fit, which = "leverage"), "which")
    expect_input_error(plot(fit, which = c("slices", "qq")), "which")
    expect_input_error(plot(fit_mixed(y ~ a, keep_data = FALSE), which = "qq"), "keep_data")
  })
})

test_that("the semivariogram is that of all pairs, in lengthscales", {
  data <- small_data(30)
  fit <- fit_mixed(y ~ a + b, data)
  d <- draw_nowhere(plot(fit, which = "semivariogram"))
  x <- sweep(as.matrix(data[c("a", "b")]), 2, fit$kernel$lengthscale, "/")
  pairs <- which(upper.tri(diag(30)), arr.ind = TRUE)
  distance <- sqrt(rowSums((x[pairs[, 1], ] - x[pairs[, 2], ])^2))
  r <- rstandard(fit)
  half <- (r[pairs[, 1]] - r[pairs[, 2]])^2 / 2
  near <- distance <= median(distance)
  expect_identical(sum(d$pairs), sum(near))
  expect_lte(diff(range(d$pairs)), 1)
  expect_equal(sum(d$semivariance * d$pairs), sum(half[near]))
  nearest <- order(distance)[seq_len(d$pairs[1])]
  expect_equal(c(d$distance[1], d$semivariance[1]), c(mean(distance[nearest]), mean(half[nearest])))
})

test_that("a map has the results of predict() over two inputs", {
  data <- small_data(30)
  fit <- fit_mixed(y ~ a + b + f, data)
  map <- draw_nowhere(plot(fit, which = "map", n = 4, at = data[2, ]))
  expect_identical(dim(map), c(16L, 4L))
  p <- predict(fit, cbind(map[c("a", "b")], f = data$f[2]), se.fit = TRUE)
  expect_equal(map[c("fit", "se.fit")], as.data.frame(lapply(p, unname)))
  expect_equal(vapply(map[1:2], range, c(0, 0)), vapply(data[c("a", "b")], range, c(0, 0)))
  expect_silent(draw_nowhere(plot(fit, which = "map", inputs = c("b", "a"), n = 3, points = FALSE, main = "map")))
  draw_nowhere({
    expect_input_error(plot(fit_cars(), which = "map"), "inputs")
    expect_input_error(plot(fit, which = "map", inputs = c("a", "f")), "inputs")
    expect_input_error(plot(fit, which = "map", inputs = "a"), "inputs")
  })
})

test_that("terms are those of predict(type = \"terms\"), with a panel for each variable that they read", {
  k <- kernel_se(3, 20, ~ wt) + kernel_matern(3 / 2, c(60, 1), 5, ~ hp + wt) + kernel_categorical(0.5, 4, ~ gear)
  d <- transform(mtcars[c("mpg", "wt", "hp")], gear = factor(mtcars$gear))
  fit <- gp_exact(mpg ~ wt + hp + gear, d, kernel = k, noise = 4, hyper = "fixed")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  curves <- plot(fit, terms = TRUE, n = 5)
  expect_identical(unique(curves$input), c("se(wt)", "matern32(hp,wt): wt", "matern32(hp,wt): hp", "categorical(gear)"))
  panels <- term_panels(with_own_terms(fit$kernel), fit_variables(fit), fit$frame$columns)
  expect_identical(vapply(panels, `[[`, "", "title"),
                   c("squared exponential: wt", "Matern 3/2: wt", "Matern 3/2: hp", "categorical (exchangeable): gear"))
  along <- curves[curves$input == "matern32(hp,wt): hp", ]
  at <- data.frame(wt = stats::median(d$wt), hp = along$value, gear = "3")
  p <- predict(fit, at, type = "terms", se.fit = TRUE)
  expect_equal(along$fit, unname(p$fit[, 2]))
  expect_equal(along$upr - along$fit, stats::qnorm(0.975) * unname(p$se.fit[, 2]))
  expect_identical(curves$label[curves$input == "categorical(gear)"], c("3", "4", "5"))
  points <- slices(fit, NULL, NULL, 0.95, 5, type = "link", terms = TRUE)$points
  wt <- points[points$input == "se(wt)", ]
  expect_equal(wt$y, unname(predict(fit, type = "terms")[, 1] + residuals(fit)))
  expect_error(plot(gp_exact(dist ~ speed, cars, kernel = kernel_se()), terms = TRUE), "needs a sum",
               class = "pfdtc_error_input")
  skip_if_not_installed("ggplot2")
  expect_s3_class(ggplot2::ggplot_build(ggplot2::autoplot(fit, terms = TRUE, n = 5)), "ggplot_built")
})

test_that("slices have 12 points for each period or shortest lengthscale along the variable, up to 2,000", {
  d <- data.frame(t = seq(0, 44, length.out = 60), u = rep(0:1, 30))
  d$y <- sin(d$t)
  waves <- function(period, share = 1) {
    gp_exact(y ~ t + u, d, noise = 0.1, hyper = "fixed", kernel = kernel_se(50, 1, ~ t) +
               kernel_periodic(share, 1, period, inputs = ~ t) + kernel_se(1, 1, ~ u))
  }
  size <- function(fit, input) nrow(draw_nowhere(plot(fit, inputs = input)))
  expect_gte(size(waves(1), "t"), 12 * 44)
  expect_identical(size(waves(1), "u"), 200L)
  expect_identical(size(waves(0.01), "t"), 2000L)
  expect_gte(size(waves(9, 1 / 9), "t"), 12 * 44) # a lengthscale of 1 / 9 of the period
  expect_identical(size(waves(9, 9), "t"), 200L)
})

test_that("partial residuals of a positive response are the response times curve over predicted mean", {
  d <- with_seed(1, data.frame(a = runif(40), b = runif(40), t = rexp(40)))
  d$n <- 1 + round(2 * d$t)
  for (one in list(list(t ~ a + b, weibull(scale = 2)), list(n ~ a + b, truncated_poisson()), list(n ~ a + b, nb(2)))) {
    fit <- pfdtc(one[[1]], d, family = one[[2]], kernel = kernel_se(0.5, 1), hyper = "fixed")
    s <- slices(fit, "a", NULL, 0.95, NULL)
    curve <- approx(s$curves$value, s$curves$fit, d$a)$y
    mean <- unname(predict(fit, type = "response"))
    expect_equal(s$points$y, d[[all.vars(one[[1]])[1]]] * curve / mean)
  }
})

test_that("partial residuals, omitted panels and held values are named in the figure", {
  data <- small_data(30)
  two <- fit_mixed(y ~ a + f, data)
  keys <- function(fit, ...) {
    s <- slices(fit, NULL, NULL, 0.95, 5, ...)
    slices_figure(s, 0.95, "both", FALSE, FALSE, "y")$keys$text
  }
  expect_true("partial residuals" %in% keys(two))
  expect_true("data" %in% keys(fit_cars()))
  expect_null(slices(fit_cars(), NULL, NULL, 0.95, 5)$foot)
  foot <- paste(slices(two, "a", NULL, 0.95, 5)$foot, collapse = " ")
  expect_match(foot, "f = ")
  expect_no_match(foot, "a = |panels")
  data$z <- matrix(rnorm(30 * 11), 30)
  expect_match(slices(fit_mixed(y ~ z, data), NULL, NULL, 0.95, 5)$foot[1], "9 of 11 panels")
  skip_if_not_installed("ggplot2")
  expect_match(ggplot2::autoplot(two, inputs = "a")$labels$caption, "f = ")
})

test_that("longitude is horizontal on a map, and coordinates have equal scales", {
  fit <- gp_exact(depth ~ lat + long, quakes[1:60, ], kernel = kernel_se(c(3, 3), 4e4), noise = 2000, hyper = "fixed")
  s <- map_table(fit, NULL, NULL, 5, TRUE, "response")
  expect_identical(names(s$map)[1:2], c("long", "lat"))
  expect_equal(s$asp, 1 / cos(mean(range(quakes$lat[1:60])) * pi / 180))
  expect_equal(s$map$fit, unname(predict(fit, s$map)))
  given <- map_table(fit, c("lat", "long"), NULL, 5, TRUE, "response")
  expect_identical(names(given$map)[1:2], c("lat", "long"))
  expect_true(is.na(map_table(fit_mixed(y ~ a + b), NULL, NULL, 5, TRUE, "response")$asp))
})

test_that("partial dependence has a figure, `n`, and the scale of the response", {
  d <- data.frame(x = seq(-2, 2, length.out = 40), z = rep(0:1, 20))
  d$y <- with_seed(1, stats::rbinom(40, 1, stats::plogis(d$x)))
  fit <- pfdtc(y ~ x + z, d, family = binomial(), kernel = kernel_se(c(1, 1), 2), hyper = "fixed")
  p <- partial_dependence(fit, "x", n = 5, type = "response")
  expect_identical(nrow(p), 5L)
  each <- function(x) predict(fit, data.frame(x = x, z = d$z), type = "response")
  expect_equal(p$mean, vapply(p$x, function(x) mean(each(x)), 0))
  one <- partial_dependence(fit, "x", d[3, ], at = 0.5, type = "response")
  expect_equal(one$sd, predict(fit, data.frame(x = 0.5, z = d$z[3]), type = "response", se.fit = TRUE)$se.fit[[1]],
               tolerance = 0.05) # first order in f
  expect_identical(draw_nowhere(plot(p)), p)
  gaussian <- fit_mixed(y ~ a + f)
  levels <- partial_dependence(gaussian, "f", droplevels(small_data(20)), certified = FALSE)
  expect_silent(draw_nowhere(plot(levels)))
  skip_if_not_installed("ggplot2")
  expect_s3_class(ggplot2::autoplot(p), "ggplot")
})

test_that("choices are drawn from their tables", {
  d <- with_seed(1, data.frame(x = sort(stats::runif(60))))
  d$y <- exp(sin(6 * d$x) + with_seed(2, 0.3 * stats::rnorm(60)))
  fit <- with_seed(1, pfdtc(y ~ x, d, transform = "auto"))
  f <- choices_figure(fit)
  expect_named(f$value, c("response", "kernels"))
  expect_identical(f$value$response$candidate[1L], fit$response$candidate[1L])
  expect_true(f$value$response$behind[1L] == 0 && all(is.na(f$value$response$se))) # transforms have seconds, but no se
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  on.exit(grDevices::dev.off())
  expect_identical(plot(fit, which = "choices"), f$value)
  fixed <- pfdtc(y ~ x, d, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  expect_error(plot(fixed, which = "choices"), "compared transforms", class = "pfdtc_error_input")
})
