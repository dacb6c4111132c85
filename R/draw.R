# Figures as values, which base graphics draw here and ggplot2 in ggplot_figure.R.

# panels   each list(args = of plot.default(), limits and labels among them; layers; and where they are wanted
#            levels   names of the values 1, 2, ... on the horizontal axis
#            at       where that has its ticks, if it is logarithmic
#            blocks   TRUE: `xlim` stays, whatever is asked for
#            powers   which axes have powers of ten: "x", "y", "xy"
#            las      of axes
#            note     arguments of mtext()
#            keys, legend   of this panel alone)
# keys     data frame of legend_keys(); legend: arguments of legend()
# par      of several panels; cex; outer: labels of all panels together
# value    what the function that draws it returns
figure <- function(panels, value, keys = NULL, legend = list(), par = NULL, cex = NULL, outer = NULL) {
  list(panels = panels, value = value, keys = keys, legend = legend, par = par, cex = cex, outer = outer)
}

# line(x, y), band(x, y, y1), dots(x, y), segment(x, y, x1, y1), box(x, y, x1, y1), rule(y, slope) or tick(x), as a list
# of one, so that c() puts layers together. `...`: x1, y1, slope, pch, cex, bg, border, lend, type, xpd, size.
layer <- function(verb, x, y = NULL, ..., col = "black", lty = 1, lwd = 1) {
  all <- list(verb = verb, x = x, y = y, col = col, lty = lty, lwd = lwd, ...)
  list(all[!vapply(all, is.null, NA)])
}

# Okabe and Ito's colours, told apart by colour-blind readers.
plot_colours <- c(mean = "#0072B2", inducing = "#D55E00", data = "#000000")

band_colour <- function(alpha = 0.3) grDevices::adjustcolor(plot_colours["mean"], alpha)

# Black points, the lighter the more there are.
data_colour <- function(n) grDevices::adjustcolor(plot_colours["data"], max(0.2, min(0.8, 100 / n)))

# Points of one level side by side, without drawing from R's generator: the golden ratio's
# multiples.
spread <- function(value) value + 0.4 * ((seq_along(value) * 0.618034) %% 1 - 0.5)

# The lower end of a logarithmic axis for values between these.
axis_foot <- function(lim) lim[1L] * (lim[1L] / lim[2L])^0.04

positive <- function(v) replace(v, !(v > 0), NA)

# The points of a panel, where there are any; smaller ones where they are many.
data_layer <- function(points, size = 0.8) {
  if (is.null(points)) return(NULL)
  layer("dots", points$at, points$y, pch = 16, cex = if (nrow(points) > 200) size - 0.2 else size,
        col = data_colour(nrow(points)))
}

# Inducing points as ticks along the bottom.
tick_layer <- function(value, col = plot_colours["inducing"], size = 0.04, lwd = 1.5) {
  if (!is.null(value)) layer("tick", value, size = size, lwd = lwd, col = col)
}

# A row a key; NA: there is no such thing in it.
legend_keys <- function(text, col, lty = NA, lwd = NA, pch = NA, size = NA, bg = NA) {
  data.frame(text = text, col = unname(col), lty = lty, lwd = lwd, pch = pch, size = size, bg = bg)
}

# ---- base graphics --------------------------------------------------------------------------------------------------

# `args`: of the call, for every panel; par() is as it was before.
draw_figure <- function(f, args = list()) {
  args <- args[!vapply(args, is.null, NA)]
  old <- if (is.null(f$par)) graphics::par("mar") else graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(if (is.null(f$par)) list(mar = old) else old))
  if (!is.null(f$par)) do.call(graphics::par, f$par)
  if (!is.null(f$cex)) graphics::par(cex = f$cex)
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
    graphics::mtext(outer$xlab, 1, 0.4, outer = TRUE, cex = 0.85)
    graphics::mtext(outer$ylab, 2, 0.4, outer = TRUE, cex = 0.85)
  }
  if (!is.null(f$keys)) draw_keys(f$keys, f$legend, !is.null(f$par))
  invisible(f$value)
}

draw_layer <- function(l) {
  draw <- function(f, ..., look) do.call(f, c(list(...), l[intersect(names(l), look)]))
  switch(l$verb,
         line = draw(graphics::lines, l$x, l$y, look = c("col", "lty", "lwd", "lend", "type", "pch")),
         band = graphics::polygon(c(l$x, rev(l$x)), c(l$y, rev(l$y1)), border = NA, col = l$col),
         dots = draw(graphics::points, l$x, l$y, look = c("col", "pch", "cex", "bg", "xpd", "lwd")),
         segment = draw(graphics::segments, l$x, l$y, l$x1, l$y1, look = c("col", "lwd", "lend")),
         box = draw(graphics::rect, l$x, l$y, l$x1, l$y1, look = c("col", "border")),
         rule = if (is.null(l$slope)) draw(graphics::abline, h = l$y, look = c("col", "lty", "lwd")) else
           draw(graphics::abline, l$y, l$slope, look = c("col", "lty", "lwd")),
         tick = graphics::rug(l$x, ticksize = l$size, lwd = l$lwd, quiet = TRUE, col = l$col))
}

