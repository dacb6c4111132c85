# What R users expect a fit to answer: print, summary, coef, fitted, residuals, simulate, ...

#' Methods for Gaussian process fits
#'
#' What [pfdtc()] and the `gp_` functions return answers R's usual questions.
#'
#' * `print()`, `summary()`: the data, the choices made, the hyperparameters, and how the optimiser ended. A kernel
#'   that was chosen comes with what the others fell behind by, in nats a row at rows held out; hyperparameters with
#'   how many of the starts led to the same evidence (one of many: try more `restarts`, see [pfdtc_control()]); near
#'   rows with what the inducing points leave unexplained; an exact posterior of less than 50 rows with leave-one-out
#'   log densities of itself (at its hyperparameters, which flatters it), of a linear model and of the mean alone, in
#'   nats a row. Where the optimiser of inducing points used up its iterations, the share of the descent that the last
#'   tenth of the evaluations brought tells whether more would be worth their time. `summary()` sets the lengthscales
#'   beside the ranges of the inputs: an input whose lengthscale is above 100 times its range has hardly any effect.
#'   Beside the RMSE at the training rows, which flatters, it has `rmse_loo`, that of each row given the others
#'   ([leave_one_out]), where the posterior is exact, of up to 2,000 rows and a response that was not transformed; of
#'   classes and counts `scores` and, of up to 2,000 rows, `scores_loo`: NLPD, RMSE and Brier's score.
#' * `coef()`: the hyperparameters, named `lengthscale.<column>`, `variance` and `noise`:
#'   lengthscales in units of the inputs, the two variances in squared units of the response. Before them the
#'   coefficients of a linear `mean`, after them, as `noise.<column>`, those of `noise = ~`, which `summary()` has with
#'   their standard deviations.
#' * `sigma()`: the noise's standard deviation, `sqrt(coef(fit)["noise"])`; of noise of more than one size that where
#'   the inputs of its formula are at their means; of [student()] its scale; `NA` of classes and counts.
#' * `logLik()`: of the response as given. Where the posterior is exact ([gp_exact()], or [pfdtc()]
#'   of few rows) it is the exact Gaussian process's log evidence. Of inducing points by [pfdtc()],
#'   [gp_vfe()] and [gp_dtc()] it is the evidence lower bound (ELBO): the log evidence is no smaller.
#'   With near rows it is an *estimate* of the log evidence, by the density of each response given
#'   the inducing points and its near rows: no bound, on either side. For [gp_fitc()] and [gp_sor()]
#'   it is the log evidence of their own models, for [gp_subsample()] that of its rows alone.
#'   Attribute `df` counts the hyperparameters that were learned, `nobs` the rows used; `lower` and
#'   `upper`, which bracket the exact log evidence as [evidence_bounds()] does, are there for exact
#'   posteriors and for those of inducing points by the three above, and with near rows where the fit
#'   carries a reference.
#' * `AIC()`, `BIC()`: from `logLik()` and its `df`, as for any model. Of two fits or more they warn,
#'   with class `pfdtc_warning_evidence`, where what the brackets leave open (that of a log
#'   likelihood without a bracket is taken to be its value) is more than what sets the fits apart:
#'   then they do not tell which one is better. A reference narrows the bracket: `fit$reference <-
#'   reference(fit)`.
#' * `nobs()`: the rows used: without missing values and with positive weight. Of [gp_subsample()] the
#'   rows of its posterior, whose log likelihood `logLik()` is.
#' * `fitted()`, `residuals()`: posterior mean at the training rows, and response minus that.
#'   Pearson residuals are multiplied by the square root of the row's weight, as those of [lm()], and so are deviance
#'   residuals, which are the same with Gaussian noise. Of classes and counts both are as of [glm()].
#'   `"loo"` and `"pit"` are those of each row given the others, see [leave_one_out].
#'   Both are padded with `NA` if the fit used `na.exclude`, and need the data (`keep_data = TRUE`).
#' * `simulate()`: joint draws from the posterior at the training rows or at `newdata`: of a new
#'   response (with the row's own noise, `sigma^2 / weight`, at the training rows; weight 1 at new
#'   ones), or of f. Up to 2,000 different rows they are drawn with the covariance matrix that `predict(full_cov =
#'   TRUE)` has; of more (and where the fit has its data) by paths, at a cost linear in their number: what the inducing
#'   points leave of the prior is drawn row after row, each given the 30 nearest before it, with a millionth of the
#'   prior variance as noise, and what the data say of it is then put right exactly. For 100,000 rows that takes some
#'   6 s, beside near rows 30 s.
#' * `formula()`, `terms()`: of a fit from a formula; an error for a fit from a matrix.
#' * `model.frame()`: of a formula fit, evaluated again from its call as for [lm()]; of a matrix fit
#'   the response `y` and the columns of `x`.
#' * `variable.names()`: the columns of the inputs.
#' * `weights()`: the prior weights, or `NULL`: the noise of a row has the variance `sigma(fit)^2 / weights(fit)`, also
#'   where it is of more than one size. Of shares of successes times the numbers of trials, as of [glm()].
#'
#' @param object,x,formula A fit. `print()` and `formula()` call it `x`, `model.frame()` calls it
#'   `formula`.
#' @param digits Significant digits to print.
#' @param type For `residuals()`, `"response"`, `"pearson"`, `"loo"`, `"pit"` or `"deviance"`; for `simulate()`, draws
#'   of a new `"response"` or of the `"latent"` function.
#' @param nsim Number of draws.
#' @param seed `NULL`, or a number for [set.seed()], after which R's generator is put back, as
#'   [simulate()] describes.
#' @param newdata Rows to draw at, as for [predict.gp_fit()]; when missing, the training rows.
#' @param k Penalty for a parameter.
#' @param ... For `AIC()` and `BIC()`, more fits. Else nothing, or passed on to print methods.
#' @return
#' `coef()` a named vector; `sigma()`, `nobs()` a number; `logLik()` an object of class `logLik`;
#' `AIC()` and `BIC()` a number, or of several fits a data frame with columns `df` and `AIC` or `BIC`;
#' `fitted()` and `residuals()` a named vector with an element a training row; `simulate()` a data
#' frame with a column a draw and attribute `seed`; `summary()` an object with a print method;
#' `print()` its argument, invisibly.
#' @section Invariants:
#' * `fitted(fit)` is `predict(fit)`, and `residuals(fit)` is the response minus that.
#' * The mean and covariance of many draws of `simulate(fit, newdata = new)` approach `predict(fit,
#'   new)` and the `cov` of `predict(fit, new, type = "response", full_cov = TRUE)`.
#' * `simulate()` with a `seed` gives the same draws each time and leaves R's generator as it was.
#' @inherit predict.gp_fit source
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' fit
#' summary(fit)
#' coef(fit)
#' logLik(fit)
#' head(residuals(fit))
#' simulate(fit, nsim = 2, seed = 1, newdata = data.frame(speed = c(5, 20)))
#' @name gp_fit-methods
NULL

