# Compares every auxiliary distribution (nu) with the same process computed by dense matrices.

expect_process <- function(nu, reference, new, tolerance, info) {
  got <- predict(nu, new)
  expect_named(got, c("fit", "se.fit"))
  expect_close(as.vector(got$fit), reference$mean(new), tolerance, info)
  # Compare variances, because the root of a variance near 0 has a much larger rounding error.
  expect_close(as.vector(got$se.fit)^2, ref_variance(reference, new), tolerance, info)
}

test_that("mean and variance are the reference's for every kernel and kind of distribution", {
  for (p in problems()) {
    pairs <- nu_pairs(p)
    for (kind in names(pairs)) {
      expect_process(pairs[[kind]]$nu, pairs[[kind]]$reference, rbind(p$new, p$x, p$z), 1e-9,
                     paste(kind, label_of(p)))
    }
  }
})

test_that("nasty problems give the reference's processes", {
  for (name in names(nasty_problems())) {
    p <- nasty_problems()[[name]]
    pairs <- nu_pairs(p)
    for (kind in names(pairs)) {
      got <- predict(pairs[[kind]]$nu, p$new)
      ref <- pairs[[kind]]$reference
      expect_close(as.vector(got$fit), ref$mean(p$new), 1e-9, paste(kind, name))
      # A variance is the prior variance minus a term, so its rounding error is relative to the prior variance.
      error <- as.vector(got$se.fit)^2 - ref_variance(ref, p$new)
      expect_lt(max(abs(error)), 1e-11 * p$kernel$variance)
      expect_true(all(got$se.fit >= 0))
    }
  }
})

test_that("with all rows the distribution is the exact posterior, for SoR its mean", {
  for (p in problems()) {
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    rows <- seq_along(p$y)
    expect_process(package_nu(p, aux_subset(rows = rows)), exact, p$new, 1e-10, label_of(p))
    sor <- predict(package_nu(p, aux_sor(rows = rows)), rbind(p$new, p$x))
    expect_close(as.vector(sor$fit), exact$mean(rbind(p$new, p$x)), 1e-9)
    expect_close(tail(as.vector(sor$se.fit)^2, length(rows)), ref_variance(exact, p$x), 1e-9)
    greedy <- predict(package_nu(p, aux_reference(m2 = length(rows))), rbind(p$new, p$x))
    expect_equal(greedy, sor, tolerance = 1e-8)
  }
})

test_that("far from the data, SoR's distribution is zero and the subset's is the prior", {
  p <- problem()
  far <- matrix(1e4, 1, 2)
  expect_equal(lapply(predict(package_nu(p, aux_sor(rows = 1:5)), far), as.vector),
               list(fit = 0, se.fit = 0))
  expect_equal(lapply(predict(package_nu(p, aux_subset(rows = 1:5)), far), as.vector),
               list(fit = 0, se.fit = sqrt(p$kernel$variance)))
})

test_that("the order of rows, a row given twice and blocks change nothing beyond rounding", {
  for (p in quick(lapply(profiles, problem, weighted = TRUE))) {
    for (aux in list(aux_sor, aux_subset)) {
      plain <- predict(package_nu(p, aux(rows = p$rows)), p$new)
      moved <- predict(package_nu(p, aux(rows = rev(p$rows))), p$new)
      expect_equal(moved, plain, tolerance = 1e-11)
      for (threads in 1:2) {
        small <- list(pfdtc.block = 3, pfdtc.memory = 0, pfdtc.threads = threads)
        blocks <- with_options(small, predict(package_nu(p, aux(rows = p$rows)), p$new))
        expect_equal(blocks, plain, tolerance = 1e-11)
      }
    }
    # A second row with the same input adds nothing to SoR's span.
    doubled <- utils::modifyList(p, list(
      x = rbind(p$x, p$x), y = c(p$y, p$y), weights = c(p$weights, p$weights)
    ))
    once <- package_nu(doubled, aux_sor(rows = p$rows))
    twice <- package_nu(doubled, aux_sor(rows = c(p$rows, p$rows + nrow(p$x))))
    expect_equal(predict(twice, p$new), predict(once, p$new), tolerance = 1e-10)
    expect_equal(package_pf(doubled, twice), package_pf(doubled, once), tolerance = 1e-10)
  }
})

