# How far the exact Gaussian process can be from a posterior on inducing points: norms, with every rounding allowed for.

# The most that k(x, x) is at the rows and the points; norms of fits of before do not have it: there it is constant.
most_of_rows <- function(norms, model) if (is.null(norms$most)) prior_most(model) else norms$most

# |error| of e = y - A'beta as computed, what errors of A in A'beta add, and of v: beta is not quite
# (s2 I + G)^{-1} A y, and errors of A move it too, |B^{-1} A'| <= 1 / (2 sqrt(s2)).
residual_error <- function(p, norms, model) {
  noise <- model$noise
  beta <- sqrt(sum(p$beta^2))
  e <- norms$growth * (sqrt(p$yy) + sqrt(sum(diag(p$G))) * beta)
  k <- most_of_rows(norms, model)
  moved <- sqrt(norms$slack * k * norms$weight * norms$vv)
  row <- norms$growth * sqrt(k * p$k_sum) * norms$alpha
  list(e = e, row = row, v = (norms$beta_error / noise + moved) / (2 * sqrt(noise)) + (e + row) / noise)
}

# |w|_E <= |v|_E c / (c + |v|_E^2), never above sqrt(c) / 2
bound_w <- function(c, v_E) {
  if (is.na(c) || is.na(v_E)) return(Inf) # beyond double precision: nothing is known
  if (c <= 0) 0 else if (v_E^2 <= c) v_E * (c / (c + v_E^2)) else sqrt(c) / 2
}

# What certify_rows() in C wants to know, every number rounded up (certify.h has the reasons). `fast`: groups of m rows
# for both norms; else T1 on as many rows as are free beside the reference itself, T2 on 200; `tight`: one
# group. `same`: norms on the same points of another response, whose T2 is taken. `inner`: norms on some of the points,
# whose bound of |w|_E holds here too, so that T1 is left out: more points with the same jitter leave less, and that L
# has other rounding errors is well inside its kappa. `sharp`: FALSE leaves out T1 as well.
posterior_norms <- function(p, z, data, model, fast = FALSE, tight = FALSE, control = NULL, inner = NULL,
                            same = NULL, sharp = TRUE) {
  n <- nrow(data$x)
  m <- nrow(z)
  size <- norm_groups(m)
  if (fast) size <- c(m, m)
  if (tight) size <- c(n, n)
  size <- pmin(n, size) * c(is.null(inner) && sharp, is.null(same))
  norms <- rows_norms(p, z, data, model, size, control)
  if (!is.null(same)) norms[c("Psi", "lam", "spread")] <- same[c("Psi", "lam", "spread")]
  finish_norms(norms, p, model, inner)
}

# Rows of the groups that T1 and T2 of a reference on m points are made of.
norm_groups <- function(m) c(max(m, m^2 %/% 16), 200)

# What some rows add to norms, in groups of `size` rows for T1 and for T2.
rows_norms <- function(p, z, data, model, size, control) {
  n <- nrow(data$x)
  found <- native_norms(p, z, data, model, sample.int(n), size[1L], size[2L], control)
  c(found[c("T1", "Psi", "lam", "vv", "spread")],
    list(n = n, weight = if (is.null(data$weights)) 1 else max(data$weights), most = prior_most(model, data$x, z)))
}

# Of some rows and of others: groups are groups of all, whose shares in Psi and in `spread` are smaller.
norms_merge <- function(a, b) {
  n <- a$n + b$n
  list(T1 = a$T1 + b$T1, Psi = a$Psi * (n / a$n) + b$Psi * (n / b$n), lam = a$lam + b$lam, vv = a$vv + b$vv,
       spread = max(a$spread * (n / a$n), b$spread * (n / b$n)), n = n, weight = max(a$weight, b$weight),
       most = max(a$most, b$most))
}

# Those of all rows, with every rounding allowed for.
finish_norms <- function(norms, p, model, inner = NULL) {
  noise <- model$noise
  m <- nrow(p$G)
  n <- norms$n
  growth <- rounding_growth(m, n)
  up <- 1 + growth
  G_norm <- sqrt(sum(p$G^2))
  beta <- sqrt(sum(p$beta^2))
  out <- list(
    weight = norms$weight, spread = norms$spread, slack = rounding_slack(m, n), most = norms$most,
    growth = growth, vv = norms$vv, Psi = norms$Psi, alpha = sqrt(sum(solve_t(p$L, p$beta)^2)),
    # beta solves (s2 I + G) beta = A y up to this: errors of the factor and of the sum A y
    beta_error = growth * (G_norm * beta + sqrt(sum(diag(p$G)) * p$yy)))
  of_rows <- sqrt(out$slack * p$k_sum) # errors of A as a whole
  out$t <- up * (sqrt(p$t) + of_rows)^2
  out$lam <- min(out$t, up * (sqrt(norms$lam) + of_rows)^2)

  error <- residual_error(p, out, model)
  kappa <- sqrt(out$slack * out$most * out$weight) # of a vector over the rows of length 1
  kappa_v <- kappa * sqrt(norms$vv)
  out$v_E <- up * min(norms$T1, sqrt(out$lam * norms$vv) + kappa_v) + sqrt(out$lam) * error$v
  # y'v = min over beta of |y - A'beta|^2 / s2 + |beta|^2: an inexact beta gives more, errors of A move it by what they
  # do to |v|_E, or row by row; y'y / s2 is never exceeded
  value <- function(e) up * (e^2 / noise + beta^2)
  e <- sqrt(p$rss) + error$e
  out$c <- min(value(e) + (2 * out$v_E + kappa_v) * kappa_v, value(e + error$row), up * p$yy / noise)
  if (!isTRUE(growth * G_norm / noise < 0.25)) out$v_E <- Inf # s2 is lost beside the rounding of G
  out$w_norm <- sqrt(out$c / noise)
  out$w_E <- min(bound_w(out$c, out$v_E) + kappa * out$w_norm, inner$w_E)
  infinite_if_overflow(out)
}

