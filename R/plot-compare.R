#' @rdname compare_fits
#' @param input The input to slice along. Default: that along which f may vary most.
#' @param at,n,points As in [plot.gp_fit()].
#' @export
plot_fits <- function(fits, exact = NULL, newdata = NULL, input = NULL, at = NULL, n = 200, points = TRUE, ...) {
  check_fits_given(missing(fits), list(...), "plot_fits")
  fits <- label_fits(fits, posterior_title)
  base <- comparison_base(fits, exact)
  n <- check_count(n, "n", min = 2)
  points <- check_flag(points, "points")
  if (is.null(newdata) || length(fit_variables(base)) == 1L) {
    s <- curves_compared(fits, exact, base, newdata, input, at, n, points)
  } else {
    if (is.null(exact)) abort_input("exact", "NULL", "a fit by gp_exact(), to draw errors at `newdata`")
    x <- new_inputs(exact, newdata)$x
    if (!nrow(x)) abort_input("newdata", "without complete rows", "of at least one row")
    x <- x[evenly(nrow(x), 300L), , drop = FALSE]
    s <- list(data = compared(fits, exact, grid_frame(NA_character_, NA_real_, NA_character_, x)))
  }
  draw_figure(comparison_figure(s, fits, base, !is.null(exact)), list(...))
}

# Returns the fit whose data define ranges and centre: one with data, the exact one if possible.
comparison_base <- function(fits, exact) {
  columns <- lengths(lapply(fits, function(fit) fit$frame$columns))
  other <- columns[columns != columns[1L]]
  if (length(other)) {
    abort_input("fits", sprintf("one with %d inputs and one with %d", columns[1L], other[1L]), "fits of the same data")
  }
  check_exact(exact, fits, "plot_fits")
  candidates <- c(if (!is.null(exact)) list(exact), fits)
  with_data <- Find(function(fit) !is.null(fit$data), candidates)
  if (is.null(with_data)) candidates[[1L]] else with_data
}

# Returns list(variable, data, points, foot): the values of every fit and of the exact one along one variable.
curves_compared <- function(fits, exact, base, newdata, input, at, n, points) {
  s <- slice_frame(base, input, at, n, most = 1L)
  if (length(s$variables) != 1L) abort_input("input", describe(input), "one input")
  v <- s$variables[[1L]]
  if (!is.null(newdata) && is.null(v$values)) s$grid <- grid_of_rows(v$name, new_inputs(base, newdata)$x)
  middle <- data.frame(input = v$name, value = s$grid$value, fit = latent_at(base, s$grid$x)$mean)
  list(variable = v, data = compared(fits, exact, s$grid), foot = s$foot,
       points = with_marks(c(s, list(curves = middle)), without_transform(base, "link"), base, points, "link")$points)
}

compared <- function(fits, exact, grid) {
  truth <- if (is.null(exact)) list(mean = NA_real_, var = NA_real_) else latent_at(exact, grid$x)
  panels <- lapply(names(fits), function(panel) {
    p <- latent_at(fits[[panel]], grid$x)
    data.frame(panel = panel, grid[c("input", "value", "label")], fit = p$mean, se.fit = sqrt(p$var),
               exact = truth$mean, se.exact = sqrt(truth$var))
  })
  do.call(rbind, panels)
}

# ---- panels ---------------------------------------------------------------------------------------------------------

exact_band_colour <- function() band_colour(0.25)

