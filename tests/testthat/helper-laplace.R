# Transcribes non-Gaussian responses: likelihoods, and the exact GP's Laplace posterior by dense matrices. `sites` is
# list(y, size, weight, offset), where the offset includes the constant mean.

# Returns the terms of log p without f, for each response.
log_constant <- function(likelihood, sites) engine_sites(likelihood, sites, 0)$constant

ref_site <- function(family, sites, f, theta = NULL) {
  f <- f + sites$offset
  y <- sites$y
  m <- if (is.null(sites$size)) rep(1, length(y)) else sites$size
  w <- if (is.null(sites$weight)) rep(1, length(y)) else sites$weight
  p <- stats::plogis(f)
  q <- stats::plogis(-f)
  out <- switch(family,
    logit = list(l = y * stats::plogis(f, log.p = TRUE) + (m - y) * stats::plogis(-f, log.p = TRUE),
                 g = y * q - (m - y) * p, W = m * p * q),
    probit = {
      side <- function(z) {
        r <- exp(stats::dnorm(z, log = TRUE) - stats::pnorm(z, log.p = TRUE))
        list(l = stats::pnorm(z, log.p = TRUE), g = r, W = r * (r + z))
      }
      a <- side(f)
      b <- side(-f)
      list(l = y * a$l + (m - y) * b$l, g = y * a$g - (m - y) * b$g, W = y * a$W + (m - y) * b$W)
    },
    log = list(l = y * f - exp(f), g = y - exp(f), W = exp(f)),
    nb = list(l = y * (f - log(theta)) - (y + theta) * log1p(exp(f) / theta),
              g = y - (y + theta) * exp(f) / (theta + exp(f)), W = (y + theta) * theta * exp(f) / (theta + exp(f))^2),
    student = {
      a <- ref_student_df * theta^2
      r <- y - f
      list(l = -(ref_student_df + 1) / 2 * log(1 + r^2 / a), g = (ref_student_df + 1) * r / (a + r^2),
           W = (ref_student_df + 1) * (a - r^2) / (a + r^2)^2)
    })
  lapply(out, `*`, w)
}

ref_student_df <- 4

# Returns list(f, mean, var, evidence) by Rasmussen and Williams (2006), algorithm 3.1, damped: f is the mode at the
# rows, mean and var are at the rows of `new`. `k` may be another covariance, such as a low-rank one.
ref_laplace <- function(x, sites, family, kernel, new = x, theta = NULL, k = function(a, b) ref_k(kernel, a, b)) {
  n <- nrow(x)
  K <- k(x, x)
  f <- alpha <- numeric(n)
  value <- function(alpha, f) sum(ref_site(family, sites, f, theta)$l) - sum(alpha * f) / 2
  best <- value(alpha, f)
  for (i in 1:300) {
    s <- ref_site(family, sites, f, theta)
    root <- sqrt(s$W)
    b <- s$W * f + s$g
    target <- b - root * solve(diag(n) + root * t(root * K), root * drop(K %*% b))
    step <- target - alpha
    t <- 1
    repeat {
      try <- alpha + t * step
      f_try <- drop(K %*% try)
      v <- value(try, f_try)
      if (is.finite(v) && v >= best - 1e-10 * abs(best)) break
      t <- t / 2
      if (t < 1e-10) break
    }
    moved <- max(abs(f_try - f))
    alpha <- try
    f <- f_try
    best <- v
    if (moved < 1e-12 * max(1, abs(f)) || t < 1e-10) break
  }
  s <- ref_site(family, sites, f, theta)
  root <- sqrt(s$W)
  R <- chol(diag(n) + root * t(root * K))
  K_new <- k(x, new)
  V <- backsolve(R, root * K_new, transpose = TRUE)
  list(f = f, mean = drop(crossprod(K_new, alpha)), var = diag(k(new, new)) - colSums(V^2),
       evidence = value(alpha, f) - sum(log(diag(R))))
}

