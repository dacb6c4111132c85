# Returns a fit whose hyperparameters count as learned by `hyper`, without a search. Equal rows, weights and an offset
# from 0 test merging and centring.
as_learned <- function(by, hyper = "evidence", priors = FALSE, n = 40, fix = character(), ...) {
  p <- problem("matern52", n = n, d = 2, m = 8, seed = 3, noise = 0.2)
  p$x <- rbind(p$x, p$x[c(1, 1, 5), ])
  p$y <- with_seed(1, c(p$y, p$y[c(1, 1, 5)] + rnorm(3)))
  p$weights <- with_seed(2, runif(n + 3, 0.5, 2))
  fit <- by(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", weights = p$weights,
              center = FALSE, control = pfdtc_control(priors = priors, fix = fix, progress = FALSE), ...)
  fit$hyper <- hyper
  list(fit = fit, p = p)
}

ref_curvature <- function(p, names) {
  at <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
  evidence <- function(theta) {
    v <- exp(theta)
    ref_exact(p$x, p$y, ref_kernel(p$kernel$profile, v[1:2], v[3]), v[4], p$weights)$evidence
  }
  -stats::optimHess(at, evidence, control = list(ndeps = rep(0.01, 4)))
}

test_that("vcov() is the inverse curvature of the dense log evidence in the logs", {
  made <- as_learned(gp_exact)
  V <- vcov(made$fit)
  logs <- sprintf("log(%s)", names(coef(made$fit)))
  expect_identical(dimnames(V), list(logs, logs))
  curvature <- ref_curvature(made$p)
  expect_true(all(eigen(curvature)$values > 1 / 16)) # every direction has information
  expect_close(unname(V), solve(curvature), 1e-3)    # differences of differences, step 0.01
  expect_close(unname(vcov(as_learned(gp_exact, "joint")$fit)), unname(V), 1e-9)
})

test_that("the curvature is that at the maximum, although few rows have larger variances", {
  d <- with_seed(3, data.frame(x = stats::runif(12)))
  d$y <- with_seed(4, sin(6 * d$x) + 0.3 * stats::rnorm(12))
  fit <- with_seed(1, suppressWarnings(suppressMessages(pfdtc(y ~ x, d, transform = "auto"))))
  factor <- attr(fit$learned, "factor")
  expect_gt(factor, 1.3) # 12 / (12 - 3) at least
  learned <- with_seed(1, learned_density(fit))
  top <- learned$value(learned$at)
  sds <- sqrt(diag(stats::vcov(fit)))
  for (i in seq_along(learned$at)) for (side in c(-0.2, 0.2)) {
    expect_lt(learned$value(learned$at + side * sds[i] * (seq_along(learned$at) == i)), top + 1e-6)
  }
  # Hyperparameters of the mixture have the factor of the fit.
  model <- model_of(fit)
  expect_equal(learned$natural(learned$at)$noise, model$noise, tolerance = 1e-12)
  expect_equal(kernel_values(learned$natural(learned$at)$kernel), kernel_values(model$kernel), tolerance = 1e-12)
  new <- data.frame(x = seq(0, 1, by = 0.1))
  sd_of <- function(...) predict(fit, new, se.fit = TRUE, type = "response", ...)$se.fit
  expect_gt(mean(sd_of(hyper_uncertainty = TRUE)), mean(sd_of()))
})

test_that("priors are added as learning adds them", {
  with <- as_learned(gp_exact, priors = TRUE)
  without <- as_learned(gp_exact)
  added <- solve(vcov(with$fit)) - solve(vcov(without$fit))
  expect_close(unname(added), diag(c(1 / 0.7^2, 1 / 0.7^2, 1 / 3^2, 1 / 2^2)), 1e-6) # 40 rows: not faded
})

