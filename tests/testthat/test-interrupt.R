# Interrupts are sent to child processes, because an interrupt that is not caught would end this process.

skip_on_cran()
skip_on_os("windows")
skip_if_not(file.exists(system.file("Meta", "package.rds", package = "pfdtc")), "pfdtc is not installed")

# Runs `body` in a new Rscript whose messages go to a log. Its ready(file) and report(value, file) write a file in one
# piece. Returns list(path(name), wait_for(name), log()).
start_child <- function(body) {
  dir <- tempfile("child")
  dir.create(dir)
  path <- function(name) file.path(dir, name)
  preamble <- substitute({
    .libPaths(paths)
    library(pfdtc)
    options(pfdtc.threads = 1L, pfdtc.transform = "plain")
    report <- function(value, name) {
      saveRDS(value, file.path(dir, "part"))
      file.rename(file.path(dir, "part"), file.path(dir, name))
    }
    # From now on calls of this function of the package are calls of `wrapper`, with the function as first argument.
    wrap <- function(name, wrapper) {
      space <- asNamespace("pfdtc")
      old <- get(name, space)
      unlockBinding(name, space)
      assign(name, function(...) wrapper(old, ...), space)
    }
    interrupt_self <- function() {
      tools::pskill(Sys.getpid(), tools::SIGINT)
      Sys.sleep(60)
    }
    # From now on the child interrupts itself at the start of the stage `target`, or at the n-th call ("name n") of one
    # of these functions since `calls` was 0, or at an evaluation of one objective ("native_evaluate vfe n").
    calls <- 0
    target <- ""
    interrupts_at <- function(functions) {
      lapply(functions, function(name) {
        wrap(name, function(f, ...) {
          if (name == "native_evaluate") name <- paste(name, ..1)
          calls <<- calls + startsWith(target, name)
          if (target == paste(name, calls)) interrupt_self()
          f(...)
        })
      })
      wrap("run_stage", function(f, state, name, expr, otherwise) {
        if (target != name || calls > 0) return(f(state, name, expr, otherwise))
        calls <<- 1
        f(state, name, {
          interrupt_self()
          expr
        }, otherwise)
      })
    }
    # Returns list(fit, warning classes), or the class of another condition that ended the code.
    run <- function(code) {
      classes <- character()
      fit <- tryCatch(withCallingHandlers(code, warning = function(w) {
        classes <<- c(classes, class(w))
        invokeRestart("muffleWarning")
      }), interrupt = function(i) "interrupt", error = conditionMessage)
      list(fit = fit, warned = classes)
    }
  }, list(paths = .libPaths(), dir = dir))
  writeLines(c(deparse(preamble), deparse(body)), path("child.R"))
  file.create(path("log"))
  system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(path("child.R"))), wait = FALSE,
          stdout = path("log"), stderr = path("log"))
  log <- function() paste(c("the child says:", readLines(path("log"), warn = FALSE)), collapse = "\n")
  # A minute is far longer than any step takes, also under sanitizers on a busy machine.
  wait_for <- function(name, seconds = 60) {
    until <- Sys.time() + seconds
    while (!file.exists(path(name))) {
      if (Sys.time() > until || grepl("Execution halted", log())) stop(sprintf("no `%s`; %s", name, log()))
      Sys.sleep(0.01)
    }
    readRDS(path(name))
  }
  list(wait_for = wait_for, log = log)
}

# Expects a complete fit that is no worse than its start and can predict.
expect_usable <- function(got, info) {
  fit <- got$fit
  expect_s3_class(fit, c("pfdtc", "gp_fit"), exact = TRUE)
  if (!inherits(fit, "gp_fit")) return(fail(sprintf("%s: %s", info, format(fit))))
  expect_true("pfdtc_warning_convergence" %in% got$warned, info = info)
  expect_identical(fit$convergence, 52L, info = info)
  expect_match(fit$message, "interrupted", info = info)
  # Objectives of different rounds cannot be compared, because hyperparameters differ.
  trace <- fit$trace
  if (!is.null(trace$round)) trace <- trace[trace$round == max(trace$round), ]
  if (nrow(trace)) {
    expect_lte(fit$objective, trace$objective[1])
    expect_identical(fit$objective, min(trace$objective, na.rm = TRUE), info = info)
  } else {
    expect_identical(fit$objective, NA_real_, info = info)
  }
  pilot <- fit$pilot$trace$objective
  if (length(pilot)) expect_lte(min(pilot, na.rm = TRUE), pilot[1])
  p <- predict(fit, se.fit = TRUE)
  expect_true(all(is.finite(unlist(p))), info = info)
  expect_true(is.finite(fit$evidence), info = info)
  expect_true(all(is.finite(coef(fit)) & coef(fit) > 0), info = info)
}

