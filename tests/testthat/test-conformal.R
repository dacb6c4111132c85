conformal_problem <- function(n = 40) {
  p <- problem("matern32", n = n, d = 2, m = 6, seed = 3)
  p$weights <- with_seed(1, runif(n, 0.4, 2))
  p
}

fit_plain <- function(by, p, weights, ...) {
  by(p$x, p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", weights = weights, center = FALSE,
       scale = FALSE, ...)
}

# Computes the jackknife+ by n fits, each with the weight of one row set to 0.
jackknife_by_force <- function(make, p, level) {
  n <- length(p$y)
  ends <- lapply(seq_len(n), function(i) {
    fit <- make(replace(p$weights, i, 0))
    own <- predict(fit, p$x[i, , drop = FALSE], se.fit = TRUE)
    r <- abs(p$y[i] - own$fit) / sqrt(own$se.fit^2 + p$noise / p$weights[i])
    new <- predict(fit, p$new, se.fit = TRUE, type = "response")
    list(low = new$fit - r * new$se.fit, high = new$fit + r * new$se.fit)
  })
  k <- ceiling(level * (n + 1))
  low <- sapply(ends, `[[`, "low")
  high <- sapply(ends, `[[`, "high")
  cbind(lwr = apply(low, 1, function(v) sort(v, decreasing = TRUE)[k]), upr = apply(high, 1, function(v) sort(v)[k]))
}

# Returns TRUE if the score of response t at x is among the k smallest of n + 1 rows, k = ceiling(level (n + 1)).
is_inside <- function(p, x, t, level) {
  n <- length(p$y)
  fit <- gp_exact(rbind(p$x, x), c(p$y, t), kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed",
                  weights = c(p$weights, 1), center = FALSE, scale = FALSE)
  score <- abs(rstandard(fit))
  sum(score[1:n] < score[n + 1]) < ceiling(level * (n + 1))
}

test_that("intervals of exact posteriors are full conformal, and agree with refits with any response in the new row", {
  p <- conformal_problem(19)
  p$x[19, ] <- p$x[18, ]
  p$weights[5] <- 0
  fit <- fit_plain(gp_exact, p, p$weights)
  p <- within(p, {
    x <- x[-5, ]
    y <- y[-5]
    weights <- weights[-5]
  })
  new <- rbind(p$new[1:4, ], p$x[2, ], p$x[17, ])
  for (level in c(0.4, 0.9)) {
    band <- predict(fit, new, interval = "conformal", level = level)
    for (i in seq_len(nrow(new))) {
      step <- 1e-6 * (band[i, "upr"] - band[i, "lwr"])
      near <- band[i, c("lwr", "lwr", "upr", "upr")] + step * c(-1, 1, -1, 1)
      # Test near the ends and elsewhere, to show that there are no other ends.
      for (t in c(near, seq(band[i, "lwr"] - 3, band[i, "upr"] + 3, length.out = 7))) {
        expect_identical(is_inside(p, new[i, , drop = FALSE], t, level), t > band[i, "lwr"] && t < band[i, "upr"])
      }
    }
  }
})

test_that("full conformal intervals have their nominal coverage with wrong hyperparameters and heavy tails", {
  only_nightly()
  draw <- function(n) {
    x <- runif(n, 0, 10)
    data.frame(x, y = sin(x) + 0.3 * rt(n, 2))
  }
  n <- 19
  fits <- length(some_of(1:150, 50))
  inside <- with_seed(1, replicate(fits, {
    fit <- gp_exact(y ~ x, draw(n), kernel = kernel_se(3, 0.1), noise = 0.01, hyper = "fixed", center = FALSE,
                    scale = FALSE)
    new <- draw(20)
    band <- predict(fit, new, interval = "conformal", level = 0.8)
    mean(band[, "lwr"] <= new$y & new$y <= band[, "upr"])
  }))
  # The expected share is exactly ceiling(0.8 (n + 1)) / (n + 1) = 0.8. Allow three standard errors.
  expect_lt(abs(mean(inside) - 0.8), 3 * sd(inside) / sqrt(fits))
  expect_lt(sd(inside), 0.18) # so the standard error of all 150 fits is 0.015
})

