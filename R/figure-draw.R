# Represents a figure as a list, and draws it with base graphics or ggplot2.

# Returns a figure, a list of these parts:
#   panels       a list for each panel: `args`, arguments of plot.default(); `layers`, see layer(); and optionally
#     levels     names of the values 1, 2, ... on the horizontal axis
#     ticks      list(at, labels) of the horizontal axis; `yticks` has those of the vertical axis
#     left       lines of the left margin for horizontal labels of `yticks`; if NULL, they run along the axis
#     right      width of the right margin, in lines
#   value        the value that the plotting function returns
#   keys         rows of legend_keys(), one legend for all panels
#   shape        the numbers of rows and columns of panels
#   outer        axis titles that all panels share
#   foot         text below the figure
# figure() adds `titled`, TRUE if a panel has a title, and `several`, TRUE if the outer margins are in use: for several
# panels, or a legend above a title. An axis without limits in `args` contains all layers but ticks and sloping lines.
figure <- function(panels, value, keys = NULL, shape = grDevices::n2mfrow(length(panels)), outer = NULL, foot = NULL) {
  panels <- lapply(unname(panels), function(p) {
    shown <- Filter(function(l) l$verb != "tick" && is.null(l$slope), p$layers)
    if (!is.null(p$levels)) p$args$xlim <- c(0.5, length(p$levels) + 0.5)
    for (axis in setdiff(c("x", "y"), sub("lim", "", names(p$args)))) {
      at <- unlist(lapply(shown, `[`, c(axis, paste0(axis, "1"))))
      if (isTRUE(grepl(axis, p$args$log))) at <- positive(at)
      p$args[[paste0(axis, "lim")]] <- range(at, finite = TRUE)
    }
    p
  })
  titled <- any(vapply(panels, function(p) !is.null(p$args$main), NA))
  list(panels = panels, value = value, keys = keys, shape = shape, outer = outer, foot = foot, titled = titled,
       several = length(panels) > 1L || titled && !is.null(keys))
}

# Returns a list with one layer, so that c() joins layers. `verb` and its arguments are: line(x, y), band(x, y, y1),
# dots(x, y), segment(x, y, x1, y1), box(x, y, x1, y1), text(x, y, labels), raster(x, y, z, breaks, colours) on a full
# grid, rule(y) for a horizontal line, rule(y, slope) for a line with intercept y, and tick(x).
layer <- function(verb, x, y = NULL, ..., col = "black", lty = 1, lwd = 1) {
  all <- list(verb = verb, x = x, y = y, col = col, lty = lty, lwd = lwd, ...)
  list(all[!vapply(all, is.null, NA)])
}

# All but the red of `fit` are colours of Okabe and Ito, which colour-blind readers can distinguish.
plot_colours <- c(mean = "#0072B2", inducing = "#D55E00", data = "#000000", certified = "#E69F00", fit = "#D7191C")

band_colour <- function(alpha = 0.3) grDevices::adjustcolor(plot_colours["mean"], alpha)

data_colour <- function(n) grDevices::adjustcolor(plot_colours["data"], max(0.2, min(0.8, 100 / n)))

# Returns n colours and line types, distinct for up to 48 curves.
series_looks <- function(n) {
  data.frame(col = rep_len(grDevices::palette.colors(8L, "Okabe-Ito")[c(6, 7, 4, 8, 2, 3, 1, 5)], n),
             lty = rep(seq_len(6L), each = 8L, length.out = n))
}

positive <- function(v) replace(v, !(v > 0), NA)

# Returns layers of data as dots, smaller for more than 200 rows. `points` is NULL or has `at`, `y` and perhaps `pch`.
data_layer <- function(points, size = 0.8) {
  if (is.null(points)) return(NULL)
  mark <- rep_len(points$pch %||% 16, nrow(points))
  unlist(lapply(unique(mark), function(pch) {
    layer("dots", points$at[mark == pch], points$y[mark == pch], pch = pch,
          cex = if (nrow(points) > 200) size - 0.2 else size, col = data_colour(nrow(points)))
  }), FALSE)
}

