# Tests every rounding allowance in the certificates. Errors of the same kind, but of 0.01 or more in size, are put into
# problems with one inducing point whose certificates are tight without errors. Without the allowance, an exact value
# would lie outside its interval.

# Returns the posterior and norms without rounding (E, w etc. by dense solves) for k = exp(-r^2 / 2), one inducing point
# at 0 with `jitter`, rows x with weights w, responses y and noise s2.
tight_problem <- function(x, y, s2, new, w = rep(1, length(x)), jitter = 0) {
  k <- function(a, b) exp(-outer(a, b, "-")^2 / 2)
  root <- sqrt(w)
  L <- sqrt(1 + jitter)
  A <- root * k(x, 0)[, 1] / L
  K <- root * t(root * k(x, x))
  E <- K - outer(A, A)
  G <- sum(A^2)
  ys <- root * y
  beta <- sum(A * ys) / (s2 + G)
  wx <- solve(K + diag(s2, length(x)), ys)
  kx <- root * k(x, new)[, 1]
  norm <- function(u) sqrt(max(sum(u * (E %*% u)), 0))
  lam <- max(eigen(E, symmetric = TRUE)$values)
  list(
    kernel = list(profile = "se", inputs = 1L, lengthscale = 1, variance = 1), x = x, y = ys, new = new, s2 = s2,
    A = A, K = K, E = E, a = k(new, 0)[1] / L, e = kx - A * k(new, 0)[1] / L, G = G,
    posterior = list(L = matrix(L), G = matrix(G), C = matrix(sqrt(s2 + G)), beta = beta),
    norms = list(weight = max(w), spread = 1, slack = 0, growth = 0, c = sum(ys^2) / s2, t = sum(diag(E)), lam = lam,
                 w_E = norm(wx), w_norm = sqrt(sum(wx^2)), beta_error = 0, alpha = abs(beta) / L,
                 Psi = matrix(sum(A * (E %*% A)))),
    mean = sum(kx * wx), var = 1 - sum(kx * solve(K + diag(s2, length(x)), kx)))
}

tight_certificate <- function(p, new = p$new, crossing = NULL) {
  certify_with(p$posterior, p$norms, matrix(0), new_model(p$kernel, p$s2), values_at(p$kernel, matrix(new)), crossing)
}

# Expects that `p`, made with errors, has a valid certificate. Without errors the certificate is tight, so only the
# allowance for rounding can make it valid.
expect_allowed <- function(p, new = p$new, info = NULL, crossing = NULL) {
  r <- tight_certificate(p, new, crossing)
  eps <- 1e-12
  expect_lte(abs(r$mean - p$mean), r$mean_error + eps, label = paste("error of the mean,", info))
  expect_lte(r$var_lower, p$var + eps, label = paste("lower end of the variance,", info))
  expect_gte(r$var_upper, p$var - eps, label = paste("upper end of the variance,", info))
}

# Returns a problem with a row next to the inducing point and a new row on its other side. The correlation under E of
# these two rows is within 0.3 % of -1, and h has the opposite sign. A second row, at the inducing point itself, makes
# the posterior mean 0.
opposite <- function(s2 = 0.25) {
  d <- 0.05
  w <- 1e-4
  tight_problem(c(-d, 0), c(1, -exp(-d^2 / 2) / w), s2, d, c(1, w))
}

test_that("the problem without errors has a valid and tight certificate", {
  p <- opposite()
  r <- tight_certificate(p)
  expect_allowed(p, info = "as it is")
  expect_lt(r$mean_error, 1.005 * abs(r$mean - p$mean))
})

