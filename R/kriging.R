# Certificates by local kriging: for any weights w on the rows, with J(w) = k(x,x) - 2 w'k_x + w'(K + s2 I) w and
# h = k_x - (K + s2 I) w,
#   exact variance = J - |h|^2 in the norm of (K + s2 I)^{-1},
#   exact mean     = k_x'v + w'r + h'(K + s2 I)^{-1} r,     r = y - (K + s2 I) v, any v.
# Weights that krige on the rows near x make h small, and are sparse, so that J and h cost no pairs of all rows. What
# the norms are bounded by, and rounding, is in certify.h.

# Rows that a group of near points krige on. (The option is for tests: 0 turns off what is exact on few rows.)
kriging_rows <- function() getOption("pfdtc.kriging_rows", 400L)

# Rows of x in groups of near ones, at most so many: list(order, start), group i being order[start[i] + 1] and on.
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

# The n_c rows that each group shares: those that come first among the nearest of its members, a column a group.
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

# Kriging weights at the rows of x and what they certify, in the reference's scale: list(order, group, rows, W, J, q,
# ww, var_lower, var_upper), the rows of x in `order`, each with a column of W on the rows[, group] of the data.
krige <- function(reference, data, x, n_c = kriging_rows(), group = 16) {
  model <- model_of(reference)
  n_c <- as.integer(min(n_c, nrow(data$x)))
  groups <- near_groups(model$kernel, x, group)
  rows <- shared_rows(model$kernel, data, x, groups, n_c, reference$control)
  near <- sort(unique(c(rows)))
  found <- native_kriging(reference$factors, reference$inducing, data, model, reference$norms,
                          x[groups$order, , drop = FALSE], groups$start, near, matrix(match(rows, near), n_c),
                          reference$control)
  c(list(order = groups$order, group = rep(seq_len(ncol(rows)), diff(groups$start)), rows = rows), found)
}

# Interval of the exact mean and sd at the rows of x, in units of y, from what krige() found. `known`: intervals there,
# of whose variances |h|^2 in the norm of (K + s2 I)^{-1} = J - exact variance makes use. With a correction
#   |exact mean - (k_x'v + w'r)| <= |h| |r|, both in that norm, |r|^2 <= c_r,
# and what rounding in r, in k_x'v and in w'r adds.
kriged_interval <- function(found, reference, correction, data, x, known) {
  at <- found$order
  model <- model_of(reference)
  out <- list(mean_lower = rep(-Inf, nrow(x)), mean_upper = rep(Inf, nrow(x)))
  out$sd_lower[at] <- in_units(model, sqrt(found$var_lower))
  out$sd_upper[at] <- in_units(model, sqrt(found$var_upper))
  if (is.null(correction$residual)) return(out)
  eps <- .Machine$double.eps
  root <- root_weights(data)
  h <- sqrt(kriged_h2(found, (known$sd_lower[at] / model$scale)^2 * (1 - 8 * eps)))
  on_rows <- matrix(correction$residual[found$rows], nrow(found$rows))[, found$group, drop = FALSE]
  mean <- native_kernel_cross_matvec(model$kernel, data$x, root * correction$v, x, reference$control)[at] +
    kriged_sums(found, correction$residual)
  error <- correction$error
  n_c <- nrow(found$W)
  half <- h * (sqrt(correction$norms$c) + error$residual / sqrt(model$noise)) +
    sqrt(prior_at(model, x)[at]) * error$sum + sqrt(found$ww) * error$residual +
    (4 * sqrt(n_c) + n_c / 64) * eps * sqrt(found$ww * colSums(on_rows^2)) + 4 * eps * abs(mean)
  half <- half * (1 + 1e-14)
  out$mean_lower[at] <- in_units(model, mean - half)
  out$mean_upper[at] <- in_units(model, mean + half)
  out
}

