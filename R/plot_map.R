# A fit over two of its inputs, as a map.

# list(map = what plot(which = "map") returns, n = its rows along each input, unknown = where the mean is left blank,
# rows = inputs of the data, title)
map_table <- function(fit, inputs, at, n, points, type) {
  n <- if (is.null(n)) 100L else check_count(n, "n", min = 2)
  x <- slice_rows(fit)
  all <- fit_variables(fit)
  axes <- map_variables(all, inputs, x, fit$kernel)
  grid <- map_grid(axes, slice_centre(fit, all, at), x, n)
  p <- latent_at(fit, grid$x)
  shown <- on_scale(fit, p, type)
  map <- stats::setNames(data.frame(grid$value, shown$mean, shown$sd), c(names(grid$value), "fit", "se.fit"))
  unknown <- sqrt(p$var) > 0.7 * sqrt(kernel_diagonal(fit$kernel, grid$x))
  list(map = map, n = n, unknown = unknown, rows = if (points && !is.null(fit$data)) map_points(fit, axes),
       title = if (!response_of(fit)$conjugate) slice_label(fit, type) else paste("mean of", response_name(fit)))
}

# Two numeric variables: those given, or those over whose range f may vary most.
map_variables <- function(all, inputs, x, kernel) {
  numeric <- Filter(function(v) is.null(v$values), all)
  if (is.null(inputs) && length(numeric) > 1L) return(choose_variables(numeric, NULL, x, kernel, most = 2L))
  shown <- if (!is.null(inputs)) choose_variables(all, inputs, x, kernel) else numeric
  if (length(shown) != 2L || !all(vapply(shown, function(v) is.null(v$values), NA))) {
    abort_input("inputs", if (is.null(inputs)) sprintf("%d numeric", length(numeric)) else describe(inputs),
                "two numeric ones for a map")
  }
  shown
}

# list(value = data frame of the two inputs, the first running fastest; x).
map_grid <- function(shown, centre, x, n) {
  ends <- lapply(shown, function(v) range(x[, v$columns]))
  value <- do.call(expand.grid, stats::setNames(lapply(ends, function(e) seq(e[1L], e[2L], length.out = n)),
                                                vapply(shown, `[[`, "", "name")))
  at <- centre[rep(1L, nrow(value)), , drop = FALSE]
  for (k in 1:2) at[, shown[[k]]$columns] <- value[[k]]
  list(value = value, x = at)
}

map_points <- function(fit, shown, most = 2000L) {
  x <- training_data(fit)$x
  x[evenly(nrow(x), most), c(shown[[1L]]$columns, shown[[2L]]$columns), drop = FALSE]
}

# Two maps, each with its key at the right.
draw_map <- function(s, args) {
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  graphics::par(mfrow = c(1L, 2L), mar = c(4.2, 4.2, 1.8, 4.5), mgp = c(2.8, 0.7, 0), las = 1)
  graphics::par(cex = 0.85)
  map <- s$map
  panel <- function(value, title, palette) {
    levels <- pretty(value[is.finite(value)], 8L)
    colours <- grDevices::hcl.colors(length(levels) - 1L, palette, rev = TRUE)
    known <- utils::modifyList(list(xlab = names(map)[1L], ylab = names(map)[2L], main = title, cex.main = 1,
                                    font.main = 1, useRaster = TRUE), args)
    do.call(graphics::image, c(list(x = unique(map[[1L]]), y = unique(map[[2L]]), z = matrix(value, s$n),
                                    breaks = levels, col = colours), known))
    if (!is.null(s$rows)) {
      graphics::points(s$rows, pch = 16, cex = if (nrow(s$rows) > 200) 0.3 else 0.6, col = data_colour(nrow(s$rows)))
    }
    graphics::box()
    map_key(levels, colours)
  }
  panel(replace(map$fit, s$unknown, NA), s$title, "Blues 3")
  panel(map$se.fit, "standard deviation", "Oranges")
  map
}

map_key <- function(levels, colours) {
  k <- length(colours)
  usr <- graphics::par("usr")
  left <- usr[2L] + 0.04 * diff(usr[1:2])
  right <- usr[2L] + 0.09 * diff(usr[1:2])
  at <- seq(usr[3L], usr[4L], length.out = k + 1L)
  graphics::rect(left, at[-(k + 1L)], right, at[-1L], col = colours, border = NA, xpd = NA)
  shown <- seq(1L, k + 1L, by = ceiling(k / 8))
  graphics::text(right, at[shown], format(levels)[shown], pos = 4, offset = 0.25, cex = 0.8, xpd = NA)
}

# The mean in colours, its standard deviation as lines.
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
  g + ggplot2::scale_fill_gradientn(s$title, colours = grDevices::hcl.colors(9L, "Blues 3", rev = TRUE),
                                    na.value = "white") +
    ggplot2::scale_colour_gradientn("its sd (lines)", colours = grDevices::hcl.colors(9L, "Oranges", rev = TRUE)[3:9]) +
    ggplot2::labs(x = names[1L], y = names[2L]) + ggplot2::theme_bw()
}
