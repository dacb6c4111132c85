#' The exact GP's mean, to a named accuracy
#'
#' Preconditioned conjugate gradients on \eqn{(K + \sigma^2 W^{-1}) w = y}{(K + s2 W^-1) w = y}, until the certificate
#' at every row of `newdata` is below `tol` times the sd of the response: means of the exact Gaussian process without an
#' `n` by `n` matrix.
#'
#' The kernel matrix is streamed: a step takes all pairs of rows, \eqn{n^2 / 2}{n^2/2} kernel evaluations, and \eqn{O(n
#' m_2)} beside them, in memory \eqn{O(n + m_2^2)}. The preconditioner is the reference or, where that leaves much
#' unexplained (Matern kernels, short lengthscales), 200 of its points and 40 near rows of every row, with certificates
#' by kriging on the rows near each row of `newdata` (400 numbers for each of these). Rounding along the iterations is
#' part of the certificate.
#'
#' @inheritParams certify
#' @param newdata rows to find the exact mean at; when missing, the training rows.
#' @param tol accuracy as a fraction of the sd of the response.
#' @param maxit the most iterations.
#' @param reference a reference made by [reference()], see [certify()].
#' @return A data frame with a row for each row of `newdata`, in units of `y`: `mean`, the exact GP's mean (with the
#'   fit's offset), and `mean_error`: the exact mean differs from `mean` by no more. Attributes `iterations` and `met`,
#'   whether `tol` was met. A row with missing values has `NA`.
#' @section Errors: class `pfdtc_error_input` for a fit without its data or a bad `tol`. Where `tol` is not met within
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
refine <- function(fit, newdata, tol, maxit = 50, ..., reference = fit$reference) {
  check_dots_empty(list(...), names(formals(refine)))
  fit <- check_fit(fit, "fit")
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
  room <- eps * (abs(fit$center) + abs(part) + abs(new$offset)) + response_rounding(fit)
  out <- data.frame(mean = fit$center + part + new$offset, mean_error = (1 + eps) * found$mean_error[i] + room)
  if (!is.null(new$names)) row.names(out) <- make.unique(as.character(new$names))
  out
}

