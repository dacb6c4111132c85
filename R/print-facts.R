# Facts of a fit, one sentence each, for print(), summary() and report().

# Returns everything that print() and summary() show of a fit: its elements, texts and tables.
fit_facts <- function(fit) {
  parts <- c("call", "method", "kernel", "kernels", "noise", "m", "hyper", "center", "scale", "nobs", "df", "evidence",
             "objective", "jitter", "evaluations", "seconds", "convergence", "message", "posterior", "likelihood",
             "source")
  linear <- linear_coefficients(fit)
  c(unclass(fit)[intersect(parts, names(fit))], list(
    title = fit_title(fit), coefficients = stats::coef(fit), sigma = stats::sigma(fit), columns = fit$frame$columns,
    range = input_range(fit), linear = linear, data = describe_data(fit), mean = describe_mean(fit, linear),
    response = describe_response(fit), source_read = describe_source(fit$source, !is.null(fit$data)),
    points = describe_points(fit), neighbours = describe_neighbours(fit), estimation = describe_estimation(fit),
    choices = if (length(fit$because)) paste(unlist(fit$because), collapse = " "),
    auxiliary = describe_aux(fit), accuracy = describe_tolerance(fit),
    rows_used = describe_rows_used(fit), small_n = describe_small_n(fit$small_n), trial = describe_trial(fit$trial),
    noise_trend = describe_noise(fit), optimiser = describe_convergence(fit)))
}

# Returns the first line of print(); a list with a `method` is enough for the short title of that method.
fit_title <- function(fit) {
  if (!response_of(fit)$conjugate) {
    response <- response_of(fit)
    link <- if (response$link_name == "identity") "" else sprintf(" (%s link)", response$link_name)
    return(sprintf("Gaussian process, %s response%s, %s", response$label, link, response$words[["by"]]))
  }
  paste("Gaussian process regression,", posterior_title(fit))
}

posterior_title <- function(fit) {
  family <- gp_family(fit)
  if (isTRUE(family$chooses) && identical(fit$posterior, "exact")) return("exact posterior")
  if (isTRUE(family$chooses) && identical(fit$posterior, "far + near")) return("inducing points with neighbours")
  if (is.null(family$title)) fit$method else sub("^the ", "", family$title)
}

describe_data <- function(fit) {
  omitted <- if (is.null(fit$source)) length(fit$na.action) else fit$source$omitted
  inputs <- length(fit$frame$columns)
  variables <- length(fit$frame$variables)
  count <- function(n, what) sprintf("%d %s%s", n, what, plural_s(n))
  levels <- response_of(fit)$levels
  paste0(count(fit$nobs, "row"), if (omitted) sprintf(" (%d more omitted by na.action)", omitted), ", ",
         count(inputs, "input"), if (variables && variables != inputs) sprintf(" (%s)", count(variables, "variable")),
         if (!is.null(levels)) sprintf("; success is \"%s\", failure is \"%s\"", levels[2L], levels[1L]),
         if (!is.null(fit$chosen)) sprintf("; subsample of %s", count(fit$m, "random row")))
}

# Returns what is not in the title: a shape parameter or a transform.
describe_response <- function(fit) {
  if (is.null(fit$theta)) return(describe_transform(fit$transform))
  sprintf("%s, %s %s", response_of(fit)$full_label, response_of(fit)$shape, format(signif(fit$theta, 4)))
}

# Returns a function of `number`, which formats with the digits of the call. Coefficients of a linear mean have a table.
describe_mean <- function(fit, linear) {
  link <- response_of(fit)$link_name
  scale <- if (is.null(link) || link == "identity") "" else sprintf(" on the %s scale", link)
  function(number) {
    if ("(Intercept)" %in% rownames(linear)) return("linear")
    if (fit$center != 0) sprintf("constant, %s%s", number(fit$center), scale)
  }
}

# Returns each term of the kernel with its sd.
describe_kernel <- function(about, number) {
  theta <- about$coefficients
  variance <- theta[grepl("(^|[.])variance$", names(theta))]
  if (!length(variance)) return(kernel_label(about))
  terms <- term_labels(about, sub("[.]variance$", "", names(variance)))
  paste(sprintf("%s, sd %s", terms, vapply(sqrt(variance), number, "")), collapse = "; ")
}

# A kernel that was chosen has the names of its factors, any other its formula.
kernel_label <- function(about) {
  if (!is.null(about$kernels)) return(sum_label(about$kernel))
  all_inputs(about$kernel$label, about$columns)
}

