# The posterior on inducing points: DTC, SoR and FITC.

# With features a = L^{-1} cross(Z):  mean = a'beta,  var = prior - |a|^2 + s2 |C^{-1} a|^2; SoR has the last term
# alone.
posterior_at.points <- function(p, fun, joint = FALSE) {
  p$factors$beta <- mean_weights(p$factors)
  if (fun$kind == "values") {
    at <- native_predict(p$factors, p$z, p$model, fun$x)
    var <- if (p$sor) at$sor_variance else at$sor_variance + at$unexplained
    return(list(mean = at$mean, var = var, cov = if (joint) {
      native(ffi_covariance, engine_posterior(p$factors, p$z, p$model), fun$x, as.integer(p$sor))
    }))
  }
  a <- features_of(fun, p$z, p$factors$L)
  sor <- p$model$noise * colSums(forwardsolve(p$factors$C, a)^2)
  list(mean = drop(crossprod(a, p$factors$beta)), var = sor + if (p$sor) 0 else pmax(fun$prior - colSums(a^2), 0))
}

# Returns the DTC posterior on the inducing points of p, to which the theorem and the divergences apply. An exact
# posterior has its rows as inducing points, with a jitter of the size of rounding.
posterior_on_points <- function(p) {
  if (inherits(p, "points") && !inherits(p, "grouped") || !is.null(p$chosen)) return(p)
  data <- needs_data(p$fit, "fit")
  z <- if (inherits(p, "exact")) p$x else p$z
  factors <- native_posterior(z, data, p$model, jitter = 1e-12, control = p$control)
  points_posterior(p$model, p$fit, data, z, factors)
}

points_posterior <- function(model, fit, data, z, factors, norms = NULL) {
  new_posterior("points", model, fit, data, z = z, factors = factors, jitter = factors$jitter, norms = norms)
}

# Gaussian noise has W = w / s2 and g = W (y - mean). FITC gives row n the noise s2 / w_n + left_n. A Laplace or
# variational posterior has W and g at its mode, the same formulas hold, and the mode is not searched again.
row_parts.points <- function(p) {
  apart <- responses_used(p)
  part <- if (is.null(p$fit$likelihood)) {
    at <- native_predict(p$factors, p$z, p$model, p$rows$x)
    left <- at$unexplained[apart$group]
    mean <- at$mean[apart$group]
    W <- 1 / (p$model$noise / apart$w + if (p$fitc) left else 0)
    list(mean = mean, q = at$sor_variance[apart$group], left = if (p$sor) 0 * left else left, g = W * (apart$y - mean),
         W = W)
  } else {
    sites_at_mode(p)
  }
  c(part, list(rest = 1 - part$W * part$q, group = apart$group))
}

# Returns C^{-1} L^{-1} k(Z, x). Its crossproduct times s2 is the part of the covariance of f at x that rows can reduce.
whitened_features <- function(p, x) {
  forwardsolve(p$factors$C, forwardsolve(p$factors$L, native_kernel_matrix(p$model$kernel, p$z, x)))
}

# With P = s2 I + A W A':  s2 a_g'P^{-1} (A W A') P^{-1} a_g.
squared_moves.points <- function(p) {
  moves <- in_blocks(p$rows$x, function(x) {
    half <- whitened_features(p, x)
    colSums(half^2) - p$model$noise * colSums(solve_t(p$factors$C, half)^2)
  }, 4096L, c)
  p$model$noise * pmax(moves, 0)
}

covariance_with_rows.points <- function(p, fun) {
  at <- forwardsolve(p$factors$C, features_of(fun, p$z, p$factors$L))
  p$model$noise * crossprod(whitened_features(p, p$rows$x), at)
}
