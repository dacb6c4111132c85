# Computes predictions along one input (slices) or two (maps), with the others fixed, and draws them for plot().

# Adds what plot() draws to the result of slice_frame(): the data frames `curves`, `points` and `inducing`, each with a
# column `input`. `residuals` is TRUE if the points are partial residuals. If `certified`, the bands contain those of
# the exact GP. If `terms`, each term of the kernel has its own panels.
slices <- function(fit, inputs, at, level, n, points = TRUE, certified = FALSE, xlim = NULL, type = "response",
                   terms = FALSE) {
  fit <- without_transform(check_any_fit(fit, "x"), type)
  level <- check_level(level)
  refuse_if(terms && has_one_factor(with_own_terms(fit$kernel)), "terms",
            "= TRUE needs a sum, such as kernel_se() + kernel_periodic()")
  s <- slice_frame(fit, inputs, at, if (is.null(n) && certified && !terms) 200L else n, xlim, terms)
  x <- s$grid$x
  band <- function(lower, upper, var, noise = list(noise = 0)) {
    do.call(cbind, normal_ends(list(lower = lower, upper = upper, top = var), noise, level))
  }
  if (terms) {
    term <- vapply(s$variables, `[[`, 1L, "term")[match(s$grid$input, panel_names(s$variables))]
    p <- lapply(term_values(fit, x), function(v) v[cbind(seq_along(term), term)])
    shown <- list(mean = p$mean, sd = sqrt(p$var))
    f <- band(p$mean, p$mean, p$var)
  } else {
    p <- latent_at(if (certified) at_mode(fit) else fit, x, re = certified)
    ends <- list(mean_lower = p$mean, mean_upper = p$mean, sd_upper = sqrt(p$var))
    if (certified) ends <- certificate_of(fit, plain_rows(x))
    noise <- noise_at(fit, x)
    shown <- on_scale(fit, p, type, noise)
    var <- ends$sd_upper^2
    f <- band(ends$mean_lower, ends$mean_upper, var)
    is_f <- type == "link" || is.null(fit$transform) && fit_link(fit) == "identity"
    s$of <- c(if (is_f) "f" else "mean", "y")
    if (has_groups(model_of(fit)$kernel)) { # the prediction band is for a new level
      s$of <- c(paste(s$of[1L], if (certified) "of a new level" else "without group effects"), "y of a new level")
      if (!certified) var <- latent_at(fit, x)$var
    }
    response <- response_of(fit)
    y <- if (response$conjugate) {
      band(ends$mean_lower, ends$mean_upper, var, list(noise = noise, spread = noise_spread(fit, x)))
    } else if (response$reads == "numbers" && !certified) {
      vapply(c(1 - level, 1 + level) / 2, predictive_quantile, p$mean, response = response, size = 1, mu = p$mean,
             s = sqrt(var))
    }
    if (type == "response") {
      f[] <- response_given(response, f, noise)
      y <- untransformed(fit$transform, y)
    }
  }
  if (terms || is.null(y)) y <- NA * f
  s$curves <- data.frame(s$grid[c("input", "value", "label")], fit = shown$mean, se.fit = shown$sd, lwr = f[, 1L],
                         upr = f[, 2L], lwr_y = y[, 1L], upr_y = y[, 2L], outside = s$grid$outside)
  with_marks(s, fit, if (!terms) fit, points, type)
}

# Adds to the slices `s` the inducing points of `fit` (NULL if panels show terms) and the data of `base` or, with
# several inputs, partial residuals. Data are omitted if `base` lacks them, or if f is drawn on a link's scale.
with_marks <- function(s, base, fit, points, type) {
  s$residuals <- is.null(fit) || length(s$all) > 1L && response_of(base)$reads != "classes"
  if (points && !is.null(base$data) && (type == "response" || fit_link(base) == "identity")) {
    s$points <- partial_points(base, s, is.null(fit))
  }
  s$inducing <- inducing_marks(fit, s$variables)
  s
}

# Returns the inducing points to draw along numeric `variables`, a data frame with the columns `input` and `value`, or
# NULL if there is no fit or its posterior is that of all rows.
inducing_marks <- function(fit, variables) {
  if (is.null(fit$inducing) || is_exact(fit) || is_laplace_limit(fit)) return(NULL)
  do.call(rbind, lapply(variables, function(v) {
    if (is.null(v$values)) data.frame(input = v$name, value = value_along(v, fit$inducing))
  }))
}

