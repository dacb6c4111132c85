#' Fit data larger than memory, or stored elsewhere
#'
#' A row source returns the rows of a data set block by block, as often as needed. [pfdtc()] takes a row source as
#' `data` of a formula, and keeps one block and a sample in memory (few rows: all). `rows_db()` reads a table or the
#' result of a query (package `DBI`). `rows_csv()` reads CSV files, `rows_parquet()` Parquet files (package
#' `nanoparquet`), and `rows_arrow()` Arrow array streams (package `nanoarrow`). `rows_blocks()` calls a function for
#' each block.
#'
#' `rows_parts()` takes the rows in parts, and a worker reads each part. Workers are the processes of the current plan
#' of package \pkg{future} (with its default plan, the session itself), or the daemons of package \pkg{mirai}, also on
#' other machines. `pfdtc(formula, data, workers = TRUE)` sends a data frame to them.
#' @usage
#' rows_db(con, query, block = rows_of_a_block)
#' rows_csv(files, block = rows_of_a_block, col_classes = NULL, ..., skip = 0)
#' rows_parquet(files, block = rows_of_a_block)
#' rows_arrow(open)
#' rows_blocks(rewind, next_block, columns = NULL)
#' rows_parts(parts)
#' @param con a connection made by `DBI::dbConnect()`. Keep it open, and do not use it while rows are read.
#' @param query name of a table, or a query that always gives the same rows.
#' @param block number of rows in a block. Default: 20,000.
#' @param files names of files, or of one folder with `.csv`, `.csv.gz` or `.parquet` files.
#' @param col_classes,skip,... `colClasses` and other arguments of [utils::read.csv()]. Default: classes of block 1.
#' @param open function without arguments whose value `nanoarrow::as_nanoarrow_array_stream()` accepts.
#' @param rewind,next_block functions without arguments. `next_block()` returns the next block (a data frame or a matrix
#'   with any number of rows), or `NULL` after the last block. After `rewind()` it begins again with the first block.
#' @param columns names of the columns of every block. Default: the names in the first block.
#' @param parts a list of data frames, or of functions without arguments that return a data frame, a matrix or a row
#'   source on the worker. The environment of a function is sent with it, but not the global environment.
#' @return A row source, of class `pfdtc_source`. Every pass must give the same rows;
#'   `predict(file = )` also needs the same order.
#' @details Package `duckdb` holds the whole result of a query in memory unless `nanoarrow` and `DBI` >= 1.2.0 are
#'   installed. Parquet data larger than memory need several files. Workers keep their parts until another source is
#'   used. If a worker fails, another repeats its part. With fixed hyperparameters and inducing points, a fit by workers
#'   equals one without, up to rounding.
#' @section Errors: Errors of the source itself have class `pfdtc_error_source`, with the original condition (`parent`)
#'   and the number of rows read before (`rows`).
#' @examples
#' file <- tempfile(fileext = ".csv")
#' write.csv(quakes, file, row.names = FALSE)
#' same <- list(mag ~ stations + depth, m = 20, kernel = kernel_se(c(60, 300), 0.1),
#'              noise = 0.04, hyper = "fixed")
#' do.call(pfdtc, c(same, list(data = rows_csv(file))))
#' at <- 0
#' rows_blocks(rewind = function() at <<- 0, next_block = function() {
#'   rows <- at + seq_len(min(100, nrow(quakes) - at))
#'   at <<- at + length(rows)
#'   if (length(rows)) quakes[rows, ]
#' }, columns = names(quakes))
#' if (requireNamespace("future", quietly = TRUE)) { # workers of future::plan()
#'   do.call(pfdtc, c(same, list(data = rows_parts(list(quakes[1:500, ], quakes[501:1000, ])))))
#' }
#' @seealso [pfdtc()], [add_rows()], `vignette("large")`
#' @aliases rows_db rows_csv rows_parquet rows_arrow rows_blocks rows_parts
#' @name row_sources
NULL

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

# Returns a source of rows. rewind() begins a pass, next_block() returns the next rows or NULL, and finish() ends a pass
# even after an error. `pass` is a function that visits all blocks (see source_pass()). `label` is for print().
new_source <- function(rewind, next_block, columns, label, finish = function() NULL, pass = pass_in_turn) {
  structure(class = "pfdtc_source", list(rewind = rewind, next_block = next_block, columns = columns, label = label,
                                         finish = finish, pass = pass))
}

