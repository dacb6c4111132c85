# print() and summary(): what a fit tells of itself.

#' @rdname gp_fit-methods
#' @export
print.gp_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  x <- check_any_fit(x, "x")
  if (!response_of(x)$conjugate) return(print_laplace(x, digits))
  about <- fit_facts(x)
  print_heading(about)
  print_fields(model_fields(about, digits))
  print_lengthscales(about$coefficients, digits)
  if (!is.na(about$optimiser)) print_fields(c(Optimiser = about$optimiser))
  invisible(x)
}

#' @rdname gp_fit-methods
#' @export
summary.gp_fit <- function(object, ...) {
  object <- check_any_fit(object, "object")
  if (!response_of(object)$conjugate) return(summary_laplace(object))
  resid <- if (!is.null(object$data)) stats::residuals(object)
  out <- c(fit_facts(object), list(
    range = input_range(object), residuals = resid, term_shares = term_shares(object),
    linear = linear_coefficients(object),
    rmse = if (is.null(resid)) NA_real_ else root_mean_square(resid), rmse_loo = cheap_rmse_loo(object)))
  structure(out, class = "summary.gp_fit")
}

#' @rdname gp_fit-methods
#' @export
print.summary.gp_fit <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  number <- function(v) format(signif(v, digits))
  print_heading(x)
  print_fields(model_fields(x, digits))
  print_linear(x$linear, digits)
  print_lengthscales(x$coefficients[setdiff(names(x$coefficients), rownames(x$linear))], digits, x$range)
  if (!is.null(x$residuals)) {
    cat("Residuals:\n")
    q <- stats::quantile(x$residuals, na.rm = TRUE)
    print(signif(stats::setNames(q, c("Min", "1Q", "Median", "3Q", "Max")), digits))
    cat("\n")
  }
  print_fields(c(
    RMSE = if (is.na(x$rmse) && !is.na(x$from)) "not known: a fit of a row source keeps no rows"
      else if (is.na(x$rmse)) "not known: the fit has left its data out (keep_data = FALSE)"
      else paste0(number(x$rmse), " at the training rows",
                  if (!is.null(x$rmse_loo)) sprintf(", %s leave-one-out", number(x$rmse_loo))),
    describe_evidence(x, number), Terms = describe_shares(x$term_shares),
    Response = if (x$center == 0 && x$scale == 1) "neither centred nor scaled"
      else sprintf("centred at %s, scaled by %s inside the fit", number(x$center),
                   number(x$scale)),
    Jitter = if (!is.null(x$jitter)) paste(format(x$jitter, digits = 2), "of the signal variance"),
    Optimiser = x$optimiser,
    Evaluations = list_named(x$evaluations),
    Seconds = list_named(signif(x$seconds, 3))))
  invisible(x)
}

print_linear <- function(table, digits) {
  if (is.null(table)) return(invisible())
  cat("Coefficients, with their posterior standard deviations:\n")
  print(signif(table, digits))
}

# What each term of the kernel makes of the variance of all of them over the training rows.
describe_shares <- function(shares) {
  if (is.null(shares)) return(NULL)
  paste(sprintf("%s %s %%", names(shares), format(round(100 * shares), trim = TRUE)), collapse = ", ")
}

describe_evidence <- function(about, number) {
  family <- gp_family(about)
  own <- if (family$some) sprintf("the log evidence of its %d rows", about$m) else
    if (family$sor || family$fitc) "the log evidence of its own model"
  bound <- is.null(own) && about$posterior == "far"
  says <- if (!is.null(own)) own else switch(
    about$posterior, exact = "the log evidence", far = "a lower bound of the log evidence",
    "an estimate of the log evidence by near rows, no bound")
  text <- sprintf("%s, %s (%d hyperparameter%s learned)", number(about$evidence), says, about$df, plural_s(about$df))
  stats::setNames(text, if (bound) "ELBO" else "Evidence")
}

