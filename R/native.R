# Calls the C code (the "engine") for all other files. native() calls a C entry point, and engine_*() make its
# arguments. Entry points with several callers have a wrapper native_*(). src/ffi_*.c describe the results.

engine <- new.env(parent = emptyenv())

# native_own_products() lets the engine compute products and factorisations itself, in vectors of at most `lanes`
# numbers, or by BLAS and LAPACK if `lanes` is 0. It returns the previous setting. The first setting is own_lanes.
own_lanes <- 8L
native_own_products <- function(lanes) .Call(ffi_linalg_own, as.integer(lanes))

# Evaluates `call`, a .Call() that works on n x n matrices, with the products of an optimised BLAS if R has one, in at
# most control$threads threads. The former settings are restored in any case.
with_dense_products <- function(call, control) {
  if (!engine$optimised_blas) return(call)
  before <- .Call(ffi_blas_threads, 0L)
  lanes <- native_own_products(0L)
  on.exit({
    native_own_products(lanes)
    .Call(ffi_blas_threads, before)
  })
  if (control$threads < before) .Call(ffi_blas_threads, control$threads)
  call
}

# Returns block size (rows), threads, memory (bytes minus `used`) for a pass over n rows, from `control` or options.
engine_control <- function(n, control = NULL, used = 0) {
  if (is.null(control)) {
    asked <- list(threads = getOption("pfdtc.threads", 2L), memory = getOption("pfdtc.memory", 2^27),
                  block = getOption("pfdtc.block"))
    check <- function(name, value) control_checks[[name]](value, paste0("pfdtc.", name))
    if (!identical(asked, engine$asked$from)) engine$asked <- list(from = asked, to = Map(check, names(asked), asked))
    control <- engine$asked$to
  }
  # For fewer than 512 rows, threads do not pay off. A forked process that uses libgomp after its parent did would hang.
  threads <- max(1, min(control$threads, n %/% 256))
  if (!is.null(control$block)) threads <- control$threads
  if (!identical(engine$pid, Sys.getpid())) threads <- 1
  block <- if (is.null(control$block)) min(512, ceiling(n / threads)) else control$block
  list(block = as.integer(max(1, min(block, n))), threads = as.integer(threads),
       memory = max(0, as.double(control$memory) - used))
}

# Calls a C entry point. If `doing` is given, a failure is an error whose message begins with this text.
native <- function(entry, ..., doing = NULL) {
  result <- .Call(entry, ...)
  if (is.null(doing)) result else stop_on_status(result, doing)
}

# Returns list(kernel, noise) as the engine reads it. Some entry points read the kernel only.
engine_model <- function(model, kernel = model$kernel) {
  if (is.null(kernel$engine)) kernel <- compile_kernel(kernel)
  list(kernel = if (is.null(kernel$engine$tie)) kernel$engine else engine_kernel(kernel),
       noise = if (missing(model)) 1 else as.double(model$noise))
}

engine_points <- function(z, model, jitter = 0, kernel = model$kernel) {
  c(engine_model(model, kernel), list(z = z, jitter = as.double(jitter)))
}

# Returns a posterior on inducing points z, such as a result of native_posterior(), in the form that the engine reads.
engine_posterior <- function(posterior, z, model, kernel = model$kernel) {
  c(engine_points(z, model, kernel = kernel), posterior[names(posterior) %in% c("L", "C", "beta", "G")])
}

# Returns the rows for the engine, which multiplies them by `scale`, the roots of their weights.
engine_rows <- function(data) list(x = data$x, y = data$y, scale = if (!is.null(data$weights)) sqrt(data$weights))

engine_input <- function(data, n, control) list(rows = engine_rows(data), control = engine_control(n, control))

status_sentence <- function(status) .Call(ffi_status, as.integer(status))

stop_on_status <- function(result, doing) {
  if (result$status != 0L) {
    abort_numerical(sprintf("%s failed: %s.", doing, status_sentence(result$status)), status = result$status)
  }
  result
}

null_if_failed <- function(expr) tryCatch(expr, pfdtc_error_numerical = function(e) NULL)

