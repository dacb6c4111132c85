test_that("coef() names every hyperparameter, in the units of the data", {
  fit <- fit_mixed(y ~ a + f, kernel = kernel_se(c(1, 2, 3, 4), 5), noise = 0.7)
  expect_identical(coef(fit), c(lengthscale.a = 1, lengthscale.fu = 2, lengthscale.fv = 3,
                                lengthscale.fw = 4, variance = 5, noise = 0.7))
  expect_identical(sigma(fit), sqrt(0.7))
  part <- fit_mixed(y ~ a + g, kernel = kernel_se(1, 5, inputs = "g"))
  expect_named(coef(part), c("lengthscale.g", "variance", "noise"))
  expect_identical(variable.names(part), c("a", "g"))
})

test_that("units of y change the answers by their powers", {
  data <- small_data(30)
  fit <- function(y) {
    with_seed(2, pfdtc(data[c("a", "b")], y, m = 6, aux = aux_sor(), control = fixed_control()))
  }
  one <- fit(data$y)
  other <- fit(1000 * data$y - 7)
  scale <- c(1, 1, 1e6, 1e6)
  expect_equal(coef(other), scale * coef(one), tolerance = 1e-6)
  expect_equal(fitted(other), 1000 * fitted(one) - 7, tolerance = 1e-6)
  expect_equal(as.numeric(logLik(other)), as.numeric(logLik(one)) - 30 * log(1000),
               tolerance = 1e-6)
})

test_that("logLik() is the ELBO of y as given", {
  p <- problem(n = 12, d = 1, m = 4, seed = 5)
  x <- p$x[c(1:12, 2, 9, 9), , drop = FALSE]          # merged
  y <- 10 + 3 * p$y[c(1:12, 1:3)]
  weights <- rep(c(1, 0.5, 2), 5)
  fit <- pfdtc(x, y, kernel = kernel_se(0.9, 15), noise = 2, hyper = "fixed", inducing = p$z,
               aux = aux_sor(rows = 1:5), weights = weights, control = fixed_control())
  dense <- ref_elbo(unname(fit$inducing), x, y - fit$center, ref_kernel("se", 0.9, 15), 2, weights,
                    jitter = fit$jitter)
  l <- logLik(fit)
  expect_equal(as.numeric(l), dense, tolerance = 1e-8)
  expect_s3_class(l, "logLik")
  expect_identical(attributes(l)[c("df", "nobs")], list(df = 0L, nobs = 15L))
  expect_identical(c(lower = attr(l, "lower"), upper = attr(l, "upper")), evidence_bounds(fit))
  expect_lte(attr(l, "lower"), as.numeric(l))
  expect_equal(attr(l, "lower"), as.numeric(l), tolerance = 1e-6)
  expect_equal(AIC(fit), -2 * as.numeric(l))
})

test_that("AIC() and BIC() are those of stats, and warn where brackets of the evidence overlap", {
  p <- problem(n = 40, m = 4)
  coarse <- fit_fixed(p, maxit = 0)
  finer <- fit_fixed(p, maxit = 0, inducing = p$x[1:30, ])
  other <- fit_fixed(p, maxit = 0, inducing = p$x, noise = 3)
  coarse$df <- 4L
  for (criterion in list(list(AIC, stats:::AIC.default, "AIC"), list(BIC, stats:::BIC.default, "BIC"))) {
    ours <- criterion[[1L]]
    theirs <- criterion[[2L]]
    expect_identical(ours(coarse), theirs(coarse))
    expect_warning(two <- ours(coarse, finer), "coarse.*finer", class = "pfdtc_warning_evidence")
    expect_equal(two, theirs(coarse, finer))
    expect_silent(apart <- ours(finer, other))
    expect_equal(apart, theirs(finer, other))
    expect_silent(ours(coarse))
  }
  expect_identical(AIC(coarse, k = 3) - AIC(coarse), 4)
  expect_silent(three <- AIC(finer, other, k = 3))
  expect_equal(three, stats:::AIC.default(finer, other, k = 3))

  # Fits with other hyperparameters can be ordered only by references.
  near <- fit_fixed(p, maxit = 0, noise = 1.01 * coarse$noise)
  expect_warning(AIC(coarse, near), "reference\\(fit\\)", class = "pfdtc_warning_evidence")
  # An ELBO far below the log marginal likelihood puts the better model second.
  worse <- fit_fixed(p, maxit = 0, inducing = p$x, noise = 1.5 * coarse$noise)
  few <- fit_fixed(p, maxit = 0, inducing = p$x[1:12, ])
  few$reference <- with_seed(1, reference(few, 40))
  expect_lt(evidence_bounds(worse)[["upper"]], evidence_bounds(few)[["lower"]])
  expect_lt(few$evidence, worse$evidence)
  expect_warning(AIC(few, worse), "few.*worse", class = "pfdtc_warning_evidence")

  # A value without a bracket counts as exact. The bracket of `coarse` contains it. With a reference the bracket is
  # above it, but AIC(), which uses lower bounds, orders the two wrongly and warns.
  lm_fit <- lm(p$y ~ p$x)
  middle <- mean(evidence_bounds(coarse)) - coarse$df # its AIC is inside the bracket of coarse's
  half_way <- structure(list(), class = "half_way")
  registerS3method("logLik", "half_way", function(object, ...) {
    structure(middle, df = 0, nobs = 40L, class = "logLik")
  })
  expect_warning(AIC(coarse, half_way), "coarse.*half_way", class = "pfdtc_warning_evidence")
  coarse$reference <- with_seed(1, reference(coarse, 40))
  expect_warning(AIC(coarse, half_way), "coarse.*half_way", class = "pfdtc_warning_evidence")
  expect_silent(AIC(fit_by("gp_exact", p), fit_by("gp_fitc", p), fit_by("gp_sor", p)))
  expect_named(AIC(coarse, lm_fit), c("df", "AIC"))
  more <- fit_by("gp_exact", problem(n = 50))
  expect_warning(AIC(fit_by("gp_exact", p), more), "40.*50", class = "pfdtc_warning_evidence")
  expect_warning(spliced <- do.call(AIC, list(finer, finer)), class = "pfdtc_warning_evidence")
  expect_identical(row.names(spliced), c("fit", "fit.1"))
})

