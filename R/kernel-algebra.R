#' Add, multiply and evaluate kernels
#'
#' `k1 + k2` is the kernel of a sum of two independent functions, `k1 * k2` the product of two kernels. `0.5 * k`
#' multiplies the variance (1 if not given) by 0.5. `kernel_matrix()` returns covariances between two sets of points.
#' @details A kernel is stored as a sum of products: `(a + b) * c` becomes `a * c + b * c`, and both terms share the
#'   parameters of `c`. A term has one variance, because data do not determine the variance of each factor. A constant
#'   factor is part of this variance.
#'
#' In [coef()] and in `control = pfdtc_control(fix = )`, parameters of a sum or product are named by kernel and inputs,
#' such as `se(lat,long).lengthscale.lat` and `periodic(day)*matern32(year).variance`.
#' @param e1,e2 two kernels; for `*` also a kernel and a positive number.
#' @param object,kernel a kernel, for `kernel_matrix()` with all parameters.
#' @param x inputs: a numeric matrix or data frame with a row for each point, or a vector for one column.
#' @param z a second set of points with the same columns in the same order. Default: `x`.
#' @param ... for `update()`, new parameters: of a single kernel by the names that an error lists, such as `variance`
#'   and `inputs`; of a fitted sum or product by the names of `coef()`.
#' @return A kernel, of class `pfdtc_kernel`. A sum or product has the elements `leaves` (its single kernels) and
#'   `terms` (each with a `variance` and the positions of its kernels). `kernel_matrix()`: the matrix of \eqn{k(x_i,
#'   z_j)}, in squared units of f.
#' @seealso [kernel_se()] for single kernels, `vignette("modelling")`
#' @name kernel_algebra
#' @examples
#' k <- kernel_se(lengthscale = 2) + 0.5 * kernel_periodic(period = 7) * kernel_matern()
#' k
#' fit <- gp_exact(dist ~ speed, cars, kernel = kernel_linear(inputs = ~ speed) + kernel_constant())
#' coef(fit)
#' kernel_matrix(kernel_matern(5/2, lengthscale = 2, variance = 1), cars$speed[1:3], 10)
#' @export
Ops.pfdtc_kernel <- function(e1, e2) {
  refuse_if(missing(e2) || !.Generic %in% c("+", "*"), "kernel", sprintf("`%s`", .Generic), "used with + and * alone",
            message = sprintf("Kernels cannot be combined by `%s`. Use + or *.", .Generic))
  numbers <- !vapply(list(e1, e2), inherits, NA, "pfdtc_kernel")
  if (!any(numbers)) return(combine_kernels(e1, e2, .Generic))
  number <- if (numbers[1L]) e1 else e2
  refuse_if(.Generic == "+", "kernel", describe(number), "a kernel",
            hint = "For an unknown constant add kernel_constant().")
  kernel <- as_sum(if (numbers[1L]) e2 else e1)
  # Give a term without a variance the variance 1, so that it can be multiplied.
  kernel$terms <- lapply(kernel$terms, function(t) replace(t, "variance", c(t$variance, 1)[1L]))
  refuse_if(!is_finite_number(number) || number <= 0, "kernel", describe(number), message = sprintf(
    "A kernel can be multiplied by a kernel or by a positive number, not by %s.", describe(number)))
  scale_kernel(as_kernel(kernel), as.double(number))
}

# Makes a sum of terms, each a variance times a product of factors (`leaves`). Drops factors that are in no term. Stops
# if two terms are the same product of factors without parameters: data determine only the sum of their variances.
new_sum <- function(leaves, terms) {
  used <- sort(unique(unlist(lapply(terms, `[[`, "leaves"))))
  terms <- lapply(terms, function(t) list(variance = t$variance, leaves = match(t$leaves, used)))
  leaves <- lapply(leaves[used], replace, "variance", list(NULL))
  kernel <- structure(list(profile = "composite", leaves = leaves, terms = terms), class = "pfdtc_kernel")
  if (has_one_factor(kernel) && length(terms) == 1L) return(as_kernel(kernel))
  kernel$label <- formula_of_kernel(kernel)
  keys <- vapply(terms, function(t) {
    plain <- all(vapply(leaves[t$leaves], function(l) {
      !length(factor_parameters[[c(l$profile, "se")[1L]]]) || identical(l$correlation, "given")
    }, NA))
    if (plain) toString(sort(vapply(leaves[t$leaves], leaf_name, ""))) else NA_character_
  }, "")
  twice <- keys[duplicated(keys) & !is.na(keys)]
  refuse_if(length(twice), "kernel", sprintf("has %s twice", twice[1L]),
            hint = "Data determine only the sum of their variances.")
  kernel
}

