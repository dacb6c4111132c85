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
  if (!fit$method %in% dtc_methods) {
    abort_input("fit", sprintf("a fit by %s()", fit$method), "a fit by pfdtc(), gp_vfe() or gp_dtc()",
                hint = "The theorem is about DTC posteriors; certify() works for every fit.")
  }
  effort <- check_choice(effort, c("reference", "fast"), "effort")
  fit <- far_part(fit)
  data <- needs_data(fit, "fit")
  subset <- identical(fit$aux$kind, "subset")
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
    abs(reference$factors$yy * reference$scale^2 / (fit$factors$yy * fit$scale^2) - 1) <= 1e-12
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

dtc_methods <- c("pfdtc", "gp_vfe", "gp_dtc")

# The fit's own posterior with its norms, or, where its jitter is below what the factorisation itself errs by, one on
# those of its points that differ, with no less jitter: that leaves more unexplained, so its eps is above the fit's.
theorem_posterior <- function(fit) {
  noise <- fit$noise / fit$scale^2
  if (fit$jitter >= safe_jitter(nrow(fit$inducing))) {
    fit$norms <- posterior_norms(fit$factors, fit$inducing, fit$data, scaled_kernel(fit), noise, fast = TRUE,
                                 control = fit$control)
    return(fit)
  }
  z <- distinct_points(fit$inducing, scaled_kernel(fit))
  dtc_on_points(fit, fit$data, z, NULL, fast = TRUE, inner = list(jitter = max(fit$jitter, rounding_jitter(nrow(z)))))
}

# eps_mean^2 <= y'v - y'w <= min(c |v|_E^2 / (c + |v|_E^2), c - least),  eps_cov^2 <= t / s2.  `least`: y'w is no less.
theorem_eps <- function(own, least) {
  noise <- own$noise / own$scale^2
  q <- quadratic_bracket(own$factors, own$norms, scaled_kernel(own), noise)
  mean2 <- max(min(harmonic(q$upper, own$norms$v_E^2), q$upper - max(least, q$least)), 0)
  cov2 <- own$norms$t / noise
  list(eps = sqrt(mean2 + cov2), eps_mean = sqrt(mean2), eps_cov = sqrt(cov2))
}

# c V / (c + V)
harmonic <- function(c, V) if (c <= 0 || V <= 0) 0 else c / (1 + c / V)

# The bounds at the rows, in units of y: those of the theorem for `own`, the errors that rounding has made in its
# predictions, and how far the fit's predictions are from them (by rounding alone, where the two are not the same).
theorem_frame <- function(fit, own, eps, new) {
  kernel <- scaled_kernel(own)
  noise <- own$noise / own$scale^2
  k <- kernel$variance
  r <- native_certify(own$factors, own$inducing, kernel, noise, own$norms, new$x)
  error <- prediction_rounding(own, r, new$x)
  p <- predict_posterior(fit, new$x)
  sd <- sqrt(pmax(fit_variance(fit, p), 0))
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
  out[means] <- out[means] + room + response_rounding(fit)
  row.names(out) <- if (!is.null(new$names)) make.unique(as.character(new$names))
  out
}

