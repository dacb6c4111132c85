# Tests posterior and prediction at fixed points and hyperparameters, by pfdtc() without iterations.

fixed_fit <- function(p, z = p$z, jitter = 1e-10) {
  pfdtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed",
        aux = aux_sor(rows = p$rows), inducing = z, weights = p$weights, center = FALSE,
        scale = FALSE, control = pfdtc_control(maxit = 0, jitter = jitter, progress = FALSE))
}

plain <- function(x) unname(as.vector(x))

test_that("mean, sd and covariance are the dense DTC posterior's", {
  for (p in problems()) {
    fit <- fixed_fit(p)
    expect_equal(fit$inducing, p$z, ignore_attr = TRUE)
    ref <- ref_dtc(p$z, p$x, p$y, p$kernel, p$noise, p$weights, fit$jitter)
    got <- predict(fit, p$new, se.fit = TRUE, full_cov = TRUE)
    expect_close(plain(got$fit), ref$mean(p$new), 1e-9, label_of(p))
    expect_close(plain(got$se.fit)^2, ref_variance(ref, p$new), 1e-9, label_of(p))
    expect_close(unname(got$cov), ref$cov(p$new, p$new), 1e-9, label_of(p))
    expect_close(plain(predict(fit, p$new)), ref$mean(p$new), 1e-9, label_of(p))
    response <- predict(fit, p$new, se.fit = TRUE, type = "response")
    expect_close(plain(response$se.fit)^2, ref_variance(ref, p$new) + p$noise, 1e-9, label_of(p))
  }
})

test_that("Z = X gives the exact posterior and the exact evidence", {
  for (p in problems()) {
    fit <- fixed_fit(p, p$x, jitter = 1e-12)
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    got <- predict(fit, p$new, se.fit = TRUE, full_cov = TRUE)
    # A jitter of 1e-12 times the condition number of Kmm, up to 120, is far below the tolerance.
    expect_close(plain(got$fit), exact$mean(p$new), 1e-8, label_of(p))
    expect_close(unname(got$cov), exact$cov(p$new, p$new), 1e-8, label_of(p))
    expect_close(fit$evidence, exact$evidence, 1e-8, label_of(p))
  }
})

test_that("the fit's ELBO is the reference's and below the evidence", {
  for (p in problems()) {
    fit <- fixed_fit(p)
    ref <- ref_elbo(p$z, p$x, p$y, p$kernel, p$noise, p$weights, fit$jitter)
    expect_close(fit$evidence, ref, 1e-9, label_of(p))
    expect_lt(fit$evidence, ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)$evidence)
  }
})

test_that("residuals of all blocks count in the evidence", {
  x <- matrix(seq(0, 9, length.out = 1100))
  y <- cos(3 * x[, 1]) + seq_along(x) / 500 # the last rows have the largest residuals
  kernel <- complete_kernel(kernel_se(1, 2), x)
  z <- x[c(1, 300, 700), , drop = FALSE]
  p <- native_posterior(z, list(x = x, y = y), new_model(kernel, 0.1), 1e-10, control = pfdtc_control(block = 100))
  expect_close(p$rss, sum((y - native_predict(p, z, new_model(kernel, 0.1), x)$mean)^2), 1e-12)
})

test_that("the residual prior variance at inducing points is 0, and never negative by rounding", {
  x <- matrix(30 * seq(0, 1, length.out = 40)^1.5)
  model <- new_model(complete_kernel(kernel_se(1, 1), x), 1e-3)
  p <- native_posterior(x, list(x = x, y = sin(x[, 1])), model, 0)
  left <- native_predict(p, x, model, x)$unexplained
  expect_true(all(left >= 0))
  expect_lt(max(left), 40 * .Machine$double.eps) # 40 squares that sum to one
})

test_that("weights of 2 are doubled rows, whose evidence is lower by (N/2) log(4 pi s2)", {
  for (p in quick(lapply(profiles, problem))) {
    n <- nrow(p$x)
    weighted <- fixed_fit(utils::modifyList(p, list(weights = rep(2, n))))
    doubled <- fixed_fit(utils::modifyList(p, list(x = rbind(p$x, p$x), y = c(p$y, p$y))))
    a <- predict(weighted, p$new, se.fit = TRUE)
    b <- predict(doubled, p$new, se.fit = TRUE)
    expect_close(plain(a$fit), plain(b$fit), 1e-10)
    expect_close(plain(a$se.fit), plain(b$se.fit), 1e-10)
    expect_close(doubled$evidence, weighted$evidence - n / 2 * log(4 * pi * p$noise), 1e-10)
  }
})

