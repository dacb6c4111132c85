# Fits a hurdle model as two fits: one for whether the response is 0, one for positive responses.

#' Model many zeros by a hurdle
#'
#' Fits two models with separate latent functions (Mullahy 1986, J. Econometrics 33). The first, with family
#' [binomial()], predicts whether a response is above 0. The second is fitted to the responses above 0. Their log
#' marginal likelihoods are added.
#' @param formula,data As for [pfdtc()]; `data` is a data frame. Responses are numbers of at least 0.
#' @param family Family of the responses above 0: `truncated_poisson()` (zero-truncated Poisson), `Gamma("log")`,
#'   [lognormal()], or another family of positive numbers. Default: `truncated_poisson()` for whole numbers, else
#'   `Gamma("log")`.
#' @param ... For `gp_hurdle()`, arguments of [pfdtc()] for both fits.
#' @param object A fit by `gp_hurdle()`.
#' @param newdata Rows to predict at. Default: the training rows.
#' @param type `"response"` (mean), `"zero"` (probability of 0), `"median"`, `"quantile"` (at `probs`) or `"density"`
#'   (log probability or log density of the response in `newdata`).
#' @param interval `"prediction"` adds an interval for a new response, zeros included, to a mean or median.
#' @param level Probability of the interval.
#' @param probs Probabilities of the quantiles.
#' @return `gp_hurdle()`: a list of class `gp_hurdle` with the fits `zero` (binomial: is y above 0?) and `positive`.
#'   `predict()`: a vector, or a matrix with `fit`, `lwr`, `upr` or quantiles.
#' @details `coef()`, `vcov()`, `confint()` and [report()] combine both fits: names begin with `zero.` or `positive.`.
#'   Functions for one fit, such as `drop1()`, take `fit$zero` or `fit$positive`. [certify()] returns the mean
#'   `response` and the probability `zero` under Laplace's approximation, with bounds `_lower` and `_upper`.
#'   `predict()` corrects the mode of f in `fit$zero` towards its mean, so its probabilities can differ much from these.
#' @seealso [pfdtc()], [tweedie()]
#' @examples
#' d <- data.frame(x = 1:60 / 10)
#' d$y <- ifelse(sin(3 * d$x) > 0, 0, 1 + round(d$x))
#' fit <- gp_hurdle(y ~ x, d, kernel = kernel_se())
#' fit
#' predict(fit, data.frame(x = c(1, 3)), type = "zero")
#' predict(fit, data.frame(x = c(1, 3)), interval = "prediction")
#' @aliases simulate.gp_hurdle print.gp_hurdle
#' @export
gp_hurdle <- function(formula, data, family = NULL, ...) {
  check_given("formula", "Write y ~ x1 + x2.")
  refuse_if(!inherits(formula, "formula") || length(formula) != 3L, "formula", describe(formula),
            "a formula with a response", hint = "gp_hurdle() is no family: write gp_hurdle(y ~ x, data).")
  check_given("data", "Give a data frame.")
  if (!is.data.frame(data)) abort_input("data", describe(data), "a data frame")
  left <- formula[[2L]]
  name <- deparse1(left)
  found <- function(what, argument, home) {
    tryCatch(eval(what, data, home), error = function(e) {
      abort_input(argument, sprintf("cannot be used with the data: %s", sub("[.]$", "", conditionMessage(e))))
    })
  }
  y <- found(left, "formula", environment(formula))
  if (!is.numeric(y) || NCOL(y) > 1L) abort_input(name, describe(y), "numbers of at least 0, one for each row")
  home <- parent.frame()
  call <- without_dots(match.call(), home)
  rows <- stats::setNames(seq_len(nrow(data)), row.names(data))
  if (!is.null(call$subset)) rows <- found(call("[", rows, call$subset), "subset", home)
  rows <- unname(rows[!is.na(rows)])
  bad <- rows[which(y[rows] < 0)]
  refuse_if(length(bad), name, as.double(y[bad[1L]]), "numbers of at least 0", where = sprintf("element %d", bad[1L]))
  above <- rows[which(y[rows] > 0)]
  y <- y[rows]
  wrong <- if (!length(y)) "has no rows" else if (all(y > 0, na.rm = TRUE)) "has no zeros" else if (!length(above))
    "is 0 in all rows" else if (length(above) == 1L && !is_fixed(eval(call$hyper, home))) "is above 0 in one row only"
  refuse_if(!is.null(wrong), name, wrong,
            hint = "A hurdle needs zeros and several numbers above 0. Without zeros use pfdtc().")
  if (is.null(family)) family <- if (all(y == round(y), na.rm = TRUE)) truncated_poisson() else stats::Gamma("log")
  row <- as_response(as_likelihood(family))
  above_0 <- identical(row$from, 1) || row$reads %in% c("positive", "times", "own") && !isTRUE(row$zeros)
  refuse_if(!above_0, "family", row$call,
            "a family of numbers above 0, such as truncated_poisson(), Gamma(\"log\") or lognormal()")
  # Fits a part. In the part's call, which update() and drop1() use, `shown` replaces arguments of gp_hurdle()'s call.
  part <- function(response, family, subset, shown) {
    # Replace the left side only: stats::update() would stop at a `.` on the right of the formula.
    given <- list(formula = replace(formula, 2L, list(response)), data = data, family = family, subset = subset)
    with_arguments <- function(f, given) as.call(c(f, replace(as.list(call)[-1L], names(given), given)))
    fit <- eval(with_arguments(pfdtc, given), home) # evaluates weights like lm()
    replace(fit, "call", list(with_arguments(quote(pfdtc), c(given["formula"], shown))))
  }
  where <- bquote(.(left) > 0 & !is.na(.(left)))
  given <- found(call$subset, "subset", home)
  if (!is.null(given)) where <- if (is.logical(given)) bquote(.(call$subset) & .(where)) else above
  both <- list(zero = part(bquote(as.numeric(.(left) > 0)), stats::binomial(), rows, list(family = quote(binomial()))),
               positive = part(left, family, above, list(family = call$family %||% str2lang(row$call), subset = where)))
  formula <- stats::formula(stats::terms(formula, data = data)) # without `.`
  structure(c(both, list(formula = formula, data = data[rows, , drop = FALSE], call = call,
                         evidence = both$zero$evidence + both$positive$evidence)), class = "gp_hurdle")
}

