test_that("bounds contain the probability of the dense exact GP, and no decision contradicts it", {
  found <- vapply(some_of(1:15, 8), attack_exceedance, numeric(5))
  expect_gt(sum(found["cells", ]), 67 * ncol(found))
  expect_identical(rowSums(found)[c("outside", "wrong", "because")], c(outside = 0, wrong = 0, because = 0))
  expect_gt(sum(found["open", ]), 20) # some cells must stay undecided
})

test_that("with few inducing points some places are undecided because of the approximation", {
  d <- data.frame(x = seq(0, 1, length.out = 60))
  d$y <- with_seed(1, sin(20 * d$x) + stats::rnorm(60, 0, 0.1))
  fit <- gp_dtc(y ~ x, d, m = 5, kernel = kernel_matern(3 / 2, 0.1, 1), noise = 0.01, hyper = "fixed")
  got <- exceedance(fit, d, 0, effort = "fast")
  expect_gt(sum(got$because %in% "approximation"), 10)
  expect_true(all(got$prob_lower <= got$prob_upper))
  expect_output(print(got), "Advice +effort \"reference\", a larger `m2` or more `max_seconds` may narrow")
})

test_that("the threshold is on the scale of the response also with transforms, smooth noise and offsets", {
  d <- with_seed(2, data.frame(x = stats::runif(60)))
  d$y <- with_seed(3, exp(sin(6 * d$x) + stats::rnorm(60, 0, 0.2)))
  new <- data.frame(x = c(0.1, 0.5, NA, 0.9))
  for (transform in list("log", "yeojohnson")) {
    fit <- gp_exact(y ~ x, d, kernel = kernel_se(0.2), transform = transform, noise = ~ x)
    f <- predict(fit, new, type = "latent", se.fit = TRUE)
    t <- transformed(fit$transform, 1.3)
    got <- exceedance(fit, new, 1.3)
    expect_equal(got$prob, unname(stats::pnorm((f$fit - t) / f$se.fit)), tolerance = 1e-9)
    expect_true(is.na(got$region[3]) && is.na(got$prob_lower[3]))
    # The ends of a prediction interval are quantiles of a new response.
    ends <- predict(fit, new, interval = "prediction", level = 0.8, type = "median")
    for (i in c(1, 2, 4)) {
      p <- exceedance(fit, new[i, , drop = FALSE], ends[i, "upr"], of = "response")
      expect_equal(p$prob, 0.1, tolerance = 1e-9)
      p <- exceedance(fit, new[i, , drop = FALSE], ends[i, "lwr"], of = "response")
      expect_equal(p$prob, 0.9, tolerance = 1e-9)
    }
    expect_true(all(got$prob_lower <= got$prob & got$prob <= got$prob_upper, na.rm = TRUE))
  }
  expect_identical(exceedance(gp_exact(y ~ x, d, transform = "log"), new[1:2, , drop = FALSE], -1)$prob_upper, c(1, 1))
  d$o <- 10 * d$x
  by <- function(...) gp_exact(..., kernel = kernel_se(0.2, 1), noise = 0.1, hyper = "fixed")
  moved <- by(y ~ x + offset(o), transform(d, y = y + o))
  plain <- by(y ~ x, d)
  expect_equal(exceedance(moved, data.frame(x = 0.3, o = 7), 8)$prob, exceedance(plain, data.frame(x = 0.3), 1)$prob,
               tolerance = 1e-9)
})

