#' Control of a fit
#'
#' @param maxit the most iterations of each optimisation of inducing points (and of the hyperparameters under `hyper =
#'   "pilot"` or `"joint"`). `NULL`: 200 under these and with an `aux`, else 50, and those only where they change
#'   predictions, see the section on what is chosen in [pfdtc()]; a number moves them in any case, and 0 leaves them
#'   where they start. An interrupt (Ctrl-C) ends a fit earlier, with its best so far.
#' @param reltol an optimisation ends when an iteration lowers the objective by less than `reltol` times what has been
#'   lowered since its start, three times in a row. (The pF objective is known only up to a constant, so a rule relative
#'   to its value would mean nothing.)
#' @param jitter number added to the diagonal of \eqn{k(Z, Z)}, in units of the signal variance. `NULL`: `1e-12`, raised
#'   by tens as far as the Cholesky factorisation needs it. The fit says which was used.
#' @param block rows in a block. `NULL`: at most 512.
#' @param threads threads for the rows, and the most that a BLAS may use. At most 2 unless asked for more.
#' @param memory bytes of scratch that may grow with the number of rows: kernel values and their like, kept between the
#'   two passes over the rows. What does not fit is evaluated again, block by block, with the same numbers.
#' @param optimise_rows learn hyperparameters and move inducing points on this many random rows; the posterior is always
#'   that of all rows; `Inf`: on all of them. Of a row source these are rows of its sample and, where more are asked
#'   for, all rows, by two passes over the source for each evaluation. `NULL`: inducing points are moved, and a pilot is
#'   learned, on 20,000 rows (100 a point, if those are more), learning by the evidence looks at some thousands among
#'   1e6, see [pfdtc()]; `print()` says how many.
#' @param restarts how many starts the search for hyperparameters by the evidence has. `NULL`: 8 (9 with two inputs, 10
#'   with one), the same every time; of more, the rest are random, of less the first are taken.
#' @param priors weak priors on the hyperparameters under `hyper = "evidence"`? In units of the inputs' and the
#'   response's spread: log lengthscales around log(3 sqrt(d)) with sd 0.7, d the number of inputs, the log signal
#'   variance around 0 with sd 1.5, the log noise variance around log 0.1 with sd 2. They keep lengthscales of inputs
#'   that say nothing finite and noise of few rows above 0, and fade beyond 50 rows, or 15 an input.
#' @param fix names of hyperparameters to hold at their given values, as in `coef()`: `"noise"`, `"variance"`,
#'   `"lengthscale.<column>"`.
#' @param tol_quantile the quantile over the training inputs that the `tol` of [pfdtc()] speaks of: 1 the maximum, 0.95
#'   a number that 95 % of them do not exceed.
#' @param trace keep the inducing points every `trace` iterations; 0: not at all.
#' @param progress show progress of long fits? Where it is left out and R is not interactive, a search under `tol`
#'   that lasts says so in messages of class `pfdtc_message_progress`, a line for each number of points tried; `FALSE`
#'   or [suppressMessages()] silences these.
#' @param max_seconds end each optimisation, of inducing points or of hyperparameters, after this time, with its best so
#'   far. The whole search for `m` by a `tol` counts as one. Learning by the evidence ends by itself after some seconds;
#'   where it is ended before, the choice of the kernel may not be made.
#' @return A list of class `pfdtc_control`. A plain list of some of these arguments will do as well, where a function
#'   asks for a `control`.
#' @section Errors: class `pfdtc_error_input`, naming the argument.
#' @examples
#' pfdtc_control(maxit = 50, threads = 1)
#' @export
pfdtc_control <- function(maxit = NULL, reltol = 1e-8, jitter = NULL, block = NULL,
                          threads = getOption("pfdtc.threads", 2L), memory = getOption("pfdtc.memory", 2^27),
                          optimise_rows = NULL, restarts = NULL, priors = TRUE, fix = character(),
                          tol_quantile = 1, trace = 0L, progress = interactive(), max_seconds = Inf) {
  if (!is.character(fix) || anyNA(fix)) {
    abort_input("fix", describe(fix), "names of hyperparameters, as coef() gives them")
  }
  structure(class = "pfdtc_control", list(
    maxit = if (!is.null(maxit)) check_count(maxit, "maxit", min = 0), reltol = finite_at_least_0(reltol, "reltol"),
    jitter = if (!is.null(jitter)) finite_at_least_0(jitter, "jitter"),
    block = if (!is.null(block)) check_count(block, "block"), threads = check_count(threads, "threads"),
    memory = check_at_least_0(memory, "memory"),
    optimise_rows = if (!is.null(optimise_rows) && !identical(optimise_rows, Inf)) {
      check_count(optimise_rows, "optimise_rows")
    } else {
      optimise_rows
    },
    restarts = if (!is.null(restarts)) check_count(restarts, "restarts"), priors = check_flag(priors, "priors"),
    fix = fix,
    tol_quantile = check_share(tol_quantile, "tol_quantile"), trace = check_count(trace, "trace", min = 0),
    progress = check_flag(progress, "progress"), quiet = !missing(progress) && !progress,
    max_seconds = check_at_least_0(max_seconds, "max_seconds")))
}

