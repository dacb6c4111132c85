#' Rows from databases and files
#'
#' Row sources for [pfdtc()]: rows are read block by block, in every pass anew, and never held together.
#'
#' * `rows_db()`: the result of a query, through `DBI` (SQLite, PostgreSQL, DuckDB, ...). With package `RPostgreSQL`,
#'   whose results are held as a whole, rows are fetched from a cursor, in a transaction; with package `duckdb` as Arrow
#'   batches, where `nanoarrow` and `DBI` 1.2.0 are installed (else it holds the whole result).
#' * `rows_csv()`: one or more CSV files of the same columns, by base R, compressed or not.
#' * `rows_parquet()`: one or more Parquet files, by package `nanoparquet`, a file at a time: data larger than memory
#'   lie in several files.
#' * `rows_arrow()`: whatever package `nanoarrow` takes for a stream of arrays: record batches of package `arrow`,
#'   results of ADBC drivers.
#'
#' @param con a connection made by `DBI::dbConnect()`. It stays open, and can do nothing else while it is read.
#' @param query a query that gives the same rows every time.
#' @param block rows in a block.
#' @param files file names, or one folder, whose files with the ending `.csv` (`.csv.gz`) or `.parquet` are taken in
#'   the order of their names.
#' @param col_classes `colClasses` of [utils::read.csv()]; `NULL`: as the first block suggests, whole numbers being
#'   numeric.
#' @param ... of [utils::read.csv()], such as `sep`, `dec` and `na.strings`.
#' @param open a function without arguments that opens the stream: what it returns goes through
#'   `nanoarrow::as_nanoarrow_array_stream()`.
#' @return A source, of class `pfdtc_source`, see [rows_blocks()].
#' @section Errors: class `pfdtc_error_input` for a query that cannot be run, files that are not there or have other
#'   columns than the first, or a package that is not installed; class `pfdtc_error_source` for what goes wrong while
#'   rows are read.
#' @examples
#' folder <- tempfile()
#' dir.create(folder)
#' write.csv(quakes[1:500, ], file.path(folder, "1.csv"), row.names = FALSE)
#' write.csv(quakes[501:1000, ], file.path(folder, "2.csv"), row.names = FALSE)
#' fit <- pfdtc(mag ~ stations + depth, rows_csv(folder), kernel = kernel_se(c(60, 300), 0.1),
#'              noise = 0.04, hyper = "fixed", m = 20)
#' fit
#' @name row_sources
NULL

# Enough that a block's sums outweigh what reading it costs, and a few MB of ten columns.
rows_of_a_block <- 20000

#' @rdname row_sources
#' @export
rows_db <- function(con, query, block = rows_of_a_block) {
  needs_package("DBI", "rows_db()")
  if (!is.character(query) || length(query) != 1L || is.na(query)) abort_input("query", query, "one string")
  block <- check_count(block, "block")
  read <- db_reader(con, query)
  next_block <- function() {
    rows <- read$fetch(block)
    if (nrow(rows)) plain_columns(rows)
  }
  columns <- tryCatch({
    read$open()
    names(read$fetch(1))
  }, error = function(e) abort_input("query", clip(query), "one that `con` can run", hint = conditionMessage(e)),
  finally = read$finish())
  new_source(read$open, next_block, columns, "a database", read$finish)
}

# list(open(), fetch(n), finish()): how a result is read so that its rows are not all in this process. Most drivers'
# results are; RPostgreSQL's and duckdb's are not, unless they are asked for otherwise.
db_reader <- function(con, query) {
  if (inherits(con, "PostgreSQLConnection")) return(read_by_cursor(con, query))
  streams <- inherits(con, "duckdb_connection") && requireNamespace("nanoarrow", quietly = TRUE) &&
    "dbSendQueryArrow" %in% getNamespaceExports("DBI")
  if (streams) read_by_arrow(con, query) else read_by_result(con, query)
}

read_by_result <- function(con, query, send = DBI::dbSendQuery,
                           fetch = function(result, n) DBI::dbFetch(result, n = n)) {
  result <- NULL
  finish <- function() {
    if (!is.null(result)) DBI::dbClearResult(result)
    result <<- NULL
  }
  list(open = function() {
    finish()
    result <<- send(con, query)
  }, fetch = function(n) fetch(result, n), finish = finish)
}

# What is not released at once waits for a garbage collection that does not know how large it is.
read_by_arrow <- function(con, query) {
  of_dbi <- function(name) getExportedValue("DBI", name) # since DBI 1.2.0
  read_by_result(con, query, of_dbi("dbSendQueryArrow"), function(result, n) {
    chunk <- of_dbi("dbFetchArrowChunk")(result, chunk_size = n)
    rows <- as.data.frame(chunk)
    nanoarrow::nanoarrow_pointer_release(chunk)
    rows
  })
}

read_by_cursor <- function(con, query) {
  begun <- FALSE
  finish <- function() {
    if (begun) DBI::dbExecute(con, "rollback")
    begun <<- FALSE
  }
  list(open = function() {
    finish()
    DBI::dbExecute(con, "begin")
    begun <<- TRUE
    DBI::dbExecute(con, paste("declare pfdtc_rows no scroll cursor for", query))
  }, fetch = function(n) {
    DBI::dbGetQuery(con, sprintf("fetch forward %d from pfdtc_rows", as.integer(n)))
  }, finish = finish)
}

