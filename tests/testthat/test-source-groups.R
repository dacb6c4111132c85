# Tests that row sources with groups add up the sums by level of their blocks.

source_rows <- function(n = 300) {
  with_seed(3, {
    d <- data.frame(x = stats::runif(n), z = stats::rnorm(n), g = paste0("l", sample(25, n, TRUE)),
                    h = sample(c(2, 10, 33), n, TRUE), w = sample(0:2, n, TRUE))
    d$y <- sin(6 * d$x) + d$z * (d$h == 10) + (d$g < "l2") + stats::rnorm(n, sd = 0.3)
    d$g[5] <- NA
    d
  })
}

source_fit_of <- function(data, ...) {
  kernel <- kernel_matern(3 / 2, 0.3, 1, inputs = ~ x) + kernel_group(~ g, variance = 0.7) +
    kernel_group(~ h, ~ 1 + z, correlated = FALSE, variance = 0.5, scale = 0.8)
  suppressMessages(pfdtc(y ~ x, data, weights = w, neighbours = 0, inducing = points, kernel = kernel, noise = 0.1,
                         hyper = "fixed", ...))
}
points <- cbind(seq(0, 1, length.out = 12), 0, 1, 1)

test_that("a grouped fit of a source is that of its rows in memory, whatever the blocks and the workers", {
  d <- source_rows()
  whole <- source_fit_of(d)
  new <- rbind(d[c(1:4, 300), ], transform(d[1, ], g = "new"))
  on_workers <- function(code) with_replaced(list(find_crew = function() fake_crew(2)), code)
  parts <- on_workers(rows_parts(list(d[1:120, ], d[121:300, ])))
  for (source in list(in_blocks(d), in_blocks(d, c(0, 1, 199, 0, 100)), parts)) {
    part <- on_workers(source_fit_of(source))
    expect_s3_class(posterior_of(part), "grouped")
    # The sums have the same terms in another order.
    expect_equal(part$factors[c("gamma", "b", "quad", "t", "n")], whole$factors[c("gamma", "b", "quad", "t", "n")],
                 tolerance = 1e-8)
    expect_equal(part$evidence, whole$evidence, tolerance = 1e-9)
    expect_equal(suppressMessages(predict(part, new, se.fit = TRUE)),
                 suppressMessages(predict(whole, new, se.fit = TRUE)), tolerance = 1e-7)
    expect_equal(nlme::ranef(part)$g, nlme::ranef(whole)$g, tolerance = 1e-7)
    expect_equal(rownames(nlme::ranef(part)$h), c("2", "10", "33"))
    expect_null(part$data)
  }
})

test_that("a mean of an input that only `mean` names is that of a data frame, for few and for many rows", {
  d <- transform(source_rows(), w = NULL)
  for (rest in list(list(y ~ (1 | g)), list(y ~ x + (1 | g), m = 12))) {
    fits <- lapply(list(d, in_blocks(d)), function(data) {
      with_seed(1, suppressMessages(do.call(pfdtc, c(rest, list(data = data, mean = ~ z, plain = TRUE)))))
    })
    expect_identical(names(coef(fits[[2]])), names(coef(fits[[1]])))
    expect_equal(coef(fits[[2]])["z"], coef(fits[[1]])["z"], tolerance = 0.02) # with `m` their samples differ
  }
})

test_that("variances of groups are learned from all rows of a source", {
  d <- source_rows()
  fit <- with_seed(1, suppressMessages(pfdtc(y ~ x + (1 | g), in_blocks(d), m = 12, plain = TRUE)))
  f <- fit$factors
  expect_equal(f$n, sum(!is.na(d$g)))
  bound <- function(of_group, of_noise) {
    g <- f$groupings[[1L]]
    noise <- f$noise * of_noise
    g$root <- g$root * sqrt(of_group)
    at <- factors_of_effects(f$sums, nrow(f$L), f$columns, list(g), noise)
    -(at$n * log(noise) + at$logdet + at$quad + at$t / noise) / 2
  }
  expect_gte(bound(1, 1), max(bound(0.8, 1), bound(1.25, 1), bound(1, 0.9), bound(1, 1.1)))
})

test_that("calls that need the rows of a source with groups are refused with an alternative", {
  d <- source_rows()
  expect_error(suppressMessages(pfdtc(y ~ x + (1 | g), in_blocks(d), m = 12, neighbours = 9)), "neighbours",
               class = "pfdtc_error_input")
  fit <- source_fit_of(in_blocks(d))
  expect_error(suppressMessages(certify(fit, d[1:3, ])), class = "pfdtc_error_input")
  expect_error(suppressMessages(add_rows(fit, d[1:3, ])), class = "pfdtc_error_input")
  expect_error(source_fit_of(in_blocks(transform(d, g = "one"))), class = "pfdtc_error_input")
  expect_input_error(evidence_bounds(replace(fit, "norms", list(NULL))), "fit")
})

test_that("model frames and partial dependence of a source need newdata, or rows that the fit keeps", {
  d <- data.frame(x = seq(0, 1, length.out = 30))
  d$y <- sin(5 * d$x)
  of <- function(...) pfdtc(y ~ x, in_blocks(d), kernel = kernel_se(0.3, 1), noise = 0.01, hyper = "fixed", ...)
  fit <- of(m = 8)
  expect_error(model.frame(fit), "newdata", class = "pfdtc_error_input")
  expect_error(partial_dependence(fit, "x"), "newdata", class = "pfdtc_error_input")
  kept <- of() # a fit of few rows keeps them
  expect_equal(model.frame(kept), model.frame(y ~ x, d), ignore_attr = TRUE)
  expect_identical(nrow(partial_dependence(kept, "x", n = 3, certified = FALSE)), 3L)
})
