# Describes a fit in lines of text, for print(), summary() and report().

# Each function returns the text to print after its label. NULL or NA omits the line.
fit_fields <- list(
  Data = function(fit, response) {
    omitted <- if (is.null(fit$source)) length(fit$na.action) else fit$source$omitted
    kinds <- vapply(fit$frame$variables, `[[`, "", "kind")
    groups <- sum(kinds == "group")
    inputs <- length(fit$frame$columns) - groups
    variables <- length(kinds) - groups
    levels <- response$levels
    paste0(count_of(fit$nobs, "row"), if (is_weighted(fit)) " with weights",
           if (isTRUE(fit$added > 0)) sprintf(" (%s added after estimation)", show_count(fit$added)),
           if (omitted) sprintf(" (%d more omitted by na.action)", omitted),
           if (inputs) paste0(", ", count_of(if (variables) variables else inputs, "input")),
           if (variables && variables != inputs) {
             paste0(" (", count_of(inputs, "column"), if ("factor" %in% kinds) ": a factor has one for each level" else
               if ("sphere" %in% kinds) ": sphere() has three", ")")
           }, if (groups) paste0(", ", count_of(groups, "grouping factor")),
           if (has_ends(response) && !is.null(fit$data)) {
             L <- fit$data$sites$y
             U <- fit$data$sites$size
             known <- c(if (response$reads == "times") "events" else "observed", "right-censored", "left-censored",
                        "interval-censored")
             kind <- ifelse(L == U, 1L, ifelse(is.infinite(U), 2L, ifelse(L == (if (min(L) < 0) -Inf else 0), 3L, 4L)))
             counts <- tabulate(kind, 4L)
             if (any(L != U)) paste0("; ", paste(counts[counts > 0], known[counts > 0], collapse = ", "))
           },
           if (response$kind %in% c("labels", "ordered")) {
             sprintf("; %d classes: %s", length(levels), list_quoted(levels, "\""))
           } else if (!is.null(levels)) {
             sprintf("; success is \"%s\", failure is \"%s\"", levels[2L], levels[1L])
           }, if (!is.null(fit$chosen)) sprintf("; subsample of %s", count_of(fit$m, "random row")))
  },
  # Name a shape parameter or a transform here, because the title does not.
  Response = function(fit, response) {
    if (is.null(fit$theta) && is.null(fit$likelihood$row)) {
      if (is.null(fit$transform)) return(if (response$kind == "labels") unname(unlist(fit$because)["rival"]))
      return(sprintf("%s; mean, kernel and noise are on the %s scale", describe_transform(fit$transform),
                     if (fit$transform$kind == "log") "log" else "transformed"))
    }
    if (response$kind == "ordered") { # show cut points minus the constant mean or intercept of f
      cuts <- cut_points(fit$theta) - if (is.null(fit$linear)) fit$center else fit$linear["(Intercept)", "Estimate"]
      between <- paste(utils::head(response$levels, -1L), utils::tail(response$levels, -1L), sep = "|")
      between <- paste(gsub("%", "%%", between, fixed = TRUE), "%s", collapse = ", ")
      return(with_numbers(sprintf("%s, cut points minus the %s of f: %s", response$full_label,
                                  if (is.null(fit$linear)) "mean" else "intercept", between), cuts[is.finite(cuts)]))
    }
    if (!is.null(fit$likelihood$row)) { # a family of gp_family()
      values <- if (length(fit$theta)) sprintf("%s = %s", response$shape, format(signif(fit$theta, 4)))
      return(paste(c(fit$likelihood$label, if (length(values)) toString(values)), collapse = "; "))
    }
    with_numbers(paste(c(response$full_label, paste(response$shape_label %||% response$shape, "%s"),
                         sprintf("found in place of %s()", fit$likelihood$from)), collapse = ", "),
                 response$shown(fit$theta))
  },
  Source = function(fit, response) {
    if (is.null(fit$source)) return(NULL)
    read <- sprintf("%s, read %d times", fit$source$label, fit$source$passes)
    if (!is.null(fit$data)) return(paste0(read, "; all rows are kept in memory"))
    sampled <- c(if (fit$hyper != "fixed") c("kernel", "noise"), if (fit$inducing_method != "given") "inducing points")
    if (!length(sampled)) return(read)
    sprintf("%s; %s come from at most %s random rows, here %s (equal rows may be merged)", read,
            list_quoted(sampled, ""), show_count(getOption("pfdtc.sample", 1e5)), show_count(fit$source$sample))
  },
  Mean = function(fit, response) {
    scale <- if (fit_link(fit) != "identity") sprintf(" on the %s scale", fit_link(fit))
    only <- if (has_intercept_only(fit$linear)) fit$linear["(Intercept)", "Estimate"]
    if (!is.null(only)) return(if (response$kind != "ordered") with_numbers(paste0("constant, %s", scale), only))
    sd <- sqrt(term_variances(fit)["linear mean"])
    linear <- if (!is.na(sd)) "linear; prior sd of the coefficients %s, for inputs divided by their sd"
    if ("(Intercept)" %in% rownames(fit$linear)) return(with_numbers(linear %||% "linear", if (!is.na(sd)) sd))
    level <- if (length(fit$center) > 1L) "constant for each class" else
      if (fit$center != 0 && response$kind != "ordered") with_numbers(paste0("constant, %s", scale), fit$center)
    if (is.null(linear)) return(level) # `linear` may have no table, as with warped inputs
    with_numbers(paste(c(level, linear), collapse = ", plus "), attr(level, "values"), sd)
  },
  Kernel = function(fit, response) {
    variance <- term_variances(fit)
    if (!length(variance) || anyNA(names(variance))) {
      words <- unname(term_words(fit$kernel, fit$frame$columns))
      if (!identical(words, "linear mean")) return(paste(words, collapse = " + "))
      logs <- if (isTRUE(warp_of(fit$kernel)$logs)) fit$frame$columns[warp_of(fit$kernel)$inputs]
      return(paste0("none, because f is linear", if (length(logs)) paste(" in logs of inputs:", toString(logs))))
    }
    # Omit groups, which have a table of their own, and a linear mean, which is in the line `Mean`.
    own <- names(variance) != "linear mean" &
      !attr(variance, "term") %in% vapply(group_roots(fit$kernel), `[[`, "", "name")
    if (!any(own)) return(NULL)
    with_numbers(paste0(gsub("%", "%%", names(variance)[own], fixed = TRUE), ", sd %s", collapse = "; "),
                 sqrt(variance[own]))
  },
  Noise = function(fit, response) {
    if (!response$conjugate) return(NULL)
    trend <- fit$noise_trend
    range <- if (!is.null(trend$smooth)) pmin(trend$range, trend$top %||% Inf)
    variables <- if (length(trend$names) == length(fit$frame$columns) && length(trend$names) > 1L) "all inputs" else
      toString(unique(sub("^(sphere\\(.*\\))[xyz]$", "\\1", trend$names)))
    weight <- if (!is.null(fit$data) && is_weighted(fit)) " at weight 1"
    limit <- if (is.null(c(weight, trend, fit$added, fit$dropped)) && !is.null(fit$learned))
      least_noise[["learned"]] * fit$sd_y^2 * (attr(fit$learned, "factor") %||% 1)
    more <- if (asks_no_noise(fit$asked$noise)) {
      ", the minimum (noise = 0: interpolation)"
    } else if (!is.null(trend$smooth)) {
      paste0(", a smooth function of ", variables)
    } else if (!is.null(trend)) {
      sprintf(" at the mean of %1$s over distinct rows; the log noise variance is linear in %1$s", variables)
    } else if (isTRUE(fit$noise < 1.1 * limit)) {
      ", at its lower limit; intervals are too wide if the noise is smaller"
    }
    with_numbers(paste0(if (is.null(range)) "sd %s" else "sd between %s and %s", weight,
                        if (!is.null(more)) gsub("%", "%%", more, fixed = TRUE)), sqrt(fit$noise * (range %||% 1)))
  },
  "Noise tails" = function(fit, response) {
    if (!has_learned_tails(fit)) return(NULL)
    with_numbers(paste("heavier than normal, because the noise variance is random; its log has sd %s.",
                       "Predictions use this; the log marginal likelihood does not."), sqrt(fit$noise_tail))
  },
  "Noise sd" = function(fit, response) {
    if (is.null(fit$noise_tail) || has_learned_tails(fit)) return(NULL)
    with_numbers(paste("uncertain; prediction intervals and densities average over it (sd of the log noise variance",
                       "%s, by the number of rows and hyperparameters, not from vcov())"), sqrt(fit$noise_tail))
  },
  # If two coordinates are the only inputs, use terms of geostatistics: nugget, partial sill and practical ranges.
  Variogram = function(fit, response) {
    columns <- fit$frame$columns
    v <- fit$frame$variables
    globe <- length(v) == 1L && v[[1L]]$kind == "sphere"
    flat <- length(columns) == 2L && (are_coordinates(columns) || are_coordinates(rev(columns)))
    if (!response$conjugate || !(globe || flat) || varies(fit$kernel)) return(NULL)
    ranges <- signif(vapply(if (globe) 3L else 1:2, practical_range, 0, fit$kernel, length(columns)), 3)
    range <- if (globe) sprintf("%g km", ranges) else
      if (ranges[1L] == ranges[2L]) sprintf("%g", ranges[1L]) else paste(ranges, "along", columns, collapse = ", ")
    # There is no single nugget if the noise varies.
    nugget <- if (is.null(fit$noise_trend)) fit$noise
    with_numbers(paste0(if (!is.null(nugget)) "nugget (noise variance) %s, ", "partial sill (kernel variance) %s, ",
                        "practical range (correlation 0.05) ", range),
                 c(nugget, total_variance(fit$kernel)))
  },
  Posterior = function(fit, response) {
    if (is.null(fit$inducing) || is_exact(fit)) return(NULL)
    how <- switch(fit$inducing_method, greedy = "rows chosen greedily by residual prior variance",
                  divergence = "rows chosen greedily by preconditioned Fisher (pF) divergence", random = "random rows",
                  kmeans = "centres of k-means", given = "as given", fit$inducing_method)
    if (has_moved_points(fit)) {
      how <- sprintf("with optimised locations (start: %s%s)", how,
                     if (is.na(fit$evaluations["other start"])) "" else "; the better of two, by variance and by pF")
    }
    points <- count_of(fit$m, "inducing point")
    fewer <- if (isTRUE(fit$m < fit$m_asked) && !is.null(fit$asked[["m"]] %||% fit$call$m)) {
      sprintf("; fewer than `m` = %d, because %s", fit$m_asked, if (fit$inducing_method %in% c("greedy", "divergence"))
        "further points would change the kernel only by rounding" else "the data have no further distinct rows")
    }
    if (is_laplace_limit(fit)) {
      return(paste0(response$words[["by"]], " with ", points, fewer, ": the same as with all rows, up to rounding"))
    }
    left <- if (isTRUE(is.finite(fit$unexplained)) && !isTRUE(fit$unexplained < 1e-8)) {
      sprintf("; mean residual prior variance %s times the %snoise variance", format(signif(fit$unexplained, 2)),
              if (response$conjugate) "" else "mean working ")
    }
    paste0(points, ", ", how, fewer, left)
  },
  Neighbours = function(fit, response) {
    if (is.null(fit$near)) return(NULL)
    kept <- fit$near$rows$x
    rows <- if (!is.null(kept)) sprintf(", out of %s rows kept in memory (%s)", show_count(nrow(kept)),
                                        show_bytes(8 * length(kept)))
    far <- if (length(fit$near$neighbours) > 1L) sprintf(", or %d if it is far from the data", fit$near$neighbours[2L])
    paste0(sprintf("%d nearest rows for a prediction", fit$neighbours), far, rows,
           if (!response$conjugate) ", by a Gaussian approximation at the mode")
  },
  Trial = function(fit, response) {
    if (is.null(fit$trial) || !is.null(fit$near)) return(NULL) # the line `Choices` has the gain of neighbours
    sprintf("log density per held-out row, without neighbours minus with: %+.4f (%d rows, standard error %.4f)",
            fit$trial[["gain"]], as.integer(fit$trial[["rows"]]), fit$trial[["se"]])
  },
  Auxiliary = function(fit, response) {
    if (is.null(fit$aux) || isFALSE(fit$moved)) return(NULL)
    paste0(format(fill_aux(fit$aux, min(fit$nobs, fit$control$optimise_rows), fit$m, nrow(fit$aux_points))),
           "; the preconditioned Fisher (pF) divergence is an expected value under this distribution of f")
  },
  Estimation = function(fit, response) {
    if (!response$conjugate) {
      ended <- if (fit$convergence %in% 1:2) paste0("; ", fit$message) # "`maxit` was reached", or `max_seconds`
      if (fit$hyper != "fixed") return(paste0(response$words[["learned"]], ended))
      open <- c(if (fit$df > response$learned) "mean", if (response$learned) response$shape)
      open <- open[length(fit$evaluations) > 0L] # a search that failed at its start has none
      return(paste0("hyperparameters given, not estimated", if (length(open)) paste(", except", list_quoted(open, ""))))
    }
    text <- switch(fit$hyper, fixed = "hyperparameters given, not estimated",
                   evidence = if (is_groups_only(fit$kernel)) "restricted maximum likelihood" else
                     describe_starts(fit$learned),
                   pilot = "evidence lower bound (ELBO) with fixed random inducing points (`hyper` = \"pilot\")",
                   joint = if (is.null(method_traits(fit)$objective)) "log marginal likelihood" else
                     "hyperparameters and inducing points, optimised in turn", fit$hyper)
    code <- fit$pilot$convergence
    if (is.null(code) || code == 0L) return(text)
    stopped <- switch(as.character(code), "1" = "at `maxit`", "2" = "at its time limit", "52" = "by an interrupt",
                      paste("with code", code))
    sprintf("%s; the search was stopped %s", text, stopped)
  },
  Optimisation = function(fit, response) {
    idle <- c("nothing to optimise", unlist(fit$because)["move"]) # `because` is in the line `Choices`
    if (!response$conjugate || isTRUE(fit$message %in% idle)) return(NULL)
    # The gain in the last 10 % of evaluations shows if a larger `maxit` is worthwhile. It is unknown if the auxiliary
    # distribution, and with it the objective, changed during the search.
    best <- cummin(if (is.null(fit$trace$round)) fit$trace$objective[!is.na(fit$trace$objective)])
    n <- length(best)
    late <- if (n >= 20L && best[1L] > best[n]) {
      share <- 100 * (best[floor(0.9 * n)] - best[n]) / (best[1L] - best[n])
      sprintf("; the last 10 %% of evaluations gave %s %% of the improvement",
              if (share < 0.01) "less than 0.01" else format(signif(share, 2)))
    }
    maxit <- fit$maxit %||% fit$control$maxit # missing in fits of version 0.1.0
    how <- switch(as.character(fit$convergence), "1" = paste0(sprintf("stopped at `maxit` = %d", maxit), late),
                  "52" = "interrupted; the fit is the best so far", fit$message)
    if (is.null(how) || !nzchar(how)) how <- paste("code", fit$convergence)
    if (how %in% c("no lower value can be found in double precision", "the gradient is zero")) {
      how <- sprintf("converged (%s)", sub("value", "objective", how))
    }
    what <- c(if (has_moved_points(fit)) "inducing points", if (identical(fit$hyper, "joint")) "hyperparameters")
    paste0(paste(what, collapse = " and "), if (length(what)) ": ", how)
  },
  "Rows used" = function(fit, response) {
    rows <- fit$looked_at
    if (!length(rows)) return(NULL)
    text <- c(learn = "kernel and noise", among = "neighbours of these rows", points = "inducing points")
    used <- intersect(names(text), names(rows))
    sprintf("%s of %s rows; the posterior uses all rows",
            paste(text[used], "from", vapply(rows[used], show_count, ""), collapse = ", "), show_count(fit$nobs))
  },
  Accuracy = function(fit, response) describe_tolerance(fit),
  Check = function(fit, response) {
    if (is.null(fit$small_n)) return(NULL)
    # Log densities may be -Inf, or -1e299 for a constant response.
    nats <- function(v) if (v < -1e6) "below -1e6" else sprintf("%.2f", v)
    line <- if (is.finite(fit$small_n$linear)) sprintf("least squares %s, ", nats(fit$small_n$linear)) # -Inf: few rows
    of <- if (!is.null(fit$transform) || !isTRUE(all.equal(fit$scale, fit$sd_y))) "the scaled response" else "y / sd(y)"
    sprintf("leave-one-out log density per row of %s, higher is better: this fit %s, %sa constant %s", of,
            nats(fit$small_n$fit), line %||% "", nats(fit$small_n$mean))
  },
  Choices = function(fit, response) {
    because <- unlist(fit$because)
    plain <- c("learned", if (response$kind == "labels") "rival", if (is.null(fit$transform)) "response",
               if (is.null(fit$noise_trend)) c("sizes", "noise_variance"),
               if (is.null(attr(fit$kernels, "gained"))) "kernel",
               if (is_exact(fit) || is_laplace_limit(fit)) "posterior", if (is.null(fit$near)) "neighbours",
               if (!has_moved_points(fit)) "move",
               if (!any(grepl("lengthscale", names(stats::coef(fit))))) "factors")
    because[!names(because) %in% plain]
  })

