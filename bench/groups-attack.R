# Tests certificates of grouped fits on small random problems against the exact posterior with the same hyperparameters.
#   Rscript bench/groups-attack.R [fits of each kind] [kinds]
#
# The results are in results/groups-attack.csv.
library(pfdtc)
options(pfdtc.threads = 1L, pfdtc.transform = "none")
asked <- commandArgs(TRUE)
fits <- if (length(asked)) as.integer(asked[[1L]]) else 20L
inside <- asNamespace("pfdtc")
# Replaces an internal object of the package's namespace.
set_constant <- function(name, value) {
  unlockBinding(name, inside)
  assign(name, value, inside)
}
quietly <- function(code) suppressMessages(suppressWarnings(code))
between <- function(low, high) exp(runif(1, log(low), log(high)))

# Returns a random problem: levels of few or many rows, rows of a level together or not, weights, tiny to large noise.
random_problem <- function(levels = sample(c(2:6, 20:60), 1L)) {
  n <- sample(60:160, 1L)
  d <- data.frame(x1 = runif(n), x2 = runif(n), g = factor(sample(levels, n, TRUE)),
                  h = factor(sample(letters[1:4], n, TRUE)), w = sample(c(0.1, 1, 5), n, TRUE))
  if (runif(1) < 0.3) d$x1 <- (as.integer(d$g) + runif(n)) / levels # rows of a level are close together
  effect <- rnorm(nlevels(d$g)) * between(0.1, 5)
  d$f <- sin(between(1, 20) * d$x1) + d$x2 + effect[d$g]
  d$y <- d$f + rnorm(n) * between(1e-3, 1)
  new <- data.frame(x1 = runif(40, -0.2, 1.2), x2 = runif(40), h = sample(letters[1:4], 40, TRUE),
                    g = sample(c(levels(d$g), "new", "other"), 40, TRUE))
  list(d = d, new = new, noise = between(1e-4, 1), of_group = between(1e-3, 30), length = between(0.05, 2))
}

kernel_of_problem <- function(p, slopes, crossed) {
  smooth <- sample(list(kernel_matern(1 / 2, p$length, 1, inputs = ~ x1 + x2),
                        kernel_matern(3 / 2, p$length, 1, inputs = ~ x1 + x2),
                        kernel_se(p$length, 1, inputs = ~ x1 + x2)), 1L)[[1L]]
  k <- smooth + if (slopes) kernel_group(~ g, ~ 1 + x1, correlated = FALSE, variance = p$of_group, scale = 0.5) else
    kernel_group(~ g, variance = p$of_group)
  if (crossed) k + kernel_group(~ h, variance = 0.5) else k
}

# Returns c(bounds, violated) of a fit at new rows, by exact means and sds.
count_broken <- function(fit, new, exact, efforts, slack) {
  colSums(do.call(rbind, lapply(efforts, function(effort) {
    i <- quietly(certify(fit, new, effort = effort))
    of_mean <- slack * max(abs(exact$fit), 1)
    of_sd <- slack * max(exact$se.fit, 1e-3)
    out <- c(i$mean_lower > exact$fit + of_mean, i$mean_upper < exact$fit - of_mean,
             i$sd_lower > exact$se.fit + of_sd, i$sd_upper < exact$se.fit - of_sd)
    c(length(out), sum(out | is.na(out)))
  })))
}

gaussian <- function(neighbours = 0, slopes = FALSE, crossed = FALSE, levels = NULL, efforts = c("fast", "reference")) {
  function() {
    p <- if (is.null(levels)) random_problem() else random_problem(levels)
    weights <- if (runif(1) < 0.5) p$d$w else rep(1, nrow(p$d))
    p$d$weight <- weights
    fit <- quietly(pfdtc(y ~ x1 + x2, p$d, weights = weight, kernel = kernel_of_problem(p, slopes, crossed),
                         noise = p$noise, hyper = "fixed", m = sample(3:40, 1L), neighbours = neighbours))
    exact <- quietly(gp_exact(y ~ x1 + x2, p$d, weights = weight, like = fit))
    count_broken(fit, p$new, quietly(predict(exact, p$new, se.fit = TRUE)), efforts, 1e-7)
  }
}

