# Compares leave-one-out with refits whose row has weight 0, at the same hyperparameters, points and units.

loo_problem <- function(n = 24, seed = 3) {
  p <- problem("matern32", n = n, d = 2, m = 6, seed = seed)
  with_seed(seed, {
    again <- c(2, 2, 5, 9)                        # equal rows, merged where a method merges
    p$x <- rbind(p$x, p$x[again, ])
    p$y <- c(p$y, p$y[again] + rnorm(4))
    p$weights <- runif(n + 4, 0.3, 2)
    p$weights[c(4, n + 3)] <- 0
  })
  p
}

fit_by <- function(make, p, weights = p$weights, ...) {
  args <- list(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", weights = weights,
               center = FALSE, scale = FALSE, ...)
  do.call(make, args)
}

makers <- function(p) {
  points <- list(inducing = p$z, control = pfdtc_control(maxit = 0))
  list(pfdtc = c(list(pfdtc, neighbours = 0), points), vfe = c(list(gp_vfe), points),
       dtc = list(gp_dtc, inducing = p$z),
       sor = list(gp_sor, inducing = p$z), fitc = list(gp_fitc, inducing = p$z), exact = list(gp_exact),
       small = list(pfdtc))
}

# Returns mean and variance of f at row i by a fit without it.
refitted <- function(maker, p) {
  t(vapply(which(p$weights > 0), function(i) {
    fit <- do.call(fit_by, c(maker[1L], list(p, replace(p$weights, i, 0)), maker[-1L]))
    p <- predict(fit, p$x[i, , drop = FALSE], se.fit = TRUE)
    c(p$fit, p$se.fit^2)
  }, numeric(2)))
}

test_that("leave-one-out is a fit without the row, by every method, with weights and equal rows", {
  p <- loo_problem()
  used <- p$weights > 0
  for (name in names(makers(p))) {
    maker <- makers(p)[[name]]
    fit <- do.call(fit_by, c(maker[1L], list(p), maker[-1L]))
    expected <- refitted(maker, p)
    got <- predict(fit, type = "loo_latent", se.fit = TRUE)
    expect_close(unname(got$fit[used]), expected[, 1L], 1e-8, paste(name, "mean"))
    expect_close(unname(got$se.fit[used]^2), expected[, 2L], 1e-8, paste(name, "variance"))
    expect_equal(got$fit[!used], fitted(fit)[!used], info = name)
    of_y <- predict(fit, type = "loo", se.fit = TRUE)$se.fit
    expect_close(unname(of_y[used]^2), expected[, 2L] + p$noise / p$weights[used], 1e-8, paste(name, "of y"))
    expect_true(all(is.na(of_y[!used])))
  }
})

test_that("a row of leverage 1 up to rounding has the values of a fit without it", {
  p <- problem("matern32", n = 24, d = 2, m = 6, seed = 3)
  for (name in c("exact", "vfe", "sor")) {
    p$weights <- if (name == "exact") 10^seq(-2, 14, length.out = 24) else replace(rep(1, 24), 7, 1e13)
    rows <- if (name == "exact") 1:24 else 7L # with points, other rows lose digits because of the heavy row
    maker <- makers(p)[[name]]
    fit <- do.call(fit_by, c(maker[1L], list(p), maker[-1L]))
    expect_lt(min(row_parts(posterior_of(fit))$rest), 1e-8)
    expected <- refitted(maker, p)
    got <- predict(fit, type = "loo_latent", se.fit = TRUE)
    expect_close(unname(got$fit[rows]), expected[rows, 1L], 1e-5, name) # rounding of weights 1e16 apart
    expect_close(unname(got$se.fit[rows]^2), expected[rows, 2L], 1e-5, name)
  }
  heavy <- suppressWarnings(pfdtc(dist ~ speed, cars, weights = c(rep(1, 49), 1e14)))
  of_rows <- c(rstandard(heavy), rstudent(heavy), residuals(heavy, "pit"), predict(heavy, type = "loo"))
  expect_true(all(is.finite(of_rows)))
  expect_false(any(grepl("NaN", print_quietly(heavy))))
  part <- list(rest = c(1e-13, 1e-13, 1))
  expect_identical(without_rounded(part)$rest, c(NaN, NaN, 1))
  expect_identical(without_rounded(c(part, list(sure = c(TRUE, FALSE, TRUE))))$rest, c(1e-13, NaN, 1))
})

