#' Certify predictions: guaranteed intervals for the exact GP
#'
#' Returns intervals that contain the posterior mean and sd of the exact Gaussian process at every row of `newdata`,
#' without computing that process. Use it to find out how far an approximate fit is from [gp_exact()]. The intervals
#' certify the approximation, not the model.
#'
#' The efforts, each of which narrows the intervals of the cheaper ones:
#'
#' * `"fast"` uses the fit's own inducing points, in time \eqn{O(n m^2)}.
#' * `"reference"` adds a bigger posterior, see [reference()], and kriging on nearest neighbours. It is linear in `n`,
#'   and its intervals are usually about as wide as the actual error.
#' * `"tight"` adds passes over all pairs of rows, \eqn{O(n^2 m_2)}.
#'
#' With a `family` that is not Gaussian the certificate is for Laplace's approximation with the exact GP prior: its
#' mode, its sd, and the mean response that these give. [laplace_check()] is a diagnostic of Laplace's approximation
#' itself. Fits with `approx = "vi"` are refused.
#'
#' @param fit a fit of any kind.
#' @param newdata rows to certify at; when missing, the training rows.
#' @param effort `"reference"`, `"fast"` or `"tight"`.
#' @param reference a reference made by [reference()], or any [gp_dtc()] fit of the same data and hyperparameters.
#'   `NULL`: the call computes one, and a message says how to keep it.
#' @param m2 number of inducing points of the reference, if this call computes it.
#' @param test_points the most rows of `newdata` that become points of the reference for this call. `NULL`: a quarter
#'   of the reference's points, at least 16; 0: none.
#' @param max_seconds time for the steps after the reference; a reference computed by this call has the same limit. With
#'   less time the intervals are wider, and as valid.
#' @param hyper_uncertainty if `TRUE`, certifies the mixture over uncertain hyperparameters that `predict()` computes.
#'   The exact mixture has the exact posteriors at the same hyperparameters, weighted by their exact evidence.
#' @param ... not used.
#' @return A data frame (class `pfdtc_certificate`) with a row for each row of `newdata`, in units of `y`:
#'   * `mean`, `sd`: the fit's, of the latent function, offset included.
#'   * `mean_lower`, `mean_upper`: they contain the exact mean. `mean_error` is the larger distance of `mean` from them.
#'   * `sd_lower`, `sd_upper`: they contain the exact sd.
#'   * `response`, `response_lower`, `response_upper`: the mean response, with a non-Gaussian `family`.
#'
#'   Attributes: `effort`, `m2`, `passes` over all pairs of rows, `seconds`, `t` (residual prior variance of the
#'   reference over all rows, in squared units of `y`) and `advice`: what would narrow intervals that are too wide.
#' @section Errors: class `pfdtc_error_input` if neither data nor a reference are there, or the reference belongs to
#'   another model.
#' @section Invariants: `mean_lower <= exact mean <= mean_upper`, `sd_lower <= exact sd <= sd_upper`. More effort never
#'   gives a wider interval beyond rounding, unless `max_seconds` ends it. R's random numbers are left as they were.
#' @source Theory vignette; the steps are in `vignette("certificates")`.
#' @seealso [reference()], [refine()], [error_bounds()], [evidence_bounds()]
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
  if (!is.null(reference) && !inherits(reference, "gp_fit")) {
    abort_input("reference", describe(reference), "a fit, such as reference() returns")
  }
  new <- if (missing(newdata)) training_rows(fit) else new_rows(fit, newdata, stats::na.pass)
  if (!is.null(reference)) reference <- check_any_fit(reference, "reference")
  if (!is.null(test_points)) test_points <- check_count(test_points, "test_points", min = 0)
  max_seconds <- check_at_least_0(max_seconds, "max_seconds")
  hyper_uncertainty <- check_flag(hyper_uncertainty, "hyper_uncertainty")
  if (hyper_uncertainty) refuse_likelihood(fit, "fit", "`hyper_uncertainty`")
  by <- if (hyper_uncertainty) certificate_of_mixture else certificate_of
  out <- by(fit, new, effort, reference, m2, test_points, max_seconds)
  structure(out, class = c("pfdtc_certificate", "data.frame"), sd_y = fit$sd_y,
            check = if (!response_of(fit)$conjugate) same_chance(quick_check(fit, effort)))
}

# Returns the inputs `x` in the form of new_rows().
plain_rows <- function(x, index = seq_len(nrow(x))) list(x = x, index = index, offset = 0, names = NULL)

