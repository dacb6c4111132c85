# Draws the results of run_experiment() and the course of optimisations.

#' @export
print.pfdtc_experiment <- function(x, ...) {
  fits <- x[x$method != "exact", ]
  if (!nrow(fits) || !all(c("rmse_mean", "rmse_sd", "cpu", "repetition") %in% names(fits))) {
    return(NextMethod())
  }
  about <- fits[c("rmse_mean", "rmse_sd", "certified_mean_error", "cpu")]
  middle <- stats::aggregate(about, fits[c("method", "m", "dataset")], stats::median)[c(3, 2, 1, 4:7)]
  cat(sprintf("Experiment: %s, %s; medians over the repetitions\n", count_of(nrow(fits), "fit"),
              count_of(length(unique(fits$repetition)), "repetition")))
  print(middle, digits = 3, row.names = FALSE, ...)
  cat("Errors are those of the posterior mean and sd, in sd of the response; as.data.frame() has all columns.\n")
  invisible(x)
}

#' @export
as.data.frame.pfdtc_experiment <- function(x, ...) structure(x, trace = NULL, class = "data.frame")

#' Plot optimisations and results of experiments
#'
#' `plot_trace()` draws the objective along the optimisation of one or more fits, with a panel for each method. The
#' smallest value of a panel is subtracted. If a line still falls at its right end, increase `maxit`. The other
#' functions draw results of [run_experiment()] on logarithmic axes, with a panel for each data set, as in the figures
#' of Huggins et al. (2019).
#' @usage
#' plot_trace(fits, against = c("evaluation", "seconds"), ..., method = NULL, dataset = NULL,
#'   m = NULL)
#' plot_rmse(results, what = c("mean", "sd", "prediction"), datasets = NULL, methods = NULL, ...)
#' plot_kl(results, against = c("m", "error"), kl = c("process", "marginal"), best = FALSE,
#'   datasets = NULL, methods = NULL, ...)
#' plot_divergence_error(results, divergence = c("own", "exact"), method = "pf",
#'   dataset = NULL, m = NULL, ...)
#' \method{autoplot}{pfdtc_experiment}(object, figure = c("rmse", "kl", "divergence", "trace"), ...)
#' @param fits A fit, a list of fits, or the results of an experiment.
#' @param results,object A result of [run_experiment()], or the name of its file. For `plot_trace()` and
#'   `plot_divergence_error()` the experiment must have been run with its argument `trace`.
#' @param against Horizontal axis. `"error"` is the RMSE of the mean.
#' @param what Root mean square error of the posterior `"mean"` or `"sd"` of f relative to the exact GP, or of the
#'   `"prediction"` of held-out responses. A dotted line shows the exact GP. The unit is the sd of the training
#'   responses.
#' @param kl `"process"`: divergence between the processes, which is infinite for SoR. `"marginal"`: mean divergence
#'   between the marginal distributions at the test rows.
#' @param best Should only the repetition with the smallest error be shown?
#' @param divergence pF divergence under the auxiliary distribution of the fit (`"own"`, for `method = "pf"`) or under
#'   the `"exact"` posterior.
#' @param datasets,methods,method,dataset,m Data sets, methods and number of inducing points to show. Default: all; with
#'   a trace the first data set and number.
#' @param figure Which figure `autoplot()` draws with ggplot2.
#' @param ... Arguments of [plot.default()]; for `autoplot()` the arguments of the figure, by name.
#' @return Invisibly, the data of the figure as a data frame, whose columns are `dataset`, `method`, `m`, and `middle`
#'   (median), `low`, `high` and `n` (number of repetitions), or `repetition`, `error` and `kl` (nats).
#'   `plot_divergence_error()` has `repetition`, `evaluation`, `divergence`, `what` and `error`, and the attribute
#'   `slope`, the coefficients of the two fitted lines. `plot_trace()` has the columns `fit`, `objective_of` (method),
#'   `evaluation`, `seconds`, `objective`, `round`. `autoplot()` returns a ggplot.
#' @details In `plot_trace()`, values are comparable between fits with the same data, hyperparameters and auxiliary
#'   distribution. If the auxiliary distribution is renewed ([aux_refresh()], `hyper = "joint"`), a new line begins each
#'   time, and no value is subtracted. For a non-Gaussian fit the line shows the last search for hyperparameters.
#'
#' `plot_rmse()` draws errors against the number of inducing points. A line for each method joins the medians over the
#' repetitions, and bars show the range. `plot_kl()` draws Kullback-Leibler divergences in the same way, or as a point
#' for each fit. `plot_divergence_error()` draws errors of posterior mean and sd against the pF divergence. A thin line
#' shows one repetition, from the start (open) to the end (filled). The thick line is a least squares fit, and its slope
#' is printed above.
#' @seealso [run_experiment()], [plot.gp_fit()], `vignette("paper")`
#' @examples
#' plot_trace(pfdtc(dist ~ speed, cars, m = 10, control = pfdtc_control(maxit = 100)))
#' data <- data.frame(x = cars$speed, y = cars$dist)
#' results <- run_experiment(data, c("pf", "vfe", "subsample"), m = c(2, 4), reps = 2,
#'                           trace = 4, control = pfdtc_control(maxit = 5))
#' plot_rmse(results)
#' plot_kl(results, against = "error")
#' plot_divergence_error(results)
#' if (requireNamespace("ggplot2", quietly = TRUE)) ggplot2::autoplot(results, "rmse", what = "sd")
#' @aliases plot_trace plot_kl plot_divergence_error autoplot.pfdtc_experiment
#' @export
plot_rmse <- function(results, what = c("mean", "sd", "prediction"), datasets = NULL, methods = NULL, ...) {
  draw_figure(rmse_figure(as_experiment(results), what, datasets, methods), list(...))
}

