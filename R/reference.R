#' Compute a reference for certificates, or the exact mean
#'
#' A reference is the DTC posterior of the same model with many more inducing points, chosen by greedy pivoted Cholesky
#' factorisation. [certify()] combines the narrow certificate of the reference with the distance between fit and
#' reference. At most ten steps of conjugate gradients correct the mean of the reference, except with a non-Gaussian
#' `family` or if `data` is given. `refine()` continues these steps: it returns the mean of the exact GP with a
#' certified error of at most `tol` times the sd of the response.
#' @param fit A fit with its data; if `data` is given, a fit of a formula. `refine()` requires Gaussian noise.
#' @param m2 Maximum number of inducing points. Default: four times the number of the fit; at least 600 with a `family`.
#' @param max_seconds Time limit in seconds for the correction of the mean. No step begins that would exceed it.
#' @param data For a fit without its data, the rows of the fit: a row source or a data frame. Weights, offset and
#'   `subset` are taken from the call of the fit. `refine()` holds all rows in memory.
#' @param newdata,reference,... As in [certify()].
#' @param tol Accuracy of the mean as a fraction of the sd of the response.
#' @param maxit Maximum number of iterations.
#' @return `reference()`: a fit of class `c("gp_dtc", "gp_fit")` with numbers that certificates need;
#'   `correction$passes` is the number of passes over all pairs of rows. `refine()`: a data frame in units of `y` with a
#'   row for each row of `newdata`. `mean` is the mean of the exact GP, offset included, and `mean_error` a bound on its
#'   error. Attributes: `iterations` and `met` (`TRUE` if `tol` was met).
#' @details A reference takes \eqn{O(n m_2^2)} time and \eqn{O(m_2^2)} memory, where \eqn{m_2} is `m2`. A row source is
#'   read three times. A step of `refine()` takes \eqn{n^2 / 2}{n^2/2} kernel evaluations.
#' @section Invariants: `|mean - exact mean| <= mean_error`; if `met`, `mean_error <= tol * sd(y)`. If `maxit`, rounding
#'   or an interrupt ends `refine()` before `tol` is met, it warns (class `pfdtc_warning_convergence`).
#' @source Theory vignette; Fine and Scheinberg (2001) for the pivoted Cholesky factorisation; Artemev, Burt and van der
#'   Wilk (2021), ICML, for conjugate gradients.
#' @seealso [certify()], [aux_reference()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit)
#' certify(fit, data.frame(speed = c(5, 15)))
#' refine(fit, data.frame(speed = c(5, 15)), tol = 1e-6)
#' @export
reference <- function(fit, m2 = NULL, max_seconds = 10, data = NULL) {
  fit <- check_any_fit(fit, "fit")
  max_seconds <- check_at_least_0(max_seconds, "max_seconds")
  if (!is.null(data)) check_posterior(fit, "normal", "fit", "A reference by passes over `data`") else
    needs_data(fit, "fit")
  refuse_classes(fit)
  if (!response_of(fit)$conjugate) return(with_fixed_seed(laplace_reference(fit, fit$data, m2)))
  tell <- stage_line("reference", fit$control$progress)
  on.exit(tell(NULL))
  most <- if (is.null(data)) fit$data$n else fit$nobs
  m2 <- if (is.null(m2)) 4L * points_of_fit(fit) else check_count(m2, "m2", max = most)
  if (!is.null(data)) return(reference_of_source(fit, source_of_fit(fit, data), m2, sys.call(), tell))
  data <- fit$data
  tell("choosing points")
  rows <- reference_rows(data, model_of(fit)$kernel, min(m2, nrow(data$x)))
  reference_on(fit, data, data$x[rows, , drop = FALSE], sys.call(), tell, max_seconds)
}

# Returns the reference on the given distinct points, see dtc_on_points().
reference_on <- function(fit, data, z, call, tell = function(stage) NULL, max_seconds = 10) {
  tell(sprintf("posterior on %d points, and its norms", nrow(z)))
  out <- dtc_on_points(fit, data, z, call, fast = FALSE)
  tell("exact mean")
  budget <- list(passes = 10L, left = seconds_left(max_seconds))
  out$correction <- exact_mean(out, data, share_of_distance(out, data, fit, 1 / 50), budget)
  out
}