of_both <- function(generic, combine) {
  function(object, ...) combine(lapply(unclass(object)[c("zero", "positive")], generic, ...))
}

# Evaluates the new call in the caller's frame or the formula's environment. If neither has `data`, uses the fit's rows.
#' @export
update.gp_hurdle <- function(object, formula., ..., evaluate = TRUE) {
  call <- NextMethod(evaluate = FALSE)
  if (!isTRUE(evaluate)) return(call)
  new <- names(match.call(expand.dots = FALSE)$...)
  if (!"data" %in% new && is_data_lost(list(terms = object$formula), call, parent.frame())) {
    call[c("data", "subset")] <- list(object$data, NULL)
  }
  eval(call, frame_of_update(list(terms = object$formula), call, new, parent.frame()))
}

#' @export
coef.gp_hurdle <- of_both(stats::coef, unlist)

#' @export
vcov.gp_hurdle <- of_both(stats::vcov, function(each) {
  variance <- unlist(lapply(each, diag))
  V <- matrix(0, length(variance), length(variance), dimnames = list(names(variance), names(variance)))
  first <- seq_along(variance) <= nrow(each$zero)
  V[first, first] <- each$zero
  V[!first, !first] <- each$positive
  V
})

#' @export
confint.gp_hurdle <- function(object, parm, level = 0.95, ...) {
  ends <- of_both(stats::confint, function(each) {
    do.call(rbind, unname(Map(function(e, part) `rownames<-`(e, paste0(part, ".", rownames(e))), each, names(each))))
  })(object, level = level, ...)
  if (missing(parm)) return(ends)
  known <- if (is.numeric(parm)) seq_len(nrow(ends)) else rownames(ends)
  refuse_if(!all(parm %in% known), "parm", describe(parm), list_quoted(rownames(ends), "\"", most = 12L))
  ends[parm, , drop = FALSE]
}

#' @rawNamespace S3method(report,gp_hurdle)
report.gp_hurdle <- function(x, ...) {
  each <- lapply(unclass(x)[c("zero", "positive")], report, ...)
  for (part in names(each)) each[[part]]$table$what <- paste(part, each[[part]]$table$what, sep = ".")
  structure(list(text = paste("Part `zero` (is y > 0?).", each$zero$text, "Part `positive`.", each$positive$text),
                 table = do.call(rbind, unname(lapply(each, `[[`, "table")))), class = "pfdtc_report")
}

# Stops with an error in generics that work for a single fit only, not for the two fits of a hurdle model.
#' @evalNamespace sprintf("S3method(%s,gp_hurdle,of_one_part)", c("generics::forecast", "ggplot2::autoplot",
#'   "emmeans::recover_data", "parameters::model_parameters", "performance::model_performance", paste0("insight::",
#'   c("get_modelmatrix", "get_predicted", "get_statistic", "model_info")), paste0("nlme::", c("VarCorr", "fixef",
#'   "ranef")), paste0("stats::", c("add1", "anova", "cooks.distance", "deviance", "df.residual", "dfbetas", "drop1",
#'   "family", "hatvalues", "influence", "model.frame", "rstandard", "rstudent", "sigma", "weights"))))
of_one_part <- function(...) check_any_fit(..1, fit_labels(sys.call())[1L])

