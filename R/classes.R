# Computes and certifies the posterior of f for several unordered classes, family multinomial(). K latent functions
# share one kernel. Their K - 1 orthonormal contrasts determine the probabilities. For inducing points Z, `factors` has
# L, the Cholesky factor of k(Z, Z); `beta`, L^{-1} f(Z) at the mode (a column for each contrast); C, the Cholesky
# factor of H, the posterior precision of L^{-1} f(Z); `inverse`, the blocks of H^{-1}.

# Returns list(mean [n, K - 1], var [n, (K - 1)^2]): the posterior of f's contrasts at n rows, without constant means.
posterior_at.classes <- function(p, fun, joint = FALSE) {
  refuse_if(fun$kind != "values", "object", "a fit of several classes",
            message = "Slopes, terms and sums of f are not available for several classes.",
            hint = "Fit one class against the others with family = binomial().")
  at <- native_softmax_at(p$factors, p$z, p$model$kernel, fun$x, p$control, mean_weights(p$factors))
  list(mean = at$mean, var = with_rest(at$S, at$left))
}

# Adds each row's residual prior variance (`left`) to the diagonal of its covariance matrix, which is a row of S.
with_rest <- function(S, left) {
  diagonal <- diagonals(as.integer(sqrt(ncol(S))))
  S[, diagonal] <- S[, diagonal] + pmax(left, 0)
  S
}

# Returns for each row the distribution of f without the row's response, and the leverage tr(W Q). At a row, the log
# likelihood has gradient g and Hessian -W, and f has the covariance Q + R: data can reduce Q, and R is the residual
# prior covariance. Without the response, mode and covariance are mode - Q (1 - W Q)^{-1} g and Q (1 - W Q)^{-1} + R.
# `shift`, mean minus mode, becomes (1 - Q W)^{-1} (shift - Q s). Its part Q s is from the response: s (`slopes`) is the
# derivative, by f at the row, of the determinant terms of Laplace's log marginal likelihood.
posterior_without.classes <- function(p) {
  sites <- sites_of_fit(p$fit, p$rows)
  at <- mode_again(p$fit, p$rows, sites)
  f <- native_softmax_at(at, p$z, p$fit$kernel, p$rows$x, p$control, cbind(at$beta, at$shift))$mean
  q <- ncol(at$beta)
  at$mean <- f[, seq_len(q), drop = FALSE]
  f_shift <- f[, -seq_len(q), drop = FALSE]
  leverage <- numeric(nrow(f))
  C <- sites$contrasts
  w <- sites$weight %||% rep(1, nrow(at$mean))
  share <- if (is.null(p$factors$shift)) 0 else share_of_shift(p$factors, at)
  for (n in seq_len(nrow(at$mean))) {
    Q <- matrix(at$S[n, ], q)
    p_n <- at$probability[n, ]
    mean <- drop(crossprod(C, p_n))
    g <- w[n] * (C[sites$y[n] + 1, ] - mean)
    W <- w[n] * (crossprod(C, p_n * C) - tcrossprod(mean))
    rest <- diag(q) - W %*% Q
    inverse <- tryCatch(solve(rest, tol = 1e-14), error = function(e) NaN * Q)
    cov <- Q %*% inverse
    at$mean[n, ] <- at$mean[n, ] - cov %*% g + share * crossprod(inverse, f_shift[n, ] - Q %*% at$slopes[, n])
    at$S[n, ] <- (cov + t(cov)) / 2
    leverage[n] <- q - sum(diag(rest))
  }
  list(mean = at$mean, var = with_rest(at$S, at$left), leverage = leverage)
}

posterior_certificate.classes <- row_parts.classes <- function(p, ...) refuse_classes(p$fit)