test_that("logLik() has no bracket if the fit has none", {
  p <- problem(n = 20, m = 4)
  expect_null(attr(logLik(fit_by("gp_fitc", p)), "lower"))
  slim <- fit_by("gp_dtc", p, keep_data = FALSE)
  expect_lte(attr(logLik(slim), "lower"), slim$evidence)
  slim$jitter <- 0
  expect_null(attr(logLik(slim), "upper"))
})

test_that("fitted() and residuals() are those of the training rows, padded as lm() pads", {
  data <- small_data(20)
  data$a[c(4, 9)] <- NA
  weights <- replace(rep(1:2, 10), 6, 0)
  fit <- fit_mixed(y ~ a + b, data, na.action = na.exclude, weights = weights)
  like <- lm(y ~ a + b, data, na.action = na.exclude, weights = weights)
  expect_identical(fitted(fit), predict(fit))
  expect_identical(names(residuals(fit)), names(residuals(like)))
  expect_identical(is.na(residuals(fit)), is.na(residuals(like)))
  expect_equal(unname(residuals(fit)), data$y - unname(fitted(fit)))
  expect_equal(unname(residuals(fit, "pearson")), unname(residuals(fit)) * sqrt(weights))
  expect_equal(weights(fit), weights(like), ignore_attr = TRUE)
  expect_identical(nobs(fit), nobs(like))
})

test_that("methods for the formula of a fit work as for lm()", {
  data <- small_data(20)
  fit <- fit_mixed(log(g) ~ a + f, data, subset = b > 1.2)
  like <- lm(log(g) ~ a + f, data, subset = b > 1.2)
  expect_equal(formula(fit), formula(like))
  expect_identical(attr(terms(fit), "term.labels"), c("a", "f"))
  expect_equal(model.frame(fit), model.frame(like), ignore_attr = TRUE)
  expect_identical(row.names(model.frame(fit)), names(fitted(fit)))

  smaller <- update(fit, . ~ . - f, m = 3)
  expect_identical(variable.names(smaller), "a")
  expect_identical(smaller$m, 3L)
})

test_that("a fit from a matrix has a model frame and no formula", {
  x <- cbind(u = 1:6 / 6, v = c(1, 3, 2, 5, 4, 0))[c(1:6, 2), ]
  y <- c(1, 2, 3, 4, 3, 2, 1)
  fit <- pfdtc(x, y, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed", m = 3,
               control = fixed_control())
  expect_equal(model.frame(fit), data.frame(y = y, x), ignore_attr = TRUE)
  expect_input_error(formula(fit), "formula")
  expect_input_error(terms(fit), "formula")
})

test_that("simulate() does what the help page says of stats::simulate()", {
  fit <- fit_cars()
  set.seed(11)
  before <- .Random.seed
  one <- simulate(fit, nsim = 3, seed = 5)
  expect_identical(.Random.seed, before)
  expect_identical(simulate(fit, nsim = 3, seed = 5), one)
  expect_identical(dim(one), c(50L, 3L))
  expect_named(one, c("sim_1", "sim_2", "sim_3"))
  expect_identical(attr(one, "seed"), structure(5, kind = as.list(RNGkind())))
  drawn <- simulate(fit, nsim = 2)
  expect_identical(attr(drawn, "seed"), before)
  set.seed(11)
  expect_identical(simulate(fit, nsim = 2), drawn)
})

