#' @export
inducing_points <- function(x, m, kernel, method = c("greedy", "random", "kmeans", "divergence"), y = NULL,
                            noise = NULL, weights = NULL) {
  x <- check_matrix(x, "x")
  if (!nrow(x)) abort_input("x", "without rows", "of at least one row")
  m <- check_points(m, nrow(x))
  method <- check_choice(method, point_methods, "method")
  if (missing(kernel) && method != "random") abort_input("kernel", "missing", "a kernel with lengthscales and variance")
  kernel <- if (missing(kernel)) NULL else complete_kernel(kernel, x)
  toward <- if (method == "divergence") {
    c(check_rows(x, y, weights)[c("y", "weights")], list(noise = check_positive(noise, "noise", 1L)))
  }
  chosen <- choose_points(x, m, kernel, method, toward = toward)
  structure(chosen$z, t = chosen$t)
}

point_methods <- c("greedy", "random", "kmeans", "divergence")

# Returns list(z, rows, t); `rows` are row numbers if the points are rows. For "divergence", `toward` is list(y,
# weights, noise).
choose_points <- function(x, m, kernel, method, memory = getOption("pfdtc.memory", 2^27), toward = NULL,
                          control = NULL) {
  switch(method,
         divergence = choose_guided(x, m, kernel, toward, memory, control),
         greedy = choose_greedy(x, m, kernel, memory),
         random = {
           rows <- distinct_rows(x, sample.int(nrow(x)), m)
           list(z = x[rows, , drop = FALSE], rows = rows)
         },
         kmeans = list(z = choose_kmeans(x, m, kernel)))
}

# Returns the numbers 1 to n, or at most `most` of them drawn at random, in their order.
some_of <- function(n, most) if (n > most) sort(sample.int(n, floor(most))) else seq_len(n)

# Chooses points by pivoted Cholesky, which holds N x m numbers. Beyond 20 m rows the points come from random rows;
# `memory` decides how many.
choose_greedy <- function(x, m, kernel, memory = getOption("pfdtc.memory", 2^27)) {
  looked <- some_of(nrow(x), max(20 * m, memory / (8 * m)))
  pool <- if (length(looked) < nrow(x)) x[looked, , drop = FALSE] else x
  # each step adds errors of a few eps * k; a residual variance below m such errors is rounding
  chosen <- native(ffi_select, engine_model(kernel = kernel), pool, as.integer(m), 4 * m * .Machine$double.eps)
  rows <- looked[chosen$pivots]
  list(z = x[rows, , drop = FALSE], rows = rows, t = chosen$t, looked = nrow(pool))
}

# Chooses rows greedily by how much each reduces the pF divergence, to first order tr((k^ + r r') E) with the residual
# r. k^, r and K come from landmarks, greedy points on 10 m rows or 1,000. In their coordinates V = L^{-1} k(U, X), row
# i reduces it by v_i'P v_i / v_i'v_i, P = V (k^ + r r') V'. v_i is the residual of column i after the rows before it.
choose_guided <- function(x, m, kernel, toward, memory, control) {
  n <- nrow(x)
  # memory for three blocks of landmarks by rows
  room <- min(max(10 * m, 1000), max(2 * m, 1000, memory / (24 * (m + 100))))
  looked <- some_of(n, room)
  pool <- x[looked, , drop = FALSE]
  landmarks <- choose_greedy(pool, min(length(looked), m + 100), kernel, Inf)$rows
  u <- pool[landmarks, , drop = FALSE]
  noise <- toward$noise
  post <- native_posterior(u, list(x = pool, y = toward$y[looked], weights = toward$weights[looked]),
                           new_model(kernel, noise), jitter = 0, control = control)
  V <- forwardsolve(post$L, native_kernel_matrix(kernel, u, pool))
  # V k^ V' = s2 G (s2 I + G)^{-1} G, V r = s2 beta
  P <- noise * crossprod(forwardsolve(post$C, post$G)) + noise^2 * tcrossprod(post$beta)
  least <- 4 * m * .Machine$double.eps * max(kernel_diagonal(kernel, pool))
  rows <- native(ffi_select_guided, V, P, as.integer(min(m, length(looked))), least)
  list(z = pool[rows, , drop = FALSE], rows = looked[rows])
}

# Returns the first m rows in this order that differ from all before.
distinct_rows <- function(x, order, m) {
  take <- min(length(order), 2L * m)
  repeat {
    head <- order[seq_len(take)]
    new <- head[!duplicated(x[head, , drop = FALSE])]
    if (length(new) >= m || take == length(order)) return(utils::head(new, m))
    take <- min(length(order), 2L * take)
  }
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
    # after iter.max steps the centres are good enough to start from
    centers <- suppressWarnings(stats::kmeans(u, u[start, , drop = FALSE], iter.max = 30, algorithm = "Lloyd"))$centers
    lost <- !is.finite(rowSums(centers)) # an empty cluster goes back to its start
    centers[lost, ] <- u[start[lost], ]
  }
  z <- sweep(centers, 2L, scale, "*")
  dimnames(z) <- list(NULL, colnames(x))
  z
}

# Returns the rows of a reference's points, chosen among at most 20 m2 random rows.
reference_rows <- function(data, kernel, m2) choose_greedy(data$x, m2, kernel, memory = 0)$rows