# What rounding does to mean, sd, variance and SoR variance at the rows x, certify.h has the reasons. The mean's is the
# certificate with |w|_E = 0, and what errors of A make of it by way of beta: s2 C_x'L^{-1} R v, where s2 L^{-T} C_x are
# the weights that (1, -h_x) is best explained by, hence at most wide kappa_v, wide >= sqrt(E(x, x)) + |h_x|_E. With
# |h_x|^2 <= var_SoR / s2 and kappa = sqrt(slack k) (1 + sqrt(weight) |h_x|) the variance moves by
# (2 wide + kappa) kappa, beside what s2 I + G errs by.
prediction_rounding <- function(own, r, x) {
  kernel <- scaled_kernel(own)
  noise <- own$noise / own$scale^2
  norms <- own$norms
  k <- kernel$variance
  norms$w_E <- 0
  mean <- native_certify(own$factors, own$inducing, kernel, noise, norms, x)$mean_error
  G_norm <- sqrt(sum(own$factors$G^2))
  inner <- norms$growth * G_norm / noise
  sor <- r$sor_variance
  if (inner >= 0.25) return(list(mean = mean, sd = sqrt(pmax(k, sor)), var = pmax(k, sor), sor = pmax(k, sor)))
  h <- sqrt(sor / noise)
  K_norm <- G_norm + norms$lam
  k_error <- 4 * .Machine$double.eps * (sqrt(k * K_norm) + K_norm * h)
  sor_error <- sor * (inner / (1 - inner) + 4 * .Machine$double.eps) + 2 * k_error * h
  kappa <- sqrt(norms$slack * k) * (1 + sqrt(norms$weight) * h)
  wide <- sqrt(pmax(r$var_upper - sor, 0))
  wide[r$var_upper >= k] <- sqrt(k)
  var <- (2 * wide + kappa) * kappa + sor_error
  v <- sqrt(norms$vv) + residual_error(own$factors, norms, kernel, noise)$v
  mean <- mean + wide * sqrt(norms$slack * k * norms$weight) * v
  list(mean = mean, sd = pmin(sqrt(var), var / sqrt(sor + r$unexplained)), var = var, sor = sor_error)
}

# ---- y'w of the exact GP, w = (K + s2 I)^{-1} y ----------------------------------------------------------------------

# From one posterior's sums, with c = y'(Q + s2 I)^{-1} y = |y - A'beta|^2 / s2 + |beta|^2 and any tau >= s2 + t:
#   max(c^2 / (c + |v|_E^2), y'(Q + tau I)^{-1} y) <= y'w <= c.
# Rounding, in the symbols of certify.h. c is the least of |y - A'b|^2 / s2 + |b|^2 over b, so the computed beta gives
# no less, and it is the largest of 2 u'y - |A u|^2 - s2 |u|^2 over u, so v = (y - A'beta) / s2 gives no more: that is
# s2 |v|^2 + |beta|^2 - |A v - beta|^2, A v - beta = (A y - (s2 I + G) beta) / s2. Errors L^{-1} r of A move |A u|^2 by
# (2 |u|_E + kappa) kappa, kappa^2 = slack sum k w u^2, and A'b by r'L^{-T} b: whichever is less. Sums and differences
# err by growth times their terms.
quadratic_bracket <- function(p, norms, kernel, noise) {
  growth <- norms$growth
  error <- residual_error(p, norms, kernel, noise)
  beta <- sqrt(sum(p$beta^2))
  A_norm <- sqrt(sum(diag(p$G)))
  e <- sqrt(p$rss)
  v <- sqrt(norms$vv) + error$v
  kappa <- sqrt(norms$slack * kernel$variance * norms$weight) * v
  moved <- if (kappa > 0) (2 * norms$v_E + kappa) * kappa else 0
  upper <- (1 + growth) * ((e + error$e)^2 / noise + beta^2)
  by_row <- (1 + growth) * ((e + error$e + error$row)^2 / noise + beta^2)
  upper <- min(upper + moved, by_row, (1 + growth) * p$yy / noise)
  by_row <- 2 * (v * error$row + kappa * norms$beta_error / noise) + kappa^2
  lower <- (1 - growth) * (max(e - error$e, 0)^2 / noise + beta^2) - (norms$beta_error / noise)^2 - min(moved, by_row)
  least <- if (lower > 0) lower / (1 + norms$v_E^2 / lower) else 0

  tau <- noise + norms$t
  G_norm <- sqrt(sum(p$G^2))
  if (growth * (G_norm + tau) < tau / 8) {
    R <- chol(p$G + diag(tau, nrow(p$G)))
    u <- backsolve(R, p$Ay, transpose = TRUE)
    b <- backsolve(R, u)
    row <- growth * sqrt(kernel$variance * p$k_sum * sum(solve_t(p$L, b)^2))
    b <- sqrt(sum(b^2))
    b_error <- growth * ((G_norm + tau) * b + A_norm * sqrt(p$yy))
    sums <- growth * (p$yy + sum(u^2)) + 4 * b * b_error
    moved <- min(2 * sqrt(norms$lam) * v * kappa, 2 * (v * row + kappa * b_error / tau)) + kappa^2
    least <- max(least, (p$yy - sum(u^2) - sums) / tau - moved)
  }
  list(lower = max(lower, 0), upper = upper, least = max(least, 0))
}

