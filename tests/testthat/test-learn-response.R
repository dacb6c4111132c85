# Tests the modelled response: transform and noise, chosen before the kernel.

test_that("if nothing is gained a fit has constant noise and the response as given", {
  d <- with_seed(4, data.frame(x = stats::runif(150)))
  d$y <- sin(8 * d$x) + with_seed(5, 0.3 * stats::rnorm(150))
  found <- with_seed(1, pfdtc(y ~ x, d, transform = "auto"))
  plain <- with_seed(1, pfdtc(y ~ x, d, transform = "none", noise = ~ 1))
  # Three hyperparameters (lengthscale, variance, noise) were learned from 150 rows, so variances have this factor.
  expect_equal(coef(found), coef(plain) * ifelse(grepl("lengthscale", names(coef(plain))), 1, 150 / 147))
  expect_match(found$because[["scale"]],
               "multiplied by 1\\.02, .* with 3 hyperparameters of kernel and noise estimated from 150 rows.")
  below <- attr(found$learned, "below")
  expect_identical(found$learned,
                   structure(plain$learned, factor = 150 / 147, spread = c(few = 4 / 147), below = below))
  expect_equal(found$evidence + below, plain$evidence, tolerance = 1e-10)
  expect_null(found$transform)
  table <- found$response
  expect_named(table, c("candidate", "merit", "parameters", "seconds", "chosen", "refused", "tail"))
  expect_identical(table$candidate[table$chosen], "none")
  expect_false(is.unsorted(-table$merit, na.rm = TRUE))
})

test_that("the log is chosen for a log-normal response, and smooth noise for a step in the noise", {
  d <- positive_rows(150)
  fit <- with_seed(1, pfdtc(y ~ x, d, transform = "auto"))
  expect_identical(fit$transform$kind, "log")
  expect_match(fit$because[["response"]], "log")
  plain <- with_seed(1, pfdtc(y ~ x, d, transform = "none", noise = ~ 1))
  expect_gt(fit$evidence, plain$evidence + 20)
  step <- with_seed(2, data.frame(x = stats::runif(200)))
  step$y <- sin(8 * step$x) + with_seed(3, ifelse(step$x > 0.6, 0.6, 0.05) * stats::rnorm(200))
  uneven <- with_seed(1, pfdtc(y ~ x, step, transform = "auto"))
  sizes <- sqrt(noise_at(uneven, matrix(c(0.2, 0.9), dimnames = list(NULL, "x"))))
  expect_lt(abs(log(sizes[1] / 0.05)), 0.5)
  expect_lt(abs(log(sizes[2] / 0.6)), 0.5)
  expect_output(print(uneven), "smooth")
})

test_that("smooth noise is chosen also with a given transform", {
  d <- with_seed(2, data.frame(x = stats::runif(200)))
  d$y <- exp(sin(8 * d$x) + with_seed(3, ifelse(d$x > 0.6, 0.6, 0.05) * stats::rnorm(200)))
  fit <- with_seed(1, pfdtc(y ~ x, d, transform = "log"))
  expect_identical(fit$transform$kind, "log")
  expect_identical(fit$response$candidate[fit$response$chosen], "log, smooth noise")
  expect_false("response" %in% names(fit$because))
  sizes <- sqrt(noise_at(fit, matrix(c(0.2, 0.9), dimnames = list(NULL, "x"))))
  expect_gt(sizes[2] / sizes[1], 6)
  expect_null(with_seed(1, pfdtc(y ~ x, d, plain = TRUE))$noise_trend)
  expect_identical(coef(with_seed(1, pfdtc(y ~ x, d, transform = "log", noise = "auto"))), coef(fit))
})

# The price of 2 nats rises beyond 800 rows.
test_that("beyond 800 rows a parameter must gain .0025 nats a row", {
  price <- function(n) price_of_response(list(counted = seq_len(n)))
  expect_identical(vapply(c(100, 800, 1600, 2000), price, 0), c(2, 2, 4, 5))
})

