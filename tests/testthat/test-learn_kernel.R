# The kernel that is chosen where none is given.

test_that("the kernel is the one with the best held-out score, and the right one where data tell", {
  for (profile in c("matern12", "se")) {
    data <- prior_draw(ref_kernel(profile, 0.3, 4), 400, noise = 1e-3)
    fit <- learn(data)
    expect_identical(fit$kernel$profile, profile)
    table <- fit$kernels
    table <- table[!is.na(table$se), ] # lines: test-learn_line.R
    expect_false(is.unsorted(table$score))
    expect_identical(which(table$chosen), 1L)
    expect_setequal(setdiff(table$kernel, profile_label(two_scales)), vapply(profiles, profile_label, ""))
    expect_identical(table$kernel[1], profile_label(profile))
    expect_identical(table$se[1], 0)
    name <- if (profile == "se") "squared" else "Matern 1/2"
    expect_output(print(fit), name)
    # a score is the mean of -log p(y_i | all others), where all are near
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
  # with its parameters for each of the rows learned from, however small the difference
  judged <- judge_kernel(problem, theta)
  expect_close(judged$score, mean(judged$scores) + 2 * 3 / 40, 1e-12)
  expect_close(mean(conditional_scores(problem, judged$theta)), mean(judged$scores), 1e-12)
  expect_null(judge_kernel(problem, theta, least = judged$value + 1))
  by_score <- function(...) best_kernel(lapply(list(...), function(v) list(score = v)))
  expect_identical(by_score(a = 0.1, b = 0.099, c = 0.2), "b")
  # what cannot be computed is never chosen where anything else can
  expect_identical(by_score(a = Inf, b = 5), "b")
  # and the table says how sure the differences are
  shift <- rep(c(-1, 1), 10)
  judged <- list(se = list(scores = 0.5 + shift, score = 0.5), matern12 = list(scores = 0 * shift, score = 0))
  table <- table_of_kernels(judged, "matern12")
  expect_identical(table$kernel, c("Matern 1/2", "squared exponential"))
  expect_equal(table$se, c(0, stats::sd(shift) / sqrt(20)))
  expect_identical(table$chosen, c(TRUE, FALSE))
})

test_that("of many rows kernels are left out where one nearer to Matern 3/2 lost to it", {
  tried <- function(...) {
    judged <- list(matern32 = list(score = 0))
    scores <- list(...)
    for (profile in kernel_candidates[-1]) {
      if (may_be_best(profile, judged)) judged[[profile]] <- list(score = scores[[profile]])
    }
    names(judged)
  }
  expect_identical(tried(matern12 = -1), c("matern32", "matern12"))
  expect_identical(tried(matern12 = 1, matern52 = 1), c("matern32", "matern12", "matern52"))
  expect_identical(tried(matern12 = 1, matern52 = -1, se = -2), c("matern32", "matern12", "matern52", "se"))
})

test_that("a sum of a long and a short scale is found, and is not where there is one scale", {
  data <- prior_draw(ref_kernel("matern32", c(1, 1), 4), 400, noise = 0.0025, seed = 3)
  short <- dense_kernel(data$x, "matern32", c(0.05, 0.05), 0.5) + diag(1e-8, 400)
  data$y <- data$y + with_seed(2, drop(crossprod(chol(short), stats::rnorm(400))))
  fit <- learn(data)
  expect_identical(length(fit$kernel$terms), 2L)
  expect_identical(fit$kernels$kernel[1], "Matern 3/2 + Matern 3/2")
  expect_output(print(fit), "Matern 3/2, sd.*; Matern 3/2, sd")
  expect_identical(fit$df, 7L)
  expect_named(coef(fit), c("matern32.lengthscale.x1", "matern32.lengthscale.x2", "matern32.variance",
                            "matern32_1.lengthscale.x1", "matern32_1.lengthscale.x2", "matern32_1.variance", "noise"))
  scales <- matrix(coef(fit)[c(1, 2, 4, 5)], 2)
  expect_true(all(scales[, 1] > 4 * scales[, 2]))
  # the exact evidence is that of the sum, and above that of one scale by more than its parameters
  sum_of <- dense_kernel(data$x, "matern32", scales[, 1], coef(fit)[[3]]) +
    dense_kernel(data$x, "matern32", scales[, 2], coef(fit)[[6]])
  R <- chol(sum_of + diag(fit$noise, 400))
  expect_equal(as.numeric(logLik(fit)), -200 * log(2 * pi) - sum(log(diag(R))) -
                 sum(backsolve(R, data$y - fit$center, transpose = TRUE)^2) / 2, tolerance = 1e-6)
  expect_gt(as.numeric(logLik(fit)), as.numeric(logLik(learn(data, kernel = kernel_matern(3 / 2)))) + 3)
  one <- learn(prior_draw(ref_kernel("matern32", c(0.3, 0.3), 4), 400, noise = 0.01))
  expect_null(one$kernel$terms)
  # a noise that is held stays with it
  held <- learn(data, noise = 0.01, control = list(fix = "noise"))
  expect_equal(held$noise, 0.01, tolerance = 1e-14)
  expect_identical(held$df, length(coef(held)) - 1L)
})

test_that("a kernel whose likelihood cannot be computed is none to choose", {
  # so little noise that the squared exponential of long lengthscales has no factor
  data <- list(x = matrix(seq(0, 1, length.out = 60)))
  data$y <- sin(3 * data$x[, 1])
  cleaned <- data_from_matrix(data$x, data$y)
  s <- learning_settings(place_kernel(kernel_se(), cleaned$x), 1e-30, colnames(cleaned$x),
                         c("lengthscale.x1", "variance"), pfdtc_control(progress = FALSE))
  problem <- with_seed(1, learning_problem(learning_rows(cleaned, s), s, "se"))
  expect_identical(mean(conditional_scores(problem, log(c(5, 1, 1e-30)))), Inf)
  expect_identical(climb(problem, log(c(5, 1, 1e-30)), learning_sizes$whole, 3L)$value, -Inf)
  fit <- tryCatch(learn(data, noise = 1e-30, control = list(fix = "noise")), pfdtc_error_numerical = function(e) NULL)
  if (!is.null(fit)) {
    expect_lt(fit$kernels$score[fit$kernels$chosen], Inf)
    expect_true(all(is.finite(predict(fit, matrix(c(0.1, 2))))))
  }
})
