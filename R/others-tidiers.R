# Defines methods for packages generics (broom), emmeans, lmtest, insight, performance and parameters.

#' Tidy a Gaussian process fit
#'
#' These are methods of `tidy()`, `glance()` and `augment()` (packages generics, broom) and of `autoplot()` (ggplot2).
#' @param x,object A fit.
#' @param data,newdata The training rows, or `newdata` to predict at instead.
#' @param se_fit,interval Add `.se.fit`, sd of `.fitted`? Interval for `.lower` and `.upper`, see [predict.gp_fit()].
#' @param conf.int Add the ends of [confint()] as `conf.low` and `conf.high`?
#' @param conf.level,type.predict Probability of intervals; scale of `.fitted`.
#' @param inputs,at,level,n,points,which,scales,certified,xlim,terms,type As in [plot.gp_fit()].
#' @param effects `NULL`: hyperparameters. For grouped terms `"fixed"`, `"ran_pars"` (sds, correlations), `"ran_vals"`
#'   (effects).
#' @param ... Not used.
#' @return `tidy()`: a row for each coefficient and hyperparameter; `std.error` of hyperparameters is `NA`.
#'   `glance()`: one row with `method`, `nobs`, `m`, `df`, `sigma`, `evidence` (as `logLik()`), `AIC`, `BIC`,
#'   `objective` (the minimised value, or `NA`), `convergence` (0: converged), `evaluations` and `seconds`.
#'   `augment()`: the rows with `.fitted`, `.se.fit`, `.lower`, `.upper` and, for training rows, `.resid`; for unordered
#'   classes only `.fitted` (the most probable one) and probabilities `.prob_<class>`.
#' @seealso [plot.gp_fit()], [predict.gp_fit()], [confint()][vcov.gp_fit]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' if (requireNamespace("generics", quietly = TRUE)) generics::tidy(fit, conf.int = TRUE)
#' @name gp_fit-tidiers
NULL

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::tidy
tidy.gp_fit <- function(x, conf.int = FALSE, conf.level = 0.95, effects = NULL, ...) {
  check_dots_empty()
  check_flag(conf.int, "conf.int")
  conf.level <- check_level(conf.level, "conf.level")
  if (!is.null(effects)) return(tidy_effects(x, effects, conf.int, conf.level))
  theta <- stats::coef(x)
  linear <- linear_coefficients(check_any_fit(x, "x"))
  out <- data.frame(term = names(theta), estimate = unname(theta), std.error = NA_real_)
  own <- names(stats::coef(x, log = TRUE)) # the hyperparameter `noise` differs here from a coefficient of that name
  if (!is.null(linear)) out$std.error <- unname(linear[match(own, rownames(linear)), "Std. Dev."])
  if (!conf.int) return(out)
  ends <- stats::confint(x, level = conf.level)
  logs <- plain_names(rownames(ends), x) != rownames(ends)
  ends[logs, ] <- exp(ends[logs, ])
  out[c("conf.low", "conf.high")] <- ends[match(own, rownames(ends)), ]
  out
}

