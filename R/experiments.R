# Runs the experiments of the paper and draws their results, by the code in inst/experiments.

#' Run an experiment of the paper
#'
#' Runs the protocol of Huggins et al. (2019), section 6, on one data set: several methods, numbers of inducing points
#' and repetitions. Every fit is compared with the exact GP. `paper_datasets()` lists the six data sets in Table 1 of
#' the paper and two larger data sets. `load_dataset()` draws the synthetic data and reads other data from CSV files
#' that you prepare. `vignette("paper")` describes the protocol.
#' @usage
#' run_experiment(dataset, methods = c("pf", "vfe", "sor", "subsample", "default"), m = NULL,
#'   reps = 10, seed = 1, file = NULL, trace = NULL, control = pfdtc_control(200, reltol = 1e-5),
#'   workers = 1, certify = TRUE, train = NULL, test = NULL, n_aux = NULL, name = "own",
#'   dir = Sys.getenv("PFDTC_DATA"), progress = interactive())
#' read_experiment(file)
#' paper_datasets()
#' load_dataset(name, dir = Sys.getenv("PFDTC_DATA"))
#' @param dataset A name from `paper_datasets()`, or a data frame of numbers with the response last.
#' @param methods Names of methods, see Details.
#' @param m Numbers of inducing points. Default: as in the paper; for other data `min(100, train)`.
#' @param reps Number of repetitions.
#' @param seed A whole number from which all random numbers are derived.
#' @param file Name of the file of results, ending in `.csv` or `.csv.gz`. After an interrupt the same call completes
#'   it. `read_experiment()` reads this file and its trace file.
#' @param trace Values of `m` for which errors and divergences are stored at steps of the optimisation.
#' @param control See [pfdtc_control()].
#' @param workers Number of processes, each with one thread.
#' @param dir Folder with the CSV files, plain or gzipped. Each has a header line and numbers, the response `y` last.
#' @param certify Should every fit be certified with a [reference()] of `4 m` inducing points?
#' @param train,test,n_aux Numbers of rows for training, for tests, and for the auxiliary distribution. Default: as in
#'   the paper; for your own data 80 %, 20 % and the default of [aux_sor()].
#' @param name Name for your own data; for `load_dataset()` a name from `paper_datasets()`.
#' @param progress Should progress be reported on stderr?
#' @return `run_experiment()`: invisibly, a data frame of class `pfdtc_experiment` with a row for each fit; errors are
#'   in sds of the training response. Columns are `dataset`, `m`, `repetition`, `method`, the columns of
#'   [compare_fits()] except `pf_divergence`, `points` (inducing points in use), `divergence` and `divergence_exact` (pF
#'   divergence under the auxiliary distribution of the fit and under the exact posterior), maxima and medians of
#'   errors, `outside` (wrong certificates, expected: 0), `cpu` (processor seconds) and settings. Attribute: `trace`.
#'
#'   `paper_datasets()`: a data frame with a row for each data set: `name`; `n_train`, `n_test`; `d`, the number of
#'   inputs; `n_aux`, the rows of the auxiliary distribution (K in the paper); `paper`, whether Table 1 has
#'   the data set; `file`, the name without `.csv` or `.csv.gz`; `source`; `prepare`, which explains how to make the
#'   file from the source.
#' @details All methods use the hyperparameters of VFE with up to 200 random points, and one stopping rule. `"pf"` (as
#'   in the paper), `"vfe"` and `"sor"` start with the same random rows as inducing points. `"subsample"` uses `m`
#'   random rows, `"default"` is [pfdtc()] with `m` inducing points and no neighbours. `"vfe_greedy"` starts with
#'   [inducing_points()] by `"greedy"`. `"exact"` is always included. Interrupts, workers and the order of `m` change
#'   only times.
#'
#' `"synthetic"` has 2,000 random rows as in the scripts of the authors, with `x` uniform on (0, 2) and \eqn{y = \sin(12
#' x) + 0.66 \cos(25 x) + 3 + e}{y = sin(12 x) + 0.66 cos(25 x) + 3 + e}, \eqn{e \sim N(0, 0.01)}{e ~ N(0, 0.01)}.
#' @seealso [plot_rmse()], `vignette("paper")`
#' @examples
#' results <- run_experiment(cars, c("pf", "vfe"), m = 4, reps = 1, control = pfdtc_control(10))
#' results[c("method", "rmse_mean", "rmse_sd", "certified_mean_error")]
#' paper <- system.file("experiments", "results", "paper.csv.gz", package = "pfdtc")
#' if (nzchar(paper)) head(read_experiment(paper)[1:7])
#' paper_datasets()[1:5]
#' str(load_dataset("synthetic"))
#' @aliases read_experiment paper_datasets load_dataset
#' @export
run_experiment <- function(dataset, methods = c("pf", "vfe", "sor", "subsample", "default"), m = NULL, reps = 10,
                           seed = 1, file = NULL, trace = NULL, control = pfdtc_control(200, reltol = 1e-5),
                           workers = 1, certify = TRUE, train = NULL, test = NULL, n_aux = NULL, name = "own",
                           dir = Sys.getenv("PFDTC_DATA"), progress = interactive()) {
  check_given("dataset", "paper_datasets() lists the names.")
  invisible(experiment_code()$experiment(dataset, methods, m, reps, seed, file, trace, control, workers, certify, train,
                                         test, n_aux, name, dir, progress))
}

