# Tests the measures of compare_fits() by their definitions.

columns <- c("method", "m", "objective", "rmse_mean", "rmse_sd", "kl", "kl_marginal", "rmse_pred", "nlpd", "coverage",
             "certified_mean_error", "seconds", "evaluations", "pf_divergence")

rms <- function(e) sqrt(mean(e^2))

test_that("every column of compare_fits() agrees with its definition", {
  p <- problem("matern52", n = 25, m = 5, weighted = TRUE, seed = 3)
  new <- with_seed(4, spread_points(40, 2))
  y <- sin(new[, 1]) + 0.3 * rowSums(new) + with_seed(5, stats::rnorm(40, sd = 0.5))
  y[c(2, 3)] <- y[c(2, 3)] + 5                               # outside of their intervals
  fits <- sapply(all_methods, fit_by, p, simplify = FALSE)
  fits$pfdtc <- fit_by("pfdtc", p, control = pfdtc_control(maxit = 5, progress = FALSE))
  exact <- fits$gp_exact
  table <- compare_fits(fits, exact, new, y)
  expect_named(table, columns)
  expect_identical(table$method, all_methods)
  expect_identical(table$m, c(5L, 5L, 5L, 5L, 5L, 5L, NA))
  e <- predict(exact, new, se.fit = TRUE)
  for (i in seq_along(fits)) {
    fit <- fits[[i]]
    row <- table[i, ]
    a <- predict(fit, new, se.fit = TRUE, type = "response")
    f <- predict(fit, new, se.fit = TRUE)
    band <- suppressWarnings(predict(fit, new, interval = "prediction"), classes = "pfdtc_warning_weights")
    expect_equal(row$rmse_mean, rms(f$fit - e$fit))
    expect_equal(row$rmse_sd, rms(f$se.fit - e$se.fit))
    expect_equal(row$kl, kl_divergence(fit, exact))
    expect_equal(row$kl_marginal, kl_divergence(fit, exact, new))
    expect_equal(row$rmse_pred, rms(y - a$fit))
    expect_equal(row$nlpd, -mean(stats::dnorm(y, a$fit, a$se.fit, log = TRUE)))
    expect_equal(row$coverage, mean(y >= band[, "lwr"] & y <= band[, "upr"]))
    expect_lt(row$coverage, 1)
    expect_equal(row$seconds, sum(fit$seconds))
    expect_equal(row$evaluations, sum(fit$evaluations))
    expect_equal(row$objective, fit$objective)
    dtc <- fit$method %in% c("pfdtc", "gp_vfe", "gp_dtc")
    expect_equal(row$pf_divergence, if (dtc) pf_divergence(fit, exact) else NA_real_)
  }
  expect_identical(table["gp_sor" == table$method, "kl"], Inf)
  for (i in seq_along(fits)) {
    worst <- max(abs(predict(fits[[i]], new) - e$fit))
    expect_gte(table$certified_mean_error[i], worst)
    expect_lte(table$certified_mean_error[i], 1.5 * worst + 1e-9)  # with 25 rows the reference is almost exact
  }
  expect_identical(data.frame(table[7, c("rmse_mean", "rmse_sd", "kl", "kl_marginal")]),
                   data.frame(rmse_mean = 0, rmse_sd = 0, kl = 0, kl_marginal = 0, row.names = 7L))
})

test_that("a column that needs an absent argument is NA", {
  p <- problem(n = 15)
  fit <- fit_by("gp_vfe", p)
  alone <- compare_fits(fit, newdata = p$new)
  expect_named(alone, columns)
  expect_identical(alone$method, "gp_vfe")
  absent <- c("rmse_mean", "rmse_sd", "kl", "kl_marginal", "rmse_pred", "nlpd", "coverage", "pf_divergence")
  expect_true(all(is.na(alone[absent])))
  with_y <- compare_fits(list(a = fit, fit), newdata = p$new, y = 1:6)
  expect_identical(with_y$method, c("a", "gp_vfe"))
  expect_false(anyNA(with_y[c("rmse_pred", "nlpd", "coverage")]))
  exact <- fit_by("gp_exact", p)
  expect_false(anyNA(compare_fits(fit, exact, p$new)[c("rmse_mean", "kl", "pf_divergence")]))
  expect_true(is.na(compare_fits(fit, exact, p$new, pf = FALSE)$pf_divergence))
})

