learned_by_hand <- function(by = gp_exact, rows = 30, ...) {
  p <- problem("matern52", n = rows, d = 2, m = 6, seed = 3, noise = 0.2)
  fit <- by(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", center = FALSE,
              scale = FALSE, control = pfdtc_control(priors = FALSE, maxit = 0, progress = FALSE), ...)
  fit$hyper <- "evidence"
  list(fit = fit, p = p)
}

# Returns the mixture of dense posteriors.
ref_mixture <- function(p, V) {
  e <- eigen(V, symmetric = TRUE)
  n_theta <- nrow(V)
  at <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
  steps <- e$vectors %*% diag(sqrt(n_theta * e$values))
  gp_at <- function(theta) {
    v <- exp(theta)
    ref_exact(p$x, p$y, ref_kernel(p$kernel$profile, v[1:2], v[3]), v[4])
  }
  points <- cbind(at + steps, at - steps)
  gps <- apply(points, 2, gp_at)
  w <- exp(vapply(gps, `[[`, 0, "evidence") - gp_at(at)$evidence + n_theta / 2)
  w <- w / sum(w)
  means <- sapply(gps, function(gp) gp$mean(p$new))
  mean <- drop(means %*% w)
  cov <- Reduce(`+`, Map(function(gp, w, i) w * (gp$cov(p$new, p$new) + tcrossprod(means[, i] - mean)), gps, w,
                         seq_along(gps)))
  list(mean = mean, cov = cov, noise = sum(w * exp(points[4, ])), weights = w)
}

test_that("predictions with hyper_uncertainty mix the posteriors at sigma points with weights by the evidence", {
  made <- learned_by_hand()
  expected <- ref_mixture(made$p, unname(vcov(made$fit)))
  got <- predict(made$fit, made$p$new, se.fit = TRUE, full_cov = TRUE, hyper_uncertainty = TRUE)
  expect_close(got$fit, expected$mean, 1e-8)
  expect_close(got$cov, expected$cov, 1e-8)
  expect_close(got$se.fit^2, diag(expected$cov), 1e-8)
  of_y <- predict(made$fit, made$p$new, se.fit = TRUE, type = "response", hyper_uncertainty = TRUE,
                  interval = "prediction", level = 0.9)
  expect_close(of_y$se.fit^2, diag(expected$cov) + expected$noise, 1e-8)
  expect_equal(unname(of_y$fit[, "upr"]), of_y$fit[, "fit"] + qnorm(0.95) * of_y$se.fit, ignore_attr = TRUE)
})

test_that("fits with neighbours, points and subsamples have their own posteriors at the sigma points", {
  made <- learned_by_hand()
  expected <- predict(made$fit, made$p$new, se.fit = TRUE, hyper_uncertainty = TRUE)
  x <- made$p$x
  alike <- list(near = learned_by_hand(pfdtc, neighbours = 30, inducing = x[1:5, ]),
                far = learned_by_hand(pfdtc, neighbours = 0, inducing = x), dtc = learned_by_hand(gp_dtc, inducing = x),
                fitc = learned_by_hand(gp_fitc, inducing = x), all = learned_by_hand(gp_subsample, m = 30))
  for (name in names(alike)) { # all of them are the exact posterior
    got <- predict(alike[[name]]$fit, made$p$new, se.fit = TRUE, hyper_uncertainty = TRUE)
    expect_close(got$fit, expected$fit, 1e-5, name)
    expect_close(got$se.fit, expected$se.fit, 1e-5, name)
  }
})

