# Prints and summarises fits and certificates, in lines that begin with a label.

#' @export
print.gp_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_model(fit_facts(check_any_fit(x, "x")), check_count(digits, "digits"))
  invisible(x)
}

#' @export
summary.gp_fit <- function(object, digits = NULL, ...) {
  check_dots_empty()
  fit <- check_any_fit(object, "object")
  kept <- !is.null(fit$data)
  out <- fit_facts(fit)
  out$digits <- if (!is.null(digits)) check_count(digits, "digits")
  if (has_own_likelihood(fit)) {
    evidence <- stats::logLik(fit)
    out[c("evidence", "df_text")] <- list(as.double(evidence), paste("restricted likelihood;", count_of(
      as.integer(attr(evidence, "df")), "parameter")))
  }
  if (response_of(fit)$kind != "labels" && !has_intercept_only(out$linear)) { # if f is one function with several terms
    out["term_shares"] <- list(term_shares(fit))
  }
  out["input_shares"] <- list(input_shares(fit))
  if (!response_of(fit)$conjugate) {
    scores <- function(...) {
      s <- training_scores(fit, ...)
      stats::setNames(c(s$nlpd, s$rmse, s$brier), c("mean negative log predictive density",
                      paste0("RMSE", sprintf(" of %s", response_of(fit)$errors_of)), "Brier score"))
    }
    out$weighted <- is_weighted(fit)
    out$scores <- if (kept) scores(seen = TRUE)
    # Omit leave-one-out for many rows, where it is slow, and for counts of classes at repeated inputs.
    out$scores_loo <- if (kept && fit$nobs <= dense_rows && is.null(rows_of_table(fit, fit$data))) scores()
    other <- response_of(fit)$rival
    judged <- kept && !is.null(other) && !"rival" %in% names(fit$because) && is.null(rows_of_table(fit, fit$data))
    if (judged && isTRUE(misfit_of(fit)$misfit > other$beyond)) out$rival <- other
  } else {
    out$residuals <- if (kept) stats::residuals(fit)
    out$rmse <- if (kept) root_mean_square(out$residuals) else NA_real_
    # Leave-one-out residuals of over dense_rows rows would take too long.
    if (is_exact(fit) && kept && fit$nobs <= dense_rows) {
      out$rmse_loo <- root_mean_square(stats::residuals(fit, type = "loo"))
    }
  }
  structure(out, class = "summary.gp_fit")
}

#' @export
print.summary.gp_fit <- function(x, digits = x$digits %||% max(3L, getOption("digits") - 3L), ...) {
  digits <- check_count(digits, "digits")
  print_model(x, digits)
  cat("\n")
  tried <- x$kernels
  if (!is.null(tried)) {
    # `se` is 0 for the kernel to which others are compared, and NA for kernels compared by log marginal likelihood.
    known <- !tried$chosen & !is.na(tried$se) & tried$se > 0
    by <- ifelse(is.na(tried$se), "log marginal likelihood", "log density given other rows")
    loss <- tried$score - tried$score[tried$chosen][1L]
    worse <- ifelse(loss > 1000, "above 1000", sprintf("%.3f", loss))
    table <- data.frame("Kernels tried" = tried$kernel, "Compared by" = by, "Loss per row, nats" = worse,
                        check.names = FALSE)
    table[tried$chosen, -1L] <- list(NA, "selected")
    if (any(known)) table[["Standard error"]] <- ifelse(known, sprintf("%.3f", tried$se), NA)
    print_columns(table)
    first <- attr(tried, "first") %||% tried$kernel[tried$se %in% 0][1L]
    notes <- c(paste0("Losses are relative to the selected kernel and include penalties or priors for parameters.",
                      if (any(known)) sprintf(" Standard errors: of the difference from %s, best by density.", first)),
               if (is.null(rotation_of(x$kernel)) && any(grepl("(rotated)", tried$kernel, fixed = TRUE))) rotation_note,
               if (is.null(warp_of(x$kernel)) && any(grepl("warped inputs)", tried$kernel, fixed = TRUE)))
                 warp_note(any(grepl("(half", tried$kernel, fixed = TRUE))))
    cat(wrap(notes, exdent = 2), "", sep = "\n")
  }
  shares <- x$input_shares
  if (!is.null(shares)) {
    cat("Shares of the variance of the posterior mean of f, as if inputs were independent (Sobol indices, estimated)\n")
    print_columns(data.frame(Input = sub("^[(](.*)[)]$", "\\1 (group)", shares$input),
                             "Main effect" = show_share(shares$alone),
                             "Total, with interactions" = show_share(shares$total), check.names = FALSE), -shares$total)
    cat("\n")
  }
  print_fields(summary_fields(x), digits)
  invisible(x)
}

