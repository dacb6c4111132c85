# Coefficients of a linear mean (mean.R): linear functionals of the fit's posterior.

# list(estimate, sd), named, of the level where all inputs are 0 and the slopes, in units of y; NULL without a mean.
mean_coefficients <- function(fit) {
  model <- model_of(fit)
  term <- mean_term(model$kernel)
  if (is.null(term)) return(NULL)
  leaf <- kernel_leaves(model$kernel)[[term$leaves]]
  d <- length(leaf$inputs)
  # rows: the level at 0 and the slopes, as sums of b
  to <- rbind(c(1, -leaf$centre * leaf$rate), cbind(0, diag(leaf$rate, d)))
  x <- fit_points(fit)[1L, , drop = FALSE] # coefficients are about no row: any will do
  prior <- term$variance * rowSums(to^2)
  fun <- new_functionals(function(u, i) term$variance * tcrossprod(mean_basis(leaf, u), to[i, , drop = FALSE]),
                         prior, prior, x, rep(1L, d + 1L), rep(1, d + 1L), near = TRUE)
  p <- functionals_in_units(fit, fun)
  names <- c("(Intercept)", fit$frame$columns[leaf$inputs])
  list(estimate = stats::setNames(p$mean + c(fit$center, numeric(d)), names), sd = stats::setNames(p$sd, names))
}

mean_term <- function(kernel) {
  leaves <- kernel_leaves(kernel)
  Find(function(t) is_mean(leaves[[t$leaves[1L]]]), kernel_terms(kernel))
}
