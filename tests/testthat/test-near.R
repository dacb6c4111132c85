test_that("posterior, parts of the variance and evidence are those of the dense formulas", {
  for (p in problems()) {
    for (s in list(c(4, 4), c(3, 5), c(5, 1), c(0, 3), c(3, 0))) {
      got <- near_case(p, s[1], s[2])
      expected <- ref_near_case(p, s[1], s[2], got)
      info <- paste(label_of(p), "s", s[1], s[2])
      expect_near(got, expected, p$kernel$variance, 1e-9, info)
      expect_close(got$var_near, expected$var_near, 1e-9, info)
      expect_close(got$var_far, expected$var_far, 1e-9, info)
    }
  }
})

test_that("with all rows near, and all earlier ones in training, it is the exact Gaussian process", {
  for (p in problems()) {
    n <- nrow(p$x)
    got <- near_case(p, n, n)
    exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
    expected <- list(mean = exact$mean(p$new), var = ref_variance(exact, p$new),
                     evidence = exact$evidence - sum(log(ref_weights(p$weights, p$x))) / 2)
    expect_near(got, expected, p$kernel$variance, 1e-9, label_of(p))
    expect_near(near_case(p, 10 * n, 10 * n), expected, p$kernel$variance, 1e-9, label_of(p)) # more than there are
  }
})

test_that("without neighbours it is FITC", {
  for (p in problems()) {
    got <- near_case(p, 0, 0)
    fit <- fit_by("gp_fitc", p)
    expect_close(got$mean, unname(predict(fit, p$new)), 1e-9, label_of(p))
    expect_close(sqrt(got$var_near + got$var_far), unname(predict(fit, p$new, se.fit = TRUE)$se.fit), 1e-9, label_of(p))
    expect_close(got$evidence, as.numeric(logLik(fit)) - sum(log(ref_weights(p$weights, p$x))) / 2, 1e-9, label_of(p))
  }
})