test_that("both ways of leaving out a row agree if the row has nearly all the leverage", {
  p <- loo_problem()
  p$noise <- 1e-5
  used <- p$weights > 0
  fit <- fit_by(gp_exact, p)
  expected <- refitted(list(gp_exact), p)
  got <- predict(fit, type = "loo_latent", se.fit = TRUE)
  expect_gt(max(hatvalues(fit)), 0.999)
  expect_close(unname(got$fit[used]), expected[, 1L], 1e-8)
  expect_close(unname(got$se.fit[used]^2), expected[, 2L], 1e-8)
})

test_that("only the rows of a subsample have leverage", {
  p <- problem(n = 30, d = 1, m = 4, seed = 2)
  fit <- with_seed(1, gp_subsample(p$x, p$y, m = 12, kernel = package_kernel(p$kernel), noise = p$noise,
                                   hyper = "fixed", center = FALSE, scale = FALSE))
  seen <- sort(fit$chosen)
  expect_identical(unname(which(hatvalues(fit) > 0)), seen)
  got <- predict(fit, type = "loo_latent", se.fit = TRUE)
  all <- predict(fit, se.fit = TRUE)
  expect_equal(got$fit[-seen], all$fit[-seen])
  expect_equal(got$se.fit[-seen], all$se.fit[-seen])
  for (i in seen) {
    others <- setdiff(seen, i)
    gp <- ref_exact(p$x[others, , drop = FALSE], p$y[others], p$kernel, p$noise)
    at <- p$x[i, , drop = FALSE]
    expect_close(c(got$fit[[i]], got$se.fit[[i]]^2), c(gp$mean(at), ref_variance(gp, at)), 1e-8)
  }
  expect_true(all(cooks.distance(fit)[-seen] == 0))
})

without_by_force <- function(fit, weights, y, i) {
  data <- list(x = fit$data$x, y = y, weights = weights)
  model <- model_of(fit)
  near <- near_posterior(data, fit$inducing, model, fit$near$neighbours, fit$near$train_neighbours, fit$near$rank)
  p <- near_parts(near, data, fit$inducing, model, fit$data$x[i, , drop = FALSE])
  c(p$mean, p$var_near + p$var_far)
}

test_that("with neighbours, leave-one-out sets the row's weight to 0 and keeps order and neighbours", {
  # The last problem has 30 inducing points and two neighbours.
  for (case in quick(list(c(5, 4, 5), c(7, 9, 5), c(3, 0, 5), c(60, 60, 5), c(2, 2, 30)))) {
    p <- problem("matern32", n = 40, d = 2, m = case[3L], weighted = TRUE, seed = case[1L])
    p$y <- p$y + 3
    fit <- fit_by(pfdtc, p, neighbours = case[1L], inducing = p$z)
    if (case[2L] != case[1L]) {                   # fewer in training than in predictions
      fit$near <- near_posterior(fit$data, fit$inducing, model_of(fit), case[1L], case[2L], fit$near$rank)
    }
    got <- predict(fit, type = "loo_latent", se.fit = TRUE)
    expected <- t(vapply(seq_along(p$y), function(i) {
      without_by_force(fit, replace(p$weights, i, 0), p$y, i)
    }, numeric(2)))
    expect_close(unname(got$fit), expected[, 1L], 1e-8, paste("mean", case[1L]))
    expect_close(unname(got$se.fit^2), expected[, 2L], 1e-8, paste("variance", case[1L]))
  }
})

