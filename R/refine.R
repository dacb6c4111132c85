#' The exact GP's mean, to a named accuracy
#'
#' Preconditioned conjugate gradients on \eqn{(K + \sigma^2 W^{-1}) w = y}{(K + s2 W^-1) w = y} with the reference as
#' preconditioner, until the certificate at every row of `newdata` is below `tol` times the sd of the response: means of
#' the exact Gaussian process without an `n` by `n` matrix.
#'
#' The kernel matrix is streamed: a step takes all pairs of rows, \eqn{n^2 / 2}{n^2/2} kernel evaluations, and \eqn{O(n
#' m_2)} beside them, in memory \eqn{O(n + m_2^2)}. The certificate is that of the residual as it is, not as the
#' iterations carry it along: they may lose digits, it does not.
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
#'   reached; an interrupt does likewise.
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
  check_fit(fit, "fit")
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
# of y. What iterations will certify is foreseen from |w_r|_E, by which a row's certificate scales.
refine_rows <- function(reference, data, x, goal, maxit) {
  if (!nrow(x)) return(list(mean = numeric(), mean_error = numeric(), iterations = 0L, why = "no rows"))
  best <- certify_posterior(reference, x)[c("mean", "mean_error")]
  wide <- if (reference$norms$w_E > 0) max(best$mean_error) / reference$norms$w_E else 0
  v <- if (correction_serves(reference, data)) reference$correction$v
  iterations <- 0L
  aim <- 0.9 * goal
  why <- "`maxit`"
  while (max(best$mean_error) > goal) {
    # an interrupt ends the iterations and what they have brought is certified; a second one forgoes that
    found <- tryCatch({
      state <- solve_exact(reference, data, maxit - iterations, function(w_E) wide * w_E <= aim, v, keep = TRUE)
      corrected_mean(reference, correct_residual(reference, data, state), data, x)
    }, interrupt = function(i) NULL)
    if (is.null(found)) {
      why <- "interrupted"
      break
    }
    iterations <- iterations + state$steps
    v <- state$v
    stalled <- state$stalled || (state$steps == 0L && max(found$mean_error) > 0.9 * max(best$mean_error))
    better <- found$mean_error < best$mean_error
    for (what in names(best)) best[[what]][better] <- found[[what]][better]
    if (stalled) why <- "rounding allows no more"
    if (state$interrupted) why <- "interrupted"
    if (stalled || state$interrupted || iterations >= maxit) break
    aim <- aim / 4
  }
  c(best, list(iterations = iterations, why = why))
}

# Conjugate gradients on (K + s2 I) v = y, preconditioned by B, weights being in K and y, all in the reference's scale:
# list(v, residual, exact, steps, stalled, interrupted). They end when enough(w_E) is TRUE of a bound of |w_r|_E, w_r =
# (K + s2 I)^{-1} r: with z = B^{-1} r,
#   |z|_E^2 = z'(K + s2 I) z - z'r,   c_r = z'r,
# which costs nothing beside the product that the next step takes anyway. `exact`: the residual is y - (K + s2 I) v as
# computed, not carried along. `keep`: an interrupt ends them as well.
solve_exact <- function(reference, data, most, enough, v = NULL, keep = FALSE) {
  kernel <- scaled_kernel(reference)
  noise <- reference$noise / reference$scale^2
  root <- if (is.null(data$weights)) 1 else sqrt(data$weights)
  control <- reference$control
  product <- function(v) native_kernel_product(kernel, data$x, data$weights, v, control) + noise * v
  precondition <- function(r) {
    native_response(reference$factors, reference$inducing, data$x, r / root, data$weights, kernel, noise,
                    whiten = FALSE, control = control)$v
  }
  y <- root * data$y
  if (is.null(v)) v <- precondition(y)
  r <- y - product(v)
  progress <- if (isTRUE(control$progress)) progress_line("exact mean")
  if (!is.null(progress)) on.exit(progress(done = TRUE))
  p <- Kp <- before <- NULL
  steps <- 0L
  stalled <- interrupted <- FALSE
  repeat {
    z <- precondition(r)
    Kz <- if (keep) tryCatch(product(z), interrupt = function(i) NULL) else product(z)
    interrupted <- is.null(Kz)
    if (interrupted) break
    zr <- sum(z * r)
    if (!is.finite(zr) || zr <= 0) {
      stalled <- !identical(zr, 0)
      break
    }
    w_E <- bound_w(zr, sqrt(max(sum(z * Kz) - zr, 0)))
    if (!is.null(progress)) progress(steps, steps, w_E)
    if (enough(w_E) || steps >= most) break
    stalled <- sqrt(sum(r^2)) < residual_rounding(reference, v, y)["residual"] / 8
    if (stalled) break
    along <- if (is.null(p)) 0 else sum(z * (r - before$r)) / before$zr # Polak-Ribiere: forgives an inexact B^{-1}
    p <- z + if (along > 0) along * p else 0
    Kp <- Kz + if (along > 0) along * Kp else 0
    alpha <- sum(p * r) / sum(p * Kp)
    before <- list(r = r, zr = zr)
    v <- v + alpha * p
    r <- r - alpha * Kp
    steps <- steps + 1L
  }
  list(v = v, residual = r, exact = steps == 0L, steps = steps, stalled = stalled, interrupted = interrupted)
}

