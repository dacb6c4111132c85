# Makes kernels of every profile, alone and in random sums of products, and transcribes their definitions.

# Returns rows with three numbers and a factor of three levels. Beyond five rows, the last row equals the first.
kernel_rows <- function(n, seed = 1) {
  with_seed(seed, {
    level <- sample.int(3, n, TRUE)
    x <- cbind(matrix(stats::runif(3 * n, -1.5, 1.5), n), outer(level, 1:3, "==") + 0)
    if (n > 5) x[n, ] <- x[1, ]
    colnames(x) <- c("a", "b", "c", "f1", "f2", "f3")
    x
  })
}

all_profiles <- function() names(factor_parameters)

# Returns a factor with random parameters. By default it calls kernel_<profile>() with its own parameters, lengthscale,
# variance, inputs and isotropic.
random_factor <- function(profile) {
  p <- function() stats::runif(1, 0.6, 1.5)
  some <- sample(c("a", "b", "c"), sample.int(3, 1))
  lengths <- stats::runif(length(some), 0.6, 1.5)
  iso <- stats::runif(1) < 0.3
  switch(profile,
    matern12 = kernel_matern(1 / 2, if (iso) p() else lengths, p(), some, isotropic = iso),
    matern32 = kernel_matern(3 / 2, if (iso) p() else lengths, p(), some, isotropic = iso),
    matern52 = kernel_matern(5 / 2, if (iso) p() else lengths, p(), some, isotropic = iso),
    periodic = kernel_periodic(p(), p(), p() + 1, some),
    linear = kernel_linear(p(), some),
    mean = {
      k <- kernel_linear(p(), some)
      k[c("profile", "centre", "rate")] <- list("mean", stats::runif(length(some), -1, 1), lengths)
      k
    },
    polynomial = kernel_polynomial(sample.int(3, 1), p(), p(), some),
    constant = kernel_constant(p()),
    white = kernel_white(p(), some),
    categorical = {
      k <- kernel_categorical(sample(c("exchangeable", "ordered", "full"), 1), p(), c("f1", "f2", "f3"))
      k$parameters <- stats::runif(c(exchangeable = 1, ordered = 2, full = 3)[[k$correlation]], 0.4, 1.6)
      k
    },
    group = {
      k <- place_group(kernel_group("f1", stats::reformulate(some), variance = p()), kernel_rows(1), "kernel", NULL)
      k$scale <- stats::runif(table_rows(k) - 1L, 0.6, 1.5)
      k$parameters <- stats::runif(parameter_count(k, "parameters"), 0.6, 1.5)
      k
    },
    additive = , pairwise = {
      base <- if (stats::runif(1) < 0.5) kernel_se else kernel_matern # Matern 5/2 is smooth enough for differences
      base <- base(lengthscale = if (iso) p() else lengths, variance = p(), inputs = some, isotropic = iso)
      kernel_additive(base, if (profile == "pairwise") p() else FALSE, p(), p())
    },
    do.call(paste0("kernel_", profile), c(
      lapply(setdiff(factor_parameters[[profile]], "lengthscale"), function(what) p()),
      list(lengthscale = if (iso) p() else lengths, variance = p(), inputs = some, isotropic = iso))))
}

# Returns a sum of one to three products of one to three factors, sometimes a sum times a factor.
random_kernel <- function() {
  product <- function() Reduce(`*`, lapply(sample(all_profiles(), sample.int(3, 1), TRUE), random_factor))
  repeat {
    k <- tryCatch({
      k <- Reduce(`+`, lapply(seq_len(sample.int(3, 1)), function(i) product()))
      if (stats::runif(1) < 0.3) k * random_factor(sample(all_profiles(), 1)) else k
    }, pfdtc_error_input = function(e) NULL) # two of its terms are indistinguishable
    if (!is.null(k)) return(k)
  }
}

