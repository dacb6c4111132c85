# Tests which family a response gets if none is given.

fixed <- function(formula, data) pfdtc(formula, data, kernel = kernel_se(1, 1), hyper = "fixed")

test_that("classes have the family of their number and order, with a message, and numbers stay Gaussian", {
  d <- with_seed(1, data.frame(x = stats::rnorm(40)))
  cut3 <- cut(d$x, c(-Inf, -0.4, 0.4, Inf), c("a", "b", "c"))
  cases <- stats::setNames(
    list(factor(d$x > 0, labels = c("no", "yes")), d$x > 0, ifelse(d$x > 0, "yes", "no"), cut3, as.character(cut3),
         ordered(cut3, c("a", "b", "c")), ordered(d$x > 0)),
    c("binomial", "binomial", "binomial", "multinomial", "multinomial", "ordinal", "binomial"))
  for (i in seq_along(cases)) {
    d$y <- cases[[i]]
    name <- names(cases)[i]
    expect_message(fit <- fixed(y ~ x, d), name, class = "pfdtc_message_family")
    expect_identical(fit$likelihood$name, name)
    asked <- pfdtc(y ~ x, d, family = list(binomial = binomial, multinomial = multinomial, ordinal = ordinal)[[name]](),
                   kernel = kernel_se(1, 1), hyper = "fixed")
    expect_equal(predict(fit), predict(asked))
    expect_message(by_matrix <- pfdtc(cbind(x = d$x), d$y, kernel = kernel_se(1, 1), hyper = "fixed"), name)
    expect_equal(unname(predict(by_matrix)), unname(predict(fit)))
  }
  numbers <- pfdtc(I(as.numeric(x > 0)) ~ x, d, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  expect_null(numbers$likelihood)
  expect_error(pfdtc(y ~ x, transform(d, y = as.character(x))), "y", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ x, d, noise = 1), "y", class = "pfdtc_error_input")
  expect_identical(suppressMessages(fixed(y ~ x, transform(d, y = x > 0)))$likelihood$levels, c("FALSE", "TRUE"))
})

test_that("a level without rows is no class, and one class is refused", {
  d <- with_seed(1, data.frame(x = stats::rnorm(20)))
  d$y <- factor(ifelse(d$x > 0, "up", "down"), c("down", "none", "up"))
  expect_message(fit <- fixed(y ~ x, d), "binomial")
  expect_identical(fit$likelihood$levels, c("down", "up"))
  for (y in list(factor(rep("a", 20)), rep("a", 20), ordered(rep("a", 20)))) {
    d$y <- y
    expect_error(fixed(y ~ x, d), "single class", class = "pfdtc_error_input")
  }
})

test_that("a Surv response without a family has that of the largest log marginal likelihood", {
  skip_if_not_installed("survival")
  d <- with_seed(2, data.frame(x = stats::runif(40)))
  d$t <- with_seed(3, exp(d$x + 0.3 * stats::rnorm(40)))
  y <- survival::Surv(d$t, rep(c(1, 1, 1, 0), 10))
  expect_message(fit <- fixed(y ~ x, d), "lognormal|loglogistic|weibull", class = "pfdtc_message_family")
  made <- suppressMessages(best_of_times(function(family) list(evidence = 1, seconds = c(learn = 2, posterior = 1))))
  expect_equal(sum(made$seconds), 9) # of all three families
  evidence <- vapply(list(weibull(), loglogistic(), lognormal()), function(family) {
    pfdtc(y ~ x, d, family = family, kernel = kernel_se(1, 1), hyper = "fixed")$evidence
  }, 0)
  expect_equal(fit$evidence, max(evidence))
  expect_match(fit$because[["family"]], " below")
})

test_that("overflow fails only the check that values are finite, and the error of a fit names it", {
  steep <- gp_family(~ y * f - log(1 + exp(200 * f)))
  checks <- check_family(steep, 0:1)
  expect_identical(checks$holds, c(FALSE, rep(TRUE, nrow(checks) - 1L)))
  edge <- check_family(gp_family(~ y * f - exp(120 * f), kappa = 120), 0, f = c(-1, 5.85)) # overflows above f = 5.91
  expect_true(all(edge$holds[-1]))
  d <- data.frame(x = 1:6, y = c(0, 1, 0, 1, 1, 0))
  expect_error(pfdtc(y ~ x, d, family = steep, kernel = kernel_se(1, 1), hyper = "fixed"), "exp\\(710\\) is infinite",
               class = "pfdtc_error_input")
})
