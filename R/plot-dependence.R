# The figure of partial_dependence().

#' @rdname partial_dependence
#' @param x,object A result of `partial_dependence()`.
#' @export
plot.pfdtc_dependence <- function(x, ...) draw_figure(dependence_figure(x), list(...))

#' @rdname partial_dependence
#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_dependence <- function(object, ...) {
  check_dots_empty(list(...), "object")
  ggplot_figure(dependence_figure(object))
}

# Draws the average with two of its sds, and where it is certified the interval of the exact average.
dependence_figure <- function(d) {
  at <- d[[1L]]
  labels <- if (!is.numeric(at)) as.character(at)
  certified <- !is.null(d$mean_lower) && !anyNA(d$mean_lower)
  curve <- data.frame(input = names(d)[1L], value = if (is.null(labels)) at else seq_along(at),
                      label = if (is.null(labels)) NA_character_ else labels, fit = d$mean, lwr = d$mean - 2 * d$sd,
                      upr = d$mean + 2 * d$sd, outside = FALSE)
  if (certified) curve[c("mean_lower", "mean_upper")] <- d[c("mean_lower", "mean_upper")]
  curve <- curve[order(curve$value), ]
  range <- range(curve$lwr, curve$upr, finite = TRUE)
  far <- range + c(-1, 1) * diff(range)
  layers <- function(pieces) {
    unlist(lapply(pieces, function(p) {
      c(layer("band", p$value, p$lwr, y1 = p$upr, col = band_colour()),
        if (certified) c(layer("line", p$value, pmax(p$mean_lower, far[1L]), lwd = 3.5, col = certified_colour),
                         layer("line", p$value, pmin(p$mean_upper, far[2L]), lwd = 3.5, col = certified_colour)),
        mean_layer(p))
    }), FALSE)
  }
  args <- list(ylab = attr(d, "label"), ylim = range)
  panel <- slice_panel(list(name = names(d)[1L], labels = labels), curve, args, layers)
  keys <- legend_keys(c("average", "\u00b1 2 sd", "certified: exact average"),
                      c(plot_colours["mean"], band_colour(), certified_colour), c(1, NA, 1), c(2, NA, 3.5),
                      c(NA, 15, NA), c(1, 2, 1))
  figure(list(panel), d, keys[c(TRUE, TRUE, certified), ])
}
