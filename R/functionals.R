# Linear functionals of f: values, sums of values with weights, slopes. All that a posterior says of one follows from
# its covariance with f and its variance, as a value's follows from k(., x) and k(x, x). A set of n of them:
#
#   cross(u, i)   nrow(u) x |i|: the covariances of those numbered i with f at the rows of u
#   prior         [n] their variances
#   size          [n] what rounding in `cross` and `prior` is relative to: of sum c_i f(x_i) it is
#                 (sum |c_i| sqrt(k(x_i, x_i)))^2, no less than the variance
#   terms         [n] numbers that cross is a sum of
#   rows          list of n: the rows of `x` that each is about, and `near`, whether it is about one of them alone

new_functionals <- function(cross, prior, size, x, rows, terms, near) {
  list(n = length(prior), cross = cross, prior = prior, size = size * (1 + terms / 4096), terms = terms, x = x,
       rows = rows, near = near)
}

is_functionals <- function(at) is.list(at) && is.function(at$cross)

# Those numbered i.
some_functionals <- function(fun, i) {
  cross <- fun$cross
  fun$cross <- function(u, j) cross(u, i[j])
  for (what in c("prior", "size", "terms", "rows")) fun[[what]] <- fun[[what]][i]
  fun$n <- length(i)
  fun
}

# f at the rows of x.
values_at <- function(kernel, x) {
  prior <- kernel_diagonal(kernel, x)
  new_functionals(function(u, i) native_kernel_matrix(kernel, u, x[i, , drop = FALSE]), prior, prior, x,
                  seq_len(nrow(x)), rep(1, nrow(x)), near = TRUE)
}

# The same of several kernels, one after the other, each at all rows.
values_at_each <- function(kernels, x) {
  n <- nrow(x)
  prior <- unlist(lapply(kernels, kernel_diagonal, x))
  cross <- function(u, i) {
    K <- matrix(0, nrow(u), length(i))
    part <- (i - 1L) %/% n + 1L
    for (k in unique(part)) {
      own <- part == k
      K[, own] <- native_kernel_matrix(kernels[[k]], u, x[(i[own] - 1L) %% n + 1L, , drop = FALSE])
    }
    K
  }
  new_functionals(cross, prior, prior, x, rep(seq_len(n), length(kernels)), rep(1, length(prior)), near = TRUE)
}

# d f / d x_j at the rows of x
slopes_at <- function(kernel, x, column) {
  variance <- slope_variance(kernel, x, column)
  new_functionals(function(u, i) kernel_slopes(kernel, u, x[i, , drop = FALSE], column), variance$prior, variance$size,
                  x, seq_len(nrow(x)), rep(1, nrow(x)), near = TRUE)
}

# sum of weights times f at rows of x: lists with an element a functional, rows and their weights
weighted_values <- function(kernel, x, rows, weights) {
  prior_at <- kernel_diagonal(kernel, x)
  points <- function(i) x[rows[[i]], , drop = FALSE]
  cross <- function(u, i) {
    matrix(vapply(i, function(j) native_kernel_cross_matvec(kernel, points(j), weights[[j]], u), numeric(nrow(u))),
           nrow(u))
  }
  prior <- vapply(seq_along(rows), function(i) {
    sum(weights[[i]] * native_kernel_matvecs(kernel, points(i), NULL, weights[[i]]))
  }, 0)
  size <- vapply(seq_along(rows), function(i) sum(abs(weights[[i]]) * sqrt(prior_at[rows[[i]]]))^2, 0)
  fun <- new_functionals(cross, pmax(prior, 0), size, x, rows, lengths(rows), near = FALSE)
  fun$weights <- weights
  fun
}

# cross(u, all) of many rows u, some of them at a time
cross_at <- function(fun, u, use, most = 2048L) {
  for (rows in split(seq_len(nrow(u)), (seq_len(nrow(u)) - 1L) %/% most)) {
    use(rows, fun$cross(u[rows, , drop = FALSE], seq_len(fun$n)))
  }
}

