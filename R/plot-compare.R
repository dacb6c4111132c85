#' @rdname compare_fits
#' @param input The input of the horizontal axis. Default: that of largest range divided by lengthscale.
#' @param at,n,points As in [plot.gp_fit()].
#' @export
plot_fits <- function(fits, exact = NULL, newdata = NULL, input = NULL, at = NULL, n = 200, points = TRUE, ...) {
  check_fits_given(missing(fits), list(...), "plot_fits")
  fits <- label_fits(fits, posterior_title)
  base <- refuse_classes(comparison_base(fits, exact))
  n <- check_count(n, "n", min = 2)
  points <- check_flag(points, "points")
  if (is.null(newdata) || length(fit_variables(base)) == 1L) {
    s <- slice_frame(base, input, at, n, most = 1L)
    refuse_if(length(s$variables) != 1L, "input", describe(input), "one input")
    v <- s$variables[[1L]]
    if (!is.null(newdata) && is.null(v$values)) s$grid <- grid_of_rows(base, v$name, newdata)
    s$curves <- data.frame(input = v$name, value = s$grid$value, fit = latent_at(base, s$grid$x)$mean)
    s <- with_marks(s, without_transform(base, "link"), base, points, "link")
  } else {
    refuse_if(is.null(exact), "exact", "is missing", hint = "Give a fit by gp_exact() to draw errors at `newdata`.")
    x <- complete_rows(exact, newdata)
    s <- list(grid = grid_frame(NA_character_, NA_real_, NA_character_, x[evenly(nrow(x), 300L), , drop = FALSE]))
  }
  truth <- if (is.null(exact)) list(mean = NA_real_, var = NA_real_) else latent_at(exact, s$grid$x)
  value <- do.call(rbind, lapply(names(fits), function(panel) {
    p <- latent_at(fits[[panel]], s$grid$x)
    data.frame(panel = panel, s$grid[c("input", "value", "label")], fit = p$mean, se.fit = sqrt(p$var),
               exact = truth$mean, se.exact = sqrt(truth$var))
  }))
  draw_figure(comparison_figure(s, value, fits, base, !is.null(exact)), list(...))
}

# Checks that the fits can be compared. Returns the first of `exact` and `fits` that has data, for the axes' ranges.
comparison_base <- function(fits, exact) {
  columns <- lengths(lapply(fits, function(fit) fit$frame$columns))
  other <- columns[columns != columns[1L]]
  refuse_if(length(other), "fits", sprintf("have %d and %d inputs", columns[1L], other[1L]),
            hint = "Give fits of the same data.")
  check_exact(exact, fits, "plot_fits")
  candidates <- c(if (!is.null(exact)) list(exact), fits)
  Find(function(fit) !is.null(fit$data), candidates) %||% candidates[[1L]]
}

# Returns a figure with a panel for each fit. It shows the predictions of the fit and of the exact GP along the only
# variable of the slice `s`, or mean minus exact mean at rows if `s` has no variable. `value` has the predictions.
comparison_figure <- function(s, value, fits, base, has_exact) {
  d <- value
  by_row <- is.null(s$variables)
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
      panel <- list(args = list(xlab = "exact mean", ylab = "mean minus exact mean", ylim = range), layers = c(
        layer("box", at - broad, one$exact_lower, x1 = at + broad, y1 = one$exact_upper, border = NA, col = shade),
        layer("segment", at - broad, one$exact_middle, x1 = at + broad, y1 = one$exact_middle, lwd = 2, col = blue),
        layer("segment", at, one$fit_lower, x1 = at, y1 = one$fit_upper, lwd = 1.2, col = red),
        layer("dots", at, one$fit_middle, pch = 16, cex = 0.6, col = red)))
    } else {
      s$inducing <- inducing_marks(fits[[label]], s$variables)
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
  s$inducing <- unlist(lapply(fits, inducing_marks, s$variables))
  sd <- "\u00b1 2 sd"
  keys <- rbind(
    if (has_exact) rbind(legend_keys("exact mean", blue, 1, 2.5), legend_keys(sd, shade, pch = 15, size = 2)),
    legend_keys("fit's mean", red, if (by_row) NA else 1, 1.5, if (by_row) 16 else NA, 0.6),
    legend_keys(sd, red, if (by_row) 1 else 2, 1.2), mark_keys(s))
  k <- length(fits)
  figure(panels, value, keys, if (k <= 4L) c(k, 1L) else grDevices::n2mfrow(k), foot = s$foot)
}