# Certificates bound the distance between the modes fh of the fit's Laplace posterior and f* of the exact GP's, for
# contrasts c of classes. Let E be the residual prior covariance, |v|_E^2 = v'E v, and gamma = c - mean(c). At fh, let g
# be the gradient and -W the Hessian (a matrix at each row) of the log likelihood, and r the gradient of the log
# posterior of L^{-1} f(Z), which is nearly 0. h has the coefficients of the rows in the posterior mean of c'f at x, and
# (c, -h) is a vector for f at x and at the rows.
# If each probability p at fh changes to between alpha p and beta p, W changes to between alpha W and beta W. Let vS(w)
# be the variance of c'f on inducing points with row weights w W, lam(w) a bound on the largest eigenvalue of
# (w W)^{1/2} E (w W)^{1/2}, and q^2 = |gamma|^2 E(x, x). Then
#   crude   |c'(f* - fh)| <= |gamma| sqrt(k(x, x) (|g|_E^2 + |r|^2)),
#   first   |c'(f* - fh)| <= |(c, -h)|_E |g|_E + sqrt(vup) |r|,   vup = vS(alpha) + (q + sqrt(lam(alpha) vS(alpha)))^2,
#           |(c, -h)|_E <= q + sqrt(lam(beta) vS(alpha)) and <= sqrt(vup),
# because vup bounds the exact variance for the average W between fh and f*, and it is at least |(c, -h)|_E^2.

# Returns the list `b` for certificates: `at`, the fit's mode and its factors; g_E and r, which bound the distance from
# this mode to the exact GP's; `between`, covariance bounds for the average of the row weights W between both modes; the
# posteriors `lo` and `hi` with the smallest and the largest row weights that the exact GP's mode may have.
class_bounds <- function(fit, data, at = mode_again(fit, data)) {
  sites <- sites_of_fit(fit, data)
  n <- nrow(data$x)
  m <- nrow(fit$inducing)
  model <- new_model(fit$kernel, 1)
  P <- at$probability
  w <- sites$weight %||% rep(1, n)
  b <- list(fit = fit, data = data, sites = sites, at = at, model = model, w = w, P = P,
            g = w * (outer(sites$y + 1, seq_len(ncol(P)), "==") - P),
            K = ncol(P), growth = rounding_growth(m * (ncol(P) - 1), n), slack = rounding_slack(m, n),
            most = prior_most(model, data$x, fit$inducing), prior = kernel_diagonal(model$kernel, data$x))
  b <- allowing_for(b, data$x, fit$inducing)
  b$trace <- w * rowSums(P * (1 - P))
  b$left <- at$left + b$slack * b$prior # features of a row err in proportion to its own prior sd
  b$t <- (1 + b$growth) * sum(b$trace * b$left)
  # Let g be the gradient of the log likelihood at the mode, and E the residual prior covariance. Bound sqrt(g'E g) by
  # the sum of this norm over blocks of 1,000 rows, or over single rows if that sum is smaller.
  b$E <- lapply(blocks_of(sample.int(n), 1000L), function(i) {
    list(rows = i, E = residual_covariance(fit$kernel, fit$inducing, at$L, data$x[i, , drop = FALSE]))
  })
  b$g_E <- (1 + b$growth) * min(sum(vapply(b$E, function(e) {
    g <- b$g[e$rows, , drop = FALSE]
    sqrt(sum(pmax(colSums(g * (e$E %*% g)), 0)) + b$slack * sum(colSums(abs(g) * sqrt(b$prior[e$rows]))^2))
  }, 0)), sum(sqrt(rowSums(b$g^2) * b$left)))
  size <- sqrt(b$prior * sum(at$beta^2)) # bounds |f| at the rows; `off` bounds its rounding errors
  off <- b$slack * sqrt(b$most * b$prior) * weights_norm(at) + 4 * .Machine$double.eps * (1 + size)
  b$r <- norm2(at$residual) +
    sum(sqrt(b$prior) * (b$growth * rowSums(abs(b$g)) + b$trace * (b$growth * (1 + size) + off)))
  b$gamma <- sqrt(b$g_E^2 + b$r^2)
  # From the fit's mode to the exact GP's, f_k minus the mean over classes moves by at most column k of e [n, K].
  centred <- class_contrasts(b$K) # row k is class k minus the mean over classes
  e <- (1 + b$growth) * b$gamma * sqrt(b$prior %o% rowSums(centred^2))
  for (round in 1:9) {
    b$between <- weights_of_class_range(b, e)
    before <- e
    e <- pmin(e, distance_of_contrasts(b, b$between$S, b$left, b$prior, centred))
    if (!(sum(e) < 0.9 * sum(before))) break
  }
  ends <- range_of_weights(b, e)
  b$lo <- posterior_of_classes(b, ends$lower)
  # If the factorisation for the largest row weights fails, lower bounds are 0 for variances and -Inf for log p(y).
  b$hi <- tryCatch(posterior_of_classes(b, ends$upper), pfdtc_error_numerical = function(e) {
    c(b$lo[c("L", "C", "beta", "times")], lapply(b$lo[c("inverse", "S")], `*`, 0),
      list(penalty = Inf, lam = .Machine$double.xmax))
  })
  b
}

