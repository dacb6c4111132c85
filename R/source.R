#' @export
rows_blocks <- function(rewind, next_block, columns = NULL) {
  check_given("rewind", "Give a function that starts a pass.")
  check_given("next_block", "Give a function that returns the next block.")
  refuse_if(!is.function(rewind), "rewind", rewind, "a function without arguments")
  refuse_if(!is.function(next_block), "next_block", next_block, "a function that returns the next block")
  refuse_if(!is.null(columns) && (!is.character(columns) || !length(columns) || anyNA(columns)), "columns", columns,
            "names of the columns")
  source <- new_source(rewind, next_block, columns, "blocks")
  if (is.null(columns)) {
    reading(source$rewind(), 0)
    source$columns <- names(read_block(source, 0))
    refuse_if(!length(source$columns), "columns", "is missing, and the source has no block to find it from")
  }
  source
}

# Makes a source of rows. rewind() begins a pass, next_block() returns the next rows or NULL, finish() ends a pass even
# after an error, and `pass` is a function that visits all blocks (see source_pass()). `label` is printed.
new_source <- function(rewind, next_block, columns, label, finish = function() NULL, pass = pass_in_turn) {
  structure(class = "pfdtc_source", list(rewind = rewind, next_block = next_block, columns = columns, label = label,
                                         finish = finish, pass = pass))
}

is_source <- function(data) inherits(data, "pfdtc_source")

#' @export
print.pfdtc_source <- function(x, ...) {
  cat(wrap(sprintf("Row source (%s): %s", x$label, list_quoted(x$columns, most = 20L)), exdent = 2), sep = "\n")
  invisible(x)
}

# ---- random numbers -------------------------------------------------------------------------------------------------

random_state <- function() {
  if (!exists(".Random.seed", envir = globalenv(), inherits = FALSE)) stats::runif(1)
  get(".Random.seed", envir = globalenv())
}

# Returns `draws`, an expression that makes random numbers, evaluated from `seed` if that is given. The result has the
# attribute `seed`, and R's generator is restored, as in stats::simulate().
from_seed <- function(seed, draws) {
  state <- random_state()
  if (is.null(seed)) return(structure(draws, seed = state))
  check_count(seed, "seed", min = -.Machine$integer.max, max = .Machine$integer.max)
  on.exit(assign(".Random.seed", state, envir = globalenv()))
  set.seed(seed)
  structure(draws, seed = structure(seed, kind = as.list(RNGkind())))
}

# Evaluates `expr` with random numbers from a seed and restores the state of R's generator.
with_fixed_seed <- function(expr, seed = 1) {
  state <- random_state()
  on.exit(assign(".Random.seed", state, envir = globalenv()))
  set.seed(seed)
  expr
}

# ---- a pass over all rows -------------------------------------------------------------------------------------------

# Calls visit(block) for every block with rows, and joins the values that are not NULL by merge(a, b); returns NULL if
# all are. `visit` may run in another process, so it must use nothing but `block` and the arguments of the function that
# made it. The order of merging changes rounding only. The environment so_far holds the `value` and the number of `rows`
# so far.
source_pass <- function(source, visit, merge, so_far = new.env()) {
  so_far$rows <- 0
  source$pass(source, visit, merge, so_far)
}

# Returns a function for source_pass(): it reads rows = read(from, block) and returns f(rows, ...) with the arguments
# `more`, or NULL for a block without rows.
visit_rows <- function(read, from, f = list, more = list()) {
  lapply(list(read, from, f, more), force)
  function(block) {
    rows <- read(from, block)
    if (nrow(rows$x)) do.call(f, c(list(rows), more))
  }
}

