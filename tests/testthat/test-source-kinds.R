# Returns the rows of all blocks of a source.
all_rows_of <- function(source) source_pass(source, function(block) block, rbind)

a_fit <- function(data) {
  pfdtc(y ~ a + f, data, m = 6, kernel = kernel_se(c(0.5, rep(1, length(unique(na.omit(mixed_rows()$f))))), 1),
        noise = 0.04, hyper = "fixed", inducing = cbind(seq(0, 1, 0.2), diag(6)[, 1:4]), control = list(maxit = 0))
}

expect_same_rows <- function(source, d) {
  for (pass in 1:2) {
    got <- all_rows_of(source)
    expect_equal(names(got), names(d))
    for (v in names(d)) expect_equal(as.vector(got[[v]]), as.vector(d[[v]]), info = v, tolerance = 1e-14)
  }
  expect_equal(a_fit(source)$factors[c("G", "beta", "rss")], a_fit(d)$factors[c("G", "beta", "rss")], tolerance = 1e-9)
}

test_that("CSV files are read in blocks, anew for each pass", {
  d <- mixed_rows()[c("y", "a", "f", "w")]
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  d$f[3] <- "two\nlines, and a comma"
  parts <- list(d[1:150, ], d[0, ], d[151:300, ], d[301:400, ])
  for (i in seq_along(parts)) {
    con <- if (i == 3) gzfile(file.path(folder, "3.csv.gz"), "w") else file(file.path(folder, paste0(i, ".csv")), "w")
    write.csv(parts[[i]], con, row.names = FALSE)
    close(con)
  }
  got <- all_rows_of(rows_csv(folder, block = 40))
  expect_equal(got$f[3], d$f[3])
  d$f[3] <- "a"
  write.csv(d[1:150, ], file.path(folder, "1.csv"), row.names = FALSE)
  expect_same_rows(rows_csv(folder, block = 40), d)
  expect_same_rows(rows_csv(file.path(folder, c("1.csv", "2.csv", "3.csv.gz", "4.csv"))), d)
  write.csv2(d, file.path(folder, "semi.txt"), row.names = FALSE)
  expect_same_rows(rows_csv(file.path(folder, "semi.txt"), sep = ";", dec = ","), d)
  writeLines(c("two lines of", "comments", readLines(file.path(folder, "semi.txt"))), file.path(folder, "skip.txt"))
  expect_same_rows(rows_csv(file.path(folder, "skip.txt"), 100, NULL, sep = ";", dec = ",", skip = 2), d)
  unlink(file.path(folder, "skip.txt"))
  write.csv(d[c("y", "a")], file.path(folder, "5.csv"), row.names = FALSE)
  expect_error(all_rows_of(rows_csv(folder)), class = "pfdtc_error_source", "columns")
  d$a[390] <- NA
  write.csv(transform(d, a = ifelse(seq_len(400) > 395, "high", a)), file.path(folder, "1.csv"), row.names = FALSE,
            quote = FALSE)
  expect_error(all_rows_of(rows_csv(file.path(folder, "1.csv"), block = 100)), class = "pfdtc_error_source", "300")
  day <- as.Date("2026-01-01") + 0:399
  file <- file.path(folder, "dates.csv")
  day[1] <- NA
  write.csv(data.frame(day, text = "2026-1"), file, row.names = FALSE, na = "")
  got <- all_rows_of(rows_csv(file, block = 100))
  expect_equal(got$day, day)
  expect_true(is.character(got$text))
  write.csv(data.frame(day = replace(format(day), 390, "later"), y = 1), file, row.names = FALSE)
  expect_error(all_rows_of(rows_csv(file, block = 100)), "day")
  expect_error(rows_csv(tempfile()), class = "pfdtc_error_input", "file")
  expect_error(rows_csv(tempdir(check = TRUE)[0]), class = "pfdtc_error_input", "files")
})

test_that("CSV files have comments, blank lines and other encodings, also before and in the header", {
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  d <- data.frame(x = 1:30 / 10, y = sin(1:30), g = "\u00e9")
  lines <- c("x,y,g", paste(d$x, d$y, d$g, sep = ","))
  writeLines(c("", "# one", lines[1:9], "# two", lines[-(1:9)], "", "# three"), file)
  expect_equal(all_rows_of(rows_csv(file, comment.char = "#", block = 10)), d, ignore_attr = TRUE)
  expect_equal(all_rows_of(rows_csv(file, comment.char = "#", block = 7, skip = 2)), d, ignore_attr = TRUE)
  for (encoding in c("latin1", "UTF-16LE")) {
    con <- file(file, "w", encoding = encoding)
    writeLines(lines, con)
    close(con)
    expect_equal(all_rows_of(rows_csv(file, fileEncoding = encoding, block = 7)), d, ignore_attr = TRUE)
  }
})

