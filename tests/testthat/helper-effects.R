# Draws problems with two inputs and two groups, and transcribes effects.R with dense matrices.
effect_problem <- function(n = 90, two = TRUE, seed = 1, weights = TRUE) {
  with_seed(seed, {
    x <- cbind(a = stats::runif(n), b = stats::runif(n), g = sample(rep_len(1:12, n)), h = sample(rep_len(1:5, n)))
    root <- matrix(c(0.8, 0.3, 0, 0.5), 2)
    groupings <- list(list(column = 3L, levels = 12L, design = c(0L, 1L), root = root, term = 2L),
                      list(column = 4L, levels = 5L, design = 2L, root = matrix(0.6), term = 3L))
    kernel <- place_kernel(kernel_matern(3 / 2, c(0.3, 0.5), 1.3, inputs = 1:2), x)
    list(x = x, y = stats::rnorm(n), weights = if (weights) stats::runif(n, 0.5, 2), z = x[seq_len(n / 6), ],
         groupings = groupings[seq_len(1 + two)], model = new_model(kernel, 0.2),
         kernel = function(x, z) {
           r <- sqrt(3 * (outer(x[, 1], z[, 1], "-")^2 / 0.09 + outer(x[, 2], z[, 2], "-")^2 / 0.25))
           1.3 * (1 + r) * exp(-r)
         })
  })
}

# Returns the prior covariance Z Lam Lam' Z' of the effects between rows: rows of the same level share effects.
ref_groups <- function(groupings, x, z) {
  Reduce(`+`, lapply(groupings, function(g) {
    design <- function(x) cbind(1, x)[, g$design + 1L, drop = FALSE]
    outer(x[, g$column], z[, g$column], "==") * (design(x) %*% tcrossprod(g$root) %*% t(design(z)))
  }))
}

# Returns list(mean, cov, bound): the posterior of f + effects at new rows given y = f + effects + noise. At the
# training rows the inducing-point part q replaces the kernel k, and `cov` includes k - q of the new rows. `bound` is
# the ELBO.
ref_grouped <- function(p, new) {
  Kzz <- p$kernel(p$z, p$z)
  q <- function(x, z) p$kernel(x, p$z) %*% solve(Kzz, p$kernel(p$z, z))
  w <- if (is.null(p$weights)) rep(1, length(p$y)) else p$weights
  B <- q(p$x, p$x) + ref_groups(p$groupings, p$x, p$x) + diag(p$model$noise / w)
  cross <- q(p$x, new) + ref_groups(p$groupings, p$x, new)
  prior <- p$kernel(new, new) + ref_groups(p$groupings, new, new)
  t <- sum(w * (1.3 - diag(q(p$x, p$x))))
  list(mean = drop(crossprod(cross, solve(B, p$y))), cov = prior - crossprod(cross, solve(B, cross)),
       bound = ref_log_density(p$y, B) - t / (2 * p$model$noise))
}

ref_log_density <- function(y, B) {
  R <- chol(B)
  -(length(y) * log(2 * pi) + sum(backsolve(R, y, transpose = TRUE)^2)) / 2 - sum(log(diag(R)))
}

# Returns a problem's posterior as an object of class "posterior", without a fit.
effect_view <- function(p, factors = effect_posterior(p$z, p, p$model, 1e-10, groupings = p$groupings)) {
  none <- list(rows = 0, ss = 0, constant = 0)
  rows <- c(p[c("x", "y", "weights")], list(shift = none, response = p$y, prior_weights = p$weights, center = 0,
                                            scale = 1))
  new_posterior(c("grouped", "points"), p$model, list(), rows, z = p$z,
                factors = factors, sor = FALSE, fitc = FALSE, jitter = 1e-10)
}

# Returns rows with levels of the data and with new levels, of which two rows share one.
effect_new_rows <- function(p) {
  new <- p$x[1:8, ] + rep(c(0.01, 0), c(16, 16))
  new[6:7, 3] <- -5
  new[8, 4] <- -7
  new
}
