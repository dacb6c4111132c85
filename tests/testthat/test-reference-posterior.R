# Tests reference(), the larger posterior that certificates use, and its extension by test points.

reference_problem <- function(n = 80, m = 6, ...) {
  p <- problem("matern52", n = n, m = m, ...)
  list(p = p, fit = gp_dtc(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed",
                           inducing = p$z, weights = p$weights))
}

test_that("a reference is a gp_dtc fit on greedy rows that any fit of the model can use", {
  made <- reference_problem()
  ref <- with_seed(1, reference(made$fit))
  expect_s3_class(ref, c("gp_dtc", "gp_fit"), exact = TRUE)
  expect_identical(ref$m, 24L)
  rows <- function(x) do.call(paste, as.data.frame(unname(x)))
  expect_true(all(rows(ref$inducing) %in% rows(made$p$x)))
  expect_identical(reference(made$fit, 10)$m, 10L)
  expect_identical(reference(made$fit, 80)$m, 80L)
  expect_input_error(reference(made$fit, 81), "m2")
  expect_input_error(reference(made$fit, 0), "m2")
  expect_null(ref$data)
  # It is the posterior of gp_dtc() on its points, up to the jitter.
  same <- gp_dtc(made$p$x, made$p$y, kernel = made$fit$kernel, noise = made$fit$noise, hyper = "fixed",
                 inducing = ref$inducing)
  expect_equal(predict(ref, made$p$new, se.fit = TRUE), predict(same, made$p$new, se.fit = TRUE), tolerance = 1e-8)
  by_given <- with_seed(2, certify(made$fit, made$p$new, reference = same))
  ref$correction <- NULL
  by_made <- with_seed(2, certify(made$fit, made$p$new, reference = ref))
  expect_equal(by_given$mean_error, by_made$mean_error, tolerance = 0.2)      # other groups for the norms
})

test_that("references of other models, of other kinds and without data are refused", {
  made <- reference_problem()
  ref <- reference(made$fit)
  other <- gp_dtc(made$p$x, made$p$y, kernel = made$fit$kernel, noise = 2 * made$fit$noise, hyper = "fixed", m = 5)
  expect_input_error(certify(other, made$p$new, reference = ref), "reference")
  vfe <- gp_vfe(made$p$x, made$p$y, kernel = made$fit$kernel, noise = made$fit$noise, hyper = "fixed", m = 5,
                control = pfdtc_control(maxit = 1))
  expect_input_error(certify(made$fit, made$p$new, reference = vfe), "reference")
  bare <- made$fit
  bare$data <- NULL
  expect_input_error(reference(bare), "keep_data")
})

test_that("a reference has the residuals of its norms, and nothing is computed for a correction without time", {
  made <- reference_problem(n = 150)
  ref <- with_seed(1, reference(made$fit, 30))
  fresh <- function(...) native_posterior(ref$inducing, made$fit$data, model_of(ref), ref$jitter, ...)
  expect_null(fresh(rss = FALSE)$rss)
  expect_equal(ref$factors$rss, fresh()$rss, tolerance = 1e-12)              # two orders of one sum of 150 squares
  late <- list(passes = 10L, left = function() 0)
  expect_null(exact_mean(ref, made$fit$data, stop("kriging for the goal"), late))
  expect_null(exact_mean(ref, made$fit$data, NULL, list(passes = 10L, left = function() Inf)))
})

