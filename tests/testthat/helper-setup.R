# tools/nightly.sh runs the suite a second time with PFDTC_TEST_MEMORY=0. Then nothing that grows with N is kept between
# passes, and every number must stay the same.
if (nzchar(Sys.getenv("PFDTC_TEST_MEMORY"))) {
  options(pfdtc.memory = as.numeric(Sys.getenv("PFDTC_TEST_MEMORY")))
}

# With problems this small a second thread costs more than it saves; tests of threads ask for two.
options(pfdtc.threads = 1L)

# Most tests do not search for a transformation of the response. Tests of this search set the option.
options(pfdtc.transform = "plain")

# Keeps the first and the last case of every loop if PFDTC_TEST_QUICK=1 (sanitizers, valgrind) or in R CMD check on
# CRAN.
quick <- function(cases) {
  all <- !nzchar(Sys.getenv("PFDTC_TEST_QUICK")) && identical(Sys.getenv("NOT_CRAN"), "true")
  if (all || length(cases) <= 2) return(cases)
  cases[c(1, length(cases))]
}

# Keeps the first `few` cases, or every case if PFDTC_TEST_ALL=1 (nightly). For loops over seeds of random problems.
some_of <- function(cases, few) if (nzchar(Sys.getenv("PFDTC_TEST_ALL"))) cases else utils::head(cases, few)

# Skips the rest of a test unless PFDTC_TEST_ALL=1 (nightly). For tests that take several seconds: coverage, recovered
# hyperparameters, and choices that need many rows.
only_nightly <- function() skip_if(!nzchar(Sys.getenv("PFDTC_TEST_ALL")), "runs nightly (PFDTC_TEST_ALL=1)")

# Returns every case if PFDTC_TEST_ALL=1 (nightly), else every `of`-th, beginning with case `i`. For an inner loop whose
# cases then take turns, so that CI runs each of them in some turn `i` of the outer loop.
in_turn <- function(cases, i, of) {
  if (nzchar(Sys.getenv("PFDTC_TEST_ALL"))) cases else cases[(seq_along(cases) - i) %% of == 0]
}

# Evaluates `code` under the given options, then restores the session's options.
with_options <- function(new, code) {
  old <- options(new)
  on.exit(options(old))
  force(code)
}

# Evaluates `code` after set.seed(seed), then restores the session's stream of random numbers.
with_seed <- function(seed, code) {
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit(if (is.null(old)) rm(".Random.seed", envir = globalenv()) else
    assign(".Random.seed", old, globalenv()))
  set.seed(seed)
  force(code)
}

# Replaces functions of the package while `code` runs.
with_replaced <- function(new, code, space = asNamespace("pfdtc")) {
  swap <- function(values) {
    for (name in names(values)) {
      unlockBinding(name, space)
      assign(name, values[[name]], space)
      lockBinding(name, space)
    }
  }
  old <- mget(names(new), space)
  on.exit(swap(old))
  swap(new)
  force(code)
}

# Runs code as if the exact posterior of more than 2,000 rows were too expensive.
with_few_exact <- function(code) {
  with_replaced(list(exact_rows = 2000L, more_points = replace(more_points, "rows", 2000)), code)
}

# Replaces one function: its calls numbered `which` end with the condition `by`; other calls are unchanged.
with_interrupted <- function(name, which, code, by = interrupt_signal) {
  old <- get(name, asNamespace("pfdtc"))
  calls <- 0
  with_replaced(stats::setNames(list(function(...) {
    calls <<- calls + 1
    if (calls %in% which) stop(by)
    old(...)
  }), name), code)
}

interrupt_signal <- structure(class = c("interrupt", "condition"), list(message = "", call = NULL))

# Returns a function of a package, and skips the test if the package is absent. DESCRIPTION does not name packages that
# only tests need.
from <- function(package, name) {
  testthat::skip_if_not_installed(package)
  getExportedValue(package, name)
}