check_control <- function(control) {
  if (inherits(control, "pfdtc_control")) return(control)
  if (!is.list(control) || is.object(control)) abort_input("control", describe(control), "made by pfdtc_control()")
  known <- names(formals(pfdtc_control))
  named <- names(control)
  if (length(control) && (is.null(named) || !all(nzchar(named)) || anyDuplicated(named))) {
    abort_input("control", describe(control), "made by pfdtc_control(), or a list with a name for each element")
  }
  check_dots_empty(setdiff(named, known), known)
  do.call(pfdtc_control, control)
}

check_share <- function(x, argument) {
  check_number(x, argument, "a number above 0 and at most 1", function(x) !is.logical(x) && x > 0 && x <= 1)
}

finite_at_least_0 <- function(x, argument) {
  if (identical(x, Inf)) abort_input(argument, describe(x), "a finite number of at least 0")
  check_at_least_0(x, argument)
}

#' @export
print.pfdtc_control <- function(x, ...) {
  show <- function(v) {
    if (is.null(v)) return("NULL")
    if (!length(v)) return("none")
    if (is.character(v)) paste0("\"", v, "\"", collapse = ", ") else format(v, digits = 4)
  }
  given <- names(formals(pfdtc_control))
  fields <- vapply(stats::setNames(nm = given), function(name) show(x[[name]]), "")
  cat("Control of a fit:\n")
  text <- paste(sprintf("%s = %s", names(fields), fields), collapse = ", ")
  cat(wrap(text, initial = "  ", prefix = "  "), sep = "\n")
  invisible(x)
}

# `...` must be empty in the end. `dots_names`: names of the arguments caught there ("" for none),
# or the list of them itself, which also tells an unnamed one when nothing has a name.
check_dots_empty <- function(dots_names, known) {
  if (is.list(dots_names)) {
    n <- length(dots_names)
    dots_names <- if (is.null(names(dots_names))) rep("", n) else names(dots_names)
  }
  if (!length(dots_names)) return(invisible(NULL))
  known <- setdiff(known, "...")
  name <- dots_names[1L]
  if (is.na(name) || name == "") {
    abort_input("...", "an argument without a name", "empty",
                message = "`...` must be empty, not an argument without a name.",
                hint = sprintf("Arguments here are %s.", list_quoted(known, most = 20L)))
  }
  hint <- if (name %in% names(formals(pfdtc_control))) {
    sprintf("Give it as control = pfdtc_control(%s = <value>).", name)
  } else if (name %in% c("family", "approx")) {
    "pfdtc() has it: up to 2,000 rows, without `m`, its posterior is that of the exact process."
  } else {
    did_you_mean(name, known)
  }
  abort_input(name, "an unknown argument", "a known argument",
              message = sprintf("`%s` is not an argument of this function.", name), hint = hint)
}