#' @export
plot_kl <- function(results, against = c("m", "error"), kl = c("process", "marginal"), best = FALSE, datasets = NULL,
                    methods = NULL, ...) {
  draw_figure(kl_figure(as_experiment(results), against, kl, best, datasets, methods), list(...))
}

#' @export
plot_divergence_error <- function(results, divergence = c("own", "exact"), method = "pf", dataset = NULL, m = NULL,
                                  ...) {
  draw_figure(course_figure(as_experiment(results), divergence, method, dataset, m), list(...))
}

#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_experiment <- function(object, figure = c("rmse", "kl", "divergence", "trace"), ...) {
  make <- switch(check_choice(figure, c("rmse", "kl", "divergence", "trace"), "figure"), rmse = rmse_figure,
                 kl = kl_figure, divergence = course_figure, trace = repetitions_figure)
  check_dots_empty(setdiff(names(list(...)), names(formals(make))), names(formals(make))[-1L])
  ggplot_figure(make(as_experiment(object), ...))
}

# ---- errors ---------------------------------------------------------------------------------------------------------

# Methods have the colours of Okabe and Ito, and different symbols and line types.
method_looks <- data.frame(
  method = c("pf", "default", "vfe", "vfe_greedy", "sor", "subsample"),
  label = c("pF-DTC (paper)", "pF-DTC (defaults)", "VFE", "VFE, greedy start", "SoR", "subsample"),
  col = c("#0072B2", "#D55E00", "#000000", "#CC79A7", "#E69F00", "#009E73"), pch = c(16L, 15L, 1L, 2L, 4L, 3L),
  lty = c(1L, 1L, 2L, 4L, 3L, 5L))

# Checks the names of data sets and methods. Returns them in plotting order, with the rows of the results that they
# select, as list(datasets, methods, fits).
pick <- function(results, datasets, methods) {
  choose <- function(wanted, there, argument) {
    lacking <- setdiff(wanted, there)
    refuse_if(length(lacking), argument, describe(lacking[1L]), paste("some of", list_quoted(there, "\"", 10L)))
    if (is.null(wanted)) there else wanted
  }
  order <- c(paper_datasets()$name, unique(results$dataset))
  datasets <- choose(datasets, intersect(order, results$dataset), "datasets")
  methods <- choose(methods, intersect(method_looks$method, results$method), "methods")
  list(datasets = datasets, methods = methods,
       fits = results[results$dataset %in% datasets & results$method %in% methods, ])
}

