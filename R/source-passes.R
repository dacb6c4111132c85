# Makes passes over a source of rows, here or on workers. The first pass finds what cleaning needs from all rows (mean
# and sd of the response, levels of factors) and draws a random sample. Later passes clean the rows block by block.

# Returns a sample of `size` rows as data, like data_from_formula(), but with the centre and scale of all rows. Its
# element `whole` has the source, and the coding and units with which later passes read all rows.
data_from_source <- function(source, call, envir, center, scale, size, kernel = NULL, mean = NULL) {
  center <- check_flag(center, "center")
  scale <- check_flag(scale, "scale")
  recipe <- source_recipe(call, envir, source, kernel, mean)
  so_far <- new.env()
  survey <- source_pass(source, survey_visit(recipe, size), survey_merge, so_far)
  m <- survey$moments
  refuse_if(is.null(m), "data", "has no row without missing values")
  m$sd <- sqrt(m$ss / m$total * m$n / (m$n - 1))
  unit <- response_unit(NULL, NULL, survey$largest, center, scale, survey$name, m)
  # Levels of factors keep their order, those of text are alphabetical, those of groups numeric if possible. Levels
  # without rows are dropped, unless they name the rows of a correlation matrix in `kernel`.
  variables <- lapply(survey$variables, function(v) {
    if (v$kind == "group") v$levels <- v$levels[order(utils::type.convert(v$levels, as.is = TRUE))]
    if (v$kind != "factor") return(v)
    if (!v$declared) v$levels <- levels(factor(v$used))
    else if (!has_given_levels(kernel, v$levels)) v$levels <- v$levels[v$levels %in% v$used]
    v[c("used", "declared")] <- NULL
    v$width <- length(v$levels)
    v$columns <- paste0(v$name, v$levels)
    v
  })
  check_levels(variables, m$n)
  attr(survey$terms, "grouped") <- recipe$grouped
  environment(survey$terms) <- environment(check_formula(call, envir)) # not a worker's copy of it
  sample <- survey$sample
  values <- structure(sample$values, class = "data.frame", row.names = seq_along(sample$r)) # columns may be matrices
  data <- clean_data(bind_columns(variables, values), sample$r, survey$name, if (survey$weighted) sample$w, NULL,
                     NULL, center = FALSE, scale = FALSE, merge = FALSE, unit = unit)
  data <- add_formula(data, survey$terms, variables, call)
  data$frame$required <- intersect(data$frame$required, source$columns)
  data$frame$response_unit <- survey$unit
  if (survey$offset_squares > 0) data$frame$offset_size <- sqrt(survey$offset_squares)
  data$whole <- list(source = source, passes = list2env(list(n = 1L)), recipe = recipe, variables = variables, n = m$n,
    seen = so_far$rows, omitted = survey$omitted, center = unit$center, scale = unit$scale)
  data
}

# ---- how blocks are read --------------------------------------------------------------------------------------------

# Returns list(formula, given, grouped) for block_rows(): the formula, arguments such as weights, and grouped terms.
source_recipe <- function(call, envir, source, kernel = NULL, mean = NULL) {
  columns <- stats::setNames(as.list(seq_along(source$columns)), source$columns)
  formula <- formula_of_groups(check_formula(call, envir), columns, kernel, mean)
  grouped <- attr(formula, "grouped")
  formula <- stats::formula(stats::terms(formula, data = columns)) # replaces a dot by the columns
  input_variables(stats::terms(formula))
  given <- as.list(call)[intersect(c("subset", "weights", "offset"), names(call))]
  # Check that variables from outside the source are single values. Others could not be matched to the rows of a block.
  for (name in setdiff(unlist(lapply(c(formula, given), all.vars)), source$columns)) {
    value <- get0(name, environment(formula))
    refuse_if(is.null(value) || (!is.function(value) && length(value) != 1L), "formula",
              sprintf("has `%s`, which is no column of the source", name),
              hint = sprintf("Its columns are %s.", list_quoted(source$columns, most = 20L)))
  }
  if ("na.action" %in% names(call)) given["na.action"] <- list(eval(call$na.action, envir))
  list(formula = with_global_objects(formula, given, source$columns), given = given, grouped = grouped)
}

