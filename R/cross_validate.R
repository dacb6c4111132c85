# Cross-validates a fit: fits again without some of the rows, and scores the predictions of those rows.

#' Cross-validate a Gaussian process fit
#'
#' Refits without the rows of each fold, and scores the predictions of the held-out rows (Gneiting and Raftery, 2007).
#'
#' Every row of positive weight is predicted once. By default each fold repeats the whole fit: kernel, hyperparameters,
#' inducing points and neighbours. With `hyper = "held"` each fold keeps what `fit` learned: faster, but too favourable
#' for few rows. Rows of one group, such as a patient, predict one another too well: `by` keeps them in one fold.
#' Without `by`, equal rows (Gaussian noise) share a fold if many are equal, as in a bootstrap sample.
#' @param fit A fit with its data (`keep_data = TRUE`).
#' @param folds Number of random folds, or the fold of each row.
#' @param by Groups of rows: a vector, or a formula such as `~ site`.
#' @param hyper,... `"refit"`, or `"held"` (not for a hurdle), see Details. `...` is not used.
#' @return A data frame of class `pfdtc_cv` with a row for each fold: `fold`; `n`, the number of rows; `rmse` of the
#'   mean response (uncensored rows); `nlpd`, the mean negative log predictive density; `crps`, the mean continuous
#'   ranked probability score. Classes and trials add `brier` and `accuracy`. `cover50` and `cover95` are the shares of
#'   responses in 50 % and 95 % intervals. `seconds` is the time of the fold. Scores that do not exist, as for unordered
#'   classes, are `NA` or left out. Attributes: `overall`, the same scores over all rows; `hyper`; `predictions` with
#'   `row`, `fold`, `y`, `mean` (for unordered classes the probability of `y`) and `sd` (of a new response). For a
#'   non-Gaussian likelihood `predictions` has `size` (trials or end of a censoring interval), `density` (log), `below`
#'   and `upto` (probability of a response below `y`, or at most `y`) instead of `sd`.
#' @seealso [leave_one_out] (single rows, no refits), [compare_fits()], `vignette("pfdtc")`
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_matern(3/2))
#' set.seed(1)
#' cross_validate(fit, folds = 4, by = ~ speed, hyper = "held")
#' @export
cross_validate <- function(fit, folds = 10, by = NULL, hyper = c("refit", "held"), ...) UseMethod("cross_validate")

#' @export
cross_validate.default <- function(fit, folds = 10, by = NULL, hyper = c("refit", "held"), ...) {
  check_dots_empty()
  fit <- check_any_fit(fit, "fit")
  hyper <- check_choice(hyper)
  data <- training_data(fit)
  asked <- settings_again(fit, hyper)
  fold <- make_folds(fit, data, folds, by)
  used <- which(weights_given(data) > 0)
  response <- response_of(fit)
  # The CRPS is omitted for unordered classes: for two classes it equals the Brier score, for more it does not exist.
  shown <- c("n", "rmse", "nlpd", if (!response$kind %in% c("classes", "labels")) "crps",
             if (response$reads %in% c("classes", "labels", "ordered")) c("brier", "accuracy"), "cover50", "cover95")
  columns <- c("y", if (response$conjugate) c("mean", "sd") else c("size", "mean", "density", "below", "upto"))
  found <- over_folds(fold, used, fit$control, function(out) predict_fold(fit, data, asked, used, out),
                      function(each) summarise_scores(response, each)[shown], columns)
  structure(found, hyper = hyper, by = !is.null(by), method = fit$method, rmse_of = response$errors_of)
}

# Returns the result of cross_validate(). answer(out) fits to the rows `used` without a fold `out`, and returns a data
# frame of predictions for `out`; its `columns` are stored. scores(each) returns a row of scores of such a data frame.
over_folds <- function(fold, used, control, answer, scores, columns) {
  started <- told <- proc.time()[["elapsed"]]
  line <- stage_line("cross-validation", control$progress, after = 1)
  ids <- sort(unique(fold[used]))
  parts <- lapply(seq_along(ids), function(i) {
    line(sprintf("fold %d of %d", i, length(ids)))
    began <- proc.time()[["elapsed"]]
    out <- used[fold[used] == ids[i]]
    p <- tryCatch(ended_together(answer(out)), pfdtc_error_input = function(e) {
      abort_input("folds", ids[i], "folds each of which can be left out",
                  message = sprintf("The rows without fold %s cannot be fitted. %s", ids[i], conditionMessage(e)))
    })
    now <- proc.time()[["elapsed"]]
    told <<- tell_progress(control, told,
                           sprintf("Cross-validation: %d of %d folds, after %.0f s", i, length(ids), now - started))
    list(fold = ids[i], predictions = data.frame(row = out, fold = ids[i], p), seconds = now - began)
  })
  row <- function(part) data.frame(fold = part$fold, scores(part$predictions), seconds = part$seconds)
  rows <- do.call(rbind, lapply(parts, row))
  all <- do.call(rbind, lapply(parts, `[[`, "predictions"))
  overall <- row(list(fold = "all", predictions = all, seconds = sum(rows$seconds)))
  all <- all[order(all$row), c("row", "fold", columns)]
  row.names(all) <- row.names(rows) <- NULL
  structure(rows, overall = overall, predictions = all, class = c("pfdtc_cv", "data.frame"))
}

