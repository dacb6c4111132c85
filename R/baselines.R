#' Gaussian process regression by other approximations, and exactly
#'
#' The methods that pF-DTC is compared with, on the same engine and under the same verbs as [pfdtc()]: one class,
#' `gp_fit`, and one set of methods. They learn their hyperparameters and choose their kernel as [pfdtc()] does, and
#' have no near rows.
#'
#' * `gp_exact()`: the exact posterior by Cholesky factorisation, \eqn{O(n^3)} time and \eqn{8 n^2} bytes (twice that
#'   with `hyper = "joint"`). Above 100 MB a message says beforehand what it will take; above
#'   `getOption("pfdtc.max_memory", 2^32)` bytes it is refused. Up to 2,000 rows [pfdtc()] computes the same unasked.
#' * `gp_vfe()`: the variational posterior of Titsias (2009), whose inducing points minimise the Kullback-Leibler
#'   divergence. `hyper = "joint"` moves points and hyperparameters together.
#' * `gp_dtc()`, `gp_sor()`, `gp_fitc()`: deterministic training conditional, subset of regressors, and fully
#'   independent training conditional, with inducing points kept where they start. DTC and SoR have the same mean; SoR
#'   leaves out the prior variance that the inducing points do not explain. FITC gives row \eqn{n} the additional
#'   noise \eqn{k(x_n, x_n) - Q_{nn}}{k(x_n, x_n) - Q_nn}.
#' * `gp_subsample()`: the exact posterior of `m` random rows, with the centre of all of them.
#'
#' @inheritParams pfdtc
#' @param m for `gp_subsample()` the number of rows; for the others the most inducing points wanted. `NULL`:
#'   `min(200, n)`.
#' @param hyper `"evidence"`, `"pilot"` and `"fixed"` as in [pfdtc()]; `"joint"`, for `gp_vfe()` and `gp_exact()`,
#'   goes on from the pilot to maximise the ELBO or the exact evidence.
#' @return A fit, as [pfdtc()] returns: a list of class `c("gp_vfe", "gp_fit")` and so on; `posterior` is `"exact"` of
#'   `gp_exact()`, `"far"` of those with inducing points. `gp_exact()` and
#'   `gp_subsample()` have no `inducing` points but the `rows` of their posterior and its factor, also with
#'   `keep_data = FALSE`. `elbo` is the log evidence itself
#'   for `gp_exact()`, that of their own models for `gp_fitc()` and `gp_sor()`, and that of its rows for
#'   `gp_subsample()`.
#' @section Errors: as [pfdtc()]; `gp_exact()` of less than 50 rows warns as it does (`pfdtc_warning_small`).
#' @section Invariants: with all rows as inducing points (or drawn) every method gives the exact posterior, SoR at the
#'   rows only; the SoR variance is never above the DTC variance.
#' @source Titsias (2009), Variational learning of inducing variables in sparse Gaussian processes, AISTATS;
#'   Quinonero-Candela and Rasmussen (2005), A unifying view of sparse approximate Gaussian process regression,
#'   JMLR 6.
#' @seealso [compare_fits()], [kl_divergence()], [pf_divergence()]
#' @name baselines
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' vfe <- gp_vfe(dist ~ speed, cars, m = 5, kernel = exact$kernel, noise = exact$noise,
#'               hyper = "fixed")
#' kl_divergence(vfe, exact)
NULL

# What each method is: the objective its points minimise, whether it has inducing points, whether "joint" applies.
method_table <- list(
  pfdtc = list(objective = "pf", joint = TRUE), gp_vfe = list(objective = "vfe", joint = TRUE),
  gp_dtc = list(objective = "none", joint = FALSE), gp_sor = list(objective = "none", joint = FALSE),
  gp_fitc = list(objective = "none", joint = FALSE), gp_exact = list(joint = TRUE),
  gp_subsample = list(joint = FALSE))

#' @rdname baselines
#' @export
gp_vfe <- function(x, ...) UseMethod("gp_vfe")

#' @rdname baselines
#' @export
gp_vfe.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL,
                           hyper = c("evidence", "pilot", "joint", "fixed"),
                           inducing = NULL, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                           control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit("gp_vfe", match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_vfe.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit("gp_vfe", match.call(), parent.frame(), list(...))
}

#' @rdname baselines
#' @export
gp_dtc <- function(x, ...) UseMethod("gp_dtc")

#' @rdname baselines
#' @export
gp_dtc.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "fixed"),
                           inducing = NULL, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                           control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit("gp_dtc", match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_dtc.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit("gp_dtc", match.call(), parent.frame(), list(...))
}

