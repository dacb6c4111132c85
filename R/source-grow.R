#' Add or remove rows, or replace inducing points
#'
#' Updates a fit without learning again: kernel, noise, centre and scale stay, and `add_rows()` and `drop_rows()` keep
#' the inducing points. `update_points()` chooses them anew, for when new rows are far from the old ones.
#'
#' A fit on inducing points needs no data: the cost is \eqn{O(n m^2)} for n new rows. A fit with its data computes its
#' posterior anew at the same hyperparameters. A non-Gaussian fit needs its data, and starts from its current mode. A
#' `reference` is computed anew if the data are at hand, and left out with a message otherwise. `drop_rows()` without
#' data refuses if rounding errors of the old sums would be visible.
#'
#' @param fit a fit by any function but [gp_subsample()].
#' @param newdata a data frame with the variables of the formula, response and weights included; for a fit from a matrix
#'   a list with `x`, `y` and, if used, `weights` and `offset`; or a row source ([rows_blocks()]).
#' @param rows numbers of rows to remove, as given to the fit (without those left out for missing values); for a fit
#'   without its data, the rows themselves, as `newdata`.
#' @param m number of inducing points; default: as many as now.
#' @return The fit, without the certificate of `tol`. `added` and `dropped` count rows; `allowance` bounds the relative
#'   rounding error of removed sums. `update_points()` returns the old fit, with a message, if new points reduce the
#'   residual prior variance by less than a tenth.
#' @examples
#' first <- pfdtc(mag ~ stations + depth, quakes[1:800, ], kernel = kernel_se(c(60, 300), 0.1),
#'                noise = 0.04, hyper = "fixed", m = 20)
#' more <- add_rows(first, quakes[801:1000, ])
#' nobs(more)
#' drop_rows(more, 1:100)
#' @seealso [pfdtc()], [rows_blocks()], [refine()]
#' @section Errors and invariants: class `pfdtc_error_input`. Posterior and `logLik()` are those of a fit to the rows
#'   that remain, with the same inducing points, to rounding.
#' @export
add_rows <- function(fit, newdata) {
  fit <- check_growing(fit)
  if (is_source(newdata) && read_elsewhere(newdata)) return(add_from_workers(fit, newdata))
  if (is_source(newdata)) {
    source_pass(newdata, function(block) {
      fit <<- add_rows(fit, block)
      TRUE
    }, `&`)
    return(fit)
  }
  given <- training_rows_from(fit, newdata)
  if (!length(given$response)) return(fit)
  if (!is.null(fit$data)) {
    rows <- extended_rows(rows_of_data(fit$data), given)
    return(fit_of_data(fit, data_of_rows(fit$data, rows, fit), sum(given$keep)))
  }
  with_sums(fit, cleaned(fit, given), 1)
}

#' @rdname add_rows
#' @export
drop_rows <- function(fit, rows) {
  fit <- check_growing(fit)
  if (is.null(fit$data)) return(with_sums(fit, cleaned(fit, training_rows_from(fit, rows)), -1))
  n <- length(fit$data$response)
  if (!is.numeric(rows) || anyNA(rows) || any(rows < 1 | rows > n | rows != round(rows))) {
    abort_input("rows", rows, sprintf("numbers of rows, from 1 to %d", n))
  }
  rows <- unique(as.integer(rows))
  if (!length(rows)) return(fit)
  data <- data_of_rows(fit$data, rows_without(rows_of_data(fit$data), rows), fit)
  data["na_action"] <- fit["na.action"] <- list(NULL) # it speaks of the rows' numbers
  fit_of_data(fit, data, -length(rows))
}