#' @export
print.pfdtc_cv <- function(x, digits = 3, ...) {
  all <- attr(x, "overall")
  check_count(digits, "digits")
  if (is.null(all)) return(NextMethod()) # a subset of a result is printed as a data frame
  cat(sprintf("Cross-validation of %s(): %d rows, %d folds%s\n", attr(x, "method"), all$n, nrow(x),
              if (attr(x, "by")) " of whole groups" else ""))
  cat(if (attr(x, "hyper") == "refit") "For each fold, the whole fit is repeated with the other rows" else
    "The model of the fit is kept in all folds", "\n", sep = "")
  table <- rbind(data.frame(lapply(x, identity)), all)
  table$fold <- c(as.character(x$fold), "all rows")
  table <- table[!vapply(table, function(v) all(is.na(v)), NA)]
  number <- function(v) format(v, digits = digits)
  percent <- function(v) sprintf("%.1f %%", 100 * v)
  shown <- list(rmse = number, nlpd = number, crps = number, brier = number, accuracy = percent, cover50 = percent,
                cover95 = percent, seconds = function(v) sprintf("%.2f", v))
  for (what in intersect(names(shown), names(table))) table[[what]] <- shown[[what]](table[[what]])
  label <- c(fold = "Fold", n = "Rows", rmse = "RMSE", nlpd = "NLPD", crps = "CRPS", brier = "Brier score",
             accuracy = "Accuracy", cover50 = "In 50 % intervals", cover95 = "In 95 % intervals", seconds = "Seconds")
  words <- c(rmse = if (!is.null(attr(x, "rmse_of"))) paste("RMSE: of", attr(x, "rmse_of")),
             nlpd = "NLPD: mean negative log predictive density",
             crps = "CRPS: mean continuous ranked probability score")
  cat(words[names(words) %in% names(table)], "", sep = "\n")
  names(table) <- label[names(table)]
  print(table, row.names = FALSE, right = TRUE)
  invisible(x)
}

# Returns arguments for fit_as_asked(), to fit the model to other rows. hyper = "held" keeps what `fit` learned.
settings_again <- function(fit, hyper) {
  held <- hyper == "held"
  refuse_if(is.null(fit$asked) && !held, "fit", "was made by an earlier version, which kept no record of its arguments",
            hint = "Fit again, or use hyper = \"held\".")
  control <- replace(fit$control, "progress", FALSE)
  asked <- fit$asked %||% list(center = fit$center != 0, scale = fit$scale != 1)
  # Fits of earlier versions lack some settings.
  if (isFALSE(asked$aux_given)) asked["aux"] <- list(NULL)
  asked$mean <- asked$mean %||% ~ 1
  asked$transform <- asked$transform %||% "plain"
  if (held) {
    asked[c("kernel", "noise", "hyper", "transform")] <- list(fit$kernel, fit$noise, "fixed", fit$transform)
    asked[c("tol", "m", "inducing", "neighbours")] <- list(NULL)
    if (method_traits(fit)$some) asked$m <- fit$m
    if (is.null(fit$x)) {
      asked["inducing"] <- list(fit$inducing)
      if (method_traits(fit)$chooses) asked["neighbours"] <- list(fit$neighbours)
      control$maxit <- 0L
    }
  }
  if (!response_of(fit)$conjugate) {
    asked["noise"] <- control["maxit"] <- list(NULL)
    asked["likelihood"] <- if (held) list(replace(fit$likelihood, "learned", FALSE)) else
      fit$likelihood$asked %||% list(fit$likelihood)
    if (isTRUE(asked$likelihood$learned)) asked$likelihood["theta"] <- list(NULL)
  }
  c(list(method = fit$method, call = fit$call), asked, list(control = control, keep_data = TRUE))
}

