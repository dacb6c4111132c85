#' Plot certificates
#'
#' What [certify()] says of one fit, as a picture: where the exact Gaussian process lies; or, of several fits with
#' different numbers of inducing points, how far it is at most from each, beside the actual distance.
#'
#' For one fit: data, mean, credible band and inducing points as in [plot.gp_fit()]; filled in orange, the band in which
#' the mean of the exact process is certified to lie; and orange dashed lines between which its credible band lies, the
#' ends of `predict(interval = "credible", certified = TRUE)`. With one input the curves run over its range; with more
#' there is a slice a variable, as in [plot.gp_fit()]. Bands far wider than the rest of the picture are cut off.
#'
#' For a list of fits of the same model: median (solid) and maximum (dashed) over `newdata` of the certified errors of
#' mean and sd against the number of points, for each effort, on logarithmic axes; and of the actual errors where the
#' exact process is at hand. Methods get a row of panels each. Values that are zero have no place on such an axis:
#' triangles at its lower end stand for them.
#'
#' Of classes and counts one fit is drawn as [plot.gp_fit()] does it, by `type`: the averaged probability or rate, where
#' the exact process's Laplace posterior is certified to have it, and the band of f as the link has it; or f. The errors
#' of a list are those of f: of its mode, and its sd.
#'
#' The exact process is drawn in black. It is computed for the figure where there are no more than 500 different rows of
#' inputs.
#'
#' @param fits a fit, or a list of fits of the same data and hyperparameters.
#' @param newdata rows to evaluate at, in any form that [predict()][predict.gp_fit] takes. For one fit of one input, its
#'   different values in place of `n` points over the range; for a list, the rows that errors are summarised over
#'   (`NULL`: the training inputs).
#' @param effort of [certify()]. For one fit one of `"reference"` (`NULL`), `"fast"` and `"tight"`; for a list, which of
#'   them to draw (`NULL`: all). `"tight"` takes all pairs of rows.
#' @param exact a [gp_exact()] fit of the same data and hyperparameters (of classes and counts one whose points leave
#'   nothing unexplained); `FALSE` for none; `TRUE` to compute it whatever
#'   the number of rows.
#' @param level probability of the credible bands.
#' @param inputs,at,n,points for one fit, as in [plot.gp_fit()].
#' @param ... passed on to [plot.default()], e.g. `xlim`, `ylim`, `xlab`, `ylab`, `las`.
#' @param reference made by [reference()], for all fits. `NULL`: that of each fit, which is made where it has none.
#' @param type of one fit of classes or counts: `"response"` or `"link"`.
#' @param plot `FALSE`: only return what would be drawn, for `autoplot()`.
#' @return What is drawn, invisibly, in units of the response, offsets left out: a data frame of class
#'   `pfdtc_certificate`, of which `autoplot()` of package ggplot2 makes the same figure.
#'
#'   For one fit, a row a point of a curve: `input`, `value` and `label` as from [plot.gp_fit()]; `fit`, `se.fit`, `lwr`
#'   and `upr`, the fit's mean, sd of f and credible band; `mean_lower`, `mean_upper`, `sd_lower` and `sd_upper` as from
#'   [certify()]; `lwr_certified` and `upr_certified`, between which the exact credible band lies; and what the exact
#'   process has, or `NA`: `exact`, `se.exact`, `lwr_exact` and `upr_exact`.
#'
#'   For a list, a row a fit, effort and quantity: `fit` (its name), `method`, `m`, `effort` (`"actual"` for the actual
#'   error), `what` (`"mean"` or `"sd"`), `median` and `max`. Efforts that need the data are left out for fits without.
#' @section Errors: class `pfdtc_error_input` where fits, `exact` or `reference` differ in data or hyperparameters, or
#'   what is asked for needs data that the fits have not kept.
#' @section Invariants: `mean_lower <= exact <= mean_upper`, `sd_lower <= se.exact <= sd_upper`, `lwr_certified <=
#'   lwr_exact`, `upr_exact <= upr_certified`; median and maximum of the actual errors are no larger than those of each
#'   effort. Random groups of rows are always the same: R's random numbers are left as they were. `par()` is as before.
#' @source Theory vignette.
#' @seealso [certify()] for the numbers, [plot.gp_fit()], [plot_fits()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 3)
#' fit$reference <- reference(fit, m2 = 8)
#' plot_certificate(fit)
#' fits <- lapply(2:6, function(m) {
#'   gp_dtc(dist ~ speed, cars, m = m, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
#' })
#' plot_certificate(fits)
#' @export
plot_certificate <- function(fits, newdata = NULL, effort = NULL, exact = NULL, level = 0.95, inputs = NULL, at = NULL,
                             n = 200, points = TRUE, ..., reference = NULL, plot = TRUE,
                             type = c("response", "link")) {
  check_fits_given(missing(fits), list(...), "plot_certificate")
  if (inherits(newdata, "gp_fit")) {
    abort_input("fits", "fits outside of it", "a fit or a list of all fits",
                hint = "Fits go in one list: plot_certificate(list(<fit>, <fit>), ...).")
  }
  plot <- check_flag(plot, "plot")
  type <- check_choice(type, c("response", "link"), "type")
  if (inherits(fits, "gp_fit")) {
    fits <- check_any_fit(fits, "fits")
    exact <- exact_for_figure(list(fits), exact)
    out <- certified_curves(fits, newdata, inputs, at, check_level(level), check_count(n, "n", min = 2),
                            check_flag(points, "points"), effort, exact, reference, type)
  } else {
    fits <- label_fits(fits, function(fit) sprintf("%s, m = %d", fit$method, size_of_fit(fit)))
    for (i in seq_along(fits)[-1L]) {
      check_same_model(fits[[i]], fits[[1L]], sprintf("fits[[%d]]", i), "fits[[1]]")
    }
    out <- certified_errors_over_m(fits, newdata, effort, exact_for_figure(fits, exact), reference)
  }
  if (plot) draw_figure(certificate_figure(out, list(...)$log), list(...))
  invisible(out)
}