check_growing <- function(fit) {
  fit <- check_any_fit(fit, "fit")
  if (!response_of(fit)$conjugate && is.null(fit$data)) {
    abort_input("fit", sprintf("a fit with family %s without its data", response_of(fit)$label),
                "one made with `keep_data = TRUE`",
                hint = "Its mode depends on all rows at once, and no sums stand for them.")
  }
  if (gp_family(fit)$some) abort_input("fit", sprintf("a fit by %s()", fit$method), "one of all rows")
  if (!is.null(fit$transform)) {
    abort_input("fit", "one with a transformed response", "a fit without `transform`",
                hint = "Fit all rows with transform = fit$transform, kernel = fit$kernel, noise = fit$noise.")
  }
  fit
}

# ---- a fit without its data: sums -----------------------------------------------------------------------------------

with_sums <- function(fit, rows, sign) {
  if (!rows$n) return(fit)
  if (is.null(fit$inducing)) needs_data(fit, "fit")
  if (!is.null(fit$near)) return(with_more_near(fit, rows, sign))
  new <- sums_with_signature(rows, fit$inducing, model_of(fit), posterior_of_fit(fit), gp_family(fit)$fitc, fit$control)
  with_new_sums(fit, new, sign)
}

# Rows elsewhere: their sums come here.
add_from_workers <- function(fit, source) {
  if (!is.null(fit$data) || !is.null(fit$near) || is.null(fit$inducing)) {
    abort_input("newdata", "rows on workers", "rows that are read here, for a fit that keeps rows",
                hint = "Sums alone are what a fit with `keep_data = FALSE` and `neighbours = 0` takes.")
  }
  visit <- visit_rows(added_rows, fit_recipe(fit), sums_with_signature,
                      list(fit$inducing, model_of(fit), as_start(posterior_of_fit(fit)), gp_family(fit)$fitc,
                           fit$control))
  new <- source_pass(source, visit, either(merge_sums))
  if (is.null(new)) fit else with_new_sums(fit, new, 1)
}

added_rows <- function(recipe, block) cleaned(recipe, training_rows_from(recipe, block))

posterior_of_fit <- function(fit) c(fit$factors[setdiff(names(fit$factors), "jitter")], fit["jitter"])

# `new`: of sums_with_signature()
with_new_sums <- function(fit, new, sign) {
  model <- model_of(fit)
  p <- posterior_of_fit(fit)
  n <- new$n
  sums <- sums_beside(p, new$sums, sign)
  allowance <- if (sign < 0) check_taken(fit, p, sums, model, n)
  sums[c("yy", "k_sum", "t", "rss")] <- lapply(sums[c("yy", "k_sum", "t", "rss")], max, 0)
  sums$n <- fit$nobs + sign * n
  after <- posterior_of_sums(fit$inducing, sums, model, p)
  zero <- list(n = 0, scale = fit$scale, shift = list(constant = 0, rows = 0, ss = 0))
  more <- list(n = sign * n, scale = fit$scale,
               shift = log_density_shift(sign * n, sign * new$log_w, fit$scale, 0, 0))
  evidence <- function(rows, factors) evidence_of("points", model, rows, factors, gp_family(fit))
  fit$evidence <- fit$evidence + evidence(more, after) - evidence(zero, p)
  fit$factors <- after
  fit$signature <- signature_with(fit$signature, new$signature, sign)
  if (sign > 0) fit <- with_offset_of(fit, new$offset_squares)
  fit$nobs <- fit$nobs + sign * n
  if (is_finite_number(fit$unexplained)) fit$unexplained <- after$t / fit$nobs / model$noise
  if (sign < 0) fit$allowance <- sum(fit$allowance, allowance)
  without_reference(count_rows(fit, sign * n))
}

