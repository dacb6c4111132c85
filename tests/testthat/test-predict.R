# Returns the dense transcription in the units of the data: f = centre + GP(0, k), y = offset + f + e.
dense_fit <- function(fit, x, y, weights = rep(1, length(y)), offset = 0) {
  used <- weights > 0
  kernel <- ref_kernel("se", unname(fit$kernel$lengthscale), fit$kernel$variance)
  ref_dtc(unname(fit$inducing), x[used, , drop = FALSE], (y - offset - fit$center)[used], kernel,
          fit$noise, weights[used], jitter = fit$jitter)
}

test_that("mean, sd and covariance are those of the DTC posterior in the units of the data", {
  p <- problem(n = 14, d = 2, m = 4, seed = 3)
  x <- p$x[c(1:14, 3, 3, 7), ]                       # rows 3 and 7 are repeated: merged
  y <- 100 + 25 * p$y[c(1:14, 1:3)]
  weights <- replace(rep(c(1, 2), length.out = 17), 5, 0)
  offset <- seq(-5, 5, length.out = 17)
  for (unit in list(c(TRUE, TRUE), c(FALSE, FALSE), c(TRUE, FALSE))) {
    fit <- pfdtc(x, y, kernel = kernel_se(c(0.9, 1.6), 900), noise = 150, hyper = "fixed",
                 inducing = p$z, aux = aux_sor(rows = 1:5), weights = weights, offset = offset,
                 center = unit[1], scale = unit[2], control = fixed_control())
    expect_false(is.null(fit$data$group))
    dense <- dense_fit(fit, x, y, weights, offset)
    new <- predict(fit, p$new, se.fit = TRUE, full_cov = TRUE)
    expect_close(unname(new$fit), fit$center + dense$mean(p$new), 1e-7)
    expect_close(unname(new$cov), dense$cov(p$new, p$new), 1e-7)
    expect_close(unname(new$se.fit), sqrt(ref_variance(dense, p$new)), 1e-7)

    # Predict the given training rows: unmerged, in order, with the row of weight 0 and with the offset.
    old <- predict(fit, se.fit = TRUE, full_cov = TRUE)
    expect_close(unname(old$fit), fit$center + offset + dense$mean(x), 1e-7)
    expect_close(unname(old$cov), dense$cov(x, x), 1e-7)
  }
})

test_that("results have the shapes of predict.lm()", {
  fit <- fit_cars()
  new <- data.frame(speed = c(5, 10, 30), row.names = c("u", "v", "w"))
  mean <- predict(fit, new)
  expect_identical(names(mean), c("u", "v", "w"))
  band <- predict(fit, new, interval = "credible")
  expect_identical(dimnames(band), list(c("u", "v", "w"), c("fit", "lwr", "upr")))
  expect_identical(band[, "fit"], mean)

  se <- predict(fit, new, se.fit = TRUE)
  expect_identical(names(se), c("fit", "se.fit"))
  expect_identical(se$fit, mean)
  expect_identical(names(se$se.fit), names(mean))
  both <- predict(fit, new, se.fit = TRUE, interval = "credible")
  expect_identical(both, list(fit = band, se.fit = se$se.fit))
  cov <- predict(fit, new, full_cov = TRUE)
  expect_identical(names(cov), c("fit", "se.fit", "cov"))
  expect_identical(dimnames(cov$cov), list(c("u", "v", "w"), c("u", "v", "w")))

  bare <- pfdtc(cbind(cars$speed), cars$dist, m = 5, kernel = kernel_se(6, 900), noise = 200,
                hyper = "fixed", control = fixed_control())
  expect_null(names(predict(bare, c(5, 10))))
  expect_length(predict(bare, matrix(0, 0, 1)), 0)
  expect_identical(dim(predict(bare, matrix(0, 0, 1), interval = "prediction")), c(0L, 3L))
})