#' Plot certificates
#'
#' For one fit, draws the certified intervals of the exact GP: the filled orange band contains its mean, and the orange
#' dashed lines contain its credible band. For a list of fits with different numbers of inducing points, draws certified
#' bounds on the errors of f together with the actual errors. Solid lines show the median over `newdata`, dashed lines
#' the maximum. On the log axes, downward triangles mark zeros. With a `family`, "exact" is Laplace's
#' approximation with all rows, and means are modes of f.
#' @param fits A fit with one f, or a list of fits of the same data and hyperparameters.
#' @param newdata Rows to draw, for a list or one numeric input. Default: for a list the training rows, else `n` values
#'   along each input.
#' @param effort Effort of [certify()]. Default: `"reference"` for one fit, all three for a list.
#' @param exact A [gp_exact()] fit of the same model, or `FALSE`. Default: computed if at most 500 rows are distinct;
#'   `TRUE`: always.
#' @param level,inputs,at,n,points,type For one fit, as in [plot.gp_fit()].
#' @param ... Arguments of [plot.default()].
#' @param reference A result of [reference()] for all fits. Default: the reference of each fit, or a new one.
#' @param plot `FALSE` returns the data without drawing, for `autoplot()`.
#' @return Invisibly, a data frame of class `pfdtc_certificate`. For one fit it has `input` to `upr` as [plot.gp_fit()]
#'   (`se.fit`: sd of f), the bounds of [certify()], a band that contains the exact credible band (`lwr_certified`,
#'   `upr_certified`), and the exact GP (`exact`, `se.exact`, `lwr_exact`, `upr_exact`). For a list, it has
#'   `fit`, `method`, `m`, and `median` and `max` of the `effort`'s bounds (or `"actual"` errors) of `what`: `"mean"` or
#'   `"sd"`.
#' @seealso [certify()], [plot_fits()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 3)
#' fit$reference <- reference(fit, m2 = 8)
#' plot_certificate(fit)
#' more <- update(fit, m = 5, kernel = fit$kernel, noise = fit$noise, hyper = "fixed")
#' plot_certificate(list(fit, more))
#' plot(certify(fit, effort = "fast"))
#' @export
plot_certificate <- function(fits, newdata = NULL, effort = NULL, exact = NULL, level = 0.95, inputs = NULL, at = NULL,
                             n = 200, points = TRUE, ..., reference = NULL, plot = TRUE, type = c("response", "link")) {
  check_fits_given(missing(fits), list(...), "plot_certificate")
  refuse_if(inherits(newdata, "gp_fit"), "fits", "must be one list of fits",
            hint = "Write plot_certificate(list(<fit>, <fit>), ...).")
  plot <- check_flag(plot, "plot")
  type <- check_choice(type)
  if (inherits(fits, "gp_fit")) {
    fits <- check_any_fit(fits, "fits")
    exact <- exact_for_figure(list(fits), exact)
    out <- certified_curves(fits, newdata, inputs, at, check_level(level), check_count(n, "n", min = 2),
                            check_flag(points, "points"), effort, exact, reference, type)
  } else {
    fits <- label_fits(fits, function(fit) sprintf("%s, m = %d", fit$method, nrow(fit_points(fit))))
    for (i in seq_along(fits)[-1L]) check_same_model(fits[[i]], fits[[1L]], sprintf("fits[[%d]]", i), "fits[[1]]")
    out <- certified_errors_over_m(fits, newdata, effort, exact_for_figure(fits, exact), reference)
  }
  if (plot) draw_figure(figure_of_table(out, list(...)$log), list(...))
  invisible(out)
}

#' @rdname plot_certificate
#' @param x,object A result of `plot_certificate()` or [certify()]. For [certify()], a thick bar shows the certified
#'   interval of the exact mean at each row. A thin bar adds `2 sd_upper` both ways.
#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_certificate <- autoplot_table

#' @rdname plot_certificate
#' @export
plot.pfdtc_certificate <- plot_table

figure_of_table.pfdtc_certificate <- function(x, log = NULL) {
  about <- attr(x, "figure")
  class(x) <- "data.frame"
  columns <- if (is.null(about)) c("mean", "mean_lower", "mean_upper", "sd_upper") else
    if (identical(about, "errors")) c("method", "m", "effort", "what", "median", "max") else c("exact", "mean_lower")
  refuse_if(!all(columns %in% names(x)), "object", "lacks columns that plot_certificate() or certify() returned")
  if (is.null(about)) return(certified_rows_figure(x))
  if (!identical(about, "errors")) return(certified_curves_figure(x, about))
  certified_errors_figure(x, is.null(log) || grepl("y", log, fixed = TRUE))
}