# Returns the kernel that a fit has if this kernel was given. A kernel of groups only gets a constant term as well.
kernel_of_model <- function(kernel, fit, x) {
  sum <- as_sum(kernel)
  groups <- vapply(sum$leaves, function(leaf) leaf$profile == "group", NA)
  complete_kernel(if (all(groups) && length(sum$terms) == length(groups)) fit$kernel else kernel, x)
}

# Returns a factor of each profile alone, then `count` random kernels.
some_kernels <- function(count, seed = 1) {
  with_seed(seed, {
    alone <- lapply(all_profiles(), random_factor)
    c(stats::setNames(alone, all_profiles()),
      stats::setNames(lapply(seq_len(count), function(i) random_kernel()), paste("random", seq_len(count))))
  })
}

# Returns g of a factor for each pair of rows, by the formulas of its help page. Its inputs must be column numbers.
ref_factor <- function(leaf, x, z) {
  x <- x[, leaf$inputs, drop = FALSE]
  z <- z[, leaf$inputs, drop = FALSE]
  l <- leaf$lengthscale
  r2 <- if (is.null(l)) 0 else ref_squares(x, z, seq_along(leaf$inputs), l)
  products <- function(x, z) unname(x %*% t(z))
  every <- function(f) { # f of a row of x and a row of z
    unname(t(apply(x, 1L, function(u) apply(z, 1L, function(v) f(u, v)))))
  }
  g <- switch(leaf$profile,
    se = , matern12 = , matern32 = , matern52 = ref_profile(leaf$profile, r2),
    rq = (1 + r2 / (2 * leaf$alpha))^-leaf$alpha,
    periodic = exp(-2 * every(function(u, v) sum(sin(pi * (u - v) / leaf$period)^2)) / l^2),
    linear = products(x, z),
    mean = 1 + every(function(u, v) sum((u - leaf$centre) * (v - leaf$centre) * leaf$rate^2)),
    polynomial = (products(x, z) + leaf$offset)^leaf$degree,
    constant = 1,
    white = every(function(u, v) as.double(all(u == v))),
    categorical = ref_correlation(leaf)[max.col(x == 1, "first"), max.col(z == 1, "first")],
    group = {
      S <- ref_covariance(leaf)
      every(function(u, v) if (u[1] == v[1]) drop(ref_effects(leaf, u) %*% S %*% ref_effects(leaf, v)) else 0)
    },
    additive = , pairwise = ref_additive(leaf, x, z))
  matrix(g, nrow(x), nrow(z))
}

# Returns the additive kernel of the help page: terms of all inputs, of single inputs (a factor is one), and of pairs.
ref_additive <- function(leaf, x, z) {
  inputs <- seq_along(leaf$inputs)
  l <- rep_len(leaf$lengthscale, length(inputs))
  t <- lapply(inputs, function(i) ref_squares(x, z, i, l[i]))
  groups <- if (is.null(leaf$groups)) inputs else leaf$groups
  one <- lapply(split(t, groups), function(t) exp(-leaf$additive.ratio^2 * Reduce(`+`, t) / 2))
  G <- length(one)
  p <- if (leaf$profile == "pairwise") leaf$additive.pairs else 0
  both <- if (p > 0 && G > 1) utils::combn(one, 2, function(pair) pair[[1]] * pair[[2]], simplify = FALSE)
  pairs <- if (length(both)) p * Reduce(`+`, both) / length(both) else 0
  (ref_profile(leaf$base, Reduce(`+`, t)) + leaf$additive.share * Reduce(`+`, one) / G + pairs) /
    (1 + leaf$additive.share + p)
}

# Returns the design of a row of a group. The next function returns the covariance of a level's effects for variance 1.
ref_effects <- function(leaf, u) c(if (leaf$intercept) 1, u[-1])

ref_covariance <- function(leaf) {
  scale <- c(1, leaf$scale)
  R <- if (leaf$correlation == "full") ref_correlation(leaf) else diag(1, length(scale))
  R * outer(scale, scale)
}

