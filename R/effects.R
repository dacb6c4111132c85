# Computes posteriors for y = f(x) + Z b + noise, with a smooth f on inducing points and effects b of groups (see
# src/effects.h). Effects are inducing variables without residual prior variance. The effects of the grouping with the
# most effects are eliminated level by level. Effects of other groupings are dense features, like inducing points.
#
# A grouping is list(column, levels, design, root, term, codes). `column` of x has the level (from 1), `levels` counts
# levels. `design` has the columns of x in the design (0: an intercept). `root` is a lower triangular root of the
# covariance of a level's effects. `term` is the kernel term's number. `codes` are the levels' codes (NULL: 1, 2, ...).

# Returns the compiled kernel without the terms that are groups; if none is left, a constant kernel with variance 0.
smooth_part <- function(kernel) {
  parts <- as_sum(kernel)
  groups <- plain_groups(parts)
  if (!any(groups)) return(compile_kernel(kernel))
  parts$terms <- parts$terms[!groups]
  used <- unique(unlist(lapply(parts$terms, `[[`, "leaves")))
  parts$leaves <- parts$leaves[used]
  parts$terms <- lapply(parts$terms, function(t) replace(t, "leaves", list(match(t$leaves, used))))
  if (!length(parts$terms)) {
    parts$leaves <- list(list(profile = "constant", label = "none", inputs = integer()))
    parts$terms <- list(list(variance = 0, leaves = 1L))
  }
  compile_kernel(as_kernel(parts))
}

smooth_model <- function(model) replace(model, "kernel", list(smooth_part(model$kernel)))

# Returns the groupings of a kernel, the one with the most effects first. `codes` has for each group the number of
# levels, if their codes are 1, 2, ..., else the codes. By default they are from x (negative: levels of added rows).
groupings_of <- function(kernel, codes = lapply(group_columns(kernel), function(column) {
  if (min(x[, column]) >= 1) max(x[, column]) else sort(unique(x[, column]))
}), x = NULL) {
  groupings <- Map(function(g, codes) {
    n <- if (length(codes) == 1L) codes else length(codes)
    list(column = g$level, levels = as.integer(n), design = g$design, root = g$root, term = g$term,
         codes = if (length(codes) > 1L) codes)
  }, group_roots(kernel), codes)
  entries <- sum(lengths(lapply(groupings, `[[`, "design")))
  refuse_if(entries > 256, "formula", sprintf("has %d group effects per row", entries),
            hint = "At most 256 are possible.")
  groupings[order(-vapply(groupings, effects_of_grouping, 0))]
}

# Returns x with levels renumbered from 1 in groupings that have `codes`. Levels without a code get negative numbers.
numbered <- function(x, groupings) {
  for (g in groupings) if (!is.null(g$codes)) {
    at <- match(x[, g$column], g$codes)
    x[, g$column] <- ifelse(is.na(at), -2^40 - abs(x[, g$column]), at)
  }
  x
}

# Returns the transposed design matrix of a grouping: a column for each row of x, a row for each entry of g$design.
design_of <- function(g, x) t(cbind(1, x)[, g$design + 1L, drop = FALSE])

effects_of_grouping <- function(g) nrow(g$root) * g$levels

# Returns the posterior of inducing variables and effects given the rows of `data`: the list of factors_of_effects(),
# the jitter and L, the Cholesky factor of k(z, z). Its `sums` over rows do not depend on noise and group variances.
effect_posterior <- function(z, data, model, jitter, control = NULL,
                             groupings = groupings_of(model$kernel, x = data$x)) {
  data$x <- numbered(data$x, groupings)
  q <- vapply(groupings, effects_of_grouping, 0)
  check_memory(8 * (nrow(z) + sum(q[-1L])) * sum(q), sprintf("the sums of %d inducing points with %s effects of groups",
                                                            nrow(z), show_count(sum(q))))
  found <- native_effect_sums(z, data, smooth_model(model), groupings, jitter, control = control)
  c(found[c("L", "jitter")], factors_of_effects(found$sums, nrow(z), ncol(data$x), groupings, model$noise, control))
}

