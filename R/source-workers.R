#' Rows on workers
#'
#' A row source whose rows are in parts, each read by a worker process, on this machine or others: the workers that the
#' plan in force of the package \pkg{future} has (`future::plan()`: `multisession`, `cluster`, batch systems), or the
#' daemons of the package \pkg{mirai}. A pass over the rows is a task for each part, and what comes back is sums: of a
#' fit with `m` points \eqn{m^2 + m} numbers and a few, whatever the number of rows. The rows stay where they are.
#'
#' `pfdtc(formula, data, workers = TRUE)` cuts a data frame into a part for each worker, sends it there, and fits to
#' these as to any source: see the section on row sources of [pfdtc()].
#'
#' Each part is opened once on every worker that is given it, and kept there until the next source comes: a data frame
#' is not sent a second time, and a function is called once. Which worker does which part is the plan's affair. Results
#' are put together in the order of the parts, and random numbers (of which rows are sampled) are drawn from this
#' session's: a fit does not depend on which worker did what.
#'
#' A worker that dies takes nothing with it: its part is done again by another, with a message; when that fails twice,
#' an error says which part it was.
#'
#' @param parts a list: each a data frame, or a function without arguments that returns, where it is called, a data
#'   frame, a matrix or a row source (such as [rows_blocks()]): what reads the rows that a worker has. Such a function
#'   is sent with what its environment has; what it finds in the global environment must be there on the worker.
#' @return A source, of class `pfdtc_source`.
#' @section Errors: class `pfdtc_error_input` for parts that are something else, without the packages or a plan;
#'   `pfdtc_error_source` for what goes wrong on a worker.
#' @section Invariants: the fit is that of the parts' rows, one after the other, in one process, to rounding.
#' @seealso [rows_blocks()], [pfdtc()]
#' @examplesIf requireNamespace("future", quietly = TRUE)
#' halves <- split(quakes, seq_len(nrow(quakes)) > 500)
#' parts <- unname(lapply(halves, function(half) function() half))
#' # without future::plan("multisession", workers = 2) both are done in this session
#' fit <- pfdtc(mag ~ depth + stations, rows_parts(parts), m = 20, kernel = kernel_se(),
#'              hyper = "pilot", control = pfdtc_control(maxit = 0))
#' nobs(fit)
#' @export
rows_parts <- function(parts) {
  good <- is.list(parts) && !is.data.frame(parts) && length(parts) &&
    all(vapply(parts, function(p) is.data.frame(p) || is.function(p), NA))
  if (!good) abort_input("parts", describe(parts), "a list of data frames, or of functions that return them")
  crew <- find_crew()
  id <- next_source()
  passes <- 0L
  pass <- function(source, visit, merge, so_far) {
    passes <<- passes + 1L
    pass_on_workers(id, parts, visit, merge, so_far, whole = passes == 1L)
  }
  columns <- crew_run(crew, 1L, TRUE, function(i, whole) list(part_columns, list(id, i, parts[[i]])))[[1L]]$value
  not_in_turn <- function() abort_input("data", "rows on workers", "a source that can be read block by block here")
  new_source(not_in_turn, not_in_turn, columns, sprintf("%d parts, on workers of %s", length(parts), crew$name),
             pass = pass)
}

# A data frame as parts, one for each worker.
frame_on_workers <- function(data) {
  if (!is.data.frame(data)) abort_input("data", describe(data), "a data frame, where `workers` is TRUE")
  n <- max(1L, min(find_crew()$size(), nrow(data)))
  cut <- ceiling(seq_len(nrow(data)) * (n / max(1L, nrow(data))))
  rows_parts(unname(lapply(split(seq_len(nrow(data)), cut), function(i) data[i, , drop = FALSE])))
}

# A name that no other source has, in whatever session.
next_source <- function() {
  engine$sources <- if (is.null(engine$sources)) 1L else engine$sources + 1L
  sprintf("%d-%s-%d", Sys.getpid(), format(unclass(Sys.time()), digits = 16), engine$sources)
}