# |error| of e = y - A'beta as computed, what errors of A in A'beta add, and of v: beta is not quite
# (s2 I + G)^{-1} A y, and errors of A move it too, |B^{-1} A'| <= 1 / (2 sqrt(s2)).
residual_error <- function(p, norms, kernel, noise) {
  beta <- sqrt(sum(p$beta^2))
  e <- norms$growth * (sqrt(p$yy) + sqrt(sum(diag(p$G))) * beta)
  moved <- sqrt(norms$slack * kernel$variance * norms$weight * norms$vv)
  row <- norms$growth * sqrt(kernel$variance * p$k_sum) * norms$alpha
  list(e = e, row = row, v = (norms$beta_error / noise + moved) / (2 * sqrt(noise)) + (e + row) / noise)
}

# y'w is at least this: from a posterior with its norms and, where its mean is corrected, from the solution u of its
# correction, y'w >= 2 u'y - u'(K + s2 I) u, at the price of one pass over the pairs of rows.
least_quadratic <- function(post, data) {
  kernel <- scaled_kernel(post)
  noise <- post$noise / post$scale^2
  least <- quadratic_bracket(post$factors, post$norms, kernel, noise)$least
  if (!correction_serves(post, data)) return(least)
  u <- post$correction$v
  y <- data$y * if (is.null(data$weights)) 1 else sqrt(data$weights)
  Ku <- native_kernel_product(kernel, data$x, data$weights, u, post$control)
  K_norm <- sqrt(sum(post$factors$G^2)) + post$norms$lam
  growth <- 4 * .Machine$double.eps + post$norms$growth
  size <- sum(u^2)
  error <- growth * (2 * sqrt(size * sum(y^2)) + (noise + K_norm) * size)
  max(least, 2 * sum(u * y) - sum(u * Ku) - noise * size - error)
}

# ---- the density ratio of a subset ----------------------------------------------------------------------------------

# log |d pi / d nu| <= log Z_nu - (sum over the other rows of log(2 pi s2 / w))/2 - log Z, with nu the exact posterior
# given some rows, whose log evidence is log Z_nu, and log Z at least what evidence_bounds() says: in the units of the
# scaled y, without what merged rows add.
log_density_ratio <- function(fit, data, lower) {
  noise <- fit$noise / fit$scale^2
  rows <- fit$aux_rows
  w <- if (is.null(data$weights)) rep(1, nrow(data$x)) else data$weights
  some <- native_exact(data$x[rows, , drop = FALSE], data$y[rows], w[rows], scaled_kernel(fit), noise)
  here <- lower - merged_log_density(data$shift, noise) - data$shift$constant + sum(log(w)) / 2
  -some$minus_evidence - sum(log(2 * pi * noise / w[-rows])) / 2 - here
}

