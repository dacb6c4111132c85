# Checks at the user's door: each returns the cleaned value, or raises naming the argument, what it
# got and what would do.

# A double N x d matrix from a matrix, a data frame of numbers or a vector (one column). Columns
# keep their names. A double matrix comes back as it is, without a copy. Zero rows are let through;
# NA only when asked.
check_matrix <- function(x, argument, allow_na = FALSE) {
  if (is.data.frame(x)) {
    plain <- vapply(x, is_plain_numeric, NA)
    if (!all(plain)) {
      j <- which(!plain)[1L]
      abort_input(argument, sprintf("%s in column `%s`", describe_column(x[[j]]), names(x)[j]),
                  "a data frame of numeric columns", hint = reason_not_numeric(x[[j]]))
    }
    x <- as.matrix(x)
  }
  if (!is_plain_numeric(x) || length(dim(x)) > 2L) {
    abort_input(argument, describe(x),
                "a numeric matrix, a data frame of numeric columns or a numeric vector",
                hint = reason_not_numeric(x))
  }
  if (is.null(dim(x)) || length(dim(x)) == 1L) {
    x <- matrix(as.double(x), ncol = 1L, dimnames = if (!is.null(names(x))) list(names(x), NULL))
  }
  if (!is.double(x)) storage.mode(x) <- "double"
  extra <- setdiff(names(attributes(x)), c("dim", "dimnames"))
  for (a in extra) attr(x, a) <- NULL
  check_finite(x, argument, allow_na)
}

# A plain double vector, without names; a matrix of one column will do. `n`: the length it must
# have; `labels`: what messages call its elements.
check_vector <- function(y, argument, n = NULL, labels = NULL) {
  if (!is.null(dim(y)) && length(y) == dim(y)[1L]) y <- y[seq_along(y)]
  if (!is_plain_numeric(y) || is.logical(y) || !is.null(dim(y))) {
    abort_input(argument, describe(y), "a numeric vector", hint = reason_not_numeric(y))
  }
  if (!is.null(n) && length(y) != n) {
    abort_input(argument, sprintf("of length %d", length(y)),
                sprintf("of length %d", as.integer(n)))
  }
  check_finite(as.double(y), argument, labels = labels)
}

# Positive finite numbers; `length` is how many there must be, NULL for any number but none.
check_positive <- function(x, argument, length = NULL) {
  want <- if (is.null(length)) "positive numbers" else if (length == 1) "a positive number" else
    sprintf("%d positive numbers", as.integer(length))
  sized <- base::length(x) > 0L && (is.null(length) || base::length(x) == length)
  if (!is_plain_numeric(x) || is.logical(x) || !sized) abort_input(argument, describe(x), want)
  bad <- which(!is.finite(x) | x <= 0)
  if (base::length(bad)) {
    got <- describe(as.double(x[bad[1L]]))
    if (base::length(x) > 1L) got <- sprintf("%s (element %d)", got, bad[1L])
    abort_input(argument, got, want)
  }
  as.double(x)
}

# A number of which `ok` is TRUE.
check_number <- function(x, argument, want, ok) {
  if (!is_plain_numeric(x) || length(x) != 1L || is.na(x) || !ok(x)) abort_input(argument, describe(x), want)
  as.double(x)
}

check_at_least_0 <- function(x, argument) check_number(x, argument, "a number of at least 0", function(x) x >= 0)

# Weights multiply squares, and fourth powers are computed with; 0 drops a row, where that is allowed.
check_weight_sizes <- function(weights) {
  bad <- which(weights != 0 & (weights < 1e-60 | weights > 1e60))
  if (length(bad)) {
    abort_input("weights", sprintf("%s (element %d)", format(weights[bad[1L]]), bad[1L]),
                "0, or between 1e-60 and 1e60",
                hint = "With Gaussian noise, multiplying `weights` and `noise` by a number changes nothing.")
  }
  weights
}

# A whole number from `min` to `max`: an integer where it fits one. `max_is`: what the most is, in words.
check_count <- function(m, argument, max = NULL, min = 1, max_is = NULL) {
  whole <- function(v) format(v, scientific = FALSE)
  want <- if (is.null(max)) sprintf("a whole number of at least %s", whole(min)) else
    paste(c(sprintf("a whole number from %s to %s", whole(min), whole(max)), max_is), collapse = ", ")
  fits <- is_plain_numeric(m) && !is.logical(m) && length(m) == 1L && is.finite(m) && m == round(m)
  if (!fits || m < min || (!is.null(max) && m > max)) {
    got <- if (is.numeric(m) && length(m) == 1L) whole(m) else describe(m)
    abort_input(argument, got, want)
  }
  if (abs(m) <= .Machine$integer.max) as.integer(m) else as.double(m)
}