# Returns the table of tidy() for a fit with groups, in the form of package broom.mixed.
tidy_effects <- function(x, effects, conf.int, level) {
  kinds <- c("fixed", "ran_pars", "ran_vals")
  refuse_if(!is.character(effects) || !length(effects) || !all(effects %in% kinds), "effects", describe(effects),
            list_quoted(kinds, "\""))
  out <- do.call(rbind, lapply(effects, function(effect) {
    each <- switch(effect, fixed = {
      linear <- mean_coefficients(fit_with_groups(x, "x"))
      data.frame(group = NA_character_, level = NA_character_, term = names(fixef.gp_fit(x)),
                 estimate = unname(fixef.gp_fit(x)), std.error = if (is.null(linear)) NA_real_ else unname(linear$sd))
    }, ran_pars = {
      vc <- as.data.frame(VarCorr.gp_fit(x))
      pair <- !is.na(vc$var2)
      data.frame(group = vc$grp, level = NA_character_, estimate = vc$sdcor, std.error = NA_real_,
                 term = paste0(ifelse(pair, "cor__", "sd__"), ifelse(is.na(vc$var1), "Observation", vc$var1),
                               ifelse(pair, paste0(".", vc$var2), "")))
    }, ran_vals = {
      b <- as.data.frame(ranef.gp_fit(x, se = TRUE))
      data.frame(group = b$grpvar, level = b$grp, term = b$term, estimate = b$condval, std.error = b$condsd)
    })
    cbind(effect = effect, each[c("group", "level", "term", "estimate", "std.error")])
  }))
  if (!conf.int) return(out)
  half <- stats::qnorm((1 + level) / 2) * out$std.error
  cbind(out, conf.low = out$estimate - half, conf.high = out$estimate + half)
}

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::glance
glance.gp_fit <- function(x, ...) {
  check_dots_empty()
  own <- if (has_own_likelihood(check_any_fit(x, "x"))) stats::logLik(x) # AIC() uses the restricted likelihood, too
  data.frame(method = x$method, nobs = stats::nobs(x), m = if (is_exact(x)) NA_integer_ else x$m %||% NA_integer_,
             df = as.integer(attr(own, "df") %||% x$df), sigma = stats::sigma(x),
             evidence = as.double(own %||% largest_evidence(x)), AIC = stats::AIC(x), BIC = stats::BIC(x),
             objective = x$objective, convergence = x$convergence, evaluations = sum(x$evaluations),
             seconds = sum(x$seconds))
}

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::augment
augment.gp_fit <- function(x, data = stats::model.frame(x), newdata = NULL, se_fit = TRUE,
                           interval = c("none", "credible", "prediction", "conformal", "confidence"),
                           conf.level = 0.95, type.predict = c("response", "link"), ...) {
  check_dots_empty()
  type <- check_choice(type.predict)
  interval <- check_choice(interval)
  labels <- response_of(x)$kind == "labels"
  if (labels && interval != "none") abort_input("interval", "is not available for several classes")
  if (labels && type == "link") abort_input("type.predict", "= \"link\" is not available for several classes")
  p <- if (labels) list(fit = stats::predict(x, newdata, type = "response")) else
    stats::predict(x, newdata, se.fit = TRUE, interval = interval, level = conf.level,
                   type = if (type == "link") type else "mean")
  fit <- as.matrix(p$fit)
  out <- as.data.frame(newdata %||% data)
  # With na.exclude, predictions include rows that the model frame omits.
  rows <- seq_len(nrow(fit))
  padded <- is.null(newdata) && inherits(x$na.action, "exclude") && nrow(out) == length(rows) - length(x$na.action)
  if (padded) rows <- rows[-x$na.action]
  refuse_if(nrow(out) != length(rows), "data", sprintf("has %d rows, but the fit has %d", nrow(out), length(rows)),
            hint = "Give the training rows.")
  attr(out, "terms") <- attr(out, "na.action") <- NULL
  fit <- fit[rows, , drop = FALSE]
  if (labels) { # .fitted is the most probable class
    out$.fitted <- unname(stats::predict(x, newdata, type = "class"))[rows]
    out[paste0(".prob_", colnames(fit))] <- lapply(seq_len(ncol(fit)), function(k) unname(fit[, k])) # a name may be ""
    return(out)
  }
  out$.fitted <- unname(fit[, 1L])
  if (check_flag(se_fit, "se_fit")) out$.se.fit <- unname(p$se.fit[rows])
  if (interval != "none") out[c(".lower", ".upper")] <- list(unname(fit[, "lwr"]), unname(fit[, "upr"]))
  if (is.null(newdata)) out$.resid <- unname(stats::residuals(x)[rows])
  out
}

