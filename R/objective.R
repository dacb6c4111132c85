#' Compute objectives, auxiliary distributions and inducing points
#'
#' These functions compute parts of a fit for research. They neither centre nor scale the data. `inducing_points()`
#' chooses inducing points. `auxiliary()` computes an auxiliary distribution nu, see [aux_sor()]. `pf_objective()`
#' computes the squared preconditioned Fisher (pF) divergence between nu and the DTC posterior with points `z` as
#' \eqn{\sigma^4 d_{pF}^2 - C(X)}{s2^2 d_pF^2 - C(X)} (Huggins et al. 2019). C does not depend on `z`. `vfe_objective()`
#' computes minus the evidence lower bound (ELBO) of Titsias (2009): \eqn{-\log N(y; 0, Q + \sigma^2 I) +
#' \mathrm{tr}(K - Q) / (2 \sigma^2)}{-log N(y; 0, Q + s2 I) + tr(K - Q) / (2 s2)}, where K is the kernel matrix of the
#' rows and Q its approximation by the inducing points.
#' @usage
#' inducing_points(x, m, kernel, method = c("greedy", "random", "kmeans", "divergence"),
#'   y = NULL, noise = NULL, weights = NULL)
#' auxiliary(x, y, kernel, noise, aux = aux_sor(), weights = NULL)
#' \method{predict}{pfdtc_auxiliary}(object, newdata, ...)
#' pf_objective(z, x, y, kernel, noise, nu, weights = NULL, constant = FALSE, jitter = 0)
#' vfe_objective(z, x, y, kernel, noise, weights = NULL, jitter = 0)
#' @param x,z inputs `x` and inducing points `z`: numeric matrices or data frames with the same columns, or vectors.
#' @param m maximum number of inducing points.
#' @param method `"greedy"` repeatedly takes the row with the largest residual prior variance K_ii - Q_ii (pivoted
#'   Cholesky, \eqn{O(n m^2)} time). `"random"` draws rows. `"kmeans"` uses the centres of
#'   [stats::kmeans()]. `"divergence"` needs `y` and `noise`. It repeatedly takes the
#'   row that reduces the pF divergence most, to first order, among at most `max(10 m, 1000)` rows.
#' @param y numeric response, one number for each row of `x`.
#' @param kernel a kernel with all parameters, see [kernel_se()].
#' @param noise the noise variance, in squared units of `y`.
#' @param weights positive numbers: the noise variance of a row is `noise / weights`. Default: 1.
#' @param aux the kind of auxiliary distribution, such as `aux_sor()`.
#' @param nu,object a result of `auxiliary()`, for `pf_objective()` with the same data, kernel and noise.
#' @param newdata,... new rows in the form of `x`. `...` is not used.
#' @param constant add \eqn{C(X)} to the value? It takes \eqn{O(n^2)}{O(n^2)} time.
#' @param jitter added to the diagonal of \eqn{k(Z, Z)}, in units of the signal variance.
#' @return * `inducing_points()`: a matrix with at most `m` rows and the columns of `x`. `"greedy"` reads at most max(20
#'   m, 2^24 / m) random rows. Its attribute `t` is the sum of the residual prior variances of these rows after each
#'   point; the choice ends when this sum is almost 0.
#' * `auxiliary()`: a `pfdtc_auxiliary` object. `predict()` returns `list(fit, se.fit)`, mean and sd of nu in
#'   units of `y`. For `aux_white()` this is an error. `aux = aux_refresh()` gives its `start`.
#' * `pf_objective()`: `list(value, gradient)`. The value is in the fourth power of the units of `y`. The gradient is
#'   with respect to `z`, with nu fixed.
#' * `vfe_objective()`: `list(value, gradient)`. The gradient has elements `z`, `theta` (log hyperparameters) and, for
#'   some kernels, `log_lengthscale`, `log_variance` and `log_noise`.
#' @section Errors and invariants: Errors have class `pfdtc_error_input`, or `pfdtc_error_numerical` if the Cholesky
#'   factorisation of \eqn{k(Z, Z)} fails. `vfe_objective()` is never below minus the log marginal likelihood of the
#'   exact GP. It equals this value up to rounding for `jitter = 0`, `z = x` and distinct rows, if the factorisation
#'   works. `t` never increases.
#' @seealso [pf_divergence()], [aux_sor()], `vignette("paper")`
#' @examples
#' x <- cars$speed; y <- cars$dist - mean(cars$dist)
#' k <- kernel_se(lengthscale = 5, variance = 500)
#' z <- inducing_points(x, 3, k)
#' nu <- auxiliary(x, y, k, noise = 200, aux_sor(rows = seq(1, 50, 5)))
#' predict(nu, c(10, 20))
#' pf_objective(z, x, y, k, noise = 200, nu)$value
#' vfe_objective(z, x, y, k, noise = 200)$value
#' @aliases inducing_points auxiliary predict.pfdtc_auxiliary vfe_objective
#' @export
pf_objective <- function(z, x, y, kernel, noise, nu, weights = NULL, constant = FALSE, jitter = 0) {
  args <- check_objective(z, x, y, kernel, noise, weights, jitter)
  constant <- check_flag(constant, "constant")
  check_given("nu", "Give a result of auxiliary().")
  check_made_from(nu, args, args$model)
  result <- evaluate_checked(args, nu)
  if (constant) result$value <- result$value + pf_objectives[[nu$objective]]$constant(nu, args, args$model)
  result[c("value", "gradient")]
}

