test_that("deviance() and df.residual() are the sums of lm(), with the fit's leverages", {
  data <- small_data(25)
  data$w <- seq(0.5, 2, length.out = 25)
  data$w[4] <- 0
  data$y[9] <- NA
  fit <- fit_mixed(y ~ a + f, data = data, weights = w, na.action = na.exclude)
  e <- (data$y - fitted(fit))[-9]
  expect_equal(deviance(fit), sum(data$w[-9] * e^2))
  expect_equal(df.residual(fit), 23 - sum(hatvalues(fit), na.rm = TRUE))
  # With a nearly linear kernel the fit has almost the degrees of freedom of a line.
  flat <- gp_exact(cars$speed, cars$dist, kernel = kernel_se(1e4, 1e10), noise = 200, hyper = "fixed")
  line <- lm(dist ~ speed, cars)
  expect_equal(df.residual(flat), df.residual(line), tolerance = 1e-3)
  expect_equal(deviance(flat), deviance(line), tolerance = 1e-3)
})

test_that("extractAIC() is AIC(), and step() and drop1() work with it", {
  d <- with_seed(1, data.frame(a = runif(40), b = runif(40), c = runif(40)))
  d$y <- with_seed(2, sin(5 * d$a) + d$b + 0.1 * rnorm(40))
  fit <- with_seed(1, pfdtc(y ~ a + b + c, d, kernel = kernel_se(), control = pfdtc_control(restarts = 2)))
  expect_identical(extractAIC(fit), c(fit$df, AIC(fit)))
  expect_identical(extractAIC(fit, k = 5), c(fit$df, AIC(fit, k = 5)))
  dropped <- with_seed(1, drop1(fit))
  expect_identical(row.names(dropped), c("<none>", "a", "b", "c"))
  expect_true(all(dropped[c("a", "b"), "AIC"] > dropped["<none>", "AIC"] + 10))
  chosen <- with_seed(1, step(fit, trace = 0))
  expect_true(all(c("a", "b") %in% labels(chosen)))
})