# Returns list(mf, inputs, x, r, w, name, unit, largest, offset_squares) for the rows of a block that na.action and
# subset keep: model frame, coding of inputs, inputs, response minus offset, weights w, name and unit of the response,
# largest |response| or |offset|, sum w offset^2. `variables` codes inputs; the default has the block's levels.
block_rows <- function(recipe, block, variables = NULL) {
  parts <- c(list(quote(stats::model.frame), formula = recipe$formula, data = block), recipe$given)
  mf <- evaluate_frame(parts, environment(recipe$formula))
  terms <- attr(mf, "terms")
  labels <- row.names(mf)
  inputs <- coded_variables(mf, input_variables(terms), recipe$grouped)
  for (i in seq_along(variables)) {
    seen <- if (inputs[[i]]$kind == "group") inputs[[i]]$levels
    if (same_kind(variables[[i]], inputs[[i]]) && all(seen %in% variables[[i]]$levels)) next
    abort_input("data", sprintf("has another `%s` than in the first pass", variables[[i]]$name),
                hint = "A source must give the same rows in every pass.")
  }
  rows <- rows_of_frame(mf, variables %||% inputs, labels)
  response <- check_response(rows$response, rows$name, nrow(mf), labels, only_in_memory)
  offset <- rows$offset %||% 0
  if (is.null(variables)) { # The first pass stops at values that depend on other rows, such as scale(x) and rank(x).
    exprs <- c(as.list(attr(terms, "variables"))[-1L], recipe$given)
    changed <- !mapply(identical, exprs, c(as.list(attr(terms, "predvars"))[-1L], recipe$given)) # by makepredictcall()
    value_of <- evaluator(block, block, environment(recipe$formula))
    for (i in which(vapply(exprs, is.call, NA))) refuse_if(
      changed[i] || any(same_without_others(exprs[[i]], value_of(exprs[[i]]), value_of) %in% FALSE),
      deparse1(exprs[[i]]), "depends on all rows",
      hint = "A row source is read block by block. Use a column, or write numbers, as in I(x - 3.5).")
  }
  list(mf = mf, inputs = inputs, x = rows$x, r = response - offset, w = rows$w, name = rows$name,
       unit = attr(mf[[rows$name]], "units"), largest = max(0, abs(response), abs(offset)),
       offset_squares = offset_squares(rows))
}

same_kind <- function(a, b) a$kind == b$kind && (a$kind == "factor" || a$width == b$width)

# Returns the rows of a block with positive weights, coded, centred and scaled like all rows.
clean_block <- function(whole, block) {
  rows <- block_rows(whole$recipe, block, whole$variables)
  cleaned(whole, list(x = rows$x, response = rows$r, w = rows$w))
}

# Makes a pass: calls f(rows, ...), with arguments `more`, for blocks of cleaned rows, and joins values by merge(a, b).
whole_pass <- function(whole, f, more, merge, so_far = new.env()) {
  whole$passes$n <- whole$passes$n + 1L
  needed <- whole[setdiff(names(whole), c("source", "passes"))] # omits the source, which does not go to workers
  source_pass(whole$source, visit_rows(clean_block, needed, f, more), merge, so_far)
}

# ---- the first pass: moments, levels and a sample -------------------------------------------------------------------

survey_visit <- function(recipe, size) {
  list(recipe, size) # evaluates both arguments before they go to workers
  function(block) {
    rows <- block_rows(recipe, block)
    mf <- rows$mf
    variables <- lapply(rows$inputs, function(v) {
      value <- mf[[v$name]]
      if (v$kind == "factor") v[c("used", "declared")] <- list(as.character(unique(value)), is.factor(value))
      v
    })
    keep <- (rows$w %||% TRUE) > 0
    r <- rows$r[keep]
    w <- rows$w[keep]
    names <- unique(unlist(lapply(variables, function(v) if (v$kind == "group") v$parts else v$name)))
    values <- lapply(stats::setNames(nm = names), function(name) {
      value <- mf[[name]]
      if (is.factor(value)) value <- as.character(value)
      if (is.matrix(value)) unclass(value)[keep, , drop = FALSE] else value[keep]
    })
    c(rows[c("largest", "offset_squares", "name", "unit")], list(
      omitted = length(attr(mf, "na.action")), variables = variables, moments = weighted_moments(r, w),
      weighted = any(rows$w != 1), terms = attr(mf, "terms"),
      sample = smallest_keys(list(list(key = stats::runif(length(r)), values = values, r = r, w = w)), size)))
  }
}

