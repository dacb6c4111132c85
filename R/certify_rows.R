# The stages of a certificate, each of which narrows the intervals of those before.

# Rows of inputs, as certify_rows() wants them.
plain_rows <- function(x, index = seq_len(nrow(x))) list(x = x, index = index, offset = 0, names = NULL)

# `new`: rows as training_rows() and new_rows() give them. The same random numbers for every call: what one effort finds
# the next begins with.
certify_rows <- function(fit, new, effort, reference, m2 = NULL, test_points = NULL, max_seconds = 10) {
  same_chance(certificate_of_rows(fit, new, effort, reference, m2, test_points, max_seconds))
}

# All in units of y without the centre: a reference may have been fitted in another scale.
certificate_of_rows <- function(fit, new, effort, reference, m2, test_points, max_seconds) {
  x <- new$x
  tell <- stage_line("certify", fit$control$progress)
  on.exit(tell(NULL))
  started <- proc.time()[["elapsed"]]
  left <- seconds_left(max_seconds)
  tell("the fit's own points")
  p <- posterior_values(posterior_of(fit), x)
  at <- list(mean = in_units(fit, p$mean), sd = in_units(fit, sqrt(pmax(p$var, 0))))
  inside <- list(mean_lower = -Inf, mean_upper = Inf, sd_lower = 0, sd_upper = Inf)
  if (effort == "fast" && !is_exact(fit)) needs_data(fit, "fit")
  by_reference <- effort != "fast" && !is_exact(fit)
  if (nrow(x)) {
    if (is_exact(fit)) inside <- exact_interval(fit, x)
    else if (!is.null(fit$data)) inside <- posterior_interval(own_posterior(fit), x)
  }
  if (by_reference) {
    reference <- find_reference(fit, reference, m2, max_seconds)
    left <- seconds_left(max_seconds) # a reference that is made here has had its own
  }
  found <- list(correction = reference$correction)
  if (nrow(x) && by_reference) {
    most <- if (is.null(test_points)) max(16, reference$m %/% 4) else test_points
    found <- by_a_reference(fit, reference, x, at, inside, most, tell, left)
    inside <- found$inside
    reference <- found$reference
    if (effort == "tight") {
      needs_data(fit, "fit")
      found <- by_all_pairs(fit, reference, x, at, inside, tell, left)
      inside <- found$inside
    }
  }
  out <- certificate_frame(fit, new, at, inside)
  attr(out, "effort") <- effort
  attr(out, "m2") <- if (by_reference) reference$m
  attr(out, "t") <- if (by_reference) in_units(reference, reference$norms$t, 2)
  attr(out, "passes") <- if (by_reference) passes_of(found$correction)
  attr(out, "seconds") <- proc.time()[["elapsed"]] - started
  attr(out, "advice") <- certificate_advice(out, effort, fit, found$correction, left())
  out
}

passes_of <- function(correction) if (is.null(correction$passes)) 0L else correction$passes

# What would narrow intervals of which nothing useful can be said: half of them wider than the exact sd may be. By which
# factor a pass over all pairs of rows narrows the mean's is that of the passes so far.
certificate_advice <- function(out, effort, fit, correction, left) {
  if (!nrow(out) || is_exact(fit)) return(NULL)
  wide <- out$mean_upper - out$mean_lower > 2 * out$sd_upper
  vague <- out$sd_upper > 2 * out$sd_lower
  share <- function(v) sprintf("%.0f %% of the rows", 100 * mean(v, na.rm = TRUE))
  said <- character()
  if (any(wide, na.rm = TRUE)) {
    ratio <- stats::median(((out$mean_upper - out$mean_lower) / (2 * out$sd_upper))[wide], na.rm = TRUE)
    passes <- if (effort != "fast") passes_until(correction$went, 0.1 / ratio) # to a tenth of the sd
    said <- sprintf("The mean is not usefully certified at %s: the bound exceeds the sd. %s", share(wide),
                    if (effort == "fast") "Take effort = \"reference\"."
                    else if (is.null(passes)) "refine() certifies it by passes over all pairs of rows."
                    else sprintf("refine() would need about %d more passes over all pairs of rows.", passes))
  }
  if (any(vague, na.rm = TRUE)) {
    said <- c(said, sprintf("The sd is known within a factor of two at best at %s: %s.", share(vague),
                            if (effort == "fast") "take effort = \"reference\""
                            else if (left <= 0) "a larger `max_seconds` may tell more"
                            else "a larger reference (`m2`) tells more"))
  }
  if (length(said)) said
}

