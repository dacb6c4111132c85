# Tests that every row of the table of responses keeps the table's contract, and predictions for all rows.

contract_cases <- function() {
  list(binomial("logit"), binomial("probit"), poisson(), nb(0.8), nb(30), student(4, 0.5), student(1, 2),
       with_theta(Gamma("log"), 0.7),
       with_theta(Gamma("log"), 5), tweedie(1.2, 0.8), tweedie(1.7, 2), with_theta(tweedie(), c(0.5, 0.6)),
       truncated_poisson(), with_theta(ordinal(), c(0.4, 1.7)), with_theta(ordinal("probit"), c(0.4, 1.7)),
       with_theta(ordinal("cloglog"), c(0.4, 1.7)), weibull(0.6), loglogistic(0.4), lognormal(0.7), tobit(scale = 1.3))
}

with_theta <- function(family, theta) replace(family, "theta", list(theta))

# Returns the likelihood with the elements that a fit takes from the data.
contract_likelihood <- function(family) {
  likelihood <- as_likelihood(family)
  if (as_response(likelihood)$kind == "ordered") likelihood[c("levels", "middle")] <- list(letters[1:4], c(1, 1))
  likelihood
}

# Sums or integrates h(y) over all responses.
over_responses <- function(response, size, h) {
  if (response$reads == "classes") return(sum(h(0:size)))
  if (response$kind == "ordered") return(sum(h(seq_along(response$levels))))
  if (response$discrete) return(sum(h((if (is.null(response$from)) 0 else response$from):3000)))
  if (isTRUE(response$zeros)) { # integrates over log y, as the density has a pole at 0
    of_log <- function(t) h(exp(t)) * exp(t)
    return(h(0) + sum(vapply(list(c(-400, -5), c(-5, 1), c(1, 9)), function(end) {
      stats::integrate(of_log, end[1L], end[2L], rel.tol = 1e-9, subdivisions = 2000L)$value
    }, 0)))
  }
  from <- if (response$reads %in% c("positive", "times")) 0 else -Inf
  stats::integrate(h, from, Inf, rel.tol = 1e-9, subdivisions = 2000L)$value
}