# Returns points for at most `most` rows of data, without offsets, to draw beside the curves of `s` (terms of f if
# `terms`). With one input, or for classes, points are the responses. With several inputs, a point is the curve plus the
# residual (on the transformed scale); for a count or positive response, it is response * curve / prediction.
partial_points <- function(fit, s, terms, most = 2000L) {
  data <- fit$data
  rows <- training_inputs(data)
  keep <- evenly(length(rows$index), most)
  x <- rows$x[rows$index[keep], , drop = FALSE]
  response <- data$response[keep]
  censored <- if (has_ends(response_of(fit))) data$sites$y[keep] != data$sites$size[keep] else FALSE
  offset <- if (is.null(data$offset)) 0 else data$offset[keep]
  alone <- length(s$all) == 1L
  t <- fit$transform
  if (terms) {
    mean <- term_values(fit, x)$mean
    residual <- unname(response - offset) - fit$center - rowSums(mean)
  } else if (!alone) {
    predicted <- on_scale(fit, latent_at(fit, x), "response", noise_at(fit, x))$mean
  }
  do.call(rbind, lapply(s$variables, function(v) {
    value <- value_along(v, x)
    curve <- rows_of(s$curves, v)
    slice <- if (terms) 0 else if (nrow(curve) > 1L) stats::approx(curve$value, curve$fit, value)$y else curve$fit
    y <- if (terms) mean[, v$term] + residual else
      if (response_of(fit)$reads %in% c("classes", "ordered")) response else
        if (fit_link(fit) != "identity") response / exp(offset) * if (alone) 1 else slice / predicted else
          untransformed(t, if (alone) response - offset else transformed(t, slice) + (response - offset) -
                          transformed(t, predicted))
    # Spread points of the same level sideways by multiples of the golden ratio, which needs no random numbers.
    spread <- if (is.null(v$values)) 0 else 0.4 * ((seq_along(value) * 0.618034) %% 1 - 0.5)
    data.frame(input = v$name, value = value, y = y, at = value + spread, pch = ifelse(censored, 1, 16))
  }))
}

rows_of <- function(d, v) if (!is.null(d)) d[d$input == v$name, , drop = FALSE]

# Returns the fit, for type "link" without its transform, so that f is drawn on the transformed scale.
without_transform <- function(fit, type) if (type == "link") replace(fit, "transform", list(NULL)) else fit

# Returns list(mean, sd) of f (type "link") or of the mean response, for f ~ N(p$mean, p$var) and the variance `noise`.
on_scale <- function(fit, p, type, noise = 0) {
  if (type == "link") return(list(mean = p$mean, sd = sqrt(p$var)))
  found <- response_moments(response_of(fit), p$mean, p$var, noise)
  refuse_if(response_of(fit)$reads == "own" && all(is.na(found$mean)), "type", "\"response\"",
            "\"link\" for a family by gp_family() without `mean`")
  found
}

# Returns the range of the vertical axis, which contains means and points. For the bands, the axis goes beyond these by
# at most their range, or by the median width of the bands if that is larger.
slice_range <- function(s, interval) {
  bands <- s$curves[if (interval == "credible") c("lwr", "upr") else c("lwr_y", "upr_y")]
  inner <- range(s$curves$fit, s$points$y, finite = TRUE)
  room <- max(diff(inner), stats::median(bands[[2L]] - bands[[1L]], na.rm = TRUE))
  clip_to(inner + c(-room, room))(range(inner, unlist(bands), finite = TRUE))
}

slices_figure <- function(s, level, interval, own, certified, label) {
  range <- slice_range(s, interval)
  panels <- slice_panels(s, s$curves, label,
    if (!own) range else function(v) slice_range(lapply(s[c("curves", "points")], rows_of, v), interval),
    function(p) if (interval != "prediction") credible_layer(p),
    function(p) c(if (interval != "credible") curve_layers(p, c("lwr_y", "upr_y"), lty = 2), mean_layer(p)))
  keys_of <- sprintf("%s %% %s%s (%s)", format(100 * level), if (certified) "certified " else "",
                     c("credible", "prediction"), s$of %||% c("f", "y"))
  blue <- plot_colours["mean"]
  figure(panels, s$curves, foot = s$foot, keys = rbind(
    legend_keys("mean", blue, 1, 2), if (any(s$curves$outside)) legend_keys("beyond the data", blue, 3, 2),
    if (interval != "prediction") legend_keys(keys_of[1L], band_colour(), pch = 15, size = 2),
    if (interval != "credible") legend_keys(keys_of[2L], blue, 2, 1), mark_keys(s)))
}

