# Compares hurdles with their two fits.

test_that("a hurdle has mean, zeros, density and quantiles of the mixture of a fit of zeros and one of the rest", {
  d <- hurdle_data()
  fit <- fixed_hurdle(y ~ x, d)
  zero <- pfdtc(as.numeric(y > 0) ~ x, d, family = binomial(), kernel = kernel_se(0.9, 1), hyper = "fixed")
  rest <- pfdtc(y ~ x, d[d$y > 0, ], family = truncated_poisson(), kernel = kernel_se(0.9, 1), hyper = "fixed")
  new <- data.frame(x = c(0.3, 1, 3), y = c(0, 2, 4))
  above <- unname(predict(zero, new, type = "response"))
  expect_equal(unname(predict(fit, new, type = "zero")), 1 - above)
  expect_equal(unname(predict(fit, new)), unname(above * predict(rest, new, type = "response")))
  log_p <- function(y) {
    unname(predict(fit, data.frame(x = rep(new$x, length(y)), y = rep(y, each = 3)), type = "density"))
  }
  expect_equal(log_p(0), log(1 - above), tolerance = 1e-12)
  expect_equal(log_p(2), log(above) + unname(predict(rest, replace(new, "y", 2), type = "density")))
  # The probabilities of all counts add up to 1, and quantiles are where their sum passes p.
  P <- exp(matrix(log_p(0:40), 3))
  expect_equal(rowSums(P), rep(1, 3), tolerance = 1e-6)
  q <- predict(fit, new, type = "quantile", probs = c(0.1, 0.5, 0.95))
  for (k in 1:3) {
    upto <- apply(P, 1, cumsum)
    expect_equal(unname(q[, k]), colSums(upto < c(0.1, 0.5, 0.95)[k]))
  }
  expect_equal(predict(fit, new, type = "median"), q[, "0.50"])
  band <- predict(fit, new, interval = "prediction", level = 0.9)
  expect_equal(band[, "upr"], q[, "0.95"])
  expect_equal(as.numeric(logLik(fit)), zero$evidence + rest$evidence)
  expect_output(print(fit), "truncated")
})

test_that("a nearly impossible zero has a finite log density, and a missing response has none", {
  d <- hurdle_data()
  d$o <- 0
  fit <- fixed_hurdle(y ~ x + offset(o), d)
  new <- data.frame(x = 1, o = c(30, 60), y = 0)
  f <- predict(fit$zero, new, type = "latent", se.fit = TRUE)
  expect_equal(predict(fit, new, type = "density"), -f$fit + f$se.fit^2 / 2, tolerance = 1e-8) # P(0) is nearly exp(-f)
  expect_equal(log(predict(fit, new, type = "zero")), -f$fit + f$se.fit^2 / 2, tolerance = 1e-8)
  expect_identical(is.na(predict(fit, replace(d[1:3, ], "y", c(0, NA, 2)), type = "density")),
                   c("1" = FALSE, "2" = TRUE, "3" = FALSE))
})

test_that("hurdles of numbers have a gamma or another positive part, and draws have the mixture's moments", {
  d <- hurdle_data()
  for (family in list(NULL, lognormal(0.5))) {
    fit <- fixed_hurdle(z ~ x, d, family = family)
    expect_identical(fit$positive$likelihood$name, if (is.null(family)) "Gamma" else "lognormal")
    draws <- stats::simulate(fit, 500, seed = 2, newdata = d[1:4, ])
    # The tolerance is four standard errors.
    expect_true(all(abs(rowMeans(draws == 0) - predict(fit, d[1:4, ], type = "zero")) < 4 * sqrt(0.25 / 500)))
    se <- apply(draws, 1, stats::sd) / sqrt(500)
    expect_true(all(abs(rowMeans(draws) - predict(fit, d[1:4, ])) < 4 * se))
    q <- predict(fit, d[1:4, ], type = "quantile", probs = 0.8)[, 1]
    expect_true(all(abs(rowMeans(draws <= q) - 0.8) < 4 * sqrt(0.16 / 500)))
  }
})

