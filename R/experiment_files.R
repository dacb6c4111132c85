# What run_experiment() writes, and reads again: a row a fit, and the course of some of them.

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
  if (!is.character(file) || length(file) != 1L || is.na(file) || !grepl(csv_end, file)) {
    abort_input("file", describe(file), "the name of a file ending in .csv or .csv.gz, or NULL")
  }
  if (!dir.exists(dirname(file))) abort_input("file", describe(file), "in a folder that exists")
  if (dir.exists(file)) abort_input("file", describe(file), "the name of a file, not of a folder")
  beside <- function(end) sub(csv_end, end, file)
  list(results = file, trace = beside("-trace.csv\\1"), data = beside("-data.csv"), cache = beside("-cache"))
}

empty_table <- function(columns) {
  text <- columns %in% c("dataset", "method", "version")
  stats::setNames(data.frame(lapply(text, function(t) if (t) character() else numeric())), columns)
}

cell_key <- function(d) paste(d$dataset, d$m, d$repetition, d$method)

# The complete lines of a file; a last one without its end, or with another number of fields, was cut off.
read_results <- function(path, columns, argument = "file") {
  if (is.null(path) || !file.exists(path) || file.size(path) == 0) return(empty_table(columns))
  bytes <- readBin(path, "raw", file.size(path))
  if (endsWith(path, ".gz")) {
    bytes <- tryCatch(memDecompress(bytes, "gzip"), error = function(e) abort_input(argument, path, "a gzipped file"))
  }
  end <- max(0L, which(bytes == as.raw(10L)))
  lines <- strsplit(rawToChar(bytes[seq_len(end)]), "\r?\n")[[1L]]
  header <- if (length(lines)) strsplit(gsub("\"", "", lines[1L]), ",", fixed = TRUE)[[1L]]
  if (!identical(header, columns)) {
    abort_input(argument, sprintf("%s, which has other columns", path),
                "a file that run_experiment() wrote, or a new one")
  }
  fields <- nchar(gsub("[^,]", "", lines)) + 1L
  lines <- lines[fields == length(columns)]
  out <- utils::read.csv(text = lines, colClasses = vapply(empty_table(columns), class, ""))
  out[!duplicated(cbind(cell_key(out), if ("evaluation" %in% columns) out$evaluation)), , drop = FALSE]
}

new_experiment <- function(results, trace) {
  structure(results, class = c("pfdtc_experiment", "data.frame"), trace = trace)
}

#' Read the results of an experiment
#'
#' @param file a file that [run_experiment()] wrote. The trace file beside it is read, too, where there is one.
#' @return A data frame of class `pfdtc_experiment`, see [run_experiment()]; attribute `trace`, a data frame, is the
#'   trace.
#' @section Errors: class `pfdtc_error_input` where there is no such file, or it has other columns.
#' @source [run_experiment()].
#' @examples
#' paper <- system.file("experiments", "results", "paper.csv.gz", package = "pfdtc")
#' if (nzchar(paper)) head(read_experiment(paper)[1:7])
#' @export
read_experiment <- function(file) {
  paths <- experiment_paths(file)
  if (is.null(file) || !file.exists(file)) abort_input("file", describe(file), "a file that run_experiment() wrote")
  new_experiment(read_results(paths$results, result_columns), read_results(paths$trace, trace_columns))
}

as_experiment <- function(results) {
  if (is.character(results)) return(read_experiment(results))
  if (!is.data.frame(results) || !all(result_columns %in% names(results))) {
    abort_input("results", describe(results), "what run_experiment() returned, or the name of its file")
  }
  if (inherits(results, "pfdtc_experiment")) results else new_experiment(results, attr(results, "trace"))
}

experiment_methods <- c("pf", "vfe", "sor", "subsample", "default", "vfe_greedy")