test_that("each row keeps the contract of density, slopes, cdf, quantile, draws, moments, deviance", {
  central <- function(h, x, e = 1e-5) (h(x + e) - h(x - e)) / (2 * e)
  cases <- contract_cases()
  for (i in seq_along(cases)) {
    family <- cases[[i]]
    likelihood <- contract_likelihood(family)
    response <- as_response(likelihood)
    size <- if (response$reads == "classes") 7 else 1
    for (f in in_turn(c(-1.2, 0.3, 2), i, 3)) {
      sites <- function(y) {
        list(y = y, size = if (has_ends(response)) y else rep(size, length(y)), offset = numeric(length(y)))
      }
      site <- function(y, f) {
        s <- engine_sites(likelihood, sites(y), 0)
        native_likelihood(s, rep(f, length(y)) + s$offset)
      }
      # The engine reads Student's t as y - f alone.
      log_p <- function(y, f) site(y, f)[1L, ] + log_constant(likelihood, sites(y))
      mean <- response$link$inv(f)
      y <- response$quantile(c(0.1, 0.4, 0.9), mean, size, response$theta)
      expect_equal(over_responses(response, size, function(y) exp(log_p(y, f))), 1, tolerance = 1e-6)
      # Rounding changes central() (step 1e-5) by a few 1e-9 if the values of h are some hundreds.
      expect_equal(central(function(f) site(y, f)[1L, ], f), site(y, f)[2L, ], tolerance = 1e-6)
      expect_equal(-central(function(f) site(y, f)[2L, ], f), site(y, f)[3L, ], tolerance = 1e-6)
      expect_equal(-central(function(f) site(y, f)[3L, ], f), site(y, f)[4L, ], tolerance = 1e-6)
      cdf <- response$cdf(y, mean, size, response$theta)
      below <- vapply(y, function(y) over_responses(response, size, function(t) (t <= y) * exp(log_p(t, f))), 0)
      expect_equal(cdf, below, tolerance = if (response$discrete) 1e-7 else 1e-3) # the integrand jumps
      expect_equal(response$quantile(cdf * (1 - 1e-9), mean, size, response$theta), y, tolerance = 1e-6)
      moment <- function(power) over_responses(response, size, function(y) exp(log_p(y, f)) * y^power)
      if (response$reads %in% c("times", "censored")) {
        expect_equal(moment(1), response_given(response, f), tolerance = 1e-5)
        expect_equal(moment(2) - moment(1)^2, response$variance(moment(1), 0, size, response$theta), tolerance = 1e-4)
      }
      if (response$discrete) {
        expect_equal(moment(1) / size, response_given(response, f), tolerance = 1e-6)
        if (!is.null(response$variance)) {
          expect_equal((moment(2) - moment(1)^2) / size^2, response$variance(mean, 0, size, response$theta),
                       tolerance = 1e-5)
        }
      }
      draws <- with_seed(1, response$draw(rep(mean, 4000), rep(size, 4000), response$theta))
      # The tolerance is 3.8 standard errors of an empirical cdf at worst, tested at three points for all rows.
      expect_lt(max(abs(vapply(y, function(y) mean(draws <= y), 0) - cdf)), 0.03)
      if (is.null(response$deviance)) { # log p is largest at the row's saturated f
        best <- response$best(sites(y), response$theta)
        best <- ifelse(is.finite(best), best, sign(best) * 800)
        at <- function(f) mapply(log_p, y, f)
        expect_true(all(at(best) >= pmax(at(best - 0.01), at(best + 0.01))))
        next
      }
      shown <- if (size > 1) y / size else y
      inside <- shown > 0 & shown < response$link$range[2L] | response$link_name == "identity"
      saturated <- response$deviance(shown[inside], shown[inside], size, response$theta)
      expect_equal(saturated, 0 * saturated, tolerance = 1e-9)
      best <- mapply(function(y, top) 2 * (log_p(y, response$link$fun(top)) - log_p(y, f)), y[inside], shown[inside])
      expect_equal(response$deviance(shown[inside], mean, size, response$theta), as.double(unlist(best)),
                   tolerance = 1e-7)
    }
    expect_false(is.unsorted(response$link$inv(seq(-6, 6, by = 0.1))))
    if (is.null(response$shape)) next
    # Compare derivatives in the logs of the shape parameters, with the user's f fixed. Here l includes its constant.
    sites <- list(y = c(if (response$reads %in% c("positive", "ordered", "times")) 1 else 0, 2, 4),
                  size = if (has_ends(response)) c(1, 3, Inf) else rep(1, 3), offset = numeric(3))
    at <- function(s) if (response$link_name == "identity") rep(0.4, 3) else s$offset
    value <- function(row, j, constant = FALSE) {
      function(t) {
        moved <- with_theta(likelihood, replace(likelihood$theta, j, exp(t)))
        s <- engine_sites(moved, sites, 0.4)
        native_likelihood(s, at(s))[row, ] + if (constant) log_constant(moved, sites) else 0
      }
    }
    s <- engine_sites(likelihood, sites, 0.4)
    slopes <- if (!is.null(response$theta_slopes)) response$theta_slopes(response$theta, s$y, at(s)) else
      theta_differences(response, sites, at(s))
    for (j in seq_along(likelihood$theta)) {
      of <- function(v) if (is.matrix(v)) v[, j] else v
      t <- log(likelihood$theta[j])
      expect_equal(central(value(1L, j, TRUE), t), of(slopes$l), tolerance = 1e-6)
      expect_equal(central(value(2L, j), t), of(slopes$g), tolerance = 1e-6)
      expect_equal(central(value(3L, j), t), of(slopes$W), tolerance = 1e-6)
    }
  }
})