comparison_figure <- function(s, fits, base, has_exact) {
  d <- s$data
  by_row <- is.null(s$variable)
  middle <- if (by_row) d$exact else 0
  ends <- function(mean, sd) c(mean - middle - 2 * sd, mean - middle + 2 * sd)
  range <- range(ends(d$fit, d$se.fit), ends(d$exact, d$se.exact), s$points$y, finite = TRUE)
  panels <- lapply(names(fits), function(label) {
    one <- d[d$panel == label, ]
    panel <- if (!by_row) curves_panel(one, range, s, fits[[label]], base) else
      list(args = list(xlab = "exact mean", ylab = "mean less exact mean", xlim = range(one$exact), ylim = range),
           layers = bar_layers(one$exact, one, one$exact, diff(range(one$exact)) / 250))
    c(panel, list(note = list(label, side = 3, line = 0.3, adj = 0, font = 2, cex = 0.9)))
  })
  k <- length(fits)
  curves <- !by_row && is.na(d$label[1L])
  inducing <- curves && !all(vapply(fits, function(fit) is.null(drawn_points(fit)), NA))
  blue <- plot_colours["mean"]
  red <- plot_colours["fit"]
  sd <- "\u00b1 2 sd"
  keys <- rbind(
    if (!is.null(s$points)) data_key(length(s$foot) > 0L),
    if (has_exact) rbind(legend_keys("exact mean", blue, 1, 2.5),
                         legend_keys(sd, exact_band_colour(), pch = 15, size = 2)),
    legend_keys("fit's mean", red, if (curves) 1 else NA, if (curves) 1.5 else NA, if (curves) NA else 16, 0.6),
    legend_keys(sd, red, if (curves) 2 else 1, 1.2), if (inducing) inducing_key(red))
  figure(panels, d, keys, foot = s$foot,
         par = panels_par(if (k <= 4L) c(k, 1L) else grDevices::n2mfrow(k), c(3.4, 3.6, 1.8, 1), 1.8,
                          mgp = c(2.1, 0.7, 0)))
}

curves_panel <- function(d, range, s, fit, base) {
  v <- s$variable
  levels <- !is.null(v$labels)
  line <- function(y, colour, ...) layer("line", d$value, y, col = plot_colours[colour], ...)
  data <- data_layer(s$points, 0.7)
  layers <- if (levels || nrow(d) == 1L) c(data, bar_layers(d$value, d, 0, 0.2)) else
    c(if (!anyNA(d$exact)) {
      layer("band", d$value, d$exact - 2 * d$se.exact, y1 = d$exact + 2 * d$se.exact, col = exact_band_colour())
    }, data, line(d$exact, "mean", lwd = 2.5), line(d$fit - 2 * d$se.fit, "fit", lty = 2, lwd = 1.2),
    line(d$fit, "fit", lwd = 1.5), line(d$fit + 2 * d$se.fit, "fit", lty = 2, lwd = 1.2))
  drawn <- drawn_points(fit)
  ticks <- if (!levels && !is.null(drawn)) tick_layer(value_along(v, drawn), plot_colours["fit"], 0.06, 2)
  list(args = list(xlab = v$name, xlim = range(d$value) + if (levels) c(-0.5, 0.5) else 0, ylim = range,
                   ylab = slice_label(base, "link")),
       blocks = levels, levels = if (levels) d$label, ticks = variable_ticks(v, range(d$value)),
       layers = c(layers, ticks))
}

# Draws means and bands as bars: those of the exact GP are 2 * `broad` wide, those of the fit thin.
bar_layers <- function(at, d, middle, broad) {
  exact <- d$exact - middle
  fit <- d$fit - middle
  red <- plot_colours["fit"]
  c(if (!anyNA(exact)) {
    c(layer("box", at - broad, exact - 2 * d$se.exact, x1 = at + broad, y1 = exact + 2 * d$se.exact, border = NA,
            col = exact_band_colour()),
      layer("segment", at - broad, exact, x1 = at + broad, y1 = exact, lwd = 2, col = plot_colours["mean"]))
  }, layer("segment", at, fit - 2 * d$se.fit, x1 = at, y1 = fit + 2 * d$se.fit, lwd = 1.2, col = red),
  layer("dots", at, fit, pch = 16, cex = 0.6, col = red))
}

# Returns the fits as a list with unique names; `name` makes a name for a fit without one.
label_fits <- function(fits, name) {
  if (inherits(fits, "gp_fit")) fits <- list(fits)
  if (!is.list(fits) || !length(fits) || !all(vapply(fits, inherits, NA, "gp_fit"))) {
    abort_input("fits", describe(fits), "a fit or a list of fits")
  }
  label <- names(fits)
  if (is.null(label)) label <- character(length(fits))
  blank <- !nzchar(label)
  label[blank] <- vapply(fits[blank], name, "")
  for (i in seq_along(fits)) fits[[i]] <- check_any_fit(fits[[i]], sprintf("fits[[%d]]", i))
  stats::setNames(fits, make.unique(label, " "))
}
