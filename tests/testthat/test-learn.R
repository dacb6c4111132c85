# Tests hyperparameters by the log marginal likelihood: which are learned, from which rows, and which are kept.

test_that("the dense evidence, to which other values are compared, is that of the formula", {
  p <- problem("matern52", n = 20, weighted = TRUE)
  u <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
  expect_equal(dense_evidence(p, "matern52", u, list(center = 0), p$weights),
               ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)$evidence, tolerance = 1e-10)
})

test_that("hyperparameters that made the data are recovered within sampling error", {
  only_nightly()
  for (profile in quick(profiles)) {
    kernel <- ref_kernel(profile, c(0.1, 0.2), 4)
    truth <- log(c(0.1, 0.2, 4, 0.25))
    data <- prior_draw(kernel, 300)
    by <- function(priors) {
      learn(data, kernel = package_kernel(ref_kernel(profile, NULL, NULL)), center = FALSE, scale = FALSE,
            control = list(priors = priors))
    }
    fit <- by(FALSE)
    # Compute standard errors by the Fisher information, tr(T^-1 T_j T^-1 T_k) / 2.
    Ti <- chol2inv(chol(dense_covariance(data$x, profile, truth)))
    S <- lapply(dense_slopes(data$x, profile, truth), function(slope) Ti %*% slope)
    information <- outer(1:4, 1:4, Vectorize(function(j, k) sum(S[[j]] * t(S[[k]])) / 2))
    error <- (log(coef(fit)) - truth) / sqrt(diag(solve(information)))
    expect_lt(max(abs(error)), 4, label = profile)
    # Twice the gain is chi^2 with 4 degrees of freedom, which exceeds 23.5 once in 10,000.
    gain <- dense_evidence(data, profile, log(coef(fit)), fit) - dense_evidence(data, profile, truth, fit)
    expect_lt(gain, 23.5 / 2, label = profile)
    expect_gt(gain, 0, label = profile)
    # With so many rows priors may cost two nats.
    expect_gt(as.numeric(logLik(by(TRUE))), as.numeric(logLik(fit)) - 2, label = profile)
  }
  # Learn by neighbours alone, because two matrices of all rows exceed the memory. Terms of the likelihood are true
  # conditional densities, and 30 neighbours lose almost nothing.
  data <- prior_draw(kernel, 1100)
  fit <- with_options(list(pfdtc.max_memory = 1.5 * 8 * 1100^2), by(FALSE))
  expect_false(identical(fit$evaluations, by(FALSE)$evaluations)) # the exact likelihood was not used
  gain <- dense_evidence(data, profile, log(coef(fit)), fit) - dense_evidence(data, profile, truth, fit)
  expect_lt(gain, 23.5 / 2)
  expect_gt(gain, -2)
})

test_that("priors fade with the rows, but that of the variance only if the exact evidence decides", {
  prior <- function(n) {
    data <- data_from_matrix(matrix(seq_len(n)), sin(seq_len(n)))
    s <- learning_settings(place_kernel(kernel_se(), data$x), NULL, colnames(data$x),
                           c("lengthscale.x1", "variance", "noise"), pfdtc_control(progress = FALSE))
    with_seed(1, learning_problem(learning_rows(data, s), s, "se"))$prior(numeric(3))$information
  }
  whole <- 1 / c(0.7, 3, 2)^2
  expect_equal(prior(40), whole)
  expect_equal(prior(500), whole / 100)
  expect_equal(prior(2500), c(whole[1] / 2500, 4 / 1.5^2, whole[3] / 2500))
  # With many inputs, the precision of priors decreases from more rows on, and then faster.
  expect_identical(prior_share(150, 10), 1)
  expect_equal(prior_share(200, 10), 0.75^6)
  expect_equal(prior_share(506, 13), (50 / 506)^2)
})

