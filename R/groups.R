# Defines methods for fits with groups: effects, variances and fixed effects. The generics are those of nlme and lme4.

#' Model grouped data with random effects
#'
#' `kernel_group()` is the kernel of random intercepts and slopes, which the formula terms `(1 | g)` and `(x | g)` also
#' define. Rows of different levels have covariance 0. New levels have the prior variance. `ranef()`, `VarCorr()` and
#' `fixef()` are generics of \pkg{nlme} and \pkg{lme4}: load one of these packages, or call `nlme::ranef(fit)`.
#' @usage
#' kernel_group(by, design = ~1, correlated = TRUE, variance = NULL, scale = NULL)
#' ranef.gp_fit(object, se = FALSE, ...)
#' VarCorr.gp_fit(x, sigma = 1, ...)
#' fixef.gp_fit(object, ...)
#' @param by the grouping factor: a one-sided formula (`~ g`, or `~ a:b` for all pairs of levels), or for a matrix the
#'   name or number of its column.
#' @param design the effects of a level: a one-sided formula of numeric variables or factors. Default: an intercept.
#' @param correlated `FALSE` makes effects independent, as in `(x || g)`.
#' @param variance variance of the first effect, in squared units of f. Default: learned.
#' @param scale sds of the other effects, divided by the sd of the first. Default: learned.
#' @param object,x a fit with grouped terms.
#' @param se return posterior covariances of the effects of each level?
#' @param sigma,... not used.
#' @return `kernel_group()`: a kernel, see [kernel_se()].
#'   * `ranef()`: a list with a data frame for each grouping factor, with a row for each level and a column for each
#'     effect. With `se = TRUE` each data frame has the attribute `postVar`, an array with a covariance matrix for each
#'     level (several terms of a factor: a list of arrays). `as.data.frame()` has columns `grpvar`, `term`, `grp`,
#'     `condval` and `condsd`.
#'   * `VarCorr()`: a list with a covariance matrix for each grouped term, with attributes `stddev` and
#'     `correlation`. The attribute `sc` of the list is the noise sd as in `sigma()`, or `NA`. `as.data.frame()` has
#'     columns `grp`, `var1`, `var2`, `vcov` and `sdcor`.
#'   * `fixef()`: the coefficients of the linear mean, or the constant mean as `(Intercept)`. With grouped terms
#'     only, f is this mean plus the sum of the effects of the row's levels, each multiplied by its variable.
#' @details The product `kernel_group(~ g) * kernel_se(inputs = ~ x)` models a separate curve for each level. Terms of
#'   the formula and terms of `kernel` are added. A grouping factor that only `kernel` names is taken from `data`.
#'
#' Effects are in units of the response, or of f with a transform or `family`. An `angle` \eqn{a} in `coef()` stands for
#' the partial correlation \eqn{\cos(\pi a / (1 + a))}{cos(pi a / (1 + a))} of two effects given the effects before
#' both. A model without a smooth part, as in `pfdtc(y ~ (1 | g), mean = ~ x)`, is fitted by REML, and agrees
#' with `lme4::lmer()`. With a `family` the constant mean is integrated out; `lme4::glmer()` maximises over it (ML) and
#' has smaller sds.
#' @seealso [kernel_algebra], [predict.gp_fit()] with `re = FALSE`, `plot(fit, which = "groups")`, `vignette("groups")`
#' @examples
#' kernel_group(~ Subject, design = ~ 1 + Days)
#' fit <- pfdtc(weight ~ Time + (1 | Chick), ChickWeight[ChickWeight$Diet == 1, ], plain = TRUE)
#' coef(fit)
#' if (requireNamespace("nlme", quietly = TRUE)) {
#'   nlme::VarCorr(fit)
#'   head(as.data.frame(nlme::ranef(fit, se = TRUE)))
#' }
#' @aliases kernel_group ranef.gp_fit VarCorr.gp_fit fixef.gp_fit
#' @name groups
NULL