test_that("for inducing points the interval is the jackknife+", {
  p <- conformal_problem()
  makers <- list(
    sor = function(w) fit_plain(gp_sor, p, w, inducing = p$z),
    fitc = function(w) fit_plain(gp_fitc, p, w, inducing = p$z),
    far = function(w) fit_plain(pfdtc, p, w, inducing = p$z, neighbours = 0, control = pfdtc_control(maxit = 0)))
  for (name in names(makers)) {
    fit <- makers[[name]](p$weights)
    got <- predict(fit, p$new, interval = "conformal", level = 0.8)
    expect_identical(colnames(got), c("fit", "lwr", "upr"))
    expect_equal(got[, "fit"], predict(fit, p$new))
    expect_close(unname(got[, 2:3]), unname(jackknife_by_force(makers[[name]], p, 0.8)), 1e-8, name)
  }
})

test_that("with neighbours, subsamples or many rows the interval is a quantile of scores", {
  p <- conformal_problem()
  near <- fit_plain(pfdtc, p, p$weights, inducing = p$z, neighbours = 6)
  some <- with_seed(1, fit_plain(gp_subsample, p, p$weights, m = 20))
  for (fit in list(near, some)) {
    new <- predict(fit, p$new, se.fit = TRUE, type = "response")
    q <- sort(abs(rstandard(fit)))[ceiling(0.9 * 41)]
    got <- predict(fit, p$new, interval = "conformal", level = 0.9)
    expect_equal(unname(got[, "upr"] - got[, "fit"]), unname(q * new$se.fit))
    expect_equal(unname(got[, "fit"] - got[, "lwr"]), unname(q * new$se.fit))
  }
})

test_that("the shapes are those of prediction intervals, offsets and missing rows included", {
  data <- small_data(30)
  data$o <- cos(1:30)
  fit <- fit_mixed(y ~ a + f + offset(o), data = data)
  new <- data[1:4, ]
  new$a[2] <- NA
  band <- predict(fit, new, interval = "prediction", se.fit = TRUE)
  got <- predict(fit, new, interval = "conformal", se.fit = TRUE)
  expect_identical(dimnames(got$fit), dimnames(band$fit))
  expect_identical(is.na(got$fit), is.na(band$fit))
  expect_equal(got$fit[, "fit"], band$fit[, "fit"])
  expect_identical(got$se.fit, band$se.fit)
  # More rows than a block has give the same results as each row alone.
  many <- data[rep(1:30, 20), ]
  row.names(many) <- NULL
  expect_equal(predict(fit, many, interval = "conformal")[595:600, ], ignore_attr = TRUE,
               predict(fit, data[25:30, ], interval = "conformal"))
})

test_that("a level that so few rows cannot give is infinite", {
  fit <- fit_cars(data = cars[1:18, ])
  expect_identical(unname(predict(fit, cars[1:2, ], interval = "conformal", level = 0.95)[, "upr"]), c(Inf, Inf))
  expect_true(all(is.finite(predict(fit, cars[1:2, ], interval = "conformal", level = 17 / 19))))
  expect_true(all(is.finite(predict(fit, cars[1:2, ], interval = "conformal", level = 18 / 19))))
})

test_that("conformal intervals have the right coverage with heavy tails, where normal intervals do not", {
  only_nightly()
  draw <- function(n) {
    x <- runif(n, 0, 10)
    data.frame(x, y = sin(x) + 0.3 * rt(n, 2))
  }
  found <- with_seed(1, replicate(25, {
    fit <- pfdtc(y ~ x, draw(150), kernel = kernel_se(1.5, 1), noise = 0.5, hyper = "fixed")
    new <- draw(200)
    sapply(c(prediction = "prediction", conformal = "conformal"), function(interval) {
      band <- predict(fit, new, interval = interval, level = 0.5)
      c(mean(band[, "lwr"] <= new$y & new$y <= band[, "upr"]), mean(band[, "upr"] - band[, "lwr"]))
    })
  }))
  cover <- rowMeans(found[1, , ])
  # For 25 fits to 150 rows with 200 new rows each, the sd is sqrt(0.25 / 25 * (1 / 150 + 1 / 200)) = 0.011.
  expect_lt(abs(cover[["conformal"]] - 0.5), 0.033)
  expect_gt(cover[["prediction"]], 0.6)
  width <- rowMeans(found[2, , ])
  expect_lt(width[["conformal"]], width[["prediction"]])
})

