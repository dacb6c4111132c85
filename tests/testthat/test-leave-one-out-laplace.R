# Tests leave-one-out, PIT, calibration and cross-validation of fits with classes and counts.

scored_data <- function(n = 120) {
  with_seed(7, {
    x <- stats::runif(n, -2, 2)
    data.frame(x = x, y = stats::rbinom(n, 1, stats::plogis(2 * x)), n = stats::rpois(n, exp(1 + x / 2)),
               z = sin(2 * x) + 0.3 * stats::rnorm(n))
  })
}

test_that("leave-one-out equals that of a Gaussian fit if the likelihood is Gaussian", {
  d <- scored_data()
  k <- kernel_se(0.7, 1)
  for (m in list(NULL, 6)) {
    gauss <- pfdtc(z ~ x, d, m = m, kernel = k, noise = 0.09, hyper = "fixed", center = FALSE, scale = FALSE,
                   neighbours = 0, control = pfdtc_control(maxit = 0))
    near <- pfdtc(z ~ x, d, inducing = if (!is.null(m)) gauss$inducing, kernel = k, hyper = "fixed", center = FALSE,
                  family = student(1e7, 0.3))
    one <- predict(gauss, type = "loo_latent", se.fit = TRUE)
    two <- predict(near, type = "loo_latent", se.fit = TRUE)
    expect_equal(two$fit, one$fit, tolerance = 1e-5)
    expect_equal(two$se.fit, one$se.fit, tolerance = 1e-5)
    expect_equal(residuals(near, "pit"), stats::pnorm(stats::rstandard(gauss)), tolerance = 1e-4)
    for (what in c(stats::rstandard, stats::hatvalues, stats::cooks.distance, stats::df.residual, stats::sigma)) {
      expect_equal(what(near), what(gauss), tolerance = 1e-4)
    }
  }
})

test_that("for classes and counts leave-one-out is close to fits without the row", {
  d <- scored_data(40)
  for (case in list(list(y ~ x, binomial()), list(n ~ x, poisson()), list(n ~ x, nb(2)))) {
    k <- kernel_se(0.7, 1)
    fit <- pfdtc(case[[1]], d, family = case[[2]], kernel = k, hyper = "fixed", center = FALSE)
    loo <- predict(fit, type = "loo_latent", se.fit = TRUE)
    without <- vapply(c(1, 9, 23), function(i) {
      p <- predict(pfdtc(case[[1]], d[-i, ], family = case[[2]], kernel = k, hyper = "fixed", center = FALSE), d[i, ],
                   se.fit = TRUE)
      c(p$fit, p$se.fit)
    }, c(0, 0))
    expect_lt(max(abs(loo$fit[c(1, 9, 23)] - without[1, ]) / without[2, ]), 0.15)
    expect_equal(unname(loo$se.fit[c(1, 9, 23)]), without[2, ], tolerance = 0.15)
    expect_gt(mean(abs(residuals(fit, "loo"))), mean(abs(residuals(fit))))
    band <- predict(fit, type = "loo", interval = "credible")
    expect_true(all(band[, "lwr"] < band[, "fit"] & band[, "fit"] < band[, "upr"]))
    refused <- if (case[[2]]$family == "binomial") "prediction" else "conformal"
    expect_error(predict(fit, type = "loo", interval = refused), class = "pfdtc_error_input")
  }
})

test_that("rstandard() is the response less its mean, divided by its predictive sd given the others", {
  d <- scored_data(40)
  d$m <- as.double(rep_len(1:4, 40))
  d$s <- with_seed(2, stats::rbinom(40, d$m, 0.4))
  for (case in list(list(cbind(s, m - s) ~ x, binomial()), list(n ~ x, poisson()), list(n ~ x, nb(2)))) {
    fit <- pfdtc(case[[1]], d, family = case[[2]], kernel = kernel_se(0.7, 1), hyper = "fixed")
    loo <- loo_rows(fit)
    size <- if (response_of(fit)$reads == "classes") d$m
    top <- if (is.null(size)) rep(400, 40) else size
    for (i in c(1, 9, 23)) {
      y <- 0:top[i]
      p <- exp(log_predictive(fit$likelihood, list(y = y, size = if (!is.null(size)) rep(size[i], length(y))),
                              rep(loo$mean[i], length(y)), rep(loo$var[i], length(y))))
      mean <- sum(p * y)
      now <- if (is.null(size)) d$n[i] else d$s[i]
      expect_equal(stats::rstandard(fit)[[i]], (now - mean) / sqrt(sum(p * (y - mean)^2)), tolerance = 1e-5)
    }
  }
})