# Returns a legend, with a row for each key. A key with `lty` NA has no line, and one with `pch` NA has no symbol.
legend_keys <- function(text, col, lty = NA, lwd = NA, pch = NA, size = NA, bg = NA) {
  data.frame(text = text, col = unname(col), lty = lty, lwd = lwd, pch = pch, size = size, bg = bg)
}

# Returns the legend of the marks in a result of slices(): data or partial residuals, censored data, inducing points.
mark_keys <- function(s) {
  rbind(if (!is.null(s$points)) {
    legend_keys(if (isTRUE(s$residuals)) "partial residuals" else "data", plot_colours["data"], pch = 16, size = 0.6)
  }, if (any(s$points$pch == 1)) legend_keys("censored", plot_colours["data"], pch = 1, size = 0.6),
  if (!is.null(s$inducing)) legend_keys("inducing points", plot_colours["inducing"], pch = 124, size = 0.8))
}

# Draws a figure by base graphics, and restores the settings of par(). `args` are the user's further arguments for
# plot.default(), par() and image(). `known`, the names of the caller's own arguments, is for error messages.
draw_figure <- function(f, args = list(), known = names(formals(sys.function(sys.parent())))) {
  names <- names(args) %||% character(length(args))
  of_image <- names %in% c("useRaster", "zlim")
  several <- f$several # evaluates f, so that its errors come before a device is open
  before <- graphics::par(no.readonly = TRUE)
  of_plot <- setdiff(names(formals(graphics::plot.default)), c("x", "y", "type"))
  check_dots_empty(names[!of_image & !names %in% c(of_plot, names(before))], c(known, of_plot))
  image <- args[of_image]
  args <- Filter(Negate(is.null), args[!of_image])
  on.exit(graphics::par(before[if (several) TRUE else "mar"]))
  outer <- f$outer
  joint <- if (is.null(outer)) 0 else 1.4
  letters <- floor(letters_in_line(0.65))
  foot <- if (length(f$foot)) strwrap(paste(f$foot, collapse = " "), letters) # text below the figure
  if (length(foot) > 2L) foot <- c(foot[1L], clip(paste(foot[-1L], collapse = " "), letters))
  if (several) {
    graphics::par(mfrow = f$shape, mgp = c(2.2, 0.7, 0), cex = 0.85,
                  mar = c(if (joint) 2 else 3.5, 3.5, if (f$titled) 1.8 else 0.5, max(1, f$panels[[1L]]$right)),
                  oma = c(joint + (length(foot) > 0L) * (0.8 * length(foot) + 0.3), joint,
                          if (is.null(f$keys)) 0 else 1.2 + 0.9 * rows_of_keys(f$keys), 0))
  }
  margins <- graphics::par("mar")
  if (joint) {
    outer <- utils::modifyList(outer, args[intersect(names(args), c("xlab", "ylab"))])
    args[c("xlab", "ylab")] <- "" # all panels share the axis titles
  }
  for (p in f$panels) {
    open_panel(p, args, margins)
    for (l in p$layers) draw_layer(l, image)
  }
  if (joint) for (side in 1:2) graphics::mtext(outer[[c("xlab", "ylab")[side]]], side, 0.4, outer = TRUE, cex = 0.85)
  bottom <- if (several) graphics::par("oma")[1L] else graphics::par("mar")[1L]
  for (i in seq_along(foot)) {
    graphics::mtext(foot[i], 1, bottom - 0.9 - 0.8 * (length(foot) - i), outer = several, adj = 0, cex = 0.65,
                    col = "grey30")
  }
  if (!is.null(f$keys)) draw_keys(f$keys, several)
  invisible(f$value)
}

clip_to <- function(range) function(v) pmin(pmax(v, range[1L]), range[2L])

# Returns about how many letters of size `cex` fit in a line of some inches, by default across the device.
letters_in_line <- function(cex, inches = graphics::par("din")[1L]) inches / (0.42 * graphics::par("cin")[2L] * cex)

