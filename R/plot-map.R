# A fit over two of its inputs, as a map.

# Returns list(map, what plot() returns; n, its rows along each input; unknown, where the mean is left blank; rows, the
# inputs of the data; outline, their convex hull if the axes are coordinates; title; asp, the height of a unit relative
# to its width or NA; ticks, variable_ticks() of both axes; foot).
map_table <- function(fit, inputs, at, n, points, type) {
  n <- if (is.null(n)) 100L else check_count(n, "n", min = 2)
  x <- slice_rows(fit)
  all <- fit_variables(fit)
  axes <- map_variables(all, inputs, x, fit$kernel)
  centre <- slice_centre(fit, all, at)
  value <- do.call(expand.grid, stats::setNames(lapply(axes, function(v) {
    ends <- range(value_along(v, x))
    seq(ends[1L], ends[2L], length.out = n)
  }), vapply(axes, `[[`, "", "name")))
  grid <- centre[rep(1L, nrow(value)), , drop = FALSE]
  for (k in 1:2) grid <- set_along(axes[[k]], grid, value[[k]])
  p <- latent_at(fit, grid, re = FALSE)
  shown <- on_scale(fit, p, type, noise_at(fit, grid))
  names <- names(value)
  asp <- map_asp(axes, value[[2L]])
  data <- if (!is.null(fit$data)) cbind(value_along(axes[[1L]], fit$data$x), value_along(axes[[2L]], fit$data$x))
  corners <- if (!is.na(asp) && !is.null(data)) grDevices::chull(data)
  list(map = stats::setNames(data.frame(value, shown$mean, shown$sd), c(names, "fit", "se.fit")), n = n,
       unknown = sqrt(p$var) > 0.7 * sqrt(kernel_diagonal(fit$kernel, grid)),
       rows = if (points && !is.null(data)) data[evenly(nrow(data), 2000L), , drop = FALSE],
       title = if (fit_link(fit) == "identity") paste("mean of", response_name(fit)) else slice_label(fit, type),
       outline = if (!is.null(corners)) data[c(corners, corners[1L]), , drop = FALSE], asp = asp,
       ticks = Map(variable_ticks, axes, lapply(value, range)), foot = slices_foot(all, centre, names, axes = 2L))
}

# Returns two numeric variables: those given, or those along which f may vary most, longitude first.
map_variables <- function(all, inputs, x, kernel) {
  numeric <- Filter(function(v) is.null(v$values), all)
  shown <- if (!is.null(inputs)) choose_variables(all, inputs, x, kernel) else
    if (length(numeric) > 1L) choose_variables(numeric, NULL, x, kernel, most = 2L) else numeric
  if (is.null(inputs) && length(shown) < 2L) shown <- utils::head(numeric, 2L)
  if (length(shown) != 2L || !all(vapply(shown, function(v) is.null(v$values), NA))) {
    abort_input("inputs", if (is.null(inputs)) sprintf("%d numeric", length(numeric)) else describe(inputs),
                "two numeric variables for a map")
  }
  names <- vapply(shown, `[[`, "", "name")
  if (is.null(inputs) && grepl(vertical_names, names[1L], TRUE) && grepl(horizontal_names, names[2L], TRUE)) rev(shown)
  else shown
}

# Returns the aspect: coordinates have equal scales, and a degree of longitude shrinks by the cosine of the latitude.
map_asp <- function(shown, vertical) {
  names <- panel_names(shown)
  of_place <- length(c(shown[[1L]]$axis, shown[[2L]]$axis)) == 2L
  if (of_place) names <- c("lon", "lat")
  if (!grepl(horizontal_names, names[1L], TRUE) || !grepl(vertical_names, names[2L], TRUE)) return(NA)
  middle <- mean(range(vertical))
  if (grepl("^lat", names[2L], TRUE) && abs(middle) < 85) 1 / cos(middle * pi / 180) else 1
}

