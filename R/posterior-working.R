# Approximates the posterior of a non-Gaussian likelihood by a normal distribution. Laplace's approximation has its mean
# at the mode; the variational one (approx = "vi") has the largest lower bound on log p(y). Both equal the posterior of
# "working rows" with Gaussian noise: where the log likelihood at f has derivatives g and -W (for "vi", averaged over
# f), a working row has the response f + g / W and the noise variance 1 / W.

# Returns Laplace's or the variational approximation on inducing points z, for `sites` from engine_sites(). `start` is
# an earlier approximation, by default the mode for every eighth row if there are many rows, one f, and a concave log p.
# If log p is not concave (Student's t), a search that ends in a saddle point starts again near the prior mean.
laplace_at <- function(x, sites, kernel, z, jitter, control, start = list(), want = 0L, maxit = 200L) {
  mode <- function(start) {
    native_laplace(z, x, sites, kernel, jitter, start, want = want, maxit = maxit, control = control)
  }
  n <- nrow(x)
  if (!length(start) && n >= mode_rows[["least"]] && sites$concave && is.null(sites$contrasts)) {
    some <- seq(1L, n, by = mode_rows[["by"]])
    start <- native_laplace(z, x[some, , drop = FALSE], lapply(sites, function(v) if (length(v) == n) v[some] else v),
                            kernel, jitter, maxit = mode_rows[["steps"]], control = control)["beta"]
  }
  found <- mode(start)
  for (aside in if (maxit > 0L && !sites$concave) c(0.01, 0.1, 1)) {
    if (found$status == 0L) break
    found <- mode(list(beta = aside * cos(seq_len(nrow(z)))))
  }
  stop_on_status(found, "The posterior's mode")
}

# Returns the result of laplace_at() at the mode of a fit, computed without a new search.
mode_again <- function(fit, data, sites = sites_of_fit(fit, data)) {
  laplace_at(data$x, sites, fit$kernel, fit$inducing, fit$jitter, fit$control, fit$factors, want = 1L, maxit = 0L)
}

# Returns mean minus mode of f at the rows of x, with a column for each latent function.
shift_at_rows <- function(at, z, kernel, x) {
  if (!is.null(at$probability)) return(native_softmax_at(at, z, kernel, x, beta = at$shift)$mean)
  as.matrix(native_kernel_cross_matvec(kernel, z, solve_t(at$L, at$shift), x))
}

# Returns the factor, at most 1, by which laplace_parts() multiplied the shift (mean minus mode).
share_of_shift <- function(factors, at) if (any(at$shift != 0)) sqrt(sum(factors$shift^2) / sum(at$shift^2)) else 1

# Maximises the variational bound from the mode `found`, ten steps at a time; an interrupt returns the last result.
variational_at <- function(x, sites, kernel, z, found, state, control) {
  step <- function(maxit) {
    found <<- laplace_at(x, sites, kernel, z, found$jitter, control, found, want = 1L, maxit = maxit)
  }
  step(1L)
  begun <- FALSE
  climb <- function() {
    begun <<- TRUE
    for (i in 1:30) if (step(10L)$steps < 10L) break
  }
  run_stage(state, "variational", climb(), otherwise = if (!begun) allowInterrupts(climb()))
  found
}

# Returns the lower bound on log p(y), less bounds on its rounding and quadrature errors. `most` is the largest k(x, x).
variational_bound <- function(found, sites, most) {
  m <- length(found$beta)
  n <- length(found$f)
  slack <- rounding_slack(m, n) * most
  off <- rounding_of_f(found, slack, sites)
  size <- sum(abs(native_likelihood(sites, found$f)[1L, ]), abs(found$W) * (found$q + found$left), abs(sites$constant),
              found$beta^2) + n + m + logdet(found$C)
  found$evidence + sum(sites$constant) - rounding_growth(m, n) * size - sum(abs(found$g) * off, abs(found$W) * slack) -
    found$quadrature
}

# Returns a bound on the rounding errors of f plus offset at the rows. `slack` bounds those of kernel values.
rounding_of_f <- function(at, slack, sites) {
  slack * weights_norm(at) + 4 * .Machine$double.eps * (sites$unit + abs(at$f) + abs(sites$offset))
}

