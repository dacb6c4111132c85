learned_by_hand <- function(by = gp_exact, rows = 30, ...) {
  p <- problem("matern52", n = rows, d = 2, m = 6, seed = 3, noise = 0.2)
  fit <- by(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", center = FALSE,
              scale = FALSE, control = pfdtc_control(priors = FALSE, maxit = 0, progress = FALSE), ...)
  fit$hyper <- "evidence"
  list(fit = fit, p = p)
}

# The mixture of dense posteriors, written down
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
  list(mean = mean, cov = cov, noise = sum(w * exp(points[4, ])))
}

test_that("it is the mixture of posteriors at sigma points, weighted by the evidence", {
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

test_that("near rows, points and subsamples have their own posteriors at these", {
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

test_that("small designs: 95 % intervals of rows that were left out contain nine in ten and more", {
  inside <- vapply(seq_len(24), function(i) {
    fit <- with_seed(i, suppressWarnings(pfdtc(yield ~ block + N + P + K, npk[-i, ])))
    vapply(c(FALSE, TRUE), function(uncertain) {
      band <- predict(fit, npk[i, ], interval = "prediction", hyper_uncertainty = uncertain)
      band[, "lwr"] <= npk$yield[i] && npk$yield[i] <= band[, "upr"]
    }, NA)
  }, logical(2))
  expect_gte(mean(inside[2, ]), 0.9)
  expect_gt(sum(inside[2, ]), sum(inside[1, ]))
})

test_that("what it cannot be asked together with is said", {
  fit <- learned_by_hand()$fit
  expect_input_error(predict(fit, hyper_uncertainty = 2), "hyper_uncertainty")
  expect_input_error(predict(fit, hyper_uncertainty = TRUE, interval = "conformal"), "hyper_uncertainty")
  expect_input_error(predict(fit, hyper_uncertainty = TRUE, type = "loo"), "hyper_uncertainty")
  expect_input_error(predict(fit, hyper_uncertainty = TRUE, interval = "credible", certified = TRUE),
                     "hyper_uncertainty")
  expect_input_error(predict(fit_cars(), hyper_uncertainty = TRUE), "Nothing was learned")
})
