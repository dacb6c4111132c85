#' Leave-one-out, leverage and influence
#'
#' How well each row is predicted by the others, without refitting: it is taken out of the posterior in closed form.
#'
#' **What is held.** The hyperparameters, the inducing points, and the centre and scale of the response are those of the
#' fit, which has seen the row: leave-one-out says how well the posterior predicts, given these, and flatters a fit of
#' few rows. [cross_validate()] learns them again without the rows. With near rows the random order of the rows and the
#' list of near rows of each are held too: the row's weight is set to 0.
#'
#' With \eqn{\mu_n} and \eqn{v_n} the posterior mean and variance of what the rows tell of \eqn{f(x_n)},
#' \eqn{h_n = w_n v_n / \sigma^2} and \eqn{E_n} the prior variance that the inducing points leave (0 of an exact
#' posterior and of SoR),
#' \deqn{y_n - \mu_{-n} = \frac{y_n - \mu_n}{1 - h_n}, \qquad
#'   \mathrm{var}_{-n} f = \frac{v_n}{1 - h_n} + E_n.}{y_n - mu_-n = (y_n - mu_n) / (1 - h_n),
#'   var_-n f = v_n / (1 - h_n) + E_n.}
#' [gp_fitc()] has \eqn{1 / (1 / w_n + E_n / \sigma^2)} in place of \eqn{w_n} in \eqn{h_n}, as its model gives row
#' \eqn{n} the noise \eqn{\sigma^2 / w_n + E_n}. Of [gp_subsample()] only its own rows have any leverage: the others are
#' predicted as they are. Beside near rows (`fit$posterior` is `"far + near"`) the terms of the row and of all rows that
#' have it in their lists are replaced by what they are without it; there
#' \eqn{y_n - \mu_{-n}} is not \eqn{(y_n - \mu_n) / (1 - h_n)}.
#'
#' * `predict(fit, type = "loo")`: the mean of each training row given the others; with `se.fit` the standard deviation
#'   of its response (noise variance \eqn{\sigma^2 / w_n}), or, by `type = "loo_latent"`, of f. `interval` as in
#'   [predict.gp_fit()]: `"credible"` for f, `"prediction"` for the row's response.
#' * `residuals(fit, type = "loo")`: response minus that mean; `type = "pit"`: the probability that the predictive
#'   distribution of the row's response puts below it. Of a model that holds they are uniform between 0 and 1: a
#'   histogram that is high in the middle says that intervals are too wide, one that is high at both ends too narrow.
#' * `rstandard()`: leave-one-out residuals divided by the standard deviation of the row's response given the others. Of
#'   an exact posterior this is `(y - mu) / (sigma / sqrt(w) * sqrt(1 - h))`, as of [lm()]; `pnorm()` of them is
#'   `"pit"`.
#' * `hatvalues()`: \eqn{h_n}, the derivative of the row's fitted value by its response.
#' * `cooks.distance()`: \eqn{\sum_k w_k (\mu_k - \mu_{k,-n})^2 / (\sigma^2 p)} over all rows \eqn{k}, where \eqn{p} is
#'   the sum of the leverages: [lm()]'s. Not of far + near.
#'
#' Of classes and counts (`family`) \eqn{\mu_n} and \eqn{v_n} are those of f, which the posterior has from Gaussian
#' responses \eqn{f_n + g_n / W_n} of variance \eqn{1 / W_n}, with g and W the slope and curvature of the log
#' likelihood: they are taken out by the same formulas, the mode is not sought anew. `rstandard()` is then the response
#' minus its mean given the others, in the sd that responses have about that; `hatvalues()` are \eqn{W_n v_n}, as of
#' [glm()] (below 0 where a response of [student()] is far out); `cooks.distance()` is that of the Gaussian responses.
#' `"pit"` is randomised, uniform where the model holds, and not `pnorm()` of `rstandard()`.
#'
#' Rows of weight 0 are predicted as they are, with leverage 0; their response has no distribution, and what needs one
#' is `NA`. Where `na.action` was `na.exclude` results are padded with `NA`. Where the leverage is 1 to rounding what
#' divides by \eqn{1 - h_n} is `NaN`.
#'
#' @param model A fit with its data (`keep_data = TRUE`).
#' @param ... Nothing: an unknown argument is an error.
#' @return A named vector with an element for each row of the data, in the order given: `rstandard()` and `hatvalues()`
#'   without unit, `cooks.distance()` as well.
#' @section Costs: \eqn{O(n m^2)} with m inducing points, \eqn{O(n^3)} of an exact posterior, and beside k near rows
#'   \eqn{O(n (k^3 + k^2 m + k m^2))}, 1 ms (m = 50) to 3 ms
#'   (m = 200) a row.
#' @section Invariants: leave-one-out means and variances are those of a fit with the row's weight set to 0 (and, beside
#'   near rows, the same order and lists); leverages lie between 0 and 1 where there are no near rows.
#' @section Errors: class `pfdtc_error_input` for a fit without its data, `newdata`, `full_cov` or `certified` together
#'   with `type = "loo"`, `cooks.distance()` of far + near.
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, section 5.4.2; Cook and Weisberg
#'   (1982), *Residuals and Influence in Regression*.
#' @seealso [cross_validate()]; [predict.gp_fit()] with `interval = "conformal"`.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' head(predict(fit, type = "loo", se.fit = TRUE)$se.fit)
#' sqrt(mean(residuals(fit, type = "loo")^2)) # error of predictions, in units of dist
#' range(rstandard(fit))
#' sum(hatvalues(fit))                        # degrees of freedom that the fit takes
#' which.max(cooks.distance(fit))
#' hist(residuals(fit, type = "pit"))
#' @name leave_one_out
NULL

# Returns, for each row of the data as given, in units of y: mean (with the offset) and variance of f given all other
# rows, the response minus that mean, the variance of its noise, and the leverage. Rows of weight 0 have no noise
# variance (NA); with Gaussian noise they are predicted as they are, else their mean and variance are NA.
loo_rows <- function(fit) {
  data <- training_data(fit)
  loo <- posterior_without(posterior_of(fit))
  w <- if (is.null(data$prior_weights)) rep(1, length(data$response)) else data$prior_weights
  offset <- if (is.null(data$offset)) numeric(length(w)) else data$offset
  at_zero <- if (is.null(fit$likelihood) && !is.null(data$x_zero)) latent_at(fit, data$x_zero) else
    list(mean = NA_real_, var = NA_real_)
  used <- if (is.null(data$sites)) offset[w > 0] else data$sites$offset
  mean <- all_rows(data, fit$center + in_units(fit, loo$mean) + used, at_zero$mean + offset[w == 0])
  list(mean = mean, var = all_rows(data, in_units(fit, pmax(loo$var, 0), 2), at_zero$var),
       residual = data$response - mean, noise = fit$noise / replace(w, w == 0, NA),
       hat = all_rows(data, loo$leverage, 0))
}

# Returns the response minus its mean given all other rows, divided by the sd of the response.
standardised <- function(loo) loo$residual / sqrt(loo$var + loo$noise)

root_mean_square <- function(e) sqrt(mean(e^2, na.rm = TRUE))

# Returns NULL if it would take more than a second, or is not in units of the response.
cheap_rmse_loo <- function(fit) {
  if (is_exact(fit) && !is.null(fit$data) && fit$nobs <= exact_rows && is.null(fit$transform)) {
    root_mean_square(stats::residuals(fit, type = "loo"))
  }
}