test_that("certificates allow for errors of the factor of s2 I + G in h, by both bounds of its norm, and the SoR sd", {
  g <- 0.06
  for (by_groups in c(TRUE, FALSE)) {
    for (sign in c(1, -1)) {
      p <- opposite()
      p$norms$growth <- g
      p$posterior$C[] <- sqrt(p$s2 + p$G * (1 + sign * g))
      if (!by_groups) p$norms$Psi[] <- 1e6
      expect_allowed(p, info = paste("factor", by_groups, sign))
      # Also move the forms C_x'G C_x and C_x'Psi C_x.
      p$posterior$G[] <- p$G * (1 - g)
      if (by_groups) p$norms$Psi <- p$norms$Psi * (1 - g)
      expect_allowed(p, info = paste("factor and forms", by_groups, sign))
    }
  }
  # Without residual variance, the SoR variance is the whole variance.
  for (sign in c(1, -1)) {
    p <- tight_problem(0, 1, 0.25, 0)
    p$norms$growth <- g
    p$posterior$C[] <- sqrt(p$s2 + p$G * (1 + sign * g))
    expect_allowed(p, info = paste("SoR", sign))
  }
})

test_that("certificates allow for errors of beta and of the feature at the new row", {
  p <- tight_problem(0, 1, 0.25, 0.7)
  for (sign in c(1, -1)) {
    moved <- p
    delta <- 0.01
    moved$norms$beta_error <- (p$s2 + p$G) * delta
    moved$posterior$beta <- p$posterior$beta + sign * delta
    expect_allowed(moved, info = paste("beta", sign))
    # The computed k(z, x) is that of another row, larger or smaller by r.
    r <- 1e-3
    moved <- p
    moved$norms$slack <- r
    expect_allowed(moved, new = sqrt(-2 * log(p$a + sign * r)), info = paste("feature", sign))
  }
  # The computed k(z, x) is 1, as if there were no residual variance, where E(x, x) is 2 r.
  p <- tight_problem(0, 1, 0.25, sqrt(-2 * log(1 - r)))
  p$norms$slack <- r
  expect_allowed(p, new = 0, info = "feature of 1")
})

test_that("certificates allow for errors of the rows, which change G, beta and h", {
  r <- 1e-3
  as_computed <- function(p, A) {
    G <- sum(A^2)
    beta <- sum(A * p$y) / (p$s2 + G)
    p$posterior <- list(L = matrix(1), G = matrix(G), C = matrix(sqrt(p$s2 + G)), beta = beta)
    p$norms$slack <- r
    p$norms$Psi[] <- sum(A * ((p$K - outer(A, A)) %*% A))
    p$norms$w_E <- p$norms$w_E + sqrt(r) * p$norms$w_norm
    p$norms$alpha <- abs(beta)
    p
  }
  for (s2 in c(0.01, 0.25, 4)) {
    expect_allowed(as_computed(tight_problem(0, 1, s2, 0), 1 - r), info = paste("row below", s2))
    expect_allowed(as_computed(tight_problem(sqrt(-2 * log(1 - r)), 1, s2, 0), 1), info = paste("row above", s2))
    # Responses cancel, so that beta consists of errors only; |w|_E is as in posterior_norms().
    p <- tight_problem(c(0, 0), c(1, -1), s2, 0)
    wrong <- as_computed(p, c(1, 1 - r))
    made <- c(wrong$posterior, list(Ay = wrong$posterior$beta * (s2 + wrong$posterior$G[1]), yy = 2, k_sum = 2,
                                    t = max(2 - wrong$posterior$G[1], 0), rss = 2))
    data <- list(x = matrix(c(0, 0)), y = c(1, -1), weights = NULL)
    norms <- with_replaced(list(rounding_slack = function(m, n) r), {
      posterior_norms(made, matrix(0), data, new_model(p$kernel, s2), tight = TRUE, inner = list(w_E = Inf))
    })
    wrong$norms$w_E <- min(wrong$norms$w_E, norms$w_E)
    expect_allowed(wrong, info = paste("rows that cancel", s2))
  }
})

test_that("certificates allow for kernel values that are wrong by 4 eps", {
  y <- 1e10
  for (s2 in c(1e-3, 0.1)) {
    p <- tight_problem(0, y, s2, 0)
    for (sign in c(1, -1)) {
      part <- sign * 4 * .Machine$double.eps
      p$mean <- y / (1 + s2) * (1 + part * (1 + 1 / (1 + s2)))    # k(x, x_1) above, k(x_1, x_1) below
      p$var <- s2 / (1 + s2) - part * (2 / (1 + s2) + 1 / (1 + s2)^2)
      r <- tight_certificate(p)
      expect_lte(abs(r$mean - p$mean), r$mean_error)
      expect_lte(r$var_lower, p$var)
      expect_gte(r$var_upper, p$var)
    }
  }
})

