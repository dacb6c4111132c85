# A fit over two of its inputs, as a map.

plot_map <- function(fit, inputs, at, n, points, type, args) {
  s <- map_table(check_any_fit(fit, "x"), inputs, at, n, points, type)
  draw_map(s$map, s$n, s$unknown, s$rows, s$title, args)
  invisible(s$map)
}

# list(map = what plot(which = "map") returns, n = its rows along each input, unknown = where the mean is left blank,
# rows = inputs of the data, title)
map_table <- function(fit, inputs, at, n, points, type) {
  n <- if (is.null(n)) 100L else check_count(n, "n", min = 2)
  x <- slice_rows(fit)
  all <- fit_variables(fit)
  axes <- map_variables(all, inputs, x, fit$kernel)
  grid <- map_grid(axes, slice_centre(fit, all, at), x, n)
  p <- posterior_at(fit, grid$x)
  shown <- if (is_laplace(fit)) on_scale(fit, p, type) else list(mean = p$mean, sd = sqrt(p$var))
  map <- stats::setNames(data.frame(grid$value, shown$mean, shown$sd), c(names(grid$value), "fit", "se.fit"))
  unknown <- sqrt(p$var) > 0.7 * sqrt(kernel_diagonal(fit$kernel, grid$x))
  list(map = map, n = n, unknown = unknown, rows = if (points && !is.null(fit$data)) map_points(fit, axes),
       title = if (is_laplace(fit)) slice_label(fit, type) else paste("mean of", response_name(fit)))
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
  keep <- unique(round(seq(1, nrow(x), length.out = min(nrow(x), most))))
  x[keep, c(shown[[1L]]$columns, shown[[2L]]$columns), drop = FALSE]
}

# Two maps, each with its key at the right.
draw_map <- function(map, n, unknown, rows, title, args) {
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  graphics::par(mfrow = c(1L, 2L), mar = c(4.2, 4.2, 1.8, 4.5), mgp = c(2.8, 0.7, 0), las = 1)
  graphics::par(cex = 0.85)
  panel <- function(value, title, palette) {
    levels <- pretty(value[is.finite(value)], 8L)
    colours <- grDevices::hcl.colors(length(levels) - 1L, palette, rev = TRUE)
    known <- utils::modifyList(list(xlab = names(map)[1L], ylab = names(map)[2L], main = title, cex.main = 1,
                                    font.main = 1, useRaster = TRUE), args)
    do.call(graphics::image, c(list(x = unique(map[[1L]]), y = unique(map[[2L]]), z = matrix(value, n),
                                    breaks = levels, col = colours), known))
    if (!is.null(rows)) {
      graphics::points(rows, pch = 16, cex = if (nrow(rows) > 200) 0.3 else 0.6, col = data_colour(nrow(rows)))
    }
    graphics::box()
    map_key(levels, colours)
  }
  panel(replace(map$fit, unknown, NA), title, "Blues 3")
  panel(map$se.fit, "standard deviation", "Oranges")
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
