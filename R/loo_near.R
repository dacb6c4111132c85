# Leave-one-out beside near rows, the order and the lists held. Row j has the terms r_j, y~_j and d_j of its list p,
#
#   N = E_pp + s2 W_p^{-1},  u = N^{-1} E_pj,  r = a_j - A_p u,  y~ = y_j - u'y_p,  d = E_jj + s2 / W_j - E_jp u
#   P = I + sum r r' / d,    P beta = sum r y~ / d
#
# (here not scaled by the roots of the weights). A row g that has its noise raised by delta = s2 / W' - s2 / W, to
# infinity where nothing is left of its weight, changes its own d and the terms of those that have it in their lists: of
# them, with t = N^{-1} e_g, the column of g, and kappa = 1 / (1 / delta + t_g),
#
#   u' = u - kappa u_g t,   r' = r + kappa u_g A_p t,   y~' = y~ + kappa u_g t'y_p,   d' = d + kappa u_g^2.
#
# They replace the old terms in P; at the row itself its list of nearest rows changes alike.
# Everything is whitened by the factor of P: U = C^{-1} A.

loo_near <- function(fit, data, rows) {
  field <- near_terms(fit, data)
  members <- split(seq_along(rows$y), rows$group)
  n <- length(rows$y)
  out <- list(residual = numeric(n), var = numeric(n), hat = numeric(n))
  # terms of a batch of rows and of all that have one of them in their lists are held at a time
  for (batch in split(field$order, (seq_along(field$order) - 1L) %/% field$batch)) {
    lists <- batch_lists(field, batch)
    for (g in batch) {
      around <- list_of(field, g, field$around[, g])
      for (i in members[[g]]) {
        one <- without_row(field, lists, around, g, rows$w[i], rows$y[i])
        for (what in names(out)) out[[what]][i] <- one[[what]]
      }
    }
  }
  out
}

# What all rows have to do with one another: their lists, and A, its whitened form, and the terms of each.
near_terms <- function(fit, data) {
  near <- fit$near
  kernel <- model_of(fit)$kernel
  n <- nrow(data$x)
  s <- near$train_neighbours
  if (s > 0L && is.null(near$rank)) {
    abort_input("object", "a fit of an earlier version, which has not kept the order of its rows", "a new fit")
  }
  m <- nrow(fit$inducing)
  check_memory(16 * as.double(m) * n, sprintf("leave-one-out of %d rows", n))
  A <- forwardsolve(near$L, native_kernel_matrix(kernel, fit$inducing, data$x))
  field <- list(kernel = kernel, x = data$x, y = data$y, W = merged_weights(data), A = A, U = forwardsolve(near$C, A),
                noise = model_of(fit)$noise, b = drop(crossprod(near$C, near$beta)))
  field$lists <- if (s > 0L) {
    native_neighbours(kernel, data$x, s, rows = seq_len(n), rank = near$rank, control = fit$control)
  } else {
    matrix(0L, 0L, n)
  }
  field$around <- native_neighbours(kernel, data$x, near$neighbours, query = data$x, control = fit$control)
  child <- col(field$lists)[field$lists > 0L]
  field$children <- split(child, factor(field$lists[field$lists > 0L], levels = seq_len(n)))
  # rows that lie together share those that have them in their lists
  field$order <- do.call(order, lapply(seq_len(ncol(data$x)), function(j) round(8 * rank(data$x[, j]) / n)))
  field$batch <- max(100, floor(fit$control$memory / (8 * m * max(1, s))))
  field
}

# A list of row j as it is: rows p, the inverse of N, u, d and what is left of y and (whitened) of a.
list_of <- function(field, j, p) {
  p <- p[p > 0L]
  k <- length(p) + 1L
  at <- c(p, j)
  x <- field$x[at, , drop = FALSE]
  E <- native_kernel_matrix(field$kernel, x, x) - crossprod(field$A[, at, drop = FALSE])
  diag(E) <- pmax(diag(E), 0)
  own <- E[k, k]
  if (k == 1L) {
    return(list(rows = p, inverse = matrix(0, 0L, 0L), u = numeric(), left = own, y = field$y[j], r = field$U[, j]))
  }
  inverse <- safe_inverse(E[-k, -k, drop = FALSE], field$noise / field$W[p])
  u <- drop(inverse %*% E[-k, k])
  list(rows = p, inverse = inverse, u = u, left = max(own - sum(E[-k, k] * u), 0), y = field$y[j] - sum(u * field$y[p]),
       r = field$U[, j] - drop(field$U[, p, drop = FALSE] %*% u))
}

# (E + diag(noise))^{-1}, the noise raised by tens until there is one
safe_inverse <- function(E, noise) {
  repeat {
    N <- E
    diag(N) <- diag(N) + noise
    R <- tryCatch(chol(N), error = function(e) if (is_time_limit(e)) stop(e))
    if (!is.null(R)) return(chol2inv(R))
    noise <- pmax(10 * noise, 1e-15 * max(diag(E)))
  }
}

