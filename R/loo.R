# Leave-one-out without refitting: what the posterior says of each row when that row is taken out of it, everything else
# (hyperparameters, inducing points, centre and scale, and beside near rows their order and lists) held.
#
# Where the posterior is that of a Gaussian prior and a Gaussian likelihood with a factor a row, a row of weight w is
# taken out by dividing by its factor. With mu and v the posterior mean and variance of a'u (or of f itself), s2 / w the
# row's noise and h = w v / s2 its leverage,
#
#   y - mean_(-n) = (y - mu) / (1 - h),   var_(-n) = v / (1 - h) + what no row tells,
#
# also of one of several equal rows that were merged. Near rows are in loo_near.R.

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

# y minus the mean of the others, in sds of the row's response
standardised <- function(loo) loo$residual / sqrt(loo$var + loo$noise)

root_mean_square <- function(e) sqrt(mean(e^2, na.rm = TRUE))

# NULL where it would take more than a second, or is not in the units of the response.
cheap_rmse_loo <- function(fit) {
  if (is_exact(fit) && !is.null(fit$data) && fit$nobs <= exact_rows && is.null(fit$transform)) {
    root_mean_square(stats::residuals(fit, type = "loo"))
  }
}

refuse_beside_loo <- function(given) {
  if (!any(given)) return(invisible())
  name <- names(given)[given][1L]
  abort_input(name, "given", "left out where `type` is \"loo\"",
              hint = "It is about the training rows, each by itself.")
}

# Of each row of the data as given, in units of y: mean (with the offset) and variance of f given the other rows,
# response minus that mean, variance of its noise (NA at weight 0), and leverage.
loo_rows <- function(fit) {
  data <- training_data(fit)
  rows <- rows_apart(data)
  loo <- if (is.null(fit$near)) loo_conjugate(fit, data, rows) else loo_near(fit, data, rows)
  w <- if (is.null(data$prior_weights)) rep(1, length(data$response)) else data$prior_weights
  unused <- if (!is.null(data$x_zero)) latent_at(fit, data$x_zero)
  response <- data$response - if (is.null(data$offset)) 0 else data$offset
  residual <- all_rows(data, in_units(fit, loo$residual), response[w == 0] - unused$mean)
  noise <- fit$noise / w
  noise[w == 0] <- NA
  list(mean = data$response - residual, var = all_rows(data, in_units(fit, pmax(loo$var, 0), 2), unused$var),
       residual = residual, noise = noise, hat = all_rows(data, loo$hat, 0))
}

# What was used, a number a row with positive weight: the row of data$x each went to, its response and its weight.
rows_apart <- function(data) {
  r <- unname(data$response)
  if (!is.null(data$offset)) r <- r - data$offset
  w <- data$prior_weights
  if (is.null(w)) w <- rep(1, length(r))
  y <- (r[w > 0] - data$center) / data$scale
  list(group = if (is.null(data$group)) seq_along(y) else data$group, y = y, w = w[w > 0])
}

loo_conjugate <- function(fit, data, rows) {
  part <- influence_parts(fit, data, rows)
  list(residual = (rows$y - part$mean) / part$rest, var = part$var / part$rest + part$left, hat = part$hat)
}

# Of each row used: posterior mean, variance that rows can take away and what is left beside it, share of the weight of
# its group, leverage, and 1 - leverage (NaN where it is rounding).
influence_parts <- function(fit, data, rows) {
  part <- if (is.null(fit$x)) {
    parts_of_points(fit, data, rows)
  } else if (is.null(fit$chosen)) {
    parts_exact(fit, data, rows)
  } else {
    parts_subsample(fit, data, rows)
  }
  part$rest[part$rest < 1e-12] <- NaN
  part
}

parts_of_points <- function(fit, data, rows) {
  p <- native_predict(fit$factors, fit$inducing, model_of(fit), data$x)
  left <- p$unexplained[rows$group]
  var <- p$sor_variance[rows$group]
  hat <- precision_beside(fit, left, rows$w) * var
  if (gp_family(fit)$sor) left <- 0 * left
  list(mean = p$mean[rows$group], var = var, left = left, share = rows$w / merged_weights(data)[rows$group], hat = hat,
       rest = 1 - hat)
}

