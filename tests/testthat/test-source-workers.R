fixed_fit <- function(...) {
  pfdtc(dist ~ speed, cars, kernel = kernel_se(6, 900), noise = 200, hyper = "fixed", ...)
}

test_that("a fit predicts on a worker that has not attached the package, and is read by one that has not loaded it", {
  fit <- fixed_fit()
  new <- data.frame(speed = c(5, 15))
  job <- function(fit, new) list(stats::predict(fit, new), "package:pfdtc" %in% search())
  environment(job) <- baseenv()
  cluster <- parallel::makePSOCKcluster(1L)
  on.exit(parallel::stopCluster(cluster))
  expect_identical(parallel::clusterCall(cluster, job, fit, new)[[1]], list(predict(fit, new), FALSE))
  parallel::stopCluster(cluster)

  cluster <- parallel::makePSOCKcluster(1L)     # this worker has not even loaded the package
  path <- tempfile(fileext = ".rds")
  saveRDS(reference(fit, m2 = 8), path)
  read <- function(path) nobs(readRDS(path))
  environment(read) <- asNamespace("stats")
  expect_identical(parallel::clusterCall(cluster, read, path)[[1]], 50L)
  unlink(path)
})

test_that("future sends fits to workers unchanged", {
  skip_if_not_installed("future")
  fit <- fixed_fit()
  plan <- future::plan(future::multisession, workers = 2)
  on.exit(future::plan(plan))
  p <- future::value(future::future(predict(fit, data.frame(speed = 5))))
  expect_equal(p, predict(fit, data.frame(speed = 5)))
})

# ---- rows on workers ------------------------------------------------------------------------------------------------

mixed_parts <- function(n = 240, seed = 5) {
  set.seed(seed)
  d <- data.frame(a = runif(n), f = factor(sample(letters[1:3], n, TRUE)), w = sample(0:2, n, TRUE))
  d$y <- 3 + sin(5 * d$a) + (d$f == "b") + rnorm(n) / 5
  d$a[c(3, n)] <- NA
  d
}

on_points <- function(data, ...) {
  pfdtc(y ~ a + f, data, weights = w, kernel = kernel_matern(3 / 2, c(0.3, 1, 1, 1), 1), noise = 0.04, hyper = "fixed",
        inducing = cbind(seq(0, 1, 0.2), rep(0:1, 3), c(0, 0, 1), rep(0, 6)), m = 6, neighbours = 0,
        control = pfdtc_control(maxit = 0), ...)
}

# Expects equal fits. Their sums have the same terms in another order.
expect_same_fit <- function(a, b) {
  of <- c("G", "Ay", "beta", "C", "yy", "t", "k_sum", "rss")
  expect_equal(a$factors[of], b$factors[of], tolerance = 1e-10)
  of <- c("evidence", "center", "scale", "sd_y", "nobs", "signature")
  expect_equal(a[of], b[of], tolerance = 1e-10)
  new <- data.frame(a = c(0.1, 0.9), f = c("a", "c"))
  expect_equal(predict(a, new, interval = "credible"), predict(b, new, interval = "credible"), tolerance = 1e-9)
}

cut_in <- function(d, n) {
  unname(lapply(split(d, ceiling(seq_len(nrow(d)) * n / nrow(d))), function(part) function() part))
}

# Returns a part that kills the first worker that reads it.
killed_once <- function(rows, flag) {
  force(rows)
  force(flag)
  function() {
    if (!file.exists(flag)) {
      file.create(flag)
      tools::pskill(Sys.getpid(), 9)
      Sys.sleep(60)
    }
    rows
  }
}