test_that("certificates allow for errors of kernel values of both signs, which add up over orthogonal rows", {
  n <- 64
  x <- matrix(1)
  for (i in 1:6) x <- rbind(cbind(x, x), cbind(x, -x)) # each k(x, z) is a sum of 64 terms of size 1, 0 unless x = z
  k <- kernel_linear(1, seq_len(n))
  unit <- kernel_value_error(k)
  expect_gt(unit, (2.5 + n / 2) * .Machine$double.eps) # worst case of centring, scaling and adding 64 products
  for (s2 in c(1, 1e3)) {
    w <- rep(1e10, n)
    h <- n / (n + s2)
    posterior <- list(L = diag(8, n), G = diag(n, n), C = diag(sqrt(n + s2), n), beta = 8 * w)
    norms <- list(weight = 1, spread = 1, slack = 0, growth = 0, c = sum(w^2) * (n + s2), t = 0, lam = 0, w_E = 0,
                  w_norm = sqrt(sum(w^2)), beta_error = 0, alpha = 0, Psi = diag(0, n))
    r <- certify_with(posterior, norms, x, new_model(k, s2), values_at(k, x[1, , drop = FALSE]))
    wrong <- unit * n # error of k(x_1, x_n), n = 1, ..., 64, and, with the other sign, of a row of K
    expect_equal(r$mean, n * w[1])
    expect_gte(r$mean_error, wrong * sum(w) * (1 + h))
    expect_gte(r$var_upper, n * (1 - h) + 2 * wrong * h)
  }
})

test_that("certificates allow for correlated effects of a group that almost cancel, and so lose digits of k(x, z)", {
  n <- 40
  at <- 2^17 # with correlation almost -1 and scale 1 / at, a slope times an input near `at` cancels the intercept
  p <- 5e4
  x <- at + with_seed(1, sample(-9:9, n, TRUE))
  g <- rep(1:4, n / 4)
  new <- data.frame(x = at + c(-7.5, 2, 20), g = factor(c(1, 3, 2)))
  v <- at^2 / 25
  kernel <- kernel_group(~ g, ~ 1 + x, variance = v, scale = 1 / at)
  kernel$parameters <- p
  kernel <- kernel_matern(3 / 2, 2, 1, inputs = ~ x) + kernel
  # The correlation is -cos(a), a = pi / (1 + p). These digits are not lost: 1 - t cos(a) = (1 - t) + 2 t sin(a / 2)^2.
  a <- pi / (1 + p)
  k <- function(x, z, g, h) {
    rest <- function(x) -(x - at) / at + 2 * x / at * sin(a / 2)^2
    d <- sqrt(3) * abs(outer(x, z, "-")) / 2
    (1 + d) * exp(-d) + outer(g, h, "==") * v * (outer(rest(x), rest(z)) + sin(a)^2 * outer(x, z) / at^2)
  }
  K <- k(x, x, g, g)
  y <- with_seed(2, stats::rnorm(n)) + g
  kx <- k(x, new$x, g, as.integer(new$g))
  for (noise in c(0.01, 1)) {
    fit <- pfdtc(y ~ x, data.frame(x, y, g = factor(g)), kernel = kernel, noise = noise, hyper = "fixed",
                 center = FALSE, scale = FALSE)
    r <- certify(fit, new, "fast")
    mean <- drop(crossprod(kx, solve(K + diag(noise, n), y)))
    expect_gt(max(abs(r$mean - mean)), 1e-10) # the digits are lost
    expect_true(all(r$mean_lower <= mean & mean <= r$mean_upper))
    sd <- sqrt(diag(k(new$x, new$x, 1:3, 1:3)) - colSums(kx * solve(K + diag(noise, n), kx)))
    expect_true(all(r$sd_lower <= sd & sd <= r$sd_upper))
    expect_lt(max(r$mean_upper - r$mean_lower), 1) # the prior sd is about 2
  }
})

