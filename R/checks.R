# Checks the arguments of exported functions: a check returns the cleaned value or raises an error about the argument.

refuse_if <- function(wrong, ...) if (wrong) abort_input(...)

check_given <- function(argument, hint = NULL) {
  if (eval.parent(call("missing", as.name(argument)))) abort_input(argument, "is missing", hint = hint)
}

# Returns a matrix, data frame or vector of numbers as a double matrix. NA is an error unless `allow_na`.
check_matrix <- function(x, argument, allow_na = FALSE) {
  if (is.data.frame(x)) {
    j <- which(!vapply(x, is_plain_numeric, NA))[1L]
    refuse_if(!is.na(j), argument, describe_column(x[[j]]), "a data frame of numeric columns",
              hint = reason_not_numeric(x[[j]]), where = sprintf("column `%s`", names(x)[j]))
    x <- as.matrix(x)
  }
  refuse_if(!is_plain_numeric(x) || length(dim(x)) > 2L, argument, describe(x),
            "a numeric matrix, a data frame of numeric columns or a numeric vector", hint = reason_not_numeric(x))
  if (length(dim(x)) < 2L) {
    x <- matrix(as.double(x), ncol = 1L, dimnames = if (!is.null(names(x))) list(names(x), NULL))
  }
  if (!is.double(x)) storage.mode(x) <- "double"
  for (a in setdiff(names(attributes(x)), c("dim", "dimnames"))) attr(x, a) <- NULL
  check_finite(x, argument, allow_na)
}

# Returns a vector or one-column matrix as doubles. `n` is the required length, `labels` name elements in messages.
check_vector <- function(y, argument, n = NULL, labels = NULL) {
  if (!is.null(dim(y)) && prod(dim(y)) == dim(y)[1L]) dim(y) <- NULL
  refuse_if(!is_plain_numeric(y) || is.logical(y) || !is.null(dim(y)), argument, describe(y), "a numeric vector",
            hint = reason_not_numeric(y))
  refuse_if(!is.null(n) && length(y) != n, argument,
            sprintf("has length %d, but there are %d rows", length(y), as.integer(n)))
  check_finite(as.double(y), argument, labels = labels)
}

# Returns x as doubles, or stops unless all are positive and finite. `length` numbers are required (NULL: any number).
check_positive <- function(x, argument, length = NULL) {
  n <- base::length(x)
  want <- if (is.null(length)) "positive numbers" else if (length == 1) "a positive number" else
    sprintf("%d positive numbers", as.integer(length))
  refuse_if(!is_plain_numeric(x) || is.logical(x) || !n || n != (length %||% n), argument, describe(x), want)
  bad <- which(!is.finite(x) | x <= 0)[1L]
  refuse_if(!is.na(bad), argument, as.double(x[bad]), want, where = if (n > 1L) sprintf("element %d", bad) else "it")
  as.double(x)
}

# Returns a single number, or stops unless ok(x) is TRUE. `want` describes the allowed numbers in the error.
check_number <- function(x, argument, want, ok) {
  if (!is_plain_numeric(x) || length(x) != 1L || is.na(x) || !ok(x)) abort_input(argument, describe(x), want)
  as.double(x)
}

check_at_least_0 <- function(x, argument) check_number(x, argument, "a number of at least 0", function(x) x >= 0)

check_level <- function(level, argument = "level") {
  check_number(level, argument, "a number between 0 and 1", function(x) x > 0 && x < 1)
}

# Returns m, or stops unless it is a whole number from `min` to `max`. `max_is` describes `max` in the error.
check_count <- function(m, argument, max = NULL, min = 1, max_is = NULL) {
  whole <- function(v) format(v, scientific = FALSE)
  want <- if (is.null(max)) sprintf("a whole number of at least %s", whole(min)) else
    paste(c(sprintf("a whole number from %s to %s", whole(min), whole(max)), max_is), collapse = ", ")
  fits <- is_plain_numeric(m) && !is.logical(m) && length(m) == 1L && is.finite(m) && m == round(m)
  refuse_if(!fits || m < min || (!is.null(max) && m > max), argument,
            if (is.numeric(m) && length(m) == 1L) whole(m) else describe(m), want)
  if (abs(m) <= .Machine$integer.max) as.integer(m) else as.double(m)
}

check_flag <- function(x, argument) {
  if (!isTRUE(x) && !isFALSE(x)) abort_input(argument, describe(x), "TRUE or FALSE")
  as.vector(x)
}

