rows_of <- function(points, x) match(data.frame(t(unname(points))), data.frame(t(unname(x))))

test_that("greedy points are the pivots of the dense pivoted Cholesky", {
  for (profile in profiles) {
    for (d in 1:3) {
      p <- problem(profile, n = 40, d = d, seed = d)
      for (m in c(1, 2, 12)) {
        points <- inducing_points(p$x, m, package_kernel(p$kernel), "greedy")
        expect_identical(dim(points), c(as.integer(m), as.integer(d)))
        rows <- rows_of(points, p$x)
        expect_false(anyNA(rows))
        expect_identical(rows, ref_pivots(p$x, m, p$kernel, rows[1])$pivots, info = label_of(p))
      }
    }
  }
})

test_that("blocks, memory and threads do not change the pivots", {
  p <- problem("matern12", n = 300, d = 2)
  k <- package_kernel(p$kernel)
  points <- inducing_points(p$x, 150, k, "greedy")
  rows <- rows_of(points, p$x)
  expect_identical(rows, ref_pivots(p$x, 150, p$kernel, rows[1])$pivots)
  expect_identical(rows_of(inducing_points(p$x, 40, k, "greedy"), p$x), rows[1:40])
  small <- with_options(list(pfdtc.block = 7, pfdtc.memory = 0, pfdtc.threads = 1),
                        inducing_points(p$x, 150, k, "greedy"))
  expect_identical(rows_of(small, p$x), rows)
})

# Returns the rows that the functions draw if there are too many rows.
drawn <- function(n, most, seed = 3) with_seed(seed, sort(sample.int(n, most)))

test_that("scratch memory changes neither inducing points nor predictions of a fit", {
  d <- with_seed(3, data.frame(x = stats::runif(3000), z = stats::runif(3000)))
  d$y <- sin(9 * d$x * d$z)
  new <- d[1:20, ]
  fit <- function(memory, ...) {
    with_seed(1, gp_dtc(y ~ x + z, d, m = 120, kernel = kernel_se(0.3, 1), noise = 0.01, hyper = "fixed", ...,
                        control = list(memory = memory)))
  }
  for (how in c("greedy", "divergence")) {
    some <- fit(1e4, inducing = how)
    all <- fit(1e9, inducing = how)
    expect_identical(some$inducing, all$inducing)
    expect_equal(predict(some, new), predict(all, new), tolerance = 1e-12) # rounding of sums
  }
  k <- complete_kernel(kernel_se(c(0.3, 0.3), 1), as.matrix(new[1:2]))
  chosen <- function(memory) {
    with_options(list(pfdtc.memory = memory), with_seed(1, inducing_points(as.matrix(d[1:2]), 20, k)))
  }
  expect_identical(chosen(0), chosen(1e9))
})

test_that("if selection uses only some rows, points are chosen from these", {
  p <- problem("matern32", n = 1500, m = 4)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  # Greedy points: the memory is enough for 20 m rows.
  few <- drawn(1500, 100)
  chosen <- with_seed(3, choose_greedy(p$x, 5, kernel, memory = 0))
  expect_identical(chosen$rows, few[ref_pivots(p$x[few, ], 5, p$kernel)$pivots])
  expect_identical(chosen$z, p$x[chosen$rows, ])
  # References and auxiliary distributions use 20 m2 rows.
  rows <- with_seed(3, reference_rows(p, kernel, 5))
  expect_identical(rows, chosen$rows)
  # Points guided by y and weights use 1,000 rows, each with its own y and weight.
  p$weights <- with_seed(5, stats::runif(1500, 0.2, 3))
  looked <- drawn(1500, 1000)
  guided <- function(rows) {
    toward <- list(y = 100 * p$y[rows], weights = p$weights[rows], noise = p$noise)
    choose_guided(p$x[rows, ], 8, kernel, toward, 2^27, NULL)
  }
  some <- with_seed(3, guided(1:1500))
  expect_identical(some$rows, looked[guided(looked)$rows])
  expect_identical(some$z, p$x[some$rows, ])
  # k-means uses 10,000 rows, and its centres are among them.
  many <- with_seed(6, matrix(stats::runif(20002), ncol = 2))
  centres <- with_seed(3, inducing_points(many, 3, kernel, "kmeans"))
  expect_identical(dim(centres), c(3L, 2L))
  expect_true(all(centres > 0.05 & centres < 0.95))
})