# What print() and summary() tell of a fit.
fit_facts <- function(fit) {
  parts <- c("call", "method", "kernel", "noise", "m", "m_asked", "aux", "inducing_method",
             "hyper", "center", "scale", "nobs", "df", "evidence", "objective", "jitter", "evaluations",
             "seconds", "convergence", "message", "kernels", "posterior", "neighbours", "noise_trend",
             "transform")
  c(unclass(fit)[intersect(parts, names(fit))], list(
    title = fit_title(fit), coefficients = stats::coef(fit), sigma = stats::sigma(fit),
    inputs = length(fit$frame$columns), variables = length(fit$frame$variables),
    omitted = if (is.null(fit$source)) length(fit$na.action) else fit$source$omitted,
    from = describe_source(fit$source, !is.null(fit$data)), inducing = describe_inducing(fit),
    subsample = if (is.null(fit$chosen)) NA_character_ else
      sprintf("%d random row%s", fit$m, plural_s(fit$m)),
    near = describe_near(fit), few = describe_small_n(fit$small_n), auxiliary = describe_aux(fit),
    accuracy = describe_tolerance(fit), interpolates = asks_no_noise(fit$asked$noise),
    learned = describe_hyper(fit), looked_at = describe_looked_at(fit), optimiser = describe_convergence(fit)))
}

print_heading <- function(about) {
  cat("Gaussian process by ", about$title, "\n", sep = "")
  if (!is.null(about$call)) {
    call <- clip(deparse_shown(about$call), 400L)
    cat(wrap(paste("Call:", call), exdent = 6), sep = "\n")
  }
  cat("\n")
}

model_fields <- function(about, digits) {
  theta <- about$coefficients
  variance <- function(v) {
    number <- function(v) format(signif(unname(v), digits))
    sprintf("variance %s (sd %s)", number(v), number(sqrt(v)))
  }
  c(Data = describe_data(about), Transform = describe_transform(about$transform), Source = about$from,
    Subsample = about$subsample, Inducing = about$inducing,
    Accuracy = about$accuracy, Auxiliary = about$auxiliary,
    Near = about$near,
    Kernel = if (!has_one_factor(about$kernel) || is_mean(about$kernel)) describe_kernel(about) else
      sprintf("%s; %s", describe_kernel(about), variance(theta["variance"])),
    Noise = paste0(variance(theta["noise"]), describe_noise_trend(about$noise_trend),
                   if (about$interpolates) ", held: the fit interpolates (noise = 0)"),
    Hyper = about$learned, Rows = about$looked_at,
    Check = about$few)
}

# Of a kernel without a lengthscale for each input: whatever it has.
print_parameters <- function(theta, digits) {
  if (!length(theta)) return(cat("\n"))
  cat("Parameters:\n")
  cat(sprintf("  %s %s\n", format(names(theta)), vapply(signif(theta, digits), format, "")), sep = "")
  cat("\n")
}

# `range`: of each column, for summary(), which also names the inputs along which f hardly varies.
print_lengthscales <- function(theta, digits, range = NULL) {
  l <- theta[startsWith(names(theta), "lengthscale.")]
  if (!length(l)) return(print_parameters(theta[setdiff(names(theta), c("variance", "noise"))], digits))
  names(l) <- sub("lengthscale.", "", names(l), fixed = TRUE)
  show <- function(v) vapply(signif(v, digits), format, "")
  if (is.null(range)) {
    cat("Lengthscale", plural_s(length(l)), ":\n", sep = "")
    print(show(l), quote = FALSE)
  } else {
    cat("Lengthscale", plural_s(length(l)), ", and range of the data:\n", sep = "")
    range <- range[names(l)]
    print(rbind(lengthscale = show(l), range = show(range)), quote = FALSE, right = TRUE)
    flat <- names(l)[range < l / 100]
    if (length(flat)) {
      text <- paste("Hardly any effect (lengthscale above 100 times the range):",
                    paste(flat, collapse = ", "))
      cat(wrap(text, exdent = 2), sep = "\n")
    }
  }
  cat("\n")
}

# Of each column; a fit without its data has kept minimum, median and maximum.
input_range <- function(fit) {
  x <- slice_rows(fit)
  stats::setNames(apply(x, 2L, max) - apply(x, 2L, min), fit$frame$columns)
}

# "Name   text", the text wrapped and aligned; fields that are NA are left out.
print_fields <- function(fields, width = 12L) {
  fields <- fields[!is.na(fields)]
  for (name in names(fields)) {
    cat(wrap(fields[[name]], initial = formatC(name, width = -width), prefix = strrep(" ", width)),
        sep = "\n")
  }
}