test_that("SIGINT at a random moment returns the best fit so far, with a warning", {
  child <- start_child(quote({
    set.seed(1)
    x <- matrix(stats::runif(60000), 20000)
    y <- sin(6 * x[, 1]) + x[, 2]^2 + stats::rnorm(20000) / 10
    hyper <- c("pilot", "evidence", "fixed")
    # Report that the fit has begun, after interrupts are suspended.
    wrap("learn_stage", function(f, ...) {
      report(Sys.getpid(), paste0("begun", i))
      f(...)
    })
    for (i in 1:3) {
      # A fit takes several times the longest delay: at least many evaluations of 30 ms.
      report(run(pfdtc(x, y, m = 100, kernel = kernel_se(c(0.3, 0.5, 2), 1), noise = 0.01, hyper = hyper[i],
                       control = pfdtc_control(maxit = 1e6, reltol = 0, progress = FALSE))), paste0("done", i))
    }
  }))
  delays <- with_seed(as.integer(Sys.time()), stats::runif(3, 0, c(1, 0.4, 2)))
  for (i in 1:3) {
    pid <- child$wait_for(paste0("begun", i))
    Sys.sleep(delays[i])
    tools::pskill(pid, tools::SIGINT)
    expect_usable(child$wait_for(paste0("done", i)), sprintf("after %.3f s; %s", delays[i], child$log()))
  }
})

test_that("an interrupt in any stage, and in the middle of it, ends the fit there", {
  # Numbers count calls of native_evaluate() for an objective. Call 1 tests the objective, call 2 starts the search.
  targets <- c("pilot", "start", "points", "joint", "posterior", "native_evaluate vfe 1",
               "native_evaluate vfe 7", paste("native_evaluate white", c(1, 2, 7)))
  child <- start_child(substitute({
    set.seed(1)
    x <- matrix(stats::runif(80), 40)
    y <- sin(6 * x[, 1]) + x[, 2]^2 + stats::rnorm(40) / 10
    fit <- function() {
      set.seed(2)
      pfdtc(x, y, m = 5, hyper = "joint", control = pfdtc_control(maxit = 10, progress = FALSE))
    }
    interrupts_at("native_evaluate")
    out <- list(whole = run(fit()))
    for (target in targets) {
      calls <- 0
      out[[target]] <- run(fit())
    }
    # A second interrupt, while the posterior is computed after the first, ends the call.
    wrap("native_posterior", function(f, ...) {
      if (target == "twice") interrupt_self()
      f(...)
    })
    wrap("learn_stage", function(f, data, settings, state) {
      if (target == "twice") state$stopped <- list(convergence = 52L, message = "interrupted")
      f(data, settings, state)
    })
    target <- "twice"
    out$twice <- run(fit())
    report(out, "done")
  }, list(targets = targets)))
  out <- child$wait_for("done")
  expect_identical(out$whole$warned, character())
  for (target in targets) expect_usable(out[[target]], target)
  # Results before the interrupt are kept, and later stages are not begun.
  done <- function(stage) names(out[[stage]]$fit$evaluations)
  expect_identical(done("pilot"), NULL)
  expect_identical(done("start"), "pilot")
  expect_identical(done("points"), "pilot")
  expect_identical(done("joint"), c("pilot", "objective", "other start"))
  expect_identical(done("native_evaluate vfe 7"), "pilot")
  expect_equal(out[["native_evaluate vfe 7"]]$fit$evaluations[["pilot"]], 6)
  expect_identical(done("native_evaluate white 7"), c("pilot", "objective", "other start"))
  expect_identical(out$start$fit$kernel, out$points$fit$kernel)
  expect_identical(out$twice$fit, "interrupt")
})

