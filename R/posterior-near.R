# Computes posteriors by inducing points Z with nearest neighbours. W has the weights of the rows, and s2 / W_i is the
# noise variance of row i. For a functional of f, such as its value at x, cross(X) has the prior covariances with f at
# rows X, and v is the prior variance. Its features are a = L^{-1} cross(Z), with L L' = k(Z, Z). A_S has the features
# of rows S, and E = k - a'a is the residual prior covariance. Given the responses y_S of the nearest rows S,
#
#   u = (E_SS + s2 W_S^{-1})^{-1} e,  e = cross(S) - A_S'a,  r = a - A_S u
#   mean = u'y_S + r'beta,  var = [v - |a|^2 - e'u] + |C^{-1} r|^2.
#
# Here C C' is the posterior precision of the whitened values L^{-1} f(Z), and beta is their mean. Training rows are in
# a random order (`rank`). In the formulas for u, e and r of row i, its nearest earlier rows p replace S. Then
#
#   d = E_ii + s2 / W_i - e'u,  C C' = I + sum r r' / d,  C C' beta = sum r (y_i - u'y_p) / d.
#
# Without neighbours in training, the posterior is that of FITC; with all rows as neighbours, it is that of the exact
# GP. With N = E + s2 W^{-1}, the covariance of f at two rows needs only these rows and their neighbours:
#
#   Cov(f(x), f(z)) = r_x'(C C')^{-1} r_z + E(x, z) - u_x'E(S_x, z) - E(x, S_z) u_z + u_x'N(S_x, S_z) u_z.

# Returns the parts of a posterior from which f is predicted. L is the Cholesky factor of k(Z, Z), C C' and beta are the
# posterior precision and mean of L^{-1} f(Z). `neighbours` may have a second number, for predictions far from the data.
# `evidence` estimates the log density of the responses times root weights.
near_posterior <- function(data, z, model, neighbours, train_neighbours, rank = sample.int(nrow(data$x)),
                           jitter = 1e-12, control = NULL) {
  numbered <- by_numbers_of_levels(model$kernel, data$x, z)
  model$kernel <- numbered$kernel
  data$x <- numbered$rows(data$x)
  near <- native_near(numbered$rows(z), data, model, train_neighbours, rank, jitter, control = control)
  c(near[c("L", "C", "beta", "jitter")], list(
    neighbours = as.integer(neighbours), train_neighbours = as.integer(train_neighbours), rank = rank,
    evidence = -near$minus_log))
}

posterior_at.near <- function(p, fun, joint = FALSE) {
  if (fun$kind %in% c("sums", "boxes")) return(sums_of_values(p, fun))
  at <- if (!joint) predict_given(p, fun$x[fun$rows, , drop = FALSE], functionals_near(p, fun)) else
    native_near_covariance(p$near, p$z, p$rows, p$model, p$near$neighbours, fun$x, p$control)
  list(mean = at$mean, var = at$var_far + at$var_near, cov = at$covariance)
}

# Returns list(mean, var_near, var_far) of f at the rows of x given their nearest rows. The variance of f is var_near,
# given neighbours and inducing points, plus var_far, from uncertainty at inducing points. The columns of given$rows may
# name other rows to use (0 after the last). For n functionals of f, `given` also has cross [s, n] (covariances with f
# at the rows), features [M, n] and prior variances [n]. `keep` adds the neighbours S, the weights u of their responses
# times root weights, and r = a - A_S u (features a and A_S of x and S).
predict_given <- function(p, x, given = NULL, keep = FALSE) {
  s <- if (is.null(given)) p$near$neighbours else nrow(given$rows)
  native(ffi_near_predict, engine_posterior(p$near, p$z, p$model), engine_rows(p$rows), as.integer(s), x, given,
         as.integer(keep), engine_control(16 * nrow(x), p$control), doing = "Prediction from neighbours")
}

# Returns the argument `given` of predict_given() for functionals: their neighbours, and their covariances with f at the
# neighbours. Returns NULL for values of f, whose neighbours predict_given() finds.
functionals_near <- function(p, fun) {
  if (fun$kind == "values") return(NULL)
  x <- p$rows$x
  rows <- native_neighbours(p$model$kernel, x, pmin(p$near$neighbours, nrow(x)), query = fun$x, control = p$control)
  rows <- rows[, fun$rows, drop = FALSE]
  cross <- 0 * rows
  for (i in split(seq_len(fun$n), fun$rows)) {
    S <- rows[rows[, i[1L]] > 0L, i[1L]]
    cross[seq_along(S), i] <- fun$cross(x[S, , drop = FALSE], i)
  }
  list(rows = rows, cross = cross, features = features_of(fun, p$z, p$near$L), prior = fun$prior)
}

