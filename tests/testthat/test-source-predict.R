test_that("predictions replace regular files only", {
  skip_on_os("windows")
  d <- mixed_rows()
  fit <- pfdtc(y ~ a, d, m = 5, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  at <- function(name) file.path(folder, name)
  writeLines("old", at("regular"))
  file.symlink(at("regular"), at("link"))
  file.symlink(at("nowhere"), at("dangling"))
  dir.create(at("folder"))
  system2("mkfifo", shQuote(at("pipe")))
  for (bad in c("link", "dangling", "folder", "pipe")) {
    expect_input_error(predict(fit, in_blocks(d), file = at(bad)), "`file`")
  }
  expect_input_error(predict(fit, in_blocks(d), file = "/dev/null"), "`file`")
  expect_setequal(list.files(folder), c("regular", "link", "dangling", "folder", "pipe"))
  expect_identical(readLines(at("regular")), "old")
  predict(fit, in_blocks(d), file = at("regular"))
  expect_equal(utils::read.csv(at("regular"))$fit, unname(predict(fit, d)), tolerance = 1e-12)
})

test_that("intervals of classes and of survival at a source are those at its rows, in memory and in a file", {
  d <- transform(small_data(50), k = cut(rank(y), c(0, 15, 35, 50), c("low", "middle", "high")), t = exp(y / 9))
  fits <- list(
    pfdtc(factor(k, ordered = FALSE) ~ a, d, family = multinomial(), kernel = kernel_se(1, 1), hyper = "fixed"),
    pfdtc(ordered(k) ~ a, d, family = ordinal(), kernel = kernel_se(1, 1), hyper = "fixed"),
    pfdtc(t ~ a, d, family = weibull(1), kernel = kernel_se(1, 1), hyper = "fixed"))
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  for (fit in fits) {
    times <- if (has_ends(response_of(fit))) c(0.5, 2)
    ask <- list(fit, type = if (is.null(times)) "response" else "survival", interval = "credible", times = times)
    want <- do.call(predict, c(ask, list(newdata = d)))
    got <- do.call(predict, c(ask, list(newdata = in_blocks(d))))
    expect_identical(dimnames(got)[-1], dimnames(want)[-1])
    expect_equal(unname(got), unname(want))
    do.call(predict, c(ask, list(newdata = in_blocks(d), file = file)))
    table <- utils::read.csv(file, check.names = FALSE)
    name <- paste(dimnames(want)[[2]][2], dimnames(want)[[3]][1], sep = ".")
    expect_equal(table[[name]], unname(want[, 2, 1]))
  }
})

test_that("a full disk is an error about the file, also for the last rows", {
  skip_on_os("windows")
  # A process whose files are limited to 4 blocks of 512 bytes, and which ignores the signal, behaves as with a full
  # disk.
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "library(pfdtc)",
    "fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se(5, 500), noise = 200, hyper = 'fixed')",
    "told <- function(sizes) {",
    "  at <- 0",
    "  source <- rows_blocks(function() at <<- 0, function() if (at < length(sizes)) {",
    "    at <<- at + 1",
    "    cars[rep(1:50, length.out = sizes[at]), ]",
    "  }, names(cars))",
    "  tryCatch({",
    "    predict(fit, source, file = tempfile())",
    "    'written'",
    "  }, error = function(e) paste(class(e)[1L], grepl('`file`', conditionMessage(e))))",
    "}",
    "cat(told(sizes = c(20, 20)), '\n')",
    "cat(told(sizes = rep(50, 9)), '\n')",
    "cat(told(sizes = 400), '\n')",
    "cat(told(sizes = 160), '\n')"), script) # ends within a block, without an error
  command <- sprintf("trap '' XFSZ; ulimit -f 4; %s --vanilla %s 2>/dev/null",
                     shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script))
  said <- trimws(system2("sh", c("-c", shQuote(command)), stdout = TRUE))
  expect_identical(said, c("written", rep("pfdtc_error_input TRUE", 3)))
})

test_that("an interrupted file is continued only for the same files, and workers begin it anew", {
  d <- mixed_rows()[1:90, ]
  d <- d[complete.cases(d["a"]), ]
  fit <- pfdtc(y ~ a, mixed_rows(), m = 5, kernel = kernel_se(1, 1), noise = 1, hyper = "fixed")
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  at <- function(name) file.path(folder, name)
  utils::write.csv(d, at("one.csv"), row.names = FALSE)
  utils::write.csv(transform(d, a = a + 1), at("two.csv"), row.names = FALSE)
  failing <- function(file) { # fails in its second block
    source <- rows_csv(file, block = 40)
    n <- 0
    rewind <- source$rewind
    next_block <- source$next_block
    source$rewind <- function() {
      n <<- 0
      rewind()
    }
    source$next_block <- function() if ((n <<- n + 1) < 2) next_block() else stop("the disk is gone")
    source
  }
  expect_error(suppressMessages(predict(fit, failing(at("one.csv")), file = at("out"))), class = "pfdtc_error_source")
  predict(fit, rows_csv(at("two.csv")), file = at("out"))
  expect_equal(utils::read.csv(at("out"))$fit, unname(predict(fit, transform(d, a = a + 1))), tolerance = 1e-12)
  elsewhere <- rows_csv(at("one.csv")) # a pass like that of workers: all blocks at once
  elsewhere$pass <- function(...) pass_in_turn(...)
  predict(fit, elsewhere, file = at("out"))
  expect_equal(utils::read.csv(at("out"))$fit, unname(predict(fit, d)), tolerance = 1e-12)
})

test_that("that rows are copies is said once, not for each block of new rows", {
  d <- data.frame(x = rep(1:20, 2) / 5, y = sin(rep(1:20, 2)))
  fit <- gp_exact(y ~ x, d, kernel = kernel_se(1, 1), noise = 0.1, hyper = "fixed")
  told <- 0
  withCallingHandlers(p <- predict(fit, in_blocks(d["x"]), interval = "conformal"), pfdtc_message_copies = function(m) {
    told <<- told + 1
    invokeRestart("muffleMessage")
  })
  expect_identical(told, 1)
  expect_equal(p, suppressMessages(predict(fit, d["x"], interval = "conformal")), ignore_attr = TRUE)
})
