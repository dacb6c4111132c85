# Checks and maps by ggplot2, of the tables that those in base graphics are drawn from.

check_titles <- c(residuals = "Residuals, in their sd, against the mean", qq = "Normal quantiles, of residuals",
                  pit = "PIT histogram", observed = "Observed against predicted",
                  semivariogram = "Semivariogram of residuals, by lengthscales")

# A panel a check, each with its own axes.
ggplot_checks <- function(fit, which) {
  x <- y <- intercept <- slope <- lty <- ymin <- ymax <- NULL     # columns, for R CMD check
  tables <- check_tables(fit, which)
  panel <- function(name, ...) {
    if (name %in% names(tables)) data.frame(..., panel = factor(check_titles[[name]], check_titles[names(tables)]))
  }
  all <- function(f, names) do.call(rbind, lapply(intersect(names, names(tables)), f))
  of <- function(name) stats::setNames(thinned(tables[[name]])[1:2], c("x", "y"))
  points <- all(function(name) panel(name, of(name)), checks_drawn[checks_drawn != "pit"])
  lines <- rbind(
    panel("residuals", intercept = c(-1, 0, 1) * stats::qnorm(0.975), slope = 0, lty = c("b", "a", "b")),
    panel("qq", intercept = 0, slope = 1, lty = "a"), panel("observed", intercept = 0, slope = 1, lty = "a"),
    panel("pit", intercept = 1, slope = 0, lty = "b"), panel("semivariogram", intercept = 1, slope = 0, lty = "b"))
  g <- ggplot2::ggplot() + ggplot2::geom_abline(
    ggplot2::aes(intercept = intercept, slope = slope, linetype = lty), lines, colour = plot_colours[["mean"]],
    show.legend = FALSE)
  if (!is.null(points)) g <- g + ggplot2::geom_point(ggplot2::aes(x, y), points, size = 0.7)
  if (!is.null(tables$semivariogram)) {
    g <- g + ggplot2::geom_line(ggplot2::aes(x, y), panel("semivariogram", of("semivariogram")))
  }
  if (!is.null(tables$pit)) {
    h <- pit_histogram(tables$pit$pit)
    bars <- panel("pit", x = h$at, y = h$height)
    g <- g + ggplot2::geom_rect(ggplot2::aes(xmin = 0, xmax = 1, ymin = ymin, ymax = ymax),
                                panel("pit", ymin = h$band[1L], ymax = h$band[2L]), fill = plot_colours[["mean"]],
                                alpha = 0.3) +
      ggplot2::geom_rect(ggplot2::aes(xmin = x, xmax = x + h$width, ymin = 0, ymax = y), bars, colour = "black",
                         fill = plot_colours[["data"]], alpha = 0.15)
  }
  g + ggplot2::scale_linetype_manual(values = c(a = 1, b = 2)) +
    ggplot2::facet_wrap("panel", scales = "free", ncol = if (length(tables) > 1L) 2L else 1L) +
    ggplot2::labs(x = NULL, y = NULL)
}

# Of classes; of counts the PIT's histogram.
ggplot_calibration <- function(fit) {
  predicted <- observed <- sd <- NULL     # columns, for R CMD check
  if (!has_calibration(fit)) return(ggplot_checks(fit, "pit"))
  d <- calibration_table(fit)
  half <- stats::qnorm(0.975)
  ggplot2::ggplot(d, ggplot2::aes(predicted, observed)) +
    ggplot2::geom_abline(intercept = 0, slope = 1, colour = plot_colours[["mean"]]) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = pmax(predicted - half * sd, 0), ymax = pmin(predicted + half * sd, 1)),
                            colour = plot_colours[["mean"]], linewidth = 2, alpha = 0.3) +
    ggplot2::geom_point() + ggplot2::coord_cartesian(0:1, 0:1) +
    ggplot2::labs(x = "probability by the other rows", y = "share of successes")
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
    ggplot2::labs(x = names[1L], y = names[2L])
}
