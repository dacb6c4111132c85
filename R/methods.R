# Defines methods for R's generics of models: coef, logLik, fitted, residuals, simulate, update and others.

#' Print, summarise, score and simulate fits
#'
#' These methods of R's generics are for all fits. Some need the training rows (`keep_data = TRUE`).
#'
#' * `print()` and `summary()` show data, choices and hyperparameters. `summary()` adds the kernels tried, residuals,
#'   and scores on training rows and, if quick, by leave-one-out. Both take `digits`.
#' * `coef()` returns `lengthscale.<column>` (in units of the column, or of a log, "warped" or "rotated" column, as
#'   `print()` explains; times in days), `variance` and `noise` (in squared units of f), other parameters of the kernel,
#'   coefficients of a linear mean and of a formula for `noise`; for a non-Gaussian family its parameters, the constant
#'   `mean`, and `mean.variance`, the prior variance of linear coefficients. With `log = TRUE`, positive parameters are
#'   logs. `sigma()` returns the noise sd, or the scale of [student()] or [tobit()]; for smooth noise its root mean
#'   square over rows, for other families `NA`.
#' * `logLik()` returns the log marginal likelihood of the response as given, with attributes `nobs`, `df` (the number
#'   of learned parameters, also those not in `coef()`), and bounds `lower` and `upper` if known ([evidence_bounds()]).
#'   With inducing points the value is a lower bound; with neighbours, or by Laplace's approximation, it is an estimate.
#'   For [gp_fitc()], [gp_sor()] and [gp_subsample()] it refers to their approximate models. If [pfdtc()] inflated the
#'   learned variances (`fit$because["scale"]`), value and bounds use the variances before inflation.
#' * `AIC()` and `BIC()` return a number, or a data frame for several fits. They warn (class `pfdtc_warning_evidence`)
#'   if the bounds or inflated variances leave the order open.
#' * `nobs()` returns the number of rows in use, for [gp_subsample()] those drawn. `weights()` is as for [lm()], times
#'   the numbers of trials.
#' * `fitted()` returns the mean response at the training rows, `residuals()` the response minus this mean. Rows that
#'   `na.exclude` omitted have `NA`. Pearson and deviance residuals are as for [glm()], on the scale of the transformed
#'   response, if any. For `"loo"` and `"pit"` see [leave_one_out].
#' * `simulate()` returns joint draws of responses, in the data's form but uncensored, at the training rows (noise
#'   variance divided by the weight) or at `newdata` (weight and trials 1).
#' * `formula()`, `terms()` and `model.frame()` are as for [lm()]; for a matrix, `model.frame()` has `y` and
#'   the columns of `x`. `variable.names()` returns the inputs' columns.
#' @param object A fit.
#' @param type See Details. For draws `"response"` (a new response) or `"latent"` (f).
#' @param nsim Number of draws.
#' @param seed Number for [set.seed()]; R's generator is restored.
#' @param newdata Rows to draw at. Default: the training rows.
#' @param REML For Gaussian models with groups only ([kernel_group()]): restricted likelihood (`FALSE`: ordinary)?
#' @param k Penalty for each parameter.
#' @param ... For `AIC()` and `BIC()` more fits; otherwise not used.
#' @return `fitted()`, `residuals()`: a vector; for unordered classes a matrix, but one deviance residual a row. Ordered
#'   classes count as 1, 2, .... `simulate()`: a data frame.
#' @seealso [predict.gp_fit()], [leave_one_out], [vcov.gp_fit()], [plot.gp_fit()]; `vignette("pfdtc")`.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' summary(fit)
#' coef(fit)
#' head(residuals(fit))
#' simulate(fit, nsim = 2, seed = 1, newdata = data.frame(speed = c(5, 20)))
#' @aliases BIC.gp_fit coef.gp_fit sigma.gp_fit nobs.gp_fit fitted.gp_fit weights.gp_fit terms.gp_fit formula.gp_fit
#'   variable.names.gp_fit model.frame.gp_fit print.gp_fit summary.gp_fit print.summary.gp_fit print.pfdtc
#'   summary.pfdtc coef.pfdtc fitted.pfdtc residuals.pfdtc logLik.pfdtc simulate.pfdtc
#' @name gp_fit-methods
NULL

