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
#' @return A description, of class `pfdtc_aux`; [auxiliary()] makes the distribution. A fit for which `aux_reference()`
#'   was asked for carries the [reference()] on the same points, for [certify()].
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), section 5.
#' @seealso [auxiliary()], [pf_objective()]
#' @examples
#' aux_sor(size = 50)
#' aux_white()
#' aux_reference(samples = 100)
#' @export
aux_sor <- function(size = NULL, rows = NULL) new_aux("sor", size = size, rows = rows)

#' @rdname aux_sor
#' @export
aux_subset <- function(size = NULL, rows = NULL) new_aux("subset", size = size, rows = rows)

#' @rdname aux_sor
#' @export
aux_refresh <- function(every = 10, start = aux_sor()) {
  start <- check_aux(start, "start")
  if (start$kind == "refresh") abort_input("start", "aux_refresh()", "another auxiliary distribution")
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

#' @export
format.pfdtc_aux <- function(x, ...) {
  switch(x$kind,
         white = white_text(x$variance),
         sor = , subset = sprintf("%s on %s", if (x$kind == "sor") "SoR" else "exact posterior", aux_rows_text(x)),
         refresh = sprintf("SoR on the inducing points, renewed every %d iterations (start: %s)", x$every,
                           format(x$start)),
         reference = sprintf("SoR on %s greedy points%s", if (is.null(x$m2)) "4 m" else x$m2,
                             if (!is.null(x$samples)) sprintf(", %d sample paths", x$samples)
                             else if (x$tail > 0) sprintf(", leading directions (tail %s)", format(x$tail))
                             else ""))
}

white_text <- function(variance) {
  sprintf("white noise around the exact mean, with %s the noise",
          if (variance == 1) "the variance of" else sprintf("%s times the variance of", format(variance)))
}

aux_rows_text <- function(x) {
  if (!is.null(x$rows)) return(sprintf("%d given rows", length(x$rows)))
  if (is.null(x$size)) "a tenth of the rows (at most 1000)" else sprintf("%d random rows", x$size)
}

#' @export
print.pfdtc_aux <- function(x, ...) {
  cat("Auxiliary distribution:", format(x), "\n")
  invisible(x)
}

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

# `data`: x, y, weights and, where equal rows were merged, group (rows are drawn before merging). `m`: inducing points.
# `reference`: one of the same model, whose first points serve aux_reference().
make_auxiliary <- function(aux, data, model, m, control = NULL, reference = NULL) {
  if (aux$kind == "white") return(white_auxiliary(aux$variance, data, model))
  if (aux$kind == "refresh") return(make_auxiliary(aux$start, data, model, m, control, reference))
  if (aux$kind == "reference" && !is.null(reference)) {
    points <- seq_len(min(if (is.null(aux$m2)) 4 * m else aux$m2, reference$m))
    post <- first_points(reference$factors, length(points), model$noise)
    nu <- sor_auxiliary(post, reference$inducing[points, , drop = FALSE], model, aux$samples, aux$tail, m)
  } else if (aux$kind == "subset") {
    rows <- auxiliary_rows(aux, data)
    nu <- exact_on_rows(data, rows, model)
    nu$rows <- rows
  } else {
    U <- switch(aux$kind,
                sor = data$x[auxiliary_rows(aux, data), , drop = FALSE],
                reference = data$x[reference_rows(aux, data, model$kernel, m), , drop = FALSE],
                points = aux$z)
    nu <- sor_on_points(data, U, model, aux$samples, control, tail = aux$tail, m = m)
  }
  keep_rows(nu, data, control)
}

# At the rows the exact posterior's mean, which the objective needs no value of, and independent noise.
white_auxiliary <- function(variance, data, model) {
  structure(list(p = 0L, share = as.double(variance), model = model, made_from = fingerprint(data)),
            class = "pfdtc_auxiliary")
}

# Rows of data$x (after merging) that the auxiliary distribution is made of.
auxiliary_rows <- function(aux, data) {
  n <- if (is.null(data$group)) nrow(data$x) else length(data$group)
  rows <- aux$rows
  if (is.null(rows)) {
    size <- if (is.null(aux$size)) min(ceiling(n / 10), 1000) else aux$size
    if (size > n) abort_input("size", describe(size), sprintf("a whole number from 1 to %d, the rows of the data", n))
    rows <- sample.int(n, size)
  } else if (max(rows) > n) {
    abort_input("rows", max(rows), sprintf("row numbers from 1 to %d", n))
  }
  if (is.null(data$group)) rows else unique(data$group[rows])
}

# The SoR posterior on U: b(x) = chol(I + A_u A_u'/s2)^{-1} a_u(x) = sqrt(s2) C^{-1} L^{-1} k(U, x), C C' = s2 I + G_u.
# Points that the others already explain down to rounding are dropped first: they change nothing but the conditioning.
sor_on_points <- function(data, U, model, samples = NULL, control = NULL, tail = NULL, m = NULL) {
  U <- choose_greedy(U, nrow(U), model$kernel, Inf)$z
  post <- dtc_posterior(U, data, model, jitter = 0, control = control)
  sor_auxiliary(post, U, model, samples, tail, m)
}

sor_auxiliary <- function(post, U, model, samples, tail, m) {
  noise <- model$noise
  W <- if (is.null(tail) || tail == 0) {
    sqrt(noise) * solve_t(post$L, t(forwardsolve(post$C, diag(nrow(U)))))
  } else {
    solve_t(post$L, leading_directions(post$G, noise, tail, m))
  }
  if (!is.null(samples)) { # sample paths: E[Omega Omega'] / samples = I
    W <- W %*% matrix(stats::rnorm(ncol(W) * samples), ncol(W)) / sqrt(samples)
  }
  new_auxiliary(0L, U, cbind(W, solve_t(post$L, post$beta)), c(rep(1, ncol(W)), 1), model)
}

# The posterior on the first m of its points: L, G and A y have those of the first rows of A in their corners.
first_points <- function(post, m, noise) {
  i <- seq_len(m)
  G <- post$G[i, i, drop = FALSE]
  C <- t(chol(G + diag(noise, m)))
  list(L = post$L[i, i, drop = FALSE], G = G, C = C, beta = solve_t(C, forwardsolve(C, post$Ay[i])))
}

# The covariance a'(I + G/s2)^{-1} a in the axes of G, the directions that carry most of its trace over the rows,
# w_j = g_j / (1 + g_j/s2), first. No m points can follow more than m directions: kept are as many as leave at most
# `tail` times what lies beyond the first m.
leading_directions <- function(G, noise, tail, m) {
  axes <- eigen(G, symmetric = TRUE)
  g <- pmax(axes$values, 0)
  w <- g / (1 + g / noise)
  beyond <- rev(cumsum(rev(w))) - w # of direction r + 1, r + 2, ...
  m <- min(m, length(w))
  r <- max(m, which(beyond <= tail * beyond[m])[1L])
  axes$vectors[, seq_len(r), drop = FALSE] / rep(sqrt(1 + g[seq_len(r)] / noise), each = nrow(G))
}

# The exact posterior given some rows: p = 1, b(x) = chol(Kuu + s2/w)^{-1} k(U, x) with sign -1.
exact_on_rows <- function(data, rows, model) {
  U <- data$x[rows, , drop = FALSE]
  w <- merged_weights(data)[rows]
  check_memory(24 * as.double(length(rows))^2, "the exact posterior of the auxiliary rows")
  K <- native_kernel_matrix(model$kernel, U, U)
  L <- tryCatch(t(chol(K + diag(model$noise / w, length(rows)))), error = function(e) {
    abort_numerical("The exact posterior on the auxiliary rows failed: the noise is too small beside the signal.")
  })
  Wb <- t(forwardsolve(L, diag(length(rows))))
  alpha <- solve_t(L, forwardsolve(L, data$y[rows]))
  new_auxiliary(1L, U, cbind(Wb, alpha, deparse.level = 0), c(rep(-1, length(rows)), 1), model)
}

solve_t <- function(L, b) backsolve(L, b, upper.tri = FALSE, transpose = TRUE)

new_auxiliary <- function(p, U, W, sign, model) {
  dimnames(W) <- NULL
  structure(list(p = p, U = U, W = W, sign = sign, model = model), class = "pfdtc_auxiliary")
}

# W_x at the rows of the data, while it takes at most half of the memory for scratch.
keep_rows <- function(nu, data, control = NULL) {
  memory <- if (is.null(control)) getOption("pfdtc.memory", 2^27) else control$memory
  if (8 * ncol(nu$W) * as.double(nrow(data$x)) <= memory / 2) {
    nu$Wt <- native_lowrank_rows(nu, data$x, data$weights, nu$model$kernel)
  }
  nu$made_from <- fingerprint(data)
  nu
}

#' @export
print.pfdtc_auxiliary <- function(x, ...) {
  if (!is.null(x$share)) {
    cat("Auxiliary distribution:", white_text(x$share), "\n")
    return(invisible(x))
  }
  cat(sprintf("Auxiliary distribution: %s on %d points, rank %d\n",
              if (x$p == 1L) "exact posterior" else "SoR posterior", nrow(x$U), ncol(x$W) - 1L))
  invisible(x)
}

#' @rdname auxiliary
#' @param object an auxiliary distribution.
#' @param newdata matrix (or data frame, or vector: one column) with the columns of `x`.
#' @param ... not used.
#' @export
predict.pfdtc_auxiliary <- function(object, newdata, ...) {
  if (!is.null(object$share)) {
    abort_input("object", "white noise", "a distribution of values at new rows",
                hint = "Its mean is that of gp_exact().")
  }
  x <- check_same_columns(check_matrix(newdata, "newdata"), object$U, "newdata")
  Wt <- native_lowrank_rows(object, x, NULL, object$model$kernel)
  q <- nrow(Wt)
  variance <- object$p * prior_at(object$model, x) + colSums(object$sign[-q] * Wt[-q, , drop = FALSE]^2)
  list(fit = Wt[q, ], se.fit = sqrt(pmax(variance, 0)))
}

# The SoR posterior on points that need not be rows.
aux_on_points <- function(z) structure(list(kind = "points", z = z), class = "pfdtc_aux")

# The package's default auxiliary distribution.
default_aux <- function() aux_white()