# Returns bounds alpha (`lower`) and beta (`upper`) on the factor by which each row's W (minus the Hessian of the log
# likelihood) changes. From the fit's mode to the exact GP's, each f_k minus the mean over classes moves by at most e.
# The bounds hold at the fraction `at` of the way between these modes, or for the mean of W over several fractions.
range_of_weights <- function(b, e, at = 1) {
  range_at <- function(t) {
    K <- b$K
    up <- down <- matrix(0, nrow(e), K)
    for (k in seq_len(K)) for (j in seq_len(K)) {
      distance <- if (j == k) 0 else t * (e[, j] + e[, k])
      up[, k] <- up[, k] + b$P[, j] * exp(pmin(distance, 500))
      down[, k] <- down[, k] + b$P[, j] * exp(-distance)
    }
    cbind(1 / do.call(pmax, asplit(up, 2L)), 1 / do.call(pmin, asplit(down, 2L)))
  }
  ends <- Reduce(`+`, lapply(at, range_at)) / length(at)
  list(lower = pmin(ends[, 1L], 1) * (1 - 1e-12), upper = pmax(ends[, 2L], 1) * (1 + 1e-12))
}

# Returns the posterior on inducing points with the row weights at the fit's mode multiplied by `times`.
posterior_of_classes <- function(b, times) {
  at <- mode_again(b$fit, b$data, replace(b$sites, "weight", list(b$w * times)))
  c(at[c("L", "C", "beta", "inverse", "S", "penalty")], list(times = times, lam = largest_residual(b, times)))
}

# Returns an upper bound on the largest eigenvalue of (times W)^{1/2} E (times W)^{1/2}. E is the residual prior
# covariance of the rows. W are minus the second derivatives of the log likelihood in f at the fit's mode, `times` are
# factors by which they may grow. For rows without such a factor (Inf), the prior weight of the row replaces them: it is
# at least W and its trace, whatever the class probabilities.
largest_residual <- function(b, times) {
  any <- which(times == Inf)
  D <- times * b$w * b$P
  D[any, ] <- b$w[any]
  by_rows <- vapply(b$E, function(e) {
    d <- sqrt(D[e$rows, , drop = FALSE])
    max(d * ((abs(e$E) + b$slack * sqrt(b$prior[e$rows] %o% b$prior[e$rows])) %*% d))
  }, 0)
  (1 + b$growth) * min(sum(by_rows), sum(replace(times * b$trace, any, b$w[any]) * b$left))
}

# Let W be the average of the row weights between the modes of fit and exact GP. Returns upper bounds on the posterior
# covariances with W, of inducing points (`inverse`) and rows (S), and on the largest eigenvalue of W^{1/2} E W^{1/2},
# for the smallest (`lam`) and largest W (`lam_top`) and the residual prior covariance E. If W falls at most by a factor
# `least` near 1, the fit's covariances / `least` are bounds.
weights_of_class_range <- function(b, e) {
  range <- range_of_weights(b, e, (1:16) / 16)
  least <- min(range$lower)
  S <- if (least > class_points[["narrow"]]) lapply(b$at[c("inverse", "S")], `/`, least) else
    posterior_of_classes(b, range$lower)
  c(S[c("inverse", "S")], lam = S$lam %||% largest_residual(b, range$lower), lam_top = largest_residual(b, range$upper))
}