#' @export
coef.gp_fit <- function(object, complete = TRUE, log = FALSE, ...) {
  check_dots_empty()
  object <- check_any_fit(object, "object")
  theta <- stats::setNames(c(kernel_values(object$kernel), object$noise),
                           parameter_names(object$kernel, object$frame$columns))
  response <- response_of(object)
  shape <- if (!is.null(object$theta)) stats::setNames(response$shown(object$theta), response$shape)
  parts <- c(list(mean_coefficients(object)$estimate), if (response$conjugate) {
    list(theta[!c(kernel_parameters(object$kernel)$mean, FALSE)], noise_coefficients(object)$estimate)
  } else {
    list(theta[-length(theta)], c(mean = object$center), shape)
  })
  # On the log scale, the names are those of vcov(). Coefficients of a linear mean and the constant mean are not logs.
  for (i in if (check_flag(log, "log")) intersect(c(2L, 4L), which(lengths(parts) > 0L))) {
    parts[[i]] <- stats::setNames(log(parts[[i]]), sprintf("log(%s)", names(parts[[i]])))
  }
  do.call(c, parts)
}

#' @export
sigma.gp_fit <- function(object, use.fallback = TRUE, ...) {
  check_dots_empty()
  trend <- object$noise_trend
  # Smooth noise is `noise` times a factor for each row. Take the factor's mean. Older fits have only its range.
  factor <- if (is.null(trend$smooth)) 1 else trend$mean %||% sqrt(prod(trend$range))
  if (response_of(object)$conjugate) return(sqrt(object$noise * factor))
  if (response_of(object)$link_name == "identity") object$theta else NA_real_
}

#' @export
nobs.gp_fit <- function(object, use.fallback = FALSE, ...) {
  check_dots_empty()
  if (method_traits(object)$some) object$m else object$nobs
}

#' @rdname gp_fit-methods
#' @export
logLik.gp_fit <- function(object, REML = TRUE, ...) {
  check_dots_empty()
  object <- check_any_fit(object, "object")
  if (!identical(REML, NA)) check_flag(REML, "REML")
  if (has_own_likelihood(object) && !is.na(REML)) return(likelihood_of_groups(object, REML))
  evidence <- posterior_evidence(posterior_of(object))
  # With neighbours and no reference, bounds would need a pass over all rows and be wide, so they are omitted.
  open <- !is.null(object$near) && is.null(object$reference)
  bounds <- if (!open && evidence$is != "own model") {
    tryCatch(evidence_bounds(object), pfdtc_error_input = function(e) NULL) # evidence_bounds() may need the data
  }
  structure(evidence$value + (largest_evidence(object) - object$evidence), df = object$df, nobs = stats::nobs(object),
            lower = bounds[["lower"]], upper = bounds[["upper"]], class = "logLik")
}

# Returns TRUE if logLik() is the likelihood of a linear mixed model: groups only, Gaussian noise, data in the fit.
has_own_likelihood <- function(fit) is_groups_only(fit$kernel) && response_of(fit)$conjugate && !is.null(fit$data)

#' @export
fitted.gp_fit <- function(object, ...) {
  refuse_if(...length(), "...", "not empty", "empty", message = "fitted() has no argument but the fit.",
            hint = "predict(fit, newdata) predicts at new rows.")
  stats::predict(object, type = "mean")
}

#' @rdname gp_fit-methods
#' @export
residuals.gp_fit <- function(object, type = c("response", "pearson", "loo", "pit", "deviance"), ...) {
  check_dots_empty()
  type <- check_choice(type)
  object <- check_any_fit(object, "object")
  response <- response_of(object)
  labels <- response$kind == "labels"
  normal <- response$conjugate
  given <- type %in% c("response", "loo") # other types are on the scale of the transformed response
  refuse_if(labels && type == "pit", "type",
            "= \"pit\" is not available for several classes, which have no distribution function",
            hint = "Use \"response\", \"pearson\", \"loo\" or \"deviance\".")
  if (!normal && !given) check_distribution(object, "object")
  padded <- function(v) stats::naresid(object$na.action, v)
  if (type == "pit") return(padded(pit_of(object, loo_rows(object))))
  data <- training_data(object)
  mean <- stats::predict(object, type = if (type == "loo") "loo" else if (!normal) "response" else
    if (given) "mean" else "latent")
  y <- padded(if (given) given_response(data) else data$response)
  if (is.matrix(mean) && !labels) mean <- drop(mean %*% seq_len(ncol(mean))) # the expected number of the class
  r <- (if (labels) outer(unname(y), seq_len(ncol(mean)), "==") else y) - mean # several classes have an indicator each
  if (given) return(r)
  w <- padded(weights_given(data))
  if (normal) return(r * sqrt(w))
  size <- padded(sizes_given(data))
  if (type == "pearson") {
    variance <- if (labels) mean * (1 - mean) else if (!is.null(response$variance)) {
      response$variance(mean, 0, size, response$theta)
    } else {
      latent <- stats::predict(object, se.fit = TRUE)
      variance_of_class(response, latent$fit, latent$se.fit)
    }
    if (!any(is.finite(variance))) warn_classed("undefined", paste(
      "Pearson residuals are NA, because the response has no finite variance. Use type = \"deviance\" or \"pit\"."))
    return(r * sqrt(w / replace(variance, !is.finite(variance), NA)))
  }
  if (labels) return(stats::setNames(sqrt(-2 * w * log(mean[cbind(seq_along(y), y)])), rownames(mean)))
  deviance <- if (!is.null(response$deviance)) {
    w * response$deviance(padded(data$response), mean, size, response$theta)
  } else { # 2 (largest log likelihood - log likelihood)
    sites <- engine_sites(object$likelihood, data$sites, object$center)
    f <- latent_at(object, data$x)$mean + data$sites$offset
    best <- response$best(data$sites, response$theta)
    open <- !is.finite(best)
    top <- ifelse(open, 0, native_likelihood(sites, ifelse(open, 0, best))[1L, ])
    padded(all_rows(data, 2 * (top - native_likelihood(sites, f)[1L, ]), NA))
  }
  sign(r) * sqrt(pmax(deviance, 0))
}

