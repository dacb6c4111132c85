# Which kernel is chosen.

test_that("the kernel is the one with the best held-out score, and the right one where data tell", {
  for (profile in c("matern12", "se")) {
    data <- prior_draw(ref_kernel(profile, 0.3, 4), 400, noise = 1e-3)
    fit <- learn(data)
    expect_identical(fit$kernel$profile, profile)
    table <- fit$kernels
    expect_false(is.unsorted(table$score))
    expect_identical(table$chosen, c(TRUE, FALSE, FALSE, FALSE))
    expect_setequal(table$kernel, vapply(profiles, profile_label, ""))
    expect_identical(table$kernel[1], profile_label(profile))
    name <- if (profile == "se") "squared" else "Matern 1/2"
    expect_output(print(fit), sprintf("%s.*, chosen by held-out score", name))
    # a score is the mean of -log p(y_i | all others), where all are near
    some <- list(x = data$x[1:40, ], y = data$y[1:40])
  }
  cleaned <- data_from_matrix(some$x, some$y)
  s <- list(kernel = place_kernel(kernel_matern(5 / 2), cleaned$x), noise = NULL, columns = colnames(cleaned$x),
            control = pfdtc_control(progress = FALSE), free = c("lengthscale.x1", "variance", "noise"))
  problem <- with_seed(7, learning_problem(learning_rows(cleaned, s), s, "matern52"))
  theta <- log(c(0.4, 1.3, 0.1))
  Ti <- solve(dense_covariance(cleaned$x, "matern52", theta))
  left <- drop(Ti %*% cleaned$y) / diag(Ti)      # leave one out: y_i - mean, of variance 1 / Ti_ii
  scores <- conditional_scores(problem, theta)
  expect_length(scores, 20)
  expect_close(mean(scores), mean(log(2 * pi / diag(Ti)) + left^2 * diag(Ti)) / 2, 1e-9)
  # the first stays where another is better by what may be chance
  noise <- rep(c(-1, 1), 10)
  expect_identical(best_kernel(list(0 * noise, noise - 0.4, noise + 1)), 1L)
  expect_identical(best_kernel(list(0 * noise, noise - 0.4, noise - 0.6)), 3L)
  expect_identical(best_kernel(list(0 * noise, noise * 0.1 - 0.4, noise - 0.5)), 3L)
  expect_identical(best_kernel(list(0 * noise, noise * 0.1 - 0.4, noise - 0.45)), 2L)
  # what cannot be computed is never chosen where anything else can
  none <- replace(noise, 3, Inf)
  expect_identical(best_kernel(list(0 * noise, none, noise)), 1L)
  expect_identical(best_kernel(list(none, noise + 5, noise + 4)), 3L)
})

test_that("a kernel whose likelihood cannot be computed is none to choose", {
  # so little noise that the squared exponential of long lengthscales has no factor
  data <- list(x = matrix(seq(0, 1, length.out = 60)))
  data$y <- sin(3 * data$x[, 1])
  cleaned <- data_from_matrix(data$x, data$y)
  s <- list(kernel = place_kernel(kernel_se(), cleaned$x), noise = 1e-30, columns = colnames(cleaned$x),
            control = pfdtc_control(progress = FALSE), free = c("lengthscale.x1", "variance"))
  problem <- with_seed(1, learning_problem(learning_rows(cleaned, s), s, "se"))
  expect_identical(mean(conditional_scores(problem, log(c(5, 1, 1e-30)))), Inf)
  expect_identical(climb(problem, log(c(5, 1, 1e-30)), learning_sizes$whole, 3L)$value, -Inf)
  fit <- tryCatch(learn(data, noise = 1e-30, control = list(fix = "noise")), pfdtc_error_numerical = function(e) NULL)
  if (!is.null(fit)) {
    expect_lt(fit$kernels$score[fit$kernels$chosen], Inf)
    expect_true(all(is.finite(predict(fit, matrix(c(0.1, 2))))))
  }
})