# Returns the certificate of a fit at rows in the form of new_rows(): a data frame as certify() returns it.
certificate_of <- function(fit, new, effort = "reference", reference = fit$reference, m2 = NULL, test_points = NULL,
                           max_seconds = 10) {
  started <- proc.time()[["elapsed"]]
  fun <- values_at(model_of(fit)$kernel, new$x)
  inside <- posterior_certificate(posterior_of(fit), fun, effort, reference, m2, test_points, max_seconds)
  out <- certificate_frame(fit, new, functionals_in_units(fit, fun), inside)
  if (!response_of(fit)$conjugate) out <- with_response(out, fit$likelihood)
  advice <- if (!response_of(fit)$conjugate) mode_advice(out, effort) else certificate_advice(out, effort, fit, inside)
  structure(out, effort = effort, m2 = attr(inside, "m2"), t = attr(inside, "t"), passes = attr(inside, "passes"),
            seconds = proc.time()[["elapsed"]] - started, advice = advice, likelihood = fit$likelihood$label)
}

# Returns the certificate as a data frame in units of y. The centre and the offset add their rounding to the ends.
certificate_frame <- function(fit, new, of_fit, inside) {
  i <- new$index
  eps <- 4 * .Machine$double.eps
  at <- function(v) fit$center + v[i] + new$offset
  room <- function(v) eps * (abs(fit$center) + abs(v[i]) + abs(new$offset)) + response_rounding(fit, new$x)
  lower <- at(inside$mean_lower) - room(inside$mean_lower)
  upper <- at(inside$mean_upper) + room(inside$mean_upper)
  mean <- at(of_fit$mean)
  out <- data.frame(mean = mean, mean_error = (1 + eps) * pmax(mean - lower, upper - mean), mean_lower = lower,
                    mean_upper = upper, sd = of_fit$sd[i], sd_lower = (1 - eps) * inside$sd_lower[i],
                    sd_upper = (1 + eps) * inside$sd_upper[i])
  if (!is.null(new$names)) row.names(out) <- make.unique(as.character(new$names))
  out
}

passes_of <- function(correction) if (is.null(correction$passes)) 0L else correction$passes

# Returns sentences about what would narrow intervals that are of no use, or NULL: half of an interval is wider than the
# exact sd may be. The passes that refine() needs follow from how far those so far have narrowed the mean's interval.
certificate_advice <- function(out, effort, fit, inside) {
  if (!nrow(out) || is_exact(fit)) return(NULL)
  wide <- out$mean_upper - out$mean_lower > 2 * out$sd_upper
  vague <- out$sd_upper > 2 * out$sd_lower
  share <- function(v) sprintf("%.0f %% of the rows", 100 * mean(v, na.rm = TRUE))
  said <- character()
  if (any(wide, na.rm = TRUE)) {
    ratio <- stats::median(((out$mean_upper - out$mean_lower) / (2 * out$sd_upper))[wide], na.rm = TRUE)
    passes <- if (effort != "fast") passes_until(attr(inside, "went"), 0.1 / ratio) # to a tenth of the sd
    said <- sprintf("The bound of the mean exceeds the sd at %s. %s", share(wide),
                    if (effort == "fast") "Take effort = \"reference\"."
                    else if (is.null(passes)) "refine() certifies the mean by passes over all pairs of rows."
                    else sprintf("refine() would need about %d more passes over all pairs of rows.", passes))
  }
  if (any(vague, na.rm = TRUE)) {
    said <- c(said, sprintf("The bounds of the sd differ by more than a factor of two at %s: %s.", share(vague),
                            if (effort == "fast") "take effort = \"reference\""
                            else if (attr(inside, "left") <= 0) "a larger `max_seconds` may narrow them"
                            else "a larger reference (`m2`) narrows them"))
  }
  if (length(said)) said
}

# ---- mixtures over hyperparameters ----------------------------------------------------------------------------------