test_that("a query is read in blocks, a failure is reported, and the connection can be used afterwards", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  d <- mixed_rows()[c("y", "a", "f", "w")]
  DBI::dbWriteTable(con, "rows", d)
  expect_no_warning(expect_same_rows(rows_db(con, "select * from rows", block = 33), d))
  expect_same_rows(rows_db(con, "select y, a, f, w from rows"), d)
  fit <- a_fit(rows_db(con, "select y, a, f, w + 10000000000 as big from rows"))
  expect_output(print(fit), "read 2 times")
  big <- pfdtc(y ~ big, rows_db(con, "select y, w + 10000000000 as big from rows"), kernel = kernel_se(1, 1), noise = 1,
               hyper = "fixed", m = 2, control = list(maxit = 0))
  expect_true(all(big$inducing %in% (1e10 + 0:2)))
  expect_error(rows_db(con, "select * from nothing"), class = "pfdtc_error_input", "nothing")
  source <- rows_db(con, "select * from rows")
  DBI::dbExecute(con, "drop table rows")
  expect_error(a_fit(source), class = "pfdtc_error_source", "\\b0\\b")
  expect_equal(nrow(DBI::dbGetQuery(con, "select 1")), 1)
})

# Starts a PostgreSQL server in a temporary folder, with a socket there: list(connect(), stop()), or NULL if impossible.
postgres_server <- function() {
  folder <- tempfile("pg", tmpdir = dirname(tempdir())) # a folder that the server's user may enter
  dir.create(folder)
  Sys.chmod(folder, "700")
  as_root <- identical(Sys.info()[["effective_user"]], "root") # the server refuses to run as root
  if (as_root) system2("chown", c("postgres", folder), stdout = FALSE, stderr = FALSE)
  run <- function(...) {
    what <- c(if (as_root) c("runuser", "-u", "postgres", "--"), ...)
    # The server must not load the sanitizer that R was started with.
    suppressWarnings(system2(what[1], what[-1], stdout = FALSE, stderr = FALSE, env = "LD_PRELOAD=", timeout = 60)) == 0
  }
  data <- file.path(folder, "data")
  stop <- function() {
    run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    unlink(folder, recursive = TRUE)
  }
  started <- run("initdb", "-D", data, "-A", "trust", "-U", "tester", "--no-sync", "--no-locale", "-E", "UTF8") &&
    run("pg_ctl", "-D", data, "-w", "-l", file.path(folder, "log"), "-o", shQuote(sprintf("-k %s -h '' -F", folder)),
        "start")
  if (!started) {
    stop()
    return(NULL)
  }
  list(stop = stop, connect = function() {
    DBI::dbConnect(from("RPostgreSQL", "PostgreSQL")(), host = folder, dbname = "postgres", user = "tester")
  })
}

test_that("rows of PostgreSQL come from a cursor, and a failed query leaves the connection usable", {
  skip_on_cran()
  skip_if_not_installed("RPostgreSQL")
  skip_if(!all(nzchar(Sys.which(c("initdb", "pg_ctl")))), "PostgreSQL is not installed")
  server <- postgres_server()
  skip_if(is.null(server), "PostgreSQL has not started")
  on.exit(server$stop())
  con <- server$connect()
  on.exit(DBI::dbDisconnect(con), add = TRUE, after = FALSE)
  d <- mixed_rows()[c("y", "a", "f", "w")]
  DBI::dbWriteTable(con, "rows", d, row.names = FALSE)
  expect_same_rows(rows_db(con, "select * from rows", block = 33), d)
  expect_equal(DBI::dbGetQuery(con, "select count(*) as n from rows")$n, 400) # a pass changes nothing
  source <- rows_db(con, "select y, a, f, w + 10000000000 as big from rows", block = 150)
  expect_equal(all_rows_of(source)$big, d$w + 1e10)
  # Only one block is read at a time.
  source$rewind()
  expect_equal(nrow(source$next_block()), 150)
  expect_equal(DBI::dbGetQuery(con, "select count(*) as n from pg_cursors where name = 'pfdtc_rows'")$n, 1)
  source$finish()
  expect_error(rows_db(con, "select * from nothing"), class = "pfdtc_error_input", "nothing")
  DBI::dbExecute(con, "drop table rows")
  expect_error(a_fit(source), class = "pfdtc_error_source", "\\b0\\b")
  expect_equal(nrow(DBI::dbGetQuery(con, "select 1")), 1)
})

test_that("rows of DuckDB are streamed, and equal to those in memory", {
  skip_if_not_installed("duckdb")
  skip_if_not_installed("nanoarrow")
  skip_if_not_installed("DBI", "1.2.0")
  file <- tempfile(fileext = ".duckdb")
  con <- DBI::dbConnect(from("duckdb", "duckdb")(), file)
  on.exit({
    DBI::dbDisconnect(con, shutdown = TRUE)
    unlink(file)
  })
  d <- mixed_rows()[c("y", "a", "f", "w")]
  DBI::dbWriteTable(con, "rows", d)
  expect_same_rows(rows_db(con, "select * from rows", block = 33), d)
  source <- rows_db(con, "select y, a, f, w::bigint + 10000000000 as big from rows", block = 150)
  expect_equal(all_rows_of(source)$big, d$w + 1e10)
  expect_error(rows_db(con, "select * from nothing"), class = "pfdtc_error_input", "nothing")
  parquet <- tempfile(fileext = ".parquet")
  on.exit(unlink(parquet), add = TRUE)
  DBI::dbExecute(con, sprintf("copy rows to '%s' (format parquet)", parquet))
  expect_same_rows(rows_db(con, sprintf("select * from '%s'", parquet), block = 100), d) # DuckDB's own reader
  DBI::dbExecute(con, "drop table rows")
  expect_error(a_fit(source), class = "pfdtc_error_source", "\\b0\\b")
  expect_equal(nrow(DBI::dbGetQuery(con, "select 1")), 1)
})

