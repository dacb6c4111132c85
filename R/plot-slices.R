# Slices through a fit: the data, and the figure of plot().

# Returns list(variables, a panel each; curves, points, inducing: data frames with a column `input`; residuals: are the
# points partial residuals? foot: text below the figure). `type`: "response" or "link". With `terms` a panel is a term
# of the kernel along a variable that the term reads; at most 16 are shown.
slices <- function(fit, inputs, at, level, n, points = TRUE, certified = FALSE, xlim = NULL, type = "response",
                   terms = FALSE) {
  fit <- without_transform(check_any_fit(fit, "x"), type)
  level <- check_level(level)
  if (!is.null(n)) n <- check_count(n, "n", min = 2)
  if (terms && has_one_factor(with_own_terms(fit$kernel))) {
    abort_input("terms", "TRUE for a kernel of one factor", "FALSE",
                hint = "Only sums such as kernel_se() + kernel_periodic() have terms.")
  }
  x <- slice_rows(fit)
  all <- fit_variables(fit)
  centre <- slice_centre(fit, all, at)
  panels <- if (terms && is.null(inputs)) all else choose_variables(all, inputs, x, fit$kernel)
  if (terms) panels <- term_panels(with_own_terms(fit$kernel), panels)
  if (!length(panels)) abort_input("inputs", describe(inputs), "variables that some term reads")
  shown <- if (terms) utils::head(panels, 16L) else panels
  xlim <- check_xlim(xlim, shown)
  curves <- do.call(rbind, lapply(shown, function(v) {
    size <- if (!is.null(n)) n else if (certified && !terms) 200L else
      slice_points(fit, v, c(xlim[[v$name]], x[, v$columns]))
    grid <- slice_grid(v, centre, x, size, xlim[[v$name]])
    if (terms) term_curve(v, fit, grid, level) else slice_curve(v, fit, grid, level, certified, type)
  }))
  points <- points && has_partial_response(fit, type)
  list(variables = shown, curves = curves, residuals = terms || length(all) > 1L && response_of(fit)$reads != "classes",
       points = if (points) if (terms) term_points(fit, shown) else partial_points(fit, all, shown, curves),
       inducing = if (!terms) inducing_marks(fit, shown),
       foot = slices_foot(all, centre, panel_names(shown), if (terms) length(panels) else if (is.null(inputs))
         length(all) else 0L))
}

# Names a panel by its term, and by its variable too if the term reads several.
term_panels <- function(kernel, variables) {
  leaves <- kernel$leaves
  names <- term_names(kernel)
  panels <- lapply(seq_along(kernel$terms), function(t) {
    read <- unlist(lapply(leaves[kernel$terms[[t]]$leaves], `[[`, "inputs"))
    of_term <- Filter(function(v) any(v$columns %in% read), variables)
    lapply(of_term, function(v) {
      v$term <- t
      v$name <- if (length(of_term) > 1L) sprintf("%s: %s", names[t], v$name) else names[t]
      v
    })
  })
  unlist(panels, recursive = FALSE)
}

# Partial residuals of a term: its mean at each row plus the residual of the row.
term_points <- function(fit, shown) {
  rows <- rows_to_draw(fit)
  mean <- term_values(fit, rows$x)$mean
  residual <- unname(rows$y) - fit$center - rowSums(mean)
  do.call(rbind, lapply(shown, function(v) point_frame(v, value_along(v, rows$x), mean[, v$term] + residual)))
}

term_curve <- function(v, fit, grid, level) {
  p <- term_values(fit, grid$x)
  mean <- p$mean[, v$term]
  var <- p$var[, v$term]
  curve_frame(v, grid, list(mean = mean, sd = sqrt(var)), normal_band(mean, var, level)[, 2:3, drop = FALSE])
}

# With `certified` the bands contain those of the exact GP.
slice_curve <- function(v, fit, grid, level, certified, type) {
  p <- latent_at(fit, grid$x)
  ends <- list(mean_lower = p$mean, mean_upper = p$mean, sd_upper = sqrt(p$var))
  if (certified) ends <- certificate_of(fit, plain_rows(grid$x))
  band <- function(noise) {
    normal_band(p$mean, ends$sd_upper^2 + noise, level, ends$mean_lower, ends$mean_upper)[, 2:3, drop = FALSE]
  }
  noise <- noise_at(fit, grid$x)
  f <- band(0)
  y <- if (response_of(fit)$conjugate) band(noise)
  if (type == "response") {
    f[] <- response_given(response_of(fit), f, noise)
    y <- untransformed(fit$transform, y)
  }
  curve_frame(v, grid, on_scale(fit, p, type, noise), f, y)
}