# Returns a violation, above 0, of the certificate `r` by the exact mean and sd.
beyond <- function(r, mean, sd) {
  max(r$mean_lower - mean, mean - r$mean_upper, r$sd_lower - sd, sd - r$sd_upper)
}

test_that("certificates allow for rotated inputs x B, which lose digits where x is far from 0", {
  at <- 2^26
  u <- with_seed(3, cbind(sample(-20:20, 40), sample(-20:20, 40)) / 8)
  new <- with_seed(4, cbind(sample(-20:20, 5), sample(-20:20, 5)) / 8)
  y <- with_seed(5, stats::rnorm(40))
  by <- matrix(c(1 / 3, -0.7, 0.9, 1.1), 2) # x B rounds, but not differences of x
  kernel <- replace(kernel_matern(1 / 2, c(0.8, 1.2), 1, inputs = 1:2), "rotation", list(list(inputs = 1:2, by = by)))
  k <- function(u, v) {
    d <- function(j) outer(drop(u %*% by[, j]), drop(v %*% by[, j]), "-") / c(0.8, 1.2)[j]
    exp(-sqrt(d(1)^2 + d(2)^2))
  }
  P <- k(u, u) + diag(0.01, 40)
  mean <- drop(k(new, u) %*% solve(P, y))
  sd <- sqrt(1 - rowSums(k(new, u) * t(solve(P, k(u, new)))))
  fit <- function(...) {
    pfdtc(at + u, y, kernel = kernel, noise = 0.01, hyper = "fixed", center = FALSE, scale = FALSE, ...)
  }
  for (made in list(fit(), fit(m = 40))) {
    r <- certify(made, at + new, "fast")
    expect_gt(max(abs(r$mean - mean)), 1e-9) # the digits are lost
    expect_lte(beyond(r, mean, sd), 0)
    expect_lt(max(r$mean_upper - r$mean_lower), 1)
  }
  # Laplace's approximation with W = 100 at all rows is the Gaussian posterior.
  family <- gp_family(~ -50 * (y - f)^2, kappa = 0)
  laplace <- pfdtc(at + u, y, kernel = kernel, hyper = "fixed", family = family, center = 0, m = 40)
  expect_lte(beyond(certify(laplace, at + new, "fast"), mean, sd), 0)
})

test_that("certificates allow for effects that almost cancel at new rows alone", {
  n <- 40
  d <- with_seed(6, data.frame(a = sample(1:9, n, TRUE), b = sample(1:9, n, TRUE), g = factor(rep(1:4, n / 4))))
  d$y <- with_seed(7, stats::rnorm(n))
  for (at in 2^c(18, 44)) {
    new <- data.frame(a = at + c(1, 3), b = at + c(0, 5), g = factor(c(1, 3), 1:4))
    group <- kernel_group(~ g, ~ 0 + a + b, variance = 1, scale = 1)
    group$parameters <- 12 * at # effects of a and b have the correlation -cos(angle), almost -1
    angle <- pi / (1 + group$parameters)
    kernel <- kernel_matern(3 / 2, 3, 1, inputs = ~ a) + group
    k <- function(r, s) {
      d <- sqrt(3) * abs(outer(r$a, s$a, "-")) / 3
      (1 + d) * exp(-d) + outer(r$g, s$g, "==") * (outer(r$a - r$b, s$a - s$b) + 2 * sin(angle / 2)^2 *
                                                     (outer(r$a, s$b) + outer(r$b, s$a)))
    }
    P <- k(d, d) + diag(n)
    mean <- drop(k(new, d) %*% solve(P, d$y))
    sd <- sqrt(diag(k(new, new)) - rowSums(k(new, d) * t(solve(P, k(d, new)))))
    fit <- function(...) pfdtc(y ~ a + b, d, kernel = kernel, hyper = "fixed", ...)
    normal <- gp_family(~ -(y - f)^2 / 2, kappa = 0) # Laplace's approximation is then exact
    for (made in list(fit(noise = 1, m = 9, center = FALSE, scale = FALSE), fit(family = normal, m = n, center = 0))) {
      expect_lte(beyond(certify(made, new, "fast"), mean, sd), 0)
    }
  }
})

