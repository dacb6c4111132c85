# Computes the exact posterior of all rows, or of a subsample.

posterior_at.exact <- function(p, fun, joint = FALSE) {
  L <- if (joint || !isTRUE(fun$mean_only)) cholesky_of(p)
  if (fun$kind != "values") {
    K <- fun$cross(p$x, seq_len(fun$n))
    return(list(mean = drop(crossprod(K, p$factors$alpha)),
                var = if (is.null(L)) NA * fun$prior else fun$prior - colSums(forwardsolve(L, K)^2)))
  }
  rows <- length(p$factors$alpha)
  work <- 2 * fun$n * as.double(rows)^2
  if (!is.null(L) && work >= slow_operations[["sds"]]) {
    tell_classed("slow", sprintf(paste(
      "Standard deviations of %.0f predictions, exact for %d rows, take about %.0f minutes on one thread.",
      "pfdtc(..., like = fit, m = 200, neighbours = 40) is 30 times as fast, with larger standard deviations."), fun$n,
      rows, work / 2e10 / 60))
  }
  if (!is.null(L) && work >= slow_operations[["silent"]]) {
    line <- stage_line("predict()", p$control$progress)
    line(sprintf("standard deviations of %.0f rows given %d", as.double(fun$n), rows))
  }
  factors <- replace(p$factors, "L", list(L))
  at <- native_exact_predict(factors, p$x, p$model$kernel, fun$x, p$control)
  list(mean = at$mean, var = at$variance, cov = if (joint) {
    native(ffi_covariance, engine_posterior(factors, p$x, kernel = p$model$kernel), NULL, fun$x, 0L)
  })
}

# A session keeps its last Cholesky factors here, outside the fits, so that saved fits have no n x n numbers. Another
# session computes the factor again, on the same computer with the same bits.
kept_factors <- list2env(list(list = list()), parent = emptyenv())

# Returns the exact posterior of the rows as list(alpha, minus_evidence, model, weights), without its Cholesky factor.
exact_factors <- function(rows, model, control) {
  made <- native_exact(rows, model, control)
  factors <- c(made[c("alpha", "minus_evidence")], list(model = model[c("kernel", "noise")], weights = rows$weights))
  keep_factor(rows$x, factors, made$L)
  factors
}

keep_factor <- function(x, factors, L) {
  all <- c(list(list(of = list(x, factors$model, factors$weights), L = L)), kept_factors$list)
  bytes <- cumsum(vapply(all, function(one) 8 * as.double(length(one$L)), 0))
  kept_factors$list <- all[seq_along(all) == 1L | bytes <= most_kept]
}

# Returns the Cholesky factor of an exact posterior: from a fit of version 0.1.0, from the session, or computed anew.
cholesky_of <- function(p) {
  if (!is.null(p$factors$L)) return(p$factors$L)
  key <- list(p$x, p$factors$model, p$factors$weights)
  for (one in kept_factors$list) if (identical(one$of, key)) return(one$L)
  check_memory(8 * as.double(nrow(p$x))^2, sprintf("the exact posterior of %d rows", nrow(p$x)))
  L <- native_exact(list(x = p$x, y = numeric(nrow(p$x)), weights = p$factors$weights), p$factors$model, p$control)$L
  keep_factor(p$x, p$factors, L)
  L
}

# Returns the exact posterior for the data and hyperparameters of a fit, whatever its own posterior is.
exact_of_fit <- function(fit) {
  data <- fit$data
  check_memory(8 * as.double(nrow(data$x))^2, sprintf("the exact posterior of %d rows", nrow(data$x)))
  model <- model_of(fit)
  new_posterior("exact", model, fit, data, x = data$x, factors = native_exact(data, model, fit$control))
}

