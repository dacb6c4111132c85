# Tests tolerances that would need too many inducing points if there were no neighbours.

# Returns `n` rows of a function that few inducing points explain badly.
rough <- function(n, seed = 5) {
  with_seed(seed, {
    x <- matrix(stats::runif(2 * n), n)
    list(x = x, y = sin(9 * x[, 1]) * cos(7 * x[, 2]) + stats::rnorm(n) / 10)
  })
}
short <- kernel_matern(1 / 2, 0.4, 1)

test_that("few rows that would need too many points have the exact posterior, unless arguments exclude it", {
  d <- rough(200)
  fit <- fit_tol(0.02, d, kernel = short)
  expect_identical(fit$posterior, "exact")
  expect_identical(fit$tol$effort, "exact")
  expect_identical(fit$tol$rows, 200L)
  expect_certified(fit, d)
  expect_match(describe_tolerance(fit), "exact posterior.*2 %")
  expect_identical(tol_fit(0.05)$posterior, "far") # for a smooth kernel points suffice
  for (points in list(list(m = 199), list(inducing = "greedy"), list(keep_data = FALSE))) {
    args <- c(list(0.3, d, kernel = short, control = list(maxit = 0)), points)
    fit <- suppressWarnings(do.call(fit_tol, args), classes = "pfdtc_warning_convergence")
    expect_identical(fit$posterior, "far", info = names(points))
  }
  # An accuracy below rounding errors is refused.
  expect_match(unreached(fit_tol(1e-14, d, kernel = short))$said, "[Rr]ounding")
})

