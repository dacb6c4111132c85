#' Gaussian process regression for few and for many rows
#'
#' Fits a Gaussian process: learns its hyperparameters, chooses its kernel and computes its posterior. Up to 5,000 rows
#' the posterior is exact; for more rows it uses inducing points and nearest neighbours. [certify()] gives guaranteed
#' bounds of the distance to the exact posterior.
#'
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
#' @param x,y inputs, a matrix or data frame, or a formula; the response: numbers, classes or `survival::Surv()`.
#' @param m maximum number of inducing points. Default: none (exact posterior) up to 5,000 rows, or 8,000 if that
#'   predicts better, else 200, or 50 beside neighbours.
#' @param tol accuracy to certify, in sd of the modelled response.
#' @param kernel a kernel, see [kernel_se()]: what it leaves `NULL` is learned, what it gives is a start. Default: the
#'   best of several.
#' @param noise noise variance, in squared units of `y`; 0 interpolates. A formula: constant (`~ 1`), its log linear
#'   (`~ x1`) or smooth (`~ smooth(x1)`). Default: found, constant or smooth.
#' @param hyper `"evidence"` maximises a likelihood, `"fixed"` learns nothing, `"pilot"` and `"joint"` learn as in the
#'   paper, without or with moves of inducing points.
#' @param aux the objective's auxiliary distribution, see [aux_sor()]; a given one moves inducing points.
#' @param neighbours number of nearest neighbours in a prediction. Default: 0, or 40 (60 beside groups, 200 far
#'   from the data).
#' @param family,approx [binomial()], [multinomial()], [ordinal()], [poisson()], [nb()], `Gamma("log")`, [weibull()],
#'   [tobit()], [tweedie()], [student()] or [gp_family()]; default: by the response. Approximation: Laplace's or `"vi"`.
#' @param mean a linear mean, as a one-sided formula (`~ x1 + x2`, `~ .`). Default: a constant.
#' @param transform `"log"` or `"yeojohnson"`, applied to the response; `"none"`; `fit$transform` of another fit;
#'   `"auto"`: the best by log marginal likelihood, see `fit$response`.
#' @param like,plain a Gaussian fit whose model is taken (kernel, noise, transform, mean): nothing is learned; `TRUE`:
#'   the response as given, constant noise, one stationary kernel.
#' @param workers `TRUE`: fit on workers of \pkg{future} or \pkg{mirai}, see [rows_parts()].
#' @param inducing how inducing points start: a method of [inducing_points()], a matrix, or a fit. Default: `"greedy"`.
#' @param weights,offset the noise variance is `noise / weights`; `offset` is added to f.
#' @param center,scale centre `y` at its mean, scale it by its sd?
#' @param control,keep_data options of computing, see [pfdtc_control()]; keep the rows? A fit without them is small.
#' @param formula,data,subset,na.action as in [lm()]; inputs may be factors, `(1 | g)` is a group ([kernel_group()]).
#'   `data` may be a row source ([rows_blocks()]) or a spatial object ([sphere()]).
#' @param ... arguments of the other method, by name.
#' @return A list of class `c("pfdtc", "gp_fit")`; [pfdtc_fit] describes its elements. The first to look at:
#'   * `posterior`: `"exact"`, `"far"` (inducing points) or `"far + near"` (inducing points with neighbours);
#'   * `kernel` and `noise`; `kernels`, those compared; `because`, a sentence for each choice; `tol`, the certified
#'     accuracy.
#'
#' @details
#' The model is \eqn{y_n = f(x_n) + e_n}, \eqn{e_n \sim N(0, \sigma^2 / w_n)}{e_n ~ N(0, s2 / w_n)}, with a Gaussian
#' process prior on f. A fit *learns* kernel and noise by the Vecchia likelihood (each response given its nearest
#' neighbours) from several starts, and by the exact log marginal likelihood of at most 2,000 rows. It *chooses*
#' the posterior, and *computes* it from all rows. An argument overrides the choice that it names. `m`, `inducing`,
#' `aux`, `hyper = "pilot"` and `"joint"` ask for inducing points.
#'
#' Learning takes one to fifteen seconds. The exact posterior costs \eqn{O(n^3)}{O(n^3)} time and \eqn{8 n^2}{8 n^2}
#' bytes, inducing points \eqn{O(n m^2)}{O(n m^2)} time. [set.seed()] reproduces a fit on one machine. An interrupt
#' returns the best fit so far, with a warning.
#' @section Errors and invariants: class `pfdtc_error_input` or `pfdtc_error_numerical`; warnings
#'   `pfdtc_warning_convergence` and `pfdtc_warning_small` (a linear model predicts better). With all rows as inducing
#'   points the posterior is exact. The order of rows can decide between equally likely models. At a given noise,
#'   weight 2 counts as two rows.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), AISTATS,
#'   \url{https://proceedings.mlr.press/v89/huggins19a.html}; Vecchia (1988), JRSS B 50.
#' @seealso [predict.gp_fit()], [certify()], [pfdtc_fit]; `vignette("pfdtc")` to start, `vignette("defaults")` for
#'   what is chosen, `vignette("modelling")`, `vignette("likelihoods")`, `vignette("large")`.
#' @examples
#' fit <- pfdtc(dist ~ speed, cars)
#' fit
#' predict(fit, data.frame(speed = c(5, 15)), interval = "prediction")
#' # inducing points with the same model, and a certified accuracy
#' pfdtc(dist ~ speed, cars, m = 10, like = fit)
#' pfdtc(dist ~ speed, cars, tol = 0.02, kernel = kernel_se(), hyper = "pilot")
#' # a binary response
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
  check_names_first(...names(), pfdtc.default)
  formula_fit(.Generic, match.call(), parent.frame(), list(...))
}

