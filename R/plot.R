#' Plot a Gaussian process fit
#'
#' Draws the function along each input, as a map over two inputs, or checks of the model. Use it to see what was
#' learned and whether the model holds.
#'
#' * `"slices"`: data, posterior mean and bands along each input. With several inputs the others are held at their
#'   medians (factors at the most frequent level), and the points are partial residuals: the mean along the slice plus
#'   the residual of the row. A line below the figure has the held values and how many panels are left out.
#' * `"map"`: mean and sd of f over two numeric inputs, the others held. The mean is blank where its sd is above 0.7
#'   times the prior sd, because the data have little information there. Longitude is horizontal, and coordinates have
#'   equal scales.
#' * `"checks"`, or the names of some checks. All use leave-one-out predictions ([leave_one_out]):
#'   `"residuals"` ([rstandard()] against the mean: no trend, no funnel), `"qq"` (along the line),
#'   `"pit"` (histogram of `residuals(type = "pit")`: level), `"observed"` (along the line) and `"semivariogram"` (half
#'   the mean squared difference of residuals by distance in lengthscales: level).
#' * `"calibration"`, for a non-Gaussian likelihood: share of successes against predicted probability in ten groups,
#'   with the 95 % that chance allows; for counts and numbers the PIT histogram.
#'
#' Shaded is the credible band of f, dashed the prediction band of a new response. Beyond the data the mean is dotted.
#' Ticks mark inducing points. With a non-Gaussian likelihood residuals are normal quantiles of the randomised PIT.
#'
#' @param x A fit.
#' @param inputs Names or numbers of the variables to show. Default: the nine over whose range f may vary most.
#' @param at One row of inputs for the slices to go through, in any form that [predict()][predict.gp_fit] takes.
#' @param level Probability of the bands.
#' @param interval Bands to draw. Non-Gaussian likelihoods and terms have the credible band only.
#' @param n Number of points along each numeric input. Default: 200, or 12 for each shortest lengthscale or period, at
#'   most 2,000; 100 for a map.
#' @param points Should the data be drawn (at most 2,000 rows)?
#' @param which `"slices"`, `"map"`, `"checks"`, `"calibration"`, or names of checks.
#' @param scales `"own"` gives each panel its own vertical axis.
#' @param certified Should the bands contain those of the exact GP, as `predict(certified = TRUE)`?
#' @param xlim Range of the horizontal axis, or a list of ranges by the names of inputs.
#' @param terms Should each term of a sum of kernels have its panels ([kernel_algebra])?
#' @param type For a non-Gaussian likelihood, `"response"` (mean response) or `"link"` (f).
#' @param ... Arguments of [plot.default()]; for a map of [image()].
#' @return Invisibly, the data of the figure in units of the response, without offsets.
#' * Slices: columns `input`, `value`, `label` (level), `fit`, `se.fit`, `lwr`, `upr` (credible), `lwr_y`, `upr_y`
#'   (prediction) and `outside` (beyond the data).
#' * Map: the two inputs, `fit` and `se.fit`.
#' * Checks: a data frame, or a list of data frames by name.
#' @section Errors: class `pfdtc_error_input` for unknown variables and for checks of a fit without its data.
#' @section Invariants: `fit`, `se.fit` and the bands are those of [predict()][predict.gp_fit]. `par()` is as before.
#' @inherit predict.gp_fit source
#' @seealso [plot_certificate()], [plot_trace()], [partial_dependence()], [cross_validate()]
#' @examples
#' fit <- pfdtc(mpg ~ wt + hp + factor(cyl), mtcars, m = 15)
#' plot(fit)
#' plot(fit, inputs = "wt", at = data.frame(wt = 3, hp = 200, cyl = 8))
#' plot(fit, which = "checks")
#' plot(fit, which = "map", inputs = c("wt", "hp"))
#' sum <- gp_exact(mpg ~ wt + hp, mtcars, kernel = kernel_se(inputs = ~ wt) + kernel_se(inputs = ~ hp))
#' plot(sum, terms = TRUE)
#' @export
plot.gp_fit <- function(x, inputs = NULL, at = NULL, level = 0.95,
                        interval = c("both", "credible", "prediction"), n = NULL, points = TRUE,
                        which = "slices", scales = c("common", "own"), certified = FALSE, xlim = NULL, terms = FALSE,
                        type = c("response", "link"), ...) {
  f <- figure_of_fit(x, inputs, at, level, interval, n, points, which, scales, certified, xlim, terms, type)
  invisible(if (is.null(f$map)) draw_figure(f, list(...)) else draw_map(f, list(...)))
}

#' @rdname gp_fit-tidiers
#' @exportS3Method ggplot2::autoplot
autoplot.gp_fit <- function(object, inputs = NULL, at = NULL, level = 0.95,
                            interval = c("both", "credible", "prediction"), n = NULL, points = TRUE, which = "slices",
                            scales = c("common", "own"), certified = FALSE, xlim = NULL, terms = FALSE,
                            type = c("response", "link"), ...) {
  check_dots_empty(list(...), names(formals(autoplot.gp_fit)))
  f <- figure_of_fit(object, inputs, at, level, interval, n, points, which, scales, certified, xlim, terms, type)
  if (is.null(f$map)) ggplot_figure(f) else ggplot_map(f)
}

figure_of_fit <- function(x, inputs, at, level, interval, n, points, which, scales, certified, xlim, terms, type) {
  interval <- check_choice(interval, c("both", "credible", "prediction"), "interval")
  scales <- check_choice(scales, c("common", "own"), "scales")
  points <- check_flag(points, "points")
  certified <- check_flag(certified, "certified")
  type <- check_choice(type, c("response", "link"), "type")
  if (identical(which, "calibration")) return(calibration_figure(x))
  which <- check_which(which)
  if (identical(which, "map")) return(map_table(check_any_fit(x, "x"), inputs, at, n, points, type))
  if (!identical(which, "slices")) return(checks_figure(x, which))
  terms <- check_flag(terms, "terms")
  if (terms) type <- "link"
  s <- if (terms) term_slices(x, inputs, at, level, n, points) else
    slices(x, inputs, at, level, n, points, certified, xlim, type)
  if (all(is.na(s$curves$lwr_y))) interval <- "credible"
  slices_figure(s, level, interval, scales == "own", certified, slice_label(x, type))
}
