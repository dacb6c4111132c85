#' Sums and products of kernels
#'
#' `k1 + k2` says that the function is a sum of two independent ones, `k1 * k2` that rows are alike where both kernels
#' call them so, and `0.5 * k` multiplies the variance.
#'
#' Whatever is written is kept as a sum of products: `(a + b) * c` is `a * c + b * c` with one factor `c`, whose
#' parameters both terms share. The variances of a product multiply, so that no data could tell them apart: a term has
#' one, learned where none of its factors had one given. A constant in a product is part of that variance.
#'
#' Parameters go by the factor and what it reads, in [coef()] and in `control = pfdtc_control(fix = )`:
#' `se(lat,long).lengthscale.lat`, `periodic(day)*matern32(year).variance`.
#'
#' @param e1,e2 kernels, or one of them a positive number.
#' @param object a kernel.
#' @param ... for `update()`: parameters by their names in `coef()`, without `noise`, of a kernel that has met data (as
#'   `fit$kernel` has); else, for a kernel of one factor, arguments of its constructor, as in
#'   `update(kernel_se(), lengthscale = 2)`.
#' @return A kernel, of class `pfdtc_kernel`. One of several factors is a list of `leaves`, its factors, and `terms`,
#'   each with a `variance` and the positions of its factors.
#' @section Errors: class `pfdtc_error_input` where the other side is neither a kernel nor a positive number, where two
#'   terms could not be told apart (two constants, say), or a parameter to update is unknown.
#' @section Invariants: `kernel_matrix(a + b, x)` is the sum of both matrices and `kernel_matrix(a * b, x)` their
#'   product entry by entry.
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, section 4.2.4; Duvenaud (2014),
#'   *Automatic model construction with Gaussian processes*, PhD thesis.
#' @seealso [kernel_se()] for the factors.
#' @name kernel_algebra
#' @examples
#' k <- kernel_se(lengthscale = 2) + 0.5 * kernel_periodic(period = 7) * kernel_matern()
#' k
#' co2_like <- kernel_se() + kernel_periodic(period = 1) * kernel_se()
#' fit <- gp_exact(dist ~ speed, cars, kernel = kernel_linear(inputs = ~ speed) + kernel_constant())
#' coef(fit)
#' @export
Ops.pfdtc_kernel <- function(e1, e2) {
  if (missing(e2) || !.Generic %in% c("+", "*")) {
    abort_input("kernel", sprintf("`%s`", .Generic), "used with + and * alone",
                message = sprintf("`%s` does not make a kernel of kernels: + and * do.", .Generic))
  }
  numbers <- !vapply(list(e1, e2), inherits, NA, "pfdtc_kernel")
  if (!any(numbers)) return(if (.Generic == "+") add_kernels(e1, e2) else multiply_kernels(e1, e2))
  number <- list(e1, e2)[[which(numbers)]]
  kernel <- list(e1, e2)[[which(!numbers)]]
  if (.Generic == "+") {
    abort_input("kernel", describe(number), "a kernel",
                hint = "kernel_constant(<variance>) is one that is the same everywhere.")
  }
  scale_kernel(with_variance(kernel), check_positive(number, "number", 1L))
}

# Where there is none yet a number times it is where to start.
with_variance <- function(kernel) {
  if (!is_composite(kernel)) {
    if (is.null(kernel$variance)) kernel$variance <- 1
    return(kernel)
  }
  kernel$terms <- lapply(kernel$terms, function(t) if (is.null(t$variance)) c(t, variance = 1) else t)
  kernel
}

new_composite <- function(leaves, terms) {
  used <- sort(unique(unlist(lapply(terms, `[[`, "leaves"))))
  terms <- lapply(terms, function(t) list(variance = t$variance, leaves = match(t$leaves, used)))
  leaves <- lapply(leaves[used], function(l) {
    l["variance"] <- list(NULL)
    l
  })
  if (length(terms) == 1L && length(leaves) == 1L) {
    leaves[[1L]]["variance"] <- list(terms[[1L]]$variance)
    return(leaves[[1L]])
  }
  kernel <- structure(list(profile = "composite", leaves = leaves, terms = terms), class = "pfdtc_kernel")
  kernel$label <- formula_of_kernel(kernel)
  check_told_apart(kernel)
  kernel
}

