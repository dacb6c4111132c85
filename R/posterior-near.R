# Inducing points with nearest neighbours (near.R): at x, given the rows S that are nearest to it,
#
#   u = (E_SS + s2 W^{-1})^{-1} e,  r = a - A_S u,  mean = u'y_S + r'beta,  var = prior - |a|^2 - e'u + |C^{-1} r|^2
#
# with a = L^{-1} cross(Z), e = cross(S) - A_S'a and E = k - a'a, the residual prior variance.

posterior_at.near <- function(p, fun, joint = FALSE) {
  if (fun$kind == "values") {
    at <- native_near_predict(p$near, p$z, p$rows, p$model, p$near$neighbours, fun$x, p$control)
    cov <- if (joint) native_near_covariance(p$near, p$z, p$rows, p$model, p$near$neighbours, fun$x, p$control)
    return(list(mean = at$mean, var = at$var_far + at$var_near, cov = cov$covariance))
  }
  if (fun$kind == "sums") sums_beside_near(p, fun) else one_row_beside_near(p, fun)
}

one_row_beside_near <- function(p, fun) {
  near <- p$near
  data <- p$rows
  w <- merged_weights(data)
  rows <- native_neighbours(p$model$kernel, data$x, near$neighbours, query = fun$x, control = p$control)
  a <- features_of(fun, p$z, near$L)
  out <- list(mean = numeric(fun$n), var = numeric(fun$n))
  for (of_row in split(seq_len(fun$n), fun$rows)) {
    S <- rows[, fun$rows[of_row[1L]]]
    S <- S[S > 0L]
    x_S <- data$x[S, , drop = FALSE]
    A_S <- forwardsolve(near$L, native_kernel_matrix(p$model$kernel, p$z, x_S))
    N <- native_kernel_matrix(p$model$kernel, x_S, x_S) - crossprod(A_S) + diag(p$model$noise / w[S], length(S))
    e <- fun$cross(x_S, of_row) - crossprod(A_S, a[, of_row])
    u <- solve(N, e)
    r <- a[, of_row] - A_S %*% u
    out$mean[of_row] <- drop(crossprod(u, data$y[S]) + crossprod(r, near$beta))
    out$var[of_row] <- pmax(fun$prior[of_row] - colSums(a[, of_row, drop = FALSE]^2) - colSums(e * u), 0) +
      colSums(forwardsolve(near$C, r)^2)
  }
  out
}

# The mean of a sum is the sum of means; its variance uses the covariance of the rows.
sums_beside_near <- function(p, fun) {
  mean <- posterior_values(p, fun$x)$mean
  list(mean = mapply(function(rows, w) sum(w * mean[rows]), fun$rows, fun$weights),
       var = mapply(function(rows, w) {
         sum(w * (posterior_values(p, fun$x[rows, , drop = FALSE], TRUE)$cov %*% w))
       }, fun$rows, fun$weights))
}

posterior_evidence.near <- function(p) {
  value <- if (is.null(p$fit$likelihood)) near_evidence(p$rows, p$near, p$model$noise) else p$fit$evidence
  list(value = value, lower = -Inf, upper = Inf, is = "estimate")
}

remade_fit.near <- function(p, rows, model) {
  fit <- p$fit
  near <- p$near
  rank <- if (is.null(near$rank)) seq_len(nrow(rows$x)) else near$rank
  fit$near <- near_posterior(rows, p$z, model, fit$neighbours, near$train_neighbours, rank, fit$jitter, p$control)
  fit$evidence <- near_evidence(rows, fit$near, model$noise)
  fit
}

# ---- leave-one-out --------------------------------------------------------------------------------------------------
#
# The order of the rows and their lists of neighbours stay. Row j has the terms r_j, y~_j and d_j of its list p,
#
#   N = E_pp + s2 W_p^{-1},  u = N^{-1} E_pj,  r = a_j - A_p u,  y~ = y_j - u'y_p,  d = E_jj + s2 / W_j - E_jp u
#   P = I + sum r r' / d,    P beta = sum r y~ / d
#
# (not scaled by the roots of the weights). If the noise of row g is raised by delta = s2 / W' - s2 / W, to infinity for
# a row that is left out, then its own d changes, and so do the terms of rows that have g in their lists. With
# t = N^{-1} e_g, the column of g, and kappa = 1 / (1 / delta + t_g),
#
#   u' = u - kappa u_g t,   r' = r + kappa u_g A_p t,   y~' = y~ + kappa u_g t'y_p,   d' = d + kappa u_g^2.
#
# These terms replace the old ones in P. The list of nearest rows at the row itself changes alike.

# A group is left out by computing the posterior without it, in which lists of neighbours are found anew.
posterior_without.near <- function(p, groups = NULL) {
  apart <- responses_used(p)
  if (!is.null(groups)) {
    found <- lapply(groups, function(rows) {
      at <- posterior_values(near_without(p, apart, rows), p$rows$x[apart$group[rows], , drop = FALSE])
      cbind(at$mean, at$var)
    })
    found <- do.call(rbind, found)
    return(list(mean = found[, 1L], var = found[, 2L], leverage = rep(NA_real_, nrow(found))))
  }
  field <- near_terms(p)
  members <- split(seq_along(apart$y), apart$group)
  n <- length(apart$y)
  out <- list(mean = numeric(n), var = numeric(n), leverage = numeric(n))
  # the terms of one batch of rows, and of all rows that have one of them in their lists, are held at a time
  for (batch in split(field$order, (seq_along(field$order) - 1L) %/% field$batch)) {
    lists <- batch_lists(field, batch)
    for (g in batch) {
      around <- near_conditional(field, g, field$around[, g])
      for (i in members[[g]]) {
        one <- without_row(field, lists, around, g, apart$w[i], apart$y[i])
        for (what in names(out)) out[[what]][i] <- one[[what]]
      }
    }
  }
  out
}

