#' Bound the log marginal likelihood, and compare fits by it
#'
#' `evidence_bounds()` bounds the log marginal likelihood (evidence) of the exact Gaussian process: by the ELBO, and
#' from above as in Titsias (2014), but tighter. For an exact posterior the two differ only by rounding. A
#' [reference()] kept in `fit$reference` narrows the interval. `anova()` compares each fit with the fit before it;
#' kernels, inputs or families may differ.
#' @param fit,object A fit (Laplace: with a log-concave `family`). Without data the interval is wider, or unavailable.
#' @param true `TRUE` bounds the true log marginal likelihood instead of Laplace's approximation to it, for a `family`
#'   with one latent function, without neighbours. The upper bound can be `Inf`.
#' @param ... For `anova()`, further fits of the same response.
#' @return `c(lower, upper)`, for the response as given and variances as learned (`print()` may inflate them).
#'   If `true`, attribute `within` bounds the total variation distance of the fitted from the true posterior, and so
#'   errors of probabilities. `anova()`: a data frame with `df`, `logLik` (log marginal likelihood) and
#'   its bounds, `AIC`, `difference`, `at_least`, `at_most`.
#' @details With a non-Gaussian `family` the bounds are for Laplace's approximation, and the true value may lie outside;
#'   with `approx = "vi"` they are the variational lower bound and `Inf`. Bounds by `anova()` are `NA` for [gp_sor()],
#'   [gp_fitc()], [gp_subsample()], fits by `"vi"` beside Laplace fits, and fits with neighbours but no reference. Their
#'   `logLik()` can lie outside `evidence_bounds()`, as can that of Laplace fits with inducing points and of models of
#'   groups only.
#'
#' `difference` is that from the fit before. The exact one lies between `at_least` and `at_most`; if these have one
#' sign, the order of the fits is certain. There are no p-values: with priors and bounded ranges,
#' twice a difference is not chi-squared. 5 is a large difference. A useless hyperparameter adds 0.5 at most on average.
#' @section Invariants: `lower <= exact log marginal likelihood <= upper`; a reference never gives a wider interval.
#'   `at_least <= exact difference <= at_most`.
#' @source Titsias (2014), Variational inference for Gaussian and determinantal point processes (NIPS workshop). Chen,
#'   Dafnis and Paouris (2015), Adv. Math. 280, for `true`.
#' @seealso [logLik()][gp_fit-methods], [AIC()][AIC.gp_fit], [reference()], [compare_fits()]
#' @examples
#' evidence_bounds(pfdtc(dist ~ speed, cars, m = 5))
#' both <- pfdtc(depth ~ lat + long, quakes[1:200, ], kernel = kernel_matern(3/2))
#' one <- update(both, depth ~ long)
#' anova(one, both)
#' @export
evidence_bounds <- function(fit, true = FALSE) {
  fit <- check_any_fit(fit, "fit")
  if (check_flag(true, "true") && !response_of(fit)$conjugate) return(with_fixed_seed(true_bracket(fit)))
  own_bracket(fit, if (is.null(attr(fit$learned, "below"))) 1 else attr(fit$learned, "factor"))
}

# Returns bounds on the log marginal likelihood of the fit. With few rows, learn_stage() has multiplied the covariance
# of the responses by `factor`. Bounds of an exact posterior are those for the covariance before this multiplication.
own_bracket <- function(fit, factor = 1) {
  known <- posterior_evidence(posterior_of(fit))
  if (!response_of(fit)$conjugate) {
    return(if (known$is == "estimate") laplace_evidence_bounds(fit) else unlist(known[c("lower", "upper")]))
  }
  if (known$is == "exact") return(exact_bracket(fit, factor))
  own <- if (!is.null(fit$norms) || is.null(fit$data)) fit else with_fixed_seed(own_posterior(fit))
  traits <- method_traits(own)
  if (is.null(own$norms) && (is.null(own$factors$G) || !(traits$dtc || traits$sor) ||
                               own$jitter < rounding_jitter(nrow(own$inducing)))) {
    training_data(fit, "fit")
  }
  found <- evidence_bracket(own, fit$data)
  reference <- fit$reference
  if (!is.null(reference) && !(is.null(fit$data) && is.null(reference$norms))) {
    reference <- find_reference(fit, reference, NULL)
    better <- evidence_bracket(reference, if (!is.null(fit$data)) data_in_scale(fit, reference))
    found <- intersect_brackets(found, better)
  }
  room <- response_room(fit, response_norm(fit) / sqrt(fit$noise))
  found + c(-room, room)
}

