# certify() runs a list of steps, each of which narrows the intervals of the earlier steps. A step is a function(job,
# fun, inside) that returns the new `inside`. refine() narrows the intervals of the mean by conjugate gradients.
#   fun     linear functionals of f (functionals.R), such as values at rows
#   inside  list(mean_lower, mean_upper, sd_lower, sd_upper), in units of y without the constant mean
#   job     an environment: the fit, its data, its mean and sd (`at`), the reference, the correction of the reference's
#           mean, left() (the seconds left), and `most`, the largest number of functionals in a costly step

# Returns intervals of functionals, with attributes that certify() reads. Every call uses the same random numbers, so
# that a larger `effort` begins with the same intervals as a smaller one and only narrows them.
#' @export
posterior_certificate.posterior <- function(p, fun, effort = "reference", reference = p$fit$reference, m2 = NULL,
                                            test_points = NULL, max_seconds = 10, ...) {
  if (inherits(p, "exact") && is.null(p$chosen)) return(exact_interval(p, fun))
  fit <- p$fit
  if (!response_of(fit)$conjugate) return(with_fixed_seed(mode_certificate(fit, fun, effort, reference, m2)))
  if (effort == "fast" || effort == "tight" && !is.null(reference)) training_data(fit, "fit")
  job <- list2env(list(fit = fit, data = fit$data, at = functionals_in_units(fit, fun), reference = reference, m2 = m2,
    test_points = test_points, max_seconds = max_seconds, left = seconds_left(max_seconds), tight = effort == "tight",
    # TRUE for values of a fit with groups, because its inducing points represent only the part of f without groups.
    by_effects = fun$kind == "values" && !is.null(fit$inducing) && has_own_levels(model_of(fit)$kernel)))
  tell <- stage_line("certify", fit$control$progress)
  inside <- unknown_intervals(fun$n)
  steps <- switch(effort, fast = 1L, reference = c(1:6, 4L, 7:8), tight = c(1:6, 4L, 7:9, 5:7))
  if (!fun$n || is.null(job$data)) steps <- intersect(steps, 3L) # without training rows, only the reference certifies
  with_fixed_seed(for (i in steps) if (!isTRUE(job$done)) {
    tell(names(narrowings)[i])
    inside <- narrowings[[i]](job, fun, inside)
  })
  if (effort == "fast") return(structure(inside, left = job$left()))
  structure(inside, m2 = job$reference$m, t = in_units(job$reference, job$reference$norms$t, 2),
            passes = job$correction$passes %||% 0L, went = job$correction$went, left = job$left())
}

