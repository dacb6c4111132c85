# Tests error_bounds() and evidence_bounds() against the exact GP on random problems.

bounds_problem <- function(seed) {
  set.seed(seed)
  n <- sample(5:60, 1)
  d <- sample(1:3, 1)
  x <- matrix(runif(n * d), n)
  y <- rnorm(n) * 10^runif(1, -3, 3) + sin(5 * x[, 1])
  l <- rep(runif(1, 0.1, 2), d)
  kernel <- list(kernel_se, function(...) kernel_matern(1 / 2, ...), function(...) kernel_matern(3 / 2, ...),
                 function(...) kernel_matern(5 / 2, ...))[[1 + seed %% 4]](l, var(y) * runif(1, 0.1, 3))
  list(x = x, y = y, weights = if (seed %% 2) runif(n, 0.2, 3), kernel = kernel,
       noise = var(y) * 10^runif(1, -4, 0), m = max(1, n %/% 3), new = matrix(runif(20 * d, -0.3, 1.3), 20))
}

bounds_fit <- function(method, p, ...) {
  args <- list(p$x, p$y, kernel = p$kernel, noise = p$noise, hyper = "fixed", weights = p$weights,
               control = pfdtc_control(maxit = 3), ...)
  if (!identical(method, gp_exact)) args$m <- p$m
  do.call(method, args)
}

test_that("lower <= exact log evidence <= upper for fits of every kind, and a reference does not widen these bounds", {
  gaps <- NULL
  for (seed in quick(some_of(1:20, 8))) {
    p <- bounds_problem(seed)
    exact <- bounds_fit(gp_exact, p)
    for (method in list(pfdtc, gp_dtc, gp_sor, gp_fitc, gp_subsample)) {
      fit <- bounds_fit(method, p)
      plain <- evidence_bounds(fit)
      fit$reference <- reference(fit)
      better <- evidence_bounds(fit)
      info <- paste(seed, fit$method)
      expect_gte(exact$evidence, plain[["lower"]])
      expect_lte(exact$evidence, plain[["upper"]])
      expect_gte(exact$evidence, better[["lower"]])
      expect_lte(exact$evidence, better[["upper"]])
      expect_true(better[["lower"]] >= plain[["lower"]] && better[["upper"]] <= plain[["upper"]], info = info)
      gaps <- c(gaps, (better[["upper"]] - better[["lower"]]) / (1 + abs(exact$evidence)))
    }
  }
  expect_lt(median(gaps), 1e-3) # some brackets must be narrow
  expect_lt(diff(evidence_bounds(exact)), 1e-6)
})

test_that("the bracket closes where the inducing points are all rows", {
  p <- bounds_problem(2)
  fit <- gp_dtc(p$x, p$y, inducing = p$x, kernel = p$kernel, noise = p$noise, hyper = "fixed", weights = p$weights)
  bracket <- evidence_bounds(fit)
  expect_equal(bracket[["upper"]], bracket[["lower"]], tolerance = 1e-8) # differ by the jitter and rounding
})

test_that("the theorem's bounds hold as printed and sharper, and eps is above d_pF of the exact posterior", {
  skip_on_cran()
  for (seed in quick(some_of(1:14, 6))) {
    p <- bounds_problem(seed)
    exact <- predict(bounds_fit(gp_exact, p), p$new, se.fit = TRUE)
    for (method in list(pfdtc, gp_dtc)) {
      fit <- bounds_fit(method, p)
      fit$reference <- reference(fit)
      at <- predict(fit, p$new, se.fit = TRUE)
      # Both predictions have rounding errors.
      tiny <- 1e-10 * fit$sd_y
      for (effort in c("fast", "reference")) {
        b <- error_bounds(fit, p$new, effort)
        info <- paste(seed, effort)
        expect_true(all(abs(at$fit - exact$fit) <= b$mean_bound_sharp + tiny), info = info)
        expect_true(all(abs(at$se.fit - exact$se.fit) <= b$sd_bound_sharp + tiny), info = info)
        expect_true(all(abs(at$se.fit^2 - exact$se.fit^2) <= b$var_bound + tiny * fit$sd_y), info = info)
        expect_true(all(b$mean_bound_sharp <= b$mean_bound * (1 + 1e-12)), info = info)
        expect_true(all(b$sd_bound_sharp <= b$sd_bound), info = info)
        expect_equal(attr(b, "eps")^2, attr(b, "eps_mean")^2 + attr(b, "eps_cov")^2)
        expect_identical(attr(b, "w2"), attr(b, "eps"))
      }
      fast <- with_seed(1, error_bounds(fit, p$new, "fast"))
      expect_true(all(with_seed(1, error_bounds(fit, p$new, "reference")) <= fast), info = seed)
      expect_lte(pf_divergence(fit, bounds_fit(gp_exact, p)), attr(b, "eps") * (1 + 1e-8))
    }
  }
})

