#' Certificates: where the exact Gaussian process lies
#'
#' Intervals that contain the exact GP's posterior mean and sd at every row of `newdata`, guaranteed and without
#' computing it, for a fit of any kind.
#'
#' The exact GP meant is the one that [gp_exact()] would compute: the fit's kernel and noise, its data and weights, its
#' centre taken as known, no jitter. The intervals certify the approximation, not the model.
#'
#' * `"fast"` uses the fit's own inducing points, in time \eqn{O(n m^2)}.
#' * `"reference"` adds a bigger posterior, see [reference()]: linear in `n`, and as a rule close to the actual error.
#'   Rows of `newdata` that it says little about become points of it for this call.
#' * `"tight"` computes that posterior's norms exactly, and corrects its mean further, which takes all pairs of rows,
#'   \eqn{O(n^2 m_2)}.
#'
#' Each effort's intervals are intersected with those of the cheaper ones.
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
#' @param ... not used.
#' @return A data frame with a row for each row of `newdata`, in units of `y`: `mean` and `sd` of the fit (of the latent
#'   function, with the fit's offset), `mean_lower` and `mean_upper` between which the exact mean lies, `mean_error`,
#'   the larger distance of `mean` from them, and `sd_lower`, `sd_upper` between which the exact sd lies. Attributes
#'   `effort`, `m2` (points of the reference, those added here included) and `t` (prior variance that they leave
#'   unexplained over all rows, in squared units of `y`).
#' @section Errors: class `pfdtc_error_input` where neither data nor a reference are at hand, or the reference belongs
#'   to another model.
#' @section Invariants: `mean_lower <= exact mean <= mean_upper`, `sd_lower <= exact sd <= sd_upper`; more effort never
#'   gives a wider interval beyond rounding. The groups of rows that the norms are computed on are drawn from R's random
#'   numbers: the intervals vary a little with the seed, their validity does not.
#' @source Theory vignette.
#' @seealso [reference()], [error_bounds()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit)
#' certify(fit, data.frame(speed = c(5, 15)))
#' @export
certify <- function(fit, newdata, effort = c("reference", "fast", "tight"), ..., reference = fit$reference, m2 = NULL,
                    test_points = NULL) {
  check_dots_empty(list(...), names(formals(certify)))
  check_fit(fit, "fit")
  effort <- check_choice(effort, c("reference", "fast", "tight"), "effort")
  new <- if (missing(newdata)) training_rows(fit) else new_rows(fit, newdata, stats::na.pass)
  if (!is.null(test_points)) test_points <- check_count(test_points, "test_points", min = 0)
  certify_rows(fit, new, effort, reference, m2, test_points)
}

# `new`: rows as training_rows() and new_rows() give them. All in units of y without the centre: a reference may have
# been fitted in another scale.
certify_rows <- function(fit, new, effort, reference, m2 = NULL, test_points = NULL) {
  x <- new$x
  tell <- stage_line("certify", fit$control$progress)
  on.exit(tell(NULL))
  tell("the fit's own points")
  p <- predict_posterior(fit, x)
  at <- list(mean = fit$scale * p$mean, sd = fit$scale * sqrt(pmax(fit_variance(fit, p), 0)))
  inside <- list(mean_lower = -Inf, mean_upper = Inf, sd_lower = 0, sd_upper = Inf)
  if (effort == "fast" && !is_exact(fit)) needs_data(fit, "fit")
  by_reference <- effort != "fast" && !is_exact(fit)
  if (nrow(x)) {
    if (is_exact(fit)) inside <- exact_interval(fit, x)
    else if (!is.null(fit$data)) inside <- posterior_interval(own_posterior(fit), x)
  }
  if (by_reference) reference <- find_reference(fit, reference, m2)
  if (nrow(x) && by_reference) {
    most <- if (is.null(test_points)) max(16, reference$m %/% 4) else test_points
    found <- by_a_reference(fit, reference, x, at, inside, most, tell)
    inside <- found$inside
    reference <- found$reference
    if (effort == "tight") {
      needs_data(fit, "fit")
      inside <- by_all_pairs(fit, reference, x, at, inside, tell)
    }
  }
  out <- certificate_frame(fit, new, at, inside)
  attr(out, "effort") <- effort
  attr(out, "m2") <- if (by_reference) reference$m
  attr(out, "t") <- if (by_reference) reference$norms$t * reference$scale^2
  out
}

