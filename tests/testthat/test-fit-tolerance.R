test_that("mean and sd of a fit that met tol are as close to the exact GP's as the fit says", {
  for (tol in quick(c(0.2, 0.05, 0.01, 1e-4))) expect_certified(tol_fit(tol), info = format(tol))
  kernels <- list(kernel_matern(5 / 2, 0.5, 1), kernel_matern(3 / 2, 0.5, 1), kernel_matern(1 / 2, 2, 1))
  d <- tol_data(60)
  for (kernel in quick(kernels)) expect_certified(fit_tol(0.1, d, kernel = kernel), d, info = kernel$label)
  expect_certified(fit_tol(0.02, center = FALSE, scale = FALSE), center = FALSE)
})

test_that("the actual error is close to the certified one", {
  fit <- tol_fit(0.05)
  expect_gt(max(actual_error(fit)), 0.9 * max(fit$tol$mean, fit$tol$sd))
})

test_that("weights, equal rows and rows of weight 0 are those of the exact GP", {
  d <- tol_data()
  w <- with_seed(2, stats::runif(120, 0.2, 3))
  expect_certified(fit_tol(0.05, weights = w), weights = w)
  w[1:30] <- 0
  fit <- fit_tol(0.05, weights = w)
  used <- list(x = d$x[-(1:30), ], y = d$y[-(1:30)])
  expect_certified(fit, used, weights = w[-(1:30)])
  twice <- list(x = d$x[c(1:120, 1:60), ], y = c(d$y, d$y[1:60] + 0.2))
  fit <- fit_tol(0.05, twice)
  expect_identical(nrow(fit$data$x), 120L)
  expect_certified(fit, twice)
})

test_that("the formula method does the same", {
  d <- tol_data()
  frame <- data.frame(y = d$y, a = d$x[, 1], b = d$x[, 2])
  fit <- with_seed(1, pfdtc(y ~ a + b, frame, tol = 0.05, kernel = tol_given$kernel, noise = 0.02, hyper = "fixed",
                            control = list(progress = FALSE)))
  expect_identical(unname(fit$inducing), unname(tol_fit(0.05)$inducing))
  fixed <- pfdtc(y ~ a + offset(5 * b), frame, tol = 0.05, kernel = kernel_se(0.3, 1), noise = 0.02, hyper = "fixed")
  p <- predict(fixed, frame, se.fit = TRUE)
  exact <- gp_exact(y ~ a + offset(5 * b), frame, kernel = kernel_se(0.3, 1), noise = 0.02, hyper = "fixed")
  expect_lte(max(abs(p$fit - predict(exact, frame))), fixed$tol$mean * stats::sd(d$y - 5 * d$x[, 2]))
})

test_that("fits with any start, auxiliary distribution and learned hyperparameters meet their certified tolerance", {
  only_nightly()
  for (start in quick(c("random", "kmeans"))) expect_certified(fit_tol(0.05, inducing = start), info = start)
  for (aux in quick(list(aux_sor(), aux_subset(20), aux_refresh(5), aux_reference(samples = 20)))) {
    expect_certified(fit_tol(0.05, aux = aux), info = format(aux))
  }
  for (hyper in c("pilot", "joint")) {
    d <- tol_data(60)
    fit <- fit_tol(0.05, d, kernel = kernel_se(), noise = NULL, hyper = hyper, control = list(maxit = 20))
    expect_identical(fit$df, 4L)
    expect_certified(fit, d, info = hyper)
  }
  expect_certified(fit_tol(0.05, control = list(optimise_rows = 50)))
})

test_that("a quantile limits less than the maximum, and is met", {
  whole <- tol_fit(0.05)
  most <- fit_tol(0.05, control = list(tol_quantile = 0.5))
  expect_lt(most$m, whole$m)
  expect_identical(most$tol$quantile, 0.5)
  expect_certified(most)
  expect_gt(max(actual_error(most)), 0.05)
  expect_identical(reached_by(c(3, 1, 2, NaN), 0.75), 3)
  expect_identical(reached_by(c(3, 1, 2, NaN), 1), Inf)
  expect_identical(reached_by(c(5, 1, 2), 1e-9), 1)
})

