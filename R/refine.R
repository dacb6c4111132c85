#' @rdname reference
#' @export
refine <- function(fit, newdata, tol, maxit = 50, ..., reference = fit$reference, data = NULL) {
  check_dots_empty(list(...), names(formals(refine)))
  fit <- check_fit(fit, "fit")
  if (!is.null(data)) fit <- with_rows_of(fit, source_of_fit(fit, data))
  data <- needs_data(fit, "fit")
  refuse_if(missing(tol), "tol", "is missing", hint = "Give a fraction of the sd of the response, as in tol = 0.01.")
  tol <- check_positive(tol, "tol", 1L)
  maxit <- check_count(maxit, "maxit", min = 0)
  new <- if (missing(newdata)) training_rows(fit) else new_rows(fit, newdata, stats::na.pass)
  if (is.na(fit$sd_y)) abort_input("tol", "cannot be used for a response of one row: it is a fraction of its sd")
  goal <- tol * fit$sd_y
  fun <- values_at(model_of(fit)$kernel, new$x)
  if (is_exact(fit)) {
    found <- list(inside = exact_interval(posterior_of(fit), fun), iterations = 0L, why = "nothing to iterate")
  } else {
    reference <- find_reference(fit, reference, NULL)
    found <- iterate_to(reference, data_in_scale(fit, reference), fun, goal, maxit)
    # If rounding stopped the iterations (almost no noise), a Cholesky factorisation of K + s2 I has smaller errors. Use
    # it if it takes at most 30 s.
    open <- found$why == rounding_stops && largest_error(found$inside) > goal
    exact <- if (open) exact_if_cheap(fit, fun, 30)
    if (!is.null(exact)) found$inside <- narrow(found$inside, exact)
  }
  # `mean` is the middle of each interval, and `mean_error` half its width.
  inside <- found$inside
  unknown <- is.infinite(inside$mean_lower) | is.infinite(inside$mean_upper)
  middle <- ifelse(unknown, 0, (inside$mean_lower + inside$mean_upper) / 2)
  out <- certificate_frame(fit, new, list(mean = middle, sd = inside$sd_upper), inside)[c("mean", "mean_error")]
  worst <- max(out$mean_error, 0, na.rm = TRUE)
  attr(out, "iterations") <- found$iterations
  attr(out, "met") <- worst <= goal
  if (worst > goal) {
    warn_convergence(sprintf(
      "`tol` = %s was not met at %d of %d rows. The largest certified error is %s sd(y) after %d iterations (%s).",
      format(tol), sum(out$mean_error > goal, na.rm = TRUE), nrow(out), format(worst / fit$sd_y, digits = 3),
      found$iterations, found$why))
  }
  out
}

rounding_stops <- "rounding errors allow no more"

# Returns half the width of the widest interval of the mean.
largest_error <- function(inside) max(inside$mean_upper - inside$mean_lower, 0) / 2

# Iterates until half the width of the interval of every functional's mean is at most `goal`, in units of y. Returns
# list(inside, iterations, why, correction). Intervals come from kriging if the reference has a large residual prior
# variance, otherwise from the reference. With `keep`, an interrupt or R's time limit keeps the solution so far, and a
# second interrupt ends the call. `...` is for krige().
iterate_to <- function(reference, data, fun, goal, maxit, left = function() Inf, keep = TRUE, ...) {
  inside <- unknown_intervals(fun$n)
  iterations <- 0L
  from <- correction <- if (correction_serves(reference, data)) reference$correction
  ended <- function(why) list(inside = inside, iterations = iterations, why = why, correction = correction)
  if (!fun$n) return(ended("no rows"))
  inside <- narrow(inside, certify_posterior(reference, fun))
  own <- largest_error(inside)
  if (own <= goal) return(ended("`maxit`"))
  near <- precondition_by_near_rows(reference, data)
  made <- stop_by(list(kriged = if (near && kriging_rows() > 0) {
    lapply(split(seq_len(fun$n), (seq_len(fun$n) - 1L) %/% 1024L), function(rows) {
      list(rows = rows, found = krige(reference, data, some_functionals(fun, rows), ...))
    })
  }, precondition = if (near) near_preconditioner(reference, data)), keep)
  if (!is.null(made$stopped)) return(ended(made$stopped))
  kriged <- made$value$kriged
  far <- if (is.null(kriged)) Inf else
    reference$scale * max(vapply(kriged, function(k) sqrt(max(kriged_h2(k$found))), 0))
  # A certificate by kriging is sqrt(c) times `far`. The reference's own certificates are proportional to |w_r|_E.
  wide <- if (reference$norms$w_E > 0) own / reference$norms$w_E else 0
  aim <- 0.9 * goal
  renewed <- FALSE
  repeat {
    tried <- stop_by({
      ratio <- function(s) min(far * sqrt(s$c), wide * s$w_E, na.rm = TRUE) / aim
      one <- exact_mean(reference, data, function(near) ratio, list(passes = maxit - iterations, left = left), from,
                        made$value$precondition, sharp = TRUE, keep = keep)
      found <- if (!is.null(one)) narrow(unknown_intervals(fun$n), corrected_mean(reference, one, data, fun))
      for (part in kriged[!is.null(one)]) {
        found <- narrow(found, kriged_interval(part$found, reference, one, data), part$rows)
      }
      list(correction = one, inside = found)
    }, keep)
    if (is.null(tried$value$correction)) return(ended(tried$stopped))
    correction <- tried$value$correction
    before <- largest_error(inside)
    now <- largest_error(tried$value$inside)
    iterations <- iterations + correction$steps
    stalled <- correction$stalled || (correction$steps == 0L && now > 0.9 * before)
    inside <- narrow(inside, tried$value$inside)
    if (largest_error(inside) <= goal || !is.null(correction$stopped) || iterations >= maxit) break
    from <- correction
    if (!stalled) {
      aim <- aim / 4
      next
    }
    # Computing r anew, once, removes the rounding errors of the iterations so far, except those of a single product.
    once <- residual_rounding(reference, data$y * root_weights(data), c(v = norm2(correction$v), r = 0))
    if (renewed || !isTRUE(now * (once$residual / correction$error$residual) <= 4 * goal)) break
    from$residual <- NULL
    renewed <- TRUE
  }
  ended(if (!is.null(correction$stopped)) correction$stopped else if (stalled) rounding_stops else "`maxit`")
}