# list(inside, reference): the intervals, narrowed; the reference with the test points that it got
by_a_reference <- function(fit, reference, x, at, inside, most, tell) {
  data <- fit$data
  tell("reference")
  r <- certify_posterior(reference, x)
  inside <- intersect_intervals(inside, as_interval(r))
  if (is.null(data)) return(list(inside = inside, reference = reference))
  if (correction_serves(reference, data)) {
    tell("exact mean")
    inside <- intersect_intervals(inside, mean_interval(corrected_mean(reference, reference$correction, data, x)))
  }
  rows_at_most <- max(2000, 2 * reference$m)
  tell("sd by all rows")
  inside <- sharpen_sd(inside, at$sd, reference, data, x, rows_at_most)
  more <- if (most > 0) test_pivots(reference, r$unexplained, x, at, inside, most)
  if (length(more)) {
    tell(sprintf("%d test points", length(more)))
    reference <- extend_reference(fit, reference, x[more, , drop = FALSE])
    inside <- intersect_intervals(inside, posterior_interval(reference, x))
    inside <- sharpen_sd(inside, at$sd, reference, data, x, rows_at_most)
  }
  list(inside = inside, reference = reference)
}

by_all_pairs <- function(fit, reference, x, at, inside, tell) {
  tell("all pairs of rows")
  tight <- dtc_on_points(fit, fit$data, reference$inducing, NULL, fast = FALSE, tight = TRUE)
  inside <- intersect_intervals(inside, posterior_interval(tight, x))
  tell("exact mean")
  correction <- find_correction(tight, fit$data, fit, share = 1 / 1000, most = 50L)
  if (!is.null(correction)) {
    inside <- intersect_intervals(inside, mean_interval(corrected_mean(tight, correction, fit$data, x)))
  }
  tell("sd by all rows")
  sharpen_sd(inside, at$sd, tight, fit$data, x, Inf)
}

# What all rows of the data say of the sd at those rows of x, at most so many, where it is not yet known well beside its
# distance from the fit's, there and at the median row: 4 n m2 flops a row.
sharpen_sd <- function(inside, sd, reference, data, x, most) {
  half <- (inside$sd_upper - inside$sd_lower) / 2
  distance <- abs(sd - (inside$sd_upper + inside$sd_lower) / 2)
  rows <- which(half > pmax(distance, stats::median(distance)) / 20)
  rows <- rows[utils::head(order(-half[rows]), most)]
  if (!length(rows)) return(inside)
  points <- x[rows, , drop = FALSE]
  crossing <- native_cross(reference$factors, reference$inducing, data$x, data$weights, scaled_kernel(reference),
                           reference$noise / reference$scale^2, points, reference$control)
  sharper <- as_interval(certify_posterior(reference, points, crossing))
  at_rows <- lapply(inside, `[`, rows)
  both <- intersect_intervals(at_rows, sharper)
  for (what in names(inside)) inside[[what]][rows] <- both[[what]]
  inside
}

