# Certificates beside groups, with all effects eliminated (effects.R). Effects are inducing variables that leave nothing
# unexplained, so the residual E is that of the smooth part, and the bounds of certify-laplace.R hold for the features
# of effects beside those of the inducing points. Row n of weight w_n has features f_n (of F) and o_n (of its level, see
# effects.h), whose products are posterior covariances. The weights of the posterior at x are h_n = w_n (f_n'f_x + [same
# level] o_n'o_x). For blocks b with n_b of the n rows, and n_lb of the n_l rows of level l,
#
#   |h_x|_E <= sqrt(f_x'Psi f_x) + sqrt(o_x'Psi_l o_x),
#   Psi = sum_b (n / n_b) F_b E_bb F_b',  Psi_l = sum_b (n_l / n_lb) O_lb E_lb O_lb',  F and O times the weights.

# Returns bounds `b` whose posteriors have all effects. E is the residual of the smooth part.
bounds_with_effects <- function(b) structure(replace(b, "smooth", list(smooth_model(b$model))), class = "with_effects")

# `norms` of the result has effect_forms(), `inner` (relative rounding error of the factors), `weight` (the largest).
weighted_posterior.with_effects <- function(b, weights, norms) {
  data <- list(x = b$data$x, y = numeric(length(weights)), weights = weights)
  factors <- effect_posterior(b$z, data, b$model, b$jitter, b$fit$control)
  size <- sum(weights * prior_at(b$model, data$x))
  factors$G <- matrix(size) # an upper bound of the norm
  inner <- max(1e3, 1 + size) * b$growth
  list(factors = factors, weights = weights,
       norms = if (norms) c(effect_forms(b, factors, weights), inner = inner, weight = max(weights)))
}

features_with_effects <- function(b, factors, x) {
  x <- numbered(x, factors$groupings)
  c(native_effect_predict(factors, b$z, b$smooth, x, TRUE, b$fit$control), list(x = x))
}

# The number of rows of a block, as for T2 of other posteriors.
effect_block <- 200L

# Returns list(all, own, lam, spread): Psi, Psi_l in row l, a bound of |E|_2 with weights, the largest ratio n / n_b. If
# given, the matrix `diagonal` replaces E, and blocks add up without the ratios.
effect_forms <- function(b, factors, weights, diagonal = NULL) {
  g <- factors$groupings[[1L]]
  level <- numbered(b$data$x, factors$groupings)[, g$column]
  n <- length(level)
  n_l <- tabulate(level, g$levels)
  d <- nrow(g$root)
  all <- lam <- 0
  own <- matrix(0, g$levels, d^2)
  spread <- 1
  in_order <- order(sample.int(g$levels)[level]) # rows of a level together, levels at random
  for (rows in split(in_order, (seq_len(n) - 1L) %/% effect_block)) {
    at <- features_with_effects(b, factors, b$data$x[rows, , drop = FALSE])
    A <- forwardsolve(factors$L, native_kernel_matrix(b$smooth$kernel, b$z, at$x))
    E <- if (is.null(diagonal)) native_kernel_matrix(b$smooth$kernel, at$x, at$x) - crossprod(A) else
      diag(diagonal[rows], length(rows))
    l <- level[rows]
    n_lb <- tabulate(match(l, l))[match(l, l)]
    share <- if (is.null(diagonal)) list(n / length(rows), n_l[l] / n_lb) else list(1, 1)
    f <- at$features * rep(weights[rows], each = nrow(at$features))
    o <- t(at$own) * weights[rows]
    all <- all + share[[1L]] * (f %*% tcrossprod(E, f))
    Eo <- (E * outer(l, l, "==")) %*% o
    pairs <- o[, rep(seq_len(d), d), drop = FALSE] * Eo[, rep(seq_len(d), each = d), drop = FALSE]
    each <- rowsum(share[[2L]] * pairs, l)
    there <- as.integer(rownames(each))
    own[there, ] <- own[there, ] + each
    root <- sqrt(weights[rows])
    lam <- lam + max(colSums(abs(E * root)) * root)
    spread <- max(spread, unlist(share))
  }
  list(all = all, own = own, lam = lam, spread = spread)
}

# Returns an upper bound of sqrt(f'Psi f) + sqrt(o'Psi_l o) for the rows of features_with_effects().
effect_root <- function(b, factors, forms, at) {
  g <- factors$groupings[[1L]]
  d <- nrow(g$root)
  level <- at$x[, g$column]
  own <- forms$own[ifelse(level >= 1 & level <= g$levels, level, 1), , drop = FALSE]
  o <- t(at$own)
  pairs <- o[, rep(seq_len(d), d), drop = FALSE] * o[, rep(seq_len(d), each = d), drop = FALSE]
  by_level <- rowSums(own * pairs)
  by_all <- colSums(at$features * (forms$all %*% at$features))
  rounding <- 1e3 * b$growth
  sqrt(pmax(by_all, 0) + rounding * sqrt(sum(forms$all^2)) * colSums(at$features^2)) +
    sqrt(pmax(by_level, 0) + rounding * rowSums(abs(own)) * rowSums(o^2))
}

