# Transcribes linear functionals and derivatives with dense matrices.

# Returns d k(u, x) / d x_column by a complex step, exact to rounding if the kernel is analytic between distinct rows.
ref_slopes <- function(kernel, u, x, column) {
  h <- 1e-30
  kernel <- as_sum(kernel)
  moved <- x + 0i
  moved[, column] <- moved[, column] + h * 1i
  moved <- rotated(kernel, moved)
  x <- rotated(kernel, x)
  u <- rotated(kernel, u)
  leaves <- lapply(kernel$leaves, function(leaf) {
    if (leaf$profile %in% c("white", "categorical")) ref_factor(leaf, u, x) else ref_factor(leaf, u + 0i, moved)
  })
  Im(Reduce(`+`, lapply(kernel$terms, function(t) t$variance * Reduce(`*`, leaves[t$leaves])))) / h
}

# Returns d^2 k / (d x d x') at x' = x by central differences, extrapolated from two steps (relative errors of 1e-10).
ref_slope_variance <- function(kernel, x, column) {
  vapply(seq_len(nrow(x)), function(i) {
    at <- x[i, , drop = FALSE]
    slope <- function(h) {
      up <- down <- at
      up[, column] <- up[, column] + h
      down[, column] <- down[, column] - h
      drop(ref_slopes(kernel, up, at, column) - ref_slopes(kernel, down, at, column)) / (2 * h)
    }
    (4 * slope(1e-3) - slope(2e-3)) / 3
  }, 0)
}

# Returns list(mean, var, prior) of functionals with covariances Kx (data rows x functionals) and variances `prior`.
ref_functionals <- function(Ky, Kx, prior, y) {
  list(mean = drop(crossprod(Kx, solve(Ky, y))), var = prior - colSums(Kx * solve(Ky, Kx)), prior = prior)
}

# Returns a random kernel that is differentiable along input "a", if `smooth` twice, so that differences give the
# variance of the derivative.
random_smooth_kernel <- function(smooth = FALSE) {
  repeat {
    k <- random_kernel()
    bad <- vapply(as_sum(k)$leaves, function(l) {
      l$profile %in% c("matern12", if (smooth) "matern32") || (l$profile == "white" && "a" %in% l$inputs)
    }, NA)
    if (!any(bad)) return(k)
  }
}

# Returns TRUE for intervals in c that miss the exact value. Errors of solve() are allowed: `slip` times the prior sd
# for means, and times the prior variance for variances.
functionals_broken <- function(c, exact, slip) {
  root <- sqrt(pmax(exact$prior, 1e-300))
  mean_slip <- slip * (root + abs(exact$mean))
  var_slip <- slip * exact$prior
  exact$mean < c$mean_lower - mean_slip | exact$mean > c$mean_upper + mean_slip |
    c$sd_lower^2 > pmax(exact$var, 0) + var_slip | c$sd_upper^2 < exact$var - var_slip
}

# Returns certificates by kriging alone, on few rows and after few steps of conjugate gradients for the mean.
kriging_alone_of <- function(fit, fun) {
  options(pfdtc.kriging_rows = sample(c(3L, 10L, 400L), 1))
  reference <- fit$reference
  data <- data_in_scale(fit, reference)
  state <- solve_exact(reference, data, sample(0:5, 1), function(s) Inf)
  correction <- correct_residual(reference, data, state, sharp = FALSE)
  found <- lapply(seq_len(fun$n), function(i) {
    found <- if (fun$size[i] > 0) krige(reference, data, some_functionals(fun, i))
    if (!is.null(found)) return(kriged_interval(found, reference, correction, data))
    list(mean_lower = -Inf, mean_upper = Inf, sd_lower = 0, sd_upper = Inf)
  })
  sapply(names(found[[1L]]), function(what) vapply(found, `[[`, 0, what), simplify = FALSE)
}