# Returns the leave-one-out probability integral transform P(<= y) of each row (NA at weight 0), uniform if the model
# holds. For counts and classes, a random number between P(< y) and P(<= y) is returned (Czado, Gneiting, Held 2009).
pit_of <- function(fit, loo) {
  if (response_of(fit)$conjugate) return(noisy_cdf(loo$residual, loo))
  check_distribution(fit)
  data <- training_data(fit)
  y <- unname(all_rows(data, data$sites$y, NA))
  where_known(c(loo[c("mean", "var")], list(y = y, size = unname(sizes_given(data)))), function(f) {
    ends <- pit_ends(response_of(fit), f$y, f)
    pmin(pmax(ends$below + stats::runif(nrow(ends)) * (ends$upto - ends$below), 0), 1)
  })
}

#' @export
weights.gp_fit <- function(object, ...) {
  data <- training_data(object)
  w <- users_weights(data)
  if (response_of(object)$trials) w <- sizes_given(data) * if (is.null(w)) 1 else w
  stats::naresid(object$na.action, w)
}

#' @export
terms.gp_fit <- function(x, ...) {
  refuse_if(is.null(x$terms), "object", "a fit from a matrix",
            message = "The fit was made from a matrix: it has no formula and no terms.",
            hint = "variable.names() returns its inputs.")
  grouped <- attr(x$terms, "grouped")
  if (is.null(grouped)) return(x$terms)
  # Return the terms of the formula as given, in which (1 | g) has the label "1 | g", as in R.
  parts <- c("factors", "term.labels", "order")
  out <- grouped$formula
  attributes(out) <- utils::modifyList(attributes(x$terms), attributes(stats::terms(out))[parts])
  out
}

#' @export
formula.gp_fit <- function(x, env, ...) { # as.formula() passes `env`
  check_dots_empty()
  attr(stats::terms(x), "grouped")$formula %||% stats::formula(x$terms)
}

#' @export
variable.names.gp_fit <- function(object, ...) object$frame$columns

#' @export
model.frame.gp_fit <- function(formula, ...) {
  if (is.null(formula$terms)) {
    data <- training_data(formula)
    return(data.frame(y = unname(given_response(data)), rows_of_data(data)$x, row.names = names(data$response),
                      check.names = FALSE))
  }
  given <- list(...)
  (if (!length(given)) kept_frame(formula)) %||% frame_by_name(formula, given, parent.frame())
}

#' @rdname gp_fit-methods
#' @export
simulate.gp_fit <- function(object, nsim = 1, seed = NULL, newdata, type = c("response", "latent"), ...) {
  check_dots_empty()
  object <- check_any_fit(object, "object")
  nsim <- check_count(nsim, "nsim")
  type <- check_choice(type)
  training <- missing(newdata) || is.null(newdata)
  rows <- if (training) training_rows(object) else new_rows(object, newdata)
  n <- length(rows$index)
  check_memory(24 * as.double(max(n, nrow(rows$x))) * nsim, sprintf("%.0f draws at %d rows", as.double(nsim), n))

  draws <- from_seed(seed, if (response_of(object)$kind == "labels") simulate_labels(object, rows, nsim, type) else
    draws_at(object, rows, nsim, type, training))
  if (!is.null(rows$names)) row.names(draws) <- make.unique(rows$names)
  draws
}

