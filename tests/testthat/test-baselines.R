# Compares each method at given points and hyperparameters with its dense transcription, tests their relations, and
# tests learning.

test_that("mean, covariance and evidence are the dense transcription's", {
  for (p in problems()) {
    for (method in all_methods) {
      fit <- fit_by(method, p)
      ref <- ref_of(fit, p)
      expect_s3_class(fit, c(method, "gp_fit"), exact = TRUE)
      if (method %in% c("gp_dtc", "gp_sor", "gp_fitc")) expect_false(fit$moved)
      expect_posterior(fit, ref, p$new, 1e-8, paste(method, label_of(p)))
      expect_close(fit$evidence, ref$evidence, 1e-8, paste(method, label_of(p)))
    }
  }
})

test_that("centre, scale, offset and merged rows are undone", {
  p <- problem("matern52", n = 16, d = 2, m = 5, weighted = TRUE, seed = 3)
  again <- c(1:16, 2, 9, 9, 4)
  q <- utils::modifyList(p, list(x = p$x[again, ], y = 40 + 5 * c(p$y, 1, -1, 0, 2), weights = p$weights[again],
                                 noise = 25 * p$noise))
  q$kernel$variance <- 25 * p$kernel$variance
  offset <- seq(-3, 3, length.out = 20)
  for (method in all_methods) {
    fit <- fit_by(method, q, offset = offset, center = TRUE, scale = TRUE)
    expect_identical(is.null(fit$data$group), method %in% c("gp_fitc", "gp_subsample"))
    centred <- utils::modifyList(q, list(y = q$y - offset - fit$center))
    expect_equal(fit$center, stats::weighted.mean(q$y - offset, q$weights))
    ref <- ref_of(fit, centred)
    expect_posterior(fit, ref, q$new, 1e-8, method, fit$center)
    expect_close(fit$evidence, ref$evidence, 1e-8, method)
    expect_equal(nobs(fit), if (method == "gp_subsample") fit$m else 20)
    expect_equal(unname(fitted(fit)), unname(predict(fit, q$x)) + offset)
  }
})

test_that("with the rows as points every method is exact", {
  for (p in quick(lapply(profiles, problem, weighted = TRUE))) {
    exact <- fit_by("gp_exact", p)
    ref <- ref_of(exact, p)
    for (method in setdiff(all_methods, c("gp_exact", "gp_subsample"))) {
      fit <- fit_by(method, p, inducing = p$x)
      # SoR with points at all rows is exact at these rows only, because its prior variance is too small elsewhere.
      new <- if (method == "gp_sor") p$x else p$new
      expect_posterior(fit, ref, new, 1e-7, paste(method, label_of(p)))
      expect_close(fit$evidence, exact$evidence, 1e-7, method)
    }
    whole <- fit_by("gp_subsample", p, m = nrow(p$x))
    expect_posterior(whole, ref, p$new, 1e-8, label_of(p))
    expect_close(whole$evidence, exact$evidence, 1e-10)
  }
})

test_that("SoR and DTC share the mean, and SoR's variance is not above DTC's nor the exact one", {
  for (p in problems()) {
    dtc <- predict(fit_by("gp_dtc", p), p$new, se.fit = TRUE)
    sor <- predict(fit_by("gp_sor", p), p$new, se.fit = TRUE)
    exact <- predict(fit_by("gp_exact", p), p$new, se.fit = TRUE)
    expect_equal(sor$fit, dtc$fit)
    expect_true(all(sor$se.fit <= dtc$se.fit))
    expect_true(all(sor$se.fit <= exact$se.fit + 1e-10))
    expect_lt(sor$se.fit[[6]], 1e-15)     # far from all points SoR has no variance
  }
})

test_that("FITC is DTC if the points are the rows' inputs, and the prior if they are far away", {
  p <- problem("matern32", n = 12, m = 4)
  p$x <- p$z[rep(1:4, 3), ]
  fitc <- predict(fit_by("gp_fitc", p), p$new, se.fit = TRUE)
  expect_equal(fitc, predict(fit_by("gp_dtc", p), p$new, se.fit = TRUE), tolerance = 1e-8)
  # With points far from the rows, FITC is the prior, but its evidence counts k(x, x) as noise.
  q <- utils::modifyList(p, list(z = p$z + 1e4))
  fit <- fit_by("gp_fitc", q)
  expect_equal(unname(predict(fit, q$new)), numeric(6))
  expect_equal(fit$evidence, sum(stats::dnorm(q$y, sd = sqrt(q$noise + q$kernel$variance), log = TRUE)))
})

