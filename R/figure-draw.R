# Figures as values, and how they are drawn with base graphics and with ggplot2.

# Makes a figure.
#   panels       a list for each panel: args, arguments of plot.default(); layers; and, where wanted,
#     levels     names of the values 1, 2, ... on the horizontal axis
#     at         ticks of a logarithmic horizontal axis
#     ticks      list(at, labels) of the horizontal axis
#     blocks     TRUE: `xlim` is fixed
#     powers     axes with powers of ten: "x", "y" or "xy"
#     las, note  style of axis labels; arguments of mtext()
#     keys, legend   the legend of this panel
#   value        what the plotting function returns
#   keys, legend     rows of legend_keys() and arguments of legend(), for all panels
#   par          panels_par(), for several panels
#   outer        axis titles of all panels together
#   foot         text below the figure
figure <- function(panels, value, keys = NULL, legend = list(), par = NULL, outer = NULL, foot = NULL) {
  list(panels = panels, value = value, keys = keys, legend = legend, par = par, outer = outer, foot = foot)
}

# Returns graphical parameters of several panels; `top` is in lines.
panels_par <- function(mfrow, mar = c(3.5, 3.5, 0.5, 1), top = 0, outer = c(0, 0), mgp = c(2.2, 0.7, 0), cex = 0.85) {
  list(mfrow = mfrow, mar = mar, oma = c(outer, top, 0), mgp = mgp, cex = cex)
}

# Makes a layer: line(x, y), band(x, y, y1), dots(x, y), segment(x, y, x1, y1), box(x, y, x1, y1), rule(y, slope) or
# tick(x). It is a list of one, so that c() joins layers.
layer <- function(verb, x, y = NULL, ..., col = "black", lty = 1, lwd = 1) {
  all <- list(verb = verb, x = x, y = y, col = col, lty = lty, lwd = lwd, ...)
  list(all[!vapply(all, is.null, NA)])
}

# Colours of Okabe and Ito, which colour-blind readers can distinguish.
plot_colours <- c(mean = "#0072B2", inducing = "#D55E00", data = "#000000", certified = "#E69F00", fit = "#D7191C")

band_colour <- function(alpha = 0.3) grDevices::adjustcolor(plot_colours["mean"], alpha)

# Returns black, more transparent for more points.
data_colour <- function(n) grDevices::adjustcolor(plot_colours["data"], max(0.2, min(0.8, 100 / n)))

# Spreads the points of one level by multiples of the golden ratio, without random numbers.
spread <- function(value) value + 0.4 * ((seq_along(value) * 0.618034) %% 1 - 0.5)

# Returns the lower end of a logarithmic axis for values between these limits.
axis_foot <- function(lim) lim[1L] * (lim[1L] / lim[2L])^0.04

positive <- function(v) replace(v, !(v > 0), NA)

# Draws data as dots, which are smaller if there are many.
data_layer <- function(points, size = 0.8) {
  if (is.null(points)) return(NULL)
  layer("dots", points$at, points$y, pch = 16, cex = if (nrow(points) > 200) size - 0.2 else size,
        col = data_colour(nrow(points)))
}

# Draws inducing points as ticks along the bottom.
tick_layer <- function(value, col = plot_colours["inducing"], size = 0.04, lwd = 1.5) {
  if (!is.null(value)) layer("tick", value, size = size, lwd = lwd, col = col)
}

# Returns a row for each key; NA means that the key has no such part.
legend_keys <- function(text, col, lty = NA, lwd = NA, pch = NA, size = NA, bg = NA) {
  data.frame(text = text, col = unname(col), lty = lty, lwd = lwd, pch = pch, size = size, bg = bg)
}

data_key <- function(residuals) {
  legend_keys(if (residuals) "partial residuals" else "data", plot_colours["data"], pch = 16, size = 0.6)
}

inducing_key <- function(col = plot_colours["inducing"]) legend_keys("inducing points", col, pch = 124, size = 0.8)

# ---- base graphics --------------------------------------------------------------------------------------------------

# The arguments of plot.default(), image() and par() that users may give for every panel.
graphics_arguments <- c(
  names(formals(graphics::plot.default)), "adj", "bg", "breaks", "bty", "cex", "cex.axis", "cex.lab", "cex.main",
  "cex.sub", "col", "col.axis", "col.lab", "col.main", "col.sub", "family", "fg", "font", "font.axis", "font.lab",
  "font.main", "font.sub", "lab", "las", "lend", "lty", "lwd", "mgp", "pch", "srt", "tck", "tcl", "useRaster", "xaxp",
  "xaxs", "xaxt", "xpd", "yaxp", "yaxs", "yaxt", "zlim")

