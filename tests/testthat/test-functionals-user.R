some_fits <- function() {
  x <- kernel_rows(30)
  y <- with_seed(3, stats::rnorm(30)) + x[, 1]
  k <- kernel_matern(5 / 2, 0.8, 1.2, c("a", "b")) + kernel_categorical(0.5, 0.7, c("f1", "f2", "f3"))
  fit <- function(by, ...) {
    suppressMessages(by(x, y, kernel = k, noise = 0.2, hyper = "fixed", offset = 0.1 * x[, 2], ...))
  }
  list(exact = fit(gp_exact), far = fit(pfdtc, m = 6, neighbours = 0, control = pfdtc_control(maxit = 3)),
       near = fit(pfdtc, m = 4, neighbours = 7), sor = fit(gp_sor, m = 6), fitc = fit(gp_fitc, m = 6),
       some = fit(gp_subsample, m = 20))
}

test_that("a functional has the mean and sd that the joint posterior gives it, whatever the fit", {
  new <- kernel_rows(9, 5)
  C <- rbind(average = rep(1 / 9, 9), contrast = c(1, -1, rep(0, 7)), any = with_seed(1, stats::rnorm(9)), none = 0)
  new <- rbind(new, new[1, ])
  C <- cbind(C, with_seed(2, stats::rnorm(4)) * c(1, 1, 1, 0))
  fits <- some_fits()
  binary <- pfdtc(kernel_rows(30), rep(0:1, 15), family = binomial(), m = 5, hyper = "fixed",
                  kernel = kernel_se(1, 1))
  for (name in names(fits)) {
    p <- suppressWarnings(predict(fits[[name]], new, full_cov = TRUE))
    got <- linear_functional(fits[[name]], C, new, certified = FALSE)
    expect_equal(got$mean, drop(unname(C %*% p$fit)), tolerance = 1e-10, info = name)
    expect_equal(got$sd^2, unname(diag(C %*% p$cov %*% t(C))), tolerance = 1e-7, info = name)
    expect_identical(row.names(got), rownames(C))
  }
  p <- predict(binary, new, type = "link", full_cov = TRUE)
  got <- linear_functional(binary, C, new)
  expect_equal(got$mean, drop(unname(C %*% p$fit)), tolerance = 1e-10)
  expect_equal(got$sd^2, unname(diag(C %*% p$cov %*% t(C))), tolerance = 1e-7)
  certified <- linear_functional(binary, C, new, certified = TRUE, effort = "fast")
  expect_s3_class(certified, "pfdtc_certificate")
  expect_output(print(certified), "`mean` is the posterior mode of f")
  expect_no_match(utils::capture.output(print(certified)), "sd of the") # f is not in units of the response
})

test_that("one weight gives the certificate of f there; training rows are the default; missing rows give NA", {
  fit <- some_fits()$far
  fit$reference <- reference(fit)
  new <- kernel_rows(4, 5)
  at <- certify(fit, new)
  got <- linear_functional(fit, diag(4), new)
  expect_equal(got$mean, at$mean, tolerance = 1e-12)
  expect_equal(got$sd, at$sd, tolerance = 1e-10)
  expect_true(all(got$mean_lower <= at$mean_upper & got$mean_upper >= at$mean_lower))
  expect_true(all(got$sd_lower <= at$sd_upper & got$sd_upper >= at$sd_lower))
  expect_equal(linear_functional(fit, rep(1 / 30, 30), certified = FALSE)$mean, mean(fitted(fit)), tolerance = 1e-12)
  new[2, 1] <- NA
  expect_identical(is.na(linear_functional(fit, rbind(1, c(1, 0, 2, 0)), new)$mean), c(TRUE, FALSE))
  expect_output(print(got), "4 weighted sums")
  expect_identical(row.names(linear_functional(fit, rep(1 / 30, 30))), "1")
})

test_that("certificates of sums, contrasts and slopes contain the exact posterior's", {
  for (kind in c("sums", "slopes")) {
    found <- vapply(1:3, attack_functionals, numeric(4), kind = kind)
    expect_gt(sum(found["rows", ]), 60)
    expect_identical(sum(found["broken", ]), 0, info = kind)
    expect_gt(max(found["kriging", ], na.rm = TRUE), 0.5) # some tested bounds must be tight
  }
})

test_that("weights are refused that do not belong to the rows", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  new <- data.frame(speed = c(5, 10))
  expect_error(linear_functional(fit, 1:3, new), class = "pfdtc_error_input")
  expect_error(linear_functional(fit, c(1, NA), new), "finite", class = "pfdtc_error_input")
  expect_error(linear_functional(fit, "a", new), "finite", class = "pfdtc_error_input")
  expect_error(linear_functional(fit, newdata = new), "weights", class = "pfdtc_error_input")
})