test_that("certificates contain the mixture of dense posteriors, weighted by the exact evidence", {
  only_nightly()
  x <- problem("matern52", n = 30, d = 2, m = 6, seed = 3, noise = 0.2)$x
  points <- function(m, ...) learned_by_hand(gp_dtc, inducing = x[seq_len(m), ], ...)
  made <- list(exact = learned_by_hand(), few = points(6), bracketed = points(27), wide = points(10),
               near = learned_by_hand(pfdtc, neighbours = 8, inducing = x[1:5, ]))
  for (name in c("bracketed", "wide")) made[[name]]$fit$hyper <- "pilot" # by the ELBO: the evidence is bracketed
  for (name in names(made)) {
    fit <- made[[name]]$fit
    new <- made[[name]]$p$new
    true <- ref_mixture(made[[name]]$p, unname(vcov(fit)))
    for (effort in c("fast", if (name != "exact") "reference")) {
      fit$reference <- if (effort == "reference") reference(fit, m2 = 28)
      got <- certify(fit, new, effort = effort, hyper_uncertainty = TRUE)
      label <- paste(name, effort)
      # The package keeps hyperparameters within their ranges, and the reference does not. A point beyond the ranges has
      # the weight 1e-9.
      between <- function(lower, v, upper) expect_true(all(lower <= v + 1e-8 & v <= upper + 1e-8), label)
      between(got$mean_lower, true$mean, got$mean_upper)
      between(got$sd_lower, sqrt(diag(true$cov)), got$sd_upper)
      weights <- attr(got, "weights")
      between(weights$lower, true$weights, weights$upper)
      own <- predict(fit, new, se.fit = TRUE, hyper_uncertainty = TRUE)
      expect_equal(got$mean, own$fit, ignore_attr = TRUE)
      expect_equal(got$sd, own$se.fit, ignore_attr = TRUE)
      expect_equal(got$mean_error, pmax(got$mean - got$mean_lower, got$mean_upper - got$mean))
      expect_equal(sum(weights$weight), 1)
      if (name == "exact") { # only rounding errors are left
        expect_lt(max(got$mean_error, got$sd_upper - got$sd_lower), 1e-8)
      } else {
        if (effort == "reference" && name %in% c("few", "near")) expect_lt(max(got$mean_upper - got$mean_lower), 0.1)
        if (name == "wide") expect_gt(max(weights$upper - weights$lower), 0.2)
      }
    }
  }
})

test_that("the mean's error is at most the weighted errors of the parts, plus the effect of brackets on the weights", {
  w <- c(0.5, 0.3, 0.2)
  means <- rbind(c(1, 2, 4), c(0, 0, 0))
  error <- rbind(c(0.1, 0.2, 0.3), c(1, 2, 3))
  at <- function(low, high) {
    weights_between(list(weights = w, gain = NULL, apart = log(w)),
                    lapply(1:3, function(i) list(lower = low[i], upper = high[i])))
  }
  known <- at(rep(7, 3), rep(7, 3))
  expect_equal(known$lower, w)
  expect_equal(known$upper, w)
  expect_equal(largest_mixture_mean(means + error, known) - drop(means %*% w), drop(error %*% w))
  expect_equal(drop(means %*% w) - -largest_mixture_mean(error - means, known), drop(error %*% w))
  # Test all corners of the box of densities.
  low <- c(-0.3, 0, -0.1)
  high <- c(0.2, 0.4, 0.5)
  corners <- as.matrix(expand.grid(Map(function(w, a, b) w * exp(c(a, b)), w, low, high)))
  corners <- corners / rowSums(corners)
  expect_equal(largest_mixture_mean(means, at(low, high)), apply(means %*% t(corners), 1, max))
  expect_equal(-largest_mixture_mean(-means, at(low, high)), apply(means %*% t(corners), 1, min))
  expect_equal(at(low, high)$upper, unname(apply(corners, 2, max)))
  expect_equal(at(low, high)$lower, unname(apply(corners, 2, min)))
  # If log densities are known to thousands of nats only, any part may have all the weight.
  expect_equal(largest_mixture_mean(means, at(c(-2000, -1000, -1500), c(0, 1000, 500))), c(4, 0))
})

