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

compared <- function(fits, exact, grid) {
  truth <- if (is.null(exact)) list(mean = NA_real_, var = NA_real_) else latent_at(exact, grid$x)
  panels <- lapply(names(fits), function(panel) {
    p <- latent_at(fits[[panel]], grid$x)
    data.frame(panel = panel, grid[c("input", "value", "label")], fit = p$mean, se.fit = sqrt(p$var),
               exact = truth$mean, se.exact = sqrt(truth$var))
  })
  do.call(rbind, panels)
}

# Draws the values `d` of the fits and of the exact GP: along the variable of `s`, or without one as errors at rows.
comparison_figure <- function(s, value, fits, base, has_exact) {
  d <- value
  v <- s$variables[[1L]]
  by_row <- is.null(v)
  blue <- plot_colours["mean"]
  red <- plot_colours["fit"]
  shade <- band_colour(0.25)
  d$outside <- FALSE
  middle <- if (by_row) d$exact else 0
  ends <- function(mean, sd) list(mean - middle - 2 * sd, mean - middle, mean - middle + 2 * sd)
  d[c("exact_lower", "exact_middle", "exact_upper")] <- ends(d$exact, d$se.exact)
  d[c("fit_lower", "fit_middle", "fit_upper")] <- ends(d$fit, d$se.fit)
  range <- range(unlist(d[grep("_(lower|upper)", names(d))]), s$points$y, finite = TRUE)
  panels <- lapply(names(fits), function(label) {
    one <- d[d$panel == label, ]
    if (by_row) {
      at <- one$exact
      broad <- diff(range(at)) / 250
      panel <- list(args = list(xlab = "exact mean", ylab = "mean less exact mean", ylim = range), layers = c(
        layer("box", at - broad, one$exact_lower, x1 = at + broad, y1 = one$exact_upper, border = NA, col = shade),
        layer("segment", at - broad, one$exact_middle, x1 = at + broad, y1 = one$exact_middle, lwd = 2, col = blue),
        layer("segment", at, one$fit_lower, x1 = at, y1 = one$fit_upper, lwd = 1.2, col = red),
        layer("dots", at, one$fit_middle, pch = 16, cex = 0.6, col = red)))
    } else {
      points <- drawn_points(fits[[label]])
      s$inducing <- if (is.null(v$values) && !is.null(points)) {
        data.frame(input = v$name, value = value_along(v, points))
      }
      panel <- slice_panels(s, one, slice_label(base, "link"), range, function(p) {
        if (has_exact) credible_layer(p, "exact_lower", "exact_upper", shade)
      }, function(p) {
        c(if (has_exact) curve_layers(p, "exact", lwd = 2.5),
          curve_layers(p, c("fit_lower", "fit_upper"), lwd = 1.2, lty = 2, col = red),
          curve_layers(p, "fit", lwd = 1.5, col = red))
      })[[1L]]
    }
    panel$args$main <- label
    panel
  })
  s$inducing <- if (!by_row && is.null(v$values)) unlist(lapply(fits, drawn_points))
  sd <- "\u00b1 2 sd"
  keys <- rbind(
    if (has_exact) rbind(legend_keys("exact mean", blue, 1, 2.5), legend_keys(sd, shade, pch = 15, size = 2)),
    legend_keys("fit's mean", red, if (by_row) NA else 1, 1.5, if (by_row) 16 else NA, 0.6),
    legend_keys(sd, red, if (by_row) 1 else 2, 1.2), mark_keys(s))
  k <- length(fits)
  figure(panels, value, keys, if (k <= 4L) c(k, 1L) else grDevices::n2mfrow(k), foot = s$foot)
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
