# Compares ordered classes with their definition and with fits of two classes.

ordered_data <- function(n = 60, seed = 3) {
  with_seed(seed, {
    d <- data.frame(a = stats::runif(n, 0, 3), b = stats::runif(n))
    latent <- 2 * sin(2 * d$a) + d$b + stats::rlogis(n)
    d$y <- cut(latent, c(-Inf, -0.5, 0.4, 1.8, Inf), c("low", "mid", "high", "top"), ordered_result = TRUE)
    d
  })
}

test_that("proportional odds are two binary rows for each response", {
  d <- ordered_data()
  kernel <- kernel_se(c(0.8, 1.2), 2)
  family <- replace(ordinal(), "theta", list(c(0.9, 1.4)))
  fit <- pfdtc(y ~ a + b, d, family = family, kernel = kernel, hyper = "fixed", center = 0.3)
  cuts <- c(0, 0.9, 2.3)
  k <- as.integer(d$y)
  above <- cbind(d[k > 1, ], s = TRUE, o = -cuts[k[k > 1] - 1L])
  below <- cbind(d[k < 4, ], s = FALSE, o = -cuts[k[k < 4]])
  doubled <- pfdtc(s ~ a + b + offset(o), rbind(above, below), family = binomial(), kernel = kernel, hyper = "fixed",
                   center = 0.3, inducing = fit$inducing)
  new <- transform(ordered_data(10, seed = 4), o = 0)
  # Both modes are accurate to 1e-9, the decrement at which Newton's steps end.
  expect_equal(predict(fit, new), predict(doubled, new), tolerance = 1e-7)
  expect_equal(predict(fit, new, se.fit = TRUE)$se.fit, predict(doubled, new, se.fit = TRUE)$se.fit, tolerance = 1e-7)
  # An interval has the probability F(b) (1 - F(a)) (1 - e^(a - b)).
  inner <- k > 1 & k < 4
  expect_equal(fit$evidence, doubled$evidence + sum(log(-expm1(-diff(cuts)[k[inner] - 1L]))), tolerance = 1e-7)
})

test_that("two ordered classes are a binary response", {
  d <- transform(ordered_data(), two = ordered(y > "mid"))
  fit <- pfdtc(two ~ a + b, d, family = ordinal(), kernel = kernel_se())
  binary <- pfdtc(I(y > "mid") ~ a + b, d, family = binomial(), kernel = kernel_se())
  expect_equal(predict(fit), predict(binary), tolerance = 1e-8)
  expect_equal(fit$evidence, binary$evidence, tolerance = 1e-9)
  expect_equal(predict(fit, type = "response")[, "TRUE"], predict(binary, type = "response"), tolerance = 1e-7)
})

test_that("probabilities of ordered classes are averages over f, and predicted classes are the likeliest", {
  d <- ordered_data()
  for (link in c("logit", "probit", "cloglog")) {
    fit <- pfdtc(y ~ a + b, d, family = ordinal(link), kernel = kernel_se(c(1, 1), 2), hyper = "fixed")
    expect_true(all(is.finite(fit$theta)) && length(fit$theta) == 2L)
    new <- d[1:4, ]
    f <- predict(fit, new, se.fit = TRUE)
    P <- predict(fit, new, type = "response", se.fit = TRUE)
    cdf <- list(logit = stats::plogis, probit = stats::pnorm, cloglog = function(z) -expm1(-exp(z)))[[link]]
    cuts <- c(-Inf, 0, cumsum(fit$theta), Inf)
    moment <- function(i, k, power) {
      stats::integrate(function(z) {
        at <- f$fit[i] + f$se.fit[i] * z
        stats::dnorm(z) * (cdf(cuts[k + 1] - at) - cdf(cuts[k] - at))^power
      }, -9, 9, rel.tol = 1e-9)$value
    }
    direct <- outer(1:4, 1:4, Vectorize(function(i, k) moment(i, k, 1)))
    square <- outer(1:4, 1:4, Vectorize(function(i, k) moment(i, k, 2)))
    # The rule covers 6.5 sds and omits a probability of 1e-10.
    expect_equal(unname(P$fit), direct, tolerance = 1e-7)
    expect_equal(unname(P$se.fit), sqrt(square - direct^2), tolerance = 1e-6)
    expect_equal(rowSums(P$fit), c(`1` = 1, `2` = 1, `3` = 1, `4` = 1), tolerance = 1e-9)
    class <- predict(fit, new, type = "class")
    expect_identical(as.integer(class), max.col(direct))
    expect_identical(levels(class), levels(d$y))
    expect_equal(unname(predict(fit, new, type = "density")), log(direct[cbind(1:4, as.integer(new$y))]),
                 tolerance = 1e-7)
    expect_equal(unname(predict(fit, new, type = "mean")), drop(direct %*% 1:4), tolerance = 1e-7)
  }
})