#' @exportS3Method nlme::ranef
ranef.gp_fit <- function(object, se = FALSE, ...) {
  check_dots_empty()
  se <- check_flag(se, "se")
  fit <- fit_with_groups(object, "object")
  by <- groups_of_fit(fit)
  each <- lapply(by, effects_of_levels, fit = fit, covariances = se)
  group <- vapply(by, `[[`, "", "by")
  out <- lapply(stats::setNames(nm = unique(group)), function(g) {
    own <- each[group == g]
    table <- do.call(cbind, lapply(own, `[[`, "mean"))
    if (se) attr(table, "postVar") <- if (length(own) == 1L) own[[1L]]$cov else lapply(own, `[[`, "cov")
    table
  })
  structure(out, class = "pfdtc_ranef")
}

#' @exportS3Method nlme::VarCorr
VarCorr.gp_fit <- function(x, sigma = 1, ...) {
  fit <- fit_with_groups(x, "x")
  terms <- groups_of_fit(fit)
  out <- lapply(terms, function(term) {
    S <- dimnames_of(tcrossprod(term$root), term$effects)
    sd <- sqrt(diag(S))
    correlation <- S / outer(sd, sd)
    structure(S, stddev = sd, correlation = replace(correlation, !is.finite(correlation), NaN))
  })
  names(out) <- make.unique(vapply(terms, `[[`, "", "by"))
  structure(out, sc = if (response_of(fit)$conjugate) stats::sigma(fit) else NA_real_, class = "pfdtc_varcorr")
}

#' @exportS3Method nlme::fixef
fixef.gp_fit <- function(object, ...) {
  fit <- fit_with_groups(object, "object")
  mean_coefficients(fit)$estimate %||% c("(Intercept)" = fit$center)
}

#' @export
as.data.frame.pfdtc_ranef <- function(x, row.names = NULL, optional = FALSE, ...) {
  do.call(rbind, lapply(names(x), function(g) {
    table <- x[[g]]
    cov <- attr(table, "postVar")
    if (is.array(cov)) cov <- list(cov)
    sd <- unlist(lapply(cov, function(v) sqrt(t(apply(v, 3L, diag)))), use.names = FALSE)
    data.frame(grpvar = g, term = rep(names(table), each = nrow(table)), grp = rep(row.names(table), ncol(table)),
               condval = unlist(table, use.names = FALSE), condsd = sd %||% NA_real_)
  }))
}

#' @export
as.data.frame.pfdtc_varcorr <- function(x, row.names = NULL, optional = FALSE, ...) {
  tables <- lapply(names(x), function(g) {
    S <- x[[g]]
    pairs <- which(lower.tri(S) & S != 0, arr.ind = TRUE) # independent effects have no covariance
    names <- rownames(S)
    data.frame(grp = g, var1 = c(names, names[pairs[, 2L]]), var2 = c(rep(NA, nrow(S)), names[pairs[, 1L]]),
               vcov = c(diag(S), S[pairs]), sdcor = unname(c(attr(S, "stddev"), attr(S, "correlation")[pairs])))
  })
  sc <- attr(x, "sc")
  noise <- if (!is.na(sc)) data.frame(grp = "Residual", var1 = NA, var2 = NA, vcov = sc^2, sdcor = sc)
  do.call(rbind, c(tables, list(noise)))
}

format_each <- function(v, digits) ifelse(is.na(v), NA, vapply(signif(v, digits), format, ""))

# Returns the correlations of each effect with earlier effects of its group, as text for print().
correlations_in_words <- function(x, digits) {
  unlist(lapply(unclass(x), function(S) {
    R <- attr(S, "correlation")
    vapply(seq_len(nrow(R)), function(i) {
      earlier <- R[i, seq_len(i - 1L)]
      if (any(earlier != 0)) paste(format_each(earlier, min(digits, 3L)), collapse = " ") else NA_character_
    }, "")
  }), use.names = FALSE)
}