draw_layer <- function(l, image) {
  coordinates <- c("x", "y", "x1", "y1")
  draw <- function(f, ...) do.call(f, c(list(...), l[setdiff(names(l), c("verb", "slope", coordinates))]))
  at <- function(f) do.call(draw, c(list(f), unname(l[intersect(coordinates, names(l))])))
  switch(l$verb, line = at(graphics::lines), dots = at(graphics::points), text = at(graphics::text),
         segment = at(graphics::segments), box = at(graphics::rect),
         band = graphics::polygon(c(l$x, rev(l$x)), c(l$y, rev(l$y1)), border = NA, col = l$col),
         rule = if (is.null(l$slope)) draw(graphics::abline, h = l$y) else draw(graphics::abline, l$y, l$slope),
         tick = graphics::rug(l$x, ticksize = 0.04, lwd = l$lwd, quiet = TRUE, col = l$col),
         raster = {
           axes <- list(unique(l$x), unique(l$y))
           full <- utils::modifyList(list(breaks = l$breaks, col = l$colours, useRaster = TRUE, add = TRUE), image)
           do.call(graphics::image, c(axes, list(matrix(l$z, length(axes[[1L]]))), full))
         })
}

# Opens an empty panel with its axes. `margins` is par("mar") for a panel without names of levels below its axis.
open_panel <- function(p, args, margins) {
  text <- if (!is.null(p$levels)) level_text(p$levels, margins)
  graphics::par(mar = replace(margins, 1:2, pmax(margins[1:2], c(max(0, text$margin), max(0, p$left)))))
  args <- utils::modifyList(c(p$args, if (!is.null(p$args$main)) list(cex.main = 1, font.main = 1)), args)
  if (!is.null(text)) args$xlim <- p$args$xlim
  log <- function(axis) isTRUE(grepl(axis, args$log))
  own <- c(xaxt = !is.null(text) || !is.null(p$ticks) || log("x"), yaxt = !is.null(p$yticks) || log("y"))
  own <- own & !names(own) %in% names(args)
  args[names(own)[own]] <- "n"
  title <- args$xlab
  args$cex.lab <- args$cex.lab %||% title_size(c(paste(title), paste(args$ylab)))
  vertical <- args$ylab
  if (isTRUE(text$upright)) args$xlab <- ""
  if (!is.null(p$left)) args$ylab <- ""
  do.call(graphics::plot.default, c(list(x = NA, y = NA, type = "n"), args))
  # Draws an axis with `ticks` if given, else a logarithmic axis with powers of ten, or R's ticks for a short range.
  draw_axis <- function(side, ticks) {
    usr <- graphics::par("usr")[2 * side - 1:0]
    powers <- Filter(function(k) k >= usr[1L] - 1e-9 && k <= usr[2L] + 1e-9, floor(usr[1L]):ceiling(usr[2L]))
    if (!is.null(ticks)) {
      graphics::axis(side, ticks$at, ticks$labels %||% TRUE, las = if (side == 2 && !is.null(p$left)) 1 else 0)
    } else if (length(powers) < 2L || diff(usr) < 1.5) {
      graphics::axis(side)
    } else {
      powers <- powers[seq(1L, length(powers), ceiling(length(powers) / 5))]
      graphics::axis(side, 10^powers, parse(text = sprintf("10^%d", as.integer(powers))))
    }
  }
  if (own[["xaxt"]] && !is.null(text)) {
    graphics::axis(1, seq_along(text$labels), text$labels, gap.axis = -1, cex.axis = text$size,
                   las = if (text$upright) 2 else 1)
    if (text$upright) graphics::mtext(title, 1, graphics::par("mar")[1L] - 2, cex = graphics::par("cex"))
  } else if (own[["xaxt"]]) {
    draw_axis(1, p$ticks)
  }
  if (own[["yaxt"]]) draw_axis(2, p$yticks)
  if (!is.null(p$left)) graphics::mtext(vertical, 2, graphics::par("mar")[2L] - 1.3, cex = graphics::par("cex"))
}

# Returns the size at which the titles of both axes fit, each in the middle of its side.
title_size <- function(titles) {
  room <- graphics::par("fin") - abs(diff(graphics::par("mai"), 2))[2:1]
  min(1, letters_in_line(graphics::par("cex"), room) / pmax(1, nchar(titles)))
}