# Bounds the error of the log marginal likelihood that comes from rounding of the responses. Let A =
# (K + s2 W^{-1})^{-1} and |y|_A = sqrt(y'A y) <= y_A. An error e of y changes y'A y by at most 2 |y|_A |e|_A + |e|_A^2.
response_room <- function(fit, y_A) {
  e <- 4 * .Machine$double.eps * response_size(fit) / sqrt(fit$noise)
  (y_A + e / 2) * e
}

# Returns the weighted norm of y - offset - constant mean over all rows, in units of y; if the fit has no data, a bound.
response_norm <- function(fit) {
  data <- fit$data
  if (!is.null(data)) return(in_units(fit, sqrt(sum(merged_weights(data) * data$y^2) + data$shift$ss)))
  sums <- fit$signature$sums
  response_size(fit) + abs(fit$center) * sqrt(max(sums[["n"]], sums["w"], na.rm = TRUE))
}

# Returns bounds on the log marginal likelihood of an exact posterior: the computed value, minus and plus its rounding
# error. Let D, with elements d, be the diagonal of C = K + s2 W^{-1} (W: weights), v the noise variances s2 W^{-1}, and
# M = D^{-1/2} C D^{-1/2}. The computed Cholesky factor of C, times D^{-1/2}, is that of M + Delta with |Delta|_F <= N.
# For the eigenvalues x_i of M^{-1/2} Delta M^{-1/2},
#   log det(M + Delta) - log det M = sum log(1 + x_i),  |sum x_i| <= N |M^{-1}|_F,  sum x_i^2 <= (N |M^{-1}|_2)^2.
# M^{-1} <= diag(d / v) bounds both norms. If the resulting bound exceeds 0.01, |M^{-1}|_F is computed. With alpha =
# C^{-1} y, y'alpha errs by at most N |D^{1/2} alpha|^2 (1 + N |M^{-1}|_2). Also, det(s2 W^{-1}) <= det C <= det D. If
# the covariance is C / c for c = `factor`, (n log c - (c - 1) y'C^{-1} y) / 2 is added to the value.
exact_bracket <- function(fit, factor) {
  f <- fit$factors
  f$L <- cholesky_of(posterior_of(fit))
  n <- nrow(f$L)
  model <- model_of(fit)
  eps <- .Machine$double.eps
  d <- rowSums(f$L^2)
  # Without the data, the weights are known only from the diagonal d of k(x, x) + s2 W^{-1}.
  v <- if (!is.null(fit$data)) model$noise / merged_weights(fit$data) else
    pmax(d - kernel_diagonal(model$kernel, fit$x) - 16 * (1 + length(d) / 16) * eps * d, 0)
  sums <- eps * min(n / 2, 4 * sqrt(n) + 10 + n / 64)
  error <- n * c(factor = sums + 2 * eps + kernel_value_error(model$kernel, fit$x), solution = 3 * sums + 8 * eps)
  logs <- log(diag(f$L))
  logdet <- 2 * sum(logs)
  N <- error[["factor"]]
  bound <- function(frobenius, spectral) {
    x <- N * spectral
    if (isTRUE(x < 0.5)) N * frobenius + x^2 / (2 * (1 - x)) else Inf
  }
  of_det <- bound(norm2(d / v), max(d / v))
  if (of_det > 0.01) {
    inverse <- norm2(chol2inv(t(f$L)) * outer(sqrt(d), sqrt(d)))
    inverse <- if (isTRUE(N * inverse < 1 / 3)) inverse / (1 - N * inverse) else Inf
    of_det <- min(of_det, bound(inverse, inverse))
  }
  det <- logdet + c(-1, 1) * of_det
  det <- c(max(det[1L], sum(log(v))), min(det[2L], sum(log(d * (1 + n * eps)))))
  y <- drop(f$L %*% crossprod(f$L, f$alpha))
  quadratic <- sum(y * f$alpha)
  moved <- error[["solution"]] * (1 + error[["solution"]] * max(d / v)) * sum(d * f$alpha^2) +
    sums * sqrt(sum(y^2) * sum(f$alpha^2))
  # Constant terms of the log density are sums over rows of logs of weights and scale. `more` bounds their size.
  more <- fit$nobs * (2 + abs(log(2 * pi * model$noise)) + 2 * abs(log(model$scale))) + abs(sum(log(v / model$noise)))
  # `squares` is the responses' sum of squares about the means of merged rows or, without the data, a bound on it.
  squares <- if (!is.null(fit$data)) fit$data$shift$ss else
    if (nrow(fit$x) == fit$nobs) 0 else (response_norm(fit) / fit$scale)^2
  total <- (quadratic + moved + squares / model$noise) * (1 + 1e-6)
  size <- abs(fit$evidence) + 2 * sum(abs(logs)) + abs(logdet) + total + more + fit$nobs * abs(log(factor))
  change <- if (factor != 1) attr(fit$learned, "below") else 0
  room <- (factor * moved + 2 * rounding_growth(1, fit$nobs) * factor * size) / 2 +
    factor * response_room(fit, sqrt(total))
  out <- fit$evidence + change + c(logdet - det[2L], logdet - det[1L]) / 2 + c(lower = -room, upper = room)
  if (anyNA(out)) c(lower = -Inf, upper = Inf) else out # numbers overflowed
}

