# Transcribes the mathematics as naively as possible: kernels by a double loop, every matrix dense, every inverse by
# solve(), nothing shared with the package. Symbols are those of the theory vignette.
#
# A kernel here is a plain list(profile, lengthscale, variance, inputs). Everything also works on complex arguments and
# never conjugates, so that ref_derivative() can differentiate by a complex step: f'(x) = Im f(x + i h) / h without
# cancellation, hence to rounding for a tiny h.

ref_kernel <- function(profile, lengthscale, variance = 1, inputs = NULL) {
  list(profile = profile, lengthscale = lengthscale, variance = variance, inputs = inputs)
}

ref_profile <- function(profile, r2) {
  r <- sqrt(r2)
  r[Re(r2) <= 0] <- 0                        # the kink of Matern 1/2: derivative 0 by convention
  switch(profile,
    se = exp(-r2 / 2),
    matern12 = exp(-r),
    matern32 = (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
    matern52 = (1 + sqrt(5) * r + 5 / 3 * r2) * exp(-sqrt(5) * r)
  )
}

ref_k <- function(kernel, x, z = x) {
  if (inherits(kernel, "pfdtc_kernel")) return(ref_composite(kernel, x, z)) # see helper-kernels.R
  inputs <- if (is.null(kernel$inputs)) seq_len(ncol(x)) else kernel$inputs
  kernel$variance * ref_profile(kernel$profile, ref_squares(x, z, inputs, kernel$lengthscale))
}

# Returns r2, the sum over inputs of ((x_i - z_j) / lengthscale)^2, for each pair of rows.
ref_squares <- function(x, z, inputs, lengthscale) {
  lengthscale <- rep_len(lengthscale, length(inputs))
  r2 <- matrix(0, nrow(x), nrow(z))
  for (c in seq_along(inputs)) r2 <- r2 + (outer(x[, inputs[c]], z[, inputs[c]], "-") / lengthscale[c])^2
  unname(r2)
}

trace_of <- function(a) sum(diag(a))
ref_weights <- function(weights, x) if (is.null(weights)) rep(1, nrow(x)) else weights

# Returns log det of a symmetric matrix by elimination, because determinant() does not accept complex numbers.
ref_logdet <- function(a) {
  total <- 0
  for (j in seq_len(nrow(a))) {
    total <- total + log(a[j, j])
    rest <- seq_len(nrow(a))[-seq_len(j)]
    a[rest, rest] <- a[rest, rest] - outer(a[rest, j], a[j, rest]) / a[j, j]
  }
  total
}

ref_log_normal <- function(y, covariance) {
  -0.5 * (length(y) * log(2 * pi) + ref_logdet(covariance) + sum(y * solve(covariance, y)))
}

## The exact GP ------------------------------------------------------------------------------------

# A Gaussian process is a list of two functions, mean(x) and cov(x, z).
ref_exact <- function(x, y, kernel, noise, weights = NULL) {
  ky <- ref_k(kernel, x) + diag(noise / ref_weights(weights, x), nrow(x))
  inverse <- solve(ky)
  list(
    mean = function(new) drop(ref_k(kernel, new, x) %*% inverse %*% y),
    cov = function(new, other) {
      ref_k(kernel, new, other) - ref_k(kernel, new, x) %*% inverse %*% ref_k(kernel, x, other)
    },
    evidence = ref_log_normal(y, ky)
  )
}

ref_variance <- function(gp, new) diag(gp$cov(new, new))

## DTC, SoR, ELBO ----------------------------------------------------------------------------------

# The jitter is relative to the variance of a point; a vector has a jitter for each inducing point.
ref_kmm <- function(z, kernel, jitter = 0) {
  k <- ref_k(kernel, z)
  k + diag(diag(k) * rep_len(jitter, nrow(z)), nrow(z))
}

ref_q <- function(a, b, z, kernel, jitter = 0) {
  ref_k(kernel, a, z) %*% solve(ref_kmm(z, kernel, jitter), ref_k(kernel, z, b))
}

# Returns the DTC posterior, which is the exact one with q in place of k(x, X) and k(X, X), or the SoR posterior, where
# q also replaces k(x, x).
ref_dtc <- function(z, x, y, kernel, noise, weights = NULL, jitter = 0, sor = FALSE) {
  q <- function(a, b) ref_q(a, b, z, kernel, jitter)
  inverse <- solve(q(x, x) + diag(noise / ref_weights(weights, x), nrow(x)))
  prior <- if (sor) q else function(a, b) ref_k(kernel, a, b)
  list(
    mean = function(new) drop(q(new, x) %*% inverse %*% y),
    cov = function(new, other) prior(new, other) - q(new, x) %*% inverse %*% q(x, other)
  )
}

ref_elbo <- function(z, x, y, kernel, noise, weights = NULL, jitter = 0) {
  w <- ref_weights(weights, x)
  q <- ref_q(x, x, z, kernel, jitter)
  ref_log_normal(y, q + diag(noise / w, nrow(x))) -
    sum(w * (kernel$variance - diag(q))) / (2 * noise)
}

## Auxiliary distributions -------------------------------------------------------------------------

# Returns the SoR posterior on points u without a jitter; points that add nothing to the span must be omitted.
ref_nu_sor <- function(u, x, y, kernel, noise, weights = NULL) {
  w <- ref_weights(weights, x)
  kux <- ref_k(kernel, u, x)
  inverse <- solve(ref_k(kernel, u) + kux %*% (w * t(kux)) / noise, tol = 0)
  weight <- drop(inverse %*% kux %*% (w * y)) / noise
  list(
    mean = function(new) drop(ref_k(kernel, new, u) %*% weight),
    cov = function(new, other) ref_k(kernel, new, u) %*% inverse %*% ref_k(kernel, u, other)
  )
}

# Returns the exact posterior given some of the rows.
ref_nu_subset <- function(rows, x, y, kernel, noise, weights = NULL) {
  w <- ref_weights(weights, x)[rows]
  ref_exact(x[rows, , drop = FALSE], y[rows], kernel, noise, w)
}

## The pF divergence -------------------------------------------------------------------------------

# Returns the terms (I), (II) = IIa + IIb, (III) of Proposition 2 (theory vignette), whose sum is s2^2 d_pF^2. y, f at
# X and its covariances are scaled by the roots of the weights. `constant` is C(X), the part of (I) that is free of Z.
ref_pf_terms <- function(z, x, y, kernel, noise, nu, weights = NULL, jitter = 0) {
  n <- nrow(x)
  root <- diag(sqrt(ref_weights(weights, x)), n)
  kmm <- ref_kmm(z, kernel, jitter)
  kxm <- root %*% ref_k(kernel, x, z)
  kxx <- root %*% ref_k(kernel, x) %*% root
  y <- root %*% y
  mu_x <- root %*% nu$mean(x)
  mu_m <- nu$mean(z)
  nu_xx <- root %*% nu$cov(x, x) %*% root
  nu_mx <- nu$cov(z, x) %*% root
  nu_mm <- nu$cov(z, z)

  q_ <- kxm %*% solve(kmm)
  q <- q_ %*% t(kxm)
  shrink <- diag(n) - solve(q + noise * diag(n), q)          # I - B^{-1} Q
  s <- q %*% shrink %*% shrink
  second <- nu_xx + (mu_x - y) %*% t(mu_x - y)
  misfit <- mu_x - q_ %*% mu_m
  list(
    I = trace_of(second %*% (kxx - q)),
    IIa = trace_of(nu_xx %*% s),
    IIb = trace_of(nu_mm %*% t(q_) %*% s %*% q_) - 2 * trace_of(nu_mx %*% s %*% q_),
    III = drop(t(misfit) %*% s %*% misfit),
    constant = trace_of(second %*% kxx)
  )
}

ref_pf <- function(z, x, y, kernel, noise, nu, weights = NULL, jitter = 0, constant = FALSE) {
  terms <- ref_pf_terms(z, x, y, kernel, noise, nu, weights, jitter)
  terms$I + terms$IIa + terms$IIb + terms$III - if (constant) 0 else terms$constant
}

# Returns d_pF^2 by its definition, without Proposition 2 (jitter 0). On the index set P = (X, Z) with f_X = Hx f and H
# f = Kxm Kmm^{-1} f_Z, the log density of the posterior relative to the DTC posterior has the gradient g(f) = (Hx' W (y
# - Hx f) - H' W (y - H f)) / s2, and d_pF^2 is E_nu |S g(f)|^2 in the RKHS norm on P, S the covariance of the DTC
# posterior: S = K c, c = I - H' (H K H' + s2 / W)^{-1} H K.
ref_pf_definition <- function(z, x, y, kernel, noise, nu, weights = NULL) {
  n <- nrow(x)
  w <- diag(ref_weights(weights, x), n)
  p <- rbind(x, z)
  k <- ref_k(kernel, p)
  hx <- cbind(diag(n), matrix(0, n, nrow(z)))
  h <- cbind(matrix(0, n, n), ref_k(kernel, x, z) %*% solve(ref_k(kernel, z)))
  shrink <- diag(nrow(p)) - t(h) %*% solve(h %*% k %*% t(h) + noise * solve(w), h %*% k)
  slope <- shrink %*% (t(h) %*% w %*% h - t(hx) %*% w %*% hx)     # s2 c g(f) = slope f + start
  start <- shrink %*% (t(hx) - t(h)) %*% w %*% y
  centre <- slope %*% nu$mean(p) + start
  trace_of(k %*% slope %*% nu$cov(p, p) %*% t(slope)) + drop(t(centre) %*% k %*% centre)
}

# Returns white noise around the exact mean: independent with variance `share` noise / w_n at row n of x, and 0
# elsewhere. No row of x may be in z.
ref_nu_white <- function(share, x, y, kernel, noise, weights = NULL) {
  w <- ref_weights(weights, x)
  row_of <- function(a) match(data.frame(t(unname(a))), data.frame(t(unname(x))), nomatch = 0L)
  list(
    mean = ref_exact(x, y, kernel, noise, weights)$mean,
    cov = function(a, b) {
      i <- row_of(a)
      outer(i, row_of(b), function(i, j) ifelse(i == j & i > 0, share * noise / w[pmax(i, 1)], 0))
    }
  )
}

# Returns the objective under white noise, up to a constant.
ref_white <- function(z, x, y, kernel, noise, share = 1, weights = NULL, jitter = 0) {
  n <- nrow(x)
  root <- diag(sqrt(ref_weights(weights, x)), n)
  q <- root %*% ref_q(x, x, z, kernel, jitter) %*% root
  y <- root %*% y
  b <- q + noise * diag(n)
  shrink <- diag(n) - solve(b, q)
  noise^2 * drop(t(y) %*% solve(b, y)) +
    share * noise * (trace_of(root %*% ref_k(kernel, x) %*% root - q) + trace_of(q %*% shrink %*% shrink))
}

## Derivatives and pivots --------------------------------------------------------------------------

ref_derivative <- function(f, x, h = 1e-20) {
  gradient <- Re(x)
  for (i in seq_along(x)) {
    moved <- x + 0i
    moved[i] <- moved[i] + h * 1i
    gradient[i] <- Im(f(moved)) / h
  }
  gradient
}

ref_vfe_gradient <- function(z, x, y, kernel, noise, weights = NULL, jitter = 0) {
  value <- function(z, lengthscale, variance, noise) {
    kernel$lengthscale <- lengthscale
    kernel$variance <- variance
    -ref_elbo(z, x, y, kernel, noise, weights, jitter)
  }
  l <- kernel$lengthscale
  v <- kernel$variance
  list(
    z = ref_derivative(function(z) value(z, l, v, noise), z),
    log_lengthscale = ref_derivative(function(u) value(z, exp(u), v, noise), log(l)),
    log_variance = ref_derivative(function(u) value(z, l, exp(u), noise), log(v)),
    log_noise = ref_derivative(function(u) value(z, l, v, exp(u)), log(noise))
  )
}

# Returns list(pivots, trace) of pivoted Cholesky: up to m rows of x, each with the largest residual, and the residuals'
# trace after each. The first row is given, because all residuals of a stationary kernel are equal at first.
ref_pivots <- function(x, m, kernel, first = 1) {
  residual <- ref_k(kernel, x)
  pivots <- integer()
  trace <- numeric()
  for (i in seq_len(m)) {
    p <- if (i == 1) first else which.max(diag(residual))
    if (residual[p, p] <= 1e-10 * kernel$variance) break
    residual <- residual - outer(residual[, p], residual[p, ]) / residual[p, p]
    pivots <- c(pivots, p)
    trace <- c(trace, sum(diag(residual)))
  }
  list(pivots = pivots, trace = trace)
}
