# Certificates by local kriging. For any weights w on the rows, with J(w) = k(x,x) - 2 w'k_x + w'(K + s2 I) w and
# h = k_x - (K + s2 I) w,
#   exact variance = J - |h|^2 in the norm of (K + s2 I)^{-1},
#   exact mean     = k_x'v + w'r + h'(K + s2 I)^{-1} r,     r = y - (K + s2 I) v, any v.
# Kriging weights on the nearest neighbours of x make h small. They are sparse, so that J and h need no pairs of all
# rows. certify.h has the bounds of the norms and the rounding.

# Returns the number of neighbours of a group of rows. Tests set the option to 0, which turns off kriging and the exact
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

# Returns a column for each group: the n_c rows of the data that rank first among the neighbours of its members.
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

# Returns kriging weights at the rows of x and the bounds that they give, in the reference's scale: list(x, order,
# group, rows, W, J, q, ww, var_lower, var_upper). `order` orders the rows of x. In this order each has a column of W,
# weights of the data's rows[, group].
krige <- function(reference, data, x, n_c = kriging_rows(), group = group_for(nrow(x))) {
  model <- model_of(reference)
  n_c <- as.integer(min(n_c, nrow(data$x)))
  groups <- near_groups(model$kernel, x, group)
  rows <- shared_rows(model$kernel, data, x, groups, n_c, reference$control)
  near <- sort(unique(c(rows)))
  found <- native(ffi_kriging, engine_posterior(reference$factors, reference$inducing, model),
                  norms_to_engine(reference$norms), engine_rows(data), x[groups$order, , drop = FALSE],
                  as.integer(groups$start), near, matrix(match(rows, near), n_c),
                  engine_control(nrow(data$x), reference$control))
  c(list(x = x, order = groups$order, group = rep(seq_len(ncol(rows)), diff(groups$start)), rows = rows), found)
}

# Returns intervals of the exact mean and sd at the rows of x, in units of y, from the result of krige(). `sd_lower`: a
# lower bound of the exact sd.
kriged_interval <- function(found, reference, correction, data, sd_lower = 0) {
  x <- found$x
  at <- found$order
  model <- model_of(reference)
  if (!is.null(correction$residual)) {
    found$mean <- native_kernel_cross_matvec(model$kernel, data$x, root_weights(data) * correction$v, x,
                                             reference$control)[at] + kriged_sums(found, correction$residual)
    found$rr <- kriged_sums(replace(found, "W", 1), correction$residual^2)
  }
  out <- kriged_bounds(found, nrow(found$W), prior_at(model, x)[at], correction, model, rep_len(sd_lower, nrow(x))[at])
  lapply(out, function(v) replace(numeric(nrow(x)), at, v))
}

# Returns the intervals in the order of `found`: mean is k_x'v + w'r, and rr the sum of squares of r on the rows with
# weights, `n_c` in number. In the norm of (K + s2 I)^{-1}, |h|^2 = J - exact variance. With a correction
#   |exact mean - (k_x'v + w'r)| <= |h| |r|, both in that norm, |r|^2 <= c_r,
# up to rounding in r, in k_x'v and in w'r. `size` is k(x, x) or the functional's size; `sd_lower` is a lower bound of
# the exact sd.
kriged_bounds <- function(found, n_c, size, correction, model, sd_lower) {
  out <- list(mean_lower = -Inf, mean_upper = Inf, sd_lower = in_units(model, sqrt(found$var_lower)),
              sd_upper = in_units(model, sqrt(found$var_upper)))
  if (is.null(correction$residual)) return(out)
  eps <- .Machine$double.eps
  error <- correction$error
  h <- sqrt(kriged_h2(found, (sd_lower / model$scale)^2 * (1 - 8 * eps)))
  half <- h * (sqrt(correction$norms$c) + error$residual / sqrt(model$noise)) + sqrt(size) * error$sum +
    sqrt(found$ww) * error$residual + (4 * sqrt(n_c) + n_c / 64) * eps * sqrt(found$ww * found$rr) +
    4 * eps * abs(found$mean)
  half <- half * (1 + 1e-14)
  out[c("mean_lower", "mean_upper")] <- list(in_units(model, found$mean - half), in_units(model, found$mean + half))
  out
}

