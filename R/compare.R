# Compares fits: predictions, information criteria, and log marginal likelihoods with bounds.

#' Compare fits
#'
#' `compare_fits()` returns a table with a row for each fit: its errors relative to the exact GP, and scores of its
#' predictions. `plot_fits()` draws a panel for each fit: the mean plus and minus two sds, in blue for the exact GP and
#' in red for the fit, and the inducing points. With `newdata` of several variables, it draws errors of the mean.
#' @param fits A fit, or a list of fits whose names become `method`.
#' @param exact An exact fit of the same model, as by `gp_exact(..., like = fit)`, or a Laplace fit whose line
#'   `Posterior` in `print()` ends with "the same as with all rows, up to rounding".
#' @param newdata Rows to compare at; plots of several inputs show up to 300.
#' @param y Responses as numbers. Default: those in `newdata`, which fits with trials or unordered classes always use.
#' @param pf Should `pf_divergence` be computed? Default: `TRUE` if `exact` has at most 2,000 rows.
#' @param certify Effort of [certify()]; `TRUE` is `"reference"`, `FALSE` certifies nothing.
#' @param ... Arguments of [plot.default()], only for `plot_fits()`.
#' @return `compare_fits()`: a data frame of class `pfdtc_comparison`. Values that do not exist are `NA`.
#'   * Fits: `method`, `m` (number of inducing points, or of rows of a subsample), `objective` (the minimised value,
#'     comparable only for one model and method), `seconds` and `evaluations`.
#'   * Errors relative to the exact GP: `rmse_mean` and `rmse_sd` (RMSE of mean and sd, in units of f), `kl`
#'     ([kl_divergence()] between the processes), `kl_marginal` (mean divergence between the marginal distributions at
#'     `newdata`), `pf_divergence`, and `certified_mean_error` (largest `mean_error` of [certify()], never
#'     below `rmse_mean`).
#'   * Scores of predictions of `y`: `rmse_pred`, `nlpd` (mean negative log density) and `coverage` (of 95 % intervals).
#'
#'   `plot_fits()` returns, invisibly, the data of the figure: `panel`, `input`, `value`, `label` (level of a factor),
#'   `fit`, `se.fit`, `exact` and `se.exact` (means and sds of f).
#' @seealso [cross_validate()], [anova.gp_fit()], `vignette("comparison")`
#' @examples
#' exact <- gp_exact(dist ~ speed, cars)
#' same <- list(dist ~ speed, cars, m = 4, kernel = exact$kernel, noise = exact$noise, hyper = "fixed")
#' fits <- list(pF = do.call(pfdtc, same), SoR = do.call(gp_sor, same))
#' compare_fits(fits, exact, cars)
#' plot_fits(fits, exact)
#' @aliases print.pfdtc_comparison
#' @export
compare_fits <- function(fits, exact = NULL, newdata, y = NULL, pf = NULL, certify = TRUE, ...) {
  check_fits_given(missing(fits), list(...), "compare_fits")
  check_dots_empty()
  fits <- label_fits(fits)
  exact <- check_exact(exact, fits, "compare_fits")
  check_given("newdata", "Give the rows to compare at.")
  pf <- check_flag(pf %||% (!is.null(exact$x) && nrow(exact$x) <= 2000), "pf") && !is.null(exact)
  effort <- if (!is.logical(certify)) check_choice(certify, c("reference", "fast", "tight"), "certify") else
    if (check_flag(certify, "certify")) "reference"
  # Each fit has its own response, such as log(y). A Gaussian fit of a matrix has none, and gets the first one found.
  own <- lapply(fits, responses_in, newdata, needed = FALSE)
  numbers <- vapply(fits, function(fit) response_of(fit)$conjugate, NA)
  own[numbers] <- lapply(own[numbers], `%||%`, Find(Negate(is.null), own[numbers]))
  asked <- !is.null(y) & !vapply(fits, function(fit) response_of(fit)$trials, NA)
  own[asked] <- if (any(asked)) list(check_vector(y, "y", NROW(newdata)))
  truth <- if (!is.null(exact)) latent_at(exact, new_inputs(exact, newdata)$x)
  out <- do.call(rbind, Map(compare_one, unname(fits), own, MoreArgs = list(exact, truth, newdata, pf)))
  if (!is.null(effort)) out$certified_mean_error <- certified_errors(unname(fits), newdata, effort)
  out$method <- names(fits)
  structure(out, class = c("pfdtc_comparison", "data.frame"))
}

