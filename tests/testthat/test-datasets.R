test_that("Table 1 is as printed", {
  sets <- paper_datasets()
  paper <- sets[sets$paper, ]
  expect_identical(paper$name, c("synthetic", "delays10k", "abalone", "airfoil", "ccpp", "wine"))
  expect_identical(paper$n_train, c(1000L, 8000L, 3177L, 1103L, 7568L, 3898L))
  expect_identical(paper$n_test, c(1000L, 2000L, 1000L, 400L, 2000L, 1000L))
  expect_identical(paper$d, c(1L, 8L, 8L, 5L, 4L, 11L))
  expect_identical(paper$n_aux, c(100L, 800L, 300L, 100L, 700L, 300L))
  expect_identical(sets$name[!sets$paper], c("protein", "delays"))
})

test_that("the synthetic set is the stated function with noise of variance 0.01", {
  one <- with_seed(1, load_dataset("synthetic", dir = "nowhere"))
  expect_identical(one, with_seed(1, load_dataset("synthetic")))
  expect_identical(names(one), c("x", "y"))
  expect_identical(nrow(one), 2000L)
  expect_true(all(one$x > 0 & one$x < 2))
  noise <- one$y - sin(12 * one$x) - 0.66 * cos(25 * one$x) - 3
  expect_lt(abs(mean(noise^2) / 0.01 - 1), 0.2)      # six sds of a mean of 2,000 squares
})

# A folder with a file as that of airfoil should be, changed by `change`.
airfoil_folder <- function(change = identity, file = "airfoil.csv", rows = 1503) {
  dir <- tempfile("data")
  dir.create(dir)
  data <- as.data.frame(matrix(seq_len(6 * rows) / 7, rows, dimnames = list(NULL, c(letters[1:5], "y"))))
  con <- if (grepl("gz$", file)) gzfile(file.path(dir, file), "w") else file(file.path(dir, file), "w")
  utils::write.csv(change(data), con, row.names = FALSE)
  close(con)
  dir
}

test_that("plain and gzipped files are read alike, from `dir` or PFDTC_DATA", {
  plain <- airfoil_folder()
  data <- load_dataset("airfoil", plain)
  expect_identical(dim(data), c(1503L, 6L))
  expect_identical(load_dataset("airfoil", airfoil_folder(file = "airfoil.csv.gz")), data)
  old <- Sys.getenv("PFDTC_DATA", NA)
  on.exit(if (is.na(old)) Sys.unsetenv("PFDTC_DATA") else Sys.setenv(PFDTC_DATA = old))
  Sys.setenv(PFDTC_DATA = plain)
  expect_identical(load_dataset("airfoil"), data)
})

test_that("what is missing is said, with the place it comes from and what to do", {
  message <- function(code) conditionMessage(tryCatch(code, pfdtc_error_input = identity))
  for (name in setdiff(paper_datasets()$name, "synthetic")) {
    set <- paper_datasets()[paper_datasets()$name == name, ]
    said <- message(load_dataset(name, tempdir()))
    for (part in c(set$file, set$source, set$prepare)) expect_match(said, part, fixed = TRUE)
  }
  expect_match(message(load_dataset("wine", "")), "PFDTC_DATA is not set", fixed = TRUE)
  expect_input_error(load_dataset("iris"), "name")
  expect_input_error(load_dataset("wine", 3), "dir")
})

test_that("another file than Table 1's is refused", {
  bad <- list(function(d) d[-1], function(d) d[c(6, 1:5)], function(d) d[1:1000, ],
              function(d) transform(d, a = "x"), function(d) transform(d, b = replace(b, 7, NA)))
  for (change in bad) expect_input_error(load_dataset("airfoil", airfoil_folder(change)), "data set \"airfoil\"")
})

test_that("the real files fit Table 1", {
  dir <- Sys.getenv("PFDTC_DATA")
  skip_if(!nzchar(dir), "PFDTC_DATA is not set")
  rows <- c(delays10k = 10000L, abalone = 4177L, airfoil = 1503L, ccpp = 9568L, wine = 4898L)
  for (name in names(rows)) expect_identical(nrow(load_dataset(name)), rows[[name]], info = name)
})
