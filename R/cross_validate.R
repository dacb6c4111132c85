# Cross-validation: fits without some of the rows, and how well they predict these.

#' Cross-validate a Gaussian process fit
#'
#' Fits again without the rows of one fold after the other, and compares the predictive distributions of these with
#' their responses.
#'
#' By default everything is learned again in every fold, as the fit was asked to: kernel, hyperparameters, inducing
#' points, number of near rows. That is what a new data set of this size would meet, and takes as long as so many fits.
#' With `hyper = "held"` the kernel, the hyperparameters, the inducing points and the number of near rows are those of
#' the fit, which has seen all rows, and only the posterior is made anew: much faster, and too favourable for few rows.
#' The centre and scale of the response are those of the rows that are fitted, either way. Leaving out single rows with
#' all of this held takes no refits at all: see [leave_one_out].
#'
#' Rows that belong together (of one patient, site or day) predict one another better than they would a new patient.
#' `by` keeps them together: each group is in one fold as a whole. Groups go to folds in a random order, each to the
#' fold that has the fewest rows so far.
#'
#' The predictive distribution of a row is normal with the mean and the variance of f, and the row's own noise,
#' `sigma^2 / weight`. With \eqn{z} the error divided by its standard deviation \eqn{s},
#' \deqn{nlpd = \frac{z^2 + \log 2\pi s^2}{2}, \qquad
#'   crps = s\,(z(2\Phi(z) - 1) + 2\phi(z) - \pi^{-1/2}),}{nlpd = (z^2 + log(2 pi s^2)) / 2,
#'   crps = s (z (2 pnorm(z) - 1) + 2 dnorm(z) - 1 / sqrt(pi)),}
#' and averages are over rows, all alike, with those of weight 0 left out.
#'
#' For a fit with a non-Gaussian `family` the result is a plain data frame with `fold`, `n`, `rmse` (of the
#' averaged probability or rate), `nlpd`, of classes `brier` (the mean squared distance of single trials from the
#' averaged probability) and `accuracy`, of others `cover50` and `cover95`, and `seconds`; the attribute `predictions`
#' has `row`, `fold`, `y`, `size` (trials), `mean`, `density`, the log density of the response, and the probabilities
#' `below` and `upto` of less than it and of no more. With `hyper = "held"` theta of [nb()] or sigma of
#' [student()] is held too, and the constant mean learned.
#'
#' @param fit A fit with its data (`keep_data = TRUE`).
#' @param folds Number of random folds of nearly equal size (after [set.seed()] the same each time), or a vector that
#'   says which fold each row is in: an element a row of the data.
#' @param by `NULL`, or what rows belong together by: a vector with an element a row, or a formula such as `~ site`,
#'   looked up in the data of the fit's call as the formula's variables are; `~ a + b` are the combinations.
#' @param hyper `"refit"` or `"held"`: what is learned in every fold, see Details.
#' @return A data frame of class `pfdtc_cv`, a row a fold: `fold`, `n` (its rows), `rmse` (root mean squared error, in
#'   units of y), `nlpd` (mean of minus the log predictive density of a response as given), `crps` (mean continuous
#'   ranked probability score, in units of y), `cover50` and `cover95` (shares of the responses inside their
#'   central 50 % and 95 % intervals), `seconds`. Attributes: `overall`, the same over all rows; `predictions`, a data
#'   frame with a row for each row that was predicted: `row`, `fold`, `y`, `mean`, `sd`; `hyper`.
#' @section Copies: rows that are copies of others (same inputs and response, see [pfdtc()]) share a fold.
#' @section Errors: class `pfdtc_error_input` for a fit without its data, less than two folds, `folds` or `by` of
#'   another length than the data, or `by` beside a vector of `folds`.
#' @section Invariants: every row with positive weight is predicted once, by a fit that has not seen it; with
#'   `hyper = "held"`, `center = FALSE`, `scale = FALSE` and a fold for each row the predictions are those of
#'   `predict(fit, type = "loo")`, where there are no near rows.
#' @source Gneiting and Raftery (2007), Strictly Proper Scoring Rules, Prediction, and Estimation, JASA 102.
#' @seealso [leave_one_out]
#' @examples
#' fit <- pfdtc(dist ~ speed, cars, kernel = kernel_matern(3/2))
#' set.seed(1)
#' cross_validate(fit, folds = 5, hyper = "held")
#' # speeds that the fit has not met
#' cross_validate(fit, folds = 4, by = ~ speed, hyper = "held")
#' @export
cross_validate <- function(fit, folds = 10, by = NULL, hyper = c("refit", "held")) {
  fit <- check_any_fit(fit, "fit")
  hyper <- check_choice(hyper, c("refit", "held"), "hyper")
  data <- training_data(fit)
  asked <- settings_again(fit, hyper)
  fold <- make_folds(fit, data, folds, by)
  used <- which(if (is.null(data$prior_weights)) !is.na(fold) else data$prior_weights > 0)
  laplace <- !response_of(fit)$conjugate
  parts <- lapply(sort(unique(fold[used])), function(id) {
    out <- used[fold[used] == id]
    started <- proc.time()[["elapsed"]]
    p <- without_fold(id, ended_together(if (laplace)
      predict_fold_of_sites(fit, data, asked, hyper, match(out, used)) else
        predict_fold(fit, data, asked, setdiff(used, out), out)))
    list(fold = id, predictions = data.frame(row = out, fold = id, p), seconds = proc.time()[["elapsed"]] - started)
  })
  shown <- if (!laplace) c("n", "rmse", "nlpd", "crps", "cover50", "cover95") else
    c("n", "rmse", "nlpd", "brier", "accuracy", "cover50", "cover95")
  score <- function(p) summarise_scores(response_of(fit), p)[shown]
  row <- function(part) data.frame(fold = part$fold, score(part$predictions), seconds = part$seconds)
  rows <- do.call(rbind, lapply(parts, row))
  all <- do.call(rbind, lapply(parts, `[[`, "predictions"))
  overall <- row(list(fold = "all", predictions = all, seconds = sum(rows$seconds)))
  all <- all[order(all$row), ]
  all <- all[c("row", "fold", "y", if (laplace) c("size", "mean", "density", "below", "upto") else c("mean", "sd"))]
  row.names(all) <- row.names(rows) <- NULL
  out <- structure(rows, overall = overall, predictions = all, hyper = hyper)
  if (laplace) return(out)
  structure(out, by = !is.null(by), method = fit$method, class = c("pfdtc_cv", "data.frame"))
}

