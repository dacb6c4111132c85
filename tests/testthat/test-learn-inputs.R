# Tests logs of skewed inputs: a fit whose kernel takes logs of inputs equals the fit to the logs themselves.

# Returns rows with the skewed inputs a and b and an input c. The response is a power of a times a function of c.
power_law <- function(n, seed = 3) {
  with_seed(seed, {
    d <- data.frame(a = exp(2 * stats::rnorm(n)), b = exp(1.5 * stats::rnorm(n)), c = stats::rnorm(n))
    transform(d, y = exp(0.7 * log(a) + 0.3 * sin(2 * c) + 0.2 * stats::rnorm(n)))
  })
}

test_that("the warp is the log at its knots, and near it between them", {
  d <- power_law(90)
  x <- as.matrix(d[c("a", "b", "c")])
  warp <- warp_to_logs(list(x = x, y = d$y))
  expect_identical(warp$inputs, 1:2)
  expect_true(is_good_warp(warp, 1:3))
  for (k in 1:2) {
    expect_equal(warp$to[, k], log(warp$at[, k]), tolerance = 1e-12)
    expect_equal(range(warp$to[, k]), log(range(x[, k])) + log(4) * c(-1, 1), tolerance = 1e-12)
    # A chord of the concave log over a step h of the log is at most h^2 / 8 below it.
    below <- log(x[, k]) - warp_at(warp, k, x[, k])$value
    expect_gt(min(below), -1e-12)
    expect_lt(max(below), diff(warp$to[1:2, k])^2 / 8)
  }
  expect_null(warp_to_logs(list(x = x[, "c", drop = FALSE], y = d$y))) # not skewed
  expect_null(warp_to_logs(list(x = x[, 1:2] - rep(apply(x[, 1:2], 2L, min), each = 90), y = d$y))) # with zeros
  expect_null(warp_to_logs(list(x = 1 + floor(pmin(x, 8)), y = d$y))) # few values
  expect_null(warp_to_logs(list(x = x[rep(1:90, 23), ], y = rep(d$y, 23)))) # many rows
  expect_null(warp_to_logs(list(x = x, y = d$y, groups = list("g"))))
})

test_that("logs of inputs are chosen if the evidence prefers them, and the fit is that of logs", {
  only_nightly()
  d <- power_law(120)
  new <- power_law(300, 4)
  fit <- pfdtc(y ~ ., d, transform = "auto")
  expect_match(fit$because[["inputs"]], "Logs of inputs (a, b)", fixed = TRUE)
  expect_identical(warp_of(fit$kernel)$inputs, 1:2)
  expect_identical(fit$transform$kind, "log")
  expect_output(print(fit), "Lengthscales and ranges are of logs of these inputs: a, b", fixed = TRUE)
  expect_equal(summary(fit)$range[["a"]], diff(range(log(d$a))), tolerance = 1e-3)
  nlpd <- function(fit, new) -mean(predict(fit, new, type = "density"))
  expect_null(warp_of(pfdtc(y ~ ., d, plain = TRUE)$kernel))
  expect_lt(nlpd(fit, new), nlpd(pfdtc(y ~ ., d, transform = "log"), new) - 0.05) # a given transform: inputs as given
  # Fit the warped inputs as data, with a choice among the same transforms and kernels.
  inputs <- c("a", "b", "c")
  by_hand <- function(d) replace(d, inputs, as.data.frame(rotated(fit$kernel, as.matrix(d[inputs]))))
  hand <- pfdtc(y ~ ., by_hand(d), transform = "auto")
  expect_equal(fit$response$merit[1], hand$response$merit[1], tolerance = 1e-6)
  expect_equal(fit$evidence, hand$evidence, tolerance = 1e-6)
  expect_equal(predict(fit, new, type = "median"), predict(hand, by_hand(new), type = "median"), tolerance = 1e-4)
  expect_equal(unname(coef(fit)), unname(coef(hand)[sub("^log[(](.*)[)]$", "\\1", names(coef(fit)))]), tolerance = 1e-3)
  # Test a saved fit, and gp_exact() with the same model.
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), d), predict(fit, d))
  expect_equal(predict(gp_exact(y ~ ., d, like = fit), d), predict(fit, d), tolerance = 1e-8)
})

