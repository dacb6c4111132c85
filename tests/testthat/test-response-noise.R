# Draws data whose log noise variance is linear in inputs.
trend_data <- function(n = 400, seed = 3) {
  with_seed(seed, {
    d <- data.frame(a = stats::runif(n, 0, 10), b = stats::rnorm(n), site = factor(sample(c("u", "v"), n, TRUE)))
    d$y <- 3 + sin(d$a) + exp((-2.5 + 0.35 * d$a - (d$site == "v")) / 2) * stats::rnorm(n)
    d
  })
}
trend_kernel <- function() kernel_se(inputs = ~ a)

test_that("the slopes of the log noise are found, and held-out densities gain by them", {
  d <- trend_data(800)
  set.seed(1)
  fit <- pfdtc(y ~ a + b + site, d[1:500, ], kernel = trend_kernel(), noise = ~ a + b + site)
  trend <- fit$noise_trend
  table <- summary(fit)$linear
  expect_identical(rownames(table), c("noise.a", "noise.b", "noise.siteu", "noise.sitev"))
  z <- (table[c("noise.a", "noise.b"), 1] - c(0.35, 0)) / table[c("noise.a", "noise.b"), 2]
  expect_lt(max(abs(z)), 3)
  # Only the difference of the two levels, -1, is tested: the prior divides what they share.
  expect_lt(abs(diff(table[3:4, 1]) + 1), 0.5)
  expect_identical(coef(fit)[rownames(table)], table[, 1])
  set.seed(1)
  plain <- pfdtc(y ~ a + b + site, d[1:500, ], kernel = trend_kernel())
  nlpd <- function(f) {
    p <- predict(f, d[501:800, ], se.fit = TRUE, type = "response")
    -mean(stats::dnorm(d$y[501:800], p$fit, p$se.fit, log = TRUE))
  }
  expect_lt(nlpd(fit), nlpd(plain) - 0.1) # the difference is about 0.25
  expect_gt(fit$evidence, plain$evidence + 50)
  expect_identical(fit$df, plain$df + 4L)
  inside <- function(f) {
    p <- predict(f, d[501:800, ], interval = "prediction", level = 0.5)
    mean(p[, "lwr"] < d$y[501:800] & d$y[501:800] < p[, "upr"])
  }
  expect_lt(abs(inside(fit) - 0.5), 0.09) # three standard errors
  expect_output(print(fit), "log")
  expect_output(print(summary(fit)), "noise.sitev")
  v <- vcov(fit)
  expect_identical(dim(v), c(fit$df, fit$df))
  expect_equal(sqrt(diag(v))[rownames(table)], table[, 2])
  expect_equal(rowMeans(confint(fit))[["noise.a"]], coef(fit)[["noise.a"]])
})

test_that("the posterior, its evidence and its draws use each row's own noise", {
  d <- trend_data(60)
  d$w <- rep(c(1, 2, 0.5), 20)
  d[31:45, c("a", "b", "site")] <- d[16:30, c("a", "b", "site")] # equal rows, which are merged
  set.seed(1)
  fit <- pfdtc(y ~ a + b + site, d, weights = w, kernel = kernel_se(1, 1, inputs = ~ a), noise = ~ a + site)
  trend <- fit$noise_trend
  noise_of <- function(new) {
    u <- cbind((new$a - mean_of$a) / mean_of$sd, new$site == "u", new$site == "v")
    fit$noise * exp(drop(u %*% trend$gamma))
  }
  rows <- unique(d[c("a", "b", "site")]) # the units are those of the merged rows
  mean_of <- list(a = mean(rows$a), sd = sqrt(mean((rows$a - mean(rows$a))^2)))
  l <- coef(fit)[["lengthscale.a"]]
  k <- function(u, v) coef(fit)[["variance"]] * exp(-outer(u, v, "-")^2 / l^2 / 2)
  C <- k(d$a, d$a) + diag(noise_of(d) / d$w)
  new <- data.frame(a = c(1, 9, 14), b = 0, site = c("u", "v", "v"))
  p <- predict(fit, new, se.fit = TRUE, type = "response")
  expect_equal(unname(p$fit), drop(fit$center + t(k(d$a, new$a)) %*% solve(C, d$y - fit$center)), tolerance = 1e-8)
  var <- coef(fit)[["variance"]] - colSums(k(d$a, new$a) * solve(C, k(d$a, new$a)))
  expect_equal(unname(p$se.fit), sqrt(var + noise_of(new)), tolerance = 1e-8)
  expect_equal(unname(predict(fit, new, se.fit = TRUE)$se.fit), sqrt(var), tolerance = 1e-8)
  e <- d$y - fit$center
  dense <- -(determinant(C)$modulus + drop(e %*% solve(C, e)) + 60 * log(2 * pi)) / 2
  expect_equal(fit$evidence, as.numeric(dense), tolerance = 1e-9)
  expect_equal(unname(fit$noise / training_data(fit)$prior_weights), noise_of(d) / d$w, tolerance = 1e-10)
  expect_equal(unname(residuals(fit, type = "loo")), drop(solve(C, e)) / diag(solve(C)), tolerance = 1e-7)
  band <- expect_warned(predict(fit, new, interval = "prediction"), "weights")
  expect_equal(unname(band[, "upr"] - band[, "fit"]), stats::qnorm(0.975) * unname(p$se.fit), tolerance = 1e-8)
  draws <- as.matrix(simulate(fit, 4000, seed = 1, newdata = new))
  expect_equal(unname(apply(draws, 1L, stats::sd)), unname(p$se.fit), tolerance = 0.05) # 4.5 standard errors
})

