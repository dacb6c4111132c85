# Tests the choice between ordinal() and multinomial(), and between normal and Student's t noise.

made <- with_seed(1, data.frame(a = stats::rnorm(150), b = stats::rnorm(150), e = stats::rlogis(150)))
labels <- c("low", "middle", "high")
# The size of `a` tells low from the others, that of `b` middle from high: no f orders the three.
made$y <- ordered(labels[with(made, ifelse(3 * a^2 - 2 + e < 0, 1, ifelse(3 * b^2 - 2 + e > 0, 3, 2)))], labels)
made$in_order <- ordered(labels[with(made, findInterval(2 * sin(a) + b + e, c(-1, 1)) + 1)], labels)

chosen <- function(formula = y ~ a + b, data = made, ...) {
  with_seed(2, suppressMessages(pfdtc(formula, data, kernel = kernel_se(), ...)))
}
name_of <- function(fit) stats::family(fit)$family
found <- chosen()

test_that("multinomial() replaces ordinal() if the leave-one-out log density gains over two standard errors", {
  expect_message(pfdtc(y ~ a + b, made, kernel = kernel_se()), class = "pfdtc_message_family",
                 "Family multinomial\\(\\): leave-one-out log density \\+")
  one <- chosen(family = ordinal())
  two <- chosen(family = multinomial())
  expect_equal(predict(found, made), predict(two, made), tolerance = 1e-10)
  density <- vapply(list(one, found), function(fit) {
    log(predict(fit, type = "loo")[cbind(1:150, as.integer(made$y))])
  }, numeric(150))
  gain <- density[, 2] - density[, 1]
  expect_gt(mean(gain), 2 * stats::sd(gain) / sqrt(150))
  expect_gt(misfit_of(one)$misfit, 2.5)
  expect_identical(found$response$candidate, c("ordinal()", "multinomial()"))
  expect_equal(found$response$merit, colSums(density), tolerance = 1e-10)
  expect_equal(found$response$se, c(stats::sd(gain) * sqrt(150), NA), tolerance = 1e-10)
  expect_identical(found$response$chosen, c(FALSE, TRUE))
  text <- sprintf("multinomial(): leave-one-out log density %+.2g a row", mean(gain))
  expect_match(found$because[["rival"]], text, fixed = TRUE)
  expect_output(print(found), "Response +multinomial\\(\\): leave-one-out log density")
  drawn <- plot(found, which = "choices")
  expect_equal(drawn$behind, c(0, sum(gain)), tolerance = 1e-10)
  expect_identical(drawn$candidate, c("multinomial()", "ordinal()"))
})

test_that("classes stay in order in all predictions, and updates keep the family or choose it again", {
  ordered_as_given <- function(v) identical(class(v), c("ordered", "factor")) && identical(levels(v), labels)
  expect_true(ordered_as_given(predict(found, made[1:5, ], type = "class")))
  expect_true(ordered_as_given(simulate(found, 1, seed = 1)$sim_1))
  expect_identical(colnames(predict(found, made[1:2, ], type = "response")), labels)
  for (y in list(made$y[1:3], as.character(made$y[1:3]))) { # new responses may be text
    more <- add_rows(found, data.frame(made[1:3, c("a", "b")], y = y))
    expect_identical(nobs(more), 153L)
    expect_identical(name_of(more), "multinomial")
  }
  file <- withr::local_tempfile()
  saveRDS(found, file)
  expect_identical(predict(readRDS(file), made), predict(found, made))
  expect_identical(name_of(suppressMessages(update(found, family = ordinal()))), "ordinal")
  expect_identical(name_of(suppressMessages(update(found, in_order ~ .))), "ordinal")
  expect_output(print(suppressMessages(report(found))), "multinomial")
})

test_that("an ordinal model is fitted as with family = ordinal(), to the bit", {
  fit <- chosen(in_order ~ a + b)
  given <- chosen(in_order ~ a + b, family = ordinal())
  same <- setdiff(names(given), c("call", "seconds", "likelihood", "trace"))
  expect_identical(unclass(fit)[same], unclass(given)[same])
  expect_identical(fit$likelihood[names(given$likelihood)], given$likelihood)
  state <- with_seed(3, {
    suppressMessages(pfdtc(in_order ~ a + b, made, kernel = kernel_se()))
    stats::runif(1)
  })
  expect_identical(state, with_seed(3, {
    pfdtc(in_order ~ a + b, made, kernel = kernel_se(), family = ordinal())
    stats::runif(1)
  }))
})

