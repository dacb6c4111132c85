# Tests choices: kernels judged by rows, and a linear mean judged by the log marginal likelihood.

test_that("the kernel is the one with the best held-out score, and the true one if the data determine it", {
  only_nightly()
  for (profile in c("matern12", "se")) {
    data <- prior_draw(ref_kernel(profile, 0.3, 4), 400, noise = 1e-3)
    fit <- learn(data)
    expect_identical(fit$kernel$profile, profile)
    table <- fit$kernels
    table <- table[!is.na(table$se), ] # linear means have no standard error
    expect_false(is.unsorted(table$score))
    expect_identical(which(table$chosen), 1L)
    expect_setequal(setdiff(table$kernel, profile_label(two_scales)), vapply(profiles, profile_label, ""))
    expect_identical(table$kernel[1], profile_label(profile))
    expect_identical(table$se[1], 0)
    name <- if (profile == "se") "squared" else "Matern 1/2"
    expect_output(print(fit), name)
    # A score is the mean of -log p(y_i | all others), if all rows are neighbours.
    some <- list(x = data$x[1:40, ], y = data$y[1:40])
  }
  cleaned <- data_from_matrix(some$x, some$y)
  s <- learning_settings(place_kernel(kernel_matern(5 / 2), cleaned$x), NULL, colnames(cleaned$x),
                         c("lengthscale.x1", "variance", "noise"), pfdtc_control(progress = FALSE))
  problem <- with_seed(7, learning_problem(learning_rows(cleaned, s), s, "matern52"))
  theta <- log(c(0.4, 1.3, 0.1))
  Ti <- solve(dense_covariance(cleaned$x, "matern52", theta))
  left <- drop(Ti %*% cleaned$y) / diag(Ti)      # leave one out: y_i - mean, of variance 1 / Ti_ii
  scores <- conditional_scores(problem, theta)
  expect_length(scores, 20)
  expect_close(mean(scores), mean(log(2 * pi / diag(Ti)) + left^2 * diag(Ti)) / 2, 1e-9)
  # The score adds 2 nats for each of the 3 parameters, divided by the number of rows learned from.
  model <- learned_model(problem, theta)
  judged <- judge_by_rows(model)
  expect_close(judged$score, mean(judged$scores) + 2 * 3 / 40, 1e-12)
  expect_close(mean(conditional_scores(problem, model$theta)), mean(judged$scores), 1e-12)
  expect_null(learned_model(problem, theta, least = model$value + 1))
})

# Chooses among models with these scores; NULL is not tried.
choice_of <- function(models) {
  choose(lapply(models, function(one) {
    model <- if (!is.null(one)) c(one, label = one$name, parameters = 3L)
    function(tried) model
  }), function(model) list())
}

test_that("choose() keeps the candidate with the smallest score, and its table has each difference's standard error", {
  by_score <- function(...) best_of(lapply(list(...), function(v) list(score = v)))
  expect_identical(by_score(a = 0.1, b = 0.099, c = 0.2), "b")
  # A model that cannot be computed is chosen only if none can.
  expect_identical(by_score(a = Inf, b = 5), "b")
  # The table has the standard errors of the differences.
  shift <- rep(c(-1, 1), 10)
  choice <- choice_of(list(se = list(name = "squared exponential", scores = 0.5 + shift, score = 0.5), none = NULL,
                           matern12 = list(name = "Matern 1/2", scores = 0 * shift, score = 0)))
  table <- choice$table
  expect_named(table, c("kernel", "score", "se", "parameters", "chosen"))
  expect_identical(choice$best$name, "Matern 1/2")
  expect_identical(table$kernel, c("Matern 1/2", "squared exponential"))
  expect_equal(table$se, c(0, stats::sd(shift) / sqrt(20)))
  # A later choice, by log marginal likelihoods of 20 rows, starts from the kernel chosen. If another one is chosen, the
  # difference of the two has no standard error.
  later <- list(tried = list(list(label = "Matern 1/2")), table = data.frame(
    kernel = c("additive", "Matern 1/2"), score = c(-4, 6), se = c(0, NA), parameters = 4L, chosen = c(TRUE, FALSE)))
  joined <- join_choices(table, later, 20)
  expect_identical(joined$kernel, c("additive", "Matern 1/2", "squared exponential"))
  expect_equal(joined$score, c(-0.5, 0, 0.5))
  expect_equal(joined$se, c(0, NA, stats::sd(shift) / sqrt(20)))
  expect_identical(table$chosen, c(TRUE, FALSE))
})

