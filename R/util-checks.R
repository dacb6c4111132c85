# Checks of arguments at the user's door. Each returns the cleaned value or raises an error that names the argument.

# Returns a double matrix made from a matrix, a data frame of numbers or a vector (one column). Column names stay. A
# double matrix is returned without a copy. Zero rows are allowed; NA only with `allow_na`.
check_matrix <- function(x, argument, allow_na = FALSE) {
  if (is.data.frame(x)) {
    j <- which(!vapply(x, is_plain_numeric, NA))[1L]
    if (!is.na(j)) {
      abort_input(argument, sprintf("%s in column `%s`", describe_column(x[[j]]), names(x)[j]),
                  "a data frame of numeric columns", hint = reason_not_numeric(x[[j]]))
    }
    x <- as.matrix(x)
  }
  if (!is_plain_numeric(x) || length(dim(x)) > 2L) {
    abort_input(argument, describe(x), "a numeric matrix, a data frame of numeric columns or a numeric vector",
                hint = reason_not_numeric(x))
  }
  if (is.null(dim(x)) || length(dim(x)) == 1L) {
    x <- matrix(as.double(x), ncol = 1L, dimnames = if (!is.null(names(x))) list(names(x), NULL))
  }
  if (!is.double(x)) storage.mode(x) <- "double"
  for (a in setdiff(names(attributes(x)), c("dim", "dimnames"))) attr(x, a) <- NULL
  check_finite(x, argument, allow_na)
}

# Returns a double vector without names, made from a vector or a matrix of one column. `n` is the required length;
# `labels` are the names of its elements in messages.
check_vector <- function(y, argument, n = NULL, labels = NULL) {
  if (!is.null(dim(y)) && length(y) == dim(y)[1L]) y <- y[seq_along(y)]
  if (!is_plain_numeric(y) || is.logical(y) || !is.null(dim(y))) {
    abort_input(argument, describe(y), "a numeric vector", hint = reason_not_numeric(y))
  }
  if (!is.null(n) && length(y) != n) {
    abort_input(argument, sprintf("of length %d", length(y)), sprintf("of length %d", as.integer(n)))
  }
  check_finite(as.double(y), argument, labels = labels)
}

# Returns positive finite numbers. `length` is their number; NULL allows any number above 0.
check_positive <- function(x, argument, length = NULL) {
  n <- base::length(x)
  want <- if (is.null(length)) "positive numbers" else if (length == 1) "a positive number" else
    sprintf("%d positive numbers", as.integer(length))
  if (!is_plain_numeric(x) || is.logical(x) || !n || (!is.null(length) && n != length)) {
    abort_input(argument, describe(x), want)
  }
  bad <- which(!is.finite(x) | x <= 0)[1L]
  if (!is.na(bad)) {
    abort_input(argument, paste0(describe(as.double(x[bad])), if (n > 1L) sprintf(" (element %d)", bad)), want)
  }
  as.double(x)
}

# Returns a number for which ok(x) is TRUE.
check_number <- function(x, argument, want, ok) {
  if (!is_plain_numeric(x) || length(x) != 1L || is.na(x) || !ok(x)) abort_input(argument, describe(x), want)
  as.double(x)
}

check_at_least_0 <- function(x, argument) check_number(x, argument, "a number of at least 0", function(x) x >= 0)

check_level <- function(level) {
  check_number(level, "level", "a number between 0 and 1", function(x) is.numeric(x) && x > 0 && x < 1)
}

# Checks that weights lie where their squares and fourth powers are representable. A weight of 0 drops its row.
check_weight_sizes <- function(weights) {
  bad <- which(weights != 0 & (weights < 1e-60 | weights > 1e60))[1L]
  if (!is.na(bad)) {
    abort_input("weights", sprintf("%s (element %d)", format(weights[bad]), bad), "0, or between 1e-60 and 1e60",
                hint = "With Gaussian noise, multiplying `weights` and `noise` by the same number changes nothing.")
  }
  weights
}

# Returns a whole number from `min` to `max`, as an integer if it fits. `max_is` names the maximum in words.
check_count <- function(m, argument, max = NULL, min = 1, max_is = NULL) {
  whole <- function(v) format(v, scientific = FALSE)
  want <- if (is.null(max)) sprintf("a whole number of at least %s", whole(min)) else
    paste(c(sprintf("a whole number from %s to %s", whole(min), whole(max)), max_is), collapse = ", ")
  fits <- is_plain_numeric(m) && !is.logical(m) && length(m) == 1L && is.finite(m) && m == round(m)
  if (!fits || m < min || (!is.null(max) && m > max)) {
    abort_input(argument, if (is.numeric(m) && length(m) == 1L) whole(m) else describe(m), want)
  }
  if (abs(m) <= .Machine$integer.max) as.integer(m) else as.double(m)
}