# Fits to the rows `used` except `out`, and returns the scores (score_each()) of the predictions for `out`.
predict_fold <- function(fit, data, asked, used, out) {
  train <- setdiff(used, out)
  all <- rows_of_data(data)
  if (is.null(asked$likelihood)) { # the fold may find another family than the fit
    # If the noise trend is learned again, use the weights that the user gave. `prior_weights` include the old trend.
    w <- if (!is.null(data$noise_trend) && !is.numeric(asked$noise)) data$given_weights else data$prior_weights
    all$y <- all$size <- unname(given_response(data))
    part <- clean_again(data, all$x[train, , drop = FALSE], all$y[train], w[train], data$offset[train], asked$center,
                        asked$scale, merges_rows(fit$method), "y")
  } else {
    part <- data_of_rows(data, take_rows_of(all, train), fit)
  }
  x <- all$x[out, , drop = FALSE]
  offset <- if (is.null(data$offset)) 0 else data$offset[out]
  if (!is.null(asked$m)) asked$m <- min(asked$m, part$n)
  one <- suppressMessages(suppressWarnings(fit_as_asked(part, asked), classes = "pfdtc_warning_small"))
  p <- latent_at(one, x)
  noise <- if (is.null(asked$likelihood)) { # a fit with given hyperparameters does not learn the noise's spread
    spread <- noise_spread(if (identical(asked$hyper, "fixed")) fit else one, x)
    list(noise = noise_at(one, x) / if (is.null(w)) 1 else w[out], spread = rep_len(spread, nrow(x)))
  }
  each <- score_each(response_of(one), take_rows_of(all[c("y", "size")], out),
                     c(list(mean = p$mean + offset, var = p$var), noise), crps = response_of(one)$kind != "classes")
  # The mean of unordered classes is a probability, but of ordered classes a number: a fold may choose the other family.
  labels <- c(response_of(one)$kind, response_of(fit)$kind) == "labels"
  if (labels[1L] == labels[2L]) each else replace(each, c("mean", "sd"), NA_real_)
}

# ---- folds, and rows that share a fold ------------------------------------------------------------------------------

# Returns the fold of each row: a number, or the row's value in the argument `folds`.
make_folds <- function(fit, data, folds, by) {
  n <- length(data$response)
  if (length(folds) > 1L) {
    if (!is.null(by)) abort_input("by", "cannot be combined with `folds` that have the fold of each row")
    folds <- of_rows(fit, folds, n, "folds")
    if (is.factor(folds)) folds <- as.character(folds)
    if (length(unique(folds)) < 2L) abort_input("folds", "has a single fold", hint = "Give at least two.")
    return(folds)
  }
  together <- if (is.null(by)) copies_in(data) else groups_by(fit, by, n)
  if (is.null(by) && !is.null(together)) { # copies of a row predict each other, so they share a fold
    together <- replace(seq_len(n) + max(together), weights_given(data) > 0, together)
    together <- match(together, unique(together))
  }
  same <- if (is.null(by)) rows_of_table(fit, data)
  if (!is.null(same)) {
    names <- if (by_formula(fit)) vapply(fit$frame$variables, `[[`, "", "name") else fit$frame$columns
    tell_classed("equal_inputs", sprintf(
      "%d of %d rows repeat the inputs of another, and weights are counts. To leave these out together, use by = ~ %s.",
      length(same) - max(same), length(same), paste(names, collapse = " + ")))
  }
  group <- together %||% seq_len(n)
  size <- tabulate(group)
  wrong <- if (is.null(by)) c("fit", "has a single row, or copies of one row") else c("by", "has a single group")
  refuse_if(length(size) < 2L, wrong[1L], wrong[2L], hint = "Cross-validation needs at least two.")
  if (check_count(folds, "folds", min = 2) > length(size)) tell_classed("folds", sprintf(
    "`folds` is %.0f, but only %d folds of separate rows or groups can be made.", folds, length(size)))
  folds <- min(folds, length(size))
  order <- sample.int(length(size))
  if (is.null(together)) return(order(order) %% folds + 1L)
  fold_of <- integer(length(size))
  rows <- numeric(folds)
  for (g in order) {
    fold_of[g] <- least <- which.min(rows)
    rows[least] <- rows[least] + size[g]
  }
  fold_of[group]
}

# Returns the number of each row's group in the argument `by`: whole numbers from 1 without gaps.
groups_by <- function(fit, by, n) {
  if (inherits(by, "formula")) {
    variables <- as.list(attr(stats::terms(by), "variables"))[-1L]
    if (!length(variables) || length(by) != 2L) abort_input("by", describe(by), "a formula such as ~ site")
    what <- if (length(variables) == 1L) variables[[1L]] else as.call(c(quote(interaction), variables, drop = TRUE))
    by <- tryCatch({
      if (is.null(fit$terms)) eval(what, environment(by)) else stats::model.frame(fit, by = what)[["(by)"]]
    }, error = function(e) {
      abort_input("by", sprintf("= %s cannot be evaluated: %s", deparse1(by), sub("\\.$", "", conditionMessage(e))),
                  hint = "Use variables of the data, or a vector with an element for each row.")
    })
  }
  value <- of_rows(fit, by, n, "by")
  match(value, unique(value))
}