# 1 / noise of a row given the inducing variables
precision_beside <- function(fit, left, w) {
  noise <- model_of(fit)$noise
  1 / (noise / w + if (gp_family(fit)$fitc) left else 0)
}

# From B = (K + s2 W^{-1})^{-1}, without cancellation: mean = y - s2 / W alpha, v = s2 / W (1 - s2 / W B_gg), and of a
# row with the share p of its group's weight 1 - h = (1 - p) + p s2 / W B_gg.
parts_exact <- function(fit, data, rows) {
  exact_parts(data$y, merged_weights(data), model_of(fit)$noise, fit$factors$alpha, diag(rows_precision(fit)),
              rows)
}

exact_parts <- function(y, W, noise, alpha, precision, rows) {
  own <- noise / W * precision
  share <- rows$w / W[rows$group]
  list(mean = (y - noise / W * alpha)[rows$group], var = (noise / W * (1 - own))[rows$group], left = 0, share = share,
       hat = share * (1 - own)[rows$group], rest = (1 - share) + share * own[rows$group])
}

# (K + s2 W^{-1})^{-1} of the rows of an exact posterior
rows_precision <- function(fit) {
  n <- nrow(fit$x)
  check_memory(16 * as.double(n)^2, sprintf("the inverse matrix of %d rows", n))
  chol2inv(t(fit$factors$L))
}

# Rows that the posterior has not seen are predicted as they are.
parts_subsample <- function(fit, data, rows) {
  n <- nrow(data$x)
  out <- list(mean = numeric(n), var = numeric(n), left = numeric(n), share = rep(1, n), hat = numeric(n),
              rest = rep(1, n))
  unseen <- setdiff(seq_len(n), fit$chosen)
  if (length(unseen)) {
    p <- posterior_values(posterior_of(fit), data$x[unseen, , drop = FALSE])
    out$mean[unseen] <- p$mean
    out$left[unseen] <- p$var
  }
  seen <- fit$chosen
  part <- exact_parts(rows$y[seen], rows$w[seen], model_of(fit)$noise, fit$factors$alpha,
                      diag(rows_precision(fit)), list(group = seq_along(seen), w = rows$w[seen]))
  for (what in names(out)) out[[what]][seen] <- part[[what]]
  out
}

# Of each row g of data$x: sum_k W_k H_kg^2, H_kg the derivative of the mean at row k by the response of row g. With W_k
# the precision of row k times s2, points have H_kg = W_g a_k'P^{-1} a_g, P = s2 I + A W A'.
column_squares <- function(fit, data, part) {
  W <- merged_weights(data)
  noise <- model_of(fit)$noise
  if (!is.null(fit$x)) {
    used <- if (is.null(fit$chosen)) seq_along(W) else fit$chosen
    H <- diag(1, length(used)) - noise / W[used] * rows_precision(fit)
    return(replace(numeric(length(W)), used, colSums(W[used] * H^2)))
  }
  if (gp_family(fit)$fitc) W <- noise * precision_beside(fit, part$left, W)
  squares_of_points(fit, data$x) * W^2
}

# a_g'P^{-1} (A W A') P^{-1} a_g of each row g of x
squares_of_points <- function(fit, x) {
  blocks <- split(seq_len(nrow(x)), (seq_len(nrow(x)) - 1L) %/% 4096L)
  squares <- lapply(blocks, function(i) {
    K <- native_kernel_matrix(model_of(fit)$kernel, fit$inducing, x[i, , drop = FALSE])
    half <- forwardsolve(fit$factors$C, forwardsolve(fit$factors$L, K))
    colSums(half^2) - model_of(fit)$noise * colSums(backsolve(fit$factors$C, half, upper.tri = FALSE,
                                                              transpose = TRUE)^2)
  })
  pmax(unlist(squares, use.names = FALSE), 0)
}
