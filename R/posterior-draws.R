# Joint draws of f at rows. Up to some thousand rows they use the covariance matrix. For more rows they are paths: a
# draw of the prior at the training rows and at x is corrected by the data (Matheron's rule), without that matrix:
#
#   f(x) = f0(x) + k(x, X) (K + s2 W^{-1})^{-1} (y - f0(X) - noise),   f0 and noise drawn from the prior.
#
# A draw of the prior is a'v + e with v ~ N(0, I) and e ~ GP(0, E), where E is the residual prior covariance. e is drawn
# row after row in a random order, given the nearest of the earlier rows (Vecchia). This is the only approximation:
# given all earlier rows, paths have the distribution of predict(full_cov = TRUE).

# The number of rows up to which draws use the covariance matrix.
dense_draws <- 2000L

# The number of earlier rows that each row is given.
path_neighbours <- 30L

# Returns nrow(x) x n joint draws of f at the rows of x. `normal(rows, n)` returns a matrix of standard normals.
posterior_draws <- function(p, x, n) {
  by_paths <- nrow(x) > dense_draws && is.null(p$fit$likelihood) && !inherits(p, "grouped_near") &&
    (!inherits(p, "exact") || !is.null(p$rows))
  if (by_paths) return(posterior_paths(p, x, n, function(rows, n) matrix(stats::rnorm(rows * n), rows)))
  check_memory(16 * as.double(nrow(x))^2, sprintf("draws at %d rows", nrow(x)))
  at <- posterior_values(p, x, joint = TRUE)
  rows <- nrow(x)
  if (!rows) return(matrix(0, 0L, n))
  # Pivoting copes with a covariance that is singular to rounding: cov[q, q] = R'R, and rows of R beyond the rank are
  # rounding.
  R <- suppressWarnings(chol(at$cov, pivot = TRUE))
  R[seq_len(rows) > attr(R, "rank"), ] <- 0
  f <- matrix(0, rows, n)
  f[attr(R, "pivot"), ] <- crossprod(R, matrix(stats::rnorm(rows * n), rows))
  at$mean + f
}

posterior_paths <- function(p, x, nsim, normal) UseMethod("posterior_paths")

# Draws f = a'u + e with u ~ N(beta, s2 (C C')^{-1}). SoR has no e.
posterior_paths.points <- function(p, x, nsim, normal) {
  f <- p$factors
  u <- f$beta + sqrt(p$model$noise) * solve_t(f$C, normal(nrow(f$C), nsim))
  value <- times_features(p$model$kernel, p$z, f$L, x, u)
  if (p$sor) value else value + residual_paths(p$model, p$z, p$jitter, x, nsim, normal, p$control)$draws
}

# Uses some rows as inducing points, and corrects paths at all rows.
posterior_paths.exact <- function(p, x, nsim, normal) {
  kernel <- p$model$kernel
  used <- p$chosen %||% seq_along(p$rows$y)
  n <- length(used)
  z <- choose_points(p$x, min(200L, n), kernel, "greedy")$z
  all <- rbind(p$x, x)
  rest <- residual_paths(p$model, z, 1e-12, all, nsim, normal, p$control)
  f0 <- rest$draws + times_features(kernel, z, rest$L, all, normal(nrow(z), nsim))
  L <- cholesky_of(p)
  noise <- sqrt(p$model$noise / merged_weights(p$rows)[used]) * normal(n, nsim)
  gap <- p$rows$y[used] - f0[seq_len(n), , drop = FALSE] - noise
  weights <- solve_t(L, forwardsolve(L, gap))
  f0[-seq_len(n), , drop = FALSE] + in_blocks(x, function(x) native_kernel_matrix(kernel, x, p$x) %*% weights)
}

# Draws f = mean + r'delta + e(x) - u'(e + noise)_S with delta ~ N(0, (C C')^{-1}) and r = a - A_S u. These draws have
# the joint distribution of posterior_at().
posterior_paths.near <- function(p, x, nsim, normal) {
  data <- p$rows
  n <- nrow(data$x)
  near <- p$near
  delta <- solve_t(near$C, normal(nrow(near$C), nsim))
  all <- rbind(data$x, x)
  drawn <- residual_paths(p$model, p$z, near$jitter, all, nsim, normal, p$control)$draws +
    times_features(p$model$kernel, p$z, near$L, all, delta)
  # the engine's u is for rows times the roots of their weights
  noisy <- sqrt(merged_weights(data)) * drawn[seq_len(n), , drop = FALSE] + sqrt(p$model$noise) * normal(n, nsim)
  said <- predict_given(p, x, keep = TRUE)
  value <- said$mean + drawn[-seq_len(n), , drop = FALSE]
  for (j in seq_len(nrow(said$u))) {
    there <- said$rows[j, ] > 0L
    value[there, ] <- value[there, ] - said$u[j, there] * noisy[said$rows[j, there], ]
  }
  value
}

# Returns list(draws, L): draws of e at the rows of x, and the Cholesky factor L of the inducing points. A noise of 1e-6
# times the prior variance keeps equal rows distinct.
residual_paths <- function(model, z, jitter, x, nsim, normal, control) {
  n <- nrow(x)
  tiny <- 1e-6 * prior_most(model, x)
  rank <- sample.int(n)
  found <- native_near(z, list(x = x, y = numeric(n)), new_model(model$kernel, tiny), min(path_neighbours, n - 1L),
                       rank, jitter, control = control, keep = TRUE)
  draws <- sqrt(found$d) * normal(n, nsim)
  for (i in order(rank)) {
    p <- found$rows[, i]
    there <- p > 0L
    if (any(there)) draws[i, ] <- draws[i, ] + crossprod(found$u[there, i], draws[p[there], , drop = FALSE])
  }
  list(draws = draws, L = found$L)
}

# Returns a'u at the rows of x.
times_features <- function(kernel, z, L, x, u) {
  in_blocks(x, function(x) crossprod(forwardsolve(L, native_kernel_matrix(kernel, z, x)), u))
}
