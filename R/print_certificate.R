#' Print certificates
#'
#' What the intervals of [certify()] come to, in a sentence or two, before their first rows.
#'
#' @param x what [certify()] returned, or some rows of it.
#' @param n the most rows to print.
#' @param digits significant digits to print.
#' @param ... passed on to [print.data.frame()].
#' @return `x`, invisibly.
#' @section Errors: class `pfdtc_error_input` for a bad `n`. Without some of its columns `x` is printed as a data frame.
#' @source [certify()].
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, m = 4)
#' fit$reference <- reference(fit)
#' print(certify(fit), n = 3)
#' @export
print.pfdtc_certificate <- function(x, n = 10, digits = max(3L, getOption("digits") - 3L), ...) {
  n <- check_count(n, "n", min = 0)
  said <- c("mean_error", "sd", "sd_lower", "sd_upper")
  if (is.null(attr(x, "effort")) || !is.null(attr(x, "figure")) || !all(said %in% names(x))) {
    print(as.data.frame(unclass(x), row.names = attr(x, "row.names"), optional = TRUE), digits = digits, ...)
    return(invisible(x))
  }
  cat(wrap(certificate_sentence(x)), sep = "\n")
  if (!is.null(attr(x, "likelihood"))) {
    cat(wrap(paste("The exact mean and sd are those of the exact process's Laplace posterior of f at the fit's",
                   "hyperparameters; how far that is from the true posterior is not certified.")), sep = "\n")
    if (!is.null(attr(x, "check"))) cat(wrap(laplace_check_sentence(attr(x, "check"))), sep = "\n")
  }
  if (!is.null(attr(x, "weights"))) {
    cat(wrap(sprintf(paste("Of the mixture over uncertain hyperparameters: the exact one has the same %d parts, and",
                           "weights by the exact evidence."), nrow(attr(x, "weights")))), sep = "\n")
  }
  if (!is.null(attr(x, "advice"))) cat(wrap(attr(x, "advice")), sep = "\n")
  rows <- utils::head(seq_len(nrow(x)), n)
  if (length(rows)) print(as.data.frame(lapply(x, `[`, rows), row.names = row.names(x)[rows]), digits = digits, ...)
  more <- nrow(x) - length(rows)
  if (more > 0L) cat(sprintf("... and %d more row%s\n", more, plural_s(more)))
  invisible(x)
}

certificate_sentence <- function(x) {
  number <- function(v) format(signif(v, 3))
  m2 <- attr(x, "m2")
  passes <- attr(x, "passes")
  seconds <- attr(x, "seconds")
  how <- paste0("effort \"", attr(x, "effort"), "\"", if (!is.null(m2)) sprintf(", reference of %.0f points", m2),
                if (isTRUE(passes > 0)) {
                   sprintf(", %.0f pass%s over all pairs of rows", passes, if (passes > 1) "es" else "")
                 },
                if (isTRUE(seconds >= 0.1)) sprintf(", %.1f s", seconds))
  known <- !is.na(x$mean_error)
  head <- sprintf("Certificates of %d row%s (%s)", nrow(x), plural_s(nrow(x)), how)
  if (!any(known)) return(paste0(head, "."))
  unit <- attr(x, "sd_y")
  largest <- max(x$mean_error[known])
  of_sd <- if (isTRUE(unit > 0)) sprintf(" (%s sd(y))", number(largest / unit)) else ""
  ratio <- range(c(x$sd_lower / x$sd, x$sd_upper / x$sd)[x$sd > 0], na.rm = TRUE, finite = TRUE)
  sds <- if (all(is.finite(ratio))) {
    sprintf(", and its sd is between %s and %s times `sd`", number(ratio[1L]), number(ratio[2L]))
  }
  paste0(head, ": the exact mean is within ", number(largest), of_sd, " of `mean`", sds, ".")
}
