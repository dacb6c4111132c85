# Computes upper bounds, rounding included, on the norms that certificates need. For training rows X, K = k(X, X) and
# noise variance s2, inducing points Z, L L' = k(Z, Z) and A = L^{-1} k(Z, X), let Q = A'A, E = K - Q, t the trace of E,
# v = (Q + s2 I)^{-1} y, w = (K + s2 I)^{-1} y, |v|_E^2 = v'E v, G = A A', beta = (s2 I + G)^{-1} A y.

# Returns bounds on rounding errors: `e` of the residuals y - A'beta, `row` of A'beta by errors of A = L^{-1} k(Z, X),
# and `v` of v = (A'A + s2 I)^{-1} y. The exact beta solves (s2 I + A A') beta = A y. A residual d of this equation
# moves A'beta by at most |d| / (2 sqrt(s2)), as |(A'A + s2 I)^{-1} A'| <= 1 / (2 sqrt(s2)).
residual_error <- function(p, norms, model) {
  noise <- model$noise
  e <- norms$growth * (sqrt(p$yy) + sqrt(sum(diag(p$G))) * norm2(p$beta))
  k <- norms$most %||% prior_most(model) # version 0.1.0 did not keep the largest k(x, x)
  moved <- sqrt(norms$slack * k * norms$weight * norms$vv)
  row <- norms$growth * sqrt(k * p$k_sum) * norms$alpha
  list(e = e, row = row, v = (norms$beta_error / noise + moved) / (2 * sqrt(noise)) + (e + row) / noise)
}

# Returns a bound on |w|_E = sqrt(w'E w) from c = y'v: |v|_E c / (c + |v|_E^2), or sqrt(c) / 2 if |v|_E^2 > c. Here
# v = (Q + s2 I)^{-1} y, w = (K + s2 I)^{-1} y, and E = K - Q, where Q approximates K by inducing points.
bound_w <- function(c, v_E) {
  if (is.na(c) || is.na(v_E)) return(Inf) # numbers overflowed
  if (c <= 0) 0 else if (v_E^2 <= c) v_E * (c / (c + v_E^2)) else sqrt(c) / 2
}

# Returns the norms that certificates need for the DTC posterior p. With A = L^{-1} k(Z, X) and E = K - A'A, sums over
# blocks of rows give T1 >= sqrt(v'E v), v = (A'A + s2 I)^{-1} y, and Psi, with c'A E A'c <= c'Psi c for every c. Larger
# blocks give smaller bounds. A block has all rows if `tight`, m rows if `fast`, else norm_groups(m). `same` may have
# norms for another y: its Psi is used. `inner` may have norms on a subset of the inducing points: its bound on w'E w,
# w = (K + s2 I)^{-1} y, holds for p too. With `inner`, or if `sharp` is FALSE, T1 is not computed (Inf).
posterior_norms <- function(p, z, data, model, fast = FALSE, tight = FALSE, control = NULL, inner = NULL,
                            same = NULL, sharp = TRUE) {
  n <- nrow(data$x)
  m <- nrow(z)
  size <- if (tight) c(n, n) else if (fast) c(m, m) else norm_groups(m)
  norms <- rows_norms(data, p, z, model, size * c(is.null(inner) && sharp, is.null(same)), control)
  if (!is.null(same)) norms[c("Psi", "lam", "spread")] <- same[c("Psi", "lam", "spread")]
  finish_norms(norms, p, model, inner)
}

# Returns the numbers of rows in a block for the sums T1 and Psi of rows_norms(). With m points, each costs O(n m^2).
norm_groups <- function(m) c(max(m, m^2 %/% 16), 200)

# Returns sums over random blocks b of rows. Let A = L^{-1} k(Z, X), E = K - A'A, v = (A'A + s2 I)^{-1} y, vv = |v|^2.
# Block b (A_b, E_bb) has n_b of n rows. With size[1] rows in a block, T1 bounds sqrt(v'E v). With size[2] rows, lam
# bounds the largest eigenvalue of E, Psi = sum_b (n / n_b) A_b E_bb A_b', and `spread` is the largest n / n_b.
rows_norms <- function(data, p, z, model, size, control) {
  n <- nrow(data$x)
  size <- pmin(n, size)
  found <- native_norms(p, z, data, model, sample.int(n), size[1L], size[2L], control)
  c(found[c("T1", "Psi", "lam", "vv", "spread")],
    list(n = n, weight = if (is.null(data$weights)) 1 else max(data$weights), most = prior_most(model, data$x, z),
         unit = kernel_value_error(model$kernel, data$x, z)))
}

