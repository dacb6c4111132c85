# Each test takes about a second in total.

quick_control <- pfdtc_control(maxit = 8, progress = FALSE)

wavy <- with_seed(1, {
  x <- data.frame(a = stats::runif(72), b = stats::runif(72))
  cbind(x, y = sin(8 * x$a) + cos(7 * x$b) + stats::rnorm(72, sd = 0.1))
})

small_experiment <- function(m = c(5, 8), methods = c("pf", "vfe", "sor", "subsample", "default"), reps = 2,
                             file = NULL, control = quick_control, ...) {
  run_experiment(wavy, methods, m, reps, file = file, train = 60, test = 12, n_aux = 12, control = control, ...)
}

# Returns small_experiment(), which is run once for all tests.
whole_experiment <- local({
  whole <- NULL
  function() {
    if (is.null(whole)) whole <<- small_experiment()
    whole
  }
})

new_file <- function(end = ".csv") file.path(tempfile_folder(), paste0("results", end))

tempfile_folder <- function() {
  dir <- tempfile("experiment")
  dir.create(dir)
  dir
}

# Returns all results but times.
numbers <- function(results) {
  out <- as.data.frame(results)[setdiff(names(results), c("seconds", "cpu"))]
  attr(out, "trace") <- NULL
  row.names(out) <- NULL
  out
}

trace_numbers <- function(results) {
  out <- attr(results, "trace")
  out <- out[order(out$m, out$repetition, out$method, out$evaluation), names(out) != "seconds"]
  row.names(out) <- NULL
  out
}

test_that("there is a row for each fit, with the columns of compare_fits()", {
  results <- whole_experiment()
  expect_s3_class(results, "pfdtc_experiment")
  expect_identical(nrow(results), 2L * (1L + 2L * 5L))
  expect_true(all(c("method", "m", "objective", "rmse_mean", "rmse_sd", "kl", "kl_marginal", "rmse_pred", "nlpd",
                    "coverage", "certified_mean_error", "seconds", "evaluations") %in% names(results)))
  expect_setequal(results$repetition, 1:2)
  exact <- results[results$method == "exact", ]
  expect_identical(exact$m, c(60, 60))
  expect_identical(c(exact$rmse_mean, exact$rmse_sd, exact$kl), numeric(6))
  fits <- results[results$method != "exact", ]
  expect_gt(min(fits$rmse_mean), 1e-4) # the problem is not solved up to rounding
  expect_true(all(fits$kl[fits$method == "sor"] == Inf))
  expect_identical(is.na(fits$divergence), fits$method != "pf")
  expect_identical(is.na(fits$divergence_exact), fits$method %in% c("sor", "subsample"))
  expect_true(all(fits$outside == 0))
  # The file of results keeps six digits of a number.
  expect_true(all(fits$certified_mean_error >= fits$max_mean * (1 - 1e-5)))
  expect_true(all(fits$certified_sd_error >= fits$max_sd * (1 - 1e-5)))
  expect_true(all(fits$certified_median >= fits$median_mean * (1 - 1e-5)))
  expect_true(all(fits$evaluations[fits$method %in% c("sor", "subsample")] == 0))
})

test_that("rows have the numbers of compare_fits() for the same fits", {
  results <- small_experiment(m = 6, reps = 1)
  plan <- experiment_code()$experiment_plan(wavy, 60, 12, 12, "own", "")
  plan[c("seed", "control", "cache")] <- list(1, quick_control, tempfile_folder())
  rows <- experiment_code()$repetition_rows(plan, 1)
  expect_equal(c(mean(rows$x[, 1]), sd(rows$x[, 2]), mean(rows$y), sd(rows$y)), c(0, 1, 0, 1))
  truth <- experiment_code()$repetition_truth(plan, 1, rows)
  exact <- experiment_code()$exact_fit(rows, truth)
  cell <- list(m = 6, repetition = 1)
  start <- experiment_code()$with_cell_seed(plan, cell, "start", inducing_points(rows$x, 6, truth$kernel, "random"))
  for (method in quick(c("pf", "vfe", "sor", "subsample", "default"))) {
    fit <- experiment_code()$with_cell_seed(plan, cell, method,
                                  experiment_code()$fit_method(method, cell, plan, rows, truth, start, FALSE))
    expected <- compare_fits(fit, exact, rows$test, rows$y_test, pf = FALSE)
    columns <- c("objective", "rmse_mean", "rmse_sd", "kl", "kl_marginal", "rmse_pred", "nlpd", "coverage",
                 "evaluations")
    row <- results[results$method == method, ]
    expect_equal(as.numeric(row[columns]), as.numeric(expected[columns]), tolerance = 1e-5, info = method)
  }
})

