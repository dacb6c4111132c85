# A kernel meets data: what it reads becomes columns, and every factor knows how many parameters it has.

# They keep the shape that they have in fits of 0.1.0.
kernels_of_before <- c("se", "matern12", "matern32", "matern52")

# The kernel over the columns of x: inputs as positions, a lengthscale each (NULL where there is none yet). `variables`:
# list(name, columns, levels) of the data's variables, where a factor has several columns.
place_kernel <- function(kernel, x, argument = "kernel", variables = NULL) {
  if (is.function(kernel)) kernel <- kernel()
  if (!inherits(kernel, "pfdtc_kernel")) {
    abort_input(argument, describe(kernel), "a kernel, such as kernel_se() or kernel_matern()")
  }
  if (!ncol(x)) abort_input("x", "without columns", "of at least one column")
  if (!is_composite(kernel)) {
    kernel <- place_leaf(kernel, x, argument, variables)
    if (kernel$profile %in% kernels_of_before) kernel["of"] <- NULL else kernel$columns <- colnames(x)
    return(kernel)
  }
  kernel$leaves <- lapply(kernel$leaves, place_leaf, x, argument, variables)
  inputs <- sort(unique(unlist(lapply(kernel$leaves, `[[`, "inputs"))))
  kernel["inputs"] <- list(if (length(inputs)) inputs else 1L)
  kernel$columns <- colnames(x)
  kernel$label <- formula_of_kernel(kernel)
  kernel
}

place_leaf <- function(leaf, x, argument, variables) {
  names <- colnames(x)
  if (leaf$profile == "constant") {
    leaf$inputs <- integer()
    return(leaf)
  }
  of <- leaf$inputs
  inputs <- leaf_columns(leaf, x, argument, variables)
  leaf$inputs <- inputs
  if (is.null(leaf$of)) leaf$of <- if (is.character(of)) of else column_owners(inputs, names, variables)
  if (leaf$profile == "categorical") leaf <- place_levels(leaf, x, argument, variables)
  l <- leaf$lengthscale
  if (is.null(l) || shares_lengthscale(leaf)) return(leaf)
  if (length(l) == 1L) l <- rep(l, length(inputs))
  if (length(l) != length(inputs)) {
    abort_input(argument, sprintf("a kernel with %d lengthscales", length(l)),
                sprintf("a kernel with one lengthscale%s", if (length(inputs) > 1L)
                  sprintf(", or one for each of its %d inputs", length(inputs)) else ""))
  }
  names(l) <- names[inputs]
  leaf$lengthscale <- l
  leaf
}

leaf_columns <- function(leaf, x, argument, variables) {
  inputs <- leaf$inputs
  names <- colnames(x)
  if (is.null(inputs)) {
    if (leaf$profile != "categorical") return(seq_len(ncol(x)))
    factors <- Filter(function(v) !is.null(v$levels), variables)
    if (length(factors) == 1L) return(factors[[1L]]$columns)
    abort_input(argument, "a categorical kernel without inputs", "one that says of which factor it is",
                hint = "As in kernel_categorical(inputs = ~ site).")
  }
  if (is.character(inputs)) {
    known <- vapply(variables, `[[`, "", "name")
    columns <- lapply(inputs, function(name) {
      if (name %in% known) variables[[match(name, known)]]$columns else match(name, names)
    })
    lost <- vapply(columns, anyNA, NA)
    if (any(lost)) {
      abort_input(argument, sprintf("a kernel over `%s`", inputs[lost][1L]),
                  sprintf("a kernel over columns of the inputs (%s)", list_quoted(unique(c(known, names)))))
    }
    return(unique(unlist(columns)))
  }
  if (max(inputs) > ncol(x)) {
    abort_input(argument, sprintf("a kernel over column %d", max(inputs)),
                sprintf("a kernel over the %d columns of the inputs", ncol(x)))
  }
  inputs
}

# Names of what columns belong to, as far as they are whole variables.
column_owners <- function(inputs, names, variables) {
  for (v in variables) {
    if (length(v$columns) > 1L && all(v$columns %in% inputs)) {
      names[v$columns] <- v$name
    }
  }
  if (is.null(names)) inputs else unique(names[inputs])
}