is_source <- function(data) inherits(data, "pfdtc_source")

#' @export
print.pfdtc_source <- print_lines(function(x) {
  wrap(sprintf("Row source (%s): %s", x$label, list_quoted(x$columns, most = 20L)), exdent = 2)
})

# Calls visit(block) for every block with rows, and joins the values that are not NULL by merge(a, b), in an order that
# changes rounding only. Returns NULL if all are NULL. `visit` may run in another process, so it must use nothing but
# `block` and the arguments of the function that made it. so_far has the `value` so far and the number of `rows`.
source_pass <- function(source, visit, merge, so_far = new.env()) {
  so_far$rows <- 0
  source$pass(source, visit, merge, so_far)
}

# Returns the formula with an environment for workers, which lack the global environment. This environment has functions
# and single values that the formula, the arguments `given` and these functions use. `columns` are names of data.
with_global_objects <- function(formula, given, columns) {
  own <- new.env(parent = environment(formula))
  names <- unlist(lapply(c(formula, given), all.names))
  while (length(names <- setdiff(names, c(columns, ls(own))))) {
    found <- Filter(function(v) is.function(v) || length(v) == 1L, mget(names, globalenv(), ifnotfound = list(NULL)))
    users <- Filter(function(v) identical(environment(v), globalenv()), Filter(is.function, found))
    names <- unlist(lapply(users, function(f) all.names(body(f))))
    list2env(replace(found, names(users), lapply(users, `environment<-`, own)), own)
  }
  `environment<-`(formula, own)
}

# Returns the argument `visit` of source_pass(): a function that reads rows = read(from, block) and returns f(rows, ...)
# with the arguments `more`, or NULL for a block without rows.
visit_rows <- function(read, from, f = list, more = list()) {
  list(read, from, f, more) # evaluates the arguments before they go to workers
  function(block) {
    rows <- read(from, block)
    if (nrow(rows$x)) do.call(f, c(list(rows), more))
  }
}