# Returns the lines that summary() prints after those of print(), a list named by labels.
summary_fields <- function(x) {
  scores <- function(s) {
    s <- s[!is.na(s)]
    if (length(s)) with_numbers(paste0(if (x$weighted) "unweighted: ", paste(names(s), "%s", collapse = ", ")), s)
  }
  share <- x$term_shares
  words <- if (!is.null(share)) term_words(with_own_terms(x$kernel), x$columns)[names(share)]
  made <- x$evaluations[x$evaluations > 0]
  list(
    "Shares of terms" = if (!is.null(share)) {
      paste0(paste(ifelse(is.na(words), names(share), words), show_share(share), collapse = ", "),
             "; variance of each term's posterior mean over the training rows, in % of the sum of these variances")
    },
    Residuals = if (!is.null(x$residuals)) {
      with_numbers("min %s, median %s, max %s", stats::quantile(x$residuals, c(0, 0.5, 1), na.rm = TRUE))
    },
    RMSE = if (isTRUE(is.na(x$rmse))) {
      paste("not known:", if (is.null(x$source)) "the fit was made with keep_data = FALSE" else
        "a fit of a row source keeps no rows")
    } else if (!is.null(x$rmse)) {
      with_numbers(paste0(if (!is.null(x$rmse_loo)) "%s leave-one-out; ", "%s on training rows"), x$rmse_loo, x$rmse)
    },
    Misfit = if (!is.null(x$rival)) sprintf("%s; compare family = %s()", x$rival$why, x$rival$family),
    "Leave-one-out" = scores(x$scores_loo), "Training rows" = scores(x$scores),
    "Log marginal likelihood" = with_numbers(
      sprintf("%%s (%s)", paste(c(describe_evidence(x), x$df_text), collapse = "; ")), x$evidence),
    Jitter = if (isTRUE(x$jitter > 1e-12)) paste(format(x$jitter, digits = 2), "of the signal variance"),
    Time = paste0(format(signif(sum(unlist(x$seconds)), 3)), " s", if (length(made)) {
      sprintf(" (%.0f function evaluations in optimisation)", sum(made))
    }))
}

# Describes the log marginal likelihood of a fit, or of a result of fit_facts(), in words. With `bounds`, bounds for the
# exact GP are printed in place of the value.
describe_evidence <- function(fit, bounds = FALSE) {
  family <- method_traits(fit)
  c(if (!response_of(fit)$conjugate) response_of(fit)$words[["evidence"]] else if (!bounds) {
    if (family$some) sprintf("of the subsample of %d rows", fit$m) else
      if (family$sor || family$fitc) "of the approximate model" else
        switch(fit$posterior, exact = NULL, far = "evidence lower bound, ELBO", "Vecchia estimate, not a bound")
  }, if ("scale" %in% names(fit$because)) "for variances before inflation")
}

print_model <- function(about, digits) {
  cat(wrap(about$title, exdent = 2), sep = "\n")
  if (!is.null(about$call)) cat(wrap(paste("Call:", clip(deparse_shown(about$call), 400L)), exdent = 6), sep = "\n")
  cat("\n")
  print_fields(about$fields, digits)
  if (!is.null(about$linear)) {
    cat("\n")
    print_columns(data.frame(Coefficient = rownames(about$linear), format_each(about$linear, digits),
                             check.names = FALSE))
  }
  groups <- about$groups
  if (!is.null(groups)) {
    cat("\n")
    table <- data.frame(Group = groups$group, Effect = groups$effect, Sd = format_each(groups$sd, digits),
                        Correlation = groups$correlation, Levels = format_each(groups$levels, 7L),
                        share = show_share(groups$share))
    names(table)[6L] <- paste0("Group's share of prior variance of ", if (!response_of(about)$conjugate) "f" else
      if (is.null(about$transform)) "y" else "transformed y")
    print_columns(table)
  }
  print_parameters(about, digits)
}

show_share <- function(v) ifelse(v <= 0.005, "< 1 %", sprintf("%.0f %%", 100 * v))