# Makes a source of items, such as files, that are read one after another. open(item) returns list(read, close): read()
# returns the item's next block, or NULL at its end, and close() may be missing.
source_of_items <- function(items, columns, label, open) {
  now <- NULL
  left <- list()
  finish <- function() {
    if (!is.null(now$close)) now$close()
    now <<- NULL
  }
  new_source(function() {
    finish()
    left <<- as.list(items)
  }, function() {
    repeat {
      rows <- if (!is.null(now)) now$read()
      if (!is.null(rows)) return(rows)
      finish()
      if (!length(left)) return(NULL)
      item <- left[[1L]]
      left <<- left[-1L]
      now <<- open(item)
    }
  }, columns, label, finish)
}

# Returns a source of the rows of a data frame.
rows_in_memory <- function(rows) {
  source_of_items(list(rows), names(rows), "rows", function(rows) list(read = read_slices(rows, 65536L)))
}

# Returns a function that returns the next `block` rows at each call, and NULL at the end.
read_slices <- function(rows, block) {
  at <- 0
  function() {
    now <- at + seq_len(min(block, nrow(rows) - at))
    at <<- at + length(now)
    if (length(now)) rows[now, , drop = FALSE]
  }
}

# Returns TRUE if other processes visit the blocks. A visit then cannot write to variables of this session.
read_elsewhere <- function(source) !identical(source$pass, pass_in_turn)

# Visits blocks in sequence in this session.
pass_in_turn <- function(source, visit, merge, so_far) {
  on.exit(source$finish())
  reading(source$rewind(), 0)
  repeat {
    block <- read_block(source, so_far$rows)
    if (is.null(block)) return(so_far$value)
    if (!nrow(block)) next
    # Name the block in errors about rows, because row names begin anew in each block.
    value <- tryCatch(visit(block), pfdtc_error_input = function(e) {
      e$message <- sprintf("%s (In the block of rows %s to %s of the source.)", e$message,
                           show_count(so_far$rows + 1), show_count(so_far$rows + nrow(block)))
      stop(e)
    })
    if (!is.null(value)) so_far$value <- if (is.null(so_far$value)) value else merge(so_far$value, value)
    so_far$rows <- so_far$rows + nrow(block)
  }
}

# Returns the next block of a source as a data frame, or NULL at the end. `before` counts the rows read so far.
read_block <- function(source, before) {
  block <- reading(source$next_block(), before)
  if (is.null(block)) return(NULL)
  if (is.matrix(block)) block <- as.data.frame(block)
  after <- sprintf("This was after %s rows.", show_count(before))
  refuse_if(!is.data.frame(block), "data", describe(block), "a source of data frames", hint = after)
  lacking <- setdiff(source$columns, names(block))
  refuse_if(length(lacking), "data", sprintf("has a block without %s", list_quoted(lacking)), hint = after)
  block
}

# Evaluates an expression that reads a source; an error becomes one of class "pfdtc_error_source".
reading <- function(expr, before) {
  tryCatch(expr, error = function(e) {
    if (is_time_limit(e)) stop(e)
    abort_source(sprintf("The row source failed after %s rows: %s", show_count(before), conditionMessage(e)),
                 parent = e, rows = before)
  })
}

# ---- predictions at the rows of a source ----------------------------------------------------------------------------