test_that("f of other families is decided by the inverse link, and new responses by their distribution given f", {
  d <- with_seed(4, data.frame(x = stats::runif(50)))
  f <- 2 * sin(6 * d$x)
  d <- with_seed(5, cbind(d, b = stats::rbinom(50, 1, stats::plogis(f)), c = stats::rpois(50, exp(f)),
                          r = f + stats::rt(50, 4)))
  new <- data.frame(x = c(0.05, 0.3, 0.6, 0.95))
  of <- function(formula, family, ...) {
    suppressMessages(pfdtc(formula, d, family = family, kernel = kernel_se(0.2, 2), hyper = "fixed", ...))
  }
  cases <- list(list(of(b ~ x, binomial()), 0.3, 0, stats::plogis, function(y, m) stats::pbinom(y, 1, m)),
                list(of(b ~ x, binomial("probit")), 0.7, 0, stats::pnorm, function(y, m) stats::pbinom(y, 1, m)),
                list(of(c ~ x, poisson()), 1.5, 2, exp, stats::ppois))
  for (case in cases) {
    fit <- case[[1]]
    fit$reference <- reference(fit)
    p <- predict(at_mode(fit), new, type = "latent", se.fit = TRUE) # certificates are about the mode
    got <- exceedance(fit, new, case[[2]])
    above <- vapply(1:4, function(i) {
      z <- stats::uniroot(function(z) case[[4]](p$fit[i] + p$se.fit[i] * z) - case[[2]], c(-30, 30), tol = 1e-13)$root
      stats::pnorm(-z)
    }, 0)
    expect_equal(got$prob, above, tolerance = 1e-8)
    expect_true(all(got$prob_lower <= above + 1e-6 & above - 1e-6 <= got$prob_upper))
    got <- exceedance(fit, new, case[[3]], of = "response")
    new_above <- vapply(1:4, function(i) {
      stats::integrate(function(z) (1 - case[[5]](case[[3]], case[[4]](p$fit[i] + p$se.fit[i] * z))) * stats::dnorm(z),
                       -9, 9, rel.tol = 1e-10)$value
    }, 0)
    expect_equal(got$prob, new_above, tolerance = 1e-6)
    expect_true(all(got$prob_lower <= new_above & new_above <= got$prob_upper))
    expect_true(all(got$prob_upper - got$prob_lower < 0.02))
  }
  expect_identical(exceedance(cases[[1]][[1]], new, 1.2)$prob, numeric(4))
  d$o <- factor(findInterval(f + stats::qlogis(seq(0.01, 0.99, length.out = 50)), c(-1, 1)), ordered = TRUE)
  classes <- of(o ~ x, ordinal()) # a class is its number
  expect_equal(exceedance(classes, new, 2, of = "response", certified = FALSE)$prob,
               unname(predict(classes, new, type = "response")[, 3]), tolerance = 1e-6)
  expect_true(all(exceedance(cases[[3]][[1]], new, -1)$region == "above"))
})

test_that("thresholds of times, classes and a user's family are mean responses, like the ends of credible intervals", {
  d <- with_seed(6, data.frame(x = stats::runif(40)))
  d$t <- with_seed(7, stats::rweibull(40, 2, exp(sin(6 * d$x))))
  d$o <- cut(d$t, c(0, 0.5, 1.5, Inf), ordered_result = TRUE)
  of <- function(formula, family) {
    suppressMessages(pfdtc(formula, d, family = family, kernel = kernel_se(0.3, 1), hyper = "fixed"))
  }
  own <- function(mean) gp_family(~ -f - y * exp(-f), mean = mean, support = function(y) y > 0)
  fits <- list(of(t ~ x, weibull(0.5)), of(t ~ x, lognormal(0.5)), of(t ~ x, loglogistic(0.5)), of(o ~ x, ordinal()),
               of(t ~ x, own(~ 2 * exp(f))), of(t ~ x, own(~ exp(f) / (1 + exp(f)))))
  new <- data.frame(x = c(0.1, 0.7))
  for (fit in fits) {
    ordered <- response_of(fit)$kind == "ordered" # `type` = "response" has the probabilities of the classes
    end <- predict(fit, new, interval = "credible", level = 0.9, type = if (ordered) "latent" else "response")[, "upr"]
    if (ordered) end <- 1 + stats::plogis(end) + stats::plogis(end - coef(fit)[["width.(0.5,1.5]"]])
    expect_equal(exceedance(fit, new, end, certified = FALSE)$prob, c(0.05, 0.05), tolerance = 1e-9)
    got <- exceedance(fit, new, end)
    expect_true(all(got$prob_lower <= got$prob & got$prob <= got$prob_upper))
    expect_equal(exceedance(fit, new, -1, certified = FALSE)$prob, c(1, 1), tolerance = 1e-12)
    expect_error(next_points(fit, goal = "level", level = -1), class = "pfdtc_error_input")
  }
  expect_identical(exceedance(fits[[4]], new, 3)$region, factor(c("below", "below"), region_levels))
  expect_output(print(exceedance(fits[[4]], new, 3)), "the mean class number (1, 2, ... in order) exceeds 3",
                fixed = TRUE)
  expect_error(exceedance(of(t ~ x, own(~ exp(-f))), new, 1, certified = FALSE), class = "pfdtc_error_input")
})