#' @export
terms.gp_hurdle <- function(x, ...) stats::terms(x$positive)

#' @export
variable.names.gp_hurdle <- function(object, ...) stats::variable.names(object$positive)

#' @export
plot.gp_hurdle <- function(x, ...) invisible(of_both(graphics::plot, identity)(x, ...))

# Fits both models of the hurdle (whether y is 0; the positive y) again in each fold, with the arguments of the call.
#' @export
cross_validate.gp_hurdle <- function(fit, folds = 10, by = NULL, hyper = "refit", ...) {
  check_dots_empty()
  refuse_if(!identical(hyper[1L], "refit"), "hyper", describe(hyper), "\"refit\" for a hurdle",
            hint = "Both parts of a hurdle are fitted again in each fold.")
  zero <- fit$zero
  kept <- setdiff(seq_len(nrow(fit$data)), zero$na.action)
  d <- fit$data[kept, , drop = FALSE]
  unknown <- if (inherits(by, "formula")) setdiff(all.vars(by), names(d))
  refuse_if(length(unknown), "by", sprintf("has %s, which is not found", list_quoted(unknown)))
  if (inherits(by, "formula")) by <- interaction(stats::model.frame(by, d, na.action = stats::na.pass), drop = TRUE)
  data <- training_data(zero)
  fold <- make_folds(zero, data, folds, by)
  home <- environment(fit$formula)
  y <- eval(fit$formula[[2L]], d, home)
  call <- as.list(fit$call)[-1L]
  call$subset <- NULL
  vars <- all.vars(call$offset) # predictions evaluate an offset whose variables are all in the data
  # Weights may be outside the data, and so may an offset if the data lack one of its variables.
  of_rows <- intersect(c("weights", if (!length(vars) || !all(vars %in% names(fit$data))) "offset"), names(call))
  given <- lapply(call[of_rows], eval, fit$data, home)
  wrong <- of_rows[lengths(given) != nrow(fit$data)][1L]
  refuse_if(!is.na(wrong), wrong, "has a value for each row before `subset`", hint = "Make it a column of `data`.")
  found <- over_folds(fold, which(weights_given(data) > 0), zero$control, function(out) {
    call[c("formula", "data", of_rows)] <- c(list(fit$formula, d[-out, , drop = FALSE]), lapply(given, `[`, kept[-out]))
    one <- suppressMessages(eval(as.call(c(gp_hurdle, call)), home))
    new <- d[out, , drop = FALSE]
    if ("offset" %in% of_rows) { # predict() gets an offset that is not in the data as a column
      new[["(offset of the call)"]] <- given$offset[kept[out]]
      for (part in c("zero", "positive")) one[[part]]$frame$offset <- as.name("(offset of the call)")
    }
    predicted <- function(...) suppressMessages(stats::predict(one, new, ...))
    inside <- function(level) {
      ends <- predicted(interval = "prediction", level = level)
      y[out] >= ends[, "lwr"] & y[out] <= ends[, "upr"]
    }
    data.frame(y = y[out], mean = unname(predicted()), density = unname(predicted(type = "density")),
               in50 = inside(0.5), in95 = inside(0.95))
  }, function(each) {
    data.frame(n = nrow(each), rmse = root_mean_square(each$y - each$mean), nlpd = -mean(each$density),
               cover50 = mean(each$in50), cover95 = mean(each$in95))
  }, c("y", "mean", "density"))
  structure(found, hyper = "refit", by = !is.null(by), method = "gp_hurdle")
}

#' @export
nobs.gp_hurdle <- of_both(stats::nobs, function(each) each$zero)

#' @export
summary.gp_hurdle <- function(object, ...) {
  structure(c(of_both(summary, identity)(object, ...), object[c("call", "evidence")]), class = "summary.gp_hurdle")
}

#' @export
residuals.gp_hurdle <- function(object, ...) {
  check_dots_empty()
  y <- eval(object$formula[[2L]], object$data, environment(object$formula))
  if (inherits(object$zero$na.action, "omit")) y <- y[-object$zero$na.action]
  y - stats::fitted(object)
}

