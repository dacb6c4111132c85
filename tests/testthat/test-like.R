# Tests `like`, which copies the model of a fit, and `plain`, the model of earlier versions, in all functions that fit.
uneven_data <- function(n = 80) {
  with_seed(4, {
    d <- data.frame(a = stats::runif(n, 0, 6), b = stats::rnorm(n), w = stats::runif(n, 0.5, 2))
    d$y <- exp(1 + sin(d$a) + exp(0.3 * d$a - 2) * stats::rnorm(n))
    d
  })
}

test_that("like = fit is the exact posterior of the fit's model, whatever that is", {
  d <- uneven_data()
  new <- data.frame(a = c(-1, 1, 3, 8), b = 0)
  kernel <- kernel_matern(3 / 2)
  models <- list(
    list(transform = "auto"),
    list(transform = "log", noise = ~ a, mean = ~ a, kernel = kernel),
    list(transform = "yeojohnson", noise = ~ smooth(a), kernel = kernel, weights = quote(w), center = FALSE),
    list(noise = 0.3, kernel = kernel_se(1, 1), hyper = "fixed", scale = FALSE))
  for (model in models) {
    fit <- with_seed(1, do.call(pfdtc, c(list(y ~ a + b, quote(d)), model)))
    exact <- do.call(gp_exact, c(list(y ~ a + b, quote(d), like = fit), model["weights"][!is.null(model$weights)]))
    expect_identical(fit$posterior, "exact")
    for (type in c("mean", "latent", "response")) {
      expect_equal(predict(exact, new, type = type, se.fit = TRUE), predict(fit, new, type = type, se.fit = TRUE),
                   tolerance = 1e-8)
    }
    expect_equal(fitted(exact), fitted(fit), tolerance = 1e-8)
    expect_equal(exact$evidence, fit$evidence, tolerance = 1e-8)
    expect_identical(exact$transform, fit$transform)
    expect_identical(exact$df - fit$df <= 0, TRUE)
    expect_lt(kl_divergence(fit, exact), 1e-6)
  }
})

test_that("every function that fits takes the model, and the fits can be compared", {
  d <- uneven_data()
  fit <- with_seed(1, pfdtc(y ~ a + b, d, transform = "log", noise = ~ a, kernel = kernel_se()))
  exact <- gp_exact(y ~ a + b, d, like = fit)
  fits <- lapply(list(pfdtc = pfdtc, gp_vfe = gp_vfe, gp_dtc = gp_dtc, gp_sor = gp_sor, gp_fitc = gp_fitc,
                      gp_subsample = gp_subsample), function(f) f(y ~ a + b, d, like = fit, m = 30))
  compared <- compare_fits(fits, exact, d[1:10, ], certify = FALSE)
  expect_true(all(is.finite(compared$rmse_mean)))
  expect_lt(compared$rmse_mean[1L], 0.05 * sd(predict(exact, type = "latent")))
  for (one in fits) expect_identical(one$transform, fit$transform)
  expect_s3_class(plot_fits(fits[1:2], exact = exact, newdata = d[1:5, ]), "data.frame")
  expect_equal(gp_vfe(as.matrix(d[c("a", "b")]), d$y, m = 30, like = fit)$evidence, fits$gp_vfe$evidence)
  other <- gp_exact(y ~ a + b, d, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
  expect_error(kl_divergence(fit, other), "like", class = "pfdtc_error_input")
})

test_that("arguments that `like` contains are refused with it, and `like` must have Gaussian noise", {
  d <- uneven_data(40)
  fit <- pfdtc(y ~ a, d, kernel = kernel_se(1, 1), noise = 0.2, hyper = "fixed", transform = "log")
  for (beside in list(list(kernel = kernel_se()), list(noise = 1), list(transform = "log"), list(hyper = "evidence"),
                      list(plain = TRUE), list(family = poisson()))) {
    expect_error(do.call(pfdtc, c(list(y ~ a, d, like = fit), beside)), names(beside), class = "pfdtc_error_input")
  }
  expect_error(pfdtc(y ~ a, d, like = 3), "like", class = "pfdtc_error_input")
  counts <- pfdtc(round(y) ~ a, d, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed")
  expect_error(pfdtc(y ~ a, d, like = counts), "like", class = "pfdtc_error_input")
  uneven <- pfdtc(y ~ a, d, noise = ~ a, kernel = kernel_se())
  expect_error(pfdtc(y ~ a, in_blocks(d), like = uneven), "like", class = "pfdtc_error_input")
})

test_that("plain = TRUE is the response as given with constant noise", {
  d <- uneven_data(60)
  plain <- with_seed(1, pfdtc(y ~ a, d, plain = TRUE, kernel = kernel_se()))
  same <- with_seed(1, pfdtc(y ~ a, d, transform = "none", noise = ~ 1, kernel = kernel_se()))
  expect_equal(coef(plain), coef(same))
  expect_null(plain$transform)
  expect_null(plain$noise_trend)
  expect_error(pfdtc(y ~ a, d, plain = TRUE, transform = "log"), "plain", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d, plain = TRUE, noise = ~ a), "plain", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d, plain = 1), "plain", class = "pfdtc_error_input")
  few <- pfdtc(y ~ a, d, transform = "auto", m = 10, kernel = kernel_se())
  expect_match(few$because[["response"]], "`m` was given", fixed = TRUE)
})

