test_that("a report has the data, every hyperparameter, evidence and leave-one-out", {
  fit <- fit_cars(neighbours = 0)
  said <- report(fit, digits = 4)
  value <- function(what) said$table$value[said$table$what == what]
  expect_true(all(names(coef(fit)) %in% said$table$what))
  variance <- coef(fit)[["variance"]]
  expect_match(value("variance"), format(signif(variance, 4), big.mark = ","), fixed = TRUE)
  # Sds are in the units of the response, and the report names these.
  expect_match(value("variance"), sprintf("sd %s", format(signif(sqrt(variance), 4))), fixed = TRUE)
  expect_match(value("Noise"), format(signif(sigma(fit), 4)), fixed = TRUE)
  expect_match(value("Units"), "^sds are in units of dist, lengthscales")
  expect_match(said$text, sprintf(" Units: %s.", value("Units")), fixed = TRUE)
  expect_match(said$text, sprintf("sd %s.*\\bdist\\b", format(signif(sqrt(variance), 4))))
  expect_match(value("Data"), "50 rows")
  bounds <- evidence_bounds(fit)
  shown <- paste(unique(sprintf("%.1f", bounds)), collapse = " and ")
  expect_match(value("Log marginal likelihood"), shown, fixed = TRUE)
  loo <- sqrt(mean(residuals(fit, type = "loo")^2))
  expect_match(value("Leave-one-out"), format(signif(loo, 4)), fixed = TRUE)
  expect_match(said$text, value("Log marginal likelihood"), fixed = TRUE)
  expect_output(print(said), "lengthscale.speed")
  expect_input_error(report(fit, colour = 2), "colour")
})

test_that("the certified error is certify()'s", {
  fit <- fit_cars(neighbours = 0)
  fit$reference <- reference(fit, m2 = 12)
  new <- data.frame(speed = c(5, 12))
  said <- report(fit, new)
  error <- max(certify(fit, new)$mean_error)
  expect_match(said$table$value[said$table$what == "Certified error"], show_bound(error, 3), fixed = TRUE)
  expect_false("Certified error" %in% report(fit)$table$what)
  exact <- pfdtc(dist ~ speed, cars, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
  expect_match(report(exact)$text, "Posterior: exact")
})

test_that("a report of counts has no noise, and one of heteroscedastic noise its range", {
  counts <- pfdtc(dist ~ speed, cars, family = poisson(), kernel = kernel_se(5, 1), hyper = "fixed")
  about <- report(counts)
  expect_false(any(c("Noise", "noise") %in% about$table$what))
  expect_no_match(about$text, "Noise|NA|NULL")
  expect_match(about$text, "Units: sds are on the log scale, lengthscales")
  expect_false(anyNA(about$table$value))
})

test_that("report() of a file name says how to write a file", {
  fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se())
  expect_error(report(fit, "r.html"), class = "pfdtc_error_input", "writeLines")
})

test_that("a fit without its data is reported, and knitr shows text and table", {
  said <- report(fit_cars(keep_data = FALSE))
  expect_false("Leave-one-out" %in% said$table$what)
  skip_if_not_installed("knitr")
  shown <- knitr::knit_print(said)
  expect_s3_class(shown, "knit_asis")
  expect_match(shown, "|what", fixed = TRUE)
  expect_match(shown, said$text, fixed = TRUE)
})

test_that("a report of classes or counts has the family, the certified error and leave-one-out scores", {
  fit <- pfdtc(am ~ wt + hp, transform(mtcars, am = c("no", "yes")[1 + am]), family = binomial(), m = 6,
               kernel = kernel_se(c(1, 80), 4), hyper = "fixed")
  said <- report(fit, mtcars[1:3, ])
  value <- function(what) said$table$value[said$table$what == what]
  # The certificate of several classes has a row for each row of data and class.
  several <- pfdtc(Species ~ Petal.Length, iris, family = multinomial(), kernel = kernel_se(2, 5), hyper = "fixed")
  expect_match(report(several, iris[1:5, ])$text, "of the exact GP at 5 rows", fixed = TRUE)
  expect_match(value("Family"), "logit")
  expect_match(value("Success"), "\"yes\"", fixed = TRUE)
  certified <- certify(fit, mtcars[1:3, ])
  expect_match(value("Certified error"), show_bound(max(certified$mean_error), 3), fixed = TRUE)
  p <- predict(fit, type = "loo")
  nlpd <- -mean(stats::dbinom(mtcars$am, 1, p, log = TRUE))
  expect_match(value("Leave-one-out"), format(signif(nlpd, 3)), fixed = TRUE)
  expect_match(value("Leave-one-out"), format(signif(mean((p - mtcars$am)^2), 3)), fixed = TRUE)
  bounds <- evidence_bounds(fit)
  shown <- unique(sprintf("%.1f", bounds))
  expect_match(value("Log marginal likelihood"), paste(shown, collapse = " and "), fixed = TRUE)
  counts <- pfdtc(carb ~ wt, mtcars, family = nb(3), kernel = kernel_se(1, 1), hyper = "fixed", approx = "vi")
  expect_match(report(counts)$text, "theta 3.*at least.*RMSE")
})