test_that("with many rows, a kernel is skipped if one closer to Matern 3/2 in smoothness has lost to it", {
  pool <- list(few = FALSE, n = 5000, take = function(count) seq_len(count), until = Inf)
  first <- list(composite = TRUE, neighbours = function(...) NULL)
  tried <- function(...) {
    scores <- list(matern32 = 0, ...)
    replaced <- list(learning_problem = function(pool, s, profile) list(label = profile),
                     learned_model = function(problem, ...) {
                       list(label = problem$label, problem = first, parameters = 3L, score = scores[[problem$label]])
                     })
    with_replaced(replaced, names(choose(candidates(pool, NULL, 0), function(model) list())$tried))
  }
  expect_identical(tried(matern12 = -1), c("matern32", "matern12"))
  expect_identical(tried(matern12 = 1, matern52 = 1), c("matern32", "matern12", "matern52"))
  expect_identical(tried(matern12 = 1, matern52 = -1, se = -2), c("matern32", "matern12", "matern52", "se"))
})

test_that("a sum of a long and a short scale is found, but not if there is only one scale", {
  skip_on_cran()
  data <- prior_draw(ref_kernel("matern32", c(1, 1), 4), 400, noise = 0.0025, seed = 3)
  short <- dense_kernel(data$x, "matern32", c(0.05, 0.05), 0.5) + diag(1e-8, 400)
  data$y <- data$y + with_seed(2, drop(crossprod(chol(short), stats::rnorm(400))))
  fit <- learn(data)
  expect_identical(length(fit$kernel$terms), 2L)
  expect_identical(fit$kernels$kernel[1], "Matern 3/2 + Matern 3/2")
  expect_output(print(fit), "Matern 3/2 \\(1\\), sd.*; Matern 3/2 \\(2\\), sd")
  expect_identical(fit$df, 7L)
  expect_named(coef(fit), c("matern32.lengthscale.x1", "matern32.lengthscale.x2", "matern32.variance",
                            "matern32_1.lengthscale.x1", "matern32_1.lengthscale.x2", "matern32_1.variance", "noise"))
  scales <- matrix(coef(fit)[c(1, 2, 4, 5)], 2)
  expect_true(all(scales[, 1] > 4 * scales[, 2]))
  # The exact log marginal likelihood of the sum exceeds that of one term by more than the additional parameters cost.
  sum_of <- dense_kernel(data$x, "matern32", scales[, 1], coef(fit)[[3]]) +
    dense_kernel(data$x, "matern32", scales[, 2], coef(fit)[[6]])
  R <- chol(sum_of + diag(fit$noise, 400))
  expect_equal(as.numeric(logLik(fit)), -200 * log(2 * pi) - sum(log(diag(R))) -
                 sum(backsolve(R, data$y - fit$center, transpose = TRUE)^2) / 2, tolerance = 1e-6)
  expect_gt(as.numeric(logLik(fit)), as.numeric(logLik(learn(data, kernel = kernel_matern(3 / 2)))) + 3)
  one <- learn(prior_draw(ref_kernel("matern32", c(0.3, 0.3), 4), 400, noise = 0.01))
  expect_null(one$kernel$terms)
  # A held noise is kept.
  held <- learn(data, noise = 0.01, control = list(fix = "noise"))
  expect_equal(held$noise, 0.01, tolerance = 1e-14)
  expect_identical(held$df, length(coef(held)) - 1L)
})

