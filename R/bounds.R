#' Bounds of the theorem
#'
#' The finite-data bounds of Huggins et al. (2019) on mean, sd and variance, with the exact posterior as auxiliary
#' distribution: then the density ratio is 1 and \eqn{\varepsilon = d_{pF}}{eps = d_pF}, here bounded above by
#' quantities that are computable in \eqn{O(n m^2)}. As printed in the paper, \deqn{|\tilde\mu - \mu| \le
#' \sqrt{k}\,\varepsilon, \quad |\tilde\sigma - \sigma| \le \sqrt{6 k}\,\varepsilon, \quad |\tilde\sigma^2 - \sigma^2|
#' \le 3\sqrt{k}\,\tilde\sigma\varepsilon + 6 k \varepsilon^2,}{ |mean~ - mean| <= sqrt(k) eps, |sd~ - sd| <= sqrt(6
#' k) eps, |var~ - var| <= 3 sqrt(k) sd~ eps + 6 k eps^2,} with \eqn{k = k(x, x)}, and sharper, \eqn{|\tilde\mu - \mu|
#' \le \sqrt{k}\,\varepsilon_{mean}}{|mean~ - mean| <= sqrt(k) eps_mean} (with \eqn{k} replaced by what the inducing
#' points leave unexplained at `x`, where that is less) and \eqn{|\tilde\sigma - \sigma| \le
#' \sqrt{k}\,\varepsilon_{cov}}{|sd~ - sd| <= sqrt(k) eps_cov}. They hold at every point at once and are far above the
#' actual error; [certify()] gives intervals of practical size. An allowance for rounding is added to each.
#'
#' A fit by [pfdtc()] under [aux_subset()] also gets what the paper itself proposes, for an auxiliary distribution
#' \eqn{\nu} that is the exact posterior given some rows: \deqn{\varepsilon = \|d\pi / d\nu\|_\infty^{1/2}\,
#' d_{pF}(\nu), \quad \log \|d\pi / d\nu\|_\infty = \log Z_\nu - \tfrac12 \sum_{rest} \log(2\pi\sigma^2 / w_n) - \log
#' Z.}{eps = |d pi / d nu|^(1/2) d_pF(nu), with log |d pi / d nu| = log Z_nu - sum over the other rows of log(2 pi s2 /
#' w_n) / 2 - log Z.} \eqn{\log Z}{log Z}, the exact log evidence, is bounded below by [evidence_bounds()]. The ratio
#' grows exponentially in the number of rows left out: beyond a few dozen of them the bound is *vacuous*, above what
#' holds without any inducing points. The attribute `note` says so where it is so. Under other auxiliary distributions
#' (SoR on random rows, refreshed, or the reference) the ratio is infinite, and \eqn{d_{pF}(\nu)}{d_pF(nu)} is a
#' criterion to fit by, never a bound.
#'
#' With `samples` the ratio is also *estimated*, as the paper suggests, by importance sampling: draws from \eqn{\nu} at
#' the other rows, weighted by their likelihood, whose mean estimates \eqn{Z / Z_\nu}{Z / Z_nu}. That is no bound: the
#' effective sample size tells how many of the draws the estimate rests on, and where it is near 1 the estimate is as a
#' rule too high, by an unknown amount. Draws take the covariance of the other rows, in low rank where that leaves out
#' less than a hundredth of the noise over all rows, else as a dense matrix, at the cost of [gp_exact()], which gives
#' the ratio itself.
#'
#' @inheritParams certify
#' @param fit a fit by [pfdtc()], [gp_vfe()] or [gp_dtc()], with its data. The theorem is about DTC posteriors: of a fit
#'   with near rows it bounds the error of its inducing points *alone*, computed anew from the data, and of an exact one
#'   that of the DTC posterior with all rows as inducing points. Errors of predictions by near rows are bounded by
#'   [certify()].
#' @param effort `"fast"` uses the fit's own points, `"reference"` also a bigger posterior.
#' @param samples number of draws for the estimate of the density ratio of a fit under [aux_subset()]; 0: none.
#' @return A data frame with a row for each row of `newdata` and columns `mean_bound`, `sd_bound` (units of `y`),
#'   `var_bound` (squared units), `mean_bound_sharp` and `sd_bound_sharp`. Attributes `eps`, `eps_mean`, `eps_cov`
#'   (without unit), `w2` (bound of the 2-Wasserstein distance of the processes, equal to `eps`) and, for a fit
#'   optimised under [aux_subset()]:
#'   \describe{
#'   \item{log_density_ratio}{bound of the log of the density ratio.}
#'   \item{log_eps}{log of the \eqn{\varepsilon}{eps} that this ratio and the fit's own criterion give.}
#'   \item{vacuous}{is that above \eqn{\log \varepsilon}{log eps} of the prior, which has no inducing points at all?}
#'   \item{note}{what that means, a sentence.}
#'   \item{density_ratio_estimate, density_ratio_ess}{with `samples`: an estimate, not a bound, of the log of the
#'     density ratio, and its effective sample size, from 1 to `samples`.}
#'   }
#' @section Errors: class `pfdtc_error_input` for SoR, FITC, subsample and exact fits: the theorem is about DTC
#'   posteriors; for `samples` of a fit that was not optimised under [aux_subset()]; and where the draws would take more
#'   memory than `getOption("pfdtc.max_memory", 2^32)` bytes, before it is taken.
#' @section Invariants: `|mean - exact mean| <= mean_bound_sharp <= mean_bound`, and likewise for the sd;
#'   `eps^2 = eps_mean^2 + eps_cov^2`; with a kept reference `effort = "reference"` gives no larger bound than `"fast"`,
#'   given the same seed (norms are computed on random groups of rows).
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), theorem on the pF divergence and its corollaries; theory
#'   vignette.
#' @seealso [certify()], [pf_divergence()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' error_bounds(fit, data.frame(speed = c(5, 15)), effort = "fast")
#'
#' some <- pfdtc(dist ~ speed, cars, m = 4, aux = aux_subset(rows = 1:40), control = list(maxit = 5))
#' attributes(error_bounds(some, cars[1, ], effort = "fast", samples = 100))
#' @export
error_bounds <- function(fit, newdata, effort = c("reference", "fast"), ..., reference = fit$reference, m2 = NULL,
                         samples = 0) {
  check_dots_empty(list(...), names(formals(error_bounds)))
  fit <- check_fit(fit, "fit")
  check_dtc(fit, "The theorem is about DTC posteriors; certify() works for every fit.")
  effort <- check_choice(effort, c("reference", "fast"), "effort")
  fit <- far_part(fit)
  data <- needs_data(fit, "fit")
  subset <- !is.null(fit$aux_rows)
  samples <- check_count(samples, "samples", min = 0)
  if (samples > 0L && !subset) {
    abort_input("samples", samples, "0 for a fit that was not optimised under aux_subset()",
                hint = "The density ratio of its auxiliary distribution is infinite, or there is none.")
  }
  if (effort == "reference") reference <- find_reference(fit, reference, m2)
  new <- if (missing(newdata)) training_rows(fit) else new_rows(fit, newdata, stats::na.pass)
  own <- theorem_posterior(fit)
  # of a reference whose rows are merged otherwise y'w counts what merging takes out
  same_rows <- effort == "reference" &&
    abs(in_units(reference, reference$factors$yy, 2) / in_units(fit, fit$factors$yy, 2) - 1) <= 1e-12
  eps <- theorem_eps(own, if (isTRUE(same_rows)) least_quadratic(reference, data_in_scale(fit, reference)) else 0)
  out <- theorem_frame(fit, own, eps, new)
  for (name in names(eps)) attr(out, name) <- eps[[name]]
  attr(out, "w2") <- eps$eps
  if (!subset) return(out)
  about <- ratio_bound(fit, data, if (effort == "reference") reference)
  if (samples > 0L) about <- c(about, estimate_density_ratio(fit, data, samples))
  for (name in names(about)) attr(out, name) <- about[[name]]
  out
}