# Returns the number of inducing points, at most the number of rows.
check_points <- function(m, rows) check_count(m, "m", max = rows, max_is = "the number of rows")

check_flag <- function(x, argument) {
  if (!is.logical(x) || length(x) != 1L || is.na(x)) abort_input(argument, describe(x), "TRUE or FALSE")
  as.vector(x)
}

# Returns one of `choices`, given by its name or the start of its name. All choices, as in a function's signature, mean
# the first.
check_choice <- function(x, choices, argument) {
  if (identical(x, choices)) return(choices[1L])
  i <- if (is.character(x) && length(x) == 1L && !is.na(x)) pmatch(x, choices) else NA
  if (is.na(i)) abort_input(argument, describe(x), paste("one of", paste0("\"", choices, "\"", collapse = ", ")))
  choices[i]
}

# Refuses to allocate more than the limit. `what` names the use of the memory: "the covariance of 1000 rows".
check_memory <- function(bytes, what) {
  limit <- getOption("pfdtc.max_memory", 2^32)
  if (is.na(bytes) || bytes > limit) {
    abort_input("pfdtc.max_memory", show_bytes(limit), sprintf("at least %s", show_bytes(bytes)),
                message = sprintf("Memory for %s would be %s, above the limit of %s.", what, show_bytes(bytes),
                                  show_bytes(limit)),
                hint = "Use fewer rows, or raise options(pfdtc.max_memory = <bytes>).")
  }
  invisible(bytes)
}

show_bytes <- function(bytes) {
  unit <- max(0, min(4, floor(log(max(bytes, 1), 1024))))
  paste(format(signif(bytes / 1024^unit, 3)), c("bytes", "KB", "MB", "GB", "TB")[unit + 1])
}

check_finite <- function(x, argument, allow_na = FALSE, labels = NULL) {
  i <- first_not_finite(x, allow_na)
  if (is.na(i)) return(x)
  where <- if (is.null(labels)) sprintf("element %d", i) else sprintf("row %s", labels[i])
  if (is.matrix(x)) {
    at <- arrayInd(i, dim(x))
    where <- sprintf("row %d, column %d", at[1L], at[2L])
    name <- colnames(x)[at[2L]]
    if (length(name) && !is.na(name) && nzchar(name)) where <- sprintf("%s (`%s`)", where, name)
  }
  abort_input(argument, sprintf("%s in %s", format(x[i]), where), "finite", hint = if (is.na(x[i])) {
    "Remove rows with missing values, or use the formula method with its `na.action`."
  })
}

# Returns the index of the first element that is not finite, or NA. min() and max() avoid a logical copy of good data.
first_not_finite <- function(x, allow_na = FALSE) {
  missing <- anyNA(x)
  if (!length(x) || (missing && allow_na && all(is.na(x)))) return(NA_integer_)
  ends_finite <- function() is.finite(min(x, na.rm = allow_na)) && is.finite(max(x, na.rm = allow_na))
  if ((allow_na || !missing) && ends_finite()) return(NA_integer_)
  which(if (allow_na) is.infinite(x) else !is.finite(x))[1L]
}

# Tests for numbers to compute with. Dates, times and factors are stored as numbers, but is.numeric() is FALSE for
# them. The bits of integer64 are not those of its number.
is_plain_numeric <- function(x) (is.numeric(x) && !inherits(x, "integer64")) || is.logical(x)

is_finite_number <- function(v) is.numeric(v) && length(v) == 1L && is.finite(v)

is_time <- function(x) inherits(x, c("Date", "POSIXt", "difftime"))

describe_column <- function(x) {
  if (is.factor(x)) return("a factor")
  if (is.object(x)) return(sprintf("class \"%s\"", class(x)[1L]))
  typeof(x)
}

# Returns a hint how to make numbers of a value that is not numeric, or NULL.
reason_not_numeric <- function(x) {
  if (inherits(x, "POSIXt")) {
    "Make numbers of times in a unit of your choice: as.numeric(time) / 3600 counts hours."
  } else if (inherits(x, "difftime")) {
    "Make numbers of time differences: as.numeric(x, units = \"days\")."
  } else if (is_time(x)) {
    "Make numbers of dates in a unit of your choice: as.numeric(date) counts days, as.numeric(date) / 365.25 years."
  } else if (inherits(x, c("sfc", "sfg", "sf"))) {
    "Coordinates as inputs: cbind(sf::st_drop_geometry(data), sf::st_coordinates(data)), then y ~ X + Y."
  } else if (inherits(x, "Spatial")) {
    "as.data.frame() makes a data frame whose columns include the coordinates."
  } else if (is.character(x) && any(grepl("~", x, fixed = TRUE))) {
    "as.formula() makes a formula of text."
  } else if (is.factor(x) || is.character(x)) {
    "The formula method codes factors and character variables."
  } else if (inherits(x, "integer64")) {
    "as.numeric(), with the package bit64 loaded, makes numbers of them."
  }
}