test_that("report() works with a package named report attached, whichever is attached first", {
  expect_input_error(report(cars), "x")
  folder <- tempfile()
  dir.create(file.path(folder, "report", "R"), recursive = TRUE)
  write <- function(text, file) writeLines(text, file.path(folder, "report", file))
  write(c("Package: report", "Version: 0.1", "Title: T", "Description: D.", "License: GPL-3", "Author: A",
          "Maintainer: A <a@b.c>"), "DESCRIPTION")
  write(c("export(report)", "S3method(report,lm)"), "NAMESPACE")
  write(c("report <- function(x, ...) UseMethod(\"report\")", "report.lm <- function(x, ...) \"theirs\""), "R/report.R")
  r <- file.path(R.home("bin"), "R")
  status <- system2(r, c("CMD", "INSTALL", "-l", shQuote(folder), shQuote(file.path(folder, "report"))), stdout = FALSE,
                    stderr = FALSE)
  skip_if(status != 0L, "the other package cannot be installed")
  script <- file.path(folder, "both.R")
  for (order in list(c("pfdtc", "report"), c("report", "pfdtc"))) {
    writeLines(c(sprintf(".libPaths(c(%s, .libPaths()))", deparse1(c(folder, .libPaths()))),
                 sprintf("suppressMessages(library(%s))", order),
                 "fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 600), noise = 200, hyper = \"fixed\")",
                 "cat(class(report(fit)), class(report::report(fit)), report(lm(dist ~ speed, cars)))"), script)
    expect_identical(system2(file.path(R.home("bin"), "Rscript"), shQuote(script), stdout = TRUE),
                     "pfdtc_report pfdtc_report theirs")
  }
})

test_that("constants of classes and coefficients are not called parameters of a linear mean", {
  kernel <- pfdtc(am ~ wt + hp, mtcars, family = binomial())$kernel
  words <- parameter_words(c("mean.variance", "mean.red", "mean.x"), kernel, c("wt", "hp", "mean.x"))
  expect_identical(words, c("linear mean: variance", "Constant mean, red", "mean.x"))
})

