# Returns -2 log REML and -2 log ML by their definitions, with X of full rank.
ref_restricted <- function(y, X, H) {
  P <- solve(H)
  A <- crossprod(X, P %*% X)
  r <- y - X %*% solve(A, crossprod(X, P %*% y))
  quad <- sum(r * (P %*% r))
  ml <- length(y) * log(2 * pi) + c(determinant(H)$modulus) + quad
  c(reml = ml - ncol(X) * log(2 * pi) + c(determinant(A)$modulus), ml = ml)
}

test_that("the restricted likelihood equals its definition with slopes, crossed and nested groups and weights", {
  d <- with_seed(5, data.frame(y = rnorm(60), x = rnorm(60), g = sample(letters[1:6], 60, TRUE),
                               h = sample(LETTERS[1:4], 60, TRUE), w = runif(60, 0.5, 2)))
  for (f in list(y ~ (x | g) + (1 | h), y ~ (1 | g) + (0 + x | h), y ~ (x || g), y ~ (1 | g / h) + (1 | h))) {
    data <- data_from_formula(quote(pfdtc(formula = f, data = d, weights = w)), environment(), mean = ~ x)
    asked <- first_plan(data, check_settings("pfdtc", quote(pfdtc()), model_asked(formula_arguments(
      list(mean = ~ x), pfdtc.default))))$learn
    kernel <- with_seed(1, set_values(asked$kernel, runif(length(kernel_values(asked$kernel)), 0.4, 1.5)))
    groups <- kernel <- as_kernel(kernel)
    groups$terms <- groups$terms[plain_groups(kernel)]
    sums <- group_sums(kernel, data)
    found <- restricted_likelihood(sums, group_roots(kernel), 0.7, list(rows = 0, ss = 0))
    X <- flat_basis(kernel, data$x)
    expect_identical(ncol(X), 2L)
    H <- ref_composite(groups, data$x) + diag(0.7 / data$weights)
    expect_equal(-2 * unlist(found[c("reml", "ml")]), ref_restricted(data$y, X, H), tolerance = 1e-10)
  }
})

test_that("models of groups alone have lme4's numbers by REML", {
  skip_if_not_installed("lme4")
  strict <- lme4::lmerControl(optCtrl = list(xtol_abs = 1e-10, ftol_abs = 1e-12))
  sets <- new.env()
  utils::data("sleepstudy", "Penicillin", "Pastes", package = "lme4", envir = sets)
  same <- function(data, groups, mean, whole, tolerance = 1e-4) {
    fit <- pfdtc(groups, data, mean = mean)
    ref <- lme4::lmer(whole, data, control = strict)
    both <- function(m, vc) c(vc$sdcor[order(vc$grp, vc$var1, vc$var2)], m)
    expect_equal(both(fixef.gp_fit(fit), as.data.frame(VarCorr.gp_fit(fit))),
                 both(lme4::fixef(ref), as.data.frame(lme4::VarCorr(ref))), tolerance = tolerance)
    expect_equal(mean_coefficients(fit)$sd, sqrt(diag(as.matrix(stats::vcov(ref)))), tolerance = tolerance)
    expect_equal(c(logLik(fit)), c(logLik(ref)), tolerance = 1e-6)
    expect_equal(AIC(fit), AIC(ref), tolerance = 1e-6)
    expect_equal(c(logLik(fit, REML = FALSE)), c(logLik(ref, REML = FALSE)), tolerance = 1e-6)
    expect_identical(as.integer(attr(logLik(fit), "df")), as.integer(attr(logLik(ref), "df")))
    own <- ranef.gp_fit(fit)
    for (g in names(own)) {
      expect_equal(as.matrix(own[[g]]), as.matrix(lme4::ranef(ref)[[g]][rownames(own[[g]]), , drop = FALSE]),
                   tolerance = 10 * tolerance)
    }
    fit
  }
  same(sets$sleepstudy, Reaction ~ (Days | Subject), ~ Days, Reaction ~ Days + (Days | Subject))
  same(sets$sleepstudy, Reaction ~ (Days || Subject), ~ Days, Reaction ~ Days + (Days || Subject))
  same(sets$Penicillin, diameter ~ (1 | plate) + (1 | sample), ~ 1, diameter ~ (1 | plate) + (1 | sample))
  same(sets$Pastes, strength ~ (1 | batch / cask), ~ 1, strength ~ (1 | batch / cask))
  skip_if_not_installed("nlme")
  teeth <- as.data.frame(nlme::Orthodont)
  # The log likelihood of lme4's fit is 2e-8 below that of pfdtc, and its sds have relative errors of 1.4e-4.
  same(teeth, distance ~ (age | Subject), ~ age + Sex, distance ~ age + Sex + (age | Subject), 3e-4)
  ref <- nlme::lme(distance ~ age + Sex, random = ~ age | Subject, teeth,
                   control = nlme::lmeControl(opt = "optim", tolerance = 1e-12, msTol = 1e-14))
  fit <- pfdtc(distance ~ (age | Subject), teeth, mean = ~ age + Sex)
  expect_equal(c(attr(VarCorr.gp_fit(fit)[[1]], "stddev"), sigma(fit)),
               as.double(nlme::VarCorr(ref)[, "StdDev"]), tolerance = 5e-6, ignore_attr = TRUE)
  ref <- nlme::lme(distance ~ age, random = ~ 1 | Subject, teeth)
  fit <- pfdtc(distance ~ (1 | Subject), teeth, mean = ~ age)
  expect_equal(c(sqrt(c(VarCorr.gp_fit(fit)[[1]])), sigma(fit)), unname(as.double(nlme::VarCorr(ref)[, "StdDev"])),
               tolerance = 1e-4)
  expect_equal(fixef.gp_fit(fit), nlme::fixef(ref), tolerance = 1e-4)
})