test_that("the number of points is at most 1.3 times the smallest of a scan, and falls with the demands", {
  only_nightly()
  m <- integer()
  for (tol in quick(c(0.1, 0.01, 1e-3))) {
    fit <- tol_fit(tol)
    m <- c(m, fit$m)
    meets <- function(m) {
      args <- c(list(tol_data()$x, tol_data()$y, m = m, control = pfdtc_control(progress = FALSE)), tol_given)
      max(actual_error(do.call(pfdtc, args))) <= tol
    }
    smaller <- seq_len(ceiling(fit$m / 1.3) - 1)
    expect_false(any(vapply(utils::tail(smaller, 6), meets, NA)), info = format(tol))
  }
  expect_false(is.unsorted(m, strictly = TRUE))
  expect_identical(range(fit$tol$tried$m[fit$tol$tried$met])[1], fit$m)
})

test_that("m is the largest number tried, and a warning says how many points would suffice", {
  free <- tol_fit(0.02)
  enough <- fit_tol(0.02, m = 60)
  expect_lte(enough$m, 60)
  expect_certified(enough)
  few <- unreached(fit_tol(0.02, m = 8))
  expect_identical(few$fit$m, 8L)
  expect_false(few$fit$tol$met)
  expect_gt(max(few$fit$tol$mean, few$fit$tol$sd), 0.02)
  expect_true(all(actual_error(few$fit) <= c(few$fit$tol$mean, few$fit$tol$sd)))
  expect_match(few$said, "`m`.*about [0-9]+ points")
  told <- as.integer(sub(".*about ([0-9]+) points.*", "\\1", few$said))
  expect_gt(told, 0.5 * free$m)
  expect_lt(told, 2 * free$m)
  expect_input_error(fit_tol(0.02, m = 500), "`m`")
})

test_that("a warning says that rounding or memory prevents tol, with the best fit and its certified error", {
  tiny <- unreached(fit_tol(1e-14, m = 120, control = list(maxit = 5)))
  expect_match(tiny$said, "rounding")
  expect_false(tiny$fit$tol$met)
  expect_lt(max(tiny$fit$tol$mean, tiny$fit$tol$sd), 1e-5)
  expect_gt(min(tiny$fit$tol$mean, tiny$fit$tol$sd), 1e-14)
  small <- unreached(with_options(list(pfdtc.max_memory = 2e5, pfdtc.kriging_rows = 0L), {
    fit_tol(0.01, m = 120, kernel = kernel_matern(3 / 2, 0.5, 1), control = list(maxit = 5))
  }))
  expect_match(small$said, "pfdtc.max_memory")
  expect_match(small$said, "refine()", fixed = TRUE)
  expect_false(small$fit$tol$met)
  expect_true(all(actual_error(small$fit) <= c(small$fit$tol$mean, small$fit$tol$sd)))
  expect_match(unreached(fit_tol(0.01, m = 120, control = list(jitter = 0.01, maxit = 20)))$said, "jitter")
})

test_that("a reference takes no more than its share of the memory", {
  for (n in c(10, 1e3, 1e4, 1e6)) {
    for (limit in c(1e3, 1e6, 2^32)) {
      m2 <- with_options(list(pfdtc.max_memory = limit), most_reference_points(n))
      bytes <- function(m2) 8 * m2 * (min(n, 20 * m2) + 8 * m2)
      expect_true(m2 == 1 || bytes(m2) <= limit / 4)
      expect_true(m2 == n || bytes(m2 + 1) > limit / 4)
    }
  }
})

test_that("all pairs of rows are used if the reference alone does not certify tol", {
  d <- with_seed(1, {
    x <- matrix(stats::runif(500))
    list(x = x, y = sin(6 * x[, 1]) + stats::rnorm(500) / 10)
  })
  fit <- with_options(list(pfdtc.max_memory = 4.2e6, pfdtc.kriging_rows = 0L), {
    fit_tol(0.01, d, m = 500, kernel = kernel_matern(3 / 2, 0.5, 1), noise = 0.01, control = list(maxit = 0))
  })
  expect_identical(fit$tol$effort, "tight")
  expect_certified(fit, d)
  expect_match(describe_tolerance(fit), "tight")
  again <- with_options(list(pfdtc.kriging_rows = 0L), certify(fit, d$x, effort = "tight"))
  expect_lte(max(again$mean_error), 1.001 * fit$tol$mean * fit$sd_y)
})

