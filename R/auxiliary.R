#' Auxiliary distributions
#'
#' The pF-DTC objective compares an approximation with the exact posterior under an *auxiliary distribution* nu, a
#' Gaussian process that stands in for the exact posterior. `vignette("paper")` compares them.
#'
#' `aux_white()`, the default, is white noise around the exact posterior mean. `aux_sor()` is the subset of regressors
#' (SoR) posterior on random rows, `aux_subset()` their exact posterior, \eqn{O(n^2 m)}{O(n^2 m)} an evaluation.
#' `aux_refresh()` renews nu as the SoR posterior on the current inducing points. `aux_reference()` is the SoR posterior
#' on `m2` greedy points, which the fit keeps as its [reference()].
#'
#' @param size,rows number of random rows, or their numbers. Default of `size`: `min(ceiling(n / 10), 1000)`.
#' @param every,start iterations between renewals; the auxiliary distribution to start from.
#' @param m2 number of points of the reference. Default: four times the number of inducing points.
#' @param tail share of the covariance beyond its first `m` directions that may be left out; 0 keeps all.
#' @param variance variance of the white noise at a row over the noise variance.
#' @param samples number of sample paths in place of the reference's covariance. Default: the covariance itself.
#' @param make,label a function of `x`, `y`, `weights`, `kernel`, `noise` and `m` that returns
#'   `list(U, W, sign, mean, p)`, see details; and its name in `print()`.
#' @return A description of class `pfdtc_aux`; [auxiliary()] makes the distribution.
#' @details `make` describes a Gaussian process with covariance
#' \eqn{p\,k(x, x') + \sum_j s_j b_j(x) b_j(x')}{p k(x, x') + sum_j s_j b_j(x) b_j(x')},
#' \eqn{b_j(x) = \sum_i k(x, u_i) W_{ij}}{b_j(x) = sum_i k(x, u_i) W[i, j]}, and mean
#' \eqn{\sum_i k(x, u_i) w_i}{sum_i k(x, u_i) w[i]}. `U` has the rows \eqn{u_i} and the columns of `x`, `W` a row for
#' each of them, `mean` the \eqn{w_i}; `sign` is 1 or -1 for each column of `W` (default 1) and `p` 0 (default) or 1.
#' `y`, `kernel` and `noise` are centred and scaled as in the fit.
#' @seealso [auxiliary()], [pf_objective()], `vignette("paper")`
#' @examples
#' aux_sor(size = 50)
#' # the Nystrom approximation of the prior on the first rows
#' prior <- aux_custom(function(x, y, weights, kernel, noise, m) {
#'   U <- x[seq_len(m), , drop = FALSE]
#'   R <- chol(kernel_matrix(kernel, U) + diag(1e-8 * kernel$variance, m))
#'   list(U = U, W = backsolve(R, diag(m)), mean = numeric(m))
#' }, "the prior on the first rows")
#' pfdtc(dist ~ speed, cars, m = 4, aux = prior)
#' @export
aux_sor <- function(size = NULL, rows = NULL) new_aux("sor", size = size, rows = rows)

#' @rdname aux_sor
#' @export
aux_subset <- function(size = NULL, rows = NULL) new_aux("subset", size = size, rows = rows)

#' @rdname aux_sor
#' @export
aux_refresh <- function(every = 10, start = aux_sor()) {
  start <- check_aux(start, "start")
  if (is.finite(aux_every(start))) abort_input("start", "aux_refresh()", "another auxiliary distribution")
  new_aux("refresh", every = check_count(every, "every"), start = start)
}

#' @rdname aux_sor
#' @export
aux_reference <- function(m2 = NULL, samples = NULL, tail = 0) {
  tail <- check_at_least_0(tail, "tail")
  if (tail >= 1) abort_input("tail", describe(tail), "a number from 0 to less than 1")
  if (tail > 0 && !is.null(samples)) abort_input("samples", describe(samples), "NULL where `tail` is given")
  new_aux("reference", m2 = if (!is.null(m2)) check_count(m2, "m2"),
          samples = if (!is.null(samples)) check_count(samples, "samples"), tail = tail)
}

#' @rdname aux_sor
#' @export
aux_white <- function(variance = 1) new_aux("white", variance = check_positive(variance, "variance", 1L))

new_aux <- function(kind, size = NULL, rows = NULL, ...) {
  if (!is.null(size)) size <- check_count(size, "size")
  if (!is.null(rows)) {
    if (!length(rows)) abort_input("rows", describe(rows), "row numbers, at least one")
    rows <- vapply(rows, check_count, 0L, argument = "rows")
    if (anyDuplicated(rows)) abort_input("rows", "repeated row numbers", "row numbers, each once")
  }
  structure(list(kind = kind, size = size, rows = rows, ...), class = "pfdtc_aux")
}