# Returns a data frame of `nsim` draws of f (`type` "latent") or of responses at `rows`, for models with one latent
# function. New rows have one trial each. Responses at `training` rows of weight 0 have no distribution and are NA.
draws_at <- function(object, rows, nsim, type, training) {
  response <- response_of(object)
  f <- object$center + in_units(object, posterior_draws(posterior_of(object), rows$x, nsim))
  draws <- f[rows$index, , drop = FALSE] + rows$offset
  size <- 1
  if (type == "response" && !response$conjugate) {
    check_distribution(object, "object")
    draws[] <- response$link$inv(draws)
    if (training) {
      data <- training_data(object)
      padded <- function(v) stats::napredict(object$na.action, v)
      size <- padded(sizes_given(data))
      draws[padded(all_rows(data, FALSE, TRUE)) == 1, ] <- NA
    }
    known <- !is.na(draws)
    new <- suppressWarnings(response$draw(draws[known], rep_len(size, length(draws))[known], response$theta))
    draws[known] <- ifelse(is.na(new), Inf, new) # R draws NA if the mean is too large
  } else if (type == "response") {
    law <- noise_law(object, rows)
    if (training) law$noise <- noise_by_weight(object, law$noise) %||% law$noise
    draws <- untransformed(object$transform, draws + draw_noise(length(draws), law$noise, law$spread))
  }
  colnames(draws) <- paste0("sim_", seq_len(nsim))
  if (type == "latent") data.frame(draws) else draws_as_given(object, data.frame(draws), size)
}

#' Update, compare and diagnose fits like linear models
#'
#' These methods have the same meaning as for [lm()] and [glm()].
#'
#' * `deviance()` returns the sum of `weight * residual^2` of the (transformed) response, divided by the relative noise
#'   variance if this varies; for a non-Gaussian likelihood, the deviance as in [glm()].
#' * `df.residual()` returns `nobs(fit) - sum(hatvalues(fit))`; rows of weight 0 do not count.
#' * `extractAIC()` returns `df` and AIC of `logLik()`. [step()], [drop1()] and [add1()] work for fits from a formula,
#'   also with groups, and keep the last term (AIC `NA`). [anova()][anova.gp_fit] bounds differences of `logLik()`.
#' * `influence()` returns a list with `hat` and `wt.res`, the Pearson residuals. `influence.measures()` works only for
#'   `lm()` and `glm()`; use [cooks.distance()] and [leave_one_out].
#' * `family()` returns the family of the response, `labels()` the terms of the formula or the columns of a matrix,
#'   `case.names()` the names of rows, by default without rows of weight 0.
#' * `update()` fits again, with its own rows if the data are lost. A family that the fit chose stays if `m` changes.
#' @param object,fit A fit.
#' @param scale Not used.
#' @param k Penalty for each parameter.
#' @param full Should rows of weight 0 be included?
#' @param formula. Changes to the formula.
#' @param evaluate `FALSE` returns the new call instead of the fit.
#' @param ... For `update()`, arguments to change or to add.
#' @return The same kind of value as for [lm()]; `update()` returns a fit.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' c(sqrt(deviance(fit) / df.residual(fit)), sigma(fit))
#' update(fit, log(dist) ~ .)
#' @seealso [gp_fit-methods], [leave_one_out], [anova.gp_fit()]
#' @aliases df.residual.gp_fit influence.gp_fit labels.gp_fit drop1.gp_fit add1.gp_fit
#' @name gp_fit-regression
NULL

#' @rdname gp_fit-regression
#' @usage NULL
#' @export
deviance.gp_fit <- function(object, ...) {
  check_dots_empty()
  sum(stats::residuals(check_any_fit(object, "object"), "deviance")^2, na.rm = TRUE)
}

#' @export
df.residual.gp_fit <- function(object, ...) max(0, stats::nobs(object) - sum(stats::hatvalues(object), na.rm = TRUE))

#' @rdname gp_fit-regression
#' @export
extractAIC.gp_fit <- function(fit, scale, k = 2, ...) {
  c(fit$df, k * fit$df - 2 * largest_evidence(check_any_fit(fit, "fit")))
}

#' @rdname gp_fit-regression
#' @export
case.names.gp_fit <- function(object, full = FALSE, ...) {
  data <- training_data(object)
  padded <- function(v) stats::naresid(object$na.action, v) # as in lm()
  names <- names(padded(data$response)) %||% as.character(seq_along(data$response))
  if (full || is.null(data$prior_weights)) names else names[!padded(data$prior_weights) %in% 0]
}