test_that("families whose responses can be 0 or negative are refused for the positive part", {
  d <- hurdle_data()
  for (family in list(poisson(), nb(), gaussian(), student(), tobit(), tweedie())) {
    expect_error(fixed_hurdle(y ~ x, d, family = family), "numbers above 0", class = "pfdtc_error_input")
  }
})

test_that("methods of fits work for both fits of a hurdle", {
  d <- hurdle_data()
  fit <- gp_hurdle(y ~ x, d, kernel = kernel_se())
  parts <- fit[c("zero", "positive")]
  expect_equal(unname(coef(fit)), unname(c(coef(parts$zero), coef(parts$positive))))
  V <- stats::vcov(fit)
  each <- lapply(parts, stats::vcov)
  zeros <- startsWith(rownames(V), "zero.")
  expect_equal(unname(V[zeros, zeros]), unname(each$zero))
  expect_equal(unname(V[!zeros, !zeros]), unname(each$positive))
  expect_true(all(V[zeros, !zeros] == 0))
  ends <- stats::confint(fit, level = 0.9)
  above <- startsWith(rownames(ends), "positive.")
  expect_equal(unname(ends[above, ]), unname(stats::confint(parts$positive, level = 0.9)))
  expect_equal(stats::confint(fit, rownames(ends)[2], 0.9), ends[2, , drop = FALSE])
  expect_equal(stats::residuals(fit), d$y - predict(fit), ignore_attr = TRUE)
  expect_identical(stats::nobs(fit), 60L)
  df <- attr(logLik(parts$zero), "df") + attr(logLik(parts$positive), "df")
  expect_equal(stats::AIC(fit), 2 * df - 2 * (parts$zero$evidence + parts$positive$evidence))
  expect_equal(stats::formula(fit), y ~ x, ignore_attr = TRUE)
  expect_output(print(summary(fit)), "`positive`.*Leave-one-out")
  again <- stats::update(fit, data = d[1:40, ])
  expect_identical(stats::nobs(again), 40L)
  about <- report(fit)
  expect_identical(sum(startsWith(about$table$what, "positive.")), nrow(report(parts$positive)$table))
  for (refuse in list(evidence_bounds, plot_certificate, stats::weights, stats::deviance, stats::anova,
                      stats::hatvalues, stats::rstandard, stats::cooks.distance, stats::model.frame, stats::drop1,
                      stats::rstudent, stats::influence, stats::dfbetas, stats::sigma)) {
    expect_error(refuse(fit), "zero", class = "pfdtc_error_input")
  }
})

test_that("a level without a response above 0 has its probability of 0, and NA as mean, with a warning", {
  d <- data.frame(x = 1:40 / 10, g = factor(rep(letters[1:4], 10)))
  d$y <- ifelse(d$g == "a" | d$x %in% c(0.2, 0.7, 1.9), 0, 1 + round(d$x))
  fit <- gp_hurdle(y ~ x + g, d, kernel = kernel_se(2, 1), hyper = "fixed")
  lacks <- d$g == "a"
  expect_warning(mean <- predict(fit), "NA where `g` is \"a\"", class = "pfdtc_warning_undefined")
  expect_identical(unname(is.na(mean)), lacks)
  expect_equal(mean[!lacks], predict(fit, d[!lacks, ]))
  expect_no_warning(zero <- predict(fit, type = "zero"))
  expect_equal(unname(zero), unname(1 - predict(fit$zero, d, type = "response")))
  quiet <- function(...) suppressWarnings(predict(fit, ...), classes = "pfdtc_warning_undefined")
  expect_equal(quiet(type = "density")[lacks], log(zero[lacks]), ignore_attr = TRUE)
  expect_identical(quiet(type = "quantile", probs = c(0.01, 0.9999))[1, ], c("0.0100" = 0, "0.9999" = NA))
  draws <- suppressWarnings(stats::simulate(fit, 20, seed = 1), classes = "pfdtc_warning_undefined")
  expect_false(anyNA(draws[!lacks, ]))
  expect_true(all(draws[lacks, ] == 0, na.rm = TRUE) && any(draws[lacks, ] == 0, na.rm = TRUE))
  sure <- suppressWarnings(certify(fit, d[1:2, ]), classes = "pfdtc_warning_undefined")
  expect_identical(is.na(sure$response), c(TRUE, FALSE))
  expect_true(all(sure$zero_lower <= sure$zero & sure$zero <= sure$zero_upper))
  expect_input_error(predict(fit, data.frame(x = 1, g = "e")), "newdata")
})

