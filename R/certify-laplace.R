# Certifies fits with non-Gaussian likelihoods: bounds the distance between the fit's mode fh (Laplace's approximation
# on inducing points Z) and the mode f* under the exact GP. With L L' = k(Z, Z) and training rows X, let A = L^{-1} k(Z,
# X), E = K - A'A and |g|_E^2 = g'E g. At fh, g and -W are the first two derivatives of the log likelihood at the rows,
# L u is the mode at Z and r = u - A g. Wb is the average of W between both modes. Given row weights Wb and responses y,
# the Gaussian posterior mean at x is h'y. With a = L^{-1} k(Z, x),
#
# f*(x) - fh(x) = (1, -h)'E (0, g) - (a - A h)'r,   where E and the vectors refer to x, then the rows (theory vignette).
#
# This gives three bounds, in the order of effort:
#   crude   |f* - fh| <= sqrt(k(x, x) (|g|_E^2 + |r|^2)),
#   first   sqrt(vup - vS) |g|_E + sqrt(vup) |r|,   vup >= the posterior variance of f(x), vS the SoR variance,
#   second  a bound by E(x, x) and |h|_E, which is smaller if W varies little between the modes.
# The crude bound at the rows gives a range of f, hence of W. The first and second bound then give a narrower range.

# Returns intervals for mode and sd of functionals in the exact GP's Laplace posterior. A new reference has m2 points.
mode_certificate <- function(fit, fun, effort, reference, m2) {
  check_posterior(fit, "certificate", what = "A certificate")
  if (!is.null(fit$factors$groupings) && fun$kind != "values") refuse_grouped(fun$kind, TRUE)
  tell <- stage_line("certify", fit$control$progress)
  kept <- effort == "reference" && !is.null(reference) # the reference mostly has more points: use its bounds alone
  data <- if (effort != "reference" || is.null(reference)) training_data(fit, "fit")
  tell("the fit's own points")
  used <- if (kept) find_laplace_reference(fit, reference)$bounds else laplace_bounds(fit, data, effort == "tight")
  inside <- mode_interval(used, fun)
  if (!kept && effort != "fast" && used$t > used$enough) {
    tell("reference")
    used <- laplace_reference(fit, data, m2, effort == "tight")$bounds
    inside <- narrow(inside, mode_interval(used, fun))
  }
  structure(inside, m2 = if (effort != "fast") nrow(used$z), t = used$t)
}

# ---- bounds on the distance of the modes ----------------------------------------------------------------------------

# Returns the list `b` for distance_of(): the fit's mode (`at`), bounds on norms at the mode (see bounds_around()), and
# the posteriors `lo` and `hi` with the smallest and largest row weights W that the exact GP's mode may have. W is minus
# the second derivative of the log likelihood. Its range is narrowed up to three times.
laplace_bounds <- function(fit, data, tight = FALSE) {
  b <- bounds_at_mode(fit, data, tight)
  if (!b$sites$concave) return(bound_mode_student(b))
  b$at$W <- pmax(b$at$W, 0) # rounding may make it negative
  b$middle <- weighted_posterior(b, b$at$W, norms = TRUE)
  fun <- values_at(b$model$kernel, data$x)
  b$e <- (1 + b$growth) * sqrt(fun$prior) * b$gamma
  b <- with_averages(b)
  for (round in 1:3) {
    if (all(b$between$upper <= (1 + 1e-6) * b$between$lower)) break # the range is narrow enough
    before <- b$e
    b$e <- pmin(b$e, distance_of(b, fun))
    b <- with_averages(b)
    if (!(sum(b$e) < 0.9 * sum(before))) break
  }
  ends <- posteriors_at_ends(b, curvature_range(b$fit$likelihood, b$sites, b$at$f, b$e))
  b[c("W_lower", "W_upper", "lo", "hi")] <- ends[c("lower", "upper", "lo", "hi")]
  b
}

