# The order of the cells, the workers, and the files of an experiment. Workers compute and only the main process writes:
# a new file beside the old one, which it then renames. run_experiment() sources this file and passes its arguments.

experiment <- function(dataset, methods, m, reps, seed, file, trace, control, workers, certify, train, test, n_aux, name,
                       dir, progress) {
  methods <- check_methods(methods)
  plan <- experiment_plan(dataset, train, test, n_aux, name, dir)
  if (is.null(m)) m <- default_points(plan)
  m <- vapply(m, check_count, 0, argument = "m", max = plan$train)
  if (!length(m) || anyDuplicated(m)) abort_input("m", describe(m), "different numbers of inducing points")
  reps <- check_count(reps, "reps")
  plan$seed <- check_count(seed, "seed", min = 0)
  plan$trace <- if (is.null(trace)) numeric() else vapply(trace, check_count, 0, argument = "trace")
  if (!all(plan$trace %in% m)) {
    abort_input("trace", describe(trace), "among `m`", hint = "It says of which numbers of points to keep the course.")
  }
  plan$control <- check_control(control)
  if (is.null(plan$control$maxit)) plan$control$maxit <- 200L # A number moves the points in any case.
  plan$control$progress <- FALSE
  plan$control$threads <- 1L
  plan$certify <- check_flag(certify, "certify")
  workers <- check_count(workers, "workers")
  progress <- check_flag(progress, "progress")
  paths <- experiment_paths(file)
  plan$cache <- paths$cache
  if (is.null(paths$results)) on.exit(unlink(paths$cache, recursive = TRUE), add = TRUE)

  wanted <- expand.grid(method = c("exact", methods), repetition = seq_len(reps), m = m, stringsAsFactors = FALSE)
  wanted$dataset <- plan$name
  wanted$m[wanted$method == "exact"] <- plan$train
  wanted <- unique(wanted[c("dataset", "m", "repetition", "method")])
  saved <- list(results = read_results(paths$results, result_columns),
                trace = read_results(paths$trace, trace_columns))
  check_saved(saved$results, plan)
  if (!is.null(paths$results)) {
    if (file.access(dirname(paths$results), 2L) != 0L) abort_input("file", describe(file), "in a folder to write to")
    check_data(paths$data, plan, any(saved$results$dataset == plan$name))
  }
  cells <- cells_left(wanted, saved$results, plan, m)
  saved <- run_cells(cells, plan, saved, paths, workers, progress)
  key <- cell_key(wanted)
  out <- saved$results[stats::na.omit(match(key, cell_key(saved$results))), ]
  row.names(out) <- NULL
  invisible(new_experiment(out, saved$trace[cell_key(saved$trace) %in% key, ]))
}

# Returns a list of list(m, repetition, methods), ordered by m. The first cell of a repetition has the exact row.
cells_left <- function(wanted, results, plan, m) {
  left <- wanted[!cell_key(wanted) %in% cell_key(results), ]
  cells <- list()
  for (points in m) for (repetition in unique(wanted$repetition)) {
    exact <- left$repetition == repetition & left$method == "exact"
    here <- left$repetition == repetition & left$m == points & left$method != "exact"
    if (!any(here | exact)) next
    cells[[length(cells) + 1L]] <- list(m = points, repetition = repetition,
                                        methods = c(left$method[exact], left$method[here]))
    left <- left[!(here | exact), ]
  }
  cells
}

run_cells <- function(cells, plan, saved, paths, workers, progress) {
  if (!length(cells)) return(saved)
  workers <- min(workers, length(cells))
  dir.create(paths$cache, FALSE, TRUE)
  apply_cells <- function(cells) lapply(cells, run_cell, plan = plan)
  if (workers > 1L) {
    cluster <- start_workers(workers)
    on.exit(parallel::stopCluster(cluster))
    parallel::clusterCall(cluster, on_worker, plan, "keep_plan")
    apply_cells <- function(cells) parallel::clusterApply(cluster, cells, on_worker, what = "run_kept")
  }
  points <- vapply(cells, `[[`, 0, "m")
  failed <- character()
  clock <- forecaster(plan$name, points, workers, progress)
  rounds <- split(seq_along(cells), cumsum(starts_round(points, workers)))
  for (round in rounds) {
    done <- apply_cells(cells[round])
    # The trace is written first, so that every result in the file has its trace.
    for (part in c("trace", "results")) {
      new <- round_numbers(do.call(rbind, lapply(done, `[[`, part)))
      old <- saved[[part]]
      saved[[part]] <- rbind(old[!cell_key(old) %in% cell_key(new), ], new)
      if (part == "results" || nrow(new)) write_results(saved[[part]], paths[[part]])
    }
    failed <- c(failed, unlist(lapply(done, `[[`, "failed")))
    clock(round, cells[round])
  }
  if (length(failed)) {
    warning(sprintf("%d fits failed; run again to try them once more. The first: %s", length(failed), failed[1L]),
            call. = FALSE)
  }
  saved
}

