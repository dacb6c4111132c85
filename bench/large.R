# Many rows: what does the default fit of 1e5, 1e6 and 1e7 rows cost, are the rows that it uses enough, and what do rows
# from a database cost?
#
#   Rscript bench/large.R [case ...]            writes bench/results/large.csv, one line after each case
#
# Each case runs in a process of its own. Seconds are processor seconds (two threads), which other work changes less
# than wall time. `memory` is the peak in MB beyond the process with its data. `rmse` is that of the mean against the
# true function at 4,000 new rows; the noise of responses has sd 0.5. Sources are tables of SQLite and DuckDB in a
# temporary folder.

make_rows <- function(n, seed = 1) {
  set.seed(seed)
  x <- matrix(stats::runif(8 * n), n)
  data.frame(y = truth(x) + stats::rnorm(n) / 2, x)
}

truth <- function(x) sin(6 * x[, 1]) + 3 * x[, 2]^2 + 2 * x[, 3] * x[, 4] + cos(4 * x[, 5]) + x[, 6] / 2

held <- function(what) {
  status <- grep(what, readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", status)) / 1024
}

# Limits the rows among which learning searches for neighbours.
learn_among <- function(rows) {
  sizes <- get("learning_sizes", asNamespace("pfdtc"))
  sizes$population <- rows
  utils::assignInNamespace("learning_sizes", sizes, "pfdtc")
}

moved <- function(data, rows) {
  pfdtc(y ~ ., data, m = 100, neighbours = 0, kernel = kernel_se(c(0.4, 1, 1.5, 1.5, 0.6, 2, 20, 20), 4), noise = 0.25,
        hyper = "fixed", aux = aux_white(), control = pfdtc_control(maxit = 40, optimise_rows = rows))
}

# Fits with given points and hyperparameters, so that only the cost of the rows is left.
given <- function(data) {
  pfdtc(y ~ ., data, kernel = kernel_matern(5 / 2, c(0.8, 2, 3, 3, 1, 4, 40, 40), 4), noise = 0.25, hyper = "fixed",
        inducing = as.matrix(make_rows(100, 5)[-1]), neighbours = 0, control = pfdtc_control(maxit = 0))
}

database_of <- function(n) {
  file <- tempfile(fileext = ".sqlite")
  con <- DBI::dbConnect(RSQLite::SQLite(), file, synchronous = NULL)
  for (part in seq_len(ceiling(n / 1e5))) {
    DBI::dbWriteTable(con, "rows", make_rows(min(1e5, n), part), append = TRUE)
  }
  con
}

# The memory limit keeps pages of DuckDB's file out of the measured memory.
duckdb_of <- function(n) {
  file <- tempfile(fileext = ".duckdb")
  con <- DBI::dbConnect(duckdb::duckdb(), file)
  for (part in seq_len(ceiling(n / 1e5))) {
    DBI::dbWriteTable(con, "rows", make_rows(min(1e5, n), part), append = TRUE)
  }
  DBI::dbDisconnect(con, shutdown = TRUE)
  DBI::dbConnect(duckdb::duckdb(), file, read_only = TRUE, config = list(memory_limit = "100MB", threads = "1"))
}

cases <- list(
  "default, 1e5" = function() list(data = make_rows(1e5), fit = function(d) pfdtc(y ~ ., d)),
  "default, 1e6" = function() list(data = make_rows(1e6), fit = function(d) pfdtc(y ~ ., d)),
  "learned among 50,000 of 1e6" = function() {
    learn_among(5e4)
    list(data = make_rows(1e6), fit = function(d) pfdtc(y ~ ., d))
  },
  "100 points moved on 20,000 of 1e5" = function() list(data = make_rows(1e5), fit = function(d) moved(d, NULL)),
  "100 points moved on all of 1e5" = function() list(data = make_rows(1e5), fit = function(d) moved(d, 1e5)),
  "in memory, 1e6" = function() {
    list(data = do.call(rbind, lapply(1:10, function(part) make_rows(1e5, part))), fit = given)
  },
  "from a database, 1e6" = function() {
    con <- database_of(1e6)
    list(data = rows_db(con, "select * from rows"), fit = given)
  },
  "from a database, 1e7" = function() {
    con <- database_of(1e7)
    list(data = rows_db(con, "select * from rows"), fit = given)
  },
  "from DuckDB, 1e6" = function() list(data = rows_db(duckdb_of(1e6), "select * from rows"), fit = given),
  "from DuckDB, 1e7" = function() list(data = rows_db(duckdb_of(1e7), "select * from rows"), fit = given),
  "default, 1e7" = function() list(data = make_rows(1e7), fit = function(d) pfdtc(y ~ ., d)))

child <- function(case) {
  suppressMessages(library(pfdtc))
  set.seed(7)
  task <- cases[[case]]()
  set.seed(7)
  gc()
  writeLines("5", "/proc/self/clear_refs") # resets the peak
  before <- held("VmRSS")
  started <- proc.time()
  fit <- task$fit(task$data)
  took <- proc.time() - started
  peak <- held("VmHWM")
  new <- make_rows(4000, 99)
  p <- predict(fit, new, se.fit = TRUE)
  cat(sprintf("%s;%d;%.1f;%.1f;%.0f;%.5f;%.12f;%.12f;%s\n", case, fit$nobs, took[["user.self"]] + took[["sys.self"]],
              took[["elapsed"]], peak - before, sqrt(mean((p$fit - truth(as.matrix(new[-1])))^2)), mean(p$fit),
              mean(p$se.fit), fit$posterior))
}

main <- function(wanted) {
  self <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
  file <- file.path(dirname(self), "results", "large.csv")
  columns <- c("case", "rows", "processor", "elapsed", "memory", "rmse", "mean", "sd", "posterior")
  done <- if (file.exists(file)) utils::read.csv(file, colClasses = c(mean = "character", sd = "character"))
  for (case in if (length(wanted)) wanted else names(cases)) {
    line <- system2(file.path(R.home("bin"), "Rscript"), c(shQuote(self), "child", shQuote(case)), stdout = TRUE)
    one <- utils::read.table(text = line[length(line)], sep = ";", col.names = columns,
                             colClasses = c(mean = "character", sd = "character"))
    done <- rbind(done[done$case != case, ], one)
    utils::write.csv(done, file, row.names = FALSE)
    print(one)
  }
}

args <- commandArgs(TRUE)
if (length(args) && args[1L] == "child") child(args[2L]) else main(args)
