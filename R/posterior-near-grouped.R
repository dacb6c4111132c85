# The posterior with nearest neighbours for the smooth part of a kernel, beside all effects of its groups. Neighbours
# are found by the smooth part alone. They bring their levels along: with z the design of a functional in the columns
# of Z and u, r of posterior-near.R,
#
#   r+ = (r; Lam'(z - Z_S'u)),  mean = u'y_S + r+'beta+,  var = residual variance + |C+^{-1} r+|^2,  C+ C+' = I + sum of
#   r+ r+' / d over rows (src/near_effects.h).
#
# All effects are dense: there are at most `dense_effects`.

# Returns near_posterior() for a kernel with groups. The variances of the groups that are learned (`free`, for each
# group of the kernel) take a few steps of expectation-maximisation, which need no further pass.
near_grouped_posterior <- function(data, z, model, neighbours, train_neighbours, rank, jitter = 1e-12, control = NULL,
                                   free = NULL) {
  groupings <- groupings_of(model$kernel, levels_of_groups(model$kernel, data$x))
  data$x <- numbered(data$x, groupings)
  near <- native_near(z, data, smooth_model(model), train_neighbours, rank, jitter, control = control, keep = 2L)
  sums <- native(ffi_near_effects, engine_model(smooth_model(model)), groupings, engine_rows(data), near,
                 engine_control(nrow(data$x), control))
  sums <- c(sums, list(n = nrow(data$x)))
  found <- finish_near_effects(sums, nrow(z), groupings)
  for (step in seq_len(if (any(free)) em_steps else 0L)) {
    groupings <- Map(function(g, e) {
      if (!free[[as.character(g$term)]]) return(g)
      C <- tcrossprod(g$root)
      now <- (tcrossprod(e$b) + rowSums(e$covariance, dims = 2L)) / g$levels
      replace(g, "root", list(g$root * sqrt(sum(diag(solve(C, now))) / nrow(C))))
    }, groupings, found$effects)
    found <- finish_near_effects(sums, nrow(z), groupings)
  }
  c(list(L = near$L, jitter = near$jitter, neighbours = as.integer(neighbours),
         train_neighbours = as.integer(train_neighbours), rank = rank, groupings = groupings), found)
}

em_steps <- 5L

# Returns list(C, beta, effects, evidence) for finished sums.
finish_near_effects <- function(sums, m, groupings) {
  P <- times_roots(t(times_roots(sums$P, m, groupings, TRUE, all = TRUE)), m, groupings, TRUE, all = TRUE)
  v <- times_roots(sums$v, m, groupings, TRUE, all = TRUE)
  # C C' = I + P, x = (I + P)^{-1} v, and the inverse
  f <- native(ffi_factor, P, as.double(v), 1L, doing = "The Cholesky factorisation")
  n_effects <- vapply(groupings, effects_of_grouping, 0)
  first <- m + cumsum(n_effects) - n_effects
  effects <- Map(function(g, first) {
    p <- nrow(g$root)
    covariance <- vapply(seq_len(g$levels), function(l) {
      own <- first + (l - 1L) * p + seq_len(p)
      c(g$root %*% f$inverse[own, own, drop = FALSE] %*% t(g$root))
    }, numeric(p^2))
    list(term = g$term, b = g$root %*% matrix(f$x[first + seq_len(p * g$levels)], p),
         covariance = array(covariance, c(p, p, g$levels)))
  }, groupings, first)
  list(C = f$C, beta = f$x, effects = effects,
       evidence = -(sums$log_d + logdet(f$C) + sums$yy - sum(v * f$x) + sums$n * log(2 * pi)) / 2)
}

posterior_at.grouped_near <- function(p, fun, joint = FALSE) {
  if (fun$kind == "sums") return(sums_with_neighbours(p, fun))
  if (fun$kind == "terms") return(terms_of_near_grouped(p, fun))
  if (fun$kind == "effects") return(effects_asked(p$near$groupings, p$near$effects, fun$effects))
  if (fun$kind != "values") {
    if (fun$kind != "population") refuse_slopes_of_groups(list(factors = p$near), fun)
    smooth <- fun$under(smooth_part(p$model$kernel))
    given <- functionals_near(smooth_near(p), smooth)
    return(near_grouped_at(p, fun$x[fun$rows, , drop = FALSE], given, design = FALSE))
  }
  if (joint) return(near_grouped_at(p, fun$x, joint = TRUE))
  blocks <- split(seq_len(fun$n), (seq_len(fun$n) - 1L) %/% 1024L)
  parts <- lapply(blocks, function(i) near_grouped_at(p, fun$x[i, , drop = FALSE]))
  list(mean = unlist(lapply(parts, `[[`, "mean"), use.names = FALSE),
       var = unlist(lapply(parts, `[[`, "var"), use.names = FALSE))
}