# Returns bounds on |c'(f* - fh)|, for the modes fh of the fit and f* of the exact GP, with a column for each contrast c
# (row of `gamma`). Each row of S has an upper bound on the covariance matrix of f without residual prior variance, as a
# vector. `left` is the residual prior variance, `prior` the prior variance.
distance_of_contrasts <- function(b, S, left, prior, gamma) {
  size <- rowSums(gamma^2)
  v <- (1 + b$growth) * pmax(S %*% t(outer_by_row(gamma)), 0)
  E <- sqrt(left %o% size)
  top <- sqrt(pmin(v + (E + sqrt(b$between$lam * v))^2, prior %o% size))
  first <- pmin(E + sqrt(b$between$lam_top * v), top) * b$g_E + top * b$r
  (1 + b$growth) * pmin(first, sqrt(prior %o% size) * b$gamma)
}

# Returns list(lower, upper), bounds on the exact GP's variances of contrasts, the differences of two classes' f. The
# arguments may also be sums of such variances over pairs of classes, which are then bounded. `lo` and `hi` are the
# variances on inducing points with the smallest (b$lo) and largest row weights (b$hi). `prior` is the prior variance,
# E the residual prior variance, and `room` bounds rounding errors.
variance_range <- function(b, lo, hi, E, prior, room = b$slack * b$most) {
  lo <- (1 + b$growth) * pmax(lo, 0)
  hi <- (1 + b$growth) * pmax(hi, 0)
  points <- pmax(hi * (1 - 1e3 * b$growth) - room, 0)
  list(upper = pmin(lo + (sqrt(E) + sqrt(b$lo$lam * lo))^2, prior),
       lower = points + pmax(0, sqrt(pmax(E - 2 * room, 0)) - sqrt(b$hi$lam * hi))^2 / (1 + b$hi$lam))
}

# Returns a certificate at the rows of x. For all pairs j < k of classes (`pairs`) it has f_k - f_j at the fit's mode
# (`mean`), the posterior `sd`, and bounds on both for the exact GP. For each class it has the result of
# averaged_bounds() and `odds_sd`, an upper bound on the exact GP's sd of log(p / (1 - p)), linearised in f.
pair_certificate <- function(b, x) {
  b <- allowing_for(b, x)
  C <- class_contrasts(b$K)
  pairs <- utils::combn(b$K, 2L)
  gamma <- C[pairs[2L, ], , drop = FALSE] - C[pairs[1L, ], , drop = FALSE]
  at <- function(post) {
    native_softmax_at(c(b$at["L"], post["inverse"]), b$fit$inducing, b$fit$kernel, x, b$fit$control, b$at$beta)
  }
  prior <- kernel_diagonal(b$model$kernel, x)
  S <- lapply(b[c("between", "lo", "hi")], at)
  own <- at(b$at)
  left <- own$left + b$slack * prior
  e <- distance_of_contrasts(b, S$between$S, left, prior, gamma)
  squares <- t(outer_by_row(gamma))
  size <- rowSums(gamma^2)
  v <- variance_range(b, S$lo$S %*% squares, S$hi$S %*% squares, left %o% size, prior %o% size)
  sd_upper <- sqrt(v$upper) * (1 + b$growth)
  sd_lower <- sqrt(pmin(v$lower, v$upper)) * (1 - b$growth)
  shift <- unname(b$fit$center)
  middle <- own$mean %*% t(gamma)
  e <- e + 2 * b$slack * sqrt(pmax(b$most, prior) * prior) * weights_norm(b$at) + b$growth * abs(middle)
  f <- list(mean = own$mean, var = with_rest(own$S, own$left))
  odds <- as_log_odds(f, shift)
  most <- function(v, kept) do.call(pmax, asplit(v[, kept, drop = FALSE], 2L))
  reach <- vapply(seq_len(b$K), function(k) most(e, colSums(pairs == k) > 0), prior)
  share <- averaged_bounds(b, odds, rowSums(f$var[, diagonals(b$K - 1L), drop = FALSE]), S, left, prior,
                           matrix(reach, nrow(x)))
  # The linearised log odds of a class are f_k minus an average of the other f_j. If differences of these f_j change by
  # up to e between the modes of fit and exact GP, the average's weights change by up to tanh(e / 4) in total variation.
  odds_sd <- vapply(seq_len(b$K), function(k) {
    c <- log_odds_of_class(odds$mean, k)$slope %*% C
    size <- rowSums(c^2)
    square <- outer_by_row(c)
    v <- variance_range(b, rowSums(S$lo$S * square), rowSums(S$hi$S * square), left * size, prior * size)
    others <- colSums(pairs == k) == 0
    sqrt(v$upper) * (1 + b$growth) + if (any(others)) tanh(most(e, others) / 4) * most(sd_upper, others) else 0
  }, prior)
  middle <- middle + rep(shift[pairs[2L, ]] - shift[pairs[1L, ]], each = nrow(x))
  c(list(pairs = pairs, mean = middle, lower = middle - e, upper = middle + e, odds_sd = matrix(odds_sd, nrow(x))),
    list(sd = sqrt(pmax(f$var %*% squares, 0)), sd_lower = sd_lower, sd_upper = sd_upper), share)
}