#' Plot certificates with ggplot2
#'
#' The figures of [plot_certificate()] as ggplots.
#'
#' @param object what [plot_certificate()] returned.
#' @param ... nothing: an unknown argument is an error.
#' @return A ggplot.
#' @section Errors: class `pfdtc_error_input` for some columns of what [plot_certificate()] returned.
#' @source [plot_certificate()].
#' @seealso [plot_certificate()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 3)
#' fit$reference <- reference(fit, m2 = 8)
#' if (requireNamespace("ggplot2", quietly = TRUE)) {
#'   ggplot2::autoplot(plot_certificate(fit, plot = FALSE))
#' }
#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_certificate <- function(object, ...) {
  check_dots_empty(list(...), "object")
  figure <- attr(object, "figure")
  if (is.null(figure) || ncol(object) != if (identical(figure, "errors")) 7L else 17L) {
    abort_input("object", "a part of it", "all of what plot_certificate() returned")
  }
  ggplot_figure(certificate_figure(object))
}

certificate_figure <- function(out, log = NULL) {
  about <- attr(out, "figure")
  class(out) <- "data.frame"
  if (!identical(about, "errors")) return(certified_curves_figure(out, about))
  certified_errors_figure(out, is.null(log) || grepl("y", log, fixed = TRUE))
}

# The exact fit to draw, or NULL.
exact_for_figure <- function(fits, exact, most = 500L) {
  given <- Filter(function(fit) is_exact(fit) || is_laplace_limit(fit), fits)
  with_data <- Filter(function(fit) !is.null(fit$data), fits)
  if (is.null(exact) || is.logical(exact)) {
    wanted <- if (!is.null(exact)) check_flag(exact, "exact")
    if (identical(wanted, FALSE)) return(NULL)
    if (length(given)) return(given[[1L]])
    if (isTRUE(wanted) && !length(with_data)) needs_data(fits[[1L]], "fits")
    if (!length(with_data) || (is.null(wanted) && nrow(with_data[[1L]]$data$x) > most)) return(NULL)
    one <- with_data[[1L]]
    return(if (response_of(one)$conjugate) exact_of_fit(one) else
      same_chance(laplace_reference(one, one$data, nrow(one$data$x))))
  }
  check_exact_given(exact, "plot_certificate")
  for (fit in fits) exact <- check_exact(exact, fit)
  exact
}

# Points that a posterior rests on.
size_of_fit <- function(fit) if (is.null(fit$m)) nrow(fit$x) else fit$m

# ---- one fit --------------------------------------------------------------------------------------------------------