# Bounds the log marginal likelihood log Z = -(log det(K + s2 I) + y'w + N log 2 pi) / 2, w = (K + s2 I)^{-1} y, by a
# DTC posterior and a lower bound on y'w. With Q the approximation of K by inducing points, t the trace of K - Q, g_max
# the largest eigenvalue of Q, and c = y'(Q + s2 I)^{-1} y,
#   log det(K + s2 I) >= log det(Q + s2 I) + log(1 + t / (s2 + g_max)),
#   log Z >= -(log det(Q + s2 I) + c + t / s2 + N log 2 pi) / 2.
# The result includes rounding errors (section 10 of the theory vignette).
evidence_bracket <- function(post, data) {
  p <- post$factors
  model <- model_of(post)
  noise <- model$noise
  m <- nrow(p$G)
  norms <- post$norms %||% norms_of_sums(p, post$inducing, model, post$nobs)
  growth <- norms$growth
  q <- quadratic_bracket(p, norms, model)
  if (is.infinite(q$upper)) return(c(lower = -Inf, upper = Inf)) # numbers overflowed
  least <- if (is.null(post$norms)) q$least else least_quadratic(post, data)

  logs <- log(diag(p$C))
  logdet <- 2 * sum(logs) - m * log(noise)
  G_norm <- norm2(p$G)
  delta <- 2 * growth * (G_norm + noise)
  inner <- delta * sum(forwardsolve(p$C, diag(m))^2)
  slopes <- 2 * sqrt(norms$slack * p$k_sum * norms$t) + norms$slack * p$k_sum
  t_low <- (1 - growth) * max(sqrt(p$t) - sqrt(norms$slack * p$k_sum), 0)^2
  g_max <- (sqrt((1 + growth) * min(G_norm, max(rowSums(abs(p$G))))) + sqrt(norms$slack * p$k_sum))^2

  # log N(y; 0, Q + s2 I), where Q approximates K by inducing points, is SoR's log marginal likelihood, or the ELBO plus
  # tr(K - Q) / (2 s2). `constant` is this log density without the terms in y and Q.
  c_term <- p$rss / noise + sum(p$beta^2)
  density <- if (method_traits(post)$sor) post$evidence else post$evidence + p$t / (2 * noise)
  constant <- density + (logdet + c_term) / 2
  lower <- constant - (logdet + inner + q$upper + ((1 + growth) * p$t + slopes) / noise) / 2
  upper <- constant - (logdet - 2 * inner - slopes / noise + log1p(t_low / (noise + g_max)) + least) / 2
  if (!(delta < noise / 4)) upper <- constant - least / 2 # the bound log det(K + s2 I) >= N log s2 always holds
  sums <- growth * (abs(constant) + post$nobs * (2 + abs(log(noise)) + 2 * abs(log(post$scale))) +
                      2 * sum(abs(logs)) + m * abs(log(noise)) + c_term + p$t / noise)
  c(lower = lower - sums, upper = max(upper, lower) + sums)
}

