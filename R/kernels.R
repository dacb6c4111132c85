#' Covariance functions
#'
#' Stationary kernels with one lengthscale per input (automatic relevance determination),
#' \deqn{k(x, z) = \sigma_f^2 \, g(r^2), \qquad r^2 = \sum_j (x_j - z_j)^2 / l_j^2,}{
#' k(x, z) = variance g(r2), r2 = sum_j ((x_j - z_j) / l_j)^2,}
#' with \eqn{g = \exp(-r^2/2)} for the squared exponential and, for Matern kernels,
#' \eqn{\exp(-r)} (`nu = 1/2`), \eqn{(1 + a)\exp(-a)}, \eqn{a = \sqrt{3} r} (`nu = 3/2`) and
#' \eqn{(1 + a + a^2/3)\exp(-a)}, \eqn{a = \sqrt{5} r} (`nu = 5/2`).
#'
#' @param lengthscale positive numbers, one for each input the kernel reads, in the units of the inputs; a single
#'   number is used for all of them. `NULL`: to be learned.
#' @param variance signal variance, in squared units of the response. `NULL`: to be learned.
#' @param inputs names or positions of the columns that the kernel reads; others have no effect. `NULL`: all of them.
#' @param nu smoothness of the Matern kernel: 1/2, 3/2 or 5/2.
#' @return An object of class `pfdtc_kernel`: a list with elements `profile`, `label`, `lengthscale`, `variance` and
#'   `inputs`.
#' @section Errors: class `pfdtc_error_input` where a lengthscale or the variance is not positive, or `nu` is not one of
#'   the three.
#' @section Invariants: `kernel_matrix(k, x)` is symmetric and positive semidefinite, with the variance on its diagonal.
#' @source Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, section 4.2.
#' @seealso [kernel_matrix()], [pfdtc()]
#' @examples
#' kernel_se(lengthscale = c(1, 10), variance = 2)
#' kernel_matern(nu = 3/2)
#' kernel_matrix(kernel_se(lengthscale = 1, variance = 1), c(0, 1, 2))
#' @export
kernel_se <- function(lengthscale = NULL, variance = NULL, inputs = NULL) {
  new_kernel("se", "squared exponential", lengthscale, variance, inputs)
}

#' @rdname kernel_se
#' @export
kernel_matern <- function(nu = 5 / 2, lengthscale = NULL, variance = NULL, inputs = NULL) {
  nu <- check_positive(nu, "nu", 1L)
  known <- c(1, 3, 5) / 2
  i <- which(abs(known - nu) < 1e-8)
  if (!length(i)) abort_input("nu", describe(nu), "1/2, 3/2 or 5/2")
  new_kernel(c("matern12", "matern32", "matern52")[i], sprintf("Matern %d/2", c(1L, 3L, 5L)[i]), lengthscale,
             variance, inputs)
}

new_kernel <- function(profile, label, lengthscale, variance, inputs) {
  if (!is.null(lengthscale)) lengthscale <- check_positive(lengthscale, "lengthscale")
  if (!is.null(variance)) variance <- check_positive(variance, "variance", 1L)
  if (!is.null(inputs) && !length(inputs)) {
    abort_input("inputs", describe(inputs), "names or positions of at least one column")
  }
  if (!is.null(inputs) && !is.character(inputs)) {
    if (is.list(inputs)) abort_input("inputs", describe(inputs), "names or positions")
    for (i in inputs) check_count(i, "inputs")
    inputs <- as.integer(inputs)
  }
  if (anyNA(inputs)) abort_input("inputs", "NA", "names or positions of columns")
  if (anyDuplicated(inputs)) abort_input("inputs", describe(inputs), "names or positions, each once")
  structure(list(profile = profile, label = label, lengthscale = lengthscale, variance = variance, inputs = inputs),
            class = "pfdtc_kernel")
}

#' @export
print.pfdtc_kernel <- function(x, ...) {
  show <- function(v) if (is.null(v)) "to be learned" else paste(format(v, digits = 4), collapse = ", ")
  cat(x$label, "kernel\n")
  cat("  lengthscale:", show(x$lengthscale), "\n")
  cat("  variance:   ", show(x$variance), "\n")
  if (!is.null(x$inputs)) cat("  inputs:     ", paste(x$inputs, collapse = ", "), "\n")
  invisible(x)
}

# The kernel over the columns of x: inputs as positions, a lengthscale each (NULL where there is none yet).
place_kernel <- function(kernel, x, argument = "kernel") {
  if (is.function(kernel)) kernel <- kernel()
  if (!inherits(kernel, "pfdtc_kernel")) {
    abort_input(argument, describe(kernel), "a kernel, such as kernel_se() or kernel_matern()")
  }
  if (!ncol(x)) abort_input("x", "without columns", "of at least one column")
  names <- colnames(x)
  inputs <- kernel$inputs
  if (is.null(inputs)) inputs <- seq_len(ncol(x))
  if (is.character(inputs)) {
    at <- match(inputs, names)
    if (anyNA(at)) {
      abort_input(argument, sprintf("a kernel over `%s`", inputs[is.na(at)][1L]),
                  sprintf("a kernel over columns of the inputs (%s)", list_quoted(names)))
    }
    inputs <- at
  }
  if (max(inputs) > ncol(x)) {
    abort_input(argument, sprintf("a kernel over column %d", max(inputs)),
                sprintf("a kernel over the %d columns of the inputs", ncol(x)))
  }
  l <- kernel$lengthscale
  if (!is.null(l)) {
    if (length(l) == 1L) l <- rep(l, length(inputs))
    if (length(l) != length(inputs)) {
      abort_input(argument, sprintf("a kernel with %d lengthscales", length(l)),
                  sprintf("a kernel with one lengthscale%s", if (length(inputs) > 1L)
                    sprintf(", or one for each of its %d inputs", length(inputs)) else ""))
    }
    names(l) <- names[inputs]
  }
  kernel$inputs <- inputs
  kernel$lengthscale <- l
  kernel
}

# The same, ready to be evaluated: nothing left to learn.
complete_kernel <- function(kernel, x, argument = "kernel") {
  kernel <- place_kernel(kernel, x, argument)
  lacking <- c("lengthscale", "variance")[c(is.null(kernel$lengthscale), is.null(kernel$variance))]
  if (length(lacking)) {
    abort_input(argument, sprintf("a kernel without %s", paste(lacking, collapse = " and ")),
                "a kernel with lengthscales and variance given")
  }
  kernel
}

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