test_that("`interval` decides the band, `type` decides se.fit, and neither changes the mean", {
  fit <- fit_cars()
  new <- data.frame(speed = c(5, 10, 30))
  f <- predict(fit, new, se.fit = TRUE, full_cov = TRUE)
  y <- predict(fit, new, se.fit = TRUE, full_cov = TRUE, type = "response")
  expect_identical(f$fit, y$fit)
  expect_equal(y$se.fit^2, f$se.fit^2 + sigma(fit)^2)
  expect_equal(diag(f$cov), f$se.fit^2)
  expect_equal(y$cov, f$cov + diag(sigma(fit)^2, 3))
  for (type in c("latent", "response")) {
    for (level in c(0.5, 0.99)) {
      z <- qnorm((1 + level) / 2)
      credible <- predict(fit, new, interval = "credible", level = level, type = type)
      expect_equal(credible[, "upr"], f$fit + z * f$se.fit)
      expect_equal(credible[, "lwr"], f$fit - z * f$se.fit)
      prediction <- predict(fit, new, interval = "prediction", level = level, type = type)
      expect_equal(prediction[, "upr"], f$fit + z * y$se.fit)
    }
  }
  expect_identical(predict(fit, new, interval = "confidence"),
                   predict(fit, new, interval = "credible"))
})

test_that("rows predict the same together, apart and in another order", {
  fit <- fit_mixed()
  new <- small_data(9, seed = 5)
  all <- predict(fit, new, se.fit = TRUE, full_cov = TRUE)
  order <- c(7, 2, 9)
  some <- predict(fit, new[order, ], se.fit = TRUE, full_cov = TRUE)
  expect_equal(some$fit, all$fit[order], tolerance = 1e-12)
  expect_equal(some$cov, all$cov[order, order], tolerance = 1e-10)
})

test_that("rows of newdata with missing values predict NA, or follow na.action", {
  fit <- fit_mixed()
  new <- small_data(4, seed = 2)
  clean <- predict(fit, new, se.fit = TRUE, full_cov = TRUE)
  new$a[2] <- NA
  new$f[4] <- NA
  holes <- predict(fit, new, se.fit = TRUE, full_cov = TRUE, interval = "credible")
  expect_identical(rownames(holes$fit), as.character(1:4))
  expect_true(all(is.na(holes$fit[c(2, 4), ])) && all(is.na(holes$se.fit[c(2, 4)])))
  expect_true(all(is.na(holes$cov[2, ])) && all(is.na(holes$cov[, 4])))
  expect_equal(holes$fit[c(1, 3), "fit"], clean$fit[c(1, 3)])
  expect_equal(holes$cov[c(1, 3), c(1, 3)], clean$cov[c(1, 3), c(1, 3)])
  expect_equal(predict(fit, new, na.action = na.omit), clean$fit[c(1, 3)])
  expect_input_error(predict(fit, new, na.action = na.fail), "newdata")
  expect_true(all(is.na(predict(fit, new[c(2, 4), ]))))
})

test_that("without newdata predict() predicts the training rows as given", {
  data <- small_data(20)
  row.names(data) <- paste0("r", 1:20)
  fit <- fit_mixed(data = data)
  expect_identical(names(predict(fit)), row.names(data))
  expect_equal(predict(fit), predict(fit, data), tolerance = 1e-12)

  data$a[c(3, 8)] <- NA
  omitted <- fit_mixed(data = data)
  excluded <- fit_mixed(data = data, na.action = na.exclude)
  expect_identical(names(predict(omitted)), row.names(data)[-c(3, 8)])
  expect_identical(names(predict(excluded)), row.names(data))
  expect_identical(unname(which(is.na(predict(excluded)))), c(3L, 8L))
  expect_identical(predict(excluded)[-c(3, 8)], predict(omitted))
  cov <- predict(excluded, full_cov = TRUE)$cov
  expect_identical(dim(cov), c(20L, 20L))
  expect_identical(cov[-c(3, 8), -c(3, 8)], predict(omitted, full_cov = TRUE)$cov)
})

test_that("offsets of new rows are added", {
  fit <- fit_mixed(y ~ a + offset(3 * b))
  new <- small_data(5, seed = 4)
  expect_equal(predict(fit, new) - predict(fit, transform(new, b = 0)), 3 * new$b,
               ignore_attr = TRUE)
})