# Returns a panel for each variable of the slices `s`. Its layers from back to front are below(piece) for each piece of
# the curve, the data, above(piece) and the inducing points. `ylim` may be a function of the variable.
slice_panels <- function(s, curves, ylab, ylim, below, above) {
  lapply(s$variables, function(v) {
    curve <- rows_of(curves, v)
    blocks <- nrow(curve) == 1L || !is.null(v$labels) # a level, or a single value, is a short horizontal line
    pieces <- if (!blocks) pieces_of(curve) else lapply(seq_len(nrow(curve)), function(i) {
      within.data.frame(curve[c(i, i), ], value <- value + c(-0.3, 0.3))
    })
    of_pieces <- function(make) unlist(lapply(pieces, make), FALSE)
    list(args = list(xlab = v$title %||% v$name, ylab = ylab,
                     xlim = range(curve$value) + if (blocks) c(-0.5, 0.5) else 0,
                     ylim = if (is.function(ylim)) ylim(v) else ylim),
         levels = if (!is.null(v$labels)) curve$label, ticks = variable_ticks(v, range(curve$value)),
         layers = c(of_pieces(below), data_layer(rows_of(s$points, v)), of_pieces(above),
                    if (!is.null(s$inducing)) layer("tick", rows_of(s$inducing, v)$value, lwd = 1.5,
                                                    col = plot_colours["inducing"])))
  })
}

# Splits a curve into pieces inside and outside the range of the data. Neighbouring pieces share their end point.
pieces_of <- function(curve) {
  if (!any(curve$outside)) return(list(curve))
  ends <- cumsum(rle(curve$outside)$lengths)
  outside <- curve$outside[ends]
  from <- c(1L, ends[-length(ends)] + 1L)
  Map(function(from, to, outside) `$<-`(curve[from:to, ], "outside", outside),
      pmax(1, from - outside), pmin(nrow(curve), ends + outside), outside)
}

credible_layer <- function(p, lower = "lwr", upper = "upr", col = band_colour(if (p$outside[1L]) 0.15 else 0.3)) {
  layer("band", p$value, p[[lower]], y1 = p[[upper]], col = col)
}

curve_layers <- function(p, columns, ..., col = plot_colours["mean"]) {
  unlist(lapply(columns, function(column) layer("line", p$value, p[[column]], ..., col = col)), FALSE)
}

mean_layer <- function(p, y = "fit", col = plot_colours["mean"], lty = 1) {
  curve_layers(p, y, lwd = 2, lty = if (p$outside[1L]) 3 else lty, col = col)
}

#' @rdname partial_dependence
#' @param x,object A result of `partial_dependence()`.
#' @export
plot.pfdtc_dependence <- plot_table

#' @rdname partial_dependence
#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_dependence <- autoplot_table

# Returns a figure of the partial dependence: the average with a band of 2 sd, and the certified interval, if any.
figure_of_table.pfdtc_dependence <- function(x, log = NULL) {
  labels <- if (!is.numeric(x[[1L]])) as.character(x[[1L]])
  certified <- !is.null(x$mean_lower) && !anyNA(x$mean_lower)
  curve <- data.frame(input = names(x)[1L], value = if (is.null(labels)) x[[1L]] else seq_along(labels),
                      label = labels %||% NA_character_, fit = x$mean, lwr = x$mean - 2 * x$sd,
                      upr = x$mean + 2 * x$sd, outside = FALSE)
  if (certified) curve[c("mean_lower", "mean_upper")] <- x[c("mean_lower", "mean_upper")]
  panels <- slice_panels(
    list(variables = list(list(name = names(x)[1L], labels = labels))), curve[order(curve$value), ], attr(x, "label"),
    range(curve$lwr, curve$upr, finite = TRUE), credible_layer, function(p) {
      c(if (certified) curve_layers(p, c("mean_lower", "mean_upper"), lwd = 3.5, col = plot_colours["certified"]),
        mean_layer(p))
    })
  keys <- legend_keys(c("average", "\u00b1 2 sd", "certified: exact average"),
                      c(plot_colours["mean"], band_colour(), plot_colours["certified"]), c(1, NA, 1), c(2, NA, 3.5),
                      c(NA, 15, NA), c(1, 2, 1))
  figure(panels, x, keys[c(TRUE, TRUE, certified), ])
}