# Draws two maps, of the mean and of its sd, each with its key at the right.
draw_map <- function(s, args) {
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  outer <- c(foot_height(s$foot), 0)
  graphics::par(c(panels_par(c(1L, 2L), c(4.2, 4.2, 1.8, 4.5), 0, outer, c(2.8, 0.7, 0)), las = 1))
  map <- s$map
  panel <- function(value, title, palette) {
    levels <- pretty(value[is.finite(value)], 8L)
    colours <- grDevices::hcl.colors(length(levels) - 1L, palette, rev = TRUE)
    look <- utils::modifyList(list(xlab = names(map)[1L], ylab = names(map)[2L], main = title, cex.main = 1,
                                   font.main = 1, useRaster = TRUE, asp = s$asp,
                                   xaxt = if (!is.null(s$ticks[[1L]])) "n", yaxt = if (!is.null(s$ticks[[2L]])) "n"),
                              args)
    do.call(graphics::image, c(list(x = unique(map[[1L]]), y = unique(map[[2L]]), z = matrix(value, s$n),
                                    breaks = levels, col = colours), look))
    if (!is.null(s$outline)) graphics::lines(s$outline, col = "grey40", lty = 3)
    if (!is.null(s$rows)) {
      graphics::points(s$rows, pch = 16, cex = if (nrow(s$rows) > 200) 0.3 else 0.6, col = data_colour(nrow(s$rows)))
    }
    for (side in which(lengths(s$ticks) > 0L)) graphics::axis(side, s$ticks[[side]]$at, s$ticks[[side]]$labels)
    graphics::box()
    k <- length(colours)
    usr <- graphics::par("usr")
    left <- usr[2L] + 0.04 * diff(usr[1:2])
    right <- usr[2L] + 0.09 * diff(usr[1:2])
    at <- seq(usr[3L], usr[4L], length.out = k + 1L)
    graphics::rect(left, at[-(k + 1L)], right, at[-1L], col = colours, border = NA, xpd = NA)
    shown <- seq(1L, k + 1L, by = ceiling(k / 8))
    graphics::text(right, at[shown], format(levels)[shown], pos = 4, offset = 0.25, cex = 0.8, xpd = NA)
  }
  panel(replace(map$fit, s$unknown, NA), s$title, "Blues 3")
  panel(map$se.fit, "standard deviation", "Oranges")
  draw_foot(s$foot, TRUE)
  map
}

# Draws the mean in colours and its standard deviation as lines.
ggplot_map <- function(s) {
  x <- y <- fit <- se.fit <- level <- NULL     # columns, for R CMD check
  names <- names(s$map)[1:2]
  s$map$fit[s$unknown] <- NA
  d <- stats::setNames(s$map, c("x", "y", "fit", "se.fit"))
  g <- ggplot2::ggplot(d, ggplot2::aes(x, y)) + ggplot2::geom_raster(ggplot2::aes(fill = fit)) +
    ggplot2::geom_contour(ggplot2::aes(z = se.fit, colour = ggplot2::after_stat(level)), linewidth = 0.4)
  if (!is.null(s$rows)) {
    rows <- stats::setNames(as.data.frame(s$rows), c("x", "y"))
    g <- g + ggplot2::geom_point(data = rows, size = 0.5, colour = data_colour(nrow(rows)))
  }
  if (!is.null(s$outline)) {
    outline <- stats::setNames(as.data.frame(s$outline), c("x", "y"))
    g <- g + ggplot2::geom_path(data = outline, colour = "grey40", linetype = 3)
  }
  for (k in which(lengths(s$ticks) > 0L)) {
    scale <- if (k == 1L) ggplot2::scale_x_continuous else ggplot2::scale_y_continuous
    g <- g + scale(breaks = s$ticks[[k]]$at, labels = s$ticks[[k]]$labels)
  }
  colours <- function(palette) grDevices::hcl.colors(9L, palette, rev = TRUE)
  g + ggplot2::scale_fill_gradientn(s$title, colours = colours("Blues 3"), na.value = "white") +
    ggplot2::scale_colour_gradientn("its sd (lines)", colours = colours("Oranges")[3:9]) +
    (if (!is.na(s$asp)) ggplot2::coord_fixed(s$asp)) +
    ggplot2::labs(x = names[1L], y = names[2L], caption = ggplot_foot(s$foot)) + ggplot2::theme_bw()
}