# Draws certified intervals of at most `most` rows in the order of their means, cut off far outside mean +- 2 sd.
certified_rows_figure <- function(d, most = 300L) {
  shown <- d[is.finite(d$mean), ]
  refuse_if(!nrow(shown), "object", "has no complete row")
  shown <- shown[order(shown$mean), ][evenly(nrow(shown), most), ]
  range <- range(shown$mean + 2 * shown$sd, shown$mean - 2 * shown$sd)
  inside <- clip_to(range + c(-0.5, 0.5) * diff(range))
  lower <- inside(shown$mean_lower)
  upper <- inside(shown$mean_upper)
  at <- seq_along(lower)
  bar <- function(from, to, ...) layer("segment", at, from, x1 = at, y1 = to, ...)
  layers <- c(bar(inside(lower - 2 * shown$sd_upper), inside(upper + 2 * shown$sd_upper), col = band_colour(), lwd = 2),
              bar(lower, upper, col = plot_colours["certified"], lwd = 5, lend = 2),
              layer("dots", at, shown$mean, pch = 16, cex = 0.5, col = plot_colours["mean"]))
  panel <- list(args = list(xlab = "row, in order of the mean", ylab = "posterior mean",
                            ylim = range(lower - 2 * shown$sd, upper + 2 * shown$sd, finite = TRUE)), layers = layers)
  keys <- legend_keys(c("mean", "certified: exact mean", "certified: exact mean and 2 sd"),
                      c(plot_colours["mean"], plot_colours["certified"], band_colour()), c(NA, 1, 1), c(NA, 5, 2),
                      c(16, NA, NA), c(0.6, 1, 1))
  figure(list(panel), d, keys)
}

# Returns the exact fit to draw: `exact`, one of `fits`, a new fit (by default for at most `most` rows), or NULL.
exact_for_figure <- function(fits, exact, most = 500L) {
  if (!is.null(exact) && !is.logical(exact)) return(check_exact(exact, fits, "plot_certificate"))
  wanted <- !is.null(exact) && check_flag(exact, "exact")
  if (isFALSE(exact)) return(NULL)
  given <- Find(function(fit) is_exact(fit) || is_laplace_limit(fit), fits)
  if (!is.null(given)) return(given)
  one <- Find(function(fit) !is.null(fit$data), fits)
  if (is.null(one) && wanted) training_data(fits[[1L]], "fits")
  if (is.null(one) || !wanted && nrow(one$data$x) > most) return(NULL)
  if (response_of(one)$conjugate) return(fit_of_posterior(exact_of_fit(one), one$data))
  with_fixed_seed(laplace_reference(one, one$data, nrow(one$data$x)))
}

certified_curves <- function(fit, newdata, inputs, at, level, n, points, effort, exact, reference, type) {
  effort <- check_choice(effort %||% "reference", c("reference", "fast", "tight"), "effort")
  base <- without_transform(comparison_base(list(fit), exact), type)
  s <- slice_frame(base, inputs, at, n)
  if (!is.null(newdata)) {
    refuse_if(length(s$all) > 1L || !is.null(s$all[[1L]]$values), "newdata", "is only for fits of one numeric input",
              hint = "Slices go through `at`; for errors over rows: plot_certificate(list(fit), newdata).")
    s$grid <- grid_of_rows(fit, names(s$all), newdata)
  }
  noise <- noise_at(fit, s$grid$x)
  certificate <- certificate_of(fit, plain_rows(s$grid$x), effort, reference %||% fit$reference)
  response <- type == "response"
  if (response && !is.null(fit$transform)) certificate <- with_transformed(certificate, fit, noise)
  ends <- c("mean_lower", "mean_upper")
  of_response <- intersect(c("response_lower", "response_upper", "fit_lower", "fit_upper"),
                           names(certificate)[!vapply(certificate, is.matrix, TRUE)])
  p <- latent_at(at_mode(fit), s$grid$x)
  truth <- if (is.null(exact)) list(mean = NA_real_, var = NA_real_) else latent_at(exact, s$grid$x)
  link <- if (response) function(f) response_given(response_of(fit), f, noise) else identity
  band <- function(mean, sd, end) link(mean + end * stats::qnorm((1 + level) / 2) * sd)
  data <- data.frame(
    s$grid[c("input", "value", "label")], fit = on_scale(fit, p, type, noise)$mean, se.fit = sqrt(p$var),
    lwr = band(p$mean, sqrt(p$var), -1), upr = band(p$mean, sqrt(p$var), 1),
    stats::setNames(certificate[if (response && length(of_response)) of_response else ends], ends),
    certificate[c("sd_lower", "sd_upper")], lwr_certified = band(certificate$mean_lower, certificate$sd_upper, -1),
    upr_certified = band(certificate$mean_upper, certificate$sd_upper, 1),
    exact = on_scale(fit, truth, type, noise)$mean, se.exact = sqrt(truth$var),
    lwr_exact = band(truth$mean, sqrt(truth$var), -1), upr_exact = band(truth$mean, sqrt(truth$var), 1))
  s <- with_marks(c(s, list(curves = data)), base, fit, points, type)
  structure(data, class = c("pfdtc_certificate", "data.frame"), effort = effort,
            figure = c(s[setdiff(names(s), c("all", "grid", "curves"))],
                       list(level = level, response = slice_label(fit, type))))
}