# Returns what the posterior is made of, unless it is the exact one.
describe_points <- function(fit) {
  if (is.null(fit$inducing) || is_exact(fit)) return(NULL)
  how <- switch(fit$inducing_method, greedy = "chosen greedily", divergence = "chosen greedily by the pF divergence",
                random = "started at random rows", kmeans = "started by k-means", given = "start given",
                fit$inducing_method)
  tried <- if (!is.na(fit$evaluations["other start"])) " (the better of two starts)"
  points <- sprintf("%d inducing point%s", fit$m, plural_s(fit$m))
  if (isTRUE(fit$m < fit$m_asked)) {
    why <- if (fit$inducing_method %in% c("greedy", "divergence")) "they explain the kernel matrix to rounding" else
      "the data have no more different rows"
    points <- sprintf("%s of %d asked for (%s)", points, fit$m_asked, why)
  }
  if (is_laplace_limit(fit)) return(sprintf("%s of the exact GP (%s)", response_of(fit)$words[["by"]], points))
  left <- if (isTRUE(is.finite(fit$unexplained)) && !isTRUE(fit$unexplained < 1e-8)) {
    sprintf("; residual prior variance %s times the %snoise variance", format(signif(fit$unexplained, 2)),
            if (response_of(fit)$conjugate) "" else "mean working ")
  }
  paste0(points, ", ", how, tried, left)
}

describe_neighbours <- function(fit) {
  if (is.null(fit$near)) return(NULL)
  kept <- fit$near$rows$x
  rows <- if (!is.null(kept)) sprintf(", out of %s rows kept in memory (%s)", show_count(nrow(kept)),
                                      show_bytes(8 * length(kept)))
  paste0(sprintf("%d nearest rows for each prediction", fit$neighbours), rows,
         if (!response_of(fit)$conjugate) ", as working responses at the mode")
}

# `gain` is the mean difference of log densities, without neighbours less with them.
describe_trial <- function(trial) {
  if (is.null(trial)) return(NULL)
  sprintf("without neighbours, the log density changes by %+.4f per held-out row (%d rows, standard error %.4f)",
          trial[["gain"]], as.integer(trial[["rows"]]), trial[["se"]])
}

describe_source <- function(source, kept) {
  if (is.null(source)) return(NULL)
  sprintf("%s, read %d times; %s", source$label, source$passes,
          if (kept) "all rows are kept in memory"
          else sprintf("kernel, noise and inducing points come from %s random rows", show_count(source$sample)))
}

describe_aux <- function(fit) {
  if (is.null(fit$aux) || isFALSE(fit$moved)) return(NULL)
  format(fill_aux(fit$aux, min(fit$nobs, fit$control$optimise_rows), fit$m, nrow(fit$aux_points)))
}

# Returns how many rows were used for what, where these are not all rows.
describe_rows_used <- function(fit) {
  rows <- fit$looked_at
  if (!length(rows)) return(NULL)
  text <- c(learn = "kernel and noise from %s", among = "their neighbours from %s", points = "inducing points from %s")
  used <- intersect(names(text), names(rows))
  sprintf("%s of %s rows; the posterior uses all rows",
          paste(vapply(used, function(name) sprintf(text[[name]], show_count(rows[[name]])), ""), collapse = ", "),
          show_count(fit$nobs))
}

# Returns how the hyperparameters were found.
describe_estimation <- function(fit) {
  if (!response_of(fit)$conjugate) {
    response <- response_of(fit)
    open <- c(if (fit$df > response$learned) "mean", if (response$learned) response$shape)
    if (fit$hyper != "fixed") return(response_of(fit)$words[["learned"]])
    return(paste0("fixed as given", if (length(open)) paste(" except", paste(open, collapse = " and "))))
  }
  text <- switch(fit$hyper, fixed = "fixed as given", evidence = describe_starts(fit$learned),
                 pilot = "pilot VFE fit, then fixed",
                 joint = if (is.null(gp_family(fit)$objective)) "log marginal likelihood" else
                   "jointly with the inducing points", fit$hyper)
  code <- fit$pilot$convergence
  if (is.null(code) || code == 0L) return(text)
  stopped <- switch(as.character(code), "1" = "at `maxit`", "2" = "at its time limit", "52" = "by an interrupt",
                    paste("with code", code))
  sprintf("%s; the pilot was stopped %s", text, stopped)
}

# When one start alone reached the best value, the distance of the next shows whether that matters.
describe_starts <- function(learned) {
  if (is.null(learned)) return("none: the fit ended before hyperparameters were learned")
  if (isTRUE(attr(learned, "ended"))) return("log marginal likelihood, stopped by `max_seconds`")
  if (nrow(learned) == 1L) return("log marginal likelihood, from the one start given")
  behind <- sort(max(learned$evidence) - learned$evidence)
  agree <- sum(behind <= attr(learned, "same"))
  next_best <- if (agree < length(behind) && agree == 1L) sprintf("; next best %.1f nats below", behind[2L]) else ""
  sprintf("log marginal likelihood, %d starts (best reached by %d%s)", nrow(learned), agree, next_best)
}