# `f` and `y` have the lower and upper ends of the bands.
curve_frame <- function(v, grid, shown, f, y = NA * f) {
  if (is.null(y)) y <- NA * f
  data.frame(input = v$name, value = grid$value, label = grid$label, fit = shown$mean, se.fit = shown$sd, lwr = f[, 1L],
             upr = f[, 2L], lwr_y = y[, 1L], upr_y = y[, 2L], outside = grid$outside)
}

# Returns some rows of the data, with modelled responses less their offsets.
rows_to_draw <- function(fit, most = 2000L) {
  data <- fit$data
  rows <- training_inputs(data)
  keep <- evenly(length(rows$index), most)
  list(keep = keep, x = rows$x[rows$index[keep], , drop = FALSE],
       y = data$response[keep] - if (is.null(data$offset)) 0 else data$offset[keep])
}

point_frame <- function(v, value, y) {
  data.frame(input = v$name, value = value, y = y, at = if (is.null(v$values)) value else spread(value))
}

partial_points <- function(fit, all, shown, curves) {
  rows <- rows_to_draw(fit)
  alone <- length(all) == 1L
  p <- if (!alone) latent_at(fit, rows$x)
  do.call(rbind, lapply(shown, function(v) {
    curve <- rows_of(curves, v)
    value <- value_along(v, rows$x)
    slice <- if (nrow(curve) > 1L) stats::approx(curve$value, curve$fit, value)$y else curve$fit
    point_frame(v, value, partial_response(fit, slice, rows, p))
  }))
}

# The rows of an exact posterior are not marked as inducing points.
drawn_points <- function(fit) {
  if (!is_exact(fit) && !is_laplace_limit(fit)) fit$inducing
}

inducing_marks <- function(fit, shown) {
  if (is.null(drawn_points(fit))) return(NULL)
  do.call(rbind, lapply(shown, function(v) {
    if (is.null(v$values)) data.frame(input = v$name, value = fit$inducing[, v$columns])
  }))
}

panel_names <- function(shown) vapply(shown, `[[`, "", "name")

rows_of <- function(d, v) if (!is.null(d)) d[d$input == v$name, , drop = FALSE]

# ---- the response's scale -------------------------------------------------------------------------------------------

fit_link <- function(fit) if (response_of(fit)$conjugate) "identity" else response_of(fit)$link_name

# Returns a fit to the transformed response for type "link": what is drawn then is f on its own scale.
without_transform <- function(fit, type) if (type == "link") replace(fit, "transform", list(NULL)) else fit

# Returns list(mean, sd) of f, or of the mean response averaged over f. `noise`: variances with Gaussian noise.
on_scale <- function(fit, p, type, noise = 0) {
  if (type == "link") return(list(mean = p$mean, sd = sqrt(p$var)))
  response_moments(response_of(fit), p$mean, p$var, noise)
}

# Shares of successes are drawn as they are, rates in proportion to the slice, numbers at the slice plus their residual.
# `p` is the posterior at the rows, NULL for a single variable.
# With a transform both are on its scale, and the sum is brought back.
partial_response <- function(fit, slice, rows, p) {
  if (response_of(fit)$reads == "classes") return(fit$data$response[rows$keep])
  if (fit_link(fit) == "identity") {
    t <- fit$transform
    if (!is.null(p)) {
      mean <- transformed(t, on_scale(fit, p, "response", noise_at(fit, rows$x))$mean)
      rows$y <- transformed(t, slice) + rows$y - mean
    }
    return(untransformed(t, rows$y))
  }
  offset <- if (is.null(fit$data$offset)) 0 else fit$data$offset[rows$keep]
  fit$data$response[rows$keep] / exp(offset) * if (is.null(p)) 1 else slice / exp(p$mean + p$var / 2)
}

# A fit without its data has no rows to draw, and a class or a count of 0 no finite value on the link's scale.
has_partial_response <- function(fit, type) {
  !is.null(fit$data) && (type == "response" || fit_link(fit) == "identity")
}

