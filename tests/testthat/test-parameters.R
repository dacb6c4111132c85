test_that("names are those of coef(), for the columns that the kernel reads", {
  x <- matrix(0, 1, 3, dimnames = list(NULL, c("a", "b b", "c")))
  expect_identical(parameter_names(place_kernel(kernel_se(), x), colnames(x)),
                   c("lengthscale.a", "lengthscale.b b", "lengthscale.c", "variance", "noise"))
  expect_identical(parameter_names(place_kernel(kernel_se(inputs = c("c", "a")), x), colnames(x)),
                   c("lengthscale.c", "lengthscale.a", "variance", "noise"))
})

test_that("free logs go to natural values and back, fixed ones stay to the bit", {
  x <- matrix(0, 1, 2, dimnames = list(NULL, c("a", "b")))
  kernel <- place_kernel(kernel_matern(3 / 2, c(0.3, 7), 2.5), x)
  all <- hyper_parameters(kernel, 0.1, colnames(x))
  expect_equal(all$start, log(c(0.3, 7, 2.5, 0.1)))
  expect_identical(all$free, 1:4)
  now <- all$natural(all$start + log(2))
  expect_equal(now$kernel$lengthscale, c(a = 0.6, b = 14))
  expect_equal(c(now$kernel$variance, now$noise), c(5, 0.2))
  expect_identical(now$kernel[c("profile", "inputs")], kernel[c("profile", "inputs")])

  some <- hyper_parameters(kernel, 0.1, colnames(x), fixed = c("lengthscale.b", "noise"))
  expect_identical(some$free, c(1L, 3L))
  now <- some$natural(some$start + c(1, -1))
  expect_equal(now$kernel$lengthscale, c(a = 0.3 * exp(1), b = 7))
  expect_equal(now$kernel$variance, 2.5 / exp(1))
  expect_equal(now$noise, 0.1)
  none <- hyper_parameters(kernel, 0.1, colnames(x), fixed = c("lengthscale.a", "lengthscale.b", "variance", "noise"))
  expect_length(none$start, 0)
  expect_equal(none$natural(numeric())$noise, 0.1)
})

test_that("values that no data could distinguish are too far; the noise may fall to 1e-12 of the signal", {
  x <- matrix(0, 1, 2, dimnames = list(NULL, c("a", "b")))
  p <- hyper_parameters(place_kernel(kernel_se(c(1, 1), 1), x), 0.1, colnames(x))
  far <- function(...) p$too_far(p$start + c(...))
  expect_null(far(0, 0, 0, 0))
  expect_null(far(15, -15, 15, 15))
  expect_match(far(17, 0, 0, 0), "lengthscale.a")
  expect_match(far(0, -17, 0, 0), "lengthscale.b")
  expect_match(far(0, 0, -17, 0), "variance")
  expect_match(far(0, 0, 0, 17), "noise")
  expect_null(far(0, 0, 0, log(2e-12 / 0.1)))
  expect_match(far(0, 0, 0, log(0.5e-12 / 0.1)), "noise")
  expect_match(far(0, 0, 10, log(2e-12 / 0.1)), "noise")
  # Fixed values are never too far.
  held <- hyper_parameters(place_kernel(kernel_se(c(1, 1), 1), x), 1e-5, colnames(x), fixed = c("variance", "noise"))
  expect_null(held$too_far(c(3, -3)))
})

test_that("names to fix must be among the fit's", {
  x <- matrix(0, 1, 2, dimnames = list(NULL, c("a", "b")))
  names <- parameter_names(place_kernel(kernel_se(inputs = "b"), x), colnames(x))
  expect_identical(check_fixed(c("noise", "lengthscale.b"), names), c("noise", "lengthscale.b"))
  expect_identical(check_fixed(character(), names), character())
  expect_input_error(check_fixed("lengthscale.a", names), "`fix`")
  expect_input_error(check_fixed("lengthscale", names), "lengthscale.b")
})

