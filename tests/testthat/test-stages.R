# Stages that a time limit ends; interrupts are in test-interrupt.R.

test_that("R's time limit ends a fit as a whole, with the best so far", {
  data <- smooth_data(1000)                      # its pilot takes some tenths of a second at least
  limited <- function() {
    on.exit(setTimeLimit())
    setTimeLimit(elapsed = 0.1, transient = TRUE)
    suppressWarnings(fit_learned(data, maxit = 200))
  }
  fit <- limited()
  expect_identical(fit$pilot$convergence, 2L)
  expect_match(fit$pilot$message, "time limit")
  expect_true(all(is.finite(predict(fit, data$new))))
  # R forgets a limit that was reached: the fit must not go on as if there had been none
  expect_identical(fit$convergence, 2L)
  expect_identical(names(fit$evaluations), "pilot")
})

test_that("R's time limit ends learning by the evidence, wherever it comes, with the best so far", {
  data <- smooth_data(400)
  whole <- system.time(fit_learned(data, hyper = "evidence", m = NULL, control = list(restarts = 3)))[["elapsed"]]
  for (share in c(0.02, 0.1, 0.4)) {
    for (kernel in list(NULL, kernel_matern(5 / 2))) {
      limited <- function() {
        on.exit(setTimeLimit())
        setTimeLimit(elapsed = share * whole, transient = TRUE)
        fit_learned(data, hyper = "evidence", m = NULL, kernel = kernel, control = list(restarts = 3))
      }
      warned <- FALSE
      fit <- withCallingHandlers(limited(), pfdtc_warning_convergence = function(w) {
        warned <<- TRUE
        invokeRestart("muffleWarning")
      })
      # later limits may be met, on a machine that has become faster
      if (is.null(kernel) && share < 0.2) expect_true(warned, info = share)
      expect_identical(fit$convergence, if (warned) 2L else 0L)
      expect_identical(fit$posterior, "exact")
      # a limit that was not met leaves the choice whole, which may be a sum
      if (warned || !is.null(kernel)) expect_true(fit$kernel$profile %in% c(profiles, kernel$profile))
      if (!is.null(kernel)) expect_identical(fit$kernel$profile, "matern52")
      p <- predict(fit, data$new, se.fit = TRUE)
      expect_true(all(is.finite(unlist(p))) && all(p$se.fit > 0))
      expect_output(print(summary(fit)), if (warned) "ended|starts" else "starts")
    }
  }
})