test_that("`family`, `plain`, given hyperparameters, approx = \"vi\", `offset` and a short time keep ordinal()", {
  kept <- list(list(family = ordinal()), list(plain = TRUE), list(approx = "vi"), list(offset = made$a / 10),
               list(control = list(max_seconds = 0)))
  for (arguments in kept) expect_identical(name_of(suppressWarnings(do.call(chosen, arguments))), "ordinal")
  fixed <- suppressMessages(pfdtc(y ~ a + b, made, kernel = kernel_se(1, 2), hyper = "fixed"))
  expect_identical(name_of(fixed), "ordinal")
  expect_identical(name_of(chosen(keep_data = FALSE)), "multinomial")
  # The summary of a family that was given names the other one.
  expect_output(print(summary(chosen(family = ordinal()))), "compare family = multinomial()", fixed = TRUE)
  expect_false(any(grepl("compare family", utils::capture.output(summary(found)))))
})

test_that("if the gain is too small, ordinal() stays and the reason is printed", {
  twice <- replace(response_rows$ordinal, "rival", list(replace(response_rows$ordinal$rival, "errors", 100)))
  fit <- with_replaced(list(response_rows = replace(response_rows, "ordinal", list(twice))), chosen())
  expect_identical(name_of(fit), "ordinal")
  expect_identical(fit$response$chosen, c(TRUE, FALSE))
  expect_match(fit$because[["rival"]], "^ordinal\\(\\): leave-one-out log density -.* relative to multinomial\\(\\)")
  expect_output(print(fit), "Choices +ordinal\\(\\)")
  expect_false(any(grepl("compare family", utils::capture.output(summary(fit)))))
})

test_that("cross-validation chooses the family in each fold, or keeps it", {
  halves <- rep(1:2, 75)
  again <- with_seed(1, suppressMessages(cross_validate(found, folds = halves)))
  apart <- lapply(1:2, function(k) {
    fit <- chosen(data = made[halves != k, ])
    c(name_of(fit), predict(fit, made[halves == k, ], type = "density"))
  })
  expect_equal(again$nlpd, vapply(apart, function(p) -mean(as.numeric(p[-1])), 0), tolerance = 1e-10)
  # A fold with another family than the fit has no mean class number, but the scores of its probabilities.
  one <- with_replaced(list(response_rows = replace(response_rows, "ordinal", list(replace(
    response_rows$ordinal, "rival", list(replace(response_rows$ordinal$rival, "errors", 100)))))), chosen())
  mixed <- suppressMessages(cross_validate(one, folds = halves))
  expect_true(all(is.na(attr(mixed, "predictions")$mean)))
  expect_equal(mixed$nlpd, again$nlpd, tolerance = 1e-10)
  held <- suppressMessages(cross_validate(found, folds = halves, hyper = "held"))
  expect_true(all(is.na(held$rmse)) && all(is.finite(held$nlpd)))
})

test_that("with many rows, random rows decide, and the winner is fitted to all", {
  sizes <- replace(laplace_sizes, "few_rows", list(100L))
  with_replaced(list(dense_rows = 120L, laplace_sizes = sizes), {
    fit <- chosen()
    kept <- chosen(in_order ~ a + b)
    given <- chosen(in_order ~ a + b, family = ordinal())
    judged <- misfit_of(chosen(family = ordinal()))
    expect_output(print(summary(chosen(family = ordinal()))), "compare family = multinomial()", fixed = TRUE)
  })
  expect_identical(c(name_of(fit), name_of(kept)), c("multinomial", "ordinal"))
  expect_identical(fit$nobs, 150L)
  expect_identical(judged$fit$nobs, 100L)
  expect_equal(fit$response$merit[1], sum(training_scores(judged$fit, each = TRUE)$density), tolerance = 1e-10)
  expect_identical(predict(kept, made), predict(given, made))
})

# ---- Student's t noise ----------------------------------------------------------------------------------------------

typo <- with_seed(4, data.frame(x = stats::runif(200, -2, 2)))
typo$y <- sin(2 * typo$x) + with_seed(5, 0.1 * stats::rnorm(200))
typo$y[17] <- 40
typo_fit <- function(..., transform = "auto") {
  with_seed(2, suppressWarnings(suppressMessages(pfdtc(y ~ x, ..., transform = transform, kernel = kernel_se()))))
}
robust <- typo_fit(typo)

