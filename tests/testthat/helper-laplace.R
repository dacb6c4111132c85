# Plain transcriptions for responses that are not Gaussian: likelihoods, and the exact process's Laplace posterior by
# dense matrices. `sites`: list(y, size, weight, offset), offset with the constant mean in it.

ref_site <- function(family, sites, f, theta = NULL) {
  f <- f + sites$offset
  y <- sites$y
  m <- if (is.null(sites$size)) rep(1, length(y)) else sites$size
  w <- if (is.null(sites$weight)) rep(1, length(y)) else sites$weight
  p <- stats::plogis(f)
  q <- stats::plogis(-f)
  out <- switch(family,
    logit = list(l = y * stats::plogis(f, log.p = TRUE) + (m - y) * stats::plogis(-f, log.p = TRUE), g = y * q - (m - y) * p,
                 W = m * p * q),
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
              g = y - (y + theta) * exp(f) / (theta + exp(f)), W = (y + theta) * theta * exp(f) / (theta + exp(f))^2))
  lapply(out, `*`, w)
}

# Rasmussen and Williams (2006), algorithm 3.1, damped: list(f, at = list(mean, var), evidence) without constants, f the
# mode at the rows, `at` that of the rows of `new`.
ref_laplace <- function(x, sites, family, kernel, new = x, theta = NULL) {
  n <- nrow(x)
  K <- ref_k(kernel, x, x)
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
  K_new <- ref_k(kernel, x, new)
  V <- backsolve(R, root * K_new, transpose = TRUE)
  list(f = f, mean = drop(crossprod(K_new, alpha)), var = diag(ref_k(kernel, new, new)) - colSums(V^2),
       evidence = value(alpha, f) - sum(log(diag(R))))
}
