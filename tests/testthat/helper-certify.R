# Draws random problems for tests of certificates. bench/certify-properties.R checks 100,000 rows for each effort of
# certify() in quadruple precision; test-certify.R checks some by a dense solve.

one_of <- function(...) {
  x <- c(...)
  x[[sample.int(length(x), 1L)]]
}
between <- function(low, high) exp(stats::runif(1, log(low), log(high)))
with_probability <- function(p) stats::runif(1) < p

# Returns a random problem. If `mild`, a dense solve in double precision has ten correct digits.
certify_problem <- function(seed, n_most = 200, n_new = 40, mild = FALSE) {
  c(with_seed(seed, draw_certify_problem(n_most, n_new, mild)), seed = seed)
}

draw_certify_problem <- function(n_most, n_new, mild) {
  d <- sample.int(5, 1)
  n <- if (with_probability(0.1)) 1 else ceiling(between(1, n_most))
  x <- switch(sample.int(4, 1),
              matrix(stats::runif(n * d), n, d),
              matrix(stats::rnorm(n * d), n, d),
              matrix(sample.int(4, n * d, TRUE) / 4, n, d),                     # equal rows
              matrix(stats::rnorm(n * d, sample(c(-1, 0, 2), n, TRUE), 0.1), n, d))
  lengthscale <- between(0.1, 10) * exp(stats::rnorm(d, sd = 0.5))
  # With long lengthscales, tr(K - Q) may be as small as rounding errors.
  if (!mild && with_probability(0.3)) lengthscale <- lengthscale * 10^stats::runif(1, 0, 4)
  variance <- between(0.1, 10)
  noise <- variance * 10^stats::runif(1, if (mild) -3 else one_of(-3, -3, -6, -12), 1)
  kernel <- ref_kernel(one_of(profiles), lengthscale, variance)
  y <- switch(sample.int(5, 1),
              sin(3 * x[, 1]) + 0.1 * rowSums(x),
              stats::rnorm(n),
              drop(ref_k(kernel, x, x[seq_len(min(n, 5)), , drop = FALSE]) %*% stats::rnorm(min(n, 5))),
              replace(stats::rnorm(n), sample.int(n, 1), one_of(1e3, -1e6)),
              rep(stats::rnorm(1), n))
  y <- y + stats::rnorm(n, sd = sqrt(noise))
  if (with_probability(0.1)) y[] <- one_of(0, 2)
  m <- min(n, ceiling(between(1, n + 1)))
  z <- switch(sample.int(5, 1),
              x[sample.int(n, m), , drop = FALSE],
              matrix(stats::runif(m * d, -1, 2), m, d),
              x[sample.int(n, m, TRUE), , drop = FALSE] + stats::rnorm(m * d, sd = between(1e-9, 0.1)),
              x[rep(1, m), , drop = FALSE] + 10 * rep(lengthscale, each = m),
              NULL)
  new <- rbind(
    x[sample.int(n, 8, TRUE), , drop = FALSE],
    x[sample.int(n, 8, TRUE), , drop = FALSE] + stats::rnorm(8 * d, sd = between(1e-8, 1)),
    if (!is.null(z)) z[sample.int(nrow(z), 4, TRUE), , drop = FALSE],
    matrix(stats::runif(n_new * d, -0.5, 1.5), n_new, d))[seq_len(n_new), , drop = FALSE]
  new[n_new, ] <- new[n_new, ] + 100 * lengthscale
  if (!mild && with_probability(0.1)) {                                         # far from 0
    far <- one_of(1e4, 1e8)
    x <- x + far
    new <- new + far
    if (!is.null(z)) z <- z + far
  }
  plain <- n == 1 || diff(range(y)) <= 1e-10 * max(abs(y))
  list(
    x = x, y = y, z = z, m = m, kernel = kernel, noise = noise, new = new,
    weights = switch(sample.int(4, 1), NULL, NULL, stats::runif(n, 0.2, 3), 10^stats::runif(n, -2, 2)),
    offset = if (with_probability(0.2)) stats::rnorm(n),
    center = with_probability(0.6), scale = !plain && with_probability(0.6),
    jitter = one_of(-1, -1, -1, 0, 1e-12, 1e-8, 1e-4, 1), m2 = if (with_probability(0.5)) sample.int(n, 1),
    inducing = one_of("greedy", "random", "kmeans"), block = one_of(-1, 3, 17), by = one_of(all_methods),
    aux = one_of("sor", "reference"))
}