# This list has the steps of certify(), named as in its progress messages.
narrowings <- list(
  # Certifies by a posterior on the fit's own inducing points or, for an exact fit, on its rows.
  "the fit's own points" = function(job, fun, inside) {
    fit <- job$fit
    narrow(inside, if (job$by_effects) {
      effects_interval(fit, job$data, distinct_points(fit$inducing, smooth_part(model_of(fit)$kernel)), fun)
    } else {
      certify_posterior(own_posterior(fit), fun)
    })
  },

  # Certifies by all effects of groups, and by inducing points for f without groups. If no reference is given, this is
  # the last step if all intervals are narrower than 1 % of the sd, or with over 1,000 effects unless effort is "tight".
  "more points and all effects" = function(job, fun, inside) {
    if (!job$by_effects) return(inside)
    fit <- job$fit
    effects <- count_effects(model_of(fit)$kernel, job$data$x)
    room <- getOption("pfdtc.max_memory", 2^32) / (16 * effects) # products of points and effects take half the memory
    m2 <- job$m2 %||% min(4L * max(fit$m, min(200L, fit$nobs)), max(fit$m, floor(room)))
    rows <- reference_rows(job$data, smooth_part(model_of(fit)$kernel), min(m2, nrow(job$data$x)))
    found <- effects_interval(fit, job$data, job$data$x[rows, , drop = FALSE], fun)
    inside <- narrow(inside, found)
    of_sd <- c(inside$mean_upper - inside$mean_lower, inside$sd_upper - inside$sd_lower) / inside$sd_upper
    job$done <- is.null(job$reference) && (!job$tight && effects > 1000 || all(of_sd < 1e-2))
    if (job$done) job$reference <- list(m = length(rows), scale = fit$scale, norms = list(t = attr(found, "t")))
    inside
  },

  reference = function(job, fun, inside) {
    job$reference <- find_reference(job$fit, job$reference, job$m2, job$max_seconds)
    job$left <- seconds_left(job$max_seconds) # the time limit begins after the reference was computed
    job$most <- max(2000, 2 * job$reference$m)
    job$correction <- correction_for(job$reference, job$data)
    if (!fun$n) return(inside)
    found <- certify_posterior(job$reference, in_scale_of(job, fun))
    job$unexplained <- found$unexplained
    narrow(inside, found)
  },

  # Certifies wide intervals by the exact posterior, if time and memory allow. An interval counts as wide if it was wide
  # before any pass over all pairs of rows. So a larger effort, with more passes, omits no interval here.
  "exact posterior" = function(job, fun, inside) {
    before <- job$without_passes
    known <- utils::modifyList(inside, as.list(before))
    # In a wide interval, half the width exceeds 1/10 of the sd and of the distance from its middle to the fit's value.
    rows <- which(Reduce(`|`, lapply(c("mean", if (!is.null(before)) "sd"), function(what) {
      v <- half_and_distance(known, job$at, what)
      !(v$half <= pmax(known$sd_upper, v$distance) / 10) %in% TRUE
    })))
    if (!length(rows) || kriging_rows() < 1) return(inside)
    found <- exact_if_cheap(job$fit, some_functionals(fun, rows), job$left())
    if (is.null(found)) inside else narrow(inside, found, rows)
  },

  "exact mean" = function(job, fun, inside) {
    if (is.null(job$without_passes)) job$without_passes <- inside[c("mean_lower", "mean_upper")]
    if (is.null(job$correction)) return(inside)
    narrow(inside, corrected_mean(job$reference, job$correction, job$data, in_scale_of(job, fun)))
  },

  # Narrows wide intervals by kriging (weights on nearest neighbours), first those that are widest in units of the sd.
  # Let d be the distance from an interval's middle to the fit's value or, if larger, the median of these distances.
  # Half the width of a wide interval exceeds rounding, and d / 20 or (for the sd) 1/400 of the sd.
  "kriging on nearest neighbours" = function(job, fun, inside) {
    if (kriging_rows() < 1) return(inside)
    excess <- function(what, floor) {
      v <- half_and_distance(inside, job$at, what)
      rounding <- 1e-12 * abs(inside[[paste0(what, "_upper")]])
      ifelse(v$half <= pmin(v$far / 20, floor) | v$half <= rounding, 0, v$half / inside$sd_upper)
    }
    score <- excess("sd", inside$sd_upper / 400)
    if (!is.null(job$correction$residual)) score <- pmax(score, excess("mean", Inf)) # kriging narrows the mean too
    score[is.na(score)] <- Inf
    rows <- order(-score)[seq_len(sum(score > 0))]
    values <- fun$kind == "values"
    fun <- in_scale_of(job, fun)
    rows <- if (values) utils::head(rows, job$most) else rows[fun$size[rows] > 0]
    while (length(rows)) {
      began <- job$left()
      size <- if (values) points_in_time(job$reference, job$data, length(rows), began) else began > 0
      if (size < 1) break
      part <- utils::head(rows, size)
      rows <- utils::tail(rows, -size)
      weights <- krige(job$reference, job$data, some_functionals(fun, part))
      found <- kriged_interval(weights, job$reference, job$correction, job$data, inside$sd_lower[part])
      inside <- narrow(inside, found, part)
      if (!values && isTRUE(job$left() < began - job$left())) break # the last part took longer than the time left
    }
    inside
  },

  # Narrows wide intervals of the sd of values f(x) by sums over all n rows (4 n m2 flops each, m2 inducing points). Let
  # d be the distance from an interval's middle to the fit's sd or, if larger, the median of these distances. Half the
  # width of a wide interval exceeds d / 20 and, unless kriging is switched off, 1/200 of the sd.
  "sd by all rows" = function(job, fun, inside) {
    if (fun$kind != "values") return(inside)
    sd <- half_and_distance(inside, job$at, "sd")
    floor <- if (kriging_rows() < 1) 0 else inside$sd_upper / 200
    rows <- which(sd$half > sd$far / 20 & sd$half > floor)
    if (!length(rows)) return(inside)
    reference <- job$reference
    n <- as.double(nrow(job$data$x))
    left <- job$left() - seconds_for(reference, n * reference$m^2)
    room <- floor(left / seconds_for(reference, 4 * n * reference$m))
    rows <- rows[utils::head(order(-sd$half[rows]), max(min(job$most, room), 0))]
    if (!length(rows)) return(inside)
    some <- some_functionals(fun, rows)
    crossing <- native_cross(reference$factors, reference$inducing, job$data, model_of(reference), some$x,
                             reference$control)
    narrow(inside, certify_posterior(reference, some, crossing), rows)
  },

  # Adds new rows with a large residual prior variance to the inducing points of the reference, in this call only.
  "test points" = function(job, fun, inside) {
    reference <- job$reference
    most <- job$test_points %||% max(16, reference$m %/% 4)
    if (fun$kind != "values" || most < 1) return(inside)
    more <- test_pivots(reference, job$unexplained, fun$x, job$at, inside, most)
    flops <- 4 * as.double(nrow(job$data$x)) * (reference$m + length(more))^2
    if (!length(more) || seconds_for(reference, flops) > job$left()) return(inside)
    inner <- if (reference$scale == job$fit$scale) reference else list(jitter = reference$jitter)
    points <- rbind(reference$inducing, fun$x[more, , drop = FALSE])
    job$reference <- dtc_on_points(job$fit, job$data, points, NULL, fast = FALSE, inner = inner)
    narrowings[["sd by all rows"]](job, fun, narrow(inside, certify_posterior(job$reference, fun)))
  },

  # Computes smaller bounds on the reference's error, and a better mean, from all pairs of rows.
  "all pairs of rows" = function(job, fun, inside) {
    job$reference <- dtc_on_points(job$fit, job$data, job$reference$inducing, NULL, fast = FALSE, tight = TRUE)
    job$correction <- exact_mean(job$reference, job$data, share_of_distance(job$reference, job$data, job$fit, 1 / 1000),
                                 list(passes = 50L, left = job$left))
    job$most <- Inf
    narrow(inside, certify_posterior(job$reference, fun))
  }
)

