# The whole suite runs a second time with PFDTC_TEST_MEMORY=0 (and OpenBLAS): nothing that grows with N is kept between
# the passes, and every number must stay what it is.
if (nzchar(Sys.getenv("PFDTC_TEST_MEMORY"))) {
  options(pfdtc.memory = as.numeric(Sys.getenv("PFDTC_TEST_MEMORY")))
}

# On problems as small as these a second thread costs more than it does; tests that are about
# threads ask for two.
options(pfdtc.threads = 1L)

# Most tests are about what is done with a model: the response is taken as given. Those about its choice say so.
options(pfdtc.transform = "plain")

# PFDTC_TEST_QUICK=1 (sanitizers, valgrind), and R CMD check as CRAN runs it, keep the first and the last case of every
# loop.
quick <- function(cases) {
  all <- !nzchar(Sys.getenv("PFDTC_TEST_QUICK")) && identical(Sys.getenv("NOT_CRAN"), "true")
  if (all || length(cases) <= 2) return(cases)
  cases[c(1, length(cases))]
}

# Evaluates `code` under the given options, leaving the session's as they were.
with_options <- function(new, code) {
  old <- options(new)
  on.exit(options(old))
  force(code)
}

# Evaluates `code` after set.seed(seed), leaving the session's stream of random numbers as it was.
with_seed <- function(seed, code) {
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit(if (is.null(old)) rm(".Random.seed", envir = globalenv()) else
    assign(".Random.seed", old, globalenv()))
  set.seed(seed)
  force(code)
}

# Functions of the package replaced while `code` runs.
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

# The same of one, calls `which` of which end with the condition `by`; the others do what it does.
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

# Returns a function of a package that only tests need, and skips the test where the package is absent. DESCRIPTION
# names the packages that a user's call needs.
from <- function(package, name) {
  testthat::skip_if_not_installed(package)
  getExportedValue(package, name)
}