# Returns the sum of two kernels or, if the operator is "*", their product.
combine_kernels <- function(a, b, operator = "+") {
  a <- as_sum(a)
  b <- as_sum(b)
  leaves <- c(a$leaves, b$leaves)
  moved <- lapply(b$terms, function(t) replace(t, "leaves", list(t$leaves + length(a$leaves))))
  if (operator == "+") return(new_sum(leaves, c(a$terms, moved)))
  constant <- vapply(leaves, function(l) l$profile == "constant", NA)
  pairs <- expand.grid(a = a$terms, b = moved)
  new_sum(leaves, Map(function(ta, tb) {
    given <- c(ta$variance, tb$variance)
    factors <- c(ta$leaves, tb$leaves)
    if (!all(constant[factors])) factors <- factors[!constant[factors]] # a constant factor is part of the variance
    list(variance = if (length(given)) prod(given), leaves = unique(factors))
  }, pairs$a, pairs$b))
}

# Returns the name of a factor with its inputs, such as "se(lat,long)".
leaf_name <- function(leaf) {
  of <- if (!is.null(leaf$of)) leaf$of else leaf$inputs
  word <- if (is.null(leaf$profile)) "kernel" else leaf$profile # NULL: the profile is still to be chosen
  if (identical(word, "polynomial") && leaf$degree != 2L) word <- paste0(word, leaf$degree)
  if (length(of)) sprintf("%s(%s)", word, paste(of, collapse = ",")) else word
}

leaf_names <- function(leaves) make.unique(vapply(leaves, leaf_name, ""), sep = "_")

term_names <- function(kernel) {
  kernel <- as_sum(kernel)
  leaves <- leaf_names(kernel$leaves)
  make.unique(vapply(kernel$terms, function(t) paste(leaves[t$leaves], collapse = "*"), ""), sep = "_")
}

formula_of_kernel <- function(kernel) paste(gsub("*", " * ", term_names(kernel), fixed = TRUE), collapse = " + ")

sum_label <- function(kernel) paste(vapply(as_sum(kernel)$leaves, `[[`, "", "label"), collapse = " + ")

# Returns the parameters of a factor as texts by show(), with their kinds as names, such as "correlation angles".
parameter_texts <- function(leaf, show) {
  if (is_group(leaf) && is.numeric(leaf$group$design)) return(NULL) # a group with one effect has only its variance
  parts <- factor_parameters[[leaf$profile]]
  texts <- vapply(parts, function(what) show(leaf[[what]]), "")
  at <- parts == "parameters"
  kind <- if (any(at)) leaf$correlation %||% (if (leaf$group$correlated) "full" else "given") else ""
  if (kind == "given") texts[at] <- if (is_group(leaf)) "0" else "given"
  if (kind == "exchangeable" && !is.null(leaf$parameters)) texts[at] <- show(exp(-leaf$parameters))
  if (kind == "ordered" && !is.null(leaf$parameters)) texts[at] <- paste(texts[at], "(correlation exp(-gap))")
  parts[at] <- switch(kind, ordered = "gaps of levels", full = "correlation angles", "correlation")
  stats::setNames(texts, sub("additive.", "", parts, fixed = TRUE))
}

#' @export
print.pfdtc_kernel <- function(x, ...) {
  show <- function(v) if (is.null(v)) "to be learned" else paste(format(v, digits = 4), collapse = ", ")
  if (has_one_factor(x)) {
    cat(sprintf(if (grepl(" + ", x$label, fixed = TRUE)) "kernel: %s\n" else "%s kernel\n", x$label))
    parts <- c(parameter_texts(x, show), variance = show(x$variance),
               inputs = if (!is.null(x$inputs)) paste0(if (is.numeric(x$inputs)) "column ", toString(x$inputs)),
               "grouping factor" = if (is_group(x)) paste0(if (is.numeric(x$group$by)) "column ",
                                                         sub("^.*[|] ", "", x$of)),
               effects = if (is_group(x) && grepl("|", x$of, fixed = TRUE)) sub(" [|].*$", "", x$of))
    cat(sprintf("  %-*s%s\n", max(17L, nchar(names(parts)) + 2L), paste0(names(parts), ":"), parts), sep = "")
    return(invisible(x))
  }
  cat("kernel:", formula_of_kernel(x), "\n")
  leaves <- leaf_names(x$leaves)
  last <- length(x$terms)
  met <- integer()
  for (t in seq_along(x$terms)) {
    term <- x$terms[[t]]
    cat(sprintf("%s variance %s\n", if (t < last) "|-" else "`-", show(term$variance)))
    for (l in term$leaves) {
      parts <- parameter_texts(x$leaves[[l]], show)
      parts <- if (l %in% met) "as above" else paste(names(parts), parts, recycle0 = TRUE)
      cat(sprintf("%s    %s%s\n", if (t < last) "|" else " ", leaves[l],
                  if (length(parts)) paste(":", paste(parts, collapse = "; ")) else ""))
    }
    met <- c(met, term$leaves)
  }
  invisible(x)
}