# Checks the rounding that removed rows leave in the sums: s2 I + G may be off by this share of s2.
check_taken <- function(fit, p, sums, model, n) {
  gone <- fit$nobs - n
  if (gone <= 0) {
    abort_input("rows", sprintf("%s of %s", show_count(n), show_count(fit$nobs)), "fewer than there are")
  }
  if (sums$yy < -1e-8 * p$yy || sums$t < -1e-8 * p$t || min(diag(sums$G)) < -1e-8 * max(diag(p$G))) {
    abort_input("rows", "rows of which the fit has no sums", "rows of the fit")
  }
  off <- rounding_growth(nrow(p$G), fit$nobs) * sum(diag(p$G)) / model$noise
  if (off > 1e-4) {
    abort_input("rows", sprintf("rows whose sums leave %s of the noise to rounding", format(off, digits = 2)),
                "less than 1e-4 of it", hint = "Fit the rows that are left.")
  }
  off
}

# Certificates allow for the rounding of the offset. `squares`: the weighted sum of squares of the new rows' offset.
with_offset_of <- function(fit, squares) {
  if (squares > 0) fit$frame$offset_size <- sqrt(sum(fit$frame$offset_size^2) + squares)
  fit
}

count_rows <- function(fit, n) {
  if (n == 0) return(fit)
  what <- if (n > 0) "added" else "dropped"
  fit[[what]] <- sum(fit[[what]], abs(n))
  fit["tol"] <- list(NULL) # it was of other rows
  fit
}

without_reference <- function(fit) {
  if (!is.null(fit$reference)) {
    tell_classed("reference", "The reference is of other rows and is left out: it needs the data.")
    fit["reference"] <- list(NULL)
  }
  fit
}

# ---- a fit of a source that has kept rows as near rows --------------------------------------------------------------

with_more_near <- function(fit, rows, sign) {
  if (sign < 0) {
    abort_input("fit", "one of a row source that has kept a sample as near rows",
                "one with its data, or of points alone",
                hint = "Fit the rows that are left from where this fit is: pfdtc(<formula>, <source>, inducing = fit).")
  }
  if (is.null(fit$near$rows$shift)) needs_data(fit, "fit") # by a version that did not keep what this takes
  fit <- if (is.null(fit$near$sums)) with_all_near(fit, rows) else with_sampled_near(fit, rows)
  fit$signature <- signature_with(fit$signature, signature_sums(rows))
  fit <- with_offset_of(fit, rows$offset_squares)
  fit$nobs <- fit$nobs + rows$n
  without_reference(count_rows(fit, rows$n))
}

# All rows are near rows, and the new ones are, last in the order.
with_all_near <- function(fit, rows) {
  old <- fit$near$rows
  data <- merge_all_equal_rows(c(joined_rows(old, rows), list(n = old$n + rows$n, shift = list(rows = 0, ss = 0))))
  log_w <- if (is.null(rows$weights)) 0 else sum(log(rows$weights))
  more <- log_density_shift(rows$n, log_w, fit$scale, data$shift$rows, data$shift$ss)
  data$shift <- Map(`+`, old$shift[names(more)], more)
  fit$near$rank <- order_after(fit$near$rank, nrow(old$x), data, old)
  fit <- posterior_again(posterior_of(fit), rows = data)$fit
  fit$near$rows <- data[c("x", "y", "weights", "n", "shift")]
  fit
}

joined_rows <- function(a, b) {
  weights <- if (!is.null(a$weights) || !is.null(b$weights)) c(merged_weights(a), merged_weights(b))
  list(x = rbind(a$x, b$x), y = c(a$y, b$y), weights = weights, group = NULL)
}

# Points know of all rows by FITC's sums; what is near stays a random sample, in which the new rows take their places.
with_sampled_near <- function(fit, rows) {
  model <- model_of(fit)
  p <- posterior_of_near(fit$near, model)
  new <- sums_with_signature(rows, fit$inducing, model, p, TRUE, fit$control)
  sums <- c(sums_beside(p, new$sums), n = as.double(fit$nobs + rows$n))
  after <- posterior_of_sums(fit$inducing, sums, model, p)
  fit$evidence <- evidence_of("points", model, list(n = fit$nobs + rows$n, scale = fit$scale), after, list(fitc = TRUE))
  kept <- fit$near$rows
  fit$near <- near_of_posterior(after, model, fit$neighbours)
  fit$near$rows <- resampled(kept, rows, fit$nobs)
  fit
}

