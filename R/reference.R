# Computes references for certificates (posteriors on more inducing points), and kriging on nearest neighbours.

#' Compute a reference for certificates, or the exact mean
#'
#' A reference is the DTC posterior of the same model with many more inducing points, chosen by greedy pivoted Cholesky
#' factorisation. [certify()] combines the narrow certificate of the reference with the distance between fit and
#' reference. At most ten steps of conjugate gradients correct the mean of the reference, except with a non-Gaussian
#' `family` or if `data` is given. `refine()` continues these steps: it returns the mean of the exact GP with a
#' certified error of at most `tol` times the sd of the response.
#' @param fit A fit with one f and data, not `"vi"`; argument `data` needs a formula. `refine()` needs Gaussian noise.
#' @param m2 Maximum number of points. Default: 4 `m`, more with groups, at least 600 (`family`) or 800 (neighbours).
#' @param max_seconds Time limit in seconds for the correction of the mean. No step begins that would exceed it.
#' @param data For a fit without its data, the rows of the fit: a row source or a data frame. Weights, offset and
#'   `subset` are taken from the call of the fit. `refine()` holds all rows in memory.
#' @param newdata,reference,... As in [certify()].
#' @param tol Accuracy of the mean as a fraction of the sd of the (transformed) response.
#' @param maxit Maximum number of iterations.
#' @return `reference()`: a fit with numbers that certificates need (Gaussian noise: of class `gp_dtc`);
#'   `correction$passes`, if any, is the number of passes over pairs of rows. `refine()`: a data frame with a row for
#'   each row of `newdata`. `mean` is the mean of f under the exact GP, offset included, and `mean_error` bounds its
#'   error. Attributes: `iterations` and `met` (was `tol` met?).
#' @details A reference takes \eqn{O(n m_2^2)} time and \eqn{O(m_2^2)} memory, where \eqn{m_2} is `m2`. A row source is
#'   read three times. A step of the correction or of `refine()` takes \eqn{n^2 / 2}{n^2/2} kernel evaluations.
#' @section Invariants: `|mean - exact mean| <= mean_error`; if `met`, `mean_error` is at most `tol` sds of the
#'   response. If `maxit`, rounding or an interrupt ends `refine()`, it warns (`pfdtc_warning_convergence`).
#' @source Theory vignette; Fine and Scheinberg (2001) for the pivoted Cholesky factorisation; Artemev, Burt and van der
#'   Wilk (2021), ICML, for conjugate gradients.
#' @seealso [certify()], [aux_reference()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit)
#' certify(fit, data.frame(speed = c(5, 15)))
#' refine(fit, data.frame(speed = c(5, 15)), tol = 1e-6)
#' @order 1
#' @export
reference <- function(fit, m2 = NULL, max_seconds = 10, data = NULL) {
  fit <- check_any_fit(fit, "fit")
  max_seconds <- check_at_least_0(max_seconds, "max_seconds")
  if (!is.null(data)) check_posterior(fit, "normal", "fit", "A reference by passes over `data`") else
    training_data(fit, "fit")
  refuse_classes(fit)
  if (!response_of(fit)$conjugate) return(with_fixed_seed(laplace_reference(fit, fit$data, m2)))
  tell <- stage_line("reference", fit$control$progress)
  m2 <- if (is.null(m2)) 4L * points_of_fit(fit) else check_count(m2, "m2", max = fit$nobs)
  call <- sys.call()
  if (!is.null(data)) return(with_fixed_seed(kind = "Wichmann-Hill", reference_of_source(
    fit, source_of_fit(fit, data), m2, call, tell)))
  data <- fit$data
  tell("choosing points")
  with_fixed_seed({
    rows <- reference_rows(data, model_of(fit)$kernel, min(m2, nrow(data$x)))
    reference_on(fit, data, data$x[rows, , drop = FALSE], call, tell, max_seconds)
  })
}

# Returns the reference on the points z, which must be distinct, with a correction of its mean towards the exact mean.
reference_on <- function(fit, data, z, call, tell = function(stage) NULL, max_seconds = 10) {
  tell(sprintf("posterior on %d points, and its norms", nrow(z)))
  out <- dtc_on_points(fit, data, z, call, fast = FALSE)
  tell("exact mean")
  budget <- list(passes = 10L, left = seconds_left(max_seconds))
  out$correction <- exact_mean(out, data, share_of_distance(out, data, fit, 1 / 50), budget)
  out
}

