# Certificates for several classes: bounds of the distance of the fit's Laplace posterior from that of the exact GP, for
# contrasts of f and for probabilities. The steps are those of certify-laplace.R with W a matrix at each row:
# alpha W <= W* <= beta W, where a probability at the exact mode is between alpha and beta times the one at the fit's
# mode. Contrasts c are columns gamma = C'c in the orthonormal basis, so that |gamma| = |c - mean(c)|.
#
#   crude   |c'(f* - fh)| <= |gamma| sqrt(k(x, x) (|g|_E^2 + |r|^2)),
#   first   sqrt(vup - vS) |g|_E + sqrt(vup) |r|,   vup = vS(alpha) + (|gamma| sqrt(E) + sqrt(lam vS(alpha)))^2,
#
# with vS(w) the variance at inducing points with weights w W, vS = vS(beta), and lam >= |(w W)^{1/2} E (w W)^{1/2}|.

class_rounds <- 3L

# Returns the bounds: the mode at the rows (`at`), |g|_E, |r|, and the posteriors `lo` and `hi` for alpha W and beta W.
class_bounds <- function(fit, data) {
  sites <- sites_of_fit(fit, data)
  at <- laplace_at(data$x, sites, fit$kernel, fit$inducing, fit$jitter, fit$control, fit$factors, want = 1L, maxit = 0L)
  n <- nrow(data$x)
  m <- nrow(fit$inducing)
  model <- new_model(fit$kernel, 1)
  P <- at$probability
  w <- if (is.null(sites$weight)) rep(1, n) else sites$weight
  hit <- 0 * P
  hit[cbind(seq_len(n), sites$y + 1)] <- 1
  b <- list(fit = fit, data = data, sites = sites, at = at, model = model, w = w, P = P, g = w * (hit - P),
            K = ncol(P), growth = rounding_growth(m * (ncol(P) - 1), n), slack = rounding_slack(m, n),
            most = prior_most(model, data$x, fit$inducing))
  b$trace <- w * rowSums(P * (1 - P))
  b$left <- at$left + b$slack * b$most
  b$t <- (1 + b$growth) * sum(b$trace * b$left)
  b$E <- residual_blocks(b)
  b$g_E <- (1 + b$growth) * min(sum(vapply(b$E, function(e) {
    g <- b$g[e$rows, , drop = FALSE]
    sqrt(sum(pmax(colSums(g * (e$E %*% g)), 0)) + b$slack * b$most * sum(colSums(abs(g))^2))
  }, 0)), sum(sqrt(rowSums(b$g^2) * b$left)))
  size <- sqrt(b$most * sum(at$beta^2)) # of f
  off <- b$slack * b$most * size_of_weights(at) + 4 * .Machine$double.eps * (1 + size) # rounding of f
  b$r <- sqrt(sum(at$residual^2)) +
    sqrt(b$most) * (b$growth * sum(abs(b$g)) + sum(b$trace) * (b$growth * (1 + size) + off))
  b$gamma <- sqrt(b$g_E^2 + b$r^2)
  with_class_ranges(b)
}

# |alpha|, f_j(x) = k(x, Z) alpha_j, over all contrasts
size_of_weights <- function(at) sqrt(sum(solve_t(at$L, at$beta)^2))

# Returns E = K - A'A for groups of rows: list(rows, E).
residual_blocks <- function(b, most = 1000L) {
  n <- nrow(b$data$x)
  rows <- split(sample.int(n), (seq_len(n) - 1L) %/% most)
  lapply(rows, function(i) {
    x <- b$data$x[i, , drop = FALSE]
    A <- forwardsolve(b$at$L, native_kernel_matrix(b$model$kernel, b$fit$inducing, x))
    list(rows = i, E = native_kernel_matrix(b$model$kernel, x, x) - crossprod(A))
  })
}