test_that("a fit of rows on two real workers is that of one process, also when one of them is killed", {
  skip_on_cran()
  skip_if_not_installed("future")
  plan <- future::plan(future::multisession, workers = 2)
  on.exit(future::plan(plan))
  d <- mixed_parts()
  whole <- on_points(d)
  on_workers <- expect_silent(on_points(d, workers = TRUE))
  expect_same_fit(on_workers, whole)
  expect_output(print(on_workers), "2 parts.*future")
  parts <- cut_in(d, 3)
  source <- rows_parts(parts)
  expect_output(print(source), "3 parts.*future")
  expect_same_fit(on_points(source), whole)
  new <- rows_parts(cut_in(d, 2))
  expect_equal(predict(whole, new, se.fit = TRUE), predict(whole, d, se.fit = TRUE), tolerance = 1e-12)
  written <- tempfile()
  predict(whole, new, file = written)
  expect_equal(utils::read.csv(written)$fit, unname(predict(whole, d)), tolerance = 1e-12)
  unlink(written)
  # For certificates, the groups of the norms are whole parts or a hundred random rows.
  first <- reference(on_points(in_blocks(d, c(120, 120))), m2 = 40, data = in_blocks(d, c(120, 120)))
  there <- reference(on_workers, m2 = 40, data = rows_parts(cut_in(d, 2)))
  expect_same_fit(there, first)
  expect_equal(there$norms[c("v_E", "vv", "c", "w_E")], first$norms[c("v_E", "vv", "c", "w_E")], tolerance = 1e-8)
  on_workers$reference <- there
  certificate <- certify(on_workers, d[1:20, ])
  expect_equal(certificate$mean_error, certify(whole, d[1:20, ], reference = first, max_seconds = 0)$mean_error,
               tolerance = 0.2)
  asked <- d[4:20, ]
  expect_equal(refine(on_workers, asked, 1e-6, data = rows_parts(cut_in(d, 2))),
               refine(whole, asked, 1e-6, reference = there), tolerance = 1e-6)
  # Moving the points uses all rows. The sample has a third of them.
  moved <- function(data) {
    old <- options(pfdtc.sample = 80)
    on.exit(options(old))
    suppressWarnings(update(whole, data = data, aux = aux_white(0.5), control = list(maxit = 2, optimise_rows = Inf)),
                     classes = "pfdtc_warning_convergence")
  }
  there <- moved(rows_parts(cut_in(d, 2)))
  expect_equal(there$inducing, moved(d)$inducing, tolerance = 1e-6)
  expect_gt(max(abs(there$inducing - whole$inducing)), 1e-3)
  # A fit that depends on the workers' random numbers is the same in each run.
  learned <- function() {
    set.seed(1)
    coef(pfdtc(y ~ a, source, m = 4, kernel = kernel_se(), hyper = "pilot"))
  }
  expect_identical(learned(), learned())

  parts[[2]] <- killed_once(d[81:160, ], flag <- tempfile())
  expect_message(source <- rows_parts(parts), NA)
  expect_message(again <- on_points(source), "2 of 3", class = "pfdtc_message_worker")
  expect_same_fit(again, whole)
  unlink(flag)
})

test_that("workers have the functions and numbers of the global environment that a formula uses", {
  cluster <- parallel::makePSOCKcluster(1L)
  on.exit(parallel::stopCluster(cluster))
  crew <- list(name = "parallel", size = function() 1, landed = function(flight) TRUE, value = identity,
               start = function(f, args) do.call(parallel::clusterCall, c(list(cluster, f), args))[[1L]])
  own <- list(scaled_here = function(v) v * factor_of(2), factor_of = function(k) k + shift_here, shift_here = 1)
  own[1:2] <- lapply(own[1:2], `environment<-`, globalenv())
  list2env(own, globalenv())
  on.exit(rm(list = names(own), envir = globalenv()), add = TRUE)
  d <- mixed_parts()
  at_global <- function(formula) `environment<-`(formula, globalenv())
  fit_to <- function(formula, ...) {
    pfdtc(at_global(formula), d, kernel = kernel_se(0.5, 1), noise = 0.04, hyper = "fixed",
          inducing = cbind(seq(0, 3, 0.5)), m = 7, neighbours = 0, control = pfdtc_control(maxit = 0), ...)
  }
  on_crew <- function(code) with_replaced(list(find_crew = function() crew), code)
  there <- on_crew(fit_to(y ~ scaled_here(a), workers = TRUE))
  here <- fit_to(y ~ scaled_here(a))
  expect_equal(coef(there), coef(here), tolerance = 1e-10)
  expect_equal(predict(there, d[1:9, ]), predict(here, d[1:9, ]), tolerance = 1e-9)
  expect_identical(environment(formula(there)), globalenv())
  more <- data.frame(a = c(0.2, 0.7), y = c(3, 4))
  here <- add_rows(here, more)
  there <- on_crew(add_rows(there, rows_parts(list(more))))
  expect_equal(predict(there, d[1:9, ]), predict(here, d[1:9, ]), tolerance = 1e-8)
})

