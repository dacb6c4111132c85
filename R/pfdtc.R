#' Gaussian process regression for few and for many rows
#'
#' Learns the hyperparameters of a Gaussian process, chooses its kernel and computes its posterior. For Gaussian
#' responses the default posterior is exact up to 5,000 rows in memory, or 8,000 if that predicts better. Otherwise it
#' uses inducing points, with neighbours if needed. [certify()] bounds the approximation error.
#' @usage
#' pfdtc(x, ...)
#'
#' \method{pfdtc}{default}(x, y, m = NULL, tol = NULL, kernel = NULL, noise = NULL,
#'   hyper = c("evidence", "pilot", "joint", "fixed"), aux = NULL, neighbours = NULL,
#'   family = stats::gaussian(), approx = c("laplace", "vi"), mean = ~1,
#'   transform = getOption("pfdtc.transform", "auto"), like = NULL, plain = FALSE,
#'   workers = NULL, inducing = NULL, weights = NULL, offset = NULL, center = TRUE,
#'   scale = TRUE, control = pfdtc_control(), keep_data = TRUE, ...)
#'
#' \method{pfdtc}{formula}(formula, data, ..., subset, weights, na.action, offset)
#' @param x inputs: a matrix, a data frame or a formula.
#' @param y response: numbers, classes, times or two columns of counts.
#' @param m maximum number of inducing points. Default: all rows for an exact posterior, else up to 800
#'   (`vignette("defaults")`). With a `family`, all up to 2,000 (many classes: fewer).
#' @param tol accuracy to certify: error of the mean of f in sds of the (transformed) response, and relative error of
#'   the sd of f.
#' @param kernel a kernel, see [kernel_se()]. Parameters that are `NULL` are learned. Given values start the search; a
#'   given period or matrix stays. Default: the best of several kernels.
#' @param noise noise variance, in squared units of `y`, from which the search starts; 0 interpolates. A formula models
#'   its log: `~ 1`, `~ x1` (linear), `~ smooth(x1)`. Default: constant or smooth, chosen with `transform`.
#' @param hyper `"evidence"`: see Details; `"fixed"` learns neither kernel nor Gaussian noise. `"pilot"` maximises the
#'   ELBO of Titsias (2009) with 200 random points; `"joint"` then optimises points and hyperparameters in turn.
#' @param aux auxiliary distribution of the pF-DTC objective that moves inducing points, see [aux_sor()].
#' @param neighbours number of nearest neighbours beside inducing points. Default: 0, or at least 40 if needed.
#' @param family [binomial()], [multinomial()], [ordinal()], [poisson()], [nb()], `Gamma("log")`, [weibull()],
#'   [tobit()], [tweedie()], [student()] or [gp_family()]. Default: by the response's type;
#'   numbers: Gaussian (or `student()`, `loglogistic()`).
#' @param approx `"laplace"` or `"vi"` (variational), for a `family` of one f.
#' @param mean `~ x1`: a + b x1 (if Gaussian). `~ 1`: chosen with `kernel`.
#' @param transform `"log"` or `"yeojohnson"`, applied to the response; `"none"`; or `fit$transform` of another fit.
#'   `"auto"` chooses, unless inducing points are requested (`"none"`).
#' @param like a Gaussian fit whose model is taken; nothing is learned.
#' @param plain `TRUE`: response and inputs as given, constant noise, one kernel of all inputs; a linear mean if
#'   likelier.
#' @param workers `TRUE` fits on the workers of [rows_parts()].
#' @param inducing start: an [inducing_points()] method, matrix or fit. Default: `"greedy"`, or for
#'   points that move `"divergence"` if better.
#' @param weights,offset `weights` divide `noise` or, with a `family`, multiply log likelihoods; `offset` is added to f.
#' @param center,scale `center`: estimate the constant mean (`FALSE`: 0; a `family` also takes numbers)? `scale`:
#'   divide `y` by its sd?
#' @param control options of the computation, see [pfdtc_control()].
#' @param keep_data keep the rows? Exact fits and some methods need them.
#' @param formula,data,subset,na.action as in [lm()]. Inputs may be factors. `(1 | g)` is a group ([kernel_group()]).
#'   `data` may be a row source ([rows_blocks()]) or a spatial object ([sphere()]).
#' @param ... for a formula, arguments of the default method, by name.
#' @return A list of class `c("pfdtc", "gp_fit")`; [pfdtc_fit] describes its elements. `posterior` is `"exact"`, `"far"`
#'   (inducing points) or `"far + near"` (with neighbours). `because` has the reasons.
#' @details
#' The model is \eqn{y_n = f(x_n) + e_n}, \eqn{e_n \sim N(0, \sigma^2 / w_n)}{e_n ~ N(0, s2 / w_n)}, with a Gaussian
#' process prior on f. A fit first *learns* kernel and noise. It maximises the Vecchia likelihood (each response given
#' its nearest neighbours) from several starts, then, up to 2,000 rows, the exact log marginal likelihood. The fit
#' then *chooses* the kind of posterior and *computes* it from all rows. An argument that is given replaces the
#' choice. `m`, `tol`, `inducing`, `aux`, `hyper = "pilot"` and `"joint"` request inducing points.
#'
#' The exact posterior costs \eqn{O(n^3)}{O(n^3)} time and \eqn{8 n^2}{8 n^2} bytes, inducing points \eqn{O(n m^2)}{O(n
#' m^2)} time. [set.seed()] reproduces a fit on one machine. An interrupt returns the best fit so far, with a warning.
#' @section Errors and invariants: Own errors have class `pfdtc_error_input`, `pfdtc_error_numerical` or, if a row
#'   source fails, `pfdtc_error_source`. Warnings have class `pfdtc_warning_convergence` or `pfdtc_warning_small` (a
#'   linear model or the mean predicts better; successes are not whole). With all rows as inducing points the
#'   posterior is exact. With `hyper = "fixed"`, a row of weight 2 counts as two rows.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), AISTATS,
#'   \url{https://proceedings.mlr.press/v89/huggins19a.html}; Vecchia (1988), JRSS B 50.
#' @seealso [predict.gp_fit()], [certify()], [pfdtc_fit]; `vignette("pfdtc")`, `vignette("defaults")`,
#'   `vignette("modelling")`, `vignette("likelihoods")`, `vignette("large")`.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' fit
#' predict(fit, data.frame(speed = c(5, 15)), interval = "prediction")
#' # inducing points with the same model, and a certified accuracy
#' pfdtc(dist ~ speed, cars, m = 10, like = fit)
#' pfdtc(dist ~ speed, cars, tol = 0.02, kernel = kernel_se(), hyper = "pilot")
#' manual <- pfdtc(am ~ wt + hp, mtcars, family = binomial(), kernel = kernel_se())
#' predict(manual, data.frame(wt = 3, hp = 120), type = "response", se.fit = TRUE)
#' @aliases pfdtc.default pfdtc.formula
#' @export
pfdtc <- function(x, ...) UseMethod("pfdtc")