test_that("with few rows and many inputs without effect, noise is not interpolated", {
  skip_on_cran()
  for (seed in c(1, 5)) {
    data <- with_seed(seed, list(x = matrix(stats::rnorm(150 * 30), 150), y = stats::rnorm(150)))
    fit <- with_seed(seed, pfdtc(data$x, data$y, kernel = kernel_matern(), control = pfdtc_control(progress = FALSE)))
    # The right prediction is the mean. A linear model has an RMSE of sqrt(30 / 150), and the largest log marginal
    # likelihood.
    expect_lt(sqrt(mean((fitted(fit) - mean(data$y))^2)), 0.3)
    expect_gt(fit$noise, 0.6)
  }
})

test_that("the exact evidence is within two nats of the best of many exact searches", {
  only_nightly()
  cases <- list(smooth_data(100), wavy(100, noise = 0.3),
                list(x = matrix(as.numeric(stats::time(lynx))), y = log(as.numeric(lynx))),
                # Only the noise can be learned from pure noise.
                with_seed(4, list(x = matrix(stats::runif(150)), y = stats::rnorm(150))))
  for (i in quick(seq_along(cases))) {
    data <- cases[[i]]
    profile <- profiles[i]
    # Pure noise has no signal, but its prior keeps a little, which costs two nats.
    fit <- learn(data, kernel = package_kernel(ref_kernel(profile, NULL, NULL)), control = list(priors = i < 4))
    expect_identical(fit$posterior, "exact")
    mine <- dense_evidence(data, profile, log(coef(fit)), fit)
    expect_equal(as.numeric(logLik(fit)), mine, tolerance = 1e-8)
    expect_gt(mine, oracle(data, profile, fit) - 2, label = profile)
  }
})

test_that("waves that could be mistaken for noise are found", {
  only_nightly()
  sine <- with_seed(1, {
    x <- seq(0, 40, length.out = 300)
    list(x = matrix(x), y = sin(3 * x) + stats::rnorm(300, sd = 0.3))
  })
  waves <- with_seed(1, {
    x <- matrix(stats::runif(800, 0, 10), 400)
    list(x = x, y = sin(2 * x[, 1]) * cos(3 * x[, 2]) + stats::rnorm(400, sd = 0.2))
  })
  for (seed in 1:2) {
    for (kernel in list(NULL, kernel_se(), kernel_matern(3 / 2))) {
      # The tolerance is at least four standard errors of a variance; a wavy f uses a third of its degrees of freedom.
      expect_lt(abs(log(learn(sine, kernel = kernel, seed = seed)$noise / 0.09)), 0.4)
      expect_lt(abs(log(learn(waves, kernel = kernel, seed = seed)$noise / 0.04)), 0.5)
    }
  }
})

test_that("two explanations with equal evidence give a warning, data with one explanation do not", {
  only_nightly()
  wave <- function(size) {
    with_seed(1, {
      x <- stats::runif(60)
      list(x = matrix(x), y = 2 * sin(2 * x) + size * sin(20 * pi * x) + 0.5 * stats::rnorm(60))
    })
  }
  told <- function(...) {
    warned <- NULL
    fit <- withCallingHandlers(learn(...), pfdtc_warning_convergence = function(w) {
      warned <<- w
      invokeRestart("muffleWarning")
    })
    list(fit = fit, warned = warned)
  }
  data <- wave(1) # waves may be noise or structure
  both <- told(data, kernel = kernel_se())
  expect_match(conditionMessage(both$warned), "`noise`")
  expect_equal(both$warned$noise[1L], both$fit$noise)
  expect_lte(both$warned$behind, 2)
  # At either noise the best lengthscale and variance, by dense algebra with the priors, reach the same value.
  power <- mean((data$y - both$fit$center)^2)
  prior <- function(u) {
    -(50 / 60)^2 * sum(((u - log(c(3 * stats::sd(data$x), power, 0.1 * power))) / c(0.7, 3, 2))^2) / 2
  }
  best <- vapply(both$warned$noise, function(noise) {
    minus <- function(u) {
      u <- c(u, log(noise))
      tryCatch(-dense_evidence(data, "se", u, both$fit) - prior(u), error = function(e) 1e10)
    }
    starts <- expand.grid(lengthscale = c(0.02, 0.5), variance = c(0.3, 3))
    max(-apply(log(starts), 1, function(u) stats::optim(u, minus)$value))
  }, 0)
  expect_equal(best[1L] - best[2L], both$warned$behind, tolerance = 0.1 / both$warned$behind)
  for (size in c(0.2, 3)) expect_null(told(wave(size), kernel = kernel_se())$warned)
  real <- list(mtcars[c(1, 2:11)], faithful, quakes[c("mag", "lat", "long", "depth")], cars[2:1],
               data.frame(log(as.numeric(lynx)), as.numeric(stats::time(lynx))))
  for (one in quick(real)) expect_null(told(list(x = as.matrix(one[-1]), y = one[[1]]))$warned)
})

