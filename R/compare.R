# Compares fits: predictions, information criteria, and log marginal likelihoods with their brackets.

#' Compare fits
#'
#' One data frame, a row a fit: how far each is from the exact Gaussian process, and how well it predicts.
#'
#' @param fits a list of fits (names become the `method` column), or one fit.
#' @param exact a [gp_exact()] fit of the same data and hyperparameters (of classes and counts one whose points leave
#'   nothing unexplained); without it the columns that need it are `NA`.
#' @param newdata rows to compare at.
#' @param y responses at `newdata`, for predictive measures. `NULL`: taken from `newdata` where the fits have a
#'   formula and it holds the response, else those measures are `NA`. Of classes and counts they are taken so alone.
#' @param pf compute `pf_divergence`, at a cost of \eqn{O(n^3)}? `NULL`: where `exact` has at most 2,000 rows.
#' @param certify compute `certified_mean_error`, and with what effort (see [certify()])? `TRUE` is `"reference"`, in
#'   time \eqn{O(n m_2^2)}{O(n m2^2)}: fits of the same model share one reference, the largest that one of them carries,
#'   or one made here with four times the points of the largest of them. `FALSE`: not at all.
#' @param ... not used.
#' @return A data frame with columns
#'   \describe{
#'   \item{method}{name of the fit, or its method.}
#'   \item{m}{inducing points, or rows of a subsample; `NA` for the exact GP.}
#'   \item{objective}{final value of what was minimised (of the scaled response; comparable within a method only).}
#'   \item{rmse_mean, rmse_sd}{root mean square error of posterior mean and sd of the latent function against the
#'     exact GP's over `newdata`, in units of `y`.}
#'   \item{kl, kl_marginal}{[kl_divergence()] of the processes, and mean marginal one over `newdata`, in nats.}
#'   \item{rmse_pred, nlpd, coverage}{root mean square error of the predictions, mean negative log predictive density
#'     of a new response, share of responses inside the 95 % prediction interval.}
#'   \item{certified_mean_error}{the largest `mean_error` of [certify()] over `newdata`: the fit's mean is nowhere
#'     further from the exact GP's of its own hyperparameters, in units of `y`. It takes no `exact`; `NA` where neither
#'     data nor a reference are at hand.}
#'   \item{seconds, evaluations}{of the whole fit and of its objectives.}
#'   \item{pf_divergence}{[pf_divergence()] with the exact posterior, `NA` for SoR, FITC and subsample.}
#'   }
#' @section Errors: class `pfdtc_error_input` where a fit and `exact` differ in data or hyperparameters, saying in
#'   which, and where fits are not given as one list or rows not as `newdata`.
#' @section Invariants: `rmse_mean <= certified_mean_error` where both are of the same exact GP. R's random numbers are
#'   left as they were.
#' @source Huggins, Campbell, Kasprzak and Broderick (2019), section 6, whose measures these are.
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' same <- list(kernel = exact$kernel, noise = exact$noise, hyper = "fixed", m = 4)
#' fits <- list(pF = do.call(pfdtc, c(list(dist ~ speed, quote(cars)), same)),
#'              SoR = do.call(gp_sor, c(list(dist ~ speed, quote(cars)), same)))
#' compare_fits(fits, exact, cars)
#' @export
compare_fits <- function(fits, exact = NULL, newdata, y = NULL, pf = NULL, certify = TRUE, ...) {
  check_fits_given(missing(fits), list(...), "compare_fits")
  check_dots_empty(list(...), names(formals(compare_fits)))
  if (inherits(fits, "gp_fit")) fits <- list(fits)
  if (!is.list(fits) || !length(fits)) abort_input("fits", describe(fits), "a list of fits")
  for (i in seq_along(fits)) fits[[i]] <- check_any_fit(fits[[i]], sprintf("fits[[%d]]", i))
  check_exact_given(exact, "compare_fits")
  if (missing(newdata)) abort_input("newdata", "missing", "rows to compare at")
  if (!is.null(exact)) for (fit in fits) exact <- check_exact(exact, fit)
  if (is.null(pf)) pf <- !is.null(exact$x) && nrow(exact$x) <= 2000
  pf <- check_flag(pf, "pf") && !is.null(exact)
  effort <- compare_effort(certify)
  y <- compare_response(fits, newdata, y)
  truth <- if (!is.null(exact)) latent_at(exact, new_inputs(exact, newdata)$x)
  rows <- lapply(fits, compare_one, exact = exact, truth = truth, newdata = newdata, y = y, pf = pf)
  out <- do.call(rbind, rows)
  if (!is.null(effort)) out$certified_mean_error <- certified_errors(fits, newdata, effort)
  labels <- names(fits)
  given <- if (is.null(labels)) logical(nrow(out)) else nzchar(labels)
  out$method[given] <- labels[given]
  row.names(out) <- NULL
  out
}

