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
  if (is_exact(fit)) {
    inside <- exact_interval(fit, new$x)
    found <- list(mean = (inside$mean_lower + inside$mean_upper) / 2,
                  mean_error = (inside$mean_upper - inside$mean_lower) / 2, iterations = 0L, why = "nothing to iterate")
  } else {
    reference <- find_reference(fit, reference, NULL)
    found <- refine_rows(reference, data_in_scale(fit, reference), new$x, goal, maxit)
    if (found$why == rounding_stops && max(found$mean_error) > goal) found <- refined_by_exact(fit, new$x, found)
  }
  out <- refined_frame(fit, new, found)
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

# Near noise-free data a factorisation of all of K + s2 I, where it takes no longer than half a minute, knows more.
refined_by_exact <- function(fit, x, found) {
  if (!exact_is_cheap(fit, nrow(x), 30)) return(found)
  exact <- tryCatch(exact_of_fit(fit), pfdtc_error_numerical = function(e) NULL)
  if (is.null(exact)) return(found)
  inside <- exact_interval(exact, x)
  half <- (inside$mean_upper - inside$mean_lower) / 2
  better <- which(half < found$mean_error)
  found$mean[better] <- ((inside$mean_lower + inside$mean_upper) / 2)[better]
  found$mean_error[better] <- half[better]
  found
}

refined_frame <- function(fit, new, found) {
  i <- new$index
  eps <- 4 * .Machine$double.eps
  part <- found$mean[i]
  room <- eps * (abs(fit$center) + abs(part) + abs(new$offset)) + response_rounding(fit, new$x)
  out <- data.frame(mean = fit$center + part + new$offset, mean_error = (1 + eps) * found$mean_error[i] + room)
  if (!is.null(new$names)) row.names(out) <- make.unique(as.character(new$names))
  out
}

# Iterates until the certificate of every row of x is at most `goal`: list(mean, mean_error, iterations, why), in units
# of y. Where much is left unexplained certificates are those of kriging, sqrt(c_r) times what krige() says of the row;
# else the reference's own, which scale by |w_r|_E. From these what iterations will certify is foreseen.
refine_rows <- function(reference, data, x, goal, maxit) {
  if (!nrow(x)) return(list(mean = numeric(), mean_error = numeric(), iterations = 0L, why = "no rows"))
  best <- certify_posterior(reference, x)[c("mean", "mean_error")]
  state <- if (correction_serves(reference, data)) reference$correction[c("v", "residual", "error", "passes")]
  stop_by <- function(expr) {
    # an interrupt or R's time limit ends the iterations and what they have brought is certified; a second one forgoes
    # that
    stopped <- NULL
    value <- tryCatch(expr, interrupt = function(i) {
      stopped <<- "interrupted"
      NULL
    }, error = function(e) {
      if (!is_time_limit(e)) stop(e)
      stopped <<- "R's time limit"
      NULL
    })
    list(value = value, stopped = stopped)
  }
  iterations <- 0L
  aim <- 0.9 * goal
  why <- "`maxit`"
  if (max(best$mean_error) <= goal) return(c(best, list(iterations = 0L, why = why)))
  near <- precondition_by_near_rows(reference)
  made <- stop_by(list(found = if (near && kriging_rows() > 0) krige_all(reference, data, x),
                       precondition = if (near) near_preconditioner(reference, data)))
  if (!is.null(made$stopped)) return(c(best, list(iterations = 0L, why = made$stopped)))
  found <- made$value$found
  precondition <- made$value$precondition
  wide <- if (reference$norms$w_E > 0) max(best$mean_error) / reference$norms$w_E else 0
  renewed <- FALSE
  far <- if (is.null(found)) Inf else reference$scale * max(vapply(found, function(f) sqrt(max(kriged_h2(f))), 0))
  repeat {
    tried <- stop_by({
      ahead <- function(s) min(far * sqrt(s$c), wide * min(s$w_E, sqrt(s$c) / 2, na.rm = TRUE)) / aim
      state <- solve_exact(reference, data, maxit - iterations, function(s) {
        min(far * sqrt(s$c), wide * s$w_E, na.rm = TRUE) <= aim
      }, state, keep = TRUE, precondition = precondition, ahead = ahead)
      correction <- correct_residual(reference, data, state)
      list(state = state, mean = by_correction(reference, correction, data, x, found))
    })
    if (is.null(tried$value)) {
      why <- tried$stopped
      break
    }
    state <- tried$value$state
    now <- tried$value$mean
    iterations <- iterations + state$steps
    stalled <- state$stalled || (state$steps == 0L && max(now$mean_error) > 0.9 * max(best$mean_error))
    better <- which(now$mean_error < best$mean_error)
    for (what in names(best)) best[[what]][better] <- now[[what]][better]
    # what rounding may have done along the way is forgotten where r is made anew, once
    if (stalled && !renewed && iterations < maxit && is.null(state$stopped) && max(best$mean_error) > goal &&
        isTRUE(max(now$mean_error) * rounding_at_hand(reference, data, state) <= 4 * goal)) {
      state <- state[c("v", "passes")]
      renewed <- TRUE
      next
    }
    if (stalled) why <- rounding_stops
    if (!is.null(state$stopped)) why <- state$stopped
    if (max(best$mean_error) <= goal || stalled || !is.null(state$stopped) || iterations >= maxit) break
    aim <- aim / 4
  }
  c(best, list(iterations = iterations, why = why))
}

# What rounding of one product does to the residual, as a share of what it may have done along the way.
rounding_at_hand <- function(reference, data, state) {
  once <- residual_rounding(reference, data$y * root_weights(data), c(v = sqrt(sum(state$v^2)), r = 0))
  once$residual / state$error$residual
}

# The smaller of the certificates by kriging, where krige() was asked, and by the reference.
by_correction <- function(reference, correction, data, x, found) {
  out <- corrected_mean(reference, correction, data, x)
  at <- 0L
  for (part in found) {
    rows <- at + seq_along(part$order)
    at <- at + length(part$order)
    unknown <- list(sd_lower = numeric(length(rows)))
    r <- kriged_interval(part, reference, correction, data, x[rows, , drop = FALSE], unknown)
    half <- (r$mean_upper - r$mean_lower) / 2 * (1 + 1e-14) + 4 * .Machine$double.eps * abs(r$mean_upper)
    better <- half < out$mean_error[rows]
    out$mean[rows][better] <- ((r$mean_upper + r$mean_lower) / 2)[better]
    out$mean_error[rows][better] <- half[better]
  }
  out
}
