#' Plot fits beside the exact Gaussian process
#'
#' Several fits on one page, a panel each, as in Figure 2 of Huggins et al. (2019): data in black; mean of the exact
#' posterior and plus and minus two standard deviations of f in blue; those of the fit, and its inducing points, in
#' red. Where a fit is as good as exact its lines lie on the blue ones.
#'
#' With one input the curves run over its range. With more there are two pictures: a slice along one input, the others
#' held as in [plot.gp_fit()] (the points are partial residuals of the exact fit, or of the first one); or, where
#' `newdata` is given, errors row by row: the fit's mean less the exact one against the exact mean, with the bands of
#' both around them.
#'
#' @param fits a fit or a list of fits, whose names become the titles. Of classes and counts it is f that is drawn,
#'   without points; all of them or none.
#' @param exact a [gp_exact()] fit of the same data and hyperparameters, or `NULL` for none.
#' @param newdata rows to evaluate at, in any form that [predict()][predict.gp_fit] takes. With one input, its
#'   different values in place of `n` points over the range; with several, the rows whose errors are drawn (at most
#'   300, evenly spaced in order).
#' @param input with several inputs, name or number of the one to slice along. `NULL`: that over whose range f may
#'   vary most (range divided by lengthscale).
#' @param at one row of inputs for the slice to go through.
#' @param n points along the input.
#' @param points should the data be drawn?
#' @param ... passed on to [plot.default()], e.g. `xlim`, `ylim`, `xlab`, `ylab`, `las`.
#' @return What was plotted, invisibly: a data frame, a row a panel and point, with columns `panel`, `input` and
#'   `value` (`NA` for errors row by row), `label` (of a factor's level, or `NA`), `fit` and `se.fit` (mean and sd of
#'   f), `exact` and `se.exact` (`NA` without `exact`), in units of the data, offsets left out.
#' @section Errors: class `pfdtc_error_input` where a fit and `exact` differ in data or hyperparameters, fits have
#'   different inputs, or they are not given as one list.
#' @section Invariants: the columns are what [predict()][predict.gp_fit] gives at the same inputs; `par()` is as
#'   before.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), figure 2.
#' @seealso [compare_fits()] for the same in numbers, [plot.gp_fit()]
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' same <- list(dist ~ speed, quote(cars), kernel = exact$kernel, noise = exact$noise, hyper = "fixed")
#' fits <- list("DTC, 2 points" = do.call(gp_dtc, c(same, m = 2)),
#'              "SoR, 2 points" = do.call(gp_sor, c(same, m = 2)))
#' plot_fits(fits, exact)
#' @export
plot_fits <- function(fits, exact = NULL, newdata = NULL, input = NULL, at = NULL, n = 200, points = TRUE, ...) {
  check_fits_given(missing(fits), list(...), "plot_fits")
  check_exact_given(exact, "plot_fits")
  fits <- label_fits(fits, function(fit) sub("^the", "The", fit_title(fit)))
  base <- comparison_base(fits, exact)
  n <- check_count(n, "n", min = 2)
  points <- check_flag(points, "points")
  variables <- fit_variables(base)
  by_row <- length(variables) > 1L && !is.null(newdata)
  if (by_row) {
    if (is.null(exact)) abort_input("exact", "NULL", "a fit by gp_exact(), to draw errors at `newdata`")
    s <- list(data = rows_compared(fits, exact, newdata))
  } else {
    s <- curves_compared(fits, exact, base, variables, newdata, input, at, n, points)
  }
  draw_figure(comparison_figure(s, fits, base, by_row, !is.null(exact)), list(...))
}

# The fit that tells range and middle of the data: with data, exact if possible.
comparison_base <- function(fits, exact) {
  columns <- length(fits[[1L]]$frame$columns)
  for (i in seq_along(fits)) {
    here <- length(fits[[i]]$frame$columns)
    if (here != columns) {
      abort_input("fits", sprintf("one with %d inputs and one with %d", columns, here), "fits of the same data")
    }
    if (!is.null(exact)) check_exact(exact, fits[[i]])
  }
  candidates <- c(if (!is.null(exact)) list(exact), fits)
  with_data <- which(!vapply(candidates, function(fit) is.null(fit$data), NA))
  candidates[[if (length(with_data)) with_data[1L] else 1L]]
}

# list(variable, data, points): every fit and the exact one along one variable.
curves_compared <- function(fits, exact, base, variables, newdata, input, at, n, points) {
  x <- slice_rows(base)
  v <- choose_variables(variables, input, x, base$kernel, most = 1L)
  if (length(v) != 1L) abort_input("input", describe(input), "one input")
  v <- v[[1L]]
  grid <- slice_grid(v, slice_centre(base, variables, at), x, n)
  if (!is.null(newdata) && is.null(v$values)) {
    grid$x <- new_inputs(base, newdata)$x
    if (!nrow(grid$x)) abort_input("newdata", "without complete rows", "of at least one row")
    grid$value <- sort(unique(grid$x[, v$columns]))
    grid$x <- grid$x[match(grid$value, grid$x[, v$columns]), , drop = FALSE]
  }
  data <- compared(fits, exact, grid$x, v$name, grid$value, grid$label)
  middle <- latent_at(base, grid$x)$mean
  list(variable = v, data = data, points = if (points && !is.null(base$data) && has_partial_response(base, "link")) {
    partial_points(base, variables, list(v), data.frame(input = v$name, value = grid$value, fit = middle))
  })
}