test_that("certified_mean_error is the maximum of certify(), by one reference for fits of the same model", {
  p <- problem("matern32", n = 60, m = 5, seed = 3)
  fits <- list(fit_by("gp_vfe", p), fit_by("gp_fitc", p, inducing = p$x[1:9, ]), fit_by("gp_exact", p))
  new <- rbind(p$new, NA)
  certified <- function(fit, reference, effort = "reference") {
    max(with_fixed_seed(certify(fit, new, effort, reference = reference))$mean_error, na.rm = TRUE)
  }
  shared <- with_fixed_seed(reference(fits[[2]]))                         # a reference for the fit with most points
  set.seed(3)
  before <- .Random.seed
  expect_silent(table <- compare_fits(fits, newdata = new))
  expect_identical(.Random.seed, before)
  expect_identical(table$certified_mean_error, vapply(fits, certified, 0, shared))
  expect_lt(table$certified_mean_error[3], 1e-8)

  # A fit with other hyperparameters has another exact GP, and so its own reference.
  other <- fit_by("gp_dtc", utils::modifyList(p, list(noise = 1)))
  mixed <- compare_fits(c(fits, list(other)), newdata = new)$certified_mean_error
  expect_identical(mixed, c(table$certified_mean_error, certified(other, with_fixed_seed(reference(other)))))

  # An existing reference of any of the fits is used, and then data are not needed.
  fits[[1]]$reference <- with_seed(8, reference(fits[[1]], 40))
  carried <- compare_fits(fits, newdata = new)$certified_mean_error
  expect_identical(carried, vapply(fits, certified, 0, fits[[1]]$reference))
  slim <- replace(fits[[2]], "data", list(NULL))
  expect_identical(compare_fits(list(fits[[1]], slim), newdata = new)$certified_mean_error,
                   c(carried[1], certified(slim, fits[[1]]$reference)))
  expect_identical(compare_fits(slim, newdata = new)$certified_mean_error, NA_real_)

  for (effort in c("fast", "tight")) {
    expect_identical(compare_fits(fits[1], newdata = new, certify = effort)$certified_mean_error,
                     certified(fits[[1]], fits[[1]]$reference, effort))
    expect_identical(compare_fits(slim, newdata = new, certify = effort)$certified_mean_error, NA_real_)
  }
  expect_identical(compare_fits(fits[1], newdata = new, certify = FALSE)$certified_mean_error, NA_real_)
  expect_identical(compare_fits(fits[1], newdata = new[7, , drop = FALSE])$certified_mean_error, NA_real_)
})

test_that("formula fits take response and offset from newdata", {
  data <- cbind(cars, base = seq(-5, 5, length.out = 50))
  given <- list(kernel = kernel_se(6, 900), noise = 200, hyper = "fixed")
  exact <- do.call(gp_exact, c(list(dist ~ speed + offset(base), data), given))
  fit <- do.call(gp_dtc, c(list(dist ~ speed + offset(base), data, m = 4), given))
  new <- data[c(3, 20, 41), ]
  table <- compare_fits(fit, exact, new)
  expect_equal(table$rmse_pred, rms(new$dist - predict(fit, new)))
  expect_equal(compare_fits(fit, exact, new, y = new$dist), table)
  expect_true(is.na(compare_fits(fit, exact, new[c("speed", "base")])$nlpd))
  log_fit <- gp_dtc(log(dist) ~ speed, cars, m = 4, kernel = kernel_se(6, 1), noise = 0.2, hyper = "fixed")
  expect_equal(compare_fits(log_fit, newdata = cars)$rmse_pred, rms(log(cars$dist) - predict(log_fit, cars)))
  # One row lacks an input, and one its response.
  holes <- new
  holes$speed[1] <- NA
  holes$dist[2] <- NA
  expect_equal(compare_fits(fit, exact, holes)$rmse_pred, unname(abs(new$dist[3] - predict(fit, new[3, ]))))
  expect_equal(compare_fits(fit, exact, holes)$rmse_mean, compare_fits(fit, exact, new[2:3, ])$rmse_mean)
  # Add a fit from a matrix.
  matrix_fit <- do.call(gp_dtc, c(list(cbind(speed = cars$speed), cars$dist, m = 4, offset = data$base), given))
  both <- compare_fits(list(matrix_fit, fit), exact, new)
  expect_false(is.na(both$rmse_mean[1]))
})

