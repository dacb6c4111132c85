# Computes the true log marginal likelihood of two rows by a grid over the whitened f.

two_rows <- function(family, seed, apart = 1) {
  with_seed(seed, {
    x <- stats::runif(2) * apart
    v <- exp(stats::runif(1, -2, 1.2))
    f <- stats::rnorm(2, sd = sqrt(v))
    y <- switch(family, binomial = , probit = stats::runif(2) < stats::plogis(f), poisson = stats::rpois(2, exp(f)),
                Gamma = stats::rgamma(2, 2, 2 / exp(f)),
                tweedie = stats::rgamma(2, c(1, stats::rpois(1, exp(f[2L]))), 1),
                truncated = 1 + stats::rpois(2, exp(f)),
                ordinal = ordered(sample(1:2), labels = c("a", "b")),
                tobit = pmax(f + 0.5 * stats::rnorm(2), 0), weibull = exp(f + 0.7 * log(stats::rexp(2))))
    list(data = data.frame(x = x, y = if (family == "binomial") as.numeric(y) else y), v = v)
  })
}

fit_of_two <- function(problem, family, approx = "laplace", m = NULL) {
  suppressMessages(suppressWarnings(
    pfdtc(y ~ x, problem$data, family = family, kernel = kernel_se(0.5, problem$v), hyper = "fixed", center = 0.3,
          approx = approx, m = m)))
}

true_log_evidence <- function(fit) {
  K <- kernel_matrix(fit$kernel, fit$data$x)
  step <- 0.08 # half of it changes the result by 2e-15
  grid <- seq(-9, 9, by = step)
  u <- as.matrix(expand.grid(grid, grid))
  f <- u %*% chol(K + 1e-12 * diag(2))
  sites <- sites_of_fit(fit, fit$data)
  wide <- function(k) {
    lapply(sites, function(s) {
      if (is.numeric(s) && length(s) == 2L && !identical(s, sites$shape)) rep(s[k], nrow(u)) else s
    })
  }
  logs <- Reduce(`+`, lapply(1:2, function(k) native_likelihood(wide(k), f[, k] + sites$offset[k])[1L, ])) -
    rowSums(u^2) / 2 - log(2 * pi) + 2 * log(step) + sum(sites$constant)
  max(logs) + log(sum(exp(logs - max(logs))))
}