test_that("weights of 2 are doubled rows, for all but FITC and the subsample", {
  p <- problem("matern32", n = 11, m = 4)
  doubled <- utils::modifyList(p, list(x = rbind(p$x, p$x), y = c(p$y, p$y)))
  weighted <- utils::modifyList(p, list(weights = rep(2, 11)))
  for (method in setdiff(all_methods, "gp_subsample")) {
    one <- predict(fit_by(method, weighted), p$new, se.fit = TRUE)
    two <- predict(fit_by(method, doubled), p$new, se.fit = TRUE)
    if (method == "gp_fitc") {
      expect_gt(max(abs(one$se.fit - two$se.fit)), 1e-6)
    } else {
      expect_equal(one, two, tolerance = 1e-10)
    }
  }
  half <- predict(fit_by("gp_exact", utils::modifyList(p, list(weights = rep(0:1, c(4, 7))))), p$new)
  rest <- utils::modifyList(p, list(x = p$x[5:11, ], y = p$y[5:11]))
  expect_equal(half, predict(fit_by("gp_exact", rest), p$new))
})

test_that("block size, threads, memory and the order of the rows change nothing beyond rounding", {
  p <- problem("matern52", n = 40, m = 6, weighted = TRUE)
  show <- function(p, method) {
    fit <- fit_by(method, p)
    c(predict(fit, p$new, se.fit = TRUE, full_cov = TRUE), elbo = fit$evidence)
  }
  order <- 40:1
  moved <- utils::modifyList(p, list(x = p$x[order, ], y = p$y[order], weights = p$weights[order],
                                     rows = 41 - p$rows))
  for (method in all_methods) {
    base <- show(p, method)
    for (now in list(list(pfdtc.block = 3, pfdtc.memory = 0), list(pfdtc.block = 7, pfdtc.threads = 2L))) {
      control <- pfdtc_control(maxit = 0, jitter = 1e-12, progress = FALSE, block = now$pfdtc.block,
                               threads = if (is.null(now$pfdtc.threads)) 1L else 2L, memory = 2^20)
      fit <- fit_by(method, p, control = control)
      again <- with_options(now, c(predict(fit, p$new, se.fit = TRUE, full_cov = TRUE), elbo = fit$evidence))
      expect_equal(again, base, tolerance = 1e-10)
    }
    if (method != "gp_subsample") expect_equal(show(moved, method), base, tolerance = 1e-10)
  }
})

test_that("a subsample is drawn from the rows as given, and weights of 0 are never drawn", {
  p <- problem(n = 12, seed = 4)
  weights <- rep(c(0, 1), 6)
  fit <- fit_by("gp_subsample", p, weights = weights, m = 6, center = TRUE, scale = TRUE)
  expect_equal(sort(fit$x[, 1]), sort(p$x[weights == 1, 1]))
  expect_equal(fit$center, mean(p$y[weights == 1]))
  expect_identical(fit$m, 6L)
  expect_null(fit$inducing)
  expect_input_error(fit_by("gp_subsample", p, m = 13), "m")
  expect_identical(with_seed(3, gp_subsample(dist ~ speed, cars, m = 9, kernel = kernel_se(5, 500), noise = 200,
                                             hyper = "fixed"))$chosen, with_seed(3, sample.int(50, 9)))
})

## What is learned -----------------------------------------------------------------------------------

learned <- function(by, ..., seed = 1) {
  with_seed(seed, get(by)(dist ~ speed, cars, ..., control = pfdtc_control(maxit = 60, progress = FALSE)))
}

test_that("hyper = \"joint\" raises the evidence or its bound above the pilot's", {
  for (kernel in quick(list(kernel_se(), kernel_matern(5 / 2)))) {
    exact <- learned("gp_exact", kernel = kernel)
    best <- learned("gp_exact", kernel = kernel, hyper = "joint")
    expect_gte(best$evidence, exact$evidence - 1e-8)
    vfe <- learned("gp_vfe", kernel = kernel, m = 6)
    joint <- learned("gp_vfe", kernel = kernel, m = 6, hyper = "joint")
    expect_gte(joint$evidence, vfe$evidence - 1e-6)
    expect_lte(joint$evidence, best$evidence + 1e-4)
    expect_identical(best$df, 3L)
    expect_gt(best$evaluations[["objective"]], 1)
    expect_gt(best$evaluations[["pilot"]], 1)
    expect_s3_class(best$trace, "data.frame")
  }
})

