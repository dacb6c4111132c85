# Makes random problems for certificates of fits with neighbours, including cases in which careless certificates are
# wrong: kernels of every profile, their sums and products; weights over four decades, offsets, equal rows (merged),
# twins 1e-9 apart, clusters; noise from 1e-14 to 10 times the signal; responses and inputs of sizes 1e-8 to 1e8; new
# rows that are training rows, close twins of training rows, or far from all rows. certify-properties.R uses them.

near_problem <- function(seed) c(with_seed(seed, draw_near_problem(seed)), seed = seed, by = "pfdtc")

draw_near_problem <- function(seed) {
  kind <- sample.int(3, 1)
  # With more than 400 rows passes are preconditioned by neighbours.
  n <- if (with_probability(0.04)) sample(401:450, 1) else ceiling(between(3, 220))
  d <- if (kind == 3) 6L else sample.int(4, 1)
  x <- if (kind == 3) kernel_rows(n, seed) else switch(
    sample.int(4, 1),
    matrix(stats::runif(n * d), n),
    matrix(stats::rnorm(n * d), n),
    matrix(sample.int(3, n * d, TRUE) / 3, n),
    matrix(stats::rnorm(n * d, sample(c(-1, 0, 2), n, TRUE), 10^stats::runif(1, -9, -1)), n))
  numeric <- seq_len(if (kind == 3) 3 else d)
  if (with_probability(0.3)) {
    twins <- sample.int(n, ceiling(n / 3), TRUE)
    x[sample.int(n, length(twins)), numeric] <- x[twins, numeric] + one_of(0, 1e-12, 1e-9, 1e-6)
  }
  # Inputs of composed kernels with products keep their size.
  unit <- if (kind == 3) 1 else 10^stats::runif(1, -8, 8)
  y_unit <- 10^stats::runif(1, -8, 8)
  lengths <- function() unit * between(0.05, 5) * exp(stats::rnorm(d, sd = 0.5))
  matern <- function(variance) kernel_matern(sample(c(1, 3, 5), 1) / 2, lengths(), variance)
  variance <- y_unit^2 * between(0.1, 10)
  kernel <- switch(
    kind,
    one_of(function() kernel_se(lengths(), variance), function() kernel_rq(between(0.3, 3), lengths(), variance),
           function() matern(variance))(),
    one_of(function() matern(variance), function() matern(variance) + matern(variance / 10),
           function() kernel_matern(1 / 2, lengths(), variance) * kernel_se(lengths()),
           function() kernel_periodic(between(0.1, 3), variance, unit / 2) + matern(variance / 100))(),
    kernel_constant(variance) * random_kernel())
  x[, numeric] <- unit * x[, numeric]
  if (kind != 3 && with_probability(0.1)) x <- x + unit * one_of(1e4, 1e7)
  noise <- variance * 10^stats::runif(1, one_of(-3, -3, -6, -14), 1)
  y <- y_unit * switch(sample.int(4, 1), sin(3 * x[, 1] / unit), stats::rnorm(n),
                       replace(stats::rnorm(n), 1, one_of(1e3, -1e6)), rep(2, n))
  y <- y + stats::rnorm(n, sd = sqrt(noise))
  near_one <- x[sample.int(n, 8, TRUE), , drop = FALSE]
  near_one[, numeric] <- near_one[, numeric] + unit * stats::rnorm(8 * length(numeric), sd = between(1e-10, 1))
  other <- if (kind == 3) kernel_rows(22, seed + 0.5) else unit * matrix(stats::runif(22 * d, -0.5, 1.5), 22)
  far <- x[1:2, , drop = FALSE]
  far[, numeric] <- far[, numeric] + unit * c(10, 1e5)
  plain <- diff(range(y)) <= 1e-10 * max(abs(y))
  list(
    x = x, y = y, kernel = kernel, noise = noise, y_unit = y_unit,
    new = unname(rbind(x[sample.int(n, 8, TRUE), , drop = FALSE], near_one, other, far)),
    weights = switch(sample.int(3, 1), NULL, stats::runif(n, 0.2, 3), 10^stats::runif(n, -2, 2)),
    offset = if (with_probability(0.2)) y_unit * stats::rnorm(n), center = with_probability(0.6),
    scale = !plain && with_probability(0.6), m = sample.int(max(1, n %/% 3), 1),
    neighbours = min(n, one_of(1, 4, 15, 40)), m2 = sample.int(n, 1), block = one_of(-1, 3, 17),
    memory = one_of(2^32, rep(250 * max(n, 30)^2, 3)))
}

near_fit <- function(p) {
  with_seed(p$seed, pfdtc(p$x, p$y, kernel = p$kernel, noise = p$noise, hyper = "fixed", weights = p$weights,
                          offset = p$offset, center = p$center, scale = p$scale, m = p$m, neighbours = p$neighbours,
                          control = pfdtc_control(maxit = 0, progress = FALSE, block = if (p$block > 0) p$block)))
}

name_of <- function(kernel) {
  if (!inherits(kernel, "pfdtc_kernel")) return(kernel$profile)
  paste(vapply(as_sum(kernel)$leaves, `[[`, "", "profile"), collapse = " ")
}

# Returns certificates by every method. Those that bound less than certify() does are completed with exact numbers.
near_certificates <- function(fit, p, exact) {
  with_seed(p$seed, {
    fit$reference <- reference(fit, p$m2, max_seconds = Inf)
    all <- lapply(stats::setNames(nm = c("fast", "reference", "tight")), function(effort) {
      certify(fit, p$new, effort, max_seconds = Inf)
    })
    known <- function(mean, lower, upper) {
      data.frame(mean = mean, mean_error = pmax(upper - mean, mean - lower), mean_lower = lower, mean_upper = upper,
                 sd = exact$sd, sd_lower = exact$sd, sd_upper = exact$sd)
    }
    z <- stats::qnorm(0.975)
    band <- predict(fit, p$new, interval = "credible", certified = TRUE)
    slip <- 4 * .Machine$double.eps * (abs(exact$mean) + z * exact$sd) # the rounding error of this sum
    all$band <- known(band[, "fit"], band[, "lwr"] + z * exact$sd - slip, band[, "upr"] - z * exact$sd + slip)
    refined <- suppressWarnings(refine(fit, p$new, tol = 10^-stats::runif(1, 1, 12), maxit = sample(0:8, 1)))
    all$refine <- known(refined$mean, refined$mean - refined$mean_error, refined$mean + refined$mean_error)
    c(all, list(kriging = kriging_alone(fit, p)))
  })
}
