wide <- function(n, d, seed, spread = 2) with_seed(seed, matrix(rnorm(n * d, sd = spread), n, d))

test_that("kernel_matrix() is the double loop for every kernel", {
  for (profile in profiles) {
    for (d in c(1, 2, 5)) {
      k <- ref_kernel(profile, seq(0.5, 2, length.out = d), 2.3)
      x <- wide(9, d, 1)
      z <- wide(4, d, 2)
      one <- x[3, , drop = FALSE]
      for (case in list(list(x, z), list(x, x), list(one, z), list(x, one))) {
        got <- kernel_matrix(package_kernel(k), case[[1]], case[[2]])
        expect_identical(dim(got), c(nrow(case[[1]]), nrow(case[[2]])))
        # exp() of an argument of size a has a relative error of a * eps, which is negligible relative to the variance.
        expect_close(got / k$variance, ref_k(k, case[[1]], case[[2]]) / k$variance, 1e-14, profile)
      }
      expect_identical(kernel_matrix(package_kernel(k), x), kernel_matrix(package_kernel(k), x, x))
    }
  }
})

test_that("small covariances keep their relative accuracy", {
  x <- matrix(0)
  z <- matrix(c(5, 10, 20, 30))
  for (profile in profiles) {
    k <- ref_kernel(profile, 1, 1)
    got <- kernel_matrix(package_kernel(k), x, z)
    expect_lt(max(abs(got / ref_k(k, x, z) - 1)), 1e-12)       # 450 * eps is 1e-13
  }
})

test_that("kernel matrices are symmetric and not negative, with the variance on their diagonal to the bit", {
  x <- rbind(wide(20, 3, 3), 1e8 + wide(5, 3, 4))
  x <- x[c(1:25, 1:5, 21:25), ]
  for (profile in profiles) {
    k <- ref_kernel(profile, c(0.7, 1.1, 3), 1 / 3)
    got <- kernel_matrix(package_kernel(k), x)
    expect_identical(diag(got), rep(1 / 3, nrow(x)))
    expect_identical(got, t(got))
    expect_identical(got[1:5, 26:30], got[1:5, 1:5])           # duplicates are exact
    expect_gt(min(eigen(got, TRUE, only.values = TRUE)$values), -1e-14 * nrow(x))
    expect_true(all(got >= 0 & got <= 1 / 3))
  }
})

test_that("extreme inputs and lengthscales cost no digits", {
  x <- problem(n = 8)$x
  z <- problem(m = 3)$z
  far <- 1e8
  for (profile in profiles) {
    for (l in list(c(1e-6, 1e-6), c(1e6, 1e6), c(1, 1e6), c(1, 1e-6))) {
      k <- ref_kernel(profile, l, 2)
      expect_close(kernel_matrix(package_kernel(k), x, z), ref_k(k, x, z), 1e-14)
      expect_close(kernel_matrix(package_kernel(k), x * l[1], z), ref_k(k, x * l[1], z), 1e-14)
    }
    k <- ref_kernel(profile, c(0.8, 1.2), 2)
    expect_close(kernel_matrix(package_kernel(k), x + far, z + far),
                 ref_k(k, x + far, z + far), 1e-14)
    tiny <- ref_kernel(profile, c(0.8, 1.2) * 1e-8, 2)
    expect_close(kernel_matrix(package_kernel(tiny), x * 1e-8, z * 1e-8),
                 ref_k(tiny, x * 1e-8, z * 1e-8), 1e-14)
    apart <- kernel_matrix(package_kernel(k), x, x + 1e160)      # squares would overflow
    expect_identical(apart, matrix(0, 8, 8))
  }
})

test_that("a periodic kernel loses no digits far from 0, as for seconds since 1970 with a period of a day", {
  seconds <- c(0, 1, 3600, 50000, 86399)
  days <- c(0, 1, 20000, 2^36, 4)
  at <- as.matrix(seconds + 86400 * days) # exact
  k <- function(apart) 2 * exp(-2 * sin(pi * apart / 86400)^2 / 0.7^2)
  expect_close(kernel_matrix(kernel_periodic(0.7, 2, 86400), at), k(outer(seconds, seconds, "-")), 1e-14)
})

