# Draws the figures of figure-draw.R with ggplot2.

# Draws a figure; each panel is a facet with its title. Axis titles that differ between panels become part of the facet
# titles.
ggplot_figure <- function(f) {
  panels <- f$panels
  each <- function(what) lapply(panels, function(p) p$args[[what]])
  shared <- function(what) {
    if (!is.null(f$outer[[what]])) f$outer[[what]] else if (length(unique(each(what))) == 1L) panels[[1L]]$args[[what]]
  }
  label <- list(x = shared("xlab"), y = shared("ylab"))
  titles <- make.unique(vapply(panels, panel_title, "", lapply(label, is.null)))
  strips <- factor(titles, titles)
  places <- level_places(panels)
  layers <- unlist(lapply(seq_along(panels), function(i) {
    lapply(panels[[i]]$layers, layer_in_panel, strips[i], places$shift[i])
  }), FALSE)
  layers <- layers[vapply(layers, function(l) nrow(l$data) > 0L, NA)]
  looks <- lapply(layers, `[[`, "look")
  layers <- lapply(split(layers, match(looks, unique(looks))), ggplot_layer) # layers with the same look become one
  free <- vapply(c("xlim", "ylim"), function(what) length(unique(each(what))) > 1L, NA)
  limits <- function(what) if (!free[[what]] && is.null(places$scale)) panels[[1L]]$args[[what]]
  log <- panels[[1L]]$args$log
  several <- length(panels) > 1L
  scales <- c("fixed", "free_x", "free_y", "free")[1 + sum(free * 1:2)]
  ggplot2::ggplot() + unname(layers) + ggplot_keys(f$keys) + places$scale +
    (if (isTRUE(grepl("x", log))) ggplot2::scale_x_log10()) + (if (isTRUE(grepl("y", log))) ggplot2::scale_y_log10()) +
    (if (several) ggplot2::facet_wrap("panel", drop = FALSE, scales = scales)) +
    ggplot2::coord_cartesian(limits("xlim"), if (!free[["ylim"]]) panels[[1L]]$args$ylim) +
    ggplot2::labs(x = label$x, y = label$y, title = if (!several && nzchar(titles)) titles,
                  caption = ggplot_foot(f$foot)) +
    ggplot2::theme_bw() + ggplot2::theme(legend.position = "top", legend.text = ggplot2::element_text(size = 7),
                                         strip.text = ggplot2::element_text(size = 7))
}

ggplot_foot <- function(foot) {
  if (length(foot)) paste(strwrap(paste(foot, collapse = " "), 100L), collapse = "\n")
}

# Returns the title of a facet. `own`: which axis titles belong to this panel alone.
panel_title <- function(p, own) {
  text <- c(paste(c(p$note[[1L]], p$args$main), collapse = ", "),
            paste(c(if (own$y) p$args$ylab, if (own$x) p$args$xlab), collapse = ", by "))
  paste(text[nzchar(text)], collapse = "\n")
}

# Returns list(data, look).
layer_in_panel <- function(l, panel, shift) {
  coordinates <- c("x", "y", "x1", "y1")
  values <- l[intersect(names(l), coordinates)]
  d <- if (all(lengths(values))) data.frame(values, panel = panel) else data.frame()
  for (at in intersect(names(d), c("x", "x1"))) d[[at]] <- d[[at]] + shift
  list(data = d, look = l[setdiff(names(l), coordinates)])
}