test_that("partial dependence averages the posterior with one variable moved", {
  d <- data.frame(mpg = mtcars$mpg, wt = mtcars$wt, gear = factor(mtcars$gear), hp = mtcars$hp)
  k <- kernel_se(c(1, 50), 30, c("wt", "hp")) + kernel_categorical(0.5, 4, "gear")
  fit <- pfdtc(mpg ~ wt + hp + gear, d, kernel = k, noise = 4, hyper = "fixed", m = 10)
  fit$reference <- reference(fit, 20)
  exact <- gp_exact(mpg ~ wt + hp + gear, d, kernel = k, noise = 4, hyper = "fixed")
  for (variable in c("wt", "gear")) {
    got <- partial_dependence(fit, variable, d[1:7, ], at = if (variable == "wt") c(2, 3), weights = 1:7)
    truth <- partial_dependence(exact, variable, d[1:7, ], at = if (variable == "wt") c(2, 3), weights = 1:7)
    for (i in seq_len(nrow(got))) {
      moved <- d[1:7, ]
      moved[[variable]] <- got[[variable]][i]
      p <- predict(fit, moved, full_cov = TRUE)
      w <- 1:7 / 28
      expect_equal(got$mean[i], sum(w * p$fit))
      expect_equal(got$sd[i]^2, drop(w %*% p$cov %*% w), tolerance = 1e-8)
    }
    expect_true(all(got$mean_lower <= truth$mean & truth$mean <= got$mean_upper))
    expect_true(all(got$sd_lower <= truth$sd & truth$sd <= got$sd_upper))
  }
  expect_identical(partial_dependence(fit, "gear", certified = FALSE)$gear, factor(3:5))
  expect_identical(nrow(partial_dependence(fit, "wt", certified = FALSE)), 20L)
  expect_match(attr(partial_dependence(fit, "wt", certified = FALSE), "legend"), "average of mpg over 32 rows")
  days <- data.frame(day = as.Date("2020-01-01") + 0:29, y = sin(0:29))
  of_days <- pfdtc(y ~ day, days, kernel = kernel_se(9, 1), noise = 1, hyper = "fixed")
  expect_identical(partial_dependence(of_days, "day", n = 3, certified = FALSE)$day, days$day[1] + c(0, 14.5, 29))
  of_matrix <- gp_exact(as.matrix(cars["speed"]), cars$dist, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  expect_equal(partial_dependence(of_matrix, 1, at = 10)$mean, unname(predict(of_matrix, cbind(speed = 10))))
  expect_error(partial_dependence(fit, "nobody"), "wt", class = "pfdtc_error_input")
  told <- expect_error(partial_dependence(fit, "mpg"), class = "pfdtc_error_input") # the response is no variable
  expect_no_match(conditionMessage(told), "`mpg`")
})

test_that("partial dependence averages over the data where the formula transforms them or has an offset", {
  d <- mtcars[1:12, ]
  fit <- gp_exact(mpg ~ log(wt) + hp, d, offset = qsec / 10, subset = cyl > 4, kernel = kernel_se(c(1, 100), 20),
                  noise = 4, hyper = "fixed")
  rows <- d[d$cyl > 4, ]
  got <- partial_dependence(fit, "wt", at = 3, certified = FALSE)
  expect_equal(got$mean, mean(predict(fit, transform(rows, wt = 3))))
  expect_named(got, c("wt", "mean", "sd"))
  expect_input_error(linear_functional(fit, lower = data.frame(wt = 2, hp = 100), upper = c(hp = 150)), "offset")
})

test_that("a functional of weights of any size is that of weights near 1, times the size", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 600), noise = 200, hyper = "fixed")
  new <- data.frame(speed = c(5, 10, 20))
  w <- rbind(c(1, -2, 1), c(0.3, 0.3, 0.4), 0)
  plain <- linear_functional(fit, w, new)
  for (size in 2^c(-900, 900)) {
    expect_equal(lapply(linear_functional(fit, size * w, new), `/`, size), lapply(plain, identity), tolerance = 1e-12)
  }
})