test_that("simulate() draws binomial responses in the form that simulate.glm() has", {
  d <- data.frame(x = 1:24 / 8, n = rep(c(4, 7), 12))
  d$s <- floor(d$n * (1 + sin(d$x)) / 2)
  d$class <- factor(rep(c("yes", "no", "no", "yes", "yes"), length.out = 24))
  forms <- list(class ~ x, class == "yes" ~ x, cbind(s, n - s) ~ x, s / n ~ x)
  for (form in forms) {
    wide <- length(form[[2L]]) > 1L && identical(form[[2L]][[1L]], as.name("/"))
    w <- if (wide) d$n
    ours <- simulate(suppressMessages(pfdtc(form, d, family = binomial(), weights = w,
                                            kernel = kernel_se(1, 1), hyper = "fixed")), 2, seed = 3)
    theirs <- simulate(do.call(glm, list(form, binomial(), d, weights = w)), 2, seed = 3)
    expect_identical(lapply(ours, function(v) list(class(v), dim(v), dimnames(v), levels(v))),
                     lapply(theirs, function(v) list(class(v), dim(v), dimnames(v), levels(v))))
    if (is.matrix(ours[[1L]])) expect_equal(unname(rowSums(ours[[2L]])), d$n)
    if (wide) expect_true(all(abs(ours[[1L]] * d$n - round(ours[[1L]] * d$n)) < 1e-9))
  }
})

test_that("draws have the mean and covariance that predict() gives", {
  fit <- fit_cars()
  new <- data.frame(speed = c(4, 5, 20, NA))
  n <- 4000
  for (type in c("latent", "response")) {
    p <- predict(fit, new[1:3, , drop = FALSE], full_cov = TRUE, type = type)
    s <- as.matrix(simulate(fit, n, seed = 1, newdata = new, type = type))
    expect_true(all(is.na(s[4, ])))
    s <- s[1:3, ]
    # The tolerance is five standard errors of a mean and of a covariance of normal draws.
    expect_true(all(abs(rowMeans(s) - p$fit) < 5 * p$se.fit / sqrt(n)))
    v <- diag(p$cov)
    error <- sqrt((outer(v, v) + p$cov^2) / n)
    expect_true(all(abs(cov(t(s)) - p$cov) < 5 * error))
  }
})

test_that("responses drawn at training rows have the noise of their weights", {
  data <- data.frame(x = c(0, 0, 50, 100), y = c(1, 2, 3, 2))
  fit <- pfdtc(y ~ x, data, weights = c(1, 4, 100, 0), kernel = kernel_se(1, 1e-6), noise = 4,
               hyper = "fixed", m = 2, control = fixed_control())
  s <- as.matrix(simulate(fit, 4000, seed = 2))
  expect_true(all(is.na(s[4, ])))
  expect_equal(unname(apply(s[1:3, ], 1, sd)), 2 / sqrt(c(1, 4, 100)), tolerance = 0.06)
})

test_that("print() and summary() name the method, its settings and its results", {
  fit <- fit_mixed()
  expect_output(print(fit), "20 rows, 3 inputs.*6.*SoR")
  expect_output(print(fit), "squared exponential")
  expect_output(print(fit), "f [(]factor[)]")
  out <- withVisible(print_quietly(fit))
  expect_false(out$visible)
  expect_identical(out$value, fit)
  s <- summary(fit)
  expect_equal(s$rmse, sqrt(mean(residuals(fit)^2)))
  expect_null(s$rmse_loo) # with inducing points it may take long
  expect_equal(s$evidence, as.numeric(logLik(fit)))
  expect_output(print(s), "RMSE.*ELBO")

  slim <- fit_mixed(keep_data = FALSE)
  expect_output(print(summary(slim)), "RMSE")
  expect_input_error(fitted(slim), "keep_data")
  expect_input_error(residuals(slim), "keep_data")
})

test_that("summary() of an exact posterior has the leave-one-out error, and no line about an optimiser", {
  fit <- with_seed(1, pfdtc(y ~ a + b, small_data(), kernel = kernel_se()))
  s <- summary(fit)
  expect_equal(s$rmse_loo, sqrt(mean(residuals(fit, type = "loo")^2)))
  expect_output(print(s), "leave-one-out")
  shown <- utils::capture.output(print(s), print(fit))
  expect_false(any(grepl("Optimisation", shown, fixed = TRUE)))
  logged <- update(fit, exp(y) ~ ., transform = "log") # residuals are in units of the response
  expect_equal(summary(logged)$rmse_loo, sqrt(mean((exp(small_data()$y) - predict(logged, type = "loo"))^2)))
})