test_that("the likelihood's slope in the coefficients agrees with differences of its values, also with equal rows", {
  d <- trend_data(50)
  d[41:50, 1:3] <- d[31:40, 1:3]
  data <- data_from_formula(quote(pfdtc(formula = y ~ a + b + site, data = d)), environment())
  asked <- complete_settings(data, list(method = "pfdtc", hyper = "evidence", control = pfdtc_control(),
                                        keep_data = TRUE,
                                 mean = ~ 1, noise = ~ a + site, kernel = trend_kernel()))
  s <- list(learning = decide(facts_of(data, asked), asked)$learn)
  trend <- asked_noise_trend(~ a + site, data, asked)
  pool <- with_fixed_seed(learning_rows(data, s$learning))
  expect_identical(sum(pool$twins$rows), 10)
  problem <- problem_with_trend(learning_problem(pool, s$learning, "matern32"), trend, rep(1, 3))
  theta <- c(log(c(2, 0.7, 0.2)), 0.3, -0.2, 0.4)
  rows <- seq_len(pool$n)
  near <- problem$neighbours(theta, rows, 10L)
  at <- function(theta) problem$vecchia(theta, rows, near)
  got <- at(theta)
  numeric <- vapply(seq_along(theta), function(j) {
    h <- replace(numeric(6), j, 1e-4)
    (at(theta + h)$value - at(theta - h)$value) / 2e-4
  }, 0)
  expect_equal(got$gradient, numeric, tolerance = 1e-6)
  # The expected information is close to the mean negative curvature, positive definite and symmetric.
  expect_equal(got$information, t(got$information))
  expect_gt(min(eigen(got$information)$values), 0)
})

test_that("a fit with a model of its noise is certified, saved, cross-validated, extended and drawn from", {
  d <- trend_data(120)
  set.seed(1)
  fit <- pfdtc(y ~ a + b, d, kernel = trend_kernel(), noise = ~ a, m = 8, neighbours = 0, center = FALSE, scale = FALSE)
  exact <- gp_exact(y ~ a + b, d, kernel = fit$kernel, noise = fit$noise, hyper = "fixed",
                    weights = training_data(fit)$prior_weights, center = FALSE, scale = FALSE)
  new <- data.frame(a = c(0.5, 5, 9.5), b = 0)
  truth <- predict(exact, new, se.fit = TRUE)
  bounds <- certify(fit, new, effort = "tight")
  slack <- 1e-9
  expect_true(all(bounds$mean_lower - slack <= truth$fit & truth$fit <= bounds$mean_upper + slack))
  expect_true(all(bounds$sd_lower - slack <= truth$se.fit & truth$se.fit <= bounds$sd_upper + slack))
  file <- tempfile()
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), new, interval = "prediction"), predict(fit, new, interval = "prediction"))
  held <- with_seed(1, cross_validate(fit, folds = 2, hyper = "held"))
  again <- with_seed(1, cross_validate(fit, folds = 2))
  plain <- with_seed(1, cross_validate(pfdtc(y ~ a + b, d, kernel = trend_kernel(), m = 8, neighbours = 0), folds = 2))
  nlpd <- function(cv) attr(cv, "overall")$nlpd
  expect_lt(nlpd(held), nlpd(plain))
  expect_lt(nlpd(again), nlpd(plain))
  less <- drop_rows(fit, 101:120)
  expect_equal(predict(add_rows(less, d[101:120, ]), new), predict(fit, new), tolerance = 1e-8)
  conformal <- predict(fit, new, interval = "conformal")
  width <- conformal[, "upr"] - conformal[, "lwr"]
  expect_gt(width[3L], 1.5 * width[1L])
})

