#' A bigger posterior to certify by
#'
#' The DTC posterior of the same model on many more inducing points, chosen by greedy pivoted Cholesky and optimised by
#' nobody. What its points leave unexplained falls as fast as the spectrum of the kernel matrix, so its own
#' certificate is tiny: it tells where the exact Gaussian process lies, and any other fit is certified by its distance
#' from there.
#'
#' Its mean is corrected by a few steps of conjugate gradients on the exact equations, as by [refine()], until its
#' certificate is small beside its distance from the fit's mean, at most ten, and as many as `max_seconds` allow: a step
#' is a pass over all pairs of rows. This matters most for Matern kernels, which leave much unexplained.
#'
#' Of a fit with another `family` than the Gaussian it is Laplace's posterior on these points, with what [certify()] and
#' [evidence_bounds()] need of the rows, and no correction.
#'
#' Of a fit whose rows are in a row source ([rows_blocks()], [rows_parts()]) it is made by three passes over that
#' source, with a block at a time in memory, on workers where the rows are there: a sample of the rows, from which the
#' points are chosen; sums; norms. Its mean is not corrected then: [refine()] takes a source as well.
#'
#' @param fit a fit with its data, or of a formula.
#' @param m2 the most points. `NULL`: four times those of the fit; with a `family`, whose mode is not corrected, at
#'   least 600.
#' @param max_seconds time for the correction of the mean. No pass is begun that would end later, as a pass over some of
#'   the rows tells. How many were made is `correction$passes` of the result; more than the limit allowed: [refine()].
#' @param data where the fit has not kept them, the rows it was made of: a row source or a data frame. Weights, offset
#'   and `subset` are taken as the fit's call had them.
#' @return A fit of class `c("gp_dtc", "gp_fit")` that also carries the norms which certificates need. It costs
#'   \eqn{O(n m_2^2)}. It holds \eqn{O(m_2^2)} numbers, and `2 n` more where its mean is corrected; [certify()] uses
#'   those where the fit has its data. Keep it: `fit$reference <- reference(fit)`; [certify()] and its like then use it.
#' @section Errors: class `pfdtc_error_input` for a fit that has not kept its data, without `data`, and for `data` that
#'   are not the rows of the fit; `pfdtc_error_source` for what goes wrong while a source is read.
#' @source Theory vignette; Fine and Scheinberg (2001) for the pivoted Cholesky factorisation.
#' @seealso [certify()], [aux_reference()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit)
#' certify(fit, data.frame(speed = c(5, 15)))
#' @export
reference <- function(fit, m2 = NULL, max_seconds = 10, data = NULL) {
  fit <- check_any_fit(fit, "fit")
  max_seconds <- check_at_least_0(max_seconds, "max_seconds")
  if (!is.null(data)) {
    refuse_likelihood(fit, "fit", "A reference by passes over `data`")
    tell <- stage_line("reference", fit$control$progress)
    on.exit(tell(NULL))
    m2 <- if (is.null(m2)) 4L * points_of_fit(fit) else check_count(m2, "m2", max = fit$nobs)
    return(reference_of_source(fit, source_of_fit(fit, data), m2, sys.call(), tell))
  }
  data <- needs_data(fit, "fit")
  if (!response_of(fit)$conjugate) return(same_chance(laplace_reference(fit, data, m2)))
  m2 <- if (is.null(m2)) 4L * points_of_fit(fit) else check_count(m2, "m2", max = data$n)
  tell <- stage_line("reference", fit$control$progress)
  on.exit(tell(NULL))
  tell("choosing points")
  rows <- reference_rows(data, model_of(fit)$kernel, min(m2, nrow(data$x)))
  reference_on(fit, data, data$x[rows, , drop = FALSE], sys.call(), tell, max_seconds)
}

# The reference on points no two of which say the same, see dtc_on_points().
reference_on <- function(fit, data, z, call, tell = function(stage) NULL, max_seconds = 10) {
  tell(sprintf("posterior on %d points, and its norms", nrow(z)))
  out <- dtc_on_points(fit, data, z, call, fast = FALSE)
  tell("exact mean")
  budget <- list(passes = 10L, left = seconds_left(max_seconds))
  out$correction <- exact_mean(out, data, share_of_distance(out, data, fit, 1 / 50), budget)
  out
}

# Points of a fit, or the default number of them.
# A near field has few points because near rows tell the rest: its certificates want as many as any.
points_of_fit <- function(fit) {
  if (is.null(fit$m)) min(200L, fit$nobs) else if (is.null(fit$near)) fit$m else max(fit$m, min(200L, nrow(fit$data$x)))
}

# The fit with a reference on the points that its auxiliary distribution was made of; after an interrupt as it is.
add_reference <- function(fit, data, done, state) {
  if (is.null(done$aux_points) || !is.null(state$stopped)) return(fit)
  fit$reference <- run_stage(state, "reference", {
    kept_reference(reference_on(fit, data, distinct_points(done$aux_points, done$model$kernel), NULL), fit)
  }, otherwise = NULL)
  fit$seconds <- state$seconds
  fit
}

# Without the data nothing of the rows is kept: the corrected mean is of use only beside them.
kept_reference <- function(reference, fit) {
  if (is.null(fit$data)) reference$correction <- NULL
  reference
}

find_reference <- function(fit, given, m2, max_seconds = 10) {
  if (is.null(given)) {
    if (is.null(fit$data)) {
      abort_input("reference", "none for a fit without its data", "given",
                  hint = if (is.null(fit$source)) paste("Make it where the data are: fit$reference <- reference(fit);",
                                                        "or fit with `keep_data = TRUE`.")
                  else "Make it by passes over the source: fit$reference <- reference(fit, data = <the source>).")
    }
    tell_classed("reference", paste("A reference posterior was computed for this call. To reuse it:",
                                    "fit$reference <- reference(fit)"))
    return(reference(fit, m2, max_seconds = max_seconds))
  }
  given <- check_fit(given, "reference")
  if (!gp_family(given)$reference) abort_input("reference", sprintf("a fit by %s()", given$method), "a gp_dtc() fit")
  check_same_model(given, fit, "reference", "fit")
  if (is.null(given$norms)) {
    if (is.null(given$data)) {
      needs_data(fit, "fit")
      given$data <- data_in_scale(fit, given)
    }
    given <- own_posterior(given)
  }
  given
}
