#' Plot certificates
#'
#' For one fit, draws where [certify()] guarantees that the exact GP lies. For a list of fits with different numbers of
#' inducing points, draws the largest possible errors beside the actual ones.
#'
#' One fit: as [plot.gp_fit()]. The exact mean lies in the filled orange band, the exact credible band between the
#' orange dashed lines. A list: median (solid) and maximum (dashed) of the certified errors over `newdata`, on
#' logarithmic axes, where triangles are zeros. The exact GP is black: for a non-Gaussian likelihood, its Laplace
#' approximation.
#'
#' @param fits A fit, or a list of fits of the same data and hyperparameters.
#' @param newdata Rows to evaluate at. Default: `n` points over the range of each input; for a list the training rows.
#' @param effort Effort of [certify()]. Default: `"reference"` for one fit, all three for a list.
#' @param exact A [gp_exact()] fit of the same model, or `FALSE`. By default it is computed for at most 500 different
#'   rows, with `TRUE` for any number.
#' @param level,inputs,at,n,points,type For one fit, as in [plot.gp_fit()].
#' @param ... Arguments of [plot.default()].
#' @param reference From [reference()], for all fits. Default: that of each fit, computed if it has none.
#' @param plot `FALSE` returns the data without drawing, for `autoplot()`.
#' @return Invisibly, a data frame of class `pfdtc_certificate`, without offsets. For one fit: the columns of
#'   [plot.gp_fit()] and [certify()]; `lwr_certified`, `upr_certified`, which contain the exact credible band; and for
#'   the exact GP, or `NA`, `exact`, `se.exact`, `lwr_exact`, `upr_exact`. For a list: `fit`, `method`, `m`, `effort`
#'   (`"actual"` for actual errors), `what` (`"mean"` or `"sd"`), `median` and `max`.
#' @section Errors and invariants: class `pfdtc_error_input` if fits, `exact` or `reference` differ in data or
#'   hyperparameters. Exact values lie between their bounds. Random numbers and `par()` are as before.
#' @seealso [certify()] for the numbers, [plot_fits()]
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
#' Draws what [plot_certificate()] returned or, for a result of [certify()], the certified interval of the exact mean
#' and two of its sds at each row, in the order of the means.
#'
#' @param object,x A result of [plot_certificate()] or [certify()].
#' @param ... For `plot()`, arguments of [plot.default()].
#' @return A ggplot; for `plot()`, `x` invisibly.
#' @seealso [plot_certificate()], [certify()]
#' @examples
#' fit <- gp_dtc(dist ~ speed, cars, m = 3)
#' plot(certify(fit))
#' if (requireNamespace("ggplot2", quietly = TRUE)) ggplot2::autoplot(certify(fit))
#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_certificate <- function(object, ...) {
  check_dots_empty(list(...), "object")
  ggplot_figure(certificate_figure(object))
}

#' @rdname autoplot.pfdtc_certificate
#' @export
plot.pfdtc_certificate <- function(x, ...) {
  draw_figure(certificate_figure(x, list(...)$log), list(...))
  invisible(x)
}

certificate_figure <- function(out, log = NULL) {
  about <- attr(out, "figure")
  class(out) <- "data.frame"
  columns <- if (is.null(about)) c("mean", "mean_lower", "mean_upper", "sd_upper") else
    if (identical(about, "errors")) c("method", "m", "effort", "what", "median", "max") else c("exact", "mean_lower")
  if (!all(columns %in% names(out))) {
    abort_input("object", "some of its columns", "all columns that plot_certificate() or certify() returned")
  }
  if (is.null(about)) return(certified_rows_figure(out))
  if (!identical(about, "errors")) return(certified_curves_figure(out, about))
  certified_errors_figure(out, is.null(log) || grepl("y", log, fixed = TRUE))
}