# Returns |alpha|, where the mode is f(x) = k(x, Z) alpha for inducing points Z.
weights_norm <- function(at) norm2(solve_t(at$L, at$beta))

# ---- Laplace's approximation with neighbours ------------------------------------------------------------------------
#
# Each step computes the working rows at the current f, and then f as the mean of their posterior with neighbours. A
# fixed point is the mode of a process in which rows that are not neighbours depend on each other only through the
# inducing points. If all rows are neighbours, the steps are Newton's steps for the exact GP. A step changes f by at
# most `longest` times sites$unit, because (log p)'' changes with f. Steps are halved at rows where f alternates. No
# objective decreases in each step, so a warning reports if the mode was not reached after `most` steps.

near_laplace_steps <- list(most = 50L, moved = 1e-5, longest = 4)

# Returns the posterior with neighbours at the mode, with its working rows list(x, y, weights). The search starts at `f`
# (without offset and constant mean). `taken` is the step of f at each row that led to this f, or Inf. The search ends
# if the root mean square of a step is below `settled`.
near_laplace <- function(data, z, f, sites, model, neighbours, run, taken = Inf, settled = 0,
                         rank = sample.int(nrow(data$x))) {
  force(rank)
  found <- mode_of_rows(data, f, sites, "with neighbours", function(rows) {
    c(near_posterior(rows, z, model, neighbours, neighbours, rank, control = run), list(rows = rows))
  }, function(near) {
    posterior_values(new_posterior("near", model, NULL, near$rows, z = z, near = near, control = run), data$x)$mean
  }, taken, settled)
  c(found$posterior, found["steps"])
}

# Iterates to the mode from `f`, and returns list(posterior, f, steps). make(rows) computes the posterior given working
# rows, and mean_of(posterior) the mean of f at the rows. `taken` is the step that led to `f`. The search ends if the
# root mean square of a step is below `settled`. `share` shortens the steps of rows where f alternates.
mode_of_rows <- function(data, f, sites, what, make, mean_of, taken = Inf, settled = 0) {
  share <- 1
  for (step in seq_len(near_laplace_steps$most)) {
    posterior <- make(working_rows(data$x, sites, f))
    rests <- sqrt(mean(taken^2)) < settled
    if (rests) break
    move <- mean_of(posterior) - f
    moved <- max(abs(move))
    if (moved < near_laplace_steps$moved * (sites$unit + max(abs(f)))) break
    back <- is.finite(taken) & move * taken < 0 & abs(move) > 0.9 * abs(taken)
    share <- ifelse(back, share / 2, pmin(2 * share, 1))
    taken <- share * clip_step(move, sites$unit)
    f <- f + taken
  }
  if (!rests && !(moved < 1e-4 * (sites$unit + max(abs(f))))) {
    warn_convergence(sprintf(paste("The search for the mode %s did not converge: its last step moved f by %.2g.",
                                   "Predictions may be wrong."), what, moved))
  }
  list(posterior = posterior, f = f, steps = step)
}

clip_step <- function(move, unit) {
  longest <- near_laplace_steps$longest * unit
  pmin(pmax(move, -longest), longest)
}

# Returns the working rows: responses f + g / W with weights W > 0, where g and -W are the derivatives of log p at f.
working_rows <- function(x, sites, f) {
  l <- native_likelihood(sites, f + sites$offset)
  W <- pmax(l[3L, ], 1e-10 * max(l[3L, ]), 1e-30 / sites$unit^2)
  list(x = x, y = f + l[2L, ] / W, weights = W)
}

