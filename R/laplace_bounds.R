# Where the exact Gaussian process's Laplace posterior lies: bounds of the distance of its mode and of its sd from those
# on inducing points. With g, W of any u, r = u - A g and Wb between the W of both modes (theory vignette),
#
#   f* - fh = K (g* - g) + E g - A'r,   hence   f*(x) - fh(x) = <(1, -h), (0, g)>_E - (a - A h)'r,
#
# h the exact process's weights at x with the row weights Wb. In the order of effort
#
#   crude   |f* - fh| <= sqrt(k(x, x) (|g|_E^2 + |r|^2)),
#   first   sqrt(vup - vS) |g|_E + sqrt(vup) |r|,   vup and vS the variances at the ends of W's range,
#   second  (sqrt(E(x, x)) + |h^W|_E + sqrt(lam) |W^{-1/2} dW A'C_x|) (|g|_E + |r| / 2) + sqrt(vup) |r|.
#
# The first at the rows gives a range of f, hence of W, hence the others, again and again: what is proved stays proved.


# list(z, at = the rows' g, W, ..., g_E, r, gap of the crude bound, lo, hi: what belongs to the ends of W's range, ...)
laplace_bounds <- function(fit, data, tight = FALSE, rounds = 3L) {
  z <- fit$inducing
  m <- nrow(z)
  n <- nrow(data$x)
  if (!(fit$jitter >= rounding_jitter(m))) { # points that somebody gave
    z <- distinct_points(z, fit$kernel)
    fit$inducing <- z
    m <- nrow(z)
    fit$factors <- laplace_at(data, fit$likelihood, fit$center, fit$kernel, z, rounding_jitter(m), fit$control)
    fit$jitter <- fit$factors$jitter
  }
  sites <- engine_sites(fit$likelihood, data$sites, fit$center)
  at <- laplace_at(data, fit$likelihood, fit$center, fit$kernel, z, fit$jitter, fit$control, fit$factors,
                   want = 1L, maxit = 0L)
  model <- new_model(fit$kernel, 1)
  b <- list(fit = fit, data = data, z = z, at = at, sites = sites, model = model, tight = tight, jitter = at$jitter,
            growth = rounding_growth(m, n), slack = rounding_slack(m, n), most = prior_most(model, data$x, z))
  b$left <- pmax(at$W, 0) * at$left
  b$W_top <- max(abs(at$W))
  b$t <- (1 + b$growth) * sum(pmax(at$W, 0) * (at$left + b$slack * b$most))
  b$enough <- 1e-9
  b$g_E <- norm_of_slopes(b)
  b$r <- residual_norm(b)
  b$gamma <- sqrt(b$g_E^2 + b$r^2)
  b$stretch <- 1
  if (!as_response(fit$likelihood)$concave) return(in_a_box(b))
  b$middle <- weighted_posterior(b, at$W, norms = TRUE)
  b$e <- (1 + b$growth) * sqrt(prior_at(model, data$x)) * b$gamma
  b <- with_range(b)
  for (round in seq_len(rounds)) {
    if (all(b$W_upper <= (1 + 1e-6) * b$W_lower)) break # nothing more to be had of it
    before <- b$e
    b$e <- pmin(b$e, distance_at(b, data$x))
    b <- with_range(b)
    if (!(sum(b$e) < 0.9 * sum(before))) break
  }
  b
}

# The same without what it has of each row, to be kept.
bounds_alone <- function(b) {
  b[c("data", "sites", "e", "W_lower", "W_upper", "left")] <- NULL
  b$fit <- b$fit[c("control", "likelihood")]
  b$at <- b$at[c("L", "C", "G", "beta", "jitter")]
  for (post in c("middle", "lo", "hi")) b[[post]]$weights <- NULL
  b
}

# |g|_E, by groups of rows, or by sum |g_n| sqrt(E_nn)
norm_of_slopes <- function(b) {
  m <- nrow(b$z)
  n <- nrow(b$data$x)
  g <- b$at$g
  groups <- min(n, if (b$tight) n else max(m, m^2 %/% 16))
  own <- list(L = b$at$L, C = b$at$C, beta = numeric(m)) # of beta = 0 and noise 1: v = g
  norms <- native_norms(own, b$z, list(x = b$data$x, y = g), new_model(b$model$kernel, 1), sample.int(n), groups, 0,
                        b$fit$control)
  by_row <- sum(abs(g) * sqrt(b$at$left + b$slack * b$most))
  (1 + b$growth) * min(norms$T1, by_row)
}

# |r|, with what rounding does to the sum A g and, by way of f, to g
residual_norm <- function(b) {
  at <- b$at
  sqrt(sum(at$residual^2)) + b$growth * sqrt(b$most) * sum(abs(at$g) + at$W * (1 + abs(at$f))) +
    sqrt(b$most) * sum(at$W * rounding_of_f(at, b$slack * b$most, b$sites$offset))
}

# The posterior with other row weights, as the engine's certificates read it.
weighted_posterior <- function(b, weights, norms) {
  data <- list(x = b$data$x, y = numeric(nrow(b$data$x)), weights = weights)
  p <- native_posterior(b$z, list(x = data$x, y = data$y, weights = weights), new_model(b$model$kernel, 1), b$jitter,
                        control = b$fit$control)
  out <- list(factors = p, weights = weights)
  if (norms) {
    out$norms <- posterior_norms(p, b$z, data, b$model, tight = b$tight, control = b$fit$control, sharp = FALSE)
  }
  out
}

