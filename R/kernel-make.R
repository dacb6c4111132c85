#' Covariance functions
#'
#' Kernels of one factor, for the argument `kernel` of [pfdtc()]. Use `+`, `*` and a number times a kernel to combine
#' them, see [kernel_algebra]. With \eqn{r^2 = \sum_j (x_j - z_j)^2 / l_j^2}{r2 = sum_j ((x_j - z_j) / l_j)^2},
#' \tabular{ll}{
#' `kernel_se()` \tab variance exp(-r2 / 2) \cr
#' `kernel_matern()` \tab variance exp(-r) (`nu = 1/2`), (1 + a) exp(-a), a = sqrt(3) r (`3/2`),
#'   (1 + a + a^2 / 3) exp(-a), a = sqrt(5) r (`5/2`) \cr
#' `kernel_rq()` \tab variance (1 + r2 / (2 alpha))^-alpha \cr
#' `kernel_periodic()` \tab variance exp(-2 sum_j sin^2(pi (x_j - z_j) / period) / lengthscale^2) \cr
#' `kernel_linear()` \tab variance sum_j x_j z_j: a line through 0 \cr
#' `kernel_polynomial()` \tab variance (sum_j x_j z_j + offset)^degree \cr
#' `kernel_constant()` \tab variance: an unknown level \cr
#' `kernel_white()` \tab variance if x and z are equal in all `inputs`, else 0 \cr
#' `kernel_categorical()` \tab variance times the correlation of two levels of a factor \cr
#' `kernel_additive()` \tab a kernel of all inputs, plus one of each input by itself, see Details
#' }
#'
#' @usage
#' kernel_se(lengthscale = NULL, variance = NULL, inputs = NULL, isotropic = FALSE)
#' kernel_matern(nu = 5/2, lengthscale = NULL, variance = NULL, inputs = NULL,
#'   isotropic = FALSE)
#' kernel_rq(alpha = NULL, lengthscale = NULL, variance = NULL, inputs = NULL,
#'   isotropic = FALSE)
#' kernel_periodic(lengthscale = NULL, variance = NULL, period = NULL, inputs = NULL)
#' kernel_linear(variance = NULL, inputs = NULL)
#' kernel_polynomial(degree = 2, variance = NULL, offset = NULL, inputs = NULL)
#' kernel_constant(variance = NULL)
#' kernel_white(variance = NULL, inputs = NULL)
#' kernel_categorical(correlation = NULL, variance = NULL, inputs = NULL)
#' kernel_additive(kernel = kernel_matern(3/2), pairs = FALSE, share = NULL, ratio = NULL)
#'
#' @param lengthscale positive numbers in the units of the inputs, one for each input, or one for all. For
#'   `kernel_periodic()` one number without unit.
#' @param variance variance of the factor, in squared units of the response.
#' @param inputs the inputs that the kernel reads: a one-sided formula, names of variables or columns, or positions.
#'   Default: all inputs.
#' @param isotropic `TRUE`: one lengthscale for all inputs.
#' @param nu smoothness of the Matern kernel: 1/2, 3/2 or 5/2.
#' @param alpha,period,offset positive numbers; `period` has the units of the inputs and `offset` their square. A large
#'   `alpha` gives almost the squared exponential.
#' @param degree whole number from 1 to 10.
#' @param correlation `"exchangeable"` (default), `"ordered"` or `"full"`; a number between 0 and 1, where an
#'   exchangeable correlation starts; or a correlation matrix of the levels, which is not changed.
#' @param kernel `kernel_se()` or `kernel_matern()`: the part of all inputs, with all lengthscales and the variance.
#' @param pairs `TRUE`, or a number to start from: also a term for each pair of inputs.
#' @param share,ratio positive numbers: the variance of the terms of single inputs over that of all inputs together, and
#'   how many times longer the lengthscales are in the latter.
#' @return An object of class `pfdtc_kernel`: a list with elements `profile`, `label`, `inputs` and the parameters.
#' @details Parameters that are `NULL` are learned. A given value is where learning starts; to keep it, use
#'   `hyper = "fixed"` or `control = pfdtc_control(fix = )`. A given `period` is always kept.
#'
#'   The correlation of levels a and b is exp(-p) if it is `"exchangeable"`, with one parameter p. It is
#'   exp(-|s_a - s_b|) if it is `"ordered"`, with scores s that increase from level to level. `"full"` is any positive
#'   definite matrix; its parameters are angles of the Cholesky factor, of at most 20 levels.
#'
#'   `kernel_additive()` suits functions that are nearly sums of functions of one input. It is
#'   \eqn{(F + (s/G) \sum_j u_j + (2p/(G(G-1))) \sum_{i<j} u_i u_j) v / (1 + s + p)}{(F + (s/G) sum u_j + (2p/(G(G-1)))
#'   sum u_i u_j) v / (1 + s + p)} with `kernel` F, its variance v, share s, pairs p, and squared exponentials u_j of
#'   each of the G inputs with lengthscale l_j / ratio. A factor is one input.
#' @section Errors and invariants: class `pfdtc_error_input`, also if the data lack an input. `kernel_matrix(k, x)` is
#'   symmetric and positive semidefinite.
#' @seealso [kernel_algebra], [kernel_matrix()], [pfdtc()]
#' @aliases kernels
#' @examples
#' kernel_se(lengthscale = c(1, 10), variance = 2)
#' kernel_matern(nu = 3/2, inputs = ~ lat + long, isotropic = TRUE)
#' kernel_periodic(period = 12) * kernel_matern(3/2) + kernel_linear()
#' @export
kernel_se <- function(lengthscale = NULL, variance = NULL, inputs = NULL, isotropic = FALSE) {
  new_kernel("se", "squared exponential", lengthscale, variance, inputs, isotropic = isotropic)
}

