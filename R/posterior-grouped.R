# Computes posteriors of kernels with groups. Effects of groups are not approximated. Inducing points, with or without
# nearest neighbours, approximate the other terms, the "smooth part". A "grouping" is a term such as (1 | group): its
# levels, and the design and prior covariance of a level's effects. The one with the most effects comes first.

# Predicts f at x. `unexplained` in the result is the residual prior variance plus the variance of new levels' effects.
predict_grouped <- function(p, x, keep = FALSE) {
  f <- p$factors
  for (what in names(f$shift)) f[[what]] <- f[[what]] + f$shift[[what]]
  native_effect_predict(f, p$z, smooth_model(p$model), numbered(x, f$groupings), keep, p$control)
}

posterior_at.grouped <- posterior_at.grouped_near <- function(p, fun, joint = FALSE) {
  near <- inherits(p, "near")
  own <- if (near) p$near else p$factors
  effects <- if (fun$kind %in% c("effects", "terms")) if (near) own$effects else effects_of(own)
  place <- function(term) match(term, vapply(own$groupings, `[[`, 0L, "term"))
  switch(fun$kind, values = if (near && joint) near_grouped_at(p, fun$x, joint = TRUE) else if (near) {
    in_blocks(fun$x, function(x) near_grouped_at(p, x), 1024L, join_lists)
  } else {
    at <- predict_grouped(p, fun$x, joint)
    list(mean = at$mean, var = at$sor_variance + at$unexplained, cov = if (joint) {
      # Add residual prior covariances, those of inducing points and known effects, and those of effects of new levels.
      x <- numbered(fun$x, own$groupings)
      residual_covariance(smooth_part(p$model$kernel), p$z, own$L, x) + crossprod(at$features) +
        within_levels(p, x, at$own) + covariance_of_new(own$groupings, x, TRUE)
    })
  }, sums = sums_of_values(p, fun), effects = { # returns c'b for rows c of fun$of and the effects b of a level
    asked <- fun$effects
    at <- place(asked$term)
    g <- own$groupings[[at]]
    level <- match(asked$levels, g$codes %||% seq_len(g$levels))
    each <- rep(seq_len(nrow(asked$of)), length(level))
    effect_moments(g, effects[[at]], rep(level, each = nrow(asked$of)), t(asked$of)[, each, drop = FALSE])
  }, terms = { # returns all rows of the first term, then of the next
    kernels <- kernels_of_terms(p$model$kernel)
    parts <- Map(function(kernel, at) {
      if (is.na(at)) return(smooth_at(p, replace(values_at(kernel, fun$x), "kind", "terms")))
      g <- own$groupings[[at]]
      x <- numbered(fun$x, own$groupings)
      effect_moments(g, effects[[at]], x[, g$column], design_of(g, x))
    }, kernels, place(seq_along(kernels)))
    lapply(list(mean = "mean", var = "var"), function(what) unlist(lapply(parts, `[[`, what), use.names = FALSE))
  }, population = smooth_at(p, fun), {
    if (fun$kind == "coefficients" && !near) return(smooth_at(p, fun))
    # Derivatives by the inputs of a group's design, such as x in the term (x | group), are not computed.
    if (fun$kind != "slopes" || any(unlist(lapply(own$groupings, `[[`, "design")) > 0L)) refuse_grouped(fun$kind)
    smooth_at(p, fun$under(smooth_part(p$model$kernel)))
  })
}

# Returns mean and variance of c'b for each column c of `design`, where b has the effects of grouping g at the column's
# `level`. `effects` has the posterior mean and covariance of all effects.
effect_moments <- function(g, effects, level, design) {
  level[level < 1 | level > g$levels] <- g$levels + 1 # new levels come last
  first <- rep(seq_len(nrow(design)), nrow(design))
  covariance <- matrix(c(effects$covariance, tcrossprod(g$root)), length(first))[, level, drop = FALSE]
  both <- design[first, , drop = FALSE] * design[sort(first), , drop = FALSE]
  list(mean = colSums(design * cbind(effects$b, 0)[, level, drop = FALSE]), var = colSums(covariance * both))
}

