# Returns a fit on few points, and the dense posterior of the exact GP at new rows.
certified_case <- function(K, m, seed, w = NULL, variance = 2) {
  set.seed(seed)
  x <- matrix(stats::runif(80), 40, dimnames = list(NULL, c("a", "b")))
  class <- sample(K, 40, TRUE)
  kernel <- kernel_se(0.4, variance)
  fit <- pfdtc(x, factor(letters[class]), family = multinomial(), kernel = kernel, hyper = "fixed", m = m, weights = w)
  new <- matrix(stats::runif(16, -0.2, 1.2), 8, dimnames = list(NULL, c("a", "b")))
  dense <- ref_classes(kernel_matrix(kernel, x), class, fit$center, if (is.null(w)) rep(1, 40) else w)
  at <- ref_classes_at(dense, kernel_matrix(kernel, x, new), rep(variance, 8), fit$center)
  list(fit = fit, new = new, dense = dense, at = at)
}

test_that("certificates contain the exact mode, sd, probabilities and evidence, on own points and by a reference", {
  for (K in c(2, 4)) {
    for (m in c(3, 8, 20)) {
      one <- certified_case(K, m, seed = K + m, w = if (m == 8) stats::runif(40, 0.1, 5))
      odds <- c(t(one$at$mean - one$at$mean[, 1]))
      sd <- c(apply(one$at$cov, 1, function(V) sqrt(pmax(diag(V) + V[1] - 2 * V[1, ], 0))))
      p <- c(t(ref_softmax(one$at$mean)))
      averaged <- c(t(ref_shares(one$at$mean, one$at$cov)))
      width <- c(fast = NA, reference = NA)
      for (effort in names(width)) {
        said <- certify(one$fit, one$new, effort = effort)
        expect_true(all(odds >= said$mean_lower - 1e-8 & odds <= said$mean_upper + 1e-8))
        expect_true(all(sd >= said$sd_lower - 1e-8 & sd <= said$sd_upper + 1e-8))
        expect_true(all(p >= said$mode_lower - 1e-9 & p <= said$mode_upper + 1e-9))
        expect_true(all(averaged >= said$response_lower - 1e-6 & averaged <= said$response_upper + 1e-6)) # grid error
        width[effort] <- sum(said$mean_upper - said$mean_lower)
      }
      expect_lte(width[["reference"]], width[["fast"]] * (1 + 1e-10))
      bracket <- evidence_bounds(one$fit)
      expect_true(one$dense$evidence >= bracket[["lower"]] - 1e-8 && one$dense$evidence <= bracket[["upper"]] + 1e-8)
    }
    expect_lt(diff(bracket), 0.3) # 20 points represent this kernel well
  }
})

test_that("rows with a large prior variance leave certificates at other rows useful", {
  n <- 60
  d <- with_seed(1, data.frame(x = stats::runif(n)))
  class <- with_seed(2, max.col(cbind(sin(6 * d$x), cos(6 * d$x), 0) + matrix(stats::rnorm(3 * n, sd = 0.7), n)))
  d$x[1:3] <- 1e3 + d$x[1:3] # prior variance 1e6, elsewhere at most 3
  d$y <- factor(letters[class])
  kernel <- kernel_se(0.3, 2) + kernel_linear(1)
  fit <- pfdtc(y ~ x, d, family = multinomial(), kernel = kernel, hyper = "fixed", m = 20)
  new <- data.frame(x = c(0.1, 0.5, 0.9))
  k <- function(x, z) kernel_matrix(kernel, cbind(x = x), cbind(x = z))
  at <- ref_classes_at(ref_classes(k(d$x, d$x), class, fit$center), k(d$x, new$x), diag(k(new$x, new$x)), fit$center)
  said <- certify(fit, new)
  odds <- c(t(at$mean - at$mean[, 1]))
  expect_true(all(odds >= said$mean_lower - 1e-8 & odds <= said$mean_upper + 1e-8))
  expect_lt(max(said$mean_error), 2e-3)
  expect_lt(max(said$response_upper - said$response_lower), 2e-3)
})