test_that("with many rows, the rows that are compared keep their neighbours and their density", {
  d <- with_seed(1, data.frame(a = stats::runif(600), b = stats::runif(600)))
  d$y <- with_seed(2, sin(6 * d$a) + stats::rnorm(600))
  d <- d[c(1:600, 7, 7), ] # equal inputs
  d$y[601] <- 0
  case <- response_case(d)
  s <- first_plan(case$data, case$asked)$learn
  pool <- with_seed(3, learning_rows(case$data, s))
  problem <- learning_problem(pool, s, "matern32")
  theta <- log(c(0.3, 0.3, 1, 0.5))
  few <- list(response = c(rows = 40L, near = 5L), score = c(rows = 40L, near = 5L))
  with_replaced(list(transform_rows = 300L, learning_sizes = utils::modifyList(learning_sizes, few),
                     response_rule = replace(response_rule, "predicted", 20)), {
    from <- rows_around(case$data, problem, theta, "response")
    from[c("s", "scale", "profile")] <- list(s, case$data$scale, "matern32")
    thin <- response_problem(from, NULL)
    expect_lt(thin$pool$n, 350)
    at <- function(problem, ...) {
      rows <- problem$pool$take(40L)
      near <- problem$neighbours(theta, rows, 5L, ...)
      list(x = problem$pool$x[rows, ], near = apply(near, 2L, function(i) sum(problem$pool$x[i[i > 0], ])))
    }
    expect_equal(at(thin), at(problem), tolerance = 1e-12)
    held <- function(problem) {
      rows <- problem$pool$take(20L)
      problem$pool$x[problem$neighbours(theta, rows, 5L, earlier = FALSE), ]
    }
    expect_equal(held(thin), held(problem), tolerance = 1e-12)
  })
})

# With 14 rows the 15 nearest earlier rows are all earlier rows: the Vecchia density is exact.
test_that("the merit of a candidate is its exact log density, with priors", {
  case <- response_case(positive_rows(14))
  theta <- log(c(0.3, 1.2, 0.1))
  from <- learned_from(case, theta)
  for (transform in list(NULL, new_transform("log", case$data$response))) {
    model <- response_model(from, transform)
    y <- from$rows$y
    z <- if (is.null(transform)) y else log(y)
    at <- exp(model$theta)
    K <- dense_kernel(from$rows$x, "matern32", at[1], at[2]) + diag(at[3], 14)
    u <- (z - mean(z)) / stats::sd(z)
    dense <- -(determinant(K)$modulus + sum(u * solve(K, u)) + 14 * log(2 * pi)) / 2 - 14 * log(stats::sd(z)) -
      if (is.null(transform)) 0 else sum(log(y))
    expect_equal(model$merit, as.numeric(dense) + model$problem$prior(model$theta)$value, tolerance = 1e-8)
  }
})

test_that("the evidence of uneven noise is the integral over its coefficients", {
  d <- with_seed(8, data.frame(x = seq(0, 1, length.out = 16)))
  d$y <- with_seed(9, exp(2 * d$x) * stats::rnorm(16))
  case <- response_case(d, transform = "none")
  problem <- response_problem(learned_from(case, NULL), NULL)
  problem$free[] <- FALSE # only the coefficient moves
  theta <- log(c(1, 0.2, 0.8))
  trend <- noise_trend_of(case$data, 1L)
  found <- learn_noise(problem, theta, trend, "response")
  x <- problem$pool$x
  y <- problem$pool$y
  K <- dense_kernel(x, "matern32", 1, 0.2)
  b <- drop(noise_basis(found$trend, x))
  density <- Vectorize(function(gamma) {
    C <- K + diag(0.8 * exp(pmin(pmax(b * gamma, -7), 7)))
    exp(-(as.numeric(determinant(C)$modulus) + sum(y * solve(C, y)) + 16 * log(2 * pi)) / 2) *
      stats::dnorm(gamma, sd = sqrt(found$trend$v))
  })
  v <- found$trend$v
  exact <- log(stats::integrate(density, -6, 6, rel.tol = 1e-8)$value)
  # The estimate has the expected information, the integral the actual curvature: results differ by less than 0.4.
  expect_lt(abs(found$value - problem$prior(theta)$value - exact), 0.4)
  expect_gt(abs(log(v) + log(1 / found$trend$covariance)) / 2, 1)
  expect_lt(abs(log(v / (found$trend$gamma^2 / (1 - found$trend$covariance / v)))), 0.5) # near the fixed point
})