#' @rdname baselines
#' @export
gp_sor <- function(x, ...) UseMethod("gp_sor")

#' @rdname baselines
#' @export
gp_sor.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "fixed"),
                           inducing = NULL, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                           control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit("gp_sor", match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_sor.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit("gp_sor", match.call(), parent.frame(), list(...))
}

#' @rdname baselines
#' @export
gp_fitc <- function(x, ...) UseMethod("gp_fitc")

#' @rdname baselines
#' @export
gp_fitc.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "fixed"),
                            inducing = NULL, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                            control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit("gp_fitc", match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_fitc.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit("gp_fitc", match.call(), parent.frame(), list(...))
}

#' @rdname baselines
#' @export
gp_subsample <- function(x, ...) UseMethod("gp_subsample")

#' @rdname baselines
#' @export
gp_subsample.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "fixed"),
                                 weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                                 control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit("gp_subsample", match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_subsample.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit("gp_subsample", match.call(), parent.frame(), list(...))
}

#' @rdname baselines
#' @export
gp_exact <- function(x, ...) UseMethod("gp_exact")

#' @rdname baselines
#' @export
gp_exact.default <- function(x, y, kernel = NULL, noise = NULL, hyper = c("evidence", "pilot", "joint", "fixed"),
                             weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                             control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit("gp_exact", match.call(), environment(), list(...))
}

#' @rdname baselines
#' @export
gp_exact.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit("gp_exact", match.call(), parent.frame(), list(...))
}

# ---- the shared front door -----------------------------------------------------------------------------------------

# `frame`: the frame of a default method, whose arguments are the settings.
matrix_fit <- function(method, call, frame, dots) {
  args <- mget(setdiff(names(formals(default_method(method))), "..."), frame)
  check_dots_empty(dots, names(args))
  missing <- vapply(args[c("x", "y")], identical, NA, formals(function(x) NULL)$x)
  args[c("x", "y")[missing]] <- list(NULL)
  data <- data_from_matrix(args$x, args$y, args$weights, args$offset, args$center, args$scale,
                           merge = merges_rows(method))
  call[[1L]] <- as.name(method)
  start_fit(method, data, call, args)
}

formula_fit <- function(method, call, envir, dots) {
  call[[1L]] <- as.name(method)
  args <- formula_arguments(dots, default_method(method))
  data <- data_from_formula(call, envir, args$center, args$scale, merge = merges_rows(method))
  start_fit(method, data, call, args)
}

default_method <- function(method) get(paste0(method, ".default"), mode = "function")

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

# The rows of a subsample are drawn, and FITC's variances belong, to rows as they are.
merges_rows <- function(method) !method %in% c("gp_fitc", "gp_subsample")

start_fit <- function(method, data, call, args) {
  args$keep_data <- check_flag(args$keep_data, "keep_data")
  settings <- c(
    list(method = method, call = if (args$keep_data) call else slim_call(call)), method_table[[method]],
    args[intersect(names(args), c("kernel", "noise", "m", "tol", "hyper", "inducing", "neighbours", "control",
                                  "keep_data"))])
  settings$aux_given <- !is.null(args$aux)
  if (method == "pfdtc") settings$aux <- if (is.null(args$aux)) default_aux() else check_aux(args$aux)
  settings$keep_reference <- !is.null(args$aux) && settings$aux$kind == "reference"
  if (method %in% c("gp_exact", "gp_subsample")) fit_dense(data, settings) else fit_sparse(data, settings)
}

# ---- the exact posterior, of all rows or some ----------------------------------------------------------------------

fit_dense <- function(data, settings) {
  run_fit(data, settings, function(data, s, state) {
    n <- data$n
    if (s$method == "gp_subsample") {
      s$m <- if (is.null(s$m)) min(200L, n) else check_count(s$m, "m", max = n)
    }
    size <- if (s$method == "gp_exact") nrow(data$x) else s$m
    joint <- s$method == "gp_exact" && s$hyper == "joint" && length(s$free) > 0L
    announce_memory(8 * (1 + joint) * as.double(size)^2, size)
    learned <- learn_stage(data, s, state)
    used <- if (s$method == "gp_exact") data else
      run_stage(state, "start", take_rows(data, sample.int(n, s$m)), take_rows(data, seq_len(s$m)))
    done <- c(learned, list(convergence = 0L, message = "nothing to optimise", value = NA_real_))
    if (joint) done <- exact_stage(data, done, s, state)
    posterior <- posterior_stage(state, function() {
      native_exact(used$x, used$y, used$weights, done$kernel, done$noise, s$control)
    })
    new_fit(data, done, s, state, posterior, exact_evidence(used, posterior, done$noise), list(
      small_n = if (s$method == "gp_exact" && length(s$free)) small_n_check(data, posterior),
      rows = used$x, m = if (s$method == "gp_subsample") s$m,
      chosen = if (s$method == "gp_subsample") used$rows))
  })
}