# Returns list(mean, q, left, g, W, rest, sure, group) for the rows. With the weight W_i of merged row i (`group`) and B
# = (K + s2 W^{-1})^{-1}, f has the mean y_i - s2 / W_i (B y)_i and the variance q = s2 / W_i (1 - s2 / W_i B_ii). The
# results g and -W are derivatives of the log likelihood. A row with the share p of W_i has rest = 1 - leverage = (1 -
# p) + p s2 / W_i B_ii, and is `sure` if p = 1. Rows not in a subsample have leverage 0, q = 0 and the variance `left`.
row_parts.exact <- function(p) {
  apart <- responses_used(p)
  all <- is.null(p$chosen)
  W <- if (all) merged_weights(p$rows) else apart$w[p$chosen]
  y <- if (all) p$rows$y else apart$y[p$chosen]
  seen <- if (all) seq_along(apart$y) else p$chosen
  group <- if (all) apart$group else seq_along(seen)
  noise <- p$model$noise
  if (as.double(length(y))^3 >= slow_operations[["silent"]]) {
    line <- stage_line("leave-one-out", p$control$progress)
    line(sprintf("precisions of %d rows", length(y)))
  }
  # C code computes the diagonal of B = (K + noise W^{-1})^{-1} from L^{-1}, some columns at a time.
  own <- noise / W * native(ffi_exact_precision, cholesky_of(p), engine_control(nrow(p$x), p$control))
  off <- noise / W * p$factors$alpha
  w <- apart$w[seen]
  share <- w / W[group]
  part <- list(mean = (y - off)[group], q = (noise / W * (1 - own))[group], left = numeric(length(group)),
               g = w / noise * (apart$y[seen] - y[group] + off[group]), W = w / noise,
               rest = (1 - share) + share * own[group], sure = share == 1)
  if (!all) {
    others <- posterior_values(p, p$rows$x)
    none <- numeric(length(apart$y))
    part <- Map(replace, list(others$mean, none, others$var, none, apart$w / noise, none + 1, none == 0), list(seen),
                part)
    names(part) <- c("mean", "q", "left", "g", "W", "rest", "sure")
  }
  c(part, list(group = apart$group))
}

# Returns the noise variances s2 / W of the rows of an exact posterior, where W are their weights.
rows_noise <- function(p) p$model$noise / merged_weights(p$rows)[p$chosen %||% seq_len(nrow(p$x))]

squared_moves.exact <- function(p) {
  D <- rows_noise(p)
  check_memory(16 * as.double(length(D))^2, sprintf("the inverse matrix of %d rows", length(D)))
  H <- diag(1, length(D)) - D * chol2inv(t(cholesky_of(p))) # H = I - s2 W^{-1} (K + s2 W^{-1})^{-1}
  moves <- colSums(H^2 / D) * D^2
  if (is.null(p$chosen)) moves else replace(numeric(nrow(p$rows$x)), p$chosen, moves)
}

covariance_with_rows.exact <- function(p, fun) {
  L <- cholesky_of(p)
  cov <- rows_noise(p) * solve_t(L, features_of(fun, p$x, L))
  all <- matrix(0, nrow(p$rows$x), fun$n)
  all[p$chosen %||% seq_len(nrow(cov)), ] <- cov
  all
}

few_rows <- 50L

# Returns list(fit, linear, mean): the mean leave-one-out log densities by the exact posterior, a linear model and a
# constant, which may predict few rows better. Returns NULL unless there are 4 to 49 rows, none of them merged.
small_n_check <- function(p) {
  data <- p$rows
  if (data$n >= few_rows || nrow(data$x) < 4L || !is.null(data$group)) return(NULL)
  w <- merged_weights(data)
  loo <- posterior_without(p)
  linear <- linear_design(data$x)
  list(fit = mean(stats::dnorm(data$y, loo$mean, sqrt(loo$var + p$model$noise / w), log = TRUE)),
       linear = mean(loo_linear(linear, data$y, w)), mean = mean(loo_linear(linear[, 1L, drop = FALSE], data$y, w)))
}