add_kernels <- function(a, b) {
  leaves <- c(kernel_leaves(a), kernel_leaves(b))
  moved <- lapply(kernel_terms(b), function(t) {
    t$leaves <- t$leaves + length(kernel_leaves(a))
    t
  })
  new_composite(leaves, c(kernel_terms(a), moved))
}

multiply_kernels <- function(a, b) {
  leaves <- c(kernel_leaves(a), kernel_leaves(b))
  constant <- vapply(leaves, function(l) l$profile == "constant", NA)
  pairs <- expand.grid(a = seq_along(kernel_terms(a)), b = seq_along(kernel_terms(b)))
  new_composite(leaves, lapply(seq_len(nrow(pairs)), function(i) {
    ta <- kernel_terms(a)[[pairs$a[i]]]
    tb <- kernel_terms(b)[[pairs$b[i]]]
    given <- c(ta$variance, tb$variance)
    factors <- c(ta$leaves, tb$leaves + length(kernel_leaves(a)))
    if (!all(constant[factors])) factors <- factors[!constant[factors]] # a number: part of the variance
    list(variance = if (length(given)) prod(given), leaves = unique(factors))
  }))
}

# Terms of factors without parameters of their own, twice the same.
check_told_apart <- function(kernel) {
  keys <- vapply(kernel$terms, function(t) {
    leaves <- kernel$leaves[t$leaves]
    plain <- all(vapply(leaves, function(l) !length(leaf_parameters(l)) || identical(l$correlation, "given"), NA))
    if (plain) toString(sort(vapply(leaves, leaf_name, ""))) else NA_character_
  }, "")
  twice <- keys[duplicated(keys) & !is.na(keys)]
  if (length(twice)) {
    abort_input("kernel", sprintf("a sum with %s twice", twice[1L]), "a sum of terms that data can tell apart",
                hint = "Only the sum of the two variances would show.")
  }
}

# "se(lat,long)": of what a factor reads, once it is known.
leaf_name <- function(leaf) {
  of <- if (!is.null(leaf$of)) leaf$of else leaf$inputs
  word <- if (is.null(leaf$profile)) "kernel" else leaf$profile # one that is still to be chosen
  if (identical(word, "polynomial") && leaf$degree != 2L) word <- paste0(word, leaf$degree)
  if (length(of)) sprintf("%s(%s)", word, paste(of, collapse = ",")) else word
}

# Names of the factors, those that would be the same numbered.
leaf_names <- function(kernel) make.unique(vapply(kernel_leaves(kernel), leaf_name, ""), sep = "_")

term_names <- function(kernel) {
  leaves <- leaf_names(kernel)
  make.unique(vapply(kernel_terms(kernel), function(t) paste(leaves[t$leaves], collapse = "*"), ""), sep = "_")
}

formula_of_kernel <- function(kernel) paste(gsub("*", " * ", term_names(kernel), fixed = TRUE), collapse = " + ")

# Of factor parameters, as users know them.
parameter_words <- c(lengthscale = "lengthscale", alpha = "alpha", period = "period", offset = "offset",
                     parameters = "parameters")

#' @export
print.pfdtc_kernel <- function(x, ...) {
  if (is_composite(x)) return(print_composite(x))
  show <- function(v) if (is.null(v)) "to be learned" else paste(format(v, digits = 4), collapse = ", ")
  cat(x$label, "kernel\n")
  for (what in factor_parameters[[x$profile]]) {
    cat(sprintf("  %-12s %s\n", paste0(parameter_words[[what]], ":"), show(x[[what]])))
  }
  cat("  variance:   ", show(x$variance), "\n")
  if (!is.null(x$inputs)) cat("  inputs:     ", paste(x$inputs, collapse = ", "), "\n")
  invisible(x)
}

