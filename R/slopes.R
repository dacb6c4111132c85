# The covariance of a slope of f with f itself, and its variance: d k(u, x) / d x_j, d^2 k / (d x_j d x'_j) at x' = x.
# Products by the product rule, of which each factor says its value, slope and second slope.

# Refuses where some factor that reads column j has no slope. Matern 3/2 has one, and no more.
check_differentiable <- function(kernel, column, name) {
  rough <- c(matern12 = "is not differentiable: its paths have a kink everywhere",
             white = "is not even continuous", categorical = "reads levels, between which there is nothing")
  for (leaf in as_sum(kernel)$leaves) {
    known <- c(names(slope_rates), names(rough), "periodic")
    if (is_stationary(leaf) && !leaf$profile %in% known) rough[[leaf$profile]] <- "has no slope that is known here"
    if (leaf$profile %in% names(rough) && column %in% leaf$inputs) {
      abort_input("wrt", sprintf("\"%s\"", name), "an input along which the function has a slope",
                  message = sprintf("There is no derivative with respect to `%s`: %s %s.", name, leaf_name(leaf),
                                    rough[[leaf$profile]]),
                  hint = "kernel_matern(3/2), kernel_matern(5/2) and kernel_se() have one.")
    }
  }
}

# x - z in column j, a row a row of u
column_steps <- function(u, x, column) outer(u[, column], x[, column], function(z, x) x - z)

# The squared distance of a stationary factor with lengthscales, and those by column
factor_distance <- function(leaf, u, x) {
  l <- rep_len(leaf$lengthscale, length(leaf$inputs))
  Reduce(`+`, Map(function(column, l) (column_steps(u, x, column) / l)^2, leaf$inputs, l))
}

# d g / d x_j = -rate(r2) (x_j - z_j) / l_j^2 of these; rate(0) is what the second slope at 0 is made of
slope_rates <- list(
  se = function(r2, leaf) exp(-r2 / 2),
  matern32 = function(r2, leaf) 3 * exp(-sqrt(3 * r2)),
  matern52 = function(r2, leaf) 5 / 3 * (1 + sqrt(5 * r2)) * exp(-sqrt(5 * r2)),
  rq = function(r2, leaf) (1 + r2 / (2 * leaf$alpha))^(-leaf$alpha - 1))

# g(u, x), variance 1
factor_values <- function(leaf, u, x) {
  leaf$variance <- 1
  native_kernel_matrix(leaf, u, x)
}

# d g(u, x) / d x_j
factor_slopes <- function(leaf, u, x, column) {
  if (leaf$profile == "periodic") {
    turns <- function(v) {
      turn <- v / leaf$period
      2 * pi * (turn - floor(turn)) # as the engine has it: the same places on the circle
    }
    a <- turns(x[, column])
    b <- turns(u[, column])
    sine <- outer(cos(b), sin(a)) - outer(sin(b), cos(a))
    return(-2 * pi / (leaf$period * leaf$lengthscale^2) * sine * factor_values(leaf, u, x))
  }
  if (leaf$profile == "linear") return(matrix(u[, column], nrow(u), nrow(x)))
  if (is_mean(leaf)) return(matrix(mean_slope(leaf, u, column), nrow(u), nrow(x)))
  if (leaf$profile == "polynomial") {
    s <- tcrossprod(u[, leaf$inputs, drop = FALSE], x[, leaf$inputs, drop = FALSE]) + leaf$offset
    return(leaf$degree * s^(leaf$degree - 1) * u[, column])
  }
  l <- leaf_length(leaf, column)
  -slope_rates[[leaf$profile]](factor_distance(leaf, u, x), leaf) * column_steps(u, x, column) / l^2
}

leaf_length <- function(leaf, column) rep_len(leaf$lengthscale, length(leaf$inputs))[match(column, leaf$inputs)]

# d / d x_j of sum u_j(x) u_j(z), at z
mean_slope <- function(leaf, z, column) {
  j <- match(column, leaf$inputs)
  (z[, column] - leaf$centre[j]) * leaf$rate[j]^2
}

# list(value, slope, second) at x' = x, numbers or a number a row
factor_slopes_at <- function(leaf, x, column) {
  if (leaf$profile == "linear") {
    return(list(value = rowSums(x[, leaf$inputs, drop = FALSE]^2), slope = x[, column], second = 1))
  }
  if (is_mean(leaf)) {
    return(list(value = rowSums(mean_basis(leaf, x)^2), slope = mean_slope(leaf, x, column),
                second = leaf$rate[match(column, leaf$inputs)]^2))
  }
  if (leaf$profile == "polynomial") {
    s <- rowSums(x[, leaf$inputs, drop = FALSE]^2) + leaf$offset
    d <- leaf$degree
    more <- if (d > 1) d * (d - 1) * s^(d - 2) * x[, column]^2 else 0
    return(list(value = s^d, slope = d * s^(d - 1) * x[, column], second = d * s^(d - 1) + more))
  }
  second <- if (leaf$profile == "periodic") (2 * pi / (leaf$period * leaf$lengthscale))^2 else
    slope_rates[[leaf$profile]](0, leaf) / leaf_length(leaf, column)^2
  list(value = 1, slope = 0, second = second)
}

# d k(u, x) / d x_j, nrow(u) x nrow(x)
kernel_slopes <- function(kernel, u, x, column) {
  leaves <- as_sum(kernel)$leaves
  total <- matrix(0, nrow(u), nrow(x))
  for (t in as_sum(kernel)$terms) {
    for (l in t$leaves) {
      if (!column %in% leaves[[l]]$inputs) next
      one <- factor_slopes(leaves[[l]], u, x, column)
      for (other in setdiff(t$leaves, l)) one <- one * factor_values(leaves[[other]], u, x)
      total <- total + t$variance * one
    }
  }
  total
}

# list(prior, size): the variance of the slope at the rows of x, and (sum over factors of the sd that each brings)^2,
# which rounding in kernel_slopes() is relative to.
slope_variance <- function(kernel, x, column) {
  leaves <- as_sum(kernel)$leaves
  prior <- roots <- numeric(nrow(x))
  for (t in as_sum(kernel)$terms) {
    at <- lapply(leaves[t$leaves], function(leaf) {
      if (column %in% leaf$inputs) return(factor_slopes_at(leaf, x, column))
      leaf$variance <- 1
      list(value = kernel_diagonal(leaf, x), slope = 0, second = 0)
    })
    product <- function(parts) Reduce(`*`, parts, 1)
    for (a in seq_along(at)) {
      others <- lapply(at[-a], `[[`, "value")
      own <- t$variance * at[[a]]$second * product(others)
      prior <- prior + own
      roots <- roots + sqrt(own)
      for (b in setdiff(seq_along(at), a)) {
        prior <- prior + t$variance * at[[a]]$slope * at[[b]]$slope * product(lapply(at[-c(a, b)], `[[`, "value"))
      }
    }
  }
  list(prior = prior, size = pmax(roots^2, prior))
}
