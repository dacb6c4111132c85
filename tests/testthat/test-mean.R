mean_data <- function(n = 60) {
  with_seed(2, {
    d <- data.frame(year = stats::runif(n, 1950, 1970), z = stats::rnorm(n),
                    site = factor(sample(c("a", "b"), n, TRUE)))
    d$y <- 5 + 0.3 * (d$year - 1960) + sin(2 * d$z) + (d$site == "b") + stats::rnorm(n, sd = 0.2)
    d
  })
}
mean_kernel <- function() kernel_se(0.8, 0.7, ~ z)

test_that("a linear mean is generalised least squares on the process, up to the ten thousandth that its prior takes", {
  d <- mean_data()
  fits <- list(
    exact = gp_exact(y ~ year + z, d, kernel = mean_kernel(), mean = ~ year, noise = 0.04, hyper = "fixed"),
    far = pfdtc(y ~ year + z, d, kernel = mean_kernel(), mean = ~ year, noise = 0.04, hyper = "fixed", m = 30,
                neighbours = 0),
    near = pfdtc(y ~ year + z, d, kernel = mean_kernel(), mean = ~ year, noise = 0.04, hyper = "fixed", m = 15,
                 neighbours = 10),
    matrix = gp_exact(d[1:2], d$y, kernel = mean_kernel(), mean = ~ year, noise = 0.04, hyper = "fixed"))
  K <- 0.7 * exp(-outer(d$z, d$z, "-")^2 / 0.8^2 / 2) + diag(0.04, 60)
  H <- cbind(1, d$year)
  new <- data.frame(year = c(1955, 2000), z = c(0.3, 0))
  k <- 0.7 * exp(-outer(d$z, new$z, "-")^2 / 0.8^2 / 2)
  unit <- (d$year - 1960) / 10 # the same line, in units that solve() has digits for
  U <- cbind(1, unit)
  precision <- t(U) %*% solve(K, U)
  line <- solve(precision, t(U) %*% solve(K, d$y))
  slope <- line[2] / 10
  rest <- cbind(1, (new$year - 1960) / 10) - t(solve(K, k)) %*% U
  mean <- drop(cbind(1, (new$year - 1960) / 10) %*% line + t(k) %*% solve(K, d$y - U %*% line))
  sd <- sqrt(0.7 - colSums(k * solve(K, k)) + rowSums(rest * t(solve(precision, t(rest)))))
  for (name in names(fits)) {
    fit <- fits[[name]]
    expect_equal(coef(fit)[["year"]], slope, tolerance = 1e-3, info = name)
    expect_equal(coef(fit)[["(Intercept)"]], line[1] - 196 * line[2], tolerance = 1e-3, info = name)
    p <- predict(fit, new, se.fit = TRUE)
    expect_equal(unname(p$fit), mean, tolerance = 2e-3, info = name)
    expect_equal(unname(p$se.fit), sd, tolerance = 5e-3, info = name)
    expect_identical(names(coef(fit))[1:2], c("(Intercept)", "year"))
    expect_false(any(grepl("^mean", names(coef(fit)))))
    expect_equal(unname(predict(fit, new, type = "derivative", wrt = "year")), rep(coef(fit)[["year"]], 2),
                 tolerance = 1e-6)
  }
  expect_identical(coef(fits$matrix), coef(fits$exact))
})

test_that("the coefficients have the covariance of generalised least squares, and of lm() where that is all", {
  d <- mean_data()
  fit <- gp_exact(y ~ year + z, d, kernel = mean_kernel(), mean = ~ year + z, noise = 0.04, hyper = "fixed")
  K <- 0.7 * exp(-outer(d$z, d$z, "-")^2 / 0.8^2 / 2) + diag(0.04, 60)
  U <- cbind(1, (d$year - 1960) / 10, d$z)
  to <- rbind(c(1, -196, 0), c(0, 0.1, 0), c(0, 0, 1))
  V <- to %*% solve(t(U) %*% solve(K, U)) %*% t(to)
  expect_equal(unname(vcov(fit)), V, tolerance = 1e-3) # the prior's share
  plain <- stats::lm(y ~ year + z, d)
  alone <- gp_exact(y ~ year + z, d, kernel = kernel_se(1, 1e-8), mean = ~ year + z, hyper = "fixed",
                    noise = summary(plain)$sigma^2)
  expect_equal(vcov(alone), vcov(plain), tolerance = 1e-3)
  expect_equal(coef(alone)[1:3], coef(plain), tolerance = 1e-3)
  expect_equal(unname(confint(alone, "year")), unname(confint.default(plain, "year")), tolerance = 1e-3)
})

