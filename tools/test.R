# Runs the tests against the package installed in LIBRARY:   Rscript tools/test.R LIBRARY [FILTER]
# Prints "N passed, N failed, N skipped" and the slowest tests and files. Appends the three numbers to the file named
# in PFDTC_COUNTS. Without FILTER the files run in two processes (in one if TESTTHAT_PARALLEL=FALSE). If
# PFDTC_TEST_STOP=1, the first failure ends the run.

arguments <- commandArgs(trailingOnly = TRUE)
filter <- if (length(arguments) > 1 && nzchar(arguments[2])) arguments[2]
.libPaths(c(arguments[1], .libPaths()))
Sys.setenv(NOT_CRAN = "true", R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep))
options(warn = 1)

library(testthat)
library(pfdtc, lib.loc = arguments[1])
cat(sprintf("tests: R %s, testthat %s, BLAS %s\n", getRversion(), packageVersion("testthat"),
            extSoftVersion()[["BLAS"]]))

first_failure <- R6::R6Class("first_failure", inherit = ListReporter, public = list(
  add_result = function(context, test, result) {
    if (inherits(result, c("expectation_failure", "expectation_error"))) {
      cat(sprintf("failed: %s, %s: %s\n", self$current_file, test, conditionMessage(result)))
      quit(status = 1)
    }
    super$add_result(context, test, result)
  }))
stop_early <- nzchar(Sys.getenv("PFDTC_TEST_STOP"))
if (is.na(Sys.getenv("TESTTHAT_PARALLEL", NA))) Sys.setenv(TESTTHAT_PARALLEL = is.null(filter) && !stop_early)
in_two <- Sys.getenv("TESTTHAT_PARALLEL") == "TRUE"
Sys.setenv(TESTTHAT_PARALLEL = "FALSE")

# Returns a row for each test, with its expectations that did not succeed in the column `result`.
run <- function(filter, ...) {
  tests <- test_dir("tests/testthat", filter = filter, package = "pfdtc", load_package = "installed",
                    stop_on_failure = FALSE, stop_on_warning = FALSE, ...)
  results <- as.data.frame(tests)
  results$result <- lapply(tests, function(test) {
    Filter(function(r) !inherits(r, "expectation_success"), test$results)
  })
  results
}

# Saves half of the processor time of an expectation, and leaves its result as it is. For each comparison testthat sets
# twenty options of its output, although equal values have none; for each condition it keeps the calls.
run_fast <- function() {
  swap <- function(name, value, space) {
    if (!identical(names(formals(get0(name, space)))[1:2], names(formals(value))[1:2])) return()
    unlockBinding(name, space)
    assign(name, value, space)
  }
  space <- asNamespace("testthat")
  compare <- space$waldo_compare
  swap("waldo_compare", function(x, y, ...) if (identical(x, y)) character() else compare(x, y, ...), space)
  swap("local_reporter_output", function(.env) NULL, space)
  swap("cnd_entrace", function(cnd, ...) cnd, parent.env(space))
}

# Each file runs in its own fork of this process, after the helpers. Processes of testthat itself would need 2 ms more
# for each expectation. The largest files run first, so that both cores are busy until the end.
run_in_two <- function() {
  # Loads here, by a test and by force(), what every fork would load again. The run stops if expect_equal() is broken.
  run_fast()
  dir.create(folder <- tempfile())
  writeLines('test_that("they load", expect_error(expect_equal(1, 2), "equal"))', file.path(folder, "test-loads.R"))
  as.data.frame(test_dir(folder, reporter = Reporter$new(), package = "pfdtc", load_package = "installed"))
  for (package in c("pfdtc", "testthat", "waldo", "rlang")) eapply(asNamespace(package), force, all.names = TRUE)
  env <- test_env("pfdtc")
  source_test_helpers("tests/testthat", env)
  files <- list.files("tests/testthat", "^test-.*[.]R$", full.names = TRUE)
  stems <- sub("^test-(.*)[.]R$", "\\1", basename(files[order(-file.size(files))]))
  stems <- grep(if (is.null(filter)) "" else filter, stems, value = TRUE)
  parallel::mclapply(setNames(nm = stems), function(stem) {
    env$engine$pid <- Sys.getpid() # the fork may use threads, because the process that it comes from has used none
    suppressMessages(run(sprintf("^%s$", stem), reporter = Reporter$new(), env = env, load_helpers = FALSE))
  }, mc.cores = 2L, mc.preschedule = FALSE, mc.silent = TRUE)
}

begun <- proc.time()[["elapsed"]]
reporter <- if (stop_early) first_failure$new() else "summary"
answers <- if (in_two) run_in_two() else list(run(filter, reporter = reporter))
died <- !vapply(answers, is.data.frame, TRUE)
results <- do.call(rbind, answers[!died])
seconds <- proc.time()[["elapsed"]] - begun

if (in_two) {
  cat(sprintf("test-%s.R: the process ended\n", names(answers)[died]), sep = "")
  for (i in seq_len(nrow(results))) for (r in results$result[[i]]) {
    kind <- sub("^expectation_", "", class(r)[1])
    cat(sprintf("%s, line %s: %s: %s: %s\n", results$file[i], toString(r$srcref[1]), kind, results$test[i],
                conditionMessage(r)))
  }
}
slowest <- head(results[order(-results$real), ], 5)
cat(sprintf("%6.1f s  %s: %s\n", slowest$real, slowest$file, slowest$test), sep = "")
files <- utils::head(sort(tapply(results$real, results$file, sum), decreasing = TRUE), 10)
names(files) <- sub("^test-(.*)[.]R$", "\\1", names(files))
cat("slowest files: ", toString(sprintf("%s %.0f s", names(files), files)), "\n", sep = "")

# An error in a test counts as a failure; so does a file that dies outside its tests.
counts <- c(passed = sum(results$passed), failed = sum(results$failed) + sum(results$error) + sum(died),
            skipped = sum(results$skipped))
if (sum(counts) == 0) counts[["failed"]] <- 1
if (sum(results$warning) > 0) cat(sum(results$warning), "warnings\n")
cat(sprintf("%.0f s\n%d passed, %d failed, %d skipped\n", seconds, counts[["passed"]],
            counts[["failed"]], counts[["skipped"]]))
record <- Sys.getenv("PFDTC_COUNTS")
if (nzchar(record)) cat(counts, "\n", file = record, append = TRUE)
quit(status = as.integer(counts[["failed"]] > 0))
