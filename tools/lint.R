# Lints R by the rules below, one parse a file. They include the rules of .lintr, which editors and `make nightly` use:
#   Rscript tools/lint.R            names, lines of examples, layout and mistakes: seconds
#   Rscript tools/lint.R --lintr    the same files by lintr with .lintr: minutes

# ---- names ----------------------------------------------------------------------------------------------------------

# Parts of names between underscores or dots are lower case, or a matrix of the paper with its suffix (A, Kmm, At, L2):
# predict_posterior, W_x, add_A_At, predict.pfdtc. R's own names may be used.
good_piece <- "([a-z0-9]*|[A-Z][a-z0-9]{0,3}|logLik|AIC|BIC|extractAIC|onLoad|onUnload|dataClasses|VarCorr|REML|\\[)"
good_name <- sprintf("^%s([._]+%s)*$", good_piece, good_piece)

# Checks the names of arguments, and those that `<-` and `=` assign to: x, and a of x$a.
lint_names <- function(d) {
  assigned <- which(d$token %in% c("LEFT_ASSIGN", "EQ_ASSIGN")) - 1L
  assigned <- assigned[d$token[assigned] == "SYMBOL" & d$above[assigned] == d$parent[assigned + 1L]]
  given <- sort(c(which(d$token == "SYMBOL_FORMALS"), assigned))
  given <- given[!grepl(good_name, gsub("`|%.*%", "", d$text[given]))]
  said_at(d, given, sprintf("name %s: snake_case, or a matrix's letter", d$text[given]))
}

# Checks lines of examples, which help pages show verbatim but cut at 100 characters in print.
lint_examples <- function(lines) {
  starts <- grepl("^#' @", lines) | !startsWith(lines, "#'")
  of_examples <- c(FALSE, grepl("^#' @examples", lines[starts]))[cumsum(starts) + 1L] & !starts
  said_of(which(of_examples & nchar(sub("^#' ?", "", lines)) > 100), "a line of an example above 100 characters")
}

# ---- layout ---------------------------------------------------------------------------------------------------------

said_of <- function(lines, message) if (length(lines)) sprintf("%d: %s", lines, message)
said_at <- function(d, at, message) if (length(at)) sprintf("%d:%d: %s", d$line1[at], d$col1[at], message)

lint_lines <- function(lines, d) {
  several <- which(d$token == "STR_CONST" & d$line2 > d$line1)
  inside <- unlist(Map(seq, d$line1[several], d$line2[several] - 1L))
  c(said_of(which(nchar(lines) > 120L), "more than 120 characters"),
    said_of(setdiff(grep("[[:blank:]]$", lines), inside), "trailing whitespace"),
    if (length(lines) && !nzchar(trimws(lines[length(lines)]))) said_of(length(lines), "trailing blank line"))
}

spaced <- c("'+'", "'-'", "'~'", "GT", "GE", "LT", "LE", "EQ", "NE", "AND", "OR", "AND2", "OR2", "LEFT_ASSIGN",
            "RIGHT_ASSIGN", "EQ_ASSIGN", "EQ_SUB", "EQ_FORMALS", "SPECIAL", "'/'", "'*'", "PIPE")

# Returns the tokens of a file in order, with the parent of each one's parent, its first and last line in `outer`, and
# the spaces to the tokens before and after (NA across lines).
tokens_of <- function(parsed, lines) {
  d <- utils::getParseData(parsed)
  leaf <- which(d$terminal)
  leaf <- leaf[order(d$line1[leaf], d$col1[leaf])]
  parent <- match(d$parent[leaf], d$id)
  d <- c(lapply(d, `[`, leaf), list(above = d$parent[parent], outer_line1 = d$line1[parent],
                                    outer_col1 = d$col1[parent], outer_line2 = d$line2[parent]))
  n <- length(leaf)
  gap <- ifelse(d$line2[-n] == d$line1[-1L], d$col1[-1L] - d$col2[-n] - 1L, NA)
  d$before <- c(NA, gap)[seq_len(n)]
  d$after <- c(gap, NA)[seq_len(n)]
  d
}

lint_spaces <- function(d) {
  n <- length(d$token)
  last <- c("", d$token[-n])[seq_len(n)]
  is_unary <- d$line1 == d$outer_line1 & d$col1 == d$outer_col1
  heads <- d$parent[d$token %in% c("FUNCTION", "IF", "WHILE", "'\\\\'")]
  of_for <- d$parent[d$token == "IN"]
  touches_last <- d$before %in% 0L
  touches_next <- d$after %in% 0L
  rule <- function(wrong, message) said_at(d, which(wrong), message)
  c(rule(d$token %in% spaced & !is_unary & (touches_last | touches_next), "an operator without spaces around it"),
    rule(d$token == "','" & (d$before > 0L & !last %in% c("','", "EQ_SUB") | touches_next),
         "a comma without a space behind it, or with one before it"),
    rule(d$token %in% c("FUNCTION", "SYMBOL_FUNCTION_CALL") & !touches_next,
         "a space before the brackets of a function"),
    rule(d$token == "')'" & d$parent %in% c(heads, of_for) & touches_next, "no space between ) and what follows"),
    rule(d$token == "'('" & touches_last & last %in% c("IF", "WHILE", "FOR", "'{'", "ELSE", "IN", "';'"),
         "no space before ("),
    rule(d$token == "SYMBOL" & d$text %in% c("T", "F") & last != "'$'", "TRUE and FALSE, not T and F"),
    rule(d$token == "EQ_ASSIGN" | d$token == "RIGHT_ASSIGN", "<- assigns, not = or ->"))
}