# Checks names of arguments before evaluation, because the value of a misspelt `weights` may be a column of the data.
check_names_first <- function(names, method) {
  of_formula <- c("formula", "data", "subset", "weights", "na.action", "offset")
  known <- c(of_formula, setdiff(names(formals(method)), c("x", "y", "...")))
  check_dots_empty(setdiff(names[nzchar(names)], known), known)
}

#' The elements of a fit
#'
#' A fit is a plain list. This page has the elements that users read. Where a method returns the same, prefer it.
#'
#' @name pfdtc_fit
#' @format A list of class `c("pfdtc", "gp_fit")`, or with the name of another function that fits. All numbers are in
#'   units of the data.
#'   * What it is: `call`, `method`, `version`; `posterior`, `"exact"`, `"far"` (inducing points) or `"far + near"`
#'     (with nearest neighbours); `because`, a sentence for each choice; `likelihood` and `theta` for other families;
#'     `transform`, `noise_trend`; `noise_tail`, the variance of the log noise that inputs do not explain. `response`, a
#'     data frame of the transforms and noise models compared: `merit`, log density of the given responses minus a
#'     penalty of 2 or more for each of the `parameters`; `chosen`; `refused`, `TRUE` if held-out rows are predicted
#'     poorly; `tail`, the `noise_tail` learned with it.
#'   * Kernel: `kernel`, `noise`. `kernels`, a data frame of the kernels compared: `score`, minus the mean log density
#'     of held-out scaled responses plus a penalty for parameters, and its `se` (`NA`: log marginal likelihoods).
#'   * Learning: `learned`, a data frame of the starts: `lengthscale`, `noise` and the `evidence` reached. Starts within
#'     `attr(learned, "same")` nats of the best count as equal. `pilot`, the optimisation of `hyper = "pilot"`.
#'   * `evidence`, see [logLik()][gp_fit-methods]. `small_n`: below 50 rows, leave-one-out log densities of the `fit`,
#'     a `linear` model and the `mean`.
#'   * Inducing points: `inducing`, a matrix (all rows, if the posterior is exact); `m`, their number; `m_asked`;
#'     `moved`; `jitter`; `inducing_method`; `unexplained`, mean of residual prior / noise variance (`Inf`: unknown).
#'   * Neighbours: `neighbours`, their number; `near`, what predictions need of them; `trial`, by how much (`gain`, with
#'     standard error `se`) inducing points alone have a larger log density at held-out rows.
#'   * `factors`: sums and Cholesky factors of the posterior; `NULL` with neighbours.
#'   * Optimisation: `trace`, a data frame (compare objectives of one `round` only); `convergence`, 0 done, 1 `maxit`, 2
#'     time, 51 failed evaluations, 52 interrupt; `message`, `maxit`; `evaluations` and `seconds` by stage.
#'   * `tol`, a list: `asked`, `quantile`; `mean` and `sd`, the certified errors; `met`; `effort`, `m2` and `rows` of
#'     the certificate; `needs`, advice if `tol` was not met; `tried`, the candidates. `reference`, see [reference()].
#'   * Rows: `data`, `frame`, `terms`, `na.action`, as far as `keep_data` allows.
#' @seealso [pfdtc()], [gp_fit-methods]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se())
#' fit$because
NULL