# Fits a problem with the exact posterior given `rows` as the auxiliary distribution nu. exact_ratio() returns the
# largest value of log dpi/dnu, where pi is the exact posterior given all rows.
subset_fit <- function(p, rows, m = 3, ...) {
  pfdtc(p$x, p$y, m = m, kernel = p$kernel, noise = p$noise, hyper = "fixed", aux = aux_subset(rows = rows),
        weights = p$weights, control = pfdtc_control(maxit = 3), ...)
}

exact_ratio <- function(p, rows, evidence_all = evidence(seq_along(p$y))) {
  w <- if (is.null(p$weights)) rep(1, length(p$y)) else p$weights
  evidence <- function(i) {
    K <- kernel_matrix(p$kernel, p$x[i, , drop = FALSE]) + diag(p$noise / w[i], length(i))
    -(sum(p$y[i] * solve(K, p$y[i])) + c(determinant(K)$modulus) + length(i) * log(2 * pi)) / 2
  }
  # log dpi/dnu = sum over the other rows of log N(y_n; f_n, s2/w_n) - (log Z_D - log Z_nu), where Z_D and Z_nu are the
  # evidence of all rows and of `rows`. The density N(y; f, s) is at most (2 pi s)^(-1/2), at f = y.
  evidence(rows) - sum(log(2 * pi * p$noise / w[-rows])) / 2 - evidence_all
}

ratio_problem <- function(n = 12, weighted = TRUE, profile = kernel_se) {
  x <- matrix(with_seed(1, sort(runif(n, 0, 3))))
  list(x = x, y = sin(2 * x[, 1]) + with_seed(2, rnorm(n, sd = 0.3)),
       kernel = profile(lengthscale = 0.7, variance = 1.2),
       weights = if (weighted) with_seed(3, runif(n, 0.5, 2)), noise = 0.1, new = matrix(c(0.5, 1.5, 4)))
}

test_that("the density ratio of a subset is bounded as the paper bounds it", {
  for (p in list(bounds_problem(4), bounds_problem(5))) {
    rows <- seq_len(min(8, length(p$y) - 1))
    fit <- subset_fit(p, rows, scale = FALSE, center = FALSE)
    b <- error_bounds(fit, p$new, "fast")
    expect_equal(attr(b, "log_density_ratio"), exact_ratio(p, rows, evidence_bounds(fit)[["lower"]]), tolerance = 1e-8)
    expect_gte(attr(b, "log_density_ratio"), exact_ratio(p, rows))
    fit$reference <- reference(fit)
    better <- attr(error_bounds(fit, p$new), "log_density_ratio")
    expect_lte(better, attr(b, "log_density_ratio"))
    expect_gte(better, exact_ratio(p, rows))
  }
})