test_that("a kernel whose likelihood cannot be computed is not chosen", {
  # The noise is so small that a squared exponential with long lengthscales has no Cholesky factor.
  data <- list(x = matrix(seq(0, 1, length.out = 60)))
  data$y <- sin(3 * data$x[, 1])
  cleaned <- data_from_matrix(data$x, data$y)
  s <- learning_settings(place_kernel(kernel_se(), cleaned$x), 1e-30, colnames(cleaned$x),
                         c("lengthscale.x1", "variance"), pfdtc_control(progress = FALSE))
  problem <- with_seed(1, learning_problem(learning_rows(cleaned, s), s, "se"))
  expect_identical(mean(conditional_scores(problem, log(c(5, 1, 1e-30)))), Inf)
  expect_identical(climb(problem, log(c(5, 1, 1e-30)), "whole", 3L)$value, -Inf)
  fit <- tryCatch(learn(data, noise = 1e-30, control = list(fix = "noise")), pfdtc_error_numerical = function(e) NULL)
  if (!is.null(fit)) {
    expect_lt(fit$kernels$score[fit$kernels$chosen], Inf)
    expect_true(all(is.finite(predict(fit, matrix(c(0.1, 2))))))
  }
})

line_data <- function(n, d, f, sd, seed = 1) {
  with_seed(seed, {
    x <- matrix(stats::runif((n + 1000) * d), n + 1000, dimnames = list(NULL, paste0("x", seq_len(d))))
    data <- data.frame(x, y = f(x) + sd * stats::rnorm(n + 1000))
    list(train = data[seq_len(n), ], test = data[-seq_len(n), ], f = f(x)[-seq_len(n)])
  })
}

learn_rows <- function(data, ...) with_seed(1, pfdtc(y ~ ., data$train, ..., control = list(progress = FALSE)))

nlpd_of <- function(y, mean, sd) mean(-stats::dnorm(y, mean, sd, log = TRUE))

line_problem <- function(data, profile = "mean") {
  s <- open_settings(data)
  with_seed(1, learning_problem(learning_rows(data, s), s, profile))
}

three_slopes <- function(x) 2 * x[, 1] - x[, 2] + 0.5 * x[, 3]

test_that("the evidence of a linear mean alone is that of its kernel, and the search ends at the largest", {
  x <- with_seed(1, matrix(stats::rnorm(120), 40))
  y <- with_seed(2, drop(x %*% c(1, -0.5, 0)) + stats::rnorm(40))
  again <- c(seq_len(40), 1:5) # equal rows are merged
  data <- data_from_matrix(x[again, ], y[again] + rep(0:1, c(40, 5)), weights = with_seed(3, stats::runif(45, 0.2, 3)))
  problem <- line_problem(data)
  line <- linear_model(problem)
  exact <- exact_density(problem)$evaluate(line$theta)
  expect_close(line$value, exact$value, 1e-10)
  expect_lt(max(abs(exact$gradient)), 0.05) # a step promises less than a thousandth of a nat
  # The value from some rows equals that of all rows.
  expect_close(value_of_some(line), exact$value, 1e-10)
  many <- with_seed(4, data_from_matrix(matrix(stats::runif(1500)), stats::rnorm(1500)))
  line <- linear_model(line_problem(many))
  expect_equal(value_of_some(line), line$value, tolerance = 0.05)
})

test_that("for a linear truth the default is a linear mean, with the error and standard errors of lm()", {
  for (n in c(150, 2200)) {
    data <- line_data(n, 3, three_slopes, 0.3)
    fit <- with_few_exact(learn_rows(data))
    expect_identical(fit$kernel$profile, "mean")
    expect_identical(fit$kernels$kernel[fit$kernels$chosen], "linear mean")
    expect_output(print(fit), "f is linear")
    ols <- stats::lm(y ~ ., data$train)
    error <- function(model) sqrt(mean((predict(model, data$test) - data$f)^2))
    expect_lt(error(fit), 1.05 * error(ols)) # slopes are shrunk by one percent
    expect_equal(coef(fit)[1:4], coef(ols), tolerance = 0.05)
    expect_equal(sqrt(diag(vcov(fit)))[1:4], sqrt(diag(stats::vcov(ols))), tolerance = 0.02)
  }
  # With many rows, d + 1 points represent a linear mean exactly, and the certificate shows it.
  expect_identical(c(fit$posterior, fit$m), c("far", "4"))
  certificate <- certify(fit, data$test[1:5, ])
  expect_lt(max(certificate$mean_error), 1e-6)
  expect_lt(max(abs(predict(fit, data$test, hyper_uncertainty = TRUE) - predict(fit, data$test))), 1e-3)
})