#' Use fits with other packages
#'
#' emmeans, marginaleffects, insight, performance, parameters, butcher and vetiver accept fits. emmeans and
#' marginaleffects require fits from a formula. Intervals of f are at fixed hyperparameters.
#'
#' * emmeans: `emmeans()`, `emtrends()` and `contrast()` use mean and covariance of f (with a transform: of the mean
#'   response) at the rows of the reference grid. `type = "response"` applies the inverse link. Contrasts may depend on
#'   other inputs. Means omit effects of groups and do not exist for unordered classes.
#' * marginaleffects: `predictions()`, `comparisons()`, `slopes()` and their `avg_` and `plot_` forms use joint
#'   posterior draws of f instead of the delta method. Estimates are posterior means if they are linear in f, and
#'   otherwise medians of draws. The time grows with n^3 for n rows in a call.
#' * insight, performance, parameters: `model_parameters()` returns `coef()` and, in its units, the ends of [confint()].
#'   `model_performance()` returns `AIC`, `BIC`, `RMSE` (not for unordered classes), and `R2` and `Sigma` or `NLPD` and
#'   (for classes) `Brier`. Columns `*_loo` are leave-one-out scores.
#' * butcher: `butcher(fit)` removes parts that prediction does not need. Predictions stay identical. `axe_data()`
#'   removes the training rows, except that a fit with neighbours keeps them and an exact posterior keeps its inputs.
#'   `axe_env()` removes the environments of formulas; their functions must then be in the workspace.
#' * vetiver: `vetiver_model(fit, "name")` makes a model to pin and serve, without the data that prediction does not
#'   need. If the formula has terms such as `log(a)`, also give `prototype_data`, some rows of the data. With
#'   `vetiver_api(v, interval = "prediction")`, results have `.pred`, `.pred_lower` and `.pred_upper`.
#' @usage
#' get_predicted.gp_fit(x, data = NULL, predict = "expectation", ci = NULL, verbose = TRUE, ...)
#' model_parameters.gp_fit(model, ci = 0.95, ...)
#' get_predict.gp_fit(model, newdata = NULL, type = "response", ...)
#' @param x,model A fit.
#' @param data,newdata Rows to predict at. Default: the training rows.
#' @param predict `"expectation"` (mean response), `"prediction"` (intervals of a new response) or, for a
#'   non-Gaussian family, `"link"` (f).
#' @param type For a non-Gaussian likelihood, `"response"` or `"link"`.
#' @param ci Probability of the intervals, or `NULL`.
#' @param verbose,... Arguments that the packages pass on.
#' @return The methods return what their packages document. `get_predict()` returns a data frame with `rowid` and
#'   `estimate`. Its attribute `posterior_draws` has `getOption("pfdtc.draws", 2000)` columns.
#' @seealso [predict.gp_fit()], [leave_one_out], [gp_fit-tidiers], [gp_reg()]
#' @examples
#' fit <- pfdtc(breaks ~ wool + tension, warpbreaks, kernel = kernel_se())
#' has <- function(...) all(vapply(c(...), requireNamespace, NA, quietly = TRUE))
#' if (has("emmeans")) emmeans::emmeans(fit, pairwise ~ wool | tension)
#' if (has("marginaleffects", "collapse") && getRversion() >= "4.4") {
#'   marginaleffects::avg_comparisons(fit)
#' }
#' if (has("insight")) insight::get_predicted(fit, warpbreaks[1:2, ], ci = 0.95)
#' if (has("performance")) performance::model_performance(fit)
#' if (has("butcher")) predict(butcher::butcher(fit), warpbreaks[1:2, ])
#' if (has("vetiver")) vetiver::vetiver_model(fit, "breaks")$prototype
#' @name insight-methods
#' @aliases emmeans-methods marginaleffects-methods butcher-methods vetiver-methods recover_data.gp_fit emm_basis.gp_fit
#'   find_formula.gp_fit get_variance.gp_fit find_statistic.gp_fit get_statistic.gp_fit model_info.gp_fit
#'   get_vcov.gp_fit get_predicted.gp_fit model_parameters.gp_fit model_performance.gp_fit get_predict.gp_fit
#'   axe_data.gp_fit axe_env.gp_fit axe_call.gp_fit axe_fitted.gp_fit vetiver_create_description.gp_fit
#'   vetiver_create_meta.gp_fit vetiver_prepare_model.gp_fit vetiver_ptype.gp_fit handler_startup.gp_fit
#'   handler_predict.gp_fit
NULL

#' @exportS3Method emmeans::recover_data
recover_data.gp_fit <- function(object, data = NULL, ...) {
  object <- check_any_fit(object, "object")
  if (is.null(object$terms)) abort_input("object", "is a fit from a matrix", hint = "Fit by formula and data frame.")
  terms <- stats::delete.response(object$terms)
  group <- vapply(object$frame$variables, function(v) v$kind == "group", NA)
  # Omit groups from the terms. Variables of offsets become inputs, because predictions include the offset already.
  offsets <- c(as.list(attr(terms, "variables"))[1L + attr(terms, "offset")], object$frame$offset)
  if (any(group) || length(offsets)) {
    inputs <- vapply(object$frame$variables[!group], `[[`, "", "name")
    if (!length(inputs)) abort_input("object", "has groups, but no input")
    inputs <- c(ifelse(inputs %in% object$frame$required, sprintf("`%s`", inputs), inputs),
                sprintf("`%s`", unlist(lapply(offsets, all.vars))))
    terms <- stats::terms(stats::reformulate(inputs, env = environment(terms)))
  }
  kept <- if (is.null(data)) kept_variables(object)
  if (is.null(kept) || !all(all.vars(terms) %in% names(kept))) {
    return(emmeans::recover_data(object$call, terms, object$na.action, data = data, ...))
  }
  emmeans::recover_data(with_kept_rows(object$call, kept), terms, NULL, data = kept, ...)
}