# The theorem as the paper has it. Without inducing points eps_mean^2 <= y'y / s2, eps_cov^2 <= tr K / s2.
ratio_bound <- function(fit, data, reference) {
  lower <- evidence_bounds(fit)[["lower"]]
  if (!is.null(reference)) lower <- max(lower, evidence_bracket(reference, NULL)[["lower"]])
  ratio <- log_density_ratio(fit, data, lower)
  kernel <- scaled_kernel(fit)
  noise <- fit$noise / fit$scale^2
  nu <- divergence_nu(NULL, fit, data, kernel, noise)
  d2 <- stop_on_failure(native_pf_divergence(fit$inducing, data$x, data$y, data$weights, kernel, noise, nu, fit$jitter),
                        fit$jitter)$value # s2^2 d_pF^2, what is left of C(X)
  rounding <- 4 * rounding_growth(fit$m, nrow(data$x)) * native_pf_constant(data$x, data$y, data$weights, kernel, nu)
  log_eps <- ratio / 2 + log(max(d2, 0) + rounding) / 2 - log(noise)
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
  kernel <- scaled_kernel(fit)
  noise <- fit$noise / fit$scale^2
  w <- if (is.null(data$weights)) rep(1, nrow(data$x)) else data$weights
  rows <- fit$aux_rows
  rest <- seq_along(data$y)[-rows]
  if (!length(rest)) return(list(density_ratio_estimate = 0, density_ratio_ess = samples))
  draw <- subset_draws(data, rows, rest, w, kernel, noise)
  log_weight <- numeric(samples)
  for (i in split(seq_len(samples), (seq_len(samples) - 1L) %/% 64L)) {
    log_weight[i] <- -colSums(w[rest] * (data$y[rest] - draw(length(i)))^2) / (2 * noise)
  }
  largest <- max(log_weight)
  weight <- exp(log_weight - largest)
  list(density_ratio_estimate = -(largest + log(mean(weight))), density_ratio_ess = sum(weight)^2 / sum(weight^2))
}

# A function that draws columns from the exact posterior given some rows, at the rest. With greedy points that explain
# the prior at all these rows up to a hundredth of the noise, f = A'u and u is drawn given the rows; else by the factor
# of the covariance.
subset_draws <- function(data, rows, rest, w, kernel, noise) {
  x <- data$x[rest, , drop = FALSE]
  left <- 0.01 * noise / max(w)
  most <- min(nrow(data$x), getOption("pfdtc.memory", 2^27) %/% (8 * nrow(data$x)))
  if (most > 0) {
    greedy <- native_select(data$x, most, kernel, left / (nrow(data$x) * kernel$variance))
    if (greedy$t[length(greedy$t)] <= left) {
      z <- data$x[greedy$pivots, , drop = FALSE]
      nu <- native_posterior(z, data$x[rows, , drop = FALSE], data$y[rows], w[rows], kernel, noise, 0)
      A <- forwardsolve(nu$L, native_kernel_matrix(kernel, z, x))
      mean <- drop(crossprod(A, nu$beta))
      R <- sqrt(noise) * forwardsolve(nu$C, A) # covariance s2 a'(s2 I + G)^{-1} a
      return(function(k) mean + crossprod(R, matrix(stats::rnorm(nrow(R) * k), nrow(R))))
    }
  }
  check_memory(32 * as.double(length(rest))^2,
               sprintf("draws from the auxiliary distribution at %d rows", length(rest)))
  nu <- native_exact(data$x[rows, , drop = FALSE], data$y[rows], w[rows], kernel, noise)
  mean <- native_exact_predict(nu, data$x[rows, , drop = FALSE], kernel, x)$mean
  cov <- native_exact_covariance(nu, data$x[rows, , drop = FALSE], kernel, x)
  R <- suppressWarnings(chol(cov, pivot = TRUE))
  R[seq_along(rest) > attr(R, "rank"), ] <- 0
  pivot <- order(attr(R, "pivot"))
  function(k) mean + crossprod(R, matrix(stats::rnorm(length(rest) * k), length(rest)))[pivot, , drop = FALSE]
}

# ---- the log evidence ----------------------------------------------------------------------------------------------

