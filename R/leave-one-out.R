# Computes leave-one-out predictions in units of y, from posterior_without().

#' Compute leave-one-out predictions, leverage and influence
#'
#' There is no function `leave_one_out()`: `predict(fit, type = "loo")`, `rstandard()` and the other functions in the
#' table return the results. Each training row is predicted as by a fit in which the row has weight 0 and the centre is
#' the same. Hyperparameters and inducing points were learned with the row, which is optimistic for few rows.
#' [cross_validate()] learns them again.
#' @details
#' | Function | Value for each row |
#' | --- | --- |
#' | `predict(fit, type = "loo")` | mean of the response; `type = "loo_latent"`: mean of f |
#' | `residuals(fit, type = "loo")` | response minus its leave-one-out mean |
#' | `residuals(fit, type = "pit")` | probability of a smaller response: uniform if the model holds |
#' | `rstandard()` | leave-one-out residual divided by its sd |
#' | `rstudent()` | as `rstandard()`, with the noise estimated from all other rows |
#' | `hatvalues()` | leverage; the sum over rows is the fit's degrees of freedom |
#' | `cooks.distance()` | weighted change of all fitted values without the row |
#' | `dfbetas()` | change of the coefficients of a linear `mean`, divided by their sd |
#'
#' With a transform, `rstandard()`, `rstudent()`, `hatvalues()`, `cooks.distance()` and `dfbetas()` refer to the
#' transformed response. If rows are copies of one another, each is predicted from its copies, which is too optimistic;
#' a message reports this. Non-Gaussian families use the approximate posterior, and `rstudent()` returns the values of
#' `rstandard()`. Rows outside the subsample of [gp_subsample()] and rows of weight 0 have leverage 0. The time is
#' \eqn{O(n m^2)} with m inducing points and \eqn{O(n^3)} for an exact posterior.
#' @usage
#' \method{rstandard}{gp_fit}(model, ...)
#' \method{rstudent}{gp_fit}(model, ...)
#' \method{hatvalues}{gp_fit}(model, ...)
#' \method{cooks.distance}{gp_fit}(model, ...)
#' \method{dfbetas}{gp_fit}(model, ...)
#' @param model a fit with its data.
#' @param ... not used.
#' @return A named vector with an element for each row, in the order of the data; `dfbetas()` returns a matrix with a
#'   row for each. After `na.exclude`, omitted rows have `NA`.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' sqrt(mean(residuals(fit, type = "loo")^2)) # prediction error, in units of dist
#' range(rstandard(fit))
#' sum(hatvalues(fit))                        # degrees of freedom of the fit
#' which.max(cooks.distance(fit))
#' hist(residuals(fit, type = "pit"))         # high in the middle: intervals are too wide
#' @seealso [cross_validate()], [predict.gp_fit()], `vignette("theory")`
#' @aliases rstandard.gp_fit hatvalues.gp_fit cooks.distance.gp_fit rstudent.gp_fit dfbetas.gp_fit
#' @name leave_one_out
NULL