test_that("smooth noise is abandoned if it has a lower value than constant noise and its variance falls", {
  evaluations <- function(slope, least, x = seq(0, 1, length.out = 60)) {
    y <- sin(6 * x) + exp(slope * (x - 0.5)) * with_seed(9, stats::rnorm(60, sd = 0.3))
    problem <- response_problem(learned_from(response_case(data.frame(x, y), transform = "none"), NULL), NULL)
    learn_noise(problem, log(c(0.3, 1, 0.1)), noise_trend_of(list(x = cbind(x)), 1L), "response", least)
    problem$pool$count$evaluations
  }
  expect_lt(evaluations(0, Inf), evaluations(0, -Inf))
  expect_identical(evaluations(3, Inf), evaluations(3, -Inf))
})

test_that("level and covariance are those of the inverse information of all free parameters", {
  d <- with_seed(8, data.frame(x = seq(0, 1, length.out = 16)))
  d$y <- with_seed(9, exp(2 * d$x) * stats::rnorm(16))
  case <- response_case(d, transform = "none")
  problem <- response_problem(learned_from(case, NULL), NULL)
  for (free in list(c(TRUE, TRUE, TRUE), c(TRUE, FALSE, TRUE), c(TRUE, TRUE, FALSE))) {
    problem$free[] <- free
    found <- learn_noise(problem, log(c(0.2, 1, 0.5)), noise_trend_of(case$data, 1L), "response")
    wide <- problem_with_trend(problem, found$trend, found$trend$v)
    theta <- c(found$theta, found$trend$gamma)
    rows <- seq_len(problem$pool$n)
    information <- wide$vecchia(theta, rows, wide$neighbours(theta, rows, 15L))$information
    used <- c(free, TRUE)
    V <- solve(information[used, used])
    q <- nrow(V)
    expect_equal(found$trend$covariance, V[q, q, drop = FALSE], tolerance = 1e-6, ignore_attr = TRUE)
    expect_equal(found$trend$level, if (free[3]) V[q - 1, q - 1:0] else c(0, 0), tolerance = 1e-6, ignore_attr = TRUE)
  }
})

test_that("noise that cannot be learned is constant, with a warning if it was asked for", {
  d <- with_seed(2, data.frame(x = stats::runif(40)))
  d$y <- sin(8 * d$x) + with_seed(3, 0.3 * stats::rnorm(40))
  with_replaced(list(learn_noise = function(...) NULL), {
    expect_warning(fit <- with_seed(1, pfdtc(y ~ x, d, noise = ~ x)), class = "pfdtc_warning_convergence")
    found <- with_seed(1, pfdtc(y ~ x, d, transform = "auto"))
  })
  expect_null(fit$noise_trend)
  expect_true(is.na(found$response$merit[found$response$candidate == "none, smooth noise"]))
})

test_that("the slope of the likelihood in the coefficients of smooth noise is that of its values", {
  d <- with_seed(3, data.frame(a = stats::runif(40), b = stats::runif(40)))
  d$y <- with_seed(4, stats::rnorm(40))
  d[31:40, 1:2] <- d[21:30, 1:2]
  case <- response_case(d, transform = "none")
  problem <- response_problem(learned_from(case, NULL), NULL)
  trend <- place_noise_trend(noise_trend_of(case$data, 1:2, 1:2), problem$pool$x, c(0.3, 0.4))
  q <- length(noise_parts(trend))
  expect_gt(q, 10)
  wide <- problem_with_trend(problem, trend, rep(c(0.2, 0.5), c(2, q - 2)))
  theta <- c(log(c(0.3, 0.4, 0.8, 0.3)), with_seed(5, 0.4 * stats::rnorm(q)))
  rows <- seq_len(problem$pool$n)
  near <- wide$neighbours(theta, rows, 10L)
  at <- function(theta) wide$vecchia(theta, rows, near)
  numeric <- vapply(seq_along(theta), function(j) {
    h <- replace(numeric(length(theta)), j, 1e-4)
    (at(theta + h)$value - at(theta - h)$value) / 2e-4
  }, 0)
  expect_equal(at(theta)$gradient, numeric, tolerance = 1e-5)
})