test_that("with more rows, points with neighbours meet tol at as many random rows as the fit says", {
  # Treat more than 400 rows as many, and certify 300 of them.
  d <- rough(600)
  fit <- with_replaced(list(exact_rows = 400L, certified_rows = 300L), fit_tol(0.1, d, kernel = short))
  expect_identical(fit$posterior, "far + near")
  expect_identical(fit$tol$rows, 300L)
  expect_true(fit$tol$met)
  expect_identical(fit$neighbours, fit$tol$tried$neighbours[nrow(fit$tol$tried)])
  # Half of the rows were not checked, and may have the largest errors.
  expect_true(all(actual_error(fit, d, 0.5) <= c(fit$tol$mean, fit$tol$sd)))
  expect_true(all(actual_error(fit, d) <= 3 * c(fit$tol$mean, fit$tol$sd)))
  expect_match(describe_tolerance(fit),
               "200.*[0-9]+.*reference.*300")
  # certify() uses the reference that the fit carries.
  rows <- d$x[1:100, ]
  c <- certify(fit, rows, test_points = 0)
  exact <- gp_exact(d$x, d$y, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
  e <- predict(exact, rows, se.fit = TRUE)
  expect_true(all(c$mean_lower <= e$fit & e$fit <= c$mean_upper))
  expect_true(all(c$sd_lower <= e$se.fit & e$se.fit <= c$sd_upper))
  expect_lte(max(c$mean_upper - c$mean_lower) / 2, fit$sd_y * 0.1 / 4) # error of at most tol / 4
})

test_that("a given number of neighbours is used, also for few rows and points; 0 means none", {
  d <- rough(150)
  fit <- fit_tol(0.3, d, kernel = short, m = 20, neighbours = 25)
  expect_identical(fit$posterior, "far + near")
  expect_identical(c(fit$m, fit$neighbours, fit$tol$rows), c(20L, 25L, 150L))
  expect_certified(fit, d)
  again <- fit_tol(0.3, d, kernel = short, m = 20, neighbours = 25)
  expect_identical(again[c("near", "inducing")], fit[c("near", "inducing")])
  expect_identical(again$tol[c("mean", "sd")], fit$tol[c("mean", "sd")])
  less <- unreached(fit_tol(0.01, d, kernel = short, m = 20, neighbours = 5))
  expect_match(less$said, "`neighbours`")
  expect_true(all(actual_error(less$fit, d) <= c(less$fit$tol$mean, less$fit$tol$sd)))
  many <- list(n = 6000L, keep = TRUE, memory = 2^32)
  expect_identical(alternative_posterior(many, list(hyper = "fixed", neighbours = 0L)), "none")
})

test_that("neighbours grow until tol is met, and an interrupt returns the best so far", {
  d <- rough(300)
  data <- gp_dtc(d$x, d$y, m = 20, kernel = short, noise = 0.02, hyper = "fixed")$data
  plan <- tolerance_plan(data, complete_settings(data, list(
    method = "pfdtc", kernel = short, noise = 0.02, mean = ~ 1, hyper = "fixed", tol = 1e-3, keep_data = TRUE,
    control = pfdtc_control(progress = FALSE))))
  job <- list2env(list(data = data, plan = plan, goal = plan$goal, state = no_state(), candidates = list(), started = 0,
                       learned = list(model = new_model(complete_kernel(short, d$x), 0.02)),
                       left = function() Inf, late = function() FALSE))
  with_seed(1, search_rows(job, data$x[1:20, ], NULL))
  found <- job$candidates
  expect_identical(vapply(found, `[[`, 1L, "neighbours"), c(40L, 80L, 160L)[seq_along(found)])
  expect_gt(length(found), 1)
  expect_false(is.unsorted(rev(vapply(found, `[[`, 1, "sd"))))
  # After an interrupt of the second candidate, the first remains.
  job$candidates <- list()
  job$state <- no_state()
  with_interrupted("construct_near", 2, with_seed(1, search_rows(job, data$x[1:20, ], NULL)))
  expect_identical(vapply(job$candidates, `[[`, 1L, "neighbours"), 40L)
  expect_identical(job$best[c("mean", "sd")], found[[1L]][c("mean", "sd")])
})

test_that("a slow search sends a message for each candidate, unless progress = FALSE", {
  ago <- proc.time()[["elapsed"]] - 60
  if (!interactive()) {
    expect_message(tell_progress(pfdtc_control(), ago, "so far"), class = "pfdtc_message_progress", "so far")
    expect_silent(suppressMessages(tell_progress(pfdtc_control(), ago, "so far")))
    expect_silent(tell_progress(pfdtc_control(), ago + 60, "so far"))
    p <- smooth_data(60)
    old <- tell_progress
    at_once <- list(tell_progress = function(control, since, text) old(control, since, text, after = 0))
    heard <- capture_messages(fit <- with_seed(1, with_replaced(at_once, {
      pfdtc(p$x, p$y, tol = 0.1, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3, hyper = "fixed")
    })))
    tried <- fit$tol$tried
    expect_length(heard, nrow(tried))
    expect_match(heard[1], sprintf("10 %%: %d inducing points .*%s of sd.*%s in the sd", tried$m[1],
                                   show_percent(tried$mean[1]), show_percent(tried$sd[1])))
  }
  expect_silent(tell_progress(pfdtc_control(progress = FALSE), ago, "so far"))
  expect_silent(tell_progress(pfdtc_control(progress = TRUE), ago, "so far"))
})

test_that("if a reference certifies with neighbours, but has too few points for a fit, more points are tried", {
  set.seed(3)
  x <- matrix(runif(600), 300)
  y <- sin(5 * x[, 1]) * cos(4 * x[, 2]) + rnorm(300, sd = 0.1)
  fit <- pfdtc(x, y, tol = 0.1, m = 300, kernel = kernel_matern(3 / 2, c(0.4, 0.4), 0.5), noise = 0.01, hyper = "fixed",
               control = pfdtc_control(maxit = 5))
  expect_true(fit$tol$met)
  expect_gt(fit$tol$m2, 128) # 128 points cannot certify tol
  near <- gp_dtc(x, y, m = 128, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
  exact <- gp_exact(x, y, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
  sd <- function(fit) predict(fit, se.fit = TRUE)$se.fit
  expect_gt(max(abs(sd(exact) / sd(near) - 1)), 0.1)
  expect_lte(max(abs(sd(exact) / sd(fit) - 1)), 0.1)
})

test_that("the quantile is the smallest value that at least so large a share of the rows does not exceed", {
  v <- c(3, 1, 4, 1.5, 9)
  for (q in c(0.01, 0.2, 0.21, 0.5, 0.8, 0.81, 1)) {
    shares <- vapply(sort(v), function(one) mean(v <= one), 0)
    expect_identical(reached_by(v, q), sort(v)[which(shares >= q)[1L]], info = q)
  }
  expect_identical(reached_by(c(1, NA), 1), Inf)
})
