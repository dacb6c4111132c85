# What a kernel is made of. One of a single factor is a flat list (profile, label, lengthscale, variance, inputs and
# what else its profile has); any other is a sum of products,
#
#   list(leaves = <kernels of one factor, whose variances mean nothing>, terms = list(list(variance, leaves), ...)),
#
# terms naming their factors by position: two terms may share one, and so its parameters. Everything else asks the
# functions here. Parameters have one order everywhere: of each term those of its factors not met before, in the order
# of factor_parameters, then its variance.

# The parameters of each profile beside the variance.
factor_parameters <- list(
  se = "lengthscale", matern12 = "lengthscale", matern32 = "lengthscale", matern52 = "lengthscale",
  rq = c("lengthscale", "alpha"), periodic = c("lengthscale", "period"), linear = character(), mean = character(),
  polynomial = "offset",
  categorical = "parameters", white = character(), constant = character())

is_composite <- function(kernel) !is.null(kernel$leaves)

kernel_leaves <- function(kernel) if (is_composite(kernel)) kernel$leaves else list(kernel)

# What a kernel that was chosen is called: "Matern 3/2 + Matern 3/2". Its parameters go by the short names in `label`.
sum_label <- function(kernel) paste(vapply(kernel_leaves(kernel), `[[`, "", "label"), collapse = " + ")

kernel_terms <- function(kernel) {
  if (is_composite(kernel)) kernel$terms else list(list(variance = kernel$variance, leaves = 1L))
}

# Factors that depend on distances alone: with lengthscales, or periodic.
is_stationary <- function(leaf) "lengthscale" %in% factor_parameters[[leaf$profile]]

# Not of squared exponentials alone.
is_rough <- function(kernel) {
  any(vapply(kernel_leaves(kernel), function(l) any(l$profile %in% c("matern12", "matern32", "matern52")), NA))
}

# Does k(x, x) differ from row to row?
varies <- function(kernel) {
  any(vapply(kernel_leaves(kernel), function(l) any(l$profile %in% c("linear", "polynomial", "mean")), NA))
}

# Parameters of one kind of a placed factor: how many there are.
parameter_count <- function(leaf, what) {
  switch(what, lengthscale = if (shares_lengthscale(leaf)) 1L else length(leaf$inputs),
         parameters = categorical_size(leaf), 1L)
}

shares_lengthscale <- function(leaf) isTRUE(leaf$isotropic) || identical(leaf$profile, "periodic")

# data.frame, a row a parameter: term, leaf (0: the variance of the term), what, at (its place among those of its kind).
kernel_parameters <- function(kernel) {
  leaves <- kernel_leaves(kernel)
  terms <- kernel_terms(kernel)
  met <- integer()
  groups <- list() # term, leaf, what, how many
  for (t in seq_along(terms)) {
    for (l in setdiff(terms[[t]]$leaves, met)) {
      for (what in leaf_parameters(leaves[[l]])) {
        groups[[length(groups) + 1L]] <- list(t, l, what, parameter_count(leaves[[l]], what))
      }
    }
    met <- c(met, terms[[t]]$leaves)
    groups[[length(groups) + 1L]] <- list(t, 0L, "variance", 1L)
  }
  n <- vapply(groups, `[[`, 0, 4L)
  each <- function(i) rep(unlist(lapply(groups, `[[`, i)), n)
  list2DF(list(term = each(1L), leaf = each(2L), what = each(3L), at = sequence(n)))
}

# Of a kernel still to be chosen: those of any with lengthscales.
leaf_parameters <- function(leaf) if (is.null(leaf$profile)) "lengthscale" else factor_parameters[[leaf$profile]]

# Has it nothing to start from?
is_bare <- function(kernel) {
  !is_composite(kernel) && is.null(kernel$variance) && all(vapply(leaf_parameters(kernel), function(what) {
    is.null(kernel[[what]])
  }, NA))
}

# All but the values: two kernels with the same are of one family.
kernel_structure <- function(kernel) {
  list(lapply(kernel_leaves(kernel), function(l) {
    list(l$profile, as.integer(l$inputs), isTRUE(l$isotropic), l$degree, l$correlation, l$given, l$centre,
         l$rate)
  }), lapply(kernel_terms(kernel), function(t) as.integer(t$leaves)))
}