test_that("the paper's own bound holds, and says when it is vacuous", {
  for (n in c(12, 60)) {
    p <- ratio_problem(n)
    exact <- predict(bounds_fit(gp_exact, p), p$x, se.fit = TRUE)
    for (out in c(1, 3, n / 2)) {
      fit <- subset_fit(p, seq_len(n - out))
      at <- predict(fit, p$x, se.fit = TRUE)
      b <- error_bounds(fit, p$x, "fast")
      root <- sqrt(p$kernel$variance)
      expect_lte(max(abs(at$fit - exact$fit)), root * exp(attr(b, "log_eps")))
      expect_lte(max(abs(at$se.fit - exact$se.fit)), root * exp(attr(b, "log_eps")))
      # Compare log_eps with the sum of its parts, where d_pF follows from its definition.
      nu <- ref_nu_subset(seq_len(n - out), p$x, p$y - fit$center, ref_kernel("se", 0.7, 1.2), p$noise, p$weights)
      d <- sqrt(ref_pf(unname(fit$inducing), p$x, p$y - fit$center, ref_kernel("se", 0.7, 1.2), p$noise, nu, p$weights,
                       fit$jitter, constant = TRUE)) / p$noise
      expect_equal(attr(b, "log_eps"), attr(b, "log_density_ratio") / 2 + log(d), tolerance = 1e-5)
      y <- p$y - fit$center
      prior <- sum(p$weights * (y^2 + p$kernel$variance)) / p$noise
      expect_identical(attr(b, "vacuous"), 2 * attr(b, "log_eps") >= log(prior))
      expect_match(attr(b, "note"), if (attr(b, "vacuous")) "vacuous" else "eps")
    }
    expect_true(attr(b, "vacuous"))
  }
  expect_false(attr(error_bounds(subset_fit(ratio_problem(), 1:11, m = 6), p$x, "fast"), "vacuous"))
  other <- error_bounds(bounds_fit(pfdtc, bounds_problem(4)), matrix(1, 1, ncol(bounds_problem(4)$x)), "fast")
  expect_null(attr(other, "log_density_ratio"))
  expect_null(attr(other, "note"))
})

test_that("draws from the subset's posterior have its mean and covariance, by the covariance matrix and by paths", {
  rows <- c(1, 3, 4, 8)
  ways <- list(dense = 2000L, paths = 0L)
  for (way in names(ways)) {
    p <- ratio_problem(10)
    nu <- ref_nu_subset(rows, p$x, p$y, ref_kernel("se", 0.7, 1.2), p$noise, p$weights)
    kernel <- complete_kernel(p$kernel, p$x)
    x <- p$x[-rows, , drop = FALSE]
    like <- list(aux_rows = rows, kernel = kernel, noise = p$noise, scale = 1)
    f <- with_replaced(list(dense_draws = ways[[way]]), with_seed(5, {
      posterior_draws(subset_posterior(like, list(x = p$x, y = p$y, weights = p$weights)), x, 20000)
    }))
    v <- nu$cov(x, x)
    # The tolerance is five standard errors of means and covariances of 20,000 normal draws, plus 1e-3 for errors of
    # posterior_paths().
    expect_true(all(abs(rowMeans(f) - nu$mean(x)) <= 5 * sqrt(diag(v) / 20000) + 1e-3), info = way)
    expect_true(all(abs(cov(t(f)) - v) <= 5 * sqrt((outer(diag(v), diag(v)) + v^2) / 20000) + 1e-3), info = way)
  }
})

test_that("the density ratio is estimated by importance sampling, with its effective sample size", {
  for (profile in list(kernel_se, function(...) kernel_matern(1 / 2, ...))) {
    p <- ratio_problem(profile = profile)
    fit <- subset_fit(p, 1:9, scale = FALSE, center = FALSE)
    exact <- exact_ratio(p, 1:9)
    a <- attributes(with_seed(1, error_bounds(fit, p$new, "fast", samples = 20000)))
    expect_gt(a$density_ratio_ess, 100)
    expect_lte(a$density_ratio_ess, 20000)
    # The tolerance is five standard errors of the log of a mean of weights: 1 / sqrt(ess).
    expect_lt(abs(a$density_ratio_estimate - exact), 5 / sqrt(a$density_ratio_ess))
    expect_null(attr(error_bounds(fit, p$new, "fast"), "density_ratio_estimate"))
  }
  # Merged rows and a scale do not change the estimates.
  p <- ratio_problem(weighted = FALSE)
  twice <- list(x = p$x[c(1:12, 1:12), , drop = FALSE], y = c(p$y, p$y), kernel = p$kernel, noise = 2 * p$noise)
  one <- with_seed(1, error_bounds(subset_fit(p, 1:9), p$new, "fast", samples = 100))
  two <- with_seed(1, error_bounds(subset_fit(twice, 1:9), p$new, "fast", samples = 100))
  expect_equal(attributes(two)[-(1:3)], attributes(one)[-(1:3)], tolerance = 1e-5)
  # If the subset has all rows, the density ratio is 1.
  none <- attributes(error_bounds(subset_fit(p, 1:12), p$new, "fast", samples = 3))
  expect_equal(none[c("density_ratio_estimate", "density_ratio_ess")],
               list(density_ratio_estimate = 0, density_ratio_ess = 3))
  # If nu is far from the posterior, few draws have almost all the weight.
  far <- error_bounds(subset_fit(ratio_problem(60), 1:4), p$new, "fast", samples = 200)
  expect_lt(attr(far, "density_ratio_ess"), 10)
})

