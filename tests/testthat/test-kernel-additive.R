additive_rows <- function(n, seed = 1) {
  with_seed(seed, {
    x <- matrix(stats::runif(3 * n), n, dimnames = list(NULL, c("a", "b", "c")))
    data.frame(x, g = factor(sample(c("u", "v", "w"), n, TRUE)), y = sin(6 * x[, 1]) + x[, 2]^2 + stats::rnorm(n) / 10)
  })
}

test_that("the columns of a factor are one input of the additive kernel", {
  d <- additive_rows(30)
  fit <- gp_exact(y ~ a + g, d, kernel = kernel_additive(kernel_matern(5 / 2, 1, 2), share = 2, ratio = 3), noise = 0.1,
                  hyper = "fixed")
  expect_identical(fit$kernel$groups, c("a", "g", "g", "g"))
  expect_identical(colnames(predict(fit, d, type = "terms")), c("matern52(a,g)", "se(a)", "se(g)"))
  x <- fit$data$x
  expect_equal(kernel_matrix(fit$kernel, x), ref_composite(fit$kernel, x), tolerance = 1e-13, ignore_attr = TRUE)
})

test_that("terms of the additive kernel add up to f, and each is the term of the double loop", {
  d <- additive_rows(25)
  fit <- gp_exact(y ~ a + b + c, d, kernel = kernel_additive(kernel_se(c(1, 2, 3), 2), 0.5, 2, 1.5), noise = 0.1,
                  hyper = "fixed")
  at <- additive_rows(6, 2)
  terms <- predict(fit, at, type = "terms", se.fit = TRUE)
  expect_identical(ncol(terms$fit), 7L)
  expect_equal(unname(rowSums(terms$fit)) + fit$center, unname(predict(fit, at)), tolerance = 1e-10)
  x <- as.matrix(d[c("a", "b", "c")])
  Ky <- kernel_matrix(fit$kernel, x) + diag(0.1, 25)
  K <- 2 * 2 / 3 / 3.5 * exp(-outer(x[, "b"], at$b, "-")^2 * (1.5 / 2)^2 / 2)
  expect_equal(unname(terms$fit[, "se(b)"]), drop(crossprod(K, solve(Ky, d$y - fit$center))), tolerance = 1e-10)
  var <- 2 * 2 / 3 / 3.5 - colSums(K * solve(Ky, K))
  expect_equal(unname(terms$se.fit[, "se(b)"]), sqrt(var), tolerance = 1e-8)
})

test_that("slopes of the Vecchia likelihood in the parameters of the additive kernel are central differences", {
  d <- additive_rows(20)
  x <- as.matrix(d[c("a", "b", "c")])
  k <- compile_kernel(complete_kernel(kernel_additive(kernel_matern(3 / 2, c(1, 2, 0.5), 1), 0.5, 2, 1.5), x))
  neighbours <- vapply(1:20, function(i) c(setdiff(seq_len(i - 1L), 0L), integer(20L))[1:8], integer(8L))
  value <- function(theta) {
    native_vecchia(list(x = x, y = d$y), list(kernel = set_values(k, exp(theta[-8L])), noise = exp(theta[8L])), 1:20,
                   neighbours)
  }
  theta <- c(log(kernel_values(k)), log(0.1))
  at <- value(theta)
  expect_length(at$score, 8L)
  expect_identical(dim(at$information), c(8L, 8L))
  for (j in 1:8) expect_slope(at$score[j], function(v) value(replace(theta, j, v))$value, theta[j], j, 1e-8)
  # With all earlier rows as neighbours the information is the exact one, tr(Ky^-1 D_j Ky^-1 D_l) / 2.
  all <- vapply(1:20, function(i) c(seq_len(i - 1L), integer(20L))[1:19], integer(19L))
  exact <- native_vecchia(list(x = x, y = d$y), list(kernel = k, noise = 0.1), 1:20, all)$information
  Ky <- function(theta) native_kernel_matrix(set_values(k, exp(theta[-8L])), x, x) + diag(exp(theta[8L]), 20)
  D <- lapply(1:8, function(j) {
    (Ky(replace(theta, j, theta[j] + 1e-5)) - Ky(replace(theta, j, theta[j] - 1e-5))) / 2e-5
  })
  P <- solve(Ky(theta))
  want <- outer(1:8, 1:8, Vectorize(function(i, j) sum((P %*% D[[i]]) * t(P %*% D[[j]])) / 2))
  expect_equal(exact, want, tolerance = 1e-6) # central differences of 1e-5
})