# >= |h|^2 in the norm of (K + s2 I)^{-1}: q, or J less what the exact variance is at least
kriged_h2 <- function(found, var_lower = 0) {
  pmin(found$q, pmax(found$J - pmax(found$var_lower, var_lower), 0) + 8 * .Machine$double.eps * found$J)
}

# w'r
kriged_sums <- function(found, r) {
  colSums(found$W * matrix(r[found$rows], nrow(found$rows))[, found$group, drop = FALSE])
}

# krige() of all rows of x, as many at a time as the engine takes
krige_all <- function(reference, data, x) {
  lapply(split(seq_len(nrow(x)), (seq_len(nrow(x)) - 1L) %/% 1024L), function(rows) {
    krige(reference, data, x[rows, , drop = FALSE], group = group_for(length(rows)))
  })
}

# Many points share rows with more of their neighbours.
group_for <- function(n) max(1, min(16, n %/% 64))

# Points of which a call of the engine takes no longer than the seconds left, of n that are wanted; at most 1,024, 0 if
# there is no time for a sixteenth of that, or for all n: the rows' own A is made for every call.
points_in_time <- function(reference, data, n, left) {
  if (left == Inf) return(min(n, 1024L))
  N <- as.double(nrow(data$x))
  m <- reference$m
  speed <- engine_speed(reference$kernel, data$x, reference$control)
  n_c <- min(N, kriging_rows())
  seconds <- function(size) {
    near <- min(N, n_c * ceiling(size / group_for(size)))
    (N * (m^2 + 2 * size * (m + n_c)) + size / group_for(size) * n_c^3 / 3) * speed[["flop"]] +
      N * (m + size + near) * speed[["kernel"]]
  }
  least <- min(n, 64L)
  size <- min(n, 1024L)
  while (size > least && seconds(size) > left) size <- max(least, size %/% 2L)
  if (seconds(size) > left) 0L else size
}

# Seconds that the engine takes for a flop of a matrix product and for a kernel value, as measured on a few rows (some
# milliseconds) once in a session.
engine_speed <- function(kernel, x, control) {
  threads <- engine_control(65536L, control)$threads
  profiles <- vapply(as_sum(kernel)$leaves, `[[`, "", "profile")
  key <- paste(paste(profiles, collapse = " "), length(kernel$inputs), threads)
  if (!is.null(engine$speed[[key]])) return(engine$speed[[key]])
  x <- x[rep_len(seq_len(nrow(x)), 256L), , drop = FALSE]
  seconds <- function(run) {
    max(min(vapply(1:2, function(i) system.time(run(), gcFirst = FALSE)[["elapsed"]], 0)), 1e-4)
  }
  K <- native_kernel_matrix(kernel, x, x)
  values <- seconds(function() for (i in 1:4) native_kernel_matrix(kernel, x, x)) / (4 * 256^2)
  flops <- seconds(function() crossprod(K)) / (2 * 256^3)
  engine$speed[[key]] <- c(flop = flops, kernel = values) / max(1, threads * 0.7)
  engine$speed[[key]]
}

# Rows whose interval is not small beside the distance of the fit from its middle, there and at the median row, or not
# beside the sd: the worst first. `mean`: can the mean's interval be narrowed?
wide_rows <- function(inside, at, mean) {
  excess <- function(what, floor) {
    lower <- inside[[paste0(what, "_lower")]]
    upper <- inside[[paste0(what, "_upper")]]
    half <- (upper - lower) / 2
    distance <- abs(at[[what]] - (upper + lower) / 2)
    small <- pmin(pmax(distance, stats::median(distance)) / 20, floor)
    ifelse(half <= small | half <= 1e-12 * abs(upper), 0, half / inside$sd_upper)
  }
  score <- excess("sd", inside$sd_upper / 400)
  if (mean) score <- pmax(score, excess("mean", Inf))
  score[is.na(score)] <- Inf
  order(-score)[seq_len(sum(score > 0))]
}