test_that("the search for a limit agrees with each row's own formula", {
  for (family in list(binomial("logit"), binomial("probit"), poisson(), nb(3), with_theta(Gamma("log"), 2))) {
    response <- as_response(as_likelihood(family))
    plain <- replace(response, "limit", list(NULL))
    for (u in c(-2, 0.1, 1.5)) {
      expect_equal(limit_of_f(plain, c(1, 3), c(5, 5), u), limit_of_f(response, c(1, 3), c(5, 5), u), tolerance = 1e-7)
    }
  }
})

test_that("the median of a response is the smallest value at which the averaged cdf is at least one half", {
  d <- with_seed(4, data.frame(x = stats::runif(40, -2, 2)))
  d$n <- with_seed(5, stats::rpois(40, exp(d$x)))
  d$s <- with_seed(6, stats::rbinom(40, 6, stats::plogis(d$x)))
  new <- d[1:5, ]
  for (family in list(poisson(), nb(2), binomial(), student(4, 1))) {
    shares <- family$family == "binomial"
    formula <- if (shares) cbind(s, 6 - s) ~ x else n ~ x
    fit <- pfdtc(formula, d, family = family, kernel = kernel_se(1, 1), hyper = "fixed")
    f <- predict(fit, new, se.fit = TRUE)
    median <- predict(fit, new, type = "median")
    if (!response_of(fit)$discrete) {
      expect_equal(median, f$fit, tolerance = 1e-8)
      next
    }
    y <- if (shares) 0:6 else 0:400
    size <- if (shares) 6 else 1
    direct <- mapply(function(mean, sd) {
      given_f <- function(z, y) response_of(fit)$cdf(y, response_of(fit)$link$inv(mean + sd * z), size, fit$theta)
      p <- vapply(y, function(y) stats::integrate(function(z) stats::dnorm(z) * given_f(z, y), -9, 9)$value, 0)
      y[which(p >= 0.5)[1L]] / size
    }, f$fit, f$se.fit)
    expect_equal(unname(median), unname(direct))
    band <- predict(fit, new, type = "median", interval = "credible")
    expect_true(all(band[, "lwr"] <= band[, "fit"] & band[, "fit"] <= band[, "upr"]))
  }
  classes <- pfdtc(I(n > 1) ~ x, d, family = binomial(), kernel = kernel_se(1, 1), hyper = "fixed")
  expect_error(predict(classes, new, type = "median"), "type", class = "pfdtc_error_input")
})

test_that("quantiles of many trials, and of counts whose mean is uncertain, are the smallest with enough probability", {
  binomial_response <- as_response(as_likelihood(binomial()))
  for (size in c(1, 30, 1e4, 1e6)) {
    for (f in c(-12, -2, 0.5, 6, 10, 13)) {
      p <- c(1e-13, 1e-9, 5e-4, 0.025, 0.3, 0.975, 1 - 1e-9)
      mean <- stats::plogis(f)
      y <- binomial_response$quantile(p, mean, size, NULL)
      expect_true(all(stats::pbinom(y, size, mean) >= p * (1 - 1e-9)))
      expect_true(all(y == 0 | stats::pbinom(y - 1, size, mean) < p * (1 + 1e-9)))
    }
  }
  for (theta in c(1e-3, 0.1, 10)) {
    response <- as_response(as_likelihood(nb(theta)))
    p <- c(1e-9, 0.3, 0.9, 0.95, 0.975, 0.99, 0.9999)
    for (f in list(c(10, 10), c(22, 0.1), c(30, 3))) {
      y <- vapply(p, predictive_quantile, 0, response = response, size = 1, mu = f[1], s = f[2])
      expect_identical(y, round(y))
      expect_false(is.unsorted(y))
      small <- y < 1e6 # larger counts are approximated
      upto <- function(y) predictive_cdf(response, y, 1 + 0 * y, rep(f[1], length(y)), rep(f[2], length(y)))
      expect_true(all(upto(y[small]) >= p[small]))
      expect_true(all(y[small] == 0 | upto(y[small] - 1) < p[small]))
    }
  }
})

