# Tests fits with noise = 0, which interpolate the data.

branin <- function(x) {
  u <- 15 * x[, 1] - 5
  v <- 15 * x[, 2]
  (v - 5.1 / (4 * pi^2) * u^2 + 5 / pi * u - 6)^2 + 10 * (1 - 1 / (8 * pi)) * cos(u) + 10
}

simulator <- function(n, f = branin, seed = 1) {
  x <- with_seed(seed, matrix(stats::runif(2 * n), n, dimnames = list(NULL, c("a", "b"))))
  data.frame(x, y = f(x))
}

test_that("with noise = 0 the fit passes through the data, and certificates contain the exact GP", {
  data <- simulator(30)
  fit <- with_seed(1, pfdtc(y ~ ., data, noise = 0, control = list(progress = FALSE)))
  expect_equal(fit$noise, 1e-10 * stats::var(data$y) * 29 / 30, tolerance = 1e-6)
  expect_lt(max(abs(predict(fit) - data$y)), 1e-3 * stats::sd(data$y))
  expect_identical(fit$df, length(coef(fit)) - 1L) # the noise is held
  expect_false("log(noise)" %in% rownames(vcov(fit)))
  expect_output(print(fit), "interpolation")
  new <- simulator(20, seed = 2)
  interval <- certify(fit, new)
  p <- predict(fit, new)
  expect_true(all(interval$mean_lower <= p & p <= interval$mean_upper))
  # Compute the same posterior by dense algebra, whose condition number of 1e9 leaves six digits.
  inputs <- as.matrix(data[1:2])
  cross <- kernel_matrix(fit$kernel, as.matrix(new[1:2]), inputs)
  K <- kernel_matrix(fit$kernel, inputs) + diag(fit$noise, 30)
  expect_equal(unname(p), drop(mean(data$y) + cross %*% solve(K, data$y - mean(data$y))), tolerance = 1e-4)
  # A kernel with a large variance needs more noise.
  kernel <- kernel_matern(5 / 2, c(0.5, 0.5), 1e8 * stats::var(data$y))
  large <- pfdtc(y ~ ., data, noise = 0, hyper = "fixed", kernel = kernel)
  expect_equal(large$noise, 1e-5 * stats::var(data$y), tolerance = 1e-6)
  again <- with_seed(1, cross_validate(fit, folds = 3, hyper = "held"))
  expect_true(all(is.finite(again$rmse)))
})

test_that("noise = 0 is refused where equal inputs have different responses", {
  expect_error(pfdtc(dist ~ speed, cars, noise = 0), "equal inputs", class = "pfdtc_error_input")
})

test_that("with rows of huge weight and rows of weight 1 the noise maximises the dense likelihood", {
  x <- seq(0, 1, length.out = 60)
  for (heavy in c(1e6, 1e9, 1e12)) {
    w <- replace(rep(1, 60), c(10, 30, 50), heavy)
    y <- sin(6 * x) + with_seed(2, stats::rnorm(60, sd = 0.3)) / sqrt(w)
    fit <- with_seed(1, pfdtc(y ~ x, data.frame(x, y), weights = w, kernel = kernel_matern(3 / 2), noise = ~ 1))
    kernel <- kernel_matrix(fit$kernel, matrix(x))
    nats <- function(log_noise) ref_log_normal(y - fit$center, kernel + diag(exp(log_noise) / w))
    most <- stats::optimize(nats, log(fit$noise) + c(-8, 8), maximum = TRUE)
    expect_lt(most$objective - nats(log(fit$noise)), 0.1) # the prior moves it a little
    expect_equal(sqrt(fit$noise), 0.3, tolerance = 0.3)   # three standard errors
  }
})

test_that("a pool with another response equals the pool made from it, and keeps the kernels of its rows", {
  x <- with_seed(1, matrix(round(stats::runif(120), 1), 60))
  y <- with_seed(2, stats::rnorm(60))
  w <- with_seed(3, stats::runif(60))
  pools <- lapply(list(y, exp(y)), function(y) {
    data <- data_from_matrix(x, y, w)
    list(data = data, pool = with_seed(4, learning_rows(data, open_settings(data))))
  })
  s <- open_settings(pools[[1]]$data)
  one <- pools[[1]]$pool
  got <- pool_of_response(one, merge_all_equal_rows(pools[[2]]$data))
  of_rows <- setdiff(names(one), c("count", "made", "take", "until"))
  expect_identical(got[of_rows], pools[[2]]$pool[of_rows])
  compared <- c("unit", "lower", "upper", "middle", "table")
  first <- learning_problem(one, s, "matern32")
  expect_identical(learning_problem(got, s, "matern32")[compared],
                   learning_problem(pools[[2]]$pool, s, "matern32")[compared])
  expect_false(identical(learning_problem(got, s, "matern32")$unit, first$unit))
  # Another kernel of the same profile is compiled anew.
  s$kernel$inputs <- 1L
  expect_identical(c(first$last, learning_problem(one, s, "matern32")$last), c(4L, 3L))
})