test_that("`like` refuses fits of other inputs and of families, with the reason", {
  logged <- gp_exact(mpg ~ log(wt), mtcars, kernel = kernel_se(1, 30), hyper = "fixed", noise = 4)
  expect_error(pfdtc(mpg ~ wt, mtcars, like = logged), "log(wt)", fixed = TRUE, class = "pfdtc_error_input")
  expect_s3_class(pfdtc(mpg ~ log(wt), mtcars, like = logged), "gp_fit")
  binary <- pfdtc(am ~ wt, mtcars, family = binomial(), kernel = kernel_se(1, 1), hyper = "fixed")
  expect_error(pfdtc(am ~ wt, mtcars, family = binomial(), like = binary), "Gaussian", class = "pfdtc_error_input")
})

test_that("`like` with varying noise refuses data without its inputs", {
  d <- uneven_data(60)
  fit <- pfdtc(y ~ a + b, d, transform = "none", noise = ~ b, kernel = kernel_se())
  expect_input_error(pfdtc(y ~ a, d, like = fit), "`like` has the input `b`, which the data do not have.")
  fit <- pfdtc(as.matrix(d[c("a", "b")]), d$y, transform = "none", noise = ~ b, kernel = kernel_se())
  one <- unname(as.matrix(d["a"]))
  expect_input_error(pfdtc(one, d$y, like = fit), "`like` has input 2, but the data have 1 input.")
})

