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

test_that("values that no data could tell apart are too far, however the noise may fall to 1e-12 of the signal", {
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
  # fixed values never are
  held <- hyper_parameters(place_kernel(kernel_se(c(1, 1), 1), x), 1e-5, colnames(x), fixed = c("variance", "noise"))
  expect_null(held$too_far(c(3, -3)))
})

test_that("names to fix must be among the fit's", {
  x <- matrix(0, 1, 2, dimnames = list(NULL, c("a", "b")))
  kernel <- place_kernel(kernel_se(inputs = "b"), x)
  expect_identical(check_fixed(c("noise", "lengthscale.b"), kernel, colnames(x)), c("noise", "lengthscale.b"))
  expect_identical(check_fixed(character(), kernel, colnames(x)), character())
  expect_input_error(check_fixed("lengthscale.a", kernel, colnames(x)), "`fix`")
  expect_input_error(check_fixed("lengthscale", kernel, colnames(x)), "lengthscale.b")
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

  # weights weigh; nothing to go by is 1
  w <- c(1, 2, 3, 4, 5)
  expect_equal(started(x, y, weights = w)$kernel$variance, sum(w * y^2) / sum(w))
  expect_equal(started(x, numeric(5))$kernel$variance, 1)
})

test_that("what merged rows differ by counts in the starts", {
  x <- rep(1:4, each = 5)
  y <- with_seed(1, rnorm(20))
  merged <- data_from_matrix(x, y, center = FALSE, scale = FALSE)
  plain <- data_from_matrix(x, y, center = FALSE, scale = FALSE, merge = FALSE)
  expect_length(merged$y, 4)
  kernel <- place_kernel(kernel_se(), merged$x)
  expect_equal(start_values(kernel, NULL, merged)[["noise"]], mean(y^2) / 10)
  expect_equal(start_values(kernel, NULL, merged)$kernel$variance, start_values(kernel, NULL, plain)$kernel$variance)
})
