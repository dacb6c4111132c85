#' Make a covariance function (kernel)
#'
#' These functions make single kernels for the argument `kernel` of [pfdtc()]. Sums, products and multiples of
#' kernels are kernels too, see [kernel_algebra]. The kernels of x and z are, with \eqn{r^2 = \sum_j (x_j - z_j)^2 /
#' l_j^2}{r2 = r^2 = sum_j ((x_j - z_j) / l_j)^2},
#' \tabular{ll}{
#' `kernel_se()` \tab variance exp(-r2 / 2) \cr
#' `kernel_matern()` \tab variance exp(-r) (`nu = 1/2`), (1 + a) exp(-a), a = sqrt(3) r (`3/2`),
#'   (1 + a + a^2 / 3) exp(-a), a = sqrt(5) r (`5/2`) \cr
#' `kernel_rq()` \tab variance (1 + r2 / (2 alpha))^-alpha \cr
#' `kernel_periodic()` \tab variance exp(-2 sum_j sin^2(pi (x_j - z_j) / period) / lengthscale^2) \cr
#' `kernel_linear()` \tab variance sum_j x_j z_j, for a line through 0 \cr
#' `kernel_polynomial()` \tab variance (sum_j x_j z_j + offset)^degree \cr
#' `kernel_constant()` \tab variance, for an unknown constant \cr
#' `kernel_white()` \tab variance if x and z are equal in all `inputs`, else 0 \cr
#' `kernel_categorical()` \tab variance times the correlation of two levels of one factor \cr
#' `kernel_additive()` \tab a kernel of all inputs plus a kernel of each single input, see Details
#' }
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
#' @param lengthscale positive, in units of the inputs: one for all inputs, or one for each column (a factor has one for
#'   each level, [sphere()] one). `kernel_periodic()`: one number, no unit.
#' @param variance see the table; in squared units of f (or of f / x^degree).
#' @param inputs the inputs that the kernel reads: a one-sided formula, names of variables or columns, or positions.
#'   Default: all inputs.
#' @param isotropic `TRUE` gives all inputs the same lengthscale.
#' @param nu smoothness of the Matern kernel: 1/2, 3/2 or 5/2.
#' @param degree degree of the polynomial, from 1 to 10.
#' @param alpha,period,offset positive numbers. `period` is in units of the inputs, `offset` in squared units. With a
#'   large `alpha` the kernel is almost squared exponential.
#' @param correlation `"exchangeable"` (default), `"ordered"` or `"full"`; or a number between 0 and 1, the start of an
#'   exchangeable correlation; or a fixed correlation matrix of the levels.
#' @param kernel `kernel_se()` or `kernel_matern()` of all inputs, whose correlation is F in Details.
#' @param pairs `TRUE` adds a term for each pair of inputs. A positive number also starts the search for p in Details.
#' @param share positive number s, see Details.
#' @param ratio positive number: lengthscales of F divided by lengthscales of single inputs, see Details.
#' @return An object of class `pfdtc_kernel`: a list with elements `profile`, `label`, `inputs` and the parameters.
#' @details Parameters that are `NULL` are learned. A given value starts the search. To keep the value, use
#'   `hyper = "fixed"` or `control = pfdtc_control(fix = )`. A given `period` or matrix is always kept.
#'
#' An `"exchangeable"` correlation of levels a and b is exp(-t) with one parameter t. An `"ordered"` correlation is
#' exp(-|s_a - s_b|) with scores s that increase from level to level. A `"full"` correlation is any positive definite
#' matrix (at most 20 levels).
#'
#'   `kernel_additive()` suits functions that are nearly sums of functions of one input. It is \eqn{(F + (s/G) \sum_j
#'   u_j + (2p/(G(G-1))) \sum_{i<j} u_i u_j) v / (1 + s + p)}{(F + (s/G) sum u_j + (2p/(G(G-1))) sum u_i u_j) v / (1 +
#'   s + p)}. Here v is the variance of `kernel`, and F its correlation with lengthscales l_j. `share` s is the weight
#'   of single inputs, and p the weight of pairs. The u_j are squared exponentials of each of the G inputs, with
#'   variance 1 and lengthscale l_j / `ratio`. A categorical variable counts as one input.
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
  twice <- Filter(function(twice) abs(twice / 2 - nu) < 1e-8, c(1L, 3L, 5L))
  if (!length(twice)) abort_input("nu", describe(nu), "1/2, 3/2 or 5/2")
  new_kernel(sprintf("matern%d2", twice), sprintf("Matern %d/2", twice), lengthscale, variance, inputs,
             isotropic = isotropic)
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
  degree <- check_count(degree, "degree", max = 10)
  new_kernel("polynomial", sprintf("polynomial of degree %d", degree), NULL, variance, inputs, degree = degree,
             offset = positive_or_null(offset, "offset"))
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
    given <- correlation
    ok <- is.numeric(given) && nrow(given) == ncol(given) && nrow(given) > 1L && all(is.finite(given)) &&
      max(abs(given - t(given))) < 1e-12 && max(abs(diag(given) - 1)) < 1e-12
    refuse_if(!ok, "correlation", describe(given), "a symmetric matrix with a row for each level and 1 on its diagonal")
    least <- min(eigen(given, symmetric = TRUE, only.values = TRUE)$values)
    refuse_if(least < -1e-10 * nrow(given), "correlation", # the eigenvalue is negative by more than rounding
              sprintf("is not positive semidefinite: it has the eigenvalue %.3g", least))
    correlation <- "given"
  } else if (is.numeric(correlation) && length(correlation) == 1L && isTRUE(correlation > 0 && correlation < 1)) {
    parameters <- -log(correlation)
    correlation <- "exchangeable"
  } else {
    kinds <- c("exchangeable", "ordered", "full")
    kind <- if (is.character(correlation) && length(correlation) == 1L) pmatch(correlation, kinds) else NA
    refuse_if(is.na(kind), "correlation", describe(correlation),
              "\"exchangeable\", \"ordered\", \"full\", a number between 0 and 1, or a correlation matrix")
    correlation <- kinds[kind]
  }
  new_kernel("categorical", sprintf("categorical (%s)", correlation), NULL, variance, inputs, correlation = correlation,
             parameters = parameters, given = given)
}