test_that("equal steps of a response that follow from equal steps of the inputs are not rounding", {
  regular <- function(y, x = seq_along(y), ...) {
    data <- clean_data(as.matrix(x), y, "y", NULL, NULL, NULL, TRUE, TRUE, 0, ...)
    data <- merge_all_equal_rows(data)
    is_regular(data, data$response)
  }
  expect_true(regular(100 + 5 * (0:30)))
  expect_true(regular((1:30)^2))
  expect_true(regular((-15:15)^2, -15:15)) # responses have ties, but are quadratic
  expect_true(regular(rep(3 * (1:20), 2), rep(1:20, 2)))
  grid <- expand.grid(a = 1:6, b = 1:6)
  expect_true(regular(2 * grid$a - 3 * grid$b, grid))
  x <- with_seed(1, stats::runif(200))
  expect_false(regular(floor(5 * x), x))
  expect_false(regular(floor(5 * x) + 1e9, x))
  expect_false(regular(floor((1:50) / 3)))
  expect_false(regular(c(3 * (1:20), 3 * (1:20) + 1), rep(1:20, 2)))
})

test_that("an exact line on a grid has almost no noise, and a rounded response has the noise of rounding", {
  line <- data.frame(year = 1990:2020, pop = 100 + 5 * (0:30))
  fit <- suppressWarnings(with_seed(1, pfdtc(pop ~ year, line)))
  expect_null(fit$noise_trend)
  expect_null(fit$noise_tail)
  expect_lt(sigma(fit), 2e-3 * stats::sd(line$pop)) # the least noise is a thousandth of the sd
  next_year <- predict(fit, data.frame(year = 2021), interval = "prediction")
  expect_lt(max(abs(next_year - 255)), 0.2)
  steps <- with_seed(1, data.frame(x = stats::runif(100)))
  steps$y <- floor(5 * steps$x)
  fit <- with_seed(1, pfdtc(y ~ x, steps))
  expect_gt(sigma(fit), 0.999 * sqrt(1 / 12))
})

test_that("noise at its lower bound is constant and normal, and sigma() is inside the printed range", {
  model <- function(noise) list(problem = list(last = 2L, lower = c(0, log(1e-3))), theta = c(1, log(noise)))
  expect_true(at_floor(model(1.9e-3)))
  expect_false(at_floor(model(2.1e-3)))
  from <- list(tails = TRUE)
  expect_identical(with_tail(model(1e-3), from), model(1e-3))
  trend <- list(smooth = list(), range = c(1, 9), mean = 4)
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 4, hyper = "fixed")
  sd <- function(trend) sigma(replace(fit, "noise_trend", list(trend)))
  expect_equal(sd(trend), 4, tolerance = 1e-12)
  expect_equal(sd(trend[c("smooth", "range")]), 2 * sqrt(3), tolerance = 1e-12)
  expect_equal(sd(NULL), 2, tolerance = 1e-12)
  d <- with_seed(2, data.frame(x = stats::runif(80)))
  d$y <- sin(8 * d$x) + with_seed(3, ifelse(d$x > 0.6, 0.6, 0.05) * stats::rnorm(80))
  fit <- with_seed(1, pfdtc(y ~ x, d, noise = ~ smooth(x)))
  expect_equal(sigma(fit)^2, mean(noise_at(fit, fit$data$x)))
  expect_output(print(summary(fit)), "effective parameters, of which [0-9]+ for the\\s+varying noise")
})

test_that("the variances of few rows count copies once", {
  d <- with_seed(1, data.frame(x = stats::runif(24)))
  d$y <- sin(6 * d$x) + with_seed(2, 0.3 * stats::rnorm(24))
  once <- with_seed(1, pfdtc(y ~ x, d, transform = "auto"))
  twice <- with_seed(1, pfdtc(y ~ x, rbind(d, d[1:16, ]), transform = "auto"))
  expect_match(twice$because[["scale"]], "from 24 rows")
  expect_equal(attr(twice$learned, "factor"), attr(once$learned, "factor"))
  expect_equal(twice$noise_tail, once$noise_tail)
})

test_that("the variances of few rows have the factor n / (n - p) and quantiles of Student's t", {
  d <- with_seed(1, data.frame(x = stats::runif(8)))
  d$y <- sin(6 * d$x) + with_seed(2, 0.3 * stats::rnorm(8))
  fit <- with_seed(1, pfdtc(y ~ x, d, transform = "auto"))
  plain <- with_seed(1, pfdtc(y ~ x, d, plain = TRUE))
  factor <- 8 / (8 - 3) * (stats::qt(0.975, 7) / stats::qnorm(0.975))^2
  scaled <- c("variance", "noise")
  expect_equal(coef(fit)[scaled], factor * coef(plain)[scaled])
  expect_equal(fitted(fit), fitted(plain))
  expect_match(fit$because[["scale"]],
               "by 1.60, because .* with 3 hyperparameters .* from 8 rows. They .* by 1.46 too, so .* [(]7 degrees")
  expect_false("scale" %in% names(plain$because))
  expect_false("scale" %in% names(pfdtc(y ~ x, d, transform = "auto", noise = 0.1)$because))
})