#' @export
vfe_objective <- function(z, x, y, kernel, noise, weights = NULL, jitter = 0) {
  args <- check_objective(z, x, y, kernel, noise, weights, jitter)
  kernel <- as_kernel(args$model$kernel)
  result <- evaluate_checked(args, NULL)
  shift <- sum_of_logs(args$weights) / 2 # turns the density of sqrt(w) y into that of y
  gradient <- list(z = result$gradient)
  if (kernel$profile %in% kernels_of_before && !isTRUE(kernel$isotropic)) {
    d <- length(kernel$lengthscale)
    gradient <- c(gradient, list(log_lengthscale = stats::setNames(result$theta[seq_len(d)], names(kernel$lengthscale)),
                                 log_variance = result$theta[d + 1L], log_noise = result$noise))
  }
  gradient$theta <- stats::setNames(c(result$theta, result$noise), parameter_names(kernel, column_names(args$x)))
  list(value = result$value - shift, gradient = gradient)
}

# Lists two functions for each pF objective. divergence() returns d, the pF divergence of the DTC posterior `p` on z.
# constant() returns C(X), the part of s2^2 d^2 that does not depend on z (s2: noise variance).
pf_objectives <- list(pf = list(constant = function(aux, data, model) {
    native(ffi_pf_constant, engine_model(model), engine_rows(data), aux, engine_control(nrow(data$x)))
  }, divergence = function(aux, z, p, jitter, data, model) {
    result <- native(ffi_pf_divergence, engine_points(z, model, jitter), engine_rows(data), aux,
                     engine_control(nrow(data$x)))
    sqrt(max(stop_on_failure(as_value(result), jitter)$value, 0)) / model$noise
  }),
  white = list(constant = function(aux, data, model) -sum(white_at_exact(data, model, aux$variance)),
               divergence = function(aux, z, p, jitter, data, model) {
                 noise <- model$noise
                 X <- noise * chol2inv(t(p$C)) # X = D^{-1}, D = I + p$G / noise; tr(G D^{-2}) = tr(X G X)
                 parts <- c(noise * p$rss + noise^2 * sum(p$beta^2),
                            aux$variance * noise * (p$t + sum(X * (X %*% p$G))))
                 sqrt(sum(pmax(parts - white_at_exact(data, model, aux$variance), 0))) / noise
               }))

# With an auxiliary distribution of white noise (variance v), the pF objective has a part for the mean and one for the
# covariance. Returns their minima, at the exact kernel matrix K. With the noise variance s2 and P = (K + s2 I)^{-1},
# they are s2^2 y'P y and v s2^3 tr(P - s2 P^2).
white_at_exact <- function(data, model, variance) {
  noise <- model$noise
  n <- nrow(data$x)
  check_memory(24 * as.double(n)^2, sprintf(
    "the exact posterior of %d rows, whose mean aux_white() needs (aux_sor() does not),", n))
  exact <- native_exact(data, model)
  P <- chol2inv(t(exact$L)) # (K + s2 W^{-1})^{-1} = W^{1/2} (W^{1/2} K W^{1/2} + s2 I)^{-1} W^{1/2}
  w <- merged_weights(data)
  c(mean = noise^2 * sum(data$y * exact$alpha),
    covariance = variance * noise^3 * sum((diag(P) - noise * colSums(P^2 / w)) / w))
}

# Checks the arguments x, y, kernel, noise and weights of exported functions. Returns the rows with their `model`.
check_model_of_rows <- function(x, y, kernel, noise, weights) {
  for (name in c("x", "y", "kernel", "noise")) check_given(name)
  rows <- check_rows(x, y, weights)
  c(rows, list(model = new_model(complete_kernel(kernel, rows$x), check_positive(noise, "noise", 1L))))
}

