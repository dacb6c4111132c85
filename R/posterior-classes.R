# Computes the posterior of several classes (multinomial()): K - 1 orthonormal contrasts of K functions with one kernel,
# on inducing points. `factors` has L, C, beta (a column for each contrast) and `inverse`, blocks of H^{-1}; H is the
# mode's Hessian. Distributions at rows are list(mean [n, K - 1], var [n, (K - 1)^2]), without constant means.

posterior_at.classes <- function(p, fun, joint = FALSE) {
  refuse_if(fun$kind != "values", "object", "a fit of several classes",
            message = "Slopes, terms and sums of f are not available for several classes.",
            hint = "Fit one class against the others with family = binomial().")
  at <- native_softmax_at(p$factors, p$z, p$model$kernel, fun$x, p$control, mean_weights(p$factors))
  list(mean = at$mean, var = with_rest(at$S, at$left))
}

# Adds the residual prior variance of each contrast to the covariance matrices in the rows of S.
with_rest <- function(S, left) {
  diagonal <- diagonals(as.integer(sqrt(ncol(S))))
  S[, diagonal] <- S[, diagonal] + pmax(left, 0)
  S
}

# The log likelihood of a row has the gradient g and minus the Hessian W. Its f has the covariance Q + R; R = `left` I
# is the residual prior covariance. Without the row, f has mean - Q (1 - W Q)^{-1} g and covariance Q (1 - W Q)^{-1} +
# R. A shift of the mean from the mode adds (1 - Q W)^{-1} (shift - Q s). The leverage is tr(W Q).
posterior_without.classes <- function(p) {
  sites <- sites_of_fit(p$fit, p$rows)
  at <- mode_again(p$fit, p$rows, sites)
  f <- native_softmax_at(at, p$z, p$fit$kernel, p$rows$x, p$control, cbind(at$beta, at$shift))$mean
  q <- ncol(at$beta)
  at$mean <- f[, seq_len(q), drop = FALSE]
  f_shift <- f[, -seq_len(q), drop = FALSE]
  leverage <- numeric(nrow(f))
  C <- sites$contrasts
  w <- sites$weight %||% rep(1, nrow(at$mean))
  share <- if (is.null(p$factors$shift)) 0 else share_of_shift(p$factors, at)
  for (n in seq_len(nrow(at$mean))) {
    Q <- matrix(at$S[n, ], q)
    p_n <- at$probability[n, ]
    mean <- drop(crossprod(C, p_n))
    g <- w[n] * (C[sites$y[n] + 1, ] - mean)
    W <- w[n] * (crossprod(C, p_n * C) - tcrossprod(mean))
    rest <- diag(q) - W %*% Q
    inverse <- tryCatch(solve(rest, tol = 1e-14), error = function(e) NaN * Q)
    cov <- Q %*% inverse
    at$mean[n, ] <- at$mean[n, ] - cov %*% g
    at$mean[n, ] <- at$mean[n, ] + share * crossprod(inverse, f_shift[n, ] - Q %*% at$slopes[, n])
    at$S[n, ] <- (cov + t(cov)) / 2
    leverage[n] <- q - sum(diag(rest))
  }
  list(mean = at$mean, var = with_rest(at$S, at$left), leverage = leverage)
}

posterior_certificate.classes <- row_parts.classes <- function(p, ...) refuse_classes(p$fit)
