# The additive kernel (kernel_additive()) is one factor for users and for learning. The engine computes it as a sum of
# terms, whose parameters are tied. With lengthscales l, variance v, share s, ratio c and pairs p,
#
#   k = v (F(r) / S + s / (S G) sum_j u_j + 2 p / (S G (G - 1)) sum_{i < j} u_i u_j),   S = 1 + s + p,
#
# F is a kernel of all G inputs, and u_j the squared exponential of input j with the lengthscale l_j / c. The logs of
# the engine's parameters are M (log theta, log w): theta are the parameters of the kernel, and w the weights 1 / S,
# s / (S G) and 2 p / (S G (G - 1)) of its additive factors.

# A factor of a kernel may also share a lengthscale among some of its columns: those of sphere(), which have one, and
# the 0/1 columns of a factor with many levels. `leaf$shared` has the number of the lengthscale of each column, named by
# the inputs.

is_additive <- function(leaf) isTRUE(leaf$profile %in% c("additive", "pairwise"))

# Returns the name of the input of each column, if some input has several columns; NULL otherwise. The 0/1 columns of a
# factor are one input, and so are those of sphere().
column_groups <- function(inputs, names, variables) {
  groups <- if (is.null(names)) as.character(inputs) else names[inputs]
  for (v in variables) {
    if (!is.null(v$levels) || identical(v$kind, "sphere")) groups[inputs %in% v$columns] <- v$name
  }
  if (anyDuplicated(groups)) groups
}

# Returns `shared` for a factor over these columns, or NULL if each column has its own lengthscale. `given` has the
# lengthscales that the user gave for the columns.
shared_lengthscales <- function(inputs, names, variables, given = NULL) {
  variables <- Filter(function(v) any(inputs %in% v$columns), variables)
  factors <- vapply(variables, function(v) identical(v$kind, "factor"), NA) & length(given) != length(inputs)
  levels <- lengths(lapply(variables, `[[`, "columns"))
  many <- factors & (levels > most_lengthscales[["factor"]] | sum(levels[factors]) > most_lengthscales[["all"]])
  one <- variables[many | vapply(variables, function(v) identical(v$kind, "sphere"), NA)]
  if (length(one)) shared_by(column_groups(inputs, names, one))
}

shared_by <- function(groups) stats::setNames(match(groups, unique(groups)), groups)

shares_lengthscale <- function(leaf) isTRUE(leaf$isotropic) || identical(leaf$profile, "periodic")

is_group <- function(leaf) identical(leaf$profile, "group")

# Returns the number of rows of a table of correlations: the levels of a factor, or the effects of a level of a group.
table_rows <- function(leaf) length(leaf$inputs) - if (is_group(leaf)) 1L - leaf$intercept else 0L

has_shared <- function(leaf) !is.null(leaf$shared) && !shares_lengthscale(leaf)

# Returns the names of the lengthscales of a factor, those of its columns or inputs.
lengthscale_names <- function(leaf, columns) {
  if (is.null(leaf$shared)) columns[leaf$inputs] else unique(names(leaf$shared))
}

# Returns a lengthscale for each column of a factor, or one for all.
column_lengthscales <- function(leaf) if (is.null(leaf$shared)) leaf$lengthscale else leaf$lengthscale[leaf$shared]

# Returns the groups of columns of an additive factor: the 0/1 columns of a factor are one input.
additive_inputs <- function(leaf) {
  groups <- if (is.null(leaf$groups)) seq_along(leaf$inputs) else leaf$groups
  unname(split(seq_along(leaf$inputs), factor(groups, unique(groups))))
}

# Returns the sum of products of an additive factor: list(leaves, terms, part), where part[t] is 1 for the kernel of all
# inputs, 2 for one input, 3 for a pair, and `at` are the places of each leaf's lengthscales among those of the factor.
additive_terms <- function(leaf) {
  inputs <- additive_inputs(leaf)
  G <- length(inputs)
  one <- function(profile, at, ratio) {
    list(profile = profile, inputs = leaf$inputs[at], number = leaf$number[at], isotropic = leaf$isotropic,
         of = unique(leaf$groups[at]),
         at = if (isTRUE(leaf$isotropic)) 1L else if (is.null(leaf$shared)) at else unname(leaf$shared)[at],
         ratio = ratio)
  }
  pairs <- if (leaf$profile == "pairwise" && G > 1L) utils::combn(G, 2L, simplify = FALSE)
  list(leaves = c(list(one(leaf$base, seq_along(leaf$inputs), 0)), lapply(inputs, function(at) one("se", at, 1))),
       terms = c(list(1L), as.list(seq_len(G) + 1L), lapply(pairs, `+`, 1L)),
       part = rep(1:3, c(1L, G, length(pairs))), inputs = G)
}

# Returns the kernel with each additive factor replaced by its terms, and M: list(leaves, terms, M, weights). `table`
# has the parameters of the kernel. `weights` has for each additive factor the places of share and pairs in theta (0:
# none) and the number of inputs.
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
    own <- additive_terms(leaf)
    leaves <<- c(leaves, lapply(own$leaves, function(one) {
      c(one[c("profile", "inputs", "number", "isotropic", "of")],
        list(from = place(l, "lengthscale") - 1L + one$at, ratio = one$ratio * place(l, "additive.ratio")))
    }))
    weights <<- rbind(weights, c(share = place(l, "additive.share"), pairs = place(l, "additive.pairs"),
                                 inputs = own$inputs))
    Map(function(own, part) list(leaves = before + own, weight = n + 3L * (nrow(weights) - 1L) + part), own$terms,
        own$part)
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
  at <- cbind(rep(seq_along(rows), lengths(rows)), abs(unlist(rows)))
  M[at] <- sign(unlist(rows))
  list(leaves = leaves, terms = terms, M = M, weights = weights)
}

# Returns the kernel as the engine reads it, and `slopes`, those of the logs of its parameters in log theta. No caller
# depends on parameters that have no value yet.
engine_kernel <- function(kernel) {
  engine <- kernel$engine
  tie <- engine$tie
  values <- replace(engine$values, is.na(engine$values), 1)
  n <- length(values)
  logs <- log(values)
  slopes <- tie$M[, seq_len(n), drop = FALSE]
  of_weights <- NULL
  for (i in seq_len(nrow(tie$weights))) {
    at <- tie$weights[i, 1:2]
    G <- tie$weights[[i, 3L]]
    odds <- c(0, values)[at + 1L]
    S <- 1 + sum(odds)
    logs <- c(logs, log(c(1, odds / c(G, max(G * (G - 1) / 2, 1)))) - log(S))
    known <- which(at > 0L)
    rows <- matrix(0, 3L, n)
    rows[, at[known]] <- rbind(0, diag(2L))[, known] - rep(odds[known] / S, each = 3L)
    of_weights <- rbind(of_weights, rows)
  }
  if (!is.null(of_weights)) slopes <- slopes + tie$M[, -seq_len(n)] %*% of_weights
  logs[is.infinite(logs)] <- 0 # the weight of pairs is 0 without pairs
  list(factors = engine$factors, terms = engine$terms, values = exp(drop(tie$M %*% logs)), slopes = slopes)
}