test_that("if s2 is below the rounding errors of G, only the prior bounds hold", {
  p <- tight_problem(0.5, 1, 1e-3, 0.3)
  for (inner in c(0.3, 0.9, 2, 1e3)) {
    p$norms$growth <- inner * p$s2 / p$G
    p$posterior$C[] <- sqrt(p$s2 / 2)
    expect_allowed(p, info = paste("inner", inner))
    expect_equal(tight_certificate(p)$var_lower, 0)
  }
})

test_that("certificates allow for errors of the sums h'e, e'B^-1 e and e'e", {
  p <- tight_problem(0.845, 1, 50, 2.146)
  g <- 0.2
  h <- p$A * p$a / (p$s2 + p$G)
  crossing <- list(cross = h * p$e, gain = p$e^2 / (p$s2 + p$G), size = p$e^2)
  as_it_is <- tight_certificate(p, crossing = crossing)
  expect_allowed(p, info = "crossing as it is", crossing = crossing)
  expect_lt(as_it_is$var_upper - as_it_is$var_lower, 2e-4)
  p$norms$growth <- g
  for (sign in c(1, -1)) {
    for (what in list(c(1, 0), c(0, 1), c(1, 1), c(1, -1))) {
      moved <- crossing
      moved$cross <- moved$cross + sign * what[1] * g * abs(h * p$e)
      moved$gain <- moved$gain + sign * what[2] * g * p$e^2 / p$s2
      expect_allowed(p, info = paste(c("crossing", what, sign), collapse = " "), crossing = moved)
    }
  }
})

# Compares the norms of a posterior on a point other than 0, where k(z, x) errs by as much as slack and jitter `j`
# allow, or whose factor L errs, with those of the rows themselves.
expect_norms_above <- function(p, z, L, j, info) {
  n <- length(p$x)
  s2 <- p$s2
  ys <- p$y
  v <- (ys - p$A * p$posterior$beta) / s2
  A <- exp(-(p$x - z)^2 / 2) / L
  G <- sum(A^2)
  beta <- sum(A * ys) / (s2 + G)
  made <- list(L = matrix(L), G = matrix(G), Ay = sum(A * ys), yy = sum(ys^2), k_sum = n, t = max(sum(1 - A^2), 0),
               C = matrix(sqrt(s2 + G)), beta = beta, rss = sum((ys - A * beta)^2))
  norms_of <- function(made) {
    with_replaced(list(rounding_slack = function(m, n) j, rounding_growth = function(m, n) j), {
      posterior_norms(made, matrix(z), list(x = matrix(p$x), y = ys, weights = NULL), new_model(p$kernel, s2),
                      tight = TRUE, inner = list(w_E = Inf))
    })
  }
  norms <- norms_of(made)
  above <- function(got, want, what) expect_gte(got * (1 + 1e-12), want, label = paste(what, info))
  above(norms$t, p$norms$t, "t")
  above(norms$lam, p$norms$lam, "lam")
  above(norms$c, sum(ys * v), "c")
  above(norms$v_E, sqrt(sum(v * (p$E %*% v))), "v_E")
  above(norms$w_E, p$norms$w_E, "w_E")
  above(norms$w_norm, p$norms$w_norm, "w_norm")
  # Compute beta from a factor and a sum with errors.
  for (sign in c(1, -1)) {
    made$beta <- made$Ay * (1 + sign * j) / (s2 + G * (1 - sign * j))
    above(norms_of(made)$beta_error * (1 + 2 * j), abs((s2 + G) * made$beta - made$Ay), "beta_error")
  }
}