native_kernel_matrix <- function(kernel, x, z) {
  .Call(ffi_kernel_matrix, engine_model(kernel = kernel), x, z, engine_control(nrow(z)))
}

kernel_diagonal <- function(kernel, x) .Call(ffi_kernel_diagonal, engine_model(kernel = kernel), x)

# Evaluates the objective `name`, such as "pf". Returns list(value, gradient by inducing points z), or the value Inf and
# a `reason` in words. For -ELBO, adds `theta` and `noise`, derivatives by log kernel parameters and log noise.
# `scratch` is an environment that keeps memory for the next evaluation.
native_evaluate <- function(name, aux, z, data, model, jitter, gradient = TRUE, control = NULL, scratch = NULL) {
  to <- engine_points(z, model, jitter)
  result <- .Call(ffi_evaluate, engine_objective(name, aux), to, engine_rows(data),
                  as.integer(gradient), engine_control(nrow(data$x), control, 8 * length(aux$Wt)), scratch$room)
  if (!is.null(scratch) && result$used > length(scratch$room)) scratch$room <- numeric(result$used)
  as_value(result[names(result) != "used"], to)
}

engine_objective <- function(name, aux = NULL) list(name = name, aux = aux, Wt = aux$Wt, share = aux$variance)

# Returns the sums that native_evaluate() needs, over a part of the rows. sums_merge() adds the sums over parts.
native_sums <- function(name, aux, z, data, model, jitter, control = NULL) {
  native(ffi_sums, engine_objective(name, aux), engine_points(z, model, jitter), engine_rows(data),
         engine_control(nrow(data$x), control), doing = "The sums over the rows")
}

# Returns what the rows in `data` add to the gradients by z and theta (log kernel parameters) and to the residual sum of
# squares. With `k_sum`, the sum of k(x, x) over all rows, adds the parts of the gradients that are no sums over rows.
native_gradient <- function(name, aux, z, data, model, jitter, adjoint, k_sum = NULL, control = NULL) {
  to <- engine_points(z, model, jitter)
  as_value(.Call(ffi_gradient, engine_objective(name, aux), to, engine_rows(data), adjoint, k_sum,
                 engine_control(nrow(data$x), control)), to)[c("gradient", "theta", "rss")]
}

sums_merge <- function(a, b) {
  if (!is.null(a$AKA) || !is.null(b$AKA)) stop("internal: sums over pairs of rows do not add up over rows")
  parts <- setdiff(names(a), "status")
  a[parts] <- Map(function(u, v) if (is.null(u)) NULL else if (is.list(u)) sums_merge(u, v) else u + v, a[parts],
                  b[parts])
  a
}

# Returns the engine's `result` for an optimiser; after a failure, the value is Inf and `reason` has the error in words.
# `to` is the model in the engine's form. Converts derivatives by logs of the engine's parameters (`theta`, or `score`
# and `information`) to derivatives by logs of the kernel's parameters.
as_value <- function(result, to = NULL) {
  if (result$status != 0L) return(list(value = Inf, reason = status_sentence(result$status), status = result$status))
  turned <- to$kernel$rotation
  if (length(result$gradient) && !is.null(turned)) { # the engine's derivatives are in rotated coordinates
    own <- seq_len(nrow(turned))
    result$gradient[, own] <- result$gradient[, own, drop = FALSE] %*% t(turned)
  }
  if (length(result$gradient) && !is.null(to$kernel$warp)) { # the engine's derivatives are in warped coordinates
    tables <- matrix(to$kernel$warp, 2L * warp_knots)
    own <- seq_len(warp_knots)
    warp <- list(at = tables[own, , drop = FALSE], to = tables[-own, , drop = FALSE])
    for (j in seq_len(ncol(tables))) result$gradient[, j] <- result$gradient[, j] * warp_at(warp, j, to$z[, j])$slope
  }
  J <- to$kernel$slopes
  if (is.null(J)) return(result)
  if (length(result$theta)) result$theta <- drop(crossprod(J, result$theta))
  if (!length(result$score)) return(result)
  more <- length(result$score) - nrow(J)
  J <- rbind(cbind(J, matrix(0, nrow(J), more)), cbind(matrix(0, more, ncol(J)), diag(1, more)))
  result$score <- drop(crossprod(J, result$score))
  if (!is.null(result$information)) result$information <- crossprod(J, result$information %*% J)
  result
}

