# Joint draws at very many points, by paths: a draw of the prior at the points and the rows is corrected by what the
# data say of it, which is linear in it (Matheron's rule), so that no covariance matrix of the points is made:
#
#   f(x) = f0(x) + k(x, X) (K + s2 W^{-1})^{-1} (y - f0(X) - noise),   f0 and noise drawn from the prior.
#
# A draw of the prior is a'v, v ~ N(0, I), and one of what the inducing points leave, e ~ GP(0, E): point after point in
# a random order, each given the nearest of those before it (Vecchia). That is where paths are an approximation: with
# all earlier points in place of the nearest they have the law of predict(full_cov = TRUE).

# Points up to which a draw is made from the covariance matrix itself.
dense_draws <- 2000L

# Earlier points that each is given.
path_neighbours <- 30L

# nsim columns: f without offset at the rows of x, in units of y. `normal(n, nsim)`: a matrix of standard normals.
draw_paths <- function(fit, x, nsim, normal = function(n, nsim) matrix(stats::rnorm(n * nsim), n)) {
  draw <- if (!is.null(fit$x)) paths_exact else if (!is.null(fit$near)) paths_near else paths_far
  fit$center + in_units(fit, draw(fit, x, nsim, normal))
}

# f = a'u + e with u ~ N(beta, s2 (C C')^{-1}); of SoR without e.
paths_far <- function(fit, x, nsim, normal) {
  model <- model_of(fit)
  f <- fit$factors
  u <- f$beta + sqrt(model$noise) * backsolve(f$C, normal(nrow(f$C), nsim), upper.tri = FALSE, transpose = TRUE)
  value <- times_features(model$kernel, fit$inducing, f$L, x, u)
  if (gp_family(fit)$sor) return(value)
  value + residual_paths(model, fit$inducing, fit$jitter, x, nsim, normal, fit$control)$draws
}

# The rows among the inducing points, as many as are worth it, and paths corrected at all rows.
paths_exact <- function(fit, x, nsim, normal) {
  model <- model_of(fit)
  data <- training_data(fit)
  used <- if (is.null(fit$chosen)) seq_along(data$y) else fit$chosen
  n <- length(used)
  z <- choose_points(fit$x, min(200L, n), model$kernel, "greedy")$z
  all <- rbind(fit$x, x)
  rest <- residual_paths(model, z, 1e-12, all, nsim, normal, fit$control)
  f0 <- rest$draws + times_features(model$kernel, z, rest$L, all, normal(nrow(z), nsim))
  L <- fit$factors$L
  noise <- sqrt(model$noise / merged_weights(data)[used]) * normal(n, nsim)
  gap <- data$y[used] - f0[seq_len(n), , drop = FALSE] - noise
  weights <- backsolve(L, forwardsolve(L, gap), upper.tri = FALSE, transpose = TRUE)
  said <- in_blocks(x, function(x) native_kernel_matrix(model$kernel, x, fit$x) %*% weights)
  f0[-seq_len(n), , drop = FALSE] + said
}

# mean + r'delta + e(x) - u'(e + noise)_S with delta ~ N(0, (C C')^{-1}), r = a - A_S u: the joint law of
# covariance_near().
paths_near <- function(fit, x, nsim, normal) {
  model <- model_of(fit)
  data <- near_rows(fit)
  n <- nrow(data$x)
  near <- fit$near
  delta <- backsolve(near$C, normal(nrow(near$C), nsim), upper.tri = FALSE, transpose = TRUE)
  all <- rbind(data$x, x)
  rest <- residual_paths(model, fit$inducing, near$jitter, all, nsim, normal, fit$control)$draws
  drawn <- rest + times_features(model$kernel, fit$inducing, near$L, all, delta)
  # rows times the roots of their weights, as the engine's u has them
  noisy <- sqrt(merged_weights(data)) * drawn[seq_len(n), , drop = FALSE] + sqrt(model$noise) * normal(n, nsim)
  said <- native_near_predict(near, fit$inducing, data, model, near$neighbours, x, fit$control, keep = TRUE)
  value <- said$mean + drawn[-seq_len(n), , drop = FALSE]
  for (j in seq_len(nrow(said$u))) {
    there <- said$rows[j, ] > 0L
    value[there, ] <- value[there, ] - said$u[j, there] * noisy[said$rows[j, there], ]
  }
  value
}

# Draws of e at the rows of x, and the factor L of the inducing points: list(draws, L). Noise of a millionth of the
# prior variance keeps equal points apart.
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

# a'u at the rows of x
times_features <- function(kernel, z, L, x, u) {
  in_blocks(x, function(x) crossprod(forwardsolve(L, native_kernel_matrix(kernel, z, x)), u))
}

# f of the rows of x, some thousands at a time
in_blocks <- function(x, f) {
  blocks <- split(seq_len(nrow(x)), (seq_len(nrow(x)) - 1L) %/% 2048L)
  do.call(rbind, unname(lapply(blocks, function(i) f(x[i, , drop = FALSE]))))
}