# Applies `f` to each group of repetitions (same data set, method and number of points) with finite values in `column`.
# The default returns their median and range.
over_repetitions <- function(picked, column, f = function(g) {
                               v <- g[[column]]
                               data.frame(g[1L, c("dataset", "method", "m")], middle = stats::median(v), low = min(v),
                                          high = max(v), n = length(v))
                             }) {
  fits <- picked$fits[is.finite(picked$fits[[column]]), ]
  d <- do.call(rbind, lapply(split(fits, fits[c("m", "method", "dataset")], drop = TRUE), f))
  refuse_if(is.null(d) || !nrow(d), "results", "has no finite values")
  `row.names<-`(d[order(match(d$dataset, picked$datasets), match(d$method, picked$methods), d$m), ], NULL)
}

rmse_figure <- function(results, what = c("mean", "sd", "prediction"), datasets = NULL, methods = NULL) {
  what <- check_choice(what, c("mean", "sd", "prediction"), "what")
  picked <- pick(results, datasets, methods)
  prediction <- what == "prediction"
  exact <- results[results$method == "exact" & results$dataset %in% picked$datasets, ]
  errors_figure(over_repetitions(picked, if (prediction) "rmse_pred" else paste0("rmse_", what)), "inducing points",
                paste("RMSE of the", if (prediction) what else paste("posterior", what)),
                if (prediction) tapply(exact$rmse_pred, exact$dataset, stats::median))
}

kl_figure <- function(results, against = c("m", "error"), kl = c("process", "marginal"), best = FALSE, datasets = NULL,
                      methods = NULL) {
  against <- check_choice(against, c("m", "error"), "against")
  kl <- check_choice(kl, c("process", "marginal"), "kl")
  picked <- pick(results, datasets, methods)
  column <- c(process = "kl", marginal = "kl_marginal")[[kl]]
  fits <- over_repetitions(picked, column, if (check_flag(best, "best")) function(g) g[which.min(g$rmse_mean), ] else
    identity)
  ylab <- if (kl == "process") "KL(approximation || exact)" else "mean marginal KL"
  picked$fits <- fits
  if (against == "m") return(errors_figure(over_repetitions(picked, column), "inducing points", ylab))
  errors_figure(data.frame(fits[c("dataset", "method", "m", "repetition")], error = fits$rmse_mean,
                           kl = fits[[column]]), "RMSE of the posterior mean", ylab)
}

# Draws a panel for each data set: medians and ranges against the number of points, or the column `kl` against `error`.
# `level` has the error of the exact GP for each data set.
errors_figure <- function(d, xlab, ylab, level = NULL) {
  lines <- !is.null(d$middle)
  looks <- method_looks[method_looks$method %in% d$method, ]
  k <- nrow(looks)
  shift <- if (lines) 1.012^(seq_len(k) - (k + 1) / 2) else 1 # moves the bars of methods side by side
  logarithmic <- function(v) range(v[is.finite(v) & v > 0])
  panels <- lapply(split(d, factor(d$dataset, unique(d$dataset))), function(d) {
    set <- d$dataset[1L]
    ylim <- logarithmic(if (lines) c(d$middle, d$low, d$high, level[set]) else d$kl)
    layers <- lapply(which(looks$method %in% d$method), function(i) {
      look <- looks[i, ]
      here <- d[d$method == look$method, ]
      if (!lines) {
        return(layer("dots", positive(here$error), positive(here$kl), col = grDevices::adjustcolor(look$col, 0.8),
                     pch = look$pch, cex = 0.8))
      }
      at <- here$m * shift[i]
      c(layer("segment", at, pmax(here$low, axis_foot(ylim)), x1 = at, y1 = here$high, col = look$col),
        layer("line", at, positive(here$middle), col = look$col, lty = look$lty, lwd = 1.5),
        layer("dots", at, positive(here$middle), col = look$col, pch = look$pch))
    })
    list(args = list(main = set, log = "xy", xlim = logarithmic(if (lines) d$m else d$error) * range(shift),
                     ylim = ylim), ticks = if (lines) list(at = unique(d$m)),
         layers = c(if (!is.null(level)) layer("rule", NULL, level[[set]], lty = 3, col = "grey40", lwd = 1.5),
                    unlist(layers, FALSE)))
  })
  keys <- legend_keys(looks$label, looks$col, if (lines) looks$lty else NA, 1.5, looks$pch)
  if (!is.null(level)) keys <- rbind(keys, legend_keys("exact", "grey40", 3L, 1.5))
  figure(panels, d, keys, sort(grDevices::n2mfrow(length(panels))), list(xlab = xlab, ylab = ylab)) # wider than high
}