test_that("starts are in the units of inputs and response; given values stay", {
  x <- cbind(u = c(1, 4, 2, 9, 3), v = 1e8 + 1:5, w = 7)
  y <- c(3, -1, 4, 1, -5)
  sd_n <- function(v) sqrt(mean((v - mean(v))^2))
  started <- function(x, y, kernel = kernel_se(), noise = NULL, ...) {
    data <- data_from_matrix(x, y, ..., center = FALSE, scale = FALSE)
    start_values(place_kernel(kernel, data$x), noise, data)
  }
  s <- started(x, y)
  expect_equal(s$kernel$lengthscale, sqrt(3) * c(u = sd_n(x[, 1]), v = sd_n(1:5), w = 1))
  expect_equal(s$kernel$variance, mean(y^2))
  expect_equal(s$noise, mean(y^2) / 10)

  unit <- c(2, 0.5, 1)
  expect_equal(started(x %*% diag(unit), 8 * y)$kernel$lengthscale, unit * s$kernel$lengthscale, ignore_attr = TRUE)
  expect_equal(started(x, 8 * y)$noise, 64 * s$noise)
  expect_equal(started(cbind(x[, 1] * 1e200), y)$kernel$lengthscale, c(x1 = sd_n(x[, 1]) * 1e200))

  given <- started(x, y, kernel_se(c(1, 2, 3)), noise = 0.7)
  expect_identical(unname(given$kernel$lengthscale), c(1, 2, 3))
  expect_identical(given$noise, 0.7)
  expect_equal(given$kernel$variance, mean(y^2))
  expect_equal(started(x, y, kernel_se(variance = 5, inputs = 2:1))$kernel$lengthscale,
               sqrt(2) * c(v = sd_n(1:5), u = sd_n(x[, 1])))

  # The variance uses the weights, and is 1 for responses of 0.
  w <- c(1, 2, 3, 4, 5)
  expect_equal(started(x, y, weights = w)$kernel$variance, sum(w * y^2) / sum(w))
  expect_equal(started(x, numeric(5))$kernel$variance, 1)
})

test_that("differences between merged rows count in the starts", {
  x <- rep(1:4, each = 5)
  y <- with_seed(1, rnorm(20))
  merged <- data_from_matrix(x, y, center = FALSE, scale = FALSE)
  plain <- data_from_matrix(x, y, center = FALSE, scale = FALSE, merge = FALSE)
  expect_length(merged$y, 4)
  kernel <- place_kernel(kernel_se(), merged$x)
  expect_equal(start_values(kernel, NULL, merged)[["noise"]], mean(y^2) / 10)
  expect_equal(start_values(kernel, NULL, merged)$kernel$variance, start_values(kernel, NULL, plain)$kernel$variance)
})

mean_data <- function(n = 60) {
  with_seed(2, {
    d <- data.frame(year = stats::runif(n, 1950, 1970), z = stats::rnorm(n),
                    site = factor(sample(c("a", "b"), n, TRUE)))
    d$y <- 5 + 0.3 * (d$year - 1960) + sin(2 * d$z) + (d$site == "b") + stats::rnorm(n, sd = 0.2)
    d
  })
}
mean_kernel <- function() kernel_se(0.8, 0.7, ~ z)