test_that("for pure noise the default predicts the mean", {
  only_nightly()
  for (n in c(500, 2200)) {
    data <- line_data(n, if (n == 500) 10 else 3, function(x) 0 * x[, 1], 1, seed = 2)
    fit <- learn_rows(data)
    p <- predict(fit, data$test, se.fit = TRUE, type = "response")
    own <- nlpd_of(data$test$y, p$fit, p$se.fit)
    expect_lt(own, nlpd_of(data$test$y, mean(data$train$y), stats::sd(data$train$y)) + 0.003)
  }
})

test_that("a linear mean is added to a kernel, and the posterior is that of the sum", {
  data <- line_data(300, 2, function(x) 4 * x[, 1] - 2 * x[, 2] + 0.4 * sin(12 * x[, 1]), 0.1)
  fit <- learn_rows(data)
  expect_match(fit$kernels$kernel[fit$kernels$chosen], "[+] linear mean$")
  expect_identical(fit$df, 5L)
  y <- data$train$y
  new <- data$test[1:20, ]
  inputs <- as.matrix(data$train[1:2])
  cross <- kernel_matrix(fit$kernel, as.matrix(new[1:2]), inputs)
  solved <- solve(kernel_matrix(fit$kernel, inputs) + diag(fit$noise, 300), cbind(y - mean(y), t(cross)))
  variance <- diag(kernel_matrix(fit$kernel, as.matrix(new[1:2]))) - rowSums(cross * t(solved[, -1]))
  p <- predict(fit, new, se.fit = TRUE)
  expect_equal(unname(p$fit), unname(drop(mean(y) + cross %*% solved[, 1])), tolerance = 1e-7)
  expect_equal(unname(p$se.fit), unname(sqrt(variance)), tolerance = 1e-5)
  terms <- predict(fit, new, type = "terms")
  expect_equal(unname(rowSums(terms) + attr(terms, "constant")), unname(p$fit), tolerance = 1e-8)
  # Compare inducing points at the same hyperparameters with the same posterior.
  sparse <- with_seed(1, pfdtc(y ~ ., data$train, kernel = fit$kernel, noise = fit$noise, hyper = "fixed", m = 15))
  certificate <- suppressMessages(certify(sparse, new))
  expect_true(all(abs(predict(sparse, new) - p$fit) <= certificate$mean_error + 1e-6))
  more <- add_rows(fit, data$test[21:40, ])
  expect_identical(more$kernel, fit$kernel)
  expect_identical(nobs(more), 320L)
  file <- tempfile()
  saveRDS(fit, file)
  expect_identical(predict(readRDS(file), new), predict(fit, new))
})

test_that("with few rows a linear mean alone must have the evidence of the kernel, whose parameters cost nothing", {
  data <- line_data(150, 3, three_slopes, 0.3)$train
  cleaned <- data_from_matrix(as.matrix(data[1:3]), data$y)
  problem <- line_problem(cleaned, "se")
  line <- linear_model(line_problem(cleaned))
  chosen <- function(more) {
    now <- list(label = "se", problem = problem, theta = problem$unit, value = line$value + more, parameters = 5L)
    choose_line(now, open_settings(cleaned), list(value = 1e7))$problem$profile
  }
  expect_identical(chosen(0.5), "se")
  expect_identical(chosen(-0.5), "mean")
})

test_that("no linear mean is chosen without a trend, or if the kernel's value is -Inf; few rows may choose one", {
  circle <- line_data(300, 2, function(x) 2 * ((x[, 1] - 0.5)^2 + (x[, 2] - 0.5)^2 < 0.16), 0.3)
  fit <- learn_rows(circle)
  expect_false(has_profile(fit$kernel, "mean"))
  expect_true("linear mean" %in% fit$kernels$kernel)
  expect_output(print(summary(fit)), "linear mean +log marginal likelihood +0")
  few <- learn_rows(line_data(40, 3, three_slopes, 0.3)) # priors decide: prior_share() is 1
  expect_identical(few$kernels$kernel[few$kernels$chosen], "linear mean")
  # If the value of the model found is -Inf, the model is kept.
  cleaned <- data_from_matrix(as.matrix(circle$train[1:2]), circle$train$y)
  now <- list(label = "se", problem = line_problem(cleaned, "se"), value = -Inf, parameters = 3L)
  now$theta <- now$problem$unit
  expect_identical(choose_line(now, open_settings(cleaned), list(value = -Inf))$problem$profile, "se")
  # The comparison with the exact likelihood, made for this kernel, is kept.
  now[c("value", "exact")] <- list(1e6, c(rows = 2000, gain = 1, se = 0.1))
  expect_identical(choose_line(now, open_settings(cleaned), list(value = 1e7))$exact, now$exact)
})