#' @export
pfdtc.default <- function(x, y, m = NULL, tol = NULL, kernel = NULL, noise = NULL,
                          hyper = c("evidence", "pilot", "joint", "fixed"), aux = NULL,
                          neighbours = NULL, family = stats::gaussian(), approx = c("laplace", "vi"), mean = ~1,
                          transform = getOption("pfdtc.transform", "auto"), like = NULL, plain = FALSE, workers = NULL,
                          inducing = NULL, weights = NULL, offset = NULL, center = TRUE, scale = TRUE,
                          control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

#' @export
pfdtc.formula <- function(formula, data, ..., subset, weights, na.action, offset) {
  formula_fit(.Generic, match.call(), parent.frame(), ...names(), list(...))
}

# ---- arguments -> data and settings -> a fit ------------------------------------------------------------------------

# Fits the rows of a matrix. `frame` has the arguments of a default method. If `formula` is a named argument after the
# data, as in data |> pfdtc(formula = y ~ x), fits this formula.
matrix_fit <- function(method, call, frame, dots) {
  # Do not evaluate `dots` before this test, because weights may be columns of the data.
  if (inherits(eval(call$formula, parent.frame(2L)), "formula")) {
    data <- if ("data" %in% names(call)) "data" else "x"
    given <- c(list(formula = call$formula, data = call[[data]]),
               as.list(call)[setdiff(names(call), c("", data, "formula"))])
    return(eval(as.call(c(get(method, topenv()), given)), parent.frame(2L)))
  }
  args <- mget(setdiff(names(formals(sys.function(-1L))), "..."), frame)
  call <- without_dots(call, parent.frame(2L))
  check_dots_empty(dots, names(args))
  args <- model_asked(args)
  missing <- vapply(args[c("x", "y")], identical, NA, formals(function(x) NULL)$x)
  args[c("x", "y")[missing]] <- list(NULL)
  x <- args$x
  y <- args$y
  text <- is.character(y) && length(y) == 1L && y %in% names(x)
  if (is.data.frame(x) && ncol(x) && (is.null(y) || text || inherits(y, "formula"))) { # did the user mean a formula?
    formula <- if (inherits(y, "formula")) deparse1(y) else paste(if (text) y else names(x)[1L], "~ .")
    abort_input("y", if (is.null(y)) "is missing" else describe(y),
                if (!is.null(y)) "a vector with a number for each row of `x`",
                hint = sprintf("For a data frame write %s(%s, %s).", method, formula,
                               if (is.symbol(call$x)) as.character(call$x) else "data"))
  }
  refuse_if(check_flag(args$workers %||% FALSE, "workers"), "workers", "cannot be combined with `x` and `y`",
            hint = "Give a formula and `data`.")
  likelihood <- likelihood_asked(args, names(call))
  data <- data_from_matrix(x, y, args$weights, args$offset, args$center, args$scale, merge = merges_rows(method),
                           likelihood = likelihood)
  call[[1L]] <- as.name(method)
  fit_by_family(method, data, call, args)
}

# Fits a formula, which the call names `formula` or `x`. `dots` has the other arguments, and `given` their names.
formula_fit <- function(method, call, envir, given, dots) {
  if ("x" %in% names(call)) names(call) <- sub("^x$", "formula", sub("^formula$", "data", names(call)))
  args <- model_asked(formula_arguments(dots, get(paste0(method, ".default"), topenv()), given))
  call <- replace(without_dots(call, envir), 1L, list(as.name(method)))
  source <- eval(call$data, envir)
  if (check_flag(args$workers %||% FALSE, "workers") && !is_source(source)) source <- frame_on_workers(source)
  if (is_source(source)) return(source_fit(method, source, call, args, envir))
  data <- data_from_formula(call_with_places(call, envir), envir, args$center, args$scale, merges_rows(method),
                            likelihood = likelihood_asked(args, names(dots)), kernel = args$kernel, mean = args$mean)
  fit_by_family(method, data, call, args)
}

# Returns the likelihood of the argument `family`, or "by response" if the response determines it: the user's arguments,
# named in `given`, neither include a family nor need Gaussian noise.
likelihood_asked <- function(args, given) {
  gaussian <- is.null(args$family) || !is.null(args$noise) || asks_for_transform(args$transform)
  if (gaussian || "family" %in% given) as_likelihood(args$family) else "by response"
}

# Fits the cleaned data. If the response determined the family, that is data$family.
fit_by_family <- function(method, data, call, args) {
  family <- data$family %||% args$family
  kept <- data$kept
  data[c("family", "kept")] <- NULL
  args$began <- proc.time()[["elapsed"]]
  fit_with <- function(family) fit_as_asked(data, check_settings(method, call, replace(args, "family", list(family))))
  fit <- if (identical(family, "times")) best_of_times(fit_with) else fit_with(family)
  if (!is.null(fit$data)) fit$data$kept <- kept
  fit
}

# Fits the rows of a source: up to dense_rows rows like a data frame if the posterior may be exact, else by blocks.
source_fit <- function(method, source, call, args, envir) {
  family <- gp_families[[method]]
  refuse_if(is.null(family$objective) || family$fitc, "data",
            sprintf("is a row source, which %s() does not read", method),
            hint = "pfdtc(), gp_vfe(), gp_dtc() and gp_sor() do.")
  refuse_if(!is.null(args$noise_trend), "like", "has heteroscedastic noise, which is not available for a row source")
  given <- c(tol = !is.null(args$tol), family = !is.null(as_likelihood(args$family)),
             transform = asks_for_transform(args$transform))
  if (any(given)) abort_input(names(which(given))[1L], "is not available for a row source", hint = only_in_memory)
  size <- check_count(getOption("pfdtc.sample", 1e5), "pfdtc.sample")
  chance <- random_state()
  data <- data_from_source(source, call, envir, args$center, args$scale, size, args$kernel, args$mean)
  whole <- data$whole
  args$keep_sample <- check_flag(args$keep_data, "keep_data")
  few <- whole$seen <= min(dense_rows, size) && args$keep_data && family$chooses && leaves_points_open(args)
  args$keep_data <- few
  if (!few) return(fit_by_family(method, data, call, args))
  assign(".Random.seed", chance, envir = globalenv()) # restores the state before sampling
  at_hand <- call
  at_hand$data <- do.call(rbind, source_pass(source, function(block) list(as.data.frame(block)), c))
  data <- data_from_formula(at_hand, envir, args$center, args$scale, merges_rows(method), NULL, args$kernel, args$mean)
  fit <- fit_by_family(method, data, call, args)
  fit$source <- list(label = source$label, rows = whole$seen, omitted = whole$omitted, sample = data$n, passes = 2L)
  fit
}

# Returns the arguments that a formula method got as `...`, with checked names, and defaults for the others.
formula_arguments <- function(dots, method, given = names(dots)) {
  defaults <- formals(method)
  defaults <- defaults[setdiff(names(defaults), c("x", "y", "weights", "offset", "..."))]
  # Check names before `dots` are evaluated: a misspelt `weights` may name a column, which exists only in `data`.
  if (is.null(given)) given <- rep("", length(dots))
  check_dots_empty(setdiff(given, c("x", names(defaults))),
                   c("formula", "data", names(defaults), "subset", "weights", "na.action", "offset"))
  replace(lapply(defaults, eval, envir = environment(method)), names(dots), dots)
}

# Fits `data` with the checked settings `given`. Then tries another family, if none was given, and a linear kernel, if
# most responses are equal. Raises warnings.
fit_as_asked <- function(data, given) {
  asked <- if (is.null(given$likelihood)) given else complete_likelihood(data, given)
  state <- no_state()
  fit <- suspendInterrupts({
    fit <- fit_once(data, asked, state)
    late <- !is.null(state$stopped) || 4 * sum(state$seconds) > asked$control$max_seconds
    if (!late) fit <- rival_if_better(fit, data, given, state$open)
    if (!late && isTRUE(state$open)) linear_if_better(fit, data, asked) else fit
  })
  if (!is.null(state$stopped)) {
    fit[c("convergence", "message")] <- state$stopped
    warn_convergence(sprintf("The fit was stopped early (%s) after %d evaluations. It is the best so far%s.",
                             state$stopped$message, as.integer(sum(state$evaluations)),
                             if (is.null(fit$tol)) "" else paste0(": ", describe_tolerance(fit))), fit = fit)
  } else if (isFALSE(fit$tol$met)) {
    words <- tolerance_words(fit)
    warn_convergence(sprintf("`tol` = %s was not met. The fit, %s, has an error of at most %s: %s. %s",
                             format(fit$tol$asked), words[2L], words[1L], words[3L], fit$tol$needs), fit = fit)
  } else if (isTRUE(attr(fit$learned, "ended")) ||
               any(c(fit$pilot$convergence, if (is.null(fit$tol) || !is.null(fit$likelihood)) fit$convergence) == 2L)) {
    fit[c("convergence", "message")] <- list(2L, "`max_seconds` was reached")
    warn_convergence(paste("The search for hyperparameters or inducing points ended at `max_seconds` before it had",
                           "converged. The fit is the best so far. Increase `max_seconds`."), fit = fit)
  }
  warn_rival(fit$learned, in_units(fit, 1, 2))
  warn_small_n(fit$small_n, fit$nobs)
  fit
}

# Chooses transform, noise model and likelihood, then fits by the plan.
fit_once <- function(data, asked, state) {
  data <- response_stage(data, asked, state)
  asked <- if (is.null(state$asked)) complete_settings(data, asked) else state$asked # response_stage() may set it
  fit <- if (!is.null(asked$tol)) fit_to_tolerance(data, asked, state) else
    fit_by_plan(data, asked, state, if (is.null(asked$likelihood)) gaussian_steps else working_steps)
  keeps <- is.null(asked$tol) && !is.null(asked[["aux"]]) && isTRUE(aux_kinds[[asked[["aux"]]$kind]]$keeps_reference)
  if (keeps && !is.null(fit$aux_points) && is.null(state$stopped)) {
    fit$reference <- run_stage(state, "reference", kept_reference(reference_on(
      fit, data, distinct_points(fit$aux_points, model_of(fit)$kernel), NULL), fit), otherwise = NULL)
    fit$seconds <- state$seconds
  }
  fit
}

# Returns `fit`, or a fit with a linear kernel if that predicts held-out rows better. In cross-validation, its log
# density must be higher by more than common_value["errors"] standard errors. The linear kernel is tried for 50 to 2,000
# rows without groups, if most responses are equal and the user gave no kernel. The marginal likelihood cannot choose
# then: it grows without bound as the noise at the common response shrinks.
linear_if_better <- function(fit, data, asked) {
  y <- of_used_rows(data, data$response)
  due <- is.null(asked$kernel) && !length(data$groups) && data$n >= few_rows && data$n <= dense_rows &&
    max(tabulate(match(y, unique(y)))) > common_value[["share"]] * length(y)
  if (!due) return(fit)
  started <- proc.time()[["elapsed"]]
  asked$control$progress <- FALSE
  linear <- replace(asked, "kernel", list(kernel_linear()))
  gain <- with_fixed_seed({
    together <- copies_in(data) %||% seq_along(y)
    fold <- sample(rep_len(seq_len(common_value[["folds"]]), max(together)))[together]
    log_density_of_folds(data, linear, fold, fit_once) - log_density_of_folds(data, asked, fold, fit_once)
  })
  better <- isTRUE(mean(gain) > common_value[["errors"]] * se_of_mean(gain))
  found <- if (better) unless_it_fails(fit_once, data, linear)
  seconds <- c(fit$seconds, comparison = proc.time()[["elapsed"]] - started)
  if (is.null(found)) return(replace(fit, "seconds", list(seconds)))
  found[c("seconds", "asked")] <- list(seconds, fit$asked) # update() and cross_validate() choose the kernel again
  found$because["common_value"] <- sprintf(
    "Linear kernel: log density of held-out rows %.2g higher per row than with other kernels.", mean(gain))
  found
}

# Returns misfit_of(fit) if the rival of its family, another family (element `rival` of response_rows), should be tried,
# because leave-one-out predictions contradict the family; else NULL. The user must not have given the family (`open`,
# if Gaussian). A Gaussian family is judged only if no response is frequent, and if a transform or heavy tails were
# chosen or a response is extreme.
misfit_if_contradicted <- function(fit, data, asked, open, rival = gaussian_row$rival) {
  if (!is.null(asked$likelihood)) {
    due <- isTRUE(asked$likelihood$open) && asked$likelihood$approx == "laplace" && !asked$plain &&
      asked$hyper == "evidence" && is.null(rows_of_table(fit, data))
  } else {
    y <- data$response
    due <- isTRUE(open) && is.null(c(asked$noise, data$prior_weights)) && !length(data$groups) &&
      data$n >= rival$rows && (!is.null(fit$transform) || !is.null(fit$noise_tail) && has_learned_tails(fit) ||
         max(abs(y - stats::median(y))) > rival$far * stats::mad(y)) &&
      values_of_response(y, FALSE) == "many" &&
      max(tabulate(match(y, unique(y)))) <= response_values[["share"]] * length(y)
  }
  if (!due) return(NULL)
  modelled <- fit$data %||% if (is.null(asked$likelihood)) data_as_modelled(data, list(
    transform = fit$transform, trend = fit$noise_trend, tail = fit$noise_tail), asked) else data
  judged <- suppressMessages(misfit_of(replace(fit, "data", list(modelled))))
  if (isTRUE(judged$misfit > response_of(fit)$rival$beyond)) judged
}

# Returns `fit`, or a fit with the rival of its family. If leave-one-out predictions contradict the family, the rival is
# fitted to the same rows, and replaces the family if compare_with_rival() prefers it. Rows with copies do not count.
rival_if_better <- function(fit, data, asked, open) {
  judged <- misfit_if_contradicted(fit, data, asked, open)
  if (is.null(judged)) return(fit)
  rival <- response_of(fit)$rival
  gaussian <- is.null(asked$likelihood)
  started <- proc.time()[["elapsed"]]
  asked[c("transform", "noise")] <- list("none", NULL)
  about <- list(from = response_of(fit)$name, asked = list(asked$likelihood))
  rows <- rows_of_data(data)
  rows$y <- rows$y %||% unname(rows$response)
  if (!is.null(rival$relative)) rows$size <- rows$y # the log-logistic response is known to be from y to size
  data_at <- function(i) data_of_rows(data, take_rows_of(rows, i), list(likelihood = as_likelihood(rival$family)))
  fit_rival <- function(data, kernel = asked$kernel) {
    asked["kernel"] <- list(kernel)
    asked$likelihood <- c(as_likelihood(judged$family %||% rival$family), about)
    unless_it_fails(function(data, asked, state) fit_once(data, complete_likelihood(data, asked), state), data, asked)
  }
  at <- data_at(judged$rows)
  # To choose a kernel for Student's t takes many searches, so one kernel judges it, unless a season was found.
  other <- fit_rival(at, asked$kernel %||% if (gaussian && is.null(fit$kernel$season)) kernel_matern(2.5))
  if (is.null(other)) return(fit)
  scores <- suppressMessages(list(judged$scores %||% training_scores(judged$fit, each = TRUE),
                                  training_scores(replace(other, "data", list(at)), each = TRUE)))
  copy <- copies_in(judged$fit$data) %||% seq_along(judged$fit$data$response)
  alone <- Reduce(intersect, list(scores[[1L]]$row, scores[[2L]]$row, which(tabulate(copy)[copy] == 1L)))
  if (length(alone) < rival$rows %||% few_rows) return(fit)
  scores <- lapply(scores, function(s) lapply(s[c("y", "mean", "density")], `[`, match(alone, s$row)))
  compared <- compare_with_rival(scores, rival)
  judged$family <- compared$family
  better <- compared$better
  if (better && (gaussian || length(judged$rows) < data$n)) other <- fit_rival(data_at(seq_along(rows$y)))
  found <- if (better) other else fit
  if (is.null(found)) return(fit)
  names <- paste0(c(response_of(fit)$name, rival$family), "()")
  found$because["rival"] <- sprintf(
    "%s: leave-one-out log density %+.2g a row relative to %s (standard error %.2g)%s", names[1L + better],
    compared$gain[["gain"]] * if (better) 1 else -1, names[2L - better], compared$gain[["se"]], compared$why)
  if (better) tell_classed("family", sprintf("Family %s. %s", found$because[["rival"]], rival$instead))
  # With the arguments of `fit`, cross_validate() chooses the family again.
  found[c("seconds", "asked")] <- list(c(fit$seconds, families = proc.time()[["elapsed"]] - started), fit$asked)
  if (!better && gaussian) return(found)
  found$response <- structure(class = c("pfdtc_table", "data.frame"), legend =
    "`merit`: sum of leave-one-out log densities.", data.frame(candidate = names, chosen = c(!better, better),
      merit = compared$merit, se = ifelse(c(!better, better), NA, compared$gain[["se"]] * compared$gain[["rows"]])))
  found
}

# ---- the other functions that fit (help page in fit-check.R) ---------------------------------------------------------

gp_exact <- function(x, ...) UseMethod("gp_exact")
gp_vfe <- function(x, ...) UseMethod("gp_vfe")
gp_dtc <- function(x, ...) UseMethod("gp_dtc")
gp_sor <- function(x, ...) UseMethod("gp_sor")
gp_fitc <- function(x, ...) UseMethod("gp_fitc")
gp_subsample <- function(x, ...) UseMethod("gp_subsample")

gp_vfe.default <- function(x, y, m = NULL, kernel = NULL, noise = NULL,
                           hyper = c("evidence", "pilot", "joint", "fixed"),
                           mean = ~1, transform = "none", like = NULL, inducing = NULL, weights = NULL,
                           offset = NULL, center = TRUE, scale = TRUE,
                           control = pfdtc_control(), keep_data = TRUE, ...) {
  matrix_fit(.Generic, match.call(), environment(), list(...))
}

gp_dtc.default <- gp_vfe.default
formals(gp_dtc.default)$hyper <- quote(c("evidence", "pilot", "fixed"))
gp_sor.default <- gp_fitc.default <- gp_subsample.default <- gp_dtc.default
formals(gp_subsample.default)$inducing <- NULL

gp_exact.default <- gp_vfe.default
formals(gp_exact.default)[c("m", "inducing")] <- NULL

gp_vfe.formula <- gp_dtc.formula <- gp_sor.formula <- gp_fitc.formula <- pfdtc.formula
gp_subsample.formula <- gp_exact.formula <- pfdtc.formula