# Kernels with these profiles have the same list elements as in fits of version 0.1.0.
kernels_of_before <- c("se", "matern12", "matern32", "matern52")

# Returns the argument `kernel` of an exported function: a kernel, or a function that makes one, such as kernel_se.
check_kernel <- function(kernel) {
  if (is.function(kernel)) kernel <- tryCatch(kernel(), simpleError = function(e) kernel)
  if (inherits(kernel, "pfdtc_kernel")) return(kernel)
  abort_input("kernel", describe(kernel), "a kernel, such as kernel_se() or kernel_matern()")
}

positive_or_null <- function(x, argument) if (!is.null(x)) check_positive(x, argument, 1L)

# Makes a kernel of one factor. `...` are further elements; those that are NULL are dropped.
new_kernel <- function(profile, label, lengthscale, variance, inputs, isotropic = FALSE, ...) {
  if (!is.null(lengthscale)) lengthscale <- stats::setNames(check_positive(lengthscale, "lengthscale"),
                                                            names(lengthscale))
  refuse_if(check_flag(isotropic, "isotropic") && length(lengthscale) > 1L, "lengthscale",
            sprintf("has %d numbers", length(lengthscale)), hint = "With isotropic = TRUE it is one number.")
  more <- list(isotropic = if (isotropic) TRUE, ...)
  structure(c(list(profile = profile, label = label, lengthscale = lengthscale,
                   variance = positive_or_null(variance, "variance"), inputs = check_inputs(inputs)),
              more[!vapply(more, is.null, NA)]), class = "pfdtc_kernel")
}

check_inputs <- function(inputs, argument = "inputs") {
  if (is.null(inputs)) return(NULL)
  if (inherits(inputs, "formula")) {
    if (length(inputs) != 2L) abort_input(argument, describe(inputs), "a one-sided formula, such as ~ a + b")
    inputs <- tryCatch(sub("^`(.*)`$", "\\1", attr(stats::terms(inputs), "term.labels")), error = function(e) {
      abort_input(argument, describe(inputs), "a formula of variables, such as ~ a + b") # there is a `.`
    })
  }
  refuse_if(!length(inputs), argument, describe(inputs), "names or positions of at least one column")
  if (!is.character(inputs)) {
    if (!is.numeric(inputs)) abort_input(argument, describe(inputs), "names or positions")
    for (i in inputs) check_count(i, argument)
    inputs <- as.integer(inputs)
  }
  if (anyNA(inputs)) abort_input(argument, "has missing values", hint = "Give names or positions of columns.")
  if (anyDuplicated(inputs)) abort_input(argument, sprintf("repeats a column: %s", describe(inputs)))
  inputs
}

plain_kernels <- Map(function(profile, label) new_kernel(profile, label, NULL, NULL, NULL),
                     c(se = "se", matern12 = "matern12", matern32 = "matern32", matern52 = "matern52", mean = "mean"),
                     c("squared exponential", "Matern 1/2", "Matern 3/2", "Matern 5/2", "linear mean"))