# Returns an upper bound of |h|^2 in the norm of (K + s2 I)^{-1}: q, or J less a lower bound of the exact variance.
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

# Returns the seconds for so many flops of a matrix product and so many kernel values. The speed is measured once in a
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

# ---- one functional -------------------------------------------------------------------------------------------------

# Returns the interval of one functional by weights w on few rows S, with J and h = k - (K + s2 I) w on all rows. S are
# the rows that rank first among the nearest neighbours of the functional's rows.
# `sd_lower`: a lower bound of the exact sd, in units of y.
krige_functional <- function(fun, i, reference, data, correction, sd_lower) {
  model <- model_of(reference)
  kernel <- model$kernel
  s2 <- model$noise
  p <- reference$factors
  root <- root_weights(data)
  k <- numeric(nrow(data$x))
  one <- some_functionals(fun, i)
  cross_at(one, data$x, function(rows, K) k[rows] <<- drop(K))
  k <- root * k
  n_c <- min(kriging_rows(), nrow(data$x))
  about <- fun$x[unlist(fun$rows[i]), , drop = FALSE]
  about <- about[evenly(nrow(about), n_c), , drop = FALSE]
  near <- unique(c(t(native_neighbours(kernel, data$x, n_c, query = about, control = reference$control))))
  S <- utils::head(near[near > 0L], n_c)
  x_S <- data$x[S, , drop = FALSE]
  root_S <- rep_len(root, nrow(data$x))[S]
  K_S <- native_kernel_matrix(kernel, x_S, x_S) * outer(root_S, root_S)
  # w = (K_S + s2 I)^{-1} k_S, or other weights if the factorisation fails: any weights give a valid interval
  w <- 0 * k[S]
  for (more in c(0, max(diag(K_S)) * (length(S) + 16) * .Machine$double.eps * 10^(0:7))) {
    R <- tryCatch(chol(K_S + diag(s2 + more, length(S))), error = function(e) NULL)
    if (is.null(R)) next
    w <- backsolve(R, backsolve(R, k[S], transpose = TRUE))
    break
  }
  h <- k - root * native_kernel_cross_matvec(kernel, x_S, root_S * w, data$x, reference$control)
  h[S] <- h[S] - s2 * w
  wh <- sum(w * h[S])
  Ah <- native_response(p, reference$inducing, list(x = data$x, y = h / root, weights = data$weights),
                        new_model(kernel, s2), control = reference$control)$Ay
  a <- drop(features_of(one, reference$inducing, p$L))
  Aw <- drop(forwardsolve(p$L, native_kernel_matrix(kernel, reference$inducing, x_S)) %*% (root_S * w)) - a
  ca <- forwardsolve(p$C, a)
  ch <- forwardsolve(p$C, Ah)
  ww <- sum(w^2)
  n_terms <- length(S) + one$terms
  found <- native(
    ffi_certify_kriged, engine_posterior(p, reference$inducing, new_model(kernel, s2)),
    norms_to_engine(reference$norms), as.integer(n_terms),
    as.double(sum(merged_weights(data))),
    lapply(list(prior = one$prior + 16 * .Machine$double.eps * one$size, size = one$size, sor = s2 * sum(ca^2),
                J = one$prior - sum(w * k[S]) - wh, wh = wh, ww = ww, w1 = sum(root_S * abs(w)), hh = sum(h^2),
                ch = sum(ch^2), xh = sum(ca * ch), JQ = sum(Aw^2) + s2 * ww), as.double))
  r_S <- correction$residual[S]
  about <- list(mean = sum(k * correction$v) + sum(w * r_S), rr = sum(r_S^2), ww = ww)
  kriged_bounds(c(found, about), n_terms, one$size, correction, model, sd_lower)
}