test_that("a point far from all others costs those no digits, first or last", {
  x <- problem(n = 6)$x
  z <- problem(m = 3)$z
  for (far in c(1e6, 1e10, 1e100)) {
    for (profile in profiles) {
      k <- ref_kernel(profile, c(0.8, 1.2), 2)
      for (xs in list(rbind(far, x), rbind(x, far))) {
        for (zs in list(rbind(far, z), rbind(z, far))) {
          got <- unname(kernel_matrix(package_kernel(k), xs, zs))
          expect_close(got, ref_k(k, xs, zs), 1e-14, paste(profile, far))
        }
      }
    }
  }
})

test_that("a scalar lengthscale is recycled and `inputs` picks columns", {
  x <- wide(7, 4, 5)
  z <- wide(3, 4, 6)
  for (profile in profiles) {
    one <- ref_kernel(profile, 1.3, 2)
    each <- ref_kernel(profile, rep(1.3, 4), 2)
    expect_identical(kernel_matrix(package_kernel(one), x, z),
                     kernel_matrix(package_kernel(each), x, z))
    part <- ref_kernel(profile, c(0.6, 1.7), 2, inputs = c(4, 2))
    expect_close(kernel_matrix(package_kernel(part), x, z), ref_k(part, x, z), 1e-14)
  }
  colnames(x) <- colnames(z) <- c("a", "b", "c", "d")
  by_name <- kernel_se(lengthscale = c(0.6, 1.7), variance = 2, inputs = c("d", "b"))
  by_index <- kernel_se(lengthscale = c(0.6, 1.7), variance = 2, inputs = c(4, 2))
  expect_identical(kernel_matrix(by_name, x, z), kernel_matrix(by_index, x, z))
})

test_that("columns of two sets of points are matched by name, and so are named lengthscales", {
  x <- cbind(a = c(0.1, 0.7, 0.2), b = c(0.5, 0.4, 0.9))
  z <- x[1:2, ] + 0.3
  kernel <- kernel_se(c(0.3, 2), 1)
  K <- kernel_matrix(kernel, x, z)
  expect_identical(kernel_matrix(kernel, x, z[, 2:1]), K)
  expect_identical(kernel_matrix(kernel, x, as.data.frame(z)[2:1]), K, ignore_attr = TRUE)
  expect_identical(kernel_matrix(kernel, x, unname(z)), K)
  expect_identical(kernel_matrix(kernel_se(c(b = 2, a = 0.3), 1), x, z), K)
  expect_identical(kernel_matrix(kernel_se(c(p = 0.3, q = 2), 1), x, z), K) # names of no column: by position
  for (length in list(c(b = 2, q = 0.3), c(b = 2), c(b = 2, a = 1, q = 3))) {
    expect_error(kernel_matrix(kernel_se(length, 1), x, z),
                 "but its inputs are `a` and `b`", class = "pfdtc_error_input")
  }
  expect_error(kernel_matrix(kernel, x, cbind(a = 1, c = 2)), "lacks the columns `b`", class = "pfdtc_error_input")
  expect_identical(vfe_objective(z[, 2:1], x, 1:3, kernel, 0.1), vfe_objective(z, x, 1:3, kernel, 0.1))
})

test_that("the isotropic kernel of a fit finds its inputs by name", {
  d <- data.frame(a = c(0.1, 0.7, 0.2, 0.5), b = c(0.5, 0.4, 0.9, 0.1), c = c(0.8, 0.3, 0.1, 0.2), y = c(1, 3, 2, 0))
  own <- kernel_se(0.5, 1, inputs = ~ a + b, isotropic = TRUE)
  fit <- gp_exact(y ~ a + b + c, d, kernel = own, noise = 0.1, hyper = "fixed")
  other <- gp_exact(y ~ c + b + a, d, kernel = fit$kernel, noise = 0.1, hyper = "fixed")
  expect_equal(logLik(other), logLik(fit), tolerance = 1e-12)
  x <- as.matrix(d[1:3])
  expect_equal(kernel_matrix(fit$kernel, x[, 3:1]), kernel_matrix(own, x), tolerance = 1e-14)
  globe <- data.frame(lon = d$a, lat = d$b, z = d$c, y = d$y)
  fit <- gp_exact(y ~ sphere(lon, lat) + z, globe, kernel = kernel_se(c(40, 1), 1), noise = 0.1, hyper = "fixed")
  other <- gp_exact(y ~ z + sphere(lon, lat), globe, kernel = fit$kernel, noise = 0.1, hyper = "fixed")
  expect_equal(logLik(other), logLik(fit), tolerance = 1e-12)
})