test_that("norms of a posterior whose rows err are above those of the rows themselves", {
  j <- 1e-3
  L <- sqrt(1 + j)
  for (x in list(0.5, 0, 3.03, c(0.5, 0), c(-0.05, 0.5))) {
    for (y in list(c(1, 1), c(1, -1))) {
      for (s2 in c(1e-4, 1e-3, 0.1, 10)) {
        p <- tight_problem(x, y[seq_along(x)], s2, 0.3, jitter = j)
        for (sign in c(1, -1)) {
          info <- paste(c("x", x, "y", y, "s2", s2, "sign", sign), collapse = " ")
          expect_norms_above(p, 0, L - sign * j / 2, j, paste("L:", info))
          k <- exp(-x[1]^2 / 2) + sign * j
          if (length(x) == 1 && k < 1) expect_norms_above(p, x - sqrt(-2 * log(k)), L, j, paste("k:", info))
        }
      }
    }
  }
})

test_that("corrected means allow for errors of products with K and of sums over k(X, x)", {
  # With one row at the only point there is no residual variance, and |h| = sqrt(k) / (2 sqrt(s2)) is reached.
  p <- tight_problem(0, 1, 1, 0)
  factors <- c(p$posterior, list(Ay = 1, yy = 1, k_sum = 1, t = 0, rss = 0.25))
  data <- list(x = matrix(0), y = 1, weights = NULL)
  norms <- with_seed(1, posterior_norms(factors, matrix(0), data, new_model(p$kernel, p$s2), tight = TRUE))
  reference <- list(factors = factors, inducing = matrix(0), kernel = p$kernel, noise = p$s2, scale = 1, norms = norms)
  g <- reference$norms$growth <- 1e-3
  v <- 0.3
  error <- with_replaced(list(product_growth = function(n, block) g),
                         residual_rounding(reference, data$y, c(v = v, r = 0)))
  sums <- native_kernel_cross_matvec
  corrected <- function(product = 0, sum = 0) {
    with_replaced(list(native_kernel_cross_matvec = function(...) sums(...) + sum), {
      state <- list(v = v, residual = 1 - 2 * v - product, error = error, passes = 0L, went = numeric())
      corrected_mean(reference, correct_residual(reference, data, state), data,
                     values_at(model_of(reference)$kernel, matrix(0)))
    })
  }
  for (sign in c(1, -1)) {
    for (at in list(c(g * v, 0), c(0, g * v), c(g * v, g * v))) {
      r <- corrected(-sign * at[1], sign * at[2])
      expect_lte(abs(r$mean - p$mean), r$mean_error)
    }
  }
})

test_that("bounds are printed without zeros that are no digits of the bound", {
  # print() would show the first upper bound as 1.0520, although it was rounded to 1.052.
  x <- data.frame(row = 1:2, mean_lower = c(1.05112, 0.999312), mean_upper = c(1.05112, 0.999312))
  expect_identical(lapply(round_bounds(x, 4, TRUE)[-1L], trimws),
                   list(mean_lower = c("1.051", "0.9993"), mean_upper = c("1.052", "0.9994")))
  table <- structure(x, class = c("pfdtc_table", "data.frame"), legend = "Bounds.")
  shown <- utils::capture.output(print(table, digits = 4))
  expect_match(shown[3], " 1.051 +1.052$")
  expect_match(shown[4], " 0.9993 +0.9994$")
  fit <- gp_vfe(dist ~ speed, cars, m = 5, kernel = kernel_se(5, 500), noise = 200, hyper = "fixed")
  certified <- with_seed(1, certify(fit, data.frame(speed = c(4, 10, 25)), effort = "fast"))
  shown <- paste(utils::capture.output(print(certified)), collapse = "\n")
  expect_match(shown, paste(trimws(round_bounds(certified, 4, TRUE)$mean_upper), collapse = " .*"))
})

test_that("a share below half a percent is printed as below 1 %, also a share of 0", {
  expect_identical(show_share(c(0, 0.005, 0.0051, 0.5, NA)), c("< 1 %", "< 1 %", "1 %", "50 %", NA))
})