test_that("fits without their data are compared by the columns that need no data", {
  p <- problem(n = 15)
  exact <- fit_by("gp_exact", p, keep_data = FALSE)
  full <- compare_fits(sapply(all_methods, fit_by, p, simplify = FALSE), exact, p$new, y = 1:6)
  slim <- compare_fits(sapply(all_methods, fit_by, p, keep_data = FALSE, simplify = FALSE), exact, p$new, y = 1:6)
  expect_equal(slim[c("rmse_mean", "kl_marginal", "nlpd")], full[c("rmse_mean", "kl_marginal", "nlpd")])
  lost <- slim$method %in% c("gp_fitc", "gp_subsample")
  expect_true(all(is.na(slim$kl[lost])))
  expect_equal(slim$kl[!lost], full$kl[!lost])
  expect_true(all(is.na(slim$pf_divergence)))
})

test_that("arguments that cannot be compared are refused by name", {
  p <- problem()
  fit <- fit_by("gp_dtc", p)
  expect_input_error(compare_fits(cars, newdata = cars), "fits")
  expect_input_error(compare_fits(list(), newdata = cars), "fits")
  expect_input_error(compare_fits(list(fit, 3), newdata = p$new), "fits[[2]]")
  expect_input_error(compare_fits(fit), "newdata")
  expect_input_error(compare_fits(fit, newdata = p$new, y = 1:3), "y")
  expect_input_error(compare_fits(fit, fit, p$new), "exact")
  expect_input_error(compare_fits(fit, newdata = p$new, pf = 3), "pf")
  expect_input_error(compare_fits(fit, newdata = p$new, certify = "most"), "certify")
  expect_input_error(compare_fits(fit, newdata = p$new, certify = NA), "certify")
  expect_input_error(compare_fits(fit, newdata = p$new, certifi = 1), "certify")
  other <- fit_by("gp_exact", utils::modifyList(p, list(noise = 1)))
  expect_input_error(compare_fits(list(fit), other, p$new), "hyperparameters")
})

test_that("fits outside a list, and rows in the place of `exact`, raise errors that name the right argument", {
  p <- problem()
  fit <- fit_by("gp_dtc", p)
  expect_input_error(compare_fits(pF = fit, VFE = fit, newdata = p$new), "list(pF")
  expect_input_error(compare_fits(fit, fit, newdata = p$new), "list(")
  expect_input_error(compare_fits(fit, b = fit, newdata = p$new), "list(b")
  expect_input_error(compare_fits(), "fits")
  expect_input_error(compare_fits(list(fit), p$new), "newdata")
  expect_input_error(compare_fits(list(fit), as.data.frame(p$new)), "newdata")
  expect_input_error(compare_fits(list(fit), "exact", p$new), "exact")
  expect_input_error(kl_divergence(fit), "gp_exact()")
  expect_input_error(kl_divergence(), "fit")
  expect_input_error(pf_divergence(), "fit")
})

test_that("classes and counts are compared by densities, and with the exact GP's Laplace posterior", {
  d <- transform(mtcars, manual = c("no", "yes")[1 + am])
  of <- function(formula, ...) pfdtc(formula, d, kernel = kernel_se(c(1, 80), 2), hyper = "fixed", center = 0.5, ...)
  few <- of(manual ~ wt + hp, family = binomial(), m = 4)
  all <- of(manual ~ wt + hp, family = binomial())
  expect_identical(coef(few)[["mean"]], 0.5)
  table <- compare_fits(list(few = few, all = all), all, d)
  expect_equal(table$rmse_mean, c(sqrt(mean((predict(few) - predict(all))^2)), 0))
  expect_true(all(table$rmse_mean <= table$certified_mean_error + 1e-9))
  p <- fitted(few)
  expect_equal(table$nlpd[1], -mean(log(ifelse(d$am == 1, p, 1 - p))))
  expect_equal(table$rmse_pred[1], sqrt(mean((d$am - p)^2)))
  expect_true(all(is.na(table[c("kl", "coverage", "pf_divergence")])))
  one <- of(carb ~ wt + hp, family = poisson())
  counts <- list(poisson = one, gaussian = pfdtc(carb ~ wt + hp, d, kernel = one$kernel, noise = 1, hyper = "fixed"))
  expect_equal(compare_fits(counts, newdata = d, certify = FALSE)$nlpd[2],
               -mean(predict(counts$gaussian, d, type = "density")))
  expect_input_error(compare_fits(few, of(manual ~ wt + hp, family = binomial("probit")), d), "likelihood")
  other <- pfdtc(manual ~ wt + hp, d, family = binomial(), kernel = few$kernel, hyper = "fixed", center = 0.6)
  expect_input_error(compare_fits(few, other, d), "they differ in constant mean. Fit `exact` to these data with family")
  expect_input_error(compare_fits(list(all), few, d), "it is a fit by pfdtc() with m = 4.")
})