# Draws the predictions along each input with the exact and the certified bands. A wide certified band is cut off: it
# extends the axis at each side by at most the height of the other bands.
certified_curves_figure <- function(data, s) {
  rest <- range(data$lwr, data$upr, data$lwr_exact, data$upr_exact, s$points$y, finite = TRUE)
  range <- clip_to(rest + c(-1, 1) * diff(rest))(range(rest, data$lwr_certified, data$upr_certified, finite = TRUE))
  has_exact <- !all(is.na(data$exact))
  far <- clip_to(range + c(-1, 1) * diff(range)) # cuts infinite ends, which cannot be filled
  cut <- setdiff(names(data), c("input", "value", "label"))
  drawn <- cbind(replace(data, cut, lapply(data[cut], far)), outside = FALSE)
  orange <- plot_colours["certified"]
  pale <- grDevices::adjustcolor(orange, 0.3)
  panels <- slice_panels(s, drawn, s$response, range, function(p) {
    c(credible_layer(p, "mean_lower", "mean_upper", pale), credible_layer(p))
  }, function(p) {
    c(curve_layers(p, c("mean_lower", "mean_upper"), lwd = 3.5, col = orange),
      curve_layers(p, c("lwr_certified", "upr_certified"), lwd = 2, lty = 2, col = orange), mean_layer(p),
      if (has_exact) c(curve_layers(p, "exact", col = "black"),
                       curve_layers(p, c("lwr_exact", "upr_exact"), lty = 3, col = "black")))
  })
  percent <- paste(format(100 * s$level), "% credible")
  keys <- rbind(legend_keys("fit's mean", plot_colours["mean"], 1, 2),
    legend_keys(paste("fit's", percent), NA, pch = 22, size = 2, bg = band_colour()),
    if (has_exact) legend_keys(c("exact mean", paste("exact", percent)), "#000000", c(1, 3), 1),
    legend_keys("certified: exact mean", orange, NA, 2, 22, 1.6, pale),
    legend_keys(paste("certified: exact", percent), orange, 2, 2), mark_keys(s))
  figure(panels, data, keys, rev(grDevices::n2mfrow(length(panels))), foot = s$foot)
}