# ---- along optimisations --------------------------------------------------------------------------------------------

trace_of <- function(results, method, dataset, m) {
  trace <- attr(results, "trace")
  refuse_if(is.null(trace) || !nrow(trace), "results", "has no trace",
            hint = "Use run_experiment() with its argument `trace`.")
  if (is.null(dataset)) dataset <- trace$dataset[1L]
  trace <- trace[trace$dataset == dataset & trace$method %in% method, ]
  trace <- trace[trace$m %in% if (is.null(m)) trace$m[1L] else m, ]
  refuse_if(!nrow(trace), "results",
            sprintf("has no trace of %s, %s, m = %s", dataset, paste(method, collapse = ", "),
                    if (is.null(m)) "any" else format(m)))
  trace
}

repetition_colours <- function(n) grDevices::hcl.colors(max(n, 2L), "Viridis", rev = TRUE)[seq_len(n)]

course_figure <- function(results, divergence = c("own", "exact"), method = "pf", dataset = NULL, m = NULL) {
  divergence <- check_choice(divergence, c("own", "exact"), "divergence")
  method <- check_choice(method, setdiff(experiment_methods, c("sor", "subsample")), "method")
  t <- trace_of(results, method, dataset, m)
  d <- if (divergence == "own") t$divergence else t$divergence_exact
  refuse_if(all(is.na(d)), "divergence", divergence, "\"exact\" for a method that has no divergence of its own")
  out <- data.frame(repetition = t$repetition, evaluation = t$evaluation, divergence = d,
                    what = rep(c("mean", "sd"), each = nrow(t)), error = c(t$rmse_mean, t$rmse_sd))
  out <- out[is.finite(out$divergence) & out$divergence > 0 & out$error > 0, ]
  slope <- lapply(split(out, out$what), function(o) {
    stats::coef(stats::lm(log(error) ~ log(divergence), o)) # intercept and exponent of error = exp(a) d^b
  })
  label <- paste("pF divergence", if (divergence == "own") "(auxiliary distribution)" else "from the exact posterior")
  panels <- lapply(unique(out$what), function(what) {
    d <- out[out$what == what, ]
    runs <- split(d, d$repetition)
    layers <- Map(function(run, colour) {
      run <- run[order(run$evaluation), ]
      ends <- run[c(1L, nrow(run)), ]
      c(layer("line", run$divergence, run$error, col = colour),
        layer("dots", run$divergence, run$error, col = colour, pch = 16, cex = 0.4),
        layer("dots", ends$divergence, ends$error, bg = c("white", colour), pch = 21))
    }, runs, repetition_colours(length(runs)))
    x <- range(d$divergence)
    fit <- slope[[what]]
    list(args = list(main = sprintf("slope %.2f", fit[2L]), xlab = label, ylab = paste("RMSE of the posterior", what),
                     log = "xy", xlim = x, ylim = range(d$error)),
         layers = c(unlist(unname(layers), FALSE), layer("line", x, exp(fit[1L]) * x^fit[2L], lwd = 2.5, lty = 2)))
  })
  figure(panels, structure(out, slope = slope, label = label), shape = 1:2)
}

