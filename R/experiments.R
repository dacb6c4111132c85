# Runs the experiments of the paper: protocol, files of results and data sets.

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
#' @param m Numbers of inducing points. Default: as in the stored results; for your own data `min(100, train)`.
#' @param reps Number of repetitions.
#' @param seed A whole number from which all random numbers are derived.
#' @param file Name of the file of results, ending in `.csv` or `.csv.gz`. After an interrupt the same call completes
#'   it. `read_experiment()` reads this file and its trace file.
#' @param trace Values of `m` for which errors and divergences are stored at steps of the optimisation.
#' @param control See [pfdtc_control()].
#' @param workers Number of processes, each with one thread.
#' @param dir Folder with the CSV files, plain or gzipped. Each has a header line and only numbers, with the response
#'   `y` last.
#' @param certify Should every fit be certified with a [reference()] of `4 m` inducing points?
#' @param train,test,n_aux Numbers of rows for training, for tests, and for the auxiliary distribution. Default: as in
#'   the paper; for your own data 80 %, 20 % and the default of [aux_sor()].
#' @param name Name for your own data; for `load_dataset()` a name from `paper_datasets()`.
#' @param progress Should progress be reported on stderr?
#' @return `run_experiment()`: invisibly, a data frame of class `pfdtc_experiment` with a row for each fit; errors are
#'   in sds of the training response. Columns are `dataset`, `m`, `repetition`, `method`, the columns of
#'   [compare_fits()], `points` (in use), `divergence` and `divergence_exact` (as `"own"` and `"exact"` in
#'   [plot_divergence_error()]), maxima and medians of errors, `outside` (number of rows at which a certificate is
#'   wrong, expected to be 0), `cpu`, `convergence`, `noise`, `maxit`, `reltol`, `seed`, `version`. Attribute: `trace`.
#'
#'   `paper_datasets()`: a data frame with a row for each data set: `name`; `n_train`, `n_test`; `d`, the number of
#'   inputs; `n_aux`, the rows of the auxiliary distribution (K in the paper); `paper`, whether Table 1 has the data
#'   set; `file`, the name without `.csv` or `.csv.gz`; `source`; `prepare`, which explains how to make the file from
#'   the source.
#' @details All methods use the hyperparameters of VFE with 200 random inducing points, and the same stopping rule.
#'   `"pf"` (pF-DTC as in the paper), `"vfe"` and `"sor"` start with the same random rows as inducing points.
#'   `"subsample"` uses `m` random rows, `"default"` is [pfdtc()] with `m` inducing points, `"vfe_greedy"` starts with
#'   [inducing_points()] by `"greedy"`. `"exact"` is always included. Interrupts, workers and the order of `m` change
#'   only the times.
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

# Returns an environment with the code in inst/experiments (protocol and scheduler), which is read at first use.
experiment_code <- function() {
  if (is.null(engine$experiments)) {
    engine$experiments <- new.env(parent = topenv())
    for (file in c("protocol.R", "schedule.R")) {
      sys.source(system.file("experiments", file, package = "pfdtc", mustWork = TRUE), engine$experiments)
    }
  }
  engine$experiments
}

# ---- files ----------------------------------------------------------------------------------------------------------

result_columns <- c(
  "dataset", "m", "repetition", "method", "points", "objective", "rmse_mean", "rmse_sd", "kl", "kl_marginal",
  "rmse_pred", "nlpd", "coverage", "certified_mean_error", "seconds", "evaluations", "divergence", "divergence_exact",
  "max_mean", "max_sd", "certified_sd_error", "median_mean", "certified_median", "outside", "cpu", "convergence",
  "noise", "maxit", "reltol", "seed", "version")
trace_columns <- c("dataset", "m", "repetition", "method", "evaluation", "seconds", "objective", "divergence",
                   "divergence_exact", "rmse_mean", "rmse_sd")

csv_end <- "[.]csv([.]gz)?$"

experiment_paths <- function(file) {
  if (is.null(file)) return(list(cache = tempfile("experiment")))
  refuse_if(!is.character(file) || length(file) != 1L || is.na(file) || !grepl(csv_end, file), "file", describe(file),
            "the name of a file ending in .csv or .csv.gz, or NULL")
  if (!dir.exists(dirname(file))) abort_input("file", sprintf("is in a folder that does not exist: %s", describe(file)))
  refuse_if(dir.exists(file), "file", sprintf("is a folder: %s", describe(file)), hint = "Give the name of a file.")
  beside <- function(end) sub(csv_end, end, file)
  list(results = file, trace = beside("-trace.csv\\1"), data = beside("-data.csv"), cache = beside("-cache"))
}

empty_table <- function(columns) {
  text <- columns %in% c("dataset", "method", "version")
  stats::setNames(data.frame(lapply(text, function(t) if (t) character() else numeric())), columns)
}