# Returns the leave-one-out log density of a linear model with weights w_i, or -Inf for too few rows or a leverage of 1.
# With residual e_i and leverage h_i, the error without row i is e_i / (1 - h_i), with variance s_i^2 / (w_i (1 - h_i)).
# s_i^2 is the residual variance of the linear model without row i.
loo_linear <- function(X, y, w) {
  fit <- stats::lm.wfit(X, y, w)
  free <- fit$df.residual - 1L
  if (free < 1L) return(-Inf)
  h <- rowSums(qr.qy(fit$qr, diag(1, length(y), fit$rank))^2)
  e <- sqrt(w) * fit$residuals
  if (any(h > 1 - 1e-8)) return(-Inf)
  s2 <- pmax((sum(e^2) - e^2 / (1 - h)) / free, 1e-300)
  stats::dnorm(e / (1 - h), sd = sqrt(s2 / (1 - h)), log = TRUE) + log(w) / 2
}

# Warns if a linear model or a constant predicts n rows better than the fit. The gain in leave-one-out log density per
# row must exceed 0.05 and 2 / n, because smaller gains may be chance.
warn_small_n <- function(check, n) {
  if (is.null(check)) return(invisible())
  other <- if (check$linear >= check$mean) "linear" else "mean"
  ahead <- check[[other]] - check$fit
  if (!is.finite(ahead) || ahead <= max(0.05, 2 / n)) return(invisible())
  warn_classed("small", sprintf(paste(
    "%s predicts the %d rows better: its leave-one-out log density is higher by %.2f per row. With so few rows, prefer",
    "it."), if (other == "linear") "A linear model" else "The mean of the response", n, ahead), check)
}

# Draws f jointly at rows: by the covariance matrix, or for many rows by posterior_paths(). There, for an exact
# posterior, the data y at X correct a draw from the prior (Matheron's rule; W has the weights of the rows):
#
#   f(x) = f0(x) + k(x, X) (K + s2 W^{-1})^{-1} (y - f0(X) - noise),   f0 and noise drawn from the prior.
#
# A draw f0(x) is a'v + e(x), with inducing points z, L L' = k(z, z), a = L^{-1} k(z, x), v ~ N(0, I) and e ~ GP(0,
# residual prior covariance). e is drawn row after row in random order, given the nearest earlier rows (approximately).

dense_draws <- 2000L

# Returns an nrow(x) x n matrix of n joint draws of f at the rows of x.
posterior_draws <- function(p, x, n) {
  rows <- nrow(x)
  by_paths <- rows > dense_draws && is.null(p$fit$likelihood) && !inherits(p, "grouped_near") &&
    (!inherits(p, "exact") || !is.null(p$rows))
  if (by_paths) return(posterior_paths(p, x, n, function(rows, n) matrix(stats::rnorm(rows * n), rows)))
  check_memory(16 * as.double(rows)^2, sprintf("draws at %d rows", rows))
  at <- posterior_values(p, x, joint = TRUE)
  if (!rows) return(matrix(0, 0L, n))
  # Factorise the covariance, which may be singular, with pivoting. Rows of R beyond the rank are rounding errors.
  R <- suppressWarnings(chol(at$cov, pivot = TRUE))
  R[seq_len(rows) > attr(R, "rank"), ] <- 0
  f <- matrix(0, rows, n)
  f[attr(R, "pivot"), ] <- crossprod(R, matrix(stats::rnorm(rows * n), rows))
  at$mean + f
}

posterior_paths <- function(p, x, nsim, normal) UseMethod("posterior_paths")

# Draws f(x) = a'u + e(x), where a = L^{-1} k(z, x), u = L^{-1} f(z), L L' = k(z, z), and e is f minus its prior mean
# given f(z) (SoR: e = 0). u has the posterior N(beta, noise (C C')^{-1}), with beta and C in p$factors.
posterior_paths.points <- function(p, x, nsim, normal) {
  f <- p$factors
  u <- f$beta + sqrt(p$model$noise) * solve_t(f$C, normal(nrow(f$C), nsim))
  value <- times_features(p$model$kernel, p$z, f$L, x, u)
  if (p$sor) value else value + residual_paths(p$model, p$z, p$jitter, x, nsim, normal, p$control)$draws
}