# Prints a line "Label  text" for each element of `fields`. If an element has several texts, each begins a line.
print_fields <- function(fields, digits = 3L, width = 12L) {
  for (label in names(fields)) {
    text <- fields[[label]]
    if (is.null(text) || anyNA(text)) next
    start <- paste0(formatC(label, width = -width), if (nchar(label) >= width) "  ")
    for (line in fill_numbers(text, function(v) format(signif(v, digits)))) {
      cat(wrap(line, initial = start, prefix = strrep(" ", width + 2L * (length(text) > 1L))), sep = "\n")
      start <- strrep(" ", width)
    }
  }
}

# Prints a table of text: all rows or, if `rank` is given, the 20 rows of smallest rank and the number of the others.
print_columns <- function(table, rank = NULL, rest = "") {
  more <- if (is.null(rank)) 0L else nrow(table) - 20L
  if (more > 0L) table <- table[utils::head(order(rank), 20L), ]
  cells <- rbind(names(table), as.matrix(table))
  cells[is.na(cells)] <- ""
  for (j in seq_len(ncol(cells)))
    cells[, j] <- formatC(cells[, j], width = max(nchar(cells[, j])), flag = if (j == 1L) "-" else "")
  cat(trimws(apply(cells, 1L, paste, collapse = "  "), "right"), sep = "\n")
  if (more > 0L) cat(sprintf("... and %d more%s\n", more, rest))
}

# Prints lengthscales with the ranges of their inputs, notes on both, and parameters that no other line shows.
print_parameters <- function(about, digits) {
  show <- function(v) format_each(v, digits)
  theta <- about$coefficients
  words <- factor_words(about$kernel, about$columns)
  # Find lengthscales by their names in coef(), such as "se(a,b).lengthscale.b".
  before <- ifelse(nzchar(names(words)), paste0(names(words), "."), "")
  of_lengths <- outer(about$inputs$name, before, function(input, factor) paste0(factor, "lengthscale.", input))
  each <- array(theta[of_lengths], dim(of_lengths))
  factors <- which(colSums(!is.na(each)) > 0)
  if (length(factors)) {
    inputs <- rowSums(!is.na(each)) > 0
    lengths <- lapply(factors, function(f) each[inputs, f])
    shortest <- do.call(pmin, c(lengths, list(na.rm = TRUE)))
    short <- sub(" in .*$", "", words[factors])
    one <- length(factors) == 1L
    names(lengths) <- if (one) "Lengthscale" else if (anyDuplicated(short)) words[factors] else short
    shown <- about$inputs[inputs, ]
    range <- shown$range
    name <- vapply(ifelse(nzchar(shown$unit), sprintf("%s, %s", shown$name, shown$unit), shown$name), clip, "", 48L)
    cat("\n")
    show_lengths <- function(l) { # adds degrees to lengthscales on the globe
      degrees <- sprintf("%s (%s degrees)", show(l), signif(l / earth_radius * 180 / pi, 2))
      ifelse(shown$unit == "km" & !is.na(l), degrees, show(l))
    }
    table <- data.frame(name, lapply(lengths, show_lengths), show(range), check.names = FALSE)
    names(table)[c(1L, ncol(table))] <- c(if (one) "Input" else "Lengthscales",
                                          paste("Range of the", attr(about$inputs, "rows")))
    # Print one row for an R factor if all its levels have equal lengthscales, up to the search's accuracy.
    key <- do.call(paste, c(list(shown$factor), lapply(lengths, signif, 4)))
    equal <- shown$factor != "" & stats::ave(key, shown$factor, FUN = function(v) length(unique(v))) == "1"
    table[equal, c(1L, ncol(table))] <- list(paste(shown$factor, "(factor)")[equal], NA)
    kept <- !(equal & duplicated(shown$factor))
    print_columns(table[kept, ], (shortest / range)[kept], ": coef(fit)")
    flat <- shown$name[range > 0 & range < shortest / 100]
    warp <- warp_of(about$kernel)
    note <- if (!is.null(rotation_of(about$kernel))) rotation_note else
      if (isTRUE(warp$logs))
        paste("Lengthscales and ranges are of logs of these inputs:", toString(about$columns[warp$inputs])) else
        if (!is.null(warp)) c(warp_note(isTRUE(warp$share < 1), "; its lengthscale and range are on this scale"),
                              if (length(warp$inputs) < length(about$columns))
                                "Inputs with at most two values, such as columns of factors, are not warped.") else
        if (length(flat)) paste("Inputs with almost no effect (lengthscale above 100 times the range):", toString(flat))
    if (length(note)) cat(wrap(paste(note, collapse = " "), exdent = 2), sep = "\n")
  }
  of_groups <- !is.null(about$groups) & grepl("(^|[.])(scale|angle)[.]", names(theta)) # are printed with groups
  printed <- names(theta) %in% of_lengths | grepl("(^|[.])variance$", names(theta)) | of_groups |
    names(theta) %in% c("noise", "mean", rownames(about$linear), response_of(about)$shape) |
    response_of(about)$kind == "ordered" & grepl("^(width[.]|[(]Intercept[)]$)", names(theta)) # shown as cut points
  if (all(printed)) return(invisible())
  cat("\n")
  print_columns(data.frame(Parameter = parameter_words(names(theta)[!printed], about$kernel, about$columns),
                           Value = show(theta[!printed]), row.names = NULL))
}

