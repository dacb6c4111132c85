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

# Certifies the mixture over uncertain hyperparameters: the exact one has the same parts, weighted by the exact evidence.
# Returns a certificate with the attributes `weights`, a row for each part (weight and its bounds), and `noise`, an upper
# bound of the exact mixture's noise variance.
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
#   var <= E (f - c)^2 with c in the middle of where the mean lies,  var >= E [sd^2 + (distance of parts from the mean)^2].
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