# The fit's own posterior with its norms, or, where its jitter is below what the factorisation itself errs by, one on
# those of its points that differ, with no less jitter: that leaves more unexplained, so its eps is above the fit's.
theorem_posterior <- function(fit) {
  model <- model_of(fit)
  if (fit$jitter >= safe_jitter(nrow(fit$inducing))) {
    return(with_fast_norms(fit))
  }
  z <- distinct_points(fit$inducing, model$kernel)
  dtc_on_points(fit, fit$data, z, NULL, fast = TRUE, inner = list(jitter = max(fit$jitter, rounding_jitter(nrow(z)))))
}

# eps_mean^2 <= y'v - y'w <= min(c |v|_E^2 / (c + |v|_E^2), c - least),  eps_cov^2 <= t / s2.  `least`: y'w is no less.
theorem_eps <- function(own, least) {
  model <- model_of(own)
  q <- quadratic_bracket(own$factors, own$norms, model)
  mean2 <- max(min(harmonic(q$upper, own$norms$v_E^2), q$upper - max(least, q$least)), 0)
  cov2 <- own$norms$t / model$noise
  list(eps = sqrt(mean2 + cov2), eps_mean = sqrt(mean2), eps_cov = sqrt(cov2))
}

# Returns c V / (c + V), whose limit for infinite c is V.
harmonic <- function(c, V) if (c <= 0 || V <= 0) 0 else if (is.infinite(c)) V else c / (1 + c / V)