test_that("arguments that cannot be combined are refused by name", {
  fit <- fit_cars()
  new <- data.frame(speed = 1:3)
  expect_input_error(predict(fit, new, certified = TRUE), "certified")
  expect_input_error(predict(fit, new, interval = "tolerance"), "interval")
  expect_input_error(predict(fit, new, type = "average"), "type")
  expect_input_error(predict(fit, new, type = "class"), "type")
  expect_error(predict(fit, new, type = "respones"), "Did you mean \"response\"", class = "pfdtc_error_input")
  for (h in list(6, 6L)) expect_error(predict(fit, h = h), "forecast.*newdata", class = "pfdtc_error_input")
  expect_input_error(predict(fit, new, se.fit = NA), "se.fit")
  for (level in list(0, 1, NA_real_, "a", c(0.5, 0.9))) {
    expect_input_error(predict(fit, new, level = level, interval = "credible"), "level")
  }
  expect_input_error(predict(fit, data.frame(velocity = 1)), "newdata")
  slim <- fit_cars(keep_data = FALSE)
  expect_input_error(predict(slim), "keep_data")
  expect_equal(predict(slim, new), predict(fit, new), tolerance = 1e-12)
})

test_that("a covariance matrix too large for memory is refused before it is allocated", {
  fit <- fit_cars()
  new <- data.frame(speed = seq(1, 30, length.out = 100))
  with_options(list(pfdtc.max_memory = 8 * 100^2 - 1), {
    expect_input_error(predict(fit, new, full_cov = TRUE), "pfdtc.max_memory")
  })
  with_options(list(pfdtc.max_memory = 8 * 100^2), {
    expect_identical(dim(predict(fit, new, full_cov = TRUE)$cov), c(100L, 100L))
  })
  huge <- data.frame(speed = seq(1, 30, length.out = 3e4))
  expect_input_error(predict(fit, huge, full_cov = TRUE), "pfdtc.max_memory")
})

test_that("variances are never negative", {
  x <- seq(0, 1, length.out = 15)
  fit <- pfdtc(cbind(x), sin(5 * x), kernel = kernel_se(2, 1), noise = 1e-10, hyper = "fixed",
               inducing = cbind(x), control = fixed_control())
  p <- predict(fit, cbind(seq(0, 1, length.out = 101)), se.fit = TRUE)
  expect_true(all(is.finite(p$se.fit)) && all(p$se.fit >= 0))
})

test_that("a certified interval contains that of the exact GP, and certified = TRUE requires an interval", {
  set.seed(5)
  x <- matrix(runif(80), 40)
  y <- sin(5 * x[, 1]) + x[, 2] + rnorm(40, sd = 0.1)
  exact <- gp_exact(x, y)
  new <- matrix(runif(20, -0.2, 1.2), 10)
  for (method in list(pfdtc, gp_sor, gp_subsample)) {
    fit <- method(x, y, m = 6, kernel = exact$kernel, noise = exact$noise, hyper = "fixed",
                  control = pfdtc_control(maxit = 5))
    fit$reference <- reference(fit)
    for (interval in c("credible", "prediction")) {
      wide <- predict(fit, new, interval = interval, certified = TRUE)
      inner <- predict(exact, new, interval = interval)
      expect_true(all(wide[, "lwr"] <= inner[, "lwr"] & inner[, "upr"] <= wide[, "upr"]))
      expect_identical(wide[, "fit"], predict(fit, new))
    }
  }
  expect_error(predict(fit, new, certified = TRUE), "interval", class = "pfdtc_error_input")
})

test_that("a row whose f is unknown predicts NA and changes no other row, whatever the response", {
  d <- data.frame(x = 1:20 / 5, y = exp(sin(1:20 / 5)), n = rep(0:4, 4), o = factor(rep(1:4, each = 5), ordered = TRUE))
  new <- data.frame(x = c(NA, 0.5, 2, 3))
  with <- function(...) pfdtc(..., data = d, kernel = kernel_se(1, 1), hyper = "fixed")
  fits <- list(with(y ~ x, transform = "log", noise = 0.01), with(n ~ x, family = poisson()),
               with(o ~ x, family = ordinal()))
  for (fit in fits) {
    each <- function(new) {
      p <- predict(fit, new, type = "response", se.fit = TRUE)
      band <- predict(fit, new, type = "response", interval = "credible")
      cbind(unname(as.matrix(p$fit)), unname(as.matrix(p$se.fit)), matrix(band, nrow(new)))
    }
    all <- each(new)
    expect_true(all(is.na(all[1L, ])))
    expect_equal(all[-1L, ], each(new[-1L, , drop = FALSE]), tolerance = 1e-12) # rounding
  }
})

