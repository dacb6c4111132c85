test_that("terms and their constant sum to the mean, and are the posteriors of independent functions", {
  skip_on_cran()
  x <- kernel_rows(25)
  y <- with_seed(3, stats::rnorm(25)) + x[, 1]
  w <- with_seed(4, stats::runif(25, 0.5, 2))
  new <- kernel_rows(6, 4)
  for (seed in 1:8) {
    k <- with_seed(seed, random_kernel() + random_factor("periodic") + random_factor("rq"))
    fit <- function(by, ...) {
      suppressMessages(by(x, y, kernel = k, noise = 0.2, hyper = "fixed", weights = w, ...))
    }
    exact <- fit(gp_exact)
    fits <- list(exact, fit(pfdtc, m = 4, control = pfdtc_control(maxit = 3)), fit(gp_sor, m = 4),
                 fit(pfdtc, m = 4, neighbours = 7), fit(pfdtc, m = 4, neighbours = 25))
    for (f in fits) {
      got <- predict(f, new, type = "terms", se.fit = TRUE)
      expect_equal(rowSums(got$fit) + attr(got$fit, "constant"), predict(f, new), tolerance = 1e-8,
                   ignore_attr = TRUE, info = seed)
      expect_identical(predict(f, new, type = "terms"), got$fit)
      expect_identical(dim(got$se.fit), dim(got$fit))
    }
    placed <- complete_kernel(k, x)
    Ky <- ref_composite(placed, x) + diag(0.2 / w)
    got <- lapply(fits[c(1, 5)], predict, new, type = "terms", se.fit = TRUE)
    for (t in seq_along(placed$terms)) {
      part <- placed
      part$terms <- placed$terms[t]
      K <- ref_composite(part, x, new)
      mean <- drop(crossprod(K, solve(Ky, y - exact$center)))
      sd <- sqrt(diag(ref_composite(part, new)) - colSums(K * solve(Ky, K)))
      for (g in got) { # exact, and with all rows near but for the jitter
        expect_equal(unname(g$fit[, t]), mean, tolerance = 1e-6, info = seed)
        expect_equal(unname(g$se.fit[, t]), sd, tolerance = 1e-4, info = seed)
      }
    }
  }
})

test_that("summary() has the terms' shares, of a sum alone; intervals of terms are refused", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_linear() + kernel_se(5))
  shares <- summary(fit)$term_shares
  expect_equal(sum(shares), 1)
  expect_output(print(summary(fit)), "linear(speed)", fixed = TRUE)
  expect_null(summary(gp_exact(dist ~ speed, cars, kernel = kernel_se()))$term_shares)
  expect_error(predict(fit, type = "terms", interval = "credible"), "terms", class = "pfdtc_error_input")
  expect_identical(colnames(predict(gp_exact(dist ~ speed, cars, kernel = kernel_se()), type = "terms")), "se(speed)")
})
