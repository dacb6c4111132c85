# Tests factors with few and with many levels: a lengthscale for each level, or one for the factor.

with_levels_of <- function(G, n = 120, seed = 1) {
  with_seed(seed, {
    g <- factor(rep_len(seq_len(G), n))
    d <- data.frame(x = runif(n), g = g)
    d$y <- sin(6 * d$x) + rnorm(G)[g] + rnorm(n, sd = 0.3)
    d
  })
}

test_that("a factor of more than 20 levels has one lengthscale, from 50 on with a message", {
  names_of <- function(G) {
    names(coef(suppressMessages(gp_exact(y ~ x + g, with_levels_of(G), kernel = kernel_se(), noise = 0.1,
                                         control = pfdtc_control(restarts = 1)))))
  }
  expect_identical(names_of(21), c("lengthscale.x", "lengthscale.g", "variance", "noise"))
  expect_identical(length(names_of(20)), 23L)
  read <- function(G) {
    d <- with_levels_of(G)
    data_from_formula(quote(pfdtc(formula = y ~ x + g, data = d)), environment())
  }
  expect_message(read(50), "(1 | g)", class = "pfdtc_message_levels", fixed = TRUE)
  expect_silent(read(49))
  # The kernel equals one with a column for each level and equal lengthscales.
  d <- with_levels_of(21)
  one <- suppressMessages(gp_exact(y ~ x + g, d, kernel = kernel_matern(lengthscale = c(0.4, 2), variance = 1),
                                   noise = 0.1, hyper = "fixed"))
  all <- gp_exact(y ~ x + g, d, kernel = kernel_matern(lengthscale = c(0.4, rep(2, 21)), variance = 1), noise = 0.1,
                  hyper = "fixed")
  expect_equal(predict(one), predict(all), tolerance = 1e-10)
  expect_equal(c(logLik(one)), c(logLik(all)), tolerance = 1e-10)
  # A kernel of a fit that lacks the last level: rows of this level have only zeros in its columns.
  d <- with_levels_of(22)
  few <- suppressMessages(gp_exact(y ~ x + g, droplevels(d[d$g != "22", ]), noise = 0.1, hyper = "fixed",
                                   kernel = kernel_matern(lengthscale = c(0.4, 2), variance = 1)))
  more <- gp_exact(y ~ x + g, d, kernel = few$kernel, noise = 0.1, hyper = "fixed")
  all <- gp_exact(y ~ x + g, d, noise = 0.1, hyper = "fixed",
                  kernel = kernel_matern(lengthscale = c(0.4, rep(2, 21)), variance = 1, inputs = 1:22))
  expect_equal(predict(more), predict(all), tolerance = 1e-10)
})

test_that("factors with more than 40 levels together have one lengthscale each", {
  shared <- function(levels) {
    last <- cumsum(levels)
    variables <- Map(function(n, last, name) list(name = name, kind = "factor", levels = 1:n, columns = last - n + 1:n),
                     levels, last, letters[seq_along(levels)])
    names(shared_lengthscales(seq_len(sum(levels)), paste0("c", seq_len(sum(levels))), unname(variables)))
  }
  expect_identical(shared(c(14, 14, 13)), rep(c("a", "b", "c"), c(14, 14, 13)))
  expect_null(shared(c(14, 13, 13)))
  expect_identical(shared(c(21, 3)), c(rep("a", 21), "c22", "c23", "c24"))
})

test_that("many inputs have no terms of single inputs, fewer have none of pairs", {
  kernel <- function(inputs, levels = 1L) {
    list(profile = NULL, inputs = seq_len(inputs * levels), groups = rep(seq_len(inputs), each = levels))
  }
  tried <- function(...) c(may_be_additive(kernel(...)), may_be_additive(kernel(...), "pairs"))
  expect_identical(tried(1), c(FALSE, FALSE))
  expect_identical(tried(2), c(TRUE, TRUE))
  expect_identical(tried(15, 8L), c(TRUE, TRUE))
  expect_identical(tried(16), c(TRUE, FALSE))
  expect_identical(tried(61), c(FALSE, FALSE))
})

test_that("few levels have one lengthscale if leave-one-out scores prefer it", {
  d <- with_levels_of(8, 64)
  other <- d
  other$y <- ifelse(d$g == "1", 4 * sin(9 * d$x), d$x) + with_seed(2, rnorm(64, sd = 0.1)) # one level differs
  for (data in list(d, other)) {
    fit <- pfdtc(y ~ x + g, data, transform = "none", noise = ~ 1)
    shared <- vapply(as_sum(fit$kernel)$leaves, function(leaf) !is.null(leaf$shared), NA)
    expect_identical(all(shared), !grepl("each level", fit$because[["factors"]]))
  }
})

test_that("lengthscales of factors are no printed choice if the fit is linear", {
  d <- with_seed(1, data.frame(x = runif(40), g = factor(sample(letters[1:3], 40, TRUE)), e = rnorm(40, sd = 0.3)))
  fit <- pfdtc(y ~ x + g, transform(d, y = x + 2 * (g == "b") + e), transform = "none", noise = ~ 1)
  printed <- paste(utils::capture.output(print(fit)), collapse = " ")
  expect_match(printed, "Kernel +none, because f is linear")
  expect_no_match(printed, "Factors")
})

test_that("factors with one lengthscale may have the additive kernel although the response was chosen with one each", {
  d <- with_seed(2, data.frame(a = runif(60), b = runif(60), g = factor(sample(letters[1:4], 60, TRUE))))
  d$y <- sin(6 * d$a) + 2 * (2 * d$b - 1)^2 + 0.7 * as.numeric(d$g) + with_seed(3, rnorm(60, sd = 0.15))
  fit <- pfdtc(y ~ ., d, transform = "auto")
  expect_match(fit$because[["factors"]], "one lengthscale each:")
  expect_true(is_additive(fit$kernel))
})
