# Figures of fits by ggplot2, of the same tables as those in base graphics.

#' @rdname gp_fit-tidiers
#' @exportS3Method ggplot2::autoplot
autoplot.gp_fit <- function(object, inputs = NULL, at = NULL, level = 0.95,
                            interval = c("both", "credible", "prediction"), n = NULL,
                            points = TRUE, which = "slices", scales = c("common", "own"), certified = FALSE,
                            xlim = NULL, terms = FALSE, type = c("response", "link"), ...) {
  check_dots_empty(list(...), names(formals(autoplot.gp_fit)))
  type <- check_choice(type, c("response", "link"), "type")
  interval <- check_choice(interval, c("both", "credible", "prediction"), "interval")
  scales <- check_choice(scales, c("common", "own"), "scales")
  points <- check_flag(points, "points")
  certified <- check_flag(certified, "certified")
  other <- autoplot_other(check_any_fit(object, "object"), which, inputs, at, n, points, type)
  if (!is.null(other)) return(other + ggplot2::theme_bw())
  if (is.null(n)) n <- 200L
  if (check_flag(terms, "terms")) interval <- "credible"
  s <- if (terms) term_slices(object, inputs, at, level, n, points) else
    slices(object, inputs, at, level, n, points, certified, xlim, type)
  if (is_laplace(object)) interval <- "credible"
  names <- vapply(s$variables, `[[`, "", "name")
  places <- level_places(s$curves)
  s$curves$value <- places$apart(s$curves$input, s$curves$value)
  if (!is.null(s$points)) s$points$at <- places$apart(s$points$input, s$points$at)
  for (part in c("curves", "points", "inducing")) {
    if (!is.null(s[[part]])) s[[part]]$input <- factor(s[[part]]$input, names)
  }
  lines <- s$curves[is.na(s$curves$label), ]
  levels <- s$curves[!is.na(s$curves$label), ]
  ggplot_slices(s, lines, levels, interval, if (scales == "own") "free" else "free_x") + places$scale +
    ggplot2::labs(x = if (length(names) == 1L) names, y = slice_label(object, if (terms) "link" else type)) +
    ggplot2::theme_bw()
}

# What `which` asks for beside slices; NULL where it asks for these.
autoplot_other <- function(fit, which, inputs, at, n, points, type) {
  if (identical(which, "calibration")) return(ggplot_calibration(fit))
  which <- check_which(which)
  if (identical(which, "map")) return(ggplot_map(map_table(fit, inputs, at, n, points, type)))
  if (!identical(which, "slices")) ggplot_checks(fit, which)
}

ggplot_slices <- function(s, lines, levels, interval, free) {
  value <- lwr <- upr <- lwr_y <- upr_y <- fit <- side <- NULL     # columns, for R CMD check
  # dotted beyond the data, up to where they begin
  inside <- lines[!lines$outside, ]
  beyond <- do.call(rbind, lapply(split(lines, lines$input, drop = TRUE), function(d) {
    middle <- range(d$value[!d$outside])
    side <- ifelse(d$value <= middle[1L], "below", ifelse(d$value >= middle[2L], "above", NA))
    cbind(d, side = side)[!is.na(side) & rep(any(d$outside), nrow(d)), ]
  }))
  aes <- ggplot2::aes
  blue <- plot_colours[["mean"]]
  g <- ggplot2::ggplot()
  if (interval != "prediction") {
    g <- g +
      ggplot2::geom_ribbon(aes(value, ymin = lwr, ymax = upr), lines, fill = blue, alpha = 0.3) +
      ggplot2::geom_crossbar(aes(value, fit, ymin = lwr, ymax = upr), levels, width = 0.6,
                             colour = NA, fill = blue, alpha = 0.3)
  }
  if (interval != "credible") {
    g <- g + ggplot2::geom_line(aes(value, lwr_y), lines, colour = blue, linetype = 2) +
      ggplot2::geom_line(aes(value, upr_y), lines, colour = blue, linetype = 2) +
      ggplot2::geom_errorbar(aes(value, ymin = lwr_y, ymax = upr_y), levels, width = 0.6,
                             colour = blue, linetype = 2)
  }
  g <- g + ggplot_data(s$points)
  g <- g + ggplot2::geom_line(aes(value, fit), inside, colour = blue) +
    ggplot2::geom_point(aes(value, fit), levels, colour = blue, size = 2)
  if (!is.null(beyond) && nrow(beyond)) {
    g <- g + ggplot2::geom_line(aes(value, fit, group = side), beyond, colour = blue, linetype = 3)
  }
  g + ggplot_marks(s$inducing) + if (length(s$variables) > 1L) ggplot2::facet_wrap("input", scales = free)
}