test_that("held hyperparameters have no variance; the others' is conditional on them", {
  all <- as_learned(gp_exact)
  some <- as_learned(gp_exact, fix = c("noise", "lengthscale.x1"))
  expect_identical(colnames(vcov(some$fit)), c("log(lengthscale.x2)", "log(variance)"))
  expect_close(unname(solve(vcov(some$fit))), unname(solve(vcov(all$fit)))[2:3, 2:3], 1e-6)
})

test_that("with inducing points vcov() is from the ELBO; with all rows as points, from the evidence", {
  exact <- vcov(as_learned(gp_exact, "joint")$fit)
  rows <- as_learned(gp_exact)$fit$data$x
  vfe <- vcov(as_learned(gp_vfe, "joint", inducing = rows)$fit)
  expect_close(vfe, exact, 1e-4)                      # a jitter of 1e-8 of the variance
})

test_that("with many rows vcov() is from the expected information of rows given their neighbours", {
  x <- with_seed(1, cbind(a = runif(300, 0, 6), b = runif(300, 0, 6)))
  covariance <- function(theta) {
    v <- exp(theta)
    kernel_matrix(kernel_matern(3 / 2, v[1:2], v[3]), x) + diag(v[4], 300)
  }
  at <- log(c(1, 2, 1, 0.1))
  y <- with_seed(2, drop(crossprod(chol(covariance(at)), rnorm(300))))
  fit <- gp_exact(x, y, kernel = kernel_matern(3 / 2, c(1, 2), 1), noise = 0.1, hyper = "fixed", center = FALSE,
                  scale = FALSE, control = pfdtc_control(priors = FALSE))
  fit$hyper <- "evidence"
  # The limit of memory makes the rows too many for the exact log marginal likelihood.
  near <- with_options(list(pfdtc.max_memory = 1e5), vcov(fit))
  # Compute Fisher's information of the exact GP: tr(K^-1 K_i K^-1 K_j) / 2.
  slopes <- lapply(1:4, function(i) {
    h <- replace(numeric(4), i, 1e-4)
    solve(covariance(at), (covariance(at + h) - covariance(at - h)) / 2e-4)
  })
  information <- outer(1:4, 1:4, Vectorize(function(i, j) sum(slopes[[i]] * t(slopes[[j]])) / 2))
  # 30 neighbours have nearly all information.
  expect_true(all(abs(sqrt(diag(near) / diag(solve(information))) - 1) < 0.03))
})

test_that("vcov() is reproducible and leaves the session's random numbers unchanged", {
  made <- as_learned(gp_exact, n = 100)
  with_seed(5, {
    one <- vcov(made$fit)
    a <- runif(1)
  })
  expect_identical(a, with_seed(5, runif(1)))
  expect_identical(one, vcov(made$fit))
  expect_true(isSymmetric(one))
})

test_that("an input without effect has a log lengthscale with sd 4", {
  x <- with_seed(1, cbind(a = runif(60), b = runif(60)))
  y <- with_seed(2, sin(6 * x[, 1]) + 0.1 * rnorm(60))
  fit <- gp_exact(x, y, kernel = kernel_se(c(0.3, 1e4), 1), noise = 0.01, hyper = "fixed",
                  control = pfdtc_control(priors = FALSE))
  fit$hyper <- "evidence"
  expect_equal(sqrt(diag(vcov(fit)))[["log(lengthscale.b)"]], 4, tolerance = 1e-3)
})

test_that("confint() is for the logs, and its names say so", {
  fit <- as_learned(gp_exact)$fit
  sd <- sqrt(diag(vcov(fit)))
  table <- confint(fit, level = 0.8)
  expect_identical(dimnames(table), list(sprintf("log(%s)", names(coef(fit))), c("10 %", "90 %")))
  expect_equal(unname(rowMeans(table)), unname(log(coef(fit))))
  expect_equal(table[, 2] - table[, 1], 2 * qnorm(0.9) * sd)
  for (name in c("noise", "log(noise)")) {
    expect_identical(confint(fit, name), confint(fit)["log(noise)", , drop = FALSE])
  }
  expect_identical(colnames(confint(fit, 1:2)), c("2.5 %", "97.5 %"))
  expect_input_error(confint(fit, "nose"), "parm")
  expect_input_error(confint(fit, 9), "parm")
  expect_input_error(confint(fit, level = 2), "level")
})