test_that("update() changes the formula of a hurdle of all other variables", {
  d <- data.frame(x = 1:40 / 10, z = rep(1:4, 10))
  d$y <- ifelse(sin(3 * d$x) > 0, 0, 1 + round(d$x))
  fit <- gp_hurdle(y ~ ., d, kernel = kernel_se(0.9, 1), hyper = "fixed")
  expect_equal(stats::formula(fit), y ~ x + z, ignore_attr = TRUE)
  one <- update(fit, . ~ . - z)
  expect_equal(stats::formula(one), y ~ x, ignore_attr = TRUE)
  expect_equal(predict(one, d), predict(gp_hurdle(y ~ x, d, kernel = kernel_se(0.9, 1), hyper = "fixed"), d))
})

test_that("tidy(), glance() and augment() are for both fits of a hurdle", {
  skip_if_not_installed("generics")
  d <- hurdle_data()
  fit <- fixed_hurdle(y ~ x, d)
  table <- generics::tidy(fit)
  expect_identical(paste(table$part, table$term, sep = "."), names(coef(fit)))
  expect_identical(table$estimate, unname(coef(fit)))
  about <- generics::glance(fit)
  expect_identical(c(about$AIC, about$BIC, about$evidence), c(AIC(fit), BIC(fit), as.numeric(logLik(fit))))
  expect_identical(stats::extractAIC(fit), c(about$df, about$AIC))
  rows <- generics::augment(fit)
  expect_equal(rows$.fitted + rows$.resid, d$y)
  expect_equal(generics::augment(fit, newdata = d[1:2, ])$.fitted, rows$.fitted[1:2])
})

test_that("methods of a hurdle with a subset are about its rows", {
  d <- hurdle_data()
  some <- gp_hurdle(y ~ x, d, kernel = kernel_se(0.9, 1), hyper = "fixed", subset = x < 3)
  n <- sum(d$x < 3)
  expect_identical(c(nobs(some), length(fitted(some)), length(residuals(some)), nrow(simulate(some))), rep(n, 4L))
  expect_equal(unname(residuals(some)), d$y[d$x < 3] - unname(predict(some, d[d$x < 3, ])))
  expect_error(gp_hurdle(y ~ x, d, subset = y > 0), "no zeros", class = "pfdtc_error_input")
  expect_error(gp_hurdle(y ~ x, d, subset = nowhere > 0), "nowhere", class = "pfdtc_error_input")
})

test_that("weights and subsets are evaluated as by pfdtc(), also from the dots of another function", {
  d <- hurdle_data()
  d$w <- rep(1:2, 30)
  by_dots <- function(...) fixed_hurdle(y ~ x, d, ...)
  twice <- fixed_hurdle(y ~ x, rbind(d, d[d$w == 2, ]))
  new <- data.frame(x = c(1, 3))
  for (fit in list(gp_hurdle(y ~ x, d, kernel = kernel_se(0.9, 1), hyper = "fixed", weights = w),
                   by_dots(weights = d$w), by_dots(weights = w))) {
    expect_equal(predict(fit, new), predict(twice, new), tolerance = 1e-6)
  }
  all_dots <- function(...) gp_hurdle(...)
  direct <- fixed_hurdle(y ~ x, d, weights = w)
  fit <- all_dots(y ~ x, d, kernel = kernel_se(0.9, 1), hyper = "fixed", weights = w)
  again <- update(fit, hyper = "fixed")
  expect_equal(predict(again, new), predict(direct, new))
  fold <- rep(1:2, 30)
  expect_equal(attr(cross_validate(fit, fold), "predictions"), attr(cross_validate(direct, fold), "predictions"))
  expect_equal(predict(gp_hurdle(y ~ x, d, kernel = kernel_se(0.9, 1), hyper = "fixed", subset = x < 3), new),
               predict(fixed_hurdle(y ~ x, d[d$x < 3, ]), new))
})