test_that("responses in whole numbers have the noise of rounding at least", {
  data <- list(x = matrix(seq(0, 3, length.out = 80)))
  data$y <- round(10 * sin(data$x[, 1]))
  fit <- learn(data, kernel = kernel_se())
  expect_gte(fit$noise, (1 - 1e-12) / 12)
  expect_lt(fit$noise, 4 / 12)
  # Units and offset have no effect.
  tenth <- learn(list(x = data$x, y = data$y / 10 + 0.05), kernel = kernel_se())
  expect_equal(tenth$noise, fit$noise / 100, tolerance = 1e-6)
  # If responses are not multiples of a step, the floor is a millionth.
  smooth <- learn(list(x = data$x, y = 10 * sin(data$x[, 1])), kernel = kernel_se())
  expect_lt(smooth$noise, 1.1e-6 * mean((10 * sin(data$x[, 1]))^2))
})

test_that("equal rows that contradict each other decide the noise, also where they are few", {
  data <- with_seed(6, {
    x <- matrix(stats::runif(240))
    x <- rbind(x, x[1:60, , drop = FALSE])
    list(x = x, y = sin(6 * x[, 1]) + stats::rnorm(300, sd = 0.5))
  })
  fit <- learn(data)
  pure <- mean((data$y[1:60] - data$y[241:300])^2) / 2
  expect_lt(abs(log(fit$noise / pure)), 4 * sqrt(2 / 60))
  # Two columns identify the group, so the noise is the variance within groups, with about 80 degrees of freedom.
  crossed <- with_seed(7, list(x = as.matrix(expand.grid(1:3, 1:3))[rep(1:9, 10), ],
                               y = rep(stats::rnorm(9, sd = 3), 10) + stats::rnorm(90)))
  within <- sum(stats::residuals(stats::lm(crossed$y ~ factor(rep(1:9, 10))))^2) / 81
  expect_lt(abs(log(learn(crossed)$noise / within)), 0.5 * sqrt(2 / 81))
})

test_that("equal rows are learned from as rows next to each other, and weights are precisions", {
  data <- smooth_data(30)
  x <- data$x[rep(1:30, 2), ]
  y <- rep(data$y, 2) + with_seed(3, stats::rnorm(60, sd = 0.5))
  apart <- x + with_seed(4, matrix(stats::runif(120, -1e-7, 1e-7), 60)) # too close to matter, not equal
  for (kernel in list(kernel_matern(3 / 2), kernel_matern(5 / 2))) {
    merged <- learn(list(x = x, y = y), kernel = kernel)
    plain <- learn(list(x = apart, y = y), kernel = kernel)
    expect_identical(c(nrow(merged$data$x), nrow(plain$data$x)), c(30L, 60L))
    # Both searches end if a step predicts a gain below 0.05.
    expect_lt(abs(merged$evidence - plain$evidence), 0.2)
    expect_equal(predict(merged, data$new), predict(plain, data$new), tolerance = 0.05)
  }
  # Only noise / weight matters, except for priors, which ignore weights.
  for (factor in c(2, 1 / 8)) {
    one <- learn(data, kernel = kernel_se(), control = list(priors = FALSE))
    all <- learn(data, kernel = kernel_se(), weights = rep(factor, 30), control = list(priors = FALSE))
    expect_lt(abs(dense_evidence(data, "se", log(coef(all)), all, factor) -
                    dense_evidence(data, "se", log(coef(one)), one)), 0.1)
    expect_equal(predict(all, data$new), predict(one, data$new), tolerance = 0.02)
  }
})