test_that("greedy selection stops when the residual of K is rounding error", {
  for (profile in profiles) {
    p <- problem(profile, n = 9)
    twice <- p$x[rep(1:9, 3), ]
    points <- inducing_points(twice, 20, package_kernel(p$kernel), "greedy")
    expect_identical(nrow(points), 9L)
    expect_setequal(rows_of(points, p$x), 1:9)
  }
  # Copies have residual variance 0 despite rounding, and no residual variance is negative.
  for (seed in 1:20) {
    p <- problem("se", n = 9, seed = seed, lengthscale = c(3, 5))
    kernel <- engine_model(kernel = complete_kernel(package_kernel(p$kernel), p$x))
    found <- native(ffi_select, kernel, p$x[rep(1:9, 3), ], 27L, 0)
    expect_identical(anyDuplicated((found$pivots - 1) %% 9), 0L)
    expect_true(all(found$t >= 0))
  }
  one <- inducing_points(matrix(2, 10, 3), 5, kernel_se(lengthscale = 1, variance = 1), "greedy")
  expect_identical(rows_of(one, matrix(2, 1, 3)), 1L)
  # The lengthscale is so long that fewer than 20 points represent f up to rounding.
  x <- matrix(seq(0, 1, length.out = 200))
  wide <- inducing_points(x, 100, kernel_se(lengthscale = 1, variance = 3), "greedy")
  expect_lt(nrow(wide), 20)
  all <- inducing_points(x, 100, kernel_matern(1 / 2, lengthscale = 1, variance = 3), "greedy")
  expect_identical(nrow(all), 100L)
})

test_that("greedy points do not depend on units or on where the origin is", {
  p <- problem("se", n = 30)
  pick <- function(x, k) rows_of(inducing_points(x, 10, package_kernel(k), "greedy"), x)
  plain <- pick(p$x, p$kernel)
  expect_identical(pick(p$x, ref_kernel("se", p$kernel$lengthscale, 1e-6)), plain)
  expect_identical(pick(p$x * 1e-8, ref_kernel("se", p$kernel$lengthscale * 1e-8, 1)), plain)
  expect_identical(pick(p$x + 1e6, p$kernel), plain)
})

test_that("random points are distinct rows, reproducible by the seed", {
  p <- problem(n = 30)
  k <- package_kernel(p$kernel)
  draw <- function(seed, m = 8) with_seed(seed, inducing_points(p$x, m, k, "random"))
  rows <- rows_of(draw(1), p$x)
  expect_false(anyNA(rows))
  expect_identical(anyDuplicated(rows), 0L)
  expect_identical(draw(1), draw(1))
  expect_false(identical(draw(2), draw(1)))
  expect_setequal(rows_of(draw(1, 30), p$x), 1:30)
  # All rows are equally likely.
  counts <- tabulate(unlist(lapply(1:200, function(s) rows_of(draw(s), p$x))), 30)
  expect_gt(chisq.test(counts)$p.value, 1e-4)
})

test_that("k-means centres lie within the data, reproducible by the seed", {
  p <- problem(n = 60, d = 3)
  k <- package_kernel(p$kernel)
  draw <- function(m, x = p$x) with_seed(4, inducing_points(x, m, k, "kmeans"))
  points <- draw(10)
  expect_identical(dim(points), c(10L, 3L))
  expect_identical(draw(10), points)
  for (j in 1:3) {
    expect_gte(min(points[, j]), min(p$x[, j]))
    expect_lte(max(points[, j]), max(p$x[, j]))
  }
  spread <- function(z) sum(apply(ref_k(p$kernel, p$x, z), 1, max))
  expect_gt(spread(points), spread(p$x[1:10, ]))
  expect_equal(as.vector(draw(1)), colMeans(p$x))
  # Ask for as many centres as distinct rows, and more.
  expect_setequal(rows_of(draw(60), p$x), 1:60)
  few <- p$x[rep(1:4, 15), ]
  expect_lte(nrow(draw(10, few)), 10)
  expect_false(anyNA(draw(10, few)))
})

test_that("column names are kept and x stays as it is", {
  p <- problem(n = 20)
  colnames(p$x) <- c("a", "b")
  copy <- p$x + 0
  for (method in c("greedy", "random", "kmeans")) {
    points <- inducing_points(p$x, 5, package_kernel(p$kernel), method)
    expect_identical(colnames(points), c("a", "b"))
  }
  expect_identical(p$x, copy)
})

