# Returns data whose response is to be transformed.
skewed_data <- function(n = 300, seed = 5) {
  with_seed(seed, {
    d <- data.frame(a = stats::runif(n, 0, 6), b = stats::rnorm(n))
    d$y <- exp(1 + sin(d$a) + 0.5 * stats::rnorm(n))
    d
  })
}
flat <- function(lambda) {
  structure(list(kind = "yeojohnson", lambda = lambda, centre = 2, unit = 3), class = "pfdtc_transform")
}

test_that("transforms, their slopes and inverses agree, over their whole range", {
  y <- c(-1e6, -40, -3, 2, 2 + 1e-9, 5, 60, 1e6)
  for (lambda in c(0, 1e-10, 0.3, 1, 1.7, 2)) {
    t <- flat(lambda)
    u <- (y - 2) / 3
    psi <- ifelse(u >= 0, if (lambda < 1e-8) log(1 + abs(u)) else ((1 + abs(u))^lambda - 1) / lambda,
                  if (lambda > 2 - 1e-8) -log(1 + abs(u)) else -((1 + abs(u))^(2 - lambda) - 1) / (2 - lambda))
    expect_equal(transformed(t, y), psi, tolerance = 1e-7) # for small lambda the plain formula loses digits
    expect_equal(untransformed(t, transformed(t, y)), y, tolerance = 1e-9)
    h <- 1e-4 * (1 + abs(y))
    slope <- (transformed(t, y + h) - transformed(t, y - h)) / (2 * h)
    kink <- abs(y - 2) < 1
    expect_equal(log_slope(t, y)[!kink], log(slope)[!kink], tolerance = 1e-5)
    expect_true(all(diff(transformed(t, y)) > 0))
  }
  expect_equal(transformed(flat(1), y), (y - 2) / 3)
})

test_that("moments of the response are those of a normal variable after the inverse transform", {
  for (lambda in c(0, 0.2, 1, 1.6, 2)) {
    t <- flat(lambda)
    for (mean in c(-2, 0, 0.7)) {
      for (sd in c(0.05, 1)) {
        at <- function(power, c) {
          each <- function(z) (untransformed(t, mean + sd * z) - c)^power * stats::dnorm(z)
          stats::integrate(each, -12, 12, rel.tol = 1e-10, subdivisions = 2000L)$value
        }
        got <- moments_back(t, mean, sd^2)
        expect_equal(got$mean, at(1, 0), tolerance = 1e-6)
        expect_equal(got$sd, sqrt(at(2, at(1, 0))), tolerance = 1e-5)
      }
    }
  }
  log <- structure(list(kind = "log", lambda = 0), class = "pfdtc_transform")
  expect_equal(moments_back(log, 0.3, 0.5), list(mean = exp(0.55), sd = exp(0.55) * sqrt(exp(0.5) - 1)))
  expect_equal(moments_back(flat(0.5), c(0, 1), c(0, 0)), list(mean = untransformed(flat(0.5), c(0, 1)), sd = c(0, 0)))
})

