# The posterior on inducing points for the smooth part of a kernel, beside all effects of its groups (effects.R).

# Returns predictions with `unexplained` = E(x, x) plus the variance of new levels. The mean is about the mode if
# factors$shift is NULL, see posterior.R.
predict_grouped <- function(p, x, keep = FALSE) {
  f <- p$factors
  for (what in names(f$shift)) f[[what]] <- f[[what]] + f$shift[[what]]
  native_effect_predict(f, p$z, smooth_model(p$model), numbered(x, f$groupings), keep, p$control)
}

posterior_at.grouped <- function(p, fun, joint = FALSE) {
  if (fun$kind == "values") {
    at <- predict_grouped(p, fun$x, joint)
    return(list(mean = at$mean, var = at$sor_variance + at$unexplained,
                cov = if (joint) grouped_covariance(p, fun$x, at)))
  }
  if (fun$kind == "sums") {
    W <- weights_of_sums(fun)
    at <- posterior_values(p, fun$x, TRUE)
    return(list(mean = drop(W %*% at$mean), var = rowSums((W %*% at$cov) * W)))
  }
  if (fun$kind == "terms") return(terms_of_grouped(p, fun))
  if (fun$kind == "effects") return(effects_asked(p$factors$groupings, effects_of(p$factors), fun$effects))
  if (fun$kind == "population") return(smooth_at(p, values_at(smooth_part(p$model$kernel), fun$x)))
  if (fun$kind == "coefficients") return(smooth_at(p, fun))
  refuse_slopes_of_groups(p, fun)
  smooth_at(p, fun$under(smooth_part(p$model$kernel)))
}

# Returns the moments of c'b for each row c of asked$of, where b are the effects of each of the levels asked for.
effects_asked <- function(groupings, effects, asked) {
  at <- match(asked$term, vapply(groupings, `[[`, 0L, "term"))
  g <- groupings[[at]]
  effects <- effects[[at]]
  level <- match(asked$levels, if (is.null(g$codes)) seq_len(g$levels) else g$codes)
  var <- vapply(level, function(l) rowSums((asked$of %*% effects$covariance[, , l]) * asked$of), asked$of[, 1L])
  list(mean = c(asked$of %*% effects$b[, level, drop = FALSE]), var = c(var))
}

# Refuses slopes of the effects of groups, which move with the inputs of their design.
refuse_slopes_of_groups <- function(p, fun) {
  if (fun$kind != "slopes") refuse_grouped(fun$kind)
  if (any(vapply(p$factors$groupings, function(g) any(g$design > 0L), NA))) refuse_grouped("slopes")
}

# Returns the moments of the terms of the kernel at the rows of x: the first term at all rows, then the second, ...
terms_of_grouped <- function(p, fun) {
  kernels <- kernels_of_terms(p$model$kernel)
  groups <- stats::setNames(effects_of(p$factors), vapply(p$factors$groupings, `[[`, 0L, "term"))
  parts <- lapply(seq_along(kernels), function(k) {
    at <- match(k, names(groups))
    if (is.na(at)) return(smooth_at(p, values_at(kernels[[k]], fun$x)))
    effects_at(p$factors$groupings[[at]], groups[[at]], numbered(fun$x, p$factors$groupings))
  })
  list(mean = unlist(lapply(parts, `[[`, "mean")), var = unlist(lapply(parts, `[[`, "var")))
}

# Returns mean and variance of the effects z'b of a grouping at the rows of x.
effects_at <- function(g, effects, x) {
  design <- design_of(g, x)
  level <- x[, g$column]
  new <- level < 1 | level > g$levels
  level[new] <- g$levels + 1
  p <- nrow(g$root)
  covariance <- matrix(c(effects$covariance, tcrossprod(g$root)), p^2)[, level, drop = FALSE]
  both <- design[rep(seq_len(p), p), , drop = FALSE] * design[rep(seq_len(p), each = p), , drop = FALSE]
  list(mean = colSums(design * cbind(effects$b, 0)[, level, drop = FALSE]), var = colSums(covariance * both))
}

# Returns mean and variance of functionals of the smooth part alone.
smooth_at <- function(p, fun) {
  a <- features_of(fun, p$z, p$factors$L)
  own <- seq_len(nrow(a))
  list(mean = drop(crossprod(a, p$factors$gamma[own])),
       var = pmax(fun$prior - colSums(a^2), 0) + colSums(crossprod(p$factors$W[own, , drop = FALSE], a)^2))
}

