#' @export
error_bounds <- function(fit, newdata, effort = c("reference", "fast"), ..., reference = fit$reference, m2 = NULL,
                         samples = 0) {
  check_dots_empty()
  fit <- check_fit(fit, "fit")
  check_dtc(fit, "The theorem is about DTC posteriors; certify() works for every fit.")
  effort <- check_choice(effort)
  data <- training_data(fit, "fit")
  p <- posterior_on_points(posterior_of(fit))
  subset <- !is.null(fit$aux_rows)
  samples <- check_count(samples, "samples", min = 0)
  refuse_if(samples > 0L && !subset, "samples", samples, "0 for a fit that was not optimised under aux_subset()",
            hint = "The density ratio of its auxiliary distribution is infinite, or there is none.")
  if (effort == "reference") reference <- find_reference(fit, reference, m2)
  new <- new_rows(fit, newdata)
  # If the jitter of the fit's posterior p is too small to cover rounding errors, `own` is a posterior on the distinct
  # points of p, with a larger jitter. The error bound `eps` of `own` is at least that of p, so it holds for p too.
  own <- with_fixed_seed(if (p$jitter >= safe_jitter(nrow(p$z))) {
    replace(p, "norms", list(posterior_norms(p$factors, p$z, p$rows, p$model, fast = TRUE, control = p$control)))
  } else {
    z <- distinct_points(p$z, p$model$kernel)
    inner <- list(jitter = max(p$jitter, rounding_jitter(nrow(z))))
    posterior_of(dtc_on_points(fit, p$rows, z, NULL, fast = TRUE, inner = inner))
  })
  same_rows <- effort == "reference" &&
    abs(in_units(reference, reference$factors$yy, 2) / in_units(fit, p$factors$yy, 2) - 1) <= 1e-12
  eps <- theorem_eps(own, if (isTRUE(same_rows)) least_quadratic(reference, data_in_scale(fit, reference)) else 0)
  out <- theorem_frame(p, own, eps, new)
  attributes(out) <- c(attributes(out), eps, w2 = eps$eps,
                       if (subset) ratio_bound(fit, p, if (effort == "reference") reference),
                       if (samples > 0L) estimate_density_ratio(fit, data, samples))
  structure(out, class = c("pfdtc_table", "data.frame"), legend = paste(
    "Bounds on the absolute errors of the mean, sd and variance of f against the exact GP. All are valid; those with",
    "`sharp` in their name are at most as large."))
}

# Returns upper bounds on eps_mean, eps_cov and eps = sqrt(eps_mean^2 + eps_cov^2), the pF divergence between the DTC
# posterior `own` and the exact one (theory vignette, Theorem 3). Let v = (Q + s2 I)^{-1} y, w = (K + s2 I)^{-1} y, V =
# v'(K - Q) v, c = y'v, `least` a lower bound on y'w, and t the trace of K - Q; Q approximates K by inducing points.
#   eps_mean^2 <= y'v - y'w <= min(c V / (c + V), c - least),   eps_cov^2 <= t / s2.
theorem_eps <- function(own, least) {
  q <- quadratic_bracket(own$factors, own$norms, own$model)
  c <- q$upper
  V <- own$norms$v_E^2
  with_V <- if (c <= 0 || V <= 0) 0 else if (is.infinite(c)) V else c / (1 + c / V) # c V / (c + V)
  mean2 <- max(min(with_V, c - max(least, q$least)), 0)
  cov2 <- own$norms$t / own$model$noise
  list(eps = sqrt(mean2 + cov2), eps_mean = sqrt(mean2), eps_cov = sqrt(cov2))
}