# The bounds at the rows, in units of y: those of the theorem for `own`, the errors that rounding has made in its
# predictions, and how far the fit's predictions are from them (by rounding alone, where the two are not the same).
theorem_frame <- function(fit, own, eps, new) {
  model <- model_of(own)
  k <- prior_at(model, new$x)
  r <- native_certify(own$factors, own$inducing, model, own$norms, new$x)
  error <- prediction_rounding(own, r, new$x)
  p <- posterior_values(posterior_of(fit), new$x)
  sd <- sqrt(pmax(p$var, 0))
  own_sd <- sqrt(r$sor_variance + r$unexplained)
  mean_more <- error$mean + abs(p$mean - r$mean)
  sd_more <- error$sd + abs(sd - own_sd)
  var_more <- error$var + abs(sd^2 - own_sd^2)
  left <- pmin(pmax(r$var_upper - r$sor_variance + error$sor, 0), k) # var_exact - var_SoR at most
  up <- 1 + 16 * .Machine$double.eps
  unit <- up * fit$scale
  out <- data.frame(
    mean_bound = unit * (sqrt(k) * eps$eps + mean_more), sd_bound = unit * (sqrt(6 * k) * eps$eps + sd_more),
    var_bound = up * unit^2 * (3 * sqrt(k) * (own_sd + error$sd) * eps$eps + 6 * k * eps$eps^2 + var_more),
    mean_bound_sharp = unit * (sqrt(left) * eps$eps_mean + mean_more),
    sd_bound_sharp = unit * (sqrt(k) * eps$eps_cov + sd_more))
  out <- out[new$index, , drop = FALSE]
  means <- c("mean_bound", "mean_bound_sharp") # centre and offset round what they are added to
  room <- 4 * .Machine$double.eps * (abs(fit$center) + abs(fit$scale * p$mean[new$index]) + abs(new$offset))
  out[means] <- out[means] + room + response_rounding(fit, new$x)
  row.names(out) <- if (!is.null(new$names)) make.unique(as.character(new$names))
  out
}