test_that("certificates of a fit with the additive kernel contain the exact GP", {
  d <- additive_rows(60, 3)
  at <- additive_rows(10, 4)
  x <- as.matrix(d[c("a", "b", "c")])
  new <- as.matrix(at[c("a", "b", "c")])
  for (pairs in list(FALSE, 0.3)) {
    k <- kernel_additive(kernel_matern(3 / 2, c(0.5, 1, 2), 1), pairs, 2, 2)
    placed <- complete_kernel(k, x)
    Ky <- ref_composite(placed, x) + diag(0.01, nrow(x))
    K <- ref_composite(placed, x, new)
    mean <- drop(crossprod(K, solve(Ky, d$y)))
    sd <- sqrt(1 - colSums(K * solve(Ky, K)))
    for (near in c(0L, 10L)) {
      fit <- pfdtc(x, d$y, m = 20, neighbours = near, kernel = k, noise = 0.01, hyper = "fixed", center = FALSE,
                   scale = FALSE)
      got <- suppressMessages(certify(fit, new))
      expect_true(all(mean >= got$mean_lower & mean <= got$mean_upper))
      expect_true(all(sd >= got$sd_lower & sd <= got$sd_upper))
      expect_lt(max(got$mean_error), 0.1) # a useful bound: the sd of f is 1
    }
  }
})

test_that("the default fit of a sum takes the additive kernel, that of an interaction does not", {
  skip_on_cran()
  with_seed(7, {
    x <- matrix(stats::runif(150 * 6), 150)
    new <- matrix(stats::runif(300 * 6), 300)
    noise <- stats::rnorm(150) / 10
  })
  sum_of <- function(x) sin(6 * x[, 1]) + 8 * (x[, 2] - 0.5)^2 + exp(x[, 3]) + 0.7 * cos(9 * x[, 4]) + x[, 5]
  fit <- with_seed(1, pfdtc(x, sum_of(x) + noise))
  expect_true(is_additive(fit$kernel))
  expect_match(fit$because[["kernel"]], "^With a term for each input, .* is [0-9]+ above that of the best kernel")
  expect_output(print(fit), "squared exponential of each input", fixed = TRUE)
  plain <- with_seed(1, pfdtc(x, sum_of(x) + noise, plain = TRUE))
  expect_false(any(grepl("of each input", plain$kernels$kernel)))
  one <- with_seed(1, pfdtc(x, sum_of(x) + noise, kernel = kernel_of(fit$kernel$base)))
  error <- function(fit) sqrt(mean((predict(fit, new) - sum_of(new))^2))
  expect_lt(error(fit), 0.5 * error(one))
  expect_true(all(fit$kernels$score[fit$kernels$chosen] <= fit$kernels$score))
  apart <- function(x) sin(4 * rowSums(x[, 1:3]) + 3 * x[, 4] * x[, 5])
  fit <- with_seed(1, pfdtc(x, apart(x) + noise))
  expect_false(any(vapply(as_sum(fit$kernel)$leaves, is_additive, NA)))
  expect_match(fit$because[["kernel"]], "was selected from")
})

test_that("noise that differs does not hide a sum from the choice of the transform", {
  skip_on_cran()
  # For Rosenbrock's function and a kernel of all inputs, Yeo-Johnson and a noise trend gain 18 nats of log likelihood.
  with_seed(700, {
    u <- matrix(stats::runif(24000), ncol = 10)
    noise <- stats::rnorm(2400)
  })
  x <- 15 * u - 5
  f <- rowSums(100 * (x[, -1] - x[, -10]^2)^2 + (1 - x[, -10])^2)
  rows <- seq_len(400)
  y <- f + 0.05 * stats::sd(f[-rows]) * noise
  fit <- with_seed(1, suppressMessages(pfdtc(x[rows, ], y[rows], transform = "auto")))
  expect_null(fit$transform)
  expect_true(is_additive(fit$kernel))
  # With a Yeo-Johnson transform the RMSE would be .19 sd of f; the noise is .05 sd.
  expect_lt(sqrt(mean((predict(fit, x[-rows, ]) - f[-rows])^2)), 0.12 * stats::sd(f))
})

test_that("the search of the additive kernel starts at held and at given values, and does not change the held ones", {
  d <- additive_rows(40)
  data <- data_from_matrix(as.matrix(d[c("a", "b", "c")]), d$y)
  s <- open_settings(data)
  s$noise <- 1e-4
  s$kernel$lengthscale <- c(a = 0.3, b = 3, c = 30)
  s$kernel$variance <- 2
  s$free <- setdiff(s$free, c("noise", "lengthscale.b", "variance"))
  problem <- with_seed(1, learning_problem(learning_rows(data, s), s, "matern32"))
  now <- model_of_run(problem, list(theta = problem$given, value = 0))
  wide <- learning_problem(problem$pool, s, "pairwise:matern32")
  theta <- additive_start(now, wide)
  expect_identical(theta[!wide$free], wide$given[!wide$free])
  expect_equal(exp(theta[!wide$free]), c(3, 2, 1e-4), tolerance = 1e-14)
  found <- learn_additive("additive", now, s)
  expect_equal(exp(found$theta[!found$problem$free]), c(3, 2, 1e-4), tolerance = 1e-14)
  expect_gt(max(abs(found$theta - additive_start(now, found$problem))), 0.1) # other parameters have moved
})