test_that("a comparison prints a row for each fit, without columns that are empty", {
  fit <- fit_cars(m = 4)
  table <- compare_fits(list(one = fit, two = fit_cars(m = 6)), newdata = cars[1:5, ], certify = FALSE)
  expect_s3_class(table, c("pfdtc_comparison", "data.frame"), exact = TRUE)
  lines <- utils::capture.output(shown <- withVisible(print(table)))
  expect_identical(shown, list(value = table, visible = FALSE))
  expect_length(lines, 9L) # a block for fits and one for predictions
  expect_match(lines[2], "method +m +objective")
  expect_match(lines[3], "^one +4 ")
  expect_match(lines[7], "method +rmse_pred +nlpd")
  expect_no_match(paste(lines, collapse = ""), "kl|certified")
  expect_match(lines[8], sprintf("^one .*%s", format(signif(table$nlpd[1], 3))))
  expect_output(print(table[1, c("method", "nlpd")]), "method +nlpd\none")
  expect_output(print(table[c("nlpd", "m")]), "m\n4.*\nnlpd\n")
  expect_output(print(table["method"]), "one\ntwo")
})

test_that("a fit of several classes has its log density and certified error in the table", {
  fit <- with_seed(1, pfdtc(Species ~ Petal.Length, iris, kernel = kernel_se(1, 4), hyper = "fixed",
                            family = multinomial()))
  table <- compare_fits(fit, newdata = iris[c(1, 70, 140), ])
  expect_equal(table$nlpd, -mean(predict(fit, iris[c(1, 70, 140), ], type = "density")))
  expect_lt(table$certified_mean_error, 1e-3)
})

test_that("log odds of a fit of several classes are compared with those of a fit with all rows", {
  of <- function(m) {
    pfdtc(Species ~ Petal.Length + Sepal.Width, iris, kernel = kernel_se(1, 4), hyper = "fixed", center = c(0, 0, 0),
          family = multinomial(), m = m)
  }
  new <- iris[c(1, 70, 100, 140), ]
  all <- of(150)
  few <- of(6)
  table <- compare_fits(list(all, few), all, new)
  expect_equal(unlist(table[1, c("rmse_mean", "rmse_sd", "kl_marginal")], use.names = FALSE), numeric(3))
  a <- predict(few, new, se.fit = TRUE)
  b <- predict(all, new, se.fit = TRUE)
  expect_equal(table$rmse_mean[2], sqrt(mean((a$fit - b$fit)^2)))
  expect_equal(table$rmse_sd[2], sqrt(mean((a$se.fit - b$se.fit)^2)))
  ratio <- (a$se.fit / b$se.fit)^2
  expect_equal(table$kl_marginal[2], mean((ratio - 1 - log(ratio) + (a$fit - b$fit)^2 / b$se.fit^2) / 2))
  expect_gte(table$certified_mean_error[2], table$rmse_mean[2])
})

