# The paper's experiments: one protocol for every data set, resumable, parallel over repetitions.
#
# A cell is a number of points m and a repetition; it gives a row a method. Whatever is random in it (split, start, rows
# of nu) has a seed of its own, derived from the experiment's seed and the cell's name, so that neither the order of
# cells nor an interruption nor the number of workers changes a number. Workers compute, the master alone writes, and it
# writes a new file beside the old one and renames it.

#' Run an experiment of the paper
#'
#' The protocol of Huggins et al. (2019), section 6, on one data set: several methods, several numbers of inducing
#' points, several repetitions, each measured against the exact Gaussian process.
#'
#' A repetition draws its own split into training and test rows, standardises inputs and response by the training rows,
#' learns kernel (squared exponential, a lengthscale an input) and noise by the pilot, VFE at 200 fixed random inducing
#' points, and computes the exact posterior with them. All methods get these hyperparameters, and none of them what
#' [pfdtc()] has beyond the paper's method (near rows, learning by the evidence, another kernel). Methods are
#'   * `"pf"`: pF-DTC as in the paper, [aux_sor()] on `n_aux` random rows;
#'   * `"vfe"`: [gp_vfe()]; `"sor"`: [gp_sor()], not optimised; both, like `"pf"`, start at the same `m` random rows;
#'   * `"subsample"`: [gp_subsample()] of `m` random rows;
#'   * `"default"`: [pfdtc()] with `m` inducing points, its own auxiliary distribution and its own start, the points
#'     always moved;
#'   * `"vfe_greedy"`: [gp_vfe()] from its own default start, greedy points;
#'   * the exact posterior, always, as method `"exact"` with `m` the number of training rows.
#'
#' Optimisations of every method end by the same rule, that of `control`.
#'
#' A cell's rows go to `file` as soon as it is done, in one piece: an interrupt at any moment loses the cells under way
#' only. Run again, the call does what is not there yet. Repetitions run in parallel on `workers` processes, each with
#' one thread.
#'
#' @param dataset a name from [paper_datasets()], or your own data: a data frame of numbers with the response in the
#'   last column.
#' @param methods names from the list in the details.
#' @param m numbers of inducing points, in the order in which they are run. `NULL`: those of the package's own results,
#'   for data of your own `min(100, train)`.
#' @param reps number of repetitions.
#' @param seed a whole number from which all random numbers are derived.
#' @param file name of the results, ending in `.csv`, or `NULL` for none. Beside it: `<file>-trace.csv` (for
#'   `results.csv`: `results-trace.csv`), `results-data.csv`, which tells data from other data of the same name, and a
#'   folder `results-cache` with pilots and exact posteriors at the test rows, which more cells will need: delete it
#'   when all are done.
#' @param trace which of the `m` to keep the course of: errors and divergences every few iterations, of cells that are
#'   not done yet. `NULL`: none.
#' @param control see [pfdtc_control()]. `maxit = NULL` is 200 here.
#' @param workers number of processes.
#' @param certify certify every fit by [certify()] with its [reference()] of `4 m` points?
#' @param train,test,n_aux rows to train and test on, rows that nu is made of. `NULL`: Table 1's; for data of your own
#'   80 and 20 % of the rows, and those of [aux_sor()].
#' @param name what to call your own data.
#' @param dir see [load_dataset()].
#' @param progress report each round of cells, the forecast and the time left, on stderr?
#' @return Invisibly, a data frame of class `pfdtc_experiment` of the experiment's rows: `dataset`, `m` (asked for),
#'   `repetition`, `method`, then columns as in [compare_fits()], with response and errors in units of the sd of the
#'   training rows' response, and
#'   \describe{
#'   \item{points}{inducing points, or rows of the subsample.}
#'   \item{objective}{what the fit minimised: values of different methods are not comparable.}
#'   \item{divergence}{[pf_divergence()] under the nu of the fit; `NA` for other methods than `"pf"` (that of
#'     `"default"` is measured in another norm).}
#'   \item{divergence_exact}{[pf_divergence()] with the exact posterior, for DTC-type fits.}
#'   \item{max_mean, max_sd}{largest errors of mean and sd over the test rows.}
#'   \item{certified_mean_error, certified_sd_error}{largest certified errors over the test rows.}
#'   \item{median_mean, certified_median}{medians over the test rows of the mean's error and of its certificate.}
#'   \item{outside}{number of test rows where a certificate did not hold (there should be none).}
#'   \item{cpu}{seconds of the processor.}
#'   \item{convergence, noise, maxit, reltol, seed, version}{as in the fit, and of the experiment.}
#'   }
#'   Attribute `trace` is the data frame of the trace file, of these cells.
#' @section Errors: class `pfdtc_error_input`: arguments as always; data that are missing ([load_dataset()]); a file
#'   that holds other columns, rows of this data set under another seed or stopping rule, or of other data by its name.
#' @section Invariants: interrupting and resuming, other workers, other orders of `m` change no number but the seconds.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), section 6.
#' @seealso [plot_rmse()], [plot_kl()], [plot_divergence_error()], `vignette("paper")`
#' @examples
#' small <- data.frame(x = cars$speed, y = cars$dist)
#' results <- run_experiment(small, c("pf", "vfe"), m = 4, reps = 1,
#'                           control = pfdtc_control(maxit = 10))
#' results[c("method", "rmse_mean", "rmse_sd", "certified_mean_error")]
#' @export
run_experiment <- function(dataset, methods = c("pf", "vfe", "sor", "subsample", "default"), m = NULL, reps = 10,
                           seed = 1, file = NULL, trace = NULL, control = pfdtc_control(200, reltol = 1e-5),
                           workers = 1, certify = TRUE, train = NULL, test = NULL, n_aux = NULL, name = "own",
                           dir = Sys.getenv("PFDTC_DATA"), progress = interactive()) {
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
  if (is.null(plan$control$maxit)) plan$control$maxit <- 200L # points are moved, whatever that would change
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

check_methods <- function(methods) {
  if (!is.character(methods) || !length(methods) || !all(methods %in% experiment_methods)) {
    abort_input("methods", describe(methods), paste("some of", list_quoted(experiment_methods, "\"", 10L)))
  }
  unique(methods)
}

# Numbers of points, the ones to start with first.
paper_points <- list(synthetic = c(21, 10, 30, 46), airfoil = c(200, 100, 50, 25), abalone = c(100, 50, 200, 25),
                     wine = c(100, 50, 200, 25), ccpp = c(100, 50, 200, 25), delays10k = c(100, 50, 200, 25))

default_points <- function(plan) {
  points <- paper_points[[plan$name]]
  if (is.null(points)) points <- min(100, plan$train)
  points
}

# list(name, data, train, test, n_aux): `data` NULL where every repetition draws its own.
experiment_plan <- function(dataset, train, test, n_aux, name, dir) {
  if (is.character(dataset)) {
    sets <- paper_datasets()
    set <- sets[sets$name == check_choice(dataset, sets$name, "dataset"), ]
    data <- if (set$name != "synthetic") load_dataset(set$name, dir)
    n <- if (is.null(data)) Inf else nrow(data)
  } else {
    if (!is.data.frame(dataset) || ncol(dataset) < 2L) {
      abort_input("dataset", describe(dataset), "a name from paper_datasets(), or a data frame with the response last")
    }
    check_table(dataset)
    if (is.character(name) && any(name == paper_datasets()$name)) {
      abort_input("name", describe(name), "another word", hint = "That is one of paper_datasets().")
    }
    if (!is.character(name) || length(name) != 1L || !grepl("^[[:alnum:]_.-]+$", name)) {
      abort_input("name", describe(name), "a word")
    }
    n <- nrow(dataset)
    set <- list(name = name, n_train = floor(0.8 * n), n_test = n - floor(0.8 * n), n_aux = NULL)
    data <- dataset
  }
  train <- if (is.null(train)) set$n_train else check_count(train, "train", min = 2)
  test <- if (is.null(test)) set$n_test else check_count(test, "test")
  if (train + test > n) {
    abort_input("train", sprintf("%d rows, and %d to test on", as.integer(train), as.integer(test)),
                sprintf("so few that with those to test on they are at most %d", n))
  }
  if (is.null(n_aux)) n_aux <- if (is.null(set$n_aux)) min(ceiling(train / 10), 1000) else min(set$n_aux, train)
  list(name = set$name, data = data, train = train, test = test, n_aux = check_count(n_aux, "n_aux", max = train))
}

# ---- cells ----------------------------------------------------------------------------------------------------------

# A list of list(m, repetition, methods), m outermost. The exact row comes with the first cell of a repetition.
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
    parallel::clusterCall(cluster, keep_plan, plan)
    apply_cells <- function(cells) parallel::clusterApply(cluster, cells, run_cell)
  }
  points <- vapply(cells, `[[`, 0, "m")
  failed <- character()
  clock <- forecaster(plan$name, points, workers, progress)
  rounds <- split(seq_along(cells), cumsum(starts_round(points, workers)))
  for (round in rounds) {
    done <- apply_cells(cells[round])
    # a result says that its trace is there: the trace first
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

# As they are written: a resumed experiment then has the same numbers as one run at once.
round_numbers <- function(d) {
  for (j in names(d)) if (is.double(d[[j]])) d[[j]] <- signif(d[[j]], if (j == "objective") 10 else 6)
  d
}

# Where a new round begins: cells of one m, as many as there are workers.
starts_round <- function(points, workers) {
  first <- c(TRUE, points[-1L] != points[-length(points)])
  within <- stats::ave(seq_along(points), cumsum(first), FUN = seq_along)
  within %% workers == 1L | workers == 1L
}

# Says how long the rest will take: cells of an m not yet met by the time of the last one, like m^1.5.
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

# Fresh processes with a BLAS of one thread; a forked child of a process that has used threads may hang.
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

worker <- new.env(parent = emptyenv())

keep_plan <- function(plan) {
  worker$plan <- plan
  invisible()
}

# One cell: list(results, trace).
run_cell <- function(cell, plan = NULL) {
  if (is.null(plan)) plan <- worker$plan
  threads <- options(pfdtc.threads = 1L)
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit({
    options(threads)
    if (is.null(old)) rm(".Random.seed", envir = globalenv()) else assign(".Random.seed", old, globalenv())
  })
  rows <- repetition_rows(plan, cell$repetition)
  truth <- repetition_truth(plan, cell$repetition, rows)
  start <- with_cell_seed(plan, cell, "start", inducing_points(rows$x, cell$m, truth$kernel, "random"))
  keep <- new.env(parent = emptyenv()) # the exact factor, made when a method first needs it
  done <- lapply(cell$methods, function(method) {
    tryCatch(run_method(method, cell, plan, rows, truth, start, keep), error = function(e) {
      list(failed = sprintf("%s, m = %g, repetition %g, %s: %s", plan$name, cell$m, cell$repetition, method,
                            conditionMessage(e)))
    })
  })
  bind <- function(part, columns) do.call(rbind, c(list(empty_table(columns)), lapply(done, `[[`, part)))
  list(results = bind("results", result_columns), trace = bind("trace", trace_columns),
       failed = unlist(lapply(done, `[[`, "failed")))
}

# A seed for each purpose: a linear congruential step a character and number, exact in double precision.
derived_seed <- function(seed, ...) {
  words <- unlist(lapply(list(...), function(w) if (is.character(w)) utf8ToInt(w) else w))
  Reduce(function(h, w) (h * 69069 + w + 1) %% (2^31 - 1), words, seed %% (2^31 - 1))
}

with_cell_seed <- function(plan, cell, purpose, code) {
  set.seed(derived_seed(plan$seed, plan$name, cell$repetition, cell$m, purpose), "Mersenne-Twister", "Inversion",
           "Rejection")
  force(code)
}

# list(x, y, test, y_test), standardised by the training rows.
repetition_rows <- function(plan, repetition) {
  with_cell_seed(plan, list(repetition = repetition, m = 0), "split", {
    data <- if (is.null(plan$data)) draw_synthetic(plan$train + plan$test) else plan$data
    rows <- sample.int(nrow(data), plan$train + plan$test)
  })
  data <- data[rows, ]
  train <- seq_len(plan$train)
  u <- as.matrix(data[-ncol(data)])
  storage.mode(u) <- "double"
  dimnames(u) <- list(NULL, colnames(u))
  y <- data[[ncol(data)]]
  center <- colMeans(u[train, , drop = FALSE])
  unit <- apply(u[train, , drop = FALSE], 2L, stats::sd)
  unit[!(unit > 0)] <- 1
  u <- (u - rep(center, each = nrow(u))) / rep(unit, each = nrow(u))
  y <- (y - mean(y[train])) / stats::sd(y[train])
  list(x = u[train, , drop = FALSE], y = y[train], test = u[-train, , drop = FALSE], y_test = y[-train])
}

# Pilot and exact posterior of a repetition: list(kernel, noise, mean, var, fit = the exact fit without its rows and
# factor, trace_P, seconds, cpu, pilot = evaluations). Kept in the cache, since every m needs it.
repetition_truth <- function(plan, repetition, rows) {
  path <- file.path(plan$cache, sprintf("%s-%d-%.0f.rds", plan$name, as.integer(repetition), plan$seed))
  print <- list(fingerprint(rows), dim(rows$test), sum(rows$test))
  if (file.exists(path)) {
    truth <- tryCatch(readRDS(path), error = function(e) NULL)
    if (identical(truth$made_from, print)) return(truth)
  }
  pilot <- with_cell_seed(plan, list(repetition = repetition, m = 0), "pilot", {
    whole_fit(gp_dtc(rows$x, rows$y, m = 1, kernel = kernel_se(), hyper = "pilot", inducing = "random", center = FALSE,
                     scale = FALSE, keep_data = FALSE, control = pfdtc_control(200, threads = 1L, progress = FALSE)))
  })
  started <- proc.time()
  exact <- exact_fit(rows, pilot)
  at <- posterior_at(exact, rows$test)
  used <- proc.time() - started
  slim <- exact
  slim["factors"] <- slim["rows"] <- list(NULL)
  truth <- list(kernel = pilot$kernel, noise = pilot$noise, mean = at$mean, var = at$var, fit = slim,
                trace_P = trace_of_inverse(exact), seconds = used[["elapsed"]], cpu = cpu_of(used),
                pilot = sum(pilot$evaluations), made_from = print)
  part <- tempfile(basename(path), dirname(path))
  saveRDS(truth, part)
  file.rename(part, path)
  truth
}

cpu_of <- function(time) sum(time[c("user.self", "sys.self")])

exact_fit <- function(rows, hyper) {
  suppressMessages(gp_exact(rows$x, rows$y, kernel = hyper$kernel, noise = hyper$noise, hyper = "fixed", center = FALSE,
                            scale = FALSE, control = pfdtc_control(threads = 1L)))
}

# ---- one method -----------------------------------------------------------------------------------------------------

run_method <- function(method, cell, plan, rows, truth, start, keep) {
  if (method == "exact") return(list(results = exact_row(cell, plan, rows, truth)))
  traced <- cell$m %in% plan$trace && method %in% c("pf", "vfe", "default", "vfe_greedy")
  started <- proc.time()
  fit <- with_cell_seed(plan, cell, method, fit_method(method, cell, plan, rows, truth, start, traced))
  cpu <- cpu_of(proc.time() - started)
  at <- posterior_at(fit, rows$test)
  row <- result_row(plan, cell$m, cell$repetition, method, at, rows, truth)
  row$points <- fit$m
  row$objective <- fit$objective
  row$kl <- kl_divergence(fit, truth$fit)
  row$seconds <- sum(fit$seconds)
  row$evaluations <- sum(fit$evaluations)
  row$cpu <- cpu
  row$convergence <- fit$convergence
  if (method == "pf") row$divergence <- pf_divergence(fit)
  if (fit$method %in% c("pfdtc", "gp_vfe")) {
    if (is.null(keep$exact)) keep$exact <- exact_fit(rows, truth)
    row$divergence_exact <- divergence_from_exact(fit, keep$exact, truth$trace_P)
  }
  if (plan$certify) row <- certified_row(row, fit, plan, cell, rows, truth)
  list(results = row, trace = if (traced) course(fit, row, plan, cell, rows, truth, start, keep$exact))
}

fit_method <- function(method, cell, plan, rows, truth, start, traced) {
  control <- plan$control
  if (traced) control$trace <- 5L
  args <- list(rows$x, rows$y, kernel = truth$kernel, noise = truth$noise, hyper = "fixed", center = FALSE,
               scale = FALSE, control = control)
  by_m <- method %in% c("subsample", "default", "vfe_greedy")
  args <- c(args, if (by_m) list(m = cell$m) else list(inducing = start),
            if (method == "pf") list(aux = aux_sor(size = plan$n_aux)),
            if (method %in% c("pf", "default")) list(neighbours = 0),
            if (method == "vfe_greedy") list(inducing = "greedy"))
  fit <- switch(method, pf = , default = pfdtc, vfe = , vfe_greedy = gp_vfe, sor = gp_sor, subsample = gp_subsample)
  whole_fit(do.call(fit, args))
}

# An interrupted fit is no result: the interrupt goes on to end the experiment.
whole_fit <- function(fit) {
  withCallingHandlers(fit, pfdtc_warning_convergence = function(w) {
    if (identical(w$fit$convergence, 52L)) stop(structure(class = c("interrupt", "condition"),
                                                          list(message = "interrupted", call = NULL)))
  })
}

result_row <- function(plan, m, repetition, method, at, rows, truth) {
  row <- empty_table(result_columns)
  row[1L, ] <- NA
  error_mean <- abs(at$mean - truth$mean)
  error_sd <- abs(sqrt(at$var) - sqrt(truth$var))
  rms <- function(e) sqrt(mean(e^2))
  e <- rows$y_test - at$mean
  var <- at$var + truth$noise
  new <- list(
    dataset = plan$name, m = m, repetition = repetition, method = method, rmse_mean = rms(error_mean),
    rmse_sd = rms(error_sd), kl_marginal = kl_marginal(at, truth), rmse_pred = rms(e),
    nlpd = mean(log(2 * pi * var) + e^2 / var) / 2, coverage = mean(abs(e) <= stats::qnorm(0.975) * sqrt(var)),
    max_mean = max(error_mean), max_sd = max(error_sd), median_mean = stats::median(error_mean), noise = truth$noise,
    maxit = plan$control$maxit, reltol = plan$control$reltol, seed = plan$seed,
    version = as.character(utils::packageVersion("pfdtc")))
  row[names(new)] <- new
  row
}

exact_row <- function(cell, plan, rows, truth) {
  row <- result_row(plan, plan$train, cell$repetition, "exact", truth, rows, truth)
  new <- list(points = nrow(rows$x), kl = 0, divergence_exact = 0, seconds = truth$seconds, cpu = truth$cpu,
              evaluations = truth$pilot, objective = -truth$fit$evidence, convergence = 0)
  row[names(new)] <- new
  row
}

certified_row <- function(row, fit, plan, cell, rows, truth, at, keep) {
  # a reference is made as good as the fit needs it: each has its own
  bounds <- with_cell_seed(plan, cell, "certify", {
    certify(fit, rows$test, reference = reference(fit, min(4 * cell$m, nrow(rows$x))))
  })
  sd <- sqrt(truth$var)
  row$certified_mean_error <- max(bounds$mean_error)
  row$certified_median <- stats::median(bounds$mean_error)
  row$certified_sd_error <- max(bounds$sd - bounds$sd_lower, bounds$sd_upper - bounds$sd)
  room <- 1e-9 # the exact posterior itself is known to rounding only
  row$outside <- sum(truth$mean < bounds$mean_lower - room | truth$mean > bounds$mean_upper + room |
                       sd < bounds$sd_lower - room | sd > bounds$sd_upper + room)
  row
}

# Errors and divergences at the points kept along the optimisation, and at the start where that is known.
course <- function(fit, row, plan, cell, rows, truth, start, exact) {
  kept <- fit$z_trace
  if (fit$inducing_method == "given") kept <- c(list(list(evaluation = 1L, z = start)), kept)
  if (!length(kept)) return(NULL)
  at <- fit$trace[match(vapply(kept, `[[`, 0, "evaluation"), fit$trace$evaluation), ]
  # the objective lacks a constant, s2^2 d^2 - C: the final divergence gives it
  squares <- at$objective - fit$objective + (row$divergence * truth$noise)^2
  out <- data.frame(dataset = plan$name, m = cell$m, repetition = cell$repetition, method = row$method,
                    evaluation = at$evaluation, seconds = at$seconds, objective = at$objective,
                    divergence = sqrt(pmax(squares, 0)) / truth$noise)
  errors <- vapply(kept, function(k) {
    dtc <- gp_dtc(rows$x, rows$y, kernel = truth$kernel, noise = truth$noise, hyper = "fixed", inducing = k$z,
                  center = FALSE, scale = FALSE, control = plan$control)
    p <- posterior_at(dtc, rows$test)
    c(divergence_from_exact(dtc, exact, truth$trace_P), sqrt(mean((p$mean - truth$mean)^2)),
      sqrt(mean((sqrt(p$var) - sqrt(truth$var))^2)))
  }, numeric(3))
  cbind(out, divergence_exact = errors[1L, ], rmse_mean = errors[2L, ], rmse_sd = errors[3L, ])
}
