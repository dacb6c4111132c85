# Conformal intervals, whose width follows from leave-one-out residuals in units of their sd.

# For more rows than these, a prediction without a row is taken to equal the prediction with it.
jackknife_rows <- 1000L

# Returns cbind(fit, lwr, upr) for new responses of weight 1, in units of y. `p`: list(mean, var) of f at rows$x.
conformal_band <- function(fit, rows, p, level) {
  loo <- loo_rows(fit)
  score <- abs(standardised(loo))
  used <- which(is.finite(score))
  k <- ceiling(level * (length(used) + 1) * (1 - 1e-12))  # of the scores and the new row's score, which is unknown
  few <- length(used) <= jackknife_rows && is.null(fit$near) && is.null(fit$chosen)
  half <- if (k > length(used)) {
    matrix(Inf, length(p$mean), 2L)
  } else if (is_exact(fit)) {
    ends_by_row(fit, rows$x, p$var, loo, used, k, full_conformal)
  } else if (few) {
    ends_by_row(fit, rows$x, p$var, loo, used, k, jackknife_plus)
  } else {
    sort(score[used], partial = k)[k] * sqrt(p$var + noise_at(fit, rows$x)) * matrix(1, length(p$var), 2L)
  }
  mean <- p$mean[rows$index] + rows$offset
  band <- cbind(fit = mean, lwr = mean - half[rows$index, 1L], upr = mean + half[rows$index, 2L])
  rownames(band) <- rows$names
  band
}

# Returns the distances of the ends below and above the mean, a row for each row of x: the k-th smallest of the
# distances that each training row gives. `rule` uses its leave-one-out residual and sd, precision W, 1 - leverage, and
# kappa, the posterior covariance of f there (down) and at x (across).
ends_by_row <- function(fit, x, var, loo, used, k, rule) {
  data <- training_data(fit)
  p <- posterior_of(fit)
  part <- without_rounded(row_parts(p))
  all <- if (is.null(data$prior_weights)) seq_along(part$W) else which(data$prior_weights > 0)
  kept <- match(used, all)
  row <- list(residual = unname(loo$residual[used]), sd = unname(sqrt(loo$var + loo$noise)[used]),
              W = part$W[kept] / in_units(fit, 1, 2), rest = part$rest[kept])
  size <- max(1, 2^21 %/% length(kept))
  blocks <- split(seq_along(var), (seq_along(var) - 1L) %/% size)
  total <- var + noise_at(fit, x)
  ends <- lapply(blocks, function(i) {
    cov <- covariance_with_rows(p, values_at(p$model$kernel, x[i, , drop = FALSE]))
    kappa <- in_units(fit, cov, 2)[part$group[kept], , drop = FALSE]
    each <- rule(row, kappa, matrix(total[i], length(kept), length(i), byrow = TRUE))
    kth <- function(v) apply(v, 2L, function(one) sort(one, partial = k)[k])
    cbind(kth(each$below), kth(each$above))
  })
  do.call(rbind, ends)
}

# Jackknife+: without row i the prediction is, with h the row's leverage,
#   mean - kappa W (y_i - mu_i) / (1 - h),  variance + kappa^2 W / (1 - h).
jackknife_plus <- function(row, kappa, variance) {
  shift <- kappa * row$W * row$residual
  width <- abs(row$residual) / row$sd * sqrt(variance + kappa^2 * row$W / row$rest)
  list(below = width + shift, above = width - shift)
}

# Full conformal: a new response t = mean + sd tau has the score |tau|. With B the precision of row i given the others,
# u = W kappa and alpha = B (y_i - mu_(-i)), row i has the score
#   |alpha - h tau| / g,   h = u / sd,   g = sqrt(B + h^2) > |h|.
# This score is the larger one between tau = alpha / (g + h) and tau = -alpha / (g - h).
full_conformal <- function(row, kappa, variance) {
  sd <- sqrt(variance)
  B <- row$W * row$rest
  h <- row$W * kappa / sd
  g <- sqrt(B + h^2)
  one <- B * row$residual / (g + h) * sd
  other <- -B * row$residual / (g - h) * sd
  list(below = pmax(-one, -other), above = pmax(one, other))
}