# Returns the element of `choices` that begins with the string x, or the first one if x is the default, `choices`. If x
# is an argument of the caller, and its default has the choices, check_choice(x) is enough, as in match.arg().
check_choice <- function(x, choices = eval(formals(sys.function(sys.parent()))[[argument]]),
                         argument = deparse1(substitute(x))) {
  if (identical(x, choices)) return(choices[1L])
  i <- if (is.character(x) && length(x) == 1L && !is.na(x)) pmatch(x, choices) else NA
  if (is.na(i)) abort_input(argument, describe(x), list_quoted(choices, "\"", 20L, "or"))
  choices[i]
}

# Stops if `bytes` exceed the option pfdtc.max_memory. `what` needs the memory, such as "the covariance of 1000 rows".
check_memory <- function(bytes, what) {
  limit <- getOption("pfdtc.max_memory", 2^32)
  refuse_if(is.na(bytes) || bytes > limit, "pfdtc.max_memory", show_bytes(limit),
            sprintf("at least %s", show_bytes(bytes)),
            message = sprintf("Memory for %s would be %s, above the limit of %s.", what, show_bytes(bytes),
                              show_bytes(limit)),
            hint = "Use fewer rows, or raise options(pfdtc.max_memory = <bytes>).")
}

show_bytes <- function(bytes) {
  unit <- max(0, min(4, floor(log(max(bytes, 1), 1024))))
  paste(format(signif(bytes / 1024^unit, 3)), c("bytes", "KB", "MB", "GB", "TB")[unit + 1])
}

# Returns x, or stops if a number is infinite or, unless `allow_na`, missing. For the error, `variables` has the name of
# the variable of each column of x, and `labels` has names of the rows.
check_finite <- function(x, argument, allow_na = FALSE, labels = NULL, variables = NULL) {
  i <- which(if (allow_na) is.infinite(x) else !is.finite(x))[1L]
  if (is.na(i)) return(x)
  at <- if (is.matrix(x)) arrayInd(i, dim(x)) else i
  row <- if (is.null(labels)) at[1L] else labels[at[1L]]
  where <- if (!is.null(variables)) {
    sprintf("row %s of `%s`", row, variables[at[2L]])
  } else if (is.matrix(x)) {
    name <- colnames(x)[at[2L]]
    named <- length(name) && !is.na(name) && nzchar(name)
    paste0(sprintf("row %s, column %d", row, at[2L]), if (named) sprintf(" (`%s`)", name))
  } else {
    paste(if (is.null(labels)) "element" else "row", row)
  }
  abort_input(argument, format(x[i]), "finite", where = where, hint = if (is.na(x[i]))
    "Remove rows with missing values, as the formula method does with `na.action = na.omit`.")
}

# Returns TRUE for numbers and logical values, and FALSE for dates, times and factors, although R stores these as
# numbers. integer64 gives FALSE too, because its bits are not those of a double.
is_plain_numeric <- function(x) (is.numeric(x) && !inherits(x, "integer64")) || is.logical(x)
is_finite_number <- function(v) is.numeric(v) && !is.object(v) && length(v) == 1L && is.finite(v)

is_time <- function(x) inherits(x, c("Date", "POSIXt", "difftime"))

# Returns numbers for text, or NA. Letters beyond ASCII become "?", because as.numeric() stops at some in Latin-1.
as_number <- function(text) suppressWarnings(as.numeric(iconv(enc2utf8(as.character(text)), "UTF-8", "ASCII", "?")))

is_dates_as_text <- function(x) {
  if (!is.factor(x) && !is.character(x)) return(FALSE)
  text <- utils::head(unique(as.character(x[!is.na(x)])), 100L)
  date <- "^([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4})([ T].*)?$"
  length(text) > 0L && all(grepl(date, text))
}

describe_column <- function(x) {
  if (is.factor(x)) return("a factor")
  if (is.object(x)) sprintf("of class \"%s\"", class(x)[1L]) else paste("of type", typeof(x))
}