parameter_names <- function(kernel, columns) c(kernel_parameter_names(kernel, columns), "noise")

# Returns the names of the kernel's parameters in coef(). With several factors, names begin with the factor's name.
kernel_parameter_names <- function(kernel, columns = kernel$columns) {
  force(columns) # the default needs the kernel before compilation, which drops `columns`
  kernel <- compile_kernel(kernel)
  table <- kernel$table
  sum <- as_sum(kernel$kernel)
  factors <- terms <- NULL
  if (length(sum$leaves) > 1L) {
    factors <- paste0(leaf_names(sum$leaves), ".")
    terms <- paste0(term_names(sum), ".")
  }
  names <- paste0(terms[table$term], table$what)
  for (first in which(table$leaf > 0L & table$at == 1L)) {
    l <- table$leaf[first]
    what <- table$what[first]
    own <- which(table$leaf == l & table$what == what)
    leaf <- sum$leaves[[l]]
    levels <- leaf$levels
    n <- length(levels)
    words <- switch(
      what, lengthscale = if (shares_lengthscale(leaf)) what else paste0(what, ".", lengthscale_names(leaf, columns)),
      scale = paste0(what, ".", levels[-1L]), parameters = switch(leaf$correlation, exchangeable = "distance",
                          ordered = sprintf("gap.%s.%s", levels[-n], levels[-1L]), full = {
                            pair <- which(lower.tri(diag(n)), arr.ind = TRUE)
                            sprintf("angle.%s.%s", levels[pair[, 1L]], levels[pair[, 2L]])
                          }), what)
    names[own] <- paste0(factors[l], words)
  }
  names
}

# Stops if f is not differentiable along the column, because a factor that reads the column is rough or has levels.
check_differentiable <- function(kernel, column, name) {
  rough <- c(matern12 = "is not differentiable, because its paths have a kink everywhere", white = "is not continuous",
             categorical = "reads levels, which have no values in between")
  for (leaf in as_sum(kernel)$leaves) {
    known <- intersect(c(leaf$profile, leaf$base), names(rough))
    refuse_if(length(known) && column %in% leaf$inputs, "wrt", sprintf("\"%s\"", name),
              "an input along which the function has a slope",
              message = sprintf("There is no derivative with respect to `%s`: the factor %s of its kernel %s.", name,
                                sub("[(].*", "", leaf_name(leaf)), rough[[known]]),
              hint = "kernel_matern(3/2), kernel_matern(5/2) and kernel_se() have derivatives.")
  }
}

# A "model" is a kernel and a noise variance, in units of the cleaned response (y - center) / scale.

# Returns a model with the compiled kernel, from `kernel` and `noise` in units of y or NULL (if they are to be learned).
new_model <- function(kernel, noise, center = 0, scale = 1) {
  model <- list(kernel = kernel, noise = noise, center = center, scale = scale)
  if (!is.null(kernel)) model$kernel <- scale_kernel(compile_kernel(kernel), over = scale^2)
  if (!is.null(noise)) model$noise <- noise / scale^2
  model
}

# Returns the model, in units of the cleaned response, of a fit or of list(kernel, noise, center, scale).
model_of <- function(fit) new_model(fit$kernel, fit$noise, fit$center, fit$scale)

model_with <- function(model, hyper) replace(model, c("kernel", "noise"), hyper[c("kernel", "noise")])

# Returns list(kernel, noise) in units of y, as users see them.
model_units <- function(model) {
  list(kernel = as_kernel(scale_kernel(model$kernel, in_units(model, 1, 2))), noise = in_units(model, model$noise, 2))
}

# Converts v (variances if `power` is 2) from units of the cleaned response to those of y, without adding the centre.
in_units <- function(model, v, power = 1) model$scale^power * v

# Returns the logs of the hyperparameters, in the order of coef().
model_theta <- function(model) log(c(kernel_values(model$kernel), model$noise))

# Returns the largest prior variance k(x, x) over the rows of the matrices `...`.
prior_most <- function(model, ...) {
  if (!varies(model$kernel)) return(total_variance(model$kernel))
  max(0, vapply(list(...), function(x) if (NROW(x)) max(kernel_diagonal(model$kernel, x)) else 0, 0))
}

