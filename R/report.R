# report(): a paragraph and a table for a paper or an R Markdown document.

#' Report on a fit
#'
#' Returns a paragraph and a table: data, kernel, hyperparameters, posterior, certified error, log marginal likelihood,
#' leave-one-out error and time. In R Markdown and Quarto a chunk that ends in `report(fit)` shows both.
#'
#' For a non-Gaussian likelihood leave-one-out is the mean negative log density of a response (NLPD) with the Brier
#' score and the accuracy, or the RMSE.
#'
#' @param x A fit; in the print method, a report.
#' @param newdata Rows to certify the fit at, as for [certify()]. Default: none; a fit with `tol` has its certified
#'   error.
#' @param digits Number of significant digits.
#' @param ... Not used.
#' @return An object of class `pfdtc_report`: a list with `text`, a string, and `table`, a data frame with columns
#'   `what` and `value` (character). The table has every element of `coef()`.
#' @seealso [summary()][gp_fit-methods], [certify()], [evidence_bounds()], [leave_one_out]
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
    stats::setNames(number(stats::coef(fit)), names(stats::coef(fit))), Estimation = about$estimation,
    Posterior = about$points, Neighbours = about$neighbours,
    "Certified error" = report_certificate(fit, newdata, number),
    "Log marginal likelihood" = report_evidence(fit, evidence), "Leave-one-out" = report_loo(fit, number),
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
      return(sprintf("posterior mode of f within %s (%s sd of f) of the exact GP at %d rows%s",
                     most(certified$mean_error), most(certified$mean_error / certified$sd), nrow(certified),
                     if (length(off)) sprintf(", %s within %s", if (response_of(fit)$reads == "classes") "probabilities"
                                              else "rates", most(off)) else ""))
    }
    return(sprintf("posterior mean within %s (%s sd of the response) of the exact GP at %d rows",
                   most(certified$mean_error), most(certified$mean_error / fit$sd_y), nrow(certified)))
  }
  if (!is.null(fit$tol)) return(describe_tolerance(fit))
  if (is_exact(fit)) "none: the posterior is exact" else NA_character_
}

report_evidence <- function(fit, evidence) {
  lower <- attr(evidence, "lower")
  laplace <- response_of(fit)$approx == "laplace"
  nats <- function(v) sprintf("%.1f", v)
  upper <- attr(evidence, "upper")
  value <- if (is_exact(fit) || is.null(lower)) nats(evidence) else
    if (!is.finite(upper)) paste("at least", nats(lower)) else
      if (nats(lower) == nats(upper)) nats(lower) else sprintf("between %s and %s", nats(lower), nats(upper))
  paste0(value, if (laplace) " (Laplace approximation)")
}

report_loo <- function(fit, number) {
  if (is.null(fit$data)) return(NA_character_)
  if (!response_of(fit)$conjugate) {
    s <- training_scores(fit)
    of_classes <- if (!is.na(s$brier)) sprintf("; Brier score %s; accuracy %.0f %%", number(s$brier),
                                               100 * s$accuracy)
    return(sprintf("NLPD %s%s", number(s$nlpd), if (is.null(of_classes)) sprintf("; RMSE %s", number(s$rmse)) else
      of_classes))
  }
  z <- stats::rstandard(fit)
  sprintf("RMSE %s (sd of the response %s); 95 %% intervals contain %.0f %% of the responses",
          number(root_mean_square(stats::residuals(fit, type = "loo"))),
          number(if (is.null(fit$transform)) fit$sd_y else stats::sd(given_response(fit$data))),
          100 * mean(abs(z) <= stats::qnorm(0.975), na.rm = TRUE))
}

report_text <- function(fit, table) {
  made_of <- if (is_exact(fit)) "exact" else paste(stats::na.omit(table[c("Posterior", "Neighbours")]), collapse = "; ")
  sentence <- function(name, format) if (!is.na(table[name])) sprintf(format, table[name])
  paste(c(
    sprintf("A Gaussian process was fitted to %s (%s) by %s.", table["Response"], table["Data"], table["Software"]),
    sentence("Family", "Likelihood: %s."),
    sprintf("Kernel: %s. Estimation: %s. Posterior: %s.", table["Kernel"], table["Estimation"], made_of),
    if (!is_exact(fit)) sentence("Certified error", "Certified: %s."),
    sentence("Log marginal likelihood", "Log marginal likelihood: %s."),
    sentence("Leave-one-out", "Leave-one-out: %s."), sentence("Time", "The fit took %s.")),
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
