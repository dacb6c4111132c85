# Tests the default posterior if no argument concerns inducing points, and predictions with neighbours.

# Short lengthscales leave a large residual variance with 200 points, long lengthscales almost none.
rough <- function(data, ..., control = list()) {
  with_few_exact(pfdtc(data$x, data$y, ..., kernel = kernel_matern(1 / 2, c(0.5, 0.5), 1), noise = 0.01,
                       hyper = "fixed", control = utils::modifyList(list(progress = FALSE), control)))
}

smooth <- function(data, ...) {
  with_few_exact(pfdtc(data$x, data$y, ..., kernel = kernel_se(c(0.5, 0.5), 1), noise = 0.01, hyper = "fixed",
                       control = list(progress = FALSE)))
}

many_rows <- function(n = 2100) {
  with_seed(1, {
    x <- matrix(stats::runif(2 * n), n)
    list(x = x, y = sin(8 * x[, 1]) + cos(9 * x[, 2]) + 0.1 * stats::rnorm(n))
  })
}

some_rows <- function(n = 60) lapply(many_rows(), function(v) if (is.matrix(v)) v[seq_len(n), ] else v[seq_len(n)])

test_that("few rows have the exact posterior, more rows points, with neighbours if points leave residual variance", {
  only_nightly()
  few <- some_rows(300)
  many <- many_rows()
  exact <- rough(few)
  expect_identical(exact$posterior, "exact")
  expect_identical(c(exact$m, exact$neighbours), c(300L, 0L))
  expect_equal(exact$inducing, few$x, ignore_attr = TRUE)
  own <- gp_exact(few$x, few$y, kernel = exact$kernel, noise = exact$noise, hyper = "fixed")
  expect_identical(predict(exact, se.fit = TRUE), predict(own, se.fit = TRUE))
  expect_identical(as.numeric(logLik(exact)), as.numeric(logLik(own)))
  expect_output(print(exact), "exact")

  near <- rough(many)
  expect_identical(near$posterior, "far + near")
  # 50 points predict held-out rows as well as more points do.
  expect_identical(c(near$neighbours, near$m, near$m_asked), c(40L, 50L, 50L))
  expect_identical(near$near$neighbours, c(40L, 200L)) # for new rows near the data and far from them
  short <- with_few_exact(pfdtc(many$x, many$y, kernel = kernel_matern(1 / 2, c(0.05, 0.05), 1), noise = 0.01,
                                hyper = "fixed"))
  expect_identical(c(short$neighbours, short$m), c(40L, 50L)) # the residual is over half of the prior variance
  expect_gt(near$unexplained, 5)
  expect_false(near$moved)
  far <- smooth(many)
  expect_identical(far$posterior, "far")
  expect_lt(far$unexplained, 0.005)
  expect_false(far$moved)
  expect_match(far$because[["move"]], "points")
  expect_identical(far$neighbours, 0L)
  # The share is the residual prior variance over the noise variance.
  unexplained <- function(fit) {
    d <- fit$data
    q <- ref_q(d$x[1:100, ], d$x[1:100, ], unname(fit$inducing), ref_kernel("matern12", c(0.5, 0.5), 1))
    mean(1 - diag(q)) / 0.01
  }
  middle <- rough(many, m = 150, control = list(maxit = 0))
  expect_equal(middle$unexplained, unexplained(middle), tolerance = 0.1) # estimated from the first rows
})

test_that("arguments about inducing points give inducing points, which are optimised if useful or requested", {
  few <- some_rows()
  kinds <- function(...) {
    fit <- rough(few, ...)
    list(fit$posterior, fit$moved)
  }
  expect_identical(kinds(m = 10), list("far", TRUE))
  expect_identical(kinds(inducing = "random"), list("far", TRUE))
  expect_identical(kinds(aux = aux_sor()), list("far", TRUE))
  expect_identical(kinds(inducing = few$x[1:7, ]), list("far", TRUE))
  expect_identical(kinds(m = 10, neighbours = 5), list("far + near", FALSE))
  expect_identical(kinds(m = 10, neighbours = 0), list("far", TRUE))
  expect_identical(kinds(m = 10, control = list(maxit = 0)), list("far", TRUE))
  expect_identical(kinds(control = list(maxit = 3))[[1]], "exact")
  expect_identical(smooth(few, m = 40)$moved, FALSE)
  many <- many_rows()
  expect_identical(smooth(many, m = 60)$posterior, "far")
  paper <- with_seed(1, pfdtc(few$x, few$y, hyper = "pilot", control = list(maxit = 3, progress = FALSE)))
  expect_identical(list(paper$posterior, paper$moved, paper$neighbours), list("far", TRUE, 0L))
})