test_that("with neighbours, leaving out one of several equal rows keeps the others", {
  p <- problem("matern12", n = 30, d = 2, m = 5, seed = 4)
  p$x <- rbind(p$x, p$x[c(3, 3, 8), ])
  p$y <- with_seed(1, c(p$y, p$y[c(3, 3, 8)] + rnorm(3)))
  p$weights <- with_seed(2, runif(33, 0.5, 2))
  fit <- fit_by(pfdtc, p, neighbours = 6, inducing = p$z)
  expect_identical(nrow(fit$data$x), 30L)
  got <- predict(fit, type = "loo_latent", se.fit = TRUE)
  expected <- t(vapply(seq_along(p$y), function(i) {
    w <- replace(p$weights, i, 0)
    group <- fit$data$group
    W <- as.vector(rowsum(w, group))
    mean <- ifelse(W > 0, as.vector(rowsum(w * p$y, group)) / W, 0)
    without_by_force(fit, W, mean, group[i])
  }, numeric(2)))
  expect_close(unname(got$fit), expected[, 1L], 1e-8)
  expect_close(unname(got$se.fit^2), expected[, 2L], 1e-8)
})

test_that("leverage is the derivative of the fitted value by the row's response", {
  p <- loo_problem()
  used <- p$weights > 0
  cases <- c(makers(p), list(near = list(pfdtc, neighbours = 5, inducing = p$z)))
  for (name in names(cases)) {
    maker <- cases[[name]]
    make <- function(q) with_seed(1, do.call(fit_by, c(maker[1L], list(q), maker[-1L])))
    at <- c(1, 2, 5, 25, 28)                      # single rows, then rows that have equal ones
    moved <- vapply(at, function(i) {             # fitted values are linear in y, so any step gives the derivative
      q <- p
      q$y[i] <- q$y[i] + 1
      fitted(make(q))[[i]] - fitted(make(p))[[i]]
    }, 0)
    hat <- hatvalues(make(p))
    expect_close(unname(hat[at]), moved, 1e-8, name)
    expect_true(all(hat[!used] == 0), info = name)
  }
})

test_that("Cook's distance is the change of all fitted values", {
  p <- loo_problem()
  for (name in c("pfdtc", "exact", "sor", "fitc")) {
    maker <- makers(p)[[name]]
    fit <- do.call(fit_by, c(maker[1L], list(p), maker[-1L]))
    left <- 0 # FITC gives a row the residual prior variance as further noise
    if (name == "fitc") left <- native_predict(fit$factors, fit$inducing, model_of(fit), p$x)$unexplained
    precision <- 1 / (p$noise / p$weights + left)
    expected <- vapply(seq_along(p$y), function(i) {
      if (p$weights[i] == 0) return(0)
      other <- do.call(fit_by, c(maker[1L], list(p, replace(p$weights, i, 0)), maker[-1L]))
      sum(precision * (fitted(fit) - fitted(other))^2)
    }, 0) / sum(hatvalues(fit))
    expect_close(unname(cooks.distance(fit)), expected, 1e-8, name)
  }
  expect_input_error(cooks.distance(fit_by(pfdtc, p, neighbours = 5, inducing = p$z)))
})

test_that("rstandard() is that of lm() at the same leverage, pit its probability", {
  p <- loo_problem()
  fit <- fit_by(gp_exact, p)
  used <- p$weights > 0
  h <- hatvalues(fit)[used]
  expected <- residuals(fit, "pearson")[used] / (sigma(fit) * sqrt(1 - h))
  expect_close(unname(rstandard(fit)[used]), unname(expected), 1e-9)
  expect_true(all(is.na(rstandard(fit)[!used])))
  expect_identical(residuals(fit, "pit"), pnorm(rstandard(fit)))
  expect_equal(residuals(fit, "loo"), p$y - predict(fit, type = "loo"))
})

