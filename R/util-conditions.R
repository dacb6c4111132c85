# Raises classed conditions. Their fields serve handlers; their messages say what is wrong and what to do.

# Raises an error about an argument. `got` is the value, or one string that describes the value: the message is
# "`argument` must be <want>; <where> is <got>.". Without `want`, `got` is a predicate: "`argument` <got>.". `hint` is a
# further sentence that says what to do. `message` replaces the sentence made from the other arguments.
abort_input <- function(argument, got, want = NULL, hint = NULL, message = NULL, where = "it") {
  if (!is.character(got) || length(got) != 1L) got <- describe(got)
  if (is.null(message)) {
    message <- sprintf("`%s` %s.", argument, if (is.null(want)) got else
      sprintf("must be %s; %s is %s", want, where, got))
  }
  message <- paste(c(message, hint), collapse = " ")
  stop(classed(c("pfdtc_error_input", "error"), message, argument = argument, got = got))
}

# Raises an error about a computation. `...` are named fields, and `class` an additional class, for handlers.
abort_numerical <- function(message, ..., class = NULL) {
  stop(classed(c(class, "pfdtc_error_numerical", "error"), message, ...))
}

# Raises an error about a row source; the field `rows` has the number of rows read before it.
abort_source <- function(message, ...) stop(classed(c("pfdtc_error_source", "error"), message, ...))

warn_convergence <- function(message, ...) warn_classed("pfdtc_warning_convergence", message, ...)

# Warns that the bounds on log marginal likelihoods do not order two fits.
warn_evidence <- function(message, ...) warn_classed("pfdtc_warning_evidence", message, ...)

# Warns that a simpler model suits a small number of rows better.
warn_small <- function(message, ...) warn_classed("pfdtc_warning_small", message, ...)

warn_classed <- function(class, message, ...) warning(classed(c(class, "warning"), message, ...))

# Sends a message of class pfdtc_message_<kind>, which suppressMessages(classes = ) can select.
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

# Returns the call that the user wrote: the outermost frame whose function belongs to this package.
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

# Shortens a call for messages: data and functions that do.call() put into it are replaced by a description. Single
# values and short vectors stay.
shown_call <- function(call) {
  for (i in rev(seq_along(call))) {
    part <- call[[i]]
    if (missing(part) || is.null(part) || is.symbol(part)) next
    if (is.call(part)) {
      if (!identical(part[[1L]], quote(`function`))) call[[i]] <- shown_call(part)
    } else if (is.function(part)) {
      call[[i]] <- name_of_function(part)
    } else if (!is.atomic(part) || length(part) > 5L || !is.null(dim(part)) || is.object(part)) {
      call[[i]] <- as.name(sprintf("<%s>", describe(part)))
    }
  }
  call
}

# Returns the name of a function in this package or in base R.
name_of_function <- function(f) {
  for (space in list(topenv(environment(user_call)), baseenv())) {
    for (name in ls(space)) if (identical(get0(name, space, mode = "function"), f)) return(as.name(name))
  }
  as.name("<a function>")
}

# Returns a shortened call as one line of text, without backticks around descriptions.
deparse_shown <- function(call) {
  paste(trimws(deparse(shown_call(call), nlines = 8L, backtick = FALSE)), collapse = " ")
}

# Describes a value in a few words: a short value by itself, others by their kind and size.
describe <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.function(x)) return("a function")
  if (is.language(x)) return(clip(deparse1(x)))
  if (is.data.frame(x)) {
    return(sprintf("a data frame with %d row%s and %d column%s", nrow(x), plural_s(nrow(x)), ncol(x),
                   plural_s(ncol(x))))
  }
  if (is.factor(x)) return(sprintf("a factor of length %d", length(x)))
  if (is.object(x)) return(sprintf("an object of class \"%s\"", class(x)[1L]))
  if (!is.atomic(x)) return(paste0("a ", typeof(x), if (is.list(x)) sprintf(" of length %d", length(x))))
  kind <- if (is.double(x)) "numeric" else typeof(x)
  if (!is.null(dim(x))) {
    return(paste("a", paste(dim(x), collapse = " x "), kind, if (is.matrix(x)) "matrix" else "array"))
  }
  if (length(x) == 1L) return(clip(show_values(x)))
  if (length(x) %in% 2:5) return(clip(sprintf("c(%s)", paste(show_values(x), collapse = ", "))))
  sprintf("%s %s vector of length %d", if (is.integer(x)) "an" else "a", kind, length(x))
}

show_values <- function(x) {
  if (is.character(x)) return(ifelse(is.na(x), "NA", sprintf("\"%s\"", x)))
  vapply(x, function(v) format(v, digits = 7), "", USE.NAMES = FALSE)
}

# Lists names in quotes: `a`, `b` and `c`. Beyond `most` names it gives the number of the others.
list_quoted <- function(x, quote = "`", most = 5L, last = "and") {
  shown <- paste0(quote, utils::head(x, most), quote)
  if (length(x) > most) shown <- c(shown, sprintf("%d more", length(x) - most))
  if (length(x) < 2L) return(shown)
  paste(paste(shown[-length(shown)], collapse = ", "), last, shown[length(shown)])
}

# Returns a hint for a name that is not among `known`: the most similar name, or all known names if none is similar. For
# the `value` of an argument, whose error already lists the known values, it is the most similar value or NULL.
did_you_mean <- function(name, known, value = FALSE) {
  if (!length(known) || is.na(name)) return(NULL)
  apart <- utils::adist(name, known, ignore.case = TRUE)
  like <- if (value) "Did you mean \"%s\"?" else "Did you mean `%s`?"
  if (min(apart) < nchar(name) / 2) return(sprintf(like, known[which.min(apart)]))
  if (!value) sprintf("Possible names: %s.", list_quoted(known, most = 20L))
}

clip <- function(text, width = 60L) if (nchar(text) <= width) text else paste0(substr(text, 1L, width - 3L), "...")

plural_s <- function(n) if (n == 1) "" else "s"

# Wraps text like strwrap(), but never breaks a line at "argument = value" or "10 %".
wrap <- function(text, ...) {
  text <- gsub(" (=|%)", "\001\\1", gsub("= ", "=\001", text, fixed = TRUE))
  gsub("\001", " ", strwrap(text, width = getOption("width"), ...), fixed = TRUE)
}

# Returns a count with commas between thousands.
show_count <- function(n) format(n, big.mark = ",", scientific = FALSE, trim = TRUE)

count_of <- function(n, what) sprintf("%d %s%s", n, what, plural_s(n))

# Returns `a`, or `b` if `a` is NULL (base R has this from version 4.4).
`%||%` <- function(a, b) if (is.null(a)) b else a
