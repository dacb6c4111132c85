#' Choose the auxiliary distribution of the pF-DTC objective
#'
#' The pF-DTC objective is the preconditioned Fisher (pF) divergence between a DTC (deterministic training conditional)
#' approximation and the exact posterior. The divergence is an expected value under an *auxiliary distribution* nu, a
#' Gaussian process that approximates the exact posterior.
#' @usage
#' aux_sor(size = NULL, rows = NULL)
#' aux_subset(size = NULL, rows = NULL)
#' aux_refresh(every = 10, start = aux_sor())
#' aux_reference(m2 = NULL, samples = NULL, tail = 0)
#' aux_white(variance = 1)
#' aux_custom(make, label = "given by a function")
#' @param size number of random rows. Default: `min(ceiling(n / 10), 1000)`.
#' @param rows numbers of the rows to use, instead of random rows.
#' @param every iterations of the optimisation after which nu is renewed.
#' @param start the first auxiliary distribution.
#' @param m2 largest number of inducing points of the reference. Default: 4 times `m`; in [auxiliary()] 800.
#' @param samples number of sample paths that replace the covariance of the reference. Default: the covariance itself.
#' @param tail omits the smallest eigenvalues of the covariance, whose sum is at most `tail` times the sum of all but
#'   the `m` largest.
#' @param variance variance of the white noise divided by the noise variance.
#' @param make a function of `x`, `y`, `weights`, `kernel`, `noise` and `m` that returns `list(U, W, sign, mean, p)`.
#' @param label the name that `print()` shows.
#' @return An object of class `pfdtc_aux`, for `aux` of [pfdtc()].
#' @details `aux_white()`, the default if [pfdtc()] moves inducing points, is white noise around the exact posterior
#'   mean. That mean need not be computed, because it changes the objective only by a constant. `aux_sor()` is the
#'   subset of regressors (SoR) posterior with random rows as inducing points. `aux_subset()` is the exact posterior of
#'   random rows; with `n / 10` of them, an evaluation of the objective takes \eqn{O(n^2 m)} time. `aux_refresh()`
#'   renews nu as the SoR posterior on the current inducing points. `aux_reference()` is the SoR posterior on `m2`
#'   inducing points of method `"greedy"` ([inducing_points()]), which the fit keeps as its [reference()].
#'
#' `make` returns a Gaussian process with covariance \eqn{p\,k(x, x') + \sum_j s_j b_j(x) b_j(x')}{p k(x, x') +
#' sum_j s_j b_j(x) b_j(x')} and mean \eqn{\sum_i k(x, u_i) a_i}{sum_i k(x, u_i) a_i}. Here \eqn{b_j(x) = \sum_i k(x,
#' u_i) W_{ij}}{b_j(x) = sum_i k(x, u_i) W_ij}. `U` has the rows \eqn{u_i}; `W` is the matrix of \eqn{W_{ij}}{W_ij};
#' `mean` has the \eqn{a_i}. `sign` has the \eqn{s_j}, 1 (default) or -1, and `p` is 0 (default) or 1. `y` is centred
#' and scaled as in the fit, and `kernel` and `noise` are those of this `y`.
#' @seealso [auxiliary()], which computes nu, [pf_divergence()], `vignette("paper")`
#' @examples
#' aux_sor(size = 50)
#' prior <- aux_custom(function(x, y, weights, kernel, noise, m) { # Nystrom approximation of the prior
#'   U <- x[seq_len(m), , drop = FALSE]
#'   R <- chol(kernel_matrix(kernel, U) + diag(1e-8 * kernel$variance, m))
#'   list(U = U, W = backsolve(R, diag(m)), mean = numeric(m))
#' }, "the prior on the first rows")
#' pfdtc(dist ~ speed, cars, m = 4, aux = prior)
#' @aliases aux_subset aux_refresh aux_reference aux_white aux_custom
#' @export
aux_sor <- function(size = NULL, rows = NULL) new_aux("sor", size = size, rows = rows)