test_that("the draws' memory is refused before it is taken", {
  p <- ratio_problem(40, profile = function(...) kernel_matern(1 / 2, ...))
  fit <- subset_fit(p, 1:4)
  with_options(list(pfdtc.max_memory = 32 * 36^2 - 1, pfdtc.memory = 0), {
    expect_error(error_bounds(fit, p$new, "fast", samples = 10), "36 rows", class = "pfdtc_error_input")
    expect_s3_class(error_bounds(fit, p$new, "fast"), "data.frame")
  })
})

test_that("bounds of errors and evidence hold for the nasty problems, by the exact GP in quadruple precision", {
  skip_on_cran()
  evidence <- utils::read.csv(test_path("bounds-nasty.csv"))
  truth <- utils::read.csv(test_path("certify-nasty.csv"))
  cases <- nasty_certify_problems()
  expect_setequal(names(cases), evidence$case)
  for (name in quick(names(cases))) {
    value <- unlist(evidence[evidence$case == name, c("evidence", "evidence_low")])
    exact <- truth[truth$case == name, ]
    for (by in in_turn(c("gp_dtc", "pfdtc", "gp_fitc", "gp_subsample"), match(name, names(cases)), 4)) {
      p <- cases[[name]]
      p$by <- by
      info <- paste(name, by, sep = ", ")
      fit <- tryCatch(suppressWarnings(certify_fit(p)), pfdtc_error_numerical = identity)
      if (inherits(fit, "error")) next # this noise or jitter has no exact fit
      reference <- with_seed(p$seed, reference(fit))
      with_reference <- replace(fit, "reference", list(reference))
      slim <- if (by %in% c("gp_dtc", "pfdtc") && fit$jitter >= rounding_jitter(fit$m)) {
        replace(fit, "data", list(NULL))
      }
      for (it in c(list(fit, with_reference), if (!is.null(slim)) list(slim))) {
        bracket <- evidence_bounds(it)
        expect_true(!anyNA(bracket) && (bracket[["lower"]] - value[1]) - value[2] <= 0 &&
                      (bracket[["upper"]] - value[1]) - value[2] >= 0, info = info)
      }
      if (!by %in% c("gp_dtc", "pfdtc")) next
      at <- predict(fit, p$new, se.fit = TRUE)
      for (effort in c("fast", "reference")) {
        b <- error_bounds(fit, p$new, effort, reference = reference)
        mean_error <- abs((at$fit - exact$mean) - exact$mean_low)
        sd_error <- abs(at$se.fit - exact$sd)
        expect_true(all(mean_error <= b$mean_bound_sharp & b$mean_bound_sharp <= b$mean_bound), info = info)
        expect_true(all(sd_error <= b$sd_bound_sharp & b$sd_bound_sharp <= b$sd_bound), info = info)
        expect_true(all(sd_error * (at$se.fit + exact$sd) <= b$var_bound), info = info)
      }
    }
  }
})