# Draws a figure. `args` are the arguments of the call, for every panel; `known` are those that the caller has itself.
# par() is restored.
draw_figure <- function(f, args = list(), known = names(formals(sys.function(sys.parent())))) {
  names <- if (is.null(names(args))) character(length(args)) else names(args)
  check_dots_empty(names[!names %in% graphics_arguments], c(known, names(formals(graphics::plot.default))))
  args <- args[!vapply(args, is.null, NA)]
  if (!is.null(f$draw)) return(invisible(f$draw(f, args)))
  several <- !is.null(f$par)
  old <- graphics::par(no.readonly = TRUE)[if (several) TRUE else "mar"]
  on.exit(graphics::par(old))
  if (several) {
    f$par$oma[1L] <- f$par$oma[1L] + foot_height(f$foot)
    do.call(graphics::par, f$par)
  }
  margins <- graphics::par("mar")
  if (!is.null(f$outer)) {
    outer <- utils::modifyList(f$outer, args[intersect(names(args), c("xlab", "ylab"))])
    args[c("xlab", "ylab")] <- "" # they stand outside, once for all panels
  }
  for (p in f$panels) {
    open_panel(p, args, margins)
    for (l in p$layers) draw_layer(l)
    if (!is.null(p$note)) do.call(graphics::mtext, p$note)
    if (!is.null(p$keys)) draw_keys(p$keys, p$legend, FALSE)
  }
  if (!is.null(f$outer)) {
    for (side in 1:2) graphics::mtext(outer[[c("xlab", "ylab")[side]]], side, 0.4, outer = TRUE, cex = 0.85)
  }
  draw_foot(f$foot, several)
  if (!is.null(f$keys)) draw_keys(f$keys, f$legend, several)
  invisible(f$value)
}

# Breaks the text below a figure into at most two lines of the device's width.
foot_lines <- function(foot) {
  if (!length(foot)) return(character())
  letters <- floor(graphics::par("din")[1L] / (0.42 * graphics::par("cin")[2L] * 0.65))
  lines <- strwrap(paste(foot, collapse = " "), letters)
  if (length(lines) > 2L) lines <- c(lines[1L], clip(paste(lines[-1L], collapse = " "), letters))
  lines
}

# Returns the height of the text below a figure, in lines of a margin.
foot_height <- function(foot) {
  n <- length(foot_lines(foot))
  if (n) 0.8 * n + 0.3 else 0
}

draw_foot <- function(foot, outer) {
  lines <- foot_lines(foot)
  bottom <- if (outer) graphics::par("oma")[1L] else graphics::par("mar")[1L]
  for (i in seq_along(lines)) {
    graphics::mtext(lines[i], 1, bottom - 0.9 - 0.8 * (length(lines) - i), outer = outer, adj = 0, cex = 0.65,
                    col = "grey30")
  }
}

draw_layer <- function(l) {
  draw <- function(f, ...) do.call(f, c(list(...), l[setdiff(names(l), c("verb", "x", "y", "x1", "y1", "slope"))]))
  switch(l$verb,
         line = draw(graphics::lines, l$x, l$y),
         band = graphics::polygon(c(l$x, rev(l$x)), c(l$y, rev(l$y1)), border = NA, col = l$col),
         dots = draw(graphics::points, l$x, l$y),
         segment = draw(graphics::segments, l$x, l$y, l$x1, l$y1),
         box = draw(graphics::rect, l$x, l$y, l$x1, l$y1),
         rule = if (is.null(l$slope)) draw(graphics::abline, h = l$y) else draw(graphics::abline, l$y, l$slope),
         tick = graphics::rug(l$x, ticksize = l$size, lwd = l$lwd, quiet = TRUE, col = l$col))
}

# Opens an empty panel. `margins` are those of panels without levels.
open_panel <- function(p, args, margins) {
  text <- if (!is.null(p$levels)) level_text(p$levels, margins)
  graphics::par(mar = replace(margins, 1L, max(margins[1L], text$margin)))
  own <- c(xaxt = !is.null(p$levels) || !is.null(p$at) || !is.null(p$ticks) || isTRUE(grepl("x", p$powers)),
           yaxt = isTRUE(grepl("y", p$powers)))
  args <- utils::modifyList(c(p$args, if (!is.null(p$args$main)) list(cex.main = 1, font.main = 1)), args)
  if (isTRUE(p$blocks)) args$xlim <- p$args$xlim
  own <- own & vapply(names(own), function(axis) is.null(args[[axis]]), NA)
  args[names(own)[own]] <- "n"
  title <- args$xlab
  if (isTRUE(text$upright)) args$xlab <- ""
  do.call(graphics::plot.default, c(list(x = NA, y = NA, type = "n"), args))
  las <- if (is.null(p$las)) 1 else p$las
  log <- function(axis) isTRUE(grepl(axis, args$log))
  if (own[["xaxt"]] && !is.null(text)) {
    graphics::axis(1, seq_along(text$labels), text$labels, gap.axis = -1, cex.axis = text$size,
                   las = if (text$upright) 2 else 1)
    if (text$upright) graphics::mtext(title, 1, graphics::par("mar")[1L] - 1.3, cex = graphics::par("cex"))
  } else if (own[["xaxt"]]) {
    if (!is.null(p$ticks)) graphics::axis(1, p$ticks$at, p$ticks$labels) else
      if (is.null(p$at)) decades(1, las) else graphics::axis(1, if (log("x")) p$at)
  }
  if (own[["yaxt"]]) if (log("y")) decades(2, las) else graphics::axis(2, las = las)
}