test_that("one wrong response makes Student's t noise likelier, and f follows the other responses", {
  expect_message(with_seed(2, pfdtc(y ~ x, typo, kernel = kernel_se(), transform = "auto")),
                 "Family student\\(\\): .*noise = ~ 1", class = "pfdtc_message_family")
  normal <- typo_fit(typo, noise = ~ 1)
  expect_identical(c(name_of(robust), name_of(normal)), c("student", "gaussian"))
  at <- data.frame(x = seq(-1.9, 1.9, by = 0.05))
  error <- function(fit) sqrt(mean((predict(fit, at) - sin(2 * at$x))^2))
  # The sd of the mean of 200 / 8 responses with noise sd .1 is .02: f has about 8 independent parts.
  expect_lt(error(robust), 0.06)
  expect_output(print(exceedance(robust, typo[1:2, ], threshold = 0)), "the median response exceeds") # df may be 1
  expect_gt(error(normal), 5 * error(robust))
  given <- typo_fit(typo, family = student(robust$likelihood$df))
  expect_equal(predict(robust, at), predict(given, at), tolerance = 1e-8)
  # The log densities compared are those of leave-one-out predictions; the gain is above two standard errors.
  gain <- diff(robust$response$merit)
  expect_gt(gain, 2 * robust$response$se[1])
  expect_identical(robust$response$candidate, c("gaussian()", "student()"))
})

test_that("Student's t noise stays in an update that excludes the search for it, unless the family is given", {
  withr::local_options(pfdtc.transform = "auto")
  found <- with_seed(2, suppressMessages(pfdtc(y ~ x, typo)))
  expect_identical(name_of(found), "student")
  fewer <- update(found, m = 20)
  expect_identical(fewer$likelihood[c("name", "df")], found$likelihood[c("name", "df")])
  # Normal noise, of which m = 20 alone would make the response of 40 a part, has an sd of 2.8.
  expect_lt(sqrt(mean((predict(fewer, typo[-17, ]) - sin(2 * typo$x[-17]))^2)), 0.06)
  expect_identical(name_of(suppressMessages(update(found, m = 20, family = gaussian()))), "gaussian")
  expect_identical(name_of(suppressMessages(update(found, noise = ~ 1))), "gaussian")
})

test_that("errors of f help to find Student's t noise, because heavy tails of normal noise have similar densities", {
  many <- with_seed(21, {
    d <- data.frame(x = stats::runif(120, -2, 2))
    d$y <- sin(2 * d$x) + 0.2 * stats::rnorm(120)
    wrong <- sample(120, 8)
    replace(d, "y", list(replace(d$y, wrong, d$y[wrong] + sample(c(-1, 1), 8, TRUE) * stats::runif(8, 1.5, 6))))
  })
  fit <- typo_fit(many)
  expect_identical(name_of(fit), "student")
  # The mean gain in log density alone is below two standard errors (se is that of the sum). The reason has both means.
  expect_lt(diff(fit$response$merit), 2 * fit$response$se[1])
  together <- sub(".*errors are smaller by ([0-9.]+) standard errors$", "\\1", fit$because[["rival"]])
  expect_gt(as.numeric(together), 2)
  expect_match(utils::capture.output(print(fit)), "errors are smaller", fixed = TRUE, all = FALSE)
  normal <- typo_fit(many, noise = ~ 1)
  at <- data.frame(x = seq(-1.9, 1.9, by = 0.05))
  error <- function(fit) sqrt(mean((predict(fit, at) - sin(2 * at$x))^2))
  expect_lt(error(fit), error(normal) / 2)
})

test_that("without transform and heavy tails, a response 20 mads from the median asks for Student's t noise", {
  flat <- with_seed(2, data.frame(x = stats::runif(100, -2, 2), u = stats::runif(100), y = stats::rnorm(100)))
  asks <- function(mads) {
    flat$y[17] <- 1e6 # the median and the mad are the same for any larger value
    flat$y[17] <- stats::median(flat$y) + mads * stats::mad(flat$y)
    fit <- with_seed(2, suppressMessages(pfdtc(y ~ ., flat, kernel = kernel_se(), transform = "auto")))
    expect_null(fit$transform)
    "rival" %in% names(fit$because)
  }
  expect_identical(c(asks(19.9), asks(20.1)), c(FALSE, TRUE))
})