test_that("one seed gives independent draws of both parts and leaves R's generator as it was", {
  fit <- fixed_hurdle(y ~ x, hurdle_data())
  set.seed(7)
  before <- .Random.seed
  draws <- stats::simulate(fit, 3, seed = 2)
  expect_identical(.Random.seed, before)
  expect_identical(stats::simulate(fit, 3, seed = 2), draws)
  both <- with_seed(2, list(stats::simulate(fit$zero, 3), stats::simulate(fit$positive, 3, newdata = fit$data)))
  expect_equal(draws, both[[1]] * both[[2]], ignore_attr = TRUE)
  expect_identical(attr(draws, "seed")[1], 2)
})

test_that("certificates of a hurdle contain the mean and the zeros of the exact one", {
  d <- hurdle_data()
  new <- data.frame(x = seq(-0.5, 5, length.out = 20))
  known <- replace(stats::Gamma("log"), "theta", 2) # a learned shape would differ between few points and all
  for (y in c("y", "z")) {
    formula <- stats::reformulate("x", y)
    family <- if (y == "z") known
    # The exact hurdle has all rows as inducing points, so its certificate is narrow.
    exact <- certify(fixed_hurdle(formula, d, family = family, center = 0), new)
    expect_lt(max(exact$response_upper - exact$response_lower), 1e-4 * max(exact$response))
    few <- fixed_hurdle(formula, d, family = family, center = 0, m = 6)
    certified <- certify(few, new)
    expect_true(all(certified$response_lower <= exact$response & exact$response <= certified$response_upper))
    expect_true(all(certified$zero_lower <= exact$zero & exact$zero <= certified$zero_upper))
    expect_equal(certified$response, certify(few$zero, new)$response * certify(few$positive, new)$response)
  }
  expect_identical(nrow(certify(few)), 60L)
  expect_match(attr(certified, "legend"), "`response` is the mean, `zero` the probability")
  own <- fixed_hurdle(z ~ x, d, family = gp_family(~ f - y * exp(f), kappa = 1))
  expect_error(certify(own, new), "hurdle", class = "pfdtc_error_input")
})

test_that("responses that are no hurdle are refused by name", {
  d <- hurdle_data(12)
  refused <- function(code, word) expect_error(code, word, class = "pfdtc_error_input")
  refused(gp_hurdle(I(y - 9) ~ x, d), "at least 0")
  refused(gp_hurdle(I(y + 1) ~ x, d), "no zeros")
  refused(gp_hurdle(I(0 * y) ~ x, d), "all rows")
  refused(gp_hurdle(factor(y) ~ x, d), "numbers")
  refused(gp_hurdle(as.numeric(seq_along(y) == 3) ~ x, d), "one row")
  refused(gp_hurdle(I(z * 1e150) ~ x, d), "e\\+150")
  refused(gp_hurdle(~ x, d), "response")
  refused(gp_hurdle(y ~ x, d, subset = x > 1e9), "has no rows")
  fit <- fixed_hurdle(y ~ x, hurdle_data())
  refused(predict(fit, data.frame(x = 1, y = -1), type = "density"), "-1")
  refused(predict(fit, type = "link"), "type")
  refused(predict(fit, type = "zero", interval = "prediction"), "interval")
  refused(predict(fit, d, se = TRUE), "se")
})