# Combines the results `a` and `b` of rows_norms() for two parts of the rows. Most elements are sums over rows or
# maxima. Psi and `spread` are proportional to the number of rows, so they are scaled to the rows of both parts.
norms_merge <- function(a, b) {
  n <- a$n + b$n
  list(T1 = a$T1 + b$T1, Psi = a$Psi * (n / a$n) + b$Psi * (n / b$n), lam = a$lam + b$lam, vv = a$vv + b$vv,
       spread = max(a$spread * (n / a$n), b$spread * (n / b$n)), n = n, weight = max(a$weight, b$weight),
       most = max(a$most, b$most), unit = max(a$unit, b$unit))
}

# Returns the bounds that certificates need, such as v_E on |v|_E and w_E on |w|_E, from the result of rows_norms().
# Here |v|_E^2 = v'E v, v = (Q + s2 I)^{-1} y, w = (K + s2 I)^{-1} y, and E = K - Q is the residual prior covariance.
finish_norms <- function(norms, p, model, inner = NULL) {
  noise <- model$noise
  m <- nrow(p$G)
  n <- norms$n
  growth <- rounding_growth(m, n)
  up <- 1 + growth
  G_norm <- norm2(p$G)
  beta <- norm2(p$beta)
  out <- list(weight = norms$weight, spread = norms$spread, slack = rounding_slack(m, n), most = norms$most,
    unit = norms$unit, growth = growth, vv = norms$vv, Psi = norms$Psi, alpha = weights_norm(p),
    # This bounds the residual of (s2 I + G) beta = A y that comes from rounding in the Cholesky factor and in A y.
    beta_error = growth * (G_norm * beta + sqrt(sum(diag(p$G)) * p$yy)))
  of_rows <- sqrt(out$slack * p$k_sum) # bounds the Frobenius norm of the rounding errors of A
  out$t <- up * (sqrt(p$t) + of_rows)^2
  out$lam <- min(out$t, up * (sqrt(norms$lam) + of_rows)^2)
  # Errors of kernel values change K by a matrix of norm at most unit K_norm.
  out$K_norm <- if (out$unit > 4 * .Machine$double.eps) sum(diag(p$G)) + out$t else G_norm + out$lam

  error <- residual_error(p, out, model)
  kappa <- sqrt(out$slack * out$most * out$weight) # bounds |dA u| for |u| = 1, with dA the rounding error of A
  kappa_v <- kappa * sqrt(norms$vv)
  out$v_E <- up * min(norms$T1, sqrt(out$lam * norms$vv) + kappa_v) + sqrt(out$lam) * error$v
  # For A = L^{-1} k(Z, X) and any beta, c = y'(A'A + s2 I)^{-1} y is at most |y - A'beta|^2 / s2 + |beta|^2. Rounding
  # errors of A add at most (2 out$v_E + kappa_v) kappa_v to c, or error$row to |y - A'beta|. Use the smaller bound.
  value <- function(e) up * (e^2 / noise + beta^2)
  e <- noise * sqrt(norms$vv) + error$e # v = (y - A'beta) / s2
  out$c <- min(value(e) + (2 * out$v_E + kappa_v) * kappa_v, value(e + error$row), up * p$yy / noise)
  if (!isTRUE(growth * G_norm / noise < 0.25)) out$v_E <- Inf # rounding errors of G may exceed s2 / 4
  out$w_norm <- sqrt(out$c / noise)
  out$w_E <- min(bound_w(out$c, out$v_E) + kappa * out$w_norm, inner$w_E)
  lapply(out, function(v) replace(v, is.nan(v), Inf)) # overflow leaves NaN; each norm is an upper bound
}

