#' Plot fits beside the exact Gaussian process
#'
#' Draws a panel for each fit: mean and two sds of the exact GP in blue, those of the fit and its inducing points in
#' red.
#'
#' With several inputs there is a slice along one, as in [plot.gp_fit()]; with `newdata` there are errors row by row
#' instead, mean of the fit less exact mean against the exact mean.
#'
#' @param fits A fit or a list of fits, whose names become the titles. With a non-Gaussian likelihood f is drawn.
#' @param exact A [gp_exact()] fit of the same data and hyperparameters, or `NULL`.
#' @param newdata Rows to evaluate at; with several inputs at most 300 are drawn.
#' @param input With several inputs, the one to slice along. Default: that along which f may vary most.
#' @param at,n,points As in [plot.gp_fit()].
#' @param ... Arguments of [plot.default()].
#' @return Invisibly, a data frame with a row for each panel and point: `panel`, `input`, `value`, `label` (level),
#'   `fit` and `se.fit` (mean and sd of f), `exact` and `se.exact` (`NA` without `exact`), without offsets.
#' @section Errors and invariants: class `pfdtc_error_input` if a fit and `exact` differ in data or hyperparameters.
#'   Columns are those of [predict()][predict.gp_fit]. `par()` is as before.
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
  fits <- label_fits(fits, posterior_title)
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

# Returns the fit whose data set range and centre: one with data, the exact one if possible.
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

# Returns list(variable, data, points, foot): every fit and the exact one along one variable.
curves_compared <- function(fits, exact, base, variables, newdata, input, at, n, points) {
  x <- slice_rows(base)
  v <- choose_variables(variables, input, x, base$kernel, most = 1L)
  if (length(v) != 1L) abort_input("input", describe(input), "one input")
  v <- v[[1L]]
  centre <- slice_centre(base, variables, at)
  grid <- slice_grid(v, centre, x, n)
  if (!is.null(newdata) && is.null(v$values)) grid <- grid_of_rows(new_inputs(base, newdata)$x)
  data <- compared(fits, exact, grid$x, v$name, grid$value, grid$label)
  middle <- latent_at(base, grid$x)$mean
  foot <- slices_foot(variables, centre, v$name)
  list(variable = v, data = data, foot = foot, points = if (points && has_partial_response(base, "link")) {
    partial_points(without_transform(base, "link"), variables, list(v),
                   data.frame(input = v$name, value = grid$value, fit = middle))
  })
}

# Returns the grid of different values of one input.
grid_of_rows <- function(x) {
  if (!nrow(x)) abort_input("newdata", "without complete rows", "of at least one row")
  value <- sort(unique(x[, 1L]))
  list(value = value, label = NA_character_, x = x[match(value, x[, 1L]), , drop = FALSE])
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
  keys <- comparison_keys(fits, has_exact, !is.null(s$points), !by_row && is.na(d$label[1L]), length(s$foot) > 0L)
  figure(panels, d, keys, cex = 0.85, foot = s$foot,
         par = panels_par(if (k <= 4L) c(k, 1L) else grDevices::n2mfrow(k), c(3.4, 3.6, 1.8, 1), 1.8,
                          mgp = c(2.1, 0.7, 0)))
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
  list(args = list(xlab = v$name, xlim = range(d$value) + if (levels) c(-0.5, 0.5) else 0, ylim = range,
                   ylab = slice_label(base, "link")),
       blocks = levels, levels = if (levels) d$label, layers = c(layers, ticks))
}

errors_panel <- function(d, range, ...) {
  list(args = list(xlab = "exact mean", ylab = "mean less exact mean", xlim = range(d$exact), ylim = range),
       layers = bar_layers(d$exact, d, d$exact, diff(range(d$exact)) / 250))
}

exact_band_colour <- function() grDevices::adjustcolor(comparison_colours["exact"], 0.25)

# Draws means and bands as bars: those of the exact GP are 2 * `broad` wide, those of the fit thin.
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