test_that("with many rows the additive kernel is first learned from some, with the result of learning from all", {
  only_nightly()
  with_seed(8, {
    x <- matrix(stats::runif(320 * 5), 320)
    y <- sin(6 * x[, 1]) + cos(5 * x[, 2]) + x[, 3]^2 + exp(x[, 4]) + cos(9 * x[, 5]) + stats::rnorm(320) / 5
  })
  fit <- with_seed(1, pfdtc(x, y, noise = ~ 1))
  expect_true(is_additive(fit$kernel))
  whole <- with_seed(1, gp_exact(x, y, kernel = kernel_additive(kernel_of(fit$kernel$base))))
  expect_gt(as.numeric(logLik(fit)), as.numeric(logLik(whole)) - 4) # both maximise a density with priors
})

test_that("with too many rows for exact learning, some choose the additive kernel, and held-out rows may reject it", {
  skip_on_cran()
  with_seed(9, {
    x <- matrix(stats::runif(1050 * 4), 1050)
    y <- sin(6 * x[, 1]) + cos(5 * x[, 2]) + x[, 3]^2 + exp(x[, 4]) + stats::rnorm(1050) / 5
  })
  f <- sin(6 * x[, 1]) + cos(5 * x[, 2]) + x[, 3]^2 + exp(x[, 4])
  # Half of the limits is as good a test in half of the time.
  limits <- list(exact_learning_rows = 1000L, additive_rows = replace(pfdtc:::additive_rows, "beyond", 400))
  made <- function() {
    with_replaced(limits, with_seed(1, pfdtc(x, y, noise = ~ 1, m = 50, neighbours = 0,
                                             control = list(progress = FALSE, restarts = 1))))
  }
  fit <- made()
  expect_true(is_additive(fit$kernel))
  expect_match(fit$because[["kernel"]], "400 rows")
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "of each input")
  # Other values of the kernel's parameters are weighted by the exact density of 400 rows, not by the Vecchia
  # likelihood.
  apart <- predict(fit, x[1:50, ], hyper_uncertainty = TRUE) - predict(fit, x[1:50, ])
  expect_lt(max(abs(apart)), 0.1) # half the sd of the noise
  expect_false(learned_density(fit)$exact) # certificates need the density of all rows
  plain <- with_replaced(list(scores_given = function(problem, theta, some, rows) rep(0, 20)), made())
  expect_false(is_additive(plain$kernel))
  expect_match(plain$because[["kernel"]], "was selected from")
  error <- function(fit) sqrt(mean((predict(fit) - f)^2))
  expect_lt(error(fit), 0.6 * error(plain))
})

test_that("the score of rows given others is the dense predictive density", {
  d <- additive_rows(60)
  data <- data_from_matrix(as.matrix(d[c("a", "b", "c")]), d$y, weights = with_seed(2, stats::runif(60, 0.5, 2)))
  s <- open_settings(data)
  pool <- with_seed(1, learning_rows(data, s))
  problem <- learning_problem(pool, s, "matern32")
  some <- some_of_pool(pool, 20)
  seen <- pool$take(20)
  held <- setdiff(seq_len(60), seen)
  now <- problem$natural(problem$unit)
  K <- kernel_matrix(now$kernel, data$x)
  solved <- solve(K[seen, seen] + diag(now$noise / data$weights[seen]), cbind(data$y[seen], K[seen, held]))
  var <- diag(K)[held] - colSums(K[seen, held] * solved[, -1]) + now$noise / data$weights[held]
  want <- -stats::dnorm(data$y[held], drop(K[held, seen] %*% solved[, 1]), sqrt(var), log = TRUE)
  got <- scores_given(problem, problem$unit, some, held)
  expect_equal(got, unname(means_of_groups(want)), tolerance = 1e-10)
})