#' @export
plot_trace <- function(fits, against = c("evaluation", "seconds"), ..., method = NULL, dataset = NULL,
                       m = NULL) {
  check_given("fits", "Give a list of fits, or what run_experiment() returned.")
  if (is.character(fits) || (is.data.frame(fits) && all(result_columns %in% names(fits)))) {
    return(draw_figure(repetitions_figure(as_experiment(fits), against, method, dataset, m), list(...)))
  }
  against <- check_choice(against, c("evaluation", "seconds"), "against")
  fits <- label_fits(fits, function(fit) fit$method)
  trace <- do.call(rbind, unname(Map(function(fit, label) {
    t <- fit$trace[!is.na(fit$trace$objective), ] # omit failed steps
    if (NROW(t)) {
      data.frame(fit = label, objective_of = fit$method, evaluation = t$evaluation, seconds = t$seconds,
                 objective = t$objective, round = if (is.null(t$round)) 1L else t$round)
    }
  }, fits, names(fits))))
  refuse_if(is.null(trace), "fits", "have no trace",
            hint = "Hyperparameters were given or held, and inducing points not moved.")
  fit <- factor(trace$fit, unique(trace$fit))
  looks <- series_looks(nlevels(fit))
  first <- stats::ave(trace$round, trace$objective_of, FUN = max) == 1L
  above <- trace$objective - stats::ave(trace$objective, trace$objective_of, FUN = min)
  comparable <- first & stats::ave(above, trace$objective_of, FUN = max) > 0
  log <- if (is.null(list(...)$log)) "y" else list(...)$log
  title <- vapply(trace$objective_of, function(m) posterior_title(list(method = m)), "")
  f <- trace_figure(trace, against, ifelse(comparable, above, trace$objective),
                    interaction(fit, trace$round, drop = TRUE), looks[fit, ], title,
                    ifelse(comparable, "objective minus its smallest value", "objective"), ifelse(comparable, log, ""))
  if (nlevels(fit) > 1L) f <- figure(f$panels, trace, legend_keys(levels(fit), looks$col, looks$lty, 2), f$shape)
  draw_figure(f, list(...))
}

# Draws the values `y` against the column `against` of `value`: a panel for each `title`, and in it a line for each
# `run`. The arguments have an element, and `looks` (colours and line types) a row, for each value of `y`.
trace_figure <- function(value, against, y, run, looks, title, ylab, log) {
  at <- value[[against]]
  panels <- lapply(split(seq_along(y), factor(title, unique(title))), function(own) {
    logarithmic <- log[own[1L]] == "y"
    layers <- lapply(split(own, run[own], drop = TRUE), function(i) {
      shown <- if (logarithmic) positive(y[i]) else y[i]
      single <- sum(!is.na(shown)) < 2L
      layer(if (single) "dots" else "line", at[i], shown, pch = if (single) 1, col = looks$col[i[1L]],
            lty = looks$lty[i[1L]], lwd = 2)
    })
    list(args = list(main = title[own[1L]], xlab = against, ylab = ylab[own[1L]], log = log[own[1L]]),
         layers = unlist(unname(layers), FALSE))
  })
  figure(panels, value, shape = rev(grDevices::n2mfrow(length(panels))))
}

# Draws the course of each repetition: the divergence from the exact posterior if known, else the objective minus its
# lowest value in the run (each run has other data).
repetitions_figure <- function(results, against = c("evaluation", "seconds"), method = NULL, dataset = NULL, m = NULL) {
  against <- check_choice(against, c("evaluation", "seconds"), "against")
  t <- trace_of(results, if (is.null(method)) c("pf", "vfe") else method, dataset, m)
  run <- interaction(t$method, t$repetition, drop = TRUE)
  above <- t$objective - stats::ave(t$objective, run, FUN = min)
  known <- stats::ave(!is.na(t$divergence), t$method, FUN = all) > 0
  d <- data.frame(fit = sprintf("repetition %g", t$repetition), objective_of = t$method, evaluation = t$evaluation,
                  seconds = t$seconds, objective = ifelse(known, t$divergence, above),
                  axis = ifelse(known, "pF divergence", "objective minus its smallest value"), along = against,
                  repetition = t$repetition)
  repetitions <- unique(t$repetition)
  looks <- data.frame(col = repetition_colours(length(repetitions))[match(t$repetition, repetitions)], lty = 1L)
  trace_figure(d, against, d$objective, run, looks, method_looks$label[match(t$method, method_looks$method)], d$axis,
               rep("y", nrow(d)))
}