# Returns the data frame of error_bounds() at the rows `new`. Each bound is that for the DTC posterior `own`, plus the
# rounding error of its predictions, plus their distance from the predictions of the fit's posterior p.
theorem_frame <- function(p, own, eps, new) {
  fit <- p$fit
  k <- kernel_diagonal(own$model$kernel, new$x)
  r <- certify_with(own$factors, own$norms, own$z, own$model, values_at(own$model$kernel, new$x))
  error <- prediction_rounding(own, r, new$x)
  p <- posterior_values(p, new$x)
  sd <- sqrt(pmax(p$var, 0))
  own_sd <- sqrt(r$sor_variance + r$unexplained)
  mean_more <- error$mean + abs(p$mean - r$mean)
  sd_more <- error$sd + abs(sd - own_sd)
  var_more <- error$var + abs(sd^2 - own_sd^2)
  left <- pmin(pmax(r$var_upper - r$sor_variance + error$sor, 0), k) # bounds the exact variance minus the SoR variance
  up <- 1 + 16 * .Machine$double.eps
  unit <- up * fit$scale
  out <- data.frame(
    mean_bound = unit * (sqrt(k) * eps$eps + mean_more), sd_bound = unit * (sqrt(6 * k) * eps$eps + sd_more),
    var_bound = up * unit^2 * (3 * sqrt(k) * (own_sd + error$sd) * eps$eps + 6 * k * eps$eps^2 + var_more),
    mean_bound_sharp = unit * (sqrt(left) * eps$eps_mean + mean_more),
    sd_bound_sharp = unit * (sqrt(k) * eps$eps_cov + sd_more))
  out <- out[new$index, , drop = FALSE]
  means <- c("mean_bound", "mean_bound_sharp") # adding the constant mean and the offset causes rounding
  room <- 4 * .Machine$double.eps * (abs(fit$center) + abs(fit$scale * p$mean[new$index]) + abs(new$offset))
  out[means] <- out[means] + room + response_rounding(fit, new$x)
  row.names(out) <- if (!is.null(new$names)) make.unique(as.character(new$names))
  out
}

# Returns bounds on the rounding errors of the mean, sd, variance and SoR variance that the posterior `own` predicts at
# the rows x. r is the result of certify_with() at x. The bound on the mean is that of certify() for rounding errors,
# plus the effect of rounding in the features of the rows (section 10 of the theory vignette).
prediction_rounding <- function(own, r, x) {
  model <- own$model
  noise <- model$noise
  norms <- norms_for(own$norms, own$factors, model, x)
  k <- kernel_diagonal(model$kernel, x)
  mean <- certify_with(own$factors, replace(norms, "w_E", 0), own$z, model, values_at(model$kernel, x))$mean_error
  inner <- norms$growth * norm2(own$factors$G) / noise
  sor <- r$sor_variance
  if (inner >= 0.25) return(list(mean = mean, sd = sqrt(pmax(k, sor)), var = pmax(k, sor), sor = pmax(k, sor)))
  h <- sqrt(sor / noise)
  k_error <- norms$unit * (sqrt(k * norms$K_norm) + norms$K_norm * h)
  sor_error <- sor * (inner / (1 - inner) + 4 * .Machine$double.eps) + 2 * k_error * h
  kappa <- sqrt(norms$slack) * (sqrt(k) + sqrt(pmax(k, norms$most) * norms$weight) * h)
  wide <- ifelse(r$var_upper >= k, sqrt(k), sqrt(pmax(r$var_upper - sor, 0)))
  var <- (2 * wide + kappa) * kappa + sor_error
  v <- sqrt(norms$vv) + residual_error(own$factors, norms, model)$v
  mean <- mean + wide * sqrt(norms$slack * k * norms$weight) * v
  list(mean = mean, sd = pmin(sqrt(var), var / sqrt(sor + r$unexplained)), var = var, sor = sor_error)
}

# Returns the exact posterior given only the rows fit$aux_rows (chosen by aux_subset()), for the cleaned response.
subset_posterior <- function(fit, data) {
  rows <- fit$aux_rows
  some <- list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = merged_weights(data)[rows])
  model <- new_model(model_of(fit)$kernel, model_of(fit)$noise)
  new_posterior("exact", model, NULL, some, x = some$x, factors = native_exact(some, model))
}