test_that("covariances for weights between the modes are at least those for the least weights", {
  fit <- certified_case(3, 40, seed = 2)$fit
  data <- training_data(fit, "fit")
  b <- with_fixed_seed(class_bounds(fit, data))
  for (move in c(0.1, 0.4, 3)) { # with a move of 3, weights fall to less than half
    e <- matrix(move, nrow(data$x), 3)
    between <- weights_of_class_range(b, e)
    least <- posterior_of_classes(b, range_of_weights(b, e, (1:16) / 16)$lower)
    smallest <- vapply(seq_len(nrow(between$S)), function(i) {
      min(eigen(matrix(between$S[i, ] - least$S[i, ], 2), symmetric = TRUE, only.values = TRUE)$values)
    }, 0)
    expect_gte(min(smallest), -1e-9)
    expect_lte(least$lam, between$lam * (1 + 1e-12))
  }
})

test_that("a certificate exists and holds where weights at the ends of their range have no Cholesky factor", {
  for (m in c(15, 25)) {
    one <- certified_case(3, m, seed = 1, variance = 1e4)
    odds <- c(t(one$at$mean - one$at$mean[, 1]))
    sd <- c(apply(one$at$cov, 1, function(V) sqrt(pmax(diag(V) + V[1] - 2 * V[1, ], 0))))
    for (effort in c("fast", "reference")) {
      said <- certify(one$fit, one$new, effort = effort)
      expect_false(anyNA(said[-(1:2)]))
      room <- 1e-6 * (1 + abs(odds)) # error of the dense mode (condition number 1e15)
      expect_true(all(odds >= said$mean_lower - room & odds <= said$mean_upper + room))
      expect_true(all(sd >= said$sd_lower - 1e-6 * (1 + sd) & sd <= said$sd_upper + 1e-6 * (1 + sd)))
    }
    bracket <- evidence_bounds(one$fit)
    expect_lte(bracket[["lower"]], one$dense$evidence + 1e-6)
    expect_gte(bracket[["upper"]], one$dense$evidence - 1e-6)
  }
})

test_that("bounds are never NaN where probabilities of rows far outside the data are 0 in double precision", {
  d <- with_seed(5, data.frame(x = stats::runif(30), y = factor(rep(letters[1:3], 10))))
  fit <- pfdtc(y ~ x, d, family = multinomial(), kernel = kernel_se(1, 0.7) + kernel_linear(0.7),
               hyper = "fixed")
  fit <- add_rows(fit, data.frame(x = c(1e4, -3e3), y = c("c", "a")))
  bracket <- evidence_bounds(fit)
  expect_false(anyNA(c(bracket, attr(logLik(fit), "lower"))))
  expect_lte(bracket[["lower"]], fit$evidence)
  expect_gte(bracket[["upper"]], fit$evidence)
  expect_false(anyNA(unlist(certify(fit, data.frame(x = 0.5), effort = "fast")[-(1:2)])))
})

test_that("averaged probabilities under a large prior variance are those of many draws, and lie inside", {
  for (K in c(2, 3, 4, 6)) for (variance in in_turn(c(1, 100, 1e4), K, 3)) {
    set.seed(K)
    x <- matrix(stats::runif(32), 16, dimnames = list(NULL, c("a", "b")))
    class <- c(seq_len(K), sample(K, 16 - K, TRUE))
    kernel <- kernel_matern(3 / 2, c(0.6, 0.2), variance)
    fit <- at_mode(pfdtc(x, factor(letters[class]), family = multinomial(), kernel = kernel, hyper = "fixed"))
    new <- matrix(stats::runif(8, -0.2, 1.2), 4, dimnames = list(NULL, c("a", "b")))
    at <- ref_classes_at(ref_classes(kernel_matrix(kernel, x), class, fit$center), kernel_matrix(kernel, x, new),
                         rep(variance, 4), fit$center)
    draws <- vapply(1:4, function(t) {
      z <- matrix(stats::rnorm(K * 2e4), ncol = K) %*% chol(at$cov[t, , ] + 1e-9 * variance * diag(K))
      p <- ref_softmax(rbind(z, -z) + rep(at$mean[t, ], each = 4e4))
      rbind(colMeans(p), apply(p, 2, stats::sd) / 200)
    }, matrix(0, 2, K))
    off <- abs(t(draws[1, , ]) - predict(fit, new, type = "response"))
    error <- 5 * t(draws[2, , ]) + 1e-4 # five standard errors of 40,000 draws
    expect_true(all(off <= error + if (K > 3) 0.01 else 0)) # lattice error: bench/classes-average.R
    said <- certify(fit, new)
    expect_true(all(c(draws[1, , ] - said$response_upper, said$response_lower - draws[1, , ]) <= rep(c(t(error)), 2)))
  }
})