test_that("without iterations or time there is still a fit that meets tol, of more points", {
  whole <- tol_fit(0.02)
  for (control in list(list(maxit = 0), list(max_seconds = 0))) {
    fit <- fit_tol(0.02, control = control)
    expect_certified(fit)
    expect_gt(fit$m, whole$m)
  }
  # The fit meets tol at hyperparameters whose search ended early.
  d <- tol_data()
  expect_warning(pfdtc(d$x, d$y, tol = 0.1, control = list(max_seconds = 0)), "search for hyperparameters",
                 class = "pfdtc_warning_convergence")
})

test_that("set.seed() reproduces a fit", {
  drop_times <- function(fit) {
    fit[c("seconds", "trace")] <- NULL
    fit$tol[c("seconds", "tried")] <- NULL
    fit$reference$seconds <- NULL
    fit
  }
  a <- fit_tol(0.05, inducing = "random", seed = 3)
  expect_identical(drop_times(fit_tol(0.05, inducing = "random", seed = 3)), drop_times(a))
  expect_false(identical(fit_tol(0.05, inducing = "random", seed = 4)$inducing, a$inducing))
})

test_that("tol is a number between 0 and 1, of a response that varies, and chooses the points itself", {
  d <- tol_data()
  for (bad in list(0, -0.1, NA_real_, NaN, Inf, 1, 2, c(0.1, 0.2), "0.1", TRUE, numeric(), list(0.1))) {
    expect_input_error(fit_tol(bad), "`tol`")
    expect_input_error(pfdtc(dist ~ speed, cars, tol = bad), "`tol`")
  }
  for (bad in list(d$x[1:3, ], gp_dtc(d$x, d$y, m = 3, kernel = tol_given$kernel, noise = 0.02, hyper = "fixed"))) {
    expect_input_error(fit_tol(0.1, inducing = bad), "`inducing`")
  }
  constant <- list(x = d$x, y = rep(2, 120))
  expect_input_error(fit_tol(0.1, constant, scale = FALSE), "`tol`")
  one <- list(x = d$x[1, , drop = FALSE], y = 2)
  expect_input_error(fit_tol(0.1, one, scale = FALSE), "`tol`")
  expect_input_error(gp_vfe(d$x, d$y, tol = 0.1), "`tol`")
})

test_that("with the fit's reference certify() gives the same errors, also from a file and without the data", {
  d <- tol_data()
  statistics <- function(c) {
    c(mean = max(c$mean_error) / stats::sd(d$y), sd = max(1 - c$sd_lower / c$sd, c$sd_upper / c$sd - 1))
  }
  for (keep in c(TRUE, FALSE)) {
    fit <- fit_tol(0.05, keep_data = keep)
    file <- tempfile(fileext = ".rds")
    saveRDS(fit, file)
    back <- readRDS(file)
    expect_identical(back$tol, fit$tol)
    expect_s3_class(back$reference, "gp_dtc")
    expect_identical(back$tol$m2, back$reference$m)
    expect_null(back$reference$data)
    if (!keep) expect_null(back$reference$correction)
    expect_no_message(again <- certify(back, d$x, test_points = 0))
    # certify() adds an allowance for rounding of the constant mean, so its errors may be slightly larger.
    expect_true(all(statistics(again) <= (1 + 1e-6) * c(fit$tol$mean, fit$tol$sd)))
  }
  # No element has the length of the data.
  wide <- fit_tol(0.05, tol_data(1000), keep_data = FALSE)
  longest <- function(x) if (is.list(x)) max(0, vapply(unclass(x), longest, 1)) else length(x)
  expect_lt(longest(wide[c("inducing", "trace", "tol", "frame")]), 1000)
  expect_lt(longest(wide$reference[setdiff(names(wide$reference), c("factors", "norms"))]), 1000)
})