# Returns a view of the smooth part alone: neighbours and their u, without the inducing points.
smooth_near <- function(p) {
  m <- nrow(p$z)
  p$model <- smooth_model(p$model)
  p$near[c("C", "beta")] <- list(diag(1e150, m), numeric(m))
  structure(p, class = c("near", "posterior"))
}

# `given` is as in predict_given(). Without `design` the functionals have no effects of their own.
near_grouped_at <- function(p, x, given = NULL, joint = FALSE, design = TRUE) {
  near <- p$near
  x <- numbered(x, near$groupings)
  smooth <- smooth_near(p)
  at <- predict_given(smooth, x, given, keep = TRUE)
  weights <- at$u * sqrt(c(0, merged_weights(p$rows))[at$rows + 1L])
  r <- rbind(at$r, decorrelated_design(near$groupings, x, numbered(p$rows$x, near$groupings), at$rows, weights, design))
  r <- times_roots(r, nrow(p$z), near$groupings, TRUE, all = TRUE)
  half <- forwardsolve(near$C, r)
  out <- list(mean = at$mean + drop(crossprod(r, near$beta)), var = at$var_near + colSums(half^2))
  new <- if (design) covariance_of_new(near$groupings, x, joint)
  if (!joint) return(replace(out, "var", list(out$var + if (is.null(new)) 0 else new)))
  own <- native_near_covariance(smooth$near, p$z, p$rows, smooth$model, near$neighbours, x, p$control)$covariance
  cov <- own + crossprod(half) + new
  c(out["mean"], list(var = diag(cov), cov = cov))
}

# Returns z - Z_S'u, a column for each row of x: `rows` and `u` have its neighbours.
decorrelated_design <- function(groupings, x, data, rows, u, design) {
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
    all <- seq_len(nrow(x))
    if (design) add(all, x[, g$column], design_of(g, x), rep(1, nrow(x)))
    of_data <- design_of(g, data)
    for (s in seq_len(nrow(rows))) {
      there <- all[rows[s, ] > 0L]
      row <- pmax(rows[s, ], 1L)
      add(there, data[row, g$column], of_data[, row, drop = FALSE], -u[s, ])
    }
    Z
  })
  do.call(rbind, parts)
}

# Returns moments of terms. Effects of levels have no neighbours; smooth terms have the neighbours of their rows.
terms_of_near_grouped <- function(p, fun) {
  x <- numbered(fun$x, p$near$groupings)
  kernels <- kernels_of_terms(p$model$kernel)
  terms <- vapply(p$near$groupings, `[[`, 0L, "term")
  parts <- lapply(seq_along(kernels), function(k) {
    g <- match(k, terms)
    if (!is.na(g)) return(effects_at(p$near$groupings[[g]], p$near$effects[[g]], x))
    term <- replace(values_at(kernels[[k]], fun$x), "kind", "terms")
    near_grouped_at(p, fun$x, functionals_near(smooth_near(p), term), design = FALSE)
  })
  list(mean = unlist(lapply(parts, `[[`, "mean")), var = unlist(lapply(parts, `[[`, "var")))
}

remade_fit.grouped_near <- function(p, rows, model) {
  fit <- p$fit
  near <- p$near
  fit$near <- near_grouped_posterior(rows, p$z, model, near$neighbours, near$train_neighbours, near$rank, fit$jitter,
                                     p$control)
  fit$evidence <- evidence_of("near", model, rows, fit$near)
  fit
}

smooth_view.grouped_near <- function(p) {
  groupings <- p$near$groupings
  features <- function(A) {
    x <- numbered(p$rows$x, groupings)
    Z <- decorrelated_design(groupings, x, x, matrix(0L, 0L, nrow(x)), NULL, TRUE)
    times_roots(rbind(A, Z), nrow(A), groupings, TRUE, all = TRUE)
  }
  list(smooth = smooth_near(p), features = features, posterior = near_grouped_posterior)
}

posterior_paths.grouped_near <- function(p, x, nsim, normal) {
  check_memory(16 * as.double(nrow(x))^2, sprintf("draws at %d rows", nrow(x)))
  at <- posterior_values(p, x, TRUE)
  draw_normal(nsim, at$mean, at$cov)
}
