# Converts a kernel between three forms. A kernel of one factor is a flat list for users: profile, label, lengthscale,
# variance, inputs, .... as_sum() returns the general form, a sum of products of factors ("leaves"),
#
#   list(leaves = <factors; their own variances have no meaning>, terms = list(list(variance, leaves), ...)),
#
# where terms refer to factors by number, and two terms may share a factor. compile_kernel() returns the form that
# C code reads. In it, set_values() replaces the parameter values. Values are in the order of terms: first parameters of
# those factors that no earlier term has (see factor_parameters), then the term's variance.

# Lists the parameters of a factor by its profile, the name of its covariance function. Only terms have variances.
factor_parameters <- list(
  se = "lengthscale", matern12 = "lengthscale", matern32 = "lengthscale", matern52 = "lengthscale",
  rq = c("lengthscale", "alpha"), periodic = c("lengthscale", "period"), linear = character(), mean = character(),
  polynomial = "offset", additive = c("lengthscale", "additive.share", "additive.ratio"),
  pairwise = c("lengthscale", "additive.share", "additive.ratio", "additive.pairs"),
  categorical = "parameters", group = c("scale", "parameters"), white = character(), constant = character())

# Returns how many parameters of the kind `what` a factor has. The factor must already have its columns (`inputs`).
parameter_count <- function(leaf, what) {
  switch(what, lengthscale = if (shares_lengthscale(leaf)) 1L else
    length(if (is.null(leaf$shared)) leaf$inputs else unique(leaf$shared)),
    parameters = {
      n <- table_rows(leaf)
      switch(leaf$correlation, given = 0L, exchangeable = 1L, ordered = n - 1L, full = n * (n - 1L) / 2L)
    }, scale = table_rows(leaf) - 1L, 1L)
}

as_sum <- function(kernel) {
  if (!is.null(kernel$engine)) kernel <- as_kernel(kernel)
  if (!is.null(kernel$leaves)) return(kernel)
  list(leaves = list(kernel), terms = list(list(variance = kernel$variance, leaves = 1L)), label = kernel$label)
}

# Returns the kernel as users see it: a flat list if it has one factor.
as_kernel <- function(kernel) {
  if (!is.null(kernel$engine)) {
    table <- kernel$table
    values <- kernel$engine$values
    kernel <- as_sum(kernel$kernel)
    for (first in which(table$at == 1L & !is.na(values))) {
      what <- table$what[first]
      leaf <- table$leaf[first]
      term <- table$term[first]
      new <- values[table$term == term & table$leaf == leaf & table$what == what]
      if (leaf) {
        old <- kernel$leaves[[leaf]][[what]]
        if (length(old) == length(new)) names(new) <- names(old)
        kernel$leaves[[leaf]][[what]] <- new
      } else {
        kernel$terms[[term]]$variance <- new
      }
    }
  }
  if (length(kernel$leaves) != 1L || length(kernel$terms) != 1L) return(kernel)
  replace(kernel$leaves[[1L]], "variance", list(kernel$terms[[1L]]$variance))
}

change_leaves <- function(kernel, f) {
  if (!is.null(kernel$engine)) kernel <- as_kernel(kernel)
  if (is.null(kernel$leaves)) f(kernel) else replace(kernel, "leaves", list(lapply(kernel$leaves, f)))
}

has_one_factor <- function(kernel) length((if (is.null(kernel$engine)) kernel else kernel$kernel)$leaves) <= 1L