test_that("the degrees of freedom maximise the likelihood of residuals", {
  r <- with_seed(6, 0.3 * stats::rt(500, 3))
  found <- gaussian_row$rival$shape(r)
  best <- stats::optimise(function(df) {
    stats::optimise(function(s) sum(stats::dt(r / s, df, log = TRUE) - log(s)), c(0.01, 3), maximum = TRUE)$objective
  }, c(1, 30), maximum = TRUE)
  expect_equal(found$df, best$maximum, tolerance = 0.05) # two digits
  for (none in list(c(rep(0, 60), 1), c(r, NA), c(r, Inf))) { # no maximum
    expect_identical(gaussian_row$rival$shape(none), list(df = 30))
  }
})

test_that("given transforms, noise, weights, few values, repeated values and a short time keep normal noise", {
  expect_identical(name_of(typo_fit(typo, transform = "none")), "gaussian")
  expect_identical(name_of(typo_fit(typo, weights = rep(2, 200))), "gaussian")
  expect_identical(name_of(typo_fit(typo, plain = TRUE)), "gaussian")
  expect_identical(name_of(typo_fit(typo, control = list(max_seconds = 0))), "gaussian")
  quarter <- typo_fit(transform(typo, y = ifelse(x > 1, 0, y))) # has 56 equal responses
  expect_false("rival" %in% names(quarter$because))
  expect_identical(name_of(typo_fit(transform(typo, y = round(y)))), "gaussian")
  expect_false("rival" %in% names(typo_fit(typo[-17, ])$because))
  expect_identical(name_of(typo_fit(typo, keep_data = FALSE)), "student")
})

test_that("normal noise stays if all outliers are on one side, because f would not be the mean", {
  spikes <- transform(typo, y = replace(y, 17, 0))
  wrong <- seq(1, 200, by = 20)
  spikes$y[wrong] <- spikes$y[wrong] + 5
  fit <- typo_fit(spikes)
  expect_identical(name_of(fit), "gaussian")
  expect_match(fit$because[["rival"]], "f would not be the mean")
})

test_that("Student's t noise is judged by random rows of many, and fitted to all", {
  sizes <- replace(laplace_sizes, "few_rows", list(150L))
  fit <- with_replaced(list(dense_rows = 180L, laplace_sizes = sizes), typo_fit(rbind(typo, typo[17, ] + 0.01)))
  expect_identical(name_of(fit), "student")
  expect_identical(fit$nobs, 201L)
})

# ---- the log-logistic response --------------------------------------------------------------------------------------

long <- with_seed(2, {
  d <- data.frame(x = stats::runif(120, -2, 2))
  d$y <- exp(1 + sin(2 * d$x) + 0.3 * stats::rnorm(120))
  replace(d, "y", list(replace(d$y, 7, 100 * d$y[7])))
})
skewed <- typo_fit(long)

test_that("a wrong response of a log-normal sample makes the response log-logistic, with predictions in units of y", {
  expect_identical(name_of(skewed), "loglogistic")
  expect_match(skewed$because[["rival"]], "^loglogistic\\(\\): leave-one-out log density .* errors are smaller")
  normal <- typo_fit(long, noise = ~ 1)
  expect_identical(normal$transform$kind, "log")
  at <- data.frame(x = seq(-1.9, 1.9, by = 0.05))
  error <- function(fit) sqrt(mean((predict(fit, at) - exp(1 + sin(2 * at$x) + 0.3^2 / 2))^2))
  expect_lt(error(skewed), error(normal) / 2)
  given <- typo_fit(long, family = loglogistic())
  expect_equal(predict(skewed, at), predict(given, at, type = "response"), tolerance = 1e-8)
  expect_equal(predict(given, at), log(predict(given, at, type = "median")), tolerance = 1e-8) # the default is f
  expect_equal(unname(fitted(skewed)), unname(long$y - residuals(skewed)), tolerance = 1e-8)
  expect_identical(partial_dependence(skewed, "x", at = 0), partial_dependence(skewed, "x", at = 0, type = "response"))
  expect_identical(nobs(suppressMessages(add_rows(skewed, long[1:2, ]))), 122L)
})