#' @rdname gp_fit-methods
#' @export
coef.gp_fit <- function(object, ...) {
  object <- check_any_fit(object, "object")
  theta <- stats::setNames(c(kernel_values(object$kernel), object$noise),
                           parameter_names(object$kernel, object$frame$columns))
  response <- response_of(object)
  linear <- mean_coefficients(object)$estimate
  if (response$conjugate) {
    vague <- is_mean_variance(object$kernel)
    return(c(linear, theta[!c(vague, FALSE)], noise_coefficients(object)$estimate))
  }
  shape <- if (!is.null(object$theta)) stats::setNames(object$theta, response$shape)
  c(linear, theta[names(theta) != "noise"], mean = object$center, shape)
}

#' @rdname gp_fit-methods
#' @export
sigma.gp_fit <- function(object, ...) {
  if (response_of(object)$conjugate) return(sqrt(object$noise))
  if (response_of(object)$link_name == "identity") object$theta else NA_real_
}

#' @rdname gp_fit-methods
#' @export
nobs.gp_fit <- function(object, ...) if (gp_family(object)$some) object$m else object$nobs

#' @rdname gp_fit-methods
#' @export
logLik.gp_fit <- function(object, ...) {
  object <- check_any_fit(object, "object")
  evidence <- posterior_evidence(posterior_of(object))
  # with neighbours, bounds need a pass over all rows, and are wide without a reference
  open <- !is.null(object$near) && is.null(object$reference)
  bounds <- if (!open && evidence$is != "own model") {
    tryCatch(evidence_bounds(object), pfdtc_error_input = function(e) NULL) # it may need the data
  }
  structure(evidence$value, df = object$df, nobs = stats::nobs(object), lower = bounds[["lower"]],
            upper = bounds[["upper"]], class = "logLik")
}

#' @rdname gp_fit-methods
#' @export
fitted.gp_fit <- function(object, ...) {
  latent <- response_of(object)$conjugate && is.null(object$transform)
  stats::predict(object, type = if (latent) "latent" else "response")
}