check_objective <- function(z, x, y, kernel, noise, weights, jitter) {
  check_given("z")
  refuse_if(inherits(z, "gp_fit"), "z", describe(z), "a matrix of inducing points",
            hint = "The objective of a fit is fit$objective; pf_divergence(fit, exact) compares two fits.")
  rows <- check_model_of_rows(x, y, kernel, noise, weights)
  z <- check_same_columns(check_matrix(z, "z"), rows$x, "z")
  if (!nrow(z)) abort_input("z", "has no rows")
  c(rows, list(z = z, jitter = check_finite(check_at_least_0(jitter, "jitter"), "jitter")))
}

evaluate_checked <- function(args, aux) {
  result <- stop_on_failure(objective_of(args, aux, args$z, args$model, args$jitter), args$jitter)
  if (!is.null(colnames(args$x))) colnames(result$gradient) <- colnames(args$x)
  result
}

check_made_from <- function(aux, data, model) {
  refuse_if(!inherits(aux, "pfdtc_auxiliary"), "nu", describe(aux), "an auxiliary distribution made by auxiliary()")
  same <- identical(kernel_structure(model$kernel), kernel_structure(aux$model$kernel)) &&
    identical(kernel_values(model$kernel), kernel_values(aux$model$kernel))
  other <- c("data", "kernel", "noise")[c(!identical(fingerprint(data), aux$made_from),
                                          !same, model$noise != aux$model$noise)]
  refuse_if(length(other), "nu", sprintf("was made from other %s", list_quoted(sub("data", "rows", other), quote = "")),
            hint = "Make it by auxiliary() from the rows, kernel and noise of the fit or objective.")
}

stop_on_failure <- function(result, jitter) {
  if (is.null(result$reason)) return(result)
  abort_numerical(paste0("The objective cannot be evaluated: ", result$reason, ".",
                         if (identical(result$status, 1L)) sprintf(" Use a `jitter` above %s.", format(jitter))),
                  status = result$status)
}
# ---- problems of the optimiser: functions of one vector ---------------------------------------------------------
# A problem's evaluate() returns list(value, gradient), or after a failure the value Inf and the `reason` in words.

# Evaluates the objective over all rows: VFE if `aux` is NULL, else pF under the auxiliary distribution `aux`.
objective_of <- function(data, aux, z, model, jitter, control = NULL, scratch = NULL, gradient = TRUE) {
  name <- if (is.null(aux)) "vfe" else aux$objective
  if (!is.null(data$by_passes)) {
    return(objective_by_passes(data$by_passes, name, aux, z, model, jitter, control, gradient))
  }
  native_evaluate(name, aux, z, data, model, jitter, gradient, control, scratch)
}

# Returns the problem of minimising the objective (VFE, or pF under `aux`) over the inducing points z. Each input is
# divided by its lengthscale, or by its range if that is shorter, so that the points stay near the data.
points_problem <- function(data, z, model, aux, jitter, control, gradient = TRUE) {
  scratch <- new.env()
  columns <- smooth_inputs(model$kernel)
  range <- vapply(columns, function(j) max(data$x[, j]) - min(data$x[, j]), 0)
  length <- kernel_lengths(model$kernel, ncol(z))[columns]
  size <- unname(ifelse(range > 0, pmin(length, range), length))
  size[!is.finite(size)] <- 1
  unit <- rep(size, each = nrow(z))
  to_z <- function(par) {
    z[, columns] <- par * unit
    z
  }
  list(start = as.vector(z[, columns]) / unit, natural = to_z, unit = as.double(size),
       columns = as.integer(columns), evaluate = function(par) {
         result <- objective_of(data, aux, to_z(par), model, jitter, control, scratch, gradient)
         if (!is.null(result$reason)) return(result)
         replace(result, "gradient", list(as.vector(result$gradient[, columns]) * unit))
       })
}

