# The only file with .Call. A wrapper converts R values to arguments of a C entry point, and a status to a condition, or
# to a value with a reason for the optimiser. src/ffi.h documents what the entry points return.

engine <- new.env(parent = emptyenv())

start_engine <- function() {
  engine$pid <- Sys.getpid()
  engine$optimised_blas <- blas_is_optimised()
  native_own_products(own_lanes)
}

# Lets the engine compute products, solves and factors itself, in vectors of at most `lanes` numbers. 0: by BLAS and
# LAPACK. Returns the previous value.
own_lanes <- 8L
native_own_products <- function(lanes) .Call(ffi_linalg_own, as.integer(lanes))

# Evaluates the .Call() of a C entry point that works on n x n matrices. An optimised BLAS does the products, with at
# most `control$threads` threads. The settings are restored however the call ends.
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

# Returns TRUE if the name of the BLAS is one of the optimised ones. R's own and the reference BLAS are six times slower
# than the engine.
blas_is_optimised <- function() {
  grepl("openblas|mkl|blis|accelerate|veclib|armpl|flexiblas|atlas|essl", unname(extSoftVersion()["BLAS"]),
        ignore.case = TRUE)
}

# Returns block size, threads and memory for a pass over n rows. Without a pfdtc_control() the options decide. `used`:
# bytes of the memory that are already taken.
engine_control <- function(n, control = NULL, used = 0) {
  if (is.null(control)) {
    block <- getOption("pfdtc.block")
    control <- list(
      threads = check_count(getOption("pfdtc.threads", 2L), "pfdtc.threads"),
      memory = check_at_least_0(getOption("pfdtc.memory", 2^27), "pfdtc.memory"),
      block = if (!is.null(block)) check_count(block, "pfdtc.block"))
  }
  # a thread is worth its start for some hundred rows; libgomp hangs in a forked child of a process that has used it
  threads <- max(1, min(control$threads, n %/% 256))
  if (!is.null(control$block)) threads <- control$threads
  if (!identical(engine$pid, Sys.getpid())) threads <- 1
  block <- if (is.null(control$block)) min(512, ceiling(n / threads)) else control$block
  list(block = as.integer(max(1, min(block, n))), threads = as.integer(threads),
       memory = max(0, as.double(control$memory) - used))
}

# `model` is list(kernel, noise, ...), `data` is list(x, y, weights, ...). Some C entry points read the kernel only.
engine_model <- function(model, jitter = 0, kernel = model$kernel) {
  if (is.null(kernel$engine)) kernel <- compile_kernel(kernel)
  list(kernel = if (is.null(kernel$engine$tie)) kernel$engine else engine_kernel(kernel),
       noise = if (missing(model)) 1 else as.double(model$noise), jitter = as.double(jitter))
}

engine_points <- function(z, model, jitter = 0) c(engine_model(model, jitter), list(z = z))

# `posterior` is the result of native_posterior(), native_near(), native_laplace() or native_exact() at these points.
engine_posterior <- function(posterior, z, model) {
  c(engine_points(z, model), posterior[names(posterior) %in% c("L", "C", "beta", "G", "alpha")])
}

# Returns rows with `scale`, the roots of their weights. Rows multiplied by `scale` are rows of weight 1.
engine_rows <- function(data) {
  list(x = data$x, y = data$y, scale = if (!is.null(data$weights)) sqrt(data$weights))
}

# Returns a model for C entry points that read the kernel only.
of_kernel <- function(kernel) list(kernel = kernel, noise = 1)

status_sentence <- function(status) .Call(ffi_status, as.integer(status))

# Raises a condition if the status is a failure.
stop_on_status <- function(result, doing) {
  if (result$status != 0L) {
    abort_numerical(sprintf("%s failed: %s.", doing, status_sentence(result$status)), status = result$status)
  }
  result
}

native_kernel_matrix <- function(kernel, x, z, control = NULL) {
  .Call(ffi_kernel_matrix, engine_model(kernel = kernel), x, z, engine_control(nrow(z), control))
}

# Returns k(x, x) at the rows of x.
kernel_diagonal <- function(kernel, x) .Call(ffi_kernel_diagonal, engine_model(kernel = kernel), x)

# Returns d k(x, z) / d z_column, nrow(x) x nrow(z).
native_kernel_slopes <- function(kernel, x, z, column) {
  .Call(ffi_kernel_slopes, engine_model(kernel = kernel), x, z, as.integer(column))
}