survey_merge <- function(a, b) {
  if (length(b$moments)) {
    refuse_if(length(a$moments) && !identical(a$unit, b$unit), "data",
              sprintf("has `%s` in %s in one block and in %s in another", a$name, c(a$unit, "no unit")[1L],
                      c(b$unit, "no unit")[1L]),
              hint = "Use difftime(<end>, <start>, units = \"hours\") instead of a difference.")
    a["unit"] <- b["unit"]
    a$moments <- if (length(a$moments)) merge_moments(a$moments, b$moments) else b$moments
    a$variables <- Map(function(a, b) {
      if (setequal(c(a$kind, b$kind), c("logical", "numeric"))) a$kind <- b$kind <- "numeric" # a block of NA is logical
      refuse_if(!same_kind(a, b), "data",
                sprintf("has `%s` as %s in one block and as %s in another", a$name, a$kind, b$kind))
      joined <- switch(a$kind, group = c("levels", "plain"), factor = c("levels", "used"))
      a[joined] <- Map(union, a[joined], b[joined])
      if (a$kind == "factor") a$declared <- a$declared && b$declared
      a
    }, a$variables, b$variables)
  }
  for (what in c("omitted", "offset_squares")) a[[what]] <- a[[what]] + b[[what]]
  a$weighted <- a$weighted || b$weighted
  a$largest <- max(a$largest, b$largest)
  a$sample <- smallest_keys(list(a$sample, b$sample))
  a
}

# Returns list(n, total, mean, ss, range) of r with weights w, or NULL without rows. ss is sum w (r - mean)^2.
weighted_moments <- function(r, w) {
  if (!length(r)) return(NULL)
  w <- w %||% rep(1, length(r))
  total <- sum(w)
  mean <- r[1L] + sum(w * (r - r[1L])) / total
  list(n = length(r), total = total, mean = mean, ss = sum(w * (r - mean)^2), range = range(r))
}

merge_moments <- function(a, b) {
  total <- a$total + b$total
  apart <- b$mean - a$mean
  list(n = a$n + b$n, total = total, mean = a$mean + apart * (b$total / total),
       ss = a$ss + b$ss + apart^2 * (a$total * (b$total / total)), range = range(a$range, b$range))
}

# Returns a random sample of at most `size` rows from several parts: list(key, values, r, w, size) with variables,
# response minus offset, and weights. Rows with the smallest random keys are kept, so samples can be joined.
smallest_keys <- function(parts, size = parts[[1L]]$size) {
  rows <- bind_blocks(parts)
  if (length(rows$key) > size) rows <- take_rows_of(rows, which(rows$key <= sort(rows$key, partial = size)[size]))
  rows$size <- size
  rows
}

# ---- rows and products on workers -----------------------------------------------------------------------------------

#' @export
rows_parts <- function(parts) {
  check_given("parts", "Give a list of data frames, or of functions that return them.")
  want <- "a list of data frames, or of functions that return them"
  refuse_if(!is.list(parts) || is.data.frame(parts) || !length(parts), "parts", describe(parts), want)
  for (p in parts) refuse_if(!is.data.frame(p) && !is.function(p), "parts", describe(p), want, where = "an element")
  crew <- find_crew()
  id <- next_source()
  passes <- 0L
  # Send a task with its own seed for each part. Values are merged in the order of the parts.
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
  label <- sprintf("%s, through package %s", count_of(length(parts), "part"), crew$name)
  new_source(not_in_turn, not_in_turn, columns, label, pass = pass)
}

# Returns the source of a data frame that is divided into as many parts as there are workers.
frame_on_workers <- function(data) {
  refuse_if(!is.data.frame(data), "data", describe(data), "a data frame if `workers` is TRUE")
  n <- max(1L, min(find_crew()$size(), nrow(data)))
  cut <- ceiling(seq_len(nrow(data)) * (n / max(1L, nrow(data))))
  rows_parts(unname(lapply(split(seq_len(nrow(data)), cut), function(i) data[i, , drop = FALSE])))
}

# Returns an identifier that is unique among sources of all sessions.
next_source <- function() {
  engine$sources <- (engine$sources %||% 1L) + 1L
  sprintf("%d-%s-%d", Sys.getpid(), format(unclass(Sys.time()), digits = 16), engine$sources)
}

# Returns a function that computes k(x, x) v on workers, each for a share of the pairs of rows. It sends x only once.
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

# ---- functions that run on a worker ---------------------------------------------------------------------------------

# Each worker keeps here the data of the last source that it served.
kept_parts <- new.env(parent = emptyenv())

# Runs task(kept) on a worker, where `kept` is stored under `name` for the source `id`. If nothing is stored, `value` is
# evaluated and stored; if it is NULL, returns list(absent = TRUE). Returns errors as list(error).
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