# Returns the problem of minimising -log p(y) over the free log hyperparameters, y = data$y. If inducing points move
# too, `points` is their points_problem(), and their coordinates come first. minus_log(model, z) returns list(value,
# theta, noise, gradient): -log p, its derivatives by the kernel's log parameters, log noise and z; or else a `reason`.
hyper_problem <- function(data, parameters, minus_log, points = NULL) {
  own <- length(points$start) + seq_along(parameters$start)
  z_at <- function(par) if (!is.null(points)) points$natural(par[-own])
  list(start = c(points$start, parameters$start), natural = function(par) {
    c(parameters$natural(par[own]), if (!is.null(points)) list(z = z_at(par)))
  }, evaluate = function(par) {
    too_far <- parameters$too_far(par[own])
    if (!is.null(too_far)) return(list(value = Inf, reason = too_far))
    now <- parameters$at(par[own])
    z <- z_at(par)
    result <- minus_log(now, z)
    if (!is.null(result$reason)) return(result)
    shift <- data$shift # has the terms that merged equal rows add
    slope <- c(result$theta, result$noise + shift$rows / 2 - shift$ss / (2 * now$noise))[parameters$free]
    list(value = result$value - merged_log_density(shift, now$noise), gradient = c(
      if (!is.null(z)) as.vector(result$gradient[, points$columns]) * rep(points$unit, each = nrow(z)), slope))
  })
}

# Returns the problem of minimising -ELBO over the hyperparameters and, if `points` is given, over the inducing points.
vfe_hyper_problem <- function(data, z, parameters, jitter, control, points = NULL) {
  scratch <- new.env()
  hyper_problem(data, parameters, function(now, moved) {
    objective_of(data, NULL, moved %||% z, now, jitter, control, scratch)
  }, points)
}

# Evaluates an objective (VFE or pF) by two passes over the row source `whole`: for sums and for the gradient.
objective_by_passes <- function(whole, name, aux, z, model, jitter, control, gradient = TRUE) {
  refuse_if(isTRUE(aux$p > 0), "optimise_rows", "exceeds the sample that is kept of the source",
            hint = "The objective of this auxiliary distribution has sums over pairs of rows, all in memory.")
  aux$Wt <- NULL # Wt has a column for each row in memory
  pass <- function(f, merge, ...) {
    asked <- list(name = name, aux = aux, z = z, model = model, jitter = jitter, control = control, ...)
    whole_pass(whole, f, asked, merge)
  }
  sums <- pass(native_sums, sums_merge)
  at_sums <- function(rss = NULL) {
    as_value(native(ffi_objective, engine_objective(name, aux), engine_points(z, model, jitter), sums, rss))
  }
  result <- at_sums()
  if (!is.null(result$reason) || !gradient) return(result)
  no_rows <- list(x = z[0L, , drop = FALSE], y = numeric())
  add_slopes <- function(a, b) Map(`+`, a, b)
  slopes <- add_slopes(pass(native_gradient, add_slopes, adjoint = result$adjoint),
                       native_gradient(name, aux, z, no_rows, model, jitter, result$adjoint, sums$k_sum, control))
  result <- at_sums(slopes$rss) # with residuals summed over all rows, the value is accurate to rounding
  c(slopes[c("gradient", "theta")], result[c("value", "noise", "reason")])
}

#' @export
inducing_points <- function(x, m, kernel, method = c("greedy", "random", "kmeans", "divergence"), y = NULL,
                            noise = NULL, weights = NULL) {
  check_given("x", "Give a numeric matrix of inputs.")
  x <- check_matrix(x, "x")
  if (!nrow(x)) abort_input("x", "has no rows")
  check_given("m", "Give the number of inducing points.")
  m <- check_count(m, "m", nrow(x), max_is = "the number of rows")
  method <- check_choice(method, point_methods, "method")
  refuse_if(missing(kernel) && method != "random", "kernel", "is missing",
            hint = "Give a kernel with lengthscales and variance.")
  kernel <- if (missing(kernel)) NULL else complete_kernel(kernel, x)
  toward <- if (method == "divergence") {
    c(check_rows(x, y, weights)[c("y", "weights")], list(noise = check_positive(noise, "noise", 1L)))
  }
  chosen <- choose_points(x, m, kernel, method, toward = toward)
  structure(chosen$z, t = chosen$t)
}

point_methods <- c("greedy", "random", "kmeans", "divergence")

# Returns a list with up to m inducing points z. The method "greedy" adds `looked`, the number of rows searched, and
# `t`, the sum of their residual prior variances after each point. "divergence" needs `toward`, list(y, weights, noise).
choose_points <- function(x, m, kernel, method, memory = greedy_memory, toward = NULL, control = NULL) {
  switch(method, divergence = choose_guided(x, m, kernel, toward, memory, control),
         greedy = choose_greedy(x, m, kernel, memory),
         random = list(z = x[distinct_rows(x, sample.int(nrow(x)), m), , drop = FALSE]),
         kmeans = list(z = choose_kmeans(x, m, kernel)))
}

some_of <- function(n, most) if (n > most) sort(sample.int(n, floor(most))) else seq_len(n)