test_that("if only rounding errors are left, brackets and bounds are as small as these", {
  evidence <- utils::read.csv(test_path("bounds-nasty.csv"))
  cases <- nasty_certify_problems()
  width <- function(name) {
    fit <- certify_fit(cases[[name]])
    fit$reference <- with_seed(1, reference(fit))
    diff(evidence_bounds(fit)) / (1 + abs(evidence$evidence[evidence$case == name]))
  }
  expect_lt(width("t near rounding"), 1e-8)
  expect_lt(width("M = N"), 1e-8)
  expect_lt(width("near-duplicate Z, 1e-9"), 1e-8)
  expect_lt(width("inputs at 1e8"), 1e-8)
  expect_lt(width("a huge response"), 1e-8)
  expect_lt(width("t near rounding, noise 1e-6"), 1e-5)
  expect_lt(width("noise 1e-10 of the signal, matern12, M = N"), 0.01)
  p <- cases[["t near rounding"]]
  inside <- p$new[p$new > min(p$x) & p$new < max(p$x), , drop = FALSE]
  b <- error_bounds(certify_fit(p), inside, "fast")
  expect_lt(max(b$mean_bound, b$sd_bound), 1e-2)
  expect_lt(max(b$mean_bound_sharp), 1e-6)
  zero <- error_bounds(certify_fit(cases[["y = 0"]]), p$new, "fast")
  expect_identical(attr(zero, "eps_mean"), 0)
  expect_identical(max(zero$mean_bound_sharp), 0)
})

test_that("c and y'w are bracketed by the posterior's sums, with or without the norms", {
  for (p in problems()) {
    kernel <- complete_kernel(package_kernel(p$kernel), p$x)
    post <- native_posterior(p$z, p, new_model(kernel, p$noise), 1e-10)
    data <- list(x = p$x, y = p$y, weights = p$weights)
    model <- new_model(kernel, p$noise)
    norms <- with_seed(1, posterior_norms(post, p$z, data, model, tight = TRUE))
    root <- sqrt(ref_weights(p$weights, p$x))
    y <- root * p$y
    K <- root * t(root * ref_k(p$kernel, p$x))
    Q <- root * t(root * ref_q(p$x, p$x, p$z, p$kernel, 1e-10))
    c <- sum(y * solve(Q + diag(p$noise, length(y)), y))
    yw <- sum(y * solve(K + diag(p$noise, length(y)), y))
    E <- K - Q
    v <- solve(Q + diag(p$noise, length(y)), y)
    q <- quadratic_bracket(post, norms, model)
    loose <- quadratic_bracket(post, norms_of_sums(post, p$z, model, length(y)), model)
    near <- 1e-6 * c
    expect_true(c <= q$upper + near && q$upper <= c + near, info = label_of(p))
    expect_true(q$lower <= c + near && c - near <= q$lower, info = label_of(p))
    # `least` is the larger of the two lower bounds.
    shrunk <- sum(y * solve(Q + diag(p$noise + sum(diag(E)), length(y)), y))
    expect_equal(q$least, max(c^2 / (c + sum(v * (E %*% v))), shrunk), tolerance = 1e-5)
    expect_lte(q$least, yw)
    expect_lte(loose$least, q$least * (1 + 1e-9))
    expect_gte(loose$least, shrunk * (1 - 1e-5))
    own <- list(factors = post, norms = norms, model = model)
    V <- max(sum(v * (E %*% v)), 0)
    expect_equal(theorem_eps(own, 0)$eps_mean^2, min(c - q$least, c * V / (c + V)), tolerance = 1e-4)
  }
})

test_that("rounding bounds from sums allow for a prior variance that grows with the input", {
  x <- matrix(c(-3, 0, 4))
  kernel <- complete_kernel(kernel_polynomial(1, 0.5, 1), x)
  model <- new_model(kernel, 0.1)
  post <- native_posterior(x, list(x = x, y = c(1, 2, 3)), model, 1e-10)
  most <- norms_of_sums(post, x, model, 3L)$most
  expect_equal(most, max(diag(native_kernel_matrix(kernel, x, x))))
  expect_gt(most, total_variance(kernel))
})

test_that("a reference whose mean is corrected brackets y'w nearly exactly", {
  p <- problem("matern12", n = 60, m = 6, weighted = TRUE)
  fit <- fit_by("gp_dtc", p)
  fit$reference <- with_seed(1, reference(fit, 12))
  data <- fit$data
  skip_if(is.null(fit$reference$correction))
  root <- sqrt(p$weights)
  y <- root * p$y
  quadratic <- function(K) sum(y * solve(root * t(root * K) + diag(p$noise, 60), y))
  yw <- quadratic(ref_k(p$kernel, p$x))
  c <- quadratic(ref_q(p$x, p$x, p$z, p$kernel, fit$jitter))
  by_sums <- quadratic_bracket(fit$reference$factors, fit$reference$norms, model_of(fit))$least
  corrected <- least_quadratic(fit$reference, data)
  expect_lte(corrected, yw)
  expect_lt(yw - corrected, (yw - by_sums) / 5)
  expect_equal(attr(error_bounds(fit, p$new), "eps_mean")^2, c - corrected, tolerance = 1e-4)
})