test_that("smooth features have the kernel's values as their products at Z", {
  x <- with_seed(1, matrix(stats::runif(120), 60))
  trend <- list(columns = 1:2, centre = c(0, 0), rate = c(1, 1), smooth = 1:2)
  smooth <- place_noise_trend(trend, x, c(0.2, 0.5))$smooth
  expect_equal(smooth$lengthscale, pmax(2 * c(0.2, 0.5), 0.3 * apply(x, 2, stats::sd)))
  expect_lte(nrow(smooth$z), 20L)
  u <- x[, 1:2] / rep(smooth$lengthscale, each = 60)
  z <- smooth$z / rep(smooth$lengthscale, each = nrow(smooth$z))
  r <- sqrt(3) * as.matrix(stats::dist(rbind(u, z)))[1:60, -(1:60)]
  expect_equal(smooth_values(smooth, x), (1 + r) * exp(-r), ignore_attr = TRUE, tolerance = 1e-7)
  shifted <- replace(smooth, "z", list(smooth$z + 2^40)) # doubles of this size keep 12 binary digits behind the point
  expect_equal(smooth_values(shifted, x + 2^40), smooth_values(smooth, x), tolerance = 1e-3)
  features <- smooth_values(smooth, smooth$z) %*% smooth$root
  expect_equal(tcrossprod(features), smooth_values(smooth, smooth$z), tolerance = 1e-4) # small eigenvalues are left out
})

test_that("lambda has the same information from rows 1e-7 apart as from equal rows", {
  d <- with_seed(6, data.frame(x = rep(seq(0, 1, length.out = 40), 3)))
  d$y <- with_seed(7, (1.5 + sin(5 * d$x) / 2 + 0.15 * stats::rnorm(120))^3)
  apart <- d
  apart$x <- d$x + rep(c(0, 1e-7, 2e-7), each = 40)
  lambda <- function(d) {
    from <- learned_from(response_case(d), log(c(0.3, 1, 0.2)))
    response_model(from, new_transform("yeojohnson", d$y))$transform$lambda
  }
  expect_lt(abs(lambda(d) - lambda(apart)), 0.02) # the order of rows differs
})

test_that("given values in units of the response exclude a transform", {
  d <- positive_rows(60)
  tried <- function(...) {
    case <- response_case(d)
    case$asked[...names()] <- list(...)
    lengths(responses_to_try(case$data, case$asked)[c("transforms", "trends")])
  }
  expect_identical(unname(tried()), c(3L, 2L))
  expect_identical(unname(tried(tol = 0.1)), c(1L, 1L))
  expect_identical(unname(tried(noise = 0.1)), c(1L, 1L))
  expect_identical(unname(tried(noise = ~ 1)), c(3L, 1L))
  expect_identical(unname(tried(kernel = kernel_se(variance = 2))), c(1L, 1L))
  expect_identical(unname(tried(kernel = kernel_se(lengthscale = 2))), c(3L, 2L))
  expect_identical(unname(tried(m = 20)), c(1L, 1L))
  for (transform in c("none", "log", "yeojohnson")) expect_identical(unname(tried(transform = transform)), c(1L, 2L))
  expect_identical(unname(tried(transform = "log", m = 20)), c(1L, 1L))
  expect_identical(unname(tried(transform = "none", noise = ~ 1)), c(1L, 1L))
  expect_identical(unname(tried(transform = "plain")), c(1L, 1L))
  expect_identical(unname(tried(plain = TRUE)), c(1L, 1L))
})

test_that("two values, few values and large shares have a message; few values keep constant noise", {
  d <- with_seed(1, data.frame(x = stats::runif(80)))
  tried <- function(y) {
    d$y <- y
    case <- response_case(d)
    open <- responses_to_try(case$data, case$asked)
    c(lengths(open[c("transforms", "trends")], FALSE), open$tails)
  }
  expect_message(two <- tried(as.numeric(d$x > 0.4)), class = "pfdtc_message_two_values")
  expect_identical(two, c(1L, 1L, 0L))
  expect_message(tried(1 + (d$x > 0.4)), "factor\\(\\)", class = "pfdtc_message_two_values") # binomial() reads 0 and 1
  expect_message(counts <- tried(with_seed(2, stats::rpois(80, 2))), "poisson", class = "pfdtc_message_few_values")
  expect_identical(counts, c(2L, 1L, 1L)) # zeros have no log
  expect_message(tried(1980 + floor(4 * d$x)), "are 198.: for classes make", class = "pfdtc_message_few_values")
  expect_message(atom <- tried(pmax(d$x, 0.3)), "0.3", class = "pfdtc_message_few_values")
  expect_identical(atom, c(3L, 2L, 1L))
  expect_silent(many <- tried(round(10 * d$x + 1, 1)))
  expect_identical(many, c(3L, 2L, 1L))
})