# How many inducing points of so many rows
check_points <- function(m, rows) check_count(m, "m", max = rows, max_is = "the number of rows")

check_flag <- function(x, argument) {
  if (!is.logical(x) || length(x) != 1L || is.na(x)) {
    abort_input(argument, describe(x), "TRUE or FALSE")
  }
  as.vector(x)
}

# One of `choices`, by name or by the beginning of it; the signature's whole vector means the first.
check_choice <- function(x, choices, argument) {
  if (identical(x, choices)) return(choices[1L])
  i <- if (is.character(x) && length(x) == 1L && !is.na(x)) pmatch(x, choices) else NA
  if (is.na(i)) {
    choices <- paste0("\"", choices, "\"", collapse = ", ")
    abort_input(argument, describe(x), paste("one of", choices))
  }
  choices[i]
}

# Refuses memory above the limit before it is taken. `what` needs `bytes`: "the covariance of 1000
# rows".
check_memory <- function(bytes, what) {
  limit <- getOption("pfdtc.max_memory", 2^32)
  if (is.na(bytes) || bytes > limit) {
    abort_input("pfdtc.max_memory", show_bytes(limit), sprintf("at least %s", show_bytes(bytes)),
                message = sprintf("Memory for %s would be %s, more than the limit of %s.",
                                  what, show_bytes(bytes), show_bytes(limit)),
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
  where <- sprintf("element %d", i)
  if (!is.null(labels)) where <- sprintf("row %s", labels[i])
  if (is.matrix(x)) {
    at <- arrayInd(i, dim(x))
    where <- sprintf("row %d, column %d", at[1L], at[2L])
    name <- colnames(x)[at[2L]]
    if (length(name) && !is.na(name) && nzchar(name)) where <- sprintf("%s (`%s`)", where, name)
  }
  abort_input(argument, sprintf("%s in %s", format(x[i]), where), "finite",
              hint = if (is.na(x[i])) paste("Leave rows with missing values out first, or use the",
                                            "formula method, whose `na.action` does."))
}

# Index of the first element that is not finite (NA and NaN may be let through), or NA. min() and
# max() answer for good data without a logical copy as large as x.
first_not_finite <- function(x, allow_na = FALSE) {
  missing <- anyNA(x)
  if (!length(x) || (missing && allow_na && all(is.na(x)))) return(NA_integer_)
  if ((allow_na || !missing) && is.finite(min(x, na.rm = allow_na)) &&
        is.finite(max(x, na.rm = allow_na))) {
    return(NA_integer_)
  }
  which(if (allow_na) is.infinite(x) else !is.finite(x))[1L]
}

# Numbers to compute with. Dates, times and factors are stored as numbers but mean something else:
# is.numeric() says FALSE to them. The bits of a wide integer are not those of the number.
is_plain_numeric <- function(x) (is.numeric(x) && !inherits(x, "integer64")) || is.logical(x)

describe_column <- function(x) {
  if (is.factor(x)) return("a factor")
  if (is.object(x)) return(sprintf("class \"%s\"", class(x)[1L]))
  typeof(x)
}

# Why a value that looks like data is not taken, and the way out; NULL where there is nothing to
# add.
reason_not_numeric <- function(x) {
  if (is_time(x)) {
    paste("Dates and times have no natural unit of length here:",
          "convert with as.numeric() in the unit you mean.")
  } else if (is.character(x) && any(grepl("~", x, fixed = TRUE))) {
    "as.formula() makes a formula of text."
  } else if (is.factor(x) || is.character(x)) {
    "The formula method codes factors and character variables."
  } else if (inherits(x, "integer64")) {
    "as.numeric(), with the bit64 package loaded, makes numbers of them."
  }
}

is_time <- function(x) inherits(x, c("Date", "POSIXt", "difftime"))

check_level <- function(level) {
  check_number(level, "level", "a number between 0 and 1", function(x) is.numeric(x) && x > 0 && x < 1)
}

is_finite_number <- function(v) is.numeric(v) && length(v) == 1L && is.finite(v)