# Returns the fits as a list with unique names. name(fit) returns a name for an unnamed fit.
label_fits <- function(fits, name = function(fit) fit$method) {
  if (inherits(fits, c("gp_fit", "gp_hurdle"))) fits <- list(fits)
  refuse_if(!is.list(fits) || !length(fits), "fits", describe(fits), "a fit or a list of fits")
  for (i in seq_along(fits)) fits[[i]] <- check_any_fit(fits[[i]], sprintf("fits[[%d]]", i))
  label <- names(fits) %||% character(length(fits))
  blank <- !nzchar(label)
  label[blank] <- vapply(fits[blank], name, "")
  stats::setNames(fits, make.unique(label, " "))
}

#' @export
print.pfdtc_comparison <- function(x, digits = 3, ...) {
  check_count(digits, "digits")
  kept <- names(x)[!vapply(x, function(v) all(is.na(v)), NA)]
  table <- as.data.frame(lapply(round_bounds(unclass(x)[kept], digits), function(v) {
    if (is.numeric(v)) format_each(v, digits) else as.character(v)
  }), optional = TRUE)
  blocks <- list(
    "Distance from the exact GP of the fit's own model (errors in units of its f)" =
      c("rmse_mean", "rmse_sd", "kl", "kl_marginal", "pf_divergence", "certified_mean_error"),
    "Prediction of y (nlpd: mean negative log density per row; coverage, if shown, is of 95 % intervals)" =
      c("rmse_pred", "nlpd", "coverage"))
  fits <- list(Fits = setdiff(kept, c("method", unlist(blocks))))
  blocks <- Filter(length, c(fits, lapply(blocks, intersect, kept)))
  if (!length(blocks)) print_columns(table)
  for (title in names(blocks)) {
    note <- if ("objective" %in% blocks[[title]]) " (`objective` is comparable between fits of one model by one method)"
    cat(title, note, "\n", sep = "")
    print_columns(table[c(intersect("method", kept), blocks[[title]])])
    if (title != names(blocks)[length(blocks)]) cat("\n")
  }
  invisible(x)
}

compare_one <- function(fit, y, exact, truth, newdata, pf) {
  rows <- new_rows(fit, newdata)
  at <- latent_at(fit, rows$x)
  out <- data.frame(
    method = fit$method, m = if (is_exact(fit)) NA_integer_ else fit$m %||% NA_integer_, objective = fit$objective,
    rmse_mean = NA_real_, rmse_sd = NA_real_, kl = NA_real_, kl_marginal = NA_real_, rmse_pred = NA_real_,
    nlpd = NA_real_, coverage = NA_real_, certified_mean_error = NA_real_, seconds = sum(fit$seconds),
    evaluations = sum(fit$evaluations), pf_divergence = NA_real_, row.names = NULL)
  response <- response_of(fit)
  if (!is.null(truth)) {
    # A fit of classes has log odds in columns, and their covariance matrices, of which only variances are compared.
    var <- lapply(list(at, truth), function(f) as.matrix(f$var)[, diagonals(NCOL(f$mean))])
    off <- list(at$mean - truth$mean, sqrt(var[[1L]]) - sqrt(var[[2L]]))
    out[c("rmse_mean", "rmse_sd")] <- lapply(off, root_mean_square)
    out$kl_marginal <- kl_marginal(replace(at, "var", var[1L]), replace(truth, "var", var[2L]))
    family <- method_traits(fit)
    # Fits with neighbours get no KL divergence, because each row has its own neighbours.
    if (is.null(fit$near) && response$conjugate && (!is.null(fit$data) || !(family$fitc || family$some))) {
      out$kl <- kl_divergence(fit, exact)
      if (pf && family$dtc && !is.null(fit$data)) out$pf_divergence <- pf_divergence(fit, exact)
    }
  }
  if (response$kind == "labels") { # probabilities of classes have no RMSE
    if (!is.null(y)) out$nlpd <- -mean(stats::predict(fit, newdata, type = "density"), na.rm = TRUE)
    return(out)
  }
  given <- if (response$conjugate) list(y = as.double(y)) else if (!is.null(y)) new_sites(fit, newdata, y)
  if (!length(given$y)) return(out)
  mean <- at$mean[rows$index] + rows$offset
  known <- which(!is.na(mean) & !is.na(given$y) & (if (response$trials) given$size > 0 else TRUE))
  index <- rows$index[known]
  each <- score_each(response, take_rows_of(given[c("y", "size")], known),
                     c(list(mean = mean[known], var = at$var[index]),
                       if (response$conjugate) lapply(noise_law(fit, rows), `[`, known)))
  out[c("rmse_pred", "nlpd", "coverage")] <- summarise_scores(response, each)[c("rmse", "nlpd", "cover95")]
  out
}