# Returns list(share, share_lower, share_upper): the probabilities p averaged over f, and bounds on them for the exact
# posterior, a column for each class. E averages over the fit's posterior, with log odds `odds` and the trace `trace` of
# the covariance; E* averages over the exact posterior. For class k, o (`reach`) bounds the difference of their modes in
# f_k - f_j, for all j. D bounds the sum of the absolute eigenvalues of the difference of their covariances. Then
#   |E* p - E p| <= o / 4 + .1175 D,   exp(-(o + D)) <= E* p / E p <= exp(o + D).
averaged_bounds <- function(b, odds, trace, S, left, prior, reach) {
  q <- b$K - 1L
  sum_of <- function(S) rowSums(S[, diagonals(q), drop = FALSE])
  v <- variance_range(b, sum_of(S$lo$S), sum_of(S$hi$S), q * left, q * prior, q * b$slack * b$most)
  D <- pmax(v$upper - trace, 0) + pmax(v$upper - v$lower, 0) + q * b$slack * pmax(b$most, prior) + b$growth * trace
  p <- class_moments(odds)$mean
  draws <- class_points[["draws"]]
  # `room` estimates the integration error of p: the difference from a grid with twice the step or, for random points, 4
  # standard errors (from 8 parts of the points) and, if f is wide, a tail of probability 4 / draws they may miss.
  room <- if (q <= 2L) {
    abs(p - class_moments(odds, 0.6)$mean) + 1e-10 + 1e-4 * (widest_odds(odds$var, q) > 1e4)
  } else {
    total <- Reduce(`+`, lapply(split(seq_len(draws), rep(1:8, each = draws / 8)), function(unit) {
      (class_moments(odds, unit = unit)$mean - p)^2
    }))
    4 * sqrt(apply(total, 1L, max) / 56) + 4 / draws * pmin(1, trace / 16) + 0 * p
  }
  off <- reach / 4 + 0.1175 * D
  ratio <- exp(pmin(reach + D, 500))
  list(share = p, share_lower = pmax(p - room - off, (p - room) / ratio, 0),
       share_upper = pmin(p + room + off, (p + room) * ratio, 1))
}