# Panels of one figure share a scale. Levels are set apart from all numbers, a stretch of the axis a factor, and the
# scale names them. `apart(input, value)`: values as they are placed; `scale`: NULL where there are no levels.
level_places <- function(curves) {
  levels <- curves[!is.na(curves$label), c("input", "value", "label")]
  if (!nrow(levels)) return(list(apart = function(input, value) value, scale = NULL))
  factors <- unique(levels$input)
  numbers <- c(0, curves$value[is.na(curves$label)])
  start <- 10 * (1 + max(abs(numbers))) + 1000 * seq_along(factors) * ceiling(1 + max(levels$value) / 1000)
  apart <- function(input, value) {
    shift <- start[match(as.character(input), factors)]
    value + ifelse(is.na(shift), 0, shift)
  }
  at <- apart(levels$input, levels$value)
  named <- function(breaks) {
    i <- vapply(breaks, function(b) if (is.na(b)) NA_integer_ else which(abs(at - b) < 0.01)[1L], 1L)
    plain <- format(breaks, trim = TRUE)
    ifelse(is.na(i), ifelse(is.na(breaks), NA, plain), vapply(levels$label[i], function(l) clip(l, 24L), ""))
  }
  ticks <- function(limits) {
    here <- at[at >= limits[1L] & at <= limits[2L]]
    if (length(here)) here else pretty(limits, 4L)
  }
  wide <- max(tapply(nchar(levels$label) + 1, levels$input, sum)) > 30 / length(unique(curves$input))
  list(apart = apart, scale = ggplot2::scale_x_continuous(
    breaks = ticks, labels = named, guide = ggplot2::guide_axis(angle = if (wide) 45)))
}

# What the base figures draw by draw_data() and draw_marks(); adding NULL adds nothing.
ggplot_data <- function(points) {
  at <- y <- NULL     # columns, for R CMD check
  if (is.null(points)) return(NULL)
  ggplot2::geom_point(ggplot2::aes(at, y), points, size = 0.7, colour = data_colour(nrow(points)), na.rm = TRUE)
}

ggplot_marks <- function(inducing) {
  value <- NULL
  if (is.null(inducing)) return(NULL)
  ggplot2::geom_rug(ggplot2::aes(value), inducing, sides = "b", colour = plot_colours[["inducing"]])
}

#' Plot certificates with ggplot2
#'
#' The figures of [plot_certificate()] as ggplots.
#'
#' @param object what [plot_certificate()] returned.
#' @param ... nothing: an unknown argument is an error.
#' @return A ggplot.
#' @section Errors: class `pfdtc_error_input` for some columns of what [plot_certificate()] returned.
#' @source [plot_certificate()].
#' @seealso [plot_certificate()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 3)
#' fit$reference <- reference(fit, m2 = 8)
#' if (requireNamespace("ggplot2", quietly = TRUE)) {
#'   ggplot2::autoplot(plot_certificate(fit, plot = FALSE))
#' }
#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_certificate <- function(object, ...) {
  check_dots_empty(list(...), "object")
  figure <- attr(object, "figure")
  if (is.null(figure) || ncol(object) != if (identical(figure, "errors")) 7L else 17L) {
    abort_input("object", "a part of it", "all of what plot_certificate() returned")
  }
  class(object) <- "data.frame"
  g <- if (identical(figure, "errors")) ggplot_certified_errors(object) else ggplot_certified_curves(object, figure)
  g + ggplot2::theme_bw() + ggplot2::theme(legend.position = "top", legend.text = ggplot2::element_text(size = 7),
                                       legend.key.width = ggplot2::unit(8, "mm"))
}