test_that("bounds hold for every mean and sd in the intervals, at their corners and without sd", {
  responses <- list(as_response(NULL), as_response(list(name = "poisson", link = "log", approx = "laplace")),
                    as_response(list(name = "binomial", link = "logit", approx = "laplace")))
  for (seed in 1:20) {
    v <- with_seed(seed, c(stats::rnorm(1), stats::rexp(3)))
    mean <- list(lower = v[1], upper = v[1] + v[2])
    sd <- list(lower = v[3], upper = v[3] + v[4])
    cases <- expand.grid(mean = seq(v[1], mean$upper, length.out = 9), sd = seq(v[3], sd$upper, length.out = 9))
    got <- normal_exceedance(mean, sd, list(lower = 0.3, upper = 0.3))
    truth <- stats::pnorm((cases$mean - 0.3) / cases$sd)
    expect_true(got$lower <= min(truth) && max(truth) <= got$upper)
    expect_equal(c(got$lower, got$upper), range(truth), tolerance = 1e-9) # extremes are among the cases
    for (response in responses[-1]) {
      got <- response_exceedance(response, mean, sd, 0)
      truth <- mapply(function(m, s) {
        above <- function(z) 1 - response$cdf(0, response$link$inv(m + s * z), 1, NULL)
        stats::integrate(function(z) above(z) * stats::dnorm(z), -9, 9)$value
      }, cases$mean, cases$sd)
      expect_true(got$lower <= min(truth) && max(truth) <= got$upper)
    }
  }
  at <- function(mean, sd, t = 0) unlist(normal_exceedance(mean, sd, list(lower = t, upper = t)))
  point <- function(v) list(lower = v, upper = v)
  expect_identical(unname(at(point(1), point(0))), c(1 - 1e-13, 1))
  expect_identical(unname(at(point(-1), point(0))), c(0, 0))
  expect_gt(at(point(-38), list(lower = 0.9, upper = 1))[["upper"]], 3e-316) # pnorm(-38) is exp(-726.6), or 0 in R
  expect_identical(unname(at(point(0), point(0))), c(0, 1)) # f equals the threshold
  expect_identical(unname(at(list(lower = -Inf, upper = Inf), list(lower = 0, upper = Inf))), c(0, 1))
  expect_identical(unname(at(point(NA_real_), point(1))), c(NA_real_, NA_real_))
})

test_that("joint sets are the largest whose probability in the order of the places reaches `prob`", {
  # Rows are far apart, so that f is independent between them and the probability of a set is a product.
  d <- data.frame(x = 100 * (1:6), y = c(3, 2.2, 2, 1.8, -2.5, -3))
  fit <- gp_exact(y ~ x, d, kernel = kernel_se(1, 4), noise = 1, hyper = "fixed", center = FALSE)
  got <- with_seed(1, exceedance(fit, d, 0, prob = 0.9, draws = 20000))
  chain <- cumprod(sort(got$prob, decreasing = TRUE))
  expect_true(all(abs(chain - 0.9) > 0.01)) # more than four standard errors of 20,000 draws
  expect_identical(sum(got$joint == "above"), sum(chain >= 0.9))
  expect_identical(sum(got$joint == "below"), sum(cumprod(sort(1 - got$prob, decreasing = TRUE)) >= 0.9))
  expect_lt(sum(got$joint == "above"), sum(got$region == "above"))
  expect_identical(with_seed(1, exceedance(fit, d, 0, prob = 0.9, draws = 20000)), got)
})

test_that("thresholds, probabilities and combinations are refused by name", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  expect_input_error(exceedance(fit, cars), "threshold")
  expect_input_error(exceedance(fit, cars, c(1, 2)), "threshold")
  expect_input_error(exceedance(fit, cars, 40, prob = 0.4), "prob")
  expect_input_error(exceedance(fit, cars, 40, of = "response", draws = 10), "draws")
  expect_input_error(exceedance(fit, cars, 40, certified = FALSE, effort = "fast"), "names: `fit`")
  classes <- pfdtc(Species ~ Petal.Width, iris[c(1:5, 51:55, 101:105), ], family = multinomial(), hyper = "fixed",
                   kernel = kernel_se(1, 1))
  expect_input_error(exceedance(classes, iris[1, ], 0.5), "classes")
  expect_input_error(next_points(classes), "classes")
  expect_identical(nrow(exceedance(fit, threshold = 40)), 50L)
  expect_identical(exceedance(fit, cars, rep(40, 50))$prob, exceedance(fit, cars, 40)$prob)
  expect_named(exceedance(fit, cars, 40, certified = FALSE), c("prob", "region"))
})