# list(inside, reference, correction): the intervals, narrowed; the reference with the test points that it got, and the
# correction of its mean before that
by_a_reference <- function(fit, reference, x, at, inside, most, tell, left) {
  data <- fit$data
  tell("reference")
  r <- certify_posterior(reference, x)
  inside <- intersect_intervals(inside, as_interval(r))
  correction <- if (correction_serves(reference, data)) reference$correction
  done <- function(inside) list(inside = inside, reference = reference, correction = correction)
  if (is.null(data)) return(done(inside))
  # Passes do not decide what rows the exact posterior is asked about: more of them would leave wider intervals.
  inside <- by_exact_posterior(fit, x, inside, left_open(inside, at, "mean"), tell, left)
  without <- inside[c("mean_lower", "mean_upper")]
  if (!is.null(correction)) {
    tell("exact mean")
    inside <- intersect_intervals(inside, mean_interval(corrected_mean(reference, correction, data, x)))
  }
  rows_at_most <- max(2000, 2 * reference$m)
  tell("kriging on near rows")
  inside <- sharpen_by_kriging(inside, at, reference, data, x, rows_at_most, left)
  open <- left_open(utils::modifyList(inside, without), at, c("mean", "sd"))
  inside <- by_exact_posterior(fit, x, inside, open, tell, left)
  tell("sd by all rows")
  inside <- sharpen_sd(inside, at$sd, reference, data, x, rows_at_most, left)
  more <- if (most > 0) test_pivots(reference, r$unexplained, x, at, inside, most)
  if (length(more) && seconds_of_flops(reference, data, 4 * (reference$m + length(more))^2) <= left()) {
    tell(sprintf("%d test points", length(more)))
    reference <- extend_reference(fit, reference, x[more, , drop = FALSE])
    inside <- intersect_intervals(inside, posterior_interval(reference, x))
    inside <- sharpen_sd(inside, at$sd, reference, data, x, rows_at_most, left)
  }
  done(inside)
}

# Seconds for so many flops a row of the data, as far as a small product tells
seconds_of_flops <- function(reference, data, flops) {
  nrow(data$x) * flops * engine_speed(reference$kernel, data$x, reference$control)[["flop"]]
}

# list(inside, correction)
by_all_pairs <- function(fit, reference, x, at, inside, tell, left) {
  tell("all pairs of rows")
  tight <- dtc_on_points(fit, fit$data, reference$inducing, NULL, fast = FALSE, tight = TRUE)
  inside <- intersect_intervals(inside, posterior_interval(tight, x))
  tell("exact mean")
  tight$correction <- find_correction(tight, fit$data, fit, share = 1 / 1000, most = 50L, left = left)
  if (!is.null(tight$correction)) {
    inside <- intersect_intervals(inside, mean_interval(corrected_mean(tight, tight$correction, fit$data, x)))
  }
  tell("kriging on near rows")
  inside <- sharpen_by_kriging(inside, at, tight, fit$data, x, Inf, left)
  tell("sd by all rows")
  list(inside = sharpen_sd(inside, at$sd, tight, fit$data, x, Inf, left), correction = tight$correction)
}

# Rows of which some of `what` is known no better than within a tenth of the sd and of the distance from the fit
left_open <- function(inside, at, what) {
  which(!Reduce(`&`, lapply(what, function(one) {
    half <- (inside[[paste0(one, "_upper")]] - inside[[paste0(one, "_lower")]]) / 2
    known <- half <= pmax(inside$sd_upper, abs(at[[one]] - inside[[paste0(one, "_lower")]] - half)) / 10
    known & !is.na(known)
  })))
}

# What the exact posterior itself says of those rows, where it takes less time and memory than there is
by_exact_posterior <- function(fit, x, inside, rows, tell, left) {
  if (!length(rows) || kriging_rows() < 1 || !exact_is_cheap(fit, length(rows), left())) return(inside)
  tell("exact posterior")
  exact <- tryCatch(exact_of_fit(fit), pfdtc_error_numerical = function(e) NULL)
  if (is.null(exact)) return(inside)
  x <- if (is_functionals(x)) some_functionals(x, rows) else x[rows, , drop = FALSE]
  both <- intersect_intervals(lapply(inside, `[`, rows), exact_interval(exact, x))
  for (what in names(inside)) inside[[what]][rows] <- both[[what]]
  inside
}