refuse_grouped <- function(kind, certificate = FALSE) {
  what <- if (kind %in% c("sums", "slopes")) kind else "these functionals"
  if (certificate) {
    abort_input("certified", "TRUE", "FALSE", hint = "Take certified = FALSE, or fit at most 2,000 rows.",
                message = sprintf("Certificates of %s do not exist for groups with this family beyond 2,000 rows.", what))
  }
  abort_input("fit", "one with groups on inducing points", "one without groups, or with an exact posterior",
              message = sprintf("Groups beside inducing points have no %s.", what),
              hint = "Fit at most 5,000 rows (2,000 with a family), for which the posterior is that of all rows.")
}

# Returns the sum of what rows can reduce, what the points leave, and the prior covariance of new levels.
grouped_covariance <- function(p, x, at) {
  x <- numbered(x, p$factors$groupings)
  kernel <- smooth_part(p$model$kernel)
  a <- forwardsolve(p$factors$L, native_kernel_matrix(kernel, p$z, x))
  covariance <- native_kernel_matrix(kernel, x, x) - crossprod(a) + crossprod(at$features) +
    within_levels(p, x, at$own)
  covariance + covariance_of_new(p$factors$groupings, x, TRUE)
}

# Returns the prior variances of the effects of new levels at the rows of x, or their covariance matrix.
covariance_of_new <- function(groupings, x, joint) {
  Reduce(`+`, lapply(groupings, function(g) {
    level <- x[, g$column]
    new <- level < 1 | level > g$levels
    half <- crossprod(g$root, design_of(g, x))
    if (joint) outer(level, level, "==") * outer(new, new) * crossprod(half) else new * colSums(half^2)
  }))
}

# Returns the covariance that rows of a level have given all else; `own` has U z of each row.
within_levels <- function(p, x, own) {
  level <- x[, p$factors$groupings[[1L]]$column]
  outer(level, level, "==") * crossprod(own)
}

# Returns the design, with a column for each row of x.
design_of <- function(g, x) t(cbind(1, x)[, g$design + 1L, drop = FALSE])

row_parts.grouped <- function(p) {
  apart <- responses_used(p)
  at <- predict_grouped(at_mode(p), p$rows$x)
  mean <- at$mean[apart$group]
  q <- at$sor_variance[apart$group]
  W <- apart$w / p$model$noise
  g <- W * (apart$y - mean)
  shift <- NULL
  if (!is.null(p$fit$likelihood)) {
    sites <- sites_of_fit(p$fit, p$rows)
    l <- native_likelihood(sites, mean + sites$offset)
    g <- l[2L, ]
    W <- l[3L, ]
    if (!is.null(p$factors$shift)) shift <- predict_grouped(p, p$rows$x)$mean - mean - q * l[4L, ] * q / 2
  }
  list(mean = mean, q = q, left = at$unexplained[apart$group], g = g, W = W, rest = 1 - W * q, group = apart$group,
       shift = shift)
}

group_parts.grouped <- function(p, part, rows) {
  x <- p$rows$x[part$group[rows], , drop = FALSE]
  at <- predict_grouped(p, x, TRUE)
  Q <- crossprod(at$features) + within_levels(p, x, at$own)
  list(Q = Q, rest = diag(1, length(rows)) - part$W[rows] * Q)
}

# With P+ = I + A+ W A+':  a+'P+^{-1}a+ - |P+^{-1}a+|^2. Beside i = S^{-1}(a - C T^{-1}B') in P+^{-1}a+, the levels have
# T^{-1}(B' - C'i), and T^{-1} = Lam^{-1} U'U Lam^{-T}.
squared_moves.grouped <- function(p) {
  f <- p$factors
  g <- f$groupings[[1L]]
  m <- nrow(f$L)
  d <- nrow(g$root)
  q <- effects_of_grouping(g)
  at <- places_of_sums(m, f$groupings)
  H <- times_roots(matrix(f$sums[at$H + seq_len(at$k * q)], at$k), m, f$groupings, TRUE) / f$noise
  inverse <- solve(g$root)
  own <- matrix(seq_len(q), d)
  U <- array(f$U, c(d, d, g$levels))
  G <- do.call(cbind, lapply(seq_len(g$levels), function(l) { # C T^{-1}
    H[, own[, l], drop = FALSE] %*% crossprod(matrix(U[, , l], d)) %*% t(inverse)
  }))
  square <- tcrossprod(G)
  x <- numbered(p$rows$x, f$groupings)
  blocks <- split(seq_len(nrow(x)), (seq_len(nrow(x)) - 1L) %/% 4096L)
  moves <- lapply(blocks, function(rows) {
    here <- predict_grouped(p, p$rows$x[rows, , drop = FALSE], TRUE)
    i <- backsolve(f$R, here$features)
    level <- x[rows, g$column]
    of_level <- vapply(seq_along(rows), function(j) {
      l <- level[j]
      t <- inverse %*% crossprod(matrix(U[, , l], d), here$own[, j])
      sum(t^2) - 2 * sum(t * crossprod(G[, own[, l], drop = FALSE], i[, j]))
    }, 0)
    colSums(here$features^2) + colSums(here$own^2) - colSums(i^2) - colSums(i * (square %*% i)) - of_level
  })
  pmax(unlist(moves, use.names = FALSE), 0)
}