test_that("with a family the constant is integrated out, where glmer() maximises over it", {
  skip_if_not_installed("lme4")
  cows <- lme4::cbpp
  formula <- cbind(incidence, size - incidence) ~ (1 | herd)
  fit <- pfdtc(formula, cows, family = binomial(), control = pfdtc_control(priors = FALSE))
  found <- attr(VarCorr.gp_fit(fit)$herd, "stddev")[[1L]]
  read <- lme4::glFormula(formula, cows, family = binomial())
  deviance <- lme4::updateGlmerDevfun(do.call(lme4::mkGlmerDevfun, read), read$reTrms)
  constants <- seq(-4, 0.5, by = 0.1) # the estimate is -2.05, its sd 0.25
  integrated <- function(sd) {
    each <- vapply(constants, function(b) deviance(c(sd, b)), 0)
    min(each) - 2 * log(sum(exp((min(each) - each) / 2)))
  }
  # The search may end 1e-3 nats below the optimum; a deviance is twice that. glmer()'s estimate is further away.
  best <- stats::optimize(integrated, c(0.3, 2))$objective
  expect_lt(integrated(found) - best, 2e-3)
  theirs <- lme4::glmer(formula, cows, family = binomial())
  expect_gt(found, 1.04 * attr(lme4::VarCorr(theirs)$herd, "stddev"))
  expect_gt(integrated(attr(lme4::VarCorr(theirs)$herd, "stddev")) - best, 1e-2)
})

test_that("an interrupt while variances are learned returns the fit with the best so far", {
  d <- with_seed(2, data.frame(g = rep(letters[1:8], each = 6), x = stats::runif(48)))
  d$y <- with_seed(3, rep(stats::rnorm(8), each = 6) + sin(4 * d$x) + stats::rnorm(48, sd = 0.3))
  fit <- function(formula) suppressWarnings(suppressMessages(pfdtc(formula, d)))
  value <- function(f) c(logLik(f))
  start <- with_interrupted("restricted_likelihood", 2, fit(y ~ (1 | g)))
  later <- with_interrupted("restricted_likelihood", 12, fit(y ~ (1 | g)))
  expect_match(later$message, "interrupt")
  expect_gt(value(later), value(start))
  expect_lte(value(later), value(fit(y ~ (1 | g))))
  smooth <- with_interrupted("integrated_likelihood", 6, fit(y ~ x + (1 | g)))
  expect_match(smooth$message, "interrupt")
  expect_true(all(is.finite(c(predict(smooth), ranef.gp_fit(smooth)$g[[1L]]))))
})