rows_compared <- function(fits, exact, newdata, most = 300L) {
  x <- new_inputs(exact, newdata)$x
  if (!nrow(x)) abort_input("newdata", "without complete rows", "of at least one row")
  compared(fits, exact, x[evenly(nrow(x), most), , drop = FALSE], NA_character_, NA_real_, NA_character_)
}

compared <- function(fits, exact, x, input, value, label) {
  truth <- if (is.null(exact)) list(mean = NA_real_, var = NA_real_) else latent_at(exact, x)
  panels <- lapply(names(fits), function(panel) {
    p <- latent_at(fits[[panel]], x)
    data.frame(panel = panel, input = input, value = value, label = label, fit = p$mean, se.fit = sqrt(p$var),
               exact = truth$mean, se.exact = sqrt(truth$var))
  })
  do.call(rbind, panels)
}

# ---- panels ---------------------------------------------------------------------------------------------------------

comparison_colours <- c(exact = "#0072B2", fit = "#D7191C", data = "#000000")

comparison_figure <- function(s, fits, base, by_row, has_exact) {
  d <- s$data
  middle <- if (by_row) d$exact else 0
  ends <- function(mean, sd) c(mean - middle - 2 * sd, mean - middle + 2 * sd)
  range <- range(ends(d$fit, d$se.fit), ends(d$exact, d$se.exact), s$points$y, finite = TRUE)
  make <- if (by_row) errors_panel else curves_panel
  panels <- lapply(names(fits), function(label) {
    c(make(d[d$panel == label, ], range, s, fits[[label]], base),
      list(note = list(label, side = 3, line = 0.3, adj = 0, font = 2, cex = 0.9)))
  })
  k <- length(fits)
  figure(panels, d, comparison_keys(fits, has_exact, !is.null(s$points), !by_row && is.na(d$label[1L])), cex = 0.85,
         par = list(mfrow = if (k <= 4L) c(k, 1L) else grDevices::n2mfrow(k), mar = c(3.4, 3.6, 1.8, 1),
                    oma = c(0, 0, 1.8, 0), mgp = c(2.1, 0.7, 0)))
}

curves_panel <- function(d, range, s, fit, base) {
  v <- s$variable
  levels <- !is.null(v$labels)
  line <- function(y, colour, ...) layer("line", d$value, y, col = comparison_colours[colour], ...)
  layers <- if (levels || nrow(d) == 1L) c(data_layer(s$points, 0.7), bar_layers(d$value, d, 0, 0.2)) else
    c(if (!anyNA(d$exact)) {
      layer("band", d$value, d$exact - 2 * d$se.exact, y1 = d$exact + 2 * d$se.exact, col = exact_band_colour())
    }, data_layer(s$points, 0.7), line(d$exact, "exact", lwd = 2.5),
    line(d$fit - 2 * d$se.fit, "fit", lty = 2, lwd = 1.2), line(d$fit, "fit", lwd = 1.5),
    line(d$fit + 2 * d$se.fit, "fit", lty = 2, lwd = 1.2))
  ticks <- if (!levels) tick_layer(drawn_points(fit)[, v$columns], comparison_colours["fit"], 0.06, 2)
  list(args = list(xlab = v$name, xlim = range(d$value) + if (levels) c(-0.5, 0.5) else 0,
                   ylab = slice_label(base, "link"),
                   ylim = range), blocks = levels, levels = if (levels) d$label, layers = c(layers, ticks))
}

errors_panel <- function(d, range, ...) {
  list(args = list(xlab = "exact mean", ylab = "mean less exact mean", xlim = range(d$exact), ylim = range),
       layers = bar_layers(d$exact, d, d$exact, diff(range(d$exact)) / 250))
}

exact_band_colour <- function() grDevices::adjustcolor(comparison_colours["exact"], 0.25)

# Means and bands as bars: the exact one's 2 * `broad` wide, the fit's thin upon it.
bar_layers <- function(at, d, middle, broad) {
  exact <- d$exact - middle
  fit <- d$fit - middle
  c(if (!anyNA(exact)) {
    c(layer("box", at - broad, exact - 2 * d$se.exact, x1 = at + broad, y1 = exact + 2 * d$se.exact, border = NA,
            col = exact_band_colour()),
      layer("segment", at - broad, exact, x1 = at + broad, y1 = exact, lwd = 2, col = comparison_colours["exact"]))
  }, layer("segment", at, fit - 2 * d$se.fit, x1 = at, y1 = fit + 2 * d$se.fit, lwd = 1.2,
           col = comparison_colours["fit"]),
  layer("dots", at, fit, pch = 16, cex = 0.6, col = comparison_colours["fit"]))
}

comparison_keys <- function(fits, has_exact, data, curves) {
  colours <- comparison_colours
  sd <- "\u00b1 2 sd"
  keys <- legend_keys(
    c("data", "exact mean", sd, "fit's mean", sd, "inducing points"),
    c(colours["data"], colours["exact"], exact_band_colour(), colours[c("fit", "fit", "fit")]),
    c(NA, 1, NA, if (curves) 1 else NA, if (curves) 2 else 1, NA), c(NA, 2.5, NA, 1.5, 1.2, NA),
    c(16, NA, 15, if (curves) NA else 16, NA, 124), c(0.6, 1, 2, 0.6, 1, 0.8))
  inducing <- curves && !all(vapply(fits, function(fit) is.null(drawn_points(fit)), NA))
  keys[c(data, rep(has_exact, 2), TRUE, TRUE, inducing), ]
}