certified_errors_over_m <- function(fits, newdata, effort, exact, reference) {
  known <- c("fast", "reference", "tight")
  refuse_if(!is.null(effort) && (!is.character(effort) || !length(effort)), "effort", describe(effort),
            paste("some of", list_quoted(known, "\"")))
  asked <- if (is.null(effort)) known else unique(vapply(effort, check_choice, "", known, "effort"))
  base <- comparison_base(fits, exact)
  new <- if (!is.null(newdata)) plain_rows(complete_rows(base, newdata)) else
    if (is.null(base$data) && is_exact(base)) plain_rows(base$x) else
      do.call(plain_rows, training_inputs(training_data(base)))
  truth <- if (!is.null(exact)) latent_at(exact, new$x)
  out <- Map(function(fit, label) {
    # Use each `effort` that the fit allows: all if the fit keeps its rows, only "reference" if it has a reference.
    own <- reference %||% fit$reference
    efforts <- if (!is.null(fit$data) || is_exact(fit)) asked else if (!is.null(own)) intersect(asked, "reference")
    if (is.null(own) && !is_exact(fit) && any(efforts != "fast")) own <- reference(fit)
    p <- latent_at(at_mode(fit), new$x)
    actual <- if (!is.null(truth)) list(actual = list(
      mean = abs(p$mean - truth$mean)[new$index], sd = abs(sqrt(p$var) - sqrt(truth$var))[new$index]))
    errors <- c(actual, lapply(stats::setNames(nm = efforts), function(effort) {
      certificate <- certificate_of(fit, new, effort, own)
      list(mean = certificate$mean_error,
           sd = pmax(certificate$sd - certificate$sd_lower, certificate$sd_upper - certificate$sd))
    }))
    if (!length(errors)) return(NULL)
    over <- function(f) vapply(errors, function(e) c(f(e$mean), f(e$sd)), numeric(2L))
    data.frame(fit = label, method = fit$method, m = nrow(fit_points(fit)), effort = rep(names(errors), each = 2L),
               what = c("mean", "sd"), median = c(over(stats::median)), max = c(over(max)))
  }, fits, names(fits))
  out <- do.call(rbind, unname(out))
  refuse_if(is.null(out), "fits", "have no data", hint = "Give `reference` or `exact`.")
  structure(out, class = c("pfdtc_certificate", "data.frame"), figure = "errors")
}

# Each `effort` of certify() has a line type and a symbol. A certified error may equal the actual one, so symbols fit
# inside one another. `dashes` are in units of the line width, so dashes of wide and narrow lines have equal lengths.
effort_looks <- data.frame(
  effort = c("actual", "fast", "reference", "tight"), col = c("#000000", "#E69F00", "#0072B2", "#CC79A7"),
  label = c("actual error", "certified, fast", "certified, reference", "certified, tight"), pch = c(16L, 2L, 0L, 5L),
  cex = c(0.7, 1.1, 1.4, 1.1), lwd = c(4.5, 2.25, 2.25, 1.125), dashes = c("21", "42", "42", "84"))

# Draws certified and actual errors against the number of inducing points. On a log axis, triangles stand for zeros.
certified_errors_figure <- function(data, log) {
  looks <- effort_looks[effort_looks$effort %in% data$effort, ]
  # The line of the actual error is pale, so that an equal certified error is visible on it.
  looks$line <- mapply(grDevices::adjustcolor, looks$col, ifelse(looks$effort == "actual", 0.3, 1))
  cases <- expand.grid(what = c("mean", "sd"), method = unique(data$method), stringsAsFactors = FALSE)
  panels <- Map(function(what, method) {
    all <- data[data$what == what, ] # rows of all methods: panels share their axes
    there <- c(all$median, all$max)
    there <- there[is.finite(there) & there > 0]
    ylim <- if (length(there)) range(there) else c(1e-16, 1)
    draw <- function(over, look) {
      here <- all[all$method == method & all$effort == look$effort, ]
      here <- here[order(here$m), ]
      y <- replace(here[[over]], !is.finite(here[[over]]), NA)
      zero <- which(log & y == 0)
      y[zero] <- NA
      foot <- ylim[1L] * (ylim[1L] / ylim[2L])^0.04 # draws zeros 4 % of the logarithmic axis below its end
      c(layer("dots", here$m[zero], rep(foot, length(zero)), pch = 6, col = look$col, xpd = NA),
        layer("line", here$m, y, col = look$line, lty = if (over == "max") look$dashes else "solid", lwd = look$lwd,
              lend = "butt"), layer("dots", here$m, y, col = look$col, pch = look$pch, cex = look$cex))
    }
    layers <- lapply(split(looks, seq_len(nrow(looks))), function(look) c(draw("max", look), draw("median", look)))
    title <- if (nrow(cases) > 2L) paste0(posterior_title(list(method = method)), ": ", what) else
      paste("posterior", what)
    list(args = list(main = title, log = "xy", xlim = range(all$m), ylim = ylim), ticks = list(at = unique(all$m)),
         layers = unlist(unname(layers), FALSE))
  }, cases$what, cases$method)
  zero <- log && any(data$median == 0)
  keys <- legend_keys(c(looks$label, "median", "maximum", if (zero) "zero"),
                      c(looks$col, "grey30", "grey30", if (zero) "grey30"),
                      c(rep(NA, nrow(looks)), 1L, 2L, if (zero) NA), 1.5, c(looks$pch, NA, NA, if (zero) 6L))
  figure(panels, data, keys, c(nrow(cases) / 2, 2L), list(xlab = "inducing points", ylab = "error"))
}