# Returns mean and variance of weighted sums of values of f. The variance uses the covariance of f at the rows of a sum.
sums_of_values <- function(p, fun) {
  f <- posterior_values(p, fun$x)$mean
  list(mean = mapply(function(rows, w) sum(w * f[rows]), fun$rows, fun$weights), var = mapply(function(rows, w) {
    sum(w * (posterior_values(p, fun$x[rows, , drop = FALSE], TRUE)$cov %*% w))
  }, fun$rows, fun$weights))
}

# ---- leave-one-out --------------------------------------------------------------------------------------------------
#
# If a row is left out, other rows keep their order and neighbours. Let row j have the neighbours p, the features a_j
# and the weight W_j. Let A_p be the features of the rows p, E the residual prior covariance, s2 the noise variance.
#
#   N = E_pp + s2 W_p^{-1},  u = N^{-1} E_pj,  r = a_j - A_p u,  y~ = y_j - u'y_p,  d = E_jj + s2 / W_j - E_jp u
#   P = I + sum r r' / d,    P beta = sum r y~ / d.
#
# To omit row g, an infinite delta is added to its noise variance. This changes d of row g, and the terms of rows with g
# among their neighbours. With t the column of g in N^{-1}, and kappa = 1 / (1 / delta + t_g),
#
#   u' = u - kappa u_g t,   r' = r + kappa u_g A_p t,   y~' = y~ + kappa u_g t'y_p,   d' = d + kappa u_g^2.
#
# The changed terms replace the old ones in P. A finite delta omits a part of a merged row's weight. Rows are left out
# in batches, which share the terms of all rows with a neighbour in the batch.
posterior_without.near <- function(p) {
  apart <- responses_used(p)
  terms <- near_terms(p)
  members <- split(seq_along(apart$y), apart$group)
  out <- matrix(0, length(apart$y), 3L)
  for (batch in blocks_of(terms$order, terms$batch)) {
    lists <- batch_lists(terms, batch)
    at <- conditionals(terms, batch, terms$around)
    for (l in seq_along(batch)) {
      rows <- at$rows[at$rows[, l] > 0L, l]
      around <- list(rows = rows, u = at$u[seq_along(rows), l], left = at$left[l],
                     inverse = neighbours_inverse(terms, rows))
      for (i in members[[batch[l]]]) out[i, ] <- without_row(terms, lists, around, batch[l], apart$w[i], apart$y[i])
    }
  }
  list(mean = out[, 1L], var = out[, 2L], leverage = out[, 3L])
}

# Returns the posterior p for the kernel without groups. Its C and beta make f exactly 0 at the inducing points, so that
# predict_given() omits their part. near_grouped_at() adds this part and the effects of groups.
smooth_near <- function(p) {
  m <- nrow(p$z)
  p$model <- smooth_model(p$model)
  p$near[c("C", "beta")] <- list(diag(1e150, m), numeric(m))
  structure(p, class = c("near", "posterior"))
}

# Returns z - Z_S'u, a column for each row of x. z is the design of the effects of groups at the row, or 0 if `design`
# is FALSE. Z_S is the design at the neighbours S of the row, whose numbers are in `rows` and weights in `u`.
decorrelated_design <- function(groupings, x, data, rows, u, design) {
  all <- seq_len(nrow(x))
  parts <- lapply(groupings, function(g) {
    p <- nrow(g$root)
    Z <- matrix(0, p * g$levels, nrow(x))
    add <- function(at, level, values, sign) {
      known <- at[level[at] >= 1 & level[at] <= g$levels]
      for (j in seq_len(p)) {
        cell <- cbind((level[known] - 1) * p + j, known)
        Z[cell] <<- Z[cell] + sign[known] * values[j, known]
      }
    }
    if (design) add(all, x[, g$column], design_of(g, x), rep(1, nrow(x)))
    of_data <- design_of(g, data)
    for (s in seq_len(nrow(rows))) {
      row <- pmax(rows[s, ], 1L)
      add(all[rows[s, ] > 0L], data[row, g$column], of_data[, row, drop = FALSE], -u[s, ])
    }
    Z
  })
  do.call(rbind, parts)
}

