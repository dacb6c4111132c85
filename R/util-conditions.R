# Classed conditions: what a handler needs travels in fields, what a person needs in one sentence
# that names the argument, what it got and what would do.

# `got`: what was given, described by describe(); a string is taken as a description made already.
# `want`: what would do, to follow "must be". `hint`: one more sentence, about the way out.
# `message`: the whole text, where "`argument` must be want, not got." does not fit.
abort_input <- function(argument, got, want, call = NULL, hint = NULL, message = NULL) {
  if (!is.character(got) || length(got) != 1L) got <- describe(got)
  if (is.null(message)) message <- sprintf("`%s` must be %s, not %s.", argument, want, got)
  if (!is.null(hint)) message <- paste(message, hint)
  stop(structure(
    class = c("pfdtc_error_input", "error", "condition"),
    list(message = message, call = if (is.null(call)) user_call() else call,
         argument = argument, got = got)))
}

# `...`: named fields for handlers; `class`: one more, of those that something is done about.
abort_numerical <- function(message, ..., class = NULL) {
  stop(structure(class = c(class, "pfdtc_error_numerical", "error", "condition"),
                 list(message = message, call = user_call(), ...)))
}

# A row source that fails; `rows`: how many had been read.
abort_source <- function(message, ...) {
  stop(structure(class = c("pfdtc_error_source", "error", "condition"),
                 list(message = message, call = user_call(), ...)))
}

# setTimeLimit() and setSessionTimeLimit() end a computation by an error of no class of its own.
is_time_limit <- function(e) {
  texts <- c("reached elapsed time limit", "reached CPU time limit", "reached session elapsed time limit",
             "reached session CPU time limit")
  conditionMessage(e) %in% c(texts, gettext(texts, domain = "R"))
}

warn_convergence <- function(message, ...) warn_classed("pfdtc_warning_convergence", message, ...)

# Fits that what is known of the evidence does not tell apart.
warn_evidence <- function(message, ...) warn_classed("pfdtc_warning_evidence", message, ...)

# Data that bear no such model.
warn_small <- function(message, ...) warn_classed("pfdtc_warning_small", message, ...)

# What is done unasked or will take much, to those who want to hear: `kind` names it for suppressMessages(classes = ).
tell_classed <- function(kind, text) {
  message(structure(class = c(paste0("pfdtc_message_", kind), "pfdtc_message", "message", "condition"),
                    list(message = paste0(text, "\n"), call = NULL)))
}

warn_classed <- function(class, message, ...) {
  warning(structure(class = c(class, "warning", "condition"), list(message = message, call = user_call(), ...)))
}

# The call a user wrote: the outermost frame on the stack whose function lives in this package.
user_call <- function() {
  here <- topenv(environment(user_call))
  for (i in seq_len(sys.nframe())) {
    f <- sys.function(i)
    if (!is.null(environment(f)) && identical(topenv(environment(f)), here)) {
      return(shown_call(sys.call(i)))
    }
  }
  NULL
}

# A call to show: what do.call() has spliced into it, data and functions, would fill the screen. Single values and
# short vectors stay as they are.
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

# As the package or base R knows it
name_of_function <- function(f) {
  for (space in list(topenv(environment(user_call)), baseenv())) {
    for (name in ls(space)) if (identical(get0(name, space, mode = "function"), f)) return(as.name(name))
  }
  as.name("<a function>")
}

# Without the backquotes of names that are none
deparse_shown <- function(call) {
  paste(trimws(deparse(shown_call(call), nlines = 8L, backtick = FALSE)), collapse = " ")
}

# A value in a few words: itself when short, else its kind and size.
describe <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.function(x)) return("a function")
  if (is.language(x)) return(clip(deparse1(x)))
  if (is.data.frame(x)) {
    return(sprintf("a data frame with %d row%s and %d column%s",
                   nrow(x), plural_s(nrow(x)), ncol(x), plural_s(ncol(x))))
  }
  if (is.factor(x)) return(sprintf("a factor of length %d", length(x)))
  if (!is.atomic(x) || is.object(x)) {
    size <- if (is.list(x) && !is.object(x)) sprintf(" of length %d", length(x)) else ""
    kind <- if (is.object(x)) sprintf("an object of class \"%s\"", class(x)[1L]) else
      paste("a", typeof(x))
    return(paste0(kind, size))
  }
  kind <- if (is.double(x)) "numeric" else typeof(x)
  article <- if (kind == "integer") "an" else "a"
  if (!is.null(dim(x))) {
    shape <- if (is.matrix(x)) "matrix" else "array"
    return(sprintf("%s %s %s %s", article, paste(dim(x), collapse = " x "), kind, shape))
  }
  if (length(x) == 1L) return(clip(show_values(x)))
  if (length(x) %in% 2:5) return(clip(sprintf("c(%s)", paste(show_values(x), collapse = ", "))))
  sprintf("%s %s vector of length %d", article, kind, length(x))
}

show_values <- function(x) {
  if (is.character(x)) return(ifelse(is.na(x), "NA", sprintf("\"%s\"", x)))
  vapply(x, function(v) format(v, digits = 7), "", USE.NAMES = FALSE)
}

# "a", "b" and "c"; beyond `most` only how many more there are.
list_quoted <- function(x, quote = "`", most = 5L) {
  shown <- paste0(quote, utils::head(x, most), quote)
  if (length(x) > most) {
    return(sprintf("%s and %d more", paste(shown, collapse = ", "), length(x) - most))
  }
  if (length(x) < 2L) return(shown)
  paste(paste(shown[-length(shown)], collapse = ", "), "and", shown[length(shown)])
}

# The hint for a name that is not among `known`: the one like it, or where none is alike what there is.
did_you_mean <- function(name, known) {
  if (!length(known)) return(NULL)
  apart <- utils::adist(name, known, ignore.case = TRUE)
  if (min(apart) < nchar(name) / 2) return(sprintf("Did you mean `%s`?", known[which.min(apart)]))
  sprintf("There %s %s.", if (length(known) == 1L) "is" else "are", list_quoted(known, most = 20L))
}

clip <- function(text, width = 60L) {
  if (nchar(text) <= width) text else paste0(substr(text, 1L, width - 3L), "...")
}

plural_s <- function(n) if (n == 1) "" else "s"

# strwrap() that never breaks a line at "argument = value" or "10 %".
wrap <- function(text, ...) {
  text <- gsub(" (=|%)", "\001\\1", gsub("= ", "=\001", text, fixed = TRUE))
  gsub("\001", " ", strwrap(text, width = getOption("width"), ...), fixed = TRUE)
}
