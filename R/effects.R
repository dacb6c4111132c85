# Grouped effects beside inducing points (src/effects.h): y = f(x) + Z b + noise. The levels of the grouping with the
# most effects are eliminated; the effects of other groupings are features beside those of the inducing points.
#
# A grouping is list(column, levels, design, root): the column of the rows that has the level (from 1), the number of
# levels, the columns of the design (0 for an intercept), and the lower root of the covariance of a level's effects.

# Returns the factors of the posterior of these rows: list(L, jitter, sums, groupings, U, gamma, W, b, covariance, R,
# logdet, quad, t). `sums` do not depend on the noise and on the roots.
effect_posterior <- function(z, data, model, groupings, jitter, control = NULL) {
  found <- native_effect_sums(z, data, model, groupings, jitter, control = control)
  c(found[c("L", "jitter")], factors_of_effects(found$sums, nrow(z), ncol(data$x), groupings, model$noise, control))
}

# Returns the factors for finished sums of rows with so many columns, beside m inducing points.
factors_of_effects <- function(sums, m, columns, groupings, noise, control = NULL) {
  from <- eliminate_levels(sums, m, columns, groupings, noise, control)
  p <- list(sums = sums, U = from$U, W = times_roots(t(backsolve(from$R, diag(1, nrow(from$R)))), m, groupings, TRUE),
            gamma = drop(times_roots(t(from$beta), m, groupings, TRUE)))
  p$W <- t(p$W)
  own <- native_effect_solve(m, columns, groupings, p, noise, control)
  c(p, list(groupings = groupings, b = c(own$b, p$gamma[-seq_len(m)]), covariance = own$covariance, R = from$R),
    from[c("logdet", "quad", "t", "n")])
}

# Returns list(U, R, beta, logdet, quad, t, n). With P+ = I + A+ A+' / s2: R'R is its Schur complement after the
# elimination, `logdet` = log det P+, and `quad` = y'B+^{-1} y.
eliminate_levels <- function(sums, m, columns, groupings, noise, control = NULL) {
  from <- native_eliminate(m, columns, groupings, sums, noise, control)
  s <- sums_beside_levels(sums, m, groupings)
  S <- s$P / noise - from$eliminated
  S <- times_roots(t(times_roots(S, m, groupings)), m, groupings)
  diag(S) <- diag(S) + 1
  R <- chol(S)
  c <- drop(times_roots(t(s$Fy / noise - from$h), m, groupings))
  beta <- backsolve(R, backsolve(R, c, transpose = TRUE))
  list(U = from$U, R = R, beta = beta, logdet = from$logdet + 2 * sum(log(diag(R))),
       quad = max(s$yy / noise - from$quad - sum(c * beta), 0), t = max(s$t, 0), n = s$n)
}

# Returns list(P = F F', Fy, yy, t, n) of the features F that are not eliminated.
sums_beside_levels <- function(sums, m, groupings) {
  q <- vapply(groupings, effects_of_grouping, 0)
  k <- m + sum(q[-1L])
  head <- m^2 + m + 5
  G <- matrix(sums[seq_len(m^2)], m)
  Fy <- sums[m^2 + seq_len(m)]
  rest <- sums[m^2 + m + c(1L, 3L, 4L)]
  if (k > m) {
    H <- matrix(sums[head + k * q[1L] + seq_len(k * (k - m))], k)
    G <- cbind(rbind(G, t(H[seq_len(m), , drop = FALSE])), H)
    Fy <- c(Fy, utils::tail(sums, k - m))
  }
  list(P = G, Fy = Fy, yy = rest[1L], t = rest[2L], n = rest[3L])
}

effects_of_grouping <- function(g) nrow(g$root) * g$levels

# Returns X D, or with `transpose` X D', where D has 1 for each of m inducing points and the roots of all but the first
# grouping on its diagonal.
times_roots <- function(X, m, groupings, transpose = FALSE) {
  at <- m
  for (g in groupings[-1L]) {
    root <- if (transpose) t(g$root) else g$root
    p <- nrow(root)
    own <- at + matrix(seq_len(p * g$levels), p)
    parts <- lapply(seq_len(p), function(i) X[, own[i, ], drop = FALSE])
    for (j in seq_len(p)) X[, own[j, ]] <- Reduce(`+`, Map(`*`, parts, root[, j]))
    at <- at + length(own)
  }
  X
}
