# The package adds a jitter of 1e-10 to k(Z, Z), but the reference does not. So q(x, z) = k(x, Z) k(Z, Z)^{-1} k(Z, z)
# differs by about 1e-10 times the condition number of k(Z, Z) (3e2), relative to q.
near_enough <- 1e-6

test_that("means, covariances and the bound are those of dense matrices, for one grouping and for two crossed ones", {
  for (two in c(FALSE, TRUE)) for (weights in c(FALSE, TRUE)) {
    p <- effect_problem(two = two, weights = weights)
    new <- effect_new_rows(p)
    expected <- ref_grouped(p, new)
    view <- effect_view(p)
    at <- posterior_values(view, new, joint = TRUE)
    expect_close(at$mean, expected$mean, near_enough)
    expect_close(at$var, diag(expected$cov), near_enough)
    expect_close(at$cov, expected$cov, near_enough)
    log_weights <- if (weights) sum(log(p$weights)) / 2 else 0 # turns the density of sqrt(w) y into that of y
    expect_equal(log_evidence(view) + log_weights, expected$bound, tolerance = near_enough)
  }
})

test_that("effects and their covariances are those of dense matrices", {
  p <- effect_problem()
  K <- p$kernel(p$x, p$z) %*% solve(p$kernel(p$z, p$z), p$kernel(p$z, p$x))
  B <- K + ref_groups(p$groupings, p$x, p$x) + diag(p$model$noise / p$weights)
  found <- effects_of(effect_view(p)$factors)
  for (i in seq_along(found)) {
    g <- p$groupings[[i]]
    Z <- matrix(0, nrow(p$x), nrow(g$root) * g$levels)
    for (j in seq_along(g$design)) {
      Z[cbind(seq_len(nrow(p$x)), (p$x[, g$column] - 1) * nrow(g$root) + j)] <- cbind(1, p$x)[, g$design[j] + 1]
    }
    C <- kronecker(diag(g$levels), tcrossprod(g$root))
    expect_close(c(found[[i]]$b), drop(C %*% t(Z) %*% solve(B, p$y)), near_enough)
    cov <- C - C %*% t(Z) %*% solve(B, Z %*% C)
    for (l in seq_len(g$levels)) {
      own <- (l - 1) * nrow(g$root) + seq_len(nrow(g$root))
      expect_close(as.matrix(found[[i]]$covariance[, , l]), cov[own, own, drop = FALSE], near_enough)
    }
  }
})

test_that("without a variance of the levels the posterior is that of the inducing points alone", {
  p <- effect_problem()
  p$groupings <- lapply(p$groupings, function(g) replace(g, "root", list(0 * g$root)))
  plain <- native_posterior(p$z, p, p$model, 1e-10)
  new <- p$x[1:9, ]
  at <- posterior_values(effect_view(p), new)
  expected <- native_predict(plain, p$z, p$model, new)
  expect_close(at$mean, expected$mean, 1e-11) # the sums have another order
  expect_close(at$var, expected$sor_variance + expected$unexplained, 1e-11)
})

test_that("sums of parts of the rows add up", {
  p <- effect_problem()
  part <- function(i) {
    rows <- list(x = p$x[i, ], y = p$y[i], weights = p$weights[i])
    native_effect_sums(p$z, rows, p$model, p$groupings, 1e-10)$sums
  }
  expect_close(part(1:40) + part(41:90), part(1:90), 1e-13)
  two <- engine_control(90, list(threads = 2L, memory = 2^27, block = 7L))
  expect_close(native_effect_sums(p$z, p, p$model, p$groupings, 1e-10, control = two)$sums, part(1:90), 1e-13)
})

test_that("slopes of the bound in the variances are those of differences", {
  p <- effect_problem()
  sums <- native_effect_sums(p$z, p, p$model, p$groupings, 1e-10)
  at <- function(theta) {
    groupings <- Map(function(g, by) replace(g, "root", list(g$root * exp(by / 2))), p$groupings, theta[1:2])
    c(factors_of_effects(sums$sums, nrow(p$z), 4L, groupings, 0.2 * exp(theta[3])), sums["L"])
  }
  value <- function(theta) {
    f <- at(theta)
    (f$n * log(2 * pi * f$noise) + f$logdet + f$quad + f$t / f$noise) / 2
  }
  expect_gradient(value, c(0.1, -0.2, 0.3), slopes_of_variances(at(c(0.1, -0.2, 0.3))))
})