test_that("given values are starts, fixed values are held, and a given kernel is kept", {
  data <- smooth_data(60)
  fit <- learn(data, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3,
               control = list(fix = c("noise", "lengthscale.x2"), priors = FALSE))
  expect_equal(unname(coef(fit)[c("noise", "lengthscale.x2")]), c(0.3, 1.6), tolerance = 1e-14) # by logs
  expect_false(any(coef(fit)[c("variance", "lengthscale.x1")] == c(1.7, 0.9)))
  expect_identical(fit$df, 2L)
  expect_identical(nrow(fit$learned), 1L)
  expect_null(fit$kernels)
  expect_identical(fit$kernel$profile, "se")
  # The fit has the largest likelihood among kernels with the given values.
  value <- function(u) dense_evidence(data, "se", replace(log(coef(fit)), c(1, 3), u), fit)
  mine <- log(coef(fit))[c(1, 3)]
  expect_lt(stats::optim(mine, value, control = list(fnscale = -1))$value, value(mine) + 0.3)

  # Fix the noise alone: the rest has many starts, and a kernel is chosen.
  noise <- learn(data, noise = 0.5, control = list(fix = "noise"))
  expect_equal(unname(coef(noise)["noise"]), 0.5, tolerance = 1e-14)
  expect_gte(nrow(noise$kernels), 4L)
  expect_gt(nrow(noise$learned), 3)
  # Absurd values are kept if fixed, and are starts otherwise.
  odd <- learn(data, kernel = kernel_se(c(1e5, 1e-5)), noise = 1e-9,
               control = list(fix = c("lengthscale.x1", "lengthscale.x2")))
  expect_equal(unname(coef(odd)[1:2]), c(1e5, 1e-5), tolerance = 1e-14)
  from <- learn(data, kernel = kernel_se(c(20, 20), 50), noise = 20)
  free <- learn(data, kernel = kernel_se())
  expect_lt(abs(as.numeric(logLik(from)) - as.numeric(logLik(free))), 0.3)
  # Use one of two inputs.
  part <- learn(data, kernel = kernel_matern(5 / 2, inputs = 1))
  expect_named(coef(part), c("lengthscale.x1", "variance", "noise"))
})

test_that("with many rows a lengthscale that stayed too short is found, by the likelihood with a longer one", {
  data <- with_seed(1, {
    x <- matrix(stats::runif(6300), 2100)
    list(x = x, y = sin(6 * x[, 1]) * cos(5 * x[, 2]) + 0.5 * stats::rnorm(2100))
  })
  cleaned <- data_from_matrix(data$x, data$y)
  s <- first_plan(cleaned, list(method = "pfdtc", hyper = "evidence", mean = ~ 1, kernel = kernel_matern(3 / 2),
                                    control = pfdtc_control(progress = FALSE), keep_data = TRUE))$learn
  problem <- with_seed(1, learning_problem(learning_rows(cleaned, s), s, "matern32"))
  end <- finish_starts(problem, list(problem$unit + log(c(2, 4, 30, 1, 0.3))))[[1L]]
  expect_null(lengthened(problem, end$theta))
  short <- replace(end$theta, 3, log(0.02)) # for an input without effect
  expect_identical(lengthened(problem, short), replace(short, 3, problem$unit[[3]] + log(3 * sqrt(3))))
  # Without longer lengthscales the search ends 50 nats lower; its few steps lose up to four.
  expect_gt(finish_starts(problem, list(short))[[1L]]$value, end$value - 4)
  # A given lengthscale is kept.
  s$free <- setdiff(s$free, "lengthscale.x3")
  given <- with_seed(1, learning_problem(learning_rows(cleaned, s), s, "matern32"))
  expect_null(lengthened(given, short))
})