# Returns `value` without elements of rows that na.action dropped, or stops unless it has an element for each row.
of_rows <- function(fit, value, n, argument) {
  left_out <- as.integer(fit$na.action)
  if (length(left_out) && length(value) == n + length(left_out)) value <- value[-left_out]
  refuse_if(!is.atomic(value) || length(value) != n || anyNA(value), argument,
            if (!is.atomic(value)) paste("is", describe(value)) else if (anyNA(value)) "has missing values" else
              sprintf("has length %d, but the fit has %d rows", length(value), n),
            hint = if (is.character(value) && length(value) == 1L) sprintf("Write %s = data$<column>.", argument))
  value
}

# Returns list(lwr, upr), conformal intervals for new responses. Leave-one-out residuals in sds determine their width.
# `p` is list(mean, var) of f at rows$x, in units of y. Leaving out a row is assumed not to change the prediction at a
# new row, unless the posterior is exact, or has at most 1,000 rows and neither neighbours nor a subsample.
conformal_band <- function(fit, rows, p, level) {
  loo <- loo_rows(fit)
  score <- abs(standardised(loo))
  used <- which(is.finite(score))
  k <- ceiling(level * (length(used) + 1) * (1 - 1e-12))  # counts the new row's unknown score as well
  few <- length(used) <= 1000L && is.null(fit$near) && is.null(fit$chosen)
  total <- p$var + noise_at(fit, rows$x)
  half <- if (k > length(used)) {
    matrix(Inf, length(total), 2L)
  } else if (is_exact(fit) || few) {
    ends_by_row(fit, rows$x, total, loo, used, k)
  } else {
    matrix(sort(score[used], partial = k)[k] * sqrt(total), length(total), 2L)
  }
  mean <- p$mean[rows$index] + rows$offset
  list(lwr = mean - half[rows$index, 1L], upr = mean + half[rows$index, 2L])
}

# Returns a row for each row of x: the distances of both ends of the interval from the mean. Each training row i gives
# such a distance; the k-th smallest is returned. kappa is the posterior covariance of f(x_i) and f(x), W the noise
# precision, l the leverage, mu and mu_(-i) the mean and leave-one-out mean. `total`, or sd^2, is var(y) at x.
#
# For inducing points (jackknife+), the prediction without row i is
#   mean - kappa W (y_i - mu) / (1 - l),  variance + kappa^2 W / (1 - l).
# For an exact posterior (full conformal), a new response mean + sd tau at x has the score |tau|. With h = W kappa / sd,
# B = W (1 - l), the precision of y_i given the others, and alpha = B (y_i - mu_(-i)), row i has the score
#   |alpha - h tau| / g,   g = sqrt(B + h^2) > |h|.
# This score exceeds |tau| if tau is between alpha / (g + h) and -alpha / (g - h).
ends_by_row <- function(fit, x, total, loo, used, k) {
  p <- posterior_of(fit)
  part <- without_rounded(row_parts(p))
  kept <- match(used, which(weights_given(training_data(fit)) > 0))
  row <- list(residual = unname(loo$residual[used]), sd = unname(sqrt(loo$var + loo$noise)[used]),
              W = part$W[kept] / in_units(fit, 1, 2), rest = part$rest[kept])
  blocks <- blocks_of(seq_along(total), max(1, 2^21 %/% length(kept)))
  do.call(rbind, lapply(blocks, function(i) {
    cov <- covariance_with_rows(p, values_at(p$model$kernel, x[i, , drop = FALSE]))
    kappa <- in_units(fit, cov, 2)[part$group[kept], , drop = FALSE]
    variance <- matrix(total[i], length(kept), length(i), byrow = TRUE)
    kth <- function(v) apply(v, 2L, function(one) sort(one, partial = k)[k])
    if (!is_exact(fit)) {
      shift <- kappa * row$W * row$residual
      width <- abs(row$residual) / row$sd * sqrt(variance + kappa^2 * row$W / row$rest)
      return(cbind(kth(width + shift), kth(width - shift)))
    }
    sd <- sqrt(variance)
    B <- row$W * row$rest
    h <- row$W * kappa / sd
    g <- sqrt(B + h^2)
    one <- B * row$residual / (g + h) * sd
    other <- -B * row$residual / (g - h) * sd
    cbind(kth(pmax(-one, -other)), kth(pmax(one, other)))
  }))
}