ggplot_certified_curves <- function(data, s) {
  value <- lower <- upper <- part <- line <- piece <- NULL     # columns, for R CMD check
  aes <- ggplot2::aes
  inputs <- vapply(s$variables, `[[`, "", "name")
  places <- level_places(data)
  panel <- function(d, column = "value") {
    d[[column]] <- places$apart(d$input, d[[column]])
    d$input <- factor(d$input, inputs)
    d
  }
  text <- certified_texts(s$level)
  range <- certified_range(data, s$points)
  w <- panel(widen_blocks(data))
  column <- function(part, lower, upper = lower) {
    inside <- function(v) pmin(pmax(v, 2 * range[1L] - range[2L]), 2 * range[2L] - range[1L])     # of finite ends
    data.frame(w[c("input", "value", "piece")], part = text[[part]], line = paste(lower, w$piece),
               lower = inside(w[[lower]]), upper = inside(w[[upper]]))
  }
  bands <- rbind(column("certified", "mean_lower", "mean_upper"), column("credible", "lwr", "upr"))
  edges <- rbind(column("certified", "mean_lower"), column("certified", "mean_upper"))
  mean <- column("mean", "fit")
  thin <- rbind(column("certified_credible", "lwr_certified"), column("certified_credible", "upr_certified"),
                 column("exact", "exact"), column("exact_credible", "lwr_exact"), column("exact_credible", "upr_exact"))
  thin <- thin[!is.na(thin$lower), ]
  looks <- certified_looks[text[certified_looks$part] %in% c(bands$part, mean$part, thin$part), ]
  looks$lty[is.na(looks$lty)] <- ifelse(is.na(looks$col), 0, 1)[is.na(looks$lty)]
  looks$fill[is.na(looks$fill)] <- "transparent"
  # one legend for all three
  scale <- function(make, column) {
    shown <- unname(text[looks$part])
    make(NULL, values = stats::setNames(looks[[column]], shown), breaks = shown, limits = shown)
  }
  curve <- function(d, width) {
    ggplot2::geom_line(aes(value, lower, colour = part, linetype = part, group = line), d, linewidth = width)
  }
  g <- ggplot2::ggplot() + ggplot2::geom_ribbon(
    aes(value, ymin = lower, ymax = upper, fill = part, group = paste(part, piece)), bands, alpha = 0.3)
  if (!is.null(s$points)) s$points <- panel(s$points, "at")
  g <- g + ggplot_data(s$points) + curve(edges, 1.4) + curve(mean, 0.8) + curve(thin, 0.4) +
    scale(ggplot2::scale_colour_manual, "col") + scale(ggplot2::scale_linetype_manual, "lty") +
    scale(ggplot2::scale_fill_manual, "fill")
  g <- g + places$scale
  if (!is.null(s$inducing)) g <- g + ggplot_marks(panel(s$inducing))
  if (length(inputs) > 1L) g <- g + ggplot2::facet_wrap("input", scales = "free_x")
  g + ggplot2::coord_cartesian(ylim = range) +
    ggplot2::labs(x = if (length(inputs) == 1L) inputs, y = s$response) +
    ggplot2::guides(colour = ggplot2::guide_legend(nrow = 2, override.aes = list(linewidth = 0.6)),
                    fill = ggplot2::guide_legend(nrow = 2), linetype = ggplot2::guide_legend(nrow = 2))
}

# Rows that stand for themselves (levels, single values) as two ends of a short line; `piece` tells them apart.
widen_blocks <- function(data) {
  block <- !is.na(data$label) | stats::ave(data$value, data$input, FUN = length) == 1
  ends <- data[rep(which(block), each = 2L), ]
  ends$value <- ends$value + rep_len(c(-0.3, 0.3), nrow(ends))
  rbind(cbind(data[!block, ], piece = rep(0L, sum(!block))), cbind(ends, piece = rep(seq_len(sum(block)), each = 2L)))
}

ggplot_certified_errors <- function(data) {
  m <- value <- effort <- NULL     # columns, for R CMD check
  aes <- ggplot2::aes
  looks <- effort_looks[effort_looks$effort %in% data$effort, ]
  several <- length(unique(data$method)) > 1L
  title <- if (several) {
    paste0(vapply(data$method, function(by) fit_title(list(method = by)), ""), ": ", data$what)
  } else {
    paste("posterior", data$what)
  }
  data$panel <- factor(title, unique(title))
  data$effort <- factor(data$effort, looks$effort, looks$label)
  d <- rbind(cbind(data, value = data$median, over = "median"), cbind(data, value = data$max, over = "max"))
  d <- d[is.finite(d$value), ]
  zero <- d$value == 0
  least <- tapply(ifelse(zero, NA, d$value), d$panel, min, na.rm = TRUE)[d$panel]
  d$value[zero] <- ifelse(is.finite(least), least / 2, 1e-16)[zero]
  g <- ggplot2::ggplot(d, aes(m, value, colour = effort))
  lines <- d[!zero, ]
  lines <- lines[stats::ave(lines$value, lines$panel, lines$effort, lines$over, FUN = length) > 1, ]
  for (i in seq_len(nrow(looks))) {
    for (over in c("max", "median")) {
      g <- g + ggplot2::geom_line(
        data = lines[lines$effort == looks$label[i] & lines$over == over, ], linewidth = looks$lwd[i] / 3,
        linetype = if (over == "max") looks$dashes[i] else "solid", alpha = if (looks$effort[i] == "actual") 0.3 else 1,
        show.legend = FALSE)
    }
  }
  scale <- function(make, column) make(NULL, values = stats::setNames(looks[[column]], looks$label))
  g + ggplot2::geom_point(aes(shape = effort), d[!zero, ], size = 1.8) +
    ggplot2::geom_point(data = d[zero, ], shape = 6, show.legend = FALSE) +
    ggplot2::facet_wrap("panel", scales = "free_y", ncol = 2L) +
    ggplot2::scale_x_log10(breaks = unique(data$m), minor_breaks = NULL) + ggplot2::scale_y_log10() +
    scale(ggplot2::scale_colour_manual, "col") + scale(ggplot2::scale_shape_manual, "pch") +
    ggplot2::labs(x = "inducing points", y = "error",
                  caption = paste0("solid: median, dashed: maximum", if (any(zero)) ", triangles below: zero"))
}