# Replaces NaN, which overflow leaves, by Inf: each norm is an upper bound.
infinite_if_overflow <- function(norms) {
  lapply(norms, function(v) {
    v[is.nan(v)] <- Inf
    v
  })
}

# What posterior_norms() says, from the sums alone: |v|_E <= sqrt(t) |v|.
norms_of_sums <- function(p, model, n) {
  m <- nrow(p$G)
  slack <- rounding_slack(m, n)
  growth <- rounding_growth(m, n)
  most <- total_variance(model$kernel)
  weight <- p$k_sum / most # of all rows together, most * weight is no less than k(x,x) times the weight of any
  t <- (1 + growth) * (sqrt(p$t) + sqrt(slack * p$k_sum))^2
  G_norm <- sqrt(sum(p$G^2))
  beta <- sqrt(sum(p$beta^2))
  A_norm <- sqrt(sum(diag(p$G)))
  alpha <- sqrt(sum(solve_t(p$L, p$beta)^2))
  beta_error <- growth * (G_norm * beta + A_norm * sqrt(p$yy))
  vv <- p$rss / model$noise^2
  norms <- list(slack = slack, most = most, growth = growth, weight = weight, t = t, lam = t, alpha = alpha,
                beta_error = beta_error, vv = vv)
  error <- residual_error(p, norms, model)
  norms$v_E <- (1 + growth) * (sqrt(t * vv) + sqrt(slack * most * weight * vv)) + sqrt(t) * error$v
  infinite_if_overflow(norms)
}

# From one posterior's sums, with c = y'(Q + s2 I)^{-1} y = |y - A'beta|^2 / s2 + |beta|^2 and any tau >= s2 + t:
#   max(c^2 / (c + |v|_E^2), y'(Q + tau I)^{-1} y) <= y'w <= c.
# Rounding, in the symbols of certify.h. c is the least of |y - A'b|^2 / s2 + |b|^2 over b, so the computed beta gives
# no less, and it is the largest of 2 u'y - |A u|^2 - s2 |u|^2 over u, so v = (y - A'beta) / s2 gives no more: that is
# s2 |v|^2 + |beta|^2 - |A v - beta|^2, A v - beta = (A y - (s2 I + G) beta) / s2. Errors L^{-1} r of A move |A u|^2 by
# (2 |u|_E + kappa) kappa, kappa^2 = slack sum k w u^2, and A'b by r'L^{-T} b: whichever is less. Sums and differences
# err by growth times their terms.
quadratic_bracket <- function(p, norms, model) {
  noise <- model$noise
  growth <- norms$growth
  error <- residual_error(p, norms, model)
  G_norm <- sqrt(sum(p$G^2))
  if (!all(is.finite(c(unlist(error), G_norm, norms$t, norms$lam)))) return(list(lower = 0, upper = Inf, least = 0))
  beta <- sqrt(sum(p$beta^2))
  A_norm <- sqrt(sum(diag(p$G)))
  e <- sqrt(p$rss)
  v <- sqrt(norms$vv) + error$v
  kappa <- sqrt(norms$slack * most_of_rows(norms, model) * norms$weight) * v
  moved <- if (kappa > 0) (2 * norms$v_E + kappa) * kappa else 0
  upper <- (1 + growth) * ((e + error$e)^2 / noise + beta^2)
  by_row <- (1 + growth) * ((e + error$e + error$row)^2 / noise + beta^2)
  upper <- min(upper + moved, by_row, (1 + growth) * p$yy / noise)
  by_row <- 2 * (v * error$row + kappa * norms$beta_error / noise) + kappa^2
  lower <- (1 - growth) * (max(e - error$e, 0)^2 / noise + beta^2) - (norms$beta_error / noise)^2 - min(moved, by_row)
  least <- if (lower > 0) lower / (1 + norms$v_E^2 / lower) else 0

  tau <- noise + norms$t
  if (growth * (G_norm + tau) < tau / 8) {
    R <- chol(p$G + diag(tau, nrow(p$G)))
    u <- backsolve(R, p$Ay, transpose = TRUE)
    b <- backsolve(R, u)
    row <- growth * sqrt(most_of_rows(norms, model) * p$k_sum * sum(solve_t(p$L, b)^2))
    b <- sqrt(sum(b^2))
    b_error <- growth * ((G_norm + tau) * b + A_norm * sqrt(p$yy))
    sums <- growth * (p$yy + sum(u^2)) + 4 * b * b_error
    moved <- min(2 * sqrt(norms$lam) * v * kappa, 2 * (v * row + kappa * b_error / tau)) + kappa^2
    least <- max(least, (p$yy - sum(u^2) - sums) / tau - moved)
  }
  list(lower = max(lower, 0), upper = upper, least = max(least, 0))
}

# What rounding in the response, its offset, centring and merging does to any mean: |h_x| <= sqrt(k) / (2 sqrt(s2)), in
# units of y. The rows themselves count, not what is left of them where equal rows with unlike responses were merged.
response_rounding <- function(fit, x) {
  4 * .Machine$double.eps * response_size(fit) * sqrt(prior_most(fit, x) / fit$noise) / 2
}