certified_curves <- function(fit, newdata, inputs, at, level, n, points, effort, exact, reference, type) {
  effort <- check_choice(if (is.null(effort)) "reference" else effort, c("reference", "fast", "tight"), "effort")
  base <- comparison_base(list(fit), exact)
  all <- fit_variables(base)
  x <- slice_rows(base)
  shown <- choose_variables(all, inputs, x, base$kernel)
  grids <- if (is.null(newdata)) {
    centre <- slice_centre(base, all, at)
    lapply(shown, slice_grid, centre = centre, x = x, n = n)
  } else {
    if (length(all) > 1L || !is.null(all[[1L]]$values)) {
      abort_input("newdata", "rows of several inputs or of a factor", "NULL",
                  hint = "Slices go through `at`; for errors over rows: plot_certificate(list(fit), newdata).")
    }
    list(grid_of_rows(new_inputs(fit, newdata)$x))
  }
  x <- do.call(rbind, lapply(grids, `[[`, "x"))
  part <- function(what) unlist(lapply(grids, function(g) rep_len(g[[what]], nrow(g$x))))
  if (is.null(reference)) reference <- fit$reference
  certificate <- certificate_of(fit, plain_rows(x), effort, reference)
  response <- !response_of(fit)$conjugate && type == "response"
  ends <- c("mean_lower", "mean_upper")
  shown_ends <- certificate[if (response && !is.null(certificate$response)) c("response_lower", "response_upper") else
    ends]
  p <- latent_at(fit, x)
  truth <- if (is.null(exact)) list(mean = NA_real_, var = NA_real_) else latent_at(exact, x)
  z <- stats::qnorm((1 + level) / 2)
  link <- if (response) response_of(fit)$link$inv else identity
  band <- function(mean, sd) link(mean + z * sd)
  names <- vapply(shown, `[[`, "", "name")
  data <- data.frame(
    input = rep(names, vapply(grids, function(g) nrow(g$x), 1L)), value = part("value"), label = part("label"),
    fit = on_scale(fit, p, type)$mean, se.fit = sqrt(p$var), lwr = band(p$mean, -sqrt(p$var)),
    upr = band(p$mean, sqrt(p$var)), stats::setNames(shown_ends, ends), certificate[c("sd_lower", "sd_upper")],
    lwr_certified = band(certificate$mean_lower, -certificate$sd_upper),
    upr_certified = band(certificate$mean_upper, certificate$sd_upper), exact = on_scale(fit, truth, type)$mean,
    se.exact = sqrt(truth$var), lwr_exact = band(truth$mean, -sqrt(truth$var)),
    upr_exact = band(truth$mean, sqrt(truth$var)))
  with_points <- points && !is.null(base$data) && has_partial_response(fit, type)
  figure <- list(variables = shown, points = if (with_points) partial_points(base, all, shown, data),
                 inducing = inducing_marks(fit, shown), level = level, response = slice_label(base, type))
  structure(data, class = c("pfdtc_certificate", "data.frame"), figure = figure, effort = effort)
}

grid_of_rows <- function(x) {
  if (!nrow(x)) abort_input("newdata", "without complete rows", "of at least one row")
  value <- sort(unique(x[, 1L]))
  list(value = value, label = NA_character_, x = x[match(value, x[, 1L]), , drop = FALSE])
}

# Bands that would dwarf the rest are cut off at its own height above and below it.
certified_range <- function(data, points) {
  rest <- range(data$lwr, data$upr, data$lwr_exact, data$upr_exact, points$y, finite = TRUE)
  most <- rest + c(-1, 1) * diff(rest)
  all <- range(rest, data$lwr_certified, data$upr_certified, finite = TRUE)
  c(max(all[1L], most[1L]), min(all[2L], most[2L]))
}

certified_colour <- "#E69F00"