# Rows as the fit has them, y in the scale of another fit of the same model.
data_in_scale <- function(fit, other) {
  data <- fit$data
  if (other$scale != fit$scale) data$y <- data$y * (fit$scale / other$scale)
  data
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
  far <- if (is.null(found)) Inf else reference$scale * max(vapply(found, function(f) sqrt(max(kriged_h2(f))), 0))
  repeat {
    tried <- stop_by({
      state <- solve_exact(reference, data, maxit - iterations, function(s) {
        min(far * sqrt(s$c), wide * s$w_E, na.rm = TRUE) <= aim
      }, state, keep = TRUE, precondition = precondition)
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
    better <- now$mean_error < best$mean_error
    for (what in names(best)) best[[what]][better] <- now[[what]][better]
    if (stalled) why <- rounding_stops
    if (!is.null(state$stopped)) why <- state$stopped
    if (max(best$mean_error) <= goal || stalled || !is.null(state$stopped) || iterations >= maxit) break
    aim <- aim / 4
  }
  c(best, list(iterations = iterations, why = why))
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

# Conjugate gradients on (K + s2 I) v = y, weights being in K and y, all in the reference's scale, preconditioned by B
# or as asked: list(v, residual, error, steps, passes, went, stalled, stopped). They begin at from$v and end when
# enough(s) is TRUE of s = list(v, r, c, w_E), c = r'B^{-1}r and, with B, w_E a bound of |w_r|_E,
# w_r = (K + s2 I)^{-1} r (else NA): with z = B^{-1} r,
#   |z|_E^2 = z'(K + s2 I) z - z'r,   c = z'r,
# which costs nothing beside the product that the next step takes anyway; or when in_time() is FALSE of another pass
# over all pairs of rows. `keep`: an interrupt or R's time limit end them as well, and `stopped` says so. The residual
# is carried along; `error` bounds what it is off by, see residual_rounding(). `went`: sqrt(c) after each pass.
solve_exact <- function(reference, data, most, enough, from = NULL, keep = FALSE, precondition = NULL,
                        in_time = function() TRUE) {
  kernel <- scaled_kernel(reference)
  noise <- reference$noise / reference$scale^2
  root <- if (is.null(data$weights)) 1 else sqrt(data$weights)
  control <- reference$control
  passes <- 0L
  product <- function(v) {
    passes <<- passes + 1L
    native_kernel_product(kernel, data$x, data$weights, v, control) + noise * v
  }
  by_B <- function(r) {
    native_response(reference$factors, reference$inducing, data$x, r / root, data$weights, kernel, noise,
                    whiten = FALSE, control = control)$v
  }
  size <- function(v) sqrt(sum(v^2))
  y <- root * data$y
  v <- from$v
  if (is.null(from$residual)) {
    if (is.null(v)) v <- if (is.null(precondition)) by_B(y) else precondition(y)
    r <- y - product(v)
    travelled <- c(v = size(v), r = 0)
  } else {
    r <- from$residual
    travelled <- from$error$travelled
  }
  progress <- if (isTRUE(control$progress)) progress_line("exact mean")
  if (!is.null(progress)) on.exit(progress(done = TRUE))
  p <- Kp <- before <- stopped <- NULL
  went <- numeric()
  steps <- 0L
  stalled <- FALSE
  repeat {
    z <- by_B(r)
    c <- sum(z * r)
    if (!is.finite(c) || c <= 0) {
      stalled <- !identical(c, 0)
      break
    }
    went <- c(went, sqrt(c))
    if (!is.null(progress)) progress(steps, steps, sqrt(c))
    if (enough(list(v = v, r = r, c = c, w_E = NA)) || !in_time()) break
    if (!is.null(precondition)) {
      if (steps >= most) break
      z <- precondition(r)
    }
    Kz <- if (!keep) product(z) else tryCatch(product(z), interrupt = function(i) "interrupted", error = function(e) {
      if (is_time_limit(e)) "R's time limit" else stop(e)
    })
    if (is.character(Kz)) {
      stopped <- Kz
      break
    }
    zr <- sum(z * r)
    if (!is.finite(zr) || zr <= 0) {
      stalled <- TRUE
      break
    }
    if (is.null(precondition)) {
      w_E <- bound_w(zr, sqrt(max(sum(z * Kz) - zr, 0)))
      if (enough(list(v = v, r = r, c = c, w_E = w_E)) || steps >= most) break
    }
    stalled <- size(r) < residual_rounding(reference, y, travelled)$residual / 8
    if (stalled) break
    along <- if (is.null(p)) 0 else sum(z * (r - before$r)) / before$zr # Polak-Ribiere: forgives an inexact B^{-1}
    p <- z + if (along > 0) along * p else 0
    Kp <- Kz + if (along > 0) along * Kp else 0
    alpha <- sum(p * r) / sum(p * Kp)
    before <- list(r = r, zr = zr)
    v <- v + alpha * p
    r <- r - alpha * Kp
    # Kp is a sum of products itself: what those err by is that of z and of what came before
    carried <- if (along > 0) along * carried + size(z) else size(z)
    travelled <- travelled + c(abs(alpha) * carried + size(v), abs(alpha) * size(Kp) + size(r))
    steps <- steps + 1L
  }
  list(v = v, residual = r, error = residual_rounding(reference, y, travelled), steps = steps,
       passes = passes + if (is.null(from$passes)) 0L else from$passes, went = went, stalled = stalled,
       stopped = stopped)
}

# By linearity the exact mean at x is k_x'u + (the exact mean that the response r gives), r = y - (K + s2 W^{-1}) u, for
# any u. The second term is the reference's own on r, certified as always with r for y. Kept are u, r, what the
# reference makes of r, the norms of that, and what rounding in r and in the sum k_x'u may do, with |K| <= |G| + |E|:
#   |error of r| <= residual_rounding(), which h_x, |h_x| <= sqrt(k) / (2 sqrt(s2)), carries to the mean;
#   |error of k_x'u| <= unit sqrt(k |K|) |v|.
# `sharp`: |B^{-1} r|_E by groups of rows, as many as a pass over all pairs takes; else from |r| alone.
correct_residual <- function(reference, data, state, sharp = TRUE) {
  kernel <- scaled_kernel(reference)
  noise <- reference$noise / reference$scale^2
  root <- if (is.null(data$weights)) 1 else sqrt(data$weights)
  y <- root * data$y
  r <- state$residual
  error <- state$error
  data$y <- r / root
  response <- native_response(reference$factors, reference$inducing, data$x, data$y, data$weights, kernel, noise,
                              control = reference$control)[c("Ay", "beta", "yy", "rss")]
  norms <- posterior_norms(replace_response(reference$factors, response), reference$inducing, data, kernel, noise,
                           control = reference$control, same = reference$norms, sharp = sharp)
  norms$Psi <- NULL # the reference has it
  rounding <- sqrt(kernel$variance) * (error$residual / (2 * sqrt(noise)) + error$sum)
  list(v = state$v, residual = r, response = response, norms = norms, rounding = rounding, error = error,
       passes = state$passes + sharp, went = state$went, made_from = order_of_rows(data))
}

# Bounds of |error of r| and of |error of k_x'v| / sqrt(k), r = y - (K + s2 W^{-1}) v carried along a way of products
# with K. `travelled`: sizes of v and of all that was multiplied by K, sizes of all that was added to r.
residual_rounding <- function(reference, y, travelled) {
  eps <- .Machine$double.eps
  noise <- reference$noise / reference$scale^2
  unit <- 4 * eps + reference$norms$growth
  K_norm <- sqrt(sum(reference$factors$G^2)) + reference$norms$lam
  size <- travelled[["v"]]
  list(residual = unit * K_norm * size + 4 * eps * (noise * size + sqrt(sum(y^2)) + travelled[["r"]]),
       sum = unit * sqrt(K_norm) * size, travelled = travelled)
}

# A correction belongs to the rows in their order.
order_of_rows <- function(data) fingerprint(list(x = data$x, y = numeric(nrow(data$x)), weights = data$weights))

correction_serves <- function(reference, data) {
  !is.null(reference$correction) && !is.null(data) && identical(reference$correction$made_from, order_of_rows(data))
}

replace_response <- function(p, response) {
  p[names(response)] <- response
  p
}

# list(mean, mean_error) at x, in units of y without the centre
corrected_mean <- function(reference, correction, data, x) {
  kernel <- scaled_kernel(reference)
  norms <- correction$norms
  norms$Psi <- reference$norms$Psi
  rest <- native_certify(replace_response(reference$factors, correction$response), reference$inducing, kernel,
                         reference$noise / reference$scale^2, norms, x)
  u <- if (is.null(data$weights)) correction$v else sqrt(data$weights) * correction$v
  mean <- native_kernel_sum(kernel, data$x, u, x, reference$control) + rest$mean
  error <- (rest$mean_error + correction$rounding) * (1 + 1e-14) + 4 * .Machine$double.eps * abs(mean)
  list(mean = reference$scale * mean, mean_error = reference$scale * error)
}

# Corrects the mean of a reference until its certificate is `share` of how far the fit's mean is from it, as far as some
# of the rows tell, by at most so many passes over all pairs of rows, none of which would end after the time that is
# left; NULL where it is so already, or no pass can be made.
find_correction <- function(reference, data, fit, share, most, left) {
  n <- nrow(data$x)
  x <- data$x[sort(sample.int(n, min(200L, n))), , drop = FALSE]
  mean <- fit$scale * predict_posterior(fit, x)$mean
  r <- certify_posterior(reference, x)
  ratio <- share * stats::median(abs(mean - r$mean)) / stats::median(r$mean_error)
  if (!is.finite(ratio) || ratio >= 1) return(NULL)
  pass <- seconds_a_pass(reference, data, left())
  near <- precondition_by_near_rows(reference)
  # a pass, and with B that for its norms
  if (left() <= 0 || (1 + !near) * pass > left()) return(NULL)
  precondition <- if (near) near_preconditioner(reference, data)
  kriged <- if (near && kriging_rows() > 0) few_kriged(reference, data, x, mean)
  state <- solve_exact(reference, data, most, function(s) {
    isTRUE(s$w_E <= ratio * reference$norms$w_E) || (!is.null(kriged) && kriged(s))
  }, precondition = precondition,
                       in_time = function() (1 + !near) * pass <= left())
  correct_residual(reference, data, state, sharp = !near)
}

# A function of where conjugate gradients are (see solve_exact) that tells whether the mean certified by kriging is a
# tenth of its distance from `mean`, that of a fit at the rows of x, in the median of a few of them. They have fewer
# near rows than certificates have: each has its own.
few_kriged <- function(reference, data, x, mean) {
  few <- round(seq(1, nrow(x), length.out = min(32L, nrow(x))))
  found <- krige(reference, data, x[few, , drop = FALSE], 64L, group = 1)
  mean <- mean[few][found$order] / reference$scale
  x <- x[few, , drop = FALSE][found$order, , drop = FALSE]
  half <- stats::median(sqrt(kriged_h2(found)))
  root <- if (is.null(data$weights)) 1 else sqrt(data$weights)
  function(s) {
    centre <- native_kernel_sum(scaled_kernel(reference), data$x, root * s$v, x, reference$control) +
      kriged_sums(found, s$r)
    half * sqrt(s$c) <= stats::median(abs(centre - mean)) / 10
  }
}

# Seconds that a product with K takes, as those of some rows tell; 0 where nobody asks.
seconds_a_pass <- function(reference, data, left) {
  if (left == Inf) return(0)
  n <- nrow(data$x)
  some <- min(n, 2048L)
  x <- data$x[seq_len(some), , drop = FALSE]
  took <- system.time(native_kernel_product(scaled_kernel(reference), x, NULL, numeric(some), reference$control),
                      gcFirst = FALSE)[["elapsed"]]
  took * (n / some)^2
}