test_that("certified intervals of the mixture reach from its certified mean and sd", {
  made <- learned_by_hand(gp_dtc, inducing = problem("matern52", n = 30, d = 2, m = 6, seed = 3, noise = 0.2)$x[1:12, ])
  fit <- made$fit
  fit$reference <- reference(fit, m2 = 25)
  new <- made$p$new[1:3, ]
  of_f <- certify(fit, new, hyper_uncertainty = TRUE)
  band <- predict(fit, new, interval = "credible", certified = TRUE, hyper_uncertainty = TRUE)
  expect_equal(band[, "upr"], of_f$mean_upper + qnorm(0.975) * of_f$sd_upper, ignore_attr = TRUE)
  expect_equal(band[, "lwr"], of_f$mean_lower - qnorm(0.975) * of_f$sd_upper, ignore_attr = TRUE)
  true <- ref_mixture(made$p, unname(vcov(fit)))
  half <- qnorm(0.975) * sqrt(diag(true$cov)[1:3] + true$noise)
  of_y <- predict(fit, new, interval = "prediction", certified = TRUE, hyper_uncertainty = TRUE)
  expect_true(all(of_y[, "lwr"] <= true$mean[1:3] - half & true$mean[1:3] + half <= of_y[, "upr"]))
  expect_output(print(of_f), "Mixture")
})

test_that("shapes, names, offsets and missing rows are those of predictions", {
  data <- small_data(25)
  data$o <- cos(1:25)
  fit <- fit_mixed(y ~ a + f + offset(o), data = data)
  fit$hyper <- "evidence"
  new <- data[1:4, ]
  new$a[2] <- NA
  plain <- predict(fit, new, se.fit = TRUE, full_cov = TRUE, interval = "credible")
  got <- predict(fit, new, se.fit = TRUE, full_cov = TRUE, interval = "credible", hyper_uncertainty = TRUE)
  expect_identical(lapply(got, dimnames), lapply(plain, dimnames))
  expect_identical(is.na(got$cov), is.na(plain$cov))
  expect_identical(got, predict(fit, new, se.fit = TRUE, full_cov = TRUE, interval = "credible",
                                hyper_uncertainty = TRUE))
  expect_equal(unname(predict(fit, hyper_uncertainty = TRUE)[c(1, 3)]), unname(got$fit[c(1, 3), "fit"]))
})

test_that("95 % intervals for left-out rows of small designs contain at least nine in ten", {
  only_nightly()
  bands <- lapply(seq_len(24), function(i) {
    fit <- with_seed(i, suppressWarnings(pfdtc(yield ~ block + N + P + K, npk[-i, ])))
    t(vapply(c(FALSE, TRUE), function(uncertain) {
      band <- predict(fit, npk[i, ], interval = "prediction", hyper_uncertainty = uncertain)[, c("lwr", "upr")]
      c(inside = band[["lwr"]] <= npk$yield[i] && npk$yield[i] <= band[["upr"]], width = diff(band)[[1]])
    }, numeric(2)))
  })
  means <- Reduce(`+`, bands) / length(bands)
  expect_gte(means[2, "inside"], 0.9)
  expect_gte(means[2, "inside"], means[1, "inside"])
  expect_gt(means[2, "width"], means[1, "width"])
})

test_that("arguments that exclude hyper_uncertainty are refused by name", {
  fit <- learned_by_hand()$fit
  expect_input_error(predict(fit, hyper_uncertainty = 2), "hyper_uncertainty")
  expect_input_error(predict(fit, hyper_uncertainty = TRUE, interval = "conformal"), "hyper_uncertainty")
  expect_input_error(predict(fit, hyper_uncertainty = TRUE, type = "loo"), "hyper_uncertainty")
  expect_input_error(certify(fit, hyper_uncertainty = 2), "hyper_uncertainty")
  expect_input_error(certify(fit_cars(), hyper_uncertainty = TRUE))
  expect_input_error(predict(fit_cars(), hyper_uncertainty = TRUE))
})

test_that("print() of a certified mixture says that the mean of a transformed response has no bounds", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(), transform = "log")
  got <- certify(fit, cars[1:2, ], hyper_uncertainty = TRUE)
  expect_identical(got$fit_upper, c(Inf, Inf))
  expect_output(print(got), "weighted\\s+by\\s+likelihood;\\s+`fit`\\s+has\\s+no\\s+finite\\s+bounds")
})
