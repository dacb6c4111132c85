test_that("the covariance of a group is that of its design, level by level", {
  d <- with_seed(4, data.frame(y = rnorm(30), x = runif(30, -1, 1), g = rep(letters[1:6], 5)))
  k <- kernel_group(~ g, ~ 1 + x, variance = 2, scale = 0.5)
  fit <- gp_exact(y ~ x, d, kernel = k + kernel_se(0.4, 1, ~ x), noise = 0.3)
  root <- group_roots(fit$kernel)[[1]]
  S <- tcrossprod(root$root)
  U <- cbind(1, d$x)
  dense <- (U %*% S %*% t(U)) * outer(d$g, d$g, "==")
  alone <- fit$kernel
  alone$terms <- alone$terms[plain_groups(alone)]
  expect_equal(unname(kernel_matrix(alone, fit$data$x)), dense, tolerance = 1e-13)
  expect_identical(root$effects, c("(Intercept)", "x"))
  expect_identical(fit$data$x[, root$level], as.double(match(d$g, letters)))
})

test_that("terms of the formula and of the kernel are added, each once", {
  d <- with_seed(4, data.frame(y = rnorm(30), x = runif(30, -1, 1), g = rep(letters[1:6], 5)))
  names_of <- function(...) {
    leaf_names(gp_exact(..., data = d, noise = 1, control = pfdtc_control(restarts = 1))$kernel$leaves)
  }
  expect_identical(names_of(y ~ x + (1 | g), kernel = kernel_se()), c("se(x)", "group(g)"))
  expect_identical(names_of(y ~ x + (1 | g), kernel = kernel_se() + kernel_group(~ g)), c("se(x)", "group(g)"))
  expect_identical(names_of(y ~ x + (1 | g), kernel = kernel_se() * kernel_group(~ g)),
                   c("se(x)", "group(g)", "group(g)_1"))
  expect_identical(names_of(y ~ x + (0 + x | g), kernel = kernel_se() + kernel_group(~ g)),
                   c("se(x)", "group(g)", "group(0 + x | g)"))
})

test_that("print() of a group names its factor and its effects", {
  expect_output(print(kernel_group(~ g, ~ 1 + x)), "grouping factor: +g\n  effects: +1 [+] x\n?$")
  expect_output(print(kernel_group(~ a:b, ~ x, correlated = FALSE)), "grouping factor: +a:b\n  effects: +x\n?$")
})

test_that("odd arguments of a group have errors", {
  for (f in list(function() kernel_group(), function() kernel_group(y ~ g), function() kernel_group(~ g, design = 3),
                 function() kernel_group(c("a", "b")), function() kernel_group(~ g, correlated = NA))) {
    expect_error(f(), class = "pfdtc_error_input")
  }
  expect_error(kernel_matrix(kernel_group(1, ~ 0, variance = 1), cbind(1:3)), class = "pfdtc_error_input")
})