# Returns what print() and summary() show as a list: elements of the fit, tables, and lines by `fit_fields`.
fit_facts <- function(fit) {
  parts <- c("call", "method", "kernel", "kernels", "noise", "m", "hyper", "center", "scale", "nobs", "df", "evidence",
             "objective", "jitter", "evaluations", "seconds", "convergence", "message", "posterior", "likelihood",
             "source", "transform", "because")
  fit$linear <- linear_coefficients(fit)
  fields <- lapply(fit_fields, function(text) text(fit, response_of(fit)))
  if (response_of(fit)$kind == "ordered") fit$linear <- fit$linear[-1L, , drop = FALSE] # is in cut points
  fit$evidence <- largest_evidence(fit)
  inputs <- input_table(fit)
  # Count the learned hyperparameters that coef() omits. Smooth noise counts with its effective number of parameters.
  of <- c("varying noise" = noise_df(fit$noise_trend), transform = identical(fit$transform$kind, "yeojohnson"))
  of <- of[of > 0 & !fit$hyper %in% "fixed"]
  df_text <- paste0(
    count_of(as.integer(fit$df), if (is.null(fit$noise_trend$smooth)) "hyperparameter" else "effective parameter"),
    if (length(of) && sum(of) <= fit$df)
      sprintf(", of which %s", toString(sprintf("%d for the %s", as.integer(of), names(of)))))
  c(unclass(fit)[intersect(parts, names(fit))], list(
    title = fit_title(fit), coefficients = stats::coef(fit), sigma = stats::sigma(fit), columns = fit$frame$columns,
    inputs = inputs, range = stats::setNames(inputs$range, inputs$name), linear = fit$linear,
    groups = group_table(fit), df_text = df_text, fields = fields))
}