test_that("a certificate is wider where the mode is not reached, and still holds", {
  one <- certified_case(3, 12, seed = 5)
  moved <- one$fit
  moved$factors$beta <- moved$factors$beta + 0.2
  said <- certify(moved, one$new, effort = "fast")
  odds <- c(t(one$at$mean - one$at$mean[, 1]))
  expect_true(all(odds >= said$mean_lower & odds <= said$mean_upper))
  expect_gt(sum(said$mean_error), 10 * sum(certify(one$fit, one$new, effort = "fast")$mean_error))
})

test_that("a certificate has a row for each row and class, and prints", {
  one <- certified_case(3, 12, seed = 6)
  said <- certify(one$fit, one$new)
  expect_identical(nrow(said), 24L)
  expect_identical(levels(said$class), c("a", "b", "c"))
  expect_equal(said$mean[said$class == "b"], unname(predict(at_mode(one$fit), one$new)[, "b"]), tolerance = 1e-10)
  expect_equal(unname(tapply(said$mode, said$row, sum)), rep(1, 8), ignore_attr = TRUE, tolerance = 1e-12)
  expect_equal(matrix(said$response, 8, byrow = TRUE), unname(predict(at_mode(one$fit), one$new, type = "response")),
               tolerance = 1e-10)
  expect_output(print(said), "Certificate")
})

test_that("certified credible intervals contain those of the exact posterior", {
  for (K in c(2, 4)) {
    for (m in c(3, 12)) {
      one <- certified_case(K, m, seed = 10 + K + m)
      exact <- ref_class_ends(one$at$mean, one$at$cov, 0.9)
      said <- predict(one$fit, one$new, type = "response", interval = "credible", level = 0.9, certified = TRUE)
      expect_true(all(said[, "lwr", ] <= exact$lwr + 1e-9 & said[, "upr", ] >= exact$upr - 1e-9))
      odds <- one$at$mean[, -1, drop = FALSE] - one$at$mean[, 1]
      half <- stats::qnorm(0.95) * sqrt(vapply(2:K, function(k) {
        one$at$cov[, k, k] + one$at$cov[, 1, 1] - 2 * one$at$cov[, k, 1]
      }, numeric(8)))
      latent <- predict(one$fit, one$new, interval = "credible", level = 0.9, certified = TRUE)
      expect_true(all(latent[, "lwr", ] <= odds - half + 1e-8 & latent[, "upr", ] >= odds + half - 1e-8))
    }
    plain <- predict(one$fit, one$new, type = "response", interval = "credible", level = 0.9)
    if (K > 2) expect_lt(mean(said[, "upr", ] - said[, "lwr", ]), mean(plain[, "upr", ] - plain[, "lwr", ]) + 0.5)
  }
  few <- predict(one$fit, one$new[c(1, NA, 2), ], type = "response", interval = "credible", certified = TRUE)
  expect_identical(which(is.na(few[, 1, 1])), 2L)
})

# Returns a fit of ordered classes on few points, a fit on all rows, and new rows.
ordered_case <- function(link, m, seed = 1) {
  set.seed(seed)
  d <- data.frame(a = stats::runif(40), b = stats::runif(40))
  d$y <- cut(3 * sin(4 * d$a) + d$b + stats::rlogis(40), c(-Inf, 0.5, 1.5, 3, Inf), letters[1:4], ordered_result = TRUE)
  kernel <- kernel_se(0.4, 2)
  both <- lapply(c(m, 40), function(m) {
    pfdtc(y ~ a + b, d, family = replace(ordinal(link), "theta", list(c(1, 1.5))), kernel = kernel,
          hyper = "fixed", m = m, center = 1)
  })
  list(few = both[[1]], all = both[[2]], new = data.frame(a = stats::runif(6, -0.2, 1.2), b = stats::runif(6)))
}