# Returns the largest certified error of each fit's mean, or NA for a fit without the data that its certificate needs.
# Fits of the same model share a reference: the largest reference that one of them has, or a new one.
certified_errors <- function(fits, newdata, effort) {
  largest <- function(fits) fits[[which.max(vapply(fits, points_of_fit, 1))]]
  references <- vector("list", length(fits))
  # Exact fits need no reference, and a fit of several classes cannot use one.
  left <- which(effort != "fast" & !vapply(fits, function(fit) is_exact(fit) || response_of(fit)$kind == "labels", NA))
  while (length(left)) {
    group <- left[vapply(fits[left], same_model, NA, fits[[left[1L]]])]
    kept <- Filter(Negate(is.null), lapply(fits[group], `[[`, "reference"))
    with_data <- Filter(function(fit) !is.null(fit$data), fits[group])
    references[group] <- list(if (length(kept)) largest(kept) else if (length(with_data)) reference(largest(with_data)))
    left <- setdiff(left, group)
  }
  mapply(function(fit, reference) {
    if (is.null(fit$data) && !is_exact(fit) && (effort != "reference" || is.null(reference))) return(NA_real_)
    error <- with_fixed_seed(certify(fit, newdata, effort, reference = reference))$mean_error
    if (all(is.na(error))) NA_real_ else max(error, na.rm = TRUE)
  }, fits, references)
}

#' @rdname gp_fit-methods
#' @export
AIC.gp_fit <- function(object, ..., k = 2) {
  if (missing(...)) {
    mixed <- inherits(object, "gp_fit") && has_own_likelihood(check_any_fit(object, "object"))
    return(if (mixed) stats::AIC(stats::logLik(object), k = k) else stats::extractAIC(object, k = k)[2L])
  }
  call <- match.call()
  call$k <- NULL
  compare_criterion(list(object, ...), fit_labels(call), "AIC", function(nobs) k)
}

#' @export
BIC.gp_fit <- function(object, ...) {
  if (missing(...)) return(stats::AIC(object, k = log(stats::nobs(object))))
  compare_criterion(list(object, ...), fit_labels(match.call()), "BIC", log)
}

# Returns labels of fits: the arguments of a call as text, or "fit" for a fit that do.call() put into the call itself.
fit_labels <- function(call) {
  label <- function(a) if (is.symbol(a) || utils::object.size(a) < 20000) clip(deparse1(a)) else "fit"
  make.unique(vapply(as.list(call)[-1L], label, ""))
}

# Returns vectors with an element for each fit: logLik() (`value`) and its attributes, or NA for an absent attribute.
# If only some of the fits have a restricted likelihood, the log marginal likelihood, logLik(REML = NA), replaces it.
# `note` is a sentence if only some values are for the variances before "Variance inflation" (a line of print()).
likelihoods_of <- function(fits, labels, marginal = length(unique(vapply(fits[ours], has_own_likelihood, NA))) > 1L) {
  ours <- vapply(fits, inherits, NA, "gp_fit")
  fits[ours] <- lapply(fits[ours], check_any_fit, "object")
  lls <- Map(function(fit, na) if (na) stats::logLik(fit, REML = NA) else stats::logLik(fit), fits, ours & marginal)
  part <- function(what) vapply(lls, function(ll) as.double(c(attr(ll, what), NA)[1L]), 0)
  parts <- lapply(stats::setNames(nm = c("df", "nobs", "lower", "upper")), part)
  approx <- vapply(fits, function(fit) if (inherits(fit, "gp_fit")) response_of(fit)$approx else "none", "")
  # Drop variational bounds if another fit has Laplace's approximation, because they do not bound its value.
  if ("laplace" %in% approx) for (end in c("lower", "upper")) parts[[end]][approx == "vi"] <- NA
  inflated <- labels[vapply(fits, function(fit) "scale" %in% names(fit$because), NA)]
  given <- labels[vapply(fits, function(fit) identical(fit$hyper, "fixed"), NA)]
  note <- if (length(inflated) && length(given)) sprintf(
    "Values of %s are for variances before inflation, values of %s for given variances, which `df` does not count.",
    toString(inflated), toString(given))
  c(list(value = vapply(lls, as.double, 0), note = note), parts)
}