# Returns mode and sd of f at new rows by Newton's method with dense matrices, for the constant mean of the fit.
dense_laplace <- function(fit, y, new, family) {
  kernel <- inside$model_of(fit)$kernel
  x <- fit$data$x
  z <- quietly(inside$new_rows(fit, new, stats::na.pass))$x
  K <- inside$native_kernel_matrix(kernel, x, x)
  of_new <- inside$native_kernel_matrix(kernel, x, z)
  f <- if (family == "poisson") log(y + 0.5) - fit$center else numeric(length(y))
  for (step in 1:100) {
    mean <- if (family == "poisson") exp(f + fit$center) else plogis(f + fit$center)
    W <- if (family == "poisson") mean else mean * (1 - mean)
    L <- t(chol(diag(length(y)) + sqrt(W) * t(sqrt(W) * K)))
    b <- W * f + y - mean
    a <- b - sqrt(W) * backsolve(L, forwardsolve(L, sqrt(W) * (K %*% b)), upper.tri = FALSE, transpose = TRUE)
    f <- drop(K %*% a)
  }
  stopifnot(max(abs(a - (y - mean))) < 1e-8)
  list(fit = drop(crossprod(of_new, a)) + fit$center,
       se.fit = sqrt(inside$kernel_diagonal(kernel, z) - colSums(forwardsolve(L, sqrt(W) * of_new)^2)))
}

# If `eliminated`, all effects are inducing variables beside the inducing points, as with more than 2,000 rows.
laplace <- function(family, slopes = FALSE, crossed = FALSE, eliminated = FALSE, efforts = c("fast", "reference")) {
  function() {
    on.exit(set_constant("dense_rows", few))
    few <- inside$dense_rows # up to this number all rows are inducing points
    if (eliminated) set_constant("dense_rows", 10L)
    p <- random_problem()
    p$d$y <- if (family == "binomial") rbinom(nrow(p$d), 1, plogis(p$d$f)) else rpois(nrow(p$d), exp(pmin(p$d$f, 3)))
    p$of_group <- min(p$of_group, 5)
    k <- kernel_of_problem(p, slopes, crossed)
    fit <- quietly(pfdtc(y ~ x1 + x2, p$d, family = family, kernel = k, hyper = "fixed", m = sample(10:40, 1L)))
    stopifnot(eliminated == !is.null(fit$factors$groupings))
    count_broken(fit, p$new, dense_laplace(fit, p$d$y, p$new, family), efforts, 1e-7)
  }
}

kinds <- list(
  "intercepts" = gaussian(), "slopes" = gaussian(slopes = TRUE), "crossed" = gaussian(crossed = TRUE),
  "neighbours" = gaussian(neighbours = 7), "neighbours, crossed" = gaussian(neighbours = 5, crossed = TRUE),
  "neighbours, slopes" = gaussian(neighbours = 12, slopes = TRUE),
  "many levels, tight" = gaussian(levels = 55L, efforts = "tight"),
  "neighbours, tight" = gaussian(neighbours = 7, efforts = "tight"),
  "few points" = gaussian(efforts = "fast"), "slopes, few points" = gaussian(slopes = TRUE, efforts = "fast"),
  "crossed, few points" = gaussian(crossed = TRUE, efforts = "fast"),
  "binomial" = laplace("binomial"), "poisson" = laplace("poisson"),
  "binomial, eliminated" = laplace("binomial", eliminated = TRUE),
  "poisson, eliminated" = laplace("poisson", eliminated = TRUE),
  "binomial, slopes" = laplace("binomial", slopes = TRUE, eliminated = TRUE),
  "poisson, crossed" = laplace("poisson", crossed = TRUE, eliminated = TRUE),
  "poisson, slopes, tight" = laplace("poisson", slopes = TRUE, eliminated = TRUE, efforts = "tight"))
if (length(asked) > 1L) kinds <- kinds[asked[-1L]]
total <- c(0, 0)
for (kind in names(kinds)) {
  found <- c(0, 0)
  for (seed in seq_len(fits)) {
    set.seed(seed)
    set_constant("effect_block", c(200L, 40L, 7L)[seed %% 3L + 1L])
    one <- try(kinds[[kind]](), silent = TRUE)
    if (inherits(one, "try-error")) {
      cat(kind, seed, conditionMessage(attr(one, "condition")), "\n")
      next
    }
    if (one[2L] > 0) cat(kind, "seed", seed, "broken", one[2L], "\n")
    found <- found + one
  }
  cat(sprintf("# %-20s %6.0f bounds, %d broken\n", kind, found[1L], as.integer(found[2L])))
  total <- total + found
}
cat(sprintf("# all: %.0f bounds, %d broken\n", total[1L], as.integer(total[2L])))

# The results of 40 fits of each kind are in results/groups-attack.csv: no bound is violated.