# Returns a hint on how to convert x to numbers, or NULL.
reason_not_numeric <- function(x) {
  points <- "Coordinates as inputs: cbind(sf::st_drop_geometry(data), sf::st_coordinates(data)), then y ~ X + Y."
  by_class <- c(
    POSIXlt = "as.POSIXct() makes an input of it.", Matrix = "as.matrix() converts it.",
    POSIXt = "Convert times to numbers, such as hours: as.numeric(time) / 3600.",
    difftime = "Convert time differences to numbers: as.numeric(x, units = \"days\").",
    Date = "Convert dates to numbers: as.numeric(date) counts days, as.numeric(date) / 365.25 years.",
    sfc = points, sfg = points, sf = points,
    Spatial = "as.data.frame() makes a data frame whose columns include the coordinates.",
    Surv = "family = weibull(), loglogistic() or lognormal() takes a Surv() response.",
    integer64 = "as.numeric(), with the package bit64 loaded, makes numbers of them.")
  found <- by_class[inherits(x, names(by_class), which = TRUE) > 0L]
  if (length(found)) return(found[[1L]])
  if (is.list(x) && !is.object(x))
    return(if (all(lengths(x) == 1L)) "unlist() makes a vector of a list with one value in each row.")
  if (is.character(x) && any(grepl("~", x, fixed = TRUE))) return("as.formula() makes a formula of text.")
  if (is_dates_as_text(x)) {
    "Its values look like dates. as.numeric(as.Date(<text>)) counts days; as.Date() has a `format` for other dates."
  } else if (is.factor(x) || is.character(x) && length(x) > 1L) {
    "Only inputs of a formula may be factors. If levels are numbers, as.numeric(as.character(<factor>)) returns them."
  }
}

needs_package <- function(package, what, hint = NULL) {
  refuse_if(!requireNamespace(package, quietly = TRUE), "package", sprintf("without %s", package), hint = hint,
            message = sprintf("%s needs the package `%s`, which is not installed.", what, package))
}

# This list has a check for each argument of pfdtc_control(): a function of the value and the argument's name.
control_checks <- local({
  count <- function(min) function(x, name) check_count(x, name, min = min)
  or_null <- function(check) function(x, name) if (!is.null(x)) check(x, name)
  at_least_0 <- function(x, name) check_number(x, name, "a finite number of at least 0", function(x) x >= 0 && x < Inf)
  list(maxit = or_null(count(0)), reltol = at_least_0, jitter = or_null(at_least_0), block = or_null(count(1)),
       threads = count(1), memory = check_at_least_0,
       optimise_rows = or_null(function(x, name) if (identical(x, Inf)) x else check_count(x, name)),
       restarts = or_null(count(1)), priors = check_flag, fix = function(x, name) {
         if (is.character(x) && !anyNA(x)) return(x)
         abort_input(name, describe(x), "names of hyperparameters, as coef() gives them")
       }, tol_quantile = function(x, name) {
         check_number(x, name, "a number above 0 and at most 1", function(x) !is.logical(x) && x > 0 && x <= 1)
       }, trace = count(0), progress = check_flag, max_seconds = check_at_least_0)
})

# Stops if the dots of the calling function are not empty. `dots_names` is list(...), or the names of these
# arguments. `known` are the names of all arguments of the function, for the error.
check_dots_empty <- function(dots_names = eval.parent(quote(list(...))), known = names(formals(sys.function(-1L)))) {
  if (is.list(dots_names)) dots_names <- names(dots_names) %||% rep("", length(dots_names))
  if (!length(dots_names)) return(invisible(NULL))
  known <- setdiff(known, "...")
  name <- dots_names[1L]
  refuse_if(is.na(name) || name == "", "...", "has an argument without a name",
            hint = sprintf("Arguments here are %s.", list_quoted(known, most = 20L)))
  exact <- "pfdtc() has this argument. Without `m` it uses all rows of up to 2,000."
  ahead <- "forecast(<fit>, h = <steps>) predicts a series ahead, as predict() does at the times in `newdata`."
  hint <- if (name %in% names(control_checks)) sprintf("Give it as control = pfdtc_control(%s = <value>).", name) else
    switch(name, family = , approx = exact, h = , n.ahead = ahead, did_you_mean(name, known))
  abort_input(name, "is not an argument of this function", hint = hint)
}

# ---- errors, warnings and messages ----------------------------------------------------------------------------------

# Raises the error "`argument` must be <want>; <where> is <got>.", or "`argument` <got>." without `want`. `got` is the
# value, or a string that describes it. `hint` is a further sentence, `message` replaces the first sentence.
abort_input <- function(argument, got, want = NULL, hint = NULL, message = NULL, where = "it") {
  if (!is.character(got) || length(got) != 1L) got <- describe(got)
  if (is.null(message)) {
    message <- sprintf("`%s` %s.", argument, if (is.null(want)) got else
      sprintf("must be %s; %s is %s", want, where, got))
  }
  message <- paste(c(message, hint), collapse = " ")
  stop(classed(c("pfdtc_error_input", "error"), message, argument = argument, got = got))
}