test_that("the exact evidence of some of many rows is used if rows given their neighbours then have a higher density", {
  problem <- list(pool = list(n = 5000L, take = function(count) seq_len(count), exact = exact_sizes(5000L)))
  with_scores <- function(exact, neighbours) {
    replaced <- list(
      learn_exactly = function(problem, run) list(theta = 2),
      conditional_scores = function(problem, theta, size) {
        expect_identical(size, learning_sizes$exact)
        -if (theta == 2) exact else neighbours
      })
    with_replaced(replaced, choose_exactly(list(theta = 1, problem = problem), list(theta = 1)))
  }
  better <- with_scores(c(1, 3, 2), c(0, 1, 2))
  expect_identical(better$theta, 2)
  expect_equal(better$exact, c(rows = 2000, gain = 1, se = stats::sd(c(1, 2, 0)) / sqrt(3)))
  worse <- with_scores(c(0, 1, 2), c(1, 3, 2))
  expect_identical(worse$theta, 1)
  expect_equal(worse$exact[["gain"]], -1)
  # A density that cannot be computed is not chosen.
  expect_identical(with_scores(-Inf, c(1, 3, 2))[c("theta", "exact")], list(theta = 1, exact = NULL))
  expect_match(because_learned(list(learned = better$exact)), "^.*exact log marginal likelihood of 2000 rows:.*Vecchia")
  expect_null(because_learned(list()))
})

test_that("with many rows of a rough function, a thinned sample does not decide the noise", {
  only_nightly()
  set.seed(3)
  x <- matrix(stats::runif(2 * 12000), ncol = 2L)
  waves <- function(length) { # a sum of waves with the spectrum of Matern 1/2
    w <- matrix(stats::rnorm(2 * 200), 2L) / rep(abs(stats::rnorm(200)), each = 2L) / length
    sqrt(2) * rowMeans(cos(x %*% w + rep(stats::runif(200, 0, 2 * pi), each = 12000))) * sqrt(200)
  }
  y <- waves(0.5) + waves(0.01) / 3 + stats::rnorm(12000, sd = 0.05)
  data <- data_from_matrix(x, y)
  s <- open_settings(data)
  pool <- with_fixed_seed(learning_rows(data, s))
  problem <- learning_problem(pool, s, "matern12")
  run <- climb(problem, problem$unit + log(c(1, 1, 1, 0.01)), "starts", 6L)
  expect_lt(choose_exactly(list(problem = problem, theta = run$theta), run)$exact[["gain"]], 0)
})

test_that("the exact evidence is compared if noise is small, rows are many and memory allows", {
  problem <- list(pool = list(n = 5000L, until = Inf, exact = exact_sizes(5000L)), last = 2L, unit = c(0, log(4)))
  expect_true(has_little_noise(problem, log(c(1, 0.39))))
  expect_false(has_little_noise(problem, log(c(1, 0.41))))
  expect_identical(problem$pool$exact, c(1000L, 2000))
  with_options(list(pfdtc.max_memory = 16 * 999^2), problem$pool$exact <- exact_sizes(5000L))
  expect_false(has_little_noise(problem, log(c(1, 0.39))))
  expect_equal(exact_sizes(1500), 1500)
})

