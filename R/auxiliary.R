#' Auxiliary distributions
#'
#' The pF-DTC objective compares the approximation with the exact posterior under an *auxiliary distribution* nu, a
#' Gaussian process that stands in for the exact posterior.
#'
#' * `aux_sor()`: the subset of regressors (SoR) posterior on random rows of the data, as in the paper's experiments.
#' * `aux_subset()`: the exact posterior given random rows only, as in the paper's theory. Its covariance has full rank:
#'   an evaluation costs \eqn{O(n^2 m)}.
#' * `aux_refresh()`: a schedule. Start from another one, then renew nu every few iterations as the SoR posterior on the
#'   current inducing points. Values before and after a renewal are not comparable.
#' * `aux_reference()`: the SoR posterior on `m2` greedy pivoted-Cholesky points, a bigger posterior that nobody
#'   optimised.
#' * `aux_white()`: the default. White noise around the exact posterior mean: at the rows of the data independent, with
#'   `variance` times the variance of the noise, and no variance elsewhere. Nothing has to be made of the data first,
#'   and an evaluation costs no more than one of VFE's.
#' * `aux_custom()`: any other, given by a function.
#'
#' @details
#' Under `aux_white()` the error of the mean is measured in the norm whose kernel is the posterior covariance (the paper
#' leaves the kernel of the norm open; the other distributions here, and the covariance part, use the prior's \eqn{k}).
#' The mean part is then \eqn{\|\tilde\mu - \mu\|_k^2 + |\tilde\mu_X - \mu_X|^2 / \sigma^2}{
#' |mean~ - mean|_k^2 + |mean~_X - mean_X|^2 / s2}, so that errors at the rows count, and the whole has a closed form,
#' \deqn{d^2 = y'(Q + \sigma^2 I)^{-1} y - y'(K + \sigma^2 I)^{-1} y + \frac{v}{\sigma^2}
#' \left(\mathrm{tr}(K - Q) + \mathrm{tr}(Q (I - (Q + \sigma^2 I)^{-1} Q)^2)\right),}{
#' d^2 = y'(Q + s2 I)^{-1} y - y'(K + s2 I)^{-1} y + (v / s2) (tr(K - Q) + tr(Q (I - (Q + s2 I)^{-1} Q)^2)),}
#' with \eqn{v} the `variance`, up to a constant: the last trace at \eqn{Q = K} is subtracted, so that the divergence
#' vanishes at the exact posterior. A smaller `variance` gives a better mean at the price of the sd.
#'
#' The function of `aux_custom()` gives a Gaussian process with covariance
#' \eqn{p\,k(x, x') + \sum_j s_j b_j(x) b_j(x')}{p k(x, x') + sum_j s_j b_j(x) b_j(x')},
#' \eqn{b_j(x) = \sum_i k(x, u_i) W_{ij}}{b_j(x) = sum_i k(x, u_i) W[i, j]}, and mean
#' \eqn{\sum_i k(x, u_i) w_i}{sum_i k(x, u_i) w[i]}, \eqn{u_i} the rows of `U`. It sees data, kernel and noise as the
#' fit computes with them, y centred and scaled, and is called again where [pf_divergence()] wants the distribution.
#'
#' @param size number of random rows. `NULL`: `min(ceiling(n / 10), 1000)`.
#' @param rows row numbers to use instead of random ones.
#' @param every iterations between renewals.
#' @param start the auxiliary distribution to start from.
#' @param m2 number of points of the reference. `NULL`: four times the number of inducing points.
#' @param tail a share, from 0 to less than 1. Only the leading directions of the reference's covariance are kept: so
#'   many that those left out hold at most this share of what all beyond the first `m` hold (`m` inducing points can
#'   follow no more than `m` directions). 0 keeps them all.
#' @param variance variance of the white noise at a row, in units of the variance of the noise there.
#' @param samples number of sample paths that stand in for the reference's covariance (the same value on average, at
#'   the cost of that rank). `NULL`: the covariance itself.
#' @param make a function of `x`, `y`, `weights` (or `NULL`), `kernel`, `noise` and `m`, the number of inducing points,
#'   that returns `list(U, W, sign, mean, p)`: `U` a matrix with the columns of `x`; `W` one with a row for each of `U`,
#'   and any number of columns; `sign` 1 or -1 for each of these (or one for all; left out: 1); `mean` a number for each
#'   row of `U`; `p` 0 (or left out) or 1.
#' @param label what to call it.
#' @return A description, of class `pfdtc_aux`; [auxiliary()] makes the distribution. A fit for which `aux_reference()`
#'   was asked for carries the [reference()] on the same points, for [certify()].
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), section 5.
#' @seealso [auxiliary()], [pf_objective()]
#' @examples
#' aux_sor(size = 50)
#' aux_white()
#' aux_reference(samples = 100)
#'
#' # what the first rows say of f before y is seen: the prior's Nystrom approximation
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

# ---- what is asked of a description ---------------------------------------------------------------------------------

# Iterations between renewals, Inf where there are none.
aux_every <- function(aux) if (is.null(aux$every)) Inf else aux$every

aux_objective <- function(aux) aux_kinds[[aux$kind]]$objective

# Is a reference kept beside a fit under it?
aux_keeps_reference <- function(aux) isTRUE(aux_kinds[[aux$kind]]$keeps_reference)

is_aux <- function(aux) inherits(aux, "pfdtc_aux") && is.character(aux$kind) && length(aux$kind) == 1L

# With the sizes that a description leaves to the data: n rows, m inducing points, `made` points of a reference, fewer
# where these explain the kernel matrix to rounding.
fill_aux <- function(aux, n, m, made = NULL) {
  if (!is.null(aux$start)) aux$start <- fill_aux(aux$start, n, m)
  fill <- aux_kinds[[aux$kind]]$fill
  if (is.null(fill)) aux else fill(aux, n, m, made)
}

# The package's default auxiliary distribution.
default_aux <- function() aux_white()

#' Make an auxiliary distribution from data
#'
#' Takes data as they are: no centring, no scaling.
#'
#' @inheritParams kernel_matrix
#' @param y numeric response, one number a row of `x`.
#' @param noise noise variance, in squared units of `y`.
#' @param aux a description, see [aux_sor()].
#' @param weights positive precisions of the rows (noise variance `noise / weights`), or `NULL`.
#' @return An object of class `pfdtc_auxiliary`, a Gaussian process with covariance
#'   \eqn{p\,k(x, x') + \sum_j s_j b_j(x) b_j(x')}{p k(x, x') + sum_j s_j b_j(x) b_j(x')}. It carries its values at the
#'   rows of `x` while they fit half of `getOption("pfdtc.memory", 2^27)` bytes, and remembers which data it was made
#'   from. `predict(nu, newdata)` gives `list(fit, se.fit)`: mean and sd at new rows, in units of `y`. For
#'   `aux_refresh()` it is the distribution that the schedule starts from; `aux_reference()` without `m2` takes
#'   `min(800, nrow(x))` points. `aux_white()` has values at the rows of the data alone and cannot be predicted from.
#' @section Errors: class `pfdtc_error_input` for data of the wrong shape, missing or infinite values, an incomplete
#'   kernel, a noise that is not positive, or rows outside the data.
#' @section Invariants: given all rows, `aux_sor()` has the mean of the exact posterior and `aux_subset()` also its sd.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), sections 4 and 5.
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
#' @param object an auxiliary distribution.
#' @param newdata matrix (or data frame, or vector: one column) with the columns of `x`.
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