# Returns the elements of a non-Gaussian fit that depend on all rows. `start` has the factors of an earlier mode.
# near(f) computes the posterior with neighbours from f, the mode on inducing points without offset and constant mean.
laplace_parts <- function(data, sites, learned, z, run, state, start = list(), near = function(f) NULL) {
  # sum_of_sites identifies the responses, to recognise the data of the fit later.
  common <- list(inducing = z, m = nrow(z), sum_of_sites = vapply(data$sites[c("y", "size", "offset")], function(v) {
    if (is.null(v)) 0 else sum((v * cos(seq_along(v)))[is.finite(v)])
  }, 0))
  # With many rows, effects of groups are treated exactly. With few rows, inducing points represent groups as well.
  if (nrow(data$x) > dense_rows && has_own_levels(learned$kernel) && isTRUE(sites$concave) && sites$variational == 0L) {
    return(c(grouped_laplace_parts(data, sites, learned, z, run, state), common))
  }
  variational <- sites$variational == 1L
  found <- if (!is.null(start$f)) start else posterior_stage(state, function() {
    few <- max(10L, laplace_sizes$contrasts %/% NCOL(sites$contrasts))
    if (!is.null(sites$contrasts) && is.null(start$beta) && nrow(z) >= 2L * few) {
      # Start from the mode on the first inducing points, because their features are the first features of all points.
      first <- z[seq_len(few), , drop = FALSE]
      beta <- laplace_at(data$x, sites, learned$kernel, first, rounding_jitter(nrow(z)), run)$beta
      start <- list(beta = rbind(beta, matrix(0, nrow(z) - few, ncol(beta))))
    }
    laplace_at(data$x, replace(sites, "variational", 0L), learned$kernel, z, rounding_jitter(nrow(z)), run, start,
               want = 1L)
  })
  if (variational) found <- variational_at(data$x, sites, learned$kernel, z, found, state, run)
  if (is.null(state$stopped) && !(found$decrement < 1e-6 * (1 + sqrt(abs(found$evidence))))) {
    warn_convergence(sprintf(paste("The search for the %s did not converge (Newton decrement %.2g).",
                                   "Predictions may be wrong."),
                             if (variational) "variational posterior" else "posterior's mode", found$decrement))
  }
  if (sites$skewed) {
    # Limit the shift from mode to mean, computed from third derivatives at the mode, to `most_shift` sds at every row.
    # It is too large if the data determine little but the sign of f, as with a very large prior variance.
    variance <- if (is.null(found$S)) found$q else rowSums(found$S[, diagonals(ncol(found$shift)), drop = FALSE])
    shift <- shift_at_rows(found, z, learned$kernel, data$x)
    sds <- sqrt(rowSums(shift^2) / (variance + NCOL(found$shift) * found$left))
    found$shift <- found$shift * min(1, most_shift / max(sds))
  }
  near <- near(found$f - sites$offset)
  p <- found$probability
  curvature <- if (is.null(p)) found$W else rowSums(p * (1 - p)) # for several classes, it is the trace of W
  value <- if (!variational) found$evidence - found$penalty + sum(sites$constant) else
    variational_bound(found, sites, prior_most(learned$model, data$x, z))
  c(list(evidence = value, factors = found[intersect(c(parts_of_mode, if (sites$skewed) "shift"), names(found))],
         near = near, neighbours = if (is.null(near)) 0L else near$neighbours, jitter = found$jitter,
         unexplained = mean(pmax(curvature, 0) * found$left)), common)
}

# Returns the list of laplace_parts() for a fit with groups. With whitened coefficients gamma and effects zeta, log
# likelihood l, W = -l'', residual prior variance E, and features A of inducing points and effects at the rows,
#   -2 log evidence = -2 l + |gamma|^2 + |zeta|^2 + log det(I + A W A') + sum log(1 + W E).
grouped_laplace_parts <- function(data, sites, learned, z, run, state) {
  model <- new_model(learned$kernel, 1)
  jitter <- rounding_jitter(nrow(z))
  at <- function(factors) {
    native_effect_predict(factors, z, smooth_model(model), numbered(data$x, factors$groupings), FALSE, run)
  }
  found <- posterior_stage(state, function() {
    mode_of_rows(data, numeric(nrow(data$x)), sites, "with groups",
                 function(rows) effect_posterior(z, rows, model, jitter, run), function(factors) at(factors)$mean)
  })
  f <- found$posterior
  l <- native_likelihood(sites, found$f + sites$offset)
  left <- at(f)$unexplained
  W <- pmax(l[3L, ], 0)
  zeta <- Map(function(g, effects) sum((chol2inv(t(g$root)) %*% effects$b) * effects$b), f$groupings, effects_of(f))
  squared <- sum(unlist(zeta), f$gamma[seq_len(nrow(f$L))]^2)
  value <- sum(l[1L, ], sites$constant) - (squared + f$logdet + sum(log1p(W * left))) / 2
  if (isTRUE(sites$skewed)) { # the shift to the mean is the mean for responses s / W, s = l''' variance / 2
    rows <- working_rows(data$x, sites, found$f)
    s <- l[4L, ] * at(f)$sor_variance / 2
    moved <- effect_posterior(z, replace(rows, "y", list(s / rows$weights)), model, jitter, run)
    of_sd <- abs(at(moved)$mean) / sqrt(at(f)$sor_variance + left)
    f$shift <- lapply(moved[c("gamma", "b")], `*`, min(1, most_shift / max(of_sd)))
  }
  list(evidence = value, factors = f, near = NULL, neighbours = 0L, jitter = f$jitter, unexplained = mean(W * left))
}