# Returns a list for leave-one-out. A has the rows' features, U = C^{-1} A, and C C' is the precision of L^{-1} f(Z).
# `lists` has a row's neighbours in training, `around` those in predictions, `children` the rows whose neighbour it is.
near_terms <- function(p) {
  near <- p$near
  data <- p$rows
  groupings <- near$groupings
  smooth <- if (is.null(groupings)) p else smooth_near(p)
  kernel <- smooth$model$kernel
  n <- nrow(data$x)
  s <- near$train_neighbours
  refuse_if(s > 0L && is.null(near$rank), "object",
            "was made by an earlier version, which did not keep the order of its rows", hint = "Fit again.")
  m <- nrow(near$C)
  check_memory(16 * as.double(m) * n, sprintf("leave-one-out of %d rows", n))
  A <- features <- forwardsolve(near$L, native_kernel_matrix(kernel, p$z, data$x))
  if (!is.null(groupings)) { # with groups, effects have features too
    x <- numbered(data$x, groupings)
    Z <- decorrelated_design(groupings, x, x, matrix(0L, 0L, n), NULL, TRUE)
    features <- times_roots(rbind(A, Z), nrow(A), groupings, TRUE, all = TRUE)
  }
  lists <- if (s == 0L) matrix(0L, 0L, n) else
    native_neighbours(kernel, data$x, s, rows = seq_len(n), rank = near$rank, control = p$control)
  # Sort rows by location, so that rows of a batch, which are left out together, share neighbours.
  in_order <- do.call(order, lapply(seq_len(ncol(data$x)), function(j) round(8 * rank(data$x[, j]) / n)))
  list(posterior = smooth, kernel = kernel, x = data$x, y = data$y, W = merged_weights(data), A = A,
       U = forwardsolve(near$C, features), noise = p$model$noise, b = drop(crossprod(near$C, near$beta)),
       lists = lists, children = split(col(lists)[lists > 0L], factor(lists[lists > 0L], levels = seq_len(n))),
       around = native_neighbours(kernel, data$x, near$neighbours[1L], query = data$x, control = p$control),
       order = in_order, batch = max(100, floor(p$control$memory / (8 * m * max(1, s)))))
}

# Returns list(rows, u, r, left) for rows j with neighbours p = lists[, j]: weights u of the responses y_p, variances
# `left` of f given y_p and f(Z), and r = C^{-1} (a_j - A_p u), features a_j and A_p, C C' the precision of L^{-1} f(Z).
conditionals <- function(terms, j, lists) {
  given <- list(rows = lists[, j, drop = FALSE])
  at <- predict_given(terms$posterior, terms$x[j, , drop = FALSE], given, keep = TRUE)
  at$u[] <- at$u * sqrt(c(0, terms$W)[given$rows + 1L])
  r <- if (nrow(terms$U) == nrow(at$r)) forwardsolve(terms$posterior$near$C, at$r) else
    vapply(seq_along(j), function(l) {
      p <- given$rows[, l] > 0L
      around_r(terms, list(rows = given$rows[p, l]), j[l], at$u[p, l])
    }, terms$U[, 1L])
  list(rows = given$rows, u = at$u, r = r, left = at$var_near)
}

# Returns the inverse of N = E + noise W^{-1}, for the residual prior covariance E and the weights W of the rows p.
neighbours_inverse <- function(terms, p) {
  if (!length(p)) return(matrix(0, 0L, 0L))
  x <- terms$x[p, , drop = FALSE]
  E <- native_kernel_matrix(terms$kernel, x, x) - crossprod(terms$A[, p, drop = FALSE])
  diag(E) <- pmax(diag(E), 0)
  noise <- terms$noise / terms$W[p]
  repeat { # adds noise until the factorisation works
    N <- E
    diag(N) <- diag(N) + noise
    R <- tryCatch(chol(N), error = function(e) if (is_time_limit(e)) stop(e))
    if (!is.null(R)) return(chol2inv(R))
    noise <- pmax(10 * noise, 1e-15 * max(diag(E)))
  }
}