test_that("on real data intervals have their nominal coverage, and are no wider than normal ones that cover more", {
  only_nightly()
  skip_if_not(nzchar(Sys.getenv("PFDTC_DATA")), "PFDTC_DATA is not set")
  for (name in quick(some_of(c("airfoil", "abalone", "wine"), 1))) {
    data <- load_dataset(name)
    rows <- with_seed(4, sample.int(nrow(data)))
    train <- rows[seq_len(600)]
    test <- utils::head(setdiff(rows, train), 500)
    fit <- with_seed(4, pfdtc(y ~ ., data[train, ], kernel = kernel_matern(3 / 2)))
    for (level in c(0.5, 0.95)) {
      band <- predict(fit, data[test, ], interval = "conformal", level = level)
      cover <- mean(band[, "lwr"] <= data$y[test] & data$y[test] <= band[, "upr"])
      # The tolerance is three sds of the coverage, from random scores and random new rows.
      expect_lt(abs(cover - level), 3 * sqrt(level * (1 - level) * (1 / length(train) + 1 / length(test))),
                label = paste(name, level, cover))
      plain <- predict(fit, data[test, ], interval = "prediction", level = level)
      if (mean(plain[, "lwr"] <= data$y[test] & data$y[test] <= plain[, "upr"]) > level + 0.02) {
        expect_lt(mean(band[, "upr"] - band[, "lwr"]), mean(plain[, "upr"] - plain[, "lwr"]))
      }
    }
  }
})

test_that("arguments that exclude conformal intervals are refused by name", {
  fit <- fit_cars()
  expect_input_error(predict(fit, cars[1:2, ], interval = "conformal", certified = TRUE), "interval")
  expect_input_error(predict(fit, type = "loo", interval = "conformal"), "interval")
  expect_input_error(predict(fit_cars(keep_data = FALSE), cars[1:2, ], interval = "conformal"), "keep_data")
})

test_that("rows of weight 0 differ from merged rows, by refits to cars, whose speeds repeat", {
  d <- rbind(cars[c(1:12, 20:24), ], cars[20, ])
  w <- rep(c(1, 2, 0.5), 6)
  w[c(2, 7, 15)] <- 0 # within and before groups of equal speeds
  p <- list(x = cbind(d$speed), y = d$dist, weights = w, noise = 150, new = cbind(c(4, 7, 11, 13.5, 20)))
  kernel <- kernel_se(5, 600)
  make <- function(w) {
    gp_sor(p$x, p$y, inducing = cbind(c(4, 9, 13)), kernel = kernel, noise = p$noise, hyper = "fixed", weights = w,
           center = FALSE, scale = FALSE)
  }
  used <- which(w > 0)
  expect_lt(nrow(make(w)$data$x), length(used)) # some were merged
  got <- predict(make(w), p$new, interval = "conformal", level = 0.8)
  ends <- lapply(used, function(i) {
    fit <- make(replace(w, i, 0))
    own <- predict(fit, p$x[i, , drop = FALSE], se.fit = TRUE)
    r <- abs(p$y[i] - own$fit) / sqrt(own$se.fit^2 + p$noise / w[i])
    new <- predict(fit, p$new, se.fit = TRUE, type = "response")
    cbind(new$fit - r * new$se.fit, new$fit + r * new$se.fit)
  })
  k <- ceiling(0.8 * (length(used) + 1))
  lower <- apply(sapply(ends, function(e) e[, 1L]), 1L, function(v) sort(v, decreasing = TRUE)[k])
  upper <- apply(sapply(ends, function(e) e[, 2L]), 1L, function(v) sort(v)[k])
  expect_close(unname(got[, 2:3]), unname(cbind(lower, upper)), 1e-7)
})