test_that("a report has the linear mean", {
  fit <- pfdtc(dist ~ speed, cars, mean = ~ speed, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
  said <- report(fit)
  expect_identical(said$table$value[said$table$what == "Mean"], "linear")
  expect_match(said$text, "Mean: linear")
})

test_that("a report keeps its facts apart from coefficients of the same names", {
  d <- data.frame(Time = 1:20, Data = sin(1:20), Noise = cos(1:20), Posterior = rep(1:4, 5))
  d$y <- 3 * d$Time + d$Data + cos(1:20 * 7) / 9
  fit <- gp_exact(y ~ ., d, mean = ~ Time + Data + Noise + Posterior, kernel = kernel_se(2, 1e-3), noise = 0.01,
                  hyper = "fixed")
  said <- report(fit)
  expect_match(said$text, "The fit took [0-9.e-]+ s[.]$")
  expect_match(said$text, "Data: 20 rows, 4 inputs. .*Posterior: exact")
  expect_identical(sum(said$table$what == "Time"), 2L)
  expect_equal(as.numeric(said$table$value[said$table$what == "Time"][1]), stats::coef(fit)[["Time"]], tolerance = 0.01)
})

test_that("a report has correlations of group effects, and no linear mean where there is a constant", {
  skip_if_not_installed("lme4")
  fit <- pfdtc(Reaction ~ (Days | Subject), lme4::sleepstudy, mean = ~ Days)
  table <- report(fit, digits = 6)$table
  row <- table$what == "group Days | Subject: correlation of (Intercept) and Days"
  expect_equal(as.numeric(table$value[row]), attr(VarCorr.gp_fit(fit)[[1]], "correlation")[1, 2], tolerance = 1e-5)
  about <- report(pfdtc(Reaction ~ (1 | Subject), lme4::sleepstudy))
  expect_match(about$text, "180 rows, 1 grouping factor. Mean: constant, 299.", fixed = TRUE)
  expect_no_match(about$text, "lengthscales")
})

test_that("a report says how coefficients of ordered classes and cut points are related", {
  d <- transform(cars, far = cut(dist, c(-Inf, 20, 50, Inf), c("near", "middle", "far"), ordered_result = TRUE))
  fit <- with_seed(1, suppressMessages(pfdtc(far ~ speed, d)))
  table <- report(fit, digits = 4)$table
  first <- as.numeric(table$value[table$what == "(Intercept) of f, with the first cut point at 0"])
  expect_match(table$value[table$what == "Family"], paste0("near|middle ", -first), fixed = TRUE)
  expect_true("Constant mean (included in (Intercept))" %in% table$what)
})

test_that("a report has the transform of the response", {
  fit <- with_seed(1, pfdtc(dist ~ speed, cars, transform = "yeojohnson"))
  about <- report(fit)
  lambda <- format(signif(fit$transform$lambda, 3))
  expect_match(about$table$value[about$table$what == "Transform"], lambda, fixed = TRUE)
  expect_match(about$text, lambda, fixed = TRUE)
  expect_false("Transform" %in% report(fit_cars())$table$what)
})

test_that("the units of lengthscales are those of the inputs, where they have one, and warped inputs are explained", {
  units <- function(fit) with(report(fit)$table, value[what == "Units"])
  wave <- pfdtc(dist ~ speed, cars, hyper = "fixed", noise = 200,
                kernel = kernel_periodic(1, 500, period = 8) + kernel_se(5, 500))
  expect_match(units(wave), "in units of their inputs (without unit for the periodic kernel)", fixed = TRUE)
  d <- with_seed(1, data.frame(a = exp(stats::rnorm(60, sd = 3))))
  d$y <- with_seed(2, log(d$a) + sin(log(d$a)) + stats::rnorm(60) / 2)
  logs <- with_seed(1, pfdtc(y ~ a, d, transform = "auto"))
  expect_match(units(logs), "in units of their inputs (without unit for the logs of a)", fixed = TRUE)
  expect_no_match(report(logs)$text, "warped")
  expect_match(report(logs)$text, "(for variances before inflation)", fixed = TRUE)
  expect_match(report(logs)$text, "inflation: variances of kernel, linear mean and noise are mul", fixed = TRUE)
  expect_output(print(summary(logs)), "for variances before[[:space:]]+inflation")
  expect_match(logs$because[["scale"]], "of kernel, linear mean and noise .* 4 hyperparameters of kernel, linear mean")
})

test_that("a report of groups alone names the mixed model and its restricted likelihood", {
  fit <- pfdtc(weight ~ (1 | Chick), ChickWeight[1:100, ], mean = ~ Time)
  said <- report(fit)
  value <- function(what) said$table$value[said$table$what == what]
  expect_identical(value("Log marginal likelihood"), sprintf("%.1f (restricted likelihood)", logLik(fit)))
  expect_match(said$text, "^A linear mixed model was fitted to weight")
  expect_identical(value("Method"), "Linear mixed model, exact posterior")
  expect_no_match(said$text, "Gaussian process")
})

test_that("a report names an approximate posterior, and what its log marginal likelihood is of", {
  model <- list(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed", m = 8)
  part <- with_seed(1, report(do.call(gp_subsample, model)))
  expect_match(part$text, "Posterior: exact posterior of a subsample.", fixed = TRUE)
  expect_match(part$text, "(of the subsample of 8 rows)", fixed = TRUE)
  expect_match(report(do.call(gp_fitc, model))$text, "(of the approximate model)", fixed = TRUE)
})

test_that("bounds of the log marginal likelihood that agree are reported as one number", {
  fit <- pfdtc(dist ~ speed, cars, family = poisson(), kernel = kernel_se(5, 1), hyper = "fixed")
  bounds <- evidence_bounds(fit)
  expect_lt(diff(bounds), 0.01)
  expect_identical(with(report(fit)$table, value[what == "Log marginal likelihood"]),
                   sprintf("%.1f (Laplace approximation)", logLik(fit)))
})

test_that("titles tell mixed models from Gaussian processes, and constant means have their scale", {
  groups <- pfdtc(weight ~ (1 | Chick), ChickWeight[1:100, ], mean = ~ Time)
  expect_output(print(groups), "^Linear mixed model, exact posterior")
  expect_output(print(pfdtc(weight ~ Time + (1 | Chick), ChickWeight[1:100, ], plain = TRUE, kernel = kernel_se())),
                "^Gaussian process regression, exact posterior")
  d <- transform(ChickWeight[1:100, ], heavy = weight > 70)
  heavy <- pfdtc(heavy ~ (1 | Chick), d, family = binomial())
  expect_output(print(heavy), "^Generalised linear mixed model, binomial response .*constant, \\S+ on the logit scale")
})

test_that("shape parameters and cut points in a report have the given number of digits", {
  fit <- pfdtc(dist ~ speed, cars, family = student(), kernel = kernel_se(10, 1000), hyper = "fixed")
  table <- report(fit, digits = 2)$table
  sigma <- format(signif(fit$theta, 2))
  expect_match(table$value[table$what == "Family"], paste0("sigma ", sigma, "$"))
  d <- transform(cars, far = cut(dist, c(-Inf, 20, Inf), c("50 % near", "far"), ordered_result = TRUE))
  ordered <- pfdtc(far ~ speed, d, family = ordinal(), kernel = kernel_se(10, 4), hyper = "fixed")
  table <- report(ordered, digits = 2)$table
  expect_match(table$value[table$what == "Family"],
               paste("mean of f: 50 % near|far", format(signif(-ordered$center, 2))), fixed = TRUE)
})

test_that("no value in the table of a report ends with a full stop", {
  fit <- pfdtc(dist ~ speed, cars[1:20, ], transform = "auto", kernel = kernel_se()) # has a line on inflation
  table <- report(fit)$table
  expect_true("Variance inflation" %in% table$what)
  expect_no_match(table$value, "[.]$")
})
