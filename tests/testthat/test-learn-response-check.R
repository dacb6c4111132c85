# Responses that held-out rows refuse, or that stay as given.

test_that("one row does not refuse a response by its squared error, two do", {
  made <- list(problem = list(pool = list(n = 20), center = 0, scale = 1))
  first <- c(made, list(held = data.frame(y = 0, f = rep(1, 20), var = 0, size = 0)))
  with_errors <- function(f) replace(first, "held", list(replace(first$held, "f", f)))
  expect_null(reason_to_refuse(with_errors(c(100, rep(1, 19))), first, list()))
  expect_match(reason_to_refuse(with_errors(c(100, 100, rep(1, 18))), first, list()), "squared errors")
  expect_null(reason_to_refuse(with_errors(rep(sqrt(1.19), 20)), first, list()))
  expect_match(reason_to_refuse(with_errors(rep(sqrt(1.21), 20)), first, list()), "squared errors")
  expect_match(reason_to_refuse(with_errors(c(NA, rep(1, 19))), first, list()), "squared errors")
})

test_that("a deterministic response stays as given", {
  d <- with_seed(1, data.frame(a = stats::runif(60), b = stats::runif(60)))
  d$y <- exp(2 * d$a) * (1.2 + sin(4 * d$b)) # skew and positive
  fit <- with_seed(1, pfdtc(y ~ ., d, transform = "auto"))
  expect_null(fit$transform)
  expect_match(fit$because[["response"]], "next to no noise")
  plain <- coef(with_seed(1, pfdtc(y ~ ., d, transform = "none", noise = ~ 1)))
  long <- grepl("lengthscale", names(plain))
  expect_equal(coef(fit)[long], plain[long])
})