has_intercept_only <- function(linear) {
  identical(grep("^noise[.]", rownames(linear), value = TRUE, invert = TRUE), "(Intercept)")
}

has_moved_points <- function(fit) {
  moved <- fit$moved %||% (!is.null(fit$likelihood) && !is.null(fit$aux)) # other families keep `aux` only if they moved
  isTRUE(moved) && !identical(method_traits(fit)$objective, "none") && !isTRUE(fit$control$maxit == 0)
}

# Returns the first line of print() for a fit.
fit_title <- function(fit) {
  response <- response_of(fit)
  model <- if (is_groups_only(fit$kernel)) c("Linear mixed model", "Generalised linear mixed model") else
    c("Gaussian process regression", "Gaussian process")
  if (response$conjugate) return(paste0(model[1L], ", ", posterior_title(fit)))
  sprintf("%s, %s response%s, %s", model[2L], response$label,
          if (fit_link(fit) %in% c("identity", "latent")) "" else sprintf(" (%s link)", fit_link(fit)),
          response$words[["by"]])
}

# Returns the name of a fit's posterior, such as "exact posterior", or of the method if `fit` is only list(method).
posterior_title <- function(fit) {
  family <- method_traits(fit)
  pf <- is.null(fit$inducing) || has_moved_points(fit) || fit$inducing_method == "divergence" # pF was minimised
  if (isTRUE(family$chooses)) family$title <- switch(fit$posterior %||% "far", exact = "exact posterior",
    "far + near" = "inducing points with neighbours", if (pf) family$title else gp_families$gp_dtc$title)
  if (is.null(family$title)) fit$method else sub("^the ", "", family$title)
}