# T3: rows of x that pay as further points of the reference: those where what is not known yet, of the mean or of the
# sd, is not small beside the distance of the fit from it, there and at the median row, and comes from what its points
# leave unexplained at the row itself, E(x, x). Pivoted Cholesky of E on the worst of them takes those that leave the
# least of the others.
test_pivots <- function(reference, unexplained, x, at, inside, most) {
  kernel <- scaled_kernel(reference)
  large <- function(half, distance) half > pmax(distance, stats::median(distance)) / 4
  mean <- (inside$mean_upper - inside$mean_lower) / 2
  sd <- (inside$sd_upper - inside$sd_lower) / 2
  mean_pays <- large(mean, abs(at$mean - inside$mean_lower - mean)) &
    sqrt(unexplained) * reference$norms$w_E > mean / 2
  sd_pays <- large(sd, abs(at$sd - inside$sd_lower - sd)) &
    unexplained > (inside$sd_upper^2 - inside$sd_lower^2) / 4
  rows <- which((mean_pays | sd_pays) & unexplained > 1e3 * reference$norms$slack * reference$kernel$variance)
  if (!length(rows)) return(rows)
  rows <- utils::head(rows[order(-unexplained[rows])], min(8 * most, length(rows)))
  points <- x[rows, , drop = FALSE]
  A <- forwardsolve(reference$factors$L, native_kernel_matrix(kernel, reference$inducing, points))
  left <- native_kernel_matrix(kernel, points, points) - crossprod(A)
  R <- suppressWarnings(chol(left, pivot = TRUE, tol = min(diag(left)) / 16)) # it warns where it stops: as it should
  rows[utils::head(attr(R, "pivot"), min(attr(R, "rank"), most))]
}

extend_reference <- function(fit, reference, x) {
  inner <- if (reference$scale == fit$scale) reference else list(jitter = reference$jitter)
  dtc_on_points(fit, fit$data, rbind(reference$inducing, x), NULL, fast = FALSE, inner = inner)
}

# What rounding in the response, its offset, centring and merging does to any mean: |h_x| <= sqrt(k) / (2 sqrt(s2)), in
# units of y. The rows themselves count, not what is left of them where equal rows with unlike responses were merged.
response_rounding <- function(fit) {
  4 * .Machine$double.eps * response_size(fit) * sqrt(fit$kernel$variance / fit$noise) / 2
}

# The root of the weighted sum of squares of the responses as given, and of the offset.
response_size <- function(fit) {
  size <- sqrt(fit$signature$sums[["yy"]])
  offset <- fit$data$offset
  if (!length(offset)) return(size)
  w <- if (is.null(fit$data$prior_weights)) 1 else fit$data$prior_weights
  size + sqrt(sum(w * offset^2))
}

# What centre and offset add to the rounding is added to the ends.
certificate_frame <- function(fit, new, of_fit, inside) {
  i <- new$index
  eps <- 4 * .Machine$double.eps
  at <- function(v) fit$center + v[i] + new$offset
  room <- function(v) eps * (abs(fit$center) + abs(v[i]) + abs(new$offset)) + response_rounding(fit)
  lower <- at(inside$mean_lower) - room(inside$mean_lower)
  upper <- at(inside$mean_upper) + room(inside$mean_upper)
  mean <- at(of_fit$mean)
  out <- data.frame(mean = mean, mean_error = (1 + eps) * pmax(mean - lower, upper - mean), mean_lower = lower,
                    mean_upper = upper, sd = of_fit$sd[i], sd_lower = (1 - eps) * inside$sd_lower[i],
                    sd_upper = (1 + eps) * inside$sd_upper[i])
  if (!is.null(new$names)) row.names(out) <- make.unique(as.character(new$names))
  out
}

# What a posterior with norms says of the exact GP at x, in units of y without the centre, and the intervals from it.
certify_posterior <- function(post, x, crossing = NULL) {
  r <- native_certify(post$factors, post$inducing, scaled_kernel(post), post$noise / post$scale^2, post$norms, x,
                      crossing)
  power <- c(mean = 1, sor_variance = 2, unexplained = 2, mean_error = 1, var_lower = 2, var_upper = 2)
  for (what in names(power)) r[[what]] <- r[[what]] * post$scale^power[[what]]
  r
}

as_interval <- function(r) {
  list(mean_lower = r$mean - r$mean_error, mean_upper = r$mean + r$mean_error, sd_lower = sqrt(r$var_lower),
       sd_upper = sqrt(r$var_upper))
}

# of a corrected mean, which says nothing of the sd
mean_interval <- function(r) {
  list(mean_lower = r$mean - r$mean_error, mean_upper = r$mean + r$mean_error, sd_lower = 0, sd_upper = Inf)
}

posterior_interval <- function(post, x) as_interval(certify_posterior(post, x))