#' @export
labels.gp_fit <- function(object, ...) {
  if (is.null(object$terms)) object$frame$columns else attr(stats::terms(object), "term.labels")
}

#' @rdname gp_fit-regression
#' @export
update.gp_fit <- function(object, formula., ..., evaluate = TRUE) {
  call <- stats::getCall(object)
  extras <- match.call(expand.dots = FALSE)$...
  if (!missing(formula.)) {
    if (is.null(object$terms)) abort_input("formula.", "is not available for a fit from a matrix")
    change <- stats::as.formula(formula., parent.frame())
    if (length(change) == 2L && is_call_of(change[[2L]], c("|", "||"))) { # drop1() and add1() paste "~ . - 1 | g"
      change <- stats::as.formula(sub("^~ *[.] *([-+]) *(.*)$", "~ . \\1 (\\2)", deparse1(change)))
    }
    call$formula <- stats::update(stats::formula(object), change)
    call <- with_inputs_of(call, stats::formula(object))
  } else if (!inherits(tryCatch(eval(call$formula, parent.frame()), error = identity), c("formula", "NULL"))) {
    call$formula <- stats::formula(object) # the name of the formula has another meaning here
  }
  # A family found for numbers stays if a new argument may exclude the search. With a log link, units would change.
  found <- check_any_fit(object, "object")$likelihood
  units <- c("kernel", "offset", "center")
  keeps <- c("m", "tol", "inducing", "neighbours", "approx", "control", if (identical(found$link, "identity")) units)
  found_it <- identical(found$from, "gaussian") && (is.null(call$family) || length(found$asked))
  if (found_it && any(keeps %in% names(extras))) call$family <-
    str2lang(sprintf("replace(pfdtc::%s(%s), \"from\", \"gaussian\")", found$name, found$df %||% ""))
  known <- names(extras) %in% names(call)
  for (name in names(extras)[known]) call[[name]] <- extras[[name]] # NULL removes the argument
  call <- with_home(as.call(c(as.list(call), extras[!known])), parent.frame())
  if (!"data" %in% names(extras) && is_data_lost(object, call, parent.frame())) {
    held <- kept_variables(object)
    if (is.null(held)) refuse_lost_data(object, call$data, "Make these data available again")
    call <- with_kept_rows(call, held)
    if (missing(formula.)) call$formula <- stats::formula(object)
  }
  if (!isTRUE(evaluate)) call else eval(call, frame_of_update(object, call, names(extras), parent.frame()))
}

# Returns the environment in which update() evaluates the call: `caller` if it has the variables of all old arguments.
# If some are missing, returns the formula's environment plus `caller`'s variables of the arguments `new`. For a fit
# from a matrix, returns `caller` plus the fit's x, y, weights and offset.
frame_of_update <- function(object, call, new, caller) {
  # `asked` names the arguments of the fit's call that are not `new`. Arguments in `by_row` may read `columns` of data.
  by_row <- c("subset", "weights", "offset")
  columns <- if (is.symbol(call$data)) names(get0(as.character(call$data), caller))
  asked <- if (is.null(object$terms)) c("x", "y", "weights", "offset") else
    setdiff(names(call)[-1L], c("formula", if (is.null(columns)) by_row))
  asked <- setdiff(intersect(asked, names(call)), new)
  own <- c(list(NULL), lapply(c("utils", "stats"), asNamespace)) # R's functions, such as data(), are no variables
  known <- function(name) {
    value <- get0(name, envir = caller, ifnotfound = sum)
    !is.function(value) || !any(vapply(own, identical, NA, environment(value)))
  }
  lacking <- Filter(function(argument) {
    !all(vapply(setdiff(all.vars(call[[argument]]), if (argument %in% by_row) columns), known, NA))
  }, asked)
  if (!length(lacking)) return(caller)
  if (is.null(object$terms)) {
    data <- training_data(object)
    own <- list(x = rows_of_data(data)$x, y = given_response(data), weights = users_weights(data), offset = data$offset)
    symbols <- Filter(is.symbol, as.list(call)[lacking])
    return(list2env(stats::setNames(own[names(symbols)], vapply(symbols, as.character, "")), parent = caller))
  }
  names <- Filter(function(name) exists(name, envir = caller), all.vars(as.call(c(quote(list), as.list(call)[new]))))
  list2env(mget(names, envir = caller, inherits = TRUE), parent = environment(object$terms))
}

#' @export
influence.gp_fit <- function(model, ...) {
  list(hat = stats::hatvalues(model), wt.res = stats::residuals(model, "pearson"))
}