# Narrows the bounds e [n, K] of the centred modes at the rows in several rounds.
with_class_ranges <- function(b) {
  centred <- class_contrasts(b$K) # row k is the contrast of class k with the mean of all
  prior <- prior_at(b$model, b$data$x)
  e <- (1 + b$growth) * b$gamma * sqrt(prior %o% rowSums(centred^2))
  for (round in seq_len(class_rounds)) {
    b <- with_class_weights(b, class_range(b, e, average = TRUE))
    before <- e
    e <- pmin(e, contrast_bounds(b, b$lo$S, b$hi$S, b$left, prior, centred)$e)
    if (!(sum(e) < 0.9 * sum(before)) || max(e) < 1e-6) break
  }
  b$mean_bounds <- b[c("lo", "hi")]
  b <- with_class_weights(b, class_range(b, e, average = FALSE))
  b$e <- e
  b
}

# Returns list(alpha, beta) [n] such that alpha W <= W* <= beta W if |f*_k - f_k - mean over classes| <= e_k. W* is at
# the exact mode, or with `average` averaged between the two modes, with sums from the right (alpha falls, beta grows).
class_range <- function(b, e, average) {
  at <- function(t) {
    K <- b$K
    up <- down <- matrix(0, nrow(e), K)
    for (k in seq_len(K)) for (j in seq_len(K)) {
      distance <- if (j == k) 0 else t * (e[, j] + e[, k])
      up[, k] <- up[, k] + b$P[, j] * exp(pmin(distance, 500))
      down[, k] <- down[, k] + b$P[, j] * exp(-distance)
    }
    cbind(1 / do.call(pmax, asplit(up, 2L)), 1 / do.call(pmin, asplit(down, 2L)))
  }
  ends <- if (average) Reduce(`+`, lapply((1:16) / 16, at)) / 16 else at(1)
  list(alpha = pmin(ends[, 1L], 1) * (1 - 1e-12), beta = pmax(ends[, 2L], 1) * (1 + 1e-12))
}

# Adds the posteriors with weights alpha W and beta W.
with_class_weights <- function(b, range) {
  posterior <- function(times) {
    sites <- replace(b$sites, "weight", list(b$w * times))
    at <- laplace_at(b$data$x, sites, b$fit$kernel, b$fit$inducing, b$fit$jitter, b$fit$control, b$fit$factors,
                     want = 1L, maxit = 0L)
    c(at[c("L", "C", "beta", "inverse", "S", "penalty")], list(times = times, lam = class_lam(b, times)))
  }
  b[c("lo", "hi")] <- list(posterior(range$alpha), posterior(range$beta))
  b
}

# Returns an upper bound of the largest eigenvalue of (c W)^{1/2} E (c W)^{1/2}: W <= diag(p), and row sums by groups.
class_lam <- function(b, times) {
  rows <- sum(vapply(b$E, function(e) {
    d <- sqrt((times * b$w)[e$rows] * b$P[e$rows, , drop = FALSE])
    max(d * ((abs(e$E) + b$slack * b$most) %*% d))
  }, 0))
  (1 + b$growth) * min(rows, sum(times * b$trace * b$left))
}

# Returns bounds for contrasts (rows of `gamma`) at points with covariances S at alpha W and at beta W, residual prior
# variance `left` and prior variance: list(e, sd_lower, sd_upper), a column for each contrast.
contrast_bounds <- function(b, S_lo, S_hi, left, prior, gamma) {
  q <- ncol(gamma)
  along <- function(S) (1 + b$growth) * pmax(S %*% apply(gamma, 1L, function(c) c(tcrossprod(c))), 0)
  size <- rowSums(gamma^2)
  E <- left %o% size
  lo <- along(S_lo)
  hi <- pmax(along(S_hi) * (1 - 1e3 * b$growth) - b$slack * b$most, 0)
  upper <- pmin(lo + (sqrt(E) + sqrt(b$lo$lam * lo))^2, prior %o% size)
  room <- b$slack * b$most
  first <- sqrt(pmax(upper - hi, 0) + room) * b$g_E + sqrt(upper) * b$r
  lower <- hi + pmax(0, sqrt(pmax(E - 2 * room, 0)) - sqrt(b$hi$lam * along(S_hi)))^2 / (1 + b$hi$lam)
  list(e = (1 + b$growth) * pmin(first, sqrt(prior %o% size) * b$gamma), sd_upper = sqrt(upper) * (1 + b$growth),
       sd_lower = pmin(sqrt(lower), sqrt(upper)) * (1 - b$growth))
}