# Returns list(fitted, inside): at x, pair_certificate() for the fit's inducing points, and the narrowest bounds found.
# Unless effort is "fast", or residual prior variances are 0, these also use more inducing points (m2 > fit$m rows).
class_certificate <- function(fit, x, effort, m2 = NULL) {
  data <- training_data(fit, "fit")
  n <- nrow(data$x)
  tell <- stage_line("certify", fit$control$progress)
  tell("the fit's own points")
  own <- with_fixed_seed(class_bounds(fit, data))
  used <- list(own)
  if (effort != "fast" && own$t >= 1e-9) {
    most <- max(class_points[["most"]] %/% (own$K - 1L), fit$m)
    m2 <- if (is.null(m2)) min(max(4L * fit$m, 600L), n, most) else check_count(m2, "m2", max = n)
    if (m2 > fit$m) {
      tell("reference")
      z <- with_fixed_seed(data$x[reference_rows(data, fit$kernel, m2), , drop = FALSE])
      # If the greedy points begin with those of the fit, start the search for their mode at the fit's mode.
      more <- nrow(z) - fit$m
      start <- if (more >= 0L && identical(c(z[seq_len(fit$m), ]), c(fit$inducing))) {
        list(beta = rbind(own$at$beta, matrix(0, more, own$K - 1L)))
      }
      fit$inducing <- z
      at <- laplace_at(data$x, own$sites, fit$kernel, z, rounding_jitter(m2), fit$control, start, want = 1L)
      fit[c("factors", "jitter")] <- list(at, at$jitter)
      used <- list(own, with_fixed_seed(class_bounds(fit, data, at)))
    }
  }
  tell(sprintf("probabilities at %d rows", nrow(x)))
  each <- lapply(used, pair_certificate, x = x)
  fitted <- each[[1L]]
  ends <- c(lower = "pmax", upper = "pmin", sd_lower = "pmax", sd_upper = "pmin", share_lower = "pmax",
            share_upper = "pmin", odds_sd = "pmin")
  inside <- Map(function(tighter, end) do.call(tighter, lapply(each, `[[`, end)), ends, names(ends))
  inside <- c(inside, probability_ends(fitted$pairs, inside))
  structure(list(fitted = fitted, inside = inside), t = used[[length(used)]]$t,
            m2 = if (length(used) > 1L) nrow(fit$inducing))
}

# Returns the data frame of certify() for several classes, with a row for each new row and class. It has the log odds
# against the first class, and the probability averaged over f and at the mode, each with bounds.
certify_classes <- function(fit, new, effort, m2) {
  started <- proc.time()[["elapsed"]]
  found <- class_certificate(fit, new$x, effort, m2)
  levels <- response_of(fit)$levels
  fitted <- found$fitted
  inside <- found$inside
  mode <- probability_ends(fitted$pairs, list(lower = fitted$mean, upper = fitted$mean))$mode_lower
  error <- pmax(fitted$mean - inside$lower, inside$upper - fitted$mean)
  plain <- lapply(latent_at(fit, new$x)[c("mean", "var")], unname)
  odds <- list(mean = fitted$mean, mean_error = error, mean_lower = inside$lower, mean_upper = inside$upper,
               sd = fitted$sd, sd_lower = inside$sd_lower, sd_upper = inside$sd_upper)
  each <- c(lapply(odds, function(v) cbind(0, v[, fitted$pairs[1L, ] == 1L, drop = FALSE])), # 0 for the first class
            list(response = fitted$share, response_lower = inside$share_lower, response_upper = inside$share_upper,
                 mode = mode, mode_lower = inside$mode_lower, mode_upper = inside$mode_upper))
  n <- length(new$index)
  out <- data.frame(row = rep(new$names %||% seq_len(n), each = length(levels)), class = factor(rep(levels, n), levels),
                    lapply(each, function(v) c(t(v[new$index, ]))))
  structure(out, effort = effort, m2 = attr(found, "m2"), t = attr(found, "t"),
            seconds = proc.time()[["elapsed"]] - started, likelihood = fit$likelihood$label,
            moved = max(0, abs(class_moments(plain)$mean - fitted$share)),
            class = c("pfdtc_certificate", "data.frame"), sd_y = fit$sd_y)
}