# Of a batch of rows and all that have one of them in their lists, a column a row: r and, a column a place in a list,
# U_p N^{-1}; y, d, and u, t_g and t'y_p by place.
batch_lists <- function(field, batch) {
  members <- unique(c(batch, unlist(field$children[batch], use.names = FALSE)))
  m <- nrow(field$A)
  s <- nrow(field$lists)
  J <- length(members)
  place <- integer(nrow(field$x))
  place[members] <- seq_len(J)
  r <- matrix(0, m, J)
  steps <- matrix(0, m, s * J)
  u <- diagonal <- answer <- matrix(0, s, J)
  y <- d <- numeric(J)
  for (l in seq_len(J)) {
    j <- members[l]
    one <- list_of(field, j, field$lists[, j])
    r[, l] <- one$r
    y[l] <- one$y
    d[l] <- one$left + field$noise / field$W[j]
    k <- length(one$rows)
    if (!k) next
    at <- seq_len(k)
    u[at, l] <- one$u
    diagonal[at, l] <- diag(one$inverse)
    answer[at, l] <- one$inverse %*% field$y[one$rows]
    steps[, (l - 1L) * s + at] <- field$U[, one$rows, drop = FALSE] %*% one$inverse
  }
  list(place = place, r = r, steps = steps, u = u, diagonal = diagonal, answer = answer, y = y, d = d)
}

# list(residual, var, hat) of a row of weight w and response y among those merged in row g
without_row <- function(field, lists, around, g, w, y) {
  W <- field$W[g]
  rest <- W - w
  alone <- rest <= 1e-12 * W
  more <- if (alone) Inf else field$noise / rest - field$noise / W
  change <- if (alone) 0 else (W * field$y[g] - w * y) / rest - field$y[g] # of the response of row g

  child <- field$children[[g]]
  at <- lists$place[child]
  slot <- matrix(c(if (length(child)) max.col(t(field$lists[, child, drop = FALSE] == g), "first"), at), ncol = 2L)
  u <- lists$u[slot]
  kappa <- 1 / (1 / more + lists$diagonal[slot])
  own <- lists$place[g]
  old <- c(at, own)
  r_old <- lists$r[, old, drop = FALSE]
  r <- lists$r[, at, drop = FALSE] + lists$steps[, (at - 1L) * nrow(lists$u) + slot[, 1L], drop = FALSE] *
    rep(kappa * u, each = nrow(r_old))
  d <- lists$d[at] + kappa * u^2
  y_new <- lists$y[at] + kappa * u * lists$answer[slot] - u * (1 - kappa * lists$diagonal[slot]) * change
  if (!alone) {
    r <- cbind(r, lists$r[, own])
    d <- c(d, lists$d[own] + more)
    y_new <- c(y_new, lists$y[own] + change)
  }
  b <- field$b + drop(r %*% (y_new / d)) - drop(r_old %*% (lists$y[old] / lists$d[old]))

  # the row's own prediction, with all rows and without this one
  near <- match(g, around$rows)
  hat <- sum(around_r(field, around, g, around$u) * (r_old %*% (c(-u, 1) / lists$d[old])))
  u <- around$u
  left <- around$left
  y_near <- field$y[around$rows]
  if (!is.na(near)) {
    hat <- hat + u[near]
    kappa <- 1 / (1 / more + around$inverse[near, near])
    left <- left + kappa * u[near]^2
    y_near[near] <- y_near[near] + change
    u <- u - kappa * u[near] * around$inverse[, near]
    if (alone) u[near] <- 0
  }
  r_x <- around_r(field, around, g, u)
  solved <- solve_replaced(cbind(r * rep(1 / sqrt(d), each = nrow(r)),
                                 r_old * rep(1 / sqrt(lists$d[old]), each = nrow(r))),
                           rep(c(1, -1), c(length(d), length(old))), cbind(b, r_x))
  list(residual = y - sum(u * y_near) - sum(r_x * solved[, 1L]), var = left + sum(r_x * solved[, 2L]),
       hat = hat * w / W)
}

around_r <- function(field, around, g, u) {
  if (!length(u)) return(field$U[, g])
  field$U[, g] - drop(field$U[, around$rows, drop = FALSE] %*% u)
}

# (I + V diag(sign) V')^{-1} b, by the smaller of the two matrices there are for it
solve_replaced <- function(V, sign, b) {
  if (ncol(V) < nrow(V)) return(b - V %*% solve(diag(sign, length(sign)) + crossprod(V), crossprod(V, b), tol = 0))
  R <- chol(diag(1, nrow(V)) + tcrossprod(V[, sign > 0, drop = FALSE]) - tcrossprod(V[, sign < 0, drop = FALSE]))
  backsolve(R, backsolve(R, b, transpose = TRUE))
}