#' @export
aux_subset <- function(size = NULL, rows = NULL) new_aux("subset", size = size, rows = rows)

#' @export
aux_refresh <- function(every = 10, start = aux_sor()) {
  start <- check_aux(start, "start")
  refuse_if(!is.null(start$every), "start", "aux_refresh()", "another auxiliary distribution")
  new_aux("refresh", every = check_count(every, "every"), start = start)
}

#' @export
aux_reference <- function(m2 = NULL, samples = NULL, tail = 0) {
  tail <- check_at_least_0(tail, "tail")
  refuse_if(tail >= 1, "tail", describe(tail), "a number from 0 to less than 1")
  refuse_if(tail > 0 && !is.null(samples), "samples", "cannot be combined with `tail`", hint = "Leave out one of them.")
  new_aux("reference", m2 = if (!is.null(m2)) check_count(m2, "m2"),
          samples = if (!is.null(samples)) check_count(samples, "samples"), tail = tail)
}

#' @export
aux_white <- function(variance = 1) new_aux("white", variance = check_positive(variance, "variance", 1L))

new_aux <- function(kind, size = NULL, rows = NULL, ...) {
  if (!is.null(size)) size <- check_count(size, "size")
  if (!is.null(rows)) {
    refuse_if(!length(rows), "rows", describe(rows), "one or more row numbers")
    rows <- vapply(rows, check_count, 0L, argument = "rows")
    refuse_if(anyDuplicated(rows), "rows", "has repeated row numbers")
  }
  structure(list(kind = kind, size = size, rows = rows, ...), class = "pfdtc_aux")
}

check_aux <- function(aux, argument = "aux") {
  if (is.function(aux)) aux <- tryCatch(aux(), simpleError = function(e) aux)
  refuse_if(!inherits(aux, "pfdtc_aux"), argument, describe(aux),
            "an auxiliary distribution, such as aux_white() or aux_sor()")
  aux
}

#' @export
aux_custom <- function(make, label = "given by a function") {
  check_given("make", "Give a function that returns list(U, W, sign, mean, p).")
  refuse_if(!is.function(make), "make", describe(make), "a function that returns list(U, W, sign, mean, p)")
  refuse_if(!is.character(label) || length(label) != 1L || is.na(label), "label", describe(label), "a string")
  new_aux("custom", make = make, label = label)
}

#' @export
format.pfdtc_aux <- function(x, ...) aux_kinds[[x$kind]]$text(x)

#' @export
print.pfdtc_aux <- function(x, ...) {
  cat("Auxiliary distribution:", format(x), "\n")
  invisible(x)
}

# Returns the description `aux` with its number of rows or points filled in, for a fit with n rows and m inducing
# points. `made` is the number of inducing points of a stored reference posterior, or NULL.
fill_aux <- function(aux, n, m, made = NULL) {
  if (!is.null(aux$start)) aux$start <- fill_aux(aux$start, n, m)
  fill <- aux_kinds[[aux$kind]]$fill
  if (is.null(fill)) aux else fill(aux, n, m, made)
}

#' @export
auxiliary <- function(x, y, kernel, noise, aux = aux_sor(), weights = NULL) {
  rows <- check_model_of_rows(x, y, kernel, noise, weights)
  make_auxiliary(check_aux(aux), rows, rows$model, m = min(200, nrow(rows$x)))
}

#' @export
print.pfdtc_auxiliary <- function(x, ...) {
  cat("Auxiliary distribution:", x$label)
  cat(if (is.null(x$W)) " \n" else sprintf(": %d points, covariance of rank %d\n", nrow(x$U), ncol(x$W) - 1L))
  invisible(x)
}