# ---- arguments -> data and settings -> a fit ------------------------------------------------------------------------

# Fits rows of a matrix, for a default method whose arguments (in `frame`) are the settings.
matrix_fit <- function(method, call, frame, dots) {
  args <- mget(setdiff(names(formals(sys.function(-1L))), "..."), frame)
  check_dots_empty(dots, names(args))
  args <- model_asked(args)
  missing <- vapply(args[c("x", "y")], identical, NA, formals(function(x) NULL)$x)
  args[c("x", "y")[missing]] <- list(NULL)
  x <- args$x
  y <- args$y
  text <- is.character(y) && length(y) == 1L && y %in% names(x)
  if (is.data.frame(x) && ncol(x) && (is.null(y) || text || inherits(y, "formula"))) { # a formula was perhaps meant
    formula <- if (inherits(y, "formula")) deparse1(y) else paste(if (text) y else names(x)[1L], "~ .")
    abort_input("y", if (is.null(y)) "missing" else describe(y), "the response, a number for each row of `x`",
                hint = sprintf("For a data frame write %s(%s, %s).", method, formula,
                               if (is.symbol(call$x)) as.character(call$x) else "data"))
  }
  if (check_flag(args$workers %||% FALSE, "workers")) {
    abort_input("workers", "TRUE", "NULL beside `x` and `y`: take a formula and `data`")
  }
  data <- data_from_matrix(x, y, args$weights, args$offset, args$center, args$scale,
                           merge = merges_rows(method), likelihood = likelihood_asked(args, names(call)))
  call[[1L]] <- as.name(method)
  fit_by_family(method, data, call, args)
}

# Fits a formula. The arguments and their defaults come from the default method.
formula_fit <- function(method, call, envir, dots) {
  call[[1L]] <- as.name(method)
  args <- model_asked(formula_arguments(dots, get(paste0(method, ".default"), topenv())))
  source <- eval(call$data, envir)
  if (check_flag(args$workers %||% FALSE, "workers") && !is_source(source)) source <- frame_on_workers(source)
  if (is_source(source)) return(source_fit(method, source, call, args, envir))
  data <- data_from_formula(call_with_places(call, envir), envir, args$center, args$scale, merges_rows(method),
                            likelihood = likelihood_asked(args, names(dots)), kernel = args$kernel, mean = args$mean)
  fit_by_family(method, data, call, args)
}

# Returns the likelihood of the family given. Returns "by response" if the function takes families, no family was given,
# and no argument is for Gaussian noise only.
likelihood_asked <- function(args, given) {
  gaussian <- is.null(args$family) || !is.null(args$noise) || asks_for_transform(args$transform)
  if (gaussian || "family" %in% given) as_likelihood(args$family) else "by response"
}

# Fits cleaned data. `data$family` is the family that the response implies, if any.
fit_by_family <- function(method, data, call, args) {
  family <- data$family %||% args$family
  data$family <- NULL
  fit_with <- function(family) {
    fit_as_asked(data, check_settings(method, call, replace(args, "family", list(family))))
  }
  if (identical(family, "times")) best_of_times(fit_with) else fit_with(family)
}