# Returns finish_norms() for the sums of a posterior p, without a pass over the rows. sqrt(t) |v| bounds sqrt(v'E v),
# where v = (Q + s2 I)^{-1} y, Q approximates K by inducing points, and t is the trace of E = K - Q.
norms_of_sums <- function(p, z, model, n) {
  most <- prior_most(model, z)
  # finish_norms() needs most * weight >= w_i k(x_i, x_i) for each row i. k_sum is the sum of w_i k(x_i, x_i).
  finish_norms(list(n = n, weight = p$k_sum / most, most = most, unit = kernel_value_error(model$kernel, z),
                    vv = p$rss / model$noise^2, T1 = Inf, lam = Inf), p, model)
}

# Returns bounds `lower` and `upper` on c = y'v, and `least`, a lower bound on y'w, rounding errors included (section 10
# of the theory vignette). Here v = (Q + s2 I)^{-1} y, w = (K + s2 I)^{-1} y, Q = A'A, A = L^{-1} k(Z, X), beta = A v,
# t is the trace of E = K - Q and, for any tau >= s2 + t,
#   max(c^2 / (c + v'E v), y'(Q + tau I)^{-1} y) <= y'w <= c = |y - A'beta|^2 / s2 + |beta|^2.
quadratic_bracket <- function(p, norms, model) {
  noise <- model$noise
  growth <- norms$growth
  error <- residual_error(p, norms, model)
  G_norm <- norm2(p$G)
  if (!all(is.finite(c(unlist(error), G_norm, norms$t, norms$lam)))) return(list(lower = 0, upper = Inf, least = 0))
  beta2 <- sum(p$beta^2)
  e <- sqrt(p$rss)
  v <- sqrt(norms$vv) + error$v
  kappa <- sqrt(norms$slack * (norms$most %||% prior_most(model)) * norms$weight) * v
  moved <- if (kappa > 0) (2 * norms$v_E + kappa) * kappa else 0
  by_row <- 2 * (v * error$row + kappa * norms$beta_error / noise) + kappa^2
  lower <- (1 - growth) * (max(e - error$e, 0)^2 / noise + beta2) - (norms$beta_error / noise)^2 - min(moved, by_row)
  least <- if (lower > 0) lower / (1 + norms$v_E^2 / lower) else 0

  tau <- noise + norms$t
  if (growth * (G_norm + tau) < tau / 8) {
    R <- chol(p$G + diag(tau, nrow(p$G)))
    u <- backsolve(R, p$Ay, transpose = TRUE)
    b <- backsolve(R, u)
    row <- growth * sqrt((norms$most %||% prior_most(model)) * p$k_sum * sum(solve_t(p$L, b)^2))
    b <- norm2(b)
    b_error <- growth * ((G_norm + tau) * b + sqrt(sum(diag(p$G))) * sqrt(p$yy))
    sums <- growth * (p$yy + sum(u^2)) + 4 * b * b_error
    moved <- min(2 * sqrt(norms$lam) * v * kappa, 2 * (v * row + kappa * b_error / tau)) + kappa^2
    least <- max(least, (p$yy - sum(u^2) - sums) / tau - moved)
  }
  list(lower = max(lower, 0), upper = norms$c, least = max(least, 0))
}

# Bounds the error of the predicted mean at x, in units of y, that comes from rounding of the responses. The mean is h'y
# with |h| <= sqrt(k(x, x)) / (2 sqrt(s2)). In non-Gaussian fits, s2 is the square of likelihood$unit.
response_rounding <- function(fit, x) {
  4 * .Machine$double.eps * response_size(fit) * sqrt(prior_most(fit, x) / fit$noise) / 2 / (fit$likelihood$unit %||% 1)
}

distinct_points <- function(z, kernel) choose_greedy(z, nrow(z), kernel, Inf)$z

# Returns a gp_dtc() fit to `data` with the model of `fit`: the DTC posterior and its norms, on points z that differ by
# more than rounding. `inner` is an earlier such fit on some of the points, or list(jitter).
dtc_on_points <- function(fit, data, z, call, fast, tight = FALSE, inner = NULL) {
  model <- model_of(fit)
  jitter <- if (is.null(inner)) rounding_jitter(nrow(z)) else inner$jitter
  posterior <- native_posterior(z, data, model, jitter, control = fit$control, rss = FALSE)
  norms <- posterior_norms(posterior, z, data, model, fast, tight, fit$control,
                           if (posterior$jitter == jitter) inner$norms)
  fit_of_posterior(new_posterior("points", model, fit, data, z = z, jitter = posterior$jitter, norms = norms,
                                 factors = c(posterior, list(rss = model$noise^2 * norms$vv))), call = call)
}

