#' The exact GP's mean, to a named accuracy
#'
#' Preconditioned conjugate gradients on \eqn{(K + \sigma^2 W^{-1}) w = y}{(K + s2 W^-1) w = y}, until the certificate
#' at every row of `newdata` is below `tol` times the sd of the response: means of the exact Gaussian process without an
#' `n` by `n` matrix.
#'
#' The kernel matrix is streamed: a step takes all pairs of rows, \eqn{n^2 / 2}{n^2/2} kernel evaluations, and \eqn{O(n
#' m_2)} beside them, in memory \eqn{O(n + m_2^2)}. The preconditioner is the reference or, where that leaves much
#' unexplained (Matern kernels, short lengthscales), 800 of its points and 40 near rows of every row, with certificates
#' by kriging on the rows near each row of `newdata` (400 numbers for each of these). Rounding along the iterations is
#' part of the certificate.
#'
#' @inheritParams certify
#' @param newdata rows to find the exact mean at; when missing, the training rows.
#' @param tol accuracy as a fraction of the sd of the response.
#' @param maxit the most iterations.
#' @param reference a reference made by [reference()], see [certify()].
#' @param data where the fit has not kept them, the rows it was made of: a row source or a data frame. All rows are then
#'   held in memory for the call, `2 d + 6` numbers each: products of all pairs of them are what takes the time. Where
#'   they come from workers ([rows_parts()]), these make the products: each is sent the inputs of all rows once, and in
#'   every step a number a row.
#' @return A data frame with a row for each row of `newdata`, in units of `y`: `mean`, the exact GP's mean (with the
#'   fit's offset), and `mean_error`: the exact mean differs from `mean` by no more. Attributes `iterations` and `met`,
#'   whether `tol` was met. A row with missing values has `NA`.
#' @section Errors: class `pfdtc_error_input` for a fit without its data and no `data`, `data` that are not the fit's
#'   rows or take more than `getOption("pfdtc.max_memory", 2^32)` bytes, or a bad `tol`. Where `tol` is not met within
#'   `maxit` iterations or is below what rounding allows, a warning of class `pfdtc_warning_convergence` says what was
#'   reached; an interrupt and R's time limit ([setTimeLimit()]) do likewise.
#' @section Invariants: `|mean - exact mean| <= mean_error`; with `met`, `mean_error <= tol * sd(y)`.
#' @source Theory vignette; Davies (2015), Effective implementation of Gaussian process regression for machine learning
#'   (PhD thesis), and Artemev, Burt and van der Wilk (2021), Tighter bounds on the log marginal likelihood of Gaussian
#'   process regression using conjugate gradients, ICML, for conjugate gradients and such preconditioners.
#' @seealso [certify()], [reference()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit, m2 = 6)
#' refine(fit, data.frame(speed = c(5, 15)), tol = 1e-6)
#' @export
refine <- function(fit, newdata, tol, maxit = 50, ..., reference = fit$reference, data = NULL) {
  check_dots_empty(list(...), names(formals(refine)))
  fit <- check_fit(fit, "fit")
  if (!is.null(data)) fit <- with_rows_of(fit, source_of_fit(fit, data))
  data <- needs_data(fit, "fit")
  tol <- check_positive(if (missing(tol)) NULL else tol, "tol", 1L)
  maxit <- check_count(maxit, "maxit", min = 0)
  new <- if (missing(newdata)) training_rows(fit) else new_rows(fit, newdata, stats::na.pass)
  if (is.na(fit$sd_y)) abort_input("tol", tol, "for a response of two rows or more: it is a fraction of its sd")
  goal <- tol * fit$sd_y
  fun <- values_at(model_of(fit)$kernel, new$x)
  if (is_exact(fit)) {
    found <- list(inside = exact_interval(fit, fun), iterations = 0L, why = "nothing to iterate")
  } else {
    reference <- find_reference(fit, reference, NULL)
    found <- iterate_to(reference, data_in_scale(fit, reference), fun, goal, maxit)
    if (found$why == rounding_stops && largest_error(found$inside) > goal && exact_is_cheap(fit, fun$n, 30)) {
      # near noise-free data a factorisation of all of K + s2 I, no longer than half a minute, has less rounding
      exact <- tryCatch(exact_of_fit(fit), pfdtc_error_numerical = function(e) NULL)
      if (!is.null(exact)) found$inside <- narrow(found$inside, exact_interval(exact, fun))
    }
  }
  out <- refined_frame(fit, new, found$inside)
  worst <- max(out$mean_error, 0, na.rm = TRUE)
  attr(out, "iterations") <- found$iterations
  attr(out, "met") <- worst <= goal
  if (worst > goal) {
    warn_convergence(sprintf(
      "`tol` = %s was not met at %d of %d rows: the largest certified error is %s sd(y) after %d iterations (%s).",
      format(tol), sum(out$mean_error > goal, na.rm = TRUE), nrow(out), format(worst / fit$sd_y, digits = 3),
      found$iterations, found$why))
  }
  out
}