# Returns list(prior, size): the variance of the slope of f in that column, and the scale of its rounding error.
native_slope_variance <- function(kernel, x, column) {
  .Call(ffi_slope_variance, engine_model(kernel = kernel), x, as.integer(column))
}

# Evaluates the objective of this name (objective.c): list(value, gradient, reason). A failed evaluation has the value
# Inf and a reason. `theta` and `noise` are the gradient of -ELBO in the logs of the kernel's parameters and of the
# noise. `scratch` is an environment whose memory the next evaluation uses again; the engine writes to it.
native_evaluate <- function(name, aux, z, data, model, jitter, gradient = TRUE, control = NULL, scratch = NULL) {
  result <- .Call(ffi_evaluate, engine_objective(name, aux), engine_points(z, model, jitter), engine_rows(data),
                  as.integer(gradient), engine_control(nrow(data$x), control, 8 * length(aux$Wt)), scratch$room)
  if (!is.null(scratch) && result$used > length(scratch$room)) scratch$room <- numeric(result$used)
  as_value(tied_slopes(model$kernel, result[names(result) != "used"]))
}

engine_objective <- function(name, aux = NULL) list(name = name, aux = aux, Wt = aux$Wt, share = aux$variance)

# Computes the sums of the objective of native_evaluate(), for rows that come in parts. sums_merge() adds them.
native_sums <- function(name, aux, z, data, model, jitter, control = NULL) {
  stop_on_status(.Call(ffi_sums, engine_objective(name, aux), engine_points(z, model, jitter), engine_rows(data),
                       engine_control(nrow(data$x), control)), "The sums over the rows")
}

native_objective <- function(name, aux, z, sums, model, jitter, rss = NULL) {
  as_value(.Call(ffi_objective, engine_objective(name, aux), engine_points(z, model, jitter), sums, rss))
}

native_gradient <- function(name, aux, z, data, model, jitter, adjoint, k_sum = NULL, control = NULL) {
  as_value(tied_slopes(model$kernel, .Call(
    ffi_gradient, engine_objective(name, aux), engine_points(z, model, jitter), engine_rows(data), adjoint, k_sum,
    engine_control(nrow(data$x), control))))
}

native_posterior_of_sums <- function(z, sums, model, jitter) {
  stop_on_status(.Call(ffi_posterior_of_sums, engine_points(z, model, jitter), sums),
                 "The posterior on the inducing points")
}

# Adds the sums of two sets of rows. Both were made with the same model, points and objective.
sums_merge <- function(a, b) {
  if (!is.null(a$AKA) || !is.null(b$AKA)) stop("internal: sums over pairs of rows do not add up over rows")
  parts <- setdiff(names(a), "status")
  a[parts] <- Map(function(u, v) if (is.null(u)) NULL else u + v, a[parts], b[parts])
  a
}

as_value <- function(result) {
  if (result$status != 0L) {
    return(list(value = Inf, reason = status_sentence(result$status), status = result$status))
  }
  result
}

native_pf_divergence <- function(z, data, model, aux, jitter) {
  as_value(.Call(ffi_pf_divergence, engine_points(z, model, jitter), engine_rows(data), aux,
                 engine_control(nrow(data$x))))
}

native_pf_constant <- function(data, model, aux) {
  .Call(ffi_pf_constant, engine_model(model), engine_rows(data), aux, engine_control(nrow(data$x)))
}

native_lowrank_rows <- function(aux, data) {
  .Call(ffi_lowrank_rows, engine_model(kernel = aux$model$kernel), aux, engine_rows(data),
        engine_control(nrow(data$x)))
}

# Computes the posterior. Raises the jitter by factors of ten from `jitter` to `most` until the factorisation works.
# `fitc`: with FITC's noise.
native_posterior <- function(z, data, model, jitter, most = max(1e-4, jitter), control = NULL, fitc = FALSE) {
  result <- .Call(ffi_posterior, engine_points(z, model, jitter), engine_rows(data), as.double(most), if (fitc) "fitc",
                  engine_control(nrow(data$x), control))
  stop_on_status(result, "The posterior on the inducing points")
}

native_predict <- function(posterior, z, model, x) {
  .Call(ffi_predict, engine_posterior(posterior, z, model), x, engine_control(nrow(x)))
}