# Certifies the mixture over uncertain hyperparameters: the exact one has the same parts, weighted by the exact
# evidence. Returns a certificate with the attributes `weights`, a row for each part (weight and its bounds), and
# `noise`, an upper bound of the exact mixture's noise variance.
certificate_of_mixture <- function(fit, new, effort, reference, m2 = NULL, test_points = NULL, max_seconds = 10) {
  started <- proc.time()[["elapsed"]]
  points <- hyper_points(fit)
  z <- reference$inducing
  seconds <- max_seconds / length(points$hyper)
  parts <- mixture_parts(fit, points$hyper, function(one) {
    if (effort != "fast" && !is_exact(one)) {
      one$reference <- if (is.null(z)) reference(one, m2, seconds) else
        same_chance(reference_on(one, needs_data(one, "fit"), z, NULL, max_seconds = seconds))
    }
    list(at = c(latent_at(one, new$x), list(noise = one$noise)), m2 = one$reference$m,
         inside = certificate_of(one, new, effort, one$reference, NULL, test_points, seconds),
         evidence = if (is.null(points$gain)) evidence_bounds(one))
  })
  weights <- weights_between(points, lapply(parts, `[[`, "evidence"))
  out <- bounds_of_mixture(mixture_of_parts(lapply(parts, `[[`, "at"), points$weights),
                           lapply(parts, `[[`, "inside"), weights, new)
  noise <- vapply(parts, function(part) part$at$noise, 0)
  structure(out, effort = effort, m2 = if (length(parts[[1L]]$m2)) parts[[1L]]$m2,
            seconds = proc.time()[["elapsed"]] - started, weights = weights,
            noise = largest_mixture_mean(matrix(noise, 1L), weights))
}

# Returns the weights with bounds. A weight is smallest where its own density is at the lower end of its bracket and all
# others are at the upper ends.
weights_between <- function(points, evidence) {
  gain <- points$gain
  ends <- if (is.null(gain)) {
    cbind(lower = vapply(evidence, `[[`, 0, "lower"), upper = vapply(evidence, `[[`, 0, "upper")) + points$apart
  } else {
    cbind(lower = gain, upper = gain)
  }
  g <- pmax(exp(ends - max(ends)), 1e-300) # an end that underflows is not 0
  share <- function(own, others) own / (own + sum(others) - others)
  data.frame(weight = points$weights, lower = share(g[, "lower"], g[, "upper"]),
             upper = share(g[, "upper"], g[, "lower"]), least = g[, "lower"], most = g[, "upper"])
}

# Returns the largest mean of each row of v over densities between `least` and `most`, a column for each part. The parts
# with the largest values have their upper ends, the others their lower ones.
largest_mixture_mean <- function(v, weights) {
  apply(v, 1L, function(one) {
    o <- order(one, decreasing = TRUE)
    upper <- weights$most[o]
    lower <- weights$least[o]
    rest <- function(x) sum(x) - cumsum(x)
    max((cumsum(upper * one[o]) + rest(lower * one[o])) / (cumsum(upper) + rest(lower)))
  })
}

smallest_mixture_mean <- function(v, weights) -largest_mixture_mean(-v, weights)

# Bounds mean and sd of the exact mixture by those of its parts. The variance is the mean squared distance from the
# mixture's mean, and no more than that from any other value c:
#   var <= E (f - c)^2 with c in the middle of where the mean lies,  var >= E [sd^2 + (distance of parts from the
#   mean)^2].
bounds_of_mixture <- function(of_fit, inside, weights, new) {
  all <- function(what) matrix(vapply(inside, `[[`, numeric(length(new$index)), what), length(new$index))
  lower <- all("mean_lower")
  upper <- all("mean_upper")
  eps <- 64 * .Machine$double.eps
  known <- which(!is.na(new$index))
  ends <- matrix(NA_real_, length(new$index), 4L,
                 dimnames = list(NULL, c("mean_lower", "mean_upper", "sd_lower", "sd_upper")))
  if (length(known)) {
    part <- function(v) v[known, , drop = FALSE]
    room <- eps * apply(pmax(abs(part(lower)), abs(part(upper))), 1L, max)
    low <- smallest_mixture_mean(part(lower), weights) - room
    high <- largest_mixture_mean(part(upper), weights) + room
    middle <- (low + high) / 2
    farthest <- pmax(abs(part(upper) - middle), abs(part(lower) - middle))
    nearest <- pmax(part(lower) - high, low - part(upper), 0)
    ends[known, ] <- cbind(low, high,
                           sqrt((1 - eps) * smallest_mixture_mean(part(all("sd_lower"))^2 + nearest^2, weights)),
                           sqrt((1 + eps) * largest_mixture_mean(part(all("sd_upper"))^2 + farthest^2, weights)))
  }
  mean <- of_fit$mean[new$index] + new$offset
  data.frame(mean = mean, mean_error = (1 + eps) * pmax(mean - ends[, "mean_lower"], ends[, "mean_upper"] - mean),
             mean_lower = ends[, "mean_lower"], mean_upper = ends[, "mean_upper"], sd = sqrt(of_fit$var[new$index]),
             sd_lower = ends[, "sd_lower"], sd_upper = ends[, "sd_upper"], row.names = row.names(inside[[1L]]))
}