# Returns `log_density_ratio`, an upper bound on the log density ratio of the exact posterior to nu, the posterior given
# a subset of rows. The bound is log Z_nu - log Z - (sum over the other rows of log(2 pi s2 / w)) / 2. Z_nu is the
# marginal likelihood of the subset, Z a lower bound for all rows, w are weights. Half this bound plus the log pF
# divergence from nu is `log_eps`, the log of a bound on the pF divergence from the exact posterior.
ratio_bound <- function(fit, p, reference) {
  lower <- own_bracket(fit)[["lower"]]
  if (!is.null(reference)) lower <- max(lower, evidence_bracket(reference, NULL)[["lower"]])
  data <- p$rows
  model <- p$model
  noise <- model$noise
  w <- merged_weights(data)
  here <- lower - merged_log_density(data$shift, noise) - data$shift$constant + sum(log(w)) / 2
  ratio <- -subset_posterior(fit, data)$factors$minus_evidence - sum(log(2 * pi * noise / w[-fit$aux_rows])) / 2 - here
  aux <- divergence_aux(NULL, fit, data, model)
  objective <- pf_objectives[[aux$objective]]
  d2 <- (objective$divergence(aux, p$z, p$factors, p$jitter, data, model) * noise)^2 # squared pF divergence * noise^2
  rounding <- 4 * rounding_growth(nrow(p$z), nrow(data$x)) * objective$constant(aux, data, model)
  log_eps <- ratio / 2 + log(d2 + rounding) / 2 - log(noise)
  prior <- log((p$factors$yy + p$factors$k_sum) / noise) / 2
  vacuous <- log_eps >= prior
  note <- sprintf("The paper's bound by the density ratio has log eps = %.4g%s; without inducing points it is %.4g.",
                  log_eps, if (vacuous) " and is vacuous" else "", prior)
  list(log_density_ratio = ratio, log_eps = log_eps, vacuous = vacuous, note = note)
}

# Estimates the log of the largest density ratio of the exact posterior to nu, the posterior given a subset of rows.
# Draws of f from nu at the other rows n get the weight prod_n exp(-w_n (y_n - f_n)^2 / (2 s2)) <= 1. Density ratios are
# weight / (mean weight), at most 1 / (mean weight). `density_ratio_ess` is the effective number of draws.
estimate_density_ratio <- function(fit, data, samples) {
  rest <- seq_along(data$y)[-fit$aux_rows]
  n <- length(rest)
  if (!n) return(list(density_ratio_estimate = 0, density_ratio_ess = samples))
  what <- sprintf("draws from the auxiliary distribution at %d rows", n)
  if (n <= dense_draws) check_memory(32 * as.double(n)^2, what)
  given <- subset_posterior(fit, data)
  w <- merged_weights(data)[rest]
  most <- max(64, 1e7 %/% n) # number of draws at a time
  log_weight <- unlist(lapply(blocks_of(seq_len(samples), most), function(i) {
    f <- posterior_draws(given, data$x[rest, , drop = FALSE], length(i))
    -colSums(w * (data$y[rest] - f)^2) / (2 * given$model$noise)
  }))
  largest <- max(log_weight)
  weight <- exp(log_weight - largest)
  list(density_ratio_estimate = -(largest + log(mean(weight))), density_ratio_ess = sum(weight)^2 / sum(weight^2))
}

