# Coefficients of a linear mean (mean.R): linear functionals of the fit's posterior.

# list(estimate, sd, covariance), named, of the level where all inputs are 0 and the slopes, in units of y; NULL
# without a mean.
mean_coefficients <- function(fit) {
  model <- model_of(fit)
  term <- mean_term(model$kernel)
  if (is.null(term)) return(NULL)
  leaf <- as_sum(model$kernel)$leaves[[term$leaves]]
  d <- length(leaf$inputs)
  # of b, the level in the middle and the slopes in units of the spreads: each, and the sum of each pair
  pairs <- which(upper.tri(diag(d + 1L)), arr.ind = TRUE)
  of_b <- rbind(diag(d + 1L), diag(d + 1L)[pairs[, 1L], ] + diag(d + 1L)[pairs[, 2L], ])
  n <- nrow(of_b)
  x <- fit_points(fit)[1L, , drop = FALSE] # coefficients are about no row: any will do
  prior <- term$variance * rowSums(of_b^2)
  cross <- function(u, i) term$variance * tcrossprod(mean_basis(leaf, u), of_b[i, , drop = FALSE])
  fun <- new_functionals("coefficients", cross, prior, prior, x, rep(1L, n), under = NULL)
  p <- functionals_in_units(fit, fun)
  V <- diag(p$sd[seq_len(d + 1L)]^2)
  V[pairs] <- (p$sd[-seq_len(d + 1L)]^2 - diag(V)[pairs[, 1L]] - diag(V)[pairs[, 2L]]) / 2
  V[lower.tri(V)] <- t(V)[lower.tri(V)]
  names <- c("(Intercept)", fit$frame$columns[leaf$inputs])
  # the level where the inputs are 0, and slopes in their units
  to <- rbind(c(1, -leaf$centre * leaf$rate), cbind(0, diag(leaf$rate, d)))
  covariance <- dimnames_of(to %*% V %*% t(to), names)
  list(estimate = stats::setNames(drop(to %*% p$mean[seq_len(d + 1L)]) + c(fit$center, numeric(d)), names),
       sd = sqrt(diag(covariance)), covariance = covariance)
}

mean_term <- function(kernel) {
  kernel <- as_sum(kernel)
  Find(function(t) is_mean(kernel$leaves[[t$leaves[1L]]]), kernel$terms)
}

# Coefficients of the mean and of the log noise with their standard deviations, a row each; NULL where there are none.
linear_coefficients <- function(fit) {
  parts <- list(mean_coefficients(fit), noise_coefficients(fit))
  estimate <- unlist(lapply(parts, `[[`, "estimate"))
  if (!is.null(estimate)) cbind(Estimate = estimate, "Std. Dev." = unlist(lapply(parts, `[[`, "sd")))
}
