# A bracket of the true log marginal likelihood of a log-concave response, and with it the distance of the approximate
# posterior from the true one. q = N(m, C) is Laplace's or the variational posterior of f at the rows, with slopes g
# and curvatures W; t = f - m, and
#
#   log r_n(t) = l_n(m + t) - l_n(m) - g_n t + W_n t^2 / 2,   log Z = log Z_G + log E_q prod r_n.
#
# Z_G is the evidence of the Gaussian problem. Jensen's inequality gives the lower end, and that of Chen, Dafnis and
# Paouris (2015) for correlated normal variables the upper one, with p_n = 1 / (C_nn (W_n + v)) and v at most
# 1 / (largest eigenvalue of K):
#
#   sum E_q log r_n <= log Z - log Z_G <= sum (1 / p_n) log E_q r_n^p_n.
#
# With inducing points the lower bound is for the posterior on them. For the upper bound Z_G, the mean m and C_nn of the
# exact Gaussian problem are certified. Each integral takes the ends that make it largest: it grows with p_n, and is
# log-convex in m.
#
# The integrals are by the trapezoid rule, whose difference from half as many nodes is added as their error.

true_bracket <- function(fit) {
  response <- response_of(fit)
  refuse <- function(got, want, hint = NULL) abort_input("fit", got, want, hint = hint)
  if (has_labels(response) || !response$concave) {
    refuse(sprintf("a fit with family %s", response$full_label), "one with a log-concave likelihood of one f a row")
  }
  if (!is.null(fit$near)) refuse("a fit with neighbours", "one with inducing points", "Take neighbours = 0.")
  if (!is.null(fit$factors$groupings)) refuse("a fit with groups on inducing points", "one of at most 2,000 rows")
  data <- needs_data(fit, "fit")
  sites <- replace(sites_of_fit(fit, data), "variational", 0L)
  mode <- laplace_at(data$x, sites, fit$kernel, fit$inducing, fit$jitter, fit$control,
                     if (response$approx == "laplace") fit$factors else list(), want = 1L)
  approx <- response$approx
  own_shift <- if (approx == "laplace") fit$factors$shift
  fit$factors <- mode
  fit$likelihood$approx <- "laplace"
  b <- with_fixed_seed(bounds_at_mode(fit, data, FALSE))
  best <- variational_at(data$x, replace(sites, "variational", 1L), fit$kernel, b$z, b$at, no_state(), fit$control)
  # bounds the largest eigenvalue of K; beyond a few rows by that of A'A plus the trace of the residual
  x <- b$data$x
  largest <- if (nrow(x) <= dense_rows) largest_eigenvalue(native_kernel_matrix(b$fit$kernel, x, x)) else
    (1 + b$growth) * (largest_eigenvalue(tcrossprod(rows_on_points(b))) + sum(b$at$left + b$slack * b$most))
  v <- (1 - 1e-9) / largest
  problems <- list(laplace = gaussian_problem(b, b$at), vi = gaussian_problem(b, best))
  each <- lapply(problems, bracket_of_normal, v = v)
  own <- if (nrow(b$z) == nrow(mode$L)) each[[approx]][["lower"]] else -Inf # points that repeat others are left out
  # the predictions are centred at a mean that differs from the mode
  if (is.finite(own) && length(own_shift) && any(own_shift != 0)) {
    own <- bracket_of_normal(problems$laplace, v, own_shift)[["lower"]]
  }
  ends <- c(lower = max(each$laplace[["lower"]], each$vi[["lower"]]),
            upper = min(each$laplace[["upper"]], each$vi[["upper"]]))
  structure(ends, within = min(1, sqrt(max(ends[["upper"]] - own, 0) / 2)), class = "pfdtc_true_evidence")
}

rows_on_points <- function(b) forwardsolve(b$at$L, native_kernel_matrix(b$fit$kernel, b$z, b$data$x))