# Predicts at the rows of a source, where predict_block(block) predicts at a block. The predictions are returned, or
# written as lines of the CSV file `file`. `request` identifies the call: the same call continues an interrupted file.
# With NULL the file is begun anew.
predict_source <- function(source, predict_block, file, request = NULL) {
  none <- function() abort_input("newdata", "has no rows")
  if (is.null(file)) {
    blocks <- source_pass(source, function(block) list(predict_block(block)), c)
    return(if (is.null(blocks)) none() else bind_blocks(blocks))
  }
  # R's connections report a full disk for large writes only, so also check the size of the file and its lines.
  full <- function(written = NULL) {
    only <- if (is.null(written)) "" else sprintf(", only %s", show_count(written))
    abort_input("file", "not written completely", hint = "The disk may be full.",
                message = sprintf("`file` \"%s\" does not take %s rows%s.", file, show_count(wanted), only))
  }
  check_output_file(file)
  part <- part_of_file(file, request)
  check_output_file(part)
  if (is.null(request)) unlink(part)
  wanted <- done <- rows_written(part)
  con <- tryCatch(suppressWarnings(file(part, "a")), error = function(e) {
    abort_input("file", sprintf("cannot be written: \"%s\"", file), hint = conditionMessage(e))
  })
  on.exit({
    close(con)
    rows <- rows_written(part)
    if (is.null(request) || !rows) unlink(part) else
      tell_classed("kept", sprintf("The predictions of %s rows are kept beside \"%s\". %s", show_count(rows),
                                   basename(file), "The same call continues from there."))
  })
  write_rows <- function(p) {
    table <- as_table(p)
    size <- file.size(part)
    first <- wanted == 0
    wanted <<- wanted + nrow(table)
    tryCatch({
      utils::write.table(table, con, sep = ",", row.names = FALSE, col.names = first, qmethod = "double")
      flush(con)
    }, error = function(e) if (is_time_limit(e)) stop(e) else full())
    if (file.size(part) == size) full()
  }
  seen <- 0
  visit <- function(block) {
    left <- seq_len(nrow(block))[seen + seq_len(nrow(block)) > done]
    seen <<- seen + nrow(block)
    if (length(left)) write_rows(predict_block(block[left, , drop = FALSE]))
  }
  if (read_elsewhere(source)) write_rows(predict_source(source, predict_block, NULL)) else
    source_pass(source, visit, c)
  flush(con)
  written <- rows_written(part)
  if (written < wanted) full(written)
  close(con)
  on.exit()
  if (wanted == 0) unlink(part)
  if (wanted == 0) none()
  refuse_if(!file.rename(part, file), "file", sprintf("cannot be replaced: \"%s\"", file))
  invisible(file)
}

# Checks that `file` can be written safely: it is new or a regular file, no device, pipe or link.
check_output_file <- function(file) {
  refuse_if(!is.character(file) || length(file) != 1L || is.na(file), "file", file, "the name of a file")
  link <- Sys.readlink(file)
  odd <- dir.exists(file) || (!is.na(link) && nzchar(link)) ||
    (file.exists(file) && .Platform$OS.type == "unix" && system2("test", c("-f", shQuote(path.expand(file)))) != 0L)
  refuse_if(odd, "file", sprintf("is a folder, device, pipe or link: \"%s\"", file))
}

# Returns the name of the file that is written until all rows are done. It has a hash of the request, if there is one.
part_of_file <- function(file, request) {
  if (is.null(request)) return(paste0(file, ".part"))
  noted <- tempfile()
  on.exit(unlink(noted))
  saveRDS(request, noted, compress = FALSE)
  sprintf("%s.%s.part", file, substr(tools::md5sum(noted), 1L, 8L))
}

# Returns the number of complete lines of a file after its header, and cuts off an incomplete last line.
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

# Returns a result of predict() as a data frame, with a column for each number.
as_table <- function(p) {
  fit <- if (is.list(p)) p$fit else p
  table <- if (is.matrix(fit)) as.data.frame(fit) else data.frame(fit = unname(fit))
  if (is.list(p)) table$se.fit <- unname(p$se.fit)
  table
}

# Joins the values of blocks: vectors, matrices, or lists of them. c() keeps the class of dates, which unlist() drops.
bind_blocks <- function(blocks) {
  first <- blocks[[1L]]
  if (is.matrix(first)) return(do.call(rbind, blocks))
  if (!is.list(first)) return(do.call(c, blocks))
  lapply(stats::setNames(nm = names(first)), function(name) bind_blocks(lapply(blocks, `[[`, name)))
}

# Returns all elements of a fit on which its predictions depend, to recognise a repeated call.
prediction_signature <- function(fit) {
  c(fit[c("signature", "noise", "center", "scale", "inducing", "neighbours")], list(
    kernel = kernel_values(fit$kernel), near = fit$near$beta, factors = fit$factors[c("beta", "alpha")],
    reference = fit$reference$inducing))
}