# Stops if vcov() has only logs of hyperparameters, because lmtest would then print an empty table.
#' @exportS3Method lmtest::coeftest
coeftest.gp_fit <- function(x, ...) {
  tested <- ...length() || any(names(stats::coef(x)) %in% colnames(stats::vcov(x)))
  refuse_if(!tested, "x", "has no coefficients to test, only hyperparameters, which are positive",
            hint = "confint(x) has their intervals. coef(x, log = TRUE) and vcov(x) belong together.")
  NextMethod()
}

# Stops, because car would take hyperparameters, by their position, for coefficients of the inputs.
#' @exportS3Method car::Anova
Anova.gp_fit <- function(mod, ...) {
  abort_input("mod", "has no coefficients of inputs to test, but hyperparameters, which are positive",
              hint = "drop1(mod) compares it with fits without one input.")
}

#' @exportS3Method emmeans::emm_basis
emm_basis.gp_fit <- function(object, trms, xlev, grid, ...) {
  refuse_if(response_of(object)$kind == "labels", "object", "has several classes",
            hint = "Average predict(type = \"response\") over the rows of a grid.")
  response <- response_of(object)
  p <- stats::predict(object, grid, type = if (response$conjugate) "mean" else "latent", full_cov = TRUE, re = FALSE)
  label <- if (response$reads == "classes") "prob" else if (response$discrete) "rate" else "response"
  list(X = diag(nrow(grid)), bhat = unname(p$fit), nbasis = matrix(NA), V = unname(p$cov),
       dffun = function(k, dfargs) Inf, dfargs = list(), # `misc` lets emmeans transform f to the response
       misc = if (fit_link(object) == "identity") list() else list(tran = fit_link(object), inv.lbl = label))
}

#' @exportS3Method insight::find_formula
find_formula.gp_fit <- function(x, verbose = TRUE, ...) {
  if (is.null(x$terms)) return(NULL)
  quoted <- function(names) ifelse(names %in% x$frame$required, sprintf("`%s`", names), names)
  groups <- if (length(group_roots(x$kernel))) groups_of_fit(x)
  random <- lapply(groups, function(g) {
    effects <- lapply(setdiff(g$effects, "(Intercept)"), as.name)
    design <- Reduce(function(a, b) call("+", a, b), c(list(as.numeric(g$intercept)), effects))
    one_sided(call("|", design, str2lang(quoted(g$by))))
  })
  conditional <- stats::formula(x)
  if (length(groups)) {
    inputs <- Filter(function(v) v$kind != "group", x$frame$variables)
    conditional <- stats::reformulate(c("1", quoted(vapply(inputs, `[[`, "", "name"))), conditional[[2L]])
  }
  structure(c(list(conditional = conditional),
              if (length(random)) list(random = if (length(random) == 1L) random[[1L]] else random)),
            class = c("insight_formula", "list"))
}

#' @exportS3Method insight::get_variance
get_variance.gp_fit <- function(x, component = "all", verbose = TRUE, ...) {
  x <- fit_with_groups(x, "x")
  rows <- rows_of_data(training_data(x))$x
  of_link <- c(logit = pi^2 / 3, probit = 1, cloglog = pi^2 / 6)[fit_link(x)]
  residual <- if (response_of(x)$conjugate) mean(x$noise * noise_factor(x$noise_trend, rows)) else
    if (response_of(x)$reads == "classes") of_link[[1L]] else NA_real_
  terms <- groups_of_fit(x)
  S <- lapply(terms, function(g) tcrossprod(g$root))
  random <- vapply(terms, function(g) mean(colSums(crossprod(g$root, design_of(g, rows))^2)), 0)
  each <- function(f) unlist(Map(f, terms, S))
  out <- list(var.fixed = stats::var(latent_at(x, rows, re = FALSE)$mean), var.random = sum(random),
    var.residual = residual, var.distribution = residual, var.dispersion = 0,
    var.intercept = each(function(g, S) if (g$intercept) stats::setNames(S[1L], g$by)),
    var.slope = each(function(g, S) {
      slopes <- g$effects != "(Intercept)"
      if (any(slopes)) stats::setNames(diag(S)[slopes], paste(g$by, g$effects[slopes], sep = "."))
    }),
    cor.slope_intercept = each(function(g, S) {
      if (g$intercept && nrow(S) > 1L) stats::setNames(stats::cov2cor(S)[-1L, 1L], rep(g$by, nrow(S) - 1L))
    }))
  out <- Filter(length, out)
  if (identical(component, "all")) return(out)
  out[[switch(component, slope = "var.slope", rho01 = "cor.slope_intercept", paste0("var.", component))]]
}

# Returns NULL, because a fit has no test statistics and no covariance for the delta method.
#' @rawNamespace
#' S3method(insight::find_statistic,gp_fit,has_none)
#' S3method(insight::get_statistic,gp_fit,has_none)
#' S3method(marginaleffects::get_vcov,gp_fit,has_none)
has_none <- function(...) NULL

