# Interrupts are let in only inside the stages. One ends the stage it meets with the best so far; the stages after it
# then take their starting values, so that there is always a fit to return. R's own time limit is treated alike.
# state$stopped says which it was: NULL, or list(convergence, message).

# What a stage has left behind goes before the next one takes its memory, where that is much.
sweep_up <- function(data) if (nrow(data$x) > many_rows) gc(FALSE)

# One stage: its value, or `otherwise` (evaluated only then) after an interrupt, in it or before it.
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

# Of several fits in a row: what ends one early ends them all, as it would have without the best so far.
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

# For the constructors of fits: an interrupt goes on to the stage that they are called in.
no_state <- function() {
  state <- new.env(parent = emptyenv())
  state$seconds <- state$evaluations <- numeric()
  state
}