# Fits the rows of a source. Rows are kept only if a data frame with as few rows would be fitted exactly.
source_fit <- function(method, source, call, args, envir) {
  family <- gp_families[[method]]
  if (is.null(family$objective) || family$fitc) {
    abort_input("data", "a row source", sprintf("a data frame for %s()", method),
                hint = "pfdtc(), gp_vfe(), gp_dtc() and gp_sor() read row sources.")
  }
  if (!is.null(args$noise_trend)) {
    abort_input("like", "a fit with heteroscedastic noise", "a fit with constant noise where rows come from a source")
  }
  given <- c(tol = !is.null(args$tol), family = !is.null(as_likelihood(args$family)),
             transform = asks_for_transform(args$transform))
  if (any(given)) abort_input(names(which(given))[1L], "given", "left out where rows come from a source")
  size <- check_count(getOption("pfdtc.sample", 1e5), "pfdtc.sample")
  chance <- random_state()
  data <- data_from_source(source, call, envir, args$center, args$scale, size, args$kernel)
  whole <- data$whole
  args$keep_sample <- check_flag(args$keep_data, "keep_data")
  few <- whole$seen <= min(dense_rows, size) && args$keep_data && family$chooses && leaves_points_open(args)
  args$keep_data <- few
  if (!few) return(fit_by_family(method, data, call, args))
  assign(".Random.seed", chance, envir = globalenv()) # a data frame draws no sample either
  at_hand <- call
  at_hand$data <- do.call(rbind, source_pass(source, function(block) list(as.data.frame(block)), c))
  data <- data_from_formula(at_hand, envir, args$center, args$scale, merge = merges_rows(method), kernel = args$kernel)
  fit <- fit_by_family(method, data, call, args)
  fit$source <- list(label = source$label, rows = whole$seen, omitted = whole$omitted, sample = data$n, passes = 2L)
  fit
}

# Returns the arguments that reached a formula method through `...`, with checked names and the defaults of the others.
formula_arguments <- function(dots, method) {
  defaults <- formals(method)
  defaults <- defaults[setdiff(names(defaults), c("x", "y", "weights", "offset", "..."))]
  unknown <- if (is.null(names(dots))) rep(TRUE, length(dots)) else !(names(dots) %in% names(defaults))
  check_dots_empty(dots[unknown], c("formula", "data", names(defaults), "subset", "weights", "na.action", "offset"))
  args <- lapply(defaults, eval, envir = environment(method))
  args[names(dots)] <- dots
  args
}

# Fits the data by the settings `asked`, the result of check_settings().
fit_as_asked <- function(data, asked) {
  if (!is.null(asked$likelihood)) asked <- complete_likelihood(data, asked)
  suspendInterrupts({
    state <- no_state()
    data <- response_stage(data, asked, state)
    asked <- if (is.null(state$asked)) complete_settings(data, asked) else state$asked # the response is as given
    fit <- if (is.null(asked$tol)) fit_by_plan(data, asked, state) else fit_to_tolerance(data, asked, state)
    keeps <- is.null(asked$tol) && !is.null(asked[["aux"]]) && aux_keeps_reference(asked[["aux"]])
    if (keeps) fit <- add_reference(fit, data, state)
  })
  if (!is.null(state$stopped)) {
    fit[c("convergence", "message")] <- state$stopped
    warn_convergence(sprintf("The fit was stopped early (%s) after %d evaluations. It is the best so far%s.",
                             state$stopped$message, as.integer(sum(state$evaluations)),
                             if (is.null(fit$tol)) "" else paste0(": ", describe_tolerance(fit))), fit = fit)
  } else if (is.null(fit$tol) && ended_by_time(fit)) {
    fit[c("convergence", "message")] <- list(2L, "`max_seconds` was reached")
    warn_convergence(paste("The search for hyperparameters or inducing points ended at `max_seconds` before it had",
                           "converged. The fit is the best so far. Increase `max_seconds`."), fit = fit)
  } else if (isFALSE(fit$tol$met)) {
    words <- tolerance_words(fit)
    warn_convergence(sprintf("`tol` = %s was not met. The fit, %s, is certified to %s: %s. %s", format(fit$tol$asked),
                             words[2L], words[1L], words[3L], fit$tol$needs), fit = fit)
  }
  warn_rival(fit$learned, in_units(fit, 1, 2))
  warn_small_n(fit$small_n, fit$nobs)
  fit
}

# Returns TRUE if `max_seconds` cut an optimisation short.
ended_by_time <- function(fit) {
  isTRUE(attr(fit$learned, "ended")) || any(unlist(list(fit$convergence, fit$pilot$convergence)) == 2L)
}

