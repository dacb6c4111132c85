# Tests transforms and noise that held-out rows reject, and responses that stay as given.

test_that("the squared error of one row does not reject a transform, that of two does", {
  made <- list(problem = list(pool = list(n = 20), center = 0, scale = 1))
  first <- c(made, list(held = data.frame(y = 0, f = rep(1, 20), var = 0, size = 0)))
  with_errors <- function(f) replace(first, "held", list(replace(first$held, "f", f)))
  expect_null(reason_to_refuse(with_errors(c(100, rep(1, 19))), first, list()))
  expect_match(reason_to_refuse(with_errors(c(100, 100, rep(1, 18))), first, list()), "squared errors")
  expect_null(reason_to_refuse(with_errors(rep(sqrt(1.19), 20)), first, list()))
  expect_match(reason_to_refuse(with_errors(rep(sqrt(1.21), 20)), first, list()), "squared errors")
  expect_match(reason_to_refuse(with_errors(c(NA, rep(1, 19))), first, list()), "squared errors")
})

test_that("held-out squared errors or held-out density decide about the transform of a deterministic response", {
  refused <- function(ratio, gain, spread = 0, kind = "yeojohnson") {
    scores <- -gain - spread * rep(c(-1, 1), 10) # a standard error of .229 for spread 1
    from <- list(simulator = list(errors = 1, scores = numeric(20)))
    with_replaced(list(squared_errors = function(model, from) model$errors,
                       response_scores = function(model) model$scores),
                  reason_to_refuse(list(errors = ratio, scores = scores, transform = list(kind = kind)), NULL, from))
  }
  expect_null(refused(0.39, -1)) # errors much smaller
  expect_null(refused(0.59, -1, kind = "log")) # smooth, unlike Yeo-Johnson
  expect_match(refused(0.61, -1, kind = "log"), "neither")
  expect_match(refused(0.41, 0.49), "neither its squared errors nor its density")
  expect_null(refused(0.41, 0.51))
  expect_null(refused(0.99, 0.51))
  expect_match(refused(1.01, 9), "squared errors at held-out rows are larger")
  expect_null(refused(0.99, 1.2, spread = 1))
  expect_match(refused(0.99, 1.1, spread = 1), "neither")
  expect_match(refused(NaN, 9), "larger")
})

test_that("with many rows, smooth noise is refused where constant noise has the larger held-out density", {
  candidate <- function(label, score, behind, trend = NULL) {
    transform <- if (label != "none") list(kind = "log")
    list(label = label, score = score, behind = behind, trend = trend, transform = transform,
         problem = list(pool = list(n = 2001)))
  }
  chosen <- function(behind) {
    tried <- list(none = candidate("none", 9, 3), log = candidate("log", 2, 1),
                  "log, smooth noise" = candidate("log, smooth noise", 0, behind, trend = TRUE))
    with_replaced(list(squared_errors = function(model, from) rep(1, 20),
                       response_scores = function(model) rep(model$behind, 20)),
                  checked_response(list(tried = tried), list())$best$label)
  }
  expect_identical(chosen(0.9), "log, smooth noise")
  expect_identical(chosen(1.1), "log")
})

test_that("a deterministic response is transformed only if its held-out squared errors become much smaller", {
  only_nightly()
  error <- function(fit, new) sqrt(mean((new$y - predict(fit, new))^2))
  # The log of the response is a sum of two functions.
  sums <- function(n, seed) {
    d <- with_seed(seed, data.frame(a = stats::runif(n), b = stats::runif(n)))
    transform(d, y = exp(2 * a) * (1.2 + sin(4 * b)))
  }
  fit <- with_seed(1, pfdtc(y ~ ., sums(60, 1), transform = "auto"))
  expect_identical(fit$transform$kind, "log")
  expect_match(fit$because[["noise_variance"]], "almost 0")
  plain <- with_seed(1, pfdtc(y ~ ., sums(60, 1), transform = "none", noise = ~ 1))
  expect_lt(error(fit, sums(100, 2)), error(plain, sums(100, 2)) / 3)
  # For Goldstein and Price's function, the log marginal likelihood prefers a transform that predicts worse.
  d <- with_seed(200, data.frame(a = stats::runif(200, -2, 2), b = stats::runif(200, -2, 2)))
  d <- transform(d, y = (1 + (a + b + 1)^2 * (19 - 14 * a + 3 * a^2 - 14 * b + 6 * a * b + 3 * b^2)) *
                   (30 + (2 * a - 3 * b)^2 * (18 - 32 * a + 12 * a^2 + 48 * b - 36 * a * b + 27 * b^2)))
  fit <- with_seed(1, pfdtc(y ~ ., d, transform = "auto"))
  expect_null(fit$transform)
  expect_match(fit$because[["response"]], "Refused: Yeo-Johnson")
})