near_fit <- function(data = some_rows(), ..., neighbours = 8) {
  with_seed(3, rough(data, m = 12, neighbours = neighbours, ...))
}

test_that("with all rows as neighbours the fit equals the exact one; more neighbours than rows do no harm", {
  data <- some_rows()
  weights <- with_seed(5, stats::runif(60, 0.3, 3))
  twice <- list(x = data$x[c(1:60, 1:20), ], y = c(data$y, data$y[1:20] + 0.1))
  new <- rbind(with_seed(2, matrix(stats::runif(10), 5)), 3)
  cases <- list(list(data), list(data, weights = weights), list(twice), list(data, offset = seq_len(60) / 7))
  for (i in seq_along(cases)) {
    case <- cases[[i]]
    for (neighbours in in_turn(c(nrow(case[[1]]$x), 1e6), i, 2)) {
      near <- do.call(near_fit, c(case, neighbours = neighbours))
      exact <- do.call(rough, case)
      expect_identical(c(near$posterior, exact$posterior), c("far + near", "exact"))
      for (interval in c("none", "credible", "prediction")) {
        ask <- function(fit, ...) {
          expect_warned(predict(fit, ..., se.fit = TRUE, interval = interval), "weights",
                        interval == "prediction" && !is.null(case$weights) && ...length() > 0L)
        }
        if (is.null(case$offset)) expect_equal(ask(near, new), ask(exact, new), tolerance = 1e-7)
        expect_equal(ask(near), ask(exact), tolerance = 1e-7)
      }
      expect_equal(predict(near, full_cov = TRUE)$cov, predict(exact, full_cov = TRUE)$cov, tolerance = 1e-6)
      expect_equal(as.numeric(logLik(near)), as.numeric(logLik(exact)), tolerance = 1e-8)
      expect_equal(residuals(near), residuals(exact), tolerance = 1e-7)
      expect_equal(residuals(near, "pearson"), residuals(exact, "pearson"), tolerance = 1e-7)
      expect_equal(summary(near)$rmse, summary(exact)$rmse, tolerance = 1e-7)
    }
  }
})

test_that("with some rows as neighbours the methods agree with one another and certificates hold", {
  fit <- near_fit()
  data <- fit$data
  new <- rbind(with_seed(2, matrix(stats::runif(10), 5)), data$x[3, ])
  p <- predict(fit, new, se.fit = TRUE, interval = "credible", level = 0.9)
  expect_equal(p$fit[, "upr"] - p$fit[, "lwr"], 2 * stats::qnorm(0.95) * p$se.fit, tolerance = 1e-12)
  y <- predict(fit, new, interval = "prediction", level = 0.9)
  wide <- 2 * stats::qnorm(0.95) * sqrt(p$se.fit^2 + 0.01)
  expect_equal(y[, "upr"] - y[, "lwr"], wide, tolerance = 1e-10)
  all <- predict(fit, new, full_cov = TRUE)
  expect_equal(sqrt(diag(all$cov)), p$se.fit, tolerance = 1e-12)
  expect_gt(min(eigen(all$cov, symmetric = TRUE)$values), -1e-12)
  # Training rows are predicted like other rows.
  expect_equal(predict(fit, data$x, se.fit = TRUE), predict(fit, se.fit = TRUE), tolerance = 1e-12, ignore_attr = TRUE)
  expect_equal(unname(p$fit[6, "fit"]), unname(fitted(fit)[3]), tolerance = 1e-12)
  # Compared with the exact posterior, neighbours improve on the points alone.
  exact <- predict(rough(some_rows()), new)
  far <- predict(near_fit(neighbours = 0, control = list(maxit = 0)), new)
  expect_lt(mean((p$fit[, "fit"] - exact)^2), 0.5 * mean((far - exact)^2))

  draws <- as.matrix(simulate(fit, 4000, seed = 1, newdata = new, type = "latent"))
  expect_true(all(abs(rowMeans(draws) - p$fit[, "fit"]) < 5 * p$se.fit / sqrt(4000)))
  v <- diag(all$cov)
  expect_true(all(abs(stats::cov(t(draws)) - all$cov) < 5 * sqrt((outer(v, v) + all$cov^2) / 4000)))
  expect_identical(dim(simulate(fit, 2, seed = 1)), c(60L, 2L))

  expect_output(print(fit), "\\b8\\b")
  expect_output(print(summary(fit)), "estimate")
  expect_s3_class(logLik(fit), "logLik")
  expect_null(attr(logLik(fit), "upper"))
  expect_equal(AIC(fit), -2 * as.numeric(logLik(fit)))
  expect_equal(nobs(fit), 60)

  certified <- with_seed(4, suppressMessages(certify(fit, new)))
  exact <- predict(rough(some_rows()), new, se.fit = TRUE)
  expect_true(all(abs(p$fit[, "fit"] - exact$fit) <= certified$mean_error * (1 + 1e-9) + 1e-12))
  expect_true(all(exact$se.fit >= certified$sd_lower * (1 - 1e-9) & exact$se.fit <= certified$sd_upper * (1 + 1e-9)))
  expect_equal(certified$mean, unname(p$fit[, "fit"]))
})