# Returns the form of a kernel that C code reads: list(kernel, engine, table, label, inputs). `table` has a row for
# each parameter: its term, leaf (number of the factor, 0 for a variance), what (kind), at (position within the kind),
# held (TRUE if the user's value is kept) and mean (TRUE for the variance of a linear mean). engine$values has the
# parameter values in this order, NA if unknown. The results of the last four calls are kept for equal kernels.
compile_kernel <- function(kernel) {
  if (!is.null(kernel$engine)) return(kernel)
  for (last in engine$compiled) if (identical(last$from, kernel, num.eq = FALSE, single.NA = FALSE)) return(last$to)
  parts <- as_sum(kernel)
  leaves <- parts$leaves
  kinds <- list() # one element for each kind of parameter of a factor, and one for each variance
  met <- integer()
  for (t in seq_along(parts$terms)) {
    term <- parts$terms[[t]]
    for (l in c(setdiff(term$leaves, met), 0L)) { # 0 stands for the variance
      leaf <- if (l) leaves[[l]]
      for (what in if (l) factor_parameters[[c(leaf$profile, "se")[1L]]] else "variance") { # no profile: as for "se"
        given <- if (l) leaf[[what]] else term$variance
        n <- if (l) parameter_count(leaf, what) else 1L
        kinds[[length(kinds) + 1L]] <- list(
          n = n, values = rep_len(if (is.null(given)) NA_real_ else as.double(given), n), term = t, leaf = l,
          what = what, held = what %in% leaf$held, mean = !l && is_mean(leaves[[term$leaves[1L]]]))
      }
    }
    met <- c(met, term$leaves)
  }
  all <- function(name) unlist(lapply(kinds, `[[`, name))
  n <- all("n")
  each <- function(name) rep(all(name), n)
  table <- structure(list(term = each("term"), leaf = each("leaf"), what = each("what"), at = sequence(n),
                          held = each("held"), mean = each("mean")),
                     class = "data.frame", row.names = .set_row_names(sum(n)))
  tied <- any(table$what == "additive.share") ||
    any(vapply(leaves, function(leaf) !is.null(leaf$shared) && has_shared(leaf), NA))
  tie <- if (tied) expand_additive(parts, table)
  if (!is.null(tie)) leaves <- tie$leaves
  warp <- if (any(lengths(lapply(leaves, `[[`, "warp")))) warp_of(parts)
  compiled <- list(kernel = as_kernel(kernel), label = kernel$label, inputs = kernel$inputs, table = table,
    engine = list(factors = lapply(leaves, function(leaf) { # all fields of a factor but its parameters
      list(profile = leaf$profile, columns = as.integer(leaf$inputs), number = leaf$number,
           isotropic = as.integer(isTRUE(leaf$isotropic)), power = as.integer(c(leaf$degree, leaf$intercept, 0L)[1L]),
           correlation = leaf$correlation, table = c(leaf$centre, leaf$rate, leaf$given))
    }), values = all("values"),
      terms = lapply(if (is.null(tie)) lapply(parts$terms, `[[`, "leaves") else tie$terms, as.integer),
      tie = tie[c("M", "weights")],
      rotation = if (any(lengths(lapply(leaves, `[[`, "rotation")))) matrix_of_rotation(rotation_of(parts)),
      warp = if (!is.null(warp)) unlist(lapply(seq_len(max(warp$inputs)), function(column) { # knots and w at the knots
        k <- match(column, warp$inputs)
        same <- as.double(seq_len(warp_knots) - 1L) # w(x) = x
        if (is.na(k)) c(same, same) else c(warp$at[, k], warp$to[, k])
      }))))
  engine$compiled <- c(list(list(from = kernel, to = compiled)), engine$compiled[-4L])
  compiled
}

set_values <- function(kernel, values) {
  kernel <- compile_kernel(kernel)
  kernel$engine$values <- as.double(values)
  kernel
}

kernel_values <- function(kernel) compile_kernel(kernel)$engine$values

kernel_parameters <- function(kernel) compile_kernel(kernel)$table

# Multiplies all variances of the kernel by `by` / `over`.
scale_kernel <- function(kernel, by = 1, over = 1) {
  if (!is.null(kernel$engine)) {
    variances <- kernel$table$leaf == 0L
    kernel$engine$values[variances] <- kernel$engine$values[variances] * by / over
    return(kernel)
  }
  scaled <- function(part) if (is.null(part$variance)) part else replace(part, "variance", part$variance * by / over)
  if (is.null(kernel$leaves)) scaled(kernel) else replace(kernel, "terms", list(lapply(kernel$terms, scaled)))
}

has_profile <- function(kernel, profiles) {
  any(vapply(as_sum(kernel)$leaves, function(leaf) any(c(leaf$profile, leaf$base) %in% profiles), NA))
}

# Returns TRUE if k(x, x) may differ between rows.
varies <- function(kernel) {
  any(vapply(as_sum(kernel)$leaves, function(l) {
    isTRUE(l$profile %in% varying_profiles) && !(l$profile == "group" && identical(l$group$design, 1))
  }, NA))
}

varying_profiles <- c("linear", "polynomial", "mean", "group")
rough_profiles <- c("matern12", "matern32", "matern52")