certified_curves_figure <- function(data, s) {
  range <- certified_range(data, s$points)
  has_exact <- !all(is.na(data$exact))
  panels <- lapply(s$variables, function(v) {
    slice_panel(v, rows_of(data, v), list(ylab = s$response, ylim = range), function(pieces) {
      c(unlist(lapply(pieces, certified_bands, range + c(-1, 1) * diff(range)), FALSE),
        data_layer(rows_of(s$points, v)), unlist(lapply(pieces, certified_lines), FALSE),
        tick_layer(rows_of(s$inducing, v)$value))
    })
  })
  percent <- paste(format(100 * s$level), "%")
  orange <- certified_colour
  filled <- c(grDevices::adjustcolor(orange, 0.3), band_colour())
  keys <- legend_keys(
    c("fit's mean", sprintf("fit's %s credible", percent), "exact mean", paste("exact", percent, "credible"),
      "certified: exact mean", sprintf("certified: exact %s credible", percent), "data", "inducing points"),
    c(plot_colours["mean"], NA, "#000000", "#000000", orange, orange, plot_colours[c("data", "inducing")]),
    c(1, NA, 1, 3, NA, 2, NA, NA), c(2, NA, 1, 1, 2, 2, NA, NA), c(NA, 22, NA, NA, 22, NA, 16, 124),
    c(1, 2, 1, 1, 1.6, 1, 0.6, 0.8), c(NA, filled[2L], NA, NA, filled[1L], NA, NA, NA))
  keys <- keys[c(TRUE, TRUE, has_exact, has_exact, TRUE, TRUE, !is.null(s$points), !is.null(s$inducing)), ]
  k <- length(panels)
  figure(panels, data, keys, list(seg.len = 1.8, ncol = ceiling(nrow(keys) / 2)), cex = if (k > 1L) 0.85 else 1,
         par = list(mfrow = rev(grDevices::n2mfrow(k)), mar = c(3.5, 3.5, 0.5, 1), oma = c(0, 0, 2.8, 0),
                    mgp = c(2.2, 0.7, 0)))
}

# No further than `far`, which no panel reaches: bands that have no end cannot be filled.
certified_bands <- function(p, far) {
  band <- function(lower, upper, col) {
    inside <- function(v) pmin(pmax(v, far[1L]), far[2L])
    layer("band", p$value, inside(p[[lower]]), y1 = inside(p[[upper]]), col = col)
  }
  c(band("mean_lower", "mean_upper", grDevices::adjustcolor(certified_colour, 0.3)), band("lwr", "upr", band_colour()))
}

# Wide enough to be seen under the exact ones where the certificate is as narrow as a line.
certified_lines <- function(p) {
  line <- function(what, ...) layer("line", p$value, p[[what]], ...)
  of_mean <- function(what) line(what, lwd = 3.5, col = certified_colour)
  of_band <- function(what) line(what, lwd = 2, lty = 2, col = certified_colour)
  c(of_mean("mean_lower"), of_band("lwr_certified"), of_mean("mean_upper"), of_band("upr_certified"), mean_layer(p),
    if (!anyNA(p$exact)) c(line("lwr_exact", lty = 3), line("exact"), line("upr_exact", lty = 3)))
}

# ---- several fits ---------------------------------------------------------------------------------------------------

certified_errors_over_m <- function(fits, newdata, effort, exact, reference) {
  efforts <- check_efforts(effort)
  base <- comparison_base(fits, exact)
  new <- rows_to_summarise(base, newdata)
  truth <- if (!is.null(exact)) latent_at(exact, new$x)
  out <- Map(function(fit, label) {
    p <- latent_at(fit, new$x)
    errors <- if (!is.null(truth)) {
      list(actual = list(mean = abs(p$mean - truth$mean)[new$index],
                         sd = abs(sqrt(p$var) - sqrt(truth$var))[new$index]))
    }
    errors <- c(errors, certified_by_effort(fit, new, efforts, reference))
    if (length(errors)) summarise_errors(fit, label, errors)
  }, fits, names(fits))
  out <- do.call(rbind, unname(out))
  if (is.null(out)) {
    abort_input("fits", "without their data", "fits with their data, or given with a `reference` or `exact`")
  }
  structure(out, class = c("pfdtc_certificate", "data.frame"), figure = "errors")
}

check_efforts <- function(effort) {
  known <- c("fast", "reference", "tight")
  if (is.null(effort)) return(known)
  if (!is.character(effort) || !length(effort)) {
    abort_input("effort", describe(effort), paste("some of", list_quoted(known, "\"")))
  }
  unique(vapply(effort, check_choice, "", choices = known, argument = "effort", USE.NAMES = FALSE))
}

rows_to_summarise <- function(base, newdata) {
  if (is.null(newdata)) {
    if (is.null(base$data) && is_exact(base)) return(plain_rows(base$x))
    rows <- training_inputs(training_data(base))
    return(plain_rows(rows$x, rows$index))
  }
  rows <- plain_rows(new_inputs(base, newdata)$x)
  if (!nrow(rows$x)) abort_input("newdata", "without complete rows", "of at least one row")
  rows
}