# Returns the argument `ratio` of exact_mean(), or NULL if the goal is met already or bounds are infinite. The goal is
# met if, at 200 rows, the median error bound is at most `share` times the median distance between the means of fit and
# reference. With a preconditioner by neighbours, a second condition suffices too: at 32 of the rows, the median error
# bound of the kriging mean is at most 1/10 of the median distance between this mean and the fit's.
share_of_distance <- function(reference, data, fit, share) {
  n <- nrow(data$x)
  x <- data$x[sort(sample.int(n, min(200L, n))), , drop = FALSE]
  mean <- in_units(fit, posterior_values(posterior_of(fit), x)$mean)
  model <- model_of(reference)
  r <- certify_posterior(reference, values_at(model$kernel, x))
  ratio <- share * stats::median(abs(mean - r$mean)) / stats::median(r$mean_error)
  if (!is.finite(ratio) || ratio >= 1 || !is.finite(stats::median(r$mean_error))) return(NULL)
  own <- function(s) s$w_E / (ratio * reference$norms$w_E)
  if (!precondition_by_near_rows(reference, data) || kriging_rows() < 1) return(own)
  few <- evenly(nrow(x), 32L)
  found <- krige(reference, data, values_at(model$kernel, x[few, , drop = FALSE]), 64L, group = 1)
  few <- few[found$order]
  half <- stats::median(sqrt(kriged_h2(found)))
  root <- root_weights(data)
  function(s) {
    centre <- native_kernel_cross_matvec(model$kernel, data$x, root * s$v, x[few, , drop = FALSE],
                                         reference$control) + kriged_sums(found, s$r)
    min(own(s), 10 * half * sqrt(s$c) / stats::median(abs(centre - mean[few] / reference$scale)), na.rm = TRUE)
  }
}

# Returns m for the default size 4 m of a reference: the number of inducing points of the fit, or 200 if it has none.
# With neighbours, m is at least 200 (or the number of rows if smaller), because the fit's few points do not suffice.
points_of_fit <- function(fit) {
  m <- if (is.null(fit$m)) min(200L, fit$nobs) else if (is.null(fit$near)) fit$m else
    max(fit$m, min(200L, nrow(fit$data$x)))
  effects <- vapply(c(fit$factors$groupings, fit$near$groupings), effects_of_grouping, 0)
  m + min(250L, ceiling(sum(effects) / 4)) # levels of groups need points of their own
}

# Returns the reference. If the fit keeps no data, removes the correction of the reference's mean, which needs the data.
kept_reference <- function(reference, fit) {
  if (is.null(fit$data)) reference$correction <- NULL
  reference
}

# Returns the reference `given` after checks, or a new one if it is NULL, with the norms that certificates need.
find_reference <- function(fit, given, m2, max_seconds = 10) {
  if (is.null(given)) {
    hint <- if (!is.null(fit$source))
      "Compute it by passes over the source: fit$reference <- reference(fit, data = <the source>)." else
        "Use fit$reference <- reference(fit) where the data are, or fit with `keep_data = TRUE`."
    refuse_if(is.null(fit$data), "reference", "is missing, and the fit has no data to compute it from", hint = hint)
    made <- reference(fit, m2, max_seconds = max_seconds)
    tell_classed("reference", paste("A reference posterior was computed for this call.",
                                    "To keep one for all calls: fit$reference <- reference(fit)"))
    return(made)
  }
  given <- check_any_fit(given, "reference")
  refuse_if(!method_traits(given)$reference, "reference", sprintf("a fit by %s()", given$method),
            "a fit by reference() or gp_dtc()")
  check_same_model(given, fit, "reference", "fit")
  if (!is.null(given$norms)) return(given)
  if (is.null(given$data)) {
    training_data(fit, "fit")
    given$data <- data_in_scale(fit, given)
  }
  with_fixed_seed(own_posterior(given))
}

