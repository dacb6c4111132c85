# The paper's experiments: what there is of them in the package. The protocol, which cells are run when and what is
# written where are read from inst/experiments when they are first wanted.

#' Run an experiment of the paper
#'
#' The protocol of Huggins et al. (2019), section 6, on one data set: several methods, several numbers of inducing
#' points, several repetitions, each measured against the exact Gaussian process.
#'
#' A repetition draws its own split into training and test rows, standardises inputs and response by the training rows,
#' learns kernel (squared exponential, a lengthscale an input) and noise by the pilot, VFE at 200 fixed random inducing
#' points, and computes the exact posterior with them. All methods get these hyperparameters, and none of them what
#' [pfdtc()] has beyond the paper's method (near rows, learning by the evidence, another kernel). Methods are
#'   * `"pf"`: pF-DTC as in the paper, [aux_sor()] on `n_aux` random rows;
#'   * `"vfe"`: [gp_vfe()]; `"sor"`: [gp_sor()], not optimised; both, like `"pf"`, start at the same `m` random rows;
#'   * `"subsample"`: [gp_subsample()] of `m` random rows;
#'   * `"default"`: [pfdtc()] with `m` inducing points, its own auxiliary distribution and its own start, the points
#'     always moved;
#'   * `"vfe_greedy"`: [gp_vfe()] from its own default start, greedy points;
#'   * the exact posterior, always, as method `"exact"` with `m` the number of training rows.
#'
#' Optimisations of every method end by the same rule, that of `control`.
#'
#' A cell's rows go to `file` as soon as it is done, in one piece: an interrupt at any moment loses the cells under way
#' only. Run again, the call does what is not there yet. Repetitions run in parallel on `workers` processes, each with
#' one thread.
#'
#' @param dataset a name from [paper_datasets()], or your own data: a data frame of numbers with the response in the
#'   last column.
#' @param methods names from the list in the details.
#' @param m numbers of inducing points, in the order in which they are run. `NULL`: those of the package's own results,
#'   for data of your own `min(100, train)`.
#' @param reps number of repetitions.
#' @param seed a whole number from which all random numbers are derived.
#' @param file name of the results, ending in `.csv` or `.csv.gz`, or `NULL` for none. Beside `results.csv` are then
#'   `results-trace.csv`, `results-data.csv`, which tells data from other data of the same name, and a
#'   folder `results-cache` with pilots and exact posteriors at the test rows, which more cells will need: delete it
#'   when all are done.
#' @param trace which of the `m` to keep the course of: errors and divergences every few iterations, of cells that are
#'   not done yet. `NULL`: none.
#' @param control see [pfdtc_control()]. `maxit = NULL` is 200 here.
#' @param workers number of processes.
#' @param certify certify every fit by [certify()] with its [reference()] of `4 m` points?
#' @param train,test,n_aux rows to train and test on, rows that nu is made of. `NULL`: Table 1's; for data of your own
#'   80 and 20 % of the rows, and those of [aux_sor()].
#' @param name what to call your own data.
#' @param dir see [load_dataset()].
#' @param progress report each round of cells, the forecast and the time left, on stderr?
#' @return Invisibly, a data frame of class `pfdtc_experiment` of the experiment's rows: `dataset`, `m` (asked for),
#'   `repetition`, `method`, then columns as in [compare_fits()], with response and errors in units of the sd of the
#'   training rows' response, and
#'   \describe{
#'   \item{points}{inducing points, or rows of the subsample.}
#'   \item{objective}{what the fit minimised: values of different methods are not comparable.}
#'   \item{divergence}{[pf_divergence()] under the nu of the fit; `NA` for other methods than `"pf"` (that of
#'     `"default"` is measured in another norm).}
#'   \item{divergence_exact}{[pf_divergence()] with the exact posterior, for DTC-type fits.}
#'   \item{max_mean, max_sd}{largest errors of mean and sd over the test rows.}
#'   \item{certified_mean_error, certified_sd_error}{largest certified errors over the test rows.}
#'   \item{median_mean, certified_median}{medians over the test rows of the mean's error and of its certificate.}
#'   \item{outside}{number of test rows where a certificate did not hold (there should be none).}
#'   \item{cpu}{seconds of the processor.}
#'   \item{convergence, noise, maxit, reltol, seed, version}{as in the fit, and of the experiment.}
#'   }
#'   Attribute `trace` is the data frame of the trace file, of these cells.
#' @section Errors: class `pfdtc_error_input`: arguments as always; data that are missing ([load_dataset()]); a file
#'   that holds other columns, rows of this data set under another seed or stopping rule, or of other data by its name.
#' @section Invariants: interrupting and resuming, other workers, other orders of `m` change no number but the seconds.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), section 6.
#' @seealso [plot_rmse()], [plot_kl()], [plot_divergence_error()], `vignette("paper")`
#' @examples
#' small <- data.frame(x = cars$speed, y = cars$dist)
#' results <- run_experiment(small, c("pf", "vfe"), m = 4, reps = 1,
#'                           control = pfdtc_control(maxit = 10))
#' results[c("method", "rmse_mean", "rmse_sd", "certified_mean_error")]
#' @export
run_experiment <- function(dataset, methods = c("pf", "vfe", "sor", "subsample", "default"), m = NULL, reps = 10,
                           seed = 1, file = NULL, trace = NULL, control = pfdtc_control(200, reltol = 1e-5),
                           workers = 1, certify = TRUE, train = NULL, test = NULL, n_aux = NULL, name = "own",
                           dir = Sys.getenv("PFDTC_DATA"), progress = interactive()) {
  invisible(experiment_code()$experiment(dataset, methods, m, reps, seed, file, trace, control, workers, certify, train,
                                         test, n_aux, name, dir, progress))
}

# An environment inside the package's own.
experiment_code <- function() {
  if (is.null(engine$experiments)) {
    engine$experiments <- new.env(parent = topenv())
    for (file in c("protocol.R", "schedule.R")) {
      sys.source(system.file("experiments", file, package = "pfdtc", mustWork = TRUE), engine$experiments)
    }
  }
  engine$experiments
}