test_that("a power law of a response and an input is found, as by lm() of the logs", {
  skip_if_not_installed("MASS")
  d <- MASS::mammals
  fit <- pfdtc(brain ~ body, d, transform = "auto")
  expect_identical(fit$transform$kind, "log")
  expect_output(print(fit), "f is linear in logs of inputs: body", fixed = TRUE)
  line <- lm(log(brain) ~ log(body), d)
  expect_equal(coef(fit)[["log(body)"]], coef(line)[["log(body)"]], tolerance = 0.01)
  expect_equal(sqrt(vcov(fit)["log(body)", "log(body)"]), sqrt(vcov(line)[2, 2]), tolerance = 0.05)
  at <- data.frame(body = exp(seq(log(min(d$body)), log(max(d$body)), length.out = 500)))
  median <- log(predict(fit, at, type = "median"))
  expect_lt(max(abs(median - predict(line, at)) / predict(line, at, se.fit = TRUE)$se.fit), 1) # the prior pulls little
  # There are no bends: a chord of the log over one step between knots is at most step^2 / 8 away, here slope * .009.
  expect_lt(max(abs(residuals(lm(median ~ log(at$body))))), 0.02)
})

test_that("smooth noise reads the inputs that the kernel reads", {
  x <- cbind(a = with_seed(2, exp(2 * stats::rnorm(80))), c = seq(-1, 1, length.out = 80))
  data <- list(x = x, y = x[, 2], warp = warp_to_logs(list(x = x, y = x[, 2])))
  moved <- data
  moved$x <- rotated(list(warp = data$warp), x)
  moved$warp <- NULL
  trends <- lapply(list(data, moved), function(data) {
    place_noise_trend(noise_trend_of(data, 1:2, 1:2), data$x, c(1, 2))
  })
  expect_equal(noise_basis(trends[[1L]], x), noise_basis(trends[[2L]], moved$x), tolerance = 1e-12)
})

test_that("certificates and slopes of a fit with logs of inputs hold", {
  d <- power_law(80)
  fit <- pfdtc(y ~ ., d, transform = "auto")
  expect_false(is.null(warp_of(fit$kernel)))
  new <- power_law(10, 5)
  bound <- certify(fit, new)
  exact <- predict(fit, new, type = "latent")
  room <- 1e-9 * (1 + abs(exact))
  expect_true(all(exact >= bound$mean_lower - room & exact <= bound$mean_upper + room))
  expect_lt(max(bound$mean_upper - bound$mean_lower), 0.01 * min(bound$sd)) # the posterior is exact
  h <- 1e-5 * new$a
  slope <- predict(fit, new, type = "derivative", wrt = "a")
  up <- predict(fit, transform(new, a = a + h), type = "latent")
  down <- predict(fit, transform(new, a = a - h), type = "latent")
  expect_equal(unname(slope), unname((up - down) / (2 * h)), tolerance = 1e-4)
})

test_that("if the evidence does not prefer logs of inputs, the fit has none", {
  d <- with_seed(1, data.frame(a = exp(1.5 * stats::rnorm(100))))
  d$y <- d$a + with_seed(2, stats::rnorm(100))
  fit <- with_seed(1, pfdtc(y ~ a, d, transform = "auto"))
  expect_false(is.null(warp_to_logs(list(x = as.matrix(d["a"]), y = d$y)))) # they were tried
  without <- with_replaced(list(log_inputs = replace(log_inputs, "rows", 0)),
                           with_seed(1, pfdtc(y ~ a, d, transform = "auto")))
  timeless <- function(fit) fit$response[names(fit$response) != "seconds"]
  expect_identical(timeless(fit), timeless(without))
  expect_identical(fit$because, without$because)
  expect_equal(coef(fit), coef(without), tolerance = 1e-6)
})

test_that("inputs of subnormal size are fitted like others, with a linear mean and a noise trend too", {
  d <- with_seed(1, data.frame(u = stats::runif(30)))
  d$y <- sin(6 * d$u) + 0.1 * with_seed(2, stats::rnorm(30))
  d$x <- 1e-310 * d$u
  fits <- list(pfdtc(y ~ x, d, transform = "auto"), pfdtc(y ~ x, d, mean = ~ x), pfdtc(y ~ x, d, noise = ~ x))
  for (fit in fits) expect_gt(stats::cor(predict(fit, d), d$y), 0.95)
})