# Returns the posterior from `sums` over the rows, for m inducing points. A+ has a row of features for each inducing
# point and effect, P+ = I + A+ A+' / s2, `logdet` is log det P+, and `quad` is y'(A+'A+ + s2 I)^{-1} y. R is the
# Cholesky factor of the Schur complement in P+ that eliminates the effects of the first grouping.
factors_of_effects <- function(sums, m, columns, groupings, noise, control = NULL) {
  from <- native(ffi_eliminate, m, columns, groupings, sums, as.double(noise),
                 engine_control(groupings[[1L]]$levels, control))
  P <- matrix(sums[seq_len(m^2)], m)
  others <- effect_sums(sums, m, groupings, TRUE)
  P <- cbind(rbind(P, t(others[seq_len(m), , drop = FALSE])), others)
  rest <- sums[m^2 + m + c(1L, 3L, 4L)]
  S <- times_roots(P / noise - from$eliminated, m, groupings, TRUE)
  S <- times_roots(t(S), m, groupings, TRUE)
  R <- tryCatch(chol(S + diag(1, nrow(S))), error = function(e) {
    abort_numerical("Effects of groups cannot be computed: the noise is too small or weights are too large.")
  })
  Fy <- c(sums[m^2 + seq_len(m)], utils::tail(sums, ncol(others)))
  c <- drop(times_roots(Fy / noise - from$h, m, groupings, TRUE))
  beta <- backsolve(R, backsolve(R, c, transpose = TRUE))
  p <- list(sums = sums, U = from$U, W = times_roots(backsolve(R, diag(1, nrow(R))), m, groupings),
            gamma = drop(times_roots(beta, m, groupings)))
  own <- native(ffi_effect_solve, m, columns, groupings, p, noise, engine_control(ncol(p$U), control))
  c(p, list(groupings = groupings, columns = columns, b = c(own$b, p$gamma[seq_along(p$gamma) > m]),
            covariance = own$covariance, R = R, noise = noise, logdet = from$logdet + 2 * sum(log(diag(R))),
            quad = max(rest[1L] / noise - from$quad - sum(c * beta), 0), t = max(rest[2L], 0), n = rest[3L]))
}

# Returns a block of `sums`: products of the dense features (of inducing points and of groupings but the first) with the
# design of the first grouping, summed over the rows. With `other`, the designs are those of the other groupings.
effect_sums <- function(sums, m, groupings, other = FALSE) {
  q <- vapply(groupings, effects_of_grouping, 0)
  k <- m + sum(q[-1L])
  matrix(sums[m^2 + m + 5 + if (other) k * q[1L] + seq_len(k * (k - m)) else seq_len(k * q[1L])], k)
}

# Returns D X, or D'X with `transpose`. D is block diagonal: I for the m inducing points, then the covariance root of
# each grouping, once for each level. The first grouping is omitted unless `all`.
times_roots <- function(X, m, groupings, transpose = FALSE, all = FALSE) {
  X <- as.matrix(X)
  at <- m
  for (g in if (all) groupings else groupings[-1L]) {
    own <- at + seq_len(effects_of_grouping(g))
    X[own, ] <- times_blocks(if (transpose) t(g$root) else g$root, X[own, , drop = FALSE])
    at <- at + length(own)
  }
  X
}

# Multiplies the p rows of each level in X by `root`: one p x p matrix, or an array p x p x levels.
times_blocks <- function(root, X) {
  p <- nrow(root)
  root <- array(root, c(p, p, length(root) / p^2))
  rows <- matrix(seq_len(nrow(X)), p)
  parts <- lapply(seq_len(p), function(j) X[rows[j, ], , drop = FALSE])
  for (i in seq_len(p)) X[rows[i, ], ] <- Reduce(`+`, lapply(seq_len(p), function(j) root[i, j, ] * parts[[j]]))
  X
}

# Returns for each grouping list(term, b, covariance): the posterior means of its effects (p x levels) and their
# covariances (p x p x levels), for p effects of a level.
effects_of <- function(factors) {
  at <- 0L
  lapply(factors$groupings, function(g) {
    p <- nrow(g$root)
    own <- at + seq_len(p * g$levels)
    covariance <- if (at == 0L) {
      factors$covariance
    } else {
      rows <- factors$W[nrow(factors$L) - ncol(factors$covariance) + own, , drop = FALSE]
      of_level <- function(l) c(tcrossprod(rows[(l - 1L) * p + seq_len(p), , drop = FALSE]))
      vapply(seq_len(g$levels), of_level, numeric(p^2))
    }
    at <<- at + p * g$levels
    list(term = g$term, b = matrix(factors$b[own], p), covariance = array(covariance, c(p, p, g$levels)))
  })
}

# ---- variances of groups and noise, without a pass over the rows ----------------------------------------------------