lint_braces <- function(d) {
  opens <- which(d$token == "'{'")
  closes <- which(d$token == "'}'")
  closes <- closes[match(d$parent[opens], d$parent[closes])]
  several <- d$line1[opens] != d$line1[closes]
  code <- which(d$token != "COMMENT")
  step <- function(at, by) {
    to <- match(at, code) + by
    code[ifelse(to < 1L | to > length(code), NA, to)]
  }
  same_line <- function(a, b) (d$line1[a] == d$line1[b]) %in% TRUE
  opened <- opens[several]
  closed <- closes[several]
  next_one <- closed + 1L
  long <- d$parent[d$token == "FUNCTION" & d$line1 != d$outer_line2]
  heads_end <- which(d$token == "')'" & d$parent %in% long)
  elses <- which(d$token == "ELSE")
  rule <- function(at, message) said_at(d, at, message)
  c(rule(opened[same_line(opened, step(opened, 1L)) & !d$token[step(opened, 1L)] %in% "'{'" |
                  !same_line(opened, step(opened, -1L)) & !d$token[step(opened, -1L)] %in% c("'('", "','")],
         "{ ends a line and does not begin one"),
    rule(opens[d$before[opens] %in% 0L & d$token[step(opens, -1L)] %in% c("')'", "ELSE", "REPEAT")],
         "no space before {"),
    rule(closed[(same_line(closed, closed - 1L) & !d$token[closed - 1L] %in% "'}'" |
                   same_line(closed, next_one) & !d$token[next_one] %in% c("ELSE", "'}'", "COMMENT")) &
                  !(same_line(closed, next_one) & d$token[next_one] %in% c("','", "')'", "']'"))],
         "} stands on its own line, unless else or a bracket follows"),
    rule(elses[d$token[step(elses, -1L)] == "'}'" & !same_line(elses, step(elses, -1L))], "else stands behind }"),
    rule(heads_end[!d$token[step(heads_end, 1L)] %in% "'{'"], "a function of several lines without braces"))
}

# ---- mistakes -------------------------------------------------------------------------------------------------------

is_call_to <- function(e, names) is.call(e) && is.name(e[[1L]]) && as.character(e[[1L]]) %in% names
is_call_like <- function(e, names) {
  is_call_to(e, names) || is.call(e) && is_call_to(e[[1L]], c("::", ":::")) && as.character(e[[1L]][[3L]]) %in% names
}

# Returns how many values a format needs.
values_of_format <- function(format) {
  format <- gsub("%%", "", format, fixed = TRUE)
  found <- regmatches(format, gregexpr("%([0-9]+[$])?[-+ 0#]*([*]|[0-9]+)?([.]([*]|[0-9]+)?)?[a-zA-Z]", format))[[1L]]
  numbered <- grepl("^%[0-9]+[$]", found)
  max(0, as.numeric(sub("^%([0-9]+)[$].*", "\\1", found[numbered])),
      sum(!numbered) + sum(lengths(regmatches(found, gregexpr("*", found, fixed = TRUE)))))
}

is_wrong_format <- function(parts) {
  if (!length(parts) || !is.character(parts[[1L]]) || !all(names(parts)[1L] %in% c("", "fmt"))) return(FALSE)
  values <- parts[-1L]
  !any(vapply(values, identical, NA, quote(...))) && values_of_format(parts[[1L]]) != length(values)
}

has_vector_logic <- function(e) {
  if (!is.call(e) || !is.name(e[[1L]])) return(FALSE)
  head <- as.character(e[[1L]])
  if (head %in% c("&", "|")) return(TRUE)
  head %in% c("(", "!", "&&", "||", "==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/") &&
    any(vapply(as.list(e)[-1L], has_vector_logic, NA))
}

has_brace <- function(e) is_call_to(e, "{")
is_unmatched <- function(e) {
  other <- e[[4L]]
  if (!has_brace(e[[3L]])) return(has_brace(other))
  !has_brace(other) && !(is_call_to(other, "if") && has_brace(other[[3L]]))
}

