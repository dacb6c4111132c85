# Tests fits from files and from earlier versions, and damaged fits.

fits_of_0.1.0 <- readRDS("fits-0.1.0.rds")
old_newdata <- function(fit) if (fit$frame$method == "formula") data.frame(speed = c(5, 12.5, 30)) else c(5, 12.5, 30)

test_that("fits that version 0.1.0 saved have the same predictions", {
  expect_setequal(names(fits_of_0.1.0), c("pfdtc", "gp_exact", "gp_fitc"))
  for (name in names(fits_of_0.1.0)) {
    old <- fits_of_0.1.0[[name]]
    expect_identical(as.character(old$fit$version), "0.1.0")
    p <- predict(old$fit, old_newdata(old$fit), se.fit = TRUE)
    # Other machines and BLAS libraries round differently: with a jitter of 1e-12 in k(Z, Z), means differ by this much.
    expect_equal(unname(p$fit), unname(old$predicted$fit), tolerance = 1e-9, label = name)
    expect_equal(unname(p$se.fit), unname(old$predicted$se.fit), tolerance = 1e-7, label = name)
  }
})

test_that("fits saved by 0.1.0 work with the other functions, also together with new fits", {
  for (name in names(fits_of_0.1.0)) {
    fit <- fits_of_0.1.0[[name]]$fit
    expect_output(print(fit), "50 rows", label = name)
    expect_output(print(summary(fit)), "RMSE", label = name)
    expect_length(residuals(fit), 50L)
    expect_true(is.finite(logLik(fit)))
    expect_identical(dim(simulate(fit, 2, seed = 1)), c(50L, 2L))
    certificate <- suppressMessages(certify(fit, old_newdata(fit)))
    expect_true(all(is.finite(certificate$mean_error)))
    exact <- gp_exact(dist ~ speed, cars, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
    p <- predict(exact, data.frame(speed = c(5, 12.5, 30)), se.fit = TRUE)
    expect_true(all(certificate$mean_lower <= p$fit & p$fit <= certificate$mean_upper))
    expect_gte(kl_divergence(fit, exact), 0)
    again <- pfdtc(dist ~ speed, cars, m = 3,
                   kernel = fit$kernel, noise = fit$noise, hyper = "fixed", control = fixed_control())
    again$reference <- reference(again)
    certificate <- certify(fit, old_newdata(fit), reference = again$reference)
    expect_true(all(certificate$mean_lower <= p$fit & p$fit <= certificate$mean_upper))
  }
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_silent(plot(fits_of_0.1.0$pfdtc$fit))
})

test_that("a fit of version 0.1.0 without its data predicts, and the error about a new reference says why", {
  fit <- fits_of_0.1.0$pfdtc$fit
  today <- reference(fit)
  fit["data"] <- list(NULL)
  expect_equal(unname(predict(fit, old_newdata(fit))), unname(fits_of_0.1.0$pfdtc$predicted$fit), tolerance = 1e-9)
  expect_input_error(certify(fit, old_newdata(fit), reference = today), "0.1.0")
})

test_that("every part of a fit that later code relies on is checked first; errors name the argument", {
  d <- smooth_data(30)
  sparse <- fit_fixed(d, maxit = 2)
  dense <- gp_exact(d$x, d$y, kernel = sparse$kernel, noise = sparse$noise, hyper = "fixed")
  damage <- list(
    function(f) `[[<-`(f, "method", "gp_other"),
    function(f) { f$kernel$inputs <- 1:9; f },
    function(f) { f$kernel$inputs <- c(1L, -1L); f },
    function(f) { f$kernel$inputs <- c(1, NA); f },
    function(f) { f$kernel$lengthscale <- 1; f },
    function(f) { f$kernel$variance <- "a"; f },
    function(f) { f$kernel <- unclass(f$kernel); f },
    function(f) { f$kernel$profile <- 1; f },
    function(f) { f$noise <- -1; f },
    function(f) { f$scale <- 0; f },
    function(f) { f$scale <- NULL; f },
    function(f) { f$center <- NA; f },
    function(f) { f$frame <- NULL; f },
    function(f) { f$factors[[if (is.null(f$inducing)) "model" else "L"]] <- diag(3); f },
    function(f) { if (is.null(f$inducing)) f$factors$weights <- 1 else storage.mode(f$factors$L) <- "integer"; f },
    function(f) { f$factors <- NULL; f },
    function(f) { f$data$x <- f$data$x[, 1, drop = FALSE]; f },
    function(f) { f$data$y <- f$data$y[-1]; f },
    function(f) { f$data$weights <- 1; f },
    function(f) { f$data$group <- rep(99L, f$data$n); f },
    function(f) { f$data$n <- 2^31; f },
    function(f) { f$data$group <- c(1L, NA); f },
    function(f) { f$data$shift <- 1; f },
    function(f) { f$data$response <- 1; f },
    function(f) { f$data$prior_weights <- 1; f },
    function(f) { f$data$y[3] <- NaN; f },
    function(f) { f$reference <- list(m = 3); f },
    function(f) { f$control <- list(); f },
    function(f) { f$signature$sums[3] <- NA; f },
    function(f) { f$signature <- NULL; f },
    function(f) { f$nobs <- NULL; f },
    function(f) {
      points <- if (is.null(f$inducing)) "x" else "inducing"
      f[[points]] <- f[[points]][, 1, drop = FALSE]
      f
    },
    function(f) if (is.null(f$inducing)) { f$x <- f$x[-1, ]; f } else { f$inducing <- f$inducing[-1, ]; f },
    function(f) if (is.null(f$inducing)) { f$factors$alpha <- 1; f } else { f$factors$beta <- 1; f },
    function(f) structure("text", class = class(f)))
  expect_silent(check_fit(sparse, "fit"))
  expect_silent(check_fit(dense, "fit"))
  for (i in seq_along(damage)) for (whole in list(sparse, dense)) {
    fit <- damage[[i]](whole)
    expect_input_error(predict(fit, d$new), "object")
    expect_input_error(certify(fit, d$new), "fit")
    expect_input_error(simulate(fit, 1, newdata = d$new), "object")
    expect_input_error(print(fit), "x")
    expect_input_error(kl_divergence(sparse, structure(fit, class = class(dense))), "exact")
  }
})

test_that("a damaged reference is refused by the name of the argument", {
  d <- smooth_data(30)
  fit <- fit_fixed(d, maxit = 2)
  good <- with_seed(1, reference(fit, m2 = 12))
  expect_s3_class(certify(fit, d$new, reference = good), "pfdtc_certificate")
  damage <- list(
    function(r) { r$norms$w_E <- NULL; r },
    function(r) { r$norms$growth <- NaN; r },
    function(r) { r$norms$Psi <- r$norms$Psi[-1, ]; r },
    function(r) { r$norms <- 1; r },
    function(r) { r$factors$yy <- -1; r },
    function(r) { r$correction <- list(v = 1); r },
    function(r) { r$jitter <- NA; r })
  for (i in seq_along(damage)) {
    expect_input_error(certify(fit, d$new, reference = damage[[i]](good)), "reference")
    expect_input_error(refine(fit, d$new, 1e-3, reference = damage[[i]](good)), "reference")
  }
})