bounds_at_mode <- function(fit, data, tight) {
  z <- fit$inducing
  sites <- sites_of_fit(fit, data)
  if (fit$likelihood$learned) check_own_family(fit$likelihood, sites$y) # the parameters may have changed since a check
  if (!is.null(fit$factors$groupings)) {
    b <- new_bounds(fit, data, z, fit$kernel, tight, sites, fit$jitter, effects = TRUE)
    return(bounds_around(b, mode_with_effects(b, fit$factors, function(f) {
      l <- native_likelihood(sites, f + sites$offset)
      list(f = f + sites$offset, g = l[2L, ], W = l[3L, ])
    })))
  }
  if (!(fit$jitter >= rounding_jitter(nrow(z)))) { # the jitter does not cover rounding errors: drop equal points
    z <- fit$inducing <- distinct_points(z, fit$kernel)
    fit$factors <- laplace_at(data$x, sites, fit$kernel, z, rounding_jitter(nrow(z)), fit$control)
    fit$jitter <- fit$factors$jitter
  }
  at <- mode_again(fit, data, sites)
  bounds_around(new_bounds(fit, data, z, fit$kernel, tight, sites, at$jitter), at)
}

# Returns the initial list `b` of laplace_bounds(). `effects` is TRUE if effects of groups are estimated beside the
# inducing variables. Then `b` has the class "with_effects", and residual prior variances are those of the model
# b$smooth, the kernel without its terms of groups.
new_bounds <- function(fit, data, z, kernel, tight, sites, jitter, effects = FALSE) {
  m <- nrow(z)
  n <- nrow(data$x)
  model <- new_model(kernel, 1)
  b <- list(fit = fit, data = data, z = z, model = model, smooth = if (effects) smooth_model(model) else model,
            tight = tight, jitter = jitter, sites = sites, growth = rounding_growth(m, n), slack = rounding_slack(m, n),
            most = prior_most(model, data$x, z), enough = 1e-9, stretch = 1)
  structure(allowing_for(b, data$x, z), class = if (effects) "with_effects")
}

# Returns the list `b` of laplace_bounds() for a Gaussian likelihood. Its row weights at$W do not depend on f, so the
# posteriors with the smallest weights (`lo`) and with the largest (`hi`) are the same.
gaussian_problem <- function(b, at) {
  b <- bounds_around(b, at)
  W <- pmax(at$W, 0)
  post <- weighted_posterior(b, W, norms = TRUE)
  replace(b, c("W_lower", "W_upper", "middle", "lo", "hi"), list(W, W, post, post, post))
}

# Adds to b the list `at` (f, and the first two derivatives g and -W of the log likelihood, at the rows) and bounds,
# rounding included: `g_E` on sqrt(g'E g), `r` on |u - A g|, gamma = sqrt(g_E^2 + r^2), and `t` on the trace of W E. A
# priori, f = A'v + e at the rows with v ~ N(0, I) and e ~ N(0, E). The fit's mode is A'u.
bounds_around <- function(b, at) {
  b$at <- at
  W <- pmax(at$W, 0)
  g <- at$g
  m <- nrow(b$z)
  n <- nrow(b$data$x)
  b$left <- W * at$left
  b$W_top <- max(abs(at$W))
  b$t <- (1 + b$growth) * sum(W * (at$left + b$slack * b$most))
  groups <- min(n, if (b$tight) n else norm_groups(m)[1L])
  own <- list(L = at$L, C = at$C, beta = numeric(m)) # with beta = 0, the v of native_norms() is g
  norms <- native_norms(own, b$z, list(x = b$data$x, y = g), b$smooth, sample.int(n), groups, 0, b$fit$control)
  by_row <- sum(abs(g) * sqrt(b$at$left + b$slack * b$most))
  b$g_E <- (1 + b$growth) * min(norms$T1, by_row)
  b$r <- sqrt(sum(at$residual^2)) + b$growth * sqrt(b$most) * sum(abs(g) + at$W * (b$sites$unit + abs(at$f))) +
    sqrt(b$most) * sum(at$W * rounding_of_f(at, b$slack * b$most, b$sites))
  b$gamma <- sqrt(b$g_E^2 + b$r^2)
  b
}