# Computes the reference of a source by three passes, here or on workers; each pass holds one block in memory. The first
# draws a sample, from which inducing points are chosen. The second adds up the sums of the posterior, and checks that
# the source has the rows of the fit. The third adds up the norms that certificates need.
reference_of_source <- function(fit, source, m2, call, tell) {
  model <- model_of(fit)
  recipe <- fit_recipe(fit)
  pass <- function(f, merge, ...) source_pass(source, visit_rows(added_rows, recipe, f, list(...)), merge)
  tell("a sample of the rows")
  sample <- pass(function(rows, size) {
    smallest_keys(list(list(key = stats::runif(rows$n), values = list(x = rows$x), r = rows$y,
                            w = merged_weights(rows))), size)
  }, function(a, b) smallest_keys(list(a, b)), 20 * m2)
  if (is.null(sample)) refuse_other_rows()
  sample <- list(x = sample$values$x, y = sample$r, weights = sample$w, n = length(sample$r))
  z <- sample$x[reference_rows(sample, model$kernel, min(m2, sample$n)), , drop = FALSE]
  start <- native_posterior(z, sample, model, rounding_jitter(nrow(z)), control = fit$control)
  tell(sprintf("posterior on %d points", nrow(z)))
  found <- pass(sums_with_signature, sums_merge, z, model, as_start(start), FALSE, fit$control)
  if (!same_sums(fit$signature, signature_of(found$signature, fit$center))) refuse_other_rows()
  posterior <- posterior_of_sums(z, found$sums, model, start)
  tell("norms")
  norms <- pass(rows_norms, norms_merge, posterior[c("L", "C", "beta")], z, model, norm_groups(nrow(z)), fit$control)
  rows <- list(n = fit$nobs, scale = fit$scale, shift = log_density_shift(fit$nobs, found$log_w, fit$scale, 0, 0))
  p <- new_posterior("points", model, fit, rows, z = z, factors = posterior, jitter = posterior$jitter,
                     norms = finish_norms(norms, posterior, model))
  fit_of_posterior(p, call = call,
             source = list(label = source$label, rows = NA, omitted = 0L, sample = sample$n, passes = 3L))
}

# Kriging predicts f(x) by w'y, with weights w on the nearest neighbours of x. Let P = K + s2 I with the noise variance
# s2, k_x = k(X, x), J = k(x, x) - 2 w'k_x + w'P w and h = k_x - P w. For any v and r = y - P v,
#   exact variance = J - h'P^{-1} h,   exact mean = k_x'v + w'r + h'P^{-1} r.
# Good weights make h small. With sparse w, J needs only few pairs of rows.

# Returns how many neighbours close rows share. With 0, for tests, certificates omit kriging and the exact posterior.
kriging_rows <- function() getOption("pfdtc.kriging_rows", 400L)

# Divides x into groups of at most `most` close rows. Returns list(order, start): group i begins at order[start[i] + 1].
near_groups <- function(kernel, x, most) {
  u <- sweep(rotated(kernel, x), 2L, kernel_lengths(kernel, ncol(x)), "/")
  cut <- function(rows) {
    if (length(rows) <= most) return(list(rows))
    widest <- which.max(apply(u[rows, , drop = FALSE], 2, function(v) diff(range(v))))
    rows <- rows[order(u[rows, widest])]
    half <- seq_len(most * ceiling(length(rows) / (2 * most)))
    c(cut(rows[half]), cut(rows[-half]))
  }
  groups <- cut(seq_len(nrow(x)))
  list(order = unlist(groups), start = c(0L, cumsum(lengths(groups))))
}

# Returns a matrix with a column for each group of rows of x: the numbers of n_c data rows near rows of the group.
shared_rows <- function(kernel, data, x, groups, n_c, control) {
  n <- nrow(data$x)
  if (n_c == n) return(matrix(seq_len(n), n, length(groups$start) - 1L))
  near <- native_neighbours(kernel, data$x, n_c, query = x[groups$order, , drop = FALSE], control = control)
  rows <- vapply(seq_len(length(groups$start) - 1L), function(i) {
    unique(c(t(near[, (groups$start[i] + 1L):groups$start[i + 1L], drop = FALSE])))[seq_len(n_c)]
  }, integer(n_c))
  matrix(rows, n_c)
}

# Computes kriging weights w of functionals, and bounds from them, in the reference's units. For functional order[i], w
# is column i of W, and column group[i] of `rows` has the numbers of its data rows. J[i] >= Var(functional - w'y) >=
# exact variance, and q[i] >= Var(functional - w'y) - exact variance. ww[i] is w'w. k has the functionals' covariances
# with f at all rows (NULL for values).
krige <- function(reference, data, fun, n_c = kriging_rows(), group = group_for(fun$n)) {
  model <- model_of(reference)
  n_c <- as.integer(min(n_c, nrow(data$x)))
  x <- fun$x
  if (fun$kind == "values") {
    groups <- near_groups(model$kernel, x, group)
  } else {
    x <- x[unlist(fun$rows), , drop = FALSE]
    x <- x[evenly(nrow(x), n_c), , drop = FALSE]
    groups <- list(order = seq_len(nrow(x)), start = c(0L, nrow(x)))
  }
  rows <- shared_rows(model$kernel, data, x, groups, n_c, reference$control)
  of <- if (fun$kind != "values") {
    groups <- list(order = 1L, start = 0:1)
    list(cross = in_blocks(data$x, function(x) fun$cross(x, 1L)), prior = as.double(fun$prior), size = fun$size,
         features = features_of(fun, reference$inducing, reference$factors$L), terms = as.integer(fun$terms))
  }
  near <- sort(unique(c(rows)))
  found <- native(ffi_kriging, engine_posterior(reference$factors, reference$inducing, model),
                  norms_for(reference$norms, reference$factors, model, x), engine_rows(data),
                  x[groups$order, , drop = FALSE], of, as.integer(groups$start), near, matrix(match(rows, near), n_c),
                  engine_control(nrow(data$x), reference$control))
  c(list(fun = fun, order = groups$order, group = rep(seq_len(ncol(rows)), diff(groups$start)), rows = rows,
         k = of$cross, n_terms = n_c + sum(of$terms)), found)
}