test_that("block size, threads, memory, order of rows and of Z change nothing beyond rounding", {
  p <- problem("matern32", n = 40, m = 6, weighted = TRUE)
  show <- function(p) predict(fixed_fit(p), p$new, se.fit = TRUE, full_cov = TRUE)
  base <- show(p)
  for (now in list(list(pfdtc.block = 3), list(pfdtc.memory = 0), list(pfdtc.threads = 2, pfdtc.block = 7),
                   list(pfdtc.block = 1, pfdtc.memory = 0, pfdtc.threads = 1))) {
    expect_equal(with_options(now, show(p)), base, tolerance = 1e-10, info = deparse(now))
  }
  order <- 40:1
  moved <- utils::modifyList(p, list(x = p$x[order, ], y = p$y[order], weights = p$weights[order],
                                     z = p$z[6:1, ], rows = 41 - p$rows))
  expect_equal(show(moved), base, tolerance = 1e-10)
})

test_that("nasty problems have the reference's finite results", {
  for (name in names(nasty_problems())) {
    p <- nasty_problems()[[name]]
    if (nrow(p$z) > nrow(p$x)) next                              # m > n is refused by pfdtc()
    fit <- fixed_fit(p)
    ref <- ref_dtc(p$z, p$x, p$y, p$kernel, p$noise, p$weights, fit$jitter)
    got <- predict(fit, p$new, se.fit = TRUE)
    # The reference inverts Q + s2 I and keeps as many digits as its condition allows.
    lost <- 2e-16 * nrow(p$x) * p$kernel$variance / p$noise
    expect_close(plain(got$fit), ref$mean(p$new), max(1e-9, lost), name)
    tolerance <- max(1e-10, lost)
    error <- plain(got$se.fit)^2 - ref_variance(ref, p$new)
    expect_lt(max(abs(error)), tolerance * p$kernel$variance)
  }
})

test_that("predictions one by one are predictions together", {
  p <- problem("matern52", n = 30, m = 6)
  fit <- fixed_fit(p)
  together <- predict(fit, p$new, se.fit = TRUE)
  single <- lapply(seq_len(nrow(p$new)), function(i) {
    predict(fit, p$new[i, , drop = FALSE], se.fit = TRUE)
  })
  expect_equal(vapply(single, function(s) plain(s$fit), 0), plain(together$fit), tolerance = 1e-13)
  expect_equal(vapply(single, function(s) plain(s$se.fit), 0), plain(together$se.fit),
               tolerance = 1e-13)
})

test_that("the log marginal likelihood of a posterior is that of its fit, and its bounds follow from its kind", {
  d <- with_seed(2, data.frame(x = runif(40), y = rnorm(40)))
  fit <- function(by, ...) by(y ~ x, d, kernel = kernel_se(0.2, 1), noise = 0.5, hyper = "fixed", ...)
  exact <- posterior_evidence(posterior_of(fit(gp_exact)))
  expect_identical(exact$is, "exact")
  for (f in list(fit(gp_dtc, m = 3), fit(gp_sor, m = 3), fit(gp_fitc, m = 3), fit(pfdtc, m = 3, neighbours = 4))) {
    p <- posterior_of(f)
    e <- posterior_evidence(p)
    expect_identical(e$value, as.numeric(logLik(f)))
    expect_identical(log_evidence(p), e$value)
    expect_lte(e$lower, exact$value)
    expect_gte(e$upper, exact$value)
  }
})

test_that("f is computed once for equal new rows, if fewer than half of the rows are distinct", {
  asked <- NULL
  registerS3method("posterior_at", "counted", function(p, fun, joint = FALSE) {
    asked <<- fun$n
    NextMethod()
  }, envir = asNamespace("pfdtc"))
  numbers <- pfdtc(dist ~ speed, cars, kernel = kernel_se(6, 2), noise = 0.1, hyper = "fixed")
  classes <- pfdtc(Species ~ Sepal.Width, iris, kernel = kernel_se(1, 1), hyper = "fixed")
  for (fit in list(numbers, classes)) {
    p <- posterior_of(fit)
    class(p) <- c("counted", class(p))
    x <- fit$data$x[1:3, , drop = FALSE]
    f <- latent_at(fit, x, p = p)
    expect_identical(asked, 3L)
    row <- c(2, 2, 1, 3, 2, 1, 2)
    again <- latent_at(fit, x[row, , drop = FALSE], p = p) # another order of rows changes the last digits
    expect_identical(asked, 3L)
    for (what in c("mean", "var")) expect_close(again[[what]], take_rows_of(f[[what]], row), 1e-14)
  }
  mixed <- pfdtc(dist ~ speed, cars, kernel = kernel_se(), mean = ~ 1)
  rows <- cars[c(2, 2, 1, 30, 2, 1, 2), ]
  mixture <- function(rows) predict(mixed, rows, interval = "prediction", hyper_uncertainty = TRUE)
  expect_close(unname(mixture(rows)), unname(mixture(cars)[c(2, 2, 1, 30, 2, 1, 2), ]), 1e-12)
})
