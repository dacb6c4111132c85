# Tests the comparison with a linear kernel for responses of which most are equal.

# Returns the fit of y to x with the default choice of a model.
found <- function(d, ...) with_options(list(pfdtc.transform = "auto"), suppressMessages(pfdtc(y ~ x, d, ...)))

# Returns the log density of each response, predicted by the fits of found() to the other two of three random folds.
density_of_thirds <- function(d, ...) {
  fold <- with_seed(1, sample(rep_len(1:3, nrow(d))))
  out <- numeric(nrow(d))
  for (i in 1:3) {
    fit <- found(d[fold != i, ], ...)
    out[fold == i] <- predict(fit, d[fold == i, ], type = "density")
  }
  out
}

# Evaluates `code` without the comparison with a linear kernel.
without_rule <- function(code) with_replaced(list(common_value = replace(common_value, "share", 1)), code)

noise_at_few <- with_seed(9, data.frame(x = stats::runif(60), y = c(rep(0, 51), stats::rnorm(9))))
bump <- data.frame(x = seq(0, 1, length.out = 60))
bump$y <- pmax(0, cos(6 * bump$x) - 0.8) + (bump$x > 0.96) # a smooth function of x, 0 on most of the range

test_that("a linear kernel is used if it predicts held-out rows better by two standard errors", {
  skip_on_cran()
  for (d in list(noise_at_few, bump)) {
    gain <- without_rule(density_of_thirds(d, kernel = kernel_linear()) - density_of_thirds(d))
    better <- mean(gain) > 2 * stats::sd(gain) / sqrt(nrow(d))
    expect_identical(better, identical(d, noise_at_few)) # both outcomes are tested
    fit <- found(d)
    same <- if (better) found(d, kernel = kernel_linear()) else without_rule(found(d))
    expect_identical(predict(fit, d), predict(same, d))
    expect_identical("common_value" %in% names(fit$because), better)
    if (better) expect_match(fit$because[["common_value"]], sprintf("%.2g higher", mean(gain)), fixed = TRUE)
  }
})

test_that("the comparison is left out if arguments exclude a choice, rows are few, or values are less often equal", {
  compared <- function(d, ...) {
    count <- 0
    with_replaced(list(log_density_of_folds = function(...) {
      count <<- count + 1 / 2 # two kernels
      0
    }), found(d, ...))
    count
  }
  for (d in list(noise_at_few, bump)) expect_equal(compared(d), 1)
  expect_equal(compared(noise_at_few, kernel = kernel_matern(3 / 2)), 0)
  expect_equal(compared(noise_at_few, plain = TRUE), 0)
  expect_equal(compared(noise_at_few, noise = 0.1), 0)
  expect_equal(suppressWarnings(compared(noise_at_few, control = pfdtc_control(max_seconds = 0.01))), 0)
  some <- noise_at_few[11:60, ]
  expect_equal(compared(some), 1) # 41 of 50 are 0
  expect_equal(compared(replace(some, "y", list(replace(some$y, 1L, 1)))), 0) # 40 of 50 are 0
  expect_equal(compared(some[-1L, ]), 0) # 49 rows
})

test_that("rows of weight 0 change nothing, and the time of the comparison is counted", {
  only_nightly()
  densities <- log_density_of_folds
  slow <- function(...) {
    Sys.sleep(0.1)
    densities(...)
  }
  for (d in list(bump, noise_at_few)) { # both outcomes
    taken <- system.time(fit <- with_replaced(list(log_density_of_folds = slow), found(d)))[["elapsed"]]
    expect_gt(fit$seconds[["comparison"]], 0.19) # two kernels; steps of the clock are shorter than 0.01
    expect_lte(sum(fit$seconds), taken + 0.01)
  }
  more <- rbind(noise_at_few, data.frame(x = c(0.1, 0.2), y = c(3, 4)))
  weighted <- found(more, weights = rep(1:0, c(60, 2)))
  expect_identical(weighted$because[["common_value"]], fit$because[["common_value"]])
  expect_equal(predict(weighted, noise_at_few), predict(fit, noise_at_few), tolerance = 1e-8) # rounding
})

test_that("update() chooses the kernel again, and the seed of random numbers changes nothing", {
  only_nightly()
  fit <- with_seed(1, found(noise_at_few))
  expect_identical(fit$asked$kernel, NULL)
  other <- with_seed(2, found(noise_at_few))
  expect_identical(fit$because, other$because)
  again <- with_options(list(pfdtc.transform = "auto"), suppressMessages(update(fit, subset = x > 0.02)))
  expect_match(again$because[["common_value"]], "Linear kernel")
})

test_that("a fit is kept if a fit to a fold fails or is interrupted", {
  failing <- list(function(...) abort_numerical("no factor"), function(...) abort_input("x", "is wrong"),
                  function(data, asked, state) state$stopped <- list(3L, "interrupted"))
  for (fit_with in failing) expect_null(unless_it_fails(fit_with, NULL, NULL))
  kept <- with_replaced(list(unless_it_fails = function(...) NULL), found(noise_at_few))
  expect_false("common_value" %in% names(kept$because))
})