test_that("no transform is chosen for a sum of functions that the additive kernel can represent", {
  only_nightly()
  d <- with_seed(100, { # Rosenbrock's function of ten inputs
    x <- matrix(stats::runif(1000, -5, 10), 100)
    y <- rowSums(100 * (x[, -1] - x[, -10]^2)^2 + (1 - x[, -10])^2)
    data.frame(y = y + stats::rnorm(100, sd = 0.05 * stats::sd(y)), x)
  })
  made <- function() with_seed(1, pfdtc(y ~ ., d, transform = "auto", control = list(progress = FALSE)))
  fit <- made()
  expect_null(fit$transform)
  without <- with_replaced(list(with_terms_in_merit = function(tried, from) tried), made())
  expect_false(is.null(without$transform))
  # The merits differ only by what the additive kernel adds to the merit of a response.
  merit <- function(fit) fit$response$merit[match(c("none", "Yeo-Johnson"), fit$response$candidate)]
  expect_true(all(merit(fit) - merit(without) >= 0))
  expect_gt(max(merit(fit) - merit(without)), additive_nats)
})

test_that("derivatives of a fit with the additive kernel are central differences of its mean", {
  d <- additive_rows(30)
  fit <- gp_exact(y ~ a + b, d, kernel = kernel_additive(kernel_matern(5 / 2, 1, 2), TRUE, 2, 3))
  at <- data.frame(a = c(0.2, 0.5), b = c(0.3, 0.9))
  h <- 1e-5
  slope <- (predict(fit, transform(at, a = a + h)) - predict(fit, transform(at, a = a - h))) / (2 * h)
  expect_equal(unname(predict(fit, at, type = "derivative", wrt = "a")), unname(slope), tolerance = 1e-6)
  rough <- gp_exact(y ~ a + b, d, kernel = kernel_additive(kernel_matern(1 / 2)))
  expect_error(predict(rough, at, type = "derivative", wrt = "a"), class = "pfdtc_error_input")
})

test_that("a fit that lacks a parameter of the additive kernel is refused, and so are kernels without a radial part", {
  d <- additive_rows(20)
  fit <- gp_exact(y ~ a + b, d, kernel = kernel_additive())
  fit$kernel$additive.ratio <- NULL
  expect_error(predict(fit, d), class = "pfdtc_error_input")
  expect_error(kernel_additive(kernel_linear()), class = "pfdtc_error_input")
  expect_error(kernel_additive(pairs = -1), class = "pfdtc_error_input")
})

test_that("the additive kernel can be given to other families, combined and updated", {
  d <- additive_rows(60)
  k <- kernel_additive(kernel_matern(5 / 2), TRUE) + kernel_linear(inputs = "c")
  fit <- gp_exact(y ~ a + b + c, d, kernel = k)
  expect_true(all(is.finite(predict(fit, d))))
  moved <- update(gp_exact(y ~ a + b, d, kernel = kernel_additive())$kernel, additive.share = 3)
  expect_identical(moved$additive.share, 3)
  poisson <- pfdtc(round(exp(y)) ~ a + b, d, family = poisson(), kernel = kernel_additive(kernel_se()))
  expect_true(all(predict(poisson, d, type = "response") > 0))
})

test_that("summary() has the share of variance of each input, near the known shares of Ishigami's function", {
  skip_on_cran()
  with_seed(1, {
    x <- matrix(stats::runif(900, -pi, pi), 300, dimnames = list(NULL, c("a", "b", "c")))
    y <- sin(x[, 1]) + 7 * sin(x[, 2])^2 + 0.1 * x[, 3]^4 * sin(x[, 1]) + stats::rnorm(300) * 0.3
  })
  fit <- with_seed(1, pfdtc(x, y, noise = ~ 1))
  before <- .Random.seed
  about <- summary(fit)
  expect_identical(.Random.seed, before)
  shares <- about$input_shares
  expect_identical(shares$input, c("a", "b", "c"))
  expect_equal(shares$alone, c(0.31, 0.44, 0), tolerance = 0.1) # 300 rows leave errors of .03
  expect_equal(shares$total, c(0.56, 0.44, 0.24), tolerance = 0.1)
  expect_output(print(about), "Main effect")
  expect_null(summary(gp_exact(dist ~ speed, cars))$input_shares)
  d <- additive_rows(40)
  expect_identical(summary(gp_exact(y ~ a + g, d))$input_shares$input, c("a", "g"))
})

test_that("the error for a parameter without a value names an argument of its kernel", {
  fit <- function(kernel) pfdtc(mpg ~ wt + hp, mtcars, kernel = kernel, noise = 1, hyper = "fixed")
  expect_input_error(fit(kernel_additive(kernel_se(1, 1))), "Give share = <value>")
  expect_input_error(fit(kernel_additive(kernel_se(1, 1), TRUE, 1, 1)), "Give pairs = <value>")
  expect_input_error(fit(kernel_se(variance = 1)), "Give lengthscale = <value>")
})
