# Compares results of marginaleffects with covariances of predict(), for inducing points and exact posteriors.

test_that("draws of several batches have the joint covariance of all their rows", {
  data <- smooth_data(40)
  exact <- gp_exact(data$x, data$y, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3, hyper = "fixed")
  for (fit in list(exact, fit_fixed(data))) {
    x <- with_seed(2, matrix(runif(14), 7))
    f <- with_seed(3, with_options(list(pfdtc.draws = 40000), {
      draws <- new_draws()
      rbind(joint_draws(fit, x[1:3, ], draws), joint_draws(fit, x[4:7, ], draws))
    }))
    cov <- unname(predict(fit, x, full_cov = TRUE)$cov)
    # For 20000 pairs the sd of an entry is sqrt((c_ii c_jj + c_ij^2) / 20000); allow six.
    error <- sqrt((outer(diag(cov), diag(cov)) + cov^2) / 20000)
    expect_lt(max(abs(tcrossprod(f) / ncol(f) - cov) / error), 6)
    expect_lt(max(abs(rowMeans(f))), 1e-12)     # pairs around the mean
  }
})

test_that("rows of earlier calls get the same draws", {
  data <- smooth_data(40)
  fit <- fit_fixed(data)
  x <- with_seed(2, matrix(runif(14), 7))
  draws <- new_draws()
  f <- joint_draws(fit, x, draws)
  again <- joint_draws(fit, x[c(5, 2, 2), ], draws)
  expect_equal(again, f[c(5, 2, 2), ], tolerance = 1e-5)     # pivots below n eps leave an sd of 1e-7
  expect_identical(dim(joint_draws(fit, x[0, , drop = FALSE], draws)), c(0L, 2000L))
})

test_that("rows with missing inputs have NA with a transform, and other rows their values", {
  fit <- pfdtc(dist ~ speed, cars, transform = "log", kernel = kernel_se(5, 1), noise = 0.1, hyper = "fixed")
  all <- get_predict.gp_fit(fit, data.frame(speed = c(5, NA, 20)))
  expect_equal(all$estimate[-2], get_predict.gp_fit(fit, data.frame(speed = c(5, 20)))$estimate)
  expect_true(is.na(all$estimate[2]) && all(is.na(attr(all, "posterior_draws")[2, ])))
})

test_that("joint draws of too many rows are refused before memory is taken", {
  fit <- fit_cars()
  with_options(list(pfdtc.max_memory = 1e6), {
    expect_input_error(joint_draws(fit, matrix(runif(500)), new_draws()), "pfdtc.max_memory")
  })
})

test_that("classes and times have the predictions of predict(), and draws of these that agree between calls", {
  d <- transform(cars, far = cut(dist, c(-Inf, 20, 50, Inf), c("near", "middle", "far"), ordered_result = TRUE))
  new <- data.frame(speed = c(5, 15, 22), rowid = 4:6)
  fits <- list(pfdtc(far ~ speed, d, family = ordinal(), kernel = kernel_se(6, 4), hyper = "fixed"),
               pfdtc(far ~ speed, d, family = multinomial(), kernel = kernel_se(6, 4), hyper = "fixed", m = 4),
               pfdtc(dist ~ speed, d, family = loglogistic(0.3), kernel = kernel_se(6, 1), hyper = "fixed"))
  for (fit in fits) with_seed(1, with_options(list(pfdtc.draws = 1000), {
    fit <- sanitize_model_specific.gp_fit(fit)
    p <- get_predict.gp_fit(fit, new)
    expect_equal(p$estimate, unname(c(predict(fit, new, type = "response"))))
    expect_equal(get_predict.gp_fit(fit)$estimate, unname(c(predict(fit, type = "response"))))
    draws <- attr(p, "posterior_draws")
    K <- if (is.null(p$group)) 1 else 3
    expect_identical(p$rowid, rep(4:6, K))
    # Draws are pairs around the mean: the mean of 1000 is within five standard errors of independent draws.
    expect_lt(max(abs(rowMeans(draws) - p$estimate) / apply(draws, 1, stats::sd)), 5 / sqrt(1000))
    again <- attr(get_predict.gp_fit(fit, new[c(3, 1), ]), "posterior_draws")
    expect_equal(again[1:2, ], draws[c(3, 1), ], tolerance = 1e-5)
    if (K == 3) {
      expect_identical(p$group, factor(rep(levels(d$far), each = 3), levels(d$far)))
      expect_equal(draws[1:3, ] + draws[4:6, ] + draws[7:9, ], matrix(1, 3, 1000))
    }
  }))
})