fit_title <- function(x) {
  if (isTRUE(gp_family(x)$chooses && x$posterior != "far")) return(posterior_title(x))
  title <- gp_family(x)$title
  if (is.null(title)) x$method else title
}

posterior_title <- function(fit) {
  if (is_exact(fit)) return("the exact posterior (of so few rows, pfdtc() needs no inducing points)")
  "inducing points and near rows"
}

describe_data <- function(about) {
  omitted <- if (about$omitted) sprintf(" (%d more left out by na.action)", about$omitted) else ""
  variables <- if (!about$variables || about$variables == about$inputs) "" else
    sprintf(" (%d variable%s)", about$variables, plural_s(about$variables))
  sprintf("%d row%s%s, %d input%s%s", about$nobs, plural_s(about$nobs), omitted, about$inputs,
          plural_s(about$inputs), variables)
}

# Where not all rows were looked at.
describe_looked_at <- function(fit) {
  rows <- fit$looked_at
  if (!length(rows)) return(NA_character_)
  show <- function(what, text) if (what %in% names(rows)) sprintf(text, show_count(rows[[what]]))
  learned <- paste(c(show("learn", "kernel and noise learned on %s"), show("among", "with neighbours among %s")),
                   collapse = " ")
  moved <- show("points", "points moved on %s")
  sprintf("%s of %s; the posterior is of all", paste(c(if (nzchar(learned)) learned, moved), collapse = ", "),
          show_count(fit$nobs))
}

describe_source <- function(source, kept) {
  if (is.null(source)) return(NA_character_)
  sprintf("%s, read in %d passes; %s", source$label, source$passes,
          if (kept) "so few rows are kept, as of a data frame"
          else sprintf("kernel, noise and points by a random sample of %s rows", show_count(source$sample)))
}

# Fewer points than asked for: greedy selection has explained k(X, X), the others ran out of rows.
describe_inducing <- function(fit) {
  if (is.null(fit$inducing) || is_exact(fit)) return(NA_character_)
  tried <- if (is.na(fit$evaluations["other start"])) "" else " (the better of two tried)"
  how <- switch(fit$inducing_method, greedy = paste0("greedy start", tried),
                divergence = paste0("start greedy in the divergence", tried), random = "started at random rows",
                kmeans = "started by k-means", given = "start given", fit$inducing_method)
  fewer <- ""
  if (!is.null(fit$m_asked) && fit$m < fit$m_asked) {
    why <- if (fit$inducing_method %in% c("greedy", "divergence")) "they explain the kernel matrix to rounding" else
      "there are no more different rows"
    fewer <- sprintf(" of %d asked for (%s)", fit$m_asked, why)
  }
  sprintf("%d point%s%s, %s", fit$m, plural_s(fit$m), fewer, how)
}

describe_near <- function(fit) {
  if (!gp_family(fit)$chooses || is_exact(fit) || is.null(fit$neighbours)) return(NA_character_)
  left <- if (is.null(fit$unexplained) || !is.finite(fit$unexplained)) "" else
    sprintf("; what the points leave unexplained is %s of the noise variance", format(signif(fit$unexplained, 2)))
  if (fit$neighbours == 0L) return(paste0("none", left, describe_trial(fit$trial)))
  among <- if (!is.null(fit$near$rows)) sprintf(" of the %s kept (%s)", show_count(nrow(fit$near$rows$x)),
                                                show_bytes(8 * length(fit$near$rows$x)))
  sprintf("the %d nearest rows%s of each prediction are treated exactly%s", fit$neighbours,
          if (is.null(among)) "" else among, paste0(left, describe_trial(fit$trial)))
}

describe_aux <- function(fit) {
  if (is.null(fit$aux) || isFALSE(fit$moved)) return(NA_character_)
  format(fill_aux(fit$aux, min(fit$nobs, fit$control$optimise_rows), fit$m, nrow(fit$aux_points)))
}

describe_hyper <- function(fit) {
  text <- switch(fit$hyper, fixed = "fixed as given", evidence = describe_starts(fit$learned),
                 pilot = "learned by a pilot VFE run, then fixed",
                 joint = if (is.null(gp_family(fit)$objective)) "learned by the exact evidence" else
                   "learned together with the inducing points", fit$hyper)
  code <- fit$pilot$convergence
  if (is.null(code) || code == 0L) return(text)
  stopped <- switch(as.character(code), "1" = "`maxit`", "2" = "its time limit",
                    "52" = "an interrupt", paste("code", code))
  sprintf("%s (the pilot was ended by %s)", text, stopped)
}