test_that("a reference of another scale certifies functionals", {
  d <- with_seed(1, data.frame(x = stats::runif(80)))
  d$y <- with_seed(2, 30 * sin(8 * d$x) + 3 * stats::rnorm(80))
  by <- function(f, ...) {
    do.call(f, list(y ~ x, d, kernel = kernel_se(0.2, 400), noise = 9, hyper = "fixed", ...))
  }
  fit <- by("gp_dtc", m = 8)
  exact <- linear_functional(by("gp_exact"), t(rep(0.1, 10)), d[1:10, ], certified = FALSE)
  with_options(list(pfdtc.max_memory = 1e4), { # no room for the exact posterior
    for (kriging in c(0L, 400L)) with_options(list(pfdtc.kriging_rows = kriging), {
      found <- linear_functional(fit, t(rep(0.1, 10)), d[1:10, ], reference = by("gp_dtc", m = 20, scale = FALSE))
      expect_lte(found$sd_lower, exact$sd * (1 + 1e-9))
      expect_gte(found$sd_upper, exact$sd * (1 - 1e-9))
      expect_true(found$mean_lower <= exact$mean + 1e-8 && exact$mean - 1e-8 <= found$mean_upper)
    })
  })
})

test_that("terms and their constant sum to the mean, and are the posteriors of independent functions", {
  skip_on_cran()
  x <- kernel_rows(25)
  y <- with_seed(3, stats::rnorm(25)) + x[, 1]
  w <- with_seed(4, stats::runif(25, 0.5, 2))
  new <- kernel_rows(6, 4)
  for (seed in some_of(1:8, 2)) {
    k <- with_seed(seed, random_kernel() + random_factor("periodic") + random_factor("rq"))
    fit <- function(by, ...) {
      suppressMessages(by(x, y, kernel = k, noise = 0.2, hyper = "fixed", weights = w, ...))
    }
    exact <- fit(gp_exact)
    fits <- list(exact, fit(pfdtc, m = 4, control = pfdtc_control(maxit = 3)), fit(gp_sor, m = 4),
                 fit(pfdtc, m = 4, neighbours = 7), fit(pfdtc, m = 4, neighbours = 25))
    for (f in fits) {
      got <- predict(f, new, type = "terms", se.fit = TRUE)
      expect_equal(rowSums(got$fit) + attr(got$fit, "constant"), predict(f, new), tolerance = 1e-8,
                   ignore_attr = TRUE, info = seed)
      expect_identical(predict(f, new, type = "terms"), got$fit)
      expect_identical(dim(got$se.fit), dim(got$fit))
    }
    placed <- with_own_terms(complete_kernel(k, x))
    Ky <- ref_composite(placed, x) + diag(0.2 / w)
    got <- lapply(fits[c(1, 5)], predict, new, type = "terms", se.fit = TRUE)
    for (t in seq_along(placed$terms)) {
      part <- placed
      part$terms <- placed$terms[t]
      K <- ref_composite(part, x, new)
      mean <- drop(crossprod(K, solve(Ky, y - exact$center)))
      sd <- sqrt(diag(ref_composite(part, new)) - colSums(K * solve(Ky, K)))
      for (g in got) { # both are exact up to the jitter
        expect_equal(unname(g$fit[, t]), mean, tolerance = 1e-6, info = seed)
        expect_equal(unname(g$se.fit[, t]), sd, tolerance = 1e-4, info = seed)
      }
    }
  }
})

test_that("summary() has shares of the terms only for sums of kernels; intervals of terms are refused", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_linear() + kernel_se(5))
  shares <- summary(fit)$term_shares
  expect_equal(sum(shares), 1)
  expect_output(print(summary(fit)), "Shares of terms +linear [0-9]+ %, squared exponential\\s+[0-9]+ %")
  expect_null(summary(gp_exact(dist ~ speed, cars, kernel = kernel_se()))$term_shares)
  expect_error(predict(fit, type = "terms", interval = "credible"), "terms", class = "pfdtc_error_input")
  expect_identical(colnames(predict(gp_exact(dist ~ speed, cars, kernel = kernel_se()), type = "terms")), "se(speed)")
})

test_that("derivatives are the slopes of the mean, with the exact sd, whatever the kernel and the fit", {
  skip_on_cran()
  x <- kernel_rows(25)
  y <- with_seed(3, stats::rnorm(25)) + x[, 1]
  new <- kernel_rows(5, 9)
  h <- 1e-4
  up <- down <- new
  up[, "a"] <- new[, "a"] + h
  down[, "a"] <- new[, "a"] - h
  for (seed in c(some_of(1:8, 4), 9)) {
    k <- if (seed == 9) kernel_linear(0.5, "a") * kernel_polynomial(2, 1, 0.7, c("a", "b")) + kernel_se(1, 1) else
      with_seed(seed, random_smooth_kernel(smooth = TRUE) + random_factor("se"))
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
    expect_equal(unname(got$se.fit), sqrt(pmax(exact$var, 0)), tolerance = 1e-4, info = seed) # error of differences
  }
})