other_rows_sentence <- function(name, nobs) {
  sprintf("%s compares fits of the same responses: these have %s rows.", name,
          list_quoted(format(unique(nobs), trim = TRUE), quote = ""))
}

compare_criterion <- function(fits, labels, name, penalty) {
  ll <- likelihoods_of(fits, labels)
  nobs <- ll$nobs
  if (length(unique(nobs[!is.na(nobs)])) > 1L) warn_classed("evidence", other_rows_sentence(name, nobs))
  of <- function(value) -2 * value + penalty(nobs) * ll$df
  out <- of(ll$value)
  best <- of(ifelse(is.na(ll$upper), ll$value, ll$upper))
  worst <- of(ifelse(is.na(ll$upper), ll$value, ll$lower))
  wide <- worst - best > 1e-6 * (1 + abs(out)) # the bounds differ by more than rounding
  meet <- outer(best, worst, "<")
  at <- which(meet & t(meet) & outer(wide, wide, "|") & upper.tri(meet), arr.ind = TRUE) # pairs whose bounds overlap
  against <- which(outer(worst, best, "<=") & outer(out, out, ">"), arr.ind = TRUE) # in a pair, the first is better
  pairs <- function(at) list_quoted(sprintf("(%s, %s)", labels[at[, 1L]], labels[at[, 2L]]), quote = "", most = 3L)
  message <- if (length(at)) {
    bare <- vapply(fits, function(fit) {
      inherits(fit, "gp_fit") && is.null(fit$reference) && !is.null(fit$data) && response_of(fit)$approx != "vi"
    }, NA)
    sprintf("%s does not show the better fit of %s: the bounds of their log marginal likelihoods overlap.%s", name,
            pairs(at), if (same_model(fits[[at[1L, 1L]]], fits[[at[1L, 2L]]]))
              sprintf(" Fits %s and %s are posteriors of one model.", labels[at[1L, 1L]], labels[at[1L, 2L]])
            else if (any(bare)) " A reference narrows them: fit$reference <- reference(fit)." else "")
  }
  message <- c(message, if (length(against)) sprintf(
    "%s orders %s wrongly, because it uses lower bounds. By the upper bounds, the first fit of a pair is better.",
    name, pairs(against)), ll$note)
  if (length(message)) warn_classed("evidence", paste(message, collapse = "\n"), best = best, worst = worst)
  stats::setNames(data.frame(df = ll$df, value = out, row.names = labels), c("df", name))
}

#' @rdname evidence_bounds
#' @export
anova.gp_fit <- function(object, ...) {
  fits <- list(object, ...)
  labels <- fit_labels(match.call())
  other <- Filter(nzchar, names(Filter(function(value) !inherits(value, "gp_fit"), list(...))))
  refuse_if(length(other), other[1L], "is not an argument of this function",
            hint = "anova() compares log marginal likelihoods, without a test.")
  refuse_if(length(fits) < 2L, "...", "has no second fit",
            hint = "anova() compares two or more fits of the same data; drop1() drops terms of one fit.")
  for (i in seq_along(fits)) fits[[i]] <- check_any_fit(fits[[i]], labels[i])
  ll <- likelihoods_of(fits, labels, marginal = TRUE)
  for (i in seq_along(fits)[-1L]) {
    refuse_if(ll$nobs[i] != ll$nobs[1L], labels[i], "a fit of other rows",
              message = sprintf("`%s` is a fit of other rows. %s", labels[i], other_rows_sentence("anova()", ll$nobs)),
              hint = if (any(lengths(lapply(fits, `[[`, "na.action"))))
                "Rows with missing values are left out. Fit all models with subset = complete.cases(<inputs>).")
    refuse_if(!same_response(fits[[1L]], fits[[i]]), labels[i], sprintf("has another response than `%s`", labels[1L]),
              hint = paste("Log marginal likelihoods are comparable for the same responses, weights and offset.",
                           "Densities of numbers are not comparable with probabilities of classes or counts."))
  }
  above <- function(v) c(NA, v[-length(v)])
  table <- data.frame(df = ll$df, logLik = ll$value, lower = ll$lower, upper = ll$upper, AIC = 2 * (ll$df - ll$value),
                      difference = ll$value - above(ll$value), at_least = ll$lower - above(ll$upper),
                      at_most = ll$upper - above(ll$lower), row.names = labels)
  structure(table, heading = anova_heading(fits, table, ll$note), class = c("pfdtc_table", "anova", "data.frame"))
}