# Returns problems of every family: list(x, z, new, kernel, family, sites, site = the engine's input, theta).
laplace_problems <- function() {
  cases <- expand.grid(family = c("logit", "probit", "log", "nb"), plain = c(TRUE, FALSE), stringsAsFactors = FALSE)
  quick(lapply(seq_len(nrow(cases)), function(i) {
    laplace_problem_of(cases$family[i], cases$plain[i], c("se", "matern32", "matern52")[1L + i %% 3L], i)
  }))
}

laplace_problem_of <- function(family, plain = TRUE, profile = "matern52", seed = 1, n = 25, m = 8) {
  with_seed(seed, {
    x <- spread_points(n, 2)
    count <- family %in% c("log", "nb")
    size <- if (!count && !plain) as.double(sample.int(5, n, TRUE))
    offset <- if (plain) numeric(n) else stats::rnorm(n) / 3
    f <- sin(x[, 1L]) + x[, 2L] / 3 + offset
    trials <- if (is.null(size)) 1 else size
    theta <- if (family == "nb") 1.7
    y <- switch(family, log = stats::rpois(n, exp(f)), nb = stats::rnbinom(n, size = theta, mu = exp(f)),
                stats::rbinom(n, trials, stats::plogis(f)))
    sites <- list(y = as.double(y), size = size, weight = if (!plain) stats::runif(n, 0.3, 2), offset = offset)
    list(x = x, z = spread_points(m, 2), new = rbind(spread_points(5, 2), 40), family = family, theta = theta,
         kernel = ref_kernel(profile, c(1.5, 2), 1.3), sites = sites,
         likelihood = as_likelihood(switch(family, logit = stats::binomial(), probit = stats::binomial("probit"),
                                           log = stats::poisson(), nb = nb(theta),
                                           student = student(ref_student_df, theta))))
  })
}

place_columns <- function(x) `colnames<-`(x, column_names(x))

pfdtc_kernel_of <- function(k, x) {
  if (inherits(k, "pfdtc_kernel")) return(place_kernel(k, place_columns(x)))
  kernel <- if (k$profile == "se") kernel_se(k$lengthscale, k$variance) else
    kernel_matern(c(matern12 = 1 / 2, matern32 = 3 / 2, matern52 = 5 / 2)[[k$profile]], k$lengthscale, k$variance)
  place_kernel(kernel, place_columns(x))
}

laplace_fit_of <- function(p, m = if (is.null(list(...)$inducing)) nrow(p$x), ...) {
  y <- if (is.null(p$sites$size)) p$sites$y else cbind(p$sites$y, p$sites$size - p$sites$y)
  kernel <- pfdtc_kernel_of(p$kernel, p$x)
  family <- switch(p$family, logit = stats::binomial(), probit = stats::binomial("probit"), log = stats::poisson(),
                   nb = nb(p$theta), student = student(ref_student_df, p$theta))
  pfdtc(p$x, y, m = m, kernel = kernel, hyper = "fixed", center = FALSE, family = family, weights = p$sites$weight,
        offset = if (any(p$sites$offset != 0)) p$sites$offset, ...)
}

# Expects the same posterior and evidence if each row has weight 2 and if each row occurs twice.
expect_doubled_alike <- function(p, fit_of, tolerance) {
  n <- length(p$sites$y)
  rows <- rep(seq_len(n), 2)
  twice <- replace(p, c("x", "sites"), list(p$x[rows, ], take_rows_of(p$sites, rows)))
  p$sites$weight <- rep(2, n)
  fits <- lapply(list(p, twice), fit_of, inducing = place_columns(p$x))
  at <- lapply(fits, predict, p$new, se.fit = TRUE)
  expect_equal(at[[1L]], at[[2L]], tolerance = tolerance, label = p$family)
  expect_equal(fits[[1L]]$evidence, fits[[2L]]$evidence, tolerance = tolerance, label = p$family)
}
