# Represents linear functionals of f, such as values, derivatives ("slopes"), terms and weighted sums, by their
# covariance with f and their prior variance. A list of n functionals has the elements
#
#   kind          "values", "terms", "slopes", "sums", "boxes", "coefficients", "effects" or "population"
#   cross(u, i)   nrow(u) x |i|: the covariances of functionals i with f at the rows of u
#   prior         [n] prior variances of the functionals
#   size          [n] the scale of rounding errors, at least the variance; for sum c_i f(x_i) it is about
#                 (sum |c_i| sqrt(k(x_i, x_i)))^2
#   terms         [n] an entry of `cross` is a sum of about this many kernel values
#   x, rows       for each functional the rows of `x` on which it depends: one row, several for "sums", and the points
#                 of a quadrature rule for "boxes"
#   weights       for "sums" and "boxes": the weights of these rows
#   under(kernel) returns the same functionals of a process with another kernel

new_functionals <- function(kind, cross, prior, size, x, rows, under, terms = rep(1, length(prior)), weights = NULL) {
  list(kind = kind, n = length(prior), cross = cross, prior = prior, size = size * (1 + terms / 4096), terms = terms,
       x = x, rows = rows, weights = weights, under = under)
}

some_functionals <- function(fun, i) {
  cross <- fun$cross
  fun$cross <- function(u, j) cross(u, i[j])
  for (what in c("prior", "size", "terms", "rows", "weights")) fun[[what]] <- fun[[what]][i]
  if (fun$kind == "values") fun[c("x", "rows")] <- list(fun$x[i, , drop = FALSE], seq_along(i))
  fun$n <- length(i)
  fun
}

values_at <- function(kernel, x) {
  prior <- kernel_diagonal(kernel, x)
  new_functionals("values", function(u, i) native_kernel_matrix(kernel, u, x[i, , drop = FALSE]), prior, prior, x,
                  seq_len(nrow(x)), function(kernel) values_at(kernel, x))
}

# Returns the terms of f at the rows of x as functionals. f is a sum of independent processes with the given `kernels`.
# All rows of the first term come first, then those of the next.
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

kernels_of_terms <- function(kernel) {
  kernel <- with_own_terms(kernel)
  lapply(kernel$terms, function(t) replace(kernel, "terms", list(list(t))))
}

# Returns the derivatives of f in one input (`column`) at the rows of x as functionals.
slopes_at <- function(kernel, x, column) {
  variance <- native(ffi_slope_variance, engine_model(kernel = kernel), x, as.integer(column))
  warp <- warp_of(kernel)
  k <- match(column, warp$inputs, nomatch = 0L)
  slope <- if (k) warp_at(warp, k, x[, column])$slope else rep(1, nrow(x)) # derivative of the warped input
  cross <- function(u, i) {
    K <- native(ffi_kernel_slopes, engine_model(kernel = kernel), u, x[i, , drop = FALSE], as.integer(column))
    K * rep(slope[i], each = nrow(K))
  }
  new_functionals("slopes", cross, slope^2 * variance$prior, slope^2 * variance$size, x, seq_len(nrow(x)),
                  function(kernel) slopes_at(kernel, x, column))
}

# Returns weighted sums of f as functionals. The lists `rows` and `weights` have an element for each sum.
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

# Returns the features L^{-1} cov(f(z), functional) of functionals; L is the Cholesky factor of k(z, z).
features_of <- function(fun, z, L) forwardsolve(L, fun$cross(z, seq_len(fun$n)))

# Returns the residual prior covariance of f at the rows of x, given f(z); L is the Cholesky factor of k(z, z).
residual_covariance <- function(kernel, z, L, x) {
  native_kernel_matrix(kernel, x, x) - crossprod(forwardsolve(L, native_kernel_matrix(kernel, z, x)))
}

# Returns functionals c'b of a group, where b are the effects of a level: one for each of `levels` and, varying faster,
# each row c of `of`. `term` is an element of group_roots().
level_effects <- function(term, levels, of, x) {
  S <- tcrossprod(term$root)
  level <- rep(levels, each = nrow(of))
  prior <- rep(rowSums((of %*% S) * of), length(levels))
  cross <- function(u, i) {
    K <- t(design_of(term, u)) %*% S %*% t(of[(i - 1L) %% nrow(of) + 1L, , drop = FALSE])
    K * outer(u[, term$level], level[i], `==`)
  }
  c(new_functionals("effects", cross, prior, prior, x, rep(1L, length(level)), under = NULL),
    list(effects = list(term = term$term, levels = levels, of = of)))
}