test_that("probabilities of ordered classes are certified, wherever f is in its bounds", {
  for (link in c("logit", "cloglog")) {
    for (m in c(4, 9)) {
      one <- ordered_case(link, m)
      said <- certify(one$few, one$new, effort = "fast")
      exact <- predict(at_mode(one$all), one$new, type = "response")
      expect_true(all(exact >= said$response_lower - 1e-9 & exact <= said$response_upper + 1e-9))
      expect_equal(unname(said$response), unname(predict(at_mode(one$few), one$new, type = "response")),
                   tolerance = 1e-12)
      cuts <- c(-Inf, 0, cumsum(one$few$theta), Inf)
      below <- if (link == "logit") stats::plogis else function(z) 1 - exp(-exp(z))
      for (t in 1:6) for (share in list(c(0, 0), c(1, 1), c(0, 1), c(1, 0), c(0.5, 0.5), c(0.2, 0.6))) {
        at <- function(end, v) said[[paste0(end, "_lower")]][t] * (1 - v) + said[[paste0(end, "_upper")]][t] * v
        mean <- at("mean", share[1])
        sd <- at("sd", share[2])
        z <- seq(-9, 9, by = 0.02)
        p <- diff(vapply(cuts, function(c) sum(below(c - mean - sd * z) * stats::dnorm(z)) * 0.02, 0))
        expect_true(all(p >= said$response_lower[t, ] - 1e-9 & p <= said$response_upper[t, ] + 1e-9))
      }
    }
  }
})

test_that("credible intervals of ordered classes are the ranges given f, and contain the exact ones if certified", {
  one <- ordered_case("logit", 6)
  f <- predict(one$few, one$new, interval = "credible")
  said <- predict(one$few, one$new, type = "response", interval = "credible", se.fit = TRUE)
  expect_identical(dim(said$fit), c(6L, 3L, 4L))
  cuts <- c(-Inf, 0, cumsum(one$few$theta), Inf)
  for (t in 1:6) {
    given <- vapply(seq(f[t, "lwr"], f[t, "upr"], length.out = 2001), function(at) diff(stats::plogis(cuts - at)),
                    numeric(4))
    expect_equal(unname(said$fit[t, "lwr", ]), apply(given, 1, min), tolerance = 1e-9)
    expect_equal(unname(said$fit[t, "upr", ]), apply(given, 1, max), tolerance = 1e-5) # `given` is on a grid of f
  }
  certain <- predict(one$few, one$new, type = "response", interval = "credible", certified = TRUE)
  exact <- predict(at_mode(one$all), one$new, type = "response", interval = "credible")
  expect_true(all(certain[, "lwr", ] <= exact[, "lwr", ] + 1e-8 & certain[, "upr", ] >= exact[, "upr", ] - 1e-8))
})

test_that("ordered classes have sets, by their probability and conformal", {
  one <- ordered_case("logit", 40)
  P <- predict(one$all, one$new, type = "response")
  set <- predict(one$all, one$new, type = "class", interval = "prediction", level = 0.8)
  for (t in 1:6) {
    o <- order(-P[t, ])
    least <- which(cumsum(P[t, o]) >= 0.8)[1]
    expect_identical(unname(which(set[t, ])), sort(unname(o[seq_len(least)])))
    expect_equal(attr(set, "probability")[[t]], sum(P[t, o[seq_len(least)]]), tolerance = 1e-12)
  }
  loo <- predict(one$all, type = "loo")
  own <- sort(loo[cbind(1:40, as.integer(one$all$data$response))], decreasing = TRUE)
  conformal <- predict(one$all, one$new, type = "class", interval = "conformal", level = 0.9)
  best <- max.col(P, "first")
  expect_identical(unclass(unname(conformal))[1:24], c(P >= own[ceiling(0.9 * 41)] | col(P) == best))
})

test_that("the certificate and a certified prediction say how far their probabilities are from predict()", {
  kernel <- kernel_se(c(2, 1), 20)
  fit <- with_seed(1, pfdtc(Species ~ Petal.Length + Petal.Width, iris, kernel = kernel, hyper = "fixed"))
  said <- certify(fit, iris[c(1, 60), ], effort = "fast")
  plain <- predict(fit, iris[c(1, 60), ], type = "response")
  far <- max(abs(matrix(said$response, 2, byrow = TRUE) - plain))
  expect_equal(attr(said, "moved"), far)
  expect_input_error(certify(fit, iris[1, ], reference = fit), "reference")
  expect_output(print(said), "`response`\\s+by\\s+up\\s+to")
  expect_message(inside <- predict(fit, iris[c(1, 60), ], type = "response", interval = "credible", certified = TRUE),
                 "certified prediction", class = "pfdtc_message_certified")
  expect_equal(max(abs(t(inside[, "fit", ]) - t(plain))), far)
  every <- predict(fit, iris, type = "response", interval = "credible", level = 0.1)
  expect_true(all(every[, "lwr", ] <= every[, "fit", ] & every[, "fit", ] <= every[, "upr", ]))
})
