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
#' @aliases kernels kernel_additive kernel_matern kernel_rq kernel_periodic kernel_linear kernel_polynomial
#'   kernel_constant kernel_white kernel_categorical
#' @examples
#' kernel_se(lengthscale = c(1, 10), variance = 2)
#' kernel_matern(nu = 3/2, inputs = ~ lat + long, isotropic = TRUE)
#' kernel_periodic(period = 12) * kernel_matern(3/2) + kernel_linear()
#' @export
kernel_se <- function(lengthscale = NULL, variance = NULL, inputs = NULL, isotropic = FALSE) {
  new_kernel("se", "squared exponential", lengthscale, variance, inputs, isotropic = isotropic)
}

#' @export
kernel_matern <- function(nu = 5 / 2, lengthscale = NULL, variance = NULL, inputs = NULL, isotropic = FALSE) {
  nu <- check_positive(nu, "nu", 1L)
  known <- c(1, 3, 5) / 2
  i <- which(abs(known - nu) < 1e-8)
  if (!length(i)) abort_input("nu", describe(nu), "1/2, 3/2 or 5/2")
  new_kernel(c("matern12", "matern32", "matern52")[i], sprintf("Matern %d/2", c(1L, 3L, 5L)[i]), lengthscale,
             variance, inputs, isotropic = isotropic)
}

#' @export
kernel_rq <- function(alpha = NULL, lengthscale = NULL, variance = NULL, inputs = NULL, isotropic = FALSE) {
  new_kernel("rq", "rational quadratic", lengthscale, variance, inputs, isotropic = isotropic,
             alpha = positive_or_null(alpha, "alpha"))
}

#' @export
kernel_periodic <- function(lengthscale = NULL, variance = NULL, period = NULL, inputs = NULL) {
  new_kernel("periodic", "periodic", positive_or_null(lengthscale, "lengthscale"), variance, inputs,
             period = positive_or_null(period, "period"), held = if (!is.null(period)) "period")
}

#' @export
kernel_linear <- function(variance = NULL, inputs = NULL) new_kernel("linear", "linear", NULL, variance, inputs)

#' @export
kernel_polynomial <- function(degree = 2, variance = NULL, offset = NULL, inputs = NULL) {
  new_kernel("polynomial", sprintf("polynomial of degree %d", check_count(degree, "degree", max = 10)), NULL, variance,
             inputs, degree = check_count(degree, "degree", max = 10), offset = positive_or_null(offset, "offset"))
}

#' @export
kernel_constant <- function(variance = NULL) new_kernel("constant", "constant", NULL, variance, NULL)

#' @export
kernel_white <- function(variance = NULL, inputs = NULL) new_kernel("white", "white", NULL, variance, inputs)

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
  for (what in setdiff(names(new), "inputs")) {
    many <- what %in% c("lengthscale", "parameters")
    object[what] <- list(if (!is.null(new[[what]])) check_positive(new[[what]], what, if (!many) 1L))
  }
  if ("inputs" %in% names(new)) object["inputs"] <- list(check_inputs(new$inputs))
  object
}
