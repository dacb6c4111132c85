#' Divergence from the exact posterior
#'
#' `kl_divergence()` returns \eqn{\mathrm{KL}(\tilde\pi \,\|\, \pi)}{KL(approximation || exact)} between the posterior
#' processes of a fit and of [gp_exact()], in nats. With `newdata` it is the mean divergence of the marginal
#' distributions.
#'
#' `pf_divergence()` returns the preconditioned Fisher divergence \eqn{d_{pF}}{d_pF} between a DTC-type posterior and an
#' auxiliary distribution, divided by \eqn{\sigma^2}{s2}. If the auxiliary distribution is the exact posterior, it
#' bounds the 2-Wasserstein distance. The theory vignette has the formulas.
#'
#' @param fit A fit of any kind. For `pf_divergence()` a fit by [pfdtc()], [gp_vfe()] or [gp_dtc()], with its data: one
#'   with neighbours is measured by its inducing points alone, an exact one by DTC with all rows as inducing points.
#' @param exact The [gp_exact()] fit of the same data with the same hyperparameters.
#' @param newdata Rows at which the marginal distributions of the latent function are compared.
#' @param nu An auxiliary distribution: a description such as [aux_sor()], an object made by [auxiliary()], or a fit of
#'   the same data and hyperparameters. Default: that of the fit. [aux_white()] costs \eqn{O(n^3)}.
#' @return A number, not negative: nats, or for `pf_divergence()` without unit. The KL divergence is `Inf` for SoR
#'   without `newdata`, because its posterior is singular.
#' @section Errors and invariants: class `pfdtc_error_input` if data or hyperparameters differ, or for the KL divergence
#'   of a fit with neighbours without `newdata`. Both are 0 at the exact posterior, and at every point
#'   \eqn{(\tilde\mu - \mu)^2 + (\tilde\sigma - \sigma)^2 \le 2 \sigma^2 \mathrm{KL}}{
#'   (mean~ - mean)^2 + (sd~ - sd)^2 <= 2 sd^2 KL}, and if `nu` is the exact posterior
#'   \eqn{|\tilde\mu(x) - \mu(x)| \le \sqrt{k(x, x)}\, d_{pF}}{|mean~(x) - mean(x)| <= sqrt(k(x, x)) d_pF}.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), sections 3 and 4; Matthews, Hensman, Turner and Ghahramani
#'   (2016).
#' @seealso [pf_objective()], [compare_fits()]
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' dtc <- gp_dtc(dist ~ speed, cars, m = 3, like = exact)
#' kl_divergence(dtc, exact, newdata = cars)
#' pf_divergence(dtc, aux_white())
#' @export
kl_divergence <- function(fit, exact, newdata = NULL) {
  fit <- check_fit(fit, "fit")
  exact <- check_exact(exact, fit)
  if (!is.null(newdata)) return(kl_marginal(latent_at(fit, new_inputs(fit, newdata)$x),
                                           latent_at(exact, new_inputs(exact, newdata)$x)))
  if (is_exact(fit)) return(0)
  if (!is.null(fit$near)) {
    abort_input("fit", "a fit with neighbours", "one without",
                hint = "It has other neighbours at every point and is no single process. Give `newdata`.")
  }
  family <- method_traits(fit)
  if (family$sor) return(Inf)
  bound <- if (family$fitc) fitc_bound(fit) else fit$evidence - if (family$some) subsample_rest(fit) else 0
  max(exact$evidence - bound, 0) # rounding may make it negative
}

# Returns the mean over the rows of KL(N(a) || N(b)), for lists of mean and var.
kl_marginal <- function(a, b) {
  ratio <- a$var / b$var
  mean((ratio - 1 - log(ratio) + (a$mean - b$mean)^2 / b$var) / 2)
}

# Returns -sum E log N(y_n; f_n, s2 / w_n) over the rows outside the subsample, in units of y.
subsample_rest <- function(fit) {
  data <- needs_data(fit, "fit")
  rest <- setdiff(seq_along(data$y), fit$chosen)
  if (!length(rest)) return(0)
  p <- posterior_values(posterior_of(fit), data$x[rest, , drop = FALSE])
  w <- merged_weights(data)[rest]
  model <- model_of(fit)
  noise <- model$noise
  sum(log(2 * pi * noise / w) / 2 + w * ((data$y[rest] - p$mean)^2 + p$var) / (2 * noise)) +
    length(rest) * log(data$scale)
}