test_that("evidence_bounds() draws no random numbers and gives the same each time", {
  p <- bounds_problem(6)
  fit <- bounds_fit(pfdtc, p)
  set.seed(4)
  before <- .Random.seed
  one <- evidence_bounds(fit)
  expect_identical(.Random.seed, before)
  set.seed(5)
  expect_identical(evidence_bounds(fit), one)
  slim <- replace(fit, "data", list(NULL))
  without <- evidence_bounds(slim)
  expect_true(without[["lower"]] <= one[["lower"]] + 1e-6 * abs(one[["lower"]]) && without[["upper"]] >= one[["upper"]])
  slim$jitter <- 0
  expect_input_error(evidence_bounds(slim), "keep_data")
})

test_that("fits that the theorem does not cover are refused with the reason", {
  p <- bounds_problem(3)
  expect_error(error_bounds(bounds_fit(gp_sor, p), p$new), "DTC", class = "pfdtc_error_input")
  expect_error(error_bounds(bounds_fit(gp_dtc, p, keep_data = FALSE), p$new), "data", class = "pfdtc_error_input")
  expect_error(evidence_bounds("fit"), class = "pfdtc_error_input")
  fit <- bounds_fit(pfdtc, p)
  expect_input_error(error_bounds(fit, p$new, "fast", samples = 10), "aux_subset")
  expect_input_error(error_bounds(fit, p$new, "fast", samples = -1), "samples")
  expect_input_error(error_bounds(fit, p$new, "fast", sample = 1), "samples")
  expect_identical(nrow(error_bounds(fit, p$new[0, , drop = FALSE], "fast")), 0L)
})

test_that("a reference with other merged rows is accepted, and makes no bound too small", {
  x <- matrix(with_seed(1, stats::runif(60, 0, 4)))
  y <- with_seed(2, rep(sin(2 * x[, 1]), 2) + 0.3 * stats::rnorm(120))
  args <- list(x[c(1:60, 1:60), , drop = FALSE], y, kernel = kernel_se(0.7, 1), noise = 0.01, hyper = "fixed",
               scale = FALSE)
  fit <- do.call(gp_dtc, c(args, m = 5))
  other <- reference(do.call(gp_fitc, c(args, m = 5)))
  exact <- predict(do.call(gp_exact, args), x)
  bounds <- error_bounds(fit, x, reference = other)
  expect_true(all(abs(predict(fit, x) - exact) <= bounds$mean_bound_sharp))
})

test_that("a reference of other responses is refused, however far from 0 they are", {
  x <- matrix(with_seed(1, stats::runif(100, 0, 4)))
  noise <- with_seed(2, stats::rnorm(100)) / 10
  fit <- function(y) gp_dtc(x, y, m = 10, kernel = kernel_se(0.5, 1), noise = 0.01, hyper = "fixed", scale = FALSE)
  one <- fit(1e8 + sin(2 * x[, 1]) + noise)
  two <- fit(1e8 + 0.7 * sin(2 * x[, 1]) + noise)
  expect_input_error(certify(one, x[1:3, , drop = FALSE], reference = reference(two)), "data")
})

test_that("references, refine() and error_bounds() leave the random state alone, and do not depend on it", {
  p <- bounds_problem(6)
  fit <- bounds_fit(pfdtc, p)
  answers <- function(seed) {
    set.seed(seed)
    before <- .Random.seed
    out <- list(reference(fit)$inducing, refine(fit, p$new, tol = 1e-3), error_bounds(fit, p$new))
    expect_identical(.Random.seed, before)
    out
  }
  expect_identical(answers(1), answers(2))
})

test_that("the mean divergence at no rows is refused", {
  p <- bounds_problem(6)
  fit <- bounds_fit(pfdtc, p)
  exact <- bounds_fit(gp_exact, p)
  expect_error(kl_divergence(fit, exact, p$new[0, , drop = FALSE]), "no complete rows", class = "pfdtc_error_input")
})
