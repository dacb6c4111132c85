# What figures in base graphics share.

# Okabe and Ito's colours, told apart by colour-blind readers.
plot_colours <- c(mean = "#0072B2", inducing = "#D55E00", data = "#000000")

band_colour <- function(alpha = 0.3) grDevices::adjustcolor(plot_colours["mean"], alpha)

# Black points, the lighter the more there are.
data_colour <- function(n) grDevices::adjustcolor(plot_colours["data"], max(0.2, min(0.8, 100 / n)))

# Points of one level side by side, without drawing from R's generator: the golden ratio's
# multiples.
spread <- function(value) value + 0.4 * ((seq_along(value) * 0.618034) %% 1 - 0.5)

# Where a legend's lower left corner goes; right on logarithmic axes, too.
above_panel <- function() {
  list(x = graphics::grconvertX(0, "npc"), y = graphics::grconvertY(1, "npc"), yjust = 0)
}

# The legend in the size that the width of the figure allows.
draw_keys <- function(at, outer, keys, cex = 0.8) {
  keys$legend <- paste0(keys$legend, strrep(" ", 7L)) # R leaves no room before the next key
  inches <- function(x, unit) graphics::grconvertX(x, unit, "inches")
  room <- if (outer) inches(1, "ndc") else inches(1, "nfc") - inches(0, "npc")
  size <- do.call(graphics::legend, c(at, keys, list(cex = cex, plot = FALSE)))$rect
  width <- size$w * (inches(1, "npc") - inches(0, "npc")) / diff(graphics::par("usr")[1:2])
  do.call(graphics::legend, c(at, keys, list(cex = cex * min(1, 0.98 * room / width))))
}

positive <- function(v) replace(v, !(v > 0), NA)

# Powers of ten, or, where there are fewer than two of them, R's own ticks.
decades <- function(side, las = 1) {
  usr <- graphics::par("usr")[if (side == 1) 1:2 else 3:4]
  powers <- seq(ceiling(usr[1L] - 1e-9), floor(usr[2L] + 1e-9))
  if (length(powers) < 2L || usr[2L] - usr[1L] < 1.5) return(graphics::axis(side, las = las))
  powers <- powers[(powers - powers[1L]) %% ceiling(length(powers) / 5) == 0]
  graphics::axis(side, 10^powers, parse(text = sprintf("10^%d", as.integer(powers))), las = las)
}

# Above all panels, in rows as wide as the figure allows.
legend_on_top <- function(keys) {
  graphics::par(fig = c(0, 1, 0, 1), oma = rep(0, 4), mar = rep(0, 4), cex = 1, new = TRUE)
  graphics::plot.new()
  draw_keys(list(x = "top"), TRUE, c(keys, list(bty = "n", xpd = NA, seg.len = 1.8, text.width = NA, x.intersp = 0.7)))
}

# The points of a panel, where there are any; smaller ones where they are many.
draw_data <- function(points, size = 0.8) {
  if (is.null(points)) return(invisible())
  graphics::points(points$at, points$y, pch = 16, cex = if (nrow(points) > 200) size - 0.2 else size,
                   col = data_colour(nrow(points)))
}

# Inducing points as ticks along the bottom.
draw_marks <- function(value, colour = plot_colours["inducing"], size = 0.04, width = 1.5) {
  if (!is.null(value)) graphics::rug(value, ticksize = size, lwd = width, quiet = TRUE, col = colour)
}

# An empty panel for a curve along the variable `v`, with its levels along the bottom where it has some. `margins`: of
# panels without levels.
open_panel <- function(v, curve, args, margins, blocks) {
  if (is.null(args$xlab)) args$xlab <- v$name
  if (is.null(args$xlim) || blocks) args$xlim <- range(curve$value) + if (blocks) c(-0.5, 0.5) else 0
  text <- if (!is.null(v$labels)) level_text(curve$label, margins)
  graphics::par(mar = replace(margins, 1L, max(margins[1L], text$margin)))
  title <- args$xlab
  if (!is.null(text)) args$xaxt <- "n"
  if (isTRUE(text$upright)) args$xlab <- ""
  do.call(graphics::plot.default, c(list(x = curve$value, y = curve$fit, type = "n"), args))
  if (is.null(text)) return(invisible())
  graphics::axis(1, curve$value, text$labels, gap.axis = -1, cex.axis = text$size, las = if (text$upright) 2 else 1)
  if (text$upright) graphics::mtext(title, 1, graphics::par("mar")[1L] - 1.3, cex = graphics::par("cex"))
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
