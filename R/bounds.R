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
#' actual error; [certify()] gives intervals of practical size.
#'
#' @inheritParams certify
#' @param fit a fit by [pfdtc()], [gp_vfe()] or [gp_dtc()], with its data.
#' @param effort `"fast"` uses the fit's own points, `"reference"` also a bigger posterior.
#' @return A data frame with a row for each row of `newdata` and columns `mean_bound`, `sd_bound` (units of `y`),
#'   `var_bound` (squared units), `mean_bound_sharp` and `sd_bound_sharp`. Attributes `eps`, `eps_mean`, `eps_cov`
#'   (without unit), `w2` (bound of the 2-Wasserstein distance of the processes, equal to `eps`) and, for a fit
#'   optimised under [aux_subset()], `log_density_ratio`: the log of the paper's bound on the density ratio, with
#'   which \eqn{\varepsilon = \exp(ratio / 2)\, d_{pF}}{eps = exp(ratio / 2) d_pF}; beyond a few dozen rows it is
#'   astronomically large and the bound says nothing. Under other auxiliary distributions the ratio is infinite.
#' @section Errors: class `pfdtc_error_input` for SoR, FITC, subsample and exact fits: the theorem is about DTC
#'   posteriors.
#' @section Invariants: `|mean - exact mean| <= mean_bound_sharp <= mean_bound`, and likewise for the sd.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), theorem on the pF divergence and its corollaries.
#' @seealso [certify()], [pf_divergence()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' error_bounds(fit, data.frame(speed = c(5, 15)), effort = "fast")
#' @export
error_bounds <- function(fit, newdata, effort = c("reference", "fast"), ..., reference = fit$reference, m2 = NULL) {
  check_dots_empty(list(...), names(formals(error_bounds)))
  check_fit(fit, "fit")
  if (!fit$method %in% dtc_methods) {
    abort_input("fit", sprintf("a fit by %s()", fit$method), "a fit by pfdtc(), gp_vfe() or gp_dtc()",
                hint = "The theorem is about DTC posteriors; certify() works for every fit.")
  }
  effort <- check_choice(effort, c("reference", "fast"), "effort")
  data <- needs_data(fit, "fit")
  kernel <- scaled_kernel(fit)
  noise <- fit$noise / fit$scale^2
  norms <- posterior_norms(fit$posterior, fit$inducing, data, kernel, noise, fast = TRUE, control = fit$control)
  own <- quadratic_bracket(fit$posterior, norms, noise)
  least <- own["lower"] # y'w, w = (K + s2 I)^{-1} y, is at least this
  if (effort == "reference") {
    ref <- find_reference(fit, reference, m2)
    least <- max(least, quadratic_bracket(ref$posterior, ref$norms, noise)["lower"])
  }
  eps_mean2 <- max(own[["upper"]] - least, 0) # eps_mean^2 <= y'v - y'w
  eps_cov2 <- norms$t / noise
  eps <- sqrt(eps_mean2 + eps_cov2)

  new <- if (missing(newdata)) training_rows(fit) else new_rows(fit, newdata, stats::na.pass)
  p <- native_certify(fit$posterior, fit$inducing, kernel, noise, norms, new$x)
  k <- kernel$variance
  left <- pmin(pmax(p$var_upper - p$sor_variance, 0), k) # var_exact - var_SoR at most
  sd <- sqrt(p$sor_variance + p$unexplained)
  unit <- fit$scale
  rep_n <- rep(1, nrow(new$x))
  out <- data.frame(
    mean_bound = unit * sqrt(k) * eps * rep_n, sd_bound = unit * sqrt(6 * k) * eps * rep_n,
    var_bound = unit^2 * (3 * sqrt(k) * sd * eps + 6 * k * eps^2),
    mean_bound_sharp = unit * sqrt(left * eps_mean2), sd_bound_sharp = unit * sqrt(k * eps_cov2) * rep_n)
  out <- out[new$index, , drop = FALSE]
  row.names(out) <- if (!is.null(new$names)) make.unique(as.character(new$names))
  structure(out, eps = eps, eps_mean = sqrt(eps_mean2), eps_cov = sqrt(eps_cov2), w2 = eps,
            log_density_ratio = if (identical(fit$aux$kind, "subset")) log_density_ratio(fit, data, kernel, noise))
}

dtc_methods <- c("pfdtc", "gp_vfe", "gp_dtc")