# Returns a map as list(map, unknown, rows, outline, title, asp, ticks, foot). `map` is the value of plot(), `unknown`
# marks cells whose mean is left blank, and `rows` has the inputs of the data. For coordinates, `outline` is the convex
# hull of the rows, and `asp` the aspect ratio (else NA). `ticks` has both axes' ticks, `foot` the text below.
map_table <- function(fit, inputs, at, n, points, type) {
  n <- if (is.null(n)) 100L else check_count(n, "n", min = 2)
  x <- slice_rows(fit)
  all <- fit_variables(fit)
  numeric <- Filter(function(v) is.null(v$values), all)
  # The default axes are the two variables with the longest ranges in lengthscales. Longitude is horizontal.
  axes <- choose_variables(if (is.null(inputs)) numeric else all, inputs, x, fit$kernel, most = 2L)
  if (is.null(inputs) && length(axes) < 2L) axes <- utils::head(numeric, 2L)
  refuse_if(length(axes) != 2L || !all(vapply(axes, function(v) is.null(v$values), NA)), "inputs",
            describe(inputs), "two numeric variables for a map", message = if (is.null(inputs)) sprintf(
              "A map needs two numeric `inputs`; the fit has %d.", length(numeric)))
  if (is.null(inputs) && are_coordinates(rev(names(axes)))) axes <- rev(axes)
  centre <- slice_centre(fit, all, at)
  value <- do.call(expand.grid, lapply(axes, function(v) {
    ends <- range(value_along(v, x))
    seq(ends[1L], ends[2L], length.out = n)
  }))
  grid <- centre[rep(1L, nrow(value)), , drop = FALSE]
  for (k in 1:2) grid <- set_along(axes[[k]], grid, value[[k]])
  p <- latent_at(fit, grid, re = FALSE)
  shown <- on_scale(fit, p, type, noise_at(fit, grid))
  names <- names(axes)
  asp <- map_asp(axes, value[[2L]])
  data <- if (!is.null(fit$data)) do.call(cbind, lapply(unname(axes), value_along, fit$data$x))
  corners <- if (!is.na(asp) && !is.null(data)) grDevices::chull(data)
  list(map = stats::setNames(data.frame(value, shown$mean, shown$sd), c(names, "fit", "se.fit")),
       unknown = sqrt(p$var) > 0.7 * sqrt(kernel_diagonal(smooth_part(fit$kernel), grid)),
       rows = if (points && !is.null(data)) data[evenly(nrow(data), 2000L), , drop = FALSE],
       title = if (fit_link(fit) == "identity") paste("mean of", response_name(fit)) else slice_label(fit, type),
       outline = if (!is.null(corners)) data[c(corners, corners[1L]), , drop = FALSE], asp = asp,
       ticks = Map(variable_ticks, axes, lapply(value, range)), foot = slices_foot(all, centre, names, axes = 2L))
}

# Returns the aspect ratio if the variables are coordinates, by their names or by sphere(), else NA. A degree of
# longitude is cos(latitude) times as long as a degree of latitude.
map_asp <- function(shown, vertical) {
  names <- if (length(c(shown[[1L]]$axis, shown[[2L]]$axis)) == 2L) c("lon", "lat") else names(shown)
  if (!are_coordinates(names)) return(NA)
  middle <- mean(range(vertical))
  if (grepl("^lat", names[2L], TRUE) && abs(middle) < 85) 1 / cos(middle * pi / 180) else 1
}

# Returns a figure of two maps, of the mean and of its sd, each with a key of its colours.
map_figure <- function(s) {
  map <- s$map
  ends <- lapply(map[1:2], range)
  panel <- function(value, title, palette) {
    levels <- pretty(if (all(is.na(value))) map$fit else value[is.finite(value)], 8L)
    k <- length(levels) - 1L
    colours <- grDevices::hcl.colors(k, palette, rev = TRUE)
    right <- ends[[1L]][2L] + c(0.04, 0.09) * diff(ends[[1L]])
    at <- seq(ends[[2L]][1L], ends[[2L]][2L], length.out = k + 1L)
    named <- seq(1L, k + 1L, by = ceiling(k / 8))
    list(args = list(main = title, xlab = names(map)[1L], ylab = names(map)[2L], xlim = ends[[1L]], ylim = ends[[2L]],
                     asp = s$asp, las = 1, xaxs = "i", yaxs = "i"),
         right = 4.5, ticks = s$ticks[[1L]], yticks = s$ticks[[2L]], layers = c(
           layer("raster", map[[1L]], map[[2L]], z = value, breaks = levels, colours = colours),
           if (!is.null(s$outline)) layer("line", s$outline[, 1L], s$outline[, 2L], col = "grey40", lty = 3),
           if (!is.null(s$rows)) data_layer(data.frame(at = s$rows[, 1L], y = s$rows[, 2L]), 0.6),
           layer("box", right[1L], at[-(k + 1L)], x1 = right[2L], y1 = at[-1L], col = colours, border = NA, xpd = NA),
           layer("text", rep(right[2L], length(named)), at[named], labels = format(levels)[named], pos = 4,
                 offset = 0.25, cex = 0.8, xpd = NA)))
  }
  figure(list(panel(replace(map$fit, s$unknown, NA), s$title, "Blues 3"),
              panel(map$se.fit, "standard deviation", "Oranges")), map, shape = 1:2, foot = s$foot)
}
