# Which of several fits of the same data has the greater evidence, as far as its brackets say.

#' Compare the evidence of fits
#'
#' The log evidence of two fits or more of the same response, of nested kernels (fewer inputs, say) or rival ones, with
#' brackets and what these leave open of the differences.
#'
#' Each row is compared with the one above it. `difference` is that of `logLik()`. Where this is exact, so is the
#' difference. Of inducing points `logLik()` is a lower bound, and the exact log evidence lies between `lower` and
#' `upper` ([evidence_bounds()]); the difference of the exact ones then lies between `at_least` and `at_most`. Where
#' these have the same sign the brackets tell which of the two is better. Where they do not, the fits cannot be told
#' apart by what is known: a [reference()] kept in a fit narrows its bracket. Beside near rows `logLik()` is an estimate
#' without a bracket (`NA`), and so it is of [gp_sor()], [gp_fitc()] and [gp_subsample()], which are models of their
#' own.
#'
#' Of classes and counts the log evidence is that of Laplace's approximation, and brackets are of that of the exact
#' process; by `approx = "vi"` it is a lower bound of the true one, without an upper end. Families are compared like
#' kernels, such as [poisson()] and [nb()], or the two links of [binomial()].
#'
#' There are no p-values. Twice a difference is not chi-squared here: hyperparameters were learned with priors, an input
#' without effect has its lengthscale at the end of its range, and of fits by inducing points all of this is known
#' within brackets only. Differences are in nats: 1 is little, 5 is a lot, whatever the number of rows. A kernel with
#' more hyperparameters has an advantage of about half a nat for each that does nothing; `AIC` (with 1 for each) takes
#' that off.
#'
#' @param object A fit.
#' @param ... Other fits of the same data.
#' @return A data frame of classes `anova` and `data.frame` with a row a fit, named as the arguments are written: `df`
#'   (hyperparameters learned), `logLik`, `lower`, `upper`, `AIC`, and against the row above `difference`, `at_least`,
#'   `at_most`. Attribute `heading` says what differs and which pairs are told apart.
#' @section Errors: class `pfdtc_error_input` for a single fit, something else than fits, or fits of other data.
#' @section Invariants: `at_least <= difference of the exact log evidences <= at_most`.
#' @seealso [logLik.gp_fit], [AIC.gp_fit], [evidence_bounds()], [compare_fits()] for predictions
#' @examples
#' both <- pfdtc(depth ~ lat + long, quakes[1:200, ], kernel = kernel_matern(3/2))
#' one <- update(both, depth ~ long)
#' anova(one, both)
#' @importFrom stats anova
#' @export
anova.gp_fit <- function(object, ...) {
  fits <- list(object, ...)
  labels <- fit_labels(match.call())
  if (length(fits) < 2L) {
    abort_input("...", "empty", "one or more further fits of the same data",
                hint = "anova() compares fits. For the terms of a single fit use drop1(), which refits without each.")
  }
  for (i in seq_along(fits)) fits[[i]] <- check_any_fit(fits[[i]], labels[i])
  for (i in seq_along(fits)[-1L]) {
    if (!same_response(fits[[1L]], fits[[i]])) {
      abort_input(labels[i], "a fit of other data", sprintf("one of the data of %s", labels[1L]),
                  hint = paste("Evidence is compared for the same response, with the same weights and offset, and not",
                               "densities of numbers with probabilities of classes or counts."))
    }
  }
  ll <- lapply(fits, stats::logLik)
  part <- function(what) part_of_each(ll, what)
  value <- vapply(ll, as.double, 0)
  lower <- part("lower")
  upper <- part("upper")
  above <- function(v) c(NA, v[-length(v)])
  table <- data.frame(df = part("df"), logLik = value, lower = lower, upper = upper, AIC = 2 * (part("df") - value),
                      difference = value - above(value), at_least = lower - above(upper),
                      at_most = upper - above(lower), row.names = labels)
  title <- "Log marginal likelihood (in nats) of fits of the same response\n"
  structure(table, heading = c(title, anova_models(fits, labels), anova_verdicts(table)),
            class = c("anova", "data.frame"))
}

# The same rows, responses, weights, numbers of trials and offset; the inputs may differ. Densities of numbers are not
# probabilities of classes or counts.
same_response <- function(a, b) {
  discrete <- function(fit) response_of(fit)$discrete
  if (discrete(a) != discrete(b)) return(FALSE)
  if (discrete(a) && !isTRUE(all.equal(a$sum_of_sites, b$sum_of_sites))) return(FALSE)
  of <- function(fit) fit$signature$sums[c("n", "w", "y", "yy")]
  size <- pmax(a$signature$size[c("n", "w", "y", "yy")], b$signature$size[c("n", "w", "y", "yy")])
  all(abs(of(a) - of(b)) <= 8 * (sqrt(of(a)[["n"]]) + 16) * .Machine$double.eps * size)
}

anova_models <- function(fits, labels) {
  what <- vapply(fits, function(fit) {
    sprintf("%s%s kernel, %s", if (is.null(fit$terms)) "" else paste0(deparse1(stats::formula(fit)), ": "),
            kernel_name(fit$kernel), if (response_of(fit)$conjugate) posterior_title(fit) else
              sprintf("%s, %s", fit$likelihood$label, words_for(fit$likelihood)[["by"]]))
  }, "")
  lines <- strwrap(sprintf("%s: %s", labels, what), width = 78L, exdent = 4L)
  paste0(paste(lines, collapse = "\n"), "\n")
}

kernel_name <- function(kernel) paste(kernel$label, collapse = " ")

# What the brackets say of each row and the one above it.
anova_verdicts <- function(table) {
  names <- row.names(table)
  says <- vapply(seq_along(names)[-1L], function(i) {
    if (is.na(table$at_least[i])) {
      sprintf("%s, %s: there are no bounds, only a difference of estimates", names[i - 1L], names[i])
    } else if (table$at_least[i] > 0 || table$at_most[i] < 0) {
      sprintf("%s has a higher log marginal likelihood than %s, by at least %.1f", names[i - (table$at_most[i] < 0)],
              names[i - (table$at_least[i] > 0)], max(table$at_least[i], -table$at_most[i]))
    } else {
      sprintf("%s, %s: the bounds overlap, so either may be better", names[i - 1L], names[i])
    }
  }, "")
  paste0(paste(strwrap(says, width = 78L, exdent = 4L), collapse = "\n"), "\n")
}