# Returns the number of inducing points of a fit, or its default. Fits with neighbours have few points, but their
# certificates need as many points as those of other fits.
points_of_fit <- function(fit) {
  m <- if (is.null(fit$m)) min(200L, fit$nobs) else if (is.null(fit$near)) fit$m else
    max(fit$m, min(200L, nrow(fit$data$x)))
  effects <- vapply(c(fit$factors$groupings, fit$near$groupings), effects_of_grouping, 0)
  m + min(250L, ceiling(sum(effects) / 4)) # levels of groups need points of their own, for at most 1,000 effects
}

# Adds a reference on the points of the auxiliary distribution to a fit. After an interrupt the fit is unchanged.
add_reference <- function(fit, data, state) {
  if (is.null(fit$aux_points) || !is.null(state$stopped)) return(fit)
  fit$reference <- run_stage(state, "reference", {
    kept_reference(reference_on(fit, data, distinct_points(fit$aux_points, model_of(fit)$kernel), NULL), fit)
  }, otherwise = NULL)
  fit$seconds <- state$seconds
  fit
}

# Removes the correction of the mean from the reference of a fit without its data, which cannot use it.
kept_reference <- function(reference, fit) {
  if (is.null(fit$data)) reference$correction <- NULL
  reference
}

# Returns the given reference, checked and with its norms, or computes one.
find_reference <- function(fit, given, m2, max_seconds = 10) {
  if (is.null(given)) {
    hint <- if (!is.null(fit$source))
      "Compute it by passes over the source: fit$reference <- reference(fit, data = <the source>)." else
        "Use fit$reference <- reference(fit) where the data are, or fit with `keep_data = TRUE`."
    refuse_if(is.null(fit$data), "reference", "is missing, and the fit has no data to compute it from", hint = hint)
    tell_classed("reference", "A reference posterior was computed. To reuse it: fit$reference <- reference(fit)")
    return(reference(fit, m2, max_seconds = max_seconds))
  }
  given <- check_fit(given, "reference")
  refuse_if(!method_traits(given)$reference, "reference", sprintf("a fit by %s()", given$method),
            "a fit by reference() or gp_dtc()")
  check_same_model(given, fit, "reference", "fit")
  if (!is.null(given$norms)) return(given)
  if (is.null(given$data)) {
    needs_data(fit, "fit")
    given$data <- data_in_scale(fit, given)
  }
  own_posterior(given)
}

# ---- rows in a source -----------------------------------------------------------------------------------------------

# Computes the reference of a source by three passes, here or on workers; each pass holds one block in memory. The first
# draws a random sample, from which points are chosen. The second adds up the sums of the posterior and checks that the
# source has the fit's rows. The third adds up the norms.
reference_of_source <- function(fit, source, m2, call, tell) {
  model <- model_of(fit)
  recipe <- fit_recipe(fit)
  pass <- function(f, merge, ...) source_pass(source, visit_rows(cleaned_rows, recipe, f, list(...)), merge)
  tell("a sample of the rows")
  sample <- pass(sampled_rows, function(a, b) smallest_keys(list(a, b)), 20 * m2)
  if (is.null(sample)) refuse_other_rows()
  sample <- list(x = sample$values$x, y = sample$r, weights = sample$w, n = length(sample$r))
  z <- sample$x[reference_rows(sample, model$kernel, min(m2, sample$n)), , drop = FALSE]
  start <- native_posterior(z, sample, model, rounding_jitter(nrow(z)), control = fit$control)
  tell(sprintf("posterior on %d points", nrow(z)))
  found <- pass(sums_with_signature, sums_merge, z, model, as_start(start), FALSE, fit$control)
  if (!same_sums(fit$signature, signature_of(found$signature, fit$center))) refuse_other_rows()
  posterior <- posterior_of_sums(z, found$sums, model, start)
  tell("norms")
  norms <- pass(rows_norms, norms_merge, posterior[c("L", "C", "beta")], z, model, norm_groups(nrow(z)), fit$control)
  rows <- list(n = fit$nobs, scale = fit$scale, shift = log_density_shift(fit$nobs, found$log_w, fit$scale, 0, 0))
  p <- points_posterior(model, fit, rows, z, posterior, finish_norms(norms, posterior, model))
  fit_of_posterior(p, call = call,
             source = list(label = source$label, rows = NA, omitted = 0L, sample = sample$n, passes = 3L))
}

# Returns the cleaned rows of a block.
cleaned_rows <- function(recipe, block) cleaned(recipe, fitted_rows(recipe, block))

sampled_rows <- function(rows, size) {
  chunk <- list(key = stats::runif(rows$n), values = list(x = rows$x), r = rows$y, w = merged_weights(rows))
  smallest_keys(list(chunk), size)
}
