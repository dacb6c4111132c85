# Figures in base graphics: a few lines of drawing over data frames (slices.R, the trace).

#' Plot a Gaussian process fit
#'
#' What was learned, along each input or as a map over two; or, by `which`, how well it predicts.
#'
#' **`"slices"`**, with one input: the data, the posterior mean, bands and the inducing points, as in Figure 2 of
#' Huggins et al. (2019). With more: a slice a variable, through the middle of the data; the other
#' variables are held at their medians (factors and logicals at the most frequent value) and the
#' points are partial residuals, the mean along the slice plus the residual of the row. Shaded is the credible band of
#' f; dashed lines bound the prediction band of a new response. Where `xlim` goes beyond the data, the mean is dotted
#' and the band paler. Ticks along the bottom are the inducing points (in slices: their coordinate on that input).
#' Offsets are left out. Of classes and counts (`family`) the curve is the averaged probability or rate with its
#' credible band, and points are shares of successes as they are, or rates (count over exposure times what the slice has
#' over what the fit has at the row); with `type = "link"` it is f on the link's scale, without points.
#'
#' **`"map"`**: mean and standard deviation of f over two numeric inputs (`inputs`, or the two over whose range f may
#' vary most), the others held as in slices, with the rows as points. The mean is left blank where its standard
#' deviation is above 0.7 of the greatest that there can be, that of the prior: there the data say next to nothing.
#'
#' **Checks**, of each row given the other rows ([leave_one_out], no refitting). One name a panel, or `"checks"` for all
#' of them; a model that holds looks as said here. Of classes and counts normal quantiles of the randomised PIT (Dunn
#' and Smyth 1996), drawn from R's random numbers, are in the place of [rstandard()].
#' * `"residuals"`: [rstandard()] against the mean; 19 of 20 between the dashed lines, no trend, no funnel.
#' * `"qq"`: quantiles of [rstandard()] against those of the normal distribution; along the line. Tails that bend away
#'   mean that normal prediction intervals are wrong there: `predict(interval = "conformal")`.
#' * `"pit"`: histogram of `residuals(type = "pit")`; level, within the band that 95 % of heights are in. High in the
#'   middle: intervals are too wide; high at both ends: too narrow.
#' * `"observed"`: response against mean, scattered about the line.
#' * `"semivariogram"`: half the mean squared difference of [rstandard()] between rows, by their distance in
#'   lengthscales (numeric inputs, at most 1,000 rows), in twelve classes of equally many pairs up to the median
#'   distance; level about the dashed line. Rising from low values at the left: neighbours share what the model has
#'   not explained.
#'
#' @param x A fit.
#' @param inputs Names or numbers of the variables to show, a panel each. By default all, or, of
#'   more than nine, the nine over whose range f may vary most (range divided by lengthscale). Of a map, two.
#' @param at One row of inputs, in any form that [predict()][predict.gp_fit] takes as `newdata`, for
#'   the slices to go through in place of the medians.
#' @param level Probability of the bands.
#' @param interval Bands to draw; of classes and counts, and beside `terms`, it is the credible one.
#' @param n Points along each numeric input.
#' @param points Should the data be drawn? At most 2,000 rows are, evenly spaced in their order. A
#'   fit made with `keep_data = FALSE` has none: it knows only the least, median and greatest value
#'   of each input.
#' @param which `"slices"`, `"map"`, or some of the checks. For fits with classes or counts also `"calibration"`: of
#'   classes the share of successes against the probability that leave-one-out predicts, in ten classes of rows, with
#'   the 95 % that chance allows; of counts and numbers a histogram of `residuals(fit, type = "pit")`.
#' @param scales `"own"`: each panel's vertical axis has the range of what is in it, in place of one for all.
#' @param certified Are the bands those of `predict(certified = TRUE)`, which contain the exact process's?
#' @param xlim Range of the horizontal axis, which the curve is drawn over; of several numeric inputs that of all, or a
#'   list of ranges by their names.
#' @param terms `TRUE`: of a kernel that is a sum ([kernel_algebra]) a panel for each term and variable that it reads:
#'   the term's own function along it ([predict()][predict.gp_fit] with `type = "terms"`), its credible band, and as
#'   points partial residuals, the term at each row plus the row's residual. Of classes and counts on the link's scale,
#'   without points.
#' @param type of fits with classes or counts: slices and maps of `"response"`, the averaged probability or rate, or
#'   `"link"`, of f. With Gaussian noise they are the same.
#' @param ... Passed on to [plot.default()], e.g. `main`, `xlab`, `ylab`, `ylim`, `las`; of a map to [image()].
#' @return What is drawn, invisibly, in units of the data.
#' * Slices: a data frame with columns `input`, `value` (for factors
#'   the level's number), `label` (the level, or `NA`), `fit`, `se.fit` (sd of f), `lwr`, `upr`
#'   (credible), `lwr_y`, `upr_y` (prediction) and `outside` (beyond the data on that input).
#' * A map: a data frame of the two inputs, `fit` and `se.fit`.
#' * A check: a data frame, of several a list of them by name: `mean` and `rstandard`; `normal` and `rstandard`;
#'   `pit`; `mean` and `observed`; `distance`, `semivariance` and `pairs`.
#' @section Invariants:
#' * `fit`, `se.fit` and the bands are what [predict()][predict.gp_fit] gives at the same inputs
#'   (and no offset).
#' * `par()` is as it was before.
#' @section Errors: class `pfdtc_error_input` for unknown variables or names of checks, and where checks are asked of a
#'   fit without its data.
#' @inherit predict.gp_fit source
#' @seealso [plot_trace()], [plot_certificate()]; [cross_validate()] for numbers.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 10)
#' plot(fit)
#' slices <- pfdtc(mpg ~ wt + hp + factor(cyl), mtcars, m = 15)
#' plot(slices)
#' plot(slices, inputs = "wt", at = data.frame(wt = 3, hp = 200, cyl = 8))
#' plot(slices, which = "checks")
#' sum <- gp_exact(mpg ~ wt + hp, mtcars, kernel = kernel_se(inputs = ~ wt) + kernel_se(inputs = ~ hp))
#' plot(sum, terms = TRUE)
#' plot(slices, which = "map", inputs = c("wt", "hp"))
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
  if (is.null(n)) n <- 200L
  if (check_flag(terms, "terms")) type <- "link"
  s <- if (terms) term_slices(x, inputs, at, level, n, points) else
    slices(x, inputs, at, level, n, points, certified, xlim, type)
  if (terms || !response_of(x)$conjugate) interval <- "credible" # terms have no noise of their own
  slices_figure(s, level, interval, scales == "own", certified, slice_label(x, type))
}