# Returns intervals for values of the exact GP, from all effects of groups, and inducing points z for f without groups.
effects_interval <- function(fit, data, z, fun) {
  model <- model_of(fit)
  W <- merged_weights(data) / model$noise
  b <- new_bounds(fit, data, z, model$kernel, FALSE, list(offset = 0), rounding_jitter(nrow(z)), effects = TRUE)
  factors <- effect_posterior(z, list(x = data$x, y = data$y, weights = W), b$model, b$jitter, fit$control)
  b$jitter <- factors$jitter
  at <- mode_with_effects(b, factors, function(mean) list(f = mean, g = W * (data$y - mean), W = W))
  b <- gaussian_problem(b, at)
  structure(lapply(mode_interval(b, fun), in_units, model = model), t = b$t * model$noise)
}

# Returns the functionals in the units of the reference, whose response may be scaled differently from the fit's.
in_scale_of <- function(job, fun) {
  ratio <- (job$fit$scale / job$reference$scale)^2
  if (ratio == 1 || fun$kind == "values") return(fun)
  cross <- fun$cross
  fun$cross <- function(u, i) ratio * cross(u, i)
  fun[c("prior", "size")] <- lapply(fun[c("prior", "size")], `*`, ratio)
  fun
}

# Returns list(half, distance, far) for intervals of `what` ("mean" or "sd"). `half` is half the width of an interval,
# `distance` is the distance of its middle from the fit's value, `far` the larger of this and the median distance.
half_and_distance <- function(inside, at, what) {
  lower <- inside[[paste0(what, "_lower")]]
  upper <- inside[[paste0(what, "_upper")]]
  distance <- abs(at[[what]] - (upper + lower) / 2)
  list(half = (upper - lower) / 2, distance = distance, far = pmax(distance, stats::median(distance)))
}