test_that("only fits with aux_reference() carry a reference, which has its points", {
  d <- tol_data()
  fit <- function(aux, ...) {
    control <- pfdtc_control(maxit = 5, progress = FALSE)
    args <- c(list(d$x, d$y, m = 10, aux = aux, control = control), tol_given, list(...))
    do.call(pfdtc, args)
  }
  with <- fit(aux_reference(m2 = 30))
  expect_identical(unname(with$reference$inducing), unname(with$aux_points))
  expect_identical(with$reference$m, 30L)
  expect_true(is.finite(with$seconds[["reference"]]))
  expect_no_message(c <- certify(with, d$x))
  exact <- do.call(gp_exact, c(list(d$x, d$y), tol_given))
  expect_true(all(c$mean_lower <= predict(exact, d$x) & predict(exact, d$x) <= c$mean_upper))
  for (aux in list(NULL, aux_sor(), aux_refresh(2, aux_reference()))) expect_null(fit(aux)$reference)
  without <- fit(aux_reference(m2 = 30), keep_data = FALSE)
  expect_null(without$reference$correction)
  expect_no_message(certify(without, d$x))
  # Rows that were chosen under earlier hyperparameters can still be used.
  joint <- with_seed(1, pfdtc(d$x, d$y, m = 10, aux = aux_reference(), hyper = "joint",
                              control = list(maxit = 5, progress = FALSE)))
  expect_identical(coef(joint$reference), coef(joint))
  expect_no_message(certify(joint, d$x))
})

test_that("the auxiliary distribution on the reference's first points equals a new one", {
  d <- tol_data()
  y <- d$y - mean(d$y)
  rows <- list(x = d$x, y = y)
  kernel <- complete_kernel(tol_given$kernel, d$x)
  model <- gp_dtc(d$x, y, m = 1, kernel = tol_given$kernel, noise = 0.02, hyper = "fixed", center = FALSE,
                  scale = FALSE)
  ref <- reference(model, 30)
  for (aux in list(aux_reference(m2 = 12), aux_reference(m2 = 12, tail = 0.1))) {
    anew <- make_auxiliary(aux, rows, new_model(kernel, 0.02), 5)
    shared <- make_auxiliary(aux, rows, new_model(kernel, 0.02), 5, reference = ref)
    expect_identical(unname(shared$U), unname(anew$U))
    for (what in 1:2) {
      expect_equal(predict(shared, d$x)[[what]], predict(anew, d$x)[[what]], tolerance = 1e-6)
    }
  }
})

test_that("print() and summary() say what error is certified, never a smaller one", {
  fit <- tol_fit(0.05)
  for (shown in list(utils::capture.output(print(fit)), utils::capture.output(print(summary(fit))))) {
    text <- paste(trimws(shown), collapse = " ")
    expect_match(text, sprintf("[0-9.e-]+ %%.*\\b%d\\b.*reference.*5 %%", fit$m))
    expect_match(text, "mean.*[0-9.]+ %.*sd.*[0-9.]+ %")
  }
  percent <- as.numeric(sub("error at most ([0-9.e-]+) %.*", "\\1", describe_tolerance(fit)))
  expect_gte(percent, 100 * max(fit$tol$mean, fit$tol$sd))
  expect_lt(percent, 110 * max(fit$tol$mean, fit$tol$sd))
  few <- unreached(fit_tol(0.02, m = 8, control = list(tol_quantile = 0.9)))$fit
  expect_match(describe_tolerance(few), "2 %.*90 %")
  expect_identical(describe_tolerance(gp_dtc(dist ~ speed, cars, m = 2)), NA_character_)
  shown <- vapply(c(0.0171, 0.02, 1, 0.001234, 1e-9), show_percent, "")
  expect_identical(shown, c("1.8 %", "2 %", "100 %", "0.13 %", "1e-07 %"))
})

test_that("an interrupt leaves the best so far, with its certified error, if there is one", {
  # Interrupt the `which`-th call of a function of the package.
  interrupted <- function(name, which, learn = FALSE) {
    with_interrupted(name, which, unreached({
      if (learn) fit_tol(0.02, kernel = kernel_se(), noise = NULL, hyper = "pilot") else fit_tol(0.02)
    }))
  }
  for (where in list(list("native_evaluate", 4, TRUE), list("native_norms", 1), list("first_points", 2))) {
    got <- do.call(interrupted, where)
    expect_identical(got$fit$convergence, 52L, info = where[[1]])
    expect_match(got$said, "interrupted.*not certified", info = where[[1]])
    expect_identical(got$fit$tol[c("mean", "sd", "met")], list(mean = NA_real_, sd = NA_real_, met = FALSE))
    expect_gt(got$fit$m, 1)
    expect_true(all(is.finite(predict(got$fit))))
  }
  # The greedy start is certified before anything is optimised.
  for (which in quick(c(1, 9, 40))) {
    got <- interrupted("native_evaluate", which)
    expect_match(got$said, "interrupted.*[0-9.e-]+ %")
    expect_certified(got$fit)
    expect_identical(got$fit$convergence, 52L)
  }
})