# Returns the posterior without some of the rows used; rows keep their order.
near_without <- function(p, apart, rows) {
  w <- replace(apart$w, rows, 0)
  n <- nrow(p$rows$x)
  W <- as.vector(rowsum(c(w, numeric(n)), c(apart$group, seq_len(n))))
  y <- as.vector(rowsum(c(w * apart$y, numeric(n)), c(apart$group, seq_len(n)))) / W
  kept <- which(W > 0)
  rank <- if (is.null(p$near$rank)) seq_len(n) else p$near$rank
  p$rows <- list(x = p$rows$x[kept, , drop = FALSE], y = y[kept], weights = W[kept])
  p$near <- near_posterior(p$rows, p$z, p$model, p$near$neighbours, p$near$train_neighbours, rank(rank[kept]),
                           p$near$jitter, p$control)
  p
}

# Returns the lists of neighbours of all rows, the features A, and U = C^{-1} A.
near_terms <- function(p) {
  near <- p$near
  data <- p$rows
  kernel <- p$model$kernel
  n <- nrow(data$x)
  s <- near$train_neighbours
  if (s > 0L && is.null(near$rank)) {
    abort_input("object", "a fit of an earlier version, which has not kept the order of its rows", "a new fit")
  }
  m <- nrow(p$z)
  check_memory(16 * as.double(m) * n, sprintf("leave-one-out of %d rows", n))
  A <- forwardsolve(near$L, native_kernel_matrix(kernel, p$z, data$x))
  field <- list(kernel = kernel, x = data$x, y = data$y, W = merged_weights(data), A = A, U = forwardsolve(near$C, A),
                noise = p$model$noise, b = drop(crossprod(near$C, near$beta)))
  field$lists <- if (s > 0L) {
    native_neighbours(kernel, data$x, s, rows = seq_len(n), rank = near$rank, control = p$control)
  } else {
    matrix(0L, 0L, n)
  }
  field$around <- native_neighbours(kernel, data$x, near$neighbours, query = data$x, control = p$control)
  child <- col(field$lists)[field$lists > 0L]
  field$children <- split(child, factor(field$lists[field$lists > 0L], levels = seq_len(n)))
  # rows that are close to each other share rows that have them in their lists
  field$order <- do.call(order, lapply(seq_len(ncol(data$x)), function(j) round(8 * rank(data$x[, j]) / n)))
  field$batch <- max(100, floor(p$control$memory / (8 * m * max(1, s))))
  field
}

# Returns the conditional of row j given the rows p: the rows, N^{-1}, u, the residual variance, y~ and C^{-1} r.
near_conditional <- function(field, j, p) {
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
  inverse <- inverse_with_more_noise(E[-k, -k, drop = FALSE], field$noise / field$W[p])
  u <- drop(inverse %*% E[-k, k])
  list(rows = p, inverse = inverse, u = u, left = max(own - sum(E[-k, k] * u), 0), y = field$y[j] - sum(u * field$y[p]),
       r = field$U[, j] - drop(field$U[, p, drop = FALSE] %*% u))
}

# Returns (E + diag(noise))^{-1}; the noise is multiplied by 10 until the Cholesky factorisation works.
inverse_with_more_noise <- function(E, noise) {
  repeat {
    N <- E
    diag(N) <- diag(N) + noise
    R <- tryCatch(chol(N), error = function(e) if (is_time_limit(e)) stop(e))
    if (!is.null(R)) return(chol2inv(R))
    noise <- pmax(10 * noise, 1e-15 * max(diag(E)))
  }
}

# Returns the terms of a batch of rows and of all rows that have one of them in their lists: C^{-1} r, y~ and d of each
# row, and by place in a list U_p N^{-1}, u, t_g and t'y_p.
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
    one <- near_conditional(field, j, field$lists[, j])
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

# Returns list(mean, var, leverage) for a row of weight w and response y that was merged into row g.
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

  # the prediction at the row itself, with all rows and without this one
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
  list(mean = sum(u * y_near) + sum(r_x * solved[, 1L]), var = left + sum(r_x * solved[, 2L]), leverage = hat * w / W)
}

around_r <- function(field, around, g, u) {
  if (!length(u)) return(field$U[, g])
  field$U[, g] - drop(field$U[, around$rows, drop = FALSE] %*% u)
}

# Returns (I + V diag(sign) V')^{-1} b, by the smaller of two matrices.
solve_replaced <- function(V, sign, b) {
  if (ncol(V) < nrow(V)) return(b - V %*% solve(diag(sign, length(sign)) + crossprod(V), crossprod(V, b), tol = 0))
  R <- chol(diag(1, nrow(V)) + tcrossprod(V[, sign > 0, drop = FALSE]) - tcrossprod(V[, sign < 0, drop = FALSE]))
  backsolve(R, backsolve(R, b, transpose = TRUE))
}