test_that("a weight of 2 is a row written twice", {
  p <- problem("matern32")
  n <- nrow(p$x)
  two <- utils::modifyList(p, list(weights = rep(2, n)))
  doubled <- utils::modifyList(p, list(x = rbind(p$x, p$x), y = c(p$y, p$y)))
  same <- function(a, b) expect_equal(predict(a, p$new), predict(b, p$new), tolerance = 1e-10)
  same(package_nu(two, aux_sor(rows = p$rows)), package_nu(doubled, aux_sor(rows = p$rows)))
  same(package_nu(two, aux_subset(rows = p$rows)),
       package_nu(doubled, aux_subset(rows = c(p$rows, p$rows + n))))
  same(package_nu(two, aux_reference(m2 = 6)), package_nu(doubled, aux_reference(m2 = 6)))
})

test_that("rows are drawn from R's random numbers, as many as the help says", {
  p <- problem("matern12", n = 95, d = 3)
  size <- function(nu) nrow(nu$U)
  draw <- function(aux, seed) with_seed(seed, package_nu(p, aux))
  for (aux in list(aux_sor(), aux_subset(), aux_sor(size = 10), aux_subset(size = 10))) {
    a <- draw(aux, 1)
    expect_identical(predict(draw(aux, 1), p$new), predict(a, p$new))
    expect_false(isTRUE(all.equal(predict(draw(aux, 2), p$new), predict(a, p$new))))
    expect_equal(size(a), 10)                                  # a tenth of 95 rows, rounded up
  }
  expect_equal(size(draw(aux_sor(size = 7), 1)), 7)
  expect_equal(size(draw(aux_sor(size = 95), 1)), 95)
  rows <- with_seed(1, {
    package_nu(p, aux_sor(rows = 3:9))
    runif(1)
  })
  expect_identical(rows, with_seed(1, runif(1)))                 # given rows need no random numbers
})

test_that("aux_reference() takes greedy points of the data and none twice", {
  p <- problem("matern32", n = 40)
  nu <- package_nu(p, aux_reference(m2 = 12))
  expect_identical(dim(nu$U), c(12L, 2L))
  rows <- match(data.frame(t(nu$U)), data.frame(t(p$x)))
  expect_false(anyNA(rows))
  expect_identical(anyDuplicated(rows), 0L)
  expect_setequal(rows, ref_pivots(p$x, 12, p$kernel, rows[1])$pivots)
  full <- package_nu(p, aux_reference(m2 = 40))
  expect_equal(nrow(full$U), 40)
})

test_that("sampled paths keep the mean and estimate the objective without bias", {
  skip_on_cran()
  p <- problem("matern32", n = 20, d = 1, lengthscale = 1)
  full <- package_nu(p, aux_reference(m2 = 8))
  objective <- package_pf(p, full)
  draws <- if (nzchar(Sys.getenv("PFDTC_TEST_QUICK"))) 20 else length(some_of(1:400, 200))
  sampled <- with_seed(1, lapply(seq_len(draws), function(i) {
    package_nu(p, aux_reference(m2 = 8, samples = 3))
  }))
  expect_equal(predict(sampled[[1]], p$new)$fit, predict(full, p$new)$fit, tolerance = 1e-12)
  values <- vapply(sampled, function(nu) package_pf(p, nu)$value, numeric(1))
  expect_gt(sd(values), 0)
  expect_lt(abs(mean(values) - objective$value), 4 * sd(values) / sqrt(draws))
  slopes <- vapply(sampled, function(nu) as.vector(package_pf(p, nu)$gradient), numeric(4))
  off <- (rowMeans(slopes) - as.vector(objective$gradient)) / (apply(slopes, 1, sd) / sqrt(draws))
  expect_lt(max(abs(off)), 4)
  # The gradient belongs to the objective of one draw, which the seed determines.
  nu <- sampled[[1]]
  expect_gradient(function(z) package_pf(p, nu, z)$value, p$z, package_pf(p, nu)$gradient)
  again <- with_seed(1, package_nu(p, aux_reference(m2 = 8, samples = 3)))
  expect_identical(package_pf(p, again), package_pf(p, nu))
})

test_that("many sampled paths are the full distribution", {
  p <- problem("matern52", n = 20, d = 1, lengthscale = 1)
  full <- package_pf(p, package_nu(p, aux_reference(m2 = 8)))$value
  nu <- with_seed(2, package_nu(p, aux_reference(m2 = 8, samples = 20000)))
  expect_close(package_pf(p, nu)$value, full, 0.05) # the relative Monte Carlo error is about 1 / sqrt(20000) = 0.007
})