# Returns a fit with a DTC posterior and its norms, on the inducing points of `fit` or the rows of an exact fit. If
# `fit` has no groups, is DTC or SoR, and has a jitter above rounding and at most 1e-10, its own posterior is used.
own_posterior <- function(fit) {
  p <- posterior_of(fit)
  near <- inherits(p, "near")
  grouped <- inherits(p, c("grouped", "grouped_near"))
  if (near && !grouped) p <- posterior_on_points(p)
  if (inherits(p, "points") && !grouped && !p$fitc && p$jitter >= safe_jitter(nrow(p$z)) && p$jitter <= 1e-10) {
    p$norms <- posterior_norms(p$factors, p$z, p$rows, p$model, fast = TRUE, control = p$control)
    return(if (near) fit_of_posterior(p) else replace(fit, "norms", list(p$norms)))
  }
  z <- p$z %||% p$x
  # Add a row of each level of the groups, up to 1,000 points, because levels need inducing points too.
  for (g in c(p$factors$groupings, p$near$groupings)) {
    rows <- which(!duplicated(fit$data$x[, g$column]))
    z <- rbind(z, fit$data$x[utils::head(rows, max(0L, 1000L - nrow(z))), , drop = FALSE])
  }
  dtc_on_points(fit, fit$data, distinct_points(z, p$model$kernel), NULL, fast = TRUE)
}

# Returns norms with `unit`, a bound on errors of kernel values, for new rows x too. Norms of version 0.1.0 lack `most`
# (0 replaces it), and norms of earlier versions lack `unit` and K_norm (tr K replaces it).
norms_for <- function(norms, factors, model, x) {
  norms$most <- norms$most %||% 0
  norms$unit <- max(norms$unit, kernel_value_error(model$kernel, x))
  norms$K_norm <- norms$K_norm %||% (sum(diag(factors$G)) + norms$t)
  norms
}

# Returns the mean, its error bound, and variances with bounds for functionals, in units of the cleaned response.
# `factors` and `norms` are those of a DTC posterior. `crossing`, the result of native_cross(), narrows the bounds on
# the variance.
certify_with <- function(factors, norms, z, model, fun, crossing = NULL) {
  of <- if (fun$kind != "values") {
    list(cross = numeric(), features = features_of(fun, z, factors$L), prior = as.double(fun$prior), size = fun$size,
         terms = 1L)
  }
  native(ffi_certify, engine_posterior(factors, z, model), norms_for(norms, factors, model, fun$x), fun$x, of,
         crossing, engine_control(nrow(fun$x)))
}

# Returns the result of certify_with() in units of y, without the constant mean.
certify_posterior <- function(post, fun, crossing = NULL) {
  model <- model_of(post)
  r <- certify_with(post$factors, post$norms, post$inducing, model, fun, crossing)
  power <- c(mean = 1, sor_variance = 2, unexplained = 2, mean_error = 1, var_lower = 2, var_upper = 2)
  Map(function(v, power) in_units(model, v, power), r[names(power)], power)
}

unknown_intervals <- function(n) {
  list(mean_lower = rep(-Inf, n), mean_upper = rep(Inf, n), sd_lower = numeric(n), sd_upper = rep(Inf, n))
}