# For each row j of a batch or with a neighbour in it, returns u and r of conditionals(), y = y_j - u'y_p for its
# neighbours p, and d, the variance of y_j given y_p and f(Z). Also returns, for each g in p, C^{-1} A_p t (`steps`),
# t_g (`diagonal`) and t'y_p (`answer`). t is column g of the precision matrix of y_p given f(Z), A_p are the features
# of the rows p, and C C' is the precision matrix of L^{-1} f(Z).
batch_lists <- function(terms, batch) {
  members <- unique(c(batch, unlist(terms$children[batch], use.names = FALSE)))
  s <- nrow(terms$lists)
  J <- length(members)
  place <- replace(integer(nrow(terms$x)), members, seq_len(J))
  at <- conditionals(terms, members, terms$lists)
  steps <- matrix(0, nrow(terms$U), s * J)
  diagonal <- answer <- 0 * at$u
  for (l in seq_len(J)) {
    p <- at$rows[at$rows[, l] > 0L, l]
    if (!length(p)) next
    inverse <- neighbours_inverse(terms, p)
    diagonal[seq_along(p), l] <- diag(inverse)
    answer[seq_along(p), l] <- inverse %*% terms$y[p]
    steps[, (l - 1L) * s + seq_along(p)] <- terms$U[, p, drop = FALSE] %*% inverse
  }
  list(place = place, r = at$r, steps = steps, u = at$u, diagonal = diagonal, answer = answer,
       y = terms$y[members] - colSums(at$u * c(0, terms$y)[at$rows + 1L]), d = at$left + terms$noise / terms$W[members])
}

# Returns mean, variance and leverage of f without the observation y of weight w, which was merged into row g.
without_row <- function(terms, lists, around, g, w, y) {
  W <- terms$W[g]
  rest <- W - w
  alone <- rest <= 1e-12 * W
  more <- if (alone) Inf else terms$noise / rest - terms$noise / W
  change <- if (alone) 0 else (W * terms$y[g] - w * y) / rest - terms$y[g] # change of the merged response

  child <- terms$children[[g]]
  at <- lists$place[child]
  slot <- matrix(c(if (length(child)) max.col(t(terms$lists[, child, drop = FALSE] == g), "first"), at), ncol = 2L)
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
  b <- terms$b + drop(r %*% (y_new / d)) - drop(r_old %*% (lists$y[old] / lists$d[old]))

  # Compute the leverage `hat` of row g. Then omit the observation y from the neighbours' weights u and responses.
  near <- match(g, around$rows)
  hat <- sum(around_r(terms, around, g, around$u) * (r_old %*% (c(-u, 1) / lists$d[old])))
  u <- around$u
  left <- around$left
  y_near <- terms$y[around$rows]
  if (!is.na(near)) {
    hat <- hat + u[near]
    kappa <- 1 / (1 / more + around$inverse[near, near])
    left <- left + kappa * u[near]^2
    y_near[near] <- y_near[near] + change
    u <- u - kappa * u[near] * around$inverse[, near]
    if (alone) u[near] <- 0
  }
  # Dividing by 1 - leverage magnifies rounding errors. Return NaN if they may change the variance by 10 %.
  rounding <- .Machine$double.eps * sum(terms$A[, g]^2) / lists$d[own]
  if (!isTRUE(rounding < 0.1 * (1 - hat * w / W))) return(c(NaN, NaN, hat * w / W))
  r_x <- around_r(terms, around, g, u)
  # New terms r r' / d change the precision of f(Z), in a basis where it was I, to I + V diag(sign) V'.
  V <- cbind(r * rep(1 / sqrt(d), each = nrow(r)), r_old * rep(1 / sqrt(lists$d[old]), each = nrow(r)))
  sign <- rep(c(1, -1), c(length(d), length(old)))
  solved <- cbind(b, r_x)
  solved <- if (ncol(V) < nrow(V)) {
    solved - V %*% solve(diag(sign, length(sign)) + crossprod(V), crossprod(V, solved), tol = 0)
  } else {
    P <- diag(1, nrow(V)) + tcrossprod(V[, sign > 0, drop = FALSE]) - tcrossprod(V[, sign < 0, drop = FALSE])
    R <- tryCatch(chol(P), error = function(e) if (is_time_limit(e)) stop(e))
    if (is.null(R)) return(c(NaN, NaN, hat * w / W))
    backsolve(R, backsolve(R, solved, transpose = TRUE))
  }
  c(sum(u * y_near) + sum(r_x * solved[, 1L]), left + sum(r_x * solved[, 2L]), hat * w / W)
}

around_r <- function(terms, around, g, u) terms$U[, g] - drop(terms$U[, around$rows, drop = FALSE] %*% u)
