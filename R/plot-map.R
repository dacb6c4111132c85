# A fit over two of its inputs, as a map.

# Returns list(map, what plot() returns; unknown, where the mean is left blank; rows, the
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
  list(map = stats::setNames(data.frame(value, shown$mean, shown$sd), c(names, "fit", "se.fit")),
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
map_figure <- function(s) {
  map <- s$map
  ends <- lapply(map[1:2], range)
  panel <- function(value, title, palette) {
    levels <- pretty(value[is.finite(value)], 8L)
    k <- length(levels) - 1L
    colours <- grDevices::hcl.colors(k, palette, rev = TRUE)
    right <- ends[[1L]][2L] + c(0.04, 0.09) * diff(ends[[1L]])
    at <- seq(ends[[2L]][1L], ends[[2L]][2L], length.out = k + 1L)
    named <- seq(1L, k + 1L, by = ceiling(k / 8))
    boxes <- lapply(seq_len(k), function(i) {
      layer("box", right[1L], at[i], x1 = right[2L], y1 = at[i + 1L], col = colours[i], border = NA, xpd = NA)[[1L]]
    })
    list(args = list(main = title, xlab = names(map)[1L], ylab = names(map)[2L], xlim = ends[[1L]], ylim = ends[[2L]],
                     asp = s$asp, las = 1, xaxs = "i", yaxs = "i"),
         right = 4.5, ticks = s$ticks[[1L]], yticks = s$ticks[[2L]], layers = c(
           layer("raster", map[[1L]], map[[2L]], z = value, breaks = levels, colours = colours),
           if (!is.null(s$outline)) layer("line", s$outline[, 1L], s$outline[, 2L], col = "grey40", lty = 3),
           if (!is.null(s$rows)) data_layer(data.frame(at = s$rows[, 1L], y = s$rows[, 2L]), 0.6), boxes,
           layer("text", rep(right[2L], length(named)), at[named], labels = format(levels)[named], pos = 4,
                 offset = 0.25, cex = 0.8, xpd = NA)))
  }
  figure(list(panel(replace(map$fit, s$unknown, NA), s$title, "Blues 3"),
              panel(map$se.fit, "standard deviation", "Oranges")), map, shape = 1:2, foot = s$foot)
}