test_that("scaling inputs and lengthscales together changes nothing, and the variance is a factor", {
  x <- wide(6, 2, 7)
  for (profile in profiles) {
    k <- ref_kernel(profile, c(0.8, 1.3), 1)
    by_four <- ref_kernel(profile, c(0.8, 1.3) * 4, 8)
    expect_identical(kernel_matrix(package_kernel(by_four), x * 4),
                     8 * kernel_matrix(package_kernel(k), x))
  }
})

test_that("vectors are one column, integers numbers, and inputs stay untouched", {
  k <- kernel_matern(3 / 2, lengthscale = 1.5, variance = 2)
  expect_identical(kernel_matrix(k, 1:4, c(0, 2)), kernel_matrix(k, matrix(1:4), matrix(c(0, 2))))
  x <- wide(5, 2, 8)
  z <- wide(3, 2, 9)
  copies <- list(x + 0, z + 0)
  k <- kernel_se(lengthscale = c(1, 2), variance = 2)
  first <- kernel_matrix(k, x, z)
  expect_identical(list(x, z), copies)
  expect_identical(kernel_matrix(k, x, z), first)
})

test_that("bad kernels and bad inputs are refused by name", {
  x <- wide(5, 2, 10)
  k <- kernel_se(lengthscale = 1, variance = 1)
  expect_input_error(kernel_se(lengthscale = 0), "lengthscale")
  expect_input_error(kernel_se(lengthscale = c(1, -1)), "lengthscale")
  expect_input_error(kernel_se(lengthscale = NA_real_), "lengthscale")
  expect_input_error(kernel_se(lengthscale = "1"), "lengthscale")
  expect_input_error(kernel_se(variance = 0), "variance")
  expect_input_error(kernel_se(variance = c(1, 2)), "variance")
  expect_input_error(kernel_matern(variance = Inf), "variance")
  expect_input_error(kernel_matern(nu = 2), "nu")
  expect_input_error(kernel_matern(nu = "a"), "nu")
  expect_input_error(kernel_matrix(kernel_se(lengthscale = 1), x), "variance")
  expect_input_error(kernel_matrix(kernel_se(variance = 1), x), "lengthscale")
  expect_input_error(kernel_matrix(kernel_se(lengthscale = c(1, 1, 1), variance = 1), x),
                     "lengthscale")
  expect_input_error(kernel_matrix(kernel_se(lengthscale = 1, variance = 1, inputs = 3), x),
                     "inputs")
  expect_input_error(kernel_matrix("se", x), "kernel")
  expect_input_error(kernel_matrix(k, x, x[, 1]), "z")
  expect_input_error(kernel_matrix(k, matrix(c(1, NA), 1)), "x")
  expect_input_error(kernel_matrix(k, x, matrix(c(1, Inf), 1)), "z")
  expect_input_error(kernel_matrix(k, matrix("a", 2, 2)), "x")
})

test_that("lengthscales at the ends of double precision have their limits, never NaN", {
  x <- c(0, 1, 1, 2)
  for (make in c(list(kernel_se), lapply(c(1, 3, 5) / 2, function(nu) function(...) kernel_matern(nu, ...)))) {
    for (short in c(5e-324, 1e-310, 1e-200)) {
      expect_identical(kernel_matrix(make(short, 2), x), 2 * outer(x, x, "=="))
    }
    expect_identical(kernel_matrix(make(1e308, 2), x), matrix(2, 4, 4))
    expect_identical(kernel_matrix(make(c(1e-310, 1), 2), cbind(x, x))[2:3, 2:3], matrix(2, 2, 2))
  }
})

test_that("inputs of a kernel must exist as columns", {
  for (bad in list(list(1), NA_character_, NA, c(1, NA), 0, 1.5)) {
    expect_input_error(kernel_se(1, inputs = bad), "inputs")
  }
  expect_input_error(kernel_matrix(kernel_se(1, 1), matrix(0, 3, 0)), "x")
  expect_input_error(inducing_points(matrix(0, 0, 2), 1, kernel_se(1, 1)), "x")
  expect_input_error(pfdtc(matrix(0, 0, 1), numeric()), "`x` has 0 rows and 1 column.")
})
