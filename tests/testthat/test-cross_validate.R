cv_fit <- function(..., n = 30, seed = 2) {
  p <- problem("matern32", n = n, d = 2, m = 6, seed = seed)
  args <- utils::modifyList(list(x = p$x, y = 5 + p$y, kernel = package_kernel(p$kernel), noise = p$noise,
                                 hyper = "fixed", control = fixed_control()), list(...))
  do.call(pfdtc, args)
}

test_that("every row is predicted once, by the posterior of the others' folds", {
  p <- problem("matern32", n = 30, d = 2, m = 6, seed = 2)
  weights <- with_seed(1, runif(30, 0.5, 2))
  weights[7] <- 0
  offset <- sin(1:30)
  fit <- cv_fit(weights = weights, offset = offset)
  folds <- rep(c("b", "a", "c"), 10)
  cv <- cross_validate(fit, folds, hyper = "held")
  expect_identical(cv$fold, c("a", "b", "c"))
  got <- attr(cv, "predictions")
  expect_identical(got$row, setdiff(1:30, 7L))
  for (id in cv$fold) {
    out <- folds == id & weights > 0
    used <- folds != id & weights > 0
    w <- weights[used]
    r <- 5 + p$y[used] - offset[used]
    centre <- sum(w * r) / sum(w)
    gp <- ref_exact(p$x[used, ], r - centre, p$kernel, p$noise, w)
    at <- p$x[out, ]
    mine <- got[got$fold == id, ]
    expect_close(mine$mean, gp$mean(at) + centre + offset[out], 1e-8)
    expect_close(mine$sd^2, ref_variance(gp, at) + p$noise / weights[out], 1e-8)
    expect_equal(mine$y, 5 + p$y[out])
  }
})

test_that("scores are those of their definitions", {
  got <- data.frame(y = c(1, -2, 0.5, 3), mean = c(0, -1, 0.6, 0), sd = c(0.5, 2, 1, 1.2))
  normal <- response_of(list())
  f <- list(mean = got$mean, var = 0 * got$sd, noise = got$sd^2)
  s <- summarise_scores(normal, score_each(normal, got["y"], f))
  expect_equal(s$rmse, sqrt(mean((got$y - got$mean)^2)))
  expect_equal(s$nlpd, -mean(dnorm(got$y, got$mean, got$sd, log = TRUE)))
  crps <- mapply(function(y, m, s) {              # the integral of (F(t) - [t >= y])^2
    integrate(function(t) pnorm(t, m, s)^2, -Inf, y, rel.tol = 1e-10)$value +
      integrate(function(t) pnorm(t, m, s, lower.tail = FALSE)^2, y, Inf, rel.tol = 1e-10)$value
  }, got$y, got$mean, got$sd)
  expect_equal(s$crps, mean(crps), tolerance = 1e-7)
  expect_identical(c(s$cover50, s$cover95), c(0.5, 0.5))
})

test_that("one fold for each row with held hyperparameters is leave-one-out, by every method", {
  p <- problem("matern32", n = 20, d = 2, m = 6, seed = 4)
  kernel <- package_kernel(p$kernel)
  same <- list(p$x, p$y, kernel = kernel, noise = p$noise, hyper = "fixed", center = FALSE, scale = FALSE)
  fits <- list(do.call(pfdtc, same), do.call(gp_exact, same),
               do.call(pfdtc, c(same, list(inducing = p$z, control = fixed_control()))),
               do.call(gp_sor, c(same, list(inducing = p$z))), do.call(gp_fitc, c(same, list(inducing = p$z))),
               do.call(gp_vfe, c(same, list(inducing = p$z, control = fixed_control()))))
  for (fit in fits) {
    cv <- attr(cross_validate(fit, folds = 20, hyper = "held"), "predictions")
    loo <- predict(fit, type = "loo", se.fit = TRUE)
    expect_close(cv$mean, unname(loo$fit), 1e-8, fit$method)
    expect_close(cv$sd, unname(loo$se.fit), 1e-8, fit$method)
  }
})