# Returns list(factors, norms), the Gaussian posterior on the inducing points with the given row weights. If `norms` is
# TRUE, the element `norms` is the result of posterior_norms() or, for groups, that of effect_forms() with the relative
# rounding error of the factors (`inner`) and the largest weight. variances_of() reads it.
weighted_posterior <- function(b, weights, norms) {
  data <- list(x = b$data$x, y = numeric(length(weights)), weights = weights)
  if (!inherits(b, "with_effects")) {
    p <- native_posterior(b$z, data, b$model, b$jitter, control = b$fit$control)
    return(list(factors = p, norms = if (norms)
      posterior_norms(p, b$z, data, b$model, tight = b$tight, control = b$fit$control, sharp = FALSE)))
  }
  factors <- effect_posterior(b$z, data, b$model, b$jitter, b$fit$control)
  size <- sum(weights * kernel_diagonal(b$model$kernel, data$x))
  factors$G <- matrix(size) # bounds the norm of G
  inner <- max(1e3, 1 + size) * b$growth
  list(factors = factors, norms = if (norms) c(effect_forms(b, factors, weights), inner = inner, weight = max(weights)))
}

# Returns list(sor_variance, unexplained, var_lower, var_upper) for functionals: the SoR variance, the residual prior
# variance, and bounds on the exact variance. For fits with groups, the variance of levels without rows is omitted. If
# row weights are negative (b$stretch > 1), bounds are those of bound_mode_student(), with the sums of subtract_rows().
variances_of <- function(b, post, fun, v = if (inherits(b, "with_effects")) variances_with_effects(b, post, fun) else
  certify_with(post$factors, post$norms, b$z, b$model, fun)) {
  if (is.null(post$signed)) return(replace(v, "var_upper", list(b$stretch * v$var_upper)))
  sor <- certify_with(post$signed, post$norms, b$z, b$model, fun)$sor_variance
  room <- 1e3 * b$growth * sor
  v$var_lower <- pmax(v$var_lower, sor - room - b$stretch * pmax(v$sor_variance - v$var_lower, 0))
  replace(v, "var_upper", list(pmin(sor + room + b$rest * (v$var_upper - v$sor_variance), b$stretch * v$var_upper)))
}

# ---- the range of the row weights W ---------------------------------------------------------------------------------

# Adds the list b$between, valid if the modes of the fit and of the exact GP differ by at most b$e at the rows. `lower`
# and `upper` bound Wb, the average of the row weights W between the modes; `lo` and `hi` are the posteriors with these
# weights. If computable, `second` is A D A' (for groups, effect_forms() of D), with A = L^{-1} k(Z, X), D = diag(d^2 /
# lower) and d >= |Wb - W|.
with_averages <- function(b) {
  whole <- curvature_range(b$fit$likelihood, b$sites, b$at$f, b$e)
  range <- average_curvature_range(b$fit$likelihood, b$sites, b$at$f, b$e, whole)
  range <- b$between <- posteriors_at_ends(b, range)
  if (is.null(b$between$hi)) return(b)
  d <- pmax(range$upper - b$at$W, b$at$W - range$lower)
  ratio <- ifelse(d > 0, d * (d / range$lower), 0)
  if (!all(ratio < 1e50)) return(b)
  if (inherits(b, "with_effects")) {
    b$between$second <- effect_forms(b, b$middle$factors, rep(1, length(ratio)), ratio)
  } else {
    G <- null_if_failed(weighted_posterior(b, ratio, norms = FALSE))$factors$G
    b$between$second <- if (!is.null(G)) G + diag(b$growth * sum(diag(G)), nrow(G))
  }
  b
}

# Extends the range (`lower`, `upper`) of row weights to contain W at the fit's mode, and adds the posteriors `lo` and
# `hi` with these weights. `hi` is NULL if its factorisation fails or an `upper` is too large.
posteriors_at_ends <- function(b, range) {
  range <- list(lower = pmax(pmin(range$lower, b$at$W), 0), upper = pmax(range$upper, b$at$W))
  hi <- if (all(range$upper < 1e12 / b$sites$unit^2)) null_if_failed(weighted_posterior(b, range$upper, norms = TRUE))
  c(range, list(lo = weighted_posterior(b, range$lower, norms = TRUE), hi = hi))
}