# Their values in that order, NA where there is none yet.
kernel_values <- function(kernel, table = kernel_parameters(kernel)) {
  leaves <- kernel_leaves(kernel)
  terms <- kernel_terms(kernel)
  one <- function(i) {
    v <- if (table$leaf[i]) leaves[[table$leaf[i]]][[table$what[i]]] else terms[[table$term[i]]]$variance
    if (is.null(v)) NA_real_ else unname(v[min(table$at[i], length(v))])
  }
  vapply(seq_len(nrow(table)), one, 0)
}

# The kernel with other values.
kernel_with <- function(kernel, values, table = kernel_parameters(kernel)) {
  for (l in unique(table$leaf)) {
    for (what in unique(table$what[table$leaf == l])) {
      rows <- which(table$leaf == l & table$what == what)
      if (!is_composite(kernel)) {
        kernel[[what]] <- renew(kernel[[what]], values[rows])
      } else if (l > 0L) {
        kernel$leaves[[l]][[what]] <- renew(kernel$leaves[[l]][[what]], values[rows])
      } else {
        for (i in rows) kernel$terms[[table$term[i]]]$variance <- values[i]
      }
    }
  }
  kernel
}

# New numbers under the old names.
renew <- function(old, new) {
  if (length(old) == length(new)) names(new) <- names(old)
  new
}

# All variances times a number, and over another.
scale_kernel <- function(kernel, by = 1, over = 1) {
  if (!is_composite(kernel)) {
    if (!is.null(kernel$variance)) kernel$variance <- kernel$variance * by / over
    return(kernel)
  }
  kernel$terms <- lapply(kernel$terms, function(t) {
    if (!is.null(t$variance)) t$variance <- t$variance * by / over
    t
  })
  kernel
}

# The sum of the variances: k(x, x) where it is the same everywhere.
total_variance <- function(kernel) {
  if (!is_composite(kernel)) return(kernel$variance)
  sum(vapply(kernel$terms, `[[`, 0, "variance"))
}

# A linear mean (mean.R), and its inputs in their own units beside the level.
is_mean <- function(leaf) identical(leaf$profile, "mean")

mean_basis <- function(leaf, x) {
  cbind(1, t((t(x[, leaf$inputs, drop = FALSE]) - leaf$centre) * leaf$rate))
}

# k(x, x) of each term, a column a term.
term_diagonals <- function(kernel, x) {
  leaves <- kernel_leaves(kernel)
  at <- function(leaf) {
    if (identical(leaf$profile, "mean")) return(rowSums(mean_basis(leaf, x)^2))
    if (!leaf$profile %in% c("linear", "polynomial")) return(1)
    s <- rowSums(x[, leaf$inputs, drop = FALSE]^2)
    if (leaf$profile == "linear") s else (s + leaf$offset)^leaf$degree
  }
  vapply(kernel_terms(kernel), function(t) {
    rep_len(t$variance * Reduce(`*`, lapply(leaves[t$leaves], at), 1), nrow(x))
  }, numeric(nrow(x)))
}

kernel_diagonal <- function(kernel, x) {
  if (!varies(kernel)) return(rep(total_variance(kernel), nrow(x)))
  rowSums(matrix(term_diagonals(kernel, x), nrow(x)))
}

# A length for each column that the kernel reads, in its units, as steps along it are measured: the lengthscale; of
# several terms that of their sum at short distances; Inf along what the kernel does not measure by a length.
kernel_lengths <- function(kernel, d) {
  if (!is_composite(kernel) && !is.null(kernel$lengthscale) && !identical(kernel$profile, "periodic")) {
    return(replace(rep(Inf, d), kernel$inputs, kernel$lengthscale))
  }
  rate <- numeric(d)
  leaves <- kernel_leaves(kernel)
  terms <- Filter(function(t) !is_mean(leaves[[t$leaves[1L]]]), kernel_terms(kernel))
  total <- sum(vapply(terms, `[[`, 0, "variance"))
  for (t in terms) {
    for (leaf in leaves[t$leaves]) {
      if (!is_stationary(leaf)) next
      l <- leaf$lengthscale
      if (leaf$profile == "periodic") l <- l * leaf$period / (2 * pi)
      rate[leaf$inputs] <- rate[leaf$inputs] + t$variance / total / l^2
    }
  }
  1 / sqrt(rate)
}