# The columns of a categorical kernel are the 0/1 columns of one factor.
place_levels <- function(leaf, x, argument, variables) {
  u <- x[, leaf$inputs, drop = FALSE]
  coded <- all(u == 0 | u == 1) && all(rowSums(u) == 1)
  if (length(leaf$inputs) < 2L || !coded) {
    abort_input(argument, sprintf("a categorical kernel over %s", list_quoted(leaf$of)),
                "one over a factor, or over columns of which one is 1 in each row and the others 0",
                hint = "A number or a logical is made one by factor().")
  }
  owner <- Filter(function(v) setequal(v$columns, leaf$inputs), variables)
  leaf$levels <- if (length(owner)) owner[[1L]]$levels else
    if (is.null(colnames(x))) leaf$inputs else colnames(x)[leaf$inputs]
  if (leaf$correlation == "given") leaf$given <- correlation_of_levels(leaf$given, leaf$levels, argument)
  n <- categorical_size(leaf)
  if (leaf$correlation == "full" && length(leaf$inputs) > 20L) {
    abort_input(argument, sprintf("a full correlation matrix of %d levels", length(leaf$inputs)),
                "one of at most 20 levels", hint = "\"exchangeable\" has one parameter, however many levels there are.")
  }
  if (!is.null(leaf$parameters) && length(leaf$parameters) == 1L) leaf$parameters <- rep(leaf$parameters, n)
  if (!is.null(leaf$parameters) && length(leaf$parameters) != n) {
    abort_input(argument, sprintf("a categorical kernel with %d parameters", length(leaf$parameters)),
                sprintf("one with %d", n))
  }
  leaf
}

# A given correlation in the order of the levels.
correlation_of_levels <- function(R, levels, argument) {
  if (nrow(R) != length(levels)) {
    abort_input(argument, sprintf("a correlation matrix of %d levels", nrow(R)),
                sprintf("one of the %d levels of the factor", length(levels)))
  }
  if (is.null(rownames(R)) && is.null(colnames(R))) return(R)
  if (!setequal(rownames(R), levels) || !setequal(colnames(R), levels)) {
    abort_input(argument, sprintf("a correlation matrix of levels %s", list_quoted(rownames(R), "\"")),
                sprintf("one of the factor's levels, %s", list_quoted(levels, "\"")))
  }
  R[match(levels, rownames(R)), match(levels, colnames(R))]
}

# The same, ready to be evaluated: nothing left to learn.
complete_kernel <- function(kernel, x, argument = "kernel") {
  kernel <- place_kernel(kernel, x, argument)
  table <- kernel_parameters(kernel)
  lacking <- unique(table$what[is.na(kernel_values(kernel, table))])
  if (length(lacking)) {
    abort_input(argument, sprintf("a kernel without %s", paste(parameter_word(lacking), collapse = " and ")),
                if (is_composite(kernel)) "a kernel with all its parameters given" else
                  "a kernel with lengthscales and variance given")
  }
  kernel
}

parameter_word <- function(what) ifelse(what == "parameters", "correlation", what)

#' Kernel matrix
#'
#' @param kernel a kernel with lengthscales and variance given, see [kernel_se()].
#' @param x numeric matrix (or data frame, or vector: one column) of inputs, a row a point.
#' @param z a second set of points with the same columns.
#' @return The matrix with elements \eqn{k(x_i, z_j)}, `nrow(x)` rows and `nrow(z)` columns, in squared units of the
#'   response. Squared distances are sums of squared differences: equal rows have distance exactly 0.
#' @section Errors: class `pfdtc_error_input` for an incomplete kernel, different numbers of columns, missing or
#'   infinite values, or a matrix above `getOption("pfdtc.max_memory", 2^32)` bytes.
#' @examples
#' kernel_matrix(kernel_matern(5/2, lengthscale = 2, variance = 1), cars$speed[1:3], 10)
#' @export
kernel_matrix <- function(kernel, x, z = x) {
  x <- check_matrix(x, "x")
  z <- check_same_columns(check_matrix(z, "z"), x, "z")
  kernel <- complete_kernel(kernel, x)
  check_memory(8 * nrow(x) * as.double(nrow(z)), "the kernel matrix")
  K <- native_kernel_matrix(kernel, x, z)
  if (!is.null(rownames(x)) || !is.null(rownames(z))) dimnames(K) <- list(rownames(x), rownames(z))
  K
}

check_same_columns <- function(z, x, argument, other = "x") {
  if (ncol(z) != ncol(x)) {
    abort_input(argument, sprintf("%d", ncol(z)), sprintf("a matrix with the %d columns of `%s`", ncol(x), other))
  }
  z
}