# Returns an environment with the code in inst/experiments. The first call reads this code.
experiment_code <- function() {
  if (is.null(engine$experiments)) {
    engine$experiments <- new.env(parent = topenv())
    for (file in c("protocol.R", "schedule.R", "figures.R")) {
      sys.source(system.file("experiments", file, package = "pfdtc", mustWork = TRUE), engine$experiments)
    }
  }
  engine$experiments
}

#' @export
read_experiment <- function(file) {
  check_given("file", "Give the name of a file that run_experiment() wrote.")
  experiment_code()$read_file(file)
}

#' @export
print.pfdtc_experiment <- function(x, ...) {
  fits <- x[x$method != "exact", ]
  if (!nrow(fits) || !all(c("rmse_mean", "rmse_sd", "cpu", "repetition") %in% names(fits))) return(NextMethod())
  about <- fits[c("rmse_mean", "rmse_sd", "certified_mean_error", "cpu")]
  middle <- stats::aggregate(about, fits[c("method", "m", "dataset")], stats::median)[c(3, 2, 1, 4:7)]
  cat(sprintf("Experiment: %s, %s; medians over the repetitions\n", count_of(nrow(fits), "fit"),
              count_of(length(unique(fits$repetition)), "repetition")))
  print(middle, digits = 3, row.names = FALSE, ...)
  cat("Errors of posterior mean and sd are in sd of the response, `cpu` in seconds; as.data.frame() has all columns.\n")
  invisible(x)
}

#' @export
as.data.frame.pfdtc_experiment <- function(x, ...) structure(x, trace = NULL, class = "data.frame")

#' @export
paper_datasets <- function() {
  utils::read.csv(system.file("experiments", "datasets.csv", package = "pfdtc", mustWork = TRUE))
}

#' @export
load_dataset <- function(name, dir = Sys.getenv("PFDTC_DATA")) {
  check_given("name", "paper_datasets() lists the names.")
  experiment_code()$read_dataset(name, dir)
}

#' Plot optimisations and results of experiments
#'
#' `plot_trace()` draws the objective of fits during optimisation, in a panel for each method, minus the panel's
#' smallest value. For an experiment, the smallest value of each repetition is subtracted, but `"pf"` lines show the [pF
#' divergence][pf_objective] itself. If a line still falls at its end, increase `maxit`. The others draw results of
#' [run_experiment()] on log axes, as in Huggins et al. (2019).
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
#'   `"prediction"` of held-out responses, with a dotted line for the exact GP. The unit is the sd of the training
#'   responses.
#' @param kl `"process"`: divergence between the processes, which is infinite for SoR. `"marginal"`: mean divergence
#'   between the marginal distributions at the test rows.
#' @param best Should only the repetition with the smallest error be shown?
#' @param divergence pF divergence under the auxiliary distribution of the fit (`"own"`, only for `"pf"`) or under
#'   the `"exact"` posterior.
#' @param datasets,methods,method,dataset,m Data sets, methods and number of inducing points to show. Default: all;
#'   `plot_trace()` and `plot_divergence_error()` (of `"pf"`): the first of each.
#' @param figure Which figure `autoplot()` draws with ggplot2.
#' @param ... Arguments of [plot.default()]; for `autoplot()` the arguments of the figure, by name.
#' @return Invisibly, the figure's data: a data frame with columns `dataset`, `method`, `m`, and `middle` (median),
#'   `low`, `high` and `n` (number of repetitions), or `repetition`, `error` and `kl` (nats). `plot_divergence_error()`
#'   has `repetition`, `evaluation`, `divergence`, `what` and `error`, and the attribute `slope`, the coefficients of
#'   the two fitted lines. `plot_trace()` has `fit`, `objective`, `objective_of`, `evaluation`, `seconds`, titles `axis`
#'   and `along`, `round` or `repetition`. `autoplot()`: a ggplot.
#' @details In `plot_trace()`, values are comparable between fits with the same data, hyperparameters and [auxiliary
#'   distribution][aux_sor]. If the auxiliary distribution is renewed ([aux_refresh()], `hyper = "joint"`), a new line
#'   begins each time, and no value is subtracted. For a non-Gaussian fit the line shows the last search for
#'   hyperparameters.
#'
#' `plot_rmse()` draws errors against the number of inducing points. A line for each method joins the medians over the
#' repetitions, and bars show the range. `plot_kl()` draws Kullback-Leibler divergences in the same way, or with
#' `against = "error"` as a point for each fit. `plot_divergence_error()` draws errors of posterior mean and sd against
#' the [pF divergence][pf_objective]. A thin line shows one repetition, from the start (open) to the end (filled). The
#' thick line is a least squares fit, and its slope is printed above.
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
  draw_figure(experiment_code()$rmse_figure(results, what, datasets, methods), list(...))
}