# Bounds log Z, the true log marginal likelihood of a log-concave response, and the total variation distance between the
# true posterior of f at the rows and the fit's, q = N(m, C). The log likelihood l_n of row n has the derivatives g_n
# and -W_n at m. Its quadratic expansion in t = f - m has the posterior q and the marginal likelihood Z_G.
#   log r_n(t) = l_n(m + t) - l_n(m) - g_n t + W_n t^2 / 2,   log Z = log Z_G + log E_q prod r_n.
# Jensen's inequality gives the lower end. The inequality of Chen, Dafnis and Paouris (2015) for correlated normal
# variables gives the upper end, with p_n = 1 / (C_nn (W_n + v)) and v at most 1 / (largest eigenvalue of k(X, X)):
#   sum E_q log r_n <= log Z - log Z_G <= sum (1 / p_n) log E_q r_n^p_n.
# On inducing points, the upper end uses certified intervals of Z_G, m and C_nn for the exact GP. Returns the better
# ends from Laplace's and the variational q. The distance is at most sqrt((upper end - lower end from the fit's q) / 2)
# (Pinsker). Integrals are by the trapezoid rule; their error is estimated from half the nodes.
true_bracket <- function(fit) {
  response <- response_of(fit)
  refuse_if(response$kind == "labels" || !response$concave, "fit", sprintf("has family %s", response$full_label),
            hint = "These bounds need a log-concave likelihood with one latent function.")
  refuse_if(!is.null(fit$near), "fit", "uses neighbours",
            hint = "These bounds need inducing points alone: fit with neighbours = 0.")
  refuse_if(!is.null(fit$factors$groupings), "fit", "has groups beside inducing points",
            hint = "With groups, these bounds exist for at most 2,000 rows.")
  data <- training_data(fit, "fit")
  sites <- replace(sites_of_fit(fit, data), "variational", 0L)
  mode <- laplace_at(data$x, sites, fit$kernel, fit$inducing, fit$jitter, fit$control,
                     if (response$approx == "laplace") fit$factors else list(), want = 1L)
  own_shift <- if (response$approx == "laplace") fit$factors$shift
  fit$factors <- mode
  fit$likelihood$approx <- "laplace"
  b <- bounds_at_mode(fit, data, FALSE)
  best <- variational_at(data$x, replace(sites, "variational", 1L), fit$kernel, b$z, b$at, no_state(), fit$control)
  # Bound the largest eigenvalue of the kernel matrix K; for many rows, by that of its approximation Q plus tr(K - Q).
  x <- b$data$x
  largest <- if (nrow(x) <= dense_rows) largest_eigenvalue(native_kernel_matrix(b$fit$kernel, x, x)) else
    (1 + b$growth) * (largest_eigenvalue(tcrossprod(features_of(values_at(b$fit$kernel, x), b$z, b$at$L))) +
                        sum(b$at$left + b$slack * b$most))
  v <- (1 - 1e-9) / largest
  problems <- list(laplace = gaussian_problem(b, b$at), vi = gaussian_problem(b, best))
  each <- lapply(problems, bracket_of_normal, v = v)
  own <- if (nrow(b$z) == nrow(mode$L)) each[[response$approx]][["lower"]] else -Inf # -Inf if points were dropped
  # `problems` are centred at the mode of f, but the whitened mean of the fit's posterior is the mode plus own_shift.
  if (is.finite(own) && length(own_shift) && any(own_shift != 0)) {
    own <- bracket_of_normal(problems$laplace, v, own_shift)[["lower"]]
  }
  ends <- intersect_brackets(each$laplace, each$vi)
  structure(ends, within = min(1, sqrt(max(ends[["upper"]] - own, 0) / 2)), class = "pfdtc_true_evidence")
}