test_that("rows keep their names, offsets and places", {
  data <- small_data(20)
  data$y[c(3, 11)] <- NA
  data$w <- seq(0.5, 2, length.out = 20)
  data$o <- sin(1:20)
  fit <- fit_mixed(y ~ a + f, data = data, weights = w, offset = o, na.action = na.exclude)
  loo <- predict(fit, type = "loo", se.fit = TRUE, interval = "prediction", level = 0.5)
  expect_identical(dim(loo$fit), c(20L, 3L))
  expect_identical(rownames(loo$fit), row.names(data))
  expect_identical(unname(which(is.na(loo$fit[, 1]))), c(3L, 11L))
  expect_equal(loo$fit[, "upr"] - loo$fit[, "fit"], qnorm(0.75) * loo$se.fit)
  expect_equal(data$y - loo$fit[, "fit"], unname(residuals(fit, "loo")), ignore_attr = TRUE)
  for (f in list(rstandard, hatvalues, cooks.distance)) {
    expect_identical(unname(which(is.na(f(fit)))), c(3L, 11L))
    expect_named(f(fit), row.names(data))
  }
  f <- predict(fit, type = "loo", interval = "credible")
  latent <- predict(fit, type = "loo_latent", se.fit = TRUE)
  expect_equal(f[, "upr"], latent$fit + qnorm(0.975) * latent$se.fit)
})

test_that("arguments that exclude leave-one-out are refused by name", {
  fit <- fit_cars()
  expect_input_error(predict(fit, cars[1:2, ], type = "loo"), "newdata")
  expect_input_error(predict(fit, type = "loo", full_cov = TRUE), "full_cov")
  expect_input_error(predict(fit, type = "loo", interval = "credible", certified = TRUE), "certified")
  for (f in list(rstandard, cooks.distance, dfbetas)) expect_input_error(f(fit_cars(keep_data = FALSE)), "keep_data")
  expect_input_error(rstandard(fit, infl = 1), "infl")
})

test_that("moments of sums are those of the joint values, for every class of posterior", {
  p <- loo_problem()
  cases <- c(makers(p), list(near = list(pfdtc, neighbours = 5, inducing = p$z)))
  for (name in names(cases)) {
    maker <- cases[[name]]
    q <- posterior_of(with_seed(1, do.call(fit_by, c(maker[1L], list(p), maker[-1L]))))
    x <- p$x[1:4, , drop = FALSE]
    W <- rbind(c(1, -1, 0, 0), c(0.5, 0, 2, 1))
    values <- posterior_values(q, x, joint = TRUE)
    sums <- posterior_at(q, sums_at(q$model$kernel, x, list(1:2, c(1L, 3L, 4L)), list(c(1, -1), c(0.5, 2, 1))))
    expect_close(sums$mean, drop(W %*% values$mean), 1e-9, name)
    expect_close(sums$var, diag(W %*% values$cov %*% t(W)), 1e-9, name)
  }
})

test_that("with neighbours and weights over many decades, leave-one-out values are right or NaN", {
  unknown <- 0
  for (seed in 1:12) {
    p <- with_seed(seed, list(x = cbind(a = stats::runif(5)), kernel = ref_kernel("matern32", 0.5, 2), noise = 1e-6,
                              weights = 10^stats::runif(5, -6, 6)))
    p$y <- sin(3 * drop(p$x))
    loo <- posterior_without(posterior_of(fit_by(make = pfdtc, p, m = 3, neighbours = 5))) # all rows: exact
    known <- which(!is.nan(loo$var))
    for (i in known) {
      K <- ref_k(p$kernel, p$x[-i, , drop = FALSE], p$x)
      k <- K[, i]
      solved <- solve(K[, -i] + diag(p$noise / p$weights[-i]), cbind(k, p$y[-i]), tol = 0)
      var <- 2 - sum(k * solved[, 1L])
      expect_equal(loo$var[i], var, tolerance = 0.1) # the limit of rounding errors
      expect_lt(abs(loo$mean[i] - sum(k * solved[, 2L])), 0.1 * sqrt(var))
    }
    unknown <- unknown + 5 - length(known)
  }
  expect_true(unknown > 0 && unknown < 30)
})

test_that("rstudent() and dfbetas() are those of lm() for a linear mean alone, weights included", {
  w <- with_seed(1, runif(50, 0.5, 2))
  line <- lm(dist ~ speed, cars, weights = w)
  set <- function(by, ...) {
    by(dist ~ speed, cars, kernel = kernel_se(1, 1e-8), mean = ~ speed, weights = w, hyper = "fixed",
       noise = summary(line)$sigma^2, ...)
  }
  for (fit in list(set(gp_exact), set(gp_dtc, inducing = as.matrix(cars["speed"])[c(1, 20, 50), , drop = FALSE]))) {
    # The prior of the mean has an effect of 1e-4.
    expect_equal(rstudent(fit), rstudent(line), tolerance = 1e-3)
    expect_equal(dfbetas(fit), dfbetas(line), tolerance = 1e-3)
  }
})