#' @export
predict.pfdtc_auxiliary <- function(object, newdata, ...) {
  refuse_if(is.null(object$W), "object", "is white noise, which has no values at new rows",
            hint = "Its mean is that of gp_exact().")
  x <- check_same_columns(check_matrix(newdata, "newdata"), object$U, "newdata")
  Wt <- native(ffi_lowrank_rows, engine_model(object$model), object, engine_rows(list(x = x)), engine_control(nrow(x)))
  q <- nrow(Wt)
  variance <- object$p * kernel_diagonal(object$model$kernel, x) + colSums(object$sign[-q] * Wt[-q, , drop = FALSE]^2)
  list(fit = Wt[q, ], se.fit = sqrt(pmax(variance, 0)))
}

# ---- the kinds of auxiliary distributions ---------------------------------------------------------------------------

# Makes the auxiliary distribution that `how`, such as aux_sor(), describes. `m` is the number of inducing points of the
# fit. aux_reference() uses the points of `reference`, a fit of the same model; if `reference` is NULL, it chooses them.
make_auxiliary <- function(how, data, model, m, control = NULL, reference = NULL) {
  aux <- aux_kinds[[how$kind]]$make(how, data, model, m, control, reference)
  aux$made_from <- fingerprint(data)
  # Store the factor of the covariance at the rows, if this matrix takes at most half of the memory allowed for scratch.
  memory <- control$memory %||% getOption("pfdtc.memory", 2^27)
  kept <- !is.null(aux$W) && 8 * ncol(aux$W) * as.double(nrow(data$x)) <= memory / 2
  rows <- engine_rows(data)
  if (kept) aux$Wt <- native(ffi_lowrank_rows, engine_model(model), aux, rows, engine_control(nrow(data$x)))
  aux
}

# Returns an element of aux_kinds, for a distribution made from given or random rows. `what` names it in print().
made_from_rows <- function(what, make) {
  list(objective = "pf", make = make, fill = function(how, n, ...) {
    if (is.null(how$rows) && is.null(how$size)) how$size <- min(ceiling(n / 10), 1000)
    how
  }, text = function(how) {
    paste(what, "on", if (!is.null(how$rows)) sprintf("%d given rows", length(how$rows)) else if (is.null(how$size))
      "a tenth of the rows (at most 1000)" else sprintf("%d random rows", how$size))
  })
}

