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

certify_laplace <- function(fit, new, effort, reference, m2 = NULL) {
  same_chance({
    x <- new$x
    started <- proc.time()[["elapsed"]]
    tell <- stage_line("certify", fit$control$progress)
    on.exit(tell(NULL))
    data <- needs_data(fit, "fit")
    p <- posterior_at(fit, x)
    at <- list(mean = p$mean - fit$center, sd = sqrt(p$var))
    tell("the fit's own points")
    own <- laplace_bounds(fit, data, effort == "tight")
    inside <- laplace_interval(own, x)
    if (effort != "fast" && own$t > own$enough) {
      tell("reference")
      bigger <- laplace_reference(fit, data, m2)
      used <- laplace_bounds(bigger, data, effort == "tight")
      inside <- intersect_intervals(inside, laplace_interval(used, x))
    } else {
      used <- own
    }
    out <- certificate_frame(fit, new, at, inside)
    out <- with_response(out, fit$likelihood)
    structure(out, effort = effort, m2 = if (effort != "fast") nrow(used$z), t = used$t,
              seconds = proc.time()[["elapsed"]] - started, advice = laplace_advice(out, effort),
              likelihood = fit$likelihood$label)
  })
}

# The averaged probability or rate increases in the mean of f; in its variance a rate increases and a probability goes
# towards one half: it lies between its values at the corners.
with_response <- function(out, likelihood) {
  if (likelihood$link == "identity") return(out) # it is f
  corner <- function(mean, sd) moments_of(likelihood, mean, sd^2)$mean
  corners <- cbind(corner(out$mean_lower, out$sd_lower), corner(out$mean_lower, out$sd_upper),
                   corner(out$mean_upper, out$sd_lower), corner(out$mean_upper, out$sd_upper))
  room <- if (likelihood$name == "binomial") 1e-9 else 1e-12 * pmax(corners[, 4L], 0)
  out$response <- corner(out$mean, out$sd)
  out$response_lower <- pmax(pmin(corners[, 1L], corners[, 2L]) - room, 0)
  out$response_upper <- pmax(corners[, 3L], corners[, 4L]) + room
  if (likelihood$name == "binomial") out$response_upper <- pmin(out$response_upper, 1)
  out
}

laplace_advice <- function(out, effort) {
  if (any(is.infinite(out$sd_upper))) {
    return(paste("Nothing is certified: with so many rows far out, or so few points, more than one mode of the exact",
                 "process may be near."))
  }
  wide <- mean(out$mean_upper - out$mean_lower > 2 * out$sd_upper, na.rm = TRUE)
  if (!is.finite(wide) || wide == 0) return(NULL)
  sprintf("The mode is not usefully certified at %.0f %% of the rows: the bound exceeds the sd. %s", 100 * wide,
          if (effort == "fast") "Take effort = \"reference\"." else "A larger reference (`m2`) tells more.")
}

# The same posterior on more points, which nobody optimised.
laplace_reference <- function(fit, data, m2 = NULL) {
  n <- nrow(data$x)
  m2 <- if (is.null(m2)) min(4L * fit$m, n) else check_count(m2, "m2", max = n)
  kernel <- fit$kernel
  z <- data$x[reference_rows(data, kernel, m2), , drop = FALSE]
  found <- laplace_at(data, fit$likelihood, fit$center, kernel, z, rounding_jitter(nrow(z)), fit$control)
  fit$inducing <- z
  fit$m <- nrow(z)
  fit$jitter <- found$jitter
  fit$factors <- found
  fit
}

# ---- what is known of a posterior for all points ---------------------------------------------------------------------

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
  at <- laplace_at(data, fit$likelihood, fit$center, fit$kernel, z, fit$jitter, fit$control, fit$factors$beta,
                   want = 1L, maxit = 0L)
  model <- new_model(fit$kernel, 1)
  b <- list(fit = fit, data = data, z = z, at = at, sites = sites, model = model, tight = tight, jitter = at$jitter,
            growth = rounding_growth(m, n), slack = rounding_slack(m, n), most = prior_most(model))
  b$t <- (1 + b$growth) * sum(pmax(at$W, 0) * (at$left + b$slack * b$most))
  b$enough <- 1e-9
  b$g_E <- norm_of_slopes(b)
  b$r <- residual_norm(b)
  b$gamma <- sqrt(b$g_E^2 + b$r^2)
  b$stretch <- 1
  if (!is_log_concave(fit$likelihood)) return(in_a_box(b))
  b$middle <- weighted_posterior(b, at$W, norms = TRUE)
  b$e <- (1 + b$growth) * sqrt(prior_at(model, data$x)) * b$gamma
  b <- with_range(b)
  for (round in seq_len(rounds)) {
    before <- b$e
    b$e <- pmin(b$e, distance_at(b, data$x))
    b <- with_range(b)
    if (!(sum(b$e) < 0.9 * sum(before))) break
  }
  b
}