# Returns the factors of a kernel in words, such as "Matern 3/2 in year", with their names in coef() as names. Inputs
# are omitted if a factor has all of them. Factors with equal words are numbered.
factor_words <- function(kernel, columns) {
  words <- vapply(as_sum(kernel)$leaves, function(leaf) {
    of <- if (is.null(leaf$of)) columns[leaf$inputs] else leaf$of
    label <- leaf$label %||% plain_kernels[[leaf$profile]]$label %||% leaf$profile
    if (!length(of) || length(of) >= length(columns)) return(label)
    paste0(label, if (is_group(leaf)) " " else " in ", sub(", ([^,]*)$", " and \\1", paste(of, collapse = ", ")))
  }, "")
  twice <- words %in% words[duplicated(words)]
  words[twice] <- sprintf("%s (%d)", words, stats::ave(seq_along(words), words, FUN = seq_along))[twice]
  stats::setNames(words, if (has_one_factor(kernel)) "" else leaf_names(kernel$leaves))
}

# Returns the variances of a kernel's terms, named by the terms in words. The attribute `term` has the terms' names in
# coef(), without ".variance" ("" if there is one term).
term_variances <- function(fit) {
  theta <- stats::coef(fit)
  words <- term_words(fit$kernel, fit$frame$columns)
  variance <- theta[grepl("(^|[.])variance$", names(theta))]
  term <- sub("[.]?variance$", "", names(variance))
  structure(variance, names = words[match(term, names(words))], term = term)
}