# What rounding does to mean, sd, variance and SoR variance at the rows x, certify.h has the reasons. The mean's is the
# certificate with |w|_E = 0, and what errors of A make of it by way of beta: s2 C_x'L^{-1} R v, where s2 L^{-T} C_x are
# the weights that (1, -h_x) is best explained by, hence at most wide kappa_v, wide >= sqrt(E(x, x)) + |h_x|_E. With
# |h_x|^2 <= var_SoR / s2 and kappa = sqrt(slack k) (1 + sqrt(weight) |h_x|) the variance moves by
# (2 wide + kappa) kappa, beside what s2 I + G errs by.
prediction_rounding <- function(own, r, x) {
  model <- model_of(own)
  noise <- model$noise
  norms <- own$norms
  k <- prior_at(model, x)
  norms$w_E <- 0
  mean <- native_certify(own$factors, own$inducing, new_model(model$kernel, noise), norms, x)$mean_error
  G_norm <- sqrt(sum(own$factors$G^2))
  inner <- norms$growth * G_norm / noise
  sor <- r$sor_variance
  if (inner >= 0.25) return(list(mean = mean, sd = sqrt(pmax(k, sor)), var = pmax(k, sor), sor = pmax(k, sor)))
  h <- sqrt(sor / noise)
  K_norm <- G_norm + norms$lam
  k_error <- 4 * .Machine$double.eps * (sqrt(k * K_norm) + K_norm * h)
  sor_error <- sor * (inner / (1 - inner) + 4 * .Machine$double.eps) + 2 * k_error * h
  kappa <- sqrt(norms$slack) * (sqrt(k) + sqrt(pmax(k, most_of_rows(norms, model)) * norms$weight) * h)
  wide <- sqrt(pmax(r$var_upper - sor, 0))
  wide <- ifelse(r$var_upper >= k, sqrt(k), wide)
  var <- (2 * wide + kappa) * kappa + sor_error
  v <- sqrt(norms$vv) + residual_error(own$factors, norms, model)$v
  mean <- mean + wide * sqrt(norms$slack * k * norms$weight) * v
  list(mean = mean, sd = pmin(sqrt(var), var / sqrt(sor + r$unexplained)), var = var, sor = sor_error)
}

# ---- the density ratio of a subset ----------------------------------------------------------------------------------

# log |d pi / d nu| <= log Z_nu - (sum over the other rows of log(2 pi s2 / w))/2 - log Z, with nu the exact posterior
# given some rows, whose log evidence is log Z_nu, and log Z at least what evidence_bounds() says: in the units of the
# scaled y, without what merged rows add.
log_density_ratio <- function(fit, data, lower) {
  model <- model_of(fit)
  noise <- model$noise
  rows <- fit$aux_rows
  w <- merged_weights(data)
  some <- native_exact(list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = w[rows]),
                       new_model(model$kernel, noise))
  here <- lower - merged_log_density(data$shift, noise) - data$shift$constant + sum(log(w)) / 2
  -some$minus_evidence - sum(log(2 * pi * noise / w[-rows])) / 2 - here
}

# The theorem as the paper has it. Without inducing points eps_mean^2 <= y'y / s2, eps_cov^2 <= tr K / s2.
ratio_bound <- function(fit, data, reference) {
  lower <- evidence_bounds(fit)[["lower"]]
  if (!is.null(reference)) lower <- max(lower, evidence_bracket(reference, NULL)[["lower"]])
  ratio <- log_density_ratio(fit, data, lower)
  model <- model_of(fit)
  noise <- model$noise
  aux <- divergence_aux(NULL, fit, data, model)
  # s2^2 d_pF^2, what is left of C(X)
  d2 <- (low_rank_divergence(aux, fit$inducing, fit$factors, fit$jitter, data, model) * noise)^2
  rounding <- 4 * rounding_growth(fit$m, nrow(data$x)) * pf_constant(data, model, aux)
  log_eps <- ratio / 2 + log(d2 + rounding) / 2 - log(noise)
  prior <- log((fit$factors$yy + fit$factors$k_sum) / noise) / 2
  vacuous <- log_eps >= prior
  says <- if (vacuous) "is vacuous: log eps = %.4g, and" else "gives log eps = %.4g;"
  note <- sprintf(paste("The paper's bound by the density ratio", says, "without inducing points it is %.4g."),
                  log_eps, prior)
  list(log_density_ratio = ratio, log_eps = log_eps, vacuous = vacuous, note = note)
}