test_that("bad arguments are refused by name", {
  p <- problem(n = 10)
  k <- package_kernel(p$kernel)
  expect_input_error(inducing_points(p$x, 0, k, "greedy"), "`m`")
  expect_input_error(inducing_points(p$x, 11, k, "greedy"), "`m`")
  expect_input_error(inducing_points(p$x, 2.5, k, "greedy"), "`m`")
  expect_input_error(inducing_points(p$x, NA, k, "greedy"), "`m`")
  expect_input_error(inducing_points(replace(p$x, 2, NaN), 3, k, "greedy"), "`x`")
  expect_input_error(inducing_points(p$x, 3, k, "best"), "`method`")
  expect_input_error(inducing_points(p$x, 3, "se", "greedy"), "`kernel`")
  expect_input_error(inducing_points(p$x, 3, kernel_se(variance = 1), "greedy"), "lengthscale")
})

# Returns tr(Omega E) by dense matrices, where E is the residual of K given rows `taken`.
left_of <- function(K, omega, taken) {
  E <- if (length(taken)) K - K[, taken, drop = FALSE] %*% solve(K[taken, taken], K[taken, , drop = FALSE]) else K
  sum(omega * E)
}

test_that("points greedy in the divergence each take the most from tr((k^ + r r') E)", {
  for (p in problems()) {
    w <- ref_weights(p$weights, p$x)
    n <- nrow(p$x)
    chosen <- rows_of(inducing_points(p$x, 5, package_kernel(p$kernel), "divergence", y = p$y, noise = p$noise,
                                      weights = p$weights), p$x)
    # With so few rows, the choice is guided by the exact posterior of all rows.
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    r <- p$y - exact$mean(p$x)
    omega <- outer(w, w) * (exact$cov(p$x, p$x) + outer(r, r))
    K <- ref_k(p$kernel, p$x)
    for (j in seq_along(chosen)) {
      before <- chosen[seq_len(j - 1L)]
      others <- setdiff(seq_len(n), before)
      values <- vapply(others, function(i) left_of(K, omega, c(before, i)), 0)
      mine <- values[match(chosen[j], others)]
      expect_lte(mine, min(values) + 1e-9 * left_of(K, omega, integer()), label = label_of(p))
    }
  }
})

test_that("points greedy in the divergence are different rows, no more than determine k(X, X)", {
  p <- problem(n = 30)
  k <- package_kernel(p$kernel)
  at <- function(x, m, y = p$y) inducing_points(x, m, k, "divergence", y = y, noise = 0.1)
  expect_false(anyDuplicated(rows_of(at(p$x, 30), p$x)) > 0)
  expect_identical(nrow(at(p$x, 30)), 30L)
  twice <- p$x[rep(1:9, 3), ]
  expect_setequal(rows_of(at(twice, 20, p$y[1:27]), twice), 1:9)
  expect_identical(nrow(at(matrix(2, 10, 2), 5, p$y[1:10])), 1L)
  expect_input_error(inducing_points(p$x, 5, k, "divergence", noise = 0.1), "y")
  expect_input_error(inducing_points(p$x, 5, k, "divergence", y = p$y), "noise")
  # If differences of the divergence are rounding, the prior variance decides, so points are little worse than greedy
  # ones.
  x <- matrix(seq(0, 1, length.out = 200))
  smooth <- kernel_se(0.3, 1)
  t_of <- function(z) {
    L <- t(chol(kernel_matrix(smooth, z) + 1e-13 * diag(nrow(z))))
    200 - sum(forwardsolve(L, kernel_matrix(smooth, z, x))^2)
  }
  z <- inducing_points(x, 12, smooth, "divergence", y = sin(9 * x[, 1]), noise = 0.01)
  expect_lt(t_of(z), 100 * t_of(inducing_points(x, 12, smooth, "greedy")) + 1e-9)
})

test_that("a fit with a family as `inducing` gives its points, in the order of the inputs", {
  fit <- function(formula, ...) pfdtc(formula, mtcars, family = poisson(), hyper = "fixed", center = 1, ...)
  counts <- fit(carb ~ wt + hp, m = 6, kernel = kernel_se(c(1, 80), 1))
  again <- fit(carb ~ hp + wt, inducing = counts, kernel = kernel_se(c(80, 1), 1))
  expect_equal(predict(again, mtcars, se.fit = TRUE), predict(counts, mtcars, se.fit = TRUE), tolerance = 1e-8)
  plain <- gp_dtc(mpg ~ wt + hp, mtcars, inducing = counts, kernel = kernel_se(c(1, 80), 30), noise = 4,
                  hyper = "fixed")
  expect_identical(plain$inducing, counts$inducing)
})