# Returns how to draw the names of levels below an axis: list(labels, size, upright, margin), the margin in lines. Names
# that do not fit side by side are upright and smaller, and are abbreviated if longer than 0.6 of the panel's height. A
# letter counts as half a line wide, because text has no known width before a panel is open.
level_text <- function(labels, margins) {
  labels <- gsub("[[:cntrl:]]", " ", ifelse(is.na(labels), "NA", labels)) # devices cannot measure a tab
  line <- graphics::par("csi")
  inches <- graphics::par("fin")
  room <- (inches[1L] / line - sum(margins[c(2L, 4L)])) / length(labels)
  upright <- any(0.5 * (nchar(labels) + 1) > room)
  if (!upright) return(list(labels = labels, size = 1, upright = FALSE, margin = 0))
  most <- 0.6 * (inches[2L] / line - margins[3L]) - 3.2
  size <- max(0.4, min(1, room / 1.1, max(0.6, most / (0.5 * max(nchar(labels))))))
  letters <- max(5, floor(most / (0.5 * size)))
  if (any(nchar(labels) > letters)) labels <- abbreviate(labels, letters, named = FALSE)
  list(labels = labels, size = size, upright = TRUE, margin = 0.5 * size * max(nchar(labels)) + 3.2)
}

# Returns how many rows a legend needs. A row may be a tenth too wide, because draw_keys() shrinks the legend to fit.
rows_of_keys <- function(keys) ceiling(sum(nchar(keys$text) + 8) / (1.1 * letters_in_line(0.8)))

# Draws the legend above the panel, or above all panels if `outer`, in rows as wide as the figure.
draw_keys <- function(keys, outer, cex = 0.8) {
  if (outer) {
    graphics::par(fig = c(0, 1, 0, 1), oma = rep(0, 4), mar = rep(0, 4), cex = 1, new = TRUE)
    graphics::plot.new()
  }
  inches <- function(x, unit) graphics::grconvertX(x, unit, "inches")
  args <- c(if (outer) list(x = "top") else
      list(x = graphics::grconvertX(0, "npc"), y = graphics::grconvertY(1, "npc"), yjust = 0),
    list(legend = paste0(keys$text, strrep(" ", 7L)), # separates the keys of a row
         pt.cex = ifelse(is.na(keys$size), 1, keys$size), col = keys$col, lty = keys$lty, lwd = keys$lwd,
         pch = keys$pch, pt.bg = keys$bg, ncol = ceiling(nrow(keys) / rows_of_keys(keys)), bty = "n", xpd = NA,
         seg.len = 1.8, text.width = NA, x.intersp = 0.7))
  room <- if (outer) inches(1, "ndc") else inches(1, "nfc") - inches(0, "npc")
  size <- do.call(graphics::legend, c(args, list(cex = cex, plot = FALSE)))$rect
  width <- size$w * (inches(1, "npc") - inches(0, "npc")) / diff(graphics::par("usr")[1:2])
  do.call(graphics::legend, c(args, list(cex = cex * min(1, 0.96 * room / width))))
}

# Returns the figure of a table, which plot_table() and autoplot_table() draw. `log` is an argument of plot.default().
figure_of_table <- function(x, log = NULL) UseMethod("figure_of_table")

#' @rawNamespace S3method(plot,pfdtc_exceedance,plot_table)
plot_table <- function(x, ...) {
  draw_figure(figure_of_table(x, list(...)$log), list(...))
  invisible(x)
}

#' @rawNamespace S3method(ggplot2::autoplot,pfdtc_exceedance,autoplot_table)
autoplot_table <- function(object, ...) ggplot_figure(figure_of_table(object), list(...))