# Returns the posterior with the noise variance and the variances of groups that maximise the variational bound. A
# variance that is fixed (`s`: element `learn` of a plan) does not change. The noise variance does not change if the
# residual prior variance is large, because the bound would count that variance as noise.
relearned_variances <- function(factors, data, model, s) {
  if (is.null(factors$groupings)) return(factors)
  moves <- c(free_groups(model$kernel, s)[vapply(factors$groupings, function(g) as.character(g$term), "")],
             !"noise" %in% not_learned(s) && factors$t < effect_limits[["left"]] * factors$n * factors$noise)
  if (!any(moves)) return(factors)
  shift <- data$shift
  now <- NULL
  evaluate <- function(par) {
    if (identical(par, now$par)) return(now)
    logs <- replace(numeric(length(moves)), which(moves), par)
    last <- length(logs)
    groupings <- Map(function(g, log) replace(g, "root", list(g$root * exp(log / 2))), factors$groupings, logs[-last])
    f <- factors_of_effects(factors$sums, nrow(factors$L), factors$columns, groupings, factors$noise * exp(logs[last]))
    f[c("L", "jitter")] <- factors[c("L", "jitter")]
    value <- (f$n * log(2 * pi * f$noise) + f$logdet + f$quad + f$t / f$noise) / 2 - merged_log_density(shift, f$noise)
    slope <- slopes_of_variances(f)
    slope[last] <- slope[last] + (shift$rows - shift$ss / f$noise) / 2
    now <<- list(par = par, factors = f, value = value, slope = slope[moves])
    now
  }
  found <- stats::nlminb(numeric(sum(moves)), function(par) evaluate(par)$value, function(par) evaluate(par)$slope,
                         lower = -5, upper = 5, control = list(rel.tol = 1e-9, iter.max = 15L))
  evaluate(found$par)$factors
}

# Returns TRUE for each group whose variance is learned, named by its term's number. `s` is part `learn` of a plan.
free_groups <- function(kernel, s) {
  table <- kernel_parameters(kernel)
  variances <- which(table$leaf == 0L & plain_groups(kernel)[table$term])
  stats::setNames(!parameter_names(kernel, s$columns)[variances] %in% not_learned(s), table$term[variances])
}

# Returns the derivatives of minus the variational bound by the log variance of each group and by log s2. A group has G
# levels; the p effects of a level have the prior covariance C, and at level l the posterior mean b_l. For s2, q counts
# points and effects, P+ is their whitened posterior precision, e the residuals, t the sum of residual prior variances.
#   (G p - tr(C^{-1} S)) / 2,  S = sum_l (b_l b_l' + Cov(b_l)),      (n - q + tr P+^{-1} - |e|^2 / s2 - t / s2) / 2.
slopes_of_variances <- function(f) {
  parts <- mapply(function(g, effects) {
    inverse <- chol2inv(t(g$root))
    c(effects_of_grouping(g), sum(c(inverse) * matrix(effects$covariance, length(inverse))),
      sum(effects$b * (inverse %*% effects$b)))
  }, f$groupings, effects_of(f))
  own <- seq_len(nrow(f$L))
  trace <- Reduce(`+`, parts[2L, ]) + sum(f$W[own, ]^2)
  rss <- f$quad - Reduce(`+`, parts[3L, ]) - sum(f$gamma[own]^2)
  c((parts[1L, ] - parts[2L, ] - parts[3L, ]) / 2, (f$n - length(own) - length(f$b) + trace - rss - f$t / f$noise) / 2)
}

# Returns the model with the noise and group variances of `factors`, which relearned_variances() may have changed.
model_of_effects <- function(model, factors) {
  if (is.null(factors$groupings)) return(model)
  roots <- group_roots(model$kernel)
  values <- kernel_values(model$kernel)
  table <- kernel_parameters(model$kernel)
  for (g in factors$groupings) {
    of_term <- table$term == g$term & table$leaf == 0L
    before <- Find(function(term) term$term == g$term, roots)
    values[of_term] <- values[of_term] * (g$root[1L] / before$root[1L])^2
  }
  model_with(model, list(kernel = set_values(model$kernel, values), noise = factors$noise))
}

# The functions below learn with groups, by the Vecchia likelihood of the smooth part with all effects integrated out
# (src/integrated.h). Without integration, responses of neighbours would differ by the effects of their levels.