test_that("aux_refresh() starts as the distribution in its argument `start`", {
  p <- problem()
  nu <- package_nu(p, aux_refresh(every = 5, start = aux_sor(rows = p$rows)))
  plain <- package_nu(p, aux_sor(rows = p$rows))
  expect_equal(predict(nu, p$new), predict(plain, p$new))
  expect_equal(package_pf(p, nu), package_pf(p, plain))
})

test_that("data frames, vectors and names are understood", {
  p <- problem(d = 1)
  k <- package_kernel(p$kernel)
  nu <- package_nu(p, aux_sor(rows = p$rows))
  by_vector <- auxiliary(p$x[, 1], p$y, k, p$noise, aux_sor(rows = p$rows))
  expect_equal(predict(by_vector, p$new[, 1]), predict(nu, p$new))
})

test_that("no argument is modified", {
  p <- problem("matern12", weighted = TRUE)
  copy <- unserialize(serialize(p, NULL))
  for (aux in list(aux_sor(rows = 2:6), aux_subset(rows = 2:6), aux_reference(m2 = 6))) {
    predict(package_nu(p, aux), p$new)
  }
  expect_identical(p, copy)
})

test_that("bad arguments are refused by name", {
  p <- problem()
  k <- package_kernel(p$kernel)
  make <- function(x = p$x, y = p$y, kernel = k, noise = p$noise, aux = aux_sor(rows = 1:3), ...) {
    auxiliary(x, y, kernel, noise, aux, ...)
  }
  expect_input_error(make(x = replace(p$x, 3, NA)), "`x`")
  expect_input_error(make(x = p$x[0, ], y = numeric()), "`x`")
  expect_input_error(make(y = p$y[-1]), "`y`")
  expect_input_error(make(y = replace(p$y, 3, Inf)), "`y`")
  expect_input_error(make(kernel = kernel_se(lengthscale = 1)), "variance")
  expect_input_error(make(kernel = kernel_se(lengthscale = 1:3, variance = 1)), "lengthscale")
  expect_input_error(make(kernel = list()), "`kernel`")
  expect_input_error(make(noise = 0), "`noise`")
  expect_input_error(make(noise = -1), "`noise`")
  expect_input_error(make(aux = "sor"), "`aux`")
  expect_input_error(make(weights = rep(1, 2)), "`weights`")
  expect_input_error(make(weights = rep(-1, 13)), "`weights`")
  for (aux in list(aux_sor, aux_subset)) {
    expect_input_error(make(aux = aux(rows = c(1, 14))), "rows")
    expect_input_error(make(aux = aux(size = 14)), "size")
    expect_input_error(make(aux = aux(rows = 0)), "rows")
    expect_input_error(make(aux = aux(rows = 1.5)), "rows")
    expect_input_error(make(aux = aux(size = 0)), "size")
    expect_input_error(make(aux = aux(size = NA)), "size")
  }
  expect_input_error(make(aux = aux_reference(m2 = 0)), "m2")
  expect_input_error(make(aux = aux_reference(m2 = 4, samples = 0)), "samples")
  expect_input_error(make(aux = aux_refresh(every = 0)), "every")
  expect_input_error(make(aux = aux_refresh(start = "sor")), "start")
  nu <- make()
  expect_input_error(predict(nu, p$new[, 1]), "newdata")
  expect_input_error(predict(nu, replace(p$new, 2, NaN)), "newdata")
})

test_that("white noise has no values at new rows, and print() names it and its variance", {
  p <- problem()
  nu <- package_nu(p, aux_white(0.5))
  expect_input_error(predict(nu, p$new), "object")
  expect_output(print(nu), "white.*0.5")
  expect_output(print(aux_white()), "white")
  for (bad in list(0, -1, NA, Inf, 1:2, "a")) expect_input_error(aux_white(bad), "variance")
})

# Return the distributions of aux_sor() and aux_subset() on given rows by aux_custom().
custom_sor <- function(rows) {
  aux_custom(function(x, y, weights, kernel, noise, m) {
    U <- x[rows, , drop = FALSE]
    w <- if (is.null(weights)) rep(1, length(y)) else weights
    Kux <- kernel_matrix(kernel, U, x)
    S <- solve(kernel_matrix(kernel, U) + Kux %*% (w * t(Kux)) / noise)
    list(U = U, W = t(chol(S)), mean = drop(S %*% Kux %*% (w * y)) / noise)
  }, "SoR by hand")
}