# A DTC posterior with norms on the fit's own points: of whatever kind the fit is, it certifies the exact GP.
own_posterior <- function(fit) {
  kernel <- scaled_kernel(fit)
  if (own_posterior_serves(fit)) {
    fit$norms <- posterior_norms(fit$factors, fit$inducing, fit$data, kernel, fit$noise / fit$scale^2, fast = TRUE,
                                 control = fit$control)
    return(fit)
  }
  z <- distinct_points(if (is.null(fit$rows)) fit$inducing else fit$rows, kernel)
  dtc_on_points(fit, fit$data, z, NULL, fast = TRUE)
}

# What rounding does to the exact posterior. With D the diagonal of K + s2 W^{-1}, its Cholesky factor is that of
# K + s2 W^{-1} + Delta, |D^{-1/2} Delta D^{-1/2}|_2 <= growth n, and h = (K + s2 W^{-1})^{-1} k(X, x):
#   error of the mean = h'Delta alpha,  of the variance = h'Delta h,
# and that of kernel values likewise. Blocks of rows bound the memory.
exact_interval <- function(fit, x) {
  p <- predict_posterior(fit, x)
  kernel <- scaled_kernel(fit)
  L <- fit$factors$L
  n <- nrow(L)
  growth <- 2 * (4 * sqrt(n) + 16) * .Machine$double.eps
  root <- sqrt(rowSums(L^2))
  h <- numeric(nrow(x))
  for (rows in split(seq_along(h), (seq_along(h) - 1) %/% 256)) {
    K <- native_kernel_matrix(kernel, fit$rows, x[rows, , drop = FALSE])
    h[rows] <- sqrt(colSums((root * solve_t(L, forwardsolve(L, K)))^2))
  }
  weight <- sqrt(sum((root * fit$factors$alpha)^2)) # |D^{1/2} alpha|
  mean_error <- growth * weight * (n * h + sqrt(n * kernel$variance))
  var_error <- growth * (n * h^2 + 2 * sqrt(n * kernel$variance) * h + kernel$variance)
  interval <- list(mean_lower = p$mean - mean_error, mean_upper = p$mean + mean_error,
                   sd_lower = sqrt(pmax(p$var_sor - var_error, 0)), sd_upper = sqrt(p$var_sor + var_error))
  lapply(interval, function(v) fit$scale * v)
}

# max() and min() of the ends. Two valid intervals that do not meet differ by rounding: their ends are then exchanged.
# Were they further apart, one of the two would be wrong: then all that lies between their outer ends, and a warning.
intersect_intervals <- function(a, b) {
  apart <- FALSE
  meet <- function(ends) {
    lower <- pmax(a[[ends[1L]]], b[[ends[1L]]])
    upper <- pmin(a[[ends[2L]]], b[[ends[2L]]])
    far <- lower - upper > 1e-9 * pmax(abs(lower), abs(upper))
    if (any(far)) {
      apart <<- TRUE
      lower[far] <- pmin(a[[ends[1L]]], b[[ends[1L]]])[far]
      upper[far] <- pmax(a[[ends[2L]]], b[[ends[2L]]])[far]
    }
    stats::setNames(list(pmin(lower, upper), pmax(lower, upper)), ends)
  }
  out <- c(meet(c("mean_lower", "mean_upper")), meet(c("sd_lower", "sd_upper")))
  if (apart) {
    warn_convergence(paste("Two certificates of the same rows do not meet: rounding went beyond its allowance. What is",
                           "returned holds both. A larger `noise` or `jitter` helps."))
  }
  out
}

find_reference <- function(fit, given, m2) {
  if (is.null(given)) {
    if (is.null(fit$data)) {
      abort_input("reference", "none for a fit without its data", "given",
                  hint = "Make it where the data are: fit$reference <- reference(fit); or fit with `keep_data = TRUE`.")
    }
    message("A reference is made for this call; keep it with  fit$reference <- reference(fit)")
    return(reference(fit, m2))
  }
  check_fit(given, "reference")
  if (given$method != "gp_dtc") abort_input("reference", sprintf("a fit by %s()", given$method), "a gp_dtc() fit")
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
