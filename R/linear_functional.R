#' Averages, contrasts and other weighted sums of f
#'
#' Mean and sd of \eqn{\sum_i w_i f(x_i)}{sum w_i f(x_i)}, with an interval that contains the value of the
#' exact GP. Use it for averages over rows (weights `1 / n`) and for contrasts of two rows (weights `c(1, -1)`).
#'
#' Rows depend on each other: the sd of a contrast of two close rows is far smaller than the sd of either row.
#'
#' @param fit a fit of any kind.
#' @param weights a vector with a weight for each row of `newdata`, or a matrix with a row for each sum and a column for
#'   each row of `newdata`. Row names of the matrix are kept.
#' @param newdata rows at which f is taken; default: the training rows.
#' @param certified `FALSE`: mean and sd alone, which is fast. Certificates need a Gaussian likelihood.
#' @param effort,reference,m2,max_seconds as in [certify()].
#' @param ... not used.
#' @return A data frame with a row for each sum, in units of `y`: `mean` (centre and offsets included) and `sd`, and if
#'   `certified` the columns of [certify()]. A sum with a missing row is `NA`. With a non-Gaussian `family` f is on the
#'   scale of the link.
#' @examples
#' fit <- gp_exact(dist ~ speed, cars, kernel = kernel_matern(5/2))
#' new <- data.frame(speed = c(5, 10, 20))
#' linear_functional(fit, rbind(average = rep(1 / 3, 3), "20 - 10" = c(0, -1, 1)), new)
#' @seealso [certify()], [partial_dependence()], [predict.gp_fit()]
#' @section Errors and invariants: class `pfdtc_error_input` for infinite weights and a wrong number of weights. Mean
#'   and sd are those of `predict(fit, newdata, full_cov = TRUE)`.
#' @export
linear_functional <- function(fit, weights, newdata, certified = is.null(fit$likelihood),
                              effort = c("reference", "fast", "tight"), ..., reference = fit$reference, m2 = NULL,
                              max_seconds = if (effort == "tight") Inf else 10) {
  check_dots_empty(list(...), names(formals(linear_functional)))
  fit <- check_any_fit(fit, "fit")
  certified <- check_flag(certified, "certified")
  effort <- check_choice(effort, c("reference", "fast", "tight"), "effort")
  if (certified) refuse_likelihood(fit, "fit", "A certificate of a functional")
  new <- if (missing(newdata)) training_rows(fit) else new_rows(fit, newdata, stats::na.pass)
  weights <- check_functional_weights(if (missing(weights)) NULL else weights, length(new$index))
  # a power of two, by which results are multiplied exactly: squares of weights stay numbers
  size <- 2^floor(log2(pmax(apply(abs(weights), 1L, max, 0), 2^-1022)))
  out <- functionals_of_rows(fit, lapply(seq_len(nrow(weights)), function(i) {
    rows <- which(weights[i, ] != 0)
    list(rows = rows, weights = weights[i, rows] / size[i])
  }), rownames(weights), new, certified, effort, reference, m2, max_seconds)
  out[] <- lapply(out, `*`, size)
  out
}

check_functional_weights <- function(weights, n) {
  if (is.null(dim(weights))) weights <- if (is.numeric(weights)) t(unname(weights)) else weights
  if (!is.numeric(weights) || !is.matrix(weights) || !all(is.finite(weights))) {
    abort_input("weights", describe(weights), "a vector or a matrix of finite numbers")
  }
  if (ncol(weights) != n) {
    abort_input("weights", sprintf("%d for each functional", ncol(weights)),
                sprintf("one for each of the %d rows", n), hint = "A matrix has a functional a row.")
  }
  storage.mode(weights) <- "double"
  weights
}

# `functionals`: a list of list(rows, weights), rows being those asked for.
functionals_of_rows <- function(fit, functionals, names, new, certified, effort, reference, m2, max_seconds) {
  started <- proc.time()[["elapsed"]]
  offset <- rep_len(new$offset, length(new$index))
  sums <- vapply(functionals, function(f) {
    size <- sum(abs(f$weights)) * (1 + length(f$rows) / 64)
    c(weight = sum(f$weights), size = size, offset = sum(f$weights * offset[f$rows]),
      offset_size = size * max(0, abs(offset[f$rows])), known = !anyNA(new$index[f$rows]))
  }, numeric(5))
  known <- which(sums["known", ] == 1)
  fun <- sums_at(model_of(fit)$kernel, new$x, lapply(functionals[known], function(f) new$index[f$rows]),
                         lapply(functionals[known], `[[`, "weights"))
  at <- functionals_in_units(fit, fun)
  shift <- unname(fit$center * sums["weight", ] + sums["offset", ])
  spread <- function(v) replace(rep(NA_real_, ncol(sums)), known, v)
  out <- data.frame(mean = spread(at$mean) + shift, sd = spread(at$sd))
  if (certified) {
    inside <- posterior_certificate(posterior_of(fit), fun, effort, reference, m2, max_seconds = max_seconds)
    rounding <- 4 * .Machine$double.eps * unname(abs(fit$center) * sums["size", ] + sums["offset_size", ])
    out <- functional_frame(fit, fun, at, inside, shift, rounding, spread)
    attr(out, "effort") <- effort
    attr(out, "m2") <- attr(inside, "m2")
    attr(out, "seconds") <- proc.time()[["elapsed"]] - started
  }
  if (!is.null(names)) row.names(out) <- make.unique(names)
  out
}

# certificate_frame() of functionals: what the response's rounding does to a mean goes with the root of its size.
functional_frame <- function(fit, fun, at, inside, shift, rounding, spread) {
  eps <- 4 * .Machine$double.eps
  of_response <- eps * response_size(fit) * sqrt(in_units(fit, fun$size, 2) / fit$noise) / 2
  lower <- spread(inside$mean_lower - of_response)
  upper <- spread(inside$mean_upper + of_response)
  room <- function(v) eps * abs(v) + rounding
  lower <- shift + lower - room(lower)
  upper <- shift + upper + room(upper)
  mean <- shift + spread(at$mean)
  out <- data.frame(mean = mean, mean_error = (1 + eps) * pmax(mean - lower, upper - mean), mean_lower = lower,
                    mean_upper = upper, sd = spread(at$sd), sd_lower = (1 - eps) * spread(inside$sd_lower),
                    sd_upper = (1 + eps) * spread(inside$sd_upper))
  structure(out, class = c("pfdtc_certificate", "data.frame"), sd_y = fit$sd_y)
}