test_that("mirai's daemons are workers as well, and one may be killed", {
  skip_on_cran()
  skip_if_not_installed("mirai")
  mirai::daemons(2)
  on.exit(mirai::daemons(0))
  connected <- function() mirai::status()$connections == 2
  for (i in 1:100) if (!connected()) Sys.sleep(0.1)
  skip_if_not(connected(), "mirai's daemons have started")
  d <- mixed_parts()
  parts <- cut_in(d, 2)
  parts[[2]] <- killed_once(d[121:240, ], flag <- tempfile())
  source <- NULL
  expect_message(fit <- on_points(source <- rows_parts(parts)), "2 of 2", class = "pfdtc_message_worker")
  expect_output(print(source), "mirai")
  expect_same_fit(fit, on_points(d))
  unlink(flag)
})

test_that("parts are sent once to the worker that keeps them, again if they are lost, and named if always lost", {
  d <- mixed_parts()
  whole <- on_points(d)
  sent <- new.env()
  through <- function(crew, data) with_replaced(list(find_crew = function() crew), on_points(data))
  frames <- lapply(cut_in(d, 3), function(f) f())
  source <- with_replaced(list(find_crew = function() fake_crew(2, sent = sent)), rows_parts(frames))
  expect_same_fit(through(fake_crew(2, sent = sent), source), whole)
  expect_identical(vapply(sent$parts, function(p) is.null(p[[2]]), NA), rep(c(FALSE, TRUE), each = 3)) # two passes
  # A worker that has lost its parts is sent them again.
  rm(list = ls(kept_parts), envir = kept_parts)
  expect_same_fit(through(fake_crew(2, sent = sent), source), whole)
  expect_identical(sum(!vapply(sent$parts, function(p) is.null(p[[2]]), NA)), 3L)

  lost <- c(value = 0, start = 0)
  fails <- function(of, part, times) {
    function(what, i) {
      if (what != of || i != part || lost[[of]] >= times) return(FALSE)
      lost[of] <<- lost[of] + 1
      TRUE
    }
  }
  expect_message(fit <- through(fake_crew(2, fails("value", 2, 2)), source), "2 of 3", class = "pfdtc_message_worker")
  expect_same_fit(fit, whole)
  expect_equal(lost[["value"]], 2)
  expect_same_fit(suppressMessages(through(fake_crew(1, fails("start", 2, 2)), source)), whole)
  # Another worker takes the part, so nothing is lost.
  expect_message(fit <- through(fake_crew(3, fails("start", 3, 3)), source), NA)
  expect_same_fit(fit, whole)
  expect_error(suppressMessages(through(fake_crew(2, function(what, i) what == "value" && i == 3), source)),
               "3 of 3.*gone", class = "pfdtc_error_source")
})