# Draws powers of ten, or the ticks of R if there are fewer than two of them.
decades <- function(side, las) {
  usr <- graphics::par("usr")[if (side == 1) 1:2 else 3:4]
  powers <- seq(ceiling(usr[1L] - 1e-9), floor(usr[2L] + 1e-9))
  if (length(powers) < 2L || usr[2L] - usr[1L] < 1.5) return(graphics::axis(side, las = las))
  powers <- powers[(powers - powers[1L]) %% ceiling(length(powers) / 5) == 0]
  graphics::axis(side, 10^powers, parse(text = sprintf("10^%d", as.integer(powers))), las = las)
}

# Returns how the names of levels are written below an axis. They stand side by side if they have room, else upright.
# Many or long names are smaller, and are abbreviated if they would take more than 0.6 of the panel. `margin` is in
# lines. The width of text is unknown before a panel is open, so a letter counts as half a line wide.
level_text <- function(labels, margins) {
  line <- graphics::par("csi")
  inches <- graphics::par("fin")
  room <- (inches[1L] / line - sum(margins[c(2L, 4L)])) / length(labels)
  upright <- any(0.5 * (nchar(labels) + 1) > room)
  if (!upright) return(list(labels = labels, size = 1, upright = FALSE, margin = 0))
  most <- 0.6 * (inches[2L] / line - margins[3L]) - 2.5
  size <- min(1, room / 1.1, max(0.6, most / (0.5 * max(nchar(labels)))))
  size <- max(0.4, size)
  letters <- max(5, floor(most / (0.5 * size)))
  if (any(nchar(labels) > letters)) labels <- abbreviate(labels, letters, named = FALSE)
  list(labels = labels, size = size, upright = TRUE, margin = 0.5 * size * max(nchar(labels)) + 2.5)
}

# Draws the legend above the panel or above all panels, in rows as wide as the figure.
draw_keys <- function(keys, args, outer, cex = 0.8) {
  if (outer) {
    graphics::par(fig = c(0, 1, 0, 1), oma = rep(0, 4), mar = rep(0, 4), cex = 1, new = TRUE)
    graphics::plot.new()
  }
  at <- if (outer) list(x = "top") else
    list(x = graphics::grconvertX(0, "npc"), y = graphics::grconvertY(1, "npc"), yjust = 0)
  keys <- utils::modifyList(c(at, list(
    legend = paste0(keys$text, strrep(" ", 7L)), # R leaves no room before the next key
    pt.cex = if (!all(is.na(keys$size))) ifelse(is.na(keys$size), 1, keys$size), col = keys$col, lty = keys$lty,
    lwd = keys$lwd, pch = keys$pch, pt.bg = keys$bg, ncol = nrow(keys), bty = "n", xpd = NA, seg.len = 1.5,
    text.width = NA, x.intersp = 0.7)), args)
  keys <- keys[lengths(keys) > 0L]
  inches <- function(x, unit) graphics::grconvertX(x, unit, "inches")
  room <- if (outer) inches(1, "ndc") else inches(1, "nfc") - inches(0, "npc")
  size <- do.call(graphics::legend, c(keys, list(cex = cex, plot = FALSE)))$rect
  width <- size$w * (inches(1, "npc") - inches(0, "npc")) / diff(graphics::par("usr")[1:2])
  do.call(graphics::legend, c(keys, list(cex = cex * min(1, 0.98 * room / width))))
}

# ---- ggplot2 --------------------------------------------------------------------------------------------------------

# Draws a figure; each panel is a facet with its title. Axis titles that differ between panels become part of the facet
# titles.
ggplot_figure <- function(f) {
  if (!is.null(f$ggplot)) return(f$ggplot(f))
  panels <- f$panels
  each <- function(what) lapply(panels, function(p) p$args[[what]])
  shared <- function(what) {
    if (!is.null(f$outer[[what]])) f$outer[[what]] else if (length(unique(each(what))) == 1L) panels[[1L]]$args[[what]]
  }
  label <- list(x = shared("xlab"), y = shared("ylab"))
  titles <- make.unique(vapply(panels, function(p) {
    text <- c(paste(c(p$note[[1L]], p$args$main), collapse = ", "),
              paste(c(if (is.null(label$y)) p$args$ylab, if (is.null(label$x)) p$args$xlab), collapse = ", by "))
    paste(text[nzchar(text)], collapse = "\n")
  }, ""))
  strips <- factor(titles, titles)
  places <- level_places(panels)
  coordinates <- c("x", "y", "x1", "y1")
  layers <- unlist(lapply(seq_along(panels), function(i) {
    lapply(panels[[i]]$layers, function(l) {
      values <- l[intersect(names(l), coordinates)]
      d <- if (all(lengths(values))) data.frame(values, panel = strips[i]) else data.frame()
      for (at in intersect(names(d), c("x", "x1"))) d[[at]] <- d[[at]] + places$shift[i]
      list(data = d, look = l[setdiff(names(l), coordinates)])
    })
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