# Draws the rows of certify() in the order of their means. Intervals without an end are cut off.
certified_rows_figure <- function(d, most = 300L) {
  shown <- d[is.finite(d$mean), ]
  if (!nrow(shown)) abort_input("object", "a certificate without complete rows", "a certificate of at least one row")
  shown <- shown[order(shown$mean), ][evenly(nrow(shown), most), ]
  middle <- range(shown$mean + 2 * shown$sd, shown$mean - 2 * shown$sd)
  range <- middle + c(-0.5, 0.5) * diff(middle)
  inside <- function(v) pmin(pmax(v, range[1L]), range[2L])
  lower <- inside(shown$mean_lower)
  upper <- inside(shown$mean_upper)
  at <- seq_along(lower)
  layers <- c(layer("segment", at, inside(lower - 2 * shown$sd_upper), x1 = at, y1 = inside(upper + 2 * shown$sd_upper),
                    col = band_colour(), lwd = 2),
              layer("segment", at, lower, x1 = at, y1 = upper, col = certified_colour, lwd = 5, lend = 2),
              layer("dots", at, shown$mean, pch = 16, cex = 0.5, col = plot_colours["mean"]))
  panel <- list(args = list(xlab = "row, in order of the mean", ylab = "posterior mean", xlim = range(at),
                            ylim = range(lower - 2 * shown$sd, upper + 2 * shown$sd, finite = TRUE)), layers = layers)
  keys <- legend_keys(c("mean", "certified: exact mean", "certified: exact mean and 2 sd"),
                      c(plot_colours["mean"], certified_colour, band_colour()), c(NA, 1, 1), c(NA, 5, 2),
                      c(16, NA, NA), c(0.6, 1, 1))
  figure(list(panel), d, keys)
}

# Returns the exact fit to draw, or NULL.
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
    return(if (response_of(one)$conjugate) fit_of_posterior(exact_of_fit(one), one$data) else
      with_fixed_seed(laplace_reference(one, one$data, nrow(one$data$x))))
  }
  check_exact_given(exact, "plot_certificate")
  for (fit in fits) exact <- check_exact(exact, fit)
  exact
}

# Returns the number of points that a posterior rests on.
size_of_fit <- function(fit) if (is.null(fit$m)) nrow(fit$x) else fit$m

# ---- one fit --------------------------------------------------------------------------------------------------------

certified_curves <- function(fit, newdata, inputs, at, level, n, points, effort, exact, reference, type) {
  effort <- check_choice(if (is.null(effort)) "reference" else effort, c("reference", "fast", "tight"), "effort")
  base <- without_transform(comparison_base(list(fit), exact), type)
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
  noise <- noise_at(fit, x)
  response <- type == "response"
  certificate <- certificate_of(fit, plain_rows(x), effort, reference)
  if (response && !is.null(fit$transform)) certificate <- with_transformed(certificate, fit, noise)
  ends <- c("mean_lower", "mean_upper")
  of_response <- intersect(c("response_lower", "response_upper", "fit_lower", "fit_upper"), names(certificate))
  shown_ends <- certificate[if (response && length(of_response)) of_response else ends]
  p <- latent_at(fit, x)
  truth <- if (is.null(exact)) list(mean = NA_real_, var = NA_real_) else latent_at(exact, x)
  z <- stats::qnorm((1 + level) / 2)
  link <- if (response) function(f) response_given(response_of(fit), f, noise) else identity
  band <- function(mean, sd) link(mean + z * sd)
  names <- vapply(shown, `[[`, "", "name")
  data <- data.frame(
    input = rep(names, vapply(grids, function(g) nrow(g$x), 1L)), value = part("value"), label = part("label"),
    fit = on_scale(fit, p, type, noise)$mean, se.fit = sqrt(p$var), lwr = band(p$mean, -sqrt(p$var)),
    upr = band(p$mean, sqrt(p$var)), stats::setNames(shown_ends, ends), certificate[c("sd_lower", "sd_upper")],
    lwr_certified = band(certificate$mean_lower, -certificate$sd_upper),
    upr_certified = band(certificate$mean_upper, certificate$sd_upper), exact = on_scale(fit, truth, type, noise)$mean,
    se.exact = sqrt(truth$var), lwr_exact = band(truth$mean, -sqrt(truth$var)),
    upr_exact = band(truth$mean, sqrt(truth$var)))
  with_points <- points && !is.null(base$data) && has_partial_response(fit, type)
  figure <- list(variables = shown, points = if (with_points) partial_points(base, all, shown, data),
                 inducing = inducing_marks(fit, shown), level = level, response = slice_label(fit, type),
                 residuals = length(all) > 1L && response_of(base)$reads != "classes",
                 foot = if (is.null(newdata)) slices_foot(all, centre, names, if (is.null(inputs)) length(all) else 0L))
  structure(data, class = c("pfdtc_certificate", "data.frame"), figure = figure, effort = effort)
}