# Returns f without the effects of groups, at the rows of x, as functionals.
population_at <- function(kernel, x) {
  replace(values_at(smooth_part(kernel), x), c("kind", "under"),
          list("population", function(kernel) population_at(kernel, x)))
}

# Returns n quasi-random rows of d numbers between 0 and 1 (Roberts' sequence).
roberts_sequence <- function(n, d) {
  root <- stats::uniroot(function(g) g^(d + 1) - g - 1, c(1, 2), tol = 1e-12)$root
  (0.5 + outer(seq_len(n), root^-seq_len(d))) %% 1
}

# If a kernel is a product of factors of one input each, the covariance of f(u) with the average of f over a box is a
# product of averages of the factors k over intervals [a, b]. In units of the lengthscale, let w be the width, T(d) the
# integral of k from d to infinity, and M(w) the integral of t k(t) from 0 to w. Then
#
#   average = (2 T(0) - T(u - a) - T(b - u)) / w for u in [a, b], else |T(|a - u|) - T(|b - u|)| / w,
#   prior variance of the average of f over an interval = 2 / w^2 (w (T(0) - T(w)) - M(w)).
#
# For intervals shorter than a lengthscale, digits would cancel in the formulas. For these, Gauss-Legendre's rule is
# used on [a, u] and on [u, b], because k may have a kink at u. It is exact to rounding. Other kernels use weighted sums
# over the points of such a rule.

# Returns functions of t for the Matern correlation m(t) = e^-x k(x), x = c t, with polynomials k, tail, first: m; its
# integral from t to infinity, e^-x tail(x) / c; the integral of s m(s) from 0 to t, (first(0) - e^-x first(x)) / c^2.
matern_box <- function(c, k, tail, first) {
  poly <- function(p, x) Reduce(function(sum, a) sum * x + a, rev(p), 0 * x)
  list(value = function(t) exp(-c * t) * poly(k, c * t), tail = function(t) exp(-c * t) * poly(tail, c * t) / c,
       first = function(t) (first[1L] - exp(-c * t) * poly(first, c * t)) / c^2)
}

box_factors <- list(se = list(value = function(t) exp(-t^2 / 2), tail = function(t) sqrt(2 * pi) * stats::pnorm(-t),
            first = function(t) -expm1(-t^2 / 2)),
  matern12 = matern_box(1, 1, 1, c(1, 1)), matern32 = matern_box(sqrt(3), c(1, 1), c(2, 1), c(3, 3, 1)),
  matern52 = matern_box(sqrt(5), c(1, 1, 1 / 3), c(8, 5, 1) / 3, c(5, 5, 2, 1 / 3)))

# Returns averages of a correlation `factor` of |t - u| over t in [a, b] (columns) for each u (rows), in lengthscales.
interval_average <- function(factor, u, a, b) {
  u <- matrix(u, length(u), length(a))
  a <- matrix(a, nrow(u), ncol(u), byrow = TRUE)
  b <- matrix(b, nrow(u), ncol(u), byrow = TRUE)
  w <- b - a
  rule <- gauss_rule(12L)
  part <- function(from, to) { # integral over a piece on one side of u
    half <- (to - from) / 2
    half * Reduce(`+`, Map(function(w, at) w * factor$value(abs(from + half * (1 + at) - u)), rule$weight, rule$node))
  }
  middle <- pmin(pmax(u, a), b)
  narrow <- if (any(w < 1)) (part(a, middle) + part(middle, b)) / w else w
  from_a <- factor$tail(abs(a - u))
  from_b <- factor$tail(abs(b - u))
  wide <- ifelse(u >= a & u <= b, 2 * factor$tail(0) - from_a - from_b, abs(from_a - from_b)) / w
  ifelse(w == 0, factor$value(abs(a - u)), ifelse(w < 1, narrow, wide))
}

# Returns the prior variance of the average of f, with kernel `factor`, over an interval of width w in lengthscales.
interval_variance <- function(factor, w) {
  rule <- gauss_rule(12L)
  t <- (1 + rule$node) / 2
  narrow <- drop(factor$value(outer(w, t)) %*% (rule$weight * (1 - t)))
  wide <- pmax(w, 1)
  ifelse(w < 1, narrow, 2 / wide * (factor$tail(0) - factor$tail(wide) - factor$first(wide) / wide))
}