test_that("a found log-logistic response stays in an update that excludes the search for it, with the same units", {
  withr::local_options(pfdtc.transform = "auto")
  at <- data.frame(x = c(-1, 0, 1))
  found <- with_seed(2, suppressMessages(pfdtc(y ~ x, long)))
  fewer <- update(found, m = 20)
  # 20 inducing points leave a residual prior variance of 2e-4 times the noise variance, and the sd of f is about .1.
  expect_equal(predict(fewer, at), predict(found, at), tolerance = 0.01)
  expect_equal(predict(update(fewer, m = 30), at), predict(found, at), tolerance = 0.01)
  expect_match(deparse1(fewer$call), "loglogistic(), \"from\", \"gaussian\")", fixed = TRUE)
  again <- pfdtc(y ~ x, long, family = stats::family(found), center = found$center, kernel = found$kernel,
                 hyper = "fixed")
  expect_equal(predict(again, at), predict(found, at), tolerance = 1e-6) # the same model, another search of the mode
  expect_identical(name_of(suppressMessages(update(found, data = long[-7, ]))), "gaussian")
  expect_identical(name_of(suppressMessages(update(found, noise = ~ 1))), "gaussian")
  expect_identical(name_of(update(found, offset = rep(0.1, 120))), "gaussian") # in units of y, not of f
})

test_that("found families of earlier versions are known as found", {
  at <- data.frame(x = c(-1, 0, 1))
  as_saved <- function(fit, ...) {
    fit$likelihood[c("from", "asked")] <- NULL
    fit$call$transform <- NULL # an argument of typo_fit()
    replace(fit, "likelihood", list(c(fit$likelihood, list(...))))
  }
  old <- as_saved(skewed, predicts = "mean")
  expect_identical(predict(old, at), predict(skewed, at))
  for (fit in list(old, as_saved(robust))) expect_identical(name_of(update(fit, m = 20)), name_of(fit))
  expect_identical(settings_again(check_any_fit(old, "old"), "refit")$likelihood$name, "loglogistic") # as before
  classes <- check_any_fit(as_saved(skewed, from = list(name = "ordinal")), "classes")$likelihood
  expect_identical(classes[c("from", "asked")], list(from = "ordinal", asked = list(from = list(name = "ordinal"))))
  kept <- check_any_fit(as_saved(skewed, open = TRUE), "kept") # the family asked for, which no other replaced
  expect_null(kept$likelihood$from)
})

test_that("a found family is named as found, without words for censored times", {
  for (fit in list(robust, skewed)) {
    expect_match(paste(utils::capture.output(print(fit)), collapse = " "), "found in +place of +gaussian\\(\\)")
    shown <- utils::capture.output(summary(fit), report(fit))
    expect_false(any(grepl("censored|hazard", shown)))
  }
  given <- typo_fit(long, family = loglogistic())
  expect_match(utils::capture.output(summary(given)), "uncensored", all = FALSE)
  tenth <- with_seed(2, suppressMessages(pfdtc(y / 10 ~ x, long, transform = "auto", kernel = kernel_se())))
  expect_identical(name_of(tenth), "loglogistic")
  expect_identical(response_name(tenth), "y/10")
  skip_if_not_installed("insight")
  about <- c("is_survival", "is_censored")
  expect_identical(unlist(insight::model_info(skewed)[about], use.names = FALSE), c(FALSE, FALSE))
  expect_identical(unlist(insight::model_info(given)[about], use.names = FALSE), c(TRUE, TRUE))
})

test_that("folds choose the family again, unless the fit holds its model or its family was given", {
  fold <- rep(1:2, 60)
  expect_null(settings_again(skewed, "refit")$likelihood)
  expect_identical(settings_again(skewed, "held")$likelihood$name, "loglogistic")
  kept <- typo_fit(long, family = stats::family(skewed))
  expect_identical(settings_again(kept, "refit")$likelihood$name, "loglogistic")
  # A fold of odd rows has the outlier, so the fit to it is log-logistic; the fit to even rows is Gaussian.
  normal <- with_replaced(list(rival_if_better = function(fit, ...) fit), typo_fit(long))
  expect_identical(name_of(normal), "gaussian")
  fit <- typo_fit(long[fold == 1, ])
  expect_identical(c(name_of(fit), name_of(typo_fit(long[fold == 2, ]))), c("loglogistic", "gaussian"))
  density <- predict(fit, long[fold == 2, ], type = "density")
  for (whole in list(normal, skewed)) {
    held <- attr(with_seed(2, cross_validate(whole, fold)), "predictions")
    expect_equal(held$y, unname(long$y))
    expect_equal(held$mean[fold == 2], unname(predict(fit, long[fold == 2, ])), tolerance = 1e-6) # the same fit
  }
  expect_equal(held$density[fold == 2], unname(density), tolerance = 1e-6)
  expect_null(attr(with_seed(2, cross_validate(skewed, fold, hyper = "held")), "rmse_of"))
})