test_that("Parquet files and Arrow streams are sources", {
  d <- mixed_rows()[c("y", "a", "f", "w")]
  if (requireNamespace("nanoparquet", quietly = TRUE)) {
    files <- tempfile(fileext = c("1.parquet", "2.parquet"))
    on.exit(unlink(files))
    nanoparquet::write_parquet(d[1:150, ], files[1])
    nanoparquet::write_parquet(d[151:400, ], files[2])
    expect_same_rows(rows_parquet(files, block = 70), d)
    expect_error(rows_parquet(tempfile()), class = "pfdtc_error_input")
  }
  skip_if_not_installed("nanoarrow")
  open <- function() {
    nanoarrow::basic_array_stream(lapply(list(1:100, integer(), 101:400), function(i) {
      nanoarrow::as_nanoarrow_array(d[i, ])
    }))
  }
  expect_same_rows(rows_arrow(open), d)
  expect_error(rows_arrow(1), class = "pfdtc_error_input")
})

test_that("the name of a table gives all of its rows", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "quakes", datasets::quakes)
  DBI::dbWriteTable(con, "two words", datasets::quakes[1:7, ])
  expect_identical(nrow(all_rows_of(rows_db(con, "quakes"))), 1000L)
  expect_identical(nrow(all_rows_of(rows_db(con, "two words"))), 7L)
  expect_input_error(rows_db(con, "nowhere"), "nowhere")
})

test_that("CSV files may have quoted numbers, no header, or their names as given", {
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  d <- data.frame(`a b` = c(1.5, 2, 3), y = c(4, NA, 6), check.names = FALSE)
  writeLines(c("\"a b\",\"y\"", "\"1.5\",\"4\"", "\"2\",NA", "\"3\",\"6\""), file)
  expect_equal(all_rows_of(rows_csv(file, block = 2)), stats::setNames(d, c("a.b", "y")), ignore_attr = "row.names")
  expect_equal(all_rows_of(rows_csv(file, block = 2, check.names = FALSE)), d, ignore_attr = "row.names")
  writeLines(c("# from a logger", "1.5,4", "2,NA", "3,6"), file)
  got <- rows_csv(file, block = 2, header = FALSE, skip = 1)
  expect_equal(all_rows_of(got), stats::setNames(d, c("V1", "V2")), ignore_attr = "row.names")
  expect_equal(all_rows_of(rows_csv(file, block = 2, header = FALSE, skip = 1, col.names = c("u", "v"))),
               stats::setNames(d, c("u", "v")), ignore_attr = "row.names")
  utils::write.table(d, file, sep = ",")
  expect_error(rows_csv(file), class = "pfdtc_error_input", "header lacks a name")
  expect_error(rows_csv(file, nrows = 2), class = "pfdtc_error_input", "nrows")
})

test_that("a time difference as the response has the same unit in all blocks", {
  start <- as.POSIXct("2026-03-01", tz = "UTC")
  d <- data.frame(x = seq(0, 1, length.out = 60), from = start)
  d$to <- d$from + 3600 * (2 + d$x + 24 * (d$x > 0.5)) # R gives hours in the first block and days in the last
  of <- function(formula, data) {
    pfdtc(formula, data, m = 5, kernel = kernel_se(1, 100), noise = 1, hyper = "fixed", control = list(maxit = 0))
  }
  expect_error(of(I(to - from) ~ x, in_blocks(d)), "in hours in one block and in days in another",
               class = "pfdtc_error_input")
  fit <- of(difftime(to, from, units = "hours") ~ x, in_blocks(d))
  expect_equal(fit$center, mean(2 + d$x + 24 * (d$x > 0.5)))
  expect_identical(fit$frame$response_unit, "hours")
})

test_that("errors of sources say what a source must return, and that families need a data frame", {
  nothing <- function() NULL
  expect_error(rows_blocks(nothing, function() 3), "data frames or matrices, and NULL at its end; it returned 3",
               class = "pfdtc_error_input")
  expect_error(rows_parts(list(cars, 3)), "an element is 3", class = "pfdtc_error_input")
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  utils::write.csv(iris, file, row.names = FALSE)
  told <- expect_error(pfdtc(Species ~ ., rows_csv(file)), "Give the rows as a data frame", class = "pfdtc_error_input")
  expect_no_match(conditionMessage(told), "multinomial")
  expect_error(pfdtc(Sepal.Length ~ Species, rows_csv(file), family = stats::Gamma("log")),
               "Give the rows as a data frame", class = "pfdtc_error_input")
})