# Returns the numbers of at most `most` rows to learn from, with at most most_levels random levels in each column. To
# keep many levels, effect_learning$rows rows of each level of the first column are taken before any others.
rows_of_levels <- function(x, columns, most,
                           most_levels = effect_learning[[if (nrow(x) <= exact_learning_rows) "few" else "levels"]]) {
  rows <- seq_len(nrow(x))
  if (nrow(x) > most) most_levels <- min(most_levels, max(2, most %/% effect_learning[["rows"]]))
  for (column in columns[order(-apply(x[, columns, drop = FALSE], 2L, max))]) {
    levels <- unique(x[rows, column])
    if (length(levels) > most_levels) rows <- rows[x[rows, column] %in% levels[sample.int(length(levels), most_levels)]]
  }
  if (length(rows) <= most) return(rows)
  rows <- rows[sample.int(length(rows))]
  first <- stats::ave(seq_along(rows), x[rows, columns[1L]], FUN = seq_along) <= effect_learning[["rows"]]
  sort(rows[order(!first)[seq_len(most)]])
}

# Returns list(value, score, information): the Vecchia log likelihood with integrated effects, its derivatives and its
# expected information; only the value if it is not finite or `slopes` is FALSE. Derivatives are by log kernel
# parameters, log noise variance and coefficients of `basis`, features of the log noise variance. The information on the
# smooth part treats effects as known.
integrated_likelihood <- function(pool, now, rows, neighbours, slopes, at, basis = matrix(0, nrow(pool$x), 0L)) {
  groupings <- groupings_of(now$kernel, pool$levels)
  to <- engine_model(smooth_model(now))
  # result$b and result$V are the posterior mean and covariance of the whitened effects, root^{-1} times the effects.
  result <- as_value(native(ffi_integrated, to, groupings, at$rows, pool$weights, basis, rows, neighbours,
                            as.integer(slopes), at$control), to)
  if (!is.finite(result$value) || !slopes) return(result["value"])
  table <- now$kernel$table
  own <- c(!table$term %in% vapply(groupings, `[[`, 0L, "term"), rep(TRUE, 1L + ncol(basis)))
  found <- list(value = result$value, score = numeric(length(own)), information = matrix(0, length(own), length(own)))
  of_smooth <- utils::tail(seq_along(result$score), sum(own)) # skips the variance 0 of a missing smooth part
  found$score[own] <- result$score[of_smooth]
  found$information[own, own] <- result$information[of_smooth, of_smooth]
  first <- 0L
  for (g in groupings) {
    i <- which(table$term == g$term)
    slope <- slopes_of_group(g, result, first, now$kernel, i)
    found$score[i] <- slope$score
    found$information[i, i] <- slope$information
    first <- first + effects_of_grouping(g)
  }
  found
}

# Returns derivatives (score) and expected information of the log likelihood for the log kernel parameters numbered
# `at`, those of group g with G levels. The effects of level l have posterior mean b_l and covariance V_l, and prior
# covariance C. With S = sum_l (b_l b_l' + V_l),
#   score = tr(C^{-1} dC C^{-1} (S - G C)) / 2,   information ~ G tr(B dC B dC) / 2,   B = C^{-1} (C - mean V_l) C^{-1}.
# dC, the derivative of C by a log parameter, is a central difference for all parameters but the variance.
slopes_of_group <- function(g, result, first, kernel, at) {
  p <- nrow(g$root)
  C <- tcrossprod(g$root)
  inverse <- chol2inv(t(g$root))
  own <- first + matrix(seq_len(p * g$levels), p)
  b <- g$root %*% matrix(result$b[own], p)
  V <- matrix(0, p, p)
  for (i in seq_len(p)) for (j in seq_len(p)) V[i, j] <- sum(result$V[cbind(own[i, ], own[j, ])])
  V <- g$root %*% V %*% t(g$root)
  excess <- inverse %*% (tcrossprod(b) + V - g$levels * C) %*% inverse
  B <- inverse %*% (C - V / g$levels) %*% inverse
  values <- kernel$engine$values
  moved <- function(i, step) {
    roots <- group_roots(set_values(kernel, replace(values, i, values[i] * exp(step))))
    tcrossprod(Find(function(term) term$term == g$term, roots)$root)
  }
  slopes <- lapply(at, function(i) if (kernel$table$leaf[i] == 0L) C else (moved(i, 1e-4) - moved(i, -1e-4)) / 2e-4)
  weighted <- lapply(slopes, function(d) B %*% d)
  list(score = vapply(slopes, function(d) sum(excess * d), 0) / 2,
       information = outer(seq_along(slopes), seq_along(slopes), Vectorize(function(i, j) {
         g$levels * sum(weighted[[i]] * t(weighted[[j]])) / 2
       })))
}
