#' Partial dependence, with certified intervals
#'
#' The average of f over rows, as a function of one variable that takes the same value in all of them. The sd is that of
#' the average, not an average of sds. With `type = "response"` the averages are those of the mean response, their sd is a
#' first-order approximation, and there is no certificate.
#'
#' @inheritParams linear_functional
#' @param variable name of a variable of the data, or for a fit from a matrix the name or number of a column.
#' @param newdata rows to average over; default: up to 200 training rows.
#' @param at values of the variable; default: `n` values from the smallest to the largest one, or all levels of a factor.
#' @param weights a weight for each row of `newdata`, scaled to sum to 1; default: equal weights.
#' @param n number of values.
#' @param type `"link"` for f, or `"response"`.
#' @return A data frame of class `pfdtc_dependence`, which `plot()` and `autoplot()` draw, with a row for each value:
#'   the value, in a column with the name of the variable, and the columns of [linear_functional()].
#' @examples
#' fit <- gp_exact(mpg ~ wt + hp, mtcars, kernel = kernel_se())
#' partial_dependence(fit, "wt", at = c(2, 3, 4))
#' plot(partial_dependence(fit, "wt"))
#' @seealso [linear_functional()], [plot.gp_fit()]
#' @section Errors and invariants: class `pfdtc_error_input` for an unknown variable. With one row of `newdata` it is
#'   the posterior at that row, with the variable changed.
#' @source Friedman (2001), Greedy function approximation: a gradient boosting machine, *Annals of Statistics* 29.
#' @export
partial_dependence <- function(fit, variable, newdata, at = NULL, weights = NULL, certified = is.null(fit$likelihood),
                               effort = c("reference", "fast", "tight"), ..., reference = fit$reference, m2 = NULL,
                               max_seconds = if (effort == "tight") Inf else 10, n = 20,
                               type = c("link", "response")) {
  check_dots_empty(list(...), names(formals(partial_dependence)))
  fit <- check_any_fit(fit, "fit")
  certified <- check_flag(certified, "certified")
  effort <- check_choice(effort, c("reference", "fast", "tight"), "effort")
  type <- check_choice(type, c("link", "response"), "type")
  values <- check_count(n, "n", min = 2)
  if (certified) refuse_likelihood(fit, "fit", "A certificate of a functional")
  if (missing(newdata)) {
    rows <- rows_to_average(fit)
  } else {
    good <- is.data.frame(newdata) || is.matrix(newdata) || (is.list(newdata) && !is.object(newdata))
    if (!good) abort_input("newdata", describe(newdata), "a data frame")
    rows <- as.data.frame(newdata)
  }
  variable <- dependence_variable(fit, variable, rows)
  if (is.null(at)) at <- dependence_values(rows[[variable]], values)
  if (!is.atomic(at) || !length(at) || (is.object(at) && !is.factor(at) && !is_time(at))) {
    abort_input("at", describe(at), "values of the variable")
  }
  n <- nrow(rows)
  weights <- if (is.null(weights)) rep(1, n) else check_positive(weights, "weights", n)
  moved <- rows[rep(seq_len(n), length(at)), , drop = FALSE]
  moved[[variable]] <- rep(at, each = n)
  new <- new_rows(fit, moved, stats::na.pass)
  each <- lapply(seq_along(at), function(i) (i - 1L) * n + seq_len(n))
  weights <- weights / sum(weights)
  scale <- if (type == "response") response_slopes(fit, new)
  functionals <- lapply(each, function(i) list(rows = i, weights = weights * if (is.null(scale)) 1 else scale$slope[i]))
  out <- functionals_of_rows(fit, functionals, NULL, new, certified, effort, reference, m2, max_seconds)
  if (!is.null(scale)) out$mean <- vapply(each, function(i) sum(weights * scale$mean[i]), 0)
  kept <- attributes(out)[c("effort", "m2", "sd_y")]
  out <- cbind(stats::setNames(data.frame(at), variable), as.data.frame(unclass(out)))
  attributes(out) <- c(attributes(out), kept[!vapply(kept, is.null, NA)],
                       list(label = paste("average of", dependence_label(fit, type))))
  class(out) <- c("pfdtc_dependence", "data.frame")
  out
}

dependence_label <- function(fit, type) {
  name <- if (is.null(fit$terms)) "y" else deparse1(fit$terms[[2L]])
  if (response_of(fit)$conjugate) name else if (type == "link") paste("f, for", name) else paste("mean response,", name)
}

# Returns the mean response at each row, and its slope in the mean of f by central differences.
response_slopes <- function(fit, new) {
  p <- latent_at(fit, new$x)
  mean <- p$mean[new$index]
  var <- p$var[new$index]
  if (response_of(fit)$conjugate) return(list(mean = mean, slope = rep(1, length(mean))))
  at <- function(h) response_moments(response_of(fit), mean + h, var)$mean
  list(mean = at(0), slope = (at(1e-4) - at(-1e-4)) / 2e-4)
}

rows_to_average <- function(fit, most = 200L) {
  rows <- stats::model.frame(fit)
  if (is.null(fit$terms)) {
    rows <- rows[-1L]
  } else if (!all(all.vars(stats::delete.response(stats::terms(fit))) %in% names(rows))) {
    abort_input("newdata", "missing", "given where the formula transforms its variables")
  }
  rows[evenly(nrow(rows), most), , drop = FALSE]
}

dependence_variable <- function(fit, variable, rows) {
  if (is.numeric(variable) && length(variable) == 1L && is.null(fit$terms)) variable <- names(rows)[variable]
  if (!is.character(variable) || length(variable) != 1L || !variable %in% names(rows)) {
    abort_input("variable", describe(variable), sprintf("the name of a variable: %s", list_quoted(names(rows))))
  }
  variable
}

dependence_values <- function(v, n) {
  if (is.factor(v)) return(factor(levels(v), levels(v), ordered = is.ordered(v)))
  if (!is.numeric(v)) return(sort(unique(v)))
  if (length(unique(v)) <= n) return(sort(unique(v)))
  seq(min(v, na.rm = TRUE), max(v, na.rm = TRUE), length.out = n)
}