rotation_note <- paste("A rotated input is the input minus its linear regression on the rotated inputs listed before",
                       "it. The regression has an intercept for each class, which is not subtracted.")

warp_note <- function(half, more = "") {
  sprintf(paste0("A warped input is replaced by its mean plus its sd times its normal score, interpolated between at ",
                 "most %d quantiles%s%s."), score_knots,
          if (half) ". A half warped input is the average of the input and its warped value" else "", more)
}

#' @export
print.pfdtc_varcorr <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  check_count(digits, "digits")
  table <- as.data.frame(x)
  table <- table[is.na(table$var2), ]
  print_columns(data.frame(Group = table$grp, Effect = table$var1, Sd = format_each(table$sdcor, digits),
                           Correlation = c(correlations_in_words(x, digits), if (!is.na(attr(x, "sc"))) NA)))
  invisible(x)
}

#' @export
print.pfdtc_ranef <- function(x, ...) {
  for (g in names(x)) {
    cat(sprintf("$%s\n", g))
    print(`attr<-`(x[[g]], "postVar", NULL), ...)
    cat("\n")
  }
  invisible(x)
}

#' @rdname certify
#' @param x A certificate.
#' @param n,digits Numbers of rows and of digits to print.
#' @export
print.pfdtc_certificate <- function(x, n = 10, digits = max(3L, getOption("digits") - 3L), ...) {
  check_count(digits, "digits")
  needed <- c("mean_error", "sd", "sd_lower", "sd_upper")
  if (is.null(attr(x, "effort")) || !is.null(attr(x, "figure")) || !all(needed %in% names(x))) {
    shown <- as.data.frame(unclass(round_bounds(x, digits, TRUE)), row.names = attr(x, "row.names"), optional = TRUE)
    print(shown, digits = digits, ...)
    return(invisible(x))
  }
  m2 <- attr(x, "m2")
  passes <- attr(x, "passes")
  seconds <- attr(x, "seconds")
  how <- c(sprintf("effort \"%s\"", attr(x, "effort")),
           if (!is.null(m2)) sprintf("reference posterior with %.0f inducing points", m2),
           if (isTRUE(passes > 0)) sprintf("%.0f product%s with the n x n kernel matrix", passes, plural_s(passes)),
           if (isTRUE(seconds >= 0.1)) sprintf("computed in %.1f s", seconds))
  of <- if (is.null(x$class)) count_of(nrow(x), attr(x, "of") %||% "row") else
    sprintf("%s and %d classes", count_of(length(unique(x$row)), "row"), nlevels(x$class))
  cat(wrap(sprintf("Certificate%s of %s (%s)", plural_s(nrow(x)), of, toString(how)), exdent = 2), sep = "\n")
  print_fields(certificate_fields(x))
  print_rows(round_bounds(x, digits, TRUE), n, digits, ...)
  invisible(x)
}

# Prints a table after its attribute `heading` or `legend`. Bounds are rounded outwards.
#' @export
print.pfdtc_table <- function(x, digits = max(3L, getOption("digits") - 2L * inherits(x, "anova")), ...) {
  writeLines(c(attr(x, "heading"), wrap(as.character(attr(x, "legend")))))
  variable <- if (inherits(x, "pfdtc_dependence")) 1L # may be called `a_upper`, but its values are no bounds
  shown <- as.matrix(format(replace(round_bounds(x, digits, TRUE), variable, x[variable]), digits = digits))
  if (inherits(x, "anova")) shown[is.na(x)] <- ""
  print(shown, quote = FALSE, right = TRUE, ...)
  invisible(x)
}