test_that("estimates from few rows do not depend on the seed, and are at an optimum", {
  skip_on_cran()
  fits <- lapply(1:2, function(seed) with_seed(seed, pfdtc(mpg ~ wt, mtcars, transform = "auto")))
  expect_equal(coef(fits[[1L]]), coef(fits[[2L]]), tolerance = 1e-12) # the order of rows is fixed
  more <- lapply(1:2, function(seed) with_seed(seed, pfdtc(mag ~ long + lat, quakes[1:300, ], noise = ~1)))
  expect_identical(coef(more[[1L]]), coef(more[[2L]]))
  other <- mtcars[order(mtcars$qsec), ] # another order of rows: the same optimum, to three digits
  expect_equal(coef(pfdtc(mpg ~ wt, other, transform = "auto")), coef(fits[[1L]]), tolerance = 1e-3)
  before <- with_seed(3, { # the random numbers of the session are not used
    pfdtc(mpg ~ wt, mtcars)
    stats::runif(1)
  })
  expect_identical(before, with_seed(3, stats::runif(1)))
})

test_that("a kernel that was chosen without a linear mean is chosen again with one if the mean gains much", {
  # Time is scaled, so that no season of a year is tried.
  d <- data.frame(y = as.numeric(scale(datasets::co2)), t = as.numeric(scale(stats::time(datasets::co2))))
  d <- d[-with_seed(13, sample(468, 94)), ]
  fit <- with_seed(1, pfdtc(y ~ t, d))
  beside <- grepl("+ linear mean", fit$kernels$kernel, fixed = TRUE)
  expect_gte(sum(beside), 4)
  expect_equal(which(fit$kernels$chosen), which.min(fit$kernels$score))
  # Without the mean, the squared exponential may mistake the season for noise; then Matern 5/2 is the best.
  score <- stats::setNames(fit$kernels$score, fit$kernels$kernel)
  expect_lt(score[["squared exponential + linear mean"]], score[["Matern 5/2 + linear mean"]] - 0.03)
})

test_that("an input that identifies individuals has a short lengthscale, whichever input it is", {
  skip_on_cran()
  made <- function(d) with_seed(1, pfdtc(y ~ ., d, transform = "none", noise = ~ 1, control = list(progress = FALSE)))
  for (seed in c(2, 3)) { # without the short start: one smooth kernel, or an additive kernel
    d <- individuals(seed)
    fit <- made(d)
    expect_true(has_profile(fit$kernel, "mean"))
    values <- coef(fit)
    short <- values[grepl("lengthscale", names(values)) & grepl("start", names(values))]
    expect_lt(min(short), 0.3)
    expect_lt(sigma(fit), 0.25) # the truth is 0.15
    without <- with_replaced(list(short_run = function(...) NULL), made(d))
    expect_gt(as.numeric(logLik(fit) - logLik(without)), if (seed == 2) 100 else 2)
    turned <- made(d[c("other", "t", "start", "y")])
    expect_equal(as.numeric(logLik(turned)), as.numeric(logLik(fit)), tolerance = 0.02)
  }
  # An additive kernel would be likelier than one smooth kernel, but 15 nats less likely than a short lengthscale beside
  # a linear mean.
  many <- with_seed(1, pfdtc(y ~ ., individuals(23, count = 60, rows = 4), transform = "auto"))
  expect_true(has_profile(many$kernel, "mean"))
  expect_gt(as.numeric(logLik(many)), -70)
})

test_that("starts with one short lengthscale keep the variance of the mean, and must gain enough", {
  d <- individuals(2)
  cleaned <- data_from_matrix(as.matrix(d[1:3]), d$y)
  problem <- line_problem(cleaned, "matern32+mean")
  seen <- list()
  climb_from <- climb
  run <- with_replaced(list(climb = function(problem, theta, ...) {
    seen <<- c(seen, list(theta))
    climb_from(problem, theta, ...)
  }), short_run(problem, problem$unit, -Inf))
  at <- seen[[1L]] - problem$unit
  lengths <- at[problem$table$what == "lengthscale"]
  expect_true(any(abs(lengths[[1L]] - log(short_lengthscales)) < 1e-12))
  expect_equal(unname(lengths[2:3]), rep(log(3 * sqrt(3)), 2), tolerance = 1e-12)
  expect_identical(unname(at[problem$last - 1L]), 0)
  expect_gt(run$value, problem$vecchia(seen[[1L]], 1:120, problem$neighbours(seen[[1L]], 1:120, 30L), FALSE)$value)
  expect_null(short_run(problem, problem$unit, run$value - short_rule[["nats"]] + 1e-6))
  expect_null(short_run(problem, problem$unit, run$value + 1e3)) # the start is far below: no search
})
