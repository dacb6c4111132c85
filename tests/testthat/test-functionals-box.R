# Returns an average over a box by integrate() of the formula of each factor, with a break at the row.
ref_average <- function(profile, u, a, b, l) {
  piece <- function(from, to) {
    if (to <= from) return(0)
    k <- function(t) vapply(t, function(t) ref_profile(profile, ((t - u) / l)^2), 0)
    stats::integrate(k, from, to, rel.tol = 1e-12, subdivisions = 500)$value
  }
  middle <- min(max(u, a), b)
  (piece(a, middle) + piece(middle, b)) / (b - a)
}

ref_average_variance <- function(profile, a, b, l) {
  w <- b - a
  k <- function(d) 2 * (w - d) * vapply(d, function(d) ref_profile(profile, (d / l)^2), 0)
  stats::integrate(k, 0, w, rel.tol = 1e-12, subdivisions = 500)$value / w^2
}

box_rows <- function(n, seed) {
  with_seed(seed, data.frame(a = stats::runif(n), b = stats::runif(n, -1, 2), f = factor(sample(c("u", "v"), n, TRUE))))
}

test_that("averages of one factor and their prior variances are those of adaptive quadrature, for any width", {
  only_nightly()
  for (profile in names(box_factors)) {
    for (l in c(0.05, 0.7, 30)) {
      for (w in c(1e-3, 0.2, 0.69, 0.71, 5)) {
        u <- c(-4, -0.2, 0.3, 0.3 + w / 3, 0.3 + w, 1, 9)
        got <- interval_average(box_factors[[profile]], u / l, 0.3 / l, (0.3 + w) / l)
        expect_equal(drop(got), vapply(u, ref_average, 0, profile = profile, a = 0.3, b = 0.3 + w, l = l),
                     tolerance = 1e-10)
        expect_equal(interval_variance(box_factors[[profile]], w / l), ref_average_variance(profile, 0, w, l),
                     tolerance = 1e-10)
      }
    }
    point <- interval_average(box_factors[[profile]], c(0, 0.4), 0.1, 0.1)
    expect_equal(drop(point), vapply(c(0.1, 0.3), function(d) ref_profile(profile, d^2), 0))
    expect_equal(interval_variance(box_factors[[profile]], 0), 1)
  }
})

test_that("mean and sd over a box are those of the dense exact GP, inside their certificate", {
  d <- box_rows(40, 1)
  d$y <- with_seed(2, sin(5 * d$a) + d$b + stats::rnorm(40, 0, 0.2))
  lower <- data.frame(a = c(0, 0.2, 0.5), b = c(-1, 0, 0.5), f = c("u", "v", "v"))
  upper <- data.frame(a = c(1, 0.3, 0.5), b = c(2, 1.5, 0.50001))
  # The kernel is se(a, b) + matern32(a) matern52(b) + categorical(f) matern12(a).
  k <- kernel_se(c(0.4, 1.1), 1.3, c("a", "b")) +
    kernel_matern(3 / 2, 0.3, 0.8, "a") * kernel_matern(5 / 2, 0.9, 1, "b") +
    kernel_categorical(0.5, 0.7, "f") * kernel_matern(1 / 2, 0.6, 1, "a")
  average <- function(profile, u, i, j, l) {
    if (lower[i, j] == upper[i, j]) return(ref_profile(profile, ((u - lower[i, j]) / l)^2))
    ref_average(profile, u, lower[i, j], upper[i, j], l)
  }
  own <- function(profile, i, j, l) {
    if (lower[i, j] == upper[i, j]) 1 else ref_average_variance(profile, lower[i, j], upper[i, j], l)
  }
  Kx <- outer(1:40, 1:3, Vectorize(function(n, i) {
    same <- if (d$f[n] == lower$f[i]) 1 else 0.5
    1.3 * average("se", d$a[n], i, "a", 0.4) * average("se", d$b[n], i, "b", 1.1) +
      0.8 * average("matern32", d$a[n], i, "a", 0.3) * average("matern52", d$b[n], i, "b", 0.9) +
      0.7 * same * average("matern12", d$a[n], i, "a", 0.6)
  }))
  prior <- vapply(1:3, function(i) {
    1.3 * own("se", i, "a", 0.4) * own("se", i, "b", 1.1) + 0.7 * own("matern12", i, "a", 0.6) +
      0.8 * own("matern32", i, "a", 0.3) * own("matern52", i, "b", 0.9)
  }, 0)
  fit <- function(by, ...) by(y ~ a + b + f, d, kernel = k, noise = 0.04, hyper = "fixed", ...)
  exact <- fit(gp_exact)
  p <- ref_functionals(kernel_matrix(exact$kernel, exact$data$x) + diag(0.04, 40), Kx, prior, d$y - exact$center)
  p$mean <- p$mean + exact$center
  got <- linear_functional(exact, lower = lower, upper = upper)
  expect_equal(got$mean, p$mean, tolerance = 1e-8) # rounding times the condition of K + s2 I
  expect_equal(got$sd, sqrt(p$var), tolerance = 1e-7)
  expect_false("quadrature" %in% names(got))
  near <- with_seed(3, fit(pfdtc, m = 5, neighbours = 10))
  for (other in list(exact, fit(gp_dtc, m = 8), near)) {
    for (kriging in c(0L, 400L)) with_options(list(pfdtc.kriging_rows = kriging), {
      got <- suppressMessages(linear_functional(other, lower = lower, upper = upper))
      expect_false(any(functionals_broken(got, p, 1e-10)))
    })
  }
  rough <- linear_functional(near, lower = lower, upper = upper, certified = FALSE)
  expect_lt(max(abs(rough$mean - p$mean)), 0.3) # a third of the prior sd
})