fit_with_groups <- function(fit, argument) {
  fit <- check_any_fit(fit, argument)
  refuse_if(!length(group_roots(fit$kernel)), argument, "has no groups", hint = "Fit a term such as (1 | g).")
  fit
}

# Returns group_roots() with, for each group, its name `by`, its `levels`, and `codes`, the numbers of the levels in x.
groups_of_fit <- function(fit) {
  kernel <- as_sum(fit$kernel)
  lapply(group_roots(kernel), function(term) {
    variable <- Find(function(v) v$kind == "group" && v$name == fit$frame$columns[term$level], fit$frame$variables)
    codes <- if (is.null(variable)) sort(unique(fit_points(fit)[, term$level])) else seq_along(variable$levels)
    by <- kernel$leaves[[kernel$terms[[term$term]]$leaves]]$group$by
    c(term, list(by = if (is.language(by)) deparse1(by) else as.character(by), codes = codes,
                 levels = if (is.null(variable)) as.character(codes) else variable$levels))
  })
}

# Returns the posterior of a group's effects: a data frame `mean` with a row for each level and, with `covariances`,
# `cov` [effect, effect, level]. The covariance of two effects follows from the variances of both and of their sum.
effects_of_levels <- function(fit, term, covariances) {
  p <- length(term$effects)
  pairs <- which(upper.tri(diag(1, p)), arr.ind = TRUE)
  of <- if (covariances) with_pairs(p, pairs) else diag(1, p)
  posterior <- posterior_of(fit)
  roots <- group_roots(as_kernel(posterior$model$kernel))
  own <- roots[[match(term$name, vapply(group_roots(fit$kernel), `[[`, "", "name"))]]
  fun <- level_effects(own, term$codes, of, fit_points(fit)[1L, , drop = FALSE])
  at <- in_response_units(fit, posterior_at(posterior, fun))
  mean <- t(matrix(at$mean, nrow(of))[seq_len(p), , drop = FALSE])
  dimnames(mean) <- list(term$levels, term$effects)
  mean <- as.data.frame(mean, optional = TRUE)
  if (!covariances) return(list(mean = mean))
  var <- matrix(at$var, nrow(of))
  cov <- array(0, c(p, p, length(term$codes)), list(term$effects, term$effects, term$levels))
  for (i in seq_len(p)) cov[i, i, ] <- var[i, ]
  for (k in seq_len(nrow(pairs))) {
    ij <- pairs[k, ]
    cov[ij[1L], ij[2L], ] <- cov[ij[2L], ij[1L], ] <- (var[p + k, ] - var[ij[1L], ] - var[ij[2L], ]) / 2
  }
  list(mean = mean, cov = cov)
}

# Returns the table of groups for summary(), with a row for each effect, or NULL. `share` is the group's share of the
# prior variance of the response (of f if not Gaussian), without the linear mean, averaged over at most 2,000 rows.
group_table <- function(fit) {
  if (!length(group_roots(fit$kernel))) return(NULL)
  x <- if (is.null(fit$data)) fit_points(fit) else fit$data$x
  x <- x[evenly(nrow(x), 2000L), , drop = FALSE]
  each <- vapply(kernels_of_terms(fit$kernel), function(k) mean(kernel_diagonal(k, x)), 0)
  kernel <- with_own_terms(fit$kernel)
  vague <- vapply(kernel$terms, function(t) is_mean(kernel$leaves[[t$leaves[1L]]]), NA)
  share <- each[plain_groups(kernel)] / (sum(each[!vague]) + if (response_of(fit)$conjugate) stats::sigma(fit)^2 else 0)
  out <- do.call(rbind, Map(function(term, share) {
    rest <- rep(NA, length(term$effects) - 1L)
    data.frame(group = term$by, effect = term$effects, sd = sqrt(diag(tcrossprod(term$root))),
               levels = c(length(term$levels), rest), share = c(share, rest))
  }, groups_of_fit(fit), share))
  out$correlation <- correlations_in_words(VarCorr.gp_fit(fit), 3L)
  out
}
