# Fits with `tol`: n = 120, lengthscales that need 10 to 40 points, and by default given hyperparameters.
tol_data <- function(n = 120, seed = 1) {
  with_seed(seed, {
    x <- matrix(stats::runif(2 * n), n)
    list(x = x, y = 3 + sin(6 * x[, 1]) + x[, 2]^2 + stats::rnorm(n) / 10)
  })
}
tol_given <- list(kernel = kernel_se(c(0.3, 0.6), 1), noise = 0.02, hyper = "fixed")

fit_tol <- function(tol, d = tol_data(), ..., control = list(), seed = 1) {
  args <- list(x = d$x, y = d$y, tol = tol, control = do.call(pfdtc_control, c(list(progress = FALSE), control)))
  args <- c(args, tol_given)
  new <- list(...)
  args[names(new)] <- new
  with_seed(seed, do.call(pfdtc, args))
}

# Returns the fit with default arguments, which is made once for all tests that only read it.
tol_fits <- new.env()
tol_fit <- function(tol) {
  key <- format(tol)
  if (is.null(tol_fits[[key]])) tol_fits[[key]] <- fit_tol(tol)
  tol_fits[[key]]
}

# Returns the two errors that `tol` limits, against the exact GP with the fit's hyperparameters, at the used rows.
actual_error <- function(fit, d = tol_data(), quantile = 1, ...) {
  exact <- gp_exact(d$x, d$y, kernel = fit$kernel, noise = fit$noise, hyper = "fixed", ...)
  e <- predict(exact, d$x, se.fit = TRUE)
  p <- predict(fit, d$x, se.fit = TRUE)
  at <- function(v) sort(v)[max(1, ceiling(quantile * length(v)))]
  c(mean = at(abs(p$fit - e$fit)) / fit$sd_y, sd = at(abs(e$se.fit / p$se.fit - 1)))
}

# Expects that the certified errors hold, and meet `tol`.
expect_certified <- function(fit, d = tol_data(), ..., info = NULL) {
  claimed <- c(mean = fit$tol$mean, sd = fit$tol$sd)
  expect_true(fit$tol$met, info = info)
  expect_true(all(claimed <= fit$tol$asked), info = info)
  expect_true(all(actual_error(fit, d, fit$tol$quantile, ...) <= claimed), info = info)
}

unreached <- function(code) {
  said <- NULL
  fit <- withCallingHandlers(code, pfdtc_warning_convergence = function(w) {
    said <<- c(said, conditionMessage(w))
    invokeRestart("muffleWarning")
  })
  expect_length(said, 1)
  list(fit = fit, said = said)
}
