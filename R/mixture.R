# Predictions that know how uncertain the hyperparameters are: a mixture of posteriors over some of these, weighted by
# the evidence.

# With V = R R' the covariance of the p logs that were learned, 2 p points: the fit's own values and sqrt(p) columns of
# R to either side of them, which have this mean and covariance. Each counts by the density of the data there beside
# that of the normal approximation, exp(-|R^{-1}(theta - theta^)|^2 / 2): list(hyper = list(kernel, noise) of the model
# for each, weights; and for where the evidence is better known: apart, all of the logs of the weights but the
# evidence's; gain, these logs where they have the exact evidence).
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

# The same posterior at other hyperparameters of the model.
at_hyper <- function(fit, hyper) {
  if (!response_of(fit)$conjugate) return(laplace_at_hyper(fit, hyper))
  data <- training_data(fit)
  model <- model_with(model_of(fit), hyper)
  fit[c("kernel", "noise")] <- model_units(model)
  if (!is.null(fit$near) && is.null(fit$near$rank)) fit$near$rank <- seq_len(nrow(data$x))
  fit <- posterior_again(fit, if (is.null(fit$chosen)) data else take_rows(data, fit$chosen), model)
  fit$norms <- fit$reference <- NULL
  fit
}

laplace_at_hyper <- function(fit, hyper) {
  fit[c("kernel", "center")] <- hyper[c("kernel", "center")]
  fit["theta"] <- fit$likelihood["theta"] <- list(hyper$theta)
  learned <- list(kernel = fit$kernel, center = fit$center, model = new_model(fit$kernel, 1))
  parts <- laplace_parts(training_data(fit), fit$likelihood, learned, fit$inducing, fit$control, no_state(),
                         fit$factors)
  fit[names(parts)] <- parts
  fit
}

# What `of` says of the posterior at each of these hyperparameters
mixture_parts <- function(fit, hyper, of) lapply(hyper, function(one) of(at_hyper(fit, one)))

# As posterior_at(), with the mixture's mean and (total) variance of f, its mean noise and, where asked for, the
# covariance of the rows.
mixture_at <- function(fit, rows, full_cov = FALSE) {
  points <- hyper_points(fit)
  used <- points$weights > 1e-10
  mixture_of_parts(mixture_parts(fit, points$hyper[used], function(one) {
    c(latent_at(one, rows$x), list(noise = noise_at(one, rows$x), cov = if (full_cov) covariance_at(one, rows)))
  }), points$weights[used], if (full_cov) rows$index)
}

# Of parts as posterior_at() gives them, with noise and, where asked for, covariance of the rows `index`.
mixture_of_parts <- function(each, w, index = NULL) {
  sum_of <- function(what) Reduce(`+`, Map(function(one, w) w * what(one), each, w))
  mean <- sum_of(function(one) one$mean)
  off <- function(one) (one$mean - mean)[index]
  list(mean = mean, var = sum_of(function(one) one$var + (one$mean - mean)^2), noise = sum_of(function(one) one$noise),
       cov = if (!is.null(index)) sum_of(function(one) one$cov + outer(off(one), off(one))))
}