ref_correlation <- function(leaf) {
  n <- length(leaf$inputs) - if (leaf$profile == "group") 1 - leaf$intercept else 0
  p <- leaf$parameters
  if (leaf$correlation == "exchangeable") return(diag(1 - exp(-p), n) + exp(-p))
  if (leaf$correlation == "ordered") return(exp(-abs(outer(cumsum(c(0, p)), cumsum(c(0, p)), "-"))))
  L <- matrix(0, n, n)
  angle <- matrix(NA, n, n)
  angle[lower.tri(angle)] <- pi * p / (1 + p)
  for (i in seq_len(n)) {
    for (j in seq_len(i)) {
      before <- prod(sin(angle[i, seq_len(j - 1)]))
      L[i, j] <- if (j < i) before * cos(angle[i, j]) else before
    }
  }
  L %*% t(L)
}

ref_composite <- function(kernel, x, z = x) {
  kernel <- as_sum(kernel)
  leaves <- lapply(kernel$leaves, ref_factor, x, z)
  Reduce(`+`, lapply(kernel$terms, function(t) t$variance * Reduce(`*`, leaves[t$leaves])))
}

# Expects that the best of central differences at several steps agrees, relative to the size of the derivative.
expect_slope <- function(got, f, at, info, tolerance = 1e-6) {
  off <- vapply(c(1e-2, 1e-3, 1e-4, 1e-5), function(h) abs((f(at + h) - f(at - h)) / (2 * h) - got), 0)
  expect_lt(min(off), tolerance * max(1, abs(got)), label = paste(info, "slope off by", format(min(off))))
}

# ---- kernels that transform their inputs -----------------------------------------------------------------------------

# Expects that fits$own, whose kernel transforms the inputs, gives the results of fits$hand, the fit to inputs that
# `by_hand` has transformed. Evidence and certificates are differences of larger numbers, so their rounding is larger.
expect_same_answers <- function(fits, by_hand) {
  both <- function(f, tolerance = 1e-8) {
    expect_equal(f(fits$own, fits$new), f(fits$hand, by_hand(fits$new)), tolerance = tolerance, ignore_attr = TRUE)
  }
  both(function(fit, new) predict(fit, new, type = "response"))
  both(function(fit, new) predict(fit, new, type = "latent", se.fit = TRUE, interval = "credible"))
  both(function(fit, new) predict(fit, type = "loo"))
  both(function(fit, new) as.numeric(logLik(fit)))
  both(function(fit, new) unlist(evidence_bounds(fit)), 1e-6)
  both(function(fit, new) simulate(fit, 2, seed = 1))
  for (effort in c("fast", "reference")) {
    both(function(fit, new) as.matrix(as.data.frame(certify(fit, new, effort = effort))[-(1:2)]), 1e-5)
  }
}

# Expects slopes of f in three columns of x to be central differences with the step h.
expect_slopes_of_x <- function(fits, h) {
  for (column in 1:3) {
    up <- down <- fits$new
    up[, column] <- up[, column] + h
    down[, column] <- down[, column] - h
    f <- function(at) predict(fits$own, at, type = "latent")
    slope <- predict(fits$own, fits$new, type = "derivative", wrt = column)
    expect_equal(unname(c(slope)), unname(c(f(up) - f(down)) / (2 * h)), tolerance = 1e-6)
  }
}

# Expects that the gradient in inducing points is the gradient in the columns of x, by central differences.
expect_gradient_of_x <- function(kernel) {
  x <- kernel_rows(30, 6)
  data <- list(x = x, y = sin(x[, 1L]) + x[, 2L])
  model <- list(kernel = compile_kernel(kernel), noise = 0.1)
  z <- kernel_rows(4, 7)
  value <- function(z) native_evaluate("vfe", NULL, z, data, model, 1e-10)
  got <- value(z)$gradient
  for (i in 1:2) for (j in 1:3) {
    step <- replace(0 * z, cbind(i, j), 1e-5)
    expect_equal(got[i, j], (value(z + step)$value - value(z - step)$value) / 2e-5, tolerance = 1e-5)
  }
}