# Bounds the largest eigenvalue of K by the largest ratio (|K| x)_i / x_i for a positive vector x (Collatz, Wielandt).
largest_eigenvalue <- function(K) {
  K <- abs(K)
  x <- rep(1, nrow(K))
  for (i in 1:20) x <- drop(K %*% x) / max(x) + 1e-8
  max(drop(K %*% x) / x) * (1 + 1e-12 * nrow(K))
}

# Returns c(lower, upper), bounds of the log marginal likelihood by the normal q at b$at. For the lower bound, `moved`
# shifts the whitened mean of q. The shifted normal has divergence |H^{1/2} moved|^2 / 2 from q.
bracket_of_normal <- function(b, v, moved = 0 * b$at$beta) {
  at <- b$at
  A <- rows_on_points(b)
  W <- pmax(at$W, 0)
  H <- diag(1, nrow(A)) + tcrossprod(A * rep(sqrt(W), each = nrow(A)))
  R <- chol(H)
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
    sum(abs(at$g) + W * sqrt(C)) * b$slack * b$most * (1 + sqrt(sum(at$beta^2)))
  c(lower = constant - psi + sum(step^2) / 2 - sum(log(diag(R))) - sum(W * at$left) / 2 + sum(lower$value) -
      sum(lower$error) - sum((R %*% moved)^2) / 2 - room,
    upper = laplace_bracket(b, psi)[["upper"]] + room + upper_terms(b, v, l, top))
}

# Returns sum (1 / p) log E r^p, the largest over the mean and the variance C_nn of the exact Gaussian problem within
# their bounds: with p = 1 / (C_l (W + v)),
#
#   E r^p <= (2 pi C_l)^{-1/2} max over |s| <= e of the integral of r^p exp(-t^2 / (2 C_u) + t s / C_u).
#
# It is infinite if p W is above 1 / C_u.
upper_terms <- function(b, v, l, top) {
  at <- b$at
  x <- b$data$x
  known <- variances_at(b, b$middle, x)
  prior <- prior_at(b$model, x)
  high <- pmin(known$var_upper, prior)
  low <- pmin(pmax(known$var_lower, 0), high)
  p <- 1 / (low * (b$W_lower + v))
  bend <- p * b$W_lower - 1 / high
  if (!all(bend < -1e-12 / high)) return(Inf)
  e <- distance_at(b, x) + b$slack * pmax(b$most, prior) * weights_norm(at) + b$growth * (1 + abs(at$f))
  each <- lapply(list(e, -e), function(s) {
    log_h <- function(t) p * (l(at$f + t)[1L, ] - top - at$g * t) + bend * t^2 / 2 + t * s / high
    range <- support_of(log_h, function(t) p * (l(at$f + t)[2L, ] - at$g) + bend * t + s / high, sqrt(high))
    found <- rows_integral(function(t) exp(log_h(t) - range$top), range$low, range$high)
    log(found$value + found$error) + range$top
  })
  sum((pmax(each[[1L]], each[[2L]]) - log(2 * pi * low) / 2) / p)
}

# Returns list(low, high, top): where a concave function has fallen by 45 from its top, found by longer steps.
support_of <- function(log_h, slope, unit) {
  beyond <- function(from, step, times, open) { # steps grow while the point is open
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
# with half as many nodes. Nodes are doubled until that difference is small.
rows_integral <- function(h, low, high, nodes = 300L, most = 9600L) {
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
    if (nodes >= most || all(error <= 1e-10 * (1e-3 + abs(value)))) break
  }
  list(value = value, error = error)
}

#' @export
print.pfdtc_true_evidence <- function(x, ...) {
  ends <- vapply(x[c("lower", "upper")], format, "", digits = 8)
  cat(if (is.infinite(x[["upper"]])) {
    sprintf("True log marginal likelihood above %s. More inducing points would bound it from above.\n", ends[1L])
  } else {
    sprintf("True log marginal likelihood between %s and %s\n", ends[1L], ends[2L])
  })
  if (attr(x, "within") < 0.3) {
    cat(wrap(sprintf("Probabilities of the fit's posterior of f are within %s of those of the true posterior.",
                     format(attr(x, "within"), digits = 2))), sep = "\n")
  }
  invisible(x)
}
