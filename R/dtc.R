# DTC posteriors with norms: what certificates are made of.

distinct_points <- function(z, kernel) choose_greedy(z, nrow(z), kernel, Inf)$z

# The DTC posterior of the fit's model on points z, with its norms, see posterior_norms(). No two of the points may say
# the same down to rounding: pivots of a greedy choice are fine, others go through distinct_points(). `inner`: such a
# posterior on some of the points, whose |w|_E holds here as well.
dtc_on_points <- function(fit, data, z, call, fast, tight = FALSE, inner = NULL) {
  model <- model_of(fit)
  jitter <- if (is.null(inner)) rounding_jitter(nrow(z)) else inner$jitter
  posterior <- native_posterior(z, data, model, jitter, control = fit$control)
  norms <- posterior_norms(posterior, z, data, model, fast, tight, fit$control,
                           if (posterior$jitter == jitter) inner$norms)
  gp_beside(fit, "gp_dtc", call = call, parts = list(
    inducing = z, m = nrow(z), m_asked = nrow(z), inducing_method = "greedy", jitter = posterior$jitter,
    factors = posterior, evidence = evidence_of("points", model, data, posterior), norms = norms))
}

# The posterior of a DTC-type fit may serve as it is where its jitter is between rounding and what would be seen.
own_posterior_serves <- function(fit) {
  (gp_family(fit)$dtc || gp_family(fit)$sor) && fit$jitter >= safe_jitter(nrow(fit$inducing)) &&
    fit$jitter <= 1e-10
}

# A DTC posterior with norms on the fit's own points: of whatever kind the fit is, it certifies the exact GP.
own_posterior <- function(fit) {
  if (!is.null(fit$near)) fit <- far_part(fit)
  model <- model_of(fit)
  if (own_posterior_serves(fit)) {
    fit$norms <- posterior_norms(fit$factors, fit$inducing, fit$data, model, fast = TRUE,
                                 control = fit$control)
    return(fit)
  }
  z <- distinct_points(if (is.null(fit$x)) fit$inducing else fit$x, model$kernel)
  dtc_on_points(fit, fit$data, z, NULL, fast = TRUE)
}

# Returns the certificate of functionals by a posterior with norms, as computed with.
certify_with <- function(factors, norms, z, model, fun, crossing = NULL) {
  if (fun$kind == "values") return(native_certify(factors, z, model, norms, fun$x, crossing))
  native_certify_features(factors, z, model, norms, features_of(fun, z, factors$L), fun$prior, fun$size)
}

# Returns the same in units of y without the centre.
certify_posterior <- function(post, fun, crossing = NULL) {
  model <- model_of(post)
  r <- certify_with(post$factors, post$norms, post$inducing, model, fun, crossing)
  power <- c(mean = 1, sor_variance = 2, unexplained = 2, mean_error = 1, var_lower = 2, var_upper = 2)
  for (what in names(power)) r[[what]] <- in_units(model, r[[what]], power[[what]])
  r
}

as_interval <- function(r) {
  list(mean_lower = r$mean - r$mean_error, mean_upper = r$mean + r$mean_error, sd_lower = sqrt(r$var_lower),
       sd_upper = sqrt(r$var_upper))
}

# The interval of a corrected mean, which does not bound the sd.
mean_interval <- function(r) {
  list(mean_lower = r$mean - r$mean_error, mean_upper = r$mean + r$mean_error, sd_lower = 0, sd_upper = Inf)
}

posterior_interval <- function(post, fun) as_interval(certify_posterior(post, fun))

# Replaces the ends that overflow made NaN: such an interval holds everything.
unknown_if_nan <- function(inside) {
  all <- c(mean_lower = -Inf, mean_upper = Inf, sd_lower = 0, sd_upper = Inf)
  for (end in names(all)) inside[[end]][is.nan(inside[[end]])] <- all[[end]]
  inside
}

# max() and min() of the ends. Two valid intervals that do not meet differ by rounding: their ends are then exchanged.
# Were they further apart, one of the two would be wrong: then all that lies between their outer ends, and a warning.
intersect_intervals <- function(a, b) {
  apart <- FALSE
  b <- unknown_if_nan(b)
  meet <- function(ends) {
    lower <- pmax(a[[ends[1L]]], b[[ends[1L]]])
    upper <- pmin(a[[ends[2L]]], b[[ends[2L]]])
    far <- lower > upper & lower - upper > 1e-9 * pmax(abs(lower), abs(upper))
    if (any(far)) {
      apart <<- TRUE
      lower[far] <- pmin(a[[ends[1L]]], b[[ends[1L]]])[far]
      upper[far] <- pmax(a[[ends[2L]]], b[[ends[2L]]])[far]
    }
    stats::setNames(list(pmin(lower, upper), pmax(lower, upper)), ends)
  }
  out <- c(meet(c("mean_lower", "mean_upper")), meet(c("sd_lower", "sd_upper")))
  if (apart) {
    warn_convergence(paste("Two certificates of the same rows do not meet: rounding went beyond its allowance. What is",
                           "returned holds both. A larger `noise` or `jitter` helps."))
  }
  out
}