test_that("cross-validation, terms and figures of a hurdle are those of both fits", {
  d <- hurdle_data()
  fit <- fixed_hurdle(y ~ x, d)
  fold <- rep(1:3, 20)
  cv <- cross_validate(fit, fold)
  one <- fixed_hurdle(y ~ x, d[fold != 2, ])
  own <- attr(cv, "predictions")
  expect_identical(own$row, 1:60)
  expect_equal(own$mean[fold == 2], unname(predict(one, d[fold == 2, ])))
  expect_equal(own$density[fold == 2], unname(predict(one, d[fold == 2, ], type = "density")))
  expect_equal(cv$nlpd[2], -mean(own$density[fold == 2]))
  band <- predict(one, d[fold == 2, ], interval = "prediction")
  expect_equal(cv$cover95[2], mean(d$y[fold == 2] >= band[, "lwr"] & d$y[fold == 2] <= band[, "upr"]))
  expect_equal(attr(cv, "overall")$rmse, sqrt(mean((d$y - own$mean)^2)))
  expect_output(print(cv), "60 rows, 3 folds")
  expect_identical(nrow(cross_validate(fit, 3, by = ~ round(x))), 3L)
  expect_error(cross_validate(fit, hyper = "held"), "refit", class = "pfdtc_error_input")
  expect_error(confint(fit, "sigma"), "zero", class = "pfdtc_error_input")
  expect_error(predict(fit, type = "quantile", probs = 1), "between 0 and 1", class = "pfdtc_error_input")
  expect_identical(predict(fit, NULL), predict(fit))
  expect_error(cross_validate(fit, by = ~ site), "site", class = "pfdtc_error_input")
  expect_error(predict(fit, d["x"], type = "density"), "response", class = "pfdtc_error_input")
  # Rows with missing values are not used.
  expect_identical(attr(cross_validate(fixed_hurdle(y ~ x, rbind(NA, d)), 2), "overall")$n, 60L)
  expect_identical(attr(stats::terms(fit), "term.labels"), "x")
  expect_identical(stats::variable.names(fit), "x")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_named(plot(fit), c("zero", "positive"))
})

test_that("cross-validation of a hurdle takes variables outside the data, and says nothing about new levels", {
  only_nightly()
  d <- hurdle_data()
  d$w <- rep(1:2, 30)
  fold <- rep(1:3, 20)
  within <- cross_validate(gp_hurdle(y ~ x, d, weights = w, kernel = kernel_se(0.9, 1), hyper = "fixed"), fold)
  predictions <- function(out, call) { # cross_validate() has such variables, too
    one <- gp_hurdle(y ~ x, d, weights = out, subset = x > 2, kernel = call, hyper = "fixed")
    expect_error(cross_validate(one, 2), "weights", class = "pfdtc_error_input")
    attr(cross_validate(gp_hurdle(y ~ x, d, weights = out, kernel = call, hyper = "fixed"), fold), "predictions")
  }
  expect_identical(predictions(d$w, kernel_se(0.9, 1)), attr(within, "predictions"))
  one <- gp_hurdle(y ~ x, d[fold != 2, ], weights = w, kernel = kernel_se(0.9, 1), hyper = "fixed")
  expect_equal(attr(within, "predictions")$mean[fold == 2], predict(one, d[fold == 2, ]), ignore_attr = TRUE)
  d$g <- factor(rep(1:6, 10))
  fit <- gp_hurdle(y ~ (1 | g), d)
  expect_no_message(cross_validate(fit, d$g))
})

test_that("information criteria of hurdles have unique names, and methods for one fit refuse hurdles", {
  fit <- fixed_hurdle(y ~ x, hurdle_data())
  expect_identical(row.names(stats::AIC(fit, fit)), c("fit", "fit.1"))
  expect_equal(stats::BIC(fit, fit)$BIC, rep(stats::BIC(fit), 2))
  expect_equal(stats::AIC(fit, k = 3), 3 * attr(logLik(fit), "df") - 2 * as.numeric(logLik(fit)))
  for (of in list(nlme::ranef, nlme::VarCorr, nlme::fixef)) {
    expect_error(of(fit), "hurdle of two fits", class = "pfdtc_error_input")
  }
  expect_output(print(fit), "Fit `zero` models P(y > 0), the probability of a response above 0", fixed = TRUE)
  expect_error(compare_fits(fit, newdata = fit$data), "hurdle of two fits", class = "pfdtc_error_input")
  expect_input_error(drop1(fit), "fit") # the argument of drop1() is `object`, so the error has the user's words
  days <- fit
  expect_input_error(anova(days, fit), "days")
  expect_input_error(rstandard(days), "days")
  skip_if_not_installed("performance")
  expect_error(performance::model_performance(fit), "hurdle of two fits", class = "pfdtc_error_input")
})