# Computes the posterior on inducing points z. If the factorisation of k(z, z) fails, the jitter is multiplied by ten,
# up to `most`. If `fitc`, the noise includes the residual prior variance. Without `rss` one pass is saved.
native_posterior <- function(z, data, model, jitter, most = max(1e-4, jitter), control = NULL, fitc = FALSE,
                             rss = TRUE) {
  native(ffi_posterior, engine_points(z, model, jitter), engine_rows(data), as.double(most), as.integer(fitc),
         as.integer(rss), engine_control(nrow(data$x), control), doing = "The posterior on the inducing points")
}

native_predict <- function(posterior, z, model, x) {
  .Call(ffi_predict, engine_posterior(posterior, z, model), x, engine_control(nrow(x)))
}

native_effect_sums <- function(z, data, model, groupings, jitter, most = max(1e-4, jitter), control = NULL) {
  native(ffi_effect_sums, engine_points(z, model, jitter), groupings, engine_rows(data), as.double(most),
         engine_control(nrow(data$x), control), doing = "The posterior on the inducing points and the levels")
}

# Predicts f with effects of groups at x. If `keep`, also returns features whose products are posterior covariances.
native_effect_predict <- function(posterior, z, model, x, keep = FALSE, control = NULL) {
  .Call(ffi_effect_predict, engine_points(z, model), posterior$groupings, posterior, x, as.integer(keep),
        engine_control(nrow(x), control))
}

native_exact <- function(data, model, control = NULL) {
  control <- engine_control(nrow(data$x), control)
  result <- with_dense_products(native(ffi_exact, engine_model(model), engine_rows(data), data$weights, 0L, control,
                                       doing = "The exact posterior"), control)
  c(result[c("L", "alpha")], list(minus_evidence = result$value))
}

# Returns minus the exact log marginal likelihood and its derivatives. Many calls can share `at`, the engine's input.
native_exact_evidence <- function(data, model, control = NULL, at = engine_input(data, nrow(data$x), control)) {
  to <- if (is.null(model$engine)) engine_model(model) else model$engine
  result <- with_dense_products(.Call(ffi_exact, to, at$rows, data$weights, 1L, at$control), at$control)
  if (is.null(to$kernel$slopes) && result$status == 0L) result else as_value(result, to)
}

native_exact_predict <- function(posterior, x, kernel, x_new, control = NULL) {
  exact <- c(engine_points(x, kernel = kernel), list(L = posterior$L, C = NULL, beta = posterior$alpha))
  at <- .Call(ffi_predict, exact, x_new, engine_control(nrow(x_new), control))
  list(mean = at$mean, variance = at$unexplained)
}

# Returns the row numbers of the s nearest rows of x, nearest first, for each row of `query` or for x[rows, ]. Distances
# are in lengthscales, equal ones ordered by row number. With `rank`, neighbours have lower rank than the row.
native_neighbours <- function(kernel, x, s, query = NULL, rows = NULL, rank = NULL, control = NULL,
                              at = engine_control(if (is.null(rows)) nrow(query) else length(rows), control),
                              to = engine_model(kernel = kernel)) {
  .Call(ffi_neighbours, to, x, as.integer(s), query, if (!is.null(rows)) as.integer(rows),
        if (!is.null(rank)) as.integer(rank), at)
}

# Computes the posterior with neighbours. With `keep`, also returns for each row its variance d given its neighbours,
# and their coefficients u and row numbers (0 if absent). A row is much work, so threads pay off for fewer rows.
native_near <- function(z, data, model, s, rank, jitter, most = max(1e-4, jitter), control = NULL, keep = FALSE) {
  native(ffi_near, engine_points(z, model, jitter), engine_rows(data), as.integer(s), as.integer(rank),
         as.double(most), as.integer(keep), engine_control(16 * nrow(data$x), control),
         doing = "The posterior on inducing points and neighbours")
}

