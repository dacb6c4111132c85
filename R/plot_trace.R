#' Plot the course of an optimisation
#'
#' The objective against the number of evaluations or the seconds, a line a fit, as in Figure 1a of
#' Huggins et al. (2019). What is drawn is how far it is above the lowest value of any fit in the
#' panel, on a logarithmic axis: the pF objective itself is known up to a constant only. The lowest
#' point has no place on such an axis and is left out.
#'
#' How to read it: a line that still falls steadily at its right end was stopped too early, and a larger `maxit` is
#' worth its time; one that has been level for long is done. Lines that end at different heights have found different
#' optima: the lowest is the best start. The best line dives at its end, because it nears the value that it is measured
#' from: that says nothing. Short rises are steps that the optimiser tried and took back.
#'
#' Values can be compared between fits with the same data, hyperparameters and auxiliary
#' distribution. Objectives of different methods (pF divergence, minus the ELBO) have no common
#' scale: each method gets a panel. Where the objective was renewed during the fit ([aux_refresh()],
#' `hyper = "joint"`), values before and after are not comparable: the lines are broken there, and
#' the panel shows the values as they are.
#'
#' For an experiment there is a panel a method and a line a repetition: of the pF divergence where it
#' is known, else of the objective above the lowest value of that repetition, since each has data of
#' its own.
#'
#' @param fits A fit or a list of fits, whose names go to the legend; or what [run_experiment()]
#'   returned with its argument `trace`, or the name of its file.
#' @param against What runs along the horizontal axis.
#' @param ... Passed on to [plot.default()], e.g. `main`, `ylim`, or `log = ""` for a linear axis.
#' @param method,dataset,m Of an experiment, what to show. `NULL`: pF-DTC and VFE, the first data set
#'   and number of points in the trace.
#' @return What was plotted, invisibly: a data frame with columns `fit` (name), `objective_of` (the
#'   method), `evaluation`, `seconds`, `objective` (as it is) and `round` (values of a round are
#'   comparable).
#' @inherit predict.gp_fit source
#' @seealso [plot.gp_fit()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 10, control = pfdtc_control(maxit = 100))
#' plot_trace(fit)
#' @export
plot_trace <- function(fits, against = c("evaluation", "seconds"), ..., method = NULL, dataset = NULL,
                       m = NULL) {
  against <- check_choice(against, c("evaluation", "seconds"), "against")
  if (is.character(fits) || (is.data.frame(fits) && all(result_columns %in% names(fits)))) {
    curves <- trace_curves(as_experiment(fits), against, method, dataset, m)
    draw_trace_curves(curves, list(...))
    return(invisible(curves))
  }
  trace <- trace_frame(fits)
  panels <- split(trace, factor(trace$objective_of, unique(trace$objective_of)))
  if (length(panels) > 1L) {
    old <- graphics::par(mfrow = grDevices::n2mfrow(length(panels)))
    on.exit(graphics::par(old))
  }
  for (p in panels) draw_trace(p, against, list(...))
  invisible(trace)
}

trace_frame <- function(fits) {
  fits <- label_fits(fits, function(fit) fit$method)
  out <- Map(function(fit, label) {
    t <- fit$trace
    t <- t[!is.na(t$objective), ]     # NA: a step too far
    if (!nrow(t)) return(NULL)
    data.frame(fit = label, objective_of = fit$method, evaluation = t$evaluation,
               seconds = t$seconds, objective = t$objective,
               round = if (is.null(t$round)) 1L else t$round)
  }, fits, names(fits))
  out <- do.call(rbind, unname(out))
  if (is.null(out)) {
    abort_input("fits", "without a trace", "fits whose inducing points were optimised")
  }
  out
}

draw_trace <- function(p, against, args) {
  names <- unique(p$fit)
  colours <- grDevices::palette.colors(8L, "Okabe-Ito")[c(6, 7, 4, 8, 2, 3, 1, 5)]
  colours <- rep_len(colours, length(names))
  types <- rep(seq_len(6L), each = 8L, length.out = length(names))
  method <- fit_title(list(method = p$objective_of[1L]))
  label <- "objective"
  y <- p$objective
  above <- y - min(y)
  if (all(p$round == 1L) && any(above > 0)) {
    label <- "objective above its lowest value"
    log <- if (is.null(args$log)) "y" else args$log
    y <- if (grepl("y", log, fixed = TRUE)) replace(above, above == 0, NA) else above
    args$log <- log
  }
  args <- utils::modifyList(list(xlab = against, ylab = label, yaxt = "n"), args)
  do.call(graphics::plot.default, c(list(x = p[[against]], y = y, type = "n"), args))
  if (identical(args$yaxt, "n")) if (isTRUE(grepl("y", args$log, fixed = TRUE))) decades(2, 0) else graphics::axis(2)
  graphics::mtext(method, 3, 0.4, adj = 1, cex = 0.9 * graphics::par("cex"))
  for (i in seq_along(names)) {
    for (rows in split(which(p$fit == names[i]), p$round[p$fit == names[i]])) {
      graphics::lines(p[[against]][rows], y[rows], type = if (length(rows) > 1L) "l" else "p",
                      col = colours[i], lty = types[i], lwd = 2)
    }
  }
  if (length(names) > 1L) {
    draw_keys(above_panel(), FALSE, list(
      legend = names, xpd = NA, ncol = min(4L, length(names)), col = colours, lty = types, lwd = 2,
      bty = "n", seg.len = 1.5))
  }
}
