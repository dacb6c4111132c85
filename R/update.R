# update(): a fit like another one, wherever that was made.

#' Update a Gaussian process fit
#'
#' The fit's call with some arguments changed, as [update()] does it for other models, also for fits that were made
#' inside functions: rows from a matrix, and what the fit was asked for (`kernel`, `m`, `control`, ...), are taken from
#' the fit; `data`, `subset`, `weights`, `na.action` and `offset` of a fit from a formula are evaluated where its formula
#' was written; what is given to `update()` is evaluated where that is called, and so is what cannot be found otherwise.
#'
#' @param object A fit.
#' @param formula. Changes to the formula, as for [update.formula()]: `. ~ . + x2`. Of a fit from a formula.
#' @param ... Arguments of the fit's function that change; `NULL` takes one out of the call.
#' @param evaluate `FALSE`: the changed call itself.
#' @return A fit, or the call.
#' @section Errors: class `pfdtc_error_input` for `formula.` with a fit from a matrix, for a fit without its call, and for
#'   a fit from a matrix without its data where `x` or `y` are not given.
#' @section Invariants: `update(fit)` is the same fit, as far as it depends on no random numbers.
#' @source [update()]
#' @seealso [pfdtc()], [cross_validate()]
#' @examples
#' fit_to <- function(rows) pfdtc(dist ~ speed, rows, kernel = kernel_matern(3/2))
#' fit <- fit_to(cars)
#' update(fit, m = 10, neighbours = 0)
#' update(fit, log(dist + 1) ~ ., evaluate = FALSE)
#' @importFrom stats update
#' @export
update.gp_fit <- function(object, formula., ..., evaluate = TRUE) {
  object <- check_fit(object, "object")
  evaluate <- check_flag(evaluate, "evaluate")
  call <- object$call
  if (is.null(call)) abort_input("object", "a fit without its call", "a fit as it was made")
  changed <- as.list(match.call(expand.dots = FALSE))[["..."]]
  if (length(changed) && (is.null(names(changed)) || !all(nzchar(names(changed))))) {
    abort_input("...", "an argument without a name", "arguments of the fit by name")
  }
  if (!missing(formula.)) call$formula <- stats::update(stats::formula(object), formula.)
  for (name in names(changed)) call[[name]] <- changed[[name]] # NULL takes it out
  if (!evaluate) return(call)

  caller <- parent.frame()
  run <- as_it_was_asked(object, call, names(changed))
  run[[1L]] <- get(as.character(call[[1L]]), topenv(environment(update.gp_fit)))
  envir <- caller
  if (!is.null(object$terms)) {
    if (missing(formula.) && !"formula" %in% names(changed)) run$formula <- stats::formula(object)
    envir <- seen_from_both(environment(object$terms), caller, changed, run)
    if (inherits(run$formula, "formula")) environment(run$formula) <- envir # weights are looked for there
  }
  fit <- eval(run, envir)
  fit$call <- if (is.null(fit$data)) slim_call(call) else call
  fit
}

# The call with values in place of what needs no evaluation: of arguments that are not changed, those that the fit knows.
as_it_was_asked <- function(fit, call, changed) {
  known <- c(fit$asked, list(control = fit$control))
  for (name in setdiff(intersect(names(call), names(known)), changed)) call[name] <- list(known[[name]])
  if (!is.null(fit$terms)) return(call)
  own <- setdiff(c("x", "y", "weights", "offset"), changed)
  if (!length(own)) return(call)
  data <- if (all(c("x", "y") %in% changed)) fit$data else training_data(fit)
  rows <- training_inputs(data)
  known <- list(x = rows$x[rows$index, , drop = FALSE], y = data$response, weights = data$prior_weights,
                offset = data$offset)
  call[own] <- known[own]
  call
}

# The formula's environment, with what `changed` speaks of as the caller sees it, and what is found nowhere else.
seen_from_both <- function(home, caller, changed, call) {
  envir <- new.env(parent = home)
  theirs <- unique(unlist(lapply(changed, all.names)))
  for (name in unique(c(theirs, all.names(call)))) {
    if (!nzchar(name)) next
    here <- name %in% theirs || !exists(name, home)
    if (here && exists(name, caller)) assign(name, get(name, caller), envir)
  }
  if (length(ls(envir, all.names = TRUE))) envir else home
}