#' @rdname gp_fit-methods
#' @export
residuals.gp_fit <- function(object, type = c("response", "pearson", "loo", "pit", "deviance"), ...) {
  type <- check_choice(type, c("response", "pearson", "loo", "pit", "deviance"), "type")
  if (!response_of(object)$conjugate) return(residuals_laplace(check_any_fit(object, "object"), type))
  if (type == "pit") return(stats::pnorm(stats::rstandard(object)))
  data <- training_data(object)
  if (type == "loo") return(stats::naresid(object$na.action, loo_rows(check_fit(object, "object"))$residual))
  r <- if (type != "response") stats::naresid(object$na.action, data$response) - stats::predict(object) else
    stats::naresid(object$na.action, given_response(data)) - stats::fitted(object)
  if (type == "response" || is.null(data$prior_weights)) return(r)
  r * sqrt(stats::weights(object))
}

#' @rdname gp_fit-methods
#' @export
weights.gp_fit <- function(object, ...) {
  data <- training_data(object)
  w <- data$prior_weights
  if (!is.null(data$sites$size)) w <- sizes_given(data) * if (is.null(w)) 1 else w
  stats::naresid(object$na.action, w)
}

#' @rdname gp_fit-methods
#' @export
terms.gp_fit <- function(x, ...) {
  if (is.null(x$terms)) abort_input("x", "a fit from a matrix", "a fit from a formula")
  x$terms
}

#' @rdname gp_fit-methods
#' @export
formula.gp_fit <- function(x, ...) stats::formula(stats::terms(x))

#' @rdname gp_fit-methods
#' @export
variable.names.gp_fit <- function(object, ...) object$frame$columns

#' @rdname gp_fit-methods
#' @export
model.frame.gp_fit <- function(formula, ...) {
  if (is.null(formula$terms)) {
    data <- training_data(formula)
    rows <- training_inputs(data)
    return(data.frame(y = unname(given_response(data)), rows$x[rows$index, , drop = FALSE],
                      row.names = names(data$response), check.names = FALSE))
  }
  call <- formula$call
  parts <- match(c("data", "subset", "weights", "na.action", "offset"), names(call), 0L)
  call <- call[c(1L, parts)]
  call[[1L]] <- quote(stats::model.frame)
  call$formula <- stats::terms(formula)
  call$drop.unused.levels <- TRUE
  given <- list(...)
  call[names(given)] <- given
  eval(call, environment(call$formula), parent.frame())
}

#' @rdname gp_fit-methods
#' @export
simulate.gp_fit <- function(object, nsim = 1, seed = NULL, newdata,
                            type = c("response", "latent"), ...) {
  check_dots_empty(list(...), names(formals(simulate.gp_fit)))
  object <- check_any_fit(object, "object")
  nsim <- check_count(nsim, "nsim")
  if (!is.null(seed)) check_count(seed, "seed", min = -.Machine$integer.max, max = .Machine$integer.max)
  type <- check_choice(type, c("response", "latent"), "type")
  training <- missing(newdata) || is.null(newdata)
  rows <- if (training) training_rows(object) else new_rows(object, newdata, stats::na.pass)
  n <- length(rows$index)
  check_memory(24 * as.double(max(n, nrow(rows$x))) * nsim, sprintf("%.0f draws at %d rows", as.double(nsim), n))

  # seed and the generator's state as stats::simulate() promises
  state <- random_state()
  if (!is.null(seed)) {
    on.exit(assign(".Random.seed", state, envir = globalenv()))
    set.seed(seed)
    state_used <- structure(seed, kind = as.list(RNGkind()))
  } else {
    state_used <- state
  }

  f <- object$center + in_units(object, posterior_draws(posterior_of(object), rows$x, nsim))
  draws <- f[rows$index, , drop = FALSE] + rows$offset
  if (type == "response" && !response_of(object)$conjugate) {
    draws <- draw_responses(object, draws, training)
  } else if (type == "response") {
    w <- if (training) stats::weights(object)
    sd <- sqrt(if (is.null(w)) rep_len(noise_at(object, rows$x), nrow(rows$x))[rows$index] else object$noise / w)
    sd[!is.finite(sd)] <- NA     # a response of weight 0 has no distribution
    draws <- untransformed(object$transform, draws + ifelse(is.na(sd), NA, 1) * sd * stats::rnorm(n * nsim))
  }
  colnames(draws) <- paste0("sim_", seq_len(nsim))
  structure(data.frame(draws, row.names = if (!is.null(rows$names)) make.unique(rows$names)),
            seed = state_used)
}