# Returns for each row of the data, in units of y: mean (with the offset) and variance of f given all other rows; the
# residual, response minus mean; the variance of its noise; and the leverage. Rows of weight 0 have the noise variance
# NA; with Gaussian noise they have their ordinary prediction, else NA. With several classes mean and variance are
# matrices of log odds, and there is no residual.
loo_rows <- function(fit) {
  data <- training_data(fit)
  copy <- copies_in(data) # copies predict each other
  if (!is.null(copy)) {
    tell_classed("copies", sprintf(paste(
      "%d of %d rows have the same inputs and response as another row. Leave-one-out predicts them from that row and",
      "is too optimistic. cross_validate() leaves out such rows together."), length(copy) - max(copy),
      length(copy)))
  }
  loo <- posterior_without(posterior_of(fit))
  lost <- sum(is.nan(rowSums(as.matrix(loo$mean))))
  if (lost > 0) {
    tell_classed("leverage", sprintf(paste(
      "%d of %d rows have leverage 1 up to rounding, because of their weights. Their leave-one-out values cannot be",
      "computed and are NaN; scores leave these rows out."), lost, data$n))
  }
  w <- weights_given(data)
  hat <- all_rows(data, loo$leverage, 0)
  if (is.matrix(loo$mean)) {
    each <- function(v) apply(v, 2L, function(one) all_rows(data, one, NA_real_))
    f <- lapply(as_log_odds(loo, fit$center), each)
    return(c(f, list(noise = all_rows(data, 1, NA_real_) / w, hat = hat)))
  }
  offset <- data$offset %||% numeric(length(w))
  at_zero <- if (is.null(fit$likelihood) && !is.null(data$x_zero)) latent_at(fit, data$x_zero) else
    list(mean = NA_real_, var = NA_real_)
  used <- if (is.null(data$sites)) offset[w > 0] else data$sites$offset
  mean <- all_rows(data, fit$center + in_units(fit, loo$mean) + used, at_zero$mean + offset[w == 0])
  list(mean = mean, var = all_rows(data, in_units(fit, pmax(loo$var, 0), 2), at_zero$var),
       residual = data$response - mean, noise = fit$noise / replace(w, w == 0, NA),
       spread = noise_law(fit, training_inputs(data))$spread, hat = hat)
}

# Returns the response minus its mean given all other rows, divided by its sd.
standardised <- function(loo) loo$residual / sqrt(loo$var + loo$noise)

# Returns the number of trials of each row, which is 1 if the likelihood has no trials.
sizes_given <- function(data) all_rows(data, data$sites$size %||% 1, 1)

weights_given <- function(data) data$prior_weights %||% rep(1, length(data$response))

root_mean_square <- function(e) sqrt(mean(e^2, na.rm = TRUE))

# Returns a method for a generic. `answer(model)` has a value for each row of the data.
loo_method <- function(answer) {
  function(model, ...) {
    check_dots_empty(list(...), "model")
    model <- check_any_fit(model, "model")
    stats::naresid(model$na.action, answer(model))
  }
}

# Returns the posterior. Stops if the posterior does not have the effect of each row on the fitted values.
posterior_of_rows <- function(model) {
  if (is.null(model$near)) return(posterior_of(model))
  abort_input("model", "uses nearest neighbours",
              hint = "Fit with neighbours = 0. rstandard() and hatvalues() work for this fit.")
}

# Returns leave-one-out residuals divided by their sd, for any likelihood, or NA for rows of weight 0.
residuals_in_sds <- function(model) {
  response <- response_of(model)
  refuse_classes(model)
  check_distribution(model)
  loo <- loo_rows(model)
  if (response$conjugate) return(standardised(loo))
  data <- training_data(model)
  p <- response_moments(response, loo$mean, loo$var)
  # The variance of ordered classes does not depend on a weight.
  var <- if (is.null(response$variance)) variance_of_class(response, loo$mean, sqrt(loo$var)) else
    response$variance(p$mean, p$sd, sizes_given(data), response$theta) / weights_given(data) + p$sd^2
  (data$response - p$mean) / sqrt(var)
}

#' @export
rstandard.gp_fit <- loo_method(residuals_in_sds)

#' @export
hatvalues.gp_fit <- loo_method(function(model) loo_rows(model)$hat)

#' @export
cooks.distance.gp_fit <- loo_method(function(model) {
  p <- posterior_of_rows(model)
  part <- without_rounded(row_parts(p))
  distance <- (part$g / part$rest)^2 * squared_moves(p)[part$group] / sum(part$W * part$q)
  all_rows(training_data(model), distance, 0)
})

#' @export
rstudent.gp_fit <- loo_method(function(model) {
  r <- residuals_in_sds(model)
  if (response_of(model)$conjugate) r / scale_without(model, r) else r
})