test_that("refits have the arguments of the fit", {
  data <- small_data(40)
  fit <- with_seed(1, fit_mixed(y ~ a + f, data = data, hyper = "pilot", m = 7, kernel = kernel_matern(5 / 2),
                                noise = NULL))
  folds <- rep(1:2, 20)
  cv <- with_seed(3, cross_validate(fit, folds))
  other <- with_seed(3, fit_mixed(y ~ a + f, data = data[folds == 2, ], hyper = "pilot", m = 7,
                                  kernel = kernel_matern(5 / 2), noise = NULL))
  got <- attr(cv, "predictions")
  expect_equal(got$mean[folds == 1], unname(predict(other, data[folds == 1, ])), tolerance = 1e-6)
  expect_identical(attr(cv, "hyper"), "refit")
})

test_that("fits with neighbours, subsamples and fits to a tolerance have folds, too", {
  p <- problem("matern12", n = 60, d = 2, m = 6, seed = 5)
  same <- list(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed")
  for (fit in list(do.call(pfdtc, c(same, neighbours = 60, list(inducing = p$z))),
                   do.call(gp_subsample, c(same, m = 60)))) {
    held <- with_seed(1, cross_validate(fit, 3, hyper = "held"))
    exact <- with_seed(1, cross_validate(do.call(gp_exact, same), 3, hyper = "held"))
    expect_equal(held$rmse, exact$rmse, tolerance = 1e-6)   # equals the exact posterior
  }
  by_tol <- with_seed(1, do.call(pfdtc, c(same, tol = 0.2)))
  expect_equal(attr(with_seed(1, cross_validate(by_tol, 3)), "overall")$n, 60)
})

test_that("slow folds are counted in messages, unless `progress` was set", {
  skip_if(interactive())
  fit <- function(...) {
    pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed", control = list(...))
  }
  old <- tell_progress
  at_once <- list(tell_progress = function(control, since, text) old(control, since, text, after = 0))
  heard <- capture_messages(with_replaced(at_once, cross_validate(fit(), 3)))
  expect_match(heard, "[123] of 3 folds")
  expect_length(heard, 3L)
  expect_silent(cross_validate(fit(), 3)) # it takes less than five seconds
  expect_silent(with_replaced(at_once, cross_validate(fit(progress = FALSE), 3)))
})

test_that("folds are random, reproducible, and of nearly equal size; groups stay whole", {
  fit <- cv_fit()
  sizes <- table(with_seed(1, make_folds(fit, fit$data, 7, NULL)))
  expect_identical(range(sizes), c(4L, 5L))
  expect_identical(with_seed(1, cross_validate(fit, 3, hyper = "held"))$rmse,
                   with_seed(1, cross_validate(fit, 3, hyper = "held"))$rmse)
  three <- function(seed) with_seed(seed, make_folds(fit, fit$data, 3, NULL))
  expect_false(identical(three(1), three(2)))
  group <- rep(letters[1:6], c(10, 4, 4, 4, 4, 4))
  fold <- with_seed(1, make_folds(fit, fit$data, 3, group))
  expect_true(all(tapply(fold, group, function(f) length(unique(f))) == 1))
  expect_identical(sort(unique(fold)), 1:3)
  expect_length(unique(make_folds(fit, fit$data, 10, group)), 6L)   # no more folds than groups
})

test_that("by = a formula finds its variables where the fit's are", {
  data <- small_data(20)
  data$y[3] <- NA
  data$site <- rep(1:5, 4)
  fit <- fit_mixed(y ~ a + f, data = data)
  cv <- with_seed(1, cross_validate(fit, 5, by = ~ site, hyper = "held"))
  p <- attr(cv, "predictions")
  expect_true(all(tapply(data$site[-3][p$row], p$fold, function(s) length(unique(s))) == 1))
  same <- with_seed(1, cross_validate(fit, 5, by = data$site, hyper = "held")) # includes the row that was omitted
  expect_identical(same$rmse, cv$rmse)
  crossed <- groups_by(fit, ~ site + l, 19L)
  expect_identical(length(unique(crossed)), nrow(unique(data[-3, c("site", "l")])))
  expect_input_error(cross_validate(fit, by = ~ nowhere_to_be_found), "by")
})

test_that("the result prints within 80 columns, says what was held, and is a data frame", {
  fit <- fit_cars()
  cv <- with_seed(1, cross_validate(fit, 4, hyper = "held"))
  shown <- utils::capture.output(print(cv))
  expect_true(all(nchar(shown) <= 80))
  expect_match(shown[1], "50 rows.*4 folds")
  expect_match(shown[2], "kept")
  expect_match(shown[length(shown)], "^ *all rows +50 ")
  expect_identical(attr(cv, "overall")$n, 50L)
  expect_equal(sum(cv$n), 50)
  expect_match(utils::capture.output(print(cv[1:2, ]))[1], "fold") # a part prints as a data frame
  expect_equal(attr(cv, "overall")$nlpd, sum(cv$n * cv$nlpd) / 50)
})

test_that("fits and arguments that cannot be cross-validated are refused with the reason", {
  fit <- fit_cars()
  # Without fold 1 all responses are equal.
  flat <- pfdtc(y ~ x, data.frame(x = 1:12, y = c(3, 1, 4, rep(0, 9))), kernel = kernel_se(2, 1), noise = 0.1,
                hyper = "fixed")
  expect_error(cross_validate(flat, rep(1:2, c(3, 9))), "without fold 1", class = "pfdtc_error_input")
  expect_input_error(cross_validate(fit, 1), "folds")
  expect_message(cross_validate(fit, 51, hyper = "held"), "only 50", class = "pfdtc_message_folds")
  expect_input_error(cross_validate(fit, 1:49), "folds")
  expect_input_error(cross_validate(fit, rep(1, 50)), "folds")
  expect_input_error(cross_validate(fit, by = rep("a", 50)), "`by` has a single group")
  single <- pfdtc(dist ~ speed, cars[1, ], kernel = kernel_se(1, 1), noise = 1, hyper = "fixed", scale = FALSE)
  expect_input_error(cross_validate(single), "`fit` has a single row")
  expect_input_error(cross_validate(fit, rep(1:2, 25), by = 1:50), "by")
  expect_input_error(cross_validate(fit, by = c(1, NA)), "by")
  expect_input_error(cross_validate(fit, by = rep(1, 50)), "by")
  expect_input_error(cross_validate(fit_cars(keep_data = FALSE)), "keep_data")
  fit$asked <- NULL
  expect_input_error(cross_validate(fit), "fit")
  expect_s3_class(cross_validate(fit, 2, hyper = "held"), "pfdtc_cv")
})

test_that("a fold without which nothing can be fitted is named", {
  data <- data.frame(x = 1:8, y = c(1, rep(0, 7)))
  fit <- pfdtc(y ~ x, data, kernel = kernel_se(2, 1), noise = 0.1, hyper = "fixed")
  expect_error(cross_validate(fit, by = rep(1:2, c(1, 7))), "scale",
               class = "pfdtc_error_input")
})

test_that("a non-Gaussian likelihood prints its scores, and the CRPS of counts is that of each row", {
  d <- data.frame(x = seq(0, 3, length.out = 30))
  d$n <- with_seed(1, stats::rpois(30, exp(1 + sin(2 * d$x))))
  fit <- pfdtc(n ~ x, d, family = poisson(), kernel = kernel_se(0.7, 1), hyper = "fixed")
  cv <- cross_validate(fit, rep(1:3, 10), hyper = "held")
  expect_s3_class(cv, "pfdtc_cv")
  expect_match(utils::capture.output(print(cv))[1], "30 rows, 3 folds")
  p <- attr(cv, "predictions")
  # Compute the CRPS of each row of a fold by a sum over counts up to 200, for a fit without the fold.
  one <- pfdtc(n ~ x, d[rep(1:3, 10) != 1, ], family = poisson(), kernel = kernel_se(0.7, 1), hyper = "fixed")
  rows <- which(rep(1:3, 10) == 1)
  at <- predict(one, d[rows, ], se.fit = TRUE)
  crps <- mapply(function(y, m, s) {
    f <- m + s * seq(-8, 8, by = 0.02)
    w <- stats::dnorm(seq(-8, 8, by = 0.02)) * 0.02
    cdf <- vapply(0:200, function(t) sum(w * stats::ppois(t, exp(f))), 0)
    sum((cdf - (y <= 0:200))^2)
  }, d$n[rows], at$fit, at$se.fit)
  expect_equal(cv$crps[1], mean(crps), tolerance = 1e-4)
  classes <- pfdtc(n > 3 ~ x, d, family = binomial(), kernel = kernel_se(0.7, 1), hyper = "fixed")
  shown <- utils::capture.output(print(cross_validate(classes, rep(1:3, 10), hyper = "held")))
  expect_match(shown, "Brier score +Accuracy", all = FALSE)
  expect_no_match(paste(shown, collapse = ""), "class number")
  expect_no_match(paste(shown, collapse = ""), "NA")
})

test_that("misspelt arguments are refused with the nearest one", {
  expect_input_error(cross_validate(fit_cars(), foldz = 3), "`folds`")
  expect_input_error(pfdtc_control(maxiter = 3), "`maxit`")
  expect_input_error(pf_objective(fit_cars()), "inducing points")
})

test_that("ordered classes have Brier score and accuracy, and tables of counts a message", {
  d <- with_seed(1, data.frame(x = runif(60)))
  d$y <- factor(cut(d$x + with_seed(2, rnorm(60, sd = 0.2)), c(-Inf, 0.3, 0.7, Inf), c("a", "b", "c")), ordered = TRUE)
  fit <- pfdtc(y ~ x, d, family = ordinal(), kernel = kernel_se(0.5, 4), hyper = "fixed")
  cv <- with_seed(1, cross_validate(fit, folds = 3, hyper = "held"))
  expect_true(all(c("brier", "accuracy") %in% names(cv)))
  expect_output(print(cv), "RMSE: of the class number")
  trials <- pfdtc(cbind(as.integer(y), 5) ~ x, d, family = binomial(), kernel = kernel_se(0.5, 4), hyper = "fixed")
  expect_no_match(utils::capture.output(print(cross_validate(trials, 2, hyper = "held"))), "class number")
  p <- predict(fit, type = "response")
  latent <- predict(fit, se.fit = TRUE)
  each <- score_each(response_of(fit), list(y = as.integer(d$y)), list(mean = latent$fit, var = latent$se.fit^2))
  brier <- rowSums((outer(as.integer(d$y), 1:3, "==") - p)^2)
  expect_equal(each$error, unname(brier), tolerance = 1e-8)
  expect_equal(each$right, unname(max.col(p, "first") == as.integer(d$y)))
  cells <- expand.grid(y = c("a", "b", "c"), x = c(0, 1, 2, 3))
  cells$n <- c(9, 3, 1, 5, 5, 2, 2, 6, 4, 1, 3, 9)
  counted <- pfdtc(y ~ x, cells, weights = n, kernel = kernel_se(2, 4), hyper = "fixed")
  expect_message(with_seed(1, cross_validate(counted, folds = 3, hyper = "held")), "by = ~ x",
                 class = "pfdtc_message_equal_inputs")
  expect_null(summary(counted)$scores_loo)
  expect_false("Leave-one-out" %in% report(counted)$table$what)
  expect_no_message(with_seed(1, cross_validate(counted, folds = 2, by = ~x, hyper = "held")),
                    class = "pfdtc_message_equal_inputs")
})

test_that("the RMSE is known in folds that choose another transform than the fit", {
  fit <- pfdtc(dist ~ speed, cars, transform = "auto") # chooses a transform, which fold 1 does not
  found <- cross_validate(fit, folds = rep(1:2, 25))
  expect_false(anyNA(found$rmse))
  each <- attr(found, "predictions")
  expect_equal(attr(found, "overall")$rmse, sqrt(mean((cars$dist[each$row] - each$mean)^2)))
})