# Returns, for one random problem, the numbers of certified functionals ("sums" or "slopes") and of wrong certificates.
attack_functionals <- function(seed, kind = "sums") {
  set.seed(seed)
  n <- sample(10:80, 1)
  m <- sample(2:min(n, 15), 1)
  noise <- 10^stats::runif(1, -3, 0.5)
  k <- if (kind == "sums") random_kernel() else random_smooth_kernel()
  x <- kernel_rows(n, seed)
  y <- stats::rnorm(n) + x[, 1]
  w <- if (stats::runif(1) < 0.4) stats::runif(n, 0.3, 3)
  new <- rbind(kernel_rows(8, seed + 1e6), x[1:2, ])
  new[7:8, 1:3] <- 3 * new[7:8, 1:3]
  by <- sample(list(pfdtc, gp_vfe, gp_fitc, gp_sor), 1)[[1]]
  neighbours <- if (identical(by, pfdtc)) sample(c(0L, 8L), 1)
  options(pfdtc.kriging_rows = sample(c(0L, 5L, 400L), 1))
  on.exit(options(pfdtc.kriging_rows = NULL))
  args <- list(x, y, m = m, kernel = k, noise = noise, hyper = "fixed", center = FALSE,
               scale = sample(c(TRUE, FALSE), 1), weights = w, control = pfdtc_control(maxit = 3))
  if (!is.null(neighbours)) args$neighbours <- neighbours
  apart <- 0 # number of warnings that intervals do not overlap
  out <- suppressMessages(tryCatch(withCallingHandlers({
    fit <- do.call(by, args)
    fit$reference <- reference(fit, m2 = sample(m:n, 1))
    C <- rbind(rep(1 / 10, 10), c(1, -1, rep(0, 8)), stats::rnorm(10), c(1, rep(0, 9)), 1e3 * stats::rnorm(10), 0)
    kernel <- model_of(fit)$kernel
    fun <- if (kind == "slopes") slopes_at(kernel, new, 1L) else
      sums_at(kernel, new, rep(list(1:10), 6), lapply(1:6, function(i) C[i, ]))
    at <- functionals_in_units(fit, fun)
    frame <- function(inside) functional_frame(fit, fun, at, inside, 0, 0, identity)
    efforts <- c("fast", "reference", "tight")
    c(lapply(efforts, function(e) {
      if (kind == "sums") return(linear_functional(fit, C, new, effort = e))
      frame(posterior_certificate(posterior_of(fit), fun, e, max_seconds = 5))
    }), list(frame(kriging_alone_of(fit, fun))))
  }, warning = function(w) {
    apart <<- apart + grepl("do not overlap", conditionMessage(w))
    invokeRestart("muffleWarning")
  }), pfdtc_error_numerical = identity, pfdtc_error_input = function(e) {
    if (kind == "slopes" && grepl("have no slopes", conditionMessage(e))) e else stop(e) # a kernel with groups
  }))
  if (inherits(out, "error")) return(c(rows = 0, broken = 0, ratio = NA, kriging = NA))
  k <- kernel_of_model(k, fit, x)
  Ky <- ref_composite(k, x) + diag(noise / if (is.null(w)) rep(1, n) else w)
  if (kind == "sums") {
    exact <- ref_functionals(Ky, ref_composite(k, x, new) %*% t(C), diag(C %*% ref_composite(k, new) %*% t(C)), y)
    size <- drop(abs(C) %*% sqrt(diag(ref_composite(k, new))))^2
  } else {
    prior <- native(ffi_slope_variance, engine_model(kernel = k), new, 1L)
    exact <- ref_functionals(Ky, ref_slopes(k, x, new, 1L), prior$prior, y)
    size <- prior$size
  }
  exact$prior <- size
  slip <- 100 * .Machine$double.eps * n * max(diag(Ky)) / noise * max(1, w)
  ratio <- vapply(out, function(c) max(c(0, (abs(exact$mean - c$mean) / c$mean_error)[exact$prior > 0])), 0)
  broken <- vapply(out, function(c) sum(functionals_broken(c, exact, slip)), 0)
  c(rows = sum(vapply(out, nrow, 0L)), broken = apart + sum(broken),
    ratio = max(ratio), kriging = ratio[4L])
}