#' @rdname kernel_se
#' @usage NULL
#' @export
kernel_matern <- function(nu = 5 / 2, lengthscale = NULL, variance = NULL, inputs = NULL, isotropic = FALSE) {
  nu <- check_positive(nu, "nu", 1L)
  known <- c(1, 3, 5) / 2
  i <- which(abs(known - nu) < 1e-8)
  if (!length(i)) abort_input("nu", describe(nu), "1/2, 3/2 or 5/2")
  new_kernel(c("matern12", "matern32", "matern52")[i], sprintf("Matern %d/2", c(1L, 3L, 5L)[i]), lengthscale,
             variance, inputs, isotropic = isotropic)
}

#' @rdname kernel_se
#' @usage NULL
#' @export
kernel_rq <- function(alpha = NULL, lengthscale = NULL, variance = NULL, inputs = NULL, isotropic = FALSE) {
  new_kernel("rq", "rational quadratic", lengthscale, variance, inputs, isotropic = isotropic,
             alpha = positive_or_null(alpha, "alpha"))
}

#' @rdname kernel_se
#' @usage NULL
#' @export
kernel_periodic <- function(lengthscale = NULL, variance = NULL, period = NULL, inputs = NULL) {
  new_kernel("periodic", "periodic", positive_or_null(lengthscale, "lengthscale"), variance, inputs,
             period = positive_or_null(period, "period"), held = if (!is.null(period)) "period")
}

#' @rdname kernel_se
#' @usage NULL
#' @export
kernel_linear <- function(variance = NULL, inputs = NULL) new_kernel("linear", "linear", NULL, variance, inputs)

#' @rdname kernel_se
#' @usage NULL
#' @export
kernel_polynomial <- function(degree = 2, variance = NULL, offset = NULL, inputs = NULL) {
  new_kernel("polynomial", sprintf("polynomial of degree %d", check_count(degree, "degree", max = 10)), NULL, variance,
             inputs, degree = check_count(degree, "degree", max = 10), offset = positive_or_null(offset, "offset"))
}

#' @rdname kernel_se
#' @usage NULL
#' @export
kernel_constant <- function(variance = NULL) new_kernel("constant", "constant", NULL, variance, NULL)

#' @rdname kernel_se
#' @usage NULL
#' @export
kernel_white <- function(variance = NULL, inputs = NULL) new_kernel("white", "white", NULL, variance, inputs)