test_that("intervals cover the hyperparameters that data were drawn with", {
  only_nightly()
  found <- with_seed(3, replicate(30, {
    x <- sort(runif(120, 0, 10))
    kernel <- kernel_se(1, 1)
    y <- drop(crossprod(chol(kernel_matrix(kernel, x) + diag(1e-8, 120)), rnorm(120))) + rnorm(120, sd = 0.3)
    fit <- gp_exact(x, y, kernel = kernel_se(), center = FALSE, scale = FALSE,
                    control = pfdtc_control(restarts = 2, priors = FALSE))
    table <- confint(fit)
    truth <- log(c(1, 1, 0.09))
    table[, 1] <= truth & truth <= table[, 2]
  }))
  # There are 90 intervals of 95 %; allow three sds of their share for 30 independent ones: 0.95 - 3 * sqrt(0.05 * 0.95
  # / 30).
  expect_gt(mean(found), 0.83)
})

test_that("errors say if nothing was learned or the data are missing", {
  expect_input_error(vcov(fit_cars()))
  fit <- as_learned(pfdtc, neighbours = 0, m = 4, keep_data = FALSE)$fit
  expect_input_error(vcov(fit), "keep_data")
})

# Draws counts y(x). Below is their dense evidence in the logs of lengthscale and variance, and the mean.
counted_data <- function(n = 15) {
  with_seed(4, {
    x <- sort(stats::runif(n, 0, 3))
    data.frame(x = x, y = stats::rpois(n, exp(1 + sin(3 * x))), z = 100 * sin(3 * x) + 20 * stats::rt(n, 4))
  })
}