test_that("print counts the regions, and figures have every place", {
  only_nightly()
  fit <- gp_exact(depth ~ long + lat + mag, quakes[1:100, ], kernel = kernel_se(c(3, 3, 1), 40000), noise = 2500,
                  hyper = "fixed")
  grid <- expand.grid(long = seq(170, 185, 1), lat = seq(-30, -15, 1), mag = 5)
  got <- exceedance(fit, grid, 300)
  expect_output(print(got), sprintf("Above +%d .*Below +%d .*Undecided +%d", sum(got$region == "above"),
                                    sum(got$region == "below"), sum(got$region == "undecided")))
  boxes <- function(f) sum(lengths(lapply(Filter(function(l) l$verb == "box", f$panels[[1]]$layers), `[[`, "x")))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(got), got)
  expect_identical(boxes(figure_of_table(got)), nrow(grid))
  line <- exceedance(fit, data.frame(long = 170:185, lat = -20, mag = 5), 300)
  expect_identical(boxes(figure_of_table(line)), 16L)
  plot(line)
  scattered <- figure_of_table(exceedance(fit, quakes[1:30, ] |> transform(mag = 5), 300))
  dots <- Filter(function(l) l$verb == "dots", scattered$panels[[1]]$layers)
  expect_identical(sum(lengths(lapply(dots, `[[`, "x"))), 30L + 100L)
  expect_input_error(plot(got[1:10, ]), "x")
  expect_input_error(plot(exceedance(fit, quakes[1:30, ], 300)), "vary")
  expect_s3_class(from("ggplot2", "autoplot")(got), "ggplot")
  expect_input_error(from("ggplot2", "autoplot")(got, colour = 1), "colour")
})

test_that("rows with missing inputs are counted as unknown, also if there are no others", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  got <- exceedance(fit, data.frame(speed = c(NA, 5)), 40)
  expect_identical(is.na(got$region), c(TRUE, FALSE))
  expect_output(print(got), "Below +1 .*Unknown +1 ")
  none <- utils::capture.output(print(exceedance(fit, data.frame(speed = c(NA_real_, NA)), 40)))
  expect_match(none, "^Unknown +2 ", all = FALSE)
  expect_match(none, "prob +prob_lower +prob_upper +region", all = FALSE)
})

test_that("with many rows, passes over all pairs of rows decide places that were undecided, and print() says so", {
  only_nightly()
  d <- with_seed(4, data.frame(a = stats::runif(1500), b = stats::runif(1500)))
  d$y <- with_seed(5, sin(8 * d$a) * cos(6 * d$b) + stats::rnorm(1500, 0, 0.3))
  fit <- pfdtc(y ~ a + b, d, kernel = kernel_matern(3 / 2, 0.1, 0.5), noise = 0.09, hyper = "fixed", m = 50,
               neighbours = 20)
  places <- expand.grid(a = seq(0.05, 0.95, 0.1), b = seq(0.05, 0.95, 0.1))
  without <- exceedance(fit, places, 0.3, max_seconds = 0)
  expect_gt(sum(without$because %in% "approximation"), 50)
  expect_output(print(without), "max_seconds")
  with <- exceedance(fit, places, 0.3, max_seconds = Inf)
  expect_identical(sum(with$because %in% "approximation"), 0L)
  expect_false(any(grepl("max_seconds", utils::capture.output(print(with)))))
  decided <- without$region != "undecided"
  expect_identical(without$region[decided], with$region[decided])
})

test_that("a family of gp_family() has no distribution function of the response", {
  d <- data.frame(x = 1:9 / 9, k = c(0, 2, 1, 3, 2, 4, 1, 0, 2))
  family <- gp_family(~ y * f - exp(f) - lgamma(y + 1), kappa = 1, mean = ~ exp(f))
  fit <- pfdtc(k ~ x, d, family = family, kernel = kernel_se(1, 1), hyper = "fixed")
  expect_error(exceedance(fit, d[1:2, ], 3, of = "response", certified = FALSE), class = "pfdtc_error_input")
})