test_that("the protocol is the paper's, whatever pfdtc() does by itself", {
  code <- experiment_code()
  plan <- code$experiment_plan(wavy, 60, 12, 12, "own", "")
  plan$seed <- 1
  plan$cache <- tempfile_folder()
  rows <- code$repetition_rows(plan, 1)
  truth <- code$repetition_truth(plan, 1, rows)
  by_hand <- code$with_cell_seed(plan, list(repetition = 1, m = 0), "pilot", {
    gp_dtc(rows$x, rows$y, m = 1, kernel = kernel_se(), hyper = "pilot", inducing = "random", center = FALSE,
           scale = FALSE, control = list(threads = 1))
  })
  expect_identical(truth$kernel, by_hand$kernel)
  expect_identical(truth$noise, by_hand$noise)
  plan$control <- pfdtc_control(5, threads = 1)
  for (method in c("pf", "default")) {
    fit <- code$with_cell_seed(plan, list(repetition = 1, m = 6), method, {
      code$fit_method(method, list(m = 6), plan, rows, truth, rows$x[1:6, ], FALSE)
    })
    expect_identical(fit$posterior, "far")
    expect_gt(nrow(fit$trace), 1)
    expect_equal(coef(fit), coef(by_hand))
  }
  # If `maxit` is not given, points move for up to 200 iterations.
  results <- small_experiment(5, "pf", 1, control = pfdtc_control(reltol = 0.5))
  expect_true(all(results$maxit == 200))
})

test_that("the divergence from the exact posterior is that of pf_divergence(), weights and jitter included", {
  for (weighted in c(FALSE, TRUE)) {
    p <- problem(n = 30, m = 5, weighted = weighted, seed = 2)
    args <- list(p$x, p$y, kernel = kernel_se(p$kernel$lengthscale, p$kernel$variance), noise = p$noise,
                 hyper = "fixed", weights = p$weights, center = FALSE, scale = FALSE)
    exact <- do.call(gp_exact, args)
    trace_P <- experiment_code()$trace_of_inverse(exact)
    for (jitter in c(0, 1e-3)) {
      fit <- do.call(gp_dtc, c(args, list(inducing = p$z, control = pfdtc_control(jitter = jitter))))
      # The divergence is a difference of sums that are some 1e3 times as large.
      expect_equal(experiment_code()$divergence_from_exact(fit, exact, trace_P), pf_divergence(fit, exact),
                   tolerance = 1e-9)
    }
  }
})

test_that("resumed, reordered and one at a time, the numbers are the same", {
  only_nightly()
  whole <- small_experiment(trace = 8)
  file <- new_file(".csv.gz")
  small_experiment(m = 8, methods = "vfe", file = file, trace = 8)
  small_experiment(m = 8, reps = 1, file = file, trace = 8)
  parts <- small_experiment(file = file, trace = 8)
  order <- function(r) r[base::order(r$m, r$repetition, r$method), ]
  expect_equal(numbers(order(parts)), numbers(order(whole)))
  expect_equal(trace_numbers(parts), trace_numbers(whole))
  # Results in the file are not computed again.
  untouched <- with_replaced(list(run_cell = function(...) stop("computed again")), small_experiment(file = file),
                             experiment_code())
  expect_equal(numbers(untouched), numbers(parts))
  expect_equal(numbers(order(read_experiment(file))), numbers(order(whole)))
  expect_identical(setdiff(list.files(dirname(file)), c("results.csv.gz", "results-trace.csv.gz", "results-data.csv")),
                   "results-cache")
})

test_that("a file cut off in the middle of a line is completed", {
  only_nightly()
  file <- new_file()
  whole <- small_experiment(file = file, trace = 8, reps = 1)
  lines <- readLines(file)
  cat(c(lines[1:8], substr(lines[9], 1, 40)), file = file, sep = "\n") # no end of line
  again <- small_experiment(file = file, trace = 8, reps = 1)
  expect_equal(numbers(again), numbers(whole))
  expect_equal(trace_numbers(again), trace_numbers(whole))
  # Test the same cut line, followed by a newline.
  cat(c(lines[1:8], substr(lines[9], 1, 40), ""), file = file, sep = "\n")
  expect_equal(numbers(small_experiment(file = file, trace = 8, reps = 1)), numbers(whole))
  expect_identical(length(readLines(file)), length(lines))
})