# Bounds the exact GP's mode if W, minus the second derivative of the log likelihood, may be negative (Student's t).
# Finds e (or Inf) such that the exact GP has one mode in the box of all f that differ from the fit's mode A'u by up to
# e_n at each row n. For the smallest W in this box, let P = max(W, 0) and N = max(-W, 0). With row weights P, let S be
# the SoR posterior covariance of f, and S + R the exact one, so R is positive semidefinite. The conditions are
#   rho = lambda + t < 1,   lambda = |N^{1/2} S N^{1/2}|_2,   t = sum_n N_n R_nn,   sqrt(v_n / (1 - rho)) gamma < e_n,
#   v(x) = (SoR variance with row weights P - N / p) + R(x, x) (1 - p) / (1 - p - t),   lambda < p < 1 - t.
# This holds because (a + b)^2 <= a^2 / p + b^2 / (1 - p) for the parts a and b of f with covariances S and R. The gap
# 1 - rho is divided between them in the ratio of sqrt(lambda) to sqrt(t). gamma bounds sqrt(g'E g + |u - A g|^2), with
# derivatives g of the log likelihood and the prior covariance A'A + E of f. At any f in the box, the posterior variance
# is at most v, and at most `stretch` = 1 / (1 - rho) times the variance with weights P.
bound_mode_student <- function(b) {
  fun <- values_at(b$model$kernel, b$data$x)
  e <- b$slack * b$sites$unit + 2 * b$gamma * sqrt(b$at$left + native_predict(b$at, b$z, b$model, fun$x)$sor_variance)
  for (attempt in 1:8) {
    W <- curvature_range(b$fit$likelihood, b$sites, b$at$f, e)
    b$stretch <- 1
    b$lo <- weighted_posterior(b, pmax(W$lower, 0), norms = TRUE)
    if (!all(is.finite(unlist(W)))) break
    v <- variances_of(b, b$lo, fun)
    N <- pmax(-W$lower, 0)
    lost <- subtract_rows(b, b$lo, N)
    lambda <- min(lost$norm, sum(N * v$sor_variance)) # the norm is at most the trace
    t <- sum(N * (v$var_upper - v$sor_variance))
    gap <- 1 - (1 + b$growth) * (lambda + t)
    if (!(gap > 0)) break
    b$stretch <- 1 / gap
    b$rest <- 1 + (t + sqrt(t * lambda)) / gap
    if (lambda > 0) b$lo$signed <- lost$signed(1 / (lambda + gap / (1 + sqrt(t / lambda))), -1)
    b$e <- distance_of(b, fun, variances_of(b, b$lo, fun, v))
    if (all(b$e < e)) {
      b$hi <- weighted_posterior(b, pmax(W$upper, 0), norms = TRUE)
      b$hi$signed <- subtract_rows(b, b$hi, pmax(-W$upper, 0))$signed(1, 1)
      return(b)
    }
    e <- 2 * b$e
  }
  b$lo$signed <- NULL
  b$stretch <- b$e <- Inf
  b
}

# Returns list(norm, signed) for the posterior `post` and row weights N. `norm` bounds |N^{1/2} S N^{1/2}|_2, S: SoR
# posterior covariance of f at the rows. signed(times, side) returns the factors of `post` with `times` N subtracted
# from the row weights, or NULL. By rounding, their variances may be too large (`side` -1) or too small (`side` 1).
subtract_rows <- function(b, post, N) {
  p <- post$factors
  rows <- which(N > 0)
  if (!length(rows)) return(list(norm = 0, signed = function(times, side) NULL))
  V <- features_of(values_at(b$model$kernel, b$data$x[rows, , drop = FALSE]), b$z, p$L)
  V <- V * rep(sqrt(N[rows]), each = nrow(V))
  inner <- b$growth * (1 + norm2(p$G)) # bounds the rounding error of C C' = I + G
  lost <- b$growth * sum(V^2)
  signed <- function(times, side) {
    H <- p$G - times * tcrossprod(V) + diag(1 + 2 * side * (inner + times * lost), nrow(V))
    if (inner < 0.25) tryCatch(replace(p, "C", list(t(chol(H)))), error = function(e) NULL)
  }
  norm <- svd(forwardsolve(p$C, V), 0L, 0L)$d[1L]^2
  list(norm = if (inner < 0.25) (1 + 4 * inner) * (norm + lost) else Inf, signed = signed)
}