# W between its ends over f -+ e, and what belongs to them. `hi` is NULL where W has no bound in double precision, or
# none that H has a factor with; so is `second`, A diag(d^2 / W_lower) A' with what rounding may take from its forms.
with_range <- function(b) {
  W <- curvature_range(b$fit$likelihood, b$sites, b$at$f, b$e)
  b$W_lower <- pmin(W$lower, b$at$W)
  b$W_upper <- pmax(W$upper, b$at$W)
  b$lo <- weighted_posterior(b, b$W_lower, norms = TRUE)
  b$hi <- b$second <- NULL
  or_none <- function(...) tryCatch(weighted_posterior(b, ...), pfdtc_error_numerical = function(e) NULL)
  if (all(b$W_upper < 1e12)) b$hi <- or_none(b$W_upper, norms = TRUE)
  if (is.null(b$hi)) return(b)
  d <- pmax(b$W_upper - b$at$W, b$at$W - b$W_lower)
  ratio <- ifelse(d > 0, d * (d / b$W_lower), 0)
  G <- if (all(ratio < 1e50)) or_none(ratio, norms = FALSE)$factors$G
  if (!is.null(G)) b$second <- G + diag(b$growth * sum(diag(G)), nrow(G))
  b
}

# Where W may be negative: a box |f - fh| <= e at the rows. With P = max(W, 0) and N = max(-W, 0) at the least W in it,
# rho = sum N_n vup_P(x_n) < 1 and sqrt(vup_P(x_n)) gamma / (1 - rho) < e_n. Minus the log posterior has then everywhere
# in the box at least (1 - rho) times the curvature that P gives it: one stationary point of the exact process lies in
# it, a mode, no further from fh than that, at rows or elsewhere; its variance is no more than vup_P / (1 - rho).
# `stretch` is 1 / (1 - rho), Inf where no box was found.
in_a_box <- function(b) {
  least <- list(lower = pmax(b$at$W, 0))
  at_rows <- function(b) {
    (1 + b$growth) * sqrt(pmin(variances_at(b, b$lo, b$data$x)$var_upper, prior_at(b$model, b$data$x))) * b$gamma
  }
  b$lo <- weighted_posterior(b, least$lower, norms = TRUE)
  e <- 2 * at_rows(b) + b$slack
  for (attempt in 1:8) {
    W <- curvature_range(b$fit$likelihood, b$sites, b$at$f, e)
    b$lo <- weighted_posterior(b, pmax(W$lower, 0), norms = TRUE)
    reach <- at_rows(b)
    vup <- if (b$gamma > 0) (reach / b$gamma)^2 else Inf
    rho <- (1 + b$growth) * sum(pmax(-W$lower, 0) * vup)
    if (!(rho < 1)) break
    reach <- reach / (1 - rho)
    if (all(reach < e)) {
      b$stretch <- 1 / (1 - rho)
      b$hi <- weighted_posterior(b, pmax(W$upper, 0), norms = TRUE)
      b$e <- reach
      return(b)
    }
    e <- 2 * reach
  }
  b$stretch <- b$e <- Inf
  b
}

# ---- at points ------------------------------------------------------------------------------------------------------

variances_at <- function(b, post, x) native_certify(post$factors, b$z, new_model(b$model$kernel, 1), post$norms, x)

# |f*(x) - fh(x)| is no more than this.
distance_at <- function(b, x) {
  if (!is.finite(b$stretch)) return(rep(Inf, nrow(x)))
  prior <- prior_at(b$model, x)
  b$most <- pmax(b$most, prior)
  lo <- variances_at(b, b$lo, x)
  top <- sqrt(pmin(lo$var_upper, prior)) # vup
  if (!as_response(b$fit$likelihood)$concave) return((1 + b$growth) * top * b$gamma * b$stretch)
  first <- second <- rep(Inf, nrow(x))
  bottom <- if (is.null(b$hi)) 0 else
    pmax(variances_at(b, b$hi, x)$sor_variance * (1 - 1e3 * b$growth) - b$slack * b$most, 0)
  first <- sqrt(pmax(top^2 - bottom, 0)) * b$g_E + top * b$r
  if (!is.null(b$second)) {
    forms <- native_forms(b$middle$factors, b$z, b$model$kernel,
                          list(b$middle$norms$Psi, b$second, b$middle$factors$G), x, b$fit$control)
    root <- function(i) sqrt(pmax(forms[i, ], 0) * (1 + 1e3 * b$growth))
    eta <- root(1L) + sqrt(b$slack * b$most * b$W_top) * root(3L)
    E <- sqrt(lo$unexplained + b$slack * b$most)
    second <- (E + eta + sqrt(b$hi$norms$lam) * root(2L)) * (b$g_E + b$r / 2) + top * b$r
  }
  (1 + b$growth) * pmin(sqrt(prior) * b$gamma, first, second)
}

# Of f without the constant mean: the exact mode lies between, and the sd of the exact Laplace posterior.
mode_interval <- function(b, x) {
  if (!nrow(x)) return(list(mean_lower = numeric(), mean_upper = numeric(), sd_lower = numeric(), sd_upper = numeric()))
  mean <- native_predict(b$at, b$z, new_model(b$model$kernel, 1), x)$mean
  prior <- prior_at(b$model, x)
  e <- distance_at(b, x) + b$slack * pmax(b$most, prior) * weights_norm(b$at) + b$growth * abs(mean)
  lower <- if (is.null(b$hi)) 0 * mean else pmax(variances_at(b, b$hi, x)$var_lower, 0)
  upper <- pmin(variances_at(b, b$lo, x)$var_upper, prior) * b$stretch
  list(mean_lower = mean - e, mean_upper = mean + e, sd_lower = sqrt(lower), sd_upper = sqrt(pmax(upper, lower)))
}