test_that("a response with a tiny spread relative to its size has no log, which would be constant up to rounding", {
  d <- with_seed(1, data.frame(x = stats::runif(30)))
  for (spread in c(1e-13, 1e-9)) {
    d$y <- 1 + spread * sin(6 * d$x)
    case <- response_case(d)
    expect_identical(lapply(responses_to_try(case$data, case$asked)$transforms, `[[`, "kind"), list(NULL, "yeojohnson"))
    expect_s3_class(pfdtc(y ~ x, d), "pfdtc")
  }
})

test_that("a response with many zeros has a skewed density, as good a mean and honest intervals", {
  d <- with_seed(1, {
    d <- data.frame(x = stats::runif(600))
    d$y <- ifelse(stats::runif(600) < 0.5, 0, exp(2 * d$x + 0.7 * stats::rnorm(600)))
    d
  })
  new <- d[-(1:150), ]
  fits <- suppressMessages(list(with_seed(1, pfdtc(y ~ x, d[1:150, ], transform = "auto")),
                                with_seed(1, pfdtc(y ~ x, d[1:150, ], transform = "none", noise = ~ 1))))
  density <- vapply(fits, function(fit) mean(predict(fit, new, type = "density")), 0)
  error <- vapply(fits, function(fit) sqrt(mean((new$y - predict(fit, new, type = "response"))^2)), 0)
  expect_gt(density[1L], density[2L] + 0.3)
  expect_lt(error[1L], 1.05 * error[2L])
  band <- predict(fits[[1L]], new, interval = "prediction", type = "response")
  expect_equal(mean(new$y >= band[, "lwr"] & new$y <= band[, "upr"]), 0.95, tolerance = 0.04)
})

test_that("smooth noise has the mean of its variance over the distribution of its coefficients", {
  d <- with_seed(3, data.frame(x = stats::runif(60)))
  d$y <- with_seed(4, exp(2 * d$x) * stats::rnorm(60))
  case <- response_case(d)
  problem <- response_problem(learned_from(case, NULL), NULL)
  x <- problem$pool$x
  trend <- learn_noise(problem, log(c(0.3, 0.5, 0.5)), noise_trend_of(case$data, 1L, 1L), "response")$trend
  B <- noise_basis(trend, x)
  mean <- drop(B %*% trend$gamma)
  joint <- rbind(trend$level, cbind(trend$level[-1], trend$covariance))
  sd <- sqrt(rowSums((cbind(1, B) %*% joint) * cbind(1, B)))
  expect_gt(min(sd), 0.1)
  expect_lt(max(sd), 2) # the upper limit
  expect_equal(noise_spread(list(noise_trend = trend, noise_tail = 0.3), x), sd^2 + 0.3)
  rows <- c(1, 20, 60)
  expected <- vapply(rows, function(i) {
    stats::integrate(function(g) exp(g) * stats::dnorm(g, mean[i], sd[i]), mean[i] - 10, mean[i] + 10)$value
  }, 0)
  expect_equal(noise_factor(trend, x)[rows], expected, tolerance = 1e-6)
  trend$range <- c(0.9, 1.1)
  expect_equal(range(noise_factor(trend, x)), c(0.9, 1.1))
  trend[c("smooth", "gamma", "range")] <- list(NULL, trend$gamma[1L], NULL) # linear noise uses its coefficients
  expect_equal(noise_factor(trend, x), exp(drop(noise_basis(trend, x) %*% trend$gamma)))
})

test_that("a transform costs 4 nats, and gains below 10 nats have a decimal", {
  d <- positive_rows(30)
  from <- learned_from(response_case(d), log(c(0.3, 1.2, 0.1)))
  expect_identical(response_model(from, NULL)$parameters, 0L)
  expect_identical(response_model(from, new_transform("log", d$y))$parameters, 2L)
  said <- function(nats) {
    models <- list(list(label = "none", score = nats),
                   list(label = "log", score = 0, transform = new_transform("log", 1)))
    because_response(list(tried = models, best = models[[2L]]), list(transforms = 1:2), 2)[["response"]]
  }
  expect_match(said(1), "likelihood 1.0 higher", fixed = TRUE)
  expect_match(said(9.96), "likelihood 10 higher", fixed = TRUE)
  expect_match(said(31.4), "likelihood 31 higher", fixed = TRUE)
  # A refused model is not among the alternatives.
  logged <- list(label = "log", score = 0, transform = new_transform("log", 1))
  tried <- list(list(label = "none", score = 7), list(label = "none, smooth noise", score = -50), logged)
  but <- list(tried = tried, best = logged, refused = list("none, smooth noise" = "its squared errors"))
  reason <- because_response(but, list(transforms = 1:2), 2)[["response"]]
  expect_match(reason, "likelihood 7.0 higher", fixed = TRUE)
  constant <- list(best = list(transform = NULL), refused = NULL)
  sizes <- function(...) {
    because_response(replace(constant, ...names(), list(...)), list(trends = 1:2), 2)[["noise_variance"]]
  }
  expect_match(sizes(), "does not raise the Vecchia log likelihood by more than its penalty, 4.0")
  expect_match(sizes(refused = list("none, smooth noise" = "its squared errors")), "does not predict")
})