test_that("widths of classes are learned by the slopes of the log marginal likelihood", {
  d <- ordered_data(40)
  family <- ordinal()
  likelihood <- as_likelihood(family)
  likelihood[c("levels", "middle", "theta")] <- list(levels(d$y), c(1, 1), c(0.9, 1.4))
  sites <- list(y = as.double(d$y), offset = numeric(40), weight = rep(c(1, 2), 20))
  learn <- response_to_learn(likelihood, sites)
  x <- as.matrix(d[c("a", "b")])
  value <- function(logs) {
    engine <- learn$at(exp(logs), 0.2)
    e <- native_laplace(x[1:12, ], x, engine, kernel_se(c(1, 1), 2), 1e-8, want = 2L)
    list(value = e$evidence - e$penalty + sum(engine$constant), slope = learn$slope(exp(logs), engine, e))
  }
  at <- log(c(0.9, 1.4))
  central <- vapply(1:2, function(j) {
    move <- replace(numeric(2), j, 1e-4)
    (value(at + move)$value - value(at - move)$value) / 2e-4
  }, 0)
  # The mode is accurate to 1e-9, so these differences are accurate to 1e-5.
  expect_equal(value(at)$slope, central, tolerance = 1e-4)
})

test_that("the curvature of a row of intervals stays inside its range", {
  n <- 4000
  r <- with_seed(5, {
    f <- stats::rnorm(n, sd = 3)
    list(f = f, e = exp(stats::runif(n, -6, 1.5)), L = f + stats::rnorm(n, sd = 3), width = exp(stats::runif(n, -4, 2)),
         kind = sample(4L, n, TRUE), t = stats::runif(n, -1, 1))
  })
  L <- ifelse(r$kind == 1L, -Inf, r$L)
  U <- ifelse(r$kind == 2L, Inf, ifelse(r$kind == 3L, r$L, r$L + r$width))
  for (noise in names(noises)) {
    likelihood <- as_likelihood(ordinal(c(logistic = "logit", normal = "probit", gumbel = "cloglog")[[noise]]))
    sites <- list(name = noise, y = L, size = U, weight = NULL, offset = numeric(n), shape = c(1, 0.7))
    W <- curvature_range(likelihood, sites, r$f, r$e)
    at <- native_likelihood(sites, r$f + r$t * r$e)[3L, ]
    expect_true(all(at >= W$lower - 1e-13 & at <= W$upper + 1e-13), label = noise)
    averages <- average_curvature_range(likelihood, sites, r$f, r$e, W)
    g <- function(t) native_likelihood(sites, r$f + t)[2L, ]
    between <- (g(0) - g(r$t * r$e)) / (r$t * r$e)
    # Differences over short distances lose digits.
    some <- abs(r$t * r$e) > 1e-3
    expect_true(all((between >= averages$lower - 1e-9 & between <= averages$upper + 1e-9)[some]), label = noise)
    # For normal noise the range is as narrow as possible: a grid reaches its upper end.
    few <- 1:200
    grid <- vapply(seq(-1, 1, by = 0.01), function(t) {
      native_likelihood(lapply(sites, function(v) if (length(v) == n) v[few] else v), r$f[few] + t * r$e[few])[3L, ]
    }, numeric(200))
    if (noise == "normal") expect_equal(W$upper[few], apply(grid, 1, max), tolerance = 1e-3)
  }
})

test_that("a lower end that is very far below f changes nothing", {
  for (noise in names(noises)) {
    sites <- list(name = noise, y = c(-20, -Inf), size = c(1.01, 1.01), weight = NULL, offset = c(0, 0),
                  shape = c(1, 0.02))
    at <- native_likelihood(sites, c(1, 1)) # e^((U - L) / s) overflows
    expect_equal(at[, 1L], at[, 2L], tolerance = 1e-14, label = noise) # two formulas for normal noise
    expect_true(all(is.finite(at)) && at[1L, 1L] < -0.1, label = noise)
  }
})

test_that("finite limits that no response reaches act like infinite ones", {
  for (noise in names(noises)) {
    at <- function(far) {
      native_likelihood(list(name = noise, y = c(-far, -far, 0.3, -Inf, -far), size = c(0.3, far, far, far, Inf),
                             weight = NULL, offset = numeric(5), shape = c(1, 0.7)), rep(0.1, 5))
    }
    expect_equal(at(1e200), at(Inf), tolerance = 1e-14, label = noise)
  }
})

test_that("an interval far below f has the log of its probability, where the probability underflows", {
  sites <- list(name = "gumbel", y = c(-8, -20), size = c(-7.99, -8), weight = NULL, offset = c(0, 0),
                shape = c(1, 0.01))
  at <- native_likelihood(sites, c(0, 0)) # F(x) is e^x
  expect_equal(at[1L, ], c(log(exp(1) - 1), 0) - 800, tolerance = 1e-13)
  expect_equal(at[2L, ], c(-100, -100), tolerance = 1e-13)
})