#' Bracket of the exact log evidence
#'
#' A lower and an upper bound of the log evidence (log marginal likelihood) of the exact Gaussian process, without
#' computing it: the ELBO, and the upper bound of Titsias (2014) sharpened in both of its terms. Both ends carry an
#' allowance for rounding.
#'
#' @param fit a fit of any kind. Those that are not DTC posteriors need their data; with the data at hand the others'
#'   brackets are narrower as well, at about the cost of a few evaluations of the objective. A reference that the fit
#'   carries (`fit$reference`) is used as well and narrows the bracket most. Of a fit with near rows the bracket is that
#'   of its inducing points, as a rule a wide one, and `logLik()`, an estimate, need not lie in it.
#' @return `c(lower, upper)`: bounds of \eqn{\log p(y)} of the response as given. [logLik()] carries them as attributes.
#'   For an exact posterior both are its log evidence as computed.
#' @section Errors: class `pfdtc_error_input` for a FITC or subsample fit without its data, and for any without data
#'   whose jitter is below rounding.
#' @section Invariants: `lower <= exact log evidence <= upper`; a reference never makes the bracket wider. The rows are
#'   cut into random groups, always the same: R's random numbers are left as they were.
#' @source Titsias (2014), Variational inference for Gaussian and determinantal point processes (NIPS workshop); theory
#'   vignette.
#' @seealso [logLik()], [AIC()][AIC.gp_fit]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 5)
#' evidence_bounds(fit)
#' @export
evidence_bounds <- function(fit) {
  fit <- check_fit(fit, "fit")
  if (is_exact(fit)) return(c(lower = fit$elbo, upper = fit$elbo))
  own <- evidence_posterior(fit)
  found <- evidence_bracket(own, fit$data)
  reference <- fit$reference
  if (!is.null(reference) && !(is.null(fit$data) && is.null(reference$norms))) {
    reference <- same_chance(find_reference(fit, reference, NULL))
    better <- evidence_bracket(reference, if (!is.null(fit$data)) data_in_scale(fit, reference))
    found <- c(lower = max(found["lower"], better["lower"]), upper = min(found["upper"], better["upper"]))
  }
  # rounding in the response moves y'w by 2 |w| times it at most, |w| <= |y| / s2
  room <- 4 * .Machine$double.eps * response_size(fit) * sqrt(own$factors$yy) * own$scale / fit$noise
  stats::setNames(found + c(-room, room), c("lower", "upper"))
}

# The DTC posterior that the bracket is made from, with norms where there are data.
evidence_posterior <- function(fit) {
  if (!is.null(fit$norms)) return(fit)
  if (!is.null(fit$data)) return(same_chance(own_posterior(fit)))
  if (!fit$method %in% c(dtc_methods, "gp_sor") || fit$jitter < rounding_jitter(nrow(fit$inducing))) {
    needs_data(fit, "fit")
  }
  fit
}

# Random numbers that are the same each time, and R's own left as they were.
same_chance <- function(expr) {
  if (!exists(".Random.seed", envir = globalenv(), inherits = FALSE)) stats::runif(1)
  state <- get(".Random.seed", envir = globalenv())
  on.exit(assign(".Random.seed", state, envir = globalenv()))
  set.seed(1)
  expr
}

