#' Fit data larger than memory, or stored elsewhere
#'
#' A row source returns the rows of a data set block by block, as often as needed. [pfdtc()] takes a row source as
#' `data` of a formula, and keeps one block and a sample in memory. `rows_db()` reads a table or the result of a query
#' (package `DBI`). `rows_csv()` reads CSV files, `rows_parquet()` Parquet files (package `nanoparquet`), and
#' `rows_arrow()` Arrow array streams (package `nanoarrow`). `rows_blocks()` calls a function for each block.
#'
#' `rows_parts()` splits the rows into parts, and a worker process reads each part. Workers are the processes of the
#' current plan of package \pkg{future}, or the daemons of package \pkg{mirai}, also on other machines. A pass over the
#' rows is one task for each part and returns sums. `pfdtc(formula, data, workers = TRUE)` sends a data frame to the
#' workers.
#' @usage
#' rows_db(con, query, block = rows_of_a_block)
#' rows_csv(files, block = rows_of_a_block, col_classes = NULL, ...)
#' rows_parquet(files, block = rows_of_a_block)
#' rows_arrow(open)
#' rows_blocks(rewind, next_block, columns = NULL)
#' rows_parts(parts)
#' @param con a connection made by `DBI::dbConnect()`, which stays open and is not used while rows are read.
#' @param query name of a table, or a query that always gives the same rows.
#' @param block number of rows in a block. Default: 20,000.
#' @param files names of files, or of one folder with `.csv`, `.csv.gz` or `.parquet` files.
#' @param col_classes,... `colClasses` and other arguments of [utils::read.csv()]. Default: classes as in the first
#'   block.
#' @param open function without arguments whose value `nanoarrow::as_nanoarrow_array_stream()` accepts.
#' @param rewind,next_block functions without arguments. `next_block()` returns the next block (a data frame or a matrix
#'   with any number of rows), or `NULL` after the last block. After `rewind()` it begins again with the first block.
#' @param columns names of the columns of every block. Default: the names in the first block.
#' @param parts a list of data frames, or of functions without arguments that return a data frame, a matrix or a row
#'   source on the worker. The environment of a function is sent with it, but not the global environment.
#' @return A row source, of class `pfdtc_source`. It must return the same rows in every pass, in any order.
#' @details Package `duckdb` holds the whole result of a query in memory unless `nanoarrow` and `DBI` 1.2.0 are
#'   installed. Parquet data larger than memory must be in several files. Each part is sent to a worker once, and kept
#'   there until another source is used. If a worker fails, another worker repeats its part. A fit by workers equals a
#'   fit to all rows, up to rounding.
#' @section Errors: Errors about arguments have class `pfdtc_error_input`. Failures while rows are read have class
#'   `pfdtc_error_source`, with the original condition (`parent`) and the number of rows read before (`rows`).
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

# Rows are read in blocks of this many, so that computing takes longer than reading. Ten columns take 1.6 MB.
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
  if (exists || !grepl("[[:space:]]", query)) {
    query <- paste("select * from", if (exists) DBI::dbQuoteIdentifier(con, query) else query)
  }
  # Choose how to read. RPostgreSQL and duckdb would hold all rows in memory without a cursor or Arrow.
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
rows_csv <- function(files, block = rows_of_a_block, col_classes = NULL, ...) {
  check_given("files", "Give the names of CSV files, or of a folder.")
  files <- check_files(files, "[.]csv([.]gz)?$", "CSV")
  block <- check_count(block, "block")
  head_of <- function(file, n) {
    tryCatch(utils::read.csv(file, nrows = n, ..., stringsAsFactors = FALSE), error = function(e) {
      abort_input("files", sprintf("has \"%s\", which cannot be read", basename(file)), hint = conditionMessage(e))
    })
  }
  first <- head_of(files[1L], block)
  columns <- names(first)
  dates <- if (is.null(col_classes)) columns[vapply(first, has_iso_dates, NA)]
  if (is.null(col_classes)) {
    col_classes <- vapply(first, function(v) if (is.numeric(v)) "numeric" else class(v)[1L], "")
    col_classes[vapply(first, function(v) all(is.na(v)), NA)] <- NA # guess the class in each block
  }
  source_of_items(files, columns, count_of(length(files), "CSV file"), function(path) {
    refuse_if(!identical(names(head_of(path, 1L)), columns), "files",
              sprintf("has \"%s\", whose columns are not %s", basename(path), list_quoted(columns)))
    con <- file(path, "r")
    readLines(con, 1L)
    list(close = function() close(con), read = function() {
      line <- readLines(con, 1L)
      if (!length(line)) return(NULL)
      pushBack(line, con)
      rows <- utils::read.csv(con, header = FALSE, nrows = block, col.names = columns, check.names = FALSE,
                              colClasses = col_classes, ..., stringsAsFactors = FALSE)
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
  check_given("files", "Give the names of Parquet files, or of a folder.")
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

#' @export
rows_parts <- function(parts) {
  check_given("parts", "Give a list of data frames, or of functions that return them.")
  good <- is.list(parts) && !is.data.frame(parts) && length(parts) &&
    all(vapply(parts, function(p) is.data.frame(p) || is.function(p), NA))
  refuse_if(!good, "parts", describe(parts), "a list of data frames, or of functions that return them")
  crew <- find_crew()
  id <- next_source()
  passes <- 0L
  # Send a task for each part, which has its own seed. Values are merged in the order of the parts.
  pass <- function(source, visit, merge, so_far) {
    passes <<- passes + 1L
    seeds <- sample.int(.Machine$integer.max, length(parts))
    add_up <- function(results) {
      values <- Filter(Negate(is.null), lapply(results, `[[`, "value"))
      so_far$value <- if (length(values)) Reduce(merge, values)
      so_far$rows <- sum(vapply(results, `[[`, 0, "rows"))
    }
    # Send data frames with the first pass. Later passes send them only to workers that have lost them.
    crew_run(find_crew(), length(parts), passes == 1L, function(i, whole) {
      list(visit_part, list(id, i, if (whole || is.function(parts[[i]])) parts[[i]], visit, merge, seeds[i]))
    }, add_up)
    so_far$value
  }
  columns <- crew_run(crew, 1L, TRUE, function(i, whole) list(visit_part, list(id, i, parts[[i]])))[[1L]]$value
  not_in_turn <- function() {
    abort_input("data", "has its rows on workers", hint = "Give a source that can be read here, block by block.")
  }
  new_source(not_in_turn, not_in_turn, columns, sprintf("%d parts, on workers of %s", length(parts), crew$name),
             pass = pass)
}

# Returns the source of a data frame that is divided into as many parts as there are workers.
frame_on_workers <- function(data) {
  refuse_if(!is.data.frame(data), "data", describe(data), "a data frame, where `workers` is TRUE")
  n <- max(1L, min(find_crew()$size(), nrow(data)))
  cut <- ceiling(seq_len(nrow(data)) * (n / max(1L, nrow(data))))
  rows_parts(unname(lapply(split(seq_len(nrow(data)), cut), function(i) data[i, , drop = FALSE])))
}
