test_that("differences and their brackets contain those of the exact evidence", {
  p <- problem(n = 40, m = 6, seed = 2)
  kernels <- list(kernel_se(c(0.9, 1.6), 1.7), kernel_se(c(0.5, 3), 1), kernel_matern(3 / 2, 1, 2))
  fits <- lapply(kernels, function(k) fit_fixed(p, kernel = k, maxit = 0, inducing = p$x[1:30, ]))
  exact <- vapply(kernels, function(k) {
    as.numeric(logLik(gp_exact(p$x, p$y, kernel = k, noise = 0.3, hyper = "fixed")))
  }, 0)
  table <- anova(fits[[1]], fits[[2]], fits[[3]])
  expect_s3_class(table, c("pfdtc_table", "anova", "data.frame"), exact = TRUE)
  expect_true(all(table$lower <= exact & exact <= table$upper))
  expect_true(all(table$at_least[-1] <= diff(exact) & diff(exact) <= table$at_most[-1]))
  expect_equal(table$difference[-1], diff(table$logLik))
  expect_equal(table$at_least[-1], table$lower[-1] - table$upper[-3])
  expect_equal(table$at_most[-1], table$upper[-1] - table$lower[-3])
  expect_equal(table$AIC, vapply(fits, AIC, 0))
  expect_true(all(is.na(table[1, c("difference", "at_least", "at_most")])))
})

test_that("anova() says which fit is better, and where the brackets leave that open", {
  p <- problem(n = 40, m = 4)
  good <- fit_fixed(p, maxit = 0, inducing = p$x[1:35, ])
  alike <- fit_fixed(p, maxit = 0)
  bad <- fit_fixed(p, maxit = 0, inducing = p$x, noise = 30)
  shown <- paste(utils::capture.output(print(anova(bad, good, alike))), collapse = "\n")
  expect_match(shown, "good.*bad.*[0-9]")
  expect_match(shown, "good, alike")
  expect_match(paste(attr(anova(good, bad), "heading"), collapse = ""), "good.*bad")
  lines <- strsplit(shown, "\n")[[1]]
  expect_true(all(nchar(lines) <= 80))
})

test_that("exact posteriors have brackets of rounding size, fits with neighbours none", {
  p <- problem(n = 40, m = 4)
  one <- gp_exact(p$x, p$y, kernel = kernel_se(c(1, 1), 2), noise = 0.3, hyper = "fixed")
  two <- gp_exact(p$x, p$y, kernel = kernel_se(c(1, 2), 2), noise = 0.3, hyper = "fixed")
  table <- anova(one, two)
  expect_equal(table$at_least, table$difference)
  alike <- gp_exact(p$x, p$y, kernel = kernel_se(c(1, 1), 2), noise = 0.30001, hyper = "fixed")
  expect_match(attr(anova(one, alike), "heading")[3], "by at least 0[.]0+[1-9]")
  near <- fit_fixed(p, maxit = 0, neighbours = 8)
  table <- anova(one, near)
  expect_true(is.na(table$lower[2]) && is.na(table$at_least[2]) && !is.na(table$difference[2]))
  expect_match(paste(attr(table, "heading"), collapse = ""), "no bounds")
})

test_that("a found transform and uneven noise are compared by the response as given", {
  given <- pfdtc(dist ~ speed, cars, kernel = kernel_se(), noise = ~ 1, transform = "none")
  logs <- pfdtc(dist ~ speed, cars, kernel = kernel_se(), noise = ~ speed, transform = "log")
  table <- anova(given, logs)
  expect_match(attr(table, "heading"), "log transform", fixed = TRUE, all = FALSE)
  expect_equal(table$difference[2], as.numeric(logLik(logs)) - as.numeric(logLik(given)))
  fewer <- pfdtc(dist ~ speed, cars[-1, ], kernel = kernel_se(), noise = ~ 1, transform = "log")
  expect_input_error(anova(given, fewer), "fewer")
  weighted <- pfdtc(dist ~ speed, cars, kernel = kernel_se(), noise = ~ 1, transform = "log", weights = speed)
  expect_input_error(anova(given, weighted), "weighted")
})

test_that("anova() compares fits with different inputs, but not with different responses", {
  one <- fit_mixed(y ~ a)
  both <- fit_mixed(y ~ a + b)
  table <- anova(one, both)
  expect_identical(row.names(table), c("one", "both"))
  expect_match(attr(table, "heading")[2], "y ~ a + b", fixed = TRUE)
  logs <- fit_mixed(exp(y) ~ a)
  expect_input_error(anova(one, logs), "logs")
  some <- fit_mixed(y ~ a, data = small_data(20)[-1, ])
  expect_input_error(anova(one, some), "some")
  expect_input_error(anova(one), "...")
  expect_input_error(anova(one), "drop1()")
  expect_input_error(anova(one, one, test = "Chisq"), "`test`")
  expect_input_error(anova(one, 3), "3")
})