# Returns an upper bound on |f* - fh|, for values or other functionals of the exact GP's mode f* and the fit's mode fh.
# For a sum of values with weights c_i, the bound is at most the sum of |c_i| times the bound for value i.
distance_of <- function(b, fun, lo = NULL) {
  if (!is.finite(b$stretch)) return(rep(Inf, fun$n))
  values <- fun$kind == "values"
  most <- pmax(b$most, if (values) fun$prior else fun$size)
  prior <- fun$prior + if (values) 0 else b$slack * most
  between <- b$between %||% b # references of version 0.1.0 bound W, but not its average between the modes
  lo <- lo %||% variances_of(b, between$lo, fun)
  top <- sqrt(pmin(lo$var_upper, prior * b$stretch)) # root of the largest variance
  distance <- if (!response_of(b$fit)$concave) {
    top * b$gamma * sqrt(b$stretch)
  } else {
    bottom <- if (is.null(between$hi)) 0 else
      pmax(variances_of(b, between$hi, fun)$sor_variance * (1 - 1e3 * b$growth) - b$slack * most, 0)
    first <- sqrt(pmax(top^2 - bottom, 0)) * b$g_E + top * b$r
    second <- if (values) second_distance(b, between, fun, lo$unexplained, top, most) else Inf
    pmin(sqrt(prior) * b$gamma, first, second)
  }
  distance <- (1 + b$growth) * distance
  if (fun$kind != "sums") return(distance)
  each <- (1 + b$growth) * distance_of(b, values_at(b$model$kernel, fun$x))
  pmin(distance, vapply(seq_len(fun$n), function(i) sum(abs(fun$weights[[i]]) * each[fun$rows[[i]]]), 0))
}

# Returns a bound on |f*(x) - fh(x)|, or Inf. It is small if row weights vary little between the exact GP's mode f* and
# the fit's mode fh. `left` is the residual prior variance of f(x), `top` bounds its sd, `most` its prior variance.
second_distance <- function(b, between, fun, left, top, most) {
  if (is.null(between$second)) return(Inf)
  E <- sqrt(left + b$slack * most)
  if (inherits(b, "with_effects")) {
    at <- features_with_effects(b, b$middle$factors, fun$x)
    eta <- variances_of(b, b$middle, fun)$eta
    spread <- effect_root(b, b$middle$factors, between$second, at)
  } else {
    forms <- native(ffi_forms, engine_posterior(b$middle$factors, b$z, kernel = b$model$kernel),
                    list(b$middle$norms$Psi, between$second, b$middle$factors$G), fun$x,
                    engine_control(fun$n, b$fit$control))
    root <- function(i) sqrt(pmax(forms[i, ], 0) * (1 + 1e3 * b$growth))
    eta <- root(1L) + sqrt(b$slack * most * b$W_top) * root(3L) # bounds |h|_E, where h'y is the posterior mean
    spread <- root(2L)
  }
  (E + eta + sqrt(between$hi$norms$lam) * spread) * (b$g_E + b$r / 2) + top * b$r
}

# Returns intervals for the mode (without constant mean) and the sd of functionals in the exact GP's Laplace posterior.
mode_interval <- function(b, fun) {
  if (!fun$n) return(unknown_intervals(0L))
  b <- allowing_for(b, fun$x)
  mean <- if (fun$kind != "values") drop(crossprod(features_of(fun, b$z, b$at$L), b$at$beta)) else
    if (inherits(b, "with_effects")) features_with_effects(b, b$at$factors, fun$x)$mean else
      native_predict(b$at, b$z, b$model, fun$x)$mean
  most <- variances_of(b, b$lo, fun)
  e <- distance_of(b, fun, if (is.null(b$between)) most) + b$slack * pmax(b$most, fun$size) * weights_norm(b$at) +
    b$growth * (abs(mean) + sqrt(fun$prior * sum(b$at$zeta^2)))
  new <- most$new %||% 0
  lower <- if (is.null(b$hi)) 0 * mean else pmax(variances_of(b, b$hi, fun)$var_lower, 0) + new
  # The prior variance allows for rounding of kernel values and of sums.
  prior <- fun$prior * (1 + 2 * b$unit) + if (fun$kind == "values") 0 else b$slack * fun$size
  upper <- pmin(most$var_upper + new, prior * b$stretch)
  list(mean_lower = mean - e, mean_upper = mean + e, sd_lower = sqrt(lower), sd_upper = sqrt(pmax(upper, lower)))
}

