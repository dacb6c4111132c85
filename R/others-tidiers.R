# Methods for generics of packages generics (broom) and ggplot2, registered when these are loaded.

#' Tidy a Gaussian process fit
#'
#' `tidy()`, `glance()` and `augment()` of packages generics and broom, and `autoplot()` of ggplot2.
#'
#' @param x,object A fit.
#' @param data,newdata The training rows, or rows to predict at instead.
#' @param se_fit Should `.se.fit`, the sd of f, be added?
#' @param interval Interval to add as `.lower` and `.upper`, as in [predict.gp_fit()].
#' @param conf.int,conf.level Should [confint()] be added as `conf.low` and `conf.high`, with which probability?
#' @param inputs,at,level,n,points,which,scales,certified,xlim,terms,type As in [plot.gp_fit()].
#' @param effects `NULL`, or for a fit with groups some of `"fixed"`, `"ran_pars"` (sds and correlations) and
#'   `"ran_vals"` (effects of levels), as in broom.mixed.
#' @param ... Not used.
#' @return A data frame; `autoplot()` returns a ggplot of the figure of [plot.gp_fit()]. `tidy()` has a row for each
#'   hyperparameter; `glance()` has one row with `method`, `nobs`, `m`, `df`, `sigma`, `evidence`, `AIC`, `BIC`,
#'   `objective`, `convergence`, `evaluations`, `seconds`; `augment()` has the rows with `.fitted`, `.se.fit`, `.lower`,
#'   `.upper` and, for training rows, `.resid`; with several classes `.fitted` is the class, beside `.prob_<class>`.
#' @seealso [plot.gp_fit()], [predict.gp_fit()], [confint()][vcov.gp_fit]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' if (requireNamespace("generics", quietly = TRUE)) generics::tidy(fit, conf.int = TRUE)
#' @name gp_fit-tidiers
NULL

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::tidy
tidy.gp_fit <- function(x, conf.int = FALSE, conf.level = 0.95, effects = NULL, ...) {
  check_dots_empty(list(...), names(formals(tidy.gp_fit)))
  if (!is.null(effects)) return(tidy_effects(x, effects, check_flag(conf.int, "conf.int"), check_level(conf.level)))
  check_flag(conf.int, "conf.int")
  theta <- stats::coef(x)
  out <- data.frame(term = names(theta), estimate = unname(theta))
  if (!conf.int) return(out)
  ends <- stats::confint(x, level = conf.level)
  plain <- plain_names(rownames(ends), x)
  logs <- plain != rownames(ends)
  ends[logs, ] <- exp(ends[logs, ])
  out[c("conf.low", "conf.high")] <- ends[match(out$term, plain), ]
  out
}

# Returns the tables of groups as broom.mixed has them.
tidy_effects <- function(x, effects, conf.int, level) {
  kinds <- c("fixed", "ran_pars", "ran_vals")
  if (!is.character(effects) || !length(effects) || !all(effects %in% kinds)) {
    abort_input("effects", describe(effects), list_quoted(kinds, "\""))
  }
  parts <- lapply(effects, function(effect) {
    out <- switch(effect, fixed = {
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
    cbind(effect = effect, out[c("group", "level", "term", "estimate", "std.error")])
  })
  out <- do.call(rbind, parts)
  if (!conf.int) return(out)
  half <- stats::qnorm((1 + level) / 2) * out$std.error
  cbind(out, conf.low = out$estimate - half, conf.high = out$estimate + half)
}

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::glance
glance.gp_fit <- function(x, ...) {
  check_dots_empty(list(...), "x")
  data.frame(method = x$method, nobs = stats::nobs(x),
             m = if (is.null(x$m)) NA_integer_ else x$m, df = x$df, sigma = stats::sigma(x),
             evidence = check_any_fit(x, "x")$evidence, AIC = stats::AIC(x), BIC = stats::BIC(x),
             objective = x$objective, convergence = x$convergence, evaluations = sum(x$evaluations),
             seconds = sum(x$seconds))
}

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::augment
augment.gp_fit <- function(x, data = stats::model.frame(x), newdata = NULL, se_fit = TRUE,
                           interval = c("none", "credible", "prediction", "conformal", "confidence"),
                           conf.level = 0.95, ...) {
  check_dots_empty(list(...), names(formals(augment.gp_fit)))
  interval <- check_choice(interval, eval(formals(augment.gp_fit)$interval), "interval")
  labels <- has_labels(response_of(x))
  if (labels && interval != "none") abort_input("interval", interval, "\"none\" with several classes")
  p <- if (labels) list(fit = stats::predict(x, newdata, type = "response")) else
    stats::predict(x, newdata, se.fit = TRUE, interval = interval, level = conf.level, type = "mean")
  fit <- as.matrix(p$fit)
  out <- as.data.frame(if (is.null(newdata)) data else newdata)
  # na.exclude pads predictions with rows that a model frame lacks
  rows <- seq_len(nrow(fit))
  padded <- is.null(newdata) && inherits(x$na.action, "exclude") && nrow(out) == length(rows) - length(x$na.action)
  if (padded) rows <- rows[-x$na.action]
  if (nrow(out) != length(rows)) {
    abort_input("data", sprintf("of %d rows", nrow(out)),
                sprintf("the training rows, of which there are %d", length(rows)))
  }
  attr(out, "terms") <- attr(out, "na.action") <- NULL
  fit <- fit[rows, , drop = FALSE]
  if (labels) { # the most probable class, and the probability of each
    known <- !is.na(fit[, 1L])
    best <- replace(rep(NA_integer_, nrow(fit)), known, max.col(fit[known, , drop = FALSE], "first"))
    out$.fitted <- factor(colnames(fit)[best], colnames(fit))
    out[paste0(".prob_", colnames(fit))] <- unname(fit)
    return(out)
  }
  out$.fitted <- unname(fit[, 1L])
  if (check_flag(se_fit, "se_fit")) out$.se.fit <- unname(p$se.fit[rows])
  if (interval != "none") {
    out$.lower <- unname(fit[, "lwr"])
    out$.upper <- unname(fit[, "upr"])
  }
  if (is.null(newdata)) out$.resid <- unname(stats::residuals(x)[rows])
  out
}