test_that("a fit with transform = \"log\" is the fit to log(y) with its predictions transformed back", {
  d <- skewed_data(80)
  k <- kernel_se(1, 1, inputs = ~ a)
  fit <- pfdtc(y ~ a + b, d, kernel = k, noise = 0.25, hyper = "fixed", transform = "log")
  same <- pfdtc(log(y) ~ a + b, d, kernel = k, noise = 0.25, hyper = "fixed")
  new <- data.frame(a = c(1, 3, 9), b = 0)
  expect_equal(predict(fit, new, type = "latent", interval = "prediction"), predict(same, new, interval = "prediction"))
  p <- predict(same, new, se.fit = TRUE, type = "response")
  v <- p$se.fit^2
  back <- predict(fit, new, se.fit = TRUE, type = "response", interval = "prediction")
  expect_equal(back$fit[, "fit"], exp(p$fit + v / 2))
  expect_equal(back$se.fit, exp(p$fit + v / 2) * sqrt(exp(v) - 1))
  expect_equal(back$fit[, c("lwr", "upr")], exp(predict(same, new, interval = "prediction")[, c("lwr", "upr")]))
  expect_equal(predict(fit, new, type = "median"), exp(p$fit))
  f <- predict(same, new, interval = "credible")[, c("lwr", "upr")]
  expect_equal(predict(fit, new, type = "median", interval = "credible")[, c("lwr", "upr")], exp(f))
  expect_equal(predict(fit, new, type = "response", interval = "credible")[, c("lwr", "upr")], exp(f + 0.125))
  expect_equal(fit$evidence, same$evidence - sum(log(d$y)), tolerance = 1e-10)
  new$y <- c(1, 5, 2)
  expect_equal(unname(predict(fit, new, type = "density")), stats::dlnorm(new$y, p$fit, p$se.fit, log = TRUE))
  expect_equal(unname(predict(same, new, type = "density")), stats::dnorm(log(new$y), p$fit, p$se.fit, log = TRUE))
  expect_equal(fitted(fit), predict(fit))
  expect_equal(unname(residuals(fit)), unname(d$y - fitted(fit)))
  expect_equal(residuals(fit, type = "pit"), residuals(same, type = "pit"))
  expect_equal(as.matrix(simulate(fit, 3, seed = 1)), exp(as.matrix(simulate(same, 3, seed = 1))), ignore_attr = TRUE)
  cv <- with_seed(1, cross_validate(fit, folds = 3, hyper = "held"))
  plain <- with_seed(1, cross_validate(same, folds = 3, hyper = "held"))
  expect_equal(cv$nlpd - vapply(1:3, function(i) mean(log(d$y[attr(cv, "predictions")$fold == i])), 0), plain$nlpd)
  expect_equal(cv$cover50, plain$cover50)
  compared <- compare_fits(list(fit), newdata = new, y = new$y)
  expect_equal(compared$nlpd, -mean(predict(fit, new, type = "density")))
  certified <- predict(fit, new, type = "median", interval = "credible", certified = TRUE)
  expect_true(all(certified[, "lwr"] <= exp(f[, "lwr"]) + 1e-9 & certified[, "upr"] >= exp(f[, "upr"]) - 1e-9))
})

test_that("lambda is learned by the likelihood of the untransformed response", {
  d <- with_seed(2, {
    d <- data.frame(a = stats::runif(400, 0, 6))
    d$y <- untransformed(flat(0.4), sin(d$a) + 0.4 * stats::rnorm(400))
    d
  })
  set.seed(1)
  fit <- pfdtc(y ~ a, d[1:300, , drop = FALSE], kernel = kernel_se(), transform = "yeojohnson")
  set.seed(1)
  plain <- pfdtc(y ~ a, d[1:300, , drop = FALSE], kernel = kernel_se())
  again <- function(lambda) {
    t <- fit$transform
    t$lambda <- lambda
    as.numeric(with_seed(1, pfdtc(y ~ a, d[1:300, ], kernel = kernel_se(), transform = t))$evidence)
  }
  most <- again(fit$transform$lambda)
  # This search starts elsewhere; its evidence differs by 0.0005. Even 0.5 is little beside the gain of 5 tested below.
  expect_lt(abs(most - fit$evidence), 0.5)
  expect_gt(most + 1, max(again(fit$transform$lambda - 0.15), again(fit$transform$lambda + 0.15)))
  expect_gt(fit$evidence, plain$evidence + 5)
  test <- d[301:400, ]
  expect_gt(mean(predict(fit, test, type = "density")), mean(predict(plain, test, type = "density")))
  expect_output(print(fit), "Yeo")
  file <- tempfile()
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), test, type = "response"), predict(fit, test, type = "response"))
  both <- with_seed(1, pfdtc(y ~ a, d[1:300, ], kernel = kernel_se(), transform = fit$transform, noise = ~ a))
  expect_identical(both$transform, fit$transform)
  expect_length(both$noise_trend$gamma, 1L)
})

test_that("transforms are refused where they have no meaning", {
  d <- skewed_data(40)
  d$z <- d$y - 5
  expect_error(pfdtc(z ~ a, d, transform = "log"), "positive", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d, transform = "sqrt"), "transform", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d, transform = "yeojohnson", kernel = kernel_se(1, 1), noise = 1, hyper = "fixed"),
               "hyper", class = "pfdtc_error_input")
  expect_error(pfdtc(y > 3 ~ a, d, transform = "log", family = binomial()), "transform", class = "pfdtc_error_input")
  fit <- pfdtc(y ~ a, d, kernel = kernel_se(1, 1), noise = 0.2, hyper = "fixed", transform = "log")
  expect_error(predict(fit, d, type = "median", se.fit = TRUE), "se.fit", class = "pfdtc_error_input")
  expect_error(predict(fit, d, type = "response", full_cov = TRUE), "full_cov", class = "pfdtc_error_input")
  expect_error(add_rows(fit, data.frame(a = 1, y = -1)), "positive", class = "pfdtc_error_input")
})