# Returns the heading of anova(): the model of each fit, and which of two successive fits is better, if bounds show it.
anova_heading <- function(fits, table, note) {
  names <- row.names(table)
  models <- vapply(fits, function(fit) {
    sprintf("%skernel %s, %s", if (is.null(fit$terms)) "" else paste0(deparse1(stats::formula(fit)), ", "),
            paste(term_words(fit$kernel, fit$frame$columns), collapse = " + "), if (!response_of(fit)$conjugate) {
              sprintf("%s, %s", fit$likelihood$label, response_of(fit)$words[["by"]])
            } else {
              paste0(if (!is.null(fit$transform)) paste(transform_label(fit$transform), "transform, "),
                     switch(fit$posterior, exact = "exact posterior", far = "inducing points",
                            "inducing points with neighbours"))
            })
  }, "")
  verdicts <- vapply(seq_along(names)[-1L], function(i) {
    both <- paste(names[i - 1:0], collapse = ", ")
    if (same_model(fits[[i]], fits[[i - 1L]])) return(paste0(both, ": the same model; only the approximation differs"))
    if (is.na(table$at_least[i])) return(paste0(both, ": the difference has no bounds, because a fit has none"))
    less <- table$at_most[i] < 0
    if (!less && table$at_least[i] <= 0) return(paste0(both, ": the bounds overlap, so either may be better"))
    sprintf("%s has a higher log marginal likelihood than %s, by at least %s", names[i - less], names[i - !less],
            show_bound(max(table$at_least[i], -table$at_most[i]), 3L, FALSE))
  }, "")
  lines <- function(text) paste0(paste(strwrap(text, width = 78L, exdent = 4L), collapse = "\n"), "\n")
  columns <- if (!all(is.na(table$lower))) paste(
    "`lower` and `upper` bound the log marginal likelihood of the exact GP (Laplace fits: Laplace's approximation to",
    "it). `difference` is logLik minus that of the row above; `at_least` and `at_most` bound the exact difference.")
  c("Log marginal likelihood of fits of the same response\n", lines(sprintf("%s: %s", names, models)),
    lines(c(verdicts, columns, if (any(lengths(lapply(fits, function(fit) fit$noise_trend$smooth))))
      "`df` has the effective parameters of smooth noise, rounded.", note)))
}

# ---- add1(), drop1() and step(): one term more or less --------------------------------------------------------------

# stats::step() always drops a term whose Df is 0. Df may be 0, because a fit with fewer terms may choose a kernel with
# more hyperparameters. If Df is NA, step() decides by AIC. The only term of a fit is not dropped; its AIC is NA.
#' @export
drop1.gp_fit <- function(object, scope, ...) {
  term <- labels(object)
  drop_each <- utils::getS3method("drop1", "default")
  if (length(term) > 1L) return(table_for_step(drop_each(on_kept_rows(object), scope, ...), object))
  table <- data.frame(Df = NA_real_, AIC = c(stats::extractAIC(object, ...)[2L], NA), row.names = c("<none>", term))
  heading <- c("Single term deletions", "\nModel:", deparse(stats::formula(object)),
               "\nThe only term cannot be dropped, because a fit needs an input.")
  table_for_step(structure(table, class = c("anova", "data.frame"), heading = heading), object)
}

#' @export
add1.gp_fit <- function(object, scope, ...) table_for_step(NextMethod(), object)

# Evaluates the argument `table`, whose fits send only messages on progress and time, and sets its Df <= 0 to NA. If
# AIC() of the fit uses the restricted likelihood, the heading states that `table` uses the log marginal likelihood.
table_for_step <- function(table, fit) {
  table <- withCallingHandlers(table, pfdtc_message = function(m) {
    if (!inherits(m, c("pfdtc_message_progress", "pfdtc_message_slow"))) invokeRestart("muffleMessage")
  })
  lower <- which(table$Df <= 0)
  table$Df[lower] <- NA
  why <- c(if (length(lower)) "Df is blank if the model with more terms has no more hyperparameters than the other.",
           if (has_own_likelihood(fit))
             "AIC of the log marginal likelihood, as with a smooth part. AIC() has the restricted likelihood.")
  structure(table, heading = c(attr(table, "heading"), if (length(why)) paste0("\n", why)))
}