native_near_covariance <- function(near, z, data, model, s, x_new, control = NULL) {
  native(ffi_near_covariance, engine_posterior(near, z, model), engine_rows(data), as.integer(s), x_new,
         engine_control(16 * nrow(x_new), control), doing = "Covariance from neighbours")
}

native_norms <- function(posterior, z, data, model, order, t1_rows, t2_rows, control = NULL) {
  .Call(ffi_norms, engine_posterior(posterior, z, model), engine_rows(data), as.integer(order), as.integer(t1_rows),
        as.integer(t2_rows), engine_control(nrow(data$x), control))
}

blocks_of <- function(v, size) split(v, (seq_along(v) - 1L) %/% size)

# Returns f(x) computed for blocks of rows of x, which saves memory, and joined by `bind`.
in_blocks <- function(x, f, size = 2048L, bind = rbind) {
  do.call(bind, unname(lapply(blocks_of(seq_len(nrow(x)), size), function(i) f(x[i, , drop = FALSE]))))
}

join_lists <- function(...) Map(function(...) c(..., use.names = FALSE), ...)

# Returns list(cross = q'B^{-1} e, gain = e'B^{-1} e, size = e'e) for each row x of x_new, to narrow certified intervals
# of the sd of f(x). e has the residual prior covariances of f(x) with f at the data X, q is k(X, x) - e, and B is the
# covariance of the responses under the DTC approximation.
native_cross <- function(posterior, z, data, model, x_new, control = NULL) {
  posterior <- engine_posterior(posterior, z, model)
  in_blocks(x_new, function(x) {
    .Call(ffi_cross, posterior, engine_rows(data), x, engine_control(nrow(data$x), control))
  }, bind = join_lists)
}

# Returns F v, or F'v if `transpose`. F decorrelates responses from those of neighbours: (F v)_i = (v_i - u_i'v_S) /
# sqrt(d_i). `near` is a result of native_near(keep = TRUE): neighbours S, coefficients u_i and variances d_i.
native_decorrelate <- function(near, v, transpose = FALSE) {
  .Call(ffi_decorrelate, near$u, near$d, near$rows, v, as.integer(transpose))
}

# Returns W^{1/2} K W^{1/2} v for the kernel matrix K at x, W = diag(weights), and a vector or matrix v. If `shares` >
# 1, returns only part number `share`; the product is the sum of the parts 1, ..., `shares`.
native_kernel_matvecs <- function(kernel, x, weights, v, control = NULL, share = 1L, shares = 1L) {
  root <- if (is.null(weights)) 1 else sqrt(weights)
  Kv <- root * .Call(ffi_kernel_matvecs, engine_model(kernel = kernel), engine_rows(list(x = x)), as.matrix(root * v),
                     as.integer(share) - 1L, as.integer(shares), engine_control(nrow(x), control))
  if (is.matrix(v)) Kv else drop(Kv)
}

native_kernel_cross_matvec <- function(kernel, x, u, x_new, control = NULL) {
  .Call(ffi_kernel_cross_matvec, engine_model(kernel = kernel), x, u, x_new, engine_control(nrow(x_new), control))
}

# Returns list(Ay = A y, beta, yy = |y|^2, rss = |y - A'beta|^2, v = (y - A'beta) / s2) of the posterior on inducing
# points z, if y = data$y replaces its responses. A is L^{-1} k(z, X), L L' is k(z, z), s2 is the noise variance, and
# beta is the mean of L^{-1} f(z). `whiten` = FALSE is faster, and accurate enough for preconditioning.
native_response <- function(posterior, z, data, model, whiten = TRUE, control = NULL) {
  .Call(ffi_response, engine_posterior(posterior, z, model), engine_rows(data), as.integer(whiten),
        engine_control(nrow(data$x), control))
}