# Whole numbers of 64 bits are doubles to R's arithmetic.
plain_columns <- function(rows) {
  long <- vapply(rows, inherits, NA, "integer64")
  rows[long] <- lapply(rows[long], as.double)
  rows
}

#' @rdname row_sources
#' @export
rows_csv <- function(files, block = rows_of_a_block, col_classes = NULL, ...) {
  files <- check_files(files, "[.]csv([.]gz)?$")
  block <- check_count(block, "block")
  head_of <- function(file, n) {
    tryCatch(utils::read.csv(file, nrows = n, ..., stringsAsFactors = FALSE), error = function(e) {
      abort_input("files", sprintf("\"%s\", which cannot be read", basename(file)), "CSV files",
                  hint = conditionMessage(e))
    })
  }
  first <- head_of(files[1L], block)
  columns <- names(first)
  if (is.null(col_classes)) {
    col_classes <- vapply(first, function(v) if (is.numeric(v)) "numeric" else class(v)[1L], "")
    col_classes[vapply(first, function(v) all(is.na(v)), NA)] <- NA # each block for itself
  }
  rows_of_files(files, "CSV", columns, function(path) {
    if (!identical(names(head_of(path, 1L)), columns)) {
      abort_input("files", sprintf("\"%s\" with other columns", basename(path)),
                  sprintf("files with columns %s", list_quoted(columns)))
    }
    con <- file(path, "r")
    readLines(con, 1L)
    list(close = function() close(con), read = function() {
      line <- readLines(con, 1L)
      if (!length(line)) return(NULL)
      pushBack(line, con)
      utils::read.csv(con, header = FALSE, nrows = block, col.names = columns, check.names = FALSE,
                      colClasses = col_classes, ..., stringsAsFactors = FALSE)
    })
  })
}

# One file after the other: open(file) -> list(read() -> the next block or NULL, close()).
rows_of_files <- function(files, kind, columns, open) {
  now <- NULL
  at <- 0L
  finish <- function() {
    if (!is.null(now)) now$close()
    now <<- NULL
  }
  next_block <- function() {
    repeat {
      rows <- if (!is.null(now)) now$read()
      if (!is.null(rows)) return(rows)
      finish()
      at <<- at + 1L
      if (at > length(files)) return(NULL)
      now <<- open(files[at])
    }
  }
  new_source(function() {
    finish()
    at <<- 0L
  }, next_block, columns, sprintf("%d %s file%s", length(files), kind, plural_s(length(files))), finish)
}

#' @rdname row_sources
#' @export
rows_parquet <- function(files, block = rows_of_a_block) {
  needs_package("nanoparquet", "rows_parquet()")
  files <- check_files(files, "[.]parquet$")
  block <- check_count(block, "block")
  read <- function(file) as.data.frame(nanoparquet::read_parquet(file))
  columns <- tryCatch({
    schema <- nanoparquet::read_parquet_schema(files[1L])
    schema$name[is.na(schema$num_children)]
  }, error = function(e) {
    abort_input("files", sprintf("\"%s\"", files[1L]), "Parquet files", hint = conditionMessage(e))
  })
  rows_of_files(files, "Parquet", columns, function(file) {
    rows <- read(file)
    taken <- 0
    list(close = function() NULL, read = function() {
      now <- taken + seq_len(min(block, nrow(rows) - taken))
      taken <<- taken + length(now)
      if (length(now)) rows[now, , drop = FALSE]
    })
  })
}

#' @rdname row_sources
#' @export
rows_arrow <- function(open) {
  needs_package("nanoarrow", "rows_arrow()")
  if (!is.function(open)) abort_input("open", open, "a function that opens a stream")
  stream <- NULL
  rewind <- function() stream <<- nanoarrow::as_nanoarrow_array_stream(open())
  next_block <- function() {
    array <- stream$get_next()
    if (!is.null(array)) as.data.frame(array)
  }
  finish <- function() {
    if (!is.null(stream)) stream$release()
    stream <<- NULL
  }
  source <- new_source(rewind, next_block, NULL, "an Arrow stream", finish)
  source$columns <- reading({
    rewind()
    on.exit(finish())
    names(stream$get_schema()$children)
  }, 0)
  source
}

needs_package <- function(package, what, hint = NULL) {
  if (!requireNamespace(package, quietly = TRUE)) {
    abort_input("package", sprintf("without %s", package), "installed", hint = hint,
                message = sprintf("%s needs the package `%s`, which is not installed.", what, package))
  }
}

check_files <- function(files, ending) {
  if (!is.character(files) || !length(files) || anyNA(files)) abort_input("files", files, "names of files")
  if (length(files) == 1L && dir.exists(files)) {
    found <- sort(list.files(files, ending, full.names = TRUE))
    if (!length(found)) abort_input("files", sprintf("\"%s\", a folder without any", files), "files or their folder")
    return(found)
  }
  gone <- !file.exists(files)
  if (any(gone)) abort_input("files", sprintf("\"%s\", which is not there", files[gone][1L]), "files that can be read")
  files
}