test_that("a bad response of ordered classes is refused, and the error says what to do", {
  d <- ordered_data(30)
  refused <- function(data) expect_error(pfdtc(y ~ a, data, family = ordinal()), class = "pfdtc_error_input")
  expect_match(conditionMessage(refused(transform(d, y = factor(y, ordered = FALSE)))), "ordered(", fixed = TRUE)
  expect_match(conditionMessage(refused(transform(d, y = as.integer(y)))), "cut(", fixed = TRUE)
  refused(transform(d, y = as.character(y)))
  refused(transform(d, y = ordered(rep("low", 30))))
  refused(transform(d, y = replace(y, 3, NA), a = replace(a, 1:30, NA)))
  one <- transform(d, y = ordered(rep("low", 30), c("low", "mid", "high")))
  expect_message(fit <- pfdtc(cbind(a = one$a), one$y, family = ordinal(), kernel = kernel_se(1, 1), hyper = "fixed"),
                 "low", class = "pfdtc_message_one_value")
  expect_true(all(predict(fit, type = "class") == "low"))
  expect_error(ordinal("sqrt"), class = "pfdtc_error_input")
  fit <- pfdtc(y ~ a, d, family = ordinal(), kernel = kernel_se(1, 1), hyper = "fixed")
  expect_error(predict(fit, transform(d, y = "none"), type = "density"), "none", class = "pfdtc_error_input")
})

test_that("slopes of intervals of every width are differences", {
  L <- c(-6, -3, -0.5, 0.3, 2, -9, -2, -Inf, 1)
  U <- c(-1, 3, 0.5, 6, 2.4, 8, -1.9, 0.7, Inf)
  for (noise in names(noises)) for (f in c(-0.4, 0, 0.6)) {
    sites <- list(name = noise, y = L, size = U, weight = NULL, offset = numeric(9), shape = c(1, 0.9))
    at <- function(h) native_likelihood(sites, rep(f + h, 9))
    slope <- (at(1e-4) - at(-1e-4)) / 2e-4
    # Central differences with this step err by 1e-8 of values up to some tens.
    expect_equal(at(0)[2L, ], slope[1L, ], tolerance = 1e-6)
    expect_equal(at(0)[3L, ], -slope[2L, ], tolerance = 1e-6)
    expect_equal(at(0)[4L, ], -slope[3L, ], tolerance = 1e-6)
  }
})

test_that("prints of a tobit() family and its fit have the limits, if there are any", {
  expect_output(print(tobit(left = 0)), "Family: censored normal, limits 0 and Inf, noise sd: learned")
  expect_output(print(tobit()), "Family: censored normal, noise sd")
  fit <- pfdtc(pmin(dist, 70) ~ speed, cars, family = tobit(right = 70, scale = 15), kernel = kernel_se(5, 500),
               hyper = "fixed")
  expect_output(print(fit), "Response +censored normal, limits -Inf and 70, noise sd 15")
})

test_that("the summary of ordered classes names multinomial() if inputs act on single classes, and not otherwise", {
  d <- with_seed(1, data.frame(a = rnorm(300), b = rnorm(300), e = rlogis(300), one = 1))
  # The size of `a` tells class 1 from 2, that of `b` tells 2 from 3.
  d$y <- ordered(ifelse(3 * d$a^2 - 2 + d$e < 0, 1, ifelse(3 * d$b^2 - 2 + d$e > 0, 3, 2)))
  d$as_ordinal <- ordered(findInterval(2 * sin(d$a) + d$b + d$e, c(-1, 1)))
  for (y in c("y", "as_ordinal")) {
    fit <- suppressMessages(pfdtc(stats::reformulate(c("a", "b", "one"), y), d, family = ordinal(), hyper = "fixed",
                                  kernel = kernel_se(c(1, 1, 1), 2), weights = rep(c(1, 0), c(290, 10))))
    expect_identical(any(grepl("family = multinomial()", capture.output(print(summary(fit))), fixed = TRUE)), y == "y")
    p <- predict(fit, type = "loo")[1:290, ]
    z <- scale(with(d[1:290, ], cbind(a, b, (a - mean(a))^2, (b - mean(b))^2)), scale = FALSE)
    each <- vapply(1:3, function(k) { # score statistics of four effects
      score <- crossprod(z, (as.integer(d[[y]]) == k)[1:290] - p[, k])
      (sum(score * solve(crossprod(z * sqrt(p[, k] * (1 - p[, k]))), score)) - 4) / sqrt(8)
    }, 0)
    expect_equal(misfit_of(fit)$misfit, max(each), tolerance = 1e-8)
  }
  expect_error(ordinal("log"), "must be", class = "pfdtc_error_input")
})
