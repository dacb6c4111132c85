#' A bigger posterior to certify by
#'
#' The DTC posterior of the same model on many more inducing points, chosen by greedy pivoted Cholesky and optimised by
#' nobody. What its points leave unexplained falls as fast as the spectrum of the kernel matrix, so its own
#' certificate is tiny: it tells where the exact Gaussian process lies, and any other fit is certified by its distance
#' from there.
#'
#' Its mean is corrected by a few steps of conjugate gradients on the exact equations, as by [refine()], until its
#' certificate is small beside its distance from the fit's mean, at most ten, and as many as `max_seconds` allow: a step
#' is a pass over all pairs of rows. This matters most for Matern kernels, which leave much unexplained.
#'
#' @param fit a fit with its data.
#' @param m2 the most points. `NULL`: four times those of the fit.
#' @param max_seconds time for the correction of the mean. No pass is begun that would end later, as a pass over some of
#'   the rows tells. How many were made is `correction$passes` of the result; more than the limit allowed: [refine()].
#' @return A fit of class `c("gp_dtc", "gp_fit")` that also carries the norms which certificates need. It costs
#'   \eqn{O(n m_2^2)}. It holds \eqn{O(m_2^2)} numbers, and `2 n` more where its mean is corrected; [certify()] uses
#'   those where the fit has its data. Keep it: `fit$reference <- reference(fit)`; [certify()] and its like then use it.
#' @section Errors: class `pfdtc_error_input` for a fit made with `keep_data = FALSE`.
#' @source Theory vignette; Fine and Scheinberg (2001) for the pivoted Cholesky factorisation.
#' @seealso [certify()], [aux_reference()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit)
#' certify(fit, data.frame(speed = c(5, 15)))
#' @export
reference <- function(fit, m2 = NULL, max_seconds = 10) {
  fit <- check_fit(fit, "fit")
  max_seconds <- check_at_least_0(max_seconds, "max_seconds")
  data <- needs_data(fit, "fit")
  m2 <- if (is.null(m2)) 4L * points_of_fit(fit) else check_count(m2, "m2", max = data$n)
  tell <- stage_line("reference", fit$control$progress)
  on.exit(tell(NULL))
  tell("choosing points")
  rows <- reference_rows(list(m2 = m2), data, scaled_kernel(fit))
  reference_on(fit, data, data$x[rows, , drop = FALSE], sys.call(), tell, max_seconds)
}

# The reference on points no two of which say the same, see dtc_on_points().
reference_on <- function(fit, data, z, call, tell = function(stage) NULL, max_seconds = 10) {
  tell(sprintf("posterior on %d points, and its norms", nrow(z)))
  out <- dtc_on_points(fit, data, z, call, fast = FALSE)
  tell("exact mean")
  out$correction <- find_correction(out, data, fit, share = 1 / 50, most = 10L, left = seconds_left(max_seconds))
  out
}

# Points of a fit, or the default number of them.
# A near field has few points because near rows tell the rest: its certificates want as many as any.
points_of_fit <- function(fit) {
  if (is.null(fit$m)) min(200L, fit$nobs) else if (is.null(fit$near)) fit$m else max(fit$m, min(200L, nrow(fit$data$x)))
}

# The DTC posterior of the fit's model on points z, with its norms, see posterior_norms(). No two of the points may say
# the same down to rounding: pivots of a greedy choice are fine, others go through distinct_points(). `inner`: such a
# posterior on some of the points, whose |w|_E holds here as well.
dtc_on_points <- function(fit, data, z, call, fast, tight = FALSE, inner = NULL) {
  kernel <- scaled_kernel(fit)
  noise <- fit$noise / fit$scale^2
  jitter <- if (is.null(inner)) rounding_jitter(nrow(z)) else inner$jitter
  posterior <- native_posterior(z, data$x, data$y, data$weights, kernel, noise, jitter, control = fit$control)
  out <- list(
    call = call, method = "gp_dtc", kernel = fit$kernel, noise = fit$noise, inducing = z, m = nrow(z),
    m_asked = nrow(z), inducing_method = "greedy", jitter = posterior$jitter, factors = posterior, posterior = "far",
    center = fit$center, scale = fit$scale, frame = fit$frame, data = NULL, signature = fit$signature, nobs = fit$nobs,
    hyper = "fixed", objective = NA_real_, elbo = elbo(data, posterior, noise), df = fit$df, sd_y = fit$sd_y,
    trace = empty_trace(), convergence = 0L, message = "nothing to optimise", evaluations = numeric(),
    seconds = numeric(), control = fit$control, version = fit$version, terms = fit$terms, na.action = fit$na.action)
  out$norms <- posterior_norms(posterior, z, data, kernel, noise, fast, tight, fit$control,
                               if (posterior$jitter == jitter) inner$norms)
  structure(out, class = c("gp_dtc", "gp_fit"))
}