# |g|_E, by groups of rows, or by sum |g_n| sqrt(E_nn)
norm_of_slopes <- function(b) {
  m <- nrow(b$z)
  n <- nrow(b$data$x)
  g <- b$at$g
  groups <- min(n, if (b$tight) n else max(m, m^2 %/% 16))
  own <- list(L = b$at$L, C = b$at$C, beta = numeric(m)) # of beta = 0 and noise 1: v = g
  norms <- native_norms(own, b$z, b$data$x, g, NULL, b$model$kernel, 1, sample.int(n), groups, 0, b$fit$control)
  by_row <- sum(abs(g) * sqrt(b$at$left + b$slack * b$most))
  (1 + b$growth) * min(norms$T1, by_row)
}

# |r|, with what rounding does to the sum A g and, by way of f, to g
residual_norm <- function(b) {
  at <- b$at
  alpha <- sqrt(sum(solve_t(at$L, at$beta)^2))
  off <- b$slack * b$most * alpha + 4 * .Machine$double.eps * (1 + abs(at$f)) # of f at a row
  sqrt(sum(at$residual^2)) + b$growth * sqrt(b$most) * sum(abs(at$g) + at$W * (1 + abs(at$f))) +
    sqrt(b$most) * sum(at$W * off)
}

# The posterior with other row weights, as the engine's certificates read it.
weighted_posterior <- function(b, weights, norms) {
  data <- list(x = b$data$x, y = numeric(nrow(b$data$x)), weights = weights)
  p <- native_posterior(b$z, data$x, data$y, weights, b$model$kernel, 1, b$jitter, control = b$fit$control)
  out <- list(factors = p, weights = weights)
  if (norms) {
    out$norms <- posterior_norms(p, b$z, data, b$model, tight = b$tight, control = b$fit$control, sharp = FALSE)
  }
  out
}