# Returns mean and variance of functionals of the smooth part, which is f without effects of groups.
smooth_at <- function(p, fun) {
  if (inherits(p, "near")) {
    return(near_grouped_at(p, fun$x[fun$rows, , drop = FALSE], functionals_near(smooth_near(p), fun)))
  }
  a <- features_of(fun, p$z, p$factors$L)
  own <- seq_len(nrow(a))
  list(mean = drop(crossprod(a, p$factors$gamma[own])),
       var = pmax(fun$prior - colSums(a^2), 0) + colSums(crossprod(p$factors$W[own, , drop = FALSE], a)^2))
}

refuse_grouped <- function(kind, certificate = FALSE) {
  what <- switch(kind, sums = kind, slopes = "derivatives", "functionals of this kind")
  with <- if (kind == "slopes") " with slopes such as (x | group)" else ""
  refuse_if(certificate, "certified", "TRUE", hint = "Use certified = FALSE, or fit at most 2,000 rows.",
            message = sprintf("Certificates of %s are not available for groups with this family beyond 2,000 rows.",
                              what))
  abort_input("fit", "groups on inducing points",
              message = sprintf("For groups%s beside inducing points, %s are not available.", with, what),
              hint = "Fit at most 5,000 rows (2,000 with a family), for which the posterior is that of all rows.")
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

# Returns the covariance of f at rows x and z that comes from the effects of the first grouping, given all other effects
# and the inducing points. `own` and `other` have the designs at x and z times roots of the posterior covariances.
within_levels <- function(p, x, own, z = x, other = NULL) {
  column <- p$factors$groupings[[1L]]$column
  outer(x[, column], z[, column], "==") * crossprod(own, other)
}

# Computes a'P^{-1}a - |P^{-1}a|^2 for each row with features a (of inducing points and effects). P is I + A W A' for
# the features A of all rows, and W = weights / noise. P has the blocks T (first grouping), Q (all other features) and C
# between them, and R'R = Q - C T^{-1} C'. The roots U of the levels' posterior covariances U'U give T^{-1}.
squared_moves.grouped <- function(p) {
  f <- p$factors
  g <- f$groupings[[1L]]
  m <- nrow(f$L)
  d <- nrow(g$root)
  H <- times_roots(effect_sums(f$sums, m, f$groupings), m, f$groupings, TRUE) / f$noise
  inverse <- solve(g$root)
  own <- matrix(seq_len(d * g$levels), d)
  U <- array(f$U, c(d, d, g$levels))
  G <- do.call(cbind, lapply(seq_len(g$levels), function(l) { # G = C T^{-1}
    H[, own[, l], drop = FALSE] %*% crossprod(matrix(U[, , l], d)) %*% t(inverse)
  }))
  square <- tcrossprod(G)
  moves <- in_blocks(p$rows$x, function(x) {
    here <- predict_grouped(p, x, TRUE)
    i <- backsolve(f$R, here$features)
    of_level <- mapply(function(l, j) {
      t <- inverse %*% crossprod(matrix(U[, , l], d), here$own[, j])
      sum(t^2) - 2 * sum(t * crossprod(G[, own[, l], drop = FALSE], i[, j]))
    }, numbered(x, f$groupings)[, g$column], seq_len(nrow(x)))
    colSums(here$features^2) + colSums(here$own^2) - colSums(i^2) - colSums(i * (square %*% i)) - of_level
  }, 4096L, c)
  pmax(moves, 0)
}

covariance_with_rows.grouped <- function(p, fun) {
  if (fun$kind != "values") refuse_grouped(fun$kind)
  here <- predict_grouped(p, p$rows$x, TRUE)
  there <- predict_grouped(p, fun$x, TRUE)
  crossprod(here$features, there$features) + within_levels(p, p$rows$x, here$own, fun$x, there$own)
}

# Returns p$fit with its posterior computed anew for other rows or another model.
remade_fit <- function(p, rows, model) {
  fit <- p$fit
  p[c("rows", "model")] <- list(rows, model)
  if (inherits(p, "exact")) {
    used <- if (is.null(p$chosen)) rows else take_rows(rows, p$chosen)
    p$factors <- fit$factors <- exact_factors(used, model, p$control)
    fit$x <- used$x
    if (!is.null(fit$inducing)) fit$inducing <- used$x
  } else if (inherits(p, "near")) {
    near <- p$near
    make <- if (is.null(near$groupings)) near_posterior else near_grouped_posterior
    p$near <- fit$near <- make(rows, p$z, model, near$neighbours, near$train_neighbours,
                               near$rank %||% seq_len(nrow(rows$x)), fit$jitter, p$control)
  } else {
    p$factors <- fit$factors <- if (inherits(p, "grouped")) effect_posterior(p$z, rows, model, p$jitter, p$control) else
      native_posterior(p$z, rows, model, p$jitter, control = p$control, fitc = p$fitc)
  }
  fit$evidence <- log_evidence(p)
  fit
}

# Draws f at x as a sum: the part of the inducing points, effects of groups given it, and the residual (f minus both).
posterior_paths.grouped <- function(p, x, nsim, normal) {
  f <- p$factors
  model <- smooth_model(p$model)
  x <- numbered(x, f$groupings)
  gamma <- f$gamma + f$W %*% normal(ncol(f$W), nsim)
  smooth <- times_features(model$kernel, p$z, f$L, x, gamma[seq_len(nrow(f$L)), , drop = FALSE])
  add_drawn_effects(smooth, f, gamma, x, normal) +
    residual_paths(model, p$z, p$jitter, x, nsim, normal, p$control)$draws
}

# Returns draws of the effects of the first grouping, given the drawn coefficients gamma of inducing points and of other
# effects. At a level with posterior covariance V = U'U, their distribution is N(V (r - H'gamma) / noise, V). Summed
# over the level's rows, r is design times response, and H is features times design'.
drawn_levels <- function(f, gamma, normal) {
  g <- f$groupings[[1L]]
  p <- nrow(g$root)
  q <- effects_of_grouping(g)
  r <- utils::tail(f$sums, length(f$b))[seq_len(q)]
  U <- array(f$U, c(p, p, g$levels))
  H <- effect_sums(f$sums, nrow(f$L), f$groupings)
  times_blocks(aperm(U, c(2L, 1L, 3L)), times_blocks(U, (r - crossprod(H, gamma)) / f$noise) + normal(q, ncol(gamma)))
}

# Adds the effects at the rows of x to the draws `value` of the smooth part. `gamma` has the drawn coefficients of
# inducing points and of the effects of all groupings but the first. Effects of new levels are drawn from the prior.
add_drawn_effects <- function(value, f, gamma, x, normal) {
  all <- rbind(drawn_levels(f, gamma, normal), gamma[-seq_len(nrow(f$L)), , drop = FALSE])
  at <- 0
  for (g in f$groupings) {
    b <- all[at + seq_len(effects_of_grouping(g)), , drop = FALSE]
    at <- at + nrow(b)
    p <- nrow(g$root)
    level <- x[, g$column]
    new <- level < 1 | level > g$levels
    others <- unique(level[new])
    b <- rbind(b, do.call(rbind, lapply(others, function(l) g$root %*% normal(p, ncol(gamma)))))
    level[new] <- g$levels + match(level[new], others)
    design <- design_of(g, x)
    value <- value + Reduce(`+`, lapply(seq_len(p), function(j) design[j, ] * b[(level - 1) * p + j, , drop = FALSE]))
  }
  value
}

# ---- with nearest neighbours ----------------------------------------------------------------------------------------
#
# The smooth part alone determines the neighbours S of a row. z is the design of the effects at a row, Z_S that at S,
# and Lam the root of the effects' prior covariance. For the smooth part, a and A_S are features of the row and of S, u
# the weights of the neighbours, r = a - A_S u, v the variance of f given S and the inducing points, and d = v + noise.
#
#   r+ = (r; Lam'(z - Z_S'u)),  mean = u'y_S + r+'beta,  var = v + |C^{-1} r+|^2,
#   C C' = I + sum r+ r+' / d over rows,  C C' beta = sum r+ (y - u'y_S) / d over rows.
#
# There are at most effect_limits["dense"] effects, because the matrix C is dense.

# Returns the posterior with neighbours for a kernel with groups. Five steps of expectation-maximisation, without a
# further pass over the rows, learn the variances of the groups that `free` marks.
near_grouped_posterior <- function(data, z, model, neighbours, train_neighbours, rank, jitter = 1e-12, control = NULL,
                                   free = NULL) {
  groupings <- groupings_of(model$kernel, x = data$x)
  data$x <- numbered(data$x, groupings)
  near <- native_near(z, data, smooth_model(model), train_neighbours, rank, jitter, control = control, keep = 2L)
  sums <- native(ffi_near_effects, engine_model(smooth_model(model)), groupings, engine_rows(data), near,
                 engine_control(nrow(data$x), control))
  m <- nrow(z)
  n_effects <- vapply(groupings, effects_of_grouping, 0)
  for (step in 0:(if (any(free)) 5L else 0L)) {
    if (step > 0L) groupings <- Map(function(g, e) {
      if (!free[[as.character(g$term)]]) return(g)
      C <- tcrossprod(g$root)
      now <- (tcrossprod(e$b) + rowSums(e$covariance, dims = 2L)) / g$levels
      replace(g, "root", list(g$root * sqrt(sum(diag(solve(C, now))) / nrow(C))))
    }, groupings, effects)
    P <- times_roots(t(times_roots(sums$P, m, groupings, TRUE, all = TRUE)), m, groupings, TRUE, all = TRUE)
    v <- times_roots(sums$v, m, groupings, TRUE, all = TRUE)
    # b are the coefficients of inducing points and effects. Given neighbours S, y has the mean u'y_S + r'b and variance
    # d. So b has the posterior precision C C' = I + P, P = sum r r' / d, and mean (I + P)^{-1} sum r (y - u'y_S) / d.
    f <- native(ffi_factor, P, as.double(v), 1L, doing = "The Cholesky factorisation")
    effects <- Map(function(g, first) {
      p <- nrow(g$root)
      covariance <- vapply(seq_len(g$levels), function(l) {
        own <- first + (l - 1L) * p + seq_len(p)
        c(g$root %*% f$inverse[own, own, drop = FALSE] %*% t(g$root))
      }, numeric(p^2))
      list(term = g$term, b = g$root %*% matrix(f$x[first + seq_len(p * g$levels)], p),
           covariance = array(covariance, c(p, p, g$levels)))
    }, groupings, m + cumsum(n_effects) - n_effects)
  }
  c(near[c("L", "jitter")], list(
    neighbours = as.integer(neighbours), train_neighbours = as.integer(train_neighbours), rank = rank,
    groupings = groupings, C = f$C, beta = f$x, effects = effects,
    evidence = -(sums$log_d + logdet(f$C) + sums$yy - sum(v * f$x) + nrow(data$x) * log(2 * pi)) / 2))
}

# Returns mean and variance of f at the rows of x, or of functionals if their neighbours and features are `given`.
near_grouped_at <- function(p, x, given = NULL, joint = FALSE) {
  near <- p$near
  x <- numbered(x, near$groupings)
  smooth <- smooth_near(p)
  at <- predict_given(smooth, x, given, keep = TRUE)
  weights <- at$u * sqrt(c(0, merged_weights(p$rows))[at$rows + 1L])
  r <- rbind(at$r, decorrelated_design(near$groupings, x, numbered(p$rows$x, near$groupings), at$rows, weights,
                                       is.null(given)))
  r <- times_roots(r, nrow(p$z), near$groupings, TRUE, all = TRUE)
  half <- forwardsolve(near$C, r)
  mean <- at$mean + drop(crossprod(r, near$beta))
  new <- if (is.null(given)) covariance_of_new(near$groupings, x, joint) else 0
  if (!joint) return(list(mean = mean, var = at$var_near + colSums(half^2) + new))
  own <- native_near_covariance(smooth$near, p$z, p$rows, smooth$model, near$neighbours, x, p$control)$covariance
  cov <- own + crossprod(half) + new
  list(mean = mean, var = diag(cov), cov = cov)
}
