# Defines report(): a paragraph and a table for a paper or an R Markdown document.

#' Report on a fit
#'
#' Returns a paragraph and a table with data, kernel, hyperparameters, posterior, certified error, log marginal
#' likelihood, leave-one-out scores and time. In R Markdown a chunk that ends in `report(fit)` shows both.
#' @param x A fit. For `print()`, a report.
#' @param newdata Rows at which the report certifies predictions, as in [certify()]. By default it certifies none, and a
#'   fit with `tol` reports the error certified during the fit.
#' @param digits Number of significant digits.
#' @param ... Not used.
#' @return An object of class `pfdtc_report`: a list with `text`, a string, and `table`, a data frame with columns
#'   `what` and `value` (character). The table has every element of `coef()`, and the sd for each variance.
#' @seealso [summary()][gp_fit-methods], [certify()]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_se())
#' report(fit)
#' @export
report <- function(x, ...) UseMethod("report")

# Package report has a generic of the same name. If pfdtc is attached later it masks that generic, and passes other
# objects on to it.
#' @export
report.default <- function(x, ...) {
  if (isNamespaceLoaded("report")) return(getExportedValue("report", "report")(x, ...))
  abort_input("x", describe(x), "a fit returned by pfdtc()")
}

#' @rdname report
#' @export
#' @rawNamespace S3method(report::report,gp_fit)
report.gp_fit <- function(x, newdata = NULL, digits = 3, ...) {
  check_dots_empty(list(...), names(formals(report.gp_fit)))
  fit <- check_any_fit(x, "x")
  refuse_if(is.character(newdata), "newdata", "must be rows to certify the fit at",
            hint = "report() writes no file: use writeLines(report(fit)$text, file).")
  digits <- check_count(digits, "digits")
  number <- function(v) vapply(signif(unname(v), digits), format, "", big.mark = ",")
  about <- fit_facts(fit)
  fact <- lapply(about$fields, function(text) if (!is.null(text)) fill_numbers(text, number))
  response <- response_of(fit)
  name <- response_name(fit)
  theta <- stats::coef(fit)
  if (!is.null(fit$noise_trend$smooth)) theta <- theta[names(theta) != "noise"] # `Noise` has its range
  is_variance <- grepl("(^|[.])variance$|^noise$", names(theta))
  value <- paste0(number(theta), ifelse(is_variance, sprintf(" (sd %s)", number(sqrt(abs(theta)))), ""))
  scale <- if (fit_link(fit) != "identity") sprintf("on the %s scale", sub("softmax", "log-odds", fit_link(fit))) else
    if (is.null(fit$transform)) paste("in units of", name) else
      if (fit$transform$kind == "log") sprintf("in units of log(%s)", name) else "in units of the transformed response"
  evidence <- stats::logLik(fit)
  ends <- sprintf("%.1f", c(attr(evidence, "lower"), attr(evidence, "upper")))
  evidence <- if (is_exact(fit) || !length(ends)) sprintf("%.1f", evidence) else
    if (is.infinite(attr(evidence, "upper"))) paste("at least", ends[1L]) else
      if (ends[1L] == ends[2L]) ends[1L] else sprintf("between %s and %s", ends[1L], ends[2L])
  table <- c(
    Response = name, Family = if (is.null(fit$theta)) fit$likelihood$label else fact$Response,
    Success = if (response$reads == "classes" && length(response$levels) == 2L) {
      sprintf("\"%s\"", response$levels[2L])
    },
    Transform = if (!is.null(fit$transform)) fact$Response,
    Data = fact$Data, Method = about$title, Mean = fact$Mean, Kernel = fact$Kernel,
    Noise = fact$Noise, "Noise tails" = fact[["Noise tails"]],
    Units = paste0("sds are ", scale, ", lengthscales in units of their inputs (levels of factors are 0 or 1)"),
    stats::setNames(value, names(theta)),
    Estimation = fact$Estimation, Posterior = fact$Posterior, Neighbours = fact$Neighbours,
    "Certified error" = report_certificate(fit, newdata, number),
    "Log marginal likelihood" = paste0(evidence, if (response$approx == "laplace") " (Laplace approximation)"),
    "Leave-one-out" = report_loo(fit, number), Time = sprintf("%s s", number(sum(fit$seconds))),
    Software = sprintf("pfdtc %s", format(fit$version)))
  table <- table[!is.na(table)]

  made_of <- if (is_exact(fit)) "exact" else paste(stats::na.omit(table[c("Posterior", "Neighbours")]), collapse = "; ")
  sentence <- function(name, format = paste0(name, ": %s.")) if (!is.na(table[name])) sprintf(format, table[name])
  text <- paste(c(
    sprintf("A Gaussian process was fitted to %s by %s. Data: %s.", name, table["Software"], table["Data"]),
    sentence("Family", "Likelihood: %s."), sentence("Transform"), sentence("Mean"), sentence("Kernel"),
    sentence("Noise"), sentence("Noise tails"), sentence("Units", "Here %s."), sentence("Estimation"),
    sprintf("Posterior: %s.", made_of),
    if (!is_exact(fit)) sentence("Certified error", "Certified: %s."), sentence("Log marginal likelihood"),
    sentence("Leave-one-out"), sentence("Time", "The fit took %s.")), collapse = " ")
  structure(list(text = text, table = data.frame(what = names(table), value = unname(table))), class = "pfdtc_report")
}