test_that("certified and plain intervals of derivatives contain the exact slopes", {
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

test_that("derivatives that do not exist are refused with the reason", {
  cars$wet <- rep(c("no", "yes"), 25)
  fit <- gp_exact(dist ~ speed + wet, cars, kernel = kernel_matern(1 / 2, c(1, 1, 1), 400), noise = 200,
                  hyper = "fixed")
  derivative <- function(...) predict(fit, cars, type = "derivative", ...)
  expect_error(derivative(wrt = "speed"), "kink", class = "pfdtc_error_input")
  expect_error(derivative(), "wrt", class = "pfdtc_error_input")
  expect_error(derivative(wrt = "wet"), "wrt", class = "pfdtc_error_input")
  expect_error(predict(fit, cars, wrt = "speed"), "`wrt` cannot be combined", class = "pfdtc_error_input")
  expect_error(derivative(wrt = "speed", interval = "prediction"), "derivative", class = "pfdtc_error_input")
  fit <- gp_exact(cars["speed"], cars$dist, kernel = kernel_se(3, 400) + kernel_white(2), noise = 200, hyper = "fixed")
  expect_error(predict(fit, type = "derivative"), "continuous", class = "pfdtc_error_input")
})

test_that("partial dependence keeps apart a variable and a result of the same name", {
  d <- stats::setNames(cars, c("mean", "dist"))
  fit <- gp_exact(dist ~ mean, d, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  got <- partial_dependence(fit, "mean", at = c(5, 10))
  expect_identical(names(got)[1:2], c("mean.1", "mean"))
  expect_identical(got$mean.1, c(5, 10))
  expect_equal(got$mean, unname(predict(fit, data.frame(mean = c(5, 10)))))
})

test_that("partial dependence on a time difference takes `n` values of its range", {
  d <- data.frame(t = as.difftime(cars$speed + 1:50 / 100, units = "hours"), y = cars$dist)
  fit <- gp_exact(y ~ t, d, kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  got <- partial_dependence(fit, "t", n = 3)
  expect_equal(got$t, as.difftime(c(4.01, 14.755, 25.5), units = "hours"))
  expect_equal(got$mean, unname(predict(fit, data.frame(t = got$t))))
})

test_that("averages of mean responses include offsets, and are not certified with a family", {
  d <- data.frame(x = seq(-2, 2, length.out = 40), e = seq(0.5, 3, length.out = 40))
  d$n <- with_seed(2, stats::rpois(40, exp(d$x)))
  counts <- pfdtc(n ~ x + offset(log(e)), d, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed")
  numbers <- pfdtc(n ~ x + offset(log(e)), d, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  for (fit in list(counts, numbers)) {
    each <- predict(fit, data.frame(x = 0.5, e = d$e), type = "response")
    expect_equal(partial_dependence(fit, "x", d, at = 0.5, type = "response", certified = FALSE)$mean, mean(each))
  }
  expect_input_error(partial_dependence(counts, "x", type = "response", certified = TRUE), "certified")
})

test_that("partial_dependence() without newdata names `at` in errors about its values", {
  fit <- pfdtc(weight ~ Time + Diet, ChickWeight, m = 10, kernel = kernel_se(10, 1), noise = 1, hyper = "fixed")
  expect_input_error(partial_dependence(fit, "Diet", at = "zz"), "`at`")
  expect_input_error(partial_dependence(fit, "Diet", ChickWeight[1:3, ], at = "zz"), "`newdata`")
  grouped <- pfdtc(travel ~ (1 | Rail), nlme::Rail, kernel = kernel_group(~ Rail, variance = 600), noise = 16,
                   hyper = "fixed")
  expect_message(partial_dependence(grouped, "Rail", at = "zz"), "New level of `Rail` in 18 rows")
})

test_that("averages are named as figures name f and the response, and a derivative needs a number", {
  legend <- function(fit, ...) attr(partial_dependence(fit, "wt", n = 2, ...), "legend")
  fit <- pfdtc(am ~ wt, mtcars, family = binomial(), kernel = kernel_se(1, 1), hyper = "fixed")
  expect_match(legend(fit), "the average of f (logit scale of am) over 32 rows", fixed = TRUE)
  expect_match(legend(fit, type = "response"), "the average of P(success) over 32 rows", fixed = TRUE)
  spray <- pfdtc(count ~ spray, InsectSprays, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed")
  expect_error(predict(spray, type = "derivative"), "needs a numeric input, but the fit has none",
               class = "pfdtc_error_input")
})