# Returns intervals of the exact mean and sd, in units of y, from the result of krige(). `sd_lower` is a lower bound on
# the exact sd. Let k be the covariances with f at the rows, w the kriging weights, P = K + s2 I with noise variance s2,
# v an approximate solution of P v = y, r = y - P v, h = k - P w and |r|^2 = r'P^{-1} r. Then
#   |exact mean - (k'v + w'r)| <= |h| |r| + rounding,   |h|^2 = h'P^{-1} h = Var(f - w'y) - exact variance.
kriged_interval <- function(found, reference, correction, data, sd_lower = 0) {
  model <- model_of(reference)
  fun <- found$fun
  at <- found$order
  out <- unknown_intervals(fun$n)
  out[c("sd_lower", "sd_upper")] <- lapply(found[c("var_lower", "var_upper")], function(v) in_units(model, sqrt(v)))
  r <- correction$residual
  if (!is.null(r)) {
    eps <- .Machine$double.eps
    error <- correction$error
    n_c <- found$n_terms
    u <- root_weights(data) * correction$v
    known <- if (!is.null(found$k)) sum(found$k * u) else
      native_kernel_cross_matvec(model$kernel, data$x, u, fun$x, reference$control)[at]
    mean <- known + kriged_sums(found, r)
    rr <- kriged_sums(replace(found, "W", 1), r^2)
    size <- if (fun$kind == "values") kernel_diagonal(model$kernel, fun$x)[at] else fun$size
    h <- sqrt(kriged_h2(found, (rep_len(sd_lower, fun$n)[at] / model$scale)^2 * (1 - 8 * eps)))
    half <- h * (sqrt(correction$norms$c) + error$residual / sqrt(model$noise)) + sqrt(size) * error$sum +
      sqrt(found$ww) * error$residual + (4 * sqrt(n_c) + n_c / 64) * eps * sqrt(found$ww * rr) + 4 * eps * abs(mean)
    half <- half * (1 + 1e-14)
    out[c("mean_lower", "mean_upper")] <- list(in_units(model, mean - half), in_units(model, mean + half))
  }
  lapply(out, function(v) replace(numeric(fun$n), at, v))
}

# Returns an upper bound on |h|^2 = Var(f - w'y) - exact variance, for each functional f with the kriging weights w.
kriged_h2 <- function(found, var_lower = 0) {
  pmin(found$q, pmax(found$J - pmax(found$var_lower, var_lower), 0) + 8 * .Machine$double.eps * found$J)
}

# Returns w'r, the kriging prediction of the residual r, for each functional.
kriged_sums <- function(found, r) {
  colSums(found$W * matrix(r[found$rows], nrow(found$rows))[, found$group, drop = FALSE])
}

# Returns how many close rows share neighbours in kriging, if there are n rows to predict.
group_for <- function(n) max(1, min(16, n %/% 64))

# Returns how many of n values krige() can treat in the seconds left: at most 1,024, or 0 if there is no time for 64.
points_in_time <- function(reference, data, n, left) {
  N <- as.double(nrow(data$x))
  m <- reference$m
  n_c <- min(N, kriging_rows())
  seconds <- function(size) {
    near <- min(N, n_c * ceiling(size / group_for(size)))
    seconds_for(reference, N * (m^2 + 2 * size * (m + n_c)) + size / group_for(size) * n_c^3 / 3, N * (m + size + near))
  }
  sizes <- pmax(min(n, 1024L) %/% 2^(0:4), min(n, 64L))
  c(sizes[vapply(sizes, seconds, 0) <= left], 0)[1L]
}
