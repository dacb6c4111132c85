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
#' Of classes and counts it is the last search for hyperparameters: minus the penalised log evidence, minus the log
#' prior.
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
    return(draw_figure(traces_figure(trace_curves(as_experiment(fits), against, method, dataset, m)), list(...)))
  }
  trace <- trace_frame(fits)
  panels <- lapply(split(trace, factor(trace$objective_of, unique(trace$objective_of))), trace_panel, against,
                   list(...)$log)
  k <- length(panels)
  draw_figure(figure(panels, trace, par = if (k > 1L) list(mfrow = grDevices::n2mfrow(k))), list(...))
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
    abort_input("fits", "without a trace", "fits for which something was searched",
                hint = "Hyperparameters were given or held, and inducing points not moved.")
  }
  out
}

trace_panel <- function(p, against, log) {
  names <- unique(p$fit)
  colours <- rep_len(grDevices::palette.colors(8L, "Okabe-Ito")[c(6, 7, 4, 8, 2, 3, 1, 5)], length(names))
  types <- rep(seq_len(6L), each = 8L, length.out = length(names))
  x <- p[[against]]
  y <- p$objective
  above <- y - min(y)
  comparable <- all(p$round == 1L) && any(above > 0)
  if (comparable) {
    if (is.null(log)) log <- "y"
    y <- if (grepl("y", log, fixed = TRUE)) replace(above, above == 0, NA) else above
  }
  lines <- lapply(seq_along(names), function(i) {
    own <- which(p$fit == names[i])
    lapply(split(own, p$round[own]), function(rows) {
      layer(if (length(rows) > 1L) "line" else "dots", x[rows], y[rows], pch = if (length(rows) == 1L) 1,
            col = colours[i], lty = types[i], lwd = 2)
    })
  })
  list(args = list(xlab = against, ylab = if (comparable) "objective above its lowest value" else "objective",
                   xlim = range(x), ylim = range(y, na.rm = TRUE), log = if (comparable) log else ""),
       powers = "y", las = 0, layers = unlist(unlist(lines, FALSE), FALSE),
       note = list(fit_title(list(method = p$objective_of[1L])), 3, 0.4, adj = 1, cex = 0.9),
       keys = if (length(names) > 1L) legend_keys(names, colours, types, 2),
       legend = list(ncol = min(4L, length(names)), x.intersp = 1, text.width = NULL, pch = NULL))
}