#' @rdname kernel_algebra
#' @export
update.pfdtc_kernel <- function(object, ...) {
  new <- list(...)
  if (!length(new)) return(object)
  refuse_if(!all(nzchar(names(new) %||% "")), "...", "has a value without the name of a parameter")
  single <- has_one_factor(object)
  if (is.integer(object$inputs) && !is.null(object$columns)) { # the kernel of a fit
    names <- kernel_parameter_names(object)
    unknown <- setdiff(names(new), names)
    if (!length(unknown)) {
      given <- vapply(names(new), function(n) check_positive(new[[n]], n, 1L), 0)
      at <- match(names(new), names)
      table <- kernel_parameters(object)[at, ]
      parts <- as_sum(set_values(object, replace(kernel_values(object), at, given)))
      # A given period is kept, as in kernel_periodic().
      for (l in table$leaf[table$what == "period"]) parts$leaves[[l]]$held <- "period"
      return(as_kernel(parts))
    }
    refuse_if(!single, unknown[1L], "is not a parameter of this kernel",
              hint = sprintf("Its parameters are %s.", list_quoted(names)))
  }
  refuse_if(!single, "object", "is a sum or product of kernels, but not the kernel of a fit",
            hint = "Parameters of several factors have names once the inputs are known: update(fit$kernel, ...).")
  known <- c("variance", if (!object$profile %in% c("group", "constant")) "inputs", factor_parameters[[object$profile]])
  unknown <- setdiff(names(new), known)
  refuse_if(length(unknown), unknown[1L], "cannot be changed by update()",
            hint = sprintf("For this kernel, update() changes %s. Otherwise make a new kernel.", list_quoted(known)))
  for (what in setdiff(names(new), "inputs")) {
    many <- what == "parameters" || what == "lengthscale" && !shares_lengthscale(object)
    object[what] <- list(if (!is.null(new[[what]])) check_positive(new[[what]], what, if (!many) 1L))
  }
  if ("period" %in% names(new)) object$held <- if (!is.null(new$period)) "period" # as in kernel_periodic()
  if ("inputs" %in% names(new)) object["inputs"] <- list(check_inputs(new$inputs))
  object
}

# A kernel of grouped effects is k(x, z) = u(x)' S u(z) for two rows of the same level, else 0. u is the row's design
# (1, x_1, ...), S the covariance of the effects of a level. `inputs` are the column of levels and the columns of the
# design; `intercept` is 1 if the design has a 1. S = v D R D with v the variance of the first effect, D = diag(1,
# scale) and a correlation matrix R: the identity (correlation "given"), or learned ("full").

#' @rdname groups
#' @usage NULL
#' @export
kernel_group <- function(by, design = ~1, correlated = TRUE, variance = NULL, scale = NULL) {
  check_given("by", "Give a formula such as by = ~ g.")
  column <- !inherits(by, "formula")
  if (!column && length(by) != 2L) abort_input("by", describe(by), "a one-sided formula, such as ~ g")
  refuse_if(!inherits(design, "formula") || length(design) != 2L, "design", describe(design),
            "a one-sided formula, such as ~ 1 + x")
  if (!is.null(scale)) scale <- check_positive(scale, "scale")
  leaf <- new_kernel("group", "group", NULL, variance, NULL, scale = scale)
  group <- list(by = if (column) check_inputs(by, "by") else by[[2L]], design = design[[2L]],
                correlated = check_flag(correlated, "correlated"))
  if (column && length(group$by) != 1L) abort_input("by", describe(by), "one column")
  leaf$of <- group_label(group)
  leaf$group <- group
  leaf
}

# Returns the label of a grouped term, such as "g" or "1 + x | g".
group_label <- function(group) {
  by <- if (is.language(group$by)) deparse1(group$by) else as.character(group$by)
  if (identical(group$design, 1)) by else paste(deparse1(group$design), if (group$correlated) "|" else "||", by)
}

# Returns the name of a group's variable, in parentheses to differ from the names of other variables.
group_variable <- function(by) if (is.language(by)) sprintf("(%s)", deparse1(by)) else by

# Returns the parts of a group's design, such as 1 + x: list(intercept, labels). Stops if it has a product or no term.
design_parts <- function(design) {
  terms <- stats::terms(stats::as.formula(call("~", design)))
  refuse_if(any(attr(terms, "order") > 1L), "design", deparse1(design), "a sum of variables",
            hint = "Make a variable of the product.")
  parts <- list(intercept = attr(terms, "intercept"), labels = attr(terms, "term.labels"))
  if (!parts$intercept && !length(parts$labels)) abort_input("design", deparse1(design), "a formula with a term")
  parts
}

