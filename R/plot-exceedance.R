# The figure of exceedance(): a line for one numeric input, a map for two.

# Returns the result of fit_variables() as a list named by variable.
variables_by_name <- function(fit) {
  all <- fit_variables(fit)
  stats::setNames(all, panel_names(all))
}

# Returns a data frame of the numeric inputs at the rows x.
numeric_inputs <- function(fit, x) {
  numeric <- Filter(function(v) is.null(v$values), variables_by_name(fit))
  as.data.frame(lapply(numeric, value_along, x), optional = TRUE)
}

region_colours <- c(above = "#D55E00", below = "#0072B2", data = "#D9D9D9", approximation = "#F0E442")

exceedance_figure <- function(x) {
  about <- attr(x, "about")
  figure <- attr(x, "figure")
  inputs <- figure$inputs
  if (is.null(inputs) || nrow(inputs) != nrow(x) || !all(c("prob", "region") %in% names(x))) {
    abort_input("x", "some of its rows or columns", "all that exceedance() returned")
  }
  vary <- which(vapply(inputs, function(v) length(unique(v)) > 1L, NA))
  if (!length(vary) || length(vary) > 2L) {
    abort_input("x", sprintf("%d inputs that vary", length(vary)), "places that differ in one or two numeric inputs",
                hint = "Hold the other inputs at one value in `newdata`.")
  }
  shown <- as.character(x$region)
  shown[shown %in% "undecided"] <- if (is.null(x$because)) "data" else as.character(x$because)[shown %in% "undecided"]
  shown <- factor(shown, names(region_colours))
  used <- levels(droplevels(shown))
  text <- c(above = sprintf("above (probability at least %s)", format(about$prob)), below = "below",
            data = "undecided", approximation = "undecided, perhaps by the approximation")
  regions <- legend_keys(text[used], "grey40", pch = 22, size = 1.5, bg = region_colours[used])
  label <- sprintf("P(%s > %s)", if (about$of == "f") "f" else "y",
                   if (length(about$threshold) == 1L) format(about$threshold) else "threshold")
  data <- figure$data[vary]
  axes <- figure$variables[names(inputs)[vary]]
  if (length(vary) == 1L) {
    panel <- exceedance_line(x, inputs[vary], data[[1L]], shown, about, axes[[1L]], label)
    kinds <- seq_len(1L + about$certified)
    keys <- rbind(legend_keys(c("probability", "certified bounds")[kinds],
                              plot_colours[c("mean", "certified")][kinds], 1, c(2, 6)[kinds]), regions)
  } else {
    panel <- exceedance_map(inputs[vary], data, shown, axes)
    keys <- rbind(regions, if (!is.null(data)) data_key(FALSE))
  }
  figure(list(panel), x, keys, list(ncol = ceiling(nrow(keys) / 2)),
         foot = if (length(vary) == 2L) sprintf("Regions by %s.", label))
}

# Returns the panel of the probability along one input, with its certified bounds. A strip along the bottom shows the
# regions.
exceedance_line <- function(x, inputs, data, shown, about, variable, label) {
  o <- order(inputs[[1L]])
  at <- inputs[[1L]][o]
  edges <- c(at[1L], (at[-1L] + at[-length(at)]) / 2, at[length(at)])
  colours <- region_colours[as.character(shown[o])]
  strip <- unlist(lapply(which(!is.na(colours)), function(i) {
    layer("box", edges[i], -0.09, x1 = edges[i + 1L], y1 = -0.04, col = colours[[i]], border = NA)
  }), FALSE)
  layers <- c(
    if (about$certified) layer("band", at, x$prob_lower[o], y1 = x$prob_upper[o],
                               col = grDevices::adjustcolor(plot_colours["certified"], 0.4)),
    lapply(c(about$prob, 1 - about$prob), function(p) layer("rule", NULL, p, lty = 3, col = "grey40")[[1L]]),
    layer("line", at, x$prob[o], col = plot_colours["mean"], lwd = 2), strip,
    if (!is.null(data)) tick_layer(data, data_colour(length(data)), lwd = 0.5))
  list(args = list(xlab = names(inputs), ylab = label, xlim = range(at), ylim = c(-0.09, 1)), layers = layers,
       ticks = variable_ticks(variable, range(at)))
}

# Returns the panel of a map of the regions. Places on a grid are cells, which end half-way to their neighbours; other
# places are dots.
exceedance_map <- function(inputs, data, shown, axes) {
  values <- lapply(inputs, function(v) sort(unique(v)))
  whole <- prod(lengths(values)) == length(shown)
  ends <- function(k, own, side) {
    half <- diff(values[[k]]) / 2
    i <- match(inputs[[k]][own], values[[k]])
    if (side < 0) inputs[[k]][own] - c(half[1L], half)[i] else inputs[[k]][own] + c(half, half[length(half)])[i]
  }
  marks <- unlist(lapply(levels(droplevels(shown)), function(region) {
    own <- which(shown == region)
    col <- region_colours[[region]]
    if (!whole) return(layer("dots", inputs[[1L]][own], inputs[[2L]][own], pch = 16, cex = 0.7, col = col))
    layer("box", ends(1L, own, -1), ends(2L, own, -1), x1 = ends(1L, own, 1), y1 = ends(2L, own, 1), col = col,
          border = NA)
  }), FALSE)
  rows <- if (!is.null(data)) layer("dots", data[[1L]], data[[2L]], pch = 16, col = data_colour(nrow(data)),
                                    cex = if (nrow(data) > 200) 0.3 else 0.6)
  asp <- map_asp(axes, values[[2L]])
  list(args = c(list(xlab = names(inputs)[1L], ylab = names(inputs)[2L], xlim = range(values[[1L]]),
                     ylim = range(values[[2L]])), if (!is.na(asp)) list(asp = asp)), layers = c(marks, rows))
}