# A jitter well above the backward error of the Cholesky factorisation of k(Z, Z) (0.1 to 0.2 m eps on points that
# differ). What is computed then belongs to points with that jitter exactly, see certify.h, and a jitter of this size
# moves nothing by more than rounding does anyway.
rounding_jitter <- function(m) 4 * (m + 8) * .Machine$double.eps

# On points of which many say the same, errors have a common sign and grow like m^2 / 80 eps.
safe_jitter <- function(m) rounding_jitter(m) + m^2 / 16 * .Machine$double.eps

distinct_points <- function(z, kernel) choose_greedy(z, nrow(z), kernel, Inf)$z

# The posterior of a DTC-type fit may serve as it is where its jitter is between rounding and what would be seen.
own_posterior_serves <- function(fit) {
  fit$method %in% c("pfdtc", "gp_vfe", "gp_dtc", "gp_sor") && fit$jitter >= safe_jitter(nrow(fit$inducing)) &&
    fit$jitter <= 1e-10
}

# What certify_rows() in C wants to know, every number rounded up (certify.h has the reasons). `fast`: groups of m rows
# for both norms; else T1 on as many rows as are free beside the reference itself, T2 on 200; `tight`: one
# group. `same`: norms on the same points of another response, whose T2 is taken. `inner`: norms on some of the points,
# whose bound of |w|_E holds here too, so that T1 is left out: more points with the same jitter leave less, and that L
# has other rounding errors is well inside its kappa. `sharp`: FALSE leaves out T1 as well.
posterior_norms <- function(p, z, data, kernel, noise, fast = FALSE, tight = FALSE, control = NULL, inner = NULL,
                            same = NULL, sharp = TRUE) {
  n <- nrow(data$x)
  m <- nrow(z)
  size <- c(max(m, m^2 %/% 16), 200)
  if (fast) size <- c(m, m)
  if (tight) size <- c(n, n)
  size <- pmin(n, size) * c(is.null(inner) && sharp, is.null(same))
  norms <- native_norms(p, z, data$x, data$y, data$weights, kernel, noise, sample.int(n), size[1L], size[2L], control)
  if (!is.null(same)) norms[c("Psi", "lam", "spread")] <- same[c("Psi", "lam", "spread")]

  growth <- rounding_growth(m, n)
  up <- 1 + growth
  G_norm <- sqrt(sum(p$G^2))
  beta <- sqrt(sum(p$beta^2))
  out <- list(
    weight = if (is.null(data$weights)) 1 else max(data$weights), spread = norms$spread,
    slack = rounding_slack(m, n),
    growth = growth, vv = norms$vv, Psi = norms$Psi, alpha = sqrt(sum(solve_t(p$L, p$beta)^2)),
    # beta solves (s2 I + G) beta = A y up to this: errors of the factor and of the sum A y
    beta_error = growth * (G_norm * beta + sqrt(sum(diag(p$G)) * p$yy)))
  of_rows <- sqrt(out$slack * p$k_sum) # errors of A as a whole
  out$t <- up * (sqrt(p$t) + of_rows)^2
  out$lam <- min(out$t, up * (sqrt(norms$lam) + of_rows)^2)

  error <- residual_error(p, out, kernel, noise)
  kappa <- sqrt(out$slack * kernel$variance * out$weight) # of a vector over the rows of length 1
  kappa_v <- kappa * sqrt(norms$vv)
  out$v_E <- up * min(norms$T1, sqrt(out$lam * norms$vv) + kappa_v) + sqrt(out$lam) * error$v
  # y'v = min over beta of |y - A'beta|^2 / s2 + |beta|^2: an inexact beta gives more, errors of A move it by what they
  # do to |v|_E, or row by row; y'y / s2 is never exceeded
  value <- function(e) up * (e^2 / noise + beta^2)
  e <- sqrt(p$rss) + error$e
  out$c <- min(value(e) + (2 * out$v_E + kappa_v) * kappa_v, value(e + error$row), up * p$yy / noise)
  if (growth * G_norm / noise >= 0.25) out$v_E <- Inf # s2 is lost beside the rounding of G
  out$w_norm <- sqrt(out$c / noise)
  out$w_E <- min(bound_w(out$c, out$v_E) + kappa * out$w_norm, inner$w_E)
  out
}

# |w|_E <= |v|_E c / (c + |v|_E^2), never above sqrt(c) / 2
bound_w <- function(c, v_E) {
  if (is.na(c) || is.na(v_E)) return(Inf) # beyond double precision: nothing is known
  if (c <= 0) 0 else if (v_E^2 <= c) v_E * (c / (c + v_E^2)) else sqrt(c) / 2
}