# Columns along which points may be moved: those of levels hold 0 and 1.
smooth_inputs <- function(kernel) {
  leaves <- kernel_leaves(kernel)
  columns <- function(of) unlist(lapply(leaves[of], `[[`, "inputs"))
  stays <- vapply(leaves, function(l) l$profile %in% c("categorical", "white"), NA)
  sort(setdiff(columns(!stays), columns(stays)))
}

# ---- what the engine reads -------------------------------------------------------------------------------------------

# A complete kernel as the engine reads it: columns and factors from 0.
engine_kernel <- function(kernel) {
  leaves <- kernel_leaves(kernel)
  list(factors = lapply(leaves, engine_factor),
       terms = lapply(kernel_terms(kernel), function(t) {
         list(variance = as.double(t$variance), factors = as.integer(t$leaves) - 1L)
       }))
}

engine_factor <- function(leaf) {
  list(profile = leaf$profile, columns = as.integer(leaf$inputs) - 1L, isotropic = as.integer(isTRUE(leaf$isotropic)),
       power = if (is.null(leaf$degree)) 0L else as.integer(leaf$degree),
       parameters = as.double(unlist(leaf[factor_parameters[[leaf$profile]]], use.names = FALSE)),
       table = if (leaf$profile == "categorical") categorical_table(leaf) else if (is_mean(leaf))
         c(leaf$centre, leaf$rate))
}

# ---- correlations of levels ------------------------------------------------------------------------------------------

categorical_size <- function(leaf) {
  n <- length(leaf$inputs)
  switch(leaf$correlation, given = 0L, exchangeable = 1L, ordered = n - 1L, full = n * (n - 1L) / 2L)
}

# The correlation matrix of the levels, then its slope in the log of each parameter.
categorical_table <- function(leaf) {
  n <- length(leaf$inputs)
  p <- leaf$parameters
  switch(leaf$correlation, given = c(leaf$given), exchangeable = exchangeable_table(n, p),
         ordered = ordered_table(n, p), full = full_table(n, p))
}

# exp(-p) between any two levels
exchangeable_table <- function(n, p) {
  R <- matrix(exp(-p), n, n)
  slope <- -p * R
  diag(R) <- 1
  diag(slope) <- 0
  c(R, slope)
}

# exp(-|s_a - s_b|), scores s with gaps p
ordered_table <- function(n, p) {
  s <- cumsum(c(0, p))
  R <- exp(-abs(outer(s, s, "-")))
  gap <- function(j) { # is gap j between the levels a and b?
    below <- seq_len(n) <= j
    -p[j] * R * outer(below, below, "!=")
  }
  c(R, unlist(lapply(seq_len(n - 1L), gap)))
}

# Rows of a Cholesky factor on the sphere: L_ij = cos(a_ij) prod_{k<j} sin(a_ik), L_ii = prod sin; angles
# a = pi p / (1 + p), so that p = 1 is no correlation.
full_table <- function(n, p) {
  at <- which(lower.tri(diag(n)), arr.ind = TRUE)
  angle <- matrix(0, n, n)
  angle[at] <- pi * p / (1 + p)
  cosine <- ifelse(upper.tri(angle, diag = TRUE), 1, cos(angle))
  row_factor <- function(i) cosine[i, ] * cumprod(c(1, sin(angle[i, -n]))) * (seq_len(n) <= i)
  L <- t(vapply(seq_len(n), row_factor, numeric(n)))
  if (n == 1L) L <- matrix(1)
  R <- tcrossprod(L)
  diag(R) <- 1
  slope <- function(k) {
    i <- at[k, 1L]
    j <- at[k, 2L]
    row <- L[i, ] * (seq_len(n) > j) * cos(angle[i, j]) / sin(angle[i, j])
    row[j] <- -L[i, j] * tan(angle[i, j])
    if (abs(cos(angle[i, j])) < 1e-8) row[j] <- -prod(sin(angle[i, seq_len(j - 1L)])) * sin(angle[i, j])
    moved <- matrix(0, n, n)
    moved[i, ] <- L %*% row
    moved[, i] <- moved[i, ]
    moved[i, i] <- 0
    moved * pi * p[k] / (1 + p[k])^2
  }
  c(R, unlist(lapply(seq_along(p), slope)))
}