parts_of_mode <- c("L", "C", "G", "beta", "inverse", "residual", "jitter", "decrement", "steps")

# Returns the non-Gaussian fit p$fit for other rows or another model, with a search from the old mode. If the old
# inducing points left no residual variance and the other rows are few, inducing points are chosen anew.
remade_working_fit <- function(p, rows, model) {
  fit <- p$fit
  z <- fit$inducing
  if (is_laplace_limit(fit) && nrow(rows$x) <= dense_rows && !identical(rows, p$fit$data)) {
    z <- choose_points(rows$x, nrow(rows$x), fit$kernel, "greedy", control = fit$control)$z
    fit$m_asked <- nrow(z)
  }
  fit$center <- model$center
  if ("theta" %in% names(model)) fit["theta"] <- fit$likelihood["theta"] <- list(model$theta)
  learned <- list(kernel = model_units(model)$kernel, center = fit$center, model = model)
  sites <- sites_of_fit(fit, rows)
  near <- function(f) {
    if (is.null(fit$near)) return(NULL)
    near_laplace(rows, z, f, sites, model, min(fit$neighbours, nrow(rows$x)), fit$control, rank = fit$near$rank)
  }
  parts <- laplace_parts(rows, sites, learned, z, fit$control, no_state(),
                         if (NROW(fit$factors$beta) == nrow(z)) fit$factors else list(), near)
  fit[names(parts)] <- parts
  fit
}

# Returns a posterior of the same class with other rows or another model. Its element `fit` is updated as well.
posterior_again <- function(p, rows = p$rows, model = p$model) {
  fit <- if (is.null(p$fit$likelihood)) remade_fit(p, rows, model) else remade_working_fit(p, rows, model)
  if (!identical(model, p$model)) {
    fit[c("kernel", "noise")] <- model_units(model)
    fit$norms <- fit$reference <- NULL
  }
  if (!is.null(fit$data)) fit$data <- rows
  posterior_of(fit)
}

# ---- inducing points (DTC, SoR, FITC) -------------------------------------------------------------------------------

# Given the data, L^{-1} f(Z) ~ N(beta, noise (C C')^{-1}), with L L' = k(Z, Z), and L, C, beta in p$factors. For a
# functional with prior variance v and features a = L^{-1} Cov(f(Z), functional), the mean is a'beta, and the variance v
# - |a|^2 + noise |C^{-1} a|^2. SoR has only the last term.
posterior_at.points <- function(p, fun, joint = FALSE) {
  p$factors$beta <- mean_weights(p$factors)
  if (fun$kind == "values") {
    at <- native_predict(p$factors, p$z, p$model, fun$x)
    var <- if (p$sor) at$sor_variance else at$sor_variance + at$unexplained
    return(list(mean = at$mean, var = var, cov = if (joint) {
      native(ffi_covariance, engine_posterior(p$factors, p$z, p$model), p$factors$C, fun$x, as.integer(p$sor))
    }))
  }
  a <- features_of(fun, p$z, p$factors$L)
  sor <- p$model$noise * colSums(forwardsolve(p$factors$C, a)^2)
  list(mean = drop(crossprod(a, p$factors$beta)), var = sor + if (p$sor) 0 else pmax(fun$prior - colSums(a^2), 0))
}

# Returns the DTC posterior on the inducing points of p, for error_bounds() and divergences. For an exact posterior, the
# rows are the inducing points, with a tiny jitter. The posterior of a subsample is returned as it is.
posterior_on_points <- function(p) {
  if (inherits(p, "points") && !inherits(p, "grouped") || !is.null(p$chosen)) return(p)
  data <- training_data(p$fit, "fit")
  z <- if (inherits(p, "exact")) p$x else p$z
  factors <- native_posterior(z, data, p$model, jitter = 1e-12, control = p$control)
  new_posterior("points", p$model, p$fit, data, z = z, factors = factors, jitter = factors$jitter)
}

