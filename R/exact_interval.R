# The exact posterior of a fit's model, and what rounding leaves open of it.

# Does the exact posterior, with what it says of so many rows, take no more seconds than these, and a sixteenth of the
# memory allowed?
exact_is_cheap <- function(fit, rows, seconds) {
  n <- as.double(nrow(fit$data$x))
  if (16 * n^2 > getOption("pfdtc.max_memory", 2^32) / 16) return(FALSE)
  # a factor three for a factorisation and triangular solves beside products
  flop <- engine_speed(fit$kernel, fit$data$x, fit$control)[["flop"]]
  3 * (n^3 / 3 + 3 * n^2 * rows) * flop <= seconds
}

# The exact posterior of the fit's model.
exact_of_fit <- function(fit) {
  data <- fit$data
  check_memory(8 * as.double(nrow(data$x))^2, sprintf("the exact posterior of %d rows", nrow(data$x)))
  model <- model_of(fit)
  posterior <- native_exact(data, model, fit$control)
  gp_beside(fit, "gp_exact", data = data, parts = list(
    x = data$x, m = NULL, factors = posterior, evidence = exact_evidence(data, posterior, model$noise)))
}

# What rounding does to the exact posterior. With D the diagonal of K + s2 W^{-1}, its Cholesky factor is that of
# K + s2 W^{-1} + Delta, |D^{-1/2} Delta D^{-1/2}|_2 <= growth n, and h = (K + s2 W^{-1})^{-1} k(X, x):
#   error of the mean = h'Delta alpha,  of the variance = h'Delta h,
# and that of kernel values likewise. Blocks of rows bound the memory.
#
# |D^{1/2} h| is computed where it matters: with v_i the noise of row i, sum v_i h_i^2 is at most the exact variance
# (the error of h'y as a prediction is that and more), hence |D^{1/2} h|^2 <= max(d_i / v_i) var, which will do for
# noise that is not small.
#
# `at`: rows, or functionals, whose size then has the place of k(x, x).
exact_interval <- function(fit, at) {
  model <- model_of(fit)
  rows_alone <- !is_functionals(at)
  k <- if (rows_alone) prior_most(model, fit$x, at) else at$size
  if (rows_alone) at <- values_at(model$kernel, at)
  L <- fit$factors$L
  n <- nrow(L)
  growth <- 2 * (4 * sqrt(n) + 16) * .Machine$double.eps
  root <- sqrt(rowSums(L^2))                # of d_i = k + v_i
  v <- pmax(root^2 - prior_at(model, fit$x), 0)
  ratio <- max(root^2 / v)
  do_solve <- !(growth * n * ratio <= 1e-8) # far below what anyone would look at
  mean <- var <- h <- numeric(at$n)
  for (rows in split(seq_along(h), (seq_along(h) - 1) %/% 256)) {
    K <- at$cross(fit$x, rows)
    mean[rows] <- drop(crossprod(K, fit$factors$alpha))
    u <- forwardsolve(L, K)
    var[rows] <- pmax(at$prior[rows] - colSums(u^2), 0)
    h[rows] <- if (do_solve) sqrt(colSums((root * solve_t(L, u))^2)) else
      sqrt(2 * ratio * (var[rows] + 1e-8 * min(v)))
  }
  weight <- sqrt(sum((root * fit$factors$alpha)^2)) # |D^{1/2} alpha|
  mean_error <- growth * weight * (n * h + sqrt(n * k))
  var_error <- growth * (n * h^2 + 2 * sqrt(n * k) * h + k)
  interval <- list(mean_lower = mean - mean_error, mean_upper = mean + mean_error,
                   sd_lower = sqrt(pmax(var - var_error, 0)), sd_upper = sqrt(var + var_error))
  lapply(interval, in_units, model = model)
}