#' @export
print.pfdtc_cv <- function(x, digits = 3, ...) {
  all <- attr(x, "overall")
  if (is.null(all)) return(NextMethod())  # some of its rows or columns
  cat(sprintf("Cross-validation of %s(): %d rows, %d folds%s\n", attr(x, "method"), all$n, nrow(x),
              if (attr(x, "by")) " of whole groups" else ""))
  cat(if (attr(x, "hyper") == "refit") "Hyperparameters and inducing points are estimated again in each fold" else
    "Hyperparameters and inducing points of the fit are kept", "\n\n", sep = "")
  table <- rbind(data.frame(lapply(x, identity)), all)
  table$fold <- c(as.character(x$fold), all$fold)
  for (what in c("cover50", "cover95")) table[[what]] <- sprintf("%.1f %%", 100 * table[[what]])
  table$seconds <- sprintf("%.2f", table$seconds)
  for (what in c("rmse", "nlpd", "crps")) table[[what]] <- format(table[[what]], digits = digits)
  print(table, row.names = FALSE, right = TRUE)
  invisible(x)
}

# Names the fold in errors of the fit without that fold.
without_fold <- function(id, expr) {
  tryCatch(expr, pfdtc_error_input = function(e) {
    abort_input("folds", sprintf("one in which without fold %s: %s", id, conditionMessage(e)),
                "a division after which the rows of the other folds can be fitted")
  })
}

# The settings of a fit like this one to other rows.
settings_again <- function(fit, hyper) {
  if (is.null(fit$asked) && hyper == "refit") {
    abort_input("fit", "one of an earlier version, which does not know what it was asked for", "a new fit",
                hint = "Or `hyper = \"held\"`.")
  }
  control <- fit$control
  asked <- fit$asked
  if (is.null(asked)) asked <- list(center = fit$center != 0, scale = fit$scale != 1)
  if (isFALSE(asked$aux_given)) asked["aux"] <- list(NULL) # of version 0.1.0
  if (is.null(asked$mean)) asked$mean <- ~ 1 # of an earlier version
  if (is.null(asked$plain)) asked$plain <- TRUE
  if (hyper == "held") {
    asked[c("kernel", "noise", "hyper")] <- list(fit$kernel, fit$noise, "fixed")
    asked["transform"] <- list(fit$transform)
    asked[c("tol", "m", "inducing", "neighbours")] <- list(NULL)
    if (gp_family(fit)$some) asked$m <- fit$m
    if (is.null(fit$x)) {
      asked["inducing"] <- list(fit$inducing)
      if (gp_family(fit)$chooses) asked["neighbours"] <- list(fit$neighbours)
      control$maxit <- 0L
    } else {
      asked["aux"] <- list(NULL) # the fit has all rows, not inducing points
    }
  }
  control$progress <- FALSE
  c(list(method = fit$method, call = fit$call), asked, list(control = control, keep_data = TRUE))
}

# Returns score_each() for some rows of the data, by a fit to others.
predict_fold <- function(fit, data, asked, train, test) {
  inputs <- training_inputs(data)
  # sizes of noise that are learned again do not stay in the weights
  w <- if (!is.null(data$noise_trend) && !is.numeric(asked$noise)) data$given_weights else data$prior_weights
  part <- clean_again(data, inputs$x[inputs$index[train], , drop = FALSE], unname(given_response(data)[train]),
                      w[train], data$offset[train], asked$center, asked$scale, merges_rows(fit$method), "y")
  if (!is.null(asked$m)) asked$m <- min(asked$m, length(train))
  one <- withCallingHandlers(fit_as_asked(part, asked),
                             pfdtc_warning_small = function(w) invokeRestart("muffleWarning"))
  x <- inputs$x[inputs$index[test], , drop = FALSE]
  p <- latent_at(one, x)
  w <- if (is.null(w)) 1 else w[test]
  offset <- if (is.null(data$offset)) 0 else data$offset[test]
  score_each(response_of(one), list(y = unname(given_response(data)[test])),
             list(mean = p$mean + offset, var = p$var), list(noise = noise_at(one, x) / w))
}