# Returns averages of f over boxes, with corners `lower` and `upper`, as functionals, or NULL without a closed form.
boxes_at <- function(kernel, lower, upper) {
  # A box of x is not a box of rotated inputs, and warping a uniform input makes it non-uniform.
  if (!is.null(rotation_of(kernel)) || !is.null(warp_of(kernel))) return(NULL)
  parts <- with_own_terms(kernel)
  open <- which(colSums(upper > lower) > 0)
  terms <- lapply(parts$terms, function(t) {
    used <- unlist(lapply(parts$leaves[t$leaves], `[[`, "inputs"))
    if (anyDuplicated(used[used %in% open])) return(NULL)
    factors <- lapply(t$leaves, box_factor, parts = parts, lower = lower, upper = upper, open = open)
    if (any(vapply(factors, is.null, NA))) NULL else list(variance = t$variance, factors = factors)
  })
  if (any(vapply(terms, is.null, NA))) return(NULL)
  over_terms <- function(f) Reduce(`+`, lapply(terms, function(t) t$variance * Reduce(`*`, lapply(t$factors, f))))
  prior <- over_terms(function(factor) factor$prior)
  x <- points_in_boxes(lower, upper)
  new_functionals("boxes", function(u, i) over_terms(function(factor) factor$cross(u, i)), prior,
                  pmax(prior, kernel_diagonal(kernel, (lower + upper) / 2)), x$x, x$rows,
                  function(kernel) boxes_at(kernel, lower, upper), rep(64 * (1 + length(open)), nrow(lower)), x$weights)
}

# Returns list(cross, prior) of the averages of factor number l over the boxes, or NULL without a closed form. The
# average of a linear or constant factor is its value at the middle of the box. Boxes have width 0 in inputs not `open`.
box_factor <- function(l, parts, lower, upper, open) {
  leaf <- parts$leaves[[l]]
  own <- intersect(leaf$inputs, open)
  factor <- box_factors[[leaf$profile]]
  if (length(own) && !is.null(factor) && (leaf$profile == "se" || length(leaf$inputs) == 1L)) {
    lengths <- rep_len(column_lengthscales(leaf), length(leaf$inputs))
    each <- function(f) Reduce(`*`, lapply(seq_along(leaf$inputs), function(k) f(leaf$inputs[k], lengths[k])))
    return(list(cross = function(u, i) {
      each(function(j, l) interval_average(factor, u[, j] / l, lower[i, j] / l, upper[i, j] / l))
    }, prior = each(function(j, l) interval_variance(factor, (upper[, j] - lower[, j]) / l))))
  }
  if (length(own) && leaf$profile == "white") { # white noise averages to 0
    return(list(cross = function(u, i) matrix(0, nrow(u), length(i)), prior = numeric(nrow(lower))))
  }
  if (length(own) && !leaf$profile %in% c("linear", "mean", "constant", "group")) return(NULL)
  parts$terms <- list(list(variance = 1, leaves = l))
  middle <- (lower + upper) / 2
  list(cross = function(u, i) native_kernel_matrix(parts, u, middle[i, , drop = FALSE]),
       prior = kernel_diagonal(parts, middle))
}

# Returns list(x, rows, weights), points and weights of a quadrature rule for each box. Gauss-Legendre's rule has 3 to
# `each` points along an input. If it needs more than `most` points in all, quasi-random points are used.
points_in_boxes <- function(lower, upper, each = 5L, most = 140L * each) {
  parts <- lapply(seq_len(nrow(lower)), function(i) {
    open <- which(upper[i, ] > lower[i, ])
    k <- length(open)
    rule <- gauss_rule(min(each, max(3L, floor(most^(1 / max(k, 1L))))))
    if (length(rule$node)^k <= most) {
      grid <- function(v) as.matrix(do.call(expand.grid, rep(list(v), k)))
      u <- (1 + grid(rule$node)) / 2
      w <- if (k) apply(grid(rule$weight / 2), 1L, prod) else 1
    } else {
      u <- roberts_sequence(most, k)
      w <- rep(1 / most, most)
    }
    x <- lower[rep(i, length(w)), , drop = FALSE]
    x[, open] <- x[, open] + u * rep(upper[i, open] - lower[i, open], each = length(w))
    list(x = x, weights = w)
  })
  size <- vapply(parts, function(p) length(p$weights), 0L)
  list(x = do.call(rbind, lapply(parts, `[[`, "x")), weights = lapply(parts, `[[`, "weights"),
       rows = unname(split(seq_len(sum(size)), rep(seq_along(size), size))))
}