# Returns the Vecchia log likelihood of y. Its terms are multiplied by `times`. Also returns derivatives by the logs of
# kernel parameters and noise, and by the coefficients of a trend in the log noise variance with the columns `basis`.
# data$weights include the trend. Without `slopes` it returns `residual`, y minus its mean given neighbours, and
# `variance`. With `slopes` = 2, the expected information is estimated from a quarter of the terms.
native_vecchia <- function(data, model, rows, neighbours, times = rep(1, length(rows)), slopes = TRUE, control = NULL,
                           basis = matrix(0, nrow(data$x), 0L), at = engine_input(data, length(rows), control)) {
  to <- if (is.null(model$engine)) engine_model(model) else model$engine
  result <- .Call(ffi_vecchia, to, at$rows, data$weights, basis, rows, neighbours, times, as.integer(slopes),
                  at$control)
  if (is.null(to$kernel$slopes) && result$status == 0L) result else as_value(result, to)
}

# Computes the Laplace or variational approximation on inducing points z. `sites` is a result of engine_sites(), `start`
# a result of an earlier call. The log marginal likelihood is that before the penalty for residual prior variances is
# subtracted. With `want` = 1 the result also has this `penalty`, with 2 also the gradient.
native_laplace <- function(z, x, sites, kernel, jitter, start = list(), want = 0L,
                           enough = if (sites$variational) 1e-7 else 1e-9, maxit = 100L, control = NULL) {
  to <- engine_points(z, jitter = jitter, kernel = kernel)
  result <- .Call(if (is.null(sites$contrasts)) ffi_laplace else ffi_softmax, to, x, sites,
                  list(beta = start$beta, G = start$G, C = start$C),
                  list(enough = enough, maxit = as.integer(maxit), most_jitter = max(1e-4, jitter)), as.integer(want),
                  engine_control(nrow(x), control))
  if (!is.null(result$probability)) result$probability <- t(result$probability)
  if (result$status == 0L) as_value(result, to) else result
}

# Returns list(mean, S, left) of C'f at x, where f are the latent functions of the classes and C orthonormal contrasts.
# The mean is `beta` times the features of x. S is the posterior covariance without the residual prior variance `left`.
native_softmax_at <- function(factors, z, kernel, x, control = NULL, beta = factors$beta) {
  control <- engine_control(nrow(x), control)
  .Call(ffi_softmax_at, engine_points(z, kernel = kernel), factors$L, beta, factors$inverse, x, control)
}

# Returns four rows for latent values f, offsets included: log p(y | f), its derivative, minus its second derivative,
# and its third derivative in f.
native_likelihood <- function(sites, f) .Call(ffi_sites, sites, f)

# Returns the kernel in the engine's form with `slopes`, the derivatives of the logs of the engine's parameters by the
# logs of the kernel's parameters. Unknown parameters count as 1.
engine_kernel <- function(kernel) {
  engine <- kernel$engine
  tie <- engine$tie
  values <- replace(engine$values, is.na(engine$values), 1)
  n <- length(values)
  logs <- log(values)
  slopes <- tie$M[, seq_len(n), drop = FALSE]
  of_weights <- NULL
  for (i in seq_len(nrow(tie$weights))) {
    at <- tie$weights[i, 1:2]
    G <- tie$weights[[i, 3L]]
    odds <- c(0, values)[at + 1L]
    S <- 1 + sum(odds)
    logs <- c(logs, log(c(1, odds / c(G, max(G * (G - 1) / 2, 1)))) - log(S))
    known <- which(at > 0L)
    rows <- matrix(0, 3L, n)
    rows[, at[known]] <- rbind(0, diag(2L))[, known] - rep(odds[known] / S, each = 3L)
    of_weights <- rbind(of_weights, rows)
  }
  if (!is.null(of_weights)) slopes <- slopes + tie$M[, -seq_len(n)] %*% of_weights
  logs[is.infinite(logs)] <- 0 # a kernel without pairs of inputs gives them the weight 0
  list(factors = engine$factors, terms = engine$terms, values = exp(drop(tie$M %*% logs)), slopes = slopes,
       rotation = engine$rotation, warp = engine$warp)
}