# Returns a figure as a ggplot with a facet for each panel. Axis titles that differ between panels go into facet titles.
ggplot_figure <- function(f, dots = list()) {
  check_dots_empty(dots, "object")
  panels <- f$panels
  each <- function(what) lapply(panels, function(p) p$args[[what]])
  shared <- function(what) {
    if (!is.null(f$outer[[what]])) f$outer[[what]] else if (length(unique(each(what))) == 1L) panels[[1L]]$args[[what]]
  }
  label <- list(x = shared("xlab"), y = shared("ylab"))
  titles <- make.unique(vapply(panels, function(p) {
    text <- c(p$args$main, paste(c(if (is.null(label$y)) p$args$ylab, if (is.null(label$x)) p$args$xlab),
                                 collapse = ", by "))
    paste(text[nzchar(text)], collapse = "\n")
  }, ""))
  places <- level_places(panels)
  coordinates <- c("x", "y", "x1", "y1", "labels", "z")
  layers <- unlist(lapply(seq_along(panels), function(i) {
    lapply(panels[[i]]$layers, function(l) {
      values <- l[intersect(names(l), coordinates)]
      d <- if (all(lengths(values))) data.frame(values, panel = factor(titles[i], titles)) else data.frame()
      for (at in intersect(names(d), c("x", "x1"))) d[[at]] <- d[[at]] + places$shift[i]
      list(data = d, look = l[setdiff(names(l), coordinates)])
    })
  }), FALSE)
  layers <- layers[vapply(layers, function(l) nrow(l$data) > 0L, NA)]
  looks <- lapply(layers, `[[`, "look")
  layers <- lapply(split(layers, match(looks, unique(looks))), ggplot_layer) # joins layers that look the same
  several <- length(panels) > 1L
  free <- c(length(unique(each("xlim"))) > 1L || length(unique(places$shift)) > 1L, length(unique(each("ylim"))) > 1L)
  first <- panels[[1L]]
  asp <- first$args$asp
  in_margin <- !is.null(first$right)
  frame <- c(list(if (!free[1L]) first$args$xlim + places$shift[1L], if (!free[2L]) first$args$ylim),
             if (isTRUE(is.finite(asp))) list(ratio = asp), if (in_margin) list(clip = "off", expand = FALSE))
  log <- function(axis) isTRUE(grepl(axis, first$args$log))
  small <- ggplot2::element_text(size = 7)
  ggplot2::ggplot() + unname(layers) + ggplot_keys(f$keys) + places$scale +
    (if (log("x")) ggplot2::scale_x_log10()) + (if (log("y")) ggplot2::scale_y_log10()) +
    (if (!is.null(first$yticks)) ggplot2::scale_y_continuous(breaks = first$yticks$at, labels = first$yticks$labels)) +
    (if (several) {
      ggplot2::facet_wrap("panel", drop = FALSE, scales = c("fixed", "free_x", "free_y", "free")[1 + sum(free * 1:2)])
    }) + do.call(if (is.null(frame$ratio)) ggplot2::coord_cartesian else ggplot2::coord_fixed, frame) +
    ggplot2::labs(x = label$x, y = label$y, title = if (!several && nzchar(titles)) titles,
                  caption = if (length(f$foot)) paste(strwrap(paste(f$foot, collapse = " "), 100L), collapse = "\n")) +
    ggplot2::theme_bw() + ggplot2::theme(legend.position = "top", legend.text = small, strip.text = small) +
    (if (in_margin) ggplot2::theme(panel.spacing.x = ggplot2::unit(4, "lines"),
                                   plot.margin = ggplot2::margin(5, 45, 5, 5)))
}

# This table has the ggplot2 geom for each verb of layer(): its name, its mapped aesthetics with the elements of the
# layer that they show, and the aesthetics that are set from the layer's colour, size and so on.
ggplot_kinds <- list(
  line = list("path", c(x = "x", y = "y", group = "group"), c("colour", "linetype", "linewidth")),
  band = list("ribbon", c(x = "x", ymin = "y", ymax = "y1", group = "group"), "fill"),
  dots = list("point", c(x = "x", y = "y"), c("colour", "shape", "size", "fill")),
  segment = list("segment", c(x = "x", y = "y", xend = "x1", yend = "y1"), c("colour", "linewidth")),
  box = list("rect", c(xmin = "x", ymin = "y", xmax = "x1", ymax = "y1"), c("fill", "colour")),
  text = list("text", c(x = "x", y = "y", label = "labels"), c("colour", "size", "hjust")),
  raster = list("raster", c(x = "x", y = "y"), "fill"),
  rule = list("hline", c(yintercept = "y"), c("colour", "linetype", "linewidth")),
  slope = list("abline", c(intercept = "y", slope = "slope"), c("colour", "linetype", "linewidth")),
  tick = list("rug", c(x = "x"), c("colour", "sides")))