# Returns the row numbers of at most `most` rows of x to add to the reference's inducing points: rows with wide
# intervals and a large residual prior variance `unexplained`. A pivoted Cholesky factorisation of their residual prior
# covariance chooses among the rows with the largest variance.
test_pivots <- function(reference, unexplained, x, at, inside, most) {
  model <- model_of(reference)
  # An interval is wide if half its width exceeds v$far / 4 and, unless kriging is switched off, 1/20 of the sd. v$far
  # is the distance from its middle to the fit's value or, if larger, the median of these distances.
  known <- if (kriging_rows() < 1) 0 else inside$sd_upper
  mean <- half_and_distance(inside, at, "mean")
  sd <- half_and_distance(inside, at, "sd")
  large <- function(v) v$half > v$far / 4 & v$half > known / 20
  mean_pays <- large(mean) & sqrt(unexplained) * reference$norms$w_E > mean$half / 2
  sd_pays <- large(sd) & unexplained > (inside$sd_upper^2 - inside$sd_lower^2) / 4
  prior <- kernel_diagonal(reference$kernel, x)
  rows <- which((mean_pays | sd_pays) & unexplained > 1e3 * reference$norms$slack * prior)
  if (!length(rows)) return(rows)
  rows <- utils::head(rows[order(-unexplained[rows])], min(8 * most, length(rows)))
  left <- residual_covariance(model$kernel, reference$inducing, reference$factors$L, x[rows, , drop = FALSE])
  R <- suppressWarnings(chol(left, pivot = TRUE, tol = min(diag(left)) / 16)) # chol() warns if the rank is deficient
  rows[utils::head(attr(R, "pivot"), min(attr(R, "rank"), most))]
}

#' @rdname reference
#' @order 2
#' @export
refine <- function(fit, newdata, tol, maxit = 50, ..., reference = fit$reference, data = NULL) {
  check_dots_empty()
  fit <- check_fit(fit, "fit")
  if (!is.null(data)) fit <- with_fixed_seed(with_rows_of(fit, source_of_fit(fit, data)))
  data <- training_data(fit, "fit")
  check_given("tol", "Give a fraction of the sd of the response, as in tol = 0.01.")
  tol <- check_level(tol, "tol")
  maxit <- check_count(maxit, "maxit", min = 0)
  new <- new_rows(fit, newdata)
  if (is.na(fit$sd_y)) abort_input("tol", "cannot be used for a response of one row: it is a fraction of its sd")
  goal <- tol * fit$sd_y
  fun <- values_at(model_of(fit)$kernel, new$x)
  if (is_exact(fit)) {
    found <- list(inside = exact_interval(posterior_of(fit), fun), iterations = 0L, why = "nothing to iterate")
  } else {
    reference <- find_reference(fit, reference, NULL)
    found <- with_fixed_seed(iterate_to(reference, data_in_scale(fit, reference), fun, goal, maxit))
    # If rounding errors stopped the iterations (almost no noise), a Cholesky factorisation of the responses' covariance
    # has smaller errors. exact_if_cheap() computes it if memory and 30 s suffice.
    exact <- if (found$why == rounding_stops && largest_error(found$inside) > goal) exact_if_cheap(fit, fun, 30)
    if (!is.null(exact)) found$inside <- narrow(found$inside, exact)
  }
  inside <- found$inside
  unknown <- is.infinite(inside$mean_lower) | is.infinite(inside$mean_upper)
  middle <- ifelse(unknown, 0, (inside$mean_lower + inside$mean_upper) / 2)
  out <- certificate_frame(fit, new, list(mean = middle, sd = inside$sd_upper), inside)[c("mean", "mean_error")]
  worst <- max(out$mean_error, 0, na.rm = TRUE)
  if (worst > goal) {
    warn_convergence(sprintf(
      "`tol` = %s was not met at %d of %d rows. The largest certified error is %s sd(y) after %d iterations (%s).",
      format(tol), sum(out$mean_error > goal, na.rm = TRUE), nrow(out), show_bound(worst / fit$sd_y, 3),
      found$iterations, found$why))
  }
  structure(out, class = c("pfdtc_table", "data.frame"), iterations = found$iterations, met = worst <= goal,
            legend = "`mean` is the mean of f under the exact GP, with an error of at most `mean_error`.")
}

