#' @export
rows_parts <- function(parts) {
  good <- is.list(parts) && !is.data.frame(parts) && length(parts) &&
    all(vapply(parts, function(p) is.data.frame(p) || is.function(p), NA))
  refuse_if(!good, "parts", describe(parts), "a list of data frames, or of functions that return them")
  crew <- find_crew()
  id <- next_source()
  passes <- 0L
  # Send a task for each part. Values are merged in the order of the parts, and each part has its own seed.
  pass <- function(source, visit, merge, so_far) {
    passes <<- passes + 1L
    seeds <- sample.int(.Machine$integer.max, length(parts))
    add_up <- function(results) {
      values <- Filter(Negate(is.null), lapply(results, `[[`, "value"))
      so_far$value <- if (length(values)) Reduce(merge, values)
      so_far$rows <- sum(vapply(results, `[[`, 0, "rows"))
    }
    # In the first pass data frames are sent at once, later only to workers that turn out to lack them.
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

# Returns a data frame divided into parts, one for each worker.
frame_on_workers <- function(data) {
  refuse_if(!is.data.frame(data), "data", describe(data), "a data frame, where `workers` is TRUE")
  n <- max(1L, min(find_crew()$size(), nrow(data)))
  cut <- ceiling(seq_len(nrow(data)) * (n / max(1L, nrow(data))))
  rows_parts(unname(lapply(split(seq_len(nrow(data)), cut), function(i) data[i, , drop = FALSE])))
}

# Returns a name that no other source has in any session.
next_source <- function() {
  engine$sources <- (engine$sources %||% 1L) + 1L
  sprintf("%d-%s-%d", Sys.getpid(), format(unclass(Sys.time()), digits = 16), engine$sources)
}

# Returns a function (kernel, v, control) for k(x, x) v, with the pairs of rows shared among the workers. Each worker
# receives all rows once; a product sends v and returns as many numbers from each worker.
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

# ---- on a worker ----------------------------------------------------------------------------------------------------

# This environment keeps the parts of data that are open in this process, for the last source that it served.
kept_parts <- new.env(parent = emptyenv())

# Returns task(kept), where `kept` is the value that this process keeps under `name` for the source `id`; `value` is
# evaluated once to make it. Returns list(absent = TRUE) if nothing is kept. Errors are returned as list(error), so that
# a task fails only if its worker dies.
on_worker <- function(id, name, value, task) {
  tryCatch({
    if (!identical(kept_parts$id, id)) {
      rm(list = ls(kept_parts), envir = kept_parts)
      kept_parts$id <- id
    }
    if (is.null(kept_parts[[name]])) kept_parts[[name]] <- value
    if (is.null(kept_parts[[name]])) list(absent = TRUE) else task(kept_parts[[name]])
  }, error = function(e) list(error = e))
}

# Returns the row source of a part, or NULL if the task came without its data (`part` is NULL).
open_part <- function(part) {
  if (is.function(part)) part <- reading(part(), 0)
  if (is.null(part) || is_source(part)) return(part)
  refuse_if(!is.data.frame(part) && !is.matrix(part), "parts", describe(part),
            "functions that return a data frame, a matrix or a row source")
  rows_in_memory(as.data.frame(part))
}

# Returns the value of a pass over a part, or if `visit` is NULL the names of its columns.
visit_part <- function(id, i, part, visit = NULL, merge = NULL, seed = NULL) {
  on_worker(id, paste0("part", i), open_part(part), function(source) {
    if (is.null(visit)) return(list(value = source$columns))
    so_far <- new.env()
    with_fixed_seed(source_pass(source, visit, merge, so_far), seed)
    list(value = so_far$value, rows = so_far$rows)
  })
}

share_of_product <- function(id, share, x, kernel, v, control, shares) {
  on_worker(id, "x", x, function(x) {
    list(value = native_kernel_matvecs(kernel, x, NULL, v, control, share, shares))
  })
}

# ---- tasks and workers ----------------------------------------------------------------------------------------------

# Returns the results of task(i, whole) for n parts; a task is list(function, arguments). With `whole` TRUE a task
# contains its part of the data. If a worker lacks the part, a task without it returns `absent`, and is sent again with
# the data. Tasks wait for a free worker. so_far(results) is called at the end, also after an error or interrupt.
crew_run <- function(crew, n, whole, task, so_far = function(results) NULL) {
  whole <- rep(whole, n)
  lost <- integer(n)
  results <- flying <- list()
  waiting <- seq_len(n)
  slots <- max(1L, crew$size())
  in_order <- function() results[order(as.integer(names(results)))]
  # Drop the worker that lost a task or failed to start it. Returns TRUE if other workers are left.
  leaves_others <- function(flight) !is.null(crew$exclude) && crew$exclude(flight)
  lose <- function(i, e) {
    lost[i] <<- lost[i] + 1L
    slots <<- max(1L, slots - 1L)
    text <- sprintf("Part %d of %d was lost with its worker", i, n)
    if (lost[i] > 2L) {
      abort_source(sprintf("%s three times. The last error: %s", text, conditionMessage(e)), parent = e, rows = 0)
    }
    tell_classed("worker", paste0(text, ". Another worker repeats it."))
    waiting <<- c(i, waiting)
  }
  start <- function(i) {
    what <- task(i, whole[i])
    flight <- tryCatch(crew$start(what[[1L]], what[[2L]]), error = function(e) e)
    if (!inherits(flight, "error")) {
      flying[[as.character(i)]] <<- flight
      waiting <<- waiting[-1L]
    } else if (leaves_others(flight)) { # another worker takes the part
      slots <<- max(1L, slots - 1L)
    } else if (length(flying)) { # the other workers are busy
      slots <<- length(flying)
    } else {
      waiting <<- waiting[-1L]
      lose(i, flight)
    }
  }
  on.exit(so_far(in_order()))
  while (length(waiting) || length(flying)) {
    while (length(waiting) && length(flying) < slots) start(waiting[1L])
    landed <- names(flying)[vapply(flying, crew$landed, NA)]
    for (name in landed) {
      i <- as.integer(name)
      flight <- flying[[name]]
      flying[[name]] <- NULL
      result <- value_of_task(crew, flight, sprintf("(On a worker, in part %d of %d.)", i, n))
      if (inherits(result, "error")) {
        leaves_others(flight)
        lose(i, result)
      } else if (isTRUE(result$absent)) {
        whole[i] <- TRUE
        waiting <- c(i, waiting)
      } else {
        results[[name]] <- result
      }
    }
    if (!length(landed)) Sys.sleep(0.005)
  }
  in_order()
}

# Returns the value of a finished task, or an error if its worker died. Raises the errors of the task itself.
value_of_task <- function(crew, flight, where) {
  result <- tryCatch(crew$value(flight), error = function(e) e)
  if (inherits(result, "error") || is.null(result$error)) return(result)
  e <- result$error
  text <- paste(conditionMessage(e), where)
  if (!any(startsWith(class(e), "pfdtc_error"))) abort_source(text, parent = e, rows = 0)
  e$message <- text
  stop(e)
}

# Returns list(name, size, start, landed, value, exclude). start(f, args) returns a `flight`, a running task.
# landed(flight) tests if it has ended, and the optional exclude(flight) drops its worker. For a dead worker start() and
# value() fail.
find_crew <- function() {
  if (isNamespaceLoaded("mirai") && mirai::status()$connections > 0) return(mirai_crew())
  if (requireNamespace("future", quietly = TRUE)) return(future_crew())
  abort_input("workers", "needs the package future or mirai", hint = "Install one of them.")
}

# Returns the crew of package future. A cluster sends a new task to its first free worker, and a dead worker counts as
# free. So later tasks use a cluster without the dead worker.
future_crew <- function() {
  alive <- NULL
  list(name = "future", size = future::nbrOfWorkers, start = function(f, args) {
    if (!is.null(alive)) {
      plan <- future::plan(future::cluster, workers = alive, .cleanup = FALSE)
      on.exit(future::plan(plan, .cleanup = FALSE, .init = FALSE))
    }
    future::future(do.call(f, args), globals = list(f = f, args = args), seed = NULL)
  }, landed = function(flight) tryCatch(future::resolved(flight), error = function(e) TRUE), value = future::value,
  exclude = function(flight) {
    if (inherits(flight, "error")) flight <- attr(flight, "future")
    dead <- flight$node
    if (is.null(dead) || is.na(dead) || length(flight$workers) < 2L) return(FALSE)
    alive <<- flight$workers[-dead]
    TRUE
  })
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