# Bounds the largest eigenvalue of K by the largest ratio (|K| x)_i / x_i for a positive vector x (Collatz, Wielandt).
largest_eigenvalue <- function(K) {
  K <- abs(K)
  x <- rep(1, nrow(K))
  for (i in 1:20) x <- drop(K %*% x) / max(x) + 1e-8
  max(drop(K %*% x) / x) * (1 + 1e-12 * nrow(K))
}

# Returns c(lower, upper), bounds on the true log marginal likelihood, from the normal approximation q of the posterior
# of f at the rows. `b`, a result of gaussian_problem(), has in b$at the mean of q and the weights W of working rows. In
# the lower bound, q's whitened mean is moved by `moved`. `v` is at most 1 / (largest eigenvalue of k(X, X)).
bracket_of_normal <- function(b, v, moved = 0 * b$at$beta) {
  at <- b$at
  A <- features_of(values_at(b$fit$kernel, b$data$x), b$z, at$L)
  W <- pmax(at$W, 0)
  R <- chol(diag(1, nrow(A)) + tcrossprod(A * rep(sqrt(W), each = nrow(A))))
  half <- backsolve(R, A, transpose = TRUE)
  step <- backsolve(R, at$beta - drop(A %*% at$g), transpose = TRUE)
  C <- colSums(half^2) + at$left
  l <- function(f) native_likelihood(b$sites, f)
  top <- l(at$f)[1L, ]
  constant <- sum(b$sites$constant)
  psi <- sum(at$beta^2) / 2 - sum(top)
  mean <- drop(crossprod(A, moved)) - drop(crossprod(half, step))
  lower <- rows_integral(function(t) {
    weight <- stats::dnorm(t, mean, sqrt(C))
    ifelse(weight > 0, weight * (l(at$f + t)[1L, ] - top - at$g * t + W * t^2 / 2), 0)
  }, mean - 9 * sqrt(C), mean + 9 * sqrt(C))
  room <- b$growth * (abs(psi) + sum(abs(top)) + abs(constant) + length(W) + 2 * sum(abs(log(diag(R))))) +
    sum(abs(at$g) + W * sqrt(C)) * b$slack * b$most * (1 + norm2(at$beta))
  c(lower = constant - psi + sum(step^2) / 2 - sum(log(diag(R))) - sum(W * at$left) / 2 + sum(lower$value) -
      sum(lower$error) - sum((R %*% moved)^2) / 2 - room,
    upper = laplace_bracket(b, psi)[["upper"]] + room + upper_terms(b, v, l, top))
}