response_name <- function(fit) if (is.null(fit$terms)) "y" else deparse1(fit$terms[[2L]])

# Returns the title of the vertical axis.
slice_label <- function(fit, type) {
  name <- response_name(fit)
  link <- fit_link(fit)
  if (link == "identity") return(if (type == "link" && !is.null(fit$transform)) paste("f, for", name) else name)
  if (type == "link") return(sprintf("%s of %s", link, name))
  if (link == "log") return(paste("rate of", name))
  success <- response_of(fit)$levels[2L]
  if (!is.null(success)) sprintf("P(%s = %s)", name, success) else "P(success)"
}

# ---- panels ---------------------------------------------------------------------------------------------------------

slice_range <- function(s, interval) {
  bands <- if (interval == "credible") c("lwr", "upr") else c("lwr_y", "upr_y")
  range(unlist(s$curves[bands]), s$points$y, finite = TRUE)
}

slices_figure <- function(s, level, interval, own, certified, label) {
  range <- slice_range(s, interval)
  panels <- lapply(s$variables, function(v) {
    here <- lapply(s[c("curves", "points", "inducing")], rows_of, v)
    args <- list(ylim = if (own) slice_range(here, interval) else range, ylab = label)
    slice_panel(v, here$curves, args, function(pieces) {
      c(unlist(lapply(pieces, band_layers, interval), FALSE), data_layer(here$points),
        unlist(lapply(pieces, mean_layer), FALSE), tick_layer(here$inducing$value))
    })
  })
  band <- paste0(format(100 * level), " % ", if (certified) "certified ")
  blue <- plot_colours["mean"]
  keys <- rbind(
    if (!is.null(s$points)) data_key(s$residuals), legend_keys("mean", blue, 1, 2),
    if (any(s$curves$outside)) legend_keys("beyond the data", blue, 3, 2),
    if (interval != "prediction") legend_keys(paste0(band, "credible (f)"), band_colour(), pch = 15, size = 2),
    if (interval != "credible") legend_keys(paste0(band, "prediction (y)"), blue, 2, 1),
    if (!is.null(s$inducing)) inducing_key())
  k <- length(panels)
  figure(panels, s$curves, keys, cex = if (k > 1L) 0.85, foot = s$foot,
         par = if (k > 1L) panels_par(grDevices::n2mfrow(k), top = 2.5))
}

# Draws a curve along a variable. Levels, and a single value, are blocks.
slice_panel <- function(v, curve, args, layers) {
  blocks <- nrow(curve) == 1L || !is.null(v$labels)
  pieces <- if (blocks) lapply(seq_len(nrow(curve)), function(i) widen(curve[i, ])) else pieces_of(curve)
  list(args = c(list(xlab = v$name, xlim = range(curve$value) + if (blocks) c(-0.5, 0.5) else 0), args),
       levels = if (!is.null(v$labels)) curve$label, blocks = blocks, layers = layers(pieces))
}

# Splits a curve at the ends of the data. Neighbouring pieces share their end point.
pieces_of <- function(curve) {
  if (is.null(curve$outside) || !any(curve$outside)) return(list(curve))
  runs <- rle(curve$outside)$lengths
  ends <- cumsum(runs)
  outside <- curve$outside[ends]
  Map(function(from, to, outside) {
    piece <- curve[from:to, ]
    piece$outside <- outside
    piece
  }, pmax(1, ends - runs + !outside), pmin(nrow(curve), ends + outside), outside)
}

# Turns a single value into a short line.
widen <- function(p) {
  p <- p[c(1L, 1L), ]
  p$value <- p$value + c(-0.3, 0.3)
  p
}

band_layers <- function(p, interval) {
  dashed <- function(y) layer("line", p$value, y, lty = 2, col = plot_colours["mean"])
  c(if (interval != "prediction") {
    layer("band", p$value, p$lwr, y1 = p$upr, col = band_colour(if (p$outside[1L]) 0.15 else 0.3))
  }, if (interval != "credible") c(dashed(p$lwr_y), dashed(p$upr_y)))
}

mean_layer <- function(p) {
  layer("line", p$value, p$fit, lwd = 2, lty = if (isTRUE(p$outside[1L])) 3 else 1, col = plot_colours["mean"])
}