test_that("an interrupt loses no more than the cell under way, and no interrupted fit is kept", {
  skip_on_cran()
  file <- new_file()
  interrupted <- tryCatch(
    with_interrupted("run_minimise", 9, small_experiment(file = file)),
    interrupt = function(i) "interrupt")
  expect_identical(interrupted, "interrupt")
  kept <- read_experiment(file)
  expect_true(nrow(kept) %in% c(6, 12)) # whole cells
  expect_equal(numbers(small_experiment(file = file)), numbers(whole_experiment()))
})

test_that("an interrupted pilot is no pilot", {
  only_nightly()
  file <- new_file()
  old <- pfdtc:::minimise
  # Interrupt in the middle of the first optimisation, as by a signal.
  interrupted <- tryCatch(
    with_replaced(list(minimise = function(problem, ...) {
      evaluate <- problem$evaluate
      calls <- 0
      problem$evaluate <- function(par) {
        calls <<- calls + 1
        if (calls == 4) stop(interrupt_signal)
        evaluate(par)
      }
      old(problem, ...)
    }), small_experiment(file = file)),
    interrupt = function(i) "interrupt")
  expect_identical(interrupted, "interrupt")
  expect_false(file.exists(file))
  expect_equal(numbers(small_experiment(file = file)), numbers(whole_experiment()))
})

test_that("results of other data by the same name, or of other rows, are not mistaken for the present ones", {
  own <- data.frame(x = cars$speed, y = cars$dist)
  file <- new_file()
  run <- function(d = own, ..., name = "own") {
    run_experiment(d, "sor", m = 3, reps = 1, file = file, name = name, certify = FALSE, control = quick_control, ...)
  }
  first <- run()
  expect_equal(numbers(run()), numbers(first))
  other <- own
  other$y[7] <- other$y[7] + 1
  expect_input_error(run(other), "file")
  expect_input_error(run(own[1:40, ]), "file")
  expect_input_error(run(train = 30, test = 10), "file")
  expect_equal(nrow(run(other, name = "other")), 2)
  expect_equal(numbers(run()), numbers(first))
  unlink(sub("[.]csv", "-data.csv", file))
  expect_input_error(run(), "file")
})

test_that("the name of a data set may look like a number, a logical or a missing value", {
  for (name in c("007", "T", "NA")) {
    file <- new_file()
    run <- function() {
      run_experiment(cars, "sor", m = 3, reps = 1, file = file, name = name, certify = FALSE, control = quick_control)
    }
    first <- run()
    expect_identical(first$dataset, c(name, name))
    expect_equal(numbers(run()), numbers(first), label = name) # resumed
  }
})

test_that("a response that is constant in the training rows is refused by name", {
  d <- data.frame(x = 1:40, y = rep(0:1, c(39, 1)))
  run <- function(seed) run_experiment(d, "sor", m = 3, reps = 1, seed = seed, name = "own", certify = FALSE)
  expect_input_error(run(19000), "dataset") # the row with the response 1 is a test row
  expect_equal(nrow(run(1000)), 2)
})

test_that("an experiment is a data frame of all fits, and print() shows medians", {
  results <- small_experiment(m = 5, methods = c("sor", "vfe"))
  shown <- utils::capture.output(print(results))
  expect_match(shown[1], "4 fits")
  expect_length(shown, 5)
  expect_identical(class(as.data.frame(results)), "data.frame")
  expect_null(attr(as.data.frame(results), "trace"))
  expect_output(print(results[1:3]), "dataset")
})

test_that("a fit that fails is left out with a warning, and is computed when run again", {
  only_nightly()
  file <- new_file()
  fit_method <- experiment_code()$fit_method
  fails <- function(method, ...) if (method == "vfe") stop("no luck") else fit_method(method, ...)
  expect_warning(results <- with_replaced(list(fit_method = fails), {
    small_experiment(m = 5, reps = 1, file = file)
  }, experiment_code()),
                 "no luck")
  expect_identical(setdiff(c("exact", "pf", "vfe", "sor", "subsample", "default"), results$method), "vfe")
  expect_equal(numbers(small_experiment(m = 5, reps = 1, file = file)), numbers(small_experiment(m = 5, reps = 1)))
})

