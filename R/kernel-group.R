# The kernel of grouped effects, read by index: k(x, z) = u(x)' S u(z) for two rows of the same level, else 0. u is the
# design of a row, (1, x_1, ...), and S the covariance of the effects of one level. `inputs` are the column with the
# numbers of the levels and those of the design; `intercept` is 1 if the design has one. S = v D R D with the variance v
# of the first effect, D = diag(1, scale) and R the identity (correlation "given") or any correlation ("full").

#' Grouped effects
#'
#' The kernel of random intercepts and slopes, as in the formula terms `(1 | g)` and `(x | g)`. A group of any number
#' of levels takes one column and few parameters. New levels have the prior variance.
#'
#' @param by the group: a one-sided formula (`~ g`, or `~ a:b` for a group of all pairs), or for a matrix the name or
#'   number of the column that has the levels.
#' @param design the effects of a level: a one-sided formula of numeric variables or factors. Default: an intercept.
#' @param correlated `FALSE`: the effects of a level are independent, as in `(x || g)`.
#' @param variance variance of the first effect, in squared units of the response. Default: learned.
#' @param scale sds of the other effects divided by the sd of the first. Default: learned.
#' @return An object of class `pfdtc_kernel`, see [kernel_se()].
#' @details A product with another kernel is a curve for each level: `kernel_group(~ g) * kernel_se(inputs = ~ x)`.
#'   Terms of the formula and terms of `kernel` are added. A group that only `kernel` names is read from `data`.
#' @section Errors and invariants: class `pfdtc_error_input`. The covariance of rows of different levels is 0.
#' @seealso [kernel_se()], [kernel_algebra], [pfdtc()]
#' @examples
#' kernel_group(~ Subject, design = ~ 1 + Days)
#' fit <- pfdtc(weight ~ Time + (1 | Chick), ChickWeight[ChickWeight$Diet == 1, ], plain = TRUE)
#' coef(fit)
#' @export
kernel_group <- function(by, design = ~1, correlated = TRUE, variance = NULL, scale = NULL) {
  if (missing(by)) abort_input("by", "missing", "a formula such as ~ g")
  column <- !inherits(by, "formula")
  if (!column && length(by) != 2L) abort_input("by", describe(by), "a one-sided formula, such as ~ g")
  if (!inherits(design, "formula") || length(design) != 2L) {
    abort_input("design", describe(design), "a one-sided formula, such as ~ 1 + x")
  }
  if (!is.null(scale)) scale <- check_positive(scale, "scale")
  leaf <- new_kernel("group", "group", NULL, variance, NULL, scale = scale)
  group <- list(by = if (column) check_inputs(by) else by[[2L]], design = design[[2L]],
                correlated = check_flag(correlated, "correlated"))
  if (column && length(group$by) != 1L) abort_input("by", describe(by), "one column")
  leaf$of <- group_label(group)
  leaf$group <- group
  leaf
}

# Returns the label of a grouped term: "g", or "1 + x | g" with its design.
group_label <- function(group) {
  by <- if (is.language(group$by)) deparse1(group$by) else as.character(group$by)
  if (identical(group$design, 1)) return(by)
  paste(deparse1(group$design), if (group$correlated) "|" else "||", by)
}

# Returns the name of the variable with the numbers of the levels. No variable of a formula has parentheses alone.
group_variable <- function(by) if (is.language(by)) sprintf("(%s)", deparse1(by)) else by

# Returns list(intercept, labels) of a design.
design_parts <- function(design) {
  terms <- stats::terms(stats::as.formula(call("~", design)))
  if (any(attr(terms, "order") > 1L)) {
    abort_input("design", deparse1(design), "a sum of variables", hint = "Make a variable of the product.")
  }
  parts <- list(intercept = attr(terms, "intercept"), labels = attr(terms, "term.labels"))
  if (!parts$intercept && !length(parts$labels)) abort_input("design", deparse1(design), "one with an effect")
  parts
}

# Returns TRUE for each term of the kernel that has a group as a factor.
group_terms <- function(kernel) {
  kernel <- as_sum(kernel)
  vapply(kernel$terms, function(t) any(vapply(kernel$leaves[t$leaves], is_group, NA)), NA)
}

# Returns the terms that are groups and nothing else: for each list(term, of, effects, level, design, intercept, root),
# where `level` and `design` are columns of x, and the covariance of the effects of a level is root root' (lower).
group_roots <- function(kernel) {
  kernel <- as_sum(kernel)
  alone <- which(group_terms(kernel) & lengths(lapply(kernel$terms, `[[`, "leaves")) == 1L)
  lapply(alone, function(t) {
    leaf <- kernel$leaves[[kernel$terms[[t]]$leaves]]
    p <- table_rows(leaf)
    R <- sphere_root(p, if (leaf$correlation == "full") leaf$parameters)
    sd <- sqrt(c(kernel$terms[[t]]$variance, NA)[1L]) * c(1, leaf$scale)[seq_len(p)]
    list(term = t, name = leaf_name(leaf), of = leaf$of, effects = leaf$levels, level = leaf$inputs[1L],
         design = leaf$inputs[-1L], intercept = leaf$intercept, root = sd * R)
  })
}

# Returns the Cholesky factor of a correlation matrix from its angles pi p / (1 + p), as in src/levels.c; the identity
# without angles.
sphere_root <- function(n, p = NULL) {
  L <- diag(1, n)
  if (!length(p)) return(L)
  angle <- matrix(0, n, n)
  angle[lower.tri(angle)] <- pi * p / (1 + p)
  for (i in seq_len(n)[-1L]) {
    a <- angle[i, seq_len(i - 1L)]
    L[i, seq_len(i)] <- c(cos(a), 1) * cumprod(c(1, sin(a)))
  }
  L
}