# Returns a reference for a Laplace fit: the model on at most m2 inducing points, without data, with laplace_bounds().
laplace_reference <- function(fit, data, m2 = NULL, tight = FALSE) {
  check_posterior(fit, "certificate", what = "A certificate")
  n <- nrow(data$x)
  grouped <- !is.null(fit$factors$groupings)
  m2 <- if (is.null(m2)) min(max(4L * fit$m, 600L), n) else check_count(m2, "m2", max = n)
  kernel <- if (grouped) smooth_part(fit$kernel) else fit$kernel
  z <- data$x[reference_rows(data, kernel, m2), , drop = FALSE]
  sites <- sites_of_fit(fit, data)
  found <- if (grouped) grouped_laplace_parts(data, sites, fit["kernel"], z, fit$control, no_state()) else
    laplace_at(data$x, sites, fit$kernel, z, rounding_jitter(nrow(z)), fit$control)
  fit[c("inducing", "m", "jitter")] <- list(z, nrow(z), found$jitter)
  fit$factors <- if (grouped) found$factors else found[intersect(parts_of_mode, names(found))]
  bounds <- laplace_bounds(fit, data, tight)
  fit$unexplained <- mean(bounds$left)
  if (sites$concave) bounds$bracket <- laplace_bracket(bounds)
  fit$evidence <- found$evidence + if (grouped) 0 else sum(sites$constant) - sum(log1p(bounds$left)) / 2
  # Delete elements that have a number for each row, so that the reference stays small.
  bounds[c("data", "sites", "e", "W_lower", "W_upper", "left")] <- NULL
  bounds$between[c("lower", "upper")] <- NULL
  bounds$fit <- bounds$fit[c("control", "likelihood")]
  bounds$at <- bounds$at[intersect(c("L", "C", "G", "beta", "jitter", "factors", "zeta"), names(bounds$at))]
  fit$bounds <- bounds
  fit[c("data", "reference", "near")] <- list(NULL)
  replace(fit, c("posterior", "neighbours"), list("far", 0L))
}

find_laplace_reference <- function(fit, given) {
  given <- check_any_fit(given, "reference")
  if (is.null(given$bounds)) abort_input("reference", "has no bounds", hint = "Make it by reference().")
  check_same_model(given, fit, "reference", "fit")
  given$bounds$model <- new_model(given$kernel, 1) # version 0.1.0 stored the model in another form
  given
}

# Returns bounds on the exact GP's Laplace log marginal likelihood. `psi` is -log(likelihood * prior) at the fit's mode.
laplace_bracket <- function(b, psi = NULL) {
  at <- b$at
  l <- native_likelihood(b$sites, at$f)[1L, ]
  psi <- psi %||%
    (if (is.null(at$factors)) -(at$evidence + logdet(at$C) / 2) else sum(at$beta^2, at$zeta^2) / 2 - sum(l))
  logdet_P <- function(factors) factors$logdet %||% logdet(factors$C)
  slack <- b$slack * b$most
  G <- b$lo$factors$G
  most <- min(sqrt(sum(G^2)), max(rowSums(abs(G))))
  constant <- sum(b$sites$constant)
  evidence_ends(b, psi, sum(ifelse(at$g^2 == 0, 0, at$g^2 / b$W_lower)), 1 + most, logdet_P(b$lo$factors),
                if (is.null(b$hi)) Inf else logdet_P(b$hi$factors) + sum(log1p(b$W_upper * (at$left + slack))),
                abs(psi) + sum(abs(l)) + abs(constant) + nrow(b$data$x),
                sum(abs(at$g) * rounding_of_f(at, slack, b$sites)), constant) + c(0, slack * sum(b$W_lower))
}

laplace_evidence_bounds <- function(fit) {
  if (response_of(fit)$kind == "labels") return(bracket_of_classes(fit))
  refuse_if(!response_of(fit)$concave, "fit",
            sprintf("has family %s, which is not log-concave", response_of(fit)$label),
            hint = paste("With several modes no bounds of the Laplace log marginal likelihood are known.",
                         "update(fit, family = family(fit), approx = \"vi\") has a lower bound."))
  with_fixed_seed({
    kept <- if (!is.null(fit$reference)) find_laplace_reference(fit, fit$reference)$bounds$bracket
    if (is.null(fit$data) && !is.null(kept)) return(kept)
    data <- training_data(fit, "fit")
    own <- laplace_bounds(fit, data)
    found <- laplace_bracket(own)
    if (is.null(kept) && own$t > own$enough) kept <- laplace_reference(fit, data)$bounds$bracket
    if (is.null(kept)) found else intersect_brackets(found, kept)
  })
}
