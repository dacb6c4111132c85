#' Rows that come in blocks
#'
#' A row source hands out the rows of a data set block by block, as often as it is asked to: what is larger than memory,
#' or lies elsewhere. [pfdtc()] takes one as `data` of a formula and holds no more than a block and a sample of the rows
#' at a time. `rows_blocks()` makes one of two functions of your own.
#'
#' @param rewind a function without arguments: the next block will be the first one.
#' @param next_block a function without arguments that returns the next block: a data frame (or a matrix), of any number
#'   of rows, none included; `NULL` after the last one.
#' @param columns names of the columns, which every block has. `NULL`: those of the first block, which is read for that.
#' @return A source, of class `pfdtc_source`.
#' @section What is asked of a source: the same rows in every pass, in any order. A factor may have other levels in
#'   every block: those of all blocks count.
#' @section Errors: class `pfdtc_error_input` for arguments that are not functions; what goes wrong while rows are read
#'   is of class `pfdtc_error_source` (with the condition that was raised as `parent`, and the number of rows that had
#'   been read as `rows`).
#' @seealso [pfdtc()], whose section on row sources has what is done with one.
#' @examples
#' # the rows of a data frame, 100 at a time
#' at <- 0
#' quakes_in_blocks <- rows_blocks(
#'   rewind = function() at <<- 0,
#'   next_block = function() {
#'     rows <- at + seq_len(min(100, nrow(quakes) - at))
#'     at <<- at + length(rows)
#'     if (length(rows)) quakes[rows, ]
#'   },
#'   columns = names(quakes))
#' quakes_in_blocks
#' @export
rows_blocks <- function(rewind, next_block, columns = NULL) {
  if (!is.function(rewind)) abort_input("rewind", rewind, "a function without arguments")
  if (!is.function(next_block)) abort_input("next_block", next_block, "a function that returns the next block")
  if (!is.null(columns) && (!is.character(columns) || !length(columns) || anyNA(columns))) {
    abort_input("columns", columns, "names of the columns")
  }
  source <- new_source(rewind, next_block, columns, "blocks")
  if (is.null(columns)) source$columns <- first_columns(source)
  source
}

# `pass(source, visit, merge, so_far)`: how source_pass() goes over it. `finish()`: what is done after a pass, however
# it ended. `label`: in print().
new_source <- function(rewind, next_block, columns, label, finish = function() NULL, pass = pass_in_turn) {
  structure(class = "pfdtc_source", list(rewind = rewind, next_block = next_block, columns = columns, label = label,
                                         finish = finish, pass = pass))
}

# R's random numbers, as they stand.
random_state <- function() {
  if (!exists(".Random.seed", envir = globalenv(), inherits = FALSE)) stats::runif(1)
  get(".Random.seed", envir = globalenv())
}

with_random_seed <- function(seed, expr) {
  state <- random_state()
  on.exit(assign(".Random.seed", state, envir = globalenv()))
  set.seed(seed)
  expr
}

# Random numbers that are the same each time, and R's own left as they were.
same_chance <- function(expr) with_random_seed(1, expr)

is_source <- function(data) inherits(data, "pfdtc_source")

# visit(block) of every block that has rows, put together by merge(a, b); NULL of no rows. Whatever is made of the rows
# of a source is made by this. Visits may be made elsewhere: `visit` is what a function with nothing but its arguments
# around it has returned, and merging is the same in any order but for rounding. `so_far`: an environment that has, also
# after an error or an interrupt, the `value` until then and the number of `rows` in it.
source_pass <- function(source, visit, merge, so_far = new.env()) {
  so_far$rows <- 0
  source$pass(source, visit, merge, so_far)
}

# merge() of what is there: NULL is what no rows come to.
either <- function(merge) {
  force(merge)
  function(a, b) if (is.null(a)) b else if (is.null(b)) a else merge(a, b)
}

# A visit that takes nothing with it but its arguments: f(rows, ...), `more` being the others, of the rows that
# read(from, block) makes of a block; NULL where there are none.
visit_rows <- function(read, from, f, more) {
  lapply(list(read, from, f, more), force)
  function(block) {
    rows <- read(from, block)
    if (rows$n) do.call(f, c(list(rows), more))
  }
}

# Are blocks visited in other processes? A visit then writes to nothing that is here.
read_elsewhere <- function(source) !identical(source$pass, pass_in_turn)

# Block after block, here.
pass_in_turn <- function(source, visit, merge, so_far) {
  on.exit(source$finish())
  reading(source$rewind(), 0)
  repeat {
    block <- read_block(source, so_far$rows)
    if (is.null(block)) return(so_far$value)
    if (!nrow(block)) next
    value <- in_block(visit(block), so_far$rows, nrow(block))
    so_far$value <- if (is.null(so_far$value)) value else merge(so_far$value, value)
    so_far$rows <- so_far$rows + nrow(block)
  }
}

# The next block as a data frame with the source's columns, or NULL.
read_block <- function(source, before) {
  block <- reading(source$next_block(), before)
  if (is.null(block)) return(NULL)
  if (is.matrix(block)) block <- as.data.frame(block)
  if (!is.data.frame(block)) {
    abort_input("data", describe(block), "a source of data frames", hint = after_rows(before))
  }
  lacking <- setdiff(source$columns, names(block))
  if (length(lacking)) {
    abort_input("data", sprintf("one whose block lacks %s", list_quoted(lacking)),
                sprintf("a source of blocks with columns %s", list_quoted(source$columns)), hint = after_rows(before))
  }
  block
}