test_that("the floor of the noise of a transformed response has the median of its steps", {
  d <- data.frame(x = 1:62, y = rep(c(1:9, 20:70), length.out = 62))
  data <- response_case(d)$data
  expect_equal(response_units(data)$floor * data$scale^2, 1 / 12)
  logged <- data_as_modelled(data, list(transform = new_transform("log", d$y)),
                             list(center = TRUE, scale = TRUE, method = "pfdtc"))
  expect_equal(response_units(logged)$floor * logged$scale^2, stats::median(1 / d$y)^2 / 12)
})

test_that("the learned lambda is that of the largest log marginal likelihood of the response", {
  d <- with_seed(3, {
    x <- stats::runif(80, 0, 6)
    data.frame(x, y = sin(x) / 5 + stats::runif(80))
  })
  of <- function(transform) with_seed(1, pfdtc(y ~ x, d, kernel = kernel_se(), noise = ~ 1, transform = transform))
  fit <- of("yeojohnson")
  others <- lapply(fit$transform$lambda + c(-0.5, 0.5), function(lambda) of(replace(fit$transform, "lambda", lambda)))
  # lambda has no prior; it is learned with a rougher kernel, which may cost some tenths of a nat.
  for (other in others) expect_lt(as.numeric(logLik(other)), as.numeric(logLik(fit)) + 0.5)
})

# For rows 1e-7 apart, tails are those of single responses; for equal rows, those of their means.
test_that("tails are estimated from responses whose inputs do not repeat", {
  d <- with_seed(1, data.frame(x = rep(stats::runif(40), each = 3)))
  d$y <- sin(6 * d$x) + with_seed(5, 0.3 * stats::rt(120, 2))
  d$x[1:57] <- d$x[1:57] + rep(c(0, 0.01, 0.02), 19)
  case <- response_case(d)
  from <- c(learned_from(case, log(c(0.3, 1, 0.2))), tails = TRUE)
  plain <- response_model(from, NULL)
  model <- with_tail(plain, from)
  expect_identical(sum(model$held$single), 57L)
  tail_of <- function(held) {
    held <- held[held$single, ]
    likeliest_tail(held$z, list(mean = held$f, var = held$var, noise = held$noise, spread = held$spread))
  }
  expect_equal(model$tail, tail_of(model$held)[["tail"]])
  # The merit is for rows given the earlier rows.
  counted <- length(plain$problem$counted) / nrow(model$held)
  expect_equal(model$merit - plain$merit, tail_of(held_out_response(plain, from, earlier = TRUE))[["gain"]] * counted)
})

test_that("the learned parameter of a transform counts as a degree of freedom, that of heavy tails does not", {
  d <- with_seed(8, data.frame(x = stats::runif(80)))
  d$y <- with_seed(9, sinh(sin(6 * d$x) + 0.2 * stats::rnorm(80)))
  of <- function(transform) pfdtc(y ~ x, d, kernel = kernel_se(), transform = transform)
  learned <- of("yeojohnson")
  expect_identical(learned$df, of("plain")$df + 1L) # lambda
  expect_identical(of(learned$transform)$df, learned$df - 1L)
  expect_identical(attr(logLik(learned), "df"), learned$df)
  expect_match(paste(utils::capture.output(print(summary(learned))), collapse = " "),
               sprintf("%d hyperparameters", learned$df))
})

test_that("a period that is held is no learned hyperparameter, neither in df nor in the scale", {
  fit <- with_seed(1, pfdtc(AirPassengers, transform = "auto"))
  expect_match(fit$because[["scale"]], sprintf("%d hyperparameters", fit$df))
})