# W between its ends over f -+ e, and what belongs to them. `hi` is NULL where W has no bound in double precision.
with_range <- function(b) {
  W <- curvature_range(b$fit$likelihood, b$sites, b$at$f, b$e)
  b$W_lower <- pmin(W$lower, b$at$W)
  b$W_upper <- pmax(W$upper, b$at$W)
  b$lo <- weighted_posterior(b, b$W_lower, norms = TRUE)
  b$hi <- b$second <- NULL
  if (!all(b$W_upper < 1e12)) return(b)
  b$hi <- weighted_posterior(b, b$W_upper, norms = TRUE)
  d <- pmax(b$W_upper - b$at$W, b$at$W - b$W_lower)
  ratio <- ifelse(d > 0, d^2 / b$W_lower, 0)
  if (all(ratio < 1e50)) b$second <- weighted_posterior(b, ratio, norms = FALSE)$factors$G
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
    W <- student_range(b$fit$likelihood, b$sites, b$at$f, e)
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

# Least at |r| = sqrt(3 nu) s, rising to 0 beyond it.
student_range <- function(likelihood, sites, f, e) {
  r <- abs(sites$y - f)
  near <- pmax(r - e, 0)
  far <- r + e
  W <- lapply(list(near, far), function(r) native_likelihood(sites, sites$y - r)[3L, ])
  turn <- sqrt(3 * likelihood$df) * likelihood$theta
  lower <- pmin(W[[1L]], W[[2L]])
  inside <- near < turn & far > turn
  w <- if (is.null(sites$weight)) 1 else sites$weight
  lower <- ifelse(inside, -w * (likelihood$df + 1) / (8 * likelihood$df * likelihood$theta^2), lower)
  upper <- pmax(W[[1L]], W[[2L]])
  list(lower = lower - 1e-12 * abs(lower), upper = upper + 1e-12 * abs(upper))
}

curvature_range <- function(likelihood, sites, f, e) {
  ends <- list(f - e, f + e)
  W <- lapply(ends, function(at) native_likelihood(sites, at)[3L, ])
  top <- do.call(pmax, W)
  if (likelihood$link != "log" || likelihood$name == "nb") { # largest at 0, where the range holds it
    middle <- native_likelihood(sites, numeric(length(f)))[3L, ]
    if (likelihood$link != "probit") top <- ifelse(f - e < 0 & f + e > 0, middle, top)
  }
  if (likelihood$link == "probit") { # a term each for successes and failures, both monotone: end by end
    of <- function(y, size, at) {
      s <- sites
      s$y <- y
      s$size <- size
      native_likelihood(s, at)[3L, ]
    }
    size <- if (is.null(sites$size)) rep(1, length(f)) else sites$size
    none <- 0 * f
    top <- of(sites$y, sites$y, f - e) + of(none, size - sites$y, f + e)
    low <- of(sites$y, sites$y, f + e) + of(none, size - sites$y, f - e)
    return(list(lower = low * (1 - 1e-12), upper = top * (1 + 1e-12)))
  }
  list(lower = do.call(pmin, W) * (1 - 1e-12), upper = top * (1 + 1e-12))
}

# ---- at points ------------------------------------------------------------------------------------------------------

variances_at <- function(b, post, x) native_certify(post$factors, b$z, b$model$kernel, 1, post$norms, x)

# |f*(x) - fh(x)| is no more than this.
distance_at <- function(b, x) {
  if (!is.finite(b$stretch)) return(rep(Inf, nrow(x)))
  prior <- prior_at(b$model, x)
  lo <- variances_at(b, b$lo, x)
  top <- sqrt(pmin(lo$var_upper, prior)) # vup
  if (!is_log_concave(b$fit$likelihood)) return((1 + b$growth) * top * b$gamma * b$stretch)
  first <- second <- rep(Inf, nrow(x))
  bottom <- if (is.null(b$hi)) 0 else
    pmax(variances_at(b, b$hi, x)$sor_variance * (1 - 1e3 * b$growth) - b$slack * b$most, 0)
  first <- sqrt(pmax(top^2 - bottom, 0)) * b$g_E + top * b$r
  if (!is.null(b$second)) {
    forms <- native_forms(b$middle$factors, b$z, b$model$kernel,
                          list(b$middle$norms$Psi, b$second, b$middle$factors$G), x, b$fit$control)
    root <- function(i) sqrt(pmax(forms[i, ], 0) * (1 + 1e3 * b$growth))
    eta <- root(1L) + sqrt(b$slack * b$most * max(b$at$W)) * root(3L)
    E <- sqrt(lo$unexplained + b$slack * b$most)
    second <- (E + eta + sqrt(b$hi$norms$lam) * root(2L)) * (b$g_E + b$r / 2) + top * b$r
  }
  (1 + b$growth) * pmin(sqrt(prior) * b$gamma, first, second)
}

# Of f without the constant mean: the exact mode lies between, and the sd of the exact Laplace posterior.
laplace_interval <- function(b, x) {
  if (!nrow(x)) return(list(mean_lower = numeric(), mean_upper = numeric(), sd_lower = numeric(), sd_upper = numeric()))
  mean <- native_predict(b$at, b$z, b$model$kernel, 1, x)$mean
  e <- distance_at(b, x) + b$slack * b$most * sqrt(sum(solve_t(b$at$L, b$at$beta)^2)) + b$growth * abs(mean)
  lower <- if (is.null(b$hi)) 0 * mean else pmax(variances_at(b, b$hi, x)$var_lower, 0)
  upper <- pmin(variances_at(b, b$lo, x)$var_upper, prior_at(b$model, x)) * b$stretch
  list(mean_lower = mean - e, mean_upper = mean + e, sd_lower = sqrt(lower), sd_upper = sqrt(pmax(upper, lower)))
}

# ---- the evidence ---------------------------------------------------------------------------------------------------

# Bounds of the exact process's Laplace evidence, log det(I + W^{1/2} K W^{1/2}) from both sides.
laplace_bracket <- function(b) {
  at <- b$at
  n <- nrow(b$data$x)
  left <- at$left + b$slack * b$most
  psi <- -(at$evidence + logdet(at$C) / 2)
  squares <- ifelse(at$g == 0, 0, at$g^2 / b$W_lower)
  c <- sum(squares) + sum((at$beta - at$residual)^2)
  gap <- min(b$gamma^2, if (is.finite(c)) b$g_E^2 * c / (c + b$g_E^2) + b$r^2 + 2 * b$r * b$g_E) / 2
  G <- b$lo$factors$G
  most <- min(sqrt(sum(G^2)), max(rowSums(abs(G))))
  low <- logdet(b$lo$factors$C) + log1p(max(sum(b$W_lower * (at$left - b$slack * b$most)), 0) / (1 + most))
  high <- if (is.null(b$hi)) Inf else logdet(b$hi$factors$C) + sum(log1p(b$W_upper * left))
  constant <- sum(log_constant(b$fit$likelihood, b$data$sites))
  room <- b$growth * (abs(psi) + sum(abs(native_likelihood(b$sites, at$f)[1L, ])) + abs(constant) + n + abs(low) +
                        nrow(G) * sqrt(1 + most)) + b$slack * b$most * sum(b$W_upper)
  c(lower = -psi - high / 2 + constant - room, upper = -psi + gap - low / 2 + constant + room)
}

logdet <- function(C) 2 * sum(log(diag(C)))

laplace_evidence_bounds <- function(fit) {
  if (!is_log_concave(fit$likelihood)) {
    abort_input("fit", sprintf("a fit with family %s", fit$likelihood$name), "one with a log-concave likelihood",
                hint = "Where the posterior may have several modes no bracket of its Laplace evidence is known.")
  }
  same_chance({
    data <- needs_data(fit, "fit")
    own <- laplace_bounds(fit, data)
    found <- laplace_bracket(own)
    if (own$t > own$enough) {
      better <- laplace_bracket(laplace_bounds(laplace_reference(fit, data), data))
      found <- c(lower = max(found["lower"], better["lower"]), upper = min(found["upper"], better["upper"]))
    }
    stats::setNames(found, c("lower", "upper"))
  })
}