test_that("the error of fits with other likelihoods advises a call that is possible for the other fit", {
  plain <- gp_dtc(am ~ wt, mtcars, m = 5, kernel = kernel_se(2, 1), noise = 0.1, hyper = "fixed")
  classes <- pfdtc(am ~ wt, mtcars, family = binomial(), kernel = kernel_se(2, 1), hyper = "fixed")
  exact <- gp_exact(am ~ wt, mtcars, kernel = kernel_se(2, 1), noise = 0.1, hyper = "fixed")
  advice <- function(...) conditionMessage(expect_error(compare_fits(...), class = "pfdtc_error_input"))
  # A Gaussian fit has no coef()[["mean"]].
  expect_match(advice(plain, exact = classes), "Make `exact` with like = fit and the same `center`.", fixed = TRUE)
  expect_match(advice(plain, exact = classes), "Fits to compare go in one list: compare_fits(list(", fixed = TRUE)
  expect_match(advice(classes, exact = exact), "family = family(f)", fixed = TRUE)
})

test_that("each fit is scored on its own response, such as a logarithm", {
  fit <- function(formula) pfdtc(formula, cars, kernel = kernel_se(5, 1), noise = 0.5, hyper = "fixed", plain = TRUE)
  fits <- list(fit(dist ~ speed), fit(log(dist) ~ speed), fit_by("gp_exact", list(
    x = as.matrix(cars["speed"]), y = cars$dist, kernel = kernel_se(5, 1), noise = 0.5)))
  scores <- c("rmse_pred", "nlpd", "coverage")
  alone <- function(fit, ...) compare_fits(fit, newdata = cars, certify = FALSE, ...)[scores]
  together <- compare_fits(fits, newdata = cars, certify = FALSE)[scores]
  expect_equal(together[1:2, ], rbind(alone(fits[[1]]), alone(fits[[2]])))
  expect_equal(together[[2, "rmse_pred"]], sqrt(mean((log(cars$dist) - predict(fits[[2]]))^2)))
  counts <- pfdtc(dist ~ speed, cars, family = poisson(), kernel = kernel_se(5, 1), hyper = "fixed")
  expect_true(is.na(compare_fits(list(counts, fits[[3]]), newdata = cars, certify = FALSE)[[2, "rmse_pred"]]))
})

test_that("responses `y` replace those of `newdata` for other likelihoods, too", {
  d <- data.frame(x = 1:20 / 4, n = rep(0:4, 4))
  fit <- pfdtc(n ~ x, d, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed")
  score <- function(data, ...) compare_fits(fit, newdata = data, certify = FALSE, ...)$rmse_pred
  expect_equal(score(d, y = d$n + 3), score(transform(d, n = n + 3)))
  expect_equal(score(d["x"], y = d$n), score(d))
})

test_that("rows without trials are not scored and do not count, given as shares or as pairs", {
  d <- data.frame(x = 1:12 / 4, n = rep(c(4, 0, 6), 4))
  d$s <- with_seed(1, stats::rbinom(12, d$n, 0.4))
  some <- d[d$n > 0, ]
  of <- function(formula, data, ...) {
    pfdtc(formula, data, ..., family = binomial(), kernel = kernel_se(1, 1), hyper = "fixed")
  }
  pairs <- of(cbind(s, n - s) ~ x, d)
  shares <- of(ifelse(n > 0, s / n, 0) ~ x, d, weights = n)
  scores <- c("rmse_pred", "nlpd", "coverage")
  want <- compare_fits(pairs, newdata = some, certify = FALSE)[scores]
  expect_equal(compare_fits(pairs, newdata = d, certify = FALSE)[scores], want)
  expect_equal(compare_fits(shares, newdata = d, certify = FALSE)[scores], want, tolerance = 1e-6)
  expect_identical(c(nobs(pairs), nobs(shares)), c(8L, 8L))
  expect_equal(unname(predict(pairs, interval = "prediction")), unname(predict(pairs, d, interval = "prediction")))
  expect_identical(unname(is.na(predict(pairs, interval = "prediction")[, "lwr"])), d$n == 0)
  expect_equal(predict(shares), predict(pairs), tolerance = 1e-6)
  fold <- rep(1:2, 6)
  expect_equal(attr(cross_validate(shares, fold), "overall")[1:4], attr(cross_validate(pairs, fold), "overall")[1:4],
               tolerance = 1e-6)
})

test_that("fits by one method have different labels", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(10, 400), noise = 200, hyper = "fixed")
  table <- compare_fits(list(fit, b = fit, fit), newdata = cars[1:3, ])
  expect_identical(table$method, c("gp_exact", "b", "gp_exact 1"))
})