test_that("log densities have each row's own offset", {
  d <- with_seed(4, data.frame(x = stats::runif(30, -2, 2), e = stats::runif(30, 0.5, 3)))
  d$n <- with_seed(5, stats::rpois(30, d$e * exp(d$x)))
  fit <- pfdtc(n ~ x + offset(log(e)), d, family = poisson(), kernel = kernel_se(1, 1), hyper = "fixed")
  all <- predict(fit, d[1:6, ], type = "density")
  alone <- vapply(1:6, function(i) predict(fit, d[i, ], type = "density"), 0)
  expect_equal(unname(all), alone, tolerance = 1e-12)
  expect_equal(unname(predict(fit, type = "density")[1:6]), alone, tolerance = 1e-8)
})

test_that("each combination of arguments of predict() works or is refused by name", {
  d <- with_seed(1, data.frame(x = stats::runif(25), y = stats::rnorm(25)))
  d$n <- with_seed(2, stats::rpois(25, 3))
  fixed <- list(kernel = kernel_se(0.3, 1), hyper = "fixed")
  fits <- list(normal = do.call(pfdtc, c(list(y ~ x, d, noise = 1), fixed)),
               transformed = do.call(pfdtc, c(list(exp(y) ~ x, d, noise = 1, transform = "log"), fixed)),
               other = do.call(pfdtc, c(list(n ~ x, d, family = poisson()), fixed)),
               classes = do.call(pfdtc, c(list(I(n > 2) ~ x, d, family = binomial()), fixed)))
  for (kind in names(fits)) {
    expect_identical(response_of(fits[[kind]])$kind, kind)
    cases <- expand.grid(type = eval(formals(predict.gp_fit)$type), interval = names(predict_intervals),
                         se = c(FALSE, TRUE), new = c(FALSE, TRUE), stringsAsFactors = FALSE)
    # Of four cases with the same type and interval, CI runs two that differ in both other arguments.
    turn <- Reduce(`+`, lapply(cases, function(v) match(v, unique(v)))) + match(kind, names(fits))
    cases <- cases[turn %in% in_turn(seq_len(max(turn)), 1, 2), ]
    for (i in seq_len(nrow(cases))) {
      type <- cases$type[i]
      interval <- cases$interval[i]
      se <- cases$se[i]
      new <- cases$new[i]
      args <- c(list(fits[[kind]]), if (new) list(d[1:3, ]), list(type = type, interval = interval, se.fit = se))
      row <- allowed_with(if (type == "link") "latent" else type, kind)
      exists <- !is.null(row) && interval %in% row$intervals && (!se || "se.fit" %in% row$with) &&
        (!new || "newdata" %in% row$with)
      if (exists) {
        p <- do.call(predict, args)
        numbers <- unlist(if (type == "class") p + 0 else p)
        expect_true(all(is.finite(numbers)), label = paste(kind, type, interval))
        if (interval != "none") expect_identical(colnames(if (se) p$fit else p), c("fit", "lwr", "upr"))
      } else {
        expect_input_error(do.call(predict, args))
      }
    }
    if (kind %in% c("classes", "labels", "ordered")) {
      expect_error(predict(fits[[kind]], type = "prob"), "type = \"response\"", class = "pfdtc_error_input")
    }
    # The error for an unknown interval lists the intervals of this fit.
    said <- expect_input_error(predict(fits[[kind]], interval = "nonsense"), "interval")
    told <- vapply(names(predict_intervals), grepl, NA, conditionMessage(said), fixed = TRUE, USE.NAMES = FALSE)
    expect_identical(told, names(predict_intervals) %in% allowed_with("latent", kind)$intervals)
  }
})

test_that("families of mgcv and MASS are nb()", {
  skip_if_not_installed("MASS")
  skip_if_not_installed("mgcv")
  expect_identical(as_likelihood(MASS::negative.binomial(3)), as_likelihood(nb(3)))
  expect_equal(as_likelihood(mgcv::nb(3)), as_likelihood(nb(3)))
  expect_identical(as_likelihood(mgcv::negbin(3)), as_likelihood(nb(3)))
  expect_identical(as_likelihood(mgcv::nb()), as_likelihood(nb()))
  expect_error(as_likelihood(mgcv::nb(3, link = "sqrt")), "sqrt", class = "pfdtc_error_input")
})