# Wide bands are cut off at the height of the other parts above and below them.
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
  percent <- paste(format(100 * s$level), "% credible")
  orange <- certified_colour
  keys <- rbind(
    legend_keys("fit's mean", plot_colours["mean"], 1, 2),
    legend_keys(paste("fit's", percent), NA, pch = 22, size = 2, bg = band_colour()),
    if (has_exact) legend_keys(c("exact mean", paste("exact", percent)), "#000000", c(1, 3), 1),
    legend_keys("certified: exact mean", orange, NA, 2, 22, 1.6, grDevices::adjustcolor(orange, 0.3)),
    legend_keys(paste("certified: exact", percent), orange, 2, 2),
    if (!is.null(s$points)) data_key(isTRUE(s$residuals)), if (!is.null(s$inducing)) inducing_key())
  k <- length(panels)
  figure(panels, data, keys, list(seg.len = 1.8, ncol = ceiling(nrow(keys) / 2)), cex = if (k > 1L) 0.85 else 1,
         par = panels_par(rev(grDevices::n2mfrow(k)), top = 2.8), foot = s$foot)
}

# Bands without an end are cut at `far`, beyond the panel, because they cannot be filled.
certified_bands <- function(p, far) {
  band <- function(lower, upper, col) {
    inside <- function(v) pmin(pmax(v, far[1L]), far[2L])
    layer("band", p$value, inside(p[[lower]]), y1 = inside(p[[upper]]), col = col)
  }
  c(band("mean_lower", "mean_upper", grDevices::adjustcolor(certified_colour, 0.3)), band("lwr", "upr", band_colour()))
}

# These lines are wide, so that they can be seen below the exact ones if the certificate is narrow.
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

# Returns the certified errors at all rows, for each effort that the kept parts of the fit allow.
certified_by_effort <- function(fit, new, efforts, reference) {
  if (is.null(reference)) reference <- fit$reference
  if (is.null(fit$data) && !is_exact(fit)) efforts <- if (!is.null(reference)) intersect(efforts, "reference")
  if (is.null(reference) && !is_exact(fit) && any(efforts != "fast")) {
    reference <- with_fixed_seed(reference(fit))
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

# Lines and symbols fit into one another, because a certificate may equal the actual error. Dashes are in units of the
# line width: all have the same length.
effort_looks <- data.frame(
  effort = c("actual", "fast", "reference", "tight"), col = c("#000000", "#E69F00", "#0072B2", "#CC79A7"),
  label = c("actual error", "certified, fast", "certified, reference", "certified, tight"), pch = c(16L, 2L, 0L, 5L),
  cex = c(0.7, 1.1, 1.4, 1.1), lwd = c(4.5, 2.25, 2.25, 1.125), dashes = c("21", "42", "42", "84"))

# `log` is TRUE for a logarithmic vertical axis.
certified_errors_figure <- function(data, log) {
  looks <- effort_looks[effort_looks$effort %in% data$effort, ]
  methods <- unique(data$method)
  panels <- unlist(lapply(methods, function(method) {
    lapply(c("mean", "sd"), function(what) {
      title <- if (length(methods) > 1L) paste0(posterior_title(list(method = method)), ": ", what) else
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
         par = panels_par(c(length(methods), 2L), c(2, 3.4, 1.6, 0.6), 2.8, c(1.4, 1.4), c(2.1, 0.6, 0)))
}

# `all` sets the axes. Zeros stand at the lower end of a logarithmic axis.
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

# The line of the actual error lies below the others.
line_colour <- function(look) grDevices::adjustcolor(look$col, if (look$effort == "actual") 0.3 else 1)
