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
# The integrals are by the trapezoid rule, whose difference from half as many nodes is added as their error.

true_bracket <- function(fit) {
  response <- response_of(fit)
  refuse <- function(got, want, hint = NULL) abort_input("fit", got, want, hint = hint)
  if (has_labels(response) || !response$concave) {
    refuse(sprintf("a fit with family %s", response$full_label), "one with a log-concave likelihood of one f a row")
  }
  data <- needs_data(fit, "fit")
  if (!is.null(fit$near) || !isTRUE(fit$unexplained < 1e-8)) {
    refuse("a fit whose inducing points leave some variance", "one whose points leave none",
           sprintf("Take m = %d, all rows, and neighbours = 0.", nrow(data$x)))
  }
  sites <- replace(sites_of_fit(fit, data), "variational", 0L)
  mode <- laplace_at(data$x, sites, fit$kernel, fit$inducing, fit$jitter, fit$control,
                     if (response$approx == "laplace") fit$factors else list(), want = 1L)
  v <- (1 - 1e-9) / largest_eigenvalue(native_kernel_matrix(fit$kernel, data$x, data$x))
  best <- variational_at(data$x, replace(sites, "variational", 1L), fit$kernel, fit$inducing, mode, no_state(),
                         fit$control)
  each <- lapply(list(laplace = mode, vi = best), function(at) bracket_of_normal(fit, data, sites, at, v))
  own <- each[[response$approx]][["lower"]]
  moved <- fit$factors$shift # predictions use another mean than the mode
  if (!is.null(moved) && any(moved != 0)) own <- bracket_of_normal(fit, data, sites, mode, v, moved)[["lower"]]
  room <- diff(unname(laplace_bracket(laplace_bounds(replace(fit, "factors", list(mode)), data))))
  ends <- c(lower = max(each$laplace[["lower"]], each$vi[["lower"]]) - room,
            upper = min(each$laplace[["upper"]], each$vi[["upper"]]) + room)
  apart <- max(ends[["upper"]] - (own - room), 0)
  structure(ends, within = min(1, sqrt(apart / 2)), class = "pfdtc_true_evidence")
}

# Returns an upper bound: the largest ratio (|K| x)_i / x_i of a positive vector (Collatz and Wielandt).
largest_eigenvalue <- function(K) {
  K <- abs(K)
  x <- rep(1, nrow(K))
  for (i in 1:20) x <- drop(K %*% x) / max(x) + 1e-8
  max(drop(K %*% x) / x) * (1 + 1e-12 * nrow(K))
}

# Returns c(lower, upper) by the normal distribution at `at`. Its mean is m + `shift` if m is not stationary. A
# distribution with another mean, which is `moved` from it in the whitened f, gives the same lower end: its divergence
# from q is |H^{1/2} moved|^2 / 2.
bracket_of_normal <- function(fit, data, sites, at, v, moved = 0 * at$beta) {
  z <- fit$inducing
  A <- forwardsolve(at$L, native_kernel_matrix(fit$kernel, z, data$x))
  W <- pmax(at$W, 0)
  H <- diag(1, nrow(A)) + tcrossprod(A * rep(sqrt(W), each = nrow(A)))
  R <- chol(H)
  half <- backsolve(R, A, transpose = TRUE)
  residual <- at$beta - drop(A %*% at$g)
  step <- backsolve(R, residual, transpose = TRUE)
  C <- colSums(half^2) + at$left
  shift <- -drop(crossprod(half, step))
  l <- function(f) native_likelihood(sites, f)
  top <- l(at$f)[1L, ]
  gaussian <- sum(top) + sum(sites$constant) + (sum(step^2) - sum(at$beta^2)) / 2 - sum(log(diag(R)))
  mean <- shift + drop(crossprod(A, moved))
  lower <- rows_integral(function(t) {
    weight <- stats::dnorm(t, mean, sqrt(C))
    ifelse(weight > 0, weight * (l(at$f + t)[1L, ] - top - at$g * t + W * t^2 / 2), 0)
  }, mean - 9 * sqrt(C), mean + 9 * sqrt(C))
  p <- 1 / (C * (W + v))
  log_h <- function(t) p * (l(at$f + t)[1L, ] - top - at$g * t - v * t^2 / 2) + (t * shift - shift^2 / 2) / C
  range <- support_of(log_h, function(t) p * (l(at$f + t)[2L, ] - at$g - v * t) + shift / C, sqrt(C))
  upper <- rows_integral(function(t) exp(log_h(t) - range$top), range$low, range$high)
  c(lower = gaussian + sum(lower$value) - sum(lower$error) - sum((R %*% moved)^2) / 2,
    upper = gaussian + sum((log(upper$value + upper$error) + range$top - log(2 * pi * C) / 2) / p))
}

# Returns list(low, high, top): where a concave function has fallen by 45 from its top, found by doubled steps.
support_of <- function(log_h, slope, unit) {
  edge <- function(sign) {
    t <- sign * unit
    for (i in 1:60) {
      open <- sign * slope(t) > 0
      if (!any(open)) break
      t[open] <- 2 * t[open]
    }
    t
  }
  low <- edge(-1)
  high <- edge(1)
  for (i in 1:60) { # bisection for the top
    middle <- (low + high) / 2
    rising <- slope(middle) > 0
    low[rising] <- middle[rising]
    high[!rising] <- middle[!rising]
  }
  top_at <- (low + high) / 2
  top <- log_h(top_at)
  fallen <- function(sign) {
    step <- unit / 4
    for (i in 1:60) {
      open <- log_h(top_at + sign * step) > top - 45
      if (!any(open)) break
      step[open] <- 1.5 * step[open]
    }
    top_at + sign * step
  }
  list(low = fallen(-1), high = fallen(1), top = top)
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
  cat(sprintf("True log marginal likelihood between %s and %s\n", format(x[["lower"]], digits = 8),
              format(x[["upper"]], digits = 8)))
  within <- attr(x, "within")
  if (within < 0.3) {
    cat(wrap(sprintf("Probabilities of the fit's posterior of f are within %s of those of the true posterior.",
                     format(within, digits = 2))), sep = "\n")
  }
  invisible(x)
}