# One task a part; what they return is merged in the order of the parts. Random numbers of a part begin from a seed that
# this session draws. `whole`: data frames are sent at once, not only to workers that turn out not to have them.
pass_on_workers <- function(id, parts, visit, merge, so_far, whole) {
  seeds <- sample.int(.Machine$integer.max, length(parts))
  add_up <- function(results) {
    values <- Filter(Negate(is.null), lapply(results, `[[`, "value"))
    so_far$value <- if (length(values)) Reduce(merge, values)
    so_far$rows <- sum(vapply(results, `[[`, 0, "rows"))
  }
  task <- function(i, whole) {
    list(visit_part, list(id, i, if (whole || is.function(parts[[i]])) parts[[i]], visit, merge, seeds[i]))
  }
  add_up(crew_run(find_crew(), length(parts), whole, task, add_up))
  so_far$value
}

# ---- on a worker ----------------------------------------------------------------------------------------------------

# The parts that this process has opened, of the last source that it was given some of.
kept_parts <- new.env(parent = emptyenv())

# What is kept of that source under this name; `value`, where it is not there and has one.
kept_of <- function(id, name, value) {
  if (!identical(kept_parts$id, id)) {
    rm(list = ls(kept_parts), envir = kept_parts)
    kept_parts$id <- id
  }
  if (is.null(kept_parts[[name]])) kept_parts[[name]] <- value
  kept_parts[[name]]
}

# Rows at a time of what a part has in memory.
part_block <- 65536L

# The source of part i, NULL where it is neither here nor sent.
open_part <- function(id, i, part) {
  kept_of(id, paste0("part", i), if (!is.null(part)) {
    if (is.function(part)) part <- reading(part(), 0)
    if (!is_source(part) && !is.data.frame(part) && !is.matrix(part)) {
      abort_input("parts", describe(part), "functions that return a data frame, a matrix or a row source")
    }
    if (is_source(part)) part else rows_in_memory(as.data.frame(part))
  })
}

rows_in_memory <- function(rows) {
  at <- 0
  next_block <- function() {
    if (at >= nrow(rows)) return(NULL)
    i <- seq(at + 1, min(at + part_block, nrow(rows)))
    at <<- at + length(i)
    rows[i, , drop = FALSE]
  }
  new_source(function() at <<- 0, next_block, names(rows), "rows")
}

# list(value, rows); list(absent = TRUE) where the part is not here; list(error) of what went wrong, which is a value so
# that whatever else happens is the worker's end.
visit_part <- function(id, i, part, visit, merge, seed) {
  so_far <- new.env()
  as_result({
    source <- open_part(id, i, part)
    if (is.null(source)) {
      list(absent = TRUE)
    } else {
      with_random_seed(seed, source_pass(source, visit, merge, so_far))
      list(value = so_far$value, rows = so_far$rows)
    }
  })
}

part_columns <- function(id, i, part) as_result(list(value = open_part(id, i, part)$columns))

as_result <- function(expr) tryCatch(expr, error = function(e) list(error = e))

# ---- tasks and who does them ----------------------------------------------------------------------------------------

# Results of task(i, whole) for i of n parts, each list(function, arguments); `whole`: with all that the part has, as is
# asked for again by workers that do not have it. Tasks wait until a worker is free; how many there are is found out by
# losing them. `so_far(results)` is told of what there is when something ends it.
crew_run <- function(crew, n, whole, task, so_far = function(results) NULL) {
  work <- list2env(list(crew = crew, n = n, task = task, whole = rep(whole, n), lost = integer(n), results = list(),
                        waiting = seq_len(n), flying = list(), slots = max(1L, crew$size())))
  in_order <- function() work$results[order(as.integer(names(work$results)))]
  done <- FALSE
  on.exit(if (!done) so_far(in_order()))
  while (length(work$waiting) || length(work$flying)) {
    launch_parts(work)
    landed <- names(work$flying)[vapply(work$flying, crew$landed, NA)]
    for (i in landed) land_part(work, i)
    if (!length(landed)) Sys.sleep(0.005)
  }
  done <- TRUE
  in_order()
}

