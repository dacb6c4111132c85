# Figures of experiments by ggplot2, of the same tables as those in base graphics.

#' Plot an experiment with ggplot2
#'
#' The figures of [plot_rmse()], [plot_kl()], [plot_divergence_error()] and [plot_trace()] as ggplots.
#'
#' @param object what [run_experiment()] or [read_experiment()] returned.
#' @param figure which.
#' @param ... arguments of that function, by name.
#' @return A ggplot.
#' @seealso [plot_rmse()]
#' @examples
#' data <- data.frame(x = cars$speed, y = cars$dist)
#' results <- run_experiment(data, c("pf", "vfe", "subsample"), m = c(2, 4),
#'                           reps = 2, control = pfdtc_control(maxit = 5))
#' if (requireNamespace("ggplot2", quietly = TRUE)) ggplot2::autoplot(results, "rmse", what = "sd")
#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_experiment <- function(object, figure = c("rmse", "kl", "divergence", "trace"), ...) {
  figure <- check_choice(figure, c("rmse", "kl", "divergence", "trace"), "figure")
  object <- as_experiment(object)
  make <- switch(figure, rmse = summary_rmse, kl = summary_kl, divergence = summary_course, trace = trace_curves)
  check_dots_empty(setdiff(names(list(...)), names(formals(make))), names(formals(make))[-1L])
  s <- make(object, ...)
  switch(figure, rmse = , kl = ggplot_panels(s), divergence = ggplot_course(s), trace = ggplot_traces(s))
}

ggplot_panels <- function(s) {
  m <- middle <- low <- high <- error <- kl <- method <- level <- NULL # columns, for R CMD check
  aes <- ggplot2::aes
  d <- s$data
  looks <- method_looks[method_looks$method %in% d$method, ]
  d$method <- factor(d$method, looks$method, looks$label)
  d$dataset <- factor(d$dataset, unique(d$dataset))
  g <- if (s$lines) {
    d$low <- positive(d$low)
    d$middle <- positive(d$middle)
    ggplot2::ggplot(d, aes(m, middle, colour = method, shape = method)) +
      ggplot2::geom_linerange(aes(ymin = low, ymax = high), na.rm = TRUE) +
      ggplot2::geom_line(aes(linetype = method, group = method), na.rm = TRUE) + ggplot2::geom_point(na.rm = TRUE) +
      ggplot2::scale_linetype_manual(NULL, values = stats::setNames(looks$lty, looks$label))
  } else {
    ggplot2::ggplot(d, aes(error, kl, colour = method, shape = method)) + ggplot2::geom_point(na.rm = TRUE, alpha = 0.8)
  }
  if (!is.null(s$level)) {
    lines <- data.frame(dataset = factor(names(s$level), levels(d$dataset)), level = as.vector(s$level))
    g <- g + ggplot2::geom_hline(aes(yintercept = level), lines, linetype = 3, colour = "grey40")
  }
  g + ggplot2::facet_wrap("dataset", scales = "free") + ggplot2::scale_x_log10() + ggplot2::scale_y_log10() +
    ggplot2::scale_colour_manual(NULL, values = stats::setNames(looks$col, looks$label)) +
    ggplot2::scale_shape_manual(NULL, values = stats::setNames(looks$pch, looks$label)) +
    ggplot2::labs(x = s$xlab, y = s$ylab) + ggplot2::theme_bw() + ggplot2::theme(legend.position = "top")
}

ggplot_course <- function(d) {
  divergence <- error <- repetition <- NULL # columns, for R CMD check
  aes <- ggplot2::aes
  fits <- attr(d, "slope")
  label <- attr(d, "label")
  name <- function(what) sprintf("posterior %s, slope %.2f", what, vapply(fits[what], `[[`, 0, 2L))
  d$what <- name(d$what)
  ggplot2::ggplot(d, aes(divergence, error)) +
    ggplot2::geom_path(aes(colour = factor(repetition))) +
    ggplot2::geom_point(aes(colour = factor(repetition)), size = 0.7) +
    ggplot2::geom_smooth(method = "lm", formula = y ~ x, se = FALSE, linetype = 2, colour = "black") +
    ggplot2::facet_wrap("what", scales = "free_y") + ggplot2::scale_x_log10() + ggplot2::scale_y_log10() +
    ggplot2::scale_colour_manual(values = repetition_colours(length(unique(d$repetition))), guide = "none") +
    ggplot2::labs(x = label, y = "RMSE") + ggplot2::theme_bw()
}

ggplot_traces <- function(d) {
  along <- objective <- repetition <- NULL # columns, for R CMD check
  aes <- ggplot2::aes
  against <- d$along[1L]
  d$along <- d[[against]]
  label <- method_looks$label[match(d$objective_of, method_looks$method)]
  d$panel <- paste(label, d$axis, sep = ": ")
  d$objective <- positive(d$objective)
  ggplot2::ggplot(d, aes(along, objective, colour = factor(repetition))) + ggplot2::geom_line(na.rm = TRUE) +
    ggplot2::facet_wrap("panel", scales = "free_y") + ggplot2::scale_y_log10() +
    ggplot2::scale_colour_manual(values = repetition_colours(length(unique(d$repetition))), guide = "none") +
    ggplot2::labs(x = against, y = NULL) + ggplot2::theme_bw()
}
