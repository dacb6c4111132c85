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
#'   classes: counts of rows by class and by most probable class according to the other rows. With several classes,
#'   slices show the probability of each class.
#' * `"choices"`: how far each transform, noise model and kernel is behind the one chosen.
#' * `"groups"`: the effects of the levels of grouped terms, in the order of their estimates, with credible intervals.
#'   Slices and maps are for the population, without these effects. Prediction bands are for a response of a new level.
#'
#' @param x A fit.
#' @param inputs Names or numbers of variables. Default: the nine along which f may vary most.
#' @param at One row of inputs for the slices to go through. Default: medians and most frequent levels.
#' @param level,interval Probability of the bands, and which to draw (only credible ones for non-Gaussian likelihoods).
#' @param n,points Number of points along each numeric input (default: 200, or enough for short lengthscales; 100 for a
#'   map); should the data be drawn (at most 2,000 rows)?
#' @param which,scales What to draw, see Details; `"own"` gives each panel its own vertical axis.
#' @param certified Should the bands contain those of the exact GP ([certify()])?
#' @param xlim Range of the horizontal axis, or a list by the names of inputs. Beyond the data the mean is dotted.
#' @param terms Should each term of a sum of kernels have its panels?
#' @param type For a non-Gaussian likelihood, `"response"` (mean response) or `"link"` (f).
#' @param ... Arguments of [plot.default()]; for a map also `useRaster` and `zlim` of [image()].
#' @return Invisibly, the data of the figure without offsets: for slices `input`, `value`, `label` (level), `fit`,
#'   `se.fit`, `lwr`, `upr` (credible), `lwr_y`, `upr_y` (prediction) and `outside` (beyond the data), as in
#'   [predict()][predict.gp_fit]; for a map the inputs, `fit` and `se.fit`; for checks a data frame or a list of them.
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
  draw_figure(figure_of_fit(x, as.list(environment())), list(...))
}

#' @rdname gp_fit-tidiers
#' @exportS3Method ggplot2::autoplot
autoplot.gp_fit <- function(object, inputs = NULL, at = NULL, level = 0.95,
                            interval = c("both", "credible", "prediction"), n = NULL, points = TRUE, which = "slices",
                            scales = c("common", "own"), certified = FALSE, xlim = NULL, terms = FALSE,
                            type = c("response", "link"), ...) {
  check_dots_empty(list(...), names(formals(autoplot.gp_fit)))
  ggplot_figure(figure_of_fit(object, as.list(environment())))
}

# Returns a figure of a fit. `ask` has the arguments of plot().
figure_of_fit <- function(fit, ask) {
  fit <- check_any_fit(fit, "x")
  interval <- check_choice(ask$interval, c("both", "credible", "prediction"), "interval")
  scales <- check_choice(ask$scales, c("common", "own"), "scales")
  points <- check_flag(ask$points, "points")
  certified <- check_flag(ask$certified, "certified")
  terms <- check_flag(ask$terms, "terms")
  type <- check_choice(ask$type, c("response", "link"), "type")
  if (terms) type <- "link"
  n <- if (!is.null(ask$n)) check_count(ask$n, "n", min = 2)
  which <- check_which(ask$which)
  labels <- has_labels(response_of(fit))
  plain <- !certified && type == "response"
  if (labels && (which[1L] %in% c("map", "checks", checks_drawn) || which[1L] == "slices" && !plain)) {
    abort_input("which", "another figure with several classes",
                list_quoted(setdiff(figures_drawn, c("map", "checks")), "\""), hint =
                  "Slices show probabilities: type = \"response\", without `terms` and `certified`.")
  }
  switch(
    which[1L],
    slices = if (labels) {
      classes_figure(fit, ask$inputs, ask$at, n, ask$xlim)
    } else {
      s <- slices(fit, ask$inputs, ask$at, ask$level, n, points, certified, ask$xlim, type, terms)
      if (all(is.na(s$curves$lwr_y))) interval <- "credible"
      slices_figure(s, ask$level, interval, scales == "own", certified, slice_label(fit, type))
    },
    map = map_figure(map_table(fit, ask$inputs, ask$at, n, points, type)),
    calibration = if (labels || is_ordered(response_of(fit))) class_calibration_figure(fit) else
      calibration_figure(fit),
    confusion = confusion_figure(fit), choices = choices_figure(fit), groups = groups_figure(fit, ask$level),
    checks_figure(fit, which))
}
