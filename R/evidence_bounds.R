#' Bracket of the exact log evidence
#'
#' A lower and an upper bound of the log evidence (log marginal likelihood) of the exact Gaussian process, without
#' computing it: the ELBO, and the upper bound of Titsias (2014) sharpened in both of its terms. Both ends carry an
#' allowance for rounding.
#'
#' Of a fit with classes or counts (`family`): bounds of the exact process's Laplace evidence at the fit's
#' hyperparameters, which is no bound of the true one; with `approx = "vi"` the variational lower bound of the true one,
#' and `Inf`.
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
  fit <- check_any_fit(fit, "fit")
  if (!response_of(fit)$conjugate) return(laplace_evidence_bounds(fit))
  if (is_exact(fit)) return(c(lower = fit$evidence, upper = fit$evidence))
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
  serves <- !is.null(fit$factors) && (gp_family(fit)$dtc || gp_family(fit)$sor)
  if (!serves || fit$jitter < rounding_jitter(nrow(fit$inducing))) {
    needs_data(fit, "fit")
  }
  fit
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
  model <- model_of(post)
  noise <- model$noise
  m <- nrow(p$G)
  norms <- post$norms
  if (is.null(norms)) norms <- norms_of_sums(p, model, post$nobs)
  growth <- norms$growth
  q <- quadratic_bracket(p, norms, model)
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
  density <- if (gp_family(post)$sor) post$evidence else post$evidence + p$t / (2 * noise)
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
