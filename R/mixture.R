# Predictions that know how uncertain the hyperparameters are: a mixture of posteriors over some of these, weighted by
# the evidence.

# With V = R R' the covariance of the p logs that were learned, 2 p points: the fit's own values and sqrt(p) columns of
# R to either side of them, which have this mean and covariance. Each counts by the density of the data there beside
# that of the normal approximation, exp(-|R^{-1}(theta - theta^)|^2 / 2): list(hyper = list(kernel, noise) of the model
# for each, weights).
hyper_points <- function(fit) {
  learned <- learned_density(fit)
  e <- eigen(curvature_inverse(learned), symmetric = TRUE)
  p <- length(learned$at)
  steps <- e$vectors %*% diag(sqrt(p * e$values), p)
  points <- pmin(pmax(learned$at + cbind(steps, -steps), learned$lower), learned$upper)
  far <- colSums((crossprod(e$vectors, points - learned$at) / sqrt(e$values))^2) / 2
  gain <- apply(points, 2L, learned$value) + far
  if (!any(is.finite(gain))) abort_numerical("The evidence cannot be computed at other hyperparameters than the fit's.")
  weights <- exp(gain - max(gain))
  list(hyper = apply(points, 2L, learned$natural, simplify = FALSE), weights = weights / sum(weights))
}

# The same posterior at other hyperparameters of the model.
at_hyper <- function(fit, hyper) {
  data <- training_data(fit)
  model <- model_with(model_of(fit), hyper)
  fit[c("kernel", "noise")] <- model_units(model)
  if (!is.null(fit$x)) {
    fit$factors <- exact_posterior(if (is.null(fit$chosen)) data else take_rows(data, fit$chosen), model, fit$control)
  } else if (!is.null(fit$near)) {
    if (is.null(fit$near$rank)) fit$near$rank <- seq_len(nrow(data$x))
    fit$near <- near_posterior(data, fit$inducing, model, fit$near$neighbours, fit$near$train_neighbours, fit$near$rank,
                               fit$near$jitter, fit$control)
  } else {
    fit$factors <- dtc_posterior(fit$inducing, data, model, fit$jitter, control = fit$control,
                                 fitc = gp_family(fit)$fitc)
  }
  fit
}

# As posterior_at(), with the mixture's mean and (total) variance of f, its mean noise and, where asked for, the
# covariance of the rows.
mixture_at <- function(fit, rows, full_cov = FALSE) {
  points <- hyper_points(fit)
  each <- lapply(points$hyper[points$weights > 1e-10], function(hyper) {
    one <- at_hyper(fit, hyper)
    c(posterior_at(one, rows$x), list(noise = noise_at(one, rows$x), cov = if (full_cov) covariance_at(one, rows)))
  })
  w <- points$weights[points$weights > 1e-10]
  sum_of <- function(what) Reduce(`+`, Map(function(one, w) w * what(one), each, w))
  mean <- sum_of(function(one) one$mean)
  off <- function(one) (one$mean - mean)[rows$index]
  list(mean = mean, var = sum_of(function(one) one$var + (one$mean - mean)^2), noise = sum_of(function(one) one$noise),
       cov = if (full_cov) sum_of(function(one) one$cov + outer(off(one), off(one))))
}
