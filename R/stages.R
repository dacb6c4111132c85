# The stages of a fit, and interrupts.
#
# Interrupts are let in only inside the stages. An interrupt ends its stage with the best result so far; the stages
# after it return their starting values, so that there is always a fit to return. R's own time limit is treated alike.
# state$stopped is NULL, or list(convergence, message) after an interrupt.

# Frees the memory of the last stage before the next one needs its own, if there are many rows.
free_memory <- function(data) if (nrow(data$x) > many_rows) gc(FALSE)

# Returns the value of a stage, or `otherwise` (evaluated only then) after an interrupt in it or before it.
run_stage <- function(state, name, expr, otherwise) {
  started <- proc.time()[["elapsed"]]
  value <- if (!is.null(state$stopped)) {
    otherwise
  } else {
    tryCatch(allowInterrupts(expr), interrupt = function(i) {
      state$stopped <- stopped_by_interrupt
      otherwise
    }, error = function(e) {
      state$stopped <- stopped_by_error(e)
      otherwise
    })
  }
  state$seconds[name] <- sum(state$seconds[name], proc.time()[["elapsed"]] - started, na.rm = TRUE)
  value
}

# Ends a series of fits when one of them was ended early.
ended_together <- function(expr) {
  withCallingHandlers(expr, pfdtc_warning_convergence = function(w) {
    if (identical(w$fit$message, stopped_by_time$message)) stop("reached elapsed time limit", call. = FALSE)
    if (!identical(w$fit$message, stopped_by_interrupt$message)) return()
    stop(structure(class = c("interrupt", "condition"), list(message = "interrupted", call = NULL)))
  })
}

count_evaluations <- function(state, name, result) {
  state$evaluations[name] <- sum(state$evaluations[name], result$evaluations, na.rm = TRUE)
  if (is.null(state$stopped)) state$stopped <- result$stopped
}

# Returns the state of a fit before its first stage.
no_state <- function() {
  state <- new.env(parent = emptyenv())
  state$seconds <- state$evaluations <- state$rows <- numeric()
  state
}
