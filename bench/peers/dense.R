# Implements the exact GP and its approximations as directly as their definitions: every matrix is N x N, and no
# function of the package is used. For comparison with other packages it also adds what those add to the definitions:
#
#   jitter = list(noise =, site =, points =, digits =, ulps =)
#     noise    added to the noise variance
#     site     added to the covariance of training rows with equal inputs
#     points   added to the diagonal of k(Z, Z)
#     digits   squared distances rounded to so many decimals
#     ulps     entries of k off by so many units of the last place, at random
#
# A task is list(x, y, new, profile, lengthscale, variance, noise, mean, z).

no_jitter <- list(noise = 0, site = 0, points = 0, digits = NULL, ulps = 0)

dense_profile <- function(profile, r2) {
  r <- sqrt(r2)
  switch(profile,
    se = exp(-r2 / 2),
    matern12 = exp(-r),
    matern32 = (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
    matern52 = (1 + sqrt(5) * r + 5 * r2 / 3) * exp(-sqrt(5) * r))
}

dense_distances <- function(task, x, z) {
  r2 <- matrix(0, nrow(x), nrow(z))
  for (j in seq_len(ncol(x))) r2 <- r2 + (outer(x[, j], z[, j], "-") / task$lengthscale[j])^2
  r2
}

dense_kernel <- function(task, x, z, jitter) {
  r2 <- dense_distances(task, x, z)
  if (!is.null(jitter$digits)) r2 <- round(r2, jitter$digits)
  k <- task$variance * dense_profile(task$profile, r2)
  if (jitter$ulps > 0) {
    u <- matrix(stats::runif(length(k), -1, 1), nrow(k)) * jitter$ulps * .Machine$double.eps
    if (nrow(x) == nrow(z)) u[lower.tri(u)] <- t(u)[lower.tri(u)]
    k <- k * (1 + u)
  }
  k
}

# Returns the posterior for y ~ N(mean, C). `cross` is cov(f(new), f(X)), `prior` is var f(new).
dense_posterior <- function(task, C, cross, prior) {
  r <- task$y - task$mean
  half <- forwardsolve(t(chol(C)), cbind(r, t(cross)))
  white <- half[, 1L]
  rest <- half[, -1L, drop = FALSE]
  list(mean = task$mean + drop(crossprod(rest, white)), sd = sqrt(pmax(prior - colSums(rest^2), 0)),
       log_lik = -0.5 * (length(r) * log(2 * pi) + as.numeric(determinant(C)$modulus) + sum(white^2)))
}

dense_exact <- function(task, jitter = no_jitter) {
  K <- dense_kernel(task, task$x, task$x, jitter)
  same <- dense_distances(task, task$x, task$x) == 0
  C <- K + jitter$site * same + diag(task$noise + jitter$noise, nrow(K))
  dense_posterior(task, C, dense_kernel(task, task$new, task$x, jitter), task$variance)
}

# Returns Q = A'A in parts, with A = L^{-1} k(Z, .) and L L' = k(Z, Z) + jitter.
dense_nystrom <- function(task, jitter) {
  L <- t(chol(dense_kernel(task, task$z, task$z, jitter) + diag(jitter$points, nrow(task$z))))
  A <- forwardsolve(L, dense_kernel(task, task$z, task$x, jitter))
  a <- forwardsolve(L, dense_kernel(task, task$z, task$new, jitter))
  list(train = crossprod(A), cross = crossprod(a, A), new = colSums(a^2))
}

# FITC has the diagonal of K in the training covariance, and a new row is a further row with its own diagonal.
dense_fitc <- function(task, jitter = no_jitter) {
  Q <- dense_nystrom(task, jitter)
  lambda <- task$variance - diag(Q$train) + task$noise + jitter$noise
  dense_posterior(task, Q$train + diag(lambda), Q$cross, task$variance)
}

# DTC has no k(x, x) - Q(x, x) in the training covariance, but a new row has it. In SoR no row has it.
dense_dtc <- function(task, jitter = no_jitter, prior = task$variance) {
  Q <- dense_nystrom(task, jitter)
  dense_posterior(task, Q$train + diag(task$noise + jitter$noise, nrow(task$x)), Q$cross, prior)
}

dense_sor <- function(task, jitter = no_jitter) dense_dtc(task, jitter, dense_nystrom(task, jitter)$new)

# VFE has DTC's posterior, and its bound of the evidence is log N(y | 0, Q + s2 I) - tr(K - Q) / (2 s2).
dense_vfe <- function(task, jitter = no_jitter) {
  result <- dense_dtc(task, jitter)
  left <- sum(task$variance - diag(dense_nystrom(task, jitter)$train))
  result$log_lik <- result$log_lik - left / (2 * (task$noise + jitter$noise))
  result
}