# A kind of auxiliary distribution, which `how` (such as aux_sor()) describes, has `objective`, `make` and maybe others:
#   objective        the name, in the C code, of the pF objective under this distribution
#   text(how)        the words that print() shows
#   make(how, data, model, m, control, reference)  makes the distribution, see low_rank_auxiliary()
#   fill(how, n, m, made)  sets a size that depends on the data, see fill_aux()
#   keeps_reference  TRUE if the fit stores the reference posterior
aux_kinds <- list(
  white = list(objective = "white", text = function(how) {
    sprintf("exact posterior mean plus white noise with %sthe noise variance",
            if (how$variance == 1) "" else sprintf("%s times ", format(how$variance)))
  }, make = function(how, data, model, ...) {
    structure(list(objective = "white", label = format(how), model = model, variance = as.double(how$variance)),
              class = "pfdtc_auxiliary")
  }),
  sor = made_from_rows("SoR posterior", function(how, data, model, m, control, ...) {
    sor_on_points(data, data$x[auxiliary_rows(how, data), , drop = FALSE], model, control)
  }),
  subset = made_from_rows("exact posterior", function(how, data, model, ...) {
    exact_on_rows(data, auxiliary_rows(how, data), model)
  }),
  refresh = list(objective = "pf", text = function(how) {
    sprintf("SoR posterior on the inducing points, renewed every %d iterations; start: %s", how$every,
            format(how$start))
  }, make = function(how, ...) aux_kinds[[how$start$kind]]$make(how$start, ...)),
  points = list(objective = "pf", make = function(how, data, model, m, control, ...) {
    sor_on_points(data, how$z, model, control)
  }),
  reference = list(objective = "pf", keeps_reference = TRUE, fill = function(how, n, m, made) {
    replace(how, "m2", made %||% reference_size(how, m, n))
  }, text = function(how) {
    sprintf("SoR posterior on %s greedily chosen points%s", how$m2 %||% "up to 4 m",
            if (!is.null(how$samples)) sprintf(", %d sample paths", how$samples)
            else if (how$tail > 0) sprintf(", leading directions (tail %s)", format(how$tail)) else "")
  }, make = function(how, data, model, m, control, reference) {
    if (is.null(reference)) {
      U <- data$x[reference_rows(data, model$kernel, reference_size(how, m, nrow(data$x))), , drop = FALSE]
      return(sor_on_points(data, U, model, control, how, m))
    }
    points <- seq_len(reference_size(how, m, reference$m))
    post <- first_points(reference$factors, length(points), model$noise)
    sor_auxiliary(post, reference$inducing[points, , drop = FALSE], model, how, m)
  }),
  custom = list(objective = "pf", text = function(how) how$label, make = function(how, data, model, m, ...) {
    given <- tryCatch(how$make(data$x, data$y, data$weights, as_kernel(model$kernel), model$noise, m),
                      error = function(e) {
                        abort_input("make", paste("stops with the error:", conditionMessage(e)),
                                    hint = "It must be a function of x, y, weights, kernel, noise and m.")
                      })
    need <- function(ok, want) {
      refuse_if(!isTRUE(ok), "make", "returns something else", message = sprintf("The result of `make` must %s.", want))
    }
    need(is.list(given) && all(c("U", "W", "mean") %in% names(given)), "be list(U, W, sign, mean)")
    U <- check_matrix(given[["U"]], "U")
    W <- check_matrix(given[["W"]], "W")
    need(ncol(U) == ncol(data$x) && nrow(U) > 0L, "have a `U` with the columns of `x`")
    need(nrow(W) == nrow(U), "have a `W` with a row for each row of `U`")
    mean <- check_vector(given[["mean"]], "mean", nrow(U))
    sign <- given[["sign"]] %||% 1
    need(length(sign) %in% c(1L, ncol(W)) && all(sign %in% c(-1, 1)), "have a `sign` of 1 or -1 for each column of `W`")
    p <- given[["p"]] %||% 0
    need(length(p) == 1L && p %in% 0:1, "have a `p` of 0 or 1")
    low_rank_auxiliary(U, W, rep_len(as.double(sign), ncol(W)), mean, p, model, how$label)
  }))

# Returns the numbers of the rows of data$x from which the distribution is made. how$rows are row numbers before equal
# rows were merged; those of weight 0 are omitted.
auxiliary_rows <- function(how, data) {
  n <- if (is.null(data$group)) nrow(data$x) else length(data$group)
  rows <- how$rows
  if (is.null(rows)) {
    size <- aux_kinds[[how$kind]]$fill(how, n)$size
    refuse_if(size > n, "size", describe(size), sprintf("a whole number from 1 to %d, the number of rows", n))
    rows <- sample.int(n, size)
  } else {
    used <- if (is.null(data$x_zero)) seq_len(n) else which(data$prior_weights > 0)
    n <- n + NROW(data$x_zero)
    refuse_if(max(rows) > n, "rows", max(rows), sprintf("row numbers from 1 to %d", n), where = "the largest")
    rows <- match(intersect(rows, used), used)
    refuse_if(!length(rows), "rows", "has no row of positive weight")
  }
  if (is.null(data$group)) rows else unique(data$group[rows])
}

# Returns the SoR posterior with inducing points U as an auxiliary distribution. Its covariance is b(x)'b(x') with
# b(x) = sqrt(s2) C^{-1} L^{-1} k(U, x), where s2 is the noise variance, L L' = k(U, U) and C C' = s2 I + G. G = A A' is
# a sum over rows, with A = L^{-1} k(U, X). Points without residual prior variance are dropped for better conditioning.
sor_on_points <- function(data, U, model, control, how = NULL, m = NULL) {
  U <- choose_greedy(U, nrow(U), model$kernel, Inf)$z
  sor_auxiliary(native_posterior(U, data, model, jitter = 0, control = control), U, model, how, m)
}