launch_parts <- function(work) {
  while (length(work$waiting) && length(work$flying) < work$slots) {
    i <- work$waiting[1L]
    what <- work$task(i, work$whole[i])
    flight <- tryCatch(work$crew$start(what[[1L]], what[[2L]]), error = function(e) e)
    work$waiting <- work$waiting[-1L]
    if (!inherits(flight, "error")) {
      work$flying[[as.character(i)]] <- flight
    } else if (length(work$flying)) { # a worker that is not there: others are
      work$slots <- length(work$flying)
      work$waiting <- c(i, work$waiting)
    } else {
      lose_part(work, i, flight)
    }
  }
}

land_part <- function(work, name) {
  i <- as.integer(name)
  result <- tryCatch(work$crew$value(work$flying[[name]]), error = function(e) e)
  work$flying[[name]] <- NULL
  if (inherits(result, "error")) {
    lose_part(work, i, result)
  } else if (!is.null(result$error)) {
    stop_in_part(result$error, i, work$n)
  } else if (isTRUE(result$absent)) {
    work$whole[i] <- TRUE
    work$waiting <- c(i, work$waiting)
  } else {
    work$results[[name]] <- result
  }
}

lose_part <- function(work, i, e) {
  work$lost[i] <- work$lost[i] + 1L
  work$slots <- max(1L, work$slots - 1L)
  if (work$lost[i] > 2L) {
    abort_source(sprintf("Part %d of %d was lost with its worker three times, the last time by: %s", i, work$n,
                         conditionMessage(e)), parent = e, rows = 0)
  }
  tell_classed("worker", sprintf("Part %d of %d was lost with its worker and is done again.", i, work$n))
  work$waiting <- c(i, work$waiting)
}

# An error in a part is what it was, and says where.
stop_in_part <- function(e, i, n) {
  where <- sprintf("(On a worker, in part %d of %d.)", i, n)
  if (!any(startsWith(class(e), "pfdtc_error"))) {
    abort_source(paste(conditionMessage(e), where), parent = e, rows = 0)
  }
  e$message <- paste(conditionMessage(e), where)
  stop(e)
}

# ---- whose workers --------------------------------------------------------------------------------------------------

# list(name, size(), start(f, args) -> a flight, landed(flight), value(flight)): start() and value() fail where the
# worker has come to its end.
find_crew <- function() {
  if (isNamespaceLoaded("mirai") && mirai::status()$connections > 0) return(mirai_crew())
  if (requireNamespace("future", quietly = TRUE)) return(future_crew())
  abort_input("workers", "asked for without the packages future or mirai", "left out, or one of these installed")
}

future_crew <- function() {
  list(name = "future", size = future::nbrOfWorkers, start = function(f, args) {
    future::future(do.call(f, args), globals = list(f = f, args = args), seed = NULL)
  }, landed = function(flight) tryCatch(future::resolved(flight), error = function(e) TRUE), value = future::value)
}

mirai_crew <- function() {
  list(name = "mirai", size = function() mirai::status()$connections, start = function(f, args) {
    mirai::mirai(do.call(f, args), f = f, args = args)
  }, landed = function(flight) !mirai::unresolved(flight), value = function(flight) {
    value <- flight$data
    if (mirai::is_error_value(value)) stop(paste("mirai:", format(value)))
    value
  })
}

# Products with the kernel matrix of all pairs of rows, made by workers. Each has all rows, which are sent once, and
# takes a share of the pairs: to and fro go v and as many numbers for each worker and product.

# A function (kernel, v, control) -> k(x, x) v
products_on_workers <- function(x, crew = find_crew()) {
  id <- next_source()
  sent <- FALSE
  shares <- max(1L, crew$size())
  function(kernel, v, control) {
    task <- function(i, whole) list(share_of_product, list(id, i, if (whole) x, kernel, v, control, shares))
    results <- crew_run(crew, shares, !sent, task)
    sent <<- TRUE
    Reduce(`+`, lapply(results, `[[`, "value"))
  }
}

# On a worker: as visit_part().
share_of_product <- function(id, share, x, kernel, v, control, shares) {
  as_result({
    x <- kept_of(id, "x", x)
    if (is.null(x)) list(absent = TRUE) else
      list(value = native_kernel_matvecs(kernel, x, NULL, v, control, share, shares))
  })
}