# Returns a kernel's terms in words, such as "Matern 3/2 times periodic", with their names in coef() as names.
term_words <- function(kernel, columns) {
  words <- factor_words(kernel, columns)
  terms <- vapply(as_sum(kernel)$terms, function(t) paste(words[t$leaves], collapse = " times "), "")
  stats::setNames(terms, if (has_one_factor(kernel)) "" else term_names(kernel))
}

# Returns names of coef() in words, with factors and terms of the kernel, such as "periodic: period". Names such as
# "mean.<class>" are constant means of classes, not parameters of a linear mean.
parameter_words <- function(names, kernel, columns) {
  constant <- grepl("^mean($|[.])", names) & !names %in% c("mean.variance", columns)
  one <- if ("(Intercept)" %in% names) "Constant mean (included in (Intercept))" else "Constant mean"
  names[constant] <- sub("^mean[.]", "Constant mean, ", sub("^mean$", one, names[constant]))
  names <- sub("^width[.](.*)", "Width of class \\1, between its two cut points", names)
  names <- sub("additive.share", "variance ratio, terms of one input to the term of all inputs", names, fixed = TRUE)
  names <- sub("additive.pairs", "variance ratio, terms of two inputs to the term of all inputs", names, fixed = TRUE)
  names <- sub("additive.ratio", "lengthscale ratio, term of all inputs to terms of one input", names, fixed = TRUE)
  words <- c(factor_words(kernel, columns), term_words(kernel, columns))
  roots <- group_roots(kernel)
  effects <- stats::setNames(lapply(roots, `[[`, "effects"), vapply(roots, `[[`, "", "name"))
  for (f in names(words)[nzchar(names(words))]) {
    own <- startsWith(names, paste0(f, ".")) & !names %in% columns
    what <- substring(names[own], nchar(f) + 2L)
    first <- effects[[f]][1L]
    if (length(effects[[f]]) > 1L) what <- sub("^variance$", paste("variance of", first), what)
    names[own] <- paste0(words[[f]], ": ", sub("^scale[.](.*)", paste("sd of \\1 / sd of", first), what))
  }
  own <- !names %in% columns
  names[own] <- sub("(^|: )(gap|distance)([.].*|)$", "\\1\\2\\3, correlation exp(-\\2)", names[own])
  names
}

