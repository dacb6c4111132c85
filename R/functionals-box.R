# Averages f over boxes. If a kernel is a product of factors with one input each, the covariance of f(u) with the
# average and the prior variance are products of averages of one factor over an interval. With d = |t - u| in
# lengthscales, T(d) the integral of the factor k from d to infinity, and w the width of the interval [a, b],
#
#   average at u = (2 T(0) - T(u - a) - T(b - u)) / w inside,  |T(|a - u|) - T(|b - u|)| / w outside,
#   prior variance = 2 / w^2 (w (T(0) - T(w)) - M(w)),  M(w) the integral of t k(t) from 0 to w.
#
# Intervals shorter than a lengthscale use Gauss-Legendre's rule on both sides of u, where k is analytic. The rule is
# exact to rounding, without cancellation. Other kernels use sums over the points of such a rule.

# Returns a Matern factor. With x = c t, k and T are e^-x times a polynomial, and M is a constant minus such a product.
# `k`, `tail` and `first` are the coefficients of the polynomials of k, T and M.
matern_box <- function(c, k, tail, first) {
  poly <- function(p, x) Reduce(function(sum, a) sum * x + a, rev(p), 0 * x)
  list(value = function(t) exp(-c * t) * poly(k, c * t), tail = function(t) exp(-c * t) * poly(tail, c * t) / c,
       first = function(t) (first[1L] - exp(-c * t) * poly(first, c * t)) / c^2)
}

box_factors <- list(
  se = list(value = function(t) exp(-t^2 / 2), tail = function(t) sqrt(2 * pi) * stats::pnorm(-t),
            first = function(t) -expm1(-t^2 / 2)),
  matern12 = matern_box(1, 1, 1, c(1, 1)),
  matern32 = matern_box(sqrt(3), c(1, 1), c(2, 1), c(3, 3, 1)),
  matern52 = matern_box(sqrt(5), c(1, 1, 1 / 3), c(8, 5, 1) / 3, c(5, 5, 2, 1 / 3)))

# Returns the averages of the factor over intervals [a, b] (columns) for each u (rows), all in lengthscales.
interval_average <- function(factor, u, a, b) {
  u <- matrix(u, length(u), length(a))
  a <- matrix(a, nrow(u), ncol(u), byrow = TRUE)
  b <- matrix(b, nrow(u), ncol(u), byrow = TRUE)
  out <- 0 * u
  w <- b - a
  rule <- gauss_legendre(12L)
  part <- function(from, to) { # the integral over a piece on one side of u
    half <- (to - from) / 2
    half * Reduce(`+`, Map(function(w, at) w * factor$value(abs(from + half * (1 + at) - u)), rule$weight, rule$node))
  }
  middle <- pmin(pmax(u, a), b)
  if (any(w < 1)) out <- (part(a, middle) + part(middle, b)) / w
  wide <- w >= 1
  tail <- function(d) factor$tail(abs(d[wide]))
  inside <- (u >= a & u <= b)[wide]
  ends <- list(tail(a - u), tail(b - u))
  out[wide] <- ifelse(inside, 2 * factor$tail(0) - ends[[1L]] - ends[[2L]], abs(ends[[1L]] - ends[[2L]])) / w[wide]
  held <- w == 0
  out[held] <- factor$value(abs(a - u)[held])
  out
}

# Returns the prior variance of the average over an interval of width w in lengthscales.
interval_variance <- function(factor, w) {
  rule <- gauss_legendre(12L)
  t <- (1 + rule$node) / 2
  narrow <- drop(factor$value(outer(w, t)) %*% (rule$weight * (1 - t)))
  wide <- pmax(w, 1)
  ifelse(w < 1, narrow, 2 / wide * (factor$tail(0) - factor$tail(wide) - factor$first(wide) / wide))
}

# Returns the average of f over each box with corners in the rows of `lower` and `upper`, as functionals. Returns NULL
# if the kernel has no closed form.
boxes_at <- function(kernel, lower, upper) {
  if (!is.null(rotation_of(kernel))) return(NULL) # a box of x is no box of the rotated inputs
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
  middle <- (lower + upper) / 2
  x <- points_in_boxes(lower, upper)
  new_functionals("boxes", function(u, i) over_terms(function(factor) factor$cross(u, i)), prior,
                  pmax(prior, kernel_diagonal(kernel, middle)), x$x, x$rows,
                  function(kernel) boxes_at(kernel, lower, upper), rep(64 * (1 + length(open)), nrow(lower)), x$weights)
}

# Returns list(cross, prior) of one factor with variance 1, or NULL without a closed form. A factor that is linear in
# its inputs, such as the effects of a level, has its value at the middle of the box.
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