# Raises an error about a computation that failed. `...` are fields of the condition, `class` is an additional class.
abort_numerical <- function(message, ..., class = NULL) {
  stop(classed(c(class, "pfdtc_error_numerical", "error"), message, ...))
}

# Raises an error about a row source. Its fields are `parent`, the cause, and `rows`, the rows read (0 in a worker).
abort_source <- function(message, ...) stop(classed(c("pfdtc_error_source", "error"), message, ...))

warn_convergence <- function(message, ...) warn_classed("convergence", message, ...)

warn_classed <- function(kind, message, ...) {
  warning(classed(c(paste0("pfdtc_warning_", kind), "warning"), message, ...))
}

# Sends a message of class pfdtc_message_<kind>, so that suppressMessages(classes = ) can suppress this kind alone.
tell_classed <- function(kind, text) {
  told <- classed(c(paste0("pfdtc_message_", kind), "pfdtc_message", "message"), paste0(text, "\n"))
  told["call"] <- list(NULL)
  message(told)
}

classed <- function(class, message, ...) {
  structure(class = c(class, "condition"), list(message = message, call = user_call(), ...))
}

# Returns TRUE for the errors of setTimeLimit() and setSessionTimeLimit(), which have no class.
is_time_limit <- function(e) {
  texts <- sprintf("reached %s time limit", c("elapsed", "CPU", "session elapsed", "session CPU"))
  conditionMessage(e) %in% c(texts, gettext(texts, domain = "R"))
}

# Returns the call that the user wrote: the outermost call of a function of this package.
user_call <- function() {
  here <- topenv(environment(user_call))
  for (i in seq_len(sys.nframe())) {
    home <- environment(sys.function(i))
    if (!is.null(home) && identical(topenv(home), here)) return(shown_call(sys.call(i)))
  }
}

# Returns the name of the function that the user called, such as "vcov()".
user_function <- function() {
  name <- user_call()[[1L]]
  name <- if (is.call(name)) as.character(name)[3L] else if (is.symbol(name)) as.character(name)
  if (is.null(name)) "This function" else paste0(sub("[.](gp_fit|default)$", "", name), "()")
}

# Returns a call shortened for messages. Data and functions inside the call, put there by do.call(), become a few words.
shown_call <- function(call) {
  for (i in rev(seq_along(call))) {
    part <- call[[i]]
    if (missing(part) || is.null(part) || is.symbol(part)) next
    if (is.call(part)) {
      if (!identical(part[[1L]], quote(`function`))) call[[i]] <- shown_call(part)
    } else if (is.language(series <- attr(part, "series"))) { # pfdtc.ts() made formula and data from it
      call[[i]] <- series
      if (isTRUE(all.equal(call$formula, attr(part, "formula")))) {
        call <- `names<-`(call, replace(names(call), i, ""))[names(call) != "formula"]
      }
    } else if (is.function(part)) {
      known <- function(space) Find(function(name) identical(get0(name, space, mode = "function"), part), ls(space))
      call[[i]] <- as.name(known(topenv(environment(user_call))) %||% known(baseenv()) %||% "<a function>")
    } else if (!is.atomic(part) || length(part) > 5L || !is.null(dim(part)) || is.object(part)) {
      call[[i]] <- as.name(sprintf("<%s>", describe(part)))
    }
  }
  call
}

# Returns a call without names such as ..1, which stand for arguments that `caller` received in its dots and work only
# while `caller` runs. Such a name is replaced by the argument's value. If the argument cannot be evaluated, because it
# is a column of the data as in `weights`, the name is replaced by the argument's expression.
without_dots <- function(call, caller) {
  dots <- grep("^[.]{2}[0-9]+$", all.vars(call), value = TRUE)
  if (!length(dots)) return(call)
  for (i in which(as.character(as.list(call)) %in% dots)) {
    call[i] <- list(tryCatch(eval(call[[i]], caller), error = function(e) {
      eval(quote(substitute(list(...))), caller)[[1L + as.integer(substring(deparse(call[[i]]), 3L))]]
    }))
  }
  call
}

# Returns a call as one line of text, shortened by shown_call(). Replacements such as <a function> have no backticks.
deparse_shown <- function(call) {
  gsub("`(<[^`]*>)`", "\\1", paste(trimws(deparse(shown_call(call), nlines = 8L)), collapse = " "))
}