test_that("leverages and deviances are those of glm() in its limits, padded as na.exclude says", {
  d <- scored_data(60)
  d$m <- rep_len(1:4, 60)
  d$s <- with_seed(2, stats::rbinom(60, d$m, stats::plogis(d$x)))
  line <- glm(cbind(s, m - s) ~ x, binomial(), d)
  vague <- pfdtc(cbind(s, m - s) ~ x, d, family = binomial(), kernel = kernel_linear(1e5) + kernel_constant(1e5),
                 hyper = "fixed", center = FALSE)
  expect_equal(stats::hatvalues(vague), stats::hatvalues(line), tolerance = 1e-3)
  expect_equal(stats::df.residual(vague), 58, tolerance = 1e-4)
  flat <- kernel_se(1, 1e-10)
  for (case in list(list(cbind(s, m - s) ~ x, binomial(), binomial()), list(n ~ x, poisson(), poisson()))) {
    none <- glm(stats::update(case[[1]], . ~ 1), case[[2]], d)
    fit <- pfdtc(case[[1]], d, family = case[[2]], kernel = flat, hyper = "evidence",
                 control = pfdtc_control(fix = c("variance", "lengthscale.x"), priors = FALSE))
    expect_equal(stats::deviance(fit), stats::deviance(none), tolerance = 1e-4)
    for (type in c("deviance", "pearson")) expect_equal(residuals(fit, type), residuals(none, type), tolerance = 1e-2)
  }
  counts <- pfdtc(n ~ x, d, family = nb(2), kernel = kernel_se(0.7, 1), hyper = "fixed")
  log_density <- function(mu) stats::dnbinom(d$n, 2, mu = mu, log = TRUE)
  expect_equal(unname(residuals(counts, "deviance")^2), 2 * (log_density(d$n) - log_density(stats::fitted(counts))))
  given <- pfdtc(s / m ~ x, d, weights = m, family = binomial(), kernel = kernel_se(0.7, 1), hyper = "fixed")
  expect_equal(unname(stats::weights(given)), as.double(d$m))
  d$x[3] <- NA
  holes <- pfdtc(cbind(s, m - s) ~ x, d, family = binomial(), kernel = kernel_se(0.7, 1), hyper = "fixed",
                 na.action = stats::na.exclude)
  whole <- update(holes, data = d[-3, ], na.action = stats::na.omit)
  for (type in c("deviance", "pearson", "loo")) {
    expect_equal(residuals(holes, type)[-3], residuals(whole, type))
    expect_true(is.na(residuals(holes, type)[3]))
  }
  expect_equal(stats::rstandard(holes)[-3], stats::rstandard(whole))
})

test_that("PIT of counts is uniform if the model is true, and not otherwise", {
  d <- with_seed(3, data.frame(x = stats::runif(600)))
  d$n <- with_seed(4, stats::rnbinom(600, size = 1, mu = 6))
  k <- kernel_se(1, 0.1)
  set <- function(family) pfdtc(n ~ x, d, family = family, kernel = k, hyper = "fixed")
  p <- function(fit) suppressWarnings(stats::ks.test(with_seed(5, residuals(fit, "pit")), "punif"))$p.value
  expect_gt(p(set(nb(1))), 0.01)
  expect_lt(p(set(poisson())), 1e-6)
})

test_that("the calibration figure has a table of shares and predicted probabilities", {
  d <- scored_data(400)
  fit <- pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(1.5, 4), hyper = "fixed")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  table <- plot(fit, which = "calibration")
  expect_identical(sum(table$rows), 400L)
  expect_equal(sum(table$rows * table$observed), sum(d$y))
  expect_true(all(diff(table$predicted) > 0))
  expect_lt(mean(((table$observed - table$predicted) / table$sd)^2), 2.5)
  expect_equal(sum(table$rows * table$predicted), sum(predict(fit, type = "loo")))
  counts <- pfdtc(n ~ x, d, family = poisson(), kernel = kernel_se(1.5, 1), hyper = "fixed")
  expect_identical(nrow(plot(counts, which = "calibration")), 400L)
  expect_error(plot(pfdtc(dist ~ speed, cars, m = 5), which = "calibration"), class = "pfdtc_error_input")
})