test_that("outliers are looked for from 20 rows on", {
  few <- data.frame(x = seq(-2, 2, length.out = 20))
  few$y <- sin(2 * few$x) + with_seed(3, 0.1 * stats::rnorm(20))
  few$y[10] <- 40
  expect_identical(name_of(typo_fit(few)), "student")
  expect_false("rival" %in% names(typo_fit(few[-1, ])$because))
})

test_that("the log-logistic response is not tried without a residual beyond 5 mads, and log y decides as before", {
  expect_false("rival" %in% names(typo_fit(long[-7, ])$because))
  expect_identical(typo_fit(long[-7, ])$transform$kind, "log")
})

test_that("a Gaussian family gives way by errors of the mean, if densities are not much worse and means are right", {
  scores <- with_seed(8, {
    e <- stats::rnorm(100)
    list(list(y = e, mean = 1.5 * rep(c(-1, 1), 50), density = stats::rnorm(100)), list(y = e, mean = 0 * e))
  })
  compared <- function(gain, rival = gaussian_row$rival, shift = 0) {
    scores[[2]]$density <- scores[[1]]$density + gain
    scores <- lapply(scores, function(s) replace(s, "y", list(s$y + shift)))
    compare_with_rival(scores, rival)
  }
  noise <- with_seed(9, stats::rnorm(100))
  noise <- (noise - mean(noise)) / stats::sd(noise) # the standard error of the mean is 0.1
  expect_true(compared(noise)$better)
  expect_true(compared(noise - 0.08)$better)
  expect_false(compared(noise - 0.2)$better)
  expect_false(compared(noise, shift = 1)$better)
  expect_match(compared(noise, shift = 1)$why, "f would not be the mean")
  # Equal or larger errors are not called smaller, if the density decides.
  expect_match(compared(noise)$why, "errors are smaller by")
  for (size in c(1, 1.2)) {
    same <- list(scores[[1]], replace(scores[[1]], "mean", list(size * scores[[1]]$mean)))
    same[[2]]$density <- same[[1]]$density + noise + 1
    alone <- compare_with_rival(same, gaussian_row$rival)
    expect_identical(alone[c("better", "why")], list(better = TRUE, why = ""))
  }
  endless <- lapply(scores, function(s) replace(s, "mean", list(replace(0 * s$y, 1, Inf))))
  endless[[2]]$density <- scores[[1]]$density + 1
  infinite <- compare_with_rival(endless, gaussian_row$rival)
  expect_false(infinite$better)
  expect_match(infinite$why, "infinite")
  # One outlier with a small density does not count, nor does one with a large density.
  expect_true(compared(replace(noise, 1, -1000))$better)
  expect_false(compared(replace(noise - 0.2, 1, 1000))$better)
  # Another family needs a larger sum of log densities, two standard errors above 0.
  other <- response_rows$ordinal$rival
  expect_identical(c(compared(noise + 0.19, other)$better, compared(noise + 0.21, other)$better), c(FALSE, TRUE))
  # With the log transform, errors are relative to the rival's mean. Its errors are small for small responses alone.
  size <- rep(c(1, 100), 50)
  sign <- rep(c(-1, -1, 1, 1), 25)
  y <- size * (1 + scores[[1]]$y / 10)
  both <- list(list(y = y, mean = size * (1 + sign * rep(c(0.5, 0), 50)), density = 0 * y),
               list(y = y, mean = size * (1 + sign * rep(c(0, 0.2), 50)), density = noise))
  expect_true(compare_with_rival(both, as_response(NULL, list(kind = "log"))$rival)$better)
  expect_false(compare_with_rival(both, gaussian_row$rival)$better)
})