native_covariance <- function(posterior, z, model, x, sor = FALSE) {
  .Call(ffi_covariance, engine_posterior(posterior, z, model), x, as.integer(sor))
}

native_effect_sums <- function(z, data, model, groupings, jitter, most = max(1e-4, jitter), control = NULL) {
  stop_on_status(.Call(ffi_effect_sums, engine_points(z, model, jitter), groupings, engine_rows(data), as.double(most),
                       engine_control(nrow(data$x), control)), "The posterior on the inducing points and the levels")
}

native_eliminate <- function(m, columns, groupings, sums, noise, control = NULL) {
  .Call(ffi_eliminate, m, columns, groupings, sums, as.double(noise), engine_control(groupings[[1L]]$levels, control))
}

native_effect_solve <- function(m, columns, groupings, posterior, noise, control = NULL) {
  .Call(ffi_effect_solve, m, columns, groupings, posterior, noise, engine_control(ncol(posterior$U), control))
}

# Does what native_vecchia() does with all effects integrated out. V and b are the effects' covariance and mean.
native_integrated <- function(data, model, groupings, rows, neighbours, slopes, at, basis) {
  result <- .Call(ffi_integrated, engine_model(model), groupings, at$rows, data$weights, basis, rows, neighbours,
                  as.integer(slopes), at$control)
  if (result$status != 0L) as_value(result) else tied_slopes(model$kernel, result)
}

# `keep` = TRUE also returns the features whose products are covariances.
native_effect_predict <- function(posterior, z, model, x, keep = FALSE, control = NULL) {
  .Call(ffi_effect_predict, engine_points(z, model), posterior$groupings, posterior, x, as.integer(keep),
        engine_control(nrow(x), control))
}

native_exact <- function(data, model, control = NULL) {
  control <- engine_control(nrow(data$x), control)
  result <- with_dense_products(
    .Call(ffi_exact, engine_model(model), engine_rows(data), data$weights, control), control)
  stop_on_status(result, "The exact posterior")
}

native_exact_evidence <- function(data, model, control = NULL) {
  control <- engine_control(nrow(data$x), control)
  as_value(tied_slopes(model$kernel, with_dense_products(
    .Call(ffi_exact_evidence, engine_model(model), engine_rows(data), data$weights, control), control)))
}

native_exact_predict <- function(posterior, x, kernel, x_new) {
  .Call(ffi_exact_predict, engine_posterior(posterior, x, of_kernel(kernel)), x_new, engine_control(nrow(x_new)))
}

native_exact_covariance <- function(posterior, x, kernel, x_new) {
  .Call(ffi_exact_covariance, engine_posterior(posterior, x, of_kernel(kernel)), x_new)
}

# Returns the s nearest rows of x, nearest first, by the kernel's distance; the row number breaks ties. The queries are
# the rows of `query`, or `rows` of x.
native_neighbours <- function(kernel, x, s, query = NULL, rows = NULL, rank = NULL, control = NULL) {
  n <- if (is.null(rows)) nrow(query) else length(rows)
  .Call(ffi_neighbours, engine_model(kernel = kernel), x, as.integer(s), query, if (!is.null(rows)) as.integer(rows),
        if (!is.null(rank)) as.integer(rank), engine_control(n, control))
}

# A row with its neighbours takes more work than a row alone, so that fewer rows are worth a thread.
near_control <- function(n, control) engine_control(16 * n, control)

# If `keep` is TRUE, also returns u and d of every row, and the numbers of the rows that u refers to (0: none), with a
# column for each row.
native_near <- function(z, data, model, s, rank, jitter, most = max(1e-4, jitter), control = NULL, keep = FALSE) {
  result <- .Call(ffi_near, engine_points(z, model, jitter), engine_rows(data), as.integer(s), as.integer(rank),
                  as.double(most), as.integer(keep), near_control(nrow(data$x), control))
  stop_on_status(result, "The posterior on inducing points and near rows")
}

# `near` is the result of native_near(keep = 2L), which also returns r.
native_near_effects <- function(near, data, model, groupings, control = NULL) {
  control <- engine_control(nrow(data$x), control)
  .Call(ffi_near_effects, engine_model(model), groupings, engine_rows(data), near, control)
}

# Returns sum_l V_l'V_l (level_products() in src/effects.h); `start` and `column` count from 1.
native_level_products <- function(V, start, column, size) .Call(ffi_level_products, V, start, column, as.integer(size))