# y'w of the exact GP, w = (K + s2 I)^{-1} y, from one posterior's sums. With c = y'(Q + s2 I)^{-1} y,
#   max(c^2 / (c + |v|_E^2), y'(Q + (s2 + t) I)^{-1} y) <= y'w <= c.
quadratic_bracket <- function(p, norms, noise) {
  m <- nrow(p$G)
  slack <- 4 * (m + 32) * .Machine$double.eps
  low <- p$rss / noise + sum(p$beta^2)
  low <- low * max(0, 1 - (norms$c / max(low, .Machine$double.xmin) - 1)) # rounded down as norms$c is rounded up
  tau <- noise + norms$t
  R <- chol(p$G + diag(tau, m))
  shrunk <- (p$yy - sum(backsolve(R, p$Ay, transpose = TRUE)^2)) / tau - slack * p$yy / tau
  c(lower = max(if (low > 0) low^2 / (low + norms$v_E^2) else 0, shrunk, 0), upper = norms$c)
}

# log |d pi / d nu| <= log Z_nu - (sum over the other rows of log(2 pi s2 / w))/2 - ELBO, with nu the exact posterior
# given some rows, whose log evidence is log Z_nu. The scale of y cancels but for the rows left out.
log_density_ratio <- function(fit, data, kernel, noise) {
  rows <- fit$aux_rows
  w <- if (is.null(data$weights)) rep(1, nrow(data$x)) else data$weights
  some <- native_exact(data$x[rows, , drop = FALSE], data$y[rows], w[rows], kernel, noise)
  rest <- w[-rows]
  if (!length(rows)) rest <- w
  here <- elbo(data, fit$posterior, noise) - merged_log_density(data$shift, noise) - data$shift$constant +
    sum(log(w)) / 2
  -some$minus_evidence - sum(log(2 * pi * noise / rest)) / 2 - here
}

#' Bracket of the exact log evidence
#'
#' A lower and an upper bound of the log evidence (log marginal likelihood) of the exact Gaussian process, without
#' computing it: the ELBO, and the upper bound of Titsias (2014) sharpened in both of its terms.
#'
#' @param fit a fit of any kind. Those that are not DTC posteriors need their data. A reference that the fit carries
#'   (`fit$reference`) is used as well.
#' @return `c(lower, upper)`: bounds of \eqn{\log p(y)} of the response as given. [logLik()] carries them as attributes.
#' @section Invariants: `lower <= exact log evidence <= upper`; equal up to rounding for [gp_exact()].
#' @source Titsias (2014), Variational inference for Gaussian and determinantal point processes (NIPS workshop); theory
#'   vignette.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 5)
#' evidence_bounds(fit)
#' @export
evidence_bounds <- function(fit) {
  check_fit(fit, "fit")
  if (fit$method == "gp_exact") return(c(lower = fit$elbo, upper = fit$elbo))
  own <- fit
  if (!fit$method %in% c(dtc_methods, "gp_sor")) {
    own <- dtc_on_points(fit, needs_data(fit, "fit"), fit_points(fit), NULL, fast = TRUE)
  }
  found <- one_bracket(own)
  if (!is.null(fit$reference)) {
    better <- one_bracket(fit$reference)
    found <- c(lower = max(found["lower"], better["lower"]), upper = min(found["upper"], better["upper"]))
  }
  names(found) <- c("lower", "upper")
  found
}

# log Z = -(log det(K + s2 I) + y'w + N log 2 pi) / 2, and
#   log det(K + s2 I) >= log det(Q + s2 I) + log(1 + t / (s2 + g_max))
one_bracket <- function(fit) {
  p <- fit$posterior
  noise <- fit$noise / fit$scale^2
  m <- nrow(p$G)
  slack <- 4 * (m + 32) * .Machine$double.eps
  norms <- fit$norms
  if (is.null(norms)) { # |v|_E <= sqrt(t) |v| needs no data
    t <- p$t + slack * p$k_sum
    norms <- list(t = t, c = (p$rss / noise + sum(p$beta^2)) * (1 + slack), v_E = sqrt(t * p$rss) / noise)
  }
  least <- quadratic_bracket(p, norms, noise)[["lower"]]
  g_max <- min(sqrt(sum(p$G^2)), max(rowSums(abs(p$G))))
  t_low <- max(p$t - slack * p$k_sum, 0)
  logdet <- 2 * sum(log(diag(p$C))) - m * log(noise) + log1p(t_low / (noise + g_max))
  # log N(y; 0, Q + s2 I) of y as given: SoR's own log evidence, and the ELBO without its last term
  c_term <- p$rss / noise + sum(p$beta^2)
  density <- if (fit$method == "gp_sor") fit$elbo else fit$elbo + p$t / (2 * noise)
  lower <- density - p$t / (2 * noise)
  upper <- density + c_term / 2 - least / 2 - log1p(t_low / (noise + g_max)) / 2
  inner <- 4 * sqrt(m + 1) * .Machine$double.eps * g_max / noise # relative error of s2 I + G, as in posterior_norms()
  rounding <- (slack + inner) * (abs(logdet) + c_term + abs(density) + m)
  c(lower = lower - rounding, upper = max(upper, lower) + rounding)
}