test_that("longitude is horizontal on a map of regions, whatever the order of the inputs", {
  fit <- gp_exact(depth ~ lat + long, quakes[1:40, ], kernel = kernel_se(c(3, 3), 4e4), noise = 2000, hyper = "fixed")
  args <- figure_of_table(exceedance(fit, threshold = 400))$panels[[1L]]$args
  expect_identical(args[c("xlab", "ylab")], list(xlab = "long", ylab = "lat"))
  expect_identical(args$xlim, range(quakes$long[1:40]))
})

test_that("probabilities of new responses average over an uncertain noise variance and over heavy tails", {
  law <- list(noise = 0.5, spread = c(0.2, 2, 8))
  mean <- list(lower = c(-1, 0.4, 3), upper = c(-0.8, 0.4, 3.1))
  sd <- list(lower = c(0.1, 0, 1), upper = c(0.3, 0.01, 1))
  got <- noisy_exceedance(mean, sd, list(lower = 0.5, upper = 0.5), law)
  for (i in 1:3) {
    truth <- outer(c(mean$lower[i], mean$upper[i]), c(sd$lower[i], sd$upper[i]), Vectorize(function(m, s) {
      stats::integrate(function(u) {
        noise <- law$noise * exp(sqrt(law$spread[i]) * u - law$spread[i] / 2)
        stats::pnorm((m - 0.5) / sqrt(s^2 + noise)) * stats::dnorm(u)
      }, -8, 8, rel.tol = 1e-10)$value
    }))
    expect_true(got$lower[i] <= min(truth) && max(truth) <= got$upper[i])
    expect_lt(max(abs(c(got$lower[i], got$upper[i]) - range(truth))), 1.1e-6) # allowance, and quadrature error
  }
  fit <- pfdtc(dist ~ speed, cars, transform = "auto")
  expect_true(noise_spread(fit, fit$data$x)[1] > 0)
  new <- data.frame(speed = c(5, 15, 30))
  ends <- predict(fit, new, type = "quantile", probs = c(0.01, 0.3, 0.999))
  for (k in 1:3) {
    p <- exceedance(fit, new, ends[, k], of = "response")
    expect_equal(p$prob, rep(1 - c(0.01, 0.3, 0.999)[k], 3), tolerance = 1e-5) # the quantile's own quadrature
    expect_true(all(p$prob_lower < p$prob & p$prob < p$prob_upper & p$prob_upper - p$prob_lower < 1e-4))
    expect_equal(exceedance(fit, new, ends[, k], of = "response", certified = FALSE)$prob, p$prob, tolerance = 1e-7)
  }
})

test_that("a map of a grid has cells also if some rows lack inputs", {
  fit <- gp_exact(depth ~ lat + long, quakes[1:60, ], kernel = kernel_se(c(3, 3), 4e4), noise = 2500, hyper = "fixed")
  grid <- expand.grid(lat = -20:-16, long = 178:182)
  verbs <- function(rows) vapply(figure_of_table(exceedance(fit, rows, 300))$panels[[1L]]$layers, `[[`, "", "verb")
  expect_true("box" %in% verbs(grid))
  expect_true("box" %in% verbs(rbind(grid, NA)))
  expect_true("box" %in% verbs(replace(grid, 2, replace(grid$long, 7, NA))))
  expect_false("box" %in% verbs(quakes[61:90, ]))
  expect_false("box" %in% verbs(quakes[rep(61:63, 4), ])) # copies do not make a grid
})

test_that("rows with missing inputs are left out of the figure along one input", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  at <- c(20, NA, 5, 10)
  panel <- function(at) figure_of_table(exceedance(fit, data.frame(speed = at), 40))$panels
  expect_identical(panel(at), panel(at[-2]))
})

test_that("a mixture over hyperparameters is refused, because its probabilities are not those of a normal f", {
  fit <- pfdtc(dist ~ speed, cars[1:12, ], kernel = kernel_se())
  expect_error(exceedance(fit, cars[1:2, ], 20, hyper_uncertainty = TRUE), "hyper_uncertainty",
               class = "pfdtc_error_input")
})