test_that("a deterministic response that stays as given has the structure of a fit without a choice", {
  d <- with_seed(2, data.frame(a = stats::runif(40, -5, 10), b = stats::runif(40, 0, 15))) # Branin
  d <- transform(d, y = (b - 5.1 / (4 * pi^2) * a^2 + 5 / pi * a - 6)^2 + 10 * (1 - 1 / (8 * pi)) * cos(a) + 10)
  fits <- list(with_seed(1, pfdtc(y ~ ., d, transform = "auto")),
               with_seed(1, pfdtc(y ~ ., d, transform = "none", noise = ~ 1)))
  expect_null(fits[[1L]]$transform)
  expect_match(fits[[1L]]$kernel$label, "of each input") # chosen in both fits
  expect_identical(fits[[1L]]$kernel$label, fits[[2L]]$kernel$label)
})

test_that("with groups and few rows, held-out rows are given all others", {
  d <- with_seed(1, data.frame(x = stats::runif(60), g = factor(rep(1:6, 10))))
  d$y <- with_seed(2, d$x + stats::rnorm(6)[d$g] + 0.2 * stats::rnorm(60))
  seen <- NULL
  check <- checked_response
  with_replaced(list(checked_response = function(choice, from) {
    seen <<- list(model = choice$tried[[1L]], from = from)
    check(choice, from)
  }), with_seed(3, pfdtc(y ~ x + (1 | g), d, transform = "auto")))
  now <- seen$model$problem$natural(seen$model$theta)
  pool <- seen$model$problem$pool
  held <- held_out_response(seen$model, seen$from)
  precision <- solve(kernel_matrix(now$kernel, pool$x) + diag(now$noise, 60))
  expect_equal(held$f, pool$y - drop(precision %*% pool$y) / diag(precision), tolerance = 1e-6)
  expect_equal(held$var + held$noise, 1 / diag(precision), tolerance = 1e-6)
})

test_that("held-out means, and densities in the units of the response, are those of dense conditionals", {
  d <- positive_rows(30)
  from <- learned_from(response_case(d), log(c(0.3, 1.2, 0.1)))
  model <- response_model(from, new_transform("log", d$y))
  model$label <- "log"
  at <- exp(model$theta)
  z <- log(from$rows$y)
  K <- dense_kernel(from$rows$x, "matern32", at[1], at[2]) + diag(at[3], 30)
  u <- (z - mean(z)) / stats::sd(z)
  var <- 1 / diag(solve(K))
  mean <- u - drop(solve(K, u)) * var
  held <- held_out_response(model, from)
  rows <- match(held$y, from$rows$y)
  back <- exp(mean(z) + stats::sd(z) * mean + stats::sd(z)^2 * var / 2)
  expect_equal(squared_errors(model, from), (held$y - back[rows])^2, tolerance = 1e-8)
  expect_equal(held$f, mean[rows], tolerance = 1e-8)
  density <- stats::dlnorm(from$rows$y, mean(z) + stats::sd(z) * mean, stats::sd(z) * sqrt(var), log = TRUE)
  groups <- response_scores(model)
  expect_length(groups, 20L)
  rows <- model$problem$pool$take(30)
  expect_equal(groups, unname(vapply(split(-density[rows], seq_along(rows) %% 20), mean, 0)), tolerance = 1e-8)
})

