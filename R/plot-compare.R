#' @rdname compare_fits
#' @param input,at,n,points The input to slice along, by default that along which f may vary most; the others as in
#'   [plot.gp_fit()].
#' @export
plot_fits <- function(fits, exact = NULL, newdata = NULL, input = NULL, at = NULL, n = 200, points = TRUE, ...) {
  check_fits_given(missing(fits), list(...), "plot_fits")
  fits <- label_fits(fits, posterior_title)
  base <- comparison_base(fits, exact)
  n <- check_count(n, "n", min = 2)
  points <- check_flag(points, "points")
  if (is.null(newdata) || length(fit_variables(base)) == 1L) {
    s <- slice_frame(base, input, at, n, most = 1L)
    if (length(s$variables) != 1L) abort_input("input", describe(input), "one input")
    v <- s$variables[[1L]]
    if (!is.null(newdata) && is.null(v$values)) s$grid <- grid_of_rows(v$name, new_inputs(base, newdata)$x)
    s$curves <- data.frame(input = v$name, value = s$grid$value, fit = latent_at(base, s$grid$x)$mean)
    s <- with_marks(s, without_transform(base, "link"), base, points, "link")
  } else {
    if (is.null(exact)) abort_input("exact", "NULL", "a fit by gp_exact(), to draw errors at `newdata`")
    x <- new_inputs(exact, newdata)$x
    if (!nrow(x)) abort_input("newdata", "without complete rows", "of at least one row")
    s <- list(grid = grid_frame(NA_character_, NA_real_, NA_character_, x[evenly(nrow(x), 300L), , drop = FALSE]))
  }
  draw_figure(comparison_figure(s, compared(fits, exact, s$grid), fits, base, !is.null(exact)), list(...))
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

compared <- function(fits, exact, base, newdata, input, at, n, points) {
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

exact_band <- band_colour(0.25)

# Draws the values `d` of the fits and of the exact GP: along the variable of `s`, or without one as errors at rows.
comparison_figure <- function(s, d, fits, base, has_exact) {
  v <- s$variables[[1L]]
  by_row <- is.null(v)
  levels <- !is.null(v$labels)
  curves <- !by_row && is.na(d$label[1L])
  blue <- plot_colours["mean"]
  red <- plot_colours["fit"]
  middle <- if (by_row) d$exact else 0
  ends <- function(mean, sd) c(mean - middle - 2 * sd, mean - middle + 2 * sd)
  range <- range(ends(d$fit, d$se.fit), ends(d$exact, d$se.exact), s$points$y, finite = TRUE)
  data <- data_layer(s$points, 0.7)
  panels <- lapply(names(fits), function(label) {
    one <- d[d$panel == label, ]
    line <- function(y, col, ...) layer("line", one$value, y, col = col, ...)
    drawn <- drawn_points(fits[[label]])
    layers <- if (by_row) bar_layers(one$exact, one, one$exact, diff(range(one$exact)) / 250) else
      if (levels || nrow(one) == 1L) c(data, bar_layers(one$value, one, 0, 0.2)) else
        c(if (!anyNA(one$exact)) {
          layer("band", one$value, one$exact - 2 * one$se.exact, y1 = one$exact + 2 * one$se.exact, col = exact_band)
        }, data, line(one$exact, blue, lwd = 2.5), line(one$fit - 2 * one$se.fit, red, lty = 2, lwd = 1.2),
        line(one$fit, red, lwd = 1.5), line(one$fit + 2 * one$se.fit, red, lty = 2, lwd = 1.2))
    if (!by_row && !levels && !is.null(drawn)) layers <- c(layers, tick_layer(value_along(v, drawn), red, 0.06, 2))
    list(args = if (by_row) {
      list(xlab = "exact mean", ylab = "mean less exact mean", xlim = range(one$exact), ylim = range)
    } else {
      list(xlab = v$name, xlim = range(one$value) + if (levels) c(-0.5, 0.5) else 0, ylim = range,
           ylab = slice_label(base, "link"))
    }, blocks = levels, levels = if (levels) one$label, ticks = if (!by_row) variable_ticks(v, range(one$value)),
    layers = layers, note = list(label, side = 3, line = 0.3, adj = 0, font = 2, cex = 0.9))
  })
  k <- length(fits)
  inducing <- curves && !all(vapply(fits, function(fit) is.null(drawn_points(fit)), NA))
  sd <- "\u00b1 2 sd"
  keys <- rbind(
    if (!is.null(s$points)) data_key(length(s$foot) > 0L),
    if (has_exact) rbind(legend_keys("exact mean", blue, 1, 2.5), legend_keys(sd, exact_band, pch = 15, size = 2)),
    legend_keys("fit's mean", red, if (curves) 1 else NA, if (curves) 1.5 else NA, if (curves) NA else 16, 0.6),
    legend_keys(sd, red, if (curves) 2 else 1, 1.2), if (inducing) inducing_key(red))
  figure(panels, d, keys, foot = s$foot,
         par = panels_par(if (k <= 4L) c(k, 1L) else grDevices::n2mfrow(k), c(3.4, 3.6, 1.8, 1), 1.8,
                          mgp = c(2.1, 0.7, 0)))
}

# Draws means and bands as bars: those of the exact GP are 2 * `broad` wide, those of the fit thin.
bar_layers <- function(at, d, middle, broad) {
  exact <- d$exact - middle
  fit <- d$fit - middle
  red <- plot_colours["fit"]
  c(if (!anyNA(exact)) {
    c(layer("box", at - broad, exact - 2 * d$se.exact, x1 = at + broad, y1 = exact + 2 * d$se.exact, border = NA,
            col = exact_band),
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