# Describes a value in a few words: a short value as it is, others by their kind and size.
describe <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.function(x)) return("a function")
  if (is.language(x)) return(clip(deparse1(x)))
  if (is.data.frame(x)) return(paste("a data frame with", count_of(nrow(x), "row"), "and", count_of(ncol(x), "column")))
  if (is.factor(x)) return(sprintf("a factor of length %d", length(x)))
  if (is.object(x)) return(sprintf("an object of class \"%s\"", class(x)[1L]))
  if (!is.atomic(x)) return(paste0("a ", typeof(x), if (is.list(x)) sprintf(" of length %d", length(x))))
  kind <- if (is.double(x)) "numeric" else typeof(x)
  if (!is.null(dim(x)))
    return(paste("a", paste(dim(x), collapse = " x "), kind, if (is.matrix(x)) "matrix" else "array"))
  if (length(x) == 1L) return(clip(show_values(x)))
  if (length(x) %in% 2:5) return(clip(sprintf("c(%s)", paste(show_values(x), collapse = ", "))))
  sprintf("%s %s vector of length %d", if (is.integer(x)) "an" else "a", kind, length(x))
}

show_values <- function(x) {
  if (is.character(x)) return(ifelse(is.na(x), "NA", sprintf("\"%s\"", x)))
  vapply(x, function(v) format(v, digits = 7), "", USE.NAMES = FALSE)
}

# Returns names in quotes, as in `a`, `b` and `c`. After `most` names, only the number of the others follows.
list_quoted <- function(x, quote = "`", most = 5L, last = "and") {
  shown <- paste0(quote, utils::head(x, most), quote)
  if (length(x) > most) shown <- c(shown, sprintf("%d more", length(x) - most))
  if (length(x) < 2L) shown else paste(paste(shown[-length(shown)], collapse = ", "), last, shown[length(shown)])
}

# Returns the hint "Did you mean ...?" with the name in `known` that is most similar to `name`. If none is similar, the
# hint lists the known names. If `value`, `name` is an argument's value, and the error itself lists the known values.
did_you_mean <- function(name, known, value = FALSE) {
  if (!length(known) || is.na(name)) return(NULL)
  apart <- utils::adist(name, known, ignore.case = TRUE)
  like <- if (value) "Did you mean \"%s\"?" else "Did you mean `%s`?"
  if (min(apart) < nchar(name) / 2) return(sprintf(like, known[which.min(apart)]))
  if (!value) sprintf("Possible names: %s.", list_quoted(known, most = 20L))
}

clip <- function(text, width = 60L) if (nchar(text) <= width) text else paste0(substr(text, 1L, width - 3L), "...")
plural_s <- function(n) if (n == 1) "" else "s"

# Wraps text like strwrap(), but does not break a line within "argument = value" or "10 %".
wrap <- function(text, ...) {
  text <- gsub(" (=|%)", "\001\\1", gsub("= ", "=\001", text, fixed = TRUE))
  gsub("\001", " ", strwrap(text, width = getOption("width"), ...), fixed = TRUE)
}

print_lines <- function(lines) {
  function(x, ...) {
    cat(lines(x), sep = "\n")
    invisible(x)
  }
}

# Returns a text with "%s" in place of numbers, and the numbers as attribute. fill_numbers() formats and inserts them.
with_numbers <- function(text, ...) structure(text, values = c(...))
fill_numbers <- function(text, number) {
  values <- attr(text, "values")
  if (is.null(values)) text else do.call(sprintf, c(list(as.vector(text)), lapply(unname(values), number)))
}

# Writes a number with a mark between thousands that is not the decimal mark.
show_count <- function(n, scientific = FALSE) {
  format(n, big.mark = if (getOption("OutDec") == ",") " " else ",", scientific = scientific, trim = TRUE)
}

count_of <- function(n, what) sprintf("%d %s%s", n, what, plural_s(n))

# Returns `a`, or `b` if `a` is NULL (base R has this from version 4.4).
`%||%` <- function(a, b) if (is.null(a)) b else a

# Returns, for each element, the point between `low` and `high` where below(point) changes from TRUE to FALSE.
bisect <- function(below, low, high) {
  for (i in 1:60) {
    middle <- (low + high) / 2
    is_below <- below(middle)
    low[is_below] <- middle[is_below]
    high[!is_below] <- middle[!is_below]
  }
  (low + high) / 2
}
