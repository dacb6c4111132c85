# Methods for generics of other packages (generics, ggplot2), registered when those are loaded.

#' Tidy a Gaussian process fit
#'
#' Methods for `tidy()`, `glance()` and `augment()` of package generics (also found through broom),
#' and for `autoplot()` of package ggplot2. They are there when those packages are.
#'
#' @param x,object A fit.
#' @param data The training rows, to which columns are added; by default `model.frame(x)`.
#' @param newdata Rows to predict at, as for [predict.gp_fit()], in place of the training rows.
#' @param se_fit Should `.se.fit`, the standard deviation of f, be added?
#' @param interval,conf.level The band to add as `.lower` and `.upper`, and its probability: see
#'   `interval` and `level` of [predict.gp_fit()].
#' @param inputs,at,level,n,points As for [plot.gp_fit()], and so `interval` of `autoplot()`.
#' @param ... Nothing: an unknown argument is an error.
#' @return Data frames.
#' * `tidy()`: a row a hyperparameter, columns `term` (as in `coef()`) and `estimate`.
#' * `glance()`: one row: `method`, `nobs`, `m` (`NA` for the exact posterior), `df`, `sigma`,
#'   `elbo`, `AIC`, `BIC` (from what `logLik()` gives), `objective`, `convergence`, `evaluations`,
#'   `seconds`.
#' * `augment()`: the rows with `.fitted`, `.se.fit`, `.lower`, `.upper` as asked and, for the
#'   training rows, `.resid`.
#'
#' `autoplot()` returns a ggplot of what [plot.gp_fit()] draws.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 10)
#' if (requireNamespace("generics", quietly = TRUE)) {
#'   generics::tidy(fit)
#'   head(generics::augment(fit, interval = "prediction"))
#' }
#' @name gp_fit-tidiers
NULL

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::tidy
tidy.gp_fit <- function(x, ...) {
  check_dots_empty(list(...), "x")
  theta <- stats::coef(x)
  data.frame(term = names(theta), estimate = unname(theta))
}

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::glance
glance.gp_fit <- function(x, ...) {
  check_dots_empty(list(...), "x")
  data.frame(method = x$method, nobs = stats::nobs(x),
             m = if (is.null(x$m)) NA_integer_ else x$m, df = x$df, sigma = stats::sigma(x),
             elbo = x$elbo, AIC = stats::AIC(x), BIC = stats::BIC(x), objective = x$objective,
             convergence = x$convergence, evaluations = sum(x$evaluations),
             seconds = sum(x$seconds))
}

#' @rdname gp_fit-tidiers
#' @exportS3Method generics::augment
augment.gp_fit <- function(x, data = stats::model.frame(x), newdata = NULL, se_fit = TRUE,
                           interval = c("none", "credible", "prediction"), conf.level = 0.95, ...) {
  check_dots_empty(list(...), names(formals(augment.gp_fit)))
  interval <- check_choice(interval, c("none", "credible", "prediction"), "interval")
  p <- stats::predict(x, newdata, se.fit = TRUE, interval = interval, level = conf.level)
  fit <- if (interval == "none") cbind(fit = p$fit) else p$fit
  out <- as.data.frame(if (is.null(newdata)) data else newdata)
  attr(out, "terms") <- attr(out, "na.action") <- NULL
  rows <- seq_len(nrow(fit))
  # the model frame is without the rows that na.exclude pads
  if (inherits(x$na.action, "exclude") && is.null(newdata) &&
      nrow(out) == nrow(fit) - length(x$na.action)) rows <- rows[-x$na.action]
  if (nrow(out) != length(rows)) {
    abort_input("data", sprintf("of %d rows", nrow(out)),
                sprintf("the training rows, of which there are %d", length(rows)))
  }
  fit <- fit[rows, , drop = FALSE]
  out$.fitted <- unname(fit[, "fit"])
  if (check_flag(se_fit, "se_fit")) out$.se.fit <- unname(p$se.fit[rows])
  if (interval != "none") {
    out$.lower <- unname(fit[, "lwr"])
    out$.upper <- unname(fit[, "upr"])
  }
  if (is.null(newdata)) out$.resid <- unname(stats::residuals(x)[rows])
  out
}

#' @rdname gp_fit-tidiers
#' @exportS3Method ggplot2::autoplot
autoplot.gp_fit <- function(object, inputs = NULL, at = NULL, level = 0.95,
                            interval = c("both", "credible", "prediction"), n = 200,
                            points = TRUE, ...) {
  check_dots_empty(list(...), names(formals(autoplot.gp_fit)))
  interval <- check_choice(interval, c("both", "credible", "prediction"), "interval")
  s <- slices(object, inputs, at, level, n, check_flag(points, "points"))
  names <- vapply(s$variables, `[[`, "", "name")
  for (part in c("curves", "points", "inducing")) {
    if (!is.null(s[[part]])) s[[part]]$input <- factor(s[[part]]$input, names)
  }
  lines <- s$curves[is.na(s$curves$label), ]
  levels <- s$curves[!is.na(s$curves$label), ]
  ggplot_slices(s, lines, levels, interval) +
    ggplot2::labs(x = if (length(names) == 1L) names, y = response_name(object)) +
    ggplot2::theme_bw()
}

ggplot_slices <- function(s, lines, levels, interval) {
  value <- lwr <- upr <- lwr_y <- upr_y <- fit <- y <- label <- NULL     # columns, for R CMD check
  aes <- ggplot2::aes
  blue <- plot_colours[["mean"]]
  g <- ggplot2::ggplot()
  if (interval != "prediction") {
    g <- g +
      ggplot2::geom_ribbon(aes(value, ymin = lwr, ymax = upr), lines, fill = blue, alpha = 0.3) +
      ggplot2::geom_crossbar(aes(value, fit, ymin = lwr, ymax = upr), levels, width = 0.6,
                             colour = NA, fill = blue, alpha = 0.3)
  }
  if (interval != "credible") {
    g <- g + ggplot2::geom_line(aes(value, lwr_y), lines, colour = blue, linetype = 2) +
      ggplot2::geom_line(aes(value, upr_y), lines, colour = blue, linetype = 2) +
      ggplot2::geom_errorbar(aes(value, ymin = lwr_y, ymax = upr_y), levels, width = 0.6,
                             colour = blue, linetype = 2)
  }
  if (!is.null(s$points)) {
    at <- s$points
    at$value <- ifelse(at$input %in% levels$input, spread(at$value), at$value)
    g <- g + ggplot2::geom_point(aes(value, y), at, size = 0.7, colour = data_colour(nrow(at)),
                                 na.rm = TRUE)
  }
  g <- g + ggplot2::geom_line(aes(value, fit), lines, colour = blue) +
    ggplot2::geom_point(aes(value, fit), levels, colour = blue, size = 2) +
    ggplot2::geom_text(aes(value, -Inf, label = label), levels, vjust = -0.4, size = 3)
  if (!is.null(s$inducing)) {
    g <- g + ggplot2::geom_rug(aes(value), s$inducing, sides = "b",
                               colour = plot_colours[["inducing"]])
  }
  if (length(s$variables) > 1L) g <- g + ggplot2::facet_wrap("input", scales = "free_x")
  g
}