test_that("with merged rows a reference has at most as many points as distinct rows", {
  p <- problem(n = 20, m = 4)
  rows <- rep(1:20, 3)
  fit <- gp_dtc(p$x[rows, ], p$y[rows], kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", m = 10)
  expect_identical(reference(fit)$m, 20L)
  expect_identical(reference(fit, 60)$m, 20L)
  expect_input_error(reference(fit, 61), "m2")
})

test_that("the intervals shrink with m2, down to the exact posterior", {
  made <- reference_problem(weighted = TRUE)
  exact <- gp_exact(made$p$x, made$p$y, kernel = made$fit$kernel, noise = made$fit$noise, hyper = "fixed",
                    weights = made$p$weights)
  at <- predict(exact, made$p$new[1:5, ], se.fit = TRUE)
  width <- vapply(c(5, 10, 20, 40, 80), function(m2) {
    c <- with_options(list(pfdtc.kriging_rows = 0L), # kriging would be exact for so few rows
                      with_seed(1, certify(made$fit, made$p$new[1:5, ], reference = reference(made$fit, m2),
                                           test_points = 0)))
    expect_false(any(violated(c, list(mean = at$fit, sd = at$se.fit))))
    stats::median(c$mean_upper - c$mean_lower)
  }, 0)
  expect_true(all(diff(width) < 0))
  expect_lt(width[5], 1e-4 * width[1])
})

test_that("the residual variance at test points is 0, and the intervals are those of the same GP", {
  made <- reference_problem(n = 200, d = 3, lengthscale = rep(0.7, 3))
  new <- rbind(made$p$new, spread_points(30, 3))
  ref <- with_seed(1, reference(made$fit, 30))
  ref$correction <- NULL                                                     # so that the mean is not corrected
  pivots <- function(ref, x) {
    p <- predict(made$fit, x, se.fit = TRUE)
    r <- certify_posterior(ref, values_at(ref$kernel, x))
    test_pivots(ref, r$unexplained, x, list(mean = p$fit - made$fit$center, sd = p$se.fit),
                narrow(unknown_intervals(nrow(x)), r), 10)
  }
  rows <- pivots(ref, new)
  expect_length(rows, 10)
  expect_identical(anyDuplicated(rows), 0L)
  points <- rbind(ref$inducing, new[rows, ])
  longer <- with_seed(2, dtc_on_points(made$fit, made$fit$data, points, NULL, fast = FALSE, inner = ref))
  expect_identical(longer$m, 40L)
  left <- native_predict(longer$factors, longer$inducing, model_of(longer), new[rows, ])$unexplained
  expect_lt(max(left), 1e-10 * ref$kernel$variance / ref$scale^2)
  expect_lte(longer$norms$w_E, ref$norms$w_E)                                 # more points have a smaller bound
  expect_lte(longer$norms$t, ref$norms$t)
  exact <- gp_exact(made$p$x, made$p$y, kernel = made$fit$kernel, noise = made$fit$noise, hyper = "fixed")
  at <- predict(exact, new, se.fit = TRUE)
  by <- function(points) {
    with_options(list(pfdtc.kriging_rows = 0L),
                 with_seed(3, certify(made$fit, new, reference = ref, test_points = points)))
  }
  without <- by(0)
  with <- by(10)
  expect_false(any(violated(without, list(mean = at$fit, sd = at$se.fit))))
  expect_false(any(violated(with, list(mean = at$fit, sd = at$se.fit))))
  expect_false(any(is_wider(with, without)))
  expect_lt(mean(with$mean_error[rows]), mean(without$mean_error[rows]))
  expect_lt(mean(with$sd_upper[rows]), mean(without$sd_upper[rows]))
  expect_identical(attr(without, "m2"), 30L)
  expect_identical(attr(with, "m2"), 40L)
  # Points are added only at rows to predict where the reference is uncertain.
  all_rows <- reference(made$fit, 200)
  expect_length(pivots(all_rows, made$p$x), 0)
})

test_that("equal points are left out, and a fit's own posterior is used if its jitter exceeds rounding", {
  p <- problem(n = 40, m = 6)
  twice <- p$z[c(1:6, 1:6), ]
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  expect_identical(nrow(distinct_points(twice, kernel)), 6L)
  fit <- function(jitter) {
    gp_dtc(p$x, p$y, kernel = kernel, noise = p$noise, hyper = "fixed", inducing = p$z,
           control = pfdtc_control(jitter = jitter))
  }
  serves <- function(fit) identical(own_posterior(fit)$factors, fit$factors)
  expect_true(serves(fit(NULL)))
  expect_false(serves(fit(0)))
  expect_false(serves(fit(1e-3)))
  fast <- lapply(list(NULL, 0, 1e-3), function(j) with_seed(1, certify(fit(j), p$new, effort = "fast")))
  expect_equal(fast[[2]]$mean_lower, fast[[1]]$mean_lower, tolerance = 1e-5)
  expect_equal(fast[[3]]$mean_upper, fast[[1]]$mean_upper, tolerance = 1e-5)
})
