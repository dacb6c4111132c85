# The near-neighbour likelihood in C against the conditional densities written down, and its derivatives.

# Rows given their neighbours, by the joint normal of both: T = K + diag(noise / w) on (S, i).
ref_conditionals <- function(p, rows, neighbours, times) {
  one <- function(t) {
    s <- neighbours[neighbours[, t] > 0, t]
    joint <- function(i) {
      if (!length(i)) return(0)
      x <- p$x[i, , drop = FALSE]
      ref_log_normal(p$y[i], ref_k(p$kernel, x) + diag(p$noise / ref_weights(p$weights, p$x)[i], length(i)))
    }
    joint(c(s, rows[t])) - joint(s)
  }
  sum(times * unlist(lapply(seq_along(rows), one)))
}

# E[dl dl'] by the normal of y_i and y_S: for l = log p(y_S, y_i) - log p(y_S) it is the difference of the two Fisher
# informations, tr(T^-1 T_j T^-1 T_k) / 2.
ref_information <- function(p, rows, neighbours, times) {
  theta <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
  d <- length(p$kernel$lengthscale)
  cov_of <- function(i, theta) {
    kernel <- p$kernel
    kernel$lengthscale <- exp(theta[seq_len(d)])
    kernel$variance <- exp(theta[d + 1])
    ref_k(kernel, p$x[i, , drop = FALSE]) + diag(exp(theta[d + 2]) / ref_weights(p$weights, p$x)[i], length(i))
  }
  information <- function(i) {
    if (!length(i)) return(0)
    slopes <- lapply(seq_along(theta), function(j) { # by a complex step
      moved <- theta + 0i
      moved[j] <- moved[j] + 1e-20i
      solve(cov_of(i, theta), Im(cov_of(i, moved)) / 1e-20)
    })
    outer(seq_along(theta), seq_along(theta), Vectorize(function(j, k) sum(slopes[[j]] * t(slopes[[k]])) / 2))
  }
  Reduce(`+`, lapply(seq_along(rows), function(t) {
    s <- neighbours[neighbours[, t] > 0, t]
    times[t] * (information(c(s, rows[t])) - information(s))
  }))
}

likelihood_case <- function(p, s = 4) {
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  n <- nrow(p$x)
  rank <- with_seed(2, sample.int(n))
  rows <- with_seed(3, sample.int(n, n - 3))
  neighbours <- native_neighbours(kernel, p$x, s, rows = rows, rank = rank)
  times <- with_seed(4, stats::runif(length(rows), 0.5, 2))
  list(kernel = kernel, rows = rows, neighbours = neighbours, times = times)
}

test_that("value, score and information are those of the conditional densities, every kernel, with weights", {
  for (p in problems()) {
    m <- likelihood_case(p)
    got <- native_vecchia(p$x, p$y, p$weights, m$kernel, p$noise, m$rows, m$neighbours, m$times)
    expect_close(got$value, ref_conditionals(p, m$rows, m$neighbours, m$times), 1e-10, label_of(p))
    at <- log(c(p$kernel$lengthscale, p$kernel$variance, p$noise))
    d <- length(p$kernel$lengthscale)
    slope <- ref_derivative(function(theta) {
      q <- p
      q$kernel$lengthscale <- exp(theta[seq_len(d)])
      q$kernel$variance <- exp(theta[d + 1])
      q$noise <- exp(theta[d + 2])
      ref_conditionals(q, m$rows, m$neighbours, m$times)
    }, at)
    expect_close(got$score, slope, 1e-9, label_of(p))
    expect_close(got$information, ref_information(p, m$rows, m$neighbours, m$times), 1e-8, label_of(p))
    alone <- native_vecchia(p$x, p$y, p$weights, m$kernel, p$noise, m$rows, m$neighbours, m$times, slopes = FALSE)
    expect_equal(alone$value, got$value, tolerance = 1e-14)
  }
})

test_that("with all earlier rows it is the exact density; blocks, threads and their shape change nothing", {
  p <- problem("matern52", n = 90, m = 4, weighted = TRUE)
  kernel <- complete_kernel(package_kernel(p$kernel), p$x)
  all_of <- function(s) native_neighbours(kernel, p$x, s, rows = 1:90, rank = 1:90)
  value <- function(near, ...) native_vecchia(p$x, p$y, p$weights, kernel, p$noise, 1:90, near, ...)
  exact <- ref_exact(p$x, p$y, p$kernel, p$noise, p$weights)
  expect_close(value(all_of(89))$value, exact$evidence, 1e-10)
  near <- all_of(10)
  plain <- value(near)
  in_both_shapes(function(shape) for (block in c(1, 7, 40)) { # 40: beyond the 32 rows that a block has at most
    expect_equal(value(near, control = pfdtc_control(block = block, threads = 2)), plain, tolerance = 1e-12,
                 info = c(shape, block))
  })
})

test_that("what merged rows and the prior add to the likelihood has their slopes", {
  x <- with_seed(5, matrix(round(stats::runif(60), 1)))
  y <- with_seed(6, stats::rnorm(60))
  data <- data_from_matrix(x, y)
  s <- list(kernel = place_kernel(kernel_se(), data$x), noise = NULL, columns = colnames(data$x),
            control = pfdtc_control(progress = FALSE), free = c("lengthscale.x1", "variance", "noise"))
  problem <- with_seed(7, learning_problem(learning_rows(data, s), s, "se"))
  theta <- log(c(0.3, 0.8, 0.5))
  rows <- seq_len(problem$pool$n)
  near <- problem$neighbours(theta, rows, 5)
  at <- problem$evaluate(theta, rows, near)
  value <- function(theta) problem$evaluate(theta, rows, near)$value
  expect_gradient(value, theta, at$gradient)
  # all rows, merged, with all earlier rows: the log density of the rows as given, up to half the logs of the weights
  all_near <- problem$neighbours(theta, rows, length(rows) - 1)
  exact <- ref_exact(data$x[data$group, , drop = FALSE], (y - mean(y)) / stats::sd(y),
                     ref_kernel("se", 0.3, 0.8), 0.5)
  expect_close(problem$evaluate(theta, rows, all_near)$likelihood,
               exact$evidence + sum(log(data$weights)) / 2, 1e-9)
})