describe_starts <- function(learned) {
  if (is.null(learned)) return("as they start: the fit was ended before they were learned")
  starts <- nrow(learned)
  if (isTRUE(attr(learned, "ended"))) return("learned by the evidence as far as `max_seconds` went")
  if (starts == 1L) return("learned by the evidence, from the one start given")
  agree <- sum(max(learned$evidence) - learned$evidence <= attr(learned, "same"))
  sprintf("learned by the evidence, best of %d starts (%s)", starts,
          if (agree == 1L) "found by one of them" else sprintf("found by %d of them", agree))
}

# The kernel, and where it was chosen the mean held-out log densities by which the others fell behind.
describe_kernel <- function(about) {
  kernels <- about$kernels
  if (is.null(kernels)) return(about$kernel$label)
  sprintf("%s, chosen by %s (%s)", sum_label(about$kernel),
          if (all(is.na(kernels$se))) "evidence, nats a row" else
            paste0("held-out score", if (anyNA(kernels$se)) ", lines by the evidence"), describe_others(kernels))
}

# How far the others are behind, with the standard error of that where it is known.
describe_others <- function(kernels) {
  others <- kernels[!kernels$chosen, ]
  behind <- sprintf("%s %+.3f", others$kernel, others$score - kernels$score[kernels$chosen])
  if (!is.null(kernels$se)) behind <- paste0(behind, ifelse(is.na(others$se), "", sprintf(" (se %.3f)", others$se)))
  paste(behind, collapse = ", ")
}

# Fits of 0.1.0 have it in their control alone.
used_maxit <- function(fit) if (is.null(fit$maxit)) fit$control$maxit else fit$maxit

describe_convergence <- function(fit) {
  if (identical(fit$message, "nothing to optimise")) return(NA_character_)
  how <- switch(as.character(fit$convergence),
                "1" = sprintf("stopped after %d iterations (`maxit`)%s", used_maxit(fit),
                              describe_late_gain(fit$trace)),
                "52" = "interrupted: best fit so far", fit$message)
  if (is.null(how) || !nzchar(how)) how <- paste("code", fit$convergence)
  if (how %in% c("no lower value can be found in double precision", "the gradient is zero")) {
    how <- paste("converged:", how)
  }
  made <- fit$evaluations[setdiff(names(fit$evaluations), "pilot")]
  if (!sum(made)) return(how)
  sprintf("%s; %d evaluation%s", how, as.integer(sum(made)), plural_s(sum(made)))
}

# How much of the whole descent the last tenth of the evaluations brought: is more `maxit` worth it?
describe_late_gain <- function(trace) {
  if (!is.null(trace$round)) return("")     # a renewed objective is another one
  value <- trace$objective[!is.na(trace$objective)]
  if (length(value) < 20L) return("")
  best <- cummin(value)
  n <- length(best)
  whole <- best[1L] - best[n]
  if (!(whole > 0)) return("")
  late <- 100 * (best[floor(0.9 * n)] - best[n]) / whole
  sprintf(", whose last tenth brought %s %% of the descent",
          if (late < 0.01) "less than 0.01" else format(signif(late, 2)))
}

list_named <- function(x) {
  if (!length(x)) return("none")
  paste(sprintf("%s %s", names(x), format(unlist(x), trim = TRUE, drop0trailing = TRUE)),
        collapse = ", ")
}

# ---- classes and counts ---------------------------------------------------------------------------------------------