test_that("print() says why there are fewer points than asked for", {
  expect_output(print(fit_cars(m = 40)), "\\b40\\b")
  random <- pfdtc(dist ~ speed, cars, m = 40, kernel = kernel_se(1, 900), noise = 200,
                  hyper = "fixed", inducing = "random", control = fixed_control())
  expect_identical(random$m, length(unique(cars$speed)))
  expect_output(print(random), "\\b19\\b.*\\b40\\b")
})

test_that("print() says how the optimiser ended and how much its last steps gained", {
  fit <- fit_mixed()
  fit$convergence <- 1L
  fit$maxit <- 30L
  fit$trace <- data.frame(evaluation = 1:40, objective = c(50, NA, 49:12), seconds = 0)
  expect_output(print(fit), "`maxit`")     # the last tenth: 4 of 38 finite values
  fit$trace$round <- 1:40
  expect_output(print(fit), "`maxit`")
  fit$convergence <- 52L
  expect_output(print(fit), "interrupted")
})

test_that("summary() names the inputs without effect and an optimisation that stopped early", {
  data <- small_data(20)
  fit <- fit_mixed(y ~ a + b, data, kernel = kernel_se(c(1, 1e4), 2))
  expect_output(print(summary(fit)), "effect.*\\bb\\b")
  expect_equal(summary(fit)$range, sapply(data[c("a", "b")], function(v) diff(range(v))))
  slim <- fit_mixed(y ~ a + b, data, kernel = kernel_se(c(1, 1e4), 2), keep_data = FALSE)
  expect_equal(summary(slim)$range, summary(fit)$range)
  short <- with_seed(1, pfdtc(y ~ a, data, m = 4, hyper = "pilot", control = fixed_control()))
  expect_output(print(short), "`maxit`")
})

test_that("print(pfdtc_control()) shows every setting in a few lines", {
  control <- pfdtc_control(maxit = 7, fix = c("noise", "variance"), block = 100)
  shown <- utils::capture.output(out <- withVisible(print(control)))
  expect_false(out$visible)
  expect_identical(out$value, control)
  expect_lt(length(shown), 8)
  text <- paste(trimws(shown), collapse = " ")
  for (name in names(control_checks)) expect_match(text, paste(name, "="), fixed = TRUE)
  expect_match(text, "maxit = 7,")
  expect_match(text, "fix = \"noise\", \"variance\"", fixed = TRUE)
})

test_that("simulate() refuses too much memory before allocating it, and invalid seeds", {
  fit <- fit_cars()
  new <- data.frame(speed = 5:10)
  for (nsim in c(1e9, 2^31, 1e15)) {
    expect_input_error(simulate(fit, nsim, newdata = new), "max_memory")
    expect_input_error(simulate(fit, nsim), "max_memory")
  }
  for (seed in list("a", NA, 1:3, 1e20, list(), 1.5)) {
    expect_input_error(simulate(fit, 1, seed = seed, newdata = new), "seed")
  }
  expect_identical(simulate(fit, 1, seed = 3, newdata = new), simulate(fit, 1, seed = 3, newdata = new))
})

test_that("the log likelihood of a subsample is for its rows, so criteria count these, and comparisons warn", {
  d <- smooth_data(30)
  given <- list(d$x, d$y, kernel = kernel_se(c(0.9, 1.6), 1.7), noise = 0.3, hyper = "fixed")
  some <- with_seed(1, do.call(gp_subsample, c(given, m = 12)))
  all <- do.call(gp_exact, given)
  expect_identical(c(nobs(some), nobs(all)), c(12L, 30L))
  expect_identical(attr(logLik(some), "nobs"), 12L)
  some$df <- 2
  expect_equal(BIC(some), -2 * as.numeric(logLik(some)) + log(12) * 2)
  for (criterion in list(AIC, BIC)) expect_warning(criterion(some, all), "12.*30")
  expect_no_warning(AIC(all, all))
  expect_output(print(some), "30 rows.*12")
})

test_that("influence() has the leverages, and print() says for which weight the noise sd is", {
  fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se(), weights = rep(1:2, 25))
  expect_equal(influence(fit), list(hat = hatvalues(fit), wt.res = residuals(fit, "pearson")))
  expect_output(print(fit), "at weight 1")
  expect_false(any(grepl("at weight 1", capture.output(print(pfdtc(dist ~ speed, cars, kernel = kernel_se()))))))
})