# A sample of `before` rows goes on: the i-th row more is taken with the probability of its share, for any of them.
resampled <- function(kept, rows, before) {
  size <- nrow(kept$x)
  taken <- which(stats::runif(rows$n) * (before + seq_len(rows$n)) < size)
  if (!length(taken)) return(kept)
  place <- sample.int(size, length(taken), replace = TRUE)
  kept$x[place, ] <- rows$x[taken, , drop = FALSE]
  kept$y[place] <- rows$y[taken]
  if (!is.null(kept$weights) || !is.null(rows$weights)) {
    kept$weights <- merged_weights(kept)
    kept$weights[place] <- merged_weights(rows)[taken]
  }
  kept
}

# ---- a fit with its data --------------------------------------------------------------------------------------------

# The fit's posterior, made of other data. Rows that were there keep their order among near rows.
fit_of_data <- function(fit, data, n) {
  model <- model_of(fit)
  old <- fit$data
  if (!is.null(fit$near)) fit$near$rank <- order_after(fit$near$rank, nrow(old$x), data, old)
  fit <- posterior_again(posterior_of(fit), rows = data)$fit
  if (is_exact(fit)) {
    fit["small_n"] <- list(NULL)
    if (!is.null(fit[["m"]])) fit$m <- fit$m_asked <- nrow(data$x)
  } else if (response_of(fit)$conjugate && is.null(fit$near) && is_finite_number(fit$unexplained)) {
    fit$unexplained <- fit$factors$t / data$n / model$noise
  }
  fit$nobs <- data$n
  fit$signature <- data_signature(data)
  if (!is.null(fit$reference)) {
    fit$reference <- if (!response_of(fit)$conjugate)
      with_fixed_seed(laplace_reference(fit, data, min(fit$reference$m, data$n))) else
      reference_on(fit, data, fit$reference$inducing, NULL)
  }
  count_rows(fit, n)
}

# Ranks of rows that were there in the order they had, of others after them.
order_after <- function(rank, n, data, old) {
  was <- match_rows(data$x, old$x)
  new <- is.na(was)
  place <- order(ifelse(new, n + seq_along(was), rank[was]))
  order(place)
}

# Which row of `old` each row of x is, NA for none: rows are the same where all their numbers are.
match_rows <- function(x, old) {
  group <- equal_rows(rbind(old, x))
  n <- nrow(old)
  if (is.null(group)) return(rep(NA_integer_, nrow(x)))
  match(group[n + seq_len(nrow(x))], group[seq_len(n)])
}

# ---- points ---------------------------------------------------------------------------------------------------------

#' @rdname add_rows
#' @export
update_points <- function(fit, m = NULL) {
  fit <- check_growing(fit)
  data <- needs_data(fit, "fit")
  if (is.null(fit$inducing) || is_exact(fit)) {
    abort_input("fit", "an exact posterior", "one on inducing points", hint = "Its points are its rows.")
  }
  m <- if (is.null(m)) nrow(fit$inducing) else check_points(m, nrow(data$x))
  model <- model_of(fit)
  z <- start_points(data, model, m, "greedy", fit$control)$z
  left <- function(z) native_posterior(z, data, model, fit$jitter, control = fit$control)$t
  before <- left(fit$inducing)
  after <- left(z)
  if (after > 0.9 * before) {
    tell_classed("points", sprintf(
      "The inducing points are kept: they leave %.3g of the prior variance, new ones would leave %.3g.",
      in_units(fit, before / data$n, 2), in_units(fit, after / data$n, 2)))
    return(fit)
  }
  fit$inducing <- z
  fit$m <- nrow(z)
  fit$m_asked <- m
  fit$inducing_method <- "greedy"
  fit$unexplained <- after / data$n / model$noise
  fit$moved <- FALSE
  fit_of_data(fit, data, 0)
}