# Returns the certificate at the rows of x for all pairs of classes: list(pairs [2, .], mean (f_j - f_k at the fit's
# mode), e, sd, sd_lower, sd_upper).
pair_certificate <- function(b, x) {
  C <- class_contrasts(b$K)
  pairs <- utils::combn(b$K, 2L)
  gamma <- C[pairs[2L, ], , drop = FALSE] - C[pairs[1L, ], , drop = FALSE]
  at <- function(post) {
    native_softmax_at(c(b$at["L"], post["inverse"]), b$fit$inducing, b$fit$kernel, x, b$fit$control, b$at$beta)
  }
  prior <- prior_at(b$model, x)
  # the mode is bounded with W averaged between the modes, the variance with W at the exact mode
  mean <- replace(b, c("lo", "hi"), b$mean_bounds)
  S <- lapply(b$mean_bounds, at)
  left <- S$lo$left + b$slack * pmax(b$most, prior)
  e <- contrast_bounds(mean, S$lo$S, S$hi$S, left, prior, gamma)$e
  S <- lapply(b[c("lo", "hi")], at)
  sds <- contrast_bounds(b, S$lo$S, S$hi$S, left, prior, gamma)
  own <- at(b$at)
  shift <- unname(b$fit$center)
  middle <- own$mean %*% t(gamma)
  e <- e + 2 * b$slack * pmax(b$most, prior) * size_of_weights(b$at) + b$growth * abs(middle)
  c(list(pairs = pairs, mean = middle + rep(shift[pairs[2L, ]] - shift[pairs[1L, ]], each = nrow(x)), e = e),
    sds[c("sd_lower", "sd_upper")],
    list(sd = sqrt(pmax(with_rest(own$S, own$left) %*% apply(gamma, 1L, function(c) c(tcrossprod(c))), 0))))
}

# Returns the bounds on the fit's own points. If these leave prior variance, returns the bounds on `m2` of the rows.
bounds_of_classes <- function(fit, effort, m2) {
  data <- needs_data(fit, "fit")
  own <- with_fixed_seed(class_bounds(fit, data))
  if (effort == "fast" || own$t < 1e-9) return(list(own))
  n <- nrow(data$x)
  most <- max(class_points[["most"]] %/% (own$K - 1L), fit$m)
  m2 <- if (is.null(m2)) min(max(4L * fit$m, 600L), n, most) else check_count(m2, "m2", max = n)
  if (m2 <= fit$m) return(list(own))
  z <- with_fixed_seed(data$x[reference_rows(data, fit$kernel, m2), , drop = FALSE])
  more <- laplace_at(data$x, own$sites, fit$kernel, z, rounding_jitter(nrow(z)), fit$control)
  fit$inducing <- z
  fit$jitter <- more$jitter
  fit$factors <- more[c("L", "C", "beta")]
  list(own, with_fixed_seed(class_bounds(fit, data)))
}