#' @exportS3Method insight::model_info
model_info.gp_fit <- function(x, ...) {
  family <- stats::family(x)
  reads <- if (identical(x$likelihood$from, "gaussian")) "numbers" else response_of(x)$reads
  rows <- data.frame(y = if (reads == "positive") c(1, 2, 2) else c(0, 1, 1))
  as_mixed <- function(model) {
    utils::modifyList(insight::model_info(model), list(is_mixed = has_groups(x$kernel), family = family$family,
                                                       is_censored = reads %in% c("times", "censored")))
  }
  if (family$link == "identity") return(as_mixed(stats::lm(y ~ 1, rows)))
  if (inherits(family, "family")) return(as_mixed(stats::glm(y ~ 1, family, rows)))
  info <- as_mixed(stats::glm(y ~ 1, stats::poisson(), rows))
  info[c("is_poisson", "is_count", "is_negbin", "is_ordinal", "is_multinomial", "is_survival", "family",
         "link_function")] <- list(FALSE, reads == "counts", reads == "counts", reads == "ordered", reads == "labels",
         reads == "times", response_of(x)$label, family$link)
  info
}

#' @exportS3Method insight::get_predicted
get_predicted.gp_fit <- function(x, data = NULL, predict = "expectation", ci = NULL, verbose = TRUE, ...) {
  known <- c("expectation", "prediction", if (!response_of(x)$conjugate) "link")
  predict <- check_choice(predict %||% "expectation", known, "predict")
  type <- switch(predict, link = "latent", expectation = "mean", "response")
  p <- stats::predict(x, data, se.fit = TRUE, type = type)
  ci_data <- data.frame(Row = c(row(as.matrix(p$fit))), SE = c(unname(p$se.fit)))
  if (is.matrix(p$fit)) ci_data[["Response"]] <- rep(colnames(p$fit), each = nrow(p$fit))
  if (!is.null(ci)) {
    interval <- if (predict == "prediction") "prediction" else "credible"
    band <- stats::predict(x, data, interval = interval, level = check_level(ci), type = type)
    end <- function(name) if (is.matrix(p$fit)) c(band[, name, ]) else unname(band[, name])
    ci_data[c("CI_low", "CI_high")] <- list(end("lwr"), end("upr"))
  }
  structure(c(unname(p$fit)), ci = ci, ci_data = ci_data, data = data %||% stats::model.frame(x),
            predict = predict, class = c("get_predicted", "numeric"))
}

#' @exportS3Method parameters::model_parameters
model_parameters.gp_fit <- function(model, ci = 0.95, ...) {
  model <- check_any_fit(model, "model")
  out <- if (!is.null(ci)) tryCatch(tidy.gp_fit(model, TRUE, check_level(ci)), pfdtc_error_input = function(e) NULL)
  if (is.null(out)) out <- tidy.gp_fit(model) else out[["CI"]] <- ci
  if (all(is.na(out$std.error))) out$std.error <- NULL
  names(out) <- c(term = "Parameter", estimate = "Coefficient", std.error = "SE", conf.low = "CI_low",
                  conf.high = "CI_high", CI = "CI")[names(out)]
  structure(out, class = c("parameters_model", "see_parameters_model", "data.frame"), ci = ci, digits = 2L,
            ci_digits = 2L, footer_digits = 3L, coefficient_name = "Coefficient", pretty_names = NULL,
            title = "# Hyperparameters", exponentiate = FALSE, model_class = class(model))
}

#' @exportS3Method performance::model_performance
model_performance.gp_fit <- function(model, ...) {
  model <- check_any_fit(model, "model")
  scores <- if (response_of(model)$conjugate) function(seen) {
    y <- given_response(training_data(model))
    r <- stats::residuals(model, type = if (seen) "response" else "loo")
    data.frame(c(list(R2 = 1 - mean(r^2, na.rm = TRUE) / mean((y - mean(y))^2), RMSE = root_mean_square(r)),
                 if (seen) list(Sigma = stats::sigma(model))))
  } else function(seen) {
    stats::setNames(training_scores(model, seen = seen)[c("nlpd", "rmse", "brier")], c("NLPD", "RMSE", "Brier"))
  }
  unseen <- scores(FALSE)
  names(unseen) <- paste0(names(unseen), "_loo")
  structure(cbind(data.frame(AIC = stats::AIC(model), BIC = stats::BIC(model)), scores(TRUE), unseen),
            class = c("performance_model", "data.frame"))
}
