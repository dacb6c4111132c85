# What run_experiment() writes, and reads again: a row a fit, and the course of some of them.

result_columns <- c(
  "dataset", "m", "repetition", "method", "points", "objective", "rmse_mean", "rmse_sd", "kl", "kl_marginal",
  "rmse_pred", "nlpd", "coverage", "certified_mean_error", "seconds", "evaluations", "divergence", "divergence_exact",
  "max_mean", "max_sd", "certified_sd_error", "median_mean", "certified_median", "outside", "cpu", "convergence",
  "noise", "maxit", "reltol", "seed", "version")
trace_columns <- c("dataset", "m", "repetition", "method", "evaluation", "seconds", "objective", "divergence",
                   "divergence_exact", "rmse_mean", "rmse_sd")

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