test_that("cross_validate() learns again or holds hyperparameters, with sizes, offsets and weights", {
  d <- scored_data(60)
  fit <- pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(1, 2), hyper = "fixed")
  cv <- with_seed(1, cross_validate(fit, 3, hyper = "held"))
  p <- attr(cv, "predictions")
  expect_identical(p$row, 1:60)
  first <- which(p$fold == 1)
  again <- pfdtc(y ~ x, d[-first, ], family = binomial(), kernel = kernel_se(1, 2), hyper = "fixed")
  expect_equal(p$mean[first], unname(predict(again, d[first, ], type = "response")), tolerance = 1e-6)
  expect_equal(p$density[first], unname(predict(again, d[first, ], type = "density")), tolerance = 1e-6)
  expect_equal(attr(cv, "overall")$nlpd, -mean(p$density))
  d$e <- exp(d$x / 3)
  counts <- pfdtc(n ~ x + offset(log(e)), d, family = nb(), kernel = kernel_se())
  cv <- with_seed(1, cross_validate(counts, 2))
  expect_true(all(is.finite(cv$nlpd)) && all(is.na(cv$accuracy)))
})

test_that("Brier's score is of single trials, in summary() and over folds", {
  d <- with_seed(4, data.frame(x = stats::runif(40), trials = rep(1:4, 10)))
  d$hits <- with_seed(5, stats::rbinom(40, d$trials, 0.2 + 0.6 * d$x))
  each <- d[rep(1:40, d$trials), ]
  each$y <- unlist(Map(function(k, n) rep(1:0, c(k, n - k)), d$hits, d$trials))
  fit <- pfdtc(cbind(hits, trials - hits) ~ x, d, family = binomial(), kernel = kernel_se(0.5, 1), hyper = "fixed")
  p <- predict(fit, each["x"], type = "response")
  expect_equal(summary(fit)$scores[["Brier score"]], mean((p - each$y)^2))
  expect_output(print(summary(fit)), "Brier")
  cv <- with_seed(1, cross_validate(fit, folds = 2))
  out <- attr(cv, "predictions")
  expect_identical(out$size, as.double(d$trials))
  p <- rep(out$mean, d$trials)
  expect_equal(attr(cv, "overall")$brier, mean((p - each$y)^2))
  counts <- pfdtc(hits ~ x, d, family = poisson(), kernel = kernel_se(0.5, 1), hyper = "fixed")
  expect_true(is.na(summary(counts)$scores[["Brier score"]]))
  expect_false(grepl("Brier", paste(utils::capture.output(print(summary(counts))), collapse = "")))
})

test_that("rows of weight 0 are in no score", {
  d <- scored_data(30)
  fit <- pfdtc(n ~ x, d, family = poisson(), kernel = kernel_se(0.7, 1), hyper = "fixed",
               weights = as.double(seq_len(30) > 4))
  without <- update(fit, data = d[-(1:4), ], weights = NULL)
  scores <- function(f) summary(f)[c("scores", "scores_loo")]
  expect_no_warning(expect_equal(scores(fit), scores(without)))
  left_out <- predict(without, type = "loo")
  expect_equal(summary(fit)$scores_loo[["RMSE"]], sqrt(mean((d$n[-(1:4)] - left_out)^2)))
  expect_true(all(is.na(stats::rstandard(fit)[1:4])))
  expect_identical(unname(stats::hatvalues(fit)[1:4]), numeric(4))
  loo <- function(f) report(f)$table$value[report(f)$table$what == "Leave-one-out"]
  expect_identical(loo(fit), loo(without))
})

test_that("scores and PIT leave out the rows that have leverage 1 up to rounding because of their weights", {
  d <- data.frame(x = c(0:3, 9:12), y = c(1, 2, 0, 3, 1, 1, 4, 2))
  fit_with <- function(d, family, weights) {
    pfdtc(y ~ x, d, family = family, kernel = kernel_se(1, 1), hyper = "fixed", weights = weights, center = FALSE)
  }
  for (family in list(poisson(), student(4, 0.3), tobit(-1, scale = 0.3))) {
    fit <- fit_with(d, family, c(1e16, rep(1, 7)))
    expect_message(loo <- predict(fit, type = "loo_latent", se.fit = TRUE), "leverage 1")
    lost <- is.nan(unname(loo$fit))
    expect_true(lost[1] && sum(lost) < 3)
    scores <- suppressMessages(training_scores(fit))
    expect_identical(scores$n, sum(!lost))
    given <- list(y = d$y[!lost], size = if (family$family == "tobit") d$y[!lost])
    known <- function(v) unname(v[!lost])
    expect_equal(scores$nlpd, -mean(log_predictive(fit$likelihood, given, known(loo$fit), known(loo$se.fit)^2)))
    expect_identical(is.na(unname(suppressMessages(residuals(fit, "pit")))), lost)
    expect_output(suppressMessages(print(summary(fit))), "Leave-one-out")
  }
})