test_that("`restarts` sets the number of starts, and priors can be omitted", {
  data <- smooth_data(40)
  for (restarts in c(1, 4, 20)) {
    fit <- learn(data, kernel = kernel_se(), control = list(restarts = restarts))
    expect_identical(nrow(fit$learned), as.integer(restarts))
    expect_identical(which(fit$learned$kept), which.max(fit$learned$evidence))
  }
  expect_match(describe_starts(fit$learned), "first search: 20 starts")
  expect_identical(nrow(learn(data, kernel = kernel_se())$learned), 9L)
  expect_identical(nrow(learn(wavy_line(), kernel = kernel_se())$learned), 10L)
  # An input without effect has a long lengthscale in any case, and without priors the likelihood is no smaller.
  more <- list(x = cbind(data$x, with_seed(9, stats::runif(40))), y = data$y)
  with_priors <- learn(more, kernel = kernel_se())
  without <- learn(more, kernel = kernel_se(), control = list(priors = FALSE))
  expect_gt(as.numeric(logLik(without)), as.numeric(logLik(with_priors)) - 0.1)
  expect_gt(min(coef(with_priors)[3], coef(without)[3]), 1)
  expect_true(all(is.finite(log(coef(without)))))
})

test_that("set.seed() reproduces what is learned to the bit, and threads change nothing", {
  only_nightly()
  large <- with_seed(2, {
    x <- matrix(stats::runif(4200), 2100)
    list(x = x, y = sin(6 * x[, 1]) + x[, 2] + 0.2 * stats::rnorm(2100))
  })
  learned <- function(data, ...) learn(data, ..., m = 5, hyper = "evidence")[c("kernel", "noise", "learned", "kernels")]
  for (data in list(smooth_data(40), large)) {
    control <- list(maxit = 0, restarts = if (length(data$y) > 1000) 3)
    one <- learned(data, control = control)
    expect_identical(learned(data, control = control), one)
    # The threads of a BLAS share the sums of the exact evidence, which changes rounding by 1e-10 or less.
    two <- learned(data, control = c(control, threads = 2))
    if (engine$optimised_blas) expect_equal(two, one, tolerance = 1e-7) else expect_identical(two, one)
    other <- learned(data, control = control, seed = 2)
    expect_equal(other$noise, one$noise, tolerance = 0.05) # which kernel is chosen depends on chance
  }
  expect_false(identical(other$noise, one$noise))
  before <- with_seed(5, {
    pfdtc(x = wavy_line()$x, y = wavy_line()$y, kernel = kernel_se(c(1), 1), noise = 1, hyper = "fixed")
    stats::runif(1)
  })
  expect_identical(before, with_seed(5, stats::runif(1))) # no random numbers are used
})