# Fits of 0.1.0 have `maxit` in their control only.
used_maxit <- function(fit) if (is.null(fit$maxit)) fit$control$maxit else fit$maxit

describe_convergence <- function(fit) {
  idle <- c("nothing to optimise", unlist(fit$because)["move"]) # a reason that is printed as a choice
  if (!response_of(fit)$conjugate || isTRUE(fit$message %in% idle)) return(NULL)
  how <- switch(as.character(fit$convergence),
                "1" = sprintf("stopped at `maxit` = %d%s", used_maxit(fit), describe_late_gain(fit$trace)),
                "52" = "interrupted; the fit is the best so far", fit$message)
  if (is.null(how) || !nzchar(how)) how <- paste("code", fit$convergence)
  if (how %in% c("no lower value can be found in double precision", "the gradient is zero")) {
    how <- paste("converged:", how)
  }
  how
}

# The share of the improvement that the last 10 % of evaluations gave shows whether a larger `maxit` is worth its time.
# Values before and after a renewed auxiliary distribution are not comparable.
describe_late_gain <- function(trace) {
  if (!is.null(trace$round)) return("")
  value <- trace$objective[!is.na(trace$objective)]
  if (length(value) < 20L) return("")
  best <- cummin(value)
  n <- length(best)
  whole <- best[1L] - best[n]
  if (!(whole > 0)) return("")
  late <- 100 * (best[floor(0.9 * n)] - best[n]) / whole
  sprintf("; the last 10 %% of evaluations gave %s %% of the improvement",
          if (late < 0.01) "less than 0.01" else format(signif(late, 2)))
}

describe_rmse <- function(about, number) {
  if (!is.na(about$rmse)) {
    return(paste0(if (!is.null(about$rmse_loo)) sprintf("%s leave-one-out; ", number(about$rmse_loo)),
                  number(about$rmse), " on training rows"))
  }
  if (is.null(about$source)) "not known: the fit was made with keep_data = FALSE" else
    "not known: a fit of a row source keeps no rows"
}

describe_evidence <- function(about, number) {
  family <- gp_family(about)
  value <- number(about$evidence)
  laplace <- response_of(about)$words[["evidence"]]
  kind <- if (!is.null(laplace)) laplace else if (family$some) sprintf("of the subsample of %d rows", about$m) else
    if (family$sor || family$fitc) "of the approximate model" else
      switch(about$posterior, exact = NULL, far = "lower bound, ELBO", "Vecchia estimate, not a bound")
  df <- sprintf("%d hyperparameter%s", as.integer(about$df), plural_s(about$df))
  sprintf("%s (%s)", value, paste(c(kind, df), collapse = "; "))
}

# Lists the shares of the terms in the variance of all terms over the training rows.
listed_shares <- function(about) {
  if (is.null(about$term_shares)) return(NULL)
  toString(sprintf("%s %s %%", term_labels(about, names(about$term_shares)),
                   format(round(100 * about$term_shares), trim = TRUE)))
}

# Returns the labels of the terms of the kernel. `names` are those in coef(), used if the label has other terms.
term_labels <- function(about, names) {
  terms <- if (length(names) == 1L) kernel_label(about) else
    if (!is.null(about$kernels)) vapply(as_sum(about$kernel)$leaves, `[[`, "", "label") else
      strsplit(kernel_label(about), " + ", fixed = TRUE)[[1L]]
  if (length(terms) == length(names)) terms else all_inputs(names, about$columns)
}

describe_time <- function(about) {
  made <- about$evaluations[about$evaluations > 0]
  words <- c(learn = "likelihood", "other start" = "second-start")
  names <- ifelse(names(made) %in% names(words), words[names(made)], names(made))
  evaluations <- if (length(made)) sprintf(" (%s evaluations)", paste(made, names, collapse = ", "))
  paste0(format(signif(sum(unlist(about$seconds)), 3)), " s", evaluations)
}

# Range of each input. A fit without its data has kept minimum, median and maximum.
input_range <- function(fit) {
  x <- slice_rows(fit)
  stats::setNames(apply(x, 2L, max) - apply(x, 2L, min), fit$frame$columns)
}

# Replaces a list of all inputs in the names of terms and factors by "all inputs".
all_inputs <- function(names, columns) {
  if (length(columns) < 2L) return(names)
  gsub(paste0("(", paste(columns, collapse = ","), ")"), "(all inputs)", names, fixed = TRUE)
}

# Returns what follows the noise's sd: its trend, or that it is held for interpolation.
describe_noise <- function(fit) {
  if (asks_no_noise(fit$asked$noise)) return(", held (noise = 0: interpolation)")
  describe_noise_trend(fit$noise_trend)
}