#' @export
plot_kl <- function(results, against = c("m", "error"), kl = c("process", "marginal"), best = FALSE, datasets = NULL,
                    methods = NULL, ...) {
  draw_figure(experiment_code()$kl_figure(results, against, kl, best, datasets, methods), list(...))
}

#' @export
plot_divergence_error <- function(results, divergence = c("own", "exact"), method = "pf", dataset = NULL, m = NULL,
                                  ...) {
  draw_figure(experiment_code()$divergence_figure(results, divergence, method, dataset, m), list(...))
}

#' @exportS3Method ggplot2::autoplot
autoplot.pfdtc_experiment <- function(object, figure = c("rmse", "kl", "divergence", "trace"), ...) {
  figure <- check_choice(figure)
  make <- experiment_code()[[paste0(figure, "_figure")]]
  check_dots_empty(setdiff(names(list(...)), names(formals(make))), names(formals(make))[-1L])
  ggplot_figure(make(object, ...))
}

#' @export
plot_trace <- function(fits, against = c("evaluation", "seconds"), ..., method = NULL, dataset = NULL, m = NULL) {
  check_given("fits", "Give a list of fits, or what run_experiment() returned.")
  if (is.character(fits) || (is.data.frame(fits) && all(experiment_code()$result_columns %in% names(fits)))) {
    return(draw_figure(experiment_code()$trace_figure(fits, against, method, dataset, m), list(...)))
  }
  against <- check_choice(against)
  fits <- label_fits(fits)
  trace <- do.call(rbind, unname(Map(function(fit, label) {
    t <- fit$trace[!is.na(fit$trace$objective), ] # omits failed steps
    if (NROW(t)) {
      by <- if (is.null(fit$likelihood)) fit$method else response_of(fit)$words[["by"]]
      data.frame(fit = label, objective_of = by, evaluation = t$evaluation, seconds = t$seconds,
                 objective = t$objective, round = t$round %||% 1L)
    }
  }, fits, names(fits))))
  refuse_if(is.null(trace), "fits", "have no trace",
            hint = "Fits have a trace if their inducing points were moved, or with a non-Gaussian family.")
  fit <- factor(trace$fit, unique(trace$fit))
  looks <- series_looks(nlevels(fit))
  first <- stats::ave(trace$round, trace$objective_of, FUN = max) == 1L
  above <- trace$objective - stats::ave(trace$objective, trace$objective_of, FUN = min)
  comparable <- first & stats::ave(above, trace$objective_of, FUN = max) > 0
  log <- list(...)$log %||% "y"
  title <- vapply(trace$objective_of, function(m) posterior_title(list(method = m)), "")
  f <- figure_of_runs(trace, against, ifelse(comparable, above, trace$objective),
                    interaction(fit, trace$round, drop = TRUE), looks[fit, ], title,
                    ifelse(comparable, "objective minus its smallest value", "objective"), ifelse(comparable, log, ""),
                    if (nlevels(fit) > 1L) legend_keys(levels(fit), looks$col, looks$lty, 2))
  draw_figure(f, list(...))
}

# Returns a figure of `y` against the column `against` of `value`: a panel for each different `title`, a line for each
# `run`. `title`, `run`, `ylab` and `log` have an element, and `looks` (colour, line type) a row, for each element of y.
figure_of_runs <- function(value, against, y, run, looks, title, ylab, log, keys = NULL) {
  panels <- lapply(split(seq_along(y), factor(title, unique(title))), function(own) {
    logarithmic <- log[own[1L]] == "y"
    layers <- lapply(split(own, run[own], drop = TRUE), function(i) {
      shown <- if (logarithmic) positive(y[i]) else y[i]
      single <- sum(!is.na(shown)) < 2L
      layer(if (single) "dots" else "line", value[[against]][i], shown, pch = if (single) 1, col = looks$col[i[1L]],
            lty = looks$lty[i[1L]], lwd = 2)
    })
    list(args = list(main = title[own[1L]], xlab = against, ylab = ylab[own[1L]], log = log[own[1L]]),
         layers = unlist(unname(layers), FALSE))
  })
  figure(panels, value, keys, rev(grDevices::n2mfrow(length(panels))))
}
