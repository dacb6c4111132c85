# Finds neighbours by brute force in the coordinates of native_neighbours(): differences divided by the lengthscales.
# Rows at equal distances are in the order of their numbers.
brute_neighbours <- function(x, s, lengthscale, query = NULL, rows = NULL, rank = NULL, inputs = seq_len(ncol(x))) {
  u <- function(a) sweep(sweep(a[, inputs, drop = FALSE], 2, x[1, inputs]), 2, 1 / lengthscale, `*`)
  ux <- u(x)
  uq <- if (is.null(rows)) u(query) else ux[rows, , drop = FALSE]
  vapply(seq_len(nrow(uq)), function(i) {
    r2 <- numeric(nrow(x))
    for (j in seq_along(inputs)) r2 <- r2 + (uq[i, j] - ux[, j])^2
    allowed <- rep(TRUE, nrow(x))
    if (!is.null(rows)) allowed[rows[i]] <- FALSE
    if (!is.null(rank)) allowed <- allowed & rank < rank[rows[i]]
    c(order(ifelse(allowed, r2, Inf))[seq_len(min(s, sum(allowed)))], integer(max(0, s - sum(allowed))))[seq_len(s)]
  }, integer(s))
}

neighbour_kernel <- function(lengthscale, x, inputs = NULL) {
  complete_kernel(kernel_se(lengthscale, 1, inputs = inputs), x)
}

expect_neighbours <- function(x, s, lengthscale, info, n_query = 30) {
  kernel <- neighbour_kernel(lengthscale, x)
  lengthscale <- rep_len(lengthscale, ncol(x))
  n <- nrow(x)
  query <- rbind(x[sample.int(n, n_query, TRUE), , drop = FALSE] + rnorm(n_query * ncol(x), sd = 0.01),
                 x[sample.int(n, 3, TRUE), , drop = FALSE], x[1, ] + 1e3)
  rows <- sample.int(n, min(n, n_query))
  rank <- sample.int(n, replace = n %% 2 == 0)          # rows of equal rank are no neighbours of each other
  shape <- function(m, k) matrix(m, s, k)
  # Few queries keep the order of rows, many make a tree of them.
  expect_identical(native_neighbours(kernel, x, s, query[1:3, , drop = FALSE]),
                   shape(brute_neighbours(x, s, lengthscale, query[1:3, , drop = FALSE]), 3), info = info)
  expect_identical(native_neighbours(kernel, x, s, query),
                   shape(brute_neighbours(x, s, lengthscale, query), nrow(query)), info = info)
  expect_identical(native_neighbours(kernel, x, s, rows = rows),
                   shape(brute_neighbours(x, s, lengthscale, rows = rows), length(rows)), info = info)
  expect_identical(native_neighbours(kernel, x, s, rows = rows, rank = rank),
                   shape(brute_neighbours(x, s, lengthscale, rows = rows, rank = rank), length(rows)), info = info)
}

test_that("neighbours agree with brute force for 1 to 20 inputs, clusters, duplicates, ties and rows far from 0", {
  only_nightly()
  with_seed(1, {
    for (d in quick(c(1, 2, 3, 8, 20))) {
      for (n in c(1, 63, 65, 600, 2300)) {                # a leaf, leaves of a twig, twigs
        expect_neighbours(matrix(rnorm(n * d), n, d), 7, exp(rnorm(d)), sprintf("d = %d, n = %d", d, n))
      }
    }
    for (n in c(1500, 5000)) { # one and three levels above the twigs of the tree
      expect_neighbours(matrix(rnorm(3 * n), n), 7, c(1, 0.5, 2), sprintf("n = %d", n))
    }
    clusters <- matrix(rnorm(1500, sample(c(-50, 0, 3), 500, TRUE), 0.01), 500, 3)
    expect_neighbours(clusters, 20, c(1, 1, 100), "clusters")
    # Multiples of 1/4 have distances without rounding, so that equal distances are equal.
    grid <- as.matrix(expand.grid(1:12, 1:12, 1:4)) / 4
    dimnames(grid) <- NULL
    expect_neighbours(grid, 30, 0.5, "grid")
    expect_neighbours(grid[rep(1:40, 20), ], 30, 0.5, "rows twenty times")
    expect_neighbours(matrix(3, 100, 2), 12, 1, "one point")
    expect_neighbours(cbind(rnorm(200), 5), 12, 1, "a constant column")
    expect_neighbours(matrix(round(rnorm(600), 2), 300) + 1e8, 12, 0.3, "around 1e8")
    expect_neighbours(matrix(1e9 * sample(0:2, 800, TRUE) + rnorm(800) / 1e3, 400), 9, 1, "tight clusters far apart")
    # Within a cluster, distances are as small as single precision allows.
    tight <- matrix(runif(160), 80)[rep(1:80, 5), ] + rnorm(800) / 1e8
    expect_neighbours(tight, 3, 1, "closer to each other than single precision resolves")
    expect_neighbours(matrix(rnorm(80), 40), 60, 1, "more than there are")
    expect_neighbours(cbind(rexp(400)^9, rexp(400)^9), 9, 1, "heavy tails")
  })
})