# Returns an upper bound on sum (1 / p) log E r^p over the rows. r is a row's likelihood over its normal approximation
# with weight W, at distance t from the mode m. E averages over q, the normal approximation under the exact GP, with
# variances in [C_l, C_u] and means within e of m. With p = 1 / (C_l (W + v)), v <= 1 / (largest eigenvalue of K),
#   E r^p <= (2 pi C_l)^{-1/2} max over |s| <= e of the integral of r^p exp(-t^2 / (2 C_u) + t s / C_u).
# The bound is infinite if p W exceeds 1 / C_u.
upper_terms <- function(b, v, l, top) {
  at <- b$at
  fun <- values_at(b$model$kernel, b$data$x)
  known <- variances_of(b, b$middle, fun)
  prior <- fun$prior
  high <- pmin(known$var_upper, prior)
  low <- pmin(pmax(known$var_lower, 0), high)
  p <- 1 / (low * (b$W_lower + v))
  bend <- p * b$W_lower - 1 / high
  if (!all(bend < -1e-12 / high)) return(Inf)
  e <- distance_of(b, fun) + b$slack * pmax(b$most, prior) * weights_norm(at) + b$growth * (b$sites$unit + abs(at$f))
  each <- lapply(list(e, -e), function(s) {
    log_h <- function(t) p * (l(at$f + t)[1L, ] - top - at$g * t) + bend * t^2 / 2 + t * s / high
    range <- support_of(log_h, function(t) p * (l(at$f + t)[2L, ] - at$g) + bend * t + s / high, sqrt(high))
    found <- rows_integral(function(t) exp(log_h(t) - range$top), range$low, range$high)
    log(found$value + found$error) + range$top
  })
  sum((pmax(each[[1L]], each[[2L]]) - log(2 * pi * low) / 2) / p)
}

# Returns list(low, high, top) for concave functions log_h, one for each row, with the derivative `slope`. `top` is the
# maximum, and log_h is at least 45 below `top` at `low` and `high`. Searches start with steps of `unit`.
support_of <- function(log_h, slope, unit) {
  beyond <- function(from, step, times, open) { # multiplies each step by `times` while open() holds
    for (i in 1:60) {
      further <- open(from + step)
      if (!any(further)) break
      step[further] <- times * step[further]
    }
    from + step
  }
  at <- bisect(function(t) slope(t) > 0, beyond(0, -unit, 2, function(t) slope(t) < 0),
               beyond(0, unit, 2, function(t) slope(t) > 0))
  top <- log_h(at)
  above <- function(t) log_h(t) > top - 45
  list(low = beyond(at, -unit / 4, 1.5, above), high = beyond(at, unit / 4, 1.5, above), top = top)
}

# Integrates h over [low, high] at each row by the trapezoid rule. Returns the integral and its difference from the rule
# with half as many nodes. The number of nodes is doubled, up to 9600, until this difference is small.
rows_integral <- function(h, low, high) {
  nodes <- 300L
  at <- function(share) h(low + (high - low) * share)
  sums <- function(shares) Reduce(`+`, lapply(shares, at))
  whole <- (at(0) + at(1)) / 2 + sums(seq_len(nodes - 1L) / nodes)
  repeat {
    between <- sums((seq_len(nodes) - 0.5) / nodes)
    coarse <- whole * (high - low) / nodes
    whole <- whole + between
    nodes <- 2L * nodes
    value <- whole * (high - low) / nodes
    error <- abs(value - coarse)
    if (nodes >= 9600L || all(error <= 1e-10 * (1e-3 + abs(value)))) break
  }
  list(value = value, error = error)
}

#' @export
print.pfdtc_true_evidence <- print_lines(function(x) {
  ends <- c(show_bound(x[["lower"]], 8, up = FALSE), show_bound(x[["upper"]], 8))
  c(if (is.infinite(x[["upper"]])) {
    sprintf("True log marginal likelihood above %s. More inducing points would bound it from above.", ends[1L])
  } else {
    sprintf("True log marginal likelihood between %s and %s", ends[1L], ends[2L])
  }, if (attr(x, "within") < 0.3) {
    wrap(sprintf(paste("For every event, the probabilities under the fit's and the true posterior of f",
                       "differ by at most %s."), show_bound(attr(x, "within"), 2)))
  })
})