test_that("a variance on the boundary, collinear means and repeated rows are handled", {
  d <- with_seed(2, data.frame(g = rep(letters[1:8], each = 6), x = rnorm(48), y = rnorm(48)))
  d$y <- d$y - ave(d$y, d$g) # groups vary less than chance
  d$x2 <- 2 * d$x
  fit <- pfdtc(y ~ (1 | g), d, mean = ~ x + x2)
  expect_lt(attr(VarCorr.gp_fit(fit)$g, "stddev"), 0.01)
  expect_true(all(is.finite(predict(fit))))
  line <- stats::lm(y ~ x, d)
  expect_equal(unname(predict(fit, re = FALSE)), unname(fitted(line)), tolerance = 1e-3)
  # Equal rows are merged, and each row counts.
  twice <- data.frame(g = rep(letters[1:5], each = 4), y = with_seed(3, round(rep(rnorm(5), each = 4) + rnorm(20), 0)))
  fit <- pfdtc(y ~ (1 | g), twice)
  H <- function(f) outer(twice$g, twice$g, "==") * c(VarCorr.gp_fit(f)$g) + diag(f$noise, 20)
  value <- function(tau, s2) {
    ref_restricted(twice$y, cbind(rep(1, 20)), outer(twice$g, twice$g, "==") * tau + diag(s2, 20))[["reml"]]
  }
  best <- value(c(VarCorr.gp_fit(fit)$g), fit$noise)
  for (by in c(0.9, 1.1)) {
    expect_gt(value(by * c(VarCorr.gp_fit(fit)$g), fit$noise), best - 1e-6) # the search's tolerance
    expect_gt(value(c(VarCorr.gp_fit(fit)$g), by * fit$noise), best)
  }
})

test_that("the ordinary log likelihood has given variances as they are", {
  d <- with_seed(1, data.frame(g = factor(rep(1:6, 5)), y = stats::rnorm(30) + rep(stats::rnorm(6), 5)))
  dense <- function(variance, noise) {
    S <- variance * outer(d$g, d$g, "==") + diag(noise, 30)
    r <- d$y - sum(solve(S, d$y)) / sum(solve(S))
    -(30 * log(2 * pi) + as.numeric(determinant(S)$modulus) + sum(r * solve(S, r))) / 2
  }
  ml <- function(...) c(logLik(pfdtc(y ~ (1 | g), d, ...), REML = FALSE))
  expect_equal(ml(kernel = kernel_group(~ g, variance = 0.5), noise = 0.7, hyper = "fixed"), dense(0.5, 0.7))
  fit <- pfdtc(y ~ (1 | g), d, noise = 0.7, control = list(fix = "noise"))
  expect_equal(c(logLik(fit, REML = FALSE)), dense(coef(fit)[["group(g).variance"]], 0.7))
  d$y <- d$y[d$g]
  fit <- pfdtc(y ~ (1 | g), d, noise = 0)
  # With little noise, the dense solution loses digits. S has the eigenvalue `noise` 24 times and `whole` 6 times, and
  # the responses are equal within a group.
  means <- d$y[1:6]
  noise <- coef(fit)[["noise"]]
  whole <- noise + 5 * coef(fit)[["group(g).variance"]]
  exact <- -(30 * log(2 * pi) + 24 * log(noise) + 6 * log(whole) + 5 * sum((means - mean(means))^2) / whole) / 2
  rounding <- .Machine$double.eps * whole / noise # the condition number of S
  expect_equal(c(logLik(fit, REML = FALSE)), exact, tolerance = rounding)
})

test_that("`REML` is a flag for any fit", {
  fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se(10, 100), noise = 200, hyper = "fixed")
  expect_error(logLik(fit, REML = 3), "`REML`", class = "pfdtc_error_input")
  expect_identical(logLik(fit, REML = FALSE), logLik(fit))
})