# Returns the numbers of the columns of x that have the levels of the kernel's groups.
group_columns <- function(kernel) vapply(group_roots(kernel), `[[`, 0L, "level")

# Returns TRUE if the kernel has groups, and no other factor reads their columns of levels. If another factor does,
# levels cannot be renumbered, and inducing points have to represent the groups as well.
has_own_levels <- function(kernel) {
  if (!has_groups(kernel)) return(FALSE)
  kernel <- as_sum(kernel)
  plain <- unlist(lapply(kernel$terms[plain_groups(kernel)], `[[`, "leaves"))
  read <- Map(function(leaf, l) if (l %in% plain) leaf$inputs[-1L] else leaf$inputs, kernel$leaves,
              seq_along(kernel$leaves))
  !any(group_columns(kernel) %in% unlist(read))
}

count_effects <- function(kernel, x) {
  sum(vapply(group_roots(kernel), function(g) nrow(g$root) * length(unique(x[, g$level])), 0))
}

# Returns list(term, name, of, effects, level, design, intercept, root) for each term that is only a group factor. `of`
# is the label of the group, such as "1 + x | g", and `effects` has the names of the effects. `level` and `design` are
# numbers of columns of x (0: the intercept). root root' is the covariance of the effects of a level.
group_roots <- function(kernel) {
  kernel <- as_sum(kernel)
  lapply(which(plain_groups(kernel)), function(t) {
    leaf <- kernel$leaves[[kernel$terms[[t]]$leaves]]
    p <- table_rows(leaf)
    R <- diag(1, p)
    if (leaf$correlation == "full" && length(leaf$parameters)) { # R is the Cholesky factor of the correlations
      angle <- matrix(0, p, p)
      angle[lower.tri(angle)] <- pi * leaf$parameters / (1 + leaf$parameters)
      for (i in seq_len(p)[-1L]) {
        a <- angle[i, seq_len(i - 1L)]
        R[i, seq_len(i)] <- c(cos(a), 1) * cumprod(c(1, sin(a)))
      }
    }
    sd <- sqrt(c(kernel$terms[[t]]$variance, NA)[1L]) * c(1, leaf$scale)[seq_len(p)]
    list(term = t, name = leaf_name(leaf), of = leaf$of, effects = leaf$levels, level = leaf$inputs[1L],
         design = as.integer(c(if (leaf$intercept) 0, leaf$inputs[-1L])), intercept = leaf$intercept, root = sd * R)
  })
}

#' @export
kernel_additive <- function(kernel = kernel_matern(3 / 2), pairs = FALSE, share = NULL, ratio = NULL) {
  kernel <- check_kernel(kernel)
  refuse_if(!isTRUE(kernel$profile %in% kernels_of_before), "kernel", paste("a", kernel$label, "kernel"),
            "kernel_se() or kernel_matern()")
  if (!is.numeric(pairs)) pairs <- check_flag(pairs, "pairs")
  with_pairs <- !isFALSE(pairs)
  kernel$base <- kernel$profile
  kernel$profile <- if (with_pairs) "pairwise" else "additive"
  kernel$label <- paste0(kernel$label, " + squared exponential of each input", if (with_pairs) " and pair")
  kernel$additive.share <- positive_or_null(share, "share")
  kernel$additive.ratio <- positive_or_null(ratio, "ratio")
  if (is.numeric(pairs)) kernel$additive.pairs <- check_positive(pairs, "pairs", 1L)
  kernel
}

# Returns the kernel as a sum of products, in which an additive factor is replaced by its terms.
with_own_terms <- function(kernel) {
  parts <- as_sum(kernel)
  if (!has_profile(kernel, c("additive", "pairwise"))) return(parts)
  compiled <- compile_kernel(kernel)
  tie <- expand_additive(parts, compiled$table)
  values <- engine_kernel(compiled)$values
  met <- integer()
  used <- 0L # number of `values` used so far: for each term those of new factors, then its variance
  terms <- lapply(tie$terms, function(own) {
    for (l in setdiff(own, met)) {
      leaf <- tie$leaves[[l]]
      if (is.null(leaf$label)) { # a term of an additive factor
        leaf$lengthscale <- values[used + seq_along(leaf$from)]
        leaf$of <- leaf$of %||% kernel$columns[leaf$inputs] %||% leaf$inputs
        tie$leaves[[l]] <<- leaf
      }
      used <<- used + length(leaf$from)
    }
    met <<- c(met, own)
    used <<- used + 1L
    list(variance = values[used], leaves = own)
  })
  structure(list(profile = "composite", leaves = tie$leaves, terms = terms), class = "pfdtc_kernel")
}