#' Compute divergences from the exact posterior, and error bounds
#'
#' `kl_divergence()` returns \eqn{\mathrm{KL}(\tilde\pi \,\|\, \pi)}{KL(approximation || exact)} between the posterior
#' processes of a fit and of [gp_exact()]; with `newdata`, the mean divergence between the marginal distributions.
#' `pf_divergence()` returns the preconditioned Fisher divergence \eqn{d_{pF}}{d_pF} between a DTC posterior and an
#' auxiliary distribution. `error_bounds()` returns the finite-data bounds of Huggins et al. (2019) on the errors of
#' mean, sd and variance of a DTC posterior. These bounds are wide: [certify()] gives practical intervals.
#' @usage
#' kl_divergence(fit, exact, newdata = NULL)
#' pf_divergence(fit, nu = NULL)
#' error_bounds(fit, newdata, effort = c("reference", "fast"), ..., reference = fit$reference,
#'   m2 = NULL, samples = 0)
#' @param fit A Gaussian fit. `kl_divergence()` needs `newdata` if the fit has neighbours. The others need a fit by
#'   [pfdtc()], [gp_vfe()] or [gp_dtc()] with data (with groups, exact only). They ignore neighbours. An exact
#'   posterior of [pfdtc()] counts as DTC.
#' @param exact An exact fit ([gp_exact()]) with equal data and hyperparameters.
#' @param newdata Rows to compare at. `error_bounds()`: default training rows.
#' @param nu An auxiliary distribution: the result of [auxiliary()], [aux_sor()] or a similar function, or a fit of the
#'   same data and hyperparameters. Default: nu of a [pfdtc()] fit. [aux_white()] takes \eqn{O(n^3)} time.
#' @param effort `"fast"` uses the inducing points of the fit, `"reference"` also a [reference()].
#' @param reference,m2,... As in [certify()].
#' @param samples Number of importance samples for an estimate of the density ratio, which is no bound.
#' @return `kl_divergence()`: a number of at least 0 (natural logarithm). It is `Inf` for SoR without `newdata`, because
#'   the SoR posterior is singular. `pf_divergence()`: a number of at least 0. `error_bounds()`: a data frame with the
#'   columns `mean_bound`, `sd_bound`, `mean_bound_sharp`, `sd_bound_sharp` (units of f) and `var_bound` (squared
#'   units). Attributes: `eps`, a bound on the pF divergence between the fit and the exact posterior, with its parts
#'   `eps_mean` (for `mean_bound_sharp`) and `eps_cov` (for `sd_bound_sharp`); `w2`, a bound on their 2-Wasserstein
#'   distance. A fit with [aux_subset()] also has the paper's bound on the pF divergence: `log_eps`, its log;
#'   `log_density_ratio`, a bound on the log ratio of the densities of exact posterior and nu, which grows with the rows
#'   outside the subset; `vacuous` (no better than without points?); with `samples`, `density_ratio_estimate` (a
#'   log) and its effective sample size `density_ratio_ess`.
#' @section Invariants: The exact posterior has divergence 0, up to rounding. At every point, with mean~ and sd~ of the
#'   fit and KL without `newdata`, \eqn{(\tilde\mu - \mu)^2 + (\tilde\sigma - \sigma)^2 \le 2 \sigma^2
#'   \mathrm{KL}}{(mean~ - mean)^2 + (sd~ - sd)^2 <= 2 sd^2 KL}. If `nu` is the exact posterior, \eqn{|\tilde\mu(x) -
#'   \mu(x)| \le \sqrt{k(x, x)}\, d_{pF}}{|mean~(x) - mean(x)| <= sqrt(k(x, x)) d_pF}. `|mean~ - mean| <=
#'   mean_bound_sharp <= mean_bound`, and so for the sd. `eps^2 = eps_mean^2 + eps_cov^2`.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), sections 3 and 4; Matthews, Hensman, Turner and Ghahramani
#'   (2016); theory vignette.
#' @seealso [certify()], [pf_objective()], [compare_fits()]
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' dtc <- gp_dtc(dist ~ speed, cars, m = 3, like = exact)
#' kl_divergence(dtc, exact, newdata = cars)
#' pf_divergence(dtc, aux_white())
#' error_bounds(dtc, data.frame(speed = c(5, 15)), effort = "fast")
#' @aliases pf_divergence error_bounds
#' @export
kl_divergence <- function(fit, exact, newdata = NULL) {
  fit <- check_fit(fit, "fit")
  exact <- check_exact(exact, list(fit))
  if (!is.null(newdata)) {
    at <- lapply(list(fit, exact), function(one) latent_at(one, new_inputs(one, newdata)$x))
    refuse_if(!length(at[[1L]]$mean), "newdata", "has no complete rows", hint = "A mean over rows needs at least one.")
    return(kl_marginal(at[[1L]], at[[2L]]))
  }
  if (is_exact(fit)) return(0)
  refuse_if(!is.null(fit$near), "fit",
            "uses neighbours, which differ between rows, so it has no divergence over all inputs",
            hint = "Give `newdata`.")
  family <- method_traits(fit)
  if (family$sor) return(Inf)
  data <- if (family$some || family$fitc) training_data(fit, "fit")
  rest <- setdiff(seq_along(data$y), fit$chosen)
  noise <- model_of(fit)$noise
  bound <- fit$evidence
  if (family$fitc) { # minus the KL divergence of the whitened inducing values from their prior
    C <- fit$factors$C
    m <- nrow(C)
    bound <- (m * (1 + log(noise)) - noise * sum(forwardsolve(C, diag(m))^2) - sum(fit$factors$beta^2)) / 2 -
      sum(log(diag(C)))
  }
  if (length(rest)) { # add the sum of E log N(y_n; f_n, s2 / w_n) over the rows that `bound` omits, in units of y
    p <- posterior_values(posterior_of(fit), data$x[rest, , drop = FALSE])
    w <- merged_weights(data)[rest]
    bound <- bound - (sum(log(2 * pi * noise / w) / 2 + w * ((data$y[rest] - p$mean)^2 + p$var) / (2 * noise)) +
                        length(rest) * log(data$scale))
  }
  max(exact$evidence - bound, 0) # rounding may make the difference negative
}