test_that("update() of a hurdle finds the data of the function that made it", {
  make <- function() {
    local_data <- hurdle_data()
    gp_hurdle(y ~ x, local_data, kernel = kernel_se(0.9, 1), hyper = "fixed", subset = x < 4)
  }
  fit <- make()
  kernel <- kernel_se(2, 1)
  again <- update(fit, kernel = kernel)
  d <- hurdle_data()
  expect_equal(predict(again), predict(gp_hurdle(y ~ x, d[d$x < 4, ], kernel = kernel, hyper = "fixed")))
  rm("local_data", envir = environment(fit$formula))
  expect_equal(predict(update(fit, kernel = kernel)), predict(again))
})

test_that("a hurdle takes `.` in its formula, and negative responses outside its subset", {
  d <- hurdle_data()
  expect_equal(predict(fixed_hurdle(y ~ ., d[c("x", "y")])), predict(fixed_hurdle(y ~ x, d)))
  wrong <- rbind(data.frame(x = 1, y = -1, z = 0), d)
  expect_equal(unname(predict(fixed_hurdle(y ~ x, wrong, subset = y >= 0))), unname(predict(fixed_hurdle(y ~ x, d))))
  expect_input_error(fixed_hurdle(y ~ x, wrong), "element 1 is -1")
})

test_that("methods of a hurdle take newdata = NULL, and refuse a type of residuals that they lack", {
  fit <- fixed_hurdle(y ~ x, hurdle_data())
  expect_identical(stats::simulate(fit, 2, seed = 1, newdata = NULL), stats::simulate(fit, 2, seed = 1))
  expect_input_error(residuals(fit, type = "pearson"), "type")
})

test_that("certified probabilities of a hurdle are between 0 and 1, and a mixture is refused", {
  fit <- fixed_hurdle(y ~ x + offset(o), cbind(hurdle_data(), o = 0))
  at <- certify(fit, data.frame(x = 1, o = c(60, -60)))
  expect_identical(c(at$zero_lower[1], at$zero_upper[2]), c(0, 1))
  expect_input_error(certify(fit, data.frame(x = 1, o = 0), hyper_uncertainty = TRUE), "mixture")
})

test_that("cross-validation of a hurdle takes an offset of the data's variables, and leaves out rows of weight 0", {
  d <- hurdle_data()
  d$e <- rep(c(1, 2, 3), 20)
  d$w <- rep(c(1, 1, 0, 1), 15)
  fold <- rep(1:2, each = 30)
  fit <- gp_hurdle(y ~ x, d, weights = w, offset = log(e), kernel = kernel_se(0.9, 1), hyper = "fixed")
  scores <- attr(cross_validate(fit, fold), "overall")
  without <- cross_validate(fixed_hurdle(y ~ x + offset(log(e)), d[d$w > 0, ]), fold[d$w > 0])
  same <- setdiff(names(scores), "seconds")
  expect_identical(scores$n, 45L)
  expect_equal(scores[same], attr(without, "overall")[same], tolerance = 1e-8)
  outside <- d$e
  other <- gp_hurdle(y ~ x, d, weights = w, offset = log(outside), kernel = kernel_se(0.9, 1), hyper = "fixed")
  expect_equal(attr(cross_validate(other, fold), "overall")[same], scores[same], tolerance = 1e-12)
})

test_that("certify() of a hurdle refuses a reference, because its parts have their own", {
  fit <- fixed_hurdle(y ~ x, hurdle_data(), m = 10)
  expect_error(certify(fit, reference = reference(fit$zero)), "`reference`", class = "pfdtc_error_input")
})

test_that("gp_hurdle() as a family has an error that says what to write", {
  expect_error(pfdtc(Days ~ Age, MASS::quine, family = gp_hurdle(nb())), "gp_hurdle() is no family", fixed = TRUE,
               class = "pfdtc_error_input")
})