compares_na <- function(e) {
  any(vapply(as.list(e)[-1L], function(p) is.atomic(p) && length(p) == 1L && is.na(p) && !is.nan(p), NA))
}
sizes <- c("length", "n", "nrow", "ncol", "NROW", "NCOL", "dim")
begins_at_one <- function(e) {
  any(vapply(as.list(e)[-1L], function(p) identical(p, 1) || identical(p, 1L), NA)) && has_call(e, sizes)
}
has_call <- function(e, names) any(vapply(as.list(e)[-1L], is_call_like, NA, names))
never_ends <- function(e) is_call_to(e, c("return", "stop"))

# Returns what is wrong with a call to `head`; `has_empty` is TRUE if one of its arguments is empty.
mistakes_in <- function(e, head, has_empty) {
  c(if (!is.null(names(e)) && anyDuplicated(names(e)[nzchar(names(e))])) "an argument is given twice",
    if (has_empty && !head %in% c("[", "[[", "switch", "alist", "function", "quote")) "an argument is empty",
    switch(head,
      "==" = ,
      "!=" = ,
      "%in%" = c(if (head != "%in%" && compares_na(e)) "is.na() finds NA",
                 if (has_call(e, "class")) "inherits() compares classes"),
      ":" = if (begins_at_one(e)) "seq_len() and seq_along() are right for length 0",
      seq = if (length(e) == 2L && has_call(e, sizes)) "seq_len() and seq_along() are right for length 0",
      sprintf = if (is_wrong_format(as.list(e)[-1L])) "sprintf() has more or fewer values than its format",
      "function" = if (has_brace(e[[3L]]) && any(vapply(as.list(e[[3L]])[-c(1L, length(e[[3L]]))], never_ends, NA))) {
        "code is never reached"
      },
      "if" = c(if (length(e) == 4L && is_unmatched(e)) "both branches of if have braces, or none has",
               if (has_vector_logic(e[[2L]])) "a condition needs && and ||"),
      "while" = ,
      expect_true = ,
      expect_false = if (length(e) > 1L && has_vector_logic(e[[2L]])) "a condition needs && and ||"))
}

# Returns the mistakes in code and in all its parts.
mistakes <- function(e) {
  found <- NULL
  has_empty <- FALSE
  for (part in as.list(e)) {
    if (missing(part)) has_empty <- TRUE else if (is.call(part) || is.pairlist(part)) found <- c(found, mistakes(part))
  }
  if (!is.call(e)) return(found)
  wrong <- mistakes_in(e, if (is.name(e[[1L]])) as.character(e[[1L]]) else "a function", has_empty)
  if (length(wrong)) wrong <- paste0(wrong, ": ", substr(paste(trimws(deparse(e)), collapse = " "), 1L, 60L))
  c(wrong, found)
}

lint_mistakes <- function(parsed) {
  lines <- vapply(utils::getSrcref(parsed), `[`, 0L, 1L)
  unlist(Map(function(e, line) {
    found <- mistakes(e)
    said_of(rep(line, length(found)), found)
  }, as.list(parsed), lines))
}

# ---- files ----------------------------------------------------------------------------------------------------------

# Returns the lines of a file; those of a vignette without its text.
code_of <- function(file) {
  lines <- readLines(file)
  if (!grepl("[.]Rmd$", file)) return(lines)
  fence <- startsWith(lines, "```")
  inside <- cumsum(fence) %% 2L == 1L & !fence
  in_r <- c(FALSE, startsWith(lines[fence], "```{r"))[cumsum(fence) + 1L]
  lines[!(inside & in_r)] <- ""
  lines[seq_len(max(0L, which(nzchar(lines))))]
}

lint_file <- function(file) {
  lines <- code_of(file)
  parsed <- parse(text = lines, keep.source = TRUE)
  d <- tokens_of(parsed, lines)
  ended <- endsWith(readChar(file, file.size(file), useBytes = TRUE), "\n")
  found <- c(lint_lines(lines, d), if (!ended) "no newline at the end", lint_spaces(d), lint_braces(d),
             lint_mistakes(parsed), if (!grepl("[.]Rmd$", file)) lint_names(d),
             if (startsWith(file, "R/")) lint_examples(lines))
  if (length(found)) paste0(file, ":", found)
}

lint_by_lintr <- function(file) {
  vapply(lintr::lint(file), function(l) sprintf("%s:%d:%d: %s", file, l$line_number, l$column_number, l$message), "")
}

files <- c(list.files(c("R", "tests", "tools", "bench"), "[.][rR]$", full.names = TRUE, recursive = TRUE),
           list.files("vignettes", "[.]Rmd$", full.names = TRUE))
by_lintr <- identical(commandArgs(trailingOnly = TRUE), "--lintr")
if (by_lintr && !requireNamespace("lintr", quietly = TRUE)) {
  cat("lint: lintr is absent: skipped\n")
  quit(status = 77)
}
said <- unlist(lapply(files, if (by_lintr) lint_by_lintr else lint_file))
writeLines(c(said, sprintf("lint: %d files of R, %d complaints", length(files), length(said))))
quit(status = as.integer(length(said) > 0))
