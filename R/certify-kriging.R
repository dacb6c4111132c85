# Certifies by local kriging. For any weights w on the rows, with J(w) = k(x,x) - 2 w'k_x + w'(K + s2 I) w and
# h = k_x - (K + s2 I) w,
#   exact variance = J - |h|^2 in the norm of (K + s2 I)^{-1},
#   exact mean     = k_x'v + w'r + h'(K + s2 I)^{-1} r,     r = y - (K + s2 I) v, any v.
# Kriging weights on the nearest neighbours of x make h small. They are sparse, so that J and h need no pairs of all
# rows. certify.h has the bounds on the norms and the rounding.

# Returns the number of neighbours of a group of rows. The option 0, for tests, turns off kriging and the exact
# posterior.
kriging_rows <- function() getOption("pfdtc.kriging_rows", 400L)

# Divides the rows of x into groups of at most `most` neighbours. Returns list(order, start): group i begins at
# order[start[i] + 1].
near_groups <- function(kernel, x, most) {
  u <- sweep(x, 2L, kernel_lengths(kernel, ncol(x)), "/")
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

# Returns a matrix with a column for each group: the n_c rows of the data that rank first as neighbours of its members.
shared_rows <- function(kernel, data, x, groups, n_c, control) {
  n <- nrow(data$x)
  if (n_c == n) return(matrix(seq_len(n), n, length(groups$start) - 1L))
  near <- native_neighbours(kernel, data$x, n_c, query = x[groups$order, , drop = FALSE], control = control)
  rows <- vapply(seq_len(length(groups$start) - 1L), function(i) {
    own <- near[, (groups$start[i] + 1L):groups$start[i + 1L], drop = FALSE]
    unique(c(t(own)))[seq_len(n_c)]
  }, integer(n_c))
  matrix(rows, n_c)
}

# Returns kriging weights of functionals and the bounds that follow, in the reference's scale: list(fun, order, group,
# rows, k, n_terms, W, J, q, ww, var_lower, var_upper). Column i of W has the weights of the data's rows[, group[i]] for
# value order[i] of f. Each functional of another kind is a group of its own: its neighbours are those of its rows, and
# `k` has its covariances with the rows.
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
                  norms_to_engine(reference$norms), engine_rows(data), x[groups$order, , drop = FALSE], of,
                  as.integer(groups$start), near, matrix(match(rows, near), n_c),
                  engine_control(nrow(data$x), reference$control))
  c(list(fun = fun, order = groups$order, group = rep(seq_len(ncol(rows)), diff(groups$start)), rows = rows,
         k = of$cross, n_terms = n_c + sum(of$terms)), found)
}

# Returns intervals of the exact mean and sd, in units of y, from the result of krige(). `sd_lower` is a lower bound on
# the exact sd. In the norm of (K + s2 I)^{-1}, |h|^2 = J - exact variance. With a correction,
#   |exact mean - (k'v + w'r)| <= |h| |r|, both in that norm, |r|^2 <= c_r,
# up to rounding in r, in k'v and in w'r.
kriged_interval <- function(found, reference, correction, data, sd_lower = 0) {
  model <- model_of(reference)
  fun <- found$fun
  at <- found$order
  out <- list(mean_lower = rep(-Inf, fun$n), mean_upper = rep(Inf, fun$n),
              sd_lower = in_units(model, sqrt(found$var_lower)), sd_upper = in_units(model, sqrt(found$var_upper)))
  r <- correction$residual
  if (!is.null(r)) {
    eps <- .Machine$double.eps
    error <- correction$error
    n_c <- found$n_terms
    u <- root_weights(data) * correction$v
    known <- if (is.null(found$k)) {
      native_kernel_cross_matvec(model$kernel, data$x, u, fun$x, reference$control)[at]
    } else {
      sum(found$k * u)
    }
    mean <- known + kriged_sums(found, r)
    rr <- kriged_sums(replace(found, "W", 1), r^2)
    size <- if (fun$kind == "values") prior_at(model, fun$x)[at] else fun$size
    h <- sqrt(kriged_h2(found, (rep_len(sd_lower, fun$n)[at] / model$scale)^2 * (1 - 8 * eps)))
    half <- h * (sqrt(correction$norms$c) + error$residual / sqrt(model$noise)) + sqrt(size) * error$sum +
      sqrt(found$ww) * error$residual + (4 * sqrt(n_c) + n_c / 64) * eps * sqrt(found$ww * rr) + 4 * eps * abs(mean)
    half <- half * (1 + 1e-14)
    out[c("mean_lower", "mean_upper")] <- list(in_units(model, mean - half), in_units(model, mean + half))
  }
  lapply(out, function(v) replace(numeric(fun$n), at, v))
}

# Returns an upper bound on |h|^2 in the norm of (K + s2 I)^{-1}: q, or J minus a lower bound on the exact variance.
kriged_h2 <- function(found, var_lower = 0) {
  pmin(found$q, pmax(found$J - pmax(found$var_lower, var_lower), 0) + 8 * .Machine$double.eps * found$J)
}

# Returns w'r for each row of x.
kriged_sums <- function(found, r) {
  colSums(found$W * matrix(r[found$rows], nrow(found$rows))[, found$group, drop = FALSE])
}

# Returns the size of groups that share neighbours. It grows with the number of rows.
group_for <- function(n) max(1, min(16, n %/% 64))

# Returns how many of n rows a call of the engine can krige in the seconds left: at most 1,024, or 0 if there is no time
# for 64. Every call computes A for all rows of the data.
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

# Estimates the seconds for `flops` of a matrix product and a number of kernel values. The speed is measured once in a
# session, which takes some milliseconds.
seconds_for <- function(fit, flops, kernel_values = 0) {
  kernel <- fit$kernel
  threads <- engine_control(65536L, fit$control)$threads
  profiles <- vapply(as_sum(kernel)$leaves, `[[`, "", "profile")
  key <- paste(paste(profiles, collapse = " "), length(kernel$inputs), threads)
  if (is.null(engine$speed[[key]])) {
    x <- fit$inducing %||% fit$x
    x <- x[rep_len(seq_len(nrow(x)), 256L), , drop = FALSE]
    seconds <- function(run) max(min(replicate(2L, system.time(run(), gcFirst = FALSE)[["elapsed"]])), 1e-4)
    K <- native_kernel_matrix(kernel, x, x)
    values <- seconds(function() for (i in 1:4) native_kernel_matrix(kernel, x, x)) / (4 * 256^2)
    each <- seconds(function() crossprod(K)) / (2 * 256^3)
    engine$speed[[key]] <- c(flop = each, kernel = values) / max(1, threads * 0.7)
  }
  sum(c(flops, kernel_values) * engine$speed[[key]])
}