# Returns list(mode_lower, mode_upper), bounds on the probabilities at the mode, a column for each class. `inside` has
# bounds `lower` and `upper` on f_k - f_j for each of the `pairs` (j, k) of classes.
probability_ends <- function(pairs, inside) {
  each <- function(first, second) { # sum over j of exp(f_j - f_k)
    vapply(seq_len(max(pairs)), function(k) {
      rowSums(cbind(exp(first[, pairs[1L, ] == k, drop = FALSE]), exp(-second[, pairs[2L, ] == k, drop = FALSE])))
    }, first[, 1L])
  }
  room <- 1e-13
  at <- function(sums) matrix(1 / (1 + sums), nrow(inside$lower))
  list(mode_lower = pmax(at(each(inside$upper, inside$lower)) * (1 - room), 0),
       mode_upper = pmin(at(each(inside$lower, inside$upper)) * (1 + room), 1))
}

# Returns a function for predict(certified = TRUE), which computes ends list(lwr, upr) of credible intervals. The
# intervals contain those of the exact GP's Laplace posterior, of log odds if `latent`, else of probabilities.
certified_class_ends <- function(fit, rows) {
  inside <- class_certificate(fit, rows$x, "reference")$inside
  at <- function(v) v[rows$index, , drop = FALSE]
  first <- seq_along(fit$center[-1L]) # pairs with the first class stand first
  function(latent, level) {
    of_pairs <- function(v) at(v[, first, drop = FALSE])
    f <- if (latent) {
      list(lower = of_pairs(inside$lower), upper = of_pairs(inside$upper), top = of_pairs(inside$sd_upper)^2)
    } else {
      list(lower = stats::qlogis(at(inside$mode_lower)), upper = stats::qlogis(at(inside$mode_upper)),
           top = at(inside$odds_sd)^2)
    }
    ends <- normal_ends(f, list(noise = 0), level)
    if (latent) ends else lapply(ends, stats::plogis)
  }
}

# Returns bounds on the Laplace log marginal likelihood of the exact GP with several classes.
bracket_of_classes <- function(fit) {
  b <- with_fixed_seed(class_bounds(fit, training_data(fit, "fit")))
  at <- b$at
  psi <- -(at$evidence + logdet(at$C) / 2)
  b[c("W_lower", "W_upper")] <- lapply(b[c("lo", "hi")], function(post) post$times * b$trace)
  evidence_ends(b, psi, sum(rowSums(b$g^2 / pmax(b$P, 1e-300)) / (b$lo$times * b$w)),
                1 + sum(b$lo$C^2) - nrow(b$lo$C), logdet(b$lo$C), logdet(b$hi$C) + 2 * b$hi$penalty,
                abs(psi) + nrow(b$P), sum(abs(b$g)) * (b$slack * b$most) * (1 + norm2(at$beta)))
}

# Returns c(lower, upper), bounds on Laplace's log marginal likelihood of the exact GP. `psi` is minus log(likelihood
# times prior) at the fit's mode, where the log likelihood has the derivatives g and -W. `high` is an upper bound on
# log det(I + W^{1/2} K W^{1/2}); `low` is a lower bound with A'A <= K, from inducing points, in place of K. W is at
# least b$W_lower; for this W, `most` bounds the largest eigenvalue of I + A W A', and `squares` bounds g'W^{-1} g from
# above. The result allows for rounding errors relative to `size`, and for absolute errors `off`.
evidence_ends <- function(b, psi, squares, most, low, high, size, off, constant = 0) {
  at <- b$at
  slack <- b$slack * b$most
  c <- squares + sum((c(at$beta, at$zeta) - at$residual)^2)
  share <- if (c > 0) c / (c + b$g_E^2) else 0
  gap <- min(b$gamma^2, if (is.finite(c)) b$g_E^2 * share + b$r^2 + 2 * b$r * b$g_E) / 2
  low <- low + log1p(max(sum(b$W_lower * (at$left - slack)), 0) / most)
  high <- high + 2 * slack * sum(b$W_upper)
  room <- b$growth * (size + abs(low) + length(at$residual) * sqrt(most)) + off
  c(lower = -psi - high / 2 + constant - room, upper = -psi + gap - low / 2 + constant + room)
}