test_that("the kernel and the noise of a fit find their inputs by name in data with other places for them", {
  d <- transform(uneven_data(), z = seq_along(a), g = factor(rep_len(c("u", "v", "w"), length(a))))
  same <- function(formula, other, ...) {
    fit <- with_seed(1, suppressMessages(pfdtc(formula, d, ...)))
    exact <- suppressMessages(gp_exact(other, d, like = fit))
    expect_equal(predict(exact, d, se.fit = TRUE), predict(fit, d, se.fit = TRUE), tolerance = 1e-10)
    fit
  }
  se <- same(y ~ a + b, y ~ b + a, kernel = kernel_se())
  same(y ~ a + b, y ~ z + b + a, transform = "log", noise = ~ smooth(a), mean = ~ a, kernel = kernel_matern(3 / 2))
  sum <- same(y ~ a + g + b, y ~ b + g + a, transform = "none",
              kernel = kernel_se(inputs = ~ a) * kernel_categorical(inputs = ~ g) + kernel_linear(inputs = ~ b))
  same(y ~ a + b + (1 + a | g), y ~ b + a, transform = "log")
  levels <- same(y ~ a + g + b, y ~ b + g + a, transform = "none") # columns of g share a lengthscale
  one <- same(y ~ a + b, y ~ b + a, transform = "none", kernel = kernel_se(inputs = ~ a, isotropic = TRUE))
  before <- replace(se, "kernel", list(replace(se$kernel, "columns", NULL))) # of an earlier version
  for (fit in list(se, sum, levels, one, before)) {
    other <- gp_exact(y ~ z + b + g + a, d, kernel = fit$kernel, noise = fit$noise, hyper = "fixed",
                      transform = fit$transform)
    expect_equal(fitted(other), fitted(fit), tolerance = 1e-10)
  }
  expect_equal(kernel_matrix(se$kernel, d[c("b", "a")]), kernel_matrix(se$kernel, d[c("a", "b")]), tolerance = 1e-14)
  renamed <- stats::setNames(d[c("a", "b")], c("u", "v")) # columns with other names are found by position
  expect_equal(kernel_matrix(se$kernel, renamed), kernel_matrix(se$kernel, d[c("a", "b")]), ignore_attr = TRUE)
  points <- with_seed(1, pfdtc(y ~ a + b, d, m = 10, kernel = kernel_se(), transform = "log"))
  again <- pfdtc(y ~ b + a, d, inducing = points, hyper = "fixed", transform = "log", control = list(maxit = 0))
  expect_equal(fitted(again), fitted(points), tolerance = 1e-10)
  # Without column names, columns are found by position.
  x <- as.matrix(d[c("b", "a")])
  named <- with_seed(1, pfdtc(`colnames<-`(x, c("x2", "x1")), d$y, noise = ~ x1, kernel = kernel_se()))
  expect_equal(fitted(gp_exact(unname(x), d$y, like = named)), fitted(named), tolerance = 1e-10)
})

test_that("hyperparameters of a fit with another transform are no start values", {
  d <- uneven_data(40)
  logged <- with_seed(1, pfdtc(y ~ a, d, m = 10, transform = "log", kernel = kernel_se()))
  plain <- function(...) with_seed(1, pfdtc(y ~ a, d, kernel = kernel_se(), control = list(maxit = 0), ...))
  expect_identical(coef(plain(inducing = logged)), coef(plain(inducing = logged$inducing)))
  expect_input_error(pfdtc(y ~ a, d, inducing = logged, hyper = "fixed"), "kernel")
})

test_that("`like` with a family is refused with two ways that work", {
  d <- with_seed(4, data.frame(a = stats::runif(200, -2, 2)))
  d$y <- replace(sin(2 * d$a) + with_seed(5, 0.1 * stats::rnorm(200)), 17, 40)
  d$class <- factor(rep_len(c("u", "v", "w"), 200))
  f <- with_seed(2, suppressMessages(pfdtc(y ~ a, d, transform = "auto", kernel = kernel_se())))
  expect_identical(f$likelihood$name, "student")
  said <- tryCatch(gp_exact(y ~ a, d, like = f), pfdtc_error_input = conditionMessage)
  expect_match(said, "Gaussian noise, as update(f, noise = ~ 1) has.", fixed = TRUE)
  expect_identical(gp_exact(y ~ a, d, like = update(f, noise = ~ 1))$posterior, "exact")
  expect_match(said, "pfdtc() with family = family(f), center = f$center, kernel = f$kernel and hyper = \"fixed\"",
               fixed = TRUE)
  classes <- pfdtc(class ~ a, d, family = multinomial(), kernel = kernel_se(1, 1), hyper = "fixed")
  for (f in list(f, classes)) {
    again <- pfdtc(stats::formula(f), d, family = stats::family(f), center = f$center, kernel = f$kernel,
                   hyper = "fixed")
    expect_true(same_model(again, f))
    expect_equal(predict(again, d), predict(f, d), tolerance = 1e-8)
    expect_input_error(gp_vfe(stats::formula(f), d, like = f), "pfdtc() with family = family(f)")
  }
  expect_no_match(tryCatch(gp_exact(class ~ a, d, like = classes), pfdtc_error_input = conditionMessage), "noise = ~ 1")
  expect_input_error(pfdtc(class ~ a, d, family = multinomial(), center = c(1, 2)), "`center`")
})
