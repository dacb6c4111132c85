# Conformal intervals: how far responses have been from what the other rows predict, in sds, says how wide to be.

# Beyond so many rows one of them moves no prediction that could be told from its neighbours.
jackknife_rows <- 1000L

# cbind(fit, lwr, upr) of new responses of weight 1, in units of y, from what posterior_at() says of rows$x.
conformal_band <- function(fit, rows, p, level) {
  loo <- loo_rows(fit)
  score <- abs(standardised(loo))
  used <- which(is.finite(score))
  k <- ceiling(level * (length(used) + 1) * (1 - 1e-12))  # of scores and one more, which may be anything
  few <- length(used) <= jackknife_rows && is.null(fit$near) && is.null(fit$chosen)
  half <- if (k > length(used)) {
    matrix(Inf, length(p$mean), 2L)
  } else if (few) {
    jackknife_ends(fit, rows$x, p$var, loo, score, used, k)
  } else {
    sort(score[used], partial = k)[k] * sqrt(p$var + noise_at(fit, rows$x)) * matrix(1, length(p$var), 2L)
  }
  mean <- p$mean[rows$index] + rows$offset
  band <- cbind(fit = mean, lwr = mean - half[rows$index, 1L], upr = mean + half[rows$index, 2L])
  rownames(band) <- rows$names
  band
}

# How far the ends of the jackknife+ are below and above the mean, a row a row of x. Without row i a prediction is, with
# kappa the posterior covariance of f there and at the row, W the row's precision and h its leverage,
#   mean - kappa W (y_i - mu_i) / (1 - h),  variance + kappa^2 W / (1 - h).
jackknife_ends <- function(fit, x, var, loo, score, used, k) {
  data <- training_data(fit)
  apart <- rows_apart(data)
  part <- influence_parts(fit, data, apart)
  W <- precision_beside(fit, part$left, apart$w) / in_units(fit, 1, 2)
  all <- if (is.null(data$prior_weights)) seq_along(W) else which(data$prior_weights > 0)
  kept <- match(used, all)
  blocks <- split(seq_along(var), (seq_along(var) - 1L) %/% 512L)
  total <- var + noise_at(fit, x)
  ends <- lapply(blocks, function(i) {
    kappa <- in_units(fit, posterior_cross(fit, data, x[i, , drop = FALSE]), 2)[apart$group[kept], , drop = FALSE]
    shift <- -kappa * W[kept] * unname(loo$residual[used])
    width <- score[used] * sqrt(rep(total[i], each = length(kept)) + kappa^2 * (W / part$rest)[kept])
    kth <- function(v) apply(v, 2L, function(one) sort(one, partial = k)[k])
    cbind(kth(width - shift), kth(width + shift))
  })
  do.call(rbind, ends)
}

# Posterior covariance of f at the rows of the data (down) and at those of x, as far as rows can tell, in units of the
# cleaned y.
posterior_cross <- function(fit, data, x) {
  model <- model_of(fit)
  if (!is.null(fit$x)) {
    L <- fit$factors$L
    K <- forwardsolve(L, native_kernel_matrix(model$kernel, fit$x, x))
    return(model$noise / merged_weights(data) * backsolve(L, K, upper.tri = FALSE, transpose = TRUE))
  }
  half <- function(x) {
    forwardsolve(fit$factors$C, forwardsolve(fit$factors$L, native_kernel_matrix(model$kernel, fit$inducing, x)))
  }
  model$noise * crossprod(half(data$x), half(x))
}