test_that("a linear mean equals generalised least squares up to 1e-4, the effect of its prior", {
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
  unit <- (d$year - 1960) / 10 # the same line, in units for which solve() is accurate
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

test_that("the coefficients have the covariance of generalised least squares, and of lm() if f is only the mean", {
  d <- mean_data()
  fit <- gp_exact(y ~ year + z, d, kernel = mean_kernel(), mean = ~ year + z, noise = 0.04, hyper = "fixed")
  K <- 0.7 * exp(-outer(d$z, d$z, "-")^2 / 0.8^2 / 2) + diag(0.04, 60)
  U <- cbind(1, (d$year - 1960) / 10, d$z)
  to <- rbind(c(1, -196, 0), c(0, 0.1, 0), c(0, 0, 1))
  V <- to %*% solve(t(U) %*% solve(K, U)) %*% t(to)
  expect_equal(unname(vcov(fit)), V, tolerance = 1e-3) # the prior has a small effect
  plain <- stats::lm(y ~ year + z, d)
  alone <- gp_exact(y ~ year + z, d, kernel = kernel_se(1, 1e-8), mean = ~ year + z, hyper = "fixed",
                    noise = summary(plain)$sigma^2)
  expect_equal(vcov(alone), vcov(plain), tolerance = 1e-3)
  expect_equal(coef(alone)[1:3], coef(plain), tolerance = 1e-3)
  expect_equal(unname(confint(alone, "year")), unname(confint.default(plain, "year")), tolerance = 1e-3)
})

test_that("certificates, terms, files and new data work for a fit with a mean", {
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

test_that("kernel and noise are learned with a mean, which extrapolates", {
  d <- mean_data(80)
  new <- data.frame(year = c(1940, 1990), z = 0)
  fit <- pfdtc(y ~ year + z, d, mean = ~ year)
  plain <- pfdtc(y ~ year + z, d, kernel = kernel_matern())
  off <- function(f) max(abs(predict(f, new) - (5.5 + 0.3 * (new$year - 1960))))
  expect_lt(off(fit), 1)
  expect_gt(off(plain), 1)
  expect_lt(off(pfdtc(y ~ year + z, d)), 1) # the mean's slopes are shrunk
  expect_false(is.null(fit$kernels)) # the kernel was chosen
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

test_that("means with unknown variables or other faults are refused", {
  d <- mean_data()
  fit <- function(mean, ...) gp_exact(y ~ year + z, d, kernel = mean_kernel(), noise = 1, hyper = "fixed", mean = mean)
  expect_error(fit(~ nobody), "year", class = "pfdtc_error_input")
  expect_error(fit(~ year - 1), "intercept", class = "pfdtc_error_input")
  expect_error(fit("year"), "formula", class = "pfdtc_error_input")
  expect_input_error(pfdtc(am ~ wt, mtcars, family = binomial(), mean = ~ wt), "`mean` is not available")
  expect_input_error(pfdtc(mpg ~ wt, mtcars, mean = ~ offset(wt)), "`mean` must be a formula without offset()")
  expect_input_error(pfdtc(mpg ~ wt, mtcars, noise = ~ wt + offset(wt)), "`noise` must be a formula without offset()")
  expect_identical(coef(fit(~ 1)), coef(gp_exact(y ~ year + z, d, kernel = mean_kernel(), noise = 1, hyper = "fixed")))
})

test_that("rows so far away that variances overflow are refused by name", {
  fit <- pfdtc(dist ~ speed, cars, mean = ~ ., kernel = kernel_se())
  at <- function(speed) data.frame(speed = c(5, NA, speed))
  p <- predict(fit, at(1e100), se.fit = TRUE)
  expect_gt(p$se.fit[[3L]], 1e90)
  for (speed in c(1e153, 1e308)) expect_error(predict(fit, at(speed)), "squares", class = "pfdtc_error_input")
  expect_error(certify(fit, at(1e200)), "newdata.*1e\\+200", class = "pfdtc_error_input")
  expect_true(is.finite(predict(pfdtc(dist ~ speed, cars, kernel = kernel_se()), at(1e308))[[3L]]))
})

test_that("df counts one lengthscale for a factor with two levels, and none for heavy tails, which logLik() ignores", {
  d <- with_seed(1, data.frame(x = stats::runif(60), g = factor(rep(c("a", "b"), 30))))
  d$y <- sin(6 * d$x) + (d$g == "b") + 0.1 * with_seed(2, stats::rt(60, 2))
  fit <- with_seed(1, pfdtc(y ~ x + g, d, kernel = kernel_se(), transform = "none", noise = "auto"))
  expect_true(has_learned_tails(fit))
  expect_equal(fit$df, 4 + noise_df(fit$noise_trend)) # two lengthscales, variance, noise
  expect_identical(attr(stats::logLik(fit), "df"), fit$df)
  kernel <- kernel_se(c(1, 2, 2), 1) + kernel_matern(3 / 2, c(1, 2, 3), 1)
  s <- list(columns = fit$frame$columns, names = NULL, free = NULL)
  expect_identical(count_learned(place_kernel(kernel, fit$data$x), s, fit$frame), 7L)
  few <- with_seed(1, pfdtc(g ~ x, transform(d, g = factor(x > 0.5)), kernel = kernel_se()))
  expect_equal(few$df, 3) # lengthscale, variance, mean
  both <- with_seed(1, pfdtc(I(y > 0.5) ~ x + g, d, family = stats::binomial(), kernel = kernel_se()))
  expect_lte(both$df, 4)
})

test_that("a kernel whose variance overflows at the inputs is refused", {
  d <- data.frame(a = 1e200 * c(1, -2, 3, 5), y = c(1, 3, 2, 4), g = factor(c("u", "u", "v", "v")))
  for (kernel in list(kernel_linear(), kernel_polynomial(2), kernel_se() + kernel_linear())) {
    expect_input_error(pfdtc(y ~ a, d, kernel = kernel), "kernel")
  }
  expect_input_error(pfdtc(y ~ (1 + a | g), d), "kernel")
  expect_true(all(is.finite(predict(pfdtc(y ~ a, d, kernel = kernel_se(1e200, 1), noise = 0.1, hyper = "fixed"), d))))
})