test_that("no rows, and only rows with missing inputs, have results of the usual shape, whatever the response", {
  d <- data.frame(x = 1:20 / 5, y = exp(sin(1:20 / 5)), n = rep(0:4, 4))
  d$o <- factor(rep(1:3, c(7, 7, 6)), ordered = TRUE)
  d$k <- factor(d$o, ordered = FALSE)
  with <- function(...) pfdtc(..., data = d, kernel = kernel_se(1, 1), hyper = "fixed")
  fits <- list(with(y ~ x, noise = 0.01), with(y ~ x, transform = "log", noise = 0.01), with(n ~ x, family = poisson()),
               with(n > 1 ~ x, family = binomial()), with(n ~ x, family = replace(tweedie(), "theta", list(c(1, 1)))),
               with(o ~ x, family = ordinal()), with(k ~ x, family = multinomial()))
  size <- function(p) c(NROW(p), dim(p)[-1L])
  asked <- expand.grid(type = c("latent", "response", "median", "quantile", "class", "terms", "derivative"),
                       interval = c("none", "credible", "prediction"), stringsAsFactors = FALSE)
  for (fit_number in seq_along(fits)) {
    fit <- fits[[fit_number]]
    for (i in in_turn(seq_len(nrow(asked)), fit_number, 4)) {
      ask <- function(x) {
        tryCatch(do.call(predict, c(list(fit, data.frame(x = x)), asked[i, ],
                                    if (asked$type[i] == "derivative") list(wrt = "x"))),
                 pfdtc_error_input = function(e) NULL) # this response has no such answer
      }
      one <- ask(2)
      if (is.null(one)) next
      expect_identical(size(ask(numeric())), replace(size(one), 1L, 0L))
      unknown <- ask(c(NA_real_, NA_real_))
      expect_identical(list(size(unknown), all(is.na(unknown))), list(replace(size(one), 1L, 2L), TRUE))
    }
    expect_identical(dim(simulate(fit, 2, newdata = d[0L, ])), c(0L, 2L))
    found <- certify(fit, d[0L, ])
    expect_identical(list(nrow(found), names(found)), list(0L, names(certify(fit, d[1L, ]))))
  }
})

test_that("short names of \"confidence\" mean the credible interval, as in predict.lm()", {
  fit <- fit_cars()
  new <- data.frame(speed = 10)
  for (short in c("co", "con", "conf", "confi")) {
    expect_identical(predict(fit, new, interval = short), predict(fit, new, interval = "credible"))
  }
  expect_identical(predict(fit, new, interval = "confo"), predict(fit, new, interval = "conformal"))
})

test_that("quantiles of a response with Gaussian noise are those of its prediction intervals", {
  new <- data.frame(speed = c(5, 15, 24))
  fits <- list(fit_cars(), with_seed(1, pfdtc(dist ~ speed, cars, transform = "yeojohnson")))
  heavy <- fits[[1L]]
  heavy$noise_tail <- 0.8
  for (fit in c(fits, list(heavy))) {
    band <- predict(fit, new, interval = "prediction", level = 0.9, type = "median")
    at <- predict(fit, new, type = "quantile", probs = c(0.05, 0.5, 0.95))
    expect_equal(unname(at), unname(band[, c("lwr", "fit", "upr")]), tolerance = 1e-8)
  }
})