test_that("the leave-one-out prediction of a row equals that of a fit without the row", {
  p <- effect_problem()
  view <- effect_view(p)
  parts <- without_rounded(row_parts(view))
  for (i in c(1, 17, 90)) {
    rest <- replace(p, c("x", "y", "weights"), list(p$x[-i, ], p$y[-i], p$weights[-i]))
    at <- posterior_values(effect_view(rest), p$x[i, , drop = FALSE])
    expect_equal(parts$mean[i] - parts$g[i] * parts$q[i] / parts$rest[i], at$mean, tolerance = 1e-8)
    expect_equal(parts$q[i] / parts$rest[i] + parts$left[i], at$var, tolerance = 1e-8)
  }
  # Leave out some rows together, by the covariances Q of rows.
  rows <- c(3, 50, which(p$x[, "g"] == p$x[3, "g"])[2])
  Q <- covariance_with_rows(view, values_at(view$model$kernel, p$x[rows, ]))[rows, ]
  cov <- Q %*% solve(diag(3) - parts$W[rows] * Q)
  rest <- replace(p, c("x", "y", "weights"), list(p$x[-rows, ], p$y[-rows], p$weights[-rows]))
  at <- posterior_values(effect_view(rest), p$x[rows, ])
  expect_close(parts$mean[rows] - drop(cov %*% parts$g[rows]), at$mean, 1e-8)
  expect_close(diag(cov) + parts$left[rows], at$var, 1e-8)
})

test_that("paths are linear in normals whose products are the covariance", {
  p <- effect_problem(n = 60)
  p$z <- p$x # without residual prior variance
  view <- effect_view(p)
  new <- effect_new_rows(p)
  # The k-th path has a 1 as its k-th normal number and zeros elsewhere.
  total <- 60 + 5 + 24 + 2 + 1 + 8 # features; effects of h and g; effects of a new level of g and of h; residuals
  at <- 0
  unit <- function(rows, n) {
    out <- matrix(0, rows, n)
    own <- at + seq_len(rows)
    at <<- at + rows
    if (at <= n) out[cbind(seq_len(rows), own)] <- 1
    out
  }
  zero <- posterior_paths(view, new, 1L, function(rows, n) matrix(0, rows, n))
  expected <- posterior_values(view, new, TRUE)
  expect_close(drop(zero), expected$mean, 1e-8)
  paths <- posterior_paths(view, new, total, unit) - drop(zero)
  expect_close(tcrossprod(paths), expected$cov, 1e-5) # residuals are drawn with a noise of 1e-6
})