sor_auxiliary <- function(post, U, model, how = NULL, m = NULL) {
  noise <- model$noise
  W <- if (is.null(how$tail) || how$tail == 0) {
    sqrt(noise) * solve_t(post$L, t(forwardsolve(post$C, diag(nrow(U)))))
  } else {
    # Reduce the rank of the covariance by omitting eigenvectors of G = A A'. Eigenvalue g_j adds w_j = g_j / (1 + g_j /
    # s2) to the trace of the covariance at the rows. The first m are kept, and more of them until the omitted w_j sum
    # to at most `tail` times the sum of all w_j after the first m.
    axes <- eigen(post$G, symmetric = TRUE)
    g <- pmax(axes$values, 0)
    w <- g / (1 + g / noise)
    beyond <- rev(cumsum(rev(w))) - w # for each eigenvector, the sum of w_j over the later ones
    m <- min(m, length(w))
    r <- max(m, which(beyond <= how$tail * beyond[m])[1L])
    solve_t(post$L, axes$vectors[, seq_len(r), drop = FALSE] / rep(sqrt(1 + g[seq_len(r)] / noise), each = nrow(U)))
  }
  if (!is.null(how$samples)) { # random sample paths: W becomes random, with the same expectation of W W'
    W <- W %*% matrix(stats::rnorm(ncol(W) * how$samples), ncol(W)) / sqrt(how$samples)
  }
  low_rank_auxiliary(U, W, rep(1, ncol(W)), solve_t(post$L, post$beta), 0L, model, "SoR posterior")
}

# Returns the factors L, G, C and beta of the DTC posterior on the first m inducing points of `post`, from its sums.
first_points <- function(post, m, noise) {
  i <- seq_len(m)
  G <- post$G[i, i, drop = FALSE]
  C <- t(chol(G + diag(noise, m)))
  list(L = post$L[i, i, drop = FALSE], G = G, C = C, beta = solve_t(C, forwardsolve(C, post$Ay[i])))
}

# Returns the exact posterior given the rows U = x[rows, ], with covariance k(x, x') - b(x)'b(x'). Here b(x) = L^{-1}
# k(U, x), L L' = k(U, U) + s2 diag(1 / w), s2 is the noise variance, and w are the weights of the rows.
exact_on_rows <- function(data, rows, model) {
  U <- data$x[rows, , drop = FALSE]
  w <- merged_weights(data)[rows]
  check_memory(24 * as.double(length(rows))^2, "the exact posterior of the auxiliary rows")
  K <- native_kernel_matrix(model$kernel, U, U)
  L <- tryCatch(t(chol(K + diag(model$noise / w, length(rows)))), error = function(e) {
    abort_numerical("The exact posterior on the auxiliary rows failed: the noise is too small relative to the signal.")
  })
  Wb <- t(forwardsolve(L, diag(length(rows))))
  alpha <- solve_t(L, forwardsolve(L, data$y[rows]))
  replace(low_rank_auxiliary(U, Wb, rep(-1, length(rows)), alpha, 1L, model, "exact posterior"), "rows", list(rows))
}

solve_t <- function(L, b) backsolve(L, b, upper.tri = FALSE, transpose = TRUE)

# Returns the auxiliary distribution with mean a'k(U, x), where a is the argument `mean`, and covariance p k(x, x') +
# sum_j sign_j b_j(x) b_j(x'), where b(x) = W'k(U, x) and p is 0 or 1. The C code reads a as the last column of W.
low_rank_auxiliary <- function(U, W, sign, mean, p, model, label) {
  structure(list(objective = "pf", label = label, model = model, p = as.integer(p), U = U, W = unname(cbind(W, mean)),
                 sign = c(sign, 1)), class = "pfdtc_auxiliary")
}

reference_size <- function(how, m, n) min(how$m2 %||% (4 * m), n)