# Returns the intersection of the intervals `inside` with those of `found` (intervals, or the result of certify_with()).
# `found` has the functionals `rows` only. A NaN bound (overflow) is ignored. If two intervals miss each
# other by rounding, the result is the gap between them. If they are further apart, it contains both, with a warning.
narrow <- function(inside, found, rows = seq_along(inside$mean_lower)) {
  if (is.null(found$mean_lower)) {
    of_sd <- if (!is.null(found$var_lower)) list(sd_lower = sqrt(found$var_lower), sd_upper = sqrt(found$var_upper))
    found <- c(list(mean_lower = found$mean - found$mean_error, mean_upper = found$mean + found$mean_error), of_sd)
  }
  apart <- FALSE
  for (ends in list(c("mean_lower", "mean_upper"), c("sd_lower", "sd_upper"))) {
    own <- lapply(inside[ends], `[`, rows)
    new <- Map(function(v, unknown) if (is.null(v)) unknown else replace(v, is.nan(v), unknown),
               found[ends], unknown_intervals(1L)[ends])
    low <- pmax(own[[1L]], new[[1L]])
    high <- pmin(own[[2L]], new[[2L]])
    far <- low > high & low - high > 1e-9 * pmax(abs(low), abs(high))
    apart <- apart || any(far)
    low[far] <- pmin(own[[1L]], new[[1L]])[far]
    high[far] <- pmax(own[[2L]], new[[2L]])[far]
    inside[[ends[1L]]][rows] <- pmin(low, high)
    inside[[ends[2L]]][rows] <- pmax(low, high)
  }
  if (apart) {
    warn_convergence(paste("Two certified intervals of the same number do not overlap, because rounding errors are",
                           "larger than assumed. The result contains both. A larger `noise` or `jitter` helps."))
  }
  inside
}

intersect_brackets <- function(a, b) c(lower = max(a[["lower"]], b[["lower"]]), upper = min(a[["upper"]], b[["upper"]]))

# The functions below certify fits with groups. Effects of levels are inducing variables, so E is the residual prior
# covariance of the smooth part (the kernel without groups). f at row i and at x have the SoR posterior covariance
# f_i'f_x + o_i'o_x, with vectors f of inducing points, o of levels (o_i'o_x = 0 if levels differ). With weights w_i,
# row i has the coefficient h_i = w_i (f_i'f_x + o_i'o_x) in the posterior mean at x. A block b has n_b of the n rows,
# n_lb of the n_l rows of level l (index lb). F has the columns w_i f_i, O the columns w_i o_i. Then
#   sqrt(h'E h) <= sqrt(f_x'Psi f_x) + sqrt(o_x'Psi_l o_x),
#   Psi = sum_b (n / n_b) F_b E_bb F_b',  Psi_l = sum_b (n_l / n_lb) O_lb E_lb,lb O_lb'.

features_with_effects <- function(b, factors, x) {
  x <- numbered(x, factors$groupings)
  c(native_effect_predict(factors, b$z, b$smooth, x, TRUE, b$fit$control), list(x = x))
}

# Returns the matrices a b' of the rows a of A and b of B, each as a row of the result.
outer_by_row <- function(A, B = A) {
  q <- seq_len(ncol(A))
  A[, rep(q, length(q)), drop = FALSE] * B[, rep(q, each = length(q)), drop = FALSE]
}

# effect_forms() adds up blocks of this many rows.
effect_block <- 200L

# Returns list(all, own, lam, spread). `all` and row l of `own` are sums over blocks b of rows of F_b E_bb F_b', where E
# is the residual prior covariance. F has a column for each row: its weight times its vector in features_with_effects()
# for inducing points or, in `own`, for level l. A block's part is multiplied by (all rows) / (rows of the block), at
# most `spread`. lam >= |W^{1/2} E W^{1/2}|_2, W: weights. If `diagonal` is given, E is diag(diagonal), unmultiplied.
effect_forms <- function(b, factors, weights, diagonal = NULL) {
  g <- factors$groupings[[1L]]
  level <- numbered(b$data$x, factors$groupings)[, g$column]
  n <- length(level)
  n_l <- tabulate(level, g$levels)
  d <- nrow(g$root)
  all <- lam <- 0
  own <- matrix(0, g$levels, d^2)
  spread <- 1
  in_order <- order(sample.int(g$levels)[level]) # keeps rows of a level together, with levels at random
  for (rows in blocks_of(in_order, effect_block)) {
    at <- features_with_effects(b, factors, b$data$x[rows, , drop = FALSE])
    E <- if (is.null(diagonal)) residual_covariance(b$smooth$kernel, b$z, factors$L, at$x) else
      diag(diagonal[rows], length(rows))
    l <- level[rows]
    n_lb <- tabulate(match(l, l))[match(l, l)]
    share <- if (is.null(diagonal)) list(n / length(rows), n_l[l] / n_lb) else list(1, 1)
    f <- at$features * rep(weights[rows], each = nrow(at$features))
    o <- t(at$own) * weights[rows]
    all <- all + share[[1L]] * (f %*% tcrossprod(E, f))
    Eo <- (E * outer(l, l, "==")) %*% o
    each <- rowsum(share[[2L]] * outer_by_row(o, Eo), l)
    there <- as.integer(rownames(each))
    own[there, ] <- own[there, ] + each
    root <- sqrt(weights[rows])
    lam <- lam + max(colSums(abs(E * root)) * root)
    spread <- max(spread, unlist(share))
  }
  list(all = all, own = own, lam = lam, spread = spread)
}