test_that("smooth noise is finite and constant far away from the data", {
  fit <- with_seed(1, pfdtc(y ~ a, transform(trend_data(40), a = a / 1000), noise = ~ smooth(a)))
  for (side in c(-1, 1)) {
    far <- data.frame(a = side * c(1e6, 1e150, 1e200, 1e308))
    band <- predict(fit, far, interval = "prediction")
    expect_identical(unname(band[-1L, ]), unname(band[c(1L, 1L, 1L), ]))
    expect_true(all(band[, "lwr"] < band[, "fit"] & band[, "fit"] < band[, "upr"]))
  }
})

test_that("smooth noise is learned with an input that is 1e10 times as far away as others", {
  # The information matrix of the coefficients is singular up to rounding until its diagonal is scaled to 1.
  d <- with_seed(2, data.frame(x = c(1e10, rnorm(999))))
  d$y <- with_seed(3, sin(d$x) + rnorm(1000) / 10)
  fit <- pfdtc(y ~ x, d, kernel = kernel_se(), mean = ~ 1, transform = "none")
  expect_close(sqrt(mean((predict(fit, data.frame(x = -20:20 / 10)) - sin(-20:20 / 10))^2)), 0, 0.05)
  S <- tcrossprod(c(1, 1e10)) * matrix(c(2, 1, 1, 2), 2)
  expect_close(information_inverse(S) * tcrossprod(c(1, 1e10)), matrix(c(2, -1, -1, 2), 2) / 3, 1e-14)
})

test_that("a model of the noise is refused where it cannot be learned", {
  d <- trend_data(40)
  expect_error(pfdtc(y ~ a, d, noise = ~ nobody), "noise.*nobody", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d, noise = ~ a - 1), "intercept", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d, noise = ~ a, kernel = kernel_se(1, 1), hyper = "fixed"), "hyper",
               class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d, noise = ~ a, hyper = "pilot"), "pilot", class = "pfdtc_error_input")
  expect_error(pfdtc(site ~ a, d, noise = ~ a, family = binomial()), "noise", class = "pfdtc_error_input")
  one <- with_seed(1, pfdtc(y ~ a, d, kernel = trend_kernel(), noise = ~ 1))
  expect_identical(coef(one), coef(with_seed(1, pfdtc(y ~ a, d, kernel = trend_kernel()))))
})

test_that("the noise sd is at most the largest deviation of a response from their mean, also where rows are few", {
  set.seed(1)
  fit <- pfdtc(depth ~ lat + long, quakes, transform = "none") # an unbounded trend gives the sd 1,321 at row 702
  expect_false(is.null(fit$noise_trend$smooth))
  new <- expand.grid(lat = seq(-40, -10, 2), long = seq(165, 189, 2))
  sd <- sqrt(c(noise_at(fit, as.matrix(quakes[c("lat", "long")])), noise_at(fit, as.matrix(new))))
  widest <- max(abs(quakes$depth - mean(quakes$depth)))
  expect_lt(max(sd), 1.05 * widest) # the variances of kernel and noise have a factor for few rows, 1.02 here
  expect_gt(max(sd), 0.9 * widest)
})

test_that("smooth() without an input is refused", {
  d <- trend_data(20)
  for (noise in list(~ a + smooth(1), ~ smooth(1))) {
    expect_error(pfdtc(y ~ a + b, d, noise = noise), "a formula of inputs; it is", class = "pfdtc_error_input")
  }
})