test_that("a box without width is f there, and integrals are averages times the volume", {
  fit <- gp_exact(y ~ a + b, transform(box_rows(30, 4), y = a - b^2), kernel = kernel_se(c(0.5, 1), 1), noise = 0.01,
                  hyper = "fixed")
  at <- data.frame(a = c(0.2, 0.8), b = c(0, 1))
  point <- certify(fit, at)
  got <- linear_functional(fit, lower = at, upper = at)
  expect_equal(got[c("mean", "sd")], point[c("mean", "sd")], tolerance = 1e-8, ignore_attr = TRUE)
  corner <- c(a = 0, b = 0)
  average <- linear_functional(fit, lower = corner, upper = c(a = 0.5, b = 0.2))
  expect_equal(unlist(linear_functional(fit, lower = corner, upper = c(a = 0.5, b = 0.2), average = FALSE)),
               0.1 * unlist(average))
  expect_equal(linear_functional(fit, lower = corner, upper = c(b = 0.2), average = FALSE)$mean,
               0.2 * linear_functional(fit, lower = corner, upper = c(b = 0.2))$mean) # integral over the length 0.2
})

test_that("a linear mean averages to its value in the middle, white noise to 0", {
  d <- transform(box_rows(30, 5), y = 3 * a - b)
  fit <- gp_exact(y ~ a + b, d, kernel = kernel_linear(2, 1) + kernel_linear(2, 2) + kernel_white(0.3), noise = 0.01,
                  hyper = "fixed")
  got <- linear_functional(fit, lower = c(a = 0, b = 0), upper = c(a = 1, b = 1))
  smooth <- gp_exact(y ~ a + b, d, kernel = kernel_linear(2, 1) + kernel_linear(2, 2), noise = 0.31, hyper = "fixed")
  expect_equal(got$mean, unname(predict(smooth, data.frame(a = 0.5, b = 0.5))), tolerance = 1e-8)
  expect_equal(got$sd, predict(smooth, data.frame(a = 0.5, b = 0.5), se.fit = TRUE, type = "latent")$se.fit[[1]],
               tolerance = 1e-6)
})

test_that("other kernels have quadrature, whose error is near the estimate", {
  d <- transform(box_rows(40, 6), y = sin(5 * a) + b)
  lower <- c(a = 0.1, b = -1)
  upper <- c(a = 0.9, b = 1)
  grid <- expand.grid(a = 0.1 + 0.8 * (1:60 - 0.5) / 60, b = -1 + 2 * (1:60 - 0.5) / 60) # the midpoint rule
  shared <- kernel_linear(1, "a") * kernel_se(0.5, 1, "a")
  for (k in list(kernel_matern(3 / 2, 0.5, 1), kernel_rq(0.5, 1, 1), kernel_polynomial(2, 1, 1), shared)) {
    fit <- gp_exact(y ~ a + b, d, kernel = k, noise = 0.01, hyper = "fixed")
    got <- linear_functional(fit, lower = lower, upper = upper)
    dense <- linear_functional(fit, rep(1 / 3600, 3600), grid, certified = FALSE)
    expect_lt(abs(got$mean - dense$mean), got$quadrature + 2e-4) # the midpoint rule errs by 2e-4
    expect_lt(abs(got$sd - dense$sd), got$quadrature + 2e-4)
    expect_lt(got$quadrature, 3e-3)
  }
  many <- with_seed(7, as.data.frame(matrix(stats::runif(7 * 30), 30)))
  many$y <- rowSums(many)
  fit <- gp_exact(y ~ ., many, kernel = kernel_matern(5 / 2, 3, 4), noise = 0.01, hyper = "fixed")
  ends <- stats::setNames(rep(0:1, each = 7), rep(names(many)[1:7], 2))
  got <- linear_functional(fit, lower = ends[1:7], upper = ends[8:14], certified = FALSE)
  expect_equal(got$mean, 3.5, tolerance = 0.05)
  expect_lt(got$quadrature, 0.1)
})