print_laplace <- function(fit, digits) {
  number <- function(v) format(signif(unname(v), digits))
  words <- words_for(fit$likelihood)
  about <- laplace_facts(fit, number)
  cat(sprintf("Gaussian process with a %s response, by %s\n", as_response(fit$likelihood)$label, words[["by"]]))
  if (!is.null(fit$call)) cat(wrap(paste("Call:", clip(deparse_shown(fit$call), 400L)), exdent = 6), sep = "\n")
  cat("\n")
  print_fields(c(
    Data = describe_data(about), Family = about$family, Success = about$success, Inducing = about$inducing,
    Near = about$near,
    Kernel = if (!has_one_factor(fit$kernel)) describe_kernel(about) else
      sprintf("%s; variance %s (sd %s)", describe_kernel(about), number(fit$kernel$variance),
              number(sqrt(fit$kernel$variance))),
    Mean = sprintf("%s%s", number(fit$center), if (fit$likelihood$link == "identity") "" else " on the link's scale"),
    Hyper = about$learned, Accuracy = about$accuracy, Auxiliary = describe_aux(fit),
    Certified = paste(words[["certified"]], "at these hyperparameters")))
  l <- stats::coef(fit)
  print_lengthscales(l[setdiff(names(l), c("mean", "theta", "sigma"))], digits)
  invisible(fit)
}

# As fit_facts() has them of Gaussian noise.
laplace_facts <- function(fit, number) {
  likelihood <- fit$likelihood
  words <- words_for(likelihood)
  near <- if (is.null(fit$near)) "none" else
    sprintf("the %d nearest rows of each prediction are treated exactly, as Gaussian ones %s", fit$neighbours,
            if (is.null(fit$trial)) sprintf("at the mode (%d steps)", fit$near$steps) else "about the mode")
  levels <- likelihood$levels
  open <- c(if (fit$df > likelihood$learned) "mean", if (likelihood$learned) as_response(likelihood)$shape)
  list(
    nobs = fit$nobs, omitted = length(fit$na.action), inputs = length(fit$frame$columns),
    variables = length(fit$frame$variables), kernel = fit$kernel, kernels = fit$kernels, title = words[["by"]],
    family = paste0(likelihood$label, if (!is.null(fit$theta)) {
      sprintf(", %s %s", as_response(likelihood)$shape, number(fit$theta))
    }),
    success = if (is.null(levels)) NA_character_ else sprintf("\"%s\" (and \"%s\" is failure)", levels[2L], levels[1L]),
    inducing = sprintf("%s, %s", describe_inducing(fit), describe_left(fit)),
    near = if (is.null(fit$near) && is.null(fit$trial)) NA_character_ else paste0(near, describe_trial(fit$trial)),
    learned = if (fit$hyper == "fixed") paste0(
      "fixed as given", if (length(open)) sprintf(", the %s apart", paste(open, collapse = " and "))) else paste0(
      "learned by the ", words[["learned"]], if (!is.null(fit$near) && !is.null(fit$trial))
        ", the kernel then by that of the Gaussian rows at the mode given their nearest"),
    accuracy = describe_tolerance(fit))
}

# What the points leave of the prior variances, beside what the rows' likelihoods resolve.
describe_left <- function(fit) {
  if (fit$unexplained < 1e-8) return(words_for(fit$likelihood)[["limit"]])
  sprintf("which leave %s of a row's noise variance (1 / W) unexplained on average", format(signif(fit$unexplained, 2)))
}

# Scores at the training rows flatter the fit; those of rows left out take long beside many near ones.
summary_laplace <- function(fit) {
  kept <- !is.null(fit$data)
  scores <- function(s) c(NLPD = s$nlpd, RMSE = s$rmse, Brier = s$brier)
  structure(list(fit = fit, scores = if (kept) scores(scores_seen(fit)),
                 scores_loo = if (kept && fit$nobs <= exact_rows) scores(scores_left_out(fit))),
            class = "summary.gp_laplace")
}

describe_scores <- function(scores, where, number) {
  scores <- scores[!is.na(scores)]
  if (length(scores)) paste(paste(names(scores), vapply(scores, number, ""), collapse = ", "), where)
}

#' @export
print.summary.gp_laplace <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_laplace(x$fit, digits)
  number <- function(v) format(signif(v, digits))
  print_fields(c(
    Scores = describe_scores(x$scores, "at the training rows", number),
    "Left out" = describe_scores(x$scores_loo, "leave-one-out", number),
    Evidence = sprintf("%s, %s (%d parameters learned)", number(x$fit$evidence),
                       words_for(x$fit$likelihood)[["evidence"]], as.integer(x$fit$df)),
    Evaluations = list_named(x$fit$evaluations), Seconds = list_named(signif(x$fit$seconds, 3))))
  invisible(x)
}