test_that("the exact evidence is at a maximum in every hyperparameter", {
  best <- learned("gp_exact", kernel = kernel_matern(3 / 2), hyper = "joint")
  at <- function(theta) {
    gp_exact(dist ~ speed, cars, kernel = kernel_matern(3 / 2, exp(theta[1]), exp(theta[2])), noise = exp(theta[3]),
             hyper = "fixed")$evidence
  }
  theta <- log(coef(best))
  expect_equal(at(theta), best$evidence, tolerance = 1e-10)
  slope <- central_differences(at, theta, 1e-4)
  expect_lt(max(abs(slope)), 0.02)      # change of the log evidence per unit of log theta
})

test_that("joint VFE with the rows as points maximises the exact evidence; fixed values stay", {
  x <- with_seed(2, stats::runif(14, 0, 5))
  y <- sin(x) + with_seed(3, stats::rnorm(14, sd = 0.2))
  control <- pfdtc_control(maxit = 100, progress = FALSE)
  exact <- with_seed(1, gp_exact(x, y, hyper = "joint", control = control))
  vfe <- with_seed(1, gp_vfe(x, y, m = 14, hyper = "joint", control = control))
  expect_equal(vfe$evidence, exact$evidence, tolerance = 1e-3)
  held <- pfdtc_control(maxit = 30, progress = FALSE, fix = "noise")
  for (method in list(gp_vfe, gp_exact)) {
    fit <- with_seed(1, method(x, y, noise = 0.07, hyper = "joint", control = held))
    expect_equal(fit$noise, 0.07)
    expect_identical(fit$df, 2L)
  }
})

test_that("optimised points lower minus the ELBO, and keep the hyperparameters given", {
  p <- problem("matern52", n = 40, d = 1, m = 5, seed = 6)
  start <- fit_by("gp_vfe", p)
  fit <- fit_by("gp_vfe", p, control = pfdtc_control(maxit = 50, progress = FALSE))
  expect_gt(fit$evidence, start$evidence)
  expect_equal(coef(fit), coef(start))
  expect_equal(fit$objective, -fit$evidence, tolerance = 1e-8)      # nothing centred or scaled
  exact <- fit_by("gp_exact", p)
  expect_lt(fit$evidence, exact$evidence)
})

## Arguments -------------------------------------------------------------------------------------------