first_columns <- function(source) {
  on.exit(source$finish())
  reading(source$rewind(), 0)
  block <- read_block(source, 0)
  names <- names(block)
  if (is.null(block) || !length(names)) {
    abort_input("columns", "NULL, and there is no block to tell them", "names of the columns")
  }
  names
}

after_rows <- function(before) sprintf("This was after %s rows.", show_count(before))

show_count <- function(n) format(n, big.mark = ",", scientific = FALSE, trim = TRUE)

# What a source does, and with what it fails.
reading <- function(expr, before) {
  tryCatch(expr, error = function(e) {
    if (is_time_limit(e)) stop(e)
    abort_source(sprintf("The row source failed after %s rows: %s", show_count(before), conditionMessage(e)),
                 parent = e, rows = before)
  })
}

# Errors about a block say which: row names start anew in each.
in_block <- function(expr, before, n) {
  tryCatch(expr, pfdtc_error_input = function(e) {
    e$message <- sprintf("%s (In the block of rows %s to %s of the source.)", e$message, show_count(before + 1),
                         show_count(before + n))
    stop(e)
  })
}

#' @export
print.pfdtc_source <- function(x, ...) {
  cat(wrap(sprintf("Row source (%s): %s", x$label, list_quoted(x$columns, most = 20L)), exdent = 2), sep = "\n")
  invisible(x)
}

# Predictions at the rows of a source, block by block.

# `predict_block(block)`: what predict() makes of a block. With a file, a CSV of what predict() returns, a line a row;
# without, that itself. `request`: what tells one such call from another, for one that was broken off to go on; NULL:
# from the beginning.
predict_source <- function(source, predict_block, file, request = NULL) {
  if (is.null(file)) return(bind_predictions(source_pass(source, function(block) list(predict_block(block)), c)))
  if (!is.character(file) || length(file) != 1L || is.na(file)) abort_input("file", file, "the name of a file")
  part <- part_of_file(file, request)
  if (is.null(request)) unlink(part)
  done <- rows_written(part)
  con <- open_part_of_file(part, file)
  finished <- FALSE
  on.exit({
    close(con)
    if (!finished) leave_part_of_file(part, file, request)
  })
  first <- done == 0
  write_rows <- function(p) {
    table <- as_table(p)
    utils::write.table(table, con, sep = ",", row.names = FALSE, col.names = first, qmethod = "double")
    first <<- FALSE
  }
  seen <- 0
  visit <- function(block) {
    left <- seq_len(nrow(block))[seen + seq_len(nrow(block)) > done]
    if (length(left)) write_rows(predict_block(block[left, , drop = FALSE]))
    seen <<- seen + nrow(block)
    seen
  }
  if (read_elsewhere(source)) write_rows(predict_source(source, predict_block, NULL)) else
    source_pass(source, visit, max)
  finished <- TRUE
  close(con)
  on.exit()
  if (first) {
    unlink(part)
    abort_input("newdata", "a source without rows", "of at least one row")
  }
  file.rename(part, file)
  invisible(file)
}

# What is not yet complete has another name, that of the request in it.
part_of_file <- function(file, request) {
  if (is.null(request)) return(paste0(file, ".part"))
  noted <- tempfile()
  on.exit(unlink(noted))
  saveRDS(request, noted, compress = FALSE)
  sprintf("%s.%s.part", file, substr(tools::md5sum(noted), 1L, 8L))
}

open_part_of_file <- function(part, file) {
  tryCatch(suppressWarnings(file(part, "a")), error = function(e) {
    abort_input("file", sprintf("\"%s\"", file), "a file that can be written", hint = conditionMessage(e))
  })
}

leave_part_of_file <- function(part, file, request) {
  rows <- rows_written(part)
  if (is.null(request) || !rows) return(unlink(part))
  tell_classed("kept", sprintf("The predictions of %s rows are kept beside \"%s\". The same call continues from there.",
                               show_count(rows), basename(file)))
}

# Lines of a file below the first; one that was broken off is taken out.
rows_written <- function(file) {
  if (!file.exists(file)) return(0)
  con <- file(file, "r+b")
  on.exit(close(con))
  lines <- size <- complete <- 0
  while (length(bytes <- readBin(con, "raw", 2^20))) {
    ends <- which(bytes == as.raw(10L))
    lines <- lines + length(ends)
    if (length(ends)) complete <- size + ends[length(ends)]
    size <- size + length(bytes)
  }
  if (complete < size) {
    seek(con, complete, rw = "write")
    truncate(con)
  }
  max(lines - 1, 0)
}

# A vector, a matrix or a list of both, as predict() has them, as a data frame.
as_table <- function(p) {
  fit <- if (is.list(p)) p$fit else p
  table <- if (is.matrix(fit)) as.data.frame(fit) else data.frame(fit = unname(fit))
  if (is.list(p)) table$se.fit <- unname(p$se.fit)
  table
}

bind_predictions <- function(blocks) {
  if (is.null(blocks)) abort_input("newdata", "a source without rows", "of at least one row")
  bind <- function(parts) if (is.matrix(parts[[1L]])) do.call(rbind, parts) else unlist(parts)
  if (!is.list(blocks[[1L]])) return(bind(blocks))
  lapply(stats::setNames(nm = names(blocks[[1L]])), function(part) bind(lapply(blocks, `[[`, part)))
}

# What predictions by a fit depend on.
prediction_signature <- function(fit) {
  c(fit[c("signature", "noise", "center", "scale", "inducing", "neighbours")], list(
    kernel = kernel_values(fit$kernel), near = fit$near$beta, factors = fit$factors[c("beta", "alpha")],
    reference = fit$reference$inducing))
}