test_that("dfbetas() are refits without the row; rstudent() uses the scale from the other rows", {
  d <- with_seed(2, data.frame(x = runif(30), z = rnorm(30)))
  d$y <- with_seed(3, 2 * d$x + sin(3 * d$z) + rnorm(30, sd = 0.3))
  fit <- gp_exact(y ~ x + z, d, kernel = kernel_se(0.8, 0.7, ~ z), mean = ~ x, noise = 0.09, hyper = "fixed",
                  center = FALSE, scale = FALSE)
  K <- kernel_matrix(fit$kernel, fit$data$x) + diag(0.09, 30)
  scale_of <- function(rows) drop(d$y[rows] %*% solve(K[rows, rows], d$y[rows])) / (length(rows) - 2)
  for (i in c(1, 17)) {
    without <- update(fit, data = d[-i, ], kernel = fit$kernel)
    scale <- sqrt(scale_of(seq_len(30)[-i]))
    expect_equal(rstudent(fit)[[i]], rstandard(fit)[[i]] / scale, tolerance = 1e-6)
    sd <- sqrt(diag(vcov(fit)))
    expect_equal(unname(dfbetas(fit)[i, ] * sd * scale), unname(coef(fit)[1:2] - coef(without)[1:2]), tolerance = 1e-4)
  }
  expect_input_error(dfbetas(fit_cars(neighbours = 0)), "model")
  classes <- pfdtc(Species ~ Petal.Length, iris, kernel = kernel_se(1, 4), hyper = "fixed", family = multinomial())
  expect_input_error(dfbetas(classes), "several unordered classes")
  expect_input_error(rstudent(pfdtc(dist ~ speed, cars, m = 5, neighbours = 5)), "model")
})

test_that("dfbetas() of counts are near refits without the row, and rows of weight 0 change nothing", {
  d <- with_seed(4, data.frame(x = runif(60)))
  d$y <- with_seed(5, rpois(60, exp(1 + d$x)))
  kernel <- gp_exact(y ~ x, d, kernel = kernel_se(0.5, 0.1), mean = ~ x, noise = 1, hyper = "fixed")$kernel
  set <- function(rows, w = NULL) {
    pfdtc(y ~ x, d[rows, ], family = poisson(), kernel = kernel, hyper = "fixed", center = FALSE, weights = w)
  }
  fit <- set(1:60, as.double(1:60 != 7))
  expect_identical(unname(dfbetas(fit)[7, ]), c(0, 0))
  moved <- dfbetas(fit)[9, ] * sqrt(diag(vcov(fit)))[1:2]
  expect_equal(unname(moved), unname(coef(fit)[1:2] - coef(set(setdiff(1:60, c(7, 9))))[1:2]), tolerance = 0.2)
  expect_identical(rstudent(fit), rstandard(fit))
})

test_that("rstudent() is NaN without a warning if coefficients are as many as rows, as for lm()", {
  d <- data.frame(a = c(1, 4, 2, 6), b = c(3, 1, 2, 2), c = c(0, 1, 5, 2), y = c(2, 1, 4, 3))
  fit <- gp_exact(y ~ a + b + c, d, mean = ~ a + b + c, kernel = kernel_se(c(2, 2, 2), 1), noise = 0.1, hyper = "fixed")
  expect_no_warning(r <- stats::rstudent(fit))
  expect_true(all(is.nan(r)))
})

test_that("hatvalues() has no message on leave-one-out predictions of copies", {
  d <- cars[rep(1:20, 2), ]
  fit <- pfdtc(dist ~ speed, d, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  expect_message(residuals(fit, type = "loo"), "repeat an earlier row", class = "pfdtc_message_copies")
  expect_no_message(hatvalues(fit))
})
