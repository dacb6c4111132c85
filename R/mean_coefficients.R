# Coefficients of a linear mean (mean.R): linear functionals of the fit's posterior.

# Returns list(fun, to, names, pairs), NULL without a linear mean. The functionals are the level in the middle of the
# inputs and the slopes in units of the spreads, then the sum of each pair. `to` converts the former to the level where
# all inputs are 0 and to slopes in units of the inputs.
mean_functionals <- function(fit) {
  kernel <- model_of(fit)$kernel
  term <- mean_term(kernel)
  if (is.null(term)) return(NULL)
  leaf <- as_sum(kernel)$leaves[[term$leaves]]
  d <- length(leaf$inputs)
  pairs <- which(upper.tri(diag(d + 1L)), arr.ind = TRUE)
  of_b <- rbind(diag(d + 1L), diag(d + 1L)[pairs[, 1L], ] + diag(d + 1L)[pairs[, 2L], ])
  x <- fit_points(fit)[1L, , drop = FALSE] # coefficients belong to no row: any row will do
  prior <- term$variance * rowSums(of_b^2)
  cross <- function(u, i) term$variance * tcrossprod(mean_basis(leaf, u), of_b[i, , drop = FALSE])
  list(fun = new_functionals("coefficients", cross, prior, prior, x, rep(1L, nrow(of_b)), under = NULL),
       to = rbind(c(1, -leaf$centre * leaf$rate), cbind(0, diag(leaf$rate, d))),
       names = c("(Intercept)", fit$frame$columns[leaf$inputs]), pairs = pairs)
}

# Returns list(estimate, sd, covariance), named: the level where all inputs are 0 and the slopes, in units of y.
mean_coefficients <- function(fit) {
  b <- mean_functionals(fit)
  if (is.null(b)) return(NULL)
  p <- functionals_in_units(fit, b$fun)
  each <- seq_along(b$names)
  V <- diag(p$sd[each]^2)
  V[b$pairs] <- (p$sd[-each]^2 - diag(V)[b$pairs[, 1L]] - diag(V)[b$pairs[, 2L]]) / 2
  V[lower.tri(V)] <- t(V)[lower.tri(V)]
  covariance <- dimnames_of(b$to %*% V %*% t(b$to), b$names)
  estimate <- drop(b$to %*% p$mean[each]) + c(fit$center, numeric(length(each) - 1L))
  list(estimate = stats::setNames(estimate, b$names), sd = sqrt(diag(covariance)), covariance = covariance)
}

mean_term <- function(kernel) {
  kernel <- as_sum(kernel)
  Find(function(t) is_mean(kernel$leaves[[t$leaves[1L]]]), kernel$terms)
}

# Returns the coefficients of the mean and of the log noise with their sds, a row each; NULL if there are none.
linear_coefficients <- function(fit) {
  parts <- list(mean_coefficients(fit), noise_coefficients(fit))
  estimate <- unlist(lapply(parts, `[[`, "estimate"))
  if (!is.null(estimate)) cbind(Estimate = estimate, "Std. Dev." = unlist(lapply(parts, `[[`, "sd")))
}