is_mean <- function(leaf) identical(leaf$profile, "mean")
is_group <- function(leaf) identical(leaf$profile, "group")
is_additive <- function(leaf) isTRUE(leaf$profile %in% c("additive", "pairwise"))

# Returns the basis of a linear mean at the rows of x: a column of ones and the centred and scaled inputs.
mean_basis <- function(leaf, x) {
  cbind(1, t((t(rotated(leaf, x)[, leaf$inputs, drop = FALSE]) - leaf$centre) * leaf$rate))
}

# Returns TRUE if the kernel has one factor and none of its parameters has a value.
is_bare <- function(kernel) {
  kernel <- as_sum(kernel)
  leaf <- kernel$leaves[[1L]]
  length(kernel$leaves) == 1L && is.null(kernel$terms[[1L]]$variance) &&
    all(vapply(leaf[factor_parameters[[c(leaf$profile, "se")[1L]]]], is.null, NA))
}

# Returns for each term of the kernel TRUE if it is a group factor that is not multiplied by another factor. Another
# `kind` of factor is given by a function like is_group().
plain_groups <- function(kernel, kind = is_group) {
  kernel <- as_sum(kernel)
  vapply(kernel$terms, function(t) length(t$leaves) == 1L && kind(kernel$leaves[[t$leaves]]), NA)
}

has_groups <- function(kernel) any(plain_groups(kernel))

# Returns TRUE if each term of the kernel is a single group or a linear mean, and at least one is a group.
is_groups_only <- function(kernel) {
  groups <- plain_groups(kernel)
  any(groups) && all(groups | plain_groups(kernel, is_mean))
}

# Returns the kernel without parameter values. Fits with equal structures have comparable parameters.
kernel_structure <- function(kernel) {
  kernel <- as_sum(kernel)
  list(lapply(kernel$leaves, function(l) {
    list(l$profile, as.integer(l$inputs), isTRUE(l$isotropic), l$degree, l$correlation, l$given, l$centre,
         l$rate, l$base, l$groups, l$intercept, l$shared, l$rotation, l$warp)
  }), lapply(kernel$terms, function(t) as.integer(t$leaves)))
}

# Returns the sum of the variances of the terms, which is k(x, x) unless k(x, x) varies with x.
total_variance <- function(kernel) {
  kernel <- compile_kernel(kernel)
  sum(kernel$engine$values[kernel$table$leaf == 0L])
}

# Returns a lengthscale l for each of d columns of x, Inf for a column without a lengthscale. With several factors, 1 /
# l^2 is summed over the factors of a term and averaged over terms (without the linear mean), weighted by variances. For
# SE factors, this sum is the relative curvature of k at distance 0.
kernel_lengths <- function(kernel, d) {
  kernel <- as_sum(kernel)
  leaves <- kernel$leaves
  one <- leaves[[1L]]
  if (length(leaves) == 1L && !is.null(one$lengthscale) && !identical(one$profile, "periodic")) {
    return(replace(rep(Inf, d), one$inputs, column_lengthscales(one)))
  }
  rate <- numeric(d)
  terms <- Filter(function(t) !is_mean(leaves[[t$leaves[1L]]]), kernel$terms)
  total <- sum(vapply(terms, `[[`, 0, "variance"))
  for (t in terms) {
    for (leaf in leaves[t$leaves]) {
      if (!"lengthscale" %in% factor_parameters[[leaf$profile]]) next
      l <- column_lengthscales(leaf)
      if (leaf$profile == "periodic") l <- l * leaf$period / (2 * pi)
      rate[leaf$inputs] <- rate[leaf$inputs] + t$variance / total / l^2
    }
  }
  1 / sqrt(rate)
}

# Returns the columns along which inducing points may move: those that no categorical, white or group factor reads.
smooth_inputs <- function(kernel) {
  leaves <- as_sum(kernel)$leaves
  stays <- vapply(leaves, function(l) l$profile %in% c("categorical", "white", "group"), NA)
  sort(setdiff(unlist(lapply(leaves[!stays], `[[`, "inputs")), unlist(lapply(leaves[stays], `[[`, "inputs"))))
}

# ---- parameters that several terms or columns share -----------------------------------------------------------------