test_that("an error in a part names the part, and its condition holds the fit to the other parts", {
  skip_if_not_installed("future")
  d <- mixed_parts()
  parts <- cut_in(d, 3)
  parts[[3]] <- function() {
    rows <- d[161:240, ]
    passes <- 0
    rows_blocks(function() passes <<- passes + 1, function() {
      if (passes == 2) stop("no disk")
      if (is.null(rows)) return(NULL)
      out <- rows
      rows <<- NULL
      out
    }, names(d))
  }
  with_replaced(list(find_crew = function() fake_crew(1)), {
    e <- expect_error(on_points(rows_parts(parts)), "no disk.*3 of 3", class = "pfdtc_error_source")
    expect_equal(e$fit$nobs, on_points(d[1:160, ])$nobs)
    bad <- list(function() d[1:9, ], function() 1:3)
    expect_error(on_points(rows_parts(bad)), "data frame.*2 of 2", class = "pfdtc_error_input")
    bad[[2]] <- function() transform(d[1:9, ], y = letters[1:9])
    expect_error(on_points(rows_parts(bad)), "`y`.*2 of 2", class = "pfdtc_error_input")
  })
  for (bad in list(NULL, d, list(), list(1), list(d, "x"))) {
    expect_error(rows_parts(bad), "`parts`", class = "pfdtc_error_input")
  }
  expect_error(pfdtc(d$a, d$y, workers = TRUE), "`workers`", class = "pfdtc_error_input")
  expect_error(pfdtc(y ~ a, d, workers = 2), "`workers`", class = "pfdtc_error_input")
})

test_that("parts have different random numbers", {
  # With one seed for both parts, which have the same rows, the sample would have the same rows of each.
  half <- data.frame(y = sin(1:300), a = 1:300)
  source <- with_replaced(list(find_crew = function() fake_crew(2)), rows_parts(list(half, half)))
  old <- options(pfdtc.sample = 60)
  on.exit(options(old))
  set.seed(1)
  data <- with_replaced(list(find_crew = function() fake_crew(2)), {
    data_from_source(source, quote(pfdtc(formula = y ~ a)), environment(), TRUE, TRUE, 60)
  })
  drawn <- data$x[, "a"]
  expect_identical(length(drawn), 60L)
  # 30 rows of each part, drawn independently, share 3 on average; 15 has a probability below 1e-8.
  expect_lt(sum(duplicated(drawn)), 15)
})

test_that("another worker takes the part of a dead worker", {
  d <- mixed_parts()
  whole <- on_points(d)
  source <- with_replaced(list(find_crew = function() fake_crew(3)), rows_parts(cut_in(d, 3)))
  # The first free worker is taken; the first one is dead, at the start of a task or during it.
  for (dies in c("start", "value")) {
    alive <- 1:3
    crew <- fake_crew(3, function(what, i) what == dies && alive[1L] == 1L)
    crew$exclude <- function(flight) {
      alive <<- alive[-1L]
      length(alive) > 0L
    }
    fit <- suppressMessages(with_replaced(list(find_crew = function() crew), on_points(source)))
    expect_same_fit(fit, whole)
  }
})

test_that("a worker of a cluster that is dead for good is left out", {
  skip_on_cran()
  skip_if_not_installed("future")
  skip_if_not_installed("parallelly")
  workers <- parallelly::makeClusterPSOCK(2, rscript_libs = .libPaths())
  old <- future::plan(future::cluster, workers = workers)
  on.exit({
    future::plan(old)
    try(parallel::stopCluster(workers[2]), silent = TRUE)
  })
  d <- mixed_parts()
  source <- rows_parts(cut_in(d, 2))
  id <- future::value(future::future(Sys.getpid()))
  tools::pskill(id, 9L)
  Sys.sleep(0.5)
  # A fit that keeps asking the dead worker would never end.
  setTimeLimit(elapsed = 120, transient = TRUE)
  on.exit(setTimeLimit(), add = TRUE)
  fit <- suppressMessages(on_points(source))
  expect_same_fit(fit, on_points(d))
})

test_that("the error that a worker did not find an object says which objects workers lack", {
  message_for <- function(error) {
    crew <- list(value = function(flight) list(error = error))
    conditionMessage(tryCatch(value_of_task(crew, NULL, "(On a worker.)"), error = identity))
  }
  lost <- tryCatch(no_such_object, error = identity) # R's own words
  expect_match(message_for(lost), "(On a worker.) Objects of the global environment do not exist", fixed = TRUE)
  expect_match(message_for(tryCatch(no_such_function(), error = identity)), "global environment")
  expect_false(grepl("global environment", message_for(simpleError("no connection"))))
})