rounding_stops <- "rounding allows no more"

# Returns half the width of the widest interval of the mean.
largest_error <- function(inside) max(inside$mean_upper - inside$mean_lower, 0) / 2

# Returns mean and mean_error, in units of y: the middle of each interval, and the distance of its ends.
refined_frame <- function(fit, new, inside) {
  i <- new$index
  eps <- 4 * .Machine$double.eps
  unknown <- is.infinite(inside$mean_lower) | is.infinite(inside$mean_upper)
  middle <- ifelse(unknown, 0, (inside$mean_lower + inside$mean_upper) / 2)
  half <- pmax(inside$mean_upper - middle, middle - inside$mean_lower)
  room <- eps * (abs(fit$center) + abs(middle[i]) + abs(new$offset)) + response_rounding(fit, new$x)
  out <- data.frame(mean = fit$center + middle[i] + new$offset, mean_error = (1 + eps) * half[i] + room)
  if (!is.null(new$names)) row.names(out) <- make.unique(as.character(new$names))
  out
}

# Iterates until the interval of the mean of every functional is within `goal` of its middle, in units of y: returns
# list(inside, iterations, why). Where points leave much unexplained, kriging on near rows certifies; otherwise the
# reference does. An interrupt or R's time limit ends the iterations, and what they have brought is certified; a second
# one forgoes that.
iterate_to <- function(reference, data, fun, goal, maxit) {
  inside <- list(mean_lower = numeric(), mean_upper = numeric(), sd_lower = numeric(), sd_upper = numeric())
  if (!fun$n) return(list(inside = inside, iterations = 0L, why = "no rows"))
  inside <- unknown_if_nan(posterior_interval(reference, fun))
  ended <- function(iterations, why) list(inside = inside, iterations = iterations, why = why)
  if (largest_error(inside) <= goal) return(ended(0L, "`maxit`"))
  near <- precondition_by_near_rows(reference)
  made <- stop_by(list(kriged = if (near && kriging_rows() > 0) krige_all(reference, data, fun$x),
                       precondition = if (near) near_preconditioner(reference, data)))
  if (!is.null(made$stopped)) return(ended(0L, made$stopped))
  kriged <- made$value$kriged
  far <- if (is.null(kriged)) Inf else reference$scale * max(vapply(kriged, function(k) sqrt(max(kriged_h2(k))), 0))
  own <- largest_error(inside)
  so_far <- if (correction_serves(reference, data)) solution_so_far(reference$correction)
  aim <- 0.9 * goal
  iterations <- 0L
  renewed <- FALSE
  repeat {
    accuracy <- accuracy_of(reference, aim, far, own)
    tried <- stop_by({
      correction <- exact_mean(reference, data, accuracy$goal, list(passes = maxit - iterations, left = function() Inf),
                               so_far, made$value$precondition, sharp = TRUE, keep = TRUE, ahead = accuracy$ahead)
      list(correction = correction, inside = corrected_intervals(reference, correction, data, fun, kriged))
    })
    if (is.null(tried$value)) return(ended(iterations, tried$stopped))
    correction <- tried$value$correction
    before <- largest_error(inside)
    now <- largest_error(tried$value$inside)
    iterations <- iterations + correction$steps
    stalled <- correction$stalled || (correction$steps == 0L && now > 0.9 * before)
    inside <- narrow(inside, tried$value$inside)
    open <- largest_error(inside) > goal
    # the rounding of the iterations so far is forgotten where r is made anew, once
    if (stalled && !renewed && iterations < maxit && is.null(correction$stopped) && open &&
        isTRUE(now * rounding_at_hand(reference, data, correction) <= 4 * goal)) {
      so_far <- correction[c("v", "passes")]
      renewed <- TRUE
      next
    }
    why <- if (!is.null(correction$stopped)) correction$stopped else if (stalled) rounding_stops else "`maxit`"
    if (!open || stalled || !is.null(correction$stopped) || iterations >= maxit) return(ended(iterations, why))
    so_far <- solution_so_far(correction)
    aim <- aim / 4
  }
}

# Returns what rounding of one product does to the residual, as a share of what it may have done along the way.
rounding_at_hand <- function(reference, data, correction) {
  once <- residual_rounding(reference, data$y * root_weights(data), c(v = sqrt(sum(correction$v^2)), r = 0))
  once$residual / correction$error$residual
}

# Returns the intervals by a corrected mean, narrowed by kriging where krige_all() was asked.
corrected_intervals <- function(reference, correction, data, fun, kriged) {
  inside <- unknown_if_nan(as_interval(corrected_mean(reference, correction, data, fun)))
  inside <- lapply(inside, rep_len, fun$n)
  at <- 0L
  for (part in kriged) {
    rows <- at + seq_along(part$order)
    at <- at + length(part$order)
    unknown <- list(sd_lower = numeric(length(rows)))
    x <- fun$x[rows, , drop = FALSE]
    inside <- narrow(inside, kriged_interval(part, reference, correction, data, x, unknown), rows)
  }
  inside
}