# Returns the variances without `new`, the variance of new levels, see variances_at().
variances_at.with_effects <- function(b, post, x) {
  norms <- post$norms
  at <- features_with_effects(b, post$factors, x)
  new <- covariance_of_new(post$factors$groupings, at$x, FALSE)
  prior <- prior_at(b$model, x)
  slack <- b$slack * pmax(b$most, prior)
  left <- pmax(at$unexplained - new, 0)
  kappa <- sqrt(slack) * (1 + sqrt(norms$spread * norms$weight * at$sor_variance))
  moved <- norms$inner * sqrt(norms$lam * at$sor_variance)
  eta <- if (norms$inner < 0.25) effect_root(b, post$factors, norms, at) + moved + kappa else Inf
  wide <- sqrt(left + slack) + eta
  room <- norms$inner * at$sor_variance
  least <- pmax(sqrt(pmax(left - slack, 0)) - eta, 0)^2 / (1 + norms$lam * (1 + 1e3 * b$growth))
  list(sor_variance = at$sor_variance - room, unexplained = left, eta = eta,
       var_lower = if (norms$inner < 0.25) at$sor_variance - room - 2 * wide * kappa - slack + least else 0 * left,
       var_upper = pmin(at$sor_variance + room + wide^2, prior - new + slack), new = new)
}

# Returns Z'v for the design Z of a grouping, as a matrix with p effects in rows and a column for each level.
sums_by_level <- function(g, x, v) {
  sums <- rowsum(t(design_of(g, x)) * v, x[, g$column])
  all <- matrix(0, nrow(g$root), g$levels)
  all[, as.integer(rownames(sums))] <- t(sums)
  all
}

# Returns what laplace_at() returns at the mode, for factors with groups. `sites(f)` returns list(f, g, W): f with its
# offset, slopes and weights. `zeta` has the whitened effects.
mode_with_effects <- function(b, factors, sites) {
  factors$shift <- NULL
  x <- numbered(b$data$x, factors$groupings)
  at <- native_effect_predict(factors, b$z, b$smooth, x, FALSE, b$fit$control)
  found <- sites(at$mean)
  beta <- factors$gamma[seq_len(nrow(factors$L))]
  parts <- Map(function(g, effects) {
    s <- svd(g$root) # a root may be singular
    list(zeta = s$v %*% (crossprod(s$u, effects$b) / ifelse(s$d > 0, s$d, Inf)),
         of_slopes = crossprod(g$root, sums_by_level(g, x, found$g)))
  }, factors$groupings, effects_of(factors))
  zeta <- unlist(lapply(parts, `[[`, "zeta"))
  whole <- forwardsolve(factors$L, native_kernel_cross_matvec(b$smooth$kernel, x, found$g, b$z, b$fit$control))
  residual <- c(beta - drop(whole), zeta - unlist(lapply(parts, `[[`, "of_slopes")))
  c(found, list(L = factors$L, C = diag(1, length(beta)), beta = beta, zeta = zeta, residual = residual,
                left = pmax(at$unexplained, 0), jitter = factors$jitter, logdet = factors$logdet, factors = factors))
}

# ---- the preconditioner ---------------------------------------------------------------------------------------------

# Returns TRUE if groups have more levels than a reference has points for.
has_many_levels <- function(model, x) has_own_levels(model$kernel) && count_effects(model$kernel, x) > 1000

# Returns near_preconditioner() for many levels: (Q + K_g + s2 I)^{-1} r, where Q is the smooth part of K by points z.
# With weights in r, it is (r - mean) / s2 for the mean of the posterior of the response r at the rows.
effects_preconditioner <- function(z, data, model, control) {
  kernel <- smooth_part(model$kernel)
  z <- distinct_points(z, kernel)
  m <- nrow(z)
  root <- root_weights(data)
  data$y <- numeric(nrow(data$x))
  f <- effect_posterior(z, data, model, rounding_jitter(m), control)
  x <- numbered(data$x, f$groupings)
  H <- effect_sums(f$sums, m, f$groupings)
  r_at <- length(f$sums) - length(f$b) + seq_along(f$b)
  exactly <- function(n, nsim) 0
  function(r) {
    f$sums[r_at] <- unlist(lapply(f$groupings, sums_by_level, x, root * r))
    Fr <- c(forwardsolve(f$L, native_kernel_cross_matvec(kernel, x, root * r, z, control)),
            f$sums[r_at[-seq_len(ncol(H))]])
    h <- H %*% drawn_levels(f, matrix(0, nrow(H), 1L), exactly)
    gamma <- f$W %*% crossprod(f$W, (Fr - h) / f$noise)
    smooth <- native_kernel_cross_matvec(kernel, z, solve_t(f$L, gamma[seq_len(m)]), x, control)
    (r - root * drop(add_drawn_effects(smooth, f, gamma, x, exactly))) / f$noise
  }
}