# Draws f from the prior: at up to 200 inducing points, then f minus its mean given these. Corrects draws by the data.
posterior_paths.exact <- function(p, x, nsim, normal) {
  kernel <- p$model$kernel
  used <- p$chosen %||% seq_along(p$rows$y)
  n <- length(used)
  z <- choose_points(p$x, min(200L, n), kernel, "greedy")$z
  all <- rbind(p$x, x)
  rest <- residual_paths(p$model, z, 1e-12, all, nsim, normal, p$control)
  f0 <- rest$draws + times_features(kernel, z, rest$L, all, normal(nrow(z), nsim))
  L <- cholesky_of(p)
  noise <- sqrt(rows_noise(p)) * normal(n, nsim)
  gap <- p$rows$y[used] - f0[seq_len(n), , drop = FALSE] - noise
  weights <- solve_t(L, forwardsolve(L, gap))
  f0[-seq_len(n), , drop = FALSE] + in_blocks(x, function(x) native_kernel_matrix(kernel, x, p$x) %*% weights)
}

# Draws f(x) = mean + a'delta + e(x) - u'(a'delta + e + noise at the neighbours of x). a is L^{-1} k(z, x), e is f minus
# its prior mean given f(z), u has weights of neighbours, and delta ~ N(0, (C C')^{-1}) is L^{-1} f(z) minus its mean.
posterior_paths.near <- function(p, x, nsim, normal) {
  data <- p$rows
  n <- nrow(data$x)
  near <- p$near
  delta <- solve_t(near$C, normal(nrow(near$C), nsim))
  all <- rbind(data$x, x)
  drawn <- residual_paths(p$model, p$z, near$jitter, all, nsim, normal, p$control)$draws +
    times_features(p$model$kernel, p$z, near$L, all, delta)
  # Multiply the draws by the roots of the rows' weights: the neighbours' weights u are for responses times these roots.
  noisy <- sqrt(merged_weights(data)) * drawn[seq_len(n), , drop = FALSE] + sqrt(p$model$noise) * normal(n, nsim)
  said <- predict_given(p, x, keep = TRUE)
  value <- said$mean + drawn[-seq_len(n), , drop = FALSE]
  for (j in seq_len(nrow(said$u))) {
    there <- said$rows[j, ] > 0L
    value[there, ] <- value[there, ] - said$u[j, there] * noisy[said$rows[j, there], ]
  }
  value
}

# Returns list(draws, L): draws from the prior of f minus its mean given f(z), at each row of x given at most 30 earlier
# rows, and the Cholesky factor L of k(z, z). Noise of 1e-6 times the prior variance keeps equal rows distinct.
residual_paths <- function(model, z, jitter, x, nsim, normal, control) {
  n <- nrow(x)
  tiny <- 1e-6 * prior_most(model, x)
  rank <- sample.int(n)
  found <- native_near(z, list(x = x, y = numeric(n)), new_model(model$kernel, tiny), min(30L, n - 1L), rank,
                       jitter, control = control, keep = TRUE)
  draws <- sqrt(found$d) * normal(n, nsim)
  for (i in order(rank)) {
    p <- found$rows[, i]
    there <- p > 0L
    if (any(there)) draws[i, ] <- draws[i, ] + crossprod(found$u[there, i], draws[p[there], , drop = FALSE])
  }
  list(draws = draws, L = found$L)
}

# Returns a'u at the rows of x, where a = L^{-1} k(z, x) and L L' = k(z, z) for inducing points z.
times_features <- function(kernel, z, L, x, u) {
  in_blocks(x, function(x) crossprod(forwardsolve(L, native_kernel_matrix(kernel, z, x)), u))
}