# crossprod(cross(u, all), v)
sum_over_rows <- function(fun, u, v) {
  total <- numeric(fun$n)
  cross_at(fun, u, function(rows, K) total <<- total + drop(crossprod(K, v[rows])))
  total
}

# L^{-1} cross(z), of points z with the factor L
features_of <- function(fun, z, L) forwardsolve(L, fun$cross(z, seq_len(fun$n)))

# list(mean, var) of f's functionals, as computed with: without centre, not in the units of y.
posterior_of <- function(fit, fun) {
  if (!fun$n) return(list(mean = numeric(), var = numeric()))
  if (!is.null(fit$x)) return(exact_of(fit, fun))
  if (is.null(fit$near)) return(by_points(fit, fun))
  if (fun$near) near_of(fit, fun) else near_sums_of(fit, fun)
}

exact_of <- function(fit, fun) {
  K <- fun$cross(fit$x, seq_len(fun$n))
  list(mean = drop(crossprod(K, fit$factors$alpha)), var = fun$prior - colSums(forwardsolve(fit$factors$L, K)^2))
}

# a = L^{-1} cross(Z):  mean = a'beta,  var = prior - |a|^2 + s2 |C^{-1} a|^2, of SoR the last alone
by_points <- function(fit, fun) {
  p <- fit$factors
  a <- features_of(fun, fit$inducing, p$L)
  sor <- model_of(fit)$noise * colSums(forwardsolve(p$C, a)^2)
  list(mean = drop(crossprod(a, p$beta)),
       var = sor + if (gp_family(fit)$sor) 0 else pmax(fun$prior - colSums(a^2), 0))
}

# Of one row x each, beside the near rows S, with E = k - a'a and e = cross(S) - A_S'a:  u = (E_SS + s2 W^{-1})^{-1} e,
# r = a - A_S u,  mean = u'y_S + r'beta,  var = prior - |a|^2 - e'u + |C^{-1} r|^2
near_of <- function(fit, fun) {
  near <- fit$near
  data <- near_rows(fit)
  model <- model_of(fit)
  w <- merged_weights(data)
  rows <- native_neighbours(model$kernel, data$x, near$neighbours, query = fun$x, control = fit$control)
  a <- features_of(fun, fit$inducing, near$L)
  out <- list(mean = numeric(fun$n), var = numeric(fun$n))
  for (of_row in split(seq_len(fun$n), fun$rows)) {
    S <- rows[, fun$rows[of_row[1L]]]
    S <- S[S > 0L]
    x_S <- data$x[S, , drop = FALSE]
    A_S <- forwardsolve(near$L, native_kernel_matrix(model$kernel, fit$inducing, x_S))
    N <- native_kernel_matrix(model$kernel, x_S, x_S) - crossprod(A_S) + diag(model$noise / w[S], length(S))
    e <- fun$cross(x_S, of_row) - crossprod(A_S, a[, of_row])
    u <- solve(N, e)
    r <- a[, of_row] - A_S %*% u
    out$mean[of_row] <- drop(crossprod(u, data$y[S]) + crossprod(r, near$beta))
    out$var[of_row] <- pmax(fun$prior[of_row] - colSums(a[, of_row, drop = FALSE]^2) - colSums(e * u), 0) +
      colSums(forwardsolve(near$C, r)^2)
  }
  out
}

# Of sums: those of what is said of each row, and of their covariances.
near_sums_of <- function(fit, fun) {
  mean <- predict_posterior(fit, fun$x)$mean
  list(mean = mapply(function(rows, w) sum(w * mean[rows]), fun$rows, fun$weights),
       var = mapply(function(rows, w) {
         sum(w * (predict_covariance(fit, fun$x[rows, , drop = FALSE]) %*% w))
       }, fun$rows, fun$weights))
}

# In units of y, without the centre.
functionals_in_units <- function(fit, fun) {
  p <- posterior_of(fit, fun)
  list(mean = in_units(fit, p$mean), sd = in_units(fit, sqrt(pmax(p$var, 0))))
}
