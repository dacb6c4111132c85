# report(): what a paper or an R Markdown document says of a fit.

#' Report on a fit
#'
#' A paragraph and a table: data, kernel, hyperparameters and how they were found, what the posterior is made of, how
#' far it is certified to be from the exact one, evidence, leave-one-out error, time. In R Markdown and Quarto a chunk
#' that ends in `report(fit)` shows both as text and a table of the document (by `knitr::knit_print()`).
#'
#' The certified error is that of a fit with `tol`, or [certify()]'s at the rows of `newdata`. Leave-one-out is left
#' out for fits without their data; of classes and counts it is the mean of minus the log density of a response (NLPD)
#' with Brier's score and the share of rows on the likelier side, or the RMSE.
#'
#' @param x A fit; in the print method, a report.
#' @param newdata Rows to certify the fit at, as for [certify()]; `NULL`: none.
#' @param digits Significant digits.
#' @param ... Nothing: an unknown argument is an error.
#' @return An object of class `pfdtc_report`: a list with `text`, a string, and `table`, a data frame with columns
#'   `what` and `value` (character).
#' @section Errors: those of [certify()], where `newdata` is given.
#' @section Invariants: the table has every element of `coef()`.
#' @source [certify()], [evidence_bounds()], [leave_one_out]
#' @seealso [summary()][gp_fit-methods]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se())
#' report(fit)
#' @export
report <- function(x, ...) UseMethod("report")

# Package report has a generic of the same name, which this one masks when pfdtc is attached later. Other objects go
# to that one.
#' @export
report.default <- function(x, ...) {
  if (isNamespaceLoaded("report")) return(getExportedValue("report", "report")(x, ...))
  abort_input("x", describe(x), "a Gaussian process fit")
}

#' @rdname report
#' @export
#' @rawNamespace S3method(report::report,gp_fit)
report.gp_fit <- function(x, newdata = NULL, digits = 3, ...) {
  check_dots_empty(list(...), names(formals(report.gp_fit)))
  fit <- check_any_fit(x, "x")
  digits <- check_count(digits, "digits")
  number <- function(v) vapply(signif(unname(v), digits), format, "", big.mark = ",")
  about <- fit_facts(fit)
  levels <- fit$likelihood$levels
  evidence <- stats::logLik(fit)
  table <- c(
    Response = response_name(fit), Family = if (is.null(fit$theta)) fit$likelihood$label else about$response,
    Success = if (length(levels) == 2L) sprintf("\"%s\"", levels[2L]), Data = about$data, Method = about$title,
    Kernel = kernel_label(about),
    stats::setNames(number(stats::coef(fit)), names(stats::coef(fit))), Hyperparameters = about$estimation,
    Posterior = about$points, Neighbours = about$neighbours,
    "Certified error" = report_certificate(fit, newdata, number),
    "Log evidence" = report_evidence(fit, evidence), "Leave-one-out" = report_loo(fit, number),
    Time = sprintf("%s s", number(sum(fit$seconds))), Software = sprintf("pfdtc %s", format(fit$version)))
  table <- table[!is.na(table)]
  structure(list(text = report_text(fit, table), table = data.frame(what = names(table), value = unname(table))),
            class = "pfdtc_report")
}

report_certificate <- function(fit, newdata, number) {
  if (!is.null(newdata)) {
    certified <- certify(fit, newdata)
    most <- function(v) number(max(v, na.rm = TRUE))
    if (!response_of(fit)$conjugate) {
      off <- pmax(certified$response_upper - certified$response, certified$response - certified$response_lower)
      return(sprintf("modes of f within %s (%s sds of f) of the exact process's at %d rows%s",
                     most(certified$mean_error), most(certified$mean_error / certified$sd), nrow(certified),
                     if (length(off)) sprintf(", %s within %s", if (response_of(fit)$reads == "classes") "probabilities"
                                              else "rates", most(off)) else ""))
    }
    return(sprintf("means within %s (%s sds of the response) of the exact posterior's at %d rows",
                   most(certified$mean_error), most(certified$mean_error / fit$sd_y), nrow(certified)))
  }
  if (!is.null(fit$tol)) return(describe_tolerance(fit))
  if (is_exact(fit)) "none: the posterior is the exact one" else NA_character_
}

report_evidence <- function(fit, evidence) {
  lower <- attr(evidence, "lower")
  by_laplace <- if (!response_of(fit)$conjugate && !is_variational(fit$likelihood))
    " by Laplace's approximation" else ""
  nats <- function(v) sprintf("%.1f", v)
  upper <- attr(evidence, "upper")
  paste0(if (is_exact(fit) || is.null(lower)) nats(evidence) else if (!is.finite(upper)) paste("at least", nats(lower))
         else sprintf("between %s and %s", nats(lower), nats(upper)), by_laplace)
}

report_loo <- function(fit, number) {
  if (is.null(fit$data)) return(NA_character_)
  if (!response_of(fit)$conjugate) {
    s <- scores_left_out(fit)
    of_classes <- if (!is.na(s$brier)) sprintf("; Brier score %s; %.0f %% on the likelier side", number(s$brier),
                                               100 * s$accuracy)
    return(sprintf("NLPD %s%s", number(s$nlpd), if (is.null(of_classes)) sprintf("; RMSE %s", number(s$rmse)) else
      of_classes))
  }
  z <- stats::rstandard(fit)
  sprintf("RMSE %s (sd of the response %s); %.0f %% of the responses inside their 95 %% intervals",
          number(root_mean_square(stats::residuals(fit, type = "loo"))), number(fit$sd_y),
          100 * mean(abs(z) <= stats::qnorm(0.975), na.rm = TRUE))
}

report_text <- function(fit, table) {
  rests <- if (is_exact(fit)) "The posterior is the exact one of these rows" else
    paste0("The posterior rests on ", paste(stats::na.omit(table[c("Posterior", "Neighbours")]), collapse = "; "))
  sentence <- function(name, format) if (!is.na(table[name])) sprintf(format, table[name])
  paste(c(
    sprintf("A Gaussian process was fitted to %s (%s) by %s.", table["Response"], table["Data"], table["Software"]),
    sentence("Family", "Likelihood: %s."),
    sprintf("Kernel: %s; hyperparameters: %s. %s.", table["Kernel"], table["Hyperparameters"], rests),
    if (!is_exact(fit)) sentence("Certified error", "Certified: %s."), sentence("Log evidence", "Log evidence: %s."),
    sentence("Leave-one-out", "Leaving out each row in turn: %s."), sentence("Time", "The fit took %s.")),
    collapse = " ")
}

#' @rdname report
#' @export
print.pfdtc_report <- function(x, ...) {
  cat(wrap(x$text), sep = "\n")
  cat("\n")
  width <- max(nchar(x$table$what)) + 2L
  print_fields(stats::setNames(x$table$value, x$table$what), width)
  invisible(x)
}

#' @exportS3Method knitr::knit_print
knit_print.pfdtc_report <- function(x, ...) {
  knitr::asis_output(paste0("\n\n", x$text, "\n\n", paste(knitr::kable(x$table), collapse = "\n"), "\n\n"))
}