cell_key <- function(d) paste(d$dataset, d$m, d$repetition, d$method)

# Reads the complete lines of a file of results. The last line may be cut off by an interrupt and is then dropped.
read_results <- function(path, columns, argument = "file") {
  if (is.null(path) || !file.exists(path) || file.size(path) == 0) return(empty_table(columns))
  bytes <- readBin(path, "raw", file.size(path))
  if (endsWith(path, ".gz")) {
    bytes <- tryCatch(memDecompress(bytes, "gzip"), error = function(e) {
      abort_input(argument, sprintf("is not a gzipped file: %s", path))
    })
  }
  end <- max(0L, which(bytes == as.raw(10L)))
  lines <- strsplit(rawToChar(bytes[seq_len(end)]), "\r?\n")[[1L]]
  header <- if (length(lines)) strsplit(gsub("\"", "", lines[1L]), ",", fixed = TRUE)[[1L]]
  refuse_if(!identical(header, columns), argument, sprintf("has other columns than run_experiment() writes: %s", path),
            hint = "Name a new file.")
  fields <- nchar(gsub("[^,]", "", lines)) + 1L
  lines <- lines[fields == length(columns)]
  out <- utils::read.csv(text = lines, colClasses = vapply(empty_table(columns), class, ""))
  out[!duplicated(cbind(cell_key(out), if ("evaluation" %in% columns) out$evaluation)), , drop = FALSE]
}

new_experiment <- function(results, trace) {
  structure(results, class = c("pfdtc_experiment", "data.frame"), trace = trace)
}

#' @export
read_experiment <- function(file) {
  check_given("file", "Give the name of a file that run_experiment() wrote.")
  paths <- experiment_paths(file)
  if (is.null(file) || !file.exists(file)) abort_input("file", describe(file), "a file that run_experiment() wrote")
  new_experiment(read_results(paths$results, result_columns), read_results(paths$trace, trace_columns))
}

as_experiment <- function(results) {
  check_given("results", "Give what run_experiment() returned, or the name of its file.")
  if (is.character(results)) return(read_experiment(results))
  refuse_if(!is.data.frame(results) || !all(result_columns %in% names(results)), "results", describe(results),
            "what run_experiment() returned, or the name of its file")
  if (inherits(results, "pfdtc_experiment")) results else new_experiment(results, attr(results, "trace"))
}

experiment_methods <- c("pf", "vfe", "sor", "subsample", "default", "vfe_greedy")

# ---- data sets ------------------------------------------------------------------------------------------------------

#' @export
paper_datasets <- function() {
  utils::read.csv(system.file("experiments", "datasets.csv", package = "pfdtc", mustWork = TRUE))
}

#' @export
load_dataset <- function(name, dir = Sys.getenv("PFDTC_DATA")) {
  check_given("name", "paper_datasets() lists the names.")
  sets <- paper_datasets()
  set <- sets[sets$name == check_choice(name, sets$name, "name"), ]
  rows <- set$n_train + set$n_test
  if (set$name == "synthetic") return(draw_synthetic(rows))
  if (!is.character(dir) || length(dir) != 1L || is.na(dir)) abort_input("dir", describe(dir), "the name of a folder")
  files <- paste0(set$file, c(".csv", ".csv.gz"))
  path <- Find(file.exists, if (nzchar(dir)) file.path(dir, files))
  if (is.null(path)) {
    where <- if (nzchar(dir)) sprintf("there is no %s in %s", files[1L], dir) else "PFDTC_DATA is not set"
    abort_input("dir", where, "a folder with the file", message = sprintf(
      "`dir` must be a folder with %s or %s (%s). It comes from: %s. To prepare it: %s.", files[1L], files[2L], where,
      set$source, set$prepare))
  }
  data <- utils::read.csv(path)
  bad <- !vapply(data, is.numeric, NA) | vapply(data, anyNA, NA)
  got <- if (any(bad)) sprintf("values that are no numbers in column %s", names(data)[bad][1L]) else
    if (ncol(data) != set$d + 1L) sprintf("%d columns", ncol(data)) else
      if (names(data)[ncol(data)] != "y") sprintf("`%s` last", names(data)[ncol(data)]) else
        if (nrow(data) < rows) sprintf("%d rows", nrow(data))
  if (is.null(got)) return(data)
  abort_input("dir", got, "a folder with the file", message = sprintf(
    "The file of data set \"%s\" must have %d numeric columns, the last named `y`, and at least %d rows: it has %s.",
    set$name, set$d + 1L, rows, got))
}

draw_synthetic <- function(n) {
  x <- stats::runif(n, 0, 2)
  data.frame(x = x, y = sin(12 * x) + 0.66 * cos(25 * x) + 3 + stats::rnorm(n, sd = 0.1))
}