certify_fit <- function(p) {
  args <- list(
    x = p$x, y = p$y, kernel = package_kernel(p$kernel), noise = p$noise, hyper = "fixed", weights = p$weights,
    offset = p$offset, center = p$center, scale = p$scale,
    control = pfdtc_control(maxit = 2, jitter = if (p$jitter >= 0) p$jitter, progress = FALSE,
                            block = if (p$block > 0) p$block))
  if (p$by %in% sparse_methods) {
    if (is.null(p$z)) args[c("m", "inducing")] <- list(p$m, p$inducing) else args$inducing <- p$z
  }
  if (p$by == "gp_subsample") args$m <- p$m
  if (!is.null(p$neighbours)) args$neighbours <- p$neighbours
  else if (p$by == "pfdtc") args$aux <- if (p$aux == "sor") aux_sor() else aux_reference()
  with_seed(p$seed, do.call(p$by, args))
}

# Returns certify() of a problem with each of its three efforts, a list of data frames.
certify_all <- function(fit, p) {
  reference <- with_seed(p$seed, reference(fit, p$m2))
  lapply(stats::setNames(nm = c("fast", "reference", "tight")), function(effort) {
    with_seed(p$seed, certify(fit, p$new, effort = effort, reference = reference))
  })
}

# Returns certificates at all rows by kriging alone, with a corrected mean from few steps of conjugate gradients or from
# any vector.
kriging_alone <- function(fit, p) {
  inside <- function(name) get(name, asNamespace("pfdtc")) # bench/ sources this file
  with_seed(p$seed, {
    reference <- reference(fit, p$m2)
    data <- inside("data_in_scale")(fit, reference)
    new <- inside("new_rows")(fit, p$new, stats::na.pass)
    by <- if (!is.null(p$neighbours) && with_probability(0.5)) inside("near_preconditioner")(reference, data)
    state <- inside("solve_exact")(reference, data, sample(0:6, 1), function(s) Inf, precondition = by)
    if (with_probability(0.3)) {
      v <- state$v + stats::rnorm(length(state$v)) * stats::sd(c(state$v, -state$v)) * between(1e-6, 1)
      root <- if (is.null(data$weights)) 1 else sqrt(data$weights)
      kernel <- inside("model_of")(reference)$kernel
      noise <- reference$noise / reference$scale^2
      y <- root * data$y
      state$v <- v
      state$residual <- y - inside("native_kernel_matvecs")(kernel, data$x, data$weights, v, fit$control) - noise * v
      state$error <- inside("residual_rounding")(reference, y, c(v = sqrt(sum(v^2)), r = 0))
    }
    correction <- inside("correct_residual")(reference, data, state, sharp = FALSE)
    fun <- inside("values_at")(inside("model_of")(reference)$kernel, new$x)
    found <- inside("krige")(reference, data, fun, group = one_of(1, 4, 16))
    interval <- inside("kriged_interval")(found, reference, correction, data)
    middle <- list(mean = (interval$mean_lower + interval$mean_upper) / 2, sd = interval$sd_upper)
    inside("certificate_frame")(fit, new, middle, interval)
  })
}

# Returns TRUE for rows whose intervals miss the exact mean or sd. The exact mean is exact$mean + exact$mean_low.
violated <- function(certificate, exact) {
  low <- if (is.null(exact$mean_low)) 0 else exact$mean_low
  outside <- (certificate$mean_lower - exact$mean) - low > 0 | (certificate$mean_upper - exact$mean) - low < 0 |
    certificate$sd_lower > exact$sd | certificate$sd_upper < exact$sd
  is.na(outside) | outside | !is.finite(certificate$mean_error)
}

# Returns the error of mean and sd divided by its bound, in two columns; 0 if the bound is 0.
tightness <- function(certificate, exact) {
  ratio <- function(error, bound) ifelse(bound > 0, error / bound, 0)
  cbind(mean = ratio(abs(certificate$mean - exact$mean), certificate$mean_error),
        sd = ratio(abs(certificate$sd - exact$sd),
                   pmax(certificate$sd - certificate$sd_lower, certificate$sd_upper - certificate$sd)))
}

# Returns TRUE for rows whose interval became wider with more effort, from `before` to `after`, by more than rounding.
is_wider <- function(after, before) {
  width <- function(c, what) c[[paste0(what, "_upper")]] - c[[paste0(what, "_lower")]]
  rounding <- function(c, what) 1e-14 * abs(c[[paste0(what, "_upper")]])
  width(after, "mean") > width(before, "mean") + rounding(before, "mean") |
    width(after, "sd") > width(before, "sd") + rounding(before, "sd")
}