test_that("an interrupt while hyperparameters are learned by the evidence keeps what had been found", {
  targets <- c("learn", "native_vecchia 1", "native_vecchia 30", "native_vecchia 60", "native_vecchia 130",
               "native_neighbours 9",
               "native_exact_evidence 1", "native_exact_evidence 2")
  child <- start_child(substitute({
    set.seed(1)
    x <- matrix(stats::runif(160), 80)
    y <- sin(6 * x[, 1]) + x[, 2]^2 + stats::rnorm(80) / 10
    interrupts_at(c("native_vecchia", "native_neighbours", "native_exact_evidence"))
    fit <- function(...) {
      calls <<- 0
      set.seed(2)
      run(pfdtc(x, y, ..., control = pfdtc_control(progress = FALSE)))
    }
    out <- list(whole = fit())
    for (target in targets) {
      out[[target]] <- list(chosen = fit(), given = fit(kernel = kernel_se()), points = fit(m = 5))
    }
    report(out, "done")
  }, list(targets = targets)))
  out <- child$wait_for("done")
  expect_identical(out$whole$warned, character())
  for (target in targets) {
    for (kind in c("chosen", "given", "points")) {
      # Learning the parameters of a given kernel ends before these calls.
      if (kind == "given" && target %in% c("native_vecchia 130", "native_neighbours 9")) next
      expect_usable(out[[target]][[kind]], paste(target, kind))
      fit <- out[[target]][[kind]]$fit
      expect_identical(fit$posterior, if (kind == "points") "far" else "exact", info = target)
      if (kind == "given") expect_identical(fit$kernel$profile, "se")
      # print() shows whether anything was learned.
      said <- if (is.null(fit$learned)) "ended" else "[0-9]+\\s+starts"
      expect_output(print(summary(fit)), said)
    }
  }
  expect_null(out$learn$chosen$fit$learned)
  # The best start so far is used.
  expect_identical(coef(out[["native_vecchia 1"]]$chosen$fit), coef(out$learn$chosen$fit))
  expect_gt(out[["native_vecchia 30"]]$chosen$fit$evidence, out$learn$chosen$fit$evidence + 10)
  # The starts end and the kernel is chosen before the exact log marginal likelihood is used.
  last <- out[["native_exact_evidence 2"]]$chosen$fit
  expect_identical(attr(last$learned, "by"), "Vecchia log likelihood plus log prior density")
  expect_identical(last$learned, `attr<-`(out$whole$fit$learned, "by", attr(last$learned, "by")))
  whole <- out$whole$fit$kernels
  whole <- unclass(whole[!is.na(whole$se), ])[names(whole)] # linear means come later, without se
  expect_identical(unclass(last$kernels)[names(whole)], whole)
  expect_lt(max(abs(log(coef(last) / coef(out$whole$fit)))), 1)
})

test_that("an interrupt while classes are learned, or in variational steps, keeps the best so far", {
  child <- start_child(quote({
    d <- data.frame(x = 1:40 / 8, y = rep(c(0, 1, 0, 1), c(8, 14, 10, 8)))
    fit <- function() {
      pfdtc(y ~ x, d, family = binomial(), kernel = kernel_se(1, 30), hyper = "fixed", center = FALSE, approx = "vi")
    }
    interrupts_at("native_laplace")
    out <- list(whole = run(fit()))
    # The mode and its bound are the first two calls; each later call takes ten steps.
    for (target in paste("native_laplace", 3:4)) {
      calls <- 0
      out[[target]] <- run(fit())
    }
    for (target in paste("native_laplace", c(2, 20))) { # before kernels are compared
      calls <- 0
      out[[target]] <- run(pfdtc(y ~ x, d, family = binomial()))
    }
    report(out, "done")
  }))
  out <- child$wait_for("done")
  expect_identical(out$whole$warned, character())
  bounds <- vapply(out[c(2, 3, 1)], function(got) got$fit$evidence, 0)
  expect_true(all(diff(bounds) > 0))
  # The first fit has learned almost nothing, the second more; no other start is begun.
  learned <- lapply(out[4:5], `[[`, "fit")
  expect_gt(learned[[2L]]$evidence, learned[[1L]]$evidence)
  expect_lte(learned[[1L]]$evaluations[["learn"]], 1)
  expect_null(learned[[2L]]$kernels)
  expect_output(print(learned[[2L]]), "Laplace")
  for (got in out[-1]) {
    expect_true("pfdtc_warning_convergence" %in% got$warned)
    expect_identical(got$fit$convergence, 52L)
    expect_true(all(is.finite(predict(got$fit, type = "response"))))
  }
})

test_that("an interrupt, or R's time limit, in one fold ends a cross-validation", {
  child <- start_child(quote({
    d <- data.frame(x = 1:40 / 10)
    d$y <- sin(2 * d$x) + cos(9 * 1:40) / 5
    fits <- list(pfdtc(y ~ x, d, m = 5, neighbours = 0, kernel = kernel_se()),
                 pfdtc(y > 0 ~ x, d, family = binomial()))
    begun <- 0
    wrap("fit_as_asked", function(f, ...) {
      begun <<- begun + 1
      f(...)
    })
    interrupts_at(character())
    target <- "learn"
    ended <- list()
    for (fit in fits) {
      begun <- calls <- 0
      ended <- c(ended, list(list(run(cross_validate(fit)), begun)))
    }
    target <- ""
    wrap("run_stage", function(f, state, name, expr, otherwise) {
      f(state, name, stop("reached elapsed time limit"), otherwise)
    })
    begun <- 0
    report(c(ended, list(list(run(cross_validate(fits[[1]])), begun))), "done")
  }))
  out <- child$wait_for("done")
  expect_identical(lapply(out, function(got) got[[1L]]$fit),
                   list("interrupt", "interrupt", "reached elapsed time limit"), info = child$log())
  expect_identical(lapply(out, `[[`, 2L), list(1, 1, 1))
})