# By linearity the exact mean at x is k_x'u + (the exact mean that the response r gives), r = y - (K + s2 W^{-1}) u, for
# any u. The second term is the reference's own on r, certified as always with r for y. Kept are u, r, what the
# reference makes of r, the norms of that, and what rounding in r and in the sum k_x'u may do, with |K| <= |G| + |E|:
#   |error of r| <= unit |K| |v| + eps (s2 |v| + |y|),  which h_x, |h_x| <= sqrt(k) / (2 sqrt(s2)), carries to the mean;
#   |error of k_x'u| <= unit sqrt(k |K|) |v|.
correct_residual <- function(reference, data, state) {
  kernel <- scaled_kernel(reference)
  noise <- reference$noise / reference$scale^2
  root <- if (is.null(data$weights)) 1 else sqrt(data$weights)
  v <- state$v
  y <- root * data$y
  r <- state$residual
  if (!state$exact) r <- y - native_kernel_product(kernel, data$x, data$weights, v, reference$control) - noise * v
  data$y <- r / root
  response <- native_response(reference$factors, reference$inducing, data$x, data$y, data$weights, kernel, noise,
                              control = reference$control)[c("Ay", "beta", "yy", "rss")]
  norms <- posterior_norms(replace_response(reference$factors, response), reference$inducing, data, kernel, noise,
                           control = reference$control, same = reference$norms)
  norms$Psi <- NULL # the reference has it
  error <- residual_rounding(reference, v, y)
  rounding <- sqrt(kernel$variance) * (error[["residual"]] / (2 * sqrt(noise)) + error[["sum"]])
  list(v = v, response = response, norms = norms, rounding = rounding, made_from = order_of_rows(data))
}

# Bounds of |error of r| and of |error of k_x'u| / sqrt(k), see correct_residual()
residual_rounding <- function(reference, v, y) {
  eps <- .Machine$double.eps
  noise <- reference$noise / reference$scale^2
  unit <- 4 * eps + reference$norms$growth
  K_norm <- sqrt(sum(reference$factors$G^2)) + reference$norms$lam
  size <- sqrt(sum(v^2))
  c(residual = unit * K_norm * size + 4 * eps * (noise * size + sqrt(sum(y^2))), sum = unit * sqrt(K_norm) * size)
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

# All pairs of rows cost less than the reference itself, or some tenths of a second.
pairs_are_cheap <- function(n, m2) n <= max(1e4, m2^2 / 16)

# Corrects the mean of a reference until its certificate is `share` of how far the fit's mean is from it, as far as some
# of the rows tell; NULL where it is so already.
find_correction <- function(reference, data, fit, share, most) {
  x <- data$x[sort(sample.int(nrow(data$x), min(200L, nrow(data$x)))), , drop = FALSE]
  r <- certify_posterior(reference, x)
  distance <- stats::median(abs(fit$scale * predict_posterior(fit, x)$mean - r$mean))
  ratio <- share * distance / stats::median(r$mean_error)
  if (!is.finite(ratio) || ratio >= 1) return(NULL)
  state <- solve_exact(reference, data, most, function(w_E) w_E <= ratio * reference$norms$w_E)
  correct_residual(reference, data, state)
}