# The additive kernel (kernel_additive()) is one factor for users and for learning. C code computes it as a sum of
# terms whose parameters depend on each other. With variance v, share s, ratio c and pairs p,
#
#   k = v (F(r) / S + s / (S G) sum_j u_j + 2 p / (S G (G - 1)) sum_{i < j} u_i u_j),   S = 1 + s + p.
#
# F is a correlation at distance r in all G inputs; u_j is squared exponential, with F's lengthscale of input j divided
# by c. The logs of the parameters in C are a matrix M times (log theta, log w): theta are the kernel's parameters,
# and w the weights 1 / S, s / (S G) and 2 p / (S G (G - 1)) for each additive factor.

# A factor may have one lengthscale for several columns: for the three columns of sphere(), or for those of an R factor
# with many levels. leaf$shared has for each column the position of its lengthscale, named by the input.

shared_by <- function(groups) stats::setNames(match(groups, unique(groups)), groups)

shares_lengthscale <- function(leaf) isTRUE(leaf$isotropic) || identical(leaf$profile, "periodic")
has_shared <- function(leaf) !is.null(leaf$shared) && !shares_lengthscale(leaf)

# Returns the size of the correlation matrix of a kernel's factor: the number of its levels, or of effects per level.
table_rows <- function(leaf) length(leaf$inputs) - if (is_group(leaf)) 1L - leaf$intercept else 0L

# Returns the names of a factor's lengthscales: names of columns, or of the inputs whose columns share a lengthscale.
lengthscale_names <- function(leaf, columns) {
  if (is.null(leaf$shared)) columns[leaf$inputs] else unique(names(leaf$shared))
}

column_lengthscales <- function(leaf) {
  lengths <- if (is.null(leaf$shared)) leaf$lengthscale else leaf$lengthscale[leaf$shared]
  if (is.null(leaf$rotation)) return(lengths)
  slopes <- matrix_of_rotation(leaf$rotation, leaf$inputs) # derivatives of the inputs that the factor reads
  1 / sqrt(drop(slopes^2 %*% rep_len(lengths^-2, length(leaf$inputs)))) # lengthscales along columns of x
}

# Returns for each input of an additive factor the positions of its columns in leaf$inputs. An R factor is one input.
additive_inputs <- function(leaf) {
  groups <- if (is.null(leaf$groups)) seq_along(leaf$inputs) else leaf$groups
  unname(split(seq_along(leaf$inputs), factor(groups, unique(groups))))
}

# Returns the kernel with each additive factor replaced by its terms: list(leaves, terms, M, weights). M times the logs
# of the kernel's parameters (rows of `table`) and of the term weights gives the logs of the parameters in C. For
# each additive factor, `weights` has the rows of `table` with share and pairs (0: none), and the number of inputs.
expand_additive <- function(parts, table) {
  place <- function(leaf, what) match(TRUE, table$leaf == leaf & table$what == what, nomatch = 0L)
  n <- nrow(table)
  leaves <- list()
  weights <- matrix(0, 0L, 3L)
  pieces <- lapply(seq_along(parts$leaves), function(l) {
    leaf <- parts$leaves[[l]]
    before <- length(leaves)
    if (!is_additive(leaf)) {
      from <- which(table$leaf == l)
      if (has_shared(leaf)) from <- c(from[leaf$shared], from[-seq_len(max(leaf$shared))])
      leaves[[before + 1L]] <<- c(leaf, list(from = from, ratio = 0L))
      return(list(list(leaves = before + 1L, weight = integer())))
    }
    inputs <- additive_inputs(leaf)
    G <- length(inputs)
    one <- function(profile, at, ratio) { # makes a factor of leaf$inputs[at]
      own <- if (isTRUE(leaf$isotropic)) 1L else if (is.null(leaf$shared)) at else unname(leaf$shared)[at]
      list(profile = profile, inputs = leaf$inputs[at], number = leaf$number[at], isotropic = leaf$isotropic,
           of = unique(leaf$groups[at]), from = place(l, "lengthscale") - 1L + own,
           ratio = ratio * place(l, "additive.ratio"))
    }
    leaves <<- c(leaves, list(one(leaf$base, seq_along(leaf$inputs), 0)),
                 lapply(inputs, one, profile = "se", ratio = 1))
    weights <<- rbind(weights, c(share = place(l, "additive.share"), pairs = place(l, "additive.pairs"), inputs = G))
    # `part` selects a term's weight: 1 for the term of all inputs, 2 for terms of single inputs, 3 for terms of pairs.
    pairs <- if (leaf$profile == "pairwise" && G > 1L) utils::combn(G, 2L, simplify = FALSE)
    Map(function(own, part) list(leaves = before + own, weight = n + 3L * (nrow(weights) - 1L) + part),
        c(list(1L), as.list(seq_len(G) + 1L), lapply(pairs, `+`, 1L)), rep(1:3, c(1L, G, length(pairs))))
  })
  product <- function(a, b) {
    unlist(lapply(a, function(one) lapply(b, function(two) Map(c, one, two))), recursive = FALSE)
  }
  terms <- rows <- list()
  met <- integer()
  for (t in seq_along(parts$terms)) {
    for (term in Reduce(product, pieces[parts$terms[[t]]$leaves])) {
      terms <- c(terms, list(term$leaves))
      for (l in setdiff(term$leaves, met)) {
        leaf <- leaves[[l]]
        rows <- c(rows, lapply(leaf$from, function(at) if (leaf$ratio) c(at, -leaf$ratio) else at))
      }
      met <- c(met, term$leaves)
      rows <- c(rows, list(c(which(table$term == t & table$leaf == 0L), term$weight)))
    }
  }
  M <- matrix(0, length(rows), n + 3L * nrow(weights))
  M[cbind(rep(seq_along(rows), lengths(rows)), abs(unlist(rows)))] <- sign(unlist(rows))
  list(leaves = leaves, terms = terms, M = M, weights = weights)
}