comparison_keys <- function(fits, has_exact, data, curves, residuals) {
  colours <- comparison_colours
  sd <- "\u00b1 2 sd"
  inducing <- curves && !all(vapply(fits, function(fit) is.null(drawn_points(fit)), NA))
  rbind(if (data) data_key(residuals), if (has_exact) legend_keys("exact mean", colours["exact"], 1, 2.5),
        if (has_exact) legend_keys(sd, exact_band_colour(), pch = 15, size = 2),
        if (curves) legend_keys("fit's mean", colours["fit"], 1, 1.5, size = 0.6) else
          legend_keys("fit's mean", colours["fit"], pch = 16, size = 0.6),
        legend_keys(sd, colours["fit"], if (curves) 2 else 1, 1.2), if (inducing) inducing_key(colours["fit"]))
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

# ---- the course of an optimisation ----------------------------------------------------------------------------------

#' Plot the course of an optimisation
#'
#' Draws the objective above its lowest value against evaluations or seconds, a line for each fit and a panel for each
#' method. A line that still falls at its right end was stopped too early: a larger `maxit` is worth its time.
#'
#' Values are comparable between fits with the same data, hyperparameters and auxiliary distribution. After a renewed
#' objective ([aux_refresh()], `hyper = "joint"`) lines are broken and values are shown as they are. For a non-Gaussian
#' likelihood it is the last search for hyperparameters. An experiment has a line for each repetition.
#'
#' @param fits A fit, a list of fits, a result of [run_experiment()] with `trace`, or the name of its file.
#' @param against Horizontal axis.
#' @param ... Arguments of [plot.default()], such as `log = ""` for a linear axis.
#' @param method,dataset,m For an experiment, what to show. Default: pF-DTC and VFE, first data set and `m`.
#' @return Invisibly, a data frame: `fit`, `objective_of` (method), `evaluation`, `seconds`, `objective`, `round`
#'   (values within a round are comparable).
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), figure 1a.
#' @seealso [plot.gp_fit()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 10, control = pfdtc_control(maxit = 100))
#' plot_trace(fit)
#' @export
plot_trace <- function(fits, against = c("evaluation", "seconds"), ..., method = NULL, dataset = NULL,
                       m = NULL) {
  against <- check_choice(against, c("evaluation", "seconds"), "against")
  if (is.character(fits) || (is.data.frame(fits) && all(result_columns %in% names(fits)))) {
    return(draw_figure(traces_figure(trace_curves(as_experiment(fits), against, method, dataset, m)), list(...)))
  }
  trace <- trace_frame(fits)
  panels <- lapply(split(trace, factor(trace$objective_of, unique(trace$objective_of))), trace_panel, against,
                   list(...)$log)
  k <- length(panels)
  par <- if (k > 1L) panels_par(grDevices::n2mfrow(k), c(5.1, 4.1, 4.1, 2.1), mgp = c(3, 1, 0))
  draw_figure(figure(panels, trace, par = par), list(...))
}

trace_frame <- function(fits) {
  fits <- label_fits(fits, function(fit) fit$method)
  out <- Map(function(fit, label) {
    t <- fit$trace
    t <- t[!is.na(t$objective), ]     # NA: a step that failed
    if (!nrow(t)) return(NULL)
    data.frame(fit = label, objective_of = fit$method, evaluation = t$evaluation,
               seconds = t$seconds, objective = t$objective,
               round = if (is.null(t$round)) 1L else t$round)
  }, fits, names(fits))
  out <- do.call(rbind, unname(out))
  if (is.null(out)) {
    abort_input("fits", "without a trace", "fits for which something was searched",
                hint = "Hyperparameters were given or held, and inducing points not moved.")
  }
  out
}

trace_panel <- function(p, against, log) {
  names <- unique(p$fit)
  colours <- rep_len(grDevices::palette.colors(8L, "Okabe-Ito")[c(6, 7, 4, 8, 2, 3, 1, 5)], length(names))
  types <- rep(seq_len(6L), each = 8L, length.out = length(names))
  x <- p[[against]]
  y <- p$objective
  above <- y - min(y)
  comparable <- all(p$round == 1L) && any(above > 0)
  if (comparable) {
    if (is.null(log)) log <- "y"
    y <- if (grepl("y", log, fixed = TRUE)) replace(above, above == 0, NA) else above
  }
  lines <- lapply(seq_along(names), function(i) {
    own <- which(p$fit == names[i])
    lapply(split(own, p$round[own]), function(rows) {
      layer(if (length(rows) > 1L) "line" else "dots", x[rows], y[rows], pch = if (length(rows) == 1L) 1,
            col = colours[i], lty = types[i], lwd = 2)
    })
  })
  list(args = list(xlab = against, ylab = if (comparable) "objective above its lowest value" else "objective",
                   xlim = range(x), ylim = range(y, na.rm = TRUE), log = if (comparable) log else ""),
       powers = "y", las = 0, layers = unlist(unlist(lines, FALSE), FALSE),
       note = list(posterior_title(list(method = p$objective_of[1L])), 3, 0.4, adj = 1, cex = 0.9),
       keys = if (length(names) > 1L) legend_keys(names, colours, types, 2),
       legend = list(ncol = min(4L, length(names)), x.intersp = 1, text.width = NULL, pch = NULL))
}