test_that("two workers give the same numbers", {
  skip_on_cran()
  skip_if_not(file.exists(system.file("Meta", "package.rds", package = "pfdtc")), "pfdtc is not installed")
  environment <- Sys.getenv(c("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), NA)
  file <- new_file()
  two <- small_experiment(m = 5, file = file, workers = 2, methods = c("pf", "sor"))
  expect_equal(numbers(two), numbers(small_experiment(m = 5, methods = c("pf", "sor"))), tolerance = 1e-5)
  expect_identical(Sys.getenv(c("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), NA), environment)
})

test_that("seeds depend on every part, and the session's random numbers continue unchanged", {
  seeds <- c(experiment_code()$derived_seed(1, "a", 1, 2, "pf"), experiment_code()$derived_seed(2, "a", 1, 2, "pf"),
             experiment_code()$derived_seed(1, "b", 1, 2, "pf"), experiment_code()$derived_seed(1, "a", 2, 2, "pf"),
             experiment_code()$derived_seed(1, "a", 1, 3, "pf"), experiment_code()$derived_seed(1, "a", 1, 2, "vfe"))
  expect_identical(anyDuplicated(seeds), 0L)
  expect_true(all(seeds == round(seeds) & seeds >= 0 & seeds < 2^31))
  with_seed(5, {
    set.seed(5)
    expected <- stats::runif(1)
    set.seed(5)
    small_experiment(m = 5, methods = "sor", reps = 1)
    expect_identical(stats::runif(1), expected)
  })
})

test_that("a user's own data can be used, also with a constant input", {
  own <- data.frame(a = cars$speed, b = 1, dist = cars$dist)
  results <- run_experiment(own, c("pf", "default"), m = 3, reps = 1, control = quick_control, name = "cars")
  expect_identical(results$dataset, rep("cars", 3))
  expect_identical(results$m, c(40, 3, 3))
  expect_true(all(is.finite(results$rmse_mean)))
})

test_that("bad arguments are refused", {
  expect_input_error(small_experiment(methods = "gpt"), "methods")
  expect_input_error(small_experiment(m = 61), "m")
  expect_input_error(small_experiment(m = c(4, 4)), "m")
  expect_input_error(small_experiment(reps = 0), "reps")
  expect_input_error(small_experiment(file = "results.txt"), "file")
  expect_input_error(small_experiment(file = file.path(tempdir(), "no", "such.csv")), "file")
  expect_input_error(small_experiment(workers = 0), "workers")
  expect_input_error(run_experiment("nothing"), "dataset")
  expect_input_error(run_experiment(matrix(1, 3, 3)), "dataset")
  expect_input_error(run_experiment(cars, train = 49, test = 2), "train")
  expect_input_error(run_experiment(cars, n_aux = 50), "n_aux")
  expect_input_error(run_experiment(cars, name = "a,b"), "name")
  expect_input_error(run_experiment(cars, name = "airfoil"), "name")
  expect_input_error(run_experiment(cars, m = 3, trace = 4), "trace")
  expect_input_error(run_experiment(transform(cars, dist = 1)), "dataset")
  expect_input_error(run_experiment(transform(cars, speed = factor(speed))), "dataset")
  expect_input_error(run_experiment(transform(cars, speed = replace(speed, 3, NA))), "dataset")
  folder <- file.path(tempfile_folder(), "x.csv")
  dir.create(folder)
  expect_input_error(small_experiment(file = folder), "file")
  file <- new_file()
  writeLines("a,b\n1,2", file)
  expect_input_error(small_experiment(file = file), "file")
  expect_input_error(read_experiment(file), "file")
  expect_input_error(read_experiment(new_file()), "file")
  plain <- new_file(".csv.gz")
  writeLines("a,b", plain)
  expect_input_error(read_experiment(plain), "file")
  file <- new_file()
  small_experiment(m = 5, methods = "sor", reps = 1, file = file)
  expect_input_error(small_experiment(m = 5, seed = 2, file = file), "seed = 1")
})

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

# Returns a folder with a file like that of airfoil, changed by `change`.
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

test_that("the error about a missing file names its source and what to do", {
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