test_that("the likelihood with effects integrated out is that of a dense matrix, with its slopes", {
  p <- effect_problem(n = 60)
  n <- 60
  near <- vapply(seq_len(n), function(i) {
    before <- seq_len(i - 1L)
    d <- (p$x[before, 1] - p$x[i, 1])^2 + (p$x[before, 2] - p$x[i, 2])^2
    c(before[order(d)], integer(7))[1:7]
  }, integer(7))
  kernel <- function(par) {
    k <- kernel_matern(3 / 2, exp(par[1:2]), exp(par[3]), inputs = 1:2) +
      kernel_group("g", ~ 1 + a, variance = exp(par[4]), scale = exp(par[5])) +
      kernel_group("h", ~ 0 + b, variance = exp(par[7]))
    k <- place_kernel(k, p$x)
    set_values(k, exp(par[1:7]))
  }
  pool <- list(x = p$x, y = p$y, weights = p$weights, levels = c(12, 5))
  basis <- cbind(p$x[, "b"]) # the log noise is linear in it
  run <- function(par, slopes = TRUE) {
    now <- list(kernel = kernel(par), noise = exp(par[8]))
    pool$weights <- pool$weights / exp(drop(basis) * par[9])
    integrated_likelihood(pool, now, seq_len(n), near, slopes, engine_input(pool, n, NULL), basis)
  }
  dense <- function(par) {
    now <- list(kernel = kernel(par), noise = exp(par[8]))
    noise <- now$noise * exp(drop(basis) * par[9]) / p$weights
    K <- native_kernel_matrix(smooth_part(now$kernel), p$x, p$x) + diag(noise)
    U <- diag(n)
    d <- diag(K)
    for (i in 2:n) {
      s <- near[near[, i] > 0, i]
      u <- solve(K[s, s], K[s, i])
      U[i, s] <- -u
      d[i] <- K[i, i] - sum(u * K[s, i])
    }
    groupings <- groupings_of(now$kernel, c(12, 5))
    ref_log_density(p$y, solve(U, diag(d)) %*% solve(t(U)) + ref_groups(groupings, p$x, p$x))
  }
  par <- c(log(c(0.3, 0.5, 1.2, 0.7, 0.8)), 0.2, log(c(0.4, 0.3)), 0.5)
  found <- run(par)
  expect_equal(found$value, dense(par), tolerance = 1e-12)
  expect_gradient(dense, par, found$score, rounding = 1e-12)
  expect_equal(run(par, FALSE)$value, found$value)
  expect_true(all(eigen(found$information, TRUE, TRUE)$values > 0))
})

test_that("levels with other numbers than 1, 2, ... are the same levels", {
  p <- effect_problem()
  other <- p
  other$x[, "g"] <- ifelse(p$x[, "g"] > 7, -100 * p$x[, "g"], p$x[, "g"])
  other$groupings <- Map(function(g, codes) c(g, list(codes = codes)), p$groupings,
                         list(sort(unique(other$x[, "g"])), NULL))
  new <- effect_new_rows(p)
  renamed <- new
  renamed[, "g"] <- ifelse(new[, "g"] > 7, -100 * new[, "g"], new[, "g"])
  a <- posterior_values(effect_view(p), new, TRUE)
  b <- posterior_values(effect_view(other), renamed, TRUE)
  expect_close(b$mean, a$mean, 1e-12)
  expect_close(b$cov, a$cov, 1e-12)
})

test_that("rows to learn from have some rows of each of many levels", {
  x <- with_seed(1, cbind(stats::runif(3000), sample(rep_len(1:1000, 3000))))
  chosen <- with_seed(2, rows_of_levels(x, 2L, 600))
  count <- table(x[chosen, 2])
  expect_length(count, 200L) # 600 rows, three of each
  expect_true(all(count == 3L))
  few <- with_seed(2, rows_of_levels(cbind(x[, 1], (x[, 2] - 1) %% 20 + 1), 2L, 600))
  expect_length(few, 600L)
  expect_gte(min(table((x[few, 2] - 1) %% 20)), 3L)
  expect_length(rows_of_levels(x[1:500, ], 2L, 600), 500L)
})

test_that("a million levels have their effects computed in seconds", {
  only_nightly()
  n <- 1e6 + 1000
  x <- cbind(a = with_seed(1, stats::runif(n)), g = c(seq_len(1e6), rep(1:10, 100)))
  y <- with_seed(2, stats::rnorm(n))
  # The smooth part has almost no variance, so a level with n_l rows and variance tau has the mean tau sum(y) / (tau n_l
  # + s2).
  kernel <- place_kernel(kernel_se(0.5, 1e-12, inputs = 1L) + kernel_group("g", variance = 2), x)
  f <- effect_posterior(cbind(c(0.2, 0.8), 1), list(x = x, y = y, weights = NULL), new_model(kernel, 0.5), 1e-10)
  precision <- 2 * tabulate(x[, "g"]) + 0.5
  expect_close(f$b, unname(2 * rowsum(y, x[, "g"])[, 1] / precision), 1e-8)
  expect_close(c(f$covariance), 2 * 0.5 / precision, 1e-8)
})