# Returns the bound of the log marginal likelihood at FITC's distribution N(m, V) of the whitened inducing values:
#   sum log N(y_n; a_n'm, s2/w_n) - (t + tr(V G))/(2 s2) - KL(N(m, V) || N(0, I)),  V = s2 (s2 I + G_fitc)^{-1}
fitc_bound <- function(fit) {
  data <- needs_data(fit, "fit")
  model <- model_of(fit)
  noise <- model$noise
  plain <- native_posterior(fit$inducing, data, model, fit$jitter)
  m <- fit$factors$beta
  Ci <- forwardsolve(fit$factors$C, diag(nrow(fit$factors$C)))
  V <- noise * crossprod(Ci)
  square <- plain$yy - 2 * sum(m * plain$Ay) + sum(m * (plain$G %*% m))
  kl <- (sum(diag(V)) + sum(m^2) - length(m)) / 2 - length(m) * log(noise) / 2 + sum(log(diag(fit$factors$C)))
  -nrow(data$x) / 2 * log(2 * pi * noise) - square / (2 * noise) - (plain$t + sum(V * plain$G)) / (2 * noise) - kl +
    data$shift$constant
}

#' @rdname kl_divergence
#' @export
pf_divergence <- function(fit, nu = NULL) {
  fit <- check_fit(fit, "fit")
  check_dtc(fit, "The pF divergence compares DTC posteriors with an auxiliary distribution.")
  data <- needs_data(fit, "fit")
  p <- posterior_on_points(posterior_of(fit))
  pf_distance(divergence_aux(nu, fit, data, p$model), p)
}

# Returns d_pF between a posterior on inducing points and an auxiliary distribution.
pf_distance <- function(aux, p) {
  pf_objectives[[aux$objective]]$divergence(aux, p$z, p$factors, p$jitter, p$rows, p$model)
}

# Returns the auxiliary distribution that was given, or that of the fit.
divergence_aux <- function(given, fit, data, model) {
  if (is.null(given)) {
    if (is.null(fit$aux) && (is_exact(fit) || !is.null(fit$near))) fit$aux <- default_aux()
    if (is.null(fit$aux)) {
      abort_input("nu", "NULL", "given for a fit by another method than pfdtc()",
                  hint = "Such as aux_reference(), or a gp_exact() fit.")
    }
    if (!is.null(fit$aux_rows)) return(exact_on_rows(data, fit$aux_rows, model))
    own <- is.null(fit$aux_points) || !is.null(fit$aux$make)
    return(make_auxiliary(if (own) fit$aux else aux_on_points(fit$aux_points), data, model, fit$m))
  }
  if (inherits(given, "pfdtc_auxiliary")) {
    check_made_from(given, data, model)
    return(given)
  }
  if (inherits(given, "gp_fit")) {
    given <- check_fit(given, "nu")
    check_same_model(given, fit, "nu", "fit")
    p <- posterior_of(given)
    return(as_auxiliary(if (inherits(p, "near")) posterior_on_points(p) else p, model, fit$scale))
  }
  make_auxiliary(check_aux(given, "nu"), data, model, fit$m)
}

# Returns the posterior as p k + sum_j s_j b_j b_j and a mean, with b linear in k(U, .), for y divided by `scale`. The
# fit's own scale may differ: L and C are proportional to 1 / scale, alpha to scale, and beta has no unit.
as_auxiliary <- function(p, model, scale) {
  post <- p$factors
  unit <- p$model$scale / scale
  post$L <- (if (inherits(p, "exact")) cholesky_of(p) else post$L) * unit
  if (is.null(post$C)) post$alpha <- post$alpha / unit else post$C <- post$C * unit
  if (inherits(p, "exact")) { # p = 1, b = L^{-1} k(U, x), sign -1
    n <- nrow(p$x)
    check_memory(24 * as.double(n)^2, sprintf("the exact posterior of %d rows as an auxiliary distribution", n))
    W <- t(forwardsolve(post$L, diag(n)))
    return(low_rank_auxiliary(p$x, W, rep(-1, n), post$alpha, 1L, model, "exact posterior"))
  }
  M <- nrow(p$z)
  mean <- solve_t(post$L, post$beta)
  sor <- sqrt(model$noise) * solve_t(post$L, t(forwardsolve(post$C, diag(M)))) # s2 a'(s2 I + G)^{-1} a
  if (p$sor) return(low_rank_auxiliary(p$z, sor, rep(1, M), mean, 0L, model, "SoR posterior"))
  nystrom <- t(forwardsolve(post$L, diag(M))) # k - a'a plus the SoR covariance
  low_rank_auxiliary(p$z, cbind(nystrom, sor), rep(c(-1, 1), each = M), mean, 1L, model, "DTC posterior")
}