# Makes a pass over part i of the source `id`, or returns its columns without `visit`. `part` is NULL if stored before.
visit_part <- function(id, i, part, visit = NULL, merge = NULL, seed = NULL) {
  as_source <- function(rows) {
    if (is.null(rows) || is_source(rows)) return(rows)
    refuse_if(!is.data.frame(rows) && !is.matrix(rows), "parts", describe(rows),
              "functions that return a data frame, a matrix or a row source")
    rows_in_memory(as.data.frame(rows))
  }
  on_worker(id, paste0("part", i), as_source(if (is.function(part)) reading(part(), 0) else part), function(source) {
    if (is.null(visit)) return(list(value = source$columns))
    so_far <- new.env()
    with_fixed_seed(source_pass(source, visit, merge, so_far), seed)
    list(value = so_far$value, rows = so_far$rows)
  })
}

share_of_product <- function(id, share, x, kernel, v, control, shares) {
  on_worker(id, "x", x, function(x) list(value = native_kernel_matvecs(kernel, x, NULL, v, control, share, shares)))
}

# ---- tasks and workers ----------------------------------------------------------------------------------------------

# Runs n tasks on the workers of `crew` and returns their results. task(i, whole) is list(function, arguments); if
# `whole`, the arguments have part i of the data. A worker that lacks this part returns `absent`, and the task is sent
# again with the part. so_far(results) is called at the end, also after an error.
crew_run <- function(crew, n, whole, task, so_far = function(results) NULL) {
  whole <- rep(whole, n)
  lost <- integer(n)
  results <- flying <- list()
  waiting <- seq_len(n)
  slots <- max(1L, crew$size())
  in_order <- function() results[order(as.integer(names(results)))]
  # Exclude the worker that lost a task or failed to start it. Returns TRUE if others are left.
  leaves_others <- function(flight) !is.null(crew$exclude) && crew$exclude(flight)
  lose <- function(i, e) {
    lost[i] <<- lost[i] + 1L
    slots <<- max(1L, slots - 1L)
    text <- sprintf("Part %d of %d was lost with its worker", i, n)
    if (lost[i] > 2L)
      abort_source(sprintf("%s three times. The last error: %s", text, conditionMessage(e)), parent = e, rows = 0)
    tell_classed("worker", paste0(text, ". Another worker repeats it."))
    waiting <<- c(i, waiting)
  }
  start <- function(i) {
    what <- task(i, whole[i])
    flight <- tryCatch(crew$start(what[[1L]], what[[2L]]), error = function(e) e)
    if (!inherits(flight, "error")) {
      flying[[as.character(i)]] <<- flight
      waiting <<- waiting[-1L]
    } else if (leaves_others(flight)) { # lets another worker take the part
      slots <<- max(1L, slots - 1L)
    } else if (length(flying)) { # waits until a busy worker is free
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

# Returns the value of a finished task (`flight`), or an error if its worker died. Raises task errors, adding `where`.
value_of_task <- function(crew, flight, where) {
  result <- tryCatch(crew$value(flight), error = function(e) e)
  if (inherits(result, "error") || is.null(result$error)) return(result)
  e <- result$error
  text <- paste(conditionMessage(e), where)
  if (grepl("not f(ou|i)nd", text)) text <- paste(text, "Objects of the global environment do not exist on workers.")
  if (!any(startsWith(class(e), "pfdtc_error"))) abort_source(text, parent = e, rows = 0)
  e$message <- text
  stop(e)
}

# Returns the workers as list(name, size, start, landed, value, exclude). start(f, args) returns a running task, a
# `flight`. landed(flight) tests if it has ended, and value(flight) is its result. exclude(flight), if present, stops
# using its worker. If the worker is dead, start() and value() raise an error.
find_crew <- function() {
  if (isNamespaceLoaded("mirai") && mirai::status()$connections > 0) {
    return(list(name = "mirai", size = function() mirai::status()$connections, start = function(f, args) {
      mirai::mirai(do.call(f, args), f = f, args = args)
    }, landed = function(flight) !mirai::unresolved(flight), value = function(flight) {
      value <- flight$data
      if (mirai::is_error_value(value)) stop(paste("mirai:", format(value)))
      value
    }))
  }
  refuse_if(!requireNamespace("future", quietly = TRUE), "workers", "not available",
            message = "Workers need the package future or mirai.", hint = "Install one of them.")
  # A cluster of package future would send a dead worker the next task. So later tasks use a cluster `alive` without it.
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
