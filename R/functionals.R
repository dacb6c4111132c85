# Represents linear functionals of f: values, derivatives ("slopes"), terms and weighted sums. A posterior needs only a
# functional's covariance with f and its prior variance, like k(., x) and k(x, x) at a row. Elements of n functionals:
#
#   kind          "values", "terms", "slopes", "sums", "boxes" or "coefficients"; values may have a faster C routine
#   cross(u, i)   nrow(u) x |i|: the covariances of functionals i with f at the rows of u
#   prior         [n] their prior variances
#   size          [n] the scale of rounding in `cross` and `prior`, at least the variance; for sum c_i f(x_i) it is
#                 (sum |c_i| sqrt(k(x_i, x_i)))^2
#   terms         [n] numbers of summands in an entry of `cross`
#   x, rows       list of n: the rows of `x` on which each functional depends; one row, but several for "sums" and the
#                 points of a quadrature rule for "boxes"
#   weights       for "sums" and "boxes": the weights of these rows
#   under(kernel) the same functionals of f with another kernel

new_functionals <- function(kind, cross, prior, size, x, rows, under, terms = rep(1, length(prior)), weights = NULL) {
  list(kind = kind, n = length(prior), cross = cross, prior = prior, size = size * (1 + terms / 4096), terms = terms,
       x = x, rows = rows, weights = weights, under = under)
}

# Returns only the functionals i.
some_functionals <- function(fun, i) {
  cross <- fun$cross
  fun$cross <- function(u, j) cross(u, i[j])
  for (what in c("prior", "size", "terms", "rows", "weights")) fun[[what]] <- fun[[what]][i]
  if (fun$kind == "values") fun[c("x", "rows")] <- list(fun$x[i, , drop = FALSE], seq_along(i))
  fun$n <- length(i)
  fun
}

# Returns the values of f at the rows of x as functionals.
values_at <- function(kernel, x) {
  prior <- kernel_diagonal(kernel, x)
  new_functionals("values", function(u, i) native_kernel_matrix(kernel, u, x[i, , drop = FALSE]), prior, prior, x,
                  seq_len(nrow(x)), function(kernel) values_at(kernel, x))
}

# Returns the terms of f at the rows of x as functionals: values of independent processes with these kernels, whose sum
# is f. All rows of the first term come first.
terms_at <- function(kernels, x) {
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
  new_functionals("terms", cross, prior, prior, x, rep(seq_len(n), length(kernels)),
                  function(kernel) terms_at(kernels_of_terms(kernel), x))
}

# Returns the terms of a kernel as kernels of their own.
kernels_of_terms <- function(kernel) {
  kernel <- with_own_terms(kernel)
  lapply(kernel$terms, function(t) {
    kernel$terms <- list(t)
    kernel
  })
}

# Returns d f / d x_j at the rows of x as functionals, for j = `column`.
slopes_at <- function(kernel, x, column) {
  variance <- native(ffi_slope_variance, engine_model(kernel = kernel), x, as.integer(column))
  cross <- function(u, i) {
    native(ffi_kernel_slopes, engine_model(kernel = kernel), u, x[i, , drop = FALSE], as.integer(column))
  }
  new_functionals("slopes", cross, variance$prior, variance$size, x, seq_len(nrow(x)),
                  function(kernel) slopes_at(kernel, x, column))
}

# Returns sums of f over rows of x as functionals. `rows` and `weights` are lists with an element for each sum.
sums_at <- function(kernel, x, rows, weights) {
  sd <- sqrt(kernel_diagonal(kernel, x))
  points <- lapply(rows, function(i) x[i, , drop = FALSE])
  cross <- function(u, i) {
    matrix(vapply(i, function(j) native_kernel_cross_matvec(kernel, points[[j]], weights[[j]], u), numeric(nrow(u))),
           nrow(u))
  }
  prior <- as.double(mapply(function(x, w) sum(w * native_kernel_matvecs(kernel, x, NULL, w)), points, weights))
  size <- as.double(mapply(function(rows, w) sum(abs(w) * sd[rows])^2, rows, weights))
  new_functionals("sums", cross, pmax(prior, 0), size, x, rows,
                  function(kernel) sums_at(kernel, x, rows, weights), lengths(rows), weights)
}

# Returns f(x), computed for blocks of the rows of x and combined by `bind`.
in_blocks <- function(x, f, size = 2048L, bind = rbind) {
  blocks <- split(seq_len(nrow(x)), (seq_len(nrow(x)) - 1L) %/% size)
  do.call(bind, unname(lapply(blocks, function(i) f(x[i, , drop = FALSE]))))
}

# Returns the features L^{-1} cross(z) for points z with Cholesky factor L.
features_of <- function(fun, z, L) forwardsolve(L, fun$cross(z, seq_len(fun$n)))

# Returns effects b of the levels of a grouped term (group_roots()) as functionals: c'b for each row c of `of` and each
# level in `levels`. The rows of `of` vary faster than the levels.
level_effects <- function(kernel, term, levels, of, x) {
  S <- tcrossprod(term$root)
  level <- rep(levels, each = nrow(of))
  prior <- rep(rowSums((of %*% S) * of), length(levels))
  cross <- function(u, i) {
    K <- group_design(term, u) %*% S %*% t(of[(i - 1L) %% nrow(of) + 1L, , drop = FALSE])
    K * outer(u[, term$level], level[i], `==`)
  }
  c(new_functionals("effects", cross, prior, prior, x, rep(1L, length(level)), under = NULL),
    list(effects = list(term = term$term, levels = levels, of = of)))
}

# Returns the values of f without the effects of its groups, at the rows of x, as functionals.
population_at <- function(kernel, x) {
  replace(values_at(smooth_part(kernel), x), c("kind", "under"),
          list("population", function(kernel) population_at(kernel, x)))
}

# Returns n quasi-random rows of d numbers between 0 and 1 (Roberts' sequence).
roberts_sequence <- function(n, d) {
  root <- stats::uniroot(function(g) g^(d + 1) - g - 1, c(1, 2), tol = 1e-12)$root
  (0.5 + outer(seq_len(n), root^-seq_len(d))) %% 1
}