report_certificate <- function(fit, newdata, number) {
  if (is.null(newdata)) {
    return(if (!is.null(fit$tol)) describe_tolerance(fit) else
      if (is_exact(fit)) "0: the posterior is exact" else NA_character_)
  }
  certified <- certify(fit, newdata)
  most <- function(v) number(max(v, na.rm = TRUE))
  conjugate <- response_of(fit)$conjugate
  off <- pmax(certified$response_upper - certified$response, certified$response - certified$response_lower)
  sprintf("posterior %s within %s (%s sd of %s) of the exact GP at %d rows%s", if (conjugate) "mean" else "mode of f",
          most(certified$mean_error), most(certified$mean_error / if (conjugate) fit$sd_y else certified$sd),
          if (conjugate) "the response" else "f", nrow(certified), if (conjugate || !length(off)) "" else
            sprintf(", %s within %s", if (response_of(fit)$reads %in% c("classes", "ordered", "labels"))
              "probabilities" else "rates", most(off)))
}

report_loo <- function(fit, number) {
  if (is.null(fit$data)) return(NA_character_)
  if (response_of(fit)$conjugate) {
    z <- stats::rstandard(fit)
    return(sprintf("RMSE %s (sd of the response %s); 95 %% intervals contain %.0f %% of the responses",
                   number(root_mean_square(stats::residuals(fit, type = "loo"))),
                   number(if (is.null(fit$transform)) fit$sd_y else stats::sd(given_response(fit$data))),
                   100 * mean(abs(z) <= stats::qnorm(0.975), na.rm = TRUE)))
  }
  s <- training_scores(fit)
  paste0("NLPD ", number(s$nlpd), if (is.na(s$brier)) paste("; RMSE", number(s$rmse)) else
    sprintf("; Brier score %s; accuracy %.0f %%", number(s$brier), 100 * s$accuracy))
}

#' @rdname report
#' @export
print.pfdtc_report <- function(x, ...) {
  cat(wrap(x$text), sep = "\n")
  cat("\n")
  print_fields(stats::setNames(as.list(x$table$value), x$table$what), width = max(nchar(x$table$what)) + 2L)
  invisible(x)
}

#' @exportS3Method knitr::knit_print
knit_print.pfdtc_report <- function(x, ...) {
  knitr::asis_output(paste0("\n\n", x$text, "\n\n", paste(knitr::kable(x$table), collapse = "\n"), "\n\n"))
}