# log Z = -(log det(K + s2 I) + y'w + N log 2 pi) / 2, and
#   log det(K + s2 I) >= log det(Q + s2 I) + log(1 + t / (s2 + g_max)),
#   log Z >= -(log det(Q + s2 I) + c + t / s2 + N log 2 pi) / 2.
# Rounding: C is the factor of s2 I + G up to delta, which moves the log determinant by delta tr (C C')^{-1}. Errors
# L^{-1} r of A move it by 2 sum r_n'L^{-T} C_n, where s2 L^{-T} C_n are the weights that row n of I - H,
# H = (Q + s2 I)^{-1} Q, is best explained by: by slopes / s2, slopes = 2 sqrt(slack tr K t) + slack tr K, since the
# squared E-norms of these rows add up to t at most. In the ELBO the log determinant and t move together, by the rows of
# H, and by no more.
evidence_bracket <- function(post, data) {
  p <- post$factors
  kernel <- scaled_kernel(post)
  noise <- post$noise / post$scale^2
  m <- nrow(p$G)
  norms <- post$norms
  if (is.null(norms)) norms <- norms_of_sums(p, kernel, noise, post$nobs)
  growth <- norms$growth
  q <- quadratic_bracket(p, norms, kernel, noise)
  least <- q$least
  if (!is.null(post$norms)) least <- max(least, least_quadratic(post, data))

  logs <- log(diag(p$C))
  logdet <- 2 * sum(logs) - m * log(noise)
  G_norm <- sqrt(sum(p$G^2))
  delta <- 2 * growth * (G_norm + noise)
  inner <- delta * sum(forwardsolve(p$C, diag(m))^2)
  known <- delta < noise / 4
  slopes <- 2 * sqrt(norms$slack * p$k_sum * norms$t) + norms$slack * p$k_sum
  t_low <- (1 - growth) * max(sqrt(p$t) - sqrt(norms$slack * p$k_sum), 0)^2
  g_max <- (sqrt((1 + growth) * min(G_norm, max(rowSums(abs(p$G))))) + sqrt(norms$slack * p$k_sum))^2

  # log N(y; 0, Q + s2 I) without the log determinant and c: SoR's own log evidence, or the ELBO without its last term
  c_term <- p$rss / noise + sum(p$beta^2)
  density <- if (post$method == "gp_sor") post$elbo else post$elbo + p$t / (2 * noise)
  constant <- density + (logdet + c_term) / 2
  lower <- constant - (logdet + inner + q$upper + ((1 + growth) * p$t + slopes) / noise) / 2
  upper <- constant - (logdet - 2 * inner - slopes / noise + log1p(t_low / (noise + g_max)) + least) / 2
  if (!known) { # s2 is lost beside the rounding of G: log det(K + s2 I) >= N log s2 is left
    upper <- constant - least / 2
  }
  sums <- growth * (abs(constant) + post$nobs * (2 + abs(log(noise)) + 2 * abs(log(post$scale))) +
                      2 * sum(abs(logs)) + m * abs(log(noise)) + c_term + p$t / noise)
  c(lower = lower - sums, upper = max(upper, lower) + sums)
}

# What posterior_norms() says, from the sums alone: |v|_E <= sqrt(t) |v|.
norms_of_sums <- function(p, kernel, noise, n) {
  m <- nrow(p$G)
  slack <- rounding_slack(m, n)
  growth <- rounding_growth(m, n)
  weight <- p$k_sum / kernel$variance # of all rows together
  t <- (1 + growth) * (sqrt(p$t) + sqrt(slack * p$k_sum))^2
  G_norm <- sqrt(sum(p$G^2))
  beta <- sqrt(sum(p$beta^2))
  A_norm <- sqrt(sum(diag(p$G)))
  alpha <- sqrt(sum(solve_t(p$L, p$beta)^2))
  beta_error <- growth * (G_norm * beta + A_norm * sqrt(p$yy))
  vv <- p$rss / noise^2
  norms <- list(slack = slack, growth = growth, weight = weight, t = t, lam = t, alpha = alpha, beta_error = beta_error,
                vv = vv)
  error <- residual_error(p, norms, kernel, noise)
  norms$v_E <- (1 + growth) * (sqrt(t * vv) + sqrt(slack * kernel$variance * weight * vv)) + sqrt(t) * error$v
  norms
}

# Of sums over rows and of factorisations, relative to their size, as in posterior_norms(). Errors of n equal terms have
# a common sign: n / 110 eps was seen with a BLAS that adds them one by one.
rounding_growth <- function(m, n) (4 * (sqrt(m) + sqrt(n) + 4) + n / 64) * .Machine$double.eps

# of squared E-norms: certify_slack() in C
rounding_slack <- function(m, n) 4 * (m + sqrt(n) + 32) * .Machine$double.eps