# Returns a source of items, such as files, that are read one after another. open(item) returns list(read, close):
# read() returns the item's next block, or NULL at its end, and close() may be missing.
source_of_items <- function(items, columns, label, open) {
  now <- NULL
  left <- list()
  finish <- function() {
    if (!is.null(now$close)) now$close()
    now <<- NULL
  }
  source <- new_source(function() {
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
  replace(source, "items", list(Filter(is.character, items))) # predict(file = ) continues only for the same items
}

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

# Visits the blocks of a source one after another in this session.
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
  refuse_if(!is.data.frame(block), "data", describe(block), hint = after, message = sprintf(
    "A row source must return data frames or matrices, and NULL at its end; it returned %s.", describe(block)))
  lacking <- setdiff(source$columns, names(block))
  refuse_if(length(lacking), "data", sprintf("has a block without %s", list_quoted(lacking)), hint = after)
  block
}

# Evaluates an expression that reads a source. Errors, except of a time limit, become a "pfdtc_error_source".
reading <- function(expr, before) {
  tryCatch(expr, error = function(e) {
    if (is_time_limit(e)) stop(e)
    abort_source(sprintf("The row source failed after %s rows: %s", show_count(before), conditionMessage(e)),
                 parent = e, rows = before)
  })
}

# Returns a result of predict() as a data frame, with a column for each number.
as_table <- function(p) {
  fit <- if (is.list(p)) p$fit else p
  names <- if (length(dim(fit)) == 3L) do.call(outer, c(unname(dimnames(fit)[-1L]), list(paste, sep = ".")))
  if (!is.null(names)) fit <- matrix(fit, nrow(fit), dimnames = list(NULL, names))
  table <- if (is.matrix(fit)) as.data.frame(fit) else data.frame(fit = unname(fit))
  if (is.list(p)) table$se.fit <- unname(p$se.fit)
  table
}

# Joins the values of blocks: vectors, matrices, arrays or lists of them. c() keeps the class of dates, unlike unlist().
bind_blocks <- function(blocks) {
  first <- blocks[[1L]]
  if (is.matrix(first)) return(do.call(rbind, blocks))
  if (length(dim(first)) == 3L) {
    all <- do.call(rbind, lapply(blocks, function(block) matrix(block, nrow(block))))
    return(array(all, c(nrow(all), dim(first)[-1L]), c(list(unlist(lapply(blocks, rownames))), dimnames(first)[-1L])))
  }
  if (!is.list(first)) return(do.call(c, blocks))
  lapply(stats::setNames(nm = names(first)), function(name) bind_blocks(lapply(blocks, `[[`, name)))
}

# By default blocks have this many rows, so that computing takes longer than reading. With ten columns they take 1.6 MB.
rows_of_a_block <- 20000

#' @export
rows_db <- function(con, query, block = rows_of_a_block) {
  needs_package("DBI", "rows_db()")
  check_given("con", "Give a connection by DBI::dbConnect().")
  check_given("query", "Give a query or the name of a table.")
  refuse_if(!is.character(query) || length(query) != 1L || is.na(query), "query", query, "one string")
  block <- check_count(block, "block")
  # `query` is the name of a table if such a table exists or if it has no spaces; otherwise it is SQL.
  exists <- tryCatch(DBI::dbExistsTable(con, query), error = function(e) FALSE)
  if (exists || !grepl("[[:space:]]", query))
    query <- paste("select * from", if (exists) DBI::dbQuoteIdentifier(con, query) else query)
  # Choose how to read: without a cursor (RPostgreSQL) or Arrow (duckdb), all rows would be in memory.
  arrow <- inherits(con, "duckdb_connection") && requireNamespace("nanoarrow", quietly = TRUE) &&
    "dbSendQueryArrow" %in% getNamespaceExports("DBI")
  reader <- if (inherits(con, "PostgreSQLConnection")) by_cursor(con) else if (arrow) by_arrow() else
    list(send = DBI::dbSendQuery, fetch = DBI::dbFetch, clear = DBI::dbClearResult)
  result <- NULL
  columns <- tryCatch({
    result <- reader$send(con, query)
    names(reader$fetch(result, 1))
  }, error = function(e) abort_input("query", sprintf("fails: %s", clip(query)), hint = conditionMessage(e)),
  finally = if (!is.null(result)) reader$clear(result))
  source_of_items(query, columns, "a database", function(query) {
    result <- reader$send(con, query)
    list(close = function() reader$clear(result), read = function() {
      rows <- reader$fetch(result, block)
      long <- vapply(rows, inherits, NA, "integer64")
      rows[long] <- lapply(rows[long], as.double)
      if (nrow(rows)) rows
    })
  })
}

# A reader of a query is list(send, fetch, clear): send(con, query) returns a result, fetch(result, n) its next n rows.

# Returns a reader by Arrow (DBI 1.2.0). It frees each chunk at once, because R does not count the memory of Arrow.
by_arrow <- function() {
  of_dbi <- function(name) getExportedValue("DBI", name)
  list(send = of_dbi("dbSendQueryArrow"), fetch = function(result, n) {
    chunk <- of_dbi("dbFetchArrowChunk")(result, chunk_size = n)
    rows <- as.data.frame(chunk)
    nanoarrow::nanoarrow_pointer_release(chunk)
    rows
  }, clear = DBI::dbClearResult)
}

by_cursor <- function(con) {
  clear <- function(result) DBI::dbExecute(con, "rollback")
  list(send = function(con, query) {
    DBI::dbExecute(con, "begin")
    tryCatch(DBI::dbExecute(con, paste("declare pfdtc_rows no scroll cursor for", query)), error = function(e) {
      clear()
      stop(e)
    })
  }, fetch = function(result, n) {
    DBI::dbGetQuery(con, sprintf("fetch forward %d from pfdtc_rows", as.integer(n)))
  }, clear = clear)
}

#' @export
rows_csv <- function(files, block = rows_of_a_block, col_classes = NULL, ..., skip = 0) {
  files <- check_files(files, "[.]csv([.]gz)?$", "CSV")
  block <- check_count(block, "block")
  more <- list(...)
  head_of <- function(file, n, kinds = NA) {
    tryCatch({
      utils::read.csv(file, nrows = n, skip = skip, colClasses = kinds, ..., stringsAsFactors = FALSE)
    }, error = function(e) {
      abort_input("files", sprintf("has \"%s\", which cannot be read", basename(file)), hint = conditionMessage(e))
    })
  }
  first <- head_of(files[1L], block)
  columns <- names(first)
  refuse_if(.row_names_info(first) > 0L, "files", sprintf("has \"%s\", whose header lacks a name", basename(files[1L])),
            hint = "Write the file with row.names = FALSE.")
  again <- replace(more, c("header", "col.names", "check.names"), list(FALSE, columns, FALSE))
  dates <- if (is.null(col_classes)) columns[vapply(first, has_iso_dates, NA)]
  if (is.null(col_classes)) {
    col_classes <- vapply(first, function(v) if (is.numeric(v)) "numeric" else class(v)[1L], "")
    col_classes[vapply(first, function(v) all(is.na(v)), NA)] <- NA # read.csv() guesses the class in each block
    # read.csv() reads numbers in quotes only if it guesses the class.
    tryCatch(head_of(files[1L], 100L, col_classes), pfdtc_error_input = function(e) {
      col_classes[col_classes %in% "numeric"] <<- NA
    })
  }
  source_of_items(files, columns, count_of(length(files), "CSV file"), function(path) {
    refuse_if(!identical(names(head_of(path, 1L)), columns), "files",
              sprintf("has \"%s\", whose columns are not %s", basename(path), list_quoted(columns)))
    con <- file(path, "r", encoding = list(...)$fileEncoding %||% getOption("encoding"))
    next_rows <- function(n, kinds) {
      do.call(utils::read.csv, c(list(con, nrows = n, colClasses = kinds, stringsAsFactors = FALSE), again))
    }
    readLines(con, skip)
    if (!isFALSE(more$header)) next_rows(1L, "character") # the header, after blank lines and comments
    list(close = function() close(con), read = function() {
      rows <- next_rows(block, col_classes)
      if (!nrow(rows)) return(NULL)
      for (name in dates) {
        refuse_if(!has_iso_dates(c("2000-01-01", rows[[name]])), "files",
                  sprintf("has \"%s\", with other text among the dates of `%s`", basename(path), name),
                  hint = "Name the kinds of columns by `col_classes`.")
        rows[[name]] <- as.Date(rows[[name]], "%Y-%m-%d")
      }
      rows
    })
  })
}

# Returns TRUE for text that consists of dates such as 2026-01-31 and missing values.
has_iso_dates <- function(v) {
  v <- if (is.character(v)) v[!is.na(v) & nzchar(v)]
  length(v) > 0L && all(grepl("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", v)) && !anyNA(as.Date(v, "%Y-%m-%d"))
}

#' @export
rows_parquet <- function(files, block = rows_of_a_block) {
  needs_package("nanoparquet", "rows_parquet()")
  files <- check_files(files, "[.]parquet$", "Parquet")
  block <- check_count(block, "block")
  columns <- tryCatch({
    schema <- nanoparquet::read_parquet_schema(files[1L])
    schema$name[is.na(schema$num_children)]
  }, error = function(e) {
    abort_input("files", sprintf("has \"%s\", which cannot be read as Parquet", files[1L]), hint = conditionMessage(e))
  })
  source_of_items(files, columns, count_of(length(files), "Parquet file"), function(file) {
    list(read = read_slices(as.data.frame(nanoparquet::read_parquet(file)), block))
  })
}

#' @export
rows_arrow <- function(open) {
  needs_package("nanoarrow", "rows_arrow()")
  refuse_if(!is.function(open), "open", open, "a function that opens a stream")
  stream_of <- function(open) nanoarrow::as_nanoarrow_array_stream(open())
  columns <- reading({
    stream <- stream_of(open)
    on.exit(stream$release())
    names(stream$get_schema()$children)
  }, 0)
  source_of_items(list(open), columns, "an Arrow stream", function(open) {
    stream <- stream_of(open)
    list(close = function() stream$release(), read = function() {
      array <- stream$get_next()
      if (!is.null(array)) as.data.frame(array)
    })
  })
}

check_files <- function(files, ending, kind) {
  check_given("files", sprintf("Give the names of %s files, or of a folder.", kind))
  refuse_if(!is.character(files) || !length(files) || anyNA(files), "files", files, "names of files")
  if (length(files) == 1L && dir.exists(files)) {
    found <- sort(list.files(files, ending, full.names = TRUE))
    refuse_if(!length(found), "files", files, message = sprintf("The folder \"%s\" has no %s file.", files, kind))
    return(found)
  }
  gone <- !file.exists(files)
  refuse_if(any(gone), "files", sprintf("has \"%s\", which does not exist", files[gone][1L]))
  files
}