test_that("family(), case.names() and labels() are those of linear models", {
  data <- small_data(12)
  data$w <- rep(c(1, 0, 2), 4)
  fit <- fit_mixed(y ~ a + f, data = data, weights = w, m = 4)
  line <- lm(y ~ a + f, data, weights = w)
  expect_identical(stats::family(fit)$family, "gaussian")
  expect_identical(case.names(fit), case.names(line))
  expect_identical(case.names(fit, full = TRUE), case.names(line, full = TRUE))
  expect_identical(labels(fit), labels(line))
  data$a[2] <- NA
  fit <- pfdtc(y ~ a, data, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed", na.action = na.exclude)
  expect_identical(case.names(fit), case.names(lm(y ~ a, data, na.action = na.exclude)))
  expect_identical(case.names(update(fit, weights = rep(1:0, c(9, 3)))), as.character(1:9))
  votes <- pfdtc(cars$speed, cars$dist > 40, family = binomial("probit"), kernel = kernel_se(6, 1), hyper = "fixed")
  expect_identical(stats::family(votes)[c("family", "link")], stats::binomial("probit")[c("family", "link")])
  p <- smooth_data()
  expect_identical(labels(fit_fixed(p)), c("x1", "x2"))
  expect_identical(case.names(fit_fixed(p)), as.character(1:50))
})

test_that("update() changes the call as R's own method does", {
  fit <- fit_cars()
  expect_identical(fitted(update(fit, m = 5)), fitted(fit_cars(m = 5)))
  expect_identical(update(fit, evaluate = FALSE), fit$call)
  expect_identical(deparse1(update(fit, sqrt(.) ~ ., m = NULL, evaluate = FALSE)$formula), "sqrt(dist) ~ speed")
})

test_that("update() finds the data of fits made inside functions", {
  make <- function(rows) {
    some <- cars[rows, ]
    few <- 4
    pfdtc(dist ~ speed, some, m = few, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", weights = speed,
          control = fixed_control())
  }
  fit <- make(1:30)
  expect_identical(fitted(update(fit)), fitted(fit))
  more <- 6
  expect_identical(update(fit, m = more)$m, 6L)
  other <- cars[5:50, ]
  expect_identical(nobs(update(fit, data = other)), 46L)
  again <- (function() {
    noisy <- 300
    update(fit, noise = noisy)
  })()
  expect_identical(again$noise, 300)
  log_fit <- update(fit, log(dist) ~ .)
  expect_equal(unname(log_fit$data$response), log(cars$dist[1:30]))
})

test_that("update() finds weights of the function that made the fit, and columns of the same data", {
  by <- function(own) {
    of_row <- rep(1:2, 25)
    pfdtc(dist ~ speed, cars, weights = of_row * speed / 10, kernel = own, noise = 200, hyper = "fixed")
  }
  fit <- by(kernel_se(5, 500))
  again <- update(fit, kernel = kernel_se(6, 500))
  expect_identical(weights(again), weights(fit))
  expect_identical(predict(again), predict(by(kernel_se(6, 500))))
  of_row <- rep(1, 50) # a variable of update()'s caller comes first, as for lm()
  expect_identical(weights(update(fit, kernel = kernel_se(6, 500))), cars$speed / 10)
  expect_identical(nobs(add_rows(fit, data.frame(speed = 1, dist = NA, of_row = 1))), nobs(fit))
})

test_that("update() has the formula of the fit where the formula's name means something else, or nothing", {
  fit_by <- function(model) pfdtc(model, cars, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
  fit <- fit_by(dist ~ speed)
  expect_identical(predict(update(fit, noise = 300)), predict(update(fit, dist ~ ., noise = 300)))
  fits <- lapply(list(dist ~ speed, log(dist) ~ speed), pfdtc, data = cars, kernel = kernel_se(6, 900), noise = 200,
                 hyper = "fixed") # in lapply() the formula is X[[i]]
  expect_identical(lapply(lapply(fits, update, noise = 300), formula), lapply(fits, formula))
  model <- sqrt(dist) ~ speed # a formula under the same name comes first, as for lm()
  expect_equal(formula(update(fit, noise = 300)), model)
})

test_that("update() of a fit from a matrix made inside a function has the fit's own rows", {
  make <- function() {
    inputs <- cbind(speed = cars$speed)
    response <- cars$dist
    precision <- rep(c(1, 2), 25)
    pfdtc(inputs, response, weights = precision, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", m = 5,
          control = fixed_control())
  }
  fit <- make()
  again <- update(fit, m = 8)
  expect_identical(again$m, 8L)
  expect_identical(unname(again$data$response), cars$dist)
  expect_equal(fitted(update(fit)), fitted(fit))
  expect_input_error(update(fit, y ~ .), "formula.")
})

test_that("methods that need the rows name keep_data if the fit has none", {
  fit <- fit_cars(keep_data = FALSE)
  for (f in list(deviance, df.residual, case.names)) expect_input_error(f(fit), "keep_data")
})

test_that("drop1(), add1() and step() drop and add groups, and keep the last term", {
  d <- with_seed(4, data.frame(x = stats::runif(60), z = stats::runif(60), g = gl(6, 10)))
  d$y <- with_seed(5, sin(5 * d$x) + as.integer(d$g) + 0.2 * stats::rnorm(60))
  both <- pfdtc(y ~ . + (1 | g), d, plain = TRUE, control = pfdtc_control(restarts = 1))
  expect_identical(deparse1(formula(both)), "y ~ x + z + (1 | g)") # without the group the dot includes g
  expect_identical(labels(both), c("x", "z", "1 | g"))
  expect_identical(colnames(attr(terms(both), "factors")), labels(both))
  without <- function(term) deparse1(update(both, stats::as.formula(paste("~ . -", term)), evaluate = FALSE)$formula)
  expect_identical(vapply(labels(both), without, "", USE.NAMES = FALSE),
                   c("y ~ z + (1 | g)", "y ~ x + (1 | g)", "y ~ x + z"))
  dropped <- drop1(both)
  alone <- update(both, y ~ x + z)
  expect_equal(dropped["1 | g", "AIC"], AIC(alone))
  expect_gt(dropped["1 | g", "AIC"], dropped["<none>", "AIC"] + 20)
  expect_equal(add1(alone, ~ . + (1 | g))["1 | g", "AIC"], AIC(both), tolerance = 0.01) # starts are random
  expect_true(all(c("x", "1 | g") %in% labels(step(both, trace = 0))))
  kept <- step(pfdtc(y ~ (1 | g), d), trace = 0)$call # nothing is dropped
  expect_identical(labels(eval(kept)), "1 | g")
  # For groups alone AIC() uses another likelihood, which the heading says.
  groups <- pfdtc(y ~ (1 | g) + (1 | z), transform(d, z = gl(2, 3, 60)))
  for (table in list(drop1(groups), drop1(eval(kept)), add1(eval(kept), ~ . + x))) {
    expect_match(attr(table, "heading"), "AIC[(][)] has the restricted likelihood", all = FALSE)
  }
  expect_false(any(grepl("restricted", attr(dropped, "heading"))))
  last <- drop1(fit_cars())
  expect_identical(row.names(last), c("<none>", "speed"))
  expect_identical(is.na(last$AIC), c(FALSE, TRUE)) # a fit without inputs does not exist
  expect_match(attr(last, "heading"), "a fit needs an input", all = FALSE)
  expect_identical(labels(step(fit_cars(), trace = 0)), "speed")
})

test_that("fitted() refuses new rows, which belong to predict()", {
  expect_input_error(fitted(fit_cars(), cars), "predict")
})

test_that("step() drops terms by AIC, also where models have as many hyperparameters", {
  only_nightly()
  d <- with_seed(1, data.frame(a = stats::rnorm(60), b = stats::rnorm(60), z = stats::rnorm(60)))
  d$y <- with_seed(2, d$a + 2 * d$b + 3 * d$z + stats::rnorm(60, sd = 0.5))
  fit <- with_seed(1, pfdtc(y ~ a + b + z, d))
  dropped <- with_seed(1, drop1(fit))
  expect_false(any(dropped$Df == 0, na.rm = TRUE))
  expect_gt(min(dropped$AIC[-1]), dropped$AIC[1] + 50) # without a, |residuals| double for 60 rows
  expect_identical(formula(with_seed(1, step(fit, trace = 0))), formula(fit))
  added <- with_seed(1, add1(with_seed(1, pfdtc(y ~ a + b, d)), ~ . + z))
  expect_false(any(added$Df == 0, na.rm = TRUE))
})

test_that("drop1() and add1() do not announce the family, and have no Df where fewer terms have more parameters", {
  d <- data.frame(a = 1:12 / 12, b = c(3, 1, 2), y = factor(rep(c("no", "yes"), c(5, 7))))
  fit <- suppressMessages(with_seed(1, pfdtc(y ~ a + b, d, kernel = kernel_se())))
  expect_message(update(fit, . ~ . - b), class = "pfdtc_message_family")
  expect_no_message(with_seed(1, drop1(fit)), class = "pfdtc_message_family")
  expect_identical(table_for_step(data.frame(Df = c(NA, -2, 0, 3)), fit)$Df, c(NA, NA, NA, 3))
})

test_that("weights() are those given, also where the noise differs", {
  x <- matrix(seq(0, 1, length.out = 80))
  y <- with_seed(3, sin(6 * x[, 1]) + stats::rnorm(80, sd = 0.05 + x[, 1]))
  fit <- with_seed(1, pfdtc(x, y, noise = ~ x1, weights = rep(2, 80)))
  expect_false(is.null(fit$noise_trend))
  expect_equal(unname(weights(fit)), rep(2, 80))
  expect_null(weights(with_seed(1, pfdtc(x, y, noise = ~ x1))))
})

test_that("drop1() and add1() do not repeat the messages of the fit", {
  d <- transform(mtcars, cyl = ordered(cyl), gear = ordered(gear))
  expect_message(fit <- pfdtc(mpg ~ wt + cyl, d, noise = 9), "order of the levels")
  expect_no_message(drop1(fit))
  expect_no_message(add1(fit, ~ . + gear))
})

test_that("a variable that leaves the formula leaves `mean` and `noise` too", {
  fit <- pfdtc(mpg ~ wt + hp, mtcars, kernel = kernel_se(), mean = ~ wt + hp, noise = ~ wt)
  without <- update(fit, . ~ . - wt)
  expect_identical(without$call$noise, ~ 1, ignore_formula_env = TRUE)
  same <- pfdtc(mpg ~ hp, mtcars, kernel = kernel_se(), mean = ~ hp, noise = ~ 1)
  expect_equal(logLik(without), logLik(same))
  expect_identical(update(fit, log(mpg) ~ .)$call$noise, fit$call$noise)
  expect_equal(drop1(fit)["wt", "AIC"], AIC(same))
})

test_that("tables of dropped terms say why Df is blank", {
  fit <- fit_cars()
  table <- function(df) structure(data.frame(Df = c(NA, df), AIC = 1:2), heading = "terms")
  expect_match(attr(pfdtc:::table_for_step(table(0), fit), "heading"), "Df is blank", all = FALSE)
  expect_identical(attr(pfdtc:::table_for_step(table(1), fit), "heading"), "terms")
})
