# Tests the choice by held-out rows between neighbours and points alone.

test_that("for many rows of a smooth function, points alone with a smoother kernel are kept and have smaller errors", {
  only_nightly()
  n <- 2500
  smooth <- with_seed(3, {
    x <- matrix(stats::runif(3 * n), n)
    list(x = x, y = sin(6 * x[, 1]) + x[, 2]^2 + stats::rnorm(n))
  })
  fit <- with_few_exact(learn(smooth))
  expect_gt(fit$trial[["gain"]], fit$trial[["se"]])
  expect_identical(fit$neighbours, 0L)
  expect_identical(fit$posterior, "far")
  expect_identical(nrow(fit$inducing), 200L)
  # The score prefers a rougher kernel, whose points leave more residual variance. Without that
  # variance, neighbours would not be compared with points alone.
  chosen <- with(fit$kernels, c(kernel[chosen], kernel[1L]))
  rank <- match(chosen, vapply(by_roughness, profile_label, ""))
  expect_gt(rank[1L], rank[2L])
  expect_identical(fit$kernel$label, profile_label(by_roughness[rank[1L]]))
  expect_lt(fit$unexplained, unexplained_rule[["enough"]])
  new <- with_seed(2, matrix(stats::runif(3000), 1000))
  error <- function(fit) sqrt(mean((predict(fit, new) - sin(6 * new[, 1]) - new[, 2]^2)^2))
  expect_lt(error(fit), 0.9 * error(learn(smooth, neighbours = 40)))
})

test_that("a fit has the posterior that its comparison prefers, and reports it", {
  noisy <- with_seed(1, {
    x <- matrix(stats::runif(5000), 2500)
    list(x = x, y = sin(14 * x[, 1]) * cos(14 * x[, 2]) + stats::rnorm(2500))
  })
  # The residual prior variance is a few hundredths of the noise, between negligible and half of it.
  for (seed in 1:2) {
    fit <- with_few_exact(learn(noisy, kernel = kernel_matern(3 / 2), seed = seed))
    expect_identical(fit$trial[["rows"]], 500)
    expect_identical(fit$posterior, if (fit$trial[["gain"]] > fit$trial[["se"]]) "far" else "far + near")
    expect_output(print(fit), "\\b500\\b")
  }
  # A user who asks for neighbours gets them.
  expect_null(learn(noisy, kernel = kernel_matern(3 / 2), neighbours = 10)$trial)
})

test_that("gains are differences in log density of held-out rows between the two posteriors of the other rows", {
  data <- prior_draw(ref_kernel("matern32", 0.3, 4), 200, noise = 0.04)
  cleaned <- data_from_matrix(data$x, data$y, center = FALSE, scale = FALSE)
  one <- list(learned = list(model = new_model(place_kernel(kernel_matern(3 / 2, 0.3, 4), cleaned$x), 0.04, 0, 1)),
              start = list(z = data$x[seq(5, 200, length.out = 12), , drop = FALSE]))
  s <- list(posterior = list(neighbours = 6L), run = pfdtc_control())
  gains <- with_seed(4, held_gains(cleaned, list(one, one), s))
  held <- with_seed(4, sample.int(200, 40))
  expect_identical(dim(gains), c(40L, 2L))
  expect_identical(gains[, 1], gains[, 2])
  density <- function(...) {
    fit <- with_seed(5, pfdtc(data$x[-held, , drop = FALSE], data$y[-held], kernel = kernel_matern(3 / 2, 0.3, 4),
                              noise = 0.04, hyper = "fixed", inducing = one$start$z, center = FALSE, scale = FALSE,
                              control = list(maxit = 0), ...))
    p <- predict(fit, data$x[held, , drop = FALSE], se.fit = TRUE, type = "response")
    stats::dnorm(data$y[held], p$fit, p$se.fit, log = TRUE)
  }
  # The rows have another order, on which the posterior with neighbours depends a little.
  expect_lt(max(abs(gains[, 1] - (density(neighbours = 0) - density(neighbours = 6)))), 0.1 * max(abs(gains)))
  rows <- with_seed(4, {
    sample.int(200, 40)
    sample(setdiff(seq_len(200), held), 100)
  })
  fit <- gp_exact(data$x[rows, , drop = FALSE], data$y[rows], kernel = kernel_matern(3 / 2, 0.3, 4), noise = 0.04,
                  hyper = "fixed", center = FALSE, scale = FALSE)
  p <- rivals$dense(one, take_rows(cleaned, rows), cleaned$x[held, , drop = FALSE], NULL)
  want <- predict(fit, data$x[held, , drop = FALSE], se.fit = TRUE)
  expect_equal(p$mean, unname(want$fit), tolerance = 1e-8)
  expect_equal(sqrt(p$var), unname(want$se.fit), tolerance = 1e-8)
  # Test the choice and its reason.
  now <- list(data = cleaned, learned = one$learned, start = list(t = 1), look = list(rho = 0.3))
  smooth <- list(learned = one$learned, start = list(t = 0.002))
  now$learned$smoother <- one$learned$model
  smooth$learned <- replace(now$learned, "kernels", list(list(chosen = logical())))
  taken <- with_replaced(list(held_gains = function(...) cbind(c(-1, -2, -1), c(1, 2, 3)),
                              points_stage = function(...) list(t = 0.002)), look_at_held_out(now, s, no_state()))
  expect_identical(taken$alone, smooth)
  expect_equal(taken$look$alone, 0.05)
  expect_equal(taken$look$trial, c(gain = 2, se = 1 / sqrt(3), rows = 3))
})