test_that("neighbours agree with brute force for factors whose levels share a lengthscale", {
  with_seed(4, {
    for (levels in c(2, 7, 90)) for (n in quick(c(200, 600, 2300))) {
      g <- diag(levels)[c(seq_len(levels), sample.int(levels, n - levels, TRUE)), ]
      h <- rbind(diag(3), 0)[c(1:4, sample.int(4, n - 4, TRUE)), ] # some rows have no 1: no factor
      x <- cbind(rnorm(n), g, h, rep(0:1, length.out = n))
      lengthscale <- rep(c(1, 0.4, 2, 0.4), c(1, levels, 3, 1)) # the last column is no level of a factor
      kernel <- neighbour_kernel(lengthscale, x)
      query <- x[sample.int(n, 40), ]
      query[, 1] <- rnorm(40)
      query[1:3, 1 + seq_len(levels)] <- 0                     # a level that no row has
      info <- sprintf("%d levels, %d rows", levels, n)
      expect_identical(native_neighbours(kernel, x, 12, query), brute_neighbours(x, 12, lengthscale, query),
                       info = info)
      rows <- sample.int(n, 40)
      rank <- sample.int(n)
      expect_identical(native_neighbours(kernel, x, 12, rows = rows, rank = rank),
                       brute_neighbours(x, 12, lengthscale, rows = rows, rank = rank), info = info)
    }
  })
})

test_that("columns that the kernel does not read do not count; lengthscales at the ends of the double range work", {
  with_seed(2, {
    x <- cbind(rnorm(300), 1e6 * rnorm(300), rnorm(300))
    kernel <- neighbour_kernel(c(2, 0.5), x, inputs = c(3, 1))
    expect_identical(native_neighbours(kernel, x, 9, rows = 1:300),
                     brute_neighbours(x, 9, c(2, 0.5), rows = 1:300, inputs = c(3, 1)))
    for (lengthscale in c(1e-310, 1e-300, 1e300)) {
      got <- native_neighbours(neighbour_kernel(rep(lengthscale, 3), x), x, 5, rows = 1:300)
      expect_true(all(got >= 1 & got <= 300))
      expect_false(any(got == rep(1:300, each = 5)))
    }
  })
})

test_that("threads and blocks change nothing", {
  with_seed(3, {
    x <- matrix(round(rnorm(3000), 1), 1000)
    kernel <- neighbour_kernel(1, x)
    rank <- sample.int(1000)
    plain <- native_neighbours(kernel, x, 8, rows = 1:1000, rank = rank, control = pfdtc_control(threads = 1))
    for (block in c(1, 17, 300)) {
      control <- pfdtc_control(threads = 2, block = block)
      expect_identical(native_neighbours(kernel, x, 8, rows = 1:1000, rank = rank, control = control), plain)
    }
  })
})

test_that("neighbours may be none, because none are requested or available", {
  x <- matrix(1:6 / 2, 3)
  kernel <- neighbour_kernel(1, x)
  expect_identical(native_neighbours(kernel, x, 0, x), matrix(0L, 0, 3))
  expect_identical(native_neighbours(kernel, x, 2, x[0, , drop = FALSE]), matrix(0L, 2, 0))
  expect_identical(native_neighbours(kernel, x, 2, rows = 1:3, rank = 1:3), cbind(c(0L, 0L), c(1L, 0L), c(2L, 1L)))
})

test_that("rows far from all data, with an empty ball around them that has room for 10 rows, have more neighbours", {
  x <- with_seed(1, matrix(stats::runif(800), 400))
  x <- x[(x[, 1] - 0.5)^2 + (x[, 2] - 0.4)^2 > 0.2^2, ]
  query <- with_seed(2, rbind(matrix(stats::runif(400), 200), matrix(stats::rnorm(20, 0.5, 2), 10), x[1:20, ]))
  got <- native_neighbours(neighbour_kernel(1, x), x, c(12L, 40L), query)
  all <- brute_neighbours(x, 40, c(1, 1), query)
  area <- function(rank) pi * colSums((t(query) - t(x[all[rank, ], ]))^2)
  far <- 11 / (area(12) - area(1)) * area(1) >= 10
  expect_gt(sum(far), 10)
  expect_lt(sum(far), 60)
  all[13:40, !far] <- 0L
  expect_identical(got, all)
  # Rows of the data are not far from them, nor are queries among equal rows.
  expect_true(all(got[13, 211:230] == 0L))
  expect_true(all(native_neighbours(neighbour_kernel(1, x), x[rep(1, 60), ], c(12L, 40L), x[1:3, ])[13, 1] == 0L))
})