#' @rdname kernel_se
#' @usage NULL
#' @export
kernel_categorical <- function(correlation = NULL, variance = NULL, inputs = NULL) {
  parameters <- given <- NULL
  if (is.null(correlation)) correlation <- "exchangeable"
  if (is.matrix(correlation)) {
    given <- check_correlation(correlation)
    correlation <- "given"
  } else if (is.numeric(correlation)) {
    correlation <- check_positive(correlation, "correlation", 1L)
    if (correlation >= 1) abort_input("correlation", describe(correlation), "a number between 0 and 1")
    parameters <- -log(correlation)
    correlation <- "exchangeable"
  }
  if (is.null(given)) correlation <- check_choice(correlation, c("exchangeable", "ordered", "full"), "correlation")
  new_kernel("categorical", sprintf("categorical (%s)", correlation), NULL, variance, inputs, correlation = correlation,
             parameters = parameters, given = given)
}

# Checks that R is symmetric, has a unit diagonal and no negative eigenvalue, up to rounding.
check_correlation <- function(R) {
  ok <- is.numeric(R) && nrow(R) == ncol(R) && nrow(R) > 1L && all(is.finite(R)) && max(abs(R - t(R))) < 1e-12 &&
    max(abs(diag(R) - 1)) < 1e-12
  if (!ok) abort_input("correlation", describe(R), "a symmetric matrix with a row a level and 1 on its diagonal")
  least <- min(eigen(R, symmetric = TRUE, only.values = TRUE)$values)
  if (least < -1e-10 * nrow(R)) {
    abort_input("correlation", sprintf("a matrix with the eigenvalue %.3g", least), "a positive semidefinite matrix")
  }
  R
}

positive_or_null <- function(x, argument) if (!is.null(x)) check_positive(x, argument, 1L)

# Makes a kernel of one factor. `...`: further elements; those that are NULL are left out.
new_kernel <- function(profile, label, lengthscale, variance, inputs, isotropic = FALSE, ...) {
  if (!is.null(lengthscale)) lengthscale <- check_positive(lengthscale, "lengthscale")
  if (check_flag(isotropic, "isotropic") && length(lengthscale) > 1L) {
    abort_input("lengthscale", sprintf("%d numbers", length(lengthscale)), "one number where `isotropic` is TRUE")
  }
  if (!is.null(variance)) variance <- check_positive(variance, "variance", 1L)
  more <- list(isotropic = if (isotropic) TRUE, ...)
  structure(c(list(profile = profile, label = label, lengthscale = lengthscale, variance = variance,
                   inputs = check_inputs(inputs)), more[!vapply(more, is.null, NA)]), class = "pfdtc_kernel")
}