# Self-normalised importance sampling: f from nu at the other rows, with weights prod N(y_n; f_n, s2 / w_n), whose mean
# estimates Z / Z_nu. The density ratio is weight / mean, at most prod (2 pi s2 / w_n)^{-1/2} / mean: with that factor
# left out of the weights, exp(-sum w_n (y_n - f_n)^2 / (2 s2)), the largest ratio is 1 / mean.
estimate_density_ratio <- function(fit, data, samples) {
  model <- model_of(fit)
  w <- merged_weights(data)
  rows <- fit$aux_rows
  rest <- seq_along(data$y)[-rows]
  if (!length(rest)) return(list(density_ratio_estimate = 0, density_ratio_ess = samples))
  draw <- subset_draws(data, rows, rest, w, model)
  log_weight <- numeric(samples)
  for (i in split(seq_len(samples), (seq_len(samples) - 1L) %/% 64L)) {
    log_weight[i] <- -colSums(w[rest] * (data$y[rest] - draw(length(i)))^2) / (2 * model$noise)
  }
  largest <- max(log_weight)
  weight <- exp(log_weight - largest)
  list(density_ratio_estimate = -(largest + log(mean(weight))), density_ratio_ess = sum(weight)^2 / sum(weight^2))
}

# A function that draws columns from the exact posterior given some rows, at the rest. With greedy points that explain
# the prior at all these rows up to a hundredth of the noise, f = A'u and u is drawn given the rows; else by the factor
# of the covariance.
subset_draws <- function(data, rows, rest, w, model) {
  noise <- model$noise
  x <- data$x[rest, , drop = FALSE]
  left <- 0.01 * noise / max(w)
  most <- min(nrow(data$x), getOption("pfdtc.memory", 2^27) %/% (8 * nrow(data$x)))
  if (most > 0) {
    greedy <- native_select(data$x, most, model$kernel, left / (nrow(data$x) * prior_most(model, data$x)))
    if (greedy$t[length(greedy$t)] <= left) {
      z <- data$x[greedy$pivots, , drop = FALSE]
      post <- native_posterior(z, list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = w[rows]),
                               new_model(model$kernel, noise), 0)
      A <- forwardsolve(post$L, native_kernel_matrix(model$kernel, z, x))
      mean <- drop(crossprod(A, post$beta))
      R <- sqrt(noise) * forwardsolve(post$C, A) # covariance s2 a'(s2 I + G)^{-1} a
      return(function(k) mean + crossprod(R, matrix(stats::rnorm(nrow(R) * k), nrow(R))))
    }
  }
  check_memory(32 * as.double(length(rest))^2,
               sprintf("draws from the auxiliary distribution at %d rows", length(rest)))
  post <- native_exact(list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = w[rows]),
                       new_model(model$kernel, noise))
  mean <- native_exact_predict(post, data$x[rows, , drop = FALSE], model$kernel, x)$mean
  cov <- native_exact_covariance(post, data$x[rows, , drop = FALSE], model$kernel, x)
  R <- suppressWarnings(chol(cov, pivot = TRUE))
  R[seq_along(rest) > attr(R, "rank"), ] <- 0
  pivot <- order(attr(R, "pivot"))
  function(k) mean + crossprod(R, matrix(stats::rnorm(length(rest) * k), length(rest)))[pivot, , drop = FALSE]
}