test_that("a fit with neighbours survives files, says that it needs its rows, and takes factors and missing values", {
  fit <- near_fit()
  new <- with_seed(2, matrix(stats::runif(10), 5))
  file <- tempfile()
  on.exit(unlink(file))
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), new, se.fit = TRUE), predict(fit, new, se.fit = TRUE))
  expect_input_error(near_fit(keep_data = FALSE), "keep_data")
  # By default, a fit without its rows uses points alone.
  slim <- smooth(many_rows(), keep_data = FALSE)
  expect_identical(slim$posterior, "far")
  expect_null(slim$data)

  mixed <- small_data(40)
  mixed$y[7] <- NA
  by <- function(...) {
    with_seed(1, pfdtc(y ~ a + f + l, mixed, ..., kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed",
                       na.action = stats::na.exclude, control = list(progress = FALSE)))
  }
  near <- by(m = 6, neighbours = 39)
  expect_identical(near$posterior, "far + near")
  expect_equal(predict(near, mixed[1:9, ], se.fit = TRUE), predict(by(), mixed[1:9, ], se.fit = TRUE), tolerance = 1e-6)
  expect_equal(fitted(near), fitted(by()), tolerance = 1e-6)
  expect_true(is.na(fitted(near)[7]))
  expect_identical(length(predict(near, mixed[0, ])), 0L)
})

test_that("neighbours is a number of rows", {
  for (bad in list(-1, 1.5, NA, "a", c(1, 2))) expect_input_error(near_fit(neighbours = bad), "`neighbours`")
  one <- near_fit(neighbours = 1)
  expect_identical(one$neighbours, 1L)
  expect_true(all(is.finite(unlist(predict(one, se.fit = TRUE)))))
  plain <- rough(some_rows(), m = 12, control = list(maxit = 0))
  none <- near_fit(neighbours = 0, control = list(maxit = 0))
  expect_identical(none$posterior, "far")
  expect_identical(predict(none, se.fit = TRUE), predict(plain, se.fit = TRUE))
})

test_that("a seed reproduces a fit with neighbours, and threads do not change it", {
  ask <- function(...) {
    fit <- near_fit(some_rows(200), ...)
    c(list(as.numeric(logLik(fit))), predict(fit, se.fit = TRUE))
  }
  expect_identical(ask(), ask())
  expect_equal(ask(control = list(threads = 2, block = 50)), ask(), tolerance = 1e-11)
})

test_that("summary() names the kernel that standard errors refer to, also if it is the selected kernel", {
  fit <- with_seed(1, pfdtc(dist ~ speed, cars))
  expect_true(fit$kernels$chosen[fit$kernels$se %in% 0])
  label <- gsub(" ", "\\\\s+", fit$kernel$label)
  expect_output(print(summary(fit)), paste0("difference\\s+from\\s+", label, ",\\s+best\\s+by\\s+density"))
})