print_rows <- function(x, n, digits, ...) {
  rows <- utils::head(seq_len(nrow(x)), check_count(n, "n", min = 0))
  if (length(rows)) print(as.data.frame(take_rows_of(x, rows), row.names = row.names(x)[rows]), digits = digits, ...)
  more <- nrow(x) - length(rows)
  if (more > 0L) cat(sprintf("... and %d more row%s\n", more, plural_s(more)))
  invisible(x)
}

# Returns the lines that print() shows for a certificate, a list named by labels.
certificate_fields <- function(x) {
  number <- function(v) show_bound(v, 3)
  known <- !is.na(x$mean_error)
  largest <- if (any(known)) max(x$mean_error[known])
  unit <- attr(x, "sd_y")
  transformed <- "fit_lower" %in% names(x) || isTRUE(attr(x, "transformed"))
  of_sd <- if (isTRUE(unit > 0) && any(known) && is.null(attr(x, "likelihood"))) { # f has the unit of the response
    sprintf(" (%s times the sd of the %sresponse)", number(largest / unit), if (transformed) "transformed " else "")
  }
  ratio <- stats::na.omit(c(x$sd_lower / x$sd, x$sd_upper / x$sd)[x$sd > 0])
  ends <- if (length(ratio)) range(ratio)
  weights <- attr(x, "weights")
  outside <- sum((x$mean < x$mean_lower | x$mean > x$mean_upper | x$sd < x$sd_lower | x$sd > x$sd_upper)[known])
  shares <- isTRUE(attr(x, "shares")) || is.matrix(x$response) || !is.null(x$mode)
  exact <- if (is.null(attr(x, "likelihood"))) "`mean` differs from the exact mean" else
    "`mean` is the posterior mode of f; it differs from the exact mode"
  list(Mean = if (any(known)) paste0(exact, " by at most ", number(largest), of_sd),
       Sd = if (length(ratio)) {
         if (all(abs(ends - 1) < 5e-4)) "`sd` equals the exact sd to 3 digits" else
           sprintf("the exact sd is %s to %s times `sd`", show_bound(ends[1L], 3, up = FALSE),
                   show_bound(ends[2L], if (ends[2L] < 1) 3 else 4))
       },
       Bounds = paste0("rounded outwards", if (outside) sprintf(
         "; the fit's `mean` or `sd` is outside them in %s", count_of(outside, attr(x, "of") %||% "row"))),
       Classes = if ("class" %in% names(x)) "f is relative to the first class, whose f is 0",
       Scales = if (transformed) paste0("`mean` and `sd` are of f, on the scale of the transformed response",
                                        if ("fit_lower" %in% names(x)) "; `median` and `fit` (mean) are of y") else
         if ("response" %in% names(x))
           paste0("`response` (", if (shares) "probability" else "mean", ") is averaged over the posterior of f",
                  if ("mode" %in% names(x)) "; `mode` is the probability at the mode of f"),
       Posterior = if (!is.null(attr(x, "likelihood"))) {
         c("The bounds hold for Laplace's approximation at the mode, not for the true posterior.",
           if (nrow(x) && (is.numeric(attr(x, "moved")) || isTRUE(attr(x, "moved")))) {
             paste0("predict() adds a first-order correction from the mode to the mean of f; ",
                    if (!is.numeric(attr(x, "moved"))) "its results differ from `mean` and `response`." else
                      sprintf("its probabilities differ from `response` by up to %s.", number(attr(x, "moved"))))
           })
       },
       Claims = attr(x, "claims"),
       Estimates = if (!is.null(attr(x, "check"))) {
         lines <- laplace_check_lines(attr(x, "check"))
         c(sprintf("from %d random draws, not bounds; Pareto k %s", attr(x, "check")$draws, lines[1L]), lines[-1L])
       },
       Mixture = if (!is.null(weights)) {
         sprintf("bounds are for the exact GP, averaged over %d hyperparameter values, weighted by likelihood%s",
                 nrow(weights), if (transformed) "; `fit` has no finite bounds" else "")
       },
       Advice = unname(attr(x, "advice")))
}

#' @export
print.pfdtc_laplace_check <- function(x, ...) {
  cat(sprintf("Check of the %s posterior by importance sampling (%d draws); all but the lower bound are estimates\n",
              if (is.na(x$laplace)) "variational" else "Laplace", x$draws))
  lines <- laplace_check_lines(x)
  bound <- sprintf("the true log marginal likelihood of the exact GP is at least %s", show_bound(x$elbo, 7, up = FALSE))
  print_fields(list("Pareto k" = lines[1L], Likelihood = lines[2L], Posterior = lines[-(1:2)], Bound = bound))
  invisible(x)
}
