# The posterior of several classes (multinomial()): K - 1 orthonormal contrasts of K functions with one kernel, on
# inducing points. `factors` has the engine's L, C, beta (a column for each contrast), and `inverse`, blocks of H^{-1}.
# Distributions at rows are list(mean [n, K - 1], var [n, (K - 1)^2]), without constant means (response-classes.R).

posterior_at.classes <- function(p, fun, joint = FALSE) {
  if (fun$kind != "values") {
    abort_input("object", "a fit of several classes", "a fit with one latent function",
                message = "Slopes, terms and sums of f do not exist for a fit of several classes.",
                hint = "Fit one class against the others with family = binomial().")
  }
  at <- native_softmax_at(p$factors, p$z, p$model$kernel, fun$x, p$control, mean_weights(p$factors))
  list(mean = at$mean, var = with_rest(at$S, at$left))
}

# Adds the residual prior variance of each contrast to the covariance matrices in the rows of S.
with_rest <- function(S, left) {
  diagonal <- diagonals(as.integer(sqrt(ncol(S))))
  S[, diagonal] <- S[, diagonal] + pmax(left, 0)
  S
}

# A row's log likelihood has slope g and curvature W; Q is the covariance of f that rows can reduce. Without the row, f
# has mean - Q (1 - W Q)^{-1} g and covariance Q (1 - W Q)^{-1} plus the rest. If the mean is shifted from the mode, (1
# - Q W)^{-1} (shift - Q s) is added to the mean, see mean_weights(). The leverage is tr(W Q).
posterior_without.classes <- function(p, groups = NULL) {
  if (!is.null(groups)) stop("internal: groups of rows of several classes")
  at <- classes_at_mode(p)
  q <- ncol(at$mean)
  share <- if (is.null(p$factors$shift)) 0 else share_of_shift(p$factors, at)
  for (n in seq_len(nrow(at$mean))) {
    Q <- matrix(at$S[n, ], q)
    part <- row_of_classes(at, n)
    rest <- diag(q) - part$W %*% Q
    inverse <- tryCatch(solve(rest, tol = 1e-14), error = function(e) NaN * Q)
    cov <- Q %*% inverse
    at$mean[n, ] <- at$mean[n, ] - cov %*% part$g
    at$mean[n, ] <- at$mean[n, ] + share * crossprod(inverse, at$f_shift[n, ] - Q %*% at$slopes[, n])
    at$S[n, ] <- (cov + t(cov)) / 2
    at$leverage[n] <- q - sum(diag(rest))
  }
  list(mean = at$mean, var = with_rest(at$S, at$left), leverage = at$leverage)
}

# Returns the contrasts at the rows of the fit, at the mode, without searching it again.
classes_at_mode <- function(p) {
  sites <- sites_of_fit(p$fit, p$rows)
  at <- laplace_at(p$rows$x, sites, p$fit$kernel, p$z, p$fit$jitter, p$control, p$factors, want = 1L, maxit = 0L)
  f <- native_softmax_at(at, p$z, p$fit$kernel, p$rows$x, p$control, cbind(at$beta, at$shift))$mean
  own <- seq_len(ncol(at$beta))
  c(at[c("probability", "slopes", "shift", "S", "left")], list(
    mean = f[, own, drop = FALSE], f_shift = f[, -own, drop = FALSE], sites = sites, leverage = numeric(nrow(f))))
}

# Returns slope g and curvature W of a row's log likelihood, in contrasts.
row_of_classes <- function(at, n) {
  p <- at$probability[n, ]
  w <- if (is.null(at$sites$weight)) 1 else at$sites$weight[n]
  C <- at$sites$contrasts
  mean <- drop(crossprod(C, p))
  list(g = w * (C[at$sites$y[n] + 1, ] - mean), W = w * (crossprod(C, p * C) - tcrossprod(mean)))
}

# Returns draws of the contrasts at the rows of x: an array n x (K - 1) x nsim.
draw_classes <- function(p, x, nsim) {
  q <- ncol(p$factors$beta)
  normal <- function(rows, n) matrix(stats::rnorm(rows * n), rows)
  u <- c(mean_weights(p$factors)) + solve_t(p$factors$C, normal(nrow(p$factors$C), nsim))
  m <- nrow(p$factors$beta)
  out <- array(0, c(nrow(x), q, nsim))
  for (j in seq_len(q)) {
    out[, j, ] <- times_features(p$model$kernel, p$z, p$factors$L, x, u[(j - 1L) * m + seq_len(m), , drop = FALSE])
    out[, j, ] <- out[, j, ] + residual_paths(p$model, p$z, p$jitter, x, nsim, normal, p$control)$draws
  }
  out
}

row_parts.classes <- function(p) {
  abort_input("model", "a fit of several classes", "a fit with one latent function",
              message = "This does not exist for a fit of several classes.",
              hint = "hatvalues(), residuals() and predict(type = \"loo\") do.")
}

posterior_certificate.classes <- function(p, fun, ...) row_parts.classes(p)