rounding_stops <- "rounding errors allow no smaller error"

largest_error <- function(inside) max(inside$mean_upper - inside$mean_lower, 0) / 2

# Runs conjugate gradients until half the width of each mean's interval is at most `goal`, in units of y. Returns
# list(inside, iterations, why, correction): `inside` has the intervals, `why` the reason for stopping. For rough
# kernels and groups with many levels, intervals come from kriging as well as from the reference. If `keep` is TRUE, the
# solution so far is returned at an interrupt or R's time limit. `...` are arguments of krige().
iterate_to <- function(reference, data, fun, goal, maxit, left = function() Inf, keep = TRUE, ...) {
  inside <- unknown_intervals(fun$n)
  iterations <- 0L
  from <- correction <- correction_for(reference, data)
  ended <- function(why) list(inside = inside, iterations = iterations, why = why, correction = correction)
  inside <- narrow(inside, certify_posterior(reference, fun))
  own <- largest_error(inside)
  if (own <= goal) return(ended("`maxit`"))
  near <- precondition_by_near_rows(reference, data)
  made <- stop_by(list(kriged = if (near && kriging_rows() > 0) {
    lapply(blocks_of(seq_len(fun$n), 1024L), function(rows) {
      list(rows = rows, found = krige(reference, data, some_functionals(fun, rows), ...))
    })
  }, precondition = if (near) near_preconditioner(reference, data)), keep)
  if (!is.null(made$stopped)) return(ended(made$stopped))
  kriged <- made$value$kriged
  times <- if (is.null(kriged)) Inf else
    reference$scale * max(vapply(kriged, function(k) sqrt(max(kriged_h2(k$found))), 0))
  # A state s of the conjugate gradients for the exact mean has two norms of the residual, sqrt(s$c) and s$w_E. The
  # error of the mean is at most `times` * sqrt(s$c) by kriging, and `wide` * s$w_E by the reference.
  wide <- if (reference$norms$w_E > 0) own / reference$norms$w_E else 0
  aim <- 0.9 * goal
  renewed <- FALSE
  repeat {
    tried <- stop_by({
      ratio <- function(s) min(times * sqrt(s$c), wide * s$w_E, na.rm = TRUE) / aim
      one <- exact_mean(reference, data, ratio, list(passes = maxit - iterations, left = left), from,
                        made$value$precondition, sharp = TRUE, keep = keep)
      found <- if (!is.null(one)) narrow(unknown_intervals(fun$n), corrected_mean(reference, one, data, fun))
      for (part in kriged[!is.null(one)]) {
        found <- narrow(found, kriged_interval(part$found, reference, one, data), part$rows)
      }
      list(correction = one, inside = found)
    }, keep)
    if (is.null(tried$value$correction)) return(ended(tried$stopped))
    correction <- tried$value$correction
    now <- largest_error(tried$value$inside)
    iterations <- iterations + correction$steps
    stalled <- correction$stalled || (correction$steps == 0L && now > 0.9 * largest_error(inside))
    inside <- narrow(inside, tried$value$inside)
    if (largest_error(inside) <= goal || !is.null(correction$stopped) || iterations >= maxit) break
    from <- correction
    if (!stalled) {
      aim <- aim / 4
      next
    }
    # Compute the residual anew, once, to remove the rounding errors of the iterations so far.
    once <- residual_rounding(reference, data$y * root_weights(data), c(v = norm2(correction$v), r = 0))
    if (renewed || !isTRUE(now * (once$residual / correction$error$residual) <= 4 * goal)) break
    from$residual <- NULL
    renewed <- TRUE
  }
  ended(correction$stopped %||% if (stalled) rounding_stops else "`maxit`")
}