# Starts new processes with one BLAS thread. A forked child of a process that has used threads may hang.
start_workers <- function(workers) {
  names <- c("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
  old <- Sys.getenv(names, NA)
  on.exit({
    Sys.unsetenv(names[is.na(old)])
    if (any(!is.na(old))) do.call(Sys.setenv, as.list(old[!is.na(old)]))
  })
  Sys.setenv(OPENBLAS_NUM_THREADS = 1, OMP_NUM_THREADS = 1)
  cluster <- parallel::makePSOCKcluster(workers)
  parallel::clusterCall(cluster, function(paths) .libPaths(paths), .libPaths())
  cluster
}

# Rounds numbers as the file has them, so that a resumed experiment has the same numbers as an uninterrupted one.
round_numbers <- function(d) {
  for (j in names(d)) if (is.double(d[[j]])) d[[j]] <- signif(d[[j]], if (j == "objective") 10 else 6)
  d
}

# Returns where a new round begins. A round has cells of one m, at most one for each worker.
starts_round <- function(points, workers) {
  first <- c(TRUE, points[-1L] != points[-length(points)])
  within <- stats::ave(seq_along(points), cumsum(first), FUN = seq_along)
  within %% workers == 1L | workers == 1L
}

# Reports how long the rest will take. The time of a cell with a new m is extrapolated from the last m by m^1.5.
forecaster <- function(name, points, workers, progress) {
  began <- started <- proc.time()[["elapsed"]]
  seconds <- numeric()
  done <- 0L
  function(round, cells) {
    now <- proc.time()[["elapsed"]]
    seconds[as.character(points[round[1L]])] <<- now - started
    started <<- now
    done <<- done + length(round)
    if (!progress) return(invisible())
    last <- points[round[1L]]
    each <- vapply(points, function(m) {
      known <- seconds[as.character(m)]
      if (is.na(known)) seconds[as.character(last)] * (m / last)^1.5 else known
    }, 0)
    left <- sum(each[seq_along(points) > max(round)]) / workers
    text <- sprintf("%s m = %g, repetition %s: %.0f s; %d of %d cells in %s, about %s left",
                    name, last, paste(vapply(cells, `[[`, 0, "repetition"), collapse = ", "),
                    seconds[as.character(last)], done, length(points), show_time(now - began), show_time(left))
    cat(text, "\n", sep = "", file = stderr())
  }
}

show_time <- function(seconds) {
  if (seconds < 120) sprintf("%.0f s", seconds) else sprintf("%.0f min", seconds / 60)
}

# Sets up a worker: its copy of this code keeps the plan, which every cell needs.
on_worker <- function(argument, what) experiment_code()[[what]](argument)

worker <- new.env(parent = emptyenv())

keep_plan <- function(plan) {
  worker$plan <- plan
  invisible()
}

run_kept <- function(cell) run_cell(cell, worker$plan)

# Writes a file in one piece: a reader finds the old file or the new one.
write_results <- function(d, path) {
  if (is.null(path)) return(invisible())
  part <- paste0(path, ".part")
  utils::write.csv(d, if (endsWith(path, ".gz")) gzfile(part) else part, row.names = FALSE, quote = FALSE)
  if (!file.rename(part, path)) abort_input("file", path, "a file that can be written")
}

# Writes a line for each data set: rows, n_aux and a check sum that distinguishes data sets. Results of the paper's sets
# may have no such line.
check_data <- function(path, plan, saved) {
  known <- if (file.exists(path)) utils::read.csv(path, colClasses = c(dataset = "character"), na.strings = character())
  mine <- data.frame(dataset = plan$name, train = plan$train, test = plan$test, n_aux = plan$n_aux,
                     sum = if (is.null(plan$data)) 0 else signif(table_sum(plan$data), 12))
  old <- known[known$dataset == plan$name, ]
  if (is.null(known) || !nrow(old)) {
    if (saved && !plan$name %in% paper_datasets()$name) {
      abort_input("file", sprintf("one with rows of \"%s\" of which it is not known what data they are of", plan$name),
                  "a new one, or give your data another `name`")
    }
    return(write_results(rbind(known, mine), path))
  }
  what <- c(train = "train", test = "test", n_aux = "n_aux", sum = "other data")
  other <- names(what)[abs(unlist(old[names(what)]) - unlist(mine[names(what)])) >
                         1e-10 * abs(unlist(mine[names(what)]))]
  if (length(other)) {
    with <- if (other[1L] == "sum") "other data" else sprintf("%s = %s", other[1L], format(old[[other[1L]]]))
    abort_input("file", sprintf("one with rows of \"%s\" made with %s", plan$name, with),
                "one made with the same data and numbers of rows, or a new one",
                hint = "Or give your data another `name`.")
  }
}

table_sum <- function(d) {
  d <- as.matrix(d)
  i <- seq_len(nrow(d)) / nrow(d)
  sum(abs(d) %*% seq_len(ncol(d))) + sum(crossprod(d, i) * seq_len(ncol(d)))
}

check_saved <- function(results, plan) {
  old <- results[results$dataset == plan$name, ]
  mine <- c(seed = plan$seed, maxit = plan$control$maxit, reltol = plan$control$reltol)
  for (what in names(mine)) {
    other <- old[[what]][abs(old[[what]] - mine[[what]]) > 1e-6 * abs(mine[[what]])]
    if (length(other)) {
      abort_input("file", sprintf("one with rows of \"%s\" made with %s = %s", plan$name, what, format(other[1L])),
                  sprintf("one made with %s = %s, or a new one", what, format(mine[[what]])))
    }
  }
}

# ---- files ----------------------------------------------------------------------------------------------------------

result_columns <- c(
  "dataset", "m", "repetition", "method", "points", "objective", "rmse_mean", "rmse_sd", "kl", "kl_marginal",
  "rmse_pred", "nlpd", "coverage", "certified_mean_error", "seconds", "evaluations", "divergence", "divergence_exact",
  "max_mean", "max_sd", "certified_sd_error", "median_mean", "certified_median", "outside", "cpu", "convergence",
  "noise", "maxit", "reltol", "seed", "version")
trace_columns <- c("dataset", "m", "repetition", "method", "evaluation", "seconds", "objective", "divergence",
                   "divergence_exact", "rmse_mean", "rmse_sd")

csv_end <- "[.]csv([.]gz)?$"

experiment_paths <- function(file) {
  if (is.null(file)) return(list(cache = tempfile("experiment")))
  refuse_if(!is.character(file) || length(file) != 1L || is.na(file) || !grepl(csv_end, file), "file", describe(file),
            "the name of a file ending in .csv or .csv.gz, or NULL")
  if (!dir.exists(dirname(file))) abort_input("file", sprintf("is in a folder that does not exist: %s", describe(file)))
  refuse_if(dir.exists(file), "file", sprintf("is a folder: %s", describe(file)), hint = "Give the name of a file.")
  beside <- function(end) sub(csv_end, end, file)
  list(results = file, trace = beside("-trace.csv\\1"), data = beside("-data.csv"), cache = beside("-cache"))
}

empty_table <- function(columns) {
  text <- columns %in% c("dataset", "method", "version")
  stats::setNames(data.frame(lapply(text, function(t) if (t) character() else numeric())), columns)
}

cell_key <- function(d) paste(d$dataset, d$m, d$repetition, d$method)

# Reads the complete lines of a file of results. The last line may be cut off by an interrupt and is then dropped.
read_results <- function(path, columns, argument = "file") {
  if (is.null(path) || !file.exists(path) || file.size(path) == 0) return(empty_table(columns))
  bytes <- readBin(path, "raw", file.size(path))
  if (endsWith(path, ".gz")) {
    bytes <- tryCatch(memDecompress(bytes, "gzip"), error = function(e) {
      abort_input(argument, sprintf("is not a gzipped file: %s", path))
    })
  }
  end <- max(0L, which(bytes == as.raw(10L)))
  lines <- strsplit(rawToChar(bytes[seq_len(end)]), "\r?\n")[[1L]]
  header <- if (length(lines)) strsplit(gsub("\"", "", lines[1L]), ",", fixed = TRUE)[[1L]]
  refuse_if(!identical(header, columns), argument, sprintf("has other columns than run_experiment() writes: %s", path),
            hint = "Name a new file.")
  fields <- nchar(gsub("[^,]", "", lines)) + 1L
  lines <- lines[fields == length(columns)]
  out <- utils::read.csv(text = lines, colClasses = vapply(empty_table(columns), class, ""))
  out$dataset[is.na(out$dataset)] <- "NA" # the name of a data set
  out[!duplicated(cbind(cell_key(out), if ("evaluation" %in% columns) out$evaluation)), , drop = FALSE]
}

new_experiment <- function(results, trace) {
  structure(results, class = c("pfdtc_experiment", "data.frame"), trace = trace)
}

read_file <- function(file) {
  paths <- experiment_paths(file)
  if (is.null(file) || !file.exists(file)) abort_input("file", describe(file), "a file that run_experiment() wrote")
  new_experiment(read_results(paths$results, result_columns), read_results(paths$trace, trace_columns))
}

as_experiment <- function(results) {
  check_given("results", "Give what run_experiment() returned, or the name of its file.")
  if (is.character(results)) return(read_file(results))
  refuse_if(!is.data.frame(results) || !all(result_columns %in% names(results)), "results", describe(results),
            "what run_experiment() returned, or the name of its file")
  if (inherits(results, "pfdtc_experiment")) results else new_experiment(results, attr(results, "trace"))
}

experiment_methods <- c("pf", "vfe", "sor", "subsample", "default", "vfe_greedy")