check_aux <- function(aux, argument = "aux") {
  if (is.function(aux)) aux <- aux()
  if (!inherits(aux, "pfdtc_aux")) {
    abort_input(argument, describe(aux), "an auxiliary distribution, such as aux_white() or aux_sor()")
  }
  aux
}

#' @rdname aux_sor
#' @export
aux_custom <- function(make, label = "given by a function") {
  if (!is.function(make)) abort_input("make", describe(make), "a function that returns list(U, W, sign, mean)")
  if (!is.character(label) || length(label) != 1L || is.na(label)) abort_input("label", describe(label), "a string")
  new_aux("custom", make = make, label = label)
}

#' @export
format.pfdtc_aux <- function(x, ...) aux_kinds[[x$kind]]$text(x)

#' @export
print.pfdtc_aux <- function(x, ...) {
  cat("Auxiliary distribution:", format(x), "\n")
  invisible(x)
}

# ---- properties of a description ---------------------------------------------------------------------------------

# Returns the number of iterations between renewals, Inf if there are none.
aux_every <- function(aux) if (is.null(aux$every)) Inf else aux$every

aux_objective <- function(aux) aux_kinds[[aux$kind]]$objective

# Returns TRUE if a fit under it keeps a reference.
aux_keeps_reference <- function(aux) isTRUE(aux_kinds[[aux$kind]]$keeps_reference)

is_aux <- function(aux) inherits(aux, "pfdtc_aux") && is.character(aux$kind) && length(aux$kind) == 1L

# Completes the sizes that a description leaves to the data: n rows, m inducing points, `made` points of a reference.
fill_aux <- function(aux, n, m, made = NULL) {
  if (!is.null(aux$start)) aux$start <- fill_aux(aux$start, n, m)
  fill <- aux_kinds[[aux$kind]]$fill
  if (is.null(fill)) aux else fill(aux, n, m, made)
}

# The package's default auxiliary distribution.
default_aux <- function() aux_white()

#' Make an auxiliary distribution from data
#'
#' The data are neither centred nor scaled.
#'
#' @inheritParams kernel_matrix
#' @param y numeric response, one number for each row of `x`.
#' @param noise noise variance, in squared units of `y`.
#' @param aux a description, see [aux_sor()].
#' @param weights positive numbers: the noise variance of a row is `noise / weights`. Default: 1.
#' @return An object of class `pfdtc_auxiliary`. `predict(nu, newdata)` returns `list(fit, se.fit)`, mean and sd at
#'   new rows in units of `y`; `aux_white()` has no values there. For `aux_refresh()` it is the first distribution.
#'   `aux_reference()` without `m2` has `min(800, nrow(x))` points.
#' @section Errors and invariants: class `pfdtc_error_input`. Given all rows, `aux_sor()` has the mean of the exact
#'   posterior and `aux_subset()` also its sd.
#' @examples
#' y <- cars$dist - mean(cars$dist)
#' nu <- auxiliary(cars$speed, y, kernel_se(5, 500), noise = 200, aux_sor(rows = 1:20))
#' predict(nu, c(10, 20))
#' @export
auxiliary <- function(x, y, kernel, noise, aux = aux_sor(), weights = NULL) {
  rows <- check_rows(x, y, weights)
  model <- new_model(complete_kernel(kernel, rows$x), check_positive(noise, "noise", 1L))
  make_auxiliary(check_aux(aux), rows, model, m = min(200, nrow(rows$x)))
}

#' @export
print.pfdtc_auxiliary <- function(x, ...) {
  cat("Auxiliary distribution:", x$label)
  cat(if (is.null(x$W)) " \n" else sprintf(" on %d points, rank %d\n", nrow(x$U), ncol(x$W) - 1L))
  invisible(x)
}

#' @rdname auxiliary
#' @param object,newdata an auxiliary distribution, and new rows in the form of `x`.
#' @param ... not used.
#' @export
predict.pfdtc_auxiliary <- function(object, newdata, ...) {
  if (is.null(object$W)) {
    abort_input("object", "white noise", "a distribution of values at new rows",
                hint = "Its mean is that of gp_exact().")
  }
  x <- check_same_columns(check_matrix(newdata, "newdata"), object$U, "newdata")
  Wt <- native_lowrank_rows(object, list(x = x))
  q <- nrow(Wt)
  variance <- object$p * prior_at(object$model, x) + colSums(object$sign[-q] * Wt[-q, , drop = FALSE]^2)
  list(fit = Wt[q, ], se.fit = sqrt(pmax(variance, 0)))
}
