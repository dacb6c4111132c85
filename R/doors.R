# The doors that pfdtc() and the gp_ functions share: arguments -> data and settings -> a fit.

# Called by a default method, whose arguments (in `frame`) are the settings.
matrix_fit <- function(method, call, frame, dots) {
  args <- mget(setdiff(names(formals(sys.function(-1L))), "..."), frame)
  check_dots_empty(dots, names(args))
  missing <- vapply(args[c("x", "y")], identical, NA, formals(function(x) NULL)$x)
  args[c("x", "y")[missing]] <- list(NULL)
  if (wants_workers(args$workers)) abort_input("workers", "TRUE", "NULL beside `x` and `y`: take a formula and `data`")
  data <- data_from_matrix(args$x, args$y, args$weights, args$offset, args$center, args$scale,
                           merge = merges_rows(method), likelihood = as_likelihood(args$family))
  call[[1L]] <- as.name(method)
  start_fit(method, data, call, args)
}

# The default method says what arguments there are.
formula_fit <- function(method, call, envir, dots) {
  call[[1L]] <- as.name(method)
  args <- formula_arguments(dots, get(paste0(method, ".default"), topenv()))
  source <- eval(call$data, envir)
  if (wants_workers(args$workers) && !is_source(source)) source <- frame_on_workers(source)
  if (is_source(source)) return(source_fit(method, source, call, args, envir))
  data <- data_from_formula(call, envir, args$center, args$scale, merge = merges_rows(method),
                            likelihood = as_likelihood(args$family), kernel = args$kernel)
  start_fit(method, data, call, args)
}

wants_workers <- function(workers) !is.null(workers) && check_flag(workers, "workers")

# Rows that come from a source are not kept, but for so few that a data frame of them would be fitted exactly.
source_fit <- function(method, source, call, args, envir) {
  check_source_fit(method, args)
  size <- check_count(getOption("pfdtc.sample", 1e5), "pfdtc.sample")
  chance <- random_state()
  data <- data_from_source(source, call, envir, args$center, args$scale, size, args$kernel)
  args$keep_sample <- check_flag(args$keep_data, "keep_data")
  few <- data$whole$seen <= min(exact_rows, size) && args$keep_data &&
    gp_families[[method]]$chooses && leaves_points_open(args)
  if (few) {
    assign(".Random.seed", chance, envir = globalenv()) # as of a data frame, for which no sample is drawn
    return(fit_of_few(method, source, call, args, envir, data$whole))
  }
  args$keep_data <- FALSE
  start_fit(method, data, call, args)
}

fit_of_few <- function(method, source, call, args, envir, whole) {
  blocks <- source_pass(source, function(block) list(as.data.frame(block)), c)
  at_hand <- call
  at_hand$data <- do.call(rbind, blocks)
  data <- data_from_formula(at_hand, envir, args$center, args$scale, merge = merges_rows(method),
                            kernel = args$kernel)
  fit <- start_fit(method, data, call, args)
  fit$source <- list(label = source$label, rows = whole$seen, omitted = whole$omitted, sample = data$n, passes = 2L)
  fit
}

check_source_fit <- function(method, args) {
  family <- gp_families[[method]]
  if (is.null(family$objective) || family$fitc) {
    abort_input("data", "a row source", sprintf("a data frame for %s()", method),
                hint = "What takes rows from a source is pfdtc(), gp_vfe(), gp_dtc() and gp_sor().")
  }
  for (what in c("tol", "family", "transform")) {
    asked <- if (what == "family") !is.null(as_likelihood(args$family)) else !is.null(args[[what]])
    if (asked) abort_input(what, "given", "left out where rows come from a source")
  }
}

# Arguments that reached a formula method through `...`: known, by name, and complete with the defaults.
formula_arguments <- function(dots, method) {
  defaults <- formals(method)
  defaults <- defaults[setdiff(names(defaults), c("x", "y", "weights", "offset", "..."))]
  unknown <- if (is.null(names(dots))) rep(TRUE, length(dots)) else !(names(dots) %in% names(defaults))
  check_dots_empty(dots[unknown], c("formula", "data", names(defaults), "subset", "weights", "na.action", "offset"))
  args <- lapply(defaults, eval, envir = environment(method))
  args[names(dots)] <- dots
  args
}

start_fit <- function(method, data, call, args) fit_as_asked(data, check_settings(method, call, args))

# Fits the data as `asked`, which check_settings() returns.
fit_as_asked <- function(data, asked) {
  if (!is.null(asked$likelihood)) asked <- complete_likelihood(data, asked)
  if (!is.null(asked$tol)) return(run_fit(data, asked, fit_to_tolerance, tolerance_so_far, tolerance_unmet))
  finish <- if (!is.null(asked[["aux"]]) && aux_keeps_reference(asked[["aux"]])) add_reference
  run_fit(data, asked, function(data, asked, state) fit_by_plan(data, asked, state, finish))
}
