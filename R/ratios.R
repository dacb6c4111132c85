#' @rdname linear_functional
#' @export
ratios <- function(fit, newdata, than, level = 0.95, certified = FALSE, ...) {
  fit <- check_one_function(check_any_fit(fit, "fit"))
  level <- check_level(level)
  certified <- check_flag(certified, "certified")
  response <- response_of(fit)
  kind <- if (!is.null(response$ratio)) response$ratio(response$theta) else if (!response$conjugate)
    list(logit = c("odds ratio" = 1), log = c("ratio of means" = 1))[[response$link_name]]
  if (is.null(kind)) {
    abort_input("fit", sprintf("a fit with family %s", response$label), "one whose link is the logit or the log")
  }
  if (!is.data.frame(newdata)) abort_input("newdata", describe(newdata), "a data frame")
  n <- nrow(newdata)
  if (!is.data.frame(than) || !nrow(than) %in% c(1L, n) || !all(names(than) %in% names(newdata))) {
    abort_input("than", describe(than), "a data frame like `newdata`, of one row or of as many")
  }
  weights <- cbind(diag(n), if (nrow(than) == 1L) matrix(-1, n, 1) else -diag(n))
  new <- rbind(newdata[names(than)], than)
  found <- linear_functional(fit, weights, new, certified = certified, ...)
  z <- stats::qnorm((1 + level) / 2)
  ends <- function(lower, upper) {
    both <- exp(kind * cbind(lower, upper))
    list(pmin(both[, 1L], both[, 2L]), pmax(both[, 1L], both[, 2L]))
  }
  out <- data.frame(ratio = exp(unname(kind) * found$mean))
  out[c("lwr", "upr")] <- ends(found$mean - z * found$sd, found$mean + z * found$sd)
  if (certified) {
    out[c("lwr_certified", "upr_certified")] <- ends(found$mean_lower - z * found$sd_upper,
                                                     found$mean_upper + z * found$sd_upper)
  }
  structure(out, of = names(kind), row.names = row.names(newdata))
}