ggplot_layer <- function(same) {
  x <- y <- x1 <- y1 <- slope <- group <- NULL     # columns, for R CMD check
  d <- do.call(rbind, lapply(seq_along(same), function(i) cbind(same[[i]]$data, group = i)))
  l <- same[[1L]]$look
  d$slope <- l$slope
  aes <- ggplot2::aes
  geom <- function(make, aes, ..., colour = l$col) {
    look <- list(..., colour = colour, na.rm = TRUE, show.legend = FALSE)
    do.call(make, c(list(aes, d), look[lengths(look) > 0L]))
  }
  width <- 0.4 * l$lwd
  dots <- function() {
    geom(ggplot2::geom_point, aes(x, y), shape = l$pch, size = if (is.null(l$cex)) 1.5 else 1.5 * l$cex,
         fill = if (!is.null(l$bg)) rep_len(l$bg, nrow(d)))
  }
  path <- function() {
    own <- split(stats::complete.cases(d), d$group)
    d <<- d[d$group %in% names(own)[vapply(own, sum, 0) > 1], ]
    if (nrow(d)) geom(ggplot2::geom_path, aes(x, y, group = group), linetype = l$lty, linewidth = width)
  }
  rule <- function(make, aes) geom(make, aes, linetype = l$lty, linewidth = width)
  switch(l$verb,
         line = list(if (!is.null(l$pch)) dots(), path()),
         band = geom(ggplot2::geom_ribbon, aes(x, ymin = y, ymax = y1, group = group), fill = l$col, colour = NA),
         dots = dots(),
         segment = geom(ggplot2::geom_segment, aes(x, y, xend = x1, yend = y1), linewidth = width),
         box = geom(ggplot2::geom_rect, aes(xmin = x, ymin = y, xmax = x1, ymax = y1), fill = l$col, colour = l$border),
         rule = if (is.null(l$slope)) rule(ggplot2::geom_hline, aes(yintercept = y)) else
           rule(ggplot2::geom_abline, aes(intercept = y, slope = slope)),
         tick = geom(ggplot2::geom_rug, aes(x), sides = "b"))
}

# Adds a line and a point for each key that appear only in the legend.
ggplot_keys <- function(keys) {
  x <- key <- NULL     # columns, for R CMD check
  if (is.null(keys)) return(NULL)
  d <- data.frame(x = NA_real_, key = factor(seq_len(nrow(keys))))
  nowhere <- function(make) make(ggplot2::aes(x, x, colour = key, group = 1), d, na.rm = TRUE, show.legend = TRUE)
  guide <- ggplot2::guide_legend(nrow = ceiling(nrow(keys) / 4), override.aes = list(
    linetype = ifelse(is.na(keys$lty), 0, keys$lty), linewidth = 0.4 * ifelse(is.na(keys$lwd), 0, keys$lwd),
    shape = keys$pch, size = ifelse(keys$pch %in% 124, 4, 1.5 * ifelse(is.na(keys$size), 1, keys$size)),
    fill = keys$bg)) # 124 is a letter, as high as its size
  list(nowhere(ggplot2::geom_path), nowhere(ggplot2::geom_point), ggplot2::scale_colour_manual(
    NULL, values = keys$col, labels = keys$text, guide = guide))
}

# Gives levels and dates their place on an axis that all panels share: a stretch for each panel, away from all numbers,
# where the scale shows names. Returns list(shift, of the values of each panel; scale, NULL without names).
level_places <- function(panels) {
  labels <- lapply(panels, function(p) if (is.null(p$ticks)) p$levels else p$ticks$labels)
  has <- lengths(labels) > 0L
  if (!any(has)) return(list(shift = numeric(length(panels)), scale = NULL))
  at <- Map(function(p, l) if (is.null(p$ticks)) seq_along(l) else p$ticks$at, panels, labels)
  far <- 10 * (1 + max(abs(unlist(c(at, lapply(panels, function(p) p$args$xlim))))))
  shift <- ifelse(has, far * (1 + cumsum(has)), 0)
  at <- unlist(Map(`+`, at, shift))
  text <- vapply(unlist(labels), function(l) clip(l, 24L), "")
  named <- function(breaks) {
    i <- vapply(breaks, function(b) if (any(abs(at - b) < 0.01, na.rm = TRUE)) which.min(abs(at - b)) else NA, 1L)
    ifelse(is.na(i), ifelse(is.na(breaks), NA, format(breaks, trim = TRUE)), text[i])
  }
  ticks <- function(limits) {
    here <- at[at >= limits[1L] & at <= limits[2L]]
    if (length(here)) here else pretty(limits, 4L)
  }
  wide <- max(vapply(labels[has], function(l) sum(nchar(l) + 1), 0)) > 30 / length(panels)
  list(shift = shift, scale = ggplot2::scale_x_continuous(
    breaks = ticks, labels = named, guide = ggplot2::guide_axis(angle = if (wide) 45)))
}