#' @rdname gp_hurdle
#' @rawNamespace S3method(predict,gp_hurdle); S3method(fitted,gp_hurdle,predict.gp_hurdle)
predict.gp_hurdle <- function(object, newdata = NULL, type = c("response", "zero", "median", "quantile",
                              "density"), interval = c("none", "prediction"), level = 0.95, probs = c(0.05, 0.5, 0.95),
                              ...) {
  check_dots_empty()
  newdata <- newdata %||% rows_of_hurdle(object)
  type <- check_choice(type)
  interval <- check_choice(interval)
  refuse_if(interval != "none" && !type %in% c("response", "median"), "interval",
            sprintf("is not available with type = \"%s\"", type))
  at <- stats::predict(object$zero, newdata, type = "latent", se.fit = TRUE)
  chance <- function(f) response_moments(response_of(object$zero), f, at$se.fit^2)$mean
  above <- chance(at$fit)
  if (type == "zero") return(chance(-at$fit))
  known <- rows_above_0(object$positive, newdata)
  f <- lapply(stats::predict(object$positive, known, type = "latent", se.fit = TRUE), unname)
  response <- response_of(object$positive)
  quantile <- function(p) { # 0, or a quantile of the positive part
    within <- (p - (1 - above)) / above
    some <- which(within > 0 & !is.na(f$fit))
    replace(ifelse(within > 0, 0 * f$fit, 0 * above), some,
            predictive_quantile(response, within[some], rep(1, length(some)), f$fit[some], f$se.fit[some]))
  }
  fit <- switch(type, median = quantile(0.5), density = {
    some <- which(responses_in(object$positive, known) != 0) # refuses negative ones
    zero <- stats::predict(object$zero, newdata, type = "density")
    replace(zero, some, zero[some] + stats::predict(object$positive, known[some, , drop = FALSE], type = "density"))
  }, quantile = {
    vapply(stats::setNames(check_probs(probs), format(probs, trim = TRUE)), quantile, above)
  }, response = above * response_moments(response, f$fit, f$se.fit^2)$mean)
  if (interval == "none") return(fit)
  level <- check_level(level)
  cbind(fit = fit, lwr = quantile((1 - level) / 2), upr = quantile((1 + level) / 2))
}

#' @export
simulate.gp_hurdle <- function(object, nsim = 1, seed = NULL, newdata = NULL, ...) {
  newdata <- newdata %||% rows_of_hurdle(object)
  from_seed(seed, {
    draws <- stats::simulate(object$zero, nsim = nsim, newdata = newdata)
    above <- stats::simulate(object$positive, nsim = nsim, newdata = rows_above_0(object$positive, newdata))
    draws * replace(above, draws == 0, 0)
  })
}

#' @export
print.gp_hurdle <- function(x, ...) {
  cat(sprintf("Hurdle model of two fits, log marginal likelihood %s (sum of both)\n", format(x$evidence, digits = 5)))
  cat(wrap(paste("Call:", deparse_shown(x$call)), exdent = 6), sep = "\n")
  cat("\nFit `zero` models P(y > 0), the probability of a response above 0\n")
  print(replace(x$zero, "call", list(NULL)), ...)
  cat("\nFit `positive` models the responses above 0\n")
  print(replace(x$positive, "call", list(NULL)), ...)
  invisible(x)
}

#' @export
print.summary.gp_hurdle <- print.gp_hurdle

#' @export
logLik.gp_hurdle <- of_both(stats::logLik, function(each) {
  structure(sum(unlist(each)), df = sum(vapply(each, attr, 0, "df")), nobs = attr(each$zero, "nobs"), class = "logLik")
})

#' @export
AIC.gp_hurdle <- AIC.gp_fit

#' @export
BIC.gp_hurdle <- BIC.gp_fit

#' @export
extractAIC.gp_hurdle <- function(fit, scale, k = 2, ...) rowSums(sapply(unclass(fit)[1:2], stats::extractAIC, k = k))

#' @exportS3Method generics::tidy
tidy.gp_hurdle <- of_both(function(object, ...) tidy.gp_fit(object, ...), function(each) {
  data.frame(part = rep(names(each), vapply(each, nrow, 1L)), do.call(rbind, unname(each)))
})

#' @exportS3Method generics::glance
glance.gp_hurdle <- function(x, ...) {
  check_dots_empty()
  ll <- stats::logLik(x)
  data.frame(method = "gp_hurdle", nobs = stats::nobs(x), df = attr(ll, "df"), evidence = as.double(ll),
             AIC = stats::AIC(x), BIC = stats::BIC(x))
}

#' @exportS3Method generics::augment
augment.gp_hurdle <- function(x, data = rows_of_hurdle(x, padded = FALSE), newdata = NULL, ...) {
  check_dots_empty()
  out <- as.data.frame(newdata %||% data)
  out$.fitted <- unname(stats::predict(x, out))
  if (is.null(newdata)) out$.resid <- eval(x$formula[[2L]], out, environment(x$formula)) - out$.fitted
  out
}