## Problems that break careless certificates; inputs are rounded, so that every machine has the same --------------

nasty_certify_problems <- function() {
  base <- function(profile = "se", n = 40, d = 1, m = 12, lengthscale = 0.5, noise = 0.01, seed = 1, ...) {
    with_seed(seed, {
      x <- round(matrix(stats::runif(n * d, 0, 4), n, d), 3)
      p <- list(x = x, y = round(sin(2 * x[, 1]) + 0.3 * stats::rnorm(n), 3), m = m, z = NULL, noise = noise,
                kernel = ref_kernel(profile, rep_len(lengthscale, d), 1.5), weights = NULL, offset = NULL,
                center = TRUE, scale = TRUE, jitter = -1, m2 = NULL, inducing = "greedy", block = -1,
                by = "gp_dtc", aux = "sor", seed = seed,
                new = rbind(x[c(1, n), , drop = FALSE], round(matrix(stats::runif(8 * d, -1, 5), 8, d), 3), 1e4))
      utils::modifyList(p, list(...))
    })
  }
  edit <- function(p, ...) utils::modifyList(p, list(...))
  plain <- base()
  two <- base(d = 2, lengthscale = c(0.5, 2))
  twins <- function(gap, ...) {
    z <- two$x[1:10, ]
    edit(two, z = rbind(z, z + gap), jitter = 0, ...)
  }
  list(
    "near-duplicate Z, 1e-9" = twins(2^-30), "near-duplicate Z, 1e-8" = twins(2^-27),
    "near-duplicate Z, 1e-7, noise 1e-8" = twins(2^-23, noise = 1.5e-8), "duplicate Z" = twins(0),
    "noise 1e-10 of the signal" = base("matern52", noise = 1.5e-10),
    "noise 1e-10 of the signal, se" = base(noise = 1.5e-10, m = 20),
    "noise 1e-10 of the signal, matern12, M = N" = base("matern12", noise = 1.5e-10, m = 40),
    "N = 1" = base(n = 1, m = 1, scale = FALSE, new = matrix(c(0, 1, 2, 1e4))),
    "N = 1, far Z" = base(n = 1, m = 1, z = matrix(50), scale = FALSE, center = FALSE, new = matrix(c(0, 1, 2, 1e4))),
    "N = 2, M = 2" = base(n = 2, m = 2), "M = N" = base("matern32", m = 40),
    "t near rounding" = base(n = 100, m = 30, lengthscale = 2),
    "t near rounding, noise 1e-6" = base(n = 100, m = 30, lengthscale = 2, noise = 1.5e-6),
    "t near rounding, d = 3" = base(n = 100, d = 3, m = 60, lengthscale = 20),
    "inputs at 1e8" = edit(plain, x = round(plain$x * 64) / 64 + 1e8, new = round(plain$new * 64) / 64 + 1e8),
    "a huge response" = edit(plain, y = replace(plain$y, 7, 1e8)),
    "a huge response, not scaled" = edit(plain, y = replace(plain$y, 7, 1e8), center = FALSE, scale = FALSE),
    "responses at 1e8" = edit(plain, y = plain$y + 1e8),
    "y = 0" = edit(plain, y = 0 * plain$y, center = FALSE, scale = FALSE),
    "y constant" = edit(plain, y = 0 * plain$y + 3, scale = FALSE),
    "duplicated rows, merged" = edit(plain, x = plain$x[c(1:40, 1:40), , drop = FALSE], y = c(plain$y, plain$y + 1)),
    "duplicated rows, not merged" = edit(plain, x = plain$x[c(1:40, 1:2), , drop = FALSE], y = c(plain$y, 5, -5)),
    "all rows equal" = edit(plain, x = plain$x[rep(1, 40), , drop = FALSE], m = 1),
    "lengthscale 1e-6" = base("matern32", lengthscale = 1e-6), "lengthscale 1e6" = base(lengthscale = 1e6),
    "lengthscale 1e6, matern12" = base("matern12", lengthscale = 1e6, m = 30),
    "weights over ten decades" = edit(plain, weights = 10^rep_len(-5:5, 40)),
    "noise a million times the signal" = base(noise = 1.5e6),
    "Z far away" = edit(plain, z = plain$x[1:5, , drop = FALSE] + 1e3)
  )
}