#' Gaussian process regression by other approximations, and exactly
#'
#' The methods that pF-DTC is compared with. They learn hyperparameters and choose the kernel as [pfdtc()] does, have no
#' neighbours, and return fits with the same methods.
#'
#' * `gp_exact()`: the exact posterior. It costs \eqn{O(n^3)}{O(n^3)} time and \eqn{8 n^2}{8 n^2} bytes, at most
#'   `getOption("pfdtc.max_memory", 2^32)`.
#' * `gp_subsample()`: the exact posterior of `m` random rows.
#' * `gp_vfe()`: the variational posterior of Titsias (2009). Inducing points minimise its Kullback-Leibler divergence.
#' * `gp_dtc()`, `gp_sor()`, `gp_fitc()`: deterministic training conditional, subset of regressors, fully independent
#'   training conditional (Quinonero-Candela and Rasmussen, 2005). Inducing points stay where they start.
#'
#' @usage
#' gp_exact(x, ...)
#' gp_vfe(x, ...)
#' gp_dtc(x, ...)
#' gp_sor(x, ...)
#' gp_fitc(x, ...)
#' gp_subsample(x, ...)
#' \method{gp_vfe}{default}(x, y, m = NULL, kernel = NULL, noise = NULL,
#'   hyper = c("evidence", "pilot", "joint", "fixed"), mean = ~1, transform = "none",
#'   like = NULL, inducing = NULL, weights = NULL, offset = NULL, center = TRUE,
#'   scale = TRUE, control = pfdtc_control(), keep_data = TRUE, ...)
#' \method{gp_vfe}{formula}(formula, data, ..., subset, weights, na.action, offset)
#' @param x,y,kernel,noise,mean,transform,like,inducing,weights,offset as in [pfdtc()].
#' @param center,scale,control,keep_data,formula,data,... as in [pfdtc()].
#' @param subset,na.action as in [lm()].
#' @param m maximum number of inducing points; for `gp_subsample()` the number of rows. Default: `min(200, n)`.
#' @param hyper as in [pfdtc()]. `"joint"` is for `gp_vfe()` and `gp_exact()`: it maximises the ELBO or the exact log
#'   marginal likelihood from the pilot on.
#' @return A fit, see [pfdtc_fit], of class `c("gp_vfe", "gp_fit")` and so on. `gp_exact()` and `gp_subsample()` have
#'   the rows `x` of their posterior in place of inducing points. `evidence` of `gp_fitc()` and `gp_sor()` is that of
#'   their own models, of `gp_subsample()` that of its rows.
#' @details The usage above lists the arguments of all methods: `gp_dtc()`, `gp_sor()` and `gp_fitc()` have no
#'   `hyper = "joint"`, `gp_subsample()` has no `inducing` either, and `gp_exact()` has neither `inducing` nor `m`.
#' @section Errors and invariants: as [pfdtc()]. With all rows as inducing points (or drawn) every method gives the
#'   exact posterior, SoR at the rows only.
#' @seealso [compare_fits()], [kl_divergence()], `vignette("comparison")`
#' @name baselines
#' @aliases gp_vfe.default gp_vfe.formula gp_exact gp_vfe gp_dtc gp_sor gp_fitc gp_subsample
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' vfe <- gp_vfe(dist ~ speed, cars, m = 5, like = exact)
#' kl_divergence(vfe, exact)
#' @rawNamespace
#' export(gp_exact)
#' export(gp_vfe)
#' export(gp_dtc)
#' export(gp_sor)
#' export(gp_fitc)
#' export(gp_subsample)
#' S3method(gp_exact, default)
#' S3method(gp_exact, formula)
#' S3method(gp_vfe, default)
#' S3method(gp_vfe, formula)
#' S3method(gp_dtc, default)
#' S3method(gp_dtc, formula)
#' S3method(gp_sor, default)
#' S3method(gp_sor, formula)
#' S3method(gp_fitc, default)
#' S3method(gp_fitc, formula)
#' S3method(gp_subsample, default)
#' S3method(gp_subsample, formula)
NULL

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

gp_sor.default <- gp_dtc.default

gp_fitc.default <- gp_dtc.default

gp_subsample.default <- gp_dtc.default
formals(gp_subsample.default)$inducing <- NULL

gp_exact.default <- gp_vfe.default
formals(gp_exact.default)[c("m", "inducing")] <- NULL

gp_vfe.formula <- pfdtc.formula

gp_dtc.formula <- gp_vfe.formula

gp_sor.formula <- gp_vfe.formula

gp_fitc.formula <- gp_vfe.formula

gp_subsample.formula <- gp_vfe.formula

gp_exact.formula <- gp_vfe.formula
