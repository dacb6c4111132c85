# AIC and BIC, which look at the brackets of the evidence: what logLik() says is a lower bound.

#' @rdname gp_fit-methods
#' @export
AIC.gp_fit <- function(object, ..., k = 2) {
  if (missing(...)) return(-2 * check_any_fit(object, "object")$evidence + k * object$df)
  call <- match.call()
  call$k <- NULL
  compare_criterion(list(object, ...), fit_labels(call), "AIC", function(nobs) k)
}

#' @rdname gp_fit-methods
#' @export
BIC.gp_fit <- function(object, ...) {
  if (missing(...)) return(-2 * check_any_fit(object, "object")$evidence + log(stats::nobs(object)) * object$df)
  compare_criterion(list(object, ...), fit_labels(match.call()), "BIC", log)
}

# What the arguments of a call are written as; fits spliced into it by do.call() have no name.
fit_labels <- function(call) {
  label <- function(a) if (is.symbol(a) || utils::object.size(a) < 20000) clip(deparse1(a)) else "fit"
  make.unique(vapply(as.list(call)[-1L], label, ""))
}

# An attribute of each log likelihood, NA where it has none.
part_of_each <- function(lls, what) vapply(lls, function(ll) as.double(c(attr(ll, what), NA)[1L]), 0)

compare_criterion <- function(fits, labels, name, penalty) {
  lls <- lapply(fits, stats::logLik)
  part <- function(what) part_of_each(lls, what)
  value <- vapply(lls, as.double, 0)
  nobs <- part("nobs")
  if (length(unique(nobs[!is.na(nobs)])) > 1L) {
    warn_evidence(sprintf("%s compares fits of the same responses: these have %s rows.", name,
                          list_quoted(format(unique(nobs), trim = TRUE), quote = "")))
  }
  weight <- penalty(nobs) * part("df")
  out <- -2 * value + weight
  known <- !is.na(part("upper"))
  best <- -2 * ifelse(known, part("upper"), value) + weight
  worst <- -2 * ifelse(known, part("lower"), value) + weight
  overlap <- outer(best, worst, "<") & t(outer(best, worst, "<"))
  overlap[lower.tri(overlap, diag = TRUE)] <- FALSE
  wide <- worst - best > 1e-6 * (1 + abs(out)) # exact posteriors overlap by rounding alone
  overlap <- overlap & outer(wide, wide, "|")
  # row is better than column for certain, and its value says the opposite
  against <- outer(worst, best, "<=") & outer(out, out, ">")
  pairs <- function(of) {
    at <- which(of, arr.ind = TRUE)
    list_quoted(sprintf("%s and %s", labels[at[, 1L]], labels[at[, 2L]]), quote = "", most = 3L)
  }
  says <- c(
    if (any(overlap, na.rm = TRUE)) {
      sprintf("%s does not tell which is better of %s: the brackets of their log evidence overlap.%s", name,
              pairs(overlap), what_narrows(fits, overlap))
    },
    if (any(against, na.rm = TRUE)) {
      sprintf("%s, made of lower bounds, is the wrong way round for %s: by their brackets the first is surely better.",
              name, pairs(against))
    })
  if (length(says)) warn_evidence(paste(says, collapse = "\n"), best = best, worst = worst)
  stats::setNames(data.frame(df = part("df"), value = out, row.names = labels), c("df", name))
}

what_narrows <- function(fits, overlap) {
  at <- which(overlap, arr.ind = TRUE)[1L, ]
  if (same_model(fits[[at[1L]]], fits[[at[2L]]])) return(" They are approximations of the same exact GP.")
  bare <- vapply(fits, function(fit) {
    inherits(fit, "gp_fit") && is.null(fit$reference) && !is.null(fit$data) && !is_variational(fit$likelihood)
  }, NA)
  if (any(bare)) " A reference narrows them: fit$reference <- reference(fit)." else ""
}