test_that("boxes with exchanged ends, or with a width in a factor or a transformed input, are refused", {
  d <- transform(box_rows(20, 8), y = a)
  fit <- gp_exact(y ~ a + log(b + 2) + f, d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  corner <- data.frame(a = 0, b = 0, f = "u")
  expect_input_error(linear_functional(fit, lower = corner, upper = data.frame(a = -1)), "upper")
  expect_input_error(linear_functional(fit, lower = corner, upper = data.frame(b = 1)),
                     "the same values of `log(b + 2)`")
  expect_input_error(linear_functional(fit, lower = corner, upper = data.frame(f = "v")), "values of `f`. A box")
  expect_input_error(linear_functional(fit, lower = replace(corner, "a", NA)), "`lower` has missing values")
  expect_input_error(linear_functional(fit, lower = corner, upper = data.frame(a = "z")), "Variable `a` of `upper`")
  expect_input_error(linear_functional(fit, lower = corner, upper = data.frame(z = 1)), "upper")
  expect_input_error(linear_functional(fit, 1, corner, lower = corner), "lower")
  for (odd in list(mean, "a", structure(1, class = "odd"))) {
    expect_input_error(linear_functional(fit, lower = odd), "lower")
    expect_input_error(linear_functional(fit, lower = corner, upper = odd), "upper")
  }
  expect_equal(linear_functional(fit, lower = corner, upper = data.frame(a = 1))$mean,
               mean(predict(fit, data.frame(a = (1:500 - 0.5) / 500, b = 0, f = "u"))), tolerance = 1e-5)
})

test_that("boxes of a fit of a matrix may be matrices or vectors without names, as in predict()", {
  d <- box_rows(20, 8)
  boxes <- function(x, lower, upper) {
    fit <- gp_exact(as.matrix(x), d$a, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
    linear_functional(fit, lower = lower, upper = upper)[1:2]
  }
  named <- boxes(d[c("a", "b")], data.frame(a = 0:1, b = 0), data.frame(a = 1:2, b = 1))
  plain <- unname(as.matrix(d[c("a", "b")]))
  expect_identical(boxes(plain, cbind(0:1, 0), cbind(1:2, 1)), named)
  # An optimised BLAS adds up the products of one column in another order than those of two.
  expect_equal(boxes(plain, c(0, 0), c(1, 1)), named[1, ], tolerance = 1e-12)
  expect_input_error(boxes(plain, cbind(0, 0), cbind(1, -1)), "`upper` is below `lower`")
})

test_that("averages with random slopes are closed forms; the stated error of a rule bounds the true one", {
  d <- transform(box_rows(60, 9), g = gl(5, 12))
  d$y <- with_seed(10, sin(6 * d$a) + as.integer(d$g) * d$a + stats::rnorm(60, 0, 0.2))
  lower <- data.frame(a = 0.1, b = 0, g = "2")
  dense_average <- function(fit, n = 3000) {
    at <- 0.1 + 0.6 * (seq_len(n) - 0.5) / n
    linear_functional(fit, rep(1 / n, n), data.frame(a = at, b = 0, g = "2"), certified = FALSE)
  }
  for (nu in c(1 / 2, 3 / 2)) {
    k <- kernel_matern(nu, 0.2, 1, "a") + kernel_group(~ g, ~ 1 + a, variance = 0.5, scale = 0.5, correlated = FALSE)
    fit <- gp_exact(y ~ a, d, kernel = k, noise = 0.05, hyper = "fixed")
    got <- linear_functional(fit, lower = lower, upper = c(a = 0.7), certified = FALSE)
    dense <- dense_average(fit)
    expect_null(got$quadrature)
    expect_equal(c(got$mean, got$sd), c(dense$mean, dense$sd), tolerance = 1e-4) # the midpoint rule errs by 1e-4
    both <- gp_exact(y ~ a + b, d, kernel = kernel_matern(nu, c(0.2, 1), 1), noise = 0.05, hyper = "fixed")
    dense <- dense_average(both)
    got <- linear_functional(both, lower = lower[1:2], upper = c(a = 0.7), certified = FALSE)
    expect_gte(got$quadrature, max(abs(got$mean - dense$mean), abs(got$sd - dense$sd)))
  }
})