test_that("responses with equal sums of values and squares are different responses", {
  d <- data.frame(x = 1:8, y = c(1, 5, 6, 4, 2, 2, 3, 9), z = c(2, 3, 7, 4, 2, 2, 3, 9))
  one <- function(formula, d) gp_exact(formula, d, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  expect_identical(c(sum(d$y), sum(d$y^2)), c(sum(d$z), sum(d$z^2)))
  expect_error(anova(one(y ~ x, d), one(z ~ x, d)), "another response", class = "pfdtc_error_input")
  expect_equal(anova(one(y ~ x, d), one(y ~ x, d[8:1, ]))$difference[2], 0, tolerance = 1e-10)
})

test_that("families of the same counts are compared by their brackets, with densities they are not", {
  with <- function(...) pfdtc(carb ~ wt, mtcars, kernel = kernel_se(1, 1), hyper = "fixed", ...)
  one <- with(family = poisson(), m = 3)
  two <- with(family = nb(4))
  table <- anova(one, two)
  a <- evidence_bounds(one)
  b <- evidence_bounds(two)
  expect_equal(table$at_least[2], b[["lower"]] - a[["upper"]])
  expect_equal(table$at_most[2], b[["upper"]] - a[["lower"]])
  expect_match(paste(attr(table, "heading"), collapse = ""), "negative binomial")
  expect_input_error(anova(one, with(noise = 1)), "with(noise = 1)")
  expect_input_error(anova(one, update(one, weights = wt)), "update")
  expect_identical(nrow(anova(with(noise = 1), with(family = student(4, 1)))), 2L)
})

test_that("anova() of fits of other rows says so", {
  one <- function(formula) gp_exact(formula, airquality, kernel = kernel_se(30, 900), noise = 500, hyper = "fixed")
  expect_error(anova(one(Ozone ~ Wind), one(Ozone ~ Solar.R)), "these have 116 and 111 rows.*complete.cases",
               class = "pfdtc_error_input")
})

test_that("with few rows logLik(), AIC() and evidence_bounds() are about the maximum", {
  fit <- with_seed(1, pfdtc(mpg ~ wt, mtcars, transform = "auto"))
  factor <- attr(fit$learned, "factor")
  expect_gt(factor, 1.1)
  at <- function(f) {
    gp_exact(mpg ~ wt, mtcars, kernel = f * fit$kernel, noise = f * fit$noise, hyper = "fixed",
             transform = fit$transform %||% "none")
  }
  peak <- at(1 / factor)
  expect_equal(as.double(logLik(fit)), peak$evidence, tolerance = 1e-10)
  expect_equal(c(attr(logLik(fit), "lower"), attr(logLik(fit), "upper")), rep(peak$evidence, 2), tolerance = 1e-8)
  expect_equal(fit$evidence, at(1)$evidence, tolerance = 1e-10)
  bounds <- evidence_bounds(fit)
  expect_true(bounds[["lower"]] <= as.double(logLik(fit)) && as.double(logLik(fit)) <= bounds[["upper"]])
  expect_true(bounds[["lower"]] <= peak$evidence && peak$evidence <= bounds[["upper"]])
  expect_lt(diff(bounds), 1e-8)
  fit$data <- NULL # bounds without the rows
  slim <- evidence_bounds(fit)
  expect_true(slim[["lower"]] <= peak$evidence && peak$evidence <= slim[["upper"]])
  fit <- with_seed(1, pfdtc(mpg ~ wt, mtcars, transform = "auto"))
  expect_true(all(as.double(logLik(fit)) >= c(at(1)$evidence, at(0.9 / factor)$evidence, at(1.1 / factor)$evidence)))
  expect_equal(AIC(fit), 2 * fit$df - 2 * peak$evidence)
  shown <- trimws(utils::capture.output(print(anova(fit, peak))))
  expect_match(paste(shown, collapse = " "), "fit are for variances before inflation, values of peak", fixed = TRUE)
  expect_warning(both <- AIC(fit, peak), "values of peak for given variances", class = "pfdtc_warning_evidence")
  expect_identical(c(extractAIC(fit)[2], both$AIC[1], anova(fit, peak)$AIC[1], generics::glance(fit)$AIC),
                   rep(AIC(fit), 4))
  twice <- rbind(mtcars, mtcars[1:10, ]) # merged rows
  fit <- with_seed(1, suppressMessages(pfdtc(mpg ~ wt, twice, transform = "auto")))
  factor <- attr(fit$learned, "factor")
  peak <- gp_exact(mpg ~ wt, twice, kernel = (1 / factor) * fit$kernel, noise = fit$noise / factor, hyper = "fixed",
                   transform = fit$transform %||% "none")
  if (is.null(fit$noise_trend)) expect_equal(as.double(logLik(fit)), peak$evidence, tolerance = 1e-9)
  expect_equal(as.double(logLik(drop_rows(fit, 1))), drop_rows(fit, 1)$evidence)
})

test_that("beside other fits, fits of groups alone count with their log marginal likelihood, not the restricted one", {
  d <- with_seed(2, data.frame(x = stats::runif(40), g = gl(8, 5)))
  d$y <- with_seed(3, d$x + stats::rnorm(8)[d$g] + stats::rnorm(40, 0, 0.3))
  groups <- pfdtc(y ~ (1 | g), d, mean = ~ x)
  smooth <- pfdtc(y ~ x + (1 | g), d)
  bounds <- evidence_bounds(groups)
  expect_gt(abs(as.double(logLik(groups)) - bounds[["lower"]]), 0.5) # the restricted likelihood is another number
  table <- anova(smooth, groups)
  expect_true(bounds[["lower"]] <= table$logLik[2] && table$logLik[2] <= bounds[["upper"]])
  expect_false(anyNA(table$at_least[2]))
  expect_equal(AIC(smooth, groups)$AIC, c(AIC(smooth), extractAIC(groups)[2]))
  expect_equal(AIC(groups, groups)$AIC, rep(AIC(groups), 2))
  flat <- pfdtc(y ~ (1 | g), d) # restricted likelihoods of fits with other means are not comparable
  expect_equal(anova(groups, flat)$logLik, c(logLik(groups, REML = NA), logLik(flat, REML = NA)))
})

test_that("anova() shows three digits of bounds, however few digits R shows", {
  one <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  two <- gp_exact(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 300, hyper = "fixed")
  old <- options(digits = 3)
  on.exit(options(old))
  shown <- utils::capture.output(print(anova(one, two)))
  number <- function(v) as.double(strsplit(trimws(v), " +")[[1]][-1])
  row <- number(utils::tail(shown, 1)) # df, logLik, lower, upper, ...
  expect_lte(row[3], as.double(logLik(two)))
  expect_gte(row[4], as.double(logLik(two)))
  expect_lte(row[4] - row[3], 2)
})

test_that("a variational bound beside Laplace's approximation has no bounds in anova(): they bound different numbers", {
  d <- data.frame(x = seq(-2, 2, length.out = 12), y = rep(0:1, c(5, 7)))
  laplace <- pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(1, 4), hyper = "fixed", center = FALSE)
  vi <- update(laplace, approx = "vi")
  table <- anova(laplace, vi) # the same exact model, so a difference of at least 0.04 was false
  expect_identical(table$at_least, c(NA_real_, NA_real_))
  expect_false(anyNA(anova(laplace, laplace)$at_least[2L]))
  expect_identical(anova(vi, vi)$lower, rep(as.double(logLik(vi)), 2L))
})

test_that("two approximations of one model are not said to differ", {
  same <- list(kernel = kernel_se(5, 400), noise = 200, hyper = "fixed")
  exact <- do.call(gp_exact, c(list(dist ~ speed, cars), same))
  few <- do.call(gp_vfe, c(list(dist ~ speed, cars, m = 3), same))
  expect_output(print(anova(exact, few)), "exact, few: the same model; only the approximation differs")
  other <- update(few, noise = 100)
  expect_output(print(anova(exact, other)), "exact, other: the bounds overlap")
})

test_that("anova() says that smooth noise counts effective parameters, and drop1() without data says what to do", {
  fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  smooth <- fit
  smooth$noise_trend$smooth <- list(1)
  expect_false(any(grepl("effective", attr(anova(fit, fit), "heading"))))
  expect_match(paste(anova_heading(list(fit, smooth), data.frame(at_least = c(NA, NA), row.names = c("a", "b")), NULL),
                     collapse = " "), "effective parameters of smooth noise")
  gone <- local({
    hidden <- mtcars
    pfdtc(mpg ~ wt + hp, hidden, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed", keep_data = FALSE)
  })
  expect_error(drop1(gone), "Make these data available again", class = "pfdtc_error_input")
})