announce_memory <- function(bytes, n) {
  check_memory(bytes, sprintf("the exact posterior of %d rows", as.integer(n)))
  if (bytes >= 1e8) message(sprintf("The exact posterior of %d rows takes %s.", as.integer(n), show_bytes(bytes)))
}

# Some rows of data that were not merged; `rows`: which.
take_rows <- function(data, rows) {
  w <- data$weights[rows]
  shift <- log_density_shift(length(rows), if (is.null(w)) 0 else sum(log(w)), data$scale, 0, 0)
  list(x = data$x[rows, , drop = FALSE], y = data$y[rows], weights = w, n = length(rows), rows = rows,
       scale = data$scale, shift = shift)
}

# log evidence of y as given. The dense factor has the weights in its noise: its density is that of y, not of sqrt(w) y.
exact_evidence <- function(data, posterior, noise) {
  volume <- if (is.null(data$weights)) 0 else sum(log(data$weights)) / 2
  -posterior$minus_evidence - volume + merged_log_density(data$shift, noise) + data$shift$constant
}

# Hyperparameters by the exact evidence.
exact_stage <- function(data, done, s, state) {
  run_stage(state, "objective", {
    parameters <- hyper_parameters(done$kernel, done$noise, s$columns,
                                   setdiff(parameter_names(done$kernel, s$columns), s$free))
    problem <- list(start = parameters$start, evaluate = function(par) {
      too_far <- parameters$too_far(par)
      if (!is.null(too_far)) return(list(value = Inf, reason = too_far))
      now <- parameters$natural(par)
      result <- native_exact_evidence(data$x, data$y, data$weights, now$kernel, now$noise, s$control)
      if (!is.null(result$reason)) return(result)
      hyper_slope(result, parameters, data$shift, now$noise)
    })
    result <- run_minimise(problem, s$control, "hyperparameters")
    count_evaluations(state, "objective", result)
    c(parameters$natural(result$par), result[c("value", "trace", "convergence", "message")], done["pilot"])
  }, otherwise = done)
}

# ---- VFE in points and hyperparameters at once ----------------------------------------------------------------------

vfe_jointly <- function(rows, now, s, state) {
  run_stage(state, "points", {
    problem <- first_that_works(function(jitter) {
      vfe_joint_problem(rows, now$z, now$kernel, now$noise, jitter, s)
    }, max(now$jitter, 1e-8)) # lengthscales move: see learn_hyper()
    result <- run_minimise(problem, s$control, "inducing points and hyperparameters")
    count_evaluations(state, "objective", result)
    found <- problem$natural(result$par)
    now[c("kernel", "noise")] <- found[c("kernel", "noise")]
    take_result(now, c(result, list(z = found$z, natural = function(par) problem$natural(par)$z)))
  }, otherwise = now)
}

vfe_joint_problem <- function(data, z, kernel, noise, jitter, s) {
  parameters <- hyper_parameters(kernel, noise, s$columns, setdiff(parameter_names(kernel, s$columns), s$free))
  points <- vfe_points_problem(data, z, kernel, noise, jitter, s$control)
  scratch <- objective_scratch(z, data$x, kernel, control = s$control)
  in_points <- seq_along(points$start)
  natural <- function(par) c(parameters$natural(par[-in_points]), list(z = points$natural(par[in_points])))
  unit <- rep(points$unit, each = nrow(z))
  list(start = c(points$start, parameters$start), natural = natural, jitter = jitter, evaluate = function(par) {
    too_far <- parameters$too_far(par[-in_points])
    if (!is.null(too_far)) return(list(value = Inf, reason = too_far))
    now <- natural(par)
    result <- native_vfe(now$z, data$x, data$y, data$weights, now$kernel, now$noise, jitter, control = s$control,
                         scratch = scratch)
    if (!is.null(result$reason)) return(result)
    result$gradient <- as.vector(result$gradient[, kernel$inputs]) * unit
    hyper_slope(result, parameters, data$shift, now$noise)
  })
}