slices_figure <- function(s, level, interval, own, certified, label) {
  range <- slice_range(s, interval)
  panels <- lapply(s$variables, function(v) {
    here <- lapply(s[c("curves", "points", "inducing")], rows_of, v)
    args <- list(ylim = if (own) slice_range(here, interval) else range, ylab = label)
    slice_panel(v, here$curves, args, function(pieces) {
      c(unlist(lapply(pieces, band_layers, interval), FALSE), data_layer(here$points),
        unlist(lapply(pieces, mean_layer), FALSE), tick_layer(here$inducing$value))
    })
  })
  band <- paste0(format(100 * level), " % ", if (certified) "certified ")
  keys <- legend_keys(
    c("data", "mean", "beyond the data", paste0(band, c("credible (f)", "prediction (y)")), "inducing points"),
    c(plot_colours[c("data", "mean", "mean")], band_colour(), plot_colours[c("mean", "inducing")]),
    c(NA, 1, 3, NA, 2, NA), c(NA, 2, 2, NA, 1, NA), c(16, NA, NA, 15, NA, 124), c(0.6, 1, 1, 2, 1, 0.8))
  keys <- keys[c(!is.null(s$points), TRUE, any(s$curves$outside), interval != "prediction", interval != "credible",
                 !is.null(s$inducing)), ]
  k <- length(panels)
  figure(panels, s$curves, keys, cex = if (k > 1L) 0.85, par = if (k > 1L) {
    list(mfrow = grDevices::n2mfrow(k), mar = c(3.5, 3.5, 0.5, 1), oma = c(0, 0, 2.5, 0), mgp = c(2.2, 0.7, 0))
  })
}

# The panel of a curve along a variable; `layers(pieces)`: of the curve's pieces, a block for each level or value alone.
slice_panel <- function(v, curve, args, layers) {
  blocks <- nrow(curve) == 1L || !is.null(v$labels)
  pieces <- if (blocks) lapply(seq_len(nrow(curve)), function(i) widen(curve[i, ])) else pieces_of(curve)
  list(args = c(list(xlab = v$name, xlim = range(curve$value) + if (blocks) c(-0.5, 0.5) else 0), args),
       levels = if (!is.null(v$labels)) curve$label, blocks = blocks, layers = layers(pieces))
}

# Runs of a curve over the data and beyond, each up to where the next begins.
pieces_of <- function(curve) {
  if (is.null(curve$outside) || !any(curve$outside)) return(list(curve))
  runs <- rle(curve$outside)$lengths
  ends <- cumsum(runs)
  Map(function(from, to, outside) {
    piece <- curve[from:to, ]
    piece$outside <- outside
    piece
  }, pmax(1, ends - runs + !curve$outside[ends]), pmin(nrow(curve), ends + curve$outside[ends]), curve$outside[ends])
}

# A single value as a line short enough to stay away from its neighbours.
widen <- function(p) {
  p <- p[c(1L, 1L), ]
  p$value <- p$value + c(-0.3, 0.3)
  p
}

band_layers <- function(p, interval) {
  dashed <- function(y) layer("line", p$value, y, lty = 2, col = plot_colours["mean"])
  c(if (interval != "prediction") {
    layer("band", p$value, p$lwr, y1 = p$upr, col = band_colour(if (p$outside[1L]) 0.15 else 0.3))
  }, if (interval != "credible") c(dashed(p$lwr_y), dashed(p$upr_y)))
}

mean_layer <- function(p) {
  layer("line", p$value, p$fit, lwd = 2, lty = if (isTRUE(p$outside[1L])) 3 else 1, col = plot_colours["mean"])
}
