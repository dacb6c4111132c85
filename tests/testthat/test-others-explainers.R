# Tests that packages which explain any model by its predict() need no method of this package.

test_that("DALEX explains a fit by its predict()", {
  skip_if_not_installed("DALEX")
  fit <- pfdtc(Volume ~ Girth + Height, trees, kernel = kernel_se(c(8, 30), 900), noise = 5, hyper = "fixed")
  explainer <- from("DALEX", "explain")(fit, trees[c("Girth", "Height")], trees$Volume, verbose = FALSE)
  expect_equal(explainer$y_hat, unname(predict(fit)))
  expect_equal(from("DALEX", "model_performance")(explainer)$measures$rmse, sqrt(mean(residuals(fit)^2)))
})

test_that("iml explains a fit by its predict()", {
  skip_if_not_installed("iml")
  fit <- pfdtc(Volume ~ Girth + Height, trees, kernel = kernel_se(c(8, 30), 900), noise = 5, hyper = "fixed")
  predictor <- from("iml", "Predictor")$new(fit, trees[c("Girth", "Height")], trees$Volume, predict.function = predict)
  expect_equal(predictor$predict(trees[1:3, ])[[1]], unname(predict(fit, trees[1:3, ])))
  partial <- from("iml", "FeatureEffect")$new(predictor, "Girth", method = "pdp", grid.points = c(10, 15))
  by_hand <- vapply(c(10, 15), function(g) mean(predict(fit, transform(trees, Girth = g))), 0)
  expect_equal(partial$results$.value, by_hand)
})
