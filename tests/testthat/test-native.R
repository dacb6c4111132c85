test_that("block, threads and memory come from a control, or from options", {
  plain <- with_options(list(pfdtc.threads = 2L, pfdtc.memory = 1e6, pfdtc.block = NULL), engine_control(2000))
  expect_identical(plain[c("block", "threads", "memory")], list(block = 512L, threads = 2L, memory = 1e6))
  chosen <- engine_control(2000, pfdtc_control(block = 100, threads = 2, memory = 7))
  expect_identical(chosen[c("block", "threads", "memory")], list(block = 100L, threads = 2L, memory = 7))
  # threads are worth their start for some hundred rows each, and blocks never longer than the rows
  expect_identical(engine_control(300, pfdtc_control(threads = 2))$threads, 1L)
  expect_identical(engine_control(600, pfdtc_control(threads = 8))[c("block", "threads")],
                   list(block = 300L, threads = 2L))
  expect_identical(engine_control(1, pfdtc_control(threads = 2))[c("block", "threads")], list(block = 1L, threads = 1L))
  expect_identical(engine_control(10, pfdtc_control(block = 1e6))$block, 10L)
  for (bad in list(list(pfdtc.threads = 0), list(pfdtc.memory = -1), list(pfdtc.block = "a"))) {
    expect_input_error(with_options(bad, engine_control(10)), names(bad))
  }
})

test_that("every status has a sentence of its own", {
  sentences <- vapply(1:4, status_sentence, "")
  expect_true(all(nchar(sentences) > 15))
  expect_identical(anyDuplicated(sentences), 0L)
  expect_false(any(grepl("[.]$", sentences)))
  ok <- list(status = 0L, value = 3)
  expect_identical(stop_on_status(ok, "Nothing"), ok)
  expect_error(stop_on_status(list(status = 1L), "The posterior"),
               paste0("The posterior failed: ", status_sentence(1L)), fixed = TRUE, class = "pfdtc_error_numerical")
  failed <- as_value(list(status = 1L, value = 5))
  expect_identical(failed, list(value = Inf, reason = status_sentence(1L), status = 1L))
})

test_that("a factorisation that fails is a value for the optimiser and a condition for users", {
  z <- matrix(c(1, 1, 1, 1), 2)
  x <- matrix(1:8 / 8, 4)
  kernel <- complete_kernel(kernel_se(1, 1), x)
  result <- native_vfe(z, x, 1:4 / 4, NULL, kernel, 0.1, 0)
  expect_identical(result$value, Inf)
  expect_match(result$reason, "not positive definite")
  expect_error(vfe_objective(z, x, 1:4, kernel, 0.1), class = "pfdtc_error_numerical")
  # the ladder of jitters ends where it is told to
  expect_error(native_posterior(z, x, 1:4 / 4, NULL, kernel, 0.1, jitter = 0, most = 0), "posterior",
               class = "pfdtc_error_numerical")
  expect_gt(native_posterior(z, x, 1:4 / 4, NULL, kernel, 0.1, jitter = 0)$jitter, 0)
})

test_that("the kernel goes to the engine with columns from 0", {
  x <- matrix(0, 1, 3, dimnames = list(NULL, c("a", "b", "c")))
  kernel <- complete_kernel(kernel_matern(1 / 2, c(2, 3), 1, inputs = c("c", "a")), x)
  expect_identical(engine_kernel(kernel), list(profile = "matern12", columns = c(2L, 0L), lengthscale = c(2, 3),
                                               variance = 1))
})

test_that("scratch that is handed in gives the same numbers", {
  p <- problem(n = 50, m = 6, seed = 4)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  plain <- native_vfe(p$z, p$x, p$y, NULL, kernel, p$noise, 1e-10)
  scratch <- objective_scratch(p$z, p$x, kernel)
  for (i in 1:2) expect_identical(native_vfe(p$z, p$x, p$y, NULL, kernel, p$noise, 1e-10, scratch = scratch), plain)
  nu <- package_nu(p, aux_sor(rows = p$rows))
  plain <- native_pf(p$z, p$x, p$y, NULL, kernel, p$noise, nu, 1e-10)
  scratch <- objective_scratch(p$z, p$x, kernel, nu)
  scratch[] <- NaN
  expect_identical(native_pf(p$z, p$x, p$y, NULL, kernel, p$noise, nu, 1e-10, scratch = scratch), plain)
})

test_that("forked processes can use a fit of a threaded parent, and fit anew", {
  skip_on_os("windows")
  skip_if_not_installed("parallel")
  p <- problem(n = 700, m = 5, seed = 2)
  fit_it <- function() {
    with_seed(3, pfdtc(p$x, p$y, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3, hyper = "fixed", inducing = p$z,
                       aux = aux_sor(rows = 1:20), control = pfdtc_control(maxit = 2, threads = 2, progress = FALSE)))
  }
  fit <- fit_it()
  with_options(list(pfdtc.threads = 2L), {
    here <- predict(fit, p$x, se.fit = TRUE)
    there <- parallel::mclapply(1:2, function(i) predict(fit, p$x, se.fit = TRUE), mc.cores = 2)
  })
  for (one in there) expect_equal(one, here, tolerance = 1e-12)
  again <- parallel::mclapply(1:2, function(i) predict(fit_it(), p$x, se.fit = TRUE), mc.cores = 2)
  for (one in again) expect_equal(one, here, tolerance = 1e-9)
})