test_that("certificates, terms, files and new data are there for a fit with a mean", {
  d <- mean_data()
  fit <- pfdtc(y ~ ., d, kernel = kernel_matern(3 / 2, 1, 0.7, "z"), mean = ~ year + site, noise = 0.04,
               hyper = "fixed", m = 12, neighbours = 8)
  fit$reference <- reference(fit, 30)
  exact <- gp_exact(y ~ ., d, kernel = fit$kernel, noise = 0.04, hyper = "fixed", mean = ~ year + site)
  expect_identical(names(coef(fit))[1:4], c("(Intercept)", "year", "sitea", "siteb"))
  new <- data.frame(year = c(1960, 2030), z = 0, site = c("b", "a"))
  truth <- predict(exact, new, se.fit = TRUE)
  c <- certify(fit, new)
  expect_true(all(c$mean_lower <= truth$fit & truth$fit <= c$mean_upper))
  expect_true(all(c$sd_lower <= truth$se.fit & truth$se.fit <= c$sd_upper))
  expect_lt(max(c$mean_upper - c$mean_lower), 0.01) # sd(y) is 2
  terms <- predict(fit, new, type = "terms")
  expect_identical(colnames(terms), c("matern32(z)", "mean(year,site)"))
  expect_equal(rowSums(terms) + attr(terms, "constant"), predict(fit, new), tolerance = 1e-7)
  file <- tempfile()
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), new), predict(fit, new))
  inverse <- solve(kernel_matrix(exact$kernel, exact$x) + diag(0.04, 60))
  expect_equal(unname(residuals(exact, type = "loo")), drop(inverse %*% (d$y - mean(d$y))) / diag(inverse),
               tolerance = 1e-6)
})

test_that("kernel and noise are learned beside a mean, which extrapolates", {
  d <- mean_data(80)
  new <- data.frame(year = c(1940, 1990), z = 0)
  fit <- pfdtc(y ~ year + z, d, mean = ~ year)
  plain <- pfdtc(y ~ year + z, d, kernel = kernel_matern())
  off <- function(f) max(abs(predict(f, new) - (5.5 + 0.3 * (new$year - 1960))))
  expect_lt(off(fit), 1)
  expect_gt(off(plain), 1)
  expect_lt(off(pfdtc(y ~ year + z, d)), 1) # by a line beside the kernel, whose slopes are drawn in
  expect_false(is.null(fit$kernels)) # chosen
  expect_identical(nrow(vcov(fit)), fit$df + 2L)
  table <- summary(fit)$linear
  expect_identical(table[, 1], coef(fit)[1:2])
  expect_equal(table[, 2], sqrt(diag(vcov(fit)))[1:2])
  expect_equal(rowMeans(confint(fit))[1:2], coef(fit)[1:2], tolerance = 1e-6)
  expect_output(print(summary(fit)), "Std. Dev.", fixed = TRUE)
  expect_output(print(fit), "(Intercept)", fixed = TRUE)
  cv <- suppressMessages(cross_validate(fit, folds = 3))
  expect_s3_class(cv, "data.frame")
})

test_that("means are refused that the fit knows nothing of", {
  d <- mean_data()
  fit <- function(mean, ...) gp_exact(y ~ year + z, d, kernel = mean_kernel(), noise = 1, hyper = "fixed", mean = mean)
  expect_error(fit(~ nobody), "year", class = "pfdtc_error_input")
  expect_error(fit(~ year - 1), "intercept", class = "pfdtc_error_input")
  expect_error(fit("year"), "formula", class = "pfdtc_error_input")
  expect_error(pfdtc(am ~ wt, mtcars, family = binomial(), mean = ~ wt), "constant", class = "pfdtc_error_input")
  expect_identical(coef(fit(~ 1)), coef(gp_exact(y ~ year + z, d, kernel = mean_kernel(), noise = 1, hyper = "fixed")))
})

test_that("rows so far out that variances are no numbers are refused by name", {
  fit <- pfdtc(dist ~ speed, cars, mean = ~ ., kernel = kernel_se())
  at <- function(speed) data.frame(speed = c(5, NA, speed))
  p <- predict(fit, at(1e100), se.fit = TRUE)
  expect_gt(p$se.fit[[3L]], 1e90)
  for (speed in c(1e153, 1e308)) expect_error(predict(fit, at(speed)), "squares", class = "pfdtc_error_input")
  expect_error(certify(fit, at(1e200)), "newdata.*1e\\+200", class = "pfdtc_error_input")
  expect_true(is.finite(predict(pfdtc(dist ~ speed, cars, kernel = kernel_se()), at(1e308))[[3L]]))
})
