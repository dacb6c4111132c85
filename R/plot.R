# Figures in base graphics: a few lines of drawing over data frames (slices.R, the trace).

#' Plot a Gaussian process fit
#'
#' With one input: the data, the posterior mean, bands and the inducing points, as in Figure 2 of
#' Huggins et al. (2019). With more: a slice a variable, through the middle of the data; the other
#' variables are held at their medians (factors and logicals at the most frequent value) and the
#' points are partial residuals, the mean along the slice plus the residual of the row.
#'
#' Shaded is the credible band of f; dashed lines bound the prediction band of a new response. Ticks
#' along the bottom are the inducing points (in slices: their coordinate on that input). Offsets are
#' left out.
#'
#' @param x A fit.
#' @param inputs Names or numbers of the variables to show, a panel each. By default all, or, of
#'   more than nine, the nine over whose range f may vary most (range divided by lengthscale).
#' @param at One row of inputs, in any form that [predict()][predict.gp_fit] takes as `newdata`, for
#'   the slices to go through in place of the medians.
#' @param level Probability of the bands.
#' @param interval Bands to draw.
#' @param n Points along each numeric input.
#' @param points Should the data be drawn? At most 2,000 rows are, evenly spaced in their order. A
#'   fit made with `keep_data = FALSE` has none: it knows only the least, median and greatest value
#'   of each input.
#' @param ... Passed on to [plot.default()], e.g. `main`, `xlab`, `ylab`, `xlim`, `ylim`, `las`.
#' @return The plotted curves, invisibly: a data frame with columns `input`, `value` (for factors
#'   the level's number), `label` (the level, or `NA`), `fit`, `se.fit` (sd of f), `lwr`, `upr`
#'   (credible), `lwr_y`, `upr_y` (prediction), in units of the data.
#' @section Invariants:
#' * `fit`, `se.fit` and the bands are what [predict()][predict.gp_fit] gives at the same inputs
#'   (and no offset).
#' * `par()` is as it was before.
#' @inherit predict.gp_fit source
#' @seealso [plot_trace()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 10)
#' plot(fit)
#' slices <- pfdtc(mpg ~ wt + hp + factor(cyl), mtcars, m = 15)
#' plot(slices)
#' plot(slices, inputs = "wt", at = data.frame(wt = 3, hp = 200, cyl = 8))
#' @export
plot.gp_fit <- function(x, inputs = NULL, at = NULL, level = 0.95,
                        interval = c("both", "credible", "prediction"), n = 200, points = TRUE,
                        ...) {
  interval <- check_choice(interval, c("both", "credible", "prediction"), "interval")
  s <- slices(x, inputs, at, level, n, check_flag(points, "points"))
  args <- list(...)
  if (is.null(args$ylim)) args$ylim <- slice_range(s, interval)
  if (is.null(args$ylab)) args$ylab <- response_name(x)
  k <- length(s$variables)
  if (k > 1L) {
    old <- graphics::par(no.readonly = TRUE)
    on.exit(graphics::par(old))
    graphics::par(mfrow = grDevices::n2mfrow(k), mar = c(3.5, 3.5, 0.5, 1), oma = c(0, 0, 2.5, 0),
                  mgp = c(2.2, 0.7, 0))
    graphics::par(cex = 0.85)     # mfrow makes text too small to read at the width of a page
  }
  for (v in s$variables) {
    draw_slice(v, rows_of(s$curves, v), rows_of(s$points, v), rows_of(s$inducing, v), interval,
               args)
    if (k == 1L) draw_legend(level, interval, s)
  }
  if (k > 1L) draw_legend(level, interval, s, outer = TRUE)
  invisible(s$curves)
}

# An empty panel for a curve; its pieces: the curve, or a block for each level.
open_slice <- function(v, curve, args) {
  blocks <- nrow(curve) == 1L || !is.null(v$labels)
  pieces <- if (blocks) lapply(seq_len(nrow(curve)), function(i) widen(curve[i, ])) else list(curve)
  if (is.null(args$xlab)) args$xlab <- v$name
  if (is.null(args$xlim)) args$xlim <- range(curve$value) + if (blocks) c(-0.5, 0.5) else 0
  if (!is.null(v$labels)) args$xaxt <- "n"
  do.call(graphics::plot.default, c(list(x = curve$value, y = curve$fit, type = "n"), args))
  if (!is.null(v$labels)) graphics::axis(1, curve$value, curve$label)
  pieces
}

# One panel: bands first, then data, mean and inducing points.
draw_slice <- function(v, curve, points, inducing, interval, args) {
  pieces <- open_slice(v, curve, args)

  for (p in pieces) draw_bands(p, interval)
  draw_data(points)
  for (p in pieces) graphics::lines(p$value, p$fit, lwd = 2, col = plot_colours["mean"])
  draw_marks(inducing$value)
}

# A single value as a line short enough to stay away from its neighbours.
widen <- function(p) {
  p <- p[c(1L, 1L), ]
  p$value <- p$value + c(-0.3, 0.3)
  p
}

draw_bands <- function(p, interval) {
  if (interval != "prediction") {
    graphics::polygon(c(p$value, rev(p$value)), c(p$lwr, rev(p$upr)), border = NA,
                      col = band_colour())
  }
  if (interval != "credible") {
    graphics::matlines(p$value, cbind(p$lwr_y, p$upr_y), lty = 2, col = plot_colours["mean"])
  }
}

# Above the panel, or above all of them.
draw_legend <- function(level, interval, s, outer = FALSE) {
  percent <- paste(format(100 * level), "%")
  keys <- data.frame(
    text = c("data", "mean", paste(percent, c("credible (f)", "prediction (y)")),
             "inducing points"),
    col = c(plot_colours["data"], plot_colours["mean"], band_colour(), plot_colours["mean"],
            plot_colours["inducing"]),
    lty = c(NA, 1, NA, 2, NA), lwd = c(NA, 2, NA, 1, NA), pch = c(16, NA, 15, NA, 124),
    size = c(0.6, 1, 2, 1, 0.8))
  keys <- keys[c(!is.null(s$points), TRUE, interval != "prediction", interval != "credible",
                 !is.null(s$inducing)), ]
  if (outer) {
    graphics::par(fig = c(0, 1, 0, 1), oma = rep(0, 4), mar = rep(0, 4), cex = 1, new = TRUE)
    graphics::plot.new()
    at <- list(x = "top")
  } else {
    at <- above_panel()
  }
  draw_keys(at, outer, list(
    legend = paste0(keys$text, "  "), col = keys$col, lty = keys$lty, lwd = keys$lwd,
    pch = keys$pch, pt.cex = keys$size, horiz = TRUE, bty = "n", xpd = NA, seg.len = 1.5, text.width = NA,
    x.intersp = 0.7))
}