# An empty panel, with its levels along the bottom where it has some. `margins`: of panels without levels.
open_panel <- function(p, args, margins) {
  text <- if (!is.null(p$levels)) level_text(p$levels, margins)
  graphics::par(mar = replace(margins, 1L, max(margins[1L], text$margin)))
  own <- c(if (!is.null(p$levels) || !is.null(p$at) || isTRUE(grepl("x", p$powers))) "xaxt",
           if (isTRUE(grepl("y", p$powers))) "yaxt")
  plain <- if (!is.null(p$args$main)) list(cex.main = 1, font.main = 1)
  args <- utils::modifyList(c(p$args, plain), args)
  if (isTRUE(p$blocks)) args$xlim <- p$args$xlim
  drawn <- own[vapply(own, function(axis) is.null(args[[axis]]), NA)]
  args[drawn] <- "n"
  title <- args$xlab
  if (isTRUE(text$upright)) args$xlab <- ""
  do.call(graphics::plot.default, c(list(x = NA, y = NA, type = "n"), args))
  las <- if (is.null(p$las)) 1 else p$las
  if ("xaxt" %in% drawn) {
    if (!is.null(text)) draw_levels(text, title) else if (is.null(p$at)) decades(1, las) else
      graphics::axis(1, if (isTRUE(grepl("x", args$log))) p$at)
  }
  if ("yaxt" %in% drawn) if (isTRUE(grepl("y", args$log))) decades(2, las) else graphics::axis(2, las = las)
}

draw_levels <- function(text, title) {
  graphics::axis(1, seq_along(text$labels), text$labels, gap.axis = -1, cex.axis = text$size,
                 las = if (text$upright) 2 else 1)
  if (text$upright) graphics::mtext(title, 1, graphics::par("mar")[1L] - 1.3, cex = graphics::par("cex"))
}

# Powers of ten, or, where there are fewer than two of them, R's own ticks.
decades <- function(side, las) {
  usr <- graphics::par("usr")[if (side == 1) 1:2 else 3:4]
  powers <- seq(ceiling(usr[1L] - 1e-9), floor(usr[2L] + 1e-9))
  if (length(powers) < 2L || usr[2L] - usr[1L] < 1.5) return(graphics::axis(side, las = las))
  powers <- powers[(powers - powers[1L]) %% ceiling(length(powers) / 5) == 0]
  graphics::axis(side, 10^powers, parse(text = sprintf("10^%d", as.integer(powers))), las = las)
}

# Levels side by side where they have room, else upright: smaller where they are many or long, and abbreviated where
# they would take more than 0.6 of the panel. `margin`: in lines, with a title below. No device knows the width of text
# before a panel is open: a letter is taken to be as wide as half a line is high.
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

# Above the panel (right on logarithmic axes, too), or above all of them, in rows as wide as the figure allows.
draw_keys <- function(keys, args, outer, cex = 0.8) {
  if (outer) {
    graphics::par(fig = c(0, 1, 0, 1), oma = rep(0, 4), mar = rep(0, 4), cex = 1, new = TRUE)
    graphics::plot.new()
  }
  at <- if (outer) list(x = "top") else
    list(x = graphics::grconvertX(0, "npc"), y = graphics::grconvertY(1, "npc"), yjust = 0)
  text <- paste0(keys$text, strrep(" ", 7L)) # R leaves no room before the next key
  keys <- utils::modifyList(c(at, if (!anyNA(keys$size)) list(pt.cex = keys$size), list(
    legend = text, col = keys$col, lty = keys$lty, lwd = keys$lwd, pch = keys$pch, pt.bg = keys$bg, ncol = nrow(keys),
    bty = "n", xpd = NA, seg.len = 1.5, text.width = NA, x.intersp = 0.7)), args)
  inches <- function(x, unit) graphics::grconvertX(x, unit, "inches")
  room <- if (outer) inches(1, "ndc") else inches(1, "nfc") - inches(0, "npc")
  size <- do.call(graphics::legend, c(keys, list(cex = cex, plot = FALSE)))$rect
  width <- size$w * (inches(1, "npc") - inches(0, "npc")) / diff(graphics::par("usr")[1:2])
  do.call(graphics::legend, c(keys, list(cex = cex * min(1, 0.98 * room / width))))
}