# Returns a bound on sqrt(h'E h), where h has the coefficients of the rows in the posterior mean at x, and E is their
# residual prior covariance. The bound is sqrt(f'P f) + sqrt(o'P_l o). The result `at` of features_with_effects() has f
# (`features`) and o (`own`) for x and its level l; the result `forms` of effect_forms() has P (`all`), P_l (in `own`).
effect_root <- function(b, factors, forms, at) {
  g <- factors$groupings[[1L]]
  level <- at$x[, g$column]
  own <- forms$own[ifelse(level >= 1 & level <= g$levels, level, 1), , drop = FALSE]
  o <- t(at$own)
  by_level <- rowSums(own * outer_by_row(o))
  by_all <- colSums(at$features * (forms$all %*% at$features))
  rounding <- 1e3 * b$growth
  sqrt(pmax(by_all, 0) + rounding * norm2(forms$all) * colSums(at$features^2)) +
    sqrt(pmax(by_level, 0) + rounding * rowSums(abs(own)) * rowSums(o^2))
}

# Returns the list of variances_of() for fits with groups: SoR and residual prior variances, and bounds on the exact
# variance. Bounds omit `new`, the prior variance of effects of levels without rows. `eta` is effect_root()'s bound.
variances_with_effects <- function(b, post, fun) {
  norms <- post$norms
  at <- features_with_effects(b, post$factors, fun$x)
  new <- covariance_of_new(post$factors$groupings, at$x, FALSE)
  prior <- fun$prior
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

# Returns a matrix [effects, levels]: the sums over each level's rows of v times each design column of group g.
sums_by_level <- function(g, x, v) {
  sums <- rowsum(t(design_of(g, x)) * v, x[, g$column])
  all <- matrix(0, nrow(g$root), g$levels)
  all[, as.integer(rownames(sums))] <- t(sums)
  all
}

# Returns the mode of f for fits with groups, in the form of laplace_at(), with the whitened effects `zeta` of levels.
# sites(f) returns list(f, g, W): f plus offset, and the derivatives g and -W of the log likelihood at the rows.
mode_with_effects <- function(b, factors, sites) {
  factors$shift <- NULL
  x <- numbered(b$data$x, factors$groupings)
  at <- native_effect_predict(factors, b$z, b$smooth, x, FALSE, b$fit$control)
  found <- sites(at$mean)
  beta <- factors$gamma[seq_len(nrow(factors$L))]
  parts <- Map(function(g, effects) {
    s <- svd(g$root) # also works for singular roots
    list(zeta = s$v %*% (crossprod(s$u, effects$b) / ifelse(s$d > 0, s$d, Inf)),
         of_slopes = crossprod(g$root, sums_by_level(g, x, found$g)))
  }, factors$groupings, effects_of(factors))
  zeta <- unlist(lapply(parts, `[[`, "zeta"))
  whole <- forwardsolve(factors$L, native_kernel_cross_matvec(b$smooth$kernel, x, found$g, b$z, b$fit$control))
  residual <- c(beta - drop(whole), zeta - unlist(lapply(parts, `[[`, "of_slopes")))
  c(found, list(L = factors$L, C = diag(1, length(beta)), beta = beta, zeta = zeta, residual = residual,
                left = pmax(at$unexplained, 0), jitter = factors$jitter, logdet = factors$logdet, factors = factors))
}

# Returns TRUE if the groups have so many effects (over 1,000) that inducing points cannot represent them.
has_many_levels <- function(model, x) has_own_levels(model$kernel) && count_effects(model$kernel, x) > 1000

# Returns a preconditioner: a function of r that returns (Q + K_g + s2 I)^{-1} r. K_g is the covariance of the effects
# of groups at the rows, and Q approximates that of the kernel without groups by inducing points z. It is computed as
# (r - mean) / s2, where `mean` is the posterior mean at the rows for the response r.
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