# Chooses m or fewer rows of x by pivoted Cholesky factorisation. If the factor would exceed `memory` bytes and x has
# more than 20 m rows, a random sample of rows replaces x.
choose_greedy <- function(x, m, kernel, memory = greedy_memory) {
  looked <- some_of(nrow(x), max(20 * m, memory / (8 * m)))
  pool <- if (length(looked) < nrow(x)) x[looked, , drop = FALSE] else x
  # Rounding errors of m steps, each a few eps * k(x, x), add up. Residual variances below their sum are only rounding.
  numbered <- by_numbers_of_levels(kernel, pool)
  chosen <- native(ffi_select, engine_model(kernel = numbered$kernel), numbered$rows(pool), as.integer(m),
                   4 * m * .Machine$double.eps)
  rows <- looked[chosen$pivots]
  list(z = x[rows, , drop = FALSE], rows = rows, t = chosen$t, looked = nrow(pool))
}

# Chooses up to m rows greedily, each to lower the pF divergence d most. To first order, with noise variance s2, s2^2
# d^2 is tr((S + r r') E), for posterior covariance S and residuals r at the rows X, and residual prior covariance E. A
# posterior on points U approximates S and r. With L L' = k(U, U), V = L^{-1} k(U, X) and P = V (S + r r') V', row i
# reduces the trace by v_i'P v_i / v_i'v_i. v_i is column i of V, less its projection on the columns of chosen rows.
choose_guided <- function(x, m, kernel, toward, memory, control) {
  n <- nrow(x)
  # Use max(2 m, 1000) rows, or up to max(10 m, 1000) if `memory` bytes allow: three matrices have a column for each of
  # these rows, and a row for each of m + 100 points u.
  looked <- some_of(n, min(max(10 * m, 1000), max(2 * m, 1000, memory / (24 * (m + 100)))))
  pool <- x[looked, , drop = FALSE]
  u <- choose_greedy(pool, min(length(looked), m + 100), kernel, Inf)$z
  noise <- toward$noise
  post <- native_posterior(u, list(x = pool, y = toward$y[looked], weights = toward$weights[looked]),
                           new_model(kernel, noise), jitter = 0, control = control)
  V <- forwardsolve(post$L, native_kernel_matrix(kernel, u, pool))
  # Compute P = V (S + r r') V' for V = L^{-1} k(u, pool) and the posterior covariance S and residuals r at `pool`. The
  # posterior on u has V S V' = noise G (noise I + G)^{-1} G, where G = V V' for equal weights, and V r = noise beta.
  P <- noise * crossprod(forwardsolve(post$C, post$G)) + noise^2 * tcrossprod(post$beta)
  least <- 4 * m * .Machine$double.eps * max(kernel_diagonal(kernel, pool))
  rows <- native(ffi_select_guided, V, P, as.integer(min(m, length(looked))), least)
  list(z = pool[rows, , drop = FALSE], rows = looked[rows])
}

# Returns the first m of the row numbers `order` whose rows of x differ from all earlier ones.
distinct_rows <- function(x, order, m) {
  group <- equal_rows(x[order, , drop = FALSE])
  utils::head(if (is.null(group)) order else order[!duplicated(group)], m)
}

choose_kmeans <- function(x, m, kernel) {
  looked <- some_of(nrow(x), max(50 * m, 10000))
  u <- x[looked, , drop = FALSE]
  scale <- kernel_lengths(kernel, ncol(x))
  scale[!is.finite(scale)] <- 1
  u <- sweep(u, 2L, scale, "/")
  start <- distinct_rows(u, sample.int(nrow(u)), m)
  if (length(start) == nrow(u) || length(start) < m) return(x[looked[start], , drop = FALSE])
  if (m == 1L) {
    centers <- matrix(colMeans(u), 1L)
  } else {
    # kmeans() may warn that it did not converge. Inducing points need not be its optimal centres.
    centers <- suppressWarnings(stats::kmeans(u, u[start, , drop = FALSE], iter.max = 30, algorithm = "Lloyd"))$centers
    lost <- !is.finite(rowSums(centers)) # an empty cluster gets its start as centre
    centers[lost, ] <- u[start[lost], ]
  }
  `dimnames<-`(sweep(centers, 2L, scale, "*"), list(NULL, colnames(x)))
}

# Returns the numbers of at most m2 rows, chosen greedily among 20 m2 random rows as inducing points of a reference.
reference_rows <- function(data, kernel, m2) choose_greedy(data$x, m2, kernel, memory = 0)$rows
