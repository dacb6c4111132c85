# Learns hyperparameters with dense matrices, and draws data to learn from.

# Draws f from the prior at random rows of the unit cube, and responses.
prior_draw <- function(kernel, n, noise = 0.25, seed = 1) {
  with_seed(seed, {
    x <- matrix(stats::runif(n * length(kernel$lengthscale)), n)
    covariance <- dense_kernel(x, kernel$profile, kernel$lengthscale, kernel$variance) + diag(noise, n)
    list(x = x, y = drop(crossprod(chol(covariance), stats::rnorm(n))))
  })
}

learn <- function(data, ..., seed = 1, control = list()) {
  with_seed(seed, pfdtc(data$x, data$y, ..., control = utils::modifyList(list(progress = FALSE), control)))
}

wavy_line <- function(n = 60) {
  with_seed(1, {
    x <- stats::runif(n)
    list(x = matrix(x), y = sin(9 * x) + 0.1 * stats::rnorm(n))
  })
}

# Returns k(X, X) as ref_k() does, but fast enough for a search.
dense_kernel <- function(x, profile, lengthscale, variance) {
  r2 <- Reduce(`+`, lapply(seq_len(ncol(x)), function(j) outer(x[, j], x[, j], "-")^2 / lengthscale[j]^2))
  r <- sqrt(r2)
  variance * switch(profile, se = exp(-r2 / 2), matern12 = exp(-r), matern32 = (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
                    matern52 = (1 + sqrt(5) * r + 5 / 3 * r2) * exp(-sqrt(5) * r))
}

# Returns K + diag(noise / weights) for u = log(coef()).
dense_covariance <- function(x, profile, u, weights = 1) {
  d <- ncol(x)
  dense_kernel(x, profile, exp(u[seq_len(d)]), exp(u[d + 1])) + diag(exp(u[d + 2]) / weights, nrow(x))
}

dense_evidence <- function(data, profile, u, fit, weights = 1) {
  R <- chol(dense_covariance(data$x, profile, unname(u), weights))
  -length(data$y) / 2 * log(2 * pi) - sum(log(diag(R))) - sum(backsolve(R, data$y - fit$center, transpose = TRUE)^2) / 2
}

# Returns dT / du_j by central differences, whose error of 1e-9 is negligible here.
dense_slopes <- function(x, profile, u) {
  lapply(seq_along(u), function(j) {
    h <- replace(numeric(length(u)), j, 1e-5)
    (dense_covariance(x, profile, u + h) - dense_covariance(x, profile, u - h)) / 2e-5
  })
}

# Returns the best of exact searches from many starts, by optim().
oracle <- function(data, profile, fit, starts = 4) {
  d <- ncol(data$x)
  minus <- function(u) tryCatch(-dense_evidence(data, profile, u, fit), error = function(e) 1e10)
  gradient <- function(u) { # tr(T^-1 dT) / 2 - a'dT a / 2, a = T^-1 y
    Ti <- chol2inv(chol(dense_covariance(data$x, profile, u)))
    a <- Ti %*% (data$y - fit$center)
    vapply(dense_slopes(data$x, profile, u), function(slope) sum((Ti - tcrossprod(a)) * slope) / 2, 0)
  }
  spread <- apply(data$x, 2, stats::sd)
  power <- stats::var(data$y)
  with_seed(3, max(vapply(seq_len(starts), function(i) {
    start <- log(c(spread * exp(stats::runif(d, log(0.05), log(4))), power, power * stats::runif(1, 0.01, 0.6)))
    tryCatch(-stats::optim(start, minus, gradient, method = "BFGS", control = list(maxit = 50))$value,
             error = function(e) -Inf)
  }, 0)))
}

# Returns settings of learning, with a kernel whose profile is still to be chosen.
open_settings <- function(data) {
  names <- c(paste0("lengthscale.", colnames(data$x)), "variance", "noise")
  s <- learning_settings(place_kernel(kernel_se(), data$x), NULL, colnames(data$x), names,
                         pfdtc_control(progress = FALSE))
  s$kernel["profile"] <- list(NULL)
  s
}

# Returns list(data, asked) as in response_stage().
response_case <- function(d, formula = y ~ ., transform = "auto", noise = NULL, kernel = NULL) {
  call <- as.call(list(quote(pfdtc), formula = formula, data = d))
  data <- data_from_formula(call, environment())
  list(data = data, asked = list(method = "pfdtc", hyper = "evidence", control = pfdtc_control(progress = FALSE),
                                 keep_data = TRUE, mean = ~ 1, noise = noise, kernel = kernel, transform = transform,
                                 center = TRUE, scale = TRUE))
}

# Returns the argument `from` of find_response()'s candidates.
learned_from <- function(case, theta) {
  list(rows = rows_for_response(case$data, seq_len(nrow(case$data$x))), theta = theta, until = Inf, size = "response",
       s = first_plan(case$data, case$asked)$learn, scale = case$data$scale, n = nrow(case$data$x),
       profile = "matern32")
}

positive_rows <- function(n, seed = 1) {
  with_seed(seed, {
    d <- data.frame(x = sort(stats::runif(n)))
    d$y <- exp(sin(6 * d$x) + 0.3 * stats::rnorm(n))
    d
  })
}

# Returns `count` individuals with `rows` rows each. Effects are draws of `effect`; `start` differs between individuals.
individuals <- function(seed, effect = stats::rnorm, count = 40, rows = 3) {
  n <- count * rows
  with_seed(seed, {
    start <- stats::rnorm(count, 25, 3)
    of <- rep(seq_len(count), each = rows)
    d <- data.frame(start = start[of], t = rep(seq_len(rows), count), other = stats::runif(n)[rep(seq_len(n / 2), 2)])
    d$y <- 3 * d$t + effect(count)[of] + 0.15 * stats::rnorm(n)
    d
  })
}