# Returns u such that a computed kernel value k(x, z) has an error of at most u sqrt(k(x, x) k(z, z)). u is 4 eps if all
# kernel values have one sign, and larger otherwise. A sum x'z over d inputs errs by at most (3 + d / 2) eps sum_j |x_j
# z_j|, where the sum is at most sqrt(x'x z'z). For p effects of a group with covariance S, u'S v errs relative to
# sum_ij |u_i S_ij v_j|. For u = v this is at most p sum_i S_ii u_i^2, which may be far above u'S u. The result is
# multiplied by the largest ratio of these two numbers at the rows `...`. A rotated input x B, of d inputs, errs by at
# most d eps |x| |B| / 2. That divided by a lengthscale bounds the change of a factor, for each of the two rows.
kernel_value_error <- function(kernel, ...) {
  leaves <- as_sum(kernel)$leaves
  effects <- max(1, vapply(Filter(is_group, leaves), table_rows, 0))
  x <- if (effects > 1 || !is.null(rotation_of(kernel))) rbind(...)
  units <- vapply(leaves, function(leaf) {
    by <- leaf$rotation
    moved <- if (NROW(x) && !is.null(by)) {
      rates <- leaf$rate %||% (1 / rep_len(leaf$lengthscale %||% Inf, length(leaf$inputs)))
      size <- abs(x[, by$inputs, drop = FALSE]) %*% abs(by$by)
      length(by$inputs) * max(size %*% rates[match(by$inputs, leaf$inputs)])
    }
    # Points on the unit circle err by eps, which moves the exponent by eps times their distance / lengthscale^2.
    chord <- if (identical(leaf$profile, "periodic")) 4 * sqrt(length(leaf$inputs)) / leaf$lengthscale else 0
    signed <- leaf$profile %in% varying_profiles || isTRUE(leaf$correlation %in% c("full", "given"))
    sum(moved, if (signed || chord > 4) (6 + length(leaf$inputs)) * max(leaf$degree, 1) + chord)
  }, 0)
  apart <- change_leaves(kernel, function(leaf) if (is_group(leaf)) replace(leaf, "correlation", "given") else leaf)
  ratio <- if (NROW(x)) effects * kernel_diagonal(apart, x) / kernel_diagonal(kernel, x)
  max(ratio, 1, na.rm = TRUE) * (4 + sum(units)) * .Machine$double.eps
}

# family() makes a row of gp_families, the table of properties of the functions that fit models:
#
#   title       the name in print() and in figures
#   objective   the objective of the inducing points: "pf", "vfe", "none" (points do not move) or NULL (no points)
#   joint       TRUE if hyper = "joint" is allowed: hyperparameters by the exact likelihood, or together with the points
#   chooses     TRUE if the function chooses the kind of its posterior
#   dtc         TRUE for a DTC posterior, which the pF divergence and its error bound need
#   reference   TRUE if the fit can be a reference for certificates
#   sor, fitc   TRUE for SoR (subset of regressors) and for FITC
#   some        TRUE for the exact posterior of a random subsample of the rows
family <- function(title, objective = "none", joint = FALSE, chooses = FALSE, dtc = FALSE, reference = FALSE,
                   sor = FALSE, fitc = FALSE, some = FALSE) {
  as.list(environment())
}

gp_families <- list(pfdtc = family("inducing points (pF-DTC)", "pf", joint = TRUE, chooses = TRUE, dtc = TRUE),
  gp_vfe = family("inducing points (VFE, sparse variational)", "vfe", joint = TRUE, dtc = TRUE),
  gp_dtc = family("inducing points (DTC)", dtc = TRUE, reference = TRUE),
  gp_sor = family("inducing points (SoR)", sor = TRUE), gp_fitc = family("inducing points (FITC)", fitc = TRUE),
  gp_subsample = family("the exact posterior of a subsample", NULL, some = TRUE),
  gp_exact = family("the exact posterior", NULL, joint = TRUE))

method_traits <- function(fit) gp_families[[fit$method]]

# Returns TRUE if the method merges equal rows. FITC does not, because it adds to each row a noise variance of its own;
# gp_subsample() does not, because it draws from all rows.
merges_rows <- function(method) !gp_families[[method]]$some && !gp_families[[method]]$fitc

check_dtc <- function(fit, hint) {
  refuse_if(!is.null(fit$factors$groupings), "fit", "has groups beside inducing points", hint = hint)
  refuse_if(!method_traits(fit)$dtc, "fit", sprintf("a fit by %s()", fit$method),
            "a fit by pfdtc(), gp_vfe() or gp_dtc()", hint = hint)
}