test_that("the smoothest kernel that scores within two standard errors is tried, too, if it is a single kernel", {
  judged <- function(...) {
    lapply(list(...), function(shift) {
      list(scores = shift + c(-1, 1) / 100, theta = shift, problem = list(natural = function(theta) theta))
    })
  }
  alike <- judged(matern32 = 0, matern52 = 0.001, matern12 = -0.5, se = 1)
  alike$matern52$scores <- alike$matern52$scores + c(-1, 1) / 1000
  expect_identical(smoother_kernel(alike, "matern32"), 0.001)
  expect_null(smoother_kernel(alike, "se"))
  expect_null(smoother_kernel(judged(matern32 = 0, matern52 = 1, se = 1), "matern32"))
  expect_null(smoother_kernel(judged(matern32 = 0, "matern32+matern32" = 0), two_scales))
})

test_that("with too many rows for an exact posterior by default, held-out rows decide whether to use it", {
  skip_on_cran()
  few <- list(exact_rows = 200L, exact_trial = replace(exact_trial, "rows", 500))
  smooth <- with_seed(1, matrix(stats::runif(2400), 400))
  y <- exp(-rowSums((smooth - 0.5)^2)) # noise-free, six inputs
  fit <- with_replaced(few, with_seed(1, pfdtc(smooth, y, kernel = kernel_se(rep(1, 6), 1), noise = 1e-5,
                                               hyper = "fixed", center = FALSE, scale = FALSE)))
  expect_identical(fit$posterior, "exact")
  expect_match(fit$because[["posterior"]], "at 80 held-out rows")
  rough <- with_seed(2, data.frame(x = stats::runif(400)))
  rough$y <- sin(40 * rough$x) + with_seed(3, stats::rnorm(400) / 10)
  near <- with_replaced(few, with_seed(1, pfdtc(y ~ x, rough, kernel = kernel_matern(1 / 2, 0.001, 1), noise = 0.01,
                                                hyper = "fixed")))
  expect_identical(near$posterior, "far + near")
  expect_match(near$because[["posterior"]], "at 80 held-out rows")
  more <- c(few, list(more_points = replace(more_points, c("points", "neighbours"), c(300, 50))))
  more$exact_trial[["rows"]] <- 300
  many <- with_replaced(more, with_seed(1, pfdtc(smooth, y, kernel = kernel_se(rep(1, 6), 1), noise = 1e-5,
                                                 hyper = "fixed", center = FALSE, scale = FALSE)))
  expect_identical(many[c("posterior", "m_asked", "neighbours")],
                   list(posterior = "far + near", m_asked = 300, neighbours = 50L))
  expect_gt(many$m, 200)
})

test_that("with more rows, few inducing points with neighbours are kept if they predict held-out rows as well", {
  skip_on_cran()
  few <- list(exact_rows = 200L, more_points = replace(more_points, c("rows", "many"), c(300, 300)), few_points = 5L,
              unexplained_rule = replace(unexplained_rule, "short", 0.5))
  fit <- function(kernel, x, y) {
    with_replaced(few, with_seed(1, pfdtc(x, y, kernel = kernel, noise = 1e-4, hyper = "fixed", center = FALSE,
                                          scale = FALSE)))
  }
  x <- with_seed(1, matrix(stats::runif(2400), 400))
  smooth <- fit(kernel_se(rep(1, 6), 1), x, exp(-rowSums((x - 0.5)^2)))
  expect_identical(smooth[c("m_asked", "neighbours")], list(m_asked = 300, neighbours = 40L))
  expect_gt(nrow(smooth$inducing), 200)
  # Five points suffice for the long lengthscale, and no number of points for the short one.
  rough <- fit(kernel_se(1, 1) + kernel_matern(1 / 2, 0.001, 0.05), x[, 1L, drop = FALSE],
               x[, 1L] + with_seed(2, stats::rnorm(400, sd = 0.2)))
  expect_identical(nrow(rough$inducing), 5L)
})