test_that("contrasts of classes have the joint covariance of their draws, residual variances of few points included", {
  fit <- pfdtc(Species ~ Petal.Length, iris, family = multinomial(), kernel = kernel_se(0.8, 3), hyper = "fixed", m = 3)
  x <- matrix(c(1.2, 3, 4.6, 5.1))
  f <- with_seed(3, with_options(list(pfdtc.draws = 20000), contrast_draws(fit, x, new_draws())))
  at <- posterior_values(posterior_of(fit), x)
  for (i in 1:4) {
    V <- matrix(at$var[i, ], 2)
    # For 10000 pairs, as above, allow five standard errors.
    error <- sqrt((outer(diag(V), diag(V)) + V^2) / 10000)
    expect_lt(max(abs(stats::cov(t(f[i, , ])) - V) / error), 5)
    expect_equal(rowMeans(f[i, , ]), at$mean[i, ], tolerance = 1e-10)
  }
})

# Some versions use functions of a newer R than they require.
skip_if_no_marginaleffects <- function() {
  skip_if_not_installed("marginaleffects")
  skip_if_not_installed("collapse")
  works <- tryCatch(is.data.frame(marginaleffects::predictions(stats::lm(dist ~ speed, cars))),
                    error = function(e) FALSE)
  skip_if_not(works, "marginaleffects works with lm() on this R")
}

trees_fit <- function() {
  pfdtc(Volume ~ Girth + Height, trees, kernel = kernel_se(c(8, 30), 900), noise = 5, hyper = "fixed")
}

test_that("predictions() are those of predict(), with its intervals", {
  skip_if_no_marginaleffects()
  fit <- trees_fit()
  new <- trees[c(1, 9, 30), ]
  p <- with_seed(1, with_options(list(pfdtc.draws = 20000), marginaleffects::predictions(fit, newdata = new)))
  band <- predict(fit, new, interval = "credible")
  expect_equal(p$estimate, unname(band[, "fit"]), tolerance = 1e-10)
  sd <- predict(fit, new, se.fit = TRUE)$se.fit
  # The sd of a 2.5 % quantile of 20000 draws is 0.019 sd; allow four.
  expect_lt(max(abs(cbind(p$conf.low, p$conf.high) - band[, -1]) / sd), 0.08)
})

test_that("averages of differences have the sd of the joint covariance, without a delta method", {
  skip_if_no_marginaleffects()
  fit <- trees_fit()
  new <- trees[seq(1, 31, 3), ]
  out <- with_seed(1, with_options(list(pfdtc.draws = 40000), {
    marginaleffects::avg_comparisons(fit, variables = list(Girth = c(10, 12)), newdata = new)
  }))
  both <- rbind(transform(new, Girth = 12), transform(new, Girth = 10))
  p <- predict(fit, both, full_cov = TRUE)
  weights <- rep(c(1, -1) / nrow(new), each = nrow(new))
  expect_equal(out$estimate, sum(weights * p$fit), tolerance = 1e-8)
  sd <- sqrt(drop(weights %*% p$cov %*% weights))
  expect_equal((out$conf.high - out$conf.low) / (2 * qnorm(0.975)), sd, tolerance = 0.04)
  draws <- marginaleffects::get_draws(out, shape = "PxD")
  expect_equal(stats::sd(draws), sd, tolerance = 0.02)     # four standard errors of 20000 pairs
})

test_that("slopes() are derivatives, with their own sd", {
  skip_if_no_marginaleffects()
  fit <- trees_fit()
  new <- trees[c(3, 20), ]
  out <- with_seed(1, with_options(list(pfdtc.draws = 20000), {
    marginaleffects::slopes(fit, variables = "Girth", newdata = new)
  }))
  h <- 0.01
  both <- rbind(transform(new, Girth = Girth + h), transform(new, Girth = Girth - h))
  p <- predict(fit, both, full_cov = TRUE)
  D <- cbind(diag(2), -diag(2)) / (2 * h)
  expect_equal(out$estimate, drop(D %*% p$fit), tolerance = 1e-3)     # marginaleffects uses a one-sided step
  half <- (out$conf.high - out$conf.low) / (2 * qnorm(0.975))
  expect_equal(half, sqrt(diag(D %*% p$cov %*% t(D))), tolerance = 0.04)
})

test_that("a fit from a matrix is refused", {
  skip_if_no_marginaleffects()
  fit <- fit_fixed()
  expect_error(marginaleffects::predictions(fit), class = "pfdtc_error_input")
})

test_that("for classes predictions are probabilities, with their credible intervals, or f", {
  fit <- pfdtc(am ~ wt, mtcars, family = binomial(), kernel = kernel_se(1, 4), hyper = "fixed", m = 6)
  new <- mtcars[c(1, 9, 30), ]
  p <- with_seed(1, with_options(list(pfdtc.draws = 20000), get_predict.gp_fit(fit, new)))
  band <- predict(fit, new, type = "response", interval = "credible")
  expect_equal(p$estimate, unname(band[, "fit"]))
  draws <- attr(p, "posterior_draws")
  expect_equal(rowMeans(draws), p$estimate, tolerance = 0.02)
  expect_equal(apply(draws, 1, stats::quantile, 0.025), unname(band[, "lwr"]), tolerance = 0.05)
  expect_equal(get_predict.gp_fit(fit, new, type = "link")$estimate, unname(predict(fit, new)))
})