test_that("rows are added to a fit with a transformed response, and removed from it", {
  d <- skewed_data(60)
  fit_to <- function(rows) {
    pfdtc(y ~ a + b, d[rows, ], kernel = kernel_se(1, 1, inputs = ~ a), noise = 0.25, hyper = "fixed",
          transform = "log",
          center = FALSE, scale = FALSE)
  }
  all <- fit_to(1:60)
  more <- add_rows(fit_to(1:45), d[46:60, ])
  expect_equal(more$evidence, all$evidence, tolerance = 1e-10)
  expect_equal(predict(more, d[1:5, ], type = "response"), predict(all, d[1:5, ], type = "response"), tolerance = 1e-10)
  expect_equal(unname(residuals(more)), unname(residuals(all)), tolerance = 1e-8)
  less <- drop_rows(all, 46:60)
  expect_equal(less$evidence, fit_to(1:45)$evidence, tolerance = 1e-10)
})

test_that("a response of 0 or less has density 0 and cdf 0 in a fit of its log", {
  fit <- pfdtc(dist ~ speed, cars, transform = "log", kernel = kernel_se(5, 1), noise = 0.3, hyper = "fixed")
  new <- data.frame(speed = 10, dist = c(0, -3, 20, NA))
  density <- expect_silent(predict(fit, new, type = "density"))
  expect_identical(unname(density[-3]), c(-Inf, -Inf, NA))
  f <- c(list(spread = 0.4), lapply(list(mean = 3, var = 0.1, noise = 0.2), rep, 2))
  each <- expect_silent(score_each(response_of(fit), list(y = c(0, -3)), f))
  expect_identical(each$upto, c(0, 0))
  expect_equal(diff(each$crps), 3, tolerance = 1e-6) # below 0 the CRPS grows with the distance
  expect_error(add_rows(fit, new[1, ]), "positive responses", class = "pfdtc_error_input")
})

test_that("responses of weight 0 change neither the transform nor the smallest noise", {
  d <- with_seed(1, data.frame(x = stats::runif(40, 0, 6)))
  d$y <- round(6 * sin(d$x))
  more <- rbind(data.frame(d, w = 1), data.frame(x = 1:5, y = c(1e-4, 10^(1:4)), w = 0))
  for (transform in c("none", "yeojohnson")) {
    fit <- pfdtc(y ~ x, d, kernel = kernel_se(), transform = transform)
    expect_equal(predict(pfdtc(y ~ x, more, weights = w, kernel = kernel_se(), transform = transform), d),
                 predict(fit, d), tolerance = 1e-10)
  }
  more$shift <- round(64 * more$x) / 64 # sums and differences with y have no rounding errors
  of <- function(rows) {
    fit <- pfdtc(y + shift ~ x, more[rows, ], weights = w, offset = shift, kernel = kernel_se(), transform = "none")
    response_units(fit$data)$floor
  }
  expect_equal(of(c(41:45, 1:40)), of(1:40), tolerance = 1e-10)
})

test_that("with a factor of many levels, the first lambda is that of some rows", {
  n <- 3000
  levels <- 58 # with two more columns, five rows a column are 300 rows
  g <- rep(seq_len(levels), length.out = n)[with_seed(1, sample(n))]
  x <- cbind(with_seed(2, matrix(stats::runif(2 * n), n)), outer(g, seq_len(levels), `==`))
  y <- exp(x[, 1] + with_seed(3, stats::rnorm(levels))[g] + with_seed(4, stats::rnorm(n, 0, 0.3)))
  transform <- new_transform("yeojohnson", y)
  rows <- list(x = x, y = y, w = with_seed(5, stats::runif(n, 0.5, 2)), offset = 0.1 * x[, 2], group = NULL)
  some <- take_rows_of(rows[1:4], evenly(n, 300))
  expect_identical(lambda_of_line(transform, rows), lambda_of_line(transform, some))
  all <- with_replaced(list(many_levels = 100L), lambda_of_line(transform, rows))
  expect_equal(lambda_of_line(transform, rows), all, tolerance = 0.2) # 300 rows for 60 columns are few
})