#' @export
dfbetas.gp_fit <- loo_method(function(model) {
  p <- posterior_of_rows(model)
  b <- mean_functionals(model)
  refuse_if(is.null(b), "model", "has no linear mean", hint = "Fit with `mean = ~ x` to have coefficients.")
  part <- without_rounded(row_parts(p))
  fun <- some_functionals(b$fun, seq_along(b$names))
  change <- covariance_with_rows(p, fun)[part$group, , drop = FALSE] * (part$g / part$rest)
  change <- in_units(model, change %*% t(b$to)) / rep(mean_coefficients(model)$sd, each = nrow(change))
  scale <- if (response_of(model)$conjugate) scale_without(model, standardised(loo_rows(model))) else 1
  out <- apply(change, 2L, function(v) all_rows(training_data(model), v, 0)) / scale
  dimnames(out) <- list(names(training_data(model)$response), b$names)
  out
})

# Returns the estimate of the scale of kernel and noise from all other rows, relative to the fit's scale. With y'K^{-1}
# y = sum(g y) and the squared standardised residual r^2, the estimate is (y'K^{-1} y - r^2) / (n - p - 1), for p
# coefficients of the mean, as in rstudent() of lm().
scale_without <- function(fit, r) {
  p <- posterior_of_rows(fit)
  part <- row_parts(p)
  used <- part$q > 0 # the rows of a subsample
  coefficients <- max(length(mean_functionals(fit)$names), fit$center != 0)
  seen <- all_rows(training_data(fit), as.double(used), 0)
  sqrt(pmax(sum(part$g * responses_used(p)$y) - seen * r^2, 0) / (sum(used) - coefficients - seen))
}

# ---- scores ---------------------------------------------------------------------------------------------------------

# Returns the scores of the training rows, each given all other rows, or given all rows if `seen` is TRUE.
training_scores <- function(fit, seen = FALSE) {
  data <- training_data(fit)
  response <- response_of(fit)
  f <- if (seen) latent_at(fit, data$x) else loo_rows(fit)
  if (seen) f$mean <- f$mean + data$sites$offset # 0 with several classes
  used <- which(!is.na(rowSums(as.matrix(f$mean)) + if (seen) 0 else f$noise)) # rows of positive weight
  y <- if (response$conjugate) list(y = unname(given_response(data)[used])) else data$sites[c("y", "size")]
  response_score(response, y, take_rows_of(f[intersect(c("mean", "var", "noise", "spread"), names(f))], used))
}

# Returns the PIT of each row given all other rows, or NA at weight 0. It is uniform if the model holds. For counts and
# classes it is random between P(< y) and P(<= y) (Czado, Gneiting and Held 2009). `loo` is the result of loo_rows().
pit_of <- function(fit, loo) {
  check_distribution(fit)
  data <- training_data(fit)
  where_known(c(loo[c("mean", "var")], list(size = unname(sizes_given(data)))), function(f) {
    ends <- pit_ends(response_of(fit), data$sites$y, f)
    pmin(pmax(ends$below + stats::runif(nrow(ends)) * (ends$upto - ends$below), 0), 1)
  })
}

# Returns a table of ten groups of about equally many rows, by their leave-one-out prediction. It has the mean
# prediction, the mean response, and the sd of the mean response if predictions are right.
calibration_table <- function(fit) {
  data <- training_data(fit)
  loo <- loo_rows(fit)
  mean <- response_moments(response_of(fit), loo$mean, loo$var)$mean
  use <- which(!is.na(mean))
  size <- unname(sizes_given(data)[use])
  p <- mean[use]
  y <- data$response[use]
  class <- ceiling(rank(p, ties.method = "average") / length(p) * min(10L, max(1L, length(p) %/% 5L)))
  each <- function(v) as.vector(tapply(v, class, sum))
  trials <- each(size)
  data.frame(predicted = each(size * p) / trials, observed = each(size * y) / trials,
             sd = sqrt(each(size * p * (1 - p))) / trials, rows = as.vector(table(class)))
}

# influence.measures() of R reads the QR decomposition of an lm() and is not generic.
#' @export
influence.gp_fit <- function(model, ...) {
  list(hat = stats::hatvalues(model), wt.res = stats::residuals(model, "pearson"))
}