test_that("fits to few rows, many inputs, constant inputs or factors are finite, and no worse than the mean", {
  blocks <- with_seed(1, pfdtc(yield ~ block + N + P + K, npk))
  expect_identical(blocks$posterior, "exact")
  expect_true(all(is.finite(coef(blocks)) & coef(blocks) > 0))
  # In half a replicate, interactions may explain nearly everything. The fit does not interpolate, and is no worse than
  # with the noise of an analysis of variance.
  expect_gt(stats::sd(residuals(blocks)), 0.1)
  aov <- with_seed(1, pfdtc(yield ~ block + N + P + K, npk, noise = 15.7, control = list(fix = "noise")))
  expect_gt(as.numeric(logLik(blocks)), as.numeric(logLik(aov)) - 0.5)

  for (n in 2:3) {
    for (x in list(matrix(seq_len(n)), matrix(1, n))) {
      fit <- expect_warned(learn(list(x = x, y = c(1, 3, 2)[seq_len(n)])), "convergence", n == 3 && x[n] > x[1])
      p <- predict(fit, matrix(c(-1, 1.5, 100)), se.fit = TRUE)
      expect_true(all(is.finite(unlist(p))) && all(p$se.fit >= 0))
      expect_true(all(abs(p$fit - 2) <= 1.5))
    }
  }
  wide <- with_seed(3, list(x = matrix(stats::rnorm(80 * 30), 80)))
  wide$y <- with_seed(4, 2 * wide$x[, 7] + sin(wide$x[, 9]) + stats::rnorm(80, sd = 0.3))
  fit <- learn(wide)
  expect_length(fit$kernel$lengthscale, 30)
  expect_identical(which.min(fit$kernel$lengthscale), c(x7 = 7L))
  new <- with_seed(5, matrix(stats::rnorm(50 * 30), 50))
  expect_gt(stats::cor(predict(fit, new), 2 * new[, 7] + sin(new[, 9])), 0.9)

  data <- wavy_line()
  plain <- learn(data)
  more <- learn(list(x = cbind(data$x, 7), y = data$y))
  expect_equal(predict(more), predict(plain), tolerance = 0.05)
  # Inputs have units of 1e8 and 1e-8, or values about 1e8.
  for (case in list(c(1e8, 0), c(1e-8, 0), c(1, 1e8))) {
    moved <- learn(list(x = data$x * case[1] + case[2], y = data$y))
    expect_equal(coef(moved)[["lengthscale.x1"]] / case[1], coef(plain)[["lengthscale.x1"]], tolerance = 1e-3)
  }
  huge <- learn(list(x = data$x, y = 1e20 * data$y))
  expect_equal(log(unname(coef(huge)) / c(1, 1e40, 1e40)), log(unname(coef(plain))), tolerance = 1e-6)
})

test_that("every method learns by the evidence, with the same seed the same, and \"pilot\" is the paper's protocol", {
  data <- smooth_data(40)
  fits <- lapply(list(gp_exact, gp_vfe, gp_dtc, gp_sor, gp_fitc, gp_subsample, pfdtc), function(by) {
    args <- list(data$x, data$y, kernel = kernel_matern(5 / 2), control = list(progress = FALSE, maxit = 5))
    if (!identical(by, gp_exact)) args$m <- 6
    with_seed(4, do.call(by, args))
  })
  for (fit in fits) {
    expect_identical(fit$hyper, "evidence")
    expect_equal(coef(fit), coef(fits[[1]]), tolerance = 1e-12, info = fit$method)
    expect_identical(fit$learned, fits[[1]]$learned)
    expect_identical(names(fit$evaluations)[1], "learn")
  }
  expect_identical(learn(data, control = list(maxit = 5))$posterior, "exact")

  paper <- learn(data, hyper = "pilot", inducing = "random", aux = aux_sor(), control = list(maxit = 5))
  expect_identical(paper$posterior, "far")
  expect_identical(paper$kernel$profile, "se")
  expect_true(paper$moved)
  expect_identical(c(paper$m, paper$neighbours), c(40L, 0L))
  expect_named(paper$evaluations, c("pilot", "objective"))
  expect_null(paper$learned)
  # Rows are random, and hyperparameters come from VFE on them: all 40 rows are points, so VFE is the evidence with a
  # jitter.
  start <- start_values(place_kernel(kernel_se(), paper$data$x), NULL, paper$data)
  expect_equal(-paper$pilot$trace$objective[1],
               dense_evidence(list(x = data$x, y = paper$data$y), "se",
                              log(c(start$kernel$lengthscale, start$kernel$variance, start$noise)), list(center = 0)),
               tolerance = 1e-4)
})

test_that("arguments are not modified, and those that exclude learning are refused", {
  data <- smooth_data(30)
  copy <- unserialize(serialize(data, NULL))
  learn(data)
  expect_identical(data, copy)
  expect_input_error(learn(data, hyper = "evidence", control = list(fix = "noise")), "noise")
  expect_input_error(learn(list(x = data$x, y = rep(1, 30))), "`y`")
  expect_input_error(learn(list(x = data$x[1, , drop = FALSE], y = 1), scale = FALSE), "`hyper`")
  expect_input_error(learn(data, control = list(restarts = 0)), "`restarts`")
})
