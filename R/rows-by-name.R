# Data of a fit that are looked up by their name, because the fit does not hold what is asked for.

# Returns the model frame for data that are looked up by name, with further columns `given`. Stops if these are not the
# rows of the fit.
frame_by_name <- function(fit, given, caller) {
  call <- fit$call
  call <- call[c(1L, match(c("data", "subset", "weights", "na.action", "offset"), names(call), 0L))]
  call[[1L]] <- quote(stats::model.frame)
  call$formula <- fit$terms
  call$drop.unused.levels <- TRUE
  held <- kept_variables(fit)
  arguments <- c("formula", "data", "subset", "na.action", "drop.unused.levels", "xlev")
  extra <- unlist(lapply(given[setdiff(names(given), arguments)], all.vars))
  if (!is.null(held) && all(extra %in% names(held)) && !"data" %in% names(given)) {
    call <- with_kept_rows(call, held)
  } else if (!"data" %in% names(given) && !is.null(call$data)) {
    data <- tryCatch(eval(call$data, environment(fit$terms)), error = function(e) NULL)
    if (is_source(data)) data <- do.call(rbind, source_pass(data, function(block) list(as.data.frame(block)), c))
    if (is_spatial(data)) data <- call_with_places(fit$call, environment(fit$terms))$data
    if (!is.list(data) && !is.environment(data)) refuse_lost_data(fit, call$data)
    call$data <- data
  }
  call[names(given)] <- given
  mf <- eval(call, environment(call$formula), caller)
  if (!any(c("formula", "data", "subset", "na.action") %in% names(given))) check_same_rows(fit, mf)
  mf
}

# Returns a call with the rows `held` as data. Weights and offset are columns of these rows.
with_kept_rows <- function(call, held) {
  call$data <- held
  call[c("subset", "na.action")] <- NULL
  for (name in intersect(c("weights", "offset"), names(call))) {
    call[[name]] <- if (sprintf("(%s)", name) %in% names(held)) as.name(sprintf("(%s)", name))
  }
  call
}

# Stops because the data of a fit are needed and not found by their name.
refuse_lost_data <- function(fit, name) {
  abort_input("data", "lost", "found by its name",
              message = sprintf("The fit does not hold its rows, and `%s` is not a data frame here.", deparse1(name)),
              hint = if (is.null(fit$data)) "Give the rows as `newdata`, or fit with `keep_data = TRUE`." else
                "Make these data available again, or fit again.")
}

# Stops if a model frame has other inputs than the fit.
check_same_rows <- function(fit, mf) {
  n <- if (is.null(fit$data)) fit$nobs else length(fit$data$response)
  if (is.null(fit$data) || nrow(mf) != n) return()
  inputs <- training_inputs(fit$data)
  now <- tryCatch(bind_columns(fit$frame$variables, mf), error = function(e) NULL)
  same <- isTRUE(all.equal(now, inputs$x[inputs$index, , drop = FALSE], check.attributes = FALSE, tolerance = 1e-12))
  refuse_if(!same, "data", "changed", "as they were", message = sprintf(
    "`%s` is not the data of the fit any more: its rows have changed.", deparse1(fit$call$data)), hint = "Fit again.")
}

# Returns TRUE if the data of a call are a name that is no data frame, neither for the caller nor for the formula.
is_data_lost <- function(object, call, caller) {
  if (is.null(object$terms) || !is.symbol(call$data)) return(FALSE)
  found <- function(envir) {
    data <- get0(as.character(call$data), envir)
    is.list(data) || is.environment(data) || is_source(data) || is_spatial(data)
  }
  !found(caller) && !found(environment(object$terms))
}

# Returns the fit with its own rows as the data of its call, so that it is fitted again to the same rows.
on_kept_rows <- function(fit) {
  held <- kept_variables(fit)
  if (is.null(held)) return(fit)
  fit$call <- with_home(with_kept_rows(fit$call, held), emptyenv())
  fit$call$formula <- stats::formula(fit)
  fit
}

# Returns a call whose function is found where the package is not attached, as in a session that reads a saved fit.
with_home <- function(call, caller) {
  name <- call[[1L]]
  known <- !is.symbol(name) || exists(as.character(name), caller, mode = "function")
  if (!known) call[[1L]] <- call("::", quote(pfdtc), name)
  call
}
