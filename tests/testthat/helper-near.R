# Computes inducing points with neighbours by their definition, with dense matrices. y, A and E = K - Q are scaled by
# the roots of the weights. For e ~ N(0, E), the rows of F decorrelate e + noise from earlier rows, so that
# y = A'u + N(0, V), V = (F'F)^{-1}; f(x) = r'u + u'y_S + N(0, left).

# `parents` and `near` have the neighbours of rows and of new rows, like the result of native_neighbours().
ref_near <- function(z, x, y, kernel, noise, weights, jitter, parents, near, new) {
  n <- nrow(x)
  root <- sqrt(ref_weights(weights, x))
  e <- function(a, b) ref_k(kernel, a, b) - ref_q(a, b, z, kernel, jitter)
  ex <- e(x, x) * outer(root, root)
  ys <- root * y
  L <- t(chol(ref_kmm(z, kernel, jitter)))
  A <- forwardsolve(L, ref_k(kernel, z, x)) * rep(root, each = nrow(z))
  to_white <- matrix(0, n, n)
  for (i in seq_len(n)) {
    p <- parents[, i][parents[, i] > 0]
    u <- solve_spd(ex[p, p, drop = FALSE] + diag(noise, length(p)), ex[p, i])
    d <- ex[i, i] + noise - sum(ex[i, p] * u)
    to_white[i, i] <- 1 / sqrt(d)
    to_white[i, p] <- -u / sqrt(d)
  }
  Fi <- solve(to_white, tol = 0)
  ky <- crossprod(A) + tcrossprod(Fi)
  beta <- A %*% solve_spd(ky, ys)
  P_inverse <- diag(nrow(z)) - A %*% solve_spd(ky, t(A))
  a <- forwardsolve(L, ref_k(kernel, z, new))
  cross <- e(x, new) * root
  enew <- e(new, new)
  rows <- lapply(seq_len(nrow(new)), function(i) {
    s <- near[, i][near[, i] > 0]
    es <- cross[s, i, drop = FALSE]
    u <- solve_spd(ex[s, s, drop = FALSE] + diag(noise, length(s)), es)
    r <- a[, i] - drop(A[, s, drop = FALSE] %*% u)
    list(c(mean = sum(u * ys[s]) + sum(r * beta), left = enew[i, i] - sum(es * u),
           far = sum(r * (P_inverse %*% r))), r, replace(numeric(n), s, u))
  })
  U <- matrix(vapply(rows, `[[`, numeric(n), 3), n)
  R <- matrix(vapply(rows, `[[`, numeric(nrow(z)), 2), nrow(z))
  rows <- do.call(rbind, lapply(rows, `[[`, 1))
  # Compute e(x) - u'(e + noise)_S of all new rows, a linear map of e at all points and noise.
  left <- enew - crossprod(cross, U) - crossprod(U, cross) + t(U) %*% (ex + diag(noise, n)) %*% U
  list(mean = rows[, 1], var_near = rows[, 2], var_far = rows[, 3], var = rows[, 2] + rows[, 3],
       cov = left + t(R) %*% P_inverse %*% R, evidence = ref_log_normal(ys, ky), beta = drop(beta),
       P_inverse = P_inverse)
}

solve_spd <- function(a, b) if (nrow(a)) solve(a, b, tol = 0) else array(0, dim = dim(as.matrix(b)))

# Returns the mean and both parts of the variance at the rows of x, computed by the C code.
near_parts <- function(near, data, z, model, x, control = NULL) {
  p <- new_posterior("near", model, NULL, data, z = z, near = near, control = control)
  predict_given(p, x)[c("mean", "var_near", "var_far")]
}

# Returns the package's posterior on a problem of helper-problems.R, and its parts.
near_case <- function(p, s, s_train, control = NULL, jitter = 1e-12, rank = with_seed(5, sample.int(nrow(p$x)))) {
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  data <- list(x = p$x, y = p$y, weights = p$weights)
  near <- near_posterior(data, p$z, new_model(kernel, p$noise), s, s_train, rank, jitter, control)
  c(near_parts(near, data, p$z, new_model(kernel, p$noise), p$new, control),
    list(near = near, data = data, kernel = kernel, rank = rank, evidence = near$evidence))
}

ref_near_case <- function(p, s, s_train, got) {
  found <- function(...) native_neighbours(got$kernel, p$x, ...)
  ref_near(p$z, p$x, p$y, p$kernel, p$noise, p$weights, got$near$jitter,
           found(min(s_train, nrow(p$x)), rows = seq_len(nrow(p$x)), rank = got$rank), found(pmin(s, nrow(p$x)), p$new),
           p$new)
}

# Expects small errors relative to the prior sd and variance, and of the evidence relative to its size.
expect_near <- function(got, expected, variance, tolerance, info) {
  expect_lt(max(abs(got$mean - expected$mean)), tolerance * sqrt(variance), label = paste("mean", info))
  expect_lt(max(abs(got$var_near + got$var_far - expected$var)), tolerance * variance, label = paste("variance", info))
  expect_lt(abs(got$evidence - expected$evidence), tolerance * max(1, abs(expected$evidence)),
            label = paste("evidence", info))
}
draw_paths <- function(fit, x, nsim, normal) {
  fit$center + in_units(fit, posterior_paths(posterior_of(fit), x, nsim, normal))
}