check_inputs <- function(inputs) {
  if (inherits(inputs, "formula")) {
    if (length(inputs) != 2L) abort_input("inputs", describe(inputs), "a one-sided formula, such as ~ a + b")
    inputs <- attr(stats::terms(inputs), "term.labels")
  }
  if (!is.null(inputs) && !length(inputs)) {
    abort_input("inputs", describe(inputs), "names or positions of at least one column")
  }
  if (!is.null(inputs) && !is.character(inputs)) {
    if (!is.numeric(inputs)) abort_input("inputs", describe(inputs), "names or positions")
    for (i in inputs) check_count(i, "inputs")
    inputs <- as.integer(inputs)
  }
  if (anyNA(inputs)) abort_input("inputs", "NA", "names or positions of columns")
  if (anyDuplicated(inputs)) abort_input("inputs", describe(inputs), "names or positions, each once")
  inputs
}
#' @rdname kernel_algebra
#' @export
update.pfdtc_kernel <- function(object, ...) {
  new <- list(...)
  if (!length(new)) return(object)
  single <- has_one_factor(object)
  if (is.integer(object$inputs) && !is.null(object$columns)) { # the kernel of a fit
    names <- kernel_parameter_names(object)
    unknown <- setdiff(names(new), names)
    if (!length(unknown)) {
      at <- match(names(new), names)
      given <- vapply(names(new), function(n) check_positive(new[[n]], n, 1L), 0)
      return(as_kernel(set_values(object, replace(kernel_values(object), at, given))))
    }
    if (!single) abort_input(unknown[1L], "an unknown parameter", sprintf("among %s", list_quoted(names)))
  }
  if (!single) {
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

# ---- kernels with data -----------------------------------------------------------------------------------------------

# Kernels of these profiles keep the elements that they have in fits of 0.1.0.
kernels_of_before <- c("se", "matern12", "matern32", "matern52")

# Returns the kernel with inputs as positions among the columns of x and a lengthscale for each (NULL: not given).
# `variables`: list(name, columns, levels) for each variable of the data; a factor has several columns.
place_kernel <- function(kernel, x, argument = "kernel", variables = NULL) {
  if (is.function(kernel)) kernel <- kernel()
  if (!inherits(kernel, "pfdtc_kernel")) {
    abort_input(argument, describe(kernel), "a kernel, such as kernel_se() or kernel_matern()")
  }
  if (!ncol(x)) abort_input("x", "without columns", "of at least one column")
  if (has_one_factor(kernel)) {
    kernel <- place_leaf(kernel, x, argument, variables)
    if (kernel$profile %in% kernels_of_before) kernel["of"] <- NULL else kernel$columns <- colnames(x)
    return(kernel)
  }
  kernel$leaves <- lapply(kernel$leaves, place_leaf, x, argument, variables)
  kernel$label <- formula_of_kernel(kernel)
  with_columns(kernel, x)
}

# Gives a sum the columns that it reads.
with_columns <- function(kernel, x) {
  inputs <- sort(unique(unlist(lapply(kernel$leaves, `[[`, "inputs"))))
  kernel["inputs"] <- list(if (length(inputs)) inputs else 1L)
  kernel$columns <- colnames(x)
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
  if (is_additive(leaf) && is.null(leaf$groups)) leaf$groups <- column_groups(inputs, names, variables)
  if (is.null(leaf$shared) && is_stationary(leaf)) leaf$shared <- shared_lengthscales(inputs, names, variables)
  l <- leaf$lengthscale
  if (is.null(l) || shares_lengthscale(leaf)) return(leaf)
  n <- parameter_count(leaf, "lengthscale")
  if (length(l) == 1L) l <- rep(l, n)
  if (length(l) != n) {
    abort_input(argument, sprintf("a kernel with %d lengthscales", length(l)),
                sprintf("a kernel with one lengthscale%s", if (n > 1L) sprintf(", or one for each of its %d inputs", n)
                  else ""))
  }
  names(l) <- lengthscale_names(leaf, names)
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

# Returns the names of the variables that the columns belong to. A variable counts if all its columns are read.
column_owners <- function(inputs, names, variables) {
  for (v in variables) {
    if (length(v$columns) > 1L && all(v$columns %in% inputs)) {
      names[v$columns] <- v$name
    }
  }
  if (is.null(names)) inputs else unique(names[inputs])
}

# Gives a categorical factor its levels. Checks that its columns are the 0/1 columns of one factor.
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

# Returns a given correlation matrix in the order of the levels.
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

# Returns the kernel placed on the columns of x. Stops if it has a parameter without a value.
complete_kernel <- function(kernel, x, argument = "kernel") {
  kernel <- place_kernel(kernel, x, argument)
  compiled <- compile_kernel(kernel)
  lacking <- unique(compiled$table$what[is.na(compiled$engine$values)])
  if (length(lacking)) {
    abort_input(argument, sprintf("a kernel without %s", paste(parameter_word(lacking), collapse = " and ")),
                if (has_one_factor(kernel)) "a kernel with lengthscales and variance given" else
                  "a kernel with all its parameters given")
  }
  kernel
}

parameter_word <- function(what) ifelse(what == "parameters", "correlation", what)

#' Kernel matrix
#'
#' Returns the matrix of covariances between two sets of points.
#'
#' @param kernel a kernel with all parameters given, see [kernel_se()].
#' @param x numeric matrix, data frame or vector (one column) of inputs, a row for each point.
#' @param z a second set of points with the same columns. Default: `x`.
#' @return The matrix with elements \eqn{k(x_i, z_j)}, in squared units of the response.
#' @section Errors: class `pfdtc_error_input`, also for more than `getOption("pfdtc.max_memory", 2^32)` bytes.
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