second_differences <- function(value, par, step) {
  k <- length(par)
  each <- outer(seq_len(k), seq_len(k), Vectorize(function(i, j) {
    at <- function(a, b) value(par + a * step * (seq_len(k) == i) + b * step * (seq_len(k) == j))
    (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4
  }))
  each / outer(step, step)
}

test_that("for counts vcov() is from the curvature of the dense Laplace evidence and its priors", {
  d <- counted_data()
  fit <- pfdtc(y ~ x, d, family = poisson(), kernel = kernel_se())
  evidence <- function(par) {
    sites <- list(y = d$y, size = NULL, weight = NULL, offset = rep(par[3], nrow(d)))
    kernel <- replace(fit$kernel, c("lengthscale", "variance"), as.list(exp(par[1:2])))
    ref_laplace(cbind(d$x), sites, "log", kernel)$evidence
  }
  at <- unname(c(log(coef(fit)[1:2]), coef(fit)["mean"]))
  information <- -second_differences(evidence, at, rep(0.01, 3)) + diag(c(0.7, 1.5, 3)^-2)
  expect_equal(unname(vcov(fit)), solve(information), tolerance = 1e-3)
  expect_identical(rownames(vcov(fit)), c("log(lengthscale.x)", "log(variance)", "mean"))
  expect_equal(unname(rowMeans(confint(fit))), at)
  expect_equal(rownames(vcov(update(fit, family = nb(), center = 1))),
               c("log(lengthscale.x)", "log(variance)", "log(theta)"))
  held <- vcov(update(fit, kernel = kernel_se(1, 1), hyper = "fixed"))
  expect_identical(rownames(held), "mean")
  expect_input_error(vcov(update(fit, kernel = kernel_se(1, 1), hyper = "fixed", center = 1)))
  expect_input_error(vcov(update(fit, neighbours = 5)))
})

test_that("for Student's t vcov() follows the units of the response, and a mixture consists of fits at its points", {
  d <- counted_data()
  fit <- pfdtc(z ~ x, d, family = student(), kernel = kernel_se())
  large <- pfdtc(1000 * z ~ x, d, family = student(), kernel = kernel_se())
  expect_equal(sqrt(diag(vcov(large))), sqrt(diag(vcov(fit))) * c(1, 1, 1000, 1), tolerance = 0.15)
  new <- data.frame(x = c(0.5, 4))
  points <- mixture_of(fit)$points
  parts <- lapply(points$hyper, function(one) {
    at <- pfdtc(z ~ x, d, family = student(4, one$theta), kernel = one$kernel, center = one$center, hyper = "fixed")
    predict(at, new, se.fit = TRUE)
  })
  mean <- drop(vapply(parts, `[[`, numeric(2), "fit") %*% points$weights)
  square <- drop(vapply(parts, function(p) p$fit^2 + p$se.fit^2, numeric(2)) %*% points$weights)
  got <- predict(fit, new, se.fit = TRUE, hyper_uncertainty = TRUE)
  expect_equal(got$fit, mean, tolerance = 1e-6)
  expect_equal(got$se.fit, sqrt(square - mean^2), tolerance = 1e-6)
  expect_gt(got$se.fit[2], predict(fit, new, se.fit = TRUE)$se.fit[2])
  expect_input_error(predict(fit, new, interval = "credible", certified = TRUE, hyper_uncertainty = TRUE), "certified")
})

test_that("if the evidence cannot be computed next to the hyperparameters, an error says so", {
  expect_error(differences(function(par) if (par <= 0) -par, 0), "curvature", class = "pfdtc_error_numerical")
})

test_that("a scale at its lower limit counts as known: all other sds are finite and its own is small", {
  data <- data.frame(x = 1:20 / 5, y = c(1, numeric(19))) # the density grows without limit as the scale shrinks
  fit <- suppressMessages(pfdtc(y ~ x, data, family = student()))
  expect_equal(fit$theta[1], fit$likelihood$least[1])
  sd <- sqrt(diag(vcov(fit)))
  expect_true(all(is.finite(sd)))
  # A free scale of 20 normal responses has the sd 1 / sqrt(2 * 20), with heavier tails more.
  expect_lt(sd[["log(sigma)"]], 1 / sqrt(40))
})

test_that("coef(), vcov() and confint() have the linear mean of counts, which is that of glm() if it is alone", {
  d <- counted_data(40)
  names(d)[1] <- "log(x)" # an input whose name looks like that of a logarithm
  kernel <- gp_exact(d["log(x)"], d$y, kernel = kernel_se(1, 1e-8), mean = ~ ., noise = 1,
                     hyper = "fixed")$kernel
  fit <- pfdtc(d["log(x)"], d$y, family = poisson(), kernel = kernel, hyper = "fixed")
  line <- stats::glm(d$y ~ d[["log(x)"]], stats::poisson())
  expect_identical(names(coef(fit))[1:2], c("(Intercept)", "log(x)"))
  expect_equal(coef(fit)[1:2], summary(fit)$linear[, 1])
  expect_equal(unname(coef(fit)[1:2]), unname(coef(line)), tolerance = 1e-3) # shrunk by 1e-4
  expect_equal(unname(vcov(fit)), unname(vcov(line)), tolerance = 1e-3)
  expect_identical(dimnames(vcov(fit)), rep(list(names(coef(fit))[1:2]), 2))
  expect_equal(rowMeans(confint(fit)), coef(fit)[1:2])
})

test_that("coef() and vcov() agree on either scale", {
  trend <- function(...) {
    pfdtc(dist ~ speed, cars, kernel = kernel_se(), mean = ~ speed, noise = ~ speed, transform = "none", ...)
  }
  d <- with_seed(1, data.frame(x = stats::runif(50), n = stats::rpois(50, 3)))
  for (fit in list(fit_cars(hyper = "evidence"), trend(), pfdtc(n ~ x, d, family = tweedie(), kernel = kernel_se()))) {
    V <- vcov(fit)
    logs <- coef(fit, log = TRUE)
    expect_true(all(rownames(V) %in% names(logs)))
    expect_equal(unname(rowMeans(confint(fit))), unname(logs[rownames(V)]))
    plain <- vcov(fit, log = FALSE)
    theta <- coef(fit)[rownames(plain)]
    expect_false(anyNA(theta))
    moved <- rownames(V) != rownames(plain) # d theta / d log theta = theta
    expect_equal(unname(sqrt(diag(plain))), unname(sqrt(diag(V)) * ifelse(moved, theta, 1)))
    expect_equal(unname(stats::cov2cor(plain)), unname(stats::cov2cor(V)))
  }
  # With several classes each has a mean, of which coef(log = TRUE) takes no log.
  fit <- pfdtc(Species ~ Petal.Width, iris, family = multinomial(), kernel = kernel_se(1, 2), hyper = "fixed")
  means <- startsWith(names(coef(fit)), "mean")
  expect_identical(coef(fit, log = TRUE)[means], coef(fit)[means])
  expect_input_error(coeftest.gp_fit(fit_cars(hyper = "evidence")), "confint")
  expect_input_error(Anova.gp_fit(fit_cars()), "drop1")
  expect_true("Anova.gp_fit" %in% getNamespaceInfo("pfdtc", "S3methods")[, 3])
})

test_that("a coefficient of a variable `noise` and the noise variance do not mix up their uncertainty", {
  d <- with_seed(1, data.frame(x = stats::runif(50), noise = stats::runif(50)))
  d$y <- with_seed(2, d$x + d$noise + stats::rnorm(50, 0, 0.1))
  other <- stats::setNames(d, c("x", "z", "y"))
  fit <- function(formula, data, mean) pfdtc(formula, data, mean = mean, kernel = kernel_se(), plain = TRUE)
  a <- fit(y ~ x + noise, d, ~ x + noise)
  b <- fit(y ~ x + z, other, ~ x + z)
  expect_equal(unname(coef(a, log = TRUE)), unname(coef(b, log = TRUE)))
  expect_equal(unname(confint(a)), unname(confint(b)))
  expect_equal(unname(vcov(a, log = FALSE)), unname(vcov(b, log = FALSE)))
  expect_equal(tidy.gp_fit(a, conf.int = TRUE)[-1], tidy.gp_fit(b, conf.int = TRUE)[-1])
})

test_that("vcov() has a row for each lengthscale in coef(), although one number was learned for all", {
  tied <- pfdtc(case ~ age + parity, infert[1:80, ], family = binomial(), kernel = kernel_se())
  expect_match(tied$because[["tied"]], "one learned number")
  V <- vcov(tied)
  expect_identical(sub("^log[(](.*)[)]$", "\\1", rownames(V)), names(coef(tied)))
  expect_gt(min(eigen(V, symmetric = TRUE, only.values = TRUE)$values), 0)
  expect_identical(attr(logLik(tied), "df"), 3L) # lengthscale, variance and constant mean
  expect_identical(nrow(V), 4L)
})

test_that("vcov() takes the learned prior variance of a chosen linear mean as known, with Gaussian noise", {
  fit <- pfdtc(mpg ~ wt + hp, mtcars, noise = ~ 1, transform = "none")
  expect_true("mean.variance" %in% parameter_names(fit$kernel, fit$frame$columns))
  expect_identical(rownames(vcov(fit)), c("(Intercept)", "wt", "hp", "log(matern12.lengthscale.wt)",
                                          "log(matern12.lengthscale.hp)", "log(matern12.variance)", "log(noise)"))
  expect_identical(attr(logLik(fit), "df"), 5L) # of the kernels and the noise, without the coefficients
})