# The same for a non-Gaussian likelihood. `out`: numbers among the rows in use.
predict_fold_of_sites <- function(fit, data, settings, hyper, out) {
  part <- data
  part$x <- data$x[-out, , drop = FALSE]
  part$sites <- take_sites(data$sites, -out)
  part[c("y", "response")] <- list(data$y[-out], data$y[-out])
  part[c("x_zero", "prior_weights", "weights")] <- list(NULL)
  part["offset"] <- list(if (!is.null(data$offset)) part$sites$offset)
  part$n <- nrow(part$x)
  settings$likelihood <- fit$likelihood
  settings["noise"] <- settings$control["maxit"] <- list(NULL)
  if (hyper == "held") {
    settings$likelihood$learned <- FALSE
  } else if (fit$likelihood$learned) {
    settings$likelihood["theta"] <- list(NULL)
  }
  if (!is.null(settings$m)) settings$m <- min(settings$m, part$n)
  one <- suppressMessages(fit_as_asked(part, settings))
  p <- latent_at(one, data$x[out, , drop = FALSE])
  sites <- take_sites(data$sites, out)
  score_each(response_of(one), sites[c("y", "size")], list(mean = p$mean + sites$offset, var = p$var), list())
}

# ---- which rows go together -----------------------------------------------------------------------------------------

# The fold of each row of the data.
make_folds <- function(fit, data, folds, by) {
  n <- length(data$response)
  if (length(folds) > 1L) {
    if (!is.null(by)) abort_input("by", "given", "left out where `folds` says which fold each row is in")
    folds <- of_rows(fit, folds, n, "folds")
    if (is.factor(folds)) folds <- as.character(folds)
    if (length(unique(folds)) < 2L) abort_input("folds", "a single fold", "at least two folds")
    return(folds)
  }
  together <- if (is.null(by)) groups_of_copies(data) else groups_by(fit, by, n)
  group <- if (is.null(together)) seq_len(n) else together
  size <- tabulate(group)
  if (length(size) < 2L) abort_input("by", "a single group", "at least two groups")
  if (data$n < 2L) abort_input("fit", "a fit of one row", "a fit of two rows or more")
  folds <- min(check_count(folds, "folds", min = 2), length(size))
  order <- sample.int(length(size))
  if (is.null(together)) return(order(order) %% folds + 1L)
  fold_of <- integer(length(size))
  rows <- numeric(folds)
  for (g in order) {
    least <- which.min(rows)
    fold_of[g] <- least
    rows[least] <- rows[least] + size[g]
  }
  fold_of[group]
}

# Returns the group of each row if rows are copies of others, which would predict each other; else NULL.
groups_of_copies <- function(data) {
  copy <- copies_in(data)
  if (is.null(copy)) return(NULL)
  w <- data$prior_weights
  group <- seq_along(data$response) + max(copy) # rows of weight 0 have groups of their own
  group[if (is.null(w)) TRUE else w > 0] <- copy
  match(group, unique(group))
}

# The group of each row: whole numbers from 1 without gaps.
groups_by <- function(fit, by, n) {
  value <- if (inherits(by, "formula")) variable_by(fit, by) else by
  value <- of_rows(fit, value, n, "by")
  match(value, unique(value))
}

variable_by <- function(fit, by) {
  variables <- as.list(attr(stats::terms(by), "variables"))[-1L]
  if (!length(variables) || length(by) != 2L) abort_input("by", describe(by), "a formula such as ~ site")
  what <- if (length(variables) == 1L) variables[[1L]] else as.call(c(quote(interaction), variables, drop = TRUE))
  value <- tryCatch({
    if (is.null(fit$terms)) eval(what, environment(by)) else stats::model.frame(fit, by = what)[["(by)"]]
  }, error = function(e) {
    abort_input("by", sprintf("`%s`, which cannot be found with the fit's data (%s)", deparse1(by),
                              sub("\\.$", "", conditionMessage(e))),
                "a formula in variables of the data, or a vector with an element a row")
  })
  value
}

# A value a row of the data; those that na.action has left out may be there as well.
of_rows <- function(fit, value, n, argument) {
  left_out <- as.integer(fit$na.action)
  if (length(left_out) && length(value) == n + length(left_out)) value <- value[-left_out]
  if (!is.atomic(value) || length(value) != n || anyNA(value)) {
    abort_input(argument, if (anyNA(value)) "one with missing values" else describe(value),
                sprintf("a vector with an element for each of the %d rows", n))
  }
  value
}