test_that("prediction intervals of a weighted fit warn that they are for weight 1", {
  fit <- gp_exact(dist ~ speed, cars, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", weights = speed)
  expect_warning(predict(fit, cars[1:2, ], interval = "prediction"), "weight 1", class = "pfdtc_warning_weights")
  expect_no_warning(predict(fit, cars[1:2, ], interval = "credible"))
  expect_no_warning(predict(update(fit, weights = NULL), cars[1:2, ], interval = "prediction"))
  # A row source warns once.
  expect_warning(n <- nrow(predict(fit, in_blocks(cars), interval = "prediction")), class = "pfdtc_warning_weights") |>
    expect_no_warning()
  expect_identical(n, 50L)
  # Leave-one-out intervals have the weight of their row.
  expect_no_warning(loo <- predict(fit, type = "loo", interval = "prediction"))
  other <- gp_exact(dist ~ speed, cars[-3, ], like = fit, weights = speed, center = fit$center)
  at <- predict(other, cars[3, ], se.fit = TRUE)
  expect_equal(unname(loo[3, "upr"] - loo[3, "fit"]), qnorm(0.975) * sqrt(at$se.fit[[1]]^2 + 200 / cars$speed[3]))
})

test_that("a new response at a training row has the noise of the row's weight", {
  w <- replace(rep(c(1, 4), 25), 7, 0)
  d <- transform(cars, w = w)
  fit <- gp_exact(dist ~ speed, d, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", weights = w)
  expect_no_warning(band <- predict(fit, interval = "prediction"))
  f <- predict(fit, type = "latent", se.fit = TRUE)
  sd <- ifelse(w > 0, sqrt(f$se.fit^2 + 200 / w), NA)
  expect_equal(band[, "fit"], f$fit)
  expect_equal(unname(band[, "upr"] - band[, "fit"]), unname(qnorm(0.975) * sd))
  expect_equal(unname(predict(fit, type = "response", se.fit = TRUE)$se.fit), unname(sd))
  expect_equal(unname(predict(fit, type = "density")), dnorm(d$dist, f$fit, sd, log = TRUE))
  expect_equal(unname(predict(fit, type = "quantile", probs = 0.975)[, 1]), unname(band[, "upr"]))
  expect_equal(unname(diag(predict(fit, type = "response", full_cov = TRUE)$cov)), unname(sd^2))
  # Without weights nothing changes, and with a transform the mean response does not depend on weights.
  even <- update(fit, weights = NULL)
  expect_identical(predict(even, interval = "prediction"), predict(even, cars, interval = "prediction"))
  root <- gp_exact(dist ~ speed, d[w > 0, ], kernel = kernel_se(6, 2), noise = 0.1, hyper = "fixed", weights = w,
                   transform = "log")
  own <- predict(root, interval = "prediction")
  one <- suppressWarnings(predict(root, d[w > 0, ], interval = "prediction"))
  expect_equal(own[, "fit"], one[, "fit"])
  heavy <- d$w[w > 0] == 4
  expect_true(all((own[, "upr"] < one[, "upr"])[heavy]))
  expect_equal(own[!heavy, ], one[!heavy, ])
})

test_that("no new rows have no predictions, whatever the formula", {
  for (form in list(dist ~ splines::ns(speed, 3), dist ~ poly(speed, 2), dist ~ log(speed) + offset(speed))) {
    fit <- pfdtc(form, cars, kernel = kernel_se(), hyper = "pilot", plain = TRUE)
    expect_identical(unname(predict(fit, cars[0, ])), numeric())
    expect_identical(dim(predict(fit, cars[0, ], interval = "prediction")), c(0L, 3L))
  }
  expect_error(predict(fit, cars[0, "dist", drop = FALSE]), "speed", class = "pfdtc_error_input")
})

test_that("new rows may be a list that has trials, or have a column called (offset)", {
  d <- data.frame(x = 1:10 / 2, n = 8)
  d$share <- with_seed(1, stats::rbinom(10, 8, 0.5) / 8)
  fit <- pfdtc(share ~ x, d, weights = n, family = binomial(), kernel = kernel_se(1, 1), hyper = "fixed")
  ask <- function(new) predict(fit, new, type = "response", interval = "prediction")
  expect_equal(ask(list(x = 1:2, n = c(8, 4))), ask(data.frame(x = 1:2, n = c(8, 4))))
  named <- with_seed(2, data.frame(`(offset)` = stats::runif(10), y = stats::rnorm(10), check.names = FALSE))
  fit <- pfdtc(y ~ ., named, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  expect_equal(predict(fit, named), predict(fit))
})

test_that("prediction intervals of a family are those of its mean, whichever of latent, link and mean is asked for", {
  ordered <- transform(trees, Volume = cut(Volume, 3, ordered_result = TRUE))
  for (d in list(trees, ordered)) {
    fit <- pfdtc(Volume ~ Girth, d, family = if (is.factor(d$Volume)) ordinal() else Gamma("log"), hyper = "fixed",
                 kernel = kernel_se(3, 1))
    of <- function(type) predict(fit, trees[1:3, ], type = type, interval = "prediction")
    expect_identical(of("latent"), of("mean"))
    expect_identical(of("link"), of("mean"))
    expect_false(isTRUE(all.equal(unname(predict(fit, trees[1:3, ])), unname(of("latent")[, "fit"]))))
  }
})

test_that("newdata that is text gets no advice on factors", {
  fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se(10, 400), noise = 200, hyper = "fixed")
  told <- expect_error(predict(fit, "cars"), "must be a data frame", class = "pfdtc_error_input")
  expect_no_match(conditionMessage(told), "factor")
})