custom_subset <- function(rows) {
  aux_custom(function(x, y, weights, kernel, noise, m) {
    U <- x[rows, , drop = FALSE]
    w <- if (is.null(weights)) rep(1, length(y)) else weights
    S <- solve(kernel_matrix(kernel, U) + diag(noise / w[rows], length(rows)))
    list(U = U, W = t(chol(S)), sign = -1, mean = drop(S %*% y[rows]), p = 1)
  })
}

test_that("a distribution that is given by a function is the built-in one of the same numbers", {
  for (p in problems()) {
    both <- list(list(aux_sor(rows = p$rows), custom_sor(p$rows)), list(aux_subset(rows = p$rows),
                                                                       custom_subset(p$rows)))
    for (one in both) {
      nu <- lapply(one, package_nu, p = p)
      expect_close(unlist(predict(nu[[2L]], p$new)), unlist(predict(nu[[1L]], p$new)), 1e-7, label_of(p))
      value <- lapply(nu, package_pf, p = p, jitter = 1e-8)
      expect_close(value[[2L]]$value, value[[1L]]$value, 1e-7, label_of(p))
      expect_close(value[[2L]]$gradient, value[[1L]]$gradient, 1e-6, label_of(p))
    }
  }
})

test_that("a fit is optimised under a custom distribution, prints its name, and has a divergence from it", {
  data <- smooth_data()
  fits <- lapply(list(aux_sor(rows = 1:10), custom_sor(1:10)), function(aux) fit_fixed(data, aux = aux, maxit = 10))
  expect_close(fits[[2L]]$inducing, fits[[1L]]$inducing, 1e-4)
  expect_close(pf_divergence(fits[[2L]]), pf_divergence(fits[[1L]]), 1e-4)
  expect_output(print(fits[[2L]]), "SoR\\s+by hand")
  file <- tempfile(fileext = ".rds")
  saveRDS(fits[[2L]], file)
  expect_identical(pf_divergence(readRDS(file)), pf_divergence(fits[[2L]]))
  unlink(file)
})

test_that("the error about a function with a wrong result names the right form", {
  p <- problem()
  expect_input_error(package_nu(p, aux_custom(function(...) 1)), "make")
  expect_input_error(aux_custom("sor"), "make")
  expect_input_error(aux_custom(identity, 1), "label")
  bad <- function(...) {
    new <- list(...)
    aux_custom(function(x, y, weights, kernel, noise, m) {
      given <- list(U = x[1:2, , drop = FALSE], W = diag(2), mean = c(1, 2))
      given[names(new)] <- new
      given
    })
  }
  expect_s3_class(package_nu(p, bad()), "pfdtc_auxiliary")
  expect_input_error(package_nu(p, bad(U = matrix(0, 2, 1))), "make")
  expect_input_error(package_nu(p, bad(W = diag(3))), "make")
  expect_input_error(package_nu(p, bad(sign = 2)), "make")
  expect_input_error(package_nu(p, bad(sign = c(1, -1, 1))), "make") # there are two columns
  expect_input_error(package_nu(p, bad(p = 0.5)), "make")
  expect_input_error(package_nu(p, bad(mean = 1)), "mean")
  expect_input_error(package_nu(p, bad(W = diag(NA_real_, 2))), "W")
})

test_that("given rows are counted with rows of weight 0, which are left out", {
  d <- data.frame(x = 1:12 / 12, y = sin(1:12), w = rep(c(0, 1, 2), 4))
  fit <- function(rows) {
    pfdtc(y ~ x, d, weights = w, kernel = kernel_se(0.3, 1), noise = 0.04, hyper = "fixed", m = 4,
          aux = aux_subset(rows = rows))
  }
  some <- fit(c(2, 4, 5, 12))
  expect_equal(sort(some$data$x[some$aux_rows, ]), c(2, 5, 12) / 12)
  expect_error(fit(c(1, 4)), "positive weight", class = "pfdtc_error_input")
  expect_error(fit(13), "from 1 to 12", class = "pfdtc_error_input")
})

test_that("an error in the function of aux_custom() is an input error that names its arguments", {
  fit <- function(make) {
    pfdtc(dist ~ speed, cars, m = 4, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed", aux = aux_custom(make))
  }
  expect_input_error(fit(function(x) 1), "It must be a function of x, y, weights, kernel, noise and m.")
  expect_input_error(fit(function(...) stop("no points")), "`make` stops with the error: no points")
})