test_that("a transform with larger squared errors is refused, and the table and the reasons say so", {
  d <- positive_rows(30)
  from <- learned_from(response_case(d), log(c(0.3, 1.2, 0.1)))
  tried <- lapply(list(none = NULL, log = new_transform("log", d$y)), function(transform) {
    c(response_model(from, transform), list(seconds = 0))
  })
  tried <- Map(function(model, label) c(model, list(label = label, score = if (label == "log") 0 else 1)), tried,
               names(tried))
  kept <- checked_response(list(tried = tried), from)
  expect_identical(kept$best$label, "log")
  tried$log$theta[2:3] <- log(c(20, 8)) # the mean of exp(f) is far away
  refused <- checked_response(list(tried = tried), from)
  expect_identical(refused$best$label, "none")
  expect_match(refused$refused[["log"]], "squared errors")
  expect_identical(table_of_responses(refused, names(tried))$refused, c(TRUE, FALSE))
  short <- tried["none"]
  short[["none, smooth noise"]] <- replace(tried$none, c("label", "score"), list("none, smooth noise", -1))
  expect_identical(checked_response(list(tried = short), from)$best$label, "none, smooth noise")
  short[[2L]]$theta[1L] <- log(1e-4) # f falls to the mean between rows
  expect_identical(names(checked_response(list(tried = short), from)$refused), "none, smooth noise")
})

test_that("individuals that one input identifies are not mistaken for a skewed response", {
  skip_on_cran()
  d <- individuals(6, function(n) 2 * stats::rexp(n)^1.5)
  made <- function() with_seed(1, pfdtc(y ~ ., d, transform = "auto", control = list(progress = FALSE)))
  fit <- made()
  without <- with_replaced(list(with_short_lengthscale = function(tried, from) tried), made())
  expect_null(fit$transform)
  expect_identical(without$transform$kind, "log")
  expect_gt(as.numeric(logLik(fit) - logLik(without)), 50)
  expect_lt(sigma(fit), 0.25) # the truth is 0.15
})

test_that("the gain of a short lengthscale must exceed the lead of smooth noise, and its own gain, by additive_nats", {
  d <- with_seed(1, data.frame(a = rep(stats::runif(20), 2), b = stats::runif(40), y = stats::rnorm(40)))
  case <- response_case(d)
  # b has no value twice. c has fewer than ten values, and a search finds those from any start.
  expect_identical(identifying_columns(list(x = cbind(a = d$a, b = d$b, c = rep(1:8, 5)), n = 40L)), c(a = 1L))
  from <- learned_from(case, log(c(0.3, 0.3, 1, 0.5)))
  none <- c(response_model(from, NULL), list(label = "none", score = 110))
  basis <- noise_trend_of(case$data, 1L)
  uneven <- replace(with_uneven_noise(none, basis, from), c("label", "score"), list("none, linear noise", 100))
  tried <- list(none = none, "none, linear noise" = uneven)
  weights <- list()
  with_gains <- function(of_none, of_uneven) {
    weights <<- list()
    with_replaced(list(short_run = function(problem, theta, least) {
      weights <<- c(weights, list(problem$pool$weights))
      list(value = least + if (length(weights) == 1L) of_none else of_uneven)
    }), with_short_lengthscale(tried, from))
  }
  expect_identical(with_gains(24, 0), tried)
  expect_length(weights, 1L) # the other candidate is not tried
  now <- with_gains(26, 0)
  expect_equal(now$none[c("score", "merit", "short")], list(score = 84, merit = none$merit + 26, short = 26))
  expect_identical(now[[2L]], uneven)
  expect_null(weights[[1L]])
  expect_equal(weights[[2L]], 1 / noise_factor(uneven$trend, none$problem$pool$x))
  expect_identical(with_gains(26, 2), tried)
})

test_that("noise is small or not at the mean weight, so merits do not depend on the unit of the weights", {
  d <- with_seed(11, data.frame(a = stats::runif(100), w = exp(stats::rnorm(100))))
  d$y <- sin(5 * d$a) + with_seed(12, 0.5 * d$a * stats::rnorm(100)) / sqrt(d$w)
  chosen <- function(unit) with_seed(1, pfdtc(y ~ a, d, weights = unit * w, transform = "auto"))$response
  one <- chosen(1)
  for (unit in c(1e-3, 100)) expect_equal(chosen(unit)$merit, one$merit, tolerance = 1e-8)
})