# Describes from how many starts the first search began, and how many of them almost reached the best value.
describe_starts <- function(learned) {
  if (is.null(learned)) return("none: the fit ended before hyperparameters were learned")
  by <- attr(learned, "by") %||% "log marginal likelihood" # missing in older fits
  if (isTRUE(attr(learned, "ended"))) return(paste0(by, "; the search was stopped by `max_seconds`"))
  if (nrow(learned) == 1L) return(paste0(by, ", from the given start"))
  behind <- sort(max(learned$evidence) - learned$evidence)
  agree <- sum(behind <= attr(learned, "same"))
  sprintf("%s, first search: %d starts (%d within %.3g nats of the best value%s)", by, nrow(learned), agree,
          attr(learned, "same"), if (agree == 1L) sprintf("; the next best is %.1f lower", behind[2L]) else "")
}

# Returns a data frame of the inputs, also for a fit without its data: name (as in lengthscales of coef()), unit, range,
# and the R `factor` to which a 0/1 column belongs ("" if none).
input_table <- function(fit) {
  x <- rotated(fit$kernel, slice_rows(fit)) # lengthscales are those of rotated or warped inputs
  name <- fit$frame$columns
  table <- data.frame(name, unit = "", range = apply(x, 2L, function(v) diff(range(v))), factor = "")
  shared <- unlist(lapply(as_sum(fit$kernel)$leaves, function(leaf) names(leaf$shared)))
  for (v in placed_variables(fit$frame)) {
    if (v$kind == "factor") table$factor[v$columns] <- v$name
    if (v$kind == "factor" && v$name %in% shared)
      table[v$columns, c("name", "range")] <- list(c(v$name, rep(NA, v$width - 1L)), 1)
    if (is.null(v$unit)) next
    at <- v$columns[1L]
    if (v$kind == "sphere") {
      table$range[at] <- 2 * min(sqrt(max(rowSums((t(t(x[, v$columns]) - colMeans(x[, v$columns])))^2))), earth_radius)
      table$name[v$columns] <- c(v$name, NA, NA)
    }
    table$unit[at] <- v$unit
  }
  of <- if (is.null(fit$data) && is.null(fit$frame$outline) && !is_exact(fit)) "inducing points" else "data"
  structure(table[!is.na(table$name), ], rows = of)
}