# ---- rotated and warped inputs --------------------------------------------------------------------------------------

# The factors of a kernel may be functions of rotated or warped inputs, which C code computes from x. Rotated inputs are
# z = x B. leaf$rotation, the same in all leaves, is list(inputs, by): the numbers of the rotated columns of x, and B.

rotation_of <- function(kernel) shared_by_leaves(kernel, "rotation", "rotated")

# Returns the rotation or warp (`what`) of the kernel's factors, or NULL if there is none. Stops if some factors read
# rotated or warped inputs and others read the same inputs unchanged. In the error, `word` is "rotated" or "warped".
shared_by_leaves <- function(kernel, what, word) {
  if (!is.null(kernel$engine)) kernel <- kernel$kernel
  leaves <- as_sum(kernel)$leaves
  found <- Find(Negate(is.null), lapply(leaves, `[[`, what))
  if (is.null(found)) return(NULL)
  same <- vapply(leaves, function(leaf) identical(leaf[[what]], found) || !any(leaf$inputs %in% found$inputs), NA)
  refuse_if(!all(same), "kernel", sprintf("one with %s inputs and another factor of the same inputs", word),
            sprintf("one whose factors all read %s inputs", word), hint = "Leave out one of the kernels.")
  found
}

# Returns x with rotated or warped columns, as the factors of the kernel read them.
rotated <- function(kernel, x) {
  rotation <- rotation_of(kernel)
  if (!is.null(rotation)) x[, rotation$inputs] <- x[, rotation$inputs, drop = FALSE] %*% rotation$by
  warp <- warp_of(kernel)
  for (k in seq_along(warp$inputs)) x[, warp$inputs[k]] <- warp_at(warp, k, x[, warp$inputs[k]])$value
  x
}

# Returns the matrix B of a rotation for the given columns of x: the derivatives of the inputs that a factor reads
# (columns) by those of x (rows). Columns that are not rotated, all if `rotation` is NULL, have 1 on the diagonal.
matrix_of_rotation <- function(rotation, columns = seq_len(max(rotation$inputs))) {
  by <- diag(1, length(columns))
  at <- match(rotation$inputs, columns)
  by[at, at] <- rotation$by
  by
}

# Warped inputs are z_j = w_j(x_j). leaf$warp is list(inputs, at, to, ...). `at` and `to` have a column for each of
# these inputs: warp_knots increasing knots, and w_j at the knots. Between and beyond knots w_j is linear.

warp_of <- function(kernel) shared_by_leaves(kernel, "warp", "warped")

# Returns list(value, slope) for the k-th warped input: its warp at the values x, and the slope (at knots, on the left).
warp_at <- function(warp, k, x) {
  at <- warp$at[, k]
  i <- findInterval(x, at, all.inside = TRUE, left.open = TRUE)
  slope <- (diff(warp$to[, k]) / diff(at))[i]
  list(value = warp$to[i, k] + (x - at[i]) * slope, slope = slope)
}