# Returns list(x, rows, weights), the points and weights of a rule for each box. Gauss-Legendre's rule has `each` points
# along an input in which the box has a width. If the rule needs more than `most` points, they are quasi-random.
points_in_boxes <- function(lower, upper, each = 5L, most = 140L * each) {
  parts <- lapply(seq_len(nrow(lower)), function(i) {
    open <- which(upper[i, ] > lower[i, ])
    k <- length(open)
    rule <- gauss_legendre(min(each, max(3L, floor(most^(1 / max(k, 1L))))))
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

# ---- for users ------------------------------------------------------------------------------------------------------

# Returns the data frame of linear_functional() for averages or integrals over boxes.
functionals_of_boxes <- function(fit, lower, upper, average, ask) {
  box <- read_boxes(fit, lower, upper)
  kernel <- model_of(fit)$kernel
  fun <- if (is.null(fit$factors$groupings)) boxes_at(kernel, box$lower, box$upper)
  error <- NULL
  if (is.null(fun)) {
    # Compare with a coarser rule to estimate the error. The number of points per input grows with the width in
    # lengthscales. Matern kernels have kinks at the rows, so the rule converges slowly, and the coarser rule has half
    # its points.
    wide <- max((box$upper - box$lower) / rep(kernel_lengths(kernel, ncol(box$lower)), each = nrow(box$lower)))
    each <- as.integer(min(26, ceiling(6 + 3 * wide)))
    kinks <- any(startsWith(vapply(with_own_terms(kernel)$leaves, `[[`, "", "profile"), "matern"))
    coarse <- if (kinks) ceiling(each / 2) else each - 2
    rules <- lapply(as.integer(c(each, coarse)), function(each) points_in_boxes(box$lower, box$upper, each))
    funs <- lapply(rules, function(r) sums_at(kernel, r$x, r$rows, r$weights))
    fun <- funs[[1L]]
    at <- lapply(funs, functionals_in_units, fit = fit)
    error <- pmax(abs(at[[1L]]$mean - at[[2L]]$mean), abs(at[[1L]]$sd - at[[2L]]$sd))
  }
  rounding <- 4 * .Machine$double.eps * (abs(fit$center) + abs(box$offset))
  out <- answer_of_functionals(fit, fun, fit$center + box$offset, rounding, identity, ask)
  out$quadrature <- error
  if (!average) out[] <- lapply(out, `*`, apply(box$upper - box$lower, 1L, function(w) prod(w[w > 0])))
  row.names(out) <- if (is.null(box$names)) NULL else make.unique(as.character(box$names))
  out
}

# Returns list(lower, upper, offset, names), with corners in the fit's columns. Inputs that `upper` lacks stay fixed.
read_boxes <- function(fit, lower, upper) {
  as_rows <- function(v, argument) {
    if (is.data.frame(v) || is.matrix(v)) return(as.data.frame(v))
    rows <- if (is.list(v) || is.numeric(v) || is_time(v)) tryCatch(as.data.frame(as.list(v)), error = function(e) NULL)
    if (is.null(rows)) abort_input(argument, describe(v), "a data frame, or a named vector for one box")
    rows
  }
  lower <- as_rows(lower, "lower")
  lacking <- setdiff(fit$frame$required, names(lower))
  refuse_if(length(lacking), "lower", sprintf("lacks %s", list_quoted(lacking)),
            hint = "Give all variables of the fit, including those of the offset.")
  given <- if (is.null(upper)) lower[0L] else as_rows(upper, "upper")
  refuse_if(nrow(given) != nrow(lower) && length(given) || !all(names(given) %in% names(lower)), "upper",
            describe(upper), "a data frame with the rows and variables of `lower`")
  upper <- lower
  upper[names(given)] <- given
  at <- lapply(list(lower, upper), new_rows, fit = fit, na.action = stats::na.fail)
  lower <- at[[1L]]$x
  upper <- at[[2L]]$x
  own <- colnames(lower)[colSums(lower != upper) > 0]
  plain <- if (by_formula(fit)) {
    vapply(Filter(function(v) v$kind %in% c("numeric", "time"), fit$frame$variables), `[[`, "", "name")
  } else {
    own
  }
  if (!all(own %in% intersect(plain, c(names(given))))) {
    others <- list_quoted(setdiff(own, plain))
    abort_input("upper", others, "those of `lower`",
                message = sprintf("`lower` and `upper` must have the same values of %s.", others),
                hint = "A box has widths only along numeric inputs, not along factors or functions of inputs.")
  }
  if (any(lower > upper)) abort_input("upper", "is below `lower`")
  offset <- rep_len(at[[1L]]$offset, nrow(lower))
  if (any(offset != at[[2L]]$offset)) abort_input("upper", "has another offset than `lower`")
  list(lower = lower, upper = upper, offset = offset, names = at[[1L]]$names)
}
