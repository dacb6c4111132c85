#' Plot a Gaussian process fit
#'
#' Draws the function along each input, as a map over two inputs, or checks of the model.
#'
#' * `"slices"`: data, mean, credible band of f (shaded) and prediction band of a new response (dashed) along each
#'   input. Ticks mark inducing points. With several inputs the others are held at the values below the figure, and the
#'   points are partial residuals: the mean along the slice plus the residual of the row.
#' * `"map"`: mean and sd of f over two numeric inputs. The mean is blank where its sd is above 0.7 times the prior sd.
#' * `"checks"`, or some of `"residuals"`, `"qq"`, `"pit"`, `"observed"`, `"semivariogram"`: leave-one-out predictions
#'   against what the model expects, see `vignette("pfdtc")`. `"calibration"`, for a non-Gaussian likelihood: shares of
#'   successes (or of each class) against predicted probabilities, or the PIT histogram. `"confusion"`, for several
#'   classes: the table of classes and of the most probable classes. Slices then show the probability of each class.
#' * `"choices"`: how far each transform, noise model and kernel is behind the one chosen.
#' * `"groups"`: the effects of the levels of grouped terms, in the order of their estimates, with credible intervals.
#'   Slices and maps are for the population, without these effects.
#'
#' @param x A fit.
#' @param inputs Names or numbers of variables. Default: the nine along which f may vary most.
#' @param at One row of inputs for the slices to go through. Default: medians and most frequent levels.
#' @param level,interval Probability of the bands, and which to draw (only credible ones for non-Gaussian likelihoods).
#' @param n Number of points along each numeric input. Default: 200, or enough for short lengthscales; 100 for a map.
#' @param points Should the data be drawn (at most 2,000 rows)?
#' @param which What to draw, see Details.
#' @param scales `"own"` gives each panel its own vertical axis.
#' @param certified Should the bands contain those of the exact GP ([certify()])?
#' @param xlim Range of the horizontal axis, or a list by the names of inputs. Beyond the data the mean is dotted.
#' @param terms Should each term of a sum of kernels have its panels?
#' @param type For a non-Gaussian likelihood, `"response"` (mean response) or `"link"` (f).
#' @param ... Arguments of [plot.default()]; for a map of [image()].
#' @return Invisibly, the data of the figure without offsets: for slices `input`, `value`, `label` (level), `fit`,
#'   `se.fit`, `lwr`, `upr` (credible), `lwr_y`, `upr_y` (prediction) and `outside` (beyond the data), as in
#'   [predict()][predict.gp_fit]; for a map the inputs, `fit` and `se.fit`; for checks a data frame or a list of them.
#' @section Invariants: `par()` is kept.
#' @seealso [plot_certificate()], [plot_trace()], [partial_dependence()], [cross_validate()]
#' @examples
#' fit <- pfdtc(mpg ~ wt + hp + cyl, mtcars, m = 15)
#' plot(fit, inputs = "wt", at = data.frame(wt = 3, hp = 200, cyl = 8))
#' plot(fit, which = "map", inputs = c("wt", "hp"))
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
  labels <- inherits(x, "gp_fit") && has_labels(response_of(x))
  if (identical(which, "calibration")) {
    several <- labels || inherits(x, "gp_fit") && is_ordered(response_of(x))
    return(if (several) class_calibration_figure(x) else calibration_figure(x))
  }
  if (identical(which, "confusion")) return(confusion_figure(x))
  if (identical(which, "choices")) return(choices_figure(x))
  if (identical(which, "groups")) return(groups_figure(x, level))
  which <- check_which(which)
  if (labels) {
    if (identical(which, "slices") && !terms && !certified && type == "response") {
      return(classes_figure(check_any_fit(x, "x"), inputs, at, if (!is.null(n)) check_count(n, "n", min = 2), xlim))
    }
    abort_input("which", "another figure with several classes", "\"slices\", \"calibration\" or \"confusion\"",
                hint = "Slices show probabilities: type = \"response\", without `terms` and `certified`.")
  }
  if (identical(which, "map")) return(map_table(check_any_fit(x, "x"), inputs, at, n, points, type))
  if (!identical(which, "slices")) return(checks_figure(x, which))
  terms <- check_flag(terms, "terms")
  if (terms) type <- "link"
  s <- slices(x, inputs, at, level, n, points, certified, xlim, type, terms)
  if (all(is.na(s$curves$lwr_y))) interval <- "credible"
  slices_figure(s, level, interval, scales == "own", certified, slice_label(x, type))
}
