# What run_experiment() writes, and reads again: a row a fit, and the course of some of them.

result_columns <- c(
  "dataset", "m", "repetition", "method", "points", "objective", "rmse_mean", "rmse_sd", "kl", "kl_marginal",
  "rmse_pred", "nlpd", "coverage", "certified_mean_error", "seconds", "evaluations", "divergence", "divergence_exact",
  "max_mean", "max_sd", "certified_sd_error", "median_mean", "certified_median", "outside", "cpu", "convergence",
  "noise", "maxit", "reltol", "seed", "version")
trace_columns <- c("dataset", "m", "repetition", "method", "evaluation", "seconds", "objective", "divergence",
                   "divergence_exact", "rmse_mean", "rmse_sd")

experiment_paths <- function(file) {
  if (is.null(file)) return(list(cache = tempfile("experiment")))
  if (!is.character(file) || length(file) != 1L || is.na(file) || !grepl("[.]csv$", file)) {
    abort_input("file", describe(file), "the name of a file ending in .csv, or NULL")
  }
  if (!dir.exists(dirname(file))) abort_input("file", describe(file), "in a folder that exists")
  if (dir.exists(file)) abort_input("file", describe(file), "the name of a file, not of a folder")
  stem <- sub("[.]csv$", "", file)
  list(results = file, trace = paste0(stem, "-trace.csv"), data = paste0(stem, "-data.csv"),
       cache = paste0(stem, "-cache"))
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

# In one piece: whoever reads finds the old file or the new one.
write_results <- function(d, path) {
  if (is.null(path)) return(invisible())
  part <- paste0(path, ".part")
  utils::write.csv(d, part, row.names = FALSE, quote = FALSE)
  if (!file.rename(part, path)) abort_input("file", path, "a file that can be written")
}

# A line a data set: rows, n_aux and a sum that tells one set of numbers from another. Results of the paper's sets may
# have none.
check_data <- function(path, plan, saved) {
  known <- if (file.exists(path)) utils::read.csv(path) else NULL
  mine <- data.frame(dataset = plan$name, train = plan$train, test = plan$test, n_aux = plan$n_aux,
                     sum = if (is.null(plan$data)) 0 else signif(table_sum(plan$data), 12))
  old <- known[known$dataset == plan$name, ]
  if (is.null(known) || !nrow(old)) {
    if (saved && !plan$name %in% paper_datasets()$name) {
      abort_input("file", sprintf("one with rows of \"%s\" of which it is not known what data they are of", plan$name),
                  "a new one, or give your data another `name`")
    }
    return(write_results(rbind(known, mine), path))
  }
  what <- c(train = "train", test = "test", n_aux = "n_aux", sum = "other data")
  other <- names(what)[abs(unlist(old[names(what)]) - unlist(mine[names(what)])) >
                         1e-10 * abs(unlist(mine[names(what)]))]
  if (length(other)) {
    with <- if (other[1L] == "sum") "other data" else sprintf("%s = %s", other[1L], format(old[[other[1L]]]))
    abort_input("file", sprintf("one with rows of \"%s\" made with %s", plan$name, with),
                "one made with the same data and numbers of rows, or a new one",
                hint = "Or give your data another `name`.")
  }
}

table_sum <- function(d) {
  d <- as.matrix(d)
  i <- seq_len(nrow(d)) / nrow(d)
  sum(abs(d) %*% seq_len(ncol(d))) + sum(crossprod(d, i) * seq_len(ncol(d)))
}

check_saved <- function(results, plan) {
  old <- results[results$dataset == plan$name, ]
  mine <- c(seed = plan$seed, maxit = plan$control$maxit, reltol = plan$control$reltol)
  for (what in names(mine)) {
    other <- old[[what]][abs(old[[what]] - mine[[what]]) > 1e-6 * abs(mine[[what]])]
    if (length(other)) {
      abort_input("file", sprintf("one with rows of \"%s\" made with %s = %s", plan$name, what, format(other[1L])),
                  sprintf("one made with %s = %s, or a new one", what, format(mine[[what]])))
    }
  }
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
#' paper <- system.file("experiments", "results", "paper.csv", package = "pfdtc")
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