# certify() for several classes: a row for each row asked for and each class.
certify_classes <- function(fit, new, effort, m2) {
  started <- proc.time()[["elapsed"]]
  used <- bounds_of_classes(fit, effort, m2)
  levels <- response_of(fit)$levels
  each <- lapply(used, pair_certificate, x = new$x)
  fitted <- each[[1L]]
  inside <- list(lower = do.call(pmax, lapply(each, function(c) c$mean - c$e)),
                 upper = do.call(pmin, lapply(each, function(c) c$mean + c$e)),
                 sd_lower = do.call(pmax, lapply(each, `[[`, "sd_lower")),
                 sd_upper = do.call(pmin, lapply(each, `[[`, "sd_upper")))
  parts <- lapply(seq_along(levels), function(k) certificate_of_class(fitted, inside, k))
  out <- do.call(rbind, lapply(seq_along(levels), function(k) {
    data.frame(row = seq_along(new$index), class = factor(levels[k], levels), parts[[k]][new$index, ])
  }))
  out <- out[order(out$row, out$class), ]
  if (!is.null(new$names)) out$row <- new$names[out$row]
  row.names(out) <- NULL
  last <- used[[length(used)]]
  structure(out, effort = effort, m2 = if (length(used) > 1L) nrow(last$fit$inducing), t = last$t,
            seconds = proc.time()[["elapsed"]] - started, likelihood = fit$likelihood$label,
            class = c("pfdtc_certificate", "data.frame"), sd_y = fit$sd_y)
}

# Returns a class's log odds against the first class with their bounds, and its probability at the mode:
# 1 / (1 + sum_j exp(f_j - f_k)).
certificate_of_class <- function(fitted, inside, k) {
  pairs <- fitted$pairs
  n <- nrow(fitted$mean)
  sum_of <- function(lower_of_k) { # sum over j of exp(f_j - f_k) at an end
    Reduce(`+`, lapply(which(pairs[1L, ] == k | pairs[2L, ] == k), function(i) {
      first <- pairs[1L, i] == k # the pair is f_j - f_k
      exp(if (first) (if (lower_of_k) inside$upper else inside$lower)[, i] else
        -(if (lower_of_k) inside$lower else inside$upper)[, i])
    }))
  }
  own <- Reduce(`+`, lapply(which(pairs[1L, ] == k | pairs[2L, ] == k), function(i) {
    exp(if (pairs[1L, i] == k) fitted$mean[, i] else -fitted$mean[, i])
  }))
  i <- which(pairs[1L, ] == 1L & pairs[2L, ] == k)
  at <- function(v) if (k == 1L) numeric(n) else v[, i]
  room <- 1e-13
  data.frame(mean = at(fitted$mean), mean_error = pmax(at(fitted$mean) - at(inside$lower), at(inside$upper) -
                                                         at(fitted$mean)),
             mean_lower = at(inside$lower), mean_upper = at(inside$upper), sd = at(fitted$sd),
             sd_lower = at(inside$sd_lower), sd_upper = at(inside$sd_upper), response = 1 / (1 + own),
             response_lower = pmax(1 / (1 + sum_of(TRUE)) * (1 - room), 0),
             response_upper = pmin(1 / (1 + sum_of(FALSE)) * (1 + room), 1))
}

# Bounds the exact GP's Laplace evidence.
bracket_of_classes <- function(fit) {
  b <- with_fixed_seed(class_bounds(fit, needs_data(fit, "fit")))
  at <- b$at
  slack <- b$slack * b$most
  psi <- -(at$evidence + logdet(at$C) / 2)
  alpha <- b$lo$times
  c <- sum(rowSums(b$g^2 / pmax(b$P, 1e-300)) / (alpha * b$w)) + sum((at$beta - at$residual)^2)
  share <- if (c > 0) c / (c + b$g_E^2) else 0
  gap <- min(b$gamma^2, if (is.finite(c)) b$g_E^2 * share + b$r^2 + 2 * b$r * b$g_E) / 2
  most <- 1 + sum(b$lo$C^2) - nrow(b$lo$C)
  low <- logdet(b$lo$C) + log1p(max(sum(alpha * b$trace * (at$left - slack)), 0) / most)
  high <- logdet(b$hi$C) + 2 * b$hi$penalty + 2 * slack * sum(b$hi$times * b$trace)
  room <- b$growth * (abs(psi) + nrow(b$P) + abs(low) + nrow(at$C) * sqrt(most)) +
    sum(abs(b$g)) * slack * (1 + sqrt(sum(at$beta^2)))
  c(lower = -psi - high / 2 - room, upper = -psi + gap - low / 2 + room)
}