# As it was written, then each term with its parameters.
print_composite <- function(x) {
  show <- function(v) if (is.null(v)) "to be learned" else paste(format(v, digits = 4), collapse = ", ")
  cat("kernel:", formula_of_kernel(x), "\n")
  leaves <- leaf_names(x)
  last <- length(x$terms)
  met <- integer()
  for (t in seq_along(x$terms)) {
    term <- x$terms[[t]]
    cat(sprintf("%s variance %s\n", if (t < last) "|-" else "`-", show(term$variance)))
    for (l in term$leaves) {
      leaf <- x$leaves[[l]]
      parts <- vapply(factor_parameters[[leaf$profile]], function(what) {
        sprintf("%s %s", parameter_words[[what]], show(leaf[[what]]))
      }, "")
      if (l %in% met) parts <- "as above"
      cat(sprintf("%s    %s%s\n", if (t < last) "|" else " ", leaves[l],
                  if (length(parts)) paste(":", paste(parts, collapse = "; ")) else ""))
    }
    met <- c(met, term$leaves)
  }
  invisible(x)
}

#' @rdname kernel_algebra
#' @export
update.pfdtc_kernel <- function(object, ...) {
  new <- list(...)
  if (!length(new)) return(object)
  placed <- is.integer(object$inputs) && !is.null(object$columns)
  if (placed) {
    names <- kernel_parameter_names(object)
    unknown <- setdiff(names(new), names)
    if (!length(unknown)) {
      values <- kernel_values(object)
      values[match(names(new), names)] <- vapply(names(new), function(n) check_positive(new[[n]], n, 1L), 0)
      return(kernel_with(object, values))
    }
    if (is_composite(object)) abort_input(unknown[1L], "an unknown parameter", sprintf("among %s", list_quoted(names)))
  }
  if (is_composite(object)) {
    abort_input("object", "a kernel that has not met data", "a kernel of one factor, or that of a fit",
                hint = "Parameters of several factors have names once the inputs are known: update(fit$kernel, ...).")
  }
  settings <- setdiff(names(object), c("profile", "label", "held", "of", "levels", "columns"))
  unknown <- setdiff(names(new), c("lengthscale", "variance", "inputs", factor_parameters[[object$profile]]))
  if (length(unknown)) abort_input(unknown[1L], "an unknown parameter", sprintf("among %s", list_quoted(settings)))
  for (what in setdiff(names(new), "inputs")) object[what] <- list(positive_or_more(new[[what]], what))
  if ("inputs" %in% names(new)) object["inputs"] <- list(check_inputs(new$inputs))
  object
}

positive_or_more <- function(x, what) {
  if (!is.null(x)) check_positive(x, what, if (!what %in% c("lengthscale", "parameters")) 1L)
}

# The names of coef(), without the noise: those of one factor without its name.
kernel_parameter_names <- function(kernel, columns = kernel$columns, table = kernel_parameters(kernel)) {
  leaves <- kernel_leaves(kernel)
  single <- !is_composite(kernel)
  factors <- leaf_names(kernel)
  terms <- term_names(kernel)
  one <- function(i) {
    if (table$what[i] == "variance") return(if (single) "variance" else paste0(terms[table$term[i]], ".variance"))
    leaf <- leaves[[table$leaf[i]]]
    own <- paste0(table$what[i], parameter_suffix(leaf, table$what[i], table$at[i], columns))
    own <- sub("^parameters[.]", "", own)
    if (single) own else paste0(factors[table$leaf[i]], ".", own)
  }
  vapply(seq_len(nrow(table)), one, "")
}

parameter_suffix <- function(leaf, what, at, columns) {
  if (what == "lengthscale") return(if (shares_lengthscale(leaf)) "" else paste0(".", columns[leaf$inputs[at]]))
  if (what != "parameters") return("")
  levels <- leaf$levels
  n <- length(levels)
  switch(leaf$correlation, exchangeable = ".distance", ordered = sprintf(".gap.%s.%s", levels[at], levels[at + 1L]),
         full = {
           pair <- which(lower.tri(diag(n)), arr.ind = TRUE)[at, ]
           sprintf(".angle.%s.%s", levels[pair[[1L]]], levels[pair[[2L]]])
         })
}
