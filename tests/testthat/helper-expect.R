# Expects that the largest error, relative to the largest expected number, is at most `tolerance`. The two should
# differ only by rounding, so a larger tolerance must be justified by a condition number.
expect_close <- function(object, expected, tolerance = 1e-8, info = NULL) {
  same_shape <- identical(dim(object), dim(expected)) && length(object) == length(expected)
  scale <- max(abs(expected), 0)
  error <- if (same_shape) max(abs(object - expected), 0) / (if (scale > 0) scale else 1) else Inf
  testthat::expect(
    same_shape && is.finite(error) && error <= tolerance,
    sprintf("relative error %.3g above %.3g%s%s", error, tolerance,
            if (same_shape) "" else " (shapes differ)",
            if (is.null(info)) "" else paste0(": ", info))
  )
  invisible(error)
}

# Returns central differences of f at x, a column for each step size: (f(x + h) - f(x - h)) / (2 h).
central_differences <- function(f, x, steps) {
  one <- function(i, h) {
    up <- down <- x
    up[i] <- x[i] + h
    down[i] <- x[i] - h
    (f(up) - f(down)) / (up[i] - down[i])
  }
  cases <- expand.grid(i = seq_along(x), h = steps)
  matrix(mapply(one, cases$i, cases$h), length(x), length(steps))
}

# Expects that `gradient` is the derivative of f at x. The errors of central differences must decrease with the step: a
# quarter of the step should give a sixteenth, and a tenth is required, until rounding of f (`rounding` times its size,
# over the step) dominates. The first step is skipped, because terms of the series may cancel. With a wrong gradient the
# decrease ends early.
expect_gradient <- function(f, x, gradient, step = 0.008, rounding = 1e-13, info = NULL) {
  steps <- step / 4^(0:4)
  errors <- abs(central_differences(f, x, steps) - as.vector(gradient))
  floor <- rounding * max(abs(f(x)), max(abs(gradient)) * step) / steps
  falls <- t(errors[, 3:5, drop = FALSE]) <= pmax(t(errors[, 2:4, drop = FALSE]) / 10, floor[3:5])
  wrong <- which(colSums(!falls) > 0)
  shown <- utils::head(wrong, 1)
  testthat::expect(
    all(is.finite(errors)) && length(gradient) == length(x) && length(wrong) == 0,
    sprintf("%d of %d derivatives are wrong%s; errors at %d at steps %s: %s", length(wrong),
            length(x), if (is.null(info)) "" else paste0(" (", info, ")"), shown,
            paste(signif(steps, 2), collapse = ", "),
            paste(signif(errors[shown, ], 2), collapse = ", "))
  )
  invisible(errors)
}

# Expects that `code` raises a warning of class pfdtc_warning_<kind>, or none if `when` is FALSE. Returns its value.
expect_warned <- function(code, kind, when = TRUE) {
  seen <- 0L
  value <- withCallingHandlers(code, warning = function(w) {
    if (!inherits(w, paste0("pfdtc_warning_", kind))) return()
    seen <<- seen + 1L
    invokeRestart("muffleWarning")
  })
  testthat::expect((seen > 0L) == when, sprintf("%d warnings of the kind \"%s\"", seen, kind))
  value
}

# Expects an error about an argument, of this package's class, whose message contains `argument` (a name or number).
# Tests that use it do not match sentences, so that the words of errors can change.
expect_input_error <- function(code, argument = "") {
  raised <- tryCatch({
    code
    NULL
  }, error = identity)
  message <- if (is.null(raised)) "no error at all" else
    paste0(class(raised)[1], ": ", conditionMessage(raised))
  testthat::expect(
    inherits(raised, "pfdtc_error_input") && (argument == "" || grepl(argument, message, fixed = TRUE)),
    sprintf("expected an input error about %s, got %s", argument, message)
  )
}

# Expects that `object` sends no message of the class, and returns its value. Replaces testthat's function of this name,
# which in testthat 3.1.6 never fails.
expect_no_message <- function(object, class = "message") {
  told <- character()
  value <- withCallingHandlers(object, message = function(m) {
    if (inherits(m, class)) told <<- c(told, conditionMessage(m))
    invokeRestart("muffleMessage")
  })
  testthat::expect(!length(told), paste("sent the message", told[1L]))
  invisible(value)
}

# Expects finite numbers or a classed error, never NaN.
expect_finite_or_refused <- function(code) {
  result <- tryCatch(code, pfdtc_error_numerical = function(e) NULL)
  testthat::expect(is.null(result) || all(is.finite(unlist(result))), "result is not finite")
}

# Returns the data that a geom of a ggplot draws in all panels: x, y and PANEL as built by ggplot2.
drawn_by <- function(g, geom) {
  built <- ggplot2::ggplot_build(g)
  own <- vapply(built$plot$layers, function(l) inherits(l$geom, geom), NA)
  d <- do.call(rbind, lapply(built$data[own], function(d) d[c("x", "y", "PANEL")]))
  d[!is.na(d$x), ]
}