# What all rows of the data say of the sd at those rows of x, at most so many and as far as there is time, where it is
# not yet known well beside its distance from the fit's, there and at the median row (and, after kriging, beside
# itself): 4 n m2 flops a row.
sharpen_sd <- function(inside, sd, reference, data, x, most, left) {
  half <- (inside$sd_upper - inside$sd_lower) / 2
  distance <- abs(sd - (inside$sd_upper + inside$sd_lower) / 2)
  floor <- if (kriging_rows() < 1) 0 else inside$sd_upper / 200
  rows <- which(half > pmax(distance, stats::median(distance)) / 20 & half > floor)
  if (!length(rows)) return(inside)
  if (left() < Inf) {
    each <- seconds_of_flops(reference, data, 4 * reference$m)
    most <- min(most, floor((left() - seconds_of_flops(reference, data, reference$m^2)) / each))
  }
  rows <- rows[utils::head(order(-half[rows]), max(most, 0))]
  if (!length(rows)) return(inside)
  points <- x[rows, , drop = FALSE]
  model <- model_of(reference)
  crossing <- native_cross(reference$factors, reference$inducing, data, model, points, reference$control)
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
  model <- model_of(reference)
  # beside the distance and, where kriging has been at it, beside the sd
  known <- if (kriging_rows() < 1) 0 else inside$sd_upper
  large <- function(half, distance) half > pmax(distance, stats::median(distance)) / 4 & half > known / 20
  mean <- (inside$mean_upper - inside$mean_lower) / 2
  sd <- (inside$sd_upper - inside$sd_lower) / 2
  mean_pays <- large(mean, abs(at$mean - inside$mean_lower - mean)) &
    sqrt(unexplained) * reference$norms$w_E > mean / 2
  sd_pays <- large(sd, abs(at$sd - inside$sd_lower - sd)) &
    unexplained > (inside$sd_upper^2 - inside$sd_lower^2) / 4
  rows <- which((mean_pays | sd_pays) & unexplained > 1e3 * reference$norms$slack * prior_at(reference, x))
  if (!length(rows)) return(rows)
  rows <- utils::head(rows[order(-unexplained[rows])], min(8 * most, length(rows)))
  points <- x[rows, , drop = FALSE]
  A <- forwardsolve(reference$factors$L, native_kernel_matrix(model$kernel, reference$inducing, points))
  left <- native_kernel_matrix(model$kernel, points, points) - crossprod(A)
  R <- suppressWarnings(chol(left, pivot = TRUE, tol = min(diag(left)) / 16)) # it warns where it stops: as it should
  rows[utils::head(attr(R, "pivot"), min(attr(R, "rank"), most))]
}

extend_reference <- function(fit, reference, x) {
  inner <- if (reference$scale == fit$scale) reference else list(jitter = reference$jitter)
  dtc_on_points(fit, fit$data, rbind(reference$inducing, x), NULL, fast = FALSE, inner = inner)
}

# The intervals, narrowed by kriging at rows of x where they are not narrow yet: `most` of them, the widest first, as
# far as the seconds left allow.
sharpen_by_kriging <- function(inside, at, reference, data, x, most, left) {
  if (kriging_rows() < 1) return(inside)
  correction <- if (correction_serves(reference, data)) reference$correction
  rows <- utils::head(wide_rows(inside, at, !is.null(correction$residual)), most)
  while (length(rows)) {
    size <- points_in_time(reference, data, length(rows), left())
    if (size < 1) break
    part <- utils::head(rows, size)
    rows <- utils::tail(rows, -size)
    points <- x[part, , drop = FALSE]
    known <- lapply(inside, `[`, part)
    found <- krige(reference, data, points, group = group_for(length(part)))
    both <- intersect_intervals(known, kriged_interval(found, reference, correction, data, points, known))
    for (what in names(inside)) inside[[what]][part] <- both[[what]]
  }
  inside
}