# Returns C C' = I + A, x = (I + A)^{-1} b, and the inverse if asked.
native_factor <- function(A, b, inverse = FALSE) {
  stop_on_status(.Call(ffi_factor, A, as.double(b), as.integer(inverse)), "The Cholesky factorisation")
}

# Returns list(mean, var_near, var_far) of f at the rows of x_new, each given its s nearest rows. `given` has other
# neighbours: list(rows), s x n, 0 behind the last. With also cross [s, n], features [M, n] and prior [n], these
# functionals take the place of f at the rows. `keep` = TRUE also returns u, for rows times the roots of their weights,
# the numbers of these rows, and r.
native_near_predict <- function(near, z, data, model, s, x_new, control = NULL, keep = FALSE, given = NULL) {
  result <- .Call(ffi_near_predict, engine_posterior(near, z, model), engine_rows(data), as.integer(s), x_new, given,
                  as.integer(keep), near_control(nrow(x_new), control))
  stop_on_status(result, "Prediction from near rows")
}

native_near_covariance <- function(near, z, data, model, s, x_new, control = NULL) {
  result <- .Call(ffi_near_covariance, engine_posterior(near, z, model), engine_rows(data), as.integer(s), x_new,
                  near_control(nrow(x_new), control))
  stop_on_status(result, "Covariance from near rows")
}

native_select <- function(x, m, kernel, tolerance) {
  .Call(ffi_select, engine_model(kernel = kernel), x, as.integer(m), as.double(tolerance))
}

native_row_features <- function(x, n_features) .Call(ffi_row_features, x, as.integer(n_features))

native_select_guided <- function(V, P, m, least) .Call(ffi_select_guided, V, P, as.integer(m), as.double(least))

native_norms <- function(posterior, z, data, model, order, t1_rows, t2_rows, control = NULL) {
  .Call(ffi_norms, engine_posterior(posterior, z, model), engine_rows(data), as.integer(order), as.integer(t1_rows),
        as.integer(t2_rows), engine_control(nrow(data$x), control))
}

native_certify <- function(posterior, z, model, norms, x, crossing = NULL) {
  .Call(ffi_certify, engine_posterior(posterior, z, model), norms_to_engine(norms), x, crossing,
        engine_control(nrow(x)))
}

# Certifies linear functionals by their features (functionals.R).
native_certify_features <- function(posterior, z, model, norms, A, prior, size) {
  .Call(ffi_certify_features, engine_posterior(posterior, z, model), norms_to_engine(norms), A, prior, size)
}

native_certify_kriged <- function(posterior, z, model, norms, n_terms, sum_w, sums) {
  .Call(ffi_certify_kriged, engine_posterior(posterior, z, model), norms_to_engine(norms), as.integer(n_terms),
        as.double(sum_w), lapply(sums, as.double))
}

# Returns norms for the engine. Norms of older fits lack the largest k(x, x) at the rows, for which 0 stands.
norms_to_engine <- function(norms) {
  if (is.null(norms$most)) norms$most <- 0
  norms
}

# Takes 2,048 rows of x_new at a time to limit the memory.
native_cross <- function(posterior, z, data, model, x_new, control = NULL) {
  posterior <- engine_posterior(posterior, z, model)
  parts <- lapply(split(seq_len(nrow(x_new)), (seq_len(nrow(x_new)) - 1L) %/% 2048L), function(i) {
    .Call(ffi_cross, posterior, engine_rows(data), x_new[i, , drop = FALSE], engine_control(nrow(data$x), control))
  })
  list(cross = unlist(lapply(parts, `[[`, "cross")), gain = unlist(lapply(parts, `[[`, "gain")),
       size = unlist(lapply(parts, `[[`, "size")))
}

native_kriging <- function(posterior, z, data, model, norms, x_new, start, near, rows, control = NULL) {
  .Call(ffi_kriging, engine_posterior(posterior, z, model), norms_to_engine(norms), engine_rows(data), x_new,
        as.integer(start), as.integer(near), rows, engine_control(nrow(data$x), control))
}

# `near` is the result of native_near(keep = TRUE).
native_decorrelate <- function(near, v, transpose = FALSE) {
  .Call(ffi_decorrelate, near$u, near$d, near$rows, v, as.integer(transpose))
}