covariance_with_rows.grouped <- function(p, fun) {
  if (fun$kind != "values") refuse_grouped(fun$kind)
  x <- p$rows$x
  here <- predict_grouped(p, x, TRUE)
  there <- predict_grouped(p, fun$x, TRUE)
  column <- p$factors$groupings[[1L]]$column
  crossprod(here$features, there$features) + outer(x[, column], fun$x[, column], "==") * crossprod(here$own, there$own)
}

# Returns the variational bound, with the evidence of merged rows.
log_evidence.grouped <- function(p) {
  f <- p$factors
  noise <- f$noise
  value <- -((f$n * log(2 * pi * noise) + f$logdet + f$quad) / 2) - f$t / (2 * noise)
  value + merged_log_density(p$rows$shift, noise) + p$rows$shift$constant
}

remade_fit.grouped <- function(p, rows, model) {
  fit <- p$fit
  p$factors <- fit$factors <- effect_posterior(p$z, rows, model, p$jitter, p$control)
  p[c("model", "rows")] <- list(model, rows)
  fit$evidence <- log_evidence(p)
  fit
}

# Returns the inducing points and a row of each level, up to 1,000 points, for certificates: as points of the whole
# kernel they explain smooth part and levels.
points_with_levels <- function(p, x) {
  for (g in c(p$factors$groupings, p$near$groupings)) {
    rows <- which(!duplicated(x[, g$column]))
    p$z <- rbind(p$z, x[utils::head(rows, max(0L, 1000L - nrow(p$z))), , drop = FALSE])
  }
  p$z
}

# Draws the coefficients of the features, then the effects of each level given these, then the residual process.
posterior_paths.grouped <- function(p, x, nsim, normal) {
  f <- p$factors
  model <- smooth_model(p$model)
  m <- nrow(f$L)
  x <- numbered(x, f$groupings)
  gamma <- f$gamma + f$W %*% normal(ncol(f$W), nsim)
  b <- list(drawn_levels(f, m, gamma, normal))
  at <- m
  for (g in f$groupings[-1L]) {
    own <- at + seq_len(effects_of_grouping(g))
    b <- c(b, list(gamma[own, , drop = FALSE]))
    at <- at + length(own)
  }
  value <- times_features(model$kernel, p$z, f$L, x, gamma[seq_len(m), , drop = FALSE])
  for (i in seq_along(b)) value <- value + drawn_effects(f$groupings[[i]], b[[i]], x, nsim, normal)
  value + residual_paths(model, p$z, p$jitter, x, nsim, normal, p$control)$draws
}

# Returns draws of the effects of the first grouping given the other coefficients: N(V (r - H'gamma) / s2, V).
drawn_levels <- function(f, m, gamma, normal) {
  g <- f$groupings[[1L]]
  p <- nrow(g$root)
  q <- effects_of_grouping(g)
  at <- places_of_sums(m, f$groupings)
  H <- matrix(f$sums[at$H + seq_len(at$k * q)], at$k)
  r <- utils::tail(f$sums, length(f$b))[seq_len(q)]
  U <- array(f$U, c(p, p, g$levels))
  times <- function(U, X) { # the blocks U of all levels times X, q x nsim
    rows <- matrix(seq_len(q), p)
    for_row <- function(i) Reduce(`+`, lapply(seq_len(p), function(j) U[i, j, ] * X[rows[j, ], , drop = FALSE]))
    out <- X
    for (i in seq_len(p)) out[rows[i, ], ] <- for_row(i)
    out
  }
  times(aperm(U, c(2L, 1L, 3L)), times(U, (r - crossprod(H, gamma)) / f$noise) + normal(q, ncol(gamma)))
}

# Returns z'b at the rows of x. Each new level has effects drawn from the prior.
drawn_effects <- function(g, b, x, nsim, normal) {
  p <- nrow(g$root)
  level <- x[, g$column]
  new <- level < 1 | level > g$levels
  others <- unique(level[new])
  if (length(others)) {
    more <- lapply(seq_along(others), function(i) g$root %*% normal(p, nsim))
    b <- rbind(b, do.call(rbind, more))
    level[new] <- g$levels + match(level[new], others)
  }
  design <- design_of(g, x)
  Reduce(`+`, lapply(seq_len(p), function(j) design[j, ] * b[(level - 1) * p + j, , drop = FALSE]))
}