# Returns the mean over the rows of KL(a || b), for normal distributions a and b (lists of mean and var).
kl_marginal <- function(a, b) {
  ratio <- a$var / b$var
  mean((ratio - 1 - log(ratio) + (a$mean - b$mean)^2 / b$var) / 2)
}

#' @export
pf_divergence <- function(fit, nu = NULL) {
  fit <- check_fit(fit, "fit")
  check_dtc(fit, "The pF divergence compares DTC posteriors with an auxiliary distribution.")
  data <- training_data(fit, "fit")
  p <- posterior_on_points(posterior_of(fit))
  aux <- divergence_aux(nu, fit, data, p$model)
  pf_objectives[[aux$objective]]$divergence(aux, p$z, p$factors, p$jitter, p$rows, p$model)
}

# Returns `given` as an auxiliary distribution, or that of the fit if `given` is NULL.
divergence_aux <- function(given, fit, data, model) {
  if (is.null(given)) {
    if (is.null(fit$aux) && (is_exact(fit) || !is.null(fit$near))) fit$aux <- aux_white()
    refuse_if(is.null(fit$aux), "nu", "is missing",
              hint = "For a fit by another function than pfdtc(), give aux_reference() or a gp_exact() fit.")
    if (!is.null(fit$aux_rows)) return(exact_on_rows(data, fit$aux_rows, model))
    own <- is.null(fit$aux_points) || !is.null(fit$aux$make)
    return(make_auxiliary(if (own) fit$aux else new_aux("points", z = fit$aux_points), data, model, fit$m))
  }
  if (inherits(given, "pfdtc_auxiliary")) {
    check_made_from(given, data, model)
    return(given)
  }
  if (!inherits(given, "gp_fit")) return(make_auxiliary(check_aux(given, "nu"), data, model, fit$m))
  given <- check_fit(given, "nu")
  check_same_model(given, fit, "nu", "fit")
  p <- posterior_of(given)
  if (inherits(p, "near")) p <- posterior_on_points(p)
  # Convert the factors of the posterior to units of the cleaned response of `fit`.
  post <- p$factors
  unit <- p$model$scale / fit$scale
  post$L <- (if (inherits(p, "exact")) cholesky_of(p) else post$L) * unit
  if (is.null(post$C)) post$alpha <- post$alpha / unit else post$C <- post$C * unit
  n <- nrow(post$L)
  if (inherits(p, "exact")) { # covariance k - b'b, b = L^{-1} k(U, x)
    check_memory(24 * as.double(n)^2, sprintf("the exact posterior of %d rows as an auxiliary distribution", n))
    return(low_rank_auxiliary(p$x, t(forwardsolve(post$L, diag(n))), rep(-1, n), post$alpha, 1L, model,
                              "exact posterior"))
  }
  sor <- sor_auxiliary(post, p$z, model)
  if (p$sor) return(sor)
  nystrom <- t(forwardsolve(post$L, diag(n))) # DTC covariance: prior - Nystrom approximation + SoR covariance
  low_rank_auxiliary(p$z, cbind(nystrom, sor$W[, seq_len(n)]), rep(c(-1, 1), each = n), sor$W[, n + 1L], 1L, model,
                     "DTC posterior")
}
