# Returns a fit of few points and what the dense posterior of the exact GP is at new rows.
certified_case <- function(K, m, seed, w = NULL) {
  set.seed(seed)
  x <- matrix(stats::runif(80), 40, dimnames = list(NULL, c("a", "b")))
  class <- sample(K, 40, TRUE)
  kernel <- kernel_se(0.4, 2)
  fit <- pfdtc(x, factor(letters[class]), family = multinomial(), kernel = kernel, hyper = "fixed", m = m, weights = w)
  new <- matrix(stats::runif(16, -0.2, 1.2), 8, dimnames = list(NULL, c("a", "b")))
  dense <- ref_classes(kernel_matrix(kernel, x), class, fit$center, if (is.null(w)) rep(1, 40) else w)
  at <- ref_classes_at(dense, kernel_matrix(kernel, x, new), rep(2, 8), fit$center)
  list(fit = fit, new = new, dense = dense, at = at)
}

test_that("the exact mode, sd, probabilities and evidence lie inside, on own points and by a reference", {
  for (K in c(2, 4)) {
    for (m in c(3, 8, 20)) {
      one <- certified_case(K, m, seed = K + m, w = if (m == 8) stats::runif(40, 0.1, 5))
      odds <- c(t(one$at$mean - one$at$mean[, 1]))
      sd <- c(apply(one$at$cov, 1, function(V) sqrt(pmax(diag(V) + V[1] - 2 * V[1, ], 0))))
      p <- c(t(ref_softmax(one$at$mean)))
      width <- c(fast = NA, reference = NA)
      for (effort in names(width)) {
        said <- certify(one$fit, one$new, effort = effort)
        expect_true(all(odds >= said$mean_lower - 1e-8 & odds <= said$mean_upper + 1e-8))
        expect_true(all(sd >= said$sd_lower - 1e-8 & sd <= said$sd_upper + 1e-8))
        expect_true(all(p >= said$response_lower - 1e-9 & p <= said$response_upper + 1e-9))
        width[effort] <- sum(said$mean_upper - said$mean_lower)
      }
      expect_lte(width[["reference"]], width[["fast"]] * (1 + 1e-10))
      bracket <- evidence_bounds(one$fit)
      expect_true(one$dense$evidence >= bracket[["lower"]] - 1e-8 && one$dense$evidence <= bracket[["upper"]] + 1e-8)
    }
    expect_lt(diff(bracket), 0.3) # 20 points leave little of this kernel
  }
})

test_that("a certificate is wider where the mode is not reached, and still holds", {
  one <- certified_case(3, 12, seed = 5)
  moved <- one$fit
  moved$factors$beta <- moved$factors$beta + 0.2
  said <- certify(moved, one$new, effort = "fast")
  odds <- c(t(one$at$mean - one$at$mean[, 1]))
  expect_true(all(odds >= said$mean_lower & odds <= said$mean_upper))
  expect_gt(sum(said$mean_error), 10 * sum(certify(one$fit, one$new, effort = "fast")$mean_error))
})

test_that("a certificate has a row for each row and class, and prints", {
  one <- certified_case(3, 12, seed = 6)
  said <- certify(one$fit, one$new)
  expect_identical(nrow(said), 24L)
  expect_identical(levels(said$class), c("a", "b", "c"))
  expect_equal(said$mean[said$class == "b"], unname(predict(at_mode(one$fit), one$new)[, "b"]), tolerance = 1e-10)
  expect_equal(unname(tapply(said$response, said$row, sum)), rep(1, 8), ignore_attr = TRUE, tolerance = 1e-12)
  expect_output(print(said), "Certificate")
})
