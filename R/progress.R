# Messages about progress, and the time left.

# Returns a function that shows an optimisation as a line on stderr, at most twice a second, from two seconds on.
progress_line <- function(label) {
  started <- shown <- proc.time()[["elapsed"]]
  function(evaluation, iteration, best, done = FALSE) {
    now <- proc.time()[["elapsed"]]
    if (done) {
      if (shown > started) cat("\r", strrep(" ", 78), "\r", sep = "", file = stderr())
      return(invisible())
    }
    if (now - started < 2 || now - shown < 0.5) return(invisible())
    shown <<- now
    text <- sprintf("%s: iteration %d, objective %.6g, %.0f s", label, iteration, best, now - started)
    cat("\r", formatC(text, width = -78), sep = "", file = stderr())
  }
}

# Returns a function that shows the name of a stage as a line on stderr, from `after` seconds on, and clears the line
# when it is called with NULL.
stage_line <- function(label, on, after = 0) {
  started <- proc.time()[["elapsed"]]
  shown <- FALSE
  function(stage) {
    if (!isTRUE(on)) return(invisible())
    if (is.null(stage)) {
      if (shown) cat("\r", strrep(" ", 78), "\r", sep = "", file = stderr())
      return(invisible())
    }
    seconds <- proc.time()[["elapsed"]] - started
    if (seconds < after) return(invisible())
    shown <<- TRUE
    text <- sprintf("%s: %s, %.0f s", label, stage, seconds)
    cat("\r", formatC(text, width = -78), sep = "", file = stderr())
  }
}

# Returns a function that gives the seconds left.
seconds_left <- function(max_seconds) {
  started <- proc.time()[["elapsed"]]
  function() max_seconds - (proc.time()[["elapsed"]] - started)
}