# The certified errors of a fit at all rows, for those efforts that are within reach of what it has kept.
certified_by_effort <- function(fit, new, efforts, reference) {
  if (is.null(reference)) reference <- fit$reference
  if (is.null(fit$data) && !is_exact(fit)) efforts <- if (!is.null(reference)) intersect(efforts, "reference")
  if (is.null(reference) && !is_exact(fit) && any(efforts != "fast")) {
    reference <- same_chance(reference(fit))
  }
  lapply(stats::setNames(nm = efforts), function(effort) {
    certificate <- certificate_of(fit, new, effort, reference)
    list(mean = certificate$mean_error,
         sd = pmax(certificate$sd - certificate$sd_lower, certificate$sd_upper - certificate$sd))
  })
}

summarise_errors <- function(fit, label, errors) {
  over <- function(f) vapply(errors, function(e) c(f(e$mean), f(e$sd)), numeric(2L))
  data.frame(fit = label, method = fit$method, m = size_of_fit(fit), effort = rep(names(errors), each = 2L),
             what = c("mean", "sd"), median = c(over(stats::median)), max = c(over(max)))
}

# Lines and open symbols that fit into one another: certificates may be as good as the actual error. Dashes are in units
# of the width: these have the same length.
effort_looks <- data.frame(
  effort = c("actual", "fast", "reference", "tight"), col = c("#000000", "#E69F00", "#0072B2", "#CC79A7"),
  label = c("actual error", "certified, fast", "certified, reference", "certified, tight"), pch = c(16L, 2L, 0L, 5L),
  cex = c(0.7, 1.1, 1.4, 1.1), lwd = c(4.5, 2.25, 2.25, 1.125), dashes = c("21", "42", "42", "84"))

# `log`: is the vertical axis logarithmic?
certified_errors_figure <- function(data, log) {
  looks <- effort_looks[effort_looks$effort %in% data$effort, ]
  methods <- unique(data$method)
  panels <- unlist(lapply(methods, function(method) {
    lapply(c("mean", "sd"), function(what) {
      title <- if (length(methods) > 1L) paste0(fit_title(list(method = method)), ": ", what) else
        paste("posterior", what)
      certified_panel(data[data$method == method & data$what == what, ], data[data$what == what, ], looks, title, log)
    })
  }), FALSE)
  zero <- log && any(data$median == 0)
  keys <- legend_keys(c(looks$label, "median", "maximum", if (zero) "zero"),
                      c(looks$col, "grey30", "grey30", if (zero) "grey30"),
                      c(rep(NA, nrow(looks)), 1L, 2L, if (zero) NA), 1.5, c(looks$pch, NA, NA, if (zero) 6L))
  figure(panels, data, keys, list(seg.len = 1.8, ncol = ceiling(nrow(keys) / 2)), cex = 0.85,
         outer = list(xlab = "inducing points", ylab = "error"),
         par = list(mfrow = c(length(methods), 2L), mar = c(2, 3.4, 1.6, 0.6), oma = c(1.4, 1.4, 2.8, 0),
                    mgp = c(2.1, 0.6, 0)))
}

# `all`: what the axes have room for; values of zero stand at the lower end of a logarithmic one.
certified_panel <- function(d, all, looks, title, log) {
  values <- c(all$median, all$max)
  there <- values[is.finite(values) & values > 0]
  ylim <- if (length(there)) range(there) else c(1e-16, 1)
  layers <- lapply(split(looks, seq_len(nrow(looks))), function(look) {
    here <- d[d$effort == look$effort, ]
    here <- here[order(here$m), ]
    lapply(c("max", "median"), function(over) {
      y <- replace(here[[over]], !is.finite(here[[over]]), NA)
      zero <- which(log & y == 0)
      y[zero] <- NA
      c(layer("dots", here$m[zero], rep(axis_foot(ylim), length(zero)), pch = 6, col = look$col, xpd = NA),
        layer("line", here$m, y, col = line_colour(look), lty = if (over == "max") look$dashes else "solid",
              lwd = look$lwd, lend = "butt"),
        layer("dots", here$m, y, col = look$col, pch = look$pch, cex = look$cex))
    })
  })
  list(args = list(main = title, log = "xy", xlim = range(all$m), ylim = ylim), at = unique(all$m), powers = "y",
       layers = unlist(unlist(layers, FALSE), FALSE))
}

# That of the actual error lies under the others.
line_colour <- function(look) grDevices::adjustcolor(look$col, if (look$effort == "actual") 0.3 else 1)