test_that("arguments that do not apply are refused by name", {
  same <- list(kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  call <- function(by, ...) do.call(by, utils::modifyList(c(list(dist ~ speed, quote(cars)), same), list(...)))
  for (method in c("gp_dtc", "gp_sor", "gp_fitc", "gp_subsample")) {
    expect_input_error(call(method, hyper = "joint"), "hyper")
  }
  expect_input_error(call("gp_exact", m = 5), "m")
  expect_input_error(call("gp_exact", inducing = "greedy"), "inducing")
  expect_input_error(call("gp_subsample", inducing = "greedy"), "inducing")
  expect_input_error(call("gp_vfe", aux = aux_sor()), "aux")
  expect_input_error(call("gp_vfe", hypre = "fixed"), "hypre")
  expect_input_error(gp_vfe(cars$speed, cars$dist, kernle = kernel_se()), "kernle")
  expect_input_error(gp_exact(cars$speed, cars$dist, m = 5), "m")
  expect_input_error(call("gp_vfe", m = 51), "m")
  expect_input_error(call("gp_sor", m = 0), "m")
  expect_input_error(call("gp_dtc", inducing = do.call(gp_exact, c(list(dist ~ speed, cars), same))), "inducing")
  expect_input_error(gp_exact(dist ~ speed, cars, hyper = "fixed"), "kernel")
  expect_input_error(gp_exact(1:3, c(1, NA, 2)), "y")
})

test_that("a fit's points and hyperparameters are a start", {
  vfe <- learned("gp_vfe", m = 5)
  dtc <- gp_dtc(dist ~ speed, cars, inducing = vfe, hyper = "fixed")
  expect_identical(dtc$inducing, vfe$inducing)
  expect_equal(coef(dtc), coef(vfe))
  expect_equal(predict(dtc, cars), predict(vfe, cars), tolerance = 1e-8)
})

test_that("large memory is announced, and too much is refused before it is allocated", {
  n <- 1e5
  x <- seq_len(n) / n
  fixed <- list(kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  time <- system.time(expect_input_error(do.call(gp_exact, c(list(x, x), fixed)), "memory"))
  expect_lt(time[["elapsed"]], 5)
  sixty <- x[1:60]
  with_options(list(pfdtc.max_memory = 8 * 60^2), {
    expect_silent(do.call(gp_exact, c(list(sixty, sixty), fixed)))
    expect_input_error(gp_exact(sixty, sin(60 * sixty), hyper = "joint"), "memory")     # takes two such matrices
    expect_input_error(do.call(gp_subsample, c(list(x, x, m = 61), fixed)), "memory")
    expect_silent(do.call(gp_subsample, c(list(x[1:1000], x[1:1000], m = 60), fixed)))
  })
  local_message <- tryCatch(announce_memory(1e9, 11180), message = conditionMessage)
  expect_match(local_message, "11180")
  expect_silent(announce_memory(1e6, 100))
})

## What can be done with them --------------------------------------------------------------------------

fits_of_cars <- function(..., data = cars) {
  same <- list(kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", control = fixed_control(), ...)
  one <- function(method) {
    size <- if (method != "gp_exact") list(m = 5)
    with_seed(2, do.call(method, c(list(dist ~ speed, quote(cars)), size, same)))
  }
  sapply(all_methods, one, simplify = FALSE)
}

test_that("fits without their data predict the same, and survive saveRDS()", {
  full <- fits_of_cars()
  slim <- fits_of_cars(keep_data = FALSE)
  new <- data.frame(speed = c(3, 11.5, 30))
  path <- tempfile(fileext = ".rds")
  on.exit(unlink(path))
  for (method in all_methods) {
    p <- predict(full[[method]], new, se.fit = TRUE, interval = "prediction", full_cov = TRUE)
    expect_identical(predict(slim[[method]], new, se.fit = TRUE, interval = "prediction", full_cov = TRUE), p)
    saveRDS(slim[[method]], path)
    expect_identical(predict(readRDS(path), new, se.fit = TRUE, interval = "prediction", full_cov = TRUE), p)
    expect_null(slim[[method]]$data)
    expect_input_error(predict(slim[[method]]), "keep_data")
    expect_false(any(vapply(slim[[method]], is.environment, NA)))
  }
})

test_that("print(), summary() and other methods work for every method of fitting", {
  titles <- c(pfdtc = "pF-DTC", gp_vfe = "VFE", gp_dtc = "DTC", gp_sor = "SoR", gp_fitc = "FITC",
              gp_subsample = "subsample", gp_exact = "exact posterior")
  fits <- fits_of_cars()
  for (method in all_methods) {
    fit <- fits[[method]]
    printed <- capture.output(print(fit))
    expect_match(printed[1], titles[[method]], fixed = TRUE)
    expect_identical(any(grepl("^Posterior", printed)), method %in% sparse_methods)
    expect_output(print(summary(fit)), "RMSE")
    expect_length(fitted(fit), 50)
    expect_equal(unname(residuals(fit)), cars$dist - unname(fitted(fit)))
    expect_identical(dim(simulate(fit, 2, seed = 1)), c(50L, 2L))
    expect_silent(draw_nowhere(plot(fit)))
    if (requireNamespace("generics", quietly = TRUE)) {
      expect_identical(nrow(generics::glance(fit)), 1L)
      expect_identical(nrow(generics::tidy(fit)), 3L)
    }
  }
  expect_output(print(fits$gp_subsample), "5 random rows")
  # With `maxit` = 0 the points are not moved, and the pF divergence is not minimised.
  unmoved <- pfdtc(dist ~ speed, cars, m = 5, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed",
                   control = pfdtc_control(maxit = 0))
  expect_output(print(unmoved), "inducing points (DTC)", fixed = TRUE)
  joint <- learned("gp_exact", hyper = "joint")
  expect_output(print(joint), "log marginal likelihood")
  expect_output(print(learned("gp_vfe", m = 4, hyper = "joint")), "inducing points")
})

test_that("figures and summaries work for variables of every kind, with and without the data", {
  data <- small_data(20)
  for (method in c("gp_exact", "gp_subsample", "gp_vfe")) {
    for (keep in c(TRUE, FALSE)) {
      size <- if (method != "gp_exact") list(m = 7)
      fit <- with_seed(1, do.call(method, c(list(y ~ a + f + l, quote(data)), size, list(
        kernel = kernel_se(1.3, 2), noise = 0.4, hyper = "fixed", keep_data = keep, control = fixed_control()))))
      expect_silent(draw_nowhere(plot(fit, n = 5)))
      expect_silent(capture.output(print(summary(fit))))
    }
  }
})

test_that("logLik() has a lower bound of the exact evidence where there is one", {
  fits <- fits_of_cars()
  exact <- as.numeric(logLik(fits$gp_exact))
  for (method in all_methods) {
    l <- logLik(fits[[method]])
    expect_s3_class(l, "logLik")
    expect_equal(as.numeric(l), fits[[method]]$evidence)
    lower <- attr(l, "lower")
    if (method %in% c("gp_fitc", "gp_sor", "gp_subsample")) {
      expect_null(lower)
    } else {
      expect_equal(lower, as.numeric(l))
      expect_lte(lower, exact)
    }
  }
})
