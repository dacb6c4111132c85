#' Certificates: where the exact Gaussian process lies
#'
#' Intervals that contain the exact GP's posterior mean and sd at every row of `newdata`, guaranteed and without
#' computing it, for a fit of any kind.
#'
#' The exact GP meant is the one that [gp_exact()] would compute: the fit's kernel and noise, its data and weights, its
#' centre taken as known, no jitter. The intervals certify the approximation, not the model.
#'
#' * `"fast"` uses the fit's own inducing points, in time \eqn{O(n m^2)}.
#' * `"reference"` adds a bigger posterior, see [reference()], and kriging on the rows near each row of `newdata`:
#'   linear in `n`, and as a rule close to the actual error. Rows of `newdata` that they say little about become points
#'   of the reference for this call.
#' * `"tight"` computes that posterior's norms exactly, and corrects its mean further, which takes all pairs of rows,
#'   \eqn{O(n^2 m_2)}.
#'
#' Where these leave a row open (its mean without passes over all pairs of rows) and `n` is so small that the exact
#' posterior takes less time than is left of `max_seconds`, it is computed after all.
#'
#' Each effort's intervals are intersected with those of the cheaper ones.
#'
#' Of a fit with classes or counts (`family`) what is certified is the exact process's *Laplace posterior* at the fit's
#' hyperparameters: its mode, its sd, and the averaged probability or rate that these give (columns `response`,
#' `response_lower`, `response_upper`). How far Laplace's approximation is from the true posterior is not certified, by
#' this or anything known to us; printed beside it is a diagnostic of that, [laplace_check()] with 500 draws, where it
#' takes less than a second (attribute `check`). Fits with `approx = "vi"` are refused.
#'
#' With `hyper_uncertainty = TRUE` it is the mixture that `predict(fit, newdata, hyper_uncertainty = TRUE)` is: held
#' against the one of the exact posteriors at the same hyperparameters, weighted by the exact evidence (and the same
#' priors). Each part has its own reference and certificate; what the weights may be follows from the bracket of the
#' evidence at each ([evidence_bounds()]), or is known where the fit learned by the exact evidence. `mean_error` is at
#' most the sum of the weights times the parts' own, and what the brackets leave: where these are wider than a few
#' units, as often of many rows, any of the parts may have all of the weight, and the interval contains all of theirs.
#' What is not certified is the mixture itself, of so many parts in place of an integral.
#'
#' @param fit a fit of any kind.
#' @param newdata rows to certify at; when missing, the training rows.
#' @param effort `"reference"`, `"fast"` or `"tight"`.
#' @param reference a reference made by [reference()], or any [gp_dtc()] fit of the same data and hyperparameters.
#'   `NULL`: it is made from the fit's data, and a message says how to keep it.
#' @param m2 size of the reference, where it is made here.
#' @param test_points the most rows of `newdata` that may be added to the reference's points for this call, where that
#'   pays: rows far from the data, which the reference says little about. It costs about what the reference itself does.
#'   `NULL`: a quarter of the reference's points (at least 16); 0: none.
#' @param max_seconds time for what narrows the intervals beyond the fit's and the reference's own: kriging, all rows,
#'   test points, the exact posterior, the worst rows first. What is not begun for want of time leaves wider intervals,
#'   as valid as ever, which then depend on the machine. Where the reference is made by this call, its [reference()]
#'   has the same limit for its own corrections. No limit with `"tight"` unless it is given.
#' @param hyper_uncertainty should the mixture over uncertain hyperparameters be certified, see below?
#' @param ... not used.
#' @return A data frame (class `pfdtc_certificate`, whose print method sums it up) with a row for each row of `newdata`,
#'   in units of `y`: `mean` and `sd` of the fit (of the latent function, with the fit's offset), `mean_lower` and
#'   `mean_upper` between which the exact mean lies, `mean_error`, the larger distance of `mean` from them, and
#'   `sd_lower`, `sd_upper` between which the exact sd lies. Attributes `effort`, `m2` (points of the reference, those
#'   added here included), `t` (prior variance that they leave unexplained over all rows, in squared units of `y`),
#'   `passes` (over all pairs of rows, that its mean was corrected by), `seconds` that this call took and, where some
#'   interval is too wide to be of use, `advice`: what would narrow it.
#' @section Errors: class `pfdtc_error_input` where neither data nor a reference are at hand, or the reference belongs
#'   to another model.
#' @section Invariants: `mean_lower <= exact mean <= mean_upper`, `sd_lower <= exact sd <= sd_upper`; more effort never
#'   gives a wider interval beyond rounding, where `max_seconds` does not end it. What is drawn at random (groups of
#'   rows) is drawn alike in every call, whatever the seed, and R's random numbers are left as they were. (A reference
#'   made by [reference()] is drawn from them: intervals by it vary a little with the seed, their validity does not.)
#' @source Theory vignette.
#' @seealso [reference()], [error_bounds()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit)
#' certify(fit, data.frame(speed = c(5, 15)))
#' @export
certify <- function(fit, newdata, effort = c("reference", "fast", "tight"), ..., reference = fit$reference, m2 = NULL,
                    test_points = NULL, max_seconds = if (effort == "tight") Inf else 10,
                    hyper_uncertainty = FALSE) {
  check_dots_empty(list(...), names(formals(certify)))
  fit <- check_any_fit(fit, "fit")
  effort <- check_choice(effort, c("reference", "fast", "tight"), "effort")
  new <- if (missing(newdata)) training_rows(fit) else new_rows(fit, newdata, stats::na.pass)
  if (!is.null(test_points)) test_points <- check_count(test_points, "test_points", min = 0)
  max_seconds <- check_at_least_0(max_seconds, "max_seconds")
  hyper_uncertainty <- check_flag(hyper_uncertainty, "hyper_uncertainty")
  if (!response_of(fit)$conjugate) {
    if (hyper_uncertainty) refuse_likelihood(fit, "fit", "`hyper_uncertainty`")
    out <- certify_laplace(fit, new, effort, reference, m2)
    return(structure(out, check = same_chance(quick_check(fit, effort)), class = c("pfdtc_certificate", "data.frame")))
  }
  by <- if (hyper_uncertainty) certify_mixture else certify_rows
  out <- by(fit, new, effort, reference, m2, test_points, max_seconds)
  structure(out, class = c("pfdtc_certificate", "data.frame"), sd_y = fit$sd_y)
}

# Of any likelihood.
certify_any <- function(fit, new, effort, reference) {
  (if (!response_of(fit)$conjugate) certify_laplace else certify_rows)(fit, new, effort, reference)
}