ggplot_layer <- function(same) {
  d <- do.call(rbind, lapply(seq_along(same), function(i) cbind(same[[i]]$data, group = i)))
  l <- same[[1L]]$look
  d$slope <- l$slope
  if (l$verb == "line") { # drop lines of one point, as ggplot2 prints a message for them
    own <- split(stats::complete.cases(d), d$group)
    d <- d[d$group %in% names(own)[vapply(own, sum, 0) > 1], ]
    if (!nrow(d)) return(NULL)
  }
  if (l$verb == "raster") d <- d[!is.na(d$z), ]
  filled <- l$verb %in% c("band", "box")
  look <- list(
    colour = if (l$verb == "box") l$border else l$col, linetype = l$lty, linewidth = 0.4 * l$lwd, shape = l$pch,
    size = (if (l$verb == "text") 3.5 else 1.5) * (l$cex %||% 1), hjust = if (isTRUE(l$pos == 4)) -0.3, sides = "b",
    fill = if (l$verb == "raster") l$colours[findInterval(d$z, l$breaks, all.inside = TRUE)] else
      if (filled) l$col else if (!is.null(l$bg)) rep_len(l$bg, nrow(d)))
  kind <- ggplot_kinds[[if (is.null(l$slope)) l$verb else "slope"]]
  look <- look[intersect(kind[[3L]], names(look))]
  do.call(getExportedValue("ggplot2", paste0("geom_", kind[[1L]])),
          c(list(do.call(ggplot2::aes, lapply(kind[[2L]], as.name)), d), look[lengths(look) > 0L],
            list(na.rm = TRUE, show.legend = FALSE)))
}

# Returns invisible layers for the legend of `keys`, because ggplot2 shows legends only for layers; NULL without keys.
ggplot_keys <- function(keys) {
  x <- key <- NULL # avoids a note of R CMD check
  if (is.null(keys)) return(NULL)
  d <- data.frame(x = NA_real_, key = factor(seq_len(nrow(keys))))
  nowhere <- function(make) make(ggplot2::aes(x, x, colour = key, group = 1), d, na.rm = TRUE, show.legend = TRUE)
  guide <- ggplot2::guide_legend(nrow = ceiling(nrow(keys) / 4), override.aes = list(
    linetype = ifelse(is.na(keys$lty), 0, keys$lty), linewidth = 0.4 * ifelse(is.na(keys$lwd), 0, keys$lwd),
    shape = keys$pch, size = ifelse(keys$pch %in% 124, 4, 1.5 * ifelse(is.na(keys$size), 1, keys$size)),
    fill = keys$bg)) # symbol 124, "|", is as high as its size
  list(nowhere(ggplot2::geom_path), nowhere(ggplot2::geom_point), ggplot2::scale_colour_manual(
    NULL, values = keys$col, labels = keys$text, guide = guide))
}

# Returns list(shift, scale) for panels whose horizontal axes have names (of levels or dates). Facets of ggplot2 share
# one scale, so `shift` moves each such panel to its own part of the scale, and `scale` has the names there, or is NULL.
level_places <- function(panels) {
  labels <- lapply(panels, function(p) if (is.null(p$ticks)) p$levels else p$ticks$labels)
  has <- lengths(labels) > 0L
  if (!any(has)) return(list(shift = numeric(length(panels)), scale = NULL))
  at <- Map(function(p, l) if (is.null(p$ticks)) seq_along(l) else p$ticks$at, panels, labels)
  far <- 10 * (1 + max(abs(unlist(c(at, lapply(panels, function(p) p$args$xlim))))))
  shift <- ifelse(has, far * (1 + match(labels, unique(labels))), 0)
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