compare_one <- function(fit, exact, truth, newdata, y, pf) {
  rows <- new_rows(fit, newdata, stats::na.pass)
  at <- latent_at(fit, rows$x)
  rms <- function(e) sqrt(mean(e^2))
  out <- data.frame(
    method = fit$method, m = if (is.null(fit$m)) NA_integer_ else fit$m, objective = fit$objective,
    rmse_mean = NA_real_, rmse_sd = NA_real_, kl = NA_real_, kl_marginal = NA_real_, rmse_pred = NA_real_,
    nlpd = NA_real_, coverage = NA_real_, certified_mean_error = NA_real_, seconds = sum(fit$seconds),
    evaluations = sum(fit$evaluations), pf_divergence = NA_real_)
  if (!is.null(truth)) {
    out$rmse_mean <- rms(at$mean - truth$mean)
    out$rmse_sd <- rms(sqrt(at$var) - sqrt(truth$var))
    family <- gp_family(fit)
    # a kl that needs the data of a fit without them stays NA
    # nor has far and near one: its rows are others at every point
    has_kl <- is.null(fit$near) && response_of(fit)$conjugate && (!is.null(fit$data) || !(family$fitc || family$some))
    if (has_kl) out$kl <- kl_divergence(fit, exact)
    out$kl_marginal <- kl_marginal(at, truth)
    if (pf && has_kl && family$dtc && !is.null(fit$data)) {
      out$pf_divergence <- pf_divergence(fit, exact)
    }
  }
  response <- response_of(fit)
  given <- if (response$conjugate) list(y = y) else if (has_response(fit, newdata)) new_sites(fit, newdata)
  if (is.null(given$y)) return(out)
  mean <- at$mean[rows$index] + rows$offset
  known <- which(!is.na(mean) & !is.na(given$y))
  index <- rows$index[known]
  noise <- rep_len(noise_at(fit, rows$x), nrow(rows$x))
  score <- response_score(response, take_sites(given[c("y", "size")], known),
                          list(mean = mean[known], var = at$var[index]),
                          list(noise = if (response$conjugate) noise[index]))
  out[c("rmse_pred", "nlpd", "coverage")] <- score[c("rmse", "nlpd", "cover95")]
  out
}

compare_effort <- function(certify) {
  if (is.logical(certify)) return(if (check_flag(certify, "certify")) "reference")
  check_choice(certify, c("reference", "fast", "tight"), "certify")
}

# The largest certified error of each fit's mean, NA where it cannot be had. Fits of the same model share a reference.
certified_errors <- function(fits, newdata, effort) {
  references <- vector("list", length(fits))
  if (effort != "fast") {
    left <- which(!vapply(fits, is_exact, NA)) # these need none
    while (length(left)) {
      group <- left[vapply(fits[left], same_model, NA, fits[[left[1L]]])]
      references[group] <- list(shared_reference(fits[group]))
      left <- setdiff(left, group)
    }
  }
  mapply(function(fit, reference) {
    has_data <- !is.null(fit$data) || is_exact(fit)
    if (if (effort == "reference") !has_data && is.null(reference) else !has_data) return(NA_real_)
    error <- with_fixed_seed(certify(fit, newdata, effort, reference = reference))$mean_error
    if (all(is.na(error))) NA_real_ else max(error, na.rm = TRUE)
  }, fits, references)
}

# The largest reference that fits of one model carry, else one made by the largest fit that has its data, or NULL.
shared_reference <- function(fits) {
  kept <- Filter(Negate(is.null), lapply(fits, function(fit) fit$reference))
  if (length(kept)) return(kept[[which.max(vapply(kept, points_of_fit, 1))]])
  with_data <- Filter(function(fit) !is.null(fit$data), fits)
  if (length(with_data)) with_fixed_seed(reference(with_data[[which.max(vapply(with_data, points_of_fit, 1))]]))
}

compare_response <- function(fits, newdata, y) {
  if (!is.null(y)) return(check_vector(y, "y", NROW(newdata)))
  known <- which(vapply(fits, function(fit) response_of(fit)$conjugate && has_response(fit, newdata), NA))
  if (!length(known)) return(NULL)
  terms <- fits[[known[1L]]]$terms
  as.double(eval(response_variable(terms), newdata, environment(terms)))
}

response_variable <- function(terms) attr(terms, "variables")[[1L + attr(terms, "response")]]

has_response <- function(fit, newdata) {
  !is.null(fit$terms) && is.data.frame(newdata) && all(all.vars(response_variable(fit$terms)) %in% names(newdata))
}

# ---- information criteria ------------------------------------------------------------------------------------------

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

# Returns the arguments of a call as written. Fits that do.call() put into the call have no name.
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
    inherits(fit, "gp_fit") && is.null(fit$reference) && !is.null(fit$data) && response_of(fit)$approx != "vi"
  }, NA)
  if (any(bare)) " A reference narrows them: fit$reference <- reference(fit)." else ""
}

# ---- anova ----------------------------------------------------------------------------------------------------------

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
#' For non-Gaussian responses the log marginal likelihood is Laplace's, and its bounds are for that of the exact GP.
#' With `approx = "vi"` it is a lower bound of the true one. Families such as [poisson()] and [nb()], or the two links
#' of [binomial()], are compared like kernels.
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
      abort_input(labels[i], "a fit of other responses", sprintf("a fit of the responses of %s", labels[1L]),
                  hint = paste("Log marginal likelihoods are comparable for the same responses, weights and offset.",
                               "Densities of numbers are not comparable with probabilities of classes or counts."))
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

posterior_words <- c(exact = "exact posterior", far = "inducing points",
                     `far + near` = "inducing points with neighbours")

anova_models <- function(fits, labels) {
  what <- vapply(fits, function(fit) {
    sprintf("%s%s kernel, %s", if (is.null(fit$terms)) "" else paste0(deparse1(stats::formula(fit)), ": "),
            kernel_name(fit$kernel), if (response_of(fit)$conjugate) posterior_words[[fit$posterior]] else
              sprintf("%s, %s", fit$likelihood$label, response_of(fit)$words[["by"]]))
  }, "")
  lines <- strwrap(sprintf("%s: %s", labels, what), width = 78L, exdent = 4L)
  paste0(paste(lines, collapse = "\n"), "\n")
}

kernel_name <- function(kernel) paste(kernel$label, collapse = " ")

# Returns a sentence for each row and the one above it: which is better, by the bounds.
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