# Returns list(mean, q, left, g, W, rest, group) for the rows. f, with groups' effects, has the variance q + left, where
# data can reduce only q. rest is 1 - W q, and `group` the merged row. Gaussian noise with variance v = s2 / w (FITC:
# plus `left`) has W = 1 / v and g = W (y - mean). Other likelihoods have g and W of their working rows.
row_parts.points <- function(p) {
  apart <- responses_used(p)
  x <- p$rows$x
  sites <- if (!is.null(p$fit$likelihood)) sites_of_fit(p$fit, p$rows)
  shifted <- !is.null(p$factors$shift)
  if (inherits(p, "grouped")) {
    at <- predict_grouped(at_mode(p), x)
  } else if (is.null(sites)) {
    at <- native_predict(p$factors, p$z, p$model, x)
  } else {
    at <- mode_again(p$fit, p$rows, sites)
    part <- list(mean = at$f - sites$offset, q = at$q, left = at$left, g = at$g, W = at$W)
    if (shifted) part$shift <- share_of_shift(p$factors, at) *
        (shift_at_rows(at, p$z, p$fit$kernel, x) - at$q * at$slopes)
    return(c(part, list(rest = 1 - at$W * at$q, group = apart$group)))
  }
  part <- lapply(list(mean = at$mean, q = at$sor_variance, left = at$unexplained), `[`, apart$group)
  if (is.null(sites)) {
    part$W <- 1 / (p$model$noise / apart$w + if (p$fitc) part$left else 0)
    part$g <- part$W * (apart$y - part$mean)
    if (p$sor) part$left <- 0 * part$left
  } else {
    l <- native_likelihood(sites, part$mean + sites$offset)
    part[c("g", "W")] <- list(l[2L, ], l[3L, ])
    if (shifted) part$shift <- predict_grouped(p, x)$mean - part$mean - part$q * l[4L, ] * part$q / 2
  }
  c(part, list(rest = 1 - part$W * part$q, group = apart$group))
}

# If 1 - leverage is almost 0, dividing by it magnifies rounding errors. With inducing points, Gaussian noise and no
# merged rows, up to 20 such rows are instead left out one by one: a new posterior gives the row a tiny weight.
posterior_without.exact <- posterior_without.points <- function(p) {
  part <- without_rounded(row_parts(p))
  rest <- part$rest
  shift <- if (is.null(part$shift)) 0 else drop(part$shift) / rest
  out <- list(mean = part$mean - part$g * part$q / rest + shift, var = part$q / rest + part$left,
              leverage = part$W * part$q)
  data <- p$rows
  rows <- which(is.nan(rest) | rest <= 1e-8)
  by_formula <- inherits(p, "exact") || !is.null(p$fit$likelihood) || !is.null(data$group)
  for (i in if (!by_formula && length(rows) <= 20L) rows) {
    others <- data
    others$weights <- replace(merged_weights(data), i, 1e-12 * min(merged_weights(data)))
    at <- posterior_values(posterior_again(p, rows = others), data$x[i, , drop = FALSE])
    out$mean[i] <- at$mean
    out$var[i] <- at$var
  }
  out
}

# Returns H = C^{-1} L^{-1} k(Z, x), so that the SoR covariance of f at the rows of x is the noise variance times H'H.
whitened_features <- function(p, x) {
  forwardsolve(p$factors$C, forwardsolve(p$factors$L, native_kernel_matrix(p$model$kernel, p$z, x)))
}

# Returns noise a'P^{-1} (A W A') P^{-1} a for each column a of A, the features; P = noise I + A W A', row weights W.
squared_moves.points <- function(p) {
  moves <- in_blocks(p$rows$x, function(x) {
    half <- whitened_features(p, x)
    colSums(half^2) - p$model$noise * colSums(solve_t(p$factors$C, half)^2)
  }, 4096L, c)
  p$model$noise * pmax(moves, 0)
}

covariance_with_rows.points <- function(p, fun) {
  at <- forwardsolve(p$factors$C, features_of(fun, p$z, p$factors$L))
  p$model$noise * crossprod(whitened_features(p, p$rows$x), at)
}