# Returns K v over all pairs of rows of x, with the roots of the weights on both sides. v is a vector or a matrix. The
# results for `share` = 1, ..., `shares` add up to the whole.
native_kernel_matvecs <- function(kernel, x, weights, v, control = NULL, share = 1L, shares = 1L) {
  root <- if (is.null(weights)) 1 else sqrt(weights)
  Kv <- root * .Call(ffi_kernel_matvecs, engine_model(kernel = kernel), engine_rows(list(x = x)), as.matrix(root * v),
                     as.integer(share) - 1L, as.integer(shares), engine_control(nrow(x), control))
  if (is.matrix(v)) Kv else drop(Kv)
}

native_kernel_cross_matvec <- function(kernel, x, u, x_new, control = NULL) {
  .Call(ffi_kernel_cross_matvec, engine_model(kernel = kernel), x, u, x_new, engine_control(nrow(x_new), control))
}

# `whiten` = TRUE computes as the posterior's own sums; FALSE is accurate enough for a preconditioner.
native_response <- function(posterior, z, data, model, whiten = TRUE, control = NULL) {
  .Call(ffi_response, engine_posterior(posterior, z, model), engine_rows(data), as.integer(whiten),
        engine_control(nrow(data$x), control))
}

# Parameters are the logs of the kernel's, the log noise, and coefficients of the columns of `basis` in the log noise of
# a row, which the weights include. The density is for y, not for sqrt(w) y.
# `at`: vecchia_input(), made once for many evaluations. Without slopes the result also has `residual`, y less its mean
# given the neighbours, and `variance`. With `slopes` 2 the information is an estimate from every fourth of 16 rows.
native_vecchia <- function(data, model, rows, neighbours, times = rep(1, length(rows)), slopes = TRUE, control = NULL,
                           basis = matrix(0, nrow(data$x), 0L), at = vecchia_input(data, length(rows), control)) {
  kernel <- model$kernel
  if (is.null(kernel$engine)) kernel <- compile_kernel(kernel)
  tied <- !is.null(kernel$engine$tie)
  model <- list(kernel = if (tied) engine_kernel(kernel) else kernel$engine, noise = as.double(model$noise), jitter = 0)
  result <- .Call(ffi_vecchia, model, at$rows, data$weights, basis, rows, neighbours, times, as.integer(slopes),
                  at$control)
  if (result$status != 0L) return(as_value(result))
  if (tied) tied_slopes(kernel, result) else result
}

vecchia_input <- function(data, n, control) list(rows = engine_rows(data), control = engine_control(n, control))

# Computes Laplace's or the variational approximation on z (ffi.h). `sites` is the result of engine_sites(), `start`
# that of an earlier call. `want` is 0 for the mode, 1 for the penalised evidence, 2 for its gradient too.
native_laplace <- function(z, x, sites, kernel, jitter, start = list(), want = 0L,
                           enough = if (sites$variational) 1e-7 else 1e-9, maxit = 100L, most = max(1e-4, jitter),
                           control = NULL) {
  tied_slopes(kernel, .Call(
    if (is.null(sites$contrasts)) ffi_laplace else ffi_softmax, engine_points(z, of_kernel(kernel), jitter), x, sites,
    list(beta = start$beta, G = start$G),
    list(enough = enough, maxit = as.integer(maxit), most_jitter = as.double(most)), as.integer(want),
    engine_control(nrow(x), control)))
}

# Returns list(mean, S, left) of the contrasts of classes at x for the weights beta (M x q): S is the covariance that
# rows can reduce, `left` the rest of the variance.
native_softmax_at <- function(factors, z, kernel, x, control = NULL, beta = factors$beta) {
  control <- engine_control(nrow(x), control)
  .Call(ffi_softmax_at, engine_points(z, of_kernel(kernel)), factors$L, beta, factors$inverse, x, control)
}

native_forms <- function(posterior, z, kernel, P, x, control = NULL) {
  .Call(ffi_forms, engine_posterior(posterior, z, of_kernel(kernel)), P, x, engine_control(nrow(x), control))
}

native_paths <- function(posterior, z, kernel, x, sites, U, control = NULL) {
  .Call(ffi_paths, engine_posterior(posterior, z, of_kernel(kernel)), x, sites, U, engine_control(nrow(x), control))
}

# Returns log p, its slope, minus its curvature and its third derivative at f (offset included), in four rows.
native_likelihood <- function(sites, f) .Call(ffi_sites, sites, f)
