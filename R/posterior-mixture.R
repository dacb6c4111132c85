# The posterior averaged over uncertain hyperparameters: a mixture of posteriors at some of them, weighted by the log
# marginal likelihood.

# Let V = R R' be the covariance of the p learned logs theta. The 2 p points theta^ +- sqrt(p) R_j have mean theta^ and
# covariance V. The weight of a point is the density of the data there, divided by that of the normal
# approximation, exp(-|R^{-1}(theta - theta^)|^2 / 2). Returns list(hyper, weights, apart, gain): `hyper` has
# list(kernel, noise) of the model for each point; `apart` has the logs of the weights without the log
# marginal likelihood, for callers that know it better; `gain` has the logs of the weights if it is exact.
hyper_points <- function(fit) {
  learned <- learned_density(fit)
  e <- eigen(curvature_inverse(learned), symmetric = TRUE)
  p <- length(learned$at)
  steps <- e$vectors %*% diag(sqrt(p * e$values), p)
  points <- pmin(pmax(learned$at + cbind(steps, -steps), learned$lower), learned$upper)
  far <- colSums((crossprod(e$vectors, points - learned$at) / sqrt(e$values))^2) / 2
  value <- apply(points, 2L, learned$value)
  gain <- value + far
  if (!any(is.finite(gain))) abort_numerical("The evidence cannot be computed at other hyperparameters than the fit's.")
  weights <- exp(gain - max(gain))
  list(hyper = apply(points, 2L, learned$natural, simplify = FALSE), weights = weights / sum(weights),
       apart = far + apply(points, 2L, learned$prior), gain = if (learned$exact) gain)
}

# Returns of(fit) for the fit at each of these hyperparameters.
mixture_parts <- function(fit, hyper, of) {
  p <- posterior_of(fit)
  training_data(fit)
  lapply(hyper, function(one) of(posterior_again(p, model = replace(p$model, names(one), one))$fit))
}

# Returns the posterior averaged over uncertain hyperparameters. Its parts are computed one after the other, where they
# are needed. Parts whose weight is negligible are left out.
mixture_of <- function(fit) {
  points <- hyper_points(fit)
  used <- points$weights > 1e-10
  new_posterior("mixture", model_of(fit), fit, fit$data, hyper = points$hyper[used], weights = points$weights[used],
                points = points)
}

# The mean and the total variance of the mixture. `noise`: the mean noise variance, in units of y.
posterior_at.mixture <- function(p, fun, joint = FALSE) {
  each <- mixture_parts(p$fit, p$hyper, function(one) {
    part <- posterior_of(one)
    at <- posterior_at(part, fun$under(part$model$kernel), joint)
    at$mean <- at$mean + (one$center - p$fit$center) / p$model$scale
    at$var <- pmax(at$var, 0)
    c(at, noise = one$noise)
  })
  mixture_of_parts(each, p$weights, if (joint) seq_len(fun$n))
}

# Combines parts, list(mean, var, noise) and, with `index`, cov of the functionals numbered `index`.
mixture_of_parts <- function(each, w, index = NULL) {
  sum_of <- function(what) Reduce(`+`, Map(function(one, w) w * what(one), each, w))
  mean <- sum_of(function(one) one$mean)
  off <- function(one) (one$mean - mean)[index]
  list(mean = mean, var = sum_of(function(one) one$var + (one$mean - mean)^2), noise = sum_of(function(one) one$noise),
       cov = if (!is.null(index)) sum_of(function(one) one$cov + outer(off(one), off(one))))
}
