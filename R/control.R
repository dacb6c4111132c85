#' Control of a fit
#'
#' Options of the computation. Only `priors`, `fix` and `restarts` change the model.
#'
#' @param maxit maximum number of iterations of each optimisation of inducing points, or of a pilot. A number moves the
#'   points in any case, 0 never. Default: 200 if an argument asks for moved points, else 50.
#' @param reltol an optimisation ends after three iterations in a row that gain less than this share of the descent.
#' @param jitter added to the diagonal of \eqn{k(Z, Z)}, in units of the signal variance. Default: `1e-12`, raised by
#'   tens as the Cholesky factorisation needs.
#' @param block rows in a block. Default: at most 512.
#' @param threads number of threads, also of a BLAS.
#' @param memory bytes of scratch memory. It does not change results.
#' @param optimise_rows number of random rows for learning and for moving inducing points, `Inf` for all. Default: some
#'   thousands for learning, 20,000 (or 100 a point) for moving.
#' @param restarts number of starts of the search for hyperparameters. Default: 8 (9 with two inputs, 10 with one).
#' @param priors use weak priors on the hyperparameters? See `vignette("defaults")`.
#' @param fix names of hyperparameters to hold at their given values: `"noise"`, `"variance"`, `"lengthscale.<column>"`.
#' @param tol_quantile quantile over the training inputs for `tol` of [pfdtc()]: 1 is the maximum.
#' @param trace keep the inducing points every `trace` iterations; 0: never.
#' @param progress show progress of long fits? `FALSE` also silences the messages of a search under `tol` (class
#'   `pfdtc_message_progress`).
#' @param max_seconds time after which an optimisation, or the search under `tol`, ends with the best so far.
#' @return A list of class `pfdtc_control`. A plain list of some of these arguments is a valid `control`, too.
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
